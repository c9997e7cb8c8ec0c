/* Unit tests of common/sock/sock.c over TCP on loopback: framing in all portions, full sockets, ends, and buffers that come
 * back. The tested end is `s`; `far` is the peer's descriptor, which these tests write and read themselves. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/sock/sock.h"

#define BUFS 16u
#define BUF_BYTES (256u << 10)

static struct ev_loop *loop;
static struct ep *ep;
static const struct sock_config config;
static struct sock_ctx *ctx;
static struct sock s;
static int far;

/* What the owner was told. */
static unsigned records, byes, ends;
static struct record last;
static enum fail_kind end_kind;
static int end_code;
static uint64_t sum;		/* of all bytes of records that came */
static uint64_t looks;		/* different ones */
static uint64_t last_look;
static bool echoes;		/* each record is sent back */
static int close_in;		/* the call, counted from 1, that closes the connection */
static bool keeps;		/* buffers of records are not given back */

static bool is_to_close(void)
{
	return close_in && --close_in == 0;
}

static void on_record(struct sock *from, uint32_t buf, const struct record *r)
{
	const uint8_t *data = ep_buf(ep, buf);

	records++;
	last = *r;
	looks += sock_look(from) != last_look;
	last_look = sock_look(from);
	for (uint32_t i = 0; i < r->bytes; i++)
		sum += data[i];
	if (echoes)
		sock_send(from, buf, r);
	else if (!keeps)
		ep_buf_put(ep, buf);
	if (is_to_close())
		sock_close(from);
}

static void on_bye(struct sock *from)
{
	byes++;
	sock_close(from);
}

static void on_end(struct sock *from, enum fail_kind kind, int code)
{
	ends++;
	end_kind = kind;
	end_code = code;
	sock_close(from);
}

static const struct sock_user user = { on_record, on_bye, on_end };

/* Both ends of a TCP connection, the second non-blocking. */
static void connect_pair(int fds[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&a, sizeof(a)), 0);
	fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fds[1] >= 0);
	close(listener);
}

static int set_up(void **state)
{
	const struct ep_config cfg = { .recv_depth = BUFS, .buf_bytes = BUF_BYTES };
	char err[256];
	int fds[2];

	(void)state;
	records = byes = ends = 0;
	sum = looks = last_look = 0;
	echoes = keeps = false;
	close_in = 0;
	loop = ev_loop_new(EVFLAG_AUTO);
	assert_int_equal(ep_new(&cfg, NULL, NULL, &ep, err, sizeof(err)), 0);
	assert_int_equal(sock_ctx_new(&config, loop, ep, &user, &ctx), 0);
	connect_pair(fds);
	far = fds[0];
	sock_init(&s, ctx);
	sock_open_plain(&s, fds[1], 0);
	return 0;
}

static int tear_down(void **state)
{
	struct ep_counts c;

	(void)state;
	sock_close(&s);
	ep_get_counts(ep, &c);
	assert_int_equal(c.bufs_free, keeps ? 0 : c.bufs_total);
	close(far);
	sock_ctx_free(ctx);
	ep_free(ep);
	ev_loop_destroy(loop);
	return 0;
}

static void turn(void)
{
	ev_run(loop, EVRUN_NOWAIT);
}

#define until(condition) \
	for (int i_ = 0; !(condition); i_++) { \
		assert_true(i_ < 1000000); \
		turn(); \
	}

static void give_all(const void *data, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = send(far, (const uint8_t *)data + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (put > 0)
			done += (size_t)put;
		turn();
	}
}

/* A record with `n` bytes of `fill` at `out`; returns its size. */
static size_t make_record(uint8_t *out, uint32_t n, uint8_t fill)
{
	record_encode(&(struct record){ .kind = RECORD_MESSAGES, .bytes = n }, out);
	memset(out + RECORD_HEADER_BYTES, fill, n);
	return RECORD_HEADER_BYTES + n;
}

static void receive__records_in_one_write__one_look(void **state)
{
	uint8_t bytes[10 * (RECORD_HEADER_BYTES + 5)];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		n += make_record(bytes + n, 5, (uint8_t)(i + 1));
	give_all(bytes, n);
	until(records == 10);
	assert_int_equal(sum, 5 * 55);
	assert_int_equal(looks, 1);
	assert_int_equal(ends, 0);
}

static void receive__byte_by_byte__the_same(void **state)
{
	uint8_t bytes[2 * (RECORD_HEADER_BYTES + 7)];
	size_t n = make_record(bytes, 7, 3);

	(void)state;
	n += make_record(bytes + n, 7, 4);
	for (size_t i = 0; i < n; i++) {
		give_all(bytes + i, 1);
		for (int k = 0; k < 3; k++)
			turn();
	}
	until(records == 2);
	assert_int_equal(sum, 7 * 7);
}

