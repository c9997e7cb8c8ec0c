/* SPDX-License-Identifier: BSD-2-Clause */
/* See gates.h. */
#include "loadgen/ramp/gates.h"

#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/verdict/breaking.h"
#include "loadgen/ramp/phases.h"
#include "loadgen/ramp/step_record.h"
#include "loadgen/cluster/team.h"
#include "loadgen/output/load_hosts.h"
#include "loadgen/output/results.h"

/* How long removing absent hosts may take before this host goes on without the others. */
#define PUT_OUT_NS (30 * NS_PER_S)
/* Time that this host allows the others at a gate: */
#define GATE_NEWS_NS (60 * NS_PER_S)	/* for a message about the gate to reach all hosts */
#define GATE_HOST_NS (100 * NS_PER_MS)	/* additional time for each host: clocks are compared with one host at a time */
#define WORKERS_START_S 120		/* for the workers to allocate their memory */
#define SLOWEST_HOST 10			/* factor by which the slowest host may take longer for operations and cycles */

#define RUN_STEP 0	/* step number of messages that concern the run as a whole */

static enum gate gate_of(const struct ramp *r, const char *name)
{
	enum gate g = GATE_MET;

	while (g < GATE_N && strcmp(r->gates[g].name, name) != 0)
		g++;
	return g;
}

static const char *text_at(const json_t *o, const char *name)
{
	const char *text = json_text_at(o, name);

	return text ? text : "";
}

bool gates_has_others(const struct ramp *r)
{
	return r->team && !r->team->out;
}

/* The sum over all hosts of a number in the notes they brought to the gate. */
static double sum_of_notes(const struct ramp *r, enum gate g, const char *field)
{
	double sum = 0;

	for (uint32_t i = 0; i < r->team->n; i++) {
		double v = json_number_at(team_note(r->team, r->step_number, r->gates[g].name, i), field);

		sum += v > 0 && v <= UINT32_MAX ? v : 0;
	}
	return sum;
}

uint32_t gates_connected(const struct ramp *r)
{
	if (!gates_has_others(r))
		return r->current.step->connected_peak;
	return (uint32_t)MIN(sum_of_notes(r, GATE_CONNECTED, "connected"), (double)UINT32_MAX);
}

void gates_compare_fabrics(struct ramp *r)
{
	static const char *const kinds[] = { "rdma_device.link", "rdma_device.is_software",
					     "rdma_device.path_mtu_bytes" };
	static const char *const words[] = { "link", "software device", "path MTU" };
	const json_t *mine;
	char why[256];

	if (!gates_has_others(r))
		return;
	mine = team_note(r->team, RUN_STEP, "met", 0);
	for (uint32_t i = 1; i < r->team->n; i++) {
		const json_t *theirs = team_note(r->team, RUN_STEP, "met", i);

		for (size_t k = 0; theirs && k < sizeof(kinds) / sizeof(kinds[0]) && !r->outcome->stopping; k++) {
			const json_t *a = json_at(mine, kinds[k]), *b = json_at(theirs, kinds[k]);

			if (a == b || json_equal(a, b))
				continue;
			snprintf(why, sizeof(why), "host %u (%.64s): its fabric differs from the leader's: %s", i,
				 team_host_name(r->team, i), words[k]);
			outcome_stop(r->outcome, STOP_HOST_LOST, why);
			ramp_cut_short(r);
		}
	}
	team_forget(r->team, RUN_STEP, "met");
}

/* True if a host could not connect its clients in time. There is no traffic then, as in a run on one host. */
static bool is_any_late(const struct ramp *r)
{
	return gates_has_others(r) && sum_of_notes(r, GATE_CONNECTED, "late") > 0;
}

static void pass(struct ramp *r, enum gate g)
{
	if (r->gates[g].pass)
		r->gates[g].pass(r);
}

void gates_release(struct ramp *r, enum gate g)
{
	bool traffic = g != GATE_CONNECTED || (gates_connected(r) > 0 && !is_any_late(r) && !r->outcome->stopping);

	if (!gates_has_others(r)) {
		r->gate_traffic = traffic;
		pass(r, g);
		return;
	}
	/* GATE_MEASURED has no waiting phase of its own, and this host may be at the next gate already. */
	r->measured_released |= g == GATE_MEASURED;
	if (g != GATE_MEASURED) {
		r->gate = g;
		ramp_enter(r, RAMP_GATE);
	}
	team_go(r->team, r->step_number, r->gates[g].name, json_pack("{s:b}", "traffic", traffic),
		r->gates[g].at_one_moment ? TEAM_LEAD_NS : 0);
}

