/* SPDX-License-Identifier: BSD-2-Clause */
/* Pool of queue pairs. See qp_pool.h.
 *
 * Lists are chains of indices into the array of slots: indices are half the size of pointers, and callers hold a slot's
 * number anyway. Invariant: every slot is in use or in exactly one of the absent stack, the free stack and the heap of
 * slots in quarantine. Each path has its own rest time, so the resting slots are kept in a heap, with the one whose
 * rest ends first on top; adding or removing a slot takes log n steps (adding takes one, where all rests have the same
 * length). The map from QP number to owner holds every QP that exists; the owner of a QP that is not in use is
 * QP_POOL_NONE. The map's entries hold the owner, so that a message needs to access neither the slot nor the QP.
 */
#include "common/rdma/qp_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/rdma/ep.h"
#include "common/base/log.h"

/* Delay before the next attempt, and the next log line, after a QP could not be created ahead of demand. */
#define RETRY_NS UINT64_C(10000000000)
/* A window of this length in which no QP was taken shows which free QPs are surplus; the reserve stays. */
#define TRIM_WINDOW_NS UINT64_C(10000000000)

enum slot_state { SLOT_ABSENT, SLOT_FREE, SLOT_IN_USE, SLOT_QUARANTINE };

struct slot {
	struct ibv_qp *qp;
	uint64_t rest_ns;	/* how long the QP will rest after its use */
	uint64_t rests_since_ns;
	uint32_t owner;
	uint32_t generation;
	uint32_t cq_index;
	uint32_t next;		/* next slot in the same stack */
	enum slot_state state;
	bool reusable;
};

/* No QP has this number, because QP numbers have 24 bits. */
#define NO_QPN UINT32_MAX

struct map_entry {
	uint32_t qpn;		/* NO_QPN: an empty entry, whose owner is QP_POOL_NONE */
	uint32_t owner;
};

struct qp_pool {
	struct ep *ep;
	struct qp_pool_config cfg;
	struct slot *slots;
	uint32_t absent, free;	/* tops of stacks */
	uint32_t *resting;	/* binary heap of counts.quarantined slots, ordered by the end of their rests */
	struct map_entry *map;	/* open addressing */
	uint32_t map_mask;
	struct qp_pool_counts counts;
	uint64_t retry_at_ns;	/* no attempt to create a QP ahead of demand before this */
	uint32_t demand;	/* QPs that will be wanted soon */
	uint64_t window_end_ns;	/* end of the window that shows which free QPs are surplus */
	uint32_t free_low;	/* smallest number of free QPs in the window */
	uint64_t taken_before;	/* QPs taken before the window began */
	uint32_t surplus;	/* free QPs to destroy */
};

static uint32_t map_hash(const struct qp_pool *p, uint32_t qpn)
{
	return (qpn * UINT32_C(2654435761)) >> 7 & p->map_mask;
}

static struct map_entry *map_find(const struct qp_pool *p, uint32_t qpn)
{
	uint32_t i = map_hash(p, qpn);

	while (p->map[i].qpn != qpn && p->map[i].qpn != NO_QPN)
		i = (i + 1) & p->map_mask;
	return &p->map[i];
}

static void map_set(struct qp_pool *p, uint32_t qpn, uint32_t owner)
{
	*map_find(p, qpn) = (struct map_entry){ .qpn = qpn, .owner = owner };
}

/* Removes an entry and moves later ones of the same run back, so that no tombstones are needed. */
static void map_remove(struct qp_pool *p, uint32_t qpn)
{
	uint32_t hole = (uint32_t)(map_find(p, qpn) - p->map), i = hole;

	assert(p->map[hole].qpn == qpn);
	for (;;) {
		i = (i + 1) & p->map_mask;
		if (p->map[i].qpn == NO_QPN)
			break;
		if (((i - map_hash(p, p->map[i].qpn)) & p->map_mask) >= ((i - hole) & p->map_mask)) {
			p->map[hole] = p->map[i];
			hole = i;
		}
	}
	p->map[hole] = (struct map_entry){ .qpn = NO_QPN, .owner = QP_POOL_NONE };
}

static void free_tables(struct qp_pool *p)
{
	free(p->slots);
	free(p->map);
	free(p->resting);
	free(p);
}

