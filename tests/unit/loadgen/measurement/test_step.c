/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/step.c: adding up, Little's law, steadiness, and the element of run.json. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "loadgen/measurement/step.h"
#include "loadgen/worker/pulse.h"
#include "loadgen/worker/worker.h"

#define WORKERS 2

/* The test plays the workers. */
struct worker {
	struct worker_stats stats;
};

const struct worker_stats *worker_stats(const struct worker *w)
{
	return &w->stats;
}

static struct worker *workers[WORKERS];
static const struct workload one_stream = { .streams = 1 };
static struct loadgen_config cfg;
static struct step *s;

static void free_worker(struct worker *w)
{
	worker_stats_release(&w->stats);
	free(w);
}

static struct worker *make_worker(void)
{
	struct worker *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(worker_stats_init(&w->stats), 0);
	return w;
}

static int set_up(void **state)
{
	(void)state;
	memset(&cfg, 0, sizeof(cfg));
	cfg.wl = &one_stream;
	cfg.inflight = 4;
	cfg.server = "host";
	for (int i = 0; i < WORKERS; i++)
		workers[i] = make_worker();
	if (step_new(10, 100, 3, &s))
		return -1;
	s->pools = POOLS_RESTORED;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	step_free(s);
	s = NULL;
	for (int i = 0; i < WORKERS; i++)
		free_worker(workers[i]);
	return 0;
}

static void collect(void)
{
	step_collect(s, workers, WORKERS, &cfg);
}

/* Lets a worker have measured for `seconds` and counted this many messages. */
static void measured(int worker, double seconds, uint64_t messages)
{
	struct worker_stats *st = &workers[worker]->stats;

	counter_set(&st->measure_start_ns, NS_PER_S);
	counter_set(&st->measure_end_ns, NS_PER_S + (uint64_t)(seconds * 1e9));
	counter_set(&st->messages_measured, messages);
}

static void record(struct hist *h, uint64_t value, int n)
{
	while (n--)
		hist_record(h, value);
}

/* Adds an interval in which all operations took `p99_ns`; 0: none ended. */
static void add_interval(double messages_per_s, uint64_t p99_ns)
{
	struct hist *h;

	assert_int_equal(hist_new(&h), 0);
	hist_record_n(h, p99_ns, p99_ns ? 300 : 0);
	intervals_add(&s->intervals, 0.25 * (s->intervals.n + 1), messages_per_s, h);
	hist_free(h);
}

TEST(step_new__nothing_yet__empty_and_unknown)
{
	assert_int_equal(s->target, 10);
	assert_int_equal(s->repetition, 3);
	assert_true(s->server_connected == -1);
	assert_false(s->measured);
	assert_int_equal(hist_count(s->total), 0);
	step_free(NULL);
}

TEST(collect__two_workers__sums)
{
	const struct fail refused = { .stage = STAGE_TCP_CONNECT, .kind = FAIL_ERRNO, .code = ECONNREFUSED };
	const struct fail timeout = { .stage = STAGE_QP_SETUP, .kind = FAIL_TIMEOUT };

	for (uint64_t i = 0; i < WORKERS; i++) {
		struct worker_stats *st = &workers[i]->stats;

		counter_set(&st->attempted, 6 + i);
		counter_set(&st->failed, 2 + i);
		counter_set(&st->dropped, 10 + i);
		counter_set(&st->psn_verified, 100 + i);
		for (int k = 0; k < STAGE_TIMED; k++)
			record(st->hists.stages[HANDSHAKE_FULL][k], 1000 * (i + 1), k + 1);
		record(st->hists.total[HANDSHAKE_FULL], 7000, 3);
		record(st->hists.response, 9000, 5);
		fail_table_count(&st->failures, &refused);
	}
	fail_table_count(&workers[1]->stats.failures, &timeout);
	collect();
	assert_int_equal(s->attempted, 13);
	assert_int_equal(s->failed, 5);
	assert_int_equal(s->dropped, 21);
	assert_int_equal(s->psn_verified, 201);
	for (int k = 0; k < STAGE_TIMED; k++) {
		assert_int_equal(hist_count(s->stages[k]), 2 * (k + 1));
		assert_int_equal(hist_min(s->stages[k]), 1000);
		assert_int_equal(hist_max(s->stages[k]), 2000);
	}
	assert_int_equal(hist_count(s->total), 6);
	assert_int_equal(hist_count(s->hists.response), 10);
	assert_int_equal(fail_table_total(&s->failures), 3);
	assert_int_equal(s->failures.n, 2);
}

/* Replies were missing: their clients were connected when traffic was stopped, and failed afterwards. */
TEST(collect__clients_lost_after_the_traffic__not_held)
{
	s->connected_held = 10;
	counter_set(&workers[0]->stats.dropped, 3);
	counter_set(&workers[1]->stats.failed, 1);
	collect();
	assert_int_equal(s->connected_held, 6);
	counter_set(&workers[1]->stats.dropped, 8);
	collect();
	assert_int_equal(s->connected_held, 0);
}

