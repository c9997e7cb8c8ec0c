/* SPDX-License-Identifier: BSD-2-Clause */
/* See rma.h. */
#include "loadgen/one_sided/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "client/client.h"
#include "common/rdma/arena.h"
#include "common/rdma/ep.h"
#include "loadgen/traffic/payload.h"

#define POST_MAX 32		/* maximum number of requests posted together */

/* State of a slot of a client's region, left by the present operation and those before. */
struct rma_slot {
	enum ibv_wr_opcode kind;	/* kind of the present operation */
	bool written;
	uint32_t text;			/* data written last, as the `shift` of payload_text */
	uint64_t atomic;		/* the old value that an atomic must return */
};

/* The only SENDs are the clients' first messages. */
#define SMALL_MESSAGE_BYTES 64
#define SMALL_CREDITS 2

void rma_needs(const struct loadgen_config *c, struct workload_needs *out)
{
	uint64_t bytes = MAX(c->message_bytes, RMA_ATOMIC_BYTES);

	out->message_bytes = SMALL_MESSAGE_BYTES;
	out->credits = SMALL_CREDITS;
	/* The counter that atomics increment follows the slots, aligned to 8 bytes. */
	out->region_bytes = (c->inflight * c->message_bytes + 7) / 8 * 8 + RMA_ATOMIC_BYTES;
	out->rma_depth = (uint32_t)(c->verify ? 2 * c->inflight : c->inflight);	/* each WRITE is read back */
	out->landing_shared = !c->verify;
	out->landing_bytes = c->inflight * bytes;
}

static uint32_t slots(const struct traffic *t)
{
	return (uint32_t)t->cfg->inflight;
}

/* Maximum number of a client's requests in flight: with --verify each WRITE is read back. */
static uint32_t requests(const struct traffic *t)
{
	return t->cfg->verify ? 2 * slots(t) : slots(t);
}

static uint32_t slot_of(const struct traffic *t, uint64_t number)
{
	return (uint32_t)(number % slots(t));
}

static uint64_t counter_offset(const struct wclient *wc)
{
	return client_grant(wc->conn)->region_bytes / 8 * 8 - RMA_ATOMIC_BYTES;
}

/* Offset of a slot in the region. Slots share memory if the region is too small for all of them. */
static uint64_t offset_of(const struct traffic *t, const struct wclient *wc, uint32_t slot)
{
	uint64_t room = counter_offset(wc) / t->bytes;

	return room ? slot % room * t->bytes : 0;
}

static uint8_t *landing(const struct traffic *t, const struct wclient *wc, uint32_t slot)
{
	return wc->landing + slot * MAX(t->bytes, RMA_ATOMIC_BYTES);
}

static bool is_atomic(enum ibv_wr_opcode kind)
{
	return kind == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void make_request(struct traffic *t, struct wclient *wc, enum ibv_wr_opcode kind, struct rc_rma *op)
{
	uint64_t number = wc->streams[0].begun;
	uint32_t slot = slot_of(t, number);
	struct rma_slot *st = &wc->slots[slot];

	*op = (struct rc_rma){ .opcode = kind, .bytes = is_atomic(kind) ? RMA_ATOMIC_BYTES : (uint32_t)t->bytes,
			       .remote_addr = is_atomic(kind) ? counter_offset(wc) : offset_of(t, wc, slot) };
	st->kind = kind;
	if (kind == IBV_WR_RDMA_WRITE) {
		st->text = traffic_pattern(t, wc, number);
		st->written = true;
		op->local = payload_text(t->memory.payload, st->text);
		op->lkey = arena_lkey(t->memory.texts, 0);
	} else {
		op->local = landing(t, wc, slot);
		op->lkey = arena_lkey(t->memory.landing, 0);
		op->operand = 1;
		st->atomic = is_atomic(kind) ? wc->atomics++ : 0;
	}
}

static void note(struct traffic *t, struct wclient *wc, bool ends)
{
	wc->ends[wc->ends_in++ % requests(t)] = ends;
}

/* Makes the requests of one operation. Returns their number. */
static uint32_t make_operation(struct traffic *t, struct wclient *wc, enum ibv_wr_opcode kind, struct rc_rma *ops)
{
	uint32_t n = 1;

	make_request(t, wc, kind, &ops[0]);
	if (kind == IBV_WR_RDMA_WRITE && t->cfg->verify) {
		note(t, wc, false);
		make_request(t, wc, IBV_WR_RDMA_READ, &ops[n++]);
	}
	note(t, wc, true);
	return n;
}

static enum ibv_wr_opcode kind_of(const struct traffic *t, uint64_t number)
{
	return t->workload->rma_of ? t->workload->rma_of(t->cfg, number) : t->workload->rma;
}

void rma_start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	uint64_t every = MAX(t->cfg->tuning.signal_every, 1);
	struct rc_rma ops[POST_MAX];

	while (n && wc->state == WCLIENT_LIVE) {
		uint32_t k = 0;

		for (; n && k + 2 <= POST_MAX; n--) {
			uint64_t number = wc->streams[stream].begun;

			k += make_operation(t, wc, kind_of(t, number), &ops[k]);
			/* The last request asks for a completion, because no later request would report its end. */
			ops[k - 1].signal = (number + 1) % every == 0 || n == 1;
			traffic_begin(t, wc, stream);
		}
		if (client_rma(wc->conn, ops, k)) {
			client_fail(wc->conn, FAIL_PROTOCOL, PROTO_REGION);
			return;
		}
	}
}

/* A READ must return the data written last, or zeros; an atomic must return the number of atomics before it. */
static bool is_right(const struct traffic *t, const struct rma_slot *st, const uint8_t *data)
{
	if (st->kind == IBV_WR_RDMA_WRITE)
		return true;
	if (is_atomic(st->kind)) {
		uint64_t old;

		memcpy(&old, data, sizeof(old));
		return old == st->atomic;
	}
	if (st->written)
		return memcmp(data, payload_text(t->memory.payload, st->text), t->bytes) == 0;
	for (uint64_t i = 0; i < t->bytes; i++)
		if (data[i])
			return false;
	return true;
}

void rma_on_done(struct traffic *t, struct wclient *wc, uint32_t lane, uint32_t n)
{
	(void)lane;
	while (n--) {
		uint32_t slot = slot_of(t, wc->streams[0].done);

		if (!wc->ends[wc->ends_out++ % requests(t)])
			continue;
		if (!t->memory.needs.landing_shared)
			traffic_checked(t, is_right(t, &wc->slots[slot], landing(t, wc, slot)));
		traffic_end(t, wc, 0, 1);
	}
}

void rma_reset(struct wclient *wc)
{
	wc->ends_in = wc->ends_out = 0;
	wc->atomics = 0;
	if (wc->slots)
		memset(wc->slots, 0, slots(wc->traffic) * sizeof(*wc->slots));
}

int rma_init(struct rma *r, struct traffic *t)
{
	size_t n = t->n_clients;

	if (t->workload->start != rma_start)
		return 0;
	r->slots = calloc(n * slots(t), sizeof(*r->slots));
	r->ends = calloc(n * requests(t), sizeof(*r->ends));
	if (!r->slots || !r->ends)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		t->clients[i].slots = &r->slots[i * slots(t)];
		t->clients[i].ends = &r->ends[i * requests(t)];
	}
	return 0;
}

void rma_release(struct rma *r)
{
	free(r->slots);
	free(r->ends);
}
