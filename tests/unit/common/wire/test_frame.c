/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/frame.c: layouts against hand-written bytes, ranges, truncation,
 * mutation. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/be.h"
#include "common/wire/frame.h"

static const uint8_t hello_bytes[FRAME_HELLO_BYTES] = {
	0, 0, 0, 64, 3, 1, 0, 0,  0, 0, 0x10, 0,  0, 16,  0, 9,  0, 0xab, 0xcd, 0xef,  0, 1, 0x86, 0xa0,
	0, 0, 0x7e, 0x21, 0x32, 0x43, 0x50, 0,  0, 0, 0x20, 0,  0xca, 0xfe, 0xba, 0xbe,
};
static const struct frame_hello hello = { .message_bytes = 4096, .queue_depth = 16, .features = 9, .psn = 0xabcdef,
					  .region_bytes = 100000,
					  .window = { UINT64_C(0x7e2132435000), 8192, 0xcafebabe } };

static const uint8_t grant_bytes[FRAME_GRANT_BYTES] = {
	0, 0, 0, 104, 3, 2, 0, 0,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	0, 0x12, 0x34, 0x56,  0, 0, 0x20, 0,  0, 16,  0, 1,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3,
	0x1d, 0x30,  0, 0,  0, 0, 0x75, 0x30,
	0, 0, 0x7f, 1, 0x23, 0x45, 0x60, 0,  0, 0, 0x10, 0,  0xde, 0xad, 0xbe, 0xef,  0, 0, 0, 0,
};

static struct frame_grant a_grant(void)
{
	struct frame_grant g = { .psn = 0x123456,
				 .message_bytes = 8192,
				 .credits = 16,
				 .features = 1,
				 .expires_ms = 30000,
				 .region_addr = UINT64_C(0x7f0123456000),
				 .region_bytes = 4096,
				 .region_rkey = 0xdeadbeef };

	for (int i = 0; i < FRAME_SESSION_BYTES; i++)
		g.session[i] = (uint8_t)i;
	assert_int_equal(addr_parse("10.1.2.3", 7472, &g.rdma), 0);
	return g;
}

/* The frame that was decoded last, and why it was refused; "": it was not. */
static struct frame_hello decoded_hello;
static struct frame_grant decoded_grant;
static struct frame_refuse decoded_refuse;
static struct frame_control decoded_control;
static const char *why;

static int decode_hello(const uint8_t *buf, size_t n)
{
	why = "";
	return frame_decode_hello(buf, n, &decoded_hello, &why);
}

static int decode_grant(const uint8_t *buf, size_t n)
{
	why = "";
	return frame_decode_grant(buf, n, &decoded_grant, &why);
}

static int decode_refuse(const uint8_t *buf, size_t n)
{
	why = "";
	return frame_decode_refuse(buf, n, &decoded_refuse, &why);
}

static int decode_control(const uint8_t *buf, size_t n)
{
	why = "";
	return frame_decode_control(buf, n, &decoded_control, &why);
}

TEST(hello__vector__exact_both_ways)
{
	uint8_t out[FRAME_HELLO_BYTES];

	memset(out, 0xa5, sizeof(out));
	assert_int_equal(frame_encode_hello(&hello, out), sizeof(out));
	assert_memory_equal(out, hello_bytes, sizeof(out));
	assert_int_equal(decode_hello(out, sizeof(out)), 0);
	assert_int_equal(decoded_hello.message_bytes, hello.message_bytes);
	assert_int_equal(decoded_hello.queue_depth, hello.queue_depth);
	assert_int_equal(decoded_hello.features, hello.features);
	assert_int_equal(decoded_hello.psn, hello.psn);
	assert_int_equal(decoded_hello.region_bytes, hello.region_bytes);
	assert_true(decoded_hello.window.addr == hello.window.addr);
	assert_int_equal(decoded_hello.window.bytes, hello.window.bytes);
	assert_int_equal(decoded_hello.window.rkey, hello.window.rkey);
}

