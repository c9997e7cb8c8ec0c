/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of one step. The ramp sets the fields, step.c adds up the workers' counters, step_json.c writes the JSON. */
#ifndef RAMPART_LOADGEN_STEP_H
#define RAMPART_LOADGEN_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/wire/fail.h"
#include "common/wire/fail_table.h"
#include "common/host/res.h"
#include "loadgen/config/config.h"
#include "loadgen/measurement/intervals.h"
#include "loadgen/measurement/series.h"
#include "loadgen/traffic/worker_stats.h"
#include "loadgen/traffic/workload.h"

struct hist;
struct worker;

/* The resource of which a machine had less left than a floor of the run allows (loadgen/verdict/resource_floors.h). */
enum step_floor { FLOOR_NONE, FLOOR_MEMORY, FLOOR_CPU };

/* The server's pools after the step, compared with their state before the run's first client. */
enum step_pools {
	POOLS_UNKNOWN,			/* the server could not be asked, or clients vanished without a disconnect */
	POOLS_RESTORED,
	POOLS_NOT_RESTORED,		/* some resource had still not been returned when the wait ended */
};
extern const char *const step_pools_names[];	/* unknown, restored, not_restored */

#define STEP_WORKERS_MAX 256	/* maximum of --threads */
#define STEP_HOSTS_MAX 4096	/* most load hosts that a step can hold; a run has fewer (CLUSTER_HOSTS_MAX) */

/* Counters of generator and server at one moment. */
struct step_moment {
	uint64_t now_ns;
	struct res_usage generator;
	struct res_machine_cpu machine;
	double throttled_s;		/* CGROUP_THROTTLED_S of the generator; NAN: no quota, or not known */
	uint64_t worker_cpu_ns[STEP_WORKERS_MAX];
	struct ep_work work;		/* sum over the workers */
	uint64_t payload_bytes;		/* generator: TLS and RDMA payload, sent and received */
	uint64_t one_sided_bytes;	/* the part of payload_bytes that READs, WRITEs and atomics moved */
	json_t *network;		/* generator: counters of its devices' ports (common/port/port.h) */
	json_t *server;			/* the server's statistics report; NULL until it arrives */
};

/* A server's reports in a step. With several servers, the reports in struct step are sums over them (report_sum.h). */
enum step_report {
	STEP_REPORT_NONE,
	STEP_REPORT_BASELINE,		/* before the first client of the run */
	STEP_REPORT_MARKED,		/* when the step began (MARK), before its first client */
	STEP_REPORT_HELD,		/* when all clients were connected, before the workload */
	STEP_REPORT_BEGIN,		/* when measuring began */
	STEP_REPORT_END,		/* when measuring ended */
	STEP_REPORT_AFTER,		/* after all clients had left */
	STEP_REPORT_N,
};

/* One of several servers in the step: sums over the workers whose clients use this server, and the server's own
 * reports. With several load hosts, the hosts' numbers and histograms for each server are added (step_pack.h); peak,
 * pools and reports come from the leader, because only the leader queries the servers. */
struct step_target {
	uint32_t clients;		/* clients assigned to this server */
	uint32_t attempted, connected_peak, connected_held, failed, dropped;
	double messages_per_s;
	struct hist *total, *response;
	enum step_pools pools;
	struct series_peak peak;	/* peak resource usage of the server */
	json_t *reports[STEP_REPORT_N];	/* NULL: the report did not arrive */
};

/* Distribution of the operations that each active client completed while measuring, or of the mean times of queue
 * pairs. */
struct step_fairness {
	uint64_t clients;		/* or queue pairs */
	double sum, squares;
	uint64_t min, max;
};

/* Facts about a step that several load hosts ran together (step_pack.h). */
struct step_hosts {
	uint32_t n;			/* hosts whose results were added; 0: the step ran on one host only */
	uint64_t clients;		/* clients those hosts were to connect; a lost host's clients are not counted */
	uint8_t saturated[STEP_HOSTS_MAX / 8];	/* one bit per rank: that host's generator was saturated */
	bool usage_unknown;		/* at least one host could not read its own resource usage */
	bool has_intervals;
	json_t *network, *connecting;	/* the generator's sides of `network`; NULL: no host was added */
	bool host_lost;			/* a host was lost; the caller sets this and the next two members */
	uint64_t start_skew_ns;		/* between the first and the last host's start of measuring */
	uint64_t max_skew_ns;		/* --max-skew; 0: the skew is not known */
};

/* The figures of a step that are added over the load hosts, apart from its counters, arrays and histograms:
 * step_fields.c hands them from host to host. X(type, name, rule): the type (STEP_U32, STEP_U64, STEP_REAL, STEP_FLAG,
 * STEP_FLOOR) and how values add up (STEP_ADD, STEP_MAX; of flags STEP_MAX is their OR). */
