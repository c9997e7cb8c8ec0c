/* Unit tests of loadgen/compare.c: what --compare makes of a command line, and of its runs. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "loadgen/compare.h"
#include "loadgen/workloads/workloads.h"
#include "tests/unit/helpers/report_rig.h"

#define ARGS_MAX 16

static struct loadgen_config base;
static struct compare compare;
static char line[256], err[512];
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
	memset(&compare, 0, sizeof(compare));
	loadgen_config_defaults(&base);
	if (opts_parse(&loadgen_options, n_args, args, &base, &first, err, sizeof(err)) != OPTS_OK ||
	    loadgen_config_check(&base, n_args, args, err, sizeof(err)) ||
	    workloads_apply(&base, n_args, args, err, sizeof(err)))
		fail_msg("%s", err);
}

static int parse(const char *arguments)
{
	give(arguments);
	return compare_parse(&base, n_args, args, &compare, err, sizeof(err));
}

static void assert_refused(const char *arguments, const char *beginning)
{
	assert_int_equal(parse(arguments), -EINVAL);
	if (strncmp(err, beginning, strlen(beginning)) != 0)
		fail_msg("'%s' does not begin with '%s'", err, beginning);
}

static void compare__values__a_configuration_each(void **state)
{
	(void)state;
	assert_int_equal(parse("--steps 3 --compare inline=off,auto,512 --message-size 64,128"), 0);
	assert_string_equal(compare.key, "inline");
	assert_int_equal(compare.n, 3);
	assert_int_equal(compare.configs[0].tuning.inline_bytes, 0);
	assert_int_equal(compare.configs[1].tuning.inline_bytes, TUNING_INLINE_AUTO);
	assert_int_equal(compare.configs[2].tuning.inline_bytes, 512);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(compare.configs[i].steps.v[0], 3);
		assert_int_equal(compare.configs[i].sizes.n, 2);
		assert_int_equal(compare.configs[i].repeat, 1);
	}
}

static void compare__equals_sign_and_other_options__taken(void **state)
{
	(void)state;
	assert_int_equal(parse("--compare=poll=event,busy --steps=2 --repeat 7"), 0);
	assert_int_equal(compare.n, 2);
	assert_int_not_equal(compare.configs[0].poll, compare.configs[1].poll);
	assert_int_equal(compare.configs[1].repeat, 1);
}

static void compare__flag__off_and_on(void **state)
{
	(void)state;
	assert_int_equal(parse("--compare message-auth=off,on"), 0);
	assert_false(compare.configs[0].message_auth);
	assert_true(compare.configs[1].message_auth);
	assert_refused("--compare message-auth=off,yes", "--compare: message-auth=yes: ");
}

static void compare__coalesce__with_small_only(void **state)
{
	(void)state;
	assert_int_equal(parse("--workload small --compare coalesce=1,16"), 0);
	assert_int_equal(compare.configs[0].coalesce, 1);
	assert_int_equal(compare.configs[1].coalesce, 16);
	assert_refused("--compare coalesce=1,16", "--compare: --coalesce: goes with");
}

static void compare__workloads__each_with_its_own_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse("--compare workload=echo,small"), 0);
	assert_int_equal(compare.configs[0].inflight, 1);
	assert_int_equal(compare.configs[1].inflight, 64);
}

static void compare__bad__refused_with_what_is_wrong(void **state)
{
	(void)state;
	assert_refused("--compare inline", "--compare: 'inline' is not allowed");
	assert_refused("--compare inline=off", "--compare: 'inline=off' is not allowed");
	assert_refused("--compare inline=off,,auto", "--compare: 'inline=off,,auto' is not allowed");
	assert_refused("--compare inline=off,", "--compare: 'inline=off,' is not allowed");
	assert_refused("--compare post-list=1,2,3,4,5,6,7,8,9", "--compare: 'post-list=1,2");
	assert_refused("--compare nothing=1,2", "--compare: nothing cannot be compared");
	assert_refused("--compare clients=1,2", "--compare: clients cannot be compared");
	assert_refused("--compare compare=1,2", "--compare: compare cannot be compared");
	assert_refused("--compare inline=off,on", "--compare: --inline: 'on' is not allowed");
	assert_refused("--compare post-list=1,65", "--compare: --post-list: 65 is not allowed");
	assert_refused("--post-list 2 --compare post-list=1,16", "--compare and --post-list: give one of them");
	/* Bad only together with the rest. */
	assert_refused("--message-size 16 --compare workload=echo,atomic", "--compare: --message-size: 16 is not allowed");
}

