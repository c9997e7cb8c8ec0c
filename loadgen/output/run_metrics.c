/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_metrics.h. */
#include "loadgen/output/run_metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/metrics/exporter.h"
#include "common/metrics/exposition.h"
#include "loadgen/config/config.h"

#define WRITE_EVERY_NS (5 * NS_PER_S)

struct run_metrics {
	const struct loadgen_config *cfg;
	run_metrics_state *state;
	const void *arg;
	struct exporter *exporter;	/* NULL without --metrics */
	uint64_t written_ns;
	bool lost;			/* the file could not be written */
};

static const struct metric rows[] = {
#define ROW(suffix, text, ...) { .name = "rampart_run_" suffix, .type = METRIC_GAUGE, .help = text, __VA_ARGS__ }
#define MORE(suffix, ...) { .name = "rampart_run_" suffix, .type = METRIC_GAUGE, __VA_ARGS__ }
#define PERCENTILES(suffix, text, where) \
	ROW(suffix, text, .path = where ".p50", .labels = "percentile=\"50\"", .scale = 1e-9), \
	MORE(suffix, .path = where ".p99", .labels = "percentile=\"99\"", .scale = 1e-9), \
	MORE(suffix, .path = where ".p99_9", .labels = "percentile=\"99.9\"", .scale = 1e-9)
	ROW("step", "Number of the running step", .path = "step"),
	ROW("target_clients", "Clients that the running step wants to hold", .path = "target"),
	ROW("clients", "Clients by state: connecting, connected, failed in this step, or lost after connecting",
	    .path = "connecting", .labels = "state=\"connecting\""),
	MORE("clients", .path = "live", .labels = "state=\"connected\""),
	MORE("clients", .path = "failed", .labels = "state=\"failed\""),
	MORE("clients", .path = "dropped", .labels = "state=\"lost\""),
	ROW("offered_messages_per_second", "Rate that the running step offers (--rate)", .path = "offered_per_s"),
	ROW("messages_per_second", "Messages in the newest interval of the measured time",
	    .path = "interval.messages_per_s"),
	ROW("response_seconds", "Response time in the newest interval of the measured time",
	    .path = "interval.p50_ns", .labels = "percentile=\"50\"", .scale = 1e-9),
	MORE("response_seconds", .path = "interval.p99_ns", .labels = "percentile=\"99\"", .scale = 1e-9),
	ROW("cpus", "CPUs that the process of a side uses", .path = "cpus.server", .labels = "side=\"server\""),
	MORE("cpus", .path = "cpus.generator", .labels = "side=\"generator\""),
	ROW("steps_completed", "Steps that have ended", .path = "steps_done"),
	ROW("last_step_clients", "Clients of the step that ended last: wanted, and held",
	    .path = "last.target_clients", .labels = "state=\"target\""),
	MORE("last_step_clients", .path = "last.connected_held", .labels = "state=\"held\""),
	ROW("last_step_messages_per_second", "Messages of the step that ended last",
	    .path = "last.throughput_msgs_per_s"),
	ROW("last_step_bytes_per_second", "Bytes of the step that ended last", .path = "last.throughput_bytes_per_s"),
	PERCENTILES("last_step_response_seconds", "Response time of the step that ended last", "last.response_ns"),
	PERCENTILES("last_step_connect_seconds", "Time to connect of the step that ended last",
		    "last.connect_ns.total"),
	ROW("criteria", "Criteria of the verdict so far, by result", .path = "criteria", .label = "result"),
#undef ROW
#undef MORE
#undef PERCENTILES
};

char *run_metrics_text(const json_t *state, bool openmetrics, size_t *len)
{
	const char *phase = json_text_at(state, "phase");
	struct exposition *x;
	char label[64];

	if (!state || exposition_new(openmetrics, &x))
		return NULL;
	exposition_family(x, "rampart_run_phase", METRIC_GAUGE, "What the run is doing; the value is 1");
	exposition_sample(x, exposition_label("phase", phase ? phase : "", label, sizeof(label)), 1);
	exposition_add(x, rows, sizeof(rows) / sizeof(rows[0]), state);
	return exposition_end(x, len);
}

static char *document(void *arg, bool openmetrics, size_t *len)
{
	const struct run_metrics *m = arg;
	json_t *state = m->state(m->arg);
	char *text = run_metrics_text(state, openmetrics, len);

	json_decref(state);
	return text;
}

int run_metrics_new(const struct loadgen_config *cfg, struct ev_loop *loop, run_metrics_state *state, const void *arg,
		    struct run_metrics **out, char *err, size_t err_size)
{
	struct run_metrics *m;
	int ret = 0;

	*out = NULL;
	if (!cfg->metrics && !cfg->metrics_textfile)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m) {
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	*m = (struct run_metrics){ .cfg = cfg, .state = state, .arg = arg };
	if (cfg->metrics)
		ret = exporter_new(loop, &cfg->metrics_addr, document, m, &m->exporter, err, err_size);
	if (ret)
		free(m);
	else
		*out = m;
	return ret;
}

static int write_text(FILE *out, const void *text)
{
	return fputs(text, out) < 0 ? -EIO : 0;
}

void run_metrics_write(struct run_metrics *m, bool now)
{
	uint64_t now_ns = clock_now_ns();
	size_t len;
	char *text;
	int ret;

	if (!m || !m->cfg->metrics_textfile || m->lost || (!now && now_ns - m->written_ns < WRITE_EVERY_NS))
		return;
	m->written_ns = now_ns;
	text = document(m, false, &len);
	ret = text ? path_write(m->cfg->metrics_textfile, write_text, text) : -ENOMEM;
	free(text);
	if (!ret)
		return;
	m->lost = true;
	log_error("cannot write %s: %s", m->cfg->metrics_textfile, path_error(ret));
}

void run_metrics_free(struct run_metrics *m)
{
	if (m)
		exporter_free(m->exporter);
	free(m);
}
