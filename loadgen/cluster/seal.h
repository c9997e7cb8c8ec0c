/* SPDX-License-Identifier: BSD-2-Clause */
/* The seal of a run as JSON: its hosts by rank, {uuid, lease_s, hosts[{id, created, name}]}. What is read may be anything. Pure. */
#ifndef RAMPART_LOADGEN_CLUSTER_SEAL_H
#define RAMPART_LOADGEN_CLUSTER_SEAL_H

#include "loadgen/cluster/candidates.h"

#define RUN_UUID_BYTES	(MEMBERS_ID_LEN + 1)

struct sealed_host {
	char id[MEMBERS_ID_LEN + 1];
	int64_t created;
	char name[HOST_NAME_BYTES];
	json_t *about;		/* NULL: not known */
	bool lost, left, put_out;
};

/* Adds a host to the array `hosts` of a seal. */
void seal_add(json_t *hosts, const struct candidate *c);

/* The hosts of a seal, *count of them, which the caller frees, and its UUID. NULL: it is none, or memory is short; nothing is changed. */
struct sealed_host *seal_read(const json_t *seal, char uuid[RUN_UUID_BYTES], uint32_t *count);

#endif
