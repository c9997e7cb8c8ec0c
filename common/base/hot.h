/* SPDX-License-Identifier: BSD-2-Clause */
/* For the path of a message, which is a function for each step. Inlined everywhere, because the compiler makes calls of
 * functions that are used twice, and those would cost a quarter of a message's instructions. */
#ifndef RAMPART_COMMON_HOT_H
#define RAMPART_COMMON_HOT_H

#define HOT_INLINE inline __attribute__((always_inline))

#endif
