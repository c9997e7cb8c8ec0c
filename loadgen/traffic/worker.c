/* A worker's thread, its orders and what it publishes. See worker.h and worker_internal.h. */
#include "loadgen/traffic/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/rdma/arena.h"
#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/hist/hist.h"
#include "common/rdma/pump.h"
#include "common/tls/tls.h"
#include "loadgen/traffic/lanes.h"
#include "loadgen/traffic/payload.h"
#include "loadgen/traffic/rma.h"
#include "loadgen/traffic/trace.h"
#include "loadgen/traffic/worker_internal.h"

#define PUBLISH_S 0.01

static void publish(struct worker *w);

/* Who waits for it reads figures that are of now. */
void worker_fulfil(struct worker *w)
{
	if (w->current.what == ORDER_NONE)
		return;
	publish(w);
	w->current.what = ORDER_NONE;
	counter_set(&w->stats.fulfilled, w->current.number);
	w->cfg.on_progress(w->cfg.arg);
}

void worker_run_chunks(struct worker *w)
{
	ev_timer_stop(w->loop, &w->chunk);
	ev_timer_set(&w->chunk, 0., 0.);
	ev_timer_start(w->loop, &w->chunk);
}

static void on_chunk(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)loop;
	(void)revents;
	if (w->current.what == ORDER_TRAFFIC)
		traffic_start_some(w);
	else if (w->current.what == ORDER_DISCONNECT)
		connect_close_some(w);
}

static void on_pace(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)revents;
	connect_more(t->data);
}

static void reset_histograms(struct worker_stats *st)
{
	for (int k = 0; k < HANDSHAKE_N; k++) {
		for (int i = 0; i < STAGE_TIMED; i++)
			hist_reset(st->stages[k][i]);
		hist_reset(st->total[k]);
	}
	hist_reset(st->away_ns);
	hist_reset(st->response);
	hist_reset(st->service);
	hist_reset(st->lag);
}

static void reset_step(struct worker *w, const struct worker_task *task)
{
	struct worker_stats *st = &w->stats;
	counter *const of_step[] = { &st->started, &st->through, &st->failed, &st->dropped, &st->retries,
		&st->rails_dropped, &st->messages, &st->messages_measured, &st->measure_start_ns, &st->measure_end_ns, &st->cycles,
		&st->cycles_failed, &st->psn_verified, &st->checked, &st->corrupt, &st->late, &st->stream_measured[0],
		&st->stream_measured[1], &st->sends_measured, &st->fair_n, &st->fair_sum, &st->fair_min, &st->fair_max };

	for (size_t i = 0; i < sizeof(of_step) / sizeof(of_step[0]); i++)
		counter_set(of_step[i], 0);
	atomic_store(&st->fair_squares, 0);
	fail_table_reset(&st->failures);
	fail_table_reset(&st->retried);
	reset_histograms(st);
	w->target = task->clients;
	w->active = task->active;
	w->active_of_all = task->active_of_all;
	open_loop_reset(w);
	if (w->trace)
		trace_clear(w->trace);
	w->step_clients = task->of_all;
	for (uint32_t i = 0; i < w->n_rails; i++)
		w->rails[i].told = w->rails[i].works = w->rails[i].dark = false;
	w->abandoned = false;
	w->bytes = task->bytes;
	w->mode = MODE_IDLE;
	w->measuring = false;
	w->connect_start_ns = clock_now_ns();
	pace_init(&w->pace, (uint32_t)((w->cfg.cfg->connect_concurrency + w->cfg.n_workers - 1) /
				       w->cfg.n_workers));
}

static void begin_measuring(struct worker *w)
{
	for (uint32_t i = 0; i < w->target; i++)
		for (unsigned k = 0; k < WORKLOAD_STREAMS_MAX; k++)
			w->clients[i].streams[k].measured = 0;
	counter_set(&w->stats.measure_start_ns, clock_now_ns());
	w->measuring = true;
	worker_fulfil(w);
}

