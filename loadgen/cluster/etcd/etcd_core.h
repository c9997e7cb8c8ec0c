/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of the etcd client, shared by etcd.c, etcd_txn.c and etcd_watch.c. Callers use etcd.h. Thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_CORE_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_CORE_H

#include <sys/queue.h>

#include "loadgen/cluster/etcd/etcd.h"
#include "loadgen/cluster/etcd/etcd_http.h"
#include "loadgen/cluster/etcd/etcd_json.h"
#include "loadgen/cluster/etcd/etcd_lease.h"

/* Shortest and longest pause before a request is repeated, in seconds. */
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
	struct etcd_lease_state state;	/* the last state read from the lease's thread */
	bool out;
	/* Transactions (etcd_txn.c). */
	TAILQ_HEAD(, etcd_txn) waiting;	/* the first has been sent if `call` is set */
	struct etcd_call *call;
	ev_timer pause;
	uint64_t refused_login;		/* the login that etcd refused: nothing is sent before a newer one */
	bool ending;			/* a `done` callback runs: nothing is sent before it returns */
	bool again;			/* the first transaction was sent before and may have taken place */
	int64_t requests;		/* number of transactions that took place: the version of this host's key */
	char trouble[ETCD_WHY_MAX];
	/* Watches (etcd_watch.c). */
	TAILQ_HEAD(, etcd_watch) watches;
};

void etcd_txn_init(struct etcd *);
/* Called for a new lease or login: sends the transactions that wait. */
void etcd_txn_begin(struct etcd *);
/* Ends all pending transactions as ETCD_FAILED with `why`. `out` must be set. */
void etcd_txn_fail(struct etcd *, const char *why);

/* Called for a new lease or login: starts the watches that wait. */
void etcd_watches_begin(struct etcd *);
void etcd_watches_end(struct etcd *);	/* for good: no callback follows */
void etcd_watches_free(struct etcd *);

#endif
