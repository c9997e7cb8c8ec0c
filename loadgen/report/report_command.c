/* SPDX-License-Identifier: BSD-2-Clause */
/* `performance_test report`. See report_command.h. */
#include "loadgen/report/report_command.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/build_info.h"
#include "common/base/utf8.h"
#include "loadgen/analysis/stats.h"
#include "loadgen/report/report.h"
#include "loadgen/report/suite_report.h"

#define EXIT_STATUS_USAGE 2
#define LABEL_MAX 32

struct arguments {
	const char *baseline, *output;
	uint64_t growth, headroom, min_effect;	/* per cent */
	int format;
	bool any_environment;
	struct opt_list plan;
};

static const char *const format_names[] = { "text", "markdown", "html", NULL };

#define AT(field) offsetof(struct arguments, field)

static const struct opt options[] = {
	{ .name = "any-environment", .type = OPT_FLAG, .offset = AT(any_environment),
	  .help = "Compare with --baseline even if environment or configuration differ.",
	  .more = "The report lists the differences. Without this option they are printed, and no report is made." },
	{ .name = "baseline", .type = OPT_STRING, .offset = AT(baseline), .metavar = "[LABEL=]DIR,...",
	  .help = "Folders of runs, at most 4, to compare this one with.",
	  .more = "Their curves are in the background of the charts, and the report names each figure that changed by "
	  "more than the noise of both runs. LABEL (letters, digits, `.`, `_`, `-`; at most 32) is the run's name in "
	  "the report; without it base, base2 and so on." },
	{ .name = "format", .type = OPT_CHOICE, .offset = AT(format), .choices = format_names, .metavar = "FORMAT",
	  .def = "text", .help = "Format of what is printed; the files are written in any case." },
	{ .name = "growth", .type = OPT_UINT, .offset = AT(growth), .min = 0, .max = 10000, .metavar = "PERCENT",
	  .def = "0", .help = "Planning: expected growth, added to the numbers of clients that are planned for." },
	{ .name = "headroom", .type = OPT_UINT, .offset = AT(headroom), .min = 0, .max = 90, .metavar = "PERCENT",
	  .def = "30", .help = "Planning: share of each server's capacity that stays free." },
	{ .name = "min-effect", .type = OPT_UINT, .offset = AT(min_effect), .min = 0, .max = 1000, .metavar = "PERCENT",
	  .def = "5", .help = "A change against a baseline counts only if it is larger than this." },
	{ .name = "output", .type = OPT_STRING, .offset = AT(output), .metavar = "DIR", .def_words = "the run's folder",
	  .help = "Where report.html, report.md, tables/ and charts/ go." },
	{ .name = "plan", .type = OPT_LIST, .offset = AT(plan), .min = 1, .max = 1000000000, .metavar = "N,N,...",
	  .def_words = "chosen from the run", .help = "Planning: numbers of clients to plan for." },
};

const struct opts_spec report_command_options = {
	.program = "performance_test report",
	.usage = "DIR [options]",
	.summary = "Prints what the run in the folder DIR found, and writes report.html, report.md, tables/*.csv\n"
		   "and charts/*.svg.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 done, 1 worse than a baseline, 2 usage, 3 no run could be read there, a file could "
		  "not\n"
		  "be written, or the baseline is of another environment (the differences are printed).",
};

static bool is_label(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return false;
	return n > 0 && n <= LABEL_MAX;
}

static bool is_taken(const struct report_options *o, const char *label)
{
	for (size_t i = 0; i + 1 < o->n_baselines; i++)
		if (o->baselines[i].label && strcmp(o->baselines[i].label, label) == 0)
			return true;
	return false;
}

