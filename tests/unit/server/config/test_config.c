/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/config/config.c: the option table, and the checks over more than one option. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/frame.h"
#include "common/base/log.h"
#include "common/rdma/pump.h"
#include "server/config/config.h"

static struct server_config c;
static char err[400];

static int set_up(void **state)
{
	(void)state;
	server_config_defaults(&c);
	err[0] = '\0';
	return 0;
}

/* Options separated by spaces. */
static enum opts_result parse(const char *arguments)
{
	static char line[2000];
	char *argv[32] = { (char *)(uintptr_t)"rdma_server" };
	int argc = 1, first = 0;
	char *save;

	strncpy(line, arguments, sizeof(line) - 1);
	for (char *s = strtok_r(line, " ", &save); s; s = strtok_r(NULL, " ", &save))
		argv[argc++] = s;
	return opts_parse(&server_options, argc, argv, &c, &first, err, sizeof(err));
}

static void assert_refuses(const char *arguments, const char *text)
{
	assert_int_equal(parse(arguments), OPTS_ERROR);
	assert_string_equal(err, text);
}

static void assert_check_refuses(const char *arguments, const char *word)
{
	server_config_defaults(&c);
	assert_int_equal(parse(arguments), OPTS_OK);
	assert_int_equal(server_config_check(&c, err, sizeof(err)), -EINVAL);
	assert_says(err, word);
}

static void assert_check_takes(const char *arguments)
{
	server_config_defaults(&c);
	if (parse(arguments) != OPTS_OK || server_config_check(&c, err, sizeof(err)))
		fail_msg("%s: %s", arguments, err);
}

TEST(table__all_options__sorted_and_explained)
{
	for (size_t i = 0; i < server_options.n_opts; i++) {
		const struct opt *o = &server_options.opts[i];

		if (i > 0)
			assert_true(strcmp(server_options.opts[i - 1].name, o->name) < 0);
		assert_true(o->help && strlen(o->help) > 5);
		assert_true(o->offset < sizeof(c));
		assert_int_equal(o->type == OPT_FLAG, o->metavar == NULL);
		assert_int_equal(o->type == OPT_CHOICE, o->choices != NULL);
		assert_true(o->min <= o->max);
	}
}

TEST(check__what_is_asked_of_clients__only_of_those_with_certificates)
{
	assert_refuses("--crl /tmp/crl.pem", "--crl: needs --client-auth require");
	assert_refuses("--allow-names a.b", "--allow-names: needs --client-auth require");
	assert_check_refuses("--client-auth require --allow-names a..b,*", "--allow-names: '*' is not allowed");
	assert_check_takes("--client-auth require --crl /tmp/crl.pem --allow-names *.a.b,10.0.0.1");
}

TEST(parse__message_size_out_of_the_wires_range__refused)
{
	assert_int_equal(parse("--message-size 16"), OPTS_OK);
	assert_int_equal(c.message_bytes, FRAME_MESSAGE_BYTES_MIN);
	assert_int_equal(parse("--message-size 15"), OPTS_ERROR);
	assert_int_equal(parse("--message-size 1M"), OPTS_OK);
	assert_int_equal(c.message_bytes, FRAME_MESSAGE_BYTES_MAX);
	assert_int_equal(parse("--message-size 1048577"), OPTS_ERROR);
}

TEST(parse__choices__the_enums_order)
{
	assert_int_equal(parse("--poll event --log-level error --client-auth none"), OPTS_OK);
	assert_int_equal(c.poll, POLL_EVENT);
	assert_int_equal(c.log_level, LOG_LVL_ERROR);
	assert_int_equal(c.client_auth, CLIENT_AUTH_NONE);
	assert_int_equal(parse("--poll busy --log-level debug --client-auth require"), OPTS_OK);
	assert_int_equal(c.poll, POLL_BUSY);
	assert_int_equal(c.log_level, LOG_LVL_DEBUG);
	assert_int_equal(c.client_auth, CLIENT_AUTH_REQUIRE);
	assert_int_equal(parse("--poll adaptive --windows on"), OPTS_OK);
	assert_int_equal(c.poll, POLL_ADAPTIVE);
	assert_int_equal(c.windows, 1);
}

TEST(parse__durations__in_nanoseconds)
{
	assert_int_equal(parse("--handshake-timeout 250ms --session-timeout 2m --probe-interval 0"),
			 OPTS_OK);
	assert_true(c.handshake_timeout_ns == 250 * NS_PER_MS);
	assert_true(c.session_timeout_ns == 120 * NS_PER_S);
	assert_true(c.probe_interval_ns == 0);
	assert_int_equal(parse("--handshake-timeout 9ms"), OPTS_ERROR);
}

TEST(parse__session_tickets__switch_and_rotation)
{
	assert_int_equal(c.tls_resume, 1);
	assert_int_equal(parse("--tls-resume off"), OPTS_OK);
	assert_int_equal(c.tls_resume, 0);
	assert_int_equal(parse("--tls-resume on --ticket-rotation 90"), OPTS_OK);
	assert_int_equal(c.tls_resume, 1);
	assert_true(c.ticket_rotation_ns == 90 * NS_PER_S);
	assert_int_equal(parse("--tls-resume maybe"), OPTS_ERROR);
	/* Lifetimes are whole seconds (RFC 8446, 4.6.1), and a ticket lives for up to two rotations. */
	assert_int_equal(parse("--ticket-rotation 1"), OPTS_OK);
	assert_int_equal(parse("--ticket-rotation 999ms"), OPTS_ERROR);
	assert_int_equal(parse("--ticket-rotation 0"), OPTS_ERROR);
	assert_int_equal(parse("--ticket-rotation 86400"), OPTS_OK);
	assert_int_equal(parse("--ticket-rotation 86401"), OPTS_ERROR);
}

