/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/report/suite_report.c and suites/: what a hostile suite.json may cost. */
#include "tests/unit/helpers/unit.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "loadgen/report/suite_report.h"
#include "tests/unit/helpers/report_rig.h"

#define D REPORT_RIG_DIR

static const char *const figure_names[] = {
	"clients", "message_bytes", "connects_per_s", "connect_p50_ns", "connect_p99_ns", "connect_full_p50_ns",
	"connect_resumed_p50_ns", "server_cpu_ns_per_connection", "generator_cpu_ns_per_connection",
	"throughput_msgs_per_s", "throughput_bytes_per_s", "to_server_bytes_per_s", "from_server_bytes_per_s",
	"response_mean_ns",
	"response_p50_ns", "one_way_p50_ns", "response_p95_ns", "response_p99_ns", "response_p99_9_ns", "jitter_ratio",
	"churn_cycles_per_s", "churn_away_p50_ns", "server_cpu_ns_per_message", "generator_cpu_ns_per_message",
	"server_rss_bytes_per_client", "machine_kernel_bytes_per_client",
};

static unsigned long lookups;

/* In the place of jansson's. */
json_t *json_object_get(const json_t *object, const char *key)
{
	static json_t *(*real)(const json_t *, const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "json_object_get");
	lookups++;
	return real(object, key);
}

static json_t *figures(void)
{
	json_t *o = json_object();

	for (size_t i = 0; i < N_ELEMENTS(figure_names); i++)
		json_object_set_new(o, figure_names[i], json_integer((json_int_t)i + 1));
	return o;
}

/* n objects with nothing in them, and a last one that has all figures: to see that a figure is there takes all of
 * them. */
static json_t *nearly_empty(size_t n, json_t *last)
{
	json_t *a = json_array();

	while (n--)
		json_array_append_new(a, json_object());
	json_array_append_new(a, last);
	return a;
}

static json_t *entry(unsigned number, size_t empty_steps)
{
	return json_pack("{s:o, s:o, s:s, s:i, s:{s:s, s:[s, s], s:[i, i], s:b, s:b}, s:o}", "id",
			 json_sprintf("e%u", number), "title", json_sprintf("entry %u", number), "status", "ran",
			 "exit_status", 0, "options", "name", "a b", "compare", "x=1,2", "y=1,2", "steps", 1, 5,
			 "verify", 1, "quiet", 0,
			 "steps", nearly_empty(empty_steps, figures()));
}

static void write_json(const char *name, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);

	report_rig_file(D, name, text);
	free(text);
	json_decref(o);
}

/* Writes the report; how many values it looked up on the way. */
static unsigned long looked_up(void)
{
	char err[512] = "";

	lookups = 0;
	if (suite_report_write(D, err, sizeof(err)))
		fail_msg("%s", err);
	return lookups;
}

/* A file of 450 KB with such steps took more than a minute. */
TEST(steps__many__each_figure_looked_up_once)
{
	enum { N = 20000 };
	unsigned long n;

	write_json("suite.json", json_pack("{s:i, s:s, s:[o]}", "schema_version", 2, "id", "x", "entries",
					   entry(0, N)));
	n = looked_up();
	/* 512 rows of 23 figures, each looked for in all steps, would be 235 million. */
	if (n > 5000000)
		fail_msg("%lu lookups for %d steps", n, N);
	assert_non_null(strstr(report_rig_read(D, "report.md"),
			       "performance_test --name 'a b' --compare x=1,2 --compare y=1,2 "
								"--steps 1,5 --verify\n"));
}

TEST(alternatives__many__each_figure_looked_up_once)
{
	enum { N = 1000, OF_POINT = 16 };
	json_t *points = json_array();
	unsigned long n;

	for (int i = 0; i < N; i++)
		json_array_append_new(points, json_pack("{s:i, s:i, s:o}", "clients", 1, "message_bytes", i + 1,
							"figures",
			nearly_empty(OF_POINT - 1, i == N - 1 ? figures() : json_object())));
	write_json("suite.json", json_pack("{s:i, s:[{s:{s:s, s:o}}]}", "schema_version", 2, "entries", "comparison",
					   "baseline", "b", "points", points));
	n = looked_up();
	/* 8,192 rows of 23 figures, each looked for in all points, would be 3,000 million. */
	if (n > 20000000)
		fail_msg("%lu lookups for %d points of %d alternatives", n, N, OF_POINT);
}

