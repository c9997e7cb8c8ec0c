/* SPDX-License-Identifier: BSD-2-Clause */
/* One lane of a client: one of its connections, and the parts of operations that are carried out on it, in order.
 * For lanes.c. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_LANE_H
#define RAMPART_LOADGEN_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/client.h"
#include "loadgen/traffic/traffic.h"

#define LANE_ORDER_MAX 64u	/* maximum number of requests in flight on a lane's region */
#define LANE_NO_STREAM UINT8_MAX	/* stream of a request whose completion ends no part */

/* A part of an operation. Its index among the client's parts identifies the operation and the part (lanes.c). */
struct part {
	uint64_t number;		/* number of the operation in its stream */
	uint64_t offset, bytes;		/* range of the part in the operation */
	bool done;
	TAILQ_ENTRY(part) link;		/* in its lane's queue */
};

/* A stream's parts on a lane, in order; none of them is done. */
struct lane_queue {
	TAILQ_HEAD(, part) parts;
	struct part *posting;		/* the first part that is not completely posted; NULL: none */
	uint64_t posted;		/* bytes of `posting` that are posted, summed over its moves */
	uint64_t ended;			/* bytes of ended requests of these parts, summed over their moves */
	uint32_t told;			/* unfinished parts whose WRITE with immediate data the server has answered */
	uint32_t asked;			/* PUSHes that the server has not answered yet */
	uint32_t unasked;		/* messages since the last one that asked for its credit */
};

struct lane {
	struct client_conn *conn;	/* NULL: not connected, or lost */
	uint64_t measured, took_ns;	/* parts that ended while measuring, and their time; lane_reset keeps both */
	struct lane_queue queues[WORKLOAD_STREAMS_MAX];
	struct { uint8_t stream; uint32_t bytes; } order[LANE_ORDER_MAX];	/* ring: requests on the region */
	uint32_t order_in, order_out;
};

/* Clears the lane: no connection, and nothing in the queues. */
void lane_reset(struct lane *lane);
void lane_append(struct lane *lane, unsigned stream, struct part *p);
/* Removes and returns the first part of the stream's queue, which must not be empty. */
struct part *lane_take_first(struct lane *lane, unsigned stream);
/* Posts as much as there is room for. The connection may break, and be lost (lanes_lose), before this returns. */
void lane_advance(struct traffic *t, struct wclient *wc, struct lane *lane);

/* Maximum number of bytes moved by one request or message. */
uint64_t lane_chunk_bytes(const struct traffic *t, enum lane_move move);

static inline bool lane_first_is_posted(const struct lane_queue *q)
{
	return q->posting != TAILQ_FIRST(&q->parts);
}

static inline uint32_t lane_part_index(const struct wclient *wc, const struct part *p)
{
	return (uint32_t)(p - wc->parts);
}

/* Index of an operation among those that a client may have in flight, over all streams. */
static inline uint32_t lane_slot(const struct traffic *t, unsigned stream, uint64_t number)
{
	return (uint32_t)(stream * t->cfg->inflight + number % t->cfg->inflight);
}

static inline uint64_t lane_landing_offset(const struct traffic *t, uint32_t slot)
{
	return t->memory.needs.landing_shared ? 0 : slot * t->bytes;
}

/* The data that an operation writes. They differ from operation to operation, and between the streams of a client. */
uint8_t *lane_text(const struct traffic *t, const struct wclient *wc, unsigned stream, uint64_t number);

#endif
