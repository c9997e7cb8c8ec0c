/* Message payloads that differ from message to message and can be checked. Pure. */
#ifndef RAMPART_LOADGEN_PAYLOAD_H
#define RAMPART_LOADGEN_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct payload;

/* For payloads of up to max_bytes, the same for the same seed. 0 or -ENOMEM. */
int payload_new(uint64_t seed, size_t max_bytes, struct payload **out)
	__attribute__((warn_unused_result));
void payload_free(struct payload *p);	/* NULL-safe */

/* The payload of the n-th message of a client. */
void payload_fill(const struct payload *p, uint64_t n, uint8_t *out, size_t bytes);
bool payload_is(const struct payload *p, uint64_t n, const uint8_t *data, size_t bytes);

#endif
