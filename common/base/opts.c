/* SPDX-License-Identifier: BSD-2-Clause */
/* Options from one sorted table. See opts.h.
 *
 * Purpose: check every value against the table and store it, and check which options were given together. getopt_long
 * walks over argv; messages are written here. A configuration file goes line by line through the same checks.
 * Not here: --help (opts_help.c), and checks that depend on more than which options were given (the program's job).
 * Threads: one at a time, because getopt_long has its state in globals.
 * Invariants: the table is sorted by name without duplicates and has at most OPTS_MAX entries (both
 * asserted: they are the program's own text, never input). Values are read in opts_value.c.
 */
#include "common/base/opts.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/opts_value.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"

#define OPTS_MAX     256
#define SHOWN_MAX    64		/* bytes of an argument that an error repeats */

/* Every program has these two, without an entry in its table. */
static const struct opt help_opt = { .name = "help", .type = OPT_FLAG };
static const struct opt version_opt = { .name = "version", .type = OPT_FLAG };

/* Text in a fixed buffer, cut where the buffer ends. */

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
		t->len += (size_t)n;	/* length of the uncut text; from `size` on, buf is full */
}

/* Adds what the user typed, cut to SHOWN_MAX bytes and with control characters escaped (utf8_show). */
static void text_add_shown(struct text *t, const char *s, size_t len)
{
	char cut[SHOWN_MAX + 1], shown[4 * SHOWN_MAX + 1];

	snprintf(cut, sizeof(cut), "%.*s", (int)(len > SHOWN_MAX ? SHOWN_MAX : len), s);
	text_add(t, "%s%s", utf8_show(cut, shown, sizeof(shown)), len > SHOWN_MAX ? "..." : "");
}

static void text_add_allowed(struct text *t, const struct opt *o)
{
	char allowed[OPTS_ALLOWED_MAX];

	text_add(t, "%s", opts_value_allowed(o, allowed));
}

struct walk {
	const struct opts_spec *spec;
	int argc;
	char **argv;
	struct option options[OPTS_MAX + 3];	/* those of the table, --help, --version, and the end */
	const char *arg;	/* the argument as typed */
	const char *name;	/* in it, after the dashes; not terminated at `=` */
	size_t name_len;
	const struct opt *opt;	/* NULL: unknown */
	const char *value;	/* NULL: none given */
	unsigned line;		/* of the configuration file; 0: the option is of the command line */
	bool replaced;		/* the command line has this option of the file, too: only check its value */
};

#define CODE_FIRST 256	/* value of getopt_long for the first option of the table */

static void walk_begin(struct walk *w, const struct opts_spec *spec, int argc, char **argv)
{
	size_t n = spec->n_opts;

	*w = (struct walk){ .spec = spec, .argc = argc, .argv = argv };
	for (size_t i = 0; i < n; i++)
		w->options[i] = (struct option){ spec->opts[i].name, spec->opts[i].type != OPT_FLAG, NULL,
						 CODE_FIRST + (int)i };
	w->options[n] = (struct option){ help_opt.name, no_argument, NULL, 'h' };
	w->options[n + 1] = (struct option){ version_opt.name, no_argument, NULL, 'V' };
	optind = 0;	/* tells glibc to start over */
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

/* False for an abbreviation and for joined short options, which getopt_long accepts: an option has one spelling. */
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
	/* Do not take the next option for the value: that would hide that the value was forgotten. */
	if (w->value == w->argv[at + 1] && w->value && strncmp(w->value, "--", 2) == 0)
		w->value = NULL;
	return true;
}

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
		text_add(err, "; did you mean %s%s?", w->line ? "" : "--", o->name);
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
	return w->replaced ? opts_check_value(w->opt, w->value) : opts_store_value(w->opt, w->value, config);
}

/* The options that were given, by their index in the table. */
struct given {
	const struct opts_spec *spec;
	bool seen[OPTS_MAX];
	const char *value[OPTS_MAX];	/* values of options other than flags */
	unsigned line[OPTS_MAX];	/* where the configuration file gives them; 0: the command line does */
	const char *path;	/* of the configuration file */
};

/* Returns the row of an item of `length` bytes, NAME or NAME=VALUE, and copies VALUE, or "", to `value`. */
static const struct opt *item_option(const struct opts_spec *spec, const char *item, size_t length,
				     char value[SHOWN_MAX])
{
	char name[SHOWN_MAX];
	char *equals;

	snprintf(name, sizeof(name), "%.*s", (int)length, item);
	equals = strchr(name, '=');
	value[0] = '\0';
	if (equals) {
		*equals = '\0';
		snprintf(value, SHOWN_MAX, "%s", equals + 1);
	}
	return opts_find(spec, name);
}

static bool item_is_given(const struct given *g, const char *item, size_t length)
{
	char value[SHOWN_MAX];
	const struct opt *o = item_option(g->spec, item, length, value);
	size_t i = (size_t)(o - g->spec->opts);

	if (!g->seen[i])
		return false;
	return value[0] ? strcmp(value, g->value[i]) == 0 : !g->value[i] || !opts_value_is_off(o, g->value[i]);
}

