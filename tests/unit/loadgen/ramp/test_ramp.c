/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/ramp: a whole run, on one host. */
#include "tests/unit/loadgen/ramp/played_run.h"

static void on_break(struct ev_loop *l, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)l;
	(void)revents;
	w->broken = true;
	ev_timer_stop(loop, &w->stopping);
	w->cfg.on_progress(w->cfg.arg);
}

/* Makes a worker's device fail after `s` seconds. */
static void break_in(struct worker *w, double s)
{
	call_in(s, &w->breaking, on_break, w);
}

static bool flagged(const json_t *of, const char *name)
{
	json_t *flag;
	size_t i;

	json_array_foreach(json_at(of, "validity"), i, flag)
		if (strcmp(json_string_value(flag), name) == 0)
			return true;
	return false;
}

static bool has_flag(const char *name)
{
	return flagged(step(), name);
}

static void assert_overall_inconclusive(void)
{
	json_t *c;
	size_t i;

	assert_true(json_array_size(oc.verdict) > 0);
	json_array_foreach(oc.verdict, i, c)
		assert_string_equal(json_text_at(c, "result"), "inconclusive");
}

TEST(measure__server_reports__before_and_after_it_only)
{
	double window, measured;

	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(json_number_at(step(), "connected_held"), 4);
	/* For the baseline, the count of clients, both ends of the measured time, and the pools. */
	assert_true(n_stats >= 5);
	assert_int_equal(n_while_measuring, 0);
	/* Each figure covers the time between its own two readings; the reports enclose the measured time. */
	window = json_number_at(step(), "resources.server.window_s");
	measured = json_number_at(step(), "measured_s");
	assert_true(measured >= 0.25);
	assert_true(window >= measured);
}

static void on_iterated(struct ev_loop *l, ev_timer *t, int revents)
{
	struct worker *w = t->data;
	bool measured = records(w);

	(void)l;
	(void)revents;
	counter_set(&w->stats.iterations, cfg.warmup_iterations + (measured ? cfg.iterations : 0));
	w->cfg.on_progress(w->cfg.arg);
}

/* One worker is slower than the other. */
static void iterate(struct worker *w, enum worker_order order)
{
	if (order != ORDER_TRAFFIC && order != ORDER_MEASURE)
		return;
	ev_timer_stop(loop, &w->breaking);
	call_in(0.05 * (w->cfg.index + 1), &w->breaking, on_iterated, w);
}

TEST(iterations__the_slower_worker_is_done__the_step_ends)
{
	/* These times must not be waited for. */
	cfg.duration_ns = cfg.warmup_ns = 600 * NS_PER_S;
	cfg.iterations = 500;
	cfg.warmup_iterations = 50;
	on_order = iterate;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(n_while_measuring, 0);
	assert_true(json_number_at(step(), "measured_s") >= 0.09);
	assert_true(json_number_at(step(), "measured_s") < 5);
	assert_true(json_is_null(json_at(step(), "littles_law_residual")));
	assert_int_equal(json_number_at(step(), "response_ns.count"), 4 * 500);
	assert_false(has_flag("iterations_missing"));
}

TEST(iterations__fewer_than_asked_for__flagged)
{
	cfg.iterations = 501;
	on_order = iterate;
	run();
	assert_true(has_flag("iterations_missing"));
}

static double iterated_s;	/* how long the measured operations take */

static void iterate_for_long(struct worker *w, enum worker_order order)
{
	if (order == ORDER_TRAFFIC || order == ORDER_MEASURE) {
		ev_timer_stop(loop, &w->breaking);
		call_in(order == ORDER_MEASURE ? iterated_s : 0.05, &w->breaking, on_iterated, w);
	}
}

/* Returns how many intervals a step of `s` seconds has. Unless end_known, it is --iterations that take that long. */
static double intervals_in(double s, bool end_known)
{
	double n;

	cfg.duration_ns = (uint64_t)(s * 1e9);
	if (!end_known) {
		cfg.iterations = 500;
		cfg.warmup_iterations = 50;
		iterated_s = s;
		on_order = iterate_for_long;
	}
	run();
	assert_true(json_number_at(step(), "measured_s") >= s);
	assert_int_equal(json_array_size(json_at(step(), "intervals")), json_number_at(step(), "drift.intervals"));
	n = json_number_at(step(), "drift.intervals");
	tear_down(NULL);
	assert_int_equal(set_up(NULL), 0);
	return n;
}

