/* The liveness probe, a slice of the connections at a time. See probe.h. */
#include "server/shard/probe.h"

#include <sys/param.h>

#include "common/base/clock.h"
#include "server/shard/shard_data.h"

#define SLICES 64		/* parts of the probe interval; in each, a part of the connections is checked */
#define SLICE_NS_MIN (10 * NS_PER_MS)

/* Something was sent to the client, and in this interval its device acknowledged nothing. An answer need not have a
 * completion of its own, so that is ordinary for one interval, but not for two in a row. */
static bool is_doubtful(const struct conn *c)
{
	return !c->acked && c->link.rc.sq_used > 0;
}

/* The last probe, and with it all that was sent before, has not completed in a whole interval. */
static void give_up(struct conn *c)
{
	if (c->heard)
		conn_fail(c, FAIL_PROTOCOL, PROTO_NOT_RECEIVING);
	else
		conn_fail(c, FAIL_TIMEOUT, 0);
}

/* Over sockets the kernel probes (sock.h). Sends an RDMA WRITE of 0 bytes to a client that was silent for an interval, or acknowledged nothing for two: it fails when
 * the host is gone, and does not complete before the answers that the client does not receive. */
static void probe_one(struct shard *s, struct conn *c)
{
	if (c->state != CONN_ST_LIVE || !link_is_rdma(&c->link))
		return;
	if (!c->acked && (!c->heard || (is_doubtful(c) && c->doubted))) {
		if (rc_probe(&c->link.rc)) {
			give_up(c);
			return;
		}
		counter_add(&s->stats.probes, 1);
	}
	c->doubted = is_doubtful(c);
	c->heard = c->acked = false;
}

static uint64_t probe_slice_ns(const struct server_config *cfg)
{
	return MAX(cfg->probe_interval_ns / SLICES, SLICE_NS_MIN);
}

/* Checks the next slice of the connections, so that each is checked once in an interval. */
static void on_probe(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct shard *s = w->data;
	uint64_t slices = MAX(s->cfg->probe_interval_ns / probe_slice_ns(s->cfg), 1);
	uint32_t upto = (uint32_t)(++s->probe_slice * s->cfg->shard_conns / slices);

	(void)revents;
	for (; s->probe_next < upto; s->probe_next++)
		probe_one(s, &s->conns[s->probe_next]);
	if (s->probe_slice >= slices)
		s->probe_slice = s->probe_next = 0;
	ev_timer_again(loop, w);
}

void probe_start(struct shard *s)
{
	double slice_s = (double)probe_slice_ns(s->cfg) / 1e9;

	ev_timer_init(&s->probe, on_probe, slice_s, slice_s);
	s->probe.data = s;
	if (s->cfg->probe_interval_ns)
		ev_timer_start(s->loop, &s->probe);
}
