/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of the client module: the connection, the context, and declarations that their files share.
 *
 * ctx.c makes the context and names the function that begins each stage, conn.c has the states, boot.c does TCP, TLS
 * and the frames, rdma.c the RDMA connection, oob.c the same without rdmacm, data.c messages and requests. conn.c calls
 * none of the others, ctx.c all.
 * Owning thread: the loop's.
 */
#ifndef RAMPART_CLIENT_INTERNAL_H
#define RAMPART_CLIENT_INTERNAL_H

#include <sys/param.h>
#include <sys/queue.h>

#include "client/client.h"
#include "common/base/counter.h"
#include "common/sock/link.h"
#include "common/rdma/pump.h"
#include "common/tls/tls_io.h"
#include "common/wire/auth.h"

struct cm_channel;
struct cm_event;
struct msg_tags;
struct qp_pool;

/* States except FREE, LIVE and DEAD have a deadline unless parked: stage_timeout_ns, or less for CLOSING on failure. */
enum client_state {
	CLIENT_ST_FREE,			/* owns nothing */
	CLIENT_ST_TCP_CONNECT,		/* waits for the TCP connection; owns the socket */
	CLIENT_ST_TLS_HANDSHAKE,	/* owns the TLS session */
	CLIENT_ST_PSN_EXCHANGE,		/* HELLO sent, waits for GRANT or REFUSE */
	CLIENT_ST_ADDR_RESOLVE,		/* TLS is closed, unless it is kept; owns the CM id */
	CLIENT_ST_ROUTE_RESOLVE,
	CLIENT_ST_RDMA_CONNECT,		/* takes a QP, then sends REQ and waits for the answer */
	CLIENT_ST_FIRST_REPLY,		/* connected, first message sent */
	CLIENT_ST_LIVE,			/* no deadline: the user decides */
	CLIENT_ST_CLOSING,		/* waits for flushes and the CM */
	CLIENT_ST_DEAD,			/* released; freed when the loop's turn ends */
	CLIENT_ST_SOCKET_CONNECT,	/* after PSN_EXCHANGE over TCP: the connection and the proofs */
	CLIENT_ST_QP_EXCHANGE,		/* after PSN_EXCHANGE without rdmacm: programs the QP, then the proofs */
	CLIENT_ST_N,
};
extern const char *const client_state_names[CLIENT_ST_N];

/* Begins a stage. Do not touch `c` afterwards: it may have failed. */
typedef void client_begin_fn(struct client_conn *c);

struct client_conn {
	/* Used with every message: */
	struct client_head head;	/* must be first: client_head casts */
	struct client_ctx *ctx;
	enum client_state state;
	uint32_t index;			/* 0 .. max_conns - 1; owner number in the QP pool */
	struct msg_tags *tags;		/* NULL: messages carry none */
	struct link link;

	TAILQ_ENTRY(client_conn) entry;	/* FREE: in ctx->free; DEAD: in ctx->dead */
	TAILQ_ENTRY(client_conn) ready;	/* queued: in ctx->ready */
	bool queued;			/* the socket is ready for the next step of TCP, TLS or the frames */
	bool overdue;			/* queued after the deadline: fails unless the next step ends the state */
	ev_timer deadline;
	enum stage parked;		/* stage the connection waits to enter; STAGE_TIMED: none */

	struct tls_io io;		/* TLS connection of the bootstrap; closed after the GRANT unless keeps_tls */
	struct tls_session **session;	/* owned by the user, kept across connections; NULL: none */
	bool resumed;			/* the TLS handshake resumed a session */
	bool keeps_tls;			/* `io` stays open after the GRANT (client_keep_tls) */
	struct client_conn *before;	/* until `io` is set up: the connection whose TLS this one takes over */
	bool follows;			/* has taken it over */
	unsigned hellos;		/* sent so far */
	char tls_text[96];		/* negotiated version and cipher */
	char refuse_text[FRAME_REFUSE_TEXT_MAX + 1];

	struct frame_window window;	/* memory that the server may WRITE to; 0 bytes: none */
	struct auth_keys keys;
	uint32_t psn;			/* ours */
	uint32_t psn_redraws;		/* PSNs drawn again because the server said that they were in use */
	uint32_t cm_psn;		/* what the CM would have used instead, with cfg->cm_psn */
	uint32_t server_qpn;
	struct frame_qp qp;		/* without rdmacm: ours, as HELLO describes it */
	bool wants_qp;			/* counted in the context's demand */
	bool proved;			/* without rdmacm: the proof was sent, so the server may think us connected */
	bool awaits_close;		/* CLOSING: BYE or GOODBYE was sent, and the server has not answered yet */
	bool cm_connected;		/* the CM id must be disconnected before it is destroyed */
	bool qpn_lingers;		/* the server's CM may remember our QP's number and refuse it as stale */
	bool again;			/* CLOSING, DEAD: another attempt follows instead of on_closed */
	uint32_t stale;			/* attempts that met a stale QP number and were followed by another */
	bool heard;			/* a message has come since the last look (client_oob_look) */
	bool draining;			/* the server said goodbye: ends with the last operation in flight */
	uint32_t rma_in_flight;		/* requests on the region */