TEST(intervals__any_measured_time__10_and_more)
{
	static const double seconds[] = { 0.1, 0.5, 1, 2, 5, 60 };

	for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
		double n = intervals_in(seconds[i], true);

		if (n < 10 || n > 20)
			fail_msg("%g intervals in %g s", n, seconds[i]);
		n = i ? intervals_in(seconds[i], false) : 10;
		if (n < 9 || n > 39)
			fail_msg("%g intervals in %g s whose end was not known", n, seconds[i]);
	}
}

static const struct workload messages_workload = { .bytes_max = 1 << 20, .streams = 1, .needs = needs_nothing };

TEST(rates__a_sweep__a_step_each)
{
	json_t *o;

	cfg.wl = &messages_workload;
	cfg.rates = (struct opt_list){ .n = 3, .v = { 10000, 20000, 80000 } };
	most_served = 30000;
	run();
	assert_int_equal(json_array_size(oc.steps), 3);
	for (size_t i = 0; i < 3; i++) {
		o = json_array_get(oc.steps, i);
		assert_int_equal(json_number_at(o, "offered_per_s"), cfg.rates.v[i]);
		assert_int_equal(json_number_at(o, "repetition"), 1);
	}
	assert_true(flagged(json_array_get(oc.steps, 2), "behind_schedule"));
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
}

/* The server does 40,000 a second. A rate of which less than 95 % is achieved is not met, whatever its latency. */
TEST(find_rate__server_has_a_limit__found_within_a_twentieth)
{
	struct capacity_result r;

	cfg.wl = &messages_workload;
	cfg.find_rate = true;
	cfg.duration_ns = 300 * NS_PER_MS;
	cfg.rates = (struct opt_list){ .n = 2, .v = { 20000, 80000 } };
	cfg.slo_text = "p50<1ms";
	assert_int_equal(slo_parse(cfg.slo_text, &cfg.slo, (char[99]){ "" }, 99), 0);
	outcome_clear(&oc);
	outcome_init(&oc, &cfg);
	most_served = 40000;
	run();
	assert_true(oc.search_done);
	r = capacity_result(&oc.capacity, CAPACITY_SLO);
	assert_in_range(42105, r.lower.clients, r.upper.clients);
	assert_true(r.upper.clients - r.lower.clients <= 0.05 * r.lower.clients);
	assert_string_equal(json_text_at(json_array_get(oc.verdict, json_array_size(oc.verdict) - 1), "criterion"),
			    "rate");
}

/* Acts on orders for a single client; steps have more clients. */
static void connect_alone(struct worker *w, enum worker_order order)
{
	const struct fail f = { .stage = STAGE_TCP_CONNECT, .kind = FAIL_ERRNO, .code = ECONNREFUSED };

	if (order != ORDER_CONNECT || w->cfg.index != 0)
		return;
	hist_reset(w->stats.hists.total[HANDSHAKE_FULL]);
	fail_table_reset(&w->stats.failures);
	counter_set(&w->stats.failed, 0);
	if (counter_get(&w->stats.attempted) != 1)
		return;
	n_alone++;
	if (alone_fails_from && n_alone >= alone_fails_from) {
		counter_set(&w->stats.live, 0);
		counter_set(&w->stats.failed, 1);
		fail_table_count(&w->stats.failures, &f);
	} else {
		hist_record(w->stats.hists.total[HANDSHAKE_FULL], n_alone * NS_PER_MS);
	}
}

TEST(floor__two_steps__before_the_first_and_after_the_last)
{
	const json_t *first, *second;

	cfg.floor = 3;
	cfg.clients = 6;
	cfg.steps = (struct opt_list){ .n = 2, .v = { 4, 6 } };
	on_order = connect_alone;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(n_alone, 6);
	assert_int_equal(json_number_at(oc.floor_before, "tried"), 3);
	assert_int_equal(json_number_at(oc.floor_before, "connected"), 3);
	assert_int_equal(json_number_at(oc.floor_before, "connect_ns.total.max"), 3 * NS_PER_MS);
	assert_int_equal(json_number_at(oc.floor_after, "connected"), 3);
	assert_int_equal(json_number_at(oc.floor_after, "connect_ns.total.min"), 4 * NS_PER_MS);
	first = json_array_get(oc.steps, 0);
	second = json_array_get(oc.steps, 1);
	assert_true(json_is_null(json_at(first, "follow_up")));
	assert_int_equal(json_number_at(second, "follow_up.tried"), 3);
	assert_int_equal(json_number_at(second, "follow_up.connected"), 3);
	/* These clients count in none of the step's figures. */
	assert_int_equal(json_number_at(second, "attempted"), 6);
	assert_int_equal(json_number_at(second, "connect_ns.total.count"), 0);
	assert_int_equal(json_number_at(second, "connected_held"), 6);
}

