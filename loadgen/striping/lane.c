/* SPDX-License-Identifier: BSD-2-Clause */
/* See lane.h. */
#include "loadgen/striping/lane.h"

#include <string.h>
#include <sys/param.h>

#include "common/rdma/arena.h"
#include "common/wire/msg.h"
#include "loadgen/striping/lanes.h"
#include "loadgen/traffic/payload.h"

#define POST_MAX 32u		/* maximum number of requests posted together */

uint8_t *lane_text(const struct traffic *t, const struct wclient *wc, unsigned stream, uint64_t number)
{
	return payload_text(t->memory.payload, traffic_pattern(t, wc, number * t->workload->streams + stream));
}

static uint32_t rail_of(const struct traffic *t, const struct wclient *wc, const struct lane *lane)
{
	return lanes_rail(t, (uint32_t)(lane - wc->lanes));
}

void lane_append(struct lane *lane, unsigned stream, struct part *p)
{
	struct lane_queue *q = &lane->queues[stream];

	TAILQ_INSERT_TAIL(&q->parts, p, link);
	if (!q->posting)
		q->posting = p;
}

struct part *lane_take_first(struct lane *lane, unsigned stream)
{
	struct lane_queue *q = &lane->queues[stream];
	struct part *p = TAILQ_FIRST(&q->parts);

	TAILQ_REMOVE(&q->parts, p, link);
	return p;
}

void lane_reset(struct lane *lane)
{
	lane->conn = NULL;
	lane->order_in = lane->order_out = 0;
	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++) {
		struct lane_queue *q = &lane->queues[i];

		*q = (struct lane_queue){ .posting = NULL };
		TAILQ_INIT(&q->parts);
	}
}

/* Offset of a slot in the region. Operations in flight share places only if the region is too small for all of them. */
static uint64_t place_of(const struct traffic *t, const struct client_conn *c, uint32_t slot)
{
	return slot % MAX(client_grant(c)->region_bytes / t->bytes, 1) * t->bytes;
}

/* Requests on a lane's region that will be posted together, with one doorbell. */
struct batch {
	struct rc_rma ops[POST_MAX];
	uint32_t n;
};

static void post_batch(struct lane *lane, struct batch *b)
{
	if (b->n && lane->conn && client_rma(lane->conn, b->ops, b->n))
		client_fail(lane->conn, FAIL_PROTOCOL, PROTO_REGION);
	b->n = 0;
}

static bool ends_with_request(const struct lane_plan *plan)
{
	return !plan->tell && (plan->moves[plan->n - 1] == LANE_WRITE || plan->moves[plan->n - 1] == LANE_READ);
}

static bool add_request(struct traffic *t, struct wclient *wc, struct lane *lane, unsigned stream, enum lane_move move,
			uint64_t done, uint32_t bytes, struct batch *b)
{
	const struct lane_plan *plan = &t->plans[stream];
	const struct lane_queue *q = &lane->queues[stream];
	const struct part *p = q->posting;
	uint32_t rail = rail_of(t, wc, lane), slot = lane_slot(t, stream, p->number);
	uint64_t at = p->offset + done;
	bool tells = plan->imm && move == LANE_WRITE && done + bytes == p->bytes;
	struct rc_rma op = { .opcode = move == LANE_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .bytes = bytes,
			     .remote_addr = place_of(t, lane->conn, slot) + at, .signal = true };

	if (tells) {
		op.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		op.imm = lane_part_index(wc, p) << 1 | 1;
	}

	/* Leave room for another request after this one: the message that follows a part's last request. */
	if (client_rma_room(lane->conn) < b->n + 2 || lane->order_in - lane->order_out == LANE_ORDER_MAX ||
	    (tells && client_in_flight(lane->conn) >= t->memory.needs.credits))
		return false;
	op.local = (move == LANE_READ ? wc->landing + lane_landing_offset(t, slot) :
		    lane_text(t, wc, stream, p->number)) + at;
	op.lkey = arena_lkey(move == LANE_READ ? t->memory.landing : t->memory.texts, rail);
	/* If the plan ends with a message, the server's answer to the message ends the part, not this request. */
	lane->order[lane->order_in % LANE_ORDER_MAX].stream = ends_with_request(plan) ? (uint8_t)stream :
		LANE_NO_STREAM;
	lane->order[lane->order_in++ % LANE_ORDER_MAX].bytes = bytes;
	b->ops[b->n++] = op;
	/* Post at once, so that the next check for a credit sees that this request has taken one. */
	if (tells || b->n == POST_MAX)
		post_batch(lane, b);
	return true;
}

/* Credits of a stream. Over a socket both streams send messages, so each has a share and need not wait for the
 * other. */
static uint32_t credits_of(const struct traffic *t)
{
	return t->memory.needs.credits / (t->cfg->transport == TRANSPORT_RDMA ? 1 : t->workload->streams);
}

/* PUSHes of a lane that the server has not answered yet. */
static uint32_t pushes_of(const struct traffic *t, const struct lane *lane)
{
	return lane->queues[t->workload->streams - 1u].asked;
}

