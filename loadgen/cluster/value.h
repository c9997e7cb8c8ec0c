/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON documents as values in etcd: text, compressed with zlib if that is shorter. Input may be hostile. No I/O. Any
 * thread. */
#ifndef RAMPART_LOADGEN_CLUSTER_VALUE_H
#define RAMPART_LOADGEN_CLUSTER_VALUE_H

#include <stddef.h>

#include <jansson.h>

/* Returns the document as bytes, which the caller frees: its text, or 'z' and the text compressed by zlib's compress().
 * NULL when out of memory, or if the text has more than `text_max` bytes. */
void *value_pack(const json_t *document, size_t text_max, size_t *bytes) __attribute__((warn_unused_result));

/* Reads the output of value_pack; the caller owns the reference. NULL: the bytes are invalid, the text has more
 * than `text_max` bytes, the document would take more than `memory_max` bytes (estimated by json_text_memory), or
 * memory ran out. *memory (unless NULL) gets the estimate, even one above the limit; 0 if the bytes contain no text. */
json_t *value_unpack(const void *value, size_t bytes, size_t text_max, size_t memory_max, size_t *memory)
	__attribute__((warn_unused_result));

#endif
