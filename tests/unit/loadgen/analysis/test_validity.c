/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of validity flags, and the documents that list them. */
#include "loadgen/analysis/validity.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/helpers/unit.h"

TEST(flags__each__has_a_meaning)
{
	for (int i = 0; i < VALIDITY_FLAGS; i++)
		assert_true(*validity_flags[i].meaning);
}

/* All flags stand in the file, between these marks. */
static void assert_lists_all(const char *path, char mark)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "r");
	char word[64];

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	for (int i = 0; i < VALIDITY_FLAGS; i++) {
		snprintf(word, sizeof(word), "%c%s%c", mark, validity_flags[i].name, mark);
		if (!strstr(text, word))
			fail_msg("%s does not name %s", path, word);
	}
}

TEST(flags__all__in_the_schema_and_the_documentation)
{
	assert_lists_all("docs/run.schema.json", '"');
	assert_lists_all("docs/results.md", '`');
}
