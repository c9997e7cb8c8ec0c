/* Comparing values of an option. See compare.h and docs/results.md, "Comparisons". */
#include "loadgen/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "loadgen/analysis/baseline.h"
#include "loadgen/results/results.h"
#include "loadgen/results/space.h"
#include "loadgen/run.h"
#include "loadgen/workloads/workloads.h"

#define ARGS_MAX 256

/* Options that say what is run, where, and where it is written: the same for all alternatives. */
static const char *const same_for_all[] = {
	"ca", "cert", "clients", "compare", "crl", "environment", "json", "key", "log-level", "message-size", "name",
	"output", "quiet", "repeat", "server", "server-name", "steps", "tls-port", "trace",
};

/* --- what is compared --- */

static const struct opt *option_of(const char *name)
{
	for (size_t i = 0; i < loadgen_options.n_opts; i++)
		if (strcmp(loadgen_options.opts[i].name, name) == 0)
			return &loadgen_options.opts[i];
	return NULL;
}

static bool may_differ(const char *name)
{
	for (size_t i = 0; i < sizeof(same_for_all) / sizeof(same_for_all[0]); i++)
		if (strcmp(same_for_all[i], name) == 0)
			return false;
	return option_of(name) != NULL;
}

static int split(const char *text, struct compare *c)
{
	size_t n = strcspn(text, "=");

	if (!text[n] || n >= sizeof(c->key))
		return -EINVAL;
	memcpy(c->key, text, n);
	c->key[n] = '\0';
	for (text += n + 1, c->n = 0; ; text += n + 1) {
		n = strcspn(text, ",");
		if (n == 0 || n >= sizeof(c->values[0]) || c->n == COMPARE_MAX)
			return -EINVAL;
		memcpy(c->values[c->n], text, n);
		c->values[c->n++][n] = '\0';
		if (!text[n])
			return c->n < 2 ? -EINVAL : 0;
	}
}

/* The option of an alternative as on a command line; NULL for a flag that is off, or with a `problem`. */
static char *option_text(struct compare *c, unsigned i, const char **problem)
{
	char *end = stpcpy(stpcpy(c->options[i], "--"), c->key);

	*problem = NULL;
	if (option_of(c->key)->type != OPT_FLAG) {
		stpcpy(stpcpy(end, "="), c->values[i]);
		return c->options[i];
	}
	if (strcmp(c->values[i], "on") == 0)
		return c->options[i];
	if (strcmp(c->values[i], "off") != 0)
		*problem = "a flag is on or off";
	return NULL;
}

/* The command line without --compare, and with `option` unless NULL. Returns its length. */
static int make_args(char *option, int argc, char **argv, char **out)
{
	int n = 0;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--compare") == 0)
			i++;
		else if (strncmp(argv[i], "--compare=", 10) != 0)
			out[n++] = argv[i];
	}
	if (option)
		out[n++] = option;
	out[n] = NULL;
	return n;
}

static int parse_alternative(struct compare *c, unsigned i, int argc, char **argv, char *err, size_t err_size)
{
	char *args[ARGS_MAX + 2], *option, why[400];
	struct loadgen_config *cfg = &c->configs[i];
	const char *problem;
	int n, first;

	option = option_text(c, i, &problem);
	if (problem) {
		snprintf(err, err_size, "--compare: %s=%s: %s", c->key, c->values[i], problem);
		return -EINVAL;
	}
	n = make_args(option, argc, argv, args);
	loadgen_config_defaults(cfg);
	if (opts_parse(&loadgen_options, n, args, cfg, &first, why, sizeof(why)) != OPTS_OK ||
	    loadgen_config_check(cfg, n, args, why, sizeof(why)) ||
	    workloads_apply(cfg, n, args, why, sizeof(why))) {
		snprintf(err, err_size, "--compare: %s", why);
		return -EINVAL;
	}
	cfg->repeat = 1;
	return 0;
}

int compare_parse(const struct loadgen_config *base, int argc, char **argv, struct compare *out, char *err,
		  size_t err_size)
{
	int ret = 0;

	if (split(base->compare, out) || argc > ARGS_MAX) {
		snprintf(err, err_size, "--compare: '%s' is not allowed; allowed: an option and two to %d values of "
			 "it, such as inline=off,auto", base->compare, COMPARE_MAX);
		return -EINVAL;
	}
	if (!may_differ(out->key)) {
		snprintf(err, err_size, "--compare: %s cannot be compared; allowed: options of the workload, of pacing "
			 "and of the data path", out->key);
		return -EINVAL;
	}
	if (opts_given(&loadgen_options, argc, argv, out->key)) {
		snprintf(err, err_size, "--compare and --%s: give one of them", out->key);
		return -EINVAL;
	}
	for (unsigned i = 0; i < out->n && !ret; i++)
		ret = parse_alternative(out, i, argc, argv, err, err_size);
	return ret;
}

