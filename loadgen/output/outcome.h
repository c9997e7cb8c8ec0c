/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run came to so far: its steps, verdict, capacities, and why it ends. run.json is made of it.
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
	json_t *server_infos[TARGETS_MAX];	/* INFO of each server; NULL until it came */
	json_t *generator_dev;		/* the RDMA device the workers use; NULL until they were made */
	json_t *generator_place;	/* effective_describe of its machine, with the workers' memory; NULL likewise */
	json_t *not_taken;		/* settings that did not take effect (loadgen/analysis/untaken.h); each was
					 * warned of */
	json_t *steps, *verdict;	/* of run.json */
	struct load_hosts *hosts;		/* of a run on several; NULL: this is the only one. Freed with the
						 * rest */
	struct series *series;		/* what both machines used; NULL until the run begins */
	json_t *floor_before, *floor_after;	/* of run.json; NULL until they were measured */
	struct capacity capacity;	/* what the steps say of it */
	bool search_done;		/* a search for capacity came to its end */
	bool stopping;			/* no further step begins */
	enum stop_reason stop_reason;
	char stop_detail[256];
	uint32_t control_reconnects;	/* control sessions that broke and were made again */
	uint32_t server_restarts;	/* servers that answered in the place of one that had ended */
};

void outcome_init(struct outcome *o, const struct loadgen_config *cfg);
/* Frees what it holds. */
void outcome_clear(struct outcome *o);

/* The run ends after the running step. The first reason counts, except that a signal (STOP_ABORTED) replaces it. */
void outcome_stop(struct outcome *o, enum stop_reason reason, const char *detail);
/* True after a signal. */
bool outcome_is_aborted(const struct outcome *o);

/* Keeps a step: its element of run.json (taken over), and its criteria in the verdict.
 * Warns of settings that did not take effect in it, each once in a run. */
void outcome_add_step(struct outcome *o, const struct step *s, json_t *element);

#endif
