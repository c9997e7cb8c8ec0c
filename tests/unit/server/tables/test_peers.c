/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/tables/peers.c: who holds how much, against a count that a child could make. */
#include "tests/unit/helpers/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/tables/peers.h"

#define MAX 64u

static struct peers *peers;
static struct peer_hold holds[MAX];

static int set_up(void **state)
{
	(void)state;
	memset(holds, 0, sizeof(holds));
	return peers_new(MAX, &peers);
}

static int tear_down(void **state)
{
	(void)state;
	peers_free(peers);
	return 0;
}

static void take(uint64_t network, struct peer_hold *h)
{
	assert_true(peers_take(peers, PEERS_TLS, network, h, UINT32_MAX));
}

static void give(struct peer_hold *h)
{
	peers_give(peers, PEERS_TLS, h);
}

TEST(take__nobody_there__nothing_held)
{
	assert_int_equal(peers_most(peers, PEERS_TLS), 0);
	assert_null(peers_oldest(peers, PEERS_TLS));
	assert_int_equal(peers_count(peers, PEERS_TLS, 7), 0);
	give(&holds[0]);
}

TEST(oldest__several_addresses__of_the_one_that_has_most)
{
	take(1, &holds[0]);
	take(2, &holds[1]);
	take(2, &holds[2]);
	assert_int_equal(peers_most(peers, PEERS_TLS), 2);
	assert_ptr_equal(peers_oldest(peers, PEERS_TLS), &holds[1]);
	take(1, &holds[3]);
	take(1, &holds[4]);
	assert_int_equal(peers_most(peers, PEERS_TLS), 3);
	assert_true(peers_has_most(peers, PEERS_TLS, &holds[0]));
	assert_false(peers_has_most(peers, PEERS_TLS, &holds[1]));
	assert_false(peers_has_most(peers, PEERS_TLS, &holds[9]));
	assert_ptr_equal(peers_oldest(peers, PEERS_TLS), &holds[0]);
	give(&holds[0]);
	give(&holds[3]);
	assert_int_equal(peers_most(peers, PEERS_TLS), 2);
	assert_ptr_equal(peers_oldest(peers, PEERS_TLS), &holds[1]);
	assert_int_equal(peers_count(peers, PEERS_TLS, 1), 1);
}

TEST(rejuvenate__the_oldest__comes_last)
{
	for (int i = 0; i < 3; i++)
		take(9, &holds[i]);
	peers_rejuvenate(peers, PEERS_TLS, &holds[0]);
	for (int i = 1; i <= 3; i++) {
		assert_ptr_equal(peers_oldest(peers, PEERS_TLS), &holds[i % 3]);
		give(&holds[i % 3]);
	}
}

static void wait_for(uint64_t network, struct peer_hold *h)
{
	assert_true(peers_take(peers, PEERS_WAITING, network, h, UINT32_MAX));
}

TEST(rejuvenate__two_have_most__the_other_ones_turn)
{
	static const int in_turn[] = { 0, 2, 1, 3 };

	for (int i = 0; i < 4; i++)
		take(1 + (uint64_t)i / 2, &holds[i]);
	for (int i = 0; i < 8; i++) {
		struct peer_hold *h = peers_oldest(peers, PEERS_TLS);

		assert_ptr_equal(h, &holds[in_turn[i % 4]]);
		peers_rejuvenate(peers, PEERS_TLS, h);
	}
	assert_ptr_equal(peers_youngest(peers, PEERS_TLS), &holds[3]);
}

TEST(next__several_wait__of_the_address_that_has_least)
{
	assert_null(peers_next(peers));
	assert_null(peers_youngest(peers, PEERS_WAITING));
	take(1, &holds[0]);
	take(1, &holds[1]);
	take(2, &holds[2]);
	wait_for(1, &holds[10]);
	wait_for(1, &holds[11]);
	assert_ptr_equal(peers_next(peers), &holds[10]);
	wait_for(2, &holds[12]);
	assert_ptr_equal(peers_next(peers), &holds[12]);
	wait_for(3, &holds[13]);
	assert_ptr_equal(peers_next(peers), &holds[13]);
	assert_ptr_equal(peers_youngest(peers, PEERS_WAITING), &holds[11]);
	peers_give(peers, PEERS_WAITING, &holds[13]);
	/* It has as many now as the other one that waits, and came to that later. */
	take(2, &holds[3]);
	assert_ptr_equal(peers_next(peers), &holds[10]);
	take(1, &holds[4]);
	assert_ptr_equal(peers_next(peers), &holds[12]);
	give(&holds[4]);
	give(&holds[0]);
	assert_ptr_equal(peers_next(peers), &holds[10]);
	for (int i = 10; i < 13; i++)
		peers_give(peers, PEERS_WAITING, &holds[i]);
	assert_null(peers_next(peers));
}

