/* SPDX-License-Identifier: BSD-2-Clause */
/* `connect`: clients connect and send nothing, not even a first message. Shows the cost of a connection. */
#include "common/wire/frame.h"
#include "loadgen/traffic/message.h"
#include "loadgen/workloads/workloads.h"

const struct workload workload_connect = {
	.silent = true,
	.idle = true,
	.bytes_min = FRAME_MESSAGE_BYTES_MIN,
	.bytes_max = FRAME_MESSAGE_BYTES_MAX,
	.bytes_default = 64,
	.inflight_default = 1,
	.needs = message_needs,
};
