/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/qp_pool.c: reserve, quarantine, generations, the map of queue pair
 * numbers. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "common/base/log.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

#define QUARANTINE 1000u

static void open_pool(uint32_t max, uint32_t reserve)
{
	verbs_rig_open_pool(max, reserve, QUARANTINE, 0);
}

static uint32_t qpn_of(uint32_t slot)
{
	return qp_pool_qp(rig.qps, slot)->qp_num;
}

/* How many queue pairs were taken from the reserve, and how many were made on demand. */
static void assert_taken(uint64_t hits, uint64_t misses)
{
	assert_int_equal(verbs_rig_pool_counts().hits, hits);
	assert_int_equal(verbs_rig_pool_counts().misses, misses);
}

static void assert_consistent(void)
{
	struct qp_pool_counts c = verbs_rig_pool_counts();

	assert_int_equal(c.qps, c.free + c.in_use + c.quarantined);
	assert_int_equal(c.qps, fake_qps());
	assert_true(c.in_use_peak >= c.in_use);
}

TEST(get__nothing_made_yet__miss)
{
	open_pool(4, 0);
	verbs_rig_take(7);
	assert_taken(0, 1);
	assert_int_equal(verbs_rig_pool_counts().in_use, 1);
	assert_consistent();
}

TEST(get__from_the_reserve__hit)
{
	uint32_t slot;

	open_pool(8, 2);
	assert_false(qp_pool_maintain(rig.qps, 0, 8));
	assert_int_equal(verbs_rig_pool_counts().free, 2);
	slot = verbs_rig_take(7);
	assert_taken(1, 0);
	assert_int_equal(fake_qp_state(qp_pool_qp(rig.qps, slot)), IBV_QPS_RESET);
	assert_false(qp_pool_maintain(rig.qps, 0, 8));
	assert_int_equal(verbs_rig_pool_counts().free, 2);
	assert_int_equal(verbs_rig_pool_counts().qps, 3);
	assert_consistent();
}

TEST(get__all_in_use__eagain_and_counted)
{
	uint32_t slot = 99;

	open_pool(3, 0);
	for (uint32_t i = 0; i < 3; i++)
		verbs_rig_take(i);
	assert_int_equal(qp_pool_get(rig.qps, 9, &slot), -EAGAIN);
	assert_int_equal(slot, 99);
	assert_int_equal(verbs_rig_pool_counts().exhausted, 1);
	assert_int_equal(verbs_rig_pool_counts().in_use_peak, 3);
	assert_consistent();
}

TEST(get__all_in_quarantine__eagain)
{
	uint32_t slot;

	open_pool(1, 0);
	qp_pool_put(rig.qps, verbs_rig_take(1), 0, true);
	assert_int_equal(qp_pool_get(rig.qps, 2, &slot), -EAGAIN);
	assert_consistent();
}

TEST(get__device_fails__its_errno_and_nothing_lost)
{
	uint32_t slot;

	open_pool(2, 0);
	for (int i = 0; i < 5; i++) {
		fake_fail_next("ibv_create_qp", ENOMEM);
		assert_int_equal(qp_pool_get(rig.qps, 1, &slot), -ENOMEM);
		assert_consistent();
	}
	assert_int_equal(verbs_rig_pool_counts().exhausted, 5);
	verbs_rig_take(1);
	verbs_rig_take(2);
	assert_int_equal(verbs_rig_pool_counts().in_use, 2);
}

TEST(get__every_creation_fails_in_turn__pool_fills_all_the_same)
{
	open_pool(6, 0);
	for (uint32_t made = 0; made < 6; made++) {
		uint32_t slot;

		fake_fail_at(1, ENOSPC);
		assert_int_equal(qp_pool_get(rig.qps, made, &slot), -ENOSPC);
		fake_fail_at(0, 0);
		assert_int_equal(qp_pool_get(rig.qps, made, &slot), 0);
		assert_int_equal(qp_pool_owner_of_qpn(rig.qps, qpn_of(slot)), made);
		assert_consistent();
	}
}

