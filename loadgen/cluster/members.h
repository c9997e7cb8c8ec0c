/* SPDX-License-Identifier: BSD-2-Clause */
/* Who takes part in a run: hosts that want to join, the leader among them, refusals, the sealed membership with its ranks and its
 * epoch, and losses. What changed in the store comes in, what is to be written and told comes out, one action at a
 * time.
 *
 * Every host holds the same rules against the same changes, in the same order (one watch of "members/"):
 * - A host is a key of its own, on its lease. Candidates stand in the order in which their keys were created.
 * - The leader is the first candidate with `leads`; without one, the first that does not only join and that knows how many
 *   hosts the run has. A candidate tells the leader that it is here, so that what a crashed run left is never sealed in.
 * - The leader refuses candidates with a reason, and seals the first ones as soon as there are enough, in one transaction that
 *   takes place only if all of them still exist and nothing is sealed.
 * - The leader has rank 0; the others follow in the order in which their keys were created. The revision of the
 *   sealing transaction is the epoch.
 * - A sealed host whose key goes is lost for good. The leader puts a host that does not keep to the rules out by taking its key. A host whose own key goes, or that sees another seal, is out.
 *
 * No I/O, no clock. Owning thread: whoever calls. Everything that comes in may be hostile but what it says of this
 * host's own actions. */
#ifndef RAMPART_LOADGEN_CLUSTER_MEMBERS_H
#define RAMPART_LOADGEN_CLUSTER_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/cluster/cluster.h"

#define MEMBERS_ID_LEN		32	/* hex digits */
#define HOST_NAME_BYTES		64	/* of a host's name as it is shown, with the final zero */
#define MEMBERS_TEXT_MAX	512	/* of a sentence, with the final zero */
#define MEMBERS_CANDIDATES_MAX	(2 * CLUSTER_HOSTS_MAX)

struct members;

struct members_config {
	const char *id;		/* of this host: MEMBERS_ID_LEN hex digits that no other has; copied */
	const char *uuid;	/* of the run, if this host seals it; copied */
	cluster_check_fn *check;	/* may be NULL */
	void *check_arg;
};

/* What a host writes of itself into its key: {hosts, leads, joins, lease_s, about}. Takes `about` over. NULL if memory is short. */
json_t *members_entry(const struct cluster_config *cfg, json_t *about) __attribute__((warn_unused_result));
/* The same key when the leader puts the host out. NULL if memory is short. */
json_t *members_entry_put_out(const char *why) __attribute__((warn_unused_result));
/* The same key when the host leaves in order; why: NULL if the run is over. NULL if memory is short. */
json_t *members_entry_left(const char *why) __attribute__((warn_unused_result));

enum members_do {
	/* To be written. The transaction's end is told with members_written. */
	MEMBERS_JOIN,		/* this host's entry, if nothing is sealed */
	MEMBERS_HERE,		/* tells the leader `id` that this host is here */
	MEMBERS_REFUSE,		/* refuses `id` because of `why` */
	MEMBERS_SEAL,		/* writes `seal` if nothing is sealed and members_sealing's hosts exist */
	/* To be told. */
	MEMBERS_LEADS,		/* this host is to lead: it needs the news of who is here (members_on_here) */
	MEMBERS_SEALED,		/* this host has a rank */
	MEMBERS_LOST,		/* `rank`, because of `why`; never 0 */
	MEMBERS_GONE,		/* `rank` left because the run is over for it */
	MEMBERS_OUT,		/* the last action: `error` (-errno) and `why` */
};

struct members_action {
	enum members_do what;
	uint32_t rank;
	int error;
	char id[MEMBERS_ID_LEN + 1];
	char name[HOST_NAME_BYTES];	/* of a host that is refused */
	char why[MEMBERS_TEXT_MAX];
};

int members_new(const struct members_config *cfg, struct members **out) __attribute__((warn_unused_result));
void members_free(struct members *m);	/* NULL-safe */

/* Takes the next action; false if there is none. */
bool members_next(struct members *m, struct members_action *action);

/* ---- Changes below "members/". `rest` is the key behind that prefix; `entry` NULL: its value is no JSON. */
void members_on_entry(struct members *m, const char *rest, const json_t *entry, int64_t created, int64_t written);
void members_on_gone(struct members *m, const char *rest);
/* Everything that was there at the start has come. */
void members_on_caught_up(struct members *m);
/* The host `id` told this leader that it is here. */
void members_on_here(struct members *m, const char *id);
/* A transaction of an action has ended: true if it took place. */
void members_written(struct members *m, enum members_do what, bool done);
/* Leader: it does not go on with the host of this rank, because of `why`. Told as a loss, once. */
void members_put_out(struct members *m, uint32_t rank, const char *why);
/* The store, or whoever else knows, says that this host is out. */
void members_on_out(struct members *m, int error, const char *why);

/* ---- What the seal's transaction writes and is guarded by. Borrowed until the next call of another function. */
const json_t *members_seal(const struct members *m);
/* The i-th host to be sealed: its id, and in *created its key's revision. NULL behind the last. */
const char *members_sealing(const struct members *m, uint32_t i, int64_t *created);

/* ---- State */
bool members_is_sealed(const struct members *m);
uint32_t members_rank(const struct members *m);
uint32_t members_hosts(const struct members *m);	/* 0 before the seal */
int64_t members_epoch(const struct members *m);
int64_t members_created(const struct members *m);	/* revision of this host's key; 0: not there yet */
const char *members_uuid(const struct members *m);
const json_t *members_about(const struct members *m, uint32_t rank);
const char *members_id(const struct members *m, uint32_t rank);	/* "" for no such rank */
const char *members_name(const struct members *m, uint32_t rank);	/* "?" for no such rank */
bool members_is_absent(const struct members *m, uint32_t rank);		/* lost, left, or no such rank */
bool members_is_put_out(const struct members *m, uint32_t rank);	/* by this leader, or no such rank */
bool members_is_lost(const struct members *m, uint32_t rank);		/* lost, or left early */
/* One line for who waits: how many are here, and for whom the run waits. Returns `text`. */
const char *members_waiting(const struct members *m, char text[MEMBERS_TEXT_MAX]);

#endif
