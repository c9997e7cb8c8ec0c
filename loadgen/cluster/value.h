/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON documents as values of the store: text, compressed with zlib if that is shorter. What is read may be anything.
 * Pure. Any thread. */
#ifndef RAMPART_LOADGEN_CLUSTER_VALUE_H
#define RAMPART_LOADGEN_CLUSTER_VALUE_H

#include <stddef.h>

#include <jansson.h>

/* The document as bytes, which the caller frees: its text, or a 'z' and what zlib's compress() makes of the text. NULL if memory
 * runs out, or if the text has more than `text_max` bytes. */
void *value_pack(const json_t *document, size_t text_max, size_t *bytes) __attribute__((warn_unused_result));

/* The document that such bytes are; the caller owns the reference. NULL: they are none, its text has more than `text_max` bytes, it
 * would take more than `memory_max` bytes of memory, as json_text_memory estimates it, or memory ran out. *memory (unless NULL)
 * is the estimate, also if it is over the limit; 0 if the bytes are no text. */
json_t *value_unpack(const void *value, size_t bytes, size_t text_max, size_t memory_max, size_t *memory)
	__attribute__((warn_unused_result));

#endif
