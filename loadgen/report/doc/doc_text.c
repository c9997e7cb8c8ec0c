/* A document for a terminal. See doc.h. */
#include "loadgen/report/doc/doc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

#define COLUMNS_LEAST 40
#define CELL_LEAST 12		/* a column of text is not made narrower, to fit all into the terminal */
#define GAP 2
#define SIGN 2			/* a tone's sign, with a space */
#define TITLE_MAX 256

struct writer {
	FILE *out;
	size_t columns;
	bool colour;
};

static const char *const tone_codes[] = { "", "\033[32m", "\033[33m", "\033[31m" };

static void paint(const struct writer *w, const char *code)
{
	if (w->colour && *code)
		fputs(code, w->out);
}

static void bold(const struct writer *w, const char *text)
{
	paint(w, "\033[1m");
	fputs(text, w->out);
	paint(w, "\033[0m");
}

static void spaces(const struct writer *w, size_t n)
{
	while (n-- > 0)
		putc(' ', w->out);
}

/* --- lines --- */

/* How many bytes of a text stand on a line of `width`; *next: where the next line begins. At least one character. */
static size_t line_of(const char *text, size_t width, size_t *next)
{
	size_t at = 0, count = 0, space = 0;
	uint32_t code;

	for (size_t n; text[at] && count < width; at += n, count++) {
		n = utf8_next(text + at, &code);
		if (code == ' ')
			space = at;
	}
	*next = at;
	if (!text[at])
		return at;
	if (text[at] != ' ' && space > 0)
		at = space;
	*next = at + (text[at] == ' ');
	return at;
}

static size_t lines_of(const char *text, size_t width)
{
	size_t lines = 0, next;

	do {
		line_of(text, width, &next);
		text += next;
		lines++;
	} while (*text);
	return lines;
}

/* The text, whose first line has `used` columns before it and the others `indent`. */
static void wrap(const struct writer *w, const char *text, size_t used, size_t indent)
{
	size_t next, room = w->columns > used + 10 ? w->columns - used : 10;

	for (;; room = w->columns > indent + 10 ? w->columns - indent : 10) {
		size_t n = line_of(text, room, &next);

		fwrite(text, 1, n, w->out);
		fputs("\n", w->out);
		text += next;
		if (!*text)
			return;
		spaces(w, indent);
	}
}

static void underlined(const struct writer *w, const char *text, char with)
{
	size_t n = utf8_count(text);

	bold(w, text);
	fputs("\n", w->out);
	for (size_t i = 0; i < n && i < w->columns; i++)
		putc(with, w->out);
	fputs("\n", w->out);
}

/* --- tables --- */

struct table {
	const json_t *b;
	size_t n, *widths;
	bool toned;
};

static size_t longest_word(const char *text)
{
	size_t longest = 0;

	for (size_t n; *text; text += n + (text[n] == ' ')) {
		char word[TITLE_MAX];

		n = strcspn(text, " ");
		snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), text);
		longest = utf8_count(word) > longest ? utf8_count(word) : longest;
	}
	return longest;
}

/* A title may have several lines, so that a column of short numbers stays narrow. */
static void set_widths(struct table *t)
{
	char buf[DOC_NUMBER_MAX], title[TITLE_MAX];

	for (size_t i = 0; i < t->n; i++) {
		doc_column_title(t->b, i, title, sizeof(title));
		t->widths[i] = longest_word(title);
		for (size_t r = 0; r < doc_n_rows(t->b); r++) {
			size_t n = utf8_count(doc_cell_shown(doc_row_at(t->b, r), i, buf));

			t->widths[i] = n > t->widths[i] ? n : t->widths[i];
		}
		t->widths[i] += t->widths[i] == 0;
	}
}

/* Takes from the widest column of text until the table fits, or none is left to take from. */
static void fit(struct table *t, size_t columns)
{
	size_t total = t->toned ? SIGN : 0, widest;

	for (size_t i = 0; i < t->n; i++)
		total += t->widths[i] + (i ? GAP : 0);
	for (; total > columns; total--) {
		widest = t->n;
		for (size_t i = 0; i < t->n; i++)
			if (!doc_column_is_number(t->b, i) && t->widths[i] > CELL_LEAST &&
			    (widest == t->n || t->widths[i] > t->widths[widest]))
				widest = i;
		if (widest == t->n)
			return;
		t->widths[widest]--;
	}
}

