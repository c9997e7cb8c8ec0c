/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection over a stream socket: the sibling of struct rc for clients that come over TCP or TLS.
 *
 * Embedded in the server's and the client's connection objects, which own the state machine; this is the use of sockets
 * that both share. Messages are in buffers of an endpoint without a device (struct ep_config), so that buffers are
 * handled as over RDMA. Messages sent while the endpoint is held go out with one system call at the end of the hold.
 *
 * Nothing blocks and nothing is allocated. A peer that sends much is read in portions, one per turn of the loop. Memory
 * kept for a peer that does not read is bounded by its credits, which the owner checks.
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

/* Callbacks of the connections' owner. Each of them may close the connection. */
struct sock_user {
	/* A record has arrived: r->bytes in the endpoint's buffer `buf`, which the owner must free (ep_buf_put) or
	 * send. */
	void (*on_record)(struct sock *s, uint32_t buf, const struct record *r);
	/* The peer wants to leave: this end must close. */
	void (*on_bye)(struct sock *s);
	/* The connection has failed, and must be closed:
	 * FAIL_CLOSED	the peer closed it, or its process ended
	 * FAIL_TIMEOUT	the peer's host does not answer
	 * FAIL_PROTOCOL, PROTO_BAD_FRAME	the peer sent a record that is not allowed
	 * FAIL_ERRNO	ENOBUFS: no buffer is free; otherwise the errno of the system call that failed
	 * FAIL_TLS	as tls_failure */
	void (*on_end)(struct sock *s, enum fail_kind kind, int code);
};

/* State that the connections of one thread share. */
struct sock_ctx;
struct sock_config {
	struct tcp_options tcp;
	uint32_t pinned_max;	/* zerocopy: limit per connection of sent buffers that wait for the kernel */
};
/* `ep` must have no device; `ep` and `cfg` must outlive the context. Returns 0 or -ENOMEM. */
int sock_ctx_new(const struct sock_config *cfg, struct ev_loop *loop, struct ep *ep, const struct sock_user *user,
		 struct sock_ctx **out) __attribute__((warn_unused_result));
void sock_ctx_free(struct sock_ctx *ctx);	/* NULL-safe */

/* The owner may read it; only sock.c writes it. */
struct sock {
	struct sock_ctx *ctx;
	int fd;				/* -1: closed */
	struct tls *tls;		/* owns the descriptor; NULL: plain TCP */
	ev_io io;
	ev_timer again;			/* reads again in the next turn, without waiting for the socket */
	struct ep_deferred deferred;	/* sends the waiting records */
	bool blocked;			/* the socket takes no more now */
	bool reads_when_writable;	/* TLS must write before it can read */

	uint32_t first, last;		/* buffers of waiting records */
	uint32_t waiting_n;
	uint32_t sent;			/* bytes of the first waiting record that are sent, header included */
	struct zerocopy zerocopy;

	uint64_t look;			/* sock_look */
	uint8_t header[RECORD_HEADER_BYTES];
	uint32_t header_n;		/* bytes of the header that have arrived */
	struct record record;		/* the decoded header, once it is complete */
	uint32_t buf, got;		/* the record's buffer, or EP_NO_BUF; bytes of the record that have arrived */
};

/* Sets everything to "closed". */
void sock_init(struct sock *s, struct sock_ctx *ctx);
/* Takes over the connected non-blocking socket; ends it if the peer's host is silent for 3 * `probe_ns` (0: never). */
void sock_open_plain(struct sock *s, int fd, uint64_t probe_ns);
/* The same for a TLS connection after its handshake; records may already have arrived. */
void sock_open_tls(struct sock *s, struct tls *tls, uint64_t probe_ns);
bool sock_is_open(const struct sock *s);
/* Frees all buffers, and closes. May be called twice, and from all callbacks. */
void sock_close(struct sock *s);

/* Sends a record with the first r->bytes of `buf`, and takes `buf` over. on_end reports a failure, perhaps at once. */
void sock_send(struct sock *s, uint32_t buf, const struct record *r);
/* The same for a record of `bytes` of `buf` followed by `behind_bytes` at `behind`, which must not change until the
 * socket is closed. */
void sock_send_two(struct sock *s, uint32_t buf, uint32_t bytes, const void *behind, uint32_t behind_bytes);
/* Reads the socket's options (tcp_read), and whether the kernel encrypts what TLS sends. Makes system calls. */
bool sock_read_options(const struct sock *s, struct tcp_values *out, bool *ktls) __attribute__((warn_unused_result));
/* Asks the peer to close, behind all waiting records. False: no buffer is free. */
bool sock_say_bye(struct sock *s) __attribute__((warn_unused_result));

/* Number of the read that brought the record being handled: all its records had arrived before any was answered. */
static inline uint64_t sock_look(const struct sock *s)
{
	return s->look;
}

#endif
