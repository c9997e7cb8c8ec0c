/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/json_at.c: numbers that JSON, or its whole numbers, do not have. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "common/base/json_at.h"

TEST(whole__numbers_of_64_bits__rounded)
{
	static const struct { double v; json_int_t whole; } cases[] = {
		{ 0, 0 }, { 2.5, 3 }, { -2.5, -3 }, { 0x1p62, INT64_C(1) << 62 }, { -0x1p63, INT64_MIN },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		json_t *o = json_whole(cases[i].v);

		assert_true(json_is_integer(o) && json_integer_value(o) == cases[i].whole);
		json_decref(o);
	}
}

TEST(whole__unknown_or_too_large__null)
{
	static const double cases[] = { NAN, INFINITY, -INFINITY, 0x1p63, 1e300, -1e300 };

	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		assert_true(json_is_null(json_whole(cases[i])));
}
