/* What one step of the ramp measured. The ramp sets the fields, step.c adds up what workers counted, step_json.c writes
 * the JSON. */
#ifndef RAMPART_LOADGEN_STEP_H
#define RAMPART_LOADGEN_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/wire/fail.h"
#include "common/wire/fail_table.h"
#include "common/base/res.h"
#include "loadgen/config/config.h"
#include "loadgen/worker/worker.h"
#include "loadgen/traffic/workload.h"

struct hist;

/* The server's pools after the step, against what they were before the run's first client. */
enum step_pools {
	POOLS_UNKNOWN,			/* the server could not be asked, or its clients vanished without a word to it */
	POOLS_RESTORED,
	POOLS_NOT_RESTORED,		/* something was missing to the end */
};
extern const char *const step_pools_names[];	/* unknown, restored, not_restored */

#define STEP_INTERVALS_MAX 256
#define STEP_WORKERS_MAX 256	/* --threads, at most */

/* Both sides at one moment. */
struct step_moment {
	uint64_t now_ns;
	struct res_usage generator;
	struct res_machine_cpu machine;
	uint64_t worker_cpu_ns[STEP_WORKERS_MAX];
	uint64_t net_bytes;		/* generator: sent and received, TLS and RDMA payload */
	json_t *server;			/* statistics report; NULL until it arrived */
};

/* Replies of the active clients while measuring. */
struct step_fairness {
	uint64_t clients;
	double sum, squares;
	uint64_t min, max;
};

struct step {
	uint32_t target;
	uint64_t bytes;			/* of a message or other operation */
	uint32_t repetition;		/* from 1 */
	uint32_t attempted, connected_peak /* when connecting ended */, failed, dropped;
	uint32_t connected_held;	/* when traffic was stopped, and not lost since (step_collect) */
	int64_t server_connected;	/* by the server's own count once all were up; -1 unknown */
	uint64_t connect_wall_ns;	/* from the first start to the last connected */
	struct hist *stages[STAGE_TIMED], *total;	/* full and resumed handshakes together */
	struct hist *kind_stages[HANDSHAKE_N][STAGE_TIMED], *kind_total[HANDSHAKE_N];	/* and apart */
	struct hist *away_ns, *outage_ns, *response;
	struct hist *service, *lag;	/* with an open loop */
	uint64_t late;
	uint64_t phase_ns[STAGE_TIMED];	/* with --phased: wall time of each phase; 0: not reached */
	uint64_t retries;		/* attempts after the first */
	uint64_t rails_dropped;		/* by clients that went on with others */
	struct fail_table retried;	/* why */
	uint64_t cycles, cycles_failed;	/* with --churn, while measuring */
	uint64_t outages, repeated;	/* with --reconnect: lost connections, and operations that began again */
	struct step_fairness fairness;
	double measured_s;
	double messages_per_s, bytes_per_s;
	double stream_per_s[WORKLOAD_STREAMS_MAX];	/* operations of each stream */
	double sends_per_s;		/* SENDs that the messages came in */
	uint64_t checked, corrupt;	/* with --verify, by the generator */
	bool started;			/* the workers were told to connect */
	bool measured;			/* there was a measured phase */
	bool steady;
	bool generator_saturated;
	bool step_timeout;		/* connecting took too long */
	bool replies_missing;		/* replies were missing 15 s after the measured time */
	bool generator_failed;		/* the device failed under a worker */
	uint64_t clock_late_ns;		/* the latest beat of a thread of the generator (loadgen/worker/pulse.h), or begin
					 * of a worker's measuring */
	uint64_t reply_stall_ns;	/* the longest time in which a worker had operations in flight and none ended */
	bool server_ended;		/* a server of our own: its process */
	bool mark_lost;			/* the session that the server's stages were marked for: they are not the step's */
	enum step_pools pools;
	uint64_t psn_verified;
	struct step_moment begin, end;	/* of the measured phase */
	json_t *baseline;		/* server's report before the first client of the run */
	json_t *held;			/* and when all were connected, before the workload */
	json_t *after;			/* and after all had left */
	struct fail_table failures;
	struct { double t_s, messages_per_s, p99_ns; } intervals[STEP_INTERVALS_MAX];
	uint32_t n_intervals;
};

/* 0 or -ENOMEM. */
int step_new(uint32_t target, uint64_t bytes, uint32_t repetition, struct step **out) __attribute__((warn_unused_result));
void step_free(struct step *s);	/* NULL-safe */

/* Adds up what the workers published, at the end of the step. */
void step_collect(struct step *s, struct worker *const *workers, uint32_t n_workers,
		  const struct loadgen_config *cfg);
/* After that, for each worker whose device failed: its clients that were connected or on their way went with the device, and
 * nobody was left there to count them. `st` is what the worker published. */
void step_count_gone(struct step *s, const struct worker_stats *st);

/* The generator, or its machine, did not run for a while: the figures say nothing of the server. */
bool step_has_hole(const struct step *s);
/* For a while nobody got a reply: longer than STEP_STALL_NS, and than STEP_STALL_MEDIANS times the median response, since
 * large operations take long. Percentiles do not show it in a closed loop, where nothing is sent meanwhile. */
#define STEP_STALL_NS NS_PER_S
#define STEP_STALL_MEDIANS 10
bool step_is_stalled(const struct step *s);

/* Clients of the step that send. */
uint32_t step_active(const struct step *s, const struct loadgen_config *cfg);

/* 1 - X R / (clients that send x inflight): near 0 when the arithmetic is right and the clients are there. NAN
 * where that is not the population: without messages, or while clients come and go. */
double step_littles_residual(const struct step *s, const struct loadgen_config *cfg);

/* CPU of a side over the measured phase, in CPUs; NAN when unknown. */
double step_generator_cpus(const struct step *s);
double step_server_cpus(const struct step *s);
/* The same of the server's report at the measurement's end less that at its begin. */
double step_server_delta(const struct step *s, const char *path);
/* Memory of the server for each client held: resident, pinned, and of the machine's kernel since the run's
 * start; NAN when unknown. */
double step_rss_per_client(const struct step *s);
double step_pinned_per_client(const struct step *s);
double step_kernel_per_client(const struct step *s);
/* Jain's index, (sum x)^2 / (n sum x^2): 1 when all active clients got the same, 1/n when one got all. NAN
 * when there was nothing to share. R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984. */
double step_jain(const struct step *s);

/* Length of the measured phase; NAN when there was none. */
double step_window_s(const struct step *s);
/* False for a moment at which the process's resources could not be read. */
bool step_has_usage(const struct step_moment *m);
/* end - begin in seconds; NAN if not `known`. */
double step_span_s(bool known, uint64_t begin_ns, uint64_t end_ns);

/* step_json.c: an element of run.json's steps. NULL when out of memory. */
json_t *step_json(const struct step *s, const struct loadgen_config *cfg,
		  struct worker *const *workers, uint32_t n_workers);

#endif
