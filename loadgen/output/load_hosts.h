/* SPDX-License-Identifier: BSD-2-Clause */
/* The load hosts of a run on several, as the leader knows them: `hosts` of run.json (docs/results.md, "hosts[]").
 * What hosts said is of any origin. Owning thread: main. */
#ifndef RAMPART_LOADGEN_LOAD_HOSTS_H
#define RAMPART_LOADGEN_LOAD_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct load_hosts;

/* Of ranks 0 to n - 1. 0 or -ENOMEM. */
int load_hosts_new(uint32_t n, struct load_hosts **out) __attribute__((warn_unused_result));
void load_hosts_free(struct load_hosts *h);	/* NULL-safe */

/* What a host said when it joined: {name, address, environment{kernel, cpu_model, cores, memory_bytes,
 * rdma_device{name, is_software}}, build{version, git_commit}}. What is missing or of another type becomes null. */
void load_hosts_about(struct load_hosts *h, uint32_t rank, const json_t *about);
/* The leader's CLOCK_MONOTONIC less the host's, and how wrong that may be. */
void load_hosts_clock(struct load_hosts *h, uint32_t rank, int64_t offset_ns, uint64_t error_ns);
/* Its own folder: there, or as a file of the run's folder if it was copied. */
void load_hosts_files(struct load_hosts *h, uint32_t rank, const char *folder);
/* It is gone since at_s of the run. The first reason counts. */
void load_hosts_lost(struct load_hosts *h, uint32_t rank, double at_s, const char *why);

#define LOAD_HOSTS_NOT_STARTED INT64_MIN
/* A step that hosts hand in; `index` is that of its element in run.json's steps. */
void load_hosts_begin_step(struct load_hosts *h, uint32_t index);
/* What a host packed (step_pack), which step_merge has taken; and when its measuring began, by the leader's clock. */
void load_hosts_step(struct load_hosts *h, uint32_t rank, const json_t *packed, int64_t started_ns);
/* All have. True, and the time from the first begin of measuring to the last, if two of them began at least. */
bool load_hosts_end_step(struct load_hosts *h, uint64_t *skew_ns);

/* `hosts` of run.json, a new reference. NULL when out of memory. */
json_t *load_hosts_json(const struct load_hosts *h);

#endif
