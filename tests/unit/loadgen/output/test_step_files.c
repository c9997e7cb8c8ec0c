/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/output/step_files.c: names of histograms, the trace, and files that cannot be written. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "loadgen/output/results.h"
#include "loadgen/output/step_files.h"
#include "loadgen/measurement/step.h"
#include "loadgen/traffic/trace.h"
#include "loadgen/worker/worker.h"
#include "tests/unit/files/scratch.h"

static char dir[SCRATCH_MAX], trace_file[SCRATCH_MAX + 32];
static struct results *results;
static struct step *s;
static struct trace *trace;
static struct loadgen_config cfg;
static struct step_files files;
static struct worker *const workers[1];

/* The test plays the worker. */
const struct trace *worker_trace(const struct worker *w)
{
	assert_ptr_equal(w, workers[0]);
	return trace;
}

const struct worker_stats *worker_stats(const struct worker *w)
{
	fail_msg("asks a worker (%p)", (const void *)w);
	return NULL;
}

static int set_up(void **state)
{
	char err[512];

	(void)state;
	if (scratch_make(dir) || results_new(dir, "run", 0, &results, err, sizeof(err)) || step_new(10, 64, 1, &s) ||
	    trace_new(4, &trace))
		return -1;
	snprintf(trace_file, sizeof(trace_file), "%s/trace.csv", dir);
	s->measured = true;
	hist_record(s->total, 1000);
	hist_record(s->hists.response, 1000);
	trace_add(trace, &(struct trace_record){ .client = 3, .due_ns = 5, .sent_ns = 6, .end_ns = 7 });
	cfg = (struct loadgen_config){ .sizes = { .n = 1, .v = { 64 } }, .trace = trace_file };
	files = (struct step_files){ .cfg = &cfg, .results = results };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	trace_free(trace);
	step_free(s);
	results_free(results);
	return scratch_remove(dir);
}

TEST(histograms__written__named)
{
	json_t *o = step_files_histograms(&files, s, 0);

	assert_string_equal(json_text_at(o, "connect"), "step-00010-1-connect");
	assert_string_equal(json_text_at(o, "response"), "step-00010-1-response");
	assert_true(json_is_null(json_at(o, "service")));
	assert_int_equal(access(results_path(results, "step-00010-1-connect.hlog"), R_OK), 0);
	assert_false(results_are_incomplete(results));
	json_decref(o);
}

TEST(histograms__a_link_in_the_way__null_and_results_are_incomplete)
{
	json_t *o;

	assert_int_equal(symlink("/dev/full", results_path(results, "step-00010-1-connect.hgrm")), 0);
	o = step_files_histograms(&files, s, 0);
	assert_true(json_is_null(json_at(o, "connect")));
	assert_string_equal(json_text_at(o, "response"), "step-00010-1-response");
	assert_true(results_are_incomplete(results));
	json_decref(o);
}

TEST(trace__two_steps__one_title)
{
	char text[400] = "";
	FILE *f;

	step_files_trace(&files, s, workers, 1);
	step_files_trace(&files, s, workers, 1);
	assert_false(results_are_incomplete(results));
	f = fopen(trace_file, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_string_equal(text, "clients,bytes,repetition,client,operation,due_ns,sent_ns,end_ns\n"
				  "10,64,1,3,0,5,6,7\n10,64,1,3,0,5,6,7\n");
}

TEST(trace__one_of_several_runs__its_name_before_the_ending)
{
	char path[SCRATCH_MAX + 64];

	cfg.trace_each = true;
	snprintf(cfg.name_text, sizeof(cfg.name_text), "s-e-1-2");
	step_files_trace(&files, s, workers, 1);
	snprintf(path, sizeof(path), "%s/trace-s-e-1-2.csv", dir);
	assert_int_equal(access(path, R_OK), 0);
	assert_int_not_equal(access(trace_file, F_OK), 0);
}

TEST(trace__a_link__not_followed)
{
	assert_int_equal(symlink("victim", trace_file), 0);
	step_files_trace(&files, s, workers, 1);
	assert_int_equal(results_error(results), -ELOOP);
	assert_int_not_equal(access(trace_file, F_OK), 0);
}

TEST(trace__disk_full__results_are_incomplete)
{
	cfg.trace = "/dev/full";
	step_files_trace(&files, s, workers, 1);
	assert_int_equal(results_error(results), -ENOSPC);
	assert_true(results_are_incomplete(results));
}

TEST_EACH(set_up, tear_down)
