/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads suites. See suite_file.h. An entry's options become a command line, which is read with the table of
 * performance_test's own options. */
#include "loadgen/suites/suite_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <openssl/evp.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"
#include "common/rdma/dev.h"
#include "loadgen/suites/expect_file.h"
#include "loadgen/workloads/workloads.h"

#define TEXT_MAX 400		/* bytes of a title or question */
#define VALUE_MAX 1024
#define SUITE_MEMORY_MAX (16u << 20)	/* a shipped file, at most 16 KB of text, takes 10 times that */

/* The option `given` removes `other`, which would contradict or override it: on the command line it removes an entry's
 * `other`, in an entry the `other` of the file's defaults. */
static const struct { const char *given, *other; } replaced[] = {
	{ "clients", "steps" }, { "steps", "clients" }, { "rate", "rate-per-client" }, { "rate-per-client", "rate" },
	{ "duration", "cycles" }, { "duration", "iterations" }, { "duration", "warmup-iterations" },
	{ "warmup", "iterations" }, { "warmup", "warmup-iterations" }, { "iterations", "duration" },
	{ "iterations", "warmup" },
	{ "iterations", "cycles" },
};

int suite_refuse(char *err, size_t err_size, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	utf8_show(text, err, err_size);
	return -EINVAL;
}

struct words {
	char **v;
	int n, room;
};

static int add_word(struct words *w, char *word)
{
	if (!word)
		return -ENOMEM;
	if (w->n + 1 >= w->room) {
		free(word);
		return -E2BIG;
	}
	w->v[w->n++] = word;
	w->v[w->n] = NULL;
	return 0;
}

/* Replaces "@2" by the name of the second RDMA device. If there is none, "@2" stays, and the entry is skipped. */
static void name_devices(const char *value, char *out, size_t size)
{
	size_t used = 0;

	for (const char *p = value; *p && used + 1 < size; p++) {
		char name[64];

		if (*p == '@' && p[1] >= '1' && p[1] <= '8' && !isdigit((unsigned char)p[2]) &&
		    dev_name((unsigned)(p[1] - '1'), name, sizeof(name)) == 0) {
			used += (size_t)snprintf(out + used, size - used, "%s", name);
			p++;
		} else {
			out[used++] = *p;
		}
	}
	out[MIN(used, size - 1)] = '\0';
}

static bool has_devices(const char *option)
{
	return strcmp(option, "device") == 0 || strncmp(option, "compare", 7) == 0;
}

/* Writes a value of the file as text. False: it is not a text or number, or too long. */
static bool value_text(const json_t *v, char *out, size_t size)
{
	if (json_is_string(v))
		return *json_string_value(v) && snprintf(out, size, "%s", json_string_value(v)) < (int)size;
	if (json_is_integer(v))
		return snprintf(out, size, "%lld", (long long)json_integer_value(v)) < (int)size;
	return json_is_real(v) && snprintf(out, size, "%.9g", json_real_value(v)) < (int)size;
}

static int add_option(struct words *w, const char *option, const char *value)
{
	char named[VALUE_MAX], *word = NULL;

	snprintf(named, sizeof(named), "%s", value);
	if (has_devices(option))
		name_devices(value, named, sizeof(named));
	return add_word(w, asprintf(&word, "--%s=%s", option, named) < 0 ? NULL : word);
}

/* Adds a list: as one value with commas, or for an option that may be given several times, as several options. */
static int add_list(struct words *w, const struct opt *o, const json_t *list)
{
	char joined[VALUE_MAX] = "", text[VALUE_MAX];
	size_t used = 0, i;
	const json_t *v;
	int ret = 0;

	json_array_foreach(list, i, v) {
		if (!value_text(v, text, sizeof(text)) || used + strlen(text) + 2 > sizeof(joined))
			return -EINVAL;
		if (o->type == OPT_TEXTS)
			ret = add_option(w, o->name, text);
		else
			used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s", i ? "," : "", text);
		if (ret)
			return ret;
	}
	return o->type == OPT_TEXTS || used == 0 ? used == 0 && i == 0 ? -EINVAL : 0 : add_option(w, o->name, joined);
}

