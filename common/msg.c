/* Decoding of message headers; every field from the wire is checked. No I/O. */
#include "common/msg.h"

#include <errno.h>

int msg_decode(const uint8_t *p, uint32_t received, struct msg_header *out)
{
	if (received < MSG_HEADER_BYTES)
		return -EPROTO;
	if ((p[0] != MSG_ECHO && p[0] != MSG_REPLY) || p[1] != 0)
		return -EPROTO;
	out->type = (enum msg_type)p[0];
	out->credits = be_get16(p + 2);
	out->length = be_get32(p + 4);
	out->sequence = be_get64(p + 8);
	return out->length == received ? 0 : -EPROTO;
}
