/* SPDX-License-Identifier: BSD-2-Clause */
/* See current.h. */
#include "loadgen/ramp/current.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/hist/hist.h"
#include "common/host/cgroup.h"
#include "common/host/place.h"
#include "loadgen/config/deal.h"
#include "loadgen/output/results.h"
#include "loadgen/traffic/workload.h"

/* Measuring ends when no client has returned for this long (--cycles), or nothing was transferred (--iterations). */
#define PATIENCE_NS (60 * NS_PER_S)

int current_init(struct current *c, const struct loadgen_config *cfg, struct results *results)
{
	int ret;

	memset(c, 0, sizeof(*c));
	c->cfg = cfg;
	c->results = results;
	ret = hist_new(&c->now);
	if (!ret)
		ret = hist_new(&c->before);
	return ret ? ret : hist_new(&c->interval);
}

void current_clear(struct current *c)
{
	current_end(c);
	hist_free(c->now);
	hist_free(c->before);
	hist_free(c->interval);
}

/* Readings of the main thread, which has no operations of its own. */
static struct pulse_moment this_moment(void)
{
	return (struct pulse_moment){ .now_ns = clock_boot_ns(), .busy_ns = clock_busy_ns() };
}

void current_deal(struct current *c, uint32_t total, const struct suts *suts, json_t *const infos[TARGETS_MAX])
{
	uint64_t room[TARGETS_MAX];

	suts_room(suts, infos, room);
	deal_clients(total, suts->n, (enum deal)c->cfg->deal, c->cfg->seed, room, c->dealt);
}

/* Makes the step's `targets`, one for each of several servers; a single server needs none. */
static int make_targets(struct current *c, const struct suts *suts, const uint32_t *share)
{
	int ret = suts->n == 1 ? 0 : step_make_targets(c->step, suts->n, share);

	for (uint32_t i = 0; i < suts->n && suts->n > 1 && !ret; i++)
		step_keep_report(c->step, i, STEP_REPORT_BASELINE, suts_baseline_of(suts, i));
	return ret;
}

/* How many clients send, over all hosts. */
static uint32_t senders_of(const struct current *c)
{
	if (c->cfg->wl->idle)
		return 0;
	return c->cfg->active && c->cfg->active < c->total ? (uint32_t)c->cfg->active : c->total;
}

/* Computes this host's senders in the same way as crew_order distributes them. */
static void set_senders(struct current *c, const struct crew *crew, uint32_t n_targets)
{
	uint32_t active[TARGETS_MAX], share[TARGETS_MAX];

	c->step->senders_of_all = senders_of(c);
	c->step->senders = 0;
	deal_part(c->step->senders_of_all, n_targets, c->dealt, active);
	crew_share(crew, active, share);
	for (uint32_t i = 0; i < n_targets; i++)
		c->step->senders += share[i];
}

int current_begin(struct current *c, const struct crew *crew, uint64_t bytes, uint32_t repetition,
		  const struct suts *suts)
{
	uint32_t share[TARGETS_MAX], target = 0;
	struct pulse_moment now;
	int ret;

	crew_share(crew, c->dealt, share);
	c->total = 0;
	for (uint32_t i = 0; i < suts->n; i++) {
		c->total += c->dealt[i];
		target += share[i];
	}
	ret = step_new(target, bytes, repetition, &c->step);
	if (!ret)
		ret = make_targets(c, suts, share);
	if (ret) {
		current_end(c);
		return ret;
	}
	c->step->of_all = c->total;
	c->step->cpus = place_cpus();
	c->step->max_steal_ratio = (double)c->cfg->max_steal_percent / 100;
	set_senders(c, crew, suts->n);
	c->step->baseline = suts_baseline(suts);
	c->begin_s = results_elapsed_s(c->results);
	c->last_moved_ns = 0;
	now = this_moment();
	pulse_start(&c->pulse, CURRENT_TICK_NS, &now);
	results_event(c->results, "step_start", json_pack("{s:i, s:i, s:I}", "clients", target, "repetition",
							  repetition,
		"message_bytes", (json_int_t)bytes));
	return 0;
}

void current_end(struct current *c)
{
	step_free(c->step);
	c->step = NULL;
}

