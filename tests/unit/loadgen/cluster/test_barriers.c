/* SPDX-License-Identifier: BSD-2-Clause */
/* Which hosts have arrived at a barrier: notes whole and in parts, old barriers, and limits on the leader's memory. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/cluster/barriers.h"

#define HOSTS 3

static struct barriers *b;
static bool gone[HOSTS];

static bool waits_for(void *arg, uint32_t rank)
{
	(void)arg;
	return !gone[rank];
}

static const char *next_full(void)
{
	return barriers_next_full(b, waits_for, NULL);
}

static int begin(void **state)
{
	(void)state;
	memset(gone, 0, sizeof(gone));
	return barriers_new(HOSTS, BARRIERS_BYTES, &b);
}

static int end(void **state)
{
	(void)state;
	barriers_free(b);
	return 0;
}

static int arrive(const char *name, uint32_t rank)
{
	return barriers_arrive(b, name, rank, 0, NULL, 0);
}

TEST(names__all_bytes__only_those_allowed)
{
	char name[BARRIER_NAME_MAX + 2];

	for (int byte = 1; byte < 256; byte++) {
		name[0] = (char)byte;
		name[1] = 0;
		assert_int_equal(barrier_name_is_good(name),
				 (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '/' || byte == '_' || byte == '-');
	}
	memset(name, 'a', sizeof(name));
	name[BARRIER_NAME_MAX + 1] = 0;
	assert_false(barrier_name_is_good(name));
	name[BARRIER_NAME_MAX] = 0;
	assert_true(barrier_name_is_good(name));
	assert_false(barrier_name_is_good(""));
}

TEST(full__last_arrives_or_is_gone__told_once)
{
	assert_int_equal(arrive("a", 0), 0);
	assert_int_equal(arrive("a", 1), 0);
	assert_int_equal(arrive("a", 1), 0);
	assert_null(next_full());
	assert_int_equal(arrive("a", 2), 0);
	assert_string_equal(next_full(), "a");
	assert_null(next_full());
	assert_int_equal(arrive("b", 0), 0);
	assert_int_equal(arrive("b", 2), 0);
	assert_null(next_full());
	gone[1] = true;
	assert_string_equal(next_full(), "b");
	assert_null(next_full());
}

TEST(arrive__no_such_rank_bad_name_bad_note__refused)
{
	assert_int_equal(arrive("a", HOSTS), -EINVAL);
	assert_int_equal(arrive("a", UINT32_MAX), -EINVAL);
	assert_int_equal(arrive("A", 0), -EINVAL);
	assert_int_equal(arrive("", 0), -EINVAL);
	assert_null(barriers_note(b, "a", 0));
	assert_int_equal(barriers_arrive(b, "a", 1, 0, "{", 1), -EINVAL);
	assert_null(barriers_note(b, "a", 1));
	assert_null(barriers_note(b, "a", UINT32_MAX));
	assert_int_equal(barriers_arrive(b, "a", 2, BARRIER_PARTS_MAX + 1, NULL, 0), -EINVAL);
	assert_int_equal(arrive("a", 0), 0);
	assert_string_equal(next_full(), "a");	/* hosts with a bad note have arrived, too */
}

TEST(parts__every_order__whole_note)
{
	static const char *const text[] = { "[1,", "2,", "3]" };

	for (unsigned order = 0; order < 24; order++) {
		unsigned left[4] = { 0, 1, 2, 3 }, n = 4, rest = order;	/* 3: the arrival itself */
		char name[8];

		snprintf(name, sizeof(name), "o%u", order);
		while (n) {
			unsigned pick = rest % n, one = left[pick];

			rest /= n;
			left[pick] = left[--n];
			assert_null(barriers_note(b, name, 1));
			if (one < 3)
				assert_int_equal(barriers_part(b, name, 1, one, text[one], strlen(text[one])), 0);
			else
				assert_int_equal(barriers_arrive(b, name, 1, 3, NULL, 0), 0);
		}
		assert_int_equal(json_integer_value(json_array_get(barriers_note(b, name, 1), 2)), 3);
		barriers_forget(b, name);
		assert_null(barriers_note(b, name, 1));
	}
	assert_int_equal(barriers_part(b, "a", 1, BARRIER_PARTS_MAX, "", 0), -EINVAL);
	assert_int_equal(barriers_part(b, "a", 1, UINT32_MAX, "", 0), -EINVAL);
}

