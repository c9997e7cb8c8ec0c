/* One whole run. See run.h. */
#include "loadgen/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/environment.h"
#include "loadgen/ramp/ramp.h"
#include "loadgen/report/report.h"
#include "loadgen/results/run_json.h"
#include "loadgen/results/results.h"
#include "loadgen/results/summary.h"
#include "loadgen/judge/verdict.h"

/* The run ended before a step could be judged. */
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
	if (came_to_nothing(oc))
		return EXIT_ENVIRONMENT;
	switch (verdict_overall(oc->verdict)) {
	case CRITERION_FAIL: return EXIT_CRITERION;
	case CRITERION_INCONCLUSIVE: return EXIT_INCONCLUSIVE;
	case CRITERION_PASS: break;
	}
	if (oc->stop_reason == STOP_SERVER_LOST && !oc->search_done)
		return EXIT_CRITERION;
	return oc->stop_reason == STOP_GENERATOR_FAILED ? EXIT_INCONCLUSIVE : EXIT_OK;
}

/* run.json, in the folder and where --json says. */
static int write_json(const struct loadgen_config *cfg, struct results *results, json_t *run)
{
	int ret = results_write_json(results_path(results, "run.json"), run), e = 0;

	if (ret)
		log_error("cannot write %s: %s", results_path(results, "run.json"), strerror(-ret));
	if (cfg->json && strcmp(cfg->json, "-") == 0) {
		if (json_dumpf(run, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) || printf("\n") < 0 ||
		    fflush(stdout)) {
			log_error("cannot write run.json to stdout");
			e = -EIO;
		}
	} else if (cfg->json) {
		e = results_write_json(cfg->json, run);
		if (e)
			log_error("cannot write --json %s: %s", cfg->json, strerror(-e));
	}
	return ret ? ret : e;
}

static void print_summary(const struct outcome *oc, const char *dir, const json_t *run)
{
	char where[256];

	environment_describe(json_at(run, "environment.clients"), where, sizeof(where));
	summary_print(oc, run, where, dir, stdout);
}

/* False if one of its files could not be written. A run that cannot be reported on is no failure of the run. */
static bool write_report(const char *dir, bool print)
{
	char err[512];
	int ret = report_write(dir, err, sizeof(err));

	if (ret)
		log_warn("no report: %s", err);
	else if (print)
		printf("Report:  %s/report.html\n", dir);
	return ret != -EIO;
}

/* The report is made from run.json, so run.json learns last that the report is not there. */
static void tell_unwritten(struct results *results, json_t *run)
{
	json_t *about = json_object_get(run, "run");
	const char *path = results_path(results, "run.json");
	int ret;

	json_object_set_new(about, "files_incomplete", json_true());
	json_object_set_new(about, "exit_status", json_integer(EXIT_ENVIRONMENT));
	ret = results_write_json(path, run);
	if (ret)
		log_error("cannot write %s: %s", path, strerror(-ret));
}

static enum run_exit finish(struct outcome *oc, struct results *results, int argc, char **argv, bool print, json_t **out)
{
	const char *dir = results_dir(results);
	enum run_exit status;
	json_t *run;

	print = print && !(oc->cfg->json && strcmp(oc->cfg->json, "-") == 0);
	results_event(results, "run_end", json_pack("{s:s, s:i}", "stop_reason", stop_reason_names[oc->stop_reason],
						    "exit_status", exit_status_of(oc, results)));
	status = exit_status_of(oc, results); /* that event may be what could not be written */
	run = run_json(oc, results, argc, argv, status);
	if (!run) {
		log_error("this machine is out of memory: no run.json");
		return EXIT_ENVIRONMENT;
	}
	if (came_to_nothing(oc))
		log_error("%s", oc->stop_detail);
	else if (print)
		print_summary(oc, dir, run);
	if (write_json(oc->cfg, results, run)) {
		status = EXIT_ENVIRONMENT;
	} else if (oc->cfg->report && json_array_size(oc->steps) > 0 && !write_report(dir, print)) {
		status = EXIT_ENVIRONMENT;
		tell_unwritten(results, run);
	}
	if (out)
		*out = json_incref(run);
	json_decref(run);
	return status;
}

enum run_exit run_once(const struct loadgen_config *cfg, int argc, char **argv, bool print, json_t **out)
{
	struct results *results;
	struct outcome oc;
	enum run_exit status = EXIT_ENVIRONMENT;
	char err[512];

	if (out)
		*out = NULL;
	if (results_new(cfg->output, cfg->name_text, &results, err, sizeof(err))) {
		log_error("%s", err);
		return status;
	}
	outcome_init(&oc, cfg);
	if (ramp_run(&oc, results, err, sizeof(err)))
		log_error("%s", err);
	else
		status = finish(&oc, results, argc, argv, print, out);
	outcome_clear(&oc);
	results_free(results);
	return status;
}