TEST(grant__vector__exact_both_ways)
{
	struct frame_grant g = a_grant();
	uint8_t out[FRAME_GRANT_BYTES];

	memset(out, 0xa5, sizeof(out));
	assert_int_equal(frame_encode_grant(&g, out), sizeof(out));
	assert_memory_equal(out, grant_bytes, sizeof(out));
	assert_int_equal(decode_grant(out, sizeof(out)), 0);
	assert_memory_equal(decoded_grant.session, g.session, sizeof(g.session));
	assert_int_equal(decoded_grant.psn, g.psn);
	assert_int_equal(decoded_grant.message_bytes, g.message_bytes);
	assert_int_equal(decoded_grant.credits, g.credits);
	assert_int_equal(decoded_grant.features, g.features);
	assert_true(addr_same_host(&decoded_grant.rdma, &g.rdma));
	assert_int_equal(addr_port(&decoded_grant.rdma), 7472);
	assert_int_equal(decoded_grant.expires_ms, g.expires_ms);
	assert_true(decoded_grant.region_addr == g.region_addr);
	assert_int_equal(decoded_grant.region_bytes, g.region_bytes);
	assert_int_equal(decoded_grant.region_rkey, g.region_rkey);
}

TEST(grant__ipv6__survives)
{
	struct frame_grant g = a_grant();
	uint8_t out[FRAME_GRANT_BYTES];

	assert_int_equal(addr_parse("2001:db8::5", 9, &g.rdma), 0);
	frame_encode_grant(&g, out);
	assert_int_equal(decode_grant(out, sizeof(out)), 0);
	assert_int_equal(decoded_grant.rdma.ss.ss_family, AF_INET6);
	assert_true(addr_same_host(&decoded_grant.rdma, &g.rdma));
}

TEST(refuse__vector__exact_both_ways)
{
	static const uint8_t expected[] = {
		0, 0, 0, 16, 3, 3, 0, 0, 0, 2, 0, 4, 'f', 'u', 'l', 'l'
	};
	uint8_t out[FRAME_REFUSE_BYTES_MAX];

	assert_int_equal(frame_encode_refuse(REFUSE_FULL, "full", out), sizeof(expected));
	assert_memory_equal(out, expected, sizeof(expected));
	assert_int_equal(decode_refuse(out, sizeof(expected)), 0);
	assert_int_equal(decoded_refuse.code, REFUSE_FULL);
	assert_string_equal(decoded_refuse.text, "full");
}

TEST(refuse__long_text__cut_to_the_limit)
{
	uint8_t *out = malloc(FRAME_REFUSE_BYTES_MAX);
	char text[300];
	size_t n;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	n = frame_encode_refuse(1, text, out);
	assert_int_equal(n, FRAME_REFUSE_BYTES_MAX);
	assert_int_equal(decode_refuse(out, n), 0);
	assert_int_equal(strlen(decoded_refuse.text), FRAME_REFUSE_TEXT_MAX);
	free(out);
}

TEST(refuse__control_characters__made_harmless)
{
	uint8_t out[FRAME_REFUSE_BYTES_MAX];
	size_t n = frame_encode_refuse(1, "a\x1b[2J\x7f\xff~ b", out);

	assert_int_equal(decode_refuse(out, n), 0);
	assert_string_equal(decoded_refuse.text, "a?[2J??~ b");
}

TEST(control__every_request__exact_and_four_known)
{
	uint8_t expected[FRAME_CONTROL_BYTES] = { 0, 0, 0, 12, FRAME_VERSION, 4, 0, 0, 0, 3, 0, 0 };
	uint8_t out[FRAME_CONTROL_BYTES];

	assert_int_equal(frame_encode_control(CONTROL_MARK, out), sizeof(out));
	assert_memory_equal(out, expected, sizeof(out));
	for (uint32_t v = 0; v <= UINT16_MAX; v++) {
		be_put16(out + 8, (uint16_t)v);
		be_put16(out + 10, v == CONTROL_WATCH ? 1000 : 0);
		assert_int_equal(decode_control(out, sizeof(out)),
				 v >= 1 && v <= 4 ? 0 : -EPROTO);
		if (v >= 1 && v <= 4)
			assert_int_equal(decoded_control.what, v);
	}
	be_put16(out + 8, 1);
	be_put16(out + 10, 1);
	assert_int_equal(decode_control(out, sizeof(out)), -EPROTO);
}

