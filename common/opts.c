/* Command-line options from one sorted table.
 *
 * Purpose: walk argv, check every value against the table and store it; write --help from the same
 * table. Not here: relations between options (the program checks those), configuration files.
 * Threads: none of its own; everything is on the caller's stack.
 * Invariants: the table is sorted by name without duplicates and has at most OPTS_MAX entries (both
 * asserted: they are the program's own text, never input). Numbers are decimal digits only: no
 * sign, no space, no exponent, and what does not fit in 64 bits is out of range.
 */
#include "common/opts.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define OPTS_MAX     256
#define SHOWN_MAX    64		/* bytes of an argument that an error repeats */
#define ALLOWED_MAX  512	/* bytes of a range or of choices in --help; cut beyond */
#define HELP_COLUMNS 100
#define HELP_INDENT  30

struct unit {
	const char *suffix;
	uint64_t scale;
};

/* Largest first: the first that divides a value is the one it is printed in. */
static const struct unit size_units[] = {
	{ "G", UINT64_C(1) << 30 }, { "M", UINT64_C(1) << 20 }, { "k", UINT64_C(1) << 10 },
	{ "", 1 },
};
static const struct unit duration_units[] = {
	{ "h", UINT64_C(3600000000000) }, { "m", UINT64_C(60000000000) },
	{ "s", UINT64_C(1000000000) },	  { "ms", UINT64_C(1000000) },
	{ "us", UINT64_C(1000) },	  { "", UINT64_C(1000000000) },
};

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

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

static void text_add_in_units(struct text *t, uint64_t v, const struct unit *units, size_t n)
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
		text_add_in_units(t, v, size_units, N_ELEMENTS(size_units));
	else if (o->type == OPT_DURATION)
		text_add_in_units(t, v, duration_units, N_ELEMENTS(duration_units));
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

/* ---- values: each parser returns NULL, or in words what is wrong with the text ---- */

static const char not_allowed[] = "is not allowed";
static const char not_whole[] = "is not a whole number";

/* Takes the digits at *p. False if there are none. What does not fit makes *fits false. */
static bool take_digits(const char **p, uint64_t *v, bool *fits)
{
	const char *start = *p;

	*v = 0;
	*fits = true;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(*v, 10, v) ||
		    __builtin_add_overflow(*v, (uint64_t)(**p - '0'), v))
			*fits = false;
	return *p != start;
}

static const struct unit *find_unit(const char *suffix, const struct unit *units, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(suffix, units[i].suffix) == 0)
			return &units[i];
	return NULL;
}

static const char *parse_uint(const char *s, uint64_t *v)
{
	bool fits;

	if (!take_digits(&s, v, &fits) || *s)
		return not_whole;
	return fits ? NULL : not_allowed;
}

static const char *parse_size(const char *s, uint64_t *v)
{
	const struct unit *unit;
	bool fits;

	if (!take_digits(&s, v, &fits))
		return "is not a number of bytes (suffix k, M or G)";
	unit = find_unit(s, size_units, N_ELEMENTS(size_units));
	if (!unit)
		return "is not a number of bytes (suffix k, M or G)";
	if (!fits || __builtin_mul_overflow(*v, unit->scale, v))
		return not_allowed;
	return NULL;
}

/* In integers throughout: 0.1 is exactly 100,000,000 ns. */
static const char *parse_duration(const char *s, uint64_t *v)
{
	static const char syntax[] = "is not a duration (seconds, or suffix us, ms, s, m or h)";
	unsigned __int128 ns, fraction_ns;
	uint64_t fraction = 0, divisor = 1;
	bool fits, fraction_fits = true;
	const struct unit *unit;

	if (!take_digits(&s, v, &fits))
		return syntax;
	if (*s == '.') {
		const char *start = ++s;

		if (!take_digits(&s, &fraction, &fraction_fits))
			return syntax;
		for (; start < s && fraction_fits; start++)
			fraction_fits = !__builtin_mul_overflow(divisor, 10, &divisor);
	}
	unit = find_unit(s, duration_units, N_ELEMENTS(duration_units));
	if (!unit)
		return syntax;
	fraction_ns = (unsigned __int128)fraction * unit->scale;
	if (!fraction_fits || fraction_ns % divisor)
		return "is finer than a nanosecond";
	ns = (unsigned __int128)*v * unit->scale + fraction_ns / divisor;
	if (!fits || ns > UINT64_MAX)
		return not_allowed;
	*v = (uint64_t)ns;
	return NULL;
}

