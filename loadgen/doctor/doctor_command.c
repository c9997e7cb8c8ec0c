/* SPDX-License-Identifier: BSD-2-Clause */
/* See doctor_command.h. */
#include "loadgen/doctor/doctor_command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/build_info.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/opts.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "loadgen/doctor/checks.h"
#include "loadgen/doctor/server.h"
#include "loadgen/report/cases/junit.h"
#include "loadgen/report/cases/step_summary.h"

#define EXIT_STATUS_USAGE 2
#define EXIT_STATUS_UNCHECKED 3

struct arguments {
	bool json;
	const char *junit;
	struct server_way way;
};

#define AT(field) offsetof(struct arguments, field)

static const struct opt options[] = {
	{ .name = "ca", .type = OPT_STRING, .offset = AT(way.ca), .metavar = "FILE", .def_words = "build/certs/ca.pem",
	  .needs = "server", .help = "CA certificate (PEM) that the server's certificate must be signed with." },
	{ .name = "cert", .type = OPT_STRING, .offset = AT(way.cert), .metavar = "FILE", .needs = "server,key",
	  .help = "Certificate (PEM) to show to a server that asks for one." },
	{ .name = "device", .type = OPT_STRING, .offset = AT(way.device), .metavar = "NAME",
	  .def_words = "the one that reaches the server", .needs = "server", .help = "RDMA device." },
	{ .name = "json", .type = OPT_FLAG, .offset = AT(json), .help = "Print the findings as JSON." },
	{ .name = "junit", .type = OPT_STRING, .offset = AT(junit), .metavar = "FILE",
	  .help = "Write the findings to FILE as test cases in JUnit's XML, which CI systems read." },
	{ .name = "key", .type = OPT_STRING, .offset = AT(way.key), .metavar = "FILE", .needs = "cert",
	  .help = "Private key (PEM) of --cert." },
	{ .name = "ping", .type = OPT_DURATION, .offset = AT(way.ping_ns), .min = NS_PER_MS, .max = 3600 * NS_PER_S,
	  .metavar = "SECONDS", .def = "3", .needs = "server",
	  .help = "How long to ping the server over each transport." },
	{ .name = "server", .type = OPT_STRING, .offset = AT(way.host), .metavar = "HOST",
	  .help = "Check the way to this rampart server, too." },
	{ .name = "server-name", .type = OPT_STRING, .offset = AT(way.name), .metavar = "NAME", .def_words = "HOST",
	  .needs = "server", .help = "Name or address that the server's certificate must have." },
	{ .name = "tls-port", .type = OPT_UINT, .offset = AT(way.port), .min = 1, .max = 65535, .metavar = "PORT",
	  .def = "7471", .help = "TCP port of --server, or of the server on this machine." },
};

static const struct opts_spec spec = {
	.program = "performance_test doctor",
	.usage = "[options]",
	.summary = "Checks whether this machine is ready for RDMA, and with --server the way to a server. For each "
		   "thing\n"
		   "that is wrong it says why it matters and which command mends it.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 nothing is wrong, 1 something is, 2 usage, 3 something could not be checked.",
};

static int usage(const char *text)
{
	opts_print_error(&spec, text, stderr);
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

static void add_case(struct cases *c, const struct finding *f)
{
	static const enum case_result results[] = { [FINDING_FINE] = CASE_PASSED, [FINDING_WRONG] = CASE_FAILED,
						    [FINDING_UNKNOWN] = CASE_SKIPPED, [FINDING_NOTE] = CASE_PASSED };
	bool why = f->why && f->status != FINDING_FINE;
	char detail[2 * FINDING_TEXT] = "";

	snprintf(detail, sizeof(detail), "%s%s%s%s%s", why ? "why: " : "", why ? f->why : "",
		 why && f->mend[0] ? "\n" : "", f->mend[0] ? "mend: " : "", f->mend);
	cases_add(c, &(struct test_case){ .group = "machine", .name = f->check, .result = results[f->status],
					  .measured = f->what, .detail = detail[0] ? detail : NULL });
}

/* Tells the CI system. Returns 0 or -errno after logging it. */
static int write_cases(const struct findings *f, const char *junit)
{
	char now[40];
	time_t seconds = time(NULL);
	struct tm tm;
	struct cases *c;
	int ret = cases_new("doctor", &c);

	if (ret) {
		log_error("this machine is out of memory: no test cases for a CI system");
		return junit ? ret : 0;
	}
	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
	cases_suite(c, "doctor", now);
	for (size_t i = 0; i < f->n; i++)
		add_case(c, &f->v[i]);
	if (f->lost)
		cases_add(c, &(struct test_case){ .group = "machine", .name = "findings", .result = CASE_SKIPPED,
						  .measured = "there are more findings, which are not shown" });
	/* The checks have ended. Their warnings were findings; from here on a warning is for the user. */
	log_init(spec.program, LOG_LVL_WARN);
	ret = junit_write(c, junit);
	step_summary_append(c, NULL);
	cases_free(c);
	return ret;
}

static int look(const struct arguments *a)
{
	static struct findings f;	/* too large for the stack */
	int ret = a->junit ? path_may_write(a->junit) : 0;

	if (ret) {
		log_error("--junit %s: %s; name a file in a folder that exists and may be written", a->junit,
			  path_error(ret));
		return EXIT_STATUS_UNCHECKED;
	}
	modules_check("", &f);
	devices_check("", &f);
	lossless_check("", &f);
	firewall_check("", (unsigned)a->way.port, &f);
	memory_check("", &f);
	machine_check("", &f);
	process_check("", &f);
	if (a->way.host)
		server_check(&a->way, &f);
	errno = 0;
	if (a->json)
		ret = print_json(&f);
	else
		findings_print(&f, stdout);
	if (ret || fflush(stdout) || ferror(stdout)) {
		utf8_print_line(stderr, "%s: cannot write to stdout: %s", spec.program,
				errno ? strerror(errno) : "out of memory, or some of the output was lost");
		return EXIT_STATUS_UNCHECKED;
	}
	return write_cases(&f, a->junit) ? EXIT_STATUS_UNCHECKED : findings_status(&f);
}

int doctor_command(int argc, char **argv)
{
	struct arguments a = { .json = false };
	char err[512], ca[PATH_MAX];
	int first;

	opts_defaults(&spec, &a);
	switch (opts_parse(&spec, argc, argv, &a, &first, err, sizeof(err))) {
	case OPTS_HELP:
		opts_print_help(&spec, first < argc ? argv[first] : NULL, stdout);
		return 0;
	case OPTS_VERSION:
		utf8_print_line(stdout, "performance_test %s", build_info_text());
		return 0;
	case OPTS_ERROR:
		return usage(err);
	case OPTS_OK:
		break;
	}
	if (first < argc)
		return usage("no operands are taken (see --help)");
	if (!a.way.ca) {
		if (path_of_certificate("ca.pem", ca, sizeof(ca)))
			return usage("--ca: the default path is too long");
		a.way.ca = ca;
	}
	log_init("performance_test doctor", LOG_LVL_ERROR);
	signal(SIGPIPE, SIG_IGN);
	return look(&a);
}
