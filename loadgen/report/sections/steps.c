/* SPDX-License-Identifier: BSD-2-Clause */
/* The figures of each step, as tables of medians, and caveats about them. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/validity.h"
#include "loadgen/report/sections/found.h"

#define MIB (1 / 1048576.0)
#define KIB (1 / 1024.0)

#define STEP_FIGURES \
	{ "held#", "connected_held", 1, 0 }, { "failed#", "failed+dropped", 1, 0 }, \
	{ "connect p50#ms", "connect_ns.total.p50", 1e-6, 2 }, { "connect p99#ms", "connect_ns.total.p99", 1e-6, 2 }, \
	{ "msgs/s#", "throughput_msgs_per_s", 1, 0 }, { "MB/s#", "throughput_bytes_per_s", 1e-6, 1 }, \
	{ "response p50#us", "response_ns.p50", 1e-3, 0 }, { "response p99#us", "response_ns.p99", 1e-3, 0 }, \
	{ "response p99.9#us", "response_ns.p99_9", 1e-3, 0 }, \
	{ "server CPU#%", PAGE_CPUS("resources.server"), 100, 0 }, \
	{ "generator CPU#%", PAGE_CPUS("resources.generator"), 100, 0 }

static const struct page_column step_figures[] = { STEP_FIGURES, { 0 } };

/* The columns of a sweep, whose steps differ in the rate, and if there are several sizes, in the size. */
static const struct page_column offered_figures[] = {
	{ "size#bytes", "message_bytes", 1, 0 }, { "clients#", "target_clients", 1, 0 },
	{ "offered#/s", "offered_per_s", 1, 0 },
	STEP_FIGURES, { "sent late p99#us", "schedule_lag_ns.p99", 1e-3, 0 }, { 0 }
};

static const struct {
	const char *name, *caption;
	struct page_column columns[14];
} tables[] = {
	{ "steps_more", "More of each step. A percentile takes samples: a p50 takes 5, a p95 59, a p99 299, a p99.9 "
			"2,995.", {
		{ "attempted#", "attempted", 1, 0 }, { "most connected#", "connected_peak", 1, 0 },
		{ "server counted#", "server_connected", 1, 0 }, { "connections timed#", "connect_ns.total.count", 1,
								   0 },
		{ "operations timed#", "response_ns.count", 1, 0 }, { "response min#us", "response_ns.min", 1e-3, 1 },
		{ "response mean#us", "response_ns.mean", 1e-3, 1 }, { "response p95#us", "response_ns.p95", 1e-3, 1 },
		{ "response max#us", "response_ns.max", 1e-3, 1 }, { "throughput#Gbit/s", "throughput_bytes_per_s",
								     8e-9, 3 },
		{ "SENDs#/s", "sends_per_s", 1, 0 }, { "messages in a SEND#", "throughput_msgs_per_s/sends_per_s", 1,
						       2 } } },
	{ "steadiness", "Steadiness: how throughput and p99 changed over the measured time, and the time in which a "
	  "thread of the generator did not run, or no reply came.", {
		{ "intervals#", "drift.intervals", 1, 0 }, { "throughput changed#%", "drift.throughput_ratio", 100, 1 },
		{ "throughput error#%", "drift.throughput_error_ratio", 100, 1 },
		{ "p99 changed#%", "drift.p99_ratio", 100, 1 }, { "p99 error#%", "drift.p99_error_ratio", 100, 1 },
		{ "generator late#s", "clock_late_ns", 1e-9, 2 },
		{ "replies stalled#s", "reply_stall_ns", 1e-9, 2 } } },
	{ "fairness", "Fairness: messages a second of single clients. Jain's index is 1 if all of them got the same.", {
		{ "active#", "fairness.clients", 1, 0 }, { "Jain's index#", "fairness.jain_index", 1, 4 },
		{ "slowest#1/s", "fairness.slowest_msgs_per_s", 1, 1 }, { "fastest#1/s", "fairness.fastest_msgs_per_s",
									  1, 1 } } },
	{ "client_memory", "Memory divided by the number of clients held. With few clients, most of the server's is "
			   "what it needs without any.", {
		{ "server resident#KiB", "memory.server_rss_bytes_per_client", KIB, 1 },
		{ "server pinned#KiB", "memory.server_pinned_bytes_per_client", KIB, 2 },
		{ "machine's kernel#KiB", "memory.machine_kernel_bytes_per_client", KIB, 1 },
		{ "server in all#MiB", "resources.server.rss_bytes", MIB, 1 } } },
	{ "churn", "Clients that left and came back (--churn), and the server's pool of queue pairs.", {
		{ "came back#", "churn.cycles", 1, 0 }, { "did not#", "churn.cycles_failed", 1, 0 },
		{ "came back#1/s", "churn.cycles_per_s", 1, 1 }, { "away p50#ms", "churn.away_ns.p50", 1e-6, 1 },
		{ "pool hit#%", "churn.qp_pool_hit_ratio", 100, 2 },
		{ "recycled after p50#s", "churn.qp_recycle_ns.p50", 1e-9, 2 } } },
	{ "outages", "Connections that were lost, and clients that came back (--reconnect).", {
		{ "lost#", "outages.lost", 1, 0 }, { "came back#", "outages.ended", 1, 0 },
		{ "without a connection p50#s", "outages.outage_ns.p50", 1e-9, 2 },
		{ "at most#s", "outages.outage_ns.max", 1e-9, 2 }, { "operations repeated#", "outages.repeated", 1,
								     0 } } },
	{ "rails", "Rails that operations are striped over.", {
		{ "used#", "rails.used", 1, 0 }, { "available#", "rails.available", 1, 0 },
		{ "dropped by clients that went on#", "rails.dropped", 1, 0 } } },
	{ "queue_pairs", "Mean time of an operation on each queue pair (--qps).", {
		{ "of a client#", "queue_pairs.per_client", 1, 0 }, { "measured#", "queue_pairs.measured", 1, 0 },
		{ "mean#us", "queue_pairs.mean_ns", 1e-3, 1 }, { "fastest#us", "queue_pairs.fastest_mean_ns", 1e-3, 1 },
		{ "slowest#us", "queue_pairs.slowest_mean_ns", 1e-3, 1 } } },
	{ "verified", "Operations whose data was checked (--verify).", {
		{ "checked#", "verified.checked", 1, 0 }, { "corrupt#", "verified.corrupt", 1, 0 },
		{ "checked at the server#", "verified.server_checked", 1, 0 },
		{ "corrupt at the server#", "verified.server_corrupt", 1, 0 } } },
};

