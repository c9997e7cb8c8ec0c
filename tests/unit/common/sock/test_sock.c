/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/sock/sock.c, plain and over TLS: framing in all portions, full sockets, ends, and buffers
 * that come back. The tested end is `s`; these tests write and read the far end themselves. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "common/base/log.h"
#include "common/sock/sock.h"
#include "common/tls/tls_internal.h"
#include "tests/unit/helpers/certs.h"

#define BUFS 16u
#define BUF_BYTES (256u << 10)

static struct ev_loop *loop;
static struct ep *ep;
static const struct sock_config config;
static struct sock_ctx *ctx;
static struct sock s;

static struct certs certs;
static struct tls_ctx *at_server, *at_client;

/* The kinds of connection that tests use. Over a socket pair, data has arrived once it is sent, and a full socket stays
 * full. */
static const struct kind {
	bool tls, pair;
} over_tcp = { false, false }, over_tls = { true, false }, over_pair = { false, true }, tls_over_pair = { true, true };

/* The far end. */
static int far;			/* -1: it is closed */
static struct tls *far_tls;	/* NULL: plain TCP */
static bool far_has_end;	/* it has read the end */

/* What the callbacks told the connection's owner. */
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
static const uint8_t *feed;	/* what the far end goes on sending whenever a record has come; NULL: nothing */
static size_t feed_n, fed;

/* Returns how many bytes the far end's socket takes now, perhaps 0. The caller must send the rest next. */
static size_t far_put(const uint8_t *data, size_t n)
{
	size_t done = 0, put;

	while (done < n) {
		if (far_tls) {
			if (tls_write(far_tls, data + done, n - done, &put) != TLS_DONE)
				break;
		} else {
			ssize_t ret = send(far, data + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);

			if (ret <= 0)
				break;
			put = (size_t)ret;
		}
		done += put;
	}
	if (far_tls)
		(void)!tls_flush(far_tls);
	return done;
}

/* Reads what has arrived at the far end, perhaps 0 bytes. */
static size_t far_get(uint8_t *out, size_t n)
{
	enum tls_status st;
	ssize_t ret;
	size_t got;

	if (far_tls) {
		st = tls_read(far_tls, out, n, &got);
		far_has_end |= st == TLS_EOF || st == TLS_FAILED;
		return st == TLS_DONE ? got : 0;
	}
	ret = recv(far, out, n, MSG_DONTWAIT);
	far_has_end |= ret == 0 || (ret < 0 && errno != EAGAIN);
	return ret > 0 ? (size_t)ret : 0;
}

static void far_close(void)
{
	if (far_tls)
		tls_free(far_tls);
	else if (far >= 0)
		close(far);
	far_tls = NULL;
	far = -1;
}

