/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP and TLS of a raw client: blocking calls on non-blocking sockets. See wire.h. */
#include "tests/adversary/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/wire/auth.h"
#include "common/wire/be.h"
#include "common/base/clock.h"
#include "common/tls/tls.h"

static bool wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now = clock_now_ns();

	return now < deadline_ns && poll(&p, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1) > 0;
}

int wire_tcp(const struct rogue *r, const char *source)
{
	struct timeval limit = { .tv_sec = (time_t)(r->timeout_ns / NS_PER_S) + 1 };
	int fd = socket(r->server.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct addr from = r->source.len ? r->source : r->dev.addr;
	int ret = 0, small = 1;	/* the kernel uses its minimum instead (socket(7)) */

	if (fd < 0)
		return -errno;
	if (source)
		ret = addr_parse(source, 0, &from);
	if (r->narrow)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!ret && (bind(fd, (struct sockaddr *)&from.ss, from.len) ||
		     connect(fd, (const struct sockaddr *)&r->server.ss, r->server.len) ||
		     fcntl(fd, F_SETFL, O_NONBLOCK)))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* True if the call should be repeated; false if `st` ends it, with the outcome in *out. */
static bool go_on(struct wire *w, enum tls_status st, uint64_t deadline_ns, struct reply *out)
{
	struct fail f;

	out->kind = REPLY_NONE;
	switch (st) {
	case TLS_DONE:
		return false;
	case TLS_MORE:
		return clock_now_ns() < deadline_ns;
	case TLS_WANT_READ:
		return wait_for(tls_fd(w->tls), POLLIN, deadline_ns);
	case TLS_WANT_WRITE:
		return wait_for(tls_fd(w->tls), POLLOUT, deadline_ns);
	case TLS_EOF:
		out->kind = REPLY_CLOSED;
		return false;
	case TLS_FAILED:
		break;
	}
	tls_failure(w->tls, &f);
	out->kind = f.kind == FAIL_ERRNO && (f.code == ECONNRESET || f.code == EPIPE) ? REPLY_CLOSED :
		    REPLY_TLS;
	snprintf(out->text, sizeof(out->text), "%s", tls_failure_text(w->tls));
	return false;
}

bool wire_handshake(struct wire *w, struct reply *out)
{
	uint64_t deadline_ns = clock_now_ns() + w->timeout_ns;
	enum tls_status st;

	do {
		st = tls_handshake(w->tls);
	} while (go_on(w, st, deadline_ns, out));
	return st == TLS_DONE && tls_flush(w->tls) == TLS_DONE;
}

/* The ClientHello is recorded from a handshake over a socket pair. */
ssize_t wire_client_hello(struct rogue *r, uint8_t *buf, size_t size)
{
	int pair[2];
	struct tls *t;
	ssize_t n = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
		return -1;
	if (tls_new(r->tls_ctx, pair[0], r->host, &t)) {
		close(pair[0]);
	} else {
		if (tls_handshake(t) == TLS_WANT_READ)
			n = recv(pair[1], buf, size, 0);
		tls_free(t);
	}
	close(pair[1]);
	return n;
}

bool wire_open(struct rogue *r, const char *source, struct wire *w, struct reply *out)
{
	int fd = wire_tcp(r, source);

	w->tls = NULL;
	w->timeout_ns = r->timeout_ns;
	out->kind = REPLY_TLS;
	if (fd < 0) {
		snprintf(out->text, sizeof(out->text), "TCP: %s", strerror(-fd));
		return false;
	}
	if (tls_new(r->tls_ctx, fd, r->host, &w->tls)) {
		close(fd);
		snprintf(out->text, sizeof(out->text), "out of memory");
		return false;
	}
	if (r->session)
		tls_offer_session(w->tls, r->session);
	return wire_handshake(w, out);
}

void wire_close(struct wire *w)
{
	if (w->tls)
		tls_close_notify(w->tls);
	tls_free(w->tls);
	w->tls = NULL;
}

bool wire_write(struct wire *w, const void *data, size_t n)
{
	uint64_t deadline_ns = clock_now_ns() + w->timeout_ns;
	const uint8_t *p = data;
	struct reply ignored;

	while (n > 0) {
		size_t put = 0;
		enum tls_status st = tls_write(w->tls, p, n, &put);

		if (st != TLS_DONE && !go_on(w, st, deadline_ns, &ignored))
			return false;
		p += put;
		n -= put;
	}
	return tls_flush(w->tls) == TLS_DONE;
}

static bool read_upto(struct wire *w, uint8_t *buf, size_t n, uint64_t deadline_ns, struct reply *out)
{
	size_t have = 0;

	while (have < n) {
		size_t got = 0;
		enum tls_status st = tls_read(w->tls, buf + have, n - have, &got);

		if (st != TLS_DONE && !go_on(w, st, deadline_ns, out))
			return false;
		have += got;
	}
	return true;
}

bool wire_read_bytes(struct wire *w, void *buf, size_t n, struct reply *out)
{
	return read_upto(w, buf, n, clock_now_ns() + w->timeout_ns, out);
}

static void decode(const uint8_t *frame, const struct frame_header *h, struct reply *out)
{
	const char *why = "a frame of no known type";

	out->kind = REPLY_BROKEN;
	if (h->type == FRAME_REPORT)
		out->kind = REPLY_REPORT;
	else if (h->type == FRAME_GRANT && !frame_decode_grant(frame, h->length, &out->grant, &why))
		out->kind = REPLY_GRANT;
	else if (h->type == FRAME_REFUSE && !frame_decode_refuse(frame, h->length, &out->refuse, &why))
		out->kind = REPLY_REFUSE;
	snprintf(out->text, sizeof(out->text), "%s", why);
}

void wire_read(struct wire *w, struct reply *out)
{
	uint64_t deadline_ns = clock_now_ns() + w->timeout_ns;
	uint8_t header[FRAME_HEADER_BYTES], *frame;
	struct frame_header h;

	if (!read_upto(w, header, sizeof(header), deadline_ns, out))
		return;
	out->kind = REPLY_BROKEN;
	snprintf(out->text, sizeof(out->text), "a frame header that does not decode");
	if (frame_decode_header(header, FRAME_REPORT_BYTES_MAX, &h))
		return;
	frame = malloc(h.length);
	if (!frame)
		return;
	memcpy(frame, header, sizeof(header));
	if (read_upto(w, frame + sizeof(header), h.length - sizeof(header), deadline_ns, out))
		decode(frame, &h, out);
	free(frame);
}

void wire_hello(struct wire *w, const struct frame_hello *h, struct reply *out)
{
	uint8_t buf[FRAME_HELLO_BYTES];

	out->kind = REPLY_CLOSED;
	if (wire_write(w, buf, frame_encode_hello(h, buf)))
		wire_read(w, out);
}

void wire_open_hello(struct rogue *r, const struct frame_hello *h, struct wire *w, struct reply *out)
{
	if (wire_open(r, NULL, w, out))
		wire_hello(w, h, out);
}

void wire_ask(struct rogue *r, const struct frame_hello *h, struct reply *out)
{
	struct wire w;

	wire_open_hello(r, h, &w, out);
	wire_close(&w);
}

int wire_answer(const struct reply *reply)
{
	switch (reply->kind) {
	case REPLY_GRANT:
		return answer("granted");
	case REPLY_REFUSE:
		return answer("refused: %s: %s", refuse_code_name(reply->refuse.code), reply->refuse.text);
	case REPLY_REPORT:
		return answer("report");
	case REPLY_CLOSED:
		return answer("closed");
	case REPLY_TLS:
		return answer("tls: %s", reply->text);
	case REPLY_BROKEN:
		return answer("broken: %s", reply->text);
	case REPLY_NONE:
		break;
	}
	return no_answer("nothing came within the time limit");
}

bool wire_await_close(int fd, uint64_t timeout_ns)
{
	uint64_t deadline_ns = clock_now_ns() + timeout_ns;
	uint8_t buf[4096];

	while (wait_for(fd, POLLIN, deadline_ns)) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return true;
	}
	return false;
}

static enum transport asked = TRANSPORT_RDMA;

void wire_use(enum transport t)
{
	asked = t;
}

struct frame_hello wire_good_hello(void)
{
	struct frame_hello h = { .message_bytes = 64, .queue_depth = 1 };
	uint8_t b[3] = { 0 };

	h.features = asked == TRANSPORT_TCP ? FRAME_FEATURE_TCP : asked == TRANSPORT_TLS ? FRAME_FEATURE_TLS : 0;
	if (asked != TRANSPORT_RDMA)
		return h;
	(void)!auth_random(NULL, b, sizeof(b));
	h.psn = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
	return h;
}
