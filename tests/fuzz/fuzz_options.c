/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines: words separated by newlines; the first one names the program. A refusal is one line. */
#include <stdio.h>

#include "common/base/opts.h"
#include "loadgen/config/config.h"
#include "loadgen/workloads/workloads.h"
#include "server/config/config.h"
#include "tests/fuzz/input.h"

#define ARGS_MAX 32

static void is_one_line(const char *err)
{
	assert(err[0] && !strchr(err, '\n'));
}

static void server(int argc, char **argv)
{
	static struct server_config c;
	char err[512] = "";
	int first;

	server_config_defaults(&c);
	switch (opts_parse(&server_options, argc, argv, &c, &first, err, sizeof(err))) {
	case OPTS_ERROR:
		is_one_line(err);
		break;
	case OPTS_OK:
		assert(first >= 1 && first <= argc);
		if (server_config_check(&c, err, sizeof(err)))
			is_one_line(err);
		else
			assert(c.threads >= 1 && c.n_rails >= 1 && c.n_rails <= RAILS_MAX);
		break;
	case OPTS_HELP:
	case OPTS_VERSION:
		break;
	}
}

static void loadgen(int argc, char **argv)
{
	static struct loadgen_config c;
	char err[512] = "";
	int first;

	loadgen_config_defaults(&c);
	switch (opts_parse(&loadgen_options, argc, argv, &c, &first, err, sizeof(err))) {
	case OPTS_ERROR:
		is_one_line(err);
		break;
	case OPTS_OK:
		if (loadgen_config_check(&c, argc, argv, err, sizeof(err)) ||
		    workloads_apply(&c, argc, argv, err, sizeof(err)))
			is_one_line(err);
		break;
	case OPTS_HELP:
	case OPTS_VERSION:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = input_text(data, n), *argv[ARGS_MAX + 1], *save = NULL;
	int argc = 0;

	for (char *s = strtok_r(text, "\n", &save); s && argc < ARGS_MAX; s = strtok_r(NULL, "\n", &save))
		argv[argc++] = s;
	argv[argc] = NULL;
	if (argc > 0 && strcmp(argv[0], "rdma_server") == 0)
		server(argc, argv);
	else if (argc > 0)
		loadgen(argc, argv);
	free(text);
	return 0;
}
