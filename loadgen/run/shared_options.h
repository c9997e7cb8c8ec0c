/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a run on several hosts: those that all hosts have alike, and each host's own (where its files are, who it is).
 * No I/O. Which are a host's own, the table of options says (`per_host`). */
#ifndef RAMPART_LOADGEN_SHARED_OPTIONS_H
#define RAMPART_LOADGEN_SHARED_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/base/opts.h"

/* The options of argv, which opts_parse took, that all hosts must have alike: a new array of ["name", "value"]. NULL when
 * out of memory. */
json_t *shared_options(const struct opts_spec *spec, int argc, char **argv);

/* The value of an option in such an array; NULL: it is not there. */
const char *shared_options_value(const json_t *options, const char *name);

/* Compares a host's with the leader's. `all`: options that the host does not have count as different. False with a line in
 * `what`: the first that differs. Both may be anything. */
bool shared_options_agree(const json_t *leader, const json_t *host, bool all, char *what, size_t size);

/* A command line for a host that takes its options from the leader: argv and behind it those of the leader's options that are
 * shared and not in argv. NULL with a line in `err` if the leader's cannot be such. Freed by the caller, whole. */
char **shared_options_join(const struct opts_spec *spec, int argc, char **argv, const json_t *leader, int *joined, char *err,
			   size_t size);

#endif
