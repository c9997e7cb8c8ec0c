/* SPDX-License-Identifier: BSD-2-Clause */
/* See lanes.h. */
#include "loadgen/striping/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/rdma/arena.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "loadgen/striping/lane.h"
#include "loadgen/striping/stripe.h"

/* The index of the operation's first part; the others follow, one for each rail. */
static uint32_t part_index(const struct traffic *t, unsigned stream, uint64_t number)
{
	return lane_slot(t, stream, number) * t->n_rails;
}

static void advance_all(struct traffic *t, struct wclient *wc)
{
	for (uint32_t i = 0; i < t->n_lanes; i++)
		lane_advance(t, wc, &wc->lanes[i]);
}

uint32_t lanes_alive(const struct wclient *wc)
{
	uint32_t n = 0;

	for (uint32_t i = 0; wc->lanes && i < wc->traffic->n_lanes; i++)
		n += wc->lanes[i].conn != NULL;
	return n;
}

/* The number of rails on which the client has a connection. */
static uint32_t rails_alive(const struct traffic *t, const struct wclient *wc)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < t->n_lanes; i++)
		alive |= wc->lanes[i].conn ? 1u << lanes_rail(t, i) : 0;
	return (uint32_t)__builtin_popcount(alive);
}

/* The `n`-th lane that has a connection, modulo the number of such lanes; there must be one. */
static struct lane *lane_at(const struct wclient *wc, uint64_t n)
{
	uint32_t left = (uint32_t)(n % lanes_alive(wc));
	struct lane *lane = wc->lanes;

	while (!lane->conn || left--)
		lane++;
	return lane;
}

static void begin_operation(struct traffic *t, struct wclient *wc, unsigned stream)
{
	uint64_t number = wc->streams[stream].begun;
	uint32_t first = part_index(t, stream, number);
	uint32_t n = stripe_rails(t->bytes, rails_alive(t, wc), t->cfg->stripe_min_bytes);

	traffic_begin(t, wc, stream);
	for (uint32_t i = 0; i < t->n_rails; i++) {
		struct part *p = &wc->parts[first + i];

		*p = (struct part){ .number = number, .done = i >= n };
		if (p->done)
			continue;
		stripe_part(t->bytes, n, i, &p->offset, &p->bytes);
		/* Operations too small to be striped over all lanes take the lanes in turn. */
		lane_append(lane_at(wc, number + i), stream, p);
	}
}

void lanes_start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	while (n--)
		begin_operation(t, wc, stream);
	advance_all(t, wc);
}

static bool all_parts_are_done(const struct traffic *t, const struct wclient *wc, unsigned stream, uint64_t number)
{
	const struct part *p = &wc->parts[part_index(t, stream, number)];

	for (uint32_t i = 0; i < t->n_rails; i++)
		if (!p[i].done)
			return false;
	return true;
}

static void check_answer(struct traffic *t, const struct wclient *wc, unsigned stream, uint64_t number)
{
	enum lane_move last = t->plans[stream].moves[t->plans[stream].n - 1];
	const uint8_t *landed;

	/* Over a socket each message was checked when it arrived. */
	if (!t->cfg->verify || (last != LANE_READ && last != LANE_PUSH) || t->cfg->transport != TRANSPORT_RDMA)
		return;
	landed = wc->landing + lane_landing_offset(t, lane_slot(t, stream, number));
	traffic_checked(t, memcmp(landed, lane_text(t, wc, stream, number), t->bytes) == 0);
}

/* Ends the first part of the lane's queue, and the operations that this completes. */
static void end_first(struct traffic *t, struct wclient *wc, struct lane *lane, unsigned stream)
{
	struct lane_queue *q = &lane->queues[stream];
	struct stream *s = &wc->streams[stream];
	struct part *p;

	q->ended -= MIN(q->ended, t->plans[stream].n * TAILQ_FIRST(&q->parts)->bytes);
	p = lane_take_first(lane, stream);
	p->done = true;
	/* Taking turns, the queue pairs of a rail do equally much; the time that it takes each can differ. */
	if (t->measuring && t->n_lanes > t->n_rails) {
		lane->measured++;
		lane->took_ns += traffic_now_ns(t) - traffic_times(t, s, p->number)->sent_ns;
	}
	while (s->done < s->begun && all_parts_are_done(t, wc, stream, s->done)) {
		check_answer(t, wc, stream, s->done);
		traffic_end(t, wc, stream, 1);
	}
}

