/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/striping/stripe.c: how operations are striped over rails. */
#include "tests/unit/helpers/unit.h"

#include "loadgen/striping/stripe.h"

TEST(rails__by_size__none_below_16k)
{
	assert_int_equal(stripe_rails(1, 4), 1);
	assert_int_equal(stripe_rails(16 << 10, 4), 1);
	assert_int_equal(stripe_rails((32 << 10) - 1, 4), 1);
	assert_int_equal(stripe_rails(32 << 10, 4), 2);
	assert_int_equal(stripe_rails(48 << 10, 4), 3);
	assert_int_equal(stripe_rails(64 << 10, 4), 4);
	assert_int_equal(stripe_rails(UINT64_C(2) << 30, 4), 4);
	assert_int_equal(stripe_rails(UINT64_C(2) << 30, 1), 1);
}

/* For every size: no gap, no overlap, no part below the minimum. */
TEST(parts__of_any_size__make_up_the_whole)
{
	static const uint64_t sizes[] = { 1, 63, 64, 16384, 32768, 32769, 49151, 49152, 49153, 65537, 1000001,
					  UINT64_C(2) << 30 };

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		for (uint32_t rails = 1; rails <= 8; rails++) {
			uint32_t n = stripe_rails(sizes[k], rails);
			uint64_t end = 0;

			for (uint32_t i = 0; i < n; i++) {
				uint64_t offset, bytes;

				stripe_part(sizes[k], n, i, &offset, &bytes);
				assert_int_equal(offset, end);
				assert_true(n == 1 || bytes >= STRIPE_BYTES_MIN);
				assert_int_equal(offset % 64, 0);
				end += bytes;
			}
			assert_int_equal(end, sizes[k]);
		}
}