/* A cause that affects a smaller share of the operations cannot move the p99.9. */
#define JITTER_SHARE 0.001
#define JITTER_REMEDIES 3

static double above_p50_percent(const json_t *step, const void *path)
{
	return 100 * (read_amount(step, path) / read_amount(step, "response_ns.p50") - 1);
}

static bool has_flag(const struct page *p, const json_t *step, const void *flag)
{
	(void)p;
	return read_has_flag(step, *(const enum validity *)flag);
}

/* True if the counter of either side grew by more than JITTER_SHARE of the operations that ended in its window. Each of
 * `paths` has a counter and the length of its window. */
static bool is_often(const json_t *step, const char *const paths[2][2])
{
	for (size_t i = 0; i < 2; i++)
		if (read_amount(step, paths[i][0]) > JITTER_SHARE * read_amount(step, paths[i][1]) *
		    read_amount(step, "throughput_msgs_per_s"))
			return true;
	return false;
}

static bool sends_again(const struct page *p, const json_t *step, const void *arg)
{
	static const char *const paths[2][2] = {
		{ "network.server.retransmits", "network.server.window_s" },
		{ "network.generator.retransmits", "network.generator.window_s" },
	};

	(void)p;
	(void)arg;
	return is_often(step, paths);
}

/* True if other threads took the CPU, or a thread of the generator ran late by more than the p99 exceeds the p50. */
static bool is_interrupted(const struct page *p, const json_t *step, const void *arg)
{
	static const char *const paths[2][2] = {
		{ "resources.server.switches_involuntary", "resources.server.window_s" },
		{ "resources.generator.switches_involuntary", "resources.generator.window_s" },
	};

	(void)p;
	(void)arg;
	return is_often(step, paths) || read_amount(step, "clock_late_ns") >
	       read_amount(step, "response_ns.p99") - read_amount(step, "response_ns.p50");
}

static const char *governor_of(const struct page *p)
{
	const char *governor = json_text_at(p->run, "environment.clients.cpu_governor");

	return governor && strcmp(governor, "performance") != 0 ? governor : NULL;
}

static bool may_slow_down(const struct page *p, const json_t *step, const void *arg)
{
	(void)arg;
	return governor_of(p) && isfinite(read_amount(step, "response_ns.p50"));
}

