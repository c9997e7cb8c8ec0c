/* Unit tests of loadgen/ramp/needs.c: the command line of a server of our own, and what a server must give. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/res.h"
#include "loadgen/ramp/needs.h"
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
	cfg = (struct loadgen_config){ .clients = 1000, .steps = { .n = 1, .v = { 1000 } }, .n_rails = 1,
				       .wl = &some_workload };
	return 0;
}

/* The value of an option on the command line. */
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

static void args__clients__room_for_those_that_still_leave(void **state)
{
	(void)state;
	assert_int_equal(value_of("--max-clients"), 1116);
	assert_int_equal(value_of("--credits"), 8);
	assert_int_equal(value_of("--message-size"), 64);
	cfg.churn_per_s = 100;
	assert_int_equal(value_of("--max-clients"), 2016);
}

/* The server refuses to start where not all regions fit: room for those that leave takes a quarter of the memory, at most. */
static void args__large_regions__fewer_that_still_leave(void **state)
{
	(void)state;
	region_bytes = 1u << 31;
	cfg.n_rails = 8;
	cfg.clients = 3;
	assert_in_range(value_of("--max-clients"), 4, 3 + MAX(1, res_machine_memory_bytes() / 4 / (region_bytes * 8)));
	region_bytes = 4096;
	assert_int_equal(value_of("--max-clients"), 19);
}

/* rdma_server refuses to start with more than 200,000. */
static void args__most_clients_with_churn__within_what_the_server_allows(void **state)
{
	(void)state;
	cfg.clients = 100000;
	assert_int_equal(value_of("--max-clients"), 110016);
	cfg.churn_per_s = 100;
	assert_int_equal(value_of("--max-clients"), 200000);
}

static void met__server_gives_too_little__the_option_is_named(void **state)
{
	static const struct {
		const char *info, *named; /* NULL: it is enough */
	} cases[] = {
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000}}", NULL },
		{ "{\"config\": {\"credits\": 7, \"message_bytes\": 64, \"max_clients\": 1000}}", "--credits 7" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 63, \"max_clients\": 1000}}", "--message-size 63" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 999}}", "--max-clients 999" },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000, \"max_per_address\": 0}}", NULL },
		{ "{\"config\": {\"credits\": 8, \"message_bytes\": 64, \"max_clients\": 1000, \"max_per_address\": 999}}",
		  "--max-per-address 999" },
	};
	char text[224];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		json_t *info = json_loads(cases[i].info, 0, NULL);

		assert_non_null(info);
		assert_int_equal(needs_are_met(&cfg, info, text, sizeof(text)), !cases[i].named);
		assert_true(cases[i].named ? strstr(text, cases[i].named) != NULL : !text[0]);
		json_decref(info);
	}
}

#define NEEDS_TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NEEDS_TEST(args__clients__room_for_those_that_still_leave),
		NEEDS_TEST(args__large_regions__fewer_that_still_leave),
		NEEDS_TEST(args__most_clients_with_churn__within_what_the_server_allows),
		NEEDS_TEST(met__server_gives_too_little__the_option_is_named),
	};

	return cmocka_run_group_tests_name("loadgen_needs", tests, NULL, NULL);
}
