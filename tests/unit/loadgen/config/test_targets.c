/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/config/targets.c, and of the options that go with several servers. */
#include "tests/unit/helpers/options.h"
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/config/deal.h"
#include "loadgen/config/targets.h"

static struct targets targets;
static char err[400];

TEST(parse__each_form__host_and_port)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} cases[] = {
		{ "h1", "h1", 7471 }, { "h1:80", "h1", 80 }, { "10.0.0.9:65535", "10.0.0.9", 65535 }, { "fe80::1", "fe80::1", 7471 },
		{ "[fe80::1]", "fe80::1", 7471 }, { "[fe80::1]:1", "fe80::1", 1 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(targets_parse("targets", cases[i].text, 7471, &targets, err, sizeof(err)), 0);
		assert_int_equal(targets.n, 1);
		assert_string_equal(targets.v[0].name, cases[i].text);
		assert_string_equal(targets.v[0].host, cases[i].host);
		assert_int_equal(targets.v[0].port, cases[i].port);
	}
	assert_int_equal(targets_parse("targets", "a,b:1,b:2,[::1]:3", 5, &targets, err, sizeof(err)), 0);
	assert_int_equal(targets.n, 4);
	assert_int_equal(targets.v[2].port, 2);
	assert_string_equal(targets.v[3].host, "::1");
}

TEST(parse__anything_else__one_line_that_says_what_is_allowed)
{
	static const char *const cases[][2] = {
		{ "", "empty name" }, { "a,", "empty name" }, { ",a", "empty name" }, { ":80", "empty name" }, { "[]:80", "empty name" },
		{ "a:", "port" }, { "a:0", "port" }, { "a:65536", "port" }, { "a:8x", "port" }, { "a:-1", "port" },
		{ "[::1", "bracket" }, { "[::1]80", "bracket" }, { "a,a", "twice" }, { "a,a:7471", "twice" },
		{ "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "too many" },
	};
	char longest[400];

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(targets_parse("targets", cases[i][0], 7471, &targets, err, sizeof(err)), -EINVAL);
		assert_ptr_equal(strstr(err, "--targets: '"), err);
		assert_non_null(strstr(err, cases[i][1]));
		assert_non_null(strstr(err, "allowed: 1 to 16"));
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(targets_parse("targets", longest, 7471, &targets, err, sizeof(err)), -EINVAL);
	assert_true(strlen(err) < 300);
}

TEST_WITH(options__one_target__is_the_server, options_reset, NULL)
{
	options_taken("--targets [::1]:1234 --clients 10");
	assert_int_equal(loadgen_n_targets(&options), 1);
	assert_string_equal(options.servers.name[0], "::1");
	assert_int_equal(options.tls_port, 1234);
	options_taken("--targets h --tls-port 99");
	assert_string_equal(options.servers.name[0], "h");
	assert_int_equal(options.tls_port, 99);
}

TEST_WITH(options__several_targets__a_thread_for_each, options_reset, NULL)
{
	options_taken("--targets a,b,c --threads 2 --tls-port 99 --clients 10 --deal first");
	assert_int_equal(loadgen_n_targets(&options), 3);
	assert_int_equal(options.threads, 3);
	assert_int_equal(options.threads_asked, 2);
	assert_true(options.threads_raised);
	assert_int_equal(options.targets.v[2].port, 99);
	assert_int_equal(options.deal, DEAL_FIRST);
	options_taken("--targets a,b,c --threads 4 --clients 10");
	assert_int_equal(options.threads, 4);
	assert_int_equal(options.threads_asked, 0);
	assert_false(options.threads_raised);
	/* Fewer clients than servers: --threads are not too few. */
	options_taken("--targets a,b,c --threads 4 --clients 1");
	assert_int_equal(options.threads, 3);
	assert_int_equal(options.threads_asked, 0);
	assert_true(options.threads_raised);
}

TEST_WITH(options__contradictions__named, options_reset, NULL)
{
	options_refused("--targets a,b --server c", "--server: cannot be combined with --targets");
	options_refused("--targets a,a", "--targets: 'a,a' has a server twice");
	options_refused("--server a --deal random", "--deal: needs --targets");
	options_refused("--targets a --deal random", "--deal: needs several --targets");
	options_refused("--targets a,b --device x,y --workload large", "--targets: several cannot be combined with");
	options_refused("--targets a,b --environment vm", "--targets: cannot be combined with --environment vm");
	options_refused("--targets a,b --server-threads 2", "--server-threads: cannot be combined with --targets");
}
