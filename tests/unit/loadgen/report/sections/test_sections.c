/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the report's sections: their statements and figures for handmade runs. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/limits.h"
#include "loadgen/report/report.h"
#include "tests/unit/helpers/analysis_run.h"
#include "tests/unit/helpers/report_rig.h"

#define D REPORT_RIG_DIR

static json_t *run;

static int set_up(void **state)
{
	run = analysis_run();
	return report_rig_set_up(state);
}

static int tear_down(void **state)
{
	json_decref(run);
	return report_rig_tear_down(state);
}

static void set(const char *path, json_t *v)
{
	analysis_run_set(run, path, v);
}

/* Sets a value in the step with this index. */
static void set_in_step(size_t k, const char *path, json_t *v)
{
	analysis_run_set(analysis_run_step(run, k), path, v);
}

static void set_capacity(const char *which, json_t *v)
{
	char path[64];

	snprintf(path, sizeof(path), "analysis.capacity.%s", which);
	set(path, v);
}

/* The statement must name the limit that ends first, which is the first row of the table, and its number of clients. */
static void expect_first_limit(const char *id)
{
	json_t *limits = limits_analysis(run), *first = json_array_get(limits, 0);
	char at[32];

	assert_string_equal(json_text_at(first, "resource"), "max_qp");
	assert_string_equal(json_text_at(first, "side"), "both");
	snprintf(at, sizeof(at), "%.0f", json_number_at(first, "projected_clients"));
	assert_int_equal(strlen(at), 4);
	memmove(at + 2, at + 1, 4);
	at[1] = ',';
	report_rig_expect(run, id, at, NULL);
	json_decref(limits);
}

TEST(how_many__nothing_failed__at_least_the_most_held)
{
	report_rig_expect(run, "clients-all-held", "100", "100", NULL);
}

/* An older run has no tries of the upper end. */
TEST(how_many__objective_confirmed__that_interval_and_what_it_rests_on)
{
	set("config.slo", json_string("p99<1ms"));
	set_capacity("slo_capacity",
		     json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:i, s:s}", "clients", 80, "low", 80, "high", 84,
			       "at_least", 0, "confirmed", 1, "passes", 2, "tries", 3, "reason", "why"));
	report_rig_expect(run, "clients-met", "80", "84", "80", "p99<1ms", "2", "3", "84", NULL);
	report_rig_expect_row(run, "capacities", ",80,80,84,2 of 3,yes,why");
}

static json_t *interval(json_t *between, bool confirmed, int unsteady, const char *capped_by)
{
	return json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:i, s:s, s:{s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:i}, "
			 "s:b, s:s?, s:o}", "clients", 80, "low", 80, "high", 100, "at_least", 0, "confirmed",
			 confirmed, "passes", 5, "tries", 5, "reason", "why", "lower", "clients", 80, "met", 5,
			 "tries", 5, "unsteady", unsteady, "upper", "clients", 100, "missed", 6, "tries", 6,
			 "unsteady", 1, "scatters", json_array_size(between) > 0, "capped_by", capped_by, "between",
			 between);
}

TEST(how_many__tries_scatter__interval_with_the_tries_in_between)
{
	set("config.slo", json_string("p99<1ms"));
	set_capacity("slo_capacity", interval(json_pack("[{s:i, s:i, s:i}, {s:i, s:i, s:i}]", "clients", 85,
							"met", 2, "tries", 3, "clients", 90, "met", 1, "tries", 4),
					      true, 0, NULL));
	report_rig_expect(run, "clients-met", "80", "100", "80", "p99<1ms", "5", "5", "100", "missed in 6 of 6",
			  "In between, tries disagree (85 met it in 2 of 3, 90 met it in 1 of 4)", NULL);
}

TEST(how_many__tries_were_not_steady__not_confirmed_and_why)
{
	set_capacity("slo_capacity", interval(json_array(), false, 3, NULL));
	report_rig_expect(run, "clients-met-unconfirmed", "80", "100",
			  "not confirmed: 4 of these tries were not steady", NULL);
}

/* The limit is neither the step that missed the objective nor the one that broke, but the server's setting; and the
 * smallest step that lost a client is named although it held 99 %. */
