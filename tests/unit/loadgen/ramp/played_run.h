/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole run of loadgen/ramp; the test plays the workers, the server's process and its control session. Include it in
 * one .c file of a test program: it defines the functions that it plays. */
#ifndef RAMPART_TESTS_PLAYED_RUN_H
#define RAMPART_TESTS_PLAYED_RUN_H

#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/control.h"
#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/rdma/dev.h"
#include "loadgen/config/deal.h"
#include "loadgen/verdict/verdict.h"
#include "loadgen/ramp/ramp.h"
#include "loadgen/server_under_test/server_proc.h"
#include "loadgen/output/results.h"
#include "loadgen/measurement/series.h"
#include "loadgen/worker/worker.h"
#include "loadgen/traffic/workload.h"
#include "tests/unit/files/scratch.h"
#define DELIVERY_MS 0	/* no message comes through a socket here */
#include "tests/unit/helpers/moved_clock.h"

#define WORKERS 2
#define ANSWER_S 0.02		/* the server's time for a report */
#define DRAIN_S 0.02		/* a worker's time for what is in flight */

static char dir[SCRATCH_MAX];
static struct results *results;
static struct outcome oc;
static struct loadgen_config cfg;
static struct ev_loop *loop;

/* The test's reaction to an order to a worker; NULL: none. */
static void (*on_order)(struct worker *w, enum worker_order order);
static uint32_t told_clients;	/* clients in the last order to connect */

static int n_alone;		/* orders to connect a single client */
static int alone_fails_from;	/* the first of them that fails, with all after it; 0: none */

struct worker {
	struct worker_config cfg;
	struct worker_stats stats;
	struct worker_task task;	/* of the last order to connect */
	uint64_t given;
	bool broken;
	ev_timer stopping, breaking;
};

static struct worker *workers[WORKERS];

int worker_new(const struct worker_config *c, struct worker **out, char *err, size_t err_size)
{
	struct worker *w = calloc(1, sizeof(*w));

	(void)err;
	(void)err_size;
	assert_non_null(w);
	w->cfg = *c;
	ev_init(&w->stopping, NULL);
	ev_init(&w->breaking, NULL);
	assert_int_equal(worker_stats_init(&w->stats), 0);
	workers[c->index / cfg.hosts] = *out = w;
	return 0;
}

int worker_start(struct worker *w, char *err, size_t err_size)
{
	(void)w;
	(void)err;
	(void)err_size;
	return 0;
}

void worker_free(struct worker *w)
{
	worker_stats_release(&w->stats);
	ev_timer_stop(loop, &w->stopping);
	ev_timer_stop(loop, &w->breaking);
	free(w);
}

static void fulfil(struct worker *w)
{
	counter_set(&w->stats.fulfilled, w->given);
	w->cfg.on_progress(w->cfg.arg);
}

typedef void on_timer_fn(struct ev_loop *l, ev_timer *t, int revents);

static void call_in(double delay_s, ev_timer *t, on_timer_fn *f, void *data)
{
	ev_timer_init(t, f, delay_s, 0.);
	t->data = data;
	ev_timer_start(loop, t);
}

static void on_drained(struct ev_loop *l, ev_timer *t, int revents)
{
	(void)l;
	(void)revents;
	fulfil(t->data);
}

/* With offered rates: the most that the server does per second. */
static uint64_t most_served;

/* How many operations ended in the worker's measured time: all offered ones, or as many as the server does. */
static uint64_t served(const struct worker *w)
{
	uint64_t rate = w->task.rate < most_served ? w->task.rate : most_served;

	return rate * (counter_get(&w->stats.measure_end_ns) - counter_get(&w->stats.measure_start_ns)) / NS_PER_S /
	       WORKERS;
}

static void on_stopped(struct ev_loop *l, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)l;
	(void)revents;
	counter_set(&w->stats.measure_end_ns, clock_now_ns());
	if (most_served)
		counter_set(&w->stats.messages_measured, served(w));
	w->cfg.on_progress(w->cfg.arg);
	call_in(DRAIN_S, &w->stopping, on_drained, w);
}

