/* gnuplot's SVG, made fit for a page. See chart_internal.h. Only what is known is kept, written anew: paths, polygons
 * and texts, without ids, so that several charts in a page do not get mixed up. */
#include "loadgen/report/chart/chart_internal.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/report/chart/style.h"
#include "common/base/utf8.h"

#define DEPTH_MAX 16
#define VALUE_MAX 96

/* What groups hand down to their parts. */
struct state {
	char colour[VALUE_MAX], stroke[VALUE_MAX], fill[VALUE_MAX], width[VALUE_MAX];
	char place[VALUE_MAX], anchor[VALUE_MAX];
};

struct cleaner {
	const struct chart *c;
	FILE *out;
	struct state stack[DEPTH_MAX];
	size_t depth;
};

/* --- attributes --- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Where an attribute's value begins, within the tag that ends at `end`, and its length; NULL: it has none. */
static const char *attribute(const char *tag, const char *end, const char *name, size_t *n)
{
	size_t name_n = strlen(name);

	for (const char *p = tag; p + name_n + 2 < end; p++) {
		const char *q, *close;

		if (!is_space(*p) || strncmp(p + 1, name, name_n) != 0)
			continue;
		for (q = p + 1 + name_n; q < end && (is_space(*q) || *q == '='); q++)
			;
		if (q == end || (*q != '"' && *q != '\''))
			continue;
		close = memchr(q + 1, *q, (size_t)(end - q - 1));
		if (!close)
			return NULL;
		*n = (size_t)(close - q - 1);
		return q + 1;
	}
	return NULL;
}

/* Leaves `out` as it is where the tag has no such attribute. */
static void inherit(const char *tag, const char *end, const char *name, char out[VALUE_MAX])
{
	size_t n;
	const char *v = attribute(tag, end, name, &n);

	if (v && n < VALUE_MAX)
		*(char *)mempcpy(out, v, n) = '\0';
}

/* The page's colour for one of gnuplot's; what is none of ours is the text's. */
static const char *colour_of(const char *colour, const struct state *s, char buf[VALUE_MAX])
{
	static const char *const parts[CHART_PARTS] = {
		[CHART_PART_TEXT] = "var(--text)", [CHART_PART_AXIS] = "var(--axis)", [CHART_PART_GRID] = "var(--grid)",
		[CHART_PART_BAD] = "var(--bad)", [CHART_PART_GHOST] = "var(--ghost)", [CHART_PART_PAGE] = "var(--page)",
	};
	int r, g, b;

	if (strcmp(colour, "currentColor") == 0)
		colour = s->colour;
	if (strcmp(colour, "none") == 0)
		return "none";
	/* Around a point, so that its interval stands off. */
	if (strcmp(colour, "white") == 0)
		return parts[CHART_PART_PAGE];
	if (sscanf(colour, "rgb(%d,%d,%d)", &r, &g, &b) != 3 || r != CHART_RGB_RED || b < 0)
		return parts[CHART_PART_TEXT];
	if (g == CHART_RGB_PART && b < CHART_PARTS)
		return parts[b];
	if (g != CHART_RGB_SERIES || b >= CHART_COLOURS)
		return parts[CHART_PART_TEXT];
	snprintf(buf, VALUE_MAX, "var(--c%d)", b);
	return buf;
}

/* Numbers and letters of a path, points or a transform; anything else is left out. */
static void write_geometry(FILE *out, const char *v, size_t n)
{
	bool space = false, any = false;

	for (size_t i = 0; i < n; i++) {
		if (is_space(v[i])) {
			space = any;
			continue;
		}
		if (!strchr("0123456789.,-+()abcdefghijklmnopqrstuvwxyzACHLMQSTVZ", v[i]) || !v[i])
			continue;
		if (space)
			putc(' ', out);
		putc(v[i], out);
		space = false;
		any = true;
	}
}

/* ` name="value"`; nothing where the tag has none, or it is what SVG takes anyway. */
static void copy(struct cleaner *k, const char *tag, const char *end, const char *name, const char *usual)
{
	size_t n;
	const char *v = attribute(tag, end, name, &n);

	if (!v || (usual && strlen(usual) == n && memcmp(v, usual, n) == 0))
		return;
	fprintf(k->out, " %s=\"", name);
	write_geometry(k->out, v, n);
	putc('"', k->out);
}

static void write_colours(struct cleaner *k, const struct state *s)
{
	char buf[VALUE_MAX];

	fprintf(k->out, " fill=\"%s\"", colour_of(s->fill, s, buf));
	if (strcmp(s->stroke, "none") == 0)
		return;
	fprintf(k->out, " stroke=\"%s\" stroke-width=\"", colour_of(s->stroke, s, buf));
	write_geometry(k->out, s->width, strlen(s->width));
	putc('"', k->out);
}

