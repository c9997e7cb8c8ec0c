/* SPDX-License-Identifier: BSD-2-Clause */
/* See expectations.h; loadgen/suites/expect.h makes them. */
#include "loadgen/report/suites/expectations.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

/* A figure of suite.json in words, by the ending of its name. */
static const char *figure_text(struct page *p, const char *metric, double v)
{
	if (!isfinite(v))
		return "unknown";
	if (strstr(metric, "_ns"))
		return page_ns(p, v);
	if (strstr(metric, "_bytes_per_s"))
		return page_text(p, "%.4g GB/s", v / 1e9);
	if (strstr(metric, "_bytes"))
		return page_bytes(p, v);
	return strstr(metric, "_per_s") ? page_in_unit(p, v, "per_s") : page_text(p, "%.4g", v);
}

static const char *limit_text(struct page *p, const char *metric, const char *of, double v)
{
	return of ? page_text(p, "%.4g %%", v) : figure_text(p, metric, v);
}

const char *expectations_wanted(struct page *p, const json_t *row)
{
	const json_t *expected = json_object_get(row, "expected");
	const char *metric = page_text_at(expected, "metric", ""), *of = json_text_at(expected, "of");
	double low = json_number_at(expected, of ? "min_percent" : "min");
	double high = json_number_at(expected, of ? "max_percent" : "max");
	bool is_entry = of && !strchr(of, ' ');
	const char *limits = isnan(low)	   ? page_text(p, "at most %s", limit_text(p, metric, of, high))
			     : isnan(high) ? page_text(p, "at least %s", limit_text(p, metric, of, low))
					   : page_text(p, "%s to %s", limit_text(p, metric, of, low),
						       limit_text(p, metric, of, high));

	return of ? page_text(p, "%s of %s%s", limits, is_entry ? "entry " : "the ", of) : limits;
}

const char *expectations_measured(struct page *p, const json_t *row)
{
	const char *metric = page_text_at(row, "expected.metric", "");
	double measured = json_number_at(row, "measured"), reference = json_number_at(row, "reference");
	const char *text = figure_text(p, metric, measured);

	return isfinite(measured) && reference > 0
		       ? page_text(p, "%s (%.4g %% of %s)", text, 100 * measured / reference,
				   figure_text(p, metric, reference))
		       : text;
}

const char *expectations_verdict(struct page *p, const json_t *row)
{
	static const struct page_words words[] = { { "not_judged", "not judged" } };
	const char *reason = json_text_at(row, "reason");
	const char *verdict = page_words(words, 1, json_text_at(row, "verdict"), "unknown");

	return reason ? page_text(p, "%s: %s", verdict, reason) : verdict;
}

static enum doc_tone tone_of(const json_t *row)
{
	const char *verdict = page_text_at(row, "verdict", "unknown");

	return strcmp(verdict, "met") == 0	    ? DOC_GOOD
	       : strcmp(verdict, "missed") == 0	    ? DOC_BAD
	       : strcmp(verdict, "not_judged") == 0 ? DOC_PLAIN
						    : DOC_WARN;
}

static void add_row(struct page *p, struct doc_table *t, const char *link, const json_t *row)
{
	const char *metric = page_text_at(row, "expected.metric", "unknown");
	const char *alternative = json_text_at(row, "expected.alternative");

	doc_row(t, tone_of(row));
	if (link)
		doc_cell_link(t, link, link);
	page_cells(t, "s00sss", alternative ? page_text(p, "%s, %s", metric, alternative) : metric,
		   json_number_at(row, "clients"), json_number_at(row, "message_bytes"),
		   expectations_wanted(p, row), expectations_measured(p, row), expectations_verdict(p, row));
	if (!link)
		page_cells(t, "s", json_text_at(row, "expected.source"));
}

void expectations_summary(struct page *p, const json_t *entries)
{
	struct doc_table *t = NULL;
	const json_t *entry, *row;
	size_t i, k;

	json_array_foreach(entries, i, entry) {
		json_array_foreach(json_object_get(entry, "expectations"), k, row) {
			if (!page_takes_row(p))
				return;
			if (!t)
				t = page_table(p, "expectations", "Expected against measured",
					       "entry;figure;clients#;size#bytes;expected;measured;verdict");
			add_row(p, t, page_text_at(entry, "id", "entry"), row);
		}
	}
}

void expectations_of_entry(struct page *p, const char *id, const json_t *entry)
{
	struct doc_table *t = NULL;
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(entry, "expectations"), i, row) {
		if (!page_takes_row(p))
			return;
		if (!t)
			t = page_table(
				p, page_text(p, "%s_expectations", id), "Expected against measured.",
				"figure;clients#;size#bytes;expected;measured;verdict;source of the expectation");
		add_row(p, t, NULL, row);
	}
}
