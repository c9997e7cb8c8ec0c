/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding, accepting, and when not to accept. See listen.h. */
#include "server/shard/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/base/log.h"
#include "common/tls/tls.h"
#include "server/shard/boot.h"
#include "server/shard/shard_data.h"

#define ACCEPT_BUDGET 64
#define ACCEPT_BUDGET_NS (2 * NS_PER_MS)
#define ACCEPT_RETRY_NS (100 * NS_PER_MS)
#define ROOM_RETRY_NS (20 * NS_PER_MS)
/* When there is no room, a connection is silent after SILENT_MS without a byte in either direction, or after STALLED_MS
 * in which the peer, even if it sent something, gave the server nothing to answer. */
#define SILENT_MS 500
#define STALLED_MS 1000
#define SILENT_TRIES 8		/* connections examined for each client that waits */
#define CUT_EVERY_NS (20 * NS_PER_MS)	/* average interval of closing busy connections */
#define CUTS_IN_A_ROW 16		/* busy connections closed in a row after a pause */
/* An address makes progress if one of its clients finished a handshake, was granted or connected within this time. A
 * load generator that makes thousands of connections on a busy machine pauses for seconds. */
#define PROGRESS_NS (10 * NS_PER_S)
#define CROWD_LOG_NS (10 * NS_PER_S)
#define TLS_BACKLOG 4096
#define RDMA_BACKLOG 1024	/* the kernel's default limit, net.rdma_ucm.max_backlog */

/* Counts an accepted socket that was closed because the shard lacks memory or a connection object. */
static void count_turned_away(struct shard *s, int err)
{
	struct fail f = { .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_ERRNO, .code = err };
	const char *reason = err == ENOBUFS ? "no room: all connection objects of this shard (its share of "
		"--max-clients, and --max-handshakes) are in use" : strerror(err);

	fail_table_count(&s->stats.failures, &f);
	counter_add(&s->stats.closed[CLOSE_FAILED], 1);
	if (log_is_due(&s->accept_log_ns, NS_PER_S))
		log_event(LOG_LVL_WARN, &(struct log_fields){ .shard = &s->index, .reason = reason },
			  "shard %u: closed a new TCP connection: %s", s->index, reason);
}

/* An accepted socket that waits for room. */
struct waiting {
	int fd;
	struct addr peer;
	struct peer_hold hold;		/* in the shard's table of addresses, PEERS_WAITING */
	struct peer_hold share;		/* in the server's, as if it were already a TLS connection */
	TAILQ_ENTRY(waiting) entry;	/* in the list of free slots */
};

struct waiting *listen_make_waiting(struct shard *s)
{
	TAILQ_INIT(&s->listen.free);
	/* One slot more than may wait: for a new socket while the shard decides which one to turn away. */
	return calloc(s->cfg->shard_waiting + 1, sizeof(struct waiting));
}

/* Returns a free slot. Prefers one that was used before, so that slots never used take no memory. */
static struct waiting *find_free_slot(struct shard *s)
{
	if (TAILQ_EMPTY(&s->listen.free)) {
		struct waiting *w = &s->listen.waiting[s->listen.slots_used++];

		TAILQ_INSERT_TAIL(&s->listen.free, w, entry);
	}
	return TAILQ_FIRST(&s->listen.free);
}

/* --max-handshakes bounds descriptors: a TLS connection counts until it is closed, not only while it shakes hands. */
static bool has_room(const struct shard *s)
{
	return s->tls_open < s->cfg->max_handshakes && s->counts[CONN_ST_FREE] > 0;
}

/* Returns 1: data can be read; 0: not yet; -ENOTCONN: never again, because the peer closed the connection or it
 * broke. */
static int peek(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0)
		return 1;
	return n < 0 && errno == EAGAIN ? 0 : -ENOTCONN;
}

/* True if the peer has been silent for long (SILENT_MS, STALLED_MS), or the connection is over. On Linux both times
 * start when TCP makes the connection, so time spent in the backlog counts. */
static bool is_silent(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int ret = peek(fd);

	if (ret)
		return ret < 0;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       (MIN(info.tcpi_last_data_recv, info.tcpi_last_data_sent) >= SILENT_MS ||
		info.tcpi_last_data_sent >= STALLED_MS);
}

