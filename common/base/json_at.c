/* SPDX-License-Identifier: BSD-2-Clause */
/* See json_at.h. */
#include "common/base/json_at.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"

/* Memory that jansson allocates for each kind of value, rounded up as by malloc. Arrays and member tables take up to
 * twice the size of their contents, and are copied when they grow. */
#define OBJECT_BYTES	240
#define ARRAY_BYTES	144
#define STRING_BYTES	80	/* in addition to its characters; a member's name takes as much */
#define NUMBER_BYTES	32
#define MEMBER_BYTES	48	/* in addition to name and value */
#define ELEMENT_BYTES	24	/* in addition to the value */

static atomic_bool memory_was_short;
/* Whether json_read is parsing on this thread, and whether memory has run out meanwhile. */
static _Thread_local enum { NOT_PARSING, PARSING, OUT_OF_MEMORY } parser;

/* Once memory has run out while a document is parsed, all further allocations fail too: jansson 2.14 does not notice
 * that the buffer of a string could not grow. If it then got memory for the string, it would copy the string from
 * beyond the buffer's end into memory that is too small for it. */
static void *get_memory(size_t n)
{
	void *p = parser == OUT_OF_MEMORY ? NULL : malloc(n);

	if (p)
		return p;
	atomic_store_explicit(&memory_was_short, true, memory_order_relaxed);
	if (parser == PARSING)
		parser = OUT_OF_MEMORY;
	return NULL;
}

void json_memory_watch(void)
{
	json_set_alloc_funcs(get_memory, free);
}

bool json_memory_was_short(void)
{
	return atomic_exchange_explicit(&memory_was_short, false, memory_order_relaxed);
}

/* Returns the end of the string that starts at `p`. */
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

static const char *skip_number(const char *p, const char *end)
{
	while (p < end && ((*p >= '0' && *p <= '9') || *p == '+' || *p == '-' || *p == '.' || *p == 'e' || *p == 'E'))
		p++;
	return p;
}

size_t json_text_memory(const char *text, size_t bytes)
{
	const char *p = text, *end = text + bytes;
	size_t memory = bytes + ELEMENT_BYTES;

	while (p < end) {
		if (*p == '"') {
			memory += STRING_BYTES;
			p = skip_string(p, end);
		} else if (*p == '-' || (*p >= '0' && *p <= '9')) {
			memory += NUMBER_BYTES;
			p = skip_number(p, end);
		} else {
			memory += *p == '{' ? OBJECT_BYTES : *p == '[' ? ARRAY_BYTES :
				  *p == ',' ? ELEMENT_BYTES : *p == ':' ? MEMBER_BYTES : 0;
			p++;
		}
	}
	return memory;
}

size_t json_memory(const json_t *document)
{
	size_t memory = 0, i;
	const char *key;
	json_t *v;

	switch (document ? json_typeof(document) : JSON_NULL) {
	case JSON_OBJECT:
		memory = OBJECT_BYTES;
		json_object_foreach((json_t *)document, key, v)
			memory += STRING_BYTES + MEMBER_BYTES + strlen(key) + json_memory(v);
		break;
	case JSON_ARRAY:
		memory = ARRAY_BYTES;
		json_array_foreach(document, i, v)
			memory += ELEMENT_BYTES + json_memory(v);
		break;
	case JSON_STRING:
		memory = STRING_BYTES + json_string_length(document);
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		memory = NUMBER_BYTES;
		break;
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		break;
	}
	return memory;
}

/* False, with a line in `err`, if the text exceeds a limit. */
static bool is_within(const char *text, size_t bytes, const struct json_limit *limit, char *err, size_t err_size)
{
	size_t memory;

	if (bytes > limit->text_bytes) {
		snprintf(err, err_size, "has %zu KiB; allowed: %zu KiB", bytes >> 10, limit->text_bytes >> 10);
		return false;
	}
	if (limit->memory_bytes == SIZE_MAX)
		return true;
	memory = json_text_memory(text, bytes);
	if (memory > limit->memory_bytes)
		snprintf(err, err_size, "would take about %zu KiB of memory; allowed: %zu KiB", memory >> 10,
			 limit->memory_bytes >> 10);
	return memory <= limit->memory_bytes;
}

json_t *json_read(const char *text, size_t bytes, size_t flags, const struct json_limit *limit, char *err,
		  size_t err_size)
{
	json_error_t e;
	json_t *o;

	if (!is_within(text, bytes, limit, err, err_size))
		return NULL;
	parser = PARSING;
	o = json_loadb(text, bytes, flags, &e);
	if (parser == OUT_OF_MEMORY) {
		snprintf(err, err_size, "out of memory");
		json_decref(o);
		o = NULL;
	} else if (!o) {
		snprintf(err, err_size, "line %d: %s", e.line, e.text);
	}
	parser = NOT_PARSING;
	return o;
}

int json_read_file(const char *path, size_t flags, const struct json_limit *limit, json_t **out, char *err,
		   size_t err_size)
{
	char *text;
	size_t bytes;
	int ret = path_read(path, limit->text_bytes, &text, &bytes);

	if (ret == -EFBIG)
		snprintf(err, err_size, "has more than the %zu KiB that are allowed", limit->text_bytes >> 10);
	else if (ret)
		snprintf(err, err_size, "%s", path_error(ret));
	if (ret)
		return ret == -EFBIG ? -EINVAL : ret;
	*out = json_read(text, bytes, flags, limit, err, err_size);
	free(text);
	if (*out)
		return 0;
	return json_memory_was_short() ? -ENOMEM : -EINVAL;
}

json_t *json_at(const json_t *o, const char *path)
{
	char name[64];
	const char *dot;

	while ((dot = strchr(path, '.'))) {
		size_t n = (size_t)(dot - path);

		if (n >= sizeof(name))
			return NULL;
		memcpy(name, path, n);
		name[n] = '\0';
		o = json_object_get(o, name);
		path = dot + 1;
	}
	return json_object_get(o, path);
}

double json_number_at(const json_t *o, const char *path)
{
	const json_t *v = json_at(o, path);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

const char *json_text_at(const json_t *o, const char *path)
{
	return json_string_value(json_at(o, path));
}

json_t *json_number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_whole(double v)
{
	return v >= -9223372036854775808. && v < 9223372036854775808. ? json_integer((json_int_t)llround(v)) :
		json_null();
}

json_t *json_figure(double v)
{
	return floor(v) == v ? json_whole(v) : json_number(v);
}
