/* SPDX-License-Identifier: BSD-2-Clause */
/* See order.h. The tables at the end list the functions of each phase and gate. */
#include "loadgen/ramp/order.h"

#include <math.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/analysis/read.h"
#include "loadgen/server_under_test/needs.h"
#include "loadgen/ramp/step_record.h"
#include "loadgen/ramp/steps.h"
#include "loadgen/cluster/team.h"
#include "loadgen/output/find.h"
#include "loadgen/output/results.h"
#include "loadgen/measurement/connect_floor.h"

/* How long the server's count of clients may lag behind ours. */
#define COUNT_PATIENCE_NS (5 * NS_PER_S)

static void ask_servers(struct ramp *r, enum control_what what)
{
	r->report_asked = true;
	suts_ask(&r->suts, what, r->phase_number);
}

static void ask_stats(struct ramp *r)
{
	ask_servers(r, CONTROL_STATS);
}

static void set_report(json_t **to, json_t *report)
{
	json_decref(*to);
	*to = json_incref(report);
}

void order_begin(struct ramp *r)
{
	if (r->cfg->floor && !loadgen_is_search(r->cfg))
		ramp_enter(r, RAMP_FLOOR);
	else
		steps_begin(r);
}

static void begin_alone(struct ramp *r)
{
	if (!alone_begin(&r->alone, r->cfg, &r->crew))
		return;
	steps_stop_without_memory(r);
	if (r->current.step)
		steps_conclude(r);
	else
		ramp_enter(r, RAMP_STOP);
}

static void keep_floor(json_t **to, const struct alone *a)
{
	json_decref(*to);
	*to = connect_floor_json(a->floor);
}

static void advance_floor(struct ramp *r)
{
	if (!alone_advance(&r->alone, r->cfg, &r->crew))
		return;
	keep_floor(&r->outcome->floor_before, &r->alone);
	if (r->outcome->stopping)
		ramp_enter(r, RAMP_STOP);
	else
		steps_begin(r);
}

static void advance_follow_up(struct ramp *r)
{
	struct step *s = r->current.step;

	if (!alone_advance(&r->alone, r->cfg, &r->crew))
		return;
	s->follow_up.tried = connect_floor_tried(r->alone.floor);
	s->follow_up.connected = connect_floor_connected(r->alone.floor);
	keep_floor(&r->outcome->floor_after, &r->alone);
	steps_conclude(r);
}

/* First deadline: the client did not connect, so give it up. Second: it did not leave, so end the run. */
static void on_alone_late(struct ramp *r)
{
	if (!r->alone.leaving) {
		alone_cut(&r->alone, &r->crew);
		ramp_wait_on(r, 120 * NS_PER_S);
		return;
	}
	outcome_stop(r->outcome, STOP_GENERATOR_FAILED, "a client did not disconnect within 120 s");
	if (r->current.step)
		steps_conclude(r);
	else
		ramp_enter(r, RAMP_STOP);
}

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

static void on_prove_late(struct ramp *r)
{
	gates_quit(r, "a server did not prove its identity to this host within 60 s");
	ramp_enter(r, RAMP_STOP);
}

static void begin_mark(struct ramp *r)
{
	ask_servers(r, CONTROL_MARK);
}

void order_on_mark(struct ramp *r, json_t *report)
{
	if (r->current.step)
		set_report(&r->current.step->marked, report);
	r->report_arrived = true;
	ramp_advance(r);
}

static void advance_mark(struct ramp *r)
{
	r->current.reconnects = suts_reconnects(&r->suts);
	if (!r->report_arrived)
		return;
	if (r->outcome->stopping)
		ramp_enter(r, RAMP_DISCONNECT);
	else
		gates_arrive(r, GATE_READY);
}

static void on_mark_late(struct ramp *r)
{
	gates_arrive(r, GATE_READY);
}

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
	if (r->outcome->stopping)
		ramp_enter(r, RAMP_DISCONNECT);
	else
		gates_arrive(r, GATE_CONNECTED);
}

