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
	REPLY_CLOSED,	/* the peer closed, in any way */
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

/* Opens a non-blocking TCP connection to the server, from `source`, or from --source if that is NULL. Returns its
 * descriptor, or -errno. */
int wire_tcp(const struct rogue *r, const char *source) __attribute__((warn_unused_result));

/* Writes the bytes of a ClientHello to `buf`. Returns their number, 0 or -1 on failure. */
ssize_t wire_client_hello(struct rogue *r, uint8_t *buf, size_t size);

/* Opens TCP and does the TLS handshake. On failure returns false with the reason in `out`. */
bool wire_open(struct rogue *r, const char *source, struct wire *w, struct reply *out);
/* Drives the handshake of w->tls, as client or server. */
bool wire_handshake(struct wire *w, struct reply *out);
void wire_close(struct wire *w);

/* False if the connection broke or accepted nothing in time. */
bool wire_write(struct wire *w, const void *data, size_t n);

/* Reads exactly `n` bytes; on failure returns false with the reason in `out`. */
bool wire_read_bytes(struct wire *w, void *buf, size_t n, struct reply *out);

/* Reads the next frame; `out` says what came. */
void wire_read(struct wire *w, struct reply *out);

/* Sends a HELLO and reads the reply into `out`. */
void wire_hello(struct wire *w, const struct frame_hello *h, struct reply *out);

/* wire_open, then wire_hello. */
void wire_open_hello(struct rogue *r, const struct frame_hello *h, struct wire *w, struct reply *out);
/* The same on a connection of its own, which is closed afterwards without using a granted session. */
void wire_ask(struct rogue *r, const struct frame_hello *h, struct reply *out);

/* Prints the reply: "granted", "refused: bad_request: ...", "closed", "tls: ...". Returns a mode's status. */
int wire_answer(const struct reply *reply);

/* Waits until the peer of a plain TCP connection has closed it; discards what the peer sends. */
bool wire_await_close(int fd, uint64_t timeout_ns);

/* Returns an acceptable HELLO with a random PSN, or without one if the transport is a socket. */
struct frame_hello wire_good_hello(void);
/* Sets the transport that wire_good_hello asks for. */
void wire_use(enum transport t);

#endif
