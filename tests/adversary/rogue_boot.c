/* SPDX-License-Identifier: BSD-2-Clause */
/* Misbehaviour before RDMA begins: TCP, TLS, bootstrap frames, PSN exchange, control sessions. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/wire/be.h"
#include "common/wire/psn.h"
#include "common/tls/tls.h"
#include "tests/adversary/wire.h"

#define WIRES_MAX 1024

/* A well-formed frame with one field overwritten. */
struct patch {
	bool control;		/* a CONTROL frame instead of a HELLO */
	unsigned offset, bytes;
	uint32_t value;
	unsigned send;		/* bytes of it that are sent; 0: all */
};

static size_t patched_frame(const struct patch *p, uint8_t *buf)
{
	struct frame_hello h = wire_good_hello();
	size_t n = p->control ? frame_encode_control(CONTROL_STATS, buf) : frame_encode_hello(&h, buf);

	for (unsigned i = 0; i < p->bytes; i++)
		buf[p->offset + i] = (uint8_t)(p->value >> 8 * (p->bytes - 1 - i));
	return p->send ? p->send : n;
}

static int bad_frame(struct rogue *r, const struct mode *m)
{
	uint8_t buf[64] = { 0 };
	struct reply reply;
	struct wire w;

	if (wire_open(r, NULL, &w, &reply) && wire_write(&w, buf, patched_frame(m->patch, buf)))
		wire_read(&w, &reply);
	wire_close(&w);
	return wire_answer(&reply);
}

/* Sends part of a frame and ends the stream. */
static int truncated(struct rogue *r, const struct mode *m)
{
	static const struct patch first_ten = { .send = 10 };
	uint8_t buf[64];
	struct reply reply;
	struct wire w;

	(void)m;
	if (wire_open(r, NULL, &w, &reply) && wire_write(&w, buf, patched_frame(&first_ten, buf))) {
		shutdown(tls_fd(w.tls), SHUT_WR);
		wire_read(&w, &reply);
	}
	wire_close(&w);
	return wire_answer(&reply);
}

/* Sends a good HELLO, with each byte in its own TLS record. */
static int byte_by_byte(struct rogue *r, const struct mode *m)
{
	static const struct patch none = { 0 };
	uint8_t buf[64];
	struct reply reply;
	size_t n, i = 0;
	struct wire w;

	(void)m;
	if (!wire_open(r, NULL, &w, &reply))
		return wire_answer(&reply);
	n = patched_frame(&none, buf);
	while (i < n && wire_write(&w, &buf[i], 1))
		i++;
	wire_read(&w, &reply);
	wire_close(&w);
	return wire_answer(&reply);
}

static int garbage_in_tls(struct rogue *r, const struct mode *m)
{
	uint8_t buf[4096];
	struct reply reply;
	struct wire w;

	(void)m;
	memset(buf, 0xff, sizeof(buf));
	if (wire_open(r, NULL, &w, &reply) && wire_write(&w, buf, sizeof(buf)))
		wire_read(&w, &reply);
	wire_close(&w);
	return wire_answer(&reply);
}

static int send_after_grant(struct rogue *r, uint16_t features, int frame)
{
	struct patch p = { .control = frame == FRAME_CONTROL };
	struct frame_hello h = wire_good_hello();
	uint8_t buf[64];
	struct reply reply;
	struct wire w;

	h.features |= features;
	wire_open_hello(r, &h, &w, &reply);
	if (reply.kind == REPLY_GRANT) {
		(void)!wire_write(&w, buf, patched_frame(&p, buf));
		wire_read(&w, &reply);
	}
	wire_close(&w);
	return wire_answer(&reply);
}

/* Sends another frame after the GRANT, which should be the last. variant: FRAME_HELLO or FRAME_CONTROL. */
static int goes_on_after_grant(struct rogue *r, const struct mode *m)
{
	return send_after_grant(r, 0, m->variant);
}

