/* `small`: one-way messages, many under way. The server answers now and then with the credits of all it handled,
 * when the client asks it to: twice in a window of messages, and with the last one that may go out for now.
 */
#include <sys/param.h>

#include "common/ep.h"
#include "common/frame.h"
#include "common/msg.h"
#include "loadgen/config.h"
#include "loadgen/worker_internal.h"

static void start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	uint64_t ack_every = MAX(w->cfg.cfg->inflight / 2, 1);
	bool summed = w->cfg.cfg->verify;

	while (n-- && wc->state == WCLIENT_LIVE) {
		uint64_t number = wc->streams[stream].begun;
		struct msg_header h = { .type = MSG_DATA, .sequence = traffic_sequence(w, wc, number) };
		uint32_t buf = traffic_message(w, wc, number, MSG_HEADER_BYTES);

		if (buf == EP_NO_BUF)
			return;
		h.flags = (uint8_t)(n == 0 || (number + 1) % ack_every == 0 ? MSG_FLAG_ACK : 0) |
			  (uint8_t)(summed ? MSG_FLAG_SUM : 0);
		traffic_begin(w, wc, stream);
		client_send(wc->conn, &h, buf, w->bytes);
	}
}

static void on_credit(struct worker *w, struct wclient *wc, uint32_t rail, uint32_t credits, uint64_t sequence)
{
	uint64_t last = wc->streams[0].done + credits - 1;

	(void)rail;
	if (sequence != traffic_sequence(w, wc, last)) {
		client_fail(wc->conn, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	traffic_end(w, wc, 0, credits);
}

static const char *objection(const struct loadgen_config *c)
{
	uint64_t least = MSG_HEADER_BYTES + MSG_SUM_BYTES + (c->message_auth ? MSG_TAG_BYTES : 0);

	for (size_t i = 0; i < c->sizes.n && c->verify; i++)
		if (c->sizes.v[i] < least)
			return "--verify: a message of --workload small needs 20 bytes at least, for header and checksum, and "
			       "with --message-auth 36";
	return NULL;
}

const struct workload workload_small = {
	.help = "one-way messages, many in flight",
	.tags = true,
	.streams = 1,
	.bytes_min = FRAME_MESSAGE_BYTES_MIN,
	.bytes_max = FRAME_MESSAGE_BYTES_MAX,
	.bytes_default = 64,
	.inflight_default = 64,
	.needs = workload_needs_messages,
	.objection = objection,
	.start = start,
	.on_credit = on_credit,
};
