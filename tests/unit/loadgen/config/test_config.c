/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/config/config.c: the option table, the ramp derived from --clients, contradictions. */
#include "tests/unit/helpers/options.h"
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/rdma/pump.h"
#include "common/wire/frame.h"
#include "tests/unit/fakes/fake_verbs.h"

static void assert_steps(const uint64_t *steps, size_t n)
{
	assert_int_equal(options.steps.n, n);
	assert_memory_equal(options.steps.v, steps, n * sizeof(*steps));
}

TEST_WITH(table__all_options__sorted_and_explained, options_reset, NULL)
{
	for (size_t i = 0; i < loadgen_options.n_opts; i++) {
		const struct opt *o = &loadgen_options.opts[i];

		if (i > 0)
			assert_true(strcmp(loadgen_options.opts[i - 1].name, o->name) < 0);
		assert_true(o->help && strlen(o->help) > 5);
		assert_true(o->offset < sizeof(options));
		assert_int_equal(o->type == OPT_FLAG, o->metavar == NULL);
		assert_int_equal(o->type == OPT_CHOICE, o->choices != NULL);
		assert_true(o->min <= o->max);
	}
}

/* Returns what the program prints when it refuses a command line: options_err, with what goes round it. */
static char *printed_error(void)
{
	char *printed = NULL;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	opts_print_error(&loadgen_options, options_err, f);
	fclose(f);
	return printed;
}

/* A load host takes the options' values from another host, the leader. */
TEST(refused__value_with_control_characters__shown_as_digits)
{
	static const char *const before[] = { "", "p99<1", "1", "a,b", "a:1", "nodelay=" };
	static const char *const named[] = { "clients", "name", "rate", "server", "slo", "steps", "targets", "tcp" };
	unsigned shown = 0, must = 0;

	for (size_t i = 0; i < loadgen_options.n_opts; i++) {
		const struct opt *o = &loadgen_options.opts[i];
		bool is_shown = false;

		for (size_t k = 0; o->type != OPT_FLAG && k < N_ELEMENTS(before); k++) {
			char argument[200], clean[1000], *printed;

			snprintf(argument, sizeof(argument), "--%s=%s\033]0;x\007\xc2\x9b\xff", o->name, before[k]);
			options_reset(NULL);
			if (options_parse(argument) == OPTS_OK && options_check() == 0)
				continue;
			printed = printed_error();
			assert_int_equal(printed[strlen(printed) - 1], '\n');
			printed[strlen(printed) - 1] = '\0';
			assert_string_equal(printed, utf8_show(printed, clean, sizeof(clean)));
			is_shown |= strstr(printed, "\\x1b]0;x\\x07\\x9b") != NULL;
			free(printed);
		}
		shown += is_shown;
		for (size_t k = 0; k < N_ELEMENTS(named); k++)
			must += is_shown && strcmp(o->name, named[k]) == 0;
	}
	assert_in_range(shown, N_ELEMENTS(named), loadgen_options.n_opts);
	assert_int_equal(must, N_ELEMENTS(named));
}

TEST_WITH(steps__last_one_given__ramp_up_to_it, options_reset, NULL)
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

	for (size_t i = 0; i < N_ELEMENTS(ramps); i++) {
		options_taken(ramps[i].arguments);
		assert_steps(ramps[i].steps, ramps[i].n);
		assert_int_equal(options.clients, ramps[i].steps[ramps[i].n - 1]);
	}
}

TEST_WITH(steps__given__taken_as_they_are, options_reset, NULL)
{
	const uint64_t steps[] = { 300, 7, 300, 20 };

	options_taken("--steps 300,7,300,20");
	assert_steps(steps, N_ELEMENTS(steps));
	assert_int_equal(options.clients, 300);
	assert_string_equal(options.name_text, "clients-300");
	options_taken("--steps 2");
	assert_int_equal(options.steps.n, 1);
	assert_int_equal(options.clients, 2);
}

TEST_WITH(threads__more_than_clients__as_many_as_clients, options_reset, NULL)
{
	options_taken("--threads 64 --steps 3,5,4");
	assert_int_equal(options.threads, 5);
	options_taken("--threads 5 --clients 5");
	assert_int_equal(options.threads, 5);
	options_taken("--threads 3 --clients 5");
	assert_int_equal(options.threads, 3);
	loadgen_config_defaults(&options);
	assert_in_range(options.threads, 1, 8);
}

