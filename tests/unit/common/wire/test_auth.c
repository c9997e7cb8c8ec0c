/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/auth.c: the HMAC against an independent computation, and the private
 * data. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/auth.h"

/* Computed with Python's hmac module over: 16 session, u32 client QPN, u32 server QPN, 16 client
 * address, u16 port, 16 server address, u16 port. */
static const uint8_t expected4[AUTH_HMAC_BYTES] = {
	0x81, 0xfc, 0x8d, 0x3d, 0xcd, 0xa8, 0x2d, 0x1f,
	0xd6, 0xdb, 0xde, 0xb2, 0x2b, 0x53, 0x6a, 0x62,
	0xdc, 0x37, 0x24, 0x16, 0x3e, 0x1a, 0x28, 0x16,
	0x4b, 0x3c, 0xea, 0x9a, 0x58, 0x35, 0xe5, 0x1a,
};
static const uint8_t expected6[AUTH_HMAC_BYTES] = {
	0xe3, 0xd5, 0xba, 0xd8, 0xa2, 0x8c, 0xcf, 0xdb,
	0x9e, 0x6c, 0x9a, 0xaa, 0x1b, 0x47, 0xcb, 0xb2,
	0x74, 0xc1, 0xa7, 0x99, 0xb3, 0x12, 0x24, 0x34,
	0x85, 0x2c, 0x5d, 0xc1, 0x30, 0x88, 0x5b, 0xdb,
};

/* The same over: 16 session, u32 client QPN, u32 server QPN, u32 client PSN, u32 server PSN, 16 client GID, 16 server
 * GID. */
static const uint8_t expected_pair[AUTH_HMAC_BYTES] = {
	0xbf, 0xe6, 0xc3, 0xc3, 0x60, 0xfd, 0x72, 0x1c,
	0x58, 0xdb, 0xc6, 0xb1, 0xd9, 0x1e, 0xa1, 0x70,
	0x97, 0x23, 0x46, 0xac, 0x65, 0xcb, 0x3b, 0x1e,
	0xfc, 0xc2, 0x51, 0x6b, 0xa6, 0x2a, 0x12, 0xec,
};

static uint8_t key[AUTH_KEY_BYTES], session[FRAME_SESSION_BYTES];

static int set_up(void **state)
{
	(void)state;
	for (int i = 0; i < AUTH_KEY_BYTES; i++)
		key[i] = (uint8_t)(0x40 + i);
	for (int i = 0; i < FRAME_SESSION_BYTES; i++)
		session[i] = (uint8_t)i;
	return 0;
}

static void assert_hmac(uint32_t client_qpn, uint32_t server_qpn, const struct addr *client,
			const struct addr *server, const uint8_t *expected)
{
	struct auth_binding b = { .session = session,
				  .client_qpn = client_qpn,
				  .server_qpn = server_qpn,
				  .client = client,
				  .server = server };
	uint8_t out[AUTH_HMAC_BYTES];

	assert_int_equal(auth_hmac(NULL, key, &b, out), 0);
	assert_memory_equal(out, expected, sizeof(out));
}

/* One that is kept remembers neither key nor text of the last time. */
TEST(mac__kept_for_many__as_one_made_for_each)
{
	struct addr a = unit_addr("10.0.0.1", 1), z = unit_addr("fe80::1", 2);
	struct auth_binding b = { .session = session, .client = &a, .server = &z };
	uint8_t kept[AUTH_HMAC_BYTES], fresh[AUTH_HMAC_BYTES], last[AUTH_HMAC_BYTES] = { 0 };
	struct auth_mac *m;

	assert_int_equal(auth_mac_new(&m), 0);
	for (unsigned i = 0; i < 20; i++) {
		key[i % AUTH_KEY_BYTES] ^= (uint8_t)(i + 1);
		b.client_qpn = i / 2;
		assert_int_equal(auth_hmac(m, key, &b, kept), 0);
		assert_int_equal(auth_hmac(NULL, key, &b, fresh), 0);
		assert_memory_equal(kept, fresh, sizeof(kept));
		assert_memory_not_equal(kept, last, sizeof(kept));
		memcpy(last, kept, sizeof(last));
	}
	auth_mac_free(m);
	auth_mac_free(NULL);
}

TEST(hmac__known_binding__as_computed_elsewhere)
{
	struct addr c4 = unit_addr("10.0.0.1", 50000), s4 = unit_addr("10.0.0.2", 7472);
	struct addr c6 = unit_addr("fe80::1", 1), s6 = unit_addr("fe80::2", 65535);

	assert_hmac(0x11, 0x22, &c4, &s4, expected4);
	assert_hmac(0xabcdef, 0, &c6, &s6, expected6);
}

