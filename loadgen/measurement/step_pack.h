/* SPDX-License-Identifier: BSD-2-Clause */
/* Packs a step for the leader of a run on several hosts, and merges the hosts' packed steps into one.
 *
 * Counts, sums and histogram buckets are added; extremes and wall times are the maximum over the hosts; percentiles are
 * never merged (docs/results.md, "hosts"). A packed step is validated completely before any part of it is added. May be
 * called from any thread, on steps that only the caller uses. */
#ifndef RAMPART_LOADGEN_STEP_PACK_H
#define RAMPART_LOADGEN_STEP_PACK_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct loadgen_config;
struct step;
struct worker;

/* Version of the format of a packed step, stored in its member "pack". */
#define STEP_PACK_VERSION 4

/* Packs a step after step_collect. Its member "own" is this host's element of run.json, with null for the server's
 * reports. A new reference; NULL when out of memory. */
json_t *step_pack(const struct step *s, const struct loadgen_config *cfg, struct worker *const *workers,
		  uint32_t n_workers) __attribute__((warn_unused_result));

/* Makes an empty step of `target` clients for step_merge. Bytes, repetition, rate and everything about the server
 * (reports, peaks, state of the pools) come from the leader's own step. 0 or -ENOMEM. */
int step_merge_begin(const struct step *leader, uint32_t target, struct step **out) __attribute__((warn_unused_result));

/* Adds the packed step of host `rank`, and records the rank if its generator was saturated. Hosts may come in any
 * order. 0, or -errno with a line in `err` and nothing added: -EINVAL, with the name of the damaged member, or
 * -ENOMEM. */
int step_merge(struct step *into, uint32_t rank, const json_t *packed, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
