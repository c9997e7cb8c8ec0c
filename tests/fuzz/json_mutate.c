/* SPDX-License-Identifier: BSD-2-Clause */
/* See json_mutate.h. */
#include "tests/fuzz/json_mutate.h"

#include <stdbool.h>

#include <jansson.h>

#include "tests/fuzz/input.h"

#define TEXT_BYTES_MAX 64

static uint64_t state;

/* SplitMix64 (Steele, Lea, Flood). */
static uint64_t next(uint64_t below)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

static json_t *other_number(const json_t *old)
{
	static const double odd[] = { 0, -1, 1, 0.5, 1e-300, 1e300, -1e300, 9007199254740993.0, 4294967296.0, 1e19 };
	static const json_int_t whole[] = { 0, 1, -1, 255, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, INT64_MIN,
					    1000000000 };
	double v = json_number_value(old);

	switch (next(5)) {
	case 0: return json_real(odd[next(sizeof(odd) / sizeof(odd[0]))]);
	case 1: return json_integer(whole[next(sizeof(whole) / sizeof(whole[0]))]);
	case 2: return json_integer((json_int_t)((uint64_t)json_integer_value(old) + next(5) - 2));
	case 3: return json_real(v * 2 > 1e300 ? 0 : v * 2);
	default: return json_real(v / 3);
	}
}

static json_t *other_text(const json_t *old)
{
	static const char *const odd[] = { "", "..", "../x", "<script>", "|`*_\\", "\033[2J", "\n", "%n%s",
					   "\xe2\x80\xae", "a,b" };
	char text[TEXT_BYTES_MAX + 1];
	const char *s = json_string_value(old);
	size_t n = strnlen(s ? s : "", TEXT_BYTES_MAX);

	if (next(2) || !s)
		return json_string(odd[next(sizeof(odd) / sizeof(odd[0]))]);
	memcpy(text, s, n);
	n = LLVMFuzzerMutate((uint8_t *)text, n, TEXT_BYTES_MAX);
	text[n] = '\0';
	return json_string(text);	/* NULL if it is not UTF-8 */
}

/* Returns a new reference to a replacement for the value; NULL: none. */
static json_t *other(const json_t *old)
{
	switch (next(12)) {
	case 0: return json_null();
	case 1: return json_boolean(next(2));
	case 2: return json_object();
	case 3: return json_array();
	case 4: return other_number(old);
	case 5: return other_text(old);
	case 6: return json_pack("[O, O]", old, old);
	default:
		return json_is_number(old) ? other_number(old) : json_is_string(old) ? other_text(old) : json_null();
	}
}

static size_t count(const json_t *o)
{
	size_t n = 0, i;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, key, v)
		n += 1 + count(v);
	json_array_foreach(o, i, v)
		n += 1 + count(v);
	return n;
}

static void change_member(json_t *object, const char *key, json_t *value)
{
	char *name = strdup(key);
	json_t *new = next(6) ? other(value) : NULL;

	assert(name);
	if (new)
		json_object_set_new(object, name, new);
	else
		json_object_del(object, name);
	free(name);
}

static void change_element(json_t *array, size_t i, json_t *value)
{
	json_t *new = NULL;

	switch (next(6)) {
	case 0:
		json_array_remove(array, i);
		break;
	case 1:
		json_array_append_new(array, json_deep_copy(value));
		break;
	default:
		new = other(value);
		if (new)
			json_array_set_new(array, i, new);
	}
}

/* Walks the values, changes the one with the number *at, and returns true. */
static bool change(json_t *o, size_t *at)
{
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach(o, key, v) {
		if ((*at)-- == 0) {
			change_member(o, key, v);
			return true;
		}
		if (change(v, at))
			return true;
	}
	json_array_foreach(o, i, v) {
		if ((*at)-- == 0) {
			change_element(o, i, v);
			return true;
		}
		if (change(v, at))
			return true;
	}
	return false;
}

size_t json_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	size_t text_n = strnlen((const char *)data, size), rest = size - text_n, n, values;
	json_t *o;
	char *text;

	state = seed;
	o = next(8) ? json_loadb((const char *)data, text_n, 0, NULL) : NULL;
	values = count(o);
	if (!values) {
		json_decref(o);
		return LLVMFuzzerMutate(data, size, max_size);
	}
	for (uint64_t i = 1 + next(3); i > 0 && values; i--) {
		size_t at = next(values);

		change(o, &at);
		values = count(o);
	}
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	n = text ? strlen(text) : 0;
	if (text && n + rest <= max_size) {
		memmove(data + n, data + text_n, rest);
		memcpy(data, text, n);
		size = n + rest;
	}
	free(text);
	return size;
}
