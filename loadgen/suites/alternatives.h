/* SPDX-License-Identifier: BSD-2-Clause */
/* The alternatives of --compare and --compare-set: each combination of their settings is a configuration of its own.
 * Pure. Owning thread: main (opts.h). */
#ifndef RAMPART_LOADGEN_ALTERNATIVES_H
#define RAMPART_LOADGEN_ALTERNATIVES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/config/config.h"

#define COMPARE_VALUES_MAX 8		/* of a key */
#define COMPARE_SETTINGS_MAX 16		/* options that an alternative sets */
#define COMPARE_ALTERNATIVES_MAX 64
#define COMPARE_RUNS_MAX 200		/* of all alternatives and rounds */

struct alternative {
	char name[256];			/* "auto", "inline=auto,post-list=16", or the set's name */
	json_t *options;		/* {KEY: VALUE, ...} as given */
	char *args[COMPARE_SETTINGS_MAX]; /* the options as on a command line; `cfg` points into them */
	unsigned n_args;
	struct loadgen_config cfg;	/* one repetition */
};

struct alternatives {
	struct alternative *v;		/* the first is the baseline */
	unsigned n;
	char title[200];		/* the settings that differ, for the folder's name and the table: "inline",
					 * "inline-post-list" */
	uint64_t rounds;
};

/* Reads --compare and --compare-set of `base`, whose command line is argv, and checks each alternative as if its
 * options had been given. Returns 0, or -EINVAL or -ENOMEM with a line in `err`. Call alternatives_free afterwards,
 * also after an error. */
int alternatives_parse(const struct loadgen_config *base, int argc, char **argv, struct alternatives *out, char *err,
		       size_t err_size) __attribute__((warn_unused_result));
void alternatives_free(struct alternatives *a);

/* True if the command line asks for a comparison. */
static inline bool alternatives_are_asked_for(const struct loadgen_config *c)
{
	return c->compare.n || c->compare_sets.n;
}

/* Copies a value; each `+` becomes a comma, so that a list can be an element of a list. False if `out`, of `size`
 * bytes, is too small, or if the value has characters that a terminal cannot show, such as control characters. */
bool alternatives_value(const char *text, size_t n, char *out, size_t size);

#endif
