/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a run on several hosts: separates those that must be equal on all hosts from each host's own, such as file
 * paths, which the option table marks `per_host`. No I/O. */
#ifndef RAMPART_LOADGEN_SHARED_OPTIONS_H
#define RAMPART_LOADGEN_SHARED_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/base/opts.h"

/* The options of argv that must be equal on all hosts, as a new array of ["name", "value"]. opts_parse must have
 * accepted argv. NULL when out of memory. */
json_t *shared_options(const struct opts_spec *spec, int argc, char **argv);

/* The value of an option in such an array; NULL: not present. */
const char *shared_options_value(const json_t *options, const char *name);

/* True if a host's options agree with the leader's; otherwise `what` describes the first difference. With `all`,
 * options that only the leader has count as different. Both arrays may contain anything. */
bool shared_options_agree(const json_t *leader, const json_t *host, bool all, char *what, size_t size);

/* The command line of a host that takes its options from the leader: argv, followed by the leader's shared options that
 * argv lacks. NULL with a line in `err` if these are invalid. The caller frees the array and the added strings. */
char **shared_options_join(const struct opts_spec *spec, int argc, char **argv, const json_t *leader, int *joined,
			   char *err, size_t size);

#endif
