/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings that did not take effect. See untaken.h. */
#include "loadgen/analysis/untaken.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/host/cpu_list.h"

#define VALUE_MAX 64

enum unit { UNIT_NONE, UNIT_BYTES, UNIT_NS };

struct difference {
	const char *setting, *side;
	char asked[VALUE_MAX], got[VALUE_MAX];
};

static bool is_in(const json_t *list, const struct difference *d)
{
	const json_t *e;
	size_t i;

	json_array_foreach((json_t *)list, i, e) {
		const char *setting = json_text_at(e, "setting"), *side = json_text_at(e, "side");

		if (setting && side && strcmp(setting, d->setting) == 0 && strcmp(side, d->side) == 0)
			return true;
	}
	return false;
}

static const char *text_at(const json_t *o, const char *name)
{
	const char *text = json_text_at(o, name);

	return text ? text : "unknown";
}

/* Returns how many were appended: 0 or 1. */
static size_t append(json_t *list, const struct difference *d)
{
	if (is_in(list, d))
		return 0;
	return json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "setting", d->setting, "side", d->side,
						     "asked", d->asked, "got", d->got)) == 0;
}

static void in_unit(double v, enum unit unit, char out[VALUE_MAX])
{
	if (unit == UNIT_NS)
		snprintf(out, VALUE_MAX, "%.6g ms", v / 1e6);
	else
		snprintf(out, VALUE_MAX, "%.0f%s", v, unit == UNIT_BYTES ? " bytes" : "");
}

static size_t differ(json_t *list, const char *side, const char *setting, double asked, double got, enum unit unit)
{
	struct difference d = { .setting = setting, .side = side };

	in_unit(asked, unit, d.asked);
	in_unit(got, unit, d.got);
	return append(list, &d);
}

/* Settings that the queue pair takes exactly as requested, or not at all. */
static const struct exact {
	const char *setting, *asked, *got;
	enum unit unit;
} exact[] = {
	{ "--ack-timeout", "ack_timeout_ns", "qp.ack_timeout_ns", UNIT_NS },
	{ "--retry-count", "retry_count", "qp.retry_count", UNIT_NONE },
	{ "--rnr-retry", "rnr_retry", "qp.rnr_retry", UNIT_NONE },
	{ "--rnr-timer", "rnr_timer_ns", "qp.rnr_timer_ns", UNIT_NS },
	{ "--traffic-class", "traffic_class", "qp.traffic_class", UNIT_NONE },
	{ "--service-level", "service_level", "qp.service_level", UNIT_NONE },
	{ "--gid-index", "gid_index", "qp.gid_index", UNIT_NONE },
};

static size_t look_at_queue_pair(json_t *list, const char *side, const json_t *tuning, const json_t *thread)
{
	const char *mtu = json_text_at(tuning, "path_mtu");
	double most = mtu ? atof(mtu) : 0, got = json_number_at(thread, "qp.path_mtu_bytes");
	size_t n = 0;

	for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++) {
		double a = json_number_at(tuning, exact[i].asked), g = json_number_at(thread, exact[i].got);

		if (isfinite(a) && isfinite(g) && a != g)
			n += differ(list, side, exact[i].setting, a, g, exact[i].unit);
	}
	/* --path-mtu is an upper limit; the path's own MTU may be lower. */
	return most > 0 && got < most ? n + differ(list, side, "--path-mtu", most, got, UNIT_BYTES) : n;
}

/* --cpu-list gives each thread one CPU of the list, in turn. */
static size_t look_at_cpus(json_t *list, const char *side, const json_t *tuning, const json_t *thread, size_t index)
{
	const char *text = json_text_at(tuning, "cpu_list"), *may = json_text_at(thread, "cpus");
	struct difference d = { .setting = "--cpu-list", .side = side };
	uint16_t cpus[CPU_SETSIZE], got[CPU_SETSIZE];
	uint32_t n, n_got;

	/* Both texts may come from a server, which is not trusted: they may be malformed. */
	if (!text || !may || cpu_list_parse(text, cpus, CPU_SETSIZE, &n) ||
	    cpu_list_parse(may, got, CPU_SETSIZE, &n_got))
		return 0;
	snprintf(d.asked, sizeof(d.asked), "%u", cpus[index % n]);
	if (strcmp(d.asked, may) == 0)
		return 0;
	snprintf(d.asked, sizeof(d.asked), "CPU %u for thread %zu", cpus[index % n], index);
	snprintf(d.got, sizeof(d.got), "CPUs %.50s", may);
	return append(list, &d);
}

