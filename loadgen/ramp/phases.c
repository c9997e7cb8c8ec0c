/* The state machine of a run. See phases.h.
 *
 * ramp_enter is the only writer of `phase`; each phase ends by an event (orders fulfilled, a report, a timer) or by its
 * deadline, and names what it waits for.
 */
#include "loadgen/ramp/phases.h"

#include <assert.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/ramp/needs.h"
#include "loadgen/ramp/record.h"
#include "loadgen/results/find.h"
#include "loadgen/results/results.h"

#define NAME(phase, text) [RAMP_##phase] = text
const char *const ramp_phase_names[] = {
	NAME(SERVER, "starting server"), NAME(INFO, "asking server"), NAME(MARK, "marking"),
	NAME(CONNECT, "connecting"), NAME(COUNT, "counting"), NAME(START, "starting traffic"),
	NAME(WARMUP, "warming up"), NAME(BEGIN, "reading counters"), NAME(MEASURE, "measuring"),
	NAME(DRAIN, "draining"), NAME(DISCONNECT, "disconnecting"), NAME(RESTORE, "checking pools"),
	NAME(STOP, "stopping server"), NAME(DONE, "done"),
};
static_assert(sizeof(ramp_phase_names) / sizeof(ramp_phase_names[0]) == RAMP_N, "a name per phase");

/* A search starts its server again so many times, then it ends. */
#define RESTARTS_MAX 8
/* Twice the time-out of an answer: the question may have to wait for the answer to another. */
#define ANSWER_TIMEOUT_NS (60 * NS_PER_S)
/* So long the server may count fewer clients than are connected. */
#define COUNT_PATIENCE_NS (5 * NS_PER_S)

static uint64_t step_timeout_ns(const struct ramp *r)
{
	if (r->cfg->step_timeout_ns)
		return r->cfg->step_timeout_ns;
	return 60 * NS_PER_S + r->current.step->target * 40 * NS_PER_MS;
}

/* More than the session timeout of a server of our own. After churn, more than its pool of queue pairs takes to shrink:
 * a quarantine, and three of the windows in which nobody came. */
static uint64_t restore_timeout_ns(const struct ramp *r)
{
	if (r->cfg->phased)
		return (NEEDS_PHASED_TIMEOUT_S + 10) * NS_PER_S;
	return (r->cfg->churn_per_s ? 90 : 40) * NS_PER_S;
}

