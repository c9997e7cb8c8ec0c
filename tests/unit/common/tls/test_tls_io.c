/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/tls_io.c: both ends on one loop, over a socket pair or loopback. */
#include "tests/unit/helpers/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tls/tls_io.h"
#include "tests/unit/helpers/certs.h"

#define WAITS_MAX 200

struct end {
	struct tls_io io;
	struct tls_ctx *ctx;
	int ready;	/* calls of on_ready */
	counter in, out;
};

static struct certs certs;
static struct ev_loop *loop;
static ev_timer tick;	/* bounds every wait: 20 ms */
static struct end server, client;

static int group_set_up(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return certs_make(&certs);
}

static int group_tear_down(void **state)
{
	(void)state;
	certs_remove(&certs);
	return 0;
}

static void on_tick(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
}

static void on_ready(void *owner)
{
	((struct end *)owner)->ready++;
}

static void make_end(struct end *e, const struct tls_config *cfg)
{
	char err[300] = "";

	memset(e, 0, sizeof(*e));
	if (tls_ctx_new(cfg, &e->ctx, err, sizeof(err)))
		fail_msg("%s", err);
	tls_io_init(&e->io, loop, on_ready, e, &e->in, &e->out);
}

static int set_up(void **state)
{
	struct tls_config at_server = { .server = true, .cert_file = certs.server_cert,
					.key_file = certs.server_key };
	struct tls_config at_client = { .ca_file = certs.ca };

	(void)state;
	loop = ev_loop_new(EVFLAG_AUTO);
	ev_timer_init(&tick, on_tick, 0.02, 0.02);
	ev_timer_start(loop, &tick);
	make_end(&server, &at_server);
	make_end(&client, &at_client);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tls_io_close(&client.io);
	tls_io_close(&server.io);
	tls_io_close(&server.io);
	tls_ctx_free(client.ctx);
	tls_ctx_free(server.ctx);
	ev_loop_destroy(loop);
	return 0;
}

#define until(condition) \
	do { \
		for (int waits_ = 0; waits_ < WAITS_MAX && !(condition); waits_++) \
			ev_run(loop, EVRUN_ONCE); \
		assert_true(condition); \
	} while (0)

/* The status of `call` for `e`, called again each time its watcher says so, and never else. */
#define finish(e, call) \
	({ \
		enum tls_io_status st_; \
		while ((st_ = (call)) == TLS_IO_WAIT) { \
			int ready_ = (e)->ready; \
			until((e)->ready > ready_); \
		} \
		st_; \
	})

static void connect_pair(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(tls_io_accept(&server.io, server.ctx, fds[0]), 0);
	client.io.fd = fds[1];
	assert_true(tls_io_is_open(&client.io));
	assert_int_equal(tls_io_start(&client.io, client.ctx, "127.0.0.1"), 0);
}

static void shake_hands(void)
{
	enum tls_io_status here = TLS_IO_WAIT, there = TLS_IO_WAIT;

	for (int i = 0; i < WAITS_MAX && (here == TLS_IO_WAIT || there == TLS_IO_WAIT); i++) {
		if (here == TLS_IO_WAIT)
			here = tls_io_handshake(&client.io);
		/* The client's last flight waits for its first frame otherwise. */
		if (here == TLS_IO_DONE)
			assert_int_equal(tls_io_flush(&client.io), TLS_IO_DONE);
		if (there == TLS_IO_WAIT)
			there = tls_io_handshake(&server.io);
	}
	assert_int_equal(here, TLS_IO_DONE);
	assert_int_equal(there, TLS_IO_DONE);
}

static void open_session(void)
{
	connect_pair();
	shake_hands();
}

/* The frame of `n` bytes that is in `e`. */
static void send_frame(struct end *e, size_t n)
{
	tls_io_put(&e->io, n);
	assert_int_equal(finish(e, tls_io_write(&e->io)), TLS_IO_DONE);
	assert_int_equal(finish(e, tls_io_flush(&e->io)), TLS_IO_DONE);
}

static enum tls_io_status read_frame(struct end *e, uint32_t max_bytes, struct frame_header *h)
{
	enum tls_io_status st = tls_io_read_header(&e->io, max_bytes, h);

	return st == TLS_IO_DONE ? tls_io_read_frame(&e->io, h) : st;
}

