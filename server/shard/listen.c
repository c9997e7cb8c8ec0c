/* Binding, accepting, and when not to accept. See listen.h. */
#include "server/shard/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
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
/* Where there is no room: a peer that neither said nor was told anything for so long is silent, and so is one that says
 * something and gives the server nothing to answer for so long. */
#define SILENT_MS 500
#define STALLED_MS 1000
#define SILENT_TRIES 8		/* connections looked at for each client that wants in */
#define CROWD_LOG_NS (10 * NS_PER_S)
#define TLS_BACKLOG 4096
#define RDMA_BACKLOG 1024	/* the kernel's default limit, net.rdma_ucm.max_backlog */

/* True at most once in that time: every client that connects may cause a line. `next_ns` is when the next one may be. */
static bool may_log(uint64_t *next_ns, uint64_t every_ns)
{
	uint64_t now = clock_now_ns();

	if (now < *next_ns)
		return false;
	*next_ns = now + every_ns;
	return true;
}

/* The socket was accepted and closed, for want of memory. */
static void count_turned_away(struct shard *s, int err)
{
	struct fail f = { .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_ERRNO, .code = err };

	fail_table_count(&s->stats.failures, &f);
	counter_add(&s->stats.closed[CLOSE_FAILED], 1);
	if (may_log(&s->accept_log_ns, NS_PER_S))
		log_warn("shard %u: closed a new TCP connection: %s", s->index,
			 err == ENOBUFS ? "no connection object is free" : strerror(err));
}

/* ---- room */

/* --max-handshakes bounds descriptors: a TLS connection counts until it is closed, not only during its handshake. */
static bool has_room(const struct shard *s)
{
	return s->tls_open < s->cfg->max_handshakes && s->counts[CONN_ST_FREE] > 0;
}

/* 1: there is something to read. 0: there is not. -ENOTCONN: nor will there be, as the peer closed the connection or it
 * broke. */
static int peek(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0)
		return 1;
	return n < 0 && errno == EAGAIN ? 0 : -ENOTCONN;
}

/* True if it is the peer that is waited for, and has been for long; or the connection is over. TCP counts from the time
 * when the connection was made (Linux), so what waited in the backlog counts. */
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

/* What is queued or waits for a region waits for the server. */
static bool is_conn_silent(const struct conn *c)
{
	return !c->queued && !c->awaits_region && is_silent(tls_fd(c->io.tls));
}

static struct conn *conn_of(struct peer_hold *h)
{
	return (struct conn *)((char *)h - offsetof(struct conn, tls_hold));
}

/* Who makes room: of the address that has most the oldest silent one, among the first few; those that are not silent are
 * put behind the others. If none of them is and `somebody` must go, the oldest. Else NULL. */
static struct conn *choose(struct shard *s, bool somebody)
{
	struct conn *oldest = conn_of(peers_oldest(s->peers, PEERS_TLS));
	uint32_t tries = MIN(peers_most(s->peers, PEERS_TLS), SILENT_TRIES);

	while (tries--) {
		struct conn *c = conn_of(peers_oldest(s->peers, PEERS_TLS));

		if (is_conn_silent(c))
			return c;
		peers_rejuvenate(PEERS_TLS, &c->tls_hold);
	}
	return somebody ? oldest : NULL;
}

/* A TLS connection of `peer` is closed for being one too many. */
static void log_crowd(struct shard *s, const struct addr *peer)
{
	char text[ADDR_TEXT_MAX];

	if (may_log(&s->crowd_log_ns, CROWD_LOG_NS))
		log_warn("shard %u: closed a TLS connection of %s, which has %u of %u here (--max-handshakes, "
			 "--max-per-address)", s->index, addr_host_text(peer, text),
			 peers_count(s->peers, PEERS_TLS, addr_network(peer)), s->tls_open);
}

/* After the GRANT the server has nothing to say over TLS: the session stays. A client that left by itself makes room,
 * too, but was not crowded out. */
static void crowd_out(struct conn *c)
{
	if (c->state == CONN_ST_GRANTED || c->state == CONN_ST_ACCEPTING) {
		conn_close_tls(c);
	} else if (peek(tls_fd(c->io.tls)) < 0) {
		conn_fail(c, FAIL_CLOSED, 0);
	} else {
		log_crowd(c->shard, &c->peer);
		conn_close(c, CLOSE_CROWDED_OUT);
	}
}

enum verdict {
	LET_IN,
	TURN_AWAY,	/* close it */
	LET_WAIT,
};

/* What becomes of the client that waits. Where there is no room, somebody of the address that has most makes room: who is
 * silent, or, for an address that has less, the oldest. Among equals those who do something are let alone. */
static enum verdict judge(struct shard *s)
{
	uint64_t network = addr_network(&s->waiting_peer);
	struct conn *c;
	bool has_less;

