/* A run from its start to its end, and what happens to it from outside: reports of the server, ticks, signals, the end
 * of our server. What follows from them is for the state machine (phases.c) to say. See ramp.h.
 */
#include "loadgen/ramp/ramp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "loadgen/ramp/needs.h"
#include "loadgen/ramp/phases.h"
#include "loadgen/results/results.h"

/* Long phases ask now and then, because the server closes a silent control session after 600 s. Not more often, because the
 * measured time is to be without questions. */
#define KEEPALIVE_NS (480 * NS_PER_S)

/* --- the server --- */

/* The run stops before the first client connects if the server cannot give what the workload needs. */
static void on_info(struct ramp *r, json_t *info)
{
	char text[224];

	json_decref(r->outcome->server_info);
	r->outcome->server_info = json_incref(info);
	if (needs_are_met(r->cfg, info, text, sizeof(text)))
		return;
	outcome_stop(r->outcome, STOP_ERROR_RATE, text);
	ramp_enter(r, RAMP_STOP);
}

static void on_report(void *arg, enum control_what what, uint32_t number, json_t *report)
{
	struct ramp *r = arg;

	r->outcome->control_reconnects = r->sut.reconnects;
	r->outcome->server_restarts = r->sut.restarts;
	if (what == CONTROL_INFO) {
		on_info(r, report);
	} else if (r->phase == RAMP_INFO) {
		ramp_begin_step(r);
	} else if (number != r->phase_number) {
		return; /* no answer to what this phase wants to know */
	} else if (what == CONTROL_MARK) {
		r->report_arrived = true;
		ramp_advance(r);
	} else {
		ramp_on_stats(r, report);
	}
}

static void on_lost(void *arg, const char *why)
{
	struct ramp *r = arg;

	outcome_stop(r->outcome, STOP_SERVER_LOST, why);
	r->report_arrived = true;
	if (r->phase <= RAMP_INFO)
		ramp_enter(r, RAMP_STOP);
	else if (r->phase == RAMP_RESTORE)
		ramp_give_up_restore(r);
	else if (r->phase >= RAMP_WARMUP && r->phase <= RAMP_MEASURE)
		ramp_stop_traffic(r);
	else
		ramp_advance(r);
}

/* Called on a worker's thread. */
static void wake_main(void *arg)
{
	struct ramp *r = arg;

	ev_async_send(r->loop, &r->fulfilled);
}

/* Makes the control session and the workers, and asks who the server is. */
static int meet_server(struct ramp *r, char *err, size_t err_size)
{
	int ret = sut_connect(&r->sut, err, err_size);

	if (!ret)
		ret = crew_start(&r->crew, r->cfg, r->sut.addrs, r->sut.names, wake_main, r, err, err_size);
	if (ret)
		return ret;
	r->outcome->generator_dev = crew_device(&r->crew);
	ramp_enter(r, RAMP_INFO);
	sut_ask(&r->sut, CONTROL_INFO, r->phase_number);
	sut_ask(&r->sut, CONTROL_STATS, r->phase_number);
	return 0;
}

static void on_server_ready(void *arg)
{
	struct ramp *r = arg;
	char err[256];

	if (r->phase == RAMP_SERVER && meet_server(r, err, sizeof(err))) {
		outcome_stop(r->outcome, STOP_RESOURCE_EXHAUSTED, err);
		ramp_enter(r, RAMP_STOP);
	}
}

static void on_server_exit(void *arg, const char *why)
{
	struct ramp *r = arg;

	if (r->phase == RAMP_STOP) {
		ramp_enter(r, RAMP_DONE);
		return;
	}
	outcome_stop(r->outcome, STOP_SERVER_LOST, why);
	if (!r->current.step)
		ramp_enter(r, RAMP_STOP);
	else
		ramp_stop_traffic(r);
}

static const struct sut_events server_events = {
	.on_ready = on_server_ready,
	.on_report = on_report,
	.on_lost = on_lost,
	.on_exit = on_server_exit,
};

/* --- ticks, workers, signals --- */

static bool nothing_left_to_measure(struct ramp *r)
{
	if (CREW_SUM(&r->crew, live) + CREW_SUM(&r->crew, away) == 0)
		return true;
	return r->phase == RAMP_MEASURE && current_cycles_are_done(&r->current, &r->crew);
}

/* RAMP_DRAIN asks by itself: once, when no worker records any more. */
static bool is_to_ask(const struct ramp *r)
{
	if (!sut_is_idle(&r->sut) || r->phase == RAMP_DRAIN)
		return false;
	return r->phase == RAMP_RESTORE || r->phase == RAMP_COUNT ||
	       clock_now_ns() - r->sut.last_report_ns > KEEPALIVE_NS;
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct ramp *r = w->data;
	bool changing;

	(void)revents;
	ramp_beat(r);
	if (r->phase == RAMP_MEASURE)
		current_interval(&r->current, &r->crew);
	if (r->phase >= RAMP_WARMUP && r->phase <= RAMP_MEASURE && nothing_left_to_measure(r))
		ramp_stop_traffic(r);
	if (is_to_ask(r))
		sut_ask(&r->sut, CONTROL_STATS, r->phase_number);
	changing = r->phase == RAMP_CONNECT || r->phase == RAMP_DISCONNECT;
	current_sample(&r->current, &r->crew, ramp_phase_name(r), changing);
	if (r->phase < RAMP_DONE)
		progress_show(&r->progress, r, ramp_phase_name(r));
	ev_timer_again(loop, w);
}

