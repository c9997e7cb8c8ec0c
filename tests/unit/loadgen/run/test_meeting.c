/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/run/meeting.c: the servers that one of several hosts may load (--allow-server). */
#include "tests/unit/helpers/options.h"
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "loadgen/run/meeting.h"

#define URL "etcd://127.0.0.1:2379/run --hosts 2 "

TEST(apply__servers_of_the_leader__only_those_that_the_operator_names)
{
	static const struct {
		const char *options;
		const char *refused;	/* NULL: none */
	} cases[] = {
		{ "--server a", NULL },
		{ "--server a --allow-server a", NULL },
		{ "--server a --allow-server b,a:7471", NULL },
		{ "--server a --tls-port 9 --allow-server a:9", NULL },
		{ "--server a --tls-port 9 --allow-server a:7471", "a, port 9" },
		{ "--server a --allow-server b", "a, port 7471" },
		{ "--targets a:1,a:2 --allow-server a:1", "a, port 2" },
		{ "--targets a:1,a:2 --allow-server a:1,a:2", NULL },
		{ "--targets [::1]:1 --allow-server [::1]:1", NULL },
		{ "--targets [::1]:1 --allow-server ::2", "::1, port 1" },
	};
	struct meeting m = { .team = { .n = 2, .rank = 1 } };
	char text[256], err[256] = "";

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		snprintf(text, sizeof(text), "--cluster " URL "%s", cases[i].options);
		options_taken(text);
		assert_int_equal(meeting_apply(&m, &options, err, sizeof(err)), cases[i].refused == NULL);
		if (cases[i].refused)
			assert_non_null(strstr(err, cases[i].refused));
		assert_int_equal(options.rank, 1);
	}
}

/* Without a name, this host would start a server of its own. */
TEST(apply__leader_names_no_server__refused)
{
	struct meeting m = { .team = { .n = 2, .rank = 1 } };
	char err[256] = "";

	options_taken("--join etcd://127.0.0.1:2379/run");
	assert_false(meeting_apply(&m, &options, err, sizeof(err)));
	assert_string_equal(err, "the leader's run names no server");
}

TEST(options__allow_server__malformed_or_without_other_hosts)
{
	options_taken("--join etcd://127.0.0.1:2379/run --allow-server a:1,[::1]:2,b");
	options_refused("--join etcd://127.0.0.1:2379/run --allow-server a:x",
			"--allow-server: 'a:x' has an invalid port; allowed: ");
	options_refused("--cluster " URL "--server a --allow-server a,,b",
			"--allow-server: 'a,,b' has an empty name; allowed: ");
	options_refused("--allow-server a", "--allow-server: needs --join or --cluster");
}
