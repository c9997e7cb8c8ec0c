/* SPDX-License-Identifier: BSD-2-Clause */
/* The URL that names a run in an etcd: etcd://HOST:PORT/RUN[?token=SECRET], or etcds:// for TLS. HOST is a name, an
 * IPv4 address, or an IPv6 address in brackets. RUN is 1 to 64 of [A-Za-z0-9._-]. SECRET is 1 to 128 of
 * [A-Za-z0-9._~-]: the password of etcd's user `rampart`. Pure. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_URL_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCD_RUN_MAX	64
#define ETCD_TOKEN_MAX	128
#define ETCD_HOST_MAX	253	/* limit of a name (RFC 1035, 2.3.4), without the final dot */
#define ETCD_URL_MAX	512	/* room for any URL as text, with the final zero */

struct etcd_url {
	bool tls;
	char host[ETCD_HOST_MAX + 3];	/* an IPv6 address keeps its brackets */
	uint16_t port;
	char run[ETCD_RUN_MAX + 1];
	char token[ETCD_TOKEN_MAX + 1];	/* "": none. Never logged */
};

/* Returns 0, or -EINVAL with a line in `err` that names the fault and the valid form, and never contains the token. */
int etcd_url_parse(const char *text, struct etcd_url *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The URL with its token, for the command line to run on the other hosts. Returns `text`. */
const char *etcd_url_secret(const struct etcd_url *, char text[ETCD_URL_MAX]);

/* Overwrites the token in an argument ("...?token=SECRET", also as --join=URL) with '*' in place, so that neither a
 * recorded argument list nor ps shows it. */
void etcd_url_redact(char *argument);

#endif
