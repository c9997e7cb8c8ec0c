/* SPDX-License-Identifier: BSD-2-Clause */
/* The knee. See knee.h. */
#include "loadgen/analysis/knee.h"

#include <assert.h>
#include <math.h>

#define GROWTH_PER_DOUBLING 1.1
#define P99_RATIO	    2.0
/* Tolerance, so that rounding does not push a figure exactly at a limit across it. */
#define ROUNDING	    1e-9

const char *const knee_reason_names[] = {
	[KNEE_NONE] = "none",
	[KNEE_THROUGHPUT] = "throughput",
	[KNEE_P99] = "p99",
	[KNEE_FEW_POINTS] = "few_points",
	[KNEE_SATURATED] = "saturated",
};
static_assert(sizeof(knee_reason_names) / sizeof(knee_reason_names[0]) == KNEE_SATURATED + 1, "a name for each");

/* `before`: the last point used (NULL: none yet). Its clients must be fewer. */
static bool usable(const struct knee_point *p, const struct knee_point *before)
{
	return isfinite(p->clients) && p->clients > 0 && isfinite(p->throughput) && p->throughput >= 0 &&
	       (!before || p->clients > before->clients);
}

static bool grew(const struct knee_point *from, const struct knee_point *to)
{
	double needed = pow(GROWTH_PER_DOUBLING, log2(to->clients / from->clients));

	return to->throughput > from->throughput && to->throughput >= from->throughput * needed * (1 - ROUNDING);
}

void knee_find(const struct knee_point *p, size_t n, struct knee *out)
{
	const struct knee_point *before = NULL;
	double least_p99_ns = NAN;	/* of the fewest clients whose p99 is known */

	*out = (struct knee){ .reason = KNEE_FEW_POINTS, .clients = NAN, .beyond = NAN };
	for (size_t i = 0; i < n; i++) {
		if (!usable(&p[i], before))
			continue;
		if (!(least_p99_ns > 0))
			least_p99_ns = p[i].p99_ns;
		if (before) {
			out->reason = !grew(before, &p[i]) ? KNEE_THROUGHPUT :
				      p[i].p99_ns > P99_RATIO * least_p99_ns * (1 + ROUNDING) ? KNEE_P99 : KNEE_NONE;
			if (out->reason != KNEE_NONE) {
				out->clients = before->clients;
				out->beyond = p[i].clients;
				return;
			}
		}
		before = &p[i];
	}
}

bool knee_is_found(const struct knee *k)
{
	return k->reason == KNEE_THROUGHPUT || k->reason == KNEE_P99;
}

void knee_of_full_cpus(struct knee *k, double fewest)
{
	if (k->reason == KNEE_P99 || (k->reason == KNEE_THROUGHPUT && k->clients == fewest))
		*k = (struct knee){ .reason = KNEE_SATURATED, .clients = NAN, .beyond = NAN };
}
