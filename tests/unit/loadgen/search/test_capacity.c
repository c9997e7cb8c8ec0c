/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/search/capacity.c: searches with servers that pass and break where the test says. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "loadgen/search/capacity.h"

/* A server that meets the SLO up to about `slo` clients and holds up to `hold`. */
struct server {
	uint32_t slo, hold;
	double width;			/* of the range in which chance decides, as a share of `slo` */
	double wrong;			/* share of probes with the wrong result, wherever they are */
	uint32_t saturated;		/* clients beyond which the generator is the limit; 0: never */
	bool unsteady;			/* no probe is steady */
	uint64_t seed;
};

static struct capacity c;
static uint32_t probes;

/* A random number from 0 to 1 (splitmix64). */
static double draw(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (double)((z ^ (z >> 31)) >> 11) / (double)(1ull << 53);
}

static void answer(struct server *s, struct capacity_probe *p)
{
	double passes = p->clients <= s->slo;

	if (s->width > 0)
		passes = 1 / (1 + exp((p->clients - (double)s->slo) / (s->width * s->slo)));
	p->broke = p->clients > s->hold;
	p->slo = draw(&s->seed) < passes ? SLO_PASS : SLO_FAIL;
	if (s->wrong > 0 && draw(&s->seed) < s->wrong)
		p->slo = p->slo == SLO_PASS ? SLO_FAIL : SLO_PASS;
	if (s->saturated && p->clients > s->saturated)
		p->slo = SLO_INCONCLUSIVE;
	p->unsteady = s->unsteady;
}

static struct capacity_result search(bool has_slo, struct server s, uint32_t max)
{
	struct capacity_probe p;

	capacity_init(&c, has_slo, max < 10 ? max : 10, max);
	for (probes = 0; capacity_next(&c, &p); probes++) {
		assert_in_range(p.clients, 1, max);
		assert_in_range(probes, 0, CAPACITY_N * CAPACITY_PROBES_MAX);
		answer(&s, &p);
		capacity_tell(&c, &p);
	}
	return capacity_result(&c, CAPACITY_SLO);
}

static void assert_found(struct capacity_result r, uint32_t true_passes, uint32_t tries)
{
	assert_in_range(true_passes, r.lower.clients, r.upper.clients - 1);
	assert_true(r.upper.clients - r.lower.clients <= MAX(1, 0.05 * r.lower.clients));
	assert_true(r.confirmed);
	if (r.lower.clients)
		assert_int_equal(r.lower.agree, r.lower.tries);
	assert_int_equal(r.upper.agree, r.upper.tries);
	assert_true(r.upper.tries >= tries);
	assert_false(r.at_least || r.inconclusive || r.exhausted || r.scatters);
}

TEST(search__any_capacity__both_boundaries_within_5_percent)
{
	static const uint32_t at[] = { 1, 2, 3, 7, 9, 10, 11, 19, 20, 21, 95, 639, 640, 641, 1000, 7777, 9998 };

	for (size_t i = 0; i < N_ELEMENTS(at); i++)
		for (size_t k = i; k < N_ELEMENTS(at); k++) {
			struct server s = { .slo = at[i], .hold = at[k] };
			struct capacity_result slo = search(true, s, 10000);

			assert_found(slo, at[i], CAPACITY_TRIES);
			assert_int_equal(slo.lower.tries, CAPACITY_TRIES);
			assert_found(capacity_result(&c, CAPACITY_BREAK), at[k], 2);
			assert_in_range(probes, 1, 50);
		}
}

TEST(search__nothing_fails__at_least_the_most)
{
	struct capacity_result slo = search(true, (struct server){ .slo = 5000, .hold = 5000 }, 1000), hold;

	hold = capacity_result(&c, CAPACITY_BREAK);
	assert_int_equal(slo.lower.clients, 1000);
	assert_int_equal(slo.lower.tries, CAPACITY_TRIES);
	assert_int_equal(slo.upper.clients, 0);
	assert_true(slo.at_least);
	assert_true(slo.confirmed);
	assert_int_equal(hold.upper.clients, 0);
	assert_int_equal(hold.lower.clients, 1000);
	assert_true(hold.at_least);
	assert_false(hold.confirmed);
}

TEST(search__all_fail__no_capacity_and_it_ends)
{
	struct capacity_result slo = search(true, (struct server){ .slo = 0, .hold = 500 }, 1000);

	assert_int_equal(slo.lower.clients, 0);
	assert_int_equal(slo.upper.clients, 1);
	assert_false(slo.at_least);
	assert_false(slo.confirmed);
	assert_found(capacity_result(&c, CAPACITY_BREAK), 500, 2);
}

