/* The state machine of a run. See phases.h.
 *
 * ramp_enter is the only writer of `phase`; each phase ends by an event (orders fulfilled, a report, a timer) or by its
 * deadline. The table at the end says what each of them does.
 */
#include "loadgen/ramp/phases.h"

#include <math.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/analysis/read.h"
#include "loadgen/ramp/needs.h"
#include "loadgen/ramp/record.h"
#include "loadgen/results/find.h"
#include "loadgen/results/results.h"

/* A search starts its server again so many times, then it ends. */
#define RESTARTS_MAX 8
/* So long the server may count fewer clients than are connected. */
#define COUNT_PATIENCE_NS (5 * NS_PER_S)

struct phase {
	const char *name;
	uint64_t timeout_s;		/* 0: timeout_ns, which depends on the run; without both there is no deadline */
	uint64_t (*timeout_ns)(const struct ramp *r);
	void (*begin)(struct ramp *r);	/* asks and orders what the phase needs */
	void (*advance)(struct ramp *r);	/* goes on when all that it waits for is there */
	void (*on_stats)(struct ramp *r, json_t *report);
	void (*on_deadline)(struct ramp *r);
	enum ramp_phase late;		/* entered at the deadline if there is no on_deadline */
};
static const struct phase phases[RAMP_N];

const char *ramp_phase_name(const struct ramp *r)
{
	return phases[r->phase].name;
}

void ramp_beat(struct ramp *r)
{
	if (r->current.step && r->phase >= RAMP_MARK && r->phase <= RAMP_DRAIN)
		current_beat(&r->current);
}

void ramp_enter(struct ramp *r, enum ramp_phase phase)
{
	const struct phase *p = &phases[phase];
	uint64_t timeout = p->timeout_ns ? p->timeout_ns(r) : p->timeout_s * NS_PER_S;

	ramp_beat(r); /* a deadline may come before the tick */
	if (r->phase != phase)
		results_event(r->results, "phase", json_pack("{s:s}", "phase", p->name));
	ev_timer_stop(r->loop, &r->deadline);
	ev_now_update(r->loop);
	if (timeout) {
		ev_timer_set(&r->deadline, (double)timeout / 1e9, 0.);
		ev_timer_start(r->loop, &r->deadline);
	}
	r->report_asked = r->report_arrived = false;
	r->phase = phase;
	r->phase_number++;
	r->phase_start_ns = clock_now_ns();
	if (p->begin)
		p->begin(r);
}

void ramp_advance(struct ramp *r)
{
	if (phases[r->phase].advance)
		phases[r->phase].advance(r);
}

void ramp_on_stats(struct ramp *r, json_t *report)
{
	if (phases[r->phase].on_stats)
		phases[r->phase].on_stats(r, report);
}

void ramp_on_deadline(struct ramp *r)
{
	const struct phase *p = &phases[r->phase];

	if (p->on_deadline)
		p->on_deadline(r);
	else
		ramp_enter(r, p->late);
}

static void ask(struct ramp *r, enum control_what what)
{
	r->report_asked = true;
	sut_ask(&r->sut, what, r->phase_number);
}

static void ask_stats(struct ramp *r)
{
	ask(r, CONTROL_STATS);
}

static void set_report(json_t **to, json_t *report)
{
	json_decref(*to);
	*to = json_incref(report);
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
	if (oc->stopping && !restart) {
		agenda_add_rest(&r->agenda, oc);
		ramp_enter(r, RAMP_STOP);
		return;
	}
	oc->stopping = false;
	if (!agenda_next(&r->agenda, oc))
		ramp_enter(r, RAMP_STOP);
	else if (restart)
		restart_server(r);
	else
		ramp_begin_step(r);
}

/* --- server, info, mark --- */

static void on_server_late(struct ramp *r)
{
	outcome_stop(r->outcome, STOP_SERVER_LOST, "the server did not become ready within 60 s");
	ramp_enter(r, RAMP_STOP);
}

static void on_info_late(struct ramp *r)
{
	outcome_stop(r->outcome, STOP_SERVER_LOST, "the server did not answer the control session");
	ramp_enter(r, RAMP_STOP);
}

static void begin_mark(struct ramp *r)
{
	ask(r, CONTROL_MARK);
}

static void advance_mark(struct ramp *r)
{
	r->current.reconnects = r->sut.reconnects;
	if (r->report_arrived)
		ramp_enter(r, r->outcome->stopping ? RAMP_DISCONNECT : RAMP_CONNECT);
}

/* --- connect, count --- */

static uint64_t connect_timeout_ns(const struct ramp *r)
{
	if (r->cfg->step_timeout_ns)
		return r->cfg->step_timeout_ns;
	return 60 * NS_PER_S + r->current.step->target * 40 * NS_PER_MS;
}

static void begin_connect(struct ramp *r)
{
	current_connect(&r->current, &r->crew);
}