/* True if the queue's first part has this index. */
static bool is_first(const struct wclient *wc, const struct lane_queue *q, uint64_t index)
{
	const struct part *p = TAILQ_FIRST(&q->parts);

	return p && lane_part_index(wc, p) == index;
}

/* With immediate data: ends parts that the server has answered and whose requests have ended. */
static void end_told(struct traffic *t, struct wclient *wc, struct lane *lane, unsigned stream)
{
	struct lane_queue *q = &lane->queues[stream];

	while (lane->conn && q->told && q->ended >= t->plans[stream].n * TAILQ_FIRST(&q->parts)->bytes) {
		q->told--;
		end_first(t, wc, lane, stream);
	}
}

/* True if the server may now answer the WRITE with immediate data of the part with this index: it is the first part not
 * answered yet, and its WRITE has been posted. */
static bool is_next_told(const struct wclient *wc, const struct lane_queue *q, uint64_t index)
{
	const struct part *p = TAILQ_FIRST(&q->parts);

	for (uint32_t i = 0; i < q->told && p && p != q->posting; i++)
		p = TAILQ_NEXT(p, link);
	return p && lane_part_index(wc, p) == index && (p != q->posting || q->posted >= p->bytes);
}

static void on_told(struct traffic *t, struct wclient *wc, struct lane *lane, uint64_t sequence)
{
	struct lane_queue *q = &lane->queues[0];

	if (!is_next_told(wc, q, sequence >> 1) || !(sequence & 1)) {
		client_fail(lane->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	q->told++;
	end_told(t, wc, lane, 0);
	lane_advance(t, wc, lane);
}

void lanes_on_credit(struct traffic *t, struct wclient *wc, uint32_t index, uint32_t credits, uint64_t sequence)
{
	struct lane *lane = &wc->lanes[index];
	const struct lane_queue *q = &lane->queues[0];	/* messages are sent on stream 0 only */

	(void)credits;
	if (t->plans[0].imm) {
		on_told(t, wc, lane, sequence);
		return;
	}
	if (!is_first(wc, q, sequence >> 1) || ((sequence & 1) && !lane_first_is_posted(q))) {
		client_fail(lane->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	if (sequence & 1)
		end_first(t, wc, lane, 0);
	lane_advance(t, wc, lane);
}

static bool is_as_pushed(uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	uint8_t wrong = 0;

	for (uint32_t i = 0; i < bytes; i++)
		wrong |= data[i] ^ msg_pushed_byte(sequence, i);
	return !wrong;
}

/* Accounts for pushed data. Over a socket, `data` is a chunk of the first part; over RDMA, `data` is NULL and the whole
 * part is in the landing memory. False: the server was not asked for these data. */
static bool take_pushed(struct traffic *t, struct lane_queue *q, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	const struct part *p = TAILQ_FIRST(&q->parts);
	uint64_t posted = p == q->posting ? q->posted : p->bytes;

	if (!data) {
		q->ended = p->bytes;
		return lane_first_is_posted(q);
	}
	if (bytes != MIN(lane_chunk_bytes(t, LANE_PUSH), p->bytes - q->ended) || q->ended + bytes > posted)
		return false;
	q->ended += bytes;
	if (t->cfg->verify)
		traffic_checked(t, is_as_pushed(sequence, data, bytes));
	return true;
}

void lanes_on_pushed(struct traffic *t, struct wclient *wc, uint32_t index, uint64_t sequence, const uint8_t *data,
		     uint32_t bytes)
{
	struct lane *lane = &wc->lanes[index];
	unsigned stream = t->workload->streams - 1u;	/* the stream from the server */
	struct lane_queue *q = &lane->queues[stream];

	if (!is_first(wc, q, sequence) || !take_pushed(t, q, sequence, data, bytes)) {
		client_fail(lane->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	q->asked -= q->asked > 0;
	if (q->ended == TAILQ_FIRST(&q->parts)->bytes)
		end_first(t, wc, lane, stream);
	lane_advance(t, wc, lane);
}

void lanes_on_rma(struct traffic *t, struct wclient *wc, uint32_t index, uint32_t n)
{
	struct lane *lane = &wc->lanes[index];

	while (n-- && lane->conn) {
		unsigned stream = lane->order[lane->order_out % LANE_ORDER_MAX].stream;
		uint32_t bytes = lane->order[lane->order_out++ % LANE_ORDER_MAX].bytes;
		struct lane_queue *q;

		if (stream == LANE_NO_STREAM)
			continue;
		q = &lane->queues[stream];
		q->ended += bytes;
		if (t->plans[stream].imm)
			end_told(t, wc, lane, stream);
		else if (q->ended == t->plans[stream].n * TAILQ_FIRST(&q->parts)->bytes)
			end_first(t, wc, lane, stream);
	}
	lane_advance(t, wc, lane);
}

void lanes_reset(struct wclient *wc)
{
	for (uint32_t i = 0; wc->lanes && i < wc->traffic->n_lanes; i++)
		lane_reset(&wc->lanes[i]);
}

void lanes_measure(struct traffic *t)
{
	for (uint32_t i = 0; i < t->n_clients; i++)
		for (uint32_t k = 0; t->clients[i].lanes && k < t->n_lanes; k++)
			t->clients[i].lanes[k].measured = t->clients[i].lanes[k].took_ns = 0;
}

void lanes_publish_times(struct traffic *t)
{
	struct fairness_sum f = { 0 };

	if (!t->measuring)
		return;
	for (uint32_t i = 0; i < t->active; i++)
		for (uint32_t k = 0; t->clients[i].lanes && k < t->n_lanes; k++) {
			const struct lane *lane = &t->clients[i].lanes[k];

			if (lane->conn && lane->measured)
				fairness_add(&f, lane->took_ns / lane->measured);
		}
	fairness_publish(&f, &t->stats->qp_times);
}

void lanes_use_window(const struct wclient *wc, uint32_t index, struct client_conn *c)
{
	const struct memory *m = &wc->traffic->memory;
	struct frame_window window = { .bytes = (uint32_t)m->needs.landing_bytes };

	if (!m->needs.window)
		return;
	window.addr = (uintptr_t)wc->landing;
	window.rkey = arena_rkey(m->landing, lanes_rail(wc->traffic, index));
	client_use_window(c, &window);
}

void lanes_add(struct wclient *wc, uint32_t index, struct client_conn *c)
{
	if (wc->lanes)
		wc->lanes[index].conn = c;
}

void lanes_remove(struct wclient *wc, uint32_t index, const struct client_conn *c)
{
	if (wc->lanes && wc->lanes[index].conn == c)
		wc->lanes[index].conn = NULL;
}

struct client_conn *lanes_conn_on(const struct wclient *wc, uint32_t index)
{
	return wc->lanes ? wc->lanes[index].conn : NULL;
}

struct client_conn *lanes_conn(const struct wclient *wc)
{
	return lanes_alive(wc) ? lane_at(wc, 0)->conn : NULL;
}

void lanes_lose(struct wclient *wc, uint32_t index)
{
	struct traffic *t = wc->traffic;

	if (!wc->lanes)
		return;
	wc->lanes[index].conn = NULL;
	if (!lanes_alive(wc))
		return;
	for (unsigned i = 0; i < t->workload->streams; i++)
		while (TAILQ_FIRST(&wc->lanes[index].queues[i].parts)) {
			struct part *p = lane_take_first(&wc->lanes[index], i);

			lane_append(lane_at(wc, lane_part_index(wc, p)), i, p);
		}
	lane_reset(&wc->lanes[index]);
	advance_all(t, wc);
}

void lanes_needs(const struct loadgen_config *c, struct workload_needs *out)
{
	uint64_t operations = c->inflight * c->wl->streams;

	out->region_bytes = operations * c->message_bytes;
	out->landing_shared = !c->verify;
	out->landing_bytes = (c->verify ? operations : 1) * c->message_bytes;
}

int lanes_init(struct lanes *l, struct traffic *t)
{
	size_t parts = (size_t)t->cfg->inflight * t->workload->streams * t->n_rails;

	if (!t->workload->plan)
		return 0;
	for (unsigned i = 0; i < t->workload->streams; i++)
		t->workload->plan(t->cfg, i, &t->plans[i]);
	l->lanes = calloc((size_t)t->n_clients * t->n_lanes, sizeof(*l->lanes));
	l->parts = calloc(t->n_clients * parts, sizeof(*l->parts));
	if (!l->lanes || !l->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_clients; i++) {
		t->clients[i].lanes = &l->lanes[(size_t)i * t->n_lanes];
		t->clients[i].parts = &l->parts[i * parts];
		lanes_reset(&t->clients[i]);
	}
	return 0;
}

void lanes_release(struct lanes *l)
{
	free(l->lanes);
	free(l->parts);
}
