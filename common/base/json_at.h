/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads JSON of any origin: parses it within limits, and finds values by dotted path. A value that is missing or of
 * another type reads as NULL or NAN.
 *
 * A few bytes of text can take much memory ("{}," is 3 bytes, and 260 once parsed), so both are limited, and the limits
 * are checked before anything is parsed. No other file may call jansson's json_load functions
 * (scripts/check-structure).
 *
 * Pure, except json_read_file and the memory watch. Threads: jansson's rules; one thread per document at a time. */
#ifndef RAMPART_COMMON_JSON_AT_H
#define RAMPART_COMMON_JSON_AT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Makes jansson allocate through this file, for json_memory_was_short. Call in main, before other threads. */
void json_memory_watch(void);
/* True if memory ran out for any document since the last call. Such a document lacks members without any other sign,
 * because jansson's setters ignore a value that is NULL. Any thread. */
bool json_memory_was_short(void);

/* Limits for a document. */
struct json_limit {
	size_t text_bytes;
	size_t memory_bytes;	/* as estimated by json_text_memory; SIZE_MAX: the caller has checked it */
};

/* Estimates the memory of this text's document, text included, from what jansson and malloc take for each value. The
 * estimate is never too low, and at most three times too high. The text need not be valid JSON. */
size_t json_text_memory(const char *text, size_t bytes);
/* The same for a parsed document. NULL takes no memory. */
size_t json_memory(const json_t *document);

/* Parses a text; `flags` are jansson's. The caller owns the reference. NULL, with a line in `err` (which may be NULL if
 * err_size is 0), if the text exceeds a limit or is not JSON, or if memory runs out. The line may repeat bytes of the
 * text. If memory runs out within a number of 16 characters or more, an assertion of jansson 2.14 ends the program. */
json_t *json_read(const char *text, size_t bytes, size_t flags, const struct json_limit *limit, char *err,
		  size_t err_size)
	__attribute__((warn_unused_result));

/* The same for a regular file (path_read). Returns 0, or with a line in `err`, without the path: -EINVAL if it exceeds
 * a limit, is not JSON or not a regular file; -ENOMEM; or the -errno of open(2) or read(2). */
int json_read_file(const char *path, size_t flags, const struct json_limit *limit, json_t **out, char *err,
		   size_t err_size)
	__attribute__((warn_unused_result));

/* The value at a path of names such as "resources.server.rss_bytes"; NULL if there is none, or if a name on the path,
 * except the last, has more than 63 bytes. The reference is borrowed from `o`, which may be NULL or of any type. */
json_t *json_at(const json_t *o, const char *path);

/* The number at the path; NAN if there is no value or it is not a number. */
double json_number_at(const json_t *o, const char *path);

/* The string at the path, borrowed from `o`; NULL if there is no value or it is not a string. */
const char *json_text_at(const json_t *o, const char *path);

/* A new real number; null for NAN and infinity, which JSON cannot express. NULL if memory runs out. */
json_t *json_number(double v);
/* A new whole number, `v` rounded; null for NAN and for values beyond 64 bits. NULL if memory runs out. */
json_t *json_whole(double v);
/* json_whole if `v` is whole, because JSON_REAL_PRECISION would round large numbers; else json_number. */
json_t *json_figure(double v);

#endif
