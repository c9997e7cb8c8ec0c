/* SPDX-License-Identifier: BSD-2-Clause */
/* See progress.h. */
#include "loadgen/ramp/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/utf8.h"
#include "common/hist/hist.h"
#include "loadgen/ramp/phases.h"
#include "loadgen/cluster/team.h"
#include "loadgen/traffic/workload.h"

#define PLAIN_INTERVAL_NS (5 * NS_PER_S)

static void traffic_text(const struct ramp *r, char *text, size_t size)
{
	const struct step *s = r->current.step;
	const struct hist *interval = r->current.interval;

	text[0] = '\0';
	if (r->phase != RAMP_MEASURE || s->intervals.n == 0 || r->cfg->wl->idle)
		return;
	snprintf(text, size, ", %.0f msgs/s", s->intervals.v[s->intervals.n - 1].messages_per_s);
	if (hist_count(interval))
		snprintf(text + strlen(text), size - strlen(text), ", p50 %.0f us",
			 (double)hist_percentile(interval, 50) / 1e3);
	if (hist_supports(interval, 99))
		snprintf(text + strlen(text), size - strlen(text), ", p99 %.0f us",
			 (double)hist_percentile(interval, 99) / 1e3);
}

/* The newest interval of the measured time; null outside it. */
static json_t *interval_json(const struct ramp *r)
{
	const struct step *s = r->current.step;
	const struct hist *interval = r->current.interval;

	if (!s || r->phase != RAMP_MEASURE || s->intervals.n == 0 || r->cfg->wl->idle)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "messages_per_s",
			 json_number(s->intervals.v[s->intervals.n - 1].messages_per_s), "p50_ns",
			 hist_count(interval) ? json_integer((json_int_t)hist_percentile(interval, 50)) : json_null(),
			 "p99_ns", hist_supports(interval, 99) ?
			 json_integer((json_int_t)hist_percentile(interval, 99)) : json_null());
}

static json_t *criteria_json(const json_t *verdict)
{
	json_t *counts = json_object(), *criterion;
	size_t i;

	json_array_foreach(verdict, i, criterion) {
		const char *result = json_text_at(criterion, "result");

		if (result)
			json_object_set_new(counts, result, json_integer(json_integer_value(
				json_object_get(counts, result)) + 1));
	}
	return counts;
}

json_t *progress_json(const void *ramp)
{
	const struct ramp *r = ramp;
	const struct step *s = r->current.step;
	const json_t *steps = r->outcome->steps;
	double server = series_cpus(r->outcome->series, SIDE_SERVER);
	double generator = series_cpus(r->outcome->series, SIDE_GENERATOR);
	json_t *o = json_pack("{s:s, s:i, s:I, s:o, s:o, s:I, s:{s:o, s:o}}", "phase", ramp_phase_name(r), "step",
			      (int)r->step_number, "steps_done", (json_int_t)json_array_size(steps), "interval",
			      interval_json(r), "criteria", criteria_json(r->outcome->verdict), "target",
			      (json_int_t)(s ? s->target : 0), "cpus", "server", json_number(server),
			      "generator", json_number(generator));

	if (o && s) {
		json_object_set_new(o, "connecting", json_integer((json_int_t)CREW_SUM(&r->crew, connecting)));
		json_object_set_new(o, "live", json_integer((json_int_t)CREW_SUM(&r->crew, live)));
		json_object_set_new(o, "failed", json_integer((json_int_t)CREW_SUM(&r->crew, failed)));
		json_object_set_new(o, "dropped", json_integer((json_int_t)CREW_SUM(&r->crew, dropped)));
		json_object_set_new(o, "offered_per_s", s->rate ? json_integer((json_int_t)s->rate) : json_null());
	}
	if (o && json_array_size(steps))
		json_object_set(o, "last", json_array_get(steps, json_array_size(steps) - 1));
	return o;
}

static void connect_text(const struct ramp *r, char *text, size_t size)
{
	double span_s = (double)(clock_now_ns() - r->current.connect_start_ns) / 1e9;

	text[0] = '\0';
	if (r->phase == RAMP_CONNECT && r->cfg->phased)
		snprintf(text, size, ", %llu through %s", (unsigned long long)CREW_SUM(&r->crew, through),
			 stage_names[r->current.upto]);
	else if (r->phase == RAMP_CONNECT && span_s > 0)
		snprintf(text, size, ", %.0f connects/s", (double)CREW_SUM(&r->crew, live) / span_s);
	else if (r->cfg->churn_per_s && r->phase == RAMP_MEASURE)
		snprintf(text, size, ", %llu came back", (unsigned long long)CREW_SUM(&r->crew, cycles));
}

