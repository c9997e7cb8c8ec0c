/* Unit tests of loadgen/config/config.c: the option table, the ramp derived from --clients, contradictions. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/frame.h"
#include "common/base/log.h"
#include "common/rdma/pump.h"
#include "loadgen/config/config.h"
#include "loadgen/workloads/workload.h"

#define ARGS_MAX 32

static struct loadgen_config c;
static char err[400];
static char line[2000];
static char *args[ARGS_MAX];
static int n_args;

static int set_up(void **state)
{
	(void)state;
	loadgen_config_defaults(&c);
	err[0] = '\0';
	return 0;
}

/* Options separated by spaces. */
static enum opts_result parse(const char *arguments)
{
	int first = 0;
	char *save;

	assert_true(strlen(arguments) < sizeof(line));
	strcpy(line, arguments);
	args[0] = (char *)(uintptr_t)"performance_test";
	n_args = 1;
	for (char *s = strtok_r(line, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		assert_true(n_args < ARGS_MAX);
		args[n_args++] = s;
	}
	return opts_parse(&loadgen_options, n_args, args, &c, &first, err, sizeof(err));
}

static int check(void)
{
	return loadgen_config_check(&c, n_args, args, err, sizeof(err));
}

static void assert_check_takes(const char *arguments)
{
	loadgen_config_defaults(&c);
	if (parse(arguments) != OPTS_OK || check())
		fail_msg("%s: %s", arguments, err);
}

/* One line, made by the check and not by the parser, that begins with what is wrong. */
static void assert_check_refuses(const char *arguments, const char *beginning)
{
	loadgen_config_defaults(&c);
	assert_int_equal(parse(arguments), OPTS_OK);
	err[0] = '\0';
	if (check() != -EINVAL || strncmp(err, beginning, strlen(beginning)) != 0)
		fail_msg("%s: '%s' does not begin with '%s'", arguments, err, beginning);
	assert_null(strchr(err, '\n'));
	assert_true(strlen(err) > strlen(beginning));
}

static void assert_parse_refuses(const char *arguments, const char *text)
{
	loadgen_config_defaults(&c);
	if (parse(arguments) != OPTS_ERROR || strcmp(err, text) != 0)
		fail_msg("%s: '%s' is not '%s'", arguments, err, text);
}

static void assert_steps(const uint64_t *steps, size_t n)
{
	assert_int_equal(c.steps.n, n);
	assert_memory_equal(c.steps.v, steps, n * sizeof(*steps));
}

static void table__all_options__sorted_and_explained(void **state)
{
	(void)state;
	for (size_t i = 0; i < loadgen_options.n_opts; i++) {
		const struct opt *o = &loadgen_options.opts[i];

		if (i > 0)
			assert_true(strcmp(loadgen_options.opts[i - 1].name, o->name) < 0);
		assert_true(o->help && strlen(o->help) > 5);
		assert_true(o->offset < sizeof(c));
		assert_int_equal(o->type == OPT_FLAG, o->metavar == NULL);
		assert_int_equal(o->type == OPT_CHOICE, o->choices != NULL);
		assert_true(o->min <= o->max);
	}
}

/* The default shown in --help, when it is a value, is the default used. */
static void table__defaults_as_options__change_nothing(void **state)
{
	struct loadgen_config before;
	unsigned int as_values = 0;

	(void)state;
	for (size_t i = 0; i < loadgen_options.n_opts; i++) {
		const struct opt *o = &loadgen_options.opts[i];
		char text[200];

		/* Not a value: words, or text that is NULL until the check. */
		if (!o->def || strchr(o->def, ' ') || o->type == OPT_STRING)
			continue;
		loadgen_config_defaults(&c);
		memcpy(&before, &c, sizeof(c));
		snprintf(text, sizeof(text), "--%s %s", o->name, o->def);
		assert_int_equal(parse(text), OPTS_OK);
		if (memcmp(&c, &before, sizeof(c)) != 0)
			fail_msg("the default of --%s is not %s", o->name, o->def);
		as_values++;
	}
	assert_in_range(as_values, 13, loadgen_options.n_opts);
	assert_string_equal(c.output, "results");
}

static void steps__last_one_given__ramp_up_to_it(void **state)
{
	static const struct { const char *arguments; size_t n; uint64_t steps[8]; } ramps[] = {
		{ "--clients 1", 1, { 1 } },
		{ "--clients 10", 1, { 10 } },
		{ "--clients 11", 2, { 10, 11 } },
		{ "--clients 100", 2, { 10, 100 } },
		{ "--clients 250", 3, { 10, 100, 250 } },
		{ "--clients 1000", 4, { 10, 100, 500, 1000 } },
		{ "--clients 7000", 6, { 10, 100, 500, 1000, 5000, 7000 } },
		{ "--clients 10000", 6, { 10, 100, 500, 1000, 5000, 10000 } },
		{ "--clients 20000", 7, { 10, 100, 500, 1000, 5000, 10000, 20000 } },
		{ "--clients 100000", 7, { 10, 100, 500, 1000, 5000, 10000, 100000 } },
		{ "", 2, { 10, 100 } },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(ramps); i++) {
		assert_check_takes(ramps[i].arguments);
		assert_steps(ramps[i].steps, ramps[i].n);
		assert_int_equal(c.clients, ramps[i].steps[ramps[i].n - 1]);
	}
}

static void steps__given__taken_as_they_are(void **state)
{
	const uint64_t steps[] = { 300, 7, 300, 20 };

	(void)state;
	assert_check_takes("--steps 300,7,300,20");
	assert_steps(steps, N_ELEMENTS(steps));
	assert_int_equal(c.clients, 300);
	assert_string_equal(c.name_text, "clients-300");
	assert_check_takes("--steps 2");
	assert_int_equal(c.steps.n, 1);
	assert_int_equal(c.clients, 2);
}

static void threads__more_than_clients__as_many_as_clients(void **state)
{
	(void)state;
	assert_check_takes("--threads 64 --steps 3,5,4");
	assert_int_equal(c.threads, 5);
	assert_check_takes("--threads 5 --clients 5");
	assert_int_equal(c.threads, 5);
	assert_check_takes("--threads 3 --clients 5");
	assert_int_equal(c.threads, 3);
	loadgen_config_defaults(&c);
	assert_in_range(c.threads, 1, 8);
}

static void rails__by_device_or_server__as_many_as_are_named(void **state)
{
	(void)state;
	assert_check_takes("--workload large");
	assert_int_equal(c.n_rails, 1);
	assert_int_equal(c.devices.n, 0);
	assert_check_takes("--workload duplex --device mlx5_0,mlx5_1,mlx5_2");
	assert_int_equal(c.n_rails, 3);
	assert_string_equal(c.devices.name[2], "mlx5_2");
	assert_check_takes("--workload large --server h1,h2");
	assert_int_equal(c.n_rails, 2);
	assert_string_equal(c.servers.name[1], "h2");
	assert_check_takes("--workload large --server h1,h2 --device a,b");
	assert_int_equal(c.n_rails, 2);
}

static void check__contradictions__a_line_each(void **state)
{
	(void)state;
	assert_check_refuses("--clients 100 --steps 10", "--clients and --steps: ");
	assert_check_refuses("--server 10.77.0.1:7471", "--server: '10.77.0.1:7471' is not allowed");
	assert_check_takes("--server fd00::1");
	assert_check_refuses("--device a,b", "--device, --server: several go with --workload large");
	assert_check_refuses("--server a,b --workload read", "--device, --server: several go with");
	assert_check_refuses("--device a,b --workload large --churn 1", "--device, --server: several do not");
	assert_check_refuses("--device a,b --workload duplex --phased", "--device, --server: several do not");
	assert_check_refuses("--device a,b --workload large --server x", "--server and --device: give as many");
	assert_check_refuses("--device a,,b --workload large", "--device: 'a,,b' has an empty name");
	assert_check_refuses("--tls-port 7471", "--tls-port: ");
	assert_check_refuses("--server-name localhost", "--server-name: ");
	assert_check_refuses("--server host --server-threads 2", "--server-threads: ");
	assert_check_refuses("--cert a.pem", "--cert and --key: ");
	assert_check_refuses("--key a.key", "--cert and --key: ");
	assert_check_refuses("--environment vm --server host", "--environment vm: ");
	assert_check_refuses("--environment=vm --device rxe0", "--environment vm: ");
}

static void check__what_goes_together__taken(void **state)
{
	(void)state;
	assert_check_takes("--server host --tls-port 7471 --server-name localhost");
	assert_check_takes("--server-threads 2");
	assert_check_takes("--cert a.pem --key a.key");
	assert_check_takes("--environment native --server host --device rxe0");
	assert_check_takes("--environment auto --device rxe0");
	assert_check_takes("--environment vm");
}

static void check__name__no_path_and_no_blank(void **state)
{
	static const char *const bad[] = { "a/b", "../up", "a:b", "a*", "caf\xc3\xa9", "a,b", "a\\b", "a\tb" };
	char text[200];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		snprintf(text, sizeof(text), "--name %s", bad[i]);
		assert_check_refuses(text, "--name: ");
		assert_non_null(strstr(err, "allowed: letters"));
	}
	loadgen_config_defaults(&c);
	assert_int_equal(parse(""), OPTS_OK);
	c.name = "a b";
	assert_int_equal(check(), -EINVAL);
	assert_check_takes("--name v1.2_fast-RUN");
	assert_string_equal(c.name_text, "v1.2_fast-RUN");
	assert_check_takes("");
	assert_string_equal(c.name_text, "clients-100");
}

