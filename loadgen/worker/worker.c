/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's thread: composes its parts, carries out orders, and publishes. See worker.h.
 *
 * Each part owns its data: connector.c decides which client connects next, clients.c handles the connections' events,
 * churn.c decides which client leaves, and traffic.c (loadgen/traffic/) begins and ends operations. The parts do not
 * report to the worker that an order is fulfilled: the worker checks that at the end of each turn of the loop.
 */
#include "loadgen/worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/host/place.h"
#include "common/rdma/arena.h"
#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/rdma/pump.h"
#include "loadgen/traffic/open_loop.h"
#include "loadgen/traffic/traffic.h"
#include "loadgen/striping/lanes.h"
#include "loadgen/one_sided/rma.h"
#include "loadgen/worker/churn.h"
#include "loadgen/worker/clients.h"
#include "loadgen/worker/connector.h"
#include "loadgen/worker/pulse.h"
#include "loadgen/worker/settings.h"

#define PUBLISH_S 0.01
#define BEAT_NS (100 * NS_PER_MS)
#define START_CHUNK 256u	/* clients that start sending in one turn of the loop */
#define LEAVE_WAIT_S 0.1	/* after which others leave if nobody has left */

struct worker {
	struct worker_config cfg;
	struct ev_loop *loop;
	pthread_t thread;
	bool running;

	struct worker_stats stats;
	struct traffic traffic;
	struct rma rma;
	struct lanes lanes;
	struct connector connector;
	struct churn churn;

	struct mailbox mailbox;
	uint64_t given;			/* main thread: number of the last order */
	ev_async wake;
	struct order current;		/* the order being carried out; ORDER_NONE: all are fulfilled */
	uint32_t of_all;		/* clients of all workers in this step */
	uint32_t cursor;		/* the client that starts sending, or is closed, next */
	struct leaving leaving;		/* with ORDER_DISCONNECT */
	ev_timer chunk;			/* fires when the next portion of clients is to start or close */

	struct pulse pulse;		/* on from the start of measuring until no operation is in flight */
	ev_timer beat;

	ev_timer publish_timer;
	ev_prepare turn_end;
	bool publish_due;

	char devices[RAILS_MAX * 64];	/* names of the devices */
	_Atomic int failure;		/* -errno: all devices failed; else 0 */
};

static void publish(struct worker *w)
{
	const struct memory *m = &w->traffic.memory;
	struct worker_stats *st = &w->stats;
	uint64_t qps = 0, cqs = 0, mrs = 0, pinned = 0, missing = 0, sent = 0, received = 0, one_sided = 0;
	struct pump_counts pumps = { 0 };

	for (uint32_t i = 0; i < w->connector.n_rails; i++) {
		struct client_counts c;
		struct ep_counts e;

		const struct pump_counts *p = &client_pump(w->connector.rails[i].ctx)->counts;

		client_get_counts(w->connector.rails[i].ctx, &c);
		ep_get_counts(w->traffic.eps[i], &e);
		qps += c.qps;
		cqs += e.cqs;
		mrs += e.mrs;
		pinned += e.pinned_bytes;
		missing += e.bufs_total - e.bufs_posted - e.bufs_free;
		sent += c.bytes_sent;
		received += c.bytes_received;
		one_sided += c.one_sided_bytes;
		pumps.completions += p->completions;
		pumps.polls += p->polls;
		pumps.wakeups += p->wakeups;
	}
	effective_count(&st->effective, w->traffic.eps, w->connector.n_rails);
	counter_set(&st->cpu_ns, clock_busy_ns());
	counter_set(&st->in_flight, w->traffic.in_flight);
	counter_set(&st->qps, qps);
	counter_set(&st->cqs, cqs);
	counter_set(&st->mrs, mrs + arena_mrs(m->texts) + arena_mrs(m->landing));
	counter_set(&st->pinned_bytes, pinned + arena_bytes(m->texts) + arena_bytes(m->landing));
	counter_set(&st->bufs_missing, missing);
	counter_set(&st->bytes_sent, sent);
	counter_set(&st->bytes_received, received);
	counter_set(&st->one_sided_bytes, one_sided);
	counter_set(&st->completions, pumps.completions);
	counter_set(&st->polls, pumps.polls);
	counter_set(&st->wakeups, pumps.wakeups);
}

