/* `duplex`: chunks stream both ways at once, striped over the rails: to the client's region, by WRITEs of the client, and
 * from it, by WRITEs of the server, which it is asked for one by one. So each end posts its own direction: where no
 * hardware carries requests out, the posting thread does. Each direction has its own operations under way, and its own
 * figures.
 */
#include "loadgen/transfer/lanes.h"
#include "loadgen/workloads/workloads.h"

/* First messages, and those that ask. */
#define MESSAGE_BYTES 64

enum { TO_SERVER, FROM_SERVER };

/* With --verify, what was written is read back, and what is pushed was written before. */
static void plan(const struct loadgen_config *c, unsigned stream, struct lane_plan *out)
{
	enum lane_move last = stream == FROM_SERVER ? LANE_PUSH : LANE_READ;

	if (c->verify)
		*out = (struct lane_plan){ 2, { LANE_WRITE, last }, false };
	else
		*out = (struct lane_plan){ 1, { stream == FROM_SERVER ? LANE_PUSH : LANE_WRITE }, false };
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	lanes_needs(c, out);
	out->message_bytes = MESSAGE_BYTES;
	out->credits = (uint32_t)c->inflight;	/* for the messages that ask */
	out->window = true;
	out->rma_depth = (uint32_t)(c->inflight * c->wl->streams * (c->verify ? 2 : 1));
}

const struct workload workload_duplex = {
	.streams = 2,
	.stream_names = { [TO_SERVER] = "to_server", [FROM_SERVER] = "from_server" },
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
