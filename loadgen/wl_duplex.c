/* `duplex`: both directions at once, on one connection: chunks stream to the client's region, by WRITEs of the
 * client, and from it, by WRITEs of the server, which it is asked for one by one. So each end posts its own
 * direction: where no hardware carries requests out, the posting thread does. Each direction has its own operations
 * under way, and its own figures. There are many of them, because a message that asks stands behind the client's own
 * WRITEs: with few, the server waits for it.
 */
#include "loadgen/config.h"
#include "loadgen/rma.h"
#include "loadgen/workload.h"

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	workload_needs_region(c, out);
	out->credits = (uint32_t)c->inflight;	/* for the messages that ask */
	out->window = true;
}

const struct workload workload_duplex = {
	.help = "chunks to the client's region and from it at once",
	.streams = 2,
	.stream_names = { "to_server", "from_server" },
	.bytes_min = 1,
	.bytes_max = 1u << 30,
	.bytes_default = 1u << 20,
	.inflight_default = 8,
	.needs = needs,
	.pushes = { false, true },
	.rma = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE },
	.start = rma_start,
	.on_rma = rma_on_done,
	.on_pushed = rma_on_pushed,
};
