/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of a rampart server: connections, and the context that those of one thread share.
 *
 * The load generator holds thousands of connections in each worker thread, rdma_client one. Nothing here blocks; the
 * user is told by the callbacks of struct client_ops.
 *
 * Owning thread: the one that runs the context's loop makes all calls, and gets all callbacks.
 *
 * Functions do not return what befell a connection: a failure ends it, and on_closed says what it was. That is called
 * when the teardown is complete, at the end of a turn of the loop, never from within one of these functions. All
 * functions that take a connection may be called from all callbacks.
 */
#ifndef RAMPART_CLIENT_CLIENT_H
#define RAMPART_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "common/base/addr.h"
#include "common/rdma/cm.h"
#include "common/rdma/dev.h"
#include "common/rdma/rc.h"
#include "common/sock/sock.h"
#include "common/wire/fail.h"
#include "common/wire/frame.h"
#include "common/wire/transport.h"

struct client_conn;
struct client_ctx;
struct effective;
struct ep;
struct msg_header;
struct msg_push;
struct pump;
struct tls_session;

struct client_config {
	struct addr server;		/* of the TLS bootstrap */
	enum transport transport;	/* of messages; but for RDMA no device is opened, and there are no regions */
	const char *verify_name;	/* name or IP address the server's certificate must have */
	const char *ca_file, *cert_file, *key_file, *crl_file;	/* all but the first may be NULL */
	const char *device;		/* NULL: whichever reaches the server */
	uint32_t message_bytes;		/* largest message to send, or messages with one client_post */
	uint32_t buffer_bytes;		/* size of a buffer: at least message_bytes; more for large one-sided requests */
	uint32_t depth;			/* SENDs in flight on a connection */
	uint32_t rma_depth;		/* requests on the region in flight beside them */
	uint8_t reads;			/* how many of those may be READs and atomics, if device and server allow so many */
	uint32_t inline_bytes;		/* largest message or write copied into the send queue; 0: none */
	uint32_t post_list;		/* as in struct ep_config */
	uint32_t signal_every;
	uint32_t cq_depth;
	uint32_t srq_depth;		/* messages in flight of all connections, at most; 0: what is needed */
	enum ibv_mtu path_mtu;		/* at most; 0: the path's */
	struct cm_retry retry;
	struct cm_fabric fabric;
	struct sock_config sock;	/* of connections over sockets */
	bool all_credits;		/* `depth` is needed: a server that grants less is refused, and refuses */
	bool region;			/* ask for a one-sided region */
	uint32_t region_bytes;		/* the smallest that serves; 0: any */
	bool write_imm;			/* ask that client_rma may WRITE with immediate data; with `region`, without message_auth */
	bool message_auth;		/* messages carry tags, which take 16 bytes of each; no pings then */
	bool resume;			/* ask for TLS session tickets, for client_use_session */
	bool allow_redirect;		/* follow a GRANT that names another host than `server` */
	bool no_first_message;		/* live as soon as connected, without waiting for a reply */
	bool verify;			/* read PSNs back */
	bool cm_psn;			/* find out the PSN the CM would have used */
	uint32_t max_conns;
	int poll;			/* enum poll_mode */
	uint64_t spin_ns;
	uint64_t stage_timeout_ns;	/* for every stage of connecting, and for the close */
};

struct client_ops {
	/* Before each stage but the first: false parks the connection, without a deadline, until
	 * client_go_on. May be NULL: every stage starts at once. */
	bool (*may_enter)(void *arg, struct client_conn *c, enum stage stage);
	/* Connected, first reply received (but see no_first_message): the user may send. */
	void (*on_live)(void *arg, struct client_conn *c);
	/* The reply to an echo request; `data` (header included) is valid during the call. */
	void (*on_message)(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data,
			   uint32_t bytes);
	/* The server handled `credits` SENDs of one-way messages, the last message with this sequence. May be NULL
	 * where none are sent. */
	void (*on_credit)(void *arg, struct client_conn *c, uint32_t credits, uint64_t sequence);
	/* A ping came back. May be NULL where none are sent. */
	void (*on_ping)(void *arg, struct client_conn *c, uint32_t number, const uint8_t *data, uint32_t bytes);
	/* The window holds what client_push asked for with this sequence: `data` is NULL. Over a socket it is `bytes` of `data`,
	 * valid during the call. May be NULL where nothing is asked for. */
	void (*on_pushed)(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes);
	/* The oldest `n` requests on the region are done. May be NULL where none are made. */
	void (*on_rma)(void *arg, struct client_conn *c, uint32_t n);
	/* The server stops: nothing more may be begun. What is in flight still ends, and then the connection, as FAIL_CLOSED
	 * with REFUSE_DRAINING. May be NULL where what is begun always waits for what ended. */
	void (*on_draining)(void *arg, struct client_conn *c);
	/* A live connection failed; on_closed follows when its teardown is complete. May be NULL. */
	void (*on_lost)(void *arg, struct client_conn *c, const struct fail *fail);
	/* The connection is over, and its object free once the call returns. `fail` has the stage it was in, and:
	 * FAIL_NONE	client_close
	 * FAIL_ERRNO	a call failed; EAGAIN: no queue pair, ENOBUFS: no buffer, ENODEV: the device failed
	 * FAIL_TLS, FAIL_CERTIFICATE	the handshake failed; client_info's words say how
	 * FAIL_REFUSED	the server refused; code: enum refuse_code
	 * FAIL_CM_STATUS	the RDMA connection manager could not resolve or connect
	 * FAIL_WC_STATUS	a request failed, or could not be posted (IBV_WC_LOC_QP_OP_ERR)
	 * FAIL_TIMEOUT	the stage took longer than stage_timeout_ns
	 * FAIL_PROTOCOL	the server broke the protocol; code: enum fail_protocol
	 * FAIL_CLOSED	the server closed the connection; code: REFUSE_DRAINING if it said that it stops
	 * or what client_fail was given. */
	void (*on_closed)(void *arg, struct client_conn *c, const struct fail *fail);
};

