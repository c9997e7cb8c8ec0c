/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection over a stream socket: the sibling of struct rc for clients that come over TCP or TLS.
 *
 * Embedded in the server's and the client's connection objects, which own the state machine; this is what both need of
 * sockets. Messages are in buffers of an endpoint without a device (struct ep_config), so whoever sends and receives them
 * handles buffers as over RDMA. What is sent while the endpoint is held goes out with one system call at the end of that.
 *
 * Nothing blocks and nothing is allocated. A peer that sends much is read from in portions, one for each turn of the loop.
 * What is kept for a peer that does not read is bounded by its credits, which the owner checks.
 *
 * Owning thread: the loop's, for every function here.
 */
#ifndef RAMPART_COMMON_SOCK_H
#define RAMPART_COMMON_SOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "common/rdma/ep.h"
#include "common/sock/tcp.h"
#include "common/sock/zerocopy.h"
#include "common/wire/fail.h"
#include "common/wire/record.h"

struct sock;
struct tls;

/* What the owner of connections is told. After each call the connection may be closed. */
struct sock_user {
	/* A record has come: r->bytes in the endpoint's buffer `buf`, which is the owner's until ep_buf_put or a send. */
	void (*on_record)(struct sock *s, uint32_t buf, const struct record *r);
	/* The peer wants to leave: this end is to close. */
	void (*on_bye)(struct sock *s);
	/* The connection is of no more use, and is to be closed:
	 * FAIL_CLOSED	the peer closed it, or its process ended
	 * FAIL_TIMEOUT	its host does not answer
	 * FAIL_PROTOCOL, PROTO_BAD_FRAME	it sent a record that is not allowed
	 * FAIL_ERRNO	ENOBUFS: no buffer is free; else of the system call that failed
	 * FAIL_TLS	as tls_failure */
	void (*on_end)(struct sock *s, enum fail_kind kind, int code);
};

/* What the connections of one thread share. */
struct sock_ctx;
struct sock_config {
	struct tcp_options tcp;
	uint32_t pinned_max;	/* with zerocopy: buffers of a connection that may wait for the kernel, beside those that are sent */
};
/* `ep` has no device; it, and `cfg`, outlive the context. 0 or -ENOMEM. */
int sock_ctx_new(const struct sock_config *cfg, struct ev_loop *loop, struct ep *ep, const struct sock_user *user,
		 struct sock_ctx **out) __attribute__((warn_unused_result));
void sock_ctx_free(struct sock_ctx *ctx);	/* NULL-safe */

/* Read by its owner; written here only. */
struct sock {
	struct sock_ctx *ctx;
	int fd;				/* -1: it is closed */
	struct tls *tls;		/* owns the descriptor; NULL: plain TCP */
	ev_io io;
	ev_timer again;			/* more may be there to read, whatever the socket says */
	struct ep_deferred deferred;	/* sends what waits */
	bool blocked;			/* the socket takes no more now */
	bool reads_when_writable;	/* TLS has to write before it can read */

	uint32_t first, last;		/* buffers of records that wait to be sent */
	uint32_t waiting_n;
	uint32_t sent;			/* bytes of the first one that are sent, header included */
	struct zerocopy zerocopy;

	uint64_t look;			/* sock_look */
	uint8_t header[RECORD_HEADER_BYTES];
	uint32_t header_n;		/* bytes of it that have come */
	struct record record;		/* of the header, once it is complete */
	uint32_t buf, got;		/* its buffer, or EP_NO_BUF; bytes that have come */
};

/* Sets everything to "closed". */
void sock_init(struct sock *s, struct sock_ctx *ctx);
/* Takes the connected non-blocking socket. A peer whose host does not answer for three times `probe_ns` ends it; 0: never. */
void sock_open_plain(struct sock *s, int fd, uint64_t probe_ns);
/* The same for a TLS connection after its handshake; records may already have come. */
void sock_open_tls(struct sock *s, struct tls *tls, uint64_t probe_ns);
bool sock_is_open(const struct sock *s);
/* Frees what waits, and closes. May be called twice, and from all callbacks. */
void sock_close(struct sock *s);

/* Sends a record with the first r->bytes of `buf`, which becomes the socket's. A failure is told by on_end, perhaps from within. */
void sock_send(struct sock *s, uint32_t buf, const struct record *r);
/* The same of `bytes` of `buf`, with `behind_bytes` at `behind` after them, which stay as they are until the socket is closed. */
void sock_send_two(struct sock *s, uint32_t buf, uint32_t bytes, const void *behind, uint32_t behind_bytes);
/* What the socket has (tcp_read), and whether the kernel encrypts what TLS sends. System calls. */
bool sock_read_options(const struct sock *s, struct tcp_values *out, bool *ktls) __attribute__((warn_unused_result));
/* Asks the peer to close, behind all that waits. False: no buffer is free. */
bool sock_say_bye(struct sock *s) __attribute__((warn_unused_result));

/* Number of the read that brought the record being handled: all that it brought was there before any of it was answered. */
static inline uint64_t sock_look(const struct sock *s)
{
	return s->look;
}

#endif
