/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/ticket_keys.c: epochs, rings that agree, keys that are forgotten. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/tls/ticket_keys.h"

#define START UINT64_C(5000)
#define EPOCH UINT64_C(1000)

static struct ticket_seed seed;
static struct ticket_ring a, b;

static int set_up(void **state)
{
	(void)state;
	return ticket_seed_new(START, EPOCH, &seed) || ticket_ring_init(&a, &seed) ||
	       ticket_ring_init(&b, &seed) ? -1 : 0;
}

static struct ticket_key sealing_key(struct ticket_ring *r, uint64_t now)
{
	const struct ticket_key *k = ticket_ring_seal(r, now);

	assert_non_null(k);
	return *k;
}

/* No part of one is a part of the other. */
static void assert_different(const struct ticket_key *x, const struct ticket_key *y)
{
	assert_memory_not_equal(x->name, y->name, sizeof(x->name));
	assert_memory_not_equal(x->cipher, y->cipher, sizeof(x->cipher));
	assert_memory_not_equal(x->mac, y->mac, sizeof(x->mac));
}

static void assert_opens(struct ticket_ring *r, uint64_t now, const struct ticket_key *sealed, bool renew)
{
	bool asked = !renew;
	const struct ticket_key *k = ticket_ring_open(r, now, sealed->name, &asked);

	assert_non_null(k);
	assert_memory_equal(k, sealed, sizeof(*k));
	assert_int_equal(asked, renew);
}

static void assert_does_not_open(struct ticket_ring *r, uint64_t now, const struct ticket_key *sealed)
{
	bool renew = true;

	assert_null(ticket_ring_open(r, now, sealed->name, &renew));
	assert_false(renew);
}

TEST(seal__within_an_epoch__one_key)
{
	struct ticket_key first = sealing_key(&a, START), k;

	k = sealing_key(&a, START + EPOCH - 1);
	assert_memory_equal(&k, &first, sizeof(k));
	assert_int_equal(a.epoch, 0);
	k = sealing_key(&a, START + EPOCH);
	assert_int_equal(a.epoch, 1);
	assert_different(&k, &first);
}

/* A clock that was read before the start's, or runs backwards, changes nothing. */
TEST(seal__before_the_start_or_back_in_time__the_newest_key)
{
	struct ticket_key first = sealing_key(&a, 0), k = sealing_key(&a, START);

	assert_memory_equal(&k, &first, sizeof(k));
	k = sealing_key(&a, START + 3 * EPOCH);
	first = sealing_key(&a, START);
	assert_memory_equal(&k, &first, sizeof(k));
	assert_int_equal(a.epoch, 3);
}

TEST(seal__many_epochs__never_the_same_key_twice)
{
	static struct ticket_key keys[50];

	for (unsigned i = 0; i < N_ELEMENTS(keys); i++) {
		keys[i] = sealing_key(&a, START + i * EPOCH);
		assert_memory_not_equal(keys[i].cipher, keys[i].mac, TICKET_KEY_BYTES);
		/* The name is no part of the secrets. */
		assert_memory_not_equal(keys[i].name, keys[i].cipher, TICKET_NAME_BYTES);
		assert_memory_not_equal(keys[i].name, keys[i].mac, TICKET_NAME_BYTES);
		assert_memory_not_equal(keys[i].name, a.chain, TICKET_NAME_BYTES);
		for (unsigned j = 0; j < i; j++)
			assert_different(&keys[i], &keys[j]);
	}
}

TEST(rings__of_one_seed__agree_in_every_epoch)
{
	for (unsigned i = 0; i < 20; i++) {
		uint64_t now = START + i * EPOCH + i * 7;
		struct ticket_key ka = sealing_key(&a, now);
		/* The other one sleeps through some. */
		struct ticket_key kb = i % 3 ? ka : sealing_key(&b, now + 1);

		assert_memory_equal(&ka, &kb, sizeof(ka));
		assert_opens(&a, now, &kb, false);
		if (i % 3 == 0)
			assert_opens(&b, now, &ka, false);
	}
}

TEST(rings__of_one_seed__open_each_others_while_epochs_pass)
{
	struct ticket_key sealed = sealing_key(&a, START + EPOCH / 2);

	assert_opens(&b, START + EPOCH - 1, &sealed, false);
	assert_opens(&b, START + EPOCH, &sealed, true);
	assert_opens(&b, START + 2 * EPOCH - 1, &sealed, true);
	assert_does_not_open(&b, START + 2 * EPOCH, &sealed);
	assert_does_not_open(&b, START + 2 * EPOCH, &sealed);
	/* Nor one that slept until then. */
	assert_does_not_open(&a, START + 9 * EPOCH, &sealed);
}

