/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a suite. See suite.h. */
#include "loadgen/suites/suite.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/build_info.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "common/host/res.h"
#include "common/rdma/dev.h"
#include "loadgen/suites/compare.h"
#include "loadgen/run/preflight.h"
#include "loadgen/server_under_test/sut.h"
#include "loadgen/report/cases/junit.h"
#include "loadgen/report/cases/step_summary.h"
#include "loadgen/report/run_cases.h"
#include "loadgen/report/suite_report.h"
#include "loadgen/analysis/read.h"
#include "loadgen/cluster/team.h"
#include "loadgen/output/results.h"
#include "loadgen/output/space.h"
#include "loadgen/suites/expect.h"
#include "loadgen/suites/suite_results.h"
#include "loadgen/traffic/workload.h"
#include "loadgen/verdict/verdict.h"

/* Share of this machine's memory that one step may take. */
#define MEMORY_SHARE 0.85

struct runner {
	struct suite *suite;
	const struct loadgen_config *base;
	int argc;
	char **argv;
	struct results *results;
	json_t *out;			/* suite.json */
	struct cases *cases;		/* of its entries, for CI systems */
	bool unwritten;			/* a file could not be written */
	struct sut_keep keep;		/* the server that entries share */
	unsigned keep_until;		/* the first entry that this server does not serve; 0: no server is kept */
	int servers;			/* servers kept so far */
	double line_bytes_per_s;	/* of the load generator's ports in the last run; NAN: not known */
	enum run_exit worst;
};

/* True for the comparison of --compare, which is not read from a file. */
static bool is_of_command_line(const struct suite_entry *e)
{
	return !e->argv;
}

/* Approximate memory that a step with operations of `bytes` takes on this machine: the regions of a server that we
 * start, and the buffers that clients write from and read into. */
static double memory_of(const struct loadgen_config *c, uint64_t bytes)
{
	struct loadgen_config one = *c;
	struct workload_needs needs = { 0 };
	double regions, landings;

	one.sizes = (struct opt_list){ .v = { bytes }, .n = 1 };
	one.message_bytes = bytes;
	c->wl->needs(&one, &needs);
	/* The server keeps the regions that it registered for clients. While it zeroes those of clients that left,
	 * their successors get other regions: allow for two more. */
	regions = c->server ? 0 : (double)needs.region_bytes * (double)(c->clients + 2) * loadgen_n_lanes(c);
	landings = (double)needs.landing_bytes * (double)(needs.landing_shared ? c->threads : c->clients) * c->n_rails;
	return regions + landings + (double)bytes * (double)c->threads * c->n_rails;
}

/* The value of --message-size with each of the entry's sizes halved until it fits; NULL if all fit. */
static char *sizes_that_fit(const struct loadgen_config *c, double room)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	bool changed = false;
	uint64_t last = 0;

	for (size_t i = 0; f && i < c->sizes.n; i++) {
		uint64_t v = c->sizes.v[i];

		while (v / 2 >= c->wl->bytes_min && memory_of(c, v) > room)
			v /= 2;
		changed |= v != c->sizes.v[i];
		if (v != last)
			fprintf(f, "%s%llu", last ? "," : "", (unsigned long long)v);
		last = v;
	}
	if (f)
		fclose(f);
	if (!changed) {
		free(text);
		text = NULL;
	}
	return text;
}

/* Reduces the sizes of an entry to fit this machine's memory, and says so in `note`. The command line's sizes are kept.
 * Returns 0, or -errno with a line in `err`. */
static int fit_entry(struct runner *r, struct suite_entry *e, char *note, size_t note_size, char *err, size_t err_size)
{
	double room = MEMORY_SHARE * (double)res_machine_memory_bytes();
	bool given = is_of_command_line(e) || opts_given(&loadgen_options, r->argc, r->argv, "message-size");
	/* All hosts must measure the same sizes, so they do not depend on one host's memory. */
	char *text = given || e->cfg.team ? NULL : sizes_that_fit(&e->cfg, room);
	uint64_t largest = e->cfg.message_bytes;
	json_t *replace = text ? json_pack("{s:s}", "message-size", text) : NULL;
	int ret = 0;

	if (replace)
		ret = suite_entry_configure(e, replace, r->argc, r->argv, err, err_size);
	if (replace && !ret)
		snprintf(note, note_size,
			 "Sizes were made smaller, because %llu bytes do not fit the memory of this machine "
			 "(%.0f MiB): %s.", (unsigned long long)largest, (double)res_machine_memory_bytes() / 0x1p20,
			 text);
	json_decref(replace);
	free(text);
	return ret;
}