void current_beat(struct current *c)
{
	struct pulse_moment now = this_moment();

	pulse_beat(&c->pulse, &now);
	c->step->clock_late_ns = c->pulse.late_ns;
}

void current_order(const struct current *c, struct crew *crew, enum worker_order order)
{
	struct worker_task whole = { .clients = c->total, .active = senders_of(c), .bytes = c->step->bytes,
				     .upto = c->upto, .rate = c->step->rate };

	crew_order(crew, order, &whole, c->dealt);
}

enum stage current_last_stage(const struct loadgen_config *cfg)
{
	static const enum stage silent[] = { [TRANSPORT_RDMA] = STAGE_RDMA_CONNECT,
					     [TRANSPORT_TCP] = STAGE_SOCKET_CONNECT,
					     [TRANSPORT_TLS] = STAGE_PSN_EXCHANGE };

	if (!stage_applies(STAGE_FIRST_REPLY, (enum transport)cfg->transport, (enum connect_way)cfg->connect))
		return STAGE_QP_EXCHANGE;
	return cfg->wl->silent ? silent[cfg->transport] : STAGE_FIRST_REPLY;
}

void current_connect(struct current *c, struct crew *crew)
{
	c->connect_start_ns = c->barrier_ns = clock_now_ns();
	c->connect_cpu_start_ns = clock_process_ns();
	c->step->started = true;
	c->step->loopback = crew->loopback;
	c->step->network_marked = crew_network(crew);
	c->upto = c->cfg->phased ? STAGE_TCP_CONNECT : current_last_stage(c->cfg);
	current_order(c, crew, ORDER_CONNECT);
}

bool current_next_stage(struct current *c, struct crew *crew, bool go_on)
{
	uint64_t now = clock_now_ns();

	if (c->cfg->phased)
		c->step->phase_ns[c->upto] = now - c->barrier_ns;
	if (c->upto == current_last_stage(c->cfg) || !go_on)
		return false;
	do
		c->upto++;
	while (!stage_applies(c->upto, (enum transport)c->cfg->transport, (enum connect_way)c->cfg->connect));
	c->barrier_ns = now;
	current_order(c, crew, ORDER_STAGE);
	return true;
}

void current_connected(struct current *c, const struct crew *crew)
{
	c->step->connect_wall_ns = clock_now_ns() - c->connect_start_ns;
	c->step->connect_cpu_ns = clock_process_ns() - c->connect_cpu_start_ns;
	current_hold(c, crew, false);
	c->step->connected_peak = c->step->connected_held;
	for (uint32_t i = 0; i < c->step->n_targets; i++)
		c->step->targets[i].connected_peak = c->step->targets[i].connected_held;
	json_decref(c->step->network_connected);
	c->step->network_connected = crew_network(crew);
}

void current_hold(struct current *c, const struct crew *crew, bool away_too)
{
	c->step->connected_held = crew_live(crew) + (away_too ? crew_away(crew) : 0);
	for (uint32_t i = 0; i < c->step->n_targets; i++)
		c->step->targets[i].connected_held = crew_live_of(crew, i) + (away_too ? crew_away_of(crew, i) : 0);
}

bool current_lost_all_of_one(const struct current *c, const struct crew *crew)
{
	for (uint32_t i = 0; i < c->step->n_targets; i++)
		if (c->step->targets[i].connected_peak && crew_live_of(crew, i) + crew_away_of(crew, i) == 0)
			return true;
	return false;
}

void current_leave(struct current *c, struct crew *crew)
{
	if (c->step->started)
		c->step->span_ns = clock_now_ns() - c->connect_start_ns;
	current_order(c, crew, ORDER_DISCONNECT);
}

static void take_moment(const struct crew *crew, struct step_moment *m)
{
	struct cgroup group;

	m->now_ns = clock_now_ns();
	if (res_usage_self(&m->generator) || res_machine_cpu(&m->machine))
		log_warn("cannot read this process's resources, or the machine's CPU time, in /proc: they are null in "
			 "this step");
	cgroup_find("", &group);
	m->throttled_s = cgroup_now(&group, CGROUP_THROTTLED_S);
	m->payload_bytes = CREW_SUM(crew, bytes_sent) + CREW_SUM(crew, bytes_received);
	m->one_sided_bytes = CREW_SUM(crew, one_sided_bytes);
	json_decref(m->network);
	m->network = crew_network(crew);
	m->work = (struct ep_work){ 0 };
	for (uint32_t i = 0; i < crew->n; i++)
		effective_add_work(&worker_stats(crew->workers[i])->effective, &m->work);
	for (uint32_t i = 0; i < crew->n; i++)
		m->worker_cpu_ns[i] = counter_get(&worker_stats(crew->workers[i])->cpu_ns);
}

