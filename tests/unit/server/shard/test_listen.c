/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/listen.c: what happens when accepting, or what follows it, runs out of something. */
#include "tests/unit/helpers/unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "common/base/clock.h"
#include "common/tls/tls.h"
#include "server/shard/boot.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

static int accept_errno;	/* with which accept4 fails; 0: it does not */
static unsigned accepts;
static unsigned peeks;	/* looks at a connection: whether its peer has said something */
static int ssl_left;	/* TLS objects that OpenSSL has memory for; below 0: any number */

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	accepts++;
	if (accept_errno) {
		errno = accept_errno;
		return -1;
	}
	return (int)syscall(SYS_accept4, fd, addr, len, flags);
}

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
	peeks += (flags & MSG_PEEK) != 0;
	return syscall(SYS_recvfrom, fd, to, bytes, flags, NULL, NULL);
}

SSL *SSL_new(SSL_CTX *ctx)
{
	SSL *(*real)(SSL_CTX *);

	*(void **)&real = dlsym(RTLD_NEXT, "SSL_new");
	if (ssl_left == 0)
		return NULL;
	ssl_left -= ssl_left > 0;
	return real(ctx);
}

static int setup(void **state)
{
	accept_errno = 0;
	ssl_left = -1;
	return server_rig_init(state);
}

/* A client is waiting; it cannot be accepted. */
static void assert_pauses(int err)
{
	struct peer p;
	unsigned before;

	accept_errno = err;
	peer_connect(&p);
	assert_true(srv.shard->listen.paused);
	before = accepts;
	server_turns(20);
	assert_int_equal(accepts, before);
	accept_errno = 0;
	srv.shard->listen.not_before_ns = clock_now_ns();
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 1);
	assert_false(srv.shard->listen.paused);
	assert_true(peer_handshake(&p));
	peer_close(&p);
	server_assert_all_back();
}

TEST(accept__out_of_something__pauses_and_goes_on)
{
	static const int shortages[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };

	server_rig_start();
	for (size_t i = 0; i < N_ELEMENTS(shortages); i++)
		assert_pauses(shortages[i]);
}

/* The error of one connection, which accept took from the backlog. */
TEST(accept__connection_aborted__goes_on)
{
	struct peer p;

	server_rig_start();
	accept_errno = ECONNABORTED;
	peer_connect(&p);
	assert_false(srv.shard->listen.paused);
	accept_errno = 0;
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 1);
	peer_abort(&p);
	server_assert_all_back();
}

TEST(accept__no_tls_object__counted_and_closed)
{
	uint64_t started_ns = clock_now_ns(), next_line_ns = 0;
	struct peer p;
	char byte;

	server_rig_start();
	for (int i = 1; i <= 3; i++) {
		ssl_left = 1;	/* the peer's */
		peer_connect(&p);
		assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), i);
		assert_int_equal(server_failed(STAGE_TLS_HANDSHAKE, FAIL_ERRNO, ENOMEM), i);
		assert_int_equal(server_closed(CLOSE_FAILED), i);
		assert_int_equal(recv(tls_fd(p.tls), &byte, 1, 0), 0);
		peer_abort(&p);
		/* One line for all of them. */
		if (i == 1)
			next_line_ns = srv.shard->accept_log_ns;
		assert_true(next_line_ns > started_ns);
		assert_true(srv.shard->accept_log_ns == next_line_ns || clock_now_ns() - started_ns >= NS_PER_S);
	}
	ssl_left = -1;
	server_assert_all_back();
}

TEST(conn_new__no_object_free__socket_closed)
{
	struct peer p;
	struct conn *c = NULL;
	char byte;

	srv.cfg.max_handshakes = 1;
	server_rig_start();
	peer_connect(&p);
	for (uint32_t i = 1; i <= srv.cfg.shard_conns; i++) {
		bool room = i < srv.cfg.shard_conns;
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		assert_int_equal(conn_new(srv.shard, fds[0], &p.local, boot_on_ready, &c), room ? 0 : -ENOBUFS);
		if (!room)
			assert_int_equal(recv(fds[1], &byte, 1, 0), 0);
		close(fds[1]);
	}
	peer_abort(&p);
}

