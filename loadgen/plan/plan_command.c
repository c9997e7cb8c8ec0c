/* SPDX-License-Identifier: BSD-2-Clause */
/* `performance_test plan`. See plan_command.h. */
#include "loadgen/plan/plan_command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "loadgen/plan/advice.h"
#include "loadgen/plan/estimate.h"
#include "loadgen/plan/plan_hosts.h"
#include "loadgen/output/results.h"

#define FITS 0
#define TOO_MANY 1
#define UNKNOWN 3

struct plan {
	const struct loadgen_config *cfg;
	struct hosts hosts;
	struct estimate_in in;
	struct estimate_row rows[ESTIMATE_ROWS_MAX];
	struct held_row held[HELD_N];
	size_t n, first;	/* first: the row that runs out first; n: none */
	int status;
};

/* True if the need or the limit is unknown. */
static bool is_unknown(const struct estimate_row *r)
{
	return isnan(r->needed) || isnan(r->limit);
}

static int status_of(const struct plan *p)
{
	int status = FITS;

	for (size_t i = 0; i < p->n; i++) {
		if (!estimate_fits(&p->rows[i]))
			return TOO_MANY;
		if (is_unknown(&p->rows[i]) && !estimate_is_of_load(p->rows[i].resource))
			status = UNKNOWN;
	}
	return status;
}

static bool is_bytes(enum estimate_resource r)
{
	return r >= ESTIMATE_pinned_bytes;
}

/* Line rates are decimal. */
static const char *rate(double bytes_per_s, char text[static 32])
{
	if (bytes_per_s < 1e6)
		snprintf(text, 32, "%.0f KB/s", bytes_per_s / 1e3);
	else
		snprintf(text, 32, "%.1f MB/s", bytes_per_s / 1e6);
	return text;
}

static const char *amount(enum estimate_resource r, double v, char text[static 32])
{
	if (isnan(v))
		snprintf(text, 32, "?");
	else if (isinf(v))
		snprintf(text, 32, "-");
	else if (r == ESTIMATE_line_bytes_per_s)
		rate(v, text);
	else if (r == ESTIMATE_cpus)
		snprintf(text, 32, "%.2f", v);
	else if (is_bytes(r) && v < 1048576)
		snprintf(text, 32, "%.1f KiB", v / 1024);
	else if (is_bytes(r))
		snprintf(text, 32, "%.1f MiB", v / 1048576);
	else
		snprintf(text, 32, "%.0f", v);
	return text;
}

/* The last column: whether the limit is enough, or why that is not known. */
static const char *outcome_text(const struct plan *p, const struct estimate_row *r, char text[static 96])
{
	const char *plain = is_unknown(r) ? "unknown" : isinf(r->limit) ? "" : estimate_fits(r) ? "fits" : "SHORT";
	char each[32];

	if (r->resource == ESTIMATE_line_bytes_per_s && isnan(r->limit))
		return p->in.same_machine ? "no link: both ends are on this machine" :
					    "unknown: the link has no known speed";
	if (r->resource == ESTIMATE_line_bytes_per_s) {
		snprintf(text, 96, "%s%s for each client", isnan(r->needed) ? "" : estimate_fits(r) ? "fits; " :
			 "SHORT; ", rate(r->limit / (double)p->in.clients, each));
		return text;
	}
	if (r->resource == ESTIMATE_cpus && isnan(r->needed))
		return p->cfg->from ? "not known: --churn needs the CPU time of connecting, which --from lacks" :
				      "not known: --from measure measures it, --from DIR takes it from a run";
	return plain;
}

static void print_row(const struct plan *p, const struct estimate_row *r)
{
	char text[96], needed[32], limit[32], share[32] = "-", clients[32] = "-";

	if (isfinite(r->limit) && r->limit > 0 && isfinite(r->needed))
		snprintf(share, sizeof(share), "%.1f %%", 100 * r->needed / r->limit);
	if (isfinite(r->clients))
		snprintf(clients, sizeof(clients), "%.0f", r->clients);
	utf8_print_line(stdout, "%-36s %-10s %12s %14s %9s %10s  %s", estimate_resource_titles[r->resource],
			estimate_side_names[r->side], amount(r->resource, r->needed, needed),
			amount(r->resource, r->limit, limit), share, clients,
			outcome_text(p, r, text));
}