TEST(search__one_client_at_most__ends)
{
	struct capacity_result slo = search(true, (struct server){ .slo = 1, .hold = 1 }, 1);

	assert_int_equal(slo.lower.clients, 1);
	assert_true(slo.at_least);
}

TEST(search__without_an_slo__only_the_break)
{
	struct capacity_result slo = search(false, (struct server){ .slo = 0, .hold = 77 }, 1000);

	assert_int_equal(slo.lower.clients + slo.upper.clients, 0);
	assert_found(capacity_result(&c, CAPACITY_BREAK), 77, 2);
}

TEST(search__generator_saturated__at_least)
{
	struct capacity_result slo = search(true, (struct server){ .slo = 900, .hold = 5000, .saturated = 300 }, 2000);

	assert_in_range(slo.lower.clients, 285, 300);
	assert_true(slo.at_least);
	assert_true(slo.inconclusive);
	assert_false(slo.confirmed);
	/* The generator is not asked again and again what it cannot give. */
	assert_in_range(slo.upper.tries, 2, 2);
}

/* The fewest seeds of 1,000 that must be right. */
#define RIGHT_LEAST 950

/* Chance decides probes near the limit, in a range that is 0 to 10 % wide. 1,000 searches of each are made. */
TEST(search__chance_near_the_limit__interval_holds_it_and_two_searches_overlap)
{
	static const double widths[] = { 0, 0.02, 0.05, 0.1 };
	static const uint32_t limits[] = { 23, 172, 1234, 7000 };

	for (size_t i = 0; i < N_ELEMENTS(widths) * N_ELEMENTS(limits); i++) {
		struct server s = { .slo = limits[i / 4], .hold = UINT32_MAX, .width = widths[i % 4] };
		uint32_t right = 0, alike = 0, total = 0;
		struct capacity_end lower = { 0 }, upper = { .clients = UINT32_MAX };

		for (s.seed = 0; s.seed < 1000; s.seed++) {
			struct server one = { .slo = s.slo, .hold = s.hold, .width = s.width, .seed = s.seed << 20 };
			struct capacity_result r = search(true, one, 100000);

			if (r.upper.clients == 0)
				r.upper.clients = UINT32_MAX;
			right += r.lower.clients <= s.slo && s.slo <= r.upper.clients;
			alike += r.lower.clients <= upper.clients && lower.clients <= r.upper.clients;
			total += c.probes[CAPACITY_SLO];
			lower = r.lower;
			upper = r.upper;
		}
		print_message("limit %u, %g %%: %u of 1000 missed it, %u pairs apart, %.1f probes\n", s.slo,
			      s.width * 100, 1000 - right, 1000 - alike, total / 1000.0);
		assert_in_range(right, s.width > 0 ? RIGHT_LEAST : 1000, 1000);
		assert_in_range(alike, RIGHT_LEAST, 1000);
		assert_in_range(total / 1000, 0, 35);
	}
}

/* One probe in 20 goes wrong wherever it is: the interval grows, but it is not a wrong one. */
TEST(search__wrong_far_from_the_limit__interval_holds_it)
{
	uint32_t right = 0, narrow = 0;

	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct capacity_result r = search(true, (struct server){ .slo = 700, .hold = UINT32_MAX, .wrong = 0.05,
									 .seed = seed << 20 }, 10000);

		right += r.lower.clients <= 700 && (r.upper.clients == 0 || r.upper.clients > 700);
		narrow += r.lower.clients >= 600 && r.upper.clients <= 800;
	}
	assert_in_range(right, RIGHT_LEAST, 1000);
	assert_in_range(narrow, 500, 1000);
}

TEST(search__no_step_is_steady__not_confirmed_and_not_longer)
{
	struct capacity_result slo = search(true, (struct server){ .slo = 95, .hold = UINT32_MAX, .unsteady = true },
					    1000);

	assert_in_range(95, slo.lower.clients, slo.upper.clients - 1);
	assert_false(slo.confirmed);
	assert_int_equal(slo.lower.unsteady, CAPACITY_TRIES);
	assert_int_equal(slo.lower.tries, CAPACITY_TRIES);
}

/* Tells a probe for the SLO. */
static void tell(uint32_t clients, enum slo_result slo, bool unsteady)
{
	capacity_tell(&c, &(struct capacity_probe){ .clients = clients, .slo = slo, .unsteady = unsteady });
}

static void assert_next(uint32_t clients, enum capacity_purpose purpose, uint32_t repetition)
{
	struct capacity_probe p;

	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.of, CAPACITY_SLO);
	assert_int_equal(p.clients, clients);
	assert_int_equal(p.purpose, purpose);
	assert_int_equal(p.repetition, repetition);
}

/* Answers the next probes, which must be for this number. */
static void tell_all(uint32_t clients, enum slo_result slo, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++) {
		assert_next(clients, CAPACITY_CONFIRM, i + 2);
		tell(clients, slo, false);
	}
}