/* True if the address makes progress. A host that makes thousands of connections cannot serve each at once, so its
 * silent connections are no sign of bad faith while others make progress. */
static bool gets_on(const struct shard *s, const struct addr *peer)
{
	uint64_t progress_ns = peers_progress_ns(s->peers, addr_network(peer));

	return progress_ns && clock_now_ns() < progress_ns + PROGRESS_NS;
}

/* A connection that is queued, or that waits for a region, is waiting for the server, not for its peer. */
static bool is_conn_silent(const struct conn *c)
{
	return !c->queued && !c->awaits_region && is_silent(tls_fd(c->io->tls));
}

/* True if this connection, once silent, may be closed to make room even for an address that has no fewer connections
 * than this connection's: its session, or those that its TLS connection bootstrapped, outlive TLS, or its address makes
 * no progress. */
static bool is_spare(const struct conn *c)
{
	return c->state == CONN_ST_GRANTED || c->state == CONN_ST_ACCEPTING || c->earlier ||
	       !gets_on(c->shard, &c->peer);
}

static struct conn *conn_of(struct peer_hold *h)
{
	return (struct conn *)((char *)h - offsetof(struct conn, tls_hold));
}

static struct waiting *waiting_of(struct peer_hold *h)
{
	return h ? (struct waiting *)((char *)h - offsetof(struct waiting, hold)) : NULL;
}

/* Limits how often busy connections are closed for other addresses, because closing one wastes what its client has
 * done. Without a limit, a peer that keeps connecting and leaving could starve a host that makes many connections. */
static bool may_cut(struct shard *s)
{
	uint64_t now = clock_now_ns(), from_ns = MAX(s->listen.cut_from_ns, now - CUTS_IN_A_ROW * CUT_EVERY_NS);

	if (from_ns + CUT_EVERY_NS > now)
		return false;
	s->listen.cut_from_ns = from_ns + CUT_EVERY_NS;
	return true;
}

/* Chooses the connection to evict: the first silent one among SILENT_TRIES connections, taken in turn from the
 * addresses that have the most; busy ones move to the back. If none is silent and `somebody` must go, the oldest of
 * those examined, if may_cut allows it. Otherwise NULL. */
static struct conn *choose_evicted(struct shard *s, bool somebody)
{
	struct conn *first = conn_of(peers_oldest(s->peers, PEERS_TLS)), *c = first, *oldest = first;

	for (int tries = SILENT_TRIES; tries > 0; tries--) {
		if (is_conn_silent(c) && (somebody || is_spare(c)))
			return c;
		if (c->started_ns < oldest->started_ns)
			oldest = c;
		peers_rejuvenate(s->peers, PEERS_TLS, &c->tls_hold);
		c = conn_of(peers_oldest(s->peers, PEERS_TLS));
		if (c == first)
			break;
	}
	return somebody && may_cut(s) ? oldest : NULL;
}

/* Logs that a connection of `peer` was closed for being one too many: the peer has `n` of `all`. */
static void log_crowd(struct shard *s, const struct addr *peer, uint32_t n, uint64_t all, const char *where)
{
	char text[ADDR_TEXT_MAX];

	if (log_is_due(&s->listen.crowd_log_ns, CROWD_LOG_NS))
		log_event(LOG_LVL_WARN, &(struct log_fields){ .shard = &s->index, .peer = addr_host_text(peer, text) },
			  "shard %u: closed a TCP connection of %s, which has too many: %u of %llu %s", s->index, text,
			  n, (unsigned long long)all, where);
}

/* Closes a connection to make room. After the GRANT only TLS closes: the session stays. If the client has already left,
 * the connection counts as failed, not as crowded out. */
static void crowd_out(struct conn *c)
{
	struct shard *s = c->shard;

	if (c->state == CONN_ST_GRANTED || c->state == CONN_ST_ACCEPTING) {
		conn_close_tls(c);
	} else if (peek(tls_fd(c->io->tls)) < 0) {
		conn_fail(c, FAIL_CLOSED, 0);
	} else {
		log_crowd(s, &c->peer, peers_count(s->peers, PEERS_TLS, addr_network(&c->peer)), s->tls_open,
			  "TLS connections of this shard (--max-handshakes)");
		conn_close(c, CLOSE_CROWDED_OUT);
	}
}

