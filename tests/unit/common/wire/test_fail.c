/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/fail.c and common/wire/fail_table.c: names, advice, counting, overflow. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "common/wire/fail_table.h"
#include "common/wire/frame.h"

TEST(stage_names__all__words_of_their_own)
{
	for (int i = 0; i < STAGE_N; i++) {
		assert_non_null(stage_names[i]);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(stage_names[i], stage_names[j]);
	}
	assert_string_equal(stage_names[STAGE_TCP_CONNECT], "tcp_connect");
	assert_string_equal(stage_names[STAGE_FIRST_REPLY], "first_reply");
	assert_string_equal(stage_names[STAGE_TRAFFIC], "traffic");
	assert_string_equal(stage_names[STAGE_DISCONNECT], "disconnect");
}

TEST(code_text__every_kind__kind_and_name)
{
	static const struct {
		enum fail_kind kind;
		int code;
		const char *text;
	} cases[] = {
		{ FAIL_NONE, 0, "none:none" },
		{ FAIL_ERRNO, ECONNREFUSED, "errno:ECONNREFUSED" },
		{ FAIL_ERRNO, ENOMEM, "errno:ENOMEM" },
		{ FAIL_ERRNO, 99999, "errno:99999" },
		{ FAIL_TLS, 0, "tls:error" },
		{ FAIL_TLS, 42, "tls:bad_certificate" },
		{ FAIL_TLS, 48, "tls:unknown_ca" },
		{ FAIL_TLS, 116, "tls:certificate_required" },
		{ FAIL_TLS, 120, "tls:no_application_protocol" },
		{ FAIL_TLS, 250, "tls:250" },
		{ FAIL_CERTIFICATE, 10, "certificate:10" },
		{ FAIL_REFUSED, REFUSE_FULL, "refused:full" },
		{ FAIL_REFUSED, REFUSE_BAD_HMAC, "refused:bad_hmac" },
		{ FAIL_REFUSED, 999, "refused:unknown" },
		{ FAIL_CM_STATUS, 8, "cm:8" },
		{ FAIL_CM_STATUS, 10, "cm:stale" },
		{ FAIL_REFUSED, REFUSE_STALE, "refused:stale" },
		{ FAIL_CM_STATUS, -110, "cm:-110" },
		{ FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR, "wc:retry_exceeded" },
		{ FAIL_WC_STATUS, IBV_WC_WR_FLUSH_ERR, "wc:flushed" },
		{ FAIL_WC_STATUS, IBV_WC_REM_ACCESS_ERR, "wc:remote_access" },
		{ FAIL_WC_STATUS, IBV_WC_GENERAL_ERR, "wc:21" },
		{ FAIL_TIMEOUT, 0, "timeout" },
		{ FAIL_PROTOCOL, PROTO_BAD_FRAME, "protocol:bad_frame" },
		{ FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME, "protocol:unexpected_frame" },
		{ FAIL_PROTOCOL, PROTO_BAD_MESSAGE, "protocol:bad_message" },
		{ FAIL_PROTOCOL, PROTO_BAD_PAYLOAD, "protocol:bad_payload" },
		{ FAIL_PROTOCOL, PROTO_BAD_PROOF, "protocol:bad_proof" },
		{ FAIL_PROTOCOL, PROTO_REDIRECTED, "protocol:redirected" },
		{ FAIL_PROTOCOL, PROTO_CREDITS, "protocol:credits_exceeded" },
		{ FAIL_PROTOCOL, PROTO_PSN_MISMATCH, "protocol:psn_mismatch" },
		{ FAIL_PROTOCOL, PROTO_NO_DEVICE, "protocol:no_device" },
		{ FAIL_PROTOCOL, 99, "protocol:99" },
		{ FAIL_CLOSED, 0, "closed_by_peer" },
		{ FAIL_CLOSED, REFUSE_DRAINING, "draining" },
		{ FAIL_KIND_N, 5, "unknown:5" },
		{ FAIL_TLS, FAIL_CODE_OTHER, "tls:other" },
		{ FAIL_CERTIFICATE, FAIL_CODE_OTHER, "certificate:other" },
		{ FAIL_REFUSED, FAIL_CODE_OTHER, "refused:other" },
		{ FAIL_CM_STATUS, FAIL_CODE_OTHER, "cm:other" },
	};
	char text[96];

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct fail f = { .kind = cases[i].kind, .code = cases[i].code };

		assert_string_equal(fail_code_text(&f, text, sizeof(text)), cases[i].text);
	}
}

TEST(code_text__small_buffer__cut_not_overrun)
{
	struct fail f = { .kind = FAIL_ERRNO, .code = ECONNREFUSED };
	char *text = malloc(8);

	assert_string_equal(fail_code_text(&f, text, 8), "errno:E");
	free(text);
}

