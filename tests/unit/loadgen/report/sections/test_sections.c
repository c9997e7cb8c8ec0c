/* Unit tests of the report's sections: what they say of runs made by hand. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* A step's, by its number. */
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

/* --- how many clients --- */

static void how_many__nothing_failed__at_least_the_most_held(void **state)
{
	(void)state;
	report_rig_expect(run, "How many clients? At least 100 100 clients were held at once and nothing failed; the "
			       "run did not look further, --find-capacity would.");
}

static void how_many__objective_confirmed__that_number_and_what_it_rests_on(void **state)
{
	(void)state;
	set("config.slo", json_string("p99<1ms"));
	set_capacity("slo_capacity",
		     json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:i, s:s}", "clients", 80, "low", 80, "high", 84,
			       "at_least", 0, "confirmed", 1, "passes", 2, "tries", 3, "reason", "why"));
	report_rig_expect(run, "80 With 80 clients the objective p99<1ms was met (2 of 3 tries), with 84 it was not.");
	report_rig_expect(run, "objective met (SLO) 80 80 84 2 of 3 yes why");
}

static void how_many__objective_met_to_the_end__at_least(void **state)
{
	(void)state;
	set("config.slo", json_string("p99<1ms"));
	set_capacity("slo_capacity", json_pack("{s:i, s:i, s:n, s:b, s:b}", "clients", 100, "low", 100, "high",
					       "at_least", 1, "confirmed", 1));
	report_rig_expect(run, "At least 100 With 100 clients the objective p99<1ms was met, and no more were tried");
}

static void how_many__objective_missed_by_all__fewer(void **state)
{
	(void)state;
	set("config.slo", json_string("p99<1us"));
	set_in_step(0, "slo",
		    json_pack("[{s:s, s:s, s:s, s:f, s:f, s:s}]", "expression", "p99<1us", "metric", "response_p99",
			      "unit", "ns", "limit", 1000., "measured", 19900., "result", "fail"));
	set_capacity("slo_capacity", json_pack("{s:n, s:n, s:i, s:b, s:b}", "clients", "low", "high", 10, "at_least", 0,
					       "confirmed", 0));
	report_rig_expect(run, "Fewer than 10 Not even 10 clients met the objective p99<1us.");
	report_rig_expect(run, "The objective p99<1us With 10 clients it was 19.9 us: it is speed that ends, "
			       "not connections.");
}

static void how_many__objective_undecided__not_known(void **state)
{
	(void)state;
	set("config.slo", json_string("p99<1us"));
	set_capacity("slo_capacity", json_pack("{s:n, s:n, s:i, s:b, s:b}", "clients", "low", "high", 10, "at_least", 0,
					       "confirmed", 0));
	report_rig_expect(run, "Not known Whether the objective p99<1us is met could not be told: with 10 clients there were too few "
			       "samples");
}

static void how_many__no_objective__most_held_and_the_knee(void **state)
{
	(void)state;
	set_capacity("knee",
		     json_pack("{s:i, s:i, s:i, s:b, s:b, s:s, s:s}", "clients", 50, "low", 50, "high", 100, "at_least",
			       0, "confirmed", 0, "reason", "throughput", "text", "it hardly grew"));
	report_rig_expect(run, "At least 100 100 clients were held at once and nothing failed; the run did not look further, "
			       "--find-capacity would. Each client does best up to about 50 (the knee): it hardly grew.");
	report_rig_expect(run, "Speed, not connections Nothing failed up to 100 clients. The knee is at 50: it hardly "
			       "grew.");
}

static void how_many__some_were_lost__between(void **state)
{
	(void)state;
	set_in_step(2, "connected_held", json_integer(90));
	report_rig_expect(run, "50 to 100 50 clients were all held, of 100 not all");
}

/* --- what breaks first, what to buy --- */

