/* The run's state machine: steps and their phases. See ramp.h; what happens from outside is in ramp_run.c.
 *
 * ramp_enter is the only writer of `phase`; each phase ends by an event (orders fulfilled, a report, a
 * timer) or by its deadline, and names what it waits for.
 */
#include "loadgen/ramp/ramp.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/judge/breaking.h"
#include "loadgen/judge/slo_judge.h"
#include "loadgen/ramp/find.h"
#include "loadgen/ramp/launch.h"
#include "loadgen/ramp/ramp_internal.h"
#include "loadgen/ramp/ramp_next.h"
#include "loadgen/ramp/ramp_util.h"
#include "loadgen/ramp/run_json.h"
#include "loadgen/ramp/server_proc.h"
#include "loadgen/ramp/step_files.h"
#include "loadgen/judge/verdict.h"
#include "loadgen/traffic/worker.h"
#include "loadgen/traffic/workload.h"


#define NAME(phase, text) [RAMP_##phase] = text
const char *const ramp_phase_names[] = {
	NAME(SERVER, "starting server"), NAME(INFO, "asking server"), NAME(MARK, "marking"),
	NAME(CONNECT, "connecting"),
	NAME(COUNT, "counting"), NAME(START, "starting traffic"), NAME(WARMUP, "warming up"),
	NAME(MEASURE, "measuring"), NAME(DRAIN, "draining"), NAME(DISCONNECT, "disconnecting"),
	NAME(RESTORE, "checking pools"), NAME(STOP, "stopping server"), NAME(DONE, "done"),
};
static_assert(sizeof(ramp_phase_names) / sizeof(ramp_phase_names[0]) == RAMP_N, "a name per phase");

/* A server that dies again and again says enough. */
#define RESTARTS_MAX 8

static uint64_t step_timeout_ns(const struct ramp *r)
{
	if (r->cfg->step_timeout_ns)
		return r->cfg->step_timeout_ns;
	return 60 * NS_PER_S + r->step->target * 40 * NS_PER_MS;
}

/* Above the session timeout of a server of our own; and the time a pool takes to shrink after churn: a rest, and
 * three windows. */
static uint64_t restore_timeout_ns(const struct ramp *r)
{
	if (r->cfg->phased)
		return (LAUNCH_PHASED_TIMEOUT_S + 10) * NS_PER_S;
	return (r->cfg->churn_per_s ? 90 : 40) * NS_PER_S;
}

/* The time a phase may take; 0: it has none. */
static uint64_t deadline_of(const struct ramp *r, enum ramp_phase phase)
{
	switch (phase) {
	case RAMP_SERVER: return 60 * NS_PER_S;
	case RAMP_INFO:
	case RAMP_MARK:
	case RAMP_COUNT: return 2 * RAMP_CONTROL_TIMEOUT_NS;
	case RAMP_CONNECT: return step_timeout_ns(r);
	case RAMP_START: return 60 * NS_PER_S;
	case RAMP_WARMUP: return r->cfg->warmup_ns + 1;
	case RAMP_MEASURE: return r->cfg->cycles ? 0 : r->cfg->duration_ns;
	case RAMP_DRAIN: return 15 * NS_PER_S;
	case RAMP_DISCONNECT: return 120 * NS_PER_S;
	case RAMP_RESTORE: return restore_timeout_ns(r);
	case RAMP_STOP: return 20 * NS_PER_S;
	case RAMP_DONE:
	case RAMP_N: break;
	}
	return 0;
}

void ramp_stop_because(struct ramp *r, enum stop_reason reason, const char *detail)
{
	if (r->stopping)
		return;
	r->stopping = true;
	r->stop_reason = reason;
	snprintf(r->stop_detail, sizeof(r->stop_detail), "%s", detail);
}

static void take_moment(struct ramp *r, struct step_moment *m)
{
	m->now_ns = clock_now_ns();
	if (res_usage_self(&m->generator) || res_machine_cpu(&m->machine))
		log_warn("cannot read this process's resources");
	m->net_bytes = RAMP_SUM(r, bytes_sent) + RAMP_SUM(r, bytes_received);
	for (uint32_t i = 0; i < r->n_workers; i++)
		m->worker_cpu_ns[i] = counter_get(&worker_stats(r->workers[i])->cpu_ns);
}

/* --- steps --- */