/* Checks how many clients of a worker whose device failed count as dropped, and how many as failed. */
static void assert_gone(struct worker_stats st, uint32_t dropped, uint32_t failed)
{
	s->dropped = s->failed = 0;
	fail_table_reset(&s->failures);
	step_count_gone(s, 0, &st);
	assert_int_equal(s->dropped, dropped);
	assert_int_equal(s->failed, failed);
	assert_int_equal(fail_table_total(&s->failures), dropped + failed);
}

TEST(count_gone__while_connecting__those_on_their_way_failed)
{
	assert_gone((struct worker_stats){ .attempted = 10, .live = 3, .failed = 1, .connecting = 4, .parked = 1,
					   .waiting = 1 }, 3, 6);
}

/* Sixteen clients had left normally. */
TEST(count_gone__while_disconnecting__only_those_still_there)
{
	assert_gone((struct worker_stats){ .attempted = 20, .live = 3, .leaving = 1 }, 3, 0);
	assert_gone((struct worker_stats){ .attempted = 20 }, 0, 0);
}

TEST(count_gone__one_comes_back__counted_once)
{
	assert_gone((struct worker_stats){ .attempted = 10, .live = 8, .away = 2, .waiting = 1, .connecting = 1 }, 10,
		    0);
}

TEST(collect__beats_of_workers_and_main__the_worst)
{
	s->clock_late_ns = 5;
	counter_set(&workers[0]->stats.clock_late_ns, 7);
	counter_set(&workers[1]->stats.reply_stall_ns, 9);
	collect();
	assert_int_equal(s->clock_late_ns, 7);
	assert_int_equal(s->reply_stall_ns, 9);
	s->clock_late_ns = 8;
	collect();
	assert_int_equal(s->clock_late_ns, 8);
}

TEST(collect__worker_begins_to_measure_late__late_by_that)
{
	measured(0, 2, 4000);
	s->begin.now_ns = NS_PER_S - 30;
	s->clock_late_ns = 20;
	collect();
	assert_int_equal(s->clock_late_ns, 30);
}

/* Workers start and stop at slightly different times, so each has its own window. */
TEST(collect__windows_apart__rates_of_each_added)
{
	measured(0, 2, 4000);
	measured(1, 4, 4000);
	counter_set(&workers[0]->stats.sends_measured, 1000);
	counter_set(&workers[1]->stats.sends_measured, 500);
	collect();
	assert_true(s->measured);
	assert_float_equal(s->sends_per_s, 625, 1e-6);
	assert_float_equal(s->messages_per_s, 3000, 1e-6);
	assert_float_equal(s->bytes_per_s, 300000, 1e-4);
	assert_float_equal(s->measured_s, 4, 1e-9);
}

TEST(collect__no_window_or_an_open_one__not_measured)
{
	counter_set(&workers[0]->stats.messages_measured, 500);
	counter_set(&workers[1]->stats.messages_measured, 500);
	counter_set(&workers[1]->stats.measure_start_ns, NS_PER_S);
	collect();
	assert_false(s->measured);
	assert_false(s->steady);
	assert_true(s->messages_per_s == 0);
}

TEST(collect__busiest_worker__saturated_above_95_percent)
{
	static const struct { uint64_t cpu_ms; bool saturated; } cases[] = {
		{ 0, false }, { 9500, false }, { 9501, true }, { 10000, true },
	};

	measured(0, 10, 1);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		s->begin.now_ns = 3 * NS_PER_S;
		s->end.now_ns = 13 * NS_PER_S;
		s->generator_saturated = false;
		/* The busiest worker is not the one that had been busiest before. */
		s->begin.worker_cpu_ns[0] = 90 * NS_PER_S;
		s->end.worker_cpu_ns[0] = 90 * NS_PER_S;
		s->begin.worker_cpu_ns[1] = 7 * NS_PER_S;
		s->end.worker_cpu_ns[1] = 7 * NS_PER_S + cases[i].cpu_ms * NS_PER_MS;
		collect();
		assert_int_equal(s->generator_saturated, cases[i].saturated);
	}
	counter_set(&workers[0]->stats.measure_start_ns, 0);
	s->measured = s->generator_saturated = false;
	collect();
	assert_false(s->generator_saturated);
}

/* Two threads on one CPU get half of it each. */
TEST(collect__threads_share_a_cpu__saturated_when_it_is_used_up)
{
	measured(0, 10, 1);
	s->begin.now_ns = 3 * NS_PER_S;
	s->end.now_ns = 13 * NS_PER_S;
	for (int i = 0; i < 2; i++)
		s->end.worker_cpu_ns[i] = 4800 * NS_PER_MS;
	for (uint32_t cpus = 0; cpus < 3; cpus++) {
		s->generator_saturated = false;
		s->cpus = cpus;
		collect();
		assert_int_equal(s->generator_saturated, cpus == 1);
	}
}

/* 10 clients x 4 in flight, with round trips of 1 ms and 3 ms: 40 / 2 ms is 20,000 a second. */
TEST(residual__constructed__exact)
{
	s->connected_held = 10;
	s->measured = true;
	record(s->hists.response, 1000000, 500);
	record(s->hists.response, 3000000, 500);
	s->messages_per_s = 20000;
	assert_float_equal(step_littles_residual(s, &cfg), 0, 1e-9);
	s->messages_per_s = 10000;
	assert_float_equal(step_littles_residual(s, &cfg), 0.5, 1e-9);
	s->messages_per_s = 30000;
	assert_float_equal(step_littles_residual(s, &cfg), -0.5, 1e-9);
	s->messages_per_s = 20000;
	s->connected_held = s->senders = 20;	/* half of the clients do nothing */
	assert_float_equal(step_littles_residual(s, &cfg), 0.5, 1e-9);
	cfg.inflight = 2;
	assert_float_equal(step_littles_residual(s, &cfg), 0, 1e-9);
}

