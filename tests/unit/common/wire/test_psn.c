/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/psn.c: uniqueness, collisions, exhaustion, threads. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/wire/psn.h"

static struct psn_registry *r;

static int set_up(void **state)
{
	(void)state;
	return psn_registry_new(&r);
}

static int tear_down(void **state)
{
	(void)state;
	psn_registry_free(r);
	return 0;
}

/* A "random" function that gives the listed numbers in turn, then an error. */
struct script {
	const uint32_t *v;
	size_t n, i;
};

static int scripted(void *arg, uint8_t *buf, size_t n)
{
	struct script *s = arg;

	assert_int_equal(n, 3);
	if (s->i == s->n)
		return -EIO;
	buf[0] = (uint8_t)(s->v[s->i] >> 16);
	buf[1] = (uint8_t)(s->v[s->i] >> 8);
	buf[2] = (uint8_t)s->v[s->i++];
	return 0;
}

TEST(reserve__free_number__once)
{
	static const uint32_t numbers[] = { 0, 1, 63, 64, 0x123456, PSN_MASK };

	for (size_t i = 0; i < N_ELEMENTS(numbers); i++) {
		assert_true(psn_reserve(r, numbers[i]));
		assert_false(psn_reserve(r, numbers[i]));
		assert_int_equal(psn_in_use(r), i + 1);
	}
}

TEST(reserve__more_than_24_bits__refused)
{
	static const uint32_t numbers[] = { PSN_COUNT, PSN_COUNT + 1, 0x80000000, UINT32_MAX };

	for (size_t i = 0; i < N_ELEMENTS(numbers); i++)
		assert_false(psn_reserve(r, numbers[i]));
	assert_int_equal(psn_in_use(r), 0);
	assert_true(psn_reserve(r, 0));
}

TEST(release__taken_number__free_again_neighbours_not)
{
	for (uint32_t psn = 100; psn < 200; psn++)
		assert_true(psn_reserve(r, psn));
	psn_release(r, 150);
	assert_int_equal(psn_in_use(r), 99);
	assert_false(psn_reserve(r, 149));
	assert_false(psn_reserve(r, 151));
	assert_true(psn_reserve(r, 150));
	assert_int_equal(psn_in_use(r), 100);
}

TEST(draw__repeated_values__skips_the_taken)
{
	static const uint32_t values[] = { 5, 5, 5, 0xabcdef, 5, 0xabcdef, 7 };
	struct script s = { values, N_ELEMENTS(values), 0 };
	uint32_t psn = 0;

	assert_int_equal(psn_draw(r, scripted, &s, 8, &psn), 0);
	assert_int_equal(psn, 5);
	assert_int_equal(psn_draw(r, scripted, &s, 8, &psn), 2);
	assert_int_equal(psn, 0xabcdef);
	assert_int_equal(psn_draw(r, scripted, &s, 8, &psn), 2);
	assert_int_equal(psn, 7);
	assert_int_equal(s.i, N_ELEMENTS(values));
	assert_int_equal(psn_in_use(r), 3);
}

TEST(draw__only_taken_ones__eagain_after_the_limit)
{
	static const uint32_t values[16] = { 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9 };
	struct script s = { values, 16, 0 };
	uint32_t psn = 77;

	assert_true(psn_reserve(r, 9));
	assert_int_equal(psn_draw(r, scripted, &s, 10, &psn), -EAGAIN);
	assert_int_equal(s.i, 10);
	assert_int_equal(psn, 77);
	assert_int_equal(psn_in_use(r), 1);
}

TEST(draw__last_allowed_attempt__counts)
{
	static const uint32_t values[] = { 9, 9, 10 };
	struct script s = { values, 3, 0 };
	uint32_t psn;

	assert_true(psn_reserve(r, 9));
	assert_int_equal(psn_draw(r, scripted, &s, 3, &psn), 2);
	assert_int_equal(psn, 10);
}

TEST(draw__random_fails__its_error)
{
	static const uint32_t values[] = { 9 };
	struct script s = { values, 1, 0 };
	uint32_t psn;

	assert_true(psn_reserve(r, 9));
	assert_int_equal(psn_draw(r, scripted, &s, 10, &psn), -EIO);
	assert_int_equal(psn_in_use(r), 1);
}

static int seeded(void *arg, uint8_t *buf, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf[i] = (uint8_t)(unit_random(arg) >> 32);
	return 0;
}

/* 10,000 draws of 24 bits collide with 95 % probability; the registry must not let them. */
TEST(draw__forty_thousand__all_different)
{
	uint8_t *seen = calloc(PSN_COUNT, 1);
	uint64_t seed = 1;

	for (int i = 0; i < 40000; i++) {
		uint32_t psn = PSN_COUNT;

		assert_in_range(psn_draw(r, seeded, &seed, 64, &psn), 0, 63);
		assert_true(psn < PSN_COUNT);
		assert_int_equal(seen[psn], 0);
		seen[psn] = 1;
	}
	assert_int_equal(psn_in_use(r), 40000);
	free(seen);
}

TEST(all_numbers__reserved_and_released__count_exact)
{
	static const uint32_t one[] = { 42 };
	struct script s = { one, 1, 0 };
	uint32_t psn;

	for (uint32_t i = 0; i < PSN_COUNT; i++)
		if (!psn_reserve(r, i))
			fail_msg("%u is not to be had", i);
	assert_int_equal(psn_in_use(r), PSN_COUNT);
	assert_int_equal(psn_draw(r, scripted, &s, 1, &psn), -EAGAIN);
	for (uint32_t i = 0; i < PSN_COUNT; i++)
		psn_release(r, i);
	assert_int_equal(psn_in_use(r), 0);
}

#define THREADS 8
#define RANGE 60000u

struct claim {
	pthread_barrier_t *start;
	uint32_t *won;
	uint32_t n;
};

/* Every thread wants every number of the range; each must go to exactly one of them. */
static void *claim_all(void *arg)
{
	struct claim *c = arg;

	pthread_barrier_wait(c->start);
	for (uint32_t psn = 0; psn < RANGE; psn++)
		if (psn_reserve(r, psn))
			c->won[c->n++] = psn;
	return NULL;
}

TEST(reserve__many_threads_at_once__disjoint_sets)
{
	struct claim claims[THREADS];
	pthread_t threads[THREADS];
	pthread_barrier_t start;
	uint8_t *owners = calloc(RANGE, 1);
	uint32_t total = 0;

	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		claims[i] = (struct claim){ .start = &start, .won = calloc(RANGE, sizeof(uint32_t)) };
		assert_int_equal(pthread_create(&threads[i], NULL, claim_all, &claims[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		for (uint32_t j = 0; j < claims[i].n; j++)
			assert_int_equal(owners[claims[i].won[j]]++, 0);
		total += claims[i].n;
		free(claims[i].won);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(total, RANGE);
	assert_int_equal(psn_in_use(r), RANGE);
	free(owners);
}

TEST(free__null__nothing)
{
	psn_registry_free(NULL);
}

TEST_EACH(set_up, tear_down)