static void check__name__at_most_64_characters(void **state)
{
	char text[100] = "--name ";

	(void)state;
	memset(text + 7, 'n', 64);
	assert_check_takes(text);
	assert_int_equal(strlen(c.name_text), 64);
	text[7 + 64] = 'n';
	assert_check_refuses(text, "--name: at most 64");
}

static void check__ca__beside_the_program_or_as_given(void **state)
{
	static char path[PATH_MAX + 2];

	(void)state;
	assert_check_takes("");
	assert_int_equal(c.ca_path[0], '/');
	assert_non_null(strstr(c.ca_path, "/build/certs/ca.pem"));
	assert_check_takes("--ca my/ca.pem");
	assert_string_equal(c.ca_path, "my/ca.pem");
	loadgen_config_defaults(&c);
	assert_int_equal(parse(""), OPTS_OK);
	memset(path, 'p', PATH_MAX);
	c.ca = path;
	assert_int_equal(check(), -EINVAL);
	assert_string_equal(err, "--ca: the path is too long");
	path[PATH_MAX - 1] = '\0';
	assert_int_equal(check(), 0);
}

static void parse__out_of_range__the_range_named(void **state)
{
	(void)state;
	assert_parse_refuses("--clients 0", "--clients: 0 is not allowed; allowed: 1 to 100000");
	assert_parse_refuses("--clients 100001", "--clients: 100001 is not allowed; allowed: 1 to 100000");
	assert_parse_refuses("--clients ten", "--clients: ten is not a whole number; allowed: 1 to 100000");
	assert_parse_refuses("--connect-concurrency 0",
			     "--connect-concurrency: 0 is not allowed; allowed: 1 to 100000");
	assert_parse_refuses("--inflight 129", "--inflight: 129 is not allowed; allowed: 1 to 128");
	assert_parse_refuses("--repeat 0", "--repeat: 0 is not allowed; allowed: 1 to 100");
	assert_parse_refuses("--tls-port 65536", "--tls-port: 65536 is not allowed; allowed: 1 to 65535");
	assert_parse_refuses("--threads 257", "--threads: 257 is not allowed; allowed: 1 to 256");
	assert_parse_refuses("--seed 4294967296", "--seed: 4294967296 is not allowed; allowed: 0 to 4294967295");
	assert_parse_refuses("--duration 99ms", "--duration: 99ms is not allowed; allowed: 100ms to 24h");
	assert_parse_refuses("--warmup 3601", "--warmup: 3601 is not allowed; allowed: 0 to 1h");
	assert_parse_refuses("--timeout 9ms", "--timeout: 9ms is not allowed; allowed: 10ms to 10m");
	assert_parse_refuses("--step-timeout 0.5", "--step-timeout: 0.5 is not allowed; allowed: 1s to 24h");
	assert_parse_refuses("--environment host",
			     "--environment: host is not allowed; allowed: auto, native or vm");
}

