/* SPDX-License-Identifier: BSD-2-Clause */
/* Deals the clients of a step to the servers of a run, and divides a number into unequal shares. No I/O; any thread. */
#ifndef RAMPART_LOADGEN_DEAL_H
#define RAMPART_LOADGEN_DEAL_H

#include <stdint.h>

enum deal {
	DEAL_ROUND_ROBIN,	/* each server gets the same number, the first ones one more */
	DEAL_FIRST,		/* each server in turn gets as many as it has room for */
	DEAL_RANDOM,		/* each client draws its server, by the seed */
};
extern const char *const deal_names[];	/* in the order of the enum, NULL-terminated */

/* Deals all of `total` clients to `n` servers. `room` says how many each can take, for DEAL_FIRST only; clients beyond
 * the room of all go to the last server, which will refuse them. With the same seed a client has the same server in
 * every step, so no server loses clients when `total` grows. */
void deal_clients(uint32_t total, uint32_t n, enum deal deal, uint64_t seed, const uint64_t *room, uint32_t *out);

/* The i-th of `n` shares of `total`, which differ by at most one, the larger ones first. */
uint32_t deal_share(uint32_t total, uint32_t n, uint32_t i);

/* Deals `part` in proportion to `n` unequal shares: out[i] is share[i] x part / (sum of shares), rounded up or down so
 * that the sum is `part`, and is at most share[i]. `part` above the sum of shares counts as the sum. */
void deal_part(uint32_t part, uint32_t n, const uint32_t *share, uint32_t *out);

#endif
