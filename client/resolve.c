/* SPDX-License-Identifier: BSD-2-Clause */
/* Host names to addresses. See resolve.h. */
#include "client/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>

int resolve_host(const char *host, uint16_t port, struct addr *out, char *err, size_t err_size)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;
	int e = getaddrinfo(host, NULL, &hints, &list);
	int ret = -EHOSTUNREACH;

	if (e) {
		snprintf(err, err_size, "%s: %s; give a name or address of the server", host, gai_strerror(e));
		return ret;
	}
	if (!addr_from_sockaddr(list->ai_addr, out)) {
		addr_set_port(out, port);
		ret = 0;
	} else {
		snprintf(err, err_size, "%s has no IP address", host);
	}
	freeaddrinfo(list);
	return ret;
}
