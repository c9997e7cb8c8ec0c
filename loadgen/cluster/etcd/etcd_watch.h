/* SPDX-License-Identifier: BSD-2-Clause */
/* A watch of etcd's keys below a prefix: what is there, then changes, each once, across connections. Main thread.
 *
 * It reads (kv/range, page by page, at one revision), then streams what follows that revision (watch). A stream that breaks is
 * begun anew behind the last change that was delivered. If etcd does not have that any more (compacted), it reads again and
 * delivers what differs from what it delivered before. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_WATCH_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_WATCH_H

#include <stdint.h>

#include <ev.h>

#include "loadgen/cluster/etcd/bus.h"
#include "loadgen/cluster/etcd/etcd_http.h"

struct etcd_watch;

struct etcd_watch_events {			/* what its owner, the bus, is told */
	void (*on_login)(void *arg);		/* etcd wants a new login; goes on with etcd_watch_begin */
	void (*on_out)(void *arg, const char *why);	/* it cannot be watched; nothing else is delivered */
};

/* Nothing happens before etcd_watch_begin. `root`, `events` and `user_events` are borrowed. 0, -EINVAL (the prefix), -ENOMEM. */
int etcd_watch_new(const struct etcd_target *, struct etcd_http *, struct ev_loop *, const char *root, const char *prefix,
		   const struct etcd_watch_events *events, void *arg, const struct bus_watch_events *user_events, void *user_arg,
		   struct etcd_watch **out) __attribute__((warn_unused_result));
void etcd_watch_free(struct etcd_watch *);	/* also from its callbacks; NULL-safe */

/* The token of the last login: begins, or goes on if it waits for it. */
void etcd_watch_begin(struct etcd_watch *, const char *token);
/* Ends for good: no callback follows. */
void etcd_watch_end(struct etcd_watch *);

#endif
