/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/tls_socket.c. The peer's end of a SOCK_SEQPACKET pair receives what one send sent, no
 * more and no less, so that the sends can be counted. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tls/tls_socket.h"

#define MUCH_BYTES (TLS_SOCKET_HELD_BYTES + 1)
#define SENDS_MAX 100000

static BIO_METHOD *method;
static BIO *bio;
static struct tls_socket under_test;
static int ours, peers;
static char much[MUCH_BYTES], seen[2 * MUCH_BYTES];

static int new_bio(void)
{
	under_test = (struct tls_socket){ 0 };
	method = tls_socket_method();
	bio = method ? tls_socket_bio(method, &under_test, ours) : NULL;
	memset(much, 'm', sizeof(much));
	return bio ? 0 : -1;
}

static int open_pair(int type)
{
	int fds[2];

	if (socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		return -1;
	ours = fds[0];
	peers = fds[1];
	return new_bio();
}

static int set_up(void **state)
{
	(void)state;
	return open_pair(SOCK_SEQPACKET);
}

static int set_up_stream(void **state)
{
	(void)state;
	return open_pair(SOCK_STREAM);
}

static int set_up_tcp(void **state)
{
	int fds[2];

	(void)state;
	unit_connect_tcp(fds);
	ours = fds[0];
	peers = fds[1];
	return new_bio();
}

static void hang_up_peer(void)
{
	if (peers >= 0)
		close(peers);
	peers = -1;
}

static void hang_up_ours(void)
{
	if (ours >= 0)
		close(ours);
	ours = -1;
}

static int tear_down(void **state)
{
	(void)state;
	BIO_free(bio);
	BIO_meth_free(method);
	hang_up_ours();
	hang_up_peer();
	return 0;
}

static void write_text(const char *text)
{
	assert_int_equal(BIO_write(bio, text, (int)strlen(text)), strlen(text));
}

static void assert_peer_gets(const char *text)
{
	ssize_t n = recv(peers, seen, sizeof(seen), 0);

	assert_int_equal(n, strlen(text));
	assert_memory_equal(seen, text, (size_t)n);
}

static void assert_peer_gets_nothing(void)
{
	assert_int_equal(recv(peers, seen, sizeof(seen), 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static void assert_wants_to_read(int ret)
{
	assert_int_equal(ret, -1);
	assert_true(BIO_should_retry(bio));
	assert_true(BIO_should_read(bio));
	assert_false(BIO_should_write(bio));
}

static void assert_wants_to_write(int ret)
{
	assert_int_equal(ret, -1);
	assert_true(BIO_should_retry(bio));
	assert_true(BIO_should_write(bio));
	assert_false(BIO_should_read(bio));
}

/* Until the socket takes no more. */
static void fill_socket(void)
{
	int n = 0;

	while (n < SENDS_MAX && send(ours, much, sizeof(much), 0) > 0)
		n++;
	assert_in_range(n, 1, SENDS_MAX - 1);
	assert_int_equal(errno, EAGAIN);
}

static void drain_peer(void)
{
	while (recv(peers, seen, sizeof(seen), 0) > 0)
		;
}

#define SOCKET_TEST(f) TEST_WITH(f, set_up, tear_down)

SOCKET_TEST(write__small__held_through_the_flush_of_openssl)
{
	write_text("a");
	assert_int_equal(BIO_flush(bio), 1);
	assert_int_equal(BIO_wpending(bio), 1);
	assert_peer_gets_nothing();
}

SOCKET_TEST(flush__several_held__one_send)
{
	write_text("ticket,");
	write_text("grant,");
	write_text("bye");
	assert_int_equal(tls_socket_flush(&under_test, false), 0);
	assert_peer_gets("ticket,grant,bye");
	assert_int_equal(BIO_wpending(bio), 0);
}

SOCKET_TEST(flush__nothing_held__nothing_sent)
{
	assert_int_equal(tls_socket_flush(&under_test, false), 0);
	assert_int_equal(tls_socket_flush(&under_test, true), 0);
	assert_peer_gets_nothing();
}

static void assert_peer_is_told(int events)
{
	struct pollfd p = { .fd = peers, .events = (short)events };

	assert_int_equal(poll(&p, 1, 2000), 1);
}

#define TCP_TEST(f) TEST_WITH(f, set_up_tcp, tear_down)

TCP_TEST(flush__last_before_the_close__arrives_with_the_end)
{
	write_text("bye");
	assert_int_equal(tls_socket_flush(&under_test, true), 0);
	assert_int_equal(BIO_wpending(bio), 0);
	hang_up_ours();
	assert_peer_is_told(POLLRDHUP);
	assert_peer_gets("bye");
	assert_int_equal(recv(peers, seen, sizeof(seen), 0), 0);
}

SOCKET_TEST(flush__peer_gone__error_for_good)
{
	write_text("a");
	hang_up_peer();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tls_socket_flush(&under_test, false), -EPIPE);
		assert_int_equal(BIO_wpending(bio), 0);
	}
	assert_int_equal(BIO_write(bio, "b", 1), -1);
	assert_int_equal(errno, EPIPE);
	assert_false(BIO_should_retry(bio));
}

/* The socket itself says it once and then "the end", which would look like an orderly close. */
TCP_TEST(read__connection_reset_under_a_write__reset_not_the_end)
{
	struct linger now = { .l_onoff = 1 };
	char byte;

	assert_int_equal(setsockopt(peers, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	hang_up_peer();
	assert_int_equal(poll(&(struct pollfd){ .fd = ours, .events = POLLIN }, 1, 2000), 1);
	write_text("ask");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(BIO_read(bio, &byte, 1), -1);
		assert_int_equal(errno, ECONNRESET);
		assert_false(BIO_should_retry(bio));
		assert_false(BIO_eof(bio));
	}
}

SOCKET_TEST(flush__socket_full__held_on_in_order)
{
	fill_socket();
	write_text("a");
	assert_int_equal(tls_socket_flush(&under_test, false), -EAGAIN);
	write_text("b");
	drain_peer();
	assert_int_equal(tls_socket_flush(&under_test, false), 0);
	assert_peer_gets("ab");
}

SOCKET_TEST(read__something_held__sent_before)
{
	char byte;

	write_text("ask");
	assert_wants_to_read(BIO_read(bio, &byte, 1));
	assert_peer_gets("ask");
}

/* With both sockets full, neither end would go on if it did not read before it has written. */
SOCKET_TEST(read__socket_full__reads_and_then_waits_to_write)
{
	char byte = 0;

	fill_socket();
	write_text("ask");
	assert_int_equal(send(peers, "x", 1, 0), 1);
	assert_int_equal(BIO_read(bio, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_wants_to_write(BIO_read(bio, &byte, 1));
	drain_peer();
	assert_wants_to_read(BIO_read(bio, &byte, 1));
	assert_peer_gets("ask");
}

SOCKET_TEST(read__socket_full_and_the_peer_has_ended__the_end)
{
	char byte;

	fill_socket();
	write_text("ask");
	assert_int_equal(shutdown(peers, SHUT_WR), 0);
	assert_int_equal(BIO_read(bio, &byte, 1), 0);
	assert_true(BIO_eof(bio));
}

SOCKET_TEST(read__more_came_than_is_asked_for__the_rest_without_the_socket)
{
	char words[8] = "";

	assert_int_equal(send(peers, "one,two", 7, 0), 7);
	assert_int_equal(BIO_read(bio, words, 4), 4);
	assert_string_equal(words, "one,");
	hang_up_peer();
	assert_int_equal(BIO_read(bio, words, sizeof(words)), 3);
	assert_memory_equal(words, "two", 3);
	assert_false(BIO_eof(bio));
	assert_int_equal(BIO_read(bio, words, sizeof(words)), 0);
	assert_true(BIO_eof(bio));
}

SOCKET_TEST(read__paused__nothing_until_it_goes_on)
{
	char word[4] = "";

	assert_int_equal(send(peers, "one", 3, 0), 3);
	under_test.paused = true;
	assert_wants_to_read(BIO_read(bio, word, 3));
	assert_false(under_test.empty);
	under_test.paused = false;
	assert_int_equal(BIO_read(bio, word, 3), 3);
	assert_string_equal(word, "one");
	assert_wants_to_read(BIO_read(bio, word, 3));
	assert_true(under_test.empty);
}

SOCKET_TEST(read__peer_gone__its_last_words_then_the_end)
{
	char words[4] = "";

	assert_int_equal(send(peers, "why", 3, 0), 3);
	hang_up_peer();
	assert_int_equal(BIO_read(bio, words, 3), 3);
	assert_string_equal(words, "why");
	assert_false(BIO_eof(bio));
	assert_int_equal(BIO_read(bio, words, 3), 0);
	assert_true(BIO_eof(bio));
	assert_false(BIO_should_retry(bio));
}

SOCKET_TEST(read__peer_gone_and_something_held__last_words_then_the_error)
{
	char words[4] = "";

	assert_int_equal(send(peers, "why", 3, 0), 3);
	hang_up_peer();
	write_text("ask");
	assert_int_equal(BIO_read(bio, words, 3), 3);
	assert_string_equal(words, "why");
	assert_int_equal(BIO_read(bio, words, 3), -1);
	assert_int_equal(errno, EPIPE);
	assert_false(BIO_should_retry(bio));
	assert_false(BIO_eof(bio));
}

/* Waiting to read would be waiting for ever: the peer was never asked. */
SOCKET_TEST(read__nothing_to_read_after_a_failed_send__that_error)
{
	char byte;

	write_text("ask");
	assert_int_equal(shutdown(ours, SHUT_WR), 0);
	assert_int_equal(BIO_read(bio, &byte, 1), -1);
	assert_int_equal(errno, EPIPE);
	assert_false(BIO_should_retry(bio));
}

SOCKET_TEST(write__fills_what_is_left__held)
{
	write_text("a");
	assert_int_equal(BIO_write(bio, much, TLS_SOCKET_HELD_BYTES - 1), TLS_SOCKET_HELD_BYTES - 1);
	assert_int_equal(BIO_wpending(bio), TLS_SOCKET_HELD_BYTES);
	assert_peer_gets_nothing();
}

SOCKET_TEST(write__fits_only_alone__what_was_held_goes_out)
{
	write_text("a");
	assert_int_equal(BIO_write(bio, much, TLS_SOCKET_HELD_BYTES), TLS_SOCKET_HELD_BYTES);
	assert_peer_gets("a");
	assert_peer_gets_nothing();
	assert_int_equal(BIO_wpending(bio), TLS_SOCKET_HELD_BYTES);
}

SOCKET_TEST(write__fits_not_at_all__goes_out_behind)
{
	write_text("a");
	assert_int_equal(BIO_write(bio, much, MUCH_BYTES), MUCH_BYTES);
	assert_peer_gets("a");
	assert_int_equal(recv(peers, seen, sizeof(seen), 0), MUCH_BYTES);
	assert_memory_equal(seen, much, MUCH_BYTES);
	assert_int_equal(BIO_wpending(bio), 0);
}

SOCKET_TEST(write__does_not_fit_and_socket_full__waits_to_write)
{
	fill_socket();
	assert_wants_to_write(BIO_write(bio, much, MUCH_BYTES));
	write_text("a");
	assert_wants_to_write(BIO_write(bio, much, TLS_SOCKET_HELD_BYTES));
	drain_peer();
	assert_int_equal(BIO_write(bio, much, TLS_SOCKET_HELD_BYTES), TLS_SOCKET_HELD_BYTES);
	assert_peer_gets("a");
}

SOCKET_TEST(write__does_not_fit_and_peer_gone__error)
{
	write_text("a");
	hang_up_peer();
	assert_int_equal(BIO_write(bio, much, MUCH_BYTES), -1);
	assert_int_equal(errno, EPIPE);
	assert_false(BIO_should_retry(bio));
}

TEST_WITH(write__stream_takes_a_part__says_how_much, set_up_stream, tear_down)
{
	static char huge[16 << 20];
	int n = BIO_write(bio, huge, sizeof(huge));

	assert_in_range(n, 1, sizeof(huge) - 1);
}