static void far_reset(void)
{
	struct linger none = { .l_onoff = 1 };

	assert_int_equal(setsockopt(far, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
	far_close();
}

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
	if (feed)
		fed += far_put(feed + fed, feed_n - fed);
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

/* A TLS handshake, with `n` bytes in the packet that ends it. */
static struct tls *shake_hands(int fds[2], const uint8_t *early, size_t n)
{
	enum tls_status here = TLS_WANT_READ, there = TLS_WANT_READ;
	struct tls *ours;

	assert_int_equal(tls_new(at_client, fds[0], "127.0.0.1", &far_tls), 0);
	assert_int_equal(tls_new(at_server, fds[1], NULL, &ours), 0);
	for (int i = 0; i < 100000 && (here != TLS_DONE || there != TLS_DONE); i++) {
		if (there != TLS_DONE) {
			there = tls_handshake(far_tls);
			if (there == TLS_DONE)
				assert_int_equal(far_put(early, n), n);
			(void)!tls_flush(far_tls);
		}
		if (here != TLS_DONE)
			here = tls_handshake(ours);
		(void)!tls_flush(ours);
	}
	assert_int_equal(here, TLS_DONE);
	assert_int_equal(there, TLS_DONE);
	return ours;
}

static void open_connection(const struct kind *k, const uint8_t *early, size_t n)
{
	int fds[2];

	if (k->pair)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	else
		unit_connect_tcp(fds);
	far = fds[0];
	far_has_end = false;
	sock_init(&s, ctx);
	if (k->tls)
		sock_open_tls(&s, shake_hands(fds, early, n), 0);
	else
		sock_open_plain(&s, fds[1], 0);
}

/* *state: struct kind. */
static int set_up(void **state)
{
	const struct ep_config cfg = { .recv_depth = BUFS, .buf_bytes = BUF_BYTES };
	char err[256];

	records = byes = ends = 0;
	sum = looks = last_look = 0;
	echoes = keeps = false;
	close_in = 0;
	feed = NULL;
	loop = ev_loop_new(EVFLAG_AUTO);
	assert_int_equal(ep_new(&cfg, NULL, NULL, &ep, err, sizeof(err)), 0);
	assert_int_equal(sock_ctx_new(&config, loop, ep, &user, &ctx), 0);
	open_connection(*state, NULL, 0);
	return 0;
}

static int tear_down(void **state)
{
	struct ep_counts c;

	(void)state;
	sock_close(&s);
	ep_get_counts(ep, &c);
	assert_int_equal(c.bufs_free, keeps ? 0 : c.bufs_total);
	far_close();
	sock_ctx_free(ctx);
	ep_free(ep);
	ev_loop_destroy(loop);
	return 0;
}

static int group_set_up(void **state)
{
	const struct tls_config server = { .server = true, .cert_file = certs.server_cert,
					   .key_file = certs.server_key };
	const struct tls_config client = { .ca_file = certs.ca };
	char err[300];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	log_init("sock", LOG_LVL_ERROR);
	return certs_make(&certs) || tls_ctx_new(&server, &at_server, err, sizeof(err)) ||
	       tls_ctx_new(&client, &at_client, err, sizeof(err));
}

static int group_tear_down(void **state)
{
	(void)state;
	tls_ctx_free(at_server);
	tls_ctx_free(at_client);
	certs_remove(&certs);
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

static void give_all(const uint8_t *data, size_t n)
{
	for (size_t done = 0; done < n;) {
		done += far_put(data + done, n - done);
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

/* The owner is told that the connection has ended, once. */
static void await_end(enum fail_kind kind, int code)
{
	until(ends == 1);
	assert_int_equal(end_kind, kind);
	assert_int_equal(end_code, code);
}

#define OVER(where, kind, f) { where ": " #f, f, set_up, tear_down, (void *)&(kind) }
#define OVER_TCP(f) TEST_CASES(f, OVER("tcp", over_tcp, f))
#define OVER_TLS(f) TEST_CASES(f, OVER("tls", over_tls, f))
#define OVER_BOTH(f) TEST_CASES(f, OVER("tcp", over_tcp, f), OVER("tls", over_tls, f))
#define OVER_PAIR(f) TEST_CASES(f, OVER("tls", tls_over_pair, f))
#define OVER_PAIRS(f) TEST_CASES(f, OVER("plain", over_pair, f), OVER("tls", tls_over_pair, f))

OVER_BOTH(receive__records_in_one_write__one_look)
{
	uint8_t bytes[10 * (RECORD_HEADER_BYTES + 5)];
	size_t n = 0;

	for (int i = 0; i < 10; i++)
		n += make_record(bytes + n, 5, (uint8_t)(i + 1));
	give_all(bytes, n);
	until(records == 10);
	assert_int_equal(sum, 5 * 55);
	assert_int_equal(looks, 1);
	assert_int_equal(ends, 0);
}

OVER_BOTH(receive__byte_by_byte__the_same)
{
	uint8_t bytes[2 * (RECORD_HEADER_BYTES + 7)];
	size_t n = make_record(bytes, 7, 3);

	n += make_record(bytes + n, 7, 4);
	for (size_t i = 0; i < n; i++) {
		give_all(bytes + i, 1);
		for (int k = 0; k < 3; k++)
			turn();
	}
	until(records == 2);
	assert_int_equal(sum, 7 * 7);
}

OVER_BOTH(receive__larger_than_what_is_read_at_once__whole)
{
	uint8_t *bytes = malloc(2 * (RECORD_HEADER_BYTES + BUF_BYTES));
	size_t n = make_record(bytes, BUF_BYTES, 1);

	n += make_record(bytes + n, 100, 2);
	give_all(bytes, n);
	until(records == 2);
	assert_int_equal(sum, BUF_BYTES + 200);
	assert_int_equal(last.bytes, 100);
	free(bytes);
}

OVER_BOTH(receive__ping_and_empty_record__as_sent)
{
	uint8_t bytes[2 * RECORD_HEADER_BYTES];

	record_encode(&(struct record){ .kind = RECORD_PING, .bytes = 0, .imm = 0x12345678 }, bytes);
	give_all(bytes, RECORD_HEADER_BYTES);
	until(records == 1);
	assert_int_equal(last.kind, RECORD_PING);
	assert_int_equal(last.imm, 0x12345678);
}

OVER_BOTH(receive__not_a_record__ends)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 4];

	(void)make_record(bytes, 4, 0);
	bytes[5] = 1;
	give_all(bytes, sizeof(bytes));
	await_end(FAIL_PROTOCOL, PROTO_BAD_FRAME);
	assert_int_equal(records, 0);
	assert_false(sock_is_open(&s));
}

OVER_BOTH(receive__longer_than_a_buffer__ends)
{
	uint8_t bytes[RECORD_HEADER_BYTES];

	record_encode(&(struct record){ .kind = RECORD_MESSAGES, .bytes = BUF_BYTES + 1 }, bytes);
	give_all(bytes, sizeof(bytes));
	until(ends == 1);
	assert_int_equal(end_code, PROTO_BAD_FRAME);
}

OVER_BOTH(receive__no_buffer_is_free__ends_with_enobufs)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 1];
	struct ep_counts c;

	ep_get_counts(ep, &c);
	keeps = true;
	for (uint32_t i = 0; i < c.bufs_total; i++) {
		give_all(bytes, make_record(bytes, 1, 1));
		until(records == i + 1);
	}
	give_all(bytes, make_record(bytes, 1, 1));
	await_end(FAIL_ERRNO, ENOBUFS);
}

OVER_BOTH(receive__closed_from_within__nothing_more)
{
	uint8_t bytes[5 * (RECORD_HEADER_BYTES + 5)];
	size_t n = 0;

	for (int i = 0; i < 5; i++)
		n += make_record(bytes + n, 5, 1);
	close_in = 2;
	echoes = true;
	give_all(bytes, n);
	until(!sock_is_open(&s));
	assert_int_equal(records, 2);
	assert_int_equal(ends, 0);
}

OVER_BOTH(end__peer_closes_within_a_record__closed)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 5];

	give_all(bytes, make_record(bytes, 5, 1) - 2);
	shutdown(far, SHUT_WR);
	await_end(FAIL_CLOSED, 0);
	assert_int_equal(records, 0);
}

