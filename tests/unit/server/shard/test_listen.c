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
#include "tests/unit/helpers/server_rig.h"

static int accept_errno;	/* with which accept4 fails; 0: it does not */
static unsigned accepts;
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

static void accept__out_of_something__pauses_and_goes_on(void **state)
{
	static const int shortages[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };

	(void)state;
	server_rig_start();
	for (size_t i = 0; i < N_ELEMENTS(shortages); i++)
		assert_pauses(shortages[i]);
}

/* The error of one connection, which accept took from the backlog. */
static void accept__connection_aborted__goes_on(void **state)
{
	struct peer p;

	(void)state;
	server_rig_start();
	accept_errno = ECONNABORTED;
	peer_connect(&p);
	assert_false(srv.shard->accept_paused);
	accept_errno = 0;
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 1);
	peer_abort(&p);
	server_assert_all_back();
}

static void accept__no_tls_object__counted_and_closed(void **state)
{
	uint64_t started_ns = clock_now_ns(), next_line_ns = 0;
	struct peer p;
	char byte;

	(void)state;
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

static void conn_new__no_object_free__socket_closed(void **state)
{
	struct peer p;
	struct conn *c = NULL;
	int fds[2];
	uint32_t conns;
	char byte;

	(void)state;
	srv.cfg.max_handshakes = 1;
	server_rig_start();
	conns = srv.cfg.shard_conns;
	peer_connect(&p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	for (uint32_t i = 1; i < conns; i++) {
		int more[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, more), 0);
		assert_int_equal(conn_new(srv.shard, more[0], &p.local, boot_on_ready, &c), 0);
		close(more[1]);
	}
	assert_int_equal(conn_new(srv.shard, fds[0], &p.local, boot_on_ready, &c), -ENOBUFS);
	assert_int_equal(recv(fds[1], &byte, 1, 0), 0);
	close(fds[1]);
	peer_abort(&p);
}

#define LISTEN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, server_rig_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LISTEN_TEST(accept__out_of_something__pauses_and_goes_on),
		LISTEN_TEST(accept__connection_aborted__goes_on),
		LISTEN_TEST(accept__no_tls_object__counted_and_closed),
		LISTEN_TEST(conn_new__no_object_free__socket_closed),
	};

	return cmocka_run_group_tests_name("server_listen", tests, server_rig_group_setup, server_rig_group_teardown);
}
