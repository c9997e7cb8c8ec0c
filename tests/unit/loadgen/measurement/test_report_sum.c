/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/report_sum.c. */
#include "tests/unit/helpers/unit.h"

#include <jansson.h>

#include "loadgen/measurement/report_sum.h"

static const char *const adds[] = { "a", "in.b", "in.group.", "list", "mixed", NULL };

static void check(const char *const *of, size_t n, const char *expected)
{
	json_t *v[8], *sum, *wanted = json_loads(expected, 0, NULL);

	assert_non_null(wanted);
	for (size_t i = 0; i < n; i++) {
		v[i] = json_loads(of[i], 0, NULL);
		assert_non_null(v[i]);
	}
	sum = json_sum(v, n, adds);
	if (!json_equal(sum, wanted))
		fail_msg("%s instead of %s", json_dumps(sum, JSON_COMPACT), expected);
	json_decref(sum);
	json_decref(wanted);
	for (size_t i = 0; i < n; i++)
		json_decref(v[i]);
}
#define CHECK(expected, ...) check((const char *const[]){ __VA_ARGS__ }, \
				   sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), expected)

TEST(sum__what_is_in_the_list__adds)
{
	CHECK("{\"a\": 6}", "{\"a\": 1}", "{\"a\": 2}", "{\"a\": 3}");
	CHECK("{\"a\": 3.5}", "{\"a\": 1}", "{\"a\": 2.5}");
	CHECK("{\"a\": 9007199254740995}", "{\"a\": 9007199254740993}", "{\"a\": 2}");
	CHECK("{\"in\": {\"b\": 30}}", "{\"in\": {\"b\": 10}}", "{\"in\": {\"b\": 20}}");
	CHECK("{\"list\": [1, {\"x\": 2}, 3]}", "{\"list\": [1, {\"x\": 2}]}", "{\"list\": [3]}");
	CHECK("{\"a\": 5}", "{\"a\": 5}");
}

/* A percentile, a ratio, a time or a name cannot be added. */
TEST(sum__what_is_not_in_the_list__null)
{
	CHECK("{\"p99\": null, \"in\": {\"c\": null}}", "{\"p99\": 1, \"in\": {\"c\": 2}}", "{\"p99\": 1, \"in\": {\"c\": 2}}");
	CHECK("{\"b\": null, \"name\": null, \"other\": null}", "{\"b\": 1, \"name\": \"x\", \"other\": [1]}",
	      "{\"b\": 1, \"name\": \"x\", \"other\": [2]}");
}

TEST(sum__not_known_of_one__null)
{
	CHECK("{\"a\": null}", "{\"a\": 1}", "{\"a\": null}");
	CHECK("{\"a\": null}", "{\"a\": 1}", "{}");
	CHECK("{\"a\": null}", "{}", "{\"a\": 1}");
	CHECK("{\"a\": null, \"list\": null}", "{\"a\": \"1\", \"list\": [1]}", "{\"a\": 1, \"list\": 2}");
	CHECK("{\"mixed\": null}", "{\"mixed\": {\"x\": 1}}", "{\"mixed\": 1}");
}

/* Only counts of events that happened are written. */
TEST(sum__group__what_is_missing_is_none)
{
	CHECK("{\"in\": {\"group\": {\"full\": 3, \"busy\": 5}}}", "{\"in\": {\"group\": {\"full\": 3}}}",
	      "{\"in\": {\"group\": {\"busy\": 5}}}");
	CHECK("{\"in\": {\"group\": {\"full\": null}}}", "{\"in\": {\"group\": {\"full\": \"3\"}}}", "{\"in\": {\"group\": {}}}");
}

TEST(sum__no_objects__null)
{
	json_auto_t *object = json_object(), *number = json_integer(1);

	assert_null(json_sum(NULL, 0, adds));
	assert_null(json_sum((json_t *[]){ object, NULL }, 2, adds));
	assert_null(json_sum((json_t *[]){ number, object }, 2, adds));
}

/* A server's report may contain anything. */
TEST(sum__deep__ends)
{
	json_auto_t *of = json_integer(1), *sum = NULL;

	for (int i = 0; i < 1000; i++)
		of = json_pack("{s:o}", "in", of);
	sum = json_sum((json_t *[]){ of, of }, 2, adds);
	assert_non_null(sum);
}
