/* SPDX-License-Identifier: BSD-2-Clause */
/* See series.h. */
#include "loadgen/measurement/series.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"

#define PHASES_MAX 4096

const char *const series_side_names[SIDE_N] = { [SIDE_SERVER] = "server", [SIDE_GENERATOR] = "generator" };

/* CPU time of a thread: user and system. */
struct thread_time {
	double user_s, system_s;
};

struct row {
	double t_s, clock_s;
	double v[SAMPLE_N];
	struct thread_time thread[SAMPLE_THREADS_MAX];	/* indexed as struct side's columns */
};

/* A thread, identified by its name and its number among the threads of that name, from 0. */
struct column {
	char name[16];
	uint32_t which;
};

struct side {
	struct row *rows;		/* SERIES_MAX; NULL: only peaks are kept */
	uint32_t n;
	uint64_t came;			/* samples that arrived */
	uint64_t keep;			/* one sample in `keep` becomes a row */
	struct column columns[SAMPLE_THREADS_MAX];
	uint32_t n_columns;
	struct sample newest, before;
	struct series_peak peak;
};

struct series {
	struct side side[SIDES_MAX];
	json_t *phase_t_s, *phase_names;
};

static void clear_peak(struct series_peak *p)
{
	p->samples = 0;
	p->cpus = p->machine_busy_ratio = NAN;
	for (int i = 0; i < SAMPLE_N; i++)
		p->v[i] = NAN;
}

int series_new(struct series **out)
{
	struct series *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->phase_t_s = json_array();
	s->phase_names = json_array();
	for (int i = 0; i < SIDE_N; i++) {
		s->side[i].rows = malloc(SERIES_MAX * sizeof(struct row));
		s->side[i].keep = 1;
	}
	if (!s->side[0].rows || !s->side[1].rows || !s->phase_t_s || !s->phase_names) {
		series_free(s);
		return -ENOMEM;
	}
	series_begin_step(s);
	*out = s;
	return 0;
}

void series_free(struct series *s)
{
	if (!s)
		return;
	for (int i = 0; i < SIDE_N; i++)
		free(s->side[i].rows);
	json_decref(s->phase_t_s);
	json_decref(s->phase_names);
	free(s);
}

static double more(const struct side *side, enum sample_figure f)
{
	return side->newest.v[f] - side->before.v[f];
}

static double cpus(const struct side *side)
{
	double span_s = ((double)side->newest.taken_ns - (double)side->before.taken_ns) / 1e9;
	double used_s = more(side, SAMPLE_CPU_USER_S) + more(side, SAMPLE_CPU_SYSTEM_S);

	/* The CPU time falls if another server process took the place of the first. */
	return side->came > 1 && span_s > 0 && used_s >= 0 ? used_s / span_s : NAN;
}

static double machine_busy_ratio(const struct side *side)
{
	double busy = more(side, SAMPLE_MACHINE_USER_S) + more(side, SAMPLE_MACHINE_SYSTEM_S) +
		      more(side, SAMPLE_MACHINE_SOFTIRQ_S) + more(side, SAMPLE_MACHINE_STEAL_S);
	double idle = more(side, SAMPLE_MACHINE_IDLE_S);

	return side->came > 1 && busy >= 0 && idle >= 0 && busy + idle > 0 ? busy / (busy + idle) : NAN;
}

static void note_peak(struct side *side)
{
	struct series_peak *p = &side->peak;

	p->samples++;
	p->cpus = fmax(p->cpus, cpus(side));
	p->machine_busy_ratio = fmax(p->machine_busy_ratio, machine_busy_ratio(side));
	for (int i = 0; i < SAMPLE_N; i++)
		if (!sample_is_counter((enum sample_figure)i))
			p->v[i] = i == SAMPLE_AVAILABLE_BYTES ? fmin(p->v[i], side->newest.v[i]) :
				  fmax(p->v[i], side->newest.v[i]);
}

void series_begin_step(struct series *s)
{
	for (int i = 0; i < SIDES_MAX; i++)
		clear_peak(&s->side[i].peak);
}

const struct series_peak *series_peak(const struct series *s, enum series_side side)
{
	return &s->side[side].peak;
}

static json_t *figure_json(enum sample_figure f, double v)
{
	return f == SAMPLE_BUSIEST_CORE_RATIO || sample_is_counter(f) ? json_number(v) : json_whole(v);
}

json_t *series_peak_json(const struct series_peak *p)
{
	json_t *o;

	if (p->samples == 0)
		return json_null();
	o = json_pack("{s:I, s:o, s:o}", "samples", (json_int_t)p->samples, "cpus", json_number(p->cpus),
		      "machine_busy_ratio", json_number(p->machine_busy_ratio));
	for (int i = 0; i < SAMPLE_N; i++)
		if (!sample_is_counter((enum sample_figure)i))
			json_object_set_new(o, i == SAMPLE_AVAILABLE_BYTES ? "machine_available_least_bytes" :
					    sample_names[i], figure_json((enum sample_figure)i, p->v[i]));
	return o;
}

