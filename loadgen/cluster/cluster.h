/* SPDX-License-Identifier: BSD-2-Clause */
/* A run on several hosts: its members and their ranks, barriers that all of them pass together, lost hosts, and the
 * offset between each host's clock and the leader's. Rank 0 is the leader. Owning thread: the one that runs the loop
 * (main) makes all calls and gets all callbacks. Only cluster_join and cluster_leave block. Events come from the loop
 * only, never from within a call. */
#ifndef RAMPART_LOADGEN_CLUSTER_H
#define RAMPART_LOADGEN_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "loadgen/cluster/etcd/etcd.h"

#define CLUSTER_HOSTS_MAX 1024	/* hosts of a run */
#define BARRIER_NAME_MAX  95
#define CLUSTER_NOTE_MAX  (16 * 1024 * 1024)	/* bytes of a note's JSON text, before it is compressed */

struct cluster;

struct cluster_config {
	struct etcd_config etcd;	/* its lease_ns: a host that is silent for that long is lost */
	uint32_t hosts;		/* number of hosts in the run; 0: the leader decides */
	uint64_t join_timeout_ns;	/* longest wait for the membership to be sealed */
	bool leads;		/* this host becomes rank 0, even if other hosts joined earlier */
	bool joins;		/* this host never becomes rank 0 */
	bool go_on_after_loss;	/* barriers do not wait for hosts that are lost */
};

struct cluster_events {
	/* Leader: every host in the run has arrived at `barrier`; cluster_note returns their notes. */
	void (*on_all)(void *arg, const char *barrier);
	/* Every host, including the leader: the leader opened `barrier`. `what` is the leader's message, borrowed; NULL
	 * if there is none. at_ns: when to continue, by this host's CLOCK_MONOTONIC; 0: at once. */
	void (*on_go)(void *arg, const char *barrier, json_t *what, uint64_t at_ns);
	/* The host of this rank is lost (its lease expired) or left early; `why` is a sentence that names the host.
	 * Not called for the leader, because the loss of the leader ends the run (on_out). */
	void (*on_lost)(void *arg, uint32_t rank, const char *why);
	/* This host is out of the run: its lease expired, etcd was out of reach for longer than the lease, or the
	 * leader was lost or left. It is the last event. */
	void (*on_out)(void *arg, const char *why);
	/* Leader: the latest message of a host (cluster_say), borrowed. Members: the latest message of the leader. */
	void (*on_said)(void *arg, uint32_t rank, json_t *what);
};

/* Called on the leader for each host that wants to join; `leader` and `member` are the descriptions that the two hosts
 * gave (`about`). False, with a reason in `why`, refuses the host. */
typedef bool cluster_check_fn(void *arg, const json_t *leader, const json_t *member, char *why, size_t why_size);

/* Joins, and runs the loop until the membership is sealed. `about` describes this host; the reference is
 * taken over, even on failure. Messages name the host by its string "name"; only the callers read the rest. A
 * `check` of NULL admits every host. Returns 0, or with a line in `err`:
 * -EINVAL	an invalid configuration, such as a malformed URL
 * -EACCES	refused by the leader, or too late: the run was sealed without this host
 * -ETIMEDOUT	not sealed within join_timeout_ns
 * -ECANCELED	the caller ended the wait by ev_break(loop, EVBREAK_ALL), for example on SIGINT or SIGTERM
 * -EIO		etcd cannot be reached, refuses, or holds invalid data for this run
 * -ENOMEM */
int cluster_join(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check,
		 void *arg, struct cluster **out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Starts reporting events to `events` (copied) from the loop, first those that happened since cluster_join. */
void cluster_listen(struct cluster *c, const struct cluster_events *events, void *arg);

/* This host's rank, and the number of hosts in the sealed membership; ranks count from 0. */
uint32_t cluster_rank(const struct cluster *c);
uint32_t cluster_hosts(const struct cluster *c);
/* The `about` of the host with this rank, borrowed for the life of the cluster. NULL: no such rank. */
const json_t *cluster_about(const struct cluster *c, uint32_t rank);
/* True if the host is lost or left early, or if there is no such rank. */
bool cluster_is_lost(const struct cluster *c, uint32_t rank);

/* Tells the leader that this host has arrived at `barrier` (1 to BARRIER_NAME_MAX bytes of [a-z0-9/_-]), with a `note`
 * for the leader (taken over, may be NULL). Call it once per barrier. */
void cluster_arrive(struct cluster *c, const char *barrier, json_t *note);
/* Leader: removes hosts that have not arrived at `barrier` from the run for `why`. Each is reported as lost. */
void cluster_put_out_absent(struct cluster *c, const char *barrier, const char *why);
/* Leader: the note that a host left when it arrived, borrowed until cluster_forget; NULL: no note, or not arrived. */
const json_t *cluster_note(const struct cluster *c, const char *barrier, uint32_t rank);
/* Leader: frees the notes of a barrier and deletes its keys in etcd. The barrier may be unknown. */
void cluster_forget(struct cluster *c, const char *barrier);
/* Leader: opens a barrier, even if nobody has to arrive at it (a step's announcement). in_ns > 0: all hosts continue at
 * the same moment, in_ns from now, computed with each host's clock offset. `what` is taken over and may be NULL. */
void cluster_go(struct cluster *c, const char *barrier, json_t *what, uint64_t in_ns);

/* Publishes the latest message of this host, for live progress. It is not ordered with barriers and may replace an
 * earlier message before anybody saw it. `what` is taken over. */
void cluster_say(struct cluster *c, json_t *what);

/* Measures the offset of this host's clock from the leader's by round trips over etcd, then arrives at `barrier`
 * without a note. The leader arrives at once. */
void cluster_measure_clock(struct cluster *c, const char *barrier);
/* The leader's CLOCK_MONOTONIC minus this host's, and the largest error of that: half of the shortest round trip. Both
 * are 0 on the leader. Before the first measurement they are 0 and UINT64_MAX. */
int64_t cluster_clock_offset_ns(const struct cluster *c);
uint64_t cluster_clock_error_ns(const struct cluster *c);

/* Leaves the run, tells the other hosts `why` (NULL: the run is over) and frees `c`. Takes at most 2 s. NULL-safe. */
void cluster_leave(struct cluster *c, const char *why);

#endif