/* ---- context ---- */

struct sizes_client;
/* What the endpoint of a context is sized for (common/sizes/sizes.h). */
struct sizes_client client_sizes_wanted(const struct client_config *cfg);

/* Opens the device that reaches cfg->server, for RDMA, and makes every resource for cfg->max_conns connections.
 * cfg must outlive the context. Returns 0, or with a line in `err` that says what to do:
 * -ENOENT, -EACCES, -EKEYEXPIRED, -EINVAL	a TLS file cannot be used (tls_ctx_new)
 * -ENODEV	no RDMA device reaches the server, or it is not cfg->device
 * -ENETUNREACH, -EHOSTUNREACH	no route to the server
 * -ENOSPC	the device has too few receive buffers for max_conns connections of this depth
 * -ENOMEM	out of memory, or above the limit of locked memory
 * another -errno of librdmacm or libibverbs */
int client_ctx_new(const struct client_config *cfg, const struct client_ops *ops, void *arg,
		   struct ev_loop *loop, struct client_ctx **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* NULL-safe; connections still open are torn down without a word to the server, and without on_closed. */
void client_ctx_free(struct client_ctx *ctx);

/* Parts of the context: the endpoint, which has the buffers to send from; the pump, which runs the loop (pump_run,
 * pump_break, pump_join); the device, which without RDMA has no name. Valid until client_ctx_free. */
struct ep *client_ep(const struct client_ctx *ctx);
struct pump *client_pump(struct client_ctx *ctx);
const struct dev *client_dev(const struct client_ctx *ctx);

struct client_counts {
	uint64_t bytes_sent, bytes_received;	/* payload of RDMA, and frames of the bootstrap */
	uint64_t one_sided_bytes;		/* of both: what the server takes no part in */
	uint32_t qps;				/* queue pairs that exist */
};
void client_get_counts(const struct client_ctx *ctx, struct client_counts *out);

/* ---- the life of a connection ---- */

/* Starts to connect. `intended_ns`: when that should have happened; total_ns counts from there. If one end's connection
 * manager still has an earlier connection with the queue pair number of the other (a stale one), the connection begins
 * again from TCP on, with another queue pair, up to 8 times. Returns NULL if all
 * connection objects or queue pairs are taken. One becomes free with an on_closed, or when queue pairs have rested. */
struct client_conn *client_connect(struct client_ctx *ctx, uint64_t intended_ns, void *user);

/* Right after client_connect: offers the TLS session in *session, if there is one, to be resumed, and keeps the
 * newest there if the server sends a ticket. *session stays the user's, who frees it (tls_session_free), and
 * must be there until on_closed. */
void client_use_session(struct client_conn *c, struct tls_session **session);

/* Right after client_connect, with cfg->region: lets the server WRITE to the window, when client_push asks it to. The
 * window is registered memory of the context's endpoint, with remote write access; it must be there until
 * on_closed. */
void client_use_window(struct client_conn *c, const struct frame_window *window);

/* Lets a parked connection enter its stage, at the present time. Nothing for another one. */
void client_go_on(struct client_conn *c);

/* Closes in order. Nothing if it is closing or failed already. */
void client_close(struct client_conn *c);

/* Ends the connection with a failure that its user found, in the stage it is in. Nothing if it is closing or failed
 * already. */
void client_fail(struct client_conn *c, enum fail_kind kind, int code);

/* ---- sending: only on a live connection; what takes a credit, only if client_has_credit ---- */

/* Sends the first `bytes` (at least the header's) of the endpoint's buffer `buf` as an ECHO, or as one-way DATA,
 * with `sequence`; the buffer is consumed. The header is filled in here, and what stands at the message's end: the
 * checksum with MSG_FLAG_SUM, and the tag, if messages have one; `bytes` counts them. It takes a credit: an ECHO's
 * comes back with its reply, those of DATA with the answer to the next one that has MSG_FLAG_ACK. */
void client_send(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t bytes);

/* The two halves of client_send, for several one-way messages with one SEND. client_seal completes a message at
 * `offset` of `buf`: the first at 0, each other right behind the one before, MSG_JOINED_MAX at most; only the
 * last may have MSG_FLAG_ACK. client_post sends all of them, `bytes` together (message_bytes at most), and
 * consumes the buffer; they take one credit. `asks`: the last one has MSG_FLAG_ACK; else the server is not woken.
 * With tags nothing else may be sealed or sent on the connection in between. If client_seal returns false the
 * connection has failed (the tag could not be computed), and the buffer is gone. */
bool client_seal(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t offset, uint32_t bytes)
	__attribute__((warn_unused_result));
void client_post(struct client_conn *c, uint32_t buf, uint32_t bytes, bool asks);

/* Sends `bytes` (0 and more) of `buf`, without a header, to come back with `number`; the buffer is consumed.
 * Takes a credit. */
void client_ping(struct client_conn *c, uint32_t buf, uint32_t bytes, uint32_t number);

/* Has the server WRITE a part of the region, as it is behind all requests before this one, to the window; on_pushed
 * tells when it is there. Over a socket it sends push->bytes of msg_pushed_byte, which with a header are no more than
 * cfg->message_bytes, and the offsets are 0. Needs a window, and cfg->message_bytes of at least 52. Takes a credit. If no buffer is
 * free, the connection fails with ENOBUFS. */
void client_push(struct client_conn *c, const struct msg_push *push, uint64_t sequence);

/* Starts requests on the region, in order; remote_addr is the offset in it, and key and address are filled in
 * here. A WRITE with immediate data (cfg->write_imm) takes a credit, which comes back as that of a one-way message
 * (on_credit) with `imm` as its sequence, once the server has received the data. Returns 0, also if the connection broke
 * and has failed when this returns, or with none started:
 * -EAGAIN	client_rma_room is less than n, or there are too few credits
 * -EINVAL	a request is not inside the region, or there is none
 * -ENOTCONN	the connection is not live */
int client_rma(struct client_conn *c, struct rc_rma *ops, uint32_t n) __attribute__((warn_unused_result));
/* Requests on the region that may be started now. */
uint32_t client_rma_room(const struct client_conn *c);

/* ---- what is known of a connection ---- */

/* What is read with every message. It stands first in the connection, so that reading it costs no call; only the
 * module writes it. Users call the functions below. */
struct client_head {
	void *user;
	void *arg;			/* the context's */
	uint32_t in_flight;		/* SENDs of messages that are not replied to */
	struct frame_grant grant;
};

static inline const struct client_head *client_head(const struct client_conn *c)
{
	return (const struct client_head *)c;
}

/* As given to client_connect. */
static inline void *client_user(const struct client_conn *c)
{
	return client_head(c)->user;
}

/* As given to client_ctx_new. */
static inline void *client_arg(const struct client_conn *c)
{
	return client_head(c)->arg;
}

/* Credits, region, message size and RDMA address that the server granted, once live; `credits` is never more than
 * cfg->depth. */
static inline const struct frame_grant *client_grant(const struct client_conn *c)
{
	return &client_head(c)->grant;
}

/* SENDs that took a credit which has not come back. */
static inline uint32_t client_in_flight(const struct client_conn *c)
{
	return client_head(c)->in_flight;
}

static inline bool client_has_credit(const struct client_conn *c)
{
	return client_in_flight(c) < client_grant(c)->credits;
}

bool client_is_live(const struct client_conn *c);
bool client_is_closing(const struct client_conn *c);	/* or over */
/* The stage that a parked connection waits to enter; STAGE_TIMED: it is not parked. */
enum stage client_parked_before(const struct client_conn *c);

/* Pointers lead into the connection: valid until on_closed returns. */
struct client_info {
	const char *tls;		/* negotiated version and cipher, once granted */
	const char *words;		/* why it was refused, or why TLS failed; "": nothing was said */
	bool resumed;			/* the TLS handshake resumed a session */
	uint32_t stale;			/* attempts that met a stale queue pair number and were followed by another */
	uint32_t client_qpn, server_qpn;	/* 0: none */
	uint32_t client_psn;		/* the server's is in the grant */
	uint32_t cm_psn;		/* what the CM would have used for the client's, with cfg->cm_psn */
	const uint64_t *stage_ns;	/* STAGE_TIMED of them, over all attempts; complete once live */
	uint64_t psn_generate_ns;	/* drawing the PSN and filling in HELLO, a part of psn_exchange */
	uint64_t total_ns;		/* from intended_ns until live, without the time it was parked */
};
/* Publishes what the device says of a live connection's queue pair (effective_look), a system call. False: it is not live. */
bool client_look(const struct client_conn *c, struct effective *out);
void client_get_info(const struct client_conn *c, struct client_info *out);

#endif