int qp_pool_new(struct ep *ep, const struct qp_pool_config *cfg, struct qp_pool **out)
{
	struct qp_pool *p = calloc(1, sizeof(*p));
	uint32_t map_size = 16;

	assert(cfg->max > 0 && cfg->max <= WR_SLOT_MAX);
	if (!p)
		return -ENOMEM;
	while (map_size < cfg->max * 2)
		map_size *= 2;
	p->slots = calloc(cfg->max, sizeof(*p->slots));
	p->map = malloc(map_size * sizeof(*p->map));
	p->resting = calloc(cfg->max, sizeof(*p->resting));
	if (!p->slots || !p->map || !p->resting) {
		free_tables(p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < map_size; i++)
		p->map[i] = (struct map_entry){ .qpn = NO_QPN, .owner = QP_POOL_NONE };
	p->map_mask = map_size - 1;
	p->ep = ep;
	p->cfg = *cfg;
	for (uint32_t i = 0; i < cfg->max; i++)
		p->slots[i].next = i + 1 < cfg->max ? i + 1 : QP_POOL_NONE;
	p->free = QP_POOL_NONE;
	*out = p;
	return 0;
}

void qp_pool_free(struct qp_pool *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->cfg.max; i++)
		if (p->slots[i].qp)
			ep_qp_destroy(p->ep, p->slots[i].qp, p->slots[i].cq_index);
	free_tables(p);
}

/* Moves the QP to INIT before its connection is known. On Ethernet links that needs no more than the port, because the
 * default partition has index 0. Access rights are set with RTR. */
static int to_init(const struct qp_pool *p, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = p->cfg.init_port };

	if (!p->cfg.init_port)
		return 0;
	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* Makes a QP in an absent slot and puts it on the free list. */
static int create_one(struct qp_pool *p)
{
	uint32_t slot = p->absent;
	struct slot *s;
	int ret;

	if (slot == QP_POOL_NONE)
		return -EAGAIN;
	s = &p->slots[slot];
	ret = ep_qp_create(p->ep, &s->qp, &s->cq_index);
	if (!ret) {
		ret = to_init(p, s->qp);
		if (ret)
			ep_qp_destroy(p->ep, s->qp, s->cq_index);
	}
	if (ret) {
		s->qp = NULL;
		return ret;
	}
	p->absent = s->next;
	s->next = p->free;
	p->free = slot;
	s->state = SLOT_FREE;
	map_set(p, s->qp->qp_num, QP_POOL_NONE);
	p->counts.qps++;
	p->counts.free++;
	return 0;
}

static void destroy_one(struct qp_pool *p, uint32_t slot)
{
	struct slot *s = &p->slots[slot];

	map_remove(p, s->qp->qp_num);
	ep_qp_destroy(p->ep, s->qp, s->cq_index);
	s->qp = NULL;
	s->state = SLOT_ABSENT;
	s->next = p->absent;
	p->absent = slot;
	p->counts.qps--;
}

int qp_pool_get(struct qp_pool *p, uint32_t owner, uint32_t *out)
{
	uint32_t slot;
	struct slot *s;

	if (p->free != QP_POOL_NONE) {
		p->counts.hits++;
	} else {
		int ret = create_one(p);

		if (ret) {
			p->counts.exhausted++;
			return ret;
		}
		p->counts.misses++;
	}
	slot = p->free;
	s = &p->slots[slot];
	assert(s->state == SLOT_FREE);
	p->free = s->next;
	s->state = SLOT_IN_USE;
	s->owner = owner;
	map_set(p, s->qp->qp_num, owner);
	s->rest_ns = p->cfg.quarantine_ns;
	s->generation++;
	if (--p->counts.free < p->free_low)
		p->free_low = p->counts.free;
	if (++p->counts.in_use > p->counts.in_use_peak)
		p->counts.in_use_peak = p->counts.in_use;
	*out = slot;
	return 0;
}

void qp_pool_set_rest(struct qp_pool *p, uint32_t slot, uint64_t rest_ns)
{
	assert(slot < p->cfg.max && p->slots[slot].state == SLOT_IN_USE);
	p->slots[slot].rest_ns = rest_ns;
}

static uint64_t rest_end_ns(const struct qp_pool *p, uint32_t slot)
{
	return p->slots[slot].rests_since_ns + p->slots[slot].rest_ns;
}

static void put_to_rest(struct qp_pool *p, uint32_t slot)
{
	uint64_t end_ns = rest_end_ns(p, slot);
	uint32_t i = p->counts.quarantined++;

	while (i > 0 && rest_end_ns(p, p->resting[(i - 1) / 2]) > end_ns) {
		p->resting[i] = p->resting[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	p->resting[i] = slot;
}

/* Removes the slot whose rest ends first. */
static uint32_t take_from_rest(struct qp_pool *p)
{
	uint32_t n = --p->counts.quarantined, first = p->resting[0], last = p->resting[n], i = 0;
	uint64_t end_ns = rest_end_ns(p, last);

	for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && rest_end_ns(p, p->resting[child + 1]) < rest_end_ns(p, p->resting[child]))
			child++;
		if (rest_end_ns(p, p->resting[child]) >= end_ns)
			break;
		p->resting[i] = p->resting[child];
	}
	p->resting[i] = last;
	return first;
}

/* UINT64_MAX: no slot rests. */
static uint64_t first_rest_end_ns(const struct qp_pool *p)
{
	return p->counts.quarantined ? rest_end_ns(p, p->resting[0]) : UINT64_MAX;
}

