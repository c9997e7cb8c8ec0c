/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/traffic/trace.c: which operations are kept or lost, and the lines of the file. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/traffic/trace.h"

static char *written(const struct trace *t, const struct trace_step *step)
{
	size_t len;
	char *text;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(trace_write_title(f), 0);
	assert_int_equal(trace_write(t, step, f), 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

TEST(trace__records__a_line_each_from_the_runs_start)
{
	static const struct trace_record records[] = {
		{ .due_ns = 1100, .sent_ns = 1200, .end_ns = 1300, .client = 0, .operation = 7 },
		{ .due_ns = 1000, .sent_ns = 1000, .end_ns = UINT64_C(9000000000), .client = 3, .operation = UINT32_MAX },
	};
	const struct trace_step step = { .clients = 10, .repetition = 2, .worker = 1, .n_workers = 4, .bytes = 64,
					 .start_ns = 1000 };
	struct trace *t;
	char *text;

	assert_int_equal(trace_new(4, &t), 0);
	for (size_t i = 0; i < N_ELEMENTS(records); i++)
		trace_add(t, &records[i]);
	text = written(t, &step);
	assert_string_equal(text, "clients,bytes,repetition,client,operation,due_ns,sent_ns,end_ns\n"
				  "10,64,2,1,7,100,200,300\n"
				  "10,64,2,13,4294967295,0,0,8999999000\n");
	assert_int_equal(trace_lost(t), 0);
	free(text);
	trace_free(t);
	trace_free(NULL);
}

TEST(trace__full__the_rest_is_counted_until_cleared)
{
	const struct trace_step step = { .n_workers = 1 };
	struct trace_record r = { 0 };
	struct trace *t;
	char *text;

	assert_int_equal(trace_new(2, &t), 0);
	for (r.operation = 0; r.operation < 5; r.operation++)
		trace_add(t, &r);
	assert_int_equal(trace_lost(t), 3);
	trace_clear(t);
	assert_int_equal(trace_lost(t), 0);
	trace_add(t, &r);
	text = written(t, &step);
	assert_non_null(strstr(text, "\n0,0,0,0,5,0,0,0\n"));
	assert_null(strstr(text, ",4,0,0,0\n"));
	free(text);
	trace_free(t);
}
