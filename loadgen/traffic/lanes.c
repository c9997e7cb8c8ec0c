/* Operations striped over a client's connections. See lanes.h. */
#include "loadgen/traffic/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/rdma/arena.h"
#include "common/rdma/ep.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/payload.h"
#include "loadgen/traffic/stripe.h"
#include "loadgen/traffic/worker_internal.h"

#define NO_PART UINT32_MAX
#define NO_STREAM UINT8_MAX	/* a request whose completion ends nothing */
#define ORDER_MAX 64u		/* requests of a lane on its region under way */
#define POST_MAX 32u		/* requests put together at a time */

/* A part of an operation. Its index says which: see part_index. */
struct part {
	uint64_t number;		/* of the operation in its stream */
	uint64_t offset, bytes;		/* in the operation */
	bool done;
	uint32_t next;			/* in its lane's queue */
};

/* A stream's parts on a lane, in order; none of them is done. */
struct lane_queue {
	uint32_t first, last;
	uint32_t posting;		/* the first that is not posted whole; NO_PART: none */
	uint64_t posted;		/* bytes of its moves */
	uint64_t ended;			/* bytes of the requests that ended of the first */
	uint32_t unasked;		/* messages since the last one that asked for its credit */
};

struct lane {
	struct client_conn *conn;	/* NULL: none, or lost */
	struct lane_queue queues[WORKLOAD_STREAMS_MAX];
	struct { uint8_t stream; uint32_t bytes; } order[ORDER_MAX];	/* ring: requests on the region */
	uint32_t order_in, order_out;
};

static uint32_t slot_of(const struct worker *w, unsigned stream, uint64_t number)
{
	return (uint32_t)(stream * w->cfg.cfg->inflight + number % w->cfg.cfg->inflight);
}

/* Of the operation's first part; the others follow, one for each rail. */
static uint32_t part_index(const struct worker *w, unsigned stream, uint64_t number)
{
	return slot_of(w, stream, number) * w->n_rails;
}

/* Operations under way have places of their own in the region, as far as there is room. */
static uint64_t place_of(const struct worker *w, const struct client_conn *c, uint32_t slot)
{
	return slot % MAX(client_grant(c)->region_bytes / w->bytes, 1) * w->bytes;
}

/* Of a slot, in the client's landing memory. */
static uint64_t landing_offset(const struct worker *w, uint32_t slot)
{
	return w->needs.landing_shared ? 0 : slot * w->bytes;
}

static uint8_t *landing(const struct worker *w, const struct wclient *wc, uint32_t slot)
{
	size_t client = w->needs.landing_shared ? 0 : (size_t)(wc - w->clients);

	return arena_at(w->landing, client * w->needs.landing_bytes + landing_offset(w, slot));
}

/* What the streams of a client write differs. */
static uint8_t *text(const struct worker *w, const struct wclient *wc, unsigned stream, uint64_t number)
{
	return payload_text(w->payload, traffic_pattern(w, wc, number * w->workload->streams + stream));
}

/* --- queues --- */

static void append(struct wclient *wc, struct lane_queue *q, uint32_t index)
{
	wc->parts[index].next = NO_PART;
	if (q->last == NO_PART)
		q->first = index;
	else
		wc->parts[q->last].next = index;
	q->last = index;
	if (q->posting == NO_PART)
		q->posting = index;
}

static uint32_t take_first(struct wclient *wc, struct lane_queue *q)
{
	uint32_t index = q->first;

	q->first = wc->parts[index].next;
	if (q->first == NO_PART)
		q->last = NO_PART;
	q->ended = 0;
	return index;
}

static void empty(struct lane_queue *q)
{
	*q = (struct lane_queue){ .first = NO_PART, .last = NO_PART, .posting = NO_PART };
}

/* --- posting --- */

/* Requests of a lane on its region that are about to be posted: those that may go out together share doorbells. */
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

static bool add_request(struct worker *w, struct wclient *wc, struct lane *lane, unsigned stream, enum lane_move move,
			uint64_t done, uint32_t bytes, struct batch *b)
{
	const struct lane_plan *plan = &w->plans[stream];
	const struct lane_queue *q = &lane->queues[stream];
	const struct part *p = &wc->parts[q->posting];
	uint32_t rail = (uint32_t)(lane - wc->lanes), slot = slot_of(w, stream, p->number);
	uint64_t at = p->offset + done;
	struct rc_rma op = { .opcode = move == LANE_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .bytes = bytes,
			     .remote_addr = place_of(w, lane->conn, slot) + at, .signal = true };

	/* Also for what goes behind the last one. */
	if (client_rma_room(lane->conn) < b->n + 2 || lane->order_in - lane->order_out == ORDER_MAX)
		return false;
	op.local = (move == LANE_READ ? landing(w, wc, slot) : text(w, wc, stream, p->number)) + at;
	op.lkey = arena_lkey(move == LANE_READ ? w->landing : w->texts, rail);
	/* Of a plan that ends with something else, the server's answer to that tells. */
	lane->order[lane->order_in % ORDER_MAX].stream = ends_with_request(plan) ? (uint8_t)stream : NO_STREAM;
	lane->order[lane->order_in++ % ORDER_MAX].bytes = bytes;
	b->ops[b->n++] = op;
	if (b->n == POST_MAX)
		post_batch(lane, b);
	return true;
}

