/* SPDX-License-Identifier: BSD-2-Clause */
/* The latency object: percentiles only where the samples support them. */
#include "common/hist/latency_json.h"

#include <math.h>

#include "common/base/json_at.h"
#include "common/hist/hist.h"

const struct latency_percentile latency_percentiles[LATENCY_PERCENTILES] = {
	{ "p50", 50 }, { "p90", 90 }, { "p95", 95 }, { "p99", 99 }, { "p99_9", 99.9 }, { "p99_99", 99.99 },
};

double latency_jitter(const struct hist *h)
{
	double p50 = (double)hist_percentile(h, 50);

	return hist_supports(h, 99) && p50 > 0 ? (double)hist_percentile(h, 99) / p50 : NAN;
}

json_t *latency_json(const struct hist *h)
{
	bool any = hist_count(h) > 0;
	json_t *o = json_object();

	json_object_set_new(o, "count", json_integer((json_int_t)hist_count(h)));
	json_object_set_new(o, "min", any ? json_integer((json_int_t)hist_min(h)) : json_null());
	json_object_set_new(o, "mean", any ? json_real(hist_mean(h)) : json_null());
	json_object_set_new(o, "max", any ? json_integer((json_int_t)hist_max(h)) : json_null());
	for (size_t i = 0; i < LATENCY_PERCENTILES; i++) {
		double p = latency_percentiles[i].percentile;

		json_object_set_new(o, latency_percentiles[i].name, hist_supports(h, p) ?
				    json_integer((json_int_t)hist_percentile(h, p)) : json_null());
	}
	json_object_set_new(o, "jitter", json_number(latency_jitter(h)));
	return o;
}
