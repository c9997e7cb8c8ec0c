/* SPDX-License-Identifier: BSD-2-Clause */
/* Command-line options from one sorted table.
 *
 * Purpose: check every value against the table and store it; write --help from the same table. getopt_long walks over
 * argv; messages are written here. Not here: relations between options (the program checks those), configuration files.
 * Threads: one at a time, because getopt_long has its state in globals.
 * Invariants: the table is sorted by name without duplicates and has at most OPTS_MAX entries (both
 * asserted: they are the program's own text, never input). Values are read in opts_value.c.
 */
#include "common/base/opts.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/opts_value.h"
#include "common/base/utf8.h"

#define OPTS_MAX     256
#define SHOWN_MAX    64		/* bytes of an argument that an error repeats */
#define ALLOWED_MAX  512	/* bytes of a range or of choices in --help, which are cut there */
#define HELP_COLUMNS 100
#define HELP_INDENT  30

/* Every program has these two, without an entry in its table. */
static const struct opt help_opt = {
	.name = "help", .type = OPT_FLAG, .help = "Print this text and exit.",
};
static const struct opt version_opt = {
	.name = "version", .type = OPT_FLAG, .help = "Print the version and exit.",
};

/* ---- text in a fixed buffer, cut where the buffer ends ---- */

struct text {
	char *buf;
	size_t size, len;
};

static void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void text_add(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	if (t->len + 1 >= t->size)
		return;
	va_start(ap, format);
	n = vsnprintf(t->buf + t->len, t->size - t->len, format, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n;	/* of the uncut text; at `size` or beyond, buf is full */
}

/* Adds what the user typed, cut to SHOWN_MAX bytes, with control characters as digits. */
static void text_add_shown(struct text *t, const char *s, size_t len)
{
	char cut[SHOWN_MAX + 1], shown[4 * SHOWN_MAX + 1];

	snprintf(cut, sizeof(cut), "%.*s", (int)(len > SHOWN_MAX ? SHOWN_MAX : len), s);
	text_add(t, "%s%s", utf8_show(cut, shown, sizeof(shown)), len > SHOWN_MAX ? "..." : "");
}

static void text_add_in_units(struct text *t, uint64_t v, const struct opts_unit *units, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v && v % units[i].scale == 0) {
			text_add(t, "%ju%s", (uintmax_t)(v / units[i].scale), units[i].suffix);
			return;
		}
	if (!v)
		text_add(t, "0");
	else	/* a duration that is not a whole number of us */
		text_add(t, "%ju.%03juus", (uintmax_t)(v / 1000), (uintmax_t)(v % 1000));
}

static void text_add_bound(struct text *t, const struct opt *o, uint64_t v)
{
	if (o->type == OPT_SIZE || o->type == OPT_SIZES)
		text_add_in_units(t, v, opts_size_units, OPTS_SIZE_UNITS);
	else if (o->type == OPT_DURATION)
		text_add_in_units(t, v, opts_duration_units, OPTS_DURATION_UNITS);
	else
		text_add(t, "%ju", (uintmax_t)v);
}

static void text_add_range(struct text *t, const struct opt *o)
{
	text_add_bound(t, o, o->min);
	if (o->max == UINT64_MAX) {
		text_add(t, " or more");
	} else {
		text_add(t, " to ");
		text_add_bound(t, o, o->max);
	}
}

static void text_add_allowed(struct text *t, const struct opt *o)
{
	switch (o->type) {
	case OPT_FLAG:
		text_add(t, "no value");
		break;
	case OPT_UINT:
	case OPT_SIZE:
	case OPT_DURATION:
		text_add_range(t, o);
		break;
	case OPT_STRING:
		text_add(t, "any text that is not empty");
		break;
	case OPT_TEXTS:
		text_add(t, "any text that is not empty; the option at most %d times", OPT_TEXTS_MAX);
		break;
	case OPT_CHOICE:
		for (size_t i = 0; o->choices[i]; i++)
			text_add(t, "%s%s", i == 0 ? "" : o->choices[i + 1] ? ", " : " or ",
				 o->choices[i]);
		break;
	case OPT_LIST:
		text_add_range(t, o);
		text_add(t, " each, comma-separated, at most %d", OPT_LIST_MAX);
		break;
	case OPT_SIZES:
		text_add_range(t, o);
		text_add(t, " each, comma-separated; A-B is A, doubled up to B; at most %d", OPT_LIST_MAX);
		break;
	}
}

/* ---- the walk over argv ---- */