static void obey(struct worker *w, enum worker_order order, const struct worker_task *task)
{
	switch (order) {
	case ORDER_CONNECT:
		w->task = *task;
		told_clients = task->clients;
		counter_set(&w->stats.attempted, task->clients);
		counter_set(&w->stats.live, task->clients);
		counter_set(&w->stats.measure_start_ns, 0);
		counter_set(&w->stats.measure_end_ns, 0);
		break;
	case ORDER_MEASURE:
		counter_set(&w->stats.measure_start_ns, clock_now_ns());
		counter_set(&w->stats.messages_measured, 1000);
		hist_record_n(w->stats.hists.response, 50000, 1000);
		break;
	case ORDER_STOP:
		/* The workers stop one after the other, as threads do. */
		call_in(DRAIN_S * (w->cfg.index + 1), &w->stopping, on_stopped, w);
		return;
	case ORDER_DISCONNECT:
		counter_set(&w->stats.live, 0);
		break;
	case ORDER_NONE:
	case ORDER_STAGE:
	case ORDER_TRAFFIC:
	case ORDER_ABANDON:
	case ORDER_QUIT:
		break;
	}
	fulfil(w);
}

void worker_give(struct worker *w, enum worker_order order, const struct worker_task *task)
{
	w->given++;
	if (!w->broken)
		obey(w, order, task);
	if (on_order)
		on_order(w, order);
}

bool worker_is_done(const struct worker *w)
{
	return counter_get(&w->stats.fulfilled) == w->given;
}

int worker_failure(const struct worker *w, const char **devices)
{
	if (devices)
		*devices = "fake0";
	return w->broken ? -EIO : 0;
}

const struct worker_stats *worker_stats(const struct worker *w)
{
	return &w->stats;
}

uint32_t worker_clients_max(const struct worker *w)
{
	return w->cfg.client.max_conns;
}

const struct dev *worker_dev(const struct worker *w, uint32_t rail)
{
	static const struct dev device = { .name = "fake0", .port_num = 1 };

	(void)w;
	(void)rail;
	return &device;
}

bool dev_is_software(const struct dev *d)
{
	(void)d;
	return true;
}

int dev_source_addr(const struct addr *peer, struct addr *out)
{
	*out = *peer;
	return 0;
}

json_t *dev_json(const struct dev *d)
{
	(void)d;
	return json_null();
}

const struct trace *worker_trace(const struct worker *w)
{
	fail_msg("asks for the trace of %p", (const void *)w);
	return NULL;
}

struct control {
	control_on_report_fn *on_report;
	void *arg;
	uint32_t server;	/* index among several servers */
	bool busy;
	enum control_what what;
	ev_timer answer;	/* or for the next sample */
	int samples;		/* samples sent */
};

struct server_proc {
	const struct server_proc_events *events;
	void *arg;
	ev_timer next;			/* until the server is ready, or ends */
	int status;			/* the status that the server ends with */
};

static struct server_proc *process;	/* the last one that was started */
static int n_servers;

static void on_server_listens(struct ev_loop *l, ev_timer *t, int revents)
{
	struct server_proc *p = t->data;
	struct addr tls;

	(void)l;
	(void)revents;
	assert_int_equal(addr_parse("127.0.0.1", 7471, &tls), 0);
	p->events->on_ready(p->arg, &tls, 1);
}

static void on_server_ends(struct ev_loop *l, ev_timer *t, int revents)
{
	struct server_proc *p = t->data;

	(void)l;
	(void)revents;
	p->events->on_exit(p->arg, p->status);
}

int server_proc_start(char *const *argv, const char *log, struct ev_loop *l, const struct server_proc_events *events,
		      void *arg, struct server_proc **out, char *err, size_t err_size)
{
	(void)argv;
	(void)log;
	(void)l;
	(void)err;
	(void)err_size;
	process = *out = calloc(1, sizeof(*process));
	assert_non_null(process);
	process->events = events;
	process->arg = arg;
	n_servers++;
	call_in(0, &process->next, on_server_listens, process);
	return 0;
}

void server_proc_stop(struct server_proc *p)
{
	call_in(0, &p->next, on_server_ends, p);
}

