/* One whole run. See run.h. */
#include "loadgen/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "loadgen/ramp/ramp.h"
#include "loadgen/report/report.h"
#include "loadgen/ramp/run_json.h"
#include "loadgen/ramp/results.h"
#include "loadgen/ramp/summary.h"
#include "loadgen/judge/verdict.h"

static enum run_exit exit_status_of(const struct ramp *r)
{
	if (r->stop_reason == STOP_ABORTED)
		return EXIT_INTERRUPTED;
	/* It never came to a step. */
	if (json_array_size(r->verdict) == 0)
		return EXIT_ENVIRONMENT;
	switch (verdict_overall(r->verdict)) {
	case CRITERION_FAIL: return EXIT_CRITERION;
	case CRITERION_INCONCLUSIVE: return EXIT_INCONCLUSIVE;
	case CRITERION_PASS: break;
	}
	if (r->stop_reason == STOP_SERVER_LOST && !r->search_done)
		return EXIT_CRITERION;
	return r->stop_reason == STOP_GENERATOR_FAILED ? EXIT_INCONCLUSIVE : EXIT_OK;
}

static int write_results(struct ramp *r, const json_t *run)
{
	const char *json = r->cfg->json;
	int ret = results_write_json(results_path(r->results, "run.json"), (json_t *)run);

	if (ret)
		log_error("cannot write %s: %s", results_path(r->results, "run.json"), strerror(-ret));
	if (json && strcmp(json, "-") == 0) {
		if (json_dumpf(run, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) || printf("\n") < 0 ||
		    fflush(stdout)) {
			log_error("cannot write run.json to stdout");
			ret = -EIO;
		}
	} else if (json) {
		int e = results_write_json(json, (json_t *)run);

		if (e)
			log_error("cannot write --json %s: %s", json, strerror(-e));
		ret = ret ? ret : e;
	}
	return ret;
}

/* What a report cannot be made of, or with, is no fault of the run's. */
static void write_report(const struct ramp *r, bool print)
{
	char err[512];

	if (report_write(results_dir(r->results), err, sizeof(err)))
		log_warn("no report: %s", err);
	else if (print)
		printf("Report:  %s/report.html\n", results_dir(r->results));
}

static enum run_exit finish(struct ramp *r, int argc, char **argv, bool print, json_t **out)
{
	enum run_exit status = exit_status_of(r);
	json_t *run = run_json(r, argc, argv, status);
	bool json_only = r->cfg->json && strcmp(r->cfg->json, "-") == 0;

	if (!run) {
		log_error("this machine is out of memory: no run.json");
		return EXIT_ENVIRONMENT;
	}
	results_event(r->results, "run_end", json_pack("{s:s, s:i}", "stop_reason",
		stop_reason_names[r->stop_reason], "exit_status", status));
	if (status == EXIT_ENVIRONMENT)
		log_error("%s", r->stop_detail);
	else if (print && !json_only)
		summary_print(r, run, stdout);
	if (write_results(r, run))
		status = EXIT_ENVIRONMENT;
	else if (r->cfg->report && json_array_size(r->steps) > 0)
		write_report(r, print && !json_only);
	if (out)
		*out = json_incref(run);
	json_decref(run);
	return status;
}

enum run_exit run_once(const struct loadgen_config *cfg, int argc, char **argv, bool print, json_t **out)
{
	struct ramp r = { .cfg = cfg };
	enum run_exit status;
	char err[512];

	if (out)
		*out = NULL;
	if (results_new(cfg->output, cfg->name_text, &r.results, err, sizeof(err))) {
		log_error("%s", err);
		return EXIT_ENVIRONMENT;
	}
	results_time_text(r.started_at, sizeof(r.started_at));
	if (ramp_run(&r, err, sizeof(err))) {
		log_error("%s", err);
		status = EXIT_ENVIRONMENT;
	} else {
		status = finish(&r, argc, argv, print, out);
	}
	json_decref(r.steps);
	json_decref(r.verdict);
	json_decref(r.rows);
	json_decref(r.info);
	json_decref(r.generator_dev);
	results_free(r.results);
	return status;
}
