/* SPDX-License-Identifier: BSD-2-Clause */
/* See message.h. */
#include "loadgen/traffic/message.h"

#include <errno.h>
#include <sys/param.h>

#include "client/client.h"
#include "common/wire/msg.h"
#include "loadgen/traffic/payload.h"

void message_needs(const struct loadgen_config *c, struct workload_needs *out)
{
	/* A client's first message consists of header and tag only, and must fit too. */
	out->message_bytes = (uint32_t)MAX(c->message_bytes, MSG_HEADER_BYTES + MSG_TAG_BYTES);
	out->credits = (uint32_t)c->inflight;
}

uint64_t message_sequence(const struct traffic *t, const struct wclient *wc, uint64_t number)
{
	uint64_t id = (uint64_t)t->worker << 20 | (uint64_t)wc->index;

	return id << 32 | (number & UINT32_MAX);
}

uint32_t message_payload_bytes(const struct traffic *t, uint32_t offset)
{
	uint32_t around = offset + (t->cfg->message_auth ? MSG_TAG_BYTES : 0);

	return t->bytes > around ? (uint32_t)t->bytes - around : 0;
}

uint32_t message_buffer(struct traffic *t, struct wclient *wc)
{
	uint32_t buf = ep_buf_get(t->ep);

	if (buf == EP_NO_BUF)
		client_fail(wc->conn, FAIL_ERRNO, ENOBUFS);
	return buf;
}

void message_fill(struct traffic *t, const struct wclient *wc, uint64_t number, uint8_t *message, uint32_t offset)
{
	if (t->cfg->verify)
		payload_fill(t->memory.payload, traffic_pattern(t, wc, number), message + offset,
			     message_payload_bytes(t, offset));
}

uint32_t message_make(struct traffic *t, struct wclient *wc, uint64_t number, uint32_t offset)
{
	uint32_t buf = message_buffer(t, wc);

	if (buf != EP_NO_BUF)
		message_fill(t, wc, number, ep_buf(t->ep, buf), offset);
	return buf;
}

void message_check(struct traffic *t, const struct wclient *wc, uint64_t number, const uint8_t *data, uint32_t bytes)
{
	if (t->cfg->verify)
		traffic_checked(t, payload_is(t->memory.payload, traffic_pattern(t, wc, number), data, bytes));
}
