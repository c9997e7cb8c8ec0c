/* SPDX-License-Identifier: BSD-2-Clause */
/* Registry of packet sequence numbers: a 2^24-bit map of atomic words (2 MiB) and a count.
 *
 * Invariant: a set bit has exactly one owner, who clears it once. Any thread.
 */
#include "common/wire/psn.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define WORD_BITS 64

struct psn_registry {
	_Atomic uint32_t in_use;
	_Atomic uint64_t taken[PSN_COUNT / WORD_BITS];
};

int psn_registry_new(struct psn_registry **out)
{
	struct psn_registry *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*out = r;
	return 0;
}

void psn_registry_free(struct psn_registry *r)
{
	free(r);
}

bool psn_reserve(struct psn_registry *r, uint32_t psn)
{
	uint64_t bit = UINT64_C(1) << (psn % WORD_BITS);

	if (psn > PSN_MASK)
		return false;
	if (atomic_fetch_or_explicit(&r->taken[psn / WORD_BITS], bit, memory_order_acq_rel) & bit)
		return false;
	atomic_fetch_add_explicit(&r->in_use, 1, memory_order_relaxed);
	return true;
}

void psn_release(struct psn_registry *r, uint32_t psn)
{
	uint64_t bit = UINT64_C(1) << (psn % WORD_BITS);
	uint64_t before;

	assert(psn <= PSN_MASK);
	before = atomic_fetch_and_explicit(&r->taken[psn / WORD_BITS], ~bit, memory_order_acq_rel);
	assert(before & bit);
	(void)before;
	atomic_fetch_sub_explicit(&r->in_use, 1, memory_order_relaxed);
}

int psn_draw(struct psn_registry *r, psn_random_fn *random, void *arg, unsigned max_draws,
	     uint32_t *out)
{
	for (unsigned i = 0; i < max_draws; i++) {
		uint8_t b[3];
		uint32_t psn;
		int ret = random(arg, b, sizeof(b));

		if (ret)
			return ret;
		psn = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
		if (psn_reserve(r, psn)) {
			*out = psn;
			return (int)i;
		}
	}
	return -EAGAIN;
}

uint32_t psn_in_use(const struct psn_registry *r)
{
	return atomic_load_explicit(&((struct psn_registry *)r)->in_use, memory_order_relaxed);
}
