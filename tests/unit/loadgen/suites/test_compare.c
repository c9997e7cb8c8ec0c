/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/suites/alternatives.c and compare.c: what --compare makes of a command line, and of its runs.
 */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "loadgen/suites/suite.h"
#include "loadgen/workloads/workloads.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/report_rig.h"

#define ARGS_MAX 24

static struct loadgen_config base;
static struct alternatives a;
static char line[512], err[512];
static char *args[ARGS_MAX];
static int n_args;

/* The base configuration as main has it. */
static void give(const char *arguments)
{
	char *save;
	int first;

	n_args = 0;
	snprintf(line, sizeof(line), "performance_test %s", arguments);
	for (char *s = strtok_r(line, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		assert_true(n_args < ARGS_MAX - 1);
		args[n_args++] = s;
	}
	args[n_args] = NULL;
	err[0] = '\0';
	alternatives_free(&a);
	loadgen_config_defaults(&base);
	if (opts_parse(&loadgen_options, n_args, args, &base, &first, err, sizeof(err)) != OPTS_OK ||
	    loadgen_config_check(&base, n_args, args, err, sizeof(err)) ||
	    workloads_apply(&base, n_args, args, err, sizeof(err)))
		fail_msg("%s", err);
}

static int parse(const char *arguments)
{
	give(arguments);
	return alternatives_parse(&base, n_args, args, &a, err, sizeof(err));
}

static void assert_refused(const char *arguments, const char *beginning)
{
	assert_int_equal(parse(arguments), -EINVAL);
	if (strncmp(err, beginning, strlen(beginning)) != 0)
		fail_msg("'%s' does not begin with '%s'", err, beginning);
}

TEST(compare__values__a_configuration_each)
{
	assert_int_equal(parse("--steps 3 --compare inline=off,auto,512 --message-size 64,128"), 0);
	assert_string_equal(a.title, "inline");
	assert_int_equal(a.n, 3);
	assert_int_equal(a.v[0].cfg.tuning.inline_bytes, 0);
	assert_int_equal(a.v[1].cfg.tuning.inline_bytes, TUNING_INLINE_AUTO);
	assert_int_equal(a.v[2].cfg.tuning.inline_bytes, 512);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(a.v[i].cfg.steps.v[0], 3);
		assert_int_equal(a.v[i].cfg.sizes.n, 2);
		assert_int_equal(a.v[i].cfg.repeat, 1);
	}
}

TEST(compare__equals_sign_and_other_options__taken)
{
	assert_int_equal(parse("--compare=poll=event,busy --steps=2 --repeat 7"), 0);
	assert_int_equal(a.n, 2);
	assert_int_not_equal(a.v[0].cfg.poll, a.v[1].cfg.poll);
	assert_int_equal(a.v[1].cfg.repeat, 1);
	assert_int_equal(a.rounds, 7);
}

TEST(compare__flag__off_and_on)
{
	assert_int_equal(parse("--compare message-auth=off,on"), 0);
	assert_false(a.v[0].cfg.message_auth);
	assert_true(a.v[1].cfg.message_auth);
	assert_refused("--compare message-auth=off,yes", "--compare: message-auth=yes: ");
}

TEST(compare__coalesce__with_small_only)
{
	assert_int_equal(parse("--workload small --compare coalesce=1,16"), 0);
	assert_int_equal(a.v[0].cfg.coalesce, 1);
	assert_int_equal(a.v[1].cfg.coalesce, 16);
	assert_refused("--compare coalesce=1,16", "--compare: --coalesce: needs");
}

TEST(compare__workloads__each_with_its_own_defaults)
{
	assert_int_equal(parse("--compare workload=echo,small"), 0);
	assert_int_equal(a.v[0].cfg.inflight, 1);
	assert_int_equal(a.v[1].cfg.inflight, 64);
}

