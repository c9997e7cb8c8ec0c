/* SPDX-License-Identifier: BSD-2-Clause */
/* A run's folder. See source.h. */
#include "loadgen/report/input/source.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hist/hist.h"
#include "common/hist/hist_io.h"
#include "common/base/json_at.h"
#include "common/base/paths.h"

/* schema_version of run.json: the newest, and the oldest that can be read. Fields that an older run lacks are null. */
#define SCHEMA_VERSION 2
#define SCHEMA_VERSION_OLDEST 1
/* run.json takes about 10 KB for each load host and step (docs/cluster.md): 72 MB for 1,024 hosts and 7 steps. */
static const struct json_limit run_limit = { 128u << 20, 640u << 20 };
#define EVENT_BYTES_MAX 65536
#define EVENT_MEMORY_MAX (1u << 20)
/* Enough for several days; the samples take 16 MB of memory. */
#define SAMPLES_MAX 500000
#define NAME_BYTES_MAX 128

/* How far a run came, as its events show. */
struct progress {
	double t_s, clients, connected;
	char phase[40], stop_reason[40];
};

static bool is_plain_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < NAME_BYTES_MAX && name[0] != '.' && !strchr(name, '/') && !strstr(name, "..");
}

/* The path of a file of the folder. False if it is too long. */
static bool path_of(const struct source *s, const char *name, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/%s", s->dir, name) < PATH_MAX;
}

/* Opens a file for reading. NULL, with errno set, if it cannot be opened or is not a regular file (EINVAL). */
static FILE *open_file(const struct source *s, const char *name)
{
	char path[PATH_MAX];
	int fd = path_of(s, name, path) ? path_open_file(path) : -ENAMETOOLONG;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	else if (!f)
		errno = -fd;
	return f;
}

static void note_unread(struct source *s, const char *name, int why)
{
	if (s->unread_errno || why == ENOENT)
		return;
	snprintf(s->unread, sizeof(s->unread), "%s", name);
	s->unread_errno = why;
}

bool source_has_file(const struct source *s, const char *name)
{
	FILE *f = is_plain_name(name) ? open_file(s, name) : NULL;

	if (f)
		fclose(f);
	return f != NULL;
}