/* 2 clients x 4 in flight, measured for 2 s: one's round trips began 1 s before and take 3 s, the other's never end. */
TEST(residual__round_trips_longer_than_the_measured_time__exact)
{
	measured(0, 2, 4);
	counter_set(&workers[0]->stats.carried_in_ns, 4 * NS_PER_S);
	record(workers[0]->stats.hists.response, 3 * NS_PER_S, 4);
	measured(1, 2, 0);
	counter_set(&workers[1]->stats.carried_out_ns, 4 * 2 * NS_PER_S);
	collect();
	s->connected_held = 2;
	assert_float_equal(step_littles_residual(s, &cfg), 0, 1e-9);
}

TEST(residual__nothing_to_compare__nan)
{
	s->connected_held = 10;
	s->messages_per_s = 100;
	record(s->hists.response, 1000, 1);
	assert_true(isnan(step_littles_residual(s, &cfg)));	/* not measured */
	s->measured = true;
	assert_false(isnan(step_littles_residual(s, &cfg)));
	s->connected_held = 0;
	assert_true(isnan(step_littles_residual(s, &cfg)));
	s->connected_held = 10;
	hist_reset(s->hists.response);
	assert_true(isnan(step_littles_residual(s, &cfg)));
}

/* Collects a step with this number of intervals, whose throughput rises. */
static void collect_intervals(int n, double rise)
{
	s->intervals.n = 0;
	for (int i = 0; i < n; i++)
		add_interval(1000 + i * rise, 50000);
	measured(0, 5, 1000);
	collect();
}

TEST(steady__intervals__judged_and_null_if_they_cannot_be)
{
	json_t *o;

	collect_intervals(20, 0);
	assert_true(s->steady && !s->too_short);
	collect_intervals(20, 20);
	assert_true(!s->steady && !s->too_short);
	collect_intervals(9, 0);
	assert_true(!s->steady && s->too_short);
	o = step_json(s, &cfg, workers, WORKERS);
	assert_true(json_is_null(json_at(o, "steady")));
	assert_true(json_is_null(json_at(o, "drift.throughput_ratio")));
	json_decref(o);
}

TEST(steady__nothing_is_sent__always)
{
	static const struct workload idle = { .idle = true };

	cfg.wl = &idle;
	collect_intervals(0, 0);
	assert_true(s->steady && !s->too_short);
}

static json_t *server_report(double uptime_s, double cpu_s, int net_bytes)
{
	return json_pack("{s:f, s:{s:f, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}, s:{s:i}}",
			 "uptime_s", uptime_s, "resources", "cpu_user_s", cpu_s, "cpu_system_s", 3 * cpu_s,
			 "switches_voluntary", net_bytes / 10, "switches_involuntary", net_bytes / 1000,
			 "net_bytes", net_bytes, "rss_bytes", 5000000, "fds", 40, "threads", 3, "qps", 10, "cqs", 2,
			 "mrs", 1, "pinned_bytes", 4096, "stages_ns", "tls_accept", 77);
}

/* A reading with one device, which has sent as many bytes as it received. */
static json_t *network_reading(int s_of_clock, int bytes)
{
	return json_pack("{s:I, s:[{s:s, s:i, s:{s:i, s:i}}]}", "read_ns", (json_int_t)s_of_clock * 1000000000, "ports",
			 "device", "dev0", "port", 1, "counters", "tx_bytes", bytes, "rx_bytes", bytes);
}

TEST(report_number__paths__found_or_nan)
{
	char deep[200] = "";
	json_t *o = json_pack("{s:i, s:f, s:s, s:{s:{s:i}, s:n}, s:i}", "a", 3, "b", 0.5, "text", "4", "c", "d",
			      "e", 7, "null", "", 9);

	assert_non_null(o);
	assert_true(json_number_at(o, "a") == 3);
	assert_true(json_number_at(o, "b") == 0.5);
	assert_true(json_number_at(o, "c.d.e") == 7);
	assert_true(json_number_at(o, "") == 9);
	assert_true(isnan(json_number_at(o, "text")));
	assert_true(isnan(json_number_at(o, "c")));
	assert_true(isnan(json_number_at(o, "c.null")));
	assert_true(isnan(json_number_at(o, "c.d.f")));
	assert_true(isnan(json_number_at(o, "a.b")));
	assert_true(isnan(json_number_at(o, "c.d.e.f")));
	assert_true(isnan(json_number_at(NULL, "a")));
	assert_true(isnan(json_number_at(NULL, "a.b")));
	memset(deep, 'k', 150);
	strcpy(deep + 150, ".a");
	assert_true(isnan(json_number_at(o, deep)));
	json_decref(o);
}

