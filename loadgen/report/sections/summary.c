/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary of a run: the lines on the terminal at its end. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/sections/found.h"

static void say_transport(struct page *p)
{
	if (found_socket(p))
		doc_text(p->doc, NULL, "Messages over %s, not over RDMA%s: packet sequence numbers do not apply.",
			 page_text_at(p->run, "config.transport", ""),
			 json_is_true(json_at(p->run, "config.transport_fell_back")) ?
			 " (--transport auto: this machine has no RDMA device)" : "");
}

static void say_queue_pairs(struct page *p)
{
	double n = json_number_at(p->run, "config.qps");

	if (n > 1)
		doc_text(p->doc, NULL, "Each client sends over %.0f queue pairs (--qps).", n);
}

static void say_failures(struct page *p)
{
	const json_t *step, *f;
	size_t i, k;

	json_array_foreach(json_at(p->run, "steps"), i, step)
		json_array_foreach(json_at(step, "failures"), k, f) {
			doc_item(p->doc, NULL, "%s: %s failed at %s: %s (%s)",
				 page_clients(p, json_number_at(step, "target_clients")),
				 page_count(p, json_number_at(f, "count")), page_text_at(f, "stage", "unknown"),
				 page_text_at(f, "code", "unknown"), page_text_at(f, "meaning", "no meaning is given"));
		}
}

/* Adds the capacities found by a search, or by a ramp with an SLO. */
static void say_capacity(struct page *p)
{
	if ((json_is_true(json_at(p->run, "config.find_capacity")) || json_text_at(p->run, "config.slo")) &&
	    !json_is_object(json_at(p->run, "analysis.offered_load")))
		table_capacities(p);
}

/* Adds the knees of a sweep, and the highest rate that met the SLO. */
static void say_offered(struct page *p)
{
	const json_t *slo = json_at(p->run, "analysis.offered_load.slo_rate"), *curve;
	size_t i;

	if (!json_is_object(json_at(p->run, "analysis.offered_load")))
		return;
	doc_heading(p->doc, "Offered load");
	json_array_foreach(json_at(p->run, "analysis.offered_load.curves"), i, curve) {
		double knee = json_number_at(curve, "knee.per_s");

		doc_item(p->doc, NULL, "%s, %s: knee%s: %s", page_clients(p, json_number_at(curve, "clients")),
			 page_bytes(p, json_number_at(curve, "message_bytes")),
			 isfinite(knee) ? page_text(p, " at %.0f/s", knee) : "",
			 page_text_at(curve, "knee.text", "not known"));
	}
	if (json_is_object(slo))
		doc_item(p->doc, NULL, "SLO rate%s: %s%s", isfinite(json_number_at(slo, "per_s")) ?
			 page_text(p, " %.0f/s", json_number_at(slo, "per_s")) : "",
			 page_text_at(slo, "reason", "no reason is given"),
			 json_is_true(json_at(slo, "confirmed")) ? " (confirmed)" : "");
}

static void say_verdict(struct page *p, const char *where)
{
	static const struct page_words words[] = { { "pass", "PASS" }, { "fail", "FAIL" }, { "not_judged", "-" },
						   { "inconclusive", "?" } };
	const json_t *verdict = json_at(p->run, "verdict"), *c;
	size_t i, not_judged = 0;

	doc_heading(p->doc, page_text(p, "Verdict (%s)", where));
	json_array_foreach(verdict, i, c) {
		const char *result = page_text_at(c, "result", "?");

		not_judged += strcmp(result, "not_judged") == 0;
		doc_item(p->doc, NULL, "%-5s %6.0f clients%s: %s %s (required: %s)",
			 page_words(words, sizeof(words) / sizeof(words[0]), result, "?"), json_number_at(c, "clients"),
			 p->points->n_sizes > 1 ? page_text(p, ", %.0f bytes", json_number_at(c, "message_bytes")) : "",
			 page_text_at(c, "criterion", "unknown"), page_text_at(c, "measured", "unknown"),
			 page_text_at(c, "required", "unknown"));
	}
	if (json_array_size(verdict) == 0)
		doc_item(p->doc, NULL, "none: no step was completed");
	if (not_judged)
		doc_item(p->doc, NULL,
			 "%zu of %zu criteria were not judged, because times measured here say nothing of hardware; "
			 "--judge all judges them", not_judged, json_array_size(verdict));
}

static void say_plan(struct page *p)
{
	const char *missed = resources_plan_missed(p);

	if (*missed)
		doc_text(p->doc, NULL, "Off the plan by more than 15 %%: %s.", missed);
}

void summary_add(struct page *p, const char *where)
{
	const char *detail = page_text_at(p->run, "run.stop_detail", "");

	say_transport(p);
	say_queue_pairs(p);
	steps_table(p);
	say_failures(p);
	steps_say_caveats(p);
	say_capacity(p);
	say_offered(p);
	say_plan(p);
	say_verdict(p, where);
	doc_text(p->doc, NULL, "Stopped: %s%s%s", page_text_at(p->run, "run.stop_reason", "unknown"), *detail ? ": " :
		 "", detail);
}