TEST(control__every_interval_of_watch__100_to_60000)
{
	uint8_t expected[FRAME_CONTROL_BYTES] = { 0, 0, 0, 12, FRAME_VERSION, 4, 0, 0, 0, 4, 0x03, 0xe8 };
	uint8_t out[FRAME_CONTROL_BYTES];

	assert_int_equal(frame_encode_watch(1000, out), sizeof(out));
	assert_memory_equal(out, expected, sizeof(out));
	for (uint32_t ms = 0; ms <= UINT16_MAX; ms++) {
		(void)frame_encode_watch((uint16_t)ms, out);
		assert_int_equal(decode_control(out, sizeof(out)),
				 ms >= 100 && ms <= 60000 ? 0 : -EPROTO);
		if (ms >= 100 && ms <= 60000)
			assert_int_equal(decoded_control.interval_ms, ms);
		else
			assert_says(why, "100 to 60000");
	}
}

TEST(report_header__length__exact)
{
	static const uint8_t expected[] = { 0, 0, 0, 0x6c, 3, 5, 0, 0 };
	uint8_t out[FRAME_HEADER_BYTES];

	assert_int_equal(frame_encode_report_header(100, out), sizeof(out));
	assert_memory_equal(out, expected, sizeof(out));
}

TEST(header__lengths_and_reserved__checked)
{
	static const struct {
		uint32_t length, max;
		uint16_t reserved;
		int ret;
	} cases[] = {
		{ 8, 40, 0, 0 },
		{ 40, 40, 0, 0 },
		{ 7, 40, 0, -EPROTO },
		{ 0, 40, 0, -EPROTO },
		{ 41, 40, 0, -EPROTO },
		{ UINT32_MAX, 40, 0, -EPROTO },
		{ 0x80000000, 1u << 20, 0, -EPROTO },
		{ 8, 40, 1, -EPROTO },
		{ 8, 40, 0x8000, -EPROTO },
		{ 1u << 20, 1u << 20, 0, 0 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint8_t buf[FRAME_HEADER_BYTES] = { [4] = 9, [5] = 77 };
		struct frame_header h;

		be_put32(buf, cases[i].length);
		be_put16(buf + 6, cases[i].reserved);
		assert_int_equal(frame_decode_header(buf, cases[i].max, &h), cases[i].ret);
		assert_int_equal(h.length, cases[i].length);
		assert_int_equal(h.version, 9);
		assert_int_equal(h.type, 77);
	}
}

struct field_case {
	size_t offset, size;
	uint32_t value;
	bool good;
	const char *why;	/* how the refusal begins */
};

static void put_field(uint8_t *buf, const struct field_case *f)
{
	if (f->size == 4)
		be_put32(buf + f->offset, f->value);
	else
		be_put16(buf + f->offset, (uint16_t)f->value);
}

TEST(hello__every_field_at_its_bounds__range_checked)
{
	static const struct field_case cases[] = {
		{ 8, 4, 15, false, "HELLO message size" },
		{ 8, 4, 16, true, "" },
		{ 8, 4, 1 << 20, true, "" },
		{ 8, 4, (1 << 20) + 1, false, "HELLO message size" },
		{ 8, 4, 0, false, "HELLO message size" },
		{ 8, 4, UINT32_MAX, false, "HELLO message size" },
		{ 12, 2, 0, false, "HELLO queue depth" },
		{ 12, 2, 1, true, "" },
		{ 12, 2, 1024, true, "" },
		{ 12, 2, 1025, false, "HELLO queue depth" },
		{ 12, 2, 65535, false, "HELLO queue depth" },
		{ 14, 2, 9, true, "" },
		{ 14, 2, 15, true, "" },
		{ 14, 2, 16, false, "HELLO features" },
		{ 14, 2, 31, false, "HELLO features" },
		{ 14, 2, 0x2f, true, "" },
		{ 14, 2, 0x40, false, "HELLO psn" },	/* over a socket there is none */
		{ 14, 2, 0x80, false, "HELLO psn" },
		{ 14, 2, 0x41, false, "HELLO features" },
		{ 14, 2, 0x88, false, "HELLO features" },
		{ 14, 2, 0xc0, false, "HELLO features" },
		{ 14, 2, 0x109, false, "HELLO queue pair" },
		{ 14, 2, 0x209, true, "" },
		{ 14, 2, 0x240, false, "HELLO features" },
		{ 14, 2, 0x280, false, "HELLO features" },
		{ 14, 2, 0x400, false, "HELLO features" },
		{ 14, 2, 0x8000, false, "HELLO features" },
		/* A window is of a region. */
		{ 14, 2, 8, false, "HELLO window" },
		{ 14, 2, 14, false, "HELLO window" },
		/* Nothing is said of one that is not asked for. */
		{ 14, 2, 0, false, "HELLO window" },
		{ 14, 2, 7, false, "HELLO window" },
		{ 16, 4, 0, true, "" },
		{ 16, 4, 0xffffff, true, "" },
		{ 16, 4, 0x1000000, false, "HELLO psn" },
		{ 16, 4, UINT32_MAX, false, "HELLO psn" },
		{ 20, 4, 0, true, "" },
		{ 20, 4, 1u << 31, true, "" },
		{ 20, 4, (1u << 31) + 1, false, "HELLO region size" },
		{ 32, 4, 0, false, "HELLO window" },
		{ 32, 4, 1, true, "" },
		{ 32, 4, 1u << 31, true, "" },
		{ 32, 4, (1u << 31) + 1, false, "HELLO window" },
		{ 36, 4, 0, true, "" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint8_t buf[FRAME_HELLO_BYTES];

		memcpy(buf, hello_bytes, sizeof(buf));
		put_field(buf, &cases[i]);
		assert_int_equal(decode_hello(buf, sizeof(buf)),
				 cases[i].good ? 0 : -EPROTO);
		assert_memory_equal(why, cases[i].why, strlen(cases[i].why));
	}
}

TEST(hello__writes_with_immediate_data__with_a_region_and_without_tags)
{
	static const struct { uint16_t features; bool good; } cases[] = {
		{ FRAME_FEATURE_WRITE_IMM, false }, { FRAME_FEATURE_WRITE_IMM | FRAME_FEATURE_REGION, true },
		{ FRAME_FEATURE_WRITE_IMM | FRAME_FEATURE_REGION | FRAME_FEATURE_TAGS, false },
		{ FRAME_FEATURE_WRITE_IMM | FRAME_FEATURE_REGION | FRAME_FEATURE_ALL_CREDITS, true },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct frame_hello h = { .message_bytes = 64, .queue_depth = 1, .features = cases[i].features };
		uint8_t buf[FRAME_HELLO_BYTES];

		assert_int_equal(decode_hello(buf, frame_encode_hello(&h, buf)), cases[i].good ? 0 : -EPROTO);
		if (!cases[i].good)
			assert_says(why, "HELLO features");
	}
}

TEST(hello__over_a_socket__one_transport_no_psn_nothing_one_sided)
{
	static const struct { uint16_t features; uint32_t psn; const char *why; } cases[] = {
		{ FRAME_FEATURE_TCP, 0, "" }, { FRAME_FEATURE_TLS, 0, "" },
		{ FRAME_FEATURE_TCP | FRAME_FEATURE_TAGS | FRAME_FEATURE_TICKET | FRAME_FEATURE_ALL_CREDITS, 0, "" },
		{ FRAME_FEATURE_TCP, 1, "HELLO psn" }, { FRAME_FEATURE_TLS, 1, "HELLO psn" }, { 0, 1, "" },
		{ FRAME_FEATURES_SOCKET, 0, "HELLO features" },
		{ FRAME_FEATURE_TCP | FRAME_FEATURE_REGION, 0, "HELLO features" },
		{ FRAME_FEATURE_TLS | FRAME_FEATURE_REGION | FRAME_FEATURE_WRITE_IMM, 0, "HELLO features" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct frame_hello h = { .message_bytes = 64, .queue_depth = 1, .features = cases[i].features,
					 .psn = cases[i].psn };
		uint8_t buf[FRAME_HELLO_BYTES];

		assert_int_equal(decode_hello(buf, frame_encode_hello(&h, buf)), *cases[i].why ? -EPROTO : 0);
		assert_says(why, cases[i].why);
	}
}

static const uint8_t qp_bytes[] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 2,  0, 0, 0x12, 0x34,  0, 5,  4, 16,
};
static const struct frame_qp a_qp = { .gid = { [10] = 0xff, 0xff, 10, 77, 0, 2 }, .qpn = 0x1234, .lid = 5, .mtu = 4,
				      .reads = 16 };

TEST(queue_pair__hello_and_grant__the_same_24_bytes_at_the_end)
{
	struct frame_hello h = { .message_bytes = 64, .queue_depth = 1, .features = FRAME_FEATURE_OOB, .qp = a_qp };
	struct frame_grant g = a_grant();
	uint8_t out[FRAME_GRANT_BYTES];

	assert_int_equal(decode_hello(out, frame_encode_hello(&h, out)), 0);
	assert_memory_equal(out + FRAME_HELLO_BYTES - sizeof(qp_bytes), qp_bytes, sizeof(qp_bytes));
	assert_memory_equal(&decoded_hello.qp, &a_qp, sizeof(a_qp));
	g.features |= FRAME_FEATURE_OOB;
	g.qp = a_qp;
	assert_int_equal(decode_grant(out, frame_encode_grant(&g, out)), 0);
	assert_memory_equal(out + FRAME_GRANT_BYTES - sizeof(qp_bytes), qp_bytes, sizeof(qp_bytes));
	assert_memory_equal(&decoded_grant.qp, &a_qp, sizeof(a_qp));
}

TEST(queue_pair__bounds_and_feature__checked)
{
	static const struct { uint32_t qpn; uint8_t mtu; uint16_t features; bool good; } cases[] = {
		{ 2, 1, FRAME_FEATURE_OOB, true }, { 0xfffffe, 5, FRAME_FEATURE_OOB, true },
		{ 1, 4, FRAME_FEATURE_OOB, false }, { 0xffffff, 4, FRAME_FEATURE_OOB, false },
		{ 0x1000002, 4, FRAME_FEATURE_OOB, false }, { 2, 0, FRAME_FEATURE_OOB, false },
		{ 2, 6, FRAME_FEATURE_OOB, false }, { 2, 1, 0, false }, { 0, 1, 0, false }, { 0, 0, 0, true },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct frame_hello h = { .message_bytes = 64, .queue_depth = 1, .features = cases[i].features,
					 .qp = { .qpn = cases[i].qpn, .mtu = cases[i].mtu } };
		uint8_t buf[FRAME_HELLO_BYTES];

		assert_int_equal(decode_hello(buf, frame_encode_hello(&h, buf)), cases[i].good ? 0 : -EPROTO);
		if (!cases[i].good)
			assert_says(why, "HELLO queue pair");
	}
}

TEST(hello__out_of_band_over_a_socket__refused)
{
	struct frame_hello h = { .message_bytes = 64, .queue_depth = 1,
				 .features = FRAME_FEATURE_OOB | FRAME_FEATURE_TLS, .qp = a_qp };
	uint8_t buf[FRAME_HELLO_BYTES];

	assert_int_equal(decode_hello(buf, frame_encode_hello(&h, buf)), -EPROTO);
	assert_says(why, "HELLO features");
}

TEST(hello__size_of_a_region_that_is_not_asked_for__refused)
{
	struct frame_hello h = { .message_bytes = 64, .queue_depth = 1, .region_bytes = 1 };
	uint8_t buf[FRAME_HELLO_BYTES];

	assert_int_equal(decode_hello(buf, frame_encode_hello(&h, buf)), -EPROTO);
	assert_says(why, "HELLO region size");
	h.features = FRAME_FEATURE_REGION;
	assert_int_equal(decode_hello(buf, frame_encode_hello(&h, buf)), 0);
}

TEST(grant__every_field_at_its_bounds__range_checked)
{
	static const struct field_case cases[] = {
		{ 24, 4, 0xffffff, true, "" },
		{ 24, 4, 0x1000000, false, "GRANT psn" },
		{ 28, 4, 15, false, "GRANT message size" },
		{ 28, 4, (1 << 20) + 1, false, "GRANT message size" },
		{ 28, 4, 16, true, "" },
		{ 32, 2, 0, false, "GRANT credits" },
		{ 32, 2, 1024, true, "" },
		{ 32, 2, 1025, false, "GRANT credits" },
		{ 34, 2, 2, false, "GRANT region" },
		{ 34, 2, 3, true, "" },
		{ 34, 2, 7, true, "" },
		{ 34, 2, 15, true, "" },
		{ 34, 2, 16, false, "GRANT features" },
		{ 34, 2, 0x2f, true, "" },
		{ 34, 2, 0x101, false, "GRANT queue pair" },
		{ 34, 2, 0x8001, false, "GRANT features" },
		{ 34, 2, 0x41, false, "GRANT features" },
		{ 34, 2, 0x40, false, "GRANT psn" },
		{ 34, 2, 0, false, "GRANT region" },
		{ 52, 2, 0, false, "GRANT address" },
		{ 48, 4, 0, false, "GRANT address" },
		{ 54, 2, 1, false, "GRANT reserved" },
		{ 68, 4, 0, false, "GRANT region" },
		{ 68, 4, 1u << 31, true, "" },
		{ 68, 4, (1u << 31) + 1, false, "GRANT region" },
		{ 72, 4, 0, true, "" },
		{ 76, 4, 0x80, false, "GRANT reserved" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint8_t buf[FRAME_GRANT_BYTES];

		memcpy(buf, grant_bytes, sizeof(buf));
		put_field(buf, &cases[i]);
		assert_int_equal(decode_grant(buf, sizeof(buf)),
				 cases[i].good ? 0 : -EPROTO);
		assert_memory_equal(why, cases[i].why, strlen(cases[i].why));
	}
}

TEST(grant__region_that_wraps_around__refused)
{
	uint8_t buf[FRAME_GRANT_BYTES];

	memcpy(buf, grant_bytes, sizeof(buf));
	be_put64(buf + 60, UINT64_MAX - 4096);
	assert_int_equal(decode_grant(buf, sizeof(buf)), 0);
	be_put64(buf + 60, UINT64_MAX - 4095);
	assert_int_equal(decode_grant(buf, sizeof(buf)), -EPROTO);
}

TEST(hello__window_that_wraps_around__refused)
{
	uint8_t buf[FRAME_HELLO_BYTES];

	memcpy(buf, hello_bytes, sizeof(buf));
	be_put64(buf + 24, UINT64_MAX - 8192);
	assert_int_equal(decode_hello(buf, sizeof(buf)), 0);
	be_put64(buf + 24, UINT64_MAX - 8191);
	assert_int_equal(decode_hello(buf, sizeof(buf)), -EPROTO);
}

TEST(hello__no_window_and_all_zero__taken)
{
	uint8_t buf[FRAME_HELLO_BYTES];

	memcpy(buf, hello_bytes, sizeof(buf));
	memset(buf + 20, 0, 20);
	for (uint16_t features = 0; features < 8; features++) {
		be_put16(buf + 14, features);
		assert_int_equal(decode_hello(buf, sizeof(buf)), 0);
	}
	for (size_t i = 24; i < 40; i++) {
		buf[i] = 1;
		assert_int_equal(decode_hello(buf, sizeof(buf)), -EPROTO);
		buf[i] = 0;
	}
}

TEST(grant__no_region_and_all_zero__taken)
{
	uint8_t buf[FRAME_GRANT_BYTES];

	memcpy(buf, grant_bytes, sizeof(buf));
	be_put16(buf + 34, 0);
	memset(buf + 60, 0, 16);
	assert_int_equal(decode_grant(buf, sizeof(buf)), 0);
	for (size_t i = 60; i < 76; i++) {
		buf[i] = 1;
		assert_int_equal(decode_grant(buf, sizeof(buf)), -EPROTO);
		buf[i] = 0;
	}
}

/* Any other length than the right one is refused without a look beyond the end. */
TEST(decoders__every_wrong_length__refused)
{
	uint8_t whole[FRAME_REFUSE_BYTES_MAX + 8] = { 0 };

	for (size_t n = 0; n < sizeof(whole); n++) {
		uint8_t *exact = calloc(1, n ? n : 1);

		memcpy(exact, grant_bytes, n < sizeof(grant_bytes) ? n : sizeof(grant_bytes));
		assert_int_equal(decode_grant(exact, n), n == FRAME_GRANT_BYTES ? 0 : -EPROTO);
		memcpy(exact, hello_bytes, n < sizeof(hello_bytes) ? n : sizeof(hello_bytes));
		assert_int_equal(decode_hello(exact, n), n == FRAME_HELLO_BYTES ? 0 : -EPROTO);
		if (n >= 12)
			be_put32(exact + 8, 1 << 16);
		assert_int_equal(decode_control(exact, n),
				 n == 12 ? 0 : -EPROTO);
		if (n >= 12)
			be_put32(exact + 8, 100);
		assert_int_equal(decode_refuse(exact, n), n == 112 ? 0 : -EPROTO);
		free(exact);
	}
}

static void mutate(uint8_t *buf, size_t n, uint64_t *seed)
{
	unsigned flips = 1 + (unsigned)(unit_random(seed) % 4);

	while (flips--)
		buf[unit_random(seed) % n] ^= (uint8_t)(1 << unit_random(seed) % 8);
}

/* Each frame that decodes is canonical: it encodes to the bytes that it came from. */
TEST(decoders__mutated_frames__canonical_or_refused)
{
	uint64_t seed = 2026;
	unsigned good = 0, bad = 0;

	for (int i = 0; i < 100000; i++) {
		uint8_t *buf = malloc(FRAME_GRANT_BYTES), again[FRAME_GRANT_BYTES];
		bool is_hello = i % 2;
		size_t n = is_hello ? FRAME_HELLO_BYTES : FRAME_GRANT_BYTES;

		memcpy(buf, is_hello ? hello_bytes : grant_bytes, n);
		/* The header is decoded apart. */
		mutate(buf + FRAME_HEADER_BYTES, n - FRAME_HEADER_BYTES, &seed);
		if (is_hello ? decode_hello(buf, n)
			     : decode_grant(buf, n)) {
			bad++;
		} else {
			good++;
			if (is_hello)
				frame_encode_hello(&decoded_hello, again);
			else
				frame_encode_grant(&decoded_grant, again);
			assert_memory_equal(again, buf, n);
		}
		free(buf);
	}
	assert_true(good > 1000 && bad > 1000);
}

TEST(decoders__random_bytes__no_crash)
{
	uint64_t seed = 99;

	for (int i = 0; i < 50000; i++) {
		size_t n = unit_random(&seed) % 200;
		uint8_t *buf = malloc(n ? n : 1);
		struct frame_header head;

		for (size_t j = 0; j < n; j++)
			buf[j] = (uint8_t)unit_random(&seed);
		if (n > 11 && i % 2)
			be_put16(buf + 10, (uint16_t)(n - 12));
		if (n >= FRAME_HEADER_BYTES && frame_decode_header(buf, 200, &head) == 0)
			assert_in_range(head.length, FRAME_HEADER_BYTES, 200);
		(void)!decode_hello(buf, n);
		(void)!decode_grant(buf, n);
		(void)!decode_control(buf, n);
		if (decode_refuse(buf, n) == 0)
			assert_int_equal(strnlen(decoded_refuse.text, sizeof(decoded_refuse.text)), n - 12);
		free(buf);
	}
}

TEST(refuse_code_name__every_number__a_word)
{
	static const struct {
		uint32_t code;
		const char *name;
	} known[] = {
		{ 1, "busy" },        { 2, "full" },         { 3, "bad_request" },
		{ 4, "bad_version" }, { 5, "psn_conflict" }, { 6, "draining" },
		{ 7, "unsupported" }, { 8, "internal" },     { 9, "not_allowed" },
		{ 16, "bad_session" }, { 17, "bad_hmac" },   { 18, "bad_address" },
		{ 19, "no_resources" }, { 20, "stale" },
		{ 21, "unknown" },
	};
	size_t k = 0;

	for (uint32_t code = 0; code < 70000; code++) {
		bool is_known = k < N_ELEMENTS(known) && known[k].code == code;

		assert_string_equal(refuse_code_name(code), is_known ? known[k].name : "unknown");
		k += is_known;
	}
	assert_int_equal(k, N_ELEMENTS(known));
}