static json_t *note_of(const struct ramp *r, enum gate g)
{
	if (g == GATE_MET)
		return json_pack("{s:O}", "rdma_device", r->outcome->generator_dev);
	if (g == GATE_CONNECTED)
		return json_pack("{s:I, s:i}", "connected", (json_int_t)r->current.step->connected_peak, "late",
				 r->current.step->step_timeout);
	return g == GATE_COUNTED ? record_hand_in(r) : NULL;
}

void gates_arrive(struct ramp *r, enum gate g)
{
	if (!gates_has_others(r)) {
		r->gate_traffic = false;
		if (team_leads(r->team))
			r->gates[g].lead(r);
		else
			pass(r, g);
		return;
	}
	r->gate = g;
	if (g != GATE_MEASURED)
		ramp_enter(r, RAMP_GATE);
	if (g == GATE_READY)
		team_compare_clocks(r->team, r->step_number, r->gates[g].name);
	else
		team_arrive(r->team, r->step_number, r->gates[g].name, note_of(r, g));
}

void gates_leave(struct ramp *r)
{
	if (!gates_has_others(r))
		return;
	if (!r->measured_arrived) {
		r->measured_arrived = true;
		team_arrive(r->team, r->step_number, r->gates[GATE_MEASURED].name, NULL);
	}
	if (r->measured_all && !r->measured_released)
		gates_release(r, GATE_MEASURED);
}

void gates_announce(struct ramp *r)
{
	const struct step *s = r->current.step;
	json_t *dealt;

	r->step_number++;
	r->cut_told = false;
	if (!gates_has_others(r))
		return;
	dealt = json_array();
	for (uint32_t i = 0; i < r->suts.n; i++)
		json_array_append_new(dealt, json_integer((json_int_t)r->current.dealt[i]));
	team_go(r->team, r->step_number, "step", json_pack("{s:o, s:I, s:I, s:I}", "clients", dealt, "bytes",
							   (json_int_t)s->bytes,
		"repetition", (json_int_t)s->repetition, "rate", (json_int_t)s->rate), 0);
}

void gates_quit(struct ramp *r, const char *why)
{
	log_error("%s", why);
	outcome_stop(r->outcome, STOP_HOST_LOST, why);
	team_quit(r->team, why);
}

/* The whole number `name`; if it is negative or no whole number, UINT64_MAX, which is not valid in any step. */
static uint64_t figure_at(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) : UINT64_MAX;
}

/* Reads how many clients each server gets, and their sum. False: the numbers are not valid. */
static bool read_dealt(const struct ramp *r, const json_t *clients, uint32_t *dealt, uint64_t *total)
{
	*total = 0;
	if (json_array_size(clients) != r->suts.n)
		return false;
	for (uint32_t i = 0; i < r->suts.n; i++) {
		json_int_t n = json_integer_value(json_array_get(clients, i));

		if (n < 0 || n > (json_int_t)r->cfg->clients)
			return false;
		dealt[i] = (uint32_t)n;
		*total += dealt[i];
	}
	return true;
}

/* Reads and checks the step that the leader announced, because the leader is not trusted. False: the step is not valid,
 * and this host has left the run. */
static bool read_step(struct ramp *r, const json_t *what, struct step_figures *f)
{
	*f = (struct step_figures){ .bytes = figure_at(what, "bytes"), .repetition = figure_at(what, "repetition"),
				  .rate = figure_at(what, "rate") };

	r->step_number++;
	r->cut_told = false;
	if (!read_dealt(r, json_object_get(what, "clients"), r->current.dealt, &f->clients)) {
		gates_quit(r, "the leader's step does not say how many of --clients each server gets");
		return false;
	}
	if (!crew_has_room(&r->crew, r->current.dealt)) {
		gates_quit(r, "the leader's step gives a server more clients than --deal allows");
		return false;
	}
	r->outcome->stopping = false;
	return true;
}

void gates_tell_infos(struct ramp *r)
{
	json_t *infos;

	if (!gates_has_others(r))
		return;
	infos = json_array();
	for (uint32_t i = 0; i < r->suts.n; i++)
		json_array_append(infos, r->outcome->server_infos[i]);
	team_go(r->team, RUN_STEP, "info", json_pack("{s:o}", "servers", infos), 0);
}

enum gates_news gates_read_news(struct ramp *r, struct step_figures *f)
{
	json_t *info = team_gone(r->team, RUN_STEP, "info"), *step = team_gone(r->team, r->step_number + 1, "step");
	json_t *over = team_gone(r->team, RUN_STEP, "end"), *end = over ? over : team_gone(r->team, RUN_STEP, "exit");

	if (!gates_has_others(r) || outcome_is_aborted(r->outcome))
		return GATES_END;
	for (uint32_t i = 0; info && i < r->suts.n && !r->outcome->server_infos[i]; i++)
		r->outcome->server_infos[i] = json_incref(json_array_get(json_object_get(info, "servers"), i));
	if (step)
		return read_step(r, step, f) ? GATES_STEP : GATES_END;
	if (!end)
		return GATES_NOTHING;
	r->outcome->stopping = false;
	outcome_stop(r->outcome, stop_reason_of(json_text_at(end, "reason")), text_at(end, "detail"));
	return GATES_END;
}

