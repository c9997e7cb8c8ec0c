/* SPDX-License-Identifier: BSD-2-Clause */
/* Repeatable noise, for tests of statistics. */
#ifndef RAMPART_TESTS_UNIT_NOISE_H
#define RAMPART_TESTS_UNIT_NOISE_H

#include <math.h>
#include <stdint.h>

#include "tests/unit/helpers/unit.h"

/* Above 0, up to 1. */
static inline double noise_uniform(uint64_t *state)
{
	return (double)((unit_random(state) >> 11) + 1) / 0x1p53;
}

/* Mean 0, deviation 1 (Box and Muller). */
static inline double noise_normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(noise_uniform(state)));

	return radius * cos(2 * M_PI * noise_uniform(state));
}

#define assert_near(a, b, within) assert_true(fabs((double)(a) - (double)(b)) <= (within))

#endif
