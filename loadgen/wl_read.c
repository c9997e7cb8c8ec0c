/* `read`: RDMA READs of the client's region. An operation ends when its completion comes. */
#include "loadgen/rma.h"
#include "loadgen/worker_internal.h"

static enum ibv_wr_opcode kind_of(const struct worker *w, unsigned stream, uint64_t number)
{
	(void)w;
	(void)stream;
	(void)number;
	return IBV_WR_RDMA_READ;
}

static void start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	rma_start(w, wc, stream, n, kind_of);
}

const struct workload workload_read = {
	.help = "RDMA READs of the client's region",
	.streams = 1,
	.bytes_min = 1,
	.bytes_max = 1u << 30,
	.bytes_default = 64,
	.inflight_default = 1,
	.needs = workload_needs_region,
	.start = start,
	.on_rma = rma_on_done,
};
