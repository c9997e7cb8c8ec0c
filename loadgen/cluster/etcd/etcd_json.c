/* SPDX-License-Identifier: BSD-2-Clause */
/* etcd's JSON. See etcd_json.h. */
#include "loadgen/cluster/etcd/etcd_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

json_t *etcd_bytes(const void *bytes, size_t n)
{
	unsigned char *text = malloc((n + 2) / 3 * 4 + 1);
	json_t *out = NULL;

	if (text) {
		int length = EVP_EncodeBlock(text, bytes, (int)n);

		out = json_stringn((const char *)text, (size_t)length);
	}
	free(text);
	return out;
}

/* Adds `more` to the last byte of the key, which cannot overflow because keys are ASCII. */
static json_t *key_bytes(const char *root, const char *key, int more)
{
	char text[ETCD_ROOT_MAX + ETCD_KEY_MAX + 1];
	int n = snprintf(text, sizeof(text), "%s%s", root, key);

	text[n - 1] = (char)(text[n - 1] + more);
	return etcd_bytes(text, (size_t)n);
}

json_t *etcd_key(const char *root, const char *key)
{
	return key_bytes(root, key, 0);
}

json_t *etcd_key_end(const char *root, const char *key)
{
	return key_bytes(root, key, 1);
}

json_t *etcd_int(int64_t v)
{
	return json_sprintf("%" PRId64, v);
}

bool etcd_read_int(const json_t *object, const char *name, int64_t *out)
{
	const json_t *v = json_object_get(object, name);
	const char *text = json_string_value(v);
	char *end;

	*out = json_integer_value(v);
	if (!v || json_is_integer(v))
		return true;
	if (!text || !*text || strlen(text) > 20)
		return false;
	errno = 0;
	*out = strtoll(text, &end, 10);
	return !*end && errno == 0;
}

/* Decodes base64 into `out`, which has room for `n` bytes. Returns the number of bytes, or -1. */
static ssize_t decode(const char *text, size_t n, char *out)
{
	int bytes;

	if (n % 4 != 0)
		return -1;
	bytes = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)text, (int)n);
	if (bytes < 0)
		return -1;
	/* EVP_DecodeBlock counts the padding as decoded bytes. */
	for (size_t i = n; i > 0 && i > n - 2 && text[i - 1] == '='; i--)
		bytes--;
	return bytes;
}

bool etcd_key_is_valid(const char *key)
{
	size_t n = strlen(key);

	return n >= 1 && n <= ETCD_KEY_MAX &&
	       strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-") == n;
}

bool etcd_read_kv(const json_t *kv, const char *root, struct etcd_kv *out)
{
	const char *key = json_string_value(json_object_get(kv, "key"));
	const json_t *v = json_object_get(kv, "value");
	const char *value = v ? json_string_value(v) : "";
	size_t key_n, value_n, root_n = strlen(root);
	ssize_t n;

	if (!key || !value || !etcd_read_int(kv, "create_revision", &out->entry.created) ||
	    !etcd_read_int(kv, "mod_revision", &out->entry.written))
		return false;
	key_n = strlen(key);
	value_n = v ? json_string_length(v) : 0;
	if (key_n > 2 * (ETCD_ROOT_MAX + ETCD_KEY_MAX) || value_n > ETCD_VALUE_MAX / 3 * 4 + 8)
		return false;
	out->memory = malloc(key_n + 1 + value_n + 1);
	if (!out->memory)
		return false;
	n = decode(key, key_n, out->memory);
	if (n < 0)
		goto wrong;
	out->memory[n] = '\0';
	if (strlen(out->memory) != (size_t)n || strncmp(out->memory, root, root_n) != 0 ||
	    !etcd_key_is_valid(out->memory + root_n))
		goto wrong;
	out->entry.key = out->memory + root_n;
	n = decode(value, value_n, out->memory + key_n + 1);
	if (n < 0 || n > ETCD_VALUE_MAX)
		goto wrong;
	out->memory[key_n + 1 + (size_t)n] = '\0';
	out->entry.value = out->memory + key_n + 1;
	out->entry.bytes = (size_t)n;
	return true;
wrong:
	free(out->memory);
	return false;
}
