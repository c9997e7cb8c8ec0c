/* Operations on the clients' regions. See rma.h. */
#include "loadgen/rma.h"

#include <string.h>
#include <sys/param.h>

#include "common/arena.h"
#include "common/ep.h"
#include "common/msg.h"
#include "loadgen/config.h"
#include "loadgen/payload.h"
#include "loadgen/worker_internal.h"

#define POST_MAX 32		/* requests put together at a time */
#define NO_STREAM UINT8_MAX	/* a request that is only a part of an operation */

static uint32_t slots(const struct worker *w)
{
	return (uint32_t)w->cfg.cfg->inflight * w->workload->streams;
}

uint32_t rma_requests(const struct worker *w)
{
	return w->cfg.cfg->verify ? 2 * slots(w) : slots(w);
}

/* The streams' slots follow one another. */
static uint32_t slot_of(const struct worker *w, unsigned stream, uint64_t number)
{
	uint32_t inflight = (uint32_t)w->cfg.cfg->inflight;

	return stream * inflight + (uint32_t)(number % inflight);
}

static uint64_t counter_offset(const struct wclient *wc)
{
	return wc->conn->grant.region_bytes / 8 * 8 - RMA_ATOMIC_BYTES;
}

/* Where in the region a slot is: in a small one, slots share memory. */
static uint64_t offset_of(const struct worker *w, const struct wclient *wc, uint32_t slot)
{
	uint64_t room = counter_offset(wc) / w->bytes;

	return room ? slot % room * w->bytes : 0;
}

/* Where in a client's memory what comes back for a slot goes. */
static size_t landing_offset(const struct worker *w, uint32_t slot)
{
	return slot * MAX(w->bytes, RMA_ATOMIC_BYTES);
}

static uint8_t *landing(const struct worker *w, const struct wclient *wc, uint32_t slot)
{
	size_t client = w->needs.landing_shared ? 0 : (size_t)(wc - w->clients);

	return arena_at(w->landing, client * w->needs.landing_bytes + landing_offset(w, slot));
}

void rma_use_window(struct worker *w, struct wclient *wc)
{
	struct frame_window window = { .addr = (uintptr_t)landing(w, wc, 0),
				       .bytes = (uint32_t)w->needs.landing_bytes, .rkey = arena_rkey(w->landing) };

	client_use_window(wc->conn, &window);
}

static struct rma_slot *state_of(const struct worker *w, const struct wclient *wc, uint32_t slot)
{
	return &w->rma_slots[(size_t)(wc - w->clients) * slots(w) + slot];
}

