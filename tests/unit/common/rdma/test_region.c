/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/region.c and registrar.c: registration at first use by a thread of its own, keys, zeroing,
 * exhaustion, failures. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "common/base/log.h"
#include "common/rdma/rc.h"
#include "common/rdma/region.h"
#include "common/rdma/registrar.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

#define BYTES 5000u	/* not a whole number of pages */

static struct registrar *registrar;
static struct region_pool *pool;
static sem_t registered;

static void on_registered(void *arg)
{
	sem_post(arg);
}

static int set_up(void **state)
{
	struct region_config cfg = { .max = 3, .region_bytes = BYTES, .on_registered = on_registered,
				     .arg = &registered };

	verbs_rig_init(state);
	verbs_rig_open();
	sem_init(&registered, 0, 0);
	assert_int_equal(registrar_new(&registrar), 0);
	cfg.ep = rig.ep;
	cfg.registrar = registrar;
	return region_pool_new(&cfg, &pool);
}

static int tear_down(void **state)
{
	region_pool_free(pool);
	registrar_free(registrar);
	sem_destroy(&registered);
	return verbs_rig_close(state);
}

static void await_registered(void)
{
	sem_wait(&registered);
	region_pool_collect(pool);
}

static struct region_grant get(uint32_t *region)
{
	struct region_grant g;

	while (region_pool_begin(pool, 1))
		await_registered();
	assert_int_equal(region_get(pool, region, &g), 0);
	return g;
}

TEST(get__first_use__registered_then_kept)
{
	uint32_t r;

	assert_int_equal(fake_mrs(), 1);	/* the slab's */
	assert_int_equal(region_mrs(pool), 0);
	assert_int_equal(region_pinned_bytes(pool), 0);
	get(&r);
	assert_int_equal(fake_mrs(), 2);
	assert_false(pthread_equal(fake_mr_thread(), pthread_self()));
	assert_int_equal(region_mrs(pool), 1);
	assert_int_equal(region_pinned_bytes(pool), BYTES);
	region_put(pool, r);
	get(&r);
	assert_int_equal(fake_mrs(), 2);
	assert_int_equal(region_in_use(pool), 1);
	region_put(pool, r);
	assert_int_equal(region_in_use(pool), 0);
	assert_int_equal(region_mrs(pool), 1);
}

TEST(get__all_three__apart_and_on_their_own_pages)
{
	struct region_grant g[3];
	uint32_t r[3];

	for (int i = 0; i < 3; i++) {
		g[i] = get(&r[i]);
		assert_int_equal(g[i].addr % 4096, 0);
		assert_int_equal(g[i].bytes, BYTES);
		memset((void *)(uintptr_t)g[i].addr, i + 1, BYTES);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(((uint8_t *)(uintptr_t)g[i].addr)[0], i + 1);
		assert_int_equal(((uint8_t *)(uintptr_t)g[i].addr)[BYTES - 1], i + 1);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(g[i].rkey, g[j].rkey);
		region_put(pool, r[i]);
	}
}

TEST(source__within_the_region__its_memory_and_key)
{
	struct ep_write w = { .rkey = 5, .remote_addr = 6 };
	struct region_grant g;
	uint32_t r;

	g = get(&r);
	assert_true(region_source(pool, r, 0, BYTES, &w));
	assert_true((uintptr_t)w.local == g.addr);
	assert_int_equal(w.bytes, BYTES);
	assert_int_not_equal(w.lkey, ep_lkey(rig.ep));
	assert_true(region_source(pool, r, BYTES - 1, 1, &w));
	assert_true((uintptr_t)w.local == g.addr + BYTES - 1);
	assert_int_equal(w.bytes, 1);
	assert_int_equal(w.rkey, 5);
	assert_true(w.remote_addr == 6);
	region_put(pool, r);
}

TEST(source__not_all_in_the_region__refused)
{
	static const struct { uint64_t offset; uint32_t bytes; } cases[] = {
		{ 0, 0 }, { 0, BYTES + 1 }, { 0, UINT32_MAX }, { 1, BYTES }, { BYTES, 1 }, { BYTES, 0 },
		{ BYTES + 1, 1 }, { UINT64_MAX, 1 }, { UINT64_MAX - 1, 2 }, { (uint64_t)1 << 32, 1 },
	};
	struct ep_write w;
	uint32_t r;

	get(&r);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		assert_false(region_source(pool, r, cases[i].offset, cases[i].bytes, &w));
	region_put(pool, r);
}

TEST(get__none_left__eagain_until_one_is_back)
{
	struct region_grant g;
	uint32_t r[3], extra = 77;

	for (int i = 0; i < 3; i++)
		get(&r[i]);
	assert_int_equal(region_get(pool, &extra, &g), -EAGAIN);
	assert_int_equal(extra, 77);
	region_put(pool, r[1]);
	get(&r[1]);
	for (int i = 0; i < 3; i++)
		region_put(pool, r[i]);
}

