/* The operations of a worker's clients: how many may begin, when they did, when they ended. A closed loop: each
 * active client keeps `inflight` of each stream under way, and begins others at the end of the batch of
 * completions in which some ended, so that one doorbell serves them all. The open loop is in open_loop.c.
 */
#include <errno.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/hist/hist.h"
#include "common/wire/msg.h"
#include "loadgen/traffic/lanes.h"
#include "loadgen/traffic/payload.h"
#include "loadgen/traffic/rma.h"
#include "loadgen/traffic/trace.h"
#include "loadgen/traffic/worker_internal.h"

#define LATE_NS NS_PER_MS	/* behind schedule by more: late */
#define START_CHUNK 256		/* clients that start sending in one turn of the loop */

uint64_t traffic_sequence(const struct worker *w, const struct wclient *wc, uint64_t number)
{
	uint64_t id = (uint64_t)w->cfg.index << 20 | (uint64_t)(wc - w->clients);

	return id << 32 | (number & UINT32_MAX);
}

uint32_t traffic_pattern(const struct worker *w, const struct wclient *wc, uint64_t number)
{
	uint64_t id = (uint64_t)(wc - w->clients) * w->cfg.n_workers + w->cfg.index;

	return payload_shift(id, number);
}

uint32_t traffic_payload_bytes(const struct worker *w, uint32_t offset)
{
	uint32_t around = offset + (w->cfg.cfg->message_auth ? MSG_TAG_BYTES : 0);

	return w->bytes > around ? (uint32_t)w->bytes - around : 0;
}

uint32_t traffic_buffer(struct worker *w, struct wclient *wc)
{
	uint32_t buf = ep_buf_get(w->ep);

	if (buf == EP_NO_BUF)
		client_fail(wc->conn, FAIL_ERRNO, ENOBUFS);
	return buf;
}

void traffic_fill(struct worker *w, const struct wclient *wc, uint64_t number, uint8_t *message, uint32_t offset)
{
	if (w->cfg.cfg->verify)
		payload_fill(w->payload, traffic_pattern(w, wc, number), message + offset,
			     traffic_payload_bytes(w, offset));
}

uint32_t traffic_message(struct worker *w, struct wclient *wc, uint64_t number, uint32_t offset)
{
	uint32_t buf = traffic_buffer(w, wc);

	if (buf != EP_NO_BUF)
		traffic_fill(w, wc, number, ep_buf(w->ep, buf), offset);
	return buf;
}

void traffic_checked(struct worker *w, bool right)
{
	counter_add(&w->stats.checked, 1);
	if (!right)
		counter_add(&w->stats.corrupt, 1);
}

void traffic_check(struct worker *w, const struct wclient *wc, uint64_t number, const uint8_t *data, uint32_t bytes)
{
	if (w->cfg.cfg->verify)
		traffic_checked(w, payload_is(w->payload, traffic_pattern(w, wc, number), data, bytes));
}

/* All completions of a batch were there when it was polled. */
static uint64_t now_ns(struct worker *w)
{
	uint64_t batch = ep_batch(w->ep);

	if (!ep_is_held(w->ep))
		return clock_now_ns();
	if (w->batch != batch) {
		w->batch = batch;
		w->batch_ns = clock_now_ns();
	}
	return w->batch_ns;
}

void traffic_begin(struct worker *w, struct wclient *wc, unsigned stream)
{
	struct stream *s = &wc->streams[stream];
	struct stream_times *t = &s->times[s->begun++ % w->cfg.cfg->inflight];

	t->sent_ns = w->begin_ns;
	/* The open loop has noted when it was due. */
	if (!w->schedule)
		t->due_ns = w->begin_ns;
	w->in_flight++;
}

/* In the closed loop an operation is due when the one before it ended, though others may be begun first. */
static void begin_more(struct worker *w, struct wclient *wc, uint64_t due_ns)
{
	uint32_t inflight = (uint32_t)w->cfg.cfg->inflight;

	if (w->schedule) {
		open_loop_begin(w, wc);
		return;
	}
	w->begin_ns = due_ns;
	for (unsigned i = 0; i < w->workload->streams && wc->state == WCLIENT_LIVE; i++) {
		uint32_t under_way = (uint32_t)(wc->streams[i].begun - wc->streams[i].done);

		if (under_way < inflight)
			w->workload->start(w, wc, i, inflight - under_way);
	}
}

/* At the end of a batch of completions. */
static void refill(struct ep_deferred *d)
{
	struct wclient *wc = (struct wclient *)((char *)d - offsetof(struct wclient, refill));
	struct worker *w;

	if (wc->state != WCLIENT_LIVE)
		return;
	w = rail_worker(client_arg(wc->conn));
	if (w->mode == MODE_TRAFFIC)
		begin_more(w, wc, now_ns(w));
}

bool traffic_is_idle(const struct wclient *wc)
{
	return wc->streams[0].begun == wc->streams[0].done && wc->streams[1].begun == wc->streams[1].done;
}

void traffic_reset(struct worker *w, struct wclient *wc)
{
	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++) {
		struct stream *s = &wc->streams[i];

		w->in_flight -= s->begun - s->done;
		s->begun = s->done = 0;
	}
	wc->refill.run = refill;
	lanes_reset(w, wc);
	rma_reset(w, wc);
}