TEST_WITH(rails__by_device_or_server__as_many_as_are_named, options_reset, NULL)
{
	options_taken("--workload large");
	assert_int_equal(options.n_rails, 1);
	assert_int_equal(options.devices.n, 0);
	options_taken("--workload duplex --device mlx5_0,mlx5_1,mlx5_2");
	assert_int_equal(options.n_rails, 3);
	assert_string_equal(options.devices.name[2], "mlx5_2");
	options_taken("--workload large --server h1,h2");
	assert_int_equal(options.n_rails, 2);
	assert_string_equal(options.servers.name[1], "h2");
	options_taken("--workload large --server h1,h2 --device a,b");
	assert_int_equal(options.n_rails, 2);
}

TEST_WITH(transport__auto__rdma_where_there_is_a_device, options_reset, NULL)
{
	options_taken("");
	assert_int_equal(options.transport, TRANSPORT_RDMA);
	fake_device.devices = 1;
	options_taken("--transport auto");
	assert_int_equal(options.transport, TRANSPORT_RDMA);
	assert_false(options.fell_back);
	fake_device.devices = 0;
	options_taken("--transport auto");
	assert_int_equal(options.transport, TRANSPORT_TCP);
	assert_true(options.fell_back);
	/* An explicit transport never falls back. */
	options_taken("--transport rdma");
	assert_int_equal(options.transport, TRANSPORT_RDMA);
	options_refused("--lead --server x", "--lead: needs --hosts");
	options_refused("--transport auto --hosts 2 --lead --server x",
			"--transport auto: cannot be combined with several load hosts");
	fake_device.devices = 1;
}

TEST_WITH(transport__sockets__no_region_and_no_device, options_reset, NULL)
{
	static const char *const two_sided[] = { "echo", "pingpong", "small", "connect", "idle",
						   "large --operation send", "duplex" };
	static const char *const one_sided[] = { "write", "read", "atomic", "mixed", "large" };
	char text[128];

	for (int t = TRANSPORT_TCP; t < TRANSPORT_N; t++) {
		for (size_t i = 0; i < N_ELEMENTS(two_sided); i++) {
			snprintf(text, sizeof(text), "--transport %s --workload %s", transport_names[t], two_sided[i]);
			options_taken(text);
			assert_int_equal(options.transport, t);
		}
		for (size_t i = 0; i < N_ELEMENTS(one_sided); i++) {
			char said[64];

			snprintf(text, sizeof(text), "--transport %s --workload %s", transport_names[t], one_sided[i]);
			snprintf(said, sizeof(said), "--transport %s: --workload ", transport_names[t]);
			options_refused(text, said);
		}
		snprintf(text, sizeof(text), "--transport %s --device a", transport_names[t]);
		options_refused(text, "--transport tcp, tls: cannot be combined with --device");
	}
	options_taken("--compare transport=tls,tcp");
	assert_int_equal(options.transport, TRANSPORT_TCP);
	options_taken("--compare transport=tcp,rdma");
	assert_int_equal(options.transport, TRANSPORT_RDMA);
}

TEST_WITH(check__contradictions__a_line_each, options_reset, NULL)
{
	options_refused("--clients 100 --steps 10", "--clients: cannot be combined with --steps");
	options_refused("--server 10.77.0.1:7471", "--server: '10.77.0.1:7471' is not allowed");
	options_taken("--server fd00::1");
	options_refused("--device a,b --workload large --churn 1",
			"--device, --server: several rails cannot be combined");
	options_refused("--device a,b --workload duplex --phased",
			"--device, --server: several rails cannot be combined");
	options_refused("--device a,b --workload large --server x", "--server and --device: give as many");
	options_refused("--device a,,b --workload large", "--device: 'a,,b' has an empty name");
	options_refused("--tls-port 7471", "--tls-port: ");
	options_refused("--server-name localhost", "--server-name: ");
	options_refused("--server host --server-threads 2", "--server-threads: ");
	options_refused("--cert a.pem", "--cert: needs --key");
	options_refused("--iterations 10 --duration 1", "--iterations: cannot be combined with");
	options_refused("--iterations 10 --warmup 1", "--iterations: cannot be combined with");
	options_refused("--iterations 10 --churn 1", "--iterations: cannot be combined with");
	options_refused("--iterations 10 --workload idle", "--iterations: cannot be combined with");
	options_refused("--warmup-iterations 1", "--warmup-iterations: needs --iterations");
	options_refused("--key a.key", "--key: needs --cert");
	options_refused("--environment vm --server host", "--server: cannot be combined with --environment vm");
	options_refused("--environment=vm --device rxe0", "--device: cannot be combined with --environment vm");
	options_refused("--environment netns --server host", "--server: cannot be combined with --environment netns");
}