OVER_BOTH(end__peer_resets__closed)
{
	far_reset();
	await_end(FAIL_CLOSED, 0);
}

OVER_BOTH(bye__from_the_peer__told_behind_its_records)
{
	uint8_t bytes[2 * RECORD_HEADER_BYTES + 5];
	size_t n = make_record(bytes, 5, 1);

	record_encode(&(struct record){ .kind = RECORD_BYE }, bytes + n);
	give_all(bytes, n + RECORD_HEADER_BYTES);
	until(byes == 1);
	assert_int_equal(records, 1);
	assert_int_equal(ends, 0);
}

/* Reads `n` bytes at the far end while the loop turns. */
static void take(uint8_t *out, size_t n)
{
	for (size_t done = 0; done < n;) {
		done += far_get(out + done, n - done);
		assert_false(far_has_end && done < n);
		turn();
	}
}

/* The far end reads a record of `n` such bytes, while the loop turns. */
static void take_record(uint32_t n, uint8_t fill)
{
	static uint8_t got[RECORD_HEADER_BYTES + BUF_BYTES];
	struct record r;

	take(got, RECORD_HEADER_BYTES + n);
	assert_int_equal(record_decode(got, BUF_BYTES, &r), 0);
	assert_int_equal(r.bytes, n);
	assert_int_equal(got[RECORD_HEADER_BYTES], fill);
	assert_int_equal(got[RECORD_HEADER_BYTES + n - 1], fill);
}

