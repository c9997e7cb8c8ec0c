/* SPDX-License-Identifier: BSD-2-Clause */
/* Verifiable message payloads: windows into one pseudo-random text, at positions that differ between clients and
 * between messages. Pure.
 */
#ifndef RAMPART_LOADGEN_PAYLOAD_H
#define RAMPART_LOADGEN_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct payload;

/* Size of the text for payloads of up to max_bytes. */
size_t payload_bytes(size_t max_bytes);

/* Makes the text for payloads of up to max_bytes; the same seed gives the same text. The text is written to `memory` of
 * payload_bytes(max_bytes), which the caller keeps; NULL: to the heap. 0 or -ENOMEM. */
int payload_new(uint64_t seed, size_t max_bytes, void *memory, struct payload **out)
	__attribute__((warn_unused_result));
void payload_free(struct payload *p);	/* NULL-safe */

/* Offset in the text of the window that is a client's n-th payload. */
uint32_t payload_shift(uint64_t client, uint64_t n);
uint8_t *payload_text(const struct payload *p, uint32_t shift);

void payload_fill(const struct payload *p, uint32_t shift, uint8_t *out, size_t bytes);
bool payload_is(const struct payload *p, uint32_t shift, const uint8_t *data, size_t bytes);

#endif
