/* SPDX-License-Identifier: BSD-2-Clause */
/* performance_test: runs a subcommand, or without one reads options, meets the other load hosts, and runs the load. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/build_info.h"
#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "loadgen/config/config.h"
#include "loadgen/run/environment.h"
#include "loadgen/doctor/doctor_command.h"
#include "loadgen/plan/plan_command.h"
#include "loadgen/run/meeting.h"
#include "loadgen/run/preflight.h"
#include "loadgen/report/report_command.h"
#include "loadgen/run/run.h"
#include "loadgen/suites/suite.h"
#include "loadgen/suites/suite_find.h"
#include "loadgen/workloads/workloads.h"

/* The run of `plan --from measure`. */
#define MEASURED_CLIENTS 100
#define MEASURED_NS (3 * NS_PER_S)

/* Returns `status`, or an error if stdout could not be written: results that nobody received are no success. */
static int with_stdout(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	log_error("cannot write to stdout: %s", errno ? strerror(errno) : "some of the output was lost");
	return EXIT_ENVIRONMENT;
}

/* The task that a command line describes. */
struct task {
	struct loadgen_config cfg;
	struct suite *suite;		/* of --suite, --compare and --compare-set; NULL: a single run */
};

static int usage_error(const struct opts_spec *spec, const char *text)
{
	opts_print_error(spec, text, stderr);
	return EXIT_USAGE;
}

/* Refuses a plan for several servers, because the needs of each depend on how many clients it gets. */
static bool plans_several(const struct loadgen_config *cfg, char *err, size_t err_size)
{
	if (!cfg->plan || loadgen_n_targets(cfg) < 2)
		return false;
	snprintf(err, err_size,
		 "--targets: plan one server at a time, with --server and the clients that it is to get");
	return true;
}

/* Checks the options against each other, and reads the suite that they name. */
static int check_options(struct task *t, int argc, char **argv, char *err, size_t err_size)
{
	struct loadgen_config *cfg = &t->cfg;
	bool compares = alternatives_are_asked_for(cfg);

	if (cfg->plan && loadgen_has_hosts(cfg)) {
		snprintf(err, err_size, "--lead, --join, --cluster: plan one load host, with its share of --clients");
		return -EINVAL;
	}
	if (cfg->plan && (compares || cfg->suite)) {
		snprintf(err, err_size, "--compare, --compare-set, --suite: plan one run, without them");
		return -EINVAL;
	}
	if (cfg->price_text && !compares && !cfg->suite) {
		snprintf(err, err_size, "--price: needs --compare transport=..., because it prices what is compared");
		return -EINVAL;
	}
	if (loadgen_config_check(cfg, argc, argv, err, err_size) ||
	    plans_several(cfg, err, err_size) ||
	    (cfg->suite ? suite_read(cfg->suite, cfg->only, argc, argv, &t->suite, err, err_size) :
			  workloads_apply(cfg, argc, argv, err, err_size)))
		return -EINVAL;
	return compares ? suite_of_comparison(cfg, argc, argv, &t->suite, err, err_size) : 0;
}

/* Reads the command line into *t. False: the program ends with *status. */
static bool take_options(const struct opts_spec *spec, int argc, char **argv, struct task *t, int *status)
{
	char err[512];
	int first;

	*status = EXIT_OK;
	switch (opts_parse(spec, argc, argv, &t->cfg, &first, err, sizeof(err))) {
	case OPTS_HELP:
		opts_print_help(spec, first < argc ? argv[first] : NULL, stdout);
		return false;
	case OPTS_VERSION:
		utf8_print_line(stdout, "performance_test %s", build_info_text());
		return false;
	case OPTS_ERROR:
		*status = usage_error(spec, err);
		return false;
	case OPTS_OK:
		break;
	}
	if (first < argc)
		snprintf(err, sizeof(err), "%.300s: %s (see --help)", argv[first], spec == &loadgen_options ?
			 "unknown subcommand; allowed: plan, doctor, report" : "no operands are taken");
	if (first < argc || check_options(t, argc, argv, err, sizeof(err)))
		*status = usage_error(spec, err);
	return *status == EXIT_OK;
}

static int run_task(struct task *t, int argc, char **argv)
{
	if (preflight_check(&t->cfg))
		return EXIT_ENVIRONMENT;
	return t->suite ? suite_run(t->suite, &t->cfg, argc, argv) : run_once(&t->cfg, argc, argv, true, NULL);
}

/* Gives every run of the task the team of hosts that met. False, with a line in `err`, if one of the runs would load a
 * server that this host must not load; then no run may begin. */
static bool apply_fleet(struct meeting *m, struct task *t, char *err, size_t err_size)
{
	bool allowed = meeting_apply(m, &t->cfg, err, err_size);
	struct loadgen_config *cfg;

	for (unsigned i = 0; t->suite && allowed && (cfg = suite_config(t->suite, i)); i++)
		allowed = meeting_apply(m, cfg, err, err_size);
	return allowed;
}

/* Member: replaces the task by one made of the leader's options and this host's own. Leader: keeps the task. */
static bool take_over(struct meeting *m, struct task *t, int *status)
{
	if (!m->argv)
		return true;
	suite_free(t->suite);
	*t = (struct task){ .suite = NULL };
	loadgen_config_defaults(&t->cfg);
	return take_options(&loadgen_options, m->argc, m->argv, t, status);
}

