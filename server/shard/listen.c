/* Binding, accepting, and when not to accept. See listen.h. */
#include "server/shard/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/base/log.h"
#include "server/shard/boot.h"
#include "server/shard/shard_data.h"

#define ACCEPT_BUDGET 64
#define ACCEPT_RETRY_NS (100 * NS_PER_MS)
#define TLS_BACKLOG 4096
#define RDMA_BACKLOG 1024	/* the kernel's default limit, net.rdma_ucm.max_backlog */

/* True at most once a second: every client that connects may cause a line. */
static bool may_log(struct shard *s)
{
	uint64_t now = clock_now_ns();

	if (now < s->accept_log_ns)
		return false;
	s->accept_log_ns = now + NS_PER_S;
	return true;
}

/* The socket was accepted and closed, for want of memory. */
static void count_turned_away(struct shard *s, int err)
{
	struct fail f = { .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_ERRNO, .code = err };

	fail_table_count(&s->stats.failures, &f);
	counter_add(&s->stats.closed[CLOSE_FAILED], 1);
	if (may_log(s))
		log_warn("shard %u: closed a new TCP connection: %s", s->index,
			 err == ENOBUFS ? "no connection object is free" : strerror(err));
}

static void accept_one(struct shard *s, int fd, const struct sockaddr_storage *ss)
{
	struct conn *c;
	struct addr peer;
	int one = 1, ret = addr_from_sockaddr((const struct sockaddr *)ss, &peer);

	counter_add(&s->stats.tcp_accepted, 1);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (ret)
		close(fd);
	else
		ret = conn_new(s, fd, &peer, boot_on_ready, &c);
	if (ret)
		count_turned_away(s, -ret);
}

/* --max-handshakes bounds descriptors: a TLS connection counts until it is closed, not only during its handshake. */
static bool has_room(const struct shard *s)
{
	return s->tls_open < s->cfg->max_handshakes && s->counts[CONN_ST_FREE] > 0;
}

uint64_t listen_idle_ns(const struct shard *s, uint64_t now_ns)
{
	if (!s->accept_not_before_ns || !has_room(s))
		return UINT64_MAX;
	return s->accept_not_before_ns > now_ns ? s->accept_not_before_ns - now_ns : 0;
}

static void pause_accepting(struct shard *s)
{
	ev_io_stop(s->loop, &s->listen_io);
	s->accept_paused = true;
}

void listen_resume(struct shard *s)
{
	if (!s->accept_paused || s->drain_deadline_ns || !has_room(s) ||
	    (s->accept_not_before_ns && clock_now_ns() < s->accept_not_before_ns))
		return;
	s->accept_not_before_ns = 0;
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
	s->accept_not_before_ns = clock_now_ns() + ACCEPT_RETRY_NS;
	pause_accepting(s);
	if (may_log(s))
		log_warn("shard %u: cannot accept: %s; %s", s->index, strerror(err),
			 err == EMFILE || err == ENFILE ? "raise the limit of open files (ulimit -n, fs.file-max)" :
			 "this machine needs more memory");
}

static void on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
	struct shard *s = w->data;

	(void)loop;
	(void)revents;
	for (int i = 0; i < ACCEPT_BUDGET; i++) {
		struct sockaddr_storage ss;
		socklen_t len = sizeof(ss);
		int fd;

		if (!has_room(s)) {
			pause_accepting(s);
			return;
		}
		fd = accept4(s->listen_fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (is_shortage(errno))
				pause_for_shortage(s, errno);
			return;
		}
		accept_one(s, fd, &ss);
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
}