struct walk {
	const struct opts_spec *spec;
	int argc;
	char **argv;
	struct option options[OPTS_MAX + 3];	/* of the table, --help, --version, and the end */
	const char *arg;	/* the argument as typed */
	const char *name;	/* in it, after the dashes; not terminated at `=` */
	size_t name_len;
	const struct opt *opt;	/* NULL: unknown */
	const char *value;	/* NULL: none given */
};

#define CODE_FIRST 256	/* what getopt_long returns for the table's first option */

static void walk_begin(struct walk *w, const struct opts_spec *spec, int argc, char **argv)
{
	size_t n = spec->n_opts;

	*w = (struct walk){ .spec = spec, .argc = argc, .argv = argv };
	for (size_t i = 0; i < n; i++)
		w->options[i] = (struct option){ spec->opts[i].name, spec->opts[i].type != OPT_FLAG, NULL,
						 CODE_FIRST + (int)i };
	w->options[n] = (struct option){ help_opt.name, no_argument, NULL, 'h' };
	w->options[n + 1] = (struct option){ version_opt.name, no_argument, NULL, 'V' };
	optind = 0;	/* glibc: begin anew */
	opterr = 0;
}

static const struct opt *opt_of_code(const struct opts_spec *spec, int code)
{
	if (code == 'h')
		return &help_opt;
	if (code == 'V')
		return &version_opt;
	return code >= CODE_FIRST ? &spec->opts[code - CODE_FIRST] : NULL;
}

/* getopt_long takes abbreviations and several short options in one argument; an option has one spelling here. */
static bool is_spelt_out(const struct walk *w)
{
	if (w->arg[1] != '-')
		return w->name_len == 1 && !w->name[1];
	return strlen(w->opt->name) == w->name_len && memcmp(w->opt->name, w->name, w->name_len) == 0;
}

/* Steps to the next option. False at `--`, at an operand and at the end, with the next argument's index in optind. */
static bool walk_next(struct walk *w)
{
	int at = optind ? optind : 1;
	int code = getopt_long(w->argc, w->argv, "+:hV", w->options, NULL);

	if (code == -1)
		return false;
	w->arg = w->argv[at];
	w->name = w->arg + (w->arg[1] == '-' ? 2 : 1);
	w->name_len = strcspn(w->name, "=");
	w->opt = opt_of_code(w->spec, code == '?' || code == ':' ? optopt : code);
	if (w->opt && !is_spelt_out(w))
		w->opt = NULL;
	w->value = w->name[w->name_len] ? w->name + w->name_len + 1 : optarg;
	/* A following option is not the value: it would hide that the value was forgotten. */
	if (w->value == w->argv[at + 1] && w->value && strncmp(w->value, "--", 2) == 0)
		w->value = NULL;
	return true;
}

/* ---- errors ---- */

/* True if one letter inserted, dropped or changed, or two swapped, make one name the other. */
static bool is_near(const char *a, size_t a_len, const char *b, size_t b_len)
{
	for (; a_len && b_len && *a == *b; a_len--, b_len--)
		a++, b++;
	for (; a_len && b_len && a[a_len - 1] == b[b_len - 1]; a_len--)
		b_len--;
	if (a_len == 2 && b_len == 2)
		return a[0] == b[1] && a[1] == b[0];
	return a_len <= 1 && b_len <= 1;
}

static const struct opt *suggest(const struct opts_spec *spec, const char *name, size_t len)
{
	if (len < 2)
		return NULL;
	for (size_t i = 0; i < spec->n_opts; i++) {
		const char *known = spec->opts[i].name;

		if (strncmp(known, name, len) == 0 || is_near(name, len, known, strlen(known)))
			return &spec->opts[i];
	}
	return NULL;
}

static void explain_unknown(const struct walk *w, struct text *err)
{
	const struct opt *o = suggest(w->spec, w->name, w->name_len);

	text_add_shown(err, w->arg, (size_t)(w->name - w->arg) + w->name_len);
	text_add(err, ": unknown option");
	if (o)
		text_add(err, "; did you mean --%s?", o->name);
	text_add(err, " (see --help)");
}

static void explain_value(const struct walk *w, const char *problem, struct text *err)
{
	text_add(err, "--%s: ", w->opt->name);
	if (w->value && *w->value && w->opt->type != OPT_FLAG) {
		text_add_shown(err, w->value, strlen(w->value));
		text_add(err, " ");
	}
	text_add(err, "%s; allowed: ", problem);
	text_add_allowed(err, w->opt);
}

static const char *check_value(const struct walk *w, void *config)
{
	if (w->opt->type == OPT_FLAG && w->value)
		return "value given";
	if (w->opt->type != OPT_FLAG && !w->value)
		return "value missing";
	if (w->opt->type != OPT_FLAG && !*w->value)
		return "empty value";
	if (w->opt == &help_opt || w->opt == &version_opt)
		return NULL;
	return opts_store_value(w->opt, w->value, config);
}