	if (s->server->peers && peers_count(s->server->peers, PEERS_TLS, network) >= server_config_per_address(s->cfg)) {
		log_crowd(s, &s->waiting_peer);
		return TURN_AWAY;
	}
	if (s->tls_open >= s->cfg->max_handshakes) {
		has_less = peers_count(s->peers, PEERS_TLS, network) + 1 < peers_most(s->peers, PEERS_TLS);
		if (!has_less && is_silent(s->waiting_fd)) {
			log_crowd(s, &s->waiting_peer);
			return TURN_AWAY;
		}
		c = choose(s, has_less);
		if (!c)
			return LET_WAIT;
		crowd_out(c);
	}
	/* The object of a connection that was crowded out is free at the end of the turn. */
	return s->counts[CONN_ST_FREE] > 0 ? LET_IN : LET_WAIT;
}

static int let_in(struct shard *s)
{
	struct conn *c;
	int one = 1, fd = s->waiting_fd;

	s->waiting_fd = -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return conn_new(s, fd, &s->waiting_peer, boot_on_ready, &c);
}

static void turn_away(struct shard *s)
{
	counter_add(&s->stats.closed[CLOSE_CROWDED_OUT], 1);
	if (s->waiting_fd >= 0)
		close(s->waiting_fd);
	s->waiting_fd = -1;
}

/* False if the client goes on waiting. */
static bool settle(struct shard *s)
{
	enum verdict verdict = judge(s);
	int ret = verdict == LET_IN ? let_in(s) : 0;

	counter_add(&s->stats.tcp_accepted, verdict != LET_WAIT);
	if (verdict == TURN_AWAY || ret == -EDQUOT)
		turn_away(s);
	else if (ret)
		count_turned_away(s, -ret);
	return verdict != LET_WAIT;
}

/* ---- accepting */

uint64_t listen_idle_ns(const struct shard *s, uint64_t now_ns)
{
	if (!s->accept_paused)
		return UINT64_MAX;
	return s->accept_not_before_ns > now_ns ? s->accept_not_before_ns - now_ns : 0;
}

static void pause_accepting(struct shard *s, uint64_t ns)
{
	ev_io_stop(s->loop, &s->listen_io);
	s->accept_paused = true;
	s->accept_not_before_ns = clock_now_ns() + ns;
}

void listen_resume(struct shard *s)
{
	if (!s->accept_paused || s->drain_deadline_ns)
		return;
	if (clock_now_ns() < s->accept_not_before_ns && (s->waiting_fd < 0 || !has_room(s)))
		return;
	if (s->waiting_fd >= 0 && !settle(s)) {
		s->accept_not_before_ns = clock_now_ns() + ROOM_RETRY_NS;
		return;
	}
	s->accept_paused = false;
	ev_io_start(s->loop, &s->listen_io);
}

/* accept(2) fails with these for every client, until somebody releases something. Its other errors concern one
 * client. */
static bool is_shortage(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

static void pause_for_shortage(struct shard *s, int err)
{
	pause_accepting(s, ACCEPT_RETRY_NS);
	if (may_log(&s->accept_log_ns, NS_PER_S))
		log_warn("shard %u: cannot accept: %s; %s", s->index, strerror(err),
			 err == EMFILE || err == ENFILE ? "raise the limit of open files (ulimit -n, fs.file-max)" :
			 "this machine needs more memory");
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
		int fd = accept4(s->listen_fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC), ret;

		if (fd < 0) {
			if (is_shortage(errno))
				pause_for_shortage(s, errno);
			return;
		}
		s->waiting_fd = fd;
		ret = addr_from_sockaddr((const struct sockaddr *)&ss, &s->waiting_peer);
		if (ret) {
			close(fd);
			s->waiting_fd = -1;
			count_turned_away(s, -ret);
		} else if (!settle(s)) {
			pause_accepting(s, ROOM_RETRY_NS);
			return;
		}
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
		return "the port that the system chose for the first rail is taken here: try again, or choose one "
		       "with --tls-port";
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
	s->listen_fd = socket(a.ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listen_fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot make a TCP socket: %s", strerror(-ret));
		return ret;
	}
	/* The rail's first shard binds without SO_REUSEPORT and sets it afterwards, so that a second server cannot
	 * join the port. */
	if (setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    (!first && share_port(s->listen_fd)) ||
	    bind(s->listen_fd, (struct sockaddr *)&a.ss, a.len) ||
	    (first && share_port(s->listen_fd)) ||
	    listen(s->listen_fd, TLS_BACKLOG) ||
	    getsockname(s->listen_fd, (struct sockaddr *)&a.ss, &len)) {
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
	int ret = open_rdma(s, err, err_size);

	return ret ? ret : open_tls(s, err, err_size);
}

void listen_start(struct shard *s)
{
	ev_io_init(&s->listen_io, on_accept, s->listen_fd, EV_READ);
	s->listen_io.data = s;
	ev_io_start(s->loop, &s->listen_io);
}

void listen_close(struct shard *s)
{
	if (s->listen_fd < 0)
		return;
	ev_io_stop(s->loop, &s->listen_io);
	/* TCP refuses clients from here on. In the backlog they would wait for nobody. */
	close(s->listen_fd);
	s->listen_fd = -1;
	s->accept_paused = false;
	if (s->waiting_fd >= 0) {
		close(s->waiting_fd);
		counter_add(&s->stats.closed[CLOSE_DRAINING], 1);
	}
	s->waiting_fd = -1;
}