/* The column of the sample's thread `i`, added if the thread has none yet; SAMPLE_THREADS_MAX when there is no room. */
static uint32_t column_of(struct side *side, const struct sample *sample, uint32_t i)
{
	struct column c = { 0 };
	uint32_t at = 0;

	memcpy(c.name, sample->thread[i].name, sizeof(c.name));
	for (uint32_t k = 0; k < i; k++)
		c.which += strcmp(sample->thread[k].name, c.name) == 0;
	while (at < side->n_columns && (strcmp(side->columns[at].name, c.name) != 0 ||
					side->columns[at].which != c.which))
		at++;
	if (at == side->n_columns && at < SAMPLE_THREADS_MAX)
		side->columns[side->n_columns++] = c;
	return at;
}

static void keep_half(struct side *side)
{
	for (uint32_t i = 0; 2 * i < side->n; i++)
		side->rows[i] = side->rows[2 * i];
	side->n = (side->n + 1) / 2;
	side->keep *= 2;
}

static void keep_row(struct side *side, double t_s, const struct sample *sample)
{
	struct row *r;

	if (side->n == SERIES_MAX)
		keep_half(side);
	r = &side->rows[side->n++];
	r->t_s = t_s;
	r->clock_s = (double)sample->taken_ns / 1e9;
	memcpy(r->v, sample->v, sizeof(r->v));
	for (uint32_t i = 0; i < SAMPLE_THREADS_MAX; i++)
		r->thread[i].user_s = r->thread[i].system_s = NAN;
	for (uint32_t i = 0; i < sample->n_threads; i++) {
		uint32_t at = column_of(side, sample, i);

		if (at < SAMPLE_THREADS_MAX)
			r->thread[at] = (struct thread_time){ sample->thread[i].user_s, sample->thread[i].system_s };
	}
}

void series_add(struct series *s, enum series_side at, double t_s, const struct sample *sample)
{
	struct side *side = &s->side[at];

	side->before = side->newest;
	side->newest = *sample;
	if (side->came++ % (side->keep ? side->keep : 1) == 0 && side->rows)
		keep_row(side, t_s, sample);
	note_peak(side);
}

void series_phase(struct series *s, double t_s, const char *name)
{
	if (json_array_size(s->phase_names) >= PHASES_MAX)
		return;
	json_array_append_new(s->phase_t_s, json_number(t_s));
	json_array_append_new(s->phase_names, json_string(name));
}

double series_cpus(const struct series *s, enum series_side side)
{
	return cpus(&s->side[side]);
}

/* The numbers at `offset` of each row; those of a counter are relative to the first. */
static json_t *column_json(const struct side *side, size_t offset, bool counter, json_t *(*number)(double))
{
	json_t *a = json_array();
	double base = 0;
	bool based = !counter;

	for (uint32_t i = 0; i < side->n; i++) {
		double v;

		memcpy(&v, (const char *)&side->rows[i] + offset, sizeof(v));
		if (!based && isfinite(v)) {
			base = v;
			based = true;
		}
		json_array_append_new(a, number(v - base));
	}
	return a;
}

static bool is_whole(enum sample_figure f)
{
	size_t n = strlen(sample_names[f]);

	return f != SAMPLE_BUSIEST_CORE_RATIO && strcmp(sample_names[f] + n - 2, "_s") != 0;
}

static json_t *threads_json(const struct side *side)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < side->n_columns; i++) {
		size_t user = offsetof(struct row, thread) + i * sizeof(struct thread_time) +
			offsetof(struct thread_time, user_s);
		size_t system_ = user - offsetof(struct thread_time, user_s) + offsetof(struct thread_time, system_s);

		json_array_append_new(a, json_pack("{s:s, s:o, s:o}", "name", side->columns[i].name, "cpu_user_s",
						   column_json(side, user, true, json_number), "cpu_system_s",
						   column_json(side, system_, true, json_number)));
	}
	return a;
}

static json_t *side_json(const struct side *side)
{
	json_t *o;

	if (side->n == 0)
		return json_null();
	o = json_pack("{s:I, s:o, s:o}", "samples", (json_int_t)side->came, "t_s",
		      column_json(side, offsetof(struct row, t_s), false, json_number), "clock_s",
		      column_json(side, offsetof(struct row, clock_s), true, json_number));
	for (int i = 0; i < SAMPLE_N; i++)
		json_object_set_new(o, sample_names[i],
				    column_json(side, offsetof(struct row, v) + (size_t)i * sizeof(double),
						sample_is_counter((enum sample_figure)i),
						is_whole((enum sample_figure)i) ? json_whole : json_number));
	json_object_set_new(o, "by_thread", threads_json(side));
	return o;
}

json_t *series_json(const struct series *s, double interval_s)
{
	return json_pack("{s:f, s:{s:O, s:O}, s:o, s:o}", "interval_s", interval_s, "phases", "t_s", s->phase_t_s,
			 "name", s->phase_names, "server", side_json(&s->side[SIDE_SERVER]), "generator",
			 side_json(&s->side[SIDE_GENERATOR]));
}
