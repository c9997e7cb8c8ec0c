/* SPDX-License-Identifier: BSD-2-Clause */
/* A run on several hosts: who takes part in it and in which order, gates that all of them pass together, who is lost, and
 * how each host's clock stands to the leader's. Rank 0 is the leader.
 * Owning thread: the one that runs the loop (main) calls everything and is called back on. Nothing here blocks but
 * cluster_join and cluster_leave. Events come from the loop only, never from within a call. */
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
	struct etcd_config etcd;	/* its lease: a host that is not heard of for so long is lost */
	uint32_t hosts;		/* that the run is to have; 0: what the leader says */
	uint64_t join_timeout_ns;	/* until the membership is sealed */
	bool leads;		/* only this host becomes rank 0, whoever came first */
	bool joins;		/* this host never becomes rank 0 */
	bool go_on_after_loss;	/* barriers do not wait for hosts that are lost */
};

struct cluster_events {
	/* Leader: every host that is in the run has arrived at `barrier`; cluster_note has their notes. */
	void (*on_all)(void *arg, const char *barrier);
	/* Every host, the leader too: the leader let `barrier` go. `what` is borrowed, and NULL if there is none. at_ns: when to
	 * go on, by this host's CLOCK_MONOTONIC; 0: at once. */
	void (*on_go)(void *arg, const char *barrier, json_t *what, uint64_t at_ns);
	/* The host of this rank is lost (its lease is gone) or left early; `why` is a sentence that names it. Not called for the
	 * leader: a run ends with its leader (on_out). */
	void (*on_lost)(void *arg, uint32_t rank, const char *why);
	/* This host is out of the run: its lease is gone, the store cannot be reached for longer than the lease, or the
	 * leader is lost or left. The last event. */
	void (*on_out)(void *arg, const char *why);
	/* Leader: what a host said last (cluster_say), borrowed. Members: what the leader said. */
	void (*on_said)(void *arg, uint32_t rank, json_t *what);
};

/* Called on the leader for each host that wants to join; `leader` and `member` are what these hosts said of themselves.
 * False, with a reason in `why`, refuses the host. */
typedef bool cluster_check_fn(void *arg, const json_t *leader, const json_t *member, char *why, size_t why_size);

/* Joins, and runs the loop until the membership is sealed. `about` describes this host; the reference is taken over, also on
 * failure. Its "name" is a string, by which messages name the host; the rest is the callers' affair. `check` may be NULL:
 * everybody is admitted. Returns 0, or with a line in `err`:
 * -EINVAL	a configuration that cannot be, such as a URL that is none
 * -EACCES	refused by the leader, or too late: the run is sealed without this host
 * -ETIMEDOUT	not sealed within join_timeout_ns
 * -ECANCELED	a watcher of the caller's ended the wait: ev_break(loop, EVBREAK_ALL), such as for SIGINT and SIGTERM
 * -EIO		the store cannot be reached, refuses, or holds what is no run
 * -ENOMEM */
int cluster_join(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check, void *arg,
		 struct cluster **out, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Has events reported to `events` (copied). What happened since cluster_join is reported first, from the loop. */
void cluster_listen(struct cluster *c, const struct cluster_events *events, void *arg);

/* This host's rank, and the number of hosts that were sealed: ranks are 0 to that number - 1. */
uint32_t cluster_rank(const struct cluster *c);
uint32_t cluster_hosts(const struct cluster *c);
/* What the host of this rank said of itself when it joined; borrowed for the cluster's life. NULL: no such rank. */
const json_t *cluster_about(const struct cluster *c, uint32_t rank);
/* True if the host is lost or left early, or if there is no such rank. */
bool cluster_is_lost(const struct cluster *c, uint32_t rank);

/* This host is at `barrier`: 1 to BARRIER_NAME_MAX bytes of [a-z0-9/_-]. `note` (taken over, may be NULL) goes to the leader only. Once
 * for each barrier. */
void cluster_arrive(struct cluster *c, const char *barrier, json_t *note);
/* Leader: hosts that have not arrived at `barrier` are put out of the run because of `why`; each is told as lost. */
void cluster_put_out_absent(struct cluster *c, const char *barrier, const char *why);
/* Leader: the note with which a host arrived, borrowed until cluster_forget; NULL: none, or not arrived. */
const json_t *cluster_note(const struct cluster *c, const char *barrier, uint32_t rank);
/* Leader: frees the notes of a barrier and deletes its keys in the store. Also for one that is not known. */
void cluster_forget(struct cluster *c, const char *barrier);
/* Leader: lets a barrier go, also one at which nobody has to arrive (a step's announcement). in_ns > 0: all hosts go on at the same
 * moment, so long from now, by each host's clock offset. `what` is taken over and may be NULL. */
void cluster_go(struct cluster *c, const char *barrier, json_t *what, uint64_t in_ns);

/* The latest word of this host, for live progress: not ordered with barriers, and a newer one may take the place of one that
 * nobody saw. Taken over. */
void cluster_say(struct cluster *c, json_t *what);

/* Measures this host's clock against the leader's by round trips over the store, then arrives at `barrier` without a note.
 * On the leader: it arrives at once. */
void cluster_measure_clock(struct cluster *c, const char *barrier);
/* The leader's CLOCK_MONOTONIC minus this host's, and how wrong that may be: half of the shortest round trip. 0 on the
 * leader. Before anything is measured: 0, and UINT64_MAX. */
int64_t cluster_clock_offset_ns(const struct cluster *c);
uint64_t cluster_clock_error_ns(const struct cluster *c);

/* Leaves in order, with a reason for the others (NULL: the run is over), which takes at most 2 s, and frees. NULL-safe. */
void cluster_leave(struct cluster *c, const char *why);

#endif
