/* Reading JSON that may be anything: a value by its dotted path, and what to take where there is none. Pure. */
#ifndef RAMPART_COMMON_JSON_AT_H
#define RAMPART_COMMON_JSON_AT_H

#include <jansson.h>

/* The value at a path of names such as "resources.server.rss_bytes", borrowed; NULL where there is none. A name has at
 * most 63 bytes. `o` may be NULL or of any type. */
json_t *json_at(const json_t *o, const char *path);

/* The same as a number; NAN where there is none or it is no number. */
double json_number_at(const json_t *o, const char *path);

/* The same as a text, borrowed; NULL where there is none or it is no text. */
const char *json_text_at(const json_t *o, const char *path);

/* NAN and infinite values as null, since JSON has no others. NULL when out of memory. */
json_t *json_number(double v);
/* The same, rounded to a whole number. */
json_t *json_whole(double v);

#endif