static void lose_one(struct worker *w, enum worker_order order)
{
	const struct fail f = { .stage = STAGE_PSN_EXCHANGE, .kind = FAIL_REFUSED, .code = REFUSE_FULL };

	connect_alone(w, order);
	if (order != ORDER_CONNECT || counter_get(&w->stats.attempted) != 2 || w->cfg.index != 0)
		return;
	counter_set(&w->stats.live, 1);
	counter_set(&w->stats.failed, 1);
	fail_table_count(&w->stats.failures, &f);
}

/* The run ends with a step that loses a quarter of its clients; single clients can still connect. */
TEST(follow_up__step_not_held__right_after_it)
{
	cfg.floor = 3;
	cfg.clients = 6;
	cfg.steps = (struct opt_list){ .n = 2, .v = { 4, 6 } };
	on_order = lose_one;
	run();
	assert_int_equal(oc.stop_reason, STOP_ERROR_RATE);
	assert_int_equal(json_number_at(step(), "connected_held"), 3);
	assert_int_equal(json_number_at(step(), "failed"), 1);
	assert_int_equal(json_number_at(step(), "rates.refusals.count"), 1);
	assert_int_equal(json_number_at(step(), "follow_up.connected"), 3);
	assert_int_equal(n_alone, 6);
}

TEST(follow_up__one_fails__is_the_last)
{
	cfg.floor = 3;
	alone_fails_from = 5;
	on_order = lose_one;
	run();
	assert_int_equal(json_number_at(step(), "follow_up.tried"), 2);
	assert_int_equal(json_number_at(step(), "follow_up.connected"), 1);
	assert_int_equal(json_array_size(json_at(oc.floor_after, "failures")), 1);
}

TEST(floor__none_connects__run_goes_on)
{
	cfg.floor = 3;
	alone_fails_from = 1;
	on_order = connect_alone;
	run();
	assert_int_equal(json_number_at(oc.floor_before, "tried"), 1);
	assert_int_equal(json_number_at(oc.floor_before, "connected"), 0);
	assert_int_equal(json_number_at(step(), "connected_held"), 4);
}

static void interrupt_alone(struct worker *w, enum worker_order order)
{
	connect_alone(w, order);
	if (n_alone == 2 && order == ORDER_CONNECT && w->cfg.index == 0) {
		counter_set(&w->stats.fulfilled, w->given - 1); /* not connected yet */
		raise(SIGINT);
	}
}

TEST(floor__interrupted__run_ends_without_a_step)
{
	cfg.floor = 3;
	on_order = interrupt_alone;
	run();
	assert_int_equal(oc.stop_reason, STOP_ABORTED);
	assert_int_equal(json_array_size(oc.steps), 0);
	assert_int_equal(n_alone, 2);
}

static void break_alone(struct worker *w, enum worker_order order)
{
	connect_alone(w, order);
	if (n_alone != 2 || order != ORDER_CONNECT || w->cfg.index != 0)
		return;
	counter_set(&w->stats.fulfilled, w->given - 1); /* not connected yet */
	break_in(w, 0.01);
}

TEST(floor__device_fails__run_ends_without_a_step)
{
	cfg.floor = 3;
	on_order = break_alone;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_int_equal(json_array_size(oc.steps), 0);
}

/* Checks that the failures are counted with their device, and what became of the clients. */
static void assert_clients_went(int dropped, int failed)
{
	const json_t *failures = json_at(step(), "failures");
	const json_t *first = json_array_get(failures, 0);

	assert_int_equal(json_number_at(step(), "dropped"), dropped);
	assert_int_equal(json_number_at(step(), "failed"), failed);
	assert_string_equal(json_text_at(first, "stage"), dropped ? "traffic" : "rdma_connect");
	assert_string_equal(json_text_at(first, "code"), "errno:ENODEV");
	assert_int_equal(json_number_at(first, "count"), dropped + failed);
}

static void break_while_measuring(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		break_in(w, 0.1);
}

TEST(device_fails__while_measuring__step_is_kept_with_its_figures)
{
	on_order = break_while_measuring;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_non_null(strstr(oc.stop_detail, "device fake0 failed: "));
	assert_string_equal(json_text_at(step(), "hard_failure.resource"), "device");
	assert_string_equal(json_text_at(step(), "hard_failure.side"), "generator");
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000);
	assert_true(json_number_at(step(), "throughput_msgs_per_s") > 2 * 1000 / 0.3);
	assert_true(json_number_at(step(), "measured_s") >= 0.09);
	/* The clients of the worker that still works. */
	assert_int_equal(json_number_at(step(), "connected_held"), 2);
	assert_clients_went(2, 0);
	assert_overall_inconclusive();
}

