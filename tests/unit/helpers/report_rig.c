/* See report_rig.h. */
#include "tests/unit/helpers/report_rig.h"

#include <ctype.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hist/hist.h"
#include "common/hist/hist_io.h"
#include "tests/unit/helpers/unit.h"

#define COLUMNS 4000		/* no line is broken, so that sentences are whole */

static char dir[64], err[1024];
static char *text, *warnings;
static enum report_result result;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int report_rig_set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/rampart-test-XXXXXX");
	return mkdtemp(dir) && chdir(dir) == 0 && mkdir(REPORT_RIG_DIR, 0700) == 0 ? 0 : -1;
}

int report_rig_tear_down(void **state)
{
	(void)state;
	free(text);
	free(warnings);
	text = warnings = NULL;
	return chdir("/") || nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) ? -1 : 0;
}

static FILE *open_in(const char *folder, const char *name)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	mkdir(folder, 0700);
	f = fopen(path, "w");
	assert_non_null(f);
	return f;
}

void report_rig_file(const char *folder, const char *name, const char *contents)
{
	FILE *f = open_in(folder, name);

	assert_true(fputs(contents, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void report_rig_run(const char *folder, const json_t *run)
{
	FILE *f = open_in(folder, "run.json");

	assert_int_equal(json_dumpf(run, f, 0), 0);
	assert_int_equal(fclose(f), 0);
}

void report_rig_histogram(const char *folder, const char *name, unsigned count, uint64_t unit_ns)
{
	char file[128];
	struct hist *h;
	FILE *f;

	assert_int_equal(hist_new(&h), 0);
	for (unsigned i = 1; i <= count; i++)
		hist_record(h, i * unit_ns);
	snprintf(file, sizeof(file), "%s.hlog", name);
	f = open_in(folder, file);
	assert_int_equal(hist_write_hlog_header(0, f), 0);
	assert_int_equal(hist_write_hlog_interval(h, NULL, 0, 1, f), 0);
	assert_int_equal(fclose(f), 0);
	hist_free(h);
}

static void join_lines(char *s)
{
	char *to = s;

	for (; *s; s++)
		if (!isspace((unsigned char)*s))
			*to++ = *s;
		else if (!isspace((unsigned char)s[1]))
			*to++ = ' ';
	*to = '\0';
}

const char *report_rig_text(const struct report_options *o)
{
	struct report_options with = *o;
	size_t size, warnings_size;
	FILE *out, *warn;

	free(text);
	free(warnings);
	out = open_memstream(&text, &size);
	warn = open_memstream(&warnings, &warnings_size);
	assert_non_null(out);
	assert_non_null(warn);
	with.out = out;
	with.columns = COLUMNS;
	err[0] = '\0';
	result = report_make(&with, warn, err, sizeof(err));
	fclose(out);
	fclose(warn);
	join_lines(text);
	return text;
}

enum report_result report_rig_result(void)
{
	return result;
}

const char *report_rig_error(void)
{
	return err;
}

const char *report_rig_warnings(void)
{
	return warnings;
}

static const char *report_on(const json_t *run)
{
	const struct report_options o = { .dir = REPORT_RIG_DIR,
					  .headroom = REPORT_HEADROOM,
					  .min_effect = BASELINE_MIN_EFFECT };

	report_rig_run(REPORT_RIG_DIR, run);
	report_rig_text(&o);
	if (result != REPORT_MADE)
		fail_msg("%d: %s", (int)result, err);
	return text;
}

void report_rig_expect(const json_t *run, const char *sentence)
{
	char begin[16];
	const char *like;

	if (strstr(report_on(run), sentence))
		return;
	/* What is printed of a message is cut. */
	snprintf(begin, sizeof(begin), "%s", sentence);
	like = strstr(text, begin);
	fail_msg("not there: %s\nbut: %.400s", sentence, like ? like : text);
}

void report_rig_expect_not(const json_t *run, const char *sentence)
{
	if (strstr(report_on(run), sentence))
		fail_msg("there: %s", sentence);
}