static void ask(enum control_what what)
{
	send_frame(&client, frame_encode_control(what, tls_io_frame(&client.io)));
}

/* The server must read a request for `what`. */
static void hear(enum control_what what)
{
	struct frame_header h;
	struct frame_control got;
	const char *why = "";

	assert_int_equal(finish(&server, read_frame(&server, FRAME_FROM_CLIENT_MAX, &h)), TLS_IO_DONE);
	assert_int_equal(h.type, FRAME_CONTROL);
	assert_int_equal(frame_decode_control(server.io.frame, h.length, &got, &why), 0);
	assert_int_equal(got.what, what);
}

static void assert_failed(const struct end *e, enum fail_kind kind, int code)
{
	assert_int_equal(e->io.failure.kind, kind);
	assert_int_equal(e->io.failure.code, code);
}

TEST(frame__each_way__whole_and_counted)
{
	static const char words[] = "no room for more";
	struct frame_header h;
	struct frame_refuse r;
	const char *why = "";

	open_session();
	ask(CONTROL_MARK);
	hear(CONTROL_MARK);
	assert_int_equal(counter_get(&client.out), FRAME_CONTROL_BYTES);
	assert_int_equal(counter_get(&server.in), FRAME_CONTROL_BYTES);
	send_frame(&server, frame_encode_refuse(REFUSE_FULL, words, tls_io_frame(&server.io)));
	assert_int_equal(finish(&client, read_frame(&client, TLS_IO_FRAME_BYTES, &h)), TLS_IO_DONE);
	assert_int_equal(frame_decode_refuse(client.io.frame, h.length, &r, &why), 0);
	assert_int_equal(r.code, REFUSE_FULL);
	assert_string_equal(r.text, words);
	assert_int_equal(counter_get(&server.out), h.length);
	assert_int_equal(counter_get(&client.in), h.length);
	/* The session is open for more. */
	ask(CONTROL_INFO);
	hear(CONTROL_INFO);
	assert_int_equal(counter_get(&server.in), 2 * FRAME_CONTROL_BYTES);
}

TEST(frame__two_at_once__one_after_the_other)
{
	open_session();
	ask(CONTROL_STATS);
	ask(CONTROL_INFO);
	hear(CONTROL_STATS);
	hear(CONTROL_INFO);
}

/* Nothing more comes from the socket, whose bytes were all read ahead. */
TEST(frame__in_more_records_than_a_turn_allows__goes_on_by_itself)
{
	uint8_t request[FRAME_CONTROL_BYTES];
	size_t n = frame_encode_control(CONTROL_MARK, request), put;
	struct frame_header h;

	open_session();
	for (size_t i = 0; i < n; i++)
		assert_int_equal(tls_write(client.io.tls, &request[i], 1, &put), TLS_DONE);
	assert_int_equal(tls_io_flush(&client.io), TLS_IO_DONE);
	assert_int_equal(read_frame(&server, FRAME_FROM_CLIENT_MAX, &h), TLS_IO_WAIT);
	assert_false(ev_is_active(&server.io.watcher));
	until(server.ready > 0);
	hear(CONTROL_MARK);
}

TEST(frame__longest_report__in_pieces_through_a_full_socket)
{
	const size_t n = FRAME_REPORT_BYTES_MAX;
	uint8_t *report = malloc(n);
	enum tls_io_status there = TLS_IO_WAIT, here = TLS_IO_WAIT;
	struct frame_header h = { 0 };
	int waits_to_write = 0;

	assert_non_null(report);
	frame_encode_report_header((uint32_t)(n - FRAME_HEADER_BYTES), report);
	for (size_t i = FRAME_HEADER_BYTES; i < n; i++)
		report[i] = (uint8_t)(i * 7);
	open_session();
	tls_io_put_heap(&server.io, report, n);
	assert_true(server.io.writing);
	for (int i = 0; i < 10000 && here == TLS_IO_WAIT; i++) {
		if (there == TLS_IO_WAIT)
			there = tls_io_write(&server.io);
		waits_to_write += there == TLS_IO_WAIT && server.io.watcher.events == EV_WRITE;
		here = read_frame(&client, FRAME_REPORT_BYTES_MAX, &h);
	}
	assert_int_equal(there, TLS_IO_DONE);
	assert_int_equal(here, TLS_IO_DONE);
	assert_false(server.io.writing);
	assert_true(waits_to_write > 0);
	assert_int_equal(h.length, n);
	for (size_t i = FRAME_HEADER_BYTES; i < n; i++)
		if (client.io.frame[i] != (uint8_t)(i * 7))
			fail_msg("byte %zu differs", i);
	assert_int_equal(counter_get(&server.out), n);
	assert_int_equal(counter_get(&client.in), n);
	/* The memory of the long frame is given back; a short one follows. */
	ask(CONTROL_STATS);
	assert_ptr_equal(client.io.frame, client.io.small);
	hear(CONTROL_STATS);
}

