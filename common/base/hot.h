/* SPDX-License-Identifier: BSD-2-Clause */
/* HOT_INLINE marks the functions on the path of a message, one per step. They are always inlined, because the compiler
 * would otherwise call those that are used twice, at the cost of a quarter of a message's instructions. */
#ifndef RAMPART_COMMON_HOT_H
#define RAMPART_COMMON_HOT_H

#define HOT_INLINE inline __attribute__((always_inline))

#endif
