/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files cluster*.c have in common: this host's end of a run on several hosts, the events that its caller is told from the
 * loop, and writes that take place only while this host is in the run. For these files alone; callers use cluster.h.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_CORE_H
#define RAMPART_LOADGEN_CLUSTER_CORE_H

#include <sys/queue.h>

#include "loadgen/cluster/barriers.h"
#include "loadgen/cluster/cluster.h"
#include "loadgen/cluster/etcd/etcd.h"
#include "loadgen/cluster/members.h"

#define ENTRY_TEXT_MAX	(256 * 1024)	/* of what a host says of itself */
#define CLUSTER_CLOCK_MAX_NS	(INT64_MAX / 4)	/* of a CLOCK_MONOTONIC that another host tells: 73 years */
#define ENTRY_MEMORY_MAX	(1024 * 1024)	/* what that takes once it is read */
#define SAID_TEXT_MAX	(64 * 1024)
#define SAID_MEMORY_MAX	(4 * SAID_TEXT_MAX)	/* of each that waits to be told */

enum tell { TELL_ALL, TELL_GO, TELL_LOST, TELL_OUT, TELL_SAID };

/* What is to be reported once the caller listens. */
struct told {
	STAILQ_ENTRY(told) next;
	enum tell what;
	uint32_t rank;
	uint64_t at_ns;
	json_t *json;
	char text[MEMBERS_TEXT_MAX];	/* barrier or reason */
};

struct question {			/* of a member about the clock */
	uint64_t asked_ns;		/* when it came, by the leader's clock; 0: none */
	int64_t n;
};

struct cluster {
	struct cluster_config cfg;
	struct ev_loop *loop;
	struct etcd *etcd;
	struct members *members;
	struct barriers *barriers;	/* leader, from the seal on */
	char id[MEMBERS_ID_LEN + 1];
	char hosts_key[64];		/* of this host */
	json_t *entry;
	struct cluster_events events;
	void *arg;
	uint32_t refused;		/* hosts, by this leader; only the first are named in the log */
	uint64_t waits_told_ns;		/* when the log said last how many hosts are here */
	bool listening, out, joining, joined;
	int error;			/* of being out */
	char why[MEMBERS_TEXT_MAX];
	STAILQ_HEAD(, told) told;
	struct ev_timer tell, stale, waiting;
	bool *freed;			/* set if a callback frees the cluster */
	json_t *say_next;
	bool saying, left;
	bool complained[CLUSTER_HOSTS_MAX + 1];	/* by rank: one line for each host; the last: keys that name none */
	/* The clock (cluster_clock.c): round trips so far, and the best of them. */
	struct ev_timer clock_round;
	uint32_t clock_rounds;
	int64_t clock_n;
	bool watches_answers;
	char clock_barrier[BARRIER_NAME_MAX + 1];
	int64_t offset_ns;
	uint64_t error_ns;
	/* Leader: whose round trips are being answered (0: nobody's), how many were, and the questions of all by rank. */
	uint32_t turn, turn_rounds;
	struct ev_timer turn_ends;
	struct question *questions;
};

void cluster_core_init(struct cluster *c);
void cluster_core_free(struct cluster *c);

/* Has an event reported. NULL if memory is short, which it logs; else what the event needs besides `text` is to be filled in. */
struct told *cluster_tell(struct cluster *c, enum tell what, const char *text);

/* This host is out, for a reason that is not the members' rules. Once; nothing follows. */
void cluster_be_out(struct cluster *c, int error, const char *why);
/* The same once the rules know it. */
void cluster_end(struct cluster *c, int error, const char *why);

/* A key of the run, below its UUID. */
void cluster_run_key(const struct cluster *c, char key[ETCD_KEY_MAX + 1], const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Writes if the run is the one that was sealed and this host is in it. What cannot be sent puts it out of the run. */
void cluster_write_key(struct cluster *c, const struct etcd_write *w, etcd_done_fn *done);
/* The same for a document, which is taken over. */
void cluster_write_json(struct cluster *c, const char *key, json_t *document, size_t text_max, etcd_done_fn *done);
/* Ends a write; its arg is the cluster. One whose guard did not hold means that this host is in the run no more; why, the watch says. */
void cluster_on_written(void *arg, enum etcd_status status, const char *why);

/* Reads a number in a key, of digits alone and at most `max`, and moves *text behind it. */
bool cluster_read_number(const char **text, uint32_t max, uint32_t *out);

/* Watches keys; the events' arg is the cluster. */
void cluster_watch(struct cluster *c, const char *prefix, const struct etcd_watch_events *events);

#endif
