/* SPDX-License-Identifier: BSD-2-Clause */
/* See traffic.h. */
#include "loadgen/traffic/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>

#include "client/client.h"
#include "common/base/clock.h"
#include "common/base/hot.h"
#include "common/hist/hist.h"
#include "loadgen/traffic/open_loop.h"
#include "loadgen/traffic/payload.h"
#include "loadgen/traffic/trace.h"

#define LATE_NS NS_PER_MS	/* an operation sent more than this after it was due counts as late */

uint32_t traffic_pattern(const struct traffic *t, const struct wclient *wc, uint64_t number)
{
	uint64_t id = (uint64_t)wc->index * t->n_workers + t->worker;

	return payload_shift(id, number);
}

void traffic_checked(struct traffic *t, bool right)
{
	counter_add(&t->stats->checked, 1);
	if (!right)
		counter_add(&t->stats->corrupt, 1);
}

uint64_t traffic_now_ns(struct traffic *t)
{
	uint64_t batch = ep_batch(t->ep);

	if (!ep_is_held(t->ep))
		return clock_now_ns();
	if (t->batch != batch) {
		t->batch = batch;
		t->batch_ns = clock_now_ns();
	}
	return t->batch_ns;
}

void traffic_begin(struct traffic *t, struct wclient *wc, unsigned stream)
{
	struct stream *s = &wc->streams[stream];
	struct stream_times *at = traffic_times(t, s, s->begun++);

	at->sent_ns = t->begin_ns;
	/* The open loop has already recorded when the operation was due. */
	if (!t->open_loop)
		at->due_ns = t->begin_ns;
	t->in_flight++;
}

/* Lets the active clients in turn begin an operation each, until the budget is in flight or no client may begin one. */
static void begin_in_turn(struct traffic *t)
{
	uint32_t passed = 0;

	while (t->in_flight < t->budget && passed < t->active) {
		struct wclient *wc = &t->clients[t->turn];
		const struct stream *s = &wc->streams[0];
		uint64_t before = t->in_flight;

		t->turn = t->turn + 1 < t->active ? t->turn + 1 : 0;
		if (wc->state == WCLIENT_LIVE && s->begun - s->done < t->cfg->inflight && s->begun < t->allowed)
			t->workload->start(t, wc, 0, 1);
		passed = t->in_flight > before ? 0 : passed + 1;
	}
}

/* In the closed loop an operation is due when the one it replaces ended, even if other operations begin before it. */
static void begin_more(struct traffic *t, struct wclient *wc, uint64_t due_ns)
{
	uint64_t inflight = t->cfg->inflight;

	if (t->open_loop) {
		open_loop_begin(t->open_loop, wc);
		return;
	}
	t->begin_ns = due_ns;
	if (t->budget) {
		begin_in_turn(t);
		return;
	}
	for (unsigned i = 0; i < t->workload->streams && wc->state == WCLIENT_LIVE; i++) {
		const struct stream *s = &wc->streams[i];
		uint64_t room = inflight - (s->begun - s->done), n = MIN(room, t->allowed - s->begun);

		if (n)
			t->workload->start(t, wc, i, (uint32_t)n);
	}
}

/* Called at the end of a batch of completions. */
static void refill(struct ep_deferred *d)
{
	struct wclient *wc = (struct wclient *)((char *)d - offsetof(struct wclient, refill));
	struct traffic *t = wc->traffic;

	if (t->on && (t->budget || wc->state == WCLIENT_LIVE))
		begin_more(t, wc, traffic_now_ns(t));
}

/* Begins what may begin now: at the end of the present batch of completions, if there is one. */
static void begin_next(struct traffic *t, struct wclient *wc)
{
	if (ep_is_held(t->ep))
		ep_defer(t->ep, &wc->refill);
	else
		begin_more(t, wc, clock_now_ns());
}

/* Takes back the operations that were in flight on a lost connection: they will begin again with the same numbers, and
 * in the open loop with the same due times. */
static void take_back(struct traffic *t, struct wclient *wc, struct stream *s)
{
	if (t->on)
		counter_add(&t->stats->repeated, s->begun - s->done);
	if (t->open_loop && s->begun > s->done)
		wc->due_ns = (double)traffic_times(t, s, s->done)->due_ns;
	s->begun = s->done;
}

void traffic_reset(struct wclient *wc)
{
	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++) {
		struct stream *s = &wc->streams[i];

		wc->traffic->in_flight -= s->begun - s->done;
		if (wc->backoff.lost_ns)
			take_back(wc->traffic, wc, s);
		else
			s->begun = s->done = 0;
	}
	if (wc->traffic->on && wc->traffic->budget)
		begin_next(wc->traffic, wc);
}

