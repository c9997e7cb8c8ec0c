/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which of a worker's clients connects next, and when: by the window of pace.h, by --connect-rate, and by the
 * lists of waiting clients. clients.h handles the connections' events.
 * Owning thread: the worker's.
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
struct psn_registry;

/* A device that the worker's clients use, and the server's address there. Each client has --qps connections on each
 * rail. */
struct rail {
	struct connector *connector;
	uint32_t index;
	struct client_config client;
	struct client_ctx *ctx;
	struct psn_registry *psns;	/* PSNs of all live connections of this server and rail; NULL: without RDMA */
	/* Reset at the beginning of each step: */
	bool told;			/* it was logged that a client dropped this rail */
	bool told_refusal;		/* the server's explanation for refusing a client was logged */
	bool works;			/* a client has connected on it */
	bool dark;			/* a client timed out here and none has connected: no other client tries it */
	uint32_t unproved;		/* TLS handshakes in a row that failed to prove the server */
	struct fail fail;		/* the last failure on it */
};

/* Which clients may begin to connect. */
enum connect_mode {
	CONNECT_HOLD,			/* only clients that return or retry */
	CONNECT_START,			/* these, and the step's clients that have not started yet */
	CONNECT_GO_ON,			/* clients that return or retry; parked clients go on */
	CONNECT_CLOSE,			/* none: all connections are being closed */
};

struct connector {
	/* Over the run, set by the worker: */
	const struct loadgen_config *cfg;
	struct traffic *traffic;
	struct worker_stats *stats;
	struct ev_loop *loop;
	struct rail rails[RAILS_MAX];
	uint32_t n_rails;
	/* Called when a client that had left or been lost is connected again. */
	void (*on_back)(struct churn *churn, struct wclient *wc);
	struct churn *churn;

	/* In this step: */
	enum connect_mode mode;
	bool alone;			/* outside the steps: no TLS session is resumed or kept */
	bool abandoned;			/* clients make do with the connections they have */
	uint32_t target, of_all;	/* the step's clients of this worker, and of all workers */
	enum stage upto;		/* the last stage that a connection may enter */
	uint64_t start_ns;
	struct pace pace;
	ev_timer timer;			/* fires when the next client is due */
	bool beginning;			/* connector_more is on the stack */
	struct wclient_list retry;	/* clients that wait for another attempt, sorted by due time */
	struct wclient_list returning;	/* clients that return, or make their next connection, as the pace allows */
	struct wclient_list parked;
};

/* The rail of a client's lane. */
static inline struct rail *connector_rail(struct connector *k, uint32_t lane)
{
	return &k->rails[lane % k->n_rails];
}

/* Call after the worker has set its fields. */
void connector_init(struct connector *k);
/* Frees the TLS sessions of the clients. */
void connector_release(struct connector *k);

/* Begins a step, or connecting outside the steps (`alone`): `clients` connect up to stage `upto`. */
void connector_begin_step(struct connector *k, uint32_t clients, uint32_t of_all, enum stage upto, bool alone);
/* Lets parked clients go on, up to stage `upto`. */
void connector_go_on(struct connector *k, enum stage upto);
/* Call when an attempt on this rail has ended. After CONNECTOR_UNPROVED_MAX TLS handshakes in a row failed because of a
 * certificate, an alert or bytes that are not TLS, no connection begins any more in this step: this host must not load
 * a server that does not prove its identity. Timeouts do not count. */
#define CONNECTOR_UNPROVED_MAX 3
void connector_note_end(struct connector *k, uint32_t rail, const struct fail *fail);
/* True when every client that was to connect or go on has done so or has failed. */
bool connector_is_done(const struct connector *k);
/* Begins as many connections as the pace allows. */
void connector_more(struct connector *k);
/* Stops starting the step's clients. `mode` is CONNECT_HOLD or CONNECT_CLOSE. */
void connector_stop(struct connector *k, enum connect_mode mode);

/* Call when a client's first connection begins or its last one is gone: clears the client's operations. */
void connector_reset_client(struct wclient *wc);
/* Makes the connection of a client's lane as soon as the pace allows. */
void connector_connect(struct connector *k, struct wclient *wc, uint32_t lane);
/* Repeats the client's attempt after a pause. */
void connector_retry(struct connector *k, struct wclient *wc);
/* Reconnects a client that lost its connection, on rail 0 and not before `at_ns`. */
void connector_connect_at(struct connector *k, struct wclient *wc, uint64_t at_ns);
/* client_ops.may_enter; its argument is a struct rail. */
bool connector_may_enter(void *rail, struct client_conn *c, enum stage stage);

/* The only writer of a client's state; updates the counters of clients in each state. */
void connector_set_state(struct connector *k, struct wclient *wc, enum wclient_state to);

#endif