static int add_value(struct words *w, const struct opt *o, const json_t *v)
{
	char text[VALUE_MAX], *word = NULL;

	if (o->type == OPT_FLAG && json_is_boolean(v))
		return json_is_false(v) ? 0 : add_word(w, asprintf(&word, "--%s", o->name) < 0 ? NULL : word);
	if (o->type == OPT_FLAG || json_is_boolean(v))
		return -EINVAL;
	if (json_is_array(v))
		return add_list(w, o, v);
	return value_text(v, text, sizeof(text)) ? add_option(w, o->name, text) : -EINVAL;
}

/* True if the command line gives the option, or one that replaces it. */
static bool is_replaced(const char *option, int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
		if (strcmp(option, replaced[i].other) == 0 && opts_given(&loadgen_options, argc, argv,
									 replaced[i].given))
			return true;
	return opts_given(&loadgen_options, argc, argv, option);
}

/* True if the entry's own options have one that replaces this option of the file's defaults. */
static bool is_outdone(const char *option, const json_t *own)
{
	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
		if (strcmp(option, replaced[i].other) == 0 && json_object_get(own, replaced[i].given))
			return true;
	return false;
}

static int check_option(const struct suite_entry *e, const char *name, char *err, size_t err_size)
{
	const struct opt *o = opts_find(&loadgen_options, name);

	if (!o)
		return suite_refuse(err, err_size, "--suite: entry %s: %s: unknown option (see --help)", e->id, name);
	if (o->per_suite)
		return suite_refuse(err, err_size, "--suite: entry %s: %s is not allowed in a suite; give --%s on the "
						   "command line", e->id,
			      name, name);
	return 0;
}

/* True if the word gives an option that is the suite's alone; *with_value: the next word is its value. */
static bool is_of_suite(const char *word, bool *with_value)
{
	static const char *const names[] = { "--suite", "--only", "--environment" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		*with_value = strcmp(word, names[i]) == 0;
		if (*with_value || (strncmp(word, names[i], n) == 0 && word[n] == '='))
			return true;
	}
	return false;
}

/* Adds the options of the command line, except those that are the suite's alone. */
static int add_command_line(struct words *w, int argc, char **argv)
{
	bool with_value;
	int ret = 0;

	for (int i = 0; i < argc && !ret; i++) {
		if (is_of_suite(argv[i], &with_value))
			i += with_value;
		else if (!(i && strcmp(argv[i], "--") == 0))
			ret = add_word(w, strdup(argv[i]));
	}
	return ret;
}

static int add_options(struct suite_entry *e, struct words *w, json_t *replace, int argc, char **argv, char *err,
		       size_t err_size)
{
	const char *name;
	json_t *v, *other;
	int ret;

	json_object_foreach(e->options, name, v) {
		other = json_object_get(replace, name);
		ret = add_value(w, opts_find(&loadgen_options, name), other ? other : v);
		if (ret == -EINVAL)
			return suite_refuse(err, err_size, "--suite: entry %s: %s: the value is not allowed; allowed: "
							   "a text, a number, "
				      "a list of them, or true and false for a flag", e->id, name);
		if (ret)
			return ret;
	}
	ret = 0;
	json_object_foreach(replace, name, v) {
		if (!ret && !json_object_get(e->options, name) && !opts_given(&loadgen_options, argc, argv, name))
			ret = add_value(w, opts_find(&loadgen_options, name), v);
	}
	return ret;
}

static void free_words(struct suite_entry *e)
{
	for (int i = 0; i < e->argc; i++)
		free(e->argv[i]);
	free(e->argv);
	e->argv = NULL;
	e->argc = 0;
}

