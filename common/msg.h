/* Header of every message on an established RDMA connection (docs/protocol.md, "Messages").
 *
 *   offset size
 *        0    1  type (enum msg_type)
 *        1    1  flags, must be 0 in version 1
 *        2    2  credits the sender returns
 *        4    4  length of the whole message, header included; equals the received length
 *        8    8  sequence, chosen by the client and returned unchanged
 * All fields are big-endian. Pure; any thread.
 */
#ifndef RAMPART_COMMON_MSG_H
#define RAMPART_COMMON_MSG_H

#include <stdint.h>

#include "common/be.h"

#define MSG_HEADER_BYTES 16

enum msg_type {
	MSG_ECHO = 1,	/* client to server: send this back */
	MSG_REPLY = 2,	/* server to client: what came, type and credits changed */
};

struct msg_header {
	enum msg_type type;
	uint16_t credits;
	uint32_t length;
	uint64_t sequence;
};

static inline void msg_encode(const struct msg_header *h, uint8_t *p)
{
	p[0] = (uint8_t)h->type;
	p[1] = 0;
	be_put16(p + 2, h->credits);
	be_put32(p + 4, h->length);
	be_put64(p + 8, h->sequence);
}

/* Decodes the header of a message of `received` bytes. Returns 0, or -EPROTO when the message is
 * too short, has an unknown type, flags or a length that is not `received`. */
int msg_decode(const uint8_t *p, uint32_t received, struct msg_header *out)
	__attribute__((warn_unused_result));

#endif
