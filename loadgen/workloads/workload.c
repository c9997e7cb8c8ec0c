/* The table of workloads, and what is common to several. See workload.h. */
#include "loadgen/workloads/workload.h"

#include <sys/param.h>

#include "common/wire/msg.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/rma.h"

/* For first messages and the small ones of workloads on the region. */
#define SMALL_MESSAGE_BYTES 64
#define SMALL_CREDITS 2

#define X(name) &workload_##name,
const struct workload *const workloads[] = { WORKLOADS(X) NULL };
#undef X
#define X(name) #name,
const char *const workload_names[] = { WORKLOADS(X) NULL };
#undef X

void workload_needs_messages(const struct loadgen_config *c, struct workload_needs *out)
{
	/* A first message has nothing but header and tag. */
	out->message_bytes = (uint32_t)MAX(c->message_bytes, MSG_HEADER_BYTES + MSG_TAG_BYTES);
	out->credits = (uint32_t)c->inflight;
}

void workload_needs_region(const struct loadgen_config *c, struct workload_needs *out)
{
	uint64_t bytes = MAX(c->message_bytes, RMA_ATOMIC_BYTES);

	out->message_bytes = SMALL_MESSAGE_BYTES;
	out->credits = SMALL_CREDITS;
	/* The counter of atomics stands behind the slots, aligned. */
	out->region_bytes = (c->inflight * c->message_bytes + 7) / 8 * 8 + RMA_ATOMIC_BYTES;
	out->rma_depth = (uint32_t)(c->verify ? 2 * c->inflight : c->inflight);	/* writes are read back */
	out->landing_shared = !c->verify;
	out->landing_bytes = c->inflight * bytes;
}
