/* SPDX-License-Identifier: BSD-2-Clause */
/* The leader's account of barriers: which hosts have arrived at each, and the notes that they left. No I/O, no clock.
 * What comes in may be hostile. Owning thread: whoever calls. */
#ifndef RAMPART_LOADGEN_CLUSTER_BARRIERS_H
#define RAMPART_LOADGEN_CLUSTER_BARRIERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/cluster/cluster.h"

#define BARRIERS_KEPT		16	/* that were full */
#define BARRIERS_OF_HOST_MAX	32	/* that one host has arrived at and that are kept */
#define BARRIERS_HOST_BYTES	(96u << 20)	/* of memory, for what one host left at all of them (CLUSTER_NOTE_MAX is of text) */
#define BARRIERS_BYTES		(1u << 30)	/* for what all hosts left: bytes_max of a run */
#define BARRIER_PARTS_MAX	32	/* of a note that does not fit into one value */

struct barriers;

int barriers_new(uint32_t hosts, size_t bytes_max, struct barriers **out) __attribute__((warn_unused_result));
void barriers_free(struct barriers *b);	/* NULL-safe */

/* True for 1 to BARRIER_NAME_MAX bytes of [a-z0-9/_-]. */
bool barrier_name_is_good(const char *name);

/* A host has arrived. `note` is its note as bytes (value_pack), `bytes` 0 for none; or it comes in `parts` parts, which may have
 * come before. A second arrival changes nothing. Returns 0, or
 * -EINVAL	no such rank, a bad name, too many parts, or a note that is none (the host has arrived without it)
 * -EDQUOT	this host is at BARRIERS_OF_HOST_MAX others; nothing has changed
 * -EFBIG	what it leaves would take more than BARRIERS_HOST_BYTES (the host has arrived without it)
 * -ENOSPC	the same for all hosts and bytes_max
 * -ENOMEM */
int barriers_arrive(struct barriers *b, const char *name, uint32_t rank, uint32_t parts, const void *note, size_t bytes)
	__attribute__((warn_unused_result));
/* Part `part` (from 0) of a note. Returns what barriers_arrive does. */
int barriers_part(struct barriers *b, const char *name, uint32_t rank, uint32_t part, const void *value, size_t bytes)
	__attribute__((warn_unused_result));

/* True if the host has arrived at the barrier, with its note. */
bool barriers_is_at(const struct barriers *b, const char *name, uint32_t rank);

/* A barrier at which every host is that `waits_for` names, and that was not returned before; NULL: none. Borrowed until it is
 * forgotten. */
const char *barriers_next_full(struct barriers *b, bool (*waits_for)(void *arg, uint32_t rank), void *arg);

/* A barrier to forget: one that was full and BARRIERS_KEPT later ones too, or one that is older than such a one (hosts skip barriers
 * when a step is cut short). NULL: none. Borrowed until it is forgotten. */
const char *barriers_next_old(const struct barriers *b);

const json_t *barriers_note(const struct barriers *b, const char *name, uint32_t rank);
void barriers_forget(struct barriers *b, const char *name);

#endif
