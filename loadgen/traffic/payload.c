/* SPDX-License-Identifier: BSD-2-Clause */
/* See payload.h. */
#include "loadgen/traffic/payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/random.h"

/* Number of window positions: a prime above the number of payloads in flight, so that these differ. */
#define SHIFTS 4099
/* The text repeats after this many bytes, a prime a little above 1 MiB, so that data displaced by a round number of
 * bytes never matches. */
#define PERIOD 1048583

struct payload {
	uint8_t *text;
	bool owned;
};

size_t payload_bytes(size_t max_bytes)
{
	return max_bytes + SHIFTS;
}

static void write_text(uint8_t *text, size_t n, uint64_t seed)
{
	size_t random = MIN(n, PERIOD);

	for (size_t i = 0; i < random; i++)
		text[i] = (uint8_t)(random_next(&seed) >> 32);
	for (size_t i = random; i < n; i += PERIOD)
		memcpy(text + i, text, MIN(n - i, PERIOD));
}

int payload_new(uint64_t seed, size_t max_bytes, void *memory, struct payload **out)
{
	struct payload *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->owned = !memory;
	p->text = memory ? memory : malloc(payload_bytes(max_bytes));
	if (!p->text) {
		free(p);
		return -ENOMEM;
	}
	write_text(p->text, payload_bytes(max_bytes), seed);
	*out = p;
	return 0;
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	if (p->owned)
		free(p->text);
	free(p);
}

uint32_t payload_shift(uint64_t client, uint64_t n)
{
	/* Clients start far apart in the text, so that messages of two clients seldom have the same window. */
	return (uint32_t)((client * 613 + n) % SHIFTS);
}

uint8_t *payload_text(const struct payload *p, uint32_t shift)
{
	return p->text + shift;
}

void payload_fill(const struct payload *p, uint32_t shift, uint8_t *out, size_t bytes)
{
	memcpy(out, p->text + shift, bytes);
}

bool payload_is(const struct payload *p, uint32_t shift, const uint8_t *data, size_t bytes)
{
	return memcmp(data, p->text + shift, bytes) == 0;
}
