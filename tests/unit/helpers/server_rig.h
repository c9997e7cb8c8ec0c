/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole shard of the server on the fake device, driven turn by turn by the test, and a client
 * that talks real TLS to it over loopback. Neither the shard's thread nor the
 * registrar's is started: the rig's pthread_create does nothing (linked with --wrap). */
#ifndef RAMPART_TESTS_UNIT_SERVER_RIG_H
#define RAMPART_TESTS_UNIT_SERVER_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "common/wire/auth.h"
#include "common/wire/frame.h"
#include "server/shard/shard.h"
#include "tests/unit/helpers/certs.h"

struct control;
struct json_t;
struct tls;
struct tls_session;

struct server_rig {
	struct certs certs;
	struct server_config cfg;
	struct server server;
	struct shard *shard, *shards[2];
	/* The main thread's side, which has a turn after each of the shard's, unless `main_sleeps`. */
	struct ev_loop *main_loop;
	struct control *control;
	ev_async wake_main;
	bool main_sleeps;
	ev_timer tick;		/* bounds every wait: 20 ms */
	uint32_t bufs_posted, bufs_free;	/* when it was started */
	uint32_t silent_ms;	/* what TCP says of every connection: neither end has sent anything for so long */
	uint32_t untold_ms;	/* the server has not, if that is longer */
	bool tcp_is_true;	/* it says what is true instead */
	uint64_t acked_bytes;	/* what TCP says that every peer has acknowledged */
	bool registrar_stands;	/* memory is not registered at the end of a turn, as it is else */
	/* of peers to come */
	bool peers_resume;	/* they keep TLS sessions */
	bool peers_certified;	/* they show a certificate */
	const char *peers_from;	/* they connect from this address; NULL: 127.0.0.1 */
	uint16_t peers_depth;	/* SENDs that they want to have in flight */
	struct tls_session *offer;	/* they offer this one; the test's; NULL: none */
};
extern struct server_rig srv;

int server_rig_group_setup(void **state);	/* certificates */
int server_rig_group_teardown(void **state);
/* Fakes reset; configuration for 4 clients with 4 credits, messages up to 1024 bytes, regions of
 * 4096 and 16 handshakes; nothing started. */
int server_rig_init(void **state);
void server_rig_start(void);
/* Stops the shard if it runs; the fakes check. */
int server_rig_stop(void **state);
/* Both: the test begins with a server that has started, and everything must be back at its end. */
int server_rig_init_started(void **state);
int server_rig_stop_all_back(void **state);
#define SERVED_TEST(f) TEST_WITH(f, server_rig_init_started, server_rig_stop_all_back)
/* Stops, and everything is as after server_rig_init: for the next of several cases in one test. */
void server_rig_again(void **state);

void server_turn(void);
void server_turns(int n);
void server_wait(void);	/* for an event; at most 20 ms */
#define server_until(condition) \
	do { \
		for (int turns_ = 0; turns_ < 200 && !(condition); turns_++) \
			server_wait(); \
		assert_true(condition); \
	} while (0)
/* Tells the server to stop. Its only live connection has been told goodbye afterwards. */
void server_drain(void);
/* The shard's own thread would end now. */
bool server_is_over(void);
/* As if this much time had passed for the queue pairs that rest. */
void server_rest(uint64_t ns);
/* As if the connection's deadline had passed, then a turn. */
void server_expire(struct conn *c);
/* The only connection in this state; fails the test unless there is exactly one. */
struct conn *server_only(enum conn_state state);
uint32_t server_n(enum conn_state state);
uint64_t server_refused(enum refuse_code code);
/* How many connections and control sessions were closed for this reason. */
uint64_t server_closed(enum close_reason reason);
/* Control sessions, also those that are on their way to the main thread. */
uint32_t server_controls(void);
/* Count of the failure in the shard's table. */
uint64_t server_failed(enum stage stage, enum fail_kind kind, int code);
/* From here on what is logged, warnings too, is not shown but kept. */
void server_log_keep(void);
/* Ends that. Fails unless it is a line, or one for each second that passed. */
void server_log_assert_a_line_a_second(void);
/* Every connection free, every pool as after the start; quarantines are ended first. */
void server_assert_all_back(void);

struct peer {
	struct tls_ctx *ctx;
	struct tls *tls;
	struct addr local;		/* of the TLS connection */
	struct addr rdma;		/* claimed source of the RDMA connection */
	uint32_t psn, qpn;
	uint8_t version;		/* of the frames that it expects; FRAME_VERSION unless a test says otherwise */
	struct frame_grant grant;
	struct frame_refuse refuse;
	struct auth_keys keys;
	struct rdma_cm_id *id;		/* the server's */
	struct ibv_qp *qp;		/* the server's */
	uint64_t sequence;
	uint32_t disconnects;		/* the server's, before this peer was live */
};