static void on_publish(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)loop;
	(void)revents;
	w->publish_due = true;	/* on_turn_end publishes */
}

static struct pulse_moment this_moment(const struct worker *w)
{
	return (struct pulse_moment){ .now_ns = clock_boot_ns(), .busy_ns = clock_busy_ns(),
				      .ended = counter_get(&w->stats.messages), .in_flight = w->traffic.in_flight };
}

static void beat(struct worker *w)
{
	struct pulse_moment now = this_moment(w);

	pulse_beat(&w->pulse, &now);
	counter_set(&w->stats.clock_late_ns, w->pulse.late_ns);
	counter_set(&w->stats.reply_stall_ns, w->pulse.stall_ns);
}

static void on_beat(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)revents;
	beat(t->data);
	ev_timer_again(loop, t);
}

static void start_pulse(struct worker *w)
{
	struct pulse_moment now = this_moment(w);

	pulse_start(&w->pulse, BEAT_NS, &now);
	ev_now_update(w->loop);
	ev_timer_again(w->loop, &w->beat);
}

static void stop_pulse(struct worker *w)
{
	if (!pulse_is_on(&w->pulse))
		return;
	beat(w);
	pulse_stop(&w->pulse);
	ev_timer_stop(w->loop, &w->beat);
}

static void restart_chunk(struct worker *w, double after_s)
{
	ev_timer_stop(w->loop, &w->chunk);
	ev_timer_set(&w->chunk, after_s, 0.);
	ev_timer_start(w->loop, &w->chunk);
}

static void tell_more_to_leave(struct worker *w)
{
	uint32_t target = w->connector.target;
	uint32_t end = w->cursor + leaving_portion(&w->leaving, clients_left(&w->stats), target - w->cursor);

	w->leaving.told += clients_close(&w->connector, w->cursor, end);
	w->cursor = end;
	if (end < target)
		restart_chunk(w, LEAVE_WAIT_S);
}

/* Starts the next portion of clients. The loop turns between portions, so that it stays responsive. */
static void start_more(struct worker *w)
{
	uint32_t target = w->connector.target, end = MIN(w->cursor + START_CHUNK, target);

	for (uint32_t i = w->cursor; i < end; i++)
		traffic_start_client(&w->traffic.clients[i]);
	w->cursor = end;
	if (end < target)
		restart_chunk(w, 0.);
	else if (w->current.what == ORDER_TRAFFIC)
		churn_start(&w->churn, w->of_all);
}

static void on_chunk(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)loop;
	(void)revents;
	if (w->current.what == ORDER_TRAFFIC || w->current.what == ORDER_MEASURE)
		start_more(w);
	else if (w->current.what == ORDER_DISCONNECT)
		tell_more_to_leave(w);
}

static void begin_step(struct worker *w, const struct worker_task *task)
{
	worker_stats_reset(&w->stats);
	w->of_all = task->of_all;
	traffic_begin_step(&w->traffic, task->bytes, task->active, task->active_before,
			   task->active_of_all, task->rate);
	connector_begin_step(&w->connector, task->clients, task->of_all, task->upto, task->alone);
}

