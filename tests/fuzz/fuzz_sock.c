/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream of records in any portions, through common/sock as its owner has it: what is delivered is what a second reading of
 * the same bytes finds in them, in that order, nothing comes after the end, and every buffer comes back. The peer's records
 * are sent back, kept until no buffer is free, or dropped.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wire/be.h"
#include "common/sock/sock.h"
#include "tests/fuzz/input.h"

#define BUFS 8u		/* and what the endpoint adds */
#define KEPT_MAX 4096u
#define BUF_BYTES (64u << 10)

enum owner { DROPS, ECHOES, KEEPS, CLOSES, OWNERS };

static struct ev_loop *loop;
static struct ep *ep;
static const struct sock_config config;
static struct sock_ctx *ctx;

static enum owner owner;
static const uint8_t *stream;	/* all that the peer sends */
static size_t stream_n, at;	/* and how much of it the owner has been told of */
static uint64_t echoed;		/* bytes that are to come back */
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

/* The header that is next is no record's, or no buffer is free for it. */
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

/* Takes what has come back, so that the peer's socket is never full. */
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

/* Each portion has its length in front of it, of one byte; 255: all that is left. The bytes of all portions are `stream`. */
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
	/* All that is whole was delivered. */
	assert(over || stream_n - at < RECORD_HEADER_BYTES || stream_n - at - RECORD_HEADER_BYTES < be_get32(stream + at));
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
