/* What one step of the ramp measured. Filled by ramp.c, turned into JSON here, judged in verdict.c. */
#ifndef RAMPART_LOADGEN_STEP_H
#define RAMPART_LOADGEN_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/fail.h"
#include "common/fail_table.h"
#include "common/res.h"
#include "loadgen/config.h"

struct hist;
struct worker;

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

struct step {
	uint32_t target;
	uint32_t repetition;		/* from 1 */
	uint32_t attempted, connected_peak /* when connecting ended */, connected_held, failed, dropped;
	int64_t server_connected;	/* by the server's own count once all were up; -1 unknown */
	uint64_t connect_wall_ns;	/* from the first start to the last connected */
	struct hist *stages[STAGE_TIMED], *total, *response;
	double measured_s;
	double messages_per_s, bytes_per_s;
	bool started;			/* the workers were told to connect */
	bool measured;			/* there was a measured phase */
	bool steady;
	bool generator_saturated;
	bool step_timeout;		/* connecting took too long */
	bool stuck;			/* replies were missing at the end */
	bool leaked;			/* pools did not come back to their start values */
	uint64_t psn_verified;
	struct step_moment begin, end;	/* of the measured phase */
	json_t *after;			/* server's report after all had left */
	struct fail_table failures;
	struct { double t_s, messages_per_s, p99_ns; } intervals[STEP_INTERVALS_MAX];
	uint32_t n_intervals;
};

/* 0 or -ENOMEM. */
int step_new(uint32_t target, uint32_t repetition, struct step **out) __attribute__((warn_unused_result));
void step_free(struct step *s);	/* NULL-safe */

/* Adds up what the workers published, at the end of the step. */
void step_collect(struct step *s, struct worker *const *workers, uint32_t n_workers,
		  const struct loadgen_config *cfg);

/* 1 - X R / (clients x inflight): near 0 when the arithmetic is right and the clients are there. */
double step_littles_residual(const struct step *s, const struct loadgen_config *cfg);

/* CPU of a side over the measured phase, in CPUs; NAN when unknown. */
double step_generator_cpus(const struct step *s);
double step_server_cpus(const struct step *s);
/* Value of a dotted path in a server report, such as "resources.rss_bytes"; NAN if not there. */
double step_report_number(const json_t *report, const char *path);

/* An element of run.json's steps. NULL when out of memory. */
json_t *step_json(const struct step *s, const struct loadgen_config *cfg,
		  struct worker *const *workers, uint32_t n_workers);

#endif
