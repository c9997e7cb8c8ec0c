/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of a worker's clients begins to connect next, and when: the window of connections being made (pace.h), the rate
 * (--connect-rate), and the lists of clients that wait. What becomes of the connections is in clients.h. Owning thread:
 * the worker's.
 */
#ifndef RAMPART_LOADGEN_CONNECTOR_H
#define RAMPART_LOADGEN_CONNECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "client/client.h"
#include "common/base/rails.h"
#include "loadgen/traffic/traffic.h"
#include "loadgen/worker/pace.h"

struct churn;
struct connector;

/* A device that the worker's clients use, and the server's address there. All clients have a connection on each. */
struct rail {
	struct connector *connector;
	uint32_t index;
	struct client_config client;
	struct client_ctx *ctx;
	/* In this step: */
	bool told;			/* a client that dropped it was logged */
	bool told_refusal;		/* and the server's words to one that needs more than it has */
	bool works;			/* a client has connected on it */
	bool dark;			/* one has waited in vain, and none has connected: no other client tries */
	uint32_t unproved;		/* TLS handshakes in a row that failed to prove the server */
	struct fail fail;		/* the last failure on it */
};

/* What clients may begin. */
enum connect_mode {
	CONNECT_HOLD,			/* those that come back, or try again */
	CONNECT_START,			/* the step's clients too */
	CONNECT_GO_ON,			/* a parked one goes on, too */
	CONNECT_CLOSE,			/* nothing: all connections are being closed */
};

struct connector {
	/* Over the run, set by the worker: */
	const struct loadgen_config *cfg;
	struct traffic *traffic;
	struct worker_stats *stats;
	struct ev_loop *loop;
	struct rail rails[RAILS_MAX];
	uint32_t n_rails;
	/* A client that left, or was lost, is connected again. */
	void (*on_back)(struct churn *churn, struct wclient *wc);
	struct churn *churn;

	/* In this step: */
	enum connect_mode mode;
	bool alone;			/* outside the steps: no TLS session is resumed or kept */
	bool abandoned;			/* clients go on with the connections that they have */
	uint32_t target, of_all;	/* clients of the step, and those of all workers */
	enum stage upto;		/* the last stage that a connection may enter */
	uint64_t start_ns;
	struct pace pace;
	ev_timer timer;			/* until the next client is due */
	bool beginning;			/* connector_more is on the stack */
	struct wclient_list retry;	/* wait to be tried again, the first that is due first */
	struct wclient_list returning;	/* left and come back, or go on with their next rail, as soon as the pace allows */
	struct wclient_list parked;
};

/* After the worker's part is set. */
void connector_init(struct connector *k);
/* Frees the TLS sessions of the clients. */
void connector_release(struct connector *k);

/* A step begins, or what is `alone`: `clients` connect, up to a stage. */
void connector_begin_step(struct connector *k, uint32_t clients, uint32_t of_all, enum stage upto, bool alone);
/* Parked clients go on, up to the next stage. */
void connector_go_on(struct connector *k, enum stage upto);
/* To be called when a connection on this rail has ended. Once CONNECTOR_UNPROVED_MAX in a row have failed in the TLS handshake, because
 * of a certificate, an alert or bytes that are not TLS, no other begins in this step: this host must not load a server that does
 * not prove itself. Timeouts do not count. */
#define CONNECTOR_UNPROVED_MAX 3
void connector_note_end(struct connector *k, uint32_t rail, const struct fail *fail);
/* True when every client that was to connect, or to go on, is there or has failed. */
bool connector_is_done(const struct connector *k);
/* Begins as many connections as the pace allows. */
void connector_more(struct connector *k);
/* No client of the step begins any more: CONNECT_HOLD or CONNECT_CLOSE. */
void connector_stop(struct connector *k, enum connect_mode mode);

/* The client has no operations: its first connection begins, or its last one is gone. */
void connector_reset_client(struct wclient *wc);
/* The client connects on a rail, as soon as the pace allows. */
void connector_connect(struct connector *k, struct wclient *wc, uint32_t rail);
/* The client's attempt is repeated after a while. */
void connector_retry(struct connector *k, struct wclient *wc);
/* The client, whose connection was lost, connects again on its first rail at this time. */
void connector_connect_at(struct connector *k, struct wclient *wc, uint64_t at_ns);
/* client_ops.may_enter, of a struct rail. */
bool connector_may_enter(void *rail, struct client_conn *c, enum stage stage);

/* The only writer of a client's state; keeps the counters of clients in each. */
void connector_set_state(struct connector *k, struct wclient *wc, enum wclient_state to);

#endif