TEST(compare__bad__refused_with_what_is_wrong)
{
	assert_refused("--compare inline", "--compare: 'inline' is not allowed");
	assert_refused("--compare inline=off", "--compare: 'inline=off' is not allowed");
	assert_refused("--compare inline=off,auto --slo p99<1ms --price 1",
		       "--price: needs a comparison of transports");
	assert_refused("--compare inline=off,,auto", "--compare: 'inline=off,,auto' is not allowed");
	assert_refused("--compare inline=off,", "--compare: 'inline=off,' is not allowed");
	assert_refused("--compare post-list=1,2,3,4,5,6,7,8,9", "--compare: 'post-list=1,2");
	assert_refused("--compare device=a,\x1b[2J", "--compare: 'device=a,");
	assert_refused("--compare nothing=1,2", "--compare: nothing is not an option");
	assert_refused("--compare clients=1,2", "--compare: clients cannot be compared");
	assert_refused("--join etcd://127.0.0.1:2379/run --compare allow-redirect=on,off",
		       "--compare: allow-redirect cannot be compared in a run on several hosts");
	assert_refused("--join etcd://127.0.0.1:2379/run --compare-set a:realtime=1,inline=off --compare-set "
		       "b:realtime=1,inline=auto",
		       "--compare-set: realtime cannot be compared in a run on several hosts");
	assert_refused("--compare compare=1,2", "--compare: compare cannot be compared");
	assert_refused("--compare inline=off,on", "--compare: --inline: 'on' is not allowed");
	assert_refused("--compare post-list=1,65", "--compare: --post-list: 65 is not allowed");
	assert_refused("--post-list 2 --compare post-list=1,16", "--compare: cannot be combined with --post-list");
	/* Bad only together with the rest. */
	assert_refused("--message-size 16 --compare workload=echo,atomic",
		       "--compare: --message-size: 16 is not allowed");
}

TEST(compare__several_keys__all_combinations)
{
	static const char *const names[] = { "inline=off,post-list=1", "inline=off,post-list=16",
					     "inline=auto,post-list=1", "inline=auto,post-list=16" };

	assert_int_equal(parse("--compare inline=off,auto --steps 3 --compare=post-list=1,16"), 0);
	assert_int_equal(a.n, 4);
	assert_string_equal(a.title, "inline-post-list");
	for (unsigned i = 0; i < a.n; i++) {
		assert_string_equal(a.v[i].name, names[i]);
		assert_int_equal(a.v[i].cfg.tuning.inline_bytes, i < 2 ? 0 : TUNING_INLINE_AUTO);
		assert_int_equal(a.v[i].cfg.tuning.post_list, i % 2 ? 16 : 1);
	}
	assert_string_equal(json_text_at(a.v[3].options, "post-list"), "16");
	assert_refused("--compare inline=off,auto --compare inline=64,128", "--compare: inline is set twice");
	assert_refused("--compare connect=cm,oob,cm", "--compare: 'connect=cm,oob,cm' has cm twice; allowed: once");
	/* 8 x 8 x 2 combinations; 4 x 100 runs. */
	assert_refused("--compare post-list=1,2,3,4,5,6,7,8 --compare coalesce=1,2,3,4,5,6,7,8 --compare "
		       "inline=off,auto --workload "
		       "small", "--compare: 128 combinations in 5 rounds are too many runs; allowed: 64");
	assert_refused("--compare post-list=1,2 --compare inline=off,auto --repeat 100",
		       "--compare: 4 combinations in 100 rounds are too many runs");
	assert_int_equal(parse("--compare post-list=1,2 --repeat 100"), 0);
}