static void execute(struct worker *w, const struct order *o)
{
	w->current = *o;
	switch (o->what) {
	case ORDER_CONNECT:
		reset_step(w, &o->task);
		w->upto = o->task.upto;
		connect_begin(w);
		break;
	case ORDER_STAGE:
		w->upto = o->task.upto;
		connect_go_on(w);
		break;
	case ORDER_TRAFFIC:
		w->mode = MODE_TRAFFIC;
		w->next_start = 0;
		traffic_start_some(w);
		break;
	case ORDER_MEASURE:
		begin_measuring(w);
		break;
	case ORDER_STOP:
		traffic_stop(w);
		break;
	case ORDER_ABANDON:
		connect_abandon(w);
		worker_fulfil(w);
		break;
	case ORDER_DISCONNECT:
		w->mode = MODE_IDLE;
		w->next_start = 0;
		churn_stop(w);
		ev_timer_stop(w->loop, &w->pace_timer);
		connect_close_some(w);
		break;
	case ORDER_QUIT:
		pump_break(client_pump(w->ctx));
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

static void publish(struct worker *w)
{
	struct worker_stats *st = &w->stats;
	uint64_t qps = 0, cqs = 0, mrs = 0, pinned = 0, missing = 0, sent = 0, received = 0;
	struct timespec ts;

	for (uint32_t i = 0; i < w->n_rails; i++) {
		struct client_counts c;
		struct ep_counts e;

		client_get_counts(w->rails[i].ctx, &c);
		ep_get_counts(w->rails[i].ep, &e);
		qps += c.qps;
		cqs += e.cqs;
		mrs += e.mrs;
		pinned += e.pinned_bytes;
		missing += e.bufs_total - e.bufs_posted - e.bufs_free;
		sent += c.bytes_sent;
		received += c.bytes_received;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	counter_set(&st->cpu_ns, (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec);
	counter_set(&st->in_flight, w->in_flight);
	counter_set(&st->qps, qps);
	counter_set(&st->cqs, cqs);
	counter_set(&st->mrs, mrs + arena_mrs(w->texts) + arena_mrs(w->landing));
	counter_set(&st->pinned_bytes, pinned + arena_bytes(w->texts) + arena_bytes(w->landing));
	counter_set(&st->bufs_missing, missing);
	counter_set(&st->bytes_sent, sent);
	counter_set(&st->bytes_received, received);
}

static void on_publish(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)loop;
	(void)revents;
	w->publish_due = true;	/* at the turn's end */
}

/* What changed is published a little later, once for many turns: it takes a system call. */
static void on_turn_end(struct ev_loop *loop, ev_prepare *p, int revents)
{
	struct worker *w = p->data;

	(void)revents;
	connect_more(w);
	if (w->publish_due) {
		publish(w);
		w->publish_due = false;
	} else if (!ev_is_active(&w->publish_timer)) {
		ev_timer_set(&w->publish_timer, PUBLISH_S, 0.);
		ev_timer_start(loop, &w->publish_timer);
	}
}

static const struct client_ops ops = {
	.may_enter = connect_may_enter,
	.on_live = connect_on_live,
	.on_message = traffic_on_reply,
	.on_credit = traffic_on_credit,
	.on_ping = traffic_on_ping,
	.on_pushed = traffic_on_pushed,
	.on_rma = traffic_on_rma,
	.on_lost = connect_on_lost,
	.on_closed = connect_on_closed,
};

static void start_watchers(struct worker *w)
{
	ev_async_init(&w->wake, on_wake);
	w->wake.data = w;
	ev_async_start(w->loop, &w->wake);
	ev_timer_init(&w->pace_timer, on_pace, 0., 0.);
	w->pace_timer.data = w;
	ev_timer_init(&w->churn_timer, churn_on_timer, 0., 0.);
	w->churn_timer.data = w;
	ev_timer_init(&w->chunk, on_chunk, 0., 0.);
	w->chunk.data = w;
	ev_timer_init(&w->publish_timer, on_publish, 0., 0.);
	w->publish_timer.data = w;
	ev_prepare_init(&w->turn_end, on_turn_end);
	/* After the connections' own turn end, which frees what closed. */
	ev_set_priority(&w->turn_end, EV_MINPRI);
	w->turn_end.data = w;
	ev_prepare_start(w->loop, &w->turn_end);
}

static int make_stats(struct worker_stats *st)
{
	int ret = hist_new(&st->response);

	if (!ret)
		ret = hist_new(&st->service);
	if (!ret)
		ret = hist_new(&st->lag);
	if (!ret)
		ret = hist_new(&st->away_ns);
	for (int k = 0; k < HANDSHAKE_N && !ret; k++) {
		ret = hist_new(&st->total[k]);
		for (int i = 0; i < STAGE_TIMED && !ret; i++)
			ret = hist_new(&st->stages[k][i]);
	}
	return ret;
}

static void free_stats(struct worker_stats *st)
{
	for (int k = 0; k < HANDSHAKE_N; k++) {
		for (int i = 0; i < STAGE_TIMED; i++)
			hist_free(st->stages[k][i]);
		hist_free(st->total[k]);
	}
	hist_free(st->away_ns);
	hist_free(st->response);
	hist_free(st->service);
	hist_free(st->lag);
}

static void free_clients(struct worker *w)
{
	for (uint32_t i = 0; w->clients && i < w->cfg.client.max_conns; i++)
		tls_session_free(w->clients[i].session);
	free(w->rings);
	free(w->clients);
}

static int make_clients(struct worker *w)
{
	uint32_t n = w->cfg.client.max_conns, streams = w->workload->streams;
	uint64_t inflight = w->cfg.cfg->inflight, slots = inflight * streams;

	w->clients = calloc(n, sizeof(*w->clients));
	w->rings = calloc(n * slots + 1, sizeof(*w->rings));
	if (!w->clients || !w->rings)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = 0; k < streams; k++)
			w->clients[i].streams[k].times = &w->rings[i * slots + k * inflight];
	return rma_new(w);
}

/* What one request may move. */
static int check_requests(const struct worker *w, char *err, size_t err_size)
{
	const struct loadgen_config *c = w->cfg.cfg;
	bool chunks = w->workload->chunks;
	uint64_t bytes = chunks ? c->chunk_bytes : c->message_bytes;
	const struct dev *dev = client_dev(w->ctx);
	uint32_t most;

	for (uint32_t i = 1; i < w->n_rails; i++)
		if (client_dev(w->rails[i].ctx)->port.max_msg_sz < dev->port.max_msg_sz)
			dev = client_dev(w->rails[i].ctx);
	most = dev->port.max_msg_sz;
	if (!w->needs.region_bytes || bytes <= most)
		return 0;
	snprintf(err, err_size, "--%s: %llu bytes are more than device %s moves with one request (%u); %s",
		 chunks ? "chunk" : "message-size", (unsigned long long)bytes, dev->name, most,
		 chunks ? "lower it" : "--workload large moves more, in chunks");
	return -EMSGSIZE;
}

/* The payload's text, and where what is read goes. */
static int make_memory(struct worker *w, char *err, size_t err_size)
{
	const struct loadgen_config *c = w->cfg.cfg;
	size_t landings = w->needs.landing_shared ? 1 : w->cfg.client.max_conns;
	void *text = NULL;
	int ret = 0;

	if (w->needs.region_bytes)
		ret = arena_new(w->ep, payload_bytes(c->message_bytes), false, &w->texts, err, err_size);
	if (!ret && w->needs.landing_bytes)
		ret = arena_new(w->ep, landings * w->needs.landing_bytes, w->needs.window, &w->landing, err,
				err_size);
	for (uint32_t i = 1; i < w->n_rails && !ret; i++) {
		ret = w->texts ? arena_share(w->texts, w->rails[i].ep, err, err_size) : 0;
		if (!ret && w->landing)
			ret = arena_share(w->landing, w->rails[i].ep, err, err_size);
	}
	if (ret)
		return ret;
	if (w->texts)
		text = arena_at(w->texts, 0);
	return payload_new(c->seed, c->message_bytes, text, &w->payload);
}

static int make_rails(struct worker *w, char *err, size_t err_size)
{
	for (w->n_rails = 0; w->n_rails < w->cfg.n_rails; w->n_rails++) {
		const struct worker_rail *to = &w->cfg.rails[w->n_rails];
		struct rail *r = &w->rails[w->n_rails];
		int ret;

		r->worker = w;
		r->index = w->n_rails;
		r->client = w->cfg.client;
		r->client.server = to->server;
		r->client.verify_name = to->verify_name;
		r->client.device = to->device;
		ret = client_ctx_new(&r->client, &ops, r, w->loop, &r->ctx, err, err_size);
		if (ret)
			return ret;
		r->ep = client_ep(r->ctx);
		if (r->index)
			pump_join(client_pump(w->rails[0].ctx), client_pump(r->ctx));
	}
	w->ctx = w->rails[0].ctx;
	w->ep = w->rails[0].ep;
	return 0;
}

int worker_new(const struct worker_config *cfg, struct worker **out, char *err, size_t err_size)
{
	struct worker *w = calloc(1, sizeof(*w));
	int ret = -ENOMEM;

	snprintf(err, err_size, "this machine is out of memory");
	if (!w)
		return ret;
	w->cfg = *cfg;
	w->due_fd = -1;
	w->workload = cfg->cfg->wl;
	w->workload->needs(cfg->cfg, &w->needs);
	w->retry = w->returning = w->parked = (struct client_queue){ NO_CLIENT, NO_CLIENT };
	pthread_mutex_init(&w->lock, NULL);
	w->loop = ev_loop_new(EVFLAG_AUTO);
	if (w->loop)
		ret = make_stats(&w->stats);
	if (!ret)
		ret = make_clients(w);
	if (!ret)
		ret = make_rails(w, err, err_size);
	if (!ret)
		ret = lanes_new(w);
	if (!ret)
		ret = check_requests(w, err, err_size);
	if (!ret)
		ret = make_memory(w, err, err_size);
	if (!ret)
		ret = open_loop_new(w, err, err_size);
	if (!ret && cfg->cfg->trace)
		ret = trace_new(cfg->cfg->trace_max, &w->trace);
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

	if (pump_run(client_pump(w->ctx))) {
		atomic_store(&w->broken, true);
		w->cfg.on_progress(w->cfg.arg);
	}
	return NULL;
}

int worker_start(struct worker *w, char *err, size_t err_size)
{
	int ret = tuning_start_thread(&w->cfg.cfg->tuning, w->cfg.index, &w->thread, run, w, err, err_size);

	w->running = ret == 0;
	return ret;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	if (w->running)
		pthread_join(w->thread, NULL);
	arena_free(w->texts);
	arena_free(w->landing);
	for (uint32_t i = 0; i < w->n_rails; i++)
		client_ctx_free(w->rails[i].ctx);
	if (w->loop)
		ev_loop_destroy(w->loop);
	open_loop_free(w);
	trace_free(w->trace);
	free_stats(&w->stats);
	payload_free(w->payload);
	pthread_mutex_destroy(&w->lock);
	free_clients(w);
	rma_free(w);
	lanes_free(w);
	free(w);
}

void worker_give(struct worker *w, enum worker_order order, const struct worker_task *task)
{
	struct order o = { .what = order };

	if (task)
		o.task = *task;
	pthread_mutex_lock(&w->lock);
	o.number = ++w->given;
	if (w->mailbox_n < MAILBOX_MAX)
		w->mailbox[w->mailbox_n++] = o;
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

const struct trace *worker_trace(const struct worker *w)
{
	return w->trace;
}

const struct dev *worker_dev(const struct worker *w)
{
	return client_dev(w->ctx);
}
