/* performance_test's option table. No I/O. */
#include "loadgen/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/msg.h"
#include "common/base/paths.h"
#include "common/rdma/ep.h"
#include "common/rdma/pump.h"

#define CLIENTS_MAX 100000

static const char *const environment_names[] = { "auto", "native", "vm", NULL };
static const char *const switch_names[] = { "off", "on", NULL };
static const uint64_t default_steps[] = { 10, 100, 500, 1000, 5000, 10000 };

const char *const loadgen_arrival_names[] = { "even", "poisson", NULL };
const char *const loadgen_operation_names[] = { "write", "send", "read", NULL };
#define X(name) #name,
const char *const loadgen_workload_names[] = { LOADGEN_WORKLOADS(X) NULL };
#undef X

#define AT(field) offsetof(struct loadgen_config, field)
#define TUNING_AT(field) offsetof(struct loadgen_config, tuning.field)

static const struct opt options[] = {
	TUNING_OPT_ACK_TIMEOUT(TUNING_AT),
	{ .name = "active", .type = OPT_UINT, .offset = AT(active), .min = 1, .max = CLIENTS_MAX,
	  .metavar = "K", .def = "all of them", .help = "Clients that send; the others of a step are connected and silent." },
	{ .name = "arrival", .type = OPT_CHOICE, .offset = AT(arrival), .choices = loadgen_arrival_names, .metavar = "SPACING",
	  .def = "even", .help = "With --rate or --rate-per-client: how each client's operations are spaced." },
	{ .name = "ca", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE",
	  .def = "build/certs/ca.pem", .help = "CA certificate that the server's certificate must be signed with." },
	{ .name = "cert", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE",
	  .help = "Certificate to show to a server that asks for one." },
	{ .name = "chunk", .type = OPT_SIZE, .offset = AT(chunk_bytes), .min = 4096, .max = 8 << 20,
	  .metavar = "BYTES", .def = "1M; 64k with --operation send",
	  .help = "Largest piece of a transfer of --workload large." },
	{ .name = "churn", .type = OPT_UINT, .offset = AT(churn_per_s), .min = 0, .max = 1000000,
	  .metavar = "RATE", .def = "0",
	  .help = "Clients that leave per second, and come back at once, while the workload runs." },
	{ .name = "clients", .type = OPT_UINT, .offset = AT(clients), .min = 1, .max = CLIENTS_MAX,
	  .metavar = "N", .def = "100; 10000 with --find-capacity",
	  .help = "Last step of the ramp 10, 100, 500, 1000, 5000, 10000." },
	{ .name = "coalesce", .type = OPT_UINT, .offset = AT(coalesce), .min = 1, .max = MSG_JOINED_MAX,
	  .metavar = "N", .def = "1",
	  .help = "Most messages of --workload small that are due at the same moment and share one SEND." },
	{ .name = "compare", .type = OPT_STRING, .offset = AT(compare), .metavar = "KEY=A,B,...",
	  .help = "Run with --KEY A, with --KEY B and so on, in turn, --repeat times (5), and compare each with the first." },
	{ .name = "connect-concurrency", .type = OPT_UINT, .offset = AT(connect_concurrency), .min = 1,
	  .max = CLIENTS_MAX, .metavar = "N", .def = "32",
	  .help = "Most connections being made at once; fewer while there are timeouts or `busy` answers." },
	{ .name = "connect-rate", .type = OPT_UINT, .offset = AT(connect_rate), .min = 0, .max = 1000000,
	  .metavar = "N", .def = "0",
	  .help = "Connections to start per second; 0: as many as --connect-concurrency allows." },
	{ .name = "connect-retries", .type = OPT_UINT, .offset = AT(connect_retries), .min = 0, .max = 1000,
	  .metavar = "N", .def = "8",
	  .help = "Further attempts of a client that timed out, was refused as `busy`, or whose connection the server closed." },
	TUNING_OPT_CPU_LIST(TUNING_AT),
	TUNING_OPT_CQ_DEPTH(TUNING_AT),
	{ .name = "crl", .type = OPT_STRING, .offset = AT(crl), .metavar = "FILE",
	  .help = "Revocation lists of all CAs of the server's certificate." },
	{ .name = "cycles", .type = OPT_UINT, .offset = AT(cycles), .min = 1, .max = 1000000000,
	  .metavar = "N", .help = "With --churn: measure until clients came back N times, instead of --duration." },
	{ .name = "device", .type = OPT_STRING, .offset = AT(device), .metavar = "NAME,...",
	  .def = "the one that reaches the server", .help = "RDMA device. With several, clients of --workload large and duplex "
	  "have a connection on each, and stripe over them." },
	{ .name = "duration", .type = OPT_DURATION, .offset = AT(duration_ns), .min = 100 * NS_PER_MS,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "5", .help = "Measured time of each step." },
	{ .name = "environment", .type = OPT_CHOICE, .offset = AT(environment),
	  .choices = environment_names, .metavar = "WHERE", .def = "auto",
	  .help = "Run on this machine's RDMA device or in a Soft-RoCE micro-VM; auto takes the VM when "
		  "there is no device and neither --server nor --device is given." },
	{ .name = "find-capacity", .type = OPT_FLAG, .offset = AT(find_capacity),
	  .help = "Find the most clients that meet --slo, the knee, and what breaks first, with up to --clients." },
	{ .name = "inflight", .type = OPT_UINT, .offset = AT(inflight), .min = 1, .max = 128,
	  .metavar = "N", .def = "by workload", .help = "Messages or other operations each client keeps in flight." },
	TUNING_OPT_INLINE(TUNING_AT),
	{ .name = "json", .type = OPT_STRING, .offset = AT(json), .metavar = "FILE|-",
	  .help = "Write run.json here too; - is stdout, instead of the table." },
	{ .name = "key", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE",
	  .help = "Private key of --cert." },
	{ .name = "log-level", .type = OPT_CHOICE, .offset = AT(log_level), .choices = log_level_names,
	  .metavar = "LEVEL", .def = "warn", .help = "What to log to stderr." },
	{ .name = "message-auth", .type = OPT_FLAG, .offset = AT(message_auth),
	  .help = "Put a tag of 16 bytes at the end of every message, with keys from TLS." },
	{ .name = "message-size", .type = OPT_SIZES, .offset = AT(sizes),
	  .min = 1, .max = UINT64_C(2) << 30, .metavar = "BYTES,...",
	  .def = "by workload", .help = "Size of a message, its 16-byte header included, or of another operation; "
	  "each step is run with each size." },
	{ .name = "mix", .type = OPT_STRING, .offset = AT(mix_text), .metavar = "W:R:A", .def = "1:1:0",
	  .help = "WRITEs, READs and atomics of --workload mixed, in this ratio." },
	{ .name = "name", .type = OPT_STRING, .offset = AT(name), .metavar = "NAME",
	  .def = "clients-N", .help = "Last part of the results folder's name." },
	{ .name = "operation", .type = OPT_CHOICE, .offset = AT(operation), .choices = loadgen_operation_names,
	  .metavar = "NAME", .def = "write", .help = "How --workload large moves its buffers." },
	{ .name = "output", .type = OPT_STRING, .offset = AT(output), .metavar = "DIR", .def = "results",
	  .help = "Where the results folder is made." },
	TUNING_OPT_PATH_MTU(TUNING_AT),
	{ .name = "phased", .type = OPT_FLAG, .offset = AT(phased),
	  .help = "All clients finish a stage of connecting before any enters the next." },
	{ .name = "poll", .type = OPT_CHOICE, .offset = AT(poll), .choices = poll_mode_names,
	  .metavar = "MODE", .def = "event",
	  .help = "How completions are waited for, here and by a server of our own." },
	TUNING_OPT_POST_LIST(TUNING_AT),
	{ .name = "quiet", .type = OPT_FLAG, .offset = AT(quiet), .help = "No progress on stderr." },
	{ .name = "rate", .type = OPT_UINT, .offset = AT(rate), .min = 1, .max = 1000000000, .metavar = "N",
	  .help = "Open loop: operations a second of all clients together, sent when they are due and timed from then." },
	{ .name = "rate-per-client", .type = OPT_UINT, .offset = AT(rate_per_client), .min = 1, .max = 1000000000,
	  .metavar = "N", .help = "As --rate, but of each client." },
	TUNING_OPT_REALTIME(TUNING_AT),
	{ .name = "reconnect", .type = OPT_DURATION, .offset = AT(reconnect_ns), .min = 0, .max = 86400 * NS_PER_S,
	  .metavar = "SECONDS", .def = "0",
	  .help = "Clients whose connection is lost connect again, and try so for this long; 0: they are dropped." },
	{ .name = "repeat", .type = OPT_UINT, .offset = AT(repeat), .min = 1, .max = 100,
	  .metavar = "N", .def = "1", .help = "Run every step this often; medians and ranges are shown too." },
	{ .name = "report", .type = OPT_CHOICE, .offset = AT(report), .choices = switch_names, .metavar = "on|off",
	  .def = "on", .help = "Make report.html, report.md, tables/ and charts/ in the results folder at the end." },
	TUNING_OPT_RETRY_COUNT(TUNING_AT),
	{ .name = "seed", .type = OPT_UINT, .offset = AT(seed), .min = 0, .max = UINT32_MAX,
	  .metavar = "N", .def = "1", .help = "Seed of the message payload; PSNs and keys are never seeded." },
	{ .name = "server", .type = OPT_STRING, .offset = AT(server), .metavar = "HOST,...",
	  .def = "one of our own", .help = "Server to load; with several devices, its address on each, in the order of --device." },
	{ .name = "server-name", .type = OPT_STRING, .offset = AT(server_name), .metavar = "NAME",
	  .def = "HOST", .help = "Name or address the server's certificate must be for." },
	{ .name = "server-threads", .type = OPT_UINT, .offset = AT(server_threads), .min = 1, .max = 256,
	  .metavar = "N", .def = "online CPUs", .help = "--threads of a server of our own." },
	TUNING_OPT_SIGNAL_EVERY(TUNING_AT),
	{ .name = "slo", .type = OPT_STRING, .offset = AT(slo_text), .metavar = "TERM,...",
	  .help = "What each step must meet, such as 'p99<500us,errors<0.1%,connect_p99<100ms' (docs/capacity.md)." },
	{ .name = "spin", .type = OPT_DURATION, .offset = AT(spin_ns), .min = NS_PER_US, .max = NS_PER_S,
	  .metavar = "TIME", .def = "50us",
	  .help = "With --poll adaptive: how long to spin after the last completion, here and at a server of our own." },
	TUNING_OPT_SRQ_DEPTH(TUNING_AT),
	{ .name = "step-timeout", .type = OPT_DURATION, .offset = AT(step_timeout_ns), .min = NS_PER_S,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "60 s and 40 ms per client",
	  .help = "Longest time to connect the clients of a step." },
	{ .name = "steps", .type = OPT_LIST, .offset = AT(steps), .min = 1, .max = CLIENTS_MAX,
	  .metavar = "N,N,...", .help = "Numbers of clients to run, instead of the ramp of --clients." },
	{ .name = "threads", .type = OPT_UINT, .offset = AT(threads), .min = 1, .max = 256,
	  .metavar = "N", .def = "online CPUs, at most 8", .help = "Worker threads of the generator." },
	{ .name = "timeout", .type = OPT_DURATION, .offset = AT(timeout_ns), .min = 10 * NS_PER_MS,
	  .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time for each stage of connecting." },
	{ .name = "tls-port", .type = OPT_UINT, .offset = AT(tls_port), .min = 1, .max = 65535,
	  .metavar = "PORT", .def = "7471", .help = "TCP port of --server." },
	{ .name = "tls-resume", .type = OPT_FLAG, .offset = AT(tls_resume),
	  .help = "Clients that come again resume their TLS session." },
	{ .name = "trace", .type = OPT_STRING, .offset = AT(trace), .metavar = "FILE",
	  .help = "Write the times of every measured operation there, comma-separated." },
	{ .name = "trace-max", .type = OPT_UINT, .offset = AT(trace_max), .min = 1, .max = 1000000000,
	  .metavar = "N", .def = "1000000", .help = "Most operations of a step that each worker keeps for --trace." },
	{ .name = "verify", .type = OPT_FLAG, .offset = AT(verify),
	  .help = "Check every payload byte, and every PSN against what the device holds." },
	{ .name = "warmup", .type = OPT_DURATION, .offset = AT(warmup_ns), .min = 0,
	  .max = 3600 * NS_PER_S, .metavar = "SECONDS", .def = "1",
	  .help = "Traffic before the measured time, discarded." },
	{ .name = "workload", .type = OPT_CHOICE, .offset = AT(workload), .choices = loadgen_workload_names,
	  .metavar = "NAME", .def = "echo",
	  .help = "What connected clients do (docs/workloads.md)." },
};

const struct opts_spec loadgen_options = {
	.program = "performance_test",
	.usage = "[options]",
	.summary = "Ramps a number of RDMA clients against a rampart server, holding all clients of a step\n"
		   "connected at once, and measures connection times by stage, throughput, latency and\n"
		   "resources. Without --server it starts a server of its own. `performance_test report DIR` says\n"
		   "what a run found (performance_test report --help).",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 all criteria met, 1 a criterion failed, 2 usage, 3 the environment cannot\n"
		  "run it or a file could not be written (the message says what to do), 4 inconclusive,\n"
		  "130 interrupted (results kept).",
};

void loadgen_config_defaults(struct loadgen_config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	memset(c, 0, sizeof(*c));
	c->clients = 100;
	c->tls_port = 7471;
	c->duration_ns = 5 * NS_PER_S;
	c->warmup_ns = NS_PER_S;
	c->coalesce = 1;
	c->mix_text = "1:1:0";
	c->connect_concurrency = 32;
	c->connect_retries = 8;
	c->threads = cpus < 1 ? 1 : cpus > 8 ? 8 : (uint64_t)cpus;
	c->repeat = 1;
	c->report = 1;
	c->trace_max = 1000000;
	c->seed = 1;
	c->timeout_ns = 30 * NS_PER_S;
	c->output = "results";
	c->log_level = LOG_LVL_WARN;
	c->spin_ns = 50 * NS_PER_US;
	tuning_defaults(&c->tuning);
}

/* A search begins with few clients and doubles them. */
#define SEARCH_CLIENTS 10000
#define SEARCH_START 10

static void make_steps(struct loadgen_config *c)
{
	size_t n = sizeof(default_steps) / sizeof(default_steps[0]);

	for (size_t i = 0; i < n && default_steps[i] < c->clients; i++)
		c->steps.v[c->steps.n++] = default_steps[i];
	c->steps.v[c->steps.n++] = c->clients;
}

/* The steps, and the most clients of all. */
static void choose_clients(struct loadgen_config *c, int argc, char **argv)
{
	if (c->find_capacity) {
		if (!opts_given(&loadgen_options, argc, argv, "clients"))
			c->clients = SEARCH_CLIENTS;
		c->steps.v[c->steps.n++] = MIN(c->clients, SEARCH_START);
		return;
	}
	if (c->steps.n == 0)
		make_steps(c);
	c->clients = 0;
	for (size_t i = 0; i < c->steps.n; i++)
		c->clients = MAX(c->clients, c->steps.v[i]);
}

static int check_slo(struct loadgen_config *c, char *err, size_t err_size)
{
	if (c->find_capacity && c->sizes.n > 1) {
		snprintf(err, err_size, "--find-capacity: goes with one --message-size");
		return -EINVAL;
	}
	return c->slo_text ? slo_parse(c->slo_text, &c->slo, err, err_size) : 0;
}

static int check_name(const char *name, char *err, size_t err_size)
{
	for (const char *p = name; *p; p++) {
		if (isalnum((unsigned char)*p) || strchr("._-", *p))
			continue;
		snprintf(err, err_size, "--name: '%s' is not allowed; allowed: letters, digits, '.', '_', '-'", name);
		return -EINVAL;
	}
	if (strlen(name) > 64) {
		snprintf(err, err_size, "--name: at most 64 characters are allowed");
		return -EINVAL;
	}
	return 0;
}

static int contradiction(const struct loadgen_config *c, int argc, char **argv, char *err, size_t n)
{
	const struct opts_spec *s = &loadgen_options;
	const char *text = NULL;

	if (c->find_capacity && opts_given(s, argc, argv, "steps"))
		text = "--find-capacity and --steps: give one of them; --clients is the most to try";
	else if (c->find_capacity && (c->repeat > 1 || c->compare || c->cycles || c->phased))
		text = "--find-capacity: does not go with --repeat, --compare, --cycles or --phased";
	else if (opts_given(s, argc, argv, "clients") && opts_given(s, argc, argv, "steps"))
		text = "--clients and --steps: give one of them";
	else if (!c->server && opts_given(s, argc, argv, "tls-port"))
		text = "--tls-port: goes with --server; a server of our own chooses its port";
	else if (!c->server && c->server_name)
		text = "--server-name: goes with --server";
	else if (c->server && c->server_threads)
		text = "--server-threads: does not go with --server, whose threads are its own";
	else if (!c->cert != !c->key)
		text = "--cert and --key: give both or neither";
	else if (c->cycles && !c->churn_per_s)
		text = "--cycles: goes with --churn";
	else if (opts_given(s, argc, argv, "trace-max") && !c->trace)
		text = "--trace-max: goes with --trace";
	else if (c->compare && (c->json || c->trace))
		text = "--compare: does not go with --json or --trace; each run's figures are in the results folder";
	else if (c->rate && c->rate_per_client)
		text = "--rate and --rate-per-client: give one of them";
	else if (opts_given(s, argc, argv, "arrival") && !loadgen_is_open_loop(c))
		text = "--arrival: goes with --rate or --rate-per-client";
	else if (c->n_rails > 1 && (c->phased || c->churn_per_s || c->reconnect_ns))
		text = "--device, --server: several do not go with --phased, --churn or --reconnect";
	else if (c->environment == ENVIRONMENT_VM && (c->server || c->device))
		text = "--environment vm: does not go with --server or --device; the micro-VM has a device "
		       "of its own and no way out";
	if (!text)
		return 0;
	snprintf(err, n, "%s", text);
	return -EINVAL;
}

/* An IPv6 address has two colons and more. */
static int check_hosts(const struct rail_names *hosts, char *err, size_t err_size)
{
	for (uint32_t i = 0; i < hosts->n; i++) {
		const char *colon = strchr(hosts->name[i], ':');

		if (!colon || strchr(colon + 1, ':'))
			continue;
		snprintf(err, err_size, "--server: '%.64s' is not allowed; allowed: names or addresses, the port goes with "
			 "--tls-port", hosts->name[i]);
		return -EINVAL;
	}
	return 0;
}

static int split_rails(struct loadgen_config *c, char *err, size_t err_size)
{
	int ret = 0;

	if (c->device)
		ret = rails_split("device", c->device, &c->devices, err, err_size);
	if (!ret && c->server)
		ret = rails_split("server", c->server, &c->servers, err, err_size);
	if (!ret)
		ret = check_hosts(&c->servers, err, err_size);
	if (!ret && c->devices.n && c->servers.n && c->devices.n != c->servers.n) {
		snprintf(err, err_size, "--server and --device: give as many of one as of the other (%u and %u were given)",
			 c->servers.n, c->devices.n);
		ret = -EINVAL;
	}
	c->n_rails = MAX(MAX(c->devices.n, c->servers.n), 1);
	return ret;
}

int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
{
	int ret;

	ret = split_rails(c, err, err_size);
	if (!ret)
		ret = contradiction(c, argc, argv, err, err_size);
	if (!ret && c->name)
		ret = check_name(c->name, err, err_size);
	if (!ret)
		ret = tuning_check(&c->tuning, err, err_size);
	if (!ret)
		ret = check_slo(c, err, err_size);
	if (ret)
		return ret;
	choose_clients(c, argc, argv);
	if (c->threads > c->clients)
		c->threads = c->clients;
	if (c->name)
		snprintf(c->name_text, sizeof(c->name_text), "%s", c->name);
	else
		snprintf(c->name_text, sizeof(c->name_text), "clients-%llu", (unsigned long long)c->clients);
	if (!c->ca)
		ret = path_beside_program("build/certs/ca.pem", c->ca_path, sizeof(c->ca_path));
	else if (snprintf(c->ca_path, sizeof(c->ca_path), "%s", c->ca) >= PATH_MAX)
		ret = -EINVAL;
	if (ret)
		snprintf(err, err_size, "--ca: the path is too long");
	return ret;
}
