/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a suite: its suite.json. The report is made in both forms, and has no control characters. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loadgen/report/suite_report.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/json_mutate.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char dir[PATH_MAX];
	const char *tmp = getenv("TMPDIR");

	(void)argc;
	(void)argv;
	snprintf(dir, sizeof(dir), "%s/rampart-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) && chdir(dir) == 0 && mkdir("suite", 0700) == 0 && mkdir("out", 0700) == 0 ? 0 : -1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return json_mutate(data, size, max_size, seed);
}

static void write_file(const char *path, const uint8_t *data, size_t n)
{
	FILE *f = fopen(path, "w");

	assert(f && fwrite(data, 1, n, f) == n);
	fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct report_options o = { .dir = "suite", .output = "out", .format = n & 1 ? REPORT_HTML : REPORT_MARKDOWN };
	char err[1024] = "", *text = NULL;
	size_t size = 0;

	write_file("suite/suite.json", data, n);
	o.out = open_memstream(&text, &size);
	assert(o.out);
	if (suite_report_make(&o, err, sizeof(err)))
		assert(err[0] && !strchr(err, '\n'));
	fclose(o.out);
	for (size_t i = 0; i < size; i++)
		assert((unsigned char)text[i] >= ' ' || text[i] == '\n' || text[i] == '\t');
	free(text);
	return 0;
}