static uint64_t crowded_out(void)
{
	return server_closed(CLOSE_CROWDED_OUT);
}

static bool is_closed(const struct peer *p)
{
	char byte;

	return recv(tls_fd(p->tls), &byte, 1, MSG_DONTWAIT) == 0;
}

#define CROWD_MAX 40

static struct peer crowd[CROWD_MAX];	/* connections from the first address */
static int n_crowd;
static struct peer other;		/* one from another address */

static int set_up_crowd(void **state)
{
	n_crowd = 0;
	memset(crowd, 0, sizeof(crowd));
	memset(&other, 0, sizeof(other));
	return setup(state);
}

static void join_crowd(int n)
{
	peers_connect(crowd + n_crowd, n);
	n_crowd += n;
	assert_true(n_crowd <= CROWD_MAX);
}

/* Begins a crowd of `n`, as many connections as there may be. */
static void fill(int n)
{
	srv.cfg.max_handshakes = (uint64_t)n;
	server_rig_start();
	srv.peers_from = "127.0.0.1";
	join_crowd(n);
	assert_int_equal(srv.shard->tls_open, n);
}

static void connect_from(const char *address, struct peer *p)
{
	srv.peers_from = address;
	peer_connect(p);
}

/* The first bytes of a ClientHello. */
static void begin_to_speak(struct peer *p)
{
	static const char hello[] = { 22, 3, 1 };

	assert_int_equal(send(tls_fd(p->tls), hello, sizeof(hello), 0), sizeof(hello));
}

static bool all_open(const struct peer *p, int n)
{
	while (n && !is_closed(&p[n - 1]))
		n--;
	return n == 0;
}

/* All leave that have not left yet, and everything is as it was. */
static int tear_down_crowd(void **state)
{
	peer_abort(&other);
	peers_abort(crowd, n_crowd);
	server_until(srv.shard->tls_open == 0);
	server_assert_all_back();
	return server_rig_stop(state);
}

#define CROWD_TEST(f) TEST_WITH(f, set_up_crowd, tear_down_crowd)

CROWD_TEST(accept__full_of_silent_ones__another_address_gets_in_at_once)
{
	fill(4);
	srv.silent_ms = 500;
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&crowd[0]));
	assert_true(all_open(crowd + 1, 3));
	assert_true(peer_handshake(&other));
	assert_int_equal(peer_say_hello(&other, 0), FRAME_GRANT);
	peer_close(&other);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
}

/* The server is slow, or the peers say a byte now and then: nobody is silent, but one address has nearly all. */
CROWD_TEST(accept__full_of_busy_ones__the_oldest_of_the_greediest_makes_room)
{
	struct peer others[3];

	fill(4);
	srv.peers_from = "127.0.0.12";
	peers_connect(others, 3);
	/* Two each: nobody has less than the third one would have. */
	assert_int_equal(crowded_out(), 2);
	assert_true(is_closed(&crowd[0]) && is_closed(&crowd[1]));
	assert_int_equal(srv.shard->listen.n_waiting, 1);
	assert_int_equal(srv.shard->tls_open, 4);
	peers_abort(others, 3);
}

/* Making room closes only the TLS connection; the session that it granted stays. */
CROWD_TEST(accept__full_and_the_oldest_waits_for_its_next_hello__makes_room_and_keeps_its_session)
{
	fill(4);
	assert_true(peer_handshake(&crowd[0]));
	assert_int_equal(peer_say_hello(&crowd[0], FRAME_FEATURE_MORE), FRAME_GRANT);
	assert_int_equal(server_n(CONN_ST_HELLO), 1);
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_int_equal(server_n(CONN_ST_HELLO), 0);
	assert_true(all_open(crowd + 1, 3));
	assert_true(peer_handshake(&other));
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
}

/* None of its connections can be taken for silent, and more of its own wait. */
CROWD_TEST(accept__full_of_busy_ones_and_more_wait__another_address_gets_in_at_once)
{
	fill(4);
	join_crowd(3);
	assert_int_equal(srv.shard->listen.n_waiting, 3);
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&crowd[0]));
	assert_int_equal(srv.shard->listen.n_waiting, 3);
	assert_true(peer_handshake(&other));
}

