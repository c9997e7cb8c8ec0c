/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of report_summary: the lines on the terminal at a run's end. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/report/report.h"

#define HOSTILE "bad\033]0;title\007\n\xc2\x9b" "31m"
#define SHOWN	"bad\xef\xbf\xbd]0;title\xef\xbf\xbd"

/* Returns the summary, which the caller frees. */
static char *summary_of(const json_t *run, const char *where)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(run);
	assert_non_null(out);
	assert_int_equal(report_summary(run, where, out), 0);
	fclose(out);
	return text;
}

static void expect_lines(const char *text, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strstr(text, lines[i]))
			fail_msg("there is no '%s' in\n%s", lines[i], text);
}

/* The server's last words, a device's name, and texts from its reports. */
TEST(summary__texts_of_a_server__no_control_characters)
{
	json_t *run = json_pack("{s:{s:s, s:s}, s:[{s:i, s:[s], s:[{s:i, s:s, s:s, s:s}]}], s:[{s:s, s:i, s:s, s:s, "
				"s:s}]}", "run", "stop_reason", "server_lost", "stop_detail", HOSTILE, "steps",
				"target_clients", 10, "validity", HOSTILE, "failures", "count", 3, "stage", HOSTILE,
				"code",
				HOSTILE, "meaning", HOSTILE, "verdict", "result", "fail", "clients", 10, "criterion",
				HOSTILE, "measured", HOSTILE, "required", HOSTILE);
	char *text = summary_of(run, HOSTILE);
	int shown = 0;

	assert_null(strpbrk(text, "\033\007"));
	assert_null(strstr(text, "\xc2\x9b"));
	for (const char *at = text; (at = strstr(at, SHOWN)); at++)
		shown++;
	assert_int_equal(shown, 8);
	json_decref(run);
	free(text);
}

/* A step of the run below, with doubtful figures. */
static json_t *step_of(int clients)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:{s:{s:i, s:f}}, s:f, s:{s:i, s:f, s:f, s:f}, s:{s:{s:f, s:f, s:f}}, "
			 "s:[s, s]}",
			 "target_clients", clients, "connected_held", clients - 1, "failed", 1, "dropped", 2,
			 "connect_ns", "total",
			 "count", 10, "p50", 185e6, "throughput_msgs_per_s", 1234.4, "response_ns", "count", 1200,
			 "p50", 1e6, "p95", 2e6,
			 "p99", 3e6, "resources", "server", "cpu_user_s", 0.5, "cpu_system_s", 0.25, "window_s", 1.5,
			 "validity", "too_short", "cpu_floor");
}

TEST(summary__figures_and_doubts__a_table_and_a_line_for_all_steps)
{
	static const char *const lines[] = {
		"                       connect          response  response  server\n"
		"clients  held  failed      p50  msgs/s       p50       p99     CPU\n"
		"                            ms                us        us       %\n"
		"     10     9       3   185.00   1,234     1,000     3,000      50\n"
		"    100    99       3   185.00   1,234     1,000     3,000      50\n",
		("  10, 100 clients: measured for too short a time, or too noisy, to tell whether it was steady; a "
		 "longer --duration helps\n"),
		"  10, 100 clients: a machine had less idle CPU than --cpu-floor\n",
		"  10, 100 clients: fewer than 299 connections: no p99 of connecting (a p50 takes 5)\n",
		"  10, 100 clients: fewer than 2,995 operations: no p99.9 of responses (a p99 takes 299, a p50 5)\n",
		"\nVerdict (somewhere)\n",
		("  -         10 clients: connection time p50 not judged (emulated CPU: 185 ms) "
		 "(required: under 1 ms)\n"),
		"  1 of 1 criteria were not judged",
		"\nStopped: max_reached\n",
	};
	json_t *run = json_pack("{s:{s:s, s:s}, s:[o, o], s:[{s:s, s:i, s:s, s:s, s:s}]}", "run", "stop_reason",
				"max_reached",
				"stop_detail", "", "steps", step_of(10), step_of(100), "verdict", "result",
				"not_judged", "clients",
				10, "criterion", "connection time p50", "measured", "not judged (emulated CPU: 185 ms)",
				"required", "under 1 ms");
	char *text = summary_of(run, "somewhere");

	expect_lines(text, lines, sizeof(lines) / sizeof(lines[0]));
	assert_null(strstr(text, "Capacity"));
	json_decref(run);
	free(text);
}

