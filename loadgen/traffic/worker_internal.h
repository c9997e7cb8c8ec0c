/* Inside of a worker: what its files share. worker.c runs the thread and its orders, connect.c makes
 * connections and ends them, traffic.c counts and times the workload's operations (open_loop.c has those begin that
 * are due), rma.c makes those on regions, lanes.c those that are striped over several connections, churn.c has clients
 * leave and come back. Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_WORKER_INTERNAL_H
#define RAMPART_LOADGEN_WORKER_INTERNAL_H

#include <stdatomic.h>

#include "common/rdma/ep.h"
#include "loadgen/traffic/lanes.h"
#include "loadgen/traffic/pace.h"
#include "loadgen/traffic/worker.h"
#include "loadgen/traffic/workload.h"

#define MAILBOX_MAX 16
#define NO_CLIENT UINT32_MAX

struct arena;
struct payload;
struct schedule;
struct trace;

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

/* When an operation was due, which in a closed loop is when it was sent. */
struct stream_times {
	uint64_t due_ns, sent_ns;
};

/* Operations of one kind, which end in the order they began. */
struct stream {
	uint64_t begun, done;
	uint64_t measured;		/* that ended while measuring */
	struct stream_times *times;	/* ring of `inflight` */
};

/* A slot of a client's region (rma.h). */
struct rma_slot {
	enum ibv_wr_opcode kind;	/* of the operation on it */
	bool written;
	uint32_t text;			/* with what */
	uint64_t atomic;		/* old value that an atomic is to find */
};

struct wclient {
	enum wclient_state state;
	struct client_conn *conn;	/* the one being made, or one that is live; NULL: none */
	uint32_t rail;			/* of the connection being made, or made last */
	uint32_t open;			/* connections of it that are not closed yet */
	struct tls_session *session;	/* to resume with; NULL: none yet */
	struct stream streams[WORKLOAD_STREAMS_MAX];
	struct ep_deferred refill;	/* begins new operations at the end of a batch */
	bool *ends;			/* ring: which of the requests on the region end an operation (rma.c) */
	uint64_t ends_in, ends_out;
	uint64_t atomics;		/* made so far */
	struct lane *lanes;		/* one for each rail; NULL: the workload uses `conn` alone */
	struct part *parts;
	double due_ns;			/* open loop: the next operation */
	bool scheduled;			/* and it is in the schedule; else it waits for one to end */
	uint64_t intended_ns;		/* when its connection should have begun */
	uint64_t begun_ns;		/* when the present attempt did */
	uint64_t retry_at_ns;
	uint64_t left_ns;		/* when it decided to leave */
	uint32_t attempts;
	uint32_t next;			/* in the list of those that wait to be tried again, or to go on */
	bool away;			/* left, and is not back yet */
};

/* A device that the worker's clients use, and the server's address there. All clients have a connection on each. */
struct rail {
	struct worker *worker;
	uint32_t index;
	struct client_config client;
	struct client_ctx *ctx;
	struct ep *ep;			/* the context's */
	/* In this step: */
	bool told;			/* that it was dropped by a client */
	bool works;			/* a client has connected on it */
	bool dark;			/* none has, and one has waited in vain: nobody else does */
	struct fail fail;		/* the last one on it */
};

