/* SPDX-License-Identifier: BSD-2-Clause */
/* See report_sum.h. */
#include "loadgen/measurement/report_sum.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 256
#define DEPTH_MAX 8	/* nesting depth of objects in a report; deeper objects become null */

const char *const report_adds[] = {
	"clients.connected", "clients.handshakes", "clients.closing", "clients.control",
	"events.tcp_accepted", "events.tls_shared", "events.granted", "events.established", "events.handshakes_full",
	"events.handshakes_resumed",
	"events.tickets", "events.messages_in", "events.messages_out", "events.bytes_in", "events.bytes_out",
	"events.messages_checked", "events.messages_corrupt", "events.probes", "events.psn_verified",
	"events.psn_mismatches", "events.psn_conflicts", "events.psn_redraws", "events.receive_shortfalls",
	"events.refused.", "events.closed.",
	"shards",
	/* Figures of the whole machine are left out: two servers may share it. */
	"resources.qps", "resources.cqs", "resources.mrs", "resources.pinned_bytes", "resources.cpu_user_s",
	"resources.cpu_system_s", "resources.switches_voluntary", "resources.switches_involuntary",
	"resources.rss_bytes", "resources.fds", "resources.threads", "resources.heap_bytes", "resources.net_bytes",
	"pools.qp.", "pools.buffers.", "pools.psns_in_use", "pools.sessions", "pools.regions_in_use", "pools.admitted",
	"effective.requests", "effective.doorbells", "effective.signalled", "effective.polls", "effective.empty_polls",
	"effective.completions", "effective.threads",
	NULL
};

/* Whether a path is listed, or the object that directly contains it is listed as a group ("a."). */
enum adding { ADDS_NOT, ADDS, ADDS_IN_GROUP };

static enum adding how(const char *path, const char *const *adds)
{
	const char *dot = strrchr(path, '.');
	size_t group = dot ? (size_t)(dot - path) + 1 : 0;

	for (; *adds; adds++) {
		if (strcmp(*adds, path) == 0)
			return ADDS;
		if (group && strlen(*adds) == group && strncmp(*adds, path, group) == 0)
			return ADDS_IN_GROUP;
	}
	return ADDS_NOT;
}

static json_t *add_numbers(json_t *const *v, size_t n, bool missing_is_0)
{
	json_int_t whole = 0;
	double real = 0;
	bool is_real = false;

	for (size_t i = 0; i < n; i++) {
		if (!v[i] && missing_is_0)
			continue;
		if (!json_is_number(v[i]))
			return json_null();
		is_real |= json_is_real(v[i]);
		real += json_number_value(v[i]);
		if (json_is_integer(v[i]) && __builtin_add_overflow(whole, json_integer_value(v[i]), &whole))
			is_real = true;
	}
	return is_real ? json_real(real) : json_integer(whole);
}

static json_t *join_arrays(json_t *const *v, size_t n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		if (json_is_array(v[i]) && !json_array_extend(all, v[i]))
			continue;
		json_decref(all);
		return json_null();
	}
	return all;
}

static json_t *sum_objects(json_t *const *of, size_t n, const char *const *adds, const char *path, unsigned depth);

static json_t *sum_values(json_t *const *v, size_t n, const char *const *adds, const char *path, unsigned depth)
{
	enum adding adding = how(path, adds);
	size_t objects = 0;

	for (size_t i = 0; i < n; i++)
		objects += json_is_object(v[i]);
	if (objects == n && depth < DEPTH_MAX)
		return sum_objects(v, n, adds, path, depth + 1);
	if (adding == ADDS && json_is_array(v[0]))
		return join_arrays(v, n);
	return adding == ADDS_NOT ? json_null() : add_numbers(v, n, adding == ADDS_IN_GROUP);
}

/* Sets the member `key` of `sum` to the sum of that member over all objects. */
static void sum_member(json_t *sum, const char *key, json_t *const *of, size_t n, const char *const *adds,
		       const char *path, unsigned depth)
{
	json_t *v[n];
	char at[PATH_BYTES];

	/* A truncated path matches no entry of `adds`, so its value becomes null. */
	snprintf(at, sizeof(at), "%s%s%s", path, *path ? "." : "", key);
	for (size_t i = 0; i < n; i++)
		v[i] = json_object_get(of[i], key);
	json_object_set_new(sum, key, sum_values(v, n, adds, at, depth));
}

static json_t *sum_objects(json_t *const *of, size_t n, const char *const *adds, const char *path, unsigned depth)
{
	json_t *sum = json_object(), *v;
	const char *key;

	for (size_t i = 0; sum && i < n; i++)
		json_object_foreach(of[i], key, v) {
			if (!json_object_get(sum, key))
				sum_member(sum, key, of, n, adds, path, depth);
		}
	return sum;
}

json_t *json_sum(json_t *const *of, size_t n, const char *const *adds)
{
	for (size_t i = 0; i < n; i++)
		if (!json_is_object(of[i]))
			return NULL;
	return n ? sum_objects(of, n, adds, "", 0) : NULL;
}
