/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP connections before they have proved which session they belong to. See arrive.h. */
#include "server/shard/arrive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/sock/sock.h"
#include "server/shard/listen.h"
#include "server/shard/shard_data.h"
#include "server/shard/socket.h"

#define BACKLOG 4096
#define ACCEPT_BUDGET 64
#define ACCEPT_BUDGET_NS (2 * NS_PER_MS)
#define ACCEPT_RETRY_S 0.1
/* Limits on the unread data taken from a refused client before its socket is closed (discard). */
#define DISCARD_BYTES 4096
#define DISCARD_READS 4

struct arrival {
	struct arrivals *all;
	int fd;
	struct addr peer;
	struct peer_hold hold;		/* in the shard's table of addresses, PEERS_ARRIVING */
	ev_io io;
	ev_timer deadline;
	uint32_t n;			/* bytes of the proof received so far */
	uint8_t bytes[RECORD_HEADER_BYTES + PDATA_PROOF_BYTES];
	TAILQ_ENTRY(arrival) entry;	/* in `free` */
};

struct arrivals {
	struct shard *shard;
	int fd;				/* listening socket; -1: closed */
	ev_io io;
	ev_timer again;			/* resumes accepting after a shortage */
	TAILQ_HEAD(arrival_list, arrival) free;
	struct arrival slots[];
};

/* Frees the slot; the caller owns the socket from now on. */
static void forget_arrival(struct arrival *a)
{
	struct shard *s = a->all->shard;

	ev_io_stop(s->loop, &a->io);
	ev_timer_stop(s->loop, &a->deadline);
	peers_give(s->peers, PEERS_ARRIVING, &a->hold);
	TAILQ_INSERT_HEAD(&a->all->free, a, entry);
}

static void count_failure(struct shard *s, enum fail_kind kind, int code)
{
	const struct fail f = { .stage = STAGE_SOCKET_CONNECT, .kind = kind, .code = code };

	fail_table_count(&s->stats.failures, &f);
}

/* Counts a connection that ended without a proof. A connection with a proof belongs to a session, already counted. */
static void count_closed(struct shard *s, enum close_reason reason)
{
	counter_add(&s->stats.tcp_accepted, 1);
	counter_add(&s->stats.closed[reason], 1);
}

static void drop_arrival(struct arrival *a, enum fail_kind kind, int code)
{
	struct shard *s = a->all->shard;

	count_failure(s, kind, code);
	count_closed(s, CLOSE_FAILED);
	forget_arrival(a);
	close(a->fd);
}

/* Reads and drops what a client has sent after its proof: closing a socket with unread data sends RST (RFC 1122,
 * 4.2.2.13), which may destroy the refusal before the client reads it. */
static void discard(int fd)
{
	uint8_t rest[DISCARD_BYTES];

	for (int i = 0; i < DISCARD_READS; i++)
		if (recv(fd, rest, sizeof(rest), MSG_DONTWAIT) < (ssize_t)sizeof(rest))
			return;
}