TEST(report_number__longest_key__found)
{
	char path[80] = "";
	json_auto_t *o = NULL;

	memset(path, 'k', 63);
	o = json_pack("{s:{s:i}}", path, "x", 5);
	strcat(path, ".x");
	assert_true(json_number_at(o, path) == 5);
}

TEST(server_cpus__two_reports__cpu_per_second_of_theirs)
{
	s->begin.server = server_report(100, 10, 0);
	s->end.server = server_report(105, 12.5, 0);	/* 2.5 s user, 7.5 s system */
	assert_float_equal(step_server_cpus(s), 2, 1e-9);
	json_decref(s->begin.server);
	s->begin.server = NULL;
	assert_true(isnan(step_server_cpus(s)));
}

TEST(generator_cpus__two_moments__cpu_per_second)
{
	s->begin.now_ns = NS_PER_S;
	s->end.now_ns = 5 * NS_PER_S;
	s->begin.generator = (struct res_usage){ .cpu_user_ns = NS_PER_S, .cpu_system_ns = 2 * NS_PER_S,
						 .rss_bytes = 1 };
	s->end.generator = (struct res_usage){ .cpu_user_ns = 2 * NS_PER_S, .cpu_system_ns = 3 * NS_PER_S,
					       .rss_bytes = 1 };
	assert_true(isnan(step_generator_cpus(s)));	/* not measured */
	s->measured = true;
	assert_float_equal(step_generator_cpus(s), 0.5, 1e-9);
	/* The process was out of descriptors, so the second moment could not be read. */
	memset(&s->end.generator, 0, sizeof(s->end.generator));
	assert_true(isnan(step_generator_cpus(s)));
}

static const json_t *at(const json_t *o, const char *path)
{
	char key[64];

	for (; o && *path; path += strcspn(path, "."), path += *path == '.') {
		size_t n = strcspn(path, ".");

		assert_true(n < sizeof(key));
		memcpy(key, path, n);
		key[n] = '\0';
		o = json_object_get(o, key);
	}
	return o;
}

static void assert_null_at(const json_t *o, const char *path)
{
	if (!json_is_null(at(o, path)))
		fail_msg("%s is not null", path);
}

static void assert_number_at(const json_t *o, const char *path, double expected)
{
	if (!json_is_number(at(o, path)) || fabs(json_number_value(at(o, path)) - expected) > 1e-6)
		fail_msg("%s is %f and not %f", path, json_number_value(at(o, path)), expected);
}

static void assert_all_numbers_finite(const json_t *o)
{
	const char *key;
	json_t *v;
	size_t i;

	assert_non_null(o);
	if (json_is_real(o))
		assert_true(isfinite(json_real_value(o)));
	json_object_foreach((json_t *)o, key, v)
		assert_all_numbers_finite(v);
	json_array_foreach((json_t *)o, i, v)
		assert_all_numbers_finite(v);
}

/* Returns the step's element as a reader gets it: written and parsed again. */
static json_t *to_json(void)
{
	json_t *o = step_json(s, &cfg, workers, WORKERS), *back;
	char *text;

	assert_all_numbers_finite(o);
	text = json_dumps(o, 0);
	assert_non_null(text);
	back = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(back);
	free(text);
	json_decref(o);
	return back;
}

static void make_full_step(void)
{
	const struct fail timeout = { .stage = STAGE_QP_SETUP, .kind = FAIL_TIMEOUT };

	for (uint64_t i = 0; i < WORKERS; i++) {
		struct worker_stats *st = &workers[i]->stats;

		counter_set(&st->attempted, 5);
		counter_set(&st->qps, 5);
		counter_set(&st->cqs, 1);
		counter_set(&st->mrs, 2);
		counter_set(&st->pinned_bytes, 4096);
		for (int k = 0; k < STAGE_TIMED; k++)
			record(st->hists.stages[HANDSHAKE_FULL][k], 1000 * (uint64_t)(k + 1), 5);
		record(st->hists.total[HANDSHAKE_FULL], 36000, 5);
		record(st->hists.response, 2000000, 500);
		measured((int)i, 5, 50000);
	}
	fail_table_count(&workers[0]->stats.failures, &timeout);
	s->connected_peak = s->connected_held = 10;
	s->server_connected = 10;
	s->connect_wall_ns = 250 * NS_PER_MS;
	s->connect_cpu_ns = 60 * NS_PER_MS;
	s->marked = server_report(90, 8, 0);
	s->held = server_report(99, 8.5, 900);
	s->begin.now_ns = NS_PER_S;
	s->end.now_ns = 6 * NS_PER_S;
	s->begin.generator = (struct res_usage){ NS_PER_S, NS_PER_S, 70, 7, 1000, 9, 3, 0 };
	s->end.generator = (struct res_usage){ 2 * NS_PER_S, 4 * NS_PER_S, 170, 17, 2000, 19, 4, 0 };
	s->begin.machine = (struct res_machine_cpu){ NS_PER_S, NS_PER_S, NS_PER_S, 0 };
	s->end.machine = (struct res_machine_cpu){ 7 * NS_PER_S, 4 * NS_PER_S, 5 * NS_PER_S, 0 };
	s->begin.payload_bytes = 5000;
	s->end.payload_bytes = 20005000;
	s->begin.one_sided_bytes = 100;
	s->end.one_sided_bytes = 700;
	s->network_marked = network_reading(1, 0);
	s->network_connected = network_reading(3, 4000);
	s->begin.network = network_reading(1, 0);
	s->end.network = network_reading(5, 80000000);
	s->begin.server = server_report(100, 10, 1000);
	s->end.server = server_report(105, 12.5, 6000);
	json_object_set_new(s->begin.server, "network", network_reading(10, 1000));
	json_object_set_new(s->end.server, "network", network_reading(15, 6000));
	s->after = server_report(110, 13, 7000);
	for (int i = 0; i < 10; i++)
		add_interval(20000, 2100000);
	collect();
}