static bool may_share(const struct suite_entry *e)
{
	return !e->cfg.server && e->alternatives.n == 0 && !loadgen_is_search(&e->cfg);
}

static const char *why_alone(const struct suite_entry *e)
{
	if (e->cfg.server)
		return "the server that was given";
	return e->alternatives.n ? "each run has a server of its own" : "a search has a server of its own";
}

/* Prepares a server for the entry and for as many of the following entries as it suits. */
static int prepare_server(struct runner *r, unsigned first)
{
	struct suite *s = r->suite;
	struct needs_args other;
	char file[32];
	unsigned i = first + 1;

	snprintf(file, sizeof(file), "server-%d.log", ++r->servers);
	if (sut_keep_init(&r->keep, &s->entries[first].cfg, results_path(r->results, file)))
		return -ENAMETOOLONG;
	for (; i < s->n && may_share(&s->entries[i]); i++) {
		needs_args(&s->entries[i].cfg, r->keep.program, &other);
		if (needs_join(&r->keep.args, &other, res_machine_memory_bytes()))
			break;
	}
	r->keep_until = i;
	return 0;
}

/* Why the entry has another server than the one before it. */
static const char *why_another(struct runner *r, unsigned i)
{
	struct needs_args a, b;

	if (i == 0 || !may_share(&r->suite->entries[i - 1]))
		return NULL;
	needs_args(&r->suite->entries[i - 1].cfg, r->keep.program, &a);
	needs_args(&r->suite->entries[i].cfg, r->keep.program, &b);
	return needs_join(&a, &b, res_machine_memory_bytes());
}

/* Chooses the server of an entry, prepares one if necessary, and records it in `o`. */
static int choose_server(struct runner *r, unsigned i, json_t *o)
{
	struct suite_entry *e = &r->suite->entries[i];
	int ret = 0;

	if (r->keep_until <= i) {
		sut_keep_end(&r->keep);
		r->keep_until = 0;
	}
	if (!may_share(e)) {
		json_object_set_new(o, "server", json_null());
		json_object_set_new(o, "server_reason", json_string(why_alone(e)));
		return 0;
	}
	if (r->keep_until == 0) {
		const char *why = why_another(r, i);

		ret = prepare_server(r, i);
		if (why)
			json_object_set_new(o, "server_reason", strcmp(why, "memory") == 0 ?
				json_string("a new one, because one for this entry and the one before would need too "
					    "much memory") :
				json_sprintf("a new one, because the entry before has another %s", why));
	}
	e->cfg.keep = &r->keep;
	json_object_set_new(o, "server", json_integer(r->servers));
	return ret;
}

/* Places an entry's runs below the suite's folder. The suite writes --json, and each run has a --trace of its own. */
static void place_output(const struct runner *r, struct suite_entry *e)
{
	e->cfg.output = results_dir(r->results);
	e->cfg.json = NULL;
	e->cfg.trace_each = true;
	for (unsigned i = 0; i < e->alternatives.n; i++) {
		e->alternatives.v[i].cfg.json = NULL;
		e->alternatives.v[i].cfg.trace_each = true;
	}
}

/* True if the entry names a device that this machine lacks: its name is then still of the form "@2". */
static bool lacks_devices(const struct suite_entry *e)
{
	for (int i = 0; i < e->argc; i++)
		if (strncmp(e->argv[i], "--", 2) == 0 && (strncmp(e->argv[i], "--device=", 9) == 0 ||
							  strncmp(e->argv[i], "--compare", 9) == 0) &&
							  strchr(e->argv[i], '@'))
			return true;
	return false;
}

static enum run_exit run_comparison(const struct runner *r, struct suite_entry *e, json_t **out)
{
	char prefix[sizeof(e->id) + 1];

	if (is_of_command_line(e))
		return compare_run(&e->alternatives, results_dir(r->results), "", r->argc, r->argv, r->cases,
				   out);
	snprintf(prefix, sizeof(prefix), "%s-", e->id);
	return compare_run(&e->alternatives, results_dir(r->results), prefix, e->argc, e->argv, r->cases, out);
}

static double line_rate_of(const json_t *run)
{
	const json_t *step;
	double most = NAN;
	size_t i;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		most = fmax(most, read_amount(step, "network.generator.line_bits_per_s") / 8);
	}
	return most;
}

