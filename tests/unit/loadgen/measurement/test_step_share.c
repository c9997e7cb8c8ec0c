/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/step.c and step_json.c: figures per client, of clients that come and go, and of
 * handshakes by their kind. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/json_at.h"
#include "loadgen/measurement/step.h"
#include "loadgen/worker/worker.h"

struct worker {
	struct worker_stats stats;
};

static struct worker *worker;
static const struct workload messages = { .streams = 1 }, silence = { .idle = true };
static struct loadgen_config cfg;
static struct step *s;

const struct worker_stats *worker_stats(const struct worker *w)
{
	return &w->stats;
}

static int set_up(void **state)
{
	(void)state;
	memset(&cfg, 0, sizeof(cfg));
	cfg.wl = &messages;
	cfg.inflight = 1;
	worker = calloc(1, sizeof(*worker));
	assert_non_null(worker);
	assert_int_equal(worker_stats_init(&worker->stats), 0);
	return step_new(10, 64, 1, &s);
}

static int tear_down(void **state)
{
	(void)state;
	worker_stats_release(&worker->stats);
	free(worker);
	step_free(s);
	return 0;
}

/* Publishes a worker's figures for clients that got these numbers of replies. */
static void share(const uint64_t *replies, size_t n)
{
	struct worker_stats *st = &worker->stats;
	uint64_t sum = 0, squares = 0, min = UINT64_MAX, max = 0;

	for (size_t i = 0; i < n; i++) {
		sum += replies[i];
		squares += replies[i] * replies[i];
		min = replies[i] < min ? replies[i] : min;
		max = replies[i] > max ? replies[i] : max;
	}
	counter_set(&st->fair.n, n);
	counter_set(&st->fair.sum, sum);
	atomic_store(&st->fair.squares, (double)squares);
	counter_set(&st->fair.min, min);
	counter_set(&st->fair.max, max);
}

static void collect(void)
{
	step_collect(s, &worker, 1, &cfg);
}

static double at(const json_t *o, const char *path)
{
	return json_number_at(o, path);
}

TEST(jain__all_alike__one)
{
	share((uint64_t[]){ 5, 5, 5, 5 }, 4);
	collect();
	assert_float_equal(step_jain(&s->fairness), 1, 1e-12);
}

TEST(jain__one_has_all__one_over_n)
{
	share((uint64_t[]){ 0, 0, 8, 0 }, 4);
	collect();
	assert_float_equal(step_jain(&s->fairness), 0.25, 1e-12);
	assert_int_equal(s->fairness.min, 0);
	assert_int_equal(s->fairness.max, 8);
}

TEST(jain__over_two_workers__as_over_one)
{
	/* Jain's index is 36 / (3 x 14) for 1, 2, 3. */
	share((uint64_t[]){ 1, 2 }, 2);
	collect();
	share((uint64_t[]){ 3 }, 1);
	collect();
	assert_float_equal(step_jain(&s->fairness), 36.0 / 42, 1e-12);
	assert_int_equal(s->fairness.min, 1);
	assert_int_equal(s->fairness.max, 3);
	assert_int_equal(s->fairness.clients, 3);
}

TEST(jain__nothing_to_share__nan)
{
	assert_true(isnan(step_jain(&s->fairness)));
	share((uint64_t[]){ 0, 0 }, 2);
	collect();
	assert_true(isnan(step_jain(&s->fairness)));
}

TEST(active__some_of_those_held__that_many)
{
	s->connected_held = 10;
	s->senders = 10;
	assert_int_equal(step_active(s, &cfg), 10);
	s->senders = 3;
	assert_int_equal(step_active(s, &cfg), 3);
	s->connected_held = 2;
	assert_int_equal(step_active(s, &cfg), 2);
	cfg.wl = &silence;
	assert_int_equal(step_active(s, &cfg), 0);
}

/* All hosts together begin 300 operations a second with 11 clients; the six clients here begin 6/11 of them. */
TEST(offered__rate_of_all_hosts__share_of_those_here)
{
	s->rate = 300;
	s->senders = 6;
	s->senders_of_all = 11;
	collect();
	assert_float_equal(s->offered_per_s, 300. * 6 / 11, 1e-9);
	s->senders = s->senders_of_all;
	collect();
	assert_float_equal(s->offered_per_s, 300, 0);
}

TEST(residual__some_active__their_population)
{
	s->connected_held = 10;
	s->measured = true;
	s->messages_per_s = 4;
	for (int i = 0; i < 8; i++)
		hist_record(s->hists.response, NS_PER_S / 2);
	s->senders = 2;
	/* 2 clients, 4 operations a second, half a second each. */
	assert_float_equal(step_littles_residual(s, &cfg), 0, 1e-3);
	s->senders = 10;
	assert_float_equal(step_littles_residual(s, &cfg), 0.8, 1e-3);
	cfg.churn_per_s = 1;
	assert_true(isnan(step_littles_residual(s, &cfg)));
}

