/* SPDX-License-Identifier: BSD-2-Clause */
/* A client on the server's side, from the TCP accept to the end of its RDMA connection.
 *
 * Owning thread: its shard's. Only conn_set_state writes `state`. A connection ends by conn_fail or conn_close, which
 * take a reason and may be called twice. The caller of either must return at once: the object is freed at the end of
 * the loop's turn.
 */
#ifndef RAMPART_SERVER_CONN_H
#define RAMPART_SERVER_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ev.h>

#include "common/base/addr.h"
#include "common/tls/tls_io.h"
#include "common/wire/auth.h"
#include "common/wire/fail.h"
#include "common/wire/frame.h"
#include "common/sock/link.h"
#include "server/tables/peers.h"
#include "server/tables/stats.h"

struct msg_tags;
struct shard;

enum conn_state {
	CONN_ST_FREE,		/* owns nothing; in the shard's free list, or never used and in no list */
	CONN_ST_TLS_ACCEPT,	/* waits for the TLS handshake; owns the TLS session; --handshake-timeout */
	CONN_ST_HELLO,		/* waits for the first frame; --handshake-timeout for all HELLOs of a client, or
				 * --session-timeout if the TLS connection has bootstrapped another connection */
	CONN_ST_REFUSE,		/* writes a REFUSE, then waits for the peer to close; 2 s */
	CONN_ST_GRANT,		/* writes the GRANT; owns PSNs, credits, admission; --handshake-timeout */
	CONN_ST_GRANTED,	/* waits for the RDMA request, or for the proof out of band; is in the session table;
				 * --session-timeout */
	CONN_ST_ACCEPTING,	/* accepted; owns CM id and QP (out of band, the QP from HELLO on); waits for
				 * ESTABLISHED; --session-timeout */
	CONN_ST_LIVE,		/* connected; no deadline, only the liveness probe */
	CONN_ST_CLOSING,	/* waits for all completions and the CM; 3 s, then 10 s for the device */
	CONN_ST_DEAD,		/* owns nothing; becomes FREE at the end of the loop's turn */
	CONN_ST_N,
};
extern const char *const conn_state_names[CONN_ST_N];

TAILQ_HEAD(conn_list, conn);

struct conn {
	enum conn_state state;
	uint32_t index;		/* in the shard's array; owner number in the QP pool */
	struct shard *shard;
	TAILQ_ENTRY(conn) entry;	/* in the list of its state */
	ev_timer deadline;
	TAILQ_ENTRY(conn) ready;	/* in the shard's `ready`, if it is queued */
	bool crowd;		/* index into `ready`: its address had the most TLS connections */
	bool queued;
	bool overdue;		/* its deadline has passed */

	/* TLS side */
	struct tls_io *io;	/* NULL when TLS is closed */
	bool greeted;		/* the TLS handshake has begun */
	bool retry_hello;	/* after psn_conflict: the client may send another HELLO */
	unsigned hellos;
	bool more;		/* GRANT: another HELLO follows on the TLS connection, for another connection */
	uint32_t earlier;	/* connections that the TLS connection has bootstrapped before */
	uint64_t asked_ns;	/* start of the wait for a HELLO that can be granted */
	bool awaits_region;	/* HELLO: a region is being registered for this client; the socket is not watched */
	struct addr peer;	/* address at the other end of the TLS connection */
	/* In the shard's table of addresses: counts the TLS connection, and the grant until the RDMA request comes. */
	struct peer_hold tls_hold, grant_hold;
	struct peer_hold tls_share, client_share;	/* in the server's table, with --max-per-address */

	/* resources the grant took */
	bool admitted;		/* counted in the admission count of the rail */
	uint64_t admitted_ns;
	bool has_psns;
	uint32_t client_psn, server_psn;
	uint32_t credits;
	uint32_t region;	/* REGION_NONE: none */
	struct frame_window window;	/* the client's; 0 bytes: none */
	bool write_imm;		/* WRITEs with immediate data count as messages */
	bool grant_sent;	/* the socket has taken the GRANT, or a part of it */
	bool oob;		/* connects out of band: owns its QP from HELLO on */
	struct frame_qp client_qp, server_qp;	/* with `oob` */
	uint8_t reads;		/* READs and atomics that the client may have outstanding */
	uint8_t session[FRAME_SESSION_BYTES];
	struct auth_keys keys;
	struct msg_tags *tags;	/* NULL: messages have no tags */

