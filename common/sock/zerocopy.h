/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that the kernel sends without a copy (MSG_ZEROCOPY; Documentation/networking/msg_zerocopy.rst in Linux): a
 * buffer is free once the socket's error queue has reported its calls as done. Part of sock.h; for sock.c only.
 */
#ifndef RAMPART_COMMON_ZEROCOPY_H
#define RAMPART_COMMON_ZEROCOPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/rdma/ep.h"

/* Maximum number of calls under way: the bits of `done`. */
#define ZEROCOPY_CALLS_MAX 64u

/* All zero: nothing is under way. The list has `n` buffers and no terminator. Calls of a socket count from 0. */
struct zerocopy {
	bool on;			/* SO_ZEROCOPY is set */
	bool used;			/* part of the current message was sent with MSG_ZEROCOPY */
	uint32_t first, last, n;	/* buffers whose message is sent, but that the kernel may still use */
	uint32_t base, next;		/* oldest call under way; number of the next call */
	uint64_t done;			/* a bit for each finished call from `base` on: calls may finish in any order */
};

static inline bool zerocopy_has_room(const struct zerocopy *z)
{
	return z->next - z->base < ZEROCOPY_CALLS_MAX;
}

/* True if calls are not reported as done yet. Read the error queue then: its contents wake the loop until read. */
static inline bool zerocopy_is_under_way(const struct zerocopy *z)
{
	return z->next != z->base;
}

/* Like send(2), but without a copy if the kernel has room for the notification. */
ssize_t zerocopy_send(struct zerocopy *z, int fd, const void *data, size_t n);
/* Call when the message in `buf` is sent. True: keeps `buf` until the kernel is done. False: the caller keeps it. */
bool zerocopy_keep(struct zerocopy *z, struct ep *ep, uint32_t buf) __attribute__((warn_unused_result));
/* Frees the buffers that the kernel has reported as done. */
void zerocopy_reap(struct zerocopy *z, int fd, struct ep *ep);
/* Frees all buffers, because the connection ends. */
void zerocopy_drop(struct zerocopy *z, struct ep *ep);

#endif
