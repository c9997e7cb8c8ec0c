/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows whether the work needs RDMA. See need.h; loadgen/suites/need.h judges it. */
#include "loadgen/report/suites/need.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"

#define ALTERNATIVES_MAX 512u

void need_brief(struct page *p, const char *name, const json_t *comparison)
{
	static const struct page_column columns[] = {
		{ "alternative", "name", 0, 0 }, { "size#bytes", "message_bytes", 1, 0 },
		{ "met up to#clients", "met_up_to_clients", 1, 0 },
		{ "missed from#clients", "missed_from_clients", 1, 0 },
		{ "not known#clients", "not_known_clients", 1, 0 },
		{ "CPU, both ends#us/op", "cpu_ns_per_op", 1e-3, 2 },
		{ "CPU measured at#clients", "cpu_clients", 1, 0 },
		{ "cost of a client#/month", "cost_per_client_month", 1, 4 }, { 0 }
	};
	const json_t *need = json_object_get(comparison, "need");
	const json_t *all = json_object_get(need, "alternatives");
	double price = json_number_at(need, "cpu_hour_price");
	double rate = json_number_at(json_array_get(all, 0), "ops_per_client_s");
	const char *sentence = json_text_at(need, "sentence");
	const char *caption = page_text(p, "Which alternatives meet %s.", page_text_at(need, "slo", "the objective"));

	if (!sentence)
		return;
	doc_text(p->doc, "need", "Does this need RDMA? %s", sentence);
	if (isfinite(price))
		caption = page_text(p, "%s The cost of a client is the CPU time of both ends, at a price of %g per CPU "
				    "hour, over 730 hours at %s operations a second, the rate of a client with the "
				    "slowest alternative.", caption, price, page_count(p, rate));
	page_objects(p, name, caption, columns, all, ALTERNATIVES_MAX);
}

static enum doc_tone tone_of(const char *result)
{
	return strcmp(result, "met") == 0 ? DOC_GOOD : strcmp(result, "missed") == 0 ? DOC_BAD : DOC_WARN;
}

static const char *result_words(const char *result)
{
	static const struct page_words words[] = { { "not_known", "not known" } };

	return page_words(words, 1, result, "not known");
}

static void add_tallies(struct page *p, struct doc_table *t, const json_t *alternative, const char *rounds)
{
	const json_t *tally;
	size_t i;

	json_array_foreach(json_object_get(alternative, "steps"), i, tally) {
		const char *result = page_text_at(tally, "result", "not_known");

		if (!page_takes_row(p))
			return;
		page_add(t, tone_of(result), "s00sss", page_text_at(alternative, "name", "unknown"),
			 json_number_at(alternative, "message_bytes"), json_number_at(tally, "clients"),
			 page_text(p, "%s of %s", page_count(p, json_number_at(tally, "met_rounds")), rounds),
			 result_words(result), page_text_at(tally, "reason", ""));
	}
}

void need_show(struct page *p, const char *id, const json_t *comparison)
{
	const json_t *all = json_at(comparison, "need.alternatives"), *alternative;
	const char *rounds = page_count(p, json_number_at(comparison, "rounds"));
	struct doc_table *t;
	size_t i;

	need_brief(p, page_text(p, "%s_need", id), comparison);
	if (json_array_size(all) == 0)
		return;
	t = page_table(p, page_text(p, "%s_need_steps", id), "How many rounds met the objective.",
		       "alternative;size#bytes;clients#;rounds that met it;result;why it is not known");
	json_array_foreach(all, i, alternative)
		if (i < ALTERNATIVES_MAX)
			add_tallies(p, t, alternative, rounds);
}
