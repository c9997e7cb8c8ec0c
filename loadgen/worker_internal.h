/* Inside of a worker: what its files share. worker.c runs the thread and its orders, connect.c makes
 * connections and ends them, traffic.c is the closed loop of messages, churn.c has clients leave and come
 * back. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_WORKER_INTERNAL_H
#define RAMPART_LOADGEN_WORKER_INTERNAL_H

#include <stdatomic.h>

#include "loadgen/pace.h"
#include "loadgen/worker.h"

#define MAILBOX_MAX 16
#define NO_CLIENT UINT32_MAX

struct payload;

enum run_mode { MODE_IDLE, MODE_TRAFFIC, MODE_STOPPING };

enum wclient_state {
	WCLIENT_NONE,		/* not connected, and not about to be */
	WCLIENT_CONNECTING,
	WCLIENT_PARKED,		/* waits before a stage for all the others */
	WCLIENT_WAITING,	/* its attempt failed; waits to be tried again */
	WCLIENT_LIVE,
	WCLIENT_LEAVING,	/* goes on purpose: waits for its replies, then for the end of its connection */
	WCLIENT_LOST,		/* was live, failed, and is being torn down */
};

struct wclient {
	enum wclient_state state;
	struct client_conn *conn;	/* NULL: none */
	struct tls_session *session;	/* to resume with; NULL: none yet */
	uint64_t next_send, next_reply;	/* numbers of messages */
	uint64_t *sent_ns;		/* ring of `inflight` */
	uint64_t measured;		/* replies while measuring */
	uint64_t intended_ns;		/* when its connection should have begun */
	uint64_t begun_ns;		/* when the present attempt did */
	uint64_t retry_at_ns;
	uint64_t left_ns;		/* when it decided to leave */
	uint32_t attempts;
	uint32_t next;			/* in the list of those that wait to be tried again, or to go on */
	bool away;			/* left, and is not back yet */
};

struct order {
	enum worker_order what;
	struct worker_task task;
	uint64_t number;
};

struct client_queue {
	uint32_t first, last;		/* NO_CLIENT: empty */
};

struct worker {
	struct worker_config cfg;
	struct ev_loop *loop;
	pthread_t thread;
	bool running;
	struct client_ctx *ctx;
	struct payload *payload;
	ev_async wake;
	ev_timer pace_timer, chunk, churn_timer;
	ev_prepare turn_end;

	pthread_mutex_t lock;		/* of the mailbox */
	struct order mailbox[MAILBOX_MAX];
	uint32_t mailbox_n;
	uint64_t given;			/* main thread: number of the last order */
	_Atomic bool broken;

	struct order current;
	enum run_mode mode;
	bool measuring;
	struct wclient *clients;
	uint64_t *rings;
	uint32_t target;		/* clients of the step */
	uint32_t step_clients;		/* and those of all workers */
	uint32_t active;		/* the first so many of them send */
	enum stage upto;		/* last stage a connection may enter */
	struct pace pace;
	bool connecting_more;		/* connect_more is on the stack */
	struct client_queue retry;	/* told to wait, and then to try again */
	struct client_queue returning;	/* left, and come back as soon as the pace allows */
	struct client_queue parked;
	uint32_t next_start;		/* client that starts sending, or closes, next */
	uint64_t connect_start_ns;
	uint64_t in_flight;
	uint32_t churn_cursor;		/* who leaves next */
	uint64_t churn_start_ns, churn_left;	/* since when, and how many left since */
	struct worker_stats stats;
};

/* worker.c: the present order is fulfilled. */
void worker_fulfil(struct worker *w);
/* worker.c: on_chunk comes back to the present order's next portion. */
void worker_run_chunks(struct worker *w);

/* connect.c */
/* The only writer of a client's state; keeps the counters of clients in each. */
void connect_set_state(struct worker *w, struct wclient *wc, enum wclient_state to);
void connect_begin(struct worker *w);	/* ORDER_CONNECT, after the step was reset */
void connect_go_on(struct worker *w);	/* ORDER_STAGE */
void connect_more(struct worker *w);
void connect_close_some(struct worker *w);	/* ORDER_DISCONNECT, in portions */
/* A client that left begins to come back. */
void connect_again(struct worker *w, struct wclient *wc);
bool connect_may_enter(void *worker, struct client_conn *c, enum stage stage);
void connect_on_live(void *worker, struct client_conn *c);
void connect_on_lost(void *worker, struct client_conn *c);
void connect_on_closed(void *worker, struct client_conn *c, const struct fail *fail);
/* Clients that still wait for something fail. */
void connect_abandon(struct worker *w);

/* traffic.c */
void traffic_start_some(struct worker *w);	/* ORDER_TRAFFIC, in portions */
void traffic_start_client(struct worker *w, struct wclient *wc);
void traffic_on_message(void *worker, struct client_conn *c, uint64_t sequence, const uint8_t *data,
			uint32_t bytes);
void traffic_stop(struct worker *w);		/* ORDER_STOP */
/* Fulfils ORDER_STOP if nothing is missing any more. */
void traffic_maybe_stopped(struct worker *w);

/* churn.c */
void churn_start(struct worker *w);
void churn_stop(struct worker *w);
void churn_more(struct worker *w);
void churn_on_timer(struct ev_loop *loop, ev_timer *t, int revents);
/* The last reply of a leaving client came, or none was under way. */
void churn_leave(struct wclient *wc);
/* A client that left is connected again. */
void churn_on_back(struct worker *w, struct wclient *wc);

#endif
