/* SPDX-License-Identifier: BSD-2-Clause */
/* What one step of the ramp measured. The ramp sets the fields, step.c adds up what workers counted, step_json.c writes
 * the JSON. */
#ifndef RAMPART_LOADGEN_STEP_H
#define RAMPART_LOADGEN_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/wire/fail.h"
#include "common/wire/fail_table.h"
#include "common/host/res.h"
#include "loadgen/config/config.h"
#include "loadgen/step/series.h"
#include "loadgen/worker/worker.h"
#include "loadgen/traffic/workload.h"

struct hist;

/* What a machine had less left of than a floor of the run allows (loadgen/judge/floors.h). */
enum step_floor { FLOOR_NONE, FLOOR_MEMORY, FLOOR_CPU };

/* The server's pools after the step, against what they were before the run's first client. */
enum step_pools {
	POOLS_UNKNOWN,			/* the server could not be asked, or its clients vanished without a word to it */
	POOLS_RESTORED,
	POOLS_NOT_RESTORED,		/* something was missing to the end */
};
extern const char *const step_pools_names[];	/* unknown, restored, not_restored */

#define STEP_INTERVALS_MAX 256
#define STEP_WORKERS_MAX 256	/* --threads, at most */
#define STEP_HOSTS_MAX 4096	/* load hosts of a run, at most */

/* Both sides at one moment. */
struct step_moment {
	uint64_t now_ns;
	struct res_usage generator;
	struct res_machine_cpu machine;
	uint64_t worker_cpu_ns[STEP_WORKERS_MAX];
	struct ep_work work;		/* of the workers */
	uint64_t payload_bytes;		/* generator: sent and received, TLS and RDMA payload */
	uint64_t one_sided_bytes;	/* of these, the payload of READs, WRITEs and atomics */
	json_t *network;		/* generator: what the ports of its devices have counted (common/port/port.h) */
	json_t *server;			/* statistics report; NULL until it arrived */
};

/* A server's reports in a step. Of several servers, those of struct step are the sums (report_sum.h). */
enum step_report {
	STEP_REPORT_NONE,
	STEP_REPORT_BASELINE,		/* before the first client of the run */
	STEP_REPORT_MARKED,		/* when the step began (MARK), before its first client */
	STEP_REPORT_HELD,		/* when all were connected, before the workload */
	STEP_REPORT_BEGIN,		/* when measuring began */
	STEP_REPORT_END,		/* and ended */
	STEP_REPORT_AFTER,		/* after all had left */
	STEP_REPORT_N,
};

/* What one of several servers had in the step: sums over the workers that served it, and its own reports. Where several
 * hosts load the servers, numbers and histograms of each server add (step_pack.h); peak, pools and reports are those of
 * the leader, which alone asks. */
struct step_target {
	uint32_t clients;		/* that it was dealt */
	uint32_t attempted, connected_peak, connected_held, failed, dropped;
	double messages_per_s;
	struct hist *total, *response;
	enum step_pools pools;
	struct series_peak peak;	/* of the server */
	json_t *reports[STEP_REPORT_N];	/* NULL: it did not come */
};

/* Replies of the active clients while measuring. */
struct step_fairness {
	uint64_t clients;
	double sum, squares;
	uint64_t min, max;
};

/* Of a step that several hosts made together (step_pack.h). */
struct step_hosts {
	uint32_t n;			/* hosts that were added; 0: the step is one host's */
	uint64_t clients;		/* that they were to connect: without those of a host that was lost */
	uint8_t saturated[STEP_HOSTS_MAX / 8];	/* a bit for each rank: its generator was saturated */
	bool unsteady;			/* on one of them at least, by its own figures */
	bool usage_unknown;		/* one of them could not read what it used */
	bool has_intervals;
	json_t *network, *connecting;	/* the generator's sides of `network`; NULL: no host was added */
	bool host_lost;			/* it went on without a host that was lost. The caller's to set, as the next two */
	uint64_t start_skew_ns;		/* from the first host's begin of measuring to the last one's */
	uint64_t max_skew_ns;		/* --max-skew; 0: the skew is not known */
};