static const char *const members[] = {
	"target_clients", "repetition", "attempted", "connected_peak", "connected_held", "failed", "dropped",
	"server_connected", "connect_wall_s", "connect_cpu_ns_per_client", "steady", "connect_ns", "connect_full_ns",
	"connect_resumed_ns",
	"connect_longest", "drift", "rates", "follow_up",
	"handshakes", "phase_ns_per_connection", "retries", "retried", "churn", "outages", "active", "fairness",
	"memory", "server_stages_ns", "response_ns",
	"service_ns", "schedule_lag_ns", "sent_late", "offered_per_s", "message_bytes", "streams", "kinds",
	"one_way_ns", "rails", "queue_pairs", "verified",
	"measured_s", "throughput_msgs_per_s", "throughput_bytes_per_s", "sends_per_s",
	"intervals", "resources", "network", "effective", "messages_total", "psn_verified", "psns", "server_before",
	"server_after", "server_pools",
	"clock_late_ns", "reply_stall_ns", "failures", "littles_law_residual", "validity",
};

static const char *const side_members[] = {
	"cpu_user_s", "cpu_system_s", "window_s", "rss_bytes", "fds", "threads", "qps", "cqs", "mrs",
	"pinned_bytes", "payload_bytes", "net_bytes", "net_bytes_per_s", "switches_voluntary", "switches_involuntary",
	"cpu_ns_per_op", "switches_per_op", "machine_steal_ratio", "cgroup_throttled_s", "peak",
};

static const char *const server_members[] = {
	"cpu_user_s", "cpu_system_s", "window_s", "rss_bytes", "fds", "threads", "qps", "cqs", "mrs",
	"pinned_bytes", "machine_kernel_bytes", "payload_bytes", "net_bytes", "net_bytes_per_s", "switches_voluntary",
	"switches_involuntary", "cpu_ns_per_op", "switches_per_op", "machine_steal_ratio", "cgroup_throttled_s", "cpus",
	"peak",
};

static void assert_members(const json_t *o, const char *const *names, size_t n)
{
	assert_int_equal(json_object_size(o), n);
	for (size_t i = 0; i < n; i++)
		if (!json_object_get(o, names[i]))
			fail_msg("there is no %s", names[i]);
}

/* Even if nothing at all was measured. */
TEST(json__any_step__exactly_the_documented_members)
{
	for (int full = 0; full < 2; full++) {
		json_t *o;

		if (full)
			make_full_step();
		o = to_json();
		assert_members(o, members, N_ELEMENTS(members));
		assert_members(at(o, "resources.server"), server_members, N_ELEMENTS(server_members));
		assert_members(at(o, "resources.generator"), side_members, N_ELEMENTS(side_members));
		assert_int_equal(json_object_size(at(o, "resources")), 3);
		assert_int_equal(json_object_size(at(o, "connect_ns")), STAGE_TIMED + 2);
		assert_true(json_is_object(at(o, "connect_ns.psn_generate")));
		for (int i = 0; i < STAGE_TIMED; i++)
			assert_true(json_is_object(json_object_get(at(o, "connect_ns"), stage_names[i])));
		json_decref(o);
	}
}

