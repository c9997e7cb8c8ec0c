/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutator for targets that read JSON: its output is usually valid JSON, so that it gets past the parser. */
#ifndef RAMPART_TESTS_FUZZ_JSON_MUTATE_H
#define RAMPART_TESTS_FUZZ_JSON_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Implements LLVMFuzzerCustomMutator. Changes values in the JSON text of `data`, which ends at the first zero byte or
 * at the end; the rest stays. Input that is not JSON, and one input in eight, is changed as bytes. */
size_t json_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#endif
