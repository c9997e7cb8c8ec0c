/* SPDX-License-Identifier: BSD-2-Clause */
/* The gauges among a shard's statistics: how much of each resource it holds now. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_GAUGES_H
#define RAMPART_SERVER_GAUGES_H

struct shard;

/* Sets the gauges to the shard's current values. */
void gauges_publish(struct shard *s);
/* Asks the device for the settings of a live queue pair (stats.effective): a system call, so only on demand. */
void gauges_look(struct shard *s);
/* Sets to 0 the gauges of a shard that has released everything. Counters of events keep their values. */
void gauges_clear(struct shard *s);

#endif
