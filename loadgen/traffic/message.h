/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a workload: what they need, their numbers and payloads. Owning thread: the worker's. */
#ifndef RAMPART_LOADGEN_MESSAGE_H
#define RAMPART_LOADGEN_MESSAGE_H

#include <stdint.h>

#include "loadgen/traffic/traffic.h"

/* struct workload's needs, where operations are messages of the run's size. */
void message_needs(const struct loadgen_config *c, struct workload_needs *out);

/* The number that a message carries. No two clients of a run send the same. */
uint64_t message_sequence(const struct traffic *t, const struct wclient *wc, uint64_t number);

/* A buffer to send from. EP_NO_BUF: none is free, and the connection has failed. */
uint32_t message_buffer(struct traffic *t, struct wclient *wc);
/* A buffer for a message of the run's size, with its payload from byte `offset` on if it is to be verified. EP_NO_BUF:
 * none is free, and the connection has failed. */
uint32_t message_make(struct traffic *t, struct wclient *wc, uint64_t number, uint32_t offset);
/* With --verify: writes the payload of the run's message at `message`, from byte `offset` on. */
void message_fill(struct traffic *t, const struct wclient *wc, uint64_t number, uint8_t *message, uint32_t offset);
/* Bytes of payload in a message of the run's size: from `offset` to its tag, if it has one. */
uint32_t message_payload_bytes(const struct traffic *t, uint32_t offset);
/* With --verify: counts whether the data are the payload of operation `number`. */
void message_check(struct traffic *t, const struct wclient *wc, uint64_t number, const uint8_t *data, uint32_t bytes);

#endif
