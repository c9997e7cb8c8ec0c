/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of transports. See transport.h. */
#include "common/wire/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const transport_names[] = { "rdma", "tcp", "tls", NULL };

static int transport_find(const char *name, size_t n)
{
	for (int i = 0; transport_names[i]; i++)
		if (strlen(transport_names[i]) == n && strncmp(transport_names[i], name, n) == 0)
			return i;
	return -EINVAL;
}

int transports_parse(const char *option, const char *text, uint32_t *out, char *err, size_t err_size)
{
	uint32_t all = 0;

	for (const char *at = text;; at++) {
		size_t n = strcspn(at, ",");
		int i = transport_find(at, n);

		if (i < 0 || (all >> i & 1)) {
			snprintf(err, err_size, "--%s: '%s' is not allowed; allowed: rdma, tcp and tls, each once, "
				 "separated by commas", option, text);
			return -EINVAL;
		}
		all |= 1u << i;
		at += n;
		if (!*at)
			break;
	}
	*out = all;
	return 0;
}
