/* The echo workload of a worker: a closed loop. Each active client keeps `inflight` messages under way and sends
 * the next one when a reply comes. Replies come in the order of the messages (one reliable connection), so a
 * ring of send times per client is enough.
 */
#include <errno.h>

#include "common/clock.h"
#include "common/ep.h"
#include "common/hist.h"
#include "common/msg.h"
#include "loadgen/payload.h"
#include "loadgen/worker_internal.h"

#define START_CHUNK 256		/* clients that start sending in one turn of the loop */

static uint64_t sequence_of(const struct worker *w, const struct wclient *wc, uint64_t n)
{
	uint64_t id = (uint64_t)w->cfg.index << 20 | (uint64_t)(wc - w->clients);

	return id << 32 | (n & UINT32_MAX);
}

static void send_one(struct worker *w, struct wclient *wc)
{
	uint32_t buf = ep_buf_get(w->ctx->ep);
	uint32_t bytes = (uint32_t)w->cfg.cfg->message_bytes;
	uint64_t n = wc->next_send;

	if (buf == EP_NO_BUF) {
		client_fail(wc->conn, FAIL_ERRNO, ENOBUFS);
		return;
	}
	if (w->cfg.cfg->verify)
		payload_fill(w->payload, n, ep_buf(w->ctx->ep, buf) + MSG_HEADER_BYTES,
			     bytes - MSG_HEADER_BYTES);
	wc->next_send++;
	w->in_flight++;
	wc->sent_ns[n % w->cfg.cfg->inflight] = clock_now_ns();
	client_send(wc->conn, buf, bytes, sequence_of(w, wc, n));
}

void traffic_maybe_stopped(struct worker *w)
{
	if (w->current.what == ORDER_STOP && w->in_flight == 0 && counter_get(&w->stats.away) == 0)
		worker_fulfil(w);
}

void traffic_on_message(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data,
			uint32_t bytes)
{
	struct worker *w = arg;
	struct wclient *wc = c->user;
	uint64_t n = wc->next_reply, now = clock_now_ns();

	if (sequence != sequence_of(w, wc, n) || bytes != w->cfg.cfg->message_bytes ||
	    (w->cfg.cfg->verify && !payload_is(w->payload, n, data + MSG_HEADER_BYTES,
					       bytes - MSG_HEADER_BYTES))) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_PAYLOAD);
		return;
	}
	wc->next_reply++;
	w->in_flight--;
	counter_add(&w->stats.messages, 1);
	if (w->measuring) {
		wc->measured++;
		counter_add(&w->stats.messages_measured, 1);
		hist_record(w->stats.response, now - wc->sent_ns[n % w->cfg.cfg->inflight]);
	}
	if (wc->state == WCLIENT_LEAVING)
		churn_leave(wc);
	else if (w->mode == MODE_TRAFFIC)
		send_one(w, wc);
	else
		traffic_maybe_stopped(w);
}

void traffic_start_client(struct worker *w, struct wclient *wc)
{
	if (w->cfg.cfg->workload != WORKLOAD_ECHO || (uint32_t)(wc - w->clients) >= w->active)
		return;
	for (uint64_t k = 0; wc->state == WCLIENT_LIVE && k < w->cfg.cfg->inflight; k++)
		send_one(w, wc);
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

/* Replies of each active client that is held, for fairness between them. */
static void publish_fairness(struct worker *w)
{
	struct worker_stats *st = &w->stats;
	uint64_t n = 0, sum = 0, min = UINT64_MAX, max = 0;
	double squares = 0;

	for (uint32_t i = 0; i < w->active; i++) {
		uint64_t x = w->clients[i].measured;

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
	}
	w->measuring = false;
	w->mode = MODE_STOPPING;
	churn_stop(w);
	traffic_maybe_stopped(w);
}
