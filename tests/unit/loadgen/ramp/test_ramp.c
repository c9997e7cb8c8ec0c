/* Unit tests of loadgen/ramp: a whole run, with the workers and the server's control session played by the test. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/control.h"
#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/rdma/dev.h"
#include "loadgen/judge/verdict.h"
#include "loadgen/ramp/ramp.h"
#include "loadgen/results/results.h"
#include "loadgen/worker/worker.h"
#include "loadgen/traffic/workload.h"
#include "tests/unit/files/scratch.h"

#define WORKERS 2
#define ANSWER_S 0.02		/* the server takes this for a report */
#define DRAIN_S 0.02		/* and a worker for what is in flight */

static char dir[SCRATCH_MAX];
static struct results *results;
static struct outcome oc;
static struct loadgen_config cfg;
static struct ev_loop *loop;

/* What the test does when a worker is given an order; NULL: nothing. */
static void (*on_order)(struct worker *w, enum worker_order order);

/* --- workers --- */

struct worker {
	struct worker_config cfg;
	struct worker_stats stats;
	uint64_t given;
	bool broken;
	ev_timer stopping, breaking;
};

static struct worker *workers[WORKERS];

static void make_histograms(struct worker_stats *st)
{
	for (int k = 0; k < HANDSHAKE_N; k++) {
		for (int i = 0; i < STAGE_TIMED; i++)
			assert_int_equal(hist_new(&st->stages[k][i]), 0);
		assert_int_equal(hist_new(&st->total[k]), 0);
	}
	assert_int_equal(hist_new(&st->away_ns), 0);
	assert_int_equal(hist_new(&st->outage_ns), 0);
	assert_int_equal(hist_new(&st->response), 0);
	assert_int_equal(hist_new(&st->service), 0);
	assert_int_equal(hist_new(&st->lag), 0);
}

int worker_new(const struct worker_config *c, struct worker **out, char *err, size_t err_size)
{
	struct worker *w = calloc(1, sizeof(*w));

	(void)err;
	(void)err_size;
	assert_non_null(w);
	w->cfg = *c;
	ev_init(&w->stopping, NULL);
	ev_init(&w->breaking, NULL);
	make_histograms(&w->stats);
	workers[c->index] = *out = w;
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
	for (int k = 0; k < HANDSHAKE_N; k++) {
		for (int i = 0; i < STAGE_TIMED; i++)
			hist_free(w->stats.stages[k][i]);
		hist_free(w->stats.total[k]);
	}
	hist_free(w->stats.away_ns);
	hist_free(w->stats.outage_ns);
	hist_free(w->stats.response);
	hist_free(w->stats.service);
	hist_free(w->stats.lag);
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

static void on_stopped(struct ev_loop *l, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)l;
	(void)revents;
	counter_set(&w->stats.measure_end_ns, clock_now_ns());
	w->cfg.on_progress(w->cfg.arg);
	call_in(DRAIN_S, &w->stopping, on_drained, w);
}

