/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects clients one at a time while the server has no others (loadgen/measurement/connect_floor.h), until one fails.
 * Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_ALONE_H
#define RAMPART_LOADGEN_ALONE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/ramp/current.h"

struct connect_floor;

struct alone {
	struct connect_floor *floor;		/* results so far; NULL before the first alone_begin */
	uint64_t left;			/* clients still to connect */
	bool leaving;			/* the current client was told to leave */
};

/* Tells the first of --floor clients to connect. 0 or -ENOMEM. */
int alone_begin(struct alone *a, const struct loadgen_config *cfg, struct crew *crew)
	__attribute__((warn_unused_result));
/* Call when a worker has fulfilled an order. True when all clients have tried to connect and are gone. */
bool alone_advance(struct alone *a, const struct loadgen_config *cfg, struct crew *crew);
/* Lets no further client connect; the current client fails if it is not connected yet. */
void alone_cut(struct alone *a, struct crew *crew);
void alone_clear(struct alone *a);

#endif
