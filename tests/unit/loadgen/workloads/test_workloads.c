/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/workloads/: a workload's defaults, the options that it accepts or refuses, and its needs. */
#include "tests/unit/helpers/options.h"
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <string.h>

#include "common/wire/frame.h"
#include "loadgen/traffic/workload.h"

TEST(check__option_of_another_workload__refused)
{
	options_refused("--device a,b", "--device, --server: several rails need --workload large");
	options_refused("--server a,b --workload read", "--device, --server: several rails need");
	options_refused("--workload duplex --rate 10", "--rate: ");
	options_refused("--workload idle --rate 10", "--rate: ");
	options_refused("--mix 1:1:1", "--mix: needs");
	options_refused("--chunk 64k", "--chunk: needs");
	options_refused("--operation read", "--operation: needs");
	options_refused("--device a --stripe-min 8k", "--stripe-min: needs --workload large or duplex");
	options_refused("--workload large --stripe-min 8k", "--stripe-min: needs --device or --server");
	options_refused("--workload large --device a,b --stripe-min 4095", "--stripe-min: ");
	options_taken("--workload large --device a,b --stripe-min 8k");
	assert_int_equal(options.stripe_min_bytes, 8192);
	options_taken("--workload duplex --device a,b");
	assert_int_equal(options.stripe_min_bytes, 16384);
}

TEST(check__message_sizes__each_within_the_workloads)
{
	options_taken("--message-size 16,1M");
	assert_int_equal(options.message_bytes, FRAME_MESSAGE_BYTES_MAX);
	options_taken("--workload pingpong --message-size 1-64");
	assert_int_equal(options.sizes.n, 7);
	assert_int_equal(options.message_bytes, 64);
	options_taken("--workload large --message-size 64k,2G");
	options_refused("--message-size 15", "--message-size: 15 is not allowed with --workload echo; allowed: 16 to");
	options_refused("--message-size 64,2M", "--message-size: 2097152 is not allowed with --workload echo");
	options_refused("--workload atomic --message-size 16", "--message-size: 16 is not allowed");
	options_refused("--workload write --message-size 1G --inflight 3", "--message-size and --inflight: ");
	options_refused("--workload small --message-size 19 --verify",
			"--message-size: 19 is not allowed with --workload small --verify; allowed: 20 to ");
}

TEST(check_step__figures_beyond_the_options__each_named)
{
	static const struct {
		struct step_figures f;
		const char *why;
	} refused[] = {
		{ { 4, 35, 1, 500 },
		  "--message-size: 35 is not allowed with --workload small --verify --message-auth; allowed: 36 to " },
		{ { 4, 0, 1, 500 }, "--message-size: 0 is not allowed" },
		{ { 4, UINT64_MAX, 1, 500 }, "--message-size: 18446744073709551615 is not allowed" },
		{ { 4, 48, 1, 500 }, "--message-size: 48 is none of the sizes" },
		{ { 0, 64, 1, 500 }, "--clients: 0 are not allowed" },
		{ { 9, 64, 1, 500 }, "--clients: 9 are not allowed in a step; allowed: 1 to 8" },
		{ { 4, 64, 0, 500 }, "--repeat: repetition 0 is not allowed; allowed: 1 to 2" },
		{ { 4, 64, 3, 500 }, "--repeat: repetition 3 is not allowed" },
		{ { 4, 64, 1, 0 }, "--rate: 0 operations a second" },
		{ { 4, 64, 1, 501 }, "--rate: 501 operations a second" },
	};
	struct step_figures fits = { 8, 64, 2, 500 };
	char err[256];

	options_refused("--message-auth --message-size 31",
			"--message-size: 31 is not allowed with --workload echo --message-auth; "
			"allowed: 32 to");
	options_taken("--workload small --verify --message-auth --message-size 36,64 --clients 8 --repeat 2 "
		      "--rate 500");
	assert_int_equal(workload_check_step(&options, &fits, err, sizeof(err)), 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(workload_check_step(&options, &refused[i].f, err, sizeof(err)), -EINVAL);
		assert_memory_equal(err, refused[i].why, strlen(refused[i].why));
	}
}

TEST(check__nothing_given__the_workloads_own_defaults)
{
	options_taken("");
	assert_int_equal(options.message_bytes, 64);
	assert_int_equal(options.inflight, 1);
	options_taken("--workload small");
	assert_int_equal(options.inflight, 64);
	options_taken("--workload large");
	assert_int_equal(options.message_bytes, 1 << 20);
	assert_int_equal(options.chunk_bytes, 1 << 20);
	options_taken("--workload large --operation send");
	assert_int_equal(options.chunk_bytes, 64 << 10);
	options_taken("--rate 100");
	assert_int_equal(options.inflight, 16);
}

