/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/barriers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "loadgen/cluster/cluster.h"
#include "loadgen/cluster/value.h"

#define PART_BYTES_MAX (1024 * 1024)

struct arrival {
	bool arrived;		/* the host has arrived, with its whole note if it has one */
	bool said;		/* the host wrote its arrival key; parts of its note may be missing */
	uint32_t parts, parts_here;
	void *part[BARRIER_PARTS_MAX];
	size_t bytes[BARRIER_PARTS_MAX];
	json_t *note;
	size_t memory;		/* memory that the parts and the note take */
};

struct barrier {
	TAILQ_ENTRY(barrier) next;
	char name[BARRIER_NAME_MAX + 1];
	bool full;		/* barriers_next_full has returned it */
	struct arrival *of[];	/* by rank; NULL: nothing has come from that host yet */
};

struct use {			/* what one host's arrivals and notes take */
	uint32_t barriers;
	size_t memory;
};

struct barriers {
	uint32_t hosts, full;
	size_t bytes_max;
	size_t memory;		/* memory that all hosts use */
	TAILQ_HEAD(, barrier) all;	/* in the order in which the first host arrived */
	struct use use[];	/* by rank */
};

bool barrier_name_is_good(const char *name)
{
	size_t n = strlen(name);

	return n >= 1 && n <= BARRIER_NAME_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789/_-") == n;
}

int barriers_new(uint32_t hosts, size_t bytes_max, struct barriers **out)
{
	struct barriers *b = calloc(1, sizeof(*b) + hosts * sizeof(b->use[0]));

	if (!b)
		return -ENOMEM;
	b->hosts = hosts;
	b->bytes_max = bytes_max;
	TAILQ_INIT(&b->all);
	*out = b;
	return 0;
}

static void give_memory(struct barriers *b, uint32_t rank, struct arrival *a, size_t n)
{
	a->memory -= n;
	b->use[rank].memory -= n;
	b->memory -= n;
}

static int take_memory(struct barriers *b, uint32_t rank, struct arrival *a, size_t n)
{
	if (n > BARRIERS_HOST_BYTES || b->use[rank].memory + n > BARRIERS_HOST_BYTES)
		return -EFBIG;
	if (b->memory + n > b->bytes_max)
		return -ENOSPC;
	a->memory += n;
	b->use[rank].memory += n;
	b->memory += n;
	return 0;
}

static void drop_parts(struct barriers *b, uint32_t rank, struct arrival *a)
{
	for (uint32_t i = 0; i < BARRIER_PARTS_MAX; i++) {
		if (a->part[i])
			give_memory(b, rank, a, a->bytes[i]);
		free(a->part[i]);
		a->part[i] = NULL;
	}
}

static void free_arrival(struct barriers *b, uint32_t rank, struct arrival *a)
{
	drop_parts(b, rank, a);
	give_memory(b, rank, a, a->memory);
	b->use[rank].barriers--;
	json_decref(a->note);
	free(a);
}

static void free_barrier(struct barriers *b, struct barrier *one)
{
	for (uint32_t rank = 0; rank < b->hosts; rank++)
		if (one->of[rank])
			free_arrival(b, rank, one->of[rank]);
	TAILQ_REMOVE(&b->all, one, next);
	b->full -= one->full;
	free(one);
}

void barriers_free(struct barriers *b)
{
	if (!b)
		return;
	while (!TAILQ_EMPTY(&b->all))
		free_barrier(b, TAILQ_FIRST(&b->all));
	free(b);
}

static struct barrier *barrier_find(const struct barriers *b, const char *name)
{
	struct barrier *one;

	TAILQ_FOREACH(one, &b->all, next)
		if (!strcmp(one->name, name))
			return one;
	return NULL;
}

static int arrival_take(struct barriers *b, const char *name, uint32_t rank, struct arrival **out)
{
	struct barrier *one;

	if (rank >= b->hosts || !barrier_name_is_good(name))
		return -EINVAL;
	one = barrier_find(b, name);
	if (one && one->of[rank]) {
		*out = one->of[rank];
		return 0;
	}
	if (b->use[rank].barriers >= BARRIERS_OF_HOST_MAX)
		return -EDQUOT;
	*out = calloc(1, sizeof(struct arrival));
	if (!*out)
		return -ENOMEM;
	if (!one) {
		one = calloc(1, sizeof(*one) + b->hosts * sizeof(one->of[0]));
		if (!one) {
			free(*out);
			return -ENOMEM;
		}
		memcpy(one->name, name, strlen(name));
		TAILQ_INSERT_TAIL(&b->all, one, next);
	}
	one->of[rank] = *out;
	b->use[rank].barriers++;
	return 0;
}