/* "--environment vm" for the item environment=vm */
static void text_add_item(struct text *t, const char *item, size_t length)
{
	size_t name = strcspn(item, "=,|");

	text_add(t, "--%.*s", (int)name, item);
	if (name < length)
		text_add(t, " %.*s", (int)(length - name - 1), item + name + 1);
}

/* True if one of the items A|B|C, of `length` bytes in all, is given. Writes "--A, --B or --C" to `t`. */
static bool any_is_given(const struct given *g, const char *items, size_t length, struct text *t)
{
	bool any = false;
	size_t n;

	for (size_t at = 0; at < length; at += n + 1) {
		n = strcspn(items + at, "|,");
		any |= item_is_given(g, items + at, n);
		text_add(t, "%s", at == 0 ? "" : at + n < length ? ", " : " or ");
		text_add_item(t, items + at, n);
	}
	return any;
}

/* Begins a message about a line of the configuration file; about the command line if `line` is 0. */
static void text_begin(struct text *t, const char *path, unsigned line)
{
	t->len = 0;
	if (t->size)
		t->buf[0] = '\0';
	if (line)
		text_add(t, "%s:%u: ", path, line);
}

/* False, with a line in `err`, if an option that is given lacks one that it needs, or if one that it excludes is
 * given. */
static bool check_company(const struct given *g, const struct opt *o, struct text *err)
{
	char names[SHOWN_MAX * 4] = "";
	size_t n;

	for (const char *items = o->needs; items && *items; items += n + (items[n] == ',')) {
		struct text t = { .buf = names, .size = sizeof(names) };

		n = strcspn(items, ",");
		if (!any_is_given(g, items, n, &t)) {
			text_begin(err, g->path, g->line[o - g->spec->opts]);
			text_add(err, "--%s: needs %s", o->name, names);
			return false;
		}
	}
	for (const char *item = o->excludes; item && *item; item += n + (item[n] == ',')) {
		n = strcspn(item, ",");
		if (item_is_given(g, item, n)) {
			text_begin(err, g->path, g->line[o - g->spec->opts]);
			text_add(err, "--%s: cannot be combined with ", o->name);
			text_add_item(err, item, n);
			return false;
		}
	}
	return true;
}

static bool check_companies(const struct given *g, struct text *err)
{
	for (size_t i = 0; i < g->spec->n_opts; i++) {
		const struct opt *o = &g->spec->opts[i];

		if (g->seen[i] && !(g->value[i] && opts_value_is_off(o, g->value[i])) && !check_company(g, o, err))
			return false;
	}
	return true;
}

const struct opt *opts_find(const struct opts_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->n_opts; i++)
		if (strcmp(spec->opts[i].name, name) == 0)
			return &spec->opts[i];
	return NULL;
}

static void assert_items(const struct opts_spec *spec, const char *items)
{
	char value[SHOWN_MAX];
	size_t n;

	for (; items && *items; items += n + (items[n] != '\0')) {
		n = strcspn(items, ",|");
		assert(item_option(spec, items, n, value));
	}
}

static void assert_table(const struct opts_spec *spec)
{
	assert(spec->n_opts <= OPTS_MAX);
	for (size_t i = 0; i < spec->n_opts; i++) {
		assert(i == 0 || strcmp(spec->opts[i - 1].name, spec->opts[i].name) < 0);
		assert_items(spec, spec->opts[i].needs);
		assert_items(spec, spec->opts[i].excludes);
	}
}

void opts_defaults(const struct opts_spec *spec, void *config)
{
	for (size_t i = 0; i < spec->n_opts; i++) {
		const char *problem = spec->opts[i].def ? opts_store_value(&spec->opts[i], spec->opts[i].def, config) :
			NULL;

		assert(!problem);
		(void)problem;	/* unused with NDEBUG */
	}
}

/* Reads one option; OPTS_OK: there may be more. */
static enum opts_result take_option(const struct walk *w, struct given *g, void *config, struct text *err)
{
	const char *problem;
	size_t i;

	if (!w->opt) {
		explain_unknown(w, err);
		return OPTS_ERROR;
	}
	problem = check_value(w, config);
	if (problem) {
		explain_value(w, problem, err);
		return OPTS_ERROR;
	}
	if (w->opt == &help_opt)
		return OPTS_HELP;
	if (w->opt == &version_opt)
		return OPTS_VERSION;
	i = (size_t)(w->opt - g->spec->opts);
	if (g->seen[i] && w->opt->type != OPT_TEXTS) {
		text_add(err, "--%s: given twice; allowed: once", w->opt->name);
		return OPTS_ERROR;
	}
	g->seen[i] = true;
	g->value[i] = w->value;
	g->line[i] = w->line;
	return OPTS_OK;
}

