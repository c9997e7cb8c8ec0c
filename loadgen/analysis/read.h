/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads run.json, which may be damaged, for several analyses: figures of steps, and lines through them. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_READ_H
#define RAMPART_LOADGEN_ANALYSIS_READ_H

#include <stdbool.h>

#include <jansson.h>

#include "loadgen/analysis/stats.h"
#include "loadgen/analysis/validity.h"

/* Further steps are ignored; a run has dozens. */
#define READ_STEPS_MAX 1024u
/* Whole numbers above this are not exact in a double; no real amount comes near it. */
#define READ_AMOUNT_MAX 9007199254740992.0

/* A number from 0 to READ_AMOUNT_MAX; NAN for anything else. */
double read_amount(const json_t *o, const char *path);

/* run's steps, READ_STEPS_MAX at most: how many, and one of them (borrowed). */
size_t read_n_steps(const json_t *run);
const json_t *read_step(const json_t *run, size_t i);

/* Number of clients held; NAN if it is 0 or not known. */
double read_held(const json_t *step);
bool read_is_measured(const json_t *step);
/* True if the step's validity has the flag. */
bool read_has_flag(const json_t *step, enum validity flag);
/* True if performance_test started the server, so that both ends share machine and device. */
bool read_shares_machine(const json_t *run);

/* The name of the load host of a rank in `hosts` of run.json, or "host RANK" if it has none. Returns `text`. */
#define READ_NAMES_MAX 256
const char *read_host_name(const json_t *hosts, uint32_t rank, char text[READ_NAMES_MAX]);
/* Names the load hosts whose generator was saturated in the step: "load2, load5". "" if none was, or if a single host
 * made the run. */
const char *read_saturated_hosts(const json_t *hosts, const json_t *step, char text[READ_NAMES_MAX]);
/* Names the saturated hosts of the smallest step of at least `clients` that had any. */
const char *read_hosts_at_limit(const json_t *hosts, const json_t *steps, double clients, char text[READ_NAMES_MAX]);

/* CPUs that `side` used while the step was measured: "server" and "generator" are processes, "machine" is the
 * generator's machine. NAN: not known. */
double read_cores(const json_t *step, const char *side);

/* Mean messages a second over the step's intervals, READ_INTERVALS_MAX at most. *n (may be NULL) is set to their
 * number. */
#define READ_INTERVALS_MAX 1024u
struct estimate read_throughput_mean(const json_t *step, size_t *n);

/* Growth of memory with the clients held, in bytes per client, as least-squares slopes over the steps: of the server's
 * resident and pinned memory, and of the machine's kernel memory. null with fewer than two numbers of clients. */
json_t *read_memory_growth_json(const json_t *steps);

/* {value, low, high}; NULL when out of memory. */
json_t *read_estimate_json(struct estimate e);

/* A gauge of resources: of the server, of the generator, or the sum of both. */
struct read_figure {
	const char *name;		/* such as "qps" */
	bool server, generator;
	double kernel_share;		/* adds this share of kernel memory's growth since before the first client */
	const char *path;		/* not NULL: read the figure at this path of the step, ignore all the above */
};

struct read_use {
	double most;			/* in any step; NAN: not known */
	double clients;			/* most held in a step whose use is known; NAN: not known */
	struct line line;		/* over clients held */
};

/* Steps after a larger one are left out of the line, because memory and queue pairs are not released at once. */
void read_use(const json_t *run, const struct read_figure *f, struct read_use *out);

#endif
