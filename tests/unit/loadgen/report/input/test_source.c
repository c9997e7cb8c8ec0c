/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/report/input/source.c: folders without a run, runs that did not end, damage, names of
 * histograms. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hist/hist.h"
#include "loadgen/report/input/source.h"
#include "tests/unit/helpers/report_rig.h"

#define D REPORT_RIG_DIR

static char err[1024];

static void expect_refused(const char *why)
{
	struct source *s;

	err[0] = '\0';
	assert_true(source_open(D, &s, err, sizeof(err)) < 0);
	if (!strstr(err, why))
		fail_msg("'%s' is not in '%s'", why, err);
	assert_null(strchr(err, '\n'));
}

static struct source *opened(void)
{
	struct source *s;

	if (source_open(D, &s, err, sizeof(err)))
		fail_msg("%s", err);
	return s;
}

TEST(open__no_folder_or_a_file__says_so)
{
	assert_int_equal(rmdir(D), 0);
	expect_refused(D ": No such file or directory");
	report_rig_file(".", D, "");
	expect_refused(D ": Not a directory");
}

TEST(open__folder_of_no_run__says_so)
{
	expect_refused("not the folder of a run");
}

TEST(open__run_that_did_not_end__how_far_it_came)
{
	report_rig_file(D, "events.ndjson", "{\"t\": 0.5, \"event\": \"phase\", \"phase\": \"starting server\"}\n"
			"{\"t\": 2, \"event\": \"step_start\", \"clients\": 500}\n"
			"{\"t\": 2.25, \"event\": \"phase\", \"phase\": \"connecting\"}\n"
			"{\"t\": 7.5, \"event\": \"sample\", \"clients\": 500, \"connected\": 123}\n{\"t\": 8, \"ev");
	expect_refused("no run.json, so the run goes on or was cut off; after 7.5 s it was at 500 clients (123 "
		       "connected), in the phase connecting (events.ndjson)");
}

TEST(open__run_that_came_to_no_step__says_so)
{
	report_rig_file(D, "events.ndjson", "{\"t\": 0.5, \"event\": \"phase\", \"phase\": \"starting server\"}\n");
	expect_refused("after 0.5 s it was before its first step, in the phase starting server");
	report_rig_file(D, "events.ndjson", "nothing of the kind\n");
	expect_refused("nothing can be read in events.ndjson");
}

TEST(open__run_json_lost_after_the_end__says_so)
{
	report_rig_file(D, "events.ndjson", "{\"t\": 9, \"event\": \"run_end\", \"stop_reason\": \"max_reached\"}\n");
	expect_refused("no run.json, though the run ended (max_reached");
}

TEST(open__damaged_run_json__one_line_that_says_where)
{
	static const struct { const char *text, *why;
	} runs[] = {
		{ "", "run.json: line 1: " },
		{ "{\"schema_version\": 1,", "run.json: line 1: " },
		{ "[1]", "not an object" },
		{ "{}", "no schema_version" },
		{ "{\"schema_version\": \"1\"}", "no schema_version" },
		{ "{\"schema_version\": 3}", "schema_version is 3, this program reads 1 to 2" },
		{ "{\"schema_version\": 1, \"steps\": [1e999]}", "run.json: line 1: " },
		{ "{\"a\": \"\x1b[31m\n\"}", "run.json: line 1: " },
	};

	for (size_t i = 0; i < N_ELEMENTS(runs); i++) {
		report_rig_file(D, "run.json", runs[i].text);
		expect_refused(runs[i].why);
		assert_null(strchr(err, '\x1b'));
	}
}

TEST(open__pipe_or_folder_in_place_of_run_json__refused)
{
	assert_int_equal(mkdir(D "/run.json", 0700), 0);
	expect_refused("run.json: not a regular file");
	assert_int_equal(rmdir(D "/run.json"), 0);
	assert_int_equal(mkfifo(D "/run.json", 0600), 0);
	expect_refused("run.json: not a regular file");
}

/* Returns `head`, n times `unit`, and `tail`. */
static char *repeated(const char *head, const char *unit, size_t n, const char *tail)
{
	char *text = malloc(strlen(head) + n * strlen(unit) + strlen(tail) + 1), *p = stpcpy(text, head);

	for (size_t i = 0; i < n; i++)
		p = stpcpy(p, unit);
	strcpy(p, tail);
	return text;
}

static size_t json_bytes;

static void *count_json(size_t n)
{
	json_bytes += n;
	return malloc(n);
}

/* A few MB of text would take some 100 MB once parsed. */
TEST(open__dense_files__refused_before_they_are_parsed)
{
	char *run = repeated("{\"schema_version\": 2, \"a\": [0", ",{}", 4000000, "]}");
	char *event = repeated("{\"t\": 1, \"event\": \"sample\", \"a\": [0", ",{}", 20000, "]}\n");
	char *events = repeated("", event, 40, "{\"t\": 2, \"event\": \"sample\", \"connects\": 3}\n");
	struct source *s;

	json_set_alloc_funcs(count_json, free);
	json_bytes = 0;
	report_rig_file(D, "run.json", run);
	expect_refused("run.json: would take about ");
	assert_int_equal(json_bytes, 0);
	report_rig_file(D, "run.json", "{\"schema_version\": 2}");
	report_rig_file(D, "events.ndjson", events);
	s = opened();
	assert_true(json_bytes < 10000);
	assert_int_equal(s->n_samples, 1);
	assert_true(s->samples[0].t_s == 2 && s->samples[0].connects == 3 && isnan(s->samples[0].connected));
	assert_int_equal(s->damaged, 40);
	source_close(s);
	json_set_alloc_funcs(malloc, free);
	free(run);
	free(event);
	free(events);
}

