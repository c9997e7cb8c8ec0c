/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/qp_pool.c: how many queue pairs are kept ready, in which state, and when that is seen
 * to. What becomes of a single one is in test_qp_pool.c. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

#define MAX 32u
#define PORT 3
#define QUARANTINE (5 * NS_PER_S)
#define WINDOW (10 * NS_PER_S)
/* When the tests' time begins. */
#define T0 (1000 * NS_PER_S)

static void open_pool(uint32_t reserve, uint8_t init_port)
{
	verbs_rig_open_pool(MAX, reserve, QUARANTINE, init_port);
}

static struct ibv_qp *take(uint32_t *slot)
{
	*slot = verbs_rig_take(1);
	return qp_pool_qp(rig.qps, *slot);
}

/* Until nothing is left to do at this time. */
static void maintain(uint64_t now)
{
	int turns = 0;

	while (qp_pool_maintain(rig.qps, now, 8))
		assert_true(turns++ < 100);
}

static void assert_counts(uint32_t qps, uint32_t free)
{
	struct qp_pool_counts c = verbs_rig_pool_counts();

	assert_int_equal(c.qps, qps);
	assert_int_equal(c.free, free);
	assert_int_equal(fake_qps(), qps);
	assert_int_equal(c.qps, c.free + c.in_use + c.quarantined);
}

/* The counts when nothing is left to do at this time. */
static void assert_maintained(uint64_t now, uint32_t qps, uint32_t free)
{
	maintain(now);
	assert_counts(qps, free);
}

static uint32_t modifies(void)
{
	uint32_t n;

	fake_modifies(&n);
	return n;
}

TEST(made__port_known__programmed_for_it_ahead_of_demand)
{
	const struct fake_modify *m;
	uint32_t slot, n;
	struct ibv_qp *qp;

	open_pool(3, PORT);
	maintain(T0);
	m = fake_modifies(&n);
	assert_int_equal(n, 3);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(m[i].attr.qp_state, IBV_QPS_INIT);
		assert_int_equal(m[i].attr.port_num, PORT);
		assert_int_equal(m[i].attr.pkey_index, 0);
		/* No peer has access rights before it is connected. */
		assert_true(m[i].mask & IBV_QP_ACCESS_FLAGS);
		assert_int_equal(m[i].attr.qp_access_flags, 0);
	}
	qp = take(&slot);
	assert_int_equal(fake_qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(modifies(), 3);	/* none when it is taken */
}

TEST(made__on_demand_and_port_known__programmed_too)
{
	uint32_t slot;

	open_pool(0, PORT);
	assert_int_equal(fake_qp_state(take(&slot)), IBV_QPS_INIT);
	assert_int_equal(verbs_rig_pool_counts().misses, 1);
}

TEST(made__port_not_known__left_in_reset)
{
	uint32_t slot;

	open_pool(3, 0);
	maintain(T0);
	assert_int_equal(modifies(), 0);
	assert_int_equal(fake_qp_state(take(&slot)), IBV_QPS_RESET);
}

TEST(made__programming_fails__destroyed_and_told)
{
	uint32_t slot = 99;

	open_pool(0, PORT);
	for (int i = 0; i < 3; i++) {
		fake_fail_next("ibv_modify_qp", EPERM);
		assert_int_equal(qp_pool_get(rig.qps, 1, &slot), -EPERM);
		assert_int_equal(slot, 99);
		assert_counts(0, 0);
	}
	assert_int_equal(verbs_rig_pool_counts().exhausted, 3);
	take(&slot);
	assert_counts(1, 0);
}

TEST(made__programming_fails_ahead_of_demand__tried_again_later)
{
	log_init("test", LOG_LVL_ERROR);
	open_pool(4, PORT);
	/* Creating and programming one, creating the second and not programming it. */
	fake_fail_at(4, ENOMEM);
	maintain(T0);
	assert_string_equal(fake_failed(), "ibv_modify_qp");
	assert_counts(1, 1);
	assert_maintained(T0 + WINDOW - 1, 1, 1);
	assert_maintained(T0 + WINDOW, 4, 4);
	log_init("test", LOG_LVL_INFO);
}

/* A queue pair that was connected has rested. `before`: how often queue pairs had been modified when its rest began. */
static struct ibv_qp *use_and_rest(uint32_t *before)
{
	uint32_t slot;
	struct ibv_qp *qp = take(&slot);

	verbs_rig_connect(qp);
	*before = modifies();
	qp_pool_put(rig.qps, slot, T0, true);
	maintain(T0 + QUARANTINE);
	return qp;
}

