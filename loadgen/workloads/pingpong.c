/* SPDX-License-Identifier: BSD-2-Clause */
/* `pingpong`: messages of bare bytes, without a header, bounce back and forth. Shows the latency of a message. */
#include "client/client.h"
#include "common/rdma/ep.h"
#include "common/wire/frame.h"
#include "loadgen/traffic/message.h"
#include "loadgen/workloads/workloads.h"

static void pingpong_start(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	while (n-- && wc->state == WCLIENT_LIVE) {
		uint64_t number = wc->streams[stream].begun;
		uint32_t buf = message_make(t, wc, number, 0);

		if (buf == EP_NO_BUF)
			return;
		traffic_begin(t, wc, stream);
		client_ping(wc->conn, buf, t->bytes, (uint32_t)number);
	}
}

static void on_ping(struct traffic *t, struct wclient *wc, uint32_t number, const uint8_t *data, uint32_t bytes)
{
	uint64_t expected = wc->streams[0].done;

	if (number != (uint32_t)expected || bytes != t->bytes) {
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	message_check(t, wc, expected, data, bytes);
	traffic_end(t, wc, 0, 1);
}

const struct workload workload_pingpong = {
	.streams = 1,
	.round_trip = true,
	.bytes_min = 1,
	.bytes_max = FRAME_MESSAGE_BYTES_MAX,
	.bytes_default = 64,
	.inflight_default = 1,
	.needs = message_needs,
	.start = pingpong_start,
	.on_ping = on_ping,
};