static void print_server(const struct plan *p)
{
	const struct estimate_server *s = &p->in.server;

	utf8_print_line(stdout,
			"Server: %s%s with --threads %llu --max-clients %llu --credits %llu --message-size %llu "
			"--region-size %llu",
			s->own ? "started by performance_test" : p->cfg->server, s->own ? "" : ", running",
			(unsigned long long)s->size.threads, (unsigned long long)s->size.max_clients,
			(unsigned long long)s->size.credits, (unsigned long long)s->size.message_bytes,
			(unsigned long long)s->size.region_bytes);
	if (p->in.transport == TRANSPORT_RDMA &&
	    (p->in.server_host.driver == MEMORY_OTHER || p->in.generator_host.driver == MEMORY_OTHER))
		printf("Memory: figures are rough, because the queue sizes of this RDMA driver are not known.\n");
}

static void print_held(const struct plan *p)
{
	char each[32], all[32];

	utf8_print_line(stdout, "%-36s %-16s %12s %14s %14s", "memory peers can make the server use", "per", "number",
			"each", "together");
	for (int i = 0; i < HELD_N; i++)
		utf8_print_line(stdout, "%-36s %-16s %12llu %14s %14s", p->held[i].what, p->held[i].per,
				(unsigned long long)p->held[i].number,
				amount(ESTIMATE_memory_bytes, (double)p->held[i].each_bytes, each),
				amount(ESTIMATE_memory_bytes, (double)held_bytes(&p->held[i]), all));
	printf("\n");
}

static void print_end(const struct plan *p)
{
	char text[256];

	for (size_t i = 0; i < p->n; i++)
		if (!estimate_fits(&p->rows[i]))
			utf8_print_line(stdout, "Too few or too little: %s (%s); remedy: %s",
					estimate_resource_titles[p->rows[i].resource],
					estimate_side_names[p->rows[i].side],
					advice_text(&p->in, &p->rows[i], text, sizeof(text)));
	if (p->first < p->n && isfinite(p->rows[p->first].clients))
		utf8_print_line(stdout, "Runs out first: %s (%s), beyond %.0f clients%s%s",
				estimate_resource_titles[p->rows[p->first].resource],
				estimate_side_names[p->rows[p->first].side], p->rows[p->first].clients,
				p->status == TOO_MANY ? "" : "; remedy: ",
				p->status == TOO_MANY ? "" :
				advice_text(&p->in, &p->rows[p->first], text, sizeof(text)));
	utf8_print_line(stdout, "%llu clients %s", (unsigned long long)p->in.clients,
			p->status == FITS ? "fit." : p->status == TOO_MANY ? "do not fit." :
			"may fit: the need or the limit of some resources is unknown.");
}

static void print_plan(const struct plan *p)
{
	utf8_print_line(stdout, "What %llu clients of --workload %s need:", (unsigned long long)p->in.clients,
			loadgen_workload_names[p->cfg->workload]);
	print_server(p);
	printf("\n");
	utf8_print_line(stdout, "%-36s %-10s %12s %14s %9s %10s", "resource", "host", "needed", "limit", "share",
			"enough for");
	for (size_t i = 0; i < p->n; i++)
		print_row(p, &p->rows[i]);
	printf("\n");
	print_held(p);
	print_end(p);
}

static json_t *row_json(const struct plan *p, const struct estimate_row *r)
{
	bool whole = r->resource != ESTIMATE_cpus;
	char set[256] = "";

	if (!is_unknown(r))
		advice_text(&p->in, r, set, sizeof(set));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "resource", estimate_resource_names[r->resource],
			 "side", estimate_side_names[r->side], "needed", whole ? json_whole(r->needed) :
			 json_number(r->needed), "limit", whole ? json_whole(r->limit) : json_number(r->limit),
			 "limit_per_client", json_number(r->limit / (double)p->in.clients),
			 "fits", is_unknown(r) ? json_null() : json_boolean(estimate_fits(r)), "clients",
			 json_whole(r->clients), "set", json_string(set));
}