/* Adds to an entry its expectations, judged. Returns the exit status that follows from them. With several load hosts
 * only the leader judges, because only it has the figures of all. */
static enum run_exit judge_expectations(const struct runner *r, const struct suite_entry *e, json_t *o)
{
	const json_t *about = json_at(o, e->alternatives.n ? "comparison.environment" : "environment");
	json_t *rows;

	if (!e->expect || r->base->rank != 0)
		return EXIT_OK;
	rows = expect_judge(e->expect, o, json_object_get(r->out, "entries"), r->line_bytes_per_s,
			    e->cfg.judge == JUDGE_ALL ? NULL : verdict_excuse(NULL, about));
	json_object_set_new(o, "expectations", rows);
	return expect_status(rows);
}

static enum run_exit run_entry(struct runner *r, unsigned i, json_t *o)
{
	struct suite_entry *e = &r->suite->entries[i];
	json_t *run = NULL;
	enum run_exit status;

	if (preflight_check(&e->cfg) || choose_server(r, i, o)) {
		team_quit(e->cfg.team, "it cannot run an entry of the suite");
		return EXIT_ENVIRONMENT;
	}
	if (e->alternatives.n) {
		status = run_comparison(r, e, &run);
		if (run)
			json_object_set(o, "comparison", run);
	} else {
		status = run_once(&e->cfg, e->argc, e->argv, false, &run);
		run_cases_add(r->cases, NULL, run);
		suite_results_of_run(o, run);
		r->line_bytes_per_s = line_rate_of(run);
		/* Do not use a server that stopped answering for another entry. */
		if (run && strcmp(json_text_at(run, "run.stop_reason"), "server_lost") == 0)
			r->keep_until = 0;
	}
	if (run)
		json_object_set_new(o, "status", json_string("ran"));
	json_decref(run);
	return status;
}

static json_t *entry_json(const struct suite_entry *e)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:O}", "id", e->id, "suite", e->suite, "name", e->name, "title",
			 e->title, "question", e->question, "options", e->options);
}

static enum run_exit prepare_and_run(struct runner *r, unsigned i, json_t *o)
{
	struct suite_entry *e = &r->suite->entries[i];
	char note[256] = "", err[1024];
	enum run_exit status;

	if (lacks_devices(e)) {
		snprintf(note, sizeof(note), "Skipped: it needs more RDMA devices than the %d of this machine.",
			 dev_count());
		json_object_set_new(o, "status", json_string("skipped"));
		status = EXIT_INCONCLUSIVE;
	} else if (fit_entry(r, e, note, sizeof(note), err, sizeof(err))) {
		log_error("%s", err);
		status = EXIT_ENVIRONMENT;
	} else {
		place_output(r, e);
		status = run_entry(r, i, o);
	}
	if (note[0] && !r->base->quiet)
		utf8_print_line(stderr, "suite: %s: %s", e->id, note);
	json_object_set_new(o, "note", note[0] ? json_string(note) : json_null());
	return status;
}

static enum run_exit do_entry(struct runner *r, unsigned i)
{
	struct suite_entry *e = &r->suite->entries[i];
	json_t *o = entry_json(e);
	enum run_exit status, expected;
	char now[40];

	if (!o)
		return EXIT_ENVIRONMENT;
	cases_suite(r->cases, e->id, results_time_text(r->results, now, sizeof(now)));
	if (!r->base->quiet && !is_of_command_line(e))
		utf8_print_line(stderr, "suite: entry %u of %u: %s: %s", i + 1, r->suite->n, e->id, e->title);
	status = prepare_and_run(r, i, o);
	if (!json_object_get(o, "status"))
		json_object_set_new(o, "status", json_string("failed"));
	json_object_set_new(o, "exit_status", json_integer(status));
	expected = judge_expectations(r, e, o);
	run_cases_add_entry(r->cases, o);
	json_array_append_new(json_object_get(r->out, "entries"), o);
	return run_exit_worse(status, expected);
}

static void lose_file(struct runner *r)
{
	r->unwritten = true;
	r->worst = EXIT_ENVIRONMENT;
}

/* Writes suite.json after each entry, so that results are kept if the suite is killed. */
static void save(struct runner *r)
{
	char now[40];

	json_object_set_new(r->out, "ended_at", json_string(results_time_text(r->results, now, sizeof(now))));
	json_object_set_new(r->out, "exit_status", json_integer(r->worst));
	json_object_set_new(r->out, "status", json_string(r->worst == EXIT_INTERRUPTED ? "aborted" :
		json_array_size(json_object_get(r->out, "entries")) == r->suite->n ? "completed" : "running"));
	if (results_json(r->results, "suite.json", r->out) || json_memory_was_short())
		lose_file(r);
}

