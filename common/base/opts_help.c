/* SPDX-License-Identifier: BSD-2-Clause */
/* --help, and the tables of docs/options.md, from the table of options. See opts.h. */
#include "common/base/opts.h"

#include <string.h>

#include "common/base/opts_value.h"

#define HELP_COLUMNS 100
#define HELP_INDENT 30

/* Every program has these two, without an entry in its table. */
static const struct opt always[] = {
	{ .name = "help, -h", .type = OPT_FLAG, .help = "Print this text and exit." },
	{ .name = "version, -V", .type = OPT_FLAG, .help = "Print the version and exit." },
};

struct wrap {
	FILE *out;
	size_t column;
};

static void wrap_break(struct wrap *w)
{
	fprintf(w->out, "\n%*s", HELP_INDENT, "");
	w->column = HELP_INDENT;
}

/* Adds the words of `s` to the paragraph; a newline in `s` begins a new line. */
static void wrap_add(struct wrap *w, const char *s)
{
	while (*s) {
		size_t word = strcspn(s, " \n");

		if (word) {
			bool first = w->column == HELP_INDENT;

			if (!first && w->column + 1 + word > HELP_COLUMNS) {
				wrap_break(w);
				first = true;
			}
			fprintf(w->out, "%s%.*s", first ? "" : " ", (int)word, s);
			w->column += word + !first;
		}
		s += word;
		if (*s == '\n')
			wrap_break(w);
		s += *s != '\0';
	}
}

static const char *default_text(const struct opt *o)
{
	return o->def_words ? o->def_words : o->def;
}

static bool has_range(const struct opt *o)
{
	return o->type != OPT_FLAG && o->type != OPT_STRING && o->type != OPT_TEXTS && o->type != OPT_CONFIG;
}

static void print_option(const struct opt *o, bool with_range, FILE *out)
{
	bool ranged = with_range && has_range(o);
	const char *def = default_text(o);
	char allowed[OPTS_ALLOWED_MAX], note[OPTS_ALLOWED_MAX + 128];
	struct wrap w = { .out = out, .column = HELP_INDENT };
	int n = fprintf(out, "  --%s%s%s", o->name, o->metavar ? " " : "", o->metavar ? o->metavar : "");

	if (n < 0 || n > HELP_INDENT - 2)
		wrap_break(&w);
	else
		fprintf(out, "%*s", HELP_INDENT - n, "");
	wrap_add(&w, o->help);
	/* The short help has one line for an option: a default is shown if there is room. */
	if (!with_range && def && w.column + strlen(" (default: )") + strlen(def) > HELP_COLUMNS)
		def = NULL;
	if (ranged || def) {
		snprintf(note, sizeof(note), "(%s%s%s%s)", ranged ? opts_value_allowed(o, allowed) : "", ranged &&
			 def ? "; " : "", def ? "default: " : "", def ? def : "");
		wrap_add(&w, note);
	}
	fputc('\n', out);
}

static bool is_hidden(const struct opts_spec *spec, const struct opt *o)
{
	size_t n = strlen(o->name);

	for (const char *p = spec->hidden; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == n && strncmp(p, o->name, n) == 0)
			return true;
	return false;
}

/* True if --help shows the option in this group (NULL: any). */
static bool is_in(const struct opts_spec *spec, const struct opt *o, const struct opts_group *g)
{
	return !is_hidden(spec, o) && (!g || (o->group && strcmp(o->group, g->name) == 0));
}

/* Prints the options of a group; NULL: all options. */
static void print_group(const struct opts_spec *spec, const struct opts_group *g, FILE *out)
{
	if (g)
		fprintf(out, "\n%s (--help %s):\n", g->title, g->name);
	for (size_t i = 0; i < spec->n_opts; i++)
		if (is_in(spec, &spec->opts[i], g))
			print_option(&spec->opts[i], true, out);
}

static void print_always(FILE *out)
{
	print_option(&always[0], true, out);
	print_option(&always[1], true, out);
}

