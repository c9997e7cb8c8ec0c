/* Unit tests of loadgen/compare.c: what --compare makes of a command line. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/compare.h"

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
	    loadgen_config_check(&base, n_args, args, err, sizeof(err)))
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare__values__a_configuration_each),
		cmocka_unit_test(compare__equals_sign_and_other_options__taken),
		cmocka_unit_test(compare__flag__off_and_on),
		cmocka_unit_test(compare__coalesce__with_small_only),
		cmocka_unit_test(compare__workloads__each_with_its_own_defaults),
		cmocka_unit_test(compare__bad__refused_with_what_is_wrong),
	};

	return cmocka_run_group_tests_name("loadgen_compare", tests, NULL, NULL);
}
