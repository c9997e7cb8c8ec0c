/* SPDX-License-Identifier: BSD-2-Clause */
/* The results folder. See results.h. */
#include "loadgen/output/results.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/hist/hist_io.h"
#include "common/base/log.h"
#include "common/base/paths.h"

struct results {
	char dir[PATH_MAX - 128];
	char path[PATH_MAX];
	int folder, events;	/* descriptors */
	off_t events_bytes;	/* size of the whole lines in events.ndjson */
	uint64_t start_ns;
	double start_unix_s;
	int error;		/* error of the first file that was lost; 0: none */
};

static double clock_unix_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

const char *results_time_text(const struct results *r, char *text, size_t size)
{
	double unix_s = r ? r->start_unix_s + results_elapsed_s(r) : clock_unix_s();
	time_t whole = (time_t)unix_s;
	struct tm tm;
	char date[32];

	gmtime_r(&whole, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, size, "%s.%03dZ", date, (int)((unix_s - (double)whole) * 1000));
	return text;
}

/* Makes a new folder, with a suffix if another run started in the same second. */
static int make_dir(struct results *r, int parent, const char *path, const char *name)
{
	char date[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	for (int i = 1; i < 100; i++) {
		char suffix[8] = "";

		if (i > 1)
			snprintf(suffix, sizeof(suffix), "-%d", i);
		if (snprintf(r->dir, sizeof(r->dir), "%s/%s-%s%s", path, date, name, suffix) >=
		    (int)sizeof(r->dir))
			return -ENAMETOOLONG;
		if (mkdirat(parent, results_id(r), 0777) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Makes events.ndjson, and tries to write to it, because a quota may be used up although the disk has room. */
static int begin_events(struct results *r)
{
	int ret;

	r->events = path_make_file(r->folder, "events.ndjson");
	if (r->events < 0)
		return r->events;
	ret = path_put(r->events, "\n", 1);
	if (ftruncate(r->events, 0) && !ret)
		ret = -errno;
	if (ret) {
		unlinkat(r->folder, "events.ndjson", 0);
		close(r->events);
	}
	return ret;
}

/* Opens the new folder and creates its events.ndjson. */
static int open_dir(struct results *r, int parent)
{
	int ret;

	r->folder = path_make_folder(parent, results_id(r));
	if (r->folder < 0)
		return r->folder;
	ret = begin_events(r);
	if (ret)
		close(r->folder);
	return ret;
}

/* Checks the free space. A file system that does not report its size (some network ones) is assumed to have room. */
static int check_room(int parent, uint64_t bytes_needed, char *why, size_t why_size)
{
	struct statvfs fs;
	double free_bytes;

	if (fstatvfs(parent, &fs) || fs.f_blocks == 0)
		return 0;
	free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
	if (free_bytes >= (double)bytes_needed)
		return 0;
	snprintf(why, why_size, "%.2f MB are free there, and the run's files need about %.2f MB", free_bytes / 1e6,
		 (double)bytes_needed / 1e6);
	return -ENOSPC;
}

static int make(struct results *r, const char *parent, const char *name, uint64_t bytes_needed, char *why,
		size_t why_size)
{
	int ret = path_make_dirs(parent), fd;

	if (ret)
		return ret;
	fd = path_open_folder(parent);
	if (fd < 0)
		return fd;
	ret = check_room(fd, bytes_needed, why, why_size);
	if (!ret)
		ret = make_dir(r, fd, parent, name);
	if (!ret) {
		ret = open_dir(r, fd);
		if (ret)
			unlinkat(fd, results_id(r), AT_REMOVEDIR);
	}
	close(fd);
	return ret;
}

int results_new(const char *parent, const char *name, uint64_t bytes_needed, struct results **out, char *err,
		size_t err_size)
{
	struct results *r = calloc(1, sizeof(*r));
	char why[160] = "";
	int ret = r ? make(r, parent, name, bytes_needed, why, sizeof(why)) : -ENOMEM;

	if (ret) {
		snprintf(err, err_size, "cannot make a results folder in %s: %s%s%s; name another with --output",
			 parent, path_error(ret), why[0] ? ": " : "", why);
		free(r);
		return ret;
	}
	r->start_unix_s = clock_unix_s();
	r->start_ns = clock_now_ns();
	*out = r;
	return 0;
}

void results_free(struct results *r)
{
	if (!r)
		return;
	close(r->events);
	close(r->folder);
	free(r);
}

const char *results_dir(const struct results *r)
{
	return r->dir;
}

const char *results_id(const struct results *r)
{
	return strrchr(r->dir, '/') + 1;
}

const char *results_path(struct results *r, const char *file)
{
	snprintf(r->path, sizeof(r->path), "%s/%s", r->dir, file);
	return r->path;
}

double results_elapsed_s(const struct results *r)
{
	return (double)(clock_now_ns() - r->start_ns) / 1e9;
}

void results_lost(struct results *r, const char *path, int error)
{
	if (!r->error)
		log_error("cannot write %s: %s; the run's files are incomplete", path, path_error(error));
	if (!r->error)
		r->error = error;
}

bool results_are_incomplete(const struct results *r)
{
	return r->error != 0;
}

int results_error(const struct results *r)
{
	return r->error;
}

static void remove_empty(const struct results *r, const char *file)
{
	struct stat st;

	if (fstatat(r->folder, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		unlinkat(r->folder, file, 0);
}

bool results_tidy(struct results *r)
{
	remove_empty(r, "events.ndjson");
	remove_empty(r, "server.log");
	return rmdir(r->dir) != 0;
}

/* Appends an event. If the line cannot be written completely, the part written is removed. */
static int put_event(struct results *r, const json_t *o)
{
	char *line = json_dumps(o, JSON_COMPACT);
	size_t n = line ? strlen(line) : 0;
	int ret = -ENOMEM;

	if (line) {
		line[n] = '\n'; /* replaces the final zero */
		ret = path_put(r->events, line, n + 1);
	}
	if (!ret)
		r->events_bytes += (off_t)n + 1;
	else if (ftruncate(r->events, r->events_bytes))
		ret = -errno;
	free(line);
	return ret;
}

void results_event(struct results *r, const char *name, json_t *fields)
{
	json_t *o = json_pack("{s:f, s:s}", "t", results_elapsed_s(r), "event", name);
	int ret;

	if (fields)
		json_object_update(o, fields);
	json_decref(fields);
	ret = put_event(r, o);
	if (ret)
		results_lost(r, results_path(r, "events.ndjson"), ret);
	json_decref(o);
}

/* A histogram, and when it was recorded. */
struct recorded {
	const struct hist *h;
	double start_unix_s, length_s;
};

static int write_hgrm(FILE *out, const void *recorded)
{
	return hist_write_hgrm(((const struct recorded *)recorded)->h, 1000., out);
}

static int write_hlog(FILE *out, const void *recorded)
{
	const struct recorded *rec = recorded;
	int ret = hist_write_hlog_header(rec->start_unix_s, out);

	return ret ? ret : hist_write_hlog_interval(rec->h, NULL, 0., rec->length_s, out);
}

/* Writes a file of the folder; if that fails, the file is lost (results_lost). */
static int write_file(struct results *r, const char *file, path_write_fn *write, const void *arg)
{
	int ret = path_write_in(r->folder, file, write, arg);

	if (ret)
		results_lost(r, results_path(r, file), ret);
	return ret;
}

int results_histogram(struct results *r, const char *file, const struct hist *h, double start_s,
		      double length_s)
{
	struct recorded rec = { .h = h, .start_unix_s = r->start_unix_s + start_s, .length_s = length_s };
	char name[96];
	int ret;

	snprintf(name, sizeof(name), "%s.hgrm", file);
	ret = write_file(r, name, write_hgrm, &rec);
	snprintf(name, sizeof(name), "%s.hlog", file);
	return ret ? ret : write_file(r, name, write_hlog, &rec);
}

static int dump(FILE *out, const void *o)
{
	return json_dumpf(o, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) || fputc('\n', out) == EOF ? -EIO : 0;
}

int results_json(struct results *r, const char *file, json_t *o)
{
	return write_file(r, file, dump, o);
}

int results_write_json(const char *path, json_t *o)
{
	return path_write(path, dump, o);
}

int results_copy_json(const char *where, json_t *o)
{
	bool to_stdout = where && strcmp(where, "-") == 0;
	int ret = 0;

	errno = 0;
	if (where && !to_stdout)
		ret = results_write_json(where, o);
	else if (to_stdout && (json_dumpf(o, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII) ||
			       printf("\n") < 0 || fflush(stdout)))
		ret = errno ? -errno : -EIO;
	if (ret)
		log_error("cannot write --json %s: %s", where, path_error(ret));
	return ret;
}
