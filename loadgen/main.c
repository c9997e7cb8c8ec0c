/* performance_test: options, where to run, the run, what it leaves. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/build_info.h"
#include "common/dev.h"
#include "common/log.h"
#include "common/res.h"
#include "loadgen/config.h"
#include "loadgen/environment.h"
#include "loadgen/ramp.h"
#include "loadgen/report.h"
#include "loadgen/results.h"
#include "loadgen/verdict.h"

enum { EXIT_OK = 0, EXIT_CRITERION = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3, EXIT_INCONCLUSIVE = 4,
       EXIT_INTERRUPTED = 130 };

static int exit_status_of(const struct ramp *r)
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
	if (r->stop_reason == STOP_SERVER_LOST)
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

static int finish(struct ramp *r, int argc, char **argv)
{
	int status = exit_status_of(r);
	json_t *run = report_run_json(r, argc, argv, status);
	bool json_only = r->cfg->json && strcmp(r->cfg->json, "-") == 0;

	if (!run) {
		log_error("this machine is out of memory: no run.json");
		return EXIT_ENVIRONMENT;
	}
	results_event(r->results, "run_end", json_pack("{s:s, s:i}", "stop_reason",
		stop_reason_names[r->stop_reason], "exit_status", status));
	if (status == EXIT_ENVIRONMENT)
		log_error("%s", r->stop_detail);
	else if (!json_only)
		report_print(r, run, stdout);
	if (write_results(r, run))
		status = EXIT_ENVIRONMENT;
	json_decref(run);
	return status;
}

static int test(struct loadgen_config *cfg, int argc, char **argv)
{
	struct ramp r = { .cfg = cfg };
	char err[512];
	int status;

	if (results_new(cfg->output, cfg->name_text, &r.results, err, sizeof(err))) {
		log_error("%s", err);
		return EXIT_ENVIRONMENT;
	}
	results_time_text(r.started_at, sizeof(r.started_at));
	if (ramp_run(&r, err, sizeof(err))) {
		log_error("%s", err);
		status = EXIT_ENVIRONMENT;
	} else {
		status = finish(&r, argc, argv);
	}
	json_decref(r.steps);
	json_decref(r.verdict);
	json_decref(r.rows);
	json_decref(r.info);
	json_decref(r.generator_dev);
	results_free(r.results);
	return status;
}

/* The folder, since the file itself is made under another name and renamed. */
static bool can_write(const char *file)
{
	char dir[PATH_MAX];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", file);
	slash = strrchr(dir, '/');
	if (!slash)
		return access(".", W_OK) == 0;
	slash[slash == dir] = '\0';
	return access(dir, W_OK) == 0;
}

/* Descriptors and a device: what can be known before anything is started. */
static int check_environment(const struct loadgen_config *cfg)
{
	/* With --phased every client of a step has its TLS connection open at once. */
	uint64_t open = cfg->phased ? cfg->clients : MIN(cfg->connect_concurrency, cfg->clients);
	uint64_t fds = open + 128, have = res_raise_nofile();
	struct addr any;
	char err[512];

	res_raise_memlock();
	if (cfg->json && strcmp(cfg->json, "-") != 0 && !can_write(cfg->json)) {
		log_error("--json %s: %s; name a file in a folder that exists and may be written", cfg->json,
			  strerror(errno));
		return EXIT_ENVIRONMENT;
	}
	if (have < fds) {
		log_error("the limit of open files (ulimit -n) is %llu, %s needs %llu; raise it",
			  (unsigned long long)have, cfg->phased ? "--phased" : "--connect-concurrency",
			  (unsigned long long)fds);
		return EXIT_ENVIRONMENT;
	}
	if (dev_local_addr(cfg->device, &any, err, sizeof(err))) {
		log_error("%s", err);
		return EXIT_ENVIRONMENT;
	}
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	struct loadgen_config cfg;
	char err[512];
	int first, status;

	loadgen_config_defaults(&cfg);
	switch (opts_parse(&loadgen_options, argc, argv, &cfg, &first, err, sizeof(err))) {
	case OPTS_HELP:
		opts_print_help(&loadgen_options, stdout);
		return EXIT_OK;
	case OPTS_VERSION:
		printf("performance_test %s\n", build_info_text());
		return EXIT_OK;
	case OPTS_ERROR:
		fprintf(stderr, "performance_test: %s\n", err);
		return EXIT_USAGE;
	case OPTS_OK:
		break;
	}
	if (first < argc) {
		fprintf(stderr, "performance_test: %s: no operands are taken (see --help)\n", argv[first]);
		return EXIT_USAGE;
	}
	if (loadgen_config_check(&cfg, argc, argv, err, sizeof(err))) {
		fprintf(stderr, "performance_test: %s\n", err);
		return EXIT_USAGE;
	}
	log_init("performance_test", (enum log_level)cfg.log_level);
	if (environment_enter(&cfg, argc, argv, err, sizeof(err))) {
		log_error("%s", err);
		return EXIT_ENVIRONMENT;
	}
	signal(SIGPIPE, SIG_IGN);
	status = check_environment(&cfg);
	return status ? status : test(&cfg, argc, argv);
}
