/* SPDX-License-Identifier: BSD-2-Clause */
/* A run on several hosts from within: what the files of this folder share. Callers use cluster.h. Owning thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_CORE_H
#define RAMPART_LOADGEN_CLUSTER_CORE_H

#include <sys/queue.h>

#include "loadgen/cluster/barriers.h"
#include "loadgen/cluster/candidates.h"
#include "loadgen/cluster/cluster.h"

#define CLUSTER_TEXT_MAX	512	/* of a sentence, with the final zero */
#define ENTRY_TEXT_MAX	(256 * 1024)	/* of what a host says of itself */
#define ENTRY_MEMORY_MAX	(1024 * 1024)	/* what that takes once it is read */
#define SAID_TEXT_MAX	(64 * 1024)
#define SAID_MEMORY_MAX	(4 * SAID_TEXT_MAX)	/* of each that waits to be told */
#define CLUSTER_CLOCK_MAX_NS	(INT64_MAX / 4)	/* of a CLOCK_MONOTONIC that another host tells: 73 years */

enum tell { TELL_ALL, TELL_GO, TELL_LOST, TELL_OUT, TELL_SAID };

/* What is to be reported once the caller listens. */
struct told {
	STAILQ_ENTRY(told) next;
	enum tell what;
	uint32_t rank;
	uint64_t at_ns;
	json_t *json;
	char text[CLUSTER_TEXT_MAX];	/* barrier or reason */
};

enum phase {
	PHASE_LISTING,		/* what is in the store has not all come */
	PHASE_JOINING,		/* this host's key is not there yet */
	PHASE_WAITING,		/* for the seal, or for enough to seal */
	PHASE_SEALING,		/* the seal's transaction is under way */
	PHASE_IN,
};

struct member {			/* a host that was sealed */
	char id[HOST_ID_LEN + 1];
	int64_t created;
	char name[HOST_NAME_BYTES];
	json_t *about;		/* NULL: not known */
	bool lost;		/* or left early */
	bool left;		/* because the run is over for it */
	bool put_out;		/* by this leader */
};

struct question {			/* of a member about the clock */
	uint64_t asked_ns;		/* when it came, by the leader's clock; 0: none */
	int64_t n;
};

struct cluster {
	struct cluster_config cfg;
	struct ev_loop *loop;
	struct etcd *etcd;
	/* Joining. */
	enum phase phase;
	char id[HOST_ID_LEN + 1];
	char key[64];			/* of this host */
	int64_t created;		/* the revision that created it; 0: it is not there yet */
	json_t *entry;
	cluster_check_fn *check;
	void *check_arg;
	struct candidates candidates;
	char leader[HOST_ID_LEN + 1];	/* whom this host told that it is here; itself if it leads */
	uint32_t refused;		/* hosts, by this leader; only the first are named in the log */
	uint64_t waits_told_ns;		/* when the log said last how many hosts are here */
	struct ev_timer waiting;
	bool joining;			/* cluster_join runs the loop */
	/* The run. */
	char uuid[HOST_ID_LEN + 1];	/* before the seal: of the run, if this host seals it */
	int64_t epoch;			/* the revision of the seal; 0: there is none */
	struct member *hosts;		/* by rank */
	uint32_t host_count, rank;
	struct barriers *barriers;	/* leader */
	bool complained[CLUSTER_HOSTS_MAX + 1];	/* by rank: one line for each host; the last: keys that name none */
	json_t *say_next;
	bool saying;
	/* The end. */
	bool out, left;
	int error;
	char why[CLUSTER_TEXT_MAX];
	struct ev_timer stale;
	/* Events. */
	struct cluster_events events;
	void *arg;
	bool listening;
	STAILQ_HEAD(, told) told;
	struct ev_timer tell;
	bool *freed;			/* set if a callback frees the cluster */
	/* The clock: round trips so far, and the best of them. */
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
	struct question questions[CLUSTER_HOSTS_MAX];
};

/* ---- cluster_core.c */

void cluster_core_init(struct cluster *c);
void cluster_core_free(struct cluster *c);
/* Has an event reported. NULL if memory is short, which it logs; else what the event needs besides `text` is to be filled in. */
struct told *cluster_tell(struct cluster *c, enum tell what, const char *text);
/* This host is out. Once; nothing follows. */
void cluster_be_out(struct cluster *c, int error, const char *why);

/* A key of the run, below its UUID. */
void cluster_run_key(const struct cluster *c, char key[ETCD_KEY_MAX + 1], const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Writes if the run is the one that was sealed and this host is in it. What cannot be sent puts it out of the run. `done` is
 * called with the cluster. */
void cluster_write_key(struct cluster *c, const struct etcd_write *w, etcd_done_fn *done);
/* The same for a document, which is taken over. */
void cluster_write_json(struct cluster *c, const char *key, json_t *document, size_t text_max, etcd_done_fn *done);
/* Ends a write. One whose guard did not hold means that this host is in the run no more; why, the watch says. */
void cluster_on_written(void *arg, enum etcd_status status, const char *why);
/* Watches keys; the events' arg is the cluster. */
void cluster_watch(struct cluster *c, const char *prefix, const struct etcd_watch_events *events);
/* Reads a number in a key, of digits alone and at most `max`, and moves *text behind it. */
bool cluster_read_number(const char **text, uint32_t max, uint32_t *out);
/* The host of this rank said something; like all that comes from etcd, here and below, it may be anything. */
void cluster_on_said(struct cluster *c, uint32_t rank, const struct etcd_entry *e);
bool cluster_is_leader(const struct cluster *c);
/* Lost, or left. */
bool cluster_is_absent(const struct cluster *c, uint32_t rank);

/* ---- cluster_gates.c */

/* How a host goes: its key is gone (`why` NULL), it left (`why` NULL: the run is over), or the leader put it out. */
enum loss { LOSS_SILENT, LOSS_LEFT, LOSS_PUT_OUT };
/* The host of this rank is gone. Once; what follows does nothing. */
void cluster_lose(struct cluster *c, uint32_t rank, enum loss how, const char *why);
/* Leader: a key below "up/at/" or "up/part/"; `rest` is what stands behind that. */
void cluster_on_arrival(struct cluster *c, const char *rest, const struct etcd_entry *e);
void cluster_on_part(struct cluster *c, const char *rest, const struct etcd_entry *e);
/* Member: the leader let `barrier` go. */
void cluster_on_go(struct cluster *c, const char *barrier, const struct etcd_entry *e);

/* ---- cluster_clock.c */

void cluster_clock_init(struct cluster *c);
void cluster_clock_stop(struct cluster *c);
/* Leader: the host of this rank asks. */
void cluster_on_question(struct cluster *c, uint32_t rank, const struct etcd_entry *e);

/* ---- members.c */

void members_watch(struct cluster *c);
/* One line for who waits: how many are here, and for whom the run waits. Returns `text`. */
const char *members_waiting(const struct cluster *c, char text[CLUSTER_TEXT_MAX]);
/* The wait for hosts is over: says how many were refused, if not all of them are named in the log. */
void members_log_refused(const struct cluster *c);

/* ---- cluster.c */

/* Begins to join, as cluster_join, which then waits. */
int cluster_begin(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check, void *arg,
		  struct cluster **out, char *err, size_t err_size) __attribute__((warn_unused_result));
void cluster_free(struct cluster *c);

#endif
