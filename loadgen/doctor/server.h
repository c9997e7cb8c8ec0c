/* SPDX-License-Identifier: BSD-2-Clause */
/* The way to a server, as `performance_test doctor --server` tries it: TLS, a ping over each transport, the MTU. */
#ifndef RAMPART_LOADGEN_DOCTOR_SERVER_H
#define RAMPART_LOADGEN_DOCTOR_SERVER_H

#include <stdint.h>

#include "loadgen/doctor/base/finding.h"

struct server_way {
	const char *host;
	uint64_t port;
	const char *name;	/* that its certificate must have; NULL: host */
	const char *ca, *cert, *key;
	const char *device;	/* RDMA device; NULL: the one that reaches the server */
	uint64_t ping_ns;	/* how long each transport is tried */
};

/* Connects and pings over RDMA, TCP and TLS, one after the other. */
void server_check(const struct server_way *way, struct findings *out);

#endif