static void break_both(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE)
		break_in(w, 0.05 + 0.01 * w->cfg.index);
}

TEST(device_fails__under_all_workers__step_is_kept_once)
{
	on_order = break_both;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_int_equal(json_number_at(step(), "connected_held"), 0);
	assert_clients_went(4, 0);
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000);
	assert_overall_inconclusive();
}

static void break_while_connecting(struct worker *w, enum worker_order order)
{
	if (order != ORDER_CONNECT || w->cfg.index != 0)
		return;
	counter_set(&w->stats.fulfilled, w->given - 1); /* not connected yet */
	counter_set(&w->stats.connecting, counter_get(&w->stats.live));
	counter_set(&w->stats.live, 0);
	break_in(w, 0.01);
}

TEST(device_fails__while_connecting__step_is_kept)
{
	on_order = break_while_connecting;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_int_equal(json_number_at(step(), "connected_peak"), 2);
	assert_clients_went(0, 2);
	assert_true(json_is_null(json_at(step(), "measured_s")));
	assert_overall_inconclusive();
}

/* A search adds its verdict once. */
TEST(device_fails__in_a_search__one_verdict)
{
	cfg.find_capacity = true;
	on_order = break_both;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_int_equal(json_array_size(oc.verdict), 1);
	assert_overall_inconclusive();
	assert_false(oc.search_done);
}

TEST(ramp__two_steps_twice__all_run_in_order)
{
	static const int clients[] = { 2, 2, 4, 4 };

	cfg.steps = (struct opt_list){ .n = 2, .v = { 2, 4 } };
	cfg.repeat = 2;
	cfg.duration_ns = 50 * NS_PER_MS;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(json_array_size(oc.steps), N_ELEMENTS(clients));
	for (size_t i = 0; i < N_ELEMENTS(clients); i++) {
		const json_t *o = json_array_get(oc.steps, i);

		assert_int_equal(json_number_at(o, "target_clients"), clients[i]);
		assert_int_equal(json_number_at(o, "repetition"), 1 + i % 2);
		assert_true(json_is_null(json_at(o, "hard_failure")));
	}
}

static void interrupt(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		assert_int_equal(raise(SIGINT), 0);
}

TEST(interrupted__while_measuring__step_is_kept_and_not_judged)
{
	on_order = interrupt;
	run();
	assert_int_equal(oc.stop_reason, STOP_ABORTED);
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000);
	assert_true(json_is_null(json_at(step(), "hard_failure")));
	assert_int_equal(json_array_size(oc.verdict), 0);
}

TEST(server_lost__before_measuring__step_is_kept_without_figures)
{
	lost_from = 3;	/* after the baseline and the count of clients */
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "server_lost");
	assert_int_equal(json_number_at(step(), "connected_held"), 4);
	assert_true(json_is_null(json_at(step(), "measured_s")));
}

static const json_t *server(size_t i)
{
	assert_int_equal(json_array_size(json_at(step(), "servers")), 2);
	return json_array_get(json_at(step(), "servers"), i);
}

static void use_two_servers(enum deal deal, uint32_t clients)
{
	char err[256];

	assert_int_equal(targets_parse("targets", "127.0.0.1,127.0.0.1:7472", 7471, &cfg.targets, err, sizeof(err)), 0);
	cfg.server = "127.0.0.1,127.0.0.1:7472";
	cfg.deal = (int)deal;
	cfg.clients = cfg.steps.v[0] = clients;
	cfg.wl = &messages_workload;
}

static double sum_of(const char *path)
{
	return json_number_at(server(0), path) + json_number_at(server(1), path);
}

/* Each server has one worker, whose clients it counts. */
TEST(targets__two__each_has_its_own_figures_and_they_add_up)
{
	static const char *const adds[] = { "connected_peak", "connected_held", "attempted", "failed", "dropped",
					    "server_connected",
		"response_ns.count" };

	use_two_servers(DEAL_ROUND_ROBIN, 5);
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(json_number_at(server(0), "clients"), 3);
	assert_int_equal(json_number_at(server(1), "clients"), 2);
	assert_int_equal(json_number_at(server(0), "server_connected"), 3);
	assert_int_equal(json_number_at(server(1), "server_connected"), 2);
	assert_string_equal(json_text_at(server(1), "target"), "127.0.0.1:7472");
	for (size_t i = 0; i < N_ELEMENTS(adds); i++)
		assert_true(sum_of(adds[i]) == json_number_at(step(), adds[i]));
	assert_true(fabs(sum_of("throughput_msgs_per_s") / json_number_at(step(), "throughput_msgs_per_s") - 1) < 1e-9);
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000);
	assert_int_equal(json_number_at(step(), "server_connected"), 5);
	assert_string_equal(json_text_at(step(), "server_pools"), "restored");
	assert_string_equal(json_text_at(server(0), "server_pools"), "restored");
	assert_true(json_is_null(json_at(step(), "server_after")));
	assert_true(json_is_object(json_at(server(1), "server_after")));
	assert_int_equal(n_while_measuring, 0);
}