TEST(probes__are_numbered_and_say_what_for)
{
	struct capacity_probe p;

	capacity_init(&c, true, 10, 1000);
	assert_next(10, CAPACITY_DOUBLE, 1);
	tell(10, SLO_PASS, false);
	assert_next(20, CAPACITY_DOUBLE, 1);
	tell(20, SLO_FAIL, false);
	assert_next(15, CAPACITY_BISECT, 1);
	tell(15, SLO_FAIL, false);
	assert_next(12, CAPACITY_BISECT, 1);
	tell(12, SLO_FAIL, false);
	assert_next(11, CAPACITY_BISECT, 1);
	tell(11, SLO_FAIL, false);
	/* Both ends are tried in turn until they are decided; the search for the break follows. */
	for (uint32_t i = 2; i <= 5; i++) {
		assert_next(10, CAPACITY_CONFIRM, i);
		tell(10, SLO_PASS, false);
		assert_next(11, CAPACITY_CONFIRM, i);
		tell(11, SLO_FAIL, false);
	}
	assert_true(capacity_next(&c, &p));
	assert_int_equal(p.of, CAPACITY_BREAK);
	assert_int_equal(p.purpose, CAPACITY_DOUBLE);
	assert_int_equal(p.clients, 40);
}

TEST(unsteady_tries__are_made_up_for_by_steady_ones)
{
	struct capacity_result r;

	capacity_init(&c, true, 10, 11);
	for (int i = 0; i < 5; i++)
		tell(10, SLO_PASS, i < 2);
	for (int i = 0; i < 5; i++)
		tell(11, SLO_FAIL, false);
	assert_next(10, CAPACITY_CONFIRM, 6);
	assert_false(capacity_result(&c, CAPACITY_SLO).confirmed);
	tell(10, SLO_PASS, false);
	assert_next(10, CAPACITY_CONFIRM, 7);
	tell(10, SLO_PASS, false);
	r = capacity_result(&c, CAPACITY_SLO);
	assert_true(r.confirmed);
	assert_int_equal(r.lower.tries, 7);
	assert_int_equal(r.lower.unsteady, 2);
}

/* 100 and 120 disagree with themselves, so both ends move beyond by as much as the two are apart. */
TEST(tries_disagree__interval_widens_over_them)
{
	struct capacity_result r;

	capacity_init(&c, true, 10, 1000);
	tell(50, SLO_PASS, false);
	tell(100, SLO_PASS, false);
	tell(100, SLO_FAIL, false);
	tell(100, SLO_FAIL, false);
	tell(120, SLO_PASS, false);
	tell(120, SLO_FAIL, false);
	tell(200, SLO_FAIL, false);
	assert_next(80, CAPACITY_WIDEN, 1);
	tell(80, SLO_PASS, false);
	tell_all(80, SLO_PASS, 4);
	assert_next(140, CAPACITY_WIDEN, 1);
	tell(140, SLO_FAIL, false);
	tell_all(140, SLO_FAIL, 4);
	r = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(r.lower.clients, 80);
	assert_int_equal(r.upper.clients, 140);
	assert_true(r.scatters);
	assert_true(r.confirmed);
}

TEST(failure_below_a_number_that_passes__tried_again_and_outvoted)
{
	capacity_init(&c, true, 10, 1000);
	tell(10, SLO_PASS, false);
	tell(20, SLO_FAIL, false);
	tell(40, SLO_PASS, false);
	tell_all(20, SLO_PASS, 2);
	assert_next(80, CAPACITY_DOUBLE, 1);
}

TEST(most_scatters__no_upper_end_and_not_confirmed)
{
	struct capacity_result r;

	r = search(true, (struct server){ .slo = 100, .hold = UINT32_MAX, .width = 0.3, .seed = 1 }, 100);
	assert_int_equal(r.upper.clients, 0);
	assert_true(r.lower.clients < 100);
	assert_true(r.at_least);
	assert_true(r.scatters);
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
	assert_int_equal(r.lower.clients, 100);
	assert_int_equal(r.upper.clients, 500);
	assert_false(r.confirmed);
	r = capacity_result(&c, CAPACITY_BREAK);
	assert_int_equal(r.upper.clients, 0);
	assert_int_equal(r.lower.clients, 1000);
	assert_true(r.at_least);
}

TEST(result__of_nothing__nothing)
{
	struct capacity_result r;

	capacity_init(&c, true, 10, 1000);
	r = capacity_result(&c, CAPACITY_SLO);
	assert_int_equal(r.lower.clients + r.upper.clients + r.lower.tries, 0);
	assert_false(r.at_least || r.confirmed);
}
