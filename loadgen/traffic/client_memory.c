/* SPDX-License-Identifier: BSD-2-Clause */
/* See client_memory.h. */
#include "loadgen/traffic/client_memory.h"

#include "common/rdma/arena.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/payload.h"

int memory_make(struct memory *m, const struct loadgen_config *c, uint32_t clients, struct ep *const *eps,
		uint32_t n_rails, char *err, size_t err_size)
{
	const struct workload_needs *needs = &m->needs;
	size_t landings = needs->landing_shared ? 1 : clients;
	int ret = 0;

	if (needs->region_bytes)
		ret = arena_new(eps[0], payload_bytes(c->message_bytes), false, &m->texts, err, err_size);
	if (!ret && needs->landing_bytes)
		ret = arena_new(eps[0], landings * needs->landing_bytes, needs->window, &m->landing, err, err_size);
	for (uint32_t i = 1; i < n_rails && !ret; i++) {
		ret = m->texts ? arena_share(m->texts, eps[i], err, err_size) : 0;
		if (!ret && m->landing)
			ret = arena_share(m->landing, eps[i], err, err_size);
	}
	if (ret)
		return ret;
	return payload_new(c->seed, c->message_bytes, m->texts ? arena_at(m->texts, 0) : NULL, &m->payload);
}

void memory_release(struct memory *m)
{
	arena_free(m->texts);
	arena_free(m->landing);
	payload_free(m->payload);
}

uint8_t *memory_landing(const struct memory *m, uint32_t client)
{
	if (!m->landing)
		return NULL;
	return arena_at(m->landing, m->needs.landing_shared ? 0 : client * m->needs.landing_bytes);
}
