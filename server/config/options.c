/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_server's table of options. No I/O. See config.h. */
#include "server/config/config.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rdma/ep.h"
#include "common/rdma/pump.h"
#include "common/wire/frame.h"

static const char *const off_on_names[] = { "off", "on", NULL };
static const char *const client_auth_names[] = { "none", "require", NULL };

static const struct opts_group groups[] = {
	{ "serve", "Where to serve, and with what" },
	{ "limits", "What clients may take, and how long" },
	{ "security", "Certificates and privileges" },
	{ "data", "Data path" },
	{ "output", "Output" },
};

#define AT(field) offsetof(struct server_config, field)
#define TUNING_AT(field) offsetof(struct server_config, tuning.field)

static const struct opt options[] = {
	TUNING_OPT_ACK_TIMEOUT(TUNING_AT),
	{ .name = "allow-names", .group = "security", .type = OPT_STRING, .offset = AT(allow_names),
	  .metavar = "NAME,...", .def_words = "all", .needs = "client-auth=require",
	  .help = "A client's certificate must have one of these names.",
	  .more = "DNS names, IP addresses and URIs, as subject alternative names. `*.example.org` stands for names "
	  "with one label in place of the `*`. Clients with other names are refused as `not_allowed`." },
	{ .name = "allow-redirect", .group = "security", .type = OPT_FLAG, .offset = AT(allow_redirect),
	  .help = "Let clients with --connect oob name an RDMA address other than that of their TLS connection.",
	  .more = "For clients behind network address translation, whose TLS connection comes from another address "
	  "than their RDMA packets. Looking up an address that is not in use can stop a shard for up to a second, "
	  "and packets go to whichever host the client names; so use it together with `--client-auth require`." },
	{ .name = "bind", .group = "serve", .type = OPT_STRING, .offset = AT(bind), .metavar = "ADDR,...",
	  .common = true, .def_words = "the RDMA device's", .help = "IP address to serve on, for TLS and RDMA.",
	  .more = "It must belong to an RDMA device; the unspecified address is not allowed. Without this option: an "
	  "address in the GID table of `--device`, or of the first device with an active port; IPv4 comes before IPv6. "
	  "A list, of at most 8, has an address for each device of `--device`, in the same order; without `--device` "
	  "the addresses decide which devices. See \"Rails\" below." },
	{ .name = "ca", .group = "security", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE", .common = true,
	  .def_words = "build/certs/ca.pem", .help = "CA (PEM) of the clients' certificates.",
	  .more = "Read with `--client-auth require` only, and again at SIGHUP." },
	{ .name = "cert", .group = "security", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE",
	  .needs = "key", .common = true, .def_words = "build/certs/server.pem",
	  .help = "Server's certificate chain (PEM).",
	  .more = "Read again at SIGHUP; see \"Certificates\" below." },
	{ .name = "client-auth", .group = "security", .type = OPT_CHOICE, .offset = AT(client_auth), .common = true,
	  .choices = client_auth_names, .metavar = "MODE", .def = "none",
	  .help = "Whether clients need a certificate signed by --ca.",
	  .more = "This holds for control sessions too." },
	{ .name = "config", .group = "serve", .type = OPT_CONFIG, .offset = AT(config), .metavar = "FILE",
	  .common = true, .help = "File with further options; those of the command line replace them.",
	  .more = "See \"Configuration file\" below." },
	{ .name = "connect", .group = "serve", .type = OPT_STRING, .offset = AT(connect), .metavar = "NAME,...",
	  .def_words = "cm,oob", .help = "How RDMA clients may connect: rdmacm (cm), out of band over TLS (oob).",
	  .more = "Without cm the server has no RDMA port. A client that asks for another way is refused as "
	  "`unsupported`." },
	{ .name = "core-dumps", .group = "security", .type = OPT_CHOICE, .offset = AT(core_dumps),
	  .choices = off_on_names, .metavar = "on|off", .def = "off",
	  .help = "Whether a crash may leave a core file, and debuggers may attach.",
	  .more = "off: the server leaves no core file when it crashes, and other processes of its user cannot attach "
	  "to it or read its memory, which has private keys in it." },
	TUNING_OPT_CPU_LIST(TUNING_AT),
	TUNING_OPT_CQ_DEPTH(TUNING_AT),
	{ .name = "credits", .group = "limits", .type = OPT_UINT, .offset = AT(credits), .min = 1, .max = 128,
	  .common = true, .metavar = "N", .def = "16",
	  .help = "Maximum number of messages that one client may have in flight." },
	{ .name = "crl", .group = "security", .type = OPT_STRING, .offset = AT(crl), .metavar = "FILE",
	  .needs = "client-auth=require", .help = "Revocation lists (PEM) of all CAs of clients' certificates.",
	  .more = "Whole lists, no delta lists. Each CA in the chain of a client's certificate needs a list that is "
	  "not out of date; otherwise the client is refused. Give the certificates of intermediate CAs in `--ca`, too: "
	  "if only clients send them, a long list makes each handshake longer. Read again at SIGHUP." },
	{ .name = "device", .group = "serve", .type = OPT_STRING, .offset = AT(device), .metavar = "NAME,...",
	  .common = true, .def_words = "the first active one", .help = "RDMA devices to serve on, at most 8.",
	  .more = "With `--bind`, the address must be this device's. Each device of a list is a rail. See \"Rails\" "
	  "below." },
	{ .name = "drain-timeout", .group = "limits", .type = OPT_DURATION, .offset = AT(drain_timeout_ns), .min = 0,
	  .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "5",
	  .help = "Longest time for clients to get their answers and leave after SIGTERM or SIGINT.",
	  .more = "Clients that are still there then are cut off." },
	TUNING_OPT_DSCP(TUNING_AT),
	TUNING_OPT_GID_INDEX(TUNING_AT),
	{ .name = "handshake-timeout", .group = "limits", .type = OPT_DURATION, .offset = AT(handshake_timeout_ns),
	  .min = 10 * NS_PER_MS, .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time for a TLS handshake, and as much again for the request that follows.",
	  .more = "Writing the answer may take this long again." },
	TUNING_OPT_INLINE(TUNING_AT),
	{ .name = "key", .group = "security", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE", .needs = "cert",
	  .common = true, .def_words = "build/certs/server.key",
	  .help = "Private key (PEM) of --cert.", .more = "It must have no passphrase. Read again at SIGHUP." },
	{ .name = "log-format", .group = "output", .type = OPT_CHOICE, .offset = AT(log_format),
	  .choices = log_format_names, .metavar = "FORMAT", .def = "text",
	  .help = "How log lines are written: text, json or logfmt.",
	  .more = "json and logfmt are for programs that collect logs: one line for each event, with `time`, `level`, "
	  "`program` and `message`, and `shard`, `connection`, `peer`, `stage`, `reason` and `advice` where they are "
	  "known. Under systemd each line begins with its priority, in every format." },
	{ .name = "log-level", .group = "output", .type = OPT_CHOICE, .offset = AT(log_level),
	  .choices = log_level_names, .metavar = "LEVEL", .def = "info", .common = true,
	  .help = "Which messages to log to stderr." },
	{ .name = "max-clients", .group = "limits", .type = OPT_UINT, .offset = AT(max_clients), .min = 1,
	  .max = 200000, .metavar = "N", .def = "1024", .common = true,
	  .help = "Maximum number of clients at once, on each rail.",
	  .more = "A client counts from its grant on. Clients above the maximum are refused as `full`." },
	{ .name = "max-handshakes", .group = "limits", .type = OPT_UINT, .offset = AT(max_handshakes), .min = 1,
	  .max = 65536, .metavar = "N", .def = "512",
	  .help = "Maximum number of TLS connections of a shard that are open at once.",
	  .more = "A connection counts until TLS is closed. Above the maximum new connections wait, or connections of "
	  "the address that has the most are closed for them (docs/security.md, \"Flooding\"). A control session "
	  "counts until its first request; 64 may be open in all, and 16 more, each of an address that has no other." },
	{ .name = "max-per-address", .group = "limits", .type = OPT_UINT, .offset = AT(max_per_address), .min = 0,
	  .max = 200000, .metavar = "N", .def = "0",
	  .help = "Maximum number of TLS connections, of clients and of control sessions of one address; 0: no limit.",
	  .more = "Each of the three is counted on its own, in total over all shards and rails; TCP connections that "
	  "wait for a place count as TLS connections. An IPv6 /64 is one address. Above the limit TLS connections are "
	  "closed, clients are refused as `full`, and control sessions as `busy`. With 0 there are as many as there is "
	  "room for." },
	{ .name = "message-size", .group = "limits", .type = OPT_SIZE, .offset = AT(message_bytes), .common = true,
	  .min = FRAME_MESSAGE_BYTES_MIN, .max = FRAME_MESSAGE_BYTES_MAX, .metavar = "BYTES", .def = "4k",
	  .help = "Largest message, with its header of 16 bytes." },
	{ .name = "metrics", .group = "output", .type = OPT_STRING, .offset = AT(metrics), .metavar = "[ADDR:]PORT",
	  .common = true, .def_words = "none", .help = "Where to serve metrics over HTTP, for Prometheus.",
	  .more = "The path is /metrics (docs/metrics.md). Without an address only programs on this machine can reach "
	  "it. There is no encryption and no password: give an address of a trusted network." },
	TUNING_OPT_NUMA(TUNING_AT),
	TUNING_OPT_PATH_MTU(TUNING_AT),
	{ .name = "poll", .group = "data", .type = OPT_CHOICE, .offset = AT(poll), .choices = poll_mode_names,
	  .metavar = "MODE", .def = "event",
	  .help = "How threads wait for completions: sleep, spin, or spin before sleeping.",
	  .more = "event sleeps, busy spins, adaptive spins for `--spin` and then sleeps." },
	TUNING_OPT_POST_LIST(TUNING_AT),
	{ .name = "probe-interval", .group = "limits", .type = OPT_DURATION, .offset = AT(probe_interval_ns), .min = 0,
	  .max = 3600 * NS_PER_S, .metavar = "SECONDS", .def = "60",
	  .help = "Probe a client that is silent for this long, and close it if it is dead; 0: never.",
	  .more = "A client that has acknowledged nothing for two intervals is probed, too. A client is closed if its "
	  "host does not answer the probe. A host that has died is noticed within three intervals, a client that sends "
	  "and does not receive within four. Over TCP and TLS a client whose answers wait must take at least 1 KiB a "
	  "second, averaged over three intervals, or it is closed; with 0 this is not checked. With an interval below "
	  "`--ack-timeout` a single lost packet ends a connection; with one below the time that the retries take, the "
	  "reason is `timeout` and not `wc:retry_exceeded`." },
	{ .name = "rdma-port", .group = "serve", .type = OPT_UINT, .offset = AT(rdma_port), .min = 0, .max = 65535,
	  .common = true, .metavar = "PORT", .def = "7472",
	  .help = "RDMA port of the first shard; 0: the system chooses.",
	  .more = "The other shards of all rails have the ports after it." },
	TUNING_OPT_REALTIME(TUNING_AT),
	{ .name = "region-size", .group = "limits", .type = OPT_SIZE, .offset = AT(region_bytes), .min = 0,
	  .max = FRAME_REGION_BYTES_MAX, .metavar = "BYTES", .def = "4k",
	  .help = "One-sided memory for each client that asks for it; 0: none." },
	TUNING_OPT_RELAXED_ORDERING(TUNING_AT),
	TUNING_OPT_RETRY_COUNT(TUNING_AT),
	TUNING_OPT_RNR_RETRY(TUNING_AT),
	TUNING_OPT_RNR_TIMER(TUNING_AT),
	{ .name = "seccomp", .group = "security", .type = OPT_CHOICE, .offset = AT(seccomp), .choices = off_on_names,
	  .metavar = "on|off", .def = "off",
	  .help = "Whether to refuse system calls that the server does not need once it serves.",
	  .more = "on: they fail with EPERM (docs/security.md, \"Privileges\"). Uses "
	  "libseccomp." },
	TUNING_OPT_SERVICE_LEVEL(TUNING_AT),
	{ .name = "session-timeout", .group = "limits", .type = OPT_DURATION, .offset = AT(session_timeout_ns),
	  .min = 10 * NS_PER_MS, .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time from a GRANT to its RDMA connection." },
	TUNING_OPT_SIGNAL_EVERY(TUNING_AT),
	{ .name = "spin", .group = "data", .type = OPT_DURATION, .offset = AT(spin_ns), .min = NS_PER_US,
	  .max = NS_PER_S, .metavar = "TIME", .def = "50us",
	  .help = "How long to spin after the last completion (--poll adaptive)." },
	TUNING_OPT_SRQ_DEPTH(TUNING_AT),
	{ .name = "stats-interval", .group = "output", .type = OPT_DURATION, .offset = AT(stats_interval_ns), .min = 0,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "0",
	  .help = "Time between two lines of statistics on stderr, at any log level; 0: none." },
	TCP_OPT(AT(tcp_text)),
	{ .name = "threads", .group = "serve", .type = OPT_UINT, .offset = AT(threads), .min = 1, .max = 256,
	  .common = true, .metavar = "N", .def_words = "CPUs that it may use",
	  .help = "Threads (shards) to serve each device (rail).",
	  .more = "A shard is a thread with a loop and resources of its own. CPUs that it may use: those of its "
	  "affinity (`taskset`, cpusets) or, if that is less, the CPU quota of its control group, rounded up." },
	{ .name = "ticket-rotation", .group = "security", .type = OPT_DURATION, .offset = AT(ticket_rotation_ns),
	  .min = NS_PER_S, .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "3600",
	  .help = "Time after which session tickets get new keys.",
	  .more = "A ticket is valid for one to two times this." },
	{ .name = "tls-port", .group = "serve", .type = OPT_UINT, .offset = AT(tls_port), .min = 0, .max = 65535,
	  .common = true, .metavar = "PORT", .def = "7471",
	  .help = "TCP port of the TLS bootstrap; 0: the system chooses.", .more = "It is the same on all rails." },
	{ .name = "tls-resume", .group = "security", .type = OPT_CHOICE, .offset = AT(tls_resume),
	  .choices = off_on_names, .metavar = "on|off", .def = "on",
	  .help = "Whether clients that ask for session tickets get them." },
	TUNING_OPT_TRAFFIC_CLASS(TUNING_AT),
	{ .name = "transports", .group = "serve", .type = OPT_STRING, .offset = AT(transports), .metavar = "NAME,...",
	  .common = true, .def_words = "rdma,tcp,tls", .help = "How clients may send messages: rdma, tcp, tls.",
	  .more = "tcp: over a TCP connection for messages alone (ports numbered as `--rdma-port`); tls: over the TLS "
	  "connection of the bootstrap. Without `rdma` the server needs no RDMA device, and `--bind` may be any "
	  "address of the machine (by default all). A client that asks for another transport is refused as "
	  "`unsupported`." },
	{ .name = "verify", .group = "security", .type = OPT_FLAG, .offset = AT(verify),
	  .help = "Compare the packet sequence numbers of every connection with those in the device." },
	{ .name = "watch-certs", .group = "security", .type = OPT_FLAG, .offset = AT(watch_certs),
	  .help = "Read certificates, key and revocation lists again when their files change.",
	  .more = "The server looks at the files every 5 seconds, and reads changed ones once a look finds no further "
	  "change; symbolic links may be replaced, too. Otherwise it reads them again at SIGHUP only." },
	{ .name = "windows", .group = "limits", .type = OPT_CHOICE, .offset = AT(windows), .choices = off_on_names,
	  .metavar = "on|off", .def = "off",
	  .help = "Whether the server writes from a client's region to the client's memory when the client asks.",
	  .more = "The client's memory is then called a window. An answer with such a write takes two entries of a "
	  "send queue, so send queues are twice as long." },
};

const struct opts_spec server_options = {
	.program = "rdma_server",
	.usage = "[options]",
	.summary = "Serves RDMA clients that bootstrap over TLS 1.3: echoes their messages and gives each one that\n"
		   "asks a memory region for one-sided access. On SIGTERM or SIGINT it drains and stops;\n"
		   "on SIGHUP it reads its certificates again.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.groups = groups,
	.n_groups = sizeof(groups) / sizeof(groups[0]),
	.epilog = "Exit status: 0 stopped by a signal, 1 failed while running, 2 usage, 3 the environment\n"
		  "cannot run it (the message says what to do).",
};
