/* SPDX-License-Identifier: BSD-2-Clause */
/* A client context on the fake device, driven turn by turn, and a scripted server: real TLS over
 * loopback, and a connection manager that answers when the test says so. */
#ifndef RAMPART_TESTS_UNIT_CLIENT_RIG_H
#define RAMPART_TESTS_UNIT_CLIENT_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "client/internal.h"
#include "tests/unit/helpers/certs.h"

struct client_rig {
	struct certs certs;
	struct client_config cfg;
	struct ev_loop *loop;
	ev_timer tick;		/* bounds every wait: 20 ms */
	struct client_ctx *ctx;
	uint32_t bufs_free, bufs_posted;	/* when it was started */

	/* what the user was told */
	int live, messages, pushed, one_sided, draining, lost, closed;
	uint32_t pushed_bytes;		/* over a socket */
	uint64_t sequence;
	uint32_t bytes;
	struct fail fail;
	struct client_conn *closed_conn;
	char refuse_text[FRAME_REFUSE_TEXT_MAX + 1];
	/* Asked before each stage but the first; NULL: the context has no such callback. */
	bool (*may_enter)(struct client_conn *c, enum stage stage);
	struct tls_session **session;	/* of the connections that client_at makes; NULL: none */
	const struct frame_window *window;	/* theirs; NULL: none */
	/* called besides; may be NULL */
	void (*on_live)(struct client_conn *c);
	void (*on_message)(struct client_conn *c);
	void (*on_one_sided)(struct client_conn *c);
	void (*on_lost)(struct client_conn *c);
	void (*on_closed)(struct client_conn *c);

	/* the scripted server */
	int listen_fd;
	struct tls_ctx *server_ctx;
	struct tls *tls;
	struct frame_hello hello;
	bool has_hello;		/* of this TLS connection */
	struct frame_grant grant;
	struct auth_keys keys;
	uint32_t server_qpn;
};
extern struct client_rig cli;

int client_rig_group_setup(void **state);
int client_rig_group_teardown(void **state);
/* Fakes reset, server listening; configuration for 2 connections of depth 4 with messages of 512
 * bytes, a region, and read-back of PSNs; no context yet. */
int client_rig_init(void **state);
void client_rig_start(void);
/* Frees the context if there is one; the fakes check. */
int client_rig_stop(void **state);

/* Stops it, and sets it up for another case of the same test. */
void client_rig_again(void **state);

void client_turn(void);
void client_wait(void);	/* for an event; at most 20 ms */
#define client_until(condition) \
	do { \
		for (int turns_ = 0; turns_ < 200 && !(condition); turns_++) \
			client_wait(); \
		assert_true(condition); \
	} while (0)
/* As if the deadline had passed, then turns until the user was told. */
void client_expire(struct client_conn *c);
/* The server answers the disconnect, if there was one; then the user was told. */
void client_finish_disconnect(struct client_conn *c);
/* Every connection object free and every pool as at the start; quarantines are ended first. */
void client_assert_all_back(void);
/* The connection is over with this failure, told once. */
void client_assert_failed(enum stage stage, enum fail_kind kind, int code);

/* A turn, then a wait of at most 10 ms until the server has something to read. */
void script_turn(void);
/* The scripted server's steps. */
void script_accept(void);	/* TCP only */
void script_handshake(void);	/* until both sides are done */
bool script_read_hello(void);	/* into cli.hello; false if the client closed */
void script_send(const void *bytes, size_t n);
void script_default_grant(void);	/* fills cli.grant */
void script_grant(void);	/* sends cli.grant, with a ticket if it says so, and derives keys */
void script_hang_up(void);
/* The private data of a right reply to the client's request. */
void script_proof(struct client_conn *c, uint8_t data[196]);
void script_response(struct client_conn *c, const uint8_t *data, uint8_t bytes);
/* A reply of `bytes` with this sequence arrives. */
bool script_reply(struct client_conn *c, uint32_t bytes, uint64_t sequence);

/* Makes the event happen that the connection waits for in this state. */
void client_trigger(struct client_conn *c, enum client_state state);
/* Takes it as far as `state` (TCP_CONNECT to LIVE), from wherever it is. */
void client_drive(struct client_conn *c, enum client_state state);
/* A new connection, taken as far as `state`; starts the context if there is none. */
struct client_conn *client_at(enum client_state state);

/* client_send of an ECHO of `bytes`, header included. */
void client_rig_send(struct client_conn *c, uint32_t bytes, uint64_t sequence);
/* client_rma of one signalled request from or to `buf`. */
int client_rig_rma(struct client_conn *c, enum ibv_wr_opcode opcode, uint32_t buf, uint32_t bytes, uint64_t offset);

#endif
