/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection over a stream socket. See sock.h. */
#include "common/sock/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/tls/tls.h"

/* Many small records are read at a time, into memory of the thread; the rest of a record that is larger than
 * DIRECT_BYTES is read straight into its buffer. */
#define SCRATCH_BYTES (64u << 10)
#define DIRECT_BYTES (8u << 10)
/* In one turn of the loop a connection may read BUDGET_BYTES and write as many. If many connections use up their
 * budget, they share TURN_BYTES, with at least SHARE_LEAST_BYTES each, so that the turn stays short for all others. */
#define BUDGET_BYTES (256u << 10)
#define TURN_BYTES (4u << 20)
#define SHARE_LEAST_BYTES (16u << 10)
#define WRITE_LEAST_BYTES ((size_t)4 << 10)	/* minimum that a call counts as, however little it wrote */
/* Maximum number of records sent with one system call, and of bytes in one TLS record (RFC 8446, 5.1). */
#define JOINED_MAX 32u
#define TLS_RECORD_BYTES (16u << 10)

struct sock_ctx {
	const struct sock_config *cfg;
	struct ev_loop *loop;
	struct ep *ep;
	const struct sock_user *user;
	unsigned turn;			/* current turn of the loop (ev_iteration) */
	uint32_t busy, busy_before;	/* budgets used up in this turn, and in the one before */
	uint8_t in[SCRATCH_BYTES];
	uint8_t out[TLS_RECORD_BYTES];
};

int sock_ctx_new(const struct sock_config *cfg, struct ev_loop *loop, struct ep *ep, const struct sock_user *user,
		 struct sock_ctx **out)
{
	struct sock_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return -ENOMEM;
	ctx->cfg = cfg;
	ctx->loop = loop;
	ctx->ep = ep;
	ctx->user = user;
	*out = ctx;
	return 0;
}

void sock_ctx_free(struct sock_ctx *ctx)
{
	free(ctx);
}

/* How many bytes a connection may read, or write, in this turn. */
static size_t budget_bytes(struct sock_ctx *ctx)
{
	unsigned turn = ev_iteration(ctx->loop);

	if (turn != ctx->turn) {
		ctx->busy_before = turn == ctx->turn + 1 ? ctx->busy : 0;
		ctx->busy = 0;
		ctx->turn = turn;
	}
	if (ctx->busy_before <= TURN_BYTES / BUDGET_BYTES)
		return BUDGET_BYTES;
	return MAX(TURN_BYTES / ctx->busy_before, SHARE_LEAST_BYTES);
}

/* Counts the connection as busy if it has read, or written, all that it may. */
static bool is_used_up(struct sock_ctx *ctx, size_t total)
{
	if (total < SHARE_LEAST_BYTES || total < budget_bytes(ctx))
		return false;
	ctx->busy++;
	return true;
}

bool sock_is_open(const struct sock *s)
{
	return s->fd >= 0;
}

static void sock_end(struct sock *s, enum fail_kind kind, int code)
{
	s->ctx->user->on_end(s, kind, code);
}

/* A reset (the peer's process ended with unread data) counts as an ordinary close. */
static void end_errno(struct sock *s, int e)
{
	if (e == ECONNRESET || e == EPIPE)
		sock_end(s, FAIL_CLOSED, 0);
	else if (e == ETIMEDOUT || e == EHOSTUNREACH || e == ENETUNREACH)
		sock_end(s, FAIL_TIMEOUT, 0);
	else
		sock_end(s, FAIL_ERRNO, e);
}

static void watch(struct sock *s)
{
	int events = EV_READ | (s->blocked || s->reads_when_writable ? EV_WRITE : 0);

	if (ev_is_active(&s->io) && s->io.events == events)
		return;
	ev_io_stop(s->ctx->loop, &s->io);
	ev_io_set(&s->io, s->fd, events);
	ev_io_start(s->ctx->loop, &s->io);
}

static void read_again(struct sock *s)
{
	ev_timer_stop(s->ctx->loop, &s->again);
	ev_timer_set(&s->again, 0., 0.);
	ev_timer_start(s->ctx->loop, &s->again);
}