static void what_breaks__hard_failure__its_resource_side_and_remedy(void **state)
{
	(void)state;
	set_capacity("first_hard_failure",
		     json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:i, s:{s:s, s:s, s:s, s:s}, s:s}", "clients", 100,
			       "low", 50, "high", 100, "at_least", 0, "confirmed", 1, "passes", 2, "tries", 2,
			       "failure", "resource", "nofile", "side", "server", "text", "10 failed", "meaning",
			       "Raise it", "reason", "10 failed"));
	report_rig_expect(run, "open files (file descriptors) (server), at 100 clients 10 failed. Raise it. Seen in 2 "
			       "of 2 tries.");
	report_rig_expect(run, "Limiting resource: open files (file descriptors) (server), at 100 clients.");
}

static void what_breaks__lost_clients_of_an_older_run__the_failure_of_the_smallest_step(void **state)
{
	(void)state;
	set_in_step(1, "connected_held", json_integer(45));
	set_in_step(1, "failures",
		    json_pack("[{s:s, s:s, s:i, s:s}]", "stage", "tls_handshake", "code", "timeout", "count", 5,
			      "meaning", "No answer in time."));
	report_rig_expect(run, "timeout at tls_handshake With 50 clients, 45 were held. No answer in time.");
}

static void what_breaks__nothing__the_first_limit_by_projection(void **state)
{
	(void)state;
	report_rig_expect(run, "Nothing up to 100 No client failed.");
	report_rig_expect(run, "The CPUs of the machine were 95 % busy: they are what limits throughput.");
	report_rig_expect(run, "Of the limits the first to end would be queue pairs of the device (both ends "
			       "together), projected at about");
}

static void what_to_buy__twice_the_capacity__hosts_with_headroom(void **state)
{
	(void)state;
	/* 200 clients, of which a host of 100 takes 70. */
	report_rig_expect(run, "At most 3 servers like this one For 200 clients: 67 on each, so that 30 % of what a "
			       "server carries (at least "
			       "100) stays free.");
}

/* --- the rest of the verdict --- */

static void verdict__badges__what_to_know_before_reading(void **state)
{
	(void)state;
	set_in_step(1, "validity", json_pack("[s, s, i]", "generator_saturated", "not_steady", 5));
	set("environment.clients.is_emulated_cpu", json_true());
	report_rig_expect(run, "software RDMA");
	report_rig_expect(run, "emulated CPU");
	report_rig_expect(run, "one machine for both");
	report_rig_expect(run, "generator near saturation (1 of 3)");
	report_rig_expect(run, "From 50 clients on the load generator itself was at its limit");
}

static void verdict__criteria_of_repetitions__the_worst_and_how_many_passed(void **state)
{
	json_t *v = json_array();

	(void)state;
	for (int i = 0; i < 3; i++)
		json_array_append_new(v, json_pack("{s:i, s:i, s:i, s:s, s:s, s:s, s:s}", "clients", 10,
						   "message_bytes", 64, "repetition", i + 1, "criterion",
						   "success rate", "required", "100 %", "measured",
						   i == 1 ? "90 %" : "100 %", "result", i == 1 ? "fail" : "pass"));
	set("verdict", v);
	report_rig_expect(run, "0 of 1 criteria were met, 1 failed, 0 could not be judged.");
	report_rig_expect(run, "10 success rate 100 % 90 % fail 2 of 3");
	report_rig_expect(run, "a criterion failed");
}

static void verdict__aborted__said(void **state)
{
	(void)state;
	set("run",
	    json_pack("{s:s, s:s, s:s}", "status", "aborted", "stop_reason", "aborted", "stop_detail", "SIGINT"));
	report_rig_expect(run, "The run was interrupted before its end: it was interrupted: SIGINT.");
}

/* --- load --- */

static void throughput__of_three_steps__growth_in_words_and_no_fit(void **state)
{
	(void)state;
	report_rig_expect(run, "From 10 to 100 clients throughput went from 1,000 to 4,000 messages a second: 4 times "
			       "as much for 10 times the "
			       "clients. The most was 4,000, with 100 clients.");
	report_rig_expect(run, "the Universal Scalability Law needs at least 4 numbers of clients, and 3 were "
			       "measured.");
	report_rig_expect_not(run, "fit high");
}