/* --- parts --- */

static struct state state_of(const struct cleaner *k, const char *tag, const char *end)
{
	struct state s = k->stack[k->depth];

	inherit(tag, end, "color", s.colour);
	inherit(tag, end, "stroke", s.stroke);
	inherit(tag, end, "fill", s.fill);
	inherit(tag, end, "stroke-width", s.width);
	inherit(tag, end, "transform", s.place);
	inherit(tag, end, "text-anchor", s.anchor);
	return s;
}

static void on_path(struct cleaner *k, const char *tag, const char *end)
{
	struct state s = state_of(k, tag, end);

	fputs("<path", k->out);
	write_colours(k, &s);
	copy(k, tag, end, "stroke-dasharray", NULL);
	copy(k, tag, end, "d", NULL);
	fputs("/>\n", k->out);
}

static void on_polygon(struct cleaner *k, const char *tag, const char *end)
{
	struct state s = state_of(k, tag, end);

	fputs("<polygon", k->out);
	write_colours(k, &s);
	copy(k, tag, end, "fill-opacity", "1.000000");
	copy(k, tag, end, "points", NULL);
	fputs("/>\n", k->out);
}

/* A point: gnuplot draws its shapes once and refers to them by an id. The open ones are filled with the page's colour,
 * so that the line does not run through them. */
static void on_use(struct cleaner *k, const char *tag, const char *end)
{
	static const struct { const char *d; bool open; } shapes[] = {
		[3] = { "M-.9-.9h1.8v1.8h-1.8z", true }, [4] = { "M-.9-.9h1.8v1.8h-1.8z", false },
		[5] = { "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z", true },
		[6] = { "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z", false },
		[7] = { "M0-1.33L-1.33.67H1.33z", true }, [8] = { "M0-1.33L-1.33.67H1.33z", false },
		[11] = { "M0-1.3L1.3 0L0 1.3L-1.3 0z", true }, [12] = { "M0-1.3L1.3 0L0 1.3L-1.3 0z", false },
	};
	struct state s = state_of(k, tag, end);
	const char *colour;
	char href[VALUE_MAX] = "", buf[VALUE_MAX];
	size_t shape;

	inherit(tag, end, "xlink:href", href);
	if (sscanf(href, "#gpPt%zu", &shape) != 1 || shape >= sizeof(shapes) / sizeof(shapes[0]) || !shapes[shape].d)
		return;
	colour = colour_of(s.colour, &s, buf);
	fprintf(k->out, "<path fill=\"%s\" stroke=\"%s\" stroke-width=\".4\"",
		shapes[shape].open ? "var(--page)" : colour, colour);
	copy(k, tag, end, "transform", NULL);
	fprintf(k->out, " d=\"%s\"/>\n", shapes[shape].d);
}

static void write_escaped(FILE *out, const char *text, size_t characters)
{
	uint32_t code;

	for (size_t n; *text && characters > 0; text += n, characters--) {
		n = utf8_next(text, &code);
		if (code == '&' || code == '<' || code == '>' || code == '"' || code == '\'')
			fprintf(out, "&#%u;", code);
		else
			fwrite(text, 1, n, out);
	}
}

/* Where a rule is that lies off the chart. */
static const char *arrow_of(const struct chart *c, enum chart_word kind, size_t i)
{
	bool vertical = i < c->n_rules && c->rules[i].vertical;

	if (kind == CHART_WORD_RULE_LESS)
		return vertical ? "\xe2\x86\x90 " : "\xe2\x86\x93 ";
	if (kind == CHART_WORD_RULE_MORE)
		return vertical ? "\xe2\x86\x92 " : "\xe2\x86\x91 ";
	return "";
}

static void write_word(struct cleaner *k, enum chart_word kind, size_t i)
{
	size_t shown;
	const char *word = chart_word(k->c, kind, i, &shown);
	char *clean = utf8_clean(word, false);

	fputs(arrow_of(k->c, kind, i), k->out);
	if (clean && utf8_count(clean) > shown) {
		write_escaped(k->out, clean, shown - 1);
		fputs("\xe2\x80\xa6", k->out);
	} else if (clean) {
		write_escaped(k->out, clean, shown);
	}
	if (kind == CHART_WORD_SERIES && i < k->c->n_series && k->c->series[i].right)
		fputs(CHART_ON_THE_RIGHT, k->out);
	free(clean);
}

