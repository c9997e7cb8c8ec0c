/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_cases.h. */
#include "loadgen/report/run_cases.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/sections/page.h"
#include "loadgen/report/suites/expectations.h"

/* "10 clients, 64 bytes, repetition 2"; "run" for a result that belongs to no step. */
static const char *group_of(struct page *p, const char *of, const json_t *o)
{
	double clients = json_number_at(o, "clients"), bytes = json_number_at(o, "message_bytes");
	double repetition = json_number_at(o, "repetition");

	return page_text(p, "%s%s%s%s%s", of ? of : "", of ? ", " : "", clients > 0 ? page_clients(p, clients) : "run",
			 isfinite(bytes) ? page_text(p, ", %.0f bytes", bytes) : "",
			 repetition > 1 ? page_text(p, ", repetition %.0f", repetition) : "");
}

/* True if the criterion belongs to `o`, a step or another criterion, whose number of clients is at key `clients`. */
static bool is_about(const json_t *criterion, const json_t *o, const char *clients)
{
	return json_number_at(criterion, "clients") == json_number_at(o, clients) &&
	       json_number_at(criterion, "message_bytes") == json_number_at(o, "message_bytes") &&
	       json_number_at(criterion, "repetition") == json_number_at(o, "repetition");
}

/* The time of the steps that the criterion belongs to; of all steps if it is NULL. */
static double steps_seconds(const json_t *run, const json_t *criterion)
{
	const json_t *step;
	double sum = 0;
	size_t i;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		double seconds = json_number_at(step, "ended_s") - json_number_at(step, "started_s");

		if ((!criterion || is_about(criterion, step, "target_clients")) && isfinite(seconds))
			sum += seconds;
	}
	return sum;
}

/* The time of a criterion, subtracted from *rest so that times add up: the first criterion of a step has the step's
 * time. One that belongs to no step, such as the result of a search, has the time of the steps without a criterion. */
static double take_seconds(const json_t *run, const json_t *criterion, const json_t *before, double *rest)
{
	double seconds = 0;

	if (isnan(json_number_at(criterion, "message_bytes")))
		seconds = *rest;
	else if (!is_about(criterion, before, "clients"))
		seconds = steps_seconds(run, criterion);
	*rest = fmax(*rest - seconds, 0);
	return seconds;
}

static void add_criterion(struct cases *c, struct page *p, const char *of, const json_t *run, size_t i, double *rest)
{
	const json_t *verdict = json_object_get(run, "verdict"), *row = json_array_get(verdict, i);
	const char *result = page_text_at(row, "result", ""), *criterion = page_text_at(row, "criterion", "unknown");
	const char *measured = page_text_at(row, "measured", "unknown"), *wanted = json_text_at(row, "required");
	struct test_case t = { .group = group_of(p, of, row), .name = criterion, .result = CASE_SKIPPED,
			       .measured = measured, .wanted = wanted,
			       .seconds = take_seconds(run, row, i ? json_array_get(verdict, i - 1) : NULL, rest) };

	/* All objectives are one criterion. */
	if (strcmp(criterion, "SLO") == 0 && wanted)
		t.name = page_text(p, "SLO %s", wanted);
	if (strcmp(result, "pass") == 0)
		t.result = CASE_PASSED;
	else if (strcmp(result, "fail") == 0)
		t.result = CASE_FAILED;
	else if (strcmp(result, "not_judged") != 0)
		t.reason = page_text(p, "inconclusive: %s", measured);
	cases_add(c, &t);
}

/* True if the run ended early for a reason that its verdict may lack. A search may lose its server on purpose. */
static bool ended_with_error(const json_t *run)
{
	static const char *const errors[] = { "aborted", "host_lost", "generator_failed", "server_lost" };
	bool search = json_is_true(json_at(run, "config.find_capacity")) ||
		      json_is_true(json_at(run, "config.find_rate"));
	const char *reason = page_text_at(run, "run.stop_reason", "");

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(reason, errors[i]) == 0)
			return !(search && strcmp(reason, "server_lost") == 0);
	return false;
}

static void add_error(struct cases *c, const char *group, const char *name, const char *what)
{
	cases_add(c, &(struct test_case){ .group = group, .name = name, .result = CASE_ERROR, .measured = what });
}

void run_cases_add(struct cases *c, const char *of, const json_t *run)
{
	size_t n = json_array_size(json_object_get(run, "verdict"));
	struct page p = { .run = run };
	const char *group = group_of(&p, of, NULL);
	const char *detail = page_text_at(run, "run.stop_detail", "");
	double rest = steps_seconds(run, NULL);

	for (size_t i = 0; i < n; i++)
		add_criterion(c, &p, of, run, i, &rest);
	if (n == 0 || ended_with_error(run))
		add_error(c, group, "end", page_text(&p, "%s%s%s", page_text_at(run, "run.stop_reason",
						     "the run could not start; stderr says why"),
						     *detail ? ": " : "", detail));
	if (json_is_true(json_at(run, "run.files_incomplete")))
		add_error(c, group, "files", "a file could not be written");
	if (p.failed)
		cases_fail(c);
	page_free(&p);
}

static void add_expectation(struct cases *c, struct page *p, const json_t *row)
{
	const char *verdict = page_text_at(row, "verdict", "");
	const char *metric = page_text_at(row, "expected.metric", "unknown");
	struct test_case t = { .group = group_of(p, json_text_at(row, "expected.alternative"), row),
			       .name = page_text(p, "expected %s", metric), .result = CASE_SKIPPED,
			       .measured = expectations_measured(p, row), .wanted = expectations_wanted(p, row) };

	if (strcmp(verdict, "met") == 0)
		t.result = CASE_PASSED;
	else if (strcmp(verdict, "missed") == 0)
		t.result = CASE_FAILED;
	else
		t.reason = expectations_verdict(p, row);
	cases_add(c, &t);
}

void run_cases_add_entry(struct cases *c, const json_t *entry)
{
	struct page p = { .run = NULL };
	const json_t *row;
	size_t i;

	if (cases_is_empty(c) && strcmp(page_text_at(entry, "status", ""), "skipped") == 0)
		cases_add(c, &(struct test_case){ .group = "run", .name = "end", .result = CASE_SKIPPED,
						  .measured = page_text_at(entry, "note", "skipped") });
	else if (cases_is_empty(c))
		add_error(c, "run", "end", "it could not run");
	json_array_foreach(json_object_get(entry, "expectations"), i, row) {
		add_expectation(c, &p, row);
	}
	if (p.failed)
		cases_fail(c);
	page_free(&p);
}