static void throughput__that_passes_a_peak__peak_in_words(void **state)
{
	static const int clients[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };

	(void)state;
	json_array_clear(json_object_get(run, "steps"));
	for (size_t i = 0; i < N_ELEMENTS(clients); i++) {
		double n = clients[i];

		analysis_run_add(run, clients[i], 1000 * n / (1 + 0.02 * (n - 1) + 0.0002 * n * (n - 1)));
		analysis_run_set(analysis_run_step(run, i), "active", json_integer(clients[i]));
	}
	/* sqrt((1 - 0.02) / 0.0002) = 70 */
	report_rig_expect(run, "By that curve throughput peaks at about 70 clients (70 to 70)");
	report_rig_expect(run, "fit high");
}

static void throughput__repetitions__median_with_range(void **state)
{
	(void)state;
	analysis_run_add(run, 100, 3900);
	analysis_run_add(run, 100, 5000);
	report_rig_expect(run, " 100 3 4,000 3,900 5,000 ");
}

static void throughput__one_number_of_clients__no_growth(void **state)
{
	(void)state;
	json_array_remove(json_object_get(run, "steps"), 2);
	json_array_remove(json_object_get(run, "steps"), 1);
	report_rig_expect(run, "10 clients did 1,000 messages a second. That was the only number of clients measured");
	report_rig_expect(run, "What one client more costs Not known: it takes two numbers of clients at least.");
}

static void throughput__idle_workload__says_so_without_a_chart(void **state)
{
	(void)state;
	set("config.workload", json_string("idle"));
	for (size_t i = 0; i < 3; i++) {
		set_in_step(i, "throughput_msgs_per_s", json_null());
		set_in_step(i, "response_ns", json_object());
	}
	report_rig_expect(run, "No messages were measured: the workload only makes and holds connections.");
	report_rig_expect(run, "No round trips were measured: the workload only makes and holds connections.");
	report_rig_expect_not(run, "Messages a second for each number of clients");
}

static void latency__steps__first_and_last_in_words(void **state)
{
	(void)state;
	report_rig_expect(run, "With 10 clients half of the round trips took at most 10 us, with 100 clients 100 us.");
	report_rig_expect(run, "(p99) began at 19.9 us and ended at 199 us: 10 times as long for 10 times the "
			       "clients.");
}

static void latency__several_sizes__a_row_for_each(void **state)
{
	(void)state;
	set("config.message_sizes", json_pack("[i, i]", 64, 4096));
	set_in_step(2, "message_bytes", json_integer(4096));
	report_rig_expect(run, " 10 64 10.0 19.5 19.9 ");
	report_rig_expect(run, " 100 4,096 100.0 195.0 199.0 ");
	report_rig_expect(run, "with messages of 4 KiB");
}

static void distribution__histogram_beside_it__jitter_and_spectrum(void **state)
{
	(void)state;
	set_in_step(2, "histograms", json_pack("{s:s}", "response", "h"));
	report_rig_histogram(D, "h", 3000, 1000);
	report_rig_expect(run, "With 100 clients half of the 3,000 round trips took at most 1.50 ms, 99 % at most 2.97 "
			       "ms, the slowest 3 ms. The "
			       "jitter ratio p99/p50 is 2: the slow ones are not far from the usual.");
	report_rig_expect(run, " 99.9 2,99");
	report_rig_expect_not(run, " 99.99 ");
}

static void distribution__no_histograms__says_so(void **state)
{
	(void)state;
	report_rig_expect(run, "No distribution of round trips was kept");
}

/* --- connecting, time, failures --- */

static void stages__one_takes_most__named(void **state)
{
	(void)state;
	set_in_step(2, "connect_ns",
		    json_pack("{s:{s:i}, s:{s:i}, s:{s:i}}", "total", "p50", 40000000, "tls_handshake", "p50", 30000000,
			      "tcp_connect", "p50", 10000000));
	report_rig_expect(run, "With 100 clients a connection took 40 ms (median), and 75 % of its stages' time went "
			       "into tls_handshake (30 ms).");
	report_rig_expect(run, "The p99 of the stages is not known: it needs 299 connections in a step.");
}

