/* SPDX-License-Identifier: BSD-2-Clause */
/* How messages travel once a client has its GRANT. Pure. */
#ifndef RAMPART_COMMON_TRANSPORT_H
#define RAMPART_COMMON_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

enum transport {
	TRANSPORT_RDMA,		/* a reliable connection of two queue pairs */
	TRANSPORT_TCP,		/* a separate TCP connection, proven to belong to the TLS session */
	TRANSPORT_TLS,		/* the TLS connection of the bootstrap */
	TRANSPORT_N,
};
extern const char *const transport_names[];	/* in the order of the enum, NULL-terminated */

/* How the two queue pairs of an RDMA connection learn of each other. */
enum connect_way {
	CONNECT_CM,		/* from the connection manager, rdmacm */
	CONNECT_OOB,		/* out of band: from HELLO and GRANT, inside TLS */
	CONNECT_N,
};
extern const char *const connect_way_names[];	/* in the order of the enum, NULL-terminated */

#define TRANSPORTS_ALL ((1u << TRANSPORT_N) - 1)

#define CONNECTS_ALL ((1u << CONNECT_N) - 1)

/* Parses a comma-separated list of `names`, one of the lists above, into a bit for each (1 << TRANSPORT_RDMA, ...).
 * Returns 0, or -EINVAL with a line in `err` that begins with "--" and `option`. */
int transports_parse(const char *option, const char *const *names, const char *text, uint32_t *out, char *err,
		     size_t err_size)
	__attribute__((warn_unused_result));

#endif