static void obey(struct worker *w, enum worker_order order, const struct worker_task *task)
{
	switch (order) {
	case ORDER_CONNECT:
		counter_set(&w->stats.started, task->clients);
		counter_set(&w->stats.live, task->clients);
		counter_set(&w->stats.measure_start_ns, 0);
		counter_set(&w->stats.measure_end_ns, 0);
		break;
	case ORDER_MEASURE:
		counter_set(&w->stats.measure_start_ns, clock_now_ns());
		counter_set(&w->stats.messages_measured, 1000);
		hist_record_n(w->stats.response, 50000, 1000);
		break;
	case ORDER_STOP:
		/* One worker after the other, as threads do. */
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

const struct dev *worker_dev(const struct worker *w)
{
	(void)w;
	return NULL;
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

static void on_break(struct ev_loop *l, ev_timer *t, int revents)
{
	struct worker *w = t->data;

	(void)l;
	(void)revents;
	w->broken = true;
	ev_timer_stop(loop, &w->stopping);
	w->cfg.on_progress(w->cfg.arg);
}

/* Its device fails after a while. */
static void break_in(struct worker *w, double s)
{
	call_in(s, &w->breaking, on_break, w);
}

/* --- the server --- */

struct control {
	control_on_report_fn *on_report;
	void *arg;
	bool busy;
	enum control_what what;
	ev_timer answer;
};

static int n_stats;		/* questions for statistics */
static int lost_from;		/* this one of them and those after it fail; 0: none */
static int lost_to;		/* up to this one; 0: for ever */
static struct fail loss;	/* how they fail */
static double restarted_s;	/* when the server's process began */
static int n_while_measuring;	/* asked or answered while a worker recorded */

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
	(void)c;
	(void)l;
	(void)err;
	(void)err_size;
	*out = calloc(1, sizeof(**out));
	assert_non_null(*out);
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

static void on_answer(struct ev_loop *l, ev_timer *t, int revents)
{
	struct control *c = t->data;
	uint64_t live = workers[0] ? counter_get(&workers[0]->stats.live) + counter_get(&workers[1]->stats.live) : 0;
	json_t *report;

	(void)l;
	(void)revents;
	look(c);
	c->busy = false;
	if (lost_from && n_stats >= lost_from && (!lost_to || n_stats <= lost_to)) {
		c->on_report(c->arg, NULL, &loss, "");
		return;
	}
	report = json_pack("{s:{s:I, s:i, s:i}, s:{s:i, s:i, s:i, s:i, s:{s:i, s:i}, s:{s:i, s:i}}, s:f, s:f}",
		"clients", "connected", (json_int_t)live, "handshakes", 0, "closing", 0, "pools", "sessions", 0,
		"regions_in_use", 0, "admitted", 0, "psns_in_use", 0, "qp", "in_use", 0, "quarantined", 0, "buffers",
		"posted", 9, "free", 9, "uptime_s", (double)clock_now_ns() / 1e9 - restarted_s, "started_ns",
		restarted_s * 1e9);
	c->on_report(c->arg, report, NULL, "");
	json_decref(report);
}

bool control_request(struct control *c, enum control_what what)
{
	assert_false(c->busy);
	c->busy = true;
	c->what = what;
	n_stats += what == CONTROL_STATS;
	look(c);
	call_in(ANSWER_S, &c->answer, on_answer, c);
	return true;
}

bool control_is_busy(const struct control *c)
{
	return c->busy;
}

/* --- fixture --- */

static void needs_nothing(const struct loadgen_config *c, struct workload_needs *out)
{
	(void)c;
	(void)out;
}

static const struct workload some_workload = { .streams = 1, .needs = needs_nothing };

static int set_up(void **state)
{
	char err[512];

	(void)state;
	if (scratch_make(dir) || results_new(dir, "run", 0, &results, err, sizeof(err)))
		return -1;
	cfg = (struct loadgen_config){ .clients = 4, .steps = { .n = 1, .v = { 4 } }, .sizes = { .n = 1, .v = { 64 } },
		.server = "127.0.0.1", .servers = { .n = 1, .name = { "127.0.0.1" } }, .tls_port = 7471, .threads = WORKERS,
		.repeat = 1, .n_rails = 1, .duration_ns = 300 * NS_PER_MS, .warmup_ns = 10 * NS_PER_MS, .inflight = 1,
		.message_bytes = 64, .quiet = true, .wl = &some_workload };
	outcome_init(&oc, &cfg);
	loop = ev_default_loop(0);
	on_order = NULL;
	n_stats = n_while_measuring = lost_from = lost_to = 0;
	loss = (struct fail){ .kind = FAIL_ERRNO, .code = ECONNREFUSED };
	restarted_s = 1;
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

/* The only step. */
static const json_t *step(void)
{
	assert_int_equal(json_array_size(oc.steps), 1);
	return json_array_get(oc.steps, 0);
}

static void assert_overall_inconclusive(void)
{
	json_t *c;
	size_t i;

	assert_true(json_array_size(oc.verdict) > 0);
	json_array_foreach(oc.verdict, i, c)
		assert_string_equal(json_text_at(c, "result"), "inconclusive");
}

/* --- the measured time --- */

static void measure__server_reports__before_and_after_it_only(void **state)
{
	double window, measured;

	(void)state;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(json_number_at(step(), "connected_held"), 4);
	/* The baseline, the count of clients, both ends of the measured time, the pools. */
	assert_true(n_stats >= 5);
	assert_int_equal(n_while_measuring, 0);
	/* Each figure is over the time between its own two readings; the reports enclose the measured time. */
	window = json_number_at(step(), "resources.server.window_s");
	measured = json_number_at(step(), "measured_s");
	assert_true(measured >= 0.25);
	assert_true(window >= measured);
}

/* --- a device that fails --- */

/* With a device: counted, with what became of them. */
static void assert_clients_went(int dropped, int failed)
{
	const json_t *failures = json_at(step(), "failures");
	const json_t *first = json_array_get(failures, 0);

	assert_int_equal(json_number_at(step(), "dropped"), dropped);
	assert_int_equal(json_number_at(step(), "failed"), failed);
	assert_string_equal(json_text_at(first, "stage"), dropped ? "traffic" : "rdma_connect");
	assert_string_equal(json_text_at(first, "code"), "errno:ENODEV");
	assert_int_equal(json_number_at(first, "count"), dropped + failed);
}

static void break_while_measuring(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		break_in(w, 0.1);
}

static void device_fails__while_measuring__step_is_kept_with_its_figures(void **state)
{
	(void)state;
	on_order = break_while_measuring;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_non_null(strstr(oc.stop_detail, "device fake0 failed: "));
	assert_string_equal(json_text_at(step(), "hard_failure.resource"), "device");
	assert_string_equal(json_text_at(step(), "hard_failure.side"), "generator");
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000);
	assert_true(json_number_at(step(), "throughput_msgs_per_s") > 2 * 1000 / 0.3);
	assert_true(json_number_at(step(), "measured_s") >= 0.09);
	/* Those of the worker that still works. */
	assert_int_equal(json_number_at(step(), "connected_held"), 2);
	assert_clients_went(2, 0);
	assert_overall_inconclusive();
}

static void break_both(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE)
		break_in(w, 0.05 + 0.01 * w->cfg.index);
}

static void device_fails__under_all_workers__step_is_kept_once(void **state)
{
	(void)state;
	on_order = break_both;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_int_equal(json_number_at(step(), "connected_held"), 0);
	assert_clients_went(4, 0);
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000);
	assert_overall_inconclusive();
}

static void break_while_connecting(struct worker *w, enum worker_order order)
{
	if (order != ORDER_CONNECT || w->cfg.index != 0)
		return;
	counter_set(&w->stats.fulfilled, w->given - 1); /* not yet */
	counter_set(&w->stats.connecting, counter_get(&w->stats.live));
	counter_set(&w->stats.live, 0);
	break_in(w, 0.01);
}

static void device_fails__while_connecting__step_is_kept(void **state)
{
	(void)state;
	on_order = break_while_connecting;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_int_equal(json_number_at(step(), "connected_peak"), 2);
	assert_clients_went(0, 2);
	assert_true(json_is_null(json_at(step(), "measured_s")));
	assert_overall_inconclusive();
}

/* A search says once what it came to. */
static void device_fails__in_a_search__one_verdict(void **state)
{
	(void)state;
	cfg.find_capacity = true;
	on_order = break_both;
	run();
	assert_int_equal(oc.stop_reason, STOP_GENERATOR_FAILED);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "generator_failed");
	assert_int_equal(json_array_size(oc.verdict), 1);
	assert_overall_inconclusive();
	assert_false(oc.search_done);
}

