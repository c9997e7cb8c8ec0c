/* SPDX-License-Identifier: BSD-2-Clause */
/* The gauges among a shard's statistics: numbers of what it has at the moment. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_GAUGES_H
#define RAMPART_SERVER_GAUGES_H

struct shard;

/* Sets the gauges. */
void gauges_publish(struct shard *s);
/* Asks the device what a live connection's queue pair has (stats.effective): a system call, and so only on demand. */
void gauges_look(struct shard *s);
/* Sets the gauges to 0, for a shard that has released everything. Counters of events keep their values. */
void gauges_clear(struct shard *s);

#endif