static const char *keep_cpus(struct page *p)
{
	if (!json_text_at(p->run, "config.tuning.cpu_list"))
		return "give the threads CPUs that nothing else uses (--cpu-list, --server-cpu-list)";
	if (!json_is_true(json_at(p->run, "config.tuning.realtime")))
		return "--realtime keeps other programs off the CPUs of --cpu-list while a thread has work";
	return "keep other programs and interrupts off the CPUs of --cpu-list (isolcpus, irqaffinity of the kernel)";
}

/* Causes of jitter with their remedies (NULL: keep_cpus). The cause that adds most to a tail comes first. */
static const struct cause {
	bool (*is_seen)(const struct page *p, const json_t *step, const void *arg);
	const void *arg;
	const char *words, *remedy;
} causes[] = {
	{ has_flag, &(const enum validity){ VALIDITY_cpu_stolen }, "a hypervisor gave CPU time to others",
	  "use an instance with CPUs of its own, dedicated and not burstable" },
	{ has_flag, &(const enum validity){ VALIDITY_cpu_throttled }, "a CPU quota was used up",
	  "raise it (cpu.max, a pod's CPU limit), or use fewer --threads" },
	{ sends_again, NULL, "packets were sent again",
	  "performance_test doctor says whether the network is set up to lose none" },
	{ has_flag, &(const enum validity){ VALIDITY_generator_saturated }, "the generator was at its own limit",
	  "use more --threads or load hosts, because operations waited for it" },
	{ is_interrupted, NULL, "threads lost their CPU to others, or came late", NULL },
	{ may_slow_down, NULL, "CPUs may slow down between messages", "set the CPU governor to performance" },
};

/* Says in how many steps each cause of jitter is visible, and its remedy on this machine. `known`: the run has figures
 * that may show a cause. */
static void say_causes(struct page *p, bool known)
{
	const json_t *steps = json_at(p->run, "steps"), *step;
	size_t said = 0, i;

	for (size_t c = 0; c < sizeof(causes) / sizeof(causes[0]) && said < JITTER_REMEDIES; c++) {
		size_t seen = 0;

		json_array_foreach(steps, i, step)
			seen += causes[c].is_seen(p, step, causes[c].arg);
		if (seen)
			doc_item(p->doc, "jitter-cause", "In %zu of %zu steps %s: %s.", seen, i, causes[c].words,
				 causes[c].remedy ? causes[c].remedy : keep_cpus(p));
		said += seen > 0;
	}
	if (said == 0 && known)
		doc_text(p->doc, "jitter-no-cause", "No cause is visible in the figures.");
	else if (said == 0)
		doc_text(p->doc, "jitter-no-figures", "This run does not have the figures that may show its cause.");
}

static void show_jitter(struct page *p)
{
	static const char *const percentiles[] = { "response_ns.p90", "response_ns.p95", "response_ns.p99",
						   "response_ns.p99_9" };
	static const struct page_column figures[] = {
		{ "server interrupted#1/s", "resources.server.switches_involuntary/resources.server.window_s", 1, 0 },
		{ "generator interrupted#1/s",
		  "resources.generator.switches_involuntary/resources.generator.window_s", 1, 0 },
		{ "generator late#ms", "clock_late_ns", 1e-6, 2 },
		{ "server's CPU stolen#%", "resources.server.machine_steal_ratio", 100, 1 },
		{ "generator's CPU stolen#%", "resources.generator.machine_steal_ratio", 100, 1 },
		{ "server throttled#s", "resources.server.cgroup_throttled_s", 1, 2 },
		{ "generator throttled#s", "resources.generator.cgroup_throttled_s", 1, 2 },
		{ "server sent again#", "network.server.retransmits", 1, 0 },
		{ "generator sent again#", "network.generator.retransmits", 1, 0 }, { 0 }
	};
	struct doc_table *t;

	doc_heading(p->doc, "Jitter");
	t = page_table(p, "jitter", "How far percentiles of the round trip are above its p50.",
		       PAGE_POINT ";p50#us;p90#% above;p95#% above;p99#% above;p99.9#% above");
	for (size_t i = 0; i < p->points->n; i++) {
		const struct point *at = &p->points->v[i];

		page_row(p, t, DOC_PLAIN, at->clients, at->bytes);
		page_cells(t, "1", page_estimate(at, "response_ns.p50").value / 1e3);
		for (size_t k = 0; k < sizeof(percentiles) / sizeof(percentiles[0]); k++)
			page_cells(t, "0", point_range_of(at, above_p50_percent, percentiles[k]).value);
	}
	say_causes(p, page_points(p, "jitter_causes", "Figures that may show its cause: context switches because "
				  "another thread's turn had come, the longest delay of a thread of the generator, and "
				  "what was lost to hypervisor, quota and network.", figures));
}