void gates_tell_end(struct ramp *r)
{
	if (gates_has_others(r) && team_leads(r->team))
		team_go(r->team, RUN_STEP, "end", json_pack("{s:s, s:s}", "reason",
							    stop_reason_names[r->outcome->stop_reason],
							    "detail", r->outcome->stop_detail), 0);
}

static void my_live(const struct ramp *r, struct team_live *l)
{
	const struct step *s = r->current.step;

	*l = (struct team_live){ .connecting = CREW_SUM(&r->crew, connecting), .connected = CREW_SUM(&r->crew, live),
				 .failed = CREW_SUM(&r->crew, failed) + CREW_SUM(&r->crew, dropped) };
	snprintf(l->phase, sizeof(l->phase), "%s", ramp_phase_name(r));
	if (r->phase == RAMP_MEASURE && s->intervals.n)
		l->messages_per_s = s->intervals.v[s->intervals.n - 1].messages_per_s;
	if (!s || !s->started)
		l->connecting = l->connected = l->failed = 0;
}

/* Why this host wants the step to end; NULL: it does not. */
static const char *wish_of(const struct ramp *r)
{
	return r->outcome->stopping ? r->outcome->stop_detail : NULL;
}

void gates_tick(struct ramp *r)
{
	struct team_live mine;

	if (!r->team)
		return;
	my_live(r, &mine);
	if (!team_leads(r->team)) {
		team_tell(r->team, &mine, wish_of(r));
		return;
	}
	if (gates_has_others(r) && r->outcome->stopping && r->current.step && !r->cut_told) {
		r->cut_told = true;
		team_go(r->team, r->step_number, "cut", json_pack("{s:s, s:s}", "reason",
			stop_reason_names[r->outcome->stop_reason], "detail", r->outcome->stop_detail), 0);
	}
	team_tell(r->team, &mine, NULL);
}

static void on_gate_at(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct ramp *r = w->data;

	(void)loop;
	(void)revents;
	/* If the step has been cut short, the run is in another phase. */
	if (r->phase == RAMP_GATE || r->phase == RAMP_DRAIN)
		pass(r, r->gate);
}

static void go_at(struct ramp *r, uint64_t at_ns)
{
	uint64_t now = clock_now_ns();

	if (at_ns <= now) {
		pass(r, r->gate);
		return;
	}
	ev_timer_stop(r->loop, &r->gate_at);
	ev_now_update(r->loop);
	ev_timer_init(&r->gate_at, on_gate_at, (double)(at_ns - now) / 1e9, 0.);
	r->gate_at.data = r;
	ev_timer_start(r->loop, &r->gate_at);
}

static void on_all(void *arg, uint32_t step, const char *name)
{
	struct ramp *r = arg;
	enum gate g = gate_of(r, name);

	/* After its step was cut short, a host skips gates, so the message may be for another gate. */
	if (step != r->step_number || (!r->current.step && g != GATE_MET))
		return;
	if (g == GATE_MEASURED)
		r->gates[GATE_MEASURED].lead(r);
	else if (g < GATE_N && r->gate == g && r->phase == RAMP_GATE)
		r->gates[g].lead(r);
}

static void on_cut(struct ramp *r, const json_t *what)
{
	if (team_leads(r->team) || r->outcome->stopping)
		return;
	outcome_stop(r->outcome, stop_reason_of(json_text_at(what, "reason")), text_at(what, "detail"));
	ramp_cut_short(r);
}

static void on_go(void *arg, uint32_t step, const char *name, json_t *what, uint64_t at_ns)
{
	struct ramp *r = arg;
	enum gate g = gate_of(r, name);

	if (r->phase == RAMP_AWAIT) {
		ramp_advance(r);
	} else if (step == r->step_number && strcmp(name, "cut") == 0) {
		on_cut(r, what);
	} else if (step == r->step_number && g < GATE_N && r->gate == g &&
		   (r->phase == RAMP_GATE || r->phase == RAMP_DRAIN)) {
		r->gate_traffic = json_is_true(json_object_get(what, "traffic"));
		go_at(r, at_ns);
	}
}

static void on_wish(void *arg, const char *why)
{
	struct ramp *r = arg;

	if (r->outcome->stopping)
		return;
	outcome_stop(r->outcome, STOP_HOST_LOST, why);
	ramp_cut_short(r);
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	struct ramp *r = arg;

	if (team_leads(r->team))
		load_hosts_lost(r->outcome->hosts, rank, results_elapsed_s(r->results), why);
	if (r->team->go_on_after_loss || r->outcome->stopping)
		return;
	outcome_stop(r->outcome, STOP_HOST_LOST, why);
	ramp_cut_short(r);
}