static void record_open_loop(struct traffic *t, const struct stream_times *at, uint64_t now)
{
	hist_record(t->stats->hists.service, now - at->sent_ns);
	hist_record(t->stats->hists.lag, at->sent_ns - at->due_ns);
	if (at->sent_ns - at->due_ns > LATE_NS)
		counter_add(&t->stats->late, 1);
}

static void record_kind(struct traffic *t, unsigned stream, uint64_t number, uint64_t response_ns)
{
	const struct workload *wl = t->workload;
	unsigned kind = wl->kind_of ? wl->kind_of(t->cfg, number) : stream;

	hist_record(t->stats->hists.kind_response[kind], response_ns);
	counter_add(&t->stats->kind_measured[kind], 1);
}

/* Records head-of-line blocking: a stream carries its operations out in order, so each waits for the one before. */
static void record_wait(struct worker_stream *to, struct stream *s, uint64_t due_ns, uint64_t now)
{
	counter_add(&to->took_ns, now - due_ns);
	if (s->last_end_ns > due_ns)
		counter_add(&to->waited_ns, s->last_end_ns - due_ns);
	s->last_end_ns = now;
}

/* Records figures that only some runs need. Not inlined, so that other runs do not save registers for it. */
static __attribute__((noinline)) void record_more(struct traffic *t, const struct wclient *wc, unsigned stream,
						  uint64_t number, const struct stream_times *at, uint64_t now)
{
	if (t->workload->kind_names[0])
		record_kind(t, stream, number, now - at->due_ns);
	if (t->open_loop)
		record_open_loop(t, at, now);
	if (t->trace)
		trace_add(t->trace, &(struct trace_record){ .due_ns = at->due_ns, .sent_ns = at->sent_ns, .end_ns = now,
			  .client = wc->index, .operation = (uint32_t)number });
}

static HOT_INLINE void record(struct traffic *t, const struct wclient *wc, unsigned stream, struct stream *s,
			      uint64_t number, uint64_t now)
{
	const struct stream_times *at = traffic_times(t, s, number);

	hist_record(t->stats->hists.response, now - at->due_ns);
	record_wait(&t->stats->streams[stream], s, at->due_ns, now);
	if (t->records_more)
		record_more(t, wc, stream, number, at, now);
}

static __attribute__((noinline)) void record_several(struct traffic *t, const struct wclient *wc, unsigned stream,
						     struct stream *s, uint32_t n, uint64_t now)
{
	for (uint64_t i = s->done; i < s->done + n; i++)
		record(t, wc, stream, s, i, now);
}

/* An operation that ends alone is recorded without a loop, whose variables would not fit into the registers. */
static void record_all(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n, uint64_t now)
{
	struct stream *s = &wc->streams[stream];

	if (n == 1)
		record(t, wc, stream, s, s->done, now);
	else
		record_several(t, wc, stream, s, n, now);
	t->last_end_ns = now;
	s->measured += n;
	counter_add(&t->stats->messages_measured, n);
}

void traffic_end(struct traffic *t, struct wclient *wc, unsigned stream, uint32_t n)
{
	struct stream *s = &wc->streams[stream];

	if (t->measuring)
		record_all(t, wc, stream, n, traffic_now_ns(t));
	counter_add(&t->stats->messages, n);
	s->done += n;
	t->in_flight -= n;
	if (wc->state == WCLIENT_LEAVING && traffic_is_idle(wc))
		client_close(wc->conn);
	if (t->on && (t->budget || wc->state != WCLIENT_LEAVING))
		begin_next(t, wc);
}

void traffic_start_client(struct wclient *wc)
{
	struct traffic *t = wc->traffic;

	if (t->workload->idle || wc->index >= t->active || wc->state != WCLIENT_LIVE)
		return;
	ep_hold(t->ep);
	if (t->open_loop)
		open_loop_start_client(t->open_loop, wc);
	else
		begin_more(t, wc, clock_now_ns());
	ep_unhold(t->ep);
}

void traffic_resume_client(struct wclient *wc)
{
	struct traffic *t = wc->traffic;

	if (t->workload->idle || wc->index >= t->active || wc->state != WCLIENT_LIVE)
		return;
	ep_hold(t->ep);
	/* The connection may have been lost before the client's schedule began. */
	if (t->open_loop && !wc->due_ns)
		open_loop_start_client(t->open_loop, wc);
	else
		begin_more(t, wc, clock_now_ns());
	ep_unhold(t->ep);
}

/* Publishes the distribution of measured operations over the live active clients, for streams `first` to `last`. */
static void publish_fairness(struct traffic *t, unsigned first, unsigned last, struct worker_fairness *out)
{
	struct fairness_sum f = { 0 };

	for (uint32_t i = 0; i < t->active; i++) {
		uint64_t x = 0;

		if (t->clients[i].state != WCLIENT_LIVE)
			continue;
		for (unsigned k = first; k <= last; k++)
			x += t->clients[i].streams[k].measured;
		fairness_add(&f, x);
	}
	fairness_publish(&f, out);
}