TEST(events__damaged_or_cut_off__skipped_and_counted)
{
	struct source *s;

	report_rig_file(D, "run.json", "{\"schema_version\": 1}");
	report_rig_file(D, "events.ndjson",
			"{\"t\": 1, \"event\": \"sample\", \"connected\": 1}\n[]\n{\"event\": \"sample\"}\n{\"t\": "
			"\"1\", \"event\": \"sample\"}\n\n{\"t\": 2, \"event\": \"sample\", \"connected\": 2}\n{\"t\": "
			"3, \"event\": \"sample\"");
	s = opened();
	assert_int_equal(s->n_samples, 2);
	assert_int_equal(s->damaged, 5);
	source_close(s);
}

TEST(events__a_line_longer_than_any__skipped_and_counted_once)
{
	static char text[200100];
	struct source *s;

	memset(text, 'x', 200000);
	strcpy(text + 200000, "\n{\"t\": 2, \"event\": \"sample\"}\n");
	report_rig_file(D, "run.json", "{\"schema_version\": 1}");
	report_rig_file(D, "events.ndjson", text);
	s = opened();
	assert_int_equal(s->n_samples, 1);
	assert_int_equal(s->damaged, 1);
	source_close(s);
}

TEST(id__none_in_run_json__the_folders_name)
{
	struct source *s;

	report_rig_file(D, "run.json", "{\"schema_version\": 1}");
	s = opened();
	assert_string_equal(s->id, D);
	source_close(s);
	report_rig_file(D, "run.json", "{\"schema_version\": 1, \"run\": {\"id\": \"x\"}}");
	s = opened();
	assert_string_equal(s->id, "x");
	source_close(s);
}

TEST(histogram__names_that_are_no_plain_names__none)
{
	static const char *const names[] = { "../run/h", "/etc/passwd", "", "..", ".h", "a/../h", "a..b" };
	struct source *s;
	char name[200];

	report_rig_file(D, "run.json", "{\"schema_version\": 1}");
	report_rig_histogram(D, "h", 10, 1000);
	s = opened();
	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		json_t *step = json_pack("{s:{s:s}}", "histograms", "response", names[i]);

		assert_false(source_histogram_name(s, step, "response", name, sizeof(name)));
		assert_null(source_histogram(s, step, "response"));
		json_decref(step);
	}
	source_close(s);
}

TEST(histogram__of_a_step__read)
{
	json_t *step = json_pack("{s:{s:s, s:n, s:s}}", "histograms", "response", "h", "service", "connect", "damaged");
	const struct hist *h;
	struct source *s;

	report_rig_file(D, "run.json", "{\"schema_version\": 1}");
	report_rig_histogram(D, "h", 1000, 1000);
	report_rig_file(D, "damaged.hlog", "Tag=,0,1,2,HISTFAAAAB");
	s = opened();
	h = source_histogram(s, step, "response");
	assert_non_null(h);
	assert_int_equal(hist_count(h), 1000);
	assert_null(source_histogram(s, step, "service"));
	assert_int_equal(s->unread_errno, 0);
	assert_null(source_histogram(s, step, "connect"));
	assert_int_equal(s->unread_errno, EINVAL);
	assert_string_equal(s->unread, "damaged.hlog");
	assert_int_equal(hist_count(source_histogram(s, step, "response")), 1000);
	source_close(s);
	json_decref(step);
}

TEST(histogram__older_runs__named_by_clients_repetition_and_size)
{
	json_t *step = json_pack("{s:i, s:i, s:i}", "target_clients", 50, "repetition", 2, "message_bytes", 4096);
	struct source *s;
	char name[64];

	report_rig_file(D, "run.json", "{\"schema_version\": 1, \"config\": {\"message_sizes\": [4096]}}");
	s = opened();
	assert_true(source_histogram_name(s, step, "connect", name, sizeof(name)));
	assert_string_equal(name, "step-00050-2-connect");
	assert_false(source_histogram_name(s, step, "service", name, sizeof(name)));
	source_close(s);
	report_rig_file(D, "run.json", "{\"schema_version\": 1, \"config\": {\"message_sizes\": [64, 4096]}}");
	s = opened();
	assert_true(source_histogram_name(s, step, "response", name, sizeof(name)));
	assert_string_equal(name, "step-00050-2-4096B-response");
	source_close(s);
	json_decref(step);
}

TEST(file__in_the_folder_or_not__told)
{
	struct source *s;

	report_rig_file(D, "run.json", "{\"schema_version\": 1}");
	report_rig_file(".", "beside", "");
	s = opened();
	assert_true(source_has_file(s, "run.json"));
	assert_false(source_has_file(s, "server.log"));
	assert_false(source_has_file(s, "../beside"));
	source_close(s);
}

TEST_EACH(report_rig_set_up, report_rig_tear_down)
