/* SPDX-License-Identifier: BSD-2-Clause */
/* A run's folder, opened for reading: run.json, events.ndjson, histograms. All of it may be damaged or hostile.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_SOURCE_H
#define RAMPART_LOADGEN_REPORT_SOURCE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct hist;

/* The fields of a `sample` event that a report uses; NAN if the event lacks the number. */
struct source_sample {
	double t_s, clients, connected, connects;
};

/* Only the functions below change it. */
struct source {
	char dir[PATH_MAX];
	char id[256];			/* of the run; the folder's name if run.json has none */
	json_t *run;			/* an object */
	struct source_sample *samples;	/* the `sample` events, in their order */
	size_t n_samples;
	bool has_events;
	size_t damaged;			/* lines of events.ndjson, skipped; 0 without the file */
	struct hist *hist;		/* the result of source_histogram() */
	/* The first existing file other than run.json that could not be read, and why; unread_errno 0: none. */
	char unread[NAME_MAX + 1];
	int unread_errno;
};

/* Returns 0, or -errno with a line in `err` that names the folder and says whether a run there did not end, or there is
 * no run. */
int source_open(const char *dir, struct source **out, char *err, size_t err_size) __attribute__((warn_unused_result));
void source_close(struct source *s);	/* NULL-safe */

/* Writes the file name of a step's histogram (connect, response, service), without extension, to `out`; it never leads
 * out of the folder. False if the run has none. Older runs derive it from clients, repetition and size. */
bool source_histogram_name(const struct source *s, const json_t *step, const char *which, char *out, size_t size);

/* A point_hist_fn: the histogram of a step; NULL if it cannot be read. `source` is the struct source, which owns the
 * histogram; it is valid until the next call. */
const struct hist *source_histogram(void *source, const json_t *step, const char *which);

/* True if the run is an entry of a suite: the parent folder has suite.json. */
bool source_is_of_suite(const struct source *s);

/* True if the folder has a file of that plain name. */
bool source_has_file(const struct source *s, const char *name);

#endif
