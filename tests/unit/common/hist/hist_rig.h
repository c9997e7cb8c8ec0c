/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram for each test, `h`, which begins empty. */
#ifndef RAMPART_TESTS_UNIT_HIST_RIG_H
#define RAMPART_TESTS_UNIT_HIST_RIG_H

#include "common/hist/hist.h"
#include "tests/unit/helpers/unit.h"

static struct hist *h;

static struct hist *new_hist(void)
{
	struct hist *made = NULL;

	assert_int_equal(hist_new(&made), 0);
	assert_non_null(made);
	return made;
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
	hist_free(h);
	return 0;
}

TEST_EACH(hist_rig_set_up, hist_rig_tear_down)

#endif