/* The time a phase may take; 0: it has none. */
static uint64_t deadline_of(const struct ramp *r, enum ramp_phase phase)
{
	switch (phase) {
	case RAMP_SERVER: return 60 * NS_PER_S;
	case RAMP_INFO:
	case RAMP_MARK:
	case RAMP_COUNT:
	case RAMP_BEGIN: return ANSWER_TIMEOUT_NS;
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

static void ask(struct ramp *r, enum control_what what)
{
	r->report_asked = true;
	sut_ask(&r->sut, what, r->phase_number);
}

/* --- steps --- */

void ramp_begin_step(struct ramp *r)
{
	const struct agenda *a = &r->agenda;

	if (current_begin(&r->current, a->target, r->cfg->sizes.v[a->size_index], a->repetition, r->sut.baseline)) {
		outcome_stop(r->outcome, STOP_GENERATOR_FAILED, "this machine is out of memory");
		ramp_enter(r, RAMP_STOP);
		return;
	}
	ramp_enter(r, RAMP_MARK);
}

/* Our server ended: starts another one for the next step. Workers for it are made when it is ready. */
static void restart_server(struct ramp *r)
{
	char err[256];

	crew_dismiss(&r->crew);
	json_decref(r->outcome->generator_dev);
	r->outcome->generator_dev = NULL;
	progress_clear(&r->progress);
	log_warn("%s: starting another one for the next step", r->outcome->stop_detail);
	ramp_enter(r, RAMP_SERVER);
	if (sut_start(&r->sut, err, sizeof(err))) {
		outcome_stop(r->outcome, STOP_SERVER_LOST, err);
		ramp_enter(r, RAMP_STOP);
	}
}

/* Records the step; begins the next or ends the run. */
static void end_step(struct ramp *r)
{
	struct outcome *oc = r->outcome;
	bool restart;

	record_step(r);
	/* A search goes on when its own server ended, with another one. */
	restart = r->cfg->find_capacity && !r->cfg->server && oc->stop_reason == STOP_SERVER_LOST &&
		  r->restarts++ < RESTARTS_MAX;
	if (restart)
		oc->stopping = false;
	agenda_next(&r->agenda, oc);
	if (oc->stopping) {
		agenda_add_rest(&r->agenda, oc);
		ramp_enter(r, RAMP_STOP);
	} else if (restart) {
		restart_server(r);
	} else {
		ramp_begin_step(r);
	}
}

/* --- what a phase begins with --- */

static void enter_drain(struct ramp *r)
{
	struct step *s = r->current.step;

	current_measured(&r->current, &r->crew);
	current_order(&r->current, &r->crew, ORDER_STOP);
	s->connected_held = crew_live(&r->crew) + crew_away(&r->crew);
	ramp_advance(r);
}

static void enter_stop(struct ramp *r)
{
	if (r->cfg->find_capacity && json_array_size(r->outcome->steps) > 0)
		find_add_verdict(r->outcome);
	crew_quit(&r->crew);
	sut_disconnect(&r->sut);
	if (!sut_stop(&r->sut))
		ramp_enter(r, RAMP_DONE);
}

static void begin_phase(struct ramp *r)
{
	switch (r->phase) {
	case RAMP_MARK: ask(r, CONTROL_MARK); break;
	case RAMP_CONNECT: current_connect(&r->current, &r->crew); break;
	case RAMP_COUNT: ask(r, CONTROL_STATS); break;
	case RAMP_START: current_order(&r->current, &r->crew, ORDER_TRAFFIC); break;
	case RAMP_BEGIN: ask(r, CONTROL_STATS); break;
	case RAMP_MEASURE: current_measure(&r->current, &r->crew); break;
	case RAMP_DRAIN: enter_drain(r); break;
	case RAMP_DISCONNECT:
		current_order(&r->current, &r->crew, ORDER_DISCONNECT);
		ramp_advance(r); /* workers whose device failed fulfil nothing */
		break;
	case RAMP_RESTORE: ask(r, CONTROL_STATS); break;
	case RAMP_STOP: enter_stop(r); break;
	case RAMP_DONE: ev_break(r->loop, EVBREAK_ALL); break;
	case RAMP_SERVER:
	case RAMP_INFO:
	case RAMP_WARMUP:
	case RAMP_N: break;
	}
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
	r->report_asked = r->report_arrived = false;
	r->phase = phase;
	r->phase_number++;
	r->phase_start_ns = clock_now_ns();
	begin_phase(r);
}

/* --- what a phase ends with --- */

/* Reads the server's counters at the end of the measured time: as soon as no worker records operations any more, and not
 * before, because the answer takes the server's time. */
static void ask_for_end(struct ramp *r)
{
	if (!r->report_asked && (!r->current.step->begin.now_ns || crew_has_measured(&r->crew)))
		ask(r, CONTROL_STATS);
}

static void end_connect(struct ramp *r)
{
	struct step *s = r->current.step;

	current_connected(&r->current, &r->crew);
	results_event(r->results, "connected", json_pack("{s:i, s:I, s:I}", "clients", s->target,
		"connected", (json_int_t)s->connected_peak, "failed", (json_int_t)CREW_SUM(&r->crew, failed)));
	ramp_enter(r, r->outcome->stopping ? RAMP_DISCONNECT : RAMP_COUNT);
}

static void end_disconnect(struct ramp *r)
{
	struct step *s = r->current.step;

	if (!r->sut.gone && !s->generator_failed) {
		ramp_enter(r, RAMP_RESTORE);
		return;
	}
	/* A server that is gone cannot say whether its pools came back. One whose clients vanished with their device does not
	 * know yet that they are gone: its pools are not judged. */
	s->pools_not_restored = r->sut.gone;
	end_step(r);
}

void ramp_advance(struct ramp *r)
{
	struct step *s = r->current.step;
	bool stopping = r->outcome->stopping;

	switch (r->phase) {
	case RAMP_MARK:
		if (r->report_arrived)
			ramp_enter(r, stopping ? RAMP_DISCONNECT : RAMP_CONNECT);
		break;
	case RAMP_CONNECT:
		if (crew_is_done(&r->crew) && !current_next_stage(&r->current, &r->crew, !stopping))
			end_connect(r);
		break;
	case RAMP_COUNT:
		if (r->report_arrived)
			ramp_enter(r, s->connected_peak && !stopping ? RAMP_START : RAMP_DISCONNECT);
		break;
	case RAMP_START:
		if (crew_is_done(&r->crew))
			ramp_enter(r, RAMP_WARMUP);
		break;
	case RAMP_BEGIN:
		if (r->report_arrived)
			ramp_enter(r, RAMP_MEASURE);
		break;
	case RAMP_DRAIN:
		ask_for_end(r);
		if (!crew_is_done(&r->crew) || !r->report_arrived)
			return;
		/* Clients that left on purpose are back by now, or lost. */
		s->connected_held = crew_live(&r->crew);
		ramp_enter(r, RAMP_DISCONNECT);
		break;
	case RAMP_DISCONNECT:
		if (crew_is_done(&r->crew))
			end_disconnect(r);
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

static void set_report(json_t **to, json_t *report)
{
	json_decref(*to);
	*to = json_incref(report);
}

void ramp_on_stats(struct ramp *r, json_t *report)
{
	struct step *s = r->current.step;

	switch (r->phase) {
	case RAMP_COUNT:
		s->server_connected = (int64_t)json_number_at(report, "clients.connected");
		set_report(&s->held, report);
		/* A client without a first message is connected a moment before the server is told so. */
		r->report_arrived = s->server_connected >= (int64_t)s->connected_peak ||
				    clock_now_ns() - r->phase_start_ns > COUNT_PATIENCE_NS;
		break;
	case RAMP_BEGIN:
		set_report(&s->begin.server, report);
		r->report_arrived = true;
		break;
	case RAMP_DRAIN:
		set_report(&s->end.server, report);
		r->report_arrived = true;
		break;
	case RAMP_RESTORE:
		set_report(&s->after, report);
		if (sut_is_restored(&r->sut, report))
			end_step(r);
		return; /* else asked again at the next tick */
	case RAMP_SERVER:
	case RAMP_INFO:
	case RAMP_MARK:
	case RAMP_CONNECT:
	case RAMP_START:
	case RAMP_WARMUP:
	case RAMP_MEASURE:
	case RAMP_DISCONNECT:
	case RAMP_STOP:
	case RAMP_DONE:
	case RAMP_N:
		break;
	}
	ramp_advance(r);
}

/* Clients that still wait for something fail with a timeout. */
static void abandon(struct ramp *r)
{
	current_order(&r->current, &r->crew, ORDER_ABANDON);
	ramp_enter(r, RAMP_DISCONNECT);
}

void ramp_on_deadline(struct ramp *r)
{
	struct step *s = r->current.step;

	switch (r->phase) {
	case RAMP_SERVER:
		outcome_stop(r->outcome, STOP_SERVER_LOST, "the server did not become ready within 60 s");
		ramp_enter(r, RAMP_STOP);
		break;
	case RAMP_INFO:
		outcome_stop(r->outcome, STOP_SERVER_LOST, "the server did not answer the control session");
		ramp_enter(r, RAMP_STOP);
		break;
	case RAMP_MARK:
		ramp_enter(r, RAMP_CONNECT);
		break;
	case RAMP_CONNECT:
		s->step_timeout = true;
		current_connected(&r->current, &r->crew);
		abandon(r);
		break;
	case RAMP_COUNT:
		ramp_enter(r, RAMP_START);
		break;
	case RAMP_WARMUP:
		ramp_enter(r, RAMP_BEGIN);
		break;
	case RAMP_BEGIN:
		ramp_enter(r, RAMP_MEASURE);
		break;
	case RAMP_START:
	case RAMP_MEASURE:
		ramp_enter(r, RAMP_DRAIN);
		break;
	case RAMP_DRAIN:
		if (crew_is_done(&r->crew)) {
			ramp_enter(r, RAMP_DISCONNECT);
			break;
		}
		s->replies_missing = true;
		/* Clients that are away do not come back any more. */
		s->connected_held = crew_live(&r->crew);
		abandon(r);
		break;
	case RAMP_DISCONNECT:
		outcome_stop(r->outcome, STOP_GENERATOR_FAILED, "clients did not disconnect within 120 s");
		ramp_enter(r, RAMP_RESTORE);
		break;
	case RAMP_RESTORE:
		s->pools_not_restored = true;
		end_step(r);
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

/* --- what comes in between --- */

void ramp_stop_traffic(struct ramp *r)
{
	if (r->phase >= RAMP_START && r->phase <= RAMP_MEASURE)
		ramp_enter(r, RAMP_DRAIN);
}

void ramp_cut_short(struct ramp *r)
{
	if (r->phase == RAMP_CONNECT)
		current_connected(&r->current, &r->crew);
	if (r->phase <= RAMP_INFO)
		ramp_enter(r, RAMP_STOP);
	else if (r->phase <= RAMP_COUNT)
		ramp_enter(r, RAMP_DISCONNECT);
	else
		ramp_stop_traffic(r);
}

void ramp_give_up_restore(struct ramp *r)
{
	if (r->phase != RAMP_RESTORE)
		return;
	r->current.step->pools_not_restored = true;
	end_step(r);
}