static bool send_message(struct worker *w, struct wclient *wc, struct lane *lane, unsigned stream, uint64_t done,
			 uint32_t payload, bool last)
{
	struct lane_queue *q = &lane->queues[stream];
	const struct part *p = &wc->parts[q->posting];
	struct ep *ep = ((const struct rail *)client_arg(lane->conn))->ep;
	bool sum = w->cfg.cfg->verify && payload;
	/* Credits come back while there are others to go on with. */
	bool ask = last || (q->unasked + 1) * 2 >= w->needs.credits;
	struct msg_header h = { .type = MSG_DATA, .sequence = (uint64_t)q->posting << 1 | last,
				.flags = (uint8_t)((ask ? MSG_FLAG_ACK : 0) | (sum ? MSG_FLAG_SUM : 0)) };
	uint32_t buf;

	if (client_in_flight(lane->conn) >= w->needs.credits)
		return false;
	buf = ep_buf_get(ep);
	if (buf == EP_NO_BUF)
		return false;
	q->unasked = ask ? 0 : q->unasked + 1;
	if (sum)
		memcpy(ep_buf(ep, buf) + MSG_HEADER_BYTES, text(w, wc, stream, p->number) + p->offset + done, payload);
	client_send(lane->conn, &h, buf, MSG_HEADER_BYTES + payload + (sum ? MSG_SUM_BYTES : 0));
	return true;
}

static bool push(struct worker *w, struct lane *lane, unsigned stream, const struct part *p)
{
	uint32_t slot = slot_of(w, stream, p->number);
	struct msg_push ask = { .region_offset = place_of(w, lane->conn, slot) + p->offset,
				.window_offset = landing_offset(w, slot) + p->offset, .bytes = (uint32_t)p->bytes };

	if (client_in_flight(lane->conn) >= w->needs.credits)
		return false;
	client_push(lane->conn, &ask, lane->queues[stream].posting);
	return true;
}

static uint64_t chunk_bytes(const struct worker *w, enum lane_move move)
{
	uint64_t chunk = w->cfg.cfg->chunk_bytes;

	if (move != LANE_SEND)
		return w->workload->chunks ? chunk : w->bytes;
	return chunk - MSG_HEADER_BYTES - (w->cfg.cfg->verify ? MSG_SUM_BYTES : 0);
}

static void go_on_with_next(struct wclient *wc, struct lane_queue *q)
{
	q->posting = wc->parts[q->posting].next;
	q->posted = 0;
}

/* Posts the next chunk of the stream's parts, or adds it to the batch. False: there is none, or no room for it. */
static bool post_next(struct worker *w, struct wclient *wc, struct lane *lane, unsigned stream, struct batch *b)
{
	const struct lane_plan *plan = &w->plans[stream];
	struct lane_queue *q = &lane->queues[stream];
	uint64_t bytes, done, all;
	enum lane_move move;
	bool posted;

	if (!lane->conn || q->posting == NO_PART)
		return false;
	bytes = wc->parts[q->posting].bytes;
	all = plan->n * bytes;
	move = q->posted < all ? plan->moves[q->posted / bytes] : LANE_SEND;
	/* A message goes behind the requests. */
	if (move == LANE_SEND || move == LANE_PUSH) {
		post_batch(lane, b);
		if (!lane->conn || q->posting == NO_PART)
			return false;
	}
	if (q->posted == all) {
		/* The message that tells of the requests. */
		if (!send_message(w, wc, lane, stream, 0, 0, true))
			return false;
		if (lane->conn)
			go_on_with_next(wc, q);
		return true;
	}
	done = q->posted % bytes;
	bytes = MIN(chunk_bytes(w, move), bytes - done);
	if (move == LANE_PUSH)
		posted = push(w, lane, stream, &wc->parts[q->posting]);
	else if (move == LANE_SEND)
		posted = send_message(w, wc, lane, stream, done, (uint32_t)bytes, q->posted + bytes == all);
	else
		posted = add_request(w, wc, lane, stream, move, done, (uint32_t)bytes, b);
	/* If the connection broke, its parts are elsewhere. */
	if (!posted || !lane->conn)
		return posted;
	q->posted += bytes;
	if (q->posted == all && !plan->tell)
		go_on_with_next(wc, q);
	return true;
}