static void execute(struct worker *w, const struct order *o)
{
	w->current = *o;
	w->cursor = 0;
	switch (o->what) {
	case ORDER_CONNECT:
		begin_step(w, &o->task);
		break;
	case ORDER_STAGE:
		connector_go_on(&w->connector, o->task.upto);
		break;
	case ORDER_TRAFFIC:
		settings_log(&w->traffic);
		w->traffic.on = true;
		start_more(w);
		break;
	case ORDER_MEASURE:
		traffic_measure(&w->traffic);
		lanes_measure(&w->traffic);
		start_pulse(w);
		if (w->cfg.cfg->iterations)
			start_more(w);
		break;
	case ORDER_STOP:
		lanes_publish_times(&w->traffic);
		traffic_stop(&w->traffic);
		churn_stop(&w->churn);
		w->cfg.on_progress(w->cfg.arg);	/* the measured time has ended */
		break;
	case ORDER_ABANDON:
		stop_pulse(w);
		clients_abandon(&w->connector);
		break;
	case ORDER_DISCONNECT:
		stop_pulse(w);
		w->traffic.on = false;
		churn_stop(&w->churn);
		connector_stop(&w->connector, CONNECT_CLOSE);
		leaving_begin(&w->leaving, clients_left(&w->stats));
		tell_more_to_leave(w);
		break;
	case ORDER_QUIT:
		pump_break(client_pump(w->connector.rails[0].ctx));
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
	n = mailbox_take(&w->mailbox, orders);
	for (uint32_t i = 0; i < n; i++)
		execute(w, &orders[i]);
}

static bool is_fulfilled(const struct worker *w)
{
	switch (w->current.what) {
	case ORDER_CONNECT:
	case ORDER_STAGE:
		return connector_is_done(&w->connector);
	case ORDER_TRAFFIC:
		return w->cursor == w->connector.target;
	case ORDER_STOP:
		return w->traffic.in_flight == 0 && counter_get(&w->stats.away) == 0;
	case ORDER_DISCONNECT:
		return w->cursor == w->connector.target && clients_left(&w->stats) == 0;
	case ORDER_MEASURE:
		return !w->cfg.cfg->iterations || w->cursor == w->connector.target;
	case ORDER_ABANDON:
		return true;
	case ORDER_QUIT:
	case ORDER_NONE:
		break;
	}
	return false;
}

/* Publishes the settings that the first live client's connection actually has. Called between connecting and traffic. A
 * client whose lost connection has not been handled yet is skipped. */
static void look_at_connection(struct worker *w)
{
	const struct wclient *wc = w->traffic.clients, *end = wc + w->connector.target;

	while (wc < end && !(wc->state == WCLIENT_LIVE && wc->conn && client_look(wc->conn, &w->stats.effective)))
		wc++;
	if (wc == end)
		(void)effective_look(&w->stats.effective, NULL, 0);
}

/* Publishes first: the main thread reads these counters when the order is fulfilled. */
static void fulfil(struct worker *w)
{
	if (w->current.what == ORDER_STOP)
		stop_pulse(w);
	if (w->current.what == ORDER_CONNECT || w->current.what == ORDER_STAGE)
		look_at_connection(w);
	publish(w);
	w->current.what = ORDER_NONE;
	counter_release(&w->stats.fulfilled, w->current.number);
	w->cfg.on_progress(w->cfg.arg);
}

/* With --iterations, tells the main thread when all operations that may begin have ended. The main thread then reads
 * the other counters, so they are published first. */
static void tell_iterations(struct worker *w)
{
	const struct traffic *t = &w->traffic;

	if (!t->cfg->iterations || !t->on || w->cursor != w->connector.target || counter_get(&w->stats.away) ||
	    counter_get(&w->stats.iterations) == t->allowed || !traffic_is_through(t))
		return;
	publish(w);
	counter_release(&w->stats.iterations, t->allowed);
	w->cfg.on_progress(w->cfg.arg);
}

/* Publishes counters with a delay, once for many turns, because publishing takes a system call. */
static void on_turn_end(struct ev_loop *loop, ev_prepare *p, int revents)
{
	struct worker *w = p->data;

	(void)revents;
	connector_more(&w->connector);
	if (w->current.what == ORDER_DISCONNECT && w->cursor < w->connector.target &&
	    leaving_has_room(&w->leaving, clients_left(&w->stats)))
		restart_chunk(w, 0.);
	if (is_fulfilled(w))
		fulfil(w);
	tell_iterations(w);
	if (w->publish_due) {
		publish(w);
		w->publish_due = false;
	} else if (!ev_is_active(&w->publish_timer)) {
		ev_timer_set(&w->publish_timer, PUBLISH_S, 0.);
		ev_timer_start(loop, &w->publish_timer);
	}
}

static void start_watchers(struct worker *w)
{
	ev_async_init(&w->wake, on_wake);
	ev_set_priority(&w->wake, EV_MAXPRI);	/* before completions, which are counted as the last order says */
	w->wake.data = w;
	ev_async_start(w->loop, &w->wake);
	ev_timer_init(&w->chunk, on_chunk, 0., 0.);
	w->chunk.data = w;
	ev_timer_init(&w->beat, on_beat, 0., (double)BEAT_NS / 1e9);
	w->beat.data = w;
	ev_timer_init(&w->publish_timer, on_publish, 0., 0.);
	w->publish_timer.data = w;
	ev_prepare_init(&w->turn_end, on_turn_end);
	/* Runs after the connections' own handler of the turn's end, which frees closed connections. */
	ev_set_priority(&w->turn_end, EV_MINPRI);
	w->turn_end.data = w;
	ev_prepare_start(w->loop, &w->turn_end);
}

/* -EMSGSIZE if a request would be larger than a device allows. */
static int check_requests(const struct worker *w, char *err, size_t err_size)
{
	const struct loadgen_config *c = w->cfg.cfg;
	bool chunks = w->traffic.workload->chunks;
	uint64_t bytes = chunks ? c->chunk_bytes : c->message_bytes;
	const struct dev *dev = client_dev(w->connector.rails[0].ctx);
	uint32_t most;

	for (uint32_t i = 1; i < w->connector.n_rails; i++)
		if (client_dev(w->connector.rails[i].ctx)->port.max_msg_sz < dev->port.max_msg_sz)
			dev = client_dev(w->connector.rails[i].ctx);
	most = dev->port.max_msg_sz;
	if (!w->traffic.memory.needs.region_bytes || bytes <= most)
		return 0;
	snprintf(err, err_size, "--%s: %llu bytes are more than device %s moves with one request (%u); %s",
		 chunks ? "chunk" : "message-size", (unsigned long long)bytes, dev->name, most,
		 chunks ? "lower it" : "--workload large moves more, in chunks");
	return -EMSGSIZE;
}

static int make_rail(struct worker *w, uint32_t i, char *err, size_t err_size)
{
	const struct worker_rail *to = &w->cfg.rails[i];
	struct rail *r = &w->connector.rails[i];
	size_t named = strlen(w->devices);
	int ret;

	r->connector = &w->connector;
	r->index = i;
	r->client = w->cfg.client;
	r->client.server = to->server;
	r->client.verify_name = to->verify_name;
	r->client.device = to->device;
	r->client.max_conns *= (uint32_t)w->cfg.cfg->qps;
	r->psns = to->psns;
	ret = client_ctx_new(&r->client, &clients_ops, r, w->loop, &r->ctx, err, err_size);
	if (ret)
		return ret;
	w->traffic.eps[i] = client_ep(r->ctx);
	snprintf(w->devices + named, sizeof(w->devices) - named, "%s%s", i ? ", " : "", client_dev(r->ctx)->name);
	if (i)
		pump_join(client_pump(w->connector.rails[0].ctx), client_pump(r->ctx));
	return 0;
}

static int make_rails(struct worker *w, char *err, size_t err_size)
{
	struct connector *k = &w->connector;

	for (k->n_rails = 0; k->n_rails < w->cfg.n_rails; k->n_rails++) {
		int ret = make_rail(w, k->n_rails, err, err_size);

		if (ret)
			return ret;
	}
	w->traffic.ep = w->traffic.eps[0];
	return 0;
}

/* Gives the parts the pointers and figures they need of each other. */
static void compose(struct worker *w)
{
	const struct loadgen_config *c = w->cfg.cfg;

	w->traffic = (struct traffic){ .cfg = c, .workload = c->wl, .stats = &w->stats, .n_rails = w->cfg.n_rails,
				       .n_lanes = loadgen_n_lanes(c), .worker = w->cfg.index,
				       .n_workers = w->cfg.n_workers, .n_clients = w->cfg.client.max_conns };
	c->wl->needs(c, &w->traffic.memory.needs);
	w->connector = (struct connector){ .cfg = c, .traffic = &w->traffic, .stats = &w->stats, .loop = w->loop,
					   .on_back = churn_on_back, .churn = &w->churn };
	connector_init(&w->connector);
	churn_init(&w->churn, &w->connector);
}

static int make_clients(struct worker *w, char *err, size_t err_size)
{
	struct traffic *t = &w->traffic;
	int ret = traffic_init(t);

	if (!ret)
		ret = rma_init(&w->rma, t);
	if (!ret)
		ret = make_rails(w, err, err_size);
	if (!ret)
		ret = lanes_init(&w->lanes, t);
	if (!ret)
		ret = check_requests(w, err, err_size);
	if (!ret)
		ret = memory_make(&t->memory, t->cfg, t->n_clients, t->eps, t->n_rails, err, err_size);
	for (uint32_t i = 0; i < t->n_clients && !ret; i++)
		t->clients[i].landing = memory_landing(&t->memory, i);
	if (!ret && loadgen_is_open_loop(t->cfg))
		ret = open_loop_new(t, w->loop, &t->open_loop, err, err_size);
	return ret;
}

int worker_new(const struct worker_config *cfg, struct worker **out, char *err, size_t err_size)
{
	struct worker *w = calloc(1, sizeof(*w));
	int ret = -ENOMEM;

	snprintf(err, err_size, "this machine is out of memory");
	if (!w)
		return ret;
	w->cfg = *cfg;
	mailbox_init(&w->mailbox);
	w->loop = ev_loop_new(EVFLAG_AUTO);
	compose(w);
	if (w->loop)
		ret = worker_stats_init(&w->stats);
	if (!ret)
		ret = make_clients(w, err, err_size);
	if (ret) {
		worker_free(w);
		return ret;
	}
	start_watchers(w);
	*out = w;
	return 0;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	int ret;

	effective_begin(&w->stats.effective);
	ret = pump_run(client_pump(w->connector.rails[0].ctx));
	mailbox_close(&w->mailbox);
	if (ret) {
		atomic_store(&w->failure, ret);
		w->cfg.on_progress(w->cfg.arg);
	}
	return NULL;
}

int worker_start(struct worker *w, char *err, size_t err_size)
{
	int ret, node = dev_numa_node(worker_dev(w, w->cfg.index % w->cfg.n_rails));
	cpu_set_t beside;

	effective_set_device(&w->stats.effective, node);
	ret = tuning_start_thread(&w->cfg.cfg->tuning, "worker", w->cfg.index,
				  place_cpus_beside(PLACE_SYS, node, &beside), &w->thread, worker_run, w, err,
				  err_size);
	w->running = ret == 0;
	return ret;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	if (w->running)
		pthread_join(w->thread, NULL);
	memory_release(&w->traffic.memory);
	for (uint32_t i = 0; i < w->connector.n_rails; i++)
		client_ctx_free(w->connector.rails[i].ctx);
	if (w->loop)
		ev_loop_destroy(w->loop);
	open_loop_free(w->traffic.open_loop);
	connector_release(&w->connector);
	lanes_release(&w->lanes);
	rma_release(&w->rma);
	traffic_release(&w->traffic);
	worker_stats_release(&w->stats);
	mailbox_release(&w->mailbox);
	free(w);
}

void worker_give(struct worker *w, enum worker_order order, const struct worker_task *task)
{
	struct order o = { .what = order, .number = ++w->given };

	if (task)
		o.task = *task;
	if (mailbox_put(&w->mailbox, &o))
		ev_async_send(w->loop, &w->wake);
}

bool worker_is_done(const struct worker *w)
{
	return counter_acquire(&w->stats.fulfilled) == w->given;
}

int worker_failure(const struct worker *w, const char **devices)
{
	if (devices)
		*devices = w->devices;
	return atomic_load(&((struct worker *)w)->failure);
}

const struct worker_stats *worker_stats(const struct worker *w)
{
	return &w->stats;
}

const struct trace *worker_trace(const struct worker *w)
{
	return w->traffic.trace;
}

uint32_t worker_clients_max(const struct worker *w)
{
	return w->cfg.client.max_conns;
}

const struct dev *worker_dev(const struct worker *w, uint32_t rail)
{
	return client_dev(w->connector.rails[rail].ctx);
}