/* Sends a record of `n` such bytes. */
static void send_filled(struct sock *to, uint32_t n, uint8_t fill)
{
	uint32_t buf = ep_buf_get(ep);

	assert_int_not_equal(buf, EP_NO_BUF);
	memset(ep_buf(ep, buf), fill, n);
	sock_send(to, buf, &(struct record){ .kind = RECORD_MESSAGES, .bytes = n });
}

OVER_BOTH(send__several_while_held__in_order_with_one_flush)
{
	uint8_t byte;

	ep_hold(ep);
	for (uint8_t i = 1; i <= 3; i++)
		send_filled(&s, 3, i);
	assert_int_equal(s.waiting_n, 3);
	assert_int_equal(far_get(&byte, 1), 0);
	ep_unhold(ep);
	assert_int_equal(s.waiting_n, 0);
	for (uint8_t i = 1; i <= 3; i++)
		take_record(3, i);
}

/* However much the socket would take: the loop turns for others in between. */
OVER_BOTH(send__more_than_a_turn_may_send__the_rest_in_the_next)
{
	ep_hold(ep);
	for (uint8_t i = 1; i <= 4; i++)
		send_filled(&s, BUF_BYTES, i);
	ep_unhold(ep);
	assert_true(s.blocked);
	assert_true(s.waiting_n >= 3);
	for (uint8_t i = 1; i <= 4; i++)
		take_record(BUF_BYTES, i);
	until(!s.blocked && s.waiting_n == 0);
}

/* The peer reads nothing until the socket is full. What waits then goes out later, in order, once. */
OVER_BOTH(send__peer_does_not_read__the_rest_later)
{
	const uint32_t rounds = 60;
	uint8_t bye[RECORD_HEADER_BYTES];
	uint32_t sent = 0;
	struct record r;

	while (!s.blocked && sent < rounds)
		send_filled(&s, BUF_BYTES, (uint8_t)++sent);
	assert_true(s.blocked);
	send_filled(&s, 9, (uint8_t)++sent);
	assert_true(s.waiting_n >= 2);
	assert_true(sock_say_bye(&s));
	for (uint32_t i = 1; i <= sent; i++)
		take_record(i == sent ? 9 : BUF_BYTES, (uint8_t)i);
	take(bye, sizeof(bye));
	assert_int_equal(record_decode(bye, BUF_BYTES, &r), 0);
	assert_int_equal(r.kind, RECORD_BYE);
	until(!s.blocked && s.waiting_n == 0);
}

OVER_BOTH(send__closed_socket__buffer_back)
{
	sock_close(&s);
	send_filled(&s, 3, 1);
	assert_int_equal(ends, 0);
}

OVER_BOTH(echo__many_records_both_ways__every_byte)
{
	enum { N = 500, EACH = 777 };
	uint8_t *bytes = malloc(N * (RECORD_HEADER_BYTES + EACH)), *back = malloc(N * (RECORD_HEADER_BYTES + EACH));
	size_t n = 0, put = 0, got = 0;

	echoes = true;
	for (int i = 0; i < N; i++)
		n += make_record(bytes + n, EACH, (uint8_t)i);
	/* No more under way than there are buffers for, as credits would have it. */
	while (got < n) {
		size_t window = 8 * (RECORD_HEADER_BYTES + EACH), more = n - put < 1000 ? n - put : 1000;

		put += put - got < window ? far_put(bytes + put, more) : 0;
		turn();
		got += far_get(back + got, n - got);
		assert_int_equal(ends, 0);
		assert_false(far_has_end);
	}
	assert_memory_equal(bytes, back, n);
	assert_int_equal(records, N);
	free(bytes);
	free(back);
}