/* --- other ends of a run --- */

static void ramp__two_steps_twice__all_run_in_order(void **state)
{
	static const int clients[] = { 2, 2, 4, 4 };

	(void)state;
	cfg.steps = (struct opt_list){ .n = 2, .v = { 2, 4 } };
	cfg.repeat = 2;
	cfg.duration_ns = 50 * NS_PER_MS;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(json_array_size(oc.steps), N_ELEMENTS(clients));
	for (size_t i = 0; i < N_ELEMENTS(clients); i++) {
		const json_t *o = json_array_get(oc.steps, i);

		assert_int_equal(json_number_at(o, "target_clients"), clients[i]);
		assert_int_equal(json_number_at(o, "repetition"), 1 + i % 2);
		assert_true(json_is_null(json_at(o, "hard_failure")));
	}
}

static void interrupt(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		assert_int_equal(raise(SIGINT), 0);
}

static void interrupted__while_measuring__step_is_kept_and_not_judged(void **state)
{
	(void)state;
	on_order = interrupt;
	run();
	assert_int_equal(oc.stop_reason, STOP_ABORTED);
	assert_int_equal(json_number_at(step(), "response_ns.count"), 2000);
	assert_true(json_is_null(json_at(step(), "hard_failure")));
	assert_int_equal(json_array_size(oc.verdict), 0);
}

static void server_lost__before_measuring__step_is_kept_without_figures(void **state)
{
	(void)state;
	lost_from = 3;	/* after the baseline and the count of clients */
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_string_equal(json_text_at(step(), "hard_failure.reason"), "server_lost");
	assert_int_equal(json_number_at(step(), "connected_held"), 4);
	assert_true(json_is_null(json_at(step(), "measured_s")));
}

