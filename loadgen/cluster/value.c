/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "common/base/json_at.h"

#define COMPRESSED	'z'	/* no JSON text begins with it */
#define WORTH_BYTES	256	/* shorter texts are not compressed */

/* Compresses `text` into *out; false if the result is not shorter, or when out of memory. */
static bool deflate_text(const char *text, size_t size, unsigned char **out, size_t *bytes)
{
	uLongf packed = compressBound(size);
	unsigned char *buf = malloc(packed + 1);

	if (!buf)
		return false;
	buf[0] = COMPRESSED;
	if (compress2(buf + 1, &packed, (const Bytef *)text, size, Z_BEST_SPEED) != Z_OK || packed + 1 >= size) {
		free(buf);
		return false;
	}
	*out = buf;
	*bytes = packed + 1;
	return true;
}

void *value_pack(const json_t *document, size_t text_max, size_t *bytes)
{
	char *text = json_dumps(document, JSON_COMPACT | JSON_ENCODE_ANY);
	size_t size = text ? strlen(text) : 0;
	unsigned char *packed;

	if (!text || size > text_max) {
		free(text);
		return NULL;
	}
	if (size >= WORTH_BYTES && deflate_text(text, size, &packed, bytes)) {
		free(text);
		return packed;
	}
	*bytes = size;
	return text;
}

static json_t *parse_within(const char *text, size_t size, size_t memory_max, size_t *memory)
{
	const struct json_limit weighed = { size, SIZE_MAX };

	*memory = json_text_memory(text, size);
	return *memory > memory_max ? NULL :
		json_read(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &weighed, NULL, 0);
}

json_t *value_unpack(const void *value, size_t bytes, size_t text_max, size_t memory_max, size_t *memory)
{
	uLongf size = text_max;
	json_t *document = NULL;
	size_t unused = 0;
	char *text;

	memory = memory ? memory : &unused;
	*memory = 0;
	if (!bytes)
		return NULL;
	if (*(const char *)value != COMPRESSED)
		return bytes > text_max ? NULL : parse_within(value, bytes, memory_max, memory);
	/* The kernel allocates pages only as they are written, so a large buffer costs nothing. */
	text = malloc(text_max);
	if (text && uncompress((Bytef *)text, &size, (const Bytef *)value + 1, bytes - 1) == Z_OK)
		document = parse_within(text, size, memory_max, memory);
	free(text);
	return document;
}