#define STEP_SUMS(X) \
	X(STEP_U32, target, STEP_ADD)		/* clients that are to connect */ \
	X(STEP_U32, senders, STEP_ADD)		/* clients that send (--active); `target` until the caller sets it */ \
	X(STEP_REAL, offered_per_s, STEP_ADD)	/* share of `rate`, or --rate-per-client x senders; 0: closed loop */ \
	X(STEP_U32, connected_peak, STEP_ADD)	/* clients connected when connecting ended */ \
	X(STEP_U32, connected_held, STEP_ADD)	/* when traffic stopped, less those lost afterwards (step_collect) */ \
	X(STEP_U64, connect_wall_ns, STEP_MAX)	/* from the first client's start until the last one was connected */ \
	X(STEP_U64, connect_cpu_ns, STEP_ADD)	/* CPU time of the generator's process in connect_wall_ns */ \
	X(STEP_U64, span_ns, STEP_MAX)		/* from the first client's start until all must leave; 0: not known */ \
	X(STEP_REAL, measured_s, STEP_MAX) \
	X(STEP_REAL, messages_per_s, STEP_ADD) \
	X(STEP_REAL, bytes_per_s, STEP_ADD) \
	X(STEP_REAL, sends_per_s, STEP_ADD)	/* SENDs that carried the messages */ \
	/* For Little's law, over the measured time: how long operations in flight at its start (in) and at its end \
	 * (out) had been in flight. Throughput x mean latency wrongly includes the first and lacks the second. */ \
	X(STEP_REAL, carried_in, STEP_ADD) \
	X(STEP_REAL, carried_out, STEP_ADD) \
	X(STEP_FLAG, loopback, STEP_MAX)	/* server and generator are on one machine */ \
	X(STEP_FLAG, started, STEP_MAX)		/* the workers were told to connect */ \
	X(STEP_FLAG, measured, STEP_MAX)	/* there was a measured phase */ \
	X(STEP_FLAG, generator_saturated, STEP_MAX) \
	X(STEP_FLAG, generator_stolen, STEP_MAX)	/* step_is_stolen of a host's generator */ \
	X(STEP_FLAG, generator_throttled, STEP_MAX)	/* step_is_throttled of a host's generator */ \
	X(STEP_FLAG, step_timeout, STEP_MAX)	/* connecting took too long */ \
	X(STEP_FLAG, replies_missing, STEP_MAX)	/* replies were missing 15 s after the measured time */ \
	X(STEP_FLAG, generator_failed, STEP_MAX)	/* a worker's device failed */ \
	X(STEP_FLOOR, floor, STEP_MAX)		/* the step was cut short because a machine fell below this floor */ \
	X(STEP_U64, messages_all, STEP_ADD)	/* operations that ended in the step, and answered first messages */ \
	X(STEP_U64, qps, STEP_ADD)		/* this one and the next three: sums over the workers */ \
	X(STEP_U64, cqs, STEP_ADD) \
	X(STEP_U64, mrs, STEP_ADD) \
	X(STEP_U64, pinned_bytes, STEP_ADD)

/* C types of figures and counters. */
#define STEP_U32_C uint32_t
#define STEP_U64_C uint64_t
#define STEP_REAL_C double
#define STEP_FLAG_C bool
#define STEP_FLOOR_C enum step_floor

