/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of session tickets while the clock may jump: a ticket can be opened in its epoch and in the next, but never
 * later; rings made from one seed open each other's tickets. The input is a list of steps. */
#include "common/tls/ticket_keys.h"
#include "tests/fuzz/input.h"

#define ROTATE_NS 1000
#define SEALED_MAX 64
/* A small limit per step, so that no step derives many keys. */
#define EPOCHS_MAX 8

static struct {
	uint8_t name[TICKET_NAME_BYTES], cipher[TICKET_KEY_BYTES];
	uint64_t epoch;
} sealed[SEALED_MAX];

static uint64_t epoch_of(uint64_t now_ns, uint64_t start_ns)
{
	return now_ns > start_ns ? (now_ns - start_ns) / ROTATE_NS : 0;
}

static void seal(struct ticket_ring *r, uint64_t now_ns, size_t i)
{
	const struct ticket_key *k = ticket_ring_seal(r, now_ns);

	assert(k && r->epoch >= epoch_of(now_ns, r->start_ns));
	memcpy(sealed[i].name, k->name, sizeof(sealed[i].name));
	memcpy(sealed[i].cipher, k->cipher, sizeof(sealed[i].cipher));
	sealed[i].epoch = r->epoch;
}

static void open_sealed(struct ticket_ring *r, uint64_t now_ns, size_t i)
{
	bool renew;
	const struct ticket_key *k = ticket_ring_open(r, now_ns, sealed[i].name, &renew);

	if (sealed[i].epoch == r->epoch || sealed[i].epoch + 1 == r->epoch) {
		assert(k && memcmp(k->cipher, sealed[i].cipher, sizeof(sealed[i].cipher)) == 0);
		assert(renew == (sealed[i].epoch != r->epoch));
	} else {
		assert(!k && !renew);
	}
}

static void open_any(struct ticket_ring *r, uint64_t now_ns, struct input *in)
{
	uint8_t name[TICKET_NAME_BYTES] = { 0 };
	const uint8_t *p;
	size_t n = input_bytes(in, sizeof(name), &p);
	bool renew;

	memcpy(name, p, n);
	(void)ticket_ring_open(r, now_ns, name, &renew);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	struct ticket_seed seed = { .start_ns = 5 * ROTATE_NS, .rotate_ns = ROTATE_NS };
	struct ticket_ring rings[2];
	uint64_t now_ns = seed.start_ns;
	size_t n_sealed = 0;

	seed.chain[0] = (uint8_t)input_number(&in, 1);
	for (int i = 0; i < 2; i++)
		assert(ticket_ring_init(&rings[i], &seed) == 0);
	while (in.n) {
		uint64_t step = input_number(&in, 1);
		struct ticket_ring *r = &rings[step & 1];

		switch (step >> 1 & 3) {
		case 0:
			now_ns += input_number(&in, 2) % (EPOCHS_MAX * ROTATE_NS);
			break;
		case 1:
			/* When the clock goes back, a ring does not: it still seals with the newest keys. */
			now_ns -= step >> 3 < now_ns ? step >> 3 : 0;
			if (n_sealed < SEALED_MAX)
				seal(r, now_ns, n_sealed++);
			break;
		case 2:
			if (n_sealed)
				open_sealed(r, now_ns, (step >> 3) % n_sealed);
			break;
		case 3:
			open_any(r, now_ns, &in);
			break;
		}
	}
	for (int i = 0; i < 2; i++)
		ticket_ring_wipe(&rings[i]);
	return 0;
}
