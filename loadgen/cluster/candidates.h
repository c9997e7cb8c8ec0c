/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts that want to join a run, as their keys in etcd say, in the order in which those were created; and what such an entry says,
 * which may be anything. Pure. Owning thread: whoever calls. */
#ifndef RAMPART_LOADGEN_CLUSTER_CANDIDATES_H
#define RAMPART_LOADGEN_CLUSTER_CANDIDATES_H

#include "loadgen/cluster/cluster.h"

#define HOST_ID_LEN	32	/* hex digits */
#define HOST_NAME_BYTES	64	/* of a host's name as it is shown, with the final zero */
#define CANDIDATES_MAX	(2 * CLUSTER_HOSTS_MAX)

struct candidate {
	char id[HOST_ID_LEN + 1];
	int64_t created;
	json_t *entry;		/* NULL: what its key has is no entry */
	bool here, refused;
};

struct candidates {
	struct candidate *of[CANDIDATES_MAX];	/* in the order of `created` */
	uint32_t count;
	json_t *early;		/* ids that were here before their candidate was seen: the two come by different watches */
};

void candidates_clear(struct candidates *all);

struct candidate *candidates_find(const struct candidates *all, const char *id);	/* NULL: none */
/* Adds one whose id is good and not there. Beyond CANDIDATES_MAX, or short of memory, nothing happens. */
void candidates_add(struct candidates *all, const char *id, const json_t *entry, int64_t created);
void candidates_remove(struct candidates *all, const char *id);
/* The host said that it is here. False: its key has not been seen; it counts as here when that comes. */
bool candidates_here(struct candidates *all, const char *id);
/* Who is to lead by the rules of members.c; NULL: nobody yet. */
struct candidate *candidates_find_leader(const struct candidates *all);

/* The leader's judgement of a host before it may be sealed. False: with a reason in `why`. `check` may be NULL. */
bool candidate_may_join(const struct candidate *leader, const struct candidate *c, cluster_check_fn *check, void *arg, char *why,
			size_t why_size);

/* ---- Entries: {hosts, leads, joins, lease_s, about} */
bool host_id_is_good(const char *text);
bool entry_is_true(const json_t *entry, const char *name);
uint32_t entry_hosts(const json_t *entry);	/* that its run is to have; 0: it does not say, or what cannot be */
void entry_show_name(const json_t *entry, char name[HOST_NAME_BYTES]);

#endif
