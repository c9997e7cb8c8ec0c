/* SPDX-License-Identifier: BSD-2-Clause */
/* See expect_file.h. */
#include "loadgen/suites/expect_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/suites/suite_results.h"

#define LIMIT_MAX 1e18
#define SOURCE_MAX 400 /* bytes */

struct check {
	const struct suite_entry *e, *earlier;
	unsigned n;    /* earlier entries */
	size_t number; /* of the expectation */
	char *why;
	size_t size;
};

static int __attribute__((format(printf, 2, 3))) expect_refuse(const struct check *k, const char *fmt, ...)
{
	int used = snprintf(k->why, k->size, "expect %zu: ", k->number);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(k->why + used, k->size - (size_t)used, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int check_keys(const struct check *k, const json_t *o)
{
	static const char *const members[] = { "metric", "alternative", "at",	       "of",	 "min",
					       "max",	 "min_percent", "max_percent", "source", "hardware" };
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)o, name, v) {
		bool known = false;

		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
			known |= strcmp(members[i], name) == 0;
		if (!known)
			return expect_refuse(k, "'%.64s' is not a member of an expectation (docs/suite.schema.json)",
					     name);
	}
	return 0;
}

static int check_at(const struct check *k, const json_t *at)
{
	const char *name;
	json_t *v;

	if (at && json_object_size(at) == 0)
		return expect_refuse(k, "at is empty; allowed: clients, message_bytes, or both");
	json_object_foreach((json_t *)at, name, v) {
		if ((strcmp(name, "clients") != 0 && strcmp(name, "message_bytes") != 0) || !json_is_integer(v) ||
		    json_integer_value(v) < 1)
			return expect_refuse(k,
					     "at: '%.64s' is not allowed; allowed: clients and message_bytes, whole "
					     "numbers from 1 on",
					     name);
	}
	return 0;
}

/* Checks the limits, which are per cent if the expectation has `of`. */
static int check_limits(const struct check *k, const json_t *o)
{
	bool percent = json_object_get(o, "of");
	const char *least = percent ? "min_percent" : "min", *most = percent ? "max_percent" : "max";
	double low = json_number_at(o, least), high = json_number_at(o, most);

	if (json_object_get(o, percent ? "min" : "min_percent") || json_object_get(o, percent ? "max" : "max_percent"))
		return expect_refuse(k, "limits are %s",
				     percent ? "min_percent and max_percent where there is an of"
					     : "min and max where there is no of");
	if ((json_object_get(o, least) && !(low >= 0 && low <= LIMIT_MAX)) ||
	    (json_object_get(o, most) && !(high >= 0 && high <= LIMIT_MAX)) || low > high ||
	    !(json_object_get(o, least) || json_object_get(o, most)))
		return expect_refuse(k, "needs %s, %s or both, from 0 to %g, the first not above the second", least,
				     most, LIMIT_MAX);
	return 0;
}

static int check_alternative(const struct check *k, const char *name)
{
	const struct alternatives *a = &k->e->alternatives;
	size_t used = 0;
	char names[400] = "";

	if (!name && !a->n)
		return 0;
	for (unsigned i = 0; i < a->n; i++) {
		if (name && strcmp(a->v[i].name, name) == 0)
			return 0;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
						 a->v[i].name);
	}
	if (!a->n)
		return expect_refuse(k, "alternative is not allowed in an entry that compares nothing");
	return expect_refuse(k, "alternative is missing or not one of %s", names);
}

/* `of` names an entry. */
static int check_other(const struct check *k, const char *of)
{
	const struct suite_entry *other = NULL;

	for (unsigned i = 0; i < k->n; i++)
		if (strcmp(k->earlier[i].suite, k->e->suite) == 0 && strcmp(k->earlier[i].name, of) == 0)
			other = &k->earlier[i];
	if (!other)
		return expect_refuse(k, "of: '%.64s' is not allowed; allowed: the name of an earlier entry of the "
				     "suite, '%s' or '%s'", of, EXPECT_LINE_RATE, EXPECT_FIRST);
	if (other->alternatives.n)
		return expect_refuse(k, "of: %.64s is a comparison; allowed: an entry that compares nothing", of);
	return 0;
}

static int check_of(const struct check *k, const char *of, const char *metric, const char *alternative)
{
	const struct alternatives *a = &k->e->alternatives;

	if (strcmp(of, EXPECT_LINE_RATE) == 0 && (!strstr(metric, "_bytes_per_s") || a->n))
		return expect_refuse(k, "of: '%s' is only for figures in bytes a second, and not for a comparison",
				     EXPECT_LINE_RATE);
	if (strcmp(of, EXPECT_FIRST) == 0 && (!alternative || strcmp(alternative, a->v[0].name) == 0))
		return expect_refuse(k, "of: '%s' is only for the other alternatives of a comparison", EXPECT_FIRST);
	if (strcmp(of, EXPECT_LINE_RATE) == 0 || strcmp(of, EXPECT_FIRST) == 0)
		return 0;
	return check_other(k, of);
}

static int check_expectation(const struct check *k, const json_t *o)
{
	const json_t *of = json_object_get(o, "of"), *alternative = json_object_get(o, "alternative");
	const json_t *source = json_object_get(o, "source"), *hardware = json_object_get(o, "hardware");
	const char *metric = json_string_value(json_object_get(o, "metric"));
	int ret = check_keys(k, o);

	if (ret)
		return ret;
	if (!metric || !suite_results_has_figure(metric))
		return expect_refuse(k,
				     "metric is missing or unknown; allowed: a figure of a step of suite.json, such as "
				     "response_p50_ns (docs/suites.md)");
	if (!json_is_string(source) || json_string_length(source) < 1 || json_string_length(source) > SOURCE_MAX)
		return expect_refuse(
			k, "needs a source, a text of up to %d bytes that says where the expectation comes from",
			SOURCE_MAX);
	if ((hardware && !json_is_boolean(hardware)) || (of && !json_is_string(of)) ||
	    (alternative && !json_is_string(alternative)) ||
	    (json_object_get(o, "at") && !json_is_object(json_object_get(o, "at"))))
		return expect_refuse(k, "of and alternative are texts, at is an object, hardware is true or false");
	ret = check_at(k, json_object_get(o, "at"));
	if (!ret)
		ret = check_limits(k, o);
	if (!ret)
		ret = check_alternative(k, json_string_value(alternative));
	return ret || !of ? ret : check_of(k, json_string_value(of), metric, json_string_value(alternative));
}

int expect_check(const struct suite_entry *e, const struct suite_entry *earlier, unsigned n, char *why, size_t why_size)
{
	struct check k = { .e = e, .earlier = earlier, .n = n, .why = why, .size = why_size };
	size_t size = json_array_size(e->expect), i;
	const json_t *o;
	int ret;

	if (size == 0 || size > EXPECT_MAX || loadgen_is_swept(&e->cfg) || loadgen_is_search(&e->cfg)) {
		snprintf(why, why_size,
			 "expect: must be an array of 1 to %d expectations; not allowed with a sweep of rates "
			 "or a search",
			 EXPECT_MAX);
		return -EINVAL;
	}
	json_array_foreach(e->expect, i, o) {
		k.number = i + 1;
		ret = check_expectation(&k, o);
		if (ret)
			return ret;
	}
	return 0;
}
