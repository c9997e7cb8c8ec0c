/* The run's state machine: steps and their phases. See ramp.h; what happens from outside is in ramp_run.c.
 *
 * ramp_enter is the only writer of `phase`; each phase ends by an event (orders fulfilled, a report, a
 * timer) or by its deadline, and names what it waits for.
 */
#include "loadgen/ramp.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/hist.h"
#include "common/log.h"
#include "loadgen/launch.h"
#include "loadgen/ramp_internal.h"
#include "loadgen/ramp_util.h"
#include "loadgen/run_json.h"
#include "loadgen/server_proc.h"
#include "loadgen/trace.h"
#include "loadgen/verdict.h"
#include "loadgen/worker.h"
#include "loadgen/workload.h"


#define NAME(phase, text) [RAMP_##phase] = text
const char *const ramp_phase_names[] = {
	NAME(SERVER, "starting server"), NAME(INFO, "asking server"), NAME(MARK, "marking"),
	NAME(CONNECT, "connecting"),
	NAME(COUNT, "counting"), NAME(START, "starting traffic"), NAME(WARMUP, "warming up"),
	NAME(MEASURE, "measuring"), NAME(DRAIN, "draining"), NAME(DISCONNECT, "disconnecting"),
	NAME(RESTORE, "checking pools"), NAME(STOP, "stopping server"), NAME(DONE, "done"),
};
static_assert(sizeof(ramp_phase_names) / sizeof(ramp_phase_names[0]) == RAMP_N, "a name per phase");

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
	uint32_t target = (uint32_t)r->cfg->steps.v[r->step_index];

	if (step_new(target, r->cfg->sizes.v[r->size_index], r->repetition, &r->step)) {
		ramp_stop_because(r, STOP_GENERATOR_FAILED, "this machine is out of memory");
		ramp_enter(r, RAMP_STOP);
		return;
	}
	r->step->baseline = json_incref(r->baseline);
	results_event(r->results, "step_start", json_pack("{s:i, s:i, s:I}", "clients", target,
		"repetition", r->repetition, "message_bytes", (json_int_t)r->step->bytes));
	ramp_enter(r, RAMP_MARK);
}

static void write_histograms(struct ramp *r)
{
	struct step *s = r->step;
	char name[64], size[32] = "";
	double connect_s = (double)(r->step_start_ns - r->run_start_ns) / 1e9;
	double measure_s = (double)(s->begin.now_ns - r->run_start_ns) / 1e9;

	if (r->cfg->sizes.n > 1)
		snprintf(size, sizeof(size), "%lluB-", (unsigned long long)s->bytes);
	snprintf(name, sizeof(name), "step-%05u-%u-%sconnect", s->target, s->repetition, size);
	if (results_histogram(r->results, name, s->total, connect_s, (double)s->connect_wall_ns / 1e9))
		log_warn("cannot write %s", results_path(r->results, name));
	snprintf(name, sizeof(name), "step-%05u-%u-%sresponse", s->target, s->repetition, size);
	if (s->measured && results_histogram(r->results, name, s->response, measure_s, s->measured_s))
		log_warn("cannot write %s", results_path(r->results, name));
}

/* The file is made by the first step, and the others add to it. */
static void write_trace(struct ramp *r)
{
	const struct step *s = r->step;
	uint64_t lost = 0;
	bool first;
	FILE *f;
	int ret;

	if (!r->cfg->trace || !s->measured)
		return;
	first = r->traced_steps++ == 0;
	f = fopen(r->cfg->trace, first ? "we" : "ae");
	ret = !f ? -errno : first ? trace_write_title(f) : 0;
	for (uint32_t i = 0; i < r->n_workers && !ret; i++) {
		struct trace_step at = { .clients = s->target, .repetition = s->repetition, .worker = i,
					 .n_workers = r->n_workers, .bytes = s->bytes, .start_ns = r->run_start_ns };

		ret = trace_write(worker_trace(r->workers[i]), &at, f);
		lost += trace_lost(worker_trace(r->workers[i]));
	}
	if (f && fclose(f) && !ret)
		ret = -errno;
	if (ret)
		log_warn("cannot write --trace %s: %s", r->cfg->trace, strerror(-ret));
	if (lost)
		log_warn("--trace: %llu operations of %u clients are not in the file; raise --trace-max",
			 (unsigned long long)lost, s->target);
}

/* Every size, every repetition, every number of clients; the sizes change fastest, so that what changes in time
 * meets all of them alike. */
static void next_step(struct ramp *r)
{
	if (++r->size_index < r->cfg->sizes.n)
		return;
	r->size_index = 0;
	if (r->repetition++ < r->cfg->repeat)
		return;
	r->repetition = 1;
	r->step_index++;
}

void ramp_end_step(struct ramp *r)
{
	struct step *s = r->step;
	enum stop_reason reason;
	char text[256];

	/* Else the workers still hold the figures of the step before. */
	if (s->started)
		step_collect(s, r->workers, r->n_workers, r->cfg);
	reason = stop_judge_step(s, text, sizeof(text));
	if (reason != STOP_NOT)
		ramp_stop_because(r, reason, text);
	json_array_append_new(r->steps, step_json(s, r->cfg, r->workers, r->n_workers));
	json_array_append_new(r->rows, run_json_row(s));
	if (s->started && !(r->stopping && r->stop_reason == STOP_ABORTED))
		verdict_add_step(r->verdict, s);
	write_histograms(r);
	write_trace(r);
	results_event(r->results, "step_end", json_pack("{s:i, s:i, s:i, s:i}", "clients", s->target,
		"held", s->connected_held, "failed", s->failed, "dropped", s->dropped));
	step_free(s);
	r->step = NULL;
	next_step(r);
	if (!r->stopping && r->step_index == r->cfg->steps.n)
		ramp_stop_because(r, STOP_MAX_REACHED, "");
	for (size_t i = r->step_index; r->stopping && i < r->cfg->steps.n; i++)
		if (i > r->step_index || (r->repetition == 1 && r->size_index == 0))
			verdict_add_not_reached(r->verdict, (uint32_t)r->cfg->steps.v[i]);
	if (r->stopping)
		ramp_enter(r, RAMP_STOP);
	else
		ramp_begin_step(r);
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
		if (ramp_all_done(r))
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
