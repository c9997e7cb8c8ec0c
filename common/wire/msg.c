/* Message headers and checksums; every field from the wire is checked. No I/O. */
#include "common/wire/msg.h"

#include <errno.h>
#include <zlib.h>

/* Flags that a message of this type may have. */
static uint8_t flags_of(uint8_t type)
{
	switch (type) {
	case MSG_ECHO:
	case MSG_REPLY: return MSG_FLAG_SUM | MSG_FLAG_TAG;
	case MSG_DATA: return MSG_FLAG_ACK | MSG_FLAG_SUM | MSG_FLAG_TAG;
	default: return MSG_FLAG_TAG;
	}
}

/* Decodes the header of a message that has at most `left` bytes. */
static int decode(const uint8_t *p, uint32_t left, struct msg_header *out)
{
	if (left < MSG_HEADER_BYTES)
		return -EPROTO;
	if (p[0] < MSG_ECHO || p[0] > MSG_GOODBYE || (p[1] & ~flags_of(p[0])))
		return -EPROTO;
	out->type = (enum msg_type)p[0];
	out->flags = p[1];
	out->credits = be_get16(p + 2);
	out->length = be_get32(p + 4);
	out->sequence = be_get64(p + 8);
	if (out->type == MSG_PUSH && out->length != MSG_HEADER_BYTES + MSG_PUSH_BYTES + msg_trailer_bytes(p[1]))
		return -EPROTO;
	return out->length >= MSG_HEADER_BYTES + msg_trailer_bytes(p[1]) && out->length <= left ? 0 : -EPROTO;
}

int msg_decode(const uint8_t *p, uint32_t received, struct msg_header *out)
{
	int ret = decode(p, received, out);

	return ret || out->length == received ? ret : -EPROTO;
}

int msg_decode_at(const uint8_t *p, uint32_t received, uint32_t offset, struct msg_header *out)
{
	uint32_t left = received - offset;
	int ret = decode(p + offset, left, out);

	if (ret || out->length == received)
		return ret;
	return out->type == MSG_DATA && (out->length == left || !(out->flags & MSG_FLAG_ACK)) ? 0 : -EPROTO;
}

void msg_put_push(const struct msg_push *push, uint8_t *p)
{
	be_put64(p + MSG_HEADER_BYTES, push->region_offset);
	be_put64(p + MSG_HEADER_BYTES + 8, push->window_offset);
	be_put32(p + MSG_HEADER_BYTES + 16, push->bytes);
}

void msg_get_push(const uint8_t *p, struct msg_push *out)
{
	out->region_offset = be_get64(p + MSG_HEADER_BYTES);
	out->window_offset = be_get64(p + MSG_HEADER_BYTES + 8);
	out->bytes = be_get32(p + MSG_HEADER_BYTES + 16);
}

uint32_t msg_sum_seed(const uint8_t *session, uint32_t session_bytes)
{
	return (uint32_t)crc32(0, session, session_bytes);
}

uint32_t msg_sum(uint32_t seed, const uint8_t *p, uint32_t bytes)
{
	return (uint32_t)crc32(seed, p, bytes);
}

/* The server changes type, flags and credits of the header in a reply, so the checksum covers only what it leaves alone. */
static uint32_t sum_of(uint32_t seed, const uint8_t *p, uint32_t bytes)
{
	return msg_sum(seed, p + 4, bytes - 4 - MSG_SUM_BYTES);
}

void msg_seal(uint32_t seed, uint8_t *p, uint32_t bytes)
{
	be_put32(p + bytes - MSG_SUM_BYTES, sum_of(seed, p, bytes));
}

bool msg_is_intact(uint32_t seed, const uint8_t *p, uint32_t bytes)
{
	return be_get32(p + bytes - MSG_SUM_BYTES) == sum_of(seed, p, bytes);
}
