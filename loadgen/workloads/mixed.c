/* `mixed`: WRITEs, READs and atomics on the client's region in a ratio (--mix). */
#include "loadgen/config/config.h"
#include "loadgen/traffic/rma.h"
#include "loadgen/workloads/workload.h"

/* The golden ratio's multiples spread the kinds evenly, however few operations are looked at. */
static enum ibv_wr_opcode kind_of(const struct loadgen_config *c, uint64_t number)
{
	const struct mix *m = &c->mix;
	uint64_t at = number * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	at = at * (m->writes + m->reads + m->atomics) >> 32;
	if (at < m->writes)
		return IBV_WR_RDMA_WRITE;
	return at < m->writes + m->reads ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	workload_needs_region(c, out);
	out->landing_shared &= c->mix.atomics == 0;
}

const struct workload workload_mixed = {
	.help = "RDMA WRITEs, READs and atomics in the ratio of --mix",
	.streams = 1,
	.bytes_min = 8,
	.bytes_max = 1u << 30,
	.bytes_default = 64,
	.inflight_default = 8,
	.needs = needs,
	.rma_of = kind_of,
	.start = rma_start,
	.on_rma = rma_on_done,
};
