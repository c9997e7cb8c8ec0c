/* SPDX-License-Identifier: BSD-2-Clause */
/* The bootstrap side of a raw client: TCP and TLS, driven step by step, each step with a time limit. */
#ifndef RAMPART_TESTS_SOFT_ROCE_WIRE_H
#define RAMPART_TESTS_SOFT_ROCE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/wire/fail.h"
#include "common/wire/frame.h"
#include "tests/adversary/rogue.h"

struct tls;

struct wire {
	struct tls *tls;	/* NULL: not open */
	uint64_t timeout_ns;
};

enum reply_kind {
	REPLY_GRANT,
	REPLY_REFUSE,
	REPLY_REPORT,
	REPLY_CLOSED,	/* the peer closed, in whichever way */
	REPLY_TLS,	/* TLS failed: see text */
	REPLY_NONE,	/* nothing came in time */
	REPLY_BROKEN,	/* a frame that does not decode */
};

struct reply {
	enum reply_kind kind;
	struct frame_grant grant;
	struct frame_refuse refuse;
	char text[160];
};

/* A TCP connection to the server, non-blocking; from the address `source`, or --source if that is NULL. Its descriptor, or
 * -errno. */
int wire_tcp(const struct rogue *r, const char *source) __attribute__((warn_unused_result));

/* The bytes of a ClientHello of this client; their number, 0 or -1 if there are none. */
ssize_t wire_client_hello(struct rogue *r, uint8_t *buf, size_t size);

/* TCP and the TLS handshake. True, or false with the reason in `out`. */
bool wire_open(struct rogue *r, const char *source, struct wire *w, struct reply *out);
/* Drives the handshake of w->tls, whichever side it is. */
bool wire_handshake(struct wire *w, struct reply *out);
void wire_close(struct wire *w);

/* False if the connection broke or took nothing in time. */
bool wire_write(struct wire *w, const void *data, size_t n);

/* Exactly `n` bytes; otherwise false, with the reason in `out`. */
bool wire_read_bytes(struct wire *w, void *buf, size_t n, struct reply *out);

/* The next frame, or what came instead of one. */
void wire_read(struct wire *w, struct reply *out);

/* Sends a HELLO; the reply is in `out`. */
void wire_hello(struct wire *w, const struct frame_hello *h, struct reply *out);

/* wire_open, and then wire_hello. */
void wire_open_hello(struct rogue *r, const struct frame_hello *h, struct wire *w, struct reply *out);
/* The same on a connection of its own, which is closed then: a session that is granted is not used. */
void wire_ask(struct rogue *r, const struct frame_hello *h, struct reply *out);

/* Says what came: "granted", "refused: bad_request: ...", "closed", "tls: ...". A mode's status. */
int wire_answer(const struct reply *reply);

/* Waits until the peer of a plain TCP connection closed it; what it sends is thrown away. */
bool wire_await_close(int fd, uint64_t timeout_ns);

/* An acceptable HELLO with a random PSN; without one over a socket. */
struct frame_hello wire_good_hello(void);
/* What it asks for. */
void wire_use(enum transport t);

#endif