struct step {
#define X(type, name, rule) type##_C name;
	STEP_SUMS(X)
#undef X
#define X(type, name, rule, path) type##_C name;
	STEP_COUNTERS(X)
#undef X
	uint64_t bytes;			/* size of a message or other operation */
	uint32_t repetition;		/* from 1 */
	/* The caller sets these up to `rate` after step_new. */
	uint32_t of_all;		/* the step's clients on all hosts; 0: this host has all of them */
	double cpus;			/* CPUs this process may use (place_cpus); 0: not known */
	double max_steal_ratio;		/* --max-steal */
	uint32_t senders_of_all;	/* as `senders`, on all hosts */
	uint64_t rate;			/* operations per second the clients of all hosts were to begin; 0: no --rate */
	int64_t server_connected;	/* the server's own count once all clients were connected; -1: unknown */
	union step_hists hists;
	struct hist *stages[STAGE_TIMED], *total;	/* full and resumed handshakes together */
	uint64_t phase_ns[STAGE_TIMED];	/* with --phased: wall time of each phase; 0: not reached */
	struct fail_table retried;	/* failures that led to another attempt */
	struct step_fairness fairness, stream_fairness[WORKLOAD_STREAMS_MAX];
	struct step_fairness qp_times;	/* with --qps: of the mean times of single queue pairs, in ns */
	double kind_per_s[WORKLOAD_KINDS_MAX];	/* operations per second of each kind */
	/* Sums over the workers of struct worker_stream. */
	double stream_took_ns[WORKLOAD_STREAMS_MAX], stream_waited_ns[WORKLOAD_STREAMS_MAX];
	bool idle;			/* the workload sends nothing while it is measured, so it is always steady */
	bool steady, too_short;		/* step_judge_steadiness; neither: not steady, or not measured */
	bool floor_of_server;		/* the server's machine fell below the floor, not the generator's */
	bool server_ended;		/* the server process that this run started has ended */
	bool mark_lost;			/* the MARK was lost with its control session: the server's stages and its
					 * CPU time of connecting are unusable */
	enum step_pools pools;
	struct { uint32_t tried, connected; } follow_up;	/* clients tried one by one after the step; 0: none */
	struct step_hosts hosts;
	struct step_moment begin, end;	/* of the measured phase */
	struct series_peak peak[SIDE_N];	/* from the step's begin to its end */
	json_t *marked;			/* server's report when the step began (MARK), before its first client */
	json_t *network_marked, *network_connected;	/* generator: the ports' counters when connecting began and
							 * ended */
	json_t *baseline;		/* server's report before the first client of the run */
	json_t *held;			/* server's report when all clients were connected, before the workload */
	json_t *after;			/* server's report after all clients had left */
	struct fail_table failures;
	struct step_target *targets;	/* step_make_targets: one for each of several servers; else NULL */
	uint32_t n_targets;		/* 0: there is one server */
	struct intervals intervals;	/* of the measured time */
};

/* 0 or -ENOMEM. */
int step_new(uint32_t target, uint64_t bytes, uint32_t repetition, struct step **out)
	__attribute__((warn_unused_result));
void step_free(struct step *s);	/* NULL-safe */
/* Prepares the step for `n` servers; server i gets `clients[i]` clients. 0 or -ENOMEM; step_free in either case. */
int step_make_targets(struct step *s, uint32_t n, const uint32_t *clients) __attribute__((warn_unused_result));
/* Keeps a reference of its own to a server's report. Does nothing where there is only one server. */
void step_keep_report(struct step *s, uint32_t target, enum step_report which, json_t *report);

/* Adds up the workers' counters at the end of the step. With several servers, worker i uses server i % n_targets. */
void step_collect(struct step *s, struct worker *const *workers, uint32_t n_workers,
		  const struct loadgen_config *cfg);
/* Add the histograms, or the fairness sums, of a worker or a host. */
void step_add_hists(struct step *s, const union step_hists *of);
void step_add_fairness(struct step_fairness *to, const struct step_fairness *of);
/* Call after step_collect for each worker whose device failed. Counts its clients that were connected or connecting as
 * dropped or failed, because the worker's thread ended with the device. `st` are the counters of that worker. */
void step_count_gone(struct step *s, uint32_t worker, const struct worker_stats *st);

/* Sets `steady` and `too_short` from the intervals. */
void step_judge_steadiness(struct step *s);
/* A residual (step_littles_residual) whose size exceeds this violates Little's law. */
#define STEP_LITTLE_RESIDUAL 0.05

/* True if all clients were held and served, and none failed. */
bool step_is_stable(const struct step *s);

/* True if the generator or its machine did not run for a while, so that the figures say nothing about the server. */
bool step_has_hole(const struct step *s);
/* True if a worker went without a reply for longer than STEP_STALL_NS and than STEP_STALL_MEDIANS times the median
 * response, since large operations take long. A closed loop sends nothing during a stall, so percentiles hide it. */
#define STEP_STALL_NS NS_PER_S
#define STEP_STALL_MEDIANS 10
bool step_is_stalled(const struct step *s);

/* step_disturbed.c: CPU time of a side's machine in the measured time, and what the side lost of it; NAN: not known. */
struct step_lost {
	double window_s;	/* the measured time */
	double machine_s;	/* CPU time of all the machine's CPUs, idle time included */
	double stolen_s;	/* the part that the hypervisor gave to other guests */
	double throttled_s;	/* how long the group's threads were stopped for its CPU quota, added up over CPUs */
};
/* CPU time that a server lost between two of its reports, and CPU time that the generator lost on this machine. */
struct step_lost step_lost_between(const json_t *begin, const json_t *end);
struct step_lost step_lost_here(const struct step *s);
/* Adds `machine_steal_ratio` and `cgroup_throttled_s` to a side's resources. */
void step_add_lost(json_t *resources, struct step_lost lost);
/* Stolen: a hypervisor took more than max_steal_ratio of a machine's CPU time plus one clock tick. Throttled: the
 * control group's threads were stopped for more than 1 % of the measured time. True if this holds for any load host
 * (SIDE_GENERATOR) or for any server (SIDE_SERVER). */
