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

struct workload;
struct sut_keep;
struct team;

/* The values of --workload. loadgen/workloads/ has a file for each. */
#define LOADGEN_WORKLOADS(X) \
	X(echo) X(pingpong) X(small) X(large) X(duplex) X(write) X(read) X(atomic) X(mixed) X(connect) X(idle)
extern const char *const loadgen_workload_names[];	/* in this order, NULL-terminated */

enum environment { ENVIRONMENT_AUTO, ENVIRONMENT_NATIVE, ENVIRONMENT_VM };

/* Which success criteria are judged: all but those of time where time is not hardware's, or all. */
enum judge { JUDGE_AUTO, JUDGE_ALL };
extern const char *const loadgen_judge_names[];	/* in the order of the enum, NULL-terminated */

/* How operations of the open loop are spaced. */
enum arrival { ARRIVAL_EVEN, ARRIVAL_POISSON };
extern const char *const loadgen_arrival_names[];	/* in the order of the enum, NULL-terminated */

/* How --workload large moves its buffers. */
enum operation { OPERATION_WRITE, OPERATION_SEND, OPERATION_READ, OPERATION_WRITE_IMM };
extern const char *const loadgen_operation_names[];

/* What becomes of a run that loses one of its load hosts. */
enum host_loss { HOST_LOSS_STOP, HOST_LOSS_CONTINUE };

/* The ratio of the operations of --workload mixed. */
struct mix {
	uint64_t writes, reads, atomics;
};

struct loadgen_config {
	uint64_t clients;
	struct opt_list steps;		/* derived from clients when not given; a search: its first step */
	const char *slo_text;		/* NULL: none */
	bool find_capacity;		/* a search, with at most `clients` */
	const char *server;		/* one for each rail; or --targets; or NULL: our own */
	const char *targets_text;	/* of --targets; NULL: none */
	int deal;			/* enum deal */
	uint64_t tls_port;
	const char *server_name;
	uint64_t server_threads;	/* 0: the server's default */
	const char *server_cpu_list;	/* of a server of our own; NULL: what follows from tuning.cpu_list */
	const char *ca, *cert, *key, *crl;
	const char *device;		/* one for each rail, or NULL */
	int environment;		/* enum environment */
	uint64_t duration_ns, warmup_ns;
	uint64_t iterations;		/* operations of each client and stream that are measured; 0: for duration_ns */
	uint64_t warmup_iterations;	/* and those before them */
	uint64_t sample_interval_ns;	/* of both sides' resources; 0: none are taken */
	struct opt_list sizes;		/* of messages or other operations; the workload's default when not given */
	uint64_t inflight;		/* of each client; the workload's default when not given */
	uint64_t coalesce;		/* most messages that share a SEND */
	const char *rate_text;		/* of --rate; NULL: none */
	bool find_rate;			/* a search, within `rates` */
	uint64_t rate_per_client;	/* operations a second, of each client */
	int arrival;			/* enum arrival */
	uint64_t chunk_bytes;
	int operation;			/* enum operation */
	const char *mix_text;
	uint64_t connect_concurrency;
	uint64_t connect_rate;		/* connects per second; 0: as fast as concurrency allows */
	uint64_t connect_retries;
	bool phased;			/* a barrier between the stages of connecting */
	bool tls_resume;
	const char *tcp_text;		/* --tcp; NULL: default */
	int transport;			/* enum transport, once the options are checked */
	int workload;			/* index in LOADGEN_WORKLOADS */
	uint64_t active;		/* clients that send; 0: all */
	uint64_t churn_per_s;		/* clients that leave and come back per second; 0: none */
	uint64_t cycles;		/* measure until so many clients came back; 0: for duration_ns */
	uint64_t reconnect_ns;		/* clients that were lost try to come back for so long; 0: they do not */
	uint64_t threads;
	uint64_t hosts;			/* load hosts of the run */
	bool lead;			/* this one leads, with an etcd of its own */
	const char *join, *cluster;	/* etcd of the run to join; of the run that --hosts hosts make; NULL: not */
	const char *token_file;		/* has the token of the etcd; NULL: the environment or the URL has it */
	const char *etcd_ca, *etcd_cert, *etcd_key, *etcd_listen;
	uint64_t lease_ns;		/* a host that is not heard of for so long is lost */
	uint64_t join_timeout_ns;
	uint64_t max_skew_ns;		/* of the hosts' beginning to measure */
	int on_host_loss;		/* enum host_loss */
	const char *allow_server;	/* servers that this host may load; NULL: any that the CA proves */
	uint64_t repeat;
	int judge;			/* enum judge */
	uint64_t floor;			/* clients that connect one at a time before and after the steps */
	uint64_t seed;
	uint64_t memory_floor_percent, cpu_floor_percent;	/* a machine has less left: the ramp stops; 0: it does not */
	uint64_t timeout_ns;		/* of a connection stage */
	uint64_t step_timeout_ns;	/* of connecting all clients of a step; 0: derived */
	const char *output;
	const char *name;
	const char *json;
	struct opt_texts compare;	/* KEY=A,B each */
	struct opt_texts compare_sets;	/* NAME:KEY=A,KEY=B each */
	const char *suite;		/* a file, a name, or "all"; NULL: none */
	const char *trace;		/* file for raw times; NULL: none */
	uint64_t trace_max;		/* records of a step and worker */
	int poll;
	uint64_t spin_ns;
	int log_level;
	int report;			/* 1: made at the end */
	bool quiet, verify, details;
	bool allow_redirect;		/* this host follows a GRANT that names another host */
	bool plan;			/* nothing is run: `performance_test plan` */
	bool message_auth;		/* messages carry tags */
	struct tuning tuning;

