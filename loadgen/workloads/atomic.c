/* SPDX-License-Identifier: BSD-2-Clause */
/* `atomic`: atomic additions to a counter in the client's region; the old values returned are always checked. */
#include "loadgen/one_sided/rma.h"
#include "loadgen/workloads/workloads.h"

/* Clients do not share landing memory, because the returned values are checked. */
static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	rma_needs(c, out);
	out->landing_shared = false;
}

const struct workload workload_atomic = {
	.streams = 1,
	.bytes_min = 8,
	.bytes_max = 8,
	.bytes_default = 8,
	.inflight_default = 1,
	.needs = needs,
	.rma = IBV_WR_ATOMIC_FETCH_AND_ADD,
	.start = rma_start,
	.on_rma = rma_on_done,
};
