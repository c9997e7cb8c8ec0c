/* A worker thread of the load generator. See worker.h.
 *
 * Closed loop: each client keeps `inflight` messages under way and sends the next one when a reply
 * comes. Replies come in the order of the messages (one reliable connection), so a ring of send times
 * per client is enough.
 */
#include "loadgen/worker.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/ep.h"
#include "common/hist.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/qp_pool.h"
#include "loadgen/payload.h"

#define START_CHUNK 256		/* clients that start sending in one turn of the loop */
#define CLOSE_CHUNK 64
#define MAILBOX_MAX 16

enum run_mode { MODE_IDLE, MODE_TRAFFIC, MODE_STOPPING };

struct wclient {
	struct client_conn *conn;	/* NULL: not connected or gone */
	uint64_t next_send, next_reply;	/* numbers of messages */
	uint64_t *sent_ns;		/* ring of `inflight` */
	bool live;
	bool lost;			/* was live, failed, and is being torn down */
};

struct order {
	enum worker_order what;
	uint32_t clients;
	uint64_t number;
};

struct worker {
	struct worker_config cfg;
	struct ev_loop *loop;
	pthread_t thread;
	bool running;
	struct client_ctx *ctx;
	struct payload *payload;
	ev_async wake;
	ev_timer pace, chunk;
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
	uint32_t concurrency;
	uint32_t next_start;		/* client that starts sending, or closes, next */
	uint64_t connect_start_ns;
	uint64_t in_flight;
	struct worker_stats stats;
};

static void fulfil(struct worker *w)
{
	if (w->current.what == ORDER_NONE)
		return;
	w->current.what = ORDER_NONE;
	counter_set(&w->stats.fulfilled, w->current.number);
	w->cfg.on_progress(w->cfg.arg);
}

static void run_chunks(struct worker *w)
{
	ev_timer_stop(w->loop, &w->chunk);
	ev_timer_set(&w->chunk, 0., 0.);
	ev_timer_start(w->loop, &w->chunk);
}

/* --- connecting --- */

/* When the i-th connection of this worker should start; 0: as soon as one may. */
static uint64_t intended_start(const struct worker *w, uint64_t i)
{
	uint64_t rate = w->cfg.cfg->connect_rate;

	if (!rate)
		return 0;
	return w->connect_start_ns + (i * w->cfg.n_workers + w->cfg.index) * NS_PER_S / rate;
}

static void connect_more(struct worker *w)
{
	struct worker_stats *st = &w->stats;

	if (w->current.what != ORDER_CONNECT)
		return;
	while (counter_get(&st->started) < w->target && counter_get(&st->connecting) < w->concurrency) {
		uint64_t i = counter_get(&st->started), now = clock_now_ns();
		uint64_t intended = intended_start(w, i);
		struct wclient *wc = &w->clients[i];

		if (intended > now) {
			ev_timer_stop(w->loop, &w->pace);
			ev_timer_set(&w->pace, (double)(intended - now) / 1e9, 0.);
			ev_timer_start(w->loop, &w->pace);
			return;
		}
		wc->live = wc->lost = false;
		wc->next_send = wc->next_reply = 0;
		wc->conn = client_connect(w->ctx, intended ? intended : now, wc);
		if (!wc->conn)
			return; /* closed ones are freed at the turn's end, which comes back here */
		counter_add(&st->started, 1);
		counter_add(&st->connecting, 1);
	}
	if (counter_get(&st->started) == w->target && counter_get(&st->connecting) == 0)
		fulfil(w);
}

static void on_pace(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)revents;
	connect_more(t->data);
}

static void record_stages(struct worker *w, const struct client_conn *c)
{
	for (int i = 0; i < STAGE_TIMED; i++)
		hist_record(w->stats.stages[i], c->stage_ns[i]);
	hist_record(w->stats.total, c->total_ns);
}

static void on_live(void *arg, struct client_conn *c)
{
	struct worker *w = arg;
	struct wclient *wc = c->user;
	struct worker_stats *st = &w->stats;

	if (c->grant.credits < w->cfg.cfg->inflight) {
		/* Fewer credits than the server said it gives: not what was to be measured. */
		client_fail(c, FAIL_PROTOCOL, PROTO_CREDITS);
		return;
	}
	wc->live = true;
	record_stages(w, c);
	counter_set(&st->connecting, counter_get(&st->connecting) - 1);
	counter_add(&st->live, 1);
	if (w->cfg.cfg->verify)
		counter_add(&st->psn_verified, 1);
	connect_more(w);
}