static void send_small_one(struct sock *to, uint32_t n)
{
	send_filled(to, 1000, (uint8_t)n);
}

/* Small ones, of which TLS holds some back, until the kernel takes no more, and a few behind them. Returns how many. */
static uint32_t fill_with_small_ones(struct sock *to)
{
	uint32_t n = 0;

	while ((!to->blocked || to->waiting_n < 4) && n < 1000000)
		send_small_one(to, ++n);
	assert_true(to->blocked);
	return n;
}

static void take_small_ones(uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
		take_record(1000, (uint8_t)i);
}

static bool rung;

static void on_bell(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
	rung = true;
}

/* The loop sleeps: within 20 ms there are few turns, not thousands. */
static void assert_at_rest(void)
{
	ev_timer bell;
	int n = 0;

	rung = false;
	ev_timer_init(&bell, on_bell, 0.02, 0.);
	ev_timer_start(loop, &bell);
	while (!rung) {
		ev_run(loop, EVRUN_ONCE);
		assert_true(++n < 200);
	}
}

OVER_PAIRS(receive__while_the_peer_reads_nothing__goes_on_and_rests)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 5];
	uint32_t sent = fill_with_small_ones(&s);

	for (unsigned i = 1; i <= 3; i++) {
		give_all(bytes, make_record(bytes, 5, 1));
		until(records == i);
		assert_at_rest();
	}
	assert_true(s.blocked);
	take_small_ones(sent);
	until(!s.blocked && s.waiting_n == 0);
	assert_int_equal(ends, 0);
}

/* If one of them did not read before it has written, they would wait for each other. */
OVER_PAIRS(both_ends__all_sockets_full__all_arrives)
{
	struct sock t;
	uint32_t sent;

	sock_init(&t, ctx);
	if (far_tls)
		sock_open_tls(&t, far_tls, 0);
	else
		sock_open_plain(&t, far, 0);
	far_tls = NULL;
	far = -1;
	sent = fill_with_small_ones(&s);
	sent += fill_with_small_ones(&t);
	until(records == sent);
	assert_int_equal(ends, 0);
	sock_close(&t);
}

OVER_PAIRS(close__much_waits__buffers_back)
{
	(void)fill_with_small_ones(&s);
	assert_true(s.waiting_n > 0);
	sock_close(&s);
	assert_int_equal(s.waiting_n, 0);
}

OVER_BOTH(send__peer_has_reset__ends_from_within)
{
	far_reset();
	/* The first one may still be taken. */
	for (int i = 0; i < 2 && sock_is_open(&s); i++)
		send_filled(&s, 3, 1);
	assert_int_equal(ends, 1);
	assert_int_equal(end_kind, FAIL_CLOSED);
}

/* The peer fills up its socket for every record that is read. Others have their turn all the same. */
OVER_BOTH(receive__more_than_the_budget__in_several_turns)
{
	enum { N = 3000, EACH = 1000, BUDGET_AND_A_READ = 320 << 10 };
	uint8_t *bytes = malloc(N * (RECORD_HEADER_BYTES + EACH));

	feed_n = fed = 0;
	for (int i = 0; i < N; i++)
		feed_n += make_record(bytes + feed_n, EACH, 1);
	feed = bytes;
	fed = far_put(feed, feed_n);
	for (unsigned before = 0; records < N; before = records) {
		turn();
		assert_in_range((records - before) * (RECORD_HEADER_BYTES + EACH), 0, BUDGET_AND_A_READ);
		assert_int_equal(ends, 0);
	}
	assert_int_equal(sum, N * EACH);
	free(bytes);
}