static void parse__at_the_ends_of_the_range__taken(void **state)
{
	(void)state;
	assert_int_equal(parse("--clients 100000 --inflight 128 --duration 100ms --warmup 0 --seed 0 "
			       "--connect-rate 1000000 --message-size 1M --timeout 10ms --step-timeout 1"), OPTS_OK);
	assert_int_equal(c.clients, 100000);
	assert_int_equal(c.inflight, 128);
	assert_true(c.duration_ns == 100 * NS_PER_MS);
	assert_true(c.warmup_ns == 0);
	assert_true(c.seed == 0);
	assert_int_equal(c.connect_rate, 1000000);
	assert_int_equal(c.sizes.n, 1);
	assert_int_equal(c.sizes.v[0], FRAME_MESSAGE_BYTES_MAX);
	assert_true(c.timeout_ns == 10 * NS_PER_MS);
	assert_true(c.step_timeout_ns == NS_PER_S);
}

static void parse__message_size__in_range(void **state)
{
	(void)state;
	assert_int_equal(parse("--message-size 1"), OPTS_OK);
	assert_int_equal(parse("--message-size 2G"), OPTS_OK);
	assert_int_equal(parse("--message-size 0"), OPTS_ERROR);
	assert_int_equal(parse("--message-size 2147483649"), OPTS_ERROR);
}

