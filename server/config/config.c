/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_server's option table. No I/O, but for an interface's index. */
#include "server/config/config.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/wire/frame.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/rdma/pump.h"
#include "common/tls/tls_names.h"

static const char *const off_on_names[] = { "off", "on", NULL };
static const char *const client_auth_names[] = { "none", "require", NULL };

#define AT(field) offsetof(struct server_config, field)
#define TUNING_AT(field) offsetof(struct server_config, tuning.field)

static const struct opt options[] = {
	TUNING_OPT_ACK_TIMEOUT(TUNING_AT),
	{ .name = "allow-names", .type = OPT_STRING, .offset = AT(allow_names), .metavar = "NAME,...",
	  .def = "all", .help = "With --client-auth require: DNS names (which may begin with *.), IP addresses and URIs of "
	  "which a client's certificate must have one." },
	{ .name = "bind", .type = OPT_STRING, .offset = AT(bind), .metavar = "ADDR,...",
	  .def = "the RDMA device's", .help = "IP address to serve on; it must belong to an RDMA device. "
	  "May be a list of up to 8, one for each --device, in the same order." },
	{ .name = "ca", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE",
	  .def = "build/certs/ca.pem", .help = "CA certificate that signs clients' certificates." },
	{ .name = "cert", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE",
	  .def = "build/certs/server.pem", .help = "Certificate chain of this server." },
	{ .name = "client-auth", .type = OPT_CHOICE, .offset = AT(client_auth),
	  .choices = client_auth_names, .metavar = "MODE", .def = "none",
	  .help = "Whether clients must show a certificate signed by --ca." },
	{ .name = "core-dumps", .type = OPT_CHOICE, .offset = AT(core_dumps), .choices = off_on_names,
	  .metavar = "on|off", .def = "off",
	  .help = "Whether a crash may leave a core file, which has keys in it, and debuggers may attach." },
	TUNING_OPT_CPU_LIST(TUNING_AT),
	TUNING_OPT_CQ_DEPTH(TUNING_AT),
	{ .name = "credits", .type = OPT_UINT, .offset = AT(credits), .min = 1, .max = 128,
	  .metavar = "N", .def = "16", .help = "Most messages that one client may have in flight." },
	{ .name = "crl", .type = OPT_STRING, .offset = AT(crl), .metavar = "FILE",
	  .help = "With --client-auth require: revocation lists of all CAs of clients' certificates." },
	{ .name = "device", .type = OPT_STRING, .offset = AT(device), .metavar = "NAME,...",
	  .def = "the first active one", .help = "RDMA device. May be a list of up to 8, each of which is a rail." },
	{ .name = "drain-timeout", .type = OPT_DURATION, .offset = AT(drain_timeout_ns),
	  .min = 0, .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "5",
	  .help = "Longest time for clients to get their answers and leave after SIGTERM or SIGINT." },
	TUNING_OPT_DSCP(TUNING_AT),
	TUNING_OPT_GID_INDEX(TUNING_AT),
	{ .name = "handshake-timeout", .type = OPT_DURATION, .offset = AT(handshake_timeout_ns),
	  .min = 10 * NS_PER_MS, .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time for a TLS handshake, and again for the request after it." },
	TUNING_OPT_INLINE(TUNING_AT),
	{ .name = "key", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE",
	  .def = "build/certs/server.key", .help = "Private key of --cert." },
	{ .name = "log-level", .type = OPT_CHOICE, .offset = AT(log_level), .choices = log_level_names,
	  .metavar = "LEVEL", .def = "info", .help = "What to log to stderr." },
	{ .name = "max-clients", .type = OPT_UINT, .offset = AT(max_clients), .min = 1, .max = 200000,
	  .metavar = "N", .def = "1024",
	  .help = "Clients connected at once, on each rail; more are refused as `full`." },
	{ .name = "max-handshakes", .type = OPT_UINT, .offset = AT(max_handshakes), .min = 1, .max = 65536,
	  .metavar = "N", .def = "512",
	  .help = "TLS connections, mostly handshakes, that a shard holds at once; more wait in the backlog." },
	{ .name = "max-per-address", .type = OPT_UINT, .offset = AT(max_per_address), .min = 0, .max = 200000,
	  .metavar = "N", .def = "0",
	  .help = "TLS connections, clients and control sessions that one address may have, each; 0: any number, but who "
	  "has most makes room for others." },
	{ .name = "message-size", .type = OPT_SIZE, .offset = AT(message_bytes),
	  .min = FRAME_MESSAGE_BYTES_MIN, .max = FRAME_MESSAGE_BYTES_MAX, .metavar = "BYTES",
	  .def = "4k", .help = "Largest message, 16-byte header included." },
	TUNING_OPT_NUMA(TUNING_AT),
	TUNING_OPT_PATH_MTU(TUNING_AT),
	{ .name = "poll", .type = OPT_CHOICE, .offset = AT(poll), .choices = poll_mode_names,
	  .metavar = "MODE", .def = "event",
	  .help = "How completions are waited for: sleep, spin, or spin for --spin before sleeping." },
	TUNING_OPT_POST_LIST(TUNING_AT),
	{ .name = "probe-interval", .type = OPT_DURATION, .offset = AT(probe_interval_ns), .min = 0,
	  .max = 3600 * NS_PER_S, .metavar = "SECONDS", .def = "60",
	  .help = "A client silent for this long, or that acknowledged nothing for twice as long, is probed, and "
		  "dropped if its host does not answer; 0 never." },
	{ .name = "rdma-port", .type = OPT_UINT, .offset = AT(rdma_port), .min = 0, .max = 65535,
	  .metavar = "PORT", .def = "7472",
	  .help = "RDMA port of the first shard; the others take the ports after it. 0 lets the system choose." },
	TUNING_OPT_REALTIME(TUNING_AT),
	{ .name = "region-size", .type = OPT_SIZE, .offset = AT(region_bytes), .min = 0,
	  .max = FRAME_REGION_BYTES_MAX, .metavar = "BYTES", .def = "4k",
	  .help = "One-sided memory for each client that asks for it; 0 offers none." },
	TUNING_OPT_RETRY_COUNT(TUNING_AT),
	TUNING_OPT_RNR_RETRY(TUNING_AT),
	TUNING_OPT_RNR_TIMER(TUNING_AT),
	{ .name = "seccomp", .type = OPT_CHOICE, .offset = AT(seccomp), .choices = off_on_names,
	  .metavar = "on|off", .def = "off",
	  .help = "Whether system calls that a serving server does not need are refused to it." },
	TUNING_OPT_SERVICE_LEVEL(TUNING_AT),
	{ .name = "session-timeout", .type = OPT_DURATION, .offset = AT(session_timeout_ns),
	  .min = 10 * NS_PER_MS, .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "30",
	  .help = "Longest time from GRANT until a client has made its RDMA connection." },
	TUNING_OPT_SIGNAL_EVERY(TUNING_AT),
	{ .name = "spin", .type = OPT_DURATION, .offset = AT(spin_ns), .min = NS_PER_US,
	  .max = NS_PER_S, .metavar = "TIME", .def = "50us",
	  .help = "With --poll adaptive: how long to spin after the last completion." },
	TUNING_OPT_SRQ_DEPTH(TUNING_AT),
	{ .name = "stats-interval", .type = OPT_DURATION, .offset = AT(stats_interval_ns), .min = 0,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "0",
	  .help = "Print a line of statistics to stderr this often; 0 never." },
	TCP_OPT(AT(tcp_text)),
	{ .name = "threads", .type = OPT_UINT, .offset = AT(threads), .min = 1, .max = 256,
	  .metavar = "N", .def = "online CPUs",
	  .help = "Shards of each rail; a shard is a thread with resources of its own." },
	{ .name = "ticket-rotation", .type = OPT_DURATION, .offset = AT(ticket_rotation_ns), .min = NS_PER_S,
	  .max = 86400 * NS_PER_S, .metavar = "SECONDS", .def = "3600",
	  .help = "Interval at which the keys of session tickets change; a ticket is valid for one to two of them." },
	{ .name = "tls-port", .type = OPT_UINT, .offset = AT(tls_port), .min = 0, .max = 65535,
	  .metavar = "PORT", .def = "7471",
	  .help = "TCP port of the TLS bootstrap, the same on all rails; 0 lets the system choose." },
	{ .name = "tls-resume", .type = OPT_CHOICE, .offset = AT(tls_resume), .choices = off_on_names,
	  .metavar = "on|off", .def = "on",
	  .help = "Whether clients that ask for it get session tickets and may resume with them." },
	TUNING_OPT_TRAFFIC_CLASS(TUNING_AT),
	{ .name = "transports", .type = OPT_STRING, .offset = AT(transports), .metavar = "NAME,...", .def = "rdma,tcp,tls",
	  .help = "How clients may send messages after the bootstrap: over RDMA, over TCP (ports numbered as --rdma-port), and "
	  "over the TLS connection of the bootstrap." },
	{ .name = "verify", .type = OPT_FLAG, .offset = AT(verify),
	  .help = "Read the packet sequence numbers of every connection back from the device and compare them." },
	{ .name = "windows", .type = OPT_CHOICE, .offset = AT(windows), .choices = off_on_names,
	  .metavar = "on|off", .def = "off",
	  .help = "Whether clients may have the server write parts of their region to their own memory." },
};

const struct opts_spec server_options = {
	.program = "rdma_server",
	.usage = "[options]",
	.summary = "Serves RDMA clients that bootstrap over TLS 1.3: echoes their messages and gives each one that\n"
		   "asks a memory region for one-sided access. On SIGTERM or SIGINT it drains and stops;\n"
		   "on SIGHUP it reads its certificates again.",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 stopped by a signal, 1 failed while running, 2 usage, 3 the environment\n"
		  "cannot run it (the message says what to do).",
};

void server_config_defaults(struct server_config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	memset(c, 0, sizeof(*c));
	c->tls_port = 7471;
	c->rdma_port = 7472;
	c->threads = cpus > 0 ? (uint64_t)cpus : 1;
	c->max_clients = 1024;
	c->message_bytes = 4096;
	c->credits = 16;
	c->region_bytes = 4096;
	c->spin_ns = 50 * NS_PER_US;
	c->log_level = LOG_LVL_INFO;
	c->handshake_timeout_ns = 30 * NS_PER_S;
	c->session_timeout_ns = 30 * NS_PER_S;
	c->probe_interval_ns = 60 * NS_PER_S;
	c->tls_resume = 1;
	c->ticket_rotation_ns = 3600 * NS_PER_S;
	c->drain_timeout_ns = 5 * NS_PER_S;
	c->max_handshakes = 512;
	c->n_rails = 1;
	c->transport_mask = TRANSPORTS_ALL;
	tuning_defaults(&c->tuning);
}

static int file_or_default(const char *given, const char *relative, char out[PATH_MAX])
{
	if (!given)
		return path_beside_program(relative, out, PATH_MAX);
	return snprintf(out, PATH_MAX, "%s", given) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* An interface's name behind a link-local address as its index, which is all that addr_parse knows. */
static const char *with_interface(const char *text, char *out, size_t size)
{
	const char *name = strchr(text, '%');
	unsigned index = name ? if_nametoindex(name + 1) : 0;

	if (!index)
		return text;
	snprintf(out, size, "%.*s%%%u", (int)(name - text), text, index);
	return out;
}

/* Parses the address of rail `i`, which must differ from those of the rails before it. */
static int take_addr(struct server_config *c, uint32_t i, const char *text, char *err, size_t err_size)
{
	struct addr *a = &c->rails[i].addr;
	char with_index[RAIL_NAME_BYTES + 16];

	if (addr_parse(with_interface(text, with_index, sizeof(with_index)), 0, a)) {
		snprintf(err, err_size, "--bind: '%s' is not an IPv4 or IPv6 address", text);
		return -EINVAL;
	}
	if (addr_is_any(a)) {
		snprintf(err, err_size, "--bind: %s is not allowed; RDMA needs the address of one device%s", text,
			 server_config_serves(c, TRANSPORT_RDMA) ? "" : ", and without it all addresses are served by default");
		return -EINVAL;
	}
	for (uint32_t j = 0; j < i; j++)
		if (addr_same_host(&c->rails[j].addr, a)) {
			snprintf(err, err_size, "--bind: %s is given twice; allowed: a different address for "
				 "each device", text);
			return -EINVAL;
		}
	return 0;
}

static int check_rails(struct server_config *c, char *err, size_t err_size)
{
	struct rail_names devices = { .n = 0 }, addrs = { .n = 0 };
	int ret = c->device ? rails_split("device", c->device, &devices, err, err_size) : 0;

	if (!ret && c->bind)
		ret = rails_split("bind", c->bind, &addrs, err, err_size);
	if (ret)
		return ret;
	if (devices.n && addrs.n && devices.n != addrs.n) {
		snprintf(err, err_size, "--device and --bind: %u and %u of them; allowed: an address for each "
			 "device, in the same order", devices.n, addrs.n);
		return -EINVAL;
	}
	memset(c->rails, 0, sizeof(c->rails));
	c->n_rails = MAX(MAX(devices.n, addrs.n), 1);
	for (uint32_t i = 0; i < devices.n; i++)
		memcpy(c->rails[i].device, devices.name[i], RAIL_NAME_BYTES);
	for (uint32_t i = 0; i < addrs.n && !ret; i++)
		ret = take_addr(c, i, addrs.name[i], err, err_size);
	return ret;
}

static int check_ports(const struct server_config *c, char *err, size_t err_size)
{
	uint32_t shards = server_config_shards(c);

	if (!c->rdma_port || c->rdma_port + shards - 1 <= 65535)
		return 0;
	snprintf(err, err_size, "--rdma-port: %llu and --threads %llu%s need ports above 65535; "
		 "allowed: 1 to %u, or 0", (unsigned long long)c->rdma_port,
		 (unsigned long long)c->threads, c->n_rails > 1 ? " on each rail" : "", 65536 - shards);
	return -EINVAL;
}

/* What is asked of clients' certificates. */
static int check_clients(const struct server_config *c, char *err, size_t err_size)
{
	if ((c->allow_names || c->crl) && c->client_auth != CLIENT_AUTH_REQUIRE) {
		snprintf(err, err_size, "--%s needs --client-auth require: else clients show no certificate",
			 c->allow_names ? "allow-names" : "crl");
		return -EINVAL;
	}
	return tls_names_check("allow-names", c->allow_names, err, err_size);
}

/* Without RDMA the server needs no device, and has no memory to give. */
static int check_without_rdma(struct server_config *c, char *err, size_t err_size)
{
	if (server_config_serves(c, TRANSPORT_RDMA))
		return 0;
	if (c->device) {
		snprintf(err, err_size, "--device: does not go with --transports %s, which has no rdma", c->transports);
		return -EINVAL;
	}
	c->region_bytes = 0;
	c->windows = 0;
	return 0;
}

int server_config_check(struct server_config *c, char *err, size_t err_size)
{
	int ret = c->transports ? transports_parse("transports", c->transports, &c->transport_mask, err, err_size) : 0;

	if (!ret)
		ret = tcp_parse(c->tcp_text, &c->sock.tcp, err, err_size);
	c->sock.pinned_max = (uint32_t)c->credits;
	if (!ret)
		ret = check_without_rdma(c, err, err_size);
	if (!ret)
		ret = check_rails(c, err, err_size);
	if (!ret)
		ret = check_ports(c, err, err_size);
	if (ret)
		return ret;
	if (!c->cert != !c->key) {
		snprintf(err, err_size, "--cert and --key: give both or neither");
		return -EINVAL;
	}
	if (file_or_default(c->cert, "build/certs/server.pem", c->cert_path) ||
	    file_or_default(c->key, "build/certs/server.key", c->key_path) ||
	    file_or_default(c->ca, "build/certs/ca.pem", c->ca_path)) {
		snprintf(err, err_size, "--cert, --key, --ca: a path is too long");
		return -EINVAL;
	}
	if (check_clients(c, err, err_size))
		return -EINVAL;
	return tuning_check(&c->tuning, err, err_size);
}
