/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the table of validity flags, and the schema that lists them. */
#include "loadgen/analysis/validity.h"

#include "common/base/json_at.h"
#include "tests/unit/helpers/unit.h"

TEST(flags__each__has_a_meaning)
{
	for (int i = 0; i < VALIDITY_FLAGS; i++)
		assert_true(*validity_flags[i].meaning);
}

/* scripts/check-options keeps the table of docs/results.md. */
TEST(flags__all__in_the_schema)
{
	json_auto_t *schema = json_load_file("docs/run.schema.json", 0, NULL);
	const json_t *names = json_at(schema, "$defs.step.properties.validity.items.enum");

	assert_int_equal(json_array_size(names), VALIDITY_FLAGS);
	for (size_t i = 0; i < VALIDITY_FLAGS; i++)
		assert_string_equal(json_string_value(json_array_get(names, i)), validity_flags[i].name);
}
