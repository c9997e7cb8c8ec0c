/* Unit tests of loadgen/report/chart*.c: scales and scripts alone, then with gnuplot, which is skipped without it. */
#include "tests/unit/helpers/unit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/report/chart/chart_internal.h"

#define N 5

static const double ones[N] = { 1, 1, 1, 1, 1 }, rising[N] = { 1, 10, 100, 1000, 10000 };
static const double odd[N] = { NAN, INFINITY, -INFINITY, 0, -1 };
static char dir[64], old_dir[PATH_MAX], *old_path;

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/rampart-test-XXXXXX");
	old_path = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
	return mkdtemp(dir) && getcwd(old_dir, sizeof(old_dir)) && chdir(dir) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	if (old_path)
		setenv("PATH", old_path, 1);
	free(old_path);
	return chdir(old_dir) || rmdir(dir);
}

static bool have_gnuplot(void)
{
	return system("command -v gnuplot >/dev/null 2>&1") == 0;
}

static struct chart chart_of(enum chart_mark mark, const double *x, const double *y, size_t n)
{
	return (struct chart){ .x_label = "Clients", .y_label = "Time (ns)", .n_series = 1,
			       .series = { { .label = "series", .mark = mark, .x = x, .y = y, .n = n } } };
}

/* The caller's to free; NULL where it cannot be drawn. */
static char *drawn(const struct chart *c)
{
	char *svg, err[300];
	int ret = charts_draw(c, 1, &svg, err, sizeof(err));

	if (ret)
		fail_msg("%s", err);
	assert_string_equal(err, "");
	return svg;
}

static void expect_in(const char *text, const char *expected)
{
	if (!text || !strstr(text, expected))
		fail_msg("no '%s' in: %s", expected, text ? text : "nothing");
}

/* --- scales --- */

static void expect_scale(double lo, double hi, bool log, bool from_zero, const char *const *labels)
{
	struct chart_scale s = { .log = log };
	size_t n = 0;

	chart_scale_widen(&s, lo);
	chart_scale_widen(&s, hi);
	chart_scale_round(&s, from_zero, 6);
	for (; labels[n]; n++)
		assert_string_equal(n < s.n_ticks ? s.labels[n] : "none", labels[n]);
	assert_int_equal(s.n_ticks, n);
	assert_true(s.lo < s.hi);
	assert_true(s.lo - fabs(lo) * 1e-9 <= lo && s.hi + fabs(hi) * 1e-9 >= hi);
}

static void scale__linear__round_steps_with_prefixes(void **state)
{
	(void)state;
	expect_scale(0, 100, false, true, (const char *const[]){ "0", "20", "40", "60", "80", "100", NULL });
	expect_scale(3, 2900, false, true,
		     (const char *const[]){ "0", "500", "1 k", "1.5 k", "2 k", "2.5 k", "3 k", NULL });
	expect_scale(-1, 1, false, false, (const char *const[]){ "-1", "-0.5", "0", "0.5", "1", NULL });
	expect_scale(0, 5e-5, false, true,
		     (const char *const[]){ "0", "10 \xc2\xb5", "20 \xc2\xb5", "30 \xc2\xb5", "40 \xc2\xb5", "50 \xc2\xb5", NULL });
	expect_scale(0, 0.003, false, true,
		     (const char *const[]){ "0", "0.0005", "0.001", "0.0015", "0.002", "0.0025", "0.003", NULL });
}

static void scale__equal_values__something_around_them(void **state)
{
	(void)state;
	expect_scale(0, 0, false, true, (const char *const[]){ "0", "0.2", "0.4", "0.6", "0.8", "1", NULL });
	expect_scale(100, 100, false, false, (const char *const[]){ "90", "95", "100", "105", "110", NULL });
	expect_scale(100, 100, true, false, (const char *const[]){ "50", "100", "200", NULL });
}

static void scale__log__decades_or_their_parts(void **state)
{
	(void)state;
	expect_scale(1, 10000, true, false, (const char *const[]){ "1", "10", "100", "1 k", "10 k", NULL });
	expect_scale(10, 100, true, false, (const char *const[]){ "10", "20", "50", "100", NULL });
	expect_scale(1, 1e12, true, false, (const char *const[]){ "1", "1 k", "1 M", "1 G", "1 T", NULL });
}