/* The search was not over, whatever its last step would have made of it. */
static void server_lost__in_a_search__search_is_not_done(void **state)
{
	(void)state;
	cfg.find_capacity = true;
	lost_from = 3;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_false(oc.search_done);
}

static void server_lost__first_of_two_steps__second_not_reached(void **state)
{
	json_t *last;

	(void)state;
	cfg.steps = (struct opt_list){ .n = 2, .v = { 2, 4 } };
	lost_from = 3;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	last = json_array_get(oc.verdict, json_array_size(oc.verdict) - 1);
	assert_int_equal(json_number_at(last, "clients"), 4);
	assert_string_equal(json_text_at(last, "measured"), "not reached");
}

/* --- the control session --- */

static void control_session__breaks_and_comes_back__run_goes_on(void **state)
{
	static const struct fail losses[] = {
		{ STAGE_PSN_EXCHANGE, FAIL_ERRNO, ECONNRESET }, { STAGE_PSN_EXCHANGE, FAIL_CLOSED, 0 },
		{ STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0 }, { STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_BUSY },
		{ STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_NO_RESOURCES },
	};

	for (size_t i = 0; i < N_ELEMENTS(losses); i++) {
		loss = losses[i];
		lost_from = 3;
		lost_to = 4;
		run();
		assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
		assert_int_equal(oc.control_reconnects, 1);
		assert_int_equal(json_number_at(step(), "connected_held"), 4);
		assert_string_equal(json_text_at(step(), "server_pools"), "restored");
		assert_true(json_number_at(step(), "measured_s") >= 0.25);
		assert_int_equal(n_while_measuring, 0);
		tear_down(state);
		set_up(state);
	}
}

static void control_session__refused_for_good__not_asked_again(void **state)
{
	(void)state;
	loss = (struct fail){ STAGE_TLS_HANDSHAKE, FAIL_CERTIFICATE, 10 };
	lost_from = lost_to = 3;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_non_null(strstr(oc.stop_detail, "certificate:10"));
}

static void lose_from_now(struct worker *w, enum worker_order order)
{
	if (order == ORDER_DISCONNECT && w->cfg.index == 1)
		lost_from = n_stats + 1;
}

/* The server was well when it was asked last: nobody knows of its pools, and nobody says that it failed. */
static void control_session__lost_before_the_pools_are_checked__unknown(void **state)
{
	json_t *c;
	size_t i;

	(void)state;
	on_order = lose_from_now;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_string_equal(json_text_at(step(), "server_pools"), "unknown");
	json_array_foreach(oc.verdict, i, c) {
		assert_string_not_equal(json_text_at(c, "result"), "fail");
		if (strcmp(json_text_at(c, "criterion"), "server's pools after the step") == 0)
			assert_string_equal(json_text_at(c, "measured"), "unknown: the server could not be asked");
	}
}

static void restart_server(struct worker *w, enum worker_order order)
{
	if (order != ORDER_TRAFFIC || w->cfg.index)
		return;
	lost_from = lost_to = n_stats + 1;
	restarted_s = (double)clock_now_ns() / 1e9;
}

static void control_session__another_server_answers__lost(void **state)
{
	(void)state;
	on_order = restart_server;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
	assert_non_null(strstr(oc.stop_detail, "another one answers in its place"));
}

static void restart_while_measuring(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		restarted_s = (double)clock_now_ns() / 1e9;
}

/* The other server was asked late: it has been up for longer than the first one had been when it was asked last. */
static void control_session__another_server_answers_late__lost(void **state)
{
	(void)state;
	restarted_s = (double)clock_now_ns() / 1e9;
	on_order = restart_while_measuring;
	run();
	assert_int_equal(oc.stop_reason, STOP_SERVER_LOST);
}

/* Clients are back; of the two servers' counters no figure is made. */
static void control_session__another_server_with_reconnect__run_goes_on(void **state)
{
	(void)state;
	cfg.reconnect_ns = 30 * NS_PER_S;
	on_order = restart_while_measuring;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(oc.server_restarts, 1);
	assert_int_equal(json_number_at(step(), "connected_held"), 4);
	assert_true(json_is_null(json_at(step(), "resources.server.window_s")));
	assert_true(json_number_at(step(), "measured_s") >= 0.25);
	assert_string_equal(json_text_at(step(), "server_pools"), "restored");
}

