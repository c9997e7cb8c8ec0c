/* SPDX-License-Identifier: BSD-2-Clause */
/* The load hosts of a command (loadgen/cluster/cluster.h). They stay together over all of its runs: a suite and a
 * comparison have several. Go messages of the leader are kept until this host asks for them, since it may still be
 * writing the files of the previous run. Owning thread: main.
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

/* Delay from the leader's go message until all hosts connect or measure: the message must have reached all by then. */
#define TEAM_LEAD_NS (300 * NS_PER_MS)

/* A host gives up on a leader that has sent nothing for this long. The time is long because the leader sends nothing
 * while it writes a report between two runs. */
#define TEAM_SILENCE_NS (300 * NS_PER_S)

/* A host's clients by state, for the progress line. */
struct team_live {
	uint32_t hosts;		/* number of hosts that the figures sum up */
	char phase[32];
	uint64_t connecting, connected, failed;
	double messages_per_s;
};

/* `step` is the number of the step, and `name` the barrier's name within that step. */
struct team_events {
	/* Leader: all remaining hosts have arrived at the barrier `name`. */
	void (*on_all)(void *arg, uint32_t step, const char *name);
	/* The leader opened the barrier `name`. `what` is its message (NULL: none), `at_ns` the moment to continue
	 * (CLOCK_MONOTONIC; 0: now). */
	void (*on_go)(void *arg, uint32_t step, const char *name, json_t *what, uint64_t at_ns);
	/* Leader: a host asks to end the running step and the run; `why` names the host. */
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
	json_t *gone;			/* go messages; the keys are the cluster's names of the barriers */
	char gathered[BARRIER_NAME_MAX + 1];	/* the last barrier at which all hosts arrived */
	const struct team_events *events;	/* callbacks of the running run; NULL between two runs */
	void *arg;
	uint32_t n_lost;		/* hosts lost since the command began */
	bool out;			/* this host is out of the run and waits for no other host */
	bool quits;			/* this host is out by its own decision */
	char why_out[512];
	uint64_t tell_at_ns;		/* earliest time of the next progress message */
	uint64_t heard_ns;		/* member: when the leader's last message arrived */
	struct team_live live[CLUSTER_HOSTS_MAX];	/* leader: by rank; members: [0] is the sum over all hosts */
	bool wished[CLUSTER_HOSTS_MAX];
};

/* Takes over `cluster`. Returns 0 or -ENOMEM. */
int team_init(struct team *t, struct cluster *cluster, struct ev_loop *loop) __attribute__((warn_unused_result));
/* Leaves the cluster (`why` as in cluster_leave) and frees its memory. NULL-safe. */
void team_clear(struct team *t, const char *why);

static inline bool team_leads(const struct team *t)
{
	return !t || t->rank == 0;
}

/* True if no further run can follow: this host is out, or a host was lost and --on-host-loss is `stop`. */
static inline bool team_is_over(const struct team *t)
{
	return t && (t->out || (t->n_lost > 0 && !t->go_on_after_loss));
}

/* Takes this host out of this and all further runs, because it cannot do what the other hosts do, and tells them why.
 * Leaving the cluster blocks, so a host that quits during a run leaves only in team_end_run. */
void team_quit(struct team *t, const char *why);

/* A run begins or ends on this host. */
void team_begin_run(struct team *t, const struct team_events *events, void *arg);
void team_end_run(struct team *t);

/* This host has arrived at the barrier `name`. `note` is taken over; the leader reads it with team_note. */
void team_arrive(struct team *t, uint32_t step, const char *name, json_t *note);
const json_t *team_note(const struct team *t, uint32_t step, const char *name, uint32_t rank);
/* Leader: frees the barrier's notes. */
void team_forget(struct team *t, uint32_t step, const char *name);
/* Measures the offset of this host's clock from the leader's, then arrives at the barrier. */
void team_compare_clocks(struct team *t, uint32_t step, const char *name);
/* Leader: opens the barrier `name`. `what` is taken over and may be NULL; `in_ns` as in cluster_go. */
void team_go(struct team *t, uint32_t step, const char *name, json_t *what, uint64_t in_ns);
/* The message with which the leader opened the barrier, borrowed; NULL: the barrier is not open yet. */
json_t *team_gone(const struct team *t, uint32_t step, const char *name);
/* How much longer the leader may be silent; 0: give the leader up, for the reason that team_silence_text returns. */
uint64_t team_patience_ns(const struct team *t);
const char *team_silence_text(const struct team *t, char *text, size_t size);
/* Leader: removes hosts that have not arrived at the barrier from the run for `why`. Each is reported as lost. */
void team_put_out_absent(struct team *t, uint32_t step, const char *name, const char *why);
/* Runs the loop until the leader has opened the barrier, and returns the leader's message. NULL: this host is out,
 * perhaps because the leader was silent for TEAM_SILENCE_NS. Call it between runs only. */
json_t *team_wait(struct team *t, uint32_t step, const char *name);
/* Leader: runs the loop until all remaining hosts have arrived, for `timeout_ns` at most. Call it between runs only. */
void team_gather(struct team *t, uint32_t step, const char *name, uint64_t timeout_ns);

/* Sends this host's progress to the leader (the leader: the total to all). `wish`: why to end the run; may be NULL. */
void team_tell(struct team *t, const struct team_live *mine, const char *wish);
/* The sum of the figures over all hosts. */
void team_total(const struct team *t, struct team_live *out);

/* Converts a time of this host's CLOCK_MONOTONIC to the leader's. */
int64_t team_clock(const struct team *t, uint64_t now_ns);
const char *team_host_name(const struct team *t, uint32_t rank);

#endif