static void scale__extremes__few_ticks(void **state)
{
	struct chart_scale s = { .log = false };

	(void)state;
	assert_false(chart_drawable(NAN, false));
	assert_false(chart_drawable(INFINITY, false));
	assert_false(chart_drawable(1e300, false));
	assert_false(chart_drawable(0, true));
	assert_true(chart_drawable(0, false));
	chart_scale_widen(&s, -1e20);
	chart_scale_widen(&s, 1e20);
	chart_scale_round(&s, true, 5);
	assert_in_range(s.n_ticks, 3, CHART_TICKS_MAX);
	memset(&s, 0, sizeof(s));
	s.log = true;
	chart_scale_widen(&s, 1e-12);
	chart_scale_widen(&s, 1e20);
	chart_scale_round(&s, true, 5);
	assert_in_range(s.n_ticks, 3, CHART_TICKS_MAX);
}

static void scale__percentile__nines(void **state)
{
	static const char *const labels[] = { "0 %", "90 %", "99 %", "99.9 %", "99.99 %" };
	struct chart_scale s = { .log = true };

	(void)state;
	chart_scale_widen(&s, 20000);
	chart_scale_round_percentile(&s);
	assert_int_equal(s.n_ticks, N_ELEMENTS(labels));
	for (size_t i = 0; i < s.n_ticks; i++)
		assert_string_equal(s.labels[i], labels[i]);
	memset(&s, 0, sizeof(s));
	s.log = true;
	chart_scale_widen(&s, 1e20);
	chart_scale_round_percentile(&s);
	assert_in_range(s.n_ticks, 3, 6);
}

/* --- scripts --- */

static void script__hostile_words__none_in_it(void **state)
{
	static const char hostile[] = "'; system('touch pwned'); \"`touch pwned`\n!touch pwned\n@touch %d {/Symbol}";
	struct chart c = chart_of(CHART_LINE, rising, ones, N);
	char *script;
	size_t n;
	FILE *out = open_memstream(&script, &n);

	(void)state;
	c.x_label = c.y_label = c.right_label = c.series[0].label = c.categories[0] = hostile;
	c.n_categories = 1;
	c.rules[0] = (struct chart_rule){ .at = 1, .label = hostile };
	c.n_rules = 1;
	assert_true(chart_script_write(&c, out));
	fclose(out);
	assert_null(strstr(script, "touch"));
	assert_null(strstr(script, "Symbol"));
	free(script);
}

static void script__no_point__nothing(void **state)
{
	const struct chart charts[] = {
		chart_of(CHART_LINE, NULL, NULL, 0),
		chart_of(CHART_BAND, odd, ones, 3),
		chart_of(CHART_STACK, ones, odd, 3),
		{ .x_label = "no series" },
		{ .y_log = true, .n_series = 1, .series = { { .x = ones, .y = odd, .n = N } } },
		{ .x_log = true, .n_series = 1, .series = { { .x = odd, .y = ones, .n = N } } },
	};
	char *script;
	size_t n;
	FILE *out = open_memstream(&script, &n);

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(charts); i++)
		assert_false(chart_script_write(&charts[i], out));
	fclose(out);
	assert_int_equal(n, 0);
	free(script);
}

/* --- gnuplot --- */

static void draw__no_gnuplot__says_what_to_do(void **state)
{
	const struct chart c[2] = { chart_of(CHART_LINE, rising, rising, N), chart_of(CHART_LINE, rising, ones, N) };
	char *svg[2], err[300];

	(void)state;
	setenv("PATH", "", 1);
	assert_int_equal(charts_draw(c, 2, svg, err, sizeof(err)), -ENOENT);
	assert_string_equal(err, "gnuplot is not installed, so there are no charts: make deps");
	assert_null(svg[0]);
	assert_null(svg[1]);
}

/* In the place of gnuplot, which has no PATH. */
static void put_program(const char *text)
{
	FILE *f = fopen("gnuplot", "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", text);
	fclose(f);
	assert_int_equal(chmod("gnuplot", 0755), 0);
	setenv("PATH", dir, 1);
}