/* CPU use of each side between its newest two samples. */
static void cpu_text(const struct ramp *r, char *text, size_t size)
{
	double server = series_cpus(r->outcome->series, SIDE_SERVER);
	double generator = series_cpus(r->outcome->series, SIDE_GENERATOR);

	text[0] = '\0';
	if (isfinite(server) && isfinite(generator))
		snprintf(text, size, ", CPU %.0f %% server, %.0f %% generator", 100 * server, 100 * generator);
	else if (isfinite(generator))
		snprintf(text, size, ", CPU %.0f %% generator", 100 * generator);
}

static void remaining_text(const struct ramp *r, char *text, size_t size)
{
	uint64_t total = r->phase == RAMP_MEASURE ? (r->cfg->cycles ? 0 : r->cfg->duration_ns) :
			 r->phase == RAMP_WARMUP ? r->cfg->warmup_ns : 0;
	double left_s = ((double)total - (double)(clock_now_ns() - r->phase_start_ns)) / 1e9;

	text[0] = '\0';
	if (total && left_s > 0 && !r->cfg->iterations)
		snprintf(text, size, ", %.0f s left", ceil(left_s));
}

/* A search shows no total, because the number of its probes is not known in advance. */
static void step_text(const struct ramp *r, char *text, size_t size)
{
	if (!team_leads(r->team))
		snprintf(text, size, "step %u", r->step_number);
	else if (loadgen_is_search(r->cfg))
		snprintf(text, size, "probe %u", r->agenda.step_index + 1);
	else
		snprintf(text, size, "step %u/%zu", r->agenda.step_index + 1, r->cfg->steps.n);
	if (loadgen_is_swept(r->cfg))
		snprintf(text + strlen(text), size - strlen(text), ", %llu/s offered",
			 (unsigned long long)r->current.step->rate);
}

/* With several hosts: the sums over all of them. */
static void hosts_text(const struct ramp *r, const char *step, char *line, size_t size)
{
	struct team_live all;

	team_total(r->team, &all);
	snprintf(line, size, "%u of %u hosts: %s, %u clients: %s: %llu connecting, %llu connected, %llu failed",
		 all.hosts, r->team->n, step, r->current.total, all.phase, (unsigned long long)all.connecting,
		 (unsigned long long)all.connected, (unsigned long long)all.failed);
	if (all.messages_per_s > 0)
		snprintf(line + strlen(line), size - strlen(line), ", %.0f msgs/s", all.messages_per_s);
}

/* Maximum length of a line: a line that wraps could not be rewritten. */
static int terminal_columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col : 80;
}

/* The line may contain text from the leader; utf8_show escapes it, so that it cannot control the terminal. */
static void print_progress(const char *line, bool terminal)
{
	char shown[400];
	size_t columns = (size_t)terminal_columns();

	if (terminal) {
		fputs("\r\033[K", stderr);
		fputs(utf8_show(line, shown, columns < sizeof(shown) ? columns : sizeof(shown)), stderr);
	} else {
		utf8_print_line(stderr, "%s", line);
	}
	fflush(stderr);
}

void progress_show(struct progress *p, const struct ramp *r, const char *phase)
{
	bool terminal = isatty(STDERR_FILENO);
	char step[64], traffic[96], connects[48], cpu[64], left[32], line[400];
	uint64_t now = clock_now_ns();

	if (p->quiet || (!terminal && now - p->last_ns < PLAIN_INTERVAL_NS))
		return;
	p->last_ns = now;
	if (!r->current.step) {
		snprintf(line, sizeof(line), "%s", phase);
	} else {
		traffic_text(r, traffic, sizeof(traffic));
		connect_text(r, connects, sizeof(connects));
		cpu_text(r, cpu, sizeof(cpu));
		remaining_text(r, left, sizeof(left));
		step_text(r, step, sizeof(step));
	}
	if (r->current.step && r->team) {
		hosts_text(r, step, line, sizeof(line));
	} else if (r->current.step) {
		snprintf(line, sizeof(line), "%s, %u clients: %s: %llu connecting, %llu connected, "
			 "%llu failed%s%s%s%s", step, r->current.step->target,
			 phase, (unsigned long long)CREW_SUM(&r->crew, connecting),
			 (unsigned long long)CREW_SUM(&r->crew, live),
			 (unsigned long long)(CREW_SUM(&r->crew, failed) + CREW_SUM(&r->crew, dropped)), connects,
			 traffic, cpu, left);
	}
	print_progress(line, terminal);
}

void progress_clear(const struct progress *p)
{
	if (!p->quiet && isatty(STDERR_FILENO)) {
		fprintf(stderr, "\r\033[K");
		fflush(stderr);
	}
}
