/* SPDX-License-Identifier: BSD-2-Clause */
/* Gauges of a shard. See gauges.h. */
#include "server/shard/gauges.h"

#include "common/rdma/ep.h"
#include "common/rdma/qp_pool.h"
#include "common/rdma/region.h"
#include "server/tables/session.h"
#include "server/shard/shard_data.h"

/* Clients from the TCP accept to GRANT or REFUSE. */
static uint32_t handshakes(const struct shard *s)
{
	return s->counts[CONN_ST_TLS_ACCEPT] + s->counts[CONN_ST_HELLO] + s->counts[CONN_ST_GRANT] +
	       s->counts[CONN_ST_REFUSE];
}

void gauges_publish(struct shard *s)
{
	struct stats *st = &s->stats;
	struct ep *ep = s->ep ? s->ep : s->sock_ep;
	struct qp_pool_counts q = { 0 };
	struct ep_counts e, beside = { 0 };

	if (s->qps)
		qp_pool_get_counts(s->qps, &q);
	ep_get_counts(ep, &e);
	if (s->ep && s->sock_ep)
		ep_get_counts(s->sock_ep, &beside);
	counter_set(&st->handshakes, handshakes(s));
	counter_set(&st->sessions, session_count(s->sessions));
	counter_set(&st->connected, s->counts[CONN_ST_LIVE]);
	counter_set(&st->closing, s->counts[CONN_ST_CLOSING]);
	counter_set(&st->qps, q.qps);
	counter_set(&st->qps_free, q.free);
	counter_set(&st->qps_in_use, q.in_use);
	counter_set(&st->qps_in_use_peak, q.in_use_peak);
	counter_set(&st->qps_quarantined, q.quarantined);
	counter_set(&st->qp_hits, q.hits);
	counter_set(&st->qp_misses, q.misses);
	counter_set(&st->qp_exhausted, q.exhausted);
	counter_set(&st->qp_recycled, q.recycled);
	counter_set(&st->bufs_posted, e.bufs_posted);
	counter_set(&st->bufs_free, e.bufs_free + beside.bufs_free);
	counter_set(&st->bufs_total, e.bufs_total + beside.bufs_total);
	counter_set(&st->cqs, e.cqs);
	counter_set(&st->mrs, e.mrs + region_mrs(s->regions));
	counter_set(&st->pinned_bytes, e.pinned_bytes + region_pinned_bytes(s->regions));
	counter_set(&st->regions_in_use, region_in_use(s->regions));
	counter_set(&st->completions, s->pump.counts.completions);
	counter_set(&st->polls, s->pump.counts.polls);
	counter_set(&st->wakeups, s->pump.counts.wakeups);
	effective_count(&st->effective, &ep, 1);
}

void gauges_look(struct shard *s)
{
	const struct conn *c = TAILQ_FIRST(&s->lists[CONN_ST_LIVE]);

	effective_look(&s->stats.effective, c ? &c->link : NULL, c ? c->credits : 0);
}

void gauges_clear(struct shard *s)
{
	struct stats *st = &s->stats;
	counter *gauges[] = { &st->handshakes, &st->sessions, &st->connected, &st->closing, &st->qps,
			      &st->qps_free, &st->qps_in_use, &st->qps_quarantined, &st->bufs_posted, &st->bufs_free,
			      &st->bufs_total, &st->pinned_bytes, &st->cqs, &st->mrs, &st->regions_in_use };

	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		counter_set(gauges[i], 0);
}
