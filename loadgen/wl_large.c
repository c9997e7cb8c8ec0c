/* `large`: one-way transfers of large buffers in chunks (--chunk), by RDMA WRITE, SEND or READ (--operation).
 *
 * A transfer ends when the data is there, not when it is posted: behind the last WRITE goes a one-way message whose
 * credit the server returns when it handled it, and a connection's requests are carried out in order; the last
 * SEND asks for its credit itself; a READ is complete when its completion comes.
 */
#include <string.h>
#include <sys/param.h>

#include "common/arena.h"
#include "common/ep.h"
#include "common/frame.h"
#include "common/msg.h"
#include "loadgen/config.h"
#include "loadgen/payload.h"
#include "loadgen/worker_internal.h"

#define BYTES_MIN (64u << 10)
#define BYTES_MAX (UINT64_C(2) << 30)
/* Chunks under way, of all transfers of a client. */
#define CHUNKS_MAX 32
#define SENDS_MAX 16

static bool reads_back(const struct worker *w)
{
	return w->cfg.cfg->verify && w->cfg.cfg->operation != OPERATION_SEND;
}

/* Bytes of a transfer that are posted in chunks: with --verify, what was written is read back. */
static uint64_t bytes_to_post(const struct worker *w)
{
	return reads_back(w) ? 2 * w->bytes : w->bytes;
}

static uint64_t chunk_at(const struct worker *w, uint64_t posted)
{
	uint64_t done = posted % w->bytes;
	uint64_t room = w->cfg.cfg->chunk_bytes;

	/* A chunk that is sent has a header. */
	if (w->cfg.cfg->operation == OPERATION_SEND)
		room -= MSG_HEADER_BYTES + (w->cfg.cfg->verify ? MSG_SUM_BYTES : 0);
	return MIN(room, w->bytes - done);
}

/* Transfers under way have places of their own in the region, as far as there is room. */
static uint64_t place_of(const struct worker *w, const struct wclient *wc, uint64_t transfer)
{
	uint64_t places = MAX(wc->conn->grant.region_bytes / w->bytes, 1);

	return transfer % MIN(places, w->cfg.cfg->inflight) * w->bytes;
}

static uint8_t *landing(const struct worker *w, const struct wclient *wc)
{
	return arena_at(w->landing, w->needs.landing_shared ? 0 : (size_t)(wc - w->clients) * w->needs.landing_bytes);
}

static bool post_request(struct worker *w, struct wclient *wc, uint64_t bytes)
{
	struct large *l = &wc->large;
	bool reads = reads_back(w) ? l->posted >= w->bytes : w->cfg.cfg->operation == OPERATION_READ;
	uint64_t done = l->posted % w->bytes;
	struct rc_rma op = { .opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .bytes = (uint32_t)bytes,
			     .remote_addr = place_of(w, wc, l->transfer) + done, .signal = true };

	/* Also for what goes behind the last one. */
	if (client_rma_room(wc->conn) < 2)
		return false;
	op.local = reads ? landing(w, wc) + done :
			   payload_text(w->payload, traffic_pattern(w, wc, l->transfer)) + done;
	op.lkey = arena_lkey(reads ? w->landing : w->texts, 0);
	if (client_rma(wc->conn, &op, 1))
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_REGION);
	return true;
}

static bool send_chunk(struct worker *w, struct wclient *wc, uint64_t payload, bool ask, bool last)
{
	struct large *l = &wc->large;
	bool sum = w->cfg.cfg->verify && payload > 0;
	struct msg_header h = { .type = MSG_DATA, .sequence = l->transfer << 1 | last,
				.flags = (uint8_t)((ask ? MSG_FLAG_ACK : 0) | (sum ? MSG_FLAG_SUM : 0)) };
	uint32_t buf;

	if (wc->conn->in_flight >= w->needs.credits)
		return false;
	buf = ep_buf_get(w->ctx->ep);
	if (buf == EP_NO_BUF)
		return false;
	if (sum)
		memcpy(ep_buf(w->ctx->ep, buf) + MSG_HEADER_BYTES,
		       payload_text(w->payload, traffic_pattern(w, wc, l->transfer)) + l->posted, payload);
	client_send(wc->conn, &h, buf, (uint32_t)(MSG_HEADER_BYTES + payload + (sum ? MSG_SUM_BYTES : 0)));
	return true;
}