static int run_with_hosts(struct task *t, int argc, char **argv)
{
	const char *why = NULL;
	struct meeting m;
	char err[512];
	int status = EXIT_ENVIRONMENT, ret = meeting_begin(&m, &loadgen_options, &t->cfg, argc, argv, err, sizeof(err));

	if (ret) {
		log_error("%s", err);
		why = err;
	} else if (!take_over(&m, t, &status)) {
		why = "it does not accept the leader's options";
	} else if (!apply_fleet(&m, t, err, sizeof(err))) {
		log_error("%s", err);
		why = err;
		status = EXIT_ENVIRONMENT;
	} else {
		status = run_task(t, m.argv ? m.argc : argc, m.argv ? m.argv : argv);
		why = status == EXIT_INTERRUPTED ? "it was interrupted" : status == EXIT_ENVIRONMENT ?
			"it could not run" : NULL;
	}
	meeting_end(&m, why);
	return ret == -ECANCELED ? EXIT_INTERRUPTED : status;
}

static int run_or_share(struct task *t, int argc, char **argv)
{
	return loadgen_has_hosts(&t->cfg) ? run_with_hosts(t, argc, argv) : run_task(t, argc, argv);
}

/* Runs the load of a plan for a moment with a part of its clients, because the plan needs the CPU time of a message. */
static enum run_exit measure_cpu(const struct loadgen_config *cfg, int argc, char **argv, json_t **run)
{
	struct loadgen_config c = *cfg;

	c.plan = false;
	if (!c.name)
		snprintf(c.name_text, sizeof(c.name_text), "plan");
	c.clients = MIN(cfg->clients, MEASURED_CLIENTS);
	c.active = MIN(cfg->active, c.clients);
	c.steps = (struct opt_list){ .n = 1, .v = { c.clients } };
	c.sizes = (struct opt_list){ .n = 1, .v = { cfg->message_bytes } };
	c.rates = (struct opt_list){ .n = 0 };
	if (cfg->rates.n && !cfg->find_rate)
		c.rates.v[c.rates.n++] = cfg->rates.v[cfg->rates.n - 1];
	c.find_capacity = c.find_rate = false;
	c.duration_ns = MEASURED_NS;
	c.sample_interval_ns = NS_PER_S / 10; /* the CPU time of connecting takes two samples meanwhile */
	c.iterations = c.warmup_iterations = c.cycles = c.floor = 0;
	c.repeat = 1;
	c.report = c.details = 0;
	c.quiet = true;
	c.json = c.trace = c.metrics = c.metrics_textfile = NULL;
	return preflight_check(&c) ? EXIT_ENVIRONMENT : run_once(&c, argc, argv, false, run);
}

static int make_plan(struct task *t, int argc, char **argv)
{
	json_t *run = NULL;
	int status = EXIT_OK;

	if (t->cfg.from && strcmp(t->cfg.from, "measure") == 0)
		status = measure_cpu(&t->cfg, argc, argv, &run);
	if (status != EXIT_ENVIRONMENT && status != EXIT_INTERRUPTED)
		status = estimate_command(&t->cfg, run);
	json_decref(run);
	return status;
}

/* Takes the options, enters the environment that they name (run/environment.h), and does `work` there. Returns the exit
 * status. */
static int perform(const struct opts_spec *spec, int argc, char **argv,
		   int (*work)(struct task *t, int argc, char **argv))
{
	struct task t = { .suite = NULL };
	char err[512];
	int status;

	loadgen_config_defaults(&t.cfg);
	t.cfg.plan = work == make_plan;
	if (!take_options(spec, argc, argv, &t, &status)) {
		suite_free(t.suite);
		return status;
	}
	if (t.suite)
		t.cfg.vm_rails = suite_rails(t.suite);
	log_init("performance_test", (enum log_level)t.cfg.log_level);
	if (environment_enter(&t.cfg, argc, argv, err, sizeof(err))) {
		log_error("%s", err);
		suite_free(t.suite);
		return EXIT_ENVIRONMENT;
	}
	signal(SIGPIPE, SIG_IGN);
	log_start();
	status = work(&t, argc, argv);
	suite_free(t.suite);
	status = with_stdout(status);
	log_stop();
	return status;
}

static int plan_command(int argc, char **argv)
{
	return perform(&loadgen_plan_options, argc, argv, make_plan);
}

/* argv[0] of a subcommand is its name; it returns the exit status. Without one, performance_test runs a load. */
static const struct {
	const char *name;
	int (*command)(int argc, char **argv);
} subcommands[] = {
	{ "plan", plan_command },	/* before a run: estimates the resources that it needs */
	{ "doctor", doctor_command },	/* checks whether this machine can run a load test */
	{ "report", report_command },	/* after a run: makes the report of its folder */
};

int main(int argc, char **argv)
{
	json_memory_watch();
	for (size_t i = 0; argc > 1 && i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (strcmp(argv[1], subcommands[i].name) == 0)
			return subcommands[i].command(argc - 1, argv + 1);
	return perform(&loadgen_options, argc, argv, run_or_share);
}
