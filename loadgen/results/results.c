/* The results folder. See results.h. */
#include "loadgen/results/results.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/hist/hist_io.h"
#include "common/base/log.h"
#include "common/base/paths.h"

struct results {
	char dir[PATH_MAX - 128];
	char path[PATH_MAX];
	FILE *events;
	uint64_t start_ns;
	double start_unix_s;
	bool incomplete;
};

const char *results_time_text(char *text, size_t size)
{
	struct timespec ts;
	struct tm tm;
	char date[32];

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, size, "%s.%03ldZ", date, ts.tv_nsec / 1000000);
	return text;
}

/* Makes a folder of its own even if another run started in the same second. */
static int make_dir(struct results *r, const char *parent, const char *name)
{
	char date[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	for (int i = 1; i < 100; i++) {
		char suffix[8] = "";

		if (i > 1)
			snprintf(suffix, sizeof(suffix), "-%d", i);
		if (snprintf(r->dir, sizeof(r->dir), "%s/%s-%s%s", parent, date, name, suffix) >=
		    (int)sizeof(r->dir))
			return -ENAMETOOLONG;
		if (mkdir(r->dir, 0777) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int results_new(const char *parent, const char *name, struct results **out, char *err, size_t err_size)
{
	struct results *r = calloc(1, sizeof(*r));
	struct timespec ts;
	int ret = -ENOMEM;

	if (r)
		ret = path_make_dirs(parent);
	if (!ret)
		ret = make_dir(r, parent, name);
	if (!ret) {
		r->events = fopen(results_path(r, "events.ndjson"), "w");
		if (!r->events)
			ret = -errno;
	}
	if (ret) {
		snprintf(err, err_size, "cannot make a results folder in %s: %s; name another with --output",
			 parent, strerror(-ret));
		free(r);
		return ret;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	r->start_unix_s = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
	r->start_ns = clock_now_ns();
	*out = r;
	return 0;
}

void results_free(struct results *r)
{
	if (!r)
		return;
	fclose(r->events);
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
	if (!r->incomplete)
		log_error("cannot write %s: %s; the run's files are incomplete", path, strerror(-error));
	r->incomplete = true;
}

bool results_are_incomplete(const struct results *r)
{
	return r->incomplete;
}

void results_event(struct results *r, const char *name, json_t *fields)
{
	json_t *o = json_pack("{s:f, s:s}", "t", results_elapsed_s(r), "event", name);

	if (fields)
		json_object_update(o, fields);
	json_decref(fields);
	errno = 0;
	if (json_dumpf(o, r->events, JSON_COMPACT) || fputc('\n', r->events) == EOF || fflush(r->events))
		results_lost(r, results_path(r, "events.ndjson"), errno ? -errno : -EIO);
	json_decref(o);
}

static int close_checked(FILE *f, int ret)
{
	if (fclose(f) && !ret)
		ret = -errno;
	return ret;
}

static int write_hgrm(const char *path, const struct hist *h)
{
	FILE *f = fopen(path, "w");

	return f ? close_checked(f, hist_write_hgrm(h, 1000., f)) : -errno;
}

static int write_hlog(const char *path, const struct hist *h, double start_unix_s, double length_s)
{
	FILE *f = fopen(path, "w");
	int ret;

	if (!f)
		return -errno;
	ret = hist_write_hlog_header(start_unix_s, f);
	if (!ret)
		ret = hist_write_hlog_interval(h, NULL, 0., length_s, f);
	return close_checked(f, ret);
}

int results_histogram(struct results *r, const char *file, const struct hist *h, double start_s,
		      double length_s)
{
	char name[96];
	int ret;

	snprintf(name, sizeof(name), "%s.hgrm", file);
	ret = write_hgrm(results_path(r, name), h);
	if (!ret) {
		snprintf(name, sizeof(name), "%s.hlog", file);
		ret = write_hlog(results_path(r, name), h, r->start_unix_s + start_s, length_s);
	}
	if (ret)
		results_lost(r, results_path(r, name), ret);
	return ret;
}

static int dump(FILE *out, const void *o)
{
	return json_dumpf(o, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) || fputc('\n', out) == EOF ? -EIO : 0;
}

int results_write_json(const char *path, json_t *o)
{
	return path_write(path, dump, o);
}