static void write_text(struct cleaner *k, const struct state *s, const char *text, const char *end)
{
	char raw[VALUE_MAX], kind;
	size_t n = (size_t)(end - text) < VALUE_MAX ? (size_t)(end - text) : VALUE_MAX - 1, i;
	bool is_word;

	*(char *)mempcpy(raw, text, n) = '\0';
	is_word = sscanf(raw, "%c%zu", &kind, &i) == 2 && strchr("SRLMCXYZ", kind);
	fprintf(k->out, "<text class=\"%s\" text-anchor=\"", !is_word || kind == CHART_WORD_CATEGORY ? "tick" :
		strchr("RLM", kind) ? "mark" : "word");
	write_geometry(k->out, s->anchor, strlen(s->anchor));
	fputs("\" transform=\"", k->out);
	write_geometry(k->out, s->place, strlen(s->place));
	fputs("\">", k->out);
	if (is_word)
		write_word(k, (enum chart_word)kind, i);
	else
		write_escaped(k->out, raw, VALUE_MAX);
	fputs("</text>\n", k->out);
}

/* --- the whole --- */

static bool is_tag(const char *tag, const char *name)
{
	size_t n = strlen(name);

	return strncmp(tag + 1, name, n) == 0 && strchr(" \t\n/>", tag[1 + n]);
}

static void on_group(struct cleaner *k, const char *tag, const char *end)
{
	struct state s = state_of(k, tag, end);

	if (k->depth + 1 < DEPTH_MAX)
		k->stack[++k->depth] = s;
}

/* Handles the tag and returns where to go on; NULL: there is no end to it. */
static const char *on_tag(struct cleaner *k, const char *tag, const char *to)
{
	static const char *const left_out[] = { "title", "desc", "defs" };
	const char *end = memchr(tag, '>', (size_t)(to - tag)), *close;

	if (!end)
		return NULL;
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
		char closing[16];
		size_t n = (size_t)snprintf(closing, sizeof(closing), "</%s>", left_out[i]);

		if (is_tag(tag, left_out[i])) {
			close = memmem(end, (size_t)(to - end), closing, n);
			return close ? close + n : NULL;
		}
	}
	if (is_tag(tag, "text")) {
		close = memmem(end, (size_t)(to - end), "</text>", 7);
		if (close)
			write_text(k, &k->stack[k->depth], end + 1, close);
		return close ? close + 7 : NULL;
	}
	if (is_tag(tag, "g"))
		on_group(k, tag, end);
	else if (is_tag(tag, "/g"))
		k->depth -= k->depth > 0;
	else if (is_tag(tag, "path"))
		on_path(k, tag, end);
	else if (is_tag(tag, "polygon"))
		on_polygon(k, tag, end);
	else if (is_tag(tag, "use"))
		on_use(k, tag, end);
	return end + 1;
}

char *chart_svg_clean(const struct chart *c, const char *from, const char *to)
{
	struct cleaner k = { .c = c, .stack = { { "black", "none", "none", "1", "", "start" } } };
	const char *p = memmem(from, (size_t)(to - from), "<svg", 4), *end;
	char *text = NULL;
	size_t n;

	end = p ? memchr(p, '>', (size_t)(to - p)) : NULL;
	k.out = end ? open_memstream(&text, &n) : NULL;
	if (!k.out)
		return NULL;
	fputs("<svg class=\"chart\"", k.out);
	copy(&k, p, end, "viewBox", NULL);
	fputs(">\n", k.out);
	for (p = end; p && (p = memchr(p, '<', (size_t)(to - p))); )
		p = on_tag(&k, p, to);
	fputs("</svg>\n", k.out);
	if (fclose(k.out) || !text) {
		free(text);
		return NULL;
	}
	return text;
}

char *chart_standalone(const char *svg, const char *title, const char *description)
{
	const char *end = strchr(svg, '>');
	char *text = NULL, *clean;
	FILE *out;
	size_t n;

	if (strncmp(svg, "<svg", 4) != 0 || !end)
		return NULL;
	out = open_memstream(&text, &n);
	if (!out)
		return NULL;
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"%.*s\n", (int)(end + 1 - svg - 4), svg + 4);
	clean = utf8_clean(title ? title : "", false);
	fputs("<title>", out);
	write_escaped(out, clean ? clean : "", SIZE_MAX);
	free(clean);
	clean = utf8_clean(description ? description : "", false);
	fputs("</title>\n<desc>", out);
	write_escaped(out, clean ? clean : "", SIZE_MAX);
	free(clean);
	fputs("</desc>\n<style>.chart{" STYLE_LIGHT "background:var(--page)}\n@media (prefers-color-scheme:dark){.chart{"
	      STYLE_DARK "}}\n" STYLE_CHART "</style>", out);
	fputs(end + 1, out);
	if (fclose(out) || !text) {
		free(text);
		return NULL;
	}
	return text;
}
