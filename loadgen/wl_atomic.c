/* `atomic`: atomic additions to a counter in the client's region; the values it had are always checked. */
#include "loadgen/config.h"
#include "loadgen/rma.h"
#include "loadgen/worker_internal.h"

static enum ibv_wr_opcode kind_of(const struct worker *w, unsigned stream, uint64_t number)
{
	(void)w;
	(void)stream;
	(void)number;
	return IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void start(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	rma_start(w, wc, stream, n, kind_of);
}

/* Somebody looks at what comes back. */
static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	workload_needs_region(c, out);
	out->landing_shared = false;
}

const struct workload workload_atomic = {
	.help = "atomic fetch-and-adds of 8 bytes in the client's region",
	.streams = 1,
	.bytes_min = 8,
	.bytes_max = 8,
	.bytes_default = 8,
	.inflight_default = 1,
	.needs = needs,
	.start = start,
	.on_rma = rma_on_done,
};