TEST(hmac_pair__known_and_any_input_changed__as_computed_elsewhere_and_another)
{
	const struct frame_qp c = { .gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 }, .qpn = 0x11 };
	const struct frame_qp s = { .gid = { [10] = 0xff, 0xff, 10, 0, 0, 2 }, .qpn = 0x22 };
	const struct frame_qp c_qpn = { .gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 }, .qpn = 0x12 };
	uint8_t session2[FRAME_SESSION_BYTES] = { 0 }, out[AUTH_HMAC_BYTES];
	const struct auth_pair pairs[] = {
		{ session, &c, &s, 0x123456, 0xabcdef }, { session2, &c, &s, 0x123456, 0xabcdef },
		{ session, &s, &c, 0x123456, 0xabcdef }, { session, &c_qpn, &s, 0x123456, 0xabcdef },
		{ session, &s, &s, 0x123456, 0xabcdef }, { session, &c, &c, 0x123456, 0xabcdef },
		{ session, &c, &s, 0x123457, 0xabcdef }, { session, &c, &s, 0x123456, 0xabcdee },
	};

	for (size_t i = 0; i < N_ELEMENTS(pairs); i++) {
		assert_int_equal(auth_hmac_pair(NULL, key, &pairs[i], out), 0);
		assert_int_equal(memcmp(out, expected_pair, sizeof(out)) == 0, i == 0);
	}
}

TEST(hmac__any_input_changed__another)
{
	struct addr c = unit_addr("10.0.0.1", 50000), s = unit_addr("10.0.0.2", 7472);
	struct addr c2 = unit_addr("10.0.0.3", 50000), s2 = unit_addr("10.0.0.4", 7472);
	struct addr c_port = unit_addr("10.0.0.1", 50001), s_port = unit_addr("10.0.0.2", 7473);
	uint8_t session2[FRAME_SESSION_BYTES] = { 0 }, key2[AUTH_KEY_BYTES] = { 0 },
		out[AUTH_HMAC_BYTES];
	const struct {
		const uint8_t *key;
		struct auth_binding b;
	} changed[] = {
		{ key2, { session, 0x11, 0x22, &c, &s } },
		{ key, { session2, 0x11, 0x22, &c, &s } },
		{ key, { session, 0x12, 0x22, &c, &s } },
		{ key, { session, 0x11, 0x23, &c, &s } },
		{ key, { session, 0x22, 0x11, &c, &s } },
		{ key, { session, 0x11, 0x22, &c2, &s } },
		{ key, { session, 0x11, 0x22, &c_port, &s } },
		{ key, { session, 0x11, 0x22, &c, &s2 } },
		{ key, { session, 0x11, 0x22, &c, &s_port } },
		{ key, { session, 0x11, 0x22, &s, &c } },
	};

	for (size_t i = 0; i < N_ELEMENTS(changed); i++) {
		assert_int_equal(auth_hmac(NULL, changed[i].key, &changed[i].b, out), 0);
		assert_memory_not_equal(out, expected4, sizeof(out));
	}
}

