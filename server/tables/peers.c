/* SPDX-License-Identifier: BSD-2-Clause */
/* A chained hash of addresses, and for each kind and count a list of the addresses that hold that many. Counts change
 * by one, so an address moves to a neighbouring list, and the highest count is known without a search. Addresses with
 * waiting sockets are also listed by their number of TLS connections. See peers.h. */
#include "server/tables/peers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/wire/auth.h"

TAILQ_HEAD(hold_list, peer_hold);
TAILQ_HEAD(peer_list, peer);

/* The holds of one kind that an address has. */
struct share {
	uint32_t n;
	struct hold_list holds;		/* the oldest first */
	TAILQ_ENTRY(peer) rank;		/* in by_count[n] of its kind; in no list if n is 0 */
};

struct peer {
	uint64_t network;
	uint64_t progress_ns;
	TAILQ_ENTRY(peer) link;		/* in its chain, or in the free list */
	TAILQ_ENTRY(peer) turn;		/* in `turns`, while a socket of the address waits */
	struct share shares[PEERS_KIND_N];
};

struct ranks {
	struct peer_list *by_count;	/* [n]: addresses that hold n */
	uint32_t most;			/* the highest n that an address holds; 0: nothing is held */
};

struct peers {
	pthread_mutex_t lock;
	uint64_t key[2];
	uint32_t bits;			/* 2^bits chains */
	struct peer_list *chains, free;
	struct peer *all;
	uint32_t max, used;		/* entries of `all`; the first `used` were used at least once */
	struct ranks ranks[PEERS_KIND_N];
	struct peer_list *turns;	/* [n]: addresses with waiting sockets and n PEERS_TLS */
	uint32_t least;			/* every list of `turns` below this one is empty */
};

/* The lists are zero, so that those never used take no memory. TAILQ_EMPTY and TAILQ_FOREACH find such a list empty;
 * list_of makes it ready for insertion. */
static struct peer_list *lists_new(size_t n)
{
	return calloc(n, sizeof(struct peer_list));
}

static struct peer_list *list_of(struct peer_list *l)
{
	if (!l->tqh_last)
		TAILQ_INIT(l);
	return l;
}

static int make_table(struct peers *p, uint32_t max)
{
	bool all = true;

	while ((UINT32_C(1) << p->bits) < max)
		p->bits++;
	p->chains = lists_new((size_t)1 << p->bits);
	p->all = calloc(max, sizeof(*p->all));
	for (int k = 0; k < PEERS_KIND_N; k++) {
		p->ranks[k].by_count = lists_new((size_t)max + 1);
		all = all && p->ranks[k].by_count;
	}
	p->turns = lists_new((size_t)max + 1);
	if (!all || !p->chains || !p->all || !p->turns)
		return -ENOMEM;
	TAILQ_INIT(&p->free);
	p->max = max;
	return auth_random(NULL, (uint8_t *)p->key, sizeof(p->key)) ? -EIO : 0;
}

int peers_new(uint32_t max, struct peers **out)
{
	struct peers *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->bits = 4;
	ret = make_table(p, max);
	if (ret)
		peers_free(p);
	else
		*out = p;
	return ret;
}