/* Called when this host is out of the team: from now on it waits for no other host. */
static void on_out(void *arg, const char *why)
{
	struct ramp *r = arg;

	if (!outcome_is_aborted(r->outcome)) {
		r->outcome->stopping = false;
		outcome_stop(r->outcome, STOP_HOST_LOST, why);
	}
	if (r->phase == RAMP_GATE && r->gate == GATE_COUNTED)
		r->gates[GATE_COUNTED].lead(r);
	else if (r->phase == RAMP_AWAIT)
		ramp_enter(r, RAMP_STOP);
	else if (r->phase == RAMP_DRAIN && team_leads(r->team) && r->measured_arrived && !r->report_asked)
		r->gates[GATE_MEASURED].lead(r);
	else if (r->phase == RAMP_DRAIN && !team_leads(r->team))
		r->gates[GATE_MEASURED].pass(r);
	else if (r->phase < RAMP_STOP)
		ramp_cut_short(r);
}

/* How much longer than this host the slowest may take for operations or cycles, whose time no option limits. */
static uint64_t counted_slack_ns(uint64_t own_ns)
{
	return SLOWEST_HOST * own_ns + 60 * NS_PER_S;
}

/* How much later than this host the slowest of the other hosts may arrive at the gate. */
static uint64_t others_late_ns(const struct ramp *r)
{
	const struct loadgen_config *c = r->cfg;
	const struct step *s = r->current.step;
	uint64_t own_ns;

	switch (r->gate) {
	case GATE_MET:
		return (r->phases[RAMP_PROVE].timeout_s + WORKERS_START_S) * NS_PER_S;
	case GATE_CONNECTED:
		return r->phases[RAMP_CONNECT].timeout_ns(r);
	case GATE_WARM:
		return r->phases[RAMP_START].timeout_s * NS_PER_S +
		       (c->iterations ? counted_slack_ns(clock_now_ns() - r->phase_start_ns) : c->warmup_ns);
	case GATE_MEASURED:
		own_ns = s->begin.now_ns ? s->end.now_ns - s->begin.now_ns : 0;
		return r->phases[RAMP_DRAIN].timeout_s * NS_PER_S +
		       (c->iterations || c->cycles ? counted_slack_ns(own_ns) : c->duration_ns);
	case GATE_COUNTED:
		return r->phases[RAMP_DRAIN].timeout_s * NS_PER_S + r->phases[RAMP_DISCONNECT].timeout_ns(r);
	case GATE_READY:
	case GATE_N:
		break;
	}
	return 0;
}

/* A member waits for the slowest host, and then for the leader, which asks the servers or removes that host. */
uint64_t gates_timeout_ns(const struct ramp *r)
{
	uint64_t news_ns = GATE_NEWS_NS + r->cfg->hosts * GATE_HOST_NS;

	if (team_leads(r->team))
		return others_late_ns(r) + news_ns;
	return others_late_ns(r) + r->phases[RAMP_COUNT].timeout_s * NS_PER_S + 3 * news_ns;
}

/* Leaves the other hosts; this host completes its step without them. */
static void give_up(struct ramp *r, const char *why)
{
	log_error("%s", why);
	team_quit(r->team, why);
	on_out(r, why);
}

/* Approximate number of seconds since this host arrived at the gate. */
static unsigned waited_s(const struct ramp *r)
{
	return (unsigned)((clock_now_ns() - r->phase_start_ns) / NS_PER_S);
}

void gates_late(struct ramp *r, bool first)
{
	const char *name = r->gates[r->gate].name;
	char why[160];

	if (team_leads(r->team) && first) {
		snprintf(why, sizeof(why), "it did not arrive at the gate \"%s\" within %u s", name, waited_s(r));
		team_put_out_absent(r->team, r->step_number, name, why);
		ramp_wait_on(r, PUT_OUT_NS);
		return;
	}
	if (team_leads(r->team))
		snprintf(why, sizeof(why),
			 "hosts that did not arrive at the gate \"%s\" could not be put out of the run", name);
	else
		snprintf(why, sizeof(why), "host %.64s (rank 0) did not let the run pass the gate \"%s\" within %u s",
			 team_host_name(r->team, 0), name, waited_s(r));
	give_up(r, why);
}

void gates_await_late(struct ramp *r)
{
	uint64_t patience_ns = team_patience_ns(r->team);
	char why[160];

	if (patience_ns)
		ramp_wait_on(r, patience_ns);
	else
		give_up(r, team_silence_text(r->team, why, sizeof(why)));
}

const struct team_events gates_events = {
	.on_all = on_all, .on_go = on_go, .on_wish = on_wish, .on_lost = on_lost, .on_out = on_out,
};
