/* The three capacities of a run. See found.h. */
#include "loadgen/report/sections/found.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"

static void take(const json_t *o, struct found *out)
{
	const json_t *failure = json_at(o, "failure");
	const char *text = json_text_at(o, "text");

	*out = (struct found) {
		.clients = json_number_at(o, "clients"),
		.low = json_number_at(o, "low"),
		.high = json_number_at(o, "high"),
		.passes = json_number_at(o, "passes"),
		.tries = json_number_at(o, "tries"),
		.at_least = json_is_true(json_at(o, "at_least")),
		.confirmed = json_is_true(json_at(o, "confirmed")),
		.reason = text ? text : json_text_at(o, "reason"),
		.failure = json_is_object(failure) ? failure : NULL,
	};
}

bool found_read(const struct page *p, const char *which, struct found *out)
{
	const json_t *o = json_at(json_at(p->run, "analysis.capacity"), which);

	take(o, out);
	return json_is_object(o);
}

void found_knee(const struct page *p, struct found *out)
{
	take(p->knee, out);
}

bool found_slow_first(const struct page *p)
{
	struct found slo, hard;

	return found_read(p, "slo_capacity", &slo) && isfinite(slo.high) && !slo.at_least &&
	       found_read(p, "first_hard_failure", &hard) && slo.high < hard.clients;
}

bool found_held(const struct point *at)
{
	for (size_t i = 0; i < at->n; i++)
		if (!(json_number_at(at->steps[i], "connected_held") >= at->clients) ||
		    json_number_at(at->steps[i], "failed") > 0 || json_number_at(at->steps[i], "dropped") > 0)
			return false;
	return true;
}

const struct point *found_first_not_held(const struct points *points)
{
	const struct point *first = NULL;

	for (size_t i = 0; i < points->n; i++)
		if (!found_held(&points->v[i]) && (!first || points->v[i].clients < first->clients))
			first = &points->v[i];
	return first;
}

double found_most_held(const struct points *points)
{
	const struct point *bad = found_first_not_held(points);
	double most = NAN;

	for (size_t i = 0; i < points->n; i++)
		if (!bad || points->v[i].clients < bad->clients)
			most = fmax(most, points->v[i].clients);
	return most;
}

bool found_share_machine(const struct page *p)
{
	const char *server = json_text_at(p->run, "environment.server.hostname");
	const char *clients = json_text_at(p->run, "environment.clients.hostname");

	/* Also with a server that was started by hand. */
	return (server && clients && strcmp(server, clients) == 0) || read_shares_machine(p->run);
}

/* The share of `cores` that was used with the most clients: the sum of two figures over a window. */
static double share_at_most(const struct page *p, double cores, const char *const paths[2], const char *window)
{
	double most = 0, share = NAN;

	for (size_t i = 0; i < p->points->n; i++) {
		const struct point *at = &p->points->v[i];
		double used = point_range(at, paths[0]).value;

		if (paths[1])
			used += point_range(at, paths[1]).value;
		used /= point_range(at, window).value * cores;
		if (!isfinite(used) || at->clients < most)
			continue;
		most = at->clients;
		share = used;
	}
	return share;
}

double found_cpu_share(const struct page *p)
{
	static const char *const busy[2] = { "resources.machine.busy_s" };

	return share_at_most(p, json_number_at(p->run, "environment.clients.cores"), busy, "resources.machine.window_s");
}

double found_server_cpu_share(const struct page *p)
{
	static const char *const used[2] = { "resources.server.cpu_user_s", "resources.server.cpu_system_s" };

	return share_at_most(p, json_number_at(p->run, "environment.server.cores"), used, "resources.server.window_s");
}

const char *found_resource_words(const char *resource)
{
	static const struct { const char *name, *words;
	} names[] = {
		{ "nofile", "open files (file descriptors)" },
		{ "memory", "memory" },
		{ "ports", "network ports" },
		{ "memlock", "pinned memory" },
		{ "max_clients", "the server's --max-clients" },
		{ "server_resources", "the server's own resources" },
		{ "handshakes", "handshakes under way" },
		{ "time", "the time to connect" },
		{ "server", "the server itself" },
		{ "queue_pairs", "queue pairs" },
		{ "peer", "the other end" },
		{ "unknown", "something unknown" },
		{ "max_qp", "queue pairs of the device" },
		{ "max_cq", "completion queues of the device" },
		{ "max_mr", "memory regions of the device" },
		{ "cqe", "the size of a completion queue" },
		{ "max_srq_wr", "the size of the shared receive queue" },
	};

	for (size_t i = 0; resource && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, resource) == 0)
			return names[i].words;
	return resource ? resource : "something unknown";
}

const char *found_side_words(const char *side)
{
	if (side && strcmp(side, "both") == 0)
		return "both ends together";
	if (side && strcmp(side, "generator") == 0)
		return "load generator";
	return !side || strcmp(side, "unknown") == 0 ? "side unknown" : side;
}
