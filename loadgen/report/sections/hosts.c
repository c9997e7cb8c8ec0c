/* SPDX-License-Identifier: BSD-2-Clause */
/* The section on the load hosts, if there are several: what each contributed, which was slowest, and how far apart
 * their clocks and starts were. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "common/host/res.h"
#include "loadgen/analysis/read.h"
#include "loadgen/report/sections/found.h"

#define HOSTS_MAX 4096
#define ROWS_MAX 2000		/* of the table of all steps */

static const json_t *hosts_of(const struct page *p)
{
	return json_object_get(p->run, "hosts");
}

static size_t n_hosts(const struct page *p)
{
	return MIN(json_array_size(hosts_of(p)), (size_t)HOSTS_MAX);
}

static const char *name_of(struct page *p, size_t rank)
{
	char name[READ_NAMES_MAX];

	return page_text(p, "%s", read_host_name(hosts_of(p), (uint32_t)rank, name));
}

/* A host's figures of the run's step with that index; NULL: the host took no part. */
static const json_t *part_of(const struct page *p, size_t rank, size_t index)
{
	const json_t *steps = json_object_get(json_array_get(hosts_of(p), rank), "steps");

	for (size_t i = json_array_size(steps); i--;)
		if (json_number_at(json_array_get(steps, i), "step") == (double)index)
			return json_array_get(steps, i);
	return NULL;
}

/* The index of the last measured step with the most clients; the number of steps if none was measured. */
static size_t largest_step(const struct page *p)
{
	size_t n = read_n_steps(p->run), found = n;

	for (size_t i = 0; i < n; i++)
		if (read_is_measured(read_step(p->run, i)) &&
		    (found == n || read_amount(read_step(p->run, i), "target_clients") >=
				   read_amount(read_step(p->run, found), "target_clients")))
			found = i;
	return found;
}

static double rate_of(const json_t *part)
{
	return read_amount(json_object_get(part, "own"), "throughput_msgs_per_s");
}

static double rate_of_each(const json_t *part)
{
	return rate_of(part) / read_held(json_object_get(part, "own"));
}

static const char *lost_words(struct page *p, const json_t *host)
{
	const json_t *lost = json_object_get(host, "lost");

	if (!json_is_object(lost))
		return "no";
	return page_text(p, "after %.1f s: %s", json_number_at(lost, "at_s"), page_text_at(lost, "why", ""));
}

static void add_part(struct page *p, struct doc_table *t, size_t rank, const json_t *part)
{
	const json_t *own = json_object_get(part, "own");
	bool saturated = read_has_flag(own, VALIDITY_generator_saturated);

	page_cells(t, "s000001112s", name_of(p, rank), read_amount(part, "share"), read_amount(own, "connected_held"),
		   rate_of(part), rate_of_each(part), read_amount(own, "failed") + read_amount(own, "dropped"),
		   read_amount(own, "response_ns.p50") / 1e3, read_amount(own, "response_ns.p99") / 1e3,
		   read_cores(own, "generator") * 100, json_number_at(part, "start_skew_ns") / 1e6,
		   own && !json_is_null(own) ? saturated ? "yes" : "no" : "unknown");
}

#define PART_COLUMNS \
	"host;share#clients;held#clients;messages#1/s;for each client#1/s;failed or dropped#clients;response p50#us;" \
	"response p99#us;CPU#%;began later by#ms;saturated"

static void table_load(struct page *p, size_t index)
{
	struct doc_table *t = page_table(p, "hosts", page_text(p,
							       "Each load host with %s in all. CPU: of "
							       "performance_test, 100 %% is one "
					 "core. Percentiles are each host's own.",
					 page_clients(p, read_amount(read_step(p->run, index), "target_clients"))),
					 PART_COLUMNS);

	for (size_t i = 0; i < n_hosts(p); i++) {
		const json_t *part = part_of(p, i, index);

		page_add(t, read_has_flag(json_object_get(part, "own"), VALIDITY_generator_saturated) ||
			 !part ? DOC_WARN : DOC_PLAIN, "");
		add_part(p, t, i, part);
	}
}

static void table_machines(struct page *p)
{
	struct doc_table *t = page_table(p, "hosts_machines",
					 "The load hosts' machines. Clock: the leader's less the host's, estimated "
					 "from round trips.",
					 "host;rank#;address;kernel;CPU;cores#;memory#GiB;device;line#Gbit/s;"
					 "clock offset#ms;clock error#ms;lost;files");

	for (size_t i = 0; i < n_hosts(p); i++) {
		const json_t *host = json_array_get(hosts_of(p), i), *about = json_object_get(host, "about");
		bool software = json_is_true(json_at(about, "rdma_device.is_software"));

		page_add(t, json_is_object(json_object_get(host, "lost")) ? DOC_BAD : DOC_PLAIN, "s0sss01s233ss",
			 name_of(p, i), (double)i,
			 page_text_at(host, "address", ""), page_text_at(about, "kernel", ""),
			 page_text_at(about, "cpu_model", ""),
			 res_cpus_of(about), res_memory_of(about) / 0x1p30,
			 page_text(p, "%s%s", page_text_at(about, "rdma_device.name", "unknown"), software ?
				   " (software)" : ""),
			 read_amount(about, "rdma_device.link_bits_per_s") / 1e9,
			 json_number_at(host, "clock.offset_ns") / 1e6,
			 read_amount(host, "clock.error_ns") / 1e6, lost_words(p, host),
			 page_text_at(host, "files", ""));
	}
}

