/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternatives of a comparison. See alternatives.h. Each --compare is a dimension whose values set one option; all
 * --compare-set together are a dimension whose values set several. Alternatives are the product of the dimensions. */
#include "loadgen/suites/alternatives.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "loadgen/workloads/workloads.h"

#define ARGS_MAX 256
#define KEY_MAX 32
#define VALUE_MAX 128
#define DIMENSIONS_MAX (OPT_TEXTS_MAX + 1)
#define ROUNDS_DEFAULT 5

/* Options that must be the same for all alternatives: they choose what is run, where, and the place of the results. */
static const char *const same_for_all[] = {
	"ca", "cert", "clients", "compare", "compare-set", "crl", "details", "environment", "find-capacity", "json",
	"key", "log-level", "message-size", "metrics", "metrics-textfile", "name", "output", "price", "quiet",
	"repeat", "server", "server-name", "slo", "steps", "suite", "tls-port", "trace",
};

/* A value of a dimension: its name, and the options that it sets. */
struct choice {
	char name[VALUE_MAX + KEY_MAX];
	struct { char key[KEY_MAX], value[VALUE_MAX]; } settings[COMPARE_SETTINGS_MAX];
	unsigned n;
};

struct dimension {
	const char *option;		/* "--compare" or "--compare-set", for errors */
	struct choice choices[COMPARE_VALUES_MAX];
	unsigned n;
};

struct space {
	struct dimension v[DIMENSIONS_MAX];
	unsigned n;
	bool has_hosts;			/* several load hosts take part, whose own options the leader cannot choose */
	char *err;
	size_t err_size;
};

