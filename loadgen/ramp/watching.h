/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples the resources of all machines during the run (--sample-interval): this process directly, a server over a
 * control session of its own (client/control.h, control_watch). The samples go into events.ndjson and the outcome's
 * series. A run goes on even if a server cannot be watched. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_WATCHING_H
#define RAMPART_LOADGEN_WATCHING_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "loadgen/config/config.h"
#include "loadgen/measurement/series.h"

struct control;
struct control_config;
struct crew;
struct results;
struct sampler;

/* A server that is watched. */
struct watched {
	struct watching *watching;
	uint32_t target;
	struct control *control;	/* NULL while the server is not watched */
	ev_timer retry;			/* fires when watching is tried again */
	bool warned, told;		/* `told`: the first sample has arrived or failed */
};

struct watching {
	const struct loadgen_config *cfg;
	struct ev_loop *loop;
	struct results *results;
	struct series *series;
	const struct crew *crew;
	/* Called with each sample of either side; with SIDE_SERVER, `target` is the server's number. Set by the owner
	 * after watching_start; may be NULL. */
	void (*on_sample)(void *arg, enum series_side side, uint32_t target, const struct sample *sample);
	void *sample_arg;
	void (*on_first)(void *arg);	/* see watching_servers; NULL once it was called */
	void *arg;
	struct sampler *sampler;	/* NULL without --sample-interval */
	ev_timer due;			/* fires when the next sample of this process is due */
	struct watched servers[TARGETS_MAX];
	uint32_t n_servers;
};

/* Starts sampling this process. `cfg`, `crew`, `results` and `series` must outlive `w`. 0 or -ENOMEM. */
int watching_start(struct watching *w, const struct loadgen_config *cfg, struct ev_loop *loop, struct results *results,
		   struct series *series, const struct crew *crew) __attribute__((warn_unused_result));
/* Stops all sampling. `w` may be all zero (never started). */
void watching_stop(struct watching *w);

/* Starts watching the servers. Calls `on_first` once, when the first sample of each server has arrived or failed;
 * without --sample-interval, before this function returns. */
void watching_servers(struct watching *w, const struct control_config *servers, uint32_t n, void (*on_first)(void *arg),
		      void *arg);
/* Stops watching the servers, because they end or are replaced. */
void watching_forget_servers(struct watching *w);

#endif
