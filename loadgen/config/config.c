/* SPDX-License-Identifier: BSD-2-Clause */
/* performance_test's option table. No I/O. */
#include "loadgen/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "common/base/paths.h"
#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/rdma/pump.h"
#include "loadgen/config/deal.h"

#define CLIENTS_MAX 1000000
#define CLIENTS_OF_HOST_MAX 100000
#define HOSTS_MAX 1024
#define RATE_MAX UINT64_C(1000000000)
#define RATE_STEPS 8u
#define RATE_START 1000u	/* a search begins with it */
#define WARMUP_ITERATIONS_DEFAULT UINT64_MAX	/* not given */

static const char *const environment_names[] = { "auto", "native", "vm", NULL };
static const char *const host_loss_names[] = { "stop", "continue", NULL };
static const char *const switch_names[] = { "off", "on", NULL };
/* In the order of enum transport. */
#define TRANSPORT_AUTO TRANSPORT_N
static const char *const transport_choices[] = { "rdma", "tcp", "tls", "auto", NULL };
static const uint64_t default_steps[] = { 10, 100, 500, 1000, 5000, 10000 };

const char *const loadgen_judge_names[] = { "auto", "all", NULL };
const char *const loadgen_arrival_names[] = { "even", "poisson", NULL };
const char *const loadgen_operation_names[] = { "write", "send", "read", "write-imm", NULL };
#define X(name) #name,
const char *const loadgen_workload_names[] = { LOADGEN_WORKLOADS(X) NULL };
#undef X

#define AT(field) offsetof(struct loadgen_config, field)
#define TUNING_AT(field) offsetof(struct loadgen_config, tuning.field)

