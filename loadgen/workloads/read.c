/* SPDX-License-Identifier: BSD-2-Clause */
/* `read`: RDMA READs of the client's region. An operation ends when its completion arrives. */
#include "loadgen/one_sided/rma.h"
#include "loadgen/workloads/workloads.h"

const struct workload workload_read = {
	.streams = 1,
	.bytes_min = 1,
	.bytes_max = 1u << 30,
	.bytes_default = 64,
	.inflight_default = 1,
	.needs = rma_needs,
	.rma = IBV_WR_RDMA_READ,
	.start = rma_start,
	.on_rma = rma_on_done,
};