TEST(frame__closed_in_the_middle__memory_given_back)
{
	uint8_t *report = malloc(FRAME_REPORT_BYTES_MAX);
	struct frame_header h;

	assert_non_null(report);
	memset(report, 'x', FRAME_REPORT_BYTES_MAX);
	frame_encode_report_header(FRAME_REPORT_BYTES_MAX - FRAME_HEADER_BYTES, report);
	open_session();
	tls_io_put_heap(&server.io, report, FRAME_REPORT_BYTES_MAX);
	assert_int_equal(tls_io_write(&server.io), TLS_IO_WAIT);
	assert_int_equal(read_frame(&client, FRAME_REPORT_BYTES_MAX, &h), TLS_IO_WAIT);
	assert_ptr_not_equal(client.io.frame, client.io.small);
	tls_io_close(&server.io);
	tls_io_close(&client.io);
	assert_ptr_equal(client.io.frame, client.io.small);
	assert_false(tls_io_is_open(&client.io));
	assert_false(ev_is_active(&client.io.watcher));
}

TEST(frame__header_not_allowed__failed_and_an_answer_may_follow)
{
	static const uint8_t headers[][FRAME_HEADER_BYTES] = {
		{ 0, 0, 0, 7, 1, 4, 0, 0 },
		{ 0, 0, 0, FRAME_FROM_CLIENT_MAX + 1, 1, 4, 0, 0 },
		{ 255, 255, 255, 255, 1, 4, 0, 0 },
		{ 0, 0, 0, 12, 1, 4, 0, 1 },
	};

	for (size_t i = 0; i < N_ELEMENTS(headers); i++) {
		struct frame_header h;

		open_session();
		memcpy(tls_io_frame(&client.io), headers[i], FRAME_HEADER_BYTES);
		send_frame(&client, FRAME_HEADER_BYTES);
		assert_int_equal(finish(&server, read_frame(&server, FRAME_FROM_CLIENT_MAX, &h)), TLS_IO_FAILED);
		assert_failed(&server, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		send_frame(&server, frame_encode_refuse(REFUSE_BAD_REQUEST, "", tls_io_frame(&server.io)));
		assert_int_equal(finish(&client, read_frame(&client, TLS_IO_FRAME_BYTES, &h)), TLS_IO_DONE);
		assert_int_equal(h.type, FRAME_REFUSE);
		tear_down(state);
		set_up(state);
	}
}

TEST(bye__both_say_it__answered)
{
	struct frame_header h;

	open_session();
	assert_false(tls_io_is_bye_answered(&server.io));
	assert_int_equal(server.io.watcher.events, EV_READ);
	assert_int_equal(finish(&client, read_frame(&client, TLS_IO_FRAME_BYTES, &h)), TLS_IO_FAILED);
	assert_failed(&client, FAIL_CLOSED, 0);
	assert_false(tls_io_is_bye_answered(&server.io));
	tls_io_say_bye(&client.io);
	tls_io_close(&client.io);
	until(server.ready > 0);
	assert_true(tls_io_is_bye_answered(&server.io));
}

TEST(bye__peer_goes_on_talking__not_waited_for)
{
	open_session();
	ask(CONTROL_STATS);
	until(server.ready > 0);
	assert_true(tls_io_is_bye_answered(&server.io));
}

TEST(handshake__peer_hangs_up__closed)
{
	connect_pair();
	assert_int_equal(tls_io_handshake(&server.io), TLS_IO_WAIT);
	tls_io_close(&client.io);
	assert_int_equal(finish(&server, tls_io_handshake(&server.io)), TLS_IO_FAILED);
	assert_failed(&server, FAIL_CLOSED, 0);
}

TEST(handshake__peer_speaks_something_else__tls_failure_in_words)
{
	static const char line[] = "GET / HTTP/1.1\r\n\r\n";

	connect_pair();
	assert_true(send(tls_fd(client.io.tls), line, sizeof(line), 0) > 0);
	assert_int_equal(finish(&server, tls_io_handshake(&server.io)), TLS_IO_FAILED);
	assert_int_equal(server.io.failure.kind, FAIL_TLS);
	assert_true(strlen(tls_io_failure_text(&server.io)) > 0);
	tls_io_close(&server.io);
	assert_string_equal(tls_io_failure_text(&server.io), "");
}

static int listen_at(struct addr *a)
{
	socklen_t len = sizeof(a->ss);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*a = unit_addr("127.0.0.1", 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a->ss, a->len), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a->ss, &len), 0);
	return fd;
}

