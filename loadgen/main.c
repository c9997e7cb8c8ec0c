/* performance_test: options, where to run, the run, what it leaves. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/base/build_info.h"
#include "common/rdma/dev.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/res.h"
#include "loadgen/config/config.h"
#include "loadgen/environment.h"
#include "loadgen/compare.h"
#include "loadgen/report/command.h"
#include "loadgen/run.h"
#include "loadgen/workloads/workloads.h"

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
	if (cfg->trace && !can_write(cfg->trace)) {
		log_error("--trace %s: %s; name a file in a folder that exists and may be written", cfg->trace,
			  strerror(errno));
		return EXIT_ENVIRONMENT;
	}
	if (have < fds) {
		log_error("the limit of open files (ulimit -n) is %llu, %s needs %llu; raise it",
			  (unsigned long long)have, cfg->phased ? "--phased" : "--connect-concurrency",
			  (unsigned long long)fds);
		return EXIT_ENVIRONMENT;
	}
	for (uint32_t i = 0; i < cfg->n_rails; i++)
		if (dev_local_addr(cfg->devices.n ? cfg->devices.name[i] : NULL, &any, err, sizeof(err))) {
			log_error("%s", err);
			return EXIT_ENVIRONMENT;
		}
	return EXIT_OK;
}

/* Figures that nobody got are no success. */
static int with_stdout(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	log_error("cannot write to stdout: %s", errno ? strerror(errno) : "something of it was lost");
	return EXIT_ENVIRONMENT;
}

int main(int argc, char **argv)
{
	static struct compare compare;
	struct loadgen_config cfg;
	char err[512];
	int first, status;

	json_memory_watch();
	if (argc > 1 && strcmp(argv[1], "report") == 0)
		return report_command(argc - 1, argv + 1);
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
	if (loadgen_config_check(&cfg, argc, argv, err, sizeof(err)) ||
	    workloads_apply(&cfg, argc, argv, err, sizeof(err)) ||
	    (cfg.compare && compare_parse(&cfg, argc, argv, &compare, err, sizeof(err)))) {
		fprintf(stderr, "performance_test: %s\n", err);
		return EXIT_USAGE;
	}
	log_init("performance_test", (enum log_level)cfg.log_level);
	if (environment_enter(&cfg, argc, argv, err, sizeof(err))) {
		log_error("%s", err);
		return EXIT_ENVIRONMENT;
	}
	signal(SIGPIPE, SIG_IGN);
	log_start();
	status = check_environment(&cfg);
	if (!status)
		status = cfg.compare ? compare_run(&compare, &cfg, argc, argv) : run_once(&cfg, argc, argv, true, NULL);
	status = with_stdout(status);
	log_stop();
	return status;
}
