/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads blocks of a document, for the files that write it. See doc_internal.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <math.h>
#include <string.h>

#define DASH "\xe2\x80\x93"	/* U+2013 */

size_t doc_n_blocks(const struct doc *d)
{
	return json_array_size(json_object_get(doc_root(d), "blocks"));
}

const json_t *doc_block(const struct doc *d, size_t i)
{
	return json_array_get(json_object_get(doc_root(d), "blocks"), i);
}

enum doc_kind doc_kind(const json_t *block)
{
	return block ? (enum doc_kind)json_integer_value(json_object_get(block, "kind")) : DOC_END;
}

enum doc_tone doc_tone(const json_t *o)
{
	return (enum doc_tone)json_integer_value(json_object_get(o, "tone"));
}

bool doc_has(const json_t *block, const char *key)
{
	return *doc_str(block, key) != '\0';
}

const char *doc_str(const json_t *block, const char *key)
{
	const char *text = json_string_value(json_object_get(block, key));

	return text ? text : "";
}

size_t doc_n_columns(const json_t *table)
{
	return json_array_size(json_object_get(table, "columns"));
}

const json_t *doc_column_at(const json_t *table, size_t column)
{
	return json_array_get(json_object_get(table, "columns"), column);
}

bool doc_column_is_number(const json_t *table, size_t column)
{
	return json_is_true(json_object_get(doc_column_at(table, column), "number"));
}

void doc_column_title(const json_t *table, size_t column, char *out, size_t size)
{
	const json_t *o = doc_column_at(table, column);

	if (doc_has(o, "unit"))
		snprintf(out, size, "%s (%s)", doc_str(o, "title"), doc_str(o, "unit"));
	else
		snprintf(out, size, "%s", doc_str(o, "title"));
}

size_t doc_n_rows(const json_t *table)
{
	return json_array_size(json_object_get(table, "rows"));
}

const json_t *doc_row_at(const json_t *table, size_t row)
{
	return json_array_get(json_object_get(table, "rows"), row);
}

static const json_t *cell_at(const json_t *row, size_t column)
{
	return json_array_get(json_object_get(row, "cells"), column);
}

const char *doc_with_thousands(const char *plain, char out[DOC_NUMBER_MAX])
{
	size_t digits, start = *plain == '-', n = 0;

	digits = strspn(plain + start, "0123456789");
	for (size_t i = 0; plain[i] && n + 2 < DOC_NUMBER_MAX; i++) {
		if (i > start && i < start + digits && (start + digits - i) % 3 == 0)
			out[n++] = ',';
		out[n++] = plain[i];
	}
	out[n] = '\0';
	return out;
}

static const char *number_shown(const json_t *cell, char buf[DOC_NUMBER_MAX])
{
	const json_t *value = json_array_get(cell, 0);
	int decimals = (int)json_integer_value(json_array_get(cell, 1));
	double v = json_real_value(value);
	char plain[DOC_NUMBER_MAX];

	if (json_is_null(value))
		return DASH;
	decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
	/* A double does not have this many exact digits, and `plain` has no room for them. */
	if (fabs(v) >= 1e18)
		snprintf(plain, sizeof(plain), "%.3e", v);
	else
		snprintf(plain, sizeof(plain), "%.*f", decimals, v);
	if (strspn(plain, "-0.") == strlen(plain))
		snprintf(plain, sizeof(plain), "%.*f", decimals, 0.0);
	return doc_with_thousands(plain, buf);
}

const char *doc_cell_shown(const json_t *row, size_t column, char buf[DOC_NUMBER_MAX])
{
	const json_t *cell = cell_at(row, column);

	if (json_is_array(cell))
		return number_shown(cell, buf);
	return json_is_object(cell) ? doc_str(cell, "text") : json_is_string(cell) ? json_string_value(cell) : "";
}

const char *doc_cell_to(const json_t *row, size_t column)
{
	return doc_str(cell_at(row, column), "to");
}

const char *doc_cell_exact(const json_t *row, size_t column, char buf[DOC_NUMBER_MAX])
{
	const json_t *cell = cell_at(row, column);

	if (!json_is_array(cell))
		return doc_cell_shown(row, column, buf);
	if (json_is_null(json_array_get(cell, 0)))
		return "";
	snprintf(buf, DOC_NUMBER_MAX, "%.9g", json_real_value(json_array_get(cell, 0)));
	return buf;
}

bool doc_table_is_of_chart(const struct doc *d, size_t i)
{
	return i > 0 && doc_kind(doc_block(d, i)) == DOC_TABLE && doc_kind(doc_block(d, i - 1)) == DOC_CHART;
}