TEST(rings__of_two_seeds__nothing_in_common)
{
	struct ticket_seed other_seed;
	struct ticket_ring other;

	assert_int_equal(ticket_seed_new(START, EPOCH, &other_seed), 0);
	assert_memory_not_equal(other_seed.chain, seed.chain, sizeof(seed.chain));
	assert_int_equal(ticket_ring_init(&other, &other_seed), 0);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t now = START + i * EPOCH;
		struct ticket_key mine = sealing_key(&a, now), foreign = sealing_key(&other, now);

		assert_different(&mine, &foreign);
		assert_does_not_open(&a, now, &foreign);
		assert_does_not_open(&other, now, &mine);
	}
}

TEST(open__name_of_nobody__null)
{
	static const struct ticket_key zeros;
	struct ticket_key near = sealing_key(&a, START);

	/* Before there is a previous key, its zeros are no key either. */
	assert_does_not_open(&a, START, &zeros);
	near.name[TICKET_NAME_BYTES - 1] ^= 1;
	assert_does_not_open(&a, START, &near);
	assert_does_not_open(&a, START + EPOCH, &near);
	assert_does_not_open(&a, START + EPOCH, &zeros);
}

/* The keys in a ring do not open tickets that were sealed two epochs ago. */
TEST(ring__two_epochs_on__holds_nothing_of_the_old_key)
{
	struct ticket_key old = sealing_key(&a, START);
	uint8_t chain[TICKET_KEY_BYTES];
	const uint8_t *bytes = (const uint8_t *)&a;

	memcpy(chain, a.chain, sizeof(chain));
	sealing_key(&a, START + 2 * EPOCH);
	for (size_t i = 0; i + TICKET_NAME_BYTES <= sizeof(a); i++) {
		assert_memory_not_equal(bytes + i, old.name, TICKET_NAME_BYTES);
		assert_memory_not_equal(bytes + i, old.cipher, TICKET_NAME_BYTES);
		assert_memory_not_equal(bytes + i, old.mac, TICKET_NAME_BYTES);
		assert_memory_not_equal(bytes + i, chain, TICKET_NAME_BYTES);
	}
}

/* A ring that nobody seals or opens with: the clock alone takes old keys from it. */
TEST(step__time_passes__old_keys_gone_and_the_next_step_known)
{
	struct ticket_key old = sealing_key(&a, START);
	const uint8_t *bytes = (const uint8_t *)&a;

	assert_int_equal(ticket_ring_step(&a, 0), START + EPOCH);
	assert_int_equal(ticket_ring_step(&a, START), EPOCH);
	assert_int_equal(ticket_ring_step(&a, START + EPOCH - 1), 1);
	assert_int_equal(a.epoch, 0);
	assert_int_equal(ticket_ring_step(&a, START + EPOCH), EPOCH);
	assert_int_equal(a.epoch, 1);
	assert_int_equal(ticket_ring_step(&a, START + 2 * EPOCH + 400), EPOCH - 400);
	assert_int_equal(a.epoch, 2);
	for (size_t i = 0; i + TICKET_NAME_BYTES <= sizeof(a); i++)
		assert_memory_not_equal(bytes + i, old.cipher, TICKET_NAME_BYTES);
}

/* More epochs than one call takes: the keys still come, and in the end those of the other ring. */
TEST(ring__slept_for_ages__catches_up_with_the_others)
{
	const unsigned ages = 101000;
	struct ticket_key ka, kb;

	for (unsigned i = 1000; i <= ages; i += 1000)
		sealing_key(&b, START + i * EPOCH);
	assert_int_equal(b.epoch, ages);
	for (int i = 0; i < 3; i++)
		sealing_key(&a, START + ages * EPOCH);
	ka = sealing_key(&a, START + ages * EPOCH);
	kb = sealing_key(&b, START + ages * EPOCH);
	assert_memory_equal(&ka, &kb, sizeof(ka));
}

TEST(wipe__seed_and_ring__zeros)
{
	static const uint8_t zeros[sizeof(struct ticket_ring)];

	sealing_key(&a, START + EPOCH);
	assert_memory_not_equal(&a, zeros, sizeof(a));
	ticket_ring_wipe(&a);
	assert_memory_equal(&a, zeros, sizeof(a));
	assert_memory_not_equal(&seed, zeros, sizeof(seed));
	ticket_seed_wipe(&seed);
	assert_memory_equal(&seed, zeros, sizeof(seed));
}

TEST_EACH(set_up, NULL)
