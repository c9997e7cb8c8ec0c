/* Memory against clients held. See memory.h. */
#include "loadgen/analysis/memory.h"

#include <math.h>

#include "common/base/json_at.h"
#include "loadgen/step/step.h"

/* Slope of a least-squares line through (clients held, the figure); NAN when it is not determined. */
static double slope(const json_t *steps, const char *path)
{
	double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, spread;
	json_t *step;
	size_t i;

	json_array_foreach((json_t *)steps, i, step) {
		double x = json_number_at(step, "connected_held"), y = json_number_at(step, path);

		if (!(x > 0) || !isfinite(y))
			continue;
		n++;
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	spread = n * sxx - sx * sx;
	return n >= 2 && spread > 0 ? (n * sxy - sx * sy) / spread : NAN;
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
