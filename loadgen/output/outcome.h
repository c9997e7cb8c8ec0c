/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of a run so far: its steps, verdict, capacities, and why it ends. run.json is made from it.
 * Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_OUTCOME_H
#define RAMPART_LOADGEN_OUTCOME_H

#include <stdbool.h>

#include <jansson.h>

#include "loadgen/config/config.h"
#include "loadgen/search/capacity.h"
#include "loadgen/verdict/breaking.h"

struct load_hosts;
struct series;
struct step;

struct outcome {
	const struct loadgen_config *cfg;
	char started_at[40];
	json_t *server_infos[TARGETS_MAX];	/* INFO of each server; NULL until it arrived */
	json_t *generator_dev;		/* the RDMA device the workers use; NULL until they are made */
	json_t *generator_place;	/* effective_describe of this machine; NULL until the workers are made */
	json_t *not_taken;		/* settings that did not take effect (analysis/untaken.h); each was logged */
	json_t *steps, *verdict;	/* members of run.json */
	struct load_hosts *hosts;	/* NULL: this is the only host. Freed with the rest */
	struct series *series;		/* resource use of both machines; NULL until the run begins */
	json_t *floor_before, *floor_after;	/* members of run.json; NULL until measured */
	struct capacity capacity;	/* the probes of a search, or the steps of a ramp */
	bool search_done;		/* a search for capacity is complete */
	bool stopping;			/* no further step begins */
	enum stop_reason stop_reason;
	char stop_detail[256];
	uint32_t control_reconnects;	/* control sessions that broke and were made again */
	uint32_t server_restarts;	/* times that a new server process answered in place of one that had ended */
};

void outcome_init(struct outcome *o, const struct loadgen_config *cfg);
/* Frees everything the outcome owns. */
void outcome_clear(struct outcome *o);

/* Lets the run end after the running step. The first reason counts, but a signal (STOP_ABORTED) replaces it. */
void outcome_stop(struct outcome *o, enum stop_reason reason, const char *detail);
/* True after a signal. */
bool outcome_is_aborted(const struct outcome *o);

/* Adds a step: its element of run.json (taken over), and its criteria in the verdict. Logs settings that did not take
 * effect in the step, each setting only once in a run. */
void outcome_add_step(struct outcome *o, const struct step *s, json_t *element);

#endif
