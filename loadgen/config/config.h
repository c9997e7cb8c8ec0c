/* performance_test's options. Read-only once the workers run. */
#ifndef RAMPART_LOADGEN_CONFIG_H
#define RAMPART_LOADGEN_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/opts.h"
#include "common/base/rails.h"
#include "common/rdma/tuning.h"
#include "loadgen/config/slo.h"

struct workload;

/* The values of --workload. loadgen/workloads/ has a file for each. */
#define LOADGEN_WORKLOADS(X) \
	X(echo) X(pingpong) X(small) X(large) X(duplex) X(write) X(read) X(atomic) X(mixed) X(connect) X(idle)
extern const char *const loadgen_workload_names[];	/* in this order, NULL-terminated */

enum environment { ENVIRONMENT_AUTO, ENVIRONMENT_NATIVE, ENVIRONMENT_VM };

/* How operations of the open loop are spaced. */
enum arrival { ARRIVAL_EVEN, ARRIVAL_POISSON };
extern const char *const loadgen_arrival_names[];	/* in the order of the enum, NULL-terminated */

/* How --workload large moves its buffers. */
enum operation { OPERATION_WRITE, OPERATION_SEND, OPERATION_READ };
extern const char *const loadgen_operation_names[];

/* The ratio of the operations of --workload mixed. */
struct mix {
	uint64_t writes, reads, atomics;
};

struct loadgen_config {
	uint64_t clients;
	struct opt_list steps;		/* derived from clients when not given; a search: its first step */
	const char *slo_text;		/* NULL: none */
	bool find_capacity;		/* a search, with at most `clients` */
	const char *server;		/* one for each rail, or NULL: our own */
	uint64_t tls_port;
	const char *server_name;
	uint64_t server_threads;	/* 0: the server's default */
	const char *ca, *cert, *key, *crl;
	const char *device;		/* one for each rail, or NULL */
	int environment;		/* enum environment */
	uint64_t duration_ns, warmup_ns;
	struct opt_list sizes;		/* of messages or other operations; the workload's default when not given */
	uint64_t inflight;		/* of each client; the workload's default when not given */
	uint64_t coalesce;		/* most messages that share a SEND */
	uint64_t rate, rate_per_client;	/* operations a second, of all clients or of each; both 0: closed loop */
	int arrival;			/* enum arrival */
	uint64_t chunk_bytes;
	int operation;			/* enum operation */
	const char *mix_text;
	uint64_t connect_concurrency;
	uint64_t connect_rate;		/* connects per second; 0: as fast as concurrency allows */
	uint64_t connect_retries;
	bool phased;			/* a barrier between the stages of connecting */
	bool tls_resume;
	int workload;			/* index in LOADGEN_WORKLOADS */
	uint64_t active;		/* clients that send; 0: all */
	uint64_t churn_per_s;		/* clients that leave and come back per second; 0: none */
	uint64_t cycles;		/* measure until so many clients came back; 0: for duration_ns */
	uint64_t reconnect_ns;		/* clients that were lost try to come back for so long; 0: they do not */
	uint64_t threads;
	uint64_t repeat;
	uint64_t seed;
	uint64_t timeout_ns;		/* of a connection stage */
	uint64_t step_timeout_ns;	/* of connecting all clients of a step; 0: derived */
	const char *output;
	const char *name;
	const char *json;
	const char *compare;		/* KEY=A,B; NULL: none */
	const char *trace;		/* file for raw times; NULL: none */
	uint64_t trace_max;		/* records of a step and worker */
	int poll;
	uint64_t spin_ns;
	int log_level;
	int report;			/* 1: made at the end */
	bool quiet, verify;
	bool message_auth;		/* messages carry tags */
	struct tuning tuning;

	/* derived by loadgen_config_check */
	uint32_t n_rails;		/* 1 and more */
	struct rail_names servers, devices;	/* none, or n_rails each */
	struct slo slo;
	char ca_path[PATH_MAX];
	char name_text[96];

	/* derived by workloads_apply, and the defaults of sizes, inflight and chunk_bytes */
	const struct workload *wl;
	uint64_t message_bytes;		/* largest of sizes */
	struct mix mix;
};

extern const struct opts_spec loadgen_options;

static inline bool loadgen_is_open_loop(const struct loadgen_config *c)
{
	return c->rate || c->rate_per_client;
}

void loadgen_config_defaults(struct loadgen_config *c);

/* Checks options against each other and fills in what follows from them, but for what depends on the workload
 * (workloads_apply). 0, or -EINVAL with a line in `err`. */
int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
