/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection, as seen by code that sends and receives messages: over verbs (rc.h) or over a socket
 * (sock.h), chosen once, when the connection is granted. Connecting and closing differ, and are left to the owner.
 *
 * Owning thread: the loop's.
 */
#ifndef RAMPART_COMMON_LINK_H
#define RAMPART_COMMON_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rdma/rc.h"
#include "common/sock/sock.h"
#include "common/wire/transport.h"

/* Embedded in the connection objects. */
struct link {
	enum transport transport;
	struct ep *ep;		/* endpoint whose buffers are sent and received */
	struct rc rc;		/* TRANSPORT_RDMA */
	struct sock sock;	/* the others */
};

/* A SEND or a record that has arrived. Small enough to be passed in registers. */
struct link_arrival {
	uint32_t bytes;
	uint32_t imm;		/* as it is in memory */
	bool has_imm;
};

static inline bool link_is_rdma(const struct link *l)
{
	return l->transport == TRANSPORT_RDMA;
}

/* Sends the first `bytes` of `buf` and takes ownership of `buf`. Returns 0, or an error of rc_send; over a socket,
 * on_end reports a failure instead. */
__attribute__((warn_unused_result))
static inline int link_send(struct link *l, uint32_t buf, uint32_t bytes)
{
	if (link_is_rdma(l))
		return rc_send(&l->rc, buf, bytes);
	sock_send(&l->sock, buf, &(struct record){ .kind = RECORD_MESSAGES, .bytes = bytes });
	return 0;
}

/* The same for a message that needs no answer. */
__attribute__((warn_unused_result))
static inline int link_send_unsolicited(struct link *l, uint32_t buf, uint32_t bytes)
{
	if (link_is_rdma(l))
		return rc_send_unsolicited(&l->rc, buf, bytes);
	sock_send(&l->sock, buf, &(struct record){ .kind = RECORD_MESSAGES, .bytes = bytes });
	return 0;
}

/* The same with immediate data, sent as they are in memory. */
__attribute__((warn_unused_result))
static inline int link_send_imm(struct link *l, uint32_t buf, uint32_t bytes, uint32_t imm)
{
	if (link_is_rdma(l))
		return rc_send_imm(&l->rc, buf, bytes, imm);
	sock_send(&l->sock, buf, &(struct record){ .kind = RECORD_PING, .bytes = bytes, .imm = imm });
	return 0;
}

/* Number of messages that wait to be posted, or to be accepted by the socket. */
static inline uint32_t link_waiting(const struct link *l)
{
	return link_is_rdma(l) ? l->rc.waiting_n : l->sock.waiting_n;
}

/* Number of the look that found the message being handled: all its messages had arrived before any was answered. */
static inline uint64_t link_look(const struct link *l)
{
	return link_is_rdma(l) ? ep_look(l->ep) : sock_look(&l->sock);
}

#endif
