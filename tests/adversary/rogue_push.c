/* SPDX-License-Identifier: BSD-2-Clause */
/* Misbehaviour with pushes: makes the server WRITE to another client's bytes, or to an address without memory. */
#include <stdio.h>
#include <string.h>

#include "common/rdma/arena.h"
#include "common/rdma/ep.h"
#include "common/wire/msg.h"
#include "tests/adversary/link.h"

#define PATTERN 0x3c
#define DATA_BYTES 64u
#define WINDOW_BYTES 4096u

enum kind {
	OWN, REGION_END, REGION_FAR, WINDOW_END, WINDOW_FAR, NOTHING, TOO_MUCH, WRONG_KEY, OUTSIDE_MEMORY, NO_WINDOW,
	CUT, FLOOD,
};

static void send_push(struct link *l, const struct msg_push *push, uint32_t bytes)
{
	struct msg_header h = { .type = MSG_PUSH, .length = bytes, .sequence = 1 };
	uint8_t data[MSG_HEADER_BYTES + MSG_PUSH_BYTES];

	msg_encode(&h, data);
	msg_put_push(push, data);
	(void)!link_send(l, data, bytes);
}

static struct frame_hello hello_of(enum kind kind, const struct arena *window)
{
	struct frame_hello h = wire_good_hello();

	h.features = FRAME_FEATURE_REGION;
	if (kind == NO_WINDOW)
		return h;
	h.features |= FRAME_FEATURE_WINDOW;
	h.window = (struct frame_window){ (uintptr_t)arena_at(window, 0), WINDOW_BYTES, arena_rkey(window, 0) };
	if (kind == WRONG_KEY)
		h.window.rkey += 0x100;
	if (kind == OUTSIDE_MEMORY)
		h.window.bytes += 2 * WINDOW_BYTES;
	return h;
}

static struct msg_push push_of(enum kind kind, const struct frame_grant *g)
{
	struct msg_push p = { 0, 0, DATA_BYTES };

	switch (kind) {
	case REGION_END: p.region_offset = g->region_bytes - DATA_BYTES + 1; break;
	case REGION_FAR: p.region_offset = UINT64_MAX - 7; break;
	case WINDOW_END: p.window_offset = WINDOW_BYTES - DATA_BYTES + 1; break;
	case WINDOW_FAR: p.window_offset = UINT64_MAX - 7; break;
	case NOTHING: p.bytes = 0; break;
	case TOO_MUCH: p.bytes = UINT32_MAX; break;
	case OUTSIDE_MEMORY: p.window_offset = 2 * WINDOW_BYTES; break;
	case OWN:
	case WRONG_KEY:
	case NO_WINDOW:
	case CUT:
	case FLOOD: break;
	}
	return p;
}

static bool has_answer(const struct link *l)
{
	return l->received > 0 || link_has_ended(l);
}

static int say(struct link *l, const uint8_t *window)
{
	bool there = true;

	if (l->received == 0 || link_has_ended(l))
		return link_answer(l);
	for (uint32_t i = 0; i < DATA_BYTES; i++)
		there = there && window[i] == PATTERN;
	return answer("%s, the data is %s", l->last[0] == MSG_PUSHED ? "pushed" : "another answer",
		      there ? "there" : "not there");
}

static int ask(struct link *l, enum kind kind, const struct arena *window)
{
	struct frame_hello h = hello_of(kind, window);
	uint8_t data[DATA_BYTES];
	struct msg_push push;

	memset(data, PATTERN, sizeof(data));
	if (!link_connect(l, &h))
		return ROGUE_NO_ANSWER;
	if (link_one_sided(l, IBV_WR_RDMA_WRITE, data, sizeof(data), l->grant.region_addr, l->grant.region_rkey) !=
	    IBV_WC_SUCCESS)
		return no_answer("the region takes nothing");
	push = push_of(kind, &l->grant);
	for (unsigned i = 0; i < (kind == FLOOD ? LINK_MESSAGES_MAX : 1); i++)
		send_push(l, &push, MSG_HEADER_BYTES + (kind == CUT ? 0 : MSG_PUSH_BYTES));
	link_wait(l, kind == FLOOD ? link_has_ended : has_answer);
	return say(l, arena_at(window, 0));
}

static int pushes(struct rogue *r, const struct mode *m)
{
	struct arena *window = NULL;
	struct link l;
	char err[256];
	int status = ROGUE_NO_ANSWER;

	if (link_new(r, &l))
		return ROGUE_NO_ANSWER;
	if (arena_new(l.ep, WINDOW_BYTES, true, &window, err, sizeof(err)) == 0)
		status = ask(&l, (enum kind)m->variant, window);
	arena_free(window);
	link_free(&l);
	return status;
}

const struct mode push_modes[] = {
	{ "push-own", .run = pushes, .variant = OWN },
	{ "push-over-region-end", .run = pushes, .variant = REGION_END },
	{ "push-far-from-region", .run = pushes, .variant = REGION_FAR },
	{ "push-over-window-end", .run = pushes, .variant = WINDOW_END },
	{ "push-far-from-window", .run = pushes, .variant = WINDOW_FAR },
	{ "push-nothing", .run = pushes, .variant = NOTHING },
	{ "push-too-much", .run = pushes, .variant = TOO_MUCH },
	{ "push-wrong-key", .run = pushes, .variant = WRONG_KEY },
	{ "push-outside-memory", .run = pushes, .variant = OUTSIDE_MEMORY },
	{ "push-without-window", .run = pushes, .variant = NO_WINDOW },
	{ "push-cut", .run = pushes, .variant = CUT },
	{ "push-credits", .run = pushes, .variant = FLOOD },
	{ NULL },
};