static json_t *report(int rss, int pinned, int kernel)
{
	return json_pack("{s:{s:i, s:i, s:i}}", "resources", "rss_bytes", rss, "pinned_bytes", pinned,
			 "machine_kernel_bytes", kernel);
}

TEST(memory__held_clients__shares_and_growth)
{
	assert_true(isnan(step_rss_per_client(s)));
	s->connected_held = 4;
	s->baseline = report(100, 10, 1000);
	s->held = report(400, 40, 1400);
	assert_float_equal(step_rss_per_client(s), 100, 1e-9);
	assert_float_equal(step_pinned_per_client(s), 10, 1e-9);
	assert_float_equal(step_kernel_per_client(s), 100, 1e-9);
	/* If there is a later report, it counts. */
	s->end.server = report(800, 40, 1800);
	assert_float_equal(step_rss_per_client(s), 200, 1e-9);
	assert_float_equal(step_kernel_per_client(s), 200, 1e-9);
	json_decref(s->baseline);
	s->baseline = NULL;
	assert_true(isnan(step_kernel_per_client(s)));
}

TEST(json__both_kinds_of_handshake__apart_and_together)
{
	json_auto_t *o = NULL;

	hist_record(worker->stats.hists.total[HANDSHAKE_FULL], 3000);
	hist_record(worker->stats.hists.total[HANDSHAKE_RESUMED], 1000);
	hist_record(worker->stats.hists.total[HANDSHAKE_RESUMED], 1000);
	hist_record(worker->stats.hists.stages[HANDSHAKE_FULL][STAGE_TLS_HANDSHAKE], 2000);
	hist_record(worker->stats.hists.stages[HANDSHAKE_RESUMED][STAGE_TLS_HANDSHAKE], 500);
	collect();
	o = step_json(s, &cfg, &worker, 1);
	assert_non_null(o);
	assert_true(at(o, "handshakes.full") == 1 && at(o, "handshakes.resumed") == 2);
	assert_true(at(o, "connect_ns.total.count") == 3);
	assert_true(at(o, "connect_full_ns.total.count") == 1);
	assert_true(at(o, "connect_resumed_ns.total.count") == 2);
	assert_float_equal(at(o, "connect_full_ns.tls_handshake.mean"), 2000, 1);
	assert_float_equal(at(o, "connect_resumed_ns.tls_handshake.mean"), 500, 1);
}

TEST(json__no_resumed_handshake__null)
{
	json_auto_t *o = NULL;

	hist_record(worker->stats.hists.total[HANDSHAKE_FULL], 3000);
	collect();
	o = step_json(s, &cfg, &worker, 1);
	assert_true(json_is_null(json_object_get(o, "connect_resumed_ns")));
	assert_true(json_is_null(json_object_get(o, "phase_ns_per_connection")));
	assert_true(json_is_null(json_object_get(o, "churn")));
}

TEST(json__phased__wall_time_over_the_connections)
{
	json_auto_t *o = NULL;

	cfg.phased = true;
	counter_set(&worker->stats.attempted, 10);
	s->phase_ns[STAGE_TCP_CONNECT] = 5000;
	s->phase_ns[STAGE_RDMA_CONNECT] = 70000;
	collect();
	o = step_json(s, &cfg, &worker, 1);
	assert_true(at(o, "phase_ns_per_connection.tcp_connect") == 500);
	assert_true(at(o, "phase_ns_per_connection.rdma_connect") == 7000);
	/* A phase that was not reached is left out. */
	assert_int_equal(json_object_size(json_object_get(o, "phase_ns_per_connection")), 2);
}

static json_t *pool_report(int hits, int misses)
{
	return json_pack("{s:{s:{s:i, s:i, s:i}}, s:{s:{s:i}}}", "pools", "qp", "hits", hits, "misses", misses,
			 "exhausted", 1, "stages_ns", "qp_recycle", "count", 7);
}

TEST(json__churn__cycles_and_the_pools_share)
{
	json_auto_t *o = NULL;

	cfg.churn_per_s = 50;
	counter_set(&worker->stats.cycles, 200);
	counter_set(&worker->stats.cycles_failed, 3);
	counter_set(&worker->stats.measure_start_ns, NS_PER_S);
	counter_set(&worker->stats.measure_end_ns, 5 * NS_PER_S);
	hist_record(worker->stats.hists.away_ns, 1000);
	s->begin.server = pool_report(100, 10);
	s->end.server = pool_report(190, 20);
	collect();
	o = step_json(s, &cfg, &worker, 1);
	assert_true(at(o, "churn.cycles") == 200 && at(o, "churn.cycles_failed") == 3);
	assert_float_equal(at(o, "churn.cycles_per_s"), 50, 1e-9);
	assert_float_equal(at(o, "churn.qp_pool_hit_ratio"), 0.9, 1e-9);
	assert_true(at(o, "churn.qp_pool_misses") == 10 && at(o, "churn.qp_pool_exhausted") == 0);
	assert_true(at(o, "churn.qp_recycle_ns.count") == 7 && at(o, "churn.away_ns.count") == 1);
}

TEST_EACH(set_up, tear_down)
