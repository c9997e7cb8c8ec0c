/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a host's packed step (step_pack.c), which may be damaged, and adds it to a step. See step_pack.h.
 *
 * The packed step is first read into a step of its own and validated completely, so that adding it cannot fail. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/hist/hist_io.h"
#include "loadgen/measurement/network.h"
#include "loadgen/measurement/step.h"
#include "loadgen/measurement/step_fields.h"
#include "loadgen/measurement/step_pack.h"

/* Limits of a host's member "own". An honest host's member has a few KB and 5 levels of nesting. */
#define OWN_BYTES_MAX (256 << 10)
#define OWN_LEVELS_MAX 16

struct reader {
	struct step *step;		/* the members read so far; its `begin` stays empty */
	uint64_t window_ns;
	bool usage_known;
	uint32_t rank;
	int ret;			/* the first failure; 0: none */
	char *err;
	size_t err_size;
};

/* Keeps the first failure. Reading goes on after it, because each member is checked by itself. */
static void damaged(struct reader *r, const char *name, const char *form, ...) __attribute__((format(printf, 3, 4)));
static void damaged(struct reader *r, const char *name, const char *form, ...)
{
	char why[128];
	va_list args;

	if (r->ret)
		return;
	va_start(args, form);
	vsnprintf(why, sizeof(why), form, args);
	va_end(args);
	snprintf(r->err, r->err_size, "host %u handed in a damaged step: \"%.64s\" %s", r->rank, name, why);
	r->ret = -EINVAL;
}

static void fail(struct reader *r, int ret)
{
	if (!r->ret)
		r->ret = ret;
}

/* Numbers; damaged ones are read as 0 or false. */

static uint64_t get_whole(struct reader *r, const json_t *v, const char *name, uint64_t most)
{
	json_int_t n = json_integer_value(v);

	if (json_is_integer(v) && n >= 0 && (uint64_t)n <= most)
		return (uint64_t)n;
	damaged(r, name, "is not a whole number from 0 to %llu", (unsigned long long)most);
	return 0;
}

static double get_real(struct reader *r, const json_t *v, const char *name)
{
	double n = json_number_value(v);

	if (json_is_number(v) && n >= 0 && n <= STEP_REAL_MOST)
		return n;
	damaged(r, name, "is not a number from 0 to %g", STEP_REAL_MOST);
	return 0;
}

static bool get_flag(struct reader *r, const json_t *v, const char *name)
{
	if (!json_is_boolean(v))
		damaged(r, name, "is neither true nor false");
	return json_is_true(v);
}

static void get_value(struct reader *r, const struct step_field *f, const json_t *v, void *base, uint32_t i)
{
	if (f->type == STEP_REAL)
		step_field_set(f, base, i, get_real(r, v, f->name), 0);
	else if (f->type == STEP_FLAG)
		step_field_set(f, base, i, 0, get_flag(r, v, f->name));
	else
		step_field_set(f, base, i, 0, get_whole(r, v, f->name, step_field_most(f)));
}

static void get_fields(struct reader *r, const struct step_field *f, const json_t *o, void *base)
{
	for (; f->name; f++) {
		const json_t *v = json_object_get(o, f->name);

		if (f->n > 1 && json_array_size(v) != f->n)
			damaged(r, f->name, "is not an array of %u numbers", f->n);
		for (uint32_t i = 0; i < f->n; i++)
			get_value(r, f, f->n > 1 ? json_array_get(v, i) : v, base, i);
	}
}

static void get_hist(struct reader *r, const json_t *o, const char *name, struct hist *h)
{
	int ret = hist_unpack(json_object_get(o, name), h);

	if (ret == -EINVAL || hist_count(h) > STEP_WHOLE_MOST)
		damaged(r, name, "is not a histogram");
	fail(r, ret);
}

static void get_hists(struct reader *r, const json_t *o)
{
	char name[STEP_HIST_NAME];

	for (size_t i = 0; i < STEP_HISTS; i++)
		get_hist(r, o, step_hist_name(i, name), r->step->hists.all[i]);
}