TEST(how_many__server_full__its_limit_is_the_answer)
{
	set("server_config.max_clients", json_integer(99));
	set_capacity("slo_capacity", interval(json_array(), true, 0, "max_clients"));
	set_capacity("first_hard_failure",
		     json_pack("{s:i, s:i, s:i, s:b, s:{s:s, s:s, s:s}}", "clients", 150, "low", 80, "high", 150,
			       "confirmed", 1, "failure", "resource", "max_clients", "side", "server", "text", "full"));
	report_rig_expect(run, "clients-met", "80", "100", "99 is the server's own limit (--max-clients)", NULL);
	report_rig_expect(run, "breaks-max_clients", "99", "full", NULL);
	report_rig_expect(run, "limiting-max_clients", "99", NULL);
}

TEST(what_breaks__objective_before_clients__smallest_step_that_lost_one)
{
	set_capacity("slo_capacity", interval(json_array(), true, 0, NULL));
	set_capacity("first_hard_failure",
		     json_pack("{s:i, s:i, s:i, s:b, s:{s:s, s:s, s:s}}", "clients", 150, "low", 100, "high", 150,
			       "confirmed", 1, "failure", "resource", "max_clients", "side", "server", "text", "full"));
	set_in_step(2, "slo", json_pack("[{s:s, s:s, s:f, s:s}]", "expression", "p99<1us", "unit", "ns", "measured",
					19900., "result", "fail"));
	set_in_step(2, "connected_held", json_integer(99));
	set_in_step(2, "failures", json_pack("[{s:s, s:s, s:i}]", "stage", "psn_exchange", "code", "refused:full",
					     "count", 1));
	report_rig_expect(run, "breaks-objective", "p99<1us", "100",
			  "The smallest step in which clients failed had 100: 99 were held (refused:full)", NULL);
}

TEST(how_many__objective_met_to_the_end__at_least)
{
	set("config.slo", json_string("p99<1ms"));
	set_capacity("slo_capacity", json_pack("{s:i, s:i, s:n, s:b, s:b}", "clients", 100, "low", 100, "high",
					       "at_least", 1, "confirmed", 1));
	report_rig_expect(run, "clients-met-to-the-end", "100", "100", "p99<1ms", NULL);
}

TEST(how_many__objective_missed_by_all__fewer)
{
	set("config.slo", json_string("p99<1us"));
	set_in_step(0, "slo",
		    json_pack("[{s:s, s:s, s:s, s:f, s:f, s:s}]", "expression", "p99<1us", "metric", "response_p99",
			      "unit", "ns", "limit", 1000., "measured", 19900., "result", "fail"));
	set_capacity("slo_capacity", json_pack("{s:n, s:n, s:i, s:b, s:b}", "clients", "low", "high", 10, "at_least", 0,
					       "confirmed", 0));
	report_rig_expect(run, "clients-missed", "10", "10", "p99<1us", NULL);
	report_rig_expect(run, "breaks-objective", "p99<1us", "10", "19.9 us", NULL);
}

TEST(how_many__objective_undecided__not_known)
{
	set("config.slo", json_string("p99<1us"));
	set_capacity("slo_capacity", json_pack("{s:n, s:n, s:i, s:b, s:b}", "clients", "low", "high", 10, "at_least", 0,
					       "confirmed", 0));
	report_rig_expect(run, "clients-undecided", "p99<1us", "10", NULL);
}

TEST(how_many__no_objective__most_held_and_the_knee)
{
	set_capacity("knee",
		     json_pack("{s:i, s:i, s:i, s:b, s:b, s:s, s:s}", "clients", 50, "low", 50, "high", 100, "at_least",
			       0, "confirmed", 0, "reason", "throughput", "text", "it hardly grew"));
	report_rig_expect(run, "clients-all-held", "100", "100", "50", "it hardly grew", NULL);
	report_rig_expect(run, "breaks-knee", "100", "50", "it hardly grew", NULL);
}

TEST(how_many__some_were_lost__between)
{
	set_in_step(2, "connected_held", json_integer(90));
	report_rig_expect(run, "clients-between", "50", "100", "50", "100", NULL);
}

