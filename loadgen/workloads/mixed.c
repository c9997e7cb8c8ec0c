/* SPDX-License-Identifier: BSD-2-Clause */
/* `mixed`: WRITEs, READs and atomics on the client's region in a ratio (--mix). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/one_sided/rma.h"
#include "loadgen/workloads/workloads.h"

enum { WRITES, READS, ATOMICS };

/* Multiples of the golden ratio (modulo 1) are evenly spread, so any number of operations has about this ratio. */
static unsigned kind_of(const struct loadgen_config *c, uint64_t number)
{
	const struct mix *m = &c->mix;
	uint64_t at = number * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	at = at * (m->writes + m->reads + m->atomics) >> 32;
	if (at < m->writes)
		return WRITES;
	return at < m->writes + m->reads ? READS : ATOMICS;
}

static enum ibv_wr_opcode request_of(const struct loadgen_config *c, uint64_t number)
{
	static const enum ibv_wr_opcode requests[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						       IBV_WR_ATOMIC_FETCH_AND_ADD };

	return requests[kind_of(c, number)];
}

static int prepare(struct loadgen_config *c, char *err, size_t err_size)
{
	unsigned writes, reads, atomics;
	int end = 0;

	if (strspn(c->mix_text, "0123456789:") != strlen(c->mix_text) ||
	    sscanf(c->mix_text, "%4u:%4u:%4u%n", &writes, &reads, &atomics, &end) != 3 || c->mix_text[end] ||
	    writes + reads + atomics == 0) {
		snprintf(err, err_size,
			 "--mix: '%s' is not allowed; allowed: three whole numbers up to 9999, not all 0, "
			 "such as 2:1:0", c->mix_text);
		return -EINVAL;
	}
	c->mix = (struct mix){ writes, reads, atomics };
	return 0;
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	rma_needs(c, out);
	out->landing_shared &= c->mix.atomics == 0;
}

const struct workload workload_mixed = {
	.streams = 1,
	.bytes_min = 8,
	.bytes_max = 1u << 30,
	.bytes_default = 64,
	.inflight_default = 8,
	.options = { "mix" },
	.prepare = prepare,
	.needs = needs,
	.kind_names = { [WRITES] = "write", [READS] = "read", [ATOMICS] = "atomic" },
	.kind_of = kind_of,
	.kind_bytes = { [ATOMICS] = RMA_ATOMIC_BYTES },
	.rma_of = request_of,
	.start = rma_start,
	.on_rma = rma_on_done,
};