static void advance_connect(struct ramp *r)
{
	struct step *s = r->current.step;

	if (!crew_is_done(&r->crew) || current_next_stage(&r->current, &r->crew, !r->outcome->stopping))
		return;
	current_connected(&r->current, &r->crew);
	results_event(r->results, "connected", json_pack("{s:i, s:I, s:I}", "clients", s->target,
		"connected", (json_int_t)s->connected_peak, "failed", (json_int_t)CREW_SUM(&r->crew, failed)));
	ramp_enter(r, r->outcome->stopping ? RAMP_DISCONNECT : RAMP_COUNT);
}

/* Clients that still wait for something fail with a timeout. */
static void abandon(struct ramp *r)
{
	current_order(&r->current, &r->crew, ORDER_ABANDON);
	ramp_enter(r, RAMP_DISCONNECT);
}

static void on_connect_late(struct ramp *r)
{
	r->current.step->step_timeout = true;
	current_connected(&r->current, &r->crew);
	abandon(r);
}

static void advance_count(struct ramp *r)
{
	if (r->report_arrived)
		ramp_enter(r, r->current.step->connected_peak && !r->outcome->stopping ? RAMP_START : RAMP_DISCONNECT);
}

static void on_count_stats(struct ramp *r, json_t *report)
{
	struct step *s = r->current.step;
	double connected = read_amount(report, "clients.connected");

	s->server_connected = isnan(connected) ? -1 : (int64_t)connected;
	set_report(&s->held, report);
	/* A client without a first message is connected a moment before the server is told so. */
	r->report_arrived = s->server_connected >= (int64_t)s->connected_peak ||
			    clock_now_ns() - r->phase_start_ns > COUNT_PATIENCE_NS;
	advance_count(r); /* else asked again at the next tick */
}

/* --- start, warm-up, begin, measure --- */

static void begin_start(struct ramp *r)
{
	current_order(&r->current, &r->crew, ORDER_TRAFFIC);
}

static void advance_start(struct ramp *r)
{
	if (crew_is_done(&r->crew))
		ramp_enter(r, RAMP_WARMUP);
}

static uint64_t warmup_timeout_ns(const struct ramp *r)
{
	return r->cfg->warmup_ns + 1;
}

static void on_begin_stats(struct ramp *r, json_t *report)
{
	set_report(&r->current.step->begin.server, report);
	r->current.restarts = r->sut.restarts;
	ramp_enter(r, RAMP_MEASURE);
}

static uint64_t measure_timeout_ns(const struct ramp *r)
{
	return r->cfg->cycles ? 0 : r->cfg->duration_ns;
}

static void begin_measure(struct ramp *r)
{
	current_measure(&r->current, &r->crew);
}

/* --- drain, disconnect --- */

/* The server's counters are read as soon as no worker records operations any more, and not before, because the answer takes
 * the server's time. */
static void advance_drain(struct ramp *r)
{
	struct step *s = r->current.step;

	if (!r->report_asked && (!s->begin.now_ns || crew_has_measured(&r->crew)))
		ask_stats(r);
	if (!crew_is_done(&r->crew) || !r->report_arrived)
		return;
	/* Clients that left on purpose are back by now, or lost. */
	s->connected_held = crew_live(&r->crew);
	ramp_enter(r, RAMP_DISCONNECT);
}

static void begin_drain(struct ramp *r)
{
	current_measured(&r->current, &r->crew);
	current_order(&r->current, &r->crew, ORDER_STOP);
	r->current.step->connected_held = crew_live(&r->crew) + crew_away(&r->crew);
	advance_drain(r);
}

static void on_drain_stats(struct ramp *r, json_t *report)
{
	set_report(&r->current.step->end.server, report);
	/* Counters of two servers have no difference. */
	if (r->current.restarts != r->sut.restarts)
		set_report(&r->current.step->begin.server, NULL);
	r->current.step->mark_lost = r->current.reconnects != r->sut.reconnects;
	r->report_arrived = true;
	advance_drain(r);
}

static void on_drain_late(struct ramp *r)
{
	if (crew_is_done(&r->crew)) {
		ramp_enter(r, RAMP_DISCONNECT);
		return;
	}
	r->current.step->replies_missing = true;
	/* Clients that are away do not come back any more. */
	r->current.step->connected_held = crew_live(&r->crew);
	abandon(r);
}

static void advance_disconnect(struct ramp *r)
{
	struct step *s = r->current.step;

	if (!crew_is_done(&r->crew))
		return;
	if (!r->sut.gone && !s->generator_failed) {
		ramp_enter(r, RAMP_RESTORE);
		return;
	}
	/* A server that is gone cannot say whether its pools came back, nor can one whose clients vanished with their device:
	 * it does not know yet that they are gone. */
	s->server_ended = r->sut.gone;
	end_step(r);
}

static void begin_disconnect(struct ramp *r)
{
	current_order(&r->current, &r->crew, ORDER_DISCONNECT);
	advance_disconnect(r); /* workers whose device failed fulfil nothing */
}