void ramp_begin_step(struct ramp *r)
{
	if (step_new(r->target, r->cfg->sizes.v[r->size_index], r->repetition, &r->step)) {
		ramp_stop_because(r, STOP_GENERATOR_FAILED, "this machine is out of memory");
		ramp_enter(r, RAMP_STOP);
		return;
	}
	r->step->baseline = json_incref(r->baseline);
	r->step_begin_s = results_elapsed_s(r->results);
	results_event(r->results, "step_start", json_pack("{s:i, s:i, s:I}", "clients", r->target,
		"repetition", r->repetition, "message_bytes", (json_int_t)r->step->bytes));
	ramp_enter(r, RAMP_MARK);
}

static bool is_aborted(const struct ramp *r)
{
	return r->stopping && r->stop_reason == STOP_ABORTED;
}

/* What broke in the step, or null. It ends a ramp; a search goes on, as long as there is a server. */
static json_t *judge_step(struct ramp *r)
{
	enum stop_reason reason;
	struct breaking broke;
	char text[256];

	if (is_aborted(r))
		return json_null();
	reason = stop_judge_step(r->step, text, sizeof(text));
	if (r->stopping && r->stop_reason == STOP_SERVER_LOST) {
		reason = STOP_SERVER_LOST;
		snprintf(text, sizeof(text), "%s", r->stop_detail);
	}
	if (reason == STOP_NOT)
		return json_null();
	if (!r->cfg->find_capacity)
		ramp_stop_because(r, reason, text);
	breaking_of(r->step, reason, text, &broke);
	return breaking_json(&broke);
}

/* The step as run.json has it. */
static json_t *describe_step(struct ramp *r)
{
	json_t *o = step_json(r->step, r->cfg, r->workers, r->n_workers);

	json_object_set_new(o, "started_s", json_real(r->step_begin_s));
	json_object_set_new(o, "ended_s", json_real(results_elapsed_s(r->results)));
	json_object_set_new(o, "slo", slo_json(&r->cfg->slo, r->step));
	json_object_set_new(o, "histograms", step_files_histograms(r));
	return o;
}

static void add_verdict(struct ramp *r)
{
	const struct step *s = r->step;

	if (!s->started || is_aborted(r))
		return;
	if (r->cfg->find_capacity) {
		/* It looks for what fails; wrong data is never looked for. */
		verdict_add_integrity(r->verdict, s);
		return;
	}
	verdict_add_step(r->verdict, s);
	verdict_add_slo(r->verdict, &r->cfg->slo, s);
}

/* The step's figures, its files, and what follows from it for those to come. */
static void record_step(struct ramp *r)
{
	struct step *s = r->step;
	json_t *o, *broke;

	/* Else the workers still hold the figures of the step before. */
	if (s->started)
		step_collect(s, r->workers, r->n_workers, r->cfg);
	broke = judge_step(r);
	if (s->started && !is_aborted(r))
		ramp_next_tell(r, json_is_object(broke));
	o = describe_step(r);
	json_object_set_new(o, "hard_failure", broke);
	json_object_set_new(o, "probe", ramp_next_probe_json(r));
	json_array_append_new(r->steps, o);
	json_array_append_new(r->rows, run_json_row(s));
	add_verdict(r);
	step_files_trace(r);
	results_event(r->results, "step_end", json_pack("{s:i, s:i, s:i, s:i}", "clients", s->target,
		"held", s->connected_held, "failed", s->failed, "dropped", s->dropped));
	step_free(s);
	r->step = NULL;
}

/* The ramp's other steps; what a search came to is said when it stops. */
static void add_rest_of_verdict(struct ramp *r)
{
	if (r->cfg->find_capacity)
		return;
	for (size_t i = r->step_index; i < r->cfg->steps.n; i++)
		if (i > r->step_index || (r->repetition == 1 && r->size_index == 0))
			verdict_add_not_reached(r->verdict, (uint32_t)r->cfg->steps.v[i]);
}

void ramp_end_step(struct ramp *r)
{
	enum stop_reason reason;
	char text[256];
	bool restart;

	record_step(r);
	/* A search survives that its own server does not. */
	restart = r->cfg->find_capacity && r->server && r->stop_reason == STOP_SERVER_LOST &&
		  r->restarts++ < RESTARTS_MAX;
	if (restart)
		r->stopping = false;
	if (!ramp_next(r, &reason, text, sizeof(text)))
		ramp_stop_because(r, reason, text);
	if (r->stopping) {
		add_rest_of_verdict(r);
		ramp_enter(r, RAMP_STOP);
	} else if (restart) {
		ramp_restart_server(r);
	} else {
		ramp_begin_step(r);
	}
}