void server_proc_pass(struct server_proc *p, const struct server_proc_events *events, void *arg)
{
	p->events = events;
	p->arg = arg;
}

void server_proc_free(struct server_proc *p)
{
	if (p)
		ev_timer_stop(loop, &p->next);
	free(p);
}

static int n_stats;		/* requests for statistics so far */
static int lost_from;		/* the first of them that fails; 0: none */
static int lost_to;		/* the last of them that fails; 0: all later ones fail */
static struct fail loss;	/* how they fail */
static int max_clients;		/* the server's limit */
static double restarted_s;	/* when the server's process began */
static double stolen_s;		/* CPU time that the server's machine did not get */
static int n_requests;		/* requests of any kind */
static struct fail unproved;	/* how every request fails, if its kind is not FAIL_NONE */
static int watches;		/* sessions that watched */
static int watch_lost_after;	/* samples before a watch is lost; -1: never */
static int short_from;		/* first sample with 1 % of memory left on the server's machine; 0: none */
static int lost_server;		/* with several servers: the only one that fails; -1: all */
static int n_while_measuring;	/* requests or answers while a worker recorded */

static bool records(const struct worker *w)
{
	return w && counter_get(&w->stats.measure_start_ns) && !counter_get(&w->stats.measure_end_ns) && !w->broken;
}

static void look(const struct control *c)
{
	if (c->what == CONTROL_STATS && (records(workers[0]) || records(workers[1])))
		n_while_measuring++;
}

int control_new(const struct control_config *c, struct ev_loop *l, control_on_report_fn *on_report, void *arg,
		struct control **out, char *err, size_t err_size)
{
	(void)l;
	(void)err;
	(void)err_size;
	*out = calloc(1, sizeof(**out));
	assert_non_null(*out);
	(*out)->server = cfg.targets.n ? addr_port(&c->server) - 7471u : 0;
	(*out)->on_report = on_report;
	(*out)->arg = arg;
	ev_init(&(*out)->answer, NULL);
	return 0;
}

void control_free(struct control *c)
{
	if (c)
		ev_timer_stop(loop, &c->answer);
	free(c);
}

/* With several servers, the i-th server has the i-th worker's clients. */
static uint64_t clients_of(const struct control *c)
{
	if (!workers[0])
		return 0;
	if (cfg.targets.n)
		return counter_get(&workers[c->server]->stats.live);
	return counter_get(&workers[0]->stats.live) + counter_get(&workers[1]->stats.live);
}

static bool is_lost(const struct control *c)
{
	return lost_from && n_stats >= lost_from && (!lost_to || n_stats <= lost_to) &&
	       (lost_server < 0 || (uint32_t)lost_server == c->server);
}

static void on_answer(struct ev_loop *l, ev_timer *t, int revents)
{
	struct control *c = t->data;
	uint64_t live = clients_of(c);
	json_t *report;

	(void)l;
	(void)revents;
	look(c);
	c->busy = false;
	if (is_lost(c) || unproved.kind != FAIL_NONE) {
		c->on_report(c->arg, NULL, unproved.kind != FAIL_NONE ? &unproved : &loss, "");
		return;
	}
	report = json_pack("{s:{s:i}, s:{s:i}, s:{s:I, s:i, s:i}, s:{s:i, s:i, s:i, s:i, s:{s:i, s:i}, s:{s:i, s:i, "
			   "s:i}}, s:f, s:f}",
		"config", "max_clients", max_clients, "environment", "memory_bytes", 100 << 20,
		"clients", "connected", (json_int_t)live, "handshakes", 0, "closing", 0, "pools", "sessions", 0,
		"regions_in_use", 0, "admitted", 0, "psns_in_use", 0, "qp", "in_use", 0, "quarantined", 0, "buffers",
		"posted", 9, "free", 9, "total", 18, "uptime_s", (double)clock_now_ns() / 1e9 - restarted_s,
		"started_ns", restarted_s * 1e9);
	json_object_set_new(report, "resources", json_pack("{s:f, s:f}", "machine_cpu_s", (double)clock_now_ns() / 1e9,
							   "machine_steal_s", stolen_s));
	c->on_report(c->arg, report, NULL, "");
	json_decref(report);
}

