/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of servers, comma-separated (--targets, --allow-server). No I/O; any thread. */
#ifndef RAMPART_LOADGEN_TARGETS_H
#define RAMPART_LOADGEN_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rails.h"

#define TARGETS_MAX 16
#define TARGET_NAME_BYTES (RAIL_NAME_BYTES + 8)	/* [HOST]:PORT */

struct target {
	char name[TARGET_NAME_BYTES];	/* as it was given */
	char host[RAIL_NAME_BYTES];	/* a name or an address, without brackets */
	uint16_t port;			/* port of its TLS listener */
};

struct targets {
	struct target v[TARGETS_MAX];
	uint32_t n;
};

/* Splits the value of `option` (its name without dashes) into 1 to TARGETS_MAX servers. Each is HOST or HOST:PORT, an
 * IPv6 address with a port in brackets; none may be given twice. A server without a port gets `port`. Returns 0, or
 * -EINVAL with a line in `err` that says what is allowed; `out` is then undefined. */
int targets_parse(const char *option, const char *list, uint16_t port, struct targets *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* True if `allowed` has the host with this port, or with port 0, which stands for any port. */
bool targets_allow(const struct targets *allowed, const char *host, uint16_t port);

#endif