/* A row of texts as as many lines as the longest needs; what is used of a text is taken off. */
static void table_lines(const struct writer *w, const struct table *t, const char **cells, enum doc_tone tone)
{
	size_t lines = 1, next;

	for (size_t i = 0; i < t->n; i++)
		lines = lines_of(cells[i], t->widths[i]) > lines ? lines_of(cells[i], t->widths[i]) : lines;
	for (size_t line = 0; line < lines; line++) {
		size_t owed = 0;

		if (t->toned)
			fprintf(w->out, "%s ", line == 0 && tone != DOC_PLAIN ? doc_tone_sign(tone) : " ");
		for (size_t i = 0; i < t->n; i++) {
			size_t n = line_of(cells[i], t->widths[i], &next), shown = 0;
			uint32_t code;

			for (size_t at = 0; at < n; shown++)
				at += utf8_next(cells[i] + at, &code);
			owed += i ? GAP : 0;
			if (doc_column_is_number(t->b, i))
				owed += t->widths[i] - shown;
			if (n > 0) {
				spaces(w, owed);
				owed = 0;
			}
			fwrite(cells[i], 1, n, w->out);
			if (!doc_column_is_number(t->b, i))
				owed += t->widths[i] - shown;
			else if (n == 0)
				owed += shown;
			cells[i] += next;
		}
		fputs("\n", w->out);
	}
}

static void table_head(const struct writer *w, const struct table *t, const char **cells, char (*titles)[TITLE_MAX])
{
	size_t total = t->toned ? SIGN : 0;

	for (size_t i = 0; i < t->n; i++) {
		doc_column_title(t->b, i, titles[i], TITLE_MAX);
		cells[i] = titles[i];
		total += t->widths[i] + (i ? GAP : 0);
	}
	paint(w, "\033[1m");
	table_lines(w, t, cells, DOC_PLAIN);
	paint(w, "\033[0m");
	for (size_t i = 0; i < total; i++)
		putc('-', w->out);
	fputs("\n", w->out);
}

static void table_rows(const struct writer *w, const struct table *t, const char **cells,
		       char (*numbers)[DOC_NUMBER_MAX])
{
	for (size_t r = 0; r < doc_n_rows(t->b); r++) {
		const json_t *row = doc_row_at(t->b, r);

		for (size_t i = 0; i < t->n; i++)
			cells[i] = doc_cell_shown(row, i, numbers[i]);
		paint(w, tone_codes[doc_tone(row)]);
		table_lines(w, t, cells, doc_tone(row));
		paint(w, *tone_codes[doc_tone(row)] ? "\033[0m" : "");
	}
	if (doc_n_rows(t->b) == 0)
		fputs("nothing\n", w->out);
}

static void table(const struct writer *w, const json_t *b)
{
	struct table t = { .b = b, .n = doc_n_columns(b), .toned = json_is_true(json_object_get(b, "toned")) };
	const char **cells = calloc(t.n + 1, sizeof(*cells));
	char (*titles)[TITLE_MAX] = calloc(t.n + 1, sizeof(*titles));
	char (*numbers)[DOC_NUMBER_MAX] = calloc(t.n + 1, sizeof(*numbers));

	t.widths = calloc(t.n + 1, sizeof(*t.widths));
	if (cells && titles && numbers && t.widths && t.n > 0) {
		if (doc_has(b, "title")) {
			bold(w, doc_str(b, "title"));
			fputs("\n\n", w->out);
		}
		set_widths(&t);
		fit(&t, w->columns);
		table_head(w, &t, cells, titles);
		table_rows(w, &t, cells, numbers);
	}
	free(t.widths);
	free(numbers);
	free(titles);
	free(cells);
}

/* --- blocks --- */