static int configure_entry(struct suite_entry *e, char *err, size_t err_size)
{
	const char *name;
	json_t *value;
	char why[512];
	int first = 0;

	loadgen_config_defaults(&e->cfg);
	if (opts_parse(&loadgen_options, e->argc, e->argv, &e->cfg, &first, why, sizeof(why)) != OPTS_OK ||
	    loadgen_config_check(&e->cfg, e->argc, e->argv, why, sizeof(why)) ||
	    workloads_apply(&e->cfg, e->argc, e->argv, why, sizeof(why)) ||
	    (alternatives_are_asked_for(&e->cfg) &&
	     alternatives_parse(&e->cfg, e->argc, e->argv, &e->alternatives, why, sizeof(why))))
		return suite_refuse(err, err_size, "--suite: entry %s: %s", e->id, why);
	json_object_foreach(e->options, name, value) {
		if (loadgen_has_hosts(&e->cfg) && opts_find(&loadgen_options, name)->per_host)
			return suite_refuse(err, err_size, "--suite: entry %s: %s is not allowed in a run on several "
							   "hosts, since each host "
				      "has its own", e->id, name);
	}
	for (unsigned i = 0; i < e->alternatives.n; i++)
		e->alternatives.v[i].cfg.report = 0;
	snprintf(e->cfg.name_text, sizeof(e->cfg.name_text), "%s", e->id);
	e->cfg.name = e->id;
	return 0;
}

/* Keeps the configuration's team of load hosts, which options do not change. */
static void join_team(struct loadgen_config *cfg, const struct loadgen_config *before)
{
	cfg->team = before->team;
	cfg->rank = before->rank;
	cfg->hosts = before->team ? before->hosts : cfg->hosts;
	if (before->rank)
		cfg->report = 0;
}

int suite_entry_configure(struct suite_entry *e, json_t *replace, int argc, char **argv, char *err, size_t err_size)
{
	size_t room = (size_t)argc + json_object_size(e->options) * OPT_TEXTS_MAX + json_object_size(replace) + 2;
	struct words w = { .v = calloc(room, sizeof(char *)), .room = (int)room };
	int ret = w.v ? add_word(&w, strdup(argv[0])) : -ENOMEM;
	const struct loadgen_config before = e->cfg;

	alternatives_free(&e->alternatives);
	if (!ret)
		ret = add_options(e, &w, replace, argc, argv, err, err_size);
	if (!ret)
		ret = add_command_line(&w, argc - 1, argv + 1);
	free_words(e);
	e->argv = w.v;
	e->argc = w.n;
	if (!ret)
		ret = configure_entry(e, err, err_size);
	join_team(&e->cfg, &before);
	for (unsigned i = 0; !ret && i < e->alternatives.n; i++)
		join_team(&e->alternatives.v[i].cfg, &before);
	if (ret == -E2BIG)
		ret = suite_refuse(err, err_size, "--suite: entry %s: too many options", e->id);
	if (ret == -ENOMEM)
		snprintf(err, err_size, "this machine is out of memory");
	return ret;
}

static bool is_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n > 0 && n <= SUITE_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && name[0] != '-';
}

static bool is_text(const json_t *v)
{
	return json_is_string(v) && json_string_length(v) > 0 && json_string_length(v) <= TEXT_MAX;
}

/* Refuses members that the schema does not have, because a misspelt one would otherwise be ignored. */
static int check_members(const json_t *o, const char *const *allowed, const char *what, char *err, size_t err_size)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)o, name, v) {
		bool known = false;

		for (size_t i = 0; allowed[i]; i++)
			known |= strcmp(allowed[i], name) == 0;
		if (!known)
			return suite_refuse(err, err_size, "--suite: %s: '%.64s' is not a member of a suite "
							   "(docs/suite.schema.json)", what,
				      name);
	}
	return 0;
}

/* Merges the file's defaults and the entry's own options, which win, less those that the command line replaces. */
static int merge_options(struct suite_entry *e, const json_t *defaults, const json_t *own, int argc, char **argv,
			 char *err, size_t err_size)
{
	const json_t *const from[] = { defaults, own };
	const char *name;
	json_t *v;
	int ret;

	e->options = json_object();
	if (!e->options)
		return -ENOMEM;
	for (size_t i = 0; i < 2; i++)
		json_object_foreach((json_t *)from[i], name, v) {
			ret = check_option(e, name, err, err_size);
			if (ret)
				return ret;
			if (is_replaced(name, argc, argv) || (i == 0 && is_outdone(name, own)))
				continue;
			if (json_object_set(e->options, name, v))
				return -ENOMEM;
		}
	return 0;
}

