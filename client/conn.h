/* A connection to a rampart server, from the TCP connect to the end of its RDMA connection, and the
 * per-thread context that connections share.
 *
 * The load generator holds thousands of these in each worker thread, rdma_client one. Nothing here
 * blocks; the user is told by the callbacks of struct client_ops, on the loop's thread.
 */
#ifndef RAMPART_CLIENT_CONN_H
#define RAMPART_CLIENT_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "common/base/addr.h"
#include "common/wire/auth.h"
#include "common/rdma/dev.h"
#include "common/wire/fail.h"
#include "common/wire/frame.h"
#include "common/rdma/pump.h"
#include "common/rdma/rc.h"
#include "common/tls/tls_io.h"

struct client_conn;
struct cm_channel;
struct msg_header;
struct msg_push;
struct msg_tags;

struct client_config {
	struct addr server;		/* of the TLS bootstrap */
	const char *verify_name;	/* name or IP address the server's certificate must have */
	const char *ca_file, *cert_file, *key_file;	/* the latter two may be NULL */
	const char *device;		/* NULL: whichever reaches the server */
	uint32_t message_bytes;		/* largest message to send, or messages with one client_post */
	uint32_t buffer_bytes;		/* size of a buffer: at least message_bytes; more for large one-sided requests */
	uint32_t depth;			/* SENDs in flight on a connection */
	uint32_t rma_depth;		/* and requests on the region */
	uint8_t reads;			/* and READs and atomics of them, as far as device and server allow */
	uint32_t inline_bytes;		/* largest message or write copied into the send queue; 0: none */
	uint32_t post_list;		/* as in struct ep_config */
	uint32_t signal_every;
	uint32_t cq_depth;
	uint32_t srq_depth;		/* messages in flight of all connections, at most; 0: what is needed */
	enum ibv_mtu path_mtu;		/* at most; 0: the path's */
	bool region;			/* ask for a one-sided region */
	bool message_auth;		/* messages carry tags, which take 16 bytes of each; no pings then */
	bool resume;			/* ask for TLS session tickets, for client_use_session */
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
	/* What was asked for with this sequence is in the window. May be NULL where nothing is. */
	void (*on_pushed)(void *arg, struct client_conn *c, uint64_t sequence);
	/* The oldest `n` requests on the region are done. May be NULL where none are made. */
	void (*on_rma)(void *arg, struct client_conn *c, uint32_t n);
	/* It was live and failed: it counts no longer, though on_closed follows only when its teardown is
	 * complete. May be NULL. */
	void (*on_lost)(void *arg, struct client_conn *c);
	/* Over; the object is free once the call returns. fail->kind is FAIL_NONE after client_close. */
	void (*on_closed)(void *arg, struct client_conn *c, const struct fail *fail);
};

enum client_state {
	CLIENT_ST_FREE,			/* owns nothing */
	CLIENT_ST_TCP_CONNECT,		/* waits for the TCP connection; owns the socket */
	CLIENT_ST_TLS_HANDSHAKE,	/* owns the TLS session */
	CLIENT_ST_PSN_EXCHANGE,		/* HELLO sent, waits for GRANT or REFUSE */
	CLIENT_ST_ADDR_RESOLVE,		/* TLS is closed; owns the CM id */
	CLIENT_ST_ROUTE_RESOLVE,
	CLIENT_ST_RDMA_CONNECT,		/* takes a QP, then sends REQ and waits for the answer */
	CLIENT_ST_FIRST_REPLY,		/* connected, first message sent */
	CLIENT_ST_LIVE,			/* no deadline: the user's */
	CLIENT_ST_CLOSING,		/* waits for flushes and the CM */
	CLIENT_ST_DEAD,			/* released; freed when the loop's turn ends */
	CLIENT_ST_N,
};
/* All but FREE, LIVE and DEAD end after stage_timeout_ns, unless parked. */
extern const char *const client_state_names[CLIENT_ST_N];

