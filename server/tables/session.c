/* SPDX-License-Identifier: BSD-2-Clause */
/* Table of granted sessions: a chained hash in arrays that are allocated once. An id is 128 random bits, so its first
 * bytes serve as the hash, and lookup times tell a peer that guesses ids nothing. */
#include "server/tables/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/be.h"

struct entry {
	uint8_t id[FRAME_SESSION_BYTES];
	uint32_t next;
	bool takes_qp;
};

#define STALE_MAX 64

struct session_table {
	uint32_t *heads;
	uint32_t mask;
	uint32_t count, qps;	/* sessions; and those that will take a queue pair */
	struct entry *entries;	/* indexed by connection */
	uint8_t stale[STALE_MAX][FRAME_SESSION_BYTES];	/* ring */
	uint64_t n_stale;	/* number noted so far */
};

int session_table_new(uint32_t max, struct session_table **out)
{
	struct session_table *t = calloc(1, sizeof(*t));
	uint32_t heads = 16;

	while (heads < max)
		heads *= 2;
	if (!t)
		return -ENOMEM;
	t->heads = malloc(heads * sizeof(*t->heads));
	t->entries = calloc(max, sizeof(*t->entries));
	if (!t->heads || !t->entries) {
		session_table_free(t);
		return -ENOMEM;
	}
	memset(t->heads, 0xff, heads * sizeof(*t->heads));
	t->mask = heads - 1;
	*out = t;
	return 0;
}

void session_table_free(struct session_table *t)
{
	if (!t)
		return;
	free(t->heads);
	free(t->entries);
	free(t);
}

static uint32_t *head_of(struct session_table *t, const uint8_t *id)
{
	return &t->heads[be_get32(id) & t->mask];
}

void session_put(struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES], uint32_t conn, bool takes_qp)
{
	uint32_t *head = head_of(t, id);

	memcpy(t->entries[conn].id, id, FRAME_SESSION_BYTES);
	t->entries[conn].next = *head;
	t->entries[conn].takes_qp = takes_qp;
	*head = conn;
	t->count++;
	t->qps += takes_qp;
}

uint32_t session_take(struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES])
{
	uint32_t *link = head_of(t, id);

	while (*link != SESSION_NONE) {
		struct entry *e = &t->entries[*link];

		if (memcmp(e->id, id, FRAME_SESSION_BYTES) == 0) {
			uint32_t conn = *link;

			*link = e->next;
			t->count--;
			t->qps -= e->takes_qp;
			return conn;
		}
		link = &e->next;
	}
	return SESSION_NONE;
}

void session_note_stale(struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES])
{
	memcpy(t->stale[t->n_stale++ % STALE_MAX], id, FRAME_SESSION_BYTES);
}

bool session_is_stale(const struct session_table *t, const uint8_t id[FRAME_SESSION_BYTES])
{
	for (uint64_t i = 0; i < t->n_stale && i < STALE_MAX; i++)
		if (memcmp(t->stale[i], id, FRAME_SESSION_BYTES) == 0)
			return true;
	return false;
}

uint32_t session_count(const struct session_table *t)
{
	return t->count;
}

uint32_t session_qps(const struct session_table *t)
{
	return t->qps;
}