/* A run does not forget its barriers itself, and a step cut short leaves barriers that nobody passes. */
TEST(old__thousand_steps_some_cut_short__few_are_kept)
{
	char name[24];
	const char *old;
	unsigned forgotten = 0;

	for (unsigned step = 0; step < 1000; step++) {
		for (uint32_t rank = 0; rank < HOSTS; rank++) {
			snprintf(name, sizeof(name), "%u/cut", step);
			if (rank != step % HOSTS)
				assert_int_equal(arrive(name, rank), 0);
			snprintf(name, sizeof(name), "%u/passed", step);
			assert_int_equal(arrive(name, rank), 0);
		}
		assert_string_equal(next_full(), name);
		while ((old = barriers_next_old(b))) {
			unsigned of = 0;

			assert_int_equal(sscanf(old, "%u/", &of), 1);
			assert_true(of + BARRIERS_KEPT <= step);
			snprintf(name, sizeof(name), "%s", old);
			barriers_forget(b, name);
			forgotten++;
		}
	}
	assert_true(forgotten >= 2 * (1000 - BARRIERS_KEPT - 1));
}

TEST(limit__names_that_never_end__of_that_host_only)
{
	char name[16];

	for (unsigned i = 0; i < BARRIERS_OF_HOST_MAX; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		assert_int_equal(i % 2 ? arrive(name, 2) : barriers_part(b, name, 2, 0, "1", 1), 0);
	}
	assert_int_equal(arrive("more", 2), -EDQUOT);
	assert_int_equal(barriers_part(b, "more", 2, 0, "1", 1), -EDQUOT);
	assert_int_equal(arrive("more", 0), 0);
	assert_int_equal(arrive("more", 1), 0);
	barriers_forget(b, "x7");
	assert_int_equal(arrive("more", 2), 0);
	assert_string_equal(next_full(), "more");
}

TEST(limit__parts_that_never_end__of_that_host_only)
{
	size_t most = 1 << 20, taken = 0;
	char *value = calloc(1, most), name[16];
	int rc = 0;

	for (unsigned i = 0; !rc; i++) {
		snprintf(name, sizeof(name), "x%u", i / BARRIER_PARTS_MAX);
		rc = barriers_part(b, name, 2, i % BARRIER_PARTS_MAX, value, most);
		taken += rc ? 0 : most;
	}
	assert_int_equal(rc, -EFBIG);
	assert_int_equal(taken, BARRIERS_HOST_BYTES);
	assert_int_equal(barriers_part(b, "y", 1, 0, value, most), 0);
	barriers_forget(b, "x0");	/* gives its memory back */
	assert_int_equal(barriers_part(b, name, 2, 31, value, most), 0);
	assert_int_equal(barriers_part(b, "y", 1, 1, value, most + 1), -EINVAL);
	free(value);
}

/* 4 MiB of text that would become 300 MiB of objects. */
TEST(limit__note_that_grows__refused_before_it_is_made)
{
	size_t n = (4 << 20) / 3;
	char *text = malloc(3 * n + 3);

	text[0] = '[';
	for (size_t i = 0; i < n; i++)
		memcpy(text + 1 + 3 * i, "{},", 3);
	text[3 * n] = ']';
	assert_int_equal(barriers_arrive(b, "a", 1, 0, text, 3 * n + 1), -EFBIG);
	assert_null(barriers_note(b, "a", 1));
	assert_int_equal(barriers_arrive(b, "b", 1, 0, "[1]", 3), 0);
	free(text);
}

TEST(limit__notes_of_all_hosts__together)
{
	enum { MANY = 8, MOST = 10 };	/* hosts; MiB in total */
	size_t part = 1 << 20;
	char *text = calloc(1, part);

	barriers_free(b);
	assert_int_equal(barriers_new(MANY, MOST * part, &b), 0);
	for (unsigned i = 0; i < MOST; i++)
		assert_int_equal(barriers_part(b, "p", i % MANY, i / MANY, text, part), 0);
	assert_int_equal(barriers_part(b, "p", 7, 1, text, part), -ENOSPC);
	assert_int_equal(barriers_arrive(b, "q", 7, 0, "[1]", 3), -ENOSPC);
	assert_null(barriers_note(b, "q", 7));
	barriers_forget(b, "p");
	assert_int_equal(barriers_arrive(b, "r", 7, 0, "[1]", 3), 0);
	assert_non_null(barriers_note(b, "r", 7));
	free(text);
}

TEST_EACH(begin, end)