void traffic_maybe_stopped(struct worker *w)
{
	if (w->current.what == ORDER_STOP && w->in_flight == 0 && counter_get(&w->stats.away) == 0)
		worker_fulfil(w);
}

static void record_open_loop(struct worker *w, const struct stream_times *t, uint64_t now)
{
	hist_record(w->stats.service, now - t->sent_ns);
	hist_record(w->stats.lag, t->sent_ns - t->due_ns);
	if (t->sent_ns - t->due_ns > LATE_NS)
		counter_add(&w->stats.late, 1);
}

static void record(struct worker *w, uint32_t client, unsigned stream, uint32_t n, uint64_t now)
{
	struct stream *s = &w->clients[client].streams[stream];

	for (uint64_t i = s->done; i < s->done + n; i++) {
		const struct stream_times *t = &s->times[i % w->cfg.cfg->inflight];

		hist_record(w->stats.response, now - t->due_ns);
		if (w->schedule)
			record_open_loop(w, t, now);
		if (w->trace)
			trace_add(w->trace, &(struct trace_record){ .due_ns = t->due_ns, .sent_ns = t->sent_ns, .end_ns = now,
				  .client = client, .operation = (uint32_t)i });
	}
	s->measured += n;
	counter_add(&w->stats.messages_measured, n);
	counter_add(&w->stats.stream_measured[stream], n);
}

void traffic_end(struct worker *w, struct wclient *wc, unsigned stream, uint32_t n)
{
	struct stream *s = &wc->streams[stream];

	if (w->measuring)
		record(w, (uint32_t)(wc - w->clients), stream, n, now_ns(w));
	counter_add(&w->stats.messages, n);
	s->done += n;
	w->in_flight -= n;
	if (wc->state == WCLIENT_LEAVING)
		churn_leave(wc);
	else if (w->mode != MODE_TRAFFIC)
		traffic_maybe_stopped(w);
	else if (ep_is_held(w->ep))
		ep_defer(w->ep, &wc->refill);
	else
		begin_more(w, wc, clock_now_ns());
}

/* --- what comes --- */

void traffic_on_reply(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	struct worker *w = rail_worker(arg);

	if (w->workload->on_reply)
		w->workload->on_reply(w, client_user(c), sequence, data, bytes);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

void traffic_on_credit(void *arg, struct client_conn *c, uint32_t credits, uint64_t sequence)
{
	const struct rail *rail = arg;
	struct worker *w = rail->worker;

	if (w->workload->on_credit)
		w->workload->on_credit(w, client_user(c), rail->index, credits, sequence);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

void traffic_on_ping(void *arg, struct client_conn *c, uint32_t number, const uint8_t *data, uint32_t bytes)
{
	struct worker *w = rail_worker(arg);

	if (w->workload->on_ping)
		w->workload->on_ping(w, client_user(c), number, data, bytes);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

void traffic_on_pushed(void *arg, struct client_conn *c, uint64_t sequence)
{
	const struct rail *rail = arg;
	struct worker *w = rail->worker;

	if (w->workload->on_pushed)
		w->workload->on_pushed(w, client_user(c), rail->index, sequence);
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

void traffic_on_rma(void *arg, struct client_conn *c, uint32_t n)
{
	const struct rail *rail = arg;

	rail->worker->workload->on_rma(rail->worker, client_user(c), rail->index, n);
}

/* --- orders --- */

void traffic_start_client(struct worker *w, struct wclient *wc)
{
	if (w->workload->idle || (uint32_t)(wc - w->clients) >= w->active || wc->state != WCLIENT_LIVE)
		return;
	ep_hold(w->ep);
	if (w->schedule)
		open_loop_start_client(w, wc);
	else
		begin_more(w, wc, clock_now_ns());
	ep_unhold(w->ep);
}

void traffic_start_some(struct worker *w)
{
	uint32_t end = w->next_start + START_CHUNK;

	for (; w->next_start < w->target && w->next_start < end; w->next_start++)
		traffic_start_client(w, &w->clients[w->next_start]);
	if (w->next_start < w->target) {
		worker_run_chunks(w);
		return;
	}
	churn_start(w);
	worker_fulfil(w);
}

/* Operations of each active client that is held, for fairness between them. */
static void publish_fairness(struct worker *w)
{
	struct worker_stats *st = &w->stats;
	uint64_t n = 0, sum = 0, min = UINT64_MAX, max = 0;
	double squares = 0;

	for (uint32_t i = 0; i < w->active; i++) {
		uint64_t x = w->clients[i].streams[0].measured + w->clients[i].streams[1].measured;

		if (w->clients[i].state != WCLIENT_LIVE)
			continue;
		n++;
		sum += x;
		squares += (double)x * (double)x;
		min = x < min ? x : min;
		max = x > max ? x : max;
	}
	counter_set(&st->fair_n, n);
	counter_set(&st->fair_sum, sum);
	atomic_store(&st->fair_squares, squares);
	counter_set(&st->fair_min, n ? min : 0);
	counter_set(&st->fair_max, max);
}

void traffic_stop(struct worker *w)
{
	if (w->measuring) {
		counter_set(&w->stats.measure_end_ns, clock_now_ns());
		publish_fairness(w);
		w->cfg.on_progress(w->cfg.arg);
	}
	w->measuring = false;
	w->mode = MODE_STOPPING;
	churn_stop(w);
	traffic_maybe_stopped(w);
}
