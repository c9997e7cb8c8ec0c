/* SPDX-License-Identifier: BSD-2-Clause */
/* Packs a host's step. See step_pack.h; step_merge.c reads the result. */
#include "loadgen/measurement/step_pack.h"

#include "common/base/counter.h"
#include "common/hist/hist_io.h"
#include "loadgen/measurement/network.h"
#include "loadgen/measurement/step.h"
#include "loadgen/measurement/step_fields.h"

static json_t *value_json(const struct step_field *f, const void *base, uint32_t i)
{
	uint64_t whole = step_field_get_whole(f, base, i), most = step_field_most(f);

	if (f->type == STEP_REAL)
		return json_real(step_field_get(f, base, i));
	if (f->type == STEP_FLAG)
		return json_boolean(whole);
	return json_integer((json_int_t)(whole < most ? whole : most));
}

static json_t *fields_json(const struct step_field *f, const void *base)
{
	json_t *o = json_object(), *a;

	for (; f->name; f++) {
		if (f->n == 1) {
			json_object_set_new(o, f->name, value_json(f, base, 0));
			continue;
		}
		a = json_array();
		for (uint32_t i = 0; i < f->n; i++)
			json_array_append_new(a, value_json(f, base, i));
		json_object_set_new(o, f->name, a);
	}
	return o;
}

static json_t *hists_json(const struct step *s)
{
	json_t *o = json_object();
	char name[STEP_HIST_NAME];

	for (size_t i = 0; i < STEP_HISTS; i++)
		json_object_set_new(o, step_hist_name(i, name), hist_pack(s->hists.all[i]));
	return o;
}

/* Each row is [stage, kind, code, count]. */
static json_t *failures_json(const struct fail_table *t)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < t->n; i++) {
		const struct fail *f = &t->rows[i].fail;

		json_array_append_new(rows, json_pack("[i, i, i, I]", (int)f->stage, (int)f->kind, f->code,
						      (json_int_t)counter_get(&t->rows[i].count)));
	}
	return json_pack("{s:o, s:I}", "rows", rows, "overflow", (json_int_t)counter_get(&t->overflow));
}

static json_t *streams_json(const struct step *s)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < WORKLOAD_STREAMS_MAX; i++)
		json_array_append_new(a, fields_json(step_fairness_fields, &s->stream_fairness[i]));
	return a;
}

/* One element for each of several servers. */
static json_t *servers_json(const struct step *s)
{
	json_t *a = json_array(), *o;

	for (uint32_t i = 0; i < s->n_targets; i++) {
		o = fields_json(step_target_fields, &s->targets[i]);
		json_object_set_new(o, "total", hist_pack(s->targets[i].total));
		json_object_set_new(o, "response", hist_pack(s->targets[i].response));
		json_array_append_new(a, o);
	}
	return a;
}

/* Counters are packed as their growth over the measured time, gauges as their value at its end, and unknown values as
 * 0. */
static json_t *moment_json(const struct step *s)
{
	const struct step_moment *a = &s->begin, *b = &s->end;
	bool whole = a->now_ns > 0 && b->now_ns >= a->now_ns, known = whole && step_has_usage(a) && step_has_usage(b);
	struct step_moment from = whole ? *a : *b, grown = { .now_ns = 0 };
	json_t *o;

	from.generator.rss_bytes = from.generator.fds = from.generator.threads = 0;
	if (!known)
		from.generator = b->generator;
	for (const struct step_field *f = step_moment_fields; f->name; f++)
		step_field_set(f, &grown, 0, 0, step_field_get_whole(f, b, 0) - step_field_get_whole(f, &from, 0));
	o = fields_json(step_moment_fields, &grown);
	json_object_set_new(o, "window_ns", json_integer(whole ? (json_int_t)(b->now_ns - a->now_ns) : 0));
	json_object_set_new(o, "usage_known", json_boolean(known));
	return o;
}

static json_t *network_json(const json_t *begin, const json_t *end, bool loopback)
{
	json_t *side = network_side_json(begin, end, loopback);

	if (json_is_object(side))
		json_object_del(side, "ports");
	return side;
}

/* Leaves out the server's reports, which only the leader has. */
static json_t *own_json(const struct step *s, const struct loadgen_config *cfg, struct worker *const *workers,
			uint32_t n_workers)
{
	json_t *own = step_json(s, cfg, workers, n_workers);

	if (own) {
		json_object_del(own, "servers");
		json_object_set_new(own, "server_before", json_null());
		json_object_set_new(own, "server_after", json_null());
		json_object_set_new(own, "server_stages_ns", json_null());
		json_object_set_new(json_object_get(own, "connect_cpu_ns_per_client"), "server", json_null());
	}
	return own;
}

json_t *step_pack(const struct step *s, const struct loadgen_config *cfg, struct worker *const *workers,
		  uint32_t n_workers)
{
	return json_pack("{s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "pack", STEP_PACK_VERSION,
			 "bytes", (json_int_t)s->bytes, "repetition", (json_int_t)s->repetition,
			 "figures", fields_json(step_fields, s), "moment", moment_json(s), "hists", hists_json(s),
			 "failures", failures_json(&s->failures), "retried", failures_json(&s->retried),
			 "fairness", fields_json(step_fairness_fields, &s->fairness),
			 "qp_times", fields_json(step_fairness_fields, &s->qp_times), "streams", streams_json(s),
			 "servers", servers_json(s), "intervals", intervals_pack(&s->intervals),
			 "network", network_json(s->begin.network, s->end.network, s->loopback),
			 "connecting", network_json(s->network_marked, s->network_connected, s->loopback),
			 "own", own_json(s, cfg, workers, n_workers));
}
