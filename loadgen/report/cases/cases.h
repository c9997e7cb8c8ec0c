/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of a run, a suite or doctor as test cases, for CI systems: junit.c and step_summary.c write them. No I/O;
 * owning thread: main. Texts may be of any origin. Callers do not check each call for lack of memory: cases_json tells
 * it at the end. */
#ifndef RAMPART_LOADGEN_REPORT_CASES_H
#define RAMPART_LOADGEN_REPORT_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct cases;

enum case_result {
	CASE_ERROR,	/* what should have been judged ended early */
	CASE_FAILED,
	CASE_SKIPPED,	/* it was not judged */
	CASE_PASSED,
	CASE_RESULTS,
};

struct test_case {
	const char *group;	/* what it is about: "10 clients, 64 bytes" */
	const char *name;	/* what was judged: "success rate". A number is added if the group has that name */
	enum case_result result;
	const char *measured;
	const char *wanted;	/* NULL: `measured` says it all */
	const char *reason;	/* why it was skipped; NULL: `measured` says it */
	const char *detail;	/* further lines; NULL: none */
	double seconds;		/* 0: it took no time of its own */
};

/* `title` is what was run. Returns 0 or -ENOMEM. */
int cases_new(const char *title, struct cases **out) __attribute__((warn_unused_result));
void cases_free(struct cases *c);	/* NULL-safe */

/* Begins a suite; `started_at` is ISO 8601, in UTC. */
void cases_suite(struct cases *c, const char *name, const char *started_at);
/* Adds a case to the suite that was begun last. */
void cases_add(struct cases *c, const struct test_case *t);
/* True if the suite that was begun last has no case yet. */
bool cases_is_empty(const struct cases *c);
/* Notes that memory ran out for a text of a case. */
void cases_fail(struct cases *c);

/* {title, suites: [{name, started_at, cases: [{group, name, result, seconds, measured, wanted, reason, detail}]}]},
 * borrowed. A text that is NULL is left out; the others are valid UTF-8 without control characters, and only in
 * `detail` there are newlines and tabs. NULL when memory ran out. */
const json_t *cases_json(const struct cases *c);
enum case_result cases_result(const json_t *one);
/* Counts the cases of a suite with that result. */
size_t cases_count(const json_t *suite, enum case_result result);

#endif
