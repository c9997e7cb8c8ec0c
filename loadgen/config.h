/* performance_test's options. Read-only once the workers run. */
#ifndef RAMPART_LOADGEN_CONFIG_H
#define RAMPART_LOADGEN_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/opts.h"
#include "loadgen/workload.h"

enum environment { ENVIRONMENT_AUTO, ENVIRONMENT_NATIVE, ENVIRONMENT_VM };

struct loadgen_config {
	uint64_t clients;
	struct opt_list steps;		/* derived from clients when not given */
	const char *server;		/* NULL: our own */
	uint64_t tls_port;
	const char *server_name;
	uint64_t server_threads;	/* 0: the server's default */
	const char *ca, *cert, *key;
	const char *device;
	int environment;		/* enum environment */
	uint64_t duration_ns, warmup_ns;
	uint64_t message_bytes;
	uint64_t inflight;
	uint64_t connect_concurrency;
	uint64_t connect_rate;		/* connects per second; 0: as fast as concurrency allows */
	uint64_t connect_retries;
	bool phased;			/* a barrier between the stages of connecting */
	bool tls_resume;
	int workload;			/* enum workload */
	uint64_t active;		/* clients that send; 0: all */
	uint64_t churn_per_s;		/* clients that leave and come back per second; 0: none */
	uint64_t cycles;		/* measure until so many came back; 0: for duration_ns */
	uint64_t threads;
	uint64_t repeat;
	uint64_t seed;
	uint64_t timeout_ns;		/* of a connection stage */
	uint64_t step_timeout_ns;	/* of connecting all clients of a step; 0: derived */
	const char *output;
	const char *name;
	const char *json;
	int poll;
	uint64_t spin_ns;
	int log_level;
	bool quiet, verify;

	char ca_path[PATH_MAX];
	char name_text[96];
};

extern const struct opts_spec loadgen_options;

void loadgen_config_defaults(struct loadgen_config *c);

/* Checks that depend on more than one option, and what follows from them. 0, or -EINVAL with a line. */
int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