/* Fails, with a timeout, the clients that still wait for a reply or a connection. */
static void abandon(struct ramp *r)
{
	current_order(&r->current, &r->crew, ORDER_ABANDON);
	ramp_enter(r, RAMP_DISCONNECT);
}

static void on_connect_late(struct ramp *r)
{
	r->current.step->step_timeout = true;
	current_connected(&r->current, &r->crew);
	if (!gates_has_others(r)) {
		abandon(r);
		return;
	}
	/* The other hosts wait for this one at the gate. */
	current_order(&r->current, &r->crew, ORDER_ABANDON);
	gates_arrive(r, GATE_CONNECTED);
}

static void advance_count(struct ramp *r)
{
	if (r->report_arrived)
		gates_release(r, GATE_CONNECTED);
}

static void on_count_late(struct ramp *r)
{
	gates_release(r, GATE_CONNECTED);
}

static void on_count_stats(struct ramp *r, json_t *report)
{
	struct step *s = r->current.step;
	double connected = read_amount(report, "clients.connected");

	s->server_connected = isnan(connected) ? -1 : (int64_t)connected;
	set_report(&s->held, report);
	/* A client that sends no first message is connected a moment before the server learns that it is. */
	r->report_arrived = s->server_connected >= (int64_t)gates_connected(r) ||
			    clock_now_ns() - r->phase_start_ns > COUNT_PATIENCE_NS;
	advance_count(r); /* if it does not go on, the next tick asks again */
}

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
	return r->cfg->iterations ? 0 : r->cfg->warmup_ns + 1;
}

static void advance_warmup(struct ramp *r)
{
	if (r->cfg->iterations && crew_iterations(&r->crew) >= r->cfg->warmup_iterations)
		gates_arrive(r, GATE_WARM);
}

static void on_warm(struct ramp *r)
{
	gates_arrive(r, GATE_WARM);
}

static void on_begin_late(struct ramp *r)
{
	gates_release(r, GATE_WARM);
}

static void on_begin_stats(struct ramp *r, json_t *report)
{
	set_report(&r->current.step->begin.server, report);
	r->current.restarts = suts_restarts(&r->suts);
	gates_release(r, GATE_WARM);
}

static uint64_t measure_timeout_ns(const struct ramp *r)
{
	return r->cfg->cycles || r->cfg->iterations ? 0 : r->cfg->duration_ns;
}

static void advance_measure(struct ramp *r)
{
	const struct loadgen_config *c = r->cfg;

	if (c->iterations && crew_iterations(&r->crew) >= c->warmup_iterations + c->iterations)
		ramp_enter(r, RAMP_DRAIN);
}

static void begin_measure(struct ramp *r)
{
	current_measure(&r->current, &r->crew);
	r->interval.repeat = (double)r->current.interval_ns / 1e9;
	ev_timer_again(r->loop, &r->interval);
}

/* Reads the server's counters as soon as no worker records operations any more, but not earlier, because answering
 * takes time from the server. */
static void advance_drain(struct ramp *r)
{
	struct step *s = r->current.step;

	if (!r->measured_arrived && (!s->begin.now_ns || crew_has_measured(&r->crew))) {
		r->measured_arrived = true;
		gates_arrive(r, GATE_MEASURED);
	}
	if (r->phase != RAMP_DRAIN || !crew_is_done(&r->crew) || !r->report_arrived)
		return;
	/* Clients that left on purpose have returned by now, or are lost. */
	current_hold(&r->current, &r->crew, false);
	ramp_enter(r, RAMP_DISCONNECT);
}

static void lead_measured(struct ramp *r)
{
	r->measured_all = true;
	if (r->phase == RAMP_DRAIN)
		ask_stats(r);
	else
		gates_release(r, GATE_MEASURED); /* this host has cut the step short */
}

