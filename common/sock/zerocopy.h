/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that the kernel sends from where they are (MSG_ZEROCOPY; Documentation/networking/msg_zerocopy.rst in Linux): their
 * buffers are free when its error queue has said so. Part of sock.h; for sock.c only.
 */
#ifndef RAMPART_COMMON_ZEROCOPY_H
#define RAMPART_COMMON_ZEROCOPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/rdma/ep.h"

/* Calls under way at once: the bits of `done`. */
#define ZEROCOPY_CALLS_MAX 64u

/* All 0 is none; the lists are ended by `n`. The kernel numbers a socket's calls from 0 on. */
struct zerocopy {
	bool on;			/* SO_ZEROCOPY is set */
	bool used;			/* such calls have sent some of the message that is being sent */
	uint32_t first, last, n;	/* buffers that are sent, and not free yet */
	uint32_t base, next;		/* oldest call that is under way; number of the next one */
	uint64_t done;			/* a bit for each call from `base` on that is done: they may end in any order */
};

static inline bool zerocopy_has_room(const struct zerocopy *z)
{
	return z->next - z->base < ZEROCOPY_CALLS_MAX;
}

/* The kernel has not said yet that it is done with all calls, so its error queue is to be read: what is in there wakes the
 * loop until then. */
static inline bool zerocopy_is_under_way(const struct zerocopy *z)
{
	return z->next != z->base;
}

/* As send(2), with no copy if the kernel has room for the notification. */
ssize_t zerocopy_send(struct zerocopy *z, int fd, const void *data, size_t n);
/* The message in `buf` is sent: false, it is the caller's again. */
bool zerocopy_keep(struct zerocopy *z, struct ep *ep, uint32_t buf) __attribute__((warn_unused_result));
/* Frees what the kernel is done with, as far as it has said so. */
void zerocopy_reap(struct zerocopy *z, int fd, struct ep *ep);
/* Frees all: the connection ends. */
void zerocopy_drop(struct zerocopy *z, struct ep *ep);

#endif
