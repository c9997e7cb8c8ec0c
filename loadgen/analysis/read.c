/* SPDX-License-Identifier: BSD-2-Clause */
/* See read.h and docs/results.md. */
#include "loadgen/analysis/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/json_at.h"

double read_amount(const json_t *o, const char *path)
{
	double v = json_number_at(o, path);

	return v >= 0 && v <= READ_AMOUNT_MAX ? v : NAN;
}

size_t read_n_steps(const json_t *run)
{
	return MIN(json_array_size(json_object_get(run, "steps")), (size_t)READ_STEPS_MAX);
}

const json_t *read_step(const json_t *run, size_t i)
{
	return json_array_get(json_object_get(run, "steps"), i);
}

double read_held(const json_t *step)
{
	double held = read_amount(step, "connected_held");

	return held >= 1 ? held : NAN;
}

bool read_is_measured(const json_t *step)
{
	return read_amount(step, "measured_s") > 0 && isfinite(read_held(step));
}

bool read_has_flag(const json_t *step, enum validity flag)
{
	const json_t *flags = json_object_get(step, "validity");

	for (size_t i = 0; i < json_array_size(flags); i++) {
		const char *has = json_string_value(json_array_get(flags, i));

		if (has && strcmp(has, validity_flags[flag].name) == 0)
			return true;
	}
	return false;
}

bool read_shares_machine(const json_t *run)
{
	for (size_t i = 0; i < read_n_steps(run); i++)
		if (read_has_flag(read_step(run, i), VALIDITY_server_and_generator_share_the_machine))
			return true;
	return false;
}

const char *read_host_name(const json_t *hosts, uint32_t rank, char text[READ_NAMES_MAX])
{
	const char *name = json_text_at(json_array_get(hosts, rank), "name");

	if (name && *name)
		snprintf(text, READ_NAMES_MAX, "%s", name);
	else
		snprintf(text, READ_NAMES_MAX, "host %u", rank);
	return text;
}

const char *read_saturated_hosts(const json_t *hosts, const json_t *step, char text[READ_NAMES_MAX])
{
	const json_t *ranks = json_object_get(step, "saturated_hosts");
	size_t used = 0, n = json_array_size(ranks);
	char name[READ_NAMES_MAX];

	text[0] = '\0';
	for (size_t i = 0; i < n && json_array_size(hosts) > 1; i++) {
		json_int_t rank = json_integer_value(json_array_get(ranks, i));

		if (rank < 0 || rank >= (json_int_t)json_array_size(hosts))
			continue;
		read_host_name(hosts, (uint32_t)rank, name);
		/* If not all names fit, give the first ones and the number of the rest. */
		if (used + strlen(name) + 24 > READ_NAMES_MAX) {
			snprintf(text + used, READ_NAMES_MAX - used, " and %zu more", n - i);
			break;
		}
		used += (size_t)snprintf(text + used, READ_NAMES_MAX - used, "%s%s", used ? ", " : "", name);
	}
	return text;
}

const char *read_hosts_at_limit(const json_t *hosts, const json_t *steps, double clients, char text[READ_NAMES_MAX])
{
	const json_t *least = NULL;

	for (size_t i = 0; i < json_array_size(steps); i++) {
		const json_t *step = json_array_get(steps, i);
		double n = read_amount(step, "target_clients");

		if (n >= clients && json_array_size(json_object_get(step, "saturated_hosts")) &&
		    !(least && read_amount(least, "target_clients") <= n))
			least = step;
	}
	return read_saturated_hosts(hosts, least, text);
}

double read_cores(const json_t *step, const char *side)
{
	const json_t *r = json_object_get(json_object_get(step, "resources"), side);
	double s = strcmp(side, "machine") == 0 ? read_amount(r, "busy_s")
						: read_amount(r, "cpu_user_s") + read_amount(r, "cpu_system_s");

	return s / read_amount(r, "window_s");
}

struct estimate read_throughput_mean(const json_t *step, size_t *n)
{
	const json_t *intervals = json_object_get(step, "intervals");
	double v[READ_INTERVALS_MAX];
	struct estimate mean;
	size_t known = 0;

	for (size_t i = 0; i < json_array_size(intervals) && known < READ_INTERVALS_MAX; i++) {
		v[known] = read_amount(json_array_get(intervals, i), "messages_per_s");
		known += isfinite(v[known]);
	}
	if (n)
		*n = known;
	mean = stats_series_mean(v, known);
	if (mean.low < 0)
		mean.low = 0; /* no rate is negative */
	return mean;
}

json_t *read_estimate_json(struct estimate e)
{
	return json_pack("{s:o, s:o, s:o}", "value", json_number(e.value), "low", json_number(e.low), "high",
			 json_number(e.high));
}

static double gauge(const json_t *step, const char *side, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "resources.%s.%s", side, name);
	return read_amount(step, path);
}

static double kernel_growth(const json_t *step)
{
	double now = read_amount(step, "resources.server.machine_kernel_bytes");
	double before = read_amount(step, "server_before.resources.machine_kernel_bytes");

	return now < before ? 0 : now - before;
}

/* NAN if any part of the figure is unknown. */
static double figure_of(const json_t *step, const struct read_figure *f)
{
	double v = 0;

	if (f->path)
		return read_amount(step, f->path);
	if (f->server)
		v += gauge(step, "server", f->name);
	if (f->generator)
		v += gauge(step, "generator", f->name);
	if (f->kernel_share > 0)
		v += f->kernel_share * kernel_growth(step);
	return v;
}

void read_use(const json_t *run, const struct read_figure *f, struct read_use *out)
{
	double x[READ_STEPS_MAX], y[READ_STEPS_MAX];
	size_t n = 0;

	out->most = out->clients = NAN;
	for (size_t i = 0; i < read_n_steps(run); i++) {
		double held = read_held(read_step(run, i)), v = figure_of(read_step(run, i), f);

		if (!isfinite(held) || !isfinite(v))
			continue;
		out->most = fmax(out->most, v);
		if (held < out->clients)
			continue;
		out->clients = x[n] = held;
		y[n++] = v;
	}
	out->line = stats_line(x, y, n);
}

/* Slope of the straight line through (clients held, the figure); NAN when it is not determined. */
static double growth(const json_t *steps, const char *path)
{
	double x[READ_STEPS_MAX], y[READ_STEPS_MAX];
	size_t n = MIN(json_array_size(steps), (size_t)READ_STEPS_MAX);

	for (size_t i = 0; i < n; i++) {
		x[i] = read_held(json_array_get(steps, i));
		y[i] = json_number_at(json_array_get(steps, i), path);
	}
	return stats_line(x, y, n).slope.value;
}

json_t *read_memory_growth_json(const json_t *steps)
{
	double rss = growth(steps, "resources.server.rss_bytes");

	if (!isfinite(rss))
		return json_null();
	return json_pack("{s:f, s:o, s:o}", "server_rss_bytes_per_client", rss, "server_pinned_bytes_per_client",
			 json_number(growth(steps, "resources.server.pinned_bytes")), "machine_kernel_bytes_per_client",
			 json_number(growth(steps, "resources.server.machine_kernel_bytes")));
}