struct step {
	uint32_t target;
	uint64_t bytes;			/* of a message or other operation */
	uint32_t repetition;		/* from 1 */
	uint32_t of_all;		/* the step's clients on all hosts; 0: those of this one. Set after step_new */
	uint32_t cpus;			/* that this process may run on; 0: not known. Set after step_new */
	uint32_t senders, senders_of_all;	/* clients that were to send (--active), here and on all hosts; all, unless set after step_new */
	uint64_t rate;			/* operations a second that the clients of all hosts were to begin; 0: no --rate. Set after step_new */
	double offered_per_s;		/* the same of the clients here, or --rate-per-client of all that send; 0: closed loop */
#define STEP_U32_COUNTER uint32_t
#define STEP_U64_COUNTER uint64_t
#define X(type, name, rule, path) type##_COUNTER name;
	STEP_COUNTERS(X)
#undef X
	uint32_t connected_peak;	/* when connecting ended */
	uint32_t connected_held;	/* when traffic was stopped, and not lost since (step_collect) */
	int64_t server_connected;	/* by the server's own count once all were up; -1 unknown */
	uint64_t connect_wall_ns;	/* from the first start to the last connected */
	uint64_t span_ns;		/* from the first start until all were told to leave; 0: not known */
	struct hist *stages[STAGE_TIMED], *total;	/* full and resumed handshakes together */
	struct hist *psn_generate;	/* a part of the stage psn_exchange */
	struct hist *kind_stages[HANDSHAKE_N][STAGE_TIMED], *kind_total[HANDSHAKE_N];	/* and apart */
	struct hist *away_ns, *outage_ns, *response;
	struct hist *service, *lag;	/* with an open loop */
	uint64_t phase_ns[STAGE_TIMED];	/* with --phased: wall time of each phase; 0: not reached */
	struct fail_table retried;	/* why attempts were repeated */
	struct step_fairness fairness, stream_fairness[WORKLOAD_STREAMS_MAX];
	double measured_s;
	double messages_per_s, bytes_per_s;
	/* Of the operations in flight when measuring began, and when it ended: the time that they had been, over the measured
	 * time. messages_per_s x response has the first too much, and the second is missing from it. */
	double carried_in, carried_out;
	double kind_per_s[WORKLOAD_KINDS_MAX];	/* operations of each kind */
	struct hist *kind_response[WORKLOAD_KINDS_MAX];
	double stream_took_ns[WORKLOAD_STREAMS_MAX], stream_waited_ns[WORKLOAD_STREAMS_MAX];	/* struct worker_stream */
	double sends_per_s;		/* SENDs that the messages came in */
	bool loopback;			/* server and generator are on one machine */
	bool started;			/* the workers were told to connect */
	bool measured;			/* there was a measured phase */
	bool steady;
	bool generator_saturated;
	bool step_timeout;		/* connecting took too long */
	bool replies_missing;		/* replies were missing 15 s after the measured time */
	bool generator_failed;		/* the device failed under a worker */
	enum step_floor floor;		/* it was cut short, because a machine had less left than a floor */
	bool floor_of_server;		/* that was the server's machine, not the generator's */
	bool server_ended;		/* a server of our own: its process */
	bool mark_lost;			/* the session that the server's stages were marked for: they are not the step's */
	enum step_pools pools;
	struct { uint32_t tried, connected; } follow_up;	/* clients that connected one at a time after the step; 0: none did */
	uint64_t messages_all;		/* operations that ended in the whole step, and clients' first messages that were answered */
	uint64_t qps, cqs, mrs, pinned_bytes;	/* of the workers */
	struct step_hosts hosts;
	struct step_moment begin, end;	/* of the measured phase */
	struct series_peak peak[SIDE_N];	/* from the step's begin to its end */
	json_t *marked;			/* server's report when the step began (MARK), before its first client */
	json_t *network_marked, *network_connected;	/* generator: the ports' counters when connecting began and ended */
	json_t *baseline;		/* server's report before the first client of the run */
	json_t *held;			/* and when all were connected, before the workload */
	json_t *after;			/* and after all had left */
	struct fail_table failures;
	struct step_target *targets;	/* step_make_targets: of each server, where there are several; else NULL */
	uint32_t n_targets;		/* 0: there is one server */
	struct { double t_s, messages_per_s, p99_ns; } intervals[STEP_INTERVALS_MAX];
	uint32_t n_intervals;
};

/* 0 or -ENOMEM. */
int step_new(uint32_t target, uint64_t bytes, uint32_t repetition, struct step **out) __attribute__((warn_unused_result));
void step_free(struct step *s);	/* NULL-safe */
/* The step has several servers, each with so many of its clients. 0 or -ENOMEM; to be freed in either case. */
int step_make_targets(struct step *s, uint32_t n, const uint32_t *clients) __attribute__((warn_unused_result));
/* Keeps a report of a server, a new reference; `target` counts where there are several. */
void step_keep_report(struct step *s, uint32_t target, enum step_report which, json_t *report);

/* Adds up what the workers published, at the end of the step. Of several servers, the i-th worker served that of number
 * i % n_targets. */
void step_collect(struct step *s, struct worker *const *workers, uint32_t n_workers,
		  const struct loadgen_config *cfg);
/* After that, for each worker whose device failed: its clients that were connected or on their way went with the device, and
 * nobody was left there to count them. `st` is what the worker of this index published. */
void step_count_gone(struct step *s, uint32_t worker, const struct worker_stats *st);

/* A step is steady if a straight line through its intervals rises or falls by no more than this over
 * the measured time. p99 of an interval rests on few samples, so it may move more. */
