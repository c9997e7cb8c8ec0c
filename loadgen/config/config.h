/* SPDX-License-Identifier: BSD-2-Clause */
/* performance_test's options. Read-only once the workers run. */
#ifndef RAMPART_LOADGEN_CONFIG_H
#define RAMPART_LOADGEN_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/wire/transport.h"
#include "common/base/opts.h"
#include "common/base/rails.h"
#include "common/rdma/tuning.h"
#include "common/sock/sock.h"
#include "loadgen/config/slo.h"
#include "loadgen/config/targets.h"

#define LOADGEN_CLIENTS_MAX 1000000
#define LOADGEN_INFLIGHT_MAX 128

struct workload;
struct sut_keep;
struct team;

/* The values of --workload. Each has a file in loadgen/workloads/. */
#define LOADGEN_WORKLOADS(X) \
	X(echo) X(pingpong) X(small) X(large) X(duplex) X(write) X(read) X(atomic) X(mixed) X(connect) X(idle)
extern const char *const loadgen_workload_names[];	/* in this order, NULL-terminated */

enum environment { ENVIRONMENT_AUTO, ENVIRONMENT_NATIVE, ENVIRONMENT_VM, ENVIRONMENT_NETNS };

/* Success criteria to judge: all; or with auto all but times, which emulated CPUs and software RDMA would distort. */
enum judge { JUDGE_AUTO, JUDGE_ALL };
extern const char *const loadgen_judge_names[];	/* in the order of the enum, NULL-terminated */

/* Spacing of operations in the open loop. */
enum arrival { ARRIVAL_EVEN, ARRIVAL_POISSON };
extern const char *const loadgen_arrival_names[];	/* in the order of the enum, NULL-terminated */

/* How --workload large moves its buffers. */
enum operation { OPERATION_WRITE, OPERATION_SEND, OPERATION_READ, OPERATION_WRITE_IMM };
extern const char *const loadgen_operation_names[];

/* Whether a run that has lost a load host stops or continues. */
enum host_loss { HOST_LOSS_STOP, HOST_LOSS_CONTINUE };

/* The ratio of the operations of --workload mixed. */
struct mix {
	uint64_t writes, reads, atomics;
};

struct loadgen_config {
	uint64_t clients;
	struct opt_list steps;		/* derived from clients when not given; for a search, its first step */
	const char *slo_text;		/* NULL: none */
	const char *price_text;		/* NULL: none */
	bool find_capacity;		/* search for the capacity, up to `clients` */
	const char *server;		/* the server's names on the rails, or value of --targets; NULL: our own */
	const char *targets_text;	/* value of --targets; NULL: none */
	int deal;			/* enum deal */
	uint64_t tls_port;
	const char *server_name;
	uint64_t server_threads;	/* 0: the server's default */
	const char *server_cpu_list;	/* for a server of our own; NULL: derived from tuning.cpu_list */
	const char *ca, *cert, *key, *crl;
	const char *device;		/* RDMA device of each rail; NULL: not given */
	int environment;		/* enum environment */
	uint64_t duration_ns, warmup_ns;
	uint64_t iterations;		/* measured operations per client and stream; 0: measure for duration_ns */
	uint64_t warmup_iterations;	/* operations before the measured ones */
	uint64_t sample_interval_ns;	/* samples of both machines' resources; 0: none */
	struct opt_list sizes;		/* bytes of an operation; the workload's default when not given */
	uint64_t inflight;		/* operations per client; the workload's default when not given */
	uint64_t total_inflight;	/* operations of all active clients together; 0: no limit but `inflight` */
	uint64_t coalesce;		/* most messages in one SEND */
	const char *rate_text;		/* value of --rate; NULL: none */
	bool find_rate;			/* search for the rate, within `rates` */
	uint64_t rate_per_client;	/* operations per second and client */
	int arrival;			/* enum arrival */
	uint64_t chunk_bytes;
	uint64_t stripe_min_bytes;	/* smallest part of an operation on a rail */
	int operation;			/* enum operation */
	const char *mix_text;
	uint64_t connect_concurrency;
	uint64_t connect_rate;		/* connects per second; 0: as fast as concurrency allows */
	uint64_t connect_retries;
	bool phased;			/* a barrier between the stages of connecting */
	bool tls_resume;
	const char *tcp_text;		/* --tcp; NULL: default */
	int transport;			/* enum transport, after loadgen_config_check */
	int connect;			/* enum connect_way */
	int workload;			/* index in LOADGEN_WORKLOADS */
	uint64_t active;		/* clients that send; 0: all */
	uint64_t churn_per_s;		/* clients that leave and come back per second; 0: none */
	uint64_t cycles;		/* measure until that many clients came back; 0: for duration_ns */
	uint64_t reconnect_ns;		/* how long a lost client tries to come back; 0: it does not */
	uint64_t threads;
	uint64_t hosts;			/* load hosts of the run */
	bool lead;			/* this host leads and starts the etcd */
	const char *join, *cluster;	/* URL of --join; of --cluster; NULL: not given */
	const char *token_file;		/* file with the token of the etcd; NULL: environment or URL */
	const char *etcd_ca, *etcd_cert, *etcd_key, *etcd_listen;
	uint64_t lease_ns;		/* a host that does not refresh its lease for so long is lost */
	uint64_t join_timeout_ns;
	uint64_t max_skew_ns;		/* largest difference between the hosts' starts of measuring */
	int on_host_loss;		/* enum host_loss */
	const char *allow_server;	/* servers that this host may load; NULL: any with a valid certificate */
	uint64_t qps;			/* queue pairs of each client on each rail */
	uint64_t repeat;
	int judge;			/* enum judge */
	uint64_t floor;			/* clients that connect one at a time before and after the steps */
	uint64_t seed;
	uint64_t max_steal_percent;	/* share of a machine's CPU time; a step that loses more is marked */
	uint64_t memory_floor_percent, cpu_floor_percent;	/* the ramp stops below this share; 0: never */
	uint64_t timeout_ns;		/* longest time for one stage of connecting */
	uint64_t step_timeout_ns;	/* longest time to connect all clients of a step; 0: derived */
	const char *output;
	const char *name;
	const char *metrics, *metrics_textfile;	/* NULL: none */
	struct addr metrics_addr;
	const char *json, *junit;
	struct opt_texts compare;	/* KEY=A,B each */
	struct opt_texts compare_sets;	/* NAME:KEY=A,KEY=B each */
	const char *suite;		/* file, name or "all"; NULL: none */
	const char *only;		/* entries of the suite to run, comma-separated; NULL: all */
	const char *trace;		/* file for raw times; NULL: none */
	uint64_t trace_max;		/* largest number of records per step and worker */
	int poll;
	uint64_t spin_ns;
	int log_level;
	int report;			/* 1: make the report at the end */
	bool quiet, verify, details;
	bool trace_each;		/* one of several runs: the name of the trace file has the run's name in it */
	bool allow_redirect;		/* follow a GRANT that names another host */
	const char *from;		/* plan: folder of an earlier run; NULL: none */
	bool plan;			/* `performance_test plan`: nothing is run */
	bool message_auth;		/* messages carry tags */
	struct tuning tuning;