static const char *check_range(const struct opt *o, uint64_t v)
{
	return v < o->min || v > o->max ? not_allowed : NULL;
}

static const char *parse_number(const struct opt *o, const char *s, uint64_t *v)
{
	const char *problem;

	if (o->type == OPT_SIZE)
		problem = parse_size(s, v);
	else if (o->type == OPT_DURATION)
		problem = parse_duration(s, v);
	else
		problem = parse_uint(s, v);
	return problem ? problem : check_range(o, *v);
}

static const char *list_add(const struct opt *o, struct opt_list *list, uint64_t v)
{
	if (check_range(o, v))
		return not_allowed;
	if (list->n == OPT_LIST_MAX)
		return "is too long";
	list->v[list->n++] = v;
	return NULL;
}

static const char *parse_list(const struct opt *o, const char *s, struct opt_list *list)
{
	const char *problem;

	list->n = 0;
	for (;;) {
		uint64_t v;
		bool fits;

		if (!take_digits(&s, &v, &fits) || (*s && *s != ','))
			return "is not a list of whole numbers";
		problem = fits ? list_add(o, list, v) : not_allowed;
		if (problem || !*s++)
			return problem;
	}
}

/* The text up to `end` as a size. */
static const char *parse_size_of(const char *s, const char *end, uint64_t *v)
{
	char text[32];

	if ((size_t)(end - s) >= sizeof(text))
		return not_allowed;
	memcpy(text, s, (size_t)(end - s));
	text[end - s] = '\0';
	return parse_size(text, v);
}

/* One size, or A-B. */
static const char *parse_size_range(const struct opt *o, const char *s, const char *end, struct opt_list *list)
{
	const char *dash = memchr(s, '-', (size_t)(end - s)), *problem;
	uint64_t v, last;

	problem = parse_size_of(s, dash ? dash : end, &v);
	last = v;
	if (!problem && dash)
		problem = parse_size_of(dash + 1, end, &last);
	if (!problem && (v == 0 || last < v || check_range(o, last)))
		problem = not_allowed;
	for (; !problem && v <= last; v *= 2)
		problem = list_add(o, list, v);
	return problem;
}

static const char *parse_sizes(const struct opt *o, const char *s, struct opt_list *list)
{
	const char *problem = NULL;

	list->n = 0;
	while (!problem) {
		size_t n = strcspn(s, ",");

		problem = parse_size_range(o, s, s + n, list);
		if (!s[n])
			break;
		s += n + 1;
	}
	return problem;
}

static const char *parse_choice(const struct opt *o, const char *s, int *index)
{
	for (int i = 0; o->choices[i]; i++)
		if (strcmp(s, o->choices[i]) == 0) {
			*index = i;
			return NULL;
		}
	return not_allowed;
}

/* Writes the destination only when the value is good. `s` is NULL for a flag and only for one. */
static const char *store_value(const struct opt *o, const char *s, void *config)
{
	void *to = (char *)config + o->offset;
	const char *problem = NULL;
	struct opt_list list;
	uint64_t number;
	int index;

	switch (o->type) {
	case OPT_FLAG:
		*(bool *)to = true;
		break;
	case OPT_UINT:
	case OPT_SIZE:
	case OPT_DURATION:
		problem = parse_number(o, s, &number);
		if (!problem)
			*(uint64_t *)to = number;
		break;
	case OPT_STRING:
		*(const char **)to = s;
		break;
	case OPT_CHOICE:
		problem = parse_choice(o, s, &index);
		if (!problem)
			*(int *)to = index;
		break;
	case OPT_LIST:
	case OPT_SIZES:
		problem = o->type == OPT_LIST ? parse_list(o, s, &list) : parse_sizes(o, s, &list);
		if (!problem)
			*(struct opt_list *)to = list;
		break;
	}
	return problem;
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
	return store_value(c->opt, c->value, config);
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