TEST(need__of_transports__sentence_limits_and_rounds)
{
	json_t *need = json_pack("{s:s, s:f, s:s, s:[{s:s, s:i, s:i, s:i, s:n, s:f, s:f, s:f, s:[{s:i, s:i, s:s, s:n}, "
				 "{s:i, s:i, s:s, s:s}]}]}", "slo", "p99<1ms", "cpu_hour_price", 0.04, "sentence",
				 "TCP is it.", "alternatives", "name", "tcp", "message_bytes", 64, "met_up_to_clients",
				 100, "missed_from_clients", 200, "not_known_clients", "cpu_ns_per_op", 12345.,
				 "ops_per_client_s", 7., "cost_per_client_month", 0.25, "steps", "clients", 100,
				 "met_rounds", 2, "result", "met", "reason", "clients", 150, "met_rounds", 1, "result",
				 "not_known", "reason", "disturbed in 2 of 3 rounds");

	write_json("suite.json", json_pack("{s:i, s:[{s:s, s:{s:s, s:i, s:o}}]}", "schema_version", 2, "entries", "id",
					   "e", "comparison", "baseline", "b", "rounds", 3, "need", need));
	looked_up();
	report_rig_look(D, "need", "TCP is it.", NULL);
	assert_true(report_rig_has_row(D, "e_need", "tcp,64,100,200,12.345,"));
	assert_true(report_rig_has_row(D, "e_need", ",0.25"));
	assert_true(report_rig_has_row(D, "e_need_steps", "tcp,64,100,2 of 3,met,"));
	assert_true(report_rig_has_row(D, "e_need_steps", "tcp,64,150,1 of 3,not known,disturbed in 2 of 3 rounds"));
}

/* 600,000 steps in 300 entries took 1.2 GB of memory. */
TEST(entries_and_rows__more_than_any_suite_has__cut_off_and_said)
{
	json_t *entries = json_array();
	size_t lines = 0, bytes;
	char *text;

	for (unsigned i = 0; i < 300; i++)
		json_array_append_new(entries, entry(i, 600));
	write_json("suite.json", json_pack("{s:i, s:s, s:o}", "schema_version", 2, "id", "x", "entries", entries));
	looked_up();
	assert_int_equal(path_read(D "/report.md", 64 << 20, &text, &bytes), 0);
	assert_non_null(strstr(text, "suite.json has 300 entries, and a suite has at most 64"));
	assert_non_null(strstr(text, "the last tables are cut off"));
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	assert_in_range(lines, 16384, 16384 + 64 * 200);
	assert_non_null(strstr(text, "entry 63\n"));
	assert_null(strstr(text, "entry 64\n"));
	free(text);
}

TEST(file__dense__refused_before_it_is_parsed)
{
	enum { BYTES = 6 * 1000 * 1000 };
	char *text = malloc(BYTES + 20), err[512] = "", *p = stpcpy(text, "{\"entries\":[{}");

	while (p < text + BYTES)
		p = stpcpy(p, ",{}");
	strcpy(p, "]}");
	report_rig_file(D, "suite.json", text);
	assert_true(suite_report_write(D, err, sizeof(err)) < 0);
	assert_non_null(strstr(err, "/suite.json: would take about "));
	free(text);
}

TEST(folder__of_an_older_comparison__refused_with_what_to_do)
{
	char err[512] = "";

	report_rig_file(D, "compare.json", "{\"schema_version\": 3}");
	assert_true(suite_report_write(D, err, sizeof(err)) < 0);
	assert_non_null(strstr(err, "/compare.json: an older version of performance_test wrote it"));
}

TEST_EACH(report_rig_set_up, report_rig_tear_down)