TEST(what_breaks__hard_failure__its_resource_side_and_remedy)
{
	set_capacity("first_hard_failure",
		     json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:i, s:{s:s, s:s, s:s, s:s}, s:s}", "clients", 100,
			       "low", 50, "high", 100, "at_least", 0, "confirmed", 1, "passes", 2, "tries", 2,
			       "failure", "resource", "nofile", "side", "server", "text", "10 failed", "meaning",
			       "Raise it", "reason", "10 failed"));
	report_rig_expect(run, "breaks-nofile", "server", "100", "10 failed", "Raise it", "2", "2", NULL);
	report_rig_expect(run, "limiting-nofile", "server", "100", NULL);
}

TEST(what_breaks__lost_clients_of_an_older_run__the_failure_of_the_smallest_step)
{
	set_in_step(1, "connected_held", json_integer(45));
	set_in_step(1, "failures",
		    json_pack("[{s:s, s:s, s:i, s:s}]", "stage", "tls_handshake", "code", "timeout", "count", 5,
			      "meaning", "No answer in time."));
	report_rig_expect(run, "breaks-lost-clients", "timeout", "tls_handshake", "50", "45", "No answer in time",
			  NULL);
}

TEST(what_breaks__nothing__the_first_limit_by_projection)
{
	report_rig_expect(run, "breaks-nothing", "100", NULL);
	report_rig_expect(run, "breaks-nothing", "100", "95 %", NULL);
	expect_first_limit("breaks-nothing");
}

TEST(what_to_buy__twice_the_capacity__hosts_with_headroom)
{
	/* 200 clients; a host of 100 takes 70 of them. */
	report_rig_expect(run, "buy-servers", "3", "200", "67", "30 %", "100", NULL);
}

TEST(verdict__badges__what_to_know_before_reading)
{
	set_in_step(1, "validity", json_pack("[s, s, i]", "generator_saturated", "not_steady", 5));
	set("environment.clients.is_emulated_cpu", json_true());
	report_rig_expect(run, "badge-software", NULL);
	report_rig_expect(run, "badge-emulated", NULL);
	report_rig_expect(run, "badge-one-machine", NULL);
	report_rig_expect(run, "badge-generator_saturated", "1", "3", NULL);
	report_rig_expect(run, "generator-limit", "50", NULL);
}

/* With several load hosts, those at their limit are named, and the page says "add hosts" where it has no number. */
TEST(hosts__one_saturated__named_with_add_hosts)
{
	set("hosts", json_pack("[{s:s, s:[]}, {s:s, s:[{s:i, s:i, s:{s:f, s:f}}], s:{s:f, s:s}}]", "name", "load1",
			       "steps",
			       "name", "load2", "steps", "step", 2, "share", 7, "own", "throughput_msgs_per_s", 70.,
			       "connected_held", 7., "lost", "at_s", 9.5, "why", "its lease ended"));
	report_rig_expect(run, "hosts-not-saturated", NULL);
	for (size_t k = 0; k < 3; k++) {
		set_in_step(k, "saturated_hosts", json_pack("[i]", 1));
		set_in_step(k, "validity", json_pack("[s]", "generator_saturated"));
	}
	report_rig_expect(run, "hosts-saturated", "load2", "add hosts", NULL);
	report_rig_expect(run, "hosts-limit", "load2", "Add hosts", NULL);
	report_rig_expect(run, "hosts-lost-1", "load2", "9.5", "its lease ended", NULL);
	report_rig_expect(run, "hosts-no-spread", NULL);
	report_rig_expect(run, "badge-generator_saturated", "load2", NULL);
	report_rig_expect(run, "clients-held-add-hosts", "Add hosts", "load2", NULL);
}

TEST(verdict__criteria_of_repetitions__the_worst_and_how_many_passed)
{
	json_t *v = json_array();

	for (int i = 0; i < 3; i++)
		json_array_append_new(v, json_pack("{s:i, s:i, s:i, s:s, s:s, s:s, s:s}", "clients", 10,
						   "message_bytes", 64, "repetition", i + 1, "criterion",
						   "success rate", "required", "100 %", "measured",
						   i == 1 ? "90 %" : "100 %", "result", i == 1 ? "fail" : "pass"));
	set("verdict", v);
	report_rig_expect(run, "criteria-count", "0", "1", "1", "0", NULL);
	report_rig_expect_row(run, "criteria", "10,success rate,100 %,90 %,fail,2 of 3");
	report_rig_expect(run, "badge-fail", NULL);
}

