/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/output/results.c: the folder, the event stream, histograms, run.json's replacement. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/hist/hist.h"
#include "loadgen/output/results.h"
#include "tests/unit/files/scratch.h"
#include "tests/unit/helpers/full_disk.h"

#define SECOND	    1750000000
#define SECOND_TEXT "20250615T150640Z"

static char dir[SCRATCH_MAX];	/* the tests make everything below it */
static char err[PATH_MAX + 200];
static time_t now;

/* Replaces libc's, so that two runs can begin in the same second on any machine. */
time_t time(time_t *out)
{
	if (out)
		*out = now;
	return now;
}

static int set_up(void **state)
{
	(void)state;
	now = SECOND;
	disk_room = -1;
	err[0] = '\0';
	return scratch_make(dir);
}

static int tear_down(void **state)
{
	(void)state;
	return scratch_remove(dir);
}

/* The path of a file below `dir`; valid until the fourth call after this one. */
static const char *below(const char *file)
{
	static char paths[4][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", dir, file);
	return path;
}

static struct results *make(const char *name)
{
	struct results *r = NULL;

	if (results_new(dir, name, 0, &r, err, sizeof(err)))
		fail_msg("%s", err);
	assert_non_null(r);
	return r;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static const char *read_file(const char *path)
{
	static char text[20000];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		fail_msg("%s is missing", path);
	n = fread(text, 1, sizeof(text) - 1, f);
	assert_in_range(n, 0, sizeof(text) - 2);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

TEST(new__parents_missing__made)
{
	struct results *r = NULL;
	struct stat st;

	assert_int_equal(results_new(below("a/b/c"), "run", 0, &r, err, sizeof(err)), 0);
	assert_string_equal(results_dir(r), below("a/b/c/" SECOND_TEXT "-run"));
	assert_string_equal(results_id(r), SECOND_TEXT "-run");
	assert_int_equal(stat(results_dir(r), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_true(exists(results_path(r, "events.ndjson")));
	results_free(r);
	results_free(NULL);
}

TEST(new__same_second__a_folder_each)
{
	struct results *a = make("run"), *b = make("run"), *c = make("run"), *other = make("other");

	assert_string_equal(results_id(a), SECOND_TEXT "-run");
	assert_string_equal(results_id(b), SECOND_TEXT "-run-2");
	assert_string_equal(results_id(c), SECOND_TEXT "-run-3");
	assert_string_equal(results_id(other), SECOND_TEXT "-other");
	results_event(a, "first", NULL);
	assert_string_equal(read_file(results_path(b, "events.ndjson")), "");
	results_free(a);
	results_free(b);
	results_free(c);
	now++;
	a = make("run");
	assert_string_equal(results_id(a), "20250615T150641Z-run");
	results_free(a);
	results_free(other);
}

TEST(new__a_link_has_its_name__another_and_nothing_made_there)
{
	struct results *r;

	assert_int_equal(mkdir(below("outside"), 0777), 0);
	assert_int_equal(symlink("outside", below(SECOND_TEXT "-run")), 0);
	r = make("run");
	assert_string_equal(results_id(r), SECOND_TEXT "-run-2");
	results_event(r, "first", NULL);
	assert_int_equal(rmdir(below("outside")), 0);
	results_free(r);
}

TEST(new__no_name_left__refused)
{
	struct results *r = NULL;
	char name[64];

	for (int i = 1; i < 100; i++) {
		snprintf(name, sizeof(name), i == 1 ? SECOND_TEXT "-run" : SECOND_TEXT "-run-%d", i);
		assert_int_equal(mkdir(below(name), 0777), 0);
	}
	assert_int_equal(results_new(dir, "run", 0, &r, err, sizeof(err)), -EEXIST);
	assert_null(r);
}

static void assert_new_refuses(const char *parent, int expected)
{
	struct results *r = NULL;

	err[0] = '\0';
	assert_int_equal(results_new(parent, "run", 0, &r, err, sizeof(err)), expected);
	assert_null(r);
	assert_non_null(strstr(err, parent));
	assert_non_null(strstr(err, strerror(-expected)));
	assert_non_null(strstr(err, "--output"));
	assert_null(strchr(err, '\n'));
}

TEST(new__bad_parent__a_line)
{
	static char long_path[PATH_MAX + 2], long_part[300];

	write_file(below("file"), "");
	assert_new_refuses(below("file"), -ENOTDIR);
	assert_new_refuses(below("file/deeper"), -ENOTDIR);
	memset(long_part, 'p', sizeof(long_part) - 1);
	assert_new_refuses(below(long_part), -ENAMETOOLONG);
	memset(long_path, 'p', PATH_MAX);
	assert_new_refuses(long_path, -ENAMETOOLONG);
	assert_new_refuses("/proc/rampart", -ENOENT);
}

TEST(new__no_room__refused_with_the_numbers_and_nothing_made)
{
	struct results *r = NULL;

	assert_int_equal(results_new(below("a"), "run", UINT64_MAX, &r, err, sizeof(err)), -ENOSPC);
	assert_null(r);
	assert_non_null(strstr(err, strerror(ENOSPC)));
	assert_non_null(strstr(err, " MB are free there, and the run's files need about 18446744073709.55 MB"));
	assert_null(strchr(err, '\n'));
	assert_int_equal(rmdir(below("a")), 0);
}

/* As with an exhausted quota: the file system claims to have room. */
TEST(new__nothing_can_be_written__refused_and_nothing_left)
{
	disk_room = 0;
	assert_new_refuses(dir, -ENOSPC);
	disk_room = -1;
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0777), 0);
}

TEST(path__file__in_the_folder)
{
	struct results *r = make("run");

	assert_string_equal(results_path(r, "server.log"), below(SECOND_TEXT "-run/server.log"));
	results_free(r);
}

TEST(event__several__a_json_object_a_line_at_once)
{
	static const char *const names[] = { "start", "phase", "line \"quoted\"\nbroken" };
	struct results *r = make("run");
	double last = 0;
	char *save, *line;
	size_t n = 0;

	results_event(r, names[0], NULL);
	results_event(r, names[1], json_pack("{s:s, s:i}", "phase", "connect", "clients", 10));
	results_event(r, names[2], json_pack("{s:s}", "text", "two\nlines"));
	/* The file is still open: an aborted run's events must parse too. */
	line = strtok_r((char *)(uintptr_t)read_file(results_path(r, "events.ndjson")), "\n", &save);
	for (; line; line = strtok_r(NULL, "\n", &save), n++) {
		json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		assert_true(json_is_object(o));
		assert_in_range(n, 0, N_ELEMENTS(names) - 1);
		assert_string_equal(json_string_value(json_object_get(o, "event")), names[n]);
		assert_true(json_is_real(json_object_get(o, "t")));
		assert_true(json_real_value(json_object_get(o, "t")) >= last);
		last = json_real_value(json_object_get(o, "t"));
		if (n == 1) {
			assert_string_equal(json_string_value(json_object_get(o, "phase")), "connect");
			assert_int_equal(json_integer_value(json_object_get(o, "clients")), 10);
		}
		assert_int_equal(json_object_size(o), n == 0 ? 2 : n == 1 ? 4 : 3);
		json_decref(o);
	}
	assert_int_equal(n, N_ELEMENTS(names));
	assert_true(last < 60);
	results_free(r);
}

TEST(event__fields__taken_over)
{
	struct results *r = make("run");
	json_t *fields = json_pack("{s:i}", "n", 1);

	json_incref(fields);
	results_event(r, "e", fields);
	assert_int_equal(fields->refcount, 1);
	json_decref(fields);
	results_free(r);
}

static void set_file_size_limit(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* As on a full disk. */
TEST(event__cannot_be_written__results_are_incomplete)
{
	struct results *r = make("run");

	signal(SIGXFSZ, SIG_IGN);
	results_event(r, "first", NULL);
	assert_false(results_are_incomplete(r));
	set_file_size_limit(60);
	results_event(r, "second", json_pack("{s:s}", "text", "more than there is room for in the file"));
	set_file_size_limit(RLIM_INFINITY);
	assert_true(results_are_incomplete(r));
	results_event(r, "third", NULL);
	assert_true(results_are_incomplete(r));
	results_free(r);
}

/* The lines that fitted are complete. */
TEST(event__disk_full__no_half_line)
{
	struct results *r = make("run");
	size_t whole;

	results_event(r, "first", NULL);
	whole = strlen(read_file(results_path(r, "events.ndjson")));
	for (disk_room = 0; disk_room < 20; ) {
		ssize_t fits = disk_room;

		results_event(r, "second", NULL);
		assert_int_equal(strlen(read_file(results_path(r, "events.ndjson"))), whole);
		disk_room = fits + 1;
	}
	assert_int_equal(results_error(r), -ENOSPC);
	assert_true(results_tidy(r));
	assert_true(exists(results_path(r, "events.ndjson")));
	results_free(r);
}

TEST(tidy__nothing_could_be_written__no_folder)
{
	struct results *r = make("run"), *other = make("other");
	json_t *o = json_object();

	disk_room = 0;
	results_event(r, "first", NULL);
	assert_int_equal(results_json(r, "run.json", o), -ENOSPC);
	json_decref(o);
	write_file(results_path(r, "server.log"), "");
	disk_room = -1;
	assert_false(results_tidy(r));
	assert_false(exists(results_dir(r)));
	results_free(r);
	write_file(results_path(other, "server.log"), "text");
	assert_true(results_tidy(other));
	assert_true(exists(results_path(other, "server.log")));
	results_free(other);
}

TEST(lost__a_file__results_are_incomplete)
{
	struct results *r = make("run");

	assert_false(results_are_incomplete(r));
	results_lost(r, "/dev/full", -ENOSPC);
	assert_true(results_are_incomplete(r));
	results_free(r);
}

static struct hist *make_hist(void)
{
	struct hist *h;

	assert_int_equal(hist_new(&h), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		hist_record(h, i * 1000);
	return h;
}

TEST(histogram__recorded__hgrm_in_microseconds)
{
	struct results *r = make("run");
	struct hist *h = make_hist();
	const char *text;

	assert_int_equal(results_histogram(r, "step-1", h, 0, 5), 0);
	text = read_file(results_path(r, "step-1.hgrm"));
	assert_non_null(strstr(text, "Value     Percentile TotalCount"));
	assert_non_null(strstr(text, "#[Max     =     1000.000, Total count    =         1000]"));
	hist_free(h);
	results_free(r);
}

TEST(histogram__recorded__hlog_of_one_interval)
{
	struct results *r = make("run");
	struct hist *h = make_hist();
	struct timespec ts;
	const char *text, *line;
	double start = 0;

	assert_int_equal(results_histogram(r, "step-1", h, 1000, 5), 0);
	text = read_file(results_path(r, "step-1.hlog"));
	assert_int_equal(strncmp(text, "#[Histogram log format version 1.3]\n", 36), 0);
	line = strstr(text, "#[StartTime: ");
	assert_non_null(line);
	assert_int_equal(sscanf(line, "#[StartTime: %lf", &start), 1);
	clock_gettime(CLOCK_REALTIME, &ts);
	/* The wall clock at the run's start, plus 1,000 s. */
	assert_true(start - 1000 <= (double)ts.tv_sec + 1 && start - 1000 > (double)ts.tv_sec - 60);
	line = strstr(text, "\n0.000,5.000,1.000,HISTF");
	assert_non_null(line);
	assert_ptr_equal(strchr(line + 1, '\n') + 1, text + strlen(text));
	hist_free(h);
	results_free(r);
}

TEST(histogram__disk_full__its_errno_and_no_file)
{
	struct results *r = make("run");
	struct hist *h = make_hist();

	for (disk_room = 0; disk_room < 2000; ) {
		ssize_t fits = disk_room;

		assert_int_equal(results_histogram(r, "step-1", h, 0, 5), -ENOSPC);
		assert_false(exists(results_path(r, "step-1.hgrm")));
		assert_false(exists(results_path(r, "step-1.hgrm.tmp")));
		assert_false(exists(results_path(r, "step-1.hlog")));
		assert_false(exists(results_path(r, "step-1.hlog.tmp")));
		disk_room = fits + 199;
	}
	disk_room = -1;
	assert_int_equal(results_error(r), -ENOSPC);
	hist_free(h);
	results_free(r);
}

/* Replaces each file that a run writes, and its temporary file, by a link to a file outside. */
TEST(files__a_link_in_the_place_of_each__refused_and_not_followed)
{
	static const char *const names[] = { "step-1.hgrm", "step-1.hgrm.tmp", "step-1.hlog", "step-1.hlog.tmp",
					     "run.json", "run.json.tmp" };
	struct results *r = make("run");
	struct hist *h = make_hist();
	json_t *o = json_object();

	write_file(below("victim"), "precious");
	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		const char *link = results_path(r, names[i]);
		bool is_json = strncmp(names[i], "run", 3) == 0;

		unlink(link);
		assert_int_equal(symlink("../victim", link), 0);
		assert_int_equal(results_histogram(r, "step-1", h, 0, 5), is_json ? 0 : -ELOOP);
		assert_int_equal(results_json(r, "run.json", o), is_json ? -ELOOP : 0);
		assert_string_equal(read_file(below("victim")), "precious");
		assert_int_equal(unlink(results_path(r, names[i])), 0);
	}
	assert_int_equal(results_error(r), -ELOOP);
	json_decref(o);
	hist_free(h);
	results_free(r);
}

TEST(histogram__nowhere_to_write__error)
{
	struct results *r = make("run");
	struct hist *h = make_hist();

	assert_int_equal(results_histogram(r, "missing/step", h, 0, 5), -ENOENT);
	assert_int_equal(mkdir(results_path(r, "taken.hlog"), 0777), 0);
	assert_int_equal(results_histogram(r, "taken", h, 0, 5), -EISDIR);
	assert_int_equal(symlink("/dev/full", results_path(r, "full.hgrm")), 0);
	assert_true(results_histogram(r, "full", h, 0, 5) < 0);
	assert_int_equal(symlink("/dev/full", results_path(r, "fuller.hlog")), 0);
	assert_true(results_histogram(r, "fuller", h, 0, 5) < 0);
	hist_free(h);
	results_free(r);
}

TEST(write_json__new_or_there_already__whole_and_no_temporary)
{
	json_t *o = json_pack("{s:i, s:f, s:n}", "a", 1, "b", 0.1, "c"), *back;

	write_file(below("run.json"), "old");
	assert_int_equal(results_write_json(below("run.json"), o), 0);
	assert_int_equal(results_write_json(below("other.json"), o), 0);
	assert_false(exists(below("run.json.tmp")));
	assert_false(exists(below("other.json.tmp")));
	back = json_load_file(below("run.json"), 0, NULL);
	assert_true(json_equal(o, back));
	json_decref(back);
	assert_non_null(strstr(read_file(below("other.json")), "0.1,"));	/* and not 0.10000000000000001 */
	assert_string_equal(strchr(read_file(below("run.json")), '}'), "}\n");
	json_decref(o);
}

TEST(write_json__unwritable__error_and_the_old_one_stays)
{
	json_t *o = json_pack("{s:i}", "a", 1);
	static char path[PATH_MAX + 2];

	assert_int_equal(results_write_json(below("missing/run.json"), o), -ENOENT);
	write_file(below("file"), "");
	assert_int_equal(results_write_json(below("file/run.json"), o), -ENOTDIR);
	write_file(below("run.json"), "old");
	disk_room = 3;
	assert_int_equal(results_write_json(below("run.json"), o), -ENOSPC);
	disk_room = -1;
	assert_string_equal(read_file(below("run.json")), "old");
	assert_false(exists(below("run.json.tmp")));
	assert_int_equal(symlink("/dev/full", below("run.json.tmp")), 0);
	assert_int_equal(results_write_json(below("run.json"), o), -ELOOP);
	assert_string_equal(read_file(below("run.json")), "old");
	/* A folder cannot be replaced by renaming. */
	assert_int_equal(mkdir(below("folder"), 0777), 0);
	assert_int_equal(results_write_json(below("folder"), o), -EISDIR);
	assert_false(exists(below("folder.tmp")));
	memset(path, 'p', PATH_MAX);
	assert_int_equal(results_write_json(path, o), -ENAMETOOLONG);
	json_decref(o);
}

static time_t clock_set_by_s;

/* Replaces libc's. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	long ret = syscall(SYS_clock_gettime, clock, ts);

	if (clock == CLOCK_REALTIME)
		ts->tv_sec += clock_set_by_s;
	return (int)ret;
}

TEST(time_text__clock_is_set_during_the_run__goes_on_from_the_start)
{
	struct results *r = make("run");
	char before[40], after[40];

	results_time_text(r, before, sizeof(before));
	for (int i = -1; i <= 1; i += 2) {
		clock_set_by_s = 3600 * i;
		results_time_text(r, after, sizeof(after));
		clock_set_by_s = 0;
		assert_true(strcmp(after, before) >= 0);
		/* The same hour, or the next one if it begins just then. */
		assert_true(strncmp(after, before, 13) == 0 || strncmp(after + 14, "00:", 3) == 0);
	}
	results_free(r);
}

TEST(time_text__now__iso_8601_with_milliseconds)
{
	struct timespec before, after;
	struct tm tm = { 0 };
	char text[40];
	int ms, n = 0;
	int64_t t;

	clock_gettime(CLOCK_REALTIME, &before);
	assert_ptr_equal(results_time_text(NULL, text, sizeof(text)), text);
	clock_gettime(CLOCK_REALTIME, &after);
	assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
				&tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &n), 7);
	assert_int_equal(strlen(text), 24);
	assert_int_equal(n, 24);
	tm.tm_year -= 1900;
	tm.tm_mon--;
	t = (int64_t)timegm(&tm) * 1000 + ms;
	assert_true(t >= (int64_t)before.tv_sec * 1000 + before.tv_nsec / 1000000);
	assert_true(t <= (int64_t)after.tv_sec * 1000 + after.tv_nsec / 1000000);
}

TEST_EACH(set_up, tear_down)