	/* derived by loadgen_config_check */
	struct sock_config sock;	/* except pinned_max */
	bool fell_back;			/* --transport auto found no RDMA device and chose TCP */
	uint32_t n_rails;		/* at least 1 */
	struct rail_names servers, devices;	/* none or n_rails each; `servers` has the rails of the only server */
	struct targets targets;		/* n 0 or 1: one server, in `servers` or our own */
	bool threads_raised;		/* `threads` was raised to one per target */
	uint64_t threads_asked;		/* value of --threads if it is below one per target; otherwise 0 */
	struct slo slo;
	double cpu_hour_price;		/* value of --price; 0: none */
	char server_cpus[TUNING_CPUS_MAX * 5 + 1];	/* --cpu-list of a server of our own; "": none */
	struct opt_list rates;		/* operations per second of all clients, ascending, one per step; for a search,
					 * the lowest and the highest; none: closed loop, or rate_per_client */
	char ca_path[PATH_MAX];
	char name_text[96];
	struct sut_keep *keep;		/* server that outlives the run (server_under_test/sut.h); NULL: none */
	uint32_t vm_rails;		/* number of RDMA devices of a micro-VM; 0: one */

	/* set once the hosts are known (loadgen/run/meeting.h) */
	uint32_t rank;			/* this host's rank; 0: the leader or the only host */
	struct team *team;		/* the load hosts (loadgen/cluster/team.h); NULL: this is the only one */

	/* set by workloads_apply, like the defaults of sizes, inflight and chunk_bytes */
	const struct workload *wl;
	uint64_t message_bytes;		/* largest of sizes */
	struct mix mix;
};

extern const struct opts_spec loadgen_options;
/* The same options, for `performance_test plan`. */
extern const struct opts_spec loadgen_plan_options;

static inline bool loadgen_is_open_loop(const struct loadgen_config *c)
{
	return c->rates.n || c->rate_per_client;
}

/* Number of connections of each client: its queue pairs on all rails. */
static inline uint32_t loadgen_n_lanes(const struct loadgen_config *c)
{
	return c->n_rails * (uint32_t)c->qps;
}

/* Number of servers under load at once. */
static inline uint32_t loadgen_n_targets(const struct loadgen_config *c)
{
	return c->targets.n ? c->targets.n : 1;
}

/* True for a search, where the result of a step determines the next one. */
static inline bool loadgen_is_search(const struct loadgen_config *c)
{
	return c->find_capacity || c->find_rate;
}

/* True if the steps differ in their offered rate. */
static inline bool loadgen_is_swept(const struct loadgen_config *c)
{
	return c->rates.n > 1;
}

void loadgen_config_defaults(struct loadgen_config *c);

static inline bool loadgen_has_hosts(const struct loadgen_config *c)
{
	return c->lead || c->join || c->cluster;
}

/* Checks options against each other and fills in derived settings, except those that depend on the workload
 * (workloads_apply). Returns 0, or -EINVAL with a line in `err`. */
int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