bool step_is_stolen(const struct step *s, enum series_side side);
bool step_is_throttled(const struct step *s, enum series_side side);
/* Records both results for this machine's generator in the step, so that step_pack sends them to the leader. */
void step_keep_lost(struct step *s);
/* True if any machine of the step lost CPU time. */
bool step_lacked_cpu(const struct step *s);
/* True if the step's figures may be due to something else than server and load: it has a hole, is stalled or lacked CPU
 * time. Such a step confirms no result. */
bool step_is_disturbed(const struct step *s);

/* Number of held clients that send. */
uint32_t step_active(const struct step *s, const struct loadgen_config *cfg);

/* With --iterations: true if fewer operations were measured than the sending clients were asked for. */
bool step_lacks_iterations(const struct step *s, const struct loadgen_config *cfg);

/* Open loop: true if fewer than 95 % of the operations that were due ended: server or generator did not keep up. */
bool step_is_behind(const struct step *s);

/* Little's law: 1 - X R / (sending clients x inflight), near 0 when the figures are consistent. NAN if the number in
 * flight is not constant: without messages, while clients come and go, or as they end their iterations. */
double step_littles_residual(const struct step *s, const struct loadgen_config *cfg);

/* Growth of the number at `path` in the server's report from MARK until all clients had left. For messages_in it is the
 * server's own count of `messages_all`. NAN: not known. */
double step_server_since_mark(const struct step *s, const char *path);

/* CPU time of a side's process divided by the measured time, in CPUs; NAN when unknown. */
double step_generator_cpus(const struct step *s);
double step_server_cpus(const struct step *s);
/* CPU time for each client of connected_peak, failed attempts included: of the generator's process in connect_wall_ns,
 * or of the server's between its answer to MARK and its last report before traffic starts. NAN when unknown, or without
 * clients. */
double step_connect_cpu_ns(const struct step *s, enum series_side side);
/* CPU time of a side's process, and its context switches of both kinds, per operation that ended in the measured phase;
 * NAN when unknown, or without operations. */
double step_cpu_per_op_ns(const struct step *s, enum series_side side);
double step_switches_per_op(const struct step *s, enum series_side side);
/* Context switches of the process while measuring: voluntary (a thread waited) or involuntary (it was preempted). */
double step_switches(const struct step *s, enum series_side side, bool voluntary);
/* Growth over the measured phase of the number at `path` in the server's report. */
double step_server_delta(const struct step *s, const char *path);
/* Memory of the server per client held: resident, pinned, and growth of the machine's kernel memory since the run's
 * start; NAN when unknown. */
double step_rss_per_client(const struct step *s);
double step_pinned_per_client(const struct step *s);
double step_kernel_per_client(const struct step *s);
/* Jain's index, (sum x)^2 / (n sum x^2): 1 when all active clients completed equally many operations, 1/n when one
 * client completed all of them. NAN without operations. R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984. */
double step_jain(const struct step_fairness *f);
/* Head-of-line blocking: the share of a stream's operation time during which an earlier operation of the same client
 * had not ended; NAN without operations. */
double step_head_of_line(const struct step *s, unsigned stream);

/* Length of the measured phase in s; NAN when there was none. */
double step_window_s(const struct step *s);
/* False for a moment at which the process's resources could not be read. */
bool step_has_usage(const struct step_moment *m);
/* end - begin in seconds; NAN if not `known`. */
double step_span_s(bool known, uint64_t begin_ns, uint64_t end_ns);

/* step_effective.c: {server, generator}, each with {requests, doorbells, requests_per_doorbell, signalled_ratio, polls,
 * empty_polls, completions, completions_per_poll} over the measured time, and `threads`: effective_thread_json of each
 * thread, for the server from its last report. Unknown figures are null, as is a server that reports none. */
json_t *step_effective_json(const struct step *s, struct worker *const *workers, uint32_t n_workers);

/* step_targets.c: `servers` of the step in run.json, with one element per server. NULL when out of memory. */
json_t *step_targets_json(const struct step *s, const struct loadgen_config *cfg);
/* A server process's CPU time between two reports, and the gauges of the second report. Unknown figures are null. */
json_t *step_server_resources(const json_t *begin, const json_t *end);
/* Text naming the server that held the smallest share of its clients, or whose median connection time is the longest.
 * "" with one server, or if all servers have the same figure. */
const char *step_fewest_text(const struct step *s, const struct loadgen_config *cfg, char *text, size_t size);
const char *step_slowest_text(const struct step *s, const struct loadgen_config *cfg, char *text, size_t size);

/* step_json.c: an element of run.json's steps. NULL when out of memory. */
json_t *step_json(const struct step *s, const struct loadgen_config *cfg,
		  struct worker *const *workers, uint32_t n_workers);

#endif
