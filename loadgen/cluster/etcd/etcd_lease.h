/* SPDX-License-Identifier: BSD-2-Clause */
/* This host's lease in etcd and its login, kept by a thread that waits for nothing but etcd and the clock. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_LEASE_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/cluster/etcd/etcd_http.h"

#define ETCD_LOGIN_MAX 512	/* authentication token: "simple" ones have about 20 bytes, JWTs some hundred */

struct etcd_lease;

struct etcd_lease_state {	/* as last published by the thread */
	int64_t id;			/* 0: no lease yet */
	uint64_t login;			/* number of logins so far */
	char token[ETCD_LOGIN_MAX];	/* for etcd_call_start; "": etcd needs none */
	bool out;			/* this host is out for good */
	char why[ETCD_WHY_MAX];		/* why this host is out; else why etcd does not answer; "": it does */
};

/* Starts the thread. It logs in as the user `rampart` with `password` (unless that is ""), gets a lease for `lease_ns`
 * and refreshes it three times in that period. It calls `changed` with `arg` after each change of the state. */
int etcd_lease_start(const struct etcd_target *, const char *password, uint64_t lease_ns, void (*changed)(void *arg),
		     void *arg, struct etcd_lease **out) __attribute__((warn_unused_result));
/* Ends the thread, which first revokes its lease within `wait_ns`, unless this host is out. NULL-safe. */
void etcd_lease_stop(struct etcd_lease *, uint64_t wait_ns);

/* Any thread. */
void etcd_lease_read(struct etcd_lease *, struct etcd_lease_state *out);
/* Call this when etcd refused the token of login number `seen`: the thread logs in again unless it already has. */
void etcd_lease_login(struct etcd_lease *, uint64_t seen);
/* Declares this host out, because of the answer to a request of another thread. */
void etcd_lease_give_up(struct etcd_lease *, const char *why);
/* The same for an answer that a real etcd never gives. */
void etcd_lease_nonsense(struct etcd_lease *, const char *what);

#endif