static inline struct worker *rail_worker(void *rail)
{
	return ((struct rail *)rail)->worker;
}

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
	struct rail rails[RAILS_MAX];
	uint32_t n_rails;
	struct client_ctx *ctx;		/* the first rail's, and its endpoint */
	struct ep *ep;
	const struct workload *workload;
	struct lane_plan plans[WORKLOAD_STREAMS_MAX];
	struct lane *lanes;
	struct part *parts;
	struct workload_needs needs;
	struct payload *payload;
	struct arena *texts, *landing;	/* where the payload stands, and what comes back goes; NULL: no region */
	struct trace *trace;		/* NULL: no --trace */
	ev_async wake;
	ev_timer pace_timer, chunk, churn_timer, publish_timer;
	ev_prepare turn_end;
	bool publish_due;

	pthread_mutex_t lock;		/* of the mailbox */
	struct order mailbox[MAILBOX_MAX];
	uint32_t mailbox_n;
	uint64_t given;			/* main thread: number of the last order */
	_Atomic bool broken;

	struct order current;
	enum run_mode mode;
	bool abandoned;			/* the step's clients go on with what they have */
	bool measuring;
	struct wclient *clients;
	struct stream_times *rings;
	struct rma_slot *rma_slots;	/* NULL: the workload has none */
	bool *rma_ends;
	uint64_t bytes;			/* of an operation */
	uint64_t begin_ns;		/* of the operations that begin now */
	uint32_t active_of_all;		/* clients of all workers that send */
	struct schedule *schedule;	/* open loop; else NULL */
	int due_fd;			/* and its timer */
	ev_io due_io;
	bool beginning;			/* begin_due is on the stack */
	uint64_t random;		/* of the schedule */
	uint64_t batch, batch_ns;	/* the last batch of completions that was timed, and when */
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
bool connect_may_enter(void *rail, struct client_conn *c, enum stage stage);
void connect_on_live(void *rail, struct client_conn *c);
void connect_on_lost(void *rail, struct client_conn *c, const struct fail *fail);
void connect_on_closed(void *rail, struct client_conn *c, const struct fail *fail);
/* Clients that still wait for something fail. */
void connect_abandon(struct worker *w);

/* traffic.c */
void traffic_start_some(struct worker *w);	/* ORDER_TRAFFIC, in portions */
/* Begins what operations may begin, if this client is one that sends. */
void traffic_start_client(struct worker *w, struct wclient *wc);
/* A new connection has no operations. */
void traffic_reset(struct worker *w, struct wclient *wc);
bool traffic_is_idle(const struct wclient *wc);
/* For workloads: one operation begins; it is posted next. */
void traffic_begin(struct worker *w, struct wclient *wc, unsigned stream);
/* For workloads: the oldest `n` operations of the stream ended. May close the connection. */
void traffic_end(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n);
/* For workloads: a buffer. EP_NO_BUF: there is none, and the connection has failed. */
uint32_t traffic_buffer(struct worker *w, struct wclient *wc);
/* For workloads: the payload of the run's message at `message`, from byte `offset` on, if it is to be verified. */
void traffic_fill(struct worker *w, const struct wclient *wc, uint64_t number, uint8_t *message, uint32_t offset);
/* For workloads: a buffer for a message of the run's size, with its payload from byte `offset` on if it is to be
 * verified. EP_NO_BUF: there is none, and the connection has failed. */
uint32_t traffic_message(struct worker *w, struct wclient *wc, uint64_t number, uint32_t offset);
/* Payload of a message of the run's size, which begins at `offset` and ends before its tag. */
uint32_t traffic_payload_bytes(const struct worker *w, uint32_t offset);
/* The number a message carries: it tells clients apart. */
uint64_t traffic_sequence(const struct worker *w, const struct wclient *wc, uint64_t number);
/* The part of the payload's text for a client's operation. */
uint32_t traffic_pattern(const struct worker *w, const struct wclient *wc, uint64_t number);
/* With --verify: counts whether the data are those of operation `number`. */
void traffic_check(struct worker *w, const struct wclient *wc, uint64_t number, const uint8_t *data, uint32_t bytes);
void traffic_checked(struct worker *w, bool right);
void traffic_on_reply(void *rail, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes);
void traffic_on_credit(void *rail, struct client_conn *c, uint32_t credits, uint64_t sequence);
void traffic_on_ping(void *rail, struct client_conn *c, uint32_t number, const uint8_t *data, uint32_t bytes);
void traffic_on_pushed(void *rail, struct client_conn *c, uint64_t sequence);
void traffic_on_rma(void *rail, struct client_conn *c, uint32_t n);
void traffic_stop(struct worker *w);		/* ORDER_STOP */
/* Fulfils ORDER_STOP if nothing is missing any more. */
void traffic_maybe_stopped(struct worker *w);

/* open_loop.c */
int open_loop_new(struct worker *w, char *err, size_t err_size) __attribute__((warn_unused_result));
void open_loop_free(struct worker *w);
void open_loop_reset(struct worker *w);
void open_loop_start_client(struct worker *w, struct wclient *wc);
/* Begins what is due, as far as --inflight allows. */
void open_loop_begin(struct worker *w, struct wclient *wc);

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
