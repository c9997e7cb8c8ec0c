/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/server_under_test/needs.c: our own server's command line, and what a server must provide. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/host/res.h"
#include "loadgen/server_under_test/needs.h"
#include "loadgen/traffic/workload.h"

static struct loadgen_config cfg;
static struct needs_args args;
static char program[] = "/usr/bin/rdma_server";

static uint64_t region_bytes;

static void needs_some(const struct loadgen_config *c, struct workload_needs *out)
{
	(void)c;
	out->credits = 8;
	out->message_bytes = 64;
	out->region_bytes = region_bytes;
}

static const struct workload some_workload = { .streams = 1, .needs = needs_some };

static int set_up(void **state)
{
	(void)state;
	region_bytes = 0;
	cfg = (struct loadgen_config){ .clients = 1000, .steps = { .n = 1, .v = { 1000 } }, .n_rails = 1, .qps = 1,
				       .wl = &some_workload };
	tuning_defaults(&cfg.tuning);
	return 0;
}

/* Returns the value of an option on the server's command line. */
static unsigned long long value_of(const char *option)
{
	needs_args(&cfg, program, &args);
	assert_ptr_equal(args.v[0], program);
	assert_null(args.v[args.n]);
	for (int i = 1; i < args.n; i++)
		if (strcmp(args.v[i], option) == 0)
			return strtoull(args.v[i + 1], NULL, 10);
	fail_msg("%s is not on the command line", option);
	return 0;
}

TEST(args__clients__room_for_those_that_still_leave)
{
	assert_int_equal(value_of("--max-clients"), 1116);
	assert_int_equal(value_of("--credits"), 8);
	assert_int_equal(value_of("--message-size"), 64);
	cfg.churn_per_s = 100;
	assert_int_equal(value_of("--max-clients"), 2016);
}

TEST(args__several_queue_pairs__a_place_for_each)
{
	cfg.qps = 4;
	assert_int_equal(value_of("--max-clients"), 4 * 1116);
}

/* All regions must fit, or the server refuses to start; those for leaving clients may take a quarter of the memory. */
TEST(args__large_regions__fewer_that_still_leave)
{
	region_bytes = 1u << 31;
	cfg.n_rails = 8;
	cfg.clients = 3;
	assert_in_range(value_of("--max-clients"), 4, 3 + MAX(1, res_machine_memory_bytes() / 4 / (region_bytes * 8)));
	region_bytes = 4096;
	assert_int_equal(value_of("--max-clients"), 19);
}

/* rdma_server refuses to start with a --max-clients above 200,000. */
TEST(args__most_clients_with_churn__within_what_the_server_allows)
{
	cfg.clients = 100000;
	assert_int_equal(value_of("--max-clients"), 110016);
	cfg.churn_per_s = 100;
	assert_int_equal(value_of("--max-clients"), 200000);
}

TEST(met__server_gives_too_little__the_option_is_named)
{
	static const struct {
		const char *info, *named; /* the option that is named; NULL: the server provides enough */
	} cases[] = {
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000}}", NULL },
		{ "{\"config\": {\"credits\": 7, \"message_bytes\": 64, \"max_clients\": 1000}}", "--credits 7" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 63, \"max_clients\": 1000}}", "--message-size 63" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 999}}", "--max-clients 999" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000, "
		  "\"max_per_address\": 0}}", NULL },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000, \"max_per_address\": "
		  "999}}", "--max-per-address 999" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000, \"receive_buffers\": "
		  "8000}}", NULL },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000, \"receive_buffers\": "
		  "7999}}", "the server's 7999 (its --srq-depth" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000, \"receive_buffers\": "
		  "15998}, \"rails\": [1, 2]}", "the server's 7999 (its --srq-depth" },
	};
	char text[224];

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		json_t *info = json_loads(cases[i].info, 0, NULL);

		assert_non_null(info);
		assert_int_equal(needs_are_met(&cfg, info, cfg.steps.v[0], cfg.clients, text, sizeof(text)),
				 !cases[i].named);
		assert_true(cases[i].named ? strstr(text, cases[i].named) != NULL : !text[0]);
		json_decref(info);
	}
}

static struct needs_args other;

static const char *option(const struct needs_args *a, const char *name)
{
	for (int i = 1; i < a->n; i++)
		if (strcmp(a->v[i], name) == 0)
			return a->v[i + 1];
	fail_msg("%s is not on the command line", name);
	return NULL;
}

TEST(join__larger_sizes_and_services__those_of_both)
{
	needs_args(&cfg, program, &args);
	cfg.clients = 10;
	cfg.tls_resume = true;
	region_bytes = 1 << 20;
	needs_args(&cfg, program, &other);
	assert_null(needs_join(&args, &other, UINT64_C(64) << 30));
	assert_string_equal(option(&args, "--max-clients"), "1116");
	assert_string_equal(option(&args, "--region-size"), "1048576");
	assert_string_equal(option(&args, "--tls-resume"), "on");
	assert_null(args.v[args.n]);
	/* And the other way: a server for more also serves those that need less. */
	assert_null(needs_join(&args, &other, UINT64_C(64) << 30));
}

TEST(join__what_changes_the_server__named_and_left_alone)
{
	needs_args(&cfg, program, &args);
	cfg.poll = 1;
	needs_args(&cfg, program, &other);
	assert_string_equal(needs_join(&args, &other, UINT64_MAX), "--poll");
	cfg.poll = 0;
	cfg.verify = true;
	needs_args(&cfg, program, &other);
	assert_string_equal(needs_join(&args, &other, UINT64_MAX), "--verify");
	assert_string_equal(needs_join(&other, &args, UINT64_MAX), "--verify");
	cfg.verify = false;
	/* This takes 1,116 regions of 64 MiB. */
	cfg.clients = 1;
	region_bytes = 64 << 20;
	needs_args(&cfg, program, &other);
	assert_string_equal(needs_join(&args, &other, UINT64_C(8) << 30), "memory");
	assert_string_equal(option(&args, "--region-size"), "0");
}

TEST(args__cpus_or_node__those_of_the_server)
{
	cfg.tuning.numa = TUNING_NUMA_AUTO;
	needs_args(&cfg, program, &args);
	assert_string_equal(option(&args, "--numa"), "auto");
	/* An explicit list for the server wins over --numa, which then applies to the workers only. */
	strcpy(cfg.server_cpus, "2-3");
	needs_args(&cfg, program, &args);
	assert_string_equal(option(&args, "--cpu-list"), "2-3");
	for (int i = 1; i < args.n; i++)
		assert_string_not_equal(args.v[i], "--numa");
}

TEST_EACH(set_up, NULL)