static void pass_measured(struct ramp *r)
{
	if (r->phase != RAMP_DRAIN)
		return;
	r->report_arrived = true;
	advance_drain(r);
}

static void begin_drain(struct ramp *r)
{
	current_measured(&r->current, &r->crew);
	current_order(&r->current, &r->crew, ORDER_STOP);
	current_hold(&r->current, &r->crew, true);
	advance_drain(r);
}

static void on_drain_stats(struct ramp *r, json_t *report)
{
	set_report(&r->current.step->end.server, report);
	/* After a restart the counters are those of two processes, and cannot be subtracted. */
	if (r->current.restarts != suts_restarts(&r->suts))
		set_report(&r->current.step->begin.server, NULL);
	r->current.step->mark_lost = r->current.reconnects != suts_reconnects(&r->suts);
	gates_release(r, GATE_MEASURED);
}

static uint64_t await_timeout_ns(const struct ramp *r)
{
	return team_patience_ns(r->team) + 1;
}

/* A member begins the leader's next step, or ends the run, as soon as the leader has announced it. */
static void await_leader(struct ramp *r)
{
	struct step_figures f;

	switch (gates_read_news(r, &f)) {
	case GATES_STEP:
		if (steps_prepare(r, &f))
			gates_arrive(r, GATE_READY);
		break;
	case GATES_END: ramp_enter(r, RAMP_STOP); break;
	case GATES_NOTHING: break;
	}
}

static void on_gate_late(struct ramp *r)
{
	gates_late(r, r->n_late == 1);
}

static void on_drain_late(struct ramp *r)
{
	if (crew_is_done(&r->crew)) {
		/* Other hosts may take longer, and the leader waits for them before it asks the servers. */
		if (!r->team || r->report_asked)
			ramp_enter(r, RAMP_DISCONNECT);
		else if (r->n_late == 1)
			ramp_wait_on(r, gates_timeout_ns(r));
		else
			gates_late(r, r->n_late == 2);
		return;
	}
	r->current.step->replies_missing = true;
	/* Clients that are away will not return in this step. */
	current_hold(&r->current, &r->crew, false);
	abandon(r);
}

/* Hands in this host's results of the step. A member then waits for the leader's next step. */
static void hand_in(struct ramp *r)
{
	record_collect(r);
	gates_arrive(r, GATE_COUNTED);
	if (team_leads(r->team))
		return;
	record_step(r);
	ramp_enter(r, RAMP_AWAIT);
}

static void advance_disconnect(struct ramp *r)
{
	if (crew_is_done(&r->crew))
		hand_in(r);
}

static void lead_counted(struct ramp *r)
{
	struct step *s;

	record_merge(r);
	s = r->current.step;
	if (!suts_are_gone(&r->suts) && !s->generator_failed && !s->hosts.host_lost) {
		ramp_enter(r, RAMP_RESTORE);
		return;
	}
	/* A server that has ended cannot tell whether its pools are restored. Nor can a server whose clients vanished
	 * with their device or host, because it does not know yet that they are gone. */
	s->server_ended = suts_are_gone(&r->suts);
	steps_end(r);
}

static void begin_disconnect(struct ramp *r)
{
	gates_leave(r);
	current_leave(&r->current, &r->crew);
	advance_disconnect(r); /* if all devices failed, no order will ever be fulfilled */
}

static uint64_t disconnect_timeout_ns(const struct ramp *r)
{
	return 120 * NS_PER_S + r->current.step->target * 10 * NS_PER_MS;
}

static void on_disconnect_late(struct ramp *r)
{
	outcome_stop(r->outcome, STOP_GENERATOR_FAILED, "clients did not disconnect in time");
	hand_in(r);
}

/* Longer than the session timeout of a server we started. After churn, also longer than its pool of queue pairs takes
 * to shrink, which is a quarantine and three windows in which no client came. */
