/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/ramp/crew.c: the orders of each worker, with several servers and unequal shares. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/random.h"
#include "common/rdma/dev.h"
#include "loadgen/config/deal.h"
#include "loadgen/ramp/crew.h"
#include "loadgen/traffic/workload.h"

#define WORKERS_MAX 40

struct worker {
	struct worker_config cfg;
	struct worker_task task;
	struct worker_stats stats;
};

int worker_new(const struct worker_config *cfg, struct worker **out, char *err, size_t err_size)
{
	(void)err;
	(void)err_size;
	*out = calloc(1, sizeof(**out));
	assert_non_null(*out);
	(*out)->cfg = *cfg;
	return 0;
}

int worker_start(struct worker *w, char *err, size_t err_size)
{
	(void)w;
	(void)err;
	(void)err_size;
	return 0;
}

void worker_free(struct worker *w)
{
	free(w);
}

void worker_give(struct worker *w, enum worker_order order, const struct worker_task *task)
{
	if (order == ORDER_CONNECT)
		w->task = *task;
}

bool worker_is_done(const struct worker *w)
{
	return w != NULL;
}

int worker_failure(const struct worker *w, const char **devices)
{
	(void)w;
	(void)devices;
	return 0;
}

const struct worker_stats *worker_stats(const struct worker *w)
{
	return &w->stats;
}

uint32_t worker_clients_max(const struct worker *w)
{
	return w->cfg.client.max_conns;
}

/* The first server is reached over its own device; the others share one. */
const struct dev *worker_dev(const struct worker *w, uint32_t rail)
{
	static const struct dev devices[] = { { .name = "fake0", .port_num = 1 }, { .name = "fake1", .port_num = 1 } };

	assert_int_equal(rail, 0);
	return &devices[addr_port(&w->cfg.rails[0].server) == 1 ? 0 : 1];
}

bool dev_is_software(const struct dev *d)
{
	(void)d;
	return true;
}

int dev_source_addr(const struct addr *peer, struct addr *out)
{
	*out = *peer;
	return 0;
}

json_t *dev_json(const struct dev *d)
{
	(void)d;
	return json_null();
}

static void needs_nothing(const struct loadgen_config *c, struct workload_needs *out)
{
	(void)c;
	(void)out;
}

static const struct workload workload = { .streams = 1, .needs = needs_nothing };
static struct crew crew;
static struct loadgen_config cfg;

static void start(uint32_t threads, uint32_t n_targets)
{
	struct sut_place targets[TARGETS_MAX] = { 0 };
	char err[256];

	cfg = (struct loadgen_config){ .hosts = 1, .clients = 1000, .threads = threads, .n_rails = 1, .qps = 1,
				       .wl = &workload, .seed = 1 };
	memset(&crew, 0, sizeof(crew));
	for (uint32_t i = 0; i < n_targets; i++)
		assert_int_equal(addr_parse("127.0.0.1", (uint16_t)(i + 1), &targets[i].addrs[0]), 0);
	assert_int_equal(crew_start(&crew, &cfg, targets, n_targets, NULL, NULL, err, sizeof(err)), 0);
}

static void order(uint32_t clients, uint32_t active, const uint32_t *of_target)
{
	struct worker_task whole = { .clients = clients, .active = active };

	crew_order(&crew, ORDER_CONNECT, &whole, of_target);
}

TEST(start__three_servers__each_worker_has_one_in_turn)
{
	start(7, 3);
	assert_int_equal(crew.n, 7);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(addr_port(&crew.workers[i]->cfg.rails[0].server), i % 3 + 1);
	assert_int_equal(crew.n_ports, 2);
	crew_dismiss(&crew);
}

/* However clients are dealt, no worker gets more than it has room for. */
TEST(start__any_deal__there_is_room_for_the_share)
{
	uint64_t room[3] = { 700, 200, 50 };
	uint32_t dealt[3];

	for (int deal = DEAL_ROUND_ROBIN; deal <= DEAL_RANDOM; deal++) {
		struct sut_place targets[3] = { 0 };
		char err[256];

		cfg = (struct loadgen_config){ .hosts = 1, .clients = 1000, .threads = 8, .n_rails = 1, .qps = 1,
					       .wl = &workload, .seed = 1, .deal = deal };
		memset(&crew, 0, sizeof(crew));
		assert_int_equal(crew_start(&crew, &cfg, targets, 3, NULL, NULL, err, sizeof(err)), 0);
		for (uint32_t clients = 0; clients <= 1000; clients += 125) {
			deal_clients(clients, 3, (enum deal)deal, cfg.seed, room, dealt);
			order(clients, clients, dealt);
			for (uint32_t i = 0; i < crew.n; i++)
				assert_true(crew.workers[i]->task.clients <= crew.workers[i]->cfg.client.max_conns);
		}
		crew_dismiss(&crew);
	}
}

TEST(order__one_server__shares_differ_by_one)
{
	start(4, 1);
	order(10, 6, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(crew.workers[i]->task.clients, i < 2 ? 3 : 2);
		assert_int_equal(crew.workers[i]->task.active, i < 2 ? 2 : 1);
		assert_int_equal(crew.workers[i]->task.active_before, i < 2 ? 2 * i : 2 + i);
		assert_int_equal(crew.workers[i]->task.of_all, 10);
		assert_int_equal(crew.workers[i]->task.active_of_all, 6);
	}
	crew_dismiss(&crew);
}

TEST(order__unequal_shares__add_up_exactly)
{
	uint32_t dealt[TARGETS_MAX];
	uint64_t random = 5;

	for (unsigned round = 0; round < 300; round++) {
		uint32_t n = 1 + (uint32_t)(random_next(&random) % TARGETS_MAX);
		uint32_t threads = n + (uint32_t)(random_next(&random) % (WORKERS_MAX - TARGETS_MAX)), clients = 0,
			active, sent = 0;
		uint32_t got[TARGETS_MAX] = { 0 };
		bool counted[TARGETS_MAX * 100] = { false };

		for (uint32_t i = 0; i < n; i++) {
			dealt[i] = (uint32_t)(random_next(&random) % 3 ? random_next(&random) % 100 : 0);
			clients += dealt[i];
		}
		active = clients ? (uint32_t)(random_next(&random) % (clients + 1)) : 0;
		start(threads, n);
		order(clients, active, dealt);
		for (uint32_t i = 0; i < threads; i++) {
			const struct worker_task *t = &crew.workers[i]->task;

			got[i % n] += t->clients;
			sent += t->active;
			for (uint32_t k = t->active_before; k < t->active_before + t->active; k++) {
				assert_false(counted[k]);
				counted[k] = true;
			}
			assert_true(t->active <= t->clients);
			assert_int_equal(t->of_all, clients);
			assert_int_equal(t->active_of_all, active);
		}
		assert_memory_equal(got, dealt, n * sizeof(got[0]));
		assert_int_equal(sent, active);
		for (uint32_t k = 0; k < active; k++)
			assert_true(counted[k]);
		crew_dismiss(&crew);
	}
}

TEST(live__of_a_server__its_workers_only)
{
	start(5, 2);
	for (uint32_t i = 0; i < 5; i++) {
		counter_set(&crew.workers[i]->stats.live, 1u << i);
		counter_set(&crew.workers[i]->stats.away, 100u << i);
	}
	assert_int_equal(crew_live_of(&crew, 0), 1 + 4 + 16);
	assert_int_equal(crew_live_of(&crew, 1), 2 + 8);
	assert_int_equal(crew_away_of(&crew, 1), 200 + 800);
	assert_int_equal(crew_live(&crew), 31);
	crew_dismiss(&crew);
}