	/* derived by loadgen_config_check */
	struct sock_config sock;	/* but for pinned_max */
	bool fell_back;			/* --transport auto found no RDMA device: it is TCP */
	uint32_t n_rails;		/* 1 and more */
	struct rail_names servers, devices;	/* none, or n_rails each; servers: of the only server */
	struct targets targets;		/* n 0 or 1: there is one server, of `servers` or our own */
	uint64_t threads_asked;		/* `threads` were raised from it, to one for each target; 0: they were not */
	struct slo slo;
	char server_cpus[TUNING_CPUS_MAX * 5 + 1];	/* --cpu-list of a server of our own; "": none */
	struct opt_list rates;		/* operations a second of all clients, rising: a step each; a search: the first and the
					 * most; none: closed loop, or rate_per_client */
	char ca_path[PATH_MAX];
	char name_text[96];
	struct sut_keep *keep;		/* a server that outlives the run (loadgen/server_under_test/sut.h); NULL: its own ends with it */
	uint32_t vm_rails;		/* RDMA devices of a micro-VM; 0: one */

	/* set once the hosts are known (loadgen/run/meeting.h) */
	uint32_t rank;			/* of this host; 0: the leader, or the only one */
	struct team *team;		/* the hosts (loadgen/cluster/team.h); NULL: this one alone */

	/* derived by workloads_apply, and the defaults of sizes, inflight and chunk_bytes */
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

/* Servers that are under load at once. */
static inline uint32_t loadgen_n_targets(const struct loadgen_config *c)
{
	return c->targets.n ? c->targets.n : 1;
}

/* The steps follow one another by what came of them. */
static inline bool loadgen_is_search(const struct loadgen_config *c)
{
	return c->find_capacity || c->find_rate;
}

/* The steps have different offered rates. */
static inline bool loadgen_is_swept(const struct loadgen_config *c)
{
	return c->rates.n > 1;
}

void loadgen_config_defaults(struct loadgen_config *c);

static inline bool loadgen_has_hosts(const struct loadgen_config *c)
{
	return c->lead || c->join || c->cluster;
}

/* Checks options against each other and fills in what follows from them, but for what depends on the workload
 * (workloads_apply). 0, or -EINVAL with a line in `err`. */
int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
	__attribute__((warn_unused_result));

#endif