enum verdict {
	LET_IN,
	TURN_AWAY,	/* close the waiting socket */
	LET_WAIT,
};

/* Decides about the waiting socket whose turn it is. Without room, evicts a connection of an address that has the most:
 * a silent one or, if the waiting address has fewer, even a busy one. If it has as many, evicts only one silent
 * connection per ROOM_RETRY_NS: an address that opens many must not cost the CPU time of examining them all. */
static enum verdict judge_waiting(struct shard *s, const struct waiting *w, uint64_t now)
{
	bool has_less;
	struct conn *c;

	if (s->tls_open >= s->cfg->max_handshakes) {
		has_less = peers_count(s->peers, PEERS_TLS, addr_network(&w->peer)) +
			1 < peers_most(s->peers, PEERS_TLS);
		if (!has_less && now < s->listen.look_not_before_ns)
			return LET_WAIT;
		if (has_less ? peek(w->fd) < 0 : is_silent(w->fd) && !gets_on(s, &w->peer))
			return TURN_AWAY;
		if (!has_less)
			s->listen.look_not_before_ns = now + ROOM_RETRY_NS;
		c = choose_evicted(s, has_less);
		if (!c) {
			if (has_less)
				s->listen.look_not_before_ns = s->listen.cut_from_ns + CUT_EVERY_NS;
			return LET_WAIT;
		}
		crowd_out(c);
	}
	/* The object of an evicted connection is free only at the end of the turn. */
	return s->counts[CONN_ST_FREE] > 0 ? LET_IN : LET_WAIT;
}

/* Takes the socket out of the waiting list. The caller owns it from now on. */
static int stop_waiting(struct shard *s, struct waiting *w)
{
	peers_give(s->peers, PEERS_WAITING, &w->hold);
	peers_give(s->server->peers, PEERS_TLS, &w->share);
	TAILQ_INSERT_HEAD(&s->listen.free, w, entry);
	s->listen.n_waiting--;
	return w->fd;
}

static void count_crowded_out(struct shard *s)
{
	counter_add(&s->stats.tcp_accepted, 1);
	counter_add(&s->stats.closed[CLOSE_CROWDED_OUT], 1);
}

/* Closes a waiting socket. A peer that has already left counts as failed, not as crowded out. */
static void turn_away(struct shard *s, struct waiting *w)
{
	struct fail left = { .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_CLOSED };

	if (peek(w->fd) < 0) {
		fail_table_count(&s->stats.failures, &left);
		counter_add(&s->stats.tcp_accepted, 1);
		counter_add(&s->stats.closed[CLOSE_FAILED], 1);
	} else {
		log_crowd(s, &w->peer, peers_count(s->peers, PEERS_WAITING, addr_network(&w->peer)),
			  s->listen.n_waiting, "that wait for room in this shard (--max-handshakes)");
		count_crowded_out(s);
	}
	close(stop_waiting(s, w));
}

static void let_in(struct shard *s, struct waiting *w)
{
	struct addr peer = w->peer;
	int one = 1, fd = stop_waiting(s, w), ret;
	struct conn *c;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ret = conn_new(s, fd, &peer, boot_on_ready, &c);
	if (ret == -EDQUOT) {
		count_crowded_out(s);
		return;
	}
	counter_add(&s->stats.tcp_accepted, 1);
	if (ret)
		count_turned_away(s, -ret);
}

/* Lets waiting sockets in or turns them away, one after the other, until one has to go on waiting. */
static void settle(struct shard *s)
{
	uint64_t now = clock_now_ns(), until_ns = now + ACCEPT_BUDGET_NS;

	for (int i = 0; s->listen.n_waiting && i < ACCEPT_BUDGET && clock_now_ns() < until_ns; i++) {
		struct waiting *w = waiting_of(peers_next(s->peers));

		switch (judge_waiting(s, w, now)) {
		case LET_IN:
			let_in(s, w);
			break;
		case TURN_AWAY:
			turn_away(s, w);
			break;
		case LET_WAIT:
			return;
		}
	}
}

