/* SPDX-License-Identifier: BSD-2-Clause */
/* performance_test's table of options. No I/O. See config.h. */
#include "loadgen/config/config.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/rdma/pump.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "loadgen/config/deal.h"

#define HOSTS_MAX 1024

static const char *const environment_names[] = { "auto", "native", "vm", "netns", NULL };
static const char *const host_loss_names[] = { "stop", "continue", NULL };
static const char *const switch_names[] = { "off", "on", NULL };
/* In the order of enum transport; auto is TRANSPORT_AUTO of config.c. */
static const char *const transport_choices[] = { "rdma", "tcp", "tls", "auto", NULL };

const char *const loadgen_judge_names[] = { "auto", "all", NULL };
const char *const loadgen_arrival_names[] = { "even", "poisson", NULL };
const char *const loadgen_operation_names[] = { "write", "send", "read", "write-imm", NULL };
#define X(name) #name,
const char *const loadgen_workload_names[] = { LOADGEN_WORKLOADS(X) NULL };
#undef X

static const struct opts_group groups[] = {
	{ "load", "What the clients do" },
	{ "clients", "Number of clients, kinds of run, criteria" },
	{ "time", "Durations and stop conditions" },
	{ "where", "Server, devices and threads" },
	{ "connecting", "How clients connect" },
	{ "data", "Data path; a server of our own gets the same settings" },
	{ "output", "Output" },
	{ "hosts", "Several load hosts (docs/cluster.md)" },
};

#define AT(field) offsetof(struct loadgen_config, field)
#define TUNING_AT(field) offsetof(struct loadgen_config, tuning.field)

