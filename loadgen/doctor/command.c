/* See command.h. */
#include "loadgen/doctor/command.h"

#include <errno.h>
#include <string.h>

#include "common/base/build_info.h"
#include "common/base/opts.h"
#include "loadgen/doctor/devices.h"
#include "loadgen/doctor/process.h"

#define EXIT_STATUS_USAGE 2
#define EXIT_STATUS_UNCHECKED 3

struct arguments {
	bool json;
};

static const struct opt options[] = {
	{ .name = "json", .type = OPT_FLAG, .offset = offsetof(struct arguments, json),
	  .help = "Print the findings as JSON." },
};

static const struct opts_spec spec = {
	.program = "performance_test doctor",
	.usage = "[options]",
	.summary = "Checks whether this machine is ready for RDMA. Of what is wrong it says why that matters, and the\n"
		   "command that mends it.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 nothing is wrong, 1 something is, 2 usage, 3 something could not be checked.",
};

static int usage(const char *text)
{
	fprintf(stderr, "%s: %s\n", spec.program, text);
	return EXIT_STATUS_USAGE;
}

static int print_json(const struct findings *f)
{
	json_t *o = findings_json(f);
	int ret = o ? json_dumpf(o, stdout, JSON_INDENT(1) | JSON_ENSURE_ASCII) : -1;

	json_decref(o);
	printf("\n");
	return ret;
}

static int look(bool json)
{
	static struct findings f;	/* too large for a stack */
	struct process_limits limits;
	int ret;

	devices_check("", &f);
	ret = process_limits_read(&limits);
	if (ret)
		findings_add(&f, "limits", FINDING_UNKNOWN, NULL, "limits cannot be read: %s", strerror(-ret));
	else
		process_check(&limits, &f);
	ret = 0;
	if (json)
		ret = print_json(&f);
	else
		findings_print(&f, stdout);
	if (ret || fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: cannot write to stdout\n", spec.program);
		return EXIT_STATUS_UNCHECKED;
	}
	return findings_status(&f);
}

int doctor_command(int argc, char **argv)
{
	struct arguments a = { .json = false };
	char err[512];
	int first;

	switch (opts_parse(&spec, argc, argv, &a, &first, err, sizeof(err))) {
	case OPTS_HELP:
		opts_print_help(&spec, stdout);
		return 0;
	case OPTS_VERSION:
		printf("performance_test %s\n", build_info_text());
		return 0;
	case OPTS_ERROR:
		return usage(err);
	case OPTS_OK:
		break;
	}
	return first < argc ? usage("no operands are taken (see --help)") : look(a.json);
}