struct client_conn {
	enum client_state state;
	uint32_t index;			/* 0 .. max_conns - 1 */
	struct client_ctx *ctx;
	uint32_t next_dead;
	ev_timer deadline;

	enum stage parked;		/* the stage it waits to enter; STAGE_TIMED: none */

	struct tls_io io;		/* the bootstrap's; closed once there is a GRANT */
	struct tls_session **session;	/* the user's, of earlier connections and for later ones; NULL: none */
	bool resumed;			/* the TLS handshake resumed a session */
	unsigned hellos;

	struct frame_window window;	/* memory that the server may WRITE to; 0 bytes: none */
	uint32_t psn;			/* ours */
	uint32_t cm_psn;		/* what the CM would have used for ours, if it was asked */
	struct frame_grant grant;
	struct auth_keys keys;
	struct msg_tags *tags;		/* NULL: messages carry none */
	char tls_text[96];		/* negotiated version and cipher */

	struct rc rc;
	bool wants_qp;			/* counted in the context's demand */
	bool cm_connected;
	uint32_t server_qpn;
	uint32_t in_flight;		/* SENDs of messages that are not replied to */

	struct fail fail;
	char refuse_text[FRAME_REFUSE_TEXT_MAX + 1];
	uint64_t intended_ns;		/* when the connect was to start */
	uint64_t parked_ns;		/* time spent parked; not part of total_ns */
	uint64_t stage_start_ns;
	uint64_t stage_ns[STAGE_TIMED];	/* complete once live */
	uint64_t total_ns;
	void *user;
};

struct client_ctx {
	const struct client_config *cfg;
	const struct client_ops *ops;
	void *arg;
	struct ev_loop *loop;
	struct pump pump;
	ev_prepare turn_end;
	ev_timer housekeeping;
	struct dev dev;
	struct ep *ep;
	struct qp_pool *qps;
	struct cm_channel *cm;
	struct tls_ctx *tls_ctx;
	struct auth_mac *mac;
	struct client_conn *conns;
	uint32_t *free_conns;		/* stack of indices */
	uint32_t n_free;
	uint32_t dead;			/* list through next_dead; UINT32_MAX ends it */
	bool gone;			/* its device failed while others work: what is begun fails */
	uint32_t demand;		/* connections that will take a queue pair when they get so far */
	uint64_t bytes_sent, bytes_received;	/* RDMA payload, for net_bytes; as are the next */
	counter tls_bytes_in, tls_bytes_out;
};

/* Opens the device that reaches cfg->server and makes every resource for cfg->max_conns connections.
 * cfg must outlive the context. 0 or -errno, with a line in `err` that says what to do. */