static void advance(struct worker *w, struct wclient *wc, struct lane *lane)
{
	struct batch b;
	bool more = true;

	b.n = 0;
	/* A client that leaves ends what it has begun. */
	while (more && (wc->state == WCLIENT_LIVE || wc->state == WCLIENT_LEAVING)) {
		more = false;
		for (unsigned i = 0; i < w->workload->streams; i++)
			more |= post_next(w, wc, lane, i, &b);
	}
	post_batch(lane, &b);
}

static void advance_all(struct worker *w, struct wclient *wc)
{
	for (uint32_t i = 0; i < w->n_rails; i++)
		advance(w, wc, &wc->lanes[i]);
}

/* --- operations --- */

uint32_t lanes_alive(const struct worker *w, const struct wclient *wc)
{
	uint32_t n = 0;

	for (uint32_t i = 0; wc->lanes && i < w->n_rails; i++)
		n += wc->lanes[i].conn != NULL;
	return n;
}

/* The `n`-th of those that are there, counted on from the first again. */
static struct lane *lane_at(const struct worker *w, const struct wclient *wc, uint64_t n)
{
	uint32_t left = (uint32_t)(n % lanes_alive(w, wc));
	struct lane *lane = wc->lanes;

	while (!lane->conn || left--)
		lane++;
	return lane;
}

static void begin(struct worker *w, struct wclient *wc, unsigned stream)
{
	uint64_t number = wc->streams[stream].begun;
	uint32_t first = part_index(w, stream, number);
	uint32_t n = stripe_rails(w->bytes, lanes_alive(w, wc));

	traffic_begin(w, wc, stream);
	for (uint32_t i = 0; i < w->n_rails; i++) {
		struct part *p = &wc->parts[first + i];

		*p = (struct part){ .number = number, .done = i >= n };
		if (p->done)
			continue;
		stripe_part(w->bytes, n, i, &p->offset, &p->bytes);
		/* Small ones, too, come to all rails. */
		append(wc, &lane_at(w, wc, number + i)->queues[stream], first + i);
	}
}

void lanes_start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	while (n--)
		begin(w, wc, stream);
	advance_all(w, wc);
}

static bool all_parts_are_done(const struct worker *w, const struct wclient *wc, unsigned stream, uint64_t number)
{
	const struct part *p = &wc->parts[part_index(w, stream, number)];

	for (uint32_t i = 0; i < w->n_rails; i++)
		if (!p[i].done)
			return false;
	return true;
}

static void check(struct worker *w, const struct wclient *wc, unsigned stream, uint64_t number)
{
	const struct lane_plan *plan = &w->plans[stream];

	if (w->cfg.cfg->verify && (plan->moves[plan->n - 1] == LANE_READ || plan->moves[plan->n - 1] == LANE_PUSH))
		traffic_checked(w, memcmp(landing(w, wc, slot_of(w, stream, number)), text(w, wc, stream, number),
					  w->bytes) == 0);
}

/* The first part of the lane's queue is done; with it may be operations. */
static void end_first(struct worker *w, struct wclient *wc, struct lane *lane, unsigned stream)
{
	struct stream *s = &wc->streams[stream];

	wc->parts[take_first(wc, &lane->queues[stream])].done = true;
	while (s->done < s->begun && all_parts_are_done(w, wc, stream, s->done)) {
		check(w, wc, stream, s->done);
		traffic_end(w, wc, stream, 1);
	}
}

static bool first_is_posted(const struct lane_queue *q)
{
	return q->posting != q->first;
}

