/* SPDX-License-Identifier: BSD-2-Clause */
/* `echo`: requests and replies. Each reply that arrives lets the client send its next message. */
#include "client/client.h"
#include "common/rdma/ep.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "loadgen/traffic/message.h"
#include "loadgen/workloads/workloads.h"

static void echo_start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	struct msg_header h = { .type = MSG_ECHO };

	while (n-- && wc->state == WCLIENT_LIVE) {
		uint64_t number = wc->streams[stream].begun;
		uint32_t buf = message_make(t, wc, number, MSG_HEADER_BYTES);

		if (buf == EP_NO_BUF)
			return;
		h.sequence = message_sequence(t, wc, number);
		traffic_begin(t, wc, stream);
		client_send(wc->conn, &h, buf, t->bytes);
	}
}

static void on_reply(struct traffic *t, struct wclient *wc, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	uint64_t number = wc->streams[0].done;

	if (sequence != message_sequence(t, wc, number) || bytes != t->bytes) {
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	message_check(t, wc, number, data + MSG_HEADER_BYTES, message_payload_bytes(t, MSG_HEADER_BYTES));
	traffic_end(t, wc, 0, 1);
}

const struct workload workload_echo = {
	.tags = true,
	.streams = 1,
	.round_trip = true,
	.bytes_min = FRAME_MESSAGE_BYTES_MIN,
	.bytes_max = FRAME_MESSAGE_BYTES_MAX,
	.bytes_default = 64,
	.inflight_default = 1,
	.needs = message_needs,
	.start = echo_start,
	.on_reply = on_reply,
};
