/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutator for targets that read JSON: the input stays JSON most of the time, so that what reads it is reached. */
#ifndef RAMPART_TESTS_FUZZ_JSON_MUTATE_H
#define RAMPART_TESTS_FUZZ_JSON_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* LLVMFuzzerCustomMutator's contract. Changes a value somewhere in the first JSON text of `data`, which ends at the
 * first zero byte or at the end; what follows stays. What is no JSON, and one input in eight, is changed as bytes. */
size_t json_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#endif
