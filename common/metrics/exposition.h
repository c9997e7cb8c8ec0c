/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the text that Prometheus and similar programs read: metrics with their samples, in the text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats) or in OpenMetrics 1.0
 * (https://github.com/prometheus/OpenMetrics). Pure, except for allocations. One thread at a time.
 */
#ifndef RAMPART_COMMON_EXPOSITION_H
#define RAMPART_COMMON_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

/* A row of a program's table of metrics: the name of a value, and its place in the program's JSON document. Rows of one
 * metric must be adjacent; its help and type are those of the first. */
struct metric {
	const char *name;	/* with its base unit, without the _total of counters */
	enum metric_type type;
	const char *help;
	const char *path;	/* the value's path, as for json_at: "pools.qp.free". A number, or with `label` an
				 * object or an array */
	const char *labels;	/* constant labels, as they are printed: state="free"; NULL: none */
	const char *label;	/* An object gives a sample per member, whose name is the value of this label. An array
				 * gives a sample per element, whose index is the label's value; but if this is a list,
				 * as in "stage,code", the element's members of these names are its labels */
	const char *member;	/* the value's path in an element of an array */
	double scale;		/* factor by which the value is multiplied; 0 means 1 */
};

struct exposition;

/* The caller owns *out. Returns 0 or -ENOMEM; if memory runs out later, exposition_end returns NULL. */
int exposition_new(bool openmetrics, struct exposition **out) __attribute__((warn_unused_result));

/* Adds the samples of `rows`, with their values from `document`. A value that is null, absent or not a number gives no
 * sample; a metric without samples has only its help and type. */
void exposition_add(struct exposition *x, const struct metric *rows, size_t n, const json_t *document);

/* Begins a metric, whose samples the caller adds: `type` and `help` as in its row. */
void exposition_family(struct exposition *x, const char *name, enum metric_type type, const char *help);
/* Adds a sample of that metric, unless `value` is NAN or infinite. `labels`: as they are printed, or NULL. */
void exposition_sample(struct exposition *x, const char *labels, double value);
/* Adds a histogram of `count` samples, whose sum is `sum`: counts[i] of them are at most bounds[i], for i below `n`. */
void exposition_histogram(struct exposition *x, const char *labels, const double *bounds, const uint64_t *counts,
			  size_t n, uint64_t count, double sum);

/* Returns the text, which the caller frees, and its length without the final zero; NULL: out of memory. Frees `x`. */
char *exposition_end(struct exposition *x, size_t *len) __attribute__((warn_unused_result));

/* Writes NAME="VALUE" with escapes to `out`, for `labels` of other functions. Truncated if it does not fit; `out` is
 * returned. */
const char *exposition_label(const char *name, const char *value, char *out, size_t size);

#endif