TEST(check__defaults__taken)
{
	assert_check_takes("");
	assert_says(c.cert_path, "build/certs/server.pem");
	assert_says(c.key_path, "build/certs/server.key");
	assert_says(c.ca_path, "build/certs/ca.pem");
	assert_int_equal(c.cert_path[0], '/');
}

TEST(check__rdma_ports_beyond_65535__refused)
{
	assert_check_refuses("--rdma-port 65535 --threads 2", "allowed: 1 to 65534");
	assert_check_takes("--rdma-port 65534 --threads 2");
	assert_check_takes("--rdma-port 0 --threads 256");
}

TEST(check__bind__an_address_of_one_device)
{
	assert_check_refuses("--bind localhost", "--bind: 'localhost'");
	assert_check_refuses("--bind 0.0.0.0", "--bind: 0.0.0.0 is not allowed");
	assert_check_refuses("--bind ::", "--bind: :: is not allowed");
	assert_check_takes("--bind 10.0.0.1");
	assert_int_equal(c.n_rails, 1);
	assert_int_equal(c.rails[0].addr.ss.ss_family, AF_INET);
	assert_string_equal(c.rails[0].device, "");
	assert_check_takes("--bind fe80::1");
}

TEST(check__devices__a_rail_each)
{
	assert_check_takes("");
	assert_int_equal(c.n_rails, 1);
	assert_string_equal(c.rails[0].device, "");
	assert_int_equal(c.rails[0].addr.len, 0);
	assert_check_takes("--device rxe1");
	assert_int_equal(c.n_rails, 1);
	assert_string_equal(c.rails[0].device, "rxe1");
	assert_check_takes("--device rxe1,rxe0 --threads 3");
	assert_int_equal(c.n_rails, 2);
	assert_string_equal(c.rails[0].device, "rxe1");
	assert_string_equal(c.rails[1].device, "rxe0");
	assert_int_equal(c.rails[1].addr.len, 0);
	assert_int_equal(server_config_shards(&c), 6);
	assert_check_refuses("--device rxe0,,rxe1", "--device: 'rxe0,,rxe1' has an empty name; allowed: 1 to 8");
	assert_check_refuses("--device rxe0,rxe0", "--device: 'rxe0,rxe0' has a name twice");
	assert_check_refuses("--device a,b,c,d,e,f,g,h,i", "too many names");
}

TEST(check__addresses__a_rail_each)
{
	struct addr a;

	assert_check_takes("--bind 10.77.0.1,fd00::2");
	assert_int_equal(c.n_rails, 2);
	assert_string_equal(c.rails[1].device, "");
	assert_int_equal(addr_parse("fd00::2", 0, &a), 0);
	assert_true(addr_same_host(&c.rails[1].addr, &a));
	assert_int_equal(c.rails[0].addr.ss.ss_family, AF_INET);
	assert_check_refuses("--bind 10.77.0.1,10.77.0.1", "--bind: '10.77.0.1,10.77.0.1' has a name twice");
	/* The same address, written in two ways. */
	assert_check_refuses("--bind fd00::1,fd00:0::1", "--bind: fd00:0::1 is given twice");
	assert_check_refuses("--bind 10.77.0.1,here", "--bind: 'here' is not an IPv4 or IPv6 address");
	assert_check_refuses("--bind 10.77.0.1,0.0.0.0", "--bind: 0.0.0.0 is not allowed");
	assert_check_refuses("--bind 10.77.0.1,", "--bind: '10.77.0.1,' has an empty name");
}

TEST(check__devices_and_addresses__as_many_of_each)
{
	assert_check_takes("--device rxe1,rxe0 --bind 10.78.0.1,10.77.0.1");
	assert_string_equal(c.rails[0].device, "rxe1");
	assert_int_equal(c.rails[0].addr.ss.ss_family, AF_INET);
	assert_check_refuses("--device rxe0,rxe1 --bind 10.77.0.1", "--device and --bind: the lists have 2 and 1 "
			     "entries; allowed: an address for each device, in the same order");
	assert_check_refuses("--device rxe0 --bind 10.77.0.1,10.78.0.1", "--device and --bind: the lists have 1 and 2");
}

TEST(check__rdma_ports_of_several_rails__count_together)
{
	assert_check_refuses("--rdma-port 65531 --threads 2 --device a,b,c",
			     "--threads 2 on each rail need ports above 65535; allowed: 1 to 65530");
	assert_check_takes("--rdma-port 65530 --threads 2 --device a,b,c");
	assert_check_takes("--rdma-port 0 --threads 256 --device a,b,c,d,e,f,g,h");
}

TEST(check__cert_without_key__refused)
{
	assert_refuses("--cert a.pem", "--cert: needs --key");
	assert_refuses("--key a.key", "--key: needs --cert");
	assert_check_takes("--cert a.pem --key /b/a.key --ca c.pem");
	assert_string_equal(c.cert_path, "a.pem");
	assert_string_equal(c.key_path, "/b/a.key");
	assert_string_equal(c.ca_path, "c.pem");
}

TEST(check__path_too_long__refused)
{
	static char path[PATH_MAX + 2];

	memset(path, 'p', PATH_MAX);
	c.ca = path;
	assert_int_equal(server_config_check(&c, err, sizeof(err)), -EINVAL);
	assert_says(err, "too long");
}

TEST_EACH(set_up, NULL)
