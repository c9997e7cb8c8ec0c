/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/analysis/untaken.c: it finds the settings that did not take effect, and no others. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/untaken.h"

static json_t *list;

static int setup(void **state)
{
	(void)state;
	list = json_array();
	return !list;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(list);
	return 0;
}

static json_t *read(const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	assert_non_null(o);
	return o;
}

#define ASKED "{'tuning': {'path_mtu': '%s', 'cpu_list': %s, 'realtime': %s, 'ack_timeout_ns': 268435456, " \
	      "'retry_count': %d}}"
#define THREAD "{'cpus': '%s', 'realtime': %s, 'inline_wanted_bytes': 1024, 'inline_granted_bytes': %d, " \
	       "'qp': {'path_mtu_bytes': %d, 'ack_timeout_ns': 268435456, 'retry_count': 6}}"

static json_t *made(const char *format, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	for (char *p = text; (p = strchr(p, '\'')); p++)
		*p = '"';
	return read(text);
}

static json_t *step_of(json_t *generator_thread)
{
	return json_pack("{s:{s:n, s:{s:[o]}}}", "effective", "server", "generator", "threads", generator_thread);
}

static bool has(const char *setting, const char *asked, const char *got)
{
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e) {
		if (strcmp(json_text_at(e, "setting"), setting) == 0)
			return strcmp(json_text_at(e, "asked"), asked) == 0 && strcmp(json_text_at(e, "got"), got) == 0;
	}
	return false;
}

TEST(all_taken__nothing)
{
	json_auto_t *tuning = made(ASKED, "auto", "'0-1'", "false", 6),
		*step = step_of(made(THREAD, "0", "false", 1024, 1024));

	assert_int_equal(untaken_add(list, tuning, NULL, step), 0);
	assert_int_equal(json_array_size(list), 0);
}

TEST(none_taken__each_once)
{
	json_auto_t *tuning = made(ASKED, "4096", "'1'", "true", 3),
		*step = step_of(made(THREAD, "0-1", "false", 512, 1024));
	char text[256];

	assert_int_equal(untaken_add(list, tuning, NULL, step), 5);
	assert_true(has("--inline", "1024 bytes", "512 bytes"));
	assert_true(has("--path-mtu", "4096 bytes", "1024 bytes"));
	assert_true(has("--cpu-list", "CPU 1 for thread 0", "CPUs 0-1"));
	assert_true(has("--realtime", "realtime priority", "normal priority"));
	assert_true(has("--retry-count", "3", "6"));
	/* They are already known, so the next step adds none. */
	assert_int_equal(untaken_add(list, tuning, NULL, step), 0);
	assert_int_equal(json_array_size(list), 5);
	assert_string_equal(untaken_text(json_array_get(list, 0), text, sizeof(text)),
			    "--inline: asked for 1024 bytes, the generator got 512 bytes");
}

/* How many settings are found for a thread on node `of_thread` with a device at `of_device` (JSON). */
static size_t of_nodes(const char *numa, const char *of_thread, const char *of_device)
{
	json_t *tuning = made("{'tuning': {'numa': '%s'}}", numa);
	json_t *step = step_of(made("{'cpus': '0-3', 'numa_node': %s, 'device_numa_node': %s}", of_thread, of_device));
	size_t n = untaken_add(list, tuning, NULL, step);

	json_decref(tuning);
	json_decref(step);
	return n;
}

TEST(numa__thread_beside_its_device_or_not_asked__nothing)
{
	assert_int_equal(of_nodes("auto", "1", "1"), 0);
	assert_int_equal(of_nodes("auto", "null", "1"), 0);
	assert_int_equal(of_nodes("off", "0", "1"), 0);
	assert_int_equal(of_nodes("off", "0", "null"), 0);
}

TEST(numa__elsewhere__said)
{
	assert_int_equal(of_nodes("auto", "0", "1"), 1);
	assert_true(has("--numa", "CPUs beside the device", "CPUs 0-3"));
}

TEST(numa__device_without_a_node__said)
{
	assert_int_equal(of_nodes("auto", "0", "null"), 1);
	assert_true(has("--numa", "CPUs beside the device", "any CPU: the device's NUMA node is not known"));
}

