/* See step_files.h. */
#include "loadgen/ramp/step_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/hist/hist.h"
#include "common/base/log.h"
#include "loadgen/traffic/trace.h"
#include "loadgen/traffic/worker.h"

/* The span of wall time a histogram is of, since the run's start. */
struct span {
	double start_s, length_s;
};

/* step-CCCCC-R-connect, or with several sizes step-CCCCC-R-64B-connect. The name, or null. */
static json_t *write_histogram(struct ramp *r, const char *what, const struct hist *h, struct span span)
{
	const struct step *s = r->step;
	char name[64], size[32] = "";

	if (r->cfg->sizes.n > 1)
		snprintf(size, sizeof(size), "%lluB-", (unsigned long long)s->bytes);
	snprintf(name, sizeof(name), "step-%05u-%u-%s%s", s->target, s->repetition, size, what);
	if (results_histogram(r->results, name, h, span.start_s, span.length_s)) {
		log_warn("cannot write %s", results_path(r->results, name));
		return json_null();
	}
	return json_string(name);
}

json_t *step_files_histograms(struct ramp *r)
{
	const struct step *s = r->step;
	struct span connect = { (double)(r->step_start_ns - r->run_start_ns) / 1e9, (double)s->connect_wall_ns / 1e9 };
	struct span measured = { (double)(s->begin.now_ns - r->run_start_ns) / 1e9, s->measured_s };
	bool open_loop = s->measured && loadgen_is_open_loop(r->cfg);

	return json_pack("{s:o, s:o, s:o}", "connect", write_histogram(r, "connect", s->total, connect), "response",
			 s->measured ? write_histogram(r, "response", s->response, measured) : json_null(), "service",
			 open_loop ? write_histogram(r, "service", s->service, measured) : json_null());
}

/* The file is made by the first step, and the others add to it. */
void step_files_trace(struct ramp *r)
{
	const struct step *s = r->step;
	uint64_t lost = 0;
	bool first;
	FILE *f;
	int ret;

	if (!r->cfg->trace || !s->measured)
		return;
	first = r->traced_steps++ == 0;
	f = fopen(r->cfg->trace, first ? "we" : "ae");
	ret = !f ? -errno : first ? trace_write_title(f) : 0;
	for (uint32_t i = 0; i < r->n_workers && !ret; i++) {
		struct trace_step at = { .clients = s->target, .repetition = s->repetition, .worker = i,
					 .n_workers = r->n_workers, .bytes = s->bytes, .start_ns = r->run_start_ns };

		ret = trace_write(worker_trace(r->workers[i]), &at, f);
		lost += trace_lost(worker_trace(r->workers[i]));
	}
	if (f && fclose(f) && !ret)
		ret = -errno;
	if (ret)
		log_warn("cannot write --trace %s: %s", r->cfg->trace, strerror(-ret));
	if (lost)
		log_warn("--trace: %llu operations of %u clients are not in the file; raise --trace-max",
			 (unsigned long long)lost, s->target);
}
