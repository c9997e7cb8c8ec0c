/* SPDX-License-Identifier: BSD-2-Clause */
/* See connect_json.h. */
#include "loadgen/measurement/connect_json.h"

#include <sys/param.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/hist/latency_json.h"

static double latency_at(const struct hist *h, double percentile)
{
	return (double)(percentile < 100 ? hist_percentile(h, percentile) : hist_max(h));
}

static double mean_of(const struct hist *h)
{
	return hist_count(h) ? hist_mean(h) : 0;
}

/* No stage takes longer than its connection, so a stage's percentile never exceeds that of the whole. Percentiles of
 * stages do not add up, but their means do: the rest of the mean was spent outside the stages, waiting. */
bool connect_longest(struct hist *const *stages, const struct hist *total, double percentile, struct longest *out)
{
	double whole = latency_at(total, percentile), left = mean_of(total), most_mean = 0;

	*out = (struct longest){ .stage = STAGE_TIMED };
	if (hist_count(total) == 0 || whole <= 0)
		return false;
	for (int i = 0; i < STAGE_TIMED; i++) {
		double ns = hist_count(stages[i]) ? latency_at(stages[i], percentile) : 0;

		left -= mean_of(stages[i]);
		most_mean = MAX(most_mean, mean_of(stages[i]));
		if (ns > out->ns)
			*out = (struct longest){ .stage = (enum stage)i, .ns = ns, .share = ns / whole };
	}
	if (left > most_mean)
		*out = (struct longest){ .stage = STAGE_TIMED, .ns = left, .share = left / mean_of(total) };
	return true;
}

const char *connect_longest_name(const struct longest *l)
{
	return l->stage == STAGE_TIMED ? "waiting" : stage_names[l->stage];
}

json_t *connect_json(struct hist *const *stages, const struct hist *total, const struct hist *psn_generate)
{
	json_t *o = json_object();

	for (int i = 0; i < STAGE_TIMED; i++)
		json_object_set_new(o, stage_names[i], latency_json(stages[i]));
	if (psn_generate)
		json_object_set_new(o, "psn_generate", latency_json(psn_generate));
	json_object_set_new(o, "total", latency_json(total));
	return o;
}

static json_t *longest_json(struct hist *const *stages, const struct hist *total, double percentile)
{
	struct longest l;

	if (!hist_supports(total, percentile) || !connect_longest(stages, total, percentile, &l))
		return json_null();
	return json_pack("{s:s, s:o, s:o}", "stage", connect_longest_name(&l), "ns", json_whole(l.ns), "ratio",
			 json_number(l.share));
}

json_t *connect_longest_json(struct hist *const *stages, const struct hist *total)
{
	return json_pack("{s:o, s:o}", "p50", longest_json(stages, total, 50), "p99", longest_json(stages, total, 99));
}
