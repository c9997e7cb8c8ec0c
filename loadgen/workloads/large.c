/* SPDX-License-Identifier: BSD-2-Clause */
/* `large`: one-way transfers of large buffers in chunks (--chunk), striped over the rails, by RDMA WRITE with or
 * without immediate data, SEND, or READ (--operation).
 *
 * A transfer ends when the data has arrived, not when it is posted. A one-way message follows the last WRITE on a
 * connection; requests of a connection are carried out in order, so its credit comes back after the data has arrived.
 * The last SEND asks for its credit itself, and so does the last WRITE if it has immediate data. A READ is complete
 * when its completion arrives.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/param.h>

#include "common/wire/frame.h"
#include "loadgen/striping/lanes.h"
#include "loadgen/workloads/workloads.h"

#define BYTES_MIN (64u << 10)
#define BYTES_MAX (UINT64_C(2) << 30)
/* Maximum numbers of chunks and of SENDs in flight on a connection, over all its transfers. */
#define CHUNKS_MAX 32
#define SENDS_MAX 16
#define SEND_CHUNK (64u << 10)	/* default of --chunk for SENDs */

/* With --verify, each transfer is read back. */
static void plan(const struct loadgen_config *c, unsigned stream, struct lane_plan *out)
{
	(void)stream;
	if (c->operation == OPERATION_SEND)
		*out = (struct lane_plan){ .n = 1, .moves = { LANE_SEND } };
	else if (c->verify)
		*out = (struct lane_plan){ .n = 2, .moves = { LANE_WRITE, LANE_READ } };
	else if (c->operation == OPERATION_READ)
		*out = (struct lane_plan){ .n = 1, .moves = { LANE_READ } };
	else
		*out = (struct lane_plan){ .n = 1, .moves = { LANE_WRITE }, .tell = c->operation == OPERATION_WRITE };
	out->imm = c->operation == OPERATION_WRITE_IMM;
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
	/* If the region is too small for all operations in flight, some of them use the same part of it. */
	out->region_bytes = MIN(out->region_bytes, FRAME_REGION_BYTES_MAX);
	out->rma_depth = CHUNKS_MAX;
	out->write_imm = c->operation == OPERATION_WRITE_IMM;
	if (c->operation != OPERATION_READ && !c->verify)
		out->landing_bytes = 0;
}

static int prepare(struct loadgen_config *c, char *err, size_t err_size)
{
	bool sends = c->operation == OPERATION_SEND, reads_back = c->verify && !sends;
	const char *text = NULL;

	if (c->chunk_bytes == 0 && sends)
		c->chunk_bytes = SEND_CHUNK;
	if (c->inflight == 0 && reads_back)
		c->inflight = 1;
	if (sends && c->chunk_bytes > FRAME_MESSAGE_BYTES_MAX)
		text = "--chunk: with --operation send, at most 1M is allowed";
	else if (reads_back && c->inflight > 1)
		text = "--verify: with --workload large one transfer at a time is written and read back; give "
		       "--inflight 1";
	if (!text)
		return 0;
	snprintf(err, err_size, "%s", text);
	return -EINVAL;
}

const struct workload workload_large = {
	.streams = 1,
	.chunks = true,
	.options = { "chunk", "operation" },
	.bytes_min = BYTES_MIN,
	.bytes_max = BYTES_MAX,
	.bytes_default = 1u << 20,
	.inflight_default = 4,
	.needs = needs,
	.prepare = prepare,
	.plan = plan,
	.start = lanes_start,
	.on_credit = lanes_on_credit,
	.on_rma = lanes_on_rma,
};