/* Prepares to wait for what an unfinished TLS call needs. False: the call failed, and the connection may be closed. */
static bool wait_for(struct sock *s, enum tls_status st, bool reading)
{
	struct fail f;

	switch (st) {
	case TLS_DONE:
		return true;
	case TLS_WANT_WRITE:
		s->reads_when_writable |= reading;
		s->blocked |= !reading;
		return true;
	case TLS_MORE:
		read_again(s);
		s->blocked |= !reading;
		return true;
	case TLS_WANT_READ:
		if (reading)
			return true;
		/* A write waits for the peer only if the peer has sent part of a handshake message, such as half a key
		 * update: OpenSSL writes nothing until the rest has arrived. No peer needs to do that, and since the
		 * socket is writable, waiting would wake the loop without end. */
		sock_end(s, FAIL_TLS, FAIL_TLS_UNEXPECTED);
		return false;
	case TLS_EOF:
		sock_end(s, FAIL_CLOSED, 0);
		return false;
	case TLS_FAILED:
		break;
	}
	tls_failure(s->tls, &f);
	if (f.kind == FAIL_ERRNO)
		end_errno(s, f.code);
	else
		sock_end(s, f.kind, f.code);
	return false;
}

static struct ep_buf_link *link_of(const struct sock *s, uint32_t buf)
{
	return ep_buf_link(s->ctx->ep, buf);
}

static void header_of(const struct ep_buf_link *l, uint8_t out[RECORD_HEADER_BYTES])
{
	const struct record r = { .kind = (enum record_kind)l->record, .bytes = l->length + l->behind_bytes,
				  .imm = l->imm };

	record_encode(&r, out);
}

static void drop_first(struct sock *s)
{
	uint32_t buf = s->first;

	s->first = link_of(s, buf)->next;
	if (s->first == EP_NO_BUF)
		s->last = EP_NO_BUF;
	s->waiting_n--;
	if (!zerocopy_keep(&s->zerocopy, s->ctx->ep, buf))
		ep_buf_put(s->ctx->ep, buf);
}

static size_t record_bytes(const struct ep_buf_link *l)
{
	return RECORD_HEADER_BYTES + (size_t)l->length + l->behind_bytes;
}

/* The kernel has accepted the next `n` bytes. */
static void advance(struct sock *s, size_t n)
{
	size_t sent = s->sent + n;

	while (s->first != EP_NO_BUF && sent >= record_bytes(link_of(s, s->first))) {
		sent -= record_bytes(link_of(s, s->first));
		drop_first(s);
	}
	s->sent = (uint32_t)sent;
}

/* Adds the rest of `data` (`n` bytes) from offset `*at` on, if any, and reduces *at by the bytes skipped. */
static void add_part(struct iovec *v, int *n_v, const void *data, size_t n, size_t *at)
{
	size_t skip = MIN(*at, n);

	*at -= skip;
	if (skip < n)
		v[(*n_v)++] = (struct iovec){ (uint8_t *)data + skip, n - skip };
}

/* True if the record is large enough to be sent without a copy. */
static bool is_large(const struct sock *s, const struct ep_buf_link *l)
{
	return s->zerocopy.on && !l->behind_bytes && l->length >= s->ctx->cfg->tcp.zerocopy_bytes;
}

static bool may_skip_copy(const struct sock *s)
{
	return is_large(s, link_of(s, s->first)) && s->zerocopy.n < s->ctx->cfg->pinned_max &&
	       zerocopy_has_room(&s->zerocopy);
}

/* Turns the result of send or sendmsg into that of write_plain. */
static ssize_t result(struct sock *s, ssize_t sent)
{
	if (sent >= 0)
		return sent;
	if (errno == EAGAIN || errno == EINTR) {
		s->blocked = true;
		return 0;
	}
	end_errno(s, errno);
	return -1;
}

/* Like write_plain, for the first record only: sends its header (copied), or what follows the header (not copied). */
static ssize_t write_pinned(struct sock *s)
{
	const struct ep_buf_link *l = link_of(s, s->first);
	uint8_t header[RECORD_HEADER_BYTES];
	uint32_t at;

	if (s->sent < RECORD_HEADER_BYTES) {
		header_of(l, header);
		return result(s, send(s->fd, header + s->sent, RECORD_HEADER_BYTES - s->sent,
				      MSG_MORE | MSG_NOSIGNAL | MSG_DONTWAIT));
	}
	at = s->sent - RECORD_HEADER_BYTES;
	return result(s, zerocopy_send(&s->zerocopy, s->fd, ep_buf(s->ctx->ep, s->first) + at, l->length - at));
}

