/* cmocka with the headers it needs first, and what nearly every unit test uses. */
#ifndef RAMPART_TESTS_UNIT_UNIT_H
#define RAMPART_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

/* A repeatable random number (xorshift64*, Marsaglia); *state must not be 0. */
static inline uint64_t unit_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

#endif
