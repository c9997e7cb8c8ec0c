/* SPDX-License-Identifier: BSD-2-Clause */
/* Misbehaviour with one-sided memory: accesses out of bounds, with wrong keys, and to regions of other clients; and a
 * client that checks whether others have changed its region. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "tests/adversary/link.h"

#define PATTERN 0x5a
#define PROBE_BYTES 64u

static struct frame_hello hello_with_region(void)
{
	struct frame_hello h = wire_good_hello();

	h.features = FRAME_FEATURE_REGION;
	return h;
}

/* Connects with a region of its own. */
static bool open_region(struct rogue *r, struct link *l)
{
	struct frame_hello h = hello_with_region();

	if (link_new(r, l))
		return false;
	if (link_connect(l, &h))
		return true;
	link_free(l);
	return false;
}

static int say(int status)
{
	return status == LINK_NO_WC ? no_answer("no completion") : answer("wc: %s", link_wc_name(status));
}

struct aim {
	enum ibv_wr_opcode opcode;
	bool from_end;		/* the offset counts from the region's end */
	int offset;
	uint32_t bytes;
	uint32_t key_change;	/* added to the region's key */
};

static const struct aim aims[] = {
	[0] = { IBV_WR_RDMA_READ, false, 0, 4096, 0 },
	[1] = { IBV_WR_RDMA_READ, true, -8, 16, 0 },
	[2] = { IBV_WR_RDMA_WRITE, true, -8, 16, 0 },
	[3] = { IBV_WR_RDMA_READ, false, -8, 16, 0 },
	[4] = { IBV_WR_RDMA_WRITE, false, -8, 16, 0 },
	[5] = { IBV_WR_RDMA_READ, true, 0, 1, 0 },
	[6] = { IBV_WR_RDMA_READ, false, 0, 16, 1 },
	[7] = { IBV_WR_RDMA_READ, false, 0, 16, 0x100 },
	[8] = { IBV_WR_RDMA_READ, false, 0, 8192, 0 },
	[9] = { IBV_WR_ATOMIC_FETCH_AND_ADD, true, -8, 8, 0 },
	[10] = { IBV_WR_ATOMIC_FETCH_AND_ADD, true, 0, 8, 0 },
	[11] = { IBV_WR_ATOMIC_FETCH_AND_ADD, false, 4, 8, 0 },
};

static int own(struct rogue *r, const struct mode *m)
{
	static uint8_t data[LINK_BUF_BYTES];
	const struct aim *a = &aims[m->variant];
	struct link l;
	uint64_t addr;
	int status;

	if (!open_region(r, &l))
		return ROGUE_NO_ANSWER;
	addr = l.grant.region_addr + (a->from_end ? l.grant.region_bytes : 0) + (uint64_t)(int64_t)a->offset;
	status = link_one_sided(&l, a->opcode, data, a->bytes, addr, l.grant.region_rkey + a->key_change);
	link_free(&l);
	/* Soft-RoCE may drop an unaligned atomic without a completion. */
	return status == LINK_NO_WC && a->offset % 8 > 0 ? answer("no completion") : say(status);
}

/* Connects an owner and an intruder. After the intruder's request the owner's data must be unchanged. variant: the
 * opcode; bit 8: the intruder has no region of its own. */
static int intrude(struct rogue *r, const struct mode *m)
{
	enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)(m->variant & 0xff);
	struct frame_hello h = m->variant & 0x100 ? wire_good_hello() : hello_with_region();
	uint8_t mine[PROBE_BYTES], theirs[PROBE_BYTES] = { 0 };
	struct link owner, intruder;
	const struct frame_grant *g = &owner.grant;
	int status = LINK_NO_WC;
	bool intact = false;

	memset(mine, PATTERN, sizeof(mine));
	if (!open_region(r, &owner))
		return ROGUE_NO_ANSWER;
	if (link_new(r, &intruder) || !link_connect(&intruder, &h))
		return no_answer("no second connection");
	if (link_one_sided(&owner, IBV_WR_RDMA_WRITE, mine, sizeof(mine), g->region_addr,
			   g->region_rkey) == IBV_WC_SUCCESS) {
		status = link_one_sided(&intruder, opcode, theirs, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 :
					sizeof(theirs), g->region_addr, g->region_rkey);
		memset(mine, 0, sizeof(mine));
		intact = link_one_sided(&owner, IBV_WR_RDMA_READ, mine, sizeof(mine), g->region_addr,
					g->region_rkey) == IBV_WC_SUCCESS;
		for (size_t i = 0; i < sizeof(mine); i++)
			intact = intact && mine[i] == PATTERN && theirs[i] != PATTERN;
	}
	link_free(&intruder);
	link_free(&owner);
	return answer("wc: %s, the owner's data is %s", link_wc_name(status), intact ? "safe" : "not safe");
}

