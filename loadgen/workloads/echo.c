/* `echo`: requests and replies. A client sends a message, and the next one when its reply comes. */
#include "common/rdma/ep.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "loadgen/traffic/message.h"
#include "loadgen/traffic/worker_internal.h"
#include "loadgen/workloads/workloads.h"

static void start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	struct msg_header h = { .type = MSG_ECHO };

	while (n-- && wc->state == WCLIENT_LIVE) {
		uint64_t number = wc->streams[stream].begun;
		uint32_t buf = traffic_message(w, wc, number, MSG_HEADER_BYTES);

		if (buf == EP_NO_BUF)
			return;
		h.sequence = traffic_sequence(w, wc, number);
		traffic_begin(w, wc, stream);
		client_send(wc->conn, &h, buf, w->bytes);
	}
}

static void on_reply(struct worker *w, struct wclient *wc, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	uint64_t number = wc->streams[0].done;

	if (sequence != traffic_sequence(w, wc, number) || bytes != w->bytes) {
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	traffic_check(w, wc, number, data + MSG_HEADER_BYTES, traffic_payload_bytes(w, MSG_HEADER_BYTES));
	traffic_end(w, wc, 0, 1);
}

const struct workload workload_echo = {
	.tags = true,
	.streams = 1,
	.bytes_min = FRAME_MESSAGE_BYTES_MIN,
	.bytes_max = FRAME_MESSAGE_BYTES_MAX,
	.bytes_default = 64,
	.inflight_default = 1,
	.needs = message_needs,
	.start = start,
	.on_reply = on_reply,
};