/* Reads a line of `length` bytes as take_option reads an argument. `cmdline` are the options of the command line. */
static enum opts_result take_line(struct walk *w, char *line, size_t length, const struct given *cmdline,
				  struct given *in_file, void *config, struct text *err)
{
	char *name, *value;
	const char *problem = opts_split_line(line, length, &name, &value);

	text_begin(err, in_file->path, w->line);
	if (problem) {
		text_add(err, "%s", problem);
		return OPTS_ERROR;
	}
	if (!name)
		return OPTS_OK;
	w->arg = w->name = name;
	w->name_len = strlen(name);
	w->value = value;
	w->opt = opts_find(w->spec, name);
	w->replaced = w->opt && cmdline->seen[w->opt - w->spec->opts];
	if (w->opt && w->opt->type == OPT_CONFIG) {
		text_add(err, "--%s: not allowed in a configuration file; allowed: on the command line", name);
		return OPTS_ERROR;
	}
	return take_option(w, in_file, config, err);
}

static enum opts_result take_lines(struct opt_config *c, size_t bytes, const struct given *cmdline,
				   struct given *in_file, void *config, struct text *err)
{
	struct walk w = { .spec = cmdline->spec };
	enum opts_result result = OPTS_OK;
	size_t n;

	for (size_t at = 0; at < bytes && result == OPTS_OK; at += n + 1) {
		const char *end = memchr(c->text + at, '\n', bytes - at);

		n = end ? (size_t)(end - c->text) - at : bytes - at;
		w.line++;
		result = take_line(&w, c->text + at, n, cmdline, in_file, config, err);
	}
	return result;
}

/* Adds the options in the file that the row `o` names to `g`, which has those of the command line. */
static enum opts_result take_file(const struct opt *o, struct given *g, void *config, struct text *err)
{
	struct opt_config *c = (struct opt_config *)(void *)((char *)config + o->offset);
	struct given in_file = { .spec = g->spec, .path = c->path };
	enum opts_result result;
	char *text;
	size_t bytes;
	int ret = path_read(c->path, OPTS_CONFIG_BYTES, &text, &bytes);

	if (ret) {
		text_add(err, "--%s: %s: ", o->name, c->path);
		if (ret == -EFBIG)
			text_add(err, "the file is too large; allowed: at most %d bytes", OPTS_CONFIG_BYTES);
		else
			text_add(err, "cannot read it: %s", path_error(ret));
		return OPTS_ERROR;
	}
	memcpy(c->text, text, bytes);
	free(text);
	result = take_lines(c, bytes, g, &in_file, config, err);
	if (result != OPTS_OK)
		return result;
	text_begin(err, NULL, 0);
	g->path = c->path;
	for (size_t i = 0; i < g->spec->n_opts; i++)
		if (in_file.seen[i] && !g->seen[i]) {
			g->seen[i] = true;
			g->value[i] = in_file.value[i];
			g->line[i] = in_file.line[i];
		}
	return OPTS_OK;
}

static enum opts_result take_files(struct given *g, void *config, struct text *err)
{
	for (size_t i = 0; i < g->spec->n_opts; i++)
		if (g->seen[i] && g->spec->opts[i].type == OPT_CONFIG)
			return take_file(&g->spec->opts[i], g, config, err);
	return OPTS_OK;
}

/* An argument after --help names a group; a program without groups ignores it. */
static enum opts_result check_topic(const struct opts_spec *spec, const char *topic, struct text *err)
{
	if (!topic || topic[0] == '-' || !spec->n_groups || strcmp(topic, "all") == 0 || strcmp(topic, "markdown") == 0)
		return OPTS_HELP;
	for (size_t i = 0; i < spec->n_groups; i++)
		if (strcmp(topic, spec->groups[i].name) == 0)
			return OPTS_HELP;
	text_add(err, "--help: ");
	text_add_shown(err, topic, strlen(topic));
	text_add(err, " is not allowed; allowed: all");
	for (size_t i = 0; i < spec->n_groups; i++)
		text_add(err, ", %s", spec->groups[i].name);
	return OPTS_ERROR;
}

enum opts_result opts_parse(const struct opts_spec *spec, int argc, char **argv, void *config,
			    int *first_arg, char *err, size_t err_size)
{
	struct walk w;
	struct given g = { .spec = spec };
	struct text e = { .buf = err, .size = err_size };
	enum opts_result result = OPTS_OK;

	assert_table(spec);
	if (err_size)
		err[0] = '\0';
	walk_begin(&w, spec, argc, argv);
	while (result == OPTS_OK && walk_next(&w))
		result = take_option(&w, &g, config, &e);
	*first_arg = optind;
	if (result == OPTS_OK)
		result = take_files(&g, config, &e);
	if (result == OPTS_HELP)
		return check_topic(spec, optind < argc ? argv[optind] : NULL, &e);
	return result == OPTS_OK && !check_companies(&g, &e) ? OPTS_ERROR : result;
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