int client_ctx_new(const struct client_config *cfg, const struct client_ops *ops, void *arg,
		   struct ev_loop *loop, struct client_ctx **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
/* NULL-safe; connections still open are torn down without a word to the server. */
void client_ctx_free(struct client_ctx *ctx);

/* Starts to connect. `intended_ns` is the time it should have started (total counts from there).
 * NULL if all connection objects are in use, or all queue pairs in use, spoken for or at rest; any failure is
 * told by on_closed, never from within. */
struct client_conn *client_connect(struct client_ctx *ctx, uint64_t intended_ns, void *user);

/* Right after client_connect: offers the TLS session in *session, if there is one, to be resumed, and keeps the
 * newest there if the server sends a ticket. *session stays the user's, who frees it (tls_session_free), and
 * must be there until on_closed. */
void client_use_session(struct client_conn *c, struct tls_session **session);

/* Right after client_connect, with cfg->region: lets the server WRITE to the window, when client_push asks it to. The
 * window is registered memory of the context's endpoint, with remote write access; it must be there until
 * on_closed. */
void client_use_window(struct client_conn *c, const struct frame_window *window);

/* Lets a parked connection enter its stage, at the present time. */
void client_go_on(struct client_conn *c);

/* Sends the first `bytes` (at least the header's) of the endpoint's buffer `buf` as an ECHO, or as one-way DATA,
 * with `sequence`; the buffer is consumed. The header is filled in here, and what stands at the message's end: the
 * checksum with MSG_FLAG_SUM, and the tag, if messages have one; `bytes` counts them. Never more than the granted
 * credits may be in flight: an ECHO's comes back with its reply, those of DATA with the answer to the next one that
 * has MSG_FLAG_ACK. */
void client_send(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t bytes);

/* The two halves of client_send, for several one-way messages with one SEND. client_seal completes a message at
 * `offset` of `buf`: the first at 0, each other right behind the one before, MSG_JOINED_MAX at most; only the
 * last may have MSG_FLAG_ACK. client_post sends all of them, `bytes` together (message_bytes at most), and
 * consumes the buffer; they take one credit. `asks`: the last one has MSG_FLAG_ACK; else the server is not woken.
 * With tags nothing else may be sealed or sent on the connection in between. If client_seal returns false the
 * connection has failed, and the buffer is gone. */
bool client_seal(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t offset, uint32_t bytes)
	__attribute__((warn_unused_result));
void client_post(struct client_conn *c, uint32_t buf, uint32_t bytes, bool asks);

/* Sends `bytes` (0 and more) of `buf`, without a header, to come back with `number`; the buffer is consumed.
 * Takes a credit. */
void client_ping(struct client_conn *c, uint32_t buf, uint32_t bytes, uint32_t number);

/* Has the server WRITE a part of the region, as it is behind all requests before this one, to the window; on_pushed
 * tells when it is there. Needs a window, and cfg->message_bytes of at least 52. Takes a credit. If no buffer is
 * free or the connection broke, it has failed when this returns. */
void client_push(struct client_conn *c, const struct msg_push *push, uint64_t sequence);

/* Starts requests on the region, in order; remote_addr is the offset in it, and key and address are filled in
 * here. 0; -EAGAIN, and none is started, if client_rma_room is less than n; -EINVAL outside the region;
 * -ENOTCONN. If the connection broke, it has failed when this returns (0). */
int client_rma(struct client_conn *c, struct rc_rma *ops, uint32_t n) __attribute__((warn_unused_result));
uint32_t client_rma_room(const struct client_conn *c);

/* Closes in order; on_closed follows. May be called in any state, also from callbacks. */
void client_close(struct client_conn *c);

/* For the files of this module. */
bool client_edge_is_legal(enum client_state from, enum client_state to);
void client_set_state(struct client_conn *c, enum client_state to);
/* Gives the state its whole time again. */
void client_restart_deadline(struct client_conn *c);
void client_fail(struct client_conn *c, enum fail_kind kind, int code);
void client_try_finish(struct client_conn *c);
/* Ends the running stage: its duration is kept and the next one starts now. */
void client_stage_done(struct client_conn *c, enum stage stage);
/* Continues with `stage`, or parks the connection before it. Nothing of `c` may be touched afterwards. */
void client_enter(struct client_conn *c, enum stage stage);
void client_set_live(struct client_conn *c);
/* It took its queue pair, or never will. */
void client_end_demand(struct client_conn *c);
void client_boot_start(struct client_conn *c);		/* boot.c */
void client_boot_handshake(struct client_conn *c);
void client_boot_exchange(struct client_conn *c);
void client_rdma_start(struct client_conn *c);		/* rdma.c */
void client_rdma_resolve_route(struct client_conn *c);
void client_rdma_take_qp(struct client_conn *c);
void client_rdma_connect(struct client_conn *c);
void client_rdma_first_message(struct client_conn *c);
void client_on_cm_event(void *ctx, const struct cm_event *e);
void client_on_wc(void *ctx, const struct ibv_wc *wc);	/* data.c */

#endif