static void print_groups(const struct opts_spec *spec, const char *topic, FILE *out)
{
	for (size_t i = 0; i < spec->n_groups; i++)
		if (strcmp(topic, "all") == 0 || strcmp(topic, spec->groups[i].name) == 0)
			print_group(spec, &spec->groups[i], out);
}

static void print_common(const struct opts_spec *spec, FILE *out)
{
	fprintf(out, "\nCommon options:\n");
	for (size_t g = 0; g < spec->n_groups; g++)
		for (size_t i = 0; i < spec->n_opts; i++)
			if (spec->opts[i].common && is_in(spec, &spec->opts[i], &spec->groups[g]))
				print_option(&spec->opts[i], false, out);
	print_always(out);
	fprintf(out, "\nAll options, by group (--help GROUP, or --help all):\n");
	for (size_t i = 0; i < spec->n_groups; i++)
		fprintf(out, "  %-12s %s\n", spec->groups[i].name, spec->groups[i].title);
}

/* Prints a cell of a table: names of options become code, and bars are escaped, because a bar ends the cell. */
static void print_cell(const char *s, FILE *out)
{
	bool code = false;

	for (const char *p = s; *p; p++) {
		size_t name = !code && (p == s || strchr(" (/", p[-1])) && strncmp(p, "--", 2) == 0 ?
			      2 + strspn(p + 2, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;

		if (name > 2) {
			fprintf(out, "`%.*s`", (int)name, p);
			p += name - 1;
			continue;
		}
		code ^= *p == '`';
		fprintf(out, *p == '|' ? "\\%c" : "%c", *p);
	}
}

static void print_row(const struct opt *o, FILE *out)
{
	const char *def = default_text(o);
	char allowed[OPTS_ALLOWED_MAX];

	fprintf(out, "| `--%s%s", o->name, o->metavar ? " " : "");
	print_cell(o->metavar ? o->metavar : "", out);
	fprintf(out, "` | ");
	print_cell(has_range(o) ? opts_value_allowed(o, allowed) : "", out);
	fprintf(out, " | ");
	print_cell(def ? def : o->type == OPT_FLAG ? "off" : "", out);
	fprintf(out, " | ");
	print_cell(o->help, out);
	if (o->more) {
		fputc(' ', out);
		print_cell(o->more, out);
	}
	fprintf(out, " |\n");
}

static void print_markdown(const struct opts_spec *spec, FILE *out)
{
	static const struct opts_group none = { .name = NULL };

	for (size_t i = 0; i < (spec->n_groups ? spec->n_groups : 1); i++) {
		const struct opts_group *g = spec->n_groups ? &spec->groups[i] : &none;

		if (g->title)
			fprintf(out, "%s### %s\n\n", i ? "\n" : "", g->title);
		fprintf(out, "| option | allowed | default | meaning |\n|---|---|---|---|\n");
		for (size_t k = 0; k < spec->n_opts; k++)
			if (is_in(spec, &spec->opts[k], g->name ? g : NULL))
				print_row(&spec->opts[k], out);
	}
}

void opts_print_help(const struct opts_spec *spec, const char *topic, FILE *out)
{
	if (topic && topic[0] == '-')	/* another option, not a topic */
		topic = NULL;
	if (topic && strcmp(topic, "markdown") == 0) {
		print_markdown(spec, out);
		return;
	}
	fprintf(out, "Usage: %s %s\n\n", spec->program, spec->usage);
	/* Not wrapped: it may be laid out by hand. */
	fprintf(out, "%s\n", spec->summary);
	if (!spec->n_groups) {
		fprintf(out, "\nOptions:\n");
		print_group(spec, NULL, out);
		print_always(out);
	} else if (topic) {
		print_groups(spec, topic, out);
	} else {
		print_common(spec, out);
	}
	if (spec->epilog)
		fprintf(out, "\n%s\n", spec->epilog);
}