/* Each time it gets in, a busy one goes, and one of those that wait takes the place that it leaves. */
CROWD_TEST(accept__another_address_comes_and_goes__few_busy_ones_are_cut)
{
	enum { PLACES = 4, ALL = 34, ROUNDS = 30 };
	uint64_t begun_ns, most;

	fill(PLACES);
	join_crowd(ALL - PLACES);
	begun_ns = clock_now_ns();
	srv.peers_from = "127.0.0.12";
	for (int i = 0; i < ROUNDS; i++) {
		peer_connect(&other);
		peer_abort(&other);
		server_turns(2);
	}
	/* 16 at once and then 50 a second. */
	most = 17 + (clock_now_ns() - begun_ns) / (20 * NS_PER_MS);
	assert_in_range(crowded_out(), 1, most);
	/* That is enough for who stays. */
	peer_shake_hands(&other);
}

/* Until one may, who wants in costs no turn anything. */
CROWD_TEST(accept__no_busy_one_may_be_cut_yet__nobody_is_looked_at)
{
	fill(4);
	srv.shard->listen.cut_from_ns = clock_now_ns() + 60 * NS_PER_S;
	connect_from("127.0.0.12", &other);
	assert_int_equal(srv.shard->listen.n_waiting, 1);
	peeks = 0;
	server_turns(20);
	assert_int_equal(peeks, 0);
	assert_int_equal(crowded_out(), 0);
	/* As if the time had come. */
	srv.shard->listen.cut_from_ns = srv.shard->listen.look_not_before_ns = 0;
	server_until(crowded_out() == 1);
	assert_true(is_closed(&crowd[0]));
	assert_true(peer_handshake(&other));
}

/* They were looked at because one of their own waited, which does not make them younger. */
CROWD_TEST(accept__full_of_busy_ones_that_were_looked_at__the_oldest_makes_room)
{
	fill(10);
	join_crowd(1);
	server_turns(3);
	assert_int_equal(srv.shard->listen.n_waiting, 1);
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&crowd[0]));
}

/* Two addresses have as many, and others of the first one wait, as many as may. */
CROWD_TEST(accept__list_full__the_youngest_of_the_address_that_has_most_there_goes)
{
	struct peer b, c;

	fill(2);
	srv.cfg.shard_waiting = 3;
	peer_abort(&crowd[1]);
	server_until(srv.shard->tls_open == 1);
	connect_from("127.0.0.12", &b);
	assert_int_equal(srv.shard->tls_open, 2);
	srv.peers_from = "127.0.0.1";
	join_crowd(3);
	assert_int_equal(srv.shard->listen.n_waiting, 3);
	assert_int_equal(crowded_out(), 0);
	connect_from("127.0.0.13", &c);
	assert_int_equal(srv.shard->listen.n_waiting, 3);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&crowd[4]));
	/* The address that has least is next, though others came before. */
	peer_abort(&b);
	server_until(srv.shard->listen.n_waiting == 2);
	assert_true(peer_handshake(&c));
	assert_true(all_open(crowd + 2, 2));
	peer_abort(&c);
	peers_abort(crowd + 2, 3);
}

static void make_deaf(struct peer *p)
{
	struct conn *c;

	TAILQ_FOREACH(c, &srv.shard->lists[CONN_ST_TLS_ACCEPT], entry)
		if (addr_port(&c->peer) == addr_port(&p->local))
			tls_io_watch(c->io, 0);
	begin_to_speak(p);
}

/* Two addresses have equally many connections; those of the first are busy: the server has not read all they sent. */
CROWD_TEST(accept__full_of_two_addresses__the_silent_one_of_either_makes_room)
{
	struct peer b[2];

	fill(4);
	srv.peers_from = "127.0.0.12";
	peers_abort(crowd + 2, 2);
	peers_connect(b, 2);
	server_until(srv.shard->tls_open == 4 && server_n(CONN_ST_TLS_ACCEPT) == 4);
	make_deaf(&crowd[0]);
	make_deaf(&crowd[1]);
	srv.silent_ms = 500;
	connect_from("127.0.0.13", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&b[0]));
	assert_false(is_closed(&crowd[0]) || is_closed(&crowd[1]) || is_closed(&b[1]));
	server_turns(2);
	for (uint32_t i = 0; i < srv.cfg.shard_conns; i++)
		if (srv.shard->conns[i].state == CONN_ST_TLS_ACCEPT)
			tls_io_watch(srv.shard->conns[i].io, EV_READ);
	peer_abort(&other);
	peers_abort(b, 2);
}