TEST(json__full_step__the_right_figures)
{
	static const struct { const char *path; double value; } figures[] = {
		{ "target_clients", 10 }, { "repetition", 3 }, { "attempted", 10 }, { "connected_peak", 10 },
		{ "connected_held", 10 }, { "failed", 0 }, { "dropped", 0 }, { "server_connected", 10 },
		/* 2 s of the server and 60 ms of the generator for 10 clients. */
		{ "connect_cpu_ns_per_client.server", 2e8 }, { "connect_cpu_ns_per_client.generator", 6e6 },
		{ "connect_wall_s", 0.25 }, { "connect_ns.tcp_connect.p50", 1000 },
		{ "connect_ns.first_reply.p50", 10000 }, { "connect_ns.total.max", 36000 },
		{ "connect_ns.total.count", 10 }, { "response_ns.count", 1000 }, { "response_ns.p99", 2000000 },
		{ "service_ns.mean", 2000000 }, { "measured_s", 5 }, { "throughput_msgs_per_s", 20000 },
		{ "throughput_bytes_per_s", 2000000 }, { "littles_law_residual", 0 },
		{ "resources.server.cpu_user_s", 2.5 }, { "resources.server.cpu_system_s", 7.5 },
		{ "resources.server.window_s", 5 }, { "resources.server.rss_bytes", 5000000 },
		{ "resources.server.qps", 10 }, { "resources.server.payload_bytes", 5600 },
		{ "resources.server.net_bytes", 10000 }, { "network.server.bytes_in", 5000 },
		{ "resources.server.net_bytes_per_s", 2000 }, { "resources.generator.cpu_user_s", 1 },
		{ "resources.generator.cpu_system_s", 3 }, { "resources.generator.window_s", 5 },
		{ "resources.generator.rss_bytes", 2000 }, { "resources.generator.fds", 19 },
		{ "resources.generator.threads", 4 }, { "resources.generator.qps", 10 },
		{ "resources.generator.cqs", 2 }, { "resources.generator.mrs", 4 },
		{ "resources.server.switches_voluntary", 500 }, { "resources.server.switches_involuntary", 5 },
		/* 2 CPUs of the server and 0.8 of the generator, over 20,000 operations a second. */
		{ "resources.server.cpu_ns_per_op", 100000 }, { "resources.server.switches_per_op", 101. / 20000 },
		{ "resources.generator.switches_voluntary", 100 }, { "resources.generator.switches_involuntary", 10 },
		{ "resources.generator.cpu_ns_per_op", 40000 }, { "resources.generator.switches_per_op", 22. / 20000 },
		{ "resources.generator.pinned_bytes", 8192 }, { "resources.generator.payload_bytes", 20000000 },
		{ "resources.generator.net_bytes", 160000000 }, { "network.generator.window_s", 4 },
		{ "network.connecting.generator.bytes_out", 4000 },
		{ "resources.generator.net_bytes_per_s", 40000000 }, { "resources.machine.busy_s", 6 },
		{ "resources.machine.softirq_s", 3 }, { "resources.machine.idle_s", 4 },
		{ "server_stages_ns.tls_accept", 77 }, { "server_after.uptime_s", 110 },
	};
	json_t *o, *failure;

	make_full_step();
	o = to_json();
	for (size_t i = 0; i < N_ELEMENTS(figures); i++)
		assert_number_at(o, figures[i].path, figures[i].value);
	assert_true(json_is_true(at(o, "steady")));
	assert_int_equal(json_array_size(at(o, "intervals")), 10);
	assert_number_at(json_array_get(at(o, "intervals"), 1), "t_s", 0.5);
	assert_number_at(json_array_get(at(o, "intervals"), 1), "p99_ns", 2162687);
	assert_int_equal(json_array_size(at(o, "failures")), 1);
	failure = json_array_get(at(o, "failures"), 0);
	assert_string_equal(json_string_value(json_object_get(failure, "stage")), "qp_setup");
	assert_string_equal(json_string_value(json_object_get(failure, "code")), "timeout");
	assert_number_at(failure, "count", 1);
	json_decref(o);
}

TEST(json__not_measured__null_and_not_zero)
{
	static const char *const nulls[] = {
		"littles_law_residual", "measured_s", "throughput_msgs_per_s", "throughput_bytes_per_s",
		"schedule_lag_ns", "server_connected", "server_stages_ns", "server_after", "response_ns.p50",
		"response_ns.mean", "connect_ns.total.p50", "resources.server.cpu_user_s",
		"resources.server.rss_bytes", "resources.server.net_bytes", "network.server", "network.generator",
		"resources.server.payload_bytes", "resources.generator.payload_bytes",
		"resources.server.net_bytes_per_s",
		"resources.server.window_s", "resources.generator.cpu_user_s", "resources.generator.cpu_system_s",
		"resources.generator.rss_bytes", "resources.generator.net_bytes", "resources.generator.window_s",
		"resources.server.cpu_ns_per_op", "resources.generator.cpu_ns_per_op",
		"resources.server.switches_per_op",
		"resources.generator.switches_voluntary", "resources.server.peak", "resources.generator.peak",
		"resources.generator.net_bytes_per_s", "resources.machine.busy_s", "resources.machine.window_s",
	};
	json_auto_t *o = to_json();

	for (size_t i = 0; i < N_ELEMENTS(nulls); i++)
		assert_null_at(o, nulls[i]);
	assert_number_at(o, "attempted", 0);
}

TEST(json__nothing_sent_while_measured__residual_null_rate_zero)
{
	json_auto_t *o = NULL;

	s->connected_held = 10;
	measured(0, 5, 0);
	collect();
	o = to_json();
	assert_null_at(o, "littles_law_residual");
	assert_number_at(o, "throughput_msgs_per_s", 0);
}

TEST(json__sends__only_of_a_workload_that_joins)
{
	const struct workload joining = { .streams = 1, .joins = true };
	json_t *o;

	measured(0, 5, 5000);
	counter_set(&workers[0]->stats.sends_measured, 500);
	collect();
	o = to_json();
	assert_null_at(o, "sends_per_s");
	json_decref(o);
	cfg.wl = &joining;
	o = to_json();
	assert_number_at(o, "sends_per_s", 100);
	assert_number_at(o, "throughput_msgs_per_s", 1000);
	json_decref(o);
}