bool source_is_of_suite(const struct source *s)
{
	char path[PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof(path), "%s/../suite.json", s->dir);
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void keep_text(char *to, size_t size, const char *from)
{
	if (from)
		snprintf(to, size, "%s", from);
}

static void keep_number(double *to, const json_t *event, const char *name)
{
	double v = json_number_at(event, name);

	if (isfinite(v))
		*to = v;
}

/* Keeps only four numbers of the event, which can have thousands of members. */
static void keep_sample(struct source *s, const json_t *event)
{
	struct source_sample *grown = s->samples;

	if (s->n_samples == SAMPLES_MAX)
		return;
	/* The array grows by doubling: its capacity is the length rounded up to a power of two. */
	if ((s->n_samples & (s->n_samples - 1)) == 0)
		grown = reallocarray(s->samples, s->n_samples ? 2 * s->n_samples : 1, sizeof(*grown));
	if (!grown)
		return;
	s->samples = grown;
	grown[s->n_samples++] = (struct source_sample){ .t_s = json_number_at(event, "t"),
							.clients = json_number_at(event, "clients"),
		.connected = json_number_at(event, "connected"), .connects = json_number_at(event, "connects") };
}

static void on_event(struct source *s, struct progress *p, json_t *event)
{
	const char *name = json_text_at(event, "event");

	keep_number(&p->t_s, event, "t");
	keep_number(&p->clients, event, "clients");
	keep_number(&p->connected, event, "connected");
	keep_text(p->phase, sizeof(p->phase), json_text_at(event, "phase"));
	keep_text(p->stop_reason, sizeof(p->stop_reason), json_text_at(event, "stop_reason"));
	if (strcmp(name, "sample") == 0)
		keep_sample(s, event);
}

/* Handles an event; a line that is cut off, too long, or no event counts as damaged. */
static void on_line(struct source *s, struct progress *p, const char *line, bool whole)
{
	static const struct json_limit limit = { EVENT_BYTES_MAX, EVENT_MEMORY_MAX };
	json_t *event = whole ? json_read(line, strlen(line), 0, &limit, NULL, 0) : NULL;

	if (json_text_at(event, "event") && isfinite(json_number_at(event, "t")))
		on_event(s, p, event);
	else
		s->damaged++;
	json_decref(event);
}

static int read_events(struct source *s, struct progress *p)
{
	char *line = malloc(EVENT_BYTES_MAX);
	FILE *f = open_file(s, "events.ndjson");
	bool in_long_line = false;

	s->has_events = f != NULL;
	if (!f)
		note_unread(s, "events.ndjson", errno);
	while (line && f && fgets(line, EVENT_BYTES_MAX, f)) {
		bool ends = strchr(line, '\n') != NULL;

		if (!in_long_line)
			on_line(s, p, line, ends);
		in_long_line = !ends;
	}
	if (f && ferror(f))
		note_unread(s, "events.ndjson", EIO);
	if (f)
		fclose(f);
	free(line);
	return line ? 0 : -ENOMEM;
}

static void describe_end(const struct source *s, const struct progress *p, char *err, size_t err_size)
{
	char step[128] = "before its first step";

	if (isfinite(p->clients))
		snprintf(step, sizeof(step), "at %.0f clients (%.0f connected)", p->clients,
			 isfinite(p->connected) ? p->connected : 0);
	if (!s->has_events)
		snprintf(err, err_size, "%s: no run.json and no events.ndjson in it: not the folder of a run", s->dir);
	else if (!isfinite(p->t_s))
		snprintf(err, err_size,
			 "%s: the run did not end: no run.json, and nothing can be read in events.ndjson", s->dir);
	else if (p->stop_reason[0])
		snprintf(err, err_size,
			 "%s: no run.json, though the run ended (%s, %s); it could not be written, or was removed",
			 s->dir, p->stop_reason, step);
	else
		snprintf(err, err_size,
			 "%s: no run.json, so the run goes on or was cut off; after %.1f s it was %s%s%s "
			 "(events.ndjson)", s->dir, p->t_s, step, p->phase[0] ? ", in the phase " : "", p->phase);
}

static int read_run(struct source *s, const struct progress *p, char *err, size_t err_size)
{
	char path[PATH_MAX], why[256] = "";
	int ret = path_of(s, "run.json", path) ? json_read_file(path, 0, &run_limit, &s->run, why, sizeof(why)) :
		-ENAMETOOLONG;
	double version;

	if (ret == -ENOENT) {
		describe_end(s, p, err, err_size);
		return ret;
	}
	if (ret == -ENOMEM)
		return ret;
	if (ret || !json_is_object(s->run)) {
		snprintf(err, err_size, "%s/run.json: %s", s->dir, !ret ? "not an object" : *why ? why :
			 strerror(-ret));
		return -EINVAL;
	}
	version = json_number_at(s->run, "schema_version");
	if (version >= SCHEMA_VERSION_OLDEST && version <= SCHEMA_VERSION && version == floor(version))
		return 0;
	if (isfinite(version))
		snprintf(err, err_size, "%s/run.json: schema_version is %g, this program reads %d to %d", s->dir,
			 version, SCHEMA_VERSION_OLDEST, SCHEMA_VERSION);
	else
		snprintf(err, err_size, "%s/run.json: no schema_version: not of a run", s->dir);
	return -EINVAL;
}

static void take_id(struct source *s)
{
	const char *id = json_text_at(s->run, "run.id");
	char path[PATH_MAX];
	const char *slash;

	if (!id && realpath(s->dir, path)) {
		slash = strrchr(path, '/');
		id = slash && slash[1] ? slash + 1 : path;
	}
	snprintf(s->id, sizeof(s->id), "%.255s", id ? id : s->dir);
}

static int check_dir(const struct source *s, char *err, size_t err_size)
{
	struct stat st;

	if (stat(s->dir, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	snprintf(err, err_size, "%s: %s", s->dir, strerror(errno ? errno : ENOTDIR));
	return -ENOTDIR;
}

int source_open(const char *dir, struct source **out, char *err, size_t err_size)
{
	struct progress progress = { .t_s = NAN, .clients = NAN, .connected = NAN };
	struct source *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;

	if (!s || hist_new(&s->hist))
		goto out;
	errno = 0;
	snprintf(s->dir, sizeof(s->dir), "%s", dir);
	ret = check_dir(s, err, err_size);
	if (!ret)
		ret = read_events(s, &progress);
	if (!ret)
		ret = read_run(s, &progress, err, err_size);
	if (ret)
		goto out;
	take_id(s);
	*out = s;
	return 0;
out:
	if (ret == -ENOMEM)
		snprintf(err, err_size, "out of memory");
	source_close(s);
	return ret;
}

void source_close(struct source *s)
{
	if (!s)
		return;
	hist_free(s->hist);
	free(s->samples);
	json_decref(s->run);
	free(s);
}

/* Derives the histogram's name for older runs, whose run.json does not have it. */
static bool older_name(const struct source *s, const json_t *step, const char *which, char *out, size_t size)
{
	double clients = json_number_at(step, "target_clients"), repetition = json_number_at(step, "repetition");
	double bytes = json_number_at(step, "message_bytes");
	bool several = json_array_size(json_at(s->run, "config.message_sizes")) > 1;
	char prefix[32] = "";

	if (!(clients >= 0 && clients < UINT_MAX) || !(repetition >= 0 && repetition < UINT_MAX) ||
	    strcmp(which, "service") == 0)
		return false;
	if (several && bytes >= 0 && bytes < 1e15)
		snprintf(prefix, sizeof(prefix), "%.0fB-", bytes);
	return snprintf(out, size, "step-%05u-%u-%s%s", (unsigned)clients, (unsigned)repetition, prefix, which) <
	       (int)size;
}

bool source_histogram_name(const struct source *s, const json_t *step, const char *which, char *out, size_t size)
{
	const json_t *names = json_at(step, "histograms");
	const char *name = json_text_at(names, which);

	if (!names)
		return older_name(s, step, which, out, size);
	if (!name || !is_plain_name(name))
		return false;
	return snprintf(out, size, "%s", name) < (int)size;
}

const struct hist *source_histogram(void *source, const json_t *step, const char *which)
{
	char name[NAME_BYTES_MAX], file[NAME_BYTES_MAX + 8];
	struct source *s = source;
	FILE *f;
	int ret;

	if (!source_histogram_name(s, step, which, name, sizeof(name)))
		return NULL;
	snprintf(file, sizeof(file), "%s.hlog", name);
	f = open_file(s, file);
	if (!f) {
		note_unread(s, file, errno);
		return NULL;
	}
	hist_reset(s->hist);
	ret = hist_read_hlog(f, s->hist);
	fclose(f);
	if (ret)
		note_unread(s, file, -ret);
	return ret ? NULL : s->hist;
}
