/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads JSON of any origin: it is parsed within limits, a value is found by its dotted path, and what is missing or of another type
 * has a value of its own.
 *
 * Few bytes of text can become many of memory ("{}," is 3 bytes, and 260 once it is parsed), so both are limited, and the limits
 * are checked before anything is parsed. No other file may call jansson's json_load functions (scripts/check-structure).
 *
 * Pure, but for the watch over memory and json_read_file. Threads: jansson's rules; a document belongs to one thread at a time. */
#ifndef RAMPART_COMMON_JSON_AT_H
#define RAMPART_COMMON_JSON_AT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Makes jansson's memory come through here, so that json_memory_was_short knows of it. For main, before other threads. */
void json_memory_watch(void);
/* True if memory ran out for any document since the last call. Such a document lacks members without anybody being told,
 * for jansson's setters do nothing with a value that is NULL. Any thread. */
bool json_memory_was_short(void);

/* The most that a document may take. */
struct json_limit {
	size_t text_bytes;
	size_t memory_bytes;	/* as json_text_memory estimates it; SIZE_MAX: the caller has checked it */
};

/* How much memory the document of this text takes, text included: an estimate from what jansson and malloc take for each value. It is
 * never too low, and at most three times too high. The text need not be valid JSON. */
size_t json_text_memory(const char *text, size_t bytes);
/* The same for a document that was read. NULL takes nothing. */
size_t json_memory(const json_t *document);

/* Parses a text; `flags` are jansson's. The caller owns the reference. NULL with a line in `err` (which may be NULL if err_size is 0):
 * the text is over a limit, or not JSON. The line may repeat bytes of the text. */
json_t *json_read(const char *text, size_t bytes, size_t flags, const struct json_limit *limit, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The same for a regular file (path_read). 0, or with a line in `err`, without the path: -EINVAL if it is over a limit, not JSON or
 * not a regular file; -ENOMEM; or the -errno of open(2) or read(2). */
int json_read_file(const char *path, size_t flags, const struct json_limit *limit, json_t **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The value at a path of names such as "resources.server.rss_bytes"; NULL if there is none, or if a name on the way has
 * more than 63 bytes. The reference is borrowed from `o`, which may be NULL or of any type. */
json_t *json_at(const json_t *o, const char *path);

/* The number at the path; NAN if there is no value or it is no number. */
double json_number_at(const json_t *o, const char *path);

/* The string at the path, borrowed from `o`; NULL if there is no value or it is no string. */
const char *json_text_at(const json_t *o, const char *path);

/* A new real number; null for NAN and infinity, which JSON does not have. NULL if memory runs out. */
json_t *json_number(double v);
/* A new whole number, `v` rounded; null for NAN and for what 64 bits do not hold. NULL if memory runs out. */
json_t *json_whole(double v);

#endif
