/* Memory against clients held. See memory.h. */
#include "loadgen/analysis/memory.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"

/* Slope of the straight line through (clients held, the figure); NAN when it is not determined. */
static double slope(const json_t *steps, const char *path)
{
	size_t i, n = 0, most = json_array_size(steps);
	double *x = calloc(2 * most + 1, sizeof(*x)), *y = x ? x + most : NULL, slope = NAN;
	json_t *step;

	json_array_foreach((json_t *)(x ? steps : NULL), i, step) {
		x[n] = read_held(step);
		y[n++] = json_number_at(step, path);
	}
	if (x)
		slope = stats_line(x, y, n).slope.value;
	free(x);
	return slope;
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
