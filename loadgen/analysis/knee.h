/* SPDX-License-Identifier: BSD-2-Clause */
/* The knee: the number of clients beyond which more of them add little throughput, or much latency. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_KNEE_H
#define RAMPART_LOADGEN_ANALYSIS_KNEE_H

#include <stdbool.h>
#include <stddef.h>

/* The figures at a number of clients: medians over its repetitions. */
struct knee_point {
	double clients, throughput;	/* NAN throughput: such a point is left out */
	double p99_ns;			/* NAN: not known */
};

enum knee_reason {
	KNEE_NONE,			/* beyond the measured range: throughput grew, p99 stayed low */
	KNEE_THROUGHPUT,		/* throughput grew by less than 10 % for twice the clients */
	KNEE_P99,			/* p99 was more than twice that of the fewest clients */
	KNEE_FEW_POINTS,		/* fewer than 2 numbers of clients */
	KNEE_SATURATED,			/* the CPUs were full with the fewest clients already */
};
extern const char *const knee_reason_names[];	/* none, throughput, p99, few_points, saturated */

struct knee {
	enum knee_reason reason;
	double clients;			/* the last number before the knee; NAN when there is none */
	double beyond;			/* the next number measured: the knee lies between the two */
};

/* Points in rising order of clients, one for each number. Between neighbours that are not a factor of 2 apart, the
 * growth is scaled: throughput must grow by 1.1^log2(ratio of clients). */
void knee_find(const struct knee_point *p, size_t n, struct knee *out);

/* True if the knee lies between two of the numbers. */
bool knee_is_found(const struct knee *k);

/* Call if the CPUs were full with `fewest` clients, the first number, in a closed loop. More clients then only wait for
 * each other, so neither a p99 that rises nor a throughput that never grows is a knee (KNEE_SATURATED). */
void knee_of_full_cpus(struct knee *k, double fewest);

#endif