/* --- traffic --- */

static uint64_t sequence_of(const struct worker *w, const struct wclient *wc, uint64_t n)
{
	uint64_t id = (uint64_t)w->cfg.index << 20 | (uint64_t)(wc - w->clients);

	return id << 32 | (n & UINT32_MAX);
}

static void send_one(struct worker *w, struct wclient *wc)
{
	uint32_t buf = ep_buf_get(w->ctx->ep);
	uint32_t bytes = (uint32_t)w->cfg.cfg->message_bytes;
	uint64_t n = wc->next_send;

	if (buf == EP_NO_BUF) {
		client_fail(wc->conn, FAIL_ERRNO, ENOBUFS);
		return;
	}
	if (w->cfg.cfg->verify)
		payload_fill(w->payload, n, ep_buf(w->ctx->ep, buf) + MSG_HEADER_BYTES,
			     bytes - MSG_HEADER_BYTES);
	wc->next_send++;
	w->in_flight++;
	wc->sent_ns[n % w->cfg.cfg->inflight] = clock_now_ns();
	client_send(wc->conn, buf, bytes, sequence_of(w, wc, n));
}

static void maybe_stopped(struct worker *w)
{
	if (w->current.what == ORDER_STOP && w->in_flight == 0)
		fulfil(w);
}

static void on_message(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data,
		       uint32_t bytes)
{
	struct worker *w = arg;
	struct wclient *wc = c->user;
	uint64_t n = wc->next_reply, now = clock_now_ns();

	if (sequence != sequence_of(w, wc, n) || bytes != w->cfg.cfg->message_bytes ||
	    (w->cfg.cfg->verify && !payload_is(w->payload, n, data + MSG_HEADER_BYTES,
					       bytes - MSG_HEADER_BYTES))) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	wc->next_reply++;
	w->in_flight--;
	counter_add(&w->stats.messages, 1);
	if (w->measuring) {
		counter_add(&w->stats.messages_measured, 1);
		hist_record(w->stats.response, now - wc->sent_ns[n % w->cfg.cfg->inflight]);
	}
	if (w->mode == MODE_TRAFFIC)
		send_one(w, wc);
	else
		maybe_stopped(w);
}

static void start_some(struct worker *w)
{
	uint32_t end = w->next_start + START_CHUNK;

	for (; w->next_start < w->target && w->next_start < end; w->next_start++) {
		struct wclient *wc = &w->clients[w->next_start];

		for (uint64_t k = 0; wc->live && k < w->cfg.cfg->inflight; k++)
			send_one(w, wc);
	}
	if (w->next_start < w->target)
		run_chunks(w);
	else
		fulfil(w);
}

/* --- the end of a step --- */

static void on_lost(void *arg, struct client_conn *c)
{
	struct worker_stats *st = &((struct worker *)arg)->stats;
	struct wclient *wc = c->user;

	if (!wc->live)
		return;
	wc->live = false;
	wc->lost = true;
	counter_set(&st->live, counter_get(&st->live) - 1);
	counter_add(&st->leaving, 1);
	counter_add(&st->dropped, 1);
}

/* True when no connection of the step is left. */
static bool all_gone(const struct worker_stats *st)
{
	return counter_get(&st->live) + counter_get(&st->leaving) + counter_get(&st->connecting) == 0;
}

static void on_closed(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct worker *w = arg;
	struct wclient *wc = c->user;
	struct worker_stats *st = &w->stats;

	if (fail->kind != FAIL_NONE)
		fail_table_count(&st->failures, fail);
	w->in_flight -= wc->next_send - wc->next_reply;
	if (wc->live) {
		counter_set(&st->live, counter_get(&st->live) - 1);
	} else if (wc->lost) {
		counter_set(&st->leaving, counter_get(&st->leaving) - 1);
	} else {
		counter_set(&st->connecting, counter_get(&st->connecting) - 1);
		counter_add(&st->failed, 1);
	}
	wc->conn = NULL;
	wc->live = wc->lost = false;
	wc->next_send = wc->next_reply = 0;
	connect_more(w);
	maybe_stopped(w);
	if (w->current.what == ORDER_DISCONNECT && all_gone(st))
		fulfil(w);
}

