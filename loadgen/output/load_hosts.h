/* SPDX-License-Identifier: BSD-2-Clause */
/* The load hosts of a run on several hosts, as the leader knows them: `hosts` of run.json (docs/results.md, "hosts[]").
 * Data from other hosts is not trusted. Owning thread: main. */
#ifndef RAMPART_LOADGEN_LOAD_HOSTS_H
#define RAMPART_LOADGEN_LOAD_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct load_hosts;

/* Makes the hosts of ranks 0 to n - 1. Returns 0 or -ENOMEM. */
int load_hosts_new(uint32_t n, struct load_hosts **out) __attribute__((warn_unused_result));
void load_hosts_free(struct load_hosts *h);	/* NULL-safe */

/* Keeps a host's description of itself: {name, address, environment{kernel, cpu_model, cores, memory_bytes, cgroup,
 * rdma_device{name, is_software}}, build{version, git_commit}}. Members missing or of another type become null. */
void load_hosts_about(struct load_hosts *h, uint32_t rank, const json_t *about);
/* Keeps the leader's CLOCK_MONOTONIC minus the host's, and the largest error of that difference. */
void load_hosts_clock(struct load_hosts *h, uint32_t rank, int64_t offset_ns, uint64_t error_ns);
/* Keeps the path of the host's files: on that host, or within the run's folder if they were copied. */
void load_hosts_files(struct load_hosts *h, uint32_t rank, const char *folder);
/* Records that a host was lost at_s seconds after the run's start. The first reason counts. */
void load_hosts_lost(struct load_hosts *h, uint32_t rank, double at_s, const char *why);

#define LOAD_HOSTS_NOT_STARTED INT64_MIN
/* Begins a step that hosts will hand in; `index` is that of its element in run.json's steps. */
void load_hosts_begin_step(struct load_hosts *h, uint32_t index);
/* Keeps a host's packed step (step_pack) after step_merge, and its start of measuring by the leader's clock. */
void load_hosts_step(struct load_hosts *h, uint32_t rank, const json_t *packed, int64_t started_ns);
/* Call when all hosts have handed in the step. If at least two hosts measured, returns true, and *skew_ns is the time
 * from the first start of measuring to the last. */
bool load_hosts_end_step(struct load_hosts *h, uint64_t *skew_ns);

/* `hosts` of run.json, a new reference. NULL when out of memory. */
json_t *load_hosts_json(const struct load_hosts *h);

#endif
