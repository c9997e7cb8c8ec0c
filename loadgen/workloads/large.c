/* `large`: one-way transfers of large buffers in chunks (--chunk), by RDMA WRITE, SEND or READ (--operation), striped
 * over the rails.
 *
 * A transfer ends when the data is there, not when it is posted: behind the last WRITE on a connection goes a one-way
 * message whose credit the server returns when it handled it, and a connection's requests are carried out in order; the
 * last SEND asks for its credit itself; a READ is complete when its completion comes.
 */
#include <sys/param.h>

#include "common/wire/frame.h"
#include "loadgen/config/config.h"
#include "loadgen/traffic/lanes.h"
#include "loadgen/workloads/workload.h"

#define BYTES_MIN (64u << 10)
#define BYTES_MAX (UINT64_C(2) << 30)
/* Chunks of a connection under way, of all its transfers. */
#define CHUNKS_MAX 32
#define SENDS_MAX 16

/* With --verify, what was written is read back. */
static void plan(const struct loadgen_config *c, unsigned stream, struct lane_plan *out)
{
	(void)stream;
	if (c->operation == OPERATION_SEND)
		*out = (struct lane_plan){ 1, { LANE_SEND }, false };
	else if (c->verify)
		*out = (struct lane_plan){ 2, { LANE_WRITE, LANE_READ }, false };
	else if (c->operation == OPERATION_WRITE)
		*out = (struct lane_plan){ 1, { LANE_WRITE }, true };
	else
		*out = (struct lane_plan){ 1, { LANE_READ }, false };
}

static void needs(const struct loadgen_config *c, struct workload_needs *out)
{
	out->credits = (uint32_t)c->inflight;
	out->message_bytes = FRAME_MESSAGE_BYTES_MIN;
	if (c->operation == OPERATION_SEND) {
		out->message_bytes = (uint32_t)c->chunk_bytes;
		out->credits = SENDS_MAX;
		return;
	}
	lanes_needs(c, out);
	/* Those for which there is no room share their places. */
	out->region_bytes = MIN(out->region_bytes, FRAME_REGION_BYTES_MAX);
	out->rma_depth = CHUNKS_MAX;
	if (c->operation == OPERATION_WRITE && !c->verify)
		out->landing_bytes = 0;
}

static const char *objection(const struct loadgen_config *c)
{
	if (c->operation == OPERATION_SEND && c->chunk_bytes > FRAME_MESSAGE_BYTES_MAX)
		return "--chunk: with --operation send, at most 1M is allowed";
	if (c->verify && c->operation != OPERATION_SEND && c->inflight > 1)
		return "--verify: with --workload large one transfer at a time is written and read back; give --inflight 1";
	return NULL;
}

const struct workload workload_large = {
	.help = "one-way transfers of large buffers (--operation, --chunk)",
	.streams = 1,
	.chunks = true,
	.bytes_min = BYTES_MIN,
	.bytes_max = BYTES_MAX,
	.bytes_default = 1u << 20,
	.inflight_default = 4,
	.needs = needs,
	.objection = objection,
	.plan = plan,
	.start = lanes_start,
	.on_credit = lanes_on_credit,
	.on_rma = lanes_on_rma,
};