/* --- phases --- */

uint64_t ramp_interval_ns(const struct ramp *r)
{
	uint64_t ns = r->cfg->cycles ? 5 * NS_PER_S : r->cfg->duration_ns / 20;

	return ns < 250 * NS_PER_MS ? 250 * NS_PER_MS : ns;
}

static enum stage last_stage(const struct ramp *r)
{
	return r->cfg->wl->silent ? STAGE_RDMA_CONNECT : STAGE_FIRST_REPLY;
}

static void enter_connect(struct ramp *r)
{
	r->step_start_ns = r->barrier_ns = clock_now_ns();
	r->step->started = true;
	r->upto = r->cfg->phased ? STAGE_TCP_CONNECT : last_stage(r);
	ramp_order_all(r, ORDER_CONNECT);
}

/* With --phased: all are at the barrier. True if they were let into the next stage. */
static bool enter_next_stage(struct ramp *r)
{
	uint64_t now = clock_now_ns();

	if (r->cfg->phased)
		r->step->phase_ns[r->upto] = now - r->barrier_ns;
	if (r->upto == last_stage(r) || r->stopping)
		return false;
	r->upto++;
	r->barrier_ns = now;
	ramp_order_all(r, ORDER_STAGE);
	return true;
}

static void enter_measure(struct ramp *r)
{
	r->last_cycles = 0;
	r->last_cycle_ns = clock_now_ns();
	ramp_order_all(r, ORDER_MEASURE);
	take_moment(r, &r->step->begin);
	ramp_ask(r, CONTROL_STATS);
	ramp_begin_intervals(r);
}

static void enter_drain(struct ramp *r)
{
	struct step *s = r->step;

	if (s->begin.now_ns) {
		/* A rest too short to say anything would weigh as much as a whole interval. */
		if (clock_now_ns() - r->last_interval_ns >= ramp_interval_ns(r) / 2)
			ramp_end_interval(r);
		take_moment(r, &s->end);
	}
	ramp_order_all(r, ORDER_STOP);
	s->connected_held = (uint32_t)(RAMP_SUM(r, live) + RAMP_SUM(r, away));
	ramp_ask(r, CONTROL_STATS);
}

static void enter_stop(struct ramp *r)
{
	if (r->cfg->find_capacity && json_array_size(r->steps) > 0)
		find_add_verdict(r);
	for (uint32_t i = 0; i < r->n_workers; i++)
		worker_give(r->workers[i], ORDER_QUIT, NULL);
	control_free(r->control);
	r->control = NULL;
	if (r->server && !r->server_lost)
		server_proc_stop(r->server);
	else
		ramp_enter(r, RAMP_DONE);
}

void ramp_enter(struct ramp *r, enum ramp_phase phase)
{
	uint64_t deadline;

	if (r->phase != phase)
		results_event(r->results, "phase", json_pack("{s:s}", "phase", ramp_phase_names[phase]));
	deadline = deadline_of(r, phase);
	ev_timer_stop(r->loop, &r->deadline);
	ev_now_update(r->loop);
	if (deadline) {
		ev_timer_set(&r->deadline, (double)deadline / 1e9, 0.);
		ev_timer_start(r->loop, &r->deadline);
	}
	r->report_arrived = false;
	r->phase = phase;
	r->phase_number++;
	switch (phase) {
	case RAMP_MARK: ramp_ask(r, CONTROL_MARK); break;
	case RAMP_CONNECT: enter_connect(r); break;
	case RAMP_COUNT: ramp_ask(r, CONTROL_STATS); break;
	case RAMP_START: ramp_order_all(r, ORDER_TRAFFIC); break;
	case RAMP_MEASURE: enter_measure(r); break;
	case RAMP_DRAIN: enter_drain(r); break;
	case RAMP_DISCONNECT: ramp_order_all(r, ORDER_DISCONNECT); break;
	case RAMP_RESTORE: ramp_ask(r, CONTROL_STATS); break;
	case RAMP_STOP: enter_stop(r); break;
	case RAMP_DONE: ev_break(r->loop, EVBREAK_ALL); break;
	case RAMP_SERVER:
	case RAMP_INFO:
	case RAMP_WARMUP:
	case RAMP_N: break;
	}
	r->phase_start_ns = clock_now_ns();
}

