/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages in a SEND: the walk over their headers stays inside and ends, and trailers are where they should be. */
#include "common/wire/msg.h"
#include "tests/fuzz/input.h"

#define SEED 0x5eed

static void whole(const uint8_t *send, uint32_t n)
{
	struct msg_header h, again_h;
	uint8_t again[MSG_HEADER_BYTES];

	if (msg_decode(send, n, &h))
		return;
	assert(h.length == n && msg_decode_at(send, n, 0, &again_h) == 0);
	msg_encode(&h, again);
	assert(memcmp(again, send, sizeof(again)) == 0);
}

/* Checks the SUM as it is, and a correct one. */
static void sums(const struct msg_header *h, uint8_t *message)
{
	uint32_t summed = h->length - (h->flags & MSG_FLAG_TAG ? MSG_TAG_BYTES : 0);

	if (!(h->flags & MSG_FLAG_SUM))
		return;
	(void)msg_is_intact(SEED, message, summed);
	msg_seal(SEED, message, summed);
	assert(msg_is_intact(SEED, message, summed));
	assert(!msg_is_intact(SEED + 1, message, summed));
}

static void push(const struct msg_header *h, uint8_t *message)
{
	uint8_t again[MSG_HEADER_BYTES + MSG_PUSH_BYTES];
	struct msg_push p;

	if (h->type != MSG_PUSH)
		return;
	msg_get_push(message, &p);
	msg_put_push(&p, again);
	assert(memcmp(again + MSG_HEADER_BYTES, message + MSG_HEADER_BYTES, MSG_PUSH_BYTES) == 0);
}

static void tags(const struct msg_header *h, uint8_t *message)
{
	uint8_t keys[2][2 * MSG_TAG_KEY_BYTES] = { { 1, 2, 3 }, { 1, 2, 3 } };
	struct msg_tags *client, *server;

	if (!(h->flags & MSG_FLAG_TAG))
		return;
	assert(msg_tags_new(keys[0], true, &client) == 0 && msg_tags_new(keys[1], false, &server) == 0);
	assert(msg_tag_write(client, message, h->length) == 0);
	assert(msg_tag_check(server, message, h->length));
	/* A tag is valid only once. */
	assert(!msg_tag_check(server, message, h->length));
	msg_tags_free(client);
	msg_tags_free(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *send = input_copy(data, n);
	struct msg_header h;
	uint32_t at = 0;

	whole(send, (uint32_t)n);
	while (at == 0 || at < n) {
		if (msg_decode_at(send, (uint32_t)n, at, &h))
			break;
		assert(h.length >= MSG_HEADER_BYTES + msg_trailer_bytes(h.flags) && h.length <= n - at);
		sums(&h, send + at);
		push(&h, send + at);
		tags(&h, send + at);
		at += h.length;
	}
	free(send);
	return 0;
}
