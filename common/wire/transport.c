/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of transports. See transport.h. */
#include "common/wire/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const transport_names[] = { "rdma", "tcp", "tls", NULL };
const char *const connect_way_names[] = { "cm", "oob", NULL };

static int find(const char *const *names, const char *name, size_t n)
{
	for (int i = 0; names[i]; i++)
		if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
			return i;
	return -EINVAL;
}

/* "a, b and c" */
static void list(const char *const *names, char *out, size_t size)
{
	size_t used = 0;

	for (int i = 0; names[i] && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : names[i + 1] ? ", " : " and ",
					 names[i]);
}

int transports_parse(const char *option, const char *const *names, const char *text, uint32_t *out, char *err,
		     size_t err_size)
{
	char allowed[64];
	uint32_t all = 0;

	for (const char *at = text;; at++) {
		size_t n = strcspn(at, ",");
		int i = find(names, at, n);

		if (i < 0 || (all >> i & 1)) {
			list(names, allowed, sizeof(allowed));
			snprintf(err, err_size, "--%s: '%s' is not allowed; allowed: %s, each once, separated by "
				 "commas", option, text, allowed);
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
