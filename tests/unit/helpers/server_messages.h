/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to a shard on the fake device, one or several in a SEND, and what the shard posts. See server_rig.h. */
#ifndef RAMPART_TESTS_UNIT_SERVER_MESSAGES_H
#define RAMPART_TESTS_UNIT_SERVER_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rdma/ep.h"
#include "common/wire/msg.h"
#include "common/wire/msg_tag.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/server_rig.h"

/* Work requests that were posted since the peer went live. */
uint32_t n_posts(void);
const struct fake_post *post(uint32_t i);
/* The i-th is this header. */
void assert_posted(uint32_t i, enum msg_type type, uint16_t credits, uint64_t sequence);
struct ep_counts counts(void);
/* Messages that came, those of them with a checksum, and those of these that it did not fit. */
void assert_counted(uint64_t in, uint64_t checked, uint64_t corrupt);

/* Starts the server, with this one peer live. */
void start_live(struct peer *p);
/* The same with tags. Returns the peer's side of them: as it would derive them, from the same keys. */
struct msg_tags *start_tagged(struct peer *p);

/* `n` of them arrive. */
void peer_messages(struct peer *p, uint32_t n, uint32_t bytes);
/* The first `n` SENDs of the server's succeed. */
void complete_sends(struct peer *p, uint32_t n);

/* A peer that is live when a test begins, and leaves at its end. */
extern struct peer live;
int server_live_set_up(void **state);
int server_live_tear_down(void **state);
#define LIVE_TEST(f) TEST_WITH(f, server_live_set_up, server_live_tear_down)

bool deliver_data(struct peer *p, uint64_t sequence, uint8_t flags);

#define JOINED_BYTES 64

/* A SEND in the making: several messages, with their sums and, if there are keys, tags. */
struct joined {
	struct peer *peer;
	struct msg_tags *tags;		/* NULL: none */
	uint8_t data[(MSG_JOINED_MAX + 1) * 16 + JOINED_BYTES];
	uint32_t bytes, n;
};

void join_bytes(struct joined *j, enum msg_type type, uint8_t flags, uint32_t bytes);
/* JOINED_BYTES long. */
void join(struct joined *j, enum msg_type type, uint8_t flags);
void deliver_joined(struct joined *j);

#endif