static void time__samples__rates_between_them(void **state)
{
	(void)state;
	report_rig_file(D, "events.ndjson",
			"{\"t\": 1, \"event\": \"sample\", \"clients\": 100, \"connected\": 0, \"connects\": 0}\n"
			"{\"t\": 1.25, \"event\": \"sample\", \"clients\": 100, \"connected\": 50, \"connects\": 50}\n"
			"{\"t\": 1.5, \"event\": \"sample\", \"clients\": 100, \"connected\": 60, \"connects\": "
			"60}\nbroken");
	report_rig_expect(run, "Most clients were connected 1.5 s after the start: 60. Connections were made fastest "
			       "at 1.2 s: 200 a second.");
	report_rig_expect(run, "Lines of events.ndjson that were damaged or cut off, and are left out: 1.");
}

static void time__older_run__says_that_it_has_none(void **state)
{
	(void)state;
	report_rig_expect(run, "There is no events.ndjson beside run.json");
	report_rig_file(D, "events.ndjson", "{\"t\": 1, \"event\": \"phase\", \"phase\": \"connecting\"}\n");
	report_rig_expect(run, "runs made by older versions have none");
}

static void failures__none__up_to_where(void **state)
{
	(void)state;
	report_rig_expect(run, "None: no client failed, in no step up to 100 clients.");
}

static void failures__of_several_kinds__the_most_frequent_in_words(void **state)
{
	(void)state;
	set_in_step(1, "failures",
		    json_pack("[{s:s, s:s, s:i, s:s}, {s:s, s:s, s:i}]", "stage", "tcp_connect", "code", "errno:EMFILE",
			      "count", 9, "meaning", "raise ulimit -n", "stage", "traffic", "code", "timeout", "count",
			      1));
	report_rig_expect(run, "10 failures in all, the first with 50 clients. Most often (90 % of them) it was "
			       "errno:EMFILE at tcp_connect: raise "
			       "ulimit -n.");
}

/* --- resources, limits, checks, plan --- */

static void resources__steps_on_a_line__its_slope(void **state)
{
	(void)state;
	report_rig_expect(run, "each client more costs the server 39.1 KiB of resident memory and 1 queue pair; "
			       "without any client it has "
			       "19.1 MiB.");
	report_rig_expect(run, "With 100 clients the server used 0.80 of its machine's 2 CPUs, and the generator "
			       "0.80.");
}

static void limits__of_a_run__first_to_end(void **state)
{
	(void)state;
	report_rig_expect(run, "The first limit to end is ");
	report_rig_expect(run, "nofile server 21 1,024 2.05 ");
}

static void checks__residual__within_or_beyond(void **state)
{
	(void)state;
	set_in_step(0, "littles_law_residual", json_real(0.004));
	report_rig_expect(run, "It holds here within 0.4 % at every step, so the clients were really there");
	set_in_step(1, "littles_law_residual", json_real(-0.2));
	report_rig_expect(run, "It holds here within 20 % at every step: beyond 5 %, throughput or round trips of that "
			       "step are not to be believed");
}

static void checks__open_loop__schedule(void **state)
{
	(void)state;
	set_in_step(2, "schedule_lag_ns", json_pack("{s:i, s:i, s:i}", "p50", 2000, "p99", 900000, "max", 3000000));
	set_in_step(2, "sent_late", json_integer(7));
	report_rig_expect(run, "With 100 clients half of them were sent at most 2 us late, 99 % at most 900 us; 7 were "
			       "sent more than 1 ms late.");
}

static void plan__rows__measured_or_extrapolated(void **state)
{
	(void)state;
	report_rig_expect(run, "A server like this one is planned with 100 clients, the most that this run held (it "
			       "may carry more: the run did "
			       "not look further), less 30 % kept free.");
	report_rig_expect(run, "extrapolated, 10 x");
	report_rig_expect(run, ", 10 x");
}

static void origin__argv__quoted_for_a_shell(void **state)
{
	(void)state;
	set("run", json_pack("{s:[s, s, s, s]}", "argv", "performance_test", "--slo", "p99<1ms", "it's"));
	report_rig_expect(run, "performance_test --slo 'p99<1ms' 'it'\\''s'");
	report_rig_expect(run, "performance_test report run");
}

