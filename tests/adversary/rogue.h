/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the files of the rogue client share. A mode is one misbehaviour; it prints the outcome in one line
 * (answer). There is one thread, and every wait has a time limit. */
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
	struct addr server;	/* the server's address for the TLS bootstrap */
	const char *host;	/* the name that the certificate must have */
	struct addr source;	/* source of TLS connections; len 0: the device's address */
	const char *arg;	/* the mode's argument; NULL if none was given */
	uint64_t timeout_ns;	/* for every wait */
	struct tls_ctx *tls_ctx;
	struct tls_session *session;	/* offered in every handshake; NULL: none */
	enum transport transport;
	bool oob;		/* RDMA connections are made out of band, where a mode can do so */
	bool narrow;		/* new connections get the smallest receive buffer */
	struct dev dev;		/* the device that reaches the server; over sockets only its address is set */
};

/* Exit statuses of modes. */
enum { ROGUE_ANSWERED = 0, ROGUE_NO_ANSWER = 1 };

struct mode {
	const char *name;
	int (*run)(struct rogue *r, const struct mode *m);
	const struct patch *patch;	/* rogue_boot.c */
	int variant;			/* selects one of several variants of the mode */
};

/* Prints the line and returns ROGUE_ANSWERED. */
int answer(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints why there is no answer, and returns ROGUE_NO_ANSWER. */
int no_answer(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Connects correctly, gets an echo and leaves. On failure prints a line and returns false. link_check uses RDMA
 * (rogue_link.c), socket_check r->transport (rogue_socket.c). */
bool link_check(struct rogue *r);
bool socket_check(struct rogue *r);

/* Tables of modes; a NULL name ends them. */
extern const struct mode boot_modes[], link_modes[], region_modes[], push_modes[], life_modes[], tls_modes[],
	flood_modes[], stale_modes[], credit_modes[], crowd_modes[],
	packet_modes[], socket_modes[];

#endif
