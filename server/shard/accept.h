/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA connections of a shard: verifies that a request belongs to a session, then takes a queue pair and accepts.
 * Owning thread: the shard's. docs/protocol.md, "RDMA connection".
 */
#ifndef RAMPART_SERVER_ACCEPT_H
#define RAMPART_SERVER_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/frame.h"

struct async_event;
struct cm_event;
struct cm_path;
struct conn;
struct rdma_cm_id;
struct shard;

/* Handles an event of the connection manager, for the pump of `shard` (struct shard). */
void accept_on_cm_event(void *shard, const struct cm_event *e);
/* Handles an asynchronous event of a queue pair of `shard` (struct shard): an error, which ends its connection, or
 * "last WQE reached", after which the queue pair takes nothing more from the SRQ. */
void accept_on_qp_event(void *shard, const struct async_event *e);

/* Also for connections without rdmacm (oob.c): */

/* READs and atomics that a client may have outstanding: what it asks for, up to the device's limit and ours; 0 without
 * a region. */
uint8_t accept_reads(const struct shard *s, bool has_region, uint8_t asked);
/* Takes a queue pair from the pool and programs it to RTS along `path`, with the PSNs, reads and window of `c`. `id`:
 * NULL without rdmacm. 0, or -errno (rc_take_qp, cm_program_qp), logged except -EAGAIN. */
int accept_program_qp(struct conn *c, struct rdma_cm_id *id, const struct cm_path *path, bool has_region)
	__attribute__((warn_unused_result));
/* The code that refuses a client after such an error: `busy` after -EAGAIN, because a queue pair may soon be free. */
enum refuse_code accept_refusal(int ret);

#endif
