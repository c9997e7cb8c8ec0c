/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of a rampart server: connections, and the context that the connections of one thread share.
 *
 * The load generator has thousands of connections in each worker thread, rdma_client has one. Nothing here blocks;
 * struct client_ops has the callbacks that tell the user what happened.
 *
 * Owning thread: the one that runs the context's loop makes all calls and receives all callbacks.
 *
 * Functions do not return the failure of a connection: a failure ends the connection, and on_closed reports it.
 * on_closed is called when the teardown is complete, at the end of a turn of the loop, never from within one of these
 * functions. All functions that take a connection may be called from all callbacks.
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
	enum transport transport;	/* transport of messages; only RDMA opens a device and has regions */
	enum connect_way connect;	/* with RDMA */
	const char *verify_name;	/* name or IP address the server's certificate must have */
	const char *ca_file, *cert_file, *key_file, *crl_file;	/* all but the first may be NULL */
	const char *device;		/* NULL: whichever reaches the server */
	uint32_t message_bytes;		/* largest message, or all messages of a client_post together */
	uint32_t buffer_bytes;		/* buffer size: at least message_bytes, more for large one-sided requests */
	uint32_t depth;			/* SENDs in flight on a connection */
	uint32_t rma_depth;		/* region requests in flight, besides the SENDs */
	uint8_t reads;			/* how many of them may be READs and atomics, if device and server allow it */
	uint32_t inline_bytes;		/* largest message or write copied into the send queue; 0: none */
	bool relaxed_ordering;		/* as in struct ep_config */
	uint32_t post_list;
	uint32_t signal_every;
	uint32_t cq_depth;
	uint32_t srq_depth;		/* maximum messages in flight of all connections; 0: as many as needed */
	enum ibv_mtu path_mtu;		/* upper limit; 0: the path's own */
	struct cm_retry retry;
	struct cm_fabric fabric;
	struct sock_config sock;	/* settings of connections over sockets */
	bool all_credits;		/* require `depth` credits: server and client refuse to connect with less */
	bool region;			/* ask for a one-sided region */
	uint32_t region_bytes;		/* minimum size; 0: any */
	bool write_imm;			/* ask for WRITEs with immediate data; needs `region`, excludes message_auth */
	bool message_auth;		/* every message carries a tag of 16 bytes; excludes pings */
	bool resume;			/* ask for TLS session tickets, for client_use_session */
	bool allow_redirect;		/* follow a GRANT that names another host than `server` */
	bool no_first_message;		/* live as soon as connected, without waiting for a reply; no effect with
					 * CONNECT_OOB, where the server's proof is waited for */
	bool verify;			/* read PSNs back */
	bool cm_psn;			/* find out which PSN the CM would have used */
	uint32_t max_conns;
	int poll;			/* enum poll_mode */
	uint64_t spin_ns;
	uint64_t stage_timeout_ns;	/* for every stage of connecting, and for the close */
};

