/* The run: one step after the other, each through its phases. Owning thread: main.
 *
 * A step: connect all clients, have the server count them, start the traffic, warm up, measure, stop,
 * wait for what is in flight, disconnect, and check that the server's pools are as they were.
 */
#ifndef RAMPART_LOADGEN_RAMP_H
#define RAMPART_LOADGEN_RAMP_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "client/control.h"
#include "loadgen/judge/capacity.h"
#include "loadgen/config/config.h"
#include "loadgen/ramp/results.h"
#include "loadgen/step/step.h"
#include "loadgen/judge/stop.h"

struct server_proc;
struct worker;

enum ramp_phase {
	RAMP_SERVER,		/* waits for our server to be ready; 60 s */
	RAMP_INFO,		/* waits for the server's description */
	RAMP_MARK,		/* waits until the server has started a new interval of its own; 60 s */
	RAMP_CONNECT,		/* waits until every client is connected or has failed; --step-timeout */
	RAMP_COUNT,		/* waits for the server's count of clients */
	RAMP_START,		/* waits until every client has sent */
	RAMP_WARMUP,		/* waits for --warmup */
	RAMP_MEASURE,		/* waits for --duration, or for --cycles */
	RAMP_DRAIN,		/* waits for what is in flight and who is away; 15 s, then those are given up */
	RAMP_DISCONNECT,	/* waits until all clients are gone; 120 s */
	RAMP_RESTORE,		/* waits until the server's pools are as at the start; 40 s */
	RAMP_STOP,		/* waits for our server's end; 20 s */
	RAMP_DONE,
	RAMP_N,
};
extern const char *const ramp_phase_names[RAMP_N];

struct ramp {
	const struct loadgen_config *cfg;
	struct results *results;
	struct ev_loop *loop;
	enum ramp_phase phase;
	ev_timer deadline, tick;
	ev_async progress;	/* a worker fulfilled an order */
	ev_signal interrupt, terminate;
	ev_prepare turn_end;

	struct server_proc *server;	/* NULL with --server */
	struct addr server_addrs[RAILS_MAX];	/* on each rail */
	const char *verify_name;	/* of our own server; NULL: --server-name, or the host's */
	bool server_lost;
	uint32_t restarts;		/* of our server, in a search */
	struct control *control;
	bool report_wanted[4];		/* by enum control_what: asked for, not yet sent */
	enum control_what asked;
	uint32_t phase_number;		/* counts up with every phase entered */
	uint32_t asked_in;		/* phase_number when the question under way was sent */
	enum ramp_phase asked_phase;
	bool report_arrived;		/* the one this phase waits for */
	json_t *info, *baseline;
	json_t *generator_dev;		/* the RDMA device the workers use */

	struct worker **workers;
	uint32_t n_workers;
	uint32_t step_index, size_index, repetition;	/* of the next step */
	uint32_t target;		/* and its clients */
	struct capacity capacity;	/* what the steps say of it */
	struct capacity_probe probe;	/* with --find-capacity: the running one */
	uint32_t knee_probes;		/* made for the knee */
	bool search_done;
	double step_begin_s;		/* since the results folder was made */
	struct step *step;		/* the running one */
	uint64_t step_start_ns, phase_start_ns;
	enum stage upto;		/* last stage connections may enter now */
	uint64_t barrier_ns;		/* when the running stage was allowed to begin */
	uint64_t last_cycles, last_cycle_ns;	/* progress of --cycles */
	struct hist *now, *before, *interval;	/* for the figures of an interval */
	uint64_t last_interval_ns, last_report_ns;
	uint64_t last_messages;
	uint64_t last_progress_ns, last_sample_ns;
	uint64_t run_start_ns;
	uint32_t traced_steps;		/* that are in the file of --trace */

	enum stop_reason stop_reason;
	char stop_detail[256];
	bool stopping;
	json_t *steps, *verdict;	/* of run.json */
	json_t *rows;			/* of the table: one object a step */
	char started_at[40];
};

/* Runs everything. Returns 0, or -errno with a line in `err` if it could not start. */
int ramp_run(struct ramp *r, char *err, size_t err_size) __attribute__((warn_unused_result));

/* progress.c: what happens now, for people; called at every tick. */
void progress_show(struct ramp *r);
/* progress.c: ends the line on a terminal, so that other text can follow. */
void progress_clear(const struct ramp *r);

#endif
