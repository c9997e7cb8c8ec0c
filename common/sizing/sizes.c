/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes. See sizes.h.
 *
 * The receive depth is the number of messages that all connections together may have in flight; it bounds the receive
 * completion queue too. There are at least twice as many queue pairs as connections, because those of clients that left
 * stay in quarantine while new clients connect.
 */
#include "common/sizing/sizes.h"

#include <math.h>
#include <sys/param.h>

#include "common/port/port.h"
#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/rdma/rc.h"
#include "common/wire/frame.h"
#include "common/wire/transport.h"

#define SPARES_LEAST 64u
/* Minimum room for queue pairs in quarantine: enough for a shard where 400 clients a second connect and leave, and for
 * a worker with 200. */
#define SHARD_RESTING 2048u
#define CLIENT_RESTING 1024u
#define QPS_SPARE 64u
/* Descriptors other than TLS connections: of the process, and of each shard (loop, channels, device, listeners). Those
 * for the counters of each rail's port are added separately. */
#define FDS_BASE 64u
#define FDS_PER_SHARD 16u
#define FDS_GENERATOR 128u
#define CLIENT_RESERVE 64u
/* Sockets that may wait for a place in a shard: as many as its clients, so that all of them can connect at once from
 * one address, but at least WAITING_WANTED; where descriptors are scarce fewer, but at least WAITING_LEAST. */
#define WAITING_WANTED 4096u
#define WAITING_LEAST 64u
#define PAGE_BYTES UINT64_C(4096)
/* State of a TLS connection, OpenSSL's and ours, and a TLS record (RFC 8446, 5.1) that has arrived in part. */
#define TLS_BYTES (37u << 10)
/* An object of a connection or a socket that waits for a place, its session, and an entry for its address. */
#define CONN_BYTES 1344u
#define WAITING_BYTES 512u

struct sizes_device sizes_of_device(const struct dev *dev)
{
	return (struct sizes_device){ .max_qp = (uint64_t)dev->attr.max_qp, .max_cqe = (uint64_t)dev->attr.max_cqe,
				      .max_srq_wr = (uint64_t)dev->attr.max_srq_wr };
}

double sizes_share(double all, double threads)
{
	double mean = all / threads;

	return threads > 1 ? fmin(all, ceil(mean + 6 * sqrt(mean))) : all;
}

double sizes_share_of(double of_thread, double threads)
{
	double root = sqrt(of_thread + 9) - 3;

	return threads > 1 ? fmax(of_thread, floor(threads * root * root)) : of_thread;
}

static uint64_t max_cqe(const struct sizes_device *d, uint64_t cq_depth)
{
	return cq_depth ? MIN(cq_depth, d->max_cqe) : d->max_cqe;
}

/* Derives the sizes that follow from those already set. */
static void sizes_complete(struct sizes *s, uint64_t most_cqe, uint64_t buf_bytes)
{
	s->max_cqe = most_cqe;
	s->qps_per_cq = most_cqe / s->sq_depth;
	s->cqs = 1 + (s->qps_per_cq ? (s->qps + s->qps_per_cq - 1) / s->qps_per_cq : 0);
	s->slab_bytes = ((uint64_t)s->recv_depth + EP_BATCH + s->spare_bufs) * ep_stride(buf_bytes, true);
}

void sizes_of_shard(const struct sizes_server *s, const struct sizes_device *d, struct sizes *out)
{
	uint64_t most_cqe = max_cqe(d, s->cq_depth), most = MIN(d->max_srq_wr, most_cqe), wanted, qps;

	most = most > EP_BATCH ? most - EP_BATCH : 0;
	out->clients = (uint32_t)sizes_share((double)s->max_clients, (double)s->threads);
	wanted = (uint64_t)out->clients * s->credits;
	if (s->srq_depth)
		wanted = MIN(wanted, s->srq_depth);
	out->recv_depth = (uint32_t)MIN(wanted, most);
	out->spare_bufs = MIN(out->recv_depth, SIZES_SPARES_MAX) + SPARES_LEAST;
	/* With windows twice the entries: a WRITE goes in front of the answer to a push. */
	out->sq_depth = rc_sq_depth((uint32_t)s->credits * (s->windows ? 2 : 1));
	qps = MIN((uint64_t)out->clients + MAX(out->clients, SHARD_RESTING) + QPS_SPARE, d->max_qp / s->threads);
	out->qps = (uint32_t)MIN(MIN(qps, WR_SLOT_MAX), (uint64_t)UINT32_MAX);
	out->qp_reserve = MIN(out->clients, SIZES_SHARD_RESERVE);
	if ((uint64_t)out->recv_depth + EP_BATCH + out->spare_bufs > EP_NO_BUF)
		out->recv_depth = EP_NO_BUF - EP_BATCH - out->spare_bufs;
	sizes_complete(out, most_cqe, s->message_bytes);
}