TEST(relaxed_ordering__asked_for_and_not_there__said)
{
	static const struct { const char *asked, *got; size_t n; } cases[] = {
		{ "on", "false", 1 }, { "on", "true", 0 }, { "auto", "false", 0 }, { "off", "false", 0 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		json_t *tuning = made("{'tuning': {'relaxed_ordering': '%s'}}", cases[i].asked);
		json_t *step = step_of(made("{'relaxed_ordering': %s, 'qp': {}}", cases[i].got));

		assert_int_equal(untaken_add(list, tuning, NULL, step), cases[i].n);
		json_decref(tuning);
		json_decref(step);
	}
	assert_true(has("--relaxed-ordering", "on", "off, because its device is software"));
}

TEST(server__its_own_settings_count)
{
	json_t *step = json_pack("{s:{s:{s:[o]}, s:{s:[]}}}", "effective", "server", "threads",
				 made(THREAD, "0", "false", 1024, 1024), "generator", "threads");
	json_auto_t *low = made(ASKED, "1024", "null", "false", 6), *high = made(ASKED, "2048", "null", "false", 6);

	assert_int_equal(untaken_add(list, high, low, step), 0);
	assert_int_equal(untaken_add(list, low, high, step), 1);
	assert_string_equal(json_text_at(json_array_get(list, 0), "side"), "server");
	json_decref(step);
}

#define TCP_ASKED "{'tcp': {'send_buffer_bytes': 4194304, 'receive_buffer_bytes': 65536, 'busy_poll_us': 50, " \
		  "'zerocopy_bytes': 65536, 'congestion': 'bbr'}}"

/* The kernel reports twice the buffer size that was asked for. */
TEST(tcp__less_than_asked__each_said)
{
	json_auto_t *asked = made(TCP_ASKED);
	json_t *as_asked = step_of(made("{'tcp': {'send_buffer_bytes': 8388608, 'receive_buffer_bytes': 131072, "
					"'busy_poll_us': 50, 'zerocopy': true, 'congestion': 'bbr'}}"));
	json_t *less = step_of(made("{'tcp': {'send_buffer_bytes': 425984, 'receive_buffer_bytes': 131072, "
				    "'busy_poll_us': 0, 'zerocopy': false, 'congestion': 'cubic'}}"));

	assert_int_equal(untaken_add(list, asked, NULL, as_asked), 0);
	assert_int_equal(untaken_add(list, asked, NULL, less), 4);
	assert_true(has("--tcp send-buffer", "4194304 bytes", "212992 bytes"));
	assert_true(has("--tcp busy-poll", "50", "0"));
	assert_true(has("--tcp zerocopy", "zero copies", "copies"));
	assert_true(has("--tcp congestion", "bbr", "cubic"));
	json_decref(as_asked);
	json_decref(less);
}

TEST(tcp__nothing_asked_or_over_rdma__nothing)
{
	json_auto_t *nothing = made("{'tcp': {'send_buffer_bytes': null, 'busy_poll_us': null, 'congestion': null}}");
	json_auto_t *asked = made(TCP_ASKED);
	json_t *step = step_of(made("{'tcp': {'send_buffer_bytes': 1, 'busy_poll_us': 0, 'zerocopy': false, "
				    "'congestion': 'cubic'}}"));
	json_auto_t *rdma = step_of(made("{'tcp': null}"));

	assert_int_equal(untaken_add(list, nothing, NULL, step), 0);
	assert_int_equal(untaken_add(list, asked, NULL, rdma), 0);
	json_decref(step);
}

TEST(not_known_or_damaged__nothing)
{
	static const char *const steps[] = {
		"{}", "{\"effective\": 1}",
		("{\"effective\": {\"generator\": {\"threads\": [null, 3, {\"qp\": null}, "
		 "{\"cpus\": 5, \"realtime\": \"no\", \"qp\": {\"path_mtu_bytes\": \"x\"}}]}, \"server\": null}}"),
	};
	json_auto_t *tuning = made(ASKED, "4096", "'1'", "true", 3);

	for (size_t i = 0; i < N_ELEMENTS(steps); i++) {
		json_t *step = read(steps[i]);

		assert_int_equal(untaken_add(list, tuning, tuning, step), 0);
		json_decref(step);
	}
}

TEST_EACH(setup, teardown)