TEST(recycled__port_known__reset_then_programmed)
{
	const struct fake_modify *m;
	uint32_t slot, before, n;
	struct ibv_qp *qp;

	open_pool(0, PORT);
	qp = use_and_rest(&before);
	m = fake_modifies(&n);
	assert_int_equal(n, before + 2);
	assert_int_equal(m[before].attr.qp_state, IBV_QPS_RESET);
	assert_int_equal(m[before + 1].attr.qp_state, IBV_QPS_INIT);
	assert_int_equal(m[before + 1].attr.port_num, PORT);
	assert_int_equal(fake_qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(verbs_rig_pool_counts().recycled, 1);
	assert_ptr_equal(take(&slot), qp);
}

TEST(recycled__port_not_known__reset_only)
{
	struct ibv_qp *qp;
	uint32_t before;

	open_pool(0, 0);
	qp = use_and_rest(&before);
	assert_int_equal(modifies(), before + 1);
	assert_int_equal(fake_qp_state(qp), IBV_QPS_RESET);
	assert_int_equal(verbs_rig_pool_counts().recycled, 1);
}

TEST(recycled__either_step_fails__destroyed_and_not_counted)
{
	open_pool(0, PORT);
	for (unsigned k = 1; k <= 2; k++) {
		uint32_t slot;

		take(&slot);
		qp_pool_put(rig.qps, slot, T0, true);
		fake_fail_at(k, EINVAL);
		maintain(T0 + QUARANTINE);
		assert_string_equal(fake_failed(), "ibv_modify_qp");
		assert_counts(0, 0);
		assert_int_equal(rig.n_rested, k);
		assert_int_equal(verbs_rig_pool_counts().recycled, 0);
	}
}

TEST(recycled__each_life__counted)
{
	uint32_t slot;

	open_pool(0, PORT);
	for (unsigned i = 1; i <= 5; i++) {
		take(&slot);
		/* Queue pairs that may not be used again do not count. */
		qp_pool_put(rig.qps, slot, T0, i != 3);
		maintain(T0 + QUARANTINE);
		assert_int_equal(verbs_rig_pool_counts().recycled, i < 3 ? i : i - 1);
	}
}

TEST(rested__looked_at_late__told_how_long_really)
{
	uint32_t slots[2];

	open_pool(0, 0);
	take(&slots[0]);
	take(&slots[1]);
	qp_pool_put(rig.qps, slots[0], T0, true);
	qp_pool_put(rig.qps, slots[1], T0 + NS_PER_S, false);
	maintain(T0 + QUARANTINE);
	assert_int_equal(rig.n_rested, 1);
	assert_true(rig.rested_ns == QUARANTINE);
	maintain(T0 + QUARANTINE + 4 * NS_PER_S);
	assert_int_equal(rig.n_rested, 2);
	assert_true(rig.rested_ns == QUARANTINE + 3 * NS_PER_S);
}

TEST(expect__demand_told__so_many_beside_the_reserve)
{
	open_pool(2, PORT);
	assert_maintained(T0, 2, 2);
	qp_pool_expect(rig.qps, 5);
	assert_counts(2, 2);	/* not from within */
	assert_maintained(T0, 7, 7);
	qp_pool_expect(rig.qps, 3);
	assert_maintained(T0, 7, 7);
	qp_pool_expect(rig.qps, 1000);
	assert_maintained(T0, MAX, MAX);
}

TEST(expect__within_the_budget__and_the_rest_later)
{
	open_pool(0, 0);
	qp_pool_expect(rig.qps, 10);
	assert_true(qp_pool_maintain(rig.qps, T0, 4));
	assert_counts(4, 4);
	assert_true(qp_pool_maintain(rig.qps, T0, 4));
	assert_false(qp_pool_maintain(rig.qps, T0, 4));
	assert_counts(10, 10);
}

TEST(expect__nobody_else_in_need__hits_only)
{
	uint32_t slot;

	open_pool(0, 0);
	qp_pool_expect(rig.qps, 3);
	maintain(T0);
	for (int i = 0; i < 3; i++)
		take(&slot);
	assert_int_equal(verbs_rig_pool_counts().hits, 3);
	assert_int_equal(verbs_rig_pool_counts().misses, 0);
}

TEST(available__in_use_and_resting__not_to_be_had)
{
	uint32_t slots[MAX], slot;

	open_pool(4, 0);
	assert_int_equal(qp_pool_available(rig.qps), MAX);
	maintain(T0);
	/* Made or not. */
	assert_int_equal(qp_pool_available(rig.qps), MAX);
	for (uint32_t i = 0; i < MAX; i++) {
		take(&slots[i]);
		assert_int_equal(qp_pool_available(rig.qps), MAX - 1 - i);
	}
	assert_int_equal(qp_pool_get(rig.qps, 1, &slot), -EAGAIN);
	qp_pool_put(rig.qps, slots[0], T0, true);
	qp_pool_put(rig.qps, slots[1], T0, false);
	assert_int_equal(qp_pool_available(rig.qps), 0);
	maintain(T0 + QUARANTINE);
	/* One is free, one is destroyed. */
	assert_int_equal(qp_pool_available(rig.qps), 2);
	take(&slot);
	take(&slot);
	assert_int_equal(qp_pool_get(rig.qps, 1, &slot), -EAGAIN);
}

/* A pool with `n` free queue pairs and a reserve of 2; a window begins at T0. */
static void open_with_free(uint32_t n)
{
	open_pool(2, 0);
	qp_pool_expect(rig.qps, n - 2);
	/* In one go: the window counts what is free when it begins. */
	assert_false(qp_pool_maintain(rig.qps, T0, n + 1));
	assert_counts(n, n);
	qp_pool_expect(rig.qps, 0);
}

/* Takes n at once at a time and gives them back; they rest. */
static void use(uint32_t n, uint64_t now)
{
	uint32_t slots[MAX];

	for (uint32_t i = 0; i < n; i++)
		take(&slots[i]);
	for (uint32_t i = 0; i < n; i++)
		qp_pool_put(rig.qps, slots[i], now, true);
}

TEST(trim__free_for_a_whole_window__destroyed_but_the_reserve)
{
	open_with_free(10);
	assert_maintained(T0 + WINDOW - 1, 10, 10);
	assert_maintained(T0 + WINDOW, 2, 2);
	assert_maintained(T0 + 5 * WINDOW, 2, 2);
}

TEST(trim__demand_told__kept_beside_the_reserve)
{
	open_with_free(10);
	qp_pool_expect(rig.qps, 5);
	assert_maintained(T0 + WINDOW, 7, 7);
}

TEST(trim__more_than_the_budget__bit_by_bit)
{
	open_with_free(10);
	assert_true(qp_pool_maintain(rig.qps, T0 + WINDOW, 3));
	assert_counts(7, 7);
	assert_true(qp_pool_maintain(rig.qps, T0 + WINDOW + 1, 3));
	assert_counts(4, 4);
	assert_false(qp_pool_maintain(rig.qps, T0 + WINDOW + 2, 3));
	assert_counts(2, 2);
}

/* Recycled queue pairs come out of the same budget. */
TEST(trim__after_recycling__within_one_budget)
{
	open_with_free(10);
	use(2, T0 + WINDOW - QUARANTINE);
	/* The window in which 2 were taken: they come back, and nothing goes. */
	assert_false(qp_pool_maintain(rig.qps, T0 + WINDOW, 3));
	assert_int_equal(rig.n_rested, 2);
	assert_counts(10, 10);
	assert_true(qp_pool_maintain(rig.qps, T0 + 2 * WINDOW, 3));
	assert_counts(7, 7);
}

TEST(trim__one_taken_in_the_window__all_kept)
{
	open_with_free(10);
	/* While clients come, the free ones are for those still to come. */
	use(1, T0 + 1);
	maintain(T0 + 1 + QUARANTINE);
	assert_maintained(T0 + WINDOW, 10, 10);
	/* The next window is judged by itself: nobody came. */
	assert_maintained(T0 + 2 * WINDOW, 2, 2);
}

TEST(trim__all_needed_in_every_window__all_kept)
{
	open_with_free(10);
	for (unsigned i = 0; i < 5; i++) {
		use(8, T0 + i * WINDOW + 1);
		assert_maintained(T0 + i * WINDOW + 1 + QUARANTINE, 10, 10);
		assert_maintained(T0 + (i + 1) * WINDOW, 10, 10);
	}
	assert_int_equal(verbs_rig_pool_counts().misses, 0);
}

/* Queue pairs that left quarantine during the window were not free for all of it. */
TEST(trim__came_back_within_the_window__not_before_the_next)
{
	open_pool(2, 0);
	use(10, T0);
	maintain(T0);	/* the window begins; the reserve is made */
	assert_counts(12, 2);
	assert_maintained(T0 + QUARANTINE, 12, 12);
	assert_maintained(T0 + WINDOW, 12, 12);
	assert_maintained(T0 + 2 * WINDOW, 2, 2);
}

TEST(trim__demand_comes_while_it_is_done__stops)
{
	open_with_free(10);
	assert_true(qp_pool_maintain(rig.qps, T0 + WINDOW, 3));
	assert_counts(7, 7);
	qp_pool_expect(rig.qps, 4);
	assert_maintained(T0 + WINDOW + 1, 6, 6);
	qp_pool_expect(rig.qps, 8);
	assert_maintained(T0 + WINDOW + 2, 10, 10);
}

TEST(trim__those_in_use__never_touched)
{
	uint32_t slots[4];

	open_with_free(10);
	for (unsigned i = 0; i < 4; i++)
		take(&slots[i]);
	maintain(T0 + WINDOW);
	assert_maintained(T0 + 2 * WINDOW, 6, 2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(qp_pool_owner_of_qpn(rig.qps, qp_pool_qp(rig.qps, slots[i])->qp_num), 1);
}

TEST(idle__as_many_as_wanted__nothing_is_due)
{
	uint32_t slot;

	open_pool(0, 0);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == UINT64_MAX);
	take(&slot);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == UINT64_MAX);
}