TEST(targets__first_has_little_room__the_rest_goes_to_the_next)
{
	use_two_servers(DEAL_FIRST, 5);
	max_clients = 4;
	run();
	assert_int_equal(json_number_at(server(0), "clients"), 4);
	assert_int_equal(json_number_at(server(1), "clients"), 1);
	assert_int_equal(json_number_at(server(1), "server_connected"), 1);
	assert_int_equal(json_number_at(step(), "connected_held"), 5);
}

TEST(targets__one_has_no_room_for_its_share__refused_by_name)
{
	use_two_servers(DEAL_ROUND_ROBIN, 10);
	max_clients = 4;
	run();
	assert_int_equal(json_array_size(oc.steps), 0);
	assert_non_null(strstr(oc.stop_detail,
			       "127.0.0.1: the first step of 5 clients is more than the server's --max-clients 4"));
}

/* At the end of the measurement only one server answers, and its answer is kept. */
TEST(targets__one_is_lost__the_step_ends_and_names_it)
{
	use_two_servers(DEAL_ROUND_ROBIN, 4);
	lost_server = 1;
	lost_from = 7;	/* after two answers to each of three requests */
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_ptr_equal(strstr(oc.stop_detail, "127.0.0.1:7472: "), oc.stop_detail);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "server_lost");
	assert_true(json_is_null(json_at(step(), "resources.server.window_s")));
	assert_true(json_number_at(server(0), "resources.window_s") > 0);
	assert_true(json_is_null(json_at(server(1), "resources.window_s")));
	assert_string_equal(json_text_at(step(), "server_pools"), "unknown");
}

static void drop_all_of_the_second(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1) {
		counter_set(&w->stats.dropped, counter_get(&w->stats.live));
		counter_set(&w->stats.live, 0);
	}
}

TEST(targets__all_clients_of_one_are_dropped__measuring_ends_and_the_verdict_names_it)
{
	const json_t *success = NULL, *c;
	uint64_t begin_ns = clock_now_ns();
	size_t i;

	use_two_servers(DEAL_ROUND_ROBIN, 4);
	cfg.duration_ns = 60 * NS_PER_S;
	on_order = drop_all_of_the_second;
	run();
	assert_true(clock_now_ns() - begin_ns < 50 * NS_PER_S);
	assert_int_equal(json_number_at(server(0), "connected_held"), 2);
	assert_int_equal(json_number_at(server(1), "connected_held"), 0);
	assert_int_equal(json_number_at(server(1), "dropped"), 2);
	json_array_foreach(oc.verdict, i, c) {
		if (strcmp(json_text_at(c, "criterion"), "success rate") == 0)
			success = c;
	}
	assert_non_null(strstr(json_text_at(success, "measured"), "fewest at 127.0.0.1:7472: 0 of 2"));
}

TEST(targets__watched__peaks_are_each_servers_own)
{
	use_two_servers(DEAL_ROUND_ROBIN, 4);
	cfg.sample_interval_ns = 100 * NS_PER_MS;
	run();
	assert_int_equal(watches, 2);
	assert_true(json_number_at(server(0), "resources.peak.samples") >= 1);
	assert_true(json_number_at(server(1), "resources.peak.samples") >= 1);
	assert_true(json_is_null(json_at(step(), "resources.server.peak")));
}

/* The search was not complete, whatever its last step says. */
TEST(server_lost__in_a_search__search_is_not_done)
{
	cfg.find_capacity = true;
	lost_from = 3;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_false(oc.search_done);
}

static void kill_the_first_server(struct worker *w, enum worker_order order)
{
	if (order != ORDER_MEASURE || w->cfg.index != 1 || n_servers != 1)
		return;
	process->status = SIGKILL;
	server_proc_stop(process);
}

/* The probes after the one in which the server ended all use the same new server. */
TEST(server_of_our_own__ends_once_in_a_search__one_other_is_started)
{
	outcome_clear(&oc);
	cfg.find_capacity = true;
	cfg.server = NULL;
	cfg.servers.n = 0;
	cfg.steps.v[0] = 1;
	cfg.duration_ns = 50 * NS_PER_MS;
	outcome_init(&oc, &cfg);
	on_order = kill_the_first_server;
	run();
	assert_int_equal(n_servers, 2);
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_true(oc.search_done);
	assert_in_range(json_array_size(oc.steps), 3, 20);
}

