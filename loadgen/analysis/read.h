/* SPDX-License-Identifier: BSD-2-Clause */
/* What several analyses read from run.json, which may be damaged: figures of steps, and lines through them. Pure. */
#ifndef RAMPART_LOADGEN_ANALYSIS_READ_H
#define RAMPART_LOADGEN_ANALYSIS_READ_H

#include <stdbool.h>

#include <jansson.h>

#include "loadgen/analysis/stats.h"
#include "loadgen/analysis/validity.h"

/* Steps that are looked at; a run has dozens. */
#define READ_STEPS_MAX 1024u
/* Whole numbers beyond it are not exact in a double; no real amount comes near it. */
#define READ_AMOUNT_MAX 9007199254740992.0

/* A number from 0 to READ_AMOUNT_MAX; NAN for anything else. */
double read_amount(const json_t *o, const char *path);

/* run's steps, READ_STEPS_MAX at most: how many, and one of them (borrowed). */
size_t read_n_steps(const json_t *run);
const json_t *read_step(const json_t *run, size_t i);

/* Clients held; NAN where it was none or is not known. */
double read_held(const json_t *step);
bool read_is_measured(const json_t *step);
/* True if the step's validity has the flag. */
bool read_has_flag(const json_t *step, enum validity flag);
/* The server was started by performance_test, so both ends share machine and device. */
bool read_shares_machine(const json_t *run);

/* Of a run on several hosts, `hosts` of run.json: the name of the host of a rank; or "host RANK" in `text`. */
#define READ_NAMES_MAX 256
const char *read_host_name(const json_t *hosts, uint32_t rank, char text[READ_NAMES_MAX]);
/* Those whose generator had no more to give in the step: "load2, load5". "" if there are none, or a single host made
 * the run. */
const char *read_saturated_hosts(const json_t *hosts, const json_t *step, char text[READ_NAMES_MAX]);
/* The same of the smallest step of no fewer than `clients` in which there are any. */
const char *read_hosts_at_limit(const json_t *hosts, const json_t *steps, double clients, char text[READ_NAMES_MAX]);

/* CPUs in use while the step was measured, by `side`: server and generator are processes, machine is the generator's
 * machine. NAN: not known. */
double read_cores(const json_t *step, const char *side);

/* Mean of the messages a second over the step's intervals, READ_INTERVALS_MAX at most. Their number goes to `n`, unless
 * that is NULL. */
#define READ_INTERVALS_MAX 1024u
struct estimate read_throughput_mean(const json_t *step, size_t *n);

/* How memory grows with the clients held, over the steps of run.json: slopes in bytes per client, by least squares, of
 * the server's resident and pinned memory and of the machine's kernel memory. null with fewer than two numbers of
 * clients. */
json_t *read_memory_growth_json(const json_t *steps);

/* {value, low, high}; NULL when out of memory. */
json_t *read_estimate_json(struct estimate e);

/* A gauge of resources: of the server, of the generator, or of both added up. */
struct read_figure {
	const char *name;		/* such as "qps" */
	bool server, generator;
	double kernel_share;		/* of the growth of the kernel's memory since before the first client, added */
	const char *path;		/* not NULL: instead of all these, the figure at a path of the step */
};

struct read_use {
	double most;			/* in any step; NAN: not known */
	double clients;			/* most held in a step whose use is known; NAN: not known */
	struct line line;		/* over clients held */
};

/* Steps after a larger one are left out of the line, because memory and queue pairs are not released at once. */
void read_use(const json_t *run, const struct read_figure *f, struct read_use *out);

#endif
