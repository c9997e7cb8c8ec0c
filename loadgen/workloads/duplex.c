/* SPDX-License-Identifier: BSD-2-Clause */
/* `duplex`: chunks stream both ways at once, striped over the rails: to the client's region by WRITEs of the client,
 * and from the region by WRITEs of the server, each of which the client requests. Each end thus posts one direction,
 * so that on software devices two threads share the work. Each direction has its own operations in flight
 * and its own figures. Over a socket, both ends send the chunks as messages.
 */
#include "loadgen/striping/lanes.h"
#include "loadgen/workloads/workloads.h"

/* Size of first messages, and of messages that ask for a WRITE. */
#define MESSAGE_BYTES 64
/* Over a socket: size of the messages that carry chunks, and how many may be in flight over both streams. */
#define SOCKET_MESSAGE_BYTES (64u << 10)
#define SOCKET_CREDITS 16

enum { TO_SERVER, FROM_SERVER };

/* With --verify, the client reads back the data it wrote, and writes the data that it then asks the server to push. */
static void plan(const struct loadgen_config *c, unsigned stream, struct lane_plan *out)
{
	enum lane_move last = stream == FROM_SERVER ? LANE_PUSH : LANE_READ;

	if (c->transport != TRANSPORT_RDMA)
		*out = (struct lane_plan){ .n = 1, .moves = { stream == FROM_SERVER ? LANE_PUSH : LANE_SEND } };
	else if (c->verify)
		*out = (struct lane_plan){ .n = 2, .moves = { LANE_WRITE, last } };
	else
		*out = (struct lane_plan){ .n = 1, .moves = { stream == FROM_SERVER ? LANE_PUSH : LANE_WRITE } };
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	if (c->transport != TRANSPORT_RDMA) {
		out->message_bytes = SOCKET_MESSAGE_BYTES;
		out->credits = SOCKET_CREDITS;
		return;
	}
	lanes_needs(c, out);
	out->message_bytes = MESSAGE_BYTES;
	out->credits = (uint32_t)c->inflight;	/* for the messages that ask for a WRITE */
	out->window = true;
	out->rma_depth = (uint32_t)(c->inflight * c->wl->streams * (c->verify ? 2 : 1));
}

static int prepare(struct loadgen_config *c, char *err, size_t err_size)
{
	(void)err;
	(void)err_size;
	if (c->transport != TRANSPORT_RDMA)
		c->chunk_bytes = SOCKET_MESSAGE_BYTES;
	return 0;
}

const struct workload workload_duplex = {
	.streams = 2,
	.kind_names = { [TO_SERVER] = "to_server", [FROM_SERVER] = "from_server" },
	.bytes_min = 1,
	.bytes_max = 1u << 30,
	.bytes_default = 4u << 20,
	.inflight_default = 2,
	.needs = needs,
	.plan = plan,
	.prepare = prepare,
	.start = lanes_start,
	.on_credit = lanes_on_credit,
	.on_pushed = lanes_on_pushed,
	.on_rma = lanes_on_rma,
};