static bool send_message(struct traffic *t, struct wclient *wc, struct lane *lane, unsigned stream, uint64_t done,
			 uint32_t payload, bool last)
{
	struct lane_queue *q = &lane->queues[stream];
	const struct part *p = q->posting;
	struct ep *ep = t->eps[rail_of(t, wc, lane)];
	bool sum = t->cfg->verify && payload;
	/* Asks for credits when half of them are used, so that they return while the other half lasts. */
	bool ask = last || (q->unasked + 1) * 2 >= credits_of(t);
	struct msg_header h = { .type = MSG_DATA, .sequence = (uint64_t)lane_part_index(wc, p) << 1 | last,
				.flags = (uint8_t)((ask ? MSG_FLAG_ACK : 0) | (sum ? MSG_FLAG_SUM : 0)) };
	uint32_t buf;

	if (client_in_flight(lane->conn) - pushes_of(t, lane) >= credits_of(t))
		return false;
	buf = ep_buf_get(ep);
	if (buf == EP_NO_BUF)
		return false;
	q->unasked = ask ? 0 : q->unasked + 1;
	if (sum)
		memcpy(ep_buf(ep, buf) + MSG_HEADER_BYTES, lane_text(t, wc, stream, p->number) + p->offset + done,
		       payload);
	client_send(lane->conn, &h, buf, MSG_HEADER_BYTES + payload + (sum ? MSG_SUM_BYTES : 0));
	return true;
}

static bool push(const struct traffic *t, const struct wclient *wc, struct lane *lane, unsigned stream,
		 const struct part *p, uint32_t bytes)
{
	uint32_t slot = lane_slot(t, stream, p->number);
	struct msg_push ask = { .bytes = bytes };

	if (t->cfg->transport == TRANSPORT_RDMA) {
		ask.region_offset = place_of(t, lane->conn, slot) + p->offset;
		ask.window_offset = lane_landing_offset(t, slot) + p->offset;
	}
	if (pushes_of(t, lane) >= credits_of(t))
		return false;
	lane->queues[stream].asked++;
	client_push(lane->conn, &ask, lane_part_index(wc, p));
	return true;
}

uint64_t lane_chunk_bytes(const struct traffic *t, enum lane_move move)
{
	uint64_t chunk = t->cfg->chunk_bytes;

	if (move == LANE_SEND)
		return chunk - MSG_HEADER_BYTES - (t->cfg->verify ? MSG_SUM_BYTES : 0);
	if (move == LANE_PUSH && t->cfg->transport != TRANSPORT_RDMA)
		return chunk - MSG_HEADER_BYTES;
	return t->workload->chunks ? chunk : t->bytes;
}

static void go_on_with_next(struct lane_queue *q)
{
	q->posting = TAILQ_NEXT(q->posting, link);
	q->posted = 0;
}

/* Posts the next chunk of the stream's parts, or adds it to the batch. False: there is no chunk, or no room for it. */
static bool post_next(struct traffic *t, struct wclient *wc, struct lane *lane, unsigned stream, struct batch *b)
{
	const struct lane_plan *plan = &t->plans[stream];
	struct lane_queue *q = &lane->queues[stream];
	uint64_t bytes, done, all;
	enum lane_move move;
	bool posted;

	if (!lane->conn || !q->posting)
		return false;
	bytes = q->posting->bytes;
	all = plan->n * bytes;
	move = q->posted < all ? plan->moves[q->posted / bytes] : LANE_SEND;
	/* A message must not overtake the requests before it, so these are posted first. */
	if (move == LANE_SEND || move == LANE_PUSH) {
		post_batch(lane, b);
		if (!lane->conn || !q->posting)
			return false;
	}
	if (q->posted == all) {
		/* The part ends when the credit of this message comes back. */
		if (!send_message(t, wc, lane, stream, 0, 0, true))
			return false;
		if (lane->conn)
			go_on_with_next(q);
		return true;
	}
	done = q->posted % bytes;
	bytes = MIN(lane_chunk_bytes(t, move), bytes - done);
	if (move == LANE_PUSH)
		posted = push(t, wc, lane, stream, q->posting, (uint32_t)bytes);
	else if (move == LANE_SEND)
		posted = send_message(t, wc, lane, stream, done, (uint32_t)bytes, q->posted + bytes == all);
	else
		posted = add_request(t, wc, lane, stream, move, done, (uint32_t)bytes, b);
	/* If the connection broke, lanes_lose has moved its parts to other lanes. */
	if (!posted || !lane->conn)
		return posted;
	q->posted += bytes;
	if (q->posted == all && !plan->tell)
		go_on_with_next(q);
	return true;
}

void lane_advance(struct traffic *t, struct wclient *wc, struct lane *lane)
{
	struct batch b;
	bool more = true;

	b.n = 0;
	/* A leaving client completes the operations it has begun. */
	while (more && (wc->state == WCLIENT_LIVE || wc->state == WCLIENT_LEAVING)) {
		more = false;
		for (unsigned i = 0; i < t->workload->streams; i++)
			more |= post_next(t, wc, lane, i, &b);
	}
	post_batch(lane, &b);
}