TEST(summary__search__its_three_capacities)
{
	static const char *const lines[] = {
		"\nobjective met (SLO)              80       80        –  2 of 2  yes        80 met it\n",
		"\nknee                             50        –        –       –  no         it fell\n",
		"\nfirst hard failure   none up to 100      100        –       –  –          nothing broke\n",
	};
	json_t *run = json_pack("{s:{s:s, s:b}, s:{s:{s:{s:i, s:i, s:b, s:i, s:i, s:s}, s:{s:i, s:s}, s:{s:b, s:i, "
				"s:s}}},"
				" s:[o]}", "config", "slo", "p99<1ms", "find_capacity", 1, "analysis", "capacity",
				"slo_capacity", "clients", 80, "low", 80,
				"confirmed", 1, "passes", 2, "tries", 2, "reason", "80 met it", "knee",
				"clients", 50, "text", "it fell", "first_hard_failure", "at_least", 1, "low", 100,
				"reason", "nothing broke", "steps", step_of(80));
	char *text = summary_of(run, "");

	expect_lines(text, lines, sizeof(lines) / sizeof(lines[0]));
	json_decref(run);
	free(text);
}

/* All steps of a sweep have the same clients, so each rate has a row. */
TEST(summary__sweep__a_row_for_each_rate)
{
	static const char *const lines[] = {
		"clients  offered", "     10    1,000     9       3", "     10    2,000     9       3",
		"  1000, 2000/s: a machine had less idle CPU than --cpu-floor\n",
		"  10 clients, 64 bytes: knee at 1000/s: it is there\n",
		"  SLO rate 1500/s: 1500 met it (confirmed)\n",
	};
	json_t *run = json_pack("{s:[o, o], s:{s:{s:{s:f, s:b, s:s}, s:[{s:i, s:i, s:{s:f, s:s}}]}}}", "steps",
				step_of(10), step_of(10),
				"analysis", "offered_load", "slo_rate", "per_s", 1500., "confirmed", 1, "reason",
				"1500 met it",
				"curves", "clients", 10, "message_bytes", 64, "knee", "per_s", 1000., "text",
				"it is there");
	char *text;

	for (int i = 0; i < 2; i++)
		json_object_set_new(json_array_get(json_object_get(run, "steps"), (size_t)i), "offered_per_s",
				    json_real(1000. * (i + 1)));
	text = summary_of(run, "");
	expect_lines(text, lines, sizeof(lines) / sizeof(lines[0]));
	json_decref(run);
	free(text);
}

TEST(summary__queue_pairs_of_a_client__said_if_they_are_several)
{
	for (int n = 1; n <= 2; n++) {
		json_t *run = json_pack("{s:[], s:{s:i}}", "steps", "config", "qps", n);
		char *text = summary_of(run, "");

		assert_int_equal(n > 1, strstr(text, "Each client sends over 2 queue pairs (--qps).\n") != NULL);
		json_decref(run);
		free(text);
	}
}

TEST(summary__plan__a_line_of_what_was_missed)
{
	json_t *run = json_pack("{s:[], s:{s:i, s:[{s:s, s:s, s:s, s:i, s:i, s:f}, {s:s, s:s, s:s, s:i, s:i, s:f},"
				" {s:s, s:s, s:i, s:n, s:n}]}}", "steps", "plan", "clients", 10, "rows",
				"resource", "fds", "what", "descriptors", "side", "server", "needed", 38, "used", 28,
				"ratio", 38 / 28.,
				"resource", "rss_bytes", "what", "resident memory", "side", "generator", "needed",
				80 << 20, "used", 100 << 20, "ratio", 0.8,
				"resource", "ports", "side", "generator", "needed", 11, "used", "ratio");
	char *text = summary_of(run, "");

	assert_non_null(strstr(text, "Off the plan by more than 15 %: resident memory (load generator): 80 MiB "
				     "planned, 100 MiB used.\n"));
	json_decref(run);
	free(text);
}
