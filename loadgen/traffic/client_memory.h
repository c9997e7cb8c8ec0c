/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory used by a workload's operations: the payload's text, and the clients' landing memory, into which READs and the
 * server's WRITEs go. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_CLIENT_MEMORY_H
#define RAMPART_LOADGEN_CLIENT_MEMORY_H

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

/* Allocates the memory described by `m->needs` for `clients` clients, and registers it with each of the `n_rails`
 * endpoints. 0, or -errno with a line in `err`; call memory_release in either case. */
int memory_make(struct memory *m, const struct loadgen_config *c, uint32_t clients, struct ep *const *eps,
		uint32_t n_rails, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Call before the endpoints are freed. */
void memory_release(struct memory *m);

/* A client's part of the landing memory; NULL: there is none. */
uint8_t *memory_landing(const struct memory *m, uint32_t client);

#endif