static void baseline__none__how_to_give_one(void **state)
{
	(void)state;
	report_rig_expect(run, "No baseline was given. To compare this run with an earlier one: performance_test "
			       "report run --baseline DIR");
}

/* --- nothing to show --- */

static void report__run_without_steps__made_and_says_so(void **state)
{
	(void)state;
	set("steps", json_array());
	report_rig_expect(run, "How many clients? ! Not known The run came to no step.");
	report_rig_expect(run, "No messages were measured: no step was run.");
	report_rig_expect(run, "No connections were measured: no step was run.");
	report_rig_expect(run, "Nothing can be planned from this run");
	report_rig_expect(run, "None was judged: no step was completed.");
}

static void report__texts_that_are_markup__shown_as_they_are(void **state)
{
	const struct report_options o = { .dir = D, .headroom = REPORT_HEADROOM, .format = REPORT_HTML };

	(void)state;
	set("run", json_pack("{s:s, s:s}", "id", "<script>alert(1)</script>", "stop_detail", "<img src=x>"));
	set("config.workload", json_string("<b>\n\x1b[31m"));
	set_in_step(0, "failures",
		    json_pack("[{s:s, s:s, s:i, s:s}]", "stage", "<svg onload=x>", "code", "\"'&", "count", 1,
			      "meaning", "<p>"));
	report_rig_run(D, run);
	report_rig_text(&o);
	assert_int_equal(report_rig_result(), REPORT_MADE);
	assert_null(strstr(report_rig_text(&o), "<script>alert"));
	assert_null(strstr(report_rig_text(&o), "<img src=x"));
	assert_null(strstr(report_rig_text(&o), "<svg onload"));
	assert_null(strchr(report_rig_text(&o), '\x1b'));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(how_many__nothing_failed__at_least_the_most_held),
		TEST(how_many__objective_confirmed__that_number_and_what_it_rests_on),
		TEST(how_many__objective_met_to_the_end__at_least),
		TEST(how_many__objective_missed_by_all__fewer),
		TEST(how_many__objective_undecided__not_known),
		TEST(how_many__no_objective__most_held_and_the_knee),
		TEST(how_many__some_were_lost__between),
		TEST(what_breaks__hard_failure__its_resource_side_and_remedy),
		TEST(what_breaks__lost_clients_of_an_older_run__the_failure_of_the_smallest_step),
		TEST(what_breaks__nothing__the_first_limit_by_projection),
		TEST(what_to_buy__twice_the_capacity__hosts_with_headroom),
		TEST(verdict__badges__what_to_know_before_reading),
		TEST(verdict__criteria_of_repetitions__the_worst_and_how_many_passed),
		TEST(verdict__aborted__said),
		TEST(throughput__of_three_steps__growth_in_words_and_no_fit),
		TEST(throughput__that_passes_a_peak__peak_in_words),
		TEST(throughput__repetitions__median_with_range),
		TEST(throughput__one_number_of_clients__no_growth),
		TEST(throughput__idle_workload__says_so_without_a_chart),
		TEST(latency__steps__first_and_last_in_words),
		TEST(latency__several_sizes__a_row_for_each),
		TEST(distribution__histogram_beside_it__jitter_and_spectrum),
		TEST(distribution__no_histograms__says_so),
		TEST(stages__one_takes_most__named),
		TEST(time__samples__rates_between_them),
		TEST(time__older_run__says_that_it_has_none),
		TEST(failures__none__up_to_where),
		TEST(failures__of_several_kinds__the_most_frequent_in_words),
		TEST(resources__steps_on_a_line__its_slope),
		TEST(limits__of_a_run__first_to_end),
		TEST(checks__residual__within_or_beyond),
		TEST(checks__open_loop__schedule),
		TEST(plan__rows__measured_or_extrapolated),
		TEST(origin__argv__quoted_for_a_shell),
		TEST(baseline__none__how_to_give_one),
		TEST(report__run_without_steps__made_and_says_so),
		TEST(report__texts_that_are_markup__shown_as_they_are),
	};

	return cmocka_run_group_tests_name("report_sections", tests, NULL, NULL);
}