void current_measure(struct current *c, struct crew *crew)
{
	/* With --iterations the moment is taken first, because all measured operations may end before this thread runs
	 * again. Without --iterations the order is given first, so that work before it does not count. */
	if (c->cfg->iterations)
		take_moment(crew, &c->step->begin);
	current_order(c, crew, ORDER_MEASURE);
	if (!c->cfg->iterations)
		take_moment(crew, &c->step->begin);
	c->last_cycles = 0;
	c->interval_ns = intervals_length_ns(c->cfg->cycles || c->cfg->iterations ? 0 : c->cfg->duration_ns);
	c->last_cycle_ns = c->last_interval_ns = clock_now_ns();
	c->last_messages = CREW_SUM(crew, messages_measured);
	hist_reset(c->before);
}

void current_interval(struct current *c, const struct crew *crew)
{
	struct step *s = c->step;
	uint64_t now = clock_now_ns(), messages = CREW_SUM(crew, messages_measured);
	double span_s = (double)(now - c->last_interval_ns) / 1e9;
	double rate = (double)(messages - c->last_messages) / span_s, p99 = 0;

	if (now - c->last_interval_ns < c->interval_ns / 2)
		return;
	crew_response(crew, c->now);
	hist_diff(c->interval, c->now, c->before);
	hist_reset(c->before);
	hist_add(c->before, c->now);
	if (hist_supports(c->interval, 99))
		p99 = (double)hist_percentile(c->interval, 99);
	if (intervals_add(&s->intervals, (double)(now - s->begin.now_ns) / 1e9, rate, c->interval))
		c->interval_ns *= 2;
	results_event(c->results, "interval", json_pack("{s:i, s:f, s:o, s:I}", "clients", s->target,
		"messages_per_s", rate, "p99_ns", p99 > 0 ? json_real(p99) : json_null(), "connected",
		(json_int_t)CREW_SUM(crew, live)));
	c->last_interval_ns = now;
	c->last_messages = messages;
}

void current_measured(struct current *c, const struct crew *crew)
{
	if (!c->step->begin.now_ns)
		return;
	current_interval(c, crew);
	take_moment(crew, &c->step->end);
}

bool current_cycles_are_done(struct current *c, const struct crew *crew)
{
	uint64_t cycles = CREW_SUM(crew, cycles), now = clock_now_ns();

	if (cycles != c->last_cycles) {
		c->last_cycles = cycles;
		c->last_cycle_ns = now;
	}
	return c->cfg->cycles && (cycles * c->total >= c->cfg->cycles * c->step->target ||
				  now - c->last_cycle_ns > PATIENCE_NS);
}

bool current_is_stuck(struct current *c, const struct crew *crew)
{
	uint64_t now = clock_now_ns();
	uint64_t moved = CREW_SUM(crew, messages) + CREW_SUM(crew, bytes_sent) + CREW_SUM(crew, bytes_received);

	if (moved != c->last_moved || !c->last_moved_ns) {
		c->last_moved = moved;
		c->last_moved_ns = now;
	}
	return now - c->last_moved_ns > PATIENCE_NS;
}

void current_sample(struct current *c, const struct crew *crew, const char *phase, bool changing)
{
	uint64_t now = clock_now_ns();

	/* Until the step's clients connect, the workers still publish the previous step's figures. */
	if (!c->step || !c->step->started || (!changing && now - c->last_sample_ns < NS_PER_S))
		return;
	c->last_sample_ns = now;
	results_event(c->results, "sample", json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "clients", c->step->target,
		"phase", phase, "connected", (json_int_t)CREW_SUM(crew, live), "connecting",
		(json_int_t)CREW_SUM(crew, connecting), "failed",
		(json_int_t)(CREW_SUM(crew, failed) + CREW_SUM(crew, dropped)), "connects",
		(json_int_t)crew_connects(crew), "messages", (json_int_t)CREW_SUM(crew, messages)));
}