static void close_some(struct worker *w)
{
	uint32_t end = w->next_start + CLOSE_CHUNK;

	for (; w->next_start < w->target && w->next_start < end; w->next_start++)
		if (w->clients[w->next_start].conn)
			client_close(w->clients[w->next_start].conn);
	if (w->next_start < w->target)
		run_chunks(w);
	else if (all_gone(&w->stats))
		fulfil(w);
}

static void on_chunk(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)loop;
	(void)revents;
	if (w->current.what == ORDER_TRAFFIC)
		start_some(w);
	else if (w->current.what == ORDER_DISCONNECT)
		close_some(w);
}

static void abandon(struct worker *w)
{
	for (uint32_t i = 0; i < w->target; i++) {
		struct wclient *wc = &w->clients[i];

		if (wc->conn && (!wc->live || wc->next_send != wc->next_reply))
			client_fail(wc->conn, FAIL_TIMEOUT, 0);
	}
}

static void reset_step(struct worker *w, uint32_t clients)
{
	struct worker_stats *st = &w->stats;

	counter_set(&st->started, 0);
	counter_set(&st->failed, 0);
	counter_set(&st->dropped, 0);
	counter_set(&st->messages, 0);
	counter_set(&st->messages_measured, 0);
	counter_set(&st->measure_start_ns, 0);
	counter_set(&st->measure_end_ns, 0);
	counter_set(&st->psn_verified, 0);
	fail_table_reset(&st->failures);
	for (int i = 0; i < STAGE_TIMED; i++)
		hist_reset(st->stages[i]);
	hist_reset(st->total);
	hist_reset(st->response);
	w->target = clients;
	w->mode = MODE_IDLE;
	w->measuring = false;
	w->connect_start_ns = clock_now_ns();
}

static void stop_traffic(struct worker *w)
{
	if (w->measuring)
		counter_set(&w->stats.measure_end_ns, clock_now_ns());
	w->measuring = false;
	w->mode = MODE_STOPPING;
	maybe_stopped(w);
}

static void execute(struct worker *w, const struct order *o)
{
	w->current = *o;
	switch (o->what) {
	case ORDER_CONNECT:
		reset_step(w, o->clients);
		connect_more(w);
		break;
	case ORDER_TRAFFIC:
		w->mode = MODE_TRAFFIC;
		w->next_start = 0;
		start_some(w);
		break;
	case ORDER_MEASURE:
		counter_set(&w->stats.measure_start_ns, clock_now_ns());
		w->measuring = true;
		fulfil(w);
		break;
	case ORDER_STOP:
		stop_traffic(w);
		break;
	case ORDER_ABANDON:
		abandon(w);
		fulfil(w);
		break;
	case ORDER_DISCONNECT:
		w->mode = MODE_IDLE;
		w->next_start = 0;
		ev_timer_stop(w->loop, &w->pace);
		close_some(w);
		break;
	case ORDER_QUIT:
		pump_break(&w->ctx->pump);
		break;
	case ORDER_NONE:
		break;
	}
}

static void on_wake(struct ev_loop *loop, ev_async *a, int revents)
{
	struct worker *w = a->data;
	struct order orders[MAILBOX_MAX];
	uint32_t n;

	(void)loop;
	(void)revents;
	pthread_mutex_lock(&w->lock);
	n = w->mailbox_n;
	memcpy(orders, w->mailbox, n * sizeof(orders[0]));
	w->mailbox_n = 0;
	pthread_mutex_unlock(&w->lock);
	for (uint32_t i = 0; i < n; i++)
		execute(w, &orders[i]);
}

