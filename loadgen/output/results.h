/* SPDX-License-Identifier: BSD-2-Clause */
/* The results folder: results/<UTC time>-<name>/ with run.json, events.ndjson, histograms, server.log. It is opened
 * once; files are made in it as common/base/paths.h says, so that no symbolic link leads out of it.
 *
 * Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_RESULTS_H
#define RAMPART_LOADGEN_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct hist;
struct results;

/* Makes the folder (and its parents) where there is room for files of `bytes_needed`. 0 or -errno with a line in
 * `err`. */
int results_new(const char *parent, const char *name, uint64_t bytes_needed, struct results **out, char *err,
		size_t err_size) __attribute__((warn_unused_result));
void results_free(struct results *r);	/* NULL-safe */

const char *results_dir(const struct results *r);
const char *results_id(const struct results *r);	/* the folder's own name */

/* Path of a file in the folder; valid until the next call. */
const char *results_path(struct results *r, const char *file);

/* A file of the run could not be written, or not wholly: `error` is -errno. Logs a line for the first of them. */
void results_lost(struct results *r, const char *path, int error);
/* True after results_lost: a file of the run is missing or cut off. */
bool results_are_incomplete(const struct results *r);
/* The error of the first file that was lost, 0 if none was. */
int results_error(const struct results *r);

/* Nothing more is written, by a server either: removes events.ndjson and server.log if nothing could be written to
 * them, and the folder if there is no file in it. True if files are left. */
bool results_tidy(struct results *r);

/* Appends {"t": seconds since the start, "event": name, ...fields} to events.ndjson and flushes it; what cannot be
 * written is lost (results_lost). Takes over `fields` (may be NULL). */
void results_event(struct results *r, const char *name, json_t *fields);

/* Seconds since the folder was made: the `t` of events. */
double results_elapsed_s(const struct results *r);

/* Writes <file>.hgrm and <file>.hlog; one that cannot be written is lost (results_lost). 0 or -errno. */
int results_histogram(struct results *r, const char *file, const struct hist *h, double start_s,
		      double length_s) __attribute__((warn_unused_result));

/* Writes a JSON file of the folder; one that cannot be written is lost (results_lost). 0 or -errno. */
int results_json(struct results *r, const char *file, json_t *o) __attribute__((warn_unused_result));
/* Writes a JSON file elsewhere (path_write). 0 or -errno. */
int results_write_json(const char *path, json_t *o) __attribute__((warn_unused_result));

/* ISO 8601 UTC with milliseconds, into `text`: when the folder was made and what has passed since, whatever the
 * machine's clock was set to meanwhile; the clock's time if `r` is NULL. */
const char *results_time_text(const struct results *r, char *text, size_t size);

#endif
