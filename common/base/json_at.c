/* See json_at.h. */
#include "common/base/json_at.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool memory_was_short;

static void *get_memory(size_t n)
{
	void *p = malloc(n);

	if (!p)
		atomic_store_explicit(&memory_was_short, true, memory_order_relaxed);
	return p;
}

void json_memory_watch(void)
{
	json_set_alloc_funcs(get_memory, free);
}

bool json_memory_was_short(void)
{
	return atomic_exchange_explicit(&memory_was_short, false, memory_order_relaxed);
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
	return v >= -9223372036854775808. && v < 9223372036854775808. ? json_integer((json_int_t)llround(v)) : json_null();
}
