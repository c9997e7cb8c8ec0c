/* SPDX-License-Identifier: BSD-2-Clause */
/* rogue: a client that misbehaves on purpose, in one way after another. For each mode it prints a line with the
 * server's answer: "replay: rejected: bad_session", "hello-psn: refused: bad_request: HELLO psn: must be below 2^24",
 * "region-left: wc: remote_access". It uses only common/, so that no check of the real client stops it.
 *
 * The tables of modes are in rogue_boot.c (TLS and frames), rogue_link.c (RDMA connection and messages), rogue_region.c
 * (one-sided memory), rogue_push.c (pushes), rogue_life.c (tickets, dying, asking for room), rogue_tls.c (TLS records),
 * rogue_flood.c (floods), rogue_stale.c (holding queue pair numbers), rogue_credits.c (exceeding credits),
 * rogue_crowd.c (taking everything there is), rogue_packets.c (forged packets) and rogue_socket.c (records over TCP and
 * TLS: --transport, which needs no device). */
#include "tests/adversary/rogue.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/opts.h"
#include "common/host/res.h"
#include "common/tls/tls.h"
#include "tests/adversary/wire.h"

enum { EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

struct settings {
	const char *ca, *cert, *key, *source;
	uint64_t timeout_ns;
	int log_level, transport, connect;
	bool check;
};

#define AT(field) offsetof(struct settings, field)

static const struct opt options[] = {
	{ .name = "ca", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE",
	  .def = "build/certs/ca.pem", .help = "CA certificate the server's must be signed by." },
	{ .name = "cert", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE",
	  .help = "Client certificate." },
	{ .name = "check", .type = OPT_FLAG, .offset = AT(check),
	  .help = "After each mode, connect as one should and get an echo." },
	{ .name = "connect", .type = OPT_CHOICE, .offset = AT(connect), .choices = connect_way_names,
	  .metavar = "WAY", .def = "cm", .help = "How RDMA connections are made." },
	{ .name = "key", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE",
	  .help = "Private key of --cert." },
	{ .name = "log-level", .type = OPT_CHOICE, .offset = AT(log_level), .choices = log_level_names,
	  .metavar = "LEVEL", .def = "error", .help = "What to log to stderr." },
	{ .name = "source", .type = OPT_STRING, .offset = AT(source), .metavar = "ADDR",
	  .def = "the device's", .help = "Address that TLS connections come from." },
	{ .name = "timeout", .type = OPT_DURATION, .offset = AT(timeout_ns), .min = 10 * NS_PER_MS,
	  .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "10", .help = "Longest time for every wait." },
	{ .name = "transport", .type = OPT_CHOICE, .offset = AT(transport), .choices = transport_names,
	  .metavar = "NAME", .def = "rdma",
	  .help = "What HELLOs ask for; without rdma no device is opened, and its modes are not for it." },
};

static const struct opts_spec spec = {
	.program = "rogue",
	.usage = "[options] HOST PORT MODE[=ARGUMENT]... | modes",
	.summary = "Misbehaves towards a rampart server and prints its answer. `rogue modes` lists the modes.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 got an answer every time, 1 not so, 2 usage, 3 no device or certificate.",
};

static const struct mode *const tables[] = { boot_modes, link_modes, region_modes, push_modes, life_modes,
					    tls_modes, flood_modes, stale_modes, credit_modes, crowd_modes,
					    packet_modes, socket_modes };
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static const char *running = "";	/* the mode that is running */

static void print_line(const char *how, const char *fmt, va_list ap)
{
	printf("%s: %s", running, how);
	vprintf(fmt, ap);
	printf("\n");
	fflush(stdout);
}

int answer(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line("", fmt, ap);
	va_end(ap);
	return ROGUE_ANSWERED;
}

int no_answer(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line("no answer: ", fmt, ap);
	va_end(ap);
	return ROGUE_NO_ANSWER;
}

static const struct mode *find_mode(const char *name)
{
	for (size_t t = 0; t < TABLES; t++)
		for (const struct mode *m = tables[t]; m->name; m++)
			if (strcmp(m->name, name) == 0)
				return m;
	return NULL;
}

static int list_modes(void)
{
	for (size_t t = 0; t < TABLES; t++)
		for (const struct mode *m = tables[t]; m->name; m++)
			printf("%s\n", m->name);
	return 0;
}

static int prepare(struct rogue *r, const struct settings *set)
{
	struct tls_config tls = { .ca_file = set->ca, .cert_file = set->cert, .key_file = set->key,
				  .resume = true };
	struct addr local;
	char err[512];

	if (tls_ctx_new(&tls, &r->tls_ctx, err, sizeof(err))) {
		fprintf(stderr, "rogue: %s\n", err);
		return EXIT_ENVIRONMENT;
	}
	if (dev_source_addr(&r->server, &local)) {
		fprintf(stderr, "rogue: no route to %s\n", r->host);
		return EXIT_ENVIRONMENT;
	}
	r->dev.addr = local;
	r->transport = (enum transport)set->transport;
	r->oob = set->connect == CONNECT_OOB;
	wire_use(r->transport);
	if (r->transport == TRANSPORT_RDMA && dev_open(&local, NULL, true, &r->dev, err, sizeof(err))) {
		fprintf(stderr, "rogue: %s\n", err);
		return EXIT_ENVIRONMENT;
	}
	return 0;
}

/* Runs one MODE[=ARGUMENT]; modifies the text. */
static int run_one(struct rogue *r, char *text)
{
	static char whole[256];
	char *name;
	const struct mode *m;

	snprintf(whole, sizeof(whole), "%s", text);
	name = strsep(&text, "=");
	m = find_mode(name);
	if (!m) {
		fprintf(stderr, "rogue: '%s' is not a mode (see `rogue modes`)\n", name);
		return EXIT_USAGE;
	}
	running = whole;
	r->arg = text;
	return m->run(r, m);
}

static int run_all(struct rogue *r, bool check, int n, char **modes)
{
	int status = 0;

	for (int i = 0; i < n && status != EXIT_USAGE; i++) {
		int one = run_one(r, modes[i]);

		if (one)
			status = one;
		if (check && !(r->transport == TRANSPORT_RDMA ? link_check : socket_check)(r))
			status = ROGUE_NO_ANSWER;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct settings set = { .ca = "build/certs/ca.pem", .timeout_ns = 10 * NS_PER_S,
				.log_level = LOG_LVL_ERROR };
	struct rogue r = { 0 };
	char err[512];
	int first, status;

	if (opts_parse(&spec, argc, argv, &set, &first, err, sizeof(err)) != OPTS_OK) {
		opts_print_help(&spec, NULL, stderr);
		return EXIT_USAGE;
	}
	if (argc - first == 1 && strcmp(argv[first], "modes") == 0)
		return list_modes();
	if (argc - first < 3 || addr_parse(argv[first], (uint16_t)atoi(argv[first + 1]), &r.server)) {
		fprintf(stderr, "rogue: HOST (an IP address), PORT and at least one MODE are needed\n");
		return EXIT_USAGE;
	}
	if (set.source && addr_parse(set.source, 0, &r.source)) {
		fprintf(stderr, "rogue: --source: '%s' is not an IP address\n", set.source);
		return EXIT_USAGE;
	}
	r.host = argv[first];
	r.timeout_ns = set.timeout_ns;
	log_init("rogue", (enum log_level)set.log_level);
	signal(SIGPIPE, SIG_IGN);
	res_raise_memlock();
	res_raise_nofile();
	status = prepare(&r, &set);
	if (!status)
		status = run_all(&r, set.check, argc - first - 2, argv + first + 2);
	if (r.dev.ctx)
		dev_close(&r.dev);
	tls_ctx_free(r.tls_ctx);
	return status;
}
