/* Operations on the clients' regions. See rma.h. */
#include "loadgen/traffic/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/rdma/arena.h"
#include "common/rdma/ep.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/payload.h"
#include "loadgen/traffic/worker_internal.h"

#define POST_MAX 32		/* requests put together at a time */

/* For first messages. */
#define SMALL_MESSAGE_BYTES 64
#define SMALL_CREDITS 2

void rma_needs(const struct loadgen_config *c, struct workload_needs *out)
{
	uint64_t bytes = MAX(c->message_bytes, RMA_ATOMIC_BYTES);

	out->message_bytes = SMALL_MESSAGE_BYTES;
	out->credits = SMALL_CREDITS;
	/* The counter of atomics stands behind the slots, aligned. */
	out->region_bytes = (c->inflight * c->message_bytes + 7) / 8 * 8 + RMA_ATOMIC_BYTES;
	out->rma_depth = (uint32_t)(c->verify ? 2 * c->inflight : c->inflight);	/* what is written is read back */
	out->landing_shared = !c->verify;
	out->landing_bytes = c->inflight * bytes;
}

static uint32_t slots(const struct worker *w)
{
	return (uint32_t)w->cfg.cfg->inflight;
}

/* Requests of a client under way, at most: with --verify what is written is read back. */
static uint32_t requests(const struct worker *w)
{
	return w->cfg.cfg->verify ? 2 * slots(w) : slots(w);
}

static uint32_t slot_of(const struct worker *w, uint64_t number)
{
	return (uint32_t)(number % slots(w));
}

static uint64_t counter_offset(const struct wclient *wc)
{
	return client_grant(wc->conn)->region_bytes / 8 * 8 - RMA_ATOMIC_BYTES;
}

/* Where in the region a slot is: in a small one, slots share memory. */
static uint64_t offset_of(const struct worker *w, const struct wclient *wc, uint32_t slot)
{
	uint64_t room = counter_offset(wc) / w->bytes;

	return room ? slot % room * w->bytes : 0;
}

static uint8_t *landing(const struct worker *w, const struct wclient *wc, uint32_t slot)
{
	size_t client = w->needs.landing_shared ? 0 : (size_t)(wc - w->clients);

	return arena_at(w->landing, client * w->needs.landing_bytes + slot * MAX(w->bytes, RMA_ATOMIC_BYTES));
}

static struct rma_slot *state_of(const struct worker *w, const struct wclient *wc, uint32_t slot)
{
	return &w->rma_slots[(size_t)(wc - w->clients) * slots(w) + slot];
}

static bool is_atomic(enum ibv_wr_opcode kind)
{
	return kind == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void make(struct worker *w, struct wclient *wc, enum ibv_wr_opcode kind, struct rc_rma *op)
{
	uint64_t number = wc->streams[0].begun;
	uint32_t slot = slot_of(w, number);
	struct rma_slot *st = state_of(w, wc, slot);

	*op = (struct rc_rma){ .opcode = kind, .bytes = is_atomic(kind) ? RMA_ATOMIC_BYTES : (uint32_t)w->bytes,
			       .remote_addr = is_atomic(kind) ? counter_offset(wc) : offset_of(w, wc, slot) };
	st->kind = kind;
	if (kind == IBV_WR_RDMA_WRITE) {
		st->text = traffic_pattern(w, wc, number);
		st->written = true;
		op->local = payload_text(w->payload, st->text);
		op->lkey = arena_lkey(w->texts, 0);
	} else {
		op->local = landing(w, wc, slot);
		op->lkey = arena_lkey(w->landing, 0);
		op->operand = 1;
		st->atomic = is_atomic(kind) ? wc->atomics++ : 0;
	}
}

static void note(struct worker *w, struct wclient *wc, bool ends)
{
	wc->ends[wc->ends_in++ % requests(w)] = ends;
}

/* The requests of one operation. Returns how many. */
static uint32_t make_operation(struct worker *w, struct wclient *wc, enum ibv_wr_opcode kind, struct rc_rma *ops)
{
	uint32_t n = 1;

	make(w, wc, kind, &ops[0]);
	if (kind == IBV_WR_RDMA_WRITE && w->cfg.cfg->verify) {
		note(w, wc, false);
		make(w, wc, IBV_WR_RDMA_READ, &ops[n++]);
	}
	note(w, wc, true);
	return n;
}

static enum ibv_wr_opcode kind_of(const struct worker *w, uint64_t number)
{
	return w->workload->rma_of ? w->workload->rma_of(w->cfg.cfg, number) : w->workload->rma;
}

void rma_start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	uint64_t every = MAX(w->cfg.cfg->tuning.signal_every, 1);
	struct rc_rma ops[POST_MAX];

	while (n && wc->state == WCLIENT_LIVE) {
		uint32_t k = 0;

		for (; n && k + 2 <= POST_MAX; n--) {
			uint64_t number = wc->streams[stream].begun;

			k += make_operation(w, wc, kind_of(w, number), &ops[k]);
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

void rma_on_done(struct worker *w, struct wclient *wc, uint32_t rail, uint32_t n)
{
	(void)rail;
	while (n--) {
		uint32_t slot = slot_of(w, wc->streams[0].done);

		if (!wc->ends[wc->ends_out++ % requests(w)])
			continue;
		if (!w->needs.landing_shared)
			traffic_checked(w, is_right(w, state_of(w, wc, slot), landing(w, wc, slot)));
		traffic_end(w, wc, 0, 1);
	}
}

void rma_reset(struct worker *w, struct wclient *wc)
{
	wc->ends_in = wc->ends_out = 0;
	wc->atomics = 0;
	if (w->rma_slots)
		memset(state_of(w, wc, 0), 0, slots(w) * sizeof(struct rma_slot));
}

int rma_new(struct worker *w)
{
	size_t n = w->cfg.client.max_conns;

	if (w->workload->start != rma_start)
		return 0;
	w->rma_slots = calloc(n * slots(w), sizeof(*w->rma_slots));
	w->rma_ends = calloc(n * requests(w), sizeof(*w->rma_ends));
	if (!w->rma_slots || !w->rma_ends)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		w->clients[i].ends = &w->rma_ends[i * requests(w)];
	return 0;
}

void rma_free(struct worker *w)
{
	free(w->rma_slots);
	free(w->rma_ends);
}