void peers_free(struct peers *p)
{
	if (!p)
		return;
	for (int k = 0; k < PEERS_KIND_N; k++)
		free(p->ranks[k].by_count);
	free(p->turns);
	free(p->all);
	free(p->chains);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Multiplies by secret numbers and shifts: addresses share a chain only by chance (Dietzfelbinger et al., 1997). */
static struct peer_list *chain_of(const struct peers *p, uint64_t network)
{
	return &p->chains[(network ^ network >> 32 ^ p->key[0]) * (p->key[1] | 1) >> (64 - p->bits)];
}

static struct peer *peer_find(const struct peers *p, uint64_t network)
{
	struct peer *x;

	TAILQ_FOREACH(x, chain_of(p, network), link)
		if (x->network == network)
			return x;
	return NULL;
}

/* Returns a free entry, or NULL if none is free. Prefers one that was used before, so that entries never used take no
 * memory. */
static struct peer *find_free_entry(struct peers *p)
{
	if (TAILQ_EMPTY(&p->free) && p->used < p->max) {
		struct peer *x = &p->all[p->used++];

		for (int k = 0; k < PEERS_KIND_N; k++)
			TAILQ_INIT(&x->shares[k].holds);
		TAILQ_INSERT_TAIL(&p->free, x, link);
	}
	return TAILQ_FIRST(&p->free);
}

/* Returns the entry of the address, a new one if it holds nothing yet. NULL: no entry is free. */
static struct peer *peer_enter(struct peers *p, uint64_t network)
{
	struct peer *x = peer_find(p, network);

	if (x)
		return x;
	x = find_free_entry(p);
	if (!x)
		return NULL;
	TAILQ_REMOVE(&p->free, x, link);
	x->network = network;
	x->progress_ns = 0;
	TAILQ_INSERT_TAIL(list_of(chain_of(p, network)), x, link);
	return x;
}

static void leave_if_empty(struct peers *p, struct peer *x)
{
	for (int k = 0; k < PEERS_KIND_N; k++)
		if (x->shares[k].n)
			return;
	TAILQ_REMOVE(chain_of(p, x->network), x, link);
	TAILQ_INSERT_HEAD(&p->free, x, link);
}

static void leave_turns(struct peers *p, struct peer *x)
{
	if (x->shares[PEERS_WAITING].n)
		TAILQ_REMOVE(&p->turns[x->shares[PEERS_TLS].n], x, turn);
}

static void enter_turns(struct peers *p, struct peer *x)
{
	uint32_t n = x->shares[PEERS_TLS].n;

	if (!x->shares[PEERS_WAITING].n)
		return;
	TAILQ_INSERT_TAIL(list_of(&p->turns[n]), x, turn);
	if (n < p->least)
		p->least = n;
}

/* Moves the address to the list of the addresses that hold `n`. */
static void set_rank(struct peers *p, enum peers_kind kind, struct peer *x, uint32_t n)
{
	struct ranks *r = &p->ranks[kind];
	struct share *s = &x->shares[kind];
	bool turns = kind == PEERS_TLS || (kind == PEERS_WAITING && !n != !s->n);

	if (turns)
		leave_turns(p, x);
	if (s->n)
		TAILQ_REMOVE(&r->by_count[s->n], x, shares[kind].rank);
	if (n)
		TAILQ_INSERT_TAIL(list_of(&r->by_count[n]), x, shares[kind].rank);
	s->n = n;
	if (turns)
		enter_turns(p, x);
	if (n > r->most)
		r->most = n;
	else if (r->most && TAILQ_EMPTY(&r->by_count[r->most]))
		r->most--;
}

bool peers_take(struct peers *p, enum peers_kind kind, uint64_t network, struct peer_hold *h, uint32_t most)
{
	struct peer *x;
	bool taken = false;

	pthread_mutex_lock(&p->lock);
	x = peer_enter(p, network);
	if (x && x->shares[kind].n < most) {
		h->peer = x;
		TAILQ_INSERT_TAIL(&x->shares[kind].holds, h, entry);
		set_rank(p, kind, x, x->shares[kind].n + 1);
		taken = true;
	} else if (x) {
		leave_if_empty(p, x);
	}
	pthread_mutex_unlock(&p->lock);
	return taken;
}

void peers_give(struct peers *p, enum peers_kind kind, struct peer_hold *h)
{
	struct peer *x = h->peer;

	if (!x)
		return;
	pthread_mutex_lock(&p->lock);
	h->peer = NULL;
	TAILQ_REMOVE(&x->shares[kind].holds, h, entry);
	set_rank(p, kind, x, x->shares[kind].n - 1);
	leave_if_empty(p, x);
	pthread_mutex_unlock(&p->lock);
}

uint32_t peers_count(struct peers *p, enum peers_kind kind, uint64_t network)
{
	const struct peer *x;
	uint32_t n;

	pthread_mutex_lock(&p->lock);
	x = peer_find(p, network);
	n = x ? x->shares[kind].n : 0;
	pthread_mutex_unlock(&p->lock);
	return n;
}

uint32_t peers_most(const struct peers *p, enum peers_kind kind)
{
	return p->ranks[kind].most;
}

bool peers_has_most(const struct peers *p, enum peers_kind kind, const struct peer_hold *h)
{
	return h->peer && h->peer->shares[kind].n == p->ranks[kind].most;
}

struct peer_hold *peers_oldest(const struct peers *p, enum peers_kind kind)
{
	const struct ranks *r = &p->ranks[kind];

	return r->most ? TAILQ_FIRST(&TAILQ_FIRST(&r->by_count[r->most])->shares[kind].holds) : NULL;
}

struct peer_hold *peers_youngest(const struct peers *p, enum peers_kind kind)
{
	const struct ranks *r = &p->ranks[kind];

	return r->most ? TAILQ_LAST(&TAILQ_LAST(&r->by_count[r->most], peer_list)->shares[kind].holds, hold_list) :
		NULL;
}

void peers_rejuvenate(struct peers *p, enum peers_kind kind, struct peer_hold *h)
{
	struct peer *x = h->peer;
	struct share *s = &x->shares[kind];

	TAILQ_REMOVE(&s->holds, h, entry);
	TAILQ_INSERT_TAIL(&s->holds, h, entry);
	TAILQ_REMOVE(&p->ranks[kind].by_count[s->n], x, shares[kind].rank);
	TAILQ_INSERT_TAIL(&p->ranks[kind].by_count[s->n], x, shares[kind].rank);
}

struct peer_hold *peers_next(struct peers *p)
{
	if (!p->ranks[PEERS_WAITING].most)
		return NULL;
	while (TAILQ_EMPTY(&p->turns[p->least]))
		p->least++;
	return TAILQ_FIRST(&TAILQ_FIRST(&p->turns[p->least])->shares[PEERS_WAITING].holds);
}

void peers_note_progress(struct peers *p, uint64_t network, uint64_t now_ns)
{
	struct peer *x = peer_find(p, network);

	if (x)
		x->progress_ns = now_ns;
}

uint64_t peers_progress_ns(struct peers *p, uint64_t network)
{
	const struct peer *x = peer_find(p, network);

	return x ? x->progress_ns : 0;
}