/* Sends a CONTROL where it has announced another HELLO. */
static int control_instead_of_hello(struct rogue *r, const struct mode *m)
{
	(void)m;
	return send_after_grant(r, FRAME_FEATURE_MORE, FRAME_CONTROL);
}

/* Says HELLO on one TLS connection until it is refused, and announces another one each time. */
static int hello_without_end(struct rogue *r, const struct mode *m)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;
	struct wire w;
	int granted = 0;

	(void)m;
	h.features |= FRAME_FEATURE_MORE;
	wire_open_hello(r, &h, &w, &reply);
	while (reply.kind == REPLY_GRANT && granted++ < 100) {
		h.psn = wire_good_hello().psn;
		wire_hello(&w, &h, &reply);
	}
	wire_close(&w);
	return reply.kind == REPLY_REFUSE ? answer("refused: %s: %s, after %d grants",
		refuse_code_name(reply.refuse.code), reply.refuse.text, granted) :
		no_answer("%d granted, then a reply of kind %d", granted, reply.kind);
}

/* Takes a GRANT and does nothing more. */
static int vanish(struct rogue *r, const struct mode *m)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;
	struct wire w;

	(void)m;
	wire_open_hello(r, &h, &w, &reply);
	/* This closes without close_notify. */
	tls_free(w.tls);
	return wire_answer(&reply);
}

/* Sends these bytes, if any, and nothing more. */
static int send_below_tls(const struct rogue *r, const void *data, size_t n)
{
	int fd = wire_tcp(r, NULL);
	bool closed = fd >= 0 && (n == 0 || send(fd, data, n, MSG_NOSIGNAL) > 0) && wire_await_close(fd, r->timeout_ns);

	if (fd >= 0)
		close(fd);
	return closed ? answer("closed") : no_answer("the connection stays open");
}

static int silence(struct rogue *r, const struct mode *m)
{
	(void)m;
	return send_below_tls(r, NULL, 0);
}

static int plain_garbage(struct rogue *r, const struct mode *m)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: rampart\r\n\r\n";

	(void)m;
	return send_below_tls(r, text, sizeof(text) - 1);
}

static int half_a_client_hello(struct rogue *r, const struct mode *m)
{
	uint8_t buf[2048];
	ssize_t n = wire_client_hello(r, buf, sizeof(buf));

	(void)m;
	return n > 1 ? send_below_tls(r, buf, (size_t)n / 2) : no_answer("no ClientHello");
}

/* Answers the server's first flight with an unencrypted alert (RFC 8446, 6), and sends nothing more. */
static bool alert(const struct rogue *r, const uint8_t *hello, size_t n, uint8_t description)
{
	const uint8_t record[] = { 21, 3, 3, 0, 2, 2, description };
	int fd = wire_tcp(r, NULL);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool closed = fd >= 0 && send(fd, hello, n, MSG_NOSIGNAL) == (ssize_t)n &&
		      poll(&p, 1, (int)(r->timeout_ns / NS_PER_MS)) > 0 &&
		      send(fd, record, sizeof(record), MSG_NOSIGNAL) > 0 && shutdown(fd, SHUT_WR) == 0 &&
		      wire_await_close(fd, r->timeout_ns);

	if (fd >= 0)
		close(fd);
	return closed;
}

/* Sends every possible alert, each in a handshake of its own with the same ClientHello. */
static int alerts(struct rogue *r, const struct mode *m)
{
	uint8_t buf[2048];
	ssize_t n = wire_client_hello(r, buf, sizeof(buf));
	int closed = 0;

	(void)m;
	for (int i = 0; n > 0 && i < 256; i++)
		closed += alert(r, buf, (size_t)n, (uint8_t)i);
	return closed == 256 ? answer("256 handshakes closed") : no_answer("%d of 256 were closed", closed);
}

