/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/search/capacity.c: searches with servers that pass and break where the test says. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/search/capacity.h"

/* A server that meets the SLO up to `slo` clients, holds up to `hold`, and is sometimes wrong. */
struct server {
	uint32_t slo, hold;
	double wrong;			/* share of probes near `slo` with the wrong result */
	uint32_t saturated;		/* clients beyond which the generator is the limit; 0: never */
	unsigned seed;
};

static struct capacity c;
static uint32_t probes;

static void answer(struct server *s, struct capacity_probe *p)
{
	bool near = p->clients > s->slo * 0.9 && p->clients < s->slo * 1.1;

	p->broke = p->clients > s->hold;
	p->slo = p->clients <= s->slo ? SLO_PASS : SLO_FAIL;
	if (near && s->wrong > 0 && rand_r(&s->seed) < s->wrong * RAND_MAX)
		p->slo = p->slo == SLO_PASS ? SLO_FAIL : SLO_PASS;
	if (s->saturated && p->clients > s->saturated)
		p->slo = SLO_INCONCLUSIVE;
}

static void search(bool has_slo, struct server s, uint32_t max)
{
	struct capacity_probe p;

	capacity_init(&c, has_slo, max < 10 ? max : 10, max);
	for (probes = 0; capacity_next(&c, &p); probes++) {
		assert_in_range(p.clients, 1, max);
		assert_in_range(probes, 0, CAPACITY_N * CAPACITY_PROBES_MAX);
		answer(&s, &p);
		capacity_tell(&c, &p);
	}
}

static void assert_found(struct capacity_result r, uint32_t true_passes)
{
	assert_in_range(true_passes, r.passed, r.failed - 1);
	assert_true(r.failed - r.passed <= 1 || r.failed - r.passed <= 0.05 * r.passed);
	assert_true(r.confirmed);
	assert_true(r.seen >= 2);
	assert_in_range(r.tries, 2, 3);
	assert_false(r.at_least || r.inconclusive || r.exhausted || r.non_monotone);
}

TEST(search__any_capacity__both_boundaries_within_5_percent)
{
	static const uint32_t at[] = { 1, 2, 3, 7, 9, 10, 11, 19, 20, 21, 95, 639, 640, 641, 1000, 7777, 9998 };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		for (size_t k = i; k < sizeof(at) / sizeof(at[0]); k++) {
			struct capacity_result slo, hold;

			search(true, (struct server){ .slo = at[i], .hold = at[k] }, 10000);
			slo = capacity_result(&c, CAPACITY_SLO);
			hold = capacity_result(&c, CAPACITY_BREAK);
			assert_found(slo, at[i]);
			assert_int_equal(slo.clients, slo.passed);
			assert_found(hold, at[k]);
			assert_int_equal(hold.clients, hold.failed);
			assert_in_range(probes, 1, 50);
		}
}

TEST(search__nothing_fails__at_least_the_most)
{
	struct capacity_result slo, hold;

	search(true, (struct server){ .slo = 5000, .hold = 5000 }, 1000);
	slo = capacity_result(&c, CAPACITY_SLO);
	hold = capacity_result(&c, CAPACITY_BREAK);
	assert_int_equal(slo.clients, 1000);
	assert_int_equal(slo.failed, 0);
	assert_true(slo.at_least);
	assert_true(slo.confirmed);
	assert_int_equal(hold.clients, 0);
	assert_int_equal(hold.passed, 1000);
	assert_true(hold.at_least);
	assert_false(hold.confirmed);
}

TEST(search__all_fail__no_capacity_and_it_ends)
{
	struct capacity_result slo;

	search(true, (struct server){ .slo = 0, .hold = 500 }, 1000);
	slo = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(slo.clients, 0);
	assert_int_equal(slo.failed, 1);
	assert_false(slo.at_least);
	assert_false(slo.confirmed);
	assert_found(capacity_result(&c, CAPACITY_BREAK), 500);
}

TEST(search__one_client_at_most__ends)
{
	struct capacity_result slo;

	search(true, (struct server){ .slo = 1, .hold = 1 }, 1);
	slo = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(slo.clients, 1);
	assert_true(slo.at_least);
}

TEST(search__without_an_slo__only_the_break)
{
	struct capacity_result slo;

	search(false, (struct server){ .slo = 0, .hold = 77 }, 1000);
	slo = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(slo.clients + slo.passed + slo.failed, 0);
	assert_found(capacity_result(&c, CAPACITY_BREAK), 77);
}