/* Returns false, and closes the socket, if its address already has --max-per-address connections. */
static bool begin_waiting(struct shard *s, int fd, const struct addr *peer)
{
	struct waiting *w = find_free_slot(s);
	uint64_t network = addr_network(peer);
	uint32_t most = server_config_per_address(s->cfg);

	if ((s->server->peers && !peers_take(s->server->peers, PEERS_TLS, network, &w->share, most)) ||
	    !peers_take(s->peers, PEERS_WAITING, network, &w->hold, UINT32_MAX)) {
		peers_give(s->server->peers, PEERS_TLS, &w->share);
		log_crowd(s, peer, most, most,
			  "TLS connections that an address may have on all shards (--max-per-address)");
		count_crowded_out(s);
		close(fd);
		return false;
	}
	TAILQ_REMOVE(&s->listen.free, w, entry);
	w->fd = fd;
	w->peer = *peer;
	s->listen.n_waiting++;
	return true;
}

/* Takes over an accepted socket, which is then closed, becomes a connection, or waits. */
static void receive(struct shard *s, int fd, const struct sockaddr_storage *from)
{
	struct addr peer;
	int ret = addr_from_sockaddr((const struct sockaddr *)from, &peer);

	if (ret) {
		close(fd);
		count_turned_away(s, -ret);
	} else if (begin_waiting(s, fd, &peer)) {
		settle(s);
		if (s->listen.n_waiting > s->cfg->shard_waiting)
			turn_away(s, waiting_of(peers_youngest(s->peers, PEERS_WAITING)));
	}
}

uint64_t listen_idle_ns(const struct shard *s, uint64_t now_ns)
{
	uint64_t at_ns = s->listen.paused ? s->listen.not_before_ns : UINT64_MAX;

	if (s->listen.n_waiting)
		at_ns = MIN(at_ns, s->listen.look_not_before_ns);
	if (at_ns == UINT64_MAX)
		return UINT64_MAX;
	return at_ns > now_ns ? at_ns - now_ns : 0;
}

static void pause_accepting(struct shard *s, uint64_t ns)
{
	ev_io_stop(s->loop, &s->listen.io);
	s->listen.paused = true;
	s->listen.not_before_ns = clock_now_ns() + ns;
}

void listen_resume(struct shard *s)
{
	if (s->drain_deadline_ns)
		return;
	if (s->listen.n_waiting && (has_room(s) || clock_now_ns() >= s->listen.look_not_before_ns))
		settle(s);
	if (!s->listen.paused || clock_now_ns() < s->listen.not_before_ns)
		return;
	s->listen.paused = false;
	ev_io_start(s->loop, &s->listen.io);
}

/* With these errors accept(2) fails for every client until some resource is released. Its other errors concern a single
 * client. */