static int handshake_only(struct rogue *r, const struct mode *m)
{
	struct reply reply;
	struct wire w;

	(void)m;
	if (wire_open(r, NULL, &w, &reply))
		wire_read(&w, &reply);
	wire_close(&w);
	return wire_answer(&reply);
}

/* Opens ARG silent TCP connections at once and waits until the server has closed all of them. */
static int flood(struct rogue *r, const struct mode *m)
{
	int fds[WIRES_MAX], n = r->arg ? atoi(r->arg) : 64, closed = 0;

	(void)m;
	if (n < 1 || n > WIRES_MAX)
		return no_answer("1 to %d connections", WIRES_MAX);
	for (int i = 0; i < n; i++)
		fds[i] = wire_tcp(r, NULL);
	answer("%d connections", n);
	for (int i = 0; i < n; i++) {
		if (fds[i] < 0)
			continue;
		closed += wire_await_close(fds[i], r->timeout_ns);
		close(fds[i]);
	}
	return closed == n ? answer("closed") : no_answer("%d of %d were closed", closed, n);
}

/* Asks for both PSNs of another connection's session, and then for a free PSN. */
static int psn_conflict(struct rogue *r, const struct mode *m)
{
	struct frame_hello h = wire_good_hello(), again = h, free_one = wire_good_hello();
	struct reply held, first, second, third;
	struct wire a, b;

	(void)m;
	if (wire_open(r, NULL, &a, &held))
		wire_hello(&a, &h, &held);
	if (held.kind != REPLY_GRANT || !wire_open(r, NULL, &b, &first))
		return no_answer("no session to conflict with");
	again.psn = h.psn;
	wire_hello(&b, &again, &first);
	again.psn = held.grant.psn;
	wire_hello(&b, &again, &second);
	wire_hello(&b, &free_one, &third);
	wire_close(&a);
	wire_close(&b);
	if (first.kind == REPLY_REFUSE && second.kind == REPLY_REFUSE && third.kind == REPLY_GRANT)
		return answer("refused: %s, refused: %s, granted", refuse_code_name(first.refuse.code),
			      refuse_code_name(second.refuse.code));
	return no_answer("replies of kind %d, %d, %d", first.kind, second.kind, third.kind);
}

