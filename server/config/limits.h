/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes what the configured number of clients needs, and checks that this machine and its devices have it. */
#ifndef RAMPART_SERVER_LIMITS_H
#define RAMPART_SERVER_LIMITS_H

#include <stddef.h>

#include "server/config/config.h"

struct dev;

/* Derives the sizes of a shard from options and devices (one per rail), and checks them against descriptors, locked
 * memory, RAM and each device's limits. All shards have the same size, so the lowest limit of any device holds for all.
 * 0, or -ENOSPC with a line in `err` that says what to raise. */
int limits_derive(struct server_config *c, const struct dev *devs, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