TEST(idle__fewer_than_wanted__at_once)
{
	uint32_t slot;

	open_pool(2, 0);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == 0);
	maintain(T0);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == UINT64_MAX);
	take(&slot);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == 0);
	maintain(T0);
	qp_pool_expect(rig.qps, 1);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == 0);
	qp_pool_expect(rig.qps, 0);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == UINT64_MAX);
}

TEST(idle__fewer_than_wanted_but_the_pool_is_full__nothing_is_due)
{
	open_pool(2, 0);
	qp_pool_expect(rig.qps, MAX);
	assert_maintained(T0, MAX, MAX);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == UINT64_MAX);
}

TEST(idle__device_has_none__when_it_is_asked_again)
{
	log_init("test", LOG_LVL_ERROR);
	open_pool(2, 0);
	fake_fail_next("ibv_create_qp", ENOMEM);
	maintain(T0);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == WINDOW);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + NS_PER_S) == WINDOW - NS_PER_S);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + 2 * WINDOW) == 0);
	assert_maintained(T0 + 2 * WINDOW, 2, 2);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + 2 * WINDOW) == UINT64_MAX);
	log_init("test", LOG_LVL_INFO);
}

TEST(idle__resting__until_the_first_has_rested)
{
	uint32_t a, b;

	open_pool(0, 0);
	take(&a);
	take(&b);
	qp_pool_put(rig.qps, b, T0, true);
	qp_pool_put(rig.qps, a, T0 + NS_PER_S, true);
	assert_true(qp_pool_idle_ns(rig.qps, T0) == QUARANTINE);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + 3 * NS_PER_S) == 2 * NS_PER_S);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + QUARANTINE) == 0);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + QUARANTINE + 1) == 0);
	maintain(T0 + QUARANTINE);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + QUARANTINE) == NS_PER_S);
}