static bool is_atomic(enum ibv_wr_opcode kind)
{
	return kind == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void make(struct worker *w, struct wclient *wc, unsigned stream, enum ibv_wr_opcode kind, struct rc_rma *op)
{
	uint64_t number = wc->streams[stream].begun;
	uint32_t slot = slot_of(w, stream, number);
	struct rma_slot *st = state_of(w, wc, slot);

	*op = (struct rc_rma){ .opcode = kind, .bytes = is_atomic(kind) ? RMA_ATOMIC_BYTES : (uint32_t)w->bytes,
			       .remote_addr = is_atomic(kind) ? counter_offset(wc) : offset_of(w, wc, slot) };
	st->kind = kind;
	if (kind == IBV_WR_RDMA_WRITE) {
		st->text = traffic_pattern(w, wc, number * w->workload->streams + stream);
		st->written = true;
		op->local = payload_text(w->payload, st->text);
		op->lkey = arena_lkey(w->texts);
	} else {
		op->local = landing(w, wc, slot);
		op->lkey = arena_lkey(w->landing);
		op->operand = 1;
		st->atomic = is_atomic(kind) ? wc->atomics++ : 0;
	}
}

static void note_order(struct worker *w, struct wclient *wc, uint8_t stream)
{
	wc->order[wc->order_in++ % rma_requests(w)] = stream;
}

/* The requests of one operation: with --verify what is written is read back. Returns how many. */
static uint32_t make_operation(struct worker *w, struct wclient *wc, unsigned stream, enum ibv_wr_opcode kind,
			       struct rc_rma *ops)
{
	uint32_t n = 1;

	make(w, wc, stream, kind, &ops[0]);
	if (kind == IBV_WR_RDMA_WRITE && w->cfg.cfg->verify && !w->workload->pushes[stream]) {
		note_order(w, wc, NO_STREAM);
		make(w, wc, stream, IBV_WR_RDMA_READ, &ops[n++]);
	}
	note_order(w, wc, (uint8_t)stream);
	return n;
}

static enum ibv_wr_opcode kind_of(const struct worker *w, unsigned stream, uint64_t number)
{
	return w->workload->rma_of ? w->workload->rma_of(w->cfg.cfg, number) : w->workload->rma[stream];
}

/* Asks for the stream's next one. What comes is looked at as if it had been READ. */
static void push(struct worker *w, struct wclient *wc, unsigned stream)
{
	uint64_t number = wc->pushes++;
	uint32_t slot = slot_of(w, stream, number);
	struct msg_push p = { .region_offset = offset_of(w, wc, slot), .window_offset = landing_offset(w, slot),
			      .bytes = (uint32_t)w->bytes };

	state_of(w, wc, slot)->kind = IBV_WR_RDMA_READ;
	client_push(wc->conn, &p, traffic_sequence(w, wc, number));
}

static void start_pushes(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	while (n-- && wc->state == WCLIENT_LIVE) {
		traffic_begin(w, wc, stream);
		push(w, wc, stream);
	}
}

void rma_start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	uint64_t every = MAX(w->cfg.cfg->tuning.signal_every, 1);
	struct rc_rma ops[POST_MAX];

	if (w->workload->pushes[stream] && !w->cfg.cfg->verify) {
		start_pushes(w, wc, stream, n);
		return;
	}
	while (n && wc->state == WCLIENT_LIVE) {
		uint32_t k = 0;

		for (; n && k + 2 <= POST_MAX; n--) {
			uint64_t number = wc->streams[stream].begun;

			k += make_operation(w, wc, stream, kind_of(w, stream, number), &ops[k]);
			/* The last one that may go out for now must be told of: no other would tell of it. */
			ops[k - 1].signal = (number + 1) % every == 0 || n == 1;
			traffic_begin(w, wc, stream);
		}
		if (client_rma(wc->conn, ops, k)) {
			client_fail(wc->conn, FAIL_PROTOCOL, PROTO_REGION);
			return;
		}
	}
}

/* What was read must be what was written last, or zero. */
static bool is_right(const struct worker *w, const struct rma_slot *st, const uint8_t *data)
{
	if (st->kind == IBV_WR_RDMA_WRITE)
		return true;
	if (is_atomic(st->kind)) {
		uint64_t old;

		memcpy(&old, data, sizeof(old));
		return old == st->atomic;
	}
	if (st->written)
		return memcmp(data, payload_text(w->payload, st->text), w->bytes) == 0;
	for (uint64_t i = 0; i < w->bytes; i++)
		if (data[i])
			return false;
	return true;
}

/* The stream's oldest operation is done. */
static void end(struct worker *w, struct wclient *wc, unsigned stream)
{
	uint32_t slot = slot_of(w, stream, wc->streams[stream].done);

	if (!w->needs.landing_shared)
		traffic_checked(w, is_right(w, state_of(w, wc, slot), landing(w, wc, slot)));
	traffic_end(w, wc, stream, 1);
}

void rma_on_done(struct worker *w, struct wclient *wc, uint32_t n)
{
	while (n--) {
		unsigned stream = wc->order[wc->order_out++ % rma_requests(w)];

		if (stream == NO_STREAM)
			continue;
		if (w->workload->pushes[stream])
			push(w, wc, stream);
		else
			end(w, wc, stream);
	}
}

void rma_on_pushed(struct worker *w, struct wclient *wc, uint64_t sequence)
{
	unsigned stream = w->workload->pushes[0] ? 0 : 1;

	if (sequence == traffic_sequence(w, wc, wc->streams[stream].done))
		end(w, wc, stream);
	else
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
}

void rma_reset(struct worker *w, struct wclient *wc)
{
	wc->order_in = wc->order_out = 0;
	wc->atomics = wc->pushes = 0;
	if (w->rma_slots)
		memset(state_of(w, wc, 0), 0, slots(w) * sizeof(struct rma_slot));
}
