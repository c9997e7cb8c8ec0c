/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/results/summary.c: texts of a server on the terminal. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/config/config.h"
#include "loadgen/results/summary.h"

#define HOSTILE "bad\033]0;title\007\n\xc2\x9b" "31m"
#define SHOWN	"bad\\x1b]0;title\\x07"

/* What a server said last, a device's name, and what follows from its reports. */
TEST(print__texts_of_a_server__control_characters_shown)
{
	static struct loadgen_config cfg;
	struct outcome oc;
	json_t *run = json_pack("{s:[{s:i, s:[s], s:[{s:i, s:s, s:s, s:s}]}], s:[{s:s, s:i, s:s, s:s, s:s}]}", "steps",
				"target_clients", 10, "validity", HOSTILE, "failures", "count", 3, "stage", HOSTILE, "code",
				HOSTILE, "meaning", HOSTILE, "verdict", "result", "fail", "clients", 10, "criterion", HOSTILE,
				"measured", HOSTILE, "required", HOSTILE);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int shown = 0;

	assert_non_null(run);
	assert_non_null(out);
	cfg.steps.n = 1;
	cfg.steps.v[0] = cfg.clients = 10;
	outcome_init(&oc, &cfg);
	outcome_stop(&oc, STOP_SERVER_LOST, HOSTILE);
	summary_print(&oc, run, HOSTILE, out);
	fclose(out);
	assert_null(strpbrk(text, "\033\007\x9b"));
	for (const char *at = text; (at = strstr(at, SHOWN)); at++)
		shown++;
	assert_int_equal(shown, 9);
	outcome_clear(&oc);
	json_decref(run);
	free(text);
}

/* The terminal's text about a run of one step with this network. The caller's. */
static char *text_of(const char *network)
{
	static struct loadgen_config cfg;
	struct outcome oc;
	json_t *run = json_pack("{s:[{s:i, s:o}]}", "steps", "target_clients", 10, "network", json_loads(network, 0, NULL));
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(run);
	assert_non_null(out);
	cfg.steps.n = 1;
	cfg.steps.v[0] = cfg.clients = 10;
	outcome_init(&oc, &cfg);
	summary_print(&oc, run, "", out);
	fclose(out);
	outcome_clear(&oc);
	json_decref(run);
	return text;
}

TEST(print__a_device_that_counted_faults__a_line_each)
{
	char *text = text_of("{\"server\": {\"retransmits\": 3, \"rnr_naks_sent\": 0, \"out_of_sequence\": 2,"
			     " \"cnps_sent\": null}, \"generator\": {\"retransmits\": 0, \"rnr_naks_received\": null},"
			     " \"connecting\": {\"server\": null, \"generator\": {\"duplicate_requests\": 1}}}");

	assert_non_null(strstr(text, "    10 clients: device of the server: 3 sent again, 2 out of sequence\n"));
	assert_non_null(strstr(text, "    10 clients: while connecting, device of the generator: 1 requests twice\n"));
	assert_null(strstr(text, ": device of the generator"));
	free(text);
	/* One machine, one device: once. */
	text = text_of("{\"server\": {\"loopback\": true, \"retransmits\": 3},"
		       " \"generator\": {\"loopback\": true, \"retransmits\": 3}}");
	assert_non_null(strstr(text, "device of the server (both ends): 3 sent again\n"));
	assert_null(strstr(text, "device of the generator"));
	free(text);
}

/* A "-" stands with its reason, and so does a flag; a criterion that is not judged is counted apart. */
TEST(print__what_is_missing_or_doubtful__reasons_in_words)
{
	static const char *const lines[] = {
		"    10 clients: - is too few samples: connect p99 (10 of 299), response p99.9 (1200 of 2995)\n",
		"    10 clients: not_steady: throughput fell by 23 % over the measured time (10 % are allowed)\n",
		"    10 clients: littles_law_violated: throughput x mean round trip is 7.2 % less than the operations that clients keep",
		"    10 clients: clock_hole: a thread of the generator did not run for 1.5 s\n",
		"    10 clients: cpu_floor: a machine had less idle CPU than --cpu-floor\n",
		"one at a time        20.00        -    1.0  tls_handshake 12.000 (60 %)  ",
		"    10 clients      185.00        -    9.2  -  ",
		"  -         10 clients: connection time p50 not judged (emulated CPU: 185 ms) (required: under 1 ms)\n",
		"  1 of 1 criteria were not judged",
	};
	static struct loadgen_config cfg;
	struct outcome oc;
	json_t *step = json_pack("{s:i, s:{s:{s:i, s:f}}, s:{s:i, s:f, s:f, s:f}, s:{s:i, s:f, s:n}, s:f, s:f, s:[s, s, s, s]}",
				 "target_clients", 10, "connect_ns", "total", "count", 10, "p50", 185e6, "response_ns", "count",
				 1200, "p50", 1e6, "p95", 2e6, "p99", 3e6, "drift", "intervals", 20, "throughput_ratio", -0.23, "p99_ratio",
				 "littles_law_residual", 0.072, "clock_late_ns", 1.5e9, "validity", "not_steady",
				 "littles_law_violated", "clock_hole", "cpu_floor");
	json_t *run = json_pack("{s:[o], s:{s:{s:{s:{s:f}}, s:{s:{s:s, s:f, s:f}}}, s:n}, s:[{s:s, s:i, s:s, s:s, s:s}]}", "steps",
				step, "floor", "before", "connect_ns", "total", "p50", 20e6, "longest", "p50", "stage",
				"tls_handshake", "ns", 12e6, "ratio", 0.6, "after", "verdict", "result", "not_judged", "clients",
				10, "criterion", "connection time p50", "measured", "not judged (emulated CPU: 185 ms)", "required",
				"under 1 ms");
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(step);
	assert_non_null(run);
	assert_non_null(out);
	cfg.steps.n = 1;
	cfg.steps.v[0] = cfg.clients = 10;
	outcome_init(&oc, &cfg);
	summary_print(&oc, run, "somewhere", out);
	fclose(out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(text, lines[i]))
			fail_msg("there is no '%s' in\n%s", lines[i], text);
	outcome_clear(&oc);
	json_decref(run);
	free(text);
}