/* Parses "LABEL=DIR" or "DIR" in place. A '=' after a '/' is part of DIR. */
static bool take_baseline(char *text, struct report_options *o, char *err, size_t err_size)
{
	char *equals = strchr(text, '=');
	struct report_baseline *b = &o->baselines[o->n_baselines];

	if (o->n_baselines == REPORT_BASELINES_MAX) {
		snprintf(err, err_size, "--baseline: at most %d are allowed", REPORT_BASELINES_MAX);
		return false;
	}
	o->n_baselines++;
	b->dir = text;
	if (equals && !memchr(text, '/', (size_t)(equals - text))) {
		if (!is_label(text, (size_t)(equals - text))) {
			snprintf(err, err_size,
				 "--baseline: '%.*s' is not a label; allowed: up to %d letters, digits, '.', '_', '-'",
				 (int)(equals - text) > 64 ? 64 : (int)(equals - text), text, LABEL_MAX);
			return false;
		}
		*equals = '\0';
		b->label = text;
		b->dir = equals + 1;
	}
	if (!*b->dir || (b->label && is_taken(o, b->label))) {
		snprintf(err, err_size,
			 !*b->dir ? "--baseline: a folder is missing" : "--baseline: the label %s is given twice",
			 b->label);
		return false;
	}
	return true;
}

static bool split_baselines(char *text, struct report_options *o, char *err, size_t err_size)
{
	for (char *next; text; text = next) {
		next = strchr(text, ',');
		if (next)
			*next++ = '\0';
		if (!take_baseline(text, o, err, err_size))
			return false;
	}
	return true;
}

/* Refuses options that suites do not support: ignoring them would look as if they had found nothing. */
static int make_suite(const struct arguments *a, const struct report_options *o, char *err, size_t err_size)
{
	if (a->baseline || a->plan.n) {
		snprintf(err, err_size, "%s does not work with suites or comparisons; name one of their runs' folders",
			 a->baseline ? "--baseline" : "--plan");
		return EXIT_STATUS_USAGE;
	}
	return suite_report_make(o, err, err_size) ? (int)REPORT_FAILED : (int)REPORT_MADE;
}

static int make_report(const struct arguments *a, const char *dir)
{
	char *baselines = a->baseline ? strdup(a->baseline) : NULL, err[1024] = "";
	double plan[OPT_LIST_MAX];
	struct report_options o = {
		.dir = dir,
		.output = a->output,
		.any_environment = a->any_environment,
		.min_effect = (double)a->min_effect / 100,
		.headroom = (double)a->headroom / 100,
		.growth = (double)a->growth / 100,
		.plan = plan,
		.n_plan = a->plan.n,
		.out = stdout,
		.format = (enum report_format)a->format,
	};
	int status = EXIT_STATUS_USAGE;

	for (size_t i = 0; i < a->plan.n; i++)
		plan[i] = (double)a->plan.v[i];
	stats_sort(plan, a->plan.n);
	if (suite_report_is_for(dir))
		status = make_suite(a, &o, err, sizeof(err));
	else if (!a->baseline || (baselines && split_baselines(baselines, &o, err, sizeof(err))))
		status = (int)report_make(&o, stderr, err, sizeof(err));
	if (status >= EXIT_STATUS_USAGE)
		utf8_print_line(stderr, "performance_test report: %s", err);
	free(baselines);
	return status == (int)REPORT_UNWRITTEN ? (int)REPORT_FAILED : status;
}

int report_command(int argc, char **argv)
{
	struct arguments a = { .output = NULL };
	char err[512];
	int first;

	opts_defaults(&report_command_options, &a);
	opts_operands_last(&report_command_options, argc, argv);
	switch (opts_parse(&report_command_options, argc, argv, &a, &first, err, sizeof(err))) {
	case OPTS_HELP:
		opts_print_help(&report_command_options, first < argc ? argv[first] : NULL, stdout);
		return 0;
	case OPTS_VERSION:
		utf8_print_line(stdout, "performance_test %s", build_info_text());
		return 0;
	case OPTS_ERROR:
		opts_print_error(&report_command_options, err, stderr);
		return EXIT_STATUS_USAGE;
	case OPTS_OK:
		break;
	}
	if (argc - first == 1)
		return make_report(&a, argv[first]);
	utf8_print_line(stderr, "performance_test report: %s (see --help)",
			first < argc ? "name one run only; those to compare it with are given with --baseline"
				     : "name the folder of a run, such as results/20260101T120000Z-clients-100");
	return EXIT_STATUS_USAGE;
}
