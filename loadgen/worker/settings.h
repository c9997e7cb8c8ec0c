/* SPDX-License-Identifier: BSD-2-Clause */
/* Logs which settings of a worker's connections take effect in a step, and why (--log-level debug): inline data,
 * doorbells and rails. run.json has the same figures (common/observed/observed.h). Owning thread: the worker's.
 */
#ifndef RAMPART_LOADGEN_SETTINGS_H
#define RAMPART_LOADGEN_SETTINGS_H

struct traffic;

/* Call once a step, when its clients are connected: a device tells its limit on inline data only for a queue pair. */
void settings_log(const struct traffic *t);

#endif
