/* Message payloads: windows into one pseudo-random text, shifted from message to message. */
#include "loadgen/payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHIFTS 131	/* more than --inflight's maximum, so any two in flight differ */

struct payload {
	uint8_t *text;
};

/* splitmix64 (Steele, Lea, Flood 2014): any seed gives a good sequence. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int payload_new(uint64_t seed, size_t max_bytes, struct payload **out)
{
	struct payload *p = calloc(1, sizeof(*p));
	size_t n = max_bytes + SHIFTS;

	if (!p)
		return -ENOMEM;
	p->text = malloc(n);
	if (!p->text) {
		free(p);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		p->text[i] = (uint8_t)(next_random(&seed) >> 32);
	*out = p;
	return 0;
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	free(p->text);
	free(p);
}

void payload_fill(const struct payload *p, uint64_t n, uint8_t *out, size_t bytes)
{
	memcpy(out, p->text + n % SHIFTS, bytes);
}

bool payload_is(const struct payload *p, uint64_t n, const uint8_t *data, size_t bytes)
{
	return memcmp(data, p->text + n % SHIFTS, bytes) == 0;
}
