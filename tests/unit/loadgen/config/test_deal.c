/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/config/deal.c: how many clients each server gets, against counts made client by client. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/base/random.h"
#include "loadgen/config/deal.h"
#include "loadgen/config/targets.h"

static const uint64_t much[TARGETS_MAX] = { [0 ... TARGETS_MAX - 1] = 1000000 };

static uint64_t sum(const uint32_t *v, uint32_t n)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < n; i++)
		all += v[i];
	return all;
}

TEST(round_robin__any_number__in_turn)
{
	uint32_t dealt[TARGETS_MAX], counted[TARGETS_MAX];

	for (uint32_t n = 1; n <= TARGETS_MAX; n++)
		for (uint32_t total = 0; total < 100; total++) {
			memset(counted, 0, sizeof(counted));
			for (uint32_t i = 0; i < total; i++)
				counted[i % n]++;
			deal_clients(total, n, DEAL_ROUND_ROBIN, 1, much, dealt);
			assert_memory_equal(dealt, counted, n * sizeof(dealt[0]));
		}
}

TEST(first__fills_one_after_the_other__the_rest_goes_to_the_last)
{
	static const uint64_t room[] = { 10, 0, 5 };
	static const struct {
		uint32_t total, dealt[3];
	} cases[] = {
		{ 0, { 0, 0, 0 } }, { 9, { 9, 0, 0 } }, { 10, { 10, 0, 0 } }, { 11, { 10, 0, 1 } }, { 15, { 10, 0, 5 } },
		{ 20, { 10, 0, 10 } },
	};
	uint32_t dealt[3];

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		deal_clients(cases[i].total, 3, DEAL_FIRST, 1, room, dealt);
		assert_memory_equal(dealt, cases[i].dealt, sizeof(dealt));
	}
}

TEST(random__same_seed__same_servers_and_more_clients_take_nothing_away)
{
	uint32_t before[4] = { 0 }, dealt[4], again[4], other[4];

	for (uint32_t total = 0; total < 500; total++) {
		deal_clients(total, 4, DEAL_RANDOM, 7, much, dealt);
		deal_clients(total, 4, DEAL_RANDOM, 7, much, again);
		assert_memory_equal(dealt, again, sizeof(dealt));
		assert_int_equal(sum(dealt, 4), total);
		for (uint32_t i = 0; i < 4; i++)
			assert_true(dealt[i] >= before[i]);
		memcpy(before, dealt, sizeof(before));
	}
	deal_clients(499, 4, DEAL_RANDOM, 8, much, other);
	assert_memory_not_equal(other, dealt, sizeof(other));
}

/* Within five standard deviations of an even share; one is sqrt(100000 / 4 x 3 / 4) = 137. */
TEST(random__many__about_evenly)
{
	uint32_t dealt[4];

	deal_clients(100000, 4, DEAL_RANDOM, 1, much, dealt);
	for (uint32_t i = 0; i < 4; i++)
		assert_in_range(dealt[i], 25000 - 685, 25000 + 685);
}

TEST(share__any_number__adds_up_and_differs_by_one)
{
	for (uint32_t n = 1; n < 20; n++)
		for (uint32_t total = 0; total < 60; total++) {
			uint32_t all = 0;

			for (uint32_t i = 0; i < n; i++) {
				all += deal_share(total, n, i);
				assert_in_range(deal_share(total, n, i), total / n, (total + n - 1) / n);
			}
			assert_int_equal(all, total);
		}
}

TEST(part__unequal_shares__adds_up_exactly_and_nobody_gets_more_than_it_has)
{
	uint32_t share[TARGETS_MAX], out[TARGETS_MAX];
	uint64_t random = 3;

	for (unsigned round = 0; round < 20000; round++) {
		uint32_t n = 1 + (uint32_t)(random_next(&random) % TARGETS_MAX), part, all;

		for (uint32_t i = 0; i < n; i++)
			share[i] = (uint32_t)(random_next(&random) % 5 ? random_next(&random) % 7000 : 0);
		all = (uint32_t)sum(share, n);
		part = all ? (uint32_t)(random_next(&random) % (all + 1)) : 0;
		deal_part(part, n, share, out);
		assert_int_equal(sum(out, n), part);
		for (uint32_t i = 0; i < n; i++) {
			double exact = all ? (double)share[i] * part / all : 0;

			assert_true(out[i] <= share[i] && out[i] < exact + 1 && out[i] > exact - 1);
		}
	}
	deal_part(100, 1, (const uint32_t[]){ 40 }, out);
	assert_int_equal(out[0], 40);
}