	struct fail fail;
	uint64_t intended_ns;		/* when connecting should have started */
	uint64_t parked_ns;		/* time spent parked; not part of total_ns */
	uint64_t stage_start_ns;
	uint64_t stage_ns[STAGE_TIMED];	/* complete once live */
	uint64_t psn_generate_ns;	/* a part of stage psn_exchange */
	uint64_t total_ns;
};

TAILQ_HEAD(client_list, client_conn);

struct client_ctx {
	const struct client_config *cfg;
	const struct client_ops *ops;
	void *arg;
	struct ev_loop *loop;
	client_begin_fn *const *begin;	/* by stage */
	struct pump pump;
	ev_prepare turn_end;
	ev_timer housekeeping;
	struct dev dev;
	struct ep *ep;
	struct sock_ctx *socks;		/* NULL with RDMA */
	struct qp_pool *qps;
	struct cm_channel *cm;
	struct tls_ctx *tls_ctx;
	struct auth_mac *mac;
	struct client_conn *conns;
	struct client_list free, dead, ready;
	uint32_t n_free;
	bool gone;			/* the device failed while others work: every connection fails */
	uint32_t looked;		/* connections that client_oob_look has looked at */
	uint32_t demand;		/* connections that have yet to take a queue pair */
	uint64_t bytes_sent, bytes_received;	/* payload of RDMA */
	uint64_t one_sided_bytes;		/* included in both: requests on the region */
	counter tls_bytes_in, tls_bytes_out;
};

/* conn.c */
bool client_edge_is_legal(enum client_state from, enum client_state to);
/* The only function that writes the state; sets the deadline. */
void client_set_state(struct client_conn *c, enum client_state to);
/* Restarts the deadline of the state with its full time. */
void client_restart_deadline(struct client_conn *c);
/* Queues the connection, whose socket is ready, for client_boot_serve_next. */
void client_queue(struct client_conn *c);
/* Finishes the teardown if nothing is outstanding. Call it after every event that could be the last one. */
void client_try_finish(struct client_conn *c);
/* Ends the running stage: records its duration, and the next one starts now. */
void client_stage_done(struct client_conn *c, enum stage stage);
/* Continues with `stage`, or parks the connection before it. Do not touch `c` afterwards. */
void client_enter(struct client_conn *c, enum stage stage);
void client_set_live(struct client_conn *c);
/* After a stale QP number: starts another attempt, from the TCP connect, once this one is torn down. Returns false and
 * does nothing if there were STALE_MAX such attempts already. */
bool client_begin_again(struct client_conn *c) __attribute__((warn_unused_result));
/* Starts the attempt of client_begin_again, on a connection in FREE. */
void client_restart(struct client_conn *c);
/* The connection took its queue pair, or never will: it no longer counts in the context's demand. */
void client_end_demand(struct client_conn *c);
/* Goes on with the teardown out of band: nobody waits for the GOODBYEs any more. */
void client_end_wait(struct client_conn *c);

/* boot.c */
client_begin_fn client_boot_start, client_boot_handshake, client_boot_exchange;
/* For pump_set_rest: takes the next step of the connection that was queued first. */
bool client_boot_serve_next(void *ctx);

/* rdma.c */
client_begin_fn client_rdma_start, client_rdma_resolve_route, client_rdma_take_qp, client_rdma_connect,
	client_rdma_first_message;
void client_on_cm_event(void *ctx, const struct cm_event *e);

/* READs and atomics that a connection asks to have outstanding. */
static inline uint8_t client_reads_wanted(const struct client_ctx *ctx)
{
	return ctx->cfg->region ? (uint8_t)MIN((int)ctx->cfg->reads, ctx->dev.attr.max_qp_init_rd_atom) : 0;
}

/* oob.c */
client_begin_fn client_oob_program, client_oob_prove;
static inline bool client_is_oob(const struct client_conn *c)
{
	return link_is_rdma(&c->link) && c->ctx->cfg->connect == CONNECT_OOB;
}
/* Before HELLO: takes the QP and describes it in c->qp. Errors of rc_take_qp. */
int client_oob_take_qp(struct client_conn *c) __attribute__((warn_unused_result));
bool client_oob_stays_at_server(const struct client_conn *c, const struct frame_grant *g);
/* A message of `bytes` arrived before the connection is live, or while it closes; 0: not a plain SEND. */
void client_oob_on_receive(struct client_conn *c, const uint8_t *data, uint32_t bytes);
/* Looks at the next of the connections. Called every HOUSEKEEPING_S, it looks at each once in 3 s, and probes the
 * server of one that waits for an answer and has heard nothing since the last look. */
void client_oob_look(struct client_ctx *ctx);

/* socket.c */
extern const struct sock_user client_sock_user;
client_begin_fn client_socket_start;
/* Uses the TLS connection of the bootstrap, which has its GRANT, for messages. */
void client_socket_go_over_tls(struct client_conn *c);

/* data.c */
void client_on_record(struct client_conn *c, uint32_t buf, const struct record *r);
void client_on_wc(void *ctx, const struct ibv_wc *wc);

#endif
