/* SPDX-License-Identifier: BSD-2-Clause */
/* A step as a host hands it to the leader of a run on several hosts, and several of them as one step.
 *
 * Counts, sums and buckets of histograms are added; extremes and wall times are the greatest; percentiles are never merged
 * (docs/results.md, "hosts"). What comes from another host is checked as a whole before any of it is added.
 * Threads: any, on steps of the caller's own. */
#ifndef RAMPART_LOADGEN_STEP_PACK_H
#define RAMPART_LOADGEN_STEP_PACK_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct loadgen_config;
struct step;
struct worker;

/* A step that was collected (step_collect), with this host's own element of run.json as its member "own", in which the
 * server's reports are null. The caller owns it. NULL when out of memory. */
json_t *step_pack(const struct step *s, const struct loadgen_config *cfg, struct worker *const *workers,
		  uint32_t n_workers) __attribute__((warn_unused_result));

/* An empty step of `target` clients, for step_merge: bytes, repetition, rate and all that is the server's are those of
 * `leader`, the leader's own step (its reports, its peaks, the state of its pools). 0 or -ENOMEM. */
int step_merge_begin(const struct step *leader, uint32_t target, struct step **out) __attribute__((warn_unused_result));

/* Adds what host `rank` packed; its rank is kept if its generator was saturated. 0, or -errno with a line in `err` and nothing
 * added: -EINVAL names the member that is damaged; -ENOMEM. The order of hosts does not matter. */
int step_merge(struct step *into, uint32_t rank, const json_t *packed, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
