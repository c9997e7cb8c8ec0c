/* Charts, drawn by gnuplot. See chart.h. */
#include "loadgen/report/chart/chart_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MS (60 * 1000)

/* The scripts of all charts that have something to show; drawn[i] says which. NULL when out of memory. */
static char *script_of(const struct chart *charts, size_t n, bool *drawn, size_t *size, bool *any)
{
	char *script = NULL;
	FILE *out = open_memstream(&script, size);

	if (!out)
		return NULL;
	*any = false;
	for (size_t i = 0; i < n; i++) {
		drawn[i] = chart_script_write(&charts[i], out);
		*any |= drawn[i];
	}
	if (ferror(out) | fclose(out)) {
		free(script);
		return NULL;
	}
	return script;
}

/* gnuplot stops at what it cannot draw, so that charts behind it are missing. */
static void take_svgs(const struct chart *charts, size_t n, const bool *drawn, const char *svgs, char **svg)
{
	static const char last[] = "</svg>";

	for (size_t i = 0; i < n; i++) {
		const char *end = drawn[i] ? strstr(svgs, last) : NULL;

		if (!drawn[i])
			continue;
		if (!end)
			return;
		svg[i] = chart_svg_clean(&charts[i], svgs, end);
		svgs = end + sizeof(last) - 1;
	}
}

int charts_draw(const struct chart *charts, size_t n, char **svg, char *err, size_t err_size)
{
	bool *drawn = calloc(n + 1, sizeof(*drawn)), any;
	char *script, *svgs = NULL;
	size_t size;
	int ret = -ENOMEM;

	memset(svg, 0, n * sizeof(*svg));
	snprintf(err, err_size, "out of memory, so there are no charts");
	script = drawn ? script_of(charts, n, drawn, &size, &any) : NULL;
	if (!script)
		goto out;
	ret = 0;
	err[0] = '\0';
	if (any)
		ret = chart_run(script, size, LIMIT_MS, &svgs, err, err_size);
	if (svgs)
		take_svgs(charts, n, drawn, svgs, svg);
out:
	free(svgs);
	free(script);
	free(drawn);
	return ret;
}
