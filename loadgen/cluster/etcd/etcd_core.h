/* SPDX-License-Identifier: BSD-2-Clause */
/* The client of an etcd from within: what etcd.c, etcd_txn.c and etcd_watch.c share. Callers use etcd.h. Main thread. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_CORE_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_CORE_H

#include <sys/queue.h>

#include "loadgen/cluster/etcd/etcd.h"
#include "loadgen/cluster/etcd/etcd_http.h"
#include "loadgen/cluster/etcd/etcd_json.h"
#include "loadgen/cluster/etcd/etcd_lease.h"

/* Pauses before a request is made again, in seconds. */
#define ETCD_PAUSE_MIN_S	0.05
#define ETCD_PAUSE_MAX_S	1.

struct etcd_txn;
struct etcd_watch;

struct etcd {
	struct ev_loop *loop;
	etcd_out_fn *on_out;
	void *arg;
	struct etcd_target target;
	char root[ETCD_ROOT_MAX];
	ev_async changed;
	struct etcd_lease *lease;
	struct etcd_http *http;
	struct etcd_lease_state state;	/* of the lease's thread, as it was read last */
	bool out;
	/* Transactions (etcd_txn.c). */
	TAILQ_HEAD(, etcd_txn) waiting;	/* the first is under way if there is a call */
	struct etcd_call *call;
	ev_timer pause;
	uint64_t refused_login;		/* the login that etcd refused: nothing is sent before the next one */
	bool ending;			/* a callback runs: nothing is sent before it returns */
	bool again;			/* the first was sent before, and may have taken place */
	int64_t requests;		/* that took place: the version of this host's own key */
	char trouble[ETCD_WHY_MAX];
	/* Watches (etcd_watch.c). */
	TAILQ_HEAD(, etcd_watch) watches;
};

void etcd_txn_init(struct etcd *);
/* There is a lease, or a new login: sends what waits. */
void etcd_txn_begin(struct etcd *);
/* What waits ends as ETCD_FAILED with `why`; `out` is set. */
void etcd_txn_fail(struct etcd *, const char *why);

/* The same for watches. */
void etcd_watches_begin(struct etcd *);
void etcd_watches_end(struct etcd *);	/* for good: no callback follows */
void etcd_watches_free(struct etcd *);

#endif
