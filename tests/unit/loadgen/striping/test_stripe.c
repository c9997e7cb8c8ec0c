/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/striping/stripe.c: how operations are striped over rails. */
#include "tests/unit/helpers/unit.h"

#include "loadgen/striping/stripe.h"

#define LEAST (16 << 10)

TEST(rails__by_size__none_below_the_least)
{
	assert_int_equal(stripe_rails(1, 4, LEAST), 1);
	assert_int_equal(stripe_rails(16 << 10, 4, LEAST), 1);
	assert_int_equal(stripe_rails((32 << 10) - 1, 4, LEAST), 1);
	assert_int_equal(stripe_rails(32 << 10, 4, LEAST), 2);
	assert_int_equal(stripe_rails(32 << 10, 4, 8 << 10), 4);
	assert_int_equal(stripe_rails((32 << 10) - 1, 4, 8 << 10), 3);
	assert_int_equal(stripe_rails(48 << 10, 4, LEAST), 3);
	assert_int_equal(stripe_rails(64 << 10, 4, LEAST), 4);
	assert_int_equal(stripe_rails(UINT64_C(2) << 30, 4, LEAST), 4);
	assert_int_equal(stripe_rails(UINT64_C(2) << 30, 4, UINT64_C(2) << 30), 1);
	assert_int_equal(stripe_rails(UINT64_C(2) << 30, 1, LEAST), 1);
}

/* For every size and least part, a multiple of a cache line or not: no gap, no overlap, no part below the least. */
TEST(parts__of_any_size__make_up_the_whole)
{
	static const uint64_t sizes[] = { 1, 63, 64, 16384, 32768, 32769, 49151, 49152, 49153, 65537, 1000001,
					  UINT64_C(2) << 30 };
	static const uint64_t leasts[] = { LEAST, 8 << 10, 4096, 4097, 5000 };

	for (size_t k = 0; k < N_ELEMENTS(sizes) * N_ELEMENTS(leasts); k++)
		for (uint32_t rails = 1; rails <= 8; rails++) {
			uint64_t size = sizes[k % N_ELEMENTS(sizes)], least = leasts[k / N_ELEMENTS(sizes)];
			uint32_t n = stripe_rails(size, rails, least);
			uint64_t end = 0;

			for (uint32_t i = 0; i < n; i++) {
				uint64_t offset, bytes;

				stripe_part(size, n, i, &offset, &bytes);
				assert_int_equal(offset, end);
				assert_true(n == 1 || bytes >= least);
				assert_int_equal(offset % 64, 0);
				end += bytes;
			}
			assert_int_equal(end, size);
		}
}