/* A worker's part of --total-inflight, in proportion to its active clients; 0: no limit. The parts are differences of
 * rounded running sums, so that they add up to the total, unless a part has to be raised to 1. */
static uint64_t budget_of(uint64_t total, uint32_t before, uint32_t active, uint32_t of_all)
{
	return total && active ? MAX(total * (before + active) / of_all - total * before / of_all, 1) : 0;
}

void traffic_begin_step(struct traffic *t, uint64_t bytes, uint32_t active, uint32_t active_before,
			uint32_t active_of_all, uint64_t rate)
{
	t->bytes = bytes;
	t->rate = rate;
	t->active = active;
	t->active_of_all = active_of_all;
	t->budget = budget_of(t->cfg->total_inflight, active_before, active, active_of_all);
	t->turn = 0;
	t->on = t->measuring = false;
	t->allowed = t->cfg->iterations ? t->cfg->warmup_iterations : UINT64_MAX;
	t->last_end_ns = 0;
	if (t->open_loop)
		open_loop_reset(t->open_loop);
	if (t->trace)
		trace_clear(t->trace);
}

/* Sum over all operations in flight of the time since they were due. With --iterations some may be due after `now`. */
static uint64_t time_in_flight_ns(const struct traffic *t, uint64_t now)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->n_clients; i++)
		for (unsigned k = 0; k < WORKLOAD_STREAMS_MAX; k++) {
			const struct stream *s = &t->clients[i].streams[k];

			for (uint64_t o = s->done; o < s->begun; o++)
				sum += now - MIN(now, traffic_times(t, s, o)->due_ns);
		}
	return sum;
}

void traffic_measure(struct traffic *t)
{
	uint64_t now = clock_now_ns();

	for (uint32_t i = 0; i < t->n_clients; i++)
		for (unsigned k = 0; k < WORKLOAD_STREAMS_MAX; k++)
			t->clients[i].streams[k].measured = t->clients[i].streams[k].last_end_ns = 0;
	if (t->cfg->iterations)
		t->allowed = t->cfg->warmup_iterations + t->cfg->iterations;
	counter_set(&t->stats->carried_in_ns, time_in_flight_ns(t, now));
	counter_set(&t->stats->measure_start_ns, now);
	t->records_more = t->open_loop || t->trace || t->workload->kind_names[0];
	t->measuring = true;
}

bool traffic_is_through(const struct traffic *t)
{
	return t->in_flight == 0 && (!t->open_loop || open_loop_is_empty(t->open_loop));
}

/* With --iterations measuring ends with the last operation, not when the main thread notices that it has ended. */
static uint64_t measure_end_ns(const struct traffic *t)
{
	return t->cfg->iterations && t->last_end_ns ? t->last_end_ns : clock_now_ns();
}

void traffic_stop(struct traffic *t)
{
	if (t->measuring) {
		uint64_t end_ns = measure_end_ns(t);

		counter_set(&t->stats->carried_out_ns, time_in_flight_ns(t, end_ns));
		counter_set(&t->stats->measure_end_ns, end_ns);
		publish_fairness(t, 0, WORKLOAD_STREAMS_MAX - 1, &t->stats->fair);
		for (unsigned k = 0; k < WORKLOAD_STREAMS_MAX; k++)
			publish_fairness(t, k, k, &t->stats->streams[k].fair);
	}
	t->on = t->measuring = false;
}

static void init_client(struct traffic *t, uint32_t index)
{
	uint64_t ring = t->ring_mask + 1, slots = ring * t->workload->streams;
	struct wclient *wc = &t->clients[index];

	wc->traffic = t;
	wc->index = index;
	wc->refill.run = refill;
	for (unsigned k = 0; k < t->workload->streams; k++)
		wc->streams[k].times = &t->rings[index * slots + k * ring];
}

int traffic_init(struct traffic *t)
{
	/* A ring of a power of two: a division by --inflight would cost almost as much as the rest of an operation. */
	while (t->ring_mask + 1 < t->cfg->inflight)
		t->ring_mask = 2 * t->ring_mask + 1;
	t->clients = calloc(t->n_clients, sizeof(*t->clients));
	t->rings = calloc(t->n_clients * (t->ring_mask + 1) * t->workload->streams + 1, sizeof(*t->rings));
	if (!t->clients || !t->rings)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_clients; i++)
		init_client(t, i);
	return t->cfg->trace ? trace_new(t->cfg->trace_max, &t->trace) : 0;
}

void traffic_release(struct traffic *t)
{
	trace_free(t->trace);
	free(t->rings);
	free(t->clients);
}
