/* SPDX-License-Identifier: BSD-2-Clause */
/* cmocka with the headers it needs first, tests that register themselves, and what nearly every unit test uses. unit.c
 * has main. */
#ifndef RAMPART_TESTS_UNIT_UNIT_H
#define RAMPART_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct addr;

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

/* Registers `n` tests, which run in the order of their lines. `t` and what it points to stay valid. */
void unit_register(const struct CMUnitTest *t, size_t n, int line);
/* Set the functions that run before and after each test that has none of its own, and before and after all tests. */
void unit_set_each(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void unit_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Runs before main. */
#define UNIT_BEFORE_MAIN(id, call)						\
	static void id(void) __attribute__((constructor));			\
	static void id(void)							\
	{									\
		call;								\
	}

/* Registers an array of tests, for those that share a function or have parameters. */
#define TEST_TABLE(array) UNIT_BEFORE_MAIN(register_##array, unit_register(array, N_ELEMENTS(array), __LINE__))

/* Defines a test: TEST(subject__condition__outcome) { ... }. It may use `state`, as cmocka's tests do. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, set_up, tear_down) TEST_CASES(name, { #name, name, set_up, tear_down, NULL })
/* Defines a test that is run once for each of these CMUnitTests. */
#define TEST_CASES(name, ...)							\
	static void name(void **state);						\
	static const struct CMUnitTest tests_of_##name[] = { __VA_ARGS__ };	\
	TEST_TABLE(tests_of_##name)						\
	static void name(void **state __attribute__((unused)))

#define TEST_EACH(set_up, tear_down) UNIT_BEFORE_MAIN(set_each, unit_set_each(set_up, tear_down))
#define TEST_GROUP(set_up, tear_down) UNIT_BEFORE_MAIN(set_group, unit_set_group(set_up, tear_down))

/* Fails the test unless `text` contains `words`. */
#define assert_says(text, words) unit_assert_says(text, words, __FILE__, __LINE__)
static inline void unit_assert_says(const char *text, const char *words, const char *file, int line)
{
	bool says = strstr(text, words) != NULL;

	if (!says)
		print_error("'%s' does not say '%s'\n", text, words);
	_assert_true(says, "the text says so", file, line);
}

/* The address that `text` says. */
struct addr unit_addr(const char *text, uint16_t port);

/* Both ends of a TCP connection over the loopback interface, which do not block. */
void unit_connect_tcp(int fds[2]);

/* Limits how many descriptors this process may open; those that are open stay so. Returns the limit before. */
uint64_t unit_limit_descriptors(uint64_t n);

/* A repeatable random number (xorshift64*, Marsaglia); *state must not be 0. */
static inline uint64_t unit_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

#endif