static void refuse_socket(struct shard *s, int fd, enum refuse_code code)
{
	uint8_t out[RECORD_HEADER_BYTES + PDATA_REJECT_BYTES];

	count_failure(s, FAIL_REFUSED, (int)code);
	if (code < STATS_REFUSE_MAX)
		counter_add(&s->stats.refused[code], 1);
	discard(fd);
	record_encode(&(struct record){ .kind = RECORD_REJECT, .bytes = PDATA_REJECT_BYTES }, out);
	pdata_encode_reject((uint16_t)code, out + RECORD_HEADER_BYTES);
	if (send(fd, out, sizeof(out), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("shard %u: a refused client has already left", s->index);
	close(fd);
}

/* The proof is complete: gives the socket to its session, or refuses it. */
static void judge_arrival(struct arrival *a)
{
	struct shard *s = a->all->shard;
	enum refuse_code code = REFUSE_BAD_REQUEST;
	struct pdata_proof proof;
	struct record r;
	struct addr local;
	int fd = a->fd;

	forget_arrival(a);
	if (record_decode(a->bytes, PDATA_PROOF_BYTES, &r) == 0 && r.kind == RECORD_PROOF &&
	    r.bytes == PDATA_PROOF_BYTES &&
	    pdata_decode_proof(PDATA_REQUEST, a->bytes + RECORD_HEADER_BYTES, PDATA_PROOF_BYTES, &proof) == 0 &&
	    addr_of_socket(fd, &local) == 0)
		code = socket_take(s, fd, &proof, &a->peer, &local);
	if (code)
		refuse_socket(s, fd, code);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
	struct arrival *a = w->data;
	/* Read no further than the proof: what follows belongs to the connection. */
	ssize_t n = recv(a->fd, a->bytes + a->n, sizeof(a->bytes) - a->n, MSG_DONTWAIT);

	(void)loop;
	(void)revents;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_arrival(a, n == 0 || errno == ECONNRESET ? FAIL_CLOSED : FAIL_ERRNO, n == 0 ||
			     errno == ECONNRESET ? 0 : errno);
		return;
	}
	a->n += (uint32_t)n;
	if (a->n == sizeof(a->bytes))
		judge_arrival(a);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	drop_arrival(w->data, FAIL_TIMEOUT, 0);
}

/* If the new connection took the last slot, closes the oldest connection of the address that has the most, counting the
 * new one. So an address loses none to an address that has as many. The new connection itself stays: it is the youngest
 * of its address, and its address ranks last among those with as many. */
static void make_room(struct arrivals *all)
{
	struct shard *s = all->shard;
	struct arrival *a;

	if (!TAILQ_EMPTY(&all->free))
		return;
	a = (struct arrival *)((char *)peers_oldest(s->peers, PEERS_ARRIVING) - offsetof(struct arrival, hold));
	count_closed(s, CLOSE_CROWDED_OUT);
	forget_arrival(a);
	close(a->fd);
}

static void receive(struct arrivals *all, int fd, const struct sockaddr_storage *from)
{
	struct shard *s = all->shard;
	struct arrival *a = TAILQ_FIRST(&all->free);

	if (addr_from_sockaddr((const struct sockaddr *)from, &a->peer) ||
	    !peers_take(s->peers, PEERS_ARRIVING, addr_network(&a->peer), &a->hold, UINT32_MAX)) {
		close(fd);
		return;
	}
	TAILQ_REMOVE(&all->free, a, entry);
	a->fd = fd;
	a->n = 0;
	ev_io_init(&a->io, on_readable, fd, EV_READ);
	a->io.data = a;
	ev_io_start(s->loop, &a->io);
	ev_timer_init(&a->deadline, on_deadline, (double)s->cfg->handshake_timeout_ns / 1e9, 0.);
	a->deadline.data = a;
	ev_timer_start(s->loop, &a->deadline);
	make_room(all);
	on_readable(s->loop, &a->io, EV_READ);
}

static void on_again(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct arrivals *all = w->data;

	(void)revents;
	ev_io_start(loop, &all->io);
}

/* Stops accepting for ACCEPT_RETRY_S, because descriptors or memory are short until some connection ends. */
static void pause_accepting(struct arrivals *all, int err)
{
	struct shard *s = all->shard;

	ev_io_stop(s->loop, &all->io);
	ev_timer_set(&all->again, ACCEPT_RETRY_S, 0.);
	ev_timer_start(s->loop, &all->again);
	listen_log_shortage(s, "over TCP", err);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
	struct arrivals *all = w->data;
	uint64_t until_ns = clock_now_ns() + ACCEPT_BUDGET_NS;

	(void)loop;
	(void)revents;
	for (int i = 0; i < ACCEPT_BUDGET && clock_now_ns() < until_ns; i++) {
		struct sockaddr_storage ss;
		socklen_t len = sizeof(ss);
		int fd = accept4(all->fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			receive(all, fd, &ss);
		} else {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				pause_accepting(all, errno);
			return;
		}
	}
}

/* Makes one slot more than --max-handshakes: make_room keeps one free for the next connection. */
static int make_slots(struct shard *s)
{
	uint32_t n = (uint32_t)s->cfg->max_handshakes + 1;
	struct arrivals *all = calloc(1, sizeof(*all) + n * sizeof(all->slots[0]));

	if (!all)
		return -ENOMEM;
	all->shard = s;
	all->fd = -1;
	TAILQ_INIT(&all->free);
	for (uint32_t i = 0; i < n; i++) {
		all->slots[i].all = all;
		TAILQ_INSERT_TAIL(&all->free, &all->slots[i], entry);
	}
	s->arrivals = all;
	return 0;
}

int arrive_open(struct shard *s, char *err, size_t err_size)
{
	struct addr a = s->rail->addr;
	socklen_t len = sizeof(a.ss);
	char text[ADDR_TEXT_MAX];
	int one = 1, ret = make_slots(s), fd;

	if (ret)
		return ret;
	addr_set_port(&a, s->cfg->rdma_port ? (uint16_t)(s->cfg->rdma_port + s->index) : 0);
	fd = socket(a.ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	s->arrivals->fd = fd;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&a.ss, a.len) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&a.ss, &len)) {
		ret = -errno;
		snprintf(err, err_size, "cannot listen on %s (TCP): %s; %s", addr_text(&a, text), strerror(-ret),
			 ret == -EADDRINUSE ? "another program has this port: choose another with --rdma-port, or "
			 "leave tcp out of --transports" : "check --bind");
		return ret;
	}
	s->tcp_port = addr_port(&a);
	return 0;
}

void arrive_start(struct shard *s)
{
	struct arrivals *all = s->arrivals;

	if (!all)
		return;
	ev_io_init(&all->io, on_accept, all->fd, EV_READ);
	all->io.data = all;
	ev_io_start(s->loop, &all->io);
	ev_timer_init(&all->again, on_again, 0., 0.);
	all->again.data = all;
}

void arrive_close(struct shard *s)
{
	struct arrivals *all = s->arrivals;
	struct peer_hold *h;

	if (!all || all->fd < 0)
		return;
	ev_io_stop(s->loop, &all->io);
	ev_timer_stop(s->loop, &all->again);
	close(all->fd);
	all->fd = -1;
	while ((h = peers_oldest(s->peers, PEERS_ARRIVING))) {
		struct arrival *a = (struct arrival *)((char *)h - offsetof(struct arrival, hold));

		forget_arrival(a);
		close(a->fd);
	}
}

void arrive_free(struct shard *s)
{
	free(s->arrivals);
	s->arrivals = NULL;
}