TEST(server_lost__first_of_two_steps__second_not_reached)
{
	json_t *last;

	cfg.steps = (struct opt_list){ .n = 2, .v = { 2, 4 } };
	lost_from = 3;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	last = json_array_get(oc.verdict, json_array_size(oc.verdict) - 1);
	assert_int_equal(json_number_at(last, "clients"), 4);
	assert_string_equal(json_text_at(last, "measured"), "not reached");
}

TEST(control_session__breaks_and_comes_back__run_goes_on)
{
	static const struct fail losses[] = {
		{ STAGE_PSN_EXCHANGE, FAIL_ERRNO, ECONNRESET }, { STAGE_PSN_EXCHANGE, FAIL_CLOSED, 0 },
		{ STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0 }, { STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_BUSY },
		{ STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_NO_RESOURCES },
	};

	for (size_t i = 0; i < N_ELEMENTS(losses); i++) {
		loss = losses[i];
		lost_from = 3;
		lost_to = 4;
		run();
		assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
		assert_int_equal(oc.control_reconnects, 1);
		assert_int_equal(json_number_at(step(), "connected_held"), 4);
		assert_string_equal(json_text_at(step(), "server_pools"), "restored");
		assert_true(json_number_at(step(), "measured_s") >= 0.25);
		assert_int_equal(n_while_measuring, 0);
		tear_down(state);
		set_up(state);
	}
}

/* In the first probe or a later one: the request is repeated, and the search comes to its end. */
TEST(control_session__breaks_in_a_search__search_goes_on)
{
	for (int at = 3; at <= 8; at += 5) {
		outcome_clear(&oc);
		cfg.find_capacity = true;
		cfg.steps.v[0] = 1;
		cfg.duration_ns = 50 * NS_PER_MS;
		outcome_init(&oc, &cfg);
		loss = (struct fail){ STAGE_PSN_EXCHANGE, FAIL_ERRNO, ECONNRESET };
		lost_from = at;
		lost_to = at + 1;
		run();
		assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
		assert_true(oc.search_done);
		assert_int_equal(oc.control_reconnects, 1);
		assert_in_range(json_array_size(oc.steps), 2, 20);
		for (size_t i = 0; i < json_array_size(oc.steps); i++)
			assert_string_equal(json_text_at(json_array_get(oc.steps, i), "server_pools"), "restored");
		tear_down(state);
		set_up(state);
	}
}

TEST(control_session__refused_for_good__not_asked_again)
{
	loss = (struct fail){ STAGE_TLS_HANDSHAKE, FAIL_CERTIFICATE, 10 };
	lost_from = lost_to = 3;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_non_null(strstr(oc.stop_detail, "certificate:10"));
}

static void lose_from_now(struct worker *w, enum worker_order order)
{
	if (order == ORDER_DISCONNECT && w->cfg.index == 1)
		lost_from = n_stats + 1;
}

/* The server was well at its last answer: its pools are unknown, which is no failure. */
TEST(control_session__lost_before_the_pools_are_checked__unknown)
{
	json_t *c;
	size_t i;

	on_order = lose_from_now;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_string_equal(json_text_at(step(), "server_pools"), "unknown");
	json_array_foreach(oc.verdict, i, c) {
		assert_string_not_equal(json_text_at(c, "result"), "fail");
		if (strcmp(json_text_at(c, "criterion"), "server's pools after the step") == 0)
			assert_string_equal(json_text_at(c, "measured"), "unknown: the server could not be asked");
	}
}

static void restart_server(struct worker *w, enum worker_order order)
{
	if (order != ORDER_TRAFFIC || w->cfg.index)
		return;
	lost_from = lost_to = n_stats + 1;
	restarted_s = (double)clock_now_ns() / 1e9;
}

TEST(control_session__another_server_answers__lost)
{
	on_order = restart_server;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_non_null(strstr(oc.stop_detail, "another one answers in its place"));
}

static void restart_while_measuring(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		restarted_s = (double)clock_now_ns() / 1e9;
}

/* The new server is asked late: by then it has been up for longer than the first one had been at its last answer. */
TEST(control_session__another_server_answers_late__lost)
{
	restarted_s = (double)clock_now_ns() / 1e9;
	on_order = restart_while_measuring;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
}

/* Clients come back, but no figure is computed from two servers' counters. */
TEST(control_session__another_server_with_reconnect__run_goes_on)
{
	cfg.reconnect_ns = 30 * NS_PER_S;
	on_order = restart_while_measuring;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(oc.server_restarts, 1);
	assert_int_equal(json_number_at(step(), "connected_held"), 4);
	assert_true(json_is_null(json_at(step(), "resources.server.window_s")));
	assert_true(json_number_at(step(), "measured_s") >= 0.25);
	assert_string_equal(json_text_at(step(), "server_pools"), "restored");
}