static void on_disconnect_late(struct ramp *r)
{
	outcome_stop(r->outcome, STOP_GENERATOR_FAILED, "clients did not disconnect within 120 s");
	ramp_enter(r, RAMP_RESTORE);
}

/* --- restore, stop --- */

/* More than the session timeout of a server of our own. After churn, more than its pool of queue pairs takes to shrink:
 * a quarantine, and three of the windows in which nobody came. */
static uint64_t restore_timeout_ns(const struct ramp *r)
{
	if (r->cfg->phased)
		return (NEEDS_PHASED_TIMEOUT_S + 10) * NS_PER_S;
	return (r->cfg->churn_per_s ? 90 : 40) * NS_PER_S;
}

static void on_restore_stats(struct ramp *r, json_t *report)
{
	struct step *s = r->current.step;

	set_report(&s->after, report);
	if (!s->end.server)
		s->mark_lost = r->current.reconnects != r->sut.reconnects;
	/* What another server's pools were like without clients was never seen. */
	s->pools = sut_is_restored(&r->sut, report) ? POOLS_RESTORED :
		   r->sut.restarts ? POOLS_UNKNOWN : POOLS_NOT_RESTORED;
	if (s->pools == POOLS_RESTORED)
		end_step(r); /* else asked again at the next tick */
}

void ramp_give_up_restore(struct ramp *r)
{
	r->current.step->pools = POOLS_UNKNOWN;
	r->current.step->server_ended = r->sut.gone;
	end_step(r);
}

static void on_restore_late(struct ramp *r)
{
	/* What was missing in the last report is missing, unless the server does not answer any more. */
	if (r->sut.backoff.lost_ns)
		ramp_give_up_restore(r);
	else
		end_step(r);
}

static void begin_stop(struct ramp *r)
{
	if (r->cfg->find_capacity && json_array_size(r->outcome->steps) > 0)
		find_add_verdict(r->outcome);
	crew_quit(&r->crew);
	sut_disconnect(&r->sut);
	if (!sut_stop(&r->sut))
		ramp_enter(r, RAMP_DONE);
}

static void on_stop_late(struct ramp *r)
{
	log_warn("the server did not stop in time: killing it");
	ramp_enter(r, RAMP_DONE);
}

static void begin_done(struct ramp *r)
{
	ev_break(r->loop, EVBREAK_ALL);
}

/* The server has 30 s for an answer (sut.c); what waits for one waits for the answer before it, too. */
static const struct phase phases[RAMP_N] = {
	[RAMP_SERVER] = { .name = "starting server", .timeout_s = 60, .on_deadline = on_server_late },
	[RAMP_INFO] = { .name = "asking server", .timeout_s = 60, .on_deadline = on_info_late },
	[RAMP_MARK] = { .name = "marking", .timeout_s = 60, .begin = begin_mark, .advance = advance_mark,
			.late = RAMP_CONNECT },
	[RAMP_CONNECT] = { .name = "connecting", .timeout_ns = connect_timeout_ns, .begin = begin_connect,
			   .advance = advance_connect, .on_deadline = on_connect_late },
	[RAMP_COUNT] = { .name = "counting", .timeout_s = 60, .begin = ask_stats, .on_stats = on_count_stats,
			 .advance = advance_count, .late = RAMP_START },
	[RAMP_START] = { .name = "starting traffic", .timeout_s = 60, .begin = begin_start, .advance = advance_start,
			 .late = RAMP_DRAIN },
	[RAMP_WARMUP] = { .name = "warming up", .timeout_ns = warmup_timeout_ns, .late = RAMP_BEGIN },
	[RAMP_BEGIN] = { .name = "reading counters", .timeout_s = 60, .begin = ask_stats, .on_stats = on_begin_stats,
			 .late = RAMP_MEASURE },
	[RAMP_MEASURE] = { .name = "measuring", .timeout_ns = measure_timeout_ns, .begin = begin_measure,
			   .late = RAMP_DRAIN },
	[RAMP_DRAIN] = { .name = "draining", .timeout_s = 15, .begin = begin_drain, .on_stats = on_drain_stats,
			 .advance = advance_drain, .on_deadline = on_drain_late },
	[RAMP_DISCONNECT] = { .name = "disconnecting", .timeout_s = 120, .begin = begin_disconnect,
			      .advance = advance_disconnect, .on_deadline = on_disconnect_late },
	[RAMP_RESTORE] = { .name = "checking pools", .timeout_ns = restore_timeout_ns, .begin = ask_stats,
			   .on_stats = on_restore_stats, .on_deadline = on_restore_late },
	[RAMP_STOP] = { .name = "stopping server", .timeout_s = 20, .begin = begin_stop, .on_deadline = on_stop_late },
	[RAMP_DONE] = { .name = "done", .begin = begin_done },
};

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