/* Returns the number of bytes sent, 0 if the socket accepts none now, or -1: the connection has ended. */
static ssize_t write_plain(struct sock *s)
{
	uint8_t headers[JOINED_MAX][RECORD_HEADER_BYTES];
	struct iovec v[3 * JOINED_MAX];
	struct msghdr m = { .msg_iov = v };
	uint32_t buf = s->first;
	size_t at = s->sent, bytes = 0;
	int n = 0;

	if (may_skip_copy(s))
		return write_pinned(s);
	for (uint32_t i = 0; i < JOINED_MAX && buf != EP_NO_BUF && bytes < BUDGET_BYTES; i++) {
		const struct ep_buf_link *l = link_of(s, buf);

		if (i && is_large(s, l))
			break;
		header_of(l, headers[i]);
		add_part(v, &n, headers[i], RECORD_HEADER_BYTES, &at);
		add_part(v, &n, ep_buf(s->ctx->ep, buf), l->length, &at);
		add_part(v, &n, l->behind, l->behind_bytes, &at);
		bytes += record_bytes(l);
		buf = l->next;
	}
	m.msg_iovlen = (size_t)n;
	return result(s, sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static size_t append(uint8_t *out, size_t n, const void *data, size_t bytes, size_t *at)
{
	size_t skip = MIN(*at, bytes), take = MIN(bytes - skip, TLS_RECORD_BYTES - n);

	*at -= skip;
	if (take)
		memcpy(out + n, (const uint8_t *)data + skip, take);
	return n + take;
}

/* The next bytes of the first record, if they fill a TLS record by themselves; otherwise NULL. */
static const uint8_t *next_full(const struct sock *s)
{
	const struct ep_buf_link *l = link_of(s, s->first);

	if (s->sent < RECORD_HEADER_BYTES || s->sent - RECORD_HEADER_BYTES + TLS_RECORD_BYTES > l->length)
		return NULL;
	return ep_buf(s->ctx->ep, s->first) + (s->sent - RECORD_HEADER_BYTES);
}

/* Like write_plain. As encryption copies anyway, small records, and starts and ends of large ones, are joined first. */
static ssize_t write_tls(struct sock *s)
{
	uint8_t *out = s->ctx->out, header[RECORD_HEADER_BYTES];
	const uint8_t *full = next_full(s);
	size_t at = s->sent, n = full ? TLS_RECORD_BYTES : 0, put;
	enum tls_status st;

	for (uint32_t buf = s->first; buf != EP_NO_BUF && n < TLS_RECORD_BYTES; buf = link_of(s, buf)->next) {
		const struct ep_buf_link *l = link_of(s, buf);

		header_of(l, header);
		n = append(out, n, header, sizeof(header), &at);
		n = append(out, n, ep_buf(s->ctx->ep, buf), l->length, &at);
		n = append(out, n, l->behind, l->behind_bytes, &at);
	}
	st = tls_write(s->tls, full ? full : out, n, &put);
	if (st == TLS_DONE)
		return (ssize_t)put;
	return wait_for(s, st, false) ? 0 : -1;
}

/* Sends waiting records until the socket is full or the turn's budget is used up; a writable socket resumes this. */
static void flush(struct sock *s)
{
	size_t total = 0;

	s->blocked = false;
	while (s->first != EP_NO_BUF && !s->blocked) {
		ssize_t n = s->tls ? write_tls(s) : write_plain(s);

		if (n < 0)
			return;
		advance(s, (size_t)n);
		if (s->first == EP_NO_BUF)
			break;
		/* A peer may demand TLS records of 512 bytes (RFC 6066, 4), each of which costs a call. */
		total += MAX((size_t)n, WRITE_LEAST_BYTES);
		s->blocked |= is_used_up(s->ctx, total);
	}
	/* Flush, because TLS holds small writes back. */
	if (s->tls && !s->blocked && !wait_for(s, tls_flush(s->tls), false))
		return;
	watch(s);
}

static void run_deferred(struct ep_deferred *d)
{
	struct sock *s = (struct sock *)((char *)d - offsetof(struct sock, deferred));

	if (sock_is_open(s) && !s->blocked)
		flush(s);
}

static void send_as(struct sock *s, uint32_t buf, const struct ep_buf_link *record)
{
	struct ep *ep = s->ctx->ep;
	struct ep_buf_link *l = link_of(s, buf);

	if (!sock_is_open(s)) {
		ep_buf_put(ep, buf);
		return;
	}
	*l = *record;
	if (s->last == EP_NO_BUF)
		s->first = buf;
	else
		link_of(s, s->last)->next = buf;
	s->last = buf;
	s->waiting_n++;
	ep_hold(ep);
	ep_defer(ep, &s->deferred);
	ep_unhold(ep);
}

void sock_send(struct sock *s, uint32_t buf, const struct record *r)
{
	send_as(s, buf, &(struct ep_buf_link){ .next = EP_NO_BUF, .length = r->bytes, .imm = r->imm,
					       .record = (uint8_t)r->kind });
}

void sock_send_two(struct sock *s, uint32_t buf, uint32_t bytes, const void *behind, uint32_t behind_bytes)
{
	send_as(s, buf, &(struct ep_buf_link){ .next = EP_NO_BUF, .length = bytes, .record = RECORD_MESSAGES,
					       .behind = behind, .behind_bytes = behind_bytes });
}

bool sock_read_options(const struct sock *s, struct tcp_values *out, bool *ktls)
{
	*ktls = s->tls && tls_uses_ktls(s->tls);
	return sock_is_open(s) && tcp_read(s->fd, out);
}

bool sock_say_bye(struct sock *s)
{
	uint32_t buf = ep_buf_get(s->ctx->ep);

	if (buf == EP_NO_BUF)
		return false;
	sock_send(s, buf, &(struct record){ .kind = RECORD_BYE });
	return true;
}

/* Returns the number of bytes read, 0 if none are there now, or -1: the connection has ended. */
static ssize_t read_some(struct sock *s, uint8_t *data, size_t n)
{
	enum tls_status st;
	ssize_t ret;
	size_t got;

	if (s->tls) {
		st = tls_read(s->tls, data, n, &got);
		if (st == TLS_DONE)
			return (ssize_t)got;
		return wait_for(s, st, true) ? 0 : -1;
	}
	ret = recv(s->fd, data, n, MSG_DONTWAIT);
	if (ret > 0 || (ret < 0 && (errno == EAGAIN || errno == EINTR)))
		return MAX(ret, 0);
	if (ret == 0)
		sock_end(s, FAIL_CLOSED, 0);
	else
		end_errno(s, errno);
	return -1;
}

/* Hands over a complete record. */
static void deliver(struct sock *s)
{
	uint32_t buf = s->buf;

	s->buf = EP_NO_BUF;
	s->header_n = s->got = 0;
	if (s->record.kind != RECORD_BYE) {
		s->ctx->user->on_record(s, buf, &s->record);
		return;
	}
	ep_buf_put(s->ctx->ep, buf);
	s->ctx->user->on_bye(s);
}

/* False: the record is not allowed, or no buffer is free; the connection may be closed. */
static bool begin_record(struct sock *s)
{
	struct ep *ep = s->ctx->ep;

	if (record_decode(s->header, ep_buf_bytes(ep), &s->record)) {
		sock_end(s, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		return false;
	}
	s->buf = ep_buf_get(ep);
	if (s->buf != EP_NO_BUF)
		return true;
	sock_end(s, FAIL_ERRNO, ENOBUFS);
	return false;
}

static void consume(struct sock *s, const uint8_t *data, size_t n)
{
	while (n > 0 && sock_is_open(s)) {
		size_t take;

		if (s->buf == EP_NO_BUF) {
			take = MIN(n, RECORD_HEADER_BYTES - s->header_n);
			memcpy(s->header + s->header_n, data, take);
			s->header_n += (uint32_t)take;
			if (s->header_n == RECORD_HEADER_BYTES && !begin_record(s))
				return;
		} else {
			take = MIN(n, s->record.bytes - s->got);
			memcpy(ep_buf(s->ctx->ep, s->buf) + s->got, data, take);
			s->got += (uint32_t)take;
		}
		data += take;
		n -= take;
		if (s->buf != EP_NO_BUF && s->got == s->record.bytes)
			deliver(s);
	}
}

/* How much of a large record to read at once: the rest of it, unless many connections are busy. */
static size_t direct_bytes(const struct sock *s)
{
	size_t rest = s->record.bytes - s->got, most = budget_bytes(s->ctx);

	return most < BUDGET_BYTES ? MIN(rest, most) : rest;
}

/* Reads once. Returns like read_some, but also 0 if it is clear that nothing more has arrived. */
static ssize_t read_once(struct sock *s)
{
	bool direct = s->buf != EP_NO_BUF && s->record.bytes - s->got >= DIRECT_BYTES;
	size_t wanted = direct ? direct_bytes(s) : SCRATCH_BYTES;
	ssize_t n = read_some(s, direct ? ep_buf(s->ctx->ep, s->buf) + s->got : s->ctx->in, wanted);

	if (n <= 0)
		return n;
	ep_next_batch(s->ctx->ep);
	s->look = ep_batch(s->ctx->ep);
	if (!direct) {
		consume(s, s->ctx->in, (size_t)n);
	} else {
		s->got += (uint32_t)n;
		if (s->got == s->record.bytes)
			deliver(s);
	}
	if (!sock_is_open(s))
		return -1;
	return s->tls || (size_t)n == wanted ? n : 0;
}

static void receive(struct sock *s)
{
	struct ep *ep = s->ctx->ep;
	size_t total = 0;
	ssize_t n = 1;

	s->reads_when_writable = false;
	if (zerocopy_is_under_way(&s->zerocopy))
		zerocopy_reap(&s->zerocopy, s->fd, ep);
	ep_hold(ep);
	while (n > 0 && !is_used_up(s->ctx, total)) {
		n = read_once(s);
		total += n > 0 ? (size_t)n : 0;
	}
	/* Data that TLS has already read raises no event. */
	if (n > 0 && s->tls)
		read_again(s);
	if (n >= 0)
		watch(s);
	if (n >= 0 && total && s->ctx->cfg->tcp.quickack)
		tcp_ack_quickly(s->fd);
	ep_unhold(ep);
}

static void on_io(struct ev_loop *loop, ev_io *w, int revents)
{
	struct sock *s = w->data;

	(void)loop;
	if (revents & EV_WRITE)
		flush(s);
	if (sock_is_open(s) && ((revents & EV_READ) || s->reads_when_writable))
		receive(s);
}

static void on_again(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	receive(w->data);
}

void sock_init(struct sock *s, struct sock_ctx *ctx)
{
	*s = (struct sock){ .ctx = ctx, .fd = -1, .first = EP_NO_BUF, .last = EP_NO_BUF, .buf = EP_NO_BUF,
			    .deferred = { .run = run_deferred } };
}

static void set_option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* Makes TCP probe a silent peer, and give up one that acknowledges nothing (tcp(7)). */
static void set_probes(int fd, uint64_t probe_ns)
{
	int s = (int)MAX(probe_ns / NS_PER_S, 1);

	if (!probe_ns)
		return;
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, s);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, s);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)MIN(3 * probe_ns / NS_PER_MS, (uint64_t)INT32_MAX));
}

