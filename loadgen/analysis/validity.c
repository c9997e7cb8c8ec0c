/* SPDX-License-Identifier: BSD-2-Clause */
/* See validity.h. */
#include "loadgen/analysis/validity.h"

#include <stddef.h>

const struct validity_flag validity_flags[VALIDITY_FLAGS] = {
#define X(name, condition, badge, meaning) { #name, badge, meaning },
	VALIDITY_ROWS(X)
#undef X
};