static void draw__gnuplot_fails__keeps_what_was_drawn(void **state)
{
	const struct chart c[2] = { chart_of(CHART_LINE, rising, rising, N), chart_of(CHART_LINE, rising, ones, N) };
	char *svg[2], err[300];

	(void)state;
	put_program("echo '<svg viewBox=\"0 0 1 1\"><path d=\"M1,1\" stroke=\"rgb( 10, 12, 4)\"/></svg><svg><g'\n"
		    "printf 'first\\nline 3: \\033[31mno such thing\\n\\n' >&2; exit 1");
	assert_int_equal(charts_draw(c, 2, svg, err, sizeof(err)), -EIO);
	assert_string_equal(err, "gnuplot failed, so charts are missing: line 3: \xef\xbf\xbd[31mno such thing");
	assert_string_equal(svg[0], "<svg class=\"chart\" viewBox=\"0 0 1 1\">\n<path fill=\"none\" "
			    "stroke=\"var(--ghost)\" stroke-width=\"1\" d=\"M1,1\"/>\n</svg>\n");
	assert_null(svg[1]);
	free(svg[0]);
	unlink("gnuplot");
}

static void run__takes_too_long__killed(void **state)
{
	struct timespec before, after;
	char *svgs, err[300];

	(void)state;
	put_program("exec /bin/sleep 20");
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(chart_run("", 0, 50, &svgs, err, sizeof(err)), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_in_range(after.tv_sec - before.tv_sec, 0, 10);
	assert_string_equal(err, "gnuplot took too long and was stopped, so charts are missing");
	free(svgs);
	unlink("gnuplot");
}

/* What a program writes that is no SVG of gnuplot's. */
static void draw__broken_svg__no_crash(void **state)
{
	static const char *const texts[] = {
		"</svg>", "<svg></svg>", "<svg viewBox='0 0 1 1'><text>R99</text><text>S</text><text></svg>",
		"<svg><use xlink:href='#gpPt99999999999999999999'/><use xlink:href='#gpPt1'/><use></svg>",
		"<svg><g><g><g><g><g><g><g><g><g><g><g><g><g><g><g><g><g><g></g></g></svg>",
		"<svg></g></g></g><path d='</svg>",
		"<svg><title></svg>", "<svg><script>alert(1)</script><path d='\"><script>' onload='x'/></svg>",
	};
	const struct chart c = chart_of(CHART_LINE, rising, rising, N);

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		char *svg = chart_svg_clean(&c, texts[i], texts[i] + strlen(texts[i]));

		assert_true(!svg || (strncmp(svg, "<svg class=\"chart\"", 18) == 0 && !strstr(svg, "script")));
		free(svg);
	}
}

static void draw__every_mark_and_odd_values__an_svg(void **state)
{
	const double *const values[] = { ones, rising, odd };

	(void)state;
	if (!have_gnuplot())
		skip();
	for (int mark = CHART_LINE; mark <= CHART_BARS; mark++) {
		struct chart c[3 * 3 * 4];
		char *svg[N_ELEMENTS(c)], err[300];
		size_t n = 0;

		for (size_t x = 0; x < 3; x++)
			for (size_t y = 0; y < 3; y++)
				for (int logs = 0; logs < 4; logs++) {
					c[n] = chart_of((enum chart_mark)mark, values[x], values[y], n % 3 ? N : 1);
					c[n].series[0].low = n % 2 ? odd : NULL;
					c[n].series[0].high = n % 5 ? rising : NULL;
					c[n].series[0].right = n % 7 == 0;
					c[n].x_log = logs & 1;
					c[n++].y_log = logs & 2;
				}
		if (charts_draw(c, n, svg, err, sizeof(err)))
			fail_msg("mark %d: %s", mark, err);
		for (size_t i = 0; i < n; i++) {
			bool has_point = c[i].series[0].x != odd && c[i].series[0].y != odd;

			if (has_point && !svg[i])
				fail_msg("mark %d, chart %zu: none", mark, i);
			free(svg[i]);
		}
	}
}

static void draw__words__escaped_and_no_program_run(void **state)
{
	static const char hostile[] = "`touch pwned` <b>'\"&\n!touch pwned";
	struct chart c = chart_of(CHART_LINE, rising, rising, N);
	DIR *d;
	size_t files = 0;
	char *svg;

	(void)state;
	if (!have_gnuplot())
		skip();
	c.x_label = c.y_label = c.series[0].label = hostile;
	c.rules[0] = (struct chart_rule){ .at = 5, .vertical = true, .bad = true, .label = hostile };
	c.n_rules = 1;
	svg = drawn(&c);
	expect_in(svg, ">`touch pwned` &#60;b&#62;&#39;&#34;&#38; !touch pwned</text>");
	expect_in(svg, "class=\"mark\"");
	expect_in(svg, "var(--bad)");
	free(svg);
	d = opendir(".");
	assert_non_null(d);
	while (readdir(d))
		files++;
	closedir(d);
	assert_int_equal(files, 2);
}