static uint64_t restore_timeout_ns(const struct ramp *r)
{
	if (r->cfg->phased)
		return (NEEDS_PHASED_TIMEOUT_S + 10) * NS_PER_S;
	return (r->cfg->churn_per_s ? 90 : 40) * NS_PER_S;
}

/* Judges the pools of all servers: they are restored only if those of every server are. */
static void judge_pools(struct ramp *r)
{
	struct step *s = r->current.step;

	s->pools = POOLS_RESTORED;
	for (uint32_t i = 0; i < r->suts.n; i++) {
		enum step_pools one = suts_pools(&r->suts, i);

		if (s->n_targets)
			s->targets[i].pools = one;
		if (one != POOLS_RESTORED && s->pools != POOLS_NOT_RESTORED)
			s->pools = one;
	}
}

static void on_restore_stats(struct ramp *r, json_t *report)
{
	struct step *s = r->current.step;

	set_report(&s->after, report);
	if (!s->end.server)
		s->mark_lost = r->current.reconnects != suts_reconnects(&r->suts);
	judge_pools(r);
	if (s->pools == POOLS_RESTORED)
		steps_end(r); /* otherwise the next tick asks again */
}

void order_give_up_restore(struct ramp *r)
{
	judge_pools(r);
	r->current.step->pools = POOLS_UNKNOWN;
	r->current.step->server_ended = suts_are_gone(&r->suts);
	steps_end(r);
}

static void on_restore_late(struct ramp *r)
{
	/* The last report decides which resources are missing, unless the server no longer answers. */
	if (suts_are_waiting(&r->suts))
		order_give_up_restore(r);
	else
		steps_end(r);
}

