/* SPDX-License-Identifier: BSD-2-Clause */
/* One whole run. See run.h. */
#include "loadgen/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "loadgen/run/environment.h"
#include "loadgen/plan/planned.h"
#include "loadgen/ramp/ramp.h"
#include "loadgen/report/cases/junit.h"
#include "loadgen/report/cases/step_summary.h"
#include "loadgen/report/report.h"
#include "loadgen/report/run_cases.h"
#include "loadgen/cluster/team.h"
#include "loadgen/output/host_files.h"
#include "loadgen/output/load_hosts.h"
#include "loadgen/output/run_json.h"
#include "loadgen/output/results.h"
#include "loadgen/output/space.h"
#include "loadgen/verdict/verdict.h"

/* How long the leader waits for the other hosts' files, and then for the hosts to learn the exit status. */
#define FILES_TIMEOUT_NS (60 * NS_PER_S)
#define BYE_TIMEOUT_NS (10 * NS_PER_S)

/* True if the run ended before a step could be judged. */
static bool came_to_nothing(const struct outcome *oc)
{
	return json_array_size(oc->verdict) == 0 && oc->stop_reason != STOP_ABORTED;
}

static enum run_exit exit_status_of(const struct outcome *oc, const struct results *results)
{
	if (results_are_incomplete(results))
		return EXIT_ENVIRONMENT;
	if (oc->stop_reason == STOP_ABORTED)
		return EXIT_INTERRUPTED;
	if (oc->stop_reason == STOP_HOST_LOST)
		return EXIT_CRITERION;
	if (came_to_nothing(oc))
		return EXIT_ENVIRONMENT;
	/* A search ends when the server is lost, and its verdict says what it did not find. */
	if (oc->stop_reason == STOP_SERVER_LOST && !loadgen_is_search(oc->cfg))
		return EXIT_CRITERION;
	switch (verdict_overall(oc->verdict)) {
	case CRITERION_FAIL: return EXIT_CRITERION;
	case CRITERION_INCONCLUSIVE: return EXIT_INCONCLUSIVE;
	case CRITERION_PASS:
	case CRITERION_NOT_JUDGED: break;
	}
	return oc->stop_reason == STOP_GENERATOR_FAILED ? EXIT_INCONCLUSIVE : EXIT_OK;
}

/* Writes the report. False if one of its files could not be written; other errors do not make the run fail. */
static bool write_report(const char *dir, FILE *out, bool *made)
{
	char err[512];
	int ret = report_write(dir, out, err, sizeof(err));

	*made = !ret;
	if (ret)
		log_warn("no report: %s", err);
	return ret != -EIO;
}

static void note_unwritten(json_t *run)
{
	json_t *about = json_object_get(run, "run");

	json_object_set_new(about, "files_incomplete", json_true());
	json_object_set_new(about, "exit_status", json_integer(EXIT_ENVIRONMENT));
}

/* Records in run.json that a file is missing. run.json is written again, because the report is made from it. */
static void tell_unwritten(struct results *results, json_t *run)
{
	note_unwritten(run);
	(void)!results_json(results, "run.json", run);
}

/* Tidies up incomplete results, and if `print`, prints the last lines: which results and report exist. */
static void say_where(struct results *results, bool unreported, bool made, bool print)
{
	const char *dir = results_dir(results), *why = path_error(results_error(results));
	bool left = !results_are_incomplete(results) || results_tidy(results);

	if (!print)
		return;
	if (!left)
		utf8_print_line(stdout, "Results: none; nothing could be written to %s: %s", dir, why);
	else if (results_are_incomplete(results))
		utf8_print_line(stdout, "Results: incomplete, %s: %s", dir, why);
	else
		utf8_print_line(stdout, "Results: %s%s", dir, unreported ? " (without its report)" : "");
	if (made)
		utf8_print_line(stdout, "Report:  %s/report.html", dir);
}

static void print_summary(const json_t *run)
{
	char where[256];

	environment_describe(json_at(run, "environment.clients"), where, sizeof(where));
	if (report_summary(run, where, stdout) == -ENOMEM)
		log_error("no summary: this machine is out of memory");
}

/* Writes the run's files. If `print`, prints where they are and the summary, or with --details the whole report. False
 * if a file could not be written. */
static bool write_files(const struct loadgen_config *cfg, struct results *results, json_t *run, bool print)
{
	bool made = false, reported = true, ok, copied;

	if (print && !cfg->details)
		print_summary(run);
	ok = !results_json(results, "run.json", run);
	copied = !results_copy_json(cfg->json, run);
	if (ok && cfg->report && json_array_size(json_object_get(run, "steps")) > 0)
		reported = write_report(results_dir(results), print && cfg->details ? stdout : NULL, &made);
	if (!reported || !copied)
		tell_unwritten(results, run);
	if (print && cfg->details && !made)
		print_summary(run);
	else if (print && cfg->details)
		printf("\n");
	say_where(results, !reported, made, print);
	return ok && reported && copied;
}

/* Reports the run as test cases to the CI system. False if the file of --junit could not be written. */
static bool write_cases(const struct loadgen_config *cfg, struct results *results, const json_t *run)
{
	struct cases *c;
	int ret;

	if (cases_new(cfg->name_text, &c)) {
		log_error("this machine is out of memory: no test cases for a CI system");
		return !cfg->junit;
	}
	cases_suite(c, cfg->name_text, json_text_at(run, "run.started_at"));
	run_cases_add(c, NULL, run);
	ret = junit_write(c, cfg->junit);
	step_summary_append(c, results_dir(results));
	cases_free(c);
	return !ret;
}

