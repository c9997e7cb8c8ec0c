/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/arena.c: registered memory, and what is left when it cannot be had. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/rdma/arena.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

TEST(arena__made__zero_registered_and_gone_again)
{
	struct arena *a;
	char err[200];
	uint32_t mrs;

	verbs_rig_open_ep();
	mrs = fake_mrs();
	assert_int_equal(arena_new(rig.ep, 100000, false, &a, err, sizeof(err)), 0);
	assert_int_equal(fake_mrs(), mrs + 1);
	assert_int_equal(arena_bytes(a), 100000);
	for (size_t i = 0; i < 100000; i++)
		assert_int_equal(*arena_at(a, i), 0);
	assert_int_not_equal(arena_lkey(a, 0), ep_lkey(rig.ep));
	arena_free(a);
	assert_int_equal(fake_mrs(), mrs);
	arena_free(NULL);
	assert_int_equal(arena_bytes(NULL), 0);
}

TEST(arena__to_be_written_to__only_then_with_remote_rights)
{
	struct arena *a;
	char err[200];

	verbs_rig_open_ep();
	for (int write = 0; write < 2; write++) {
		assert_int_equal(arena_new(rig.ep, 4096, write, &a, err, sizeof(err)), 0);
		assert_int_equal(fake_mr_access(arena_rkey(a, 0)),
				 IBV_ACCESS_LOCAL_WRITE | (write ? IBV_ACCESS_REMOTE_WRITE : 0));
		arena_free(a);
	}
}

TEST(arena__shared__a_key_for_each_endpoint)
{
	struct arena *a;
	char err[200] = "";
	uint32_t mrs;

	verbs_rig_open_ep();
	mrs = fake_mrs();
	assert_int_equal(arena_mrs(NULL), 0);
	assert_int_equal(arena_new(rig.ep, 4096, true, &a, err, sizeof(err)), 0);
	fake_fail_next("ibv_reg_mr", ENOMEM);
	assert_int_equal(arena_share(a, rig.ep, err, sizeof(err)), -ENOMEM);
	assert_says(err, "ulimit -l");
	assert_int_equal(arena_mrs(a), 1);
	assert_int_equal(arena_share(a, rig.ep, err, sizeof(err)), 0);
	assert_int_equal(arena_mrs(a), 2);
	assert_int_not_equal(arena_lkey(a, 0), arena_lkey(a, 1));
	assert_int_equal(fake_mr_access(arena_rkey(a, 1)), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	arena_free(a);
	assert_int_equal(fake_mrs(), mrs);
}

TEST(arena__cannot_be_registered__errno_and_advice)
{
	struct arena *a;
	char err[200] = "";

	verbs_rig_open_ep();
	fake_fail_next("ibv_reg_mr", ENOMEM);
	assert_int_equal(arena_new(rig.ep, 4096, false, &a, err, sizeof(err)), -ENOMEM);
	assert_says(err, "4096 bytes");
	assert_says(err, "ulimit -l");
}

TEST(arena__more_than_there_is__errno)
{
	struct arena *a;
	char err[200] = "";

	verbs_rig_open_ep();
	assert_int_equal(arena_new(rig.ep, SIZE_MAX / 2, false, &a, err, sizeof(err)), -ENOMEM);
	assert_says(err, "memory for transfers");
}

TEST_EACH(verbs_rig_init, verbs_rig_close)
