/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures by stage and code, and attempts that were repeated. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/sections/trend.h"

#define KINDS_MAX 12

/* A kind of failure, with its count at each point, summed over the point's runs. */
struct kind {
	const char *stage, *code, *meaning;
	double *at;			/* by the point's index */
	double count;
	double least_clients;		/* clients of the smallest step with this kind of failure */
};

struct kinds {
	struct kind v[KINDS_MAX];
	size_t n;
	double others;			/* failures of further kinds */
};

/* Finds or adds the kind of a failure. NULL: there is no room for another kind, or no memory. */
static struct kind *find_kind(struct page *p, struct kinds *k, const json_t *failure, double clients)
{
	const char *stage = page_text_at(failure, "stage", "unknown"), *code = page_text_at(failure, "code", "unknown");

	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->v[i].stage, stage) == 0 && strcmp(k->v[i].code, code) == 0)
			return &k->v[i];
	if (k->n == KINDS_MAX)
		return NULL;
	k->v[k->n] = (struct kind){ stage, code, json_text_at(failure, "meaning"),
				    page_room(p, p->points->n, sizeof(double)), 0, clients };
	return k->v[k->n].at ? &k->v[k->n++] : NULL;
}

static void count_failure(struct page *p, struct kinds *k, const json_t *failure, size_t i)
{
	double count = json_number_at(failure, "count");
	struct kind *kind = count > 0 ? find_kind(p, k, failure, p->points->v[i].clients) : NULL;

	if (kind) {
		kind->count += count;
		kind->at[i] += count;
	} else if (count > 0) {
		k->others += count;
	}
}

static void collect_kinds(struct page *p, const char *which, struct kinds *out)
{
	const json_t *failure;
	size_t f;

	*out = (struct kinds){ .n = 0 };
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < p->points->v[i].n; k++)
			json_array_foreach(json_at(p->points->v[i].steps[k], which), f, failure) {
				count_failure(p, out, failure, i);
			}
}

static void draw_failures(struct page *p, const struct kinds *kinds)
{
	struct chart c = { .x_label = "clients", .y_label = "failures" };
	struct bars bars;

	bars_choose(p->points, &bars);
	bars_name(p, &bars, &c);
	for (size_t k = 0; k < kinds->n; k++) {
		double *y = page_numbers(p, bars.n);

		for (size_t i = 0; y && i < bars.n; i++)
			y[i] = kinds->v[k].at[bars.v[i] - p->points->v];
		bars_add(p, &bars, &c, page_text(p, "%s %s", kinds->v[k].stage, kinds->v[k].code), y);
	}
	page_chart(p, "failures-chart", "Failures by stage and code", &c,
		   "One bar for each number of clients, made of the failures of each stage and code.");
}

static void table_failures(struct page *p, const struct kinds *kinds, enum doc_tone tone, const char *name,
			   const char *caption)
{
	struct doc_table *t = page_table(p, name, caption, "clients#;stage;code;count#;meaning");

	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < kinds->n; k++) {
			double count = kinds->v[k].at[i];

			if (count > 0)
				page_add(t, tone, "0ss0s", p->points->v[i].clients, kinds->v[k].stage,
					 kinds->v[k].code, count, kinds->v[k].meaning);
		}
}

static void say_failures(struct page *p, const struct kinds *kinds)
{
	const struct kind *top = &kinds->v[0];
	double sum = kinds->others;

	for (size_t k = 0; k < kinds->n; k++) {
		sum += kinds->v[k].count;
		if (kinds->v[k].count > top->count)
			top = &kinds->v[k];
	}
	doc_text(p->doc, "failures-most", "%s failure%s in all, the first with %s. The most frequent (%s of them) was "
		 "%s at %s%s%s.", page_count(p, sum), sum == 1 ? "" : "s", page_clients(p, kinds->v[0].least_clients),
		 page_percent(p, top->count / sum), top->code, top->stage, top->meaning ? ": " : "",
		 top->meaning ? top->meaning : "");
	if (kinds->others > 0)
		doc_text(p->doc, "failures-others", "%s failures of other kinds are only in run.json.",
			 page_count(p, kinds->others));
	doc_text(p->doc, NULL, "A failed client is counted at the stage that it had reached, with the code of what "
		 "stopped it. The run goes on with the others.");
}

void section_failures(struct page *p)
{
	static const struct page_column rates[] = {
		{ "attempts#", "rates.attempts", 1, 0 }, { "timeouts#", "rates.timeouts.count", 1, 0 },
		{ "timeouts#%", "rates.timeouts.per_attempt_ratio", 100, 2 },
		{ "timeouts#1/s", "rates.timeouts.per_s", 1, 2 },
		{ "retries#%", "rates.retries.per_attempt_ratio", 100, 2 },
		{ "retries#1/s", "rates.retries.per_s", 1, 2 },
		{ "refusals#", "rates.refusals.count", 1, 0 }, { "refusals#%", "rates.refusals.per_attempt_ratio", 100,
								 2 },
		{ "refusals#1/s", "rates.refusals.per_s", 1, 2 }, { 0 }
	};
	struct kinds failures, retried;

	doc_section(p->doc, "failures", "Failures");
	collect_kinds(p, "failures", &failures);
	collect_kinds(p, "retried", &retried);
	if (failures.n == 0) {
		double most = 0;

		for (size_t i = 0; i < p->points->n; i++)
			most = fmax(most, p->points->v[i].clients);
		if (most > 0)
			doc_text(p->doc, "failures-none", "No client failed in any step up to %s.",
				 page_clients(p, most));
		else
			doc_text(p->doc, "failures-no-step", "No step was run.");
	} else {
		say_failures(p, &failures);
		draw_failures(p, &failures);
		table_failures(p, &failures, DOC_BAD, "failures",
			       "Failures by number of clients; several runs of a number added up.");
	}
	if (retried.n) {
		size_t last = p->points->n - 1;
		double sum = 0;

		for (size_t k = 0; k < retried.n; k++)
			sum += retried.v[k].at[last];
		doc_heading(p->doc, "Attempts that were repeated");
		doc_text(p->doc, "retried-said", "These attempts to connect failed and were made again; a client "
			 "counts as failed only after its last one. With %s there were %s such attempts.",
			 page_clients(p, p->points->v[last].clients), page_count(p, sum));
		table_failures(p, &retried, DOC_WARN, "retried", "Repeated attempts by number of clients and reason.");
	}
	page_points(p, "rates", "Timeouts, repeated attempts and refusals, for each attempt to connect and a second.",
		    rates);
}
