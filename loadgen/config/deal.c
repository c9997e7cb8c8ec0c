/* SPDX-License-Identifier: BSD-2-Clause */
/* Deals clients to servers. See deal.h. No I/O. */
#include "loadgen/config/deal.h"

#include <stddef.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/random.h"

const char *const deal_names[] = { "round-robin", "first", "random", NULL };

uint32_t deal_share(uint32_t total, uint32_t n, uint32_t i)
{
	return total / n + (i < total % n);
}

static void deal_first(uint32_t total, uint32_t n, const uint64_t *room, uint32_t *out)
{
	for (uint32_t i = 0; i < n; i++) {
		out[i] = i + 1 < n ? (uint32_t)MIN(total, room[i]) : total;
		total -= out[i];
	}
}

static void deal_random(uint32_t total, uint32_t n, uint64_t seed, uint32_t *out)
{
	uint64_t state = seed;

	memset(out, 0, n * sizeof(*out));
	for (uint32_t i = 0; i < total; i++)
		out[random_next(&state) % n]++;
}

void deal_clients(uint32_t total, uint32_t n, enum deal deal, uint64_t seed, const uint64_t *room, uint32_t *out)
{
	switch (deal) {
	case DEAL_ROUND_ROBIN:
		for (uint32_t i = 0; i < n; i++)
			out[i] = deal_share(total, n, i);
		return;
	case DEAL_FIRST:
		deal_first(total, n, room, out);
		return;
	case DEAL_RANDOM:
		deal_random(total, n, seed, out);
		return;
	}
}

/* Each share is the difference of two rounded running sums, so the shares add up exactly. */
void deal_part(uint32_t part, uint32_t n, const uint32_t *share, uint32_t *out)
{
	uint64_t all = 0, before = 0, dealt = 0;

	for (uint32_t i = 0; i < n; i++)
		all += share[i];
	part = (uint32_t)MIN(part, all);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t upto = all ? ((before + share[i]) * part + all - 1) / all : 0;

		out[i] = (uint32_t)(upto - dealt);
		before += share[i];
		dealt = upto;
	}
}