/* Tells those who repeat the run later when the server's certificate expires. */
TEST(environment__servers_certificate__its_end)
{
	set("environment.server.certificate_expires_at", json_string("2027-02-25T10:00:00Z"));
	report_rig_expect_row(run, "environment", "certificate expires,2027-02-25T10:00:00Z,n/a");
}

TEST(verdict__aborted__said)
{
	set("run",
	    json_pack("{s:s, s:s, s:s}", "status", "aborted", "stop_reason", "aborted", "stop_detail", "SIGINT"));
	report_rig_expect(run, "end-early", "SIGINT", NULL);
}

TEST(throughput__of_three_steps__growth_in_words_and_no_fit)
{
	report_rig_expect(run, "throughput-growth", "10", "100", "1,000", "4,000", "4", "10", "4,000", "100", NULL);
	report_rig_expect(run, "fit-few", "4", "3", NULL);
	report_rig_expect_none(run, "fit");
}

TEST(throughput__that_passes_a_peak__peak_in_words)
{
	static const int clients[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };

	json_array_clear(json_object_get(run, "steps"));
	for (size_t i = 0; i < N_ELEMENTS(clients); i++) {
		double n = clients[i];

		analysis_run_add(run, clients[i], 1000 * n / (1 + 0.02 * (n - 1) + 0.0002 * n * (n - 1)));
		analysis_run_set(analysis_run_step(run, i), "active", json_integer(clients[i]));
	}
	/* sqrt((1 - 0.02) / 0.0002) = 70 */
	report_rig_expect(run, "fit-peak", "70", "70", "70", NULL);
	report_rig_expect(run, "fit", NULL);
}

TEST(throughput__active__no_fit_only_where_more_were_connected)
{
	set("config.active", json_integer(100));
	report_rig_expect(run, "fit-few", NULL);
	set("config.active", json_integer(99));
	report_rig_expect(run, "fit-active", NULL);
	report_rig_expect_none(run, "fit-few");
}

TEST(throughput__repetitions__median_with_range)
{
	analysis_run_add(run, 100, 3900);
	analysis_run_add(run, 100, 5000);
	report_rig_expect_row(run, "throughput", "100,3,4000,3900,5000,");
}

TEST(throughput__one_number_of_clients__no_growth)
{
	json_array_remove(json_object_get(run, "steps"), 2);
	json_array_remove(json_object_get(run, "steps"), 1);
	report_rig_expect(run, "throughput-single", "10", "1,000", NULL);
	report_rig_expect(run, "slopes-none", NULL);
}

TEST(throughput__idle_workload__says_so_without_a_chart)
{
	set("config.workload", json_string("idle"));
	for (size_t i = 0; i < 3; i++) {
		set_in_step(i, "throughput_msgs_per_s", json_null());
		set_in_step(i, "response_ns", json_object());
	}
	report_rig_expect(run, "throughput-none", NULL);
	report_rig_expect(run, "latency-none", NULL);
	report_rig_expect_none(run, "throughput-chart");
}

TEST(latency__steps__first_and_last_in_words)
{
	report_rig_expect(run, "latency-p50", "10", "10 us", "100", "100 us", NULL);
	report_rig_expect(run, "latency-p99", "19.9 us", "199 us", "10", "10", NULL);
}

TEST(latency__several_sizes__a_row_for_each)
{
	set("config.message_sizes", json_pack("[i, i]", 64, 4096));
	set_in_step(2, "message_bytes", json_integer(4096));
	report_rig_expect_row(run, "latency", "10,64,10,19.5,19.9,");
	report_rig_expect_row(run, "latency", "100,4096,100,195,199,");
	report_rig_expect(run, "latency-p50-2", "4 KiB", NULL);
}

TEST(distribution__histogram_beside_it__jitter_and_spectrum)
{
	set_in_step(2, "histograms", json_pack("{s:s}", "response", "h"));
	report_rig_histogram(D, "h", 3000, 1000);
	report_rig_expect(run, "jitter", "100", "3,000", "1.50 ms", "99 %", "2.97 ms", "3 ms", "2", NULL);
	report_rig_expect_row(run, "spectrum", "99.9,299");
	assert_false(report_rig_has_row(D, "spectrum", "99.99,"));
}