/* WRITEs to its own region with immediate data, which uses up a receive, then wakes the server with an echo. */
static int immediate(struct rogue *r, const struct mode *m)
{
	uint8_t data[PROBE_BYTES] = { 0 };
	struct link l;
	int status;

	(void)m;
	if (!open_region(r, &l))
		return ROGUE_NO_ANSWER;
	status = link_one_sided(&l, IBV_WR_RDMA_WRITE_WITH_IMM, data, sizeof(data), l.grant.region_addr,
				l.grant.region_rkey);
	status = status == IBV_WC_SUCCESS && link_echo(&l, PROBE_BYTES) && link_wait(&l, link_has_ended) ?
		 link_answer(&l) : say(status);
	link_free(&l);
	return status;
}

/* Opens ARG connections in turn, each of which READs from another client's region with a guessed key. */
static int guess_keys(struct rogue *r, const struct mode *m)
{
	int n = r->arg ? atoi(r->arg) : 16, refused = 0;
	uint8_t data[PROBE_BYTES];
	struct link owner, intruder;

	(void)m;
	memset(data, PATTERN, sizeof(data));
	if (!open_region(r, &owner) || link_one_sided(&owner, IBV_WR_RDMA_WRITE, data, sizeof(data),
						      owner.grant.region_addr, owner.grant.region_rkey))
		return no_answer("no region with data");
	for (int i = 0; i < n && open_region(r, &intruder); i++) {
		/* Guess close to the right key: on Soft-RoCE a key is an index and 8 random bits. */
		refused += link_one_sided(&intruder, IBV_WR_RDMA_READ, data, sizeof(data), owner.grant.region_addr,
					  owner.grant.region_rkey ^ (uint32_t)(i & 0xff)) == IBV_WC_REM_ACCESS_ERR;
		link_free(&intruder);
	}
	link_free(&owner);
	return answer("%d of %d refused: remote_access", refused, n);
}

/* The owner writes to its region and leaves; then another connection reads with the old key. */
static int left(struct rogue *r, const struct mode *m)
{
	uint8_t data[PROBE_BYTES];
	struct link owner, intruder;
	struct frame_grant g;
	int status;
	bool done;

	(void)m;
	memset(data, PATTERN, sizeof(data));
	if (!open_region(r, &owner))
		return ROGUE_NO_ANSWER;
	g = owner.grant;
	done = link_one_sided(&owner, IBV_WR_RDMA_WRITE, data, sizeof(data), g.region_addr,
			      g.region_rkey) == IBV_WC_SUCCESS && link_disconnect(&owner);
	link_free(&owner);
	if (!done || !open_region(r, &intruder))
		return no_answer("the owner did not come and go");
	status = link_one_sided(&intruder, IBV_WR_RDMA_READ, data, sizeof(data), g.region_addr,
				g.region_rkey);
	link_free(&intruder);
	return say(status);
}

/* The next owner of the memory must not see any of the previous owner's data. */
static int zeroed(struct rogue *r, const struct mode *m)
{
	static uint8_t data[4096];
	struct link l;
	uint64_t before;
	uint32_t bytes;
	bool done;

	(void)m;
	memset(data, PATTERN, sizeof(data));
	if (!open_region(r, &l))
		return ROGUE_NO_ANSWER;
	before = l.grant.region_addr;
	bytes = l.grant.region_bytes < sizeof(data) ? l.grant.region_bytes : sizeof(data);
	done = link_one_sided(&l, IBV_WR_RDMA_WRITE, data, bytes, before, l.grant.region_rkey) ==
	       IBV_WC_SUCCESS && link_disconnect(&l);
	link_free(&l);
	if (!done || !open_region(r, &l))
		return no_answer("the first owner did not come and go");
	done = link_one_sided(&l, IBV_WR_RDMA_READ, data, bytes, l.grant.region_addr,
			      l.grant.region_rkey) == IBV_WC_SUCCESS;
	for (uint32_t i = 0; i < bytes; i++)
		done = done && data[i] == 0;
	before -= l.grant.region_addr;
	link_free(&l);
	return answer("%s memory, %s", before ? "other" : "the same", done ? "all zero" : "NOT ZERO");
}