TEST(search__generator_saturated__at_least)
{
	struct capacity_result slo;

	search(true, (struct server){ .slo = 900, .hold = 5000, .saturated = 300 }, 2000);
	slo = capacity_result(&c, CAPACITY_SLO);
	assert_in_range(slo.clients, 285, 300);
	assert_true(slo.at_least);
	assert_true(slo.inconclusive);
}

/* A single wrong probe is outvoted, so the result stays near. */
TEST(search__noise_near_the_boundary__ends_near_it)
{
	unsigned near = 0, confirmed = 0;

	for (unsigned seed = 1; seed <= 200; seed++) {
		struct capacity_result slo;

		search(true, (struct server){ .slo = 700, .hold = 100000, .wrong = 0.2, .seed = seed }, 10000);
		slo = capacity_result(&c, CAPACITY_SLO);
		near += slo.clients >= 600 && slo.clients <= 800;
		confirmed += slo.confirmed;
		assert_false(slo.exhausted);
	}
	assert_in_range(near, 195, 200);
	assert_in_range(confirmed, 150, 200);
}

TEST(probes__are_numbered_and_say_what_for)
{
	struct capacity_probe p;

	capacity_init(&c, true, 10, 1000);
	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.clients, 10);
	assert_int_equal(p.purpose, CAPACITY_DOUBLE);
	assert_int_equal(p.repetition, 1);
	p.slo = SLO_PASS;
	capacity_tell(&c, &p);
	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.clients, 20);
	p.slo = SLO_FAIL;
	capacity_tell(&c, &p);
	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.clients, 15);
	assert_int_equal(p.purpose, CAPACITY_BISECT);
	while (p.purpose == CAPACITY_BISECT) {
		p.slo = SLO_FAIL;
		capacity_tell(&c, &p);
		assert_true(capacity_next(&c, &p));
	}
	/* 10 passed once and 11 failed, so 10 is tried again. */
	assert_int_equal(p.purpose, CAPACITY_CONFIRM);
	assert_int_equal(p.clients, 10);
	assert_int_equal(p.repetition, 2);
	p.slo = SLO_PASS;
	capacity_tell(&c, &p);
	/* 11 failed only once, so it is tried again. */
	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.purpose, CAPACITY_CONFIRM);
	assert_int_equal(p.clients, 11);
	p.slo = SLO_FAIL;
	capacity_tell(&c, &p);
	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.purpose, CAPACITY_BELOW);
	assert_int_equal(p.clients, 9);
	capacity_tell(&c, &p);
	/* 11 is known to fail, so the neighbour above need not be tried; the search for the break follows. */
	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.of, CAPACITY_BREAK);
	assert_int_equal(p.purpose, CAPACITY_DOUBLE);
	assert_int_equal(p.clients, 40);
}

TEST(neighbour_above_that_passes__failure_tried_again_and_range_said)
{
	struct capacity_probe p = { .of = CAPACITY_SLO };
	/* 105 failed in all of three probes, and yet 110 passes. */
	static const struct { uint32_t clients; enum slo_result r; } told[] = {
		{ 100, SLO_PASS }, { 100, SLO_PASS }, { 90, SLO_PASS }, { 105, SLO_FAIL }, { 110, SLO_PASS },
	};
	struct capacity_result r;

	capacity_init(&c, true, 10, 110);
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		p.clients = told[i].clients;
		p.slo = told[i].r;
		capacity_tell(&c, &p);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(capacity_next(&c, &p));
		assert_int_equal(p.clients, 105);
		assert_int_equal(p.purpose, CAPACITY_CONFIRM);
		p.slo = SLO_FAIL;
		capacity_tell(&c, &p);
	}
	r = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(r.clients, 100);
	assert_true(r.non_monotone);
	assert_false(r.confirmed);
}

TEST(ramp__steps_told__bracket_without_confirmation)
{
	static const uint32_t steps[] = { 10, 100, 500, 1000 };
	struct capacity_result r;

	capacity_init(&c, true, 10, 1000);
	for (size_t i = 0; i < 4; i++) {
		struct capacity_probe p = { .clients = steps[i], .slo = steps[i] <= 100 ? SLO_PASS : SLO_FAIL };

		capacity_tell(&c, &p);
	}
	r = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(r.clients, 100);
	assert_int_equal(r.failed, 500);
	assert_false(r.confirmed);
	r = capacity_result(&c, CAPACITY_BREAK);
	assert_int_equal(r.clients, 0);
	assert_int_equal(r.passed, 1000);
	assert_true(r.at_least);
}

TEST(result__of_nothing__nothing)
{
	struct capacity_result r;

	capacity_init(&c, true, 10, 1000);
	r = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(r.clients + r.passed + r.failed + r.tries, 0);
	assert_false(r.at_least || r.confirmed);
}