TEST(distribution__no_histograms__says_so)
{
	report_rig_expect(run, "distribution-none", NULL);
}

TEST(stages__one_takes_most__named)
{
	set_in_step(2, "connect_ns",
		    json_pack("{s:{s:i}, s:{s:i}, s:{s:i}}", "total", "p50", 40000000, "tls_handshake", "p50", 30000000,
			      "tcp_connect", "p50", 10000000));
	report_rig_expect(run, "stages-longest", "100", "40 ms", "75 %", "tls_handshake", "30 ms", NULL);
	report_rig_expect(run, "stages-p99-none", NULL);
}

TEST(psns__of_two_steps__sums_of_the_run)
{
	for (int k = 1; k < 3; k++) {
		set_in_step(k, "psns", json_pack("{s:i, s:i, s:i, s:i, s:i}", "exchanged", 10000, "distinct", 10000,
						 "redrawn", 2, "server_redrawn", 1, "mismatches", 0));
		set_in_step(k, "psn_verified", json_integer(5000));
	}
	report_rig_expect(run, "psns", "20,000", "all distinct", "6", "20,000", NULL);
	analysis_run_set(analysis_run_step(run, 2), "psns.distinct", json_integer(9998));
	report_rig_expect(run, "psns", "20,000", "2", "6", "20,000", NULL);
	assert_true(report_rig_has_row(D, "psns", "10000,9998,2,1,5000,"));
}

TEST(psns__older_run__says_nothing)
{
	report_rig_expect_none(run, "psns");
}

TEST(time__samples__rates_between_them)
{
	report_rig_file(D, "events.ndjson",
			"{\"t\": 1, \"event\": \"sample\", \"clients\": 100, \"connected\": 0, \"connects\": 0}\n"
			"{\"t\": 1.25, \"event\": \"sample\", \"clients\": 100, \"connected\": 50, \"connects\": 50}\n"
			"{\"t\": 1.5, \"event\": \"sample\", \"clients\": 100, \"connected\": 60, \"connects\": "
			"60}\nbroken");
	report_rig_expect(run, "time-most", "1.5 s", "60", "1.2 s", "200", NULL);
	report_rig_expect(run, "events-damaged", "1", NULL);
}

TEST(time__older_run__says_that_it_has_none)
{
	report_rig_expect(run, "events-none", NULL);
	report_rig_file(D, "events.ndjson", "{\"t\": 1, \"event\": \"phase\", \"phase\": \"connecting\"}\n");
	report_rig_expect(run, "samples-none", NULL);
}

TEST(failures__none__up_to_where)
{
	report_rig_expect(run, "failures-none", "100", NULL);
}

TEST(failures__of_several_kinds__the_most_frequent_in_words)
{
	set_in_step(1, "failures",
		    json_pack("[{s:s, s:s, s:i, s:s}, {s:s, s:s, s:i}]", "stage", "tcp_connect", "code", "errno:EMFILE",
			      "count", 9, "meaning", "raise ulimit -n", "stage", "traffic", "code", "timeout", "count",
			      1));
	report_rig_expect(run, "failures-most", "10", "50", "90 %", "errno:EMFILE", "tcp_connect", "raise ulimit -n",
			  NULL);
}

TEST(resources__steps_on_a_line__its_slope)
{
	report_rig_expect(run, "slopes-said", "39.1 KiB", "1", "19.1 MiB", NULL);
	report_rig_expect(run, "cpu-used", "100", "0.80", "2", "0.80", NULL);
}

TEST(resources__plan__beside_what_was_used)
{
	report_rig_expect(run, "planned-none", NULL);
	json_object_set_new(run, "plan", json_pack("{s:i, s:[{s:s, s:s, s:s, s:i, s:i, s:f}, {s:s, s:s, s:i, s:n}]}",
						   "clients", 100, "rows", "resource", "rss_bytes", "what",
						   "resident memory", "side", "server", "needed", 30 << 20, "used",
						   20 << 20, "ratio", 1.5,
						   "resource", "ports", "side", "generator", "needed", 11, "used"));
	report_rig_expect(run, "planned-said", "100", "15 %", "30 MiB", "20 MiB", NULL);
	report_rig_expect_row(run, "planned", "resident memory,server,");
	assert_false(report_rig_has_row(REPORT_RIG_DIR, "planned", "ports"));
}

