/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the value of an option into its destination; for opts.c only. Pure. */
#ifndef RAMPART_COMMON_OPTS_VALUE_H
#define RAMPART_COMMON_OPTS_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/opts.h"

/* A suffix and what one of it is in bytes or ns. */
struct opts_unit {
	const char *suffix;
	uint64_t scale;
};

/* Largest first: a value is printed in the first unit that divides it. */
#define OPTS_SIZE_UNITS 4
#define OPTS_DURATION_UNITS 6
extern const struct opts_unit opts_size_units[OPTS_SIZE_UNITS];
extern const struct opts_unit opts_duration_units[OPTS_DURATION_UNITS];

/* Stores the value `s` in `config` at the option's offset; `s` is NULL for a flag. Returns NULL, or in words what is
 * wrong with the value (static text), and then `config` is as before. */
const char *opts_store_value(const struct opt *o, const char *s, void *config);

#endif
