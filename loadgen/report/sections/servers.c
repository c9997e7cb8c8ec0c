/* SPDX-License-Identifier: BSD-2-Clause */
/* The section on several servers under load at once, with the figures of each. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

static bool is_restored(const json_t *o)
{
	return strcmp(page_text_at(o, "server_pools", ""), "restored") == 0;
}

static void add_line(struct page *p, struct doc_table *t, const json_t *step, const json_t *o, const char *name,
		     const char *clients, const json_t *connect, const json_t *resources)
{
	bool bad = read_amount(o, "connected_held") < read_amount(o, clients) || !is_restored(o);

	page_row(p, t, bad ? DOC_WARN : DOC_PLAIN, json_number_at(step, "target_clients"),
		 json_number_at(step, "message_bytes"));
	page_cells(t, "s000002201121s", name, read_amount(o, clients), read_amount(o, "connected_held"),
		   read_amount(o, "failed"),
		   read_amount(o, "dropped"), read_amount(o, "server_connected"), read_amount(connect, "p50") / 1e6,
		   read_amount(connect, "p99") / 1e6, read_amount(o, "throughput_msgs_per_s"),
		   read_amount(o, "response_ns.p50") / 1e3, read_amount(o, "response_ns.p99") / 1e3,
		   read_amount(resources, "cpus"),
		   read_amount(resources, "rss_bytes") / 1048576, page_text_at(o, "server_pools", "unknown"));
}

static void add_step(struct page *p, struct doc_table *t, const json_t *step)
{
	const json_t *servers = json_object_get(step, "servers"), *o;
	size_t i;

	json_array_foreach(servers, i, o) {
		add_line(p, t, step, o, page_text_at(o, "target", "unknown"), "clients", json_at(o, "connect_total_ns"),
			 json_at(o, "resources"));
	}
	if (json_array_size(servers))
		add_line(p, t, step, step, "all", "target_clients", json_at(step, "connect_ns.total"),
			 json_at(step, "resources.server"));
}

/* Compares the servers with the lowest and the highest value of a figure in a step. */
static void say_spread(struct page *p, const json_t *step, const char *id, const char *what, const char *path,
		       double unit, const char *unit_name)
{
	const json_t *servers = json_object_get(step, "servers"), *o, *least = NULL, *most = NULL;
	size_t i;

	json_array_foreach(servers, i, o) {
		double v = read_amount(o, path);

		if (!isfinite(v))
			continue;
		if (!least || v < read_amount(least, path))
			least = o;
		if (!most || v > read_amount(most, path))
			most = o;
	}
	if (!least || least == most)
		return;
	doc_item(p->doc, id, "%s with %s: from %.6g%s at %s to %.6g%s at %s.", what,
		 page_clients(p, json_number_at(step, "target_clients")),
		 read_amount(least, path) / unit, unit_name, page_text_at(least, "target", "unknown"),
		 read_amount(most, path) / unit, unit_name, page_text_at(most, "target", "unknown"));
}

void section_servers(struct page *p)
{
	const struct point *most = p->points->n ? &p->points->v[p->points->n - 1] : NULL;
	const json_t *largest = most ? most->steps[most->n - 1] : NULL;
	struct doc_table *t;

	if (json_array_size(json_at(p->run, "servers")) < 2)
		return;
	doc_section(p->doc, "servers", "Each of the servers");
	doc_text(p->doc, "servers-dealt", "%zu servers were under load at once. Clients were dealt to them: %s.",
		 json_array_size(json_at(p->run, "servers")), page_text_at(p->run, "config.deal", "how is not known"));
	say_spread(p, largest, "servers-throughput", "Messages a second", "throughput_msgs_per_s", 1, "");
	say_spread(p, largest, "servers-response", "The p99 of round trips", "response_ns.p99", 1e3, " us");
	say_spread(p, largest, "servers-connect", "The median time of connecting", "connect_total_ns.p50", 1e6, " ms");
	t = page_table(p, "servers",
		       "Each step by server. \"Server counted\" comes from the servers' own statistics.",
		       PAGE_POINT ";server;dealt#;held#;failed#;dropped#;server counted#;connecting p50#ms;connecting "
				  "p99#ms;"
		       "messages/s#;round trip p50#us;round trip p99#us;CPUs#;resident#MiB;pools");
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < p->points->v[i].n; k++)
			add_step(p, t, p->points->v[i].steps[k]);
}