static bool is_failure(const json_t *row, struct fail *f, uint64_t *count)
{
	json_int_t v[4];

	for (size_t i = 0; i < 4; i++) {
		if (!json_is_integer(json_array_get(row, i)))
			return false;
		v[i] = json_integer_value(json_array_get(row, i));
	}
	if (json_array_size(row) != 4 || v[0] < 0 || v[0] >= STAGE_N || v[1] < 0 || v[1] >= FAIL_KIND_N ||
	    v[2] < INT_MIN || v[2] > INT_MAX || v[3] < 0 || v[3] > (json_int_t)STEP_WHOLE_MOST)
		return false;
	*f = (struct fail){ .stage = (enum stage)v[0], .kind = (enum fail_kind)v[1], .code = (int)v[2] };
	*count = (uint64_t)v[3];
	return true;
}

static void get_failures(struct reader *r, const json_t *packed, const char *name, struct fail_table *t)
{
	const json_t *o = json_object_get(packed, name), *rows = json_object_get(o, "rows");
	size_t n = json_array_size(rows);
	uint64_t count;
	struct fail f;

	counter_set(&t->overflow, get_whole(r, json_object_get(o, "overflow"), name, STEP_WHOLE_MOST));
	if (!json_is_array(rows) || n > FAIL_TABLE_MAX) {
		damaged(r, name, "does not have 0 to %d rows", FAIL_TABLE_MAX);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!is_failure(json_array_get(rows, i), &f, &count)) {
			damaged(r, name, "has a row that is not a failure");
			return;
		}
		t->rows[i].fail = f.code == FAIL_CODE_OTHER ? f : fail_row(&f);
		counter_set(&t->rows[i].count, count);
	}
	t->n = (uint32_t)n;
}

static void get_streams(struct reader *r, const json_t *a)
{
	if (json_array_size(a) != WORKLOAD_STREAMS_MAX)
		damaged(r, "streams", "is not an array of %d elements", WORKLOAD_STREAMS_MAX);
	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++)
		get_fields(r, step_fairness_fields, json_array_get(a, i), &r->step->stream_fairness[i]);
}

/* Reads the parts of several servers; there must be as many as in the run's step. */
static void get_servers(struct reader *r, const json_t *a, uint32_t n)
{
	static const uint32_t none[TARGETS_MAX];
	struct step *s = r->step;

	if (!json_is_array(a) || json_array_size(a) != n || n > TARGETS_MAX)
		damaged(r, "servers", "is not an array of %u elements", n);
	if (n && !r->ret)
		fail(r, step_make_targets(s, n, none));
	for (uint32_t i = 0; i < n && !r->ret; i++) {
		const json_t *o = json_array_get(a, i);

		get_fields(r, step_target_fields, o, &s->targets[i]);
		get_hist(r, o, "total", s->targets[i].total);
		get_hist(r, o, "response", s->targets[i].response);
	}
}

static void get_intervals(struct reader *r, const json_t *a)
{
	const char *defect = intervals_unpack(a, &r->step->intervals);

	if (defect)
		damaged(r, "intervals", "%s", defect);
}

static void get_moment(struct reader *r, const json_t *o)
{
	get_fields(r, step_moment_fields, o, &r->step->end);
	r->window_ns = get_whole(r, json_object_get(o, "window_ns"), "window_ns", STEP_WHOLE_MOST);
	r->usage_known = get_flag(r, json_object_get(o, "usage_known"), "usage_known");
}

static json_t *get_network(struct reader *r, const json_t *packed, const char *name)
{
	json_t *side = json_object_get(packed, name);

	if (!side || !network_side_is_sound(side))
		damaged(r, name, "is not a host's network figures");
	return json_incref(side);
}

/* Checks that the packed step has the same size and repetition as `into`. */
static void check_identity(struct reader *r, const json_t *packed, const struct step *into)
{
	if (get_whole(r, json_object_get(packed, "pack"), "pack", STEP_WHOLE_MOST) != STEP_PACK_VERSION)
		damaged(r, "pack", "is not %d: that host runs another version", STEP_PACK_VERSION);
	if (get_whole(r, json_object_get(packed, "bytes"), "bytes", STEP_WHOLE_MOST) != into->bytes)
		damaged(r, "bytes", "is not that of the run's step");
	if (get_whole(r, json_object_get(packed, "repetition"), "repetition", UINT32_MAX) != into->repetition)
		damaged(r, "repetition", "is not that of the run's step");
}