TEST_WITH(rate__range__geometric_steps, options_reset, NULL)
{
	options_taken("--rate 500");
	assert_int_equal(options.rates.n, 1);
	assert_int_equal(options.rates.v[0], 500);
	assert_int_equal(options.steps.n, 2);
	options_taken("--rate 1000-128000");
	assert_int_equal(options.rates.n, 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(options.rates.v[i], 1000 << i);
	/* Without --steps or --clients, a sweep has a single number of clients. */
	assert_int_equal(options.steps.n, 1);
	assert_int_equal(options.steps.v[0], 100);
	options_taken("--rate 10-1000:3 --steps 1,2");
	assert_int_equal(options.rates.n, 3);
	assert_int_equal(options.rates.v[1], 100);
	assert_int_equal(options.steps.n, 2);
	/* Rates that round to the same number count once. */
	options_taken("--rate 1-3:20");
	assert_int_equal(options.rates.n, 3);
	options_taken("--find-rate --slo p99<1ms");
	assert_int_equal(options.rates.v[0], 1000);
	assert_int_equal(options.rates.v[1], 1000000000);
	options_taken("--find-rate --slo p99<1ms --rate 50-90000 --clients 7");
	assert_int_equal(options.rates.n, 2);
	assert_int_equal(options.steps.v[0], 7);
}

TEST_WITH(price__number_above_0_and_an_objective__taken, options_reset, NULL)
{
	static const char *const bad[] = { "0", "-1", "1e3", "0x9", "inf", "1.2.3", ".", "1000001", "4c" };
	char text[64];

	options_taken("--price 0.04 --slo p99<1ms");
	assert_float_equal(options.cpu_hour_price, 0.04, 0);
	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		snprintf(text, sizeof(text), "--slo p99<1ms --price=%s", bad[i]);
		options_refused(text, "--price: '");
	}
	options_refused("--price 1", "--price: needs --slo");
}

TEST_WITH(rate__not_a_rate_or_range__refused, options_reset, NULL)
{
	static const char *const bad[] = { "0", "1000000001", "5-5", "9-5", "1-", "-5", "a", "1k", "1-9:1", "1-9:65",
					   "1-9:", "1:8", "1-1000000001", "1-9:8x", "1-9-12", "99999999999999999999" };
	char text[64];

	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		snprintf(text, sizeof(text), "--rate=%s", bad[i]);
		options_refused(text, "--rate: '");
	}
	options_refused("--find-rate", "--find-rate: needs --slo");
	options_refused("--find-rate --slo p99<1ms --rate 9", "--find-rate: needs --rate A-B");
	options_refused("--find-rate --slo p99<1ms --steps 1,2", "--find-rate: needs one");
	options_refused("--find-rate --slo p99<1ms --repeat 2", "--find-rate: cannot be combined with --repeat");
	options_refused("--find-capacity --rate 1-9", "--find-capacity: cannot be combined with several rates");
	options_refused("--rate 1-9 --rate-per-client 2", "--rate: cannot be combined with --rate-per-client");
}

TEST_WITH(iterations__warm_up__a_tenth_or_as_given, options_reset, NULL)
{
	static const struct { const char *arguments; uint64_t warmup, measured; } rows[] = {
		{ "--iterations 1000", 100, 1000 }, { "--iterations 3", 1, 3 },
		{ "--iterations 3 --warmup-iterations 0", 0, 3 },
		{ "--iterations 1 --warmup-iterations 20", 20, 1 }, { "", 0, 0 },
	};

	for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
		options_taken(rows[i].arguments);
		assert_int_equal(options.warmup_iterations, rows[i].warmup);
		assert_int_equal(options.iterations, rows[i].measured);
	}
}

TEST_WITH(check__what_goes_together__taken, options_reset, NULL)
{
	options_taken("--server host --tls-port 7471 --server-name localhost");
	options_taken("--server-threads 2");
	options_taken("--cert a.pem --key a.key");
	options_taken("--environment native --server host --device rxe0");
	options_taken("--environment auto --device rxe0");
	options_taken("--environment vm");
	options_taken("--environment netns");
}

