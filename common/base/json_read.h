/* Reads JSON from files and from other hosts. Few bytes of text can become many of memory ("{}," is 3 bytes, and 260 once it is read),
 * so both are limited, and the limits are checked before anything is parsed. No other file may call jansson's json_load
 * functions (scripts/check-structure). Pure, but for json_read_file. Any thread. */
#ifndef RAMPART_COMMON_JSON_READ_H
#define RAMPART_COMMON_JSON_READ_H

#include <stddef.h>

#include <jansson.h>

/* The most that a document may take. */
struct json_limit {
	size_t text_bytes;
	size_t memory_bytes;	/* as json_text_memory estimates it; SIZE_MAX: the caller has checked it */
};

/* How much memory the document of this text takes, text included. Estimated from what jansson and malloc take for each value, and
 * never too low: twice as much as a document with short names and numbers really takes. The text need not be valid JSON. */
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

#endif