/* True if `v` is nested no deeper than `levels`. */
static bool nests_within(json_t *v, unsigned levels)
{
	bool within = levels > 0 || !(json_is_object(v) || json_is_array(v));
	const char *name;
	json_t *inner;
	size_t i;

	if (!levels)
		return within;
	json_object_foreach(v, name, inner)
		within = within && nests_within(inner, levels - 1);
	json_array_foreach(v, i, inner)
		within = within && nests_within(inner, levels - 1);
	return within;
}

/* Checks the host's own figures: they are kept unchanged until the run ends and then written to run.json. */
static void check_own(struct reader *r, json_t *own)
{
	if (!json_is_object(own))
		damaged(r, "own", "is not an object");
	else if (!nests_within(own, OWN_LEVELS_MAX))
		damaged(r, "own", "is nested deeper than %d levels", OWN_LEVELS_MAX);
	else if (json_dumpb(own, NULL, 0, JSON_COMPACT) > OWN_BYTES_MAX)
		damaged(r, "own", "is longer than %d bytes", OWN_BYTES_MAX);
}

static void read_packed(struct reader *r, const json_t *packed, const struct step *into)
{
	struct step *s = r->step;

	check_identity(r, packed, into);
	get_fields(r, step_fields, json_object_get(packed, "figures"), s);
	get_moment(r, json_object_get(packed, "moment"));
	get_hists(r, json_object_get(packed, "hists"));
	get_failures(r, packed, "failures", &s->failures);
	get_failures(r, packed, "retried", &s->retried);
	get_fields(r, step_fairness_fields, json_object_get(packed, "fairness"), &s->fairness);
	get_fields(r, step_fairness_fields, json_object_get(packed, "qp_times"), &s->qp_times);
	get_streams(r, json_object_get(packed, "streams"));
	get_servers(r, json_object_get(packed, "servers"), into->n_targets);
	get_intervals(r, json_object_get(packed, "intervals"));
	s->hosts.network = get_network(r, packed, "network");
	s->hosts.connecting = get_network(r, packed, "connecting");
	check_own(r, json_object_get(packed, "own"));
}

/* Refuses sums that overflow 32 bits. 64-bit sums over STEP_HOSTS_MAX hosts cannot overflow. */
static void check_room(struct reader *r, const struct step *into)
{
	for (const struct step_field *f = step_fields; f->name; f++)
		if (f->type == STEP_U32 && f->rule == STEP_ADD && strcmp(f->name, "target") != 0 &&
		    step_field_get_whole(f, into, 0) + step_field_get_whole(f, r->step, 0) > UINT32_MAX)
			damaged(r, f->name, "makes the sum over the hosts greater than %u", UINT32_MAX);
	if (into->hosts.n == STEP_HOSTS_MAX || r->rank >= STEP_HOSTS_MAX)
		damaged(r, "pack", "is from more hosts than a step can hold: %d", STEP_HOSTS_MAX);
}

static void add_fields(const struct step_field *f, void *into, const void *from)
{
	for (; f->name; f++)
		for (uint32_t i = 0; i < f->n; i++) {
			uint64_t a = step_field_get_whole(f, into, i), b = step_field_get_whole(f, from, i);
			double x = step_field_get(f, into, i), y = step_field_get(f, from, i);

			step_field_set(f, into, i, f->rule == STEP_ADD ? x + y : fmax(x, y),
				       f->rule == STEP_ADD ? a + b : MAX(a, b));
		}
}

static void add_servers(struct step *into, const struct step *from)
{
	for (uint32_t i = 0; i < into->n_targets; i++) {
		add_fields(step_target_fields, &into->targets[i], &from->targets[i]);
		hist_add(into->targets[i].total, from->targets[i].total);
		hist_add(into->targets[i].response, from->targets[i].response);
	}
}

static void add_intervals(struct step *into, struct step *from)
{
	if (into->hosts.has_intervals)
		intervals_merge(&into->intervals, &from->intervals);
	else
		into->intervals = from->intervals;
	into->hosts.has_intervals = true;
}