static void begin_stop(struct ramp *r)
{
	if (loadgen_is_search(r->cfg) && json_array_size(r->outcome->steps) > 0)
		find_add_verdict(r->outcome);
	gates_tell_end(r);
	watching_forget_servers(&r->watching);
	proof_clear(&r->proof);
	crew_quit(&r->crew);
	suts_disconnect(&r->suts);
	if (!suts_stop(&r->suts))
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

/* A server has 30 s for an answer (sut.c). Phases that only wait for one have 60 s: another request may be pending. */
const struct phase order_phases[RAMP_N] = {
	[RAMP_SERVER] = { .name = "starting server", .timeout_s = 60, .on_deadline = on_server_late },
	[RAMP_PROVE] = { .name = "proving servers", .timeout_s = 60, .on_deadline = on_prove_late },
	[RAMP_INFO] = { .name = "asking server", .timeout_s = 60, .on_deadline = on_info_late },
	[RAMP_FLOOR] = { .name = "connecting alone", .timeout_s = 60, .begin = begin_alone, .advance = advance_floor,
			 .on_deadline = on_alone_late },
	[RAMP_MARK] = { .name = "marking", .timeout_s = 60, .begin = begin_mark, .advance = advance_mark,
			.keeps = STEP_REPORT_MARKED, .on_deadline = on_mark_late },
	[RAMP_CONNECT] = { .name = "connecting", .timeout_ns = connect_timeout_ns, .begin = begin_connect,
			   .advance = advance_connect, .on_deadline = on_connect_late },
	[RAMP_COUNT] = { .name = "counting", .timeout_s = 60, .begin = ask_stats, .on_stats = on_count_stats,
			 .advance = advance_count, .keeps = STEP_REPORT_HELD, .on_deadline = on_count_late },
	[RAMP_START] = { .name = "starting traffic", .timeout_s = 60, .begin = begin_start, .advance = advance_start,
			 .late = RAMP_DRAIN },
	[RAMP_WARMUP] = { .name = "warming up", .timeout_ns = warmup_timeout_ns, .begin = advance_warmup,
			  .advance = advance_warmup, .on_deadline = on_warm },
	[RAMP_BEGIN] = { .name = "reading counters", .timeout_s = 60, .begin = ask_stats, .on_stats = on_begin_stats,
			 .keeps = STEP_REPORT_BEGIN, .on_deadline = on_begin_late },
	[RAMP_MEASURE] = { .name = "measuring", .timeout_ns = measure_timeout_ns, .begin = begin_measure,
			   .advance = advance_measure, .late = RAMP_DRAIN },
	[RAMP_DRAIN] = { .name = "draining", .timeout_s = 15, .begin = begin_drain, .on_stats = on_drain_stats,
			 .advance = advance_drain, .keeps = STEP_REPORT_END, .on_deadline = on_drain_late },
	[RAMP_DISCONNECT] = { .name = "disconnecting", .timeout_ns = disconnect_timeout_ns,
			      .begin = begin_disconnect, .advance = advance_disconnect,
			      .on_deadline = on_disconnect_late },
	[RAMP_RESTORE] = { .name = "checking pools", .timeout_ns = restore_timeout_ns, .begin = ask_stats,
			   .on_stats = on_restore_stats, .keeps = STEP_REPORT_AFTER, .on_deadline = on_restore_late },
	[RAMP_FOLLOW_UP] = { .name = "connecting alone", .timeout_s = 60, .begin = begin_alone,
			     .advance = advance_follow_up, .on_deadline = on_alone_late },
	[RAMP_GATE] = { .name = "waiting for hosts", .timeout_ns = gates_timeout_ns, .on_deadline = on_gate_late },
	[RAMP_AWAIT] = { .name = "waiting for the leader", .timeout_ns = await_timeout_ns, .begin = await_leader,
			 .advance = await_leader, .on_deadline = gates_await_late },
	[RAMP_STOP] = { .name = "stopping server", .timeout_s = 20, .begin = begin_stop, .on_deadline = on_stop_late },
	[RAMP_DONE] = { .name = "done", .begin = begin_done },
};

/* Reads the servers' pools only when all servers are watched: a watching session that is still being made would count
 * among the clients that connect. */
static void on_watched(void *arg)
{
	struct ramp *r = arg;

	if (r->phase == RAMP_INFO)
		suts_ask(&r->suts, CONTROL_STATS, r->phase_number);
}

/* All hosts have their workers: the leader starts to watch the servers; the first step follows. */
static void lead_met(struct ramp *r)
{
	struct control_config servers[TARGETS_MAX];

	gates_compare_fabrics(r);
	if (r->outcome->stopping)
		return;
	ramp_enter(r, RAMP_INFO);
	for (uint32_t i = 0; i < r->suts.n; i++)
		servers[i] = sut_control_config(&r->suts.one[i].sut, 0);
	watching_servers(&r->watching, servers, r->suts.n, on_watched, r);
}

static void lead_ready(struct ramp *r)
{
	gates_release(r, GATE_READY);
}

static void lead_connected(struct ramp *r)
{
	ramp_enter(r, RAMP_COUNT);
}

static void lead_warm(struct ramp *r)
{
	ramp_enter(r, RAMP_BEGIN);
}

static void pass_ready(struct ramp *r)
{
	ramp_enter(r, RAMP_CONNECT);
}

static void pass_connected(struct ramp *r)
{
	ramp_enter(r, r->gate_traffic ? RAMP_START : RAMP_DISCONNECT);
}

static void pass_warm(struct ramp *r)
{
	ramp_enter(r, RAMP_MEASURE);
}

const struct gate_rule order_gates[GATE_N] = {
	[GATE_MET] = { .name = "met", .lead = lead_met },
	[GATE_READY] = { .name = "ready", .at_one_moment = true, .lead = lead_ready, .pass = pass_ready },
	[GATE_CONNECTED] = { .name = "connected", .lead = lead_connected, .pass = pass_connected },
	[GATE_WARM] = { .name = "warm", .at_one_moment = true, .lead = lead_warm, .pass = pass_warm },
	[GATE_MEASURED] = { .name = "measured", .lead = lead_measured, .pass = pass_measured },
	[GATE_COUNTED] = { .name = "counted", .lead = lead_counted },
};
