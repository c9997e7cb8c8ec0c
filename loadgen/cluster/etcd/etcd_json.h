/* SPDX-License-Identifier: BSD-2-Clause */
/* etcd's JSON (etcd v3.4, api_reference_v3: protobuf's JSON mapping): bytes are base64, 64-bit numbers are texts, fields that are
 * zero or empty are left out. What is read may be anything. Pure; any thread. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_JSON_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "loadgen/cluster/etcd/etcd.h"

#define ETCD_ROOT_MAX	96	/* "/rampart/RUN/" */

/* New: bytes as base64; NULL if memory runs out. */
json_t *etcd_bytes(const void *bytes, size_t n);
/* New: a key below `root`, as base64. */
json_t *etcd_key(const char *root, const char *key);
/* New: the first key behind all that begin with ROOT and `key`: etcd's range_end of a prefix. */
json_t *etcd_key_end(const char *root, const char *key);
/* New: a number as a text. */
json_t *etcd_int(int64_t v);

/* The number `name` of an object, written as a number or as a text; 0 if it is missing. False: it is something else. */
bool etcd_read_int(const json_t *object, const char *name, int64_t *out);

/* A key and its value. `memory` is the caller's to free. */
struct etcd_kv {
	struct etcd_entry entry;		/* its key is without `root` */
	char *memory;
};
/* False: it is none, of another root, larger than etcd.h allows, or memory runs out; nothing is to be freed then. */
bool etcd_read_kv(const json_t *kv, const char *root, struct etcd_kv *out);

/* True for a key that can be: [A-Za-z0-9._/-], 1 to ETCD_KEY_MAX. */
bool etcd_key_is_valid(const char *key);

#endif