static void draw__user_settings__do_not_matter(void **state)
{
	struct chart c = chart_of(CHART_LINE, rising, rising, N);
	FILE *f = fopen(".gnuplot", "w");
	char *plain, *set;

	(void)state;
	assert_non_null(f);
	fputs("system 'touch pwned'\nset title 'mine'\nexit\n", f);
	fclose(f);
	if (!have_gnuplot()) {
		unlink(".gnuplot");
		skip();
	}
	plain = drawn(&c);
	setenv("HOME", dir, 1);
	setenv("GNUPLOT_LIB", dir, 1);
	setenv("GNUTERM", "nonsense", 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	set = drawn(&c);
	assert_non_null(set);
	assert_string_equal(plain, set);
	assert_int_not_equal(access("pwned", F_OK), 0);
	free(plain);
	free(set);
	unlink(".gnuplot");
}

static void draw__several__only_words_differ_and_no_ids(void **state)
{
	struct chart c[3] = { chart_of(CHART_STACK, ones, rising, N), { .n_series = 0 },
			      chart_of(CHART_POINTS, ones, ones, N) };
	char *svg[3], err[300];

	(void)state;
	if (!have_gnuplot())
		skip();
	c[0].categories[0] = "none";
	c[0].categories[1] = "a name that is too long to be shown";
	c[0].n_categories = 2;
	c[2].x_percentile = true;
	assert_int_equal(charts_draw(c, 3, svg, err, sizeof(err)), 0);
	assert_null(svg[1]);
	expect_in(svg[0], ">a name that i\xe2\x80\xa6</text>");
	expect_in(svg[0], "fill=\"var(--c0)\"");
	expect_in(svg[2], ">90 %</text>");
	for (size_t i = 0; i < 3; i += 2) {
		assert_null(strstr(svg[i], "id="));
		assert_null(strstr(svg[i], "rgb"));
		assert_null(strstr(svg[i], "<defs"));
		assert_null(strstr(svg[i], "<?xml"));
		free(svg[i]);
	}
}

static void standalone__an_svg__a_file_of_its_own(void **state)
{
	char *svg = chart_standalone("<svg class=\"chart\" viewBox=\"0 0 1 1\">\n<path/></svg>\n", "p99 < 1", NULL);

	(void)state;
	assert_non_null(svg);
	expect_in(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" class=\"chart\" viewBox=\"0 0 1 1\">");
	expect_in(svg, "<title>p99 &#60; 1</title>");
	expect_in(svg, "@media (prefers-color-scheme:dark)");
	expect_in(svg, "</style>\n<path/></svg>");
	free(svg);
	assert_null(chart_standalone("nothing", NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scale__linear__round_steps_with_prefixes),
		cmocka_unit_test(scale__equal_values__something_around_them),
		cmocka_unit_test(scale__log__decades_or_their_parts),
		cmocka_unit_test(scale__extremes__few_ticks),
		cmocka_unit_test(scale__percentile__nines),
		cmocka_unit_test(script__hostile_words__none_in_it),
		cmocka_unit_test(script__no_point__nothing),
		cmocka_unit_test_setup_teardown(draw__no_gnuplot__says_what_to_do, set_up, tear_down),
		cmocka_unit_test_setup_teardown(draw__gnuplot_fails__keeps_what_was_drawn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(run__takes_too_long__killed, set_up, tear_down),
		cmocka_unit_test(draw__broken_svg__no_crash),
		cmocka_unit_test(draw__every_mark_and_odd_values__an_svg),
		cmocka_unit_test_setup_teardown(draw__words__escaped_and_no_program_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(draw__user_settings__do_not_matter, set_up, tear_down),
		cmocka_unit_test(draw__several__only_words_differ_and_no_ids),
		cmocka_unit_test(standalone__an_svg__a_file_of_its_own),
	};

	return cmocka_run_group_tests_name("report_chart", tests, NULL, NULL);
}
