/* SPDX-License-Identifier: BSD-2-Clause */
/* See exposition.h. */
#include "common/metrics/exposition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"

#define LABELS_BYTES 1024	/* longer labels are cut */

struct exposition {
	bool openmetrics;
	FILE *out;		/* writes to text */
	char *text;
	size_t len;
	const char *family;	/* name of the metric that was begun last */
	enum metric_type type;
};

int exposition_new(bool openmetrics, struct exposition **out)
{
	struct exposition *x = calloc(1, sizeof(*x));

	*out = NULL;
	if (!x)
		return -ENOMEM;
	x->openmetrics = openmetrics;
	x->out = open_memstream(&x->text, &x->len);
	if (!x->out) {
		free(x);
		return -ENOMEM;
	}
	*out = x;
	return 0;
}

/* The formats differ in the name in the HELP and TYPE lines: OpenMetrics leaves out a counter's _total. */
void exposition_family(struct exposition *x, const char *name, enum metric_type type, const char *help)
{
	static const char *const types[] = { "gauge", "counter", "histogram" };
	const char *total = type == METRIC_COUNTER && !x->openmetrics ? "_total" : "";

	x->family = name;
	x->type = type;
	fprintf(x->out, "# HELP %s%s %s.\n# TYPE %s%s %s\n", name, total, help, name, total, types[type]);
}

static void print_number(FILE *out, double v)
{
	if (v == trunc(v) && fabs(v) < 0x1p63)
		fprintf(out, "%lld", (long long)v);
	else
		fprintf(out, "%.9g", v);
}

static void print_sample(struct exposition *x, const char *suffix, const char *labels, double value)
{
	bool some = labels && *labels;

	fprintf(x->out, "%s%s%s%s%s ", x->family, suffix, some ? "{" : "", some ? labels : "", some ? "}" : "");
	print_number(x->out, value);
	putc('\n', x->out);
}

void exposition_sample(struct exposition *x, const char *labels, double value)
{
	if (isfinite(value))
		print_sample(x, x->type == METRIC_COUNTER ? "_total" : "", labels, value);
}

void exposition_histogram(struct exposition *x, const char *labels, const double *bounds, const uint64_t *counts,
			  size_t n, uint64_t count, double sum)
{
	const char *comma = labels ? "," : "", *before = labels ? labels : "";
	char with_bound[LABELS_BYTES + 32];

	for (size_t i = 0; i < n; i++) {
		snprintf(with_bound, sizeof(with_bound), "%s%sle=\"%.9g%s\"", before, comma, bounds[i],
			 bounds[i] == trunc(bounds[i]) ? ".0" : "");
		print_sample(x, "_bucket", with_bound, (double)counts[i]);
	}
	snprintf(with_bound, sizeof(with_bound), "%s%sle=\"+Inf\"", before, comma);
	print_sample(x, "_bucket", with_bound, (double)count);
	print_sample(x, "_sum", labels, sum);
	print_sample(x, "_count", labels, (double)count);
}

char *exposition_end(struct exposition *x, size_t *len)
{
	char *text;
	bool failed;

	if (x->openmetrics)
		fputs("# EOF\n", x->out);
	failed = ferror(x->out);
	failed |= fclose(x->out) != 0;
	text = x->text;
	*len = x->len;
	free(x);
	if (!failed)
		return text;
	free(text);
	return NULL;
}

const char *exposition_label(const char *name, const char *value, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "%s=\"", name);

	/* Room for an escape, the quote and the zero. */
	for (; *value && n + 4 < size; value++) {
		if (*value == '"' || *value == '\\')
			out[n++] = '\\';
		out[n++] = *value;
	}
	if (n + 2 <= size)
		memcpy(out + n, "\"", 2);
	return out;
}

static void add_label(char labels[LABELS_BYTES], const char *name, const char *value)
{
	size_t n = strlen(labels);
	char shown[256];

	if (n)
		labels[n++] = ',';
	exposition_label(name, utf8_show(value, shown, sizeof(shown)), labels + n, LABELS_BYTES - n);
}

static double scaled(const struct metric *m, const json_t *value)
{
	return json_is_number(value) ? json_number_value(value) * (m->scale != 0 ? m->scale : 1) : NAN;
}

static void add_members(struct exposition *x, const struct metric *m, const json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value) {
		char labels[LABELS_BYTES];

		snprintf(labels, sizeof(labels), "%s", m->labels ? m->labels : "");
		add_label(labels, m->label, name);
		exposition_sample(x, labels, scaled(m, value));
	}
}

/* Adds the labels of an array's element, whose members of these names are text or whole numbers. */
static void add_labels(char labels[LABELS_BYTES], const char *names, const json_t *element)
{
	char name[32];
	int len;

	for (; *names; names += len + (names[len] == ',')) {
		char number[24] = "";
		const json_t *value;

		len = (int)strcspn(names, ",");
		snprintf(name, sizeof(name), "%.*s", len, names);
		value = json_object_get(element, name);
		if (json_is_integer(value))
			snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		add_label(labels, name, json_is_string(value) ? json_string_value(value) : number);
	}
}

static void add_elements(struct exposition *x, const struct metric *m, const json_t *array)
{
	json_t *element;
	size_t i;

	json_array_foreach(array, i, element) {
		char labels[LABELS_BYTES] = "", index[24];

		snprintf(labels, sizeof(labels), "%s", m->labels ? m->labels : "");
		snprintf(index, sizeof(index), "%zu", i);
		if (strchr(m->label, ','))
			add_labels(labels, m->label, element);
		else
			add_label(labels, m->label, index);
		exposition_sample(x, labels, scaled(m, json_at(element, m->member)));
	}
}

void exposition_add(struct exposition *x, const struct metric *rows, size_t n, const json_t *document)
{
	for (const struct metric *m = rows; m < rows + n; m++) {
		const json_t *value = json_at(document, m->path);

		if (m == rows || strcmp(m[-1].name, m->name) != 0)
			exposition_family(x, m->name, m->type, m->help);
		if (json_is_object(value))
			add_members(x, m, value);
		else if (json_is_array(value))
			add_elements(x, m, value);
		else
			exposition_sample(x, m->labels, scaled(m, value));
	}
}
