/* SPDX-License-Identifier: BSD-2-Clause */
/* The three capacities of a run. See found.h. */
#include "loadgen/report/sections/found.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"

static void take_found(const json_t *o, struct found *out)
{
	const json_t *failure = json_at(o, "failure");

	*out = (struct found) {
		.clients = json_number_at(o, "clients"),
		.low = json_number_at(o, "low"),
		.high = json_number_at(o, "high"),
		.passes = json_number_at(o, "passes"),
		.tries = json_number_at(o, "tries"),
		.missed = json_number_at(o, "upper.missed"),
		.upper_tries = json_number_at(o, "upper.tries"),
		.unsteady = json_number_at(o, "lower.unsteady") + json_number_at(o, "upper.unsteady"),
		.between = json_at(o, "between"),
		.scatters = json_is_true(json_at(o, "scatters")),
		.capped = json_text_at(o, "capped_by") != NULL,
		.at_least = json_is_true(json_at(o, "at_least")),
		.confirmed = json_is_true(json_at(o, "confirmed")),
		.reason = page_text_at(o, "text", json_text_at(o, "reason")),
		.failure = json_is_object(failure) ? failure : NULL,
	};
}

bool found_read(const struct page *p, const char *which, struct found *out)
{
	const json_t *o = json_at(json_at(p->run, "analysis.capacity"), which);

	take_found(o, out);
	return json_is_object(o);
}

void found_knee(const struct page *p, struct found *out)
{
	take_found(p->knee, out);
}

bool found_only_connects(const struct page *p)
{
	const char *workload = page_text_at(p->run, "config.workload", "");

	return strcmp(workload, "idle") == 0 || strcmp(workload, "connect") == 0;
}

enum transport found_transport(const struct page *p)
{
	const char *name = page_text_at(p->run, "config.transport", "");

	return strcmp(name, "tcp") == 0 ? TRANSPORT_TCP : strcmp(name, "tls") == 0 ? TRANSPORT_TLS : TRANSPORT_RDMA;
}

const char *found_socket(const struct page *p)
{
	static const char *const names[] = { [TRANSPORT_RDMA] = NULL, [TRANSPORT_TCP] = "TCP",
					     [TRANSPORT_TLS] = "TLS" };

	return names[found_transport(p)];
}

double found_break_at(const struct page *p, const struct found *hard)
{
	double limit = json_number_at(p->run, "server_config.max_clients");

	if (isfinite(limit) && strcmp(page_text_at(hard->failure, "resource", ""), "max_clients") == 0)
		return limit;
	return isfinite(hard->clients) ? hard->clients : hard->high;
}

bool found_slow_first(const struct page *p)
{
	struct found slo, hard;

	return found_read(p, "slo_capacity", &slo) && isfinite(slo.high) && !slo.at_least && !slo.capped &&
	       found_read(p, "first_hard_failure", &hard) && slo.high < hard.clients;
}

const json_t *found_missed_term(const struct point *at)
{
	const json_t *term;
	size_t t;

	for (size_t k = 0; k < at->n; k++)
		json_array_foreach(json_at(at->steps[k], "slo"), t, term) {
			if (strcmp(page_text_at(term, "result", ""), "fail") == 0)
				return term;
		}
	return NULL;
}

/* True if all runs of the point held every client and none failed. */
static bool is_held(const struct point *at)
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
		if (!is_held(&points->v[i]) && (!first || points->v[i].clients < first->clients))
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

struct found_flag found_flag(const struct points *points, enum validity flag)
{
	struct found_flag f = { .least = INFINITY };

	for (size_t i = 0; i < points->n; i++)
		for (size_t k = 0; k < points->v[i].n; k++) {
			f.of++;
			if (!read_has_flag(points->v[i].steps[k], flag))
				continue;
			f.steps++;
			f.least = fmin(f.least, points->v[i].clients);
		}
	return f;
}