/* Nobody listens for longer than a run without --reconnect would wait. */
static void control_session__server_away_with_reconnect__waited_for(void **state)
{
	(void)state;
	cfg.reconnect_ns = 30 * NS_PER_S;
	lost_from = 3;
	lost_to = 10;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_int_equal(oc.control_reconnects, 1);
}

/* --- time that is missing --- */

static void assert_flag(const char *name)
{
	json_t *flag;
	size_t i;

	json_array_foreach(json_at(step(), "validity"), i, flag)
		if (strcmp(json_string_value(flag), name) == 0)
			return;
	fail_msg("no flag %s", name);
}

/* This thread stands still, as if it were stopped. */
static void freeze(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1)
		nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 600000000 }, NULL);
}

static void frozen__while_measuring__hole_is_named_and_nothing_passes_for_sure(void **state)
{
	(void)state;
	on_order = freeze;
	run();
	assert_int_equal(oc.stop_reason, STOP_MAX_REACHED);
	assert_flag("clock_hole");
	assert_true(json_number_at(step(), "clock_late_ns") > 1.2e9);
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_INCONCLUSIVE);
}

static int freezes;

static void freeze_some(struct worker *w, enum worker_order order)
{
	if (order == ORDER_MEASURE && w->cfg.index == 1 && freezes && freezes--)
		nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 600000000 }, NULL);
}

/* The second measurement of the same clients counts, and has a number of its own. */
static void frozen__in_a_search__probe_is_made_again(void **state)
{
	(void)state;
	cfg.find_capacity = true;
	cfg.duration_ns = 50 * NS_PER_MS;
	outcome_clear(&oc);
	outcome_init(&oc, &cfg);
	freezes = 1;
	on_order = freeze_some;
	run();
	assert_true(oc.search_done);
	assert_true(json_array_size(oc.steps) >= 2);
	for (size_t i = 0; i < json_array_size(oc.steps); i++) {
		const json_t *o = json_array_get(oc.steps, i);

		assert_int_equal(json_number_at(o, "target_clients"), 4);
		assert_int_equal(json_number_at(o, "repetition"), i + 1);
	}
	assert_true(json_number_at(json_array_get(oc.steps, 0), "clock_late_ns") > 1.2e9);
}

static void stall(struct worker *w, enum worker_order order)
{
	if (order == ORDER_STOP)
		counter_set(&w->stats.reply_stall_ns, 113 * NS_PER_S);
}

static void server_frozen__replies_stall__named_and_nothing_passes_for_sure(void **state)
{
	(void)state;
	on_order = stall;
	run();
	assert_flag("replies_stalled");
	assert_int_equal(verdict_overall(oc.verdict), CRITERION_INCONCLUSIVE);
}

#define RAMP_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RAMP_TEST(measure__server_reports__before_and_after_it_only),
		RAMP_TEST(device_fails__while_measuring__step_is_kept_with_its_figures),
		RAMP_TEST(device_fails__under_all_workers__step_is_kept_once),
		RAMP_TEST(device_fails__while_connecting__step_is_kept),
		RAMP_TEST(device_fails__in_a_search__one_verdict),
		RAMP_TEST(ramp__two_steps_twice__all_run_in_order),
		RAMP_TEST(interrupted__while_measuring__step_is_kept_and_not_judged),
		RAMP_TEST(server_lost__before_measuring__step_is_kept_without_figures),
		RAMP_TEST(server_lost__in_a_search__search_is_not_done),
		RAMP_TEST(server_lost__first_of_two_steps__second_not_reached),
		RAMP_TEST(control_session__breaks_and_comes_back__run_goes_on),
		RAMP_TEST(control_session__refused_for_good__not_asked_again),
		RAMP_TEST(control_session__lost_before_the_pools_are_checked__unknown),
		RAMP_TEST(control_session__another_server_answers__lost),
		RAMP_TEST(control_session__another_server_answers_late__lost),
		RAMP_TEST(control_session__another_server_with_reconnect__run_goes_on),
		RAMP_TEST(control_session__server_away_with_reconnect__waited_for),
		RAMP_TEST(frozen__while_measuring__hole_is_named_and_nothing_passes_for_sure),
		RAMP_TEST(frozen__in_a_search__probe_is_made_again),
		RAMP_TEST(server_frozen__replies_stall__named_and_nothing_passes_for_sure),
	};

	return cmocka_run_group_tests_name("loadgen_ramp", tests, NULL, NULL);
}
