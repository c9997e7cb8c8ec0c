/* SPDX-License-Identifier: BSD-2-Clause */
/* The leader's account of barriers: which hosts have arrived at each, and the notes that they left. No I/O, no clock.
 * Its input may be hostile. Not tied to a thread. */
#ifndef RAMPART_LOADGEN_CLUSTER_BARRIERS_H
#define RAMPART_LOADGEN_CLUSTER_BARRIERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/cluster/cluster.h"

#define BARRIERS_KEPT		16	/* full barriers whose notes are kept */
#define BARRIERS_OF_HOST_MAX	32	/* barriers at which one host may wait at a time */
#define BARRIERS_HOST_BYTES	(96u << 20)	/* memory for one host at all barriers (CLUSTER_NOTE_MAX limits text) */
#define BARRIERS_BYTES		(1u << 30)	/* a run's bytes_max: memory for the notes of all hosts */
#define BARRIER_PARTS_MAX	32	/* parts of a note that does not fit into one value */

struct barriers;

int barriers_new(uint32_t hosts, size_t bytes_max, struct barriers **out) __attribute__((warn_unused_result));
void barriers_free(struct barriers *b);	/* NULL-safe */

/* True for 1 to BARRIER_NAME_MAX bytes of [a-z0-9/_-]. */
bool barrier_name_is_good(const char *name);

/* Records that a host has arrived. `note` is its packed note (value_pack); `bytes` is 0 without one. With `parts` > 0
 * the note comes in that many parts, even before the arrival. A second arrival changes nothing. Returns 0, or
 * -EINVAL	no such rank, a bad name, too many parts, or an invalid note (the host has arrived without it)
 * -EDQUOT	this host is already at BARRIERS_OF_HOST_MAX barriers; nothing has changed
 * -EFBIG	this host's notes would take more than BARRIERS_HOST_BYTES (the host has arrived without this note)
 * -ENOSPC	the notes of all hosts would take more than bytes_max (the host has arrived without this note)
 * -ENOMEM */
int barriers_arrive(struct barriers *b, const char *name, uint32_t rank, uint32_t parts, const void *note, size_t bytes)
	__attribute__((warn_unused_result));
/* Records part `part` (from 0) of a note. Returns the same as barriers_arrive. */
int barriers_part(struct barriers *b, const char *name, uint32_t rank, uint32_t part, const void *value, size_t bytes)
	__attribute__((warn_unused_result));

/* True if the host has arrived at the barrier, with its note. */
bool barriers_is_at(const struct barriers *b, const char *name, uint32_t rank);

/* The next barrier at which every host accepted by `waits_for` has arrived; each barrier is returned once. NULL: none.
 * The name is borrowed until the barrier is forgotten. */
const char *barriers_next_full(struct barriers *b, bool (*waits_for)(void *arg, uint32_t rank), void *arg);

/* The oldest barrier, if more than BARRIERS_KEPT barriers are full; else NULL. The caller must forget it, even if it is
 * not full, because hosts skip barriers when a step is cut short. The name is borrowed until then. */
const char *barriers_next_old(const struct barriers *b);

const json_t *barriers_note(const struct barriers *b, const char *name, uint32_t rank);
void barriers_forget(struct barriers *b, const char *name);

#endif
