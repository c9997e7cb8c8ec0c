/* SPDX-License-Identifier: BSD-2-Clause */
/* Framing of messages on a stream (docs/protocol.md, "Over a socket"): a TCP or TLS connection has no boundaries, so what a
 * SEND is over RDMA is a record there.
 *
 *   offset size
 *        0    4  bytes that follow the header
 *        4    1  kind (enum record_kind)
 *        5    3  zero
 *        8    4  immediate data of a ping; else zero
 * All fields are big-endian, but for the immediate data, which goes as it is in memory. Pure; any thread.
 */
#ifndef RAMPART_COMMON_RECORD_H
#define RAMPART_COMMON_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_HEADER_BYTES 12

enum record_kind {
	RECORD_MESSAGES = 1,	/* what a SEND holds: one message, or several one-way messages */
	RECORD_PING = 2,	/* what a SEND with immediate data holds */
	RECORD_BYE = 3,		/* nothing: the sender wants to leave, and the other end closes the connection */
	/* The first record of each end on a TCP connection of its own; later they are not allowed. */
	RECORD_PROOF = 4,	/* private data of REQ or REP (auth.h) */
	RECORD_REJECT = 5,	/* private data of REJ */
};

struct record {
	enum record_kind kind;
	uint32_t bytes;
	uint32_t imm;		/* of RECORD_PING, as it is in memory */
};

void record_encode(const struct record *r, uint8_t out[RECORD_HEADER_BYTES]);
/* 0; -EPROTO: an unknown kind, more than `bytes_max` bytes, a BYE with bytes, or a field that has to be zero and is not. */
int record_decode(const uint8_t in[RECORD_HEADER_BYTES], uint32_t bytes_max, struct record *out)
	__attribute__((warn_unused_result));

#endif
