/* `duplex`: both directions at once, on one connection: chunks stream to the client's region (WRITE) and from it
 * (READ). Each direction has its own operations under way, and its own figures.
 */
#include "loadgen/rma.h"
#include "loadgen/workload.h"

const struct workload workload_duplex = {
	.help = "chunks to the client's region and from it at once",
	.streams = 2,
	.stream_names = { "to_server", "from_server" },
	.bytes_min = 1,
	.bytes_max = 1u << 30,
	.bytes_default = 4u << 20,
	.inflight_default = 2,
	.needs = workload_needs_region,
	.rma = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ },
	.start = rma_start,
	.on_rma = rma_on_done,
};
