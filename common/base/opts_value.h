/* Reading the value of an option into its destination, for opts.c. Pure. */
#ifndef RAMPART_COMMON_OPTS_VALUE_H
#define RAMPART_COMMON_OPTS_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/opts.h"

struct opts_unit {
	const char *suffix;
	uint64_t scale;
};

/* Largest first: the first that divides a value is the one it is printed in. */
#define OPTS_SIZE_UNITS 4
#define OPTS_DURATION_UNITS 6
extern const struct opts_unit opts_size_units[OPTS_SIZE_UNITS];
extern const struct opts_unit opts_duration_units[OPTS_DURATION_UNITS];

/* Stores the value in `config`, if it is good. `s` is NULL for a flag and only for one. NULL, or in words what is
 * wrong with the text (static). */
const char *opts_store_value(const struct opt *o, const char *s, void *config);

#endif