/* A storm of one host, which gets to each of its connections now and then: it loses none. */
CROWD_TEST(accept__full_of_silent_ones_of_an_address_that_gets_on__all_wait)
{
	fill(4);
	assert_true(peer_handshake(&crowd[3]));
	srv.silent_ms = 700;
	join_crowd(2);
	make_deaf(&crowd[5]);
	srv.shard->listen.look_not_before_ns = 0;
	server_turns(3);
	assert_int_equal(srv.shard->listen.n_waiting, 2);
	assert_int_equal(crowded_out(), 0);
	/* Another address that wants in has nothing to do with that. */
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	/* As if nothing of it had got on for long. */
	peers_note_progress(srv.shard->peers, addr_network(&server_only(CONN_ST_HELLO)->peer), 1);
	srv.shard->listen.look_not_before_ns = 0;
	server_until(crowded_out() > 1);
	srv.silent_ms = 0;
}

/* One host comes with ten times as many as there is room for, and has no time for any of them but one. */
CROWD_TEST(accept__storm_of_one_address__all_get_their_turn)
{
	enum { PLACES = 4, ALL = 40 };

	fill(PLACES);
	assert_true(peer_handshake(&crowd[0]));
	srv.silent_ms = 600;
	join_crowd(ALL - PLACES);
	assert_int_equal(srv.shard->listen.n_waiting, ALL - PLACES);
	for (int i = 0; i < ALL; i++) {
		srv.shard->listen.look_not_before_ns = 0;
		assert_true(i == 0 || peer_handshake(&crowd[i]));
		peer_abort(&crowd[i]);
	}
	assert_int_equal(crowded_out(), 0);
	assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), ALL);
	server_assert_all_back();
}

/* One host that makes more connections than there is room for waits, and loses none. */
CROWD_TEST(accept__full_and_more_of_the_same_address__waits)
{
	fill(4);
	join_crowd(2);
	server_turns(20);
	assert_int_equal(srv.shard->listen.n_waiting, 2);
	assert_int_equal(crowded_out(), 0);
	assert_true(all_open(crowd, 6));
	for (int i = 0; i < 6; i++) {
		assert_true(peer_handshake(&crowd[i]));
		peer_abort(&crowd[i]);
	}
	assert_int_equal(crowded_out(), 0);
	assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), 6);
	server_assert_all_back();
}

CROWD_TEST(accept__full_of_silent_ones__of_one_address_the_silent_give_way)
{
	struct peer silent, busy;

	fill(4);
	srv.silent_ms = 500;
	peer_connect(&silent);
	server_until(crowded_out() == 1);
	assert_true(is_closed(&silent));
	/* One that has said something takes the place of one that has not. */
	srv.silent_ms = 0;
	peer_connect(&busy);
	assert_int_equal(srv.shard->listen.n_waiting, 1);
	begin_to_speak(&busy);
	srv.silent_ms = 500;
	srv.shard->listen.look_not_before_ns = 0;
	server_until(crowded_out() == 2);
	assert_true(is_closed(&crowd[0]));
	assert_false(is_closed(&busy));
	peer_abort(&silent);
	peer_abort(&busy);
}

/* It has said something that the server has not read yet: it is the server who is slow. */
CROWD_TEST(accept__silent_since_it_was_told_nothing__stays)
{
	struct conn *c;

	fill(2);
	c = TAILQ_FIRST(&srv.shard->lists[CONN_ST_TLS_ACCEPT]);
	tls_io_watch(c->io, 0);
	begin_to_speak(&crowd[0]);
	srv.silent_ms = 500;
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_false(is_closed(&crowd[0]));
	assert_true(is_closed(&crowd[1]));
	tls_io_watch(c->io, EV_READ);
}