static json_t *held_json(const struct plan *p)
{
	json_t *a = json_array();

	for (int i = 0; i < HELD_N; i++)
		json_array_append_new(a, json_pack("{s:s, s:s, s:I, s:I}", "what", p->held[i].what, "per",
						   p->held[i].per, "number", (json_int_t)p->held[i].number,
						   "each_bytes",
						   (json_int_t)p->held[i].each_bytes));
	return a;
}

static json_t *plan_json(const struct plan *p)
{
	const struct estimate_server *s = &p->in.server;
	json_t *rows = json_array();

	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(rows, row_json(p, &p->rows[i]));
	return json_pack("{s:i, s:I, s:s, s:o, s:b, s:o, s:{s:b, s:I, s:I, s:I, s:I, s:I}, s:o, s:o}", "schema_version",
			 1, "clients", (json_int_t)p->in.clients, "workload", loadgen_workload_names[p->cfg->workload],
			 "fits", p->status == UNKNOWN ? json_null() : json_boolean(p->status == FITS),
			 "driver_is_known", p->in.server_host.driver != MEMORY_OTHER &&
					    p->in.generator_host.driver != MEMORY_OTHER,
			 "first", p->first < p->n ? row_json(p, &p->rows[p->first]) : json_null(),
			 "server", "own", s->own, "threads", (json_int_t)s->size.threads,
			 "max_clients", (json_int_t)s->size.max_clients, "credits", (json_int_t)s->size.credits,
			 "message_bytes", (json_int_t)s->size.message_bytes, "region_bytes",
			 (json_int_t)s->size.region_bytes,
			 "held", held_json(p), "rows", rows);
}

/* Returns 0, or -errno after logging it. */
static int write_plan(const struct plan *p)
{
	const char *file = p->cfg->json;
	json_t *o = file ? plan_json(p) : NULL;
	int ret = 0;

	if (file && !o) {
		log_error("this machine is out of memory: no plan as JSON");
		return -ENOMEM;
	}
	if (file && strcmp(file, "-") != 0) {
		ret = results_write_json(file, o);
		if (ret)
			log_error("cannot write --json %s: %s", file, path_error(ret));
	} else if (file) {
		json_dumpf(o, stdout, JSON_INDENT(1) | JSON_ENSURE_ASCII);
		printf("\n");
	}
	json_decref(o);
	if (!file || strcmp(file, "-") != 0)
		print_plan(p);
	return ret;
}

static int take_measured(const struct loadgen_config *cfg, const json_t *run, struct measured *out, char *err,
			 size_t err_size)
{
	if (run)
		return measured_read(run, cfg, out, err, err_size);
	return cfg->from ? measured_open(cfg->from, cfg, out, err, err_size) : 0;
}

int estimate_command(const struct loadgen_config *cfg, const json_t *run)
{
	struct plan p = { .cfg = cfg };
	char err[512];

	if (hosts_look(cfg, true, &p.hosts, err, sizeof(err))) {
		log_error("%s", err);
		return UNKNOWN;
	}
	if (take_measured(cfg, run, &p.hosts.measured, err, sizeof(err))) {
		log_error("%s", err);
		hosts_free(&p.hosts);
		return UNKNOWN;
	}
	hosts_fill(&p.hosts, cfg->clients, &p.in);
	p.n = estimate_rows(&p.in, p.rows);
	estimate_held(&p.in, p.held);
	estimate_reach(hosts_fill, &p.hosts, p.rows, p.n);
	p.first = estimate_first(p.rows, p.n);
	p.status = status_of(&p);
	if (write_plan(&p))
		p.status = UNKNOWN;
	hosts_free(&p.hosts);
	return p.status;
}