/* --- running --- */

/* A number of clients and a size: for each alternative a run whose steps are its rounds. */
struct compared {
	json_int_t clients, bytes;
	json_t *runs[COMPARE_MAX];
};

struct comparison {
	const struct compare *c;
	unsigned rounds;		/* complete ones */
	struct compared *points;
	size_t n_points, max_points;
};

static struct compared *point_of(struct comparison *k, const json_t *step)
{
	json_int_t clients = json_integer_value(json_object_get(step, "target_clients"));
	json_int_t bytes = json_integer_value(json_object_get(step, "message_bytes"));
	struct compared *p;

	for (size_t i = 0; i < k->n_points; i++)
		if (k->points[i].clients == clients && k->points[i].bytes == bytes)
			return &k->points[i];
	if (k->n_points == k->max_points)
		return NULL;
	p = &k->points[k->n_points++];
	*p = (struct compared){ .clients = clients, .bytes = bytes };
	for (unsigned i = 0; i < k->c->n; i++)
		p->runs[i] = json_pack("{s:[]}", "steps");
	return p;
}

/* The part of a step that baseline_compare reads. All rounds are kept until the end, and a whole step is large. */
static json_t *figures_of(const json_t *step, unsigned round)
{
	static const char *const names[] = { "target_clients", "message_bytes", "connected_held", "throughput_msgs_per_s",
					     "response_ns", "connect_ns", "resources" };
	json_t *o = json_pack("{s:i}", "repetition", (int)round + 1);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_object_get(step, names[i]))
			json_object_set(o, names[i], json_object_get(step, names[i]));
	return o;
}

static void keep(struct comparison *k, unsigned alternative, const json_t *run)
{
	json_t *step;
	size_t i;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		struct compared *p = point_of(k, step);

		if (p)
			json_array_append_new(json_object_get(p->runs[alternative], "steps"),
					      figures_of(step, k->rounds));
	}
}

static bool is_result(enum run_exit status)
{
	return status == EXIT_OK || status == EXIT_CRITERION || status == EXIT_INCONCLUSIVE;
}

/* Runs each alternative once. False, with a status, if one of them could not run: then the round does not count. */
static bool run_round(struct compare *c, struct comparison *k, int argc, char **argv, enum run_exit *status)
{
	json_t *runs[COMPARE_MAX] = { NULL };
	unsigned done = 0;

	for (; done < c->n && (done == 0 || is_result(*status)); done++) {
		unsigned which = k->rounds % 2 ? c->n - 1 - done : done;
		struct loadgen_config *cfg = &c->configs[which];

		snprintf(cfg->name_text, sizeof(cfg->name_text), "%u-%u", k->rounds + 1, which + 1);
		if (!cfg->quiet)
			fprintf(stderr, "round %u of %llu: --%s %s\n", k->rounds + 1, (unsigned long long)c->rounds,
				c->key, c->values[which]);
		*status = run_once(cfg, argc, argv, false, &runs[which]);
	}
	for (unsigned i = 0; i < c->n; i++) {
		if (done == c->n && is_result(*status))
			keep(k, i, runs[i]);
		json_decref(runs[i]);
	}
	return done == c->n && is_result(*status);
}

/* --- what came of it --- */

static json_t *rows_of(const struct compared *p, unsigned alternative)
{
	const struct baseline_options options = { .min_effect = BASELINE_MIN_EFFECT, .rounds = true };
	struct baseline_side base = { .run = p->runs[0] }, run = { .run = p->runs[alternative] };
	json_t *comparison = baseline_compare(&base, &run, &options);
	json_t *rows = json_incref(json_object_get(comparison, "rows"));

	json_decref(comparison);
	return rows;
}

static json_t *comparison_json(const struct comparison *k)
{
	json_t *points = json_array();

	for (size_t n = 0; n < k->n_points; n++) {
		json_t *alternatives = json_array();

		for (unsigned i = 1; i < k->c->n; i++)
			json_array_append_new(alternatives, json_pack("{s:s, s:o}", "value", k->c->values[i], "rows",
								      rows_of(&k->points[n], i)));
		json_array_append_new(points, json_pack("{s:I, s:I, s:o}", "clients", k->points[n].clients,
			"message_bytes", k->points[n].bytes, "alternatives", alternatives));
	}
	return json_pack("{s:i, s:s, s:s, s:i, s:f, s:o}", "schema_version", 2, "option", k->c->key, "baseline",
			 k->c->values[0], "rounds", (int)k->rounds, "min_effect", BASELINE_MIN_EFFECT, "points",
			 points);
}

