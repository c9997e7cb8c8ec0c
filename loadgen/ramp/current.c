/* The step that is being run. See current.h. */
#include "loadgen/ramp/current.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/hist/hist.h"
#include "loadgen/results/results.h"
#include "loadgen/traffic/workload.h"

/* With --cycles: the measurement ends when no client came back for so long. */
#define CYCLE_PATIENCE_NS (60 * NS_PER_S)

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

/* The main thread has no operations. */
static struct pulse_moment this_moment(void)
{
	return (struct pulse_moment){ .now_ns = clock_boot_ns(), .busy_ns = clock_busy_ns() };
}

int current_begin(struct current *c, uint32_t target, uint64_t bytes, uint32_t repetition, json_t *baseline)
{
	int ret = step_new(target, bytes, repetition, &c->step);
	struct pulse_moment now;

	if (ret)
		return ret;
	c->step->baseline = json_incref(baseline);
	c->begin_s = results_elapsed_s(c->results);
	now = this_moment();
	pulse_start(&c->pulse, CURRENT_TICK_NS, &now);
	results_event(c->results, "step_start", json_pack("{s:i, s:i, s:I}", "clients", target, "repetition", repetition,
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
	uint32_t target = c->step->target;
	uint32_t active = c->cfg->wl->idle ? 0 :
			  c->cfg->active && c->cfg->active < target ? (uint32_t)c->cfg->active : target;
	struct worker_task whole = { .clients = target, .active = active, .bytes = c->step->bytes, .upto = c->upto };

	crew_order(crew, order, &whole);
}

/* --- connecting --- */

static enum stage last_stage(const struct current *c)
{
	return c->cfg->wl->silent ? STAGE_RDMA_CONNECT : STAGE_FIRST_REPLY;
}

void current_connect(struct current *c, struct crew *crew)
{
	c->connect_start_ns = c->barrier_ns = clock_now_ns();
	c->step->started = true;
	c->upto = c->cfg->phased ? STAGE_TCP_CONNECT : last_stage(c);
	current_order(c, crew, ORDER_CONNECT);
}

bool current_next_stage(struct current *c, struct crew *crew, bool go_on)
{
	uint64_t now = clock_now_ns();

	if (c->cfg->phased)
		c->step->phase_ns[c->upto] = now - c->barrier_ns;
	if (c->upto == last_stage(c) || !go_on)
		return false;
	c->upto++;
	c->barrier_ns = now;
	current_order(c, crew, ORDER_STAGE);
	return true;
}

void current_connected(struct current *c, const struct crew *crew)
{
	c->step->connect_wall_ns = clock_now_ns() - c->connect_start_ns;
	c->step->connected_peak = c->step->connected_held = crew_live(crew);
}

/* --- measuring --- */

static void take_moment(const struct crew *crew, struct step_moment *m)
{
	m->now_ns = clock_now_ns();
	if (res_usage_self(&m->generator) || res_machine_cpu(&m->machine))
		log_warn("cannot read this process's resources");
	m->net_bytes = CREW_SUM(crew, bytes_sent) + CREW_SUM(crew, bytes_received);
	for (uint32_t i = 0; i < crew->n; i++)
		m->worker_cpu_ns[i] = counter_get(&worker_stats(crew->workers[i])->cpu_ns);
}

void current_measure(struct current *c, struct crew *crew)
{
	current_order(c, crew, ORDER_MEASURE);
	take_moment(crew, &c->step->begin);
	c->last_cycles = 0;
	c->last_cycle_ns = c->last_interval_ns = clock_now_ns();
	c->last_messages = CREW_SUM(crew, messages_measured);
	hist_reset(c->before);
}

uint64_t current_interval_ns(const struct current *c)
{
	uint64_t ns = c->cfg->cycles ? 5 * NS_PER_S : c->cfg->duration_ns / 20;

	return ns < 250 * NS_PER_MS ? 250 * NS_PER_MS : ns;
}

static void end_interval(struct current *c, const struct crew *crew)
{
	struct step *s = c->step;
	uint64_t now = clock_now_ns(), messages = CREW_SUM(crew, messages_measured);
	double span_s = (double)(now - c->last_interval_ns) / 1e9;
	double rate = (double)(messages - c->last_messages) / span_s, p99 = 0;

	crew_response(crew, c->now);
	hist_diff(c->interval, c->now, c->before);
	hist_reset(c->before);
	hist_add(c->before, c->now);
	if (hist_supports(c->interval, 99))
		p99 = (double)hist_percentile(c->interval, 99);
	if (s->n_intervals < STEP_INTERVALS_MAX) {
		s->intervals[s->n_intervals].t_s = (double)(now - s->begin.now_ns) / 1e9;
		s->intervals[s->n_intervals].messages_per_s = rate;
		s->intervals[s->n_intervals++].p99_ns = p99;
	}
	results_event(c->results, "interval", json_pack("{s:i, s:f, s:o, s:I}", "clients", s->target,
		"messages_per_s", rate, "p99_ns", p99 > 0 ? json_real(p99) : json_null(), "connected",
		(json_int_t)CREW_SUM(crew, live)));
	c->last_interval_ns = now;
	c->last_messages = messages;
}

void current_interval(struct current *c, const struct crew *crew)
{
	if (clock_now_ns() - c->last_interval_ns >= current_interval_ns(c))
		end_interval(c, crew);
}

void current_measured(struct current *c, const struct crew *crew)
{
	if (!c->step->begin.now_ns)
		return;
	/* A last interval of less than half the length is dropped: it would weigh as much as a whole one. */
	if (clock_now_ns() - c->last_interval_ns >= current_interval_ns(c) / 2)
		end_interval(c, crew);
	take_moment(crew, &c->step->end);
}

bool current_cycles_are_done(struct current *c, const struct crew *crew)
{
	uint64_t cycles = CREW_SUM(crew, cycles), now = clock_now_ns();

	if (cycles != c->last_cycles) {
		c->last_cycles = cycles;
		c->last_cycle_ns = now;
	}
	return c->cfg->cycles && (cycles >= c->cfg->cycles || now - c->last_cycle_ns > CYCLE_PATIENCE_NS);
}

void current_sample(struct current *c, const struct crew *crew, const char *phase, bool changing)
{
	uint64_t now = clock_now_ns();

	/* Until the step's clients connect, the workers still publish the figures of the step before. */
	if (!c->step || !c->step->started || (!changing && now - c->last_sample_ns < NS_PER_S))
		return;
	c->last_sample_ns = now;
	results_event(c->results, "sample", json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "clients", c->step->target,
		"phase", phase, "connected", (json_int_t)CREW_SUM(crew, live), "connecting",
		(json_int_t)CREW_SUM(crew, connecting), "failed",
		(json_int_t)(CREW_SUM(crew, failed) + CREW_SUM(crew, dropped)), "connects",
		(json_int_t)crew_connects(crew), "messages", (json_int_t)CREW_SUM(crew, messages)));
}