static int __attribute__((format(printf, 2, 3))) alt_refuse(struct space *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->err, s->err_size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool may_differ(const char *name)
{
	for (size_t i = 0; i < sizeof(same_for_all) / sizeof(same_for_all[0]); i++)
		if (strcmp(same_for_all[i], name) == 0)
			return false;
	return true;
}

/* Values become names that are printed, and a suite's file may hold anything: refuse what a terminal cannot show. */
static bool is_shown_as_it_is(const char *value)
{
	char shown[4 * VALUE_MAX];

	return strcmp(utf8_show(value, shown, sizeof(shown)), value) == 0;
}

bool alternatives_value(const char *text, size_t n, char *out, size_t size)
{
	if (n >= size)
		return false;
	for (size_t i = 0; i < n; i++)
		out[i] = text[i] == '+' ? ',' : text[i];
	out[n] = '\0';
	return is_shown_as_it_is(out);
}

/* Adds KEY and VALUE to the choice. A key may be set only once. */
static int add_setting(struct space *s, const char *option, struct choice *c, const char *key, size_t key_n,
		       const char *value, size_t value_n)
{
	const struct opt *known;
	char name[KEY_MAX];

	if (key_n == 0 || key_n >= sizeof(name) || value_n == 0 || c->n == COMPARE_SETTINGS_MAX ||
	    !alternatives_value(value, value_n, c->settings[c->n].value, sizeof(c->settings[0].value)))
		return -EINVAL;
	snprintf(name, sizeof(name), "%.*s", (int)key_n, key);
	known = opts_find(&loadgen_options, name);
	if (!known || !may_differ(name))
		return alt_refuse(s, "%s: %s %s; allowed: options of the workload, of pacing, of connecting and of the "
				     "data path", option, name, known ? "cannot be compared" : "is not an option");
	if (s->has_hosts && known->per_host)
		return alt_refuse(s, "%s: %s cannot be compared in a run on several hosts, since each host has its own",
				  option, name);
	for (unsigned i = 0; i < c->n; i++)
		if (strcmp(c->settings[i].key, name) == 0)
			return alt_refuse(s, "%s: %s is set twice; allowed: once", option, name);
	snprintf(c->settings[c->n++].key, KEY_MAX, "%s", name);
	return 0;
}

/* Reads KEY=A,B,...: a dimension with a choice for each value. */
static int read_key(struct space *s, const char *text)
{
	struct dimension *d = &s->v[s->n++];
	size_t key_n = strcspn(text, "="), n;
	const char *value = text + key_n;
	int ret = *value ? 0 : -EINVAL;

	d->option = "--compare";
	while (!ret && *value) {
		struct choice *c = &d->choices[d->n];

		n = strcspn(++value, ",");
		ret = d->n == COMPARE_VALUES_MAX ? -EINVAL : add_setting(s, d->option, c, text, key_n, value, n);
		if (ret)
			break;
		snprintf(c->name, sizeof(c->name), "%.*s", (int)n, value);
		for (unsigned i = 0; i < d->n && !ret; i++)
			if (strcmp(d->choices[i].name, c->name) == 0)
				ret = alt_refuse(s, "--compare: '%s' has %s twice; allowed: once", text, c->name);
		d->n++;
		value += n;
	}
	if (!ret && d->n < 2)
		ret = -EINVAL;
	if (ret && !s->err[0])
		alt_refuse(s, "--compare: '%s' is not allowed; allowed: an option and two to %d values of it, such as "
		       "inline=off,auto", text, COMPARE_VALUES_MAX);
	return ret;
}

/* Reads NAME:KEY=VALUE,...: a choice of the dimension of sets. NAME alone sets nothing. */
static int read_set(struct space *s, struct dimension *d, const char *text)
{
	struct choice *c = &d->choices[d->n++];
	size_t name_n = strcspn(text, ":"), n;
	const char *p = text + name_n;
	int ret = name_n == 0 || name_n >= KEY_MAX ? -EINVAL : 0;

	for (size_t i = 0; i < name_n && !ret; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			ret = -EINVAL;
	snprintf(c->name, sizeof(c->name), "%.*s", (int)name_n, text);
	for (unsigned i = 0; i + 1 < d->n && !ret; i++)
		if (strcmp(d->choices[i].name, c->name) == 0)
			ret = alt_refuse(s, "--compare-set: %s is given twice; allowed: once", c->name);
	for (p += *p == ':'; *p && !ret; p += n) {
		size_t key_n;

		p += *p == ',';
		n = strcspn(p, ",");
		key_n = strcspn(p, "=");
		ret = key_n >= n ? -EINVAL : add_setting(s, d->option, c, p, key_n, p + key_n + 1, n - key_n - 1);
	}
	if (ret && !s->err[0])
		alt_refuse(s, "--compare-set: '%s' is not allowed; allowed: a name and at most %d settings, such as "
		       "all:inline=auto,post-list=16", text, COMPARE_SETTINGS_MAX);
	return ret;
}

static int read_sets(struct space *s, const struct opt_texts *sets)
{
	struct dimension *d = &s->v[s->n++];
	int ret = 0;

	d->option = "--compare-set";
	if (sets->n < 2)
		return alt_refuse(s, "--compare-set: give it two to %d times; the first is the baseline",
				  COMPARE_VALUES_MAX);
	for (size_t i = 0; i < sets->n && !ret; i++)
		ret = read_set(s, d, sets->v[i]);
	return ret;
}

static int read_all(struct space *s, const struct loadgen_config *base)
{
	int ret = 0;

	for (size_t i = 0; i < base->compare.n && !ret; i++)
		ret = read_key(s, base->compare.v[i]);
	if (!ret && base->compare_sets.n)
		ret = read_sets(s, &base->compare_sets);
	return ret;
}

/* Writes the option as on a command line to *out, which is NULL for a flag that is off. */
static int option_text(struct space *s, const char *option, const char *key, const char *value, char **out)
{
	*out = NULL;
	if (opts_find(&loadgen_options, key)->type != OPT_FLAG)
		return asprintf(out, "--%s=%s", key, value) < 0 ? -ENOMEM : 0;
	if (strcmp(value, "on") == 0)
		return asprintf(out, "--%s", key) < 0 ? -ENOMEM : 0;
	return strcmp(value, "off") == 0 ? 0 : alt_refuse(s, "%s: %s=%s: a flag is on or off", option, key, value);
}

static int add_choice(struct space *s, const struct dimension *d, const struct choice *c, int argc, char **argv,
		      struct alternative *out)
{
	const char *key;
	size_t used = strlen(out->name);
	int ret = 0;

	for (unsigned i = 0; i < c->n && !ret; i++) {
		key = c->settings[i].key;
		if (opts_given(&loadgen_options, argc, argv, key))
			return alt_refuse(s, "%s: cannot be combined with --%s", d->option, key);
		if (json_object_get(out->options, key))
			return alt_refuse(s, "%s: %s is set twice; allowed: once", d->option, key);
		if (out->n_args == COMPARE_SETTINGS_MAX)
			return alt_refuse(s, "%s: %s is one setting too many; allowed: %d in a combination", d->option,
				      key, COMPARE_SETTINGS_MAX);
		if (json_object_set_new(out->options, key, json_string(c->settings[i].value)))
			return alt_refuse(s, "%s: the value of %s is not text in UTF-8", d->option, key);
		ret = option_text(s, d->option, key, c->settings[i].value, &out->args[out->n_args]);
		out->n_args += !ret && out->args[out->n_args];
	}
	if (!ret && s->n > 1 && strcmp(d->option, "--compare") == 0)
		snprintf(out->name + used, sizeof(out->name) - used, "%s%s=%s", used ? "," : "", c->settings[0].key,
			 c->name);
	else if (!ret)
		snprintf(out->name + used, sizeof(out->name) - used, "%s%s", used ? "," : "", c->name);
	return ret;
}

/* Makes the command line of an alternative: without the comparison's options, but with its own. Returns its length. */
static int make_args(const struct alternative *a, int argc, char **argv, char **out)
{
	int n = 0;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--compare") == 0 || strcmp(argv[i], "--compare-set") == 0)
			i++;
		else if (strncmp(argv[i], "--compare=", 10) != 0 && strncmp(argv[i], "--compare-set=", 14) != 0)
			out[n++] = argv[i];
	}
	for (unsigned i = 0; i < a->n_args; i++)
		out[n++] = a->args[i];
	out[n] = NULL;
	return n;
}

static int configure_alternative(struct space *s, int argc, char **argv, struct alternative *out)
{
	char *args[ARGS_MAX + COMPARE_SETTINGS_MAX + 1], why[400];
	int n = make_args(out, argc, argv, args), first;

	loadgen_config_defaults(&out->cfg);
	if (opts_parse(&loadgen_options, n, args, &out->cfg, &first, why, sizeof(why)) != OPTS_OK ||
	    loadgen_config_check(&out->cfg, n, args, why, sizeof(why)) ||
	    workloads_apply(&out->cfg, n, args, why, sizeof(why)))
		return alt_refuse(s, "%s: %s", s->v[0].option, why);
	out->cfg.repeat = 1;
	return 0;
}

/* Makes the combination with that number; the last dimension varies fastest. */
static int make_alternative(struct space *s, unsigned number, int argc, char **argv, struct alternative *out)
{
	unsigned rest = number, which[DIMENSIONS_MAX];
	int ret = 0;

	out->options = json_object();
	if (!out->options)
		return -ENOMEM;
	for (unsigned i = s->n; i-- > 0; rest /= s->v[i].n)
		which[i] = rest % s->v[i].n;
	for (unsigned i = 0; i < s->n && !ret; i++)
		ret = add_choice(s, &s->v[i], &s->v[i].choices[which[i]], argc, argv, out);
	return ret ? ret : configure_alternative(s, argc, argv, out);
}

/* Names the dimensions: "inline-post-list", "sets" */
static void make_title(const struct space *s, char *out, size_t size)
{
	size_t used = 0;

	for (unsigned i = 0; i < s->n && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "-" : "",
					 strcmp(s->v[i].option, "--compare") == 0 ? s->v[i].choices[0].settings[0].key :
					 "sets");
}

static int make_all(struct space *s, const struct loadgen_config *base, int argc, char **argv, struct alternatives *out)
{
	uint64_t n = 1;
	int ret = 0;

	for (unsigned i = 0; i < s->n; i++)
		n *= s->v[i].n;
	out->rounds = opts_given(&loadgen_options, argc, argv, "repeat") ? base->repeat : ROUNDS_DEFAULT;
	if (n > COMPARE_ALTERNATIVES_MAX || n * out->rounds > COMPARE_RUNS_MAX)
		return alt_refuse(s, "--compare: %llu combinations in %llu rounds are too many runs; allowed: %d "
			      "combinations and %d runs; compare fewer values, or give a smaller "
			      "--repeat", (unsigned long long)n,
			      (unsigned long long)out->rounds, COMPARE_ALTERNATIVES_MAX, COMPARE_RUNS_MAX);
	make_title(s, out->title, sizeof(out->title));
	out->v = calloc(n, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	for (; out->n < n && !ret; out->n++)
		ret = make_alternative(s, out->n, argc, argv, &out->v[out->n]);
	return ret;
}

/* Costs are computed only where transports are compared. */
static int check_price(struct space *s, const struct loadgen_config *base, const struct alternatives *a)
{
	for (unsigned i = 1; i < a->n; i++)
		if (a->v[i].cfg.transport != a->v[0].cfg.transport)
			return 0;
	return base->price_text ? alt_refuse(s, "--price: needs a comparison of transports, such as "
					     "--compare transport=rdma,tcp") : 0;
}

int alternatives_parse(const struct loadgen_config *base, int argc, char **argv, struct alternatives *out, char *err,
		       size_t err_size)
{
	struct space *s = calloc(1, sizeof(*s));
	int ret = s ? 0 : -ENOMEM;

	*out = (struct alternatives){ .v = NULL };
	err[0] = '\0';
	if (!ret) {
		s->err = err;
		s->err_size = err_size;
		s->has_hosts = loadgen_has_hosts(base);
		ret = argc > ARGS_MAX ? alt_refuse(s, "--compare: the command line has too many words") :
			read_all(s, base);
	}
	if (!ret)
		ret = make_all(s, base, argc, argv, out);
	if (!ret)
		ret = check_price(s, base, out);
	if (ret == -ENOMEM)
		snprintf(err, err_size, "this machine is out of memory");
	free(s);
	return ret;
}

void alternatives_free(struct alternatives *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		json_decref(a->v[i].options);
		for (unsigned k = 0; k < a->v[i].n_args; k++)
			free(a->v[i].args[k]);
	}
	free(a->v);
	*a = (struct alternatives){ .v = NULL };
}