static void receive__larger_than_what_is_read_at_once__whole(void **state)
{
	uint8_t *bytes = malloc(2 * (RECORD_HEADER_BYTES + BUF_BYTES));
	size_t n = make_record(bytes, BUF_BYTES, 1);

	(void)state;
	n += make_record(bytes + n, 100, 2);
	give_all(bytes, n);
	until(records == 2);
	assert_int_equal(sum, BUF_BYTES + 200);
	assert_int_equal(last.bytes, 100);
	free(bytes);
}

static void receive__ping_and_empty_record__as_sent(void **state)
{
	uint8_t bytes[2 * RECORD_HEADER_BYTES];

	(void)state;
	record_encode(&(struct record){ .kind = RECORD_PING, .bytes = 0, .imm = 0x12345678 }, bytes);
	give_all(bytes, RECORD_HEADER_BYTES);
	until(records == 1);
	assert_int_equal(last.kind, RECORD_PING);
	assert_int_equal(last.imm, 0x12345678);
}

static void receive__not_a_record__ends(void **state)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 4];

	(void)state;
	(void)make_record(bytes, 4, 0);
	bytes[5] = 1;
	give_all(bytes, sizeof(bytes));
	until(ends == 1);
	assert_int_equal(end_kind, FAIL_PROTOCOL);
	assert_int_equal(end_code, PROTO_BAD_FRAME);
	assert_int_equal(records, 0);
	assert_false(sock_is_open(&s));
}

static void receive__longer_than_a_buffer__ends(void **state)
{
	uint8_t bytes[RECORD_HEADER_BYTES];

	(void)state;
	record_encode(&(struct record){ .kind = RECORD_MESSAGES, .bytes = BUF_BYTES + 1 }, bytes);
	give_all(bytes, sizeof(bytes));
	until(ends == 1);
	assert_int_equal(end_code, PROTO_BAD_FRAME);
}

static void receive__no_buffer_is_free__ends_with_enobufs(void **state)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 1];
	struct ep_counts c;

	(void)state;
	ep_get_counts(ep, &c);
	keeps = true;
	for (uint32_t i = 0; i < c.bufs_total; i++) {
		give_all(bytes, make_record(bytes, 1, 1));
		until(records == i + 1);
	}
	give_all(bytes, make_record(bytes, 1, 1));
	until(ends == 1);
	assert_int_equal(end_kind, FAIL_ERRNO);
	assert_int_equal(end_code, ENOBUFS);
}

static void receive__closed_from_within__nothing_more(void **state)
{
	uint8_t bytes[5 * (RECORD_HEADER_BYTES + 5)];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 5; i++)
		n += make_record(bytes + n, 5, 1);
	close_in = 2;
	echoes = true;
	give_all(bytes, n);
	until(!sock_is_open(&s));
	assert_int_equal(records, 2);
	assert_int_equal(ends, 0);
}

static void end__peer_closes_or_resets__closed(void **state)
{
	struct linger none = { .l_onoff = 1 };
	uint8_t bytes[RECORD_HEADER_BYTES + 5];

	give_all(bytes, make_record(bytes, 5, 1) - 2); /* a part of a record */
	shutdown(far, SHUT_WR);
	until(ends == 1);
	assert_int_equal(end_kind, FAIL_CLOSED);
	tear_down(state);
	set_up(state);
	setsockopt(far, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(far);
	far = -1;
	until(ends == 1);
	assert_int_equal(end_kind, FAIL_CLOSED);
}

static void bye__from_the_peer__told_behind_its_records(void **state)
{
	uint8_t bytes[2 * RECORD_HEADER_BYTES + 5];
	size_t n = make_record(bytes, 5, 1);

	(void)state;
	record_encode(&(struct record){ .kind = RECORD_BYE }, bytes + n);
	give_all(bytes, n + RECORD_HEADER_BYTES);
	until(byes == 1);
	assert_int_equal(records, 1);
	assert_int_equal(ends, 0);
}

/* Reads `n` bytes at the peer while the loop turns. */
static void take(uint8_t *out, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = recv(far, out + done, n - done, MSG_DONTWAIT);

		if (got > 0)
			done += (size_t)got;
		turn();
	}
}

static uint32_t filled(uint32_t n, uint8_t fill)
{
	uint32_t buf = ep_buf_get(ep);

	assert_int_not_equal(buf, EP_NO_BUF);
	memset(ep_buf(ep, buf), fill, n);
	return buf;
}

