/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options: reading them, and what is allowed in words. For opts.c and opts_help.c only. Pure. */
#ifndef RAMPART_COMMON_OPTS_VALUE_H
#define RAMPART_COMMON_OPTS_VALUE_H

#include <stdbool.h>

#include "common/base/opts.h"

/* Stores the value `s` in `config` at the option's offset; `s` is NULL for a flag. Returns NULL, or in words what is
 * wrong with the value (static text), and then `config` is as before. */
const char *opts_store_value(const struct opt *o, const char *s, void *config);

/* True if the value switches the option off: a number that is both its default and its minimum, such as --churn 0. */
bool opts_value_is_off(const struct opt *o, const char *value);

/* Writes in words what is allowed ("1 to 64k", "on or off"), cut where `out` ends. Returns `out`. */
#define OPTS_ALLOWED_MAX 512
const char *opts_value_allowed(const struct opt *o, char out[OPTS_ALLOWED_MAX]);

#endif
