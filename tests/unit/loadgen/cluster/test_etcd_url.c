/* SPDX-License-Identifier: BSD-2-Clause */
/* URLs of a run's etcd, and etcd's JSON with any bytes. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/cluster/etcd/etcd_url.h"
#include "loadgen/cluster/etcd/etcd_json.h"

TEST(url__well_formed__read_and_written_again)
{
	static const char *const urls[] = {
		"etcd://host1:2379/RUN", "etcds://10.0.0.9:1/a.b_c-D9", "etcd://[fe80::1%2]:65535/r?token=a~b._-Z",
		"etcd://[::1]:2379/r",
	};
	char err[512], text[ETCD_URL_MAX];
	struct etcd_url u;

	for (size_t i = 0; i < N_ELEMENTS(urls); i++) {
		assert_int_equal(etcd_url_parse(urls[i], &u, err, sizeof(err)), 0);
		assert_string_equal(etcd_url_secret(&u, text), urls[i]);
	}
	assert_string_equal(u.host, "[::1]");
}

TEST(url__malformed__one_line_without_the_token)
{
	static const char *const urls[] = {
		"", "host:2379/r", "http://h:1/r", "etcd://", "etcd://:1/r", "etcd://h/r", "etcd://h:/r", "etcd://h:0/r",
		"etcd://h:65536/r", "etcd://h:-1/r", "etcd://h:1", "etcd://h:1/", "etcd://h:1/a/b", "etcd://h:1/a b",
		"etcd://[::1:1/r", "etcd://::1:1/r", "etcd://h:1/r?token=", "etcd://h:1/r?token=se cret", "etcd://h:1/r?t=secret",
		"etcd://u@h:1/r", "etcd://h:1/r?token=secret#secret", "etcd://h:99999999999999999999999/r",
		"etcd://h:1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	char err[512];
	struct etcd_url u;

	for (size_t i = 0; i < N_ELEMENTS(urls); i++) {
		assert_int_equal(etcd_url_parse(urls[i], &u, err, sizeof(err)), -EINVAL);
		assert_null(strstr(err, "secret"));
		assert_null(strchr(err, '\n'));
		assert_non_null(strstr(err, "allowed: etcd://HOST:PORT/RUN[?token=SECRET]"));
	}
}

TEST(redact__arguments__hides_the_token_only)
{
	char one[] = "--join=etcd://h:1/r?token=secret", two[] = "etcd://h:1/r", three[] = "--label=a?token=b";

	etcd_url_redact(one);
	etcd_url_redact(two);
	etcd_url_redact(three);
	assert_string_equal(one, "--join=etcd://h:1/r?token=******");
	assert_string_equal(two, "etcd://h:1/r");
	assert_string_equal(three, "--label=a?token=b");
}

TEST(bytes__any__read_back)
{
	unsigned char bytes[300];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	for (size_t n = 0; n < sizeof(bytes); n++) {
		json_t *kv = json_pack("{s:o, s:o, s:s, s:i}", "key", etcd_key("/rampart/r/", "k/1"), "value", etcd_bytes(bytes, n),
				       "mod_revision", "7", "create_revision", 5);
		struct etcd_kv out;

		assert_true(etcd_read_kv(kv, "/rampart/r/", &out));
		assert_string_equal(out.entry.key, "k/1");
		assert_int_equal(out.entry.bytes, n);
		assert_memory_equal(out.entry.value, bytes, n);
		assert_int_equal(((const char *)out.entry.value)[n], 0);
		assert_int_equal(out.entry.written, 7);
		assert_int_equal(out.entry.created, 5);
		free(out.memory);
		json_decref(kv);
	}
}

TEST(kv__hostile__refused)
{
	/* Something is wrong in each; L3JhbXBhcnQvci9r is "/rampart/r/k" in base64. */
	static const char *const texts[] = {
		"{}", "[]", "null", "{\"key\":1}", "{\"key\":\"L3JhbXBhcnQvci8=\"}", "{\"key\":\"!!!!\"}",
		"{\"key\":\"L3JhbXBhcnQvci9r\",\"value\":7}", "{\"key\":\"L3JhbXBhcnQvci9r\",\"value\":\"a\"}",
		"{\"key\":\"L3JhbXBhcnQvci9r\",\"mod_revision\":\"x\"}", "{\"key\":\"L3JhbXBhcnQvci9r\",\"mod_revision\":[]}",
		"{\"key\":\"L3JhbXBhcnQvci9r\",\"create_revision\":\"99999999999999999999\"}",
		"{\"key\":\"L290aGVyL3Iv\"}", "{\"key\":\"L3JhbXBhcnQvci8KYQ==\"}", "{\"key\":\"L3JhbXBhcnQvci8AYQ==\"}",
	};

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		json_t *kv = json_loads(texts[i], JSON_DECODE_ANY, NULL);
		struct etcd_kv out;

		assert_non_null(kv);
		assert_false(etcd_read_kv(kv, "/rampart/r/", &out));
		json_decref(kv);
	}
}
