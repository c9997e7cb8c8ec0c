/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/shard/listen.c: what happens when accepting, or what follows it, runs out of something. */
#include "tests/unit/helpers/unit.h"

#include <dlfcn.h>
#include <errno.h>
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
	assert_true(srv.shard->accept_paused);
	before = accepts;
	server_turns(20);
	assert_int_equal(accepts, before);
	accept_errno = 0;
	srv.shard->accept_not_before_ns = clock_now_ns();
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 1);
	assert_false(srv.shard->accept_paused);
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
	assert_false(srv.shard->accept_paused);
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

/* ---- one address takes all there is */

static uint64_t crowded_out(void)
{
	return server_closed(CLOSE_CROWDED_OUT);
}

static bool is_closed(const struct peer *p)
{
	char byte;

	return recv(tls_fd(p->tls), &byte, 1, MSG_DONTWAIT) == 0;
}

/* `n` connections from the first address, as many as there may be. */
static void fill(struct peer *p, int n)
{
	srv.cfg.max_handshakes = (uint64_t)n;
	server_rig_start();
	srv.peers_from = "127.0.0.1";
	peers_connect(p, n);
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

static void abort_all(struct peer *p, int n)
{
	peers_abort(p, n);
	server_until(srv.shard->tls_open == 0);
	server_assert_all_back();
}

TEST(accept__full_of_silent_ones__another_address_gets_in_at_once)
{
	struct peer p[4], other;

	fill(p, 4);
	srv.silent_ms = 500;
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&p[0]));
	assert_true(all_open(p + 1, 3));
	assert_true(peer_handshake(&other));
	assert_int_equal(peer_say_hello(&other, 0), FRAME_GRANT);
	peer_close(&other);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	abort_all(p, 4);
}

/* The server is slow, or the peers say a byte now and then: nobody is silent, but one address has nearly all. */
TEST(accept__full_of_busy_ones__the_oldest_of_the_greediest_makes_room)
{
	struct peer p[4], other[3];

	fill(p, 4);
	srv.peers_from = "127.0.0.12";
	peers_connect(other, 3);
	/* Two each: nobody has less than the third one would have. */
	assert_int_equal(crowded_out(), 2);
	assert_true(is_closed(&p[0]) && is_closed(&p[1]));
	assert_int_equal(srv.shard->n_waiting, 1);
	assert_int_equal(srv.shard->tls_open, 4);
	peers_abort(other, 3);
	abort_all(p, 4);
}

/* None of its connections can be taken for silent, and more of its own wait. */
TEST(accept__full_of_busy_ones_and_more_wait__another_address_gets_in_at_once)
{
	struct peer p[7], other;

	fill(p, 4);
	peers_connect(p + 4, 3);
	assert_int_equal(srv.shard->n_waiting, 3);
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&p[0]));
	assert_int_equal(srv.shard->n_waiting, 3);
	assert_true(peer_handshake(&other));
	peer_abort(&other);
	abort_all(p, 7);
}

/* Each time it gets in, a busy one goes, and one of those that wait takes the place that it leaves. */
TEST(accept__another_address_comes_and_goes__few_busy_ones_are_cut)
{
	enum { PLACES = 4, ALL = 34, ROUNDS = 30 };
	struct peer p[ALL], other;
	uint64_t begun_ns, most;

	fill(p, PLACES);
	peers_connect(p + PLACES, ALL - PLACES);
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
	peer_abort(&other);
	abort_all(p, ALL);
}

/* Until one may, who wants in costs no turn anything. */
TEST(accept__no_busy_one_may_be_cut_yet__nobody_is_looked_at)
{
	struct peer p[4], other;

	fill(p, 4);
	srv.shard->cut_from_ns = clock_now_ns() + 60 * NS_PER_S;
	connect_from("127.0.0.12", &other);
	assert_int_equal(srv.shard->n_waiting, 1);
	peeks = 0;
	server_turns(20);
	assert_int_equal(peeks, 0);
	assert_int_equal(crowded_out(), 0);
	/* As if the time had come. */
	srv.shard->cut_from_ns = srv.shard->look_not_before_ns = 0;
	server_until(crowded_out() == 1);
	assert_true(is_closed(&p[0]));
	assert_true(peer_handshake(&other));
	peer_abort(&other);
	abort_all(p, 4);
}

/* They were looked at because one of their own waited, which does not make them younger. */
TEST(accept__full_of_busy_ones_that_were_looked_at__the_oldest_makes_room)
{
	struct peer p[11], other;

	fill(p, 10);
	peer_connect(&p[10]);
	server_turns(3);
	assert_int_equal(srv.shard->n_waiting, 1);
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&p[0]));
	peer_abort(&other);
	abort_all(p, 11);
}

