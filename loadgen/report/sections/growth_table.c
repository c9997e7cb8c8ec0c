/* SPDX-License-Identifier: BSD-2-Clause */
/* The planning table: the servers and resources that a number of clients needs. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

static const struct page_column columns[] = {
	{ "servers#", "hosts", 1, 0 }, { "clients each#", "clients_per_host", 1, 0 }, { "CPUs used#", "cores", 1, 2 },
	{ "memory#MiB", "memory_bytes", 1 / 1048576.0, 1 }, { "pinned#MiB", "pinned_bytes", 1 / 1048576.0, 2 },
	{ "queue pairs#", "qps", 1, 0 }, { "descriptors#", "fds", 1, 0 }, { "messages#1/s", "messages_per_s", 1, 0 },
	{ 0 }
};

static const char *source_words(struct page *p, const json_t *row)
{
	const char *source = page_text_at(row, "source", "unknown");
	double beyond = json_number_at(row, "beyond");

	return isfinite(beyond) ? page_text(p, "%s, %.3g x", source, beyond) : source;
}

static void add_row(struct page *p, struct doc_table *t, const json_t *row)
{
	bool beyond = strcmp(page_text_at(row, "source", ""), "extrapolated") == 0;

	page_add(t, beyond ? DOC_WARN : DOC_PLAIN, "0", json_number_at(row, "clients"));
	if (p->growth > 0)
		doc_number(t, json_number_at(row, "with_growth"), 0);
	page_cells_of(p, t, columns, row);
	page_cells(t, "s", source_words(p, row));
}

static const char *capacity_words(const json_t *plan)
{
	const char *source = page_text_at(plan, "capacity_source", "");

	if (strcmp(source, "slo_capacity") == 0)
		return "the most clients that met the objective";
	if (strcmp(source, "first_hard_failure") == 0)
		return "the most with which nothing failed";
	return "the most that this run held";
}

static void say_plan(struct page *p)
{
	double capacity = json_number_at(p->plan, "capacity_clients");
	bool at_least = json_is_true(json_at(p->plan, "at_least"));

	doc_text(p->doc, "plan-capacity", "A server like this one is planned with %s, %s%s, of which %s is kept "
		 "free%s.", page_clients(p, capacity), capacity_words(p->plan),
		 at_least ? " (it may hold more: the run tried no more)" : "",
		 p->headroom > 0 ? page_percent(p, p->headroom) : "nothing",
		 p->growth > 0 ? page_text(p, "; %s more clients are to come", page_percent(p, p->growth)) : "");
	doc_text(p->doc, NULL, "Clients that do not fit on one server go to further servers of the same kind; the "
		 "figures are those of all servers together. Measured: a step of this run. Interpolated: between steps "
		 "of this run. Extrapolated: along a straight line to the given multiple (x) of the most clients "
		 "measured; the further, the less certain.");
}

void section_plan(struct page *p)
{
	const json_t *rows = json_at(p->plan, "rows"), *row;
	struct doc_table *t;
	size_t i;

	doc_section(p->doc, "plan", "Planning: what a number of clients takes");
	if (json_array_size(rows) == 0 || !isfinite(json_number_at(p->plan, "capacity_clients"))) {
		doc_text(p->doc, "plan-none", "Nothing can be planned from this run: no step held its clients to the "
			 "end of its measured time.");
		return;
	}
	say_plan(p);
	t = page_table(p, "plan", "For other numbers of clients, headroom and growth: performance_test report with "
		       "--plan, --headroom, --growth.",
		       p->growth > 0 ? "clients#;with growth#" : "clients#");
	page_columns(p, t, columns);
	doc_column(t, "known how", NULL, false);
	json_array_foreach(rows, i, row) {
		add_row(p, t, row);
	}
}