/* The next chunk, if there is room for it. */
static bool post_chunk(struct worker *w, struct wclient *wc)
{
	struct large *l = &wc->large;
	uint64_t bytes = chunk_at(w, l->posted);
	bool last = l->posted + bytes == bytes_to_post(w);
	/* Credits come back while there are others to go on with. */
	bool ask = last || (l->unasked + 1) * 2 >= w->needs.credits;

	if (w->cfg.cfg->operation != OPERATION_SEND)
		return post_request(w, wc, bytes);
	if (!send_chunk(w, wc, bytes, ask, last))
		return false;
	l->unasked = ask ? 0 : l->unasked + 1;
	return true;
}

static void advance(struct worker *w, struct wclient *wc)
{
	struct large *l = &wc->large;

	while (wc->state == WCLIENT_LIVE && l->transfer < wc->streams[0].begun) {
		uint64_t bytes = chunk_at(w, l->posted);

		if (l->posted < bytes_to_post(w)) {
			if (!post_chunk(w, wc))
				return;
			l->posted += bytes;
		}
		if (l->posted < bytes_to_post(w))
			continue;
		/* The server has this message when it has all that was written before. */
		if (w->cfg.cfg->operation == OPERATION_WRITE && !reads_back(w) && !send_chunk(w, wc, 0, true, true))
			return;
		l->transfer++;
		l->posted = 0;
	}
}

static void start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	while (n--)
		traffic_begin(w, wc, stream);
	advance(w, wc);
}

static void on_credit(struct worker *w, struct wclient *wc, uint32_t credits, uint64_t sequence)
{
	(void)credits;
	if (sequence >> 1 != wc->streams[0].done) {
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	if (sequence & 1)
		traffic_end(w, wc, 0, 1);
	advance(w, wc);
}

/* Chunks of the oldest transfer are done; only where its end is told by them. */
static void count_chunks(struct worker *w, struct wclient *wc, uint32_t n)
{
	struct large *l = &wc->large;
	uint64_t chunk = w->cfg.cfg->chunk_bytes, of_transfer = (w->bytes + chunk - 1) / chunk;

	if (reads_back(w))
		of_transfer *= 2;
	while (n--) {
		if (++l->chunks_done < of_transfer)
			continue;
		l->chunks_done = 0;
		if (reads_back(w))
			traffic_checked(w, memcmp(landing(w, wc), payload_text(w->payload,
				traffic_pattern(w, wc, wc->streams[0].done)), w->bytes) == 0);
		traffic_end(w, wc, 0, 1);
	}
}

static void on_rma(struct worker *w, struct wclient *wc, uint32_t n)
{
	if (w->cfg.cfg->operation == OPERATION_READ || reads_back(w))
		count_chunks(w, wc, n);
	advance(w, wc);
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	out->landing_shared = !c->verify;
	out->credits = (uint32_t)c->inflight;
	out->message_bytes = FRAME_MESSAGE_BYTES_MIN;
	if (c->operation == OPERATION_SEND) {
		out->message_bytes = (uint32_t)c->chunk_bytes;
		out->credits = SENDS_MAX;
		return;
	}
	out->region_bytes = MIN(c->inflight * c->message_bytes, FRAME_REGION_BYTES_MAX);
	out->rma_depth = CHUNKS_MAX;
	out->landing_bytes = c->operation == OPERATION_READ || c->verify ? c->message_bytes : 0;
}

static const char *objection(const struct loadgen_config *c)
{
	if (c->operation == OPERATION_SEND && c->chunk_bytes > FRAME_MESSAGE_BYTES_MAX)
		return "--chunk: with --operation send, at most 1M is allowed";
	if (c->verify && c->operation != OPERATION_SEND && c->inflight > 1)
		return "--verify: with --workload large one transfer at a time is written and read back; give --inflight 1";
	return NULL;
}

const struct workload workload_large = {
	.help = "one-way transfers of large buffers (--operation, --chunk)",
	.streams = 1,
	.bytes_min = BYTES_MIN,
	.bytes_max = BYTES_MAX,
	.bytes_default = 1u << 20,
	.inflight_default = 4,
	.needs = needs,
	.objection = objection,
	.start = start,
	.on_credit = on_credit,
	.on_rma = on_rma,
};
