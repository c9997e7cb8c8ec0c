/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram for each test, `h`, which begins empty, and others that the tear-down frees too. */
#ifndef RAMPART_TESTS_UNIT_HIST_RIG_H
#define RAMPART_TESTS_UNIT_HIST_RIG_H

#include "common/hist/hist.h"
#include "tests/unit/helpers/unit.h"

static struct hist *h, *made[8];
static size_t n_made;

/* One more, until the test's end. */
static struct hist *new_hist(void)
{
	assert_true(n_made < N_ELEMENTS(made));
	assert_int_equal(hist_new(&made[n_made]), 0);
	assert_non_null(made[n_made]);
	return made[n_made++];
}

static int hist_rig_set_up(void **state)
{
	(void)state;
	h = new_hist();
	return 0;
}

static int hist_rig_tear_down(void **state)
{
	(void)state;
	while (n_made)
		hist_free(made[--n_made]);
	return 0;
}

TEST_EACH(hist_rig_set_up, hist_rig_tear_down)

#endif