uint64_t sizes_client_depth_max(const struct sizes_client *c, const struct sizes_device *d)
{
	uint64_t n = MIN(MIN(d->max_srq_wr, max_cqe(d, c->cq_depth)), (uint64_t)EP_NO_BUF - SPARES_LEAST);

	n = n > EP_BATCH ? n - EP_BATCH : 0;
	return c->srq_depth ? MIN(n, c->srq_depth) : n;
}

/* Number of send buffers, limited by the buffer numbers that the receives leave. A message that does not go inline
 * keeps its buffer until it is acknowledged: each connection may have a full send queue of them, and one more waiting
 * for each of its credits. */
static uint32_t client_spares(const struct sizes_client *c, const struct sizes *s)
{
	uint64_t receives = (uint64_t)EP_BATCH + SPARES_LEAST + s->recv_depth;
	uint64_t room = receives < EP_NO_BUF ? EP_NO_BUF - receives : 0;
	uint64_t wanted = c->all_inline ? MIN(s->recv_depth, SIZES_SPARES_MAX)
					: (uint64_t)c->max_conns * (s->sq_depth + c->depth);

	return (uint32_t)(SPARES_LEAST + MIN(wanted, room));
}

void sizes_of_client(const struct sizes_client *c, const struct sizes_device *d, struct sizes *out)
{
	out->clients = c->max_conns;
	out->recv_depth = (uint32_t)((uint64_t)c->max_conns * c->depth);
	out->sq_depth = rc_sq_depth(c->depth + c->rma_depth);
	out->spare_bufs = client_spares(c, out);
	out->qps = MIN(c->max_conns + MAX(c->max_conns, CLIENT_RESTING) + QPS_SPARE, WR_SLOT_MAX);
	out->qp_reserve = MIN(c->max_conns, CLIENT_RESERVE);
	sizes_complete(out, max_cqe(d, c->cq_depth), c->buffer_bytes);
}

uint64_t sizes_server_fds(const struct sizes_server *s)
{
	return FDS_BASE + s->rails * PORT_FILES_MAX + SIZES_CONTROL_SESSIONS_MAX + SIZES_CONTROL_SESSIONS_SPARE +
	       s->rails * s->threads * (FDS_PER_SHARD + s->max_handshakes + WAITING_LEAST + 1);
}

uint64_t sizes_generator_fds(uint64_t clients, uint64_t connecting, bool sockets)
{
	return FDS_GENERATOR + MIN(connecting, clients) + (sockets ? clients : 0);
}

uint32_t sizes_waiting(uint32_t clients, uint64_t spare_fds, uint64_t shards)
{
	return (uint32_t)MIN(MAX(clients, WAITING_WANTED), WAITING_LEAST + spare_fds / shards);
}

/* A client holds one buffer per credit, one for a record that has arrived in part, and one for a GOODBYE; with
 * zerocopy, one more per credit, from which the kernel still sends. */
static uint64_t buffers_of_client(const struct sizes_server *s)
{
	return s->credits * (s->zerocopy ? 2 : 1) + 2;
}

void held_by_server(const struct sizes_server *s, const struct sizes *shard, struct held_row out[HELD_N])
{
	uint64_t clients = s->rails * s->max_clients, shards = s->rails * s->threads;
	bool rdma = s->transport_mask & 1u << TRANSPORT_RDMA, tls = s->transport_mask & 1u << TRANSPORT_TLS;
	bool sockets = tls || s->transport_mask & 1u << TRANSPORT_TCP;

	out[HELD_OBJECTS] = (struct held_row){ "connection objects and waiting sockets", "shard", shards,
					       (shard->clients + s->max_handshakes) * CONN_BYTES +
					       MAX(shard->clients, WAITING_WANTED) * (uint64_t)WAITING_BYTES };
	out[HELD_REGISTERED] = (struct held_row){ "registered message buffers", "shard", rdma ? shards : 0,
						  rdma ? shard->slab_bytes : 0 };
	out[HELD_REGIONS] = (struct held_row){ "regions", "client", rdma ? clients : 0,
					       roundup(s->region_bytes, PAGE_BYTES) };
	out[HELD_SOCKET_BUFFERS] = (struct held_row){ "message buffers over sockets", "client", sockets ? clients : 0,
						      buffers_of_client(s) * ep_stride(s->message_bytes, false) };
	out[HELD_TLS] = (struct held_row){ "TLS connections", "connection", shards * s->max_handshakes +
					   (tls ? clients : 0), TLS_BYTES };
	out[HELD_REPORTS] = (struct held_row){ "reports that are not read", "control session",
					       SIZES_CONTROL_SESSIONS_MAX, FRAME_REPORT_BYTES_MAX };
	out[HELD_MARKS] = (struct held_row){ "marks of control sessions", "server", 1, HELD_MARKS_BYTES };
}

uint64_t held_bytes(const struct held_row *row)
{
	return row->number * row->each_bytes;
}

uint64_t held_sum(const struct held_row rows[HELD_N])
{
	uint64_t sum = 0;

	for (int i = 0; i < HELD_N; i++)
		sum += held_bytes(&rows[i]);
	return sum;
}
