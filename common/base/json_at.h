/* Reads JSON of any origin: a value is found by its dotted path, and what is missing or of another type has a value of
 * its own. Pure, but for the watch over memory. Threads: jansson's rules; a document belongs to one thread at a time. */
#ifndef RAMPART_COMMON_JSON_AT_H
#define RAMPART_COMMON_JSON_AT_H

#include <stdbool.h>

#include <jansson.h>

/* Makes jansson's memory come through here, so that json_memory_was_short knows of it. For main, before other threads. */
void json_memory_watch(void);
/* True if memory ran out for any document since the last call. Such a document lacks members without anybody being told,
 * for jansson's setters do nothing with a value that is NULL. Any thread. */
bool json_memory_was_short(void);

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
