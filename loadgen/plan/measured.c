/* SPDX-License-Identifier: BSD-2-Clause */
/* CPU time in an earlier run. See measured.h.
 *
 * A connection's CPU time is what a side used between its first and last sample of the last phase "connecting", for
 * each client that connected in between. If that phase has fewer than two samples, because connections were few or
 * fast, the time is not known. */
#include "loadgen/plan/measured.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"
#include "loadgen/report/input/source.h"

void measured_init(struct measured *m)
{
	const struct measured_side unknown = { NAN, NAN };

	*m = (struct measured){ NAN, unknown, unknown };
}

double measured_cpus(const struct measured_side *s, double messages_per_s, double churn_per_s)
{
	return messages_per_s * s->s_per_message + (churn_per_s > 0 ? churn_per_s * s->s_per_connection : 0);
}

static double at(const json_t *array, size_t i)
{
	const json_t *v = json_array_get(array, i);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Begin and end of the last phase "connecting". False: there is none that ended. */
static bool find_connecting(const json_t *run, double *begin_s, double *end_s)
{
	const json_t *phases = json_at(run, "resources_series.phases"), *t = json_object_get(phases, "t_s");
	const json_t *names = json_object_get(phases, "name");

	for (size_t i = json_array_size(names); i-- > 1;) {
		const char *name = json_string_value(json_array_get(names, i - 1));

		*begin_s = at(t, i - 1);
		*end_s = at(t, i);
		if (name && strcmp(name, "connecting") == 0)
			return *end_s > *begin_s;
	}
	return false;
}

static double connection_s(const json_t *run, const char *side)
{
	const json_t *s = json_object_get(json_object_get(run, "resources_series"), side);
	const json_t *t = json_object_get(s, "t_s"), *user = json_object_get(s, "cpu_user_s"),
		*system = json_object_get(s, "cpu_system_s"), *clients = json_object_get(s, "clients_connected");
	double begin_s, end_s, cpu, came;
	size_t first = 0, last = json_array_size(t);

	if (!find_connecting(run, &begin_s, &end_s))
		return NAN;
	while (first < last && !(at(t, first) >= begin_s))
		first++;
	while (last > first && !(at(t, last - 1) <= end_s))
		last--;
	if (last - first < 2)
		return NAN;
	cpu = at(user, last - 1) + at(system, last - 1) - at(user, first) - at(system, first);
	came = at(clients, last - 1) - at(clients, first);
	return cpu >= 0 && came >= 1 ? cpu / came : NAN;
}

static bool is_as_planned(const json_t *run, const char *path, const char *planned)
{
	const char *had = json_text_at(run, path);

	return had && strcmp(had, planned) == 0;
}

/* The step with the most clients whose CPU time is known. */
static const json_t *find_step(const json_t *run, double message_bytes)
{
	const json_t *best = NULL;

	for (size_t i = 0; i < read_n_steps(run); i++) {
		const json_t *step = read_step(run, i);

		if (read_amount(step, "message_bytes") == message_bytes && read_cores(step, "server") > 0 &&
		    read_cores(step, "generator") > 0 && read_amount(step, "throughput_msgs_per_s") > 0 &&
		    !(best && read_held(best) > read_held(step)))
			best = step;
	}
	return best;
}

int measured_read(const json_t *run, const struct loadgen_config *cfg, struct measured *out, char *err,
		  size_t err_size)
{
	const char *transport = transport_names[cfg->transport], *workload = loadgen_workload_names[cfg->workload];
	const json_t *step = find_step(run, (double)cfg->message_bytes);
	double rate = read_amount(step, "throughput_msgs_per_s");

	if (!is_as_planned(run, "config.transport", transport) || !is_as_planned(run, "config.workload", workload)) {
		snprintf(err, err_size, "--from: the run must have the planned --transport %s and --workload %s",
			 transport, workload);
		return -EINVAL;
	}
	if (!step) {
		snprintf(err, err_size, "--from: the run has no step with the planned --message-size %llu and a "
			 "known CPU time", (unsigned long long)cfg->message_bytes);
		return -EINVAL;
	}
	out->messages_per_s = rate;
	out->server = (struct measured_side){ read_cores(step, "server") / rate, connection_s(run, "server") };
	out->generator = (struct measured_side){ read_cores(step, "generator") / rate,
						 connection_s(run, "generator") };
	return 0;
}

int measured_open(const char *dir, const struct loadgen_config *cfg, struct measured *out, char *err, size_t err_size)
{
	struct source *source;
	int ret = source_open(dir, &source, err, err_size);

	if (ret)
		return ret;
	ret = measured_read(source->run, cfg, out, err, err_size);
	source_close(source);
	return ret;
}