TEST(idle__more_than_wanted__until_the_window_ends)
{
	open_with_free(10);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + 1) == WINDOW - 1);
	assert_true(qp_pool_maintain(rig.qps, T0 + WINDOW, 3));
	/* The rest of them at once, not at the next window's end. */
	assert_true(qp_pool_idle_ns(rig.qps, T0 + WINDOW) == 0);
	maintain(T0 + WINDOW);
	assert_true(qp_pool_idle_ns(rig.qps, T0 + WINDOW) == UINT64_MAX);
}

/* A caller that sleeps exactly as long as it is told gets everything done, and is not woken again. */
TEST(idle__slept_as_told__all_done_and_nothing_due)
{
	uint64_t now = T0, idle;
	unsigned wakes = 0;

	open_pool(2, PORT);
	use(20, now);
	qp_pool_expect(rig.qps, 3);
	while ((idle = qp_pool_idle_ns(rig.qps, now)) != UINT64_MAX) {
		now += idle ? idle : NS_PER_MS;
		qp_pool_maintain(rig.qps, now, 4);
		assert_true(wakes++ < 100);
	}
	assert_counts(5, 5);
	assert_int_equal(rig.n_rested, 20);
	/* A rest, a window that began with it, and another. */
	assert_in_range(now - T0, QUARANTINE, 3 * WINDOW);
}

TEST(any_sequence__at_random__never_below_what_is_wanted_for_long)
{
	static uint32_t slots[MAX];
	uint64_t random = 77, now = T0;
	uint32_t n = 0, demand = 0;

	open_pool(3, PORT);
	for (int i = 0; i < 20000; i++) {
		struct qp_pool_counts c;

		now += unit_random(&random) % (200 * NS_PER_MS);
		switch (unit_random(&random) % 4) {
		case 0:
			if (!qp_pool_get(rig.qps, 1, &slots[n]))
				n++;
			break;
		case 1:
			if (n)
				qp_pool_put(rig.qps, slots[--n], now, unit_random(&random) % 4);
			break;
		case 2:
			demand = (uint32_t)(unit_random(&random) % 12);
			qp_pool_expect(rig.qps, demand);
			break;
		default:
			maintain(now);
			c = verbs_rig_pool_counts();
			assert_true(c.free >= 3 + demand || c.qps == MAX);
		}
		c = verbs_rig_pool_counts();
		assert_int_equal(c.in_use, n);
		assert_counts(c.qps, c.free);
		assert_int_equal(qp_pool_available(rig.qps), MAX - n - c.quarantined);
	}
}

TEST_EACH(verbs_rig_init, verbs_rig_close)
