/* Command-line options from one sorted table.
 *
 * Purpose: walk argv, check every value against the table and store it; write --help from the same
 * table. Not here: relations between options (the program checks those), configuration files.
 * Threads: none of its own; everything is on the caller's stack.
 * Invariants: the table is sorted by name without duplicates and has at most OPTS_MAX entries (both
 * asserted: they are the program's own text, never input). Values are read in opts_value.c.
 */
#include "common/base/opts.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/opts_value.h"

#define OPTS_MAX     256
#define SHOWN_MAX    64		/* bytes of an argument that an error repeats */
#define ALLOWED_MAX  512	/* bytes of a range or of choices in --help; cut beyond */
#define HELP_COLUMNS 100
#define HELP_INDENT  30

/* Taken by every program; no table entry. */
static const struct opt help_opt = {
	.name = "help", .type = OPT_FLAG, .help = "Print this text and exit.",
};
static const struct opt version_opt = {
	.name = "version", .type = OPT_FLAG, .help = "Print the version and exit.",
};

/* ---- text in a fixed buffer, cut when full ---- */

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
		t->len += (size_t)n;	/* of the whole; beyond the size means full */
}

/* Something the user typed: cut to a readable length, one line whatever it holds. */
static void text_add_shown(struct text *t, const char *s, size_t len)
{
	size_t shown = len > SHOWN_MAX ? SHOWN_MAX : len;

	for (size_t i = 0; i < shown; i++)
		text_add(t, "%c", iscntrl((unsigned char)s[i]) ? '?' : s[i]);
	if (shown < len)
		text_add(t, "...");
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
	else	/* only a duration that is no whole number of us */
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

struct cursor {
	const struct opts_spec *spec;
	int argc;
	char **argv;
	int next;		/* index of the next argument; of the first operand at the end */
	const char *arg;	/* the argument as typed */
	const char *name;	/* in it, after the dashes; not terminated at `=` */
	size_t name_len;
	const struct opt *opt;	/* NULL: unknown */
	const char *value;	/* NULL: none given */
};

#define OPTS_OPERANDS_MAX 64

static const struct opt *find_opt(const struct opts_spec *spec, const char *name, size_t len)
{
	for (size_t low = 0, high = spec->n_opts; low < high;) {
		size_t mid = low + (high - low) / 2;
		const struct opt *o = &spec->opts[mid];
		int order = strncmp(name, o->name, len);

		if (order == 0 && !o->name[len])
			return o;
		if (order > 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (len == strlen(help_opt.name) && memcmp(name, help_opt.name, len) == 0)
		return &help_opt;
	if (len == strlen(version_opt.name) && memcmp(name, version_opt.name, len) == 0)
		return &version_opt;
	return NULL;
}

static bool is_long(const char *arg)
{
	return arg[0] == '-' && arg[1] == '-';
}

/* Steps to the next option. False at `--`, at an operand and at the end. */
static bool cursor_next(struct cursor *c)
{
	const char *arg = c->next < c->argc ? c->argv[c->next] : "";

	if (arg[0] != '-' || !arg[1])
		return false;
	c->next++;
	if (strcmp(arg, "--") == 0)
		return false;
	c->arg = arg;
	c->name = arg + (is_long(arg) ? 2 : 1);
	c->name_len = strcspn(c->name, "=");
	c->value = c->name[c->name_len] ? c->name + c->name_len + 1 : NULL;
	if (is_long(arg))
		c->opt = find_opt(c->spec, c->name, c->name_len);
	else
		c->opt = strcmp(arg, "-h") == 0 ? &help_opt :
			 strcmp(arg, "-V") == 0 ? &version_opt : NULL;
	/* A following option is not the value: it would hide that the value was forgotten. */
	if (c->opt && c->opt->type != OPT_FLAG && !c->value && c->next < c->argc &&
	    !is_long(c->argv[c->next]))
		c->value = c->argv[c->next++];
	return true;
}

/* ---- errors ---- */

/* True if one letter inserted, dropped, changed or two swapped make one name of the other. */
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

static void explain_unknown(const struct cursor *c, struct text *err)
{
	const struct opt *o = suggest(c->spec, c->name, c->name_len);

	text_add_shown(err, c->arg, (size_t)(c->name - c->arg) + c->name_len);
	text_add(err, ": unknown option");
	if (o)
		text_add(err, "; did you mean --%s?", o->name);
	text_add(err, " (see --help)");
}

static void explain_value(const struct cursor *c, const char *problem, struct text *err)
{
	text_add(err, "--%s: ", c->opt->name);
	if (c->value && *c->value && c->opt->type != OPT_FLAG) {
		text_add_shown(err, c->value, strlen(c->value));
		text_add(err, " ");
	}
	text_add(err, "%s; allowed: ", problem);
	text_add_allowed(err, c->opt);
}

static const char *check_value(const struct cursor *c, void *config)
{
	if (c->opt->type == OPT_FLAG && c->value)
		return "value given";
	if (c->opt->type != OPT_FLAG && !c->value)
		return "value missing";
	if (c->opt->type != OPT_FLAG && !*c->value)
		return "empty value";
	if (c->opt == &help_opt || c->opt == &version_opt)
		return NULL;
	return opts_store_value(c->opt, c->value, config);
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
	struct cursor c = { .spec = spec, .argc = argc, .argv = argv, .next = 1 };
	struct text e = { .buf = err, .size = err_size };
	bool seen[OPTS_MAX] = { false };

	assert_table(spec);
	if (err_size)
		err[0] = '\0';
	while (cursor_next(&c)) {
		const char *problem;

		if (!c.opt) {
			explain_unknown(&c, &e);
			return OPTS_ERROR;
		}
		problem = check_value(&c, config);
		if (problem) {
			explain_value(&c, problem, &e);
			return OPTS_ERROR;
		}
		if (c.opt == &help_opt)
			return OPTS_HELP;
		if (c.opt == &version_opt)
			return OPTS_VERSION;
		if (seen[c.opt - spec->opts]) {
			text_add(&e, "--%s: given twice; allowed: once", c.opt->name);
			return OPTS_ERROR;
		}
		seen[c.opt - spec->opts] = true;
	}
	*first_arg = c.next;
	return OPTS_OK;
}

int opts_given(const struct opts_spec *spec, int argc, char **argv, const char *name)
{
	struct cursor c = { .spec = spec, .argc = argc, .argv = argv, .next = 1 };

	while (cursor_next(&c))
		if (c.opt && strcmp(c.opt->name, name) == 0)
			return 1;
	return 0;
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

/* Continues the paragraph with the words of `s`; a newline in it begins a new line. */
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
	bool ranged = o->type != OPT_FLAG && o->type != OPT_STRING;
	struct wrap w = { .out = out, .indent = HELP_INDENT };
	char note[ALLOWED_MAX];
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
	/* As written: it may be laid out by hand. */
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

void opts_operands_last(const struct opts_spec *spec, int argc, char **argv)
{
	struct cursor c = { .spec = spec, .argc = argc, .argv = argv, .next = 1 };
	char *operands[OPTS_OPERANDS_MAX];
	int n = 0, to = 1;

	while (c.next < argc && n < OPTS_OPERANDS_MAX && strcmp(argv[c.next], "--") != 0) {
		int from = c.next;

		if (cursor_next(&c)) {
			while (from < c.next)
				argv[to++] = argv[from++];
		} else {
			operands[n++] = argv[c.next++];
		}
	}
	/* What is left starts with `--`, after which all are operands: those from before go behind it. */
	if (c.next < argc)
		argv[to++] = argv[c.next];
	memcpy(&argv[to], operands, (size_t)n * sizeof(argv[0]));
}