TEST_WITH(check__name__no_path_and_no_blank, options_reset, NULL)
{
	static const char *const bad[] = { "a/b", "../up", "a:b", "a*", "caf\xc3\xa9", "a,b", "a\\b", "a\tb" };
	char text[200];

	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		snprintf(text, sizeof(text), "--name %s", bad[i]);
		options_refused(text, "--name: ");
		assert_non_null(strstr(options_err, "allowed: letters"));
	}
	loadgen_config_defaults(&options);
	assert_int_equal(options_parse(""), OPTS_OK);
	options.name = "a b";
	assert_int_equal(options_check(), -EINVAL);
	options_taken("--name v1.2_fast-RUN");
	assert_string_equal(options.name_text, "v1.2_fast-RUN");
	options_taken("");
	assert_string_equal(options.name_text, "clients-100");
}

TEST_WITH(check__name__at_most_64_characters, options_reset, NULL)
{
	char text[100] = "--name ";

	memset(text + 7, 'n', 64);
	options_taken(text);
	assert_int_equal(strlen(options.name_text), 64);
	text[7 + 64] = 'n';
	options_refused(text, "--name: at most 64");
}

TEST_WITH(check__ca__beside_the_program_or_as_given, options_reset, NULL)
{
	static char path[PATH_MAX + 2];

	options_taken("");
	assert_int_equal(options.ca_path[0], '/');
	assert_non_null(strstr(options.ca_path, "/build/certs/ca.pem"));
	options_taken("--ca my/ca.pem");
	assert_string_equal(options.ca_path, "my/ca.pem");
	loadgen_config_defaults(&options);
	assert_int_equal(options_parse(""), OPTS_OK);
	memset(path, 'p', PATH_MAX);
	options.ca = path;
	assert_int_equal(options_check(), -EINVAL);
	assert_string_equal(options_err, "--ca: the path is too long");
	path[PATH_MAX - 1] = '\0';
	assert_int_equal(options_check(), 0);
}

TEST_WITH(parse__out_of_range__the_range_named, options_reset, NULL)
{
	options_parser_refuses("--clients 0", "--clients: 0 is not allowed; allowed: 1 to 1000000");
	options_parser_refuses("--clients 1000001", "--clients: 1000001 is not allowed; allowed: 1 to 1000000");
	options_parser_refuses("--clients ten", "--clients: ten is not a whole number; allowed: 1 to 1000000");
	options_parser_refuses("--connect-concurrency 0",
			     "--connect-concurrency: 0 is not allowed; allowed: 1 to 1000000");
	options_parser_refuses("--inflight 129", "--inflight: 129 is not allowed; allowed: 1 to 128");
	options_parser_refuses("--repeat 0", "--repeat: 0 is not allowed; allowed: 1 to 100");
	options_parser_refuses("--tls-port 65536", "--tls-port: 65536 is not allowed; allowed: 1 to 65535");
	options_parser_refuses("--threads 257", "--threads: 257 is not allowed; allowed: 1 to 256");
	options_parser_refuses("--seed 4294967296", "--seed: 4294967296 is not allowed; allowed: 0 to 4294967295");
	options_parser_refuses("--duration 99ms", "--duration: 99ms is not allowed; allowed: 100ms to 24h");
	options_parser_refuses("--warmup 3601", "--warmup: 3601 is not allowed; allowed: 0 to 1h");
	options_parser_refuses("--timeout 9ms", "--timeout: 9ms is not allowed; allowed: 10ms to 10m");
	options_parser_refuses("--step-timeout 0.5", "--step-timeout: 0.5 is not allowed; allowed: 1s to 24h");
	options_parser_refuses("--environment host",
			     "--environment: host is not allowed; allowed: auto, native, vm or netns");
}

TEST_WITH(parse__at_the_ends_of_the_range__taken, options_reset, NULL)
{
	assert_int_equal(options_parse("--clients 100000 --inflight 128 --duration 100ms --warmup 0 --seed 0 "
			       "--connect-rate 1000000 --message-size 1M --timeout 10ms --step-timeout 1"), OPTS_OK);
	assert_int_equal(options.clients, 100000);
	assert_int_equal(options.inflight, 128);
	assert_true(options.duration_ns == 100 * NS_PER_MS);
	assert_true(options.warmup_ns == 0);
	assert_true(options.seed == 0);
	assert_int_equal(options.connect_rate, 1000000);
	assert_int_equal(options.sizes.n, 1);
	assert_int_equal(options.sizes.v[0], FRAME_MESSAGE_BYTES_MAX);
	assert_true(options.timeout_ns == 10 * NS_PER_MS);
	assert_true(options.step_timeout_ns == NS_PER_S);
}

TEST_WITH(parse__message_size__in_range, options_reset, NULL)
{
	assert_int_equal(options_parse("--message-size 1"), OPTS_OK);
	assert_int_equal(options_parse("--message-size 2G"), OPTS_OK);
	assert_int_equal(options_parse("--message-size 0"), OPTS_ERROR);
	assert_int_equal(options_parse("--message-size 2147483649"), OPTS_ERROR);
}