/* Two addresses have as many, and others of the first one wait, as many as may. */
TEST(accept__list_full__the_youngest_of_the_address_that_has_most_there_goes)
{
	struct peer a[5], b, c;

	fill(a, 2);
	srv.cfg.shard_waiting = 3;
	peer_abort(&a[1]);
	server_until(srv.shard->tls_open == 1);
	connect_from("127.0.0.12", &b);
	assert_int_equal(srv.shard->tls_open, 2);
	srv.peers_from = "127.0.0.1";
	peers_connect(a + 2, 3);
	assert_int_equal(srv.shard->n_waiting, 3);
	assert_int_equal(crowded_out(), 0);
	connect_from("127.0.0.13", &c);
	assert_int_equal(srv.shard->n_waiting, 3);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&a[4]));
	/* Who has least is next, though others came before. */
	peer_abort(&b);
	server_until(srv.shard->n_waiting == 2);
	assert_true(peer_handshake(&c));
	assert_true(all_open(a + 2, 2));
	peer_abort(&c);
	peers_abort(a + 2, 3);
	abort_all(a, 1);
}

static void make_deaf(struct peer *p)
{
	struct conn *c;

	TAILQ_FOREACH(c, &srv.shard->lists[CONN_ST_TLS_ACCEPT], entry)
		if (addr_port(&c->peer) == addr_port(&p->local))
			tls_io_watch(&c->io, 0);
	begin_to_speak(p);
}

/* Of two addresses that have as many, those of the first are busy (something that they sent is not read yet). */
TEST(accept__full_of_two_addresses__the_silent_one_of_either_makes_room)
{
	struct peer a[4], b[2], other;

	fill(a, 4);
	srv.peers_from = "127.0.0.12";
	peers_abort(a + 2, 2);
	peers_connect(b, 2);
	server_until(srv.shard->tls_open == 4 && server_n(CONN_ST_TLS_ACCEPT) == 4);
	make_deaf(&a[0]);
	make_deaf(&a[1]);
	srv.silent_ms = 500;
	connect_from("127.0.0.13", &other);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&b[0]));
	assert_false(is_closed(&a[0]) || is_closed(&a[1]) || is_closed(&b[1]));
	server_turns(2);
	for (uint32_t i = 0; i < srv.cfg.shard_conns; i++)
		if (srv.shard->conns[i].state == CONN_ST_TLS_ACCEPT)
			tls_io_watch(&srv.shard->conns[i].io, EV_READ);
	peer_abort(&other);
	peers_abort(b, 2);
	abort_all(a, 2);
}

/* A storm of one host, which gets to each of its connections now and then: it loses none. */
TEST(accept__full_of_silent_ones_of_an_address_that_gets_on__all_wait)
{
	struct peer p[6], other;

	fill(p, 4);
	assert_true(peer_handshake(&p[3]));
	srv.silent_ms = 700;
	peers_connect(p + 4, 2);
	make_deaf(&p[5]);
	srv.shard->look_not_before_ns = 0;
	server_turns(3);
	assert_int_equal(srv.shard->n_waiting, 2);
	assert_int_equal(crowded_out(), 0);
	/* Another address that wants in has nothing to do with that. */
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	/* As if nothing of it had got on for long. */
	peers_note_progress(srv.shard->peers, addr_network(&server_only(CONN_ST_HELLO)->peer), 1);
	srv.shard->look_not_before_ns = 0;
	server_until(crowded_out() > 1);
	srv.silent_ms = 0;
	peer_abort(&other);
	abort_all(p, 6);
}

/* One host comes with ten times as many as there is room for, and has no time for any of them but one. */
TEST(accept__storm_of_one_address__all_get_their_turn)
{
	enum { PLACES = 4, ALL = 40 };
	struct peer p[ALL];

	fill(p, PLACES);
	assert_true(peer_handshake(&p[0]));
	srv.silent_ms = 600;
	peers_connect(p + PLACES, ALL - PLACES);
	assert_int_equal(srv.shard->n_waiting, ALL - PLACES);
	for (int i = 0; i < ALL; i++) {
		srv.shard->look_not_before_ns = 0;
		assert_true(i == 0 || peer_handshake(&p[i]));
		peer_abort(&p[i]);
	}
	assert_int_equal(crowded_out(), 0);
	assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), ALL);
	server_assert_all_back();
}

/* One host that makes more connections than there is room for waits, and loses none. */
TEST(accept__full_and_more_of_the_same_address__waits)
{
	struct peer p[6];

	fill(p, 4);
	peers_connect(p + 4, 2);
	server_turns(20);
	assert_int_equal(srv.shard->n_waiting, 2);
	assert_int_equal(crowded_out(), 0);
	assert_true(all_open(p, 6));
	for (int i = 0; i < 6; i++) {
		assert_true(peer_handshake(&p[i]));
		peer_abort(&p[i]);
	}
	assert_int_equal(crowded_out(), 0);
	assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), 6);
	server_assert_all_back();
}

