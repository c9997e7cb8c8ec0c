/* Memory against clients held. See memory.h. */
#include "loadgen/analysis/memory.h"

#include <math.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"

/* Slope of the straight line through (clients held, the figure); NAN when it is not determined. */
static double slope(const json_t *steps, const char *path)
{
	double x[READ_STEPS_MAX], y[READ_STEPS_MAX];
	size_t n = MIN(json_array_size(steps), (size_t)READ_STEPS_MAX);

	for (size_t i = 0; i < n; i++) {
		x[i] = read_held(json_array_get(steps, i));
		y[i] = json_number_at(json_array_get(steps, i), path);
	}
	return stats_line(x, y, n).slope.value;
}

json_t *memory_analysis(const json_t *steps)
{
	double rss = slope(steps, "resources.server.rss_bytes");

	if (!isfinite(rss))
		return json_null();
	return json_pack("{s:f, s:o, s:o}", "server_rss_bytes_per_client", rss, "server_pinned_bytes_per_client",
			 json_number(slope(steps, "resources.server.pinned_bytes")), "machine_kernel_bytes_per_client",
			 json_number(slope(steps, "resources.server.machine_kernel_bytes")));
}
