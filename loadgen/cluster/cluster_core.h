/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of a run on several hosts, shared by the files of this folder. Callers use cluster.h. Thread: main. */
#ifndef RAMPART_LOADGEN_CLUSTER_CORE_H
#define RAMPART_LOADGEN_CLUSTER_CORE_H

#include <sys/queue.h>

#include "loadgen/cluster/barriers.h"
#include "loadgen/cluster/candidates.h"
#include "loadgen/cluster/cluster.h"

#define CLUSTER_TEXT_MAX	512	/* a sentence, with the final zero */
#define ENTRY_TEXT_MAX	(256 * 1024)	/* the text of a host's entry */
#define ENTRY_MEMORY_MAX	(1024 * 1024)	/* memory of a parsed entry */
#define SAID_TEXT_MAX	(64 * 1024)
#define SAID_MEMORY_MAX	(4 * SAID_TEXT_MAX)	/* memory of one message that waits to be reported */
#define CLUSTER_CLOCK_MAX_NS	(INT64_MAX / 4)	/* largest CLOCK_MONOTONIC accepted from another host: 73 years */

enum tell { TELL_ALL, TELL_GO, TELL_LOST, TELL_OUT, TELL_SAID };

/* An event that waits until the caller listens. */
struct told {
	STAILQ_ENTRY(told) next;
	enum tell what;
	uint32_t rank;
	uint64_t at_ns;
	json_t *json;
	char text[CLUSTER_TEXT_MAX];	/* barrier or reason */
};

enum phase {
	PHASE_LISTING,		/* the existing keys have not all been read */
	PHASE_JOINING,		/* this host's key has not appeared in the watch yet */
	PHASE_WAITING,		/* waits for the seal; the leader: for enough hosts to write it */
	PHASE_SEALING,		/* the seal's transaction is under way */
	PHASE_IN,
};

struct member {			/* a host of the sealed membership */
	char id[HOST_ID_LEN + 1];
	int64_t created;
	char name[HOST_NAME_BYTES];
	json_t *about;		/* NULL: not known */
	bool lost;		/* the host is lost or left early */
	bool left;		/* the host left after its part of the run was over */
	bool put_out;		/* this leader removed the host */
};

struct question {			/* a member's request for the leader's clock */
	uint64_t asked_ns;		/* arrival, by the leader's clock; 0: no request waits */
	int64_t n;
};

struct cluster {
	struct cluster_config cfg;
	struct ev_loop *loop;
	struct etcd *etcd;
	/* Joining. */
	enum phase phase;
	char id[HOST_ID_LEN + 1];
	char key[64];			/* key of this host */
	int64_t created;		/* the revision that created the key; 0: not created yet */
	json_t *entry;
	cluster_check_fn *check;
	void *check_arg;
	struct candidates candidates;
	char leader[HOST_ID_LEN + 1];	/* the leader to which this host wrote "here"; its own id if it leads */
	uint32_t refused;		/* hosts that this leader refused; the log names the first few */
	uint64_t waits_told_ns;		/* when the log last said how many hosts are here */
	struct ev_timer waiting;
	bool joining;			/* cluster_join runs the loop */
	/* The run. */
	char uuid[HOST_ID_LEN + 1];	/* UUID of the run; before the seal, the one this host would give it */
	int64_t epoch;			/* the revision of the seal; 0: not sealed */
	struct member *hosts;		/* by rank */
	uint32_t host_count, rank;
	struct barriers *barriers;	/* leader */
	bool complained[CLUSTER_HOSTS_MAX + 1];	/* by rank: an error was logged; the last: keys that name no host */
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
	/* Leader: the rank whose clock requests it answers now (0: none), the answers so far, all requests by rank. */
	uint32_t turn, turn_rounds;
	struct ev_timer turn_ends;
	struct question questions[CLUSTER_HOSTS_MAX];
};

void cluster_core_init(struct cluster *c);
void cluster_core_free(struct cluster *c);
/* Queues an event for the caller, who fills in its other fields. Logs and returns NULL when out of memory. */
struct told *cluster_tell(struct cluster *c, enum tell what, const char *text);
/* Takes this host out of the run: ends cluster_join, or reports on_out as the last event. Further calls do nothing. */
void cluster_be_out(struct cluster *c, int error, const char *why);

/* Formats a key below the UUID of the run. */
void cluster_run_key(const struct cluster *c, char key[ETCD_KEY_MAX + 1], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Writes a key, guarded by the seal of this run and by this host's own key. A write that cannot be sent takes this host
 * out of the run. `done` gets the cluster as its argument. */
void cluster_write_key(struct cluster *c, const struct etcd_write *w, etcd_done_fn *done);
/* Packs `document` (taken over) and writes it with cluster_write_key. */
void cluster_write_json(struct cluster *c, const char *key, json_t *document, size_t text_max, etcd_done_fn *done);
/* Handles the end of a write. A failed guard means that this host is no longer in the run; the watch reports why. */
void cluster_on_written(void *arg, enum etcd_status status, const char *why);
/* Watches the keys below `prefix`; the events get the cluster as their argument. */
void cluster_watch(struct cluster *c, const char *prefix, const struct etcd_watch_events *events);
/* Reads a decimal number of at most `max` in a key and moves *text behind it. */
bool cluster_read_number(const char **text, uint32_t max, uint32_t *out);
/* Handles a message of the host with this rank. This and all other entries from etcd may contain anything. */
void cluster_on_said(struct cluster *c, uint32_t rank, const struct etcd_entry *e);
bool cluster_is_leader(const struct cluster *c);
/* True if the host is lost or has left. */
bool cluster_is_absent(const struct cluster *c, uint32_t rank);

/* Why a host is gone: its key expired (`why` NULL), it left (`why` NULL: after its part), or the leader removed it. */
enum loss { LOSS_SILENT, LOSS_LEFT, LOSS_PUT_OUT };
/* Records that the host of this rank is gone. Later calls for it do nothing. */
void cluster_lose(struct cluster *c, uint32_t rank, enum loss how, const char *why);
/* Leader: handle a key below "up/at/" or "up/part/"; `rest` is the key without that prefix. */
void cluster_on_arrival(struct cluster *c, const char *rest, const struct etcd_entry *e);
void cluster_on_part(struct cluster *c, const char *rest, const struct etcd_entry *e);
/* Member: the leader opened `barrier`. */
void cluster_on_go(struct cluster *c, const char *barrier, const struct etcd_entry *e);

void cluster_clock_init(struct cluster *c);
void cluster_clock_stop(struct cluster *c);
/* Leader: the host of this rank asks for the leader's clock. */
void cluster_on_question(struct cluster *c, uint32_t rank, const struct etcd_entry *e);

void members_watch(struct cluster *c);
/* One line for the user: how many hosts are here and what the run waits for. Returns `text`. */
const char *members_waiting(const struct cluster *c, char text[CLUSTER_TEXT_MAX]);
/* After the wait for hosts: logs how many were refused, unless the log names all of them. */
void members_log_refused(const struct cluster *c);

/* The first half of cluster_join: starts to join, and does not wait. */
int cluster_begin(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check,
		  void *arg, struct cluster **out, char *err, size_t err_size) __attribute__((warn_unused_result));
void cluster_free(struct cluster *c);

#endif
