/* SPDX-License-Identifier: BSD-2-Clause */
/* Header of every message on an established RDMA connection but pings (docs/protocol.md, "Messages").
 *
 *   offset size
 *        0    1  type (enum msg_type)
 *        1    1  flags (enum msg_flag)
 *        2    2  credits the sender returns
 *        4    4  length of the whole message, header included
 *        8    8  sequence, chosen by the client and returned unchanged
 * All fields are big-endian. A SEND holds one message, or several DATA, one behind the other. Pure; any thread.
 */
#ifndef RAMPART_COMMON_MSG_H
#define RAMPART_COMMON_MSG_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/hot.h"
#include "common/wire/be.h"
#include "common/wire/msg_tag.h"

#define MSG_HEADER_BYTES 16
#define MSG_SUM_BYTES 4
#define MSG_JOINED_MAX 64	/* messages in one SEND: bounds what it takes to handle it */
#define MSG_PUSH_BYTES 20

enum msg_type {
	MSG_ECHO = 1,	/* client to server: send this back */
	MSG_REPLY = 2,	/* server to client: what came, type and credits changed */
	MSG_DATA = 3,	/* client to server, one way: no reply; a CREDIT returns its credit */
	MSG_CREDIT = 4,	/* server to client: header only; credits of all SENDs of DATA handled, the last one's sequence */
	MSG_PUSH = 5,	/* client to server: WRITE a part of the region to the window (struct msg_push) */
	MSG_PUSHED = 6,	/* server to client: header only; the data is in the window */
	MSG_GOODBYE = 7,	/* server to client: header only; it will close, and the sequence is the enum refuse_code that
				 * says why. What the client sent already is still answered */
};

enum msg_flag {
	MSG_FLAG_ACK = 1 << 0,	/* DATA, the last of its SEND: answer with a CREDIT when it was handled */
	MSG_FLAG_SUM = 1 << 1,	/* the last 4 bytes, before the tag, are a checksum (msg_sum) of what is before them */
	MSG_FLAG_TAG = 1 << 2,	/* the last 16 bytes are a tag (msg_tag.h) */
};

struct msg_header {
	enum msg_type type;
	uint8_t flags;
	uint16_t credits;
	uint32_t length;
	uint64_t sequence;
};

/* What a PUSH asks for: its payload.
 *
 *   offset size
 *       16    8  offset in the region
 *       24    8  offset in the window
 *       32    4  bytes, at least 1
 */
struct msg_push {
	uint64_t region_offset, window_offset;
	uint32_t bytes;
};

/* What a server sends behind a PUSHED over a socket: byte i is this, of the PUSH's sequence (docs/protocol.md). */
static inline uint8_t msg_pushed_byte(uint64_t sequence, uint32_t i)
{
	return (uint8_t)(sequence + i);
}

static inline void msg_encode(const struct msg_header *h, uint8_t *p)
{
	p[0] = (uint8_t)h->type;
	p[1] = h->flags;
	be_put16(p + 2, h->credits);
	be_put32(p + 4, h->length);
	be_put64(p + 8, h->sequence);
}

/* Bytes at a message's end that are not its payload. */
static inline uint32_t msg_trailer_bytes(uint8_t flags)
{
	return (flags & MSG_FLAG_SUM ? MSG_SUM_BYTES : 0u) + (flags & MSG_FLAG_TAG ? MSG_TAG_BYTES : 0u);
}

/* Decodes the header of a message that has at most `left` bytes. Returns as msg_decode does. */
static HOT_INLINE int msg_decode_header(const uint8_t *p, uint32_t left, struct msg_header *out)
{
	/* Flags that a message of each type may have. */
	static const uint8_t flags_of[] = {
		[MSG_ECHO] = MSG_FLAG_SUM | MSG_FLAG_TAG,
		[MSG_REPLY] = MSG_FLAG_SUM | MSG_FLAG_TAG,
		[MSG_DATA] = MSG_FLAG_ACK | MSG_FLAG_SUM | MSG_FLAG_TAG,
		[MSG_CREDIT] = MSG_FLAG_TAG,
		[MSG_PUSH] = MSG_FLAG_TAG,
		[MSG_PUSHED] = MSG_FLAG_TAG,
		[MSG_GOODBYE] = MSG_FLAG_TAG,
	};

	if (left < MSG_HEADER_BYTES || p[0] < MSG_ECHO || p[0] > MSG_GOODBYE || (p[1] & ~flags_of[p[0]]))
		return -EPROTO;
	out->type = (enum msg_type)p[0];
	out->flags = p[1];
	out->credits = be_get16(p + 2);
	out->length = be_get32(p + 4);
	out->sequence = be_get64(p + 8);
	if (out->type == MSG_PUSH && out->length != MSG_HEADER_BYTES + MSG_PUSH_BYTES + msg_trailer_bytes(out->flags))
		return -EPROTO;
	return out->length >= MSG_HEADER_BYTES + msg_trailer_bytes(out->flags) && out->length <= left ? 0 : -EPROTO;
}

/* Decodes the header of a message of `received` bytes. Returns 0, or -EPROTO when the message is
 * too short, has an unknown type or flag, a flag that does not go with its type or size, or a length that is
 * not `received`, or not a PUSH's if it is one. */
__attribute__((warn_unused_result))
static HOT_INLINE int msg_decode(const uint8_t *p, uint32_t received, struct msg_header *out)
{
	int ret = msg_decode_header(p, received, out);

	return ret || out->length == received ? ret : -EPROTO;
}

/* Decodes the header of the message at `offset` of a SEND of `received` bytes: 0, or where the one before ended, and
 * less than `received` but for an empty SEND. Returns 0, or -EPROTO when that message is as above, its length is more
 * than what is left, or it cannot stand there: of several each must be DATA, and only the last may have MSG_FLAG_ACK. */
__attribute__((warn_unused_result))
static HOT_INLINE int msg_decode_at(const uint8_t *p, uint32_t received, uint32_t offset, struct msg_header *out)
{
	uint32_t left = received - offset;
	int ret = msg_decode_header(p + offset, left, out);

	if (ret || out->length == received)
		return ret;
	return out->type == MSG_DATA && (out->length == left || !(out->flags & MSG_FLAG_ACK)) ? 0 : -EPROTO;
}

/* The payload behind a PUSH's header, which is `p`. */
void msg_put_push(const struct msg_push *push, uint8_t *p);
/* Of a message that msg_decode took. Its bounds are not checked. */
void msg_get_push(const uint8_t *p, struct msg_push *out);

/* CRC-32 (ISO 3309, zlib's) over the connection's session id and `bytes` bytes: a message that ends up at
 * another connection does not pass. `seed` is msg_sum_seed of the session id. */
uint32_t msg_sum_seed(const uint8_t *session, uint32_t session_bytes);
uint32_t msg_sum(uint32_t seed, const uint8_t *p, uint32_t bytes);
/* Writes the checksum into the last MSG_SUM_BYTES of `bytes`, which are those before the tag; header and payload are
 * complete. `bytes` is at least MSG_HEADER_BYTES + MSG_SUM_BYTES: nothing here checks that. */
void msg_seal(uint32_t seed, uint8_t *p, uint32_t bytes);
/* Of a message that msg_decode took and that has MSG_FLAG_SUM; `bytes` are those before the tag. */
bool msg_is_intact(uint32_t seed, const uint8_t *p, uint32_t bytes);

#endif