bool suite_entry_is_called(const struct suite_entry *e, const char *name, size_t n)
{
	return (strlen(e->name) == n && strncmp(e->name, name, n) == 0) ||
	       (strlen(e->id) == n && strncmp(e->id, name, n) == 0);
}

bool suite_is_chosen(const struct suite *s, const struct suite_entry *e)
{
	size_t n;

	for (const char *name = s->only; name; name = name[n] ? name + n + 1 : NULL) {
		n = strcspn(name, ",");
		if (suite_entry_is_called(e, name, n))
			return true;
	}
	return !s->only;
}

/* Checks the expectations of a configured entry, after those before it. */
static int check_expectations(const struct suite *s, const struct suite_entry *e, char *err, size_t err_size)
{
	char named[VALUE_MAX], why[600];
	json_t *o;
	size_t i;

	if (!e->expect)
		return 0;
	/* Alternatives have the names of devices, not "@2". */
	json_array_foreach(e->expect, i, o) {
		if (json_text_at(o, "alternative")) {
			name_devices(json_text_at(o, "alternative"), named, sizeof(named));
			json_object_set_new(o, "alternative", json_string(named));
		}
	}
	return expect_check(e, s->entries, (unsigned)(e - s->entries), why, sizeof(why)) ?
		suite_refuse(err, err_size, "--suite: entry %s: %s", e->id, why) : 0;
}

static int add_entry(struct suite *s, const char *suite, const json_t *defaults, const json_t *o, int argc, char **argv,
		     char *err, size_t err_size)
{
	static const char *const members[] = { "name", "title", "question", "options", "expect", NULL };
	struct suite_entry *e = &s->entries[s->n];
	const char *name = json_text_at(o, "name");
	char what[128];
	int ret;

	if (!is_name(name))
		return suite_refuse(err, err_size,
				    "--suite: entry %u of %s: a name is missing; allowed: up to %d lower case letters, "
			      "digits and '-'", s->n + 1, suite, SUITE_NAME_MAX);
	e->suite = suite;
	e->name = name;
	snprintf(e->id, sizeof(e->id), "%s-%s", suite, name);
	snprintf(what, sizeof(what), "entry %s", e->id);
	ret = check_members(o, members, what, err, err_size);
	if (ret)
		return ret;
	if (!is_text(json_object_get(o, "title")) || !json_is_object(json_object_get(o, "options")) ||
	    (json_object_get(o, "question") && !is_text(json_object_get(o, "question"))))
		return suite_refuse(err, err_size,
				    "--suite: %s: needs a title and options, and may have a question; texts have up to "
			      "%d bytes", what, TEXT_MAX);
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->entries[i].id, e->id) == 0)
			return suite_refuse(err, err_size, "--suite: %s: two entries have this name", what);
	e->title = json_text_at(o, "title");
	e->question = json_object_get(o, "question") ? json_text_at(o, "question") : "";
	e->expect = json_object_get(o, "expect");
	s->n++;
	if (!suite_is_chosen(s, e))
		return 0;
	ret = merge_options(e, defaults, json_object_get(o, "options"), argc, argv, err, err_size);
	if (!ret)
		ret = suite_entry_configure(e, NULL, argc, argv, err, err_size);
	return ret ? ret : check_expectations(s, e, err, err_size);
}

