/* SPDX-License-Identifier: BSD-2-Clause */
/* For the path of a message, which has one function per step. Inlined everywhere, because otherwise the compiler calls
 * functions that are used twice, which costs a quarter of a message's instructions. */
#ifndef RAMPART_COMMON_HOT_H
#define RAMPART_COMMON_HOT_H

#define HOT_INLINE inline __attribute__((always_inline))

#endif
