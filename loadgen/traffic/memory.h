/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that operations of a workload are made from: the payload's text, and the landing memory of the clients, which
 * READs and WRITEs of the server go to. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_MEMORY_H
#define RAMPART_LOADGEN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/traffic/workload.h"

struct arena;
struct ep;
struct loadgen_config;
struct payload;

struct memory {
	struct workload_needs needs;
	struct payload *payload;
	struct arena *texts, *landing;	/* registered on every rail; NULL: the workload has no region */
};

/* Makes what `m->needs` says for `clients`, registered with each of the `n_rails` endpoints. 0, or -errno with a line in
 * `err`; memory_release in either case. */
int memory_make(struct memory *m, const struct loadgen_config *c, uint32_t clients, struct ep *const *eps,
		uint32_t n_rails, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Before the endpoints are freed. */
void memory_release(struct memory *m);

/* A client's part of the landing memory; NULL: there is none. */
uint8_t *memory_landing(const struct memory *m, uint32_t client);

#endif