static void on_turn_end(struct ev_loop *loop, ev_prepare *p, int revents)
{
	struct worker *w = p->data;
	struct worker_stats *st = &w->stats;
	struct qp_pool_counts q;
	struct ep_counts e;
	struct timespec ts;

	(void)loop;
	(void)revents;
	connect_more(w);
	qp_pool_get_counts(w->ctx->qps, &q);
	ep_get_counts(w->ctx->ep, &e);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	counter_set(&st->cpu_ns, (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec);
	counter_set(&st->in_flight, w->in_flight);
	counter_set(&st->qps, q.qps);
	counter_set(&st->cqs, e.cqs);
	counter_set(&st->mrs, e.mrs);
	counter_set(&st->pinned_bytes, e.pinned_bytes);
	counter_set(&st->bufs_missing, e.bufs_total - e.bufs_posted - e.bufs_free);
	counter_set(&st->bytes_sent, w->ctx->bytes_sent);
	counter_set(&st->bytes_received, w->ctx->bytes_received);
}

static const struct client_ops ops = {
	.on_live = on_live,
	.on_message = on_message,
	.on_lost = on_lost,
	.on_closed = on_closed,
};

static void start_watchers(struct worker *w)
{
	ev_async_init(&w->wake, on_wake);
	w->wake.data = w;
	ev_async_start(w->loop, &w->wake);
	ev_timer_init(&w->pace, on_pace, 0., 0.);
	w->pace.data = w;
	ev_timer_init(&w->chunk, on_chunk, 0., 0.);
	w->chunk.data = w;
	ev_prepare_init(&w->turn_end, on_turn_end);
	/* After the connections' own turn end, which frees what closed. */
	ev_set_priority(&w->turn_end, EV_MINPRI);
	w->turn_end.data = w;
	ev_prepare_start(w->loop, &w->turn_end);
}

static int make_stats(struct worker_stats *st)
{
	int ret = hist_new(&st->total);

	if (!ret)
		ret = hist_new(&st->response);
	for (int i = 0; i < STAGE_TIMED && !ret; i++)
		ret = hist_new(&st->stages[i]);
	return ret;
}

static int make_clients(struct worker *w)
{
	uint32_t n = w->cfg.client.max_conns;
	uint64_t inflight = w->cfg.cfg->inflight;

	w->clients = calloc(n, sizeof(*w->clients));
	w->rings = calloc(n * inflight, sizeof(*w->rings));
	if (!w->clients || !w->rings)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		w->clients[i].sent_ns = &w->rings[i * inflight];
	return payload_new(w->cfg.cfg->seed, w->cfg.cfg->message_bytes, &w->payload);
}

int worker_new(const struct worker_config *cfg, struct worker **out, char *err, size_t err_size)
{
	struct worker *w = calloc(1, sizeof(*w));
	int ret = -ENOMEM;

	snprintf(err, err_size, "this machine is out of memory");
	if (!w)
		return ret;
	w->cfg = *cfg;
	w->concurrency = (uint32_t)((cfg->cfg->connect_concurrency + cfg->n_workers - 1) / cfg->n_workers);
	pthread_mutex_init(&w->lock, NULL);
	w->loop = ev_loop_new(EVFLAG_AUTO);
	if (w->loop)
		ret = make_stats(&w->stats);
	if (!ret)
		ret = make_clients(w);
	if (!ret)
		ret = client_ctx_new(&w->cfg.client, &ops, w, w->loop, &w->ctx, err, err_size);
	if (ret) {
		worker_free(w);
		return ret;
	}
	start_watchers(w);
	*out = w;
	return 0;
}

static void *run(void *arg)
{
	struct worker *w = arg;

	if (pump_run(&w->ctx->pump)) {
		atomic_store(&w->broken, true);
		w->cfg.on_progress(w->cfg.arg);
	}
	return NULL;
}

int worker_start(struct worker *w)
{
	int ret = pthread_create(&w->thread, NULL, run, w);

	w->running = ret == 0;
	return -ret;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	if (w->running)
		pthread_join(w->thread, NULL);
	client_ctx_free(w->ctx);
	if (w->loop)
		ev_loop_destroy(w->loop);
	for (int i = 0; i < STAGE_TIMED; i++)
		hist_free(w->stats.stages[i]);
	hist_free(w->stats.total);
	hist_free(w->stats.response);
	payload_free(w->payload);
	pthread_mutex_destroy(&w->lock);
	free(w->rings);
	free(w->clients);
	free(w);
}

void worker_give(struct worker *w, enum worker_order order, uint32_t clients)
{
	pthread_mutex_lock(&w->lock);
	if (w->mailbox_n < MAILBOX_MAX)
		w->mailbox[w->mailbox_n++] = (struct order){ order, clients, ++w->given };
	pthread_mutex_unlock(&w->lock);
	ev_async_send(w->loop, &w->wake);
}

bool worker_is_done(const struct worker *w)
{
	return counter_get(&w->stats.fulfilled) == w->given;
}

bool worker_is_broken(const struct worker *w)
{
	return atomic_load(&((struct worker *)w)->broken);
}

const struct worker_stats *worker_stats(const struct worker *w)
{
	return &w->stats;
}

const struct dev *worker_dev(const struct worker *w)
{
	return &w->ctx->dev;
}
