/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds a report as a list of blocks. See doc.h; doc_html.c, doc_text.c and doc_files.c write it. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

#define ID_MAX 64

struct doc_table {
	struct doc *doc;
	json_t *block, *row;	/* borrowed from the document; NULL: none yet, or memory ran out */
};

struct doc {
	json_t *root;		/* {title, lead, blocks: [], id: {anchor: uses}, name: {file name: uses}} */
	struct doc_table table;	/* the table being filled */
	json_int_t sections;
	bool failed;
};

static void check_memory(struct doc *d, bool done)
{
	d->failed |= !done;
}

static void put_text(struct doc *d, json_t *o, const char *key, const char *text, bool lines)
{
	char *clean;

	if (!o || !text)
		return;
	clean = utf8_clean(text, lines);
	check_memory(d, clean && json_object_set_new(o, key, json_string(clean)) == 0);
	free(clean);
}

static void put_format(struct doc *d, json_t *o, const char *key, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0) {
		d->failed = true;
		return;
	}
	put_text(d, o, key, text, false);
	free(text);
}

/* Sets an anchor or a file's name: lower case letters, digits, '-' and '_', unique within its key ("id", "name"). */
static void put_name(struct doc *d, json_t *o, const char *key, const char *wanted, const char *otherwise)
{
	char name[ID_MAX + 24];
	json_t *names = json_object_get(d->root, key);
	json_int_t taken;
	size_t n = 0;

	for (; wanted && *wanted && n < ID_MAX; wanted++) {
		char c = *wanted >= 'A' && *wanted <= 'Z' ? (char)(*wanted + 'a' - 'A') : *wanted;

		name[n++] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ? c : '-';
	}
	name[n] = '\0';
	if (n == 0)
		n = (size_t)snprintf(name, sizeof(name), "%s", otherwise);
	taken = json_integer_value(json_object_get(names, name));
	check_memory(d, json_object_set_new(names, name, json_integer(taken + 1)) == 0);
	while (taken) {
		snprintf(name + n, sizeof(name) - n, "-%lld", (long long)++taken);
		if (!json_object_get(names, name))
			taken = 0;
	}
	check_memory(d, json_object_set_new(names, name, json_integer(1)) == 0);
	put_text(d, o, key, name, false);
}

/* Adds a block, which the document owns; NULL when out of memory. */
static json_t *block(struct doc *d, enum doc_kind kind, enum doc_tone tone, const char *id)
{
	json_t *o = json_pack("{s:i, s:i}", "kind", (int)kind, "tone", (int)tone);
	bool added = o && json_array_append_new(json_object_get(d->root, "blocks"), o) == 0;

	check_memory(d, added);
	if (added && id)
		put_name(d, o, "id", id, "block");
	return added ? o : NULL;
}

int doc_new(const char *title, const char *lead, struct doc **out)
{
	struct doc *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->root = json_pack("{s:[], s:{}, s:{}}", "blocks", "id", "name");
	put_text(d, d->root, "title", title, false);
	put_text(d, d->root, "lead", lead, false);
	if (!d->root || d->failed) {
		doc_free(d);
		return -ENOMEM;
	}
	*out = d;
	return 0;
}

void doc_free(struct doc *d)
{
	if (d)
		json_decref(d->root);
	free(d);
}

bool doc_failed(const struct doc *d)
{
	return d->failed;
}

void doc_section(struct doc *d, const char *id, const char *title)
{
	json_t *o = block(d, DOC_SECTION, DOC_PLAIN, NULL);

	put_name(d, o, "id", id, "section");
	put_text(d, o, "title", title, false);
	if (o)
		check_memory(d, json_object_set_new(o, "number", json_integer(++d->sections)) == 0);
}

void doc_heading(struct doc *d, const char *title)
{
	put_text(d, block(d, DOC_HEADING, DOC_PLAIN, NULL), "title", title, false);
}

void doc_text(struct doc *d, const char *id, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_format(d, block(d, DOC_TEXT, DOC_PLAIN, id), "text", fmt, ap);
	va_end(ap);
}

void doc_note(struct doc *d, enum doc_tone tone, const char *id, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_format(d, block(d, DOC_NOTE, tone, id), "text", fmt, ap);
	va_end(ap);
}

