/* SPDX-License-Identifier: BSD-2-Clause */
/* Framing of messages on a stream (docs/protocol.md, "Over a socket"): TCP and TLS connections have no boundaries, so a
 * record takes the place of RDMA's SEND.
 *
 *   offset size
 *        0    4  bytes that follow the header
 *        4    1  kind (enum record_kind)
 *        5    3  zero
 *        8    4  immediate data of a ping; else zero
 * All fields are big-endian, except the immediate data, which is sent as it is in memory. Pure; any thread.
 */
#ifndef RAMPART_COMMON_RECORD_H
#define RAMPART_COMMON_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_HEADER_BYTES 12

enum record_kind {
	RECORD_MESSAGES = 1,	/* content of a SEND: one message, or several one-way messages */
	RECORD_PING = 2,	/* content of a SEND with immediate data */
	RECORD_BYE = 3,		/* empty: the sender is done, and the other end closes the connection */
	/* Only allowed as the first record of each end on a separate TCP connection. */
	RECORD_PROOF = 4,	/* private data of REQ or REP (auth.h) */
	RECORD_REJECT = 5,	/* private data of REJ */
};

struct record {
	enum record_kind kind;
	uint32_t bytes;
	uint32_t imm;		/* RECORD_PING only, as it is in memory */
};

void record_encode(const struct record *r, uint8_t out[RECORD_HEADER_BYTES]);
/* Returns 0, or -EPROTO: unknown kind, more than `bytes_max` bytes, a BYE with bytes, or a reserved field not zero. */
int record_decode(const uint8_t in[RECORD_HEADER_BYTES], uint32_t bytes_max, struct record *out)
	__attribute__((warn_unused_result));

#endif
