/* SPDX-License-Identifier: BSD-2-Clause */
/* The latency object: percentiles only where the samples support them. */
#include "common/hist/latency_json.h"

#include "common/hist/hist.h"

static const struct {
	const char *name;
	double percentile;
} percentiles[] = {
	{ "p50", 50 }, { "p90", 90 }, { "p95", 95 }, { "p99", 99 }, { "p99_9", 99.9 }, { "p99_99", 99.99 },
};

json_t *latency_json(const struct hist *h)
{
	json_t *o = json_object();
	double p50 = (double)hist_percentile(h, 50);

	json_object_set_new(o, "count", json_integer((json_int_t)hist_count(h)));
	if (hist_count(h) == 0) {
		json_object_set_new(o, "min", json_null());
		json_object_set_new(o, "mean", json_null());
		json_object_set_new(o, "max", json_null());
	} else {
		json_object_set_new(o, "min", json_integer((json_int_t)hist_min(h)));
		json_object_set_new(o, "mean", json_real(hist_mean(h)));
		json_object_set_new(o, "max", json_integer((json_int_t)hist_max(h)));
	}
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
		double p = percentiles[i].percentile;

		json_object_set_new(o, percentiles[i].name, hist_supports(h, p) ?
				    json_integer((json_int_t)hist_percentile(h, p)) : json_null());
	}
	json_object_set_new(o, "jitter", hist_supports(h, 99) && p50 > 0 ?
			    json_real((double)hist_percentile(h, 99) / p50) : json_null());
	return o;
}
