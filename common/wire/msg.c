/* SPDX-License-Identifier: BSD-2-Clause */
/* Message headers and checksums; every field from the wire is checked. No I/O. */
#include "common/wire/msg.h"

#include <zlib.h>

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

/* A reply changes type, flags and credits in the header, so the checksum covers only the bytes that stay the same. */
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