/* "+12.3 % (+10.1 to +15.0)" */
static void print_improvement(const json_t *ratio)
{
	double value = json_number_at(ratio, "value"), low = json_number_at(ratio, "low");
	char text[64] = "-";

	if (isfinite(low))
		snprintf(text, sizeof(text), "%+.1f %% (%+.1f to %+.1f)", 100 * (value - 1), 100 * (low - 1),
			 100 * (json_number_at(ratio, "high") - 1));
	else if (isfinite(value))
		snprintf(text, sizeof(text), "%+.1f %%", 100 * (value - 1));
	printf("  %-28s", text);
}

static void print_figure(double v)
{
	if (isfinite(v))
		printf(" %10.0f", v);
	else
		printf(" %10s", "-");
}

/* The metrics that the table has; the others are in compare.json. */
static const struct shown {
	const char *metric, *title;
	double unit;
} shown[] = { { "throughput_msgs_per_s", "msgs/s", 1 }, { "response_p50_ns", "p50 us", 1e3 } };

static void print_row(const json_t *row, const json_t *point, const char *value)
{
	const char *metric = json_text_at(row, "metric");

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		if (strcmp(metric, shown[i].metric) != 0)
			continue;
		printf("%7.0f %9.0f  %-12s %-7s", json_number_at(point, "clients"),
		       json_number_at(point, "message_bytes"), value, shown[i].title);
		print_figure(json_number_at(row, "base.value") / shown[i].unit);
		print_figure(json_number_at(row, "run.value") / shown[i].unit);
		print_improvement(json_at(row, "round_ratio"));
		printf("  %s\n", json_text_at(row, "verdict"));
	}
}

static void print_table(const struct comparison *k, const json_t *o)
{
	json_t *point, *alternative, *row;
	size_t n, i, r;

	printf("--%s: candidates against the baseline %s; medians of %u interleaved rounds, improvements with their "
	       "range\n", k->c->key, k->c->values[0], k->rounds);
	if (k->rounds < BASELINE_ROUNDS)
		printf("Fewer than %d rounds: no verdict, only a sign that everything runs.\n", BASELINE_ROUNDS);
	printf("clients     bytes  candidate    figure    baseline  candidate  %-28s  verdict\n", "improvement");
	json_array_foreach(json_object_get(o, "points"), n, point) {
		json_array_foreach(json_object_get(point, "alternatives"), i, alternative) {
			json_array_foreach(json_object_get(alternative, "rows"), r, row) {
				print_row(row, point, json_text_at(alternative, "value"));
			}
		}
	}
}

static int show(const struct comparison *k, struct results *results)
{
	json_t *o = comparison_json(k);
	int ret = o ? results_json(results, "compare.json", o) : -ENOMEM;

	print_table(k, o);
	printf("Results: %s%s%s\n", results_dir(results), ret ? ", without compare.json: " : "", ret ? path_error(ret) : "");
	json_decref(o);
	return ret;
}

/* What the runs need, together. */
static uint64_t bytes_needed(const struct compare *c)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < c->n; i++)
		bytes += c->rounds * space_needed(&c->configs[i]);
	return bytes;
}

enum run_exit compare_run(struct compare *c, const struct loadgen_config *base, int argc, char **argv)
{
	struct comparison k = { .c = c, .max_points = base->steps.n * base->sizes.n };
	enum run_exit status = EXIT_ENVIRONMENT;
	struct results *results;
	char name[64], err[512];

	snprintf(name, sizeof(name), "compare-%s", c->key);
	c->rounds = base->repeat > 1 ? base->repeat : BASELINE_ROUNDS;
	if (results_new(base->output, base->name ? base->name : name, bytes_needed(c), &results, err, sizeof(err))) {
		log_error("%s", err);
		return status;
	}
	k.points = calloc(k.max_points, sizeof(*k.points));
	for (unsigned i = 0; i < c->n; i++)
		c->configs[i].output = results_dir(results);
	while (k.points && k.rounds < c->rounds && run_round(c, &k, argc, argv, &status))
		k.rounds++;
	if (k.rounds && show(&k, results))
		status = EXIT_ENVIRONMENT;
	for (size_t n = 0; n < k.n_points; n++)
		for (unsigned i = 0; i < c->n; i++)
			json_decref(k.points[n].runs[i]);
	free(k.points);
	results_free(results);
	return status;
}