static void send__several_while_held__in_order_with_one_flush(void **state)
{
	uint8_t got[3 * (RECORD_HEADER_BYTES + 3)];
	struct record r;

	(void)state;
	ep_hold(ep);
	for (uint8_t i = 1; i <= 3; i++)
		sock_send(&s, filled(3, i), &(struct record){ .kind = RECORD_MESSAGES, .bytes = 3 });
	assert_int_equal(s.waiting_n, 3);
	assert_int_equal(recv(far, got, 1, MSG_DONTWAIT), -1);
	ep_unhold(ep);
	assert_int_equal(s.waiting_n, 0);
	take(got, sizeof(got));
	for (int i = 0; i < 3; i++) {
		const uint8_t *at = got + i * (RECORD_HEADER_BYTES + 3);

		assert_int_equal(record_decode(at, BUF_BYTES, &r), 0);
		assert_int_equal(r.bytes, 3);
		assert_int_equal(at[RECORD_HEADER_BYTES], i + 1);
	}
}

/* The peer reads nothing until the socket is full. What waits then goes out later, in order, once. */
static void send__peer_does_not_read__the_rest_later(void **state)
{
	const uint32_t rounds = 60;
	uint8_t *got = malloc(RECORD_HEADER_BYTES + BUF_BYTES);
	uint32_t sent = 0;
	struct record r;

	(void)state;
	while (!s.blocked && sent < rounds)
		sock_send(&s, filled(BUF_BYTES, (uint8_t)++sent), &(struct record){ .kind = RECORD_MESSAGES, .bytes = BUF_BYTES });
	assert_true(s.blocked);
	sock_send(&s, filled(9, (uint8_t)++sent), &(struct record){ .kind = RECORD_MESSAGES, .bytes = 9 });
	assert_true(s.waiting_n >= 2);
	assert_true(sock_say_bye(&s));
	for (uint32_t i = 1; i <= sent; i++) {
		uint32_t n = i == sent ? 9 : BUF_BYTES;

		take(got, RECORD_HEADER_BYTES + n);
		assert_int_equal(record_decode(got, BUF_BYTES, &r), 0);
		assert_int_equal(r.bytes, n);
		assert_int_equal(got[RECORD_HEADER_BYTES], (uint8_t)i);
		assert_int_equal(got[RECORD_HEADER_BYTES + n - 1], (uint8_t)i);
	}
	take(got, RECORD_HEADER_BYTES);
	assert_int_equal(record_decode(got, BUF_BYTES, &r), 0);
	assert_int_equal(r.kind, RECORD_BYE);
	until(!s.blocked && s.waiting_n == 0);
	free(got);
}

static void send__closed_socket__buffer_back(void **state)
{
	(void)state;
	sock_close(&s);
	sock_send(&s, filled(3, 1), &(struct record){ .kind = RECORD_MESSAGES, .bytes = 3 });
	assert_int_equal(ends, 0);
}

static void echo__many_records_both_ways__every_byte(void **state)
{
	enum { N = 500, EACH = 777 };
	uint8_t *bytes = malloc(N * (RECORD_HEADER_BYTES + EACH)), *back = malloc(N * (RECORD_HEADER_BYTES + EACH));
	size_t n = 0, put = 0, got = 0;

	(void)state;
	echoes = true;
	for (int i = 0; i < N; i++)
		n += make_record(bytes + n, EACH, (uint8_t)i);
	/* No more under way than there are buffers for, as credits would have it. */
	while (got < n) {
		size_t window = 8 * (RECORD_HEADER_BYTES + EACH), more = n - put < 1000 ? n - put : 1000;
		ssize_t ret = put - got < window ? send(far, bytes + put, more, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

		put += ret > 0 ? (size_t)ret : 0;
		turn();
		ret = recv(far, back + got, n - got, MSG_DONTWAIT);
		got += ret > 0 ? (size_t)ret : 0;
		assert_int_equal(ends, 0);
	}
	assert_memory_equal(bytes, back, n);
	assert_int_equal(records, N);
	free(bytes);
	free(back);
}

#define SOCK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SOCK_TEST(receive__records_in_one_write__one_look),
		SOCK_TEST(receive__byte_by_byte__the_same),
		SOCK_TEST(receive__larger_than_what_is_read_at_once__whole),
		SOCK_TEST(receive__ping_and_empty_record__as_sent),
		SOCK_TEST(receive__not_a_record__ends),
		SOCK_TEST(receive__longer_than_a_buffer__ends),
		SOCK_TEST(receive__no_buffer_is_free__ends_with_enobufs),
		SOCK_TEST(receive__closed_from_within__nothing_more),
		SOCK_TEST(end__peer_closes_or_resets__closed),
		SOCK_TEST(bye__from_the_peer__told_behind_its_records),
		SOCK_TEST(send__several_while_held__in_order_with_one_flush),
		SOCK_TEST(send__peer_does_not_read__the_rest_later),
		SOCK_TEST(send__closed_socket__buffer_back),
		SOCK_TEST(echo__many_records_both_ways__every_byte),
	};

	return cmocka_run_group_tests_name("sock", tests, NULL, NULL);
}