TEST(maintain__device_fails__gives_up_until_the_next_time)
{
	open_pool(8, 8);
	fake_fail_at(4, ENOMEM);
	assert_false(qp_pool_maintain(rig.qps, 0, 8));
	assert_int_equal(verbs_rig_pool_counts().free, 3);
	/* Not again at once, nor a moment before its time. */
	assert_false(qp_pool_maintain(rig.qps, UINT64_C(9999999999), 5));
	assert_int_equal(verbs_rig_pool_counts().free, 3);
	assert_true(qp_pool_maintain(rig.qps, UINT64_C(10000000000), 5));
	assert_int_equal(verbs_rig_pool_counts().free, 8);
	assert_consistent();
}

TEST(maintain__budget__kept)
{
	open_pool(8, 8);
	assert_true(qp_pool_maintain(rig.qps, 0, 3));
	assert_int_equal(verbs_rig_pool_counts().qps, 3);
	assert_true(qp_pool_maintain(rig.qps, 0, 3));
	assert_false(qp_pool_maintain(rig.qps, 0, 3));
	assert_int_equal(verbs_rig_pool_counts().qps, 8);
}

TEST(maintain__reserve_larger_than_the_pool__stops_at_max)
{
	open_pool(4, 100);
	assert_false(qp_pool_maintain(rig.qps, 0, 50));
	assert_int_equal(verbs_rig_pool_counts().qps, 4);
}

TEST(quarantine__before_its_time__rests_then_reset_and_free)
{
	uint32_t slot;

	open_pool(2, 0);
	slot = verbs_rig_take(1);
	verbs_rig_connect(qp_pool_qp(rig.qps, slot));
	qp_pool_put(rig.qps, slot, 5000, true);
	assert_int_equal(verbs_rig_pool_counts().quarantined, 1);
	assert_int_equal(verbs_rig_pool_counts().in_use, 0);
	qp_pool_maintain(rig.qps, 5000 + QUARANTINE - 1, 8);
	assert_int_equal(verbs_rig_pool_counts().quarantined, 1);
	assert_int_equal(rig.n_rested, 0);
	assert_int_equal(fake_qp_state(qp_pool_qp(rig.qps, slot)), IBV_QPS_RTS);
	qp_pool_maintain(rig.qps, 5000 + QUARANTINE, 8);
	assert_int_equal(verbs_rig_pool_counts().quarantined, 0);
	assert_int_equal(verbs_rig_pool_counts().free, 1);
	assert_int_equal(fake_qp_state(qp_pool_qp(rig.qps, slot)), IBV_QPS_RESET);
	assert_int_equal(rig.n_rested, 1);
	assert_int_equal(rig.rested[0], slot);
	assert_int_equal(rig.rested_ns, QUARANTINE);
	assert_consistent();
}

