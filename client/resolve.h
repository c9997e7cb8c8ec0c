/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves host names to addresses. Blocks: use it before a loop runs. */
#ifndef RAMPART_CLIENT_RESOLVE_H
#define RAMPART_CLIENT_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"

/* The first IPv4 or IPv6 address of `host`. 0, or -EHOSTUNREACH with a line in `err`. */
int resolve_host(const char *host, uint16_t port, struct addr *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