const char *found_hosts_at_limit(struct page *p, double clients)
{
	char names[READ_NAMES_MAX];

	return page_text(p, "%s", read_hosts_at_limit(json_object_get(p->run, "hosts"),
						      json_object_get(p->run, "steps"), clients, names));
}

const char *found_clients_words(struct page *p, const struct found *c)
{
	/* With more load hosts the number could be found. */
	if (c->at_least && *found_hosts_at_limit(p, isfinite(c->clients) ? c->clients : c->low))
		return "add hosts";
	if (isfinite(c->clients))
		return page_text(p, "%s%s", c->at_least ? "at least " : "", page_count(p, c->clients));
	if (c->at_least && isfinite(c->low))
		return page_text(p, "none up to %s", page_count(p, c->low));
	return "not known";
}

bool found_share_machine(const struct page *p)
{
	const char *server = json_text_at(p->run, "environment.server.hostname");
	const char *clients = json_text_at(p->run, "environment.clients.hostname");

	/* Equal host names also cover a server that was started by hand. */
	return (server && clients && strcmp(server, clients) == 0) || read_shares_machine(p->run);
}

double found_cpu_share(const struct page *p, bool server)
{
	double cores = json_number_at(p->run, server ? "environment.server.cores" : "environment.clients.cores");
	double most = 0, share = NAN;

	for (size_t i = 0; i < p->points->n; i++) {
		const struct point *at = &p->points->v[i];
		double used = page_estimate(at, server ? PAGE_CPUS("resources.server") :
					    PAGE_MACHINE_CPUS).value / cores;

		if (!isfinite(used) || at->clients < most)
			continue;
		most = at->clients;
		share = used;
	}
	return share;
}

const char *found_machine_words(const struct page *p)
{
	return found_share_machine(p) ? "the machine" : "the load generator's machine";
}

const char *found_cpu_words(struct page *p, double busy)
{
	double server = found_cpu_share(p, true), machine = found_cpu_share(p, false);

	if (server > busy)
		return page_text(p, "With the most clients the server used %s of its CPUs.", page_percent(p, server));
	if (machine > busy)
		return page_text(p, "With the most clients the CPUs of %s were %s busy.", found_machine_words(p),
				 page_percent(p, machine));
	return NULL;
}

const char *found_resource_words(const char *resource)
{
	static const struct page_words names[] = {
		{ "nofile", "open files (file descriptors)" },
		{ "memory", "memory" },
		{ "ports", "network ports" },
		{ "memlock", "pinned memory" },
		{ "max_clients", "the server's --max-clients" },
		{ "server_resources", "the server's own resources" },
		{ "handshakes", "handshakes under way" },
		{ "time", "the time to connect" },
		{ "server", "the server itself" },
		{ "device", "the RDMA device" },
		{ "cpu", "idle CPU" },
		{ "receive_buffers", "receive buffers" },
		{ "queue_pairs", "queue pairs" },
		{ "peer", "the other end" },
		{ "unknown", "something unknown" },
		{ "max_qp", "queue pairs of the device" },
		{ "max_cq", "completion queues of the device" },
		{ "max_mr", "memory regions of the device" },
		{ "network", "the network's line, bytes a second" },
		{ "cqe", "the size of a completion queue" },
		{ "max_srq_wr", "the size of the shared receive queue" },
	};

	return page_words(names, sizeof(names) / sizeof(names[0]), resource, "something unknown");
}

const char *found_side_words(const char *side)
{
	static const struct page_words names[] = {
		{ "both", "both ends together" }, { "generator", "load generator" }, { "unknown", "side unknown" },
	};

	return page_words(names, sizeof(names) / sizeof(names[0]), side, "side unknown");
}

const char *found_limit_words(struct page *p, const json_t *limit)
{
	return page_text(p, "%s (%s)", found_resource_words(json_text_at(limit, "resource")),
			 found_side_words(json_text_at(limit, "side")));
}
