/* `duplex`: both directions at once, on one connection: chunks stream to the client's region (WRITE) and from it
 * (READ). Each direction has its own operations under way, and its own figures.
 */
#include "loadgen/rma.h"
#include "loadgen/worker_internal.h"

enum { STREAM_OUT, STREAM_IN };

static enum ibv_wr_opcode kind_of(const struct worker *w, unsigned stream, uint64_t number)
{
	(void)w;
	(void)number;
	return stream == STREAM_OUT ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
}

static void start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	rma_start(w, wc, stream, n, kind_of);
}

const struct workload workload_duplex = {
	.help = "chunks to the client's region and from it at once",
	.streams = 2,
	.stream_names = { "to_server", "from_server" },
	.bytes_min = 1,
	.bytes_max = 1u << 30,
	.bytes_default = 4u << 20,
	.inflight_default = 2,
	.needs = workload_needs_region,
	.start = start,
	.on_rma = rma_on_done,
};
