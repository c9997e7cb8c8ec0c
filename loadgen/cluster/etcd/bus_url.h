/* SPDX-License-Identifier: BSD-2-Clause */
/* The URL that names a run in an etcd: etcd://HOST:PORT/RUN[?token=SECRET], or etcds:// for TLS. HOST is a name, an IPv4 address,
 * or an IPv6 address in brackets. RUN is 1 to 64 of [A-Za-z0-9._-]. SECRET is 1 to 128 of [A-Za-z0-9._~-]: the password of etcd's
 * user `rampart`. Pure. */
#ifndef RAMPART_LOADGEN_CLUSTER_BUS_URL_H
#define RAMPART_LOADGEN_CLUSTER_BUS_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUS_RUN_MAX	64
#define BUS_TOKEN_MAX	128
#define BUS_HOST_MAX	253	/* of a name (RFC 1035, 2.3.4), without the final dot */
#define BUS_URL_MAX	512	/* room for any URL as text, with the final zero */

struct bus_url {
	bool tls;
	bool brackets;			/* the host is an IPv6 address */
	char host[BUS_HOST_MAX + 1];	/* without brackets */
	uint16_t port;
	char run[BUS_RUN_MAX + 1];
	char token[BUS_TOKEN_MAX + 1];	/* "": none. Never logged */
};

/* 0, or -EINVAL with a line in `err` that names what is wrong and what is allowed, and never has the token. */
int bus_url_parse(const char *text, struct bus_url *out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* The URL without its token, for messages, files and screens. Returns `text`. */
const char *bus_url_public(const struct bus_url *, char text[BUS_URL_MAX]);

/* The URL with its token, for the line that the other hosts' operators are to run. Returns `text`. */
const char *bus_url_secret(const struct bus_url *, char text[BUS_URL_MAX]);

/* Overwrites with '*', in place, the token of any argument that has one ("...?token=SECRET", also as --join=URL): so that an
 * argument list that is recorded, and what ps shows of this process, do not have it. True if there was one. */
bool bus_url_redact(char *argument);

#endif
