/* SPDX-License-Identifier: BSD-2-Clause */
/* Framing of messages on a stream. See record.h. */
#include "common/wire/record.h"

#include <errno.h>
#include <string.h>

#include "common/wire/be.h"

void record_encode(const struct record *r, uint8_t out[RECORD_HEADER_BYTES])
{
	be_put32(out, r->bytes);
	out[4] = (uint8_t)r->kind;
	memset(out + 5, 0, 3);
	memcpy(out + 8, &r->imm, sizeof(r->imm));
}

int record_decode(const uint8_t in[RECORD_HEADER_BYTES], uint32_t bytes_max, struct record *out)
{
	out->bytes = be_get32(in);
	out->kind = (enum record_kind)in[4];
	memcpy(&out->imm, in + 8, sizeof(out->imm));
	if (in[4] < RECORD_MESSAGES || in[4] > RECORD_REJECT || in[5] || in[6] || in[7] || out->bytes > bytes_max ||
	    (out->kind == RECORD_BYE && out->bytes) || (out->kind != RECORD_PING && out->imm))
		return -EPROTO;
	return 0;
}