static json_t *network_side(bool loopback, int retransmits)
{
	json_t *port = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:f}", "device", "dev0", "netdev",
				 "eth0",
				 "bytes_source", "netdev", "bytes_out", 30000000, "bytes_in", 20000000, "packets_out",
				 3000,
				 "packets_in", 2000, "retransmits", retransmits, "line_bits_per_s", 25e9, "used_ratio",
				 0.0096);

	return json_pack("{s:b, s:s, s:i, s:f, s:f, s:f, s:[o]}", "loopback", loopback, "bytes_source",
			 loopback ? "loopback" : "netdev", "retransmits", retransmits, "bytes_out_per_s", 30e6,
			 "bytes_in_per_s", 20e6, "used_ratio", 0.0096, "ports", port);
}

TEST(network__of_a_wire__rates_faults_and_ports)
{
	report_rig_expect(run, "network-none", NULL);
	set_in_step(2, "network", json_pack("{s:o, s:n}", "server", network_side(false, 0), "generator"));
	report_rig_expect(run, "network-said", "100", "30.00 MB", "20.00 MB", "1.0 %", NULL);
	report_rig_look(D, "network-shared", NULL);
	report_rig_look(D, "network-clean", NULL);
	assert_true(report_rig_has_row(D, "network", "100,server,dev0,eth0,netdev,30,20,3000,2000,0"));
	set_in_step(2, "network", json_pack("{s:o, s:o}", "server", network_side(false, 7), "generator",
					    network_side(false, 5)));
	report_rig_expect(run, "network-faults", "12", NULL);
	/* One device on one machine: its counters count only once. */
	set_in_step(2, "network", json_pack("{s:o, s:o}", "server", network_side(true, 7), "generator",
					    network_side(true, 7)));
	report_rig_expect(run, "network-faults", "7", NULL);
	report_rig_look(D, "network-loopback", NULL);
}

TEST(network__damaged__no_crash)
{
	static const char *const texts[] = { "7", "[]", "{\"server\": 5}", "{\"server\": {\"ports\": 5}}",
		("{\"server\": {\"ports\": [5, {}, {\"device\": 3, \"bytes_out\": \"x\", \"retransmits\": -1}], "
		 "\"used_ratio\": {}}}") };

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		set_in_step(2, "network", json_loads(texts[i], JSON_DECODE_ANY, NULL));
		report_rig_make(run);
	}
}

TEST(limits__of_a_run__first_to_end)
{
	expect_first_limit("limits-first");
	report_rig_expect_row(run, "limits", "nofile,server,21,\"1,024\",2.05");
}

TEST(checks__residual__within_or_beyond)
{
	set_in_step(0, "littles_law_residual", json_real(0.004));
	report_rig_expect(run, "littles-law-holds", "0.4 %", NULL);
	set_in_step(1, "littles_law_residual", json_real(-0.2));
	report_rig_expect(run, "littles-law-violated", "20 %", NULL);
}

TEST(checks__open_loop__schedule)
{
	set_in_step(2, "schedule_lag_ns", json_pack("{s:i, s:i, s:i}", "p50", 2000, "p99", 900000, "max", 3000000));
	set_in_step(2, "sent_late", json_integer(7));
	report_rig_expect(run, "lag-said", "100", "2 us", "99 %", "900 us", "7", NULL);
}

TEST(plan__rows__measured_or_extrapolated)
{
	report_rig_expect(run, "plan-capacity", "100", "30 %", NULL);
	report_rig_expect_row(run, "plan", "\"extrapolated, 10 x\"");
}

TEST(origin__argv__quoted_for_a_shell)
{
	set("run", json_pack("{s:[s, s, s, s]}", "argv", "performance_test", "--slo", "p99<1ms", "it's"));
	report_rig_make(run);
	assert_non_null(strstr(report_rig_read(D, "report.md"), "\nperformance_test --slo 'p99<1ms' 'it'\\''s'\n"));
	assert_non_null(strstr(report_rig_read(D, "report.md"), "\nperformance_test report run\n"));
}

