/* SPDX-License-Identifier: BSD-2-Clause */
/* The liveness probe, a slice of the connections at a time. See probe.h. */
#include "server/shard/probe.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/param.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/sock/tcp.h"
#include "server/shard/shard_data.h"

#define SLICES 64		/* parts of the probe interval; each checks a part of the connections */
#define SLICE_NS_MIN (10 * NS_PER_MS)
/* While answers wait, a socket client must take this many bytes per second, averaged over READ_INTERVALS. */
#define READ_BYTES_PER_S 1024u
#define READ_INTERVALS 3u
#define READER_LOG_NS (10 * NS_PER_S)

/* True if something was sent to the client and its device acknowledged nothing in this interval. One such
 * interval is normal, because not every answer has a completion of its own; two in a row are not. */
static bool is_doubtful(const struct conn *c)
{
	return !c->acked && c->link.rc.sq_used > 0;
}

/* Ends a connection whose last probe, and with it everything sent before, did not complete in a whole interval. */
static void give_up(struct conn *c)
{
	if (c->heard)
		conn_fail(c, FAIL_PROTOCOL, PROTO_NOT_RECEIVING);
	else
		conn_fail(c, FAIL_TIMEOUT, 0);
}

/* True if answers wait, here or in the kernel, until the client takes earlier ones. *acked_bytes: taken so far. */
static bool is_waited_for(const struct sock *k, uint64_t *acked_bytes)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(k->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof(info.tcpi_notsent_bytes))
		return false;
	*acked_bytes = info.tcpi_bytes_acked;
	return k->blocked || info.tcpi_notsent_bytes;
}

/* Resets the connection: after an orderly close the kernel would keep unsent answers as long as the client likes. */
static void cut_off_reader(struct conn *c, uint64_t took_bytes)
{
	struct shard *s = c->shard;
	char peer[ADDR_TEXT_MAX];

	if (log_is_due(&s->probing.reader_log_ns, READER_LOG_NS))
		log_event(LOG_LVL_WARN, &(struct log_fields){ .shard = &s->index, .connection = &c->index,
							      .peer = addr_text(&c->peer, peer) },
			  "shard %u: closed the connection of %s, which reads too slowly: it took %llu bytes of its "
			  "answers in %.1f s (%u x --probe-interval), and must take %u a second", s->index, peer,
			  (unsigned long long)took_bytes, (double)(READ_INTERVALS * s->cfg->probe_interval_ns) / 1e9,
			  READ_INTERVALS, READ_BYTES_PER_S);
	tcp_abort_on_close(c->link.sock.fd);
	if (took_bytes)
		conn_fail(c, FAIL_PROTOCOL, PROTO_NOT_RECEIVING);
	else
		conn_fail(c, FAIL_TIMEOUT, 0);
}

/* The kernel ends a connection whose peer takes nothing at all (TCP_USER_TIMEOUT), but each byte taken restarts that
 * timer. So this finds, among clients for whom answers wait, those that take too little. */
static void judge_reader(struct conn *c)
{
	uint64_t acked, least = READ_INTERVALS * c->shard->cfg->probe_interval_ns / NS_PER_S * READ_BYTES_PER_S;

	if (!is_waited_for(&c->link.sock, &acked)) {
		c->waited_looks = 0;
	} else if (c->waited_looks < READ_INTERVALS) {
		if (c->waited_looks++ == 0)
			c->acked_bytes = acked;
	} else if (acked - c->acked_bytes < least) {
		cut_off_reader(c, acked - c->acked_bytes);
	} else {
		c->waited_looks = 1;
		c->acked_bytes = acked;
	}
}

/* Over sockets the kernel probes (sock.h), and this only looks for slow readers. Over RDMA, sends a WRITE of 0 bytes to
 * a client that was silent for an interval or acknowledged nothing for two: the WRITE fails if the client's host is
 * gone, and cannot complete before answers that the client does not receive. */
static void probe_one(struct shard *s, struct conn *c)
{
	if (c->state != CONN_ST_LIVE)
		return;
	if (!link_is_rdma(&c->link)) {
		judge_reader(c);
		return;
	}
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

/* Checks the next slice of the connections, so that each is checked once per interval. */
static void on_probe(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct shard *s = w->data;
	uint64_t slices = MAX(s->cfg->probe_interval_ns / probe_slice_ns(s->cfg), 1);
	uint32_t upto = (uint32_t)(++s->probing.slice * s->cfg->shard_conns / slices);

	(void)revents;
	for (; s->probing.next < MIN(upto, s->conns_used); s->probing.next++)
		probe_one(s, &s->conns[s->probing.next]);
	if (s->probing.slice >= slices)
		s->probing.slice = s->probing.next = 0;
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