TEST(connect__from_an_address__and_again_after_a_close)
{
	struct addr to, from = unit_addr("127.0.0.9", 0);
	int fd = listen_at(&to);

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		int ready = client.ready, accepted;

		assert_int_equal(tls_io_connect(&client.io, &to, &from), 0);
		assert_true(tls_io_is_open(&client.io));
		until(client.ready > ready);
		assert_int_equal(tls_io_connected(&client.io), 0);
		accepted = accept4(fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		assert_int_equal(ntohl(peer.sin_addr.s_addr), 0x7f000009);
		assert_int_equal(tls_io_accept(&server.io, server.ctx, accepted), 0);
		assert_int_equal(tls_io_start(&client.io, client.ctx, "127.0.0.1"), 0);
		assert_int_equal(client.io.fd, -1);
		shake_hands();
		ask(CONTROL_STATS);
		hear(CONTROL_STATS);
		tls_io_close(&client.io);
		tls_io_close(&server.io);
	}
	close(fd);
}

TEST(connect__nobody_listens__errno_when_ready)
{
	struct addr to;
	int fd = listen_at(&to);

	close(fd);
	assert_int_equal(tls_io_connect(&client.io, &to, NULL), 0);
	until(client.ready > 0);
	assert_int_equal(tls_io_connected(&client.io), -ECONNREFUSED);
}

TEST(connect__from_an_address_of_others__errno_at_once)
{
	struct addr to, from = unit_addr("192.0.2.1", 0);
	int fd = listen_at(&to);

	assert_int_equal(tls_io_connect(&client.io, &to, &from), -EADDRNOTAVAIL);
	tls_io_close(&client.io);
	assert_false(tls_io_is_open(&client.io));
	close(fd);
}

/* As a shard hands a control session over to another thread's loop. */
TEST(release__adopted_by_another__goes_on_there)
{
	struct end other = { 0 };
	struct frame_header h;

	open_session();
	ask(CONTROL_STATS);
	hear(CONTROL_STATS);
	tls_io_init(&other.io, loop, on_ready, &other, &other.in, NULL);
	tls_io_adopt(&other.io, tls_io_release(&server.io));
	assert_false(tls_io_is_open(&server.io));
	assert_false(ev_is_active(&server.io.watcher));
	assert_true(tls_io_is_open(&other.io));
	assert_int_equal(tls_io_read_header(&other.io, FRAME_FROM_CLIENT_MAX, &h), TLS_IO_WAIT);
	ask(CONTROL_INFO);
	assert_int_equal(finish(&other, read_frame(&other, FRAME_FROM_CLIENT_MAX, &h)), TLS_IO_DONE);
	assert_int_equal(h.length, FRAME_CONTROL_BYTES);
	assert_int_equal(counter_get(&other.in), FRAME_CONTROL_BYTES);
	tls_io_close(&other.io);
}

TEST(watch__nothing__no_more_calls)
{
	open_session();
	tls_io_watch(&server.io, 0);
	ask(CONTROL_STATS);
	for (int i = 0; i < 3; i++)
		ev_run(loop, EVRUN_ONCE);
	assert_int_equal(server.ready, 0);
	tls_io_watch(&server.io, EV_READ);
	until(server.ready > 0);
	hear(CONTROL_STATS);
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(group_set_up, group_tear_down)
