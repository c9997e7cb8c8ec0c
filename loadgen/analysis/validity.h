/* SPDX-License-Identifier: BSD-2-Clause */
/* The validity flags of a step: when it has them, what run.json, the terminal and the report call them, and what they
 * mean. */
#ifndef RAMPART_LOADGEN_ANALYSIS_VALIDITY_H
#define RAMPART_LOADGEN_ANALYSIS_VALIDITY_H

/* X(name, condition, badge, meaning), in the order in which run.json lists them. `condition` is true of a step `s` of a
 * run with the settings `cfg` that has the flag; only step_json.c evaluates it. `badge` is for the report; NULL: none,
 * because the heading says it. `meaning` is a clause, without a full stop. A comment below a row adds to the meaning in
 * docs/results.md, whose table is made of these rows (scripts/check-options). */
#define VALIDITY_ROWS(X) \
	X(not_steady, s->measured && !s->steady && !s->too_short, "not steady", \
	  "throughput or latency was still changing while it was measured; a longer --duration or --warmup helps") \
	/* See "Steady state". */ \
	X(too_short, s->too_short, "too short", \
	  "measured for too short a time, or too noisy, to tell whether it was steady; a longer --duration helps") \
	/* The step has fewer than 10 intervals, or too few operations for their noise: see "Steady state". */ \
	X(generator_saturated, s->generator_saturated, "generator near saturation", \
	  "the load generator was at its own limit; the server can do at least what is shown") \
	/* A worker thread used more than 95 % of a CPU, or all of them together 95 % of the CPUs that the process may \
	 * use (taskset, quota, small machine). Not judged with `--poll busy` or `adaptive`, whose threads spin. */ \
	X(step_timeout, s->step_timeout, "connecting timed out", "connecting took longer than --step-timeout") \
	X(memory_floor, s->floor == FLOOR_MEMORY, "cut short", "a machine had less memory left than --memory-floor") \
	/* See "Stop reasons". */ \
	X(cpu_floor, s->floor == FLOOR_CPU, "cut short", "a machine had less idle CPU than --cpu-floor") \
	/* See "Stop reasons". */ \
	X(cpu_throttled, step_is_throttled(s, SIDE_SERVER) || step_is_throttled(s, SIDE_GENERATOR), "CPU throttled", \
	  "a control group used up its CPU quota: raise it (cpu.max, a pod's CPU limit), or use fewer --threads") \
	/* The group's threads were stopped for more than 1 % of the measured time, added up over CPUs, so figures \
	 * are those of the quota: `cgroup_throttled_s` of `resources` says which side. */ \
	X(cpu_stolen, step_is_stolen(s, SIDE_SERVER) || step_is_stolen(s, SIDE_GENERATOR), "CPU stolen", \
	  "a hypervisor gave CPU time of a machine to others: repeat it, or use a machine with CPUs of its own") \
	/* The machine lost more than `--max-steal` of its CPU time in the measured time, plus a tick of 10 ms, as on \
	 * burstable instances: `machine_steal_ratio` of `resources` says which side. */ \
	X(replies_missing, s->replies_missing, "replies missing", \
	  "replies were missing 15 s after the measured time") \
	/* Clients that had left and did not come back count, too. */ \
	X(clock_hole, step_has_hole(s), "the generator stood still", \
	  "the generator or its machine did not run for a while, so the figures say nothing of the server") \
	/* A thread did not run for more than 1 s: see "Time that is missing". */ \
	X(replies_stalled, step_is_stalled(s), "replies stalled", \
	  "for a while nobody got a reply, which percentiles do not show") \
	/* No reply came for more than 1 s: see "Time that is missing". */ \
	X(server_pools_not_restored, s->pools == POOLS_NOT_RESTORED, "server kept resources", \
	  "after the step the server did not release all that it had taken") \
	/* A pool did not come back in time: see "checking pools". */ \
	X(server_pools_unknown, s->pools == POOLS_UNKNOWN, "server's pools unknown", \
	  "the server could not be asked whether it released all that it had taken") \
	/* See `server_pools`. */ \
	X(not_measured, !s->measured, "not measured", "the step did not reach its measured time") \
	X(littles_law_violated, fabs(step_littles_residual(s, cfg)) > STEP_LITTLE_RESIDUAL, "Little's law violated", \
	  "throughput, round trips and clients contradict each other") \
	/* The residual is beyond 0.05. */ \
	X(clients_come_and_go, cfg->churn_per_s > 0, "clients come and go", \
	  "at any time some clients were away (--churn)") \
	X(outages, s->outages > 0, "connections lost", \
	  "connections were lost, and clients came back or tried to (--reconnect)") \
	X(server_counts_differ, loadgen_n_lanes(cfg) < 2 && s->server_connected >= 0 && \
	  s->server_connected != (int64_t)s->connected_peak, "counts differ", \
	  "server and generator counted different numbers of clients") \
	/* The generator's number is `connected_peak`. Not judged with several rails or --qps, because then the \
	 * server counts connections. */ \
	X(behind_schedule, step_is_behind(s), "behind schedule", \
	  "fewer operations ended than were due, by more than 5 %") \
	/* In an open loop only; the operations of the measured time count. */ \
	X(iterations_missing, step_lacks_iterations(s, cfg), "iterations missing", \
	  "clients made fewer operations than --iterations") \
	/* Only clients that were held count. */ \
	X(rails_dropped, s->rails_dropped > 0, "rails dropped", \
	  "clients went on without some of their rails or queue pairs") \
	/* Connections on these rails could not be made or broke. */ \
	X(skew, s->hosts.max_skew_ns && s->hosts.start_skew_ns > s->hosts.max_skew_ns, "hosts began apart", \
	  "the load hosts began to measure further apart than --max-skew") \
	X(host_lost_continued, s->hosts.host_lost, "host lost", "the run went on without a load host that was lost") \
	/* Only with `--on-host-loss continue`. */ \
	X(server_and_generator_share_the_machine, !cfg->server, NULL, \
	  "performance_test started the server, so both share the machine")

enum validity {
#define X(name, condition, badge, meaning) VALIDITY_##name,
	VALIDITY_ROWS(X)
#undef X
	VALIDITY_FLAGS
};

struct validity_flag {
	const char *name, *badge, *meaning;
};

extern const struct validity_flag validity_flags[VALIDITY_FLAGS];

#endif
