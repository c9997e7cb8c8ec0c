/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares a plan with a run. See planned.h. */
#include "loadgen/plan/planned.h"

#include <math.h>
#include <stdio.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "loadgen/analysis/read.h"

/* Resources whose use a run knows: figures of `resources` at the end of a step's measured time, and of its `peak`. Only
 * the peak counts descriptors of clients that were connecting. Only the end has registered memory to the byte: samples
 * count pages. */
struct figure { enum estimate_resource resource; const char *name; bool has_peak, has_end; };
static const struct figure figures[] = {
	{ ESTIMATE_qps, "qps", true, true }, { ESTIMATE_cqs, "cqs", true, true }, { ESTIMATE_mrs, "mrs", true, true },
	{ ESTIMATE_fds, "fds", true, false }, { ESTIMATE_threads, "threads", true, true },
	{ ESTIMATE_pinned_bytes, "pinned_bytes", false, true }, { ESTIMATE_rss_bytes, "rss_bytes", true, true },
};
static const struct figure kernel = { ESTIMATE_kernel_bytes, "machine_kernel_bytes", false, true };

bool planned_look(const struct loadgen_config *cfg, struct hosts *out)
{
	char err[512];

	if (loadgen_has_hosts(cfg) || loadgen_n_targets(cfg) > 1 || cfg->qps > 1)
		return false;
	if (!hosts_look(cfg, false, out, err, sizeof(err)))
		return true;
	log_warn("the report will not compare planned and used resources: %s", err);
	return false;
}

/* The largest value of a figure in any step; NAN: not known. */
static double most_of(const json_t *run, const char *path)
{
	struct read_use use;

	read_use(run, &(struct read_figure){ .path = path }, &use);
	return use.most;
}

/* True if a step with the most clients was measured. Otherwise figures at a step's end belong to fewer clients. */
static bool most_was_measured(const json_t *run)
{
	double most = most_of(run, "connected_peak");

	for (size_t i = 0; i < read_n_steps(run); i++)
		if (read_amount(read_step(run, i), "connected_peak") == most && read_is_measured(read_step(run, i)))
			return true;
	return false;
}

static double used_by(const json_t *run, enum estimate_side side, const struct figure *f)
{
	bool has_end = f->has_end && (f->has_peak || most_was_measured(run));
	char peak[96], end[96];

	snprintf(peak, sizeof(peak), "resources.%s.peak.%s", estimate_side_names[side], f->name);
	snprintf(end, sizeof(end), "resources.%s.%s", estimate_side_names[side], f->name);
	return fmax(f->has_peak ? most_of(run, peak) : NAN, has_end ? most_of(run, end) : NAN);
}

static double used_of(const json_t *run, const struct estimate_row *r)
{
	if (r->resource == kernel.resource && r->side != ESTIMATE_GENERATOR)
		return used_by(run, ESTIMATE_SERVER, &kernel);
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (figures[i].resource == r->resource)
			return r->side != ESTIMATE_BOTH ? used_by(run, r->side, &figures[i]) :
			       used_by(run, ESTIMATE_SERVER, &figures[i]) +
			       used_by(run, ESTIMATE_GENERATOR, &figures[i]);
	return NAN;
}

static json_t *row_json(const json_t *run, const struct estimate_row *r)
{
	double used = used_of(run, r);
	bool whole = r->resource != ESTIMATE_cpus;

	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "resource", estimate_resource_names[r->resource],
			 "what", estimate_resource_titles[r->resource], "side", estimate_side_names[r->side],
			 "needed", whole ? json_whole(r->needed) : json_number(r->needed), "limit",
			 whole ? json_whole(r->limit) : json_number(r->limit), "used", json_whole(used),
			 "ratio", json_number(r->needed / used));
}

/* The time at which the queue pairs of a step's clients can be used again, in seconds since the run began. */
static double rested_s(const json_t *earlier)
{
	return read_amount(earlier, "ended_s") + ESTIMATE_REST_S;
}

/* Clients with a queue pair at `t_s`: those that step `i` had connected by then, one after the other, and those of
 * earlier steps whose queue pairs still rested. */
static double in_use_at(const json_t *run, size_t i, double t_s)
{
	const json_t *step = read_step(run, i);
	double share = (t_s - read_amount(step, "started_s")) / read_amount(step, "connect_wall_s");
	double sum = read_amount(step, "connected_peak") * fmin(share, 1);

	while (i-- > 0 && rested_s(read_step(run, i)) >= t_s)
		sum += fmax(read_amount(read_step(run, i), "connected_peak"), 0);
	return share >= 0 ? sum : NAN;
}

/* The largest number of clients beyond `most` that had a queue pair at one moment of the run. Clients of earlier steps
 * count while their queue pairs rest. The maximum occurs when a step has connected all its clients, or shortly before
 * queue pairs can be used again. */
static double resting_beyond(const json_t *run, double most)
{
	double sum = most;

	for (size_t i = 0; i < read_n_steps(run); i++) {
		const json_t *step = read_step(run, i);
		double started_s = read_amount(step, "started_s");

		sum = fmax(sum, in_use_at(run, i, started_s + read_amount(step, "connect_wall_s")));
		for (size_t k = i; k-- > 0 && rested_s(read_step(run, k)) >= started_s;)
			sum = fmax(sum, in_use_at(run, i, rested_s(read_step(run, k))));
	}
	return sum - most;
}

json_t *planned_json(struct hosts *before, json_t *info, const json_t *run)
{
	struct estimate_row rows[ESTIMATE_ROWS_MAX];
	double most = most_of(run, "connected_peak");
	json_t *stats = json_object_get(read_step(run, 0), "server_before"), *list;
	struct estimate_in in;
	size_t n;

	if (!(most >= 1) || (before->cfg->server && (!info || !json_is_object(stats))))
		return json_null();
	if (before->cfg->server)
		hosts_take_reports(before, info, stats);
	/* Queues and tables are made for --clients, though a search may have fewer. */
	hosts_fill(before, before->cfg->clients, &in);
	in.clients = (uint64_t)fmin(most, ESTIMATE_CLIENTS_MAX);
	in.generator.left = resting_beyond(run, most);
	n = estimate_rows(&in, rows);
	list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, row_json(run, &rows[i]));
	return json_pack("{s:I, s:o}", "clients", (json_int_t)in.clients, "rows", list);
}
