/* SPDX-License-Identifier: BSD-2-Clause */
/* `small`: one-way messages, many in flight. The client asks for its credits twice per window of messages, and with the
 * last message it may send for now; the server then returns the credits of all messages it has handled. Messages due at
 * the same moment may share SENDs (--coalesce).
 */
#include <sys/param.h>

#include "client/client.h"
#include "common/rdma/ep.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "loadgen/traffic/message.h"
#include "loadgen/workloads/workloads.h"

/* Sends the first of `n` messages, as many as may share one SEND. Returns their number; 0 if the connection failed. */
static uint32_t send_some(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	const struct loadgen_config *c = t->cfg;
	uint64_t ack_every = MAX(c->inflight / 2, 1), first = wc->streams[stream].begun;
	uint32_t k = (uint32_t)MIN(n, c->coalesce), bytes = (uint32_t)t->bytes, buf;
	bool asks = k == n || first / ack_every != (first + k) / ack_every || t->open_loop;

	if (!client_has_credit(wc->conn)) {
		/* The server acknowledged messages without returning the credit of the SEND that carried them. */
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_CREDITS);
		return 0;
	}
	buf = message_buffer(t, wc);
	if (buf == EP_NO_BUF)
		return 0;
	for (uint32_t i = 0; i < k; i++) {
		struct msg_header h = { .type = MSG_DATA, .sequence = message_sequence(t, wc, first + i) };

		h.flags = (uint8_t)(asks && i + 1 == k ? MSG_FLAG_ACK : 0) | (uint8_t)(c->verify ? MSG_FLAG_SUM : 0);
		message_fill(t, wc, first + i, ep_buf(t->ep, buf) + i * bytes, MSG_HEADER_BYTES);
		traffic_begin(t, wc, stream);
		if (!client_seal(wc->conn, &h, buf, i * bytes, bytes))
			return 0;
	}
	client_post(wc->conn, buf, k * bytes, asks);
	return k;
}

static void small_start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	uint32_t k = 1;

	for (; n && k && wc->state == WCLIENT_LIVE; n -= k)
		k = send_some(t, wc, stream, n);
}

/* The sequence number of the last message tells how many messages the `credits` SENDs carried. */
static void on_credit(struct traffic *t, struct wclient *wc, uint32_t lane, uint32_t credits, uint64_t sequence)
{
	const struct stream *s = &wc->streams[0];
	uint64_t n = UINT64_C(1) + (uint32_t)(sequence - s->done);

	(void)lane;
	if (sequence != message_sequence(t, wc, s->done + n - 1) || n > s->begun - s->done || n < credits ||
	    n > credits * t->cfg->coalesce) {
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	if (t->measuring)
		counter_add(&t->stats->sends_measured, credits);
	traffic_end(t, wc, 0, (uint32_t)n);
}

/* In the closed loop new messages need no more SENDs than the messages they replace, so that the SENDs in flight never
 * exceed those at the start. In the open loop each message may need a SEND of its own. */
static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	uint64_t joined = MIN(c->coalesce, c->inflight);

	message_needs(c, out);
	out->message_bytes = (uint32_t)MAX(out->message_bytes, joined * c->message_bytes);
	if (!loadgen_is_open_loop(c))
		out->credits = (uint32_t)((c->inflight + joined - 1) / joined);
}

const struct workload workload_small = {
	.tags = true,
	.joins = true,
	.sums = true,
	.options = { "coalesce" },
	.streams = 1,
	.bytes_min = FRAME_MESSAGE_BYTES_MIN,
	.bytes_max = FRAME_MESSAGE_BYTES_MAX,
	.bytes_default = 64,
	.inflight_default = 64,
	.needs = needs,
	.start = small_start,
	.on_credit = on_credit,
};
