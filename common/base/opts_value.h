/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options: reading them, and what is allowed in words; lines of a configuration file. For opts.c and
 * opts_help.c only. Pure. */
#ifndef RAMPART_COMMON_OPTS_VALUE_H
#define RAMPART_COMMON_OPTS_VALUE_H

#include <stdbool.h>

#include "common/base/opts.h"

/* Stores the value `s` in `config` at the option's offset; `s` is NULL for a flag. Returns NULL, or in words what is
 * wrong with the value (static text), and then `config` is as before. */
const char *opts_store_value(const struct opt *o, const char *s, void *config);

/* Returns the same as opts_store_value, but stores nothing. */
const char *opts_check_value(const struct opt *o, const char *s);

/* Splits a line of a configuration file, which has `length` bytes, into *name and *value, and ends both with a zero in
 * place; line[length] is overwritten. *name is NULL for an empty line or a comment, *value if the line has no `=`.
 * Returns NULL, or in words what is wrong with the line (static text). */
const char *opts_split_line(char *line, size_t length, char **name, char **value);

/* True if the value switches the option off: a number that is both its default and its minimum, such as --churn 0. */
bool opts_value_is_off(const struct opt *o, const char *value);

/* Writes in words what is allowed ("1 to 64k", "on or off"), cut where `out` ends. Returns `out`. */
#define OPTS_ALLOWED_MAX 512
const char *opts_value_allowed(const struct opt *o, char out[OPTS_ALLOWED_MAX]);

#endif