#define STEP_STEADY_THROUGHPUT 0.10
#define STEP_STEADY_P99 0.50
#define STEP_STEADY_INTERVALS 5
/* Relative change over the whole range of a straight line through the intervals, of throughput or of their p99. NAN with
 * fewer than STEP_STEADY_INTERVALS that have it. */
double step_drift(const struct step *s, bool p99);
/* Little's law is violated by a residual beyond this. */
#define STEP_LITTLE_RESIDUAL 0.05

/* All clients were held and served, and none failed. */
bool step_is_stable(const struct step *s);

/* The generator, or its machine, did not run for a while: the figures say nothing of the server. */
bool step_has_hole(const struct step *s);
/* For a while nobody got a reply: longer than STEP_STALL_NS, and than STEP_STALL_MEDIANS times the median response, since
 * large operations take long. Percentiles do not show it in a closed loop, where nothing is sent meanwhile. */
#define STEP_STALL_NS NS_PER_S
#define STEP_STALL_MEDIANS 10
bool step_is_stalled(const struct step *s);

/* Clients of the step that send. */
uint32_t step_active(const struct step *s, const struct loadgen_config *cfg);

/* With --iterations: fewer operations were measured than clients that send were to make. */
bool step_lacks_iterations(const struct step *s, const struct loadgen_config *cfg);

/* In the open loop: fewer operations ended than were due, by more than 5 %. Server or generator did not keep up. */
bool step_is_behind(const struct step *s);

/* 1 - X R / (clients that send x inflight): near 0 when the arithmetic is right and the clients are there. NAN
 * where that is not the population: without messages, while clients come and go, or as they end their iterations. */
double step_littles_residual(const struct step *s, const struct loadgen_config *cfg);

/* What the server counted of `messages_all`: from MARK until all clients had left. NAN: not known. */
double step_server_messages(const struct step *s);

/* CPU of a side over the measured phase, in CPUs; NAN when unknown. */
double step_generator_cpus(const struct step *s);
double step_server_cpus(const struct step *s);
/* CPU time of a side's process, and its context switches of both kinds, for each operation that ended in the measured phase;
 * NAN when unknown, or without operations. */
double step_cpu_per_op_ns(const struct step *s, enum series_side side);
double step_switches_per_op(const struct step *s, enum series_side side);
/* Context switches of the process in the measured phase: because a thread waited, or because another one's turn had come. */
double step_switches(const struct step *s, enum series_side side, bool voluntary);
/* The number at `path` of the server's report at the measurement's end, less that at its begin. */
double step_server_delta(const struct step *s, const char *path);
/* Memory of the server for each client held: resident, pinned, and of the machine's kernel since the run's
 * start; NAN when unknown. */
double step_rss_per_client(const struct step *s);
double step_pinned_per_client(const struct step *s);
double step_kernel_per_client(const struct step *s);
/* Jain's index, (sum x)^2 / (n sum x^2): 1 when all active clients got the same, 1/n when one got all. NAN
 * when there was nothing to share. R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984. */
double step_jain(const struct step_fairness *f);
/* Of the time of a stream's operations, the share in which an earlier one of the same client had not ended; NAN without
 * operations. */
double step_head_of_line(const struct step *s, unsigned stream);

/* Length of the measured phase; NAN when there was none. */
double step_window_s(const struct step *s);
/* False for a moment at which the process's resources could not be read. */
bool step_has_usage(const struct step_moment *m);
/* end - begin in seconds; NAN if not `known`. */
double step_span_s(bool known, uint64_t begin_ns, uint64_t end_ns);

/* step_effective.c: {server, generator}, each {requests, doorbells, requests_per_doorbell, signalled_ratio, polls,
 * empty_polls, completions, completions_per_poll} of the measured time and threads: as effective_thread_json of each, the
 * server's as it reported them last. A figure that is not known is null, and so is a server that reports none. */
json_t *step_effective_json(const struct step *s, struct worker *const *workers, uint32_t n_workers);

/* step_targets.c: `servers` of the step in run.json, an element for each of several servers. NULL when out of memory. */
json_t *step_targets_json(const struct step *s, const struct loadgen_config *cfg);
/* What a server's process used between two reports, or had in the second; what is not known is null. */
json_t *step_server_resources(const json_t *begin, const json_t *end);
/* In words: the server that held the smallest share of its clients; the one whose clients took longest to connect, by
 * their median. "" with one server, or where none is worse than the others. */
const char *step_fewest_text(const struct step *s, const struct loadgen_config *cfg, char *text, size_t size);
const char *step_slowest_text(const struct step *s, const struct loadgen_config *cfg, char *text, size_t size);

/* step_json.c: an element of run.json's steps. NULL when out of memory. */
json_t *step_json(const struct step *s, const struct loadgen_config *cfg,
		  struct worker *const *workers, uint32_t n_workers);

#endif
