/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that connect one at a time while the server has no others (loadgen/step/floor.h). The first of them that fails is
 * the last. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_ALONE_H
#define RAMPART_LOADGEN_ALONE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/ramp/current.h"

struct floor;

struct alone {
	struct floor *floor;		/* NULL: none is under way */
	uint64_t left;			/* clients that are still to connect */
	bool leaving;			/* the present one was told to leave */
};

/* Has the first of --floor clients connect. 0 or -ENOMEM. */
int alone_begin(struct alone *a, const struct loadgen_config *cfg, struct crew *crew) __attribute__((warn_unused_result));
/* A worker fulfilled an order. True when all clients have tried and are gone. */
bool alone_advance(struct alone *a, const struct loadgen_config *cfg, struct crew *crew);
/* No further client connects; the present one fails if it is not connected yet. */
void alone_cut(struct alone *a, struct crew *crew);
void alone_clear(struct alone *a);

#endif
