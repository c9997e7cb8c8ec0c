/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/addr.c: parsing, bytes, comparing, printing. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "common/base/addr.h"

TEST(parse__ipv4__family_port_and_length)
{
	struct addr a = unit_addr("10.1.2.3", 7471);
	const struct sockaddr_in *sin = (const struct sockaddr_in *)&a.ss;

	assert_int_equal(sin->sin_family, AF_INET);
	assert_int_equal(ntohs(sin->sin_port), 7471);
	assert_int_equal(ntohl(sin->sin_addr.s_addr), 0x0a010203);
	assert_int_equal(a.len, sizeof(*sin));
}

TEST(parse__ipv6__family_port_and_length)
{
	struct addr a = unit_addr("fe80::1", 65535);

	assert_int_equal(a.ss.ss_family, AF_INET6);
	assert_int_equal(addr_port(&a), 65535);
	assert_int_equal(a.len, sizeof(struct sockaddr_in6));
}

TEST(parse__not_an_address__einval)
{
	static const char *const bad[] = { "",           "localhost",  "10.1.2",
					   "10.1.2.256", "1.2.3.4:80", ":::",
					   "fe80::1%lo", "[::1]",      " 1.2.3.4" };
	struct addr a;

	for (size_t i = 0; i < N_ELEMENTS(bad); i++)
		if (addr_parse(bad[i], 1, &a) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
}

TEST(from_sockaddr__other_family__refused)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct addr a, b = unit_addr("::1", 9);

	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&un, &a), -EAFNOSUPPORT);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&b.ss, &a), 0);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(&a.ss, &b.ss, b.len);
}

TEST(bytes__ipv4__mapped_both_ways)
{
	static const uint8_t mapped[16] = {
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7
	};
	struct addr a = unit_addr("192.0.2.7", 5), b;
	uint8_t bytes[16];

	addr_to_bytes(&a, bytes);
	assert_memory_equal(bytes, mapped, 16);
	addr_from_bytes(mapped, 5, &b);
	assert_int_equal(b.ss.ss_family, AF_INET);
	assert_int_equal(addr_port(&b), 5);
	assert_true(addr_same_host(&a, &b));
}

TEST(bytes__ipv6__unchanged)
{
	static const uint8_t raw[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 9 };
	struct addr a;
	uint8_t bytes[16];

	addr_from_bytes(raw, 1, &a);
	assert_int_equal(a.ss.ss_family, AF_INET6);
	addr_to_bytes(&a, bytes);
	assert_memory_equal(bytes, raw, 16);
}

TEST(set_port__both_families__only_the_port)
{
	static const char *const texts[] = { "10.0.0.1", "2001:db8::1" };

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		struct addr a = unit_addr(texts[i], 1), b = a;

		addr_set_port(&a, 0x1234);
		assert_int_equal(addr_port(&a), 0x1234);
		assert_true(addr_same_host(&a, &b));
	}
}

TEST(same_host__mapped_and_plain__equal_others_not)
{
	struct addr plain = unit_addr("10.0.0.1", 1), mapped = unit_addr("::ffff:10.0.0.1", 2);
	struct addr other = unit_addr("10.0.0.2", 1), v6 = unit_addr("::10.0.0.1", 1);

	assert_true(addr_same_host(&plain, &mapped));
	assert_false(addr_same_host(&plain, &other));
	assert_false(addr_same_host(&plain, &v6));
}

TEST(is_any__zero_addresses__only_those)
{
	static const struct { const char *text; bool any; } cases[] = {
		{ "0.0.0.0", true }, { "::", true }, { "0.0.0.1", false }, { "::1", false },
		{ "127.0.0.1", false }, { "1::", false },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct addr a = unit_addr(cases[i].text, 7);

		assert_int_equal(addr_is_any(&a), cases[i].any);
	}
}

TEST(text__both_families__host_and_port)
{
	struct addr v4 = unit_addr("10.0.0.1", 7471), v6 = unit_addr("fe80::1", 7471);
	struct addr longest = unit_addr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535);
	char text[ADDR_TEXT_MAX];

	assert_string_equal(addr_host_text(&v4, text), "10.0.0.1");
	assert_string_equal(addr_text(&v4, text), "10.0.0.1:7471");
	assert_string_equal(addr_host_text(&v6, text), "fe80::1");
	assert_string_equal(addr_text(&v6, text), "[fe80::1]:7471");
	assert_string_equal(addr_text(&longest, text),
			    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}

static uint64_t network(const char *text)
{
	struct addr a = unit_addr(text, 1), b = unit_addr(text, 2);

	assert_true(addr_network(&a) == addr_network(&b));
	return addr_network(&a);
}

TEST(network__ipv4_each_and_ipv6_the_first_64_bits)
{
	assert_true(network("10.0.0.1") != network("10.0.0.2"));
	assert_true(network("10.0.0.1") == network("::ffff:10.0.0.1"));
	assert_true(network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::9"));
	assert_true(network("2001:db8:1:2::1") != network("2001:db8:1:3::1"));
	assert_true(network("fe80::1") != network("fe80::2"));
	assert_true(network("febf::1") != network("fe80::1"));
	assert_true(network("::1") != 0);
	assert_true(network("0.0.0.0") != 0);
}

TEST(scope__link_local__read_and_shown)
{
	static const char *const bad[] = { "fe80::1%", "fe80::1%0", "fe80::1%x", "fe80::1%2x", "fe80::1%99999999999",
					   "2001:db8::1%2", "10.0.0.1%2", "%2" };
	char text[ADDR_TEXT_MAX];
	struct addr a, b;

	assert_int_equal(addr_parse("fe80::1%2", 7471, &a), 0);
	assert_int_equal(addr_scope(&a), 2);
	assert_string_equal(addr_host_text(&a, text), "fe80::1%2");
	assert_string_equal(addr_text(&a, text), "[fe80::1%2]:7471");
	/* The same host, whichever interface leads to it. */
	assert_int_equal(addr_parse("fe80::1", 0, &b), 0);
	assert_int_equal(addr_scope(&b), 0);
	assert_true(addr_same_host(&a, &b));
	assert_int_equal(addr_parse("10.0.0.1", 0, &b), 0);
	addr_set_scope(&b, 2);
	assert_int_equal(addr_scope(&b), 0);
	for (size_t i = 0; i < N_ELEMENTS(bad); i++)
		if (addr_parse(bad[i], 0, &b) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
}