void lanes_on_credit(struct worker *w, struct wclient *wc, uint32_t rail, uint32_t credits, uint64_t sequence)
{
	struct lane *lane = &wc->lanes[rail];
	const struct lane_queue *q = &lane->queues[0];	/* only workloads of one stream send messages */

	(void)credits;
	if (q->first == NO_PART || q->first != sequence >> 1 || ((sequence & 1) && !first_is_posted(q))) {
		client_fail(lane->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	if (sequence & 1)
		end_first(w, wc, lane, 0);
	advance(w, wc, lane);
}

void lanes_on_pushed(struct worker *w, struct wclient *wc, uint32_t rail, uint64_t sequence)
{
	struct lane *lane = &wc->lanes[rail];
	unsigned stream = w->workload->streams - 1u;	/* from the server */
	const struct lane_queue *q = &lane->queues[stream];

	if (q->first == NO_PART || q->first != sequence || !first_is_posted(q)) {
		client_fail(lane->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	end_first(w, wc, lane, stream);
	advance(w, wc, lane);
}

void lanes_on_rma(struct worker *w, struct wclient *wc, uint32_t rail, uint32_t n)
{
	struct lane *lane = &wc->lanes[rail];

	while (n-- && lane->conn) {
		unsigned stream = lane->order[lane->order_out % ORDER_MAX].stream;
		uint32_t bytes = lane->order[lane->order_out++ % ORDER_MAX].bytes;
		struct lane_queue *q;

		if (stream == NO_STREAM)
			continue;
		q = &lane->queues[stream];
		q->ended += bytes;
		if (q->ended == w->plans[stream].n * wc->parts[q->first].bytes)
			end_first(w, wc, lane, stream);
	}
	advance(w, wc, lane);
}

/* --- lanes that come and go --- */

void lanes_reset(struct worker *w, struct wclient *wc)
{
	for (uint32_t i = 0; wc->lanes && i < w->n_rails; i++) {
		wc->lanes[i].conn = NULL;
		wc->lanes[i].order_in = wc->lanes[i].order_out = 0;
		for (unsigned k = 0; k < WORKLOAD_STREAMS_MAX; k++)
			empty(&wc->lanes[i].queues[k]);
	}
}

void lanes_use_window(const struct worker *w, const struct wclient *wc, uint32_t rail, struct client_conn *c)
{
	struct frame_window window = { .bytes = (uint32_t)w->needs.landing_bytes };

	if (!w->needs.window)
		return;
	window.addr = (uintptr_t)landing(w, wc, 0);
	window.rkey = arena_rkey(w->landing, rail);
	client_use_window(c, &window);
}

void lanes_add(struct wclient *wc, uint32_t rail, struct client_conn *c)
{
	if (wc->lanes)
		wc->lanes[rail].conn = c;
}

void lanes_remove(struct wclient *wc, uint32_t rail, const struct client_conn *c)
{
	if (wc->lanes && wc->lanes[rail].conn == c)
		wc->lanes[rail].conn = NULL;
}

struct client_conn *lanes_conn_on(const struct wclient *wc, uint32_t rail)
{
	return wc->lanes ? wc->lanes[rail].conn : NULL;
}

struct client_conn *lanes_conn(const struct worker *w, const struct wclient *wc)
{
	return lanes_alive(w, wc) ? lane_at(w, wc, 0)->conn : NULL;
}

void lanes_lose(struct worker *w, struct wclient *wc, uint32_t rail)
{
	struct lane *lane;

	if (!wc->lanes)
		return;
	lane = &wc->lanes[rail];
	lane->conn = NULL;
	if (!lanes_alive(w, wc))
		return;
	for (unsigned i = 0; i < w->workload->streams; i++)
		while (lane->queues[i].first != NO_PART) {
			uint32_t index = take_first(wc, &lane->queues[i]);

			append(wc, &lane_at(w, wc, index)->queues[i], index);
		}
	for (unsigned i = 0; i < w->workload->streams; i++)
		empty(&lane->queues[i]);
	advance_all(w, wc);
}

void lanes_needs(const struct loadgen_config *c, struct workload_needs *out)
{
	uint64_t operations = c->inflight * c->wl->streams;

	out->region_bytes = operations * c->message_bytes;
	out->landing_shared = !c->verify;
	out->landing_bytes = (c->verify ? operations : 1) * c->message_bytes;
}

int lanes_new(struct worker *w)
{
	uint32_t clients = w->cfg.client.max_conns;
	size_t parts = (size_t)w->cfg.cfg->inflight * w->workload->streams * w->n_rails;

	if (!w->workload->plan)
		return 0;
	for (unsigned i = 0; i < w->workload->streams; i++)
		w->workload->plan(w->cfg.cfg, i, &w->plans[i]);
	w->lanes = calloc((size_t)clients * w->n_rails, sizeof(*w->lanes));
	w->parts = calloc(clients * parts, sizeof(*w->parts));
	if (!w->lanes || !w->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < clients; i++) {
		w->clients[i].lanes = &w->lanes[(size_t)i * w->n_rails];
		w->clients[i].parts = &w->parts[i * parts];
		lanes_reset(w, &w->clients[i]);
	}
	return 0;
}

void lanes_free(struct worker *w)
{
	free(w->lanes);
	free(w->parts);
}