/* Only a region that the server writes to has a window, which holds what is in flight if anybody checks it. */
TEST(check__windows__for_duplex_alone)
{
	struct workload_needs needs;
	char text[80];

	for (size_t i = 0; loadgen_workload_names[i]; i++) {
		snprintf(text, sizeof(text), "--workload %s", loadgen_workload_names[i]);
		options_taken(text);
		memset(&needs, 0, sizeof(needs));
		options.wl->needs(&options, &needs);
		assert_int_equal(needs.window, strcmp(loadgen_workload_names[i], "duplex") == 0);
	}
	options_taken("--workload duplex --inflight 3 --message-size 1000");
	memset(&needs, 0, sizeof(needs));
	options.wl->needs(&options, &needs);
	assert_int_equal(needs.credits, 3);
	assert_int_equal(needs.landing_bytes, 1000);
	assert_true(needs.region_bytes >= 6000);
	options_taken("--workload duplex --inflight 3 --message-size 1000 --verify");
	options.wl->needs(&options, &needs);
	assert_int_equal(needs.landing_bytes, 6000);
}

TEST(check__mix__three_numbers)
{
	static const char *const bad[] = { "1", "1:2", "1:2:3:4", "0:0:0", "a:b:c", "1:2:-3", "1:2:3x", "10000:1:1",
					   ":::" };
	char text[80];

	options_taken("--workload mixed --mix 3:20:100");
	assert_int_equal(options.mix.writes, 3);
	assert_int_equal(options.mix.reads, 20);
	assert_int_equal(options.mix.atomics, 100);
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		snprintf(text, sizeof(text), "--workload mixed --mix %s", bad[i]);
		options_refused(text, "--mix: '");
	}
}

TEST(check__total_inflight__one_sequence_of_single_messages)
{
	options_taken("--total-inflight 16");
	assert_int_equal(options.inflight, 16);
	options_taken("--total-inflight 500");
	assert_int_equal(options.inflight, 128);
	options_taken("--total-inflight 16 --inflight 2");
	assert_int_equal(options.inflight, 2);
	options_refused("--workload small --coalesce 8 --total-inflight 16",
			"--total-inflight: cannot be combined with --coalesce");
	options_refused("--workload duplex --total-inflight 4", "--total-inflight: cannot be combined with this");
	options_refused("--workload idle --total-inflight 4", "--total-inflight: cannot be combined with this");
}

TEST(check__qps__with_what_moves_large_buffers_over_rdma)
{
	options_taken("--workload large --qps 8");
	assert_int_equal(loadgen_n_lanes(&options), 8);
	options_taken("--workload duplex --qps 2 --device a,b --connect oob --active 1 --clients 2");
	assert_int_equal(loadgen_n_lanes(&options), 4);
	options_refused("--workload read --qps 2", "--qps: needs --workload large or duplex");
	options_refused("--workload large --operation send --qps 2 --transport tcp",
			"--qps: cannot be combined with --transport tcp or tls");
	options_refused("--workload large --qps 2 --churn 1", "--qps: cannot be combined with --churn");
	options_refused("--workload large --qps 2 --reconnect 1", "--qps: cannot be combined with --reconnect");
	options_refused("--workload large --qps 2 --phased", "--qps: cannot be combined with --phased");
	options_parser_refuses("--qps 9", "--qps: 9 is not allowed; allowed: 1 to 8");
}

TEST(check__coalesce__with_small_only_and_as_much_as_a_send_takes)
{
	options_taken("--workload small");
	assert_int_equal(options.coalesce, 1);
	options_taken("--workload small --coalesce 64 --message-auth --verify --rate 10");
	assert_int_equal(options.coalesce, 64);
	options_refused("--coalesce 2", "--coalesce: needs");
	options_refused("--workload large --coalesce 1", "--coalesce: needs");
	options_parser_refuses("--coalesce 0", "--coalesce: 0 is not allowed; allowed: 1 to 64");
	options_parser_refuses("--coalesce 65", "--coalesce: 65 is not allowed; allowed: 1 to 64");
	options_taken("--workload small --coalesce 16 --message-size 64k");
	options_taken("--workload small --coalesce 16 --message-size 1M --inflight 1");
	options_refused("--workload small --coalesce 64 --message-size 64,20000", "--coalesce: 64 messages of");
	assert_string_equal(options_err,
			    "--coalesce: 64 messages of 20000 bytes are too large for one SEND; allowed: 1 to 52");
}

/* Messages sent together share a credit; in the open loop each message may be alone. */
TEST(needs__coalesce__room_for_a_send_and_credits_by_the_send)
{
	static const struct { const char *arguments; uint32_t bytes, credits; } cases[] = {
		{ "--workload small", 64, 64 },
		{ "--workload small --coalesce 16", 1024, 4 },
		{ "--workload small --coalesce 16 --inflight 50", 1024, 4 },
		{ "--workload small --coalesce 16 --inflight 49 --message-size 1000,20", 16000, 4 },
		{ "--workload small --coalesce 16 --inflight 10", 640, 1 },
		{ "--workload small --coalesce 64 --inflight 1 --message-size 16", 32, 1 },
		{ "--workload small --coalesce 16 --rate 100", 1024, 64 },
		{ "--workload small --coalesce 16 --rate-per-client 5 --inflight 20", 1024, 20 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct workload_needs needs = { 0 };

		options_taken(cases[i].arguments);
		options.wl->needs(&options, &needs);
		assert_int_equal(needs.message_bytes, cases[i].bytes);
		assert_int_equal(needs.credits, cases[i].credits);
		assert_int_equal(needs.region_bytes, 0);
	}
}