/* Round trips of 1 us and 2,001 ns, and half of each. */
TEST(json__round_trips__half_of_each_beside_them)
{
	static const struct workload bounced = { .streams = 1, .round_trip = true };
	json_t *o;

	cfg.wl = &bounced;
	record(workers[0]->stats.hists.response, 1000, 500);
	record(workers[1]->stats.hists.response, 2001, 500);
	measured(0, 5, 500);
	collect();
	o = to_json();
	assert_number_at(o, "response_ns.min", 1000);
	assert_number_at(o, "one_way_ns.min", 500);
	assert_number_at(o, "one_way_ns.mean", 750.25);
	assert_number_at(o, "one_way_ns.max", 1000);
	assert_number_at(o, "one_way_ns.count", 1000);
	json_decref(o);
	cfg.rate_per_client = 100;
	o = to_json();
	assert_null_at(o, "one_way_ns");
	json_decref(o);
}

static unsigned odd_or_even(const struct loadgen_config *c, uint64_t number)
{
	(void)c;
	return number % 2;
}

TEST(json__kinds__rate_and_latency_of_each)
{
	static const struct workload two_kinds = { .streams = 1, .kind_names = { "write", "atomic" },
						   .kind_of = odd_or_even, .kind_bytes = { 0, 8 } };
	json_t *o;

	cfg.wl = &two_kinds;
	for (int i = 0; i < WORKERS; i++) {
		measured(i, 2, 600);
		counter_set(&workers[i]->stats.kind_measured[0], 400);
		counter_set(&workers[i]->stats.kind_measured[1], 200);
		record(workers[i]->stats.hists.kind_response[0], 1000, 400);
		record(workers[i]->stats.hists.kind_response[1], 3000, 200);
	}
	collect();
	o = to_json();
	assert_int_equal(json_object_size(at(o, "kinds")), 2);
	assert_number_at(o, "kinds.write.msgs_per_s", 400);
	assert_number_at(o, "kinds.write.bytes_per_s", 40000);
	assert_number_at(o, "kinds.write.response_ns.p99", 1000);
	assert_number_at(o, "kinds.atomic.msgs_per_s", 200);
	assert_number_at(o, "kinds.atomic.bytes_per_s", 1600);
	assert_number_at(o, "kinds.atomic.response_ns.min", 3000);
	assert_null_at(o, "streams");
	json_decref(o);
}

TEST(json__two_directions__each_with_its_fairness_and_head_of_line)
{
	static const struct workload both_ways = { .streams = 2, .kind_names = { "to_server", "from_server" } };
	json_t *o;

	cfg.wl = &both_ways;
	for (int i = 0; i < WORKERS; i++) {
		struct worker_stats *st = &workers[i]->stats;

		measured(i, 5, 30);
		counter_set(&st->kind_measured[1], 20);
		record(st->hists.kind_response[1], 5000, 20);
		/* The first worker's client got 5 operations, the second one's 15. */
		counter_set(&st->streams[1].fair.n, 1);
		counter_set(&st->streams[1].fair.sum, i ? 15 : 5);
		counter_set(&st->streams[1].fair.min, i ? 15 : 5);
		counter_set(&st->streams[1].fair.max, i ? 15 : 5);
		atomic_store(&st->streams[1].fair.squares, i ? 225 : 25);
		counter_set(&st->streams[1].took_ns, 1000);
		counter_set(&st->streams[1].waited_ns, i ? 500 : 100);
	}
	collect();
	o = to_json();
	assert_number_at(o, "streams.from_server.msgs_per_s", 8);
	assert_number_at(o, "streams.from_server.response_ns.count", 40);
	assert_number_at(o, "streams.from_server.fairness.jain_index", 400. / 500);
	assert_number_at(o, "streams.from_server.fairness.fastest_msgs_per_s", 3);
	assert_number_at(o, "streams.from_server.head_of_line_ratio", 0.3);
	assert_null_at(o, "streams.to_server.head_of_line_ratio");
	assert_null_at(o, "streams.to_server.fairness");
	assert_null_at(o, "kinds");
	json_decref(o);
}

TEST(json__server_gone_or_asked_twice_at_once__nulls)
{
	json_t *o;

	s->measured = true;
	s->begin.server = server_report(100, 10, 1000);
	s->after = server_report(110, 13, 7000);
	o = to_json();
	assert_null_at(o, "resources.server.cpu_user_s");
	assert_null_at(o, "resources.server.rss_bytes");
	/* The stages belong to the whole step, so the report after it has them too. */
	assert_number_at(o, "server_stages_ns.tls_accept", 77);
	json_decref(o);
	s->end.server = json_incref(s->begin.server);
	o = to_json();
	assert_number_at(o, "resources.server.window_s", 0);
	assert_null_at(o, "resources.server.net_bytes_per_s");
	json_decref(o);
}

TEST(json__out_of_descriptors_at_the_end__no_cpu_figure)
{
	json_auto_t *o = NULL;

	make_full_step();
	memset(&s->end.generator, 0, sizeof(s->end.generator));
	memset(&s->end.machine, 0, sizeof(s->end.machine));
	o = to_json();
	assert_null_at(o, "resources.generator.cpu_user_s");
	assert_null_at(o, "resources.generator.cpu_system_s");
	assert_null_at(o, "resources.generator.fds");
	assert_null_at(o, "resources.machine.busy_s");
	assert_null_at(o, "resources.machine.idle_s");
	assert_number_at(o, "resources.generator.qps", 10);
}

