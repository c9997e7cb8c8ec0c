/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/metrics/exposition.c. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <stdlib.h>

#include "common/metrics/exposition.h"

static const struct metric rows[] = {
	{ .name = "a_bytes", .type = METRIC_GAUGE, .help = "A", .path = "a.x", .labels = "k=\"1\"", .scale = 2 },
	{ .name = "a_bytes", .type = METRIC_GAUGE, .path = "a.y", .labels = "k=\"2\"" },
	{ .name = "b", .type = METRIC_COUNTER, .help = "B", .path = "b", .label = "code" },
	{ .name = "c", .type = METRIC_COUNTER, .help = "C", .path = "c", .label = "stage,port", .member = "n" },
	{ .name = "d", .type = METRIC_GAUGE, .help = "D", .path = "d", .label = "shard", .member = "v.w" },
	{ .name = "e", .type = METRIC_GAUGE, .help = "E", .path = "e" },
};

static const char document[] = "{\"a\": {\"x\": 3, \"y\": 0.25}, \"b\": {\"full\": 7, \"bad \\\"one\\\"\\n\": 1},"
	"\"c\": [{\"stage\": \"s\", \"port\": 2, \"n\": 5}], \"d\": [{\"v\": {\"w\": 1}}, {\"v\": null}], \"e\": null}";

static char *text_of(bool openmetrics)
{
	json_t *o = json_loads(document, 0, NULL);
	struct exposition *x;
	size_t len;
	char *text;

	assert_non_null(o);
	assert_int_equal(exposition_new(openmetrics, &x), 0);
	exposition_add(x, rows, N_ELEMENTS(rows), o);
	text = exposition_end(x, &len);
	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	json_decref(o);
	return text;
}

TEST(rows__text_format__samples_with_their_labels)
{
	char *text = text_of(false);

	assert_string_equal(text,
			    "# HELP a_bytes A.\n# TYPE a_bytes gauge\na_bytes{k=\"1\"} 6\na_bytes{k=\"2\"} 0.25\n"
			    "# HELP b_total B.\n# TYPE b_total counter\nb_total{code=\"full\"} 7\n"
			    "b_total{code=\"bad \\\"one\\\"\\\\x0a\"} 1\n"
			    "# HELP c_total C.\n# TYPE c_total counter\nc_total{stage=\"s\",port=\"2\"} 5\n"
			    "# HELP d D.\n# TYPE d gauge\nd{shard=\"0\"} 1\n# HELP e E.\n# TYPE e gauge\n");
	free(text);
}

TEST(rows__openmetrics__counters_named_without_total_and_an_end)
{
	char *text = text_of(true);

	assert_non_null(strstr(text, "# HELP b B.\n# TYPE b counter\nb_total{code=\"full\"} 7\n"));
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	free(text);
}

TEST(histogram__cumulative_buckets__with_sum_and_count)
{
	const double bounds[] = { 0.001, 1, 10 };
	const uint64_t counts[] = { 1, 3, 4 };
	struct exposition *x;
	size_t len;
	char *text;

	assert_int_equal(exposition_new(false, &x), 0);
	exposition_family(x, "h_seconds", METRIC_HISTOGRAM, "H");
	exposition_histogram(x, "s=\"a\"", bounds, counts, 3, 5, 12.5);
	exposition_histogram(x, NULL, bounds, counts, 1, 1, 0);
	exposition_sample(x, NULL, NAN);
	text = exposition_end(x, &len);
	assert_string_equal(text, "# HELP h_seconds H.\n# TYPE h_seconds histogram\n"
			    "h_seconds_bucket{s=\"a\",le=\"0.001\"} 1\nh_seconds_bucket{s=\"a\",le=\"1.0\"} 3\n"
			    "h_seconds_bucket{s=\"a\",le=\"10.0\"} 4\nh_seconds_bucket{s=\"a\",le=\"+Inf\"} 5\n"
			    "h_seconds_sum{s=\"a\"} 12.5\nh_seconds_count{s=\"a\"} 5\n"
			    "h_seconds_bucket{le=\"0.001\"} 1\nh_seconds_bucket{le=\"+Inf\"} 1\nh_seconds_sum 0\n"
			    "h_seconds_count 1\n");
	free(text);
}

TEST(label__too_long__cut_with_its_quote)
{
	char out[12], *end = out + sizeof(out);

	memset(out, '#', sizeof(out));
	for (size_t size = 6; size < sizeof(out); size++) {
		exposition_label("k", "a\"b\\cdefgh", out, size);
		assert_true(strlen(out) < size);
		assert_int_equal(out[strlen(out) - 1], '"');
		assert_int_equal(end[-1], '#');
	}
}
