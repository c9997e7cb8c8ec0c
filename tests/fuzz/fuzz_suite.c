/* SPDX-License-Identifier: BSD-2-Clause */
/* Suites: a file for --suite, with a command line that replaces some of its options. A refusal is one line. */
#include <stdio.h>

#include "loadgen/suites/suite_file.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char program[] = "performance_test", suite[] = "--suite=x", duration[] = "--duration=2";
	char *argv[] = { program, suite, duration, NULL };
	struct suite *s = calloc(1, sizeof(*s));
	char *text = input_text(data, n), err[1024] = "";

	assert(s);
	/* Inputs of odd length run without --duration. */
	if (suite_add(s, text, n, n % 2 ? 2 : 3, argv, err, sizeof(err)))
		assert(err[0] && !strchr(err, '\n'));
	else
		assert(s->n >= 1 && s->n <= SUITE_ENTRIES_MAX);
	suite_free(s);
	free(text);
	return 0;
}
