/* `duplex`: chunks stream both ways at once, striped over the rails: from the client to its region (WRITE) and from it
 * (READ). Each direction has its own operations under way, and its own figures.
 */
#include "loadgen/config.h"
#include "loadgen/lanes.h"
#include "loadgen/workload.h"

/* For first messages. */
#define MESSAGE_BYTES 64
#define CREDITS 2

/* With --verify, what was written is read back, and what is read was written before. */
static void plan(const struct loadgen_config *c, unsigned stream, struct lane_plan *out)
{
	if (c->verify)
		*out = (struct lane_plan){ 2, { LANE_WRITE, LANE_READ }, false };
	else
		*out = (struct lane_plan){ 1, { stream ? LANE_READ : LANE_WRITE }, false };
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	lanes_needs(c, out);
	out->message_bytes = MESSAGE_BYTES;
	out->credits = CREDITS;
	out->rma_depth = (uint32_t)(c->inflight * c->wl->streams * (c->verify ? 2 : 1));
}

const struct workload workload_duplex = {
	.help = "chunks to the client's region and from it at once",
	.streams = 2,
	.stream_names = { "to_server", "from_server" },
	.bytes_min = 1,
	.bytes_max = 1u << 30,
	.bytes_default = 4u << 20,
	.inflight_default = 2,
	.needs = needs,
	.plan = plan,
	.start = lanes_start,
	.on_rma = lanes_on_rma,
};
