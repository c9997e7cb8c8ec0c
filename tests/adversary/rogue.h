/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the rogue client share. A mode is one misbehaviour; it says on one line of stdout
 * what came of it (answer). One thread; everything waits with a time limit. */
#ifndef RAMPART_TESTS_SOFT_ROCE_ROGUE_H
#define RAMPART_TESTS_SOFT_ROCE_ROGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/rdma/dev.h"
#include "common/wire/transport.h"

struct tls_ctx;
struct tls_session;

struct rogue {
	struct addr server;	/* of the TLS bootstrap */
	const char *host;	/* whom the certificate must name */
	struct addr source;	/* of TLS connections; len 0: the device's address */
	const char *arg;	/* the mode's; NULL if none was given */
	uint64_t timeout_ns;	/* for every wait */
	struct tls_ctx *tls_ctx;
	struct tls_session *session;	/* offered in every handshake; NULL: none */
	enum transport transport;
	bool narrow;		/* connections that it makes have the smallest receive buffer */
	struct dev dev;		/* the device that reaches the server; over sockets it has the address alone */
};

/* Exit statuses of modes. */
enum { ROGUE_ANSWERED = 0, ROGUE_NO_ANSWER = 1 };

struct mode {
	const char *name;
	int (*run)(struct rogue *r, const struct mode *m);
	const struct patch *patch;	/* rogue_boot.c */
	int variant;			/* which of several ways */
};

/* Prints the line and returns ROGUE_ANSWERED. */
int answer(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints why there is no answer and returns ROGUE_NO_ANSWER. */
int no_answer(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Connects as one should, gets an echo and leaves. False, with a line, if that fails. rogue_link.c over RDMA, rogue_socket.c
 * over r->transport. */
bool link_check(struct rogue *r);
bool socket_check(struct rogue *r);

/* Tables of modes; a NULL name ends them. */
extern const struct mode boot_modes[], link_modes[], region_modes[], push_modes[], life_modes[], tls_modes[],
	flood_modes[], stale_modes[], credit_modes[], crowd_modes[],
	packet_modes[], socket_modes[];

#endif