TEST(compare__sets__several_options_at_once)
{
	assert_int_equal(parse("--compare-set none:inline=off,post-list=1 --compare-set "
			       "all:inline=auto,post-list=16,poll=busy "
			       "--compare-set as-it-is"), 0);
	assert_int_equal(a.n, 3);
	assert_string_equal(a.title, "sets");
	assert_string_equal(a.v[0].name, "none");
	assert_int_equal(a.v[0].cfg.tuning.post_list, 1);
	assert_string_equal(a.v[1].name, "all");
	assert_int_equal(a.v[1].cfg.tuning.post_list, 16);
	assert_int_not_equal(a.v[0].cfg.poll, a.v[1].cfg.poll);
	assert_int_equal(a.v[2].n_args, 0);
	/* Each set with each value of a key. */
	assert_int_equal(parse("--compare-set a:inline=off --compare-set b:inline=auto --compare poll=event,busy"), 0);
	assert_int_equal(a.n, 4);
	assert_string_equal(a.v[1].name, "poll=event,b");
	assert_string_equal(a.title, "poll-sets");
	assert_refused("--compare-set a:inline=off", "--compare-set: give it two to 8 times");
	assert_refused("--compare-set a:inline=off --compare-set a:inline=auto", "--compare-set: a is given twice");
	assert_refused("--compare-set a:inline=off,inline=auto --compare-set b:", "--compare-set: inline is set twice");
	assert_refused("--compare-set a:inline --compare-set b:inline=off", "--compare-set: 'a:inline' is not allowed");
	assert_refused("--compare-set a/b:inline=off --compare-set b:inline=off",
		       "--compare-set: 'a/b:inline=off' is not");
	assert_refused("--compare-set :inline=off --compare-set b:inline=off", "--compare-set: ':inline=off' is not");
	assert_refused("--compare-set a:clients=1 --compare-set b:inline=off",
		       "--compare-set: clients cannot be compared");
	assert_refused("--compare-set a:post-list=65 --compare-set b:",
		       "--compare-set: --post-list: 65 is not allowed");
	assert_refused("--compare-set a:inline=off --compare-set b: --compare inline=off,auto",
		       "--compare-set: inline is set");
}

TEST(compare__list_as_a_value__plus_is_a_comma)
{
	assert_int_equal(parse("--workload large --compare device=rxe0,rxe0+rxe1"), 0);
	assert_int_equal(a.v[0].cfg.n_rails, 1);
	assert_int_equal(a.v[1].cfg.n_rails, 2);
	assert_string_equal(a.v[1].cfg.devices.name[1], "rxe1");
	assert_string_equal(a.v[1].name, "rxe0+rxe1");
	assert_string_equal(json_text_at(a.v[1].options, "device"), "rxe0,rxe1");
	assert_int_equal(parse("--workload duplex --device rxe0,rxe1 --compare stripe-min=8k,16k"), 0);
	assert_int_equal(a.v[0].cfg.stripe_min_bytes, 8192);
	assert_int_equal(a.v[1].cfg.stripe_min_bytes, 16384);
	assert_refused("--compare device=rxe0,rxe0+rxe1",
		       "--compare: --device, --server: several rails need --workload");
}

static char ran[256];
static unsigned failing_run;	/* from 1; 0: none */
static unsigned n_runs;
static bool sweeps;

/* A sweep of two rates; the second alternative has the shorter p99 at the first one, and the longer at the second. */
static json_t *sweep_of(unsigned alternative)
{
	return json_pack("{s:{s:[i, i]}, s:[{s:i, s:i, s:f, s:{s:f}}, {s:i, s:i, s:f, s:{s:f}}]}", "config",
			 "rates_per_s", 100, 10000, "steps",
			 "target_clients", 10, "message_bytes", 64, "offered_per_s", 100., "response_ns", "p99",
			 alternative == 2 ? 1e4 : 2e4,
			 "target_clients", 10, "message_bytes", 64, "offered_per_s", 10000., "response_ns", "p99",
			 alternative == 2 ? 4e4 : 2e4);
}

/* In the place of the run: 10 clients, the second alternative twice as fast, and the machine slower with every
 * round. */
enum run_exit run_once(const struct loadgen_config *cfg, int argc, char **argv, bool print, json_t **out)
{
	unsigned round = (unsigned)cfg->name_text[0] - '0', alternative = (unsigned)cfg->name_text[2] - '0';
	double per_s = (alternative == 2 ? 2000. : 1000.) / round;

