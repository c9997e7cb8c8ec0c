/* Parts of chart.c: scales, the script for gnuplot, its run, and what is made of its SVG. */
#ifndef RAMPART_LOADGEN_REPORT_CHART_INTERNAL_H
#define RAMPART_LOADGEN_REPORT_CHART_INTERNAL_H

#include "loadgen/report/chart/chart.h"

#include <stdint.h>
#include <stdio.h>

/* --- chart_scale.c: what an axis shows --- */

#define CHART_TICKS_MAX 16

struct chart_scale {
	bool used, log;
	double lo, hi;
	size_t n_ticks;
	double ticks[CHART_TICKS_MAX];
	char labels[CHART_TICKS_MAX][24];
};

/* May `v` be drawn on such an axis? Not NAN, and within what its numbers can tell apart. */
bool chart_drawable(double v, bool log);
/* Widens a scale to show `v`, if it is drawable. Begin with one of zeros but for `log`. */
void chart_scale_widen(struct chart_scale *s, double v);
/* Rounds the ends to be good to read, with 0 as one of them if `from_zero`, and sets at most `ticks` ticks. */
void chart_scale_round(struct chart_scale *s, bool from_zero, size_t ticks);
/* The same for 1 / (1 - quantile). */
void chart_scale_round_percentile(struct chart_scale *s);

/* --- chart_layout.c: what is to be seen, and where --- */

/* In the SVG's units, of which the page shows 640 in up to 736 pixels or, on a phone, in some 330: there letters are 20
 * units high instead of 12 (style.h), and there is room for those. */
#define CHART_WIDTH 640
#define CHART_PLOT_HEIGHT 270
#define CHART_LINE_HEIGHT 26

struct chart_layout {
	struct chart_scale x, y, right;
	double left, right_edge, top, bottom, height;	/* of what surrounds the plot, and of all */
	size_t legend, legend_rows;			/* series that are named, and in how many lines */
	size_t each_category;				/* every n-th is named, */
	bool angled;					/* and those stand at an angle */
};

/* False where the chart has no point to show. */
bool chart_layout_set(struct chart_layout *l, const struct chart *c);

size_t chart_categories(const struct chart *c);
/* Which category a point of a stack stands on; CHART_CATEGORIES_MAX: none. */
size_t chart_category_of(double x);
/* Is there a point at i, and how many are there? */
bool chart_point_at(const struct chart_layout *l, const struct chart_series *s, size_t i);
size_t chart_points(const struct chart_layout *l, const struct chart_series *s);
/* Are its points drawn as boxes? A histogram of one point has none. */
bool chart_is_boxes(const struct chart_series *s);

/* No word of a chart gets to gnuplot, which would take some for commands: placeholders do, a letter and an index, and
 * x to the length of the word. chart_svg.c puts the words in. */
enum chart_word {
	CHART_WORD_SERIES = 'S', CHART_WORD_RULE = 'R', CHART_WORD_CATEGORY = 'C',
	CHART_WORD_X = 'X', CHART_WORD_Y = 'Y', CHART_WORD_RIGHT = 'Z',
	CHART_WORD_RULE_LESS = 'L', CHART_WORD_RULE_MORE = 'M',	/* of one that lies off the chart */
};

/* What a placeholder stands for, and how many characters of it are shown; "" and 0 where there is nothing. */
const char *chart_word(const struct chart *c, enum chart_word kind, size_t i, size_t *shown);
/* Its characters with what is put behind it: a series' axis. */
#define CHART_ON_THE_RIGHT " (right)"
size_t chart_word_length(const struct chart *c, enum chart_word kind, size_t i);

/* --- chart_script.c --- */

/* Colours by which an SVG's parts are known: the red of all, the green of a kind; the blue says which. */
#define CHART_RGB_RED 10
#define CHART_RGB_SERIES 11	/* blue: 0 to CHART_COLOURS - 1 */
#define CHART_RGB_PART 12	/* blue: one of these */
enum chart_part { CHART_PART_TEXT, CHART_PART_AXIS, CHART_PART_GRID, CHART_PART_BAD, CHART_PART_GHOST, CHART_PART_PAGE,
		  CHART_PARTS };
#define CHART_COLOURS 8

/* Writes what draws the chart to gnuplot's standard output. False, and nothing written, where it has no point. */
bool chart_script_write(const struct chart *c, FILE *out);

/* --- chart_run.c --- */

/* Runs gnuplot with what `script` holds, for `limit_ms` at most. *svgs: what it wrote, the caller's to free, even if it
 * failed then. 0, or -errno with a line in `err`. */
int chart_run(const char *script, size_t n, int64_t limit_ms, char **svgs, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* --- chart_svg.c --- */

/* The chart's SVG for a page, from gnuplot's. NULL if it is not whole or memory ran out. */
char *chart_svg_clean(const struct chart *c, const char *from, const char *to) __attribute__((warn_unused_result));

#endif