static void restart_once(struct worker *w, enum worker_order order)
{
	if (restarted_s == 1)
		restart_while_measuring(w, order);
}

/* When the step's clients are gone, the new server's pools are read without clients: that is the next step's
 * baseline. */
TEST(control_session__another_server_with_reconnect__its_pools_are_judged_from_then_on)
{
	cfg.reconnect_ns = 30 * NS_PER_S;
	cfg.steps = (struct opt_list){ .n = 2, .v = { 2, 4 } };
	on_order = restart_once;
	run();
	assert_int_equal(oc.server_restarts, 1);
	assert_int_equal(json_array_size(oc.steps), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *o = json_array_get(oc.steps, i);

		assert_true(json_number_at(o, "server_before.started_ns") == (i ? restarted_s * 1e9 : 1e9));
		assert_string_equal(json_text_at(o, "server_pools"), "restored");
	}
}

/* Nobody listens for longer than a run without --reconnect would wait. */
TEST(control_session__server_away_with_reconnect__waited_for)
{
	cfg.reconnect_ns = 30 * NS_PER_S;
	lost_from = 3;
	lost_to = 10;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(oc.control_reconnects, 1);
}

static void assert_flag_of(const json_t *of, const char *name)
{
	json_t *flag;
	size_t i;

	json_array_foreach(json_at(of, "validity"), i, flag)
		if (strcmp(json_string_value(flag), name) == 0)
			return;
	fail_msg("no flag %s", name);
}

static void assert_flag(const char *name)
{
	assert_flag_of(step(), name);
}

/* The thread of the run stands still, as if it were stopped. */
static void freeze(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		clock_move(1600 * NS_PER_MS);
}

TEST(frozen__while_measuring__hole_is_named_and_nothing_passes_for_sure)
{
	on_order = freeze;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_flag("clock_hole");
	assert_true(json_number_at(step(), "clock_late_ns") > 1.2e9);
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_INCONCLUSIVE);
}

static int freezes;

static void freeze_some(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1 && freezes && freezes--)
		clock_move(1600 * NS_PER_MS);
}

/* The second measurement of the same clients counts, with a number of its own; no verdict uses the first. */
TEST(frozen__in_a_search__probe_is_made_again)
{
	cfg.find_capacity = true;
	cfg.duration_ns = 50 * NS_PER_MS;
	outcome_clear(&oc);
	outcome_init(&oc, &cfg);
	freezes = 1;
	on_order = freeze_some;
	run();
	assert_true(oc.search_done);
	assert_true(json_array_size(oc.steps) >= 2);
	for (size_t i = 0; i < json_array_size(oc.steps); i++) {
		const json_t *o = json_array_get(oc.steps, i);

		assert_int_equal(json_number_at(o, "target_clients"), 4);
		assert_int_equal(json_number_at(o, "repetition"), i + 1);
	}
	assert_true(json_number_at(json_array_get(oc.steps, 0), "clock_late_ns") > 1.2e9);
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_PASS);
}

static void steal_once(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1 && freezes && freezes--)
		stolen_s += 1;
}

TEST(cpu_stolen__in_a_search__probe_is_made_again)
{
	cfg.find_capacity = true;
	cfg.duration_ns = 50 * NS_PER_MS;
	outcome_clear(&oc);
	outcome_init(&oc, &cfg);
	freezes = 1;
	on_order = steal_once;
	run();
	assert_true(oc.search_done);
	assert_flag_of(json_array_get(oc.steps, 0), "cpu_stolen");
	assert_int_equal(json_number_at(json_array_get(oc.steps, 1), "target_clients"), 4);
	assert_int_equal(json_number_at(json_array_get(oc.steps, 1), "repetition"), 2);
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_PASS);
}

/* After three attempts the last one counts, but as inconclusive. */
TEST(frozen__in_a_search_every_time__nothing_passes_for_sure)
{
	cfg.find_capacity = true;
	cfg.duration_ns = 50 * NS_PER_MS;
	outcome_clear(&oc);
	outcome_init(&oc, &cfg);
	freezes = 3;
	on_order = freeze_some;
	run();
	assert_int_equal(freezes, 0);
	assert_true(json_array_size(oc.steps) >= 3);
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_INCONCLUSIVE);
}

static void stall(struct worker *w, enum worker_order order)
{
	if (order == ORDER_STOP)
		counter_set(&w->stats.reply_stall_ns, 113 * NS_PER_S);
}

