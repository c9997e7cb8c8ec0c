/* SPDX-License-Identifier: BSD-2-Clause */
/* See resource_floors.h. */
#include "loadgen/verdict/resource_floors.h"

#include <math.h>
#include <stdio.h>

#define MIB 1048576.0

void floors_init(struct floors *f, uint64_t memory_percent, uint64_t cpu_percent, bool same_machine)
{
	*f = (struct floors){ .memory_ratio = (double)memory_percent / 100, .cpu_ratio = (double)cpu_percent / 100,
			      .same_machine = same_machine };
	for (int i = 0; i < FLOORS_HOSTS; i++)
		f->of[i].memory_bytes = f->of[i].cpus = NAN;
}

void floors_set_limits(struct floors *f, enum floors_host host, double memory_bytes, double cpus)
{
	f->of[host].memory_bytes = memory_bytes;
	f->of[host].cpus = cpus;
}

static const char *machine_of(const struct floors *f, enum floors_host host)
{
	if (f->same_machine)
		return "the machine of server and generator";
	return host == FLOORS_GENERATOR ? "the generator's machine" : "the server's machine";
}

static bool is_short_of_memory(const struct floors *f, enum floors_host host, const struct sample *s, char *text,
			       size_t size)
{
	double all = f->of[host].memory_bytes, left = s->v[SAMPLE_AVAILABLE_BYTES];

	/* A comparison with NAN (not known) is false, so an unknown figure is never below the floor. */
	if (!(all > 0) || !(left < f->memory_ratio * all))
		return false;
	snprintf(text, size, "%s has %.1f %% of its memory left, %.0f of %.0f MiB: less than --memory-floor %.0f %%",
		 machine_of(f, host), 100 * left / all, left / MIB, all / MIB, 100 * f->memory_ratio);
	return true;
}

bool floors_memory_was_short(const struct floors *f, enum floors_host host, double least_bytes, char *text, size_t size)
{
	double all = f->of[host].memory_bytes;

	text[0] = '\0';
	if (!(all > 0) || !(least_bytes < fmin(FLOORS_SHORT_RATIO * all, FLOORS_SHORT_BYTES)))
		return false;
	snprintf(text, size, "%s had only %.1f %% of its memory left, %.0f of %.0f MiB", machine_of(f, host),
		 100 * least_bytes / all, least_bytes / MIB, all / MIB);
	return true;
}

static double busy_of(const struct sample *s)
{
	return s->v[SAMPLE_MACHINE_USER_S] + s->v[SAMPLE_MACHINE_SYSTEM_S] + s->v[SAMPLE_MACHINE_SOFTIRQ_S] +
	       s->v[SAMPLE_MACHINE_STEAL_S];
}

static bool is_short_of_cpu(struct floors *f, enum floors_host host, const struct sample *s, char *text, size_t size)
{
	double busy = busy_of(s) - f->of[host].busy_s, idle = s->v[SAMPLE_MACHINE_IDLE_S] - f->of[host].idle_s;
	double group_s = s->v[SAMPLE_CGROUP_CPU_S] - f->of[host].group_s, quota_s, left, unused;
	bool begins = !f->of[host].since_ns || s->taken_ns < f->of[host].since_ns;

	if (!begins && s->taken_ns - f->of[host].since_ns < FLOORS_CPU_NS)
		return false;
	quota_s = f->of[host].cpus * (double)(s->taken_ns - f->of[host].since_ns) / 1e9;
	left = busy + idle > 0 ? fmax(idle / (busy + idle), 0) : NAN;
	/* CPU quota left over from one period may be used in the next, so group_s / quota_s may be just above 1. */
	unused = quota_s > 0 && group_s >= 0 ? fmax(1 - group_s / quota_s, 0) : NAN;
	f->of[host].group_s = s->v[SAMPLE_CGROUP_CPU_S];
	f->of[host].since_ns = s->taken_ns;
	f->of[host].busy_s = busy_of(s);
	f->of[host].idle_s = s->v[SAMPLE_MACHINE_IDLE_S];
	if (begins || !(fmin(left, unused) < f->cpu_ratio))
		return false;
	if (unused < f->cpu_ratio)
		snprintf(text, size, "%s: the control group left %.1f %% of its CPU quota unused: less than "
			 "--cpu-floor %.0f %%", machine_of(f, host), 100 * unused, 100 * f->cpu_ratio);
	else
		snprintf(text, size, "%s was idle for %.1f %% of its CPU time: less than --cpu-floor %.0f %%",
			 machine_of(f, host), 100 * left, 100 * f->cpu_ratio);
	return true;
}

enum stop_reason floors_judge(struct floors *f, enum floors_host host, const struct sample *s, char *text, size_t size)
{
	text[0] = '\0';
	if (f->memory_ratio > 0 && is_short_of_memory(f, host, s, text, size))
		return STOP_MEMORY_FLOOR;
	if (f->cpu_ratio > 0 && is_short_of_cpu(f, host, s, text, size))
		return STOP_CPU_FLOOR;
	return STOP_NOT;
}