/* Goes on when the running phase has all it waits for. */
void ramp_advance(struct ramp *r)
{
	struct step *s = r->step;

	switch (r->phase) {
	case RAMP_MARK:
		if (r->report_arrived)
			ramp_enter(r, r->stopping ? RAMP_DISCONNECT : RAMP_CONNECT);
		break;
	case RAMP_CONNECT:
		if (!ramp_all_done(r) || enter_next_stage(r))
			return;
		s->connect_wall_ns = clock_now_ns() - r->step_start_ns;
		s->connected_peak = s->connected_held = (uint32_t)RAMP_SUM(r, live);
		results_event(r->results, "connected", json_pack("{s:i, s:I, s:I}", "clients", s->target,
			"connected", (json_int_t)RAMP_SUM(r, live), "failed", (json_int_t)RAMP_SUM(r, failed)));
		ramp_enter(r, r->stopping ? RAMP_DISCONNECT : RAMP_COUNT);
		break;
	case RAMP_COUNT:
		if (r->report_arrived)
			ramp_enter(r, s->connected_peak && !r->stopping ? RAMP_START : RAMP_DISCONNECT);
		break;
	case RAMP_START:
		if (ramp_all_done(r))
			ramp_enter(r, RAMP_WARMUP);
		break;
	case RAMP_DRAIN:
		if (!ramp_all_done(r) || !r->report_arrived)
			return;
		/* Who left on purpose is back by now, or lost. */
		s->connected_held = (uint32_t)RAMP_SUM(r, live);
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_DISCONNECT:
		if (!ramp_all_done(r))
			return;
		if (r->server_lost) {
			/* Nobody is left to say whether the pools came back. */
			s->leaked = true;
			ramp_end_step(r);
			return;
		}
		ramp_enter(r, RAMP_RESTORE);
		break;
	case RAMP_SERVER:
	case RAMP_INFO:
	case RAMP_WARMUP:
	case RAMP_MEASURE:
	case RAMP_RESTORE:
	case RAMP_STOP:
	case RAMP_DONE:
	case RAMP_N:
		break;
	}
}

static void on_phase_deadline(struct ramp *r)
{
	switch (r->phase) {
	case RAMP_SERVER:
		ramp_stop_because(r, STOP_SERVER_LOST, "the server did not become ready within 60 s");
		ramp_enter(r, RAMP_STOP);
		break;
	case RAMP_INFO:
		ramp_stop_because(r, STOP_SERVER_LOST, "the server did not answer the control session");
		ramp_enter(r, RAMP_STOP);
		break;
	case RAMP_MARK:
		ramp_enter(r, RAMP_CONNECT);
		break;
	case RAMP_CONNECT:
		r->step->step_timeout = true;
		r->step->connect_wall_ns = clock_now_ns() - r->step_start_ns;
		r->step->connected_peak = r->step->connected_held = (uint32_t)RAMP_SUM(r, live);
		ramp_order_all(r, ORDER_ABANDON);
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_COUNT:
		ramp_enter(r, RAMP_START);
		break;
	case RAMP_WARMUP:
		ramp_enter(r, RAMP_MEASURE);
		break;
	case RAMP_START:
	case RAMP_MEASURE:
		ramp_enter(r, RAMP_DRAIN);
		break;
	case RAMP_DRAIN:
		if (!ramp_all_done(r)) {
			r->step->stuck = true;
			/* Who is away does not come back any more. */
			r->step->connected_held = (uint32_t)RAMP_SUM(r, live);
			ramp_order_all(r, ORDER_ABANDON);
		}
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_DISCONNECT:
		ramp_stop_because(r, STOP_GENERATOR_FAILED, "clients did not disconnect within 120 s");
		ramp_enter(r, RAMP_RESTORE);
		break;
	case RAMP_RESTORE:
		r->step->leaked = true;
		ramp_end_step(r);
		break;
	case RAMP_STOP:
		log_warn("the server did not stop in time: killing it");
		ramp_enter(r, RAMP_DONE);
		break;
	case RAMP_DONE:
	case RAMP_N:
		break;
	}
}

void ramp_on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	on_phase_deadline(w->data);
}