TEST(accept__full_of_silent_ones__of_one_address_the_silent_give_way)
{
	struct peer p[4], silent, busy;

	fill(p, 4);
	srv.silent_ms = 500;
	peer_connect(&silent);
	server_until(crowded_out() == 1);
	assert_true(is_closed(&silent));
	/* One that has said something takes the place of one that has not. */
	srv.silent_ms = 0;
	peer_connect(&busy);
	assert_int_equal(srv.shard->n_waiting, 1);
	begin_to_speak(&busy);
	srv.silent_ms = 500;
	srv.shard->look_not_before_ns = 0;
	server_until(crowded_out() == 2);
	assert_true(is_closed(&p[0]));
	assert_false(is_closed(&busy));
	peer_abort(&silent);
	peer_abort(&busy);
	abort_all(p, 4);
}

/* It has said something that the server has not read yet: it is the server who is slow. */
TEST(accept__silent_since_it_was_told_nothing__stays)
{
	struct peer p[2], other;
	struct conn *c;

	fill(p, 2);
	c = TAILQ_FIRST(&srv.shard->lists[CONN_ST_TLS_ACCEPT]);
	tls_io_watch(&c->io, 0);
	begin_to_speak(&p[0]);
	srv.silent_ms = 500;
	connect_from("127.0.0.12", &other);
	assert_int_equal(crowded_out(), 1);
	assert_false(is_closed(&p[0]));
	assert_true(is_closed(&p[1]));
	tls_io_watch(&c->io, EV_READ);
	peer_abort(&other);
	abort_all(p, 2);
}

/* A byte now and then does not keep a connection whose handshake does not get on. */
TEST(accept__nothing_to_answer_for_long__gives_way)
{
	struct peer p[2], busy;

	fill(p, 2);
	peer_connect(&busy);
	begin_to_speak(&busy);
	server_turns(5);
	assert_int_equal(crowded_out(), 0);
	srv.untold_ms = 1000;
	srv.shard->look_not_before_ns = 0;
	server_until(crowded_out() == 1);
	assert_true(is_closed(&p[0]));
	peer_abort(&busy);
	abort_all(p, 2);
}

/* Its GRANT is written, and it keeps TLS open: the session is as good as before. */
TEST(accept__full_of_granted_ones__their_tls_ends_and_the_session_stays)
{
	struct peer p, other;

	fill(&p, 1);
	assert_true(peer_handshake(&p));
	assert_int_equal(peer_say_hello(&p, 0), FRAME_GRANT);
	srv.silent_ms = 500;
	connect_from("127.0.0.12", &other);
	server_turns(3);
	/* Alone it has no more than the other one would have; it is silent, and the other one, too. */
	assert_true(is_closed(&other));
	srv.silent_ms = 0;
	peer_abort(&other);
	peer_connect(&other);
	assert_int_equal(srv.shard->n_waiting, 1);
	assert_int_equal(send(tls_fd(other.tls), "\x16", 1, 0), 1);
	srv.silent_ms = 500;
	srv.shard->look_not_before_ns = 0;
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 1);
	assert_int_equal(server_n(CONN_ST_GRANTED), 1);
	peer_prove(&p);
	assert_int_equal(server_n(CONN_ST_ACCEPTING), 1);
	peer_establish(&p);
	peer_abort(&other);
	peer_abort(&p);
	peer_leave(&p);
}

/* Whose socket is ready is served in turn with the crowd, not after all of it. */
TEST(ready__many_of_one_address__another_is_served_in_turn)
{
	struct peer p[4], other;
	struct conn *c, *others;

	srv.cfg.max_handshakes = 5;
	server_rig_start();
	peers_connect(p, 4);
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
	peer_abort(&other);
	abort_all(p, 4);
}

TEST(accept__max_per_address__closed_at_once)
{
	struct peer p[3], other;

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

/* What waits for room counts. */
TEST(accept__max_per_address_and_no_room__closed_at_once)
{
	struct peer p[3];

	srv.cfg.max_handshakes = 1;
	srv.cfg.max_per_address = 2;
	server_rig_start();
	peers_connect(p, 3);
	assert_int_equal(srv.shard->n_waiting, 1);
	assert_int_equal(crowded_out(), 1);
	assert_true(is_closed(&p[2]));
	peer_abort(&p[0]);
	server_until(srv.shard->n_waiting == 0);
	assert_true(peer_handshake(&p[1]));
	peer_abort(&p[1]);
	peer_abort(&p[2]);
	server_assert_all_back();
}

TEST_EACH(setup, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