static int read_note(struct barriers *b, uint32_t rank, struct arrival *a, const void *note, size_t bytes)
{
	size_t memory;
	int rc;

	a->note = value_unpack(note, bytes, CLUSTER_NOTE_MAX, BARRIERS_HOST_BYTES, &memory);
	rc = !a->note && memory <= BARRIERS_HOST_BYTES ? -EINVAL : take_memory(b, rank, a, memory);
	if (rc) {
		json_decref(a->note);
		a->note = NULL;
	}
	return rc;
}

/* Joins the parts into the note once all of them are here. */
static int join_parts(struct barriers *b, uint32_t rank, struct arrival *a)
{
	size_t size = 0, at = 0;
	char *whole;
	int rc;

	if (!a->said || a->arrived || a->parts_here < a->parts)
		return 0;
	for (uint32_t i = 0; i < a->parts; i++) {
		if (!a->part[i])
			return 0;
		size += a->bytes[i];
	}
	a->arrived = true;
	whole = malloc(size + 1);
	for (uint32_t i = 0; whole && i < a->parts; i++) {
		memcpy(whole + at, a->part[i], a->bytes[i]);
		at += a->bytes[i];
	}
	drop_parts(b, rank, a);
	rc = whole ? read_note(b, rank, a, whole, size) : -ENOMEM;
	free(whole);
	return rc;
}

int barriers_arrive(struct barriers *b, const char *name, uint32_t rank, uint32_t parts, const void *note, size_t bytes)
{
	struct arrival *a;
	int rc = arrival_take(b, name, rank, &a);

	if (rc)
		return rc;
	if (a->said)
		return 0;
	a->said = true;
	if (parts && parts <= BARRIER_PARTS_MAX) {
		a->parts = parts;
		return join_parts(b, rank, a);
	}
	a->arrived = true;
	drop_parts(b, rank, a);
	if (parts)
		return -EINVAL;
	return bytes ? read_note(b, rank, a, note, bytes) : 0;
}

int barriers_part(struct barriers *b, const char *name, uint32_t rank, uint32_t part, const void *value, size_t bytes)
{
	struct arrival *a;
	int rc;

	if (part >= BARRIER_PARTS_MAX || bytes > PART_BYTES_MAX)
		return -EINVAL;
	rc = arrival_take(b, name, rank, &a);
	if (rc || a->arrived || a->part[part])
		return rc;
	rc = take_memory(b, rank, a, bytes);
	if (rc)
		return rc;
	a->part[part] = malloc(bytes + 1);
	if (!a->part[part]) {
		give_memory(b, rank, a, bytes);
		return -ENOMEM;
	}
	memcpy(a->part[part], value, bytes);
	a->bytes[part] = bytes;
	a->parts_here++;
	return join_parts(b, rank, a);
}

bool barriers_is_at(const struct barriers *b, const char *name, uint32_t rank)
{
	const struct barrier *one = barrier_find(b, name);

	return one && rank < b->hosts && one->of[rank] && one->of[rank]->arrived;
}

const char *barriers_next_full(struct barriers *b, bool (*waits_for)(void *arg, uint32_t rank), void *arg)
{
	struct barrier *one;

	TAILQ_FOREACH(one, &b->all, next) {
		uint32_t rank = 0;

		while (rank < b->hosts && ((one->of[rank] && one->of[rank]->arrived) || !waits_for(arg, rank)))
			rank++;
		if (one->full || rank < b->hosts)
			continue;
		one->full = true;
		b->full++;
		return one->name;
	}
	return NULL;
}

const char *barriers_next_old(const struct barriers *b)
{
	return b->full > BARRIERS_KEPT ? TAILQ_FIRST(&b->all)->name : NULL;
}

const json_t *barriers_note(const struct barriers *b, const char *name, uint32_t rank)
{
	const struct barrier *one = barrier_find(b, name);

	return one && rank < b->hosts && one->of[rank] ? one->of[rank]->note : NULL;
}

void barriers_forget(struct barriers *b, const char *name)
{
	struct barrier *one = barrier_find(b, name);

	if (one)
		free_barrier(b, one);
}