static void check__message_sizes__each_within_the_workloads(void **state)
{
	(void)state;
	assert_check_takes("--message-size 16,1M");
	assert_int_equal(c.message_bytes, FRAME_MESSAGE_BYTES_MAX);
	assert_check_takes("--workload pingpong --message-size 1-64");
	assert_int_equal(c.sizes.n, 7);
	assert_int_equal(c.message_bytes, 64);
	assert_check_takes("--workload large --message-size 64k,2G");
	assert_check_refuses("--message-size 15", "--message-size: 15 is not allowed with --workload echo; allowed: 16 to");
	assert_check_refuses("--message-size 64,2M", "--message-size: 2097152 is not allowed with --workload echo");
	assert_check_refuses("--workload atomic --message-size 16", "--message-size: 16 is not allowed");
	assert_check_refuses("--workload write --message-size 1G --inflight 3", "--message-size and --inflight: ");
	assert_check_refuses("--workload small --message-size 19 --verify", "--verify: ");
}

static void check__nothing_given__the_workloads_own_defaults(void **state)
{
	(void)state;
	assert_check_takes("");
	assert_int_equal(c.message_bytes, 64);
	assert_int_equal(c.inflight, 1);
	assert_check_takes("--workload small");
	assert_int_equal(c.inflight, 64);
	assert_check_takes("--workload large");
	assert_int_equal(c.message_bytes, 1 << 20);
	assert_int_equal(c.chunk_bytes, 1 << 20);
	assert_check_takes("--workload large --operation send");
	assert_int_equal(c.chunk_bytes, 64 << 10);
	assert_check_takes("--rate 100");
	assert_int_equal(c.inflight, 16);
}