	(void)argc;
	(void)argv;
	assert_false(print);
	*out = NULL;
	strcat(strcat(ran, cfg->name_text), " ");
	if (++n_runs == failing_run)
		return EXIT_ENVIRONMENT;
	if (sweeps) {
		*out = sweep_of(alternative);
		return EXIT_OK;
	}
	*out = json_pack("{s:[{s:i, s:i, s:f, s:f, s:{s:f}, s:{s:{s:f, s:f, s:f}}}]}", "steps", "target_clients", 10,
			 "message_bytes", 64, "throughput_msgs_per_s", per_s, "throughput_bytes_per_s", 64 * per_s,
			 "response_ns", "p50", 1e9 / per_s, "resources", "generator", "cpu_user_s", 0.5, "cpu_system_s",
			 0.5, "window_s", 2.);
	/* The last round is not the worst one. */
	return alternative == 2 && round < 5 ? EXIT_CRITERION : EXIT_OK;
}

static int set_up(void **state)
{
	fake_verbs_reset();
	fake_rdmacm_reset();
	return report_rig_set_up(state);
}

static enum run_exit run_comparison(const char *arguments)
{
	struct suite *suite;
	enum run_exit status;

	ran[0] = '\0';
	n_runs = 0;
	give(arguments);
	assert_int_equal(suite_of_comparison(&base, n_args, args, &suite, err, sizeof(err)), 0);
	status = suite_run(suite, &base, n_args, args);
	suite_free(suite);
	return status;
}

/* suite.json; its only entry is the comparison. */
static json_t *read_results(void)
{
	DIR *dir = opendir("results");
	struct dirent *e;
	char path[300] = "";
	json_t *o;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		if (strstr(e->d_name, "-compare-"))
			snprintf(path, sizeof(path), "results/%s/suite.json", e->d_name);
	closedir(dir);
	o = json_load_file(path, 0, NULL);
	assert_non_null(o);
	strcpy(strrchr(path, '/'), "/report.html");
	assert_int_equal(access(path, R_OK), 0);
	return o;
}

static json_t *comparison_of(const json_t *suite)
{
	return json_object_get(json_array_get(json_at(suite, "entries"), 0), "comparison");
}

static const json_t *row_of(const json_t *rows, const char *metric)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		if (strcmp(json_text_at(row, "metric"), metric) == 0)
			return row;
	}
	fail_msg("no row of %s", metric);
	return NULL;
}

TEST_WITH(run__rounds__in_turn_and_judged_by_their_ratios, set_up, report_rig_tear_down)
{
	json_t *suite, *o, *point, *figures;
	const json_t *row;

	failing_run = 0;
	assert_int_equal(run_comparison("--compare inline=off,auto --quiet --output results"), EXIT_CRITERION);
	assert_string_equal(ran, "1-1 1-2 2-2 2-1 3-1 3-2 4-2 4-1 5-1 5-2 ");
	suite = read_results();
	assert_float_equal(json_number_at(suite, "schema_version"), 2, 0);
	assert_string_equal(json_text_at(suite, "status"), "completed");
	assert_float_equal(json_number_at(suite, "exit_status"), EXIT_CRITERION, 0);
	o = comparison_of(suite);
	assert_string_equal(json_text_at(o, "baseline"), "off");
	assert_string_equal(json_text_at(json_array_get(json_at(o, "alternatives"), 1), "options.inline"), "auto");
	assert_float_equal(json_number_at(o, "rounds"), 5, 0);
	point = json_array_get(json_at(o, "points"), 0);
	assert_float_equal(json_number_at(point, "clients"), 10, 0);
	assert_float_equal(json_number_at(point, "message_bytes"), 64, 0);
	assert_string_equal(json_text_at(json_array_get(json_at(point, "candidates"), 0), "name"), "auto");
	figures = json_array_get(json_at(point, "figures"), 1);
	assert_string_equal(json_text_at(figures, "name"), "auto");
	assert_float_equal(json_number_at(figures, "throughput_msgs_per_s"), 2000. / 3, 1e-6);
	assert_float_equal(json_number_at(figures, "clients"), 10, 0);
	row = json_array_get(json_at(json_array_get(json_at(point, "candidates"), 0), "rows"), 0);
	assert_string_equal(json_text_at(row, "metric"), "throughput_msgs_per_s");
	assert_string_equal(json_text_at(row, "verdict"), "improvement");
	assert_float_equal(json_number_at(row, "base.value"), 1000. / 3, 1e-6);
	assert_float_equal(json_number_at(row, "run.low"), 400, 1e-6);
	assert_float_equal(json_number_at(row, "round_ratio.low"), 2, 1e-6);
	assert_float_equal(json_number_at(row, "round_ratio.high"), 2, 1e-6);
	row = row_of(json_at(json_array_get(json_at(point, "candidates"), 0), "rows"), "throughput_bytes_per_s");
	assert_float_equal(json_number_at(row, "run.low"), 400 * 64, 1e-6);
	row = row_of(json_at(json_array_get(json_at(point, "candidates"), 0), "rows"), "generator_cpu_ns_per_message");
	assert_float_equal(json_number_at(row, "base.low"), 0.5e9 / 1000, 1e-3);
	assert_float_equal(json_number_at(row, "round_ratio.value"), 2, 1e-6);
	json_decref(suite);
}

