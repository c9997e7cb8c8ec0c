/* SPDX-License-Identifier: BSD-2-Clause */
/* The load hosts of a run (loadgen/cluster/cluster.h), from one run of a command to the next: a suite and a comparison
 * have several. What the leader lets go is kept until somebody wants it, since a host may still be writing the files of
 * the run before. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_TEAM_H
#define RAMPART_LOADGEN_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "common/base/clock.h"
#include "loadgen/cluster/cluster.h"

/* All hosts begin to connect, and to measure, so long after the leader said so: news must have come to all by then. */
#define TEAM_LEAD_NS (300 * NS_PER_MS)

/* A leader that says nothing for so long is given up. Between two runs it may be writing a report, and says nothing
 * meanwhile. */
#define TEAM_SILENCE_NS (300 * NS_PER_S)

/* A host's clients by state, for the progress line. */
struct team_live {
	uint32_t hosts;		/* how many hosts the figures are of */
	char phase[32];
	uint64_t connecting, connected, failed;
	double messages_per_s;
};

/* All get the number of the step, and the name that it was given below the run. */
struct team_events {
	/* Leader: all hosts that are left arrived. */
	void (*on_all)(void *arg, uint32_t step, const char *name);
	/* The leader opened the barrier `name`. `what` is its message (NULL: none), `at_ns` the moment to go on
	 * (CLOCK_MONOTONIC; 0: now). */
	void (*on_go)(void *arg, uint32_t step, const char *name, json_t *what, uint64_t at_ns);
	/* Leader: a host wants the running step to end, and the run with it; `why` names it. */
	void (*on_wish)(void *arg, const char *why);
	void (*on_lost)(void *arg, uint32_t rank, const char *why);
	void (*on_out)(void *arg, const char *why);
};

struct team {
	struct cluster *cluster;
	struct ev_loop *loop;
	uint32_t rank, n;
	bool go_on_after_loss;
	uint64_t max_skew_ns;
	uint32_t run;			/* number of the running run, from 1; 0: none yet */
	json_t *gone;			/* what was let go, by whole name */
	char gathered[BARRIER_NAME_MAX + 1];	/* the last barrier that all arrived at */
	const struct team_events *events;	/* of the running run; NULL between two */
	void *arg;
	uint32_t n_lost;		/* hosts, since the command began */
	bool out;			/* of the run: nobody is waited for any more */
	bool quits;			/* by its own decision */
	char why_out[512];
	uint64_t tell_at_ns;		/* no word of progress before */
	uint64_t heard_ns;		/* member: when the leader said something last */
	struct team_live live[CLUSTER_HOSTS_MAX];	/* leader: by rank; members: [0], of all */
	bool wished[CLUSTER_HOSTS_MAX];
};

/* Takes the cluster over. 0 or -ENOMEM. */
int team_init(struct team *t, struct cluster *cluster, struct ev_loop *loop) __attribute__((warn_unused_result));
/* Leaves (`why` as in cluster_leave) and frees. NULL-safe. */
void team_clear(struct team *t, const char *why);

static inline bool team_leads(const struct team *t)
{
	return !t || t->rank == 0;
}

/* No further run can follow: this host is out, or one was lost and that ends the command. */
static inline bool team_is_over(const struct team *t)
{
	return t && (t->out || (t->n_lost > 0 && !t->go_on_after_loss));
}

/* This host cannot run what the others do: it leaves them, and tells them why. The next run is not to begin. Leaving
 * blocks; so during a run it is put off until team_end_run. */
void team_quit(struct team *t, const char *why);

/* A run begins or ends on this host. */
void team_begin_run(struct team *t, const struct team_events *events, void *arg);
void team_end_run(struct team *t);

/* This host is there. `note` is taken, and goes to the leader (team_note). */
void team_arrive(struct team *t, uint32_t step, const char *name, json_t *note);
const json_t *team_note(const struct team *t, uint32_t step, const char *name, uint32_t rank);
/* Leader: frees the notes. */
void team_forget(struct team *t, uint32_t step, const char *name);
/* Compares the clocks, and then arrives. */
void team_compare_clocks(struct team *t, uint32_t step, const char *name);
/* Leader: opens the barrier `name`. `what` is taken, may be NULL. in_ns: as cluster_go. */
void team_go(struct team *t, uint32_t step, const char *name, json_t *what, uint64_t in_ns);
/* The message with which the leader opened the barrier, borrowed; NULL: it has not. */
json_t *team_gone(const struct team *t, uint32_t step, const char *name);
/* How much longer the leader may say nothing; 0: it is given up, for the reason that team_silence_text gives. */
uint64_t team_patience_ns(const struct team *t);
const char *team_silence_text(const struct team *t, char *text, size_t size);
/* Leader: hosts that have not arrived are put out of the run because of `why`, and told as lost. */
void team_put_out_absent(struct team *t, uint32_t step, const char *name, const char *why);
/* Runs the loop until the leader has opened the barrier and returns its message, or until this host is out, which it
 * is when the leader is given up; then NULL. Between runs. */
json_t *team_wait(struct team *t, uint32_t step, const char *name);
/* Leader: runs the loop until all hosts that are left arrived, `timeout_ns` at most. Between runs. */
void team_gather(struct team *t, uint32_t step, const char *name, uint64_t timeout_ns);

/* Tells the leader, or as the leader all, how it goes; with `wish`: that the run is to end, and why. */
void team_tell(struct team *t, const struct team_live *mine, const char *wish);
/* The sum over all hosts. */
void team_total(const struct team *t, struct team_live *out);

/* The leader's clock for a moment of ours (CLOCK_MONOTONIC). */
int64_t team_clock(const struct team *t, uint64_t now_ns);
const char *team_host_name(const struct team *t, uint32_t rank);

#endif