/* Only what the server is to write to has a window, and it holds what is under way, if anybody looks at it. */
static void check__windows__for_duplex_alone(void **state)
{
	struct workload_needs needs;
	char text[80];

	(void)state;
	for (size_t i = 0; workload_names[i]; i++) {
		snprintf(text, sizeof(text), "--workload %s", workload_names[i]);
		assert_check_takes(text);
		memset(&needs, 0, sizeof(needs));
		c.wl->needs(&c, &needs);
		assert_int_equal(needs.window, strcmp(workload_names[i], "duplex") == 0);
	}
	assert_check_takes("--workload duplex --inflight 3 --message-size 1000");
	memset(&needs, 0, sizeof(needs));
	c.wl->needs(&c, &needs);
	assert_int_equal(needs.credits, 3);
	assert_int_equal(needs.landing_bytes, 1000);
	assert_true(needs.region_bytes >= 6000);
	assert_check_takes("--workload duplex --inflight 3 --message-size 1000 --verify");
	c.wl->needs(&c, &needs);
	assert_int_equal(needs.landing_bytes, 6000);
}

static void check__mix__three_numbers(void **state)
{
	static const char *const bad[] = { "1", "1:2", "1:2:3:4", "0:0:0", "a:b:c", "1:2:-3", "1:2:3x", "10000:1:1", ":::" };
	char text[80];

	(void)state;
	assert_check_takes("--workload mixed --mix 3:20:100");
	assert_int_equal(c.mix.writes, 3);
	assert_int_equal(c.mix.reads, 20);
	assert_int_equal(c.mix.atomics, 100);
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		snprintf(text, sizeof(text), "--workload mixed --mix %s", bad[i]);
		assert_check_refuses(text, "--mix: '");
	}
}

static void check__open_loop__what_does_not_go_with_it(void **state)
{
	(void)state;
	assert_check_takes("--rate-per-client 10 --arrival poisson");
	assert_check_refuses("--rate 10 --rate-per-client 10", "--rate and --rate-per-client: ");
	assert_check_refuses("--arrival even", "--arrival: ");
	assert_check_refuses("--workload duplex --rate 10", "--rate: ");
	assert_check_refuses("--workload idle --rate 10", "--rate: ");
	assert_check_refuses("--mix 1:1:1", "--mix: goes with");
	assert_check_refuses("--chunk 64k", "--chunk: goes with");
	assert_check_refuses("--operation read", "--operation: goes with");
	assert_check_refuses("--inline 5000", "--inline: '5000'");
	assert_check_refuses("--cpu-list x", "--cpu-list: 'x'");
}

static void check__coalesce__with_small_only_and_as_much_as_a_send_takes(void **state)
{
	(void)state;
	assert_check_takes("--workload small");
	assert_int_equal(c.coalesce, 1);
	assert_check_takes("--workload small --coalesce 64 --message-auth --verify --rate 10");
	assert_int_equal(c.coalesce, 64);
	assert_check_refuses("--coalesce 2", "--coalesce: goes with");
	assert_check_refuses("--workload large --coalesce 1", "--coalesce: goes with");
	assert_parse_refuses("--coalesce 0", "--coalesce: 0 is not allowed; allowed: 1 to 64");
	assert_parse_refuses("--coalesce 65", "--coalesce: 65 is not allowed; allowed: 1 to 64");
	assert_check_takes("--workload small --coalesce 16 --message-size 64k");
	assert_check_takes("--workload small --coalesce 16 --message-size 1M --inflight 1");
	assert_check_refuses("--workload small --coalesce 64 --message-size 64,20000", "--coalesce: 64 messages of");
	assert_string_equal(err, "--coalesce: 64 messages of 20000 bytes are too large for one SEND; allowed: 1 to 52");
}

/* What is sent at once is counted; in the open loop each may be alone. */
static void needs__coalesce__room_for_a_send_and_credits_by_the_send(void **state)
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

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct workload_needs needs = { 0 };

		assert_check_takes(cases[i].arguments);
		c.wl->needs(&c, &needs);
		assert_int_equal(needs.message_bytes, cases[i].bytes);
		assert_int_equal(needs.credits, cases[i].credits);
		assert_int_equal(needs.region_bytes, 0);
	}
}

