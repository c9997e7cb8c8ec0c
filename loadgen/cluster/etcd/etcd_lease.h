/* SPDX-License-Identifier: BSD-2-Clause */
/* This host's lease in etcd, and its login, kept by a thread of their own: it waits for nothing but etcd and the clock. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_LEASE_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/cluster/etcd/etcd_http.h"

#define ETCD_LOGIN_MAX 512	/* of what etcd gives for a password: "simple" tokens have some 20 bytes, a JWT some hundred */

struct etcd_lease;

struct etcd_lease_state {	/* as the thread published it last */
	int64_t id;			/* 0: not there yet */
	uint64_t login;			/* how often this host has logged in */
	char token[ETCD_LOGIN_MAX];	/* for etcd_call_start; "": etcd wants none */
	bool out;			/* for good */
	char why[ETCD_WHY_MAX];		/* why this host is out; else why etcd does not answer; "": it does */
};

/* Starts the thread: logs in with `password` as the user `rampart`, if it is not "", gets a lease for `lease_ns`, and refreshes
 * it three times within that time. `changed` is called from the thread, with `arg`, whenever the state has changed. */
int etcd_lease_start(const struct etcd_target *, const char *password, uint64_t lease_ns, void (*changed)(void *arg), void *arg,
		     struct etcd_lease **out) __attribute__((warn_unused_result));
/* Ends the thread, which first revokes a lease that is there, within `wait_ns`, unless this host is out. NULL-safe. */
void etcd_lease_stop(struct etcd_lease *, uint64_t wait_ns);

/* Any thread. */
void etcd_lease_read(struct etcd_lease *, struct etcd_lease_state *out);
/* etcd refused the token of the login `seen`: the thread logs in anew, if it has not done so since. */
void etcd_lease_login(struct etcd_lease *, uint64_t seen);
/* This host is out: a request that the lease's thread did not make was told so. */
void etcd_lease_give_up(struct etcd_lease *, const char *why);
/* The same, since etcd answered what it does not. */
void etcd_lease_nonsense(struct etcd_lease *, const char *what);

#endif
