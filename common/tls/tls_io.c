/* SPDX-License-Identifier: BSD-2-Clause */
/* A TLS connection on an event loop. See tls_io.h. */
#include "common/tls/tls_io.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"

static void on_event(struct ev_loop *loop, ev_io *w, int revents)
{
	struct tls_io *io = w->data;

	(void)loop;
	(void)revents;
	io->on_ready(io->owner);
}

static void on_again(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct tls_io *io = w->data;

	(void)loop;
	(void)revents;
	io->on_ready(io->owner);
}

void tls_io_init(struct tls_io *io, struct ev_loop *loop, void (*on_ready)(void *owner), void *owner,
		 counter *bytes_in, counter *bytes_out)
{
	io->loop = loop;
	io->on_ready = on_ready;
	io->owner = owner;
	io->bytes_in = bytes_in;
	io->bytes_out = bytes_out;
	ev_io_init(&io->watcher, on_event, -1, 0);
	io->watcher.data = io;
	ev_timer_init(&io->again, on_again, 0., 0.);
	io->again.data = io;
	io->fd = -1;
	io->tls = NULL;
	io->writing = io->said_bye = false;
	io->done = io->frame_bytes = 0;
	io->frame = io->small;
	io->failure = (struct fail){ 0 };
}

void tls_io_watch(struct tls_io *io, int events)
{
	ev_timer_stop(io->loop, &io->again);
	if (ev_is_active(&io->watcher) && io->watcher.events == events)
		return;
	ev_io_stop(io->loop, &io->watcher);
	if (!events)
		return;
	ev_io_set(&io->watcher, io->tls ? tls_fd(io->tls) : io->fd, events);
	ev_io_start(io->loop, &io->watcher);
}

/* Has on_ready called in the loop's next turn. */
static void call_again(struct tls_io *io)
{
	tls_io_watch(io, 0);
	ev_timer_set(&io->again, 0., 0.);
	ev_timer_start(io->loop, &io->again);
}

/* Empties the buffer for the next frame, and frees the memory of a long one. */
static void drop_frame(struct tls_io *io)
{
	if (io->frame != io->small)
		free(io->frame);
	io->frame = io->small;
	io->writing = false;
	io->done = 0;
}

bool tls_io_is_open(const struct tls_io *io)
{
	return io->tls || io->fd >= 0;
}

void tls_io_close(struct tls_io *io)
{
	tls_io_watch(io, 0);
	if (io->fd >= 0)
		close(io->fd);
	tls_free(io->tls);
	io->fd = -1;
	io->tls = NULL;
	io->said_bye = false;
	drop_frame(io);
}

int tls_io_connect(struct tls_io *io, const struct addr *to, const struct addr *from)
{
	int one = 1;

	io->fd = socket(to->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (io->fd < 0)
		return -errno;
	/* Without TCP_NODELAY a request would wait until the peer has acknowledged the handshake's last message. */
	setsockopt(io->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* Have the kernel choose the port at connect, not at bind: then several destinations can share it (ip(7)). */
	setsockopt(io->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (from && bind(io->fd, (const struct sockaddr *)&from->ss, from->len))
		return -errno;
	if (connect(io->fd, (const struct sockaddr *)&to->ss, to->len) && errno != EINPROGRESS)
		return -errno;
	tls_io_watch(io, EV_WRITE);
	return 0;
}

int tls_io_connected(const struct tls_io *io)
{
	int e = 0;
	socklen_t len = sizeof(e);

	return getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &e, &len) ? -errno : -e;
}

int tls_io_take_socket(struct tls_io *io)
{
	int fd = io->fd;

	tls_io_watch(io, 0);
	io->fd = -1;
	return fd;
}

int tls_io_start(struct tls_io *io, struct tls_ctx *ctx, const char *verify_name)
{
	int ret = tls_new(ctx, io->fd, verify_name, &io->tls);

	if (!ret)
		io->fd = -1;
	return ret;
}

int tls_io_accept(struct tls_io *io, struct tls_ctx *ctx, int fd)
{
	int ret;

	io->fd = fd;
	ret = tls_io_start(io, ctx, NULL);
	if (ret)
		tls_io_close(io);
	else
		tls_io_watch(io, EV_READ);
	return ret;
}

enum fail_kind tls_io_abandoned(const struct tls_io *io, uint64_t ns)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);

	if (getsockopt(tls_fd(io->tls), IPPROTO_TCP, TCP_INFO, &info, &n))
		return FAIL_NONE;
	if (info.tcpi_state == TCP_CLOSE_WAIT)
		return FAIL_CLOSED;
	return info.tcpi_last_data_recv > ns / NS_PER_MS ? FAIL_TIMEOUT : FAIL_NONE;
}

struct tls *tls_io_release(struct tls_io *io)
{
	struct tls *tls = io->tls;

	tls_io_watch(io, 0);
	io->tls = NULL;
	tls_io_close(io);
	return tls;
}