	/* The connection that was granted, over RDMA or a socket */
	struct link link;
	bool cm_connected;	/* the CM id must be disconnected before it is destroyed */
	bool qpn_lingers;	/* the client's CM may remember the QP's number and refuse it as stale */
	bool drain_overdue;	/* CLOSING: the first deadline has passed; only the device is still awaited */
	/* Since the liveness probe last checked: */
	bool heard;		/* a message came from the client */
	bool acked;		/* the client's device acknowledged something the server sent */
	bool doubted;		/* at the last check, nothing that was sent had been acknowledged */
	/* Over sockets: consecutive checks that found answers waiting, and bytes acknowledged at the first of them. */
	uint32_t waited_looks;
	uint64_t acked_bytes;
	uint64_t look;		/* number of the last look at the receive queue that found SENDs of this client */
	uint32_t in_flight;	/* SENDs unanswered when that look began, and those handled since */
	uint32_t owed;		/* credits of one-way SENDs, not returned yet */
	uint64_t owed_sequence;	/* sequence of the last message whose credit is owed */
	bool told;		/* a GOODBYE was sent because the server drains */
	bool left;		/* the client's GOODBYE was answered; closes when the answer has arrived */

	uint64_t started_ns;	/* when TCP accepted the connection */
	uint64_t accepted_ns;	/* when CONN_ST_ACCEPTING began */
};

/* Makes a connection in CONN_ST_TLS_ACCEPT, which owns the accepted socket from now on; on_ready(connection) is called
 * when the socket is ready for what TLS waits for. 0; -ENOBUFS: the shard has no free connection object; -EDQUOT: the
 * address has --max-per-address TLS connections; -ENOMEM. After an error the socket is closed. */
int conn_new(struct shard *s, int fd, const struct addr *peer, void (*on_ready)(void *conn), struct conn **out)
	__attribute__((warn_unused_result));

/* Makes a connection in CONN_ST_HELLO, which takes the TLS connection over from `c` and waits there for the client's
 * next HELLO. No frame may be left to write. 0; -ENOBUFS: the shard has no free connection object; -EDQUOT: another
 * TLS connection has just taken the address's last place of --max-per-address; -ENOMEM. After an error TLS is
 * closed. */
int conn_follow(struct conn *c, void (*on_ready)(void *conn), struct conn **out) __attribute__((warn_unused_result));

/* Queues the connection for boot_serve_next: its socket is ready or its deadline has passed. If it is queued already,
 * its socket is not watched until its turn comes. */
void conn_queue(struct conn *c);
/* A client has said GOODBYE: closes the connection when it has the answer, or after CLOSE_TIMEOUT_NS without it. */
void conn_await_leave(struct conn *c);
/* True if the state's deadline has passed, even if the connection is still queued or its timer has yet to call back. */
bool conn_is_overdue(const struct conn *c);
void conn_end_overdue(struct conn *c);

/* Moves the connection to a legal next state: changes its list and restarts its deadline. */
void conn_set_state(struct conn *c, enum conn_state to);

/* Marks the connection as working: CONN_ST_ACCEPTING becomes CONN_ST_LIVE, and TLS closes. No-op in other states. */
void conn_set_live(struct conn *c);

/* True if a connection may go from one state to the other. */
bool conn_edge_is_legal(enum conn_state from, enum conn_state to);

/* Ends the connection because of a failure, which is logged and counted under the stage of its state. */
void conn_fail(struct conn *c, enum fail_kind kind, int code);
/* Ends the connection without a failure. */
void conn_close(struct conn *c, enum close_reason reason);

/* Finishes the teardown of a closing connection if nothing is outstanding. Call it after every event that may have been
 * the last one. */
void conn_try_finish(struct conn *c);

/* Ends the connection at once, without waiting for the device or the peer: for a shard that no longer runs. The object
 * is free afterwards. */
void conn_abandon(struct conn *c);

/* Closes the TLS side only. */
void conn_close_tls(struct conn *c);
/* Hands the open TLS connection to the caller, who frees it. No frame may be left to write. `c` is neither queued nor
 * counted as a TLS connection afterwards. */
struct tls *conn_release_tls(struct conn *c);
/* Stops counting the TLS connection, because another object owns it from now on. */
void conn_uncount_tls(struct conn *c);

#endif