void doc_item(struct doc *d, const char *id, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_format(d, block(d, DOC_ITEM, DOC_PLAIN, id), "text", fmt, ap);
	va_end(ap);
}

void doc_badge(struct doc *d, enum doc_tone tone, const char *id, const char *text, const char *meaning)
{
	json_t *o = block(d, DOC_BADGE, tone, id);

	put_text(d, o, "text", text, false);
	put_text(d, o, "detail", meaning, false);
}

void doc_answer(struct doc *d, enum doc_tone tone, const char *id, const char *question, const char *answer,
		const char *detail)
{
	json_t *o = block(d, DOC_ANSWER, tone, id);

	put_text(d, o, "title", question, false);
	put_text(d, o, "text", answer, false);
	put_text(d, o, "detail", detail, false);
}

void doc_code(struct doc *d, const char *text)
{
	put_text(d, block(d, DOC_CODE, DOC_PLAIN, NULL), "text", text, true);
}

void doc_picture(struct doc *d, const char *text)
{
	put_text(d, block(d, DOC_PICTURE, DOC_PLAIN, NULL), "text", text, true);
}

void doc_file(struct doc *d, const char *path, const char *what)
{
	json_t *o = block(d, DOC_FILE, DOC_PLAIN, NULL);

	put_text(d, o, "path", path, false);
	put_text(d, o, "text", what, false);
}

void doc_link(struct doc *d, const char *id, const char *text)
{
	json_t *o = block(d, DOC_FILE, DOC_PLAIN, NULL);

	put_text(d, o, "to", id, false);
	put_text(d, o, "text", text, false);
}

void doc_chart(struct doc *d, const char *id, const char *title, const char *svg, const char *description)
{
	json_t *o = block(d, DOC_CHART, DOC_PLAIN, NULL);

	put_name(d, o, "id", id, "chart");
	put_text(d, o, "title", title, false);
	put_text(d, o, "svg", svg, true);
	put_text(d, o, "detail", description, false);
}

struct doc_table *doc_table(struct doc *d, const char *name, const char *caption)
{
	json_t *o = block(d, DOC_TABLE, DOC_PLAIN, NULL);

	put_name(d, o, "name", name, "table");
	put_text(d, o, "title", caption, false);
	check_memory(d, json_object_set_new(o, "columns", json_array()) == 0);
	check_memory(d, json_object_set_new(o, "rows", json_array()) == 0);
	d->table = (struct doc_table){ .doc = d, .block = o };
	return &d->table;
}

void doc_column(struct doc_table *t, const char *title, const char *unit, bool number)
{
	json_t *o = json_pack("{s:b}", "number", number);

	put_text(t->doc, o, "title", title, false);
	put_text(t->doc, o, "unit", unit, false);
	check_memory(t->doc, json_array_append_new(json_object_get(t->block, "columns"), o) == 0);
}

void doc_row(struct doc_table *t, enum doc_tone tone)
{
	json_t *row = json_pack("{s:i, s:[]}", "tone", (int)tone, "cells");

	t->row = row && json_array_append_new(json_object_get(t->block, "rows"), row) == 0 ? row : NULL;
	check_memory(t->doc, t->row);
	if (tone != DOC_PLAIN)
		check_memory(t->doc, json_object_set_new(t->block, "toned", json_true()) == 0);
}

static void add_cell(struct doc_table *t, json_t *value)
{
	if (!t->row)
		doc_row(t, DOC_PLAIN);
	check_memory(t->doc, json_array_append_new(json_object_get(t->row, "cells"), value) == 0);
}

void doc_cell(struct doc_table *t, const char *fmt, ...)
{
	json_t *o = json_object();
	va_list ap;

	va_start(ap, fmt);
	put_format(t->doc, o, "text", fmt, ap);
	va_end(ap);
	add_cell(t, json_incref(json_object_get(o, "text")));
	json_decref(o);
}

void doc_cell_link(struct doc_table *t, const char *id, const char *text)
{
	json_t *o = json_object();

	put_text(t->doc, o, "text", text, false);
	put_text(t->doc, o, "to", id, false);
	add_cell(t, o);
}

void doc_number(struct doc_table *t, double v, int decimals)
{
	add_cell(t, isfinite(v) ? json_pack("[f, i]", v, decimals) : json_pack("[n, i]", decimals));
}

const json_t *doc_root(const struct doc *d)
{
	return d->root;
}