/* Reports the cases to the CI system, with several load hosts only on the leader. False if the file of --junit could
 * not be written. */
static bool write_cases(struct runner *r)
{
	char now[40];
	int ret;

	results_time_text(r->results, now, sizeof(now));
	for (size_t i = json_array_size(json_object_get(r->out, "entries")); i < r->suite->n; i++) {
		cases_suite(r->cases, r->suite->entries[i].id, now);
		cases_add(r->cases, &(struct test_case){ .group = "run", .name = "end", .result = CASE_SKIPPED,
							 .measured = "not run: the suite ended before it" });
	}
	if (r->unwritten) {
		cases_suite(r->cases, "suite", now);
		cases_add(r->cases, &(struct test_case){ .group = "suite", .name = "files", .result = CASE_ERROR,
							 .measured = "a file could not be written" });
	}
	ret = r->base->rank == 0 ? junit_write(r->cases, r->base->junit) : 0;
	if (r->base->rank == 0)
		step_summary_append(r->cases, results_dir(r->results));
	return !ret;
}

static enum run_exit finish(struct runner *r)
{
	const char *json = r->base->json;
	/* With several load hosts only the leader prints the results. */
	bool show = r->base->rank == 0 && !(json && strcmp(json, "-") == 0);

	save(r);
	if (results_copy_json(json, r->out)) {
		lose_file(r);
		save(r);
	}
	if (suite_report_end(r->out, results_dir(r->results), show, r->base->details, r->base->report))
		lose_file(r);
	if (!write_cases(r)) {
		lose_file(r);
		save(r);
	}
	return r->worst;
}

static uint64_t bytes_needed(const struct suite *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < s->n; i++) {
		const struct suite_entry *e = &s->entries[i];

		bytes += e->alternatives.n ? 0 : space_needed(&e->cfg);
		for (unsigned k = 0; k < e->alternatives.n; k++)
			bytes += e->alternatives.rounds * space_needed(&e->alternatives.v[k].cfg);
	}
	return bytes;
}

static json_t *new_json(const struct runner *r)
{
	char now[40];
	json_t *words = json_array();

	for (int i = 0; i < r->argc; i++)
		json_array_append_new(words, json_string(r->argv[i]));
	return json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:[]}", "schema_version", 2, "id",
			 results_id(r->results), "suite", r->suite->name, "title", r->suite->title, "files",
			 r->suite->sources ? json_incref(r->suite->sources) : json_array(), "started_at",
			 results_time_text(r->results, now, sizeof(now)), "argv", words, "build", build_info_json(),
			 "entries");
}

enum run_exit suite_run(struct suite *s, const struct loadgen_config *base, int argc, char **argv)
{
	struct runner r = { .suite = s, .base = base, .argc = argc, .argv = argv, .worst = EXIT_OK };
	bool interrupted = false;
	char name[16 + sizeof(s->entries[0].alternatives.title)], err[512];

	if (is_of_command_line(&s->entries[0]))
		snprintf(name, sizeof(name), "compare-%s", s->entries[0].alternatives.title);
	else
		snprintf(name, sizeof(name), "suite-%s", s->name);
	if (results_new(base->output, base->name ? base->name : name, bytes_needed(s), &r.results, err, sizeof(err))) {
		log_error("%s", err);
		return EXIT_ENVIRONMENT;
	}
	r.out = new_json(&r);
	if (cases_new(base->name ? base->name : name, &r.cases)) {
		log_error("this machine is out of memory");
		json_decref(r.out);
		r.out = NULL;
	}
	for (unsigned i = 0; r.out && i < s->n && !interrupted; i++) {
		enum run_exit status;

		if (i && team_is_over(base->team))
			break;
		status = do_entry(&r, i);
		interrupted = status == EXIT_INTERRUPTED;
		r.worst = run_exit_worse(r.worst, status);
		save(&r);
	}
	sut_keep_end(&r.keep);
	r.worst = r.out ? finish(&r) : EXIT_ENVIRONMENT;
	cases_free(r.cases);
	json_decref(r.out);
	(void)results_tidy(r.results); /* a suite has no events of its own */
	results_free(r.results);
	return r.worst;
}