static void table_steps(struct page *p)
{
	struct doc_table *t = page_table(p, "hosts_steps", "Each load host in each step.", PAGE_POINT ";" PART_COLUMNS);
	size_t rows = 0;

	for (size_t k = 0; k < read_n_steps(p->run); k++)
		for (size_t i = 0; i < n_hosts(p) && rows < ROWS_MAX; i++) {
			const json_t *step = read_step(p->run, k), *part = part_of(p, i, k);

			if (!part)
				continue;
			page_row(p, t, DOC_PLAIN, read_amount(step, "target_clients"),
				 read_amount(step, "message_bytes"));
			add_part(p, t, i, part);
			rows++;
		}
	if (rows == ROWS_MAX)
		doc_text(p->doc, "hosts-steps-cut", "The table ends after %d rows; run.json has all.", ROWS_MAX);
}

/* Compares the hosts with the fewest and the most messages for each client. */
static void say_spread(struct page *p, size_t index)
{
	size_t slow = 0, fast = 0, known = 0;
	double least = NAN, most = NAN;

	for (size_t i = 0; i < n_hosts(p); i++) {
		double rate = rate_of_each(part_of(p, i, index));

		if (!isfinite(rate))
			continue;
		known++;
		if (!(rate >= least)) {
			least = rate;
			slow = i;
		}
		if (!(rate <= most)) {
			most = rate;
			fast = i;
		}
	}
	if (known < 2) {
		doc_text(p->doc, "hosts-no-spread",
			 "How much the hosts differ is not known: fewer than two measured messages.");
		return;
	}
	doc_text(p->doc, "hosts-spread",
		 "With %s in all, each client of the slowest host, %s, got %s messages a second, each client "
		 "of the fastest, %s, %s: %.2f times as many.",
		 page_clients(p, read_amount(read_step(p->run, index), "target_clients")), name_of(p, slow),
		 page_count(p, least), name_of(p, fast), page_count(p, most), most / least);
}

static void say_saturated(struct page *p)
{
	const char *names = found_hosts_at_limit(p, 0);

	if (*names)
		doc_note(p->doc, DOC_WARN, "hosts-saturated",
			 "%s had no more to give. What the server can do beyond that is not known: "
			 "add hosts.", names);
	else
		doc_text(p->doc, "hosts-not-saturated", "No load host was at its own limit.");
}

static void say_skew(struct page *p)
{
	double most = NAN, limit = NAN;

	for (size_t i = 0; i < read_n_steps(p->run); i++) {
		double skew = read_amount(read_step(p->run, i), "hosts_skew.start_skew_ns");

		if (!(skew <= most))
			most = skew;
		limit = fmax(limit, read_amount(read_step(p->run, i), "hosts_skew.limit_ns"));
	}
	if (isfinite(most))
		doc_text(p->doc, "hosts-skew", "The hosts began to measure at most %s apart (--max-skew: %s).",
			 page_ns(p, most), page_ns(p, limit));
	else
		doc_text(p->doc, "hosts-skew-unknown", "How far apart the hosts began to measure is not known.");
}

static void say_lost(struct page *p)
{
	for (size_t i = 0; i < n_hosts(p); i++) {
		const json_t *host = json_array_get(hosts_of(p), i);

		if (json_is_object(json_object_get(host, "lost")))
			doc_note(p->doc, DOC_BAD, page_text(p, "hosts-lost-%zu", i), "%s was lost %s", name_of(p, i),
				 page_sentence(p, lost_words(p, host)));
	}
}

static void chart_rates(struct page *p, size_t index)
{
	struct chart c = { .x_label = "load host", .y_label = "messages/s" };
	size_t n = n_hosts(p);
	double *x = page_numbers(p, n), *y = page_numbers(p, n);

	if (!x || !y || n > CHART_CATEGORIES_MAX)
		return;
	for (size_t i = 0; i < n; i++) {
		c.categories[i] = name_of(p, i);
		x[i] = (double)i;
		y[i] = rate_of(part_of(p, i, index));
	}
	c.n_categories = n;
	page_series(&c, (struct chart_series){ .label = "messages/s", .mark = CHART_STACK, .x = x, .y = y, .n = n });
	page_chart(p, "hosts-chart", "Messages a second by host", &c,
		   "A bar for each load host, of the step with the most clients.");
}

void section_hosts(struct page *p)
{
	size_t index = largest_step(p);

	if (n_hosts(p) < 2)
		return;
	doc_section(p->doc, "hosts", "Hosts");
	doc_text(p->doc, "hosts-many",
		 "%zu load hosts made this run together. Throughout the report, their counts and the cells of "
		 "their histograms are added up; percentiles are of all samples.", n_hosts(p));
	say_lost(p);
	if (index < read_n_steps(p->run)) {
		say_spread(p, index);
		say_saturated(p);
		say_skew(p);
		chart_rates(p, index);
		table_load(p, index);
		table_steps(p);
	} else {
		doc_text(p->doc, "hosts-not-measured", "No step came to its measured time.");
	}
	table_machines(p);
}
