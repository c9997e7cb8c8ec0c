/* SPDX-License-Identifier: BSD-2-Clause */
/* etcd's JSON (etcd v3.4, api_reference_v3: protobuf's JSON mapping): bytes are base64, 64-bit numbers are strings,
 * zero or empty fields are omitted. Input may be hostile. No I/O. Any thread. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_JSON_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/cluster/etcd/etcd.h"

#define ETCD_ROOT_MAX	96	/* "/rampart/RUN/" */

/* These four return new references. Bytes as base64; NULL when out of memory. */
json_t *etcd_bytes(const void *bytes, size_t n);
/* A key below `root` as base64. */
json_t *etcd_key(const char *root, const char *key);
/* The first key after all keys that begin with `root` and `key`: etcd's range_end for a prefix. */
json_t *etcd_key_end(const char *root, const char *key);
/* A number as a string. */
json_t *etcd_int(int64_t v);

/* Reads the integer `name` of an object, a number or a string; 0 if it is missing. False: it is something else. */
bool etcd_read_int(const json_t *object, const char *name, int64_t *out);

/* A key and its value. The caller frees `memory`. */
struct etcd_kv {
	struct etcd_entry entry;		/* the key is relative to `root` */
	char *memory;
};
/* False, with nothing to free: malformed, below another root, larger than etcd.h allows, or out of memory. */
bool etcd_read_kv(const json_t *kv, const char *root, struct etcd_kv *out);

/* True for a valid key: 1 to ETCD_KEY_MAX bytes of [A-Za-z0-9._/-]. */
bool etcd_key_is_valid(const char *key);

#endif
