/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/wire/transport.c: lists of transports. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/wire/transport.h"

TEST(parse__lists__a_bit_for_each)
{
	static const struct { const char *text; uint32_t mask; } good[] = {
		{ "rdma", 1 }, { "tcp", 2 }, { "tls", 4 }, { "tcp,tls", 6 }, { "tls,rdma,tcp", TRANSPORTS_ALL },
	};

	for (size_t i = 0; i < N_ELEMENTS(good); i++) {
		uint32_t mask = 0;
		char err[128];

		assert_int_equal(transports_parse("transports", transport_names, good[i].text, &mask, err,
						  sizeof(err)), 0);
		assert_int_equal(mask, good[i].mask);
	}
}

TEST(parse__not_a_list__one_line_with_what_is_allowed)
{
	static const char *const bad[] = { "", ",", "rdma,", ",tcp", "udp", "rdma,tcp,rdma", "RDMA", "rdm", "rdmatcp",
					   "tcp tls" };

	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		uint32_t mask = 77;
		char err[256] = "";

		assert_int_equal(transports_parse("transports", transport_names, bad[i], &mask, err, sizeof(err)),
				 -EINVAL);
		assert_int_equal(mask, 77);
		assert_says(err, "--transports: '");
		assert_says(err, "allowed: rdma, tcp and tls");
		assert_null(strchr(err, '\n'));
	}
}