/* A byte now and then does not keep a connection whose handshake does not get on. */
CROWD_TEST(accept__nothing_to_answer_for_long__gives_way)
{
	struct peer busy;

	fill(2);
	peer_connect(&busy);
	begin_to_speak(&busy);
	server_turns(5);
	assert_int_equal(crowded_out(), 0);
	srv.untold_ms = 1000;
	srv.shard->listen.look_not_before_ns = 0;
	server_until(crowded_out() == 1);
	assert_true(is_closed(&crowd[0]));
	peer_abort(&busy);
}

/* Its GRANT is written, and it keeps TLS open: the session is as good as before. */
CROWD_TEST(accept__full_of_granted_ones__their_tls_ends_and_the_session_stays)
{
	fill(1);
	assert_true(peer_handshake(&crowd[0]));
	assert_int_equal(peer_say_hello(&crowd[0], 0), FRAME_GRANT);
	srv.silent_ms = 500;
	connect_from("127.0.0.12", &other);
	server_turns(3);
	/* Alone it has no more than the other one would have; it is silent, and the other one, too. */
	assert_true(is_closed(&other));
	srv.silent_ms = 0;
	peer_abort(&other);
	peer_connect(&other);
	assert_int_equal(srv.shard->listen.n_waiting, 1);
	assert_int_equal(send(tls_fd(other.tls), "\x16", 1, 0), 1);
	srv.silent_ms = 500;
	srv.shard->listen.look_not_before_ns = 0;
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 1);
	assert_int_equal(server_n(CONN_ST_GRANTED), 1);
	peer_prove(&crowd[0]);
	assert_int_equal(server_n(CONN_ST_ACCEPTING), 1);
	peer_establish(&crowd[0]);
	peer_abort(&other);
	peer_abort(&crowd[0]);
	peer_leave(&crowd[0]);
}

/* Whose socket is ready is served in turn with the crowd, not after all of it. */
CROWD_TEST(ready__many_of_one_address__another_is_served_in_turn)
{
	struct conn *c, *others;

	srv.cfg.max_handshakes = 5;
	server_rig_start();
	join_crowd(4);
	connect_from("127.0.0.12", &other);
	TAILQ_FOREACH(c, &srv.shard->lists[CONN_ST_TLS_ACCEPT], entry)
		conn_queue(c);
	others = TAILQ_LAST(&srv.shard->lists[CONN_ST_TLS_ACCEPT], conn_list);
	assert_int_equal(addr_port(&others->peer), addr_port(&other.local));
	assert_true(boot_serve_next(srv.shard));
	assert_true(boot_serve_next(srv.shard));
	assert_false(others->queued);
	assert_true(boot_serve_next(srv.shard));
	assert_true(boot_serve_next(srv.shard));
	assert_false(boot_serve_next(srv.shard));
}

TEST(accept__max_per_address__closed_at_once)
{
	struct peer p[3];

	srv.cfg.max_per_address = 2;
	server_rig_start();
	peers_connect(p, 3);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&p[2]));
	srv.peers_from = "127.0.0.12";
	peer_shake_hands(&other);
	peer_abort(&other);
	peer_abort(&p[0]);
	srv.peers_from = NULL;
	peer_abort(&p[2]);
	peer_shake_hands(&p[2]);
	peer_abort(&p[1]);
	peer_abort(&p[2]);
	server_assert_all_back();
}

/* Sockets that wait for room count. */
TEST(accept__max_per_address_and_no_room__closed_at_once)
{
	struct peer p[3];

	srv.cfg.max_handshakes = 1;
	srv.cfg.max_per_address = 2;
	server_rig_start();
	peers_connect(p, 3);
	assert_int_equal(srv.shard->listen.n_waiting, 1);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&p[2]));
	peer_abort(&p[0]);
	server_until(srv.shard->listen.n_waiting == 0);
	assert_true(peer_handshake(&p[1]));
	peer_abort(&p[1]);
	peer_abort(&p[2]);
	server_assert_all_back();
}

TEST_EACH(setup, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
