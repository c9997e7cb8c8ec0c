/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes. See sizes.h.
 *
 * The receive depth is the number of messages all connections together may have in flight; it bounds the receive
 * completion queue too. Queue pairs are twice the connections or more, because those of clients that left rest in
 * quarantine while new ones come.
 */
#include "common/sizes/sizes.h"

#include <math.h>
#include <sys/param.h>

#include "common/port/port.h"
#include "common/rdma/ep.h"
#include "common/rdma/rc.h"

#define SPARES_MAX 4096u	/* where messages go inline: a buffer is kept only while the send queue is full */
#define SPARES_LEAST 64u
/* Queue pairs that may be in quarantine, at least: enough for 400 clients a second that come and go in a shard, and for
 * 200 in a worker. */
#define SHARD_RESTING 2048u
#define CLIENT_RESTING 1024u
#define QPS_SPARE 64u
/* Descriptors other than TLS connections: of the process, and of each shard (loop, channels, device, listeners). The
 * counters of each rail's port are beside these. */
#define FDS_BASE 64u
#define FDS_PER_SHARD 16u
#define CLIENT_RESERVE 64u
/* Sockets that wait for room in a shard: as many as it may have clients, so that all of them can come at once from one
 * address, and more for clients that come and go; fewer where descriptors are scarce, but some. */
#define WAITING_WANTED 4096u

uint32_t sizes_share(uint64_t all, uint64_t threads)
{
	double mean = (double)all / (double)threads;
	double room = ceil(mean + 6 * sqrt(mean));

	if (threads == 1 || room > (double)all)
		return (uint32_t)all;
	return (uint32_t)room;
}

void sizes_of_shard(const struct sizes_server *s, const struct sizes_device *d, struct sizes *out)
{
	uint64_t most = MIN(d->max_srq_wr, d->max_cqe), wanted, qps;

	most = most > EP_BATCH ? most - EP_BATCH : 0;
	out->clients = sizes_share(s->max_clients, s->threads);
	wanted = (uint64_t)out->clients * s->credits;
	if (s->srq_depth)
		wanted = MIN(wanted, s->srq_depth);
	out->recv_depth = (uint32_t)MIN(wanted, most);
	out->spare_bufs = MIN(out->recv_depth, SPARES_MAX) + SPARES_LEAST;
	/* A WRITE goes in front of the answer to a push. */
	out->sq_depth = rc_sq_depth((uint32_t)s->credits * (s->windows ? 2 : 1));
	qps = MIN((uint64_t)out->clients + MAX(out->clients, SHARD_RESTING) + QPS_SPARE, d->max_qp / s->threads);
	out->qps = (uint32_t)MIN(MIN(qps, WR_SLOT_MAX), (uint64_t)UINT32_MAX);
	out->qp_reserve = MIN(out->clients, SIZES_SHARD_RESERVE);
	if ((uint64_t)out->recv_depth + EP_BATCH + out->spare_bufs > EP_NO_BUF)
		out->recv_depth = EP_NO_BUF - EP_BATCH - out->spare_bufs;
}

uint64_t sizes_client_depth_max(const struct sizes_client *c, const struct sizes_device *d)
{
	uint64_t n = MIN(MIN(d->max_srq_wr, d->max_cqe), (uint64_t)EP_NO_BUF - SPARES_LEAST);

	n = n > EP_BATCH ? n - EP_BATCH : 0;
	return c->srq_depth ? MIN(n, c->srq_depth) : n;
}

/* Buffers to send from, as many as can be numbered beside the receives. A message that does not go inline keeps its
 * buffer until it is acknowledged: each connection may have a send queue full of them, and as many waiting as it has
 * credits. */
static uint32_t client_spares(const struct sizes_client *c, const struct sizes *s)
{
	uint64_t receives = (uint64_t)EP_BATCH + SPARES_LEAST + s->recv_depth;
	uint64_t room = receives < EP_NO_BUF ? EP_NO_BUF - receives : 0;
	uint64_t wanted = c->all_inline ? MIN(s->recv_depth, SPARES_MAX)
					: (uint64_t)c->max_conns * (s->sq_depth + c->depth);

	return (uint32_t)(SPARES_LEAST + MIN(wanted, room));
}

void sizes_of_client(const struct sizes_client *c, struct sizes *out)
{
	out->clients = c->max_conns;
	out->recv_depth = (uint32_t)((uint64_t)c->max_conns * c->depth);
	out->sq_depth = rc_sq_depth(c->depth + c->rma_depth);
	out->spare_bufs = client_spares(c, out);
	out->qps = MIN(c->max_conns + MAX(c->max_conns, CLIENT_RESTING) + QPS_SPARE, WR_SLOT_MAX);
	out->qp_reserve = MIN(c->max_conns, CLIENT_RESERVE);
}

uint64_t sizes_qps_per_cq(const struct sizes *s, const struct sizes_device *d)
{
	return d->max_cqe / s->sq_depth;
}

uint64_t sizes_cqs(const struct sizes *s, const struct sizes_device *d)
{
	uint64_t each = sizes_qps_per_cq(s, d);

	return 1 + (each ? (s->qps + each - 1) / each : 0);
}

uint64_t sizes_server_fds(uint64_t rails, uint64_t shards, uint64_t handshakes)
{
	return FDS_BASE + rails * PORT_FILES_MAX + SIZES_CONTROL_SESSIONS_MAX + SIZES_CONTROL_SESSIONS_SPARE +
	       shards * (FDS_PER_SHARD + handshakes + SIZES_WAITING_LEAST + 1);
}

uint32_t sizes_waiting(uint32_t clients, uint64_t spare_fds, uint64_t shards)
{
	return (uint32_t)MIN(MAX(clients, WAITING_WANTED), SIZES_WAITING_LEAST + spare_fds / shards);
}

uint64_t sizes_slab_bytes(const struct sizes *s, uint64_t buf_bytes)
{
	return ((uint64_t)s->recv_depth + EP_BATCH + s->spare_bufs) * ((buf_bytes + 63) & ~63ull);
}
