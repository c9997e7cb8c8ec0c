/* performance_test's option table. No I/O. */
#include "loadgen/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/frame.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/pump.h"

#define CLIENTS_MAX 100000

static const char *const environment_names[] = { "auto", "native", "vm", NULL };
static const uint64_t default_steps[] = { 10, 100, 500, 1000, 5000, 10000 };

#define AT(field) offsetof(struct loadgen_config, field)

const char *const workload_names[] = { "echo", "connect", "idle", NULL };

static const struct opt options[] = {
	{ .name = "active", .type = OPT_UINT, .offset = AT(active), .min = 1, .max = CLIENTS_MAX,
	  .metavar = "K", .def = "all of them", .help = "Clients that send; the others of a step are connected and silent." },
	{ .name = "ca", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE",
	  .def = "build/certs/ca.pem", .help = "CA certificate the server's must be signed by." },
	{ .name = "cert", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE",
	  .help = "Certificate to show to a server that asks for one." },
	{ .name = "churn", .type = OPT_UINT, .offset = AT(churn_per_s), .min = 0, .max = 1000000,
	  .metavar = "RATE", .def = "0",
	  .help = "Clients that leave per second, and come back at once, while the workload runs." },
	{ .name = "clients", .type = OPT_UINT, .offset = AT(clients), .min = 1, .max = CLIENTS_MAX,
	  .metavar = "N", .def = "100", .help = "Last step of the ramp 10, 100, 500, 1000, 5000, 10000." },
	{ .name = "connect-concurrency", .type = OPT_UINT, .offset = AT(connect_concurrency), .min = 1,
	  .max = CLIENTS_MAX, .metavar = "N", .def = "32",
	  .help = "Connections being made at once, at most: fewer while there are timeouts or `busy` answers." },
	{ .name = "connect-rate", .type = OPT_UINT, .offset = AT(connect_rate), .min = 0, .max = 1000000,
	  .metavar = "N", .def = "0",
	  .help = "Connections to start per second; 0: as many as --connect-concurrency allows." },
	{ .name = "connect-retries", .type = OPT_UINT, .offset = AT(connect_retries), .min = 0, .max = 1000,
	  .metavar = "N", .def = "8",
	  .help = "Further attempts of a client that timed out, was told `busy` or was hung up on." },
	{ .name = "cycles", .type = OPT_UINT, .offset = AT(cycles), .min = 1, .max = 1000000000,
	  .metavar = "N", .help = "With --churn: measure until clients came back N times, instead of --duration." },
	{ .name = "device", .type = OPT_STRING, .offset = AT(device), .metavar = "NAME",
	  .def = "the one that reaches the server", .help = "RDMA device." },
	{ .name = "duration", .type = OPT_DURATION, .offset = AT(duration_ns), .min = 100 * NS_PER_MS,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "5", .help = "Measured time of each step." },
	{ .name = "environment", .type = OPT_CHOICE, .offset = AT(environment),
	  .choices = environment_names, .metavar = "WHERE", .def = "auto",
	  .help = "Run on this machine's RDMA device or in a Soft-RoCE micro-VM; auto takes the VM when "
		  "there is no device and neither --server nor --device is given." },
	{ .name = "inflight", .type = OPT_UINT, .offset = AT(inflight), .min = 1, .max = 128,
	  .metavar = "N", .def = "1", .help = "Messages each client keeps in flight." },
	{ .name = "json", .type = OPT_STRING, .offset = AT(json), .metavar = "FILE|-",
	  .help = "Write run.json here too; - is stdout, instead of the table." },
	{ .name = "key", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE",
	  .help = "Private key of --cert." },
	{ .name = "log-level", .type = OPT_CHOICE, .offset = AT(log_level), .choices = log_level_names,
	  .metavar = "LEVEL", .def = "warn", .help = "What to log to stderr." },
	{ .name = "message-size", .type = OPT_SIZE, .offset = AT(message_bytes),
	  .min = FRAME_MESSAGE_BYTES_MIN, .max = FRAME_MESSAGE_BYTES_MAX, .metavar = "BYTES",
	  .def = "64", .help = "Size of a message, 16-byte header included." },
	{ .name = "name", .type = OPT_STRING, .offset = AT(name), .metavar = "NAME",
	  .def = "clients-N", .help = "Last part of the results folder's name." },
	{ .name = "output", .type = OPT_STRING, .offset = AT(output), .metavar = "DIR", .def = "results",
	  .help = "Where the results folder is made." },
	{ .name = "phased", .type = OPT_FLAG, .offset = AT(phased),
	  .help = "All clients finish a stage of connecting before any enters the next." },
	{ .name = "poll", .type = OPT_CHOICE, .offset = AT(poll), .choices = poll_mode_names,
	  .metavar = "MODE", .def = "event",
	  .help = "How completions are waited for, here and by a server of our own." },
	{ .name = "quiet", .type = OPT_FLAG, .offset = AT(quiet), .help = "No progress on stderr." },
	{ .name = "repeat", .type = OPT_UINT, .offset = AT(repeat), .min = 1, .max = 100,
	  .metavar = "N", .def = "1", .help = "Run every step this often; medians and ranges are shown too." },
	{ .name = "seed", .type = OPT_UINT, .offset = AT(seed), .min = 0, .max = UINT32_MAX,
	  .metavar = "N", .def = "1", .help = "Of the message payload; PSNs and keys are never seeded." },
	{ .name = "server", .type = OPT_STRING, .offset = AT(server), .metavar = "HOST",
	  .def = "one of our own", .help = "Server to load." },
	{ .name = "server-name", .type = OPT_STRING, .offset = AT(server_name), .metavar = "NAME",
	  .def = "HOST", .help = "Name or address the server's certificate must be for." },
	{ .name = "server-threads", .type = OPT_UINT, .offset = AT(server_threads), .min = 1, .max = 256,
	  .metavar = "N", .def = "online CPUs", .help = "--threads of a server of our own." },
	{ .name = "step-timeout", .type = OPT_DURATION, .offset = AT(step_timeout_ns), .min = NS_PER_S,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "60 s and 40 ms per client",
	  .help = "Longest time to connect the clients of a step." },
	{ .name = "steps", .type = OPT_LIST, .offset = AT(steps), .min = 1, .max = CLIENTS_MAX,
	  .metavar = "N,N,...", .help = "Other steps than the ramp of --clients." },
	{ .name = "threads", .type = OPT_UINT, .offset = AT(threads), .min = 1, .max = 256,
	  .metavar = "N", .def = "online CPUs, at most 8", .help = "Worker threads of the generator." },
	{ .name = "timeout", .type = OPT_DURATION, .offset = AT(timeout_ns), .min = 10 * NS_PER_MS,
	  .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time for each stage of connecting." },
	{ .name = "tls-port", .type = OPT_UINT, .offset = AT(tls_port), .min = 1, .max = 65535,
	  .metavar = "PORT", .def = "7471", .help = "TCP port of --server." },
	{ .name = "tls-resume", .type = OPT_FLAG, .offset = AT(tls_resume),
	  .help = "Clients that come again resume their TLS session." },
	{ .name = "verify", .type = OPT_FLAG, .offset = AT(verify),
	  .help = "Check every payload byte, and every PSN against what the device holds." },
	{ .name = "warmup", .type = OPT_DURATION, .offset = AT(warmup_ns), .min = 0,
	  .max = 3600 * NS_PER_S, .metavar = "SECONDS", .def = "1",
	  .help = "Traffic before the measured time, discarded." },
	{ .name = "workload", .type = OPT_CHOICE, .offset = AT(workload), .choices = workload_names,
	  .metavar = "NAME", .def = "echo",
	  .help = "What connected clients do: echo messages, nothing at all, or nothing after the first reply." },
};

const struct opts_spec loadgen_options = {
	.program = "performance_test",
	.usage = "[options]",
	.summary = "Ramps a number of RDMA clients against a rampart server, holding all clients of a step\n"
		   "connected at once, and measures connection times by stage, throughput, latency and\n"
		   "resources. Without --server it starts a server of its own.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 all criteria met, 1 a criterion failed, 2 usage, 3 the environment cannot\n"
		  "run it (the message says what to do), 4 inconclusive, 130 interrupted (results kept).",
};

void loadgen_config_defaults(struct loadgen_config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	memset(c, 0, sizeof(*c));
	c->clients = 100;
	c->tls_port = 7471;
	c->duration_ns = 5 * NS_PER_S;
	c->warmup_ns = NS_PER_S;
	c->message_bytes = 64;
	c->inflight = 1;
	c->connect_concurrency = 32;
	c->connect_retries = 8;
	c->threads = cpus < 1 ? 1 : cpus > 8 ? 8 : (uint64_t)cpus;
	c->repeat = 1;
	c->seed = 1;
	c->timeout_ns = 30 * NS_PER_S;
	c->output = "results";
	c->log_level = LOG_LVL_WARN;
	c->spin_ns = 50 * NS_PER_US;
}

static void make_steps(struct loadgen_config *c)
{
	size_t n = sizeof(default_steps) / sizeof(default_steps[0]);

	for (size_t i = 0; i < n && default_steps[i] < c->clients; i++)
		c->steps.v[c->steps.n++] = default_steps[i];
	c->steps.v[c->steps.n++] = c->clients;
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

	if (opts_given(s, argc, argv, "clients") && opts_given(s, argc, argv, "steps"))
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
	else if (c->active && c->workload != WORKLOAD_ECHO)
		text = "--active: goes with --workload echo; the clients of the others send nothing";
	else if (c->environment == ENVIRONMENT_VM && (c->server || c->device))
		text = "--environment vm: does not go with --server or --device; the micro-VM has a device "
		       "of its own and no way out";
	if (!text)
		return 0;
	snprintf(err, n, "%s", text);
	return -EINVAL;
}

int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
{
	int ret = contradiction(c, argc, argv, err, err_size);

	if (!ret && c->name)
		ret = check_name(c->name, err, err_size);
	if (ret)
		return ret;
	if (c->steps.n == 0)
		make_steps(c);
	c->clients = 0;
	for (size_t i = 0; i < c->steps.n; i++)
		if (c->steps.v[i] > c->clients)
			c->clients = c->steps.v[i];
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