/* Makes the three steps a sweep with one number of clients, at 1,000, 2,000 and 4,000 operations a second. */
static void make_sweep(const double p99_us[3], const double achieved[3])
{
	for (size_t k = 0; k < 3; k++) {
		set_in_step(k, "target_clients", json_integer(10));
		set_in_step(k, "offered_per_s", json_real((double)(1000 << k)));
		set_in_step(k, "throughput_msgs_per_s", json_real(achieved[k]));
		set_in_step(k, "response_ns", json_pack("{s:f, s:f}", "p50", 250 * p99_us[k], "p99", 1e3 * p99_us[k]));
		set_in_step(k, "validity", achieved[k] < 950 << k ? json_pack("[s]", "behind_schedule") : json_array());
	}
}

TEST(offered__one_rate__no_chapter)
{
	report_rig_expect_none(run, "offered-knee");
}

TEST(offered__sweep__knee_and_marks)
{
	make_sweep((double[]){ 10, 12, 14 }, (double[]){ 1000, 2000, 2050 });
	report_rig_expect(run, "offered-knee", "10", "2000", "4000", NULL);
	report_rig_look(D, "offered-behind", "4,000", NULL);
	assert_true(report_rig_has_row(D, "offered", "1000,1000,2.5,,10,,,"));
	assert_true(report_rig_has_row(D, "offered", "2000,2000,3,,12,,,knee"));
	assert_true(report_rig_has_row(D, "offered", "4000,2050,3.5,,14,,,behind schedule"));
}

/* The baseline has 14 us throughout. This run goes from 7 us at 1,000 to 28 us at 4,000, so they meet at 2,000. */
TEST(offered__baseline__crossing)
{
	const struct report_baseline base = { .dir = "base" };
	struct report_options o = { .dir = D, .headroom = REPORT_HEADROOM, .min_effect = 0.05, .baselines = { base },
				    .n_baselines = 1, .any_environment = true };
	FILE *sink = fopen("/dev/null", "w");
	char err[256];

	make_sweep((double[]){ 14, 14, 14 }, (double[]){ 1000, 2000, 4000 });
	report_rig_run("base", run);
	make_sweep((double[]){ 7, 14, 28 }, (double[]){ 1000, 2000, 4000 });
	report_rig_run(D, run);
	assert_int_not_equal(report_make(&o, sink, err, sizeof(err)), REPORT_FAILED);
	report_rig_look(D, "offered-crossing", "2,000", NULL);
	fclose(sink);
}

TEST(baseline__none__how_to_give_one)
{
	report_rig_expect(run, "baseline-none", NULL);
	assert_non_null(strstr(report_rig_read(D, "report.md"), "\nperformance_test report run --baseline DIR\n"));
}

TEST(report__run_without_steps__made_and_says_so)
{
	set("steps", json_array());
	report_rig_expect(run, "clients-unknown", NULL);
	assert_non_null(strstr(report_rig_read(D, "report.html"),
			       "<div id=\"clients-unknown\" class=\"answer warn\">"));
	report_rig_expect(run, "throughput-none", NULL);
	report_rig_expect(run, "connecting-none", NULL);
	report_rig_expect(run, "plan-none", NULL);
	report_rig_expect(run, "criteria-none", NULL);
}

TEST(report__texts_that_are_markup__shown_as_they_are)
{
	const char *page;

	set("run", json_pack("{s:s, s:s}", "id", "<script>alert(1)</script>", "stop_detail", "<img src=x>"));
	set("config.workload", json_string("<b>\n\x1b[31m"));
	set_in_step(0, "failures",
		    json_pack("[{s:s, s:s, s:i, s:s}]", "stage", "<svg onload=x>", "code", "\"'&", "count", 1,
			      "meaning", "<p>"));
	assert_int_equal(report_rig_make(run), REPORT_MADE);
	page = report_rig_read(D, "report.html");
	assert_null(strstr(page, "<script>alert"));
	assert_null(strstr(page, "<img src=x"));
	assert_null(strstr(page, "<svg onload"));
	assert_null(strchr(page, '\x1b'));
}

TEST_EACH(set_up, tear_down)