/* More of them than TLS takes in a turn, in one packet: no event of the socket tells of the rest. */
OVER_PAIR(receive__many_tls_records_in_a_packet__all_of_them)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 5];
	size_t n = make_record(bytes, 5, 1), put;

	for (int i = 0; i < 4 * TLS_TURN_RECORDS; i++)
		assert_int_equal(tls_write(far_tls, bytes, n, &put), TLS_DONE);
	assert_int_equal(tls_flush(far_tls), TLS_DONE);
	until(records == 4 * TLS_TURN_RECORDS);
	assert_true(looks >= 4 * TLS_TURN_RECORDS);
}

/* They are read from the socket with the handshake's end, so no event tells of them. */
OVER_PAIR(open__records_came_with_the_handshake__told)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 5];

	sock_close(&s);
	far_close();
	open_connection(*state, bytes, make_record(bytes, 5, 1));
	until(records == 1);
}

#define MANY 24
#define MANY_BYTES 4096u	/* of a record of theirs, its header included */

/* Fills what the kernel holds for a connection with records. */
static void fill_socket(int fd)
{
	static uint8_t bytes[MANY_BYTES];
	size_t n = make_record(bytes, MANY_BYTES - RECORD_HEADER_BYTES, 1);

	assert_int_equal(n, MANY_BYTES);
	while (send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n)
		;
}

/* Each of many connections could be read from for as long as one alone: whoever else has a part in the loop would wait
 * for all. */
OVER_TCP(receive__many_connections_never_stop_sending__they_share_a_turn)
{
	static struct sock many[MANY];
	int fds[MANY][2], room = 1 << 20;
	unsigned in_turn[3];

	for (int i = 0; i < MANY; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds[i]), 0);
		assert_int_equal(setsockopt(fds[i][0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
		sock_init(&many[i], ctx);
		sock_open_plain(&many[i], fds[i][1], 0);
	}
	for (int k = 0; k < 3; k++) {
		unsigned before = records;

		for (int i = 0; i < MANY; i++)
			fill_socket(fds[i][0]);
		turn();
		in_turn[k] = records - before;
	}
	/* Before the first turn nobody knew that this many connections are busy. */
	assert_in_range(in_turn[0] * MANY_BYTES, 5u << 20, MANY * (256u << 10));
	/* The read that uses a share up may take 64 KiB. */
	assert_in_range(in_turn[1] * MANY_BYTES, 3u << 20, (4u << 20) + MANY * (64u << 10));
	assert_in_range(in_turn[2] * MANY_BYTES, 3u << 20, (4u << 20) + MANY * (64u << 10));
	for (int i = 0; i < MANY; i++) {
		sock_close(&many[i]);
		close(fds[i][0]);
	}
	assert_int_equal(ends, 0);
}

OVER_TLS(end__bytes_that_are_no_tls__fails)
{
	assert_int_equal(send(far, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	until(ends == 1);
	assert_int_equal(end_kind, FAIL_TLS);
}

OVER_TLS(end__peer_says_goodbye__closed)
{
	tls_close_notify(far_tls);
	assert_int_equal(tls_flush(far_tls), TLS_DONE);
	await_end(FAIL_CLOSED, 0);
}

static void far_updates_keys(void)
{
	assert_int_equal(SSL_key_update(far_tls->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
}

OVER_TLS(key_update__between_records__both_ways)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 5], back[sizeof(bytes)];

	echoes = true;
	for (uint8_t i = 1; i <= TLS_EXTRA_RECORDS; i++) {
		far_updates_keys();
		give_all(bytes, make_record(bytes, 5, i));
		take(back, sizeof(back));
		assert_memory_equal(back, bytes, sizeof(back));
	}
	assert_int_equal(ends, 0);
}

OVER_TLS(key_update__more_than_allowed__cut_off)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 5];

	for (uint8_t i = 0; i < TLS_EXTRA_RECORDS; i++) {
		far_updates_keys();
		give_all(bytes, make_record(bytes, 5, i));
	}
	until(records == TLS_EXTRA_RECORDS);
	far_updates_keys();
	(void)far_put(bytes, make_record(bytes, 5, 1));
	await_end(FAIL_TLS, FAIL_TLS_RECORDS);
}

#define SECRET_BYTES 32		/* of TLS_AES_128_GCM_SHA256, which these ends agree on */
static uint8_t far_secret[SECRET_BYTES];

static void on_keylog(const SSL *ssl, const char *line)
{
	const char *hex = strrchr(line, ' ');

	(void)ssl;
	if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0", 23) != 0)
		return;
	for (size_t i = 0; i < SECRET_BYTES; i++)
		assert_int_equal(sscanf(hex + 1 + 2 * i, "%2hhx", &far_secret[i]), 1);
}

/* HKDF-Expand-Label (RFC 8446, 7.1) of the far end's secret. */
static void expand(const char *label, uint8_t *out, size_t n)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
	EVP_KDF_CTX *k = EVP_KDF_CTX_new(kdf);
	OSSL_PARAM params[] = {
		OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_MODE, (char *)"EXPAND_ONLY", 0),
		OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_octet_string(OSSL_KDF_PARAM_KEY, far_secret, SECRET_BYTES),
		OSSL_PARAM_octet_string(OSSL_KDF_PARAM_PREFIX, (char *)"tls13 ", 6),
		OSSL_PARAM_octet_string(OSSL_KDF_PARAM_LABEL, (char *)label, strlen(label)),
		OSSL_PARAM_END,
	};

	assert_int_equal(EVP_KDF_derive(k, out, n, params), 1);
	EVP_KDF_CTX_free(k);
	EVP_KDF_free(kdf);
}

