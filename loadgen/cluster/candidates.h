/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts that want to join a run, read from their keys in etcd and kept in the order in which the keys were created. A
 * host's entry may contain anything. No I/O. Not tied to a thread. */
#ifndef RAMPART_LOADGEN_CLUSTER_CANDIDATES_H
#define RAMPART_LOADGEN_CLUSTER_CANDIDATES_H

#include "loadgen/cluster/cluster.h"

#define HOST_ID_LEN	32	/* hex digits */
#define HOST_NAME_BYTES	64	/* a host's name as it is shown, with the final zero */
#define CANDIDATES_MAX	(2 * CLUSTER_HOSTS_MAX)

struct candidate {
	char id[HOST_ID_LEN + 1];
	int64_t created;
	json_t *entry;		/* NULL: its key does not hold a valid entry */
	bool here, refused;
};

struct candidates {
	struct candidate *of[CANDIDATES_MAX];	/* in the order of `created` */
	uint32_t count;
	json_t *early;		/* ids of hosts that said "here" before their key was seen (separate watches) */
};

void candidates_clear(struct candidates *all);

struct candidate *candidates_find(const struct candidates *all, const char *id);	/* NULL: none */
/* Adds a candidate; its id is valid and not yet in the list. Does nothing beyond CANDIDATES_MAX or without memory. */
void candidates_add(struct candidates *all, const char *id, const json_t *entry, int64_t created);
void candidates_remove(struct candidates *all, const char *id);
/* Records that the host said it is here. False: its key has not been seen yet; the host counts as here once it is. */
bool candidates_here(struct candidates *all, const char *id);
/* The candidate that leads by the rules of members.c; NULL: none yet. */
struct candidate *candidates_find_leader(const struct candidates *all);

/* True if the leader admits the host to the run; otherwise `why` has the reason. `check` may be NULL. */
bool candidate_may_join(const struct candidate *leader, const struct candidate *c, cluster_check_fn *check, void *arg,
			char *why, size_t why_size);

/* Entries: {hosts, leads, joins, lease_s, about} */
bool host_id_is_good(const char *text);
bool entry_is_true(const json_t *entry, const char *name);
uint32_t entry_hosts(const json_t *entry);	/* number of hosts the run shall have; 0: not given, or invalid */
void entry_show_name(const json_t *entry, char name[HOST_NAME_BYTES]);

#endif