TEST(server_frozen__replies_stall__named_and_nothing_passes_for_sure)
{
	on_order = stall;
	run();
	assert_flag("replies_stalled");
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_INCONCLUSIVE);
	/* A ramp does not repeat the step, whose clients were held all the same. */
	assert_int_equal(capacity_result(&oc.capacity, CAPACITY_BREAK).lower.clients, 4);
}

static double peak(const char *side, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "resources.%s.peak.%s", side, name);
	return json_number_at(step(), path);
}

TEST(resources__both_sides__peaks_of_the_step_and_the_series)
{
	json_t *o, *server, *names;

	cfg.sample_interval_ns = 100 * NS_PER_MS;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(watches, 1);
	assert_int_equal(n_while_measuring, 0);
	assert_true(peak("server", "samples") >= 2);
	assert_true(peak("server", "fds") >= 21);
	assert_true(fabs(peak("server", "cpus") - 0.1) < 1e-6);
	assert_true(isnan(peak("server", "rss_bytes")));
	assert_true(peak("generator", "samples") >= 2);
	assert_true(peak("generator", "fds") > 3);
	assert_int_equal(peak("generator", "clients_connected"), 4);
	o = series_json(oc.series, 0.1);
	server = json_at(o, "server");
	assert_int_equal(json_number_at(server, "samples"), json_array_size(json_at(server, "fds")));
	assert_true(json_number_value(json_array_get(json_at(server, "cpu_user_s"), 0)) == 0);
	assert_true(fabs(json_number_value(json_array_get(json_at(server, "cpu_user_s"), 2)) - 0.02) < 1e-9);
	assert_true(json_is_null(json_array_get(json_at(server, "rss_bytes"), 0)));
	assert_true(json_array_size(json_at(o, "generator.t_s")) >= 4);
	names = json_at(o, "phases.name");
	assert_string_equal(json_string_value(json_array_get(names, 0)), "asking server");
	assert_int_equal(json_array_size(names), json_array_size(json_at(o, "phases.t_s")));
	json_decref(o);
}

TEST(resources__none_wanted__nobody_watches)
{
	json_auto_t *o = NULL;

	run();
	assert_int_equal(watches, 0);
	assert_true(json_is_null(json_at(step(), "resources.server.peak")));
	o = series_json(oc.series, 0);
	assert_true(json_is_null(json_at(o, "server")));
	assert_true(json_is_null(json_at(o, "generator")));
}

/* The run goes on, and watching is tried again after a while. */
TEST(resources__server_cannot_be_watched__run_goes_on)
{
	cfg.sample_interval_ns = 100 * NS_PER_MS;
	cfg.duration_ns = 2500 * NS_PER_MS;
	watch_lost_after = 0;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(watches, 2);
	assert_true(json_is_null(json_at(step(), "resources.server.peak")));
	assert_true(peak("generator", "samples") >= 2);
}

/* The step is kept, with its figures so far; later steps do not begin. */
TEST(floor__server_short_of_memory_while_measuring__step_is_cut_short)
{
	cfg.sample_interval_ns = 100 * NS_PER_MS;
	cfg.duration_ns = 60 * NS_PER_S;
	cfg.memory_floor_percent = 5;
	cfg.steps = (struct opt_list){ .n = 2, .v = { 4, 4 } };
	short_from = 5;
	run();
	assert_int_equal(oc.stop_reason, STOP_MEMORY_FLOOR);
	assert_string_equal(oc.stop_detail,
			    "the machine of server and generator has 1.0 % of its memory left, 1 of 100 MiB: "
			    "less than --memory-floor 5 %");
	assert_int_equal(json_array_size(oc.steps), 1);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "memory_floor");
	assert_string_equal(json_text_at(step(), "hard_failure.resource"), "memory");
	assert_string_equal(json_text_at(step(), "hard_failure.side"), "server");
	assert_int_equal(json_number_at(step(), "connected_peak"), 4);
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_INCONCLUSIVE);
}

/* No client connects if less is left from the start. */
TEST(floor__short_before_the_first_client__nobody_connects)
{
	cfg.sample_interval_ns = 100 * NS_PER_MS;
	cfg.memory_floor_percent = 5;
	short_from = 1;
	run();
	assert_int_equal(oc.stop_reason, STOP_MEMORY_FLOOR);
	for (size_t i = 0; i < json_array_size(oc.steps); i++)
		assert_string_equal(json_text_at(json_array_get(oc.steps, i), "hard_failure.reason"), "memory_floor");
}

TEST(floor__off__goes_on)
{
	cfg.sample_interval_ns = 100 * NS_PER_MS;
	short_from = 1;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
}

TEST_EACH(set_up, tear_down)