TEST(progress__noted__until_the_address_holds_nothing)
{
	assert_int_equal(peers_progress_ns(peers, 1), 0);
	peers_note_progress(peers, 1, 4);
	take(1, &holds[0]);
	assert_int_equal(peers_progress_ns(peers, 1), 0);
	peers_note_progress(peers, 1, 5);
	take(1, &holds[1]);
	assert_int_equal(peers_progress_ns(peers, 1), 5);
	assert_int_equal(peers_progress_ns(peers, 2), 0);
	give(&holds[0]);
	give(&holds[1]);
	take(1, &holds[0]);
	assert_int_equal(peers_progress_ns(peers, 1), 0);
}

TEST(take__limit__holds_for_the_address_and_kind)
{
	assert_true(peers_take(peers, PEERS_TLS, 1, &holds[0], 2));
	assert_true(peers_take(peers, PEERS_TLS, 1, &holds[1], 2));
	assert_false(peers_take(peers, PEERS_TLS, 1, &holds[2], 2));
	assert_null(holds[2].peer);
	assert_true(peers_take(peers, PEERS_TLS, 2, &holds[2], 2));
	assert_true(peers_take(peers, PEERS_CLIENTS, 1, &holds[3], 2));
	assert_int_equal(peers_most(peers, PEERS_CLIENTS), 1);
	give(&holds[0]);
	give(&holds[0]);
	assert_true(peers_take(peers, PEERS_TLS, 1, &holds[0], 2));
	assert_false(peers_take(peers, PEERS_TLS, 3, &holds[4], 0));
	assert_int_equal(peers_count(peers, PEERS_TLS, 3), 0);
}

/* As many addresses as there may be, over and over: none leaves anything behind. */
TEST(take__each_from_another_address__room_for_all_again)
{
	for (uint64_t round = 1; round <= 100; round++) {
		for (uint64_t i = 0; i < MAX; i++)
			take(round << 32 | (i + 1), &holds[i]);
		assert_int_equal(peers_most(peers, PEERS_TLS), 1);
		for (uint64_t i = 0; i < MAX; i++)
			give(&holds[i]);
		assert_int_equal(peers_most(peers, PEERS_TLS), 0);
	}
}

/* The longest count of four addresses, the simple way. */
static void assert_as_counted(const uint32_t counts[4])
{
	uint32_t most = 0;

	for (uint64_t a = 0; a < 4; a++) {
		assert_int_equal(peers_count(peers, PEERS_TLS, a + 1), counts[a]);
		most = counts[a] > most ? counts[a] : most;
	}
	assert_int_equal(peers_most(peers, PEERS_TLS), most);
}

TEST(take_and_give__at_random__as_counted)
{
	uint32_t counts[4] = { 0 }, owner[MAX];

	srand(1);
	for (int i = 0; i < 20000; i++) {
		uint32_t h = (uint32_t)rand() % MAX;

		if (holds[h].peer) {
			give(&holds[h]);
			counts[owner[h]]--;
		} else {
			owner[h] = (uint32_t)rand() % 4;
			take(owner[h] + 1, &holds[h]);
			counts[owner[h]]++;
		}
		assert_as_counted(counts);
		if (peers_oldest(peers, PEERS_TLS))
			assert_int_equal(counts[owner[peers_oldest(peers, PEERS_TLS) - holds]],
					 peers_most(peers, PEERS_TLS));
	}
}

static void *take_and_give_many(void *arg)
{
	struct peer_hold h = { 0 };

	for (int i = 0; i < 20000; i++)
		if (peers_take(peers, PEERS_CLIENTS, 5, &h, 2))
			peers_give(peers, PEERS_CLIENTS, &h);
	return arg;
}

TEST(take__by_several_threads__never_too_many)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_many, NULL), 0);
	for (int i = 0; i < 1000; i++)
		assert_true(peers_count(peers, PEERS_CLIENTS, 5) <= 2);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(peers_count(peers, PEERS_CLIENTS, 5), 0);
}

TEST_EACH(set_up, tear_down)
