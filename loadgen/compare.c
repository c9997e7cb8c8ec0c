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
#include "loadgen/ramp/results.h"
#include "loadgen/run.h"

#define ARGS_MAX 256
#define ROUNDS_MAX 100		/* --repeat, at most */
#define ROUNDS_OF_A_RESULT 5

/* Options that say what is run, where, and where it is written: the same for all alternatives. */
static const char *const same_for_all[] = {
	"ca", "cert", "clients", "compare", "environment", "json", "key", "log-level", "message-size", "name", "output",
	"quiet", "repeat", "server", "server-name", "steps", "tls-port", "trace",
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

/* The option of an alternative as on a command line; NULL for a flag that is off, or a value it does not have. */
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
	    loadgen_config_check(cfg, n, args, why, sizeof(why))) {
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
		snprintf(err, err_size, "--compare: '%s' is not allowed; allowed: an option and two to %d values of it, "
			 "such as inline=off,auto", base->compare, COMPARE_MAX);
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

/* Figures of one number of clients and one size, by alternative and round. */
struct point {
	json_int_t clients, bytes;
	double per_s[COMPARE_MAX][ROUNDS_MAX], p50_ns[COMPARE_MAX][ROUNDS_MAX];
};

struct comparison {
	const struct compare *c;
	unsigned rounds;		/* complete ones */
	struct point *points;
	size_t n_points, max_points;
};

static double number_in(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static struct point *point_of(struct comparison *k, const json_t *step)
{
	json_int_t clients = json_integer_value(json_object_get(step, "target_clients"));
	json_int_t bytes = json_integer_value(json_object_get(step, "message_bytes"));

	for (size_t i = 0; i < k->n_points; i++)
		if (k->points[i].clients == clients && k->points[i].bytes == bytes)
			return &k->points[i];
	if (k->n_points == k->max_points)
		return NULL;
	k->points[k->n_points].clients = clients;
	k->points[k->n_points].bytes = bytes;
	return &k->points[k->n_points++];
}

static void keep(struct comparison *k, unsigned alternative, unsigned round, const json_t *run)
{
	json_t *step;
	size_t i;

	json_array_foreach(json_object_get(run, "steps"), i, step) {
		struct point *p = point_of(k, step);

		if (!p)
			return;
		p->per_s[alternative][round] = number_in(step, "throughput_msgs_per_s");
		p->p50_ns[alternative][round] = number_in(json_object_get(step, "response_ns"), "p50");
	}
}

static bool is_result(enum run_exit status)
{
	return status == EXIT_OK || status == EXIT_CRITERION || status == EXIT_INCONCLUSIVE;
}

/* Each alternative once. False, and a status, if one of them could not be run. */
static bool run_round(struct compare *c, struct comparison *k, unsigned round, int argc, char **argv,
		      enum run_exit *status)
{
	for (unsigned i = 0; i < c->n; i++) {
		unsigned which = round % 2 ? c->n - 1 - i : i;
		struct loadgen_config *cfg = &c->configs[which];
		json_t *run;

		snprintf(cfg->name_text, sizeof(cfg->name_text), "%u-%u", round + 1, which + 1);
		if (!cfg->quiet)
			fprintf(stderr, "round %u of %llu: --%s %s\n", round + 1, (unsigned long long)c->rounds, c->key,
				c->values[which]);
		*status = run_once(cfg, argc, argv, false, &run);
		if (run)
			keep(k, which, round, run);
		json_decref(run);
		if (!is_result(*status))
			return false;
	}
	return true;
}

/* --- what came of it --- */

struct spread {
	double median, min, max;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Of the values that are there. */
static struct spread spread_of(const double *v, unsigned n)
{
	double sorted[ROUNDS_MAX];
	unsigned m = 0;

	for (unsigned i = 0; i < n; i++)
		if (isfinite(v[i]) && v[i] > 0)
			sorted[m++] = v[i];
	if (m == 0)
		return (struct spread){ NAN, NAN, NAN };
	qsort(sorted, m, sizeof(sorted[0]), by_value);
	return (struct spread){ m % 2 ? sorted[m / 2] : (sorted[m / 2 - 1] + sorted[m / 2]) / 2, sorted[0],
				sorted[m - 1] };
}

/* Ratios are taken in each round, where both sides met the same machine. */
static struct spread ratio_of(const double *a, const double *b, unsigned n)
{
	double ratios[ROUNDS_MAX];

	for (unsigned i = 0; i < n; i++)
		ratios[i] = a[i] / b[i];
	return spread_of(ratios, n);
}

static json_t *spread_json(struct spread s)
{
	return json_pack("{s:o, s:o, s:o}", "median", json_number(s.median), "min", json_number(s.min), "max", json_number(s.max));
}

static json_t *alternative_json(const struct comparison *k, const struct point *p, unsigned i)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "value", k->c->values[i],
		"msgs_per_s", spread_json(spread_of(p->per_s[i], k->rounds)),
		"msgs_per_s_ratio", spread_json(ratio_of(p->per_s[i], p->per_s[0], k->rounds)),
		"p50_ns", spread_json(spread_of(p->p50_ns[i], k->rounds)),
		"p50_ns_ratio", spread_json(ratio_of(p->p50_ns[0], p->p50_ns[i], k->rounds)));
}

static json_t *comparison_json(const struct comparison *k)
{
	json_t *points = json_array();

	for (size_t n = 0; n < k->n_points; n++) {
		json_t *alternatives = json_array();

		for (unsigned i = 0; i < k->c->n; i++)
			json_array_append_new(alternatives, alternative_json(k, &k->points[n], i));
		json_array_append_new(points, json_pack("{s:I, s:I, s:o}", "clients", k->points[n].clients,
			"message_bytes", k->points[n].bytes, "alternatives", alternatives));
	}
	return json_pack("{s:i, s:s, s:s, s:i, s:o}", "schema_version", 1, "option", k->c->key, "baseline",
			 k->c->values[0], "rounds", (int)k->rounds, "points", points);
}

/* "+12.3 % (+10.1 to +15.0)"; `s` is of ratios above 1 where the candidate is better. */
static void print_improvement(struct spread s)
{
	char text[64] = "-";

	if (isfinite(s.median))
		snprintf(text, sizeof(text), "%+.1f %% (%+.1f to %+.1f)", 100 * (s.median - 1), 100 * (s.min - 1),
			 100 * (s.max - 1));
	printf("  %-28s", text);
}

static void print_figure(double v)
{
	if (isfinite(v))
		printf(" %10.0f", v);
	else
		printf(" %10s", "-");
}

static void print_point(const struct comparison *k, const struct point *p, unsigned i)
{
	printf("%7lld %9lld  %-12s", (long long)p->clients, (long long)p->bytes, k->c->values[i]);
	print_figure(spread_of(p->per_s[0], k->rounds).median);
	print_figure(spread_of(p->per_s[i], k->rounds).median);
	print_improvement(ratio_of(p->per_s[i], p->per_s[0], k->rounds));
	print_figure(spread_of(p->p50_ns[0], k->rounds).median / 1e3);
	print_figure(spread_of(p->p50_ns[i], k->rounds).median / 1e3);
	print_improvement(ratio_of(p->p50_ns[0], p->p50_ns[i], k->rounds));
	printf("\n");
}

static void print_table(const struct comparison *k)
{
	printf("--%s: candidates against the baseline %s; medians of %u interleaved rounds, improvements with their range\n",
	       k->c->key, k->c->values[0], k->rounds);
	if (k->rounds < ROUNDS_OF_A_RESULT)
		printf("Fewer than %d rounds: no result, only a sign that everything runs.\n", ROUNDS_OF_A_RESULT);
	printf("                                    msgs/s                                          p50 us\n");
	printf("clients     bytes  candidate      baseline  candidate  improvement                   baseline  candidate"
	       "  improvement\n");
	for (size_t n = 0; n < k->n_points; n++)
		for (unsigned i = 1; i < k->c->n; i++)
			print_point(k, &k->points[n], i);
}

static int write_json(struct comparison *k, struct results *results)
{
	json_t *o = comparison_json(k);
	int ret = o ? results_write_json(results_path(results, "compare.json"), o) : -ENOMEM;

	if (ret)
		log_error("cannot write %s: %s", results_path(results, "compare.json"), strerror(-ret));
	json_decref(o);
	return ret;
}

enum run_exit compare_run(struct compare *c, const struct loadgen_config *base, int argc, char **argv)
{
	struct comparison k = { .c = c, .max_points = base->steps.n * base->sizes.n };
	enum run_exit status = EXIT_ENVIRONMENT;
	struct results *results;
	char name[64], err[512];

	snprintf(name, sizeof(name), "compare-%s", c->key);
	if (results_new(base->output, base->name ? base->name : name, &results, err, sizeof(err))) {
		log_error("%s", err);
		return status;
	}
	c->rounds = base->repeat > 1 ? base->repeat : ROUNDS_OF_A_RESULT;
	k.points = calloc(k.max_points, sizeof(*k.points));
	for (unsigned i = 0; i < c->n; i++)
		c->configs[i].output = results_dir(results);
	while (k.points && k.rounds < c->rounds && run_round(c, &k, k.rounds, argc, argv, &status))
		k.rounds++;
	if (k.rounds) {
		print_table(&k);
		printf("Results: %s\n", results_dir(results));
		if (write_json(&k, results))
			status = EXIT_ENVIRONMENT;
	}
	free(k.points);
	results_free(results);
	return status;
}