bool control_request(struct control *c, enum control_what what)
{
	assert_false(c->busy);
	c->busy = true;
	c->what = what;
	n_requests++;
	n_stats += what == CONTROL_STATS;
	look(c);
	call_in(ANSWER_S, &c->answer, on_answer, c);
	return true;
}

/* Figures that grow with each sample: 10 ms of CPU time per 100 ms. */
static void on_sample(struct ev_loop *l, ev_timer *t, int revents)
{
	struct control *c = t->data;
	struct fail closed = { .kind = FAIL_CLOSED, .stage = STAGE_PSN_EXCHANGE };
	json_t *report;

	(void)l;
	(void)revents;
	if (c->samples == watch_lost_after) {
		c->busy = false;
		c->on_report(c->arg, NULL, &closed, "");
		return;
	}
	report = json_pack("{s:I, s:f, s:f, s:i, s:i}", "taken_ns", (json_int_t)(c->samples + 1) * 100000000,
			   "cpu_user_s", 5 + 0.01 * c->samples, "cpu_system_s", 1., "fds", 20 + c->samples, "qps", 4);
	if (short_from && c->samples >= short_from)
		json_object_set_new(report, "machine_available_bytes", json_integer(1 << 20));
	c->samples++;
	call_in(0.1, &c->answer, on_sample, c);
	c->on_report(c->arg, report, NULL, "");
	json_decref(report);
}

bool control_watch(struct control *c, uint16_t interval_ms)
{
	assert_false(c->busy);
	assert_int_equal(interval_ms, 100);
	c->busy = true;
	c->what = CONTROL_WATCH;
	watches++;
	call_in(ANSWER_S, &c->answer, on_sample, c);
	return true;
}

bool control_is_busy(const struct control *c)
{
	return c->busy;
}

static void needs_nothing(const struct loadgen_config *c, struct workload_needs *out)
{
	(void)c;
	(void)out;
}

/* The configuration is made here, without parsing options. */
const char *const loadgen_workload_names[] = { "echo", NULL };

static const struct workload some_workload = { .streams = 1, .sums = true, .bytes_min = 16, .bytes_max = 1 << 20,
					       .needs = needs_nothing };

static int set_up(void **state)
{
	char err[512];

	(void)state;
	if (scratch_make(dir) || results_new(dir, "run", 0, &results, err, sizeof(err)))
		return -1;
	cfg = (struct loadgen_config){ .clients = 4, .steps = { .n = 1, .v = { 4 } }, .sizes = { .n = 1, .v = { 64 } },
		.server = "127.0.0.1", .servers = { .n = 1, .name = { "127.0.0.1" } }, .tls_port = 7471,
		.threads = WORKERS, .n_rails = 1, .qps = 1,
		.repeat = 1, .duration_ns = 300 * NS_PER_MS, .warmup_ns = 10 * NS_PER_MS, .inflight = 1,
		.message_bytes = 64, .hosts = 1, .quiet = true, .wl = &some_workload };
	outcome_init(&oc, &cfg);
	loop = ev_default_loop(0);
	on_order = NULL;
	told_clients = 0;
	n_servers = 0;
	unproved = (struct fail){ .kind = FAIL_NONE };
	n_requests = n_stats = n_while_measuring = lost_from = lost_to = watches = 0;
	watch_lost_after = -1;
	most_served = 0;
	short_from = 0;
	n_alone = alone_fails_from = 0;
	loss = (struct fail){ .kind = FAIL_ERRNO, .code = ECONNREFUSED };
	restarted_s = 1;
	max_clients = 1000000;
	lost_server = -1;
	memset(workers, 0, sizeof(workers));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	outcome_clear(&oc);
	results_free(results);
	return scratch_remove(dir);
}

static void run(void)
{
	char err[512] = "";

	if (ramp_run(&oc, results, err, sizeof(err)))
		fail_msg("%s", err);
}

/* The element of the only step. */
static const json_t *step(void)
{
	assert_int_equal(json_array_size(oc.steps), 1);
	return json_array_get(oc.steps, 0);
}

#endif