struct client_ops {
	/* Called before each stage except the first. False parks the connection, without a deadline, until
	 * client_go_on. NULL: every stage starts at once. */
	bool (*may_enter)(void *arg, struct client_conn *c, enum stage stage);
	/* The connection is up and its first reply received (but see no_first_message): the user may send. */
	void (*on_live)(void *arg, struct client_conn *c);
	/* The reply to an echo request; `data` (header included) is valid during the call. */
	void (*on_message)(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data,
			   uint32_t bytes);
	/* The server handled `credits` SENDs of one-way messages, up to the message with this sequence. May be NULL if
	 * none are sent. */
	void (*on_credit)(void *arg, struct client_conn *c, uint32_t credits, uint64_t sequence);
	/* A ping came back. May be NULL if none are sent. */
	void (*on_ping)(void *arg, struct client_conn *c, uint32_t number, const uint8_t *data, uint32_t bytes);
	/* The window holds the data that client_push asked for with this sequence, and `data` is NULL. Over a socket
	 * the `bytes` at `data` are those data, valid during the call. May be NULL if client_push is not used. */
	void (*on_pushed)(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes);
	/* The oldest `n` requests on the region are done. May be NULL if there are none. */
	void (*on_rma)(void *arg, struct client_conn *c, uint32_t n);
	/* The server is stopping: start nothing new. Operations in flight still complete, and then the connection ends
	 * with FAIL_CLOSED and REFUSE_DRAINING. May be NULL if the user never has two operations in flight. */
	void (*on_draining)(void *arg, struct client_conn *c);
	/* A live connection failed; on_closed follows when its teardown is complete. May be NULL. */
	void (*on_lost)(void *arg, struct client_conn *c, const struct fail *fail);
	/* The connection is over; its object is free once this call returns. `fail` has the stage where it ended, and:
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

struct sizes_client;
/* The sizes that the endpoint of a context is made for (common/sizing/sizes.h). */
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
/* NULL-safe. Tears down connections that are still open, without telling the server and without on_closed. */
void client_ctx_free(struct client_ctx *ctx);

/* Parts of the context, valid until client_ctx_free: the endpoint, whose buffers messages are sent from; the pump,
 * which runs the loop (pump_run, pump_break, pump_join); the device, which has no name without RDMA. */
struct ep *client_ep(const struct client_ctx *ctx);
struct pump *client_pump(struct client_ctx *ctx);
const struct dev *client_dev(const struct client_ctx *ctx);

struct client_counts {
	uint64_t bytes_sent, bytes_received;	/* payload of RDMA, and frames of the bootstrap */
	uint64_t one_sided_bytes;		/* included in both when posted: payload of client_rma */
	uint32_t qps;				/* queue pairs that exist */
};
void client_get_counts(const struct client_ctx *ctx, struct client_counts *out);

/* Starts to connect. `intended_ns` is when that should have happened; total_ns counts from there. If the connection
 * manager of one end still has an earlier connection with the other end's queue pair number (a stale one), the
 * connection starts again, from the TCP connect, with another queue pair, up to 8 times. Returns NULL if no connection
 * object or no queue pair is free; one becomes free after an on_closed, or when queue pairs leave quarantine. */
struct client_conn *client_connect(struct client_ctx *ctx, uint64_t intended_ns, void *user);

/* Right after client_connect, over RDMA: keeps TLS open after the GRANT, so that client_connect_after can use it. Up to
 * FRAME_QPS_MAX connections may share it in turn. */
void client_keep_tls(struct client_conn *c);
/* Closes the TLS that a live connection has kept, as its end does too. No-op if it has none. */
void client_end_tls(struct client_conn *c);
/* As client_connect, but goes on with the TLS connection that `before`, a live one of the same context, has kept:
 * neither TCP nor TLS has to connect. Without one, or with NULL, it is client_connect. If the server has closed that
 * TLS connection meanwhile, the stage psn_exchange fails, with FAIL_CLOSED or ECONNRESET; the next attempt makes its
 * own. */
struct client_conn *client_connect_after(struct client_ctx *ctx, struct client_conn *before, uint64_t intended_ns,
					 void *user);

/* Right after client_connect: a number that the user gives the connection, for client_number. */
void client_set_number(struct client_conn *c, uint32_t number);

/* Right after client_connect: offers the TLS session in *session, if there is one, for resumption, and stores the
 * newest one there if the server sends a ticket. The user owns *session and frees it (tls_session_free); it must stay
 * valid until on_closed. */
void client_use_session(struct client_conn *c, struct tls_session **session);

/* Right after client_connect, with cfg->region: lets the server WRITE to the window when client_push asks it to. The
 * window is registered memory of the context's endpoint, with remote write access; it must stay valid until
 * on_closed. */
void client_use_window(struct client_conn *c, const struct frame_window *window);

/* Lets a parked connection enter its stage, whose time starts now. No-op if it is not parked. */
void client_go_on(struct client_conn *c);

/* Closes the connection in an orderly way. No-op if it is closing or has failed. */
void client_close(struct client_conn *c);

/* Ends the connection with a failure that the user found, in its current stage. No-op if it is closing or has
 * failed. */
void client_fail(struct client_conn *c, enum fail_kind kind, int code);

/* Sending. Allowed only on a live connection; calls that take a credit only if client_has_credit. */

/* Sends the first `bytes` (at least the header's) of the endpoint's buffer `buf` as an ECHO, or as one-way DATA, with
 * `sequence`, and consumes the buffer. This function fills in the header and the end of the message: the checksum with
 * MSG_FLAG_SUM, and the tag if messages have one; `bytes` includes them. It takes a credit: that of an ECHO comes back
 * with its reply, those of DATA with the answer to the next DATA that has MSG_FLAG_ACK. */
void client_send(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t bytes);

/* The two halves of client_send, for several one-way messages in one SEND. client_seal completes a message at `offset`
 * of `buf`: the first at 0, then one right behind another, at most MSG_JOINED_MAX; only the last may have
 * MSG_FLAG_ACK. client_post sends them all, `bytes` together (at most message_bytes), and consumes the buffer; together
 * they take one credit. `asks`: the last one has MSG_FLAG_ACK; otherwise the server is not woken. With tags, nothing
 * else may be sealed or sent on the connection in between. If client_seal returns false, the tag could not be computed:
 * the connection has failed, and the buffer is gone. */
bool client_seal(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t offset, uint32_t bytes)
	__attribute__((warn_unused_result));
void client_post(struct client_conn *c, uint32_t buf, uint32_t bytes, bool asks);

/* Sends `bytes` (0 or more) of `buf` without a header; they come back with `number` (on_ping). Consumes the buffer and
 * takes a credit. */
void client_ping(struct client_conn *c, uint32_t buf, uint32_t bytes, uint32_t number);

/* Asks the server to WRITE a part of the region, with the effect of all earlier requests, to the window; on_pushed
 * tells when it is there. Over a socket the server sends push->bytes bytes of msg_pushed_byte instead: they must fit in
 * cfg->message_bytes with the header, and the offsets must be 0. Needs a window, and cfg->message_bytes of at least 52.
 * Takes a credit. If no buffer is free, the connection fails with ENOBUFS. */
void client_push(struct client_conn *c, const struct msg_push *push, uint64_t sequence);

/* Starts requests on the region, in order; remote_addr is the offset in the region, and this function fills in key and
 * address. A WRITE with immediate data (cfg->write_imm) takes a credit, which comes back like that of a one-way message
 * (on_credit) with `imm` as its sequence, once the server has received the data. Returns 0, even if the connection
 * broke and has failed when this returns. Otherwise no request was started, and `ops` is unchanged:
 * -EAGAIN	client_rma_room is less than n, or there are too few credits
 * -EINVAL	a request is not inside the region, or there is no region
 * -ENOTCONN	the connection is not live */
int client_rma(struct client_conn *c, struct rc_rma *ops, uint32_t n) __attribute__((warn_unused_result));
/* Number of requests on the region that may be started now. */
uint32_t client_rma_room(const struct client_conn *c);

/* The part of a connection that is read with every message. It comes first in the connection, so that reading it costs
 * no call; only the module writes it. Users call the functions below. */
struct client_head {
	void *user;
	void *arg;			/* the context's */
	uint32_t number;		/* of client_set_number, or 0 */
	uint32_t in_flight;		/* SENDs of messages not replied to yet */
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

static inline uint32_t client_number(const struct client_conn *c)
{
	return client_head(c)->number;
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

/* Number of SENDs whose credit has not come back yet. */
static inline uint32_t client_in_flight(const struct client_conn *c)
{
	return client_head(c)->in_flight;
}

static inline bool client_has_credit(const struct client_conn *c)
{
	return client_in_flight(c) < client_grant(c)->credits;
}

bool client_is_live(const struct client_conn *c);
bool client_is_closing(const struct client_conn *c);	/* or closed */
/* The stage that a parked connection waits to enter; STAGE_TIMED: not parked. */
enum stage client_parked_before(const struct client_conn *c);

/* The pointers point into the connection and are valid until on_closed returns. */
struct client_info {
	const char *tls;		/* negotiated version and cipher, once granted */
	const char *words;		/* reason of a refusal or of a TLS failure; "": none was given */
	bool resumed;			/* the TLS handshake resumed a session */
	uint32_t stale;			/* attempts that met a stale queue pair number and were followed by another */
	uint32_t client_qpn, server_qpn;	/* 0: none */
	uint32_t client_psn;		/* the server's is in the grant */
	uint32_t psn_redraws;		/* PSNs drawn again after a conflict, over all attempts */
	uint32_t cm_psn;		/* what the CM would have used instead, with cfg->cm_psn */
	const uint64_t *stage_ns;	/* STAGE_TIMED durations, summed over all attempts; complete once live */
	uint64_t psn_generate_ns;	/* time to draw the PSN and fill in HELLO, a part of psn_exchange */
	uint64_t total_ns;		/* from intended_ns until live, without the time it was parked */
};
/* Publishes what the device reports about a live queue pair (effective_look): a system call. False: not live. */
bool client_look(const struct client_conn *c, struct effective *out);
void client_get_info(const struct client_conn *c, struct client_info *out);

#endif