/* The far end's first record of application data: plain, with the type of its contents behind it. OpenSSL makes no such
 * records. */
static size_t seal_first(const uint8_t *plain, size_t n, uint8_t *out)
{
	uint8_t key[16], iv[12], header[] = { 23, 3, 3, 0, (uint8_t)(n + 16) };
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int len;

	expand("key", key, sizeof(key));
	expand("iv", iv, sizeof(iv));
	memcpy(out, header, sizeof(header));
	assert_int_equal(EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, key, iv), 1);
	assert_int_equal(EVP_EncryptUpdate(c, NULL, &len, header, sizeof(header)), 1);
	assert_int_equal(EVP_EncryptUpdate(c, out + sizeof(header), &len, plain, (int)n), 1);
	assert_int_equal(EVP_EncryptFinal_ex(c, NULL, &len), 1);
	assert_int_equal(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, out + sizeof(header) + n), 1);
	EVP_CIPHER_CTX_free(c);
	return sizeof(header) + n + 16;
}

/* With it this end cannot write, although its socket can: it would try again without end. */
OVER_TLS(key_update__half_of_one__ended)
{
	static const uint8_t half[] = { 24, 0, 0, 1, 22 };	/* type and length of a KeyUpdate; the contents are of a
								 * handshake */
	uint8_t sealed[64];
	size_t n;

	sock_close(&s);
	far_close();
	SSL_CTX_set_keylog_callback(at_client->ssl_ctx, on_keylog);
	open_connection(*state, NULL, 0);
	n = seal_first(half, sizeof(half), sealed);
	assert_int_equal(send(far, sealed, n, MSG_NOSIGNAL), n);
	until(SSL_in_init(s.tls->ssl));
	assert_int_equal(ends, 0);
	send_small_one(&s, 1);
	await_end(FAIL_TLS, FAIL_TLS_UNEXPECTED);
}

/* This end's own update has to wait behind what OpenSSL could not write yet. */
OVER_PAIR(key_update__while_the_peer_reads_nothing__behind_the_rest)
{
	uint8_t bytes[RECORD_HEADER_BYTES + 1000];
	uint32_t sent = fill_with_small_ones(&s);

	far_updates_keys();
	give_all(bytes, make_record(bytes, 1000, 7));
	until(records == 1);
	send_small_one(&s, sent + 1);
	take_small_ones(sent + 1);
	assert_int_equal(ends, 0);
}

TEST_GROUP(group_set_up, group_tear_down)