TEST(json__mark_lost__server_stages_and_cpu_of_connecting_unknown)
{
	json_auto_t *o = NULL;

	make_full_step();
	s->mark_lost = true;
	o = to_json();
	assert_null_at(o, "server_stages_ns");
	assert_null_at(o, "connect_cpu_ns_per_client.server");
	assert_number_at(o, "connect_cpu_ns_per_client.generator", 6e6);
}

TEST(json__server_restarted_while_connecting__its_cpu_of_connecting_unknown)
{
	json_auto_t *o = NULL;

	make_full_step();
	json_decref(s->held);
	s->held = server_report(99, 1, 900);
	o = to_json();
	assert_null_at(o, "connect_cpu_ns_per_client.server");
}

TEST(json__psns__those_shared_are_not_distinct)
{
	static const struct { const char *path; double value; } figures[] = {
		{ "psns.exchanged", 20 }, { "psns.distinct", 17 }, { "psns.redrawn", 2 }, { "psns.mismatches", 1 },
		{ "psns.server_redrawn", 4 }, { "psns.server_verified", 11 }, { "psn_verified", 10 },
	};
	json_t *o;

	counter_set(&workers[0]->stats.psns_exchanged, 20);
	counter_set(&workers[1]->stats.psns_shared, 3);
	counter_set(&workers[0]->stats.psns_redrawn, 2);
	counter_set(&workers[1]->stats.psn_mismatches, 1);
	counter_set(&workers[0]->stats.psn_verified, 10);
	s->marked = json_pack("{s:{s:i, s:i}}", "events", "psn_redraws", 5, "psn_verified", 100);
	s->after = json_pack("{s:{s:i, s:i}}", "events", "psn_redraws", 9, "psn_verified", 111);
	collect();
	o = to_json();
	for (size_t i = 0; i < N_ELEMENTS(figures); i++)
		assert_number_at(o, figures[i].path, figures[i].value);
	/* A server of an earlier version does not say. */
	assert_null_at(o, "psns.server_mismatches");
	json_decref(o);
	cfg.transport = TRANSPORT_TCP;
	o = to_json();
	cfg.transport = TRANSPORT_RDMA;
	assert_null_at(o, "psns");
	json_decref(o);
}

TEST(json__interval_without_p99__null)
{
	json_auto_t *o = NULL;

	add_interval(10, 0);
	o = to_json();
	assert_null_at(json_array_get(at(o, "intervals"), 0), "p99_ns");
	assert_number_at(json_array_get(at(o, "intervals"), 0), "messages_per_s", 10);
}

/* Checks for exactly these flags, separated by spaces. */
static void assert_validity(const char *expected)
{
	json_t *o = to_json(), *v;
	char text[400] = "";
	size_t i;

	json_array_foreach(at(o, "validity"), i, v) {
		strcat(text, i ? " " : "");
		strcat(text, json_string_value(v));
	}
	json_decref(o);
	assert_string_equal(text, expected);
}

TEST(validity__good_step__no_flag)
{
	make_full_step();
	assert_validity("");
}

TEST(validity__each_reason__its_flag)
{
	make_full_step();
	s->steady = false;
	assert_validity("not_steady");
	s->too_short = true;
	assert_validity("too_short");
	s->too_short = false;
	s->steady = true;
	s->generator_saturated = true;
	assert_validity("generator_saturated");
	s->generator_saturated = false;
	s->step_timeout = true;
	assert_validity("step_timeout");
	s->step_timeout = false;
	s->replies_missing = true;
	assert_validity("replies_missing");
	s->replies_missing = false;
	s->clock_late_ns = PULSE_HOLE_NS + 1;
	assert_validity("clock_hole");
	s->clock_late_ns = PULSE_HOLE_NS;
	s->reply_stall_ns = STEP_STALL_NS + 1;
	assert_validity("replies_stalled");
	s->reply_stall_ns = STEP_STALL_NS;
	s->pools = POOLS_NOT_RESTORED;
	assert_validity("server_pools_not_restored");
	s->pools = POOLS_UNKNOWN;
	assert_validity("server_pools_unknown");
	s->pools = POOLS_RESTORED;
	cfg.server = NULL;
	assert_validity("server_and_generator_share_the_machine");
}

TEST(validity__not_measured__that_and_not_unsteady)
{
	assert_validity("not_measured");
}

TEST(validity__residual_beyond_5_percent__violated)
{
	make_full_step();
	s->messages_per_s = 20000 * 1.049;
	assert_validity("");
	s->messages_per_s = 20000 * 1.051;
	assert_validity("littles_law_violated");
	s->messages_per_s = 20000 * 0.951;
	assert_validity("");
	s->messages_per_s = 20000 * 0.949;
	assert_validity("littles_law_violated");
}

TEST(validity__server_counts_others__flagged_unless_unknown)
{
	make_full_step();
	s->server_connected = 9;
	assert_validity("server_counts_differ");
	s->server_connected = 0;
	assert_validity("server_counts_differ");
	s->server_connected = -1;
	assert_validity("");
	/* The server is asked when all clients are connected; later losses make no difference. */
	s->server_connected = 10;
	s->connected_held = 9;
	s->messages_per_s = 18000;
	assert_validity("");
}

TEST_EACH(set_up, tear_down)