TEST(advice__every_kind_and_code__a_sentence)
{
	for (int kind = 0; kind <= FAIL_KIND_N; kind++) {
		for (int code = -1; code < 200; code++) {
			struct fail f = { .kind = (enum fail_kind)kind, .code = code };
			const char *advice = fail_advice(&f);

			assert_non_null(advice);
			assert_true(strlen(advice) > 5);
		}
	}
}

TEST(advice__what_can_be_mended__names_the_option)
{
	static const struct {
		enum fail_kind kind;
		int code;
		const char *word;
	} cases[] = {
		{ FAIL_ERRNO, ECONNREFUSED, "--tls-port" },
		{ FAIL_ERRNO, EMFILE, "ulimit -n" },
		{ FAIL_ERRNO, ENOMEM, "ulimit -l" },
		{ FAIL_REFUSED, REFUSE_FULL, "--max-clients" },
		{ FAIL_REFUSED, REFUSE_UNSUPPORTED, "--message-size" },
		{ FAIL_CERTIFICATE, 10, "--ca" },
		{ FAIL_WC_STATUS, IBV_WC_RNR_RETRY_EXC_ERR, "--srq-depth" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct fail f = { .kind = cases[i].kind, .code = cases[i].code };

		assert_says(fail_advice(&f), cases[i].word);
	}
}

static struct fail_table a, b;

static int clear(void **state)
{
	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	return 0;
}

static struct fail refused(int code)
{
	return (struct fail){ .stage = STAGE_PSN_EXCHANGE, .kind = FAIL_REFUSED, .code = code };
}

static void count_n(struct fail_table *t, struct fail f, int n)
{
	while (n--)
		fail_table_count(t, &f);
}

static json_int_t count_of(const json_t *rows, size_t i)
{
	return json_integer_value(json_object_get(json_array_get(rows, i), "count"));
}

static const char *string_of(const json_t *rows, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(rows, i), key));
}

TEST_WITH(table__same_failure__one_row, clear, NULL)
{
	struct fail timeout = { .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_TIMEOUT };
	json_auto_t *rows = NULL;

	count_n(&a, timeout, 2);
	count_n(&a, refused(REFUSE_FULL), 3);
	assert_int_equal(fail_table_total(&a), 5);
	rows = fail_table_json(&a);
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(count_of(rows, 0), 3);
	assert_string_equal(string_of(rows, 0, "code"), "refused:full");
	assert_string_equal(string_of(rows, 0, "stage"), "psn_exchange");
	assert_non_null(string_of(rows, 0, "meaning"));
	assert_int_equal(count_of(rows, 1), 2);
	assert_string_equal(string_of(rows, 1, "code"), "timeout");
}

TEST_WITH(table__stage_kind_or_code_differs__own_rows, clear, NULL)
{
	struct fail f = refused(1);
	json_auto_t *rows = NULL;

	count_n(&a, f, 1);
	f.stage = STAGE_RDMA_CONNECT;
	count_n(&a, f, 1);
	f.kind = FAIL_CM_STATUS;
	count_n(&a, f, 1);
	f.code = 8;
	count_n(&a, f, 1);
	rows = fail_table_json(&a);
	assert_int_equal(json_array_size(rows), 4);
}

TEST_WITH(table__empty__empty_array, clear, NULL)
{
	json_auto_t *rows = fail_table_json(&a);

	assert_true(json_is_array(rows));
	assert_int_equal(json_array_size(rows), 0);
	assert_int_equal(fail_table_total(&a), 0);
}

static struct fail error(int code)
{
	return (struct fail){ .stage = STAGE_TCP_CONNECT, .kind = FAIL_ERRNO, .code = code };
}

TEST_WITH(table__more_kinds_than_rows__a_row_of_no_stage_takes_the_rest, clear, NULL)
{
	struct fail top;
	uint64_t count;
	json_auto_t *rows = NULL;

	for (int code = 0; code < FAIL_TABLE_MAX + 50; code++)
		count_n(&a, error(1000 + code), 1);
	count_n(&a, error(1000), 4);
	assert_int_equal(fail_table_total(&a), FAIL_TABLE_MAX + 54);
	rows = fail_table_json(&a);
	assert_int_equal(json_array_size(rows), FAIL_TABLE_MAX + 1);
	assert_int_equal(count_of(rows, 0), 50);
	assert_string_equal(string_of(rows, 0, "stage"), "any");
	assert_string_equal(string_of(rows, 0, "code"), "other");
	assert_int_equal(count_of(rows, 1), 5);
	assert_true(fail_table_top(&a, &top, &count));
	assert_int_equal(top.code, 1000);
	assert_int_equal(count, 5);
}

