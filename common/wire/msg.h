/* SPDX-License-Identifier: BSD-2-Clause */
/* Header of every message except pings on an established RDMA connection (docs/protocol.md, "Messages").
 *
 *   offset size
 *        0    1  type (enum msg_type)
 *        1    1  flags (enum msg_flag)
 *        2    2  credits the sender returns
 *        4    4  length of the whole message, header included
 *        8    8  sequence, chosen by the client and returned unchanged
 * All fields are big-endian. A SEND holds one message, or several DATA in sequence. Pure; any thread.
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
#define MSG_JOINED_MAX 64	/* maximum number of messages in one SEND: bounds the work for it */
#define MSG_PUSH_BYTES 20
#define MSG_PROOF_BYTES (MSG_HEADER_BYTES + 32)	/* a whole PROOF: header and AUTH_HMAC_BYTES */

enum msg_type {
	MSG_ECHO = 1,	/* client to server: send this back */
	MSG_REPLY = 2,	/* server to client: the ECHO with type and credits changed */
	MSG_DATA = 3,	/* client to server, one way: no reply; a CREDIT returns its credit */
	MSG_CREDIT = 4,	/* server to client: header only; credits of all SENDs of DATA handled, and the last sequence */
	MSG_PUSH = 5,	/* client to server: WRITE a part of the region to the window (struct msg_push) */
	MSG_PUSHED = 6,	/* server to client: header only; the data is in the window */
	/* Header only; the sequence is an enum refuse_code. Server to client: the server will close, for that reason,
	 * but still answers what the client has sent. Without rdmacm also from an end that leaves, with 0, and back. */
	MSG_GOODBYE = 7,
	MSG_PROOF = 8,	/* without rdmacm, the first message in each direction: header and HMAC (auth.h) */
};

enum msg_flag {
	MSG_FLAG_ACK = 1 << 0,	/* on the last DATA of a SEND: answer with a CREDIT when the SEND was handled */
	MSG_FLAG_SUM = 1 << 1,	/* the last 4 bytes before the tag are a checksum (msg_sum) of the bytes before them */
	MSG_FLAG_TAG = 1 << 2,	/* the last 16 bytes are a tag (msg_tag.h) */
};

struct msg_header {
	enum msg_type type;
	uint8_t flags;
	uint16_t credits;
	uint32_t length;
	uint64_t sequence;
};

/* Payload of a PUSH, which asks for a WRITE from the region to the window.
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

/* Byte `i` of what a server sends behind a PUSHED over a socket, for the PUSH's sequence (docs/protocol.md). */
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

/* Number of bytes at a message's end that are not payload. */
static inline uint32_t msg_trailer_bytes(uint8_t flags)
{
	return (flags & MSG_FLAG_SUM ? MSG_SUM_BYTES : 0u) + (flags & MSG_FLAG_TAG ? MSG_TAG_BYTES : 0u);
}

/* Decodes the header of a message that has at most `left` bytes. Returns as msg_decode. */
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
		[MSG_PROOF] = 0,
	};

	if (left < MSG_HEADER_BYTES || p[0] < MSG_ECHO || p[0] > MSG_PROOF || (p[1] & ~flags_of[p[0]]))
		return -EPROTO;
	out->type = (enum msg_type)p[0];
	out->flags = p[1];
	out->credits = be_get16(p + 2);
	out->length = be_get32(p + 4);
	out->sequence = be_get64(p + 8);
	if (out->type == MSG_PROOF && out->length != MSG_PROOF_BYTES)
		return -EPROTO;
	if (out->type == MSG_PUSH && out->length != MSG_HEADER_BYTES + MSG_PUSH_BYTES + msg_trailer_bytes(out->flags))
		return -EPROTO;
	return out->length >= MSG_HEADER_BYTES + msg_trailer_bytes(out->flags) && out->length <= left ? 0 : -EPROTO;
}

/* Decodes the header of a message of `received` bytes. Returns 0, or -EPROTO if the message is too short, has an
 * unknown type or flag, a flag that its type or size does not allow, or a length other than `received` or, for a PUSH
 * or a PROOF, other than theirs. */
__attribute__((warn_unused_result))
static HOT_INLINE int msg_decode(const uint8_t *p, uint32_t received, struct msg_header *out)
{
	int ret = msg_decode_header(p, received, out);

	return ret || out->length == received ? ret : -EPROTO;
}

/* Decodes the header of the message at `offset` in a SEND of `received` bytes: 0 or the end of the previous message,
 * and below `received` except in an empty SEND. Returns 0, or -EPROTO if the message is invalid as above, longer than
 * the rest, or not allowed here: of several messages each must be DATA, and only the last may have MSG_FLAG_ACK. */
__attribute__((warn_unused_result))
static HOT_INLINE int msg_decode_at(const uint8_t *p, uint32_t received, uint32_t offset, struct msg_header *out)
{
	uint32_t left = received - offset;
	int ret = msg_decode_header(p + offset, left, out);

	if (ret || out->length == received)
		return ret;
	return out->type == MSG_DATA && (out->length == left || !(out->flags & MSG_FLAG_ACK)) ? 0 : -EPROTO;
}

/* Writes a PUSH's payload behind its header, which starts at `p`. */
void msg_put_push(const struct msg_push *push, uint8_t *p);
/* Reads the payload of a PUSH that msg_decode accepted. Does not check the bounds in it. */
void msg_get_push(const uint8_t *p, struct msg_push *out);

/* CRC-32 (ISO 3309, zlib's) over the connection's session id and `bytes` bytes, so that a message delivered to the
 * wrong connection fails the check. `seed` is msg_sum_seed of the session id. */
uint32_t msg_sum_seed(const uint8_t *session, uint32_t session_bytes);
uint32_t msg_sum(uint32_t seed, const uint8_t *p, uint32_t bytes);
/* Writes the checksum into the last MSG_SUM_BYTES of the `bytes` before the tag; header and payload must be complete.
 * `bytes` must be at least MSG_HEADER_BYTES + MSG_SUM_BYTES, which is not checked here. */
void msg_seal(uint32_t seed, uint8_t *p, uint32_t bytes);
/* True if the checksum is right. The message has MSG_FLAG_SUM and passed msg_decode; `bytes` are those before the
 * tag. */
bool msg_is_intact(uint32_t seed, const uint8_t *p, uint32_t bytes);

#endif
