/* `duplex`: chunks stream both ways at once, striped over the rails: to the client's region with WRITEs of the client, and
 * from it with WRITEs of the server, each of which the client asks for. So each end posts its own direction, and where no
 * hardware carries requests out, two threads do. Each direction has its own operations in flight, and its own figures.
 */
#include "loadgen/transfer/lanes.h"
#include "loadgen/workloads/workloads.h"

/* First messages, and those that ask for a WRITE. */
#define MESSAGE_BYTES 64

enum { TO_SERVER, FROM_SERVER };

/* With --verify, the client reads back what it wrote, and writes what it has the server push. */
static void plan(const struct loadgen_config *c, unsigned stream, struct lane_plan *out)
{
	enum lane_move last = stream == FROM_SERVER ? LANE_PUSH : LANE_READ;

	if (c->verify)
		*out = (struct lane_plan){ .n = 2, .moves = { LANE_WRITE, last } };
	else
		*out = (struct lane_plan){ .n = 1, .moves = { stream == FROM_SERVER ? LANE_PUSH : LANE_WRITE } };
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	lanes_needs(c, out);
	out->message_bytes = MESSAGE_BYTES;
	out->credits = (uint32_t)c->inflight;	/* for the messages that ask for a WRITE */
	out->window = true;
	out->rma_depth = (uint32_t)(c->inflight * c->wl->streams * (c->verify ? 2 : 1));
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
	.start = lanes_start,
	.on_pushed = lanes_on_pushed,
	.on_rma = lanes_on_rma,
};
