/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the path to a server for `performance_test doctor --server`: TLS, a ping over each transport, the MTU. */
#ifndef RAMPART_LOADGEN_DOCTOR_SERVER_H
#define RAMPART_LOADGEN_DOCTOR_SERVER_H

#include <stdint.h>

#include "loadgen/doctor/base/finding.h"

struct server_way {
	const char *host;
	uint64_t port;
	const char *name;	/* name that its certificate must have; NULL: host */
	const char *ca, *cert, *key;
	const char *device;	/* RDMA device; NULL: the one that reaches the server */
	uint64_t ping_ns;	/* how long each transport is tried */
};

/* Connects and pings over RDMA, TCP and TLS, one after the other. */
void server_check(const struct server_way *way, struct findings *out);

#endif