/* Makes run.json. With the machines' state `before` the run, it also compares planned with used resources. */
static json_t *make_run_json(const struct outcome *oc, struct hosts *before, const struct results *results, int argc,
			     char **argv, enum run_exit status)
{
	json_t *run = run_json(oc, results, argc, argv, status);

	if (run && json_object_set_new(run, "plan", before ? planned_json(before, oc->server_infos[0], run) :
				       json_null())) {
		json_decref(run);
		run = NULL;
	}
	return run;
}

static enum run_exit finish(struct outcome *oc, struct hosts *before, struct results *results, int argc, char **argv,
			    bool print, json_t **out)
{
	enum run_exit status;
	bool own = print; /* this run is not part of a suite, which reports its runs itself */
	json_t *run;

	print = print && !(oc->cfg->json && strcmp(oc->cfg->json, "-") == 0);
	results_event(results, "run_end", json_pack("{s:s, s:i}", "stop_reason", stop_reason_names[oc->stop_reason],
						    "exit_status", exit_status_of(oc, results)));
	status = exit_status_of(oc, results); /* again, since writing the event may have failed */
	run = make_run_json(oc, before, results, argc, argv, status);
	if (!run) {
		log_error("this machine is out of memory: no run.json");
		return EXIT_ENVIRONMENT;
	}
	if (json_memory_was_short()) {
		results_lost(results, "run.json", -ENOMEM);
		note_unwritten(run);
		status = EXIT_ENVIRONMENT;
	}
	if (came_to_nothing(oc)) {
		log_error("%s", oc->stop_detail);
		print = false;
	}
	if (!write_files(oc->cfg, results, run, print)) {
		note_unwritten(run);
		status = EXIT_ENVIRONMENT;
	}
	if (own && !write_cases(oc->cfg, results, run)) {
		tell_unwritten(results, run);
		status = EXIT_ENVIRONMENT;
	}
	if (out)
		*out = json_incref(run);
	json_decref(run);
	return status;
}

/* Leader: takes the other hosts' files, before the report is made. */
static void take_files(const struct loadgen_config *cfg, struct results *results, struct load_hosts *hosts)
{
	struct team *t = cfg->team;

	if (!t || t->rank != 0 || t->out)
		return;
	team_arrive(t, 0, "files", NULL);
	team_gather(t, 0, "files", FILES_TIMEOUT_NS);
	for (uint32_t i = 1; i < t->n; i++) {
		const json_t *note = team_note(t, 0, "files", i);

		if (note && host_files_write(results, i, team_host_name(t, i), note))
			load_hosts_files(hosts, i, json_text_at(note, "folder"));
	}
	team_forget(t, 0, "files");
}

/* Makes all hosts end with the leader's exit status. Returns that of this host. */
static enum run_exit agree(const struct loadgen_config *cfg, struct results *results, enum run_exit status,
			   const char *why)
{
	struct team *t = cfg->team;
	json_t *what;
	double exit;

	if (!t || t->out)
		return t && status == EXIT_OK ? EXIT_CRITERION : status;
	if (t->rank == 0) {
		team_go(t, 0, "exit", json_pack("{s:i, s:s, s:s}", "status", (int)status, "reason",
						stop_reason_names[STOP_HOST_LOST], "detail", why), 0);
		/* The etcd of --lead ends with this program, so wait until the other hosts have the status. */
		team_arrive(t, 0, "bye", NULL);
		team_gather(t, 0, "bye", BYE_TIMEOUT_NS);
		return status;
	}
	if (status == EXIT_INTERRUPTED || *why)
		return status;
	team_arrive(t, 0, "files", host_files_read(results));
	what = team_wait(t, 0, "exit");
	if (what)
		team_arrive(t, 0, "bye", NULL);
	exit = json_number_at(what, "status");
	return what && exit >= 0 && exit <= EXIT_INTERRUPTED ? (enum run_exit)exit : EXIT_CRITERION;
}

enum run_exit run_once(const struct loadgen_config *cfg, int argc, char **argv, bool print, json_t **out)
{
	struct results *results;
	struct outcome oc;
	struct hosts before;
	bool planned;
	enum run_exit status = EXIT_ENVIRONMENT;
	char err[512];

	if (out)
		*out = NULL;
	if (results_new(cfg->output, cfg->name_text, space_needed(cfg), &results, err, sizeof(err))) {
		log_error("%s", err);
		team_quit(cfg->team, "it cannot make its folder of results");
		return status;
	}
	outcome_init(&oc, cfg);
	planned = planned_look(cfg, &before);
	if (ramp_run(&oc, results, err, sizeof(err))) {
		log_error("%s", err);
	} else {
		err[0] = '\0';
		take_files(cfg, results, oc.hosts);
		status = finish(&oc, planned ? &before : NULL, results, argc, argv, print && cfg->rank == 0, out);
	}
	if (planned)
		hosts_free(&before);
	status = agree(cfg, results, status, err);
	outcome_clear(&oc);
	results_free(results);
	return status;
}
