/* SPDX-License-Identifier: BSD-2-Clause */
/* The resources of all machines while the run goes on (--sample-interval): this process is sampled here, a server's
 * samples come over a control session of their own (client/control.h, control_watch). They go into events.ndjson and
 * the outcome's series. A server that cannot be watched is no reason to end a run.
 * Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_WATCHING_H
#define RAMPART_LOADGEN_WATCHING_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "loadgen/config/config.h"
#include "loadgen/step/series.h"

struct control;
struct control_config;
struct crew;
struct results;
struct sampler;

/* A server that is watched. */
struct watched {
	struct watching *watching;
	uint32_t target;
	struct control *control;	/* NULL before and afterwards */
	ev_timer retry;			/* until the server is watched again */
	bool warned, told;		/* its first sample came, or will not come */
};

struct watching {
	const struct loadgen_config *cfg;
	struct ev_loop *loop;
	struct results *results;
	struct series *series;
	const struct crew *crew;
	/* Gets each sample of either side, SIDE_SERVER with the server's number; the owner's to set once it is started, NULL:
	 * nobody does. */
	void (*on_sample)(void *arg, enum series_side side, uint32_t target, const struct sample *sample);
	void *sample_arg;
	void (*on_first)(void *arg);	/* the first sample of each server came, or will not come; NULL once told */
	void *arg;
	struct sampler *sampler;	/* NULL without --sample-interval */
	ev_timer due;			/* the next sample of this process */
	struct watched servers[TARGETS_MAX];
	uint32_t n_servers;
};

/* Samples this process from here on. `cfg`, `crew`, `results` and `series` outlive it. 0 or -ENOMEM. */
int watching_start(struct watching *w, const struct loadgen_config *cfg, struct ev_loop *loop, struct results *results,
		   struct series *series, const struct crew *crew) __attribute__((warn_unused_result));
/* Ends all; of one that was not started, too (all zero). */
void watching_stop(struct watching *w);

/* Watches the servers from here on. `on_first` is called once: when the first sample of each has come, or it is known
 * that none will for now; without --sample-interval from here. */
void watching_servers(struct watching *w, const struct control_config *servers, uint32_t n, void (*on_first)(void *arg),
		      void *arg);
/* The servers end, or are replaced. */
void watching_forget_servers(struct watching *w);

#endif
