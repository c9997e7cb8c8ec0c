/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/sock/zerocopy.c and of what sock.c does with it, over TCP on loopback: every byte arrives,
 * buffers are free when the kernel has said so and not before, and a connection that ends takes back what the kernel
 * still has. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/sock/sock.h"

#define BUF_BYTES (256u << 10)
#define BUFS 64u
#define PINNED_MAX 4u

static struct ev_loop *loop;
static struct ep *ep;
static struct sock_ctx *ctx;
static struct sock s;
static struct sock_config cfg;
static int far;
static unsigned ends;

static void on_record(struct sock *from, uint32_t buf, const struct record *r)
{
	(void)from;
	(void)r;
	ep_buf_put(ep, buf);
}

static void on_bye(struct sock *from)
{
	(void)from;
}

static void on_end(struct sock *from, enum fail_kind kind, int code)
{
	(void)kind;
	(void)code;
	ends++;
	sock_close(from);
}

static const struct sock_user user = { on_record, on_bye, on_end };

static int set_up(void **state)
{
	const struct ep_config e = { .recv_depth = BUFS, .buf_bytes = BUF_BYTES };
	char err[256];
	int fds[2];

	(void)state;
	ends = 0;
	cfg.pinned_max = PINNED_MAX;
	assert_int_equal(tcp_parse("zerocopy=64k", &cfg.tcp, err, sizeof(err)), 0);
	loop = ev_loop_new(EVFLAG_AUTO);
	assert_int_equal(ep_new(&e, NULL, NULL, &ep, err, sizeof(err)), 0);
	assert_int_equal(sock_ctx_new(&cfg, loop, ep, &user, &ctx), 0);
	unit_connect_tcp(fds);
	far = fds[0];
	sock_init(&s, ctx);
	sock_open_plain(&s, fds[1], 0);
	assert_true(s.zerocopy.on);
	return 0;
}

static int tear_down(void **state)
{
	struct ep_counts c;

	(void)state;
	sock_close(&s);
	ep_get_counts(ep, &c);
	assert_int_equal(c.bufs_free, c.bufs_total);
	if (far >= 0)
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

static void say(uint32_t bytes, uint8_t fill)
{
	uint32_t buf = ep_buf_get(ep);

	assert_int_not_equal(buf, EP_NO_BUF);
	memset(ep_buf(ep, buf), fill, bytes);
	sock_send(&s, buf, &(struct record){ .kind = RECORD_MESSAGES, .bytes = bytes });
}

/* Reads a whole record at the peer, and looks at every byte. */
static void hear(uint32_t bytes, uint8_t fill)
{
	static uint8_t got[RECORD_HEADER_BYTES + BUF_BYTES];
	size_t n = RECORD_HEADER_BYTES + bytes;
	struct record r;

	for (size_t done = 0; done < n;) {
		ssize_t ret = recv(far, got + done, n - done, MSG_DONTWAIT);

		if (ret > 0)
			done += (size_t)ret;
		turn();
	}
	assert_int_equal(record_decode(got, BUF_BYTES, &r), 0);
	assert_int_equal(r.bytes, bytes);
	for (size_t i = RECORD_HEADER_BYTES; i < n; i++)
		assert_int_equal(got[i], fill);
}

TEST(send__large__free_when_the_kernel_says_so)
{
	say(BUF_BYTES, 7);
	assert_true(s.zerocopy.next > 0);
	hear(BUF_BYTES, 7);
	until(s.zerocopy.n == 0);
	assert_int_equal(s.zerocopy.base, s.zerocopy.next);
	assert_int_equal(ends, 0);
}

TEST(send__small__copied)
{
	say((64u << 10) - 1, 1);
	hear((64u << 10) - 1, 1);
	assert_int_equal(s.zerocopy.next, 0);
}

/* Sizes that alternate, many rounds, so that the numbers of calls are far beyond what fits at once. */
TEST(send__large_and_small_in_turn__in_order)
{
	for (uint32_t i = 0; i < 300; i++) {
		say(i % 2 ? BUF_BYTES : 100, (uint8_t)i);
		say(3, (uint8_t)(i + 1));
		hear(i % 2 ? BUF_BYTES : 100, (uint8_t)i);
		hear(3, (uint8_t)(i + 1));
	}
	until(s.zerocopy.n == 0);
	assert_true(s.zerocopy.next >= 150);
}

/* The peer reads nothing: no more than so many buffers wait for the kernel, and what comes then is copied, or waits. */
TEST(send__peer_does_not_read__bounded)
{
	for (uint8_t i = 0; i < 40; i++)
		say(BUF_BYTES, i);
	assert_true(s.zerocopy.n <= PINNED_MAX);
	assert_true(s.blocked);
	for (uint8_t i = 0; i < 40; i++)
		hear(BUF_BYTES, i);
	until(s.zerocopy.n == 0 && s.waiting_n == 0);
}

/* The kernel is done with a part of the only message, whose rest waits for the peer: it is heard, or the loop would
 * never sleep. */
TEST(send__part_is_sent__its_notification_is_read)
{
	struct pollfd p = { .fd = s.fd };
	const int bytes = 16 << 10;

	assert_int_equal(setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	assert_int_equal(setsockopt(far, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	say(BUF_BYTES, 5);
	until(s.zerocopy.base > 0);
	assert_true(s.zerocopy.used);
	assert_int_equal(s.zerocopy.n, 0);
	until(poll(&p, 1, 0) == 0);
	hear(BUF_BYTES, 5);
	until(s.zerocopy.n == 0 && s.waiting_n == 0);
}

/* The kernel would go on sending from buffers that are another's by then. */
TEST(close__while_the_kernel_has_buffers__the_peer_is_reset)
{
	char byte[BUF_BYTES];
	ssize_t n;

	for (uint8_t i = 0; i < 40; i++)
		say(BUF_BYTES, i);
	assert_true(s.zerocopy.n > 0);
	sock_close(&s);
	do
		n = recv(far, byte, sizeof(byte), 0);
	while (n > 0 || (n < 0 && errno == EAGAIN));
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);
}

TEST_EACH(set_up, tear_down)