static bool is_shortage(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

void listen_log_shortage(struct shard *s, const char *where, int err)
{
	const char *advice = err == EMFILE || err == ENFILE ?
		"raise the limit of open files (ulimit -n, fs.file-max)" : "this machine needs more memory";

	if (log_is_due(&s->accept_log_ns, NS_PER_S))
		log_event(LOG_LVL_WARN, &(struct log_fields){ .shard = &s->index, .reason = strerror(err),
							      .advice = advice },
			  "shard %u: cannot accept a connection %s: %s; %s", s->index, where, strerror(err), advice);
}

static void pause_for_shortage(struct shard *s, int err)
{
	pause_accepting(s, ACCEPT_RETRY_NS);
	listen_log_shortage(s, "on the TLS port", err);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
	struct shard *s = w->data;
	uint64_t until_ns = clock_now_ns() + ACCEPT_BUDGET_NS;

	(void)loop;
	(void)revents;
	for (int i = 0; i < ACCEPT_BUDGET && clock_now_ns() < until_ns; i++) {
		struct sockaddr_storage ss;
		socklen_t len = sizeof(ss);
		int fd = accept4(s->listen.fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (is_shortage(errno))
				pause_for_shortage(s, errno);
			return;
		}
		receive(s, fd, &ss);
	}
}

static int share_port(int fd)
{
	int one = 1;

	return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
}

static const char *tls_port_advice(const struct shard *s, int ret)
{
	if (ret == -EADDRINUSE && s->server->tls_port && !s->cfg->tls_port)
		return "the port that the system chose for the first rail is taken on this address: try again, or "
		       "choose one with --tls-port";
	if (ret == -EADDRINUSE)
		return "another program has this port: choose another with --tls-port";
	return ret == -EACCES ? "ports below 1024 need root: choose another with --tls-port" : "check --bind";
}

static int open_tls(struct shard *s, char *err, size_t err_size)
{
	struct addr a = s->rail->addr;
	uint16_t port = s->server->tls_port ? s->server->tls_port : (uint16_t)s->cfg->tls_port;
	socklen_t len = sizeof(a.ss);
	char text[ADDR_TEXT_MAX];
	bool first = s->index % s->cfg->threads == 0;
	int one = 1, ret;

	addr_set_port(&a, port);
	s->listen.fd = socket(a.ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listen.fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot make a TCP socket: %s", strerror(-ret));
		return ret;
	}
	/* The rail's first shard binds without SO_REUSEPORT and sets it afterwards, so that a second server cannot join
	 * the port. */
	if (setsockopt(s->listen.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    (!first && share_port(s->listen.fd)) ||
	    bind(s->listen.fd, (struct sockaddr *)&a.ss, a.len) ||
	    (first && share_port(s->listen.fd)) ||
	    listen(s->listen.fd, TLS_BACKLOG) ||
	    getsockname(s->listen.fd, (struct sockaddr *)&a.ss, &len)) {
		ret = -errno;
		snprintf(err, err_size, "cannot listen on %s (TLS): %s; %s", addr_text(&a, text),
			 strerror(-ret), tls_port_advice(s, ret));
		return ret;
	}
	s->server->tls_port = addr_port(&a);
	return 0;
}

static int open_rdma(struct shard *s, char *err, size_t err_size)
{
	const struct server_config *cfg = s->cfg;
	char text[ADDR_TEXT_MAX];
	uint16_t port = 0;
	int ret = cm_channel_new(&s->cm);

	if (ret) {
		snprintf(err, err_size, "cannot open the RDMA connection manager: %s; is rdma_ucm loaded and "
			 "/dev/infiniband/rdma_cm accessible?", strerror(-ret));
		return ret;
	}
	s->rdma_addr = s->rail->addr;
	addr_set_port(&s->rdma_addr, cfg->rdma_port ? (uint16_t)(cfg->rdma_port + s->index) : 0);
	ret = cm_listen(s->cm, &s->rdma_addr, RDMA_BACKLOG, s, &s->listener, &port);
	if (ret) {
		snprintf(err, err_size, "cannot listen on %s (RDMA): %s; %s", addr_text(&s->rdma_addr, text),
			 strerror(-ret), ret == -EADDRINUSE ? "another program has this port: choose another "
			 "with --rdma-port" : "check --bind and --device");
		return ret;
	}
	addr_set_port(&s->rdma_addr, port);
	return 0;
}

int listen_open(struct shard *s, char *err, size_t err_size)
{
	int ret = server_config_connects(s->cfg, CONNECT_CM) ? open_rdma(s, err, err_size) : 0;

	return ret ? ret : open_tls(s, err, err_size);
}

void listen_start(struct shard *s)
{
	ev_io_init(&s->listen.io, on_accept, s->listen.fd, EV_READ);
	s->listen.io.data = s;
	ev_io_start(s->loop, &s->listen.io);
}

void listen_close(struct shard *s)
{
	if (s->listen.fd < 0)
		return;
	ev_io_stop(s->loop, &s->listen.io);
	/* Close the socket, so that TCP refuses clients; in the backlog they would wait in vain. */
	close(s->listen.fd);
	s->listen.fd = -1;
	s->listen.paused = false;
	/* The sockets do not count as accepted: to their peers it is as if they had stayed in the backlog. */
	while (s->listen.n_waiting)
		close(stop_waiting(s, waiting_of(peers_next(s->peers))));
}