void qp_pool_put(struct qp_pool *p, uint32_t slot, uint64_t now_ns, bool reusable)
{
	struct slot *s = &p->slots[slot];

	assert(slot < p->cfg.max && s->state == SLOT_IN_USE);
	s->state = SLOT_QUARANTINE;
	s->reusable = reusable;
	s->rests_since_ns = now_ns;
	map_set(p, s->qp->qp_num, QP_POOL_NONE);
	put_to_rest(p, slot);
	p->counts.in_use--;
}

static bool make_usable_again(struct qp_pool *p, struct slot *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return s->reusable && ibv_modify_qp(s->qp, &attr, IBV_QP_STATE) == 0 && to_init(p, s->qp) == 0;
}

static void end_quarantine(struct qp_pool *p, uint64_t now_ns)
{
	uint32_t slot = take_from_rest(p);
	struct slot *s = &p->slots[slot];

	if (make_usable_again(p, s)) {
		s->state = SLOT_FREE;
		s->next = p->free;
		p->free = slot;
		p->counts.free++;
		p->counts.recycled++;
	} else {
		destroy_one(p, slot);
	}
	if (p->cfg.on_rested)
		p->cfg.on_rested(p->cfg.arg, slot, now_ns - s->rests_since_ns);
}

static uint32_t wanted(const struct qp_pool *p)
{
	return p->cfg.reserve + p->demand;
}

/* At the end of a window, QPs that were free throughout it are surplus. */
static void judge_surplus(struct qp_pool *p, uint64_t now_ns)
{
	uint64_t taken = p->counts.hits + p->counts.misses;

	if (now_ns < p->window_end_ns)
		return;
	/* While clients are connecting, free QPs are kept for the next ones. */
	p->surplus = taken == p->taken_before && p->free_low > wanted(p) ? p->free_low - wanted(p) : 0;
	p->taken_before = taken;
	p->window_end_ns = now_ns + TRIM_WINDOW_NS;
	p->free_low = p->counts.free;
}

static void destroy_free_one(struct qp_pool *p)
{
	uint32_t slot = p->free;

	p->free = p->slots[slot].next;
	if (--p->counts.free < p->free_low)
		p->free_low = p->counts.free;
	destroy_one(p, slot);
}

bool qp_pool_maintain(struct qp_pool *p, uint64_t now_ns, unsigned budget)
{
	while (budget && first_rest_end_ns(p) <= now_ns) {
		end_quarantine(p, now_ns);
		budget--;
	}
	while (budget && p->counts.free < wanted(p) && p->absent != QP_POOL_NONE &&
	       now_ns >= p->retry_at_ns) {
		int ret = create_one(p);

		if (ret) {
			p->retry_at_ns = now_ns + RETRY_NS;
			log_warn("cannot create a queue pair ahead of demand: %s (%u exist); see the device's max_qp "
				 "and max_cq, and ulimit -l", strerror(-ret), p->counts.qps);
			return false;
		}
		budget--;
	}
	judge_surplus(p, now_ns);
	for (; budget && p->surplus && p->counts.free > wanted(p); p->surplus--, budget--)
		destroy_free_one(p);
	return budget == 0;
}

void qp_pool_expect(struct qp_pool *p, uint32_t demand)
{
	p->demand = demand;
}

uint64_t qp_pool_idle_ns(const struct qp_pool *p, uint64_t now_ns)
{
	uint64_t at = first_rest_end_ns(p);

	if (p->counts.free < wanted(p) && p->absent != QP_POOL_NONE && p->retry_at_ns < at)
		at = p->retry_at_ns;
	if (p->counts.free > wanted(p) && p->window_end_ns < at)
		at = p->surplus ? now_ns : p->window_end_ns;
	if (at == UINT64_MAX)
		return at;
	return at > now_ns ? at - now_ns : 0;
}

uint32_t qp_pool_available(const struct qp_pool *p)
{
	return p->cfg.max - p->counts.in_use - p->counts.quarantined;
}

struct ibv_qp *qp_pool_qp(const struct qp_pool *p, uint32_t slot)
{
	return p->slots[slot].qp;
}

uint32_t qp_pool_generation(const struct qp_pool *p, uint32_t slot)
{
	return p->slots[slot].generation;
}

uint32_t qp_pool_owner_of_qpn(const struct qp_pool *p, uint32_t qpn)
{
	return map_find(p, qpn)->owner;
}

uint32_t qp_pool_owner(const struct qp_pool *p, uint32_t slot, uint32_t generation)
{
	const struct slot *s;

	if (slot >= p->cfg.max)
		return QP_POOL_NONE;
	s = &p->slots[slot];
	if (s->state != SLOT_IN_USE || ((s->generation ^ generation) & WR_GENERATION_MASK))
		return QP_POOL_NONE;
	return s->owner;
}

void qp_pool_get_counts(const struct qp_pool *p, struct qp_pool_counts *out)
{
	*out = p->counts;
}
