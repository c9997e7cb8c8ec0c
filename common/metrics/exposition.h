/* SPDX-License-Identifier: BSD-2-Clause */
/* The text that Prometheus and its like read: metrics with their samples, in the text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats) or in OpenMetrics 1.0
 * (https://github.com/prometheus/OpenMetrics). Pure, but for allocations. One thread at a time.
 */
#ifndef RAMPART_COMMON_EXPOSITION_H
#define RAMPART_COMMON_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

/* A row of a program's table of metrics: where the value stands in its JSON document, and what it is called. Rows of
 * one metric follow each other; the first one's help and type count. */
struct metric {
	const char *name;	/* with its base unit, without the _total of counters */
	enum metric_type type;
	const char *help;
	const char *path;	/* members, with dots between: "pools.qp.free". A number; or, with `label`, an object or
				 * an array */
	const char *labels;	/* constant labels of a number or an array, as they are printed: state="free"; NULL:
				 * none */
	const char *label;	/* An object has a sample for each member, whose name is the value of this label. An
				 * array has one for each element; the label is the element's index. If the label is a
				 * list, as in "stage,code", the element's members of these names are its labels */
	const char *member;	/* the value's path in an element of an array */
	double scale;		/* what the value is multiplied by; 0: 1 */
};

struct exposition;

/* The caller owns *out. 0 or -ENOMEM; if memory runs out later, exposition_end says so. */
int exposition_new(bool openmetrics, struct exposition **out) __attribute__((warn_unused_result));

/* Adds the rows' samples out of `document`. A value that is null, absent or no number has no sample; a metric without
 * samples has its help and type only. */
void exposition_add(struct exposition *x, const struct metric *rows, size_t n, const json_t *document);

/* Begins a metric, whose samples the caller adds: `type` and `help` as in its row. */
void exposition_family(struct exposition *x, const char *name, enum metric_type type, const char *help);
/* Adds a sample of that metric. `labels` as they are printed, or NULL. NAN: none. */
void exposition_sample(struct exposition *x, const char *labels, double value);
/* Adds a histogram: `counts[i]` samples are at most bounds[i], of `n`; `count` all of them, and `sum` their sum. */
void exposition_histogram(struct exposition *x, const char *labels, const double *bounds, const uint64_t *counts,
			  size_t n, uint64_t count, double sum);

/* The text, which the caller frees, with its length without the final zero; NULL if memory ran out. Frees `x`. */
char *exposition_end(struct exposition *x, size_t *len) __attribute__((warn_unused_result));

/* Writes NAME="VALUE" with escapes to `out`, for `labels` of other functions. Truncated if it does not fit; `out` is
 * returned. */
const char *exposition_label(const char *name, const char *value, char *out, size_t size);

#endif