TEST(get__used_before__zeroed_with_another_key)
{
	static const uint8_t zeros[BYTES];
	struct region_grant first, second;
	uint32_t r;

	first = get(&r);
	memset((void *)(uintptr_t)first.addr, 0xa5, BYTES);
	region_put(pool, r);
	second = get(&r);
	assert_true(second.addr == first.addr);
	assert_int_not_equal(second.rkey, first.rkey);
	assert_memory_equal((void *)(uintptr_t)second.addr, zeros, BYTES);
	region_put(pool, r);
}

/* The key a window gets is not the one it was allocated with: type 2 windows' consumers choose
 * it. */
TEST(get__key__is_the_windows_next)
{
	struct region_grant g;
	uint32_t r;

	g = get(&r);
	assert_int_equal(g.rkey, ibv_inc_rkey(fake_mw_last_rkey()));
	region_put(pool, r);
}

TEST(bind__connected_qp__whole_region_and_no_more)
{
	struct region_grant g;
	struct rc rc;
	uint32_t r, n;
	const struct fake_post *p;

	rc_init(&rc, rig.ep, rig.qps, NULL);
	assert_int_equal(rc_take_qp(&rc, 0), 0);
	verbs_rig_connect(rc.qp);
	g = get(&r);
	assert_int_equal(region_bind(pool, r, &rc), 0);
	p = fake_posts(&n);
	assert_int_equal(n, 1);
	assert_int_equal(p->opcode, IBV_WR_BIND_MW);
	assert_true(p->flags & IBV_SEND_SIGNALED);
	assert_int_equal(p->rkey, g.rkey);
	assert_true(p->bind.addr == g.addr);
	assert_int_equal(p->bind.length, BYTES);
	assert_int_equal(p->bind.mw_access_flags, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(wr_unpack(p->wr_id).type, WR_BIND);
	/* The window goes first; a bound one would pin the QP. */
	region_put(pool, r);
	assert_int_equal(fake_mws(), 0);
	rc_drain(&rc);
	verbs_rig_process();
	rc.drained = true;
	rc_release(&rc, 0, false);
}

TEST(bind__qp_not_connected__error)
{
	struct rc rc;
	uint32_t r;

	rc_init(&rc, rig.ep, rig.qps, NULL);
	assert_int_equal(rc_take_qp(&rc, 0), 0);
	get(&r);
	assert_int_equal(region_bind(pool, r, &rc), -EINVAL);
	region_put(pool, r);
}

TEST(get__each_call_fails__errno_and_usable_afterwards)
{
	static const char *const calls[] = { "ibv_reg_mr", "ibv_alloc_mw" };

	log_init("test", LOG_LVL_ERROR);
	for (size_t i = 0; i < N_ELEMENTS(calls); i++) {
		struct region_grant g;
		uint32_t r[3];

		fake_fail_next(calls[i], ENOMEM);
		while (region_pool_begin(pool, 1))
			await_registered();
		assert_int_equal(region_get(pool, &r[0], &g), -ENOMEM);
		assert_string_equal(fake_failed(), calls[i]);
		assert_int_equal(region_in_use(pool), 0);
		assert_int_equal(fake_mws(), 0);
		for (int j = 0; j < 3; j++)
			get(&r[j]);
		for (int j = 0; j < 3; j++)
			region_put(pool, r[j]);
	}
	assert_int_equal(region_mrs(pool), 3);
	log_init("test", LOG_LVL_INFO);
}

TEST(begin__several_wait__one_registered_for_each)
{
	struct region_grant g;
	uint32_t r;

	assert_true(region_pool_begin(pool, 1));
	assert_true(region_pool_begin(pool, 2));
	await_registered();
	await_registered();
	assert_int_equal(region_mrs(pool), 2);
	/* Both can be had, and nothing more is registered for whoever comes then. */
	assert_false(region_pool_begin(pool, 1));
	assert_int_equal(region_get(pool, &r, &g), 0);
	assert_false(region_pool_begin(pool, 1));
	assert_int_equal(region_get(pool, &r, &g), 0);
	/* More wait than there are. */
	assert_true(region_pool_begin(pool, 5));
	await_registered();
	assert_int_equal(region_get(pool, &r, &g), 0);
	assert_false(region_pool_begin(pool, 4));
	assert_int_equal(region_get(pool, &r, &g), -EAGAIN);
}

/* The endpoint's thread is not told before the registrar is done, and ends without waiting for what was not begun. */
TEST(free__registrations_under_way__all_released)
{
	assert_true(region_pool_begin(pool, 3));
	/* The tear-down checks that nothing is left. */
}

TEST(free__regions_in_use__all_released)
{
	uint32_t r;

	get(&r);
	get(&r);
	/* The tear-down checks that nothing is left. */
}

TEST(counts__no_pool__zero)
{
	assert_int_equal(region_in_use(NULL), 0);
	assert_int_equal(region_mrs(NULL), 0);
	assert_int_equal(region_pinned_bytes(NULL), 0);
	region_pool_free(NULL);
}

TEST_EACH(set_up, tear_down)