/* --- runs --- */

static char ran[256];
static unsigned failing_run;	/* from 1; 0: none */
static unsigned n_runs;

/* In the place of the run: 10 clients, the second alternative twice as fast, and the machine slower with every round. */
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
	*out = json_pack("{s:[{s:i, s:i, s:f, s:{s:f}}]}", "steps", "target_clients", 10, "message_bytes", 64,
			 "throughput_msgs_per_s", per_s, "response_ns", "p50", 1e9 / per_s);
	return alternative == 2 ? EXIT_CRITERION : EXIT_OK;
}

static enum run_exit run_comparison(const char *arguments)
{
	ran[0] = '\0';
	n_runs = 0;
	assert_int_equal(parse(arguments), 0);
	return compare_run(&compare, &base, n_args, args);
}

static json_t *read_comparison(void)
{
	DIR *dir = opendir("results");
	struct dirent *e;
	char path[300] = "";
	json_t *o;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		if (strstr(e->d_name, "-compare-"))
			snprintf(path, sizeof(path), "results/%s/compare.json", e->d_name);
	closedir(dir);
	o = json_load_file(path, 0, NULL);
	assert_non_null(o);
	return o;
}

static void run__rounds__in_turn_and_judged_by_their_ratios(void **state)
{
	json_t *o, *point, *row;

	(void)state;
	failing_run = 0;
	assert_int_equal(run_comparison("--compare inline=off,auto --quiet --output results"), EXIT_CRITERION);
	assert_string_equal(ran, "1-1 1-2 2-2 2-1 3-1 3-2 4-2 4-1 5-1 5-2 ");
	o = read_comparison();
	assert_string_equal(json_text_at(o, "baseline"), "off");
	assert_float_equal(json_number_at(o, "rounds"), 5, 0);
	point = json_array_get(json_at(o, "points"), 0);
	assert_float_equal(json_number_at(point, "clients"), 10, 0);
	assert_float_equal(json_number_at(point, "message_bytes"), 64, 0);
	assert_string_equal(json_text_at(json_array_get(json_at(point, "alternatives"), 0), "value"), "auto");
	row = json_array_get(json_at(json_array_get(json_at(point, "alternatives"), 0), "rows"), 0);
	assert_string_equal(json_text_at(row, "metric"), "throughput_msgs_per_s");
	assert_string_equal(json_text_at(row, "verdict"), "improvement");
	assert_float_equal(json_number_at(row, "base.value"), 1000. / 3, 1e-6);
	assert_float_equal(json_number_at(row, "run.low"), 400, 1e-6);
	assert_float_equal(json_number_at(row, "round_ratio.low"), 2, 1e-6);
	assert_float_equal(json_number_at(row, "round_ratio.high"), 2, 1e-6);
	json_decref(o);
}

static void run__a_run_that_cannot_be__its_round_does_not_count(void **state)
{
	json_t *o;

	(void)state;
	failing_run = 4;
	assert_int_equal(run_comparison("--compare inline=off,auto --quiet --output results"), EXIT_ENVIRONMENT);
	assert_string_equal(ran, "1-1 1-2 2-2 2-1 ");
	o = read_comparison();
	assert_float_equal(json_number_at(o, "rounds"), 1, 0);
	assert_string_equal(json_text_at(json_array_get(json_at(json_array_get(json_at(json_array_get(json_at(o, "points"), 0),
		"alternatives"), 0), "rows"), 0), "verdict"), "unknown");
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare__values__a_configuration_each),
		cmocka_unit_test(compare__equals_sign_and_other_options__taken),
		cmocka_unit_test(compare__flag__off_and_on),
		cmocka_unit_test(compare__coalesce__with_small_only),
		cmocka_unit_test(compare__workloads__each_with_its_own_defaults),
		cmocka_unit_test(compare__bad__refused_with_what_is_wrong),
		cmocka_unit_test_setup_teardown(run__rounds__in_turn_and_judged_by_their_ratios, report_rig_set_up,
						report_rig_tear_down),
		cmocka_unit_test_setup_teardown(run__a_run_that_cannot_be__its_round_does_not_count, report_rig_set_up,
						report_rig_tear_down),
	};

	return cmocka_run_group_tests_name("loadgen_compare", tests, NULL, NULL);
}