/* --numa auto keeps each thread on the NUMA node of its device. */
static size_t look_at_node(json_t *list, const char *side, const json_t *tuning, const json_t *thread)
{
	struct difference d = { .setting = "--numa", .side = side, .asked = "CPUs beside the device",
				.got = "any CPU: the device's NUMA node is not known" };
	const char *numa = json_text_at(tuning, "numa"), *may = json_text_at(thread, "cpus");
	double of_device = json_number_at(thread, "device_numa_node"), of_thread = json_number_at(thread, "numa_node");

	if (!numa || strcmp(numa, "auto") != 0 || !may || of_device == of_thread ||
	    (isfinite(of_device) && !isfinite(of_thread)))
		return 0;
	if (isfinite(of_device))
		snprintf(d.got, sizeof(d.got), "CPUs %.50s", may);
	return append(list, &d);
}

static size_t look_at_realtime(json_t *list, const char *side, const json_t *tuning, const json_t *thread)
{
	const struct difference d = { .setting = "--realtime", .side = side, .asked = "realtime priority",
				      .got = "normal priority" };

	return json_is_true(json_at(tuning, "realtime")) && json_is_false(json_at(thread, "realtime")) ?
	       append(list, &d) : 0;
}

/* `auto` asks for nothing, and a thread without queue pairs registers nothing for a device. */
static size_t look_at_order(json_t *list, const char *side, const json_t *tuning, const json_t *thread)
{
	const struct difference d = { .setting = "--relaxed-ordering", .side = side, .asked = "on",
				      .got = "off, because its device is software" };

	return strcmp(text_at(tuning, "relaxed_ordering"), "on") == 0 && json_is_object(json_at(thread, "qp")) &&
	       json_is_false(json_at(thread, "relaxed_ordering")) ? append(list, &d) : 0;
}

/* The kernel doubles a requested buffer size, to leave room for its own bookkeeping (socket(7)). */
static size_t look_at_buffer(json_t *list, const char *side, const char *setting, double asked, double got)
{
	return asked > got / 2 ? differ(list, side, setting, asked, got / 2, UNIT_BYTES) : 0;
}

/* TCP_QUICKACK is not compared, because the kernel changes it all the time. */
static size_t look_at_tcp(json_t *list, const char *side, const json_t *asked, const json_t *got)
{
	const char *name = json_text_at(asked, "congestion"), *has = json_text_at(got, "congestion");
	struct difference d = { .setting = "--tcp congestion", .side = side };
	double poll = json_number_at(asked, "busy_poll_us"), polls = json_number_at(got, "busy_poll_us");
	size_t n = look_at_buffer(list, side, "--tcp send-buffer", json_number_at(asked, "send_buffer_bytes"),
				  json_number_at(got, "send_buffer_bytes"));

	n += look_at_buffer(list, side, "--tcp receive-buffer", json_number_at(asked, "receive_buffer_bytes"),
			    json_number_at(got, "receive_buffer_bytes"));
	if (poll > polls || poll < polls)
		n += differ(list, side, "--tcp busy-poll", poll, polls, UNIT_NONE);
	if (json_number_at(asked, "zerocopy_bytes") > 0 && json_is_false(json_at(got, "zerocopy")))
		n += append(list, &(struct difference){ .setting = "--tcp zerocopy", .side = side,
							.asked = "zero copies", .got = "copies" });
	if (!name || !has || strcmp(name, has) == 0)
		return n;
	snprintf(d.asked, sizeof(d.asked), "%s", name);
	snprintf(d.got, sizeof(d.got), "%s", has);
	return n + append(list, &d);
}

static size_t look_at_thread(json_t *list, const char *side, const json_t *config, const json_t *thread, size_t index)
{
	const json_t *tuning = json_at(config, "tuning");
	double wanted = json_number_at(thread, "inline_wanted_bytes"),
		granted = json_number_at(thread, "inline_granted_bytes");
	size_t n = granted < wanted ? differ(list, side, "--inline", wanted, granted, UNIT_BYTES) : 0;

	n += look_at_tcp(list, side, json_at(config, "tcp"), json_at(thread, "tcp"));
	if (!tuning)
		return n;
	return n + look_at_queue_pair(list, side, tuning, thread) + look_at_order(list, side, tuning, thread) +
	       look_at_cpus(list, side, tuning, thread, index) + look_at_node(list, side, tuning, thread) +
	       look_at_realtime(list, side, tuning, thread);
}

static size_t look_at_side(json_t *list, const char *side, const json_t *config, const json_t *threads)
{
	const json_t *thread;
	size_t i, n = 0;

	json_array_foreach((json_t *)threads, i, thread) {
		n += look_at_thread(list, side, config, thread, i);
	}
	return n;
}

size_t untaken_add(json_t *list, const json_t *generator_config, const json_t *server_config, const json_t *step)
{
	return look_at_side(list, "generator", generator_config, json_at(step, "effective.generator.threads")) +
	       look_at_side(list, "server", server_config, json_at(step, "effective.server.threads"));
}

const char *untaken_text(const json_t *element, char *out, size_t size)
{
	snprintf(out, size, "%s: asked for %s, the %s got %s", text_at(element, "setting"),
		 text_at(element, "asked"), text_at(element, "side"), text_at(element, "got"));
	return out;
}
