/* SPDX-License-Identifier: BSD-2-Clause */
/* See step_files.h. */
#include "loadgen/output/step_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/hist/hist.h"
#include "loadgen/output/results.h"
#include "loadgen/measurement/step.h"
#include "loadgen/traffic/trace.h"
#include "loadgen/worker/worker.h"

/* The span of wall time that a histogram covers, since the run's start. */
struct span {
	double start_s, length_s;
};

/* Writes step-CCCCC-R-connect, or with several sizes step-CCCCC-R-64B-connect, with several rates
 * step-CCCCC-R-1000ps-connect. Returns the name, or null if it could not be written. */
static json_t *write_histogram(const struct step_files *f, const struct step *s, const char *what, const struct hist *h,
			       struct span span)
{
	char name[96], size[32] = "", rate[32] = "";

	if (f->cfg->sizes.n > 1)
		snprintf(size, sizeof(size), "%lluB-", (unsigned long long)s->bytes);
	if (loadgen_is_swept(f->cfg))
		snprintf(rate, sizeof(rate), "%llups-", (unsigned long long)s->rate);
	/* Names use the clients of all hosts, because this host's share may be the same in two steps. */
	snprintf(name, sizeof(name), "step-%05u-%u-%s%s%s", s->of_all ? s->of_all : s->target, s->repetition, size,
		 rate, what);
	return results_histogram(f->results, name, h, span.start_s, span.length_s) ? json_null() : json_string(name);
}

json_t *step_files_histograms(const struct step_files *f, const struct step *s, uint64_t connect_start_ns)
{
	struct span connect = { (double)(connect_start_ns - f->run_start_ns) / 1e9, (double)s->connect_wall_ns / 1e9 };
	struct span measured = { (double)(s->begin.now_ns - f->run_start_ns) / 1e9, s->measured_s };
	bool open_loop = s->measured && loadgen_is_open_loop(f->cfg);

	return json_pack("{s:o, s:o, s:o}", "connect", write_histogram(f, s, "connect", s->total, connect), "response",
			 s->measured ? write_histogram(f, s, "response", s->hists.response, measured) : json_null(),
			 "service",
			 open_loop ? write_histogram(f, s, "service", s->hists.service, measured) : json_null());
}

/* The part of the --trace file that one step adds. */
struct traced {
	const struct step_files *files;
	const struct step *s;
	struct worker *const *workers;
	uint32_t n_workers;
};

static int write_trace(FILE *out, const void *traced)
{
	const struct traced *t = traced;
	int ret = t->files->traced_steps == 0 ? trace_write_title(out) : 0;

	for (uint32_t i = 0; i < t->n_workers && !ret; i++) {
		struct trace_step at = { .clients = t->s->target, .repetition = t->s->repetition, .worker = i,
					 .n_workers = t->n_workers, .bytes = t->s->bytes,
					 .start_ns = t->files->run_start_ns };

		ret = trace_write(worker_trace(t->workers[i]), &at, out);
	}
	return ret;
}

/* Writes the path of the --trace file. If each of several runs has its own file, the run's name precedes the ending. */
static int make_trace_path(const struct loadgen_config *c, char path[PATH_MAX])
{
	const char *slash = strrchr(c->trace, '/'), *file = slash ? slash + 1 : c->trace, *dot = strrchr(file, '.');
	size_t stem = dot && dot != file ? (size_t)(dot - c->trace) : strlen(c->trace);
	int n = snprintf(path, PATH_MAX, "%.*s%s%s%s", (int)stem, c->trace, c->trace_each ? "-" : "",
			 c->trace_each ? c->name_text : "", c->trace + stem);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The first step makes the file, and the others add to it. */
void step_files_trace(struct step_files *f, const struct step *s, struct worker *const *workers, uint32_t n_workers)
{
	struct traced traced = { .files = f, .s = s, .workers = workers, .n_workers = n_workers };
	char path[PATH_MAX];
	uint64_t lost = 0;
	int ret;

	if (!f->cfg->trace || !s->measured)
		return;
	ret = make_trace_path(f->cfg, path);
	if (!ret)
		ret = path_append(path, f->traced_steps == 0, write_trace, &traced);
	if (ret)
		results_lost(f->results, f->cfg->trace, ret);
	else
		f->traced_steps++;
	for (uint32_t i = 0; i < n_workers; i++)
		lost += trace_lost(worker_trace(workers[i]));
	if (lost)
		log_warn("--trace: %llu operations of %u clients are not in the file; raise --trace-max",
			 (unsigned long long)lost, s->target);
}
