/* SPDX-License-Identifier: BSD-2-Clause */
/* The intervals of a step's measured time: throughput and round trips of each, the step's steadiness judged from them,
 * and the packed form in which a load host sends them to the leader. Pure.
 *
 * Round trips are counted in 32 cells for each power of two, so a percentile is at most 3 % too high. That is enough to
 * compare intervals, and takes 7 KB per interval; a histogram (common/hist/hist.h) takes 224 KB. */
#ifndef RAMPART_LOADGEN_INTERVALS_H
#define RAMPART_LOADGEN_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/analysis/stats.h"

struct hist;

#define INTERVALS_MAX 40
#define INTERVAL_CELLS 896
/* The fewest intervals from which a step can be judged. */
#define INTERVALS_LEAST 10

struct interval {
	double t_s;			/* end of the interval, since the measured time began */
	double messages_per_s;
	uint64_t cells[INTERVAL_CELLS];
};

struct intervals {
	struct interval v[INTERVALS_MAX];
	uint32_t n;
};

/* How long the first intervals should be: a 20th of the measured time, and at least 50 ms, or a 16th if that is less.
 * `measured_ns` is 0 if the measured time is not known beforehand. */
uint64_t intervals_length_ns(uint64_t measured_ns);

/* Appends an interval. True if the array became full, and neighbours were merged in pairs: from now on intervals should
 * be twice as long. */
bool intervals_add(struct intervals *s, double t_s, double messages_per_s, const struct hist *response);

/* The p99 of an interval's round trips; NAN with fewer than 299. */
double interval_p99_ns(const struct interval *v);

/* A step is not steady if a straight line through its intervals rises or falls by more than this share over the
 * measured time, and with 95 % confidence by more than half of it. The p99 of an interval rests on few samples, so its
 * line may change more. If noise makes the change in throughput uncertain by more than INTERVALS_UNCERTAIN, the step
 * cannot be judged. */
#define INTERVALS_STEADY_THROUGHPUT 0.10
#define INTERVALS_STEADY_P99 0.50
#define INTERVALS_UNCERTAIN 0.25

enum steadiness { STEADINESS_UNKNOWN, STEADINESS_STEADY, STEADINESS_NOT_STEADY };
enum steadiness intervals_judge(const struct intervals *s);

/* Relative change, over the whole measured time, of a straight line through the intervals' throughput or p99. Where
 * intervals have too few samples for a p99, neighbours are put together. NAN if there are too few intervals. */
struct estimate intervals_drift(const struct intervals *s, bool p99);

/* Adds the intervals of a host that measured at the same time. If one of the two has longer intervals, those of the
 * other are merged first (which may change `from`). Intervals that only one of them has are dropped. */
void intervals_merge(struct intervals *into, struct intervals *from);

/* [[t_s, messages_per_s, cells], ...]: cells is a text, each cell's count followed by a space; "-N " stands for N empty
 * cells. A new reference; NULL when out of memory. */
json_t *intervals_pack(const struct intervals *s) __attribute__((warn_unused_result));
/* Reads the output of intervals_pack, which may be hostile. Returns NULL, or a text about the defect ("has ..."). */
const char *intervals_unpack(const json_t *packed, struct intervals *s) __attribute__((warn_unused_result));

#endif