static void parse__steps__each_in_range_and_not_too_many(void **state)
{
	char text[600] = "--steps 1";

	(void)state;
	for (int i = 1; i < OPT_LIST_MAX; i++)
		strcat(text, ",1");
	assert_int_equal(parse(text), OPTS_OK);
	assert_int_equal(c.steps.n, OPT_LIST_MAX);
	strcat(text, ",1");
	assert_int_equal(parse(text), OPTS_ERROR);
	assert_int_equal(parse("--steps 10,0"), OPTS_ERROR);
	assert_int_equal(parse("--steps 10,100001"), OPTS_ERROR);
	assert_int_equal(parse("--steps 10,"), OPTS_ERROR);
	assert_int_equal(parse("--steps 10;20"), OPTS_ERROR);
	assert_non_null(strstr(err, "1 to 100000 each, comma-separated"));
}

static void parse__choices__the_enums_order(void **state)
{
	(void)state;
	assert_int_equal(parse("--environment native --poll busy --log-level debug"), OPTS_OK);
	assert_int_equal(c.environment, ENVIRONMENT_NATIVE);
	assert_int_equal(c.poll, POLL_BUSY);
	assert_int_equal(c.log_level, LOG_LVL_DEBUG);
	assert_int_equal(parse("--environment vm --poll adaptive --log-level warn"), OPTS_OK);
	assert_int_equal(c.environment, ENVIRONMENT_VM);
	assert_int_equal(c.poll, POLL_ADAPTIVE);
	assert_int_equal(c.log_level, LOG_LVL_WARN);
	assert_int_equal(parse("--environment auto --poll event --quiet --verify"), OPTS_OK);
	assert_int_equal(c.environment, ENVIRONMENT_AUTO);
	assert_int_equal(c.poll, POLL_EVENT);
	assert_true(c.quiet && c.verify);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(table__all_options__sorted_and_explained, set_up),
		cmocka_unit_test_setup(table__defaults_as_options__change_nothing, set_up),
		cmocka_unit_test_setup(steps__last_one_given__ramp_up_to_it, set_up),
		cmocka_unit_test_setup(steps__given__taken_as_they_are, set_up),
		cmocka_unit_test_setup(threads__more_than_clients__as_many_as_clients, set_up),
		cmocka_unit_test_setup(rails__by_device_or_server__as_many_as_are_named, set_up),
		cmocka_unit_test_setup(check__contradictions__a_line_each, set_up),
		cmocka_unit_test_setup(check__what_goes_together__taken, set_up),
		cmocka_unit_test_setup(check__name__no_path_and_no_blank, set_up),
		cmocka_unit_test_setup(check__name__at_most_64_characters, set_up),
		cmocka_unit_test_setup(check__ca__beside_the_program_or_as_given, set_up),
		cmocka_unit_test_setup(parse__out_of_range__the_range_named, set_up),
		cmocka_unit_test_setup(parse__at_the_ends_of_the_range__taken, set_up),
		cmocka_unit_test_setup(parse__message_size__in_range, set_up),
		cmocka_unit_test_setup(check__message_sizes__each_within_the_workloads, set_up),
		cmocka_unit_test_setup(check__nothing_given__the_workloads_own_defaults, set_up),
		cmocka_unit_test_setup(check__windows__for_duplex_alone, set_up),
		cmocka_unit_test_setup(check__mix__three_numbers, set_up),
		cmocka_unit_test_setup(check__open_loop__what_does_not_go_with_it, set_up),
		cmocka_unit_test_setup(check__coalesce__with_small_only_and_as_much_as_a_send_takes, set_up),
		cmocka_unit_test_setup(needs__coalesce__room_for_a_send_and_credits_by_the_send, set_up),
		cmocka_unit_test_setup(parse__steps__each_in_range_and_not_too_many, set_up),
		cmocka_unit_test_setup(parse__choices__the_enums_order, set_up),
	};

	return cmocka_run_group_tests_name("loadgen_config", tests, NULL, NULL);
}
