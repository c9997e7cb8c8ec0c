/* SPDX-License-Identifier: BSD-2-Clause */
/* Transactions on their way to etcd: in the order of the calls, each once. Main thread.
 *
 * What is asked for while a request is under way goes into the next one, as transactions inside of one (etcd's request_txn), so
 * many are under way at once and the order stays. Each request is guarded by the version of a key of this host's own, on its
 * lease, and writes it: a request whose answer was lost is sent again and cannot take place twice, the key says whether it did,
 * and none takes place once the lease is gone. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_QUEUE_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/cluster/etcd/bus.h"
#include "loadgen/cluster/etcd/etcd_http.h"

struct etcd_queue;

/* What its owner, the bus, is told. */
struct etcd_queue_events {
	void (*on_login)(void *arg);		/* etcd wants a new login; goes on with etcd_queue_begin */
	void (*on_trouble)(void *arg, const char *why);	/* etcd does not answer; "": it does */
	void (*on_out)(void *arg, const char *why);	/* no transaction can be made any more */
};

int etcd_queue_new(const struct etcd_target *, struct etcd_http *, struct ev_loop *, const char *root,
		   const struct etcd_queue_events *, void *arg, struct etcd_queue **out) __attribute__((warn_unused_result));
/* What waits ends as BUS_FAILED with `why`. */
void etcd_queue_fail(struct etcd_queue *, const char *why);
void etcd_queue_free(struct etcd_queue *);	/* nothing may wait; NULL-safe */

/* The lease, and the token of the last login: sends what waits. */
void etcd_queue_begin(struct etcd_queue *, int64_t lease, const char *token);

/* As bus_transact. */
int etcd_queue_add(struct etcd_queue *, const struct bus_guard *, size_t guards, const struct bus_write *, size_t writes,
		   bus_done_fn *done, void *arg) __attribute__((warn_unused_result));

#endif
