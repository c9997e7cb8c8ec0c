/* The planning table: what a number of clients takes. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

static const char *source_words(struct page *p, const json_t *row)
{
	const char *source = json_text_at(row, "source");
	double beyond = json_number_at(row, "beyond");

	if (isfinite(beyond))
		return page_text(p, "%s, %.3g x", source ? source : "unknown", beyond);
	return source ? source : "unknown";
}

static void add_row(struct page *p, struct doc_table *t, const json_t *row)
{
	const char *source = json_text_at(row, "source");

	doc_row(t, source && strcmp(source, "extrapolated") == 0 ? DOC_WARN : DOC_PLAIN);
	doc_number(t, json_number_at(row, "clients"), 0);
	if (p->growth > 0)
		doc_number(t, json_number_at(row, "with_growth"), 0);
	doc_number(t, json_number_at(row, "hosts"), 0);
	doc_number(t, json_number_at(row, "clients_per_host"), 0);
	doc_number(t, json_number_at(row, "cores"), 2);
	doc_number(t, json_number_at(row, "memory_bytes") / 1048576, 1);
	doc_number(t, json_number_at(row, "pinned_bytes") / 1048576, 2);
	doc_number(t, json_number_at(row, "qps"), 0);
	doc_number(t, json_number_at(row, "fds"), 0);
	doc_number(t, json_number_at(row, "messages_per_s"), 0);
	doc_cell(t, "%s", source_words(p, row));
}

static const char *capacity_words(const json_t *plan)
{
	const char *source = json_text_at(plan, "capacity_source");

	if (source && strcmp(source, "slo_capacity") == 0)
		return "the most clients that met the objective";
	if (source && strcmp(source, "first_hard_failure") == 0)
		return "the most with which nothing broke";
	return "the most that this run held";
}

static void say_plan(struct page *p)
{
	double capacity = json_number_at(p->plan, "capacity_clients");
	bool at_least = json_is_true(json_at(p->plan, "at_least"));

	doc_text(p->doc, NULL, "A server like this one is planned with %s, %s%s, less %s kept free%s.",
		 page_clients(p, capacity), capacity_words(p->plan),
		 at_least ? " (it may carry more: the run did not look further)" : "",
		 p->headroom > 0 ? page_percent(p, p->headroom) : "nothing",
		 p->growth > 0 ? page_text(p, "; %s more clients are to come", page_percent(p, p->growth)) : "");
	doc_text(p->doc, NULL, "Clients beyond one server's share go to further servers of the same kind, and the figures "
			 "are those of all servers together. What is measured the run saw; what is interpolated lies "
			 "between its steps; what is extrapolated goes on in a straight line, so many times (x) beyond "
			 "the most clients measured, and is the less certain the further it goes.");
}

void section_plan(struct page *p)
{
	const json_t *rows = json_at(p->plan, "rows"), *row;
	struct doc_table *t;
	size_t i;

	doc_section(p->doc, "plan", "Planning: what a number of clients takes");
	if (json_array_size(rows) == 0 || !isfinite(json_number_at(p->plan, "capacity_clients"))) {
		doc_text(p->doc, NULL, "Nothing can be planned from this run: no step held its clients to the end of its "
				 "measured time.");
		return;
	}
	say_plan(p);
	t = doc_table(p->doc, "plan",
		      "Other numbers of clients, headroom and growth: performance_test report with --plan, --headroom, "
		      "--growth.");
	doc_column(t, "clients", NULL, true);
	if (p->growth > 0)
		doc_column(t, "with growth", NULL, true);
	doc_column(t, "servers", NULL, true);
	doc_column(t, "clients each", NULL, true);
	doc_column(t, "CPUs used", NULL, true);
	doc_column(t, "memory", "MiB", true);
	doc_column(t, "pinned", "MiB", true);
	doc_column(t, "queue pairs", NULL, true);
	doc_column(t, "descriptors", NULL, true);
	doc_column(t, "messages", "1/s", true);
	doc_column(t, "known how", NULL, false);
	json_array_foreach(rows, i, row) {
		add_row(p, t, row);
	}
}
