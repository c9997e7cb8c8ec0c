/* SPDX-License-Identifier: BSD-2-Clause */
/* The section on what really ran: settings in effect at the device and the threads, and work per doorbell and poll. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/untaken.h"

#define VALUES_MAX 12

static const char *const sides[] = { "server", "generator" };

size_t effective_say_untaken(struct page *p, const json_t *run, const char *id)
{
	const json_t *e;
	char text[256];
	size_t i;

	json_array_foreach(json_at(run, "analysis.not_taken"), i, e) {
		doc_item(p->doc, id, "%s", untaken_text(e, text, sizeof(text)));
	}
	return json_array_size(json_at(run, "analysis.not_taken"));
}

static void say_untaken(struct page *p)
{
	if (!json_is_array(json_at(p->run, "analysis.not_taken"))) {
		doc_text(p->doc, "effective-unknown", "The run does not say which settings took effect.");
		return;
	}
	if (json_array_size(json_at(p->run, "analysis.not_taken")) == 0) {
		doc_text(p->doc, "effective-all-taken",
			 "Every setting that can be checked took effect as it was asked for.");
		return;
	}
	doc_note(p->doc, DOC_WARN, "effective-not-taken", "These settings did not take effect as they were asked for:");
	effective_say_untaken(p, p->run, "effective-not-taken-one");
}

struct fact {
	const char *path, *words;
	double unit;			/* numbers are divided by it; 0: shown as they are */
};

static const struct fact facts[] = {
	{ "inline_wanted_bytes", "copied into the send queue: bytes asked for", 0 },
	{ "inline_granted_bytes", "copied into the send queue: bytes granted", 0 },
	{ "relaxed_ordering", "memory registered with relaxed ordering", 0 },
	{ "credits", "credits of a client", 0 },
	{ "qp.path_mtu_bytes", "path MTU of a queue pair, bytes", 0 },
	{ "qp.ack_timeout_ns", "acknowledge timeout, ms", 1e6 },
	{ "qp.retry_count", "retries", 0 },
	{ "qp.rnr_retry", "retries when a receiver is not ready (7: no end)", 0 },
	{ "qp.rnr_timer_ns", "time between them, ms", 1e6 },
	{ "qp.traffic_class", "traffic class", 0 },
	{ "qp.service_level", "service level", 0 },
	{ "qp.gid_index", "index of the GID", 0 },
	{ "tcp.nodelay", "TCP_NODELAY of a socket", 0 },
	{ "tcp.quickack", "TCP_QUICKACK, at that moment", 0 },
	{ "tcp.send_buffer_bytes", "send buffer, bytes", 0 },
	{ "tcp.receive_buffer_bytes", "receive buffer, bytes", 0 },
	{ "tcp.busy_poll_us", "busy poll, us", 0 },
	{ "tcp.zerocopy", "sent without a copy", 0 },
	{ "tcp.mss_bytes", "segment of TCP, bytes", 0 },
	{ "tcp.congestion", "congestion control", 0 },
	{ "tcp.ktls", "encrypted by the kernel", 0 },
	{ "cpu", "CPUs that threads ran on last", 0 },
	{ "cpus", "CPUs that threads may run on", 0 },
	{ "numa_node", "NUMA nodes of the CPUs that they ran on last", 0 },
	{ "device_numa_node", "NUMA nodes of their devices", 0 },
	{ "realtime", "realtime priority", 0 },
};

static const char *value_of(struct page *p, const json_t *v, double unit)
{
	return unit > 0 && json_is_number(v) ? page_text(p, "%.6g", json_number_value(v) / unit) : page_json(p, v);
}

static bool is_known(const json_t *threads, const struct fact *f)
{
	const json_t *t;
	size_t i;

	json_array_foreach(threads, i, t) {
		const json_t *v = json_at(t, f->path);

		if (v && !json_is_null(v))
			return true;
	}
	return false;
}

/* Lists the different values of all threads. A thread without a connection knows none of its settings. */
static const char *of_threads(struct page *p, const json_t *threads, const struct fact *f)
{
	const char *seen[VALUES_MAX], *all = "";
	size_t n = 0, i, k;
	const json_t *t;

	json_array_foreach(threads, i, t) {
		const json_t *v = json_at(t, f->path);
		const char *text = value_of(p, v, f->unit);

		if ((!v || json_is_null(v)) && is_known(threads, f))
			continue;
		for (k = 0; k < n && strcmp(seen[k], text) != 0; k++)
			;
		if (k < n || n == VALUES_MAX)
			continue;
		seen[n++] = text;
		all = page_text(p, "%s%s%s", all, *all ? ", " : "", text);
	}
	return n == VALUES_MAX ? page_text(p, "%s, ...", all) : n ? all : "unknown";
}

static const json_t *threads_of(const json_t *step, const char *side)
{
	return json_at(json_at(json_at(step, "effective"), side), "threads");
}

static void table_threads(struct page *p, const json_t *step)
{
	struct doc_table *t = page_table(p, "effective", page_text(p,
								   "With %s, from ibv_query_qp or getsockopt of one "
					 "connection of each thread, sched_getaffinity and sched_getcpu",
					 page_clients(p, json_number_at(step, "target_clients"))),
					 "what;server;generator");

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		/* Leave out settings of the transport that was not used: they are null. */
		if (strchr(facts[i].path, '.') && !is_known(threads_of(step, "server"), &facts[i]) &&
		    !is_known(threads_of(step, "generator"), &facts[i]))
			continue;
		page_add(t, DOC_PLAIN, "sss", facts[i].words, of_threads(p, threads_of(step, "server"), &facts[i]),
			 of_threads(p, threads_of(step, "generator"), &facts[i]));
	}
}

static void table_work(struct page *p)
{
	static const struct page_column columns[] = {
		{ "doorbells#", "doorbells", 1, 0 }, { "requests a doorbell#", "requests_per_doorbell", 1, 2 },
		{ "with completion#%", "signalled_ratio", 100, 1 }, { "completions a poll#", "completions_per_poll", 1,
								      2 },
		{ "polls that found nothing#%", "empty_polls/polls", 100, 0 }, { 0 }
	};
	struct doc_table *t = page_table(p, "effective_work",
					 "Of the measured time; completions a poll are the mean of the polls that "
					 "found some", PAGE_POINT ";side");

	page_columns(p, t, columns);
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t s = 0; s < 2; s++) {
			page_row(p, t, DOC_PLAIN, p->points->v[i].clients, p->points->v[i].bytes);
			page_cells(t, "s", sides[s]);
			page_cells_at(p, t, columns, &p->points->v[i], page_text(p, "effective.%s", sides[s]));
		}
}

/* The last step with settings of its threads. */
static const json_t *last_step(const struct page *p)
{
	const json_t *steps = json_at(p->run, "steps");

	for (size_t i = json_array_size(steps); i--;)
		if (json_array_size(threads_of(json_array_get(steps, i), "generator")) ||
		    json_array_size(threads_of(json_array_get(steps, i), "server")))
			return json_array_get(steps, i);
	return NULL;
}

void section_effective(struct page *p)
{
	const json_t *step = last_step(p);

	doc_section(p->doc, "effective", "What really ran");
	say_untaken(p);
	if (!step)
		return;
	table_threads(p, step);
	table_work(p);
}
