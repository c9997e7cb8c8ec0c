/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/plan/measured.c: CPU time of messages and connections from a run. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/plan/measured.h"
#include "tests/unit/helpers/analysis_run.h"

static struct loadgen_config cfg;
static struct measured m;
static json_t *run;
static char err[512];

static int set_up(void **state)
{
	(void)state;
	loadgen_config_defaults(&cfg);
	run = analysis_run();
	cfg.message_bytes = (uint64_t)json_number_at(analysis_run_step(run, 0), "message_bytes");
	json_object_set_new(json_object_get(run, "config"), "transport", json_string("rdma"));
	json_object_set_new(json_object_get(run, "config"), "workload", json_string("echo"));
	/* From 2 s to 6 s, 40 clients came with 0.8 s of the server's CPU time. */
	json_object_set_new(run, "resources_series", json_loads(
		"{\"phases\": {\"t_s\": [0.5, 1, 7], \"name\": [\"marking\", \"connecting\", \"counting\"]}, "
		"\"server\": {\"t_s\": [0, 2, 4, 6, 8], \"clients_connected\": [0, 10, 30, 50, 100], "
		"\"cpu_user_s\": [0, 0.1, 0.2, 0.5, 3], \"cpu_system_s\": [0, 0.1, 0.2, 0.5, 3]}, "
		"\"generator\": null}", 0, NULL));
	measured_init(&m);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(run);
	return 0;
}

TEST(measured__largest_step__time_of_a_message_and_of_a_connection)
{
	const json_t *step = analysis_run_step(run, 2);
	double cpu = json_number_at(step, "resources.server.cpu_user_s") +
		     json_number_at(step, "resources.server.cpu_system_s");
	double rate = json_number_at(step, "throughput_msgs_per_s");

	assert_int_equal(measured_read(run, &cfg, &m, err, sizeof(err)), 0);
	assert_true(m.messages_per_s == rate);
	assert_true(fabs(m.server.s_per_message * rate * json_number_at(step, "resources.server.window_s") / cpu - 1) <
		    1e-9);
	assert_true(fabs(m.server.s_per_connection - 0.02) < 1e-9);
	assert_true(isnan(m.generator.s_per_connection));
	assert_true(fabs(measured_cpus(&m.server, 2 * rate, 50) - 2 * rate * m.server.s_per_message - 1) < 1e-9);
	assert_true(isfinite(measured_cpus(&m.generator, rate, 0)));
	assert_true(isnan(measured_cpus(&m.generator, rate, 50)));
}

TEST(measured__another_transport_or_size__refused)
{
	cfg.transport = TRANSPORT_TCP;
	assert_int_equal(measured_read(run, &cfg, &m, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "--transport tcp and --workload echo"));
	cfg.transport = TRANSPORT_RDMA;
	cfg.message_bytes++;
	assert_int_equal(measured_read(run, &cfg, &m, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "--message-size"));
}

TEST(measured__damaged_series__no_time_of_a_connection)
{
	static const char *const damaged[] = {
		"null", "[]", "{\"phases\": {\"t_s\": 1, \"name\": [\"connecting\", 2]}}",
		("{\"phases\": {\"t_s\": [1, 9], \"name\": [\"connecting\", 2]}, \"server\": {\"t_s\": [2, 3], "
		 "\"cpu_user_s\": [5], \"cpu_system_s\": {}, \"clients_connected\": [0, -4]}}"),
	};

	for (size_t i = 0; i < N_ELEMENTS(damaged); i++) {
		json_object_set_new(run, "resources_series", json_loads(damaged[i], JSON_DECODE_ANY, NULL));
		assert_int_equal(measured_read(run, &cfg, &m, err, sizeof(err)), 0);
		assert_true(isnan(m.server.s_per_connection));
	}
}

TEST_EACH(set_up, tear_down)