/* All codes of the kinds whose codes a peer chooses, at every stage of a connection. */
static void poison(struct fail_table *t)
{
	static const enum fail_kind kinds[] = { FAIL_TLS, FAIL_CERTIFICATE, FAIL_REFUSED, FAIL_CM_STATUS };
	static const enum stage stages[] = { STAGE_TLS_HANDSHAKE, STAGE_PSN_EXCHANGE, STAGE_RDMA_CONNECT };

	for (size_t s = 0; s < N_ELEMENTS(stages); s++)
		for (size_t k = 0; k < N_ELEMENTS(kinds); k++)
			for (int code = 1; code < 65536; code++)
				count_n(t, (struct fail){ .stage = stages[s], .kind = kinds[k], .code = code }, 1);
}

static bool has_row(const json_t *rows, const char *stage, const char *code, json_int_t count)
{
	for (size_t i = 0; i < json_array_size(rows); i++)
		if (strcmp(string_of(rows, i, "stage"), stage) == 0 && strcmp(string_of(rows, i, "code"), code) == 0)
			return count_of(rows, i) == count;
	return false;
}

TEST_WITH(table__every_code_a_peer_can_choose__room_for_what_comes_later, clear, NULL)
{
	json_auto_t *rows = NULL;

	poison(&a);
	assert_int_equal(fail_table_total(&a), 3 * 4 * 65535);
	assert_true(a.n <= FAIL_TABLE_MAX - 64);
	assert_int_equal(counter_get(&a.overflow), 0);
	for (int code = 1; code <= 64; code++)
		count_n(&a, error(code), 1);
	fail_table_add(&b, &a);
	rows = fail_table_json(&b);
	assert_true(has_row(rows, "tcp_connect", "errno:EPERM", 1));
	assert_true(has_row(rows, "tls_handshake", "tls:unknown_ca", 1));
	assert_true(has_row(rows, "tls_handshake", "certificate:10", 1));
	assert_true(has_row(rows, "rdma_connect", "refused:full", 1));
	assert_true(has_row(rows, "rdma_connect", "cm:stale", 1));
	assert_false(has_row(rows, "any", "other", 1));
}

TEST_WITH(table__unusual_codes__one_row_of_their_stage_and_kind, clear, NULL)
{
	json_auto_t *rows = NULL;

	for (int alert = 200; alert < 256; alert++)
		count_n(&a, (struct fail){ .stage = STAGE_TLS_HANDSHAKE, .kind = FAIL_TLS, .code = alert }, 1);
	count_n(&a, (struct fail){ .stage = STAGE_PSN_EXCHANGE, .kind = FAIL_TLS, .code = 200 }, 2);
	count_n(&a, refused(999), 3);
	rows = fail_table_json(&a);
	assert_int_equal(json_array_size(rows), 3);
	assert_true(has_row(rows, "tls_handshake", "tls:other", 56));
	assert_true(has_row(rows, "psn_exchange", "tls:other", 2));
	assert_true(has_row(rows, "psn_exchange", "refused:other", 3));
}

TEST_WITH(table_add__common_and_new_rows__summed, clear, NULL)
{
	json_t *rows;

	count_n(&a, refused(REFUSE_FULL), 3);
	count_n(&b, refused(REFUSE_FULL), 4);
	count_n(&b, refused(REFUSE_BUSY), 1);
	fail_table_add(&a, &b);
	assert_int_equal(fail_table_total(&a), 8);
	rows = fail_table_json(&a);
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(count_of(rows, 0), 7);
	json_decref(rows);
	assert_int_equal(fail_table_total(&b), 5);
}

TEST_WITH(table_add__both_overflowed__total_kept, clear, NULL)
{
	for (int code = 0; code < 2 * FAIL_TABLE_MAX; code++) {
		count_n(&a, error(code), 1);
		count_n(&b, error(1000 + code), 2);
	}
	fail_table_add(&a, &b);
	assert_int_equal(fail_table_total(&a), 6 * FAIL_TABLE_MAX);
	assert_int_equal(counter_get(&a.overflow), 5 * FAIL_TABLE_MAX);
}

TEST_WITH(table_reset__full__empty_and_usable, clear, NULL)
{
	for (int code = 0; code < 2 * FAIL_TABLE_MAX; code++)
		count_n(&a, error(code), 1);
	fail_table_reset(&a);
	assert_int_equal(fail_table_total(&a), 0);
	count_n(&a, refused(3), 2);
	assert_int_equal(fail_table_total(&a), 2);
}
