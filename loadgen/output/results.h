/* SPDX-License-Identifier: BSD-2-Clause */
/* The results folder: results/<UTC time>-<name>/ with run.json, events.ndjson, histograms, server.log. It is opened
 * once, and files are made in it with the functions of common/base/paths.h, so that no symbolic link leads out of it.
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

/* Makes the folder (and its parents) if there is room for `bytes_needed` bytes of files. Returns 0, or -errno with a
 * line in `err`. */
int results_new(const char *parent, const char *name, uint64_t bytes_needed, struct results **out, char *err,
		size_t err_size) __attribute__((warn_unused_result));
void results_free(struct results *r);	/* NULL-safe */

const char *results_dir(const struct results *r);
const char *results_id(const struct results *r);	/* the folder's own name */

/* Path of a file in the folder; valid until the next call. */
const char *results_path(struct results *r, const char *file);

/* Records that a file of the run could not be written, or not completely; `error` is -errno. Logs only the first. */
void results_lost(struct results *r, const char *path, int error);
/* True after results_lost: a file of the run is missing or cut off. */
bool results_are_incomplete(const struct results *r);
/* The error of the first file that was lost, 0 if none was. */
int results_error(const struct results *r);

/* Call when neither this program nor a server will write any more: removes events.ndjson and server.log if they are
 * empty, and then the folder if no file is left in it. True if files are left. */
bool results_tidy(struct results *r);

/* Appends {"t": seconds since the start, "event": name, ...fields} to events.ndjson and flushes it; an event that
 * cannot be written is lost (results_lost). Takes over `fields` (may be NULL). */
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
/* Writes the JSON for --json to the file `where`, to stdout in ASCII if that is "-", nowhere if it is NULL. Returns 0,
 * or -errno after logging it. */
int results_copy_json(const char *where, json_t *o) __attribute__((warn_unused_result));

/* Writes the time in ISO 8601 UTC with milliseconds to `text`: the time when the folder was made plus the time elapsed
 * since, so that later changes of the machine's clock do not matter. If `r` is NULL, the clock's time. */
const char *results_time_text(const struct results *r, char *text, size_t size);

#endif
