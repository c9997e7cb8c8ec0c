/* SPDX-License-Identifier: BSD-2-Clause */
/* Two TLS contexts and one connection of theirs over a socket pair, for the tests of tls.c and tls_ctx.c. */
#ifndef RAMPART_TESTS_UNIT_TLS_RIG_H
#define RAMPART_TESTS_UNIT_TLS_RIG_H

#include <signal.h>
#include <sys/socket.h>

#include "common/base/log.h"
#include "common/tls/tls.h"
#include "tests/unit/helpers/certs.h"
#include "tests/unit/helpers/unit.h"

#define TURNS_MAX 100

static struct certs certs;
static struct tls_ctx *server, *client;
static struct tls *at_server, *at_client;	/* the connection's ends */

static int tls_rig_group_set_up(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	log_init("test", LOG_LVL_ERROR);
	return certs_make(&certs);
}

static int tls_rig_group_tear_down(void **state)
{
	(void)state;
	certs_remove(&certs);
	return 0;
}

static void hang_up(void)
{
	tls_free(at_server);
	tls_free(at_client);
	at_server = at_client = NULL;
}

/* Frees the context, and the connection that it may have. */
static void end_ctx(struct tls_ctx **ctx)
{
	hang_up();
	tls_ctx_free(*ctx);
	*ctx = NULL;
}

static int tls_rig_tear_down(void **state)
{
	(void)state;
	end_ctx(&server);
	end_ctx(&client);
	return 0;
}

static struct tls_ctx *new_ctx(struct tls_config cfg)
{
	struct tls_ctx *ctx;
	char err[400] = "";

	if (tls_ctx_new(&cfg, &ctx, err, sizeof(err)))
		fail_msg("%s", err);
	return ctx;
}

static void connect_by(int type, struct tls_ctx *s, struct tls_ctx *c, struct tls_session *offer)
{
	int fds[2];

	hang_up();
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(tls_new(s, fds[0], NULL, &at_server), 0);
	assert_int_equal(tls_new(c, fds[1], "127.0.0.1", &at_client), 0);
	if (offer)
		tls_offer_session(at_client, offer);
}

static void handshake_turn(struct tls *t, enum tls_status *st)
{
	if (*st != TLS_DONE && *st != TLS_FAILED)
		*st = tls_handshake(t);
	(void)!tls_flush(t);
}

/* Until both ends are done or have failed. */
static void try_handshake(enum tls_status *here, enum tls_status *there)
{
	*here = *there = TLS_WANT_READ;
	for (int i = 0; i < TURNS_MAX; i++) {
		handshake_turn(at_client, here);
		handshake_turn(at_server, there);
	}
}

/* A byte from the server, and what it brings along. */
static void say_something(void)
{
	enum tls_status st;
	uint8_t byte = 0;
	size_t n = 0;

	assert_int_equal(tls_write(at_server, "x", 1, &n), TLS_DONE);
	assert_int_equal(n, 1);
	assert_int_equal(tls_flush(at_server), TLS_DONE);
	while ((st = tls_read(at_client, &byte, 1, &n)) == TLS_MORE)
		;
	assert_int_equal(st, TLS_DONE);
	assert_int_equal(byte, 'x');
}

/* Over the present connection; NULL if none came. */
static struct tls_session *ask_for_ticket(void)
{
	assert_int_equal(tls_send_ticket(at_server), 0);
	say_something();
	return tls_take_session(at_client);
}

#endif
