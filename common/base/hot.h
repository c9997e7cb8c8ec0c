/* SPDX-License-Identifier: BSD-2-Clause */
/* For the path of a message, which has one function per step. Always inlined, because the compiler would otherwise call
 * functions that are used twice, at the cost of a quarter of a message's instructions. */
#ifndef RAMPART_COMMON_HOT_H
#define RAMPART_COMMON_HOT_H

#define HOT_INLINE inline __attribute__((always_inline))

#endif