TEST(compare__one_bit_anywhere__not_equal)
{
	uint8_t copy[AUTH_HMAC_BYTES];

	memcpy(copy, expected4, sizeof(copy));
	assert_int_equal(auth_compare(copy, expected4), 0);
	for (int bit = 0; bit < AUTH_HMAC_BYTES * 8; bit++) {
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(auth_compare(copy, expected4), 0);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

TEST(wipe__keys__all_zero)
{
	static const struct auth_keys zero;
	struct auth_keys k;

	memset(&k, 0xa5, sizeof(k));
	auth_wipe(&k);
	assert_memory_equal(&k, &zero, sizeof(k));
}

TEST(random__two_draws__differ)
{
	uint8_t a[32] = { 0 }, b[32] = { 0 };

	assert_int_equal(auth_random(NULL, a, sizeof(a)), 0);
	assert_int_equal(auth_random(NULL, b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void make_proof(struct pdata_proof *p)
{
	memcpy(p->session, session, sizeof(p->session));
	memcpy(p->hmac, expected4, sizeof(p->hmac));
}

TEST(proof_encode__request_and_reply__exact_bytes)
{
	uint8_t expected[PDATA_PROOF_BYTES] = { 3, 1, 0, 52 }, out[PDATA_PROOF_BYTES];
	struct pdata_proof p;

	make_proof(&p);
	memcpy(expected + 4, session, sizeof(session));
	memcpy(expected + 20, expected4, sizeof(expected4));
	pdata_encode_proof(PDATA_REQUEST, &p, out);
	assert_memory_equal(out, expected, sizeof(out));
	expected[1] = 2;
	pdata_encode_proof(PDATA_REPLY, &p, out);
	assert_memory_equal(out, expected, sizeof(out));
}

TEST(proof_decode__padded_by_the_cm__same_proof)
{
	static const size_t received[] = { PDATA_PROOF_BYTES, 56, 148, 196 };
	struct pdata_proof p, q;
	uint8_t buf[196];

	make_proof(&p);
	for (size_t i = 0; i < N_ELEMENTS(received); i++) {
		memset(buf, 0, sizeof(buf));
		memset(&q, 0xa5, sizeof(q));
		pdata_encode_proof(PDATA_REPLY, &p, buf);
		assert_int_equal(pdata_decode_proof(PDATA_REPLY, buf, received[i], &q), 0);
		assert_memory_equal(&p, &q, sizeof(p));
	}
}

TEST(proof_decode__truncated_at_every_length__refused)
{
	struct pdata_proof p, q;
	uint8_t buf[PDATA_PROOF_BYTES];

	make_proof(&p);
	pdata_encode_proof(PDATA_REQUEST, &p, buf);
	for (size_t n = 0; n < PDATA_PROOF_BYTES; n++) {
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, buf, n);
		assert_int_equal(pdata_decode_proof(PDATA_REQUEST, exact, n, &q), -EPROTO);
		free(exact);
	}
}

TEST(proof_decode__any_prefix_bit_wrong__refused)
{
	struct pdata_proof p, q;
	uint8_t buf[56] = { 0 };

	make_proof(&p);
	pdata_encode_proof(PDATA_REQUEST, &p, buf);
	for (int bit = 0; bit < 32; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(pdata_decode_proof(PDATA_REQUEST, buf, sizeof(buf), &q), -EPROTO);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(pdata_decode_proof(PDATA_REQUEST, buf, sizeof(buf), &q), 0);
	assert_int_equal(pdata_decode_proof(PDATA_REPLY, buf, sizeof(buf), &q), -EPROTO);
}

TEST(reject__any_code__exact_bytes_and_back)
{
	static const uint8_t expected[PDATA_REJECT_BYTES] = { 3, 3, 0, 8, 0x12, 0x34, 0, 0 };
	uint8_t buf[148] = { 0 };
	uint16_t code = 0;

	pdata_encode_reject(0x1234, buf);
	assert_memory_equal(buf, expected, sizeof(expected));
	assert_int_equal(pdata_decode_reject(buf, sizeof(buf), &code), 0);
	assert_int_equal(code, 0x1234);
}

TEST(reject_decode__not_rampart_or_short__refused)
{
	static const uint8_t zeros[148];
	uint8_t buf[PDATA_REJECT_BYTES];
	struct pdata_proof p;
	uint16_t code;

	assert_int_equal(pdata_decode_reject(zeros, sizeof(zeros), &code), -EPROTO);
	pdata_encode_reject(3, buf);
	for (size_t n = 0; n < sizeof(buf); n++) {
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, buf, n);
		assert_int_equal(pdata_decode_reject(exact, n, &code), -EPROTO);
		free(exact);
	}
	assert_int_equal(pdata_decode_proof(PDATA_REJECT, buf, sizeof(buf), &p), -EPROTO);
}

TEST(decode__random_bytes__never_beyond_the_end)
{
	uint64_t seed = 7;

	for (int i = 0; i < 50000; i++) {
		size_t n = unit_random(&seed) % 64;
		uint8_t *buf = malloc(n ? n : 1);
		struct pdata_proof p;
		uint16_t code;

		for (size_t j = 0; j < n; j++)
			buf[j] = (uint8_t)(unit_random(&seed) % 4);
		if (n > 3)
			buf[3] = (uint8_t)(unit_random(&seed) % 2 ? 52 : 8);
		if (pdata_decode_proof(PDATA_REQUEST, buf, n, &p) == 0)
			assert_true(n >= PDATA_PROOF_BYTES);
		if (pdata_decode_reject(buf, n, &code) == 0)
			assert_true(n >= PDATA_REJECT_BYTES);
		free(buf);
	}
}

TEST_EACH(set_up, NULL)