/* TCP only; the server has accepted afterwards. */
void peer_connect(struct peer *p);
void peers_connect(struct peer *p, int n);
/* The same without TCP: over a socket pair, which delivers at once and can be filled up. */
void peer_connect_pair(struct peer *p);
/* TLS handshake without a client certificate. True if it was completed on this side. */
bool peer_handshake(struct peer *p);
/* Both: connects, and the handshake succeeds. */
void peer_shake_hands(struct peer *p);
void peer_send(struct peer *p, const void *bytes, size_t n);
/* Sends the frame and expects a refusal whose words contain `word`, after which the server says goodbye. */
void peer_assert_refused(struct peer *p, const void *frame, size_t n, enum refuse_code code, const char *word);
size_t peer_encode_hello(uint8_t *buf, uint32_t message, uint16_t depth, uint16_t features, uint32_t psn);
/* A peer that connects and whose HELLO is refused so. */
void peer_refused_hello(uint32_t message, uint16_t depth, uint16_t features, uint32_t psn, enum refuse_code code,
			const char *word);
/* The next frame into `buf` (room for FRAME_REPORT_BYTES_MAX): its length, or 0 when the server
 * closed. */
uint32_t peer_read_frame(struct peer *p, uint8_t *buf);
/* The next frame, which is a REPORT: its JSON, a new reference. */
struct json_t *peer_read_report(struct peer *p);
void peer_close(struct peer *p);
void peer_abort(struct peer *p);	/* without close_notify */
void peers_abort(struct peer *p, int n);
void peer_forget(struct peer *p);	/* without a turn of the server, which may have stopped */

/* The window of a peer that asks for that feature. */
#define PEER_WINDOW_ADDR UINT64_C(0x7e0000002000)
#define PEER_WINDOW_BYTES 8192u
#define PEER_WINDOW_RKEY 0xfeed

/* How a peer describes its queue pair out of band: its address is p->rdma. */
struct frame_qp peer_qp(const struct peer *p);
/* HELLO as usual with p->psn. */
void peer_hello(struct peer *p, uint16_t features);
/* Connects by a socket pair that is full when the GRANT is due: the server's object, which waits to write it. */
struct conn *peer_unwritten_grant(struct peer *p, uint16_t features);
/* Reads the answer: FRAME_GRANT (keys derived) or FRAME_REFUSE; 0 when the server closed. */
int peer_answer(struct peer *p);
/* Sends HELLO and reads the answer. */
int peer_say_hello(struct peer *p, uint16_t features);
/* All of it from the connection to the answer. */
int peer_ask(struct peer *p, uint16_t features);
/* The same; the answer is a GRANT, and TLS stays open. */
void peer_ask_grant(struct peer *p, uint16_t features);
/* All of it up to the GRANT; the TLS side is closed in order afterwards. */
void peer_get_grant(struct peer *p, uint16_t features);
/* The private data of a right request. */
void peer_proof(const struct peer *p, uint8_t data[56]);
/* A connection request with this private data; the server has handled it afterwards. */
void peer_request(struct peer *p, const uint8_t data[56]);
/* Both: requests the connection with a right proof. */
void peer_prove(struct peer *p);
/* The code in the server's last rejection of a connection request. */
enum refuse_code peer_reject_code(void);
/* An event of its connection, which the server has handled afterwards. */
void peer_cm_event(struct peer *p, enum rdma_cm_event_type type, int status);
void peer_establish(struct peer *p);
void peer_disconnect(struct peer *p);
/* Goes on after peer_get_grant, up to ESTABLISHED. */
void peer_finish(struct peer *p);
/* Connects from the start up to ESTABLISHED. */
void peer_go_live(struct peer *p, uint16_t features);
void peers_go_live(struct peer *p, int n);

/* Starts the server, with one peer that is at its HELLO, has its GRANT, has asked to connect, or is live. Each returns
 * the server's object of it. */
struct conn *server_start_hello(struct peer *p);
struct conn *server_start_granted(struct peer *p, uint16_t features);
struct conn *server_start_accepting(struct peer *p, uint16_t features);
struct conn *server_start_live(struct peer *p, uint16_t features);
/* Starts the server, with as many live peers as it takes. */
void server_start_full(struct peer p[4]);

/* A message of `bytes`, header included. False if no receive was posted. No turn is taken. */
bool peer_message(struct peer *p, uint32_t bytes);
/* A live peer disconnects; everything must be back afterwards. */
void peer_leave(struct peer *p);
/* The server has ended the only live connection for that reason; the peer leaves. */
void peer_assert_dropped(struct peer *p, enum fail_kind kind, int code);

#endif