static const struct opt options[] = {
	TUNING_OPT_ACK_TIMEOUT(TUNING_AT),
	{ .name = "active", .type = OPT_UINT, .offset = AT(active), .min = 1, .max = CLIENTS_MAX,
	  .metavar = "K", .def = "all of them", .help = "Clients that send; the others of a step are connected and silent." },
	{ .name = "allow-redirect", .type = OPT_FLAG, .offset = AT(allow_redirect),
	  .help = "Connect even if a server's GRANT names another host than its own." },
	{ .name = "allow-server", .type = OPT_STRING, .offset = AT(allow_server), .metavar = "HOST[:PORT],...",
	  .def = "any whose certificate the CA proves",
	  .help = "With --join or --cluster: servers that this host may load, as the leader names them." },
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
	{ .name = "cluster", .type = OPT_STRING, .offset = AT(cluster), .metavar = "etcd://HOST:PORT/RUN",
	  .help = "Run on --hosts hosts that meet at this etcd under the name RUN; the same command on each. The first to come "
	  "leads (docs/cluster.md)." },
	{ .name = "coalesce", .type = OPT_UINT, .offset = AT(coalesce), .min = 1, .max = MSG_JOINED_MAX,
	  .metavar = "N", .def = "1",
	  .help = "Most messages of --workload small that are due at the same moment and share one SEND." },
	{ .name = "compare", .type = OPT_TEXTS, .offset = AT(compare), .metavar = "KEY=A,B,...",
	  .help = "Run with --KEY A, with --KEY B and so on, in turn, --repeat times (5), and compare each with the first. Given "
	  "several times: with all combinations. In a value + stands for a comma." },
	{ .name = "compare-set", .type = OPT_TEXTS, .offset = AT(compare_sets), .metavar = "NAME:KEY=A,...",
	  .help = "As --compare, but with several options at once; given once for each set, the first of which is the "
	  "baseline." },
	{ .name = "connect-concurrency", .type = OPT_UINT, .offset = AT(connect_concurrency), .min = 1,
	  .max = CLIENTS_MAX, .metavar = "N", .def = "32",
	  .help = "Most connections being made at once; fewer while there are timeouts or `busy` answers." },
	{ .name = "connect-rate", .type = OPT_UINT, .offset = AT(connect_rate), .min = 0, .max = 1000000,
	  .metavar = "N", .def = "0",
	  .help = "Connections to start per second; 0: as many as --connect-concurrency allows." },
	{ .name = "connect-retries", .type = OPT_UINT, .offset = AT(connect_retries), .min = 0, .max = 1000,
	  .metavar = "N", .def = "8",
	  .help = "Further attempts of a client that timed out, was refused as `busy`, or whose connection the server closed." },
	{ .name = "cpu-floor", .type = OPT_UINT, .offset = AT(cpu_floor_percent), .min = 0, .max = 99,
	  .metavar = "PERCENT", .def = "0",
	  .help = "Stop when less than this share of either machine's CPUs was idle; 0: do not. (--floor is about time.)" },
	TUNING_OPT_CPU_LIST(TUNING_AT),
	TUNING_OPT_CQ_DEPTH(TUNING_AT),
	{ .name = "crl", .type = OPT_STRING, .offset = AT(crl), .metavar = "FILE",
	  .help = "Revocation lists of all CAs of the server's certificate." },
	{ .name = "cycles", .type = OPT_UINT, .offset = AT(cycles), .min = 1, .max = 1000000000,
	  .metavar = "N", .help = "With --churn: measure until clients came back N times, instead of --duration." },
	{ .name = "deal", .type = OPT_CHOICE, .offset = AT(deal), .choices = deal_names, .metavar = "HOW", .def = "round-robin",
	  .help = "With --targets: how clients are dealt to the servers; first fills the first one before the next gets any." },
	{ .name = "details", .type = OPT_FLAG, .offset = AT(details),
	  .help = "Print the whole report at the end, not its summary." },
	{ .name = "device", .type = OPT_STRING, .offset = AT(device), .metavar = "NAME,...",
	  .def = "the one that reaches the server", .help = "RDMA device. With several, clients of --workload large and duplex "
	  "have a connection on each, and stripe over them." },
	TUNING_OPT_DSCP(TUNING_AT),
	{ .name = "duration", .type = OPT_DURATION, .offset = AT(duration_ns), .min = 100 * NS_PER_MS,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "5", .help = "Measured time of each step." },
	{ .name = "environment", .type = OPT_CHOICE, .offset = AT(environment),
	  .choices = environment_names, .metavar = "WHERE", .def = "auto",
	  .help = "Run on this machine's RDMA device or in a Soft-RoCE micro-VM; auto takes the VM when "
		  "there is no device and neither --server nor --device is given." },
	{ .name = "etcd-ca", .type = OPT_STRING, .offset = AT(etcd_ca), .metavar = "FILE",
	  .help = "CA certificate of an etcd with TLS (etcds://...)." },
	{ .name = "etcd-cert", .type = OPT_STRING, .offset = AT(etcd_cert), .metavar = "FILE",
	  .help = "Certificate to show to it; with --lead its own, too." },
	{ .name = "etcd-key", .type = OPT_STRING, .offset = AT(etcd_key), .metavar = "FILE",
	  .help = "Private key of --etcd-cert." },
	{ .name = "find-capacity", .type = OPT_FLAG, .offset = AT(find_capacity),
	  .help = "Find the most clients that meet --slo, the knee, and what breaks first, with up to --clients." },
	{ .name = "find-rate", .type = OPT_FLAG, .offset = AT(find_rate),
	  .help = "Find the most operations a second that meet --slo, within --rate A-B or from 1000 on." },
	{ .name = "floor", .type = OPT_UINT, .offset = AT(floor), .min = 0, .max = 1000, .metavar = "N", .def = "5",
	  .help = "Clients that connect one at a time before the first step, after the last, and after one that went wrong: the "
		  "least that connecting takes. (--memory-floor and --cpu-floor are limits at which a run stops.)" },
	TUNING_OPT_GID_INDEX(TUNING_AT),
	{ .name = "hosts", .type = OPT_UINT, .offset = AT(hosts), .min = 1, .max = HOSTS_MAX, .metavar = "N", .def = "1",
	  .help = "Load hosts of the run, which share out the clients; with --lead or --cluster." },
	{ .name = "inflight", .type = OPT_UINT, .offset = AT(inflight), .min = 1, .max = 128,
	  .metavar = "N", .def = "by workload", .help = "Messages or other operations each client keeps in flight." },
	TUNING_OPT_INLINE(TUNING_AT),
	{ .name = "iterations", .type = OPT_UINT, .offset = AT(iterations), .min = 1, .max = 1000000000, .metavar = "N",
	  .help = "Measure N operations of each client that sends (in each direction), instead of --duration." },
	{ .name = "join", .type = OPT_STRING, .offset = AT(join), .metavar = "etcd://HOST:PORT/RUN?token=...",
	  .help = "Take part in the run of the host that printed this (--lead), with its options." },
	{ .name = "join-timeout", .type = OPT_DURATION, .offset = AT(join_timeout_ns), .min = NS_PER_S, .max = 86400 * NS_PER_S,
	  .metavar = "SECONDS", .def = "300", .help = "Longest time until all --hosts hosts are there." },
	{ .name = "json", .type = OPT_STRING, .offset = AT(json), .metavar = "FILE|-",
	  .help = "Write run.json here too; - is stdout, instead of the table." },
	{ .name = "judge", .type = OPT_CHOICE, .offset = AT(judge), .choices = loadgen_judge_names, .metavar = "auto|all",
	  .def = "auto", .help = "Success criteria to judge; auto leaves out those of time on emulated CPUs and software RDMA." },
	{ .name = "key", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE",
	  .help = "Private key of --cert." },
	{ .name = "lead", .type = OPT_FLAG, .offset = AT(lead),
	  .help = "Start an etcd for this run, print the command for the other hosts, and lead them." },
	{ .name = "lease", .type = OPT_DURATION, .offset = AT(lease_ns), .min = 2 * NS_PER_S, .max = 600 * NS_PER_S,
	  .metavar = "SECONDS", .def = "10", .help = "A host that is not heard of for so long is lost to the run." },
	{ .name = "log-level", .type = OPT_CHOICE, .offset = AT(log_level), .choices = log_level_names,
	  .metavar = "LEVEL", .def = "warn", .help = "What to log to stderr." },
	{ .name = "max-skew", .type = OPT_DURATION, .offset = AT(max_skew_ns), .min = NS_PER_MS, .max = 60 * NS_PER_S,
	  .metavar = "SECONDS", .def = "0.1",
	  .help = "With several hosts: a step whose hosts began to measure further apart than this is invalid." },
	{ .name = "memory-floor", .type = OPT_UINT, .offset = AT(memory_floor_percent), .min = 0, .max = 99,
	  .metavar = "PERCENT", .def = "5",
	  .help = "Stop before less than this share of either machine's memory is available; 0: do not. (--floor is about time.)" },
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
	TUNING_OPT_NUMA(TUNING_AT),
	{ .name = "on-host-loss", .type = OPT_CHOICE, .offset = AT(on_host_loss), .choices = host_loss_names,
	  .metavar = "WHAT", .def = "stop",
	  .help = "What a run does that loses a load host: end with the running step, or go on without that host's clients." },
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
	{ .name = "rate", .type = OPT_STRING, .offset = AT(rate_text), .metavar = "N|A-B[:COUNT]",
	  .help = "Open loop: operations a second of all clients together, sent when they are due and timed from then. A-B: "
		  "COUNT steps (8) from A to B." },
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
	TUNING_OPT_RNR_RETRY(TUNING_AT),
	TUNING_OPT_RNR_TIMER(TUNING_AT),
	{ .name = "sample-interval", .type = OPT_DURATION, .offset = AT(sample_interval_ns), .min = 0,
	  .max = 60 * NS_PER_S, .metavar = "SECONDS", .def = "1",
	  .help = "Between two samples of what both machines use, 0.1 to 60 s; 0: none are taken." },
	{ .name = "seed", .type = OPT_UINT, .offset = AT(seed), .min = 0, .max = UINT32_MAX,
	  .metavar = "N", .def = "1", .help = "Seed of the message payload and of --deal random; PSNs and keys are never seeded." },
	{ .name = "server", .type = OPT_STRING, .offset = AT(server), .metavar = "HOST,...",
	  .def = "one of our own", .help = "Server to load; with several devices, its address on each, in the order of --device." },
	{ .name = "server-cpu-list", .type = OPT_STRING, .offset = AT(server_cpu_list), .metavar = "LIST",
	  .def = "the next CPUs of --cpu-list",
	  .help = "--cpu-list of a server of our own; by default its threads go on after the workers." },
	{ .name = "server-name", .type = OPT_STRING, .offset = AT(server_name), .metavar = "NAME",
	  .def = "HOST", .help = "Name or address the server's certificate must be for." },
	{ .name = "server-threads", .type = OPT_UINT, .offset = AT(server_threads), .min = 1, .max = 256,
	  .metavar = "N", .def = "online CPUs", .help = "--threads of a server of our own." },
	TUNING_OPT_SERVICE_LEVEL(TUNING_AT),
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
	{ .name = "suite", .type = OPT_STRING, .offset = AT(suite), .metavar = "FILE|NAME|all",
	  .help = "Run a suite, several runs with one report: a file, or fabric, messages, arrays, connections, all of these or transports "
	  "(docs/suites.md). Other options apply to all of its runs." },
	{ .name = "targets", .type = OPT_STRING, .offset = AT(targets_text), .metavar = "HOST[:PORT],...",
	  .help = "Servers to load at once, instead of --server; clients are dealt to them (--deal), each by threads of its own." },
	TCP_OPT(AT(tcp_text)),
	{ .name = "threads", .type = OPT_UINT, .offset = AT(threads), .min = 1, .max = 256,
	  .metavar = "N", .def = "online CPUs, at most 8", .help = "Worker threads of the generator." },
	{ .name = "timeout", .type = OPT_DURATION, .offset = AT(timeout_ns), .min = 10 * NS_PER_MS,
	  .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time for each stage of connecting." },
	{ .name = "tls-port", .type = OPT_UINT, .offset = AT(tls_port), .min = 1, .max = 65535,
	  .metavar = "PORT", .def = "7471", .help = "TCP port of --server, and of --targets without one." },
	{ .name = "tls-resume", .type = OPT_FLAG, .offset = AT(tls_resume),
	  .help = "Clients that come again resume their TLS session." },
	{ .name = "token-file", .type = OPT_STRING, .offset = AT(token_file), .metavar = "FILE", .def = "RAMPART_TOKEN of the environment",
	  .help = "With --join or --cluster: the file whose first line is the token, instead of ?token=SECRET in the URL." },
	{ .name = "trace", .type = OPT_STRING, .offset = AT(trace), .metavar = "FILE",
	  .help = "Write the times of every measured operation there, comma-separated." },
	{ .name = "trace-max", .type = OPT_UINT, .offset = AT(trace_max), .min = 1, .max = 1000000000,
	  .metavar = "N", .def = "1000000", .help = "Most operations of a step that each worker keeps for --trace." },
	TUNING_OPT_TRAFFIC_CLASS(TUNING_AT),
	{ .name = "transport", .type = OPT_CHOICE, .offset = AT(transport), .choices = transport_choices, .metavar = "NAME",
	  .def = "rdma", .help = "How messages go: over RDMA, a TCP connection, the TLS connection of the bootstrap; auto takes "
	  "TCP where there is no RDMA device, and says so." },
	{ .name = "verify", .type = OPT_FLAG, .offset = AT(verify),
	  .help = "Check every payload byte, and every PSN against what the device holds." },
	{ .name = "warmup", .type = OPT_DURATION, .offset = AT(warmup_ns), .min = 0,
	  .max = 3600 * NS_PER_S, .metavar = "SECONDS", .def = "1",
	  .help = "Traffic before the measured time, discarded." },
	{ .name = "warmup-iterations", .type = OPT_UINT, .offset = AT(warmup_iterations), .min = 0, .max = 1000000000,
	  .metavar = "N", .def = "a tenth of --iterations, at least 1",
	  .help = "With --iterations: operations of each client before the measured ones, instead of --warmup." },
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
		   "what a run found (performance_test report --help), and `performance_test plan` with the options\n"
		   "of a run what it would need (performance_test plan --help).",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 all criteria met, 1 a criterion failed, 2 usage, 3 the environment cannot\n"
		  "run it or a file could not be written (the message says what to do), 4 inconclusive,\n"
		  "130 interrupted (results kept).",
};

const struct opts_spec loadgen_plan_options = {
	.program = "performance_test plan",
	.usage = "[options of a run]",
	.summary = "Says what --clients of a run with these options would need on each host, what gives out first, and\n"
		   "what to set, from limits of devices, processes and machines and the settings of the server that\n"
		   "performance_test would start or that runs on --server. Connects no client.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 the clients fit, 1 they do not, 2 usage, 3 it cannot be known (the message says\n"
		  "why) or --json could not be written.",
};

void loadgen_config_defaults(struct loadgen_config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	memset(c, 0, sizeof(*c));
	c->clients = 100;
	c->hosts = 1;
	c->lease_ns = 10 * NS_PER_S;
	c->join_timeout_ns = 300 * NS_PER_S;
	c->max_skew_ns = 100 * NS_PER_MS;
	c->memory_floor_percent = 5;
	c->tls_port = 7471;
	c->duration_ns = 5 * NS_PER_S;
	c->warmup_ns = NS_PER_S;
	c->warmup_iterations = WARMUP_ITERATIONS_DEFAULT;
	c->sample_interval_ns = NS_PER_S;
	c->coalesce = 1;
	c->mix_text = "1:1:0";
	c->connect_concurrency = 32;
	c->connect_retries = 8;
	c->threads = cpus < 1 ? 1 : cpus > 8 ? 8 : (uint64_t)cpus;
	c->repeat = 1;
	c->floor = 5;
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
	/* A sweep has steps enough with one number of clients. */
	if (c->steps.n == 0 && loadgen_is_swept(c))
		c->steps.v[c->steps.n++] = c->clients;
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

/* From the first to the last, each by the same factor above the one before; what rounds to the same is taken once. */
static void spread(struct opt_list *rates, uint64_t first, uint64_t last, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		double exact = (double)first * pow((double)last / (double)first, (double)i / (double)(count - 1));
		uint64_t rate = (uint64_t)llround(exact);

		if (rates->n == 0 || rate > rates->v[rates->n - 1])
			rates->v[rates->n++] = rate;
	}
}

/* N, A-B or A-B:COUNT. */
static int parse_rate(struct loadgen_config *c, char *err, size_t err_size)
{
	uint64_t first, last = 0, count = RATE_STEPS;
	const char *text = c->rate_text;
	int end = 0, given = 0;

	if (!text && !c->find_rate)
		return 0;
	if (!text) {
		c->rates = (struct opt_list){ .n = 2, .v = { RATE_START, RATE_MAX } };
		return 0;
	}
	if (strspn(text, "0123456789-:") == strlen(text))
		given = sscanf(text, "%11" SCNu64 "%n-%11" SCNu64 "%n:%3" SCNu64 "%n", &first, &end, &last, &end, &count, &end);
	if (given < 1 || text[end] || first < 1 || first > RATE_MAX ||
	    (given > 1 && (last <= first || last > RATE_MAX || count < 2 || count > OPT_LIST_MAX))) {
		snprintf(err, err_size, "--rate: '%.64s' is not allowed; allowed: 1 to %llu, or A-B with A below B, or A-B:COUNT with "
			 "2 to %d steps", text, (unsigned long long)RATE_MAX, OPT_LIST_MAX);
		return -EINVAL;
	}
	if (given == 1)
		c->rates.v[c->rates.n++] = first;
	else
		spread(&c->rates, first, last, c->find_rate ? 2 : count);
	return 0;
}

static int contradiction(const struct loadgen_config *c, int argc, char **argv, char *err, size_t n)
{
	const struct opts_spec *s = &loadgen_options;
	bool compares = c->compare.n || c->compare_sets.n;
	const char *text = NULL;

	if (c->find_capacity && opts_given(s, argc, argv, "steps"))
		text = "--find-capacity and --steps: give one of them; --clients is the most to try";
	else if (c->find_capacity && (c->repeat > 1 || compares || c->cycles || c->phased))
		text = "--find-capacity: does not go with --repeat, --compare, --cycles or --phased";
	else if (opts_given(s, argc, argv, "clients") && opts_given(s, argc, argv, "steps"))
		text = "--clients and --steps: give one of them";
	else if (!c->server && opts_given(s, argc, argv, "tls-port"))
		text = "--tls-port: goes with --server; a server of our own chooses its port";
	else if (c->targets.n < 2 && opts_given(s, argc, argv, "deal"))
		text = "--deal: goes with several --targets";
	else if (c->targets.n > 1 && c->devices.n > 1)
		text = "--targets: several go with one --device";
	else if (!c->server && c->server_name)
		text = "--server-name: goes with --server";
	else if (c->server && c->server_threads)
		text = "--server-threads: does not go with --server, whose threads are its own";
	else if (c->server && c->server_cpu_list)
		text = "--server-cpu-list: does not go with --server, which has a --cpu-list of its own";
	else if (c->lead + !!c->join + !!c->cluster > 1)
		text = "--lead, --join, --cluster: give one of them";
	else if (c->hosts > 1 && !loadgen_has_hosts(c))
		text = "--hosts: goes with --lead or --cluster, which say how the hosts meet";
	else if (c->lead && c->hosts < 2)
		text = "--lead: give with --hosts how many load hosts the run has, 2 to 1024";
	else if ((c->lead || c->cluster) && !c->server && !c->plan)
		text = "--lead, --cluster: give with --server what all hosts load";
	else if (c->token_file && !c->join && !c->cluster)
		text = "--token-file: goes with --join or --cluster";
	else if (c->allow_server && !c->join && !c->cluster)
		text = "--allow-server: goes with --join or --cluster";
	else if ((c->etcd_ca || c->etcd_cert || c->etcd_key) && !loadgen_has_hosts(c))
		text = "--etcd-ca, --etcd-cert, --etcd-key: go with --lead, --join or --cluster";
	else if (!c->etcd_cert != !c->etcd_key)
		text = "--etcd-cert and --etcd-key: give both or neither";
	else if (loadgen_has_hosts(c) && c->environment == ENVIRONMENT_VM)
		text = "--environment vm: does not go with several hosts, which a micro-VM cannot reach";
	else if (loadgen_has_hosts(c) && (c->trace || c->n_rails > 1))
		text = "--trace and several devices: do not go with several hosts";
	else if (!c->cert != !c->key)
		text = "--cert and --key: give both or neither";
	else if (c->sample_interval_ns && c->sample_interval_ns < FRAME_WATCH_MS_MIN * NS_PER_MS)
		text = "--sample-interval: must be 0 or 0.1 to 60 s";
	else if (c->cycles && !c->churn_per_s)
		text = "--cycles: goes with --churn";
	else if (c->iterations && (opts_given(s, argc, argv, "duration") || opts_given(s, argc, argv, "warmup") || c->churn_per_s))
		text = "--iterations: does not go with --duration, --warmup or --churn";
	else if (opts_given(s, argc, argv, "warmup-iterations") && !c->iterations)
		text = "--warmup-iterations: goes with --iterations";
	else if (opts_given(s, argc, argv, "trace-max") && !c->trace)
		text = "--trace-max: goes with --trace";
	else if (c->suite && (c->json || c->trace || compares || c->find_capacity))
		text = "--suite: does not go with --json, --trace, --compare, --compare-set or --find-capacity";
	else if (compares && (c->json || c->trace))
		text = "--compare: does not go with --json or --trace; each run's figures are in the results folder";
	else if (c->find_rate && !c->slo_text)
		text = "--find-rate: give with --slo what the rate must meet";
	else if (c->find_rate && (c->find_capacity || c->rate_per_client || c->repeat > 1 || compares || c->cycles || c->phased))
		text = "--find-rate: does not go with --find-capacity, --rate-per-client, --repeat, --compare, --cycles or --phased";
	else if (c->find_rate && (c->steps.n > 1 || c->sizes.n > 1))
		text = "--find-rate: goes with one number of clients and one --message-size";
	else if (c->find_rate && c->rate_text && !strchr(c->rate_text, '-'))
		text = "--find-rate: goes with --rate A-B, the least and the most to try";
	else if (c->find_capacity && loadgen_is_swept(c))
		text = "--find-capacity: goes with one --rate";
	else if (c->rates.n && c->rate_per_client)
		text = "--rate and --rate-per-client: give one of them";
	else if (opts_given(s, argc, argv, "arrival") && !loadgen_is_open_loop(c))
		text = "--arrival: goes with --rate or --rate-per-client";
	else if (c->fell_back && loadgen_has_hosts(c))
		text = "--transport auto: does not go with several hosts, which have to use the same; give it by name";
	else if (c->transport != TRANSPORT_RDMA && (c->device || c->n_rails > 1 || c->environment == ENVIRONMENT_VM))
		text = "--transport tcp, tls: do not go with --device, several servers' addresses or --environment vm, which are of RDMA";
	else if (c->n_rails > 1 && (c->phased || c->churn_per_s || c->reconnect_ns))
		text = "--device, --server: several do not go with --phased, --churn or --reconnect";
	else if (c->environment == ENVIRONMENT_VM && (c->server || c->device))
		text = "--environment vm: does not go with --server, --targets or --device; the micro-VM has a device "
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

/* Writes CPUs as a list, in their order, from the `first` on and then from the beginning. */
static void list_from(const uint16_t *cpus, uint32_t n, uint32_t first, char *out, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < n && used < size; i++) {
		unsigned begin = cpus[(first + i) % n], last = begin;

		while (i + 1 < n && cpus[(first + i + 1) % n] == last + 1) {
			last++;
			i++;
		}
		used += (size_t)snprintf(out + used, size - used, last > begin ? "%s%u-%u" : "%s%u", used ? "," : "",
					 begin, last);
	}
}

/* Threads of a server of our own take the CPUs that follow those of the workers, unless they have a list. */
static int place_server(struct loadgen_config *c, char *err, size_t err_size)
{
	uint16_t cpus[TUNING_CPUS_MAX];
	uint32_t n;
	int ret;

	c->server_cpus[0] = '\0';
	if (c->server_cpu_list) {
		ret = tuning_read_cpus("server-cpu-list", c->server_cpu_list, cpus, &n, err, err_size);
		if (!ret)
			list_from(cpus, n, 0, c->server_cpus, sizeof(c->server_cpus));
		return ret;
	}
	if (c->tuning.n_cpus)
		list_from(c->tuning.cpus, c->tuning.n_cpus, (uint32_t)(c->threads % c->tuning.n_cpus), c->server_cpus,
			  sizeof(c->server_cpus));
	return 0;
}

/* Whether the run's servers are among them is known later, for they may be the leader's (loadgen/fleet.h). */
static int check_allowed(const struct loadgen_config *c, char *err, size_t err_size)
{
	struct targets allowed;

	return c->allow_server ? targets_parse("allow-server", c->allow_server, 0, &allowed, err, err_size) : 0;
}

/* One target is the server; of several, `servers` stays empty. */
static int split_targets(struct loadgen_config *c, char *err, size_t err_size)
{
	int ret;

	if (!c->targets_text)
		return 0;
	if (c->server && c->server != c->targets_text) {
		snprintf(err, err_size, "--targets and --server: give one of them");
		return -EINVAL;
	}
	ret = targets_parse("targets", c->targets_text, (uint16_t)c->tls_port, &c->targets, err, err_size);
	if (ret)
		return ret;
	c->server = c->targets_text;
	if (c->targets.n > 1)
		return 0;
	c->tls_port = c->targets.v[0].port;
	memcpy(c->servers.name[0], c->targets.v[0].host, sizeof(c->servers.name[0]));
	c->servers.n = 1;
	return 0;
}

static int split_rails(struct loadgen_config *c, char *err, size_t err_size)
{
	int ret = 0;

	if (c->device)
		ret = rails_split("device", c->device, &c->devices, err, err_size);
	if (!ret && c->server && !c->targets_text)
		ret = rails_split("server", c->server, &c->servers, err, err_size);
	if (!ret && !c->targets_text)
		ret = check_hosts(&c->servers, err, err_size);
	if (!ret && c->devices.n && c->servers.n && c->devices.n != c->servers.n) {
		snprintf(err, err_size, "--server and --device: give as many of one as of the other (%u and %u were given)",
			 c->servers.n, c->devices.n);
		ret = -EINVAL;
	}
	c->n_rails = MAX(MAX(c->devices.n, c->servers.n), 1);
	return ret;
}

/* --compare transport=tcp,tls: no run is over RDMA. */
static bool compares_sockets_alone(const struct loadgen_config *c)
{
	static const char key[] = "transport=";

	for (size_t i = 0; i < c->compare.n; i++)
		if (strncmp(c->compare.v[i], key, strlen(key)) == 0)
			return !strstr(c->compare.v[i], "rdma") && !strstr(c->compare.v[i], "auto");
	return false;
}

/* Nothing falls back that was not told to. */
static void choose_transport(struct loadgen_config *c)
{
	if (c->transport == TRANSPORT_RDMA && compares_sockets_alone(c))
		c->transport = TRANSPORT_TCP;
	if (c->transport != TRANSPORT_AUTO)
		return;
	c->fell_back = dev_count() == 0;
	c->transport = c->fell_back ? TRANSPORT_TCP : TRANSPORT_RDMA;
}

/* A worker serves one server. */
static void choose_threads(struct loadgen_config *c)
{
	c->threads = MIN(c->threads, (c->clients + c->hosts - 1) / c->hosts);
	if (c->threads >= loadgen_n_targets(c))
		return;
	c->threads_asked = c->threads;
	c->threads = loadgen_n_targets(c);
}

int loadgen_config_check(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
{
	int ret;

	choose_transport(c);
	ret = split_targets(c, err, err_size);
	if (!ret)
		ret = split_rails(c, err, err_size);
	if (!ret)
		ret = parse_rate(c, err, err_size);
	if (!ret)
		ret = contradiction(c, argc, argv, err, err_size);
	if (!ret)
		ret = check_allowed(c, err, err_size);
	if (!ret && c->name)
		ret = check_name(c->name, err, err_size);
	if (!ret)
		ret = tuning_check(&c->tuning, err, err_size);
	if (!ret)
		ret = tcp_parse(c->tcp_text, &c->sock.tcp, err, err_size);
	if (!ret)
		ret = check_slo(c, err, err_size);
	if (ret)
		return ret;
	choose_clients(c, argc, argv);
	if (c->warmup_iterations == WARMUP_ITERATIONS_DEFAULT)
		c->warmup_iterations = c->iterations ? MAX(c->iterations / 10, 1) : 0;
	if (c->clients > c->hosts * CLIENTS_OF_HOST_MAX) {
		snprintf(err, err_size, "--clients: at most %d are allowed on each host", CLIENTS_OF_HOST_MAX);
		return -EINVAL;
	}
	choose_threads(c);
	ret = place_server(c, err, err_size);
	if (ret)
		return ret;
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