static void sock_begin(struct sock *s, uint64_t probe_ns)
{
	tcp_apply(s->fd, &s->ctx->cfg->tcp);
	set_probes(s->fd, probe_ns);
	ev_io_init(&s->io, on_io, s->fd, EV_READ);
	s->io.data = s;
	ev_timer_init(&s->again, on_again, 0., 0.);
	s->again.data = s;
	watch(s);
}

void sock_open_plain(struct sock *s, int fd, uint64_t probe_ns)
{
	s->fd = fd;
	s->zerocopy = (struct zerocopy){ .on = s->ctx->cfg->tcp.zerocopy_bytes && tcp_skip_copies(fd) };
	sock_begin(s, probe_ns);
}

void sock_open_tls(struct sock *s, struct tls *tls, uint64_t probe_ns)
{
	s->tls = tls;
	s->fd = tls_fd(tls);
	sock_begin(s, probe_ns);
	read_again(s);
}

void sock_close(struct sock *s)
{
	struct ep *ep;

	if (!sock_is_open(s))
		return;
	ep = s->ctx->ep;
	ev_io_stop(s->ctx->loop, &s->io);
	ev_timer_stop(s->ctx->loop, &s->again);
	if (s->zerocopy.n)
		zerocopy_reap(&s->zerocopy, s->fd, ep);
	/* The buffers will be reused for other messages, so the kernel must not send from them any more. */
	if (s->zerocopy.n || s->zerocopy.used)
		tcp_abort_on_close(s->fd);
	zerocopy_drop(&s->zerocopy, ep);
	while (s->first != EP_NO_BUF)
		drop_first(s);
	if (s->buf != EP_NO_BUF)
		ep_buf_put(ep, s->buf);
	s->buf = EP_NO_BUF;
	if (s->tls)
		tls_free(s->tls);
	else
		close(s->fd);
	s->tls = NULL;
	s->fd = -1;
}
