/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream of records in arbitrary portions, through common/sock as its owner uses it. The owner must get the records
 * that a second reading of the same bytes finds, in that order, and nothing after the end; every buffer must come back.
 * The owner echoes the peer's records, keeps them until no buffer is free, drops them, or closes. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wire/be.h"
#include "common/sock/sock.h"
#include "tests/fuzz/input.h"

#define BUFS 8u		/* in addition to those of the endpoint */
#define KEPT_MAX 4096u
#define BUF_BYTES (64u << 10)

enum owner { DROPS, ECHOES, KEEPS, CLOSES, OWNERS };

static struct ev_loop *loop;
static struct ep *ep;
static const struct sock_config config;
static struct sock_ctx *ctx;

static enum owner owner;
static const uint8_t *stream;	/* everything that the peer sends */
static size_t stream_n, at;	/* its size, and how much of it the owner has received */
static uint64_t echoed;		/* bytes that must still come back */
static uint32_t kept[KEPT_MAX];
static unsigned kept_n;
static bool over;

static void on_record(struct sock *s, uint32_t buf, const struct record *r)
{
	const uint8_t *header = stream + at;

	assert(!over && stream_n - at >= RECORD_HEADER_BYTES);
	assert(r->bytes == be_get32(header) && r->kind == header[4] && r->kind != RECORD_BYE);
	assert(r->bytes <= BUF_BYTES && r->bytes <= stream_n - at - RECORD_HEADER_BYTES);
	assert(memcmp(ep_buf(ep, buf), header + RECORD_HEADER_BYTES, r->bytes) == 0);
	at += RECORD_HEADER_BYTES + r->bytes;
	switch (owner) {
	case ECHOES:
		echoed += RECORD_HEADER_BYTES + r->bytes;
		sock_send(s, buf, r);
		return;
	case KEEPS:
		assert(kept_n < KEPT_MAX);
		kept[kept_n++] = buf;
		return;
	case CLOSES:
		over = true;
		sock_close(s);
		break;
	case DROPS:
	case OWNERS:
		break;
	}
	ep_buf_put(ep, buf);
}

static void on_bye(struct sock *s)
{
	const uint8_t *header = stream + at;

	assert(!over && stream_n - at >= RECORD_HEADER_BYTES);
	assert(header[4] == RECORD_BYE && be_get32(header) == 0);
	over = true;
	sock_close(s);
}

static uint32_t free_buffers(void)
{
	struct ep_counts counts;

	ep_get_counts(ep, &counts);
	return (uint32_t)counts.bufs_free;
}

/* The stream may end only if the next header is invalid, or if no buffer is free. */
static void on_end(struct sock *s, enum fail_kind kind, int code)
{
	struct record r;

	assert(!over && stream_n - at >= RECORD_HEADER_BYTES);
	if (kind == FAIL_PROTOCOL)
		assert(record_decode(stream + at, BUF_BYTES, &r));
	else
		assert(kind == FAIL_ERRNO && code == ENOBUFS && free_buffers() == 0);
	over = true;
	sock_close(s);
}

static const struct sock_user user = { on_record, on_bye, on_end };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct ep_config cfg = { .recv_depth = BUFS, .buf_bytes = BUF_BYTES };
	char err[256];

	(void)argc;
	(void)argv;
	loop = ev_loop_new(EVFLAG_AUTO);
	return !loop || ep_new(&cfg, NULL, NULL, &ep, err, sizeof(err)) || sock_ctx_new(&config, loop, ep, &user, &ctx);
}

/* Reads what has come back, so that the peer's socket never fills up. */
static void drain(int peer)
{
	static uint8_t back[BUF_BYTES];
	ssize_t n;

	while ((n = recv(peer, back, sizeof(back), MSG_DONTWAIT)) > 0) {
		assert((uint64_t)n <= echoed);
		echoed -= (uint64_t)n;
	}
}

static void turn(int peer)
{
	ev_run(loop, EVRUN_NOWAIT);
	drain(peer);
}

/* Sends the input in portions, each behind a length byte (255: everything left). `stream` joins them. */
static void play(struct input *in, int peer)
{
	uint8_t *sent = input_copy(in->p, in->n);
	const uint8_t *portion;
	size_t n;

	stream = sent;
	stream_n = 0;
	while (in->n > 0 && !over) {
		n = input_number(in, 1);
		n = input_bytes(in, n == 255 ? in->n : n, &portion);
		memcpy(sent + stream_n, portion, n);
		stream_n += n;
		assert(send(peer, portion, n, MSG_NOSIGNAL) == (ssize_t)n);
		turn(peer);
	}
	for (int i = 0; i < 4; i++)
		turn(peer);
	/* All complete records were delivered. */
	assert(over || stream_n - at < RECORD_HEADER_BYTES ||
	       stream_n - at - RECORD_HEADER_BYTES < be_get32(stream + at));
	assert(over || echoed == 0);
	free(sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	uint32_t all = free_buffers();
	struct sock s;
	int fds[2];

	owner = input_number(&in, 1) % OWNERS;
	at = kept_n = 0;
	echoed = 0;
	over = false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		abort();
	sock_init(&s, ctx);
	sock_open_plain(&s, fds[1], 0);
	play(&in, fds[0]);
	sock_close(&s);
	while (kept_n > 0)
		ep_buf_put(ep, kept[--kept_n]);
	assert(free_buffers() == all);
	close(fds[0]);
	return 0;
}