TEST_WITH(run__a_run_that_cannot_be__its_round_does_not_count, set_up, report_rig_tear_down)
{
	json_t *suite, *o, *points, *candidates, *rows;

	failing_run = 4;
	assert_int_equal(run_comparison("--compare inline=off,auto --quiet --output results"), EXIT_ENVIRONMENT);
	assert_string_equal(ran, "1-1 1-2 2-2 2-1 ");
	suite = read_results();
	o = comparison_of(suite);
	assert_float_equal(json_number_at(o, "rounds"), 1, 0);
	points = json_at(o, "points");
	candidates = json_at(json_array_get(points, 0), "candidates");
	rows = json_at(json_array_get(candidates, 0), "rows");
	assert_string_equal(json_text_at(json_array_get(rows, 0), "verdict"), "unknown");
	json_decref(suite);
}

TEST_WITH(run__no_complete_round__failed_and_said, set_up, report_rig_tear_down)
{
	json_t *suite;

	failing_run = 2;
	assert_int_equal(run_comparison("--compare inline=off,auto --quiet --output results"), EXIT_ENVIRONMENT);
	assert_string_equal(ran, "1-1 1-2 ");
	suite = read_results();
	assert_null(comparison_of(suite));
	assert_string_equal(json_text_at(json_array_get(json_at(suite, "entries"), 0), "status"), "failed");
	json_decref(suite);
}

TEST_WITH(run__sweep__the_rate_where_the_p99_curves_cross, set_up, report_rig_tear_down)
{
	json_t *suite, *crossovers;

	failing_run = 0;
	sweeps = true;
	assert_int_equal(run_comparison("--compare inline=off,auto --rate 100-10000:2 --repeat 2 --quiet --output "
					"results"),
			 EXIT_OK);
	sweeps = false;
	suite = read_results();
	assert_int_equal(json_array_size(json_at(comparison_of(suite), "points")), 2);
	crossovers = json_at(comparison_of(suite), "crossovers");
	assert_int_equal(json_array_size(crossovers), 1);
	assert_string_equal(json_text_at(json_array_get(crossovers, 0), "name"), "auto");
	assert_float_equal(json_number_at(json_array_get(crossovers, 0), "offered_per_s"), 1000, 1e-6);
	assert_true(json_is_false(json_at(json_array_get(crossovers, 0), "faster_beyond")));
	json_decref(suite);
}

TEST_WITH(run__repeat_1__one_round, set_up, report_rig_tear_down)
{
	failing_run = 0;
	run_comparison("--compare inline=off,auto --repeat 1 --quiet --output results");
	assert_string_equal(ran, "1-1 1-2 ");
}