#define CANARY_LOOKS_NS (200 * (long)NS_PER_MS)

/* The pattern: each byte differs from its neighbours, and each page from the next. */
static uint8_t canary_byte(uint32_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) * 7 + 1);
}

/* Writes the pattern to the whole region, or reads the region and counts wrong bytes. False if a request failed. */
static bool canary_pass(struct link *l, enum ibv_wr_opcode opcode, uint32_t *differ)
{
	static uint8_t data[LINK_BUF_BYTES];
	uint32_t bytes = l->grant.region_bytes;

	for (uint32_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < sizeof(data) ? bytes - at : (uint32_t)sizeof(data);
		for (uint32_t i = 0; i < n; i++)
			data[i] = canary_byte(at + i);
		if (link_one_sided(l, opcode, data, n, l->grant.region_addr + at,
				   l->grant.region_rkey) != IBV_WC_SUCCESS)
			return false;
		for (uint32_t i = 0; i < n; i++)
			*differ += data[i] != canary_byte(at + i);
	}
	return true;
}

/* Fills its own region and checks it again and again until SIGUSR1 comes. */
static int canary(struct rogue *r, const struct mode *m)
{
	const struct timespec pause = { .tv_nsec = CANARY_LOOKS_NS };
	uint32_t differ = 0, looks = 0;
	sigset_t signals;
	struct link l;
	bool goes_on;

	(void)m;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) || !open_region(r, &l))
		return no_answer("no region");
	goes_on = canary_pass(&l, IBV_WR_RDMA_WRITE, &differ);
	answer("%u bytes", l.grant.region_bytes);
	while (goes_on && sigtimedwait(&signals, NULL, &pause) < 0) {
		goes_on = canary_pass(&l, IBV_WR_RDMA_READ, &differ);
		looks++;
	}
	if (goes_on)
		answer("%u looks, %u bytes differ", looks, differ);
	else
		no_answer("a request failed after %u looks", looks);
	link_disconnect(&l);
	link_free(&l);
	return goes_on && !differ ? ROGUE_ANSWERED : ROGUE_NO_ANSWER;
}

const struct mode region_modes[] = {
	{ "region-own", .run = own, .variant = 0 },
	{ "region-read-over-end", .run = own, .variant = 1 },
	{ "region-write-over-end", .run = own, .variant = 2 },
	{ "region-read-before", .run = own, .variant = 3 },
	{ "region-write-before", .run = own, .variant = 4 },
	{ "region-read-at-end", .run = own, .variant = 5 },
	{ "region-key-plus-1", .run = own, .variant = 6 },
	{ "region-key-of-next", .run = own, .variant = 7 },
	{ "region-read-too-much", .run = own, .variant = 8 },
	{ "region-atomic", .run = own, .variant = 9 },
	{ "region-atomic-at-end", .run = own, .variant = 10 },
	{ "region-atomic-unaligned", .run = own, .variant = 11 },
	{ "region-read-other", .run = intrude, .variant = IBV_WR_RDMA_READ },
	{ "region-write-other", .run = intrude, .variant = IBV_WR_RDMA_WRITE },
	{ "region-atomic-other", .run = intrude, .variant = IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "region-read-without", .run = intrude, .variant = IBV_WR_RDMA_READ | 0x100 },
	{ "region-write-without", .run = intrude, .variant = IBV_WR_RDMA_WRITE | 0x100 },
	{ "region-immediate", .run = immediate },
	{ "region-immediate-other", .run = intrude, .variant = IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "region-immediate-without", .run = intrude, .variant = IBV_WR_RDMA_WRITE_WITH_IMM | 0x100 },
	{ "region-guess", .run = guess_keys },
	{ "region-left", .run = left },
	{ "region-zeroed", .run = zeroed },
	{ "canary", .run = canary },
	{ NULL },
};