static void toned(const struct writer *w, const json_t *b, const char *text)
{
	enum doc_tone tone = doc_tone(b);

	paint(w, tone_codes[tone]);
	if (tone != DOC_PLAIN)
		fprintf(w->out, "%s ", doc_tone_sign(tone));
	bold(w, text);
}

static void answer(const struct writer *w, const json_t *b)
{
	wrap(w, doc_str(b, "title"), 0, 0);
	fputs("  ", w->out);
	toned(w, b, doc_str(b, "text"));
	fputs("\n", w->out);
	if (doc_has(b, "detail")) {
		fputs("  ", w->out);
		wrap(w, doc_str(b, "detail"), 2, 2);
	}
}

static void badge(const struct writer *w, const json_t *b)
{
	size_t used = utf8_count(doc_str(b, "text")) + (doc_tone(b) != DOC_PLAIN ? SIGN : 0) + 2;

	toned(w, b, doc_str(b, "text"));
	if (doc_has(b, "detail")) {
		fputs("  ", w->out);
		wrap(w, doc_str(b, "detail"), used, 4);
	} else {
		fputs("\n", w->out);
	}
}

static void note(const struct writer *w, const json_t *b)
{
	enum doc_tone tone = doc_tone(b);
	size_t used = 0;

	paint(w, tone_codes[tone]);
	if (tone != DOC_PLAIN)
		used = (size_t)fprintf(w->out, "%s %s: ", doc_tone_sign(tone), doc_tone_word(tone)) -
		       strlen(doc_tone_sign(tone)) + 1;
	paint(w, *tone_codes[tone] ? "\033[0m" : "");
	wrap(w, doc_str(b, "text"), used, tone == DOC_PLAIN ? 0 : SIGN);
}

static void item(const struct writer *w, const char *text, const char *more)
{
	fputs("- ", w->out);
	wrap(w, text, 2, 2);
	if (*more) {
		fputs("  ", w->out);
		wrap(w, more, 2, 2);
	}
}

static void code(const struct writer *w, const char *text)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		fprintf(w->out, "    %.*s\n", (int)n, text);
	}
}

static void section(const struct writer *w, const json_t *b)
{
	char title[TITLE_MAX];

	snprintf(title, sizeof(title), "%d  %s", (int)json_integer_value(json_object_get(b, "number")),
		 doc_str(b, "title"));
	fputs("\n", w->out);
	underlined(w, title, '-');
}

static void one(const struct writer *w, const json_t *b)
{
	switch (doc_kind(b)) {
	case DOC_SECTION: section(w, b); break;
	case DOC_HEADING:
		bold(w, doc_str(b, "title"));
		fputs("\n", w->out);
		break;
	case DOC_TEXT: wrap(w, doc_str(b, "text"), 0, 0); break;
	case DOC_NOTE: note(w, b); break;
	case DOC_ITEM: item(w, doc_str(b, "text"), ""); break;
	case DOC_BADGE: badge(w, b); break;
	case DOC_ANSWER: answer(w, b); break;
	case DOC_CODE: code(w, doc_str(b, "text")); break;
	case DOC_FILE: item(w, doc_str(b, "path"), doc_str(b, "text")); break;
	case DOC_TABLE: table(w, b); break;
	case DOC_CHART:
		bold(w, doc_str(b, "title"));
		fputs("\n", w->out);
		wrap(w, doc_str(b, "detail"), 0, 0);
		break;
	case DOC_END: break;
	}
}

int doc_write_text(const struct doc *d, unsigned columns, bool colour, FILE *out)
{
	struct writer w = { .out = out, .columns = columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns, .colour = colour };

	underlined(&w, doc_title(d), '=');
	if (doc_lead(d))
		wrap(&w, doc_lead(d), 0, 0);
	for (size_t i = 0; i < doc_n_blocks(d); i++) {
		enum doc_kind kind = doc_kind(doc_block(d, i));
		bool in_list = i > 0 && kind == doc_kind(doc_block(d, i - 1)) &&
			       (kind == DOC_ITEM || kind == DOC_BADGE || kind == DOC_FILE);

		if (!in_list)
			fputs("\n", out);
		one(&w, doc_block(d, i));
	}
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