static void add_moment(struct step *into, const struct reader *r)
{
	uint64_t window_ns = MAX(into->end.now_ns - into->begin.now_ns, r->window_ns);

	add_fields(step_moment_fields, &into->end, &r->step->end);
	into->begin.now_ns = window_ns ? 1 : 0;
	into->end.now_ns = into->begin.now_ns + window_ns;
	/* If one host could not read its usage, the sum is unknown. */
	into->hosts.usage_unknown |= !r->usage_known;
	into->begin.generator.rss_bytes = !into->hosts.usage_unknown;
	if (into->hosts.usage_unknown)
		into->end.generator.rss_bytes = 0;
}

static void replace(json_t **to, json_t *by)
{
	json_decref(*to);
	*to = by;
}

static void merge_host(struct step *into, const struct reader *r)
{
	struct step_hosts *h = &into->hosts;
	struct step *s = r->step;
	uint32_t target = into->target;

	add_fields(step_fields, into, s);
	into->target = target;
	h->clients += s->target;
	/* The hosts' parts add up to the rate only within rounding, but steps are identified by the exact rate. */
	if (into->rate)
		into->offered_per_s = (double)into->rate;
	add_moment(into, r);
	step_add_hists(into, &s->hists);
	fail_table_add(&into->failures, &s->failures);
	fail_table_add(&into->retried, &s->retried);
	step_add_fairness(&into->fairness, &s->fairness);
	step_add_fairness(&into->qp_times, &s->qp_times);
	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++)
		step_add_fairness(&into->stream_fairness[i], &s->stream_fairness[i]);
	add_servers(into, s);
	replace(&h->network, network_side_merge(h->network, s->hosts.network));
	replace(&h->connecting, network_side_merge(h->connecting, s->hosts.connecting));
	if (s->generator_saturated)
		h->saturated[r->rank / 8] |= (uint8_t)(1 << r->rank % 8);
	h->n++;
	/* A host without clients of this step measured nothing. */
	if (s->target)
		add_intervals(into, s);
	step_judge_steadiness(into);
}

int step_merge(struct step *into, uint32_t rank, const json_t *packed, char *err, size_t err_size)
{
	struct reader r = { .rank = rank, .err = err, .err_size = err_size };

	err[0] = '\0';
	r.ret = step_new(0, into->bytes, into->repetition, &r.step);
	if (!r.ret) {
		read_packed(&r, packed, into);
		check_room(&r, into);
	}
	if (!r.ret)
		merge_host(into, &r);
	if (r.ret == -ENOMEM)
		snprintf(err, err_size, "this machine is out of memory");
	step_free(r.step);
	return r.ret;
}

/* Copies the servers' reports, pools and peaks from the leader's step; the clients of each server are added by host. */
static int take_servers(struct step *s, const struct step *leader)
{
	static const uint32_t none[TARGETS_MAX];
	int ret = leader->n_targets ? step_make_targets(s, leader->n_targets, none) : 0;

	for (uint32_t i = 0; i < leader->n_targets && !ret; i++) {
		s->targets[i].pools = leader->targets[i].pools;
		s->targets[i].peak = leader->targets[i].peak;
		for (int k = 0; k < STEP_REPORT_N; k++)
			s->targets[i].reports[k] = json_incref(leader->targets[i].reports[k]);
	}
	return ret;
}

int step_merge_begin(const struct step *leader, uint32_t target, struct step **out)
{
	struct step *s;
	int ret = step_new(target, leader->bytes, leader->repetition, &s);

	if (ret)
		return ret;
	ret = take_servers(s, leader);
	if (ret) {
		step_free(s);
		return ret;
	}
	s->senders = 0;
	s->senders_of_all = leader->senders_of_all;
	s->rate = leader->rate;
	s->max_steal_ratio = leader->max_steal_ratio;
	s->server_connected = leader->server_connected;
	s->idle = leader->idle;
	s->server_ended = leader->server_ended;
	s->mark_lost = leader->mark_lost;
	s->pools = leader->pools;
	s->follow_up.tried = leader->follow_up.tried;
	s->follow_up.connected = leader->follow_up.connected;
	s->floor_of_server = leader->floor_of_server;
	s->peak[SIDE_SERVER] = leader->peak[SIDE_SERVER];
	s->begin.server = json_incref(leader->begin.server);
	s->end.server = json_incref(leader->end.server);
	s->marked = json_incref(leader->marked);
	s->baseline = json_incref(leader->baseline);
	s->held = json_incref(leader->held);
	s->after = json_incref(leader->after);
	*out = s;
	return 0;
}