static const struct opt options[] = {
	TUNING_OPT_ACK_TIMEOUT(TUNING_AT),
	{ .name = "active", .group = "load", .type = OPT_UINT, .offset = AT(active), .min = 1,
	  .max = LOADGEN_CLIENTS_MAX, .metavar = "K", .def_words = "all of them",
	  .help = "Number of clients that send; the others are connected and silent.",
	  .more = "Not with the workloads `connect` and `idle`." },
	{ .name = "allow-redirect", .group = "where", .type = OPT_FLAG, .offset = AT(allow_redirect), .per_host = true,
	  .help = "Connect even if a server's GRANT names another host than its own.",
	  .more = "A server behind network address translation (NAT) sends such a GRANT. Without this option the "
	  "client fails (`protocol:redirected`). Load hosts do not take this option over from the leader." },
	{ .name = "allow-server", .group = "hosts", .type = OPT_STRING, .offset = AT(allow_server),
	  .metavar = "HOST[:PORT],...", .def_words = "any whose certificate the CA proves", .needs = "join|cluster",
	  .per_host = true, .help = "Servers that this host may load, at most 16.",
	  .more = "Written as in the leader's `--server` or `--targets`; without a port, any port of that host. If the "
	  "leader's run loads any other server, this host leaves the run and says why." },
	{ .name = "arrival", .group = "load", .type = OPT_CHOICE, .offset = AT(arrival),
	  .choices = loadgen_arrival_names, .metavar = "SPACING", .def = "even",
	  .needs = "rate|rate-per-client|find-rate",
	  .help = "How each client's operations are spaced in the open loop." },
	{ .name = "ca", .group = "where", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE", .per_host = true,
	  .per_suite = true, .def_words = "build/certs/ca.pem",
	  .help = "CA certificate (PEM) that the server's certificate must be signed with.",
	  .more = "A server of our own uses the defaults of rdma_server." },
	{ .name = "cert", .group = "where", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE", .needs = "key",
	  .per_host = true, .per_suite = true, .help = "Certificate (PEM) to show to a server that asks for one." },
	{ .name = "chunk", .group = "load", .type = OPT_SIZE, .offset = AT(chunk_bytes), .min = 4096, .max = 8 << 20,
	  .metavar = "BYTES", .def_words = "1M; 64k with --operation send",
	  .help = "Largest piece of a transfer of --workload large." },
	{ .name = "churn", .group = "load", .type = OPT_UINT, .offset = AT(churn_per_s), .min = 0, .max = 1000000,
	  .metavar = "RATE", .def = "0",
	  .help = "Clients per second that leave and come back immediately while the workload runs.",
	  .more = "They leave in turn. At most `--connect-concurrency` come back at the same time; the others wait for "
	  "their turn. If no client is connected when one is due to leave, the next that comes back leaves again." },
	{ .name = "clients", .group = "clients", .type = OPT_UINT, .offset = AT(clients), .min = 1,
	  .max = LOADGEN_CLIENTS_MAX, .metavar = "N", .def = "100", .excludes = "steps", .common = true,
	  .help = "Ramp up to N clients, by the steps 10, 100, 500, 1000, 5000 and 10000 below N.",
	  .more = "The last step has N clients. At most 100000 on each load host. With "
	  "`--find-capacity`: the largest number of clients to try, 10000 unless it is given." },
	{ .name = "cluster", .group = "hosts", .type = OPT_STRING, .offset = AT(cluster),
	  .metavar = "etcd://HOST:PORT/RUN", .needs = "server|targets",
	  .excludes = "lead,join,environment=vm,environment=netns", .per_host = true,
	  .help = "Run on --hosts hosts that meet at this etcd under the name RUN.",
	  .more = "Start the same command on each host. The first host to join leads the run and has its table, files "
	  "and report." },
	{ .name = "coalesce", .group = "load", .type = OPT_UINT, .offset = AT(coalesce), .min = 1,
	  .max = MSG_JOINED_MAX, .metavar = "N", .def = "1",
	  .help = "Maximum number of messages packed into one SEND (--workload small).",
	  .more = "Only messages that are due at the same moment share a SEND (docs/workloads.md). The N messages "
	  "together may have at most 1M. A server of our own gets a `--message-size` of N messages." },
	{ .name = "compare", .group = "clients", .type = OPT_TEXTS, .offset = AT(compare), .metavar = "KEY=A,B,...",
	  .common = true, .help = "Compare values of the option KEY: 5 rounds (--repeat) with a run of each value.",
	  .more = "KEY has 2 to 8 values, each of which is compared with the first. The runs take turns, each with a "
	  "new server. The result says for each value how much better or "
	  "worse it is than the first and whether that is an improvement, a regression or no difference "
	  "(docs/results.md, \"Comparisons\"). A flag has the values on and off. In a value `+` stands for a comma: "
	  "`device=rxe0,rxe0+rxe1`. Given several times, all combinations are run: at most 64 combinations and 200 "
	  "runs." },
	{ .name = "compare-set", .group = "clients", .type = OPT_TEXTS, .offset = AT(compare_sets),
	  .metavar = "NAME:KEY=A,...",
	  .help = "As --compare, but each set changes several options at once.",
	  .more = "Given once for each of 2 to 8 sets, the first of which is the baseline. A set has up to 16 "
	  "settings; a name alone sets nothing. With `--compare`, each set is run with each of its values." },
	{ .name = "connect", .group = "connecting", .type = OPT_CHOICE, .offset = AT(connect),
	  .choices = connect_way_names, .metavar = "cm|oob", .def = "cm",
	  .help = "Connect queue pairs through rdmacm (cm), or out of band over TLS (oob).",
	  .more = "oob: docs/protocol.md, \"Connecting out of band\"." },
	{ .name = "connect-concurrency", .group = "connecting", .type = OPT_UINT, .offset = AT(connect_concurrency),
	  .min = 1, .max = LOADGEN_CLIENTS_MAX, .metavar = "N", .def = "32",
	  .help = "Maximum number of connections being made at once.",
	  .more = "They are divided among the workers, rounded up. Each worker starts with 8, and makes fewer at once "
	  "while there are timeouts or `busy` answers (docs/results.md, \"Pacing\")." },
	{ .name = "connect-rate", .group = "connecting", .type = OPT_UINT, .offset = AT(connect_rate), .min = 0,
	  .max = 1000000, .metavar = "N", .def = "0",
	  .help = "Connections to start per second; 0: as many as --connect-concurrency allows.",
	  .more = "With a rate, the total connection time counts from the moment when the connection was due." },
	{ .name = "connect-retries", .group = "connecting", .type = OPT_UINT, .offset = AT(connect_retries), .min = 0,
	  .max = 1000, .metavar = "N", .def = "8",
	  .help = "Number of further attempts after a timeout, a `busy` answer or a closed connection.",
	  .more = "A client tries again if its connection timed out, was refused as `busy`, or was closed by the "
	  "server in the TLS handshake or the exchange of PSNs, or if its proof was not acknowledged "
	  "(`--connect oob`). With `--phased` each client tries once." },
	{ .name = "cpu-floor", .group = "time", .type = OPT_UINT, .offset = AT(cpu_floor_percent), .min = 0, .max = 99,
	  .metavar = "PERCENT", .def = "0",
	  .help = "Stop when either machine has less than this share of its CPU time idle; 0: never.",
	  .more = "The share is measured over 5 s (docs/results.md, \"Stop reasons\"), and only with a "
	  "`--sample-interval` above 0." },
	TUNING_OPT_CPU_LIST(TUNING_AT),
	TUNING_OPT_CQ_DEPTH(TUNING_AT),
	{ .name = "crl", .group = "where", .type = OPT_STRING, .offset = AT(crl), .metavar = "FILE", .per_host = true,
	  .per_suite = true, .help = "Revocation lists (PEM) of all CAs of the server's certificate.",
	  .more = "Whole lists, no delta lists." },
	{ .name = "cycles", .group = "time", .type = OPT_UINT, .offset = AT(cycles), .min = 1, .max = 1000000000,
	  .metavar = "N", .needs = "churn",
	  .help = "Measure until clients have left and come back N times in all, instead of --duration.",
	  .more = "The measured time also ends when no client has come back for 60 s." },
	{ .name = "deal", .group = "where", .type = OPT_CHOICE, .offset = AT(deal), .choices = deal_names,
	  .metavar = "HOW", .def = "round-robin", .needs = "targets",
	  .help = "How clients are dealt to several --targets.",
	  .more = "round-robin: each server gets the same number, the first ones one more. first: the first server "
	  "gets as many as it has room for (its `--max-clients` and `--max-per-address`, less the clients that "
	  "it has when the run begins), then the next one; the last server gets all that are left, and refuses them. "
	  "random: each client draws its server at random (`--seed`) and has the same one in every step." },
	{ .name = "details", .group = "output", .type = OPT_FLAG, .offset = AT(details), .per_host = true,
	  .per_suite = true, .common = true, .help = "Print the whole report at the end, not its summary.",
	  .more = "It is the output of `performance_test report`. With `--report off` there is only the summary." },
	{ .name = "device", .group = "where", .type = OPT_STRING, .offset = AT(device), .metavar = "NAME,...",
	  .per_host = true, .excludes = "environment=vm,environment=netns",
	  .def_words = "the one that reaches the server",
	  .help = "RDMA device of the clients, and of the server that performance_test starts.",
	  .more = "With several devices, at most 8, clients of `--workload large` and `duplex` have a connection on "
	  "each and stripe their data over them (docs/workloads.md, \"Rails\"). Several devices are an error with "
	  "other workloads, with `--phased`, `--churn` and `--reconnect`." },
	TUNING_OPT_DSCP(TUNING_AT),
	{ .name = "duration", .group = "time", .type = OPT_DURATION, .offset = AT(duration_ns), .min = 100 * NS_PER_MS,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "5", .common = true,
	  .help = "Measured time of each step." },
	{ .name = "environment", .group = "where", .type = OPT_CHOICE, .offset = AT(environment), .per_host = true,
	  .per_suite = true, .choices = environment_names, .metavar = "WHERE", .def = "auto",
	  .help = "Run on this machine (native), or over Soft-RoCE in a micro-VM (vm) or a network namespace (netns).",
	  .more = "auto leaves the machine only if it has no RDMA device, none of `--server`, `--targets` and "
	  "`--device` is given, the transport is not `tcp` or `tls`, and there is one load host. It then takes the "
	  "namespace, which is as fast as the machine, for root on a kernel that has rdma_rxe (docs/soft-roce.md), "
	  "else the micro-VM." },
	{ .name = "etcd-ca", .group = "hosts", .type = OPT_STRING, .offset = AT(etcd_ca), .metavar = "FILE",
	  .needs = "lead|join|cluster", .per_host = true,
	  .help = "CA certificate (PEM) of an etcd with TLS (etcds://...).",
	  .more = "With `--lead`: CA certificate of the other hosts' certificates." },
	{ .name = "etcd-cert", .group = "hosts", .type = OPT_STRING, .offset = AT(etcd_cert), .metavar = "FILE",
	  .per_host = true, .needs = "lead|join|cluster,etcd-key",
	  .help = "Certificate (PEM) to show to the etcd; with --lead the etcd that is started shows it, too." },
	{ .name = "etcd-key", .group = "hosts", .type = OPT_STRING, .offset = AT(etcd_key), .metavar = "FILE",
	  .per_host = true, .needs = "lead|join|cluster,etcd-cert", .help = "Private key (PEM) of --etcd-cert." },
	{ .name = "find-capacity", .group = "clients", .type = OPT_FLAG, .offset = AT(find_capacity), .common = true,
	  .excludes = "steps,repeat,compare,compare-set,cycles,phased",
	  .help = "Find the largest number of clients that meets --slo.",
	  .more = "It also finds the knee and what breaks first; without `--slo` only these two. It tries up to "
	  "`--clients` (10000), with one `--message-size` (docs/capacity.md)." },
	{ .name = "find-rate", .group = "clients", .type = OPT_FLAG, .offset = AT(find_rate), .needs = "slo",
	  .excludes = "find-capacity,rate-per-client,repeat,compare,compare-set,cycles,phased",
	  .help = "Find the highest rate of operations that meets --slo.",
	  .more = "It searches within `--rate A-B`, or from 1,000 a second up, with one number of clients and one "
	  "`--message-size` (docs/capacity.md)." },
	{ .name = "floor", .group = "clients", .type = OPT_UINT, .offset = AT(floor), .min = 0, .max = 1000,
	  .metavar = "N", .def = "5",
	  .help = "Clients that connect one at a time before and after the steps, to measure the shortest connection "
	  "time.",
	  .more = "They also connect after a step that did not hold all its clients (docs/results.md, \"One at a "
	  "time\"). With 0 it is not known whether a failure was graceful. A search (`--find-capacity`, "
	  "`--find-rate`) connects none of them. `--memory-floor` and `--cpu-floor` are limits of the machines, not "
	  "times." },
	{ .name = "from", .group = "output", .type = OPT_STRING, .offset = AT(from), .metavar = "DIR|measure",
	  .help = "plan only: take the CPU time of messages and connections from the run in DIR, or measure it (3 s).",
	  .more = "The transport, workload and message size of the run in DIR must be those of the plan. `measure` "
	  "runs the planned load with up to 100 clients and keeps that run's folder (docs/capacity.md, \"Before the "
	  "run\")." },
	TUNING_OPT_GID_INDEX(TUNING_AT),
	{ .name = "hosts", .group = "hosts", .type = OPT_UINT, .offset = AT(hosts), .min = 1, .max = HOSTS_MAX,
	  .metavar = "N", .def = "1", .needs = "lead|join|cluster",
	  .help = "Number of load hosts that share the clients of the run.",
	  .more = "`--threads` is for each host; rates, `--connect-concurrency`, `--total-inflight`, `--churn` and "
	  "`--cycles` are totals over all hosts." },
	{ .name = "inflight", .group = "load", .type = OPT_UINT, .offset = AT(inflight), .min = 1,
	  .max = LOADGEN_INFLIGHT_MAX, .metavar = "N", .def_words = "by workload",
	  .help = "Operations that each client keeps in flight.",
	  .more = "With `duplex`, in each direction. Clients need as many credits (for `--coalesce` and the open loop "
	  "see docs/workloads.md): a server that cannot grant them refuses the client and names the option to raise." },
	TUNING_OPT_INLINE(TUNING_AT),
	{ .name = "iterations", .group = "time", .type = OPT_UINT, .offset = AT(iterations), .min = 1,
	  .max = 1000000000, .metavar = "N", .excludes = "duration,warmup,churn,cycles",
	  .help = "Measure N operations of each client that sends, instead of --duration.",
	  .more = "With `--workload duplex`, N in each direction. The operations of `--warmup-iterations` come first. "
	  "The measured time ends with the last operation, or when none has ended for 60 s." },
	{ .name = "join", .group = "hosts", .type = OPT_STRING, .offset = AT(join),
	  .metavar = "etcd://HOST:PORT/RUN?token=...", .excludes = "lead,cluster,environment=vm,environment=netns",
	  .per_host = true,
	  .help = "Take part in the run of the host that printed this URL (--lead), with its options.",
	  .more = "An option given here must have the leader's value, except options that each host sets for itself "
	  "(files, devices, CPUs, output)." },
	{ .name = "join-timeout", .group = "hosts", .type = OPT_DURATION, .offset = AT(join_timeout_ns),
	  .min = NS_PER_S, .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "300", .per_host = true,
	  .help = "Longest time to wait until all --hosts hosts are there." },
	{ .name = "json", .group = "output", .type = OPT_STRING, .offset = AT(json), .metavar = "FILE|-",
	  .per_host = true, .per_suite = true, .common = true,
	  .help = "Also write run.json (plan: the plan) to FILE; -: only that, to stdout.",
	  .more = "With `--suite` and `--compare` it is suite.json." },
	{ .name = "judge", .group = "clients", .type = OPT_CHOICE, .offset = AT(judge), .choices = loadgen_judge_names,
	  .metavar = "auto|all", .def = "auto",
	  .help = "Criteria to judge; auto leaves out times on emulated CPUs and software RDMA.",
	  .more = "A criterion that is not judged is shown (`not judged`, docs/results.md, \"Verdict\") and does not "
	  "affect the exit status. Objectives (`--slo`) are always judged." },
	{ .name = "junit", .group = "output", .type = OPT_STRING, .offset = AT(junit), .metavar = "FILE",
	  .per_host = true, .per_suite = true,
	  .help = "Write the verdict to FILE as test cases in JUnit's XML, which CI systems read.",
	  .more = "See docs/results.md, \"In pipelines\". With several load hosts the leader writes it." },
	{ .name = "key", .group = "where", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE", .needs = "cert",
	  .per_host = true, .per_suite = true, .help = "Private key (PEM) of --cert." },
	{ .name = "lead", .group = "hosts", .type = OPT_FLAG, .offset = AT(lead), .needs = "hosts,server|targets",
	  .excludes = "join,cluster,environment=vm,environment=netns", .per_host = true,
	  .help = "Start an etcd for this run, print the command for the other hosts, and lead them." },
	{ .name = "lease", .group = "hosts", .type = OPT_DURATION, .offset = AT(lease_ns), .min = 2 * NS_PER_S,
	  .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "10",
	  .help = "A host that is not heard from for this long is lost to the run." },
	{ .name = "log-level", .group = "output", .type = OPT_CHOICE, .offset = AT(log_level),
	  .choices = log_level_names, .metavar = "LEVEL", .def = "warn", .per_host = true, .per_suite = true,
	  .help = "Which messages to log to stderr.", .more = "A server of our own logs to server.log." },
	{ .name = "max-skew", .group = "hosts", .type = OPT_DURATION, .offset = AT(max_skew_ns), .min = NS_PER_MS,
	  .max = 60 * NS_PER_S, .metavar = "SECONDS", .def = "0.1",
	  .help = "Mark steps whose hosts began to measure further apart than this.",
	  .more = "The flag is `skew` (docs/results.md)." },
	{ .name = "max-steal", .group = "time", .type = OPT_UINT, .offset = AT(max_steal_percent), .min = 0,
	  .max = 100, .metavar = "PERCENT", .def = "1",
	  .help = "Mark steps in which a hypervisor took more than this share of a machine's CPU time.",
	  .more = "The flag is `cpu_stolen`, and the step confirms nothing (docs/results.md, \"Validity flags\"). On a "
	  "machine that always loses some CPU time, a larger share lets steps be judged; their figures are then those "
	  "of a slower machine." },
	{ .name = "memory-floor", .group = "time", .type = OPT_UINT, .offset = AT(memory_floor_percent), .min = 0,
	  .max = 99, .metavar = "PERCENT", .def = "5",
	  .help = "Stop when either machine has less than this share of its memory available; 0: never.",
	  .more = "With `--sample-interval 0` this share is not known, and the run goes on (docs/results.md, \"Stop "
	  "reasons\")." },
	{ .name = "message-auth", .group = "load", .type = OPT_FLAG, .offset = AT(message_auth),
	  .help = "Put a tag of 16 bytes at the end of every message, with keys from TLS.",
	  .more = "The workloads `echo`, `small` and `idle` have such messages (docs/protocol.md, \"Message tags\")." },
	{ .name = "message-size", .group = "load", .type = OPT_SIZES, .offset = AT(sizes), .common = true, .min = 1,
	  .max = UINT64_C(2) << 30, .metavar = "BYTES,...", .def_words = "by workload",
	  .help = "Sizes of a message or other operation; each step runs with each size.",
	  .more = "The size of a message includes its header of 16 bytes." },
	{ .name = "metrics", .group = "output", .type = OPT_STRING, .offset = AT(metrics), .metavar = "[ADDR:]PORT",
	  .per_host = true, .per_suite = true, .def_words = "none",
	  .help = "Where to serve the run's metrics over HTTP, for Prometheus.",
	  .more = "As rdma_server's `--metrics` (docs/metrics.md). In a micro-VM the address is the micro-VM's, so use "
	  "`--metrics-textfile` there." },
	{ .name = "metrics-textfile", .group = "output", .type = OPT_STRING, .offset = AT(metrics_textfile),
	  .metavar = "FILE", .per_host = true, .per_suite = true,
	  .help = "Write the run's metrics to FILE every 5 s and at its end, for node_exporter.",
	  .more = "For runs that end before Prometheus reads them. The file is replaced as a whole." },
	{ .name = "mix", .group = "load", .type = OPT_STRING, .offset = AT(mix_text), .metavar = "W:R:A",
	  .def = "1:1:0", .help = "Ratio of WRITEs, READs and atomics (--workload mixed).",
	  .more = "Three numbers up to 9999." },
	{ .name = "name", .group = "output", .type = OPT_STRING, .offset = AT(name), .metavar = "NAME",
	  .per_host = true, .per_suite = true, .def_words = "clients-N",
	  .help = "Last part of the results folder's name.", .more = "Letters, digits, `.`, `_` and `-`, at most 64." },
	TUNING_OPT_NUMA(TUNING_AT),
	{ .name = "on-host-loss", .group = "hosts", .type = OPT_CHOICE, .offset = AT(on_host_loss),
	  .choices = host_loss_names, .metavar = "WHAT", .def = "stop",
	  .help = "Whether a run that loses a load host stops or continues without it.",
	  .more = "stop ends the run with the running step (`host_lost`, exit status 1). continue goes on without that "
	  "host's clients (`host_lost_continued`); the other hosts never take them over, and the ramp ends when the "
	  "other hosts' clients are not held." },
	{ .name = "only", .group = "clients", .type = OPT_STRING, .offset = AT(only), .metavar = "NAME,...",
	  .needs = "suite", .per_suite = true, .def_words = "all", .help = "Run only these entries of --suite.",
	  .more = "NAME is an entry's name, alone or after the suite's name as in `fabric-latency`." },
	{ .name = "operation", .group = "load", .type = OPT_CHOICE, .offset = AT(operation),
	  .choices = loadgen_operation_names, .metavar = "NAME", .def = "write",
	  .help = "How --workload large moves its buffers.",
	  .more = "write-imm: by WRITEs, the last of which has immediate data for the server (docs/protocol.md)." },
	{ .name = "output", .group = "output", .type = OPT_STRING, .offset = AT(output), .metavar = "DIR",
	  .def = "results", .per_host = true, .per_suite = true, .common = true,
	  .help = "Folder in which the results folder is made." },
	TUNING_OPT_PATH_MTU(TUNING_AT),
	{ .name = "phased", .group = "connecting", .type = OPT_FLAG, .offset = AT(phased),
	  .help = "All clients finish a stage of connecting before any enters the next.",
	  .more = "A server of our own gets the `--max-handshakes`, `--handshake-timeout` and `--session-timeout` that "
	  "this needs." },
	{ .name = "poll", .group = "data", .type = OPT_CHOICE, .offset = AT(poll), .choices = poll_mode_names,
	  .metavar = "MODE", .def = "event",
	  .help = "How threads wait for completions: sleep, spin, or spin before sleeping." },
	TUNING_OPT_POST_LIST(TUNING_AT),
	{ .name = "price", .group = "clients", .type = OPT_STRING, .offset = AT(price_text), .metavar = "AMOUNT",
	  .needs = "slo", .help = "Price of one CPU for an hour, such as 0.04, for a --compare of transports.",
	  .more = "In any currency. The comparison then says what a client costs a month with each transport "
	  "(docs/workloads.md, \"Beside TCP\")." },
	{ .name = "qps", .group = "load", .type = OPT_UINT, .offset = AT(qps), .min = 1, .max = FRAME_QPS_MAX,
	  .metavar = "N", .def = "1", .excludes = "phased,churn,reconnect",
	  .help = "Queue pairs of each client, on each rail, with --workload large or duplex.",
	  .more = "A client bootstraps once over TLS on each rail, and makes all its connections there with that. Its "
	  "operations take the queue pairs in turn. With other workloads a client is one queue pair: use more "
	  "clients." },
	{ .name = "quiet", .group = "output", .type = OPT_FLAG, .offset = AT(quiet), .per_host = true,
	  .per_suite = true, .help = "Print no progress on stderr." },
	{ .name = "rate", .group = "load", .type = OPT_STRING, .offset = AT(rate_text), .metavar = "N|A-B[:COUNT]",
	  .common = true, .excludes = "rate-per-client", .def_words = "closed loop",
	  .help = "Open loop: operations/s of all clients; A-B: a sweep of COUNT rates.",
	  .more = "Operations are sent when they are due, whether earlier ones have ended or not, and timed from then. "
	  "`A-B` is a sweep: COUNT steps (2 to 64, by default 8) from A to B, each by the same factor above the one "
	  "before, with `--clients` clients if there are no `--steps` (docs/capacity.md, \"Latency against offered "
	  "load\"). For workloads with one direction." },
	{ .name = "rate-per-client", .group = "load", .type = OPT_UINT, .offset = AT(rate_per_client), .min = 1,
	  .max = 1000000000, .metavar = "N", .help = "Open loop: operations per second of each client that sends." },
	TUNING_OPT_REALTIME(TUNING_AT),
	{ .name = "reconnect", .group = "connecting", .type = OPT_DURATION, .offset = AT(reconnect_ns), .min = 0,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "0",
	  .help = "A client that loses its connection tries for this long to connect again; 0: it is dropped.",
	  .more = "It goes through the whole bootstrap. The pauses between attempts double from 100 ms to 10 s, and "
	  "each is shortened by a random part of up to a half. Outages are measured (docs/results.md, \"outages\"). An "
	  "error with several devices." },
	TUNING_OPT_RELAXED_ORDERING(TUNING_AT),
	{ .name = "repeat", .group = "clients", .type = OPT_UINT, .offset = AT(repeat), .min = 1, .max = 100,
	  .metavar = "N", .def = "1",
	  .help = "How often each step is run; from 2 on, the result also has medians and ranges." },
	{ .name = "report", .group = "output", .type = OPT_CHOICE, .offset = AT(report), .choices = switch_names,
	  .metavar = "on|off", .def = "on", .per_host = true, .per_suite = true,
	  .help = "Make report.html, report.md, tables/ and charts/ in the results folder at the end." },
	TUNING_OPT_RETRY_COUNT(TUNING_AT),
	TUNING_OPT_RNR_RETRY(TUNING_AT),
	TUNING_OPT_RNR_TIMER(TUNING_AT),
	{ .name = "sample-interval", .group = "output", .type = OPT_DURATION, .offset = AT(sample_interval_ns),
	  .min = 0, .max = 60 * NS_PER_S, .metavar = "SECONDS", .def = "1",
	  .help = "Time between two samples of both machines' resource usage, at least 0.1 s; 0: no samples.",
	  .more = "Samples are taken from connecting to teardown (\"resources_series\" in docs/results.md)." },
	{ .name = "seed", .group = "load", .type = OPT_UINT, .offset = AT(seed), .min = 0, .max = UINT32_MAX,
	  .metavar = "N", .def = "1", .help = "Seed of message payloads and random choices.",
	  .more = "PSNs and keys are never seeded." },
	{ .name = "server", .group = "where", .type = OPT_STRING, .offset = AT(server), .metavar = "HOST,...",
	  .per_suite = true, .common = true, .excludes = "targets,environment=vm,environment=netns",
	  .def_words = "one of our own",
	  .help = "Server to load (its address on each rail).",
	  .more = "A name or an address. With several rails, the addresses are in the order of `--device`; the first "
	  "is asked for statistics." },
	{ .name = "server-cpu-list", .group = "where", .type = OPT_STRING, .offset = AT(server_cpu_list),
	  .metavar = "LIST", .def_words = "the CPUs of --cpu-list after the workers'", .excludes = "server,targets",
	  .help = "CPUs for the threads of a server of our own." },
	{ .name = "server-name", .group = "where", .type = OPT_STRING, .offset = AT(server_name), .metavar = "NAME",
	  .def_words = "HOST", .needs = "server|targets", .per_suite = true,
	  .help = "Name or address that the server's certificate must have." },
	{ .name = "server-threads", .group = "where", .type = OPT_UINT, .offset = AT(server_threads), .min = 1,
	  .max = 256, .metavar = "N", .def_words = "CPUs that it may use", .excludes = "server,targets",
	  .help = "Threads of a server of our own." },
	TUNING_OPT_SERVICE_LEVEL(TUNING_AT),
	TUNING_OPT_SIGNAL_EVERY(TUNING_AT),
	{ .name = "slo", .group = "clients", .type = OPT_STRING, .offset = AT(slo_text), .metavar = "TERM,...",
	  .common = true, .help = "Objectives of each step, such as 'p99<500us,errors<0.1%'.",
	  .more = "At most 16 terms: docs/capacity.md, \"Objectives\". The exit status is 1 if a step misses one." },
	{ .name = "spin", .group = "data", .type = OPT_DURATION, .offset = AT(spin_ns), .min = NS_PER_US,
	  .max = NS_PER_S, .metavar = "TIME", .def = "50us",
	  .help = "How long to spin after the last completion (--poll adaptive)." },
	TUNING_OPT_SRQ_DEPTH(TUNING_AT),
	{ .name = "step-timeout", .group = "time", .type = OPT_DURATION, .offset = AT(step_timeout_ns), .min = NS_PER_S,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def_words = "60 s and 40 ms per client",
	  .help = "Longest time to connect the clients of a step." },
	{ .name = "steps", .group = "clients", .type = OPT_LIST, .offset = AT(steps), .min = 1,
	  .max = LOADGEN_CLIENTS_MAX, .metavar = "N,N,...", .def_words = "the ramp of --clients", .common = true,
	  .help = "Number of clients of each step, in this order." },
	{ .name = "stripe-min", .group = "load", .type = OPT_SIZE, .offset = AT(stripe_min_bytes), .min = 4096,
	  .max = UINT64_C(2) << 30, .metavar = "BYTES", .def = "16k", .needs = "device|server",
	  .help = "Smallest part of an operation that gets a rail of its own.",
	  .more = "With `--workload large` and `duplex` over several devices (docs/workloads.md, \"Rails\")." },
	{ .name = "suite", .group = "clients", .type = OPT_STRING, .offset = AT(suite), .metavar = "FILE|NAME|all",
	  .per_suite = true, .excludes = "compare,compare-set,find-capacity", .common = true,
	  .help = "Run a suite: several runs with one report (docs/suites.md).",
	  .more = "NAME is fabric, messages, arrays, connections, transports, setup or qp-sweep; all: the first four. "
	  "Other options apply to all of its runs." },
	{ .name = "targets", .group = "where", .type = OPT_STRING, .offset = AT(targets_text),
	  .metavar = "HOST[:PORT],...", .excludes = "environment=vm,environment=netns",
	  .help = "Servers to load at once, at most 16, instead of --server.",
	  .more = "See docs/options.md, \"Several servers\"." },
	TCP_OPT(AT(tcp_text)),
	{ .name = "threads", .group = "where", .type = OPT_UINT, .offset = AT(threads), .min = 1, .max = 256,
	  .metavar = "N", .def_words = "CPUs that it may use, at most 8",
	  .help = "Worker threads of the load generator.",
	  .more = "There are at most as many as clients, and at least one for each of `--targets`: if they are raised "
	  "for that, a line says so." },
	{ .name = "timeout", .group = "connecting", .type = OPT_DURATION, .offset = AT(timeout_ns),
	  .min = 10 * NS_PER_MS, .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time for each stage of connecting." },
	{ .name = "tls-port", .group = "where", .type = OPT_UINT, .offset = AT(tls_port), .min = 1, .max = 65535,
	  .metavar = "PORT", .def = "7471", .needs = "server|targets", .per_suite = true,
	  .help = "TCP port of --server, and of those --targets that name none." },
	{ .name = "tls-resume", .group = "connecting", .type = OPT_FLAG, .offset = AT(tls_resume),
	  .help = "Clients that connect again resume their TLS session.",
	  .more = "They connect again in later steps, with `--repeat` and with `--churn`. Without this option a server "
	  "of our own offers no resumption." },
	{ .name = "token-file", .group = "hosts", .type = OPT_STRING, .offset = AT(token_file), .metavar = "FILE",
	  .per_host = true, .needs = "join|cluster", .def_words = "RAMPART_TOKEN of the environment",
	  .help = "File whose first line is the token of the etcd, instead of ?token=SECRET in the URL.",
	  .more = "See docs/cluster.md, \"The token\"." },
	{ .name = "total-inflight", .group = "load", .type = OPT_UINT, .offset = AT(total_inflight), .min = 1,
	  .max = 1000000, .metavar = "N", .excludes = "rate,rate-per-client", .def_words = "no limit but --inflight",
	  .help = "Operations that all active clients together keep in flight, however many clients there are.",
	  .more = "When an operation ends, the next client in turn begins one. Each thread has its part of N, at least "
	  "1, for its own clients. `--inflight` is then the most that one client has in flight, by default N, but at "
	  "most 128. Not with `--coalesce`, nor with the workloads `connect`, `idle` and `duplex`." },
	{ .name = "trace", .group = "output", .type = OPT_STRING, .offset = AT(trace), .metavar = "FILE",
	  .excludes = "lead,join,cluster", .per_host = true, .per_suite = true,
	  .help = "Write the times of every measured operation to FILE, comma-separated.",
	  .more = "A title line, then a line for each operation: clients, bytes, repetition, client, operation, and "
	  "when it was due, was sent and ended, in ns since the run began. The times are kept in memory until the step "
	  "is over. With `--suite` and `--compare` each run writes a file of its own, with the run's name before the "
	  "ending: `raw.csv` becomes `raw-fabric-latency.csv`." },
	{ .name = "trace-max", .group = "output", .type = OPT_UINT, .offset = AT(trace_max), .min = 1,
	  .max = 1000000000, .metavar = "N", .def = "1000000", .needs = "trace", .per_host = true, .per_suite = true,
	  .help = "Maximum number of operations of a step that each worker keeps for --trace.",
	  .more = "Each takes 32 bytes. Operations beyond the maximum are only counted, and a line says how many." },
	TUNING_OPT_TRAFFIC_CLASS(TUNING_AT),
	{ .name = "transport", .group = "where", .type = OPT_CHOICE, .offset = AT(transport),
	  .choices = transport_choices, .metavar = "NAME", .def = "rdma", .common = true,
	  .help = "Send messages over RDMA, TCP or TLS.",
	  .more = "tcp is a TCP connection of the client's own, tls the connection of the bootstrap "
	  "(docs/workloads.md, \"Beside TCP\"). These two need no RDMA device, and serve the workloads echo, pingpong, "
	  "small, large with `--operation send`, duplex, connect and idle. A server of our own then serves that "
	  "transport alone. auto takes TCP if there is no RDMA device; then the terminal, run.json "
	  "(`config.transport_fell_back`) and the report say so; it is an error with several load hosts." },
	{ .name = "verify", .group = "load", .type = OPT_FLAG, .offset = AT(verify), .common = true,
	  .help = "Check every payload byte, and every PSN against what the device holds.",
	  .more = "A server of our own checks as well (docs/workloads.md)." },
	{ .name = "warmup", .group = "time", .type = OPT_DURATION, .offset = AT(warmup_ns), .min = 0,
	  .max = 3600 * NS_PER_S, .metavar = "SECONDS", .def = "1",
	  .help = "Time of traffic before the measured time; it is not measured." },
	{ .name = "warmup-iterations", .group = "time", .type = OPT_UINT, .offset = AT(warmup_iterations), .min = 0,
	  .max = 1000000000, .metavar = "N", .def_words = "a tenth of --iterations, at least 1", .needs = "iterations",
	  .help = "Operations of each client before the measured ones, instead of --warmup." },
	{ .name = "workload", .group = "load", .type = OPT_CHOICE, .offset = AT(workload),
	  .choices = loadgen_workload_names, .metavar = "NAME", .def = "echo", .common = true,
	  .help = "What connected clients do (docs/workloads.md)." },
};

const struct opts_spec loadgen_options = {
	.program = "performance_test",
	.hidden = "from",
	.usage = "[report DIR | doctor | plan] [options]",
	.summary = "Ramps up the number of RDMA clients on a rampart server, or one that it starts, and holds all\n"
		   "clients of a step connected at once. Measures connecting, throughput, latency and resources.\n"
		   "report says what a run found, doctor whether this machine is ready for RDMA, and plan what a run\n"
		   "with these options would need; each has a --help of its own.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.groups = groups,
	.n_groups = sizeof(groups) / sizeof(groups[0]),
	.epilog = "Exit status: 0 all criteria met; 1 a criterion failed, or a server or host was lost; 2 usage;\n"
		  "3 the environment cannot run it, no server answers, or a file could not be written (the message\n"
		  "says what to do); 4 inconclusive; 130 interrupted (results kept).",
};

const struct opts_spec loadgen_plan_options = {
	.program = "performance_test plan",
	.hidden = "compare,compare-set,suite,junit,lead,join,cluster",
	.usage = "[options of a run]",
	.summary = "Says what --clients of a run with these options would need on each host, what runs out first, and\n"
		   "what to set. It uses the limits of devices, processes and machines and the settings of the\n"
		   "server that performance_test would start or that runs on --server. Connects no client, except\n"
		   "with --from measure. Takes the options of a run except --compare, --compare-set, --suite,\n"
		   "--junit, --lead, --join and --cluster; --json writes the plan.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.groups = groups,
	.n_groups = sizeof(groups) / sizeof(groups[0]),
	.epilog = "Exit status: 0 the clients fit, 1 they do not, 2 usage, 3 it cannot be known (the message says\n"
		  "why) or --json could not be written.",
};