/* Keeps asking for a PSN that is in use until the server ends the connection. */
static int endless_conflict(struct rogue *r, const struct mode *m)
{
	struct frame_hello h = wire_good_hello();
	struct reply held, reply;
	struct wire a, b;
	int refused = 0;

	(void)m;
	if (wire_open(r, NULL, &a, &held))
		wire_hello(&a, &h, &held);
	if (held.kind != REPLY_GRANT || !wire_open(r, NULL, &b, &reply))
		return no_answer("no session to conflict with");
	do {
		wire_hello(&b, &h, &reply);
		refused += reply.kind == REPLY_REFUSE && reply.refuse.code == REFUSE_PSN_CONFLICT;
	} while (reply.kind == REPLY_REFUSE && refused < 1000);
	wire_close(&a);
	wire_close(&b);
	if (reply.kind == REPLY_CLOSED)
		return answer("closed after %d times psn_conflict", refused);
	return wire_answer(&reply);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Holds ARG sessions at once; their PSNs of both directions must all be different. */
static int unique_psns(struct rogue *r, const struct mode *m)
{
	static uint32_t psns[2 * WIRES_MAX];
	int n = r->arg ? atoi(r->arg) : 32, granted = 0, same = 0;

	(void)m;
	for (; granted < n && granted < WIRES_MAX; granted++) {
		struct frame_hello h = wire_good_hello();
		struct reply reply;

		wire_ask(r, &h, &reply);
		if (reply.kind != REPLY_GRANT)
			return wire_answer(&reply);
		psns[2 * granted] = h.psn;
		psns[2 * granted + 1] = reply.grant.psn;
	}
	qsort(psns, 2 * (size_t)granted, sizeof(psns[0]), compare);
	for (int i = 1; i < 2 * granted; i++)
		same += psns[i] == psns[i - 1];
	return answer("%d sessions, %d PSNs the same", granted, same);
}

/* Sends ARG requests in one write, and then reads the answers. */
static int pipelined(struct rogue *r, const struct mode *m)
{
	int n = r->arg ? atoi(r->arg) : 100, reports = 0;
	uint8_t *buf = calloc((size_t)n, FRAME_CONTROL_BYTES);
	struct reply reply;
	struct wire w;

	(void)m;
	for (int i = 0; buf && i < n; i++)
		frame_encode_control(CONTROL_STATS, buf + i * FRAME_CONTROL_BYTES);
	if (buf && wire_open(r, NULL, &w, &reply) &&
	    wire_write(&w, buf, (size_t)n * FRAME_CONTROL_BYTES)) {
		do {
			wire_read(&w, &reply);
			reports += reply.kind == REPLY_REPORT;
		} while (reply.kind == REPLY_REPORT && reports < n);
	}
	wire_close(&w);
	free(buf);
	if (reply.kind == REPLY_REPORT || reply.kind == REPLY_CLOSED)
		return answer("%s after %d reports", reports == n ? "done" : "closed", reports);
	return wire_answer(&reply);
}

/* Sends a HELLO in a control session. */
static int hello_in_control(struct rogue *r, const struct mode *m)
{
	static const struct patch control = { .control = true };
	struct frame_hello h = wire_good_hello();
	uint8_t buf[64];
	struct reply reply;
	struct wire w;

	(void)m;
	if (wire_open(r, NULL, &w, &reply) && wire_write(&w, buf, patched_frame(&control, buf)))
		wire_read(&w, &reply);
	if (reply.kind == REPLY_REPORT)
		wire_hello(&w, &h, &reply);
	wire_close(&w);
	return wire_answer(&reply);
}

/* Opens ARG control sessions, prints how many got a report, and holds them until it is killed. */
static int hold_controls(struct rogue *r, const struct mode *m)
{
	static const struct patch control = { .control = true };
	int n = r->arg ? atoi(r->arg) : 32, reports = 0, refused = 0;
	uint8_t buf[64];

	(void)m;
	for (int i = 0; i < n; i++) {
		struct reply reply;
		struct wire w;

		/* A session with a report stays open until the process ends. */
		if (!wire_open(r, NULL, &w, &reply) ||
		    !wire_write(&w, buf, patched_frame(&control, buf)))
			break;
		wire_read(&w, &reply);
		reports += reply.kind == REPLY_REPORT;
		refused += reply.kind == REPLY_REFUSE && reply.refuse.code == REFUSE_BUSY;
		if (reply.kind != REPLY_REPORT)
			wire_close(&w);
	}
	answer("%d reports, %d times refused: busy, %d unanswered", reports, refused,
	       n - reports - refused);
	pause();
	return ROGUE_ANSWERED;
}

#define PATCH(...) .run = bad_frame, .patch = &(const struct patch) { __VA_ARGS__ }

const struct mode boot_modes[] = {
	{ "tcp-silence", .run = silence },
	{ "tcp-garbage", .run = plain_garbage },
	{ "half-client-hello", .run = half_a_client_hello },
	{ "handshake-only", .run = handshake_only },
	{ "alerts", .run = alerts },
	{ "flood", .run = flood },
	{ "frame-length-0", PATCH(.bytes = 4, .value = 0) },
	{ "frame-length-7", PATCH(.bytes = 4, .value = 7) },
	{ "frame-length-65", PATCH(.bytes = 4, .value = 65) },
	{ "frame-length-4g", PATCH(.bytes = 4, .value = UINT32_MAX) },
	{ "frame-version-0", PATCH(.offset = 4, .bytes = 1, .value = 0) },
	{ "frame-version-1", PATCH(.offset = 4, .bytes = 1, .value = 1) },
	{ "frame-type-0", PATCH(.offset = 5, .bytes = 1, .value = 0) },
	{ "frame-type-grant", PATCH(.offset = 5, .bytes = 1, .value = FRAME_GRANT) },
	{ "frame-type-report", PATCH(.offset = 5, .bytes = 1, .value = FRAME_REPORT) },
	{ "frame-type-255", PATCH(.offset = 5, .bytes = 1, .value = 255) },
	{ "frame-reserved", PATCH(.offset = 6, .bytes = 2, .value = 1) },
	{ "frame-garbage", .run = garbage_in_tls },
	{ "hello-length-20", PATCH(.bytes = 4, .value = 20, .send = 20) },
	{ "hello-message-15", PATCH(.offset = 8, .bytes = 4, .value = 15) },
	{ "hello-message-1m1", PATCH(.offset = 8, .bytes = 4, .value = FRAME_MESSAGE_BYTES_MAX + 1) },
	{ "hello-message-1m", PATCH(.offset = 8, .bytes = 4, .value = FRAME_MESSAGE_BYTES_MAX) },
	{ "hello-depth-0", PATCH(.offset = 12, .bytes = 2, .value = 0) },
	{ "hello-depth-1025", PATCH(.offset = 12, .bytes = 2, .value = FRAME_QUEUE_DEPTH_MAX + 1) },
	{ "hello-features", PATCH(.offset = 14, .bytes = 2, .value = FRAME_FEATURES_KNOWN + 1) },
	{ "hello-psn", PATCH(.offset = 16, .bytes = 4, .value = PSN_COUNT) },
	{ "hello-region-unasked", PATCH(.offset = 20, .bytes = 4, .value = 1) },
	{ "hello-window-alone", PATCH(.offset = 14, .bytes = 2, .value = FRAME_FEATURE_WINDOW) },
	{ "hello-window-unasked", PATCH(.offset = 32, .bytes = 4, .value = 4096) },
	{ "hello-window-empty", PATCH(.offset = 14, .bytes = 2, .value = FRAME_FEATURE_WINDOW | FRAME_FEATURE_REGION) },
	{ "hello-qp-unasked", PATCH(.offset = 56, .bytes = 4, .value = 0x1234) },
	{ "hello-qp-none", PATCH(.offset = 14, .bytes = 2, .value = FRAME_FEATURE_OOB) },
	{ "hello-truncated", .run = truncated },
	{ "hello-byte-by-byte", .run = byte_by_byte },
	{ "hello-after-grant", .run = goes_on_after_grant, .variant = FRAME_HELLO },
	{ "control-after-grant", .run = goes_on_after_grant, .variant = FRAME_CONTROL },
	{ "control-after-more", .run = control_instead_of_hello },
	{ "hello-without-end", .run = hello_without_end },
	{ "vanish", .run = vanish },
	{ "psn-conflict", .run = psn_conflict },
	{ "endless-conflict", .run = endless_conflict },
	{ "unique-psns", .run = unique_psns },
	{ "control-length-10", PATCH(.control = true, .bytes = 4, .value = 10, .send = 10) },
	{ "control-0", PATCH(.control = true, .offset = 8, .bytes = 2, .value = 0) },
	{ "control-5", PATCH(.control = true, .offset = 8, .bytes = 2, .value = 5) },
	{ "control-reserved", PATCH(.control = true, .offset = 10, .bytes = 2, .value = 1) },
	{ "watch-0", PATCH(.control = true, .offset = 8, .bytes = 4, .value = 0x40000) },
	{ "watch-65535", PATCH(.control = true, .offset = 8, .bytes = 4, .value = 0x4ffff) },
	{ "control-pipelined", .run = pipelined },
	{ "hello-in-control", .run = hello_in_control },
	{ "hold-controls", .run = hold_controls },
	{ NULL },
};
