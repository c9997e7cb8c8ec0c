/* SPDX-License-Identifier: BSD-2-Clause */
/* How the clients of a step are dealt to the servers of a run, and what a number comes to in unequal shares. Pure; any
 * thread. */
#ifndef RAMPART_LOADGEN_DEAL_H
#define RAMPART_LOADGEN_DEAL_H

#include <stdint.h>

enum deal {
	DEAL_ROUND_ROBIN,	/* each server as many as any other, the first ones one more */
	DEAL_FIRST,		/* the first server as many as it has room for, then the next */
	DEAL_RANDOM,		/* each client by itself, by the seed */
};
extern const char *const deal_names[];	/* in the order of the enum, NULL-terminated */

/* How many of `total` clients each of `n` servers gets: the sum is `total`. `room` is how many each can take, for DEAL_FIRST
 * only; what is more than all of them can take goes to the last server, which is to refuse it. With the same seed a client
 * has the same server in every step, so that more clients mean no fewer for any server. */
void deal_clients(uint32_t total, uint32_t n, enum deal deal, uint64_t seed, const uint64_t *room, uint32_t *out);

/* The i-th of `n` shares of `total` that differ by one at most, the larger ones first. */
uint32_t deal_share(uint32_t total, uint32_t n, uint32_t i);

/* Deals `part` in proportion to `n` unequal shares: out[i] is share[i] x part / (sum of shares), rounded up or down so
 * that the sum is `part`, and is at most share[i]. `part` above the sum of shares counts as the sum. */
void deal_part(uint32_t part, uint32_t n, const uint32_t *share, uint32_t *out);

#endif
