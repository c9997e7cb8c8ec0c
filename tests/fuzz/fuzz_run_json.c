/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a run: run.json and, after a zero byte, events.ndjson; after a second zero byte, a baseline's run.json.
 * The report must not contain control characters in any of its forms. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loadgen/report/report.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/json_mutate.h"

static FILE *nowhere;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char dir[PATH_MAX];
	const char *tmp = getenv("TMPDIR");

	(void)argc;
	(void)argv;
	snprintf(dir, sizeof(dir), "%s/rampart-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	nowhere = fopen("/dev/null", "w");
	return nowhere && mkdtemp(dir) && chdir(dir) == 0 && mkdir("run", 0700) == 0 && mkdir("base", 0700) == 0 &&
	       mkdir("out", 0700) == 0 ? 0 : -1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	return json_mutate(data, size, max_size, seed);
}

/* Writes the bytes before the next zero byte to a file; if there are none, there is no file. */
static bool take_file(struct input *in, const char *path)
{
	const uint8_t *p;
	size_t n = input_bytes(in, strnlen((const char *)in->p, in->n), &p);
	FILE *f;

	input_number(in, 1);
	unlink(path);
	if (!n)
		return false;
	f = fopen(path, "w");
	assert(f && fwrite(p, 1, n, f) == n);
	fclose(f);
	return true;
}

static void make(struct report_options *o)
{
	char err[1024] = "", *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	enum report_result result;

	assert(out);
	o->out = out;
	result = report_make(o, nowhere, err, sizeof(err));
	fclose(out);
	assert(result != REPORT_UNWRITTEN);
	if (result == REPORT_FAILED)
		assert(err[0] && !strchr(err, '\n'));
	for (size_t i = 0; i < size; i++)
		assert((unsigned char)text[i] >= ' ' || text[i] == '\n' || text[i] == '\t');
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	struct report_options o = { .dir = "run", .output = "out", .headroom = REPORT_HEADROOM, .any_environment = true,
				    .min_effect = 0.05 };

	if (!take_file(&in, "run/run.json"))
		return 0;
	take_file(&in, "run/events.ndjson");
	if (take_file(&in, "base/run.json"))
		o.baselines[o.n_baselines++].dir = "base";
	o.format = n & 1 ? REPORT_HTML : REPORT_MARKDOWN;
	make(&o);
	return 0;
}
