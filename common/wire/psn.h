/* SPDX-License-Identifier: BSD-2-Clause */
/* Registry of packet sequence numbers: which of the 2^24 are in use by a live or recently closed connection of this
 * server. Shared by all threads, lock-free. No I/O: the caller provides the random function.
 */
#ifndef RAMPART_COMMON_PSN_H
#define RAMPART_COMMON_PSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PSN_BITS 24
#define PSN_COUNT (UINT32_C(1) << PSN_BITS)
#define PSN_MASK (PSN_COUNT - 1)

struct psn_registry;

/* Fills buf with n random bytes; returns 0 or -errno. */
typedef int psn_random_fn(void *arg, uint8_t *buf, size_t n);

/* Returns 0 or -ENOMEM. The caller owns *out. */
int psn_registry_new(struct psn_registry **out) __attribute__((warn_unused_result));
void psn_registry_free(struct psn_registry *r);

/* Takes `psn`. False if it is not a 24-bit number or is already taken. */
bool psn_reserve(struct psn_registry *r, uint32_t psn) __attribute__((warn_unused_result));

/* Returns `psn`, which must be taken. */
void psn_release(struct psn_registry *r, uint32_t psn);

/* Draws random numbers until one is free, and takes it. Returns how many of those drawn were already taken; -EAGAIN if
 * `max_draws` numbers in a row were taken; or the error of `random`. */
int psn_draw(struct psn_registry *r, psn_random_fn *random, void *arg, unsigned max_draws,
	     uint32_t *out) __attribute__((warn_unused_result));

uint32_t psn_in_use(const struct psn_registry *r);

#endif