TEST_WITH(check__open_loop__what_does_not_go_with_it, options_reset, NULL)
{
	options_taken("--rate-per-client 10 --arrival poisson");
	options_refused("--rate 10 --rate-per-client 10", "--rate: cannot be combined with --rate-per-client");
	options_refused("--arrival even", "--arrival: ");
	options_refused("--inline 5000", "--inline: '5000'");
	options_refused("--cpu-list x", "--cpu-list: 'x'");
	options_refused("--server-cpu-list 1-", "--server-cpu-list: '1-'");
	options_refused("--server host --server-cpu-list 1", "--server-cpu-list: cannot be combined with --server");
	options_refused("--cpu-list 1 --numa auto", "--cpu-list: cannot be combined with --numa auto");
	options_parser_refuses("--numa on", "--numa: on is not allowed; allowed: off or auto");
}

/* The --cpu-list that a server of our own gets. */
static const char *server_cpus(const char *arguments)
{
	options_taken(arguments);
	return options.server_cpus;
}

TEST_WITH(cpus__server_of_our_own__goes_on_after_the_workers, options_reset, NULL)
{
	assert_string_equal(server_cpus("--threads 2"), "");
	assert_string_equal(server_cpus("--threads 2 --cpu-list 0-3"), "2-3,0-1");
	assert_string_equal(server_cpus("--threads 2 --cpu-list 7"), "7");
	assert_string_equal(server_cpus("--threads 5 --cpu-list 9,3,5"), "5,9,3");
	assert_string_equal(server_cpus("--threads 4 --cpu-list 0,1,0,1,2-3,8"), "2-3,8,0-1,0-1");
	/* There are never more workers than clients. */
	assert_string_equal(server_cpus("--steps 1 --threads 8 --cpu-list 0-2"), "1-2,0");
	assert_string_equal(server_cpus("--threads 2 --cpu-list 0-3 --server-cpu-list 6,4-5"), "6,4-5");
	assert_string_equal(server_cpus("--numa auto --server-cpu-list 1"), "1");
}

/* The longest possible list fits. */
TEST_WITH(cpus__most__all_handed_on, options_reset, NULL)
{
	char text[6000] = "--threads 1 --cpu-list 0";

	for (int i = 1; i < TUNING_CPUS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%d", i % 2 ? 1023 : 1021);
	assert_int_equal(strlen(server_cpus(text)), strlen("0") + 5 * (TUNING_CPUS_MAX - 1));
}

TEST_WITH(parse__steps__each_in_range_and_not_too_many, options_reset, NULL)
{
	char text[600] = "--steps 1";

	for (int i = 1; i < OPT_LIST_MAX; i++)
		strcat(text, ",1");
	assert_int_equal(options_parse(text), OPTS_OK);
	assert_int_equal(options.steps.n, OPT_LIST_MAX);
	strcat(text, ",1");
	assert_int_equal(options_parse(text), OPTS_ERROR);
	assert_int_equal(options_parse("--steps 10,0"), OPTS_ERROR);
	assert_int_equal(options_parse("--steps 10,1000001"), OPTS_ERROR);
	assert_int_equal(options_parse("--steps 10,"), OPTS_ERROR);
	assert_int_equal(options_parse("--steps 10;20"), OPTS_ERROR);
	assert_non_null(strstr(options_err, "1 to 1000000 each, comma-separated"));
}

TEST_WITH(parse__choices__the_enums_order, options_reset, NULL)
{
	assert_int_equal(options_parse("--environment native --poll busy --log-level debug"), OPTS_OK);
	assert_int_equal(options.environment, ENVIRONMENT_NATIVE);
	assert_int_equal(options.poll, POLL_BUSY);
	assert_int_equal(options.log_level, LOG_LVL_DEBUG);
	assert_int_equal(options_parse("--environment vm --poll adaptive --log-level warn"), OPTS_OK);
	assert_int_equal(options.environment, ENVIRONMENT_VM);
	assert_int_equal(options.poll, POLL_ADAPTIVE);
	assert_int_equal(options.log_level, LOG_LVL_WARN);
	assert_int_equal(options_parse("--environment auto --poll event --quiet --verify"), OPTS_OK);
	assert_int_equal(options.environment, ENVIRONMENT_AUTO);
	assert_int_equal(options.poll, POLL_EVENT);
	assert_true(options.quiet && options.verify);
}