static int add_entries(struct suite *s, const json_t *file, int argc, char **argv, char *err, size_t err_size)
{
	static const char *const members[] = { "schema_version", "name", "title", "version", "defaults", "entries",
					       NULL };
	const json_t *entries = json_object_get(file, "entries"), *defaults = json_object_get(file, "defaults"), *o;
	const char *name = json_text_at(file, "name");
	size_t i;
	int ret;

	if (json_integer_value(json_object_get(file, "schema_version")) != 1)
		return suite_refuse(err, err_size, "--suite: schema_version is missing or not 1");
	if (!is_name(name) || !is_text(json_object_get(file, "title")))
		return suite_refuse(err, err_size, "--suite: the suite needs a name (up to %d lower case letters, "
						   "digits and '-') and a "
			      "title", SUITE_NAME_MAX);
	ret = check_members(file, members, name, err, err_size);
	if (ret)
		return ret;
	if (json_object_get(file, "version") && !is_text(json_object_get(file, "version")))
		return suite_refuse(err, err_size, "--suite: %s: the version must be a text of 1 to %d bytes", name,
				    TEXT_MAX);
	if (json_array_size(entries) == 0 || json_array_size(entries) > SUITE_ENTRIES_MAX - s->n ||
	    (defaults && !json_is_object(defaults)))
		return suite_refuse(err, err_size, "--suite: %s: needs entries, %d at most, and may have defaults, "
						   "which are options", name,
			      SUITE_ENTRIES_MAX);
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->title = json_text_at(file, "title");
	json_array_foreach(entries, i, o) {
		ret = add_entry(s, name, defaults, o, argc, argv, err, err_size);
		if (ret)
			return ret;
	}
	return 0;
}

/* The suite's member of `sources`. The hash is of the text as it was read. */
static json_t *source_json(const json_t *file, const char *text, size_t bytes)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	char hex[2 * EVP_MAX_MD_SIZE + 1];
	unsigned n = 0;

	if (EVP_Digest(text, bytes, digest, &n, EVP_sha256(), NULL) != 1)
		return NULL;
	utf8_hex(digest, n, hex);
	return json_pack("{s:O, s:O?, s:s}", "name", json_object_get(file, "name"), "version",
			 json_object_get(file, "version"), "sha256", hex);
}

int suite_add(struct suite *s, const char *text, size_t bytes, int argc, char **argv, char *err, size_t err_size)
{
	static const struct json_limit limit = { SUITE_FILE_BYTES_MAX, SUITE_MEMORY_MAX };
	char why[256];
	json_t *file = json_read(text, bytes, JSON_REJECT_DUPLICATES, &limit, why, sizeof(why));
	int ret;

	if (!file)
		return suite_refuse(err, err_size, "--suite: %s", why);
	if (!s->files)
		s->files = json_array();
	if (json_array_append_new(s->files, file)) {
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	if (!s->sources)
		s->sources = json_array();
	ret = add_entries(s, file, argc, argv, err, err_size);
	if (ret == 0 && json_array_append_new(s->sources, source_json(file, text, bytes)))
		ret = -ENOMEM;
	if (ret == -ENOMEM)
		snprintf(err, err_size, "this machine is out of memory");
	return ret;
}

int suite_of_comparison(const struct loadgen_config *base, int argc, char **argv, struct suite **out, char *err,
			size_t err_size)
{
	struct suite *s = *out = calloc(1, sizeof(*s));
	json_t *options = json_object();

	if (!s || !options) {
		json_decref(options);
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	snprintf(s->name, sizeof(s->name), "compare");
	s->title = "The same run with different settings, which took turns";
	s->n = 1;
	s->entries[0] = (struct suite_entry){ .suite = "compare", .name = "settings", .id = "compare-settings", .title =
		"Candidates against the baseline", .question = "", .options = options, .cfg = *base };
	return alternatives_parse(base, argc, argv, &s->entries[0].alternatives, err, err_size);
}

void suite_entry_free(struct suite_entry *e)
{
	alternatives_free(&e->alternatives);
	free_words(e);
	json_decref(e->options);
}

void suite_free(struct suite *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n; i++)
		suite_entry_free(&s->entries[i]);
	json_decref(s->files);
	json_decref(s->sources);
	free(s);
}

struct loadgen_config *suite_config(struct suite *s, unsigned i)
{
	for (unsigned k = 0; k < s->n; k++) {
		struct suite_entry *e = &s->entries[k];

		if (i == 0)
			return &e->cfg;
		if (--i < e->alternatives.n)
			return &e->alternatives.v[i].cfg;
		i -= e->alternatives.n;
	}
	return NULL;
}

uint32_t suite_rails(struct suite *s)
{
	const struct loadgen_config *cfg;
	uint32_t most = 1;

	for (unsigned i = 0; (cfg = suite_config(s, i)); i++)
		most = MAX(most, cfg->n_rails);
	return most;
}
