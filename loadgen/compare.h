/* --compare KEY=A,B[,C]: the same run with different values of one option, interleaved, and a table of what each value is
 * worth. Owning thread: main. */
#ifndef RAMPART_LOADGEN_COMPARE_H
#define RAMPART_LOADGEN_COMPARE_H

#include <stddef.h>

#include "loadgen/config/config.h"
#include "loadgen/run.h"

#define COMPARE_MAX 8

/* The alternatives of a comparison, each a configuration of its own. */
struct compare {
	char key[32];
	char values[COMPARE_MAX][64];
	char options[COMPARE_MAX][112];	/* as on a command line */
	struct loadgen_config configs[COMPARE_MAX];
	unsigned n;
	uint64_t rounds;
};

/* Reads --compare of `base`, whose command line is argv, and checks each alternative as if it had been given as an
 * option. 0, or -EINVAL with a line in `err`. */
int compare_parse(const struct loadgen_config *base, int argc, char **argv, struct compare *out, char *err,
		  size_t err_size) __attribute__((warn_unused_result));

/* Runs all alternatives in turn, --repeat times, each time in the opposite order. Prints the table, and writes
 * compare.json and each run's folder into the results folder. The exit status is that of the last run. */
enum run_exit compare_run(struct compare *c, const struct loadgen_config *base, int argc, char **argv);

#endif