static void on_turn_end(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct ramp *r = w->data;

	(void)loop;
	(void)revents;
	sut_send_next(&r->sut);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	ramp_on_deadline(w->data);
}

/* The running step ends and is kept, whichever worker it was; if others follow, nothing more happens. */
static void on_broken(struct ramp *r)
{
	const char *devices = "";
	int error = crew_failure(&r->crew, &devices);
	char text[sizeof(r->outcome->stop_detail)];

	snprintf(text, sizeof(text), "the generator's RDMA device %s failed: %s", devices, strerror(-error));
	outcome_stop(r->outcome, STOP_GENERATOR_FAILED, text);
	if (r->current.step && r->phase < RAMP_RESTORE)
		r->current.step->generator_failed = true;
	ramp_cut_short(r);
}

static void on_fulfilled(struct ev_loop *loop, ev_async *w, int revents)
{
	struct ramp *r = w->data;

	(void)loop;
	(void)revents;
	if (r->phase >= RAMP_STOP)
		return;
	if (crew_failure(&r->crew, NULL))
		on_broken(r);
	ramp_advance(r);
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
	struct ramp *r = w->data;

	(void)loop;
	(void)revents;
	if (r->phase >= RAMP_STOP)
		return;
	if (outcome_is_aborted(r->outcome)) {
		/* The second signal ends the run at once. */
		ramp_enter(r, RAMP_DONE);
		return;
	}
	outcome_stop(r->outcome, STOP_ABORTED, w->signum == SIGINT ? "interrupted" : "terminated");
	progress_clear(&r->progress);
	fprintf(stderr, "performance_test: %s: draining, results are kept\n", r->outcome->stop_detail);
	ramp_cut_short(r);
}

/* --- start and end --- */

static void start_watchers(struct ramp *r)
{
	ev_init(&r->deadline, on_deadline);
	r->deadline.data = r;
	ev_timer_init(&r->tick, on_tick, (double)CURRENT_TICK_NS / 1e9, (double)CURRENT_TICK_NS / 1e9);
	r->tick.data = r;
	ev_timer_start(r->loop, &r->tick);
	ev_async_init(&r->fulfilled, on_fulfilled);
	r->fulfilled.data = r;
	ev_async_start(r->loop, &r->fulfilled);
	ev_signal_init(&r->interrupt, on_signal, SIGINT);
	r->interrupt.data = r;
	ev_signal_start(r->loop, &r->interrupt);
	ev_signal_init(&r->terminate, on_signal, SIGTERM);
	r->terminate.data = r;
	ev_signal_start(r->loop, &r->terminate);
	ev_prepare_init(&r->turn_end, on_turn_end);
	r->turn_end.data = r;
	ev_prepare_start(r->loop, &r->turn_end);
}

static void stop_watchers(struct ramp *r)
{
	ev_timer_stop(r->loop, &r->deadline);
	ev_timer_stop(r->loop, &r->tick);
	ev_async_stop(r->loop, &r->fulfilled);
	ev_signal_stop(r->loop, &r->interrupt);
	ev_signal_stop(r->loop, &r->terminate);
	ev_prepare_stop(r->loop, &r->turn_end);
}

static int start(struct ramp *r, char *err, size_t err_size)
{
	if (!r->cfg->server) {
		ramp_enter(r, RAMP_SERVER);
		return sut_start(&r->sut, err, err_size);
	}
	if (sut_find(&r->sut, err, err_size))
		return -EHOSTUNREACH;
	return meet_server(r, err, err_size);
}

int ramp_run(struct outcome *oc, struct results *results, char *err, size_t err_size)
{
	struct ramp r = { .cfg = oc->cfg, .results = results, .outcome = oc, .loop = ev_default_loop(0),
			  .phase = RAMP_N, .progress.quiet = oc->cfg->quiet };
	int ret;

	r.files = (struct step_files){ .cfg = r.cfg, .results = results, .run_start_ns = clock_now_ns() };
	agenda_init(&r.agenda, oc);
	snprintf(err, err_size, "this machine is out of memory");
	ret = current_init(&r.current, r.cfg, results);
	sut_init(&r.sut, r.cfg, results_path(results, "server.log"), r.loop, &server_events, &r);
	if (ret)
		goto out;
	start_watchers(&r);
	ret = start(&r, err, err_size);
	if (!ret) {
		ev_run(r.loop, 0);
		progress_clear(&r.progress);
	}
	stop_watchers(&r);
out:
	crew_dismiss(&r.crew);
	sut_clear(&r.sut);
	current_clear(&r.current);
	return ret;
}
