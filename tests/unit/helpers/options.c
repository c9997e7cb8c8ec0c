/* SPDX-License-Identifier: BSD-2-Clause */
/* See options.h. */
#include "tests/unit/helpers/options.h"

#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "loadgen/workloads/workloads.h"

#define ARGS_MAX 32

struct loadgen_config options;
char options_err[400];

static char line[8000];
static char *args[ARGS_MAX];
static int n_args;

int options_reset(void **state)
{
	(void)state;
	loadgen_config_defaults(&options);
	options_err[0] = '\0';
	return 0;
}

enum opts_result options_parse(const char *arguments)
{
	int first = 0;
	char *save;

	assert_true(strlen(arguments) < sizeof(line));
	strcpy(line, arguments);
	args[0] = (char *)(uintptr_t)"performance_test";
	n_args = 1;
	for (char *s = strtok_r(line, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		assert_true(n_args < ARGS_MAX);
		args[n_args++] = s;
	}
	return opts_parse(&loadgen_options, n_args, args, &options, &first, options_err, sizeof(options_err));
}

int options_check(void)
{
	int ret = loadgen_config_check(&options, n_args, args, options_err, sizeof(options_err));

	return ret ? ret : workloads_apply(&options, n_args, args, options_err, sizeof(options_err));
}

void options_taken(const char *arguments)
{
	loadgen_config_defaults(&options);
	if (options_parse(arguments) != OPTS_OK || options_check())
		fail_msg("%s: %s", arguments, options_err);
}

void options_refused(const char *arguments, const char *beginning)
{
	enum opts_result parsed;

	loadgen_config_defaults(&options);
	parsed = options_parse(arguments);
	if (parsed == OPTS_OK)
		options_err[0] = '\0';
	if ((parsed == OPTS_OK && options_check() != -EINVAL) ||
	    strncmp(options_err, beginning, strlen(beginning)) != 0)
		fail_msg("%s: '%s' does not begin with '%s'", arguments, options_err, beginning);
	assert_null(strchr(options_err, '\n'));
	assert_true(options_err[0] && options_err[strlen(options_err) - 1] != ' ');
}

void options_parser_refuses(const char *arguments, const char *text)
{
	loadgen_config_defaults(&options);
	if (options_parse(arguments) != OPTS_ERROR || strcmp(options_err, text) != 0)
		fail_msg("%s: '%s' is not '%s'", arguments, options_err, text);
}