static void assert_table(const struct opts_spec *spec)
{
	assert(spec->n_opts <= OPTS_MAX);
	for (size_t i = 1; i < spec->n_opts; i++)
		assert(strcmp(spec->opts[i - 1].name, spec->opts[i].name) < 0);
}

enum opts_result opts_parse(const struct opts_spec *spec, int argc, char **argv, void *config,
			    int *first_arg, char *err, size_t err_size)
{
	struct walk w;
	struct text e = { .buf = err, .size = err_size };
	bool seen[OPTS_MAX] = { false };

	assert_table(spec);
	if (err_size)
		err[0] = '\0';
	walk_begin(&w, spec, argc, argv);
	while (walk_next(&w)) {
		const char *problem;

		if (!w.opt) {
			explain_unknown(&w, &e);
			return OPTS_ERROR;
		}
		problem = check_value(&w, config);
		if (problem) {
			explain_value(&w, problem, &e);
			return OPTS_ERROR;
		}
		if (w.opt == &help_opt)
			return OPTS_HELP;
		if (w.opt == &version_opt)
			return OPTS_VERSION;
		if (seen[w.opt - spec->opts] && w.opt->type != OPT_TEXTS) {
			text_add(&e, "--%s: given twice; allowed: once", w.opt->name);
			return OPTS_ERROR;
		}
		seen[w.opt - spec->opts] = true;
	}
	*first_arg = optind;
	return OPTS_OK;
}

int opts_given(const struct opts_spec *spec, int argc, char **argv, const char *name)
{
	struct walk w;

	walk_begin(&w, spec, argc, argv);
	while (walk_next(&w))
		if (w.opt && strcmp(w.opt->name, name) == 0)
			return 1;
	return 0;
}

void opts_operands_last(const struct opts_spec *spec, int argc, char **argv)
{
	struct walk w;

	walk_begin(&w, spec, argc, argv);
	while (getopt_long(argc, argv, ":hV", w.options, NULL) != -1)
		; /* getopt_long moves the operands */
}

void opts_print_error(const struct opts_spec *spec, const char *text, FILE *out)
{
	utf8_print_line(out, "%s: %s", spec->program, text);
}

/* ---- help ---- */

struct wrap {
	FILE *out;
	size_t indent, column;
};

static void wrap_break(struct wrap *w)
{
	fprintf(w->out, "\n%*s", (int)w->indent, "");
	w->column = w->indent;
}

/* Adds the words of `s` to the paragraph; a newline in `s` begins a new line. */
static void wrap_add(struct wrap *w, const char *s)
{
	while (*s) {
		size_t word = strcspn(s, " \n");

		if (word) {
			bool first = w->column == w->indent;

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

static void help_option(const struct opt *o, const char *short_name, FILE *out)
{
	bool ranged = o->type != OPT_FLAG && o->type != OPT_STRING && o->type != OPT_TEXTS;
	struct wrap w = { .out = out, .indent = HELP_INDENT };
	char note[ALLOWED_MAX] = "";
	struct text t = { .buf = note, .size = sizeof(note) };
	int n;

	n = fprintf(out, "  %s--%s%s%s", short_name, o->name, o->metavar ? " " : "",
		    o->metavar ? o->metavar : "");
	if (n < 0 || n > HELP_INDENT - 2)
		wrap_break(&w);
	else
		fprintf(out, "%*s", HELP_INDENT - n, "");
	w.column = HELP_INDENT;
	wrap_add(&w, o->help);
	if (ranged || o->def) {
		text_add(&t, "(");
		if (ranged)
			text_add_allowed(&t, o);
		text_add(&t, "%s%s%s)", ranged && o->def ? "; " : "", o->def ? "default: " : "",
			 o->def ? o->def : "");
		wrap_add(&w, note);
	}
	fputc('\n', out);
}

void opts_print_help(const struct opts_spec *spec, FILE *out)
{
	assert_table(spec);
	fprintf(out, "Usage: %s %s\n\n", spec->program, spec->usage);
	/* Not wrapped: it may be laid out by hand. */
	fprintf(out, "%s\n\nOptions:\n", spec->summary);
	for (size_t i = 0; i < spec->n_opts; i++)
		help_option(&spec->opts[i], "", out);
	help_option(&help_opt, "-h, ", out);
	help_option(&version_opt, "-V, ", out);
	if (!spec->epilog)
		return;
	fprintf(out, "\n%s", spec->epilog);
	if (*spec->epilog && spec->epilog[strlen(spec->epilog) - 1] != '\n')
		fputc('\n', out);
}