void tls_io_adopt(struct tls_io *io, struct tls *tls)
{
	io->tls = tls;
}

static enum tls_io_status failed(struct tls_io *io, enum fail_kind kind, int code)
{
	io->failure.kind = kind;
	io->failure.code = code;
	return TLS_IO_FAILED;
}

/* Sets the watcher or the failure that `st` calls for. */
static enum tls_io_status status_of(struct tls_io *io, enum tls_status st)
{
	switch (st) {
	case TLS_DONE:
		return TLS_IO_DONE;
	case TLS_WANT_READ:
		tls_io_watch(io, EV_READ);
		return TLS_IO_WAIT;
	case TLS_WANT_WRITE:
		tls_io_watch(io, EV_WRITE);
		return TLS_IO_WAIT;
	case TLS_MORE:
		call_again(io);
		return TLS_IO_WAIT;
	case TLS_EOF:
		return failed(io, FAIL_CLOSED, 0);
	case TLS_FAILED:
		break;
	}
	tls_failure(io->tls, &io->failure);
	return TLS_IO_FAILED;
}

enum tls_io_status tls_io_handshake(struct tls_io *io)
{
	return status_of(io, tls_handshake(io->tls));
}

uint8_t *tls_io_frame(struct tls_io *io)
{
	drop_frame(io);
	return io->frame;
}

void tls_io_put(struct tls_io *io, size_t n)
{
	assert(n <= sizeof(io->small));
	tls_io_put_heap(io, io->small, n);
}

void tls_io_put_heap(struct tls_io *io, uint8_t *heap, size_t n)
{
	drop_frame(io);
	io->frame = heap;
	io->frame_bytes = (uint32_t)n;
	io->writing = true;
}

static void count_bytes(counter *bytes, size_t n)
{
	if (bytes)
		counter_add(bytes, n);
}

enum tls_io_status tls_io_write(struct tls_io *io)
{
	if (!io->writing)
		return TLS_IO_DONE;
	while (io->done < io->frame_bytes) {
		size_t put;
		enum tls_io_status st = status_of(io, tls_write(io->tls, io->frame + io->done,
								io->frame_bytes - io->done, &put));

		if (st != TLS_IO_DONE)
			return st;
		count_bytes(io->bytes_out, put);
		io->done += (uint32_t)put;
	}
	drop_frame(io);
	return TLS_IO_DONE;
}

enum tls_io_status tls_io_flush(struct tls_io *io)
{
	return status_of(io, tls_flush(io->tls));
}

static enum tls_io_status read_upto(struct tls_io *io, uint32_t upto)
{
	while (io->done < upto) {
		size_t got;
		enum tls_io_status st = status_of(io, tls_read(io->tls, io->frame + io->done, upto - io->done, &got));

		if (st != TLS_IO_DONE)
			return st;
		count_bytes(io->bytes_in, got);
		io->done += (uint32_t)got;
	}
	return TLS_IO_DONE;
}

/* Makes room for a frame of `bytes`: a long one moves to the heap, with its header. False if memory runs out. */
static bool make_room(struct tls_io *io, uint32_t bytes)
{
	uint8_t *heap;

	if (bytes <= sizeof(io->small) || io->frame != io->small)
		return true;
	heap = malloc(bytes);
	if (!heap)
		return false;
	memcpy(heap, io->small, io->done);
	io->frame = heap;
	return true;
}

enum tls_io_status tls_io_read_header(struct tls_io *io, uint32_t max_bytes, struct frame_header *h)
{
	enum tls_io_status st;

	assert(!io->writing);
	if (io->done == 0)
		drop_frame(io);
	st = read_upto(io, FRAME_HEADER_BYTES);
	if (st == TLS_IO_DONE && frame_decode_header(io->frame, max_bytes, h))
		return failed(io, FAIL_PROTOCOL, PROTO_BAD_FRAME);
	return st;
}

enum tls_io_status tls_io_read_frame(struct tls_io *io, const struct frame_header *h)
{
	enum tls_io_status st;

	if (!make_room(io, h->length))
		return failed(io, FAIL_ERRNO, ENOMEM);
	st = read_upto(io, h->length);
	if (st == TLS_IO_DONE)
		io->done = 0;
	return st;
}

void tls_io_say_bye(struct tls_io *io)
{
	if (!io->said_bye)
		tls_close_notify(io->tls);
	io->said_bye = true;
}

bool tls_io_is_bye_answered(struct tls_io *io)
{
	enum tls_status st;
	uint8_t byte;
	size_t got;

	tls_io_say_bye(io);
	/* Flush, because a read sends held-back bytes only if it gets as far as the socket. */
	st = tls_flush(io->tls);
	if (st == TLS_DONE)
		st = tls_read(io->tls, &byte, 1, &got);
	return status_of(io, st) != TLS_IO_WAIT;
}

const char *tls_io_failure_text(const struct tls_io *io)
{
	return io->tls ? tls_failure_text(io->tls) : "";
}