static bool has_round_trips(const struct page *p)
{
	for (size_t i = 0; i < p->points->n; i++)
		if (isfinite(page_estimate(&p->points->v[i], "response_ns.p50").value))
			return true;
	return false;
}

void section_steps(struct page *p)
{
	doc_section(p->doc, "steps", "Each step");
	if (!page_points(p, "steps", "Each number of clients: the median of its runs. CPU: 100 % is one core.",
			 step_figures))
		doc_text(p->doc, "steps-none", "No step was run.");
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		page_points(p, tables[i].name, tables[i].caption, tables[i].columns);
	if (has_round_trips(p))
		show_jitter(p);
}

void steps_table(struct page *p)
{
	if (isfinite(points_main_rate(json_at(p->run, "steps"))))
		page_objects(p, "offered", NULL, offered_figures + (p->points->n_sizes < 2), json_at(p->run, "steps"),
			     SIZE_MAX);
	else
		page_points(p, "steps", NULL, step_figures);
}

/* The caveats of steps: first the validity flags, then reasons for missing figures. */
enum { FEW_CONNECTIONS = VALIDITY_FLAGS, FEW_OPERATIONS, NO_OPERATION, NO_SERVER_CPU, CAVEATS };

static bool lacks(const json_t *step, const char *count, const char *percentile)
{
	return json_number_at(step, count) > 0 && !isfinite(json_number_at(step, percentile));
}

static bool has_caveat(const struct page *p, const json_t *step, int caveat)
{
	switch (caveat) {
	case FEW_CONNECTIONS: return lacks(step, "connect_ns.total.count", "connect_ns.total.p99");
	case FEW_OPERATIONS: return lacks(step, "response_ns.count", "response_ns.p99_9");
	case NO_OPERATION: return isfinite(json_number_at(step, "measured_s")) && !found_only_connects(p) &&
				  json_number_at(step, "response_ns.count") == 0;
	case NO_SERVER_CPU: return json_is_null(json_at(step, "resources.server.cpu_user_s"));
	}
	return validity_flags[caveat].badge && read_has_flag(step, caveat);
}

static const char *caveat_words(struct page *p, int caveat)
{
	const char *hosts = caveat == VALIDITY_generator_saturated ? found_hosts_at_limit(p, 0) : "";

	switch (caveat) {
	case FEW_CONNECTIONS: return "fewer than 299 connections: no p99 of connecting (a p50 takes 5)";
	case FEW_OPERATIONS: return "fewer than 2,995 operations: no p99.9 of responses (a p99 takes 299, a p50 5)";
	case NO_OPERATION: return "no operation ended in the measured time";
	case NO_SERVER_CPU: return "the server's report from before or after the measured time is missing, and so is "
				   "its CPU time";
	}
	return *hosts ? page_text(p, "%s; %s had no more to give: add hosts", validity_flags[caveat].meaning, hosts) :
			validity_flags[caveat].meaning;
}

/* "10, 100 clients"; "10 to 300 clients, in 12 of 20 steps" */
static const char *labels_of(struct page *p, const char *unit, double *v, size_t n, size_t all)
{
	const char *text = "";
	size_t labels = 0;

	stats_sort(v, n);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || v[i] != v[i - 1])
			text = page_text(p, "%s%s%.0f", text, labels++ ? ", " : "", v[i]);
	if (labels > 8)
		return page_text(p, "%.0f to %.0f%s, in %zu of %zu steps", v[0], v[n - 1], unit, n, all);
	return page_text(p, "%s%s", text, unit);
}

void steps_say_caveats(struct page *p)
{
	const json_t *steps = json_at(p->run, "steps"), *step;
	bool swept = isfinite(points_main_rate(steps));
	double *v = page_numbers(p, json_array_size(steps) + 1);
	size_t i, n;

	for (int caveat = 0; v && caveat < CAVEATS; caveat++) {
		n = 0;
		json_array_foreach(steps, i, step) {
			if (has_caveat(p, step, caveat))
				v[n++] = json_number_at(step, swept ? "offered_per_s" : "target_clients");
		}
		if (n)
			doc_item(p->doc, NULL, "%s: %s", labels_of(p, swept ? "/s" : " clients", v, n, i),
				 caveat_words(p, caveat));
	}
}
