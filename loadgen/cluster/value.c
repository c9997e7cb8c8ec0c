/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "common/base/json_at.h"

#define COMPRESSED	'z'	/* no JSON text begins with it */
#define WORTH_BYTES	256	/* shorter texts are left as they are */
#define INFLATE_AT_ONCE	(64 * 1024)

/* Compresses `text` into *out; false if that is not shorter, or memory is short. */
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

/* Inflates until the stream's end into *text, which grows as there is something to put into it. */
static bool inflate_all(z_stream *z, size_t text_max, char **text, size_t *size)
{
	int rc;

	do {
		char *grown;

		if (*size > text_max)
			return false;
		grown = realloc(*text, *size + INFLATE_AT_ONCE);
		if (!grown)
			return false;
		*text = grown;
		z->next_out = (Bytef *)grown + *size;
		z->avail_out = INFLATE_AT_ONCE;
		rc = inflate(z, Z_NO_FLUSH);
		*size += INFLATE_AT_ONCE - z->avail_out;
	} while (rc == Z_OK);
	return rc == Z_STREAM_END && *size <= text_max;
}

static json_t *parse_within(const char *text, size_t size, size_t memory_max, size_t *memory)
{
	const struct json_limit weighed = { size, SIZE_MAX };

	*memory = json_text_memory(text, size);
	return *memory > memory_max ? NULL : json_read(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &weighed, NULL, 0);
}

json_t *value_unpack(const void *value, size_t bytes, size_t text_max, size_t memory_max, size_t *memory)
{
	z_stream z = { .next_in = (Bytef *)value + 1, .avail_in = bytes ? (uInt)(bytes - 1) : 0 };
	json_t *document = NULL;
	size_t size = 0, unused;
	char *text = NULL;

	memory = memory ? memory : &unused;
	*memory = 0;
	if (!bytes)
		return NULL;
	if (*(const char *)value != COMPRESSED)
		return bytes > text_max ? NULL : parse_within(value, bytes, memory_max, memory);
	if (inflateInit(&z) != Z_OK)
		return NULL;
	if (inflate_all(&z, text_max, &text, &size))
		document = parse_within(text, size, memory_max, memory);
	inflateEnd(&z);
	free(text);
	return document;
}
