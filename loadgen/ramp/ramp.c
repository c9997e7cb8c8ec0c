/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and ends a run, and passes external events (the servers' reports, ticks, signals, the end of our server) to
 * the state machine (phases.c, order.c), which decides what follows. See ramp.h.
 */
#include "loadgen/ramp/ramp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/host/cgroup.h"
#include "common/host/res.h"
#include "common/observed/observed.h"
#include "loadgen/config/deal.h"
#include "loadgen/server_under_test/needs.h"
#include "loadgen/ramp/order.h"
#include "loadgen/cluster/team.h"
#include "loadgen/output/load_hosts.h"
#include "loadgen/output/results.h"
#include "loadgen/output/run_metrics.h"
#include "loadgen/worker/connector.h"

/* Interval of requests in long phases. It is below the 600 s after which the server closes a silent control session,
 * and long, because requests disturb the measurement. */
#define KEEPALIVE_NS (480 * NS_PER_S)

/* False if a server lacks what the workload needs for its share. The run then stops before any client connects. */
static bool servers_suffice(struct ramp *r, char *text, size_t size)
{
	uint32_t first[TARGETS_MAX], most[TARGETS_MAX];
	const struct loadgen_config *c = r->cfg;
	uint64_t room[TARGETS_MAX];

	suts_room(&r->suts, r->outcome->server_infos, room);
	deal_clients((uint32_t)c->steps.v[0], r->suts.n, (enum deal)c->deal, c->seed, room, first);
	deal_clients((uint32_t)c->clients, r->suts.n, (enum deal)c->deal, c->seed, room, most);
	for (uint32_t i = 0; i < r->suts.n; i++) {
		const char *name = suts_name(&r->suts, i);
		int used = snprintf(text, size, "%s%s", name, *name ? ": " : "");

		if (!needs_are_met(c, r->outcome->server_infos[i], first[i], most[i], text + used, size - (size_t)used))
			return false;
	}
	return true;
}

static void on_infos(struct ramp *r)
{
	char text[TARGET_NAME_BYTES + 224];

	r->floors.same_machine = !r->cfg->server || r->crew.loopback;
	if (servers_suffice(r, text, sizeof(text))) {
		gates_tell_infos(r);
		gates_arrive(r, GATE_MET);
		return;
	}
	outcome_stop(r->outcome, STOP_ERROR_RATE, text);
	ramp_enter(r, RAMP_STOP);
}

static void on_report(void *arg, uint32_t target, enum control_what what, uint32_t number, json_t *report)
{
	struct ramp *r = arg;

	r->outcome->control_reconnects = suts_reconnects(&r->suts);
	r->outcome->server_restarts = suts_restarts(&r->suts);
	if (what == CONTROL_INFO) {
		json_decref(r->outcome->server_infos[target]);
		r->outcome->server_infos[target] = json_incref(report);
		floors_set_limits(&r->floors, floors_server(target), res_memory_of(json_at(report, "environment")),
				  json_number_at(report, "environment.cgroup.cpus"));
	} else if (number == r->phase_number) {
		ramp_keep_report(r, target, report);
	}
}

static void on_reports(void *arg, enum control_what what, uint32_t number, json_t *sum)
{
	struct ramp *r = arg;

	if (what == CONTROL_INFO)
		on_infos(r);
	else if (r->phase == RAMP_INFO)
		order_begin(r);
	else if (number != r->phase_number)
		return; /* the answer to a request of an earlier phase */
	else if (what == CONTROL_MARK)
		order_on_mark(r, sum);
	else
		ramp_on_stats(r, sum);
}

static void on_lost(void *arg, const char *why)
{
	struct ramp *r = arg;

	outcome_stop(r->outcome, STOP_SERVER_LOST, why);
	r->report_arrived = true;
	if (r->phase <= RAMP_INFO)
		ramp_enter(r, RAMP_STOP);
	else if (r->phase == RAMP_FLOOR || r->phase == RAMP_FOLLOW_UP || r->phase == RAMP_GATE)
		ramp_cut_short(r);
	else if (r->phase == RAMP_RESTORE)
		order_give_up_restore(r);
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

/* Member: the servers named by the leader have proved their identity, or (`why`) this host refuses to load them. */
static void on_proof_end(void *arg, const char *why)
{
	struct ramp *r = arg;

	if (r->phase != RAMP_PROVE)
		return;
	if (why) {
		gates_quit(r, why);
		ramp_enter(r, RAMP_STOP);
		return;
	}
	gates_arrive(r, GATE_MET);
	ramp_enter(r, RAMP_AWAIT);
}

/* Makes the control sessions and the workers, and asks the servers for their descriptions. With several hosts only the
 * leader asks; a member only has the servers prove their identity. */
static int meet_server(struct ramp *r, char *err, size_t err_size)
{
	struct sut_place targets[TARGETS_MAX];
	int ret = team_leads(r->team) ? suts_connect(&r->suts, err, err_size) : 0;

	suts_places(&r->suts, targets);
	if (!ret)
		ret = crew_start(&r->crew, r->cfg, targets, r->suts.n, wake_main, r, err, err_size);
	if (ret)
		return ret;
	r->outcome->generator_dev = crew_device(&r->crew);
	/* Described only now, when the workers have allocated their memory. */
	r->outcome->generator_place = json_object();
	effective_describe(r->outcome->generator_place);
	if (!team_leads(r->team)) {
		ramp_enter(r, RAMP_PROVE);
		return proof_start(&r->proof, &r->suts, r->loop, on_proof_end, r, err, err_size);
	}
	ramp_enter(r, RAMP_INFO);
	suts_ask(&r->suts, CONTROL_INFO, r->phase_number);
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
	if (r->phase == RAMP_FLOOR || r->phase == RAMP_FOLLOW_UP)
		ramp_cut_short(r);
	else if (!r->current.step)
		ramp_enter(r, RAMP_STOP);
	else
		ramp_stop_traffic(r);
}

static const struct suts_events server_events = {
	.on_ready = on_server_ready,
	.on_report = on_report,
	.on_reports = on_reports,
	.on_lost = on_lost,
	.on_exit = on_server_exit,
};

static bool nothing_left_to_measure(struct ramp *r)
{
	/* Before measuring, this host goes on to the next gate even without clients, because the others wait there. */
	if (r->phase < RAMP_MEASURE && gates_has_others(r) && !r->cfg->iterations)
		return false;
	if (CREW_SUM(&r->crew, live) + CREW_SUM(&r->crew, away) == 0 || current_lost_all_of_one(&r->current, &r->crew))
		return true;
	if (r->cfg->iterations)
		return current_is_stuck(&r->current, &r->crew);
	return r->phase == RAMP_MEASURE && current_cycles_are_done(&r->current, &r->crew);
}

/* RAMP_DRAIN is left out: it asks by itself, once, when no worker records any more. */
static bool is_to_ask(const struct ramp *r)
{
	if (!suts_are_idle(&r->suts) || r->phase == RAMP_DRAIN)
		return false;
	return r->phase == RAMP_RESTORE || r->phase == RAMP_COUNT ||
	       clock_now_ns() - suts_last_report_ns(&r->suts) > KEEPALIVE_NS;
}

/* Ends the step if a server has not proved its identity; gates_tick then asks the other hosts to end it too. */
static void look_for_unproved(struct ramp *r)
{
	char text[TARGET_NAME_BYTES + 160];
	uint32_t target;
	const char *name;

	if (!r->current.step || r->outcome->stopping || r->phase > RAMP_GATE || !crew_has_unproved(&r->crew, &target))
		return;
	name = suts_name(&r->suts, target);
	snprintf(text, sizeof(text),
		 "%s%sthe server did not prove its identity in %d TLS handshakes in a row, and this host loads only "
		 "servers that its --ca verifies", name, *name ? ": " : "", CONNECTOR_UNPROVED_MAX);
	progress_clear(&r->progress);
	log_warn("%s", text);
	outcome_stop(r->outcome, STOP_SERVER_LOST, text);
	ramp_cut_short(r);
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct ramp *r = w->data;
	bool changing;

	(void)revents;
	ramp_beat(r);
	if (r->phase >= RAMP_WARMUP && r->phase <= RAMP_MEASURE && nothing_left_to_measure(r))
		ramp_stop_traffic(r);
	look_for_unproved(r);
	if (is_to_ask(r))
		suts_ask(&r->suts, CONTROL_STATS, r->phase_number);
	changing = r->phase == RAMP_CONNECT || r->phase == RAMP_DISCONNECT;
	current_sample(&r->current, &r->crew, ramp_phase_name(r), changing);
	gates_tick(r);
	if (r->phase < RAMP_DONE)
		progress_show(&r->progress, r, ramp_phase_name(r));
	run_metrics_write(r->metrics, false);
	ev_timer_again(loop, w);
}

static void on_interval(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct ramp *r = w->data;

	(void)revents;
	if (r->phase != RAMP_MEASURE) {
		ev_timer_stop(loop, w);
		return;
	}
	current_interval(&r->current, &r->crew);
	w->repeat = (double)r->current.interval_ns / 1e9;
	ev_timer_again(loop, w);
}

static void on_turn_end(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct ramp *r = w->data;

	(void)loop;
	(void)revents;
	suts_send_next(&r->suts);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	ramp_on_deadline(w->data);
}

/* Ends the running step, and keeps its results, because a worker's device failed. Further failures change nothing. */
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

/* At a floor, ends the running step before the machine runs out of memory or CPU time; the results are kept. */
static void on_sample(void *arg, enum series_side side, uint32_t target, const struct sample *sample)
{
	struct ramp *r = arg;
	bool of_server = side == SIDE_SERVER;
	const char *name = of_server ? suts_name(&r->suts, target) : "";
	char text[sizeof(r->outcome->stop_detail)], which[TARGET_NAME_BYTES + sizeof(text) + 2];
	enum stop_reason why;

	if ((r->phase > RAMP_MEASURE && r->phase != RAMP_GATE) || r->outcome->stopping)
		return;
	why = floors_judge(&r->floors, of_server ? floors_server(target) : FLOORS_GENERATOR, sample, text,
			   sizeof(text));
	if (why == STOP_NOT)
		return;
	snprintf(which, sizeof(which), "%s%s%s", name, *name ? ": " : "", text);
	progress_clear(&r->progress);
	log_warn("%s: stopping, results are kept", which);
	outcome_stop(r->outcome, why, which);
	if (r->current.step) {
		r->current.step->floor = why == STOP_MEMORY_FLOOR ? FLOOR_MEMORY : FLOOR_CPU;
		r->current.step->floor_of_server = of_server;
	}
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
	utf8_print_line(stderr, "performance_test: %s: draining, results are kept", r->outcome->stop_detail);
	if (r->phase == RAMP_AWAIT)
		ramp_enter(r, RAMP_STOP);
	else
		ramp_cut_short(r);
}

static void start_watchers(struct ramp *r)
{
	ev_timer_init(&r->gate_at, NULL, 0., 0.);
	ev_init(&r->deadline, on_deadline);
	r->deadline.data = r;
	ev_timer_init(&r->tick, on_tick, (double)CURRENT_TICK_NS / 1e9, (double)CURRENT_TICK_NS / 1e9);
	r->tick.data = r;
	ev_timer_start(r->loop, &r->tick);
	ev_init(&r->interval, on_interval);
	r->interval.data = r;
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
	ev_timer_stop(r->loop, &r->interval);
	ev_async_stop(r->loop, &r->fulfilled);
	ev_signal_stop(r->loop, &r->interrupt);
	ev_signal_stop(r->loop, &r->terminate);
	ev_prepare_stop(r->loop, &r->turn_end);
	ev_timer_stop(r->loop, &r->gate_at);
}

static int start_ramp(struct ramp *r, char *err, size_t err_size)
{
	if (!r->cfg->server) {
		ramp_enter(r, RAMP_SERVER);
		return suts_start(&r->suts, err, err_size);
	}
	if (suts_find(&r->suts, err, err_size))
		return -EHOSTUNREACH;
	return meet_server(r, err, err_size);
}

/* Prepares a run on several hosts, if it is one. The leader records what each host said about itself. */
static int begin_with_hosts(struct ramp *r)
{
	int ret = r->team && team_leads(r->team) ? load_hosts_new(r->team->n, &r->outcome->hosts) : 0;

	for (uint32_t i = 0; r->outcome->hosts && i < r->team->n; i++)
		load_hosts_about(r->outcome->hosts, i, cluster_about(r->team->cluster, i));
	if (r->team && !ret)
		team_begin_run(r->team, &gates_events, r);
	return ret;
}

/* Watches this machine, and the servers later, so that the run ends before a machine has no memory or CPU time left. */
static int watch_machines(struct ramp *r)
{
	struct cgroup group;
	int ret = watching_start(&r->watching, r->cfg, r->loop, r->results, r->outcome->series, &r->crew);

	floors_init(&r->floors, r->cfg->memory_floor_percent, r->cfg->cpu_floor_percent, !r->cfg->server);
	cgroup_find("", &group);
	floors_set_limits(&r->floors, FLOORS_GENERATOR, (double)res_machine_memory_bytes(), group.cpus);
	r->watching.on_sample = on_sample;
	r->watching.sample_arg = r;
	return ret;
}

static int make_parts(struct ramp *r)
{
	int ret;

	r->files = (struct step_files){ .cfg = r->cfg, .results = r->results, .run_start_ns = clock_now_ns() };
	agenda_init(&r->agenda, r->outcome);
	suts_init(&r->suts, r->cfg, results_path(r->results, "server.log"), r->loop, &server_events, r);
	ret = current_init(&r->current, r->cfg, r->results);
	return ret ? ret : series_new(&r->outcome->series);
}

/* Runs the loop until the phase RAMP_DONE, unless the run cannot start. */
static int run_phases(struct ramp *r, char *err, size_t err_size)
{
	int ret;

	start_watchers(r);
	ret = run_metrics_new(r->cfg, r->loop, progress_json, r, &r->metrics, err, err_size);
	if (!ret)
		ret = watch_machines(r);
	if (!ret)
		ret = start_ramp(r, err, err_size);
	if (!ret)
		ev_run(r->loop, 0);
	run_metrics_write(r->metrics, true);
	run_metrics_free(r->metrics);
	progress_clear(&r->progress);
	if (r->team)
		team_end_run(r->team);
	watching_stop(&r->watching);
	stop_watchers(r);
	return ret;
}

static void clear_parts(struct ramp *r)
{
	proof_clear(&r->proof);
	crew_dismiss(&r->crew);
	alone_clear(&r->alone);
	suts_clear(&r->suts);
	current_clear(&r->current);
}

int ramp_run(struct outcome *oc, struct results *results, char *err, size_t err_size)
{
	struct ramp r = { .cfg = oc->cfg, .results = results, .outcome = oc, .loop = ev_default_loop(0),
			  .phase = RAMP_N,
			  .phases = order_phases, .gates = order_gates, .progress.quiet = oc->cfg->quiet,
			  .team = oc->cfg->team };
	int ret;

	snprintf(err, err_size, "this machine is out of memory");
	ret = make_parts(&r);
	if (!ret)
		ret = begin_with_hosts(&r);
	if (!ret)
		ret = run_phases(&r, err, err_size);
	clear_parts(&r);
	return ret;
}
