/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a workload: their memory, numbers and payloads. Owning thread: the worker's. */
#ifndef RAMPART_LOADGEN_MESSAGE_H
#define RAMPART_LOADGEN_MESSAGE_H

#include <stdint.h>

#include "loadgen/traffic/traffic.h"

/* Implements struct workload's `needs` for workloads whose operations are messages of the run's size. */
void message_needs(const struct loadgen_config *c, struct workload_needs *out);

/* The sequence number in a message. No two clients of a run send the same number. */
uint64_t message_sequence(const struct traffic *t, const struct wclient *wc, uint64_t number);

/* Gets a buffer to send from. EP_NO_BUF: none was free, and the connection has been failed. */
uint32_t message_buffer(struct traffic *t, struct wclient *wc);
/* Gets a buffer for a message of the run's size; with --verify, the payload is filled in from byte `offset` on.
 * EP_NO_BUF: none was free, and the connection has been failed. */
uint32_t message_make(struct traffic *t, struct wclient *wc, uint64_t number, uint32_t offset);
/* With --verify: writes the payload of the run's message at `message`, from byte `offset` on. */
void message_fill(struct traffic *t, const struct wclient *wc, uint64_t number, uint8_t *message, uint32_t offset);
/* Bytes of payload in a message of the run's size: from `offset` to its tag, if it has one. */
uint32_t message_payload_bytes(const struct traffic *t, uint32_t offset);
/* With --verify: checks that the data are the payload of operation `number`, and counts the result. */
void message_check(struct traffic *t, const struct wclient *wc, uint64_t number, const uint8_t *data, uint32_t bytes);

#endif