TEST(quarantine__several__first_in_first_out)
{
	uint32_t slots[4];

	open_pool(4, 0);
	for (uint32_t i = 0; i < 4; i++)
		slots[i] = verbs_rig_take(i);
	for (uint32_t i = 0; i < 4; i++)
		qp_pool_put(rig.qps, slots[(i + 2) % 4], i * 10, true);
	assert_true(qp_pool_maintain(rig.qps, QUARANTINE + 100, 1));
	assert_int_equal(rig.n_rested, 1);
	qp_pool_maintain(rig.qps, QUARANTINE + 20, 8);
	assert_int_equal(rig.n_rested, 3);
	qp_pool_maintain(rig.qps, QUARANTINE + 30, 8);
	assert_int_equal(rig.n_rested, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(rig.rested[i], slots[(i + 2) % 4]);
	/* The list is usable after it was empty. */
	qp_pool_put(rig.qps, verbs_rig_take(9), 0, true);
	qp_pool_maintain(rig.qps, QUARANTINE, 8);
	assert_int_equal(rig.n_rested, 5);
	assert_consistent();
}

TEST(quarantine__rests_that_differ__out_in_the_order_of_their_ends)
{
	static const uint64_t rests[] = { 500, 100, 300, 900, 100, 400 };
	static const uint32_t order[] = { 1, 4, 2, 5, 0, 3 };
	uint32_t slots[N_ELEMENTS(rests)];

	open_pool(N_ELEMENTS(rests), 0);
	for (uint32_t i = 0; i < N_ELEMENTS(rests); i++) {
		slots[i] = verbs_rig_take(i);
		qp_pool_set_rest(rig.qps, slots[i], rests[i]);
	}
	for (uint32_t i = 0; i < N_ELEMENTS(rests); i++)
		qp_pool_put(rig.qps, slots[i], 10 + i, true);
	assert_int_equal(qp_pool_idle_ns(rig.qps, 0), 111);
	for (uint32_t i = 0; i < N_ELEMENTS(rests); i++) {
		uint64_t end = 10 + order[i] + rests[order[i]];

		qp_pool_maintain(rig.qps, end - 1, 8);
		assert_int_equal(rig.n_rested, i);
		qp_pool_maintain(rig.qps, end, 8);
		assert_int_equal(rig.n_rested, i + 1);
		assert_int_equal(rig.rested[i], slots[order[i]]);
		assert_int_equal(rig.rested_ns, rests[order[i]]);
	}
	/* A rest is of one use. */
	qp_pool_put(rig.qps, verbs_rig_take(9), 5000, true);
	qp_pool_maintain(rig.qps, 5000 + QUARANTINE - 1, 8);
	assert_int_equal(rig.n_rested, N_ELEMENTS(rests));
	qp_pool_maintain(rig.qps, 5000 + QUARANTINE, 8);
	assert_int_equal(rig.n_rested, N_ELEMENTS(rests) + 1);
	assert_consistent();
}

#define MANY 10000u

static int by_end(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

/* All are taken and given back: those with an even number rest for `even_ns`. Returns the processor's time of the
 * giving back alone. */
static uint64_t rest_many(uint64_t now_ns, uint64_t even_ns, uint64_t odd_ns)
{
	static uint32_t slots[MANY];
	struct timespec a, b;

	for (uint32_t i = 0; i < MANY; i++) {
		slots[i] = verbs_rig_take(i);
		qp_pool_set_rest(rig.qps, slots[i], i % 2 ? odd_ns : even_ns);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (uint32_t i = 0; i < MANY; i++)
		qp_pool_put(rig.qps, slots[i], now_ns + i, true);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return (uint64_t)(b.tv_sec - a.tv_sec) * NS_PER_S + (uint64_t)b.tv_nsec - (uint64_t)a.tv_nsec;
}

/* A pool of 10,000 that rest for two lengths: giving one back takes about as long as with one length. */
TEST(quarantine__10_000_of_two_lengths__no_list_is_walked)
{
	static uint64_t ends[MANY];
	uint64_t one = UINT64_MAX, two = UINT64_MAX, start = 0;

	open_pool(MANY, 0);
	for (int i = 0; i < 3; i++, start += 200000) {
		uint64_t took_ns = rest_many(start, 50000, 50000);

		one = MIN(one, took_ns);
		qp_pool_maintain(rig.qps, start + 100000, 2 * MANY);
		took_ns = rest_many(start + 100000, 90000, 20000);
		two = MIN(two, took_ns);
		qp_pool_maintain(rig.qps, start + 200000, 2 * MANY);
	}
	print_message("10,000 given back: %llu us, of two lengths %llu us\n", (unsigned long long)one / 1000,
		      (unsigned long long)two / 1000);
	assert_true(two < 30 * one);
	/* Nobody comes out before its time. */
	for (uint32_t i = 0; i < MANY; i++)
		ends[i] = start + i + (i % 2 ? 20000 : 90000);
	qsort(ends, MANY, sizeof(ends[0]), by_end);
	rest_many(start, 90000, 20000);
	for (uint32_t i = 0; i < MANY; i += 97) {
		qp_pool_maintain(rig.qps, ends[i] - 1, 2 * MANY);
		assert_true(verbs_rig_pool_counts().quarantined >= MANY - i);
		qp_pool_maintain(rig.qps, ends[i], 2 * MANY);
		assert_true(verbs_rig_pool_counts().quarantined < MANY - i);
	}
	assert_consistent();
}

TEST(quarantine__not_reusable__destroyed_and_forgotten)
{
	uint32_t slot, qpn;

	open_pool(2, 0);
	slot = verbs_rig_take(1);
	qpn = qpn_of(slot);
	qp_pool_put(rig.qps, slot, 0, false);
	assert_non_null(fake_qp_of(qpn));
	qp_pool_maintain(rig.qps, QUARANTINE, 8);
	assert_null(fake_qp_of(qpn));
	assert_int_equal(verbs_rig_pool_counts().qps, 0);
	assert_int_equal(rig.n_rested, 1);
	assert_int_equal(qp_pool_owner_of_qpn(rig.qps, qpn), QP_POOL_NONE);
	assert_int_not_equal(qpn_of(verbs_rig_take(2)), qpn);
	assert_consistent();
}

TEST(owner__slot_and_generation__only_the_present_life)
{
	uint32_t slot, generation;

	open_pool(1, 0);
	slot = verbs_rig_take(5);
	generation = qp_pool_generation(rig.qps, slot);
	assert_int_equal(qp_pool_owner(rig.qps, slot, generation), 5);
	assert_int_equal(qp_pool_owner(rig.qps, slot, generation - 1), QP_POOL_NONE);
	assert_int_equal(qp_pool_owner(rig.qps, slot, generation + 1), QP_POOL_NONE);
	/* A wr_id has 12 bits of it. */
	assert_int_equal(qp_pool_owner(rig.qps, slot, generation + 4096), 5);
	assert_int_equal(qp_pool_owner(rig.qps, slot + 1, generation), QP_POOL_NONE);
	assert_int_equal(qp_pool_owner(rig.qps, UINT32_MAX, generation), QP_POOL_NONE);
	qp_pool_put(rig.qps, slot, 0, true);
	assert_int_equal(qp_pool_owner(rig.qps, slot, generation), QP_POOL_NONE);
	qp_pool_maintain(rig.qps, QUARANTINE, 8);
	assert_int_equal(qp_pool_owner(rig.qps, slot, generation), QP_POOL_NONE);
	assert_int_equal(verbs_rig_take(6), slot);
	assert_int_equal(qp_pool_owner(rig.qps, slot, generation), QP_POOL_NONE);
	assert_int_equal(qp_pool_owner(rig.qps, slot, qp_pool_generation(rig.qps, slot)), 6);
}

TEST(owner__queue_pair_made_anew__generation_still_grows)
{
	uint32_t slot, generation;

	open_pool(1, 0);
	slot = verbs_rig_take(5);
	generation = qp_pool_generation(rig.qps, slot);
	qp_pool_put(rig.qps, slot, 0, false);
	qp_pool_maintain(rig.qps, QUARANTINE, 8);
	assert_int_equal(verbs_rig_take(6), slot);
	assert_int_equal(qp_pool_generation(rig.qps, slot), generation + 1);
}

TEST(owner_of_qpn__not_in_use__none)
{
	uint32_t slot, qpn;

	open_pool(2, 1);
	qp_pool_maintain(rig.qps, 0, 8);
	qpn = fake_device.next_qpn - 1;
	assert_int_equal(qp_pool_owner_of_qpn(rig.qps, qpn), QP_POOL_NONE);
	slot = verbs_rig_take(4);
	assert_int_equal(qpn_of(slot), qpn);
	assert_int_equal(qp_pool_owner_of_qpn(rig.qps, qpn), 4);
	assert_int_equal(qp_pool_owner_of_qpn(rig.qps, qpn + 1), QP_POOL_NONE);
	qp_pool_put(rig.qps, slot, 0, true);
	assert_int_equal(qp_pool_owner_of_qpn(rig.qps, qpn), QP_POOL_NONE);
}

#define MAP_SLOTS 500u

static uint8_t used[1 << 24];
static uint64_t seed;
static uint32_t shape, step;

static uint32_t shaped_qpn(void)
{
	uint32_t qpn;

	do {
		step++;
		switch (shape) {
		case 0: qpn = (uint32_t)unit_random(&seed) & 0xffffff; break;
		case 1: qpn = step & 0xffffff; break;			/* as rxe counts */
		case 2: qpn = (step << 12 | step >> 12) & 0xffffff; break; /* only high bits differ */
		/* Few numbers, drawn again and again: long runs, and numbers that come back. */
		default: qpn = (uint32_t)(unit_random(&seed) % 700) * 3; break;
		}
	} while (used[qpn]);
	used[qpn] = 1;
	return qpn;
}

struct life {
	uint32_t slot, qpn, owner;
};

static void check_map(const struct life *lives, uint32_t n, const uint32_t *gone, uint32_t n_gone)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(qp_pool_owner_of_qpn(rig.qps, lives[i].qpn), lives[i].owner);
	for (uint32_t i = 0; i < n_gone; i++)
		if (!used[gone[i]])
			assert_int_equal(qp_pool_owner_of_qpn(rig.qps, gone[i]), QP_POOL_NONE);
}

#define MAP_OF(numbers, shape) \
	{ "map__" numbers "__finds_exactly_the_live", finds_exactly_the_live, NULL, NULL, (void *)(uintptr_t)(shape) }

TEST_CASES(finds_exactly_the_live, MAP_OF("random_numbers", 0), MAP_OF("counted_numbers", 1),
	   MAP_OF("high_bits_only", 2), MAP_OF("numbers_that_come_back", 3))
{
	static struct life lives[MAP_SLOTS];
	static uint32_t gone[64];
	uint32_t n = 0, n_gone = 0, owner = 1;

	memset(used, 0, sizeof(used));
	shape = (uint32_t)(uintptr_t)*state;
	seed = 11 + shape;
	step = 0;
	fake_device.qpn_source = shaped_qpn;
	open_pool(MAP_SLOTS, 0);
	for (int i = 0; i < 12000; i++) {
		/* Now filling up, now emptying. */
		bool grow = unit_random(&seed) % 100 < (i / 1500 % 2 ? 35u : 65u);

		if (grow ? n < MAP_SLOTS : n == 0) {
			lives[n].owner = owner;
			lives[n].slot = verbs_rig_take(owner++);
			lives[n].qpn = qpn_of(lives[n].slot);
			n++;
		} else {
			uint32_t k = (uint32_t)(unit_random(&seed) % n);

			gone[n_gone++ % 64] = lives[k].qpn;
			used[lives[k].qpn] = 0;
			qp_pool_put(rig.qps, lives[k].slot, 0, false);
			lives[k] = lives[--n];
			qp_pool_maintain(rig.qps, QUARANTINE, 4);
		}
		if (i % 16 == 0)
			check_map(lives, n, gone, n_gone < 64 ? n_gone : 64);
	}
	check_map(lives, n, gone, 64);
	assert_consistent();
}

TEST(any_sequence__at_random__counts_add_up)
{
	static uint32_t slots[32];
	uint64_t random = 5, now = 0;
	uint32_t n = 0;

	open_pool(32, 4);
	log_init("test", LOG_LVL_ERROR);
	for (int i = 0; i < 20000; i++) {
		uint32_t slot;

		now += unit_random(&random) % 100;
		if (unit_random(&random) % 50 == 0)
			fake_fail_next("ibv_create_qp", ENOMEM);
		switch (unit_random(&random) % 3) {
		case 0:
			if (!qp_pool_get(rig.qps, 1, &slot))
				slots[n++] = slot;
			break;
		case 1:
			if (n)
				qp_pool_put(rig.qps, slots[--n], now, unit_random(&random) % 4);
			break;
		default:
			qp_pool_maintain(rig.qps, now, (unsigned)(unit_random(&random) % 8));
		}
		assert_int_equal(verbs_rig_pool_counts().in_use, n);
		assert_true(verbs_rig_pool_counts().qps <= 32);
		assert_consistent();
	}
	log_init("test", LOG_LVL_INFO);
}

TEST(free__null__nothing)
{
	qp_pool_free(NULL);
}

TEST_EACH(verbs_rig_init, verbs_rig_close)
