/* Orders, questions and intervals of a run. See ramp_util.h. */
#include "loadgen/ramp/ramp_util.h"

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/json_at.h"

static uint32_t share_of(uint32_t total, uint32_t n, uint32_t i)
{
	return total / n + (i < total % n);
}

void ramp_order_all(struct ramp *r, enum worker_order order)
{
	uint32_t n = r->n_workers, target = r->step ? r->step->target : 0;
	uint32_t active = r->cfg->wl->idle ? 0 :
			  r->cfg->active && r->cfg->active < target ? (uint32_t)r->cfg->active : target;

	for (uint32_t i = 0; i < n; i++) {
		struct worker_task task = { .clients = share_of(target, n, i), .active = share_of(active, n, i),
					    .active_of_all = active, .of_all = target, .bytes = r->step ? r->step->bytes : 0, .upto = r->upto };

		worker_give(r->workers[i], order, &task);
	}
}

bool ramp_all_done(const struct ramp *r)
{
	for (uint32_t i = 0; i < r->n_workers; i++)
		if (!worker_is_done(r->workers[i]))
			return false;
	return true;
}

uint64_t ramp_sum(const struct ramp *r, size_t offset)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < r->n_workers; i++)
		total += counter_get((const counter *)((const char *)worker_stats(r->workers[i]) + offset));
	return total;
}

void ramp_send_next_question(struct ramp *r)
{
	static const enum control_what order[] = { CONTROL_INFO, CONTROL_MARK, CONTROL_STATS };

	for (size_t i = 0; i < 3 && r->control && !control_is_busy(r->control); i++) {
		if (!r->report_wanted[order[i]])
			continue;
		r->report_wanted[order[i]] = false;
		r->asked = order[i];
		r->asked_in = r->phase_number;
		r->asked_phase = r->phase;
		if (!control_request(r->control, order[i]))
			r->report_wanted[order[i]] = true;
	}
}

void ramp_ask(struct ramp *r, enum control_what what)
{
	r->report_wanted[what] = true;
	ramp_send_next_question(r);
}

bool ramp_is_restored(const struct ramp *r, const json_t *now)
{
	static const char *const gauges[] = { "clients.connected", "clients.handshakes", "clients.closing",
		"pools.sessions", "pools.regions_in_use", "pools.admitted", "pools.qp.in_use",
		"pools.buffers.posted", "pools.buffers.free" };
	double resting = json_number_at(now, "pools.qp.quarantined");
	double held = json_number_at(now, "pools.admitted");

	/* A probe is to find the server as the one before it did. */
	if (r->cfg->find_capacity && resting > 0)
		return false;

	/* Clients that came and went made the pool grow; it is to shrink again. */
	if (r->cfg->churn_per_s &&
	    json_number_at(now, "pools.qp.exist") != json_number_at(r->baseline, "pools.qp.exist"))
		return false;
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		if (json_number_at(now, gauges[i]) != json_number_at(r->baseline, gauges[i]))
			return false;
	return json_number_at(now, "pools.psns_in_use") == 2 * (resting + held);
}

/* Connections made in this step, of clients that came back too. */
static uint64_t connects(const struct ramp *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_workers; i++)
		for (int k = 0; k < HANDSHAKE_N; k++)
			n += hist_count(worker_stats(r->workers[i])->total[k]);
	return n;
}

void ramp_sample(struct ramp *r)
{
	bool changing = r->phase == RAMP_CONNECT || r->phase == RAMP_DISCONNECT;
	uint64_t now = clock_now_ns();

	/* Before a step's clients come the workers still have the figures of the last. */
	if (!r->step || !r->step->started || (!changing && now - r->last_sample_ns < NS_PER_S))
		return;
	r->last_sample_ns = now;
	results_event(r->results, "sample", json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "clients", r->step->target,
		"phase", ramp_phase_names[r->phase], "connected", (json_int_t)RAMP_SUM(r, live), "connecting",
		(json_int_t)RAMP_SUM(r, connecting), "failed", (json_int_t)(RAMP_SUM(r, failed) + RAMP_SUM(r, dropped)),
		"connects", (json_int_t)connects(r), "messages", (json_int_t)RAMP_SUM(r, messages)));
}

static void snapshot(const struct ramp *r, struct hist *out)
{
	hist_reset(out);
	for (uint32_t i = 0; i < r->n_workers; i++)
		hist_add(out, worker_stats(r->workers[i])->response);
}

void ramp_begin_intervals(struct ramp *r)
{
	hist_reset(r->before);
	r->last_interval_ns = clock_now_ns();
	r->last_messages = RAMP_SUM(r, messages_measured);
}

void ramp_end_interval(struct ramp *r)
{
	struct step *s = r->step;
	uint64_t now = clock_now_ns(), messages = RAMP_SUM(r, messages_measured);
	double span_s = (double)(now - r->last_interval_ns) / 1e9;
	double rate = (double)(messages - r->last_messages) / span_s, p99 = 0;

	snapshot(r, r->now);
	hist_diff(r->interval, r->now, r->before);
	hist_reset(r->before);
	hist_add(r->before, r->now);
	if (hist_supports(r->interval, 99))
		p99 = (double)hist_percentile(r->interval, 99);
	if (s->n_intervals < STEP_INTERVALS_MAX) {
		s->intervals[s->n_intervals].t_s = (double)(now - s->begin.now_ns) / 1e9;
		s->intervals[s->n_intervals].messages_per_s = rate;
		s->intervals[s->n_intervals++].p99_ns = p99;
	}
	results_event(r->results, "interval", json_pack("{s:i, s:f, s:o, s:I}", "clients", s->target,
		"messages_per_s", rate, "p99_ns", p99 > 0 ? json_real(p99) : json_null(), "connected",
		(json_int_t)RAMP_SUM(r, live)));
	r->last_interval_ns = now;
	r->last_messages = messages;
}
