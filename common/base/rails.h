/* SPDX-License-Identifier: BSD-2-Clause */
/* Rails: the RDMA devices used at the same time, given as a comma-separated list of names. Pure; any thread. */
#ifndef RAMPART_COMMON_RAILS_H
#define RAMPART_COMMON_RAILS_H

#include <stddef.h>
#include <stdint.h>

#define RAILS_MAX 8
/* Maximum size of a name, final zero included. Host names are the longest: 253 characters (RFC 1035, 2.3.4). */
#define RAIL_NAME_BYTES 256

struct rail_names {
	char name[RAILS_MAX][RAIL_NAME_BYTES];
	uint32_t n;
};

/* Splits the value of `option` (its name without dashes): 1 to RAILS_MAX names, none of them empty or given twice.
 * Returns 0, or -EINVAL with a line in `err` that names the option and what is allowed; `out` is then invalid. */
int rails_split(const char *option, const char *list, struct rail_names *out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
