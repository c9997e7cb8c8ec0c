/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that the kernel sends without a copy. See zerocopy.h. */
#include "common/sock/zerocopy.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>

ssize_t zerocopy_send(struct zerocopy *z, int fd, const void *data, size_t n)
{
	ssize_t sent = send(fd, data, n, MSG_ZEROCOPY | MSG_NOSIGNAL | MSG_DONTWAIT);

	/* Too many notifications are pending (net.core.optmem_max): send a copy. */
	if (sent < 0 && errno == ENOBUFS)
		return send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent >= 0) {
		z->next++;
		z->used = true;
	}
	return sent;
}

bool zerocopy_keep(struct zerocopy *z, struct ep *ep, uint32_t buf)
{
	if (!z->used)
		return false;
	z->used = false;
	ep_buf_link(ep, buf)->call = z->next - 1;
	if (z->n++)
		ep_buf_link(ep, z->last)->next = buf;
	else
		z->first = buf;
	z->last = buf;
	return true;
}

static void free_first(struct zerocopy *z, struct ep *ep)
{
	uint32_t buf = z->first;

	z->first = ep_buf_link(ep, buf)->next;
	z->n--;
	ep_buf_put(ep, buf);
}

/* Marks calls `from` to `to` as done. Ignores numbers that do not belong to a call under way. */
static void note(struct zerocopy *z, uint32_t from, uint32_t to)
{
	uint32_t under_way = z->next - z->base;

	for (uint32_t call = from; call - z->base < under_way && call - from <= to - from; call++)
		z->done |= UINT64_C(1) << (call - z->base);
	for (; z->done & 1; z->done >>= 1)
		z->base++;
}

/* False: no notification is left. */
static bool take_notification(struct zerocopy *z, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[256];
	} control;
	struct msghdr m = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct sock_extended_err e;

	if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_len < CMSG_LEN(sizeof(e)))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		if (e.ee_origin == SO_EE_ORIGIN_ZEROCOPY && e.ee_errno == 0)
			note(z, e.ee_info, e.ee_data);
	}
	return true;
}

void zerocopy_reap(struct zerocopy *z, int fd, struct ep *ep)
{
	for (uint32_t i = 0; i < ZEROCOPY_CALLS_MAX && zerocopy_is_under_way(z) && take_notification(z, fd); i++)
		;
	/* Signed difference, because call numbers wrap around. */
	while (z->n && (int32_t)(ep_buf_link(ep, z->first)->call - z->base) < 0)
		free_first(z, ep);
}

void zerocopy_drop(struct zerocopy *z, struct ep *ep)
{
	while (z->n)
		free_first(z, ep);
	z->base = z->next;
	z->done = 0;
	z->used = false;
}
