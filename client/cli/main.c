/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_client: one connection, one command. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/commands.h"
#include "client/resolve.h"
#include "common/base/build_info.h"
#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "common/wire/msg.h"
#include "common/base/opts.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "common/host/res.h"
#include "common/rdma/pump.h"
#include "common/rdma/tuning.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

#define AT(field) offsetof(struct command_config, field)
#define TUNING_AT(field) offsetof(struct command_config, tuning.field)

static const struct opt options[] = {
	TUNING_OPT_ACK_TIMEOUT(TUNING_AT),
	{ .name = "allow-redirect", .type = OPT_FLAG, .offset = AT(allow_redirect),
	  .help = "Connect even if the server's GRANT names another host than HOST.",
	  .more = "A server behind network address translation (NAT) sends such a GRANT. Without this option the "
	  "client fails (`protocol:redirected`)." },
	{ .name = "ca", .type = OPT_STRING, .offset = AT(ca), .metavar = "FILE", .def_words = "build/certs/ca.pem",
	  .help = "CA certificate (PEM) that the server's certificate must be signed with." },
	{ .name = "cert", .type = OPT_STRING, .offset = AT(cert), .metavar = "FILE", .needs = "key",
	  .help = "Certificate (PEM) to show to a server that asks for one." },
	{ .name = "connect", .type = OPT_CHOICE, .offset = AT(connect), .choices = connect_way_names,
	  .metavar = "cm|oob", .def = "cm", .help = "Connect through rdmacm (cm), or out of band over TLS (oob).",
	  .more = "oob: docs/protocol.md, \"Connecting out of band\"." },
	{ .name = "count", .type = OPT_UINT, .offset = AT(count), .min = 0, .max = UINT32_MAX, .metavar = "N",
	  .def = "0", .help = "ping: number of messages to send; 0: until interrupted." },
	{ .name = "crl", .type = OPT_STRING, .offset = AT(crl), .metavar = "FILE",
	  .help = "Revocation lists (PEM) of all CAs of the server's certificate.",
	  .more = "Whole lists, no delta lists." },
	{ .name = "device", .type = OPT_STRING, .offset = AT(device), .metavar = "NAME",
	  .def_words = "the one that reaches the server", .help = "RDMA device.",
	  .more = "The route to the server must lead through it." },
	TUNING_OPT_DSCP(TUNING_AT),
	TUNING_OPT_GID_INDEX(TUNING_AT),
	{ .name = "interval", .type = OPT_DURATION, .offset = AT(interval_ns), .min = 0, .max = 3600 * NS_PER_S,
	  .metavar = "SECONDS", .def = "1", .help = "ping: time from a reply to the next message." },
	{ .name = "json", .type = OPT_FLAG, .offset = AT(json), .help = "info: print JSON." },
	{ .name = "key", .type = OPT_STRING, .offset = AT(key), .metavar = "FILE", .needs = "cert",
	  .help = "Private key (PEM) of --cert." },
	{ .name = "length", .type = OPT_SIZE, .offset = AT(length), .min = 1, .max = 1 << 20, .metavar = "BYTES",
	  .def_words = "to the region's end, 32k at most", .help = "read: number of bytes to read." },
	{ .name = "log-level", .type = OPT_CHOICE, .offset = AT(log_level), .choices = log_level_names,
	  .metavar = "LEVEL", .def = "warn", .help = "Which messages to log to stderr." },
	{ .name = "message-size", .type = OPT_SIZE, .offset = AT(message_bytes), .min = FRAME_MESSAGE_BYTES_MIN,
	  .max = FRAME_MESSAGE_BYTES_MAX, .metavar = "BYTES", .def = "64",
	  .help = "ping: size of a message, with its header of 16 bytes." },
	{ .name = "offset", .type = OPT_SIZE, .offset = AT(offset), .min = 0, .max = 1 << 20, .metavar = "BYTES",
	  .def = "0", .help = "write, read: first byte in the region." },
	{ .name = "poll", .type = OPT_CHOICE, .offset = AT(poll), .choices = poll_mode_names, .metavar = "MODE",
	  .def = "event", .help = "How the client waits for completions: sleep, spin, or spin before sleeping." },
	{ .name = "quiet", .type = OPT_FLAG, .offset = AT(quiet), .help = "ping: print the summary only." },
	{ .name = "reconnect", .type = OPT_DURATION, .offset = AT(reconnect_ns), .min = 0, .max = 86400 * NS_PER_S,
	  .metavar = "SECONDS", .def = "0",
	  .help = "Try for this long to connect again if the connection is lost; 0: never.",
	  .more = "A reply that does not come within `--timeout` counts as a lost connection. The client goes through "
	  "the whole bootstrap. The pauses between attempts double from 100 ms to 10 s, and each is shortened by a "
	  "random part of up to a half. `ping` then resends the message whose reply is missing, and continues; the "
	  "other commands start over. The first connection is attempted only once." },
	TUNING_OPT_RETRY_COUNT(TUNING_AT),
	TUNING_OPT_RNR_RETRY(TUNING_AT),
	TUNING_OPT_RNR_TIMER(TUNING_AT),
	{ .name = "server-name", .type = OPT_STRING, .offset = AT(name), .metavar = "NAME", .def_words = "HOST",
	  .help = "Name or address that the server's certificate must have." },
	TUNING_OPT_SERVICE_LEVEL(TUNING_AT),
	{ .name = "timeout", .type = OPT_DURATION, .offset = AT(timeout_ns), .min = 10 * NS_PER_MS,
	  .max = 600 * NS_PER_S, .metavar = "SECONDS", .def = "10",
	  .help = "Longest time for each stage of connecting, and for a reply." },
	{ .name = "tls-port", .type = OPT_UINT, .offset = AT(port), .min = 1, .max = 65535, .metavar = "PORT",
	  .def = "7471", .help = "The server's TCP port." },
	TUNING_OPT_TRAFFIC_CLASS(TUNING_AT),
	{ .name = "transport", .type = OPT_CHOICE, .offset = AT(transport), .choices = transport_names,
	  .metavar = "NAME", .def = "rdma", .help = "Send messages over RDMA, TCP or TLS.",
	  .more = "tcp is a TCP connection that the client opens, tls the connection of the bootstrap. These two need "
	  "no RDMA device, and have no region." },
	{ .name = "verify", .type = OPT_FLAG, .offset = AT(verify),
	  .help = "Compare the packet sequence numbers with those in the device." },
};

static const struct opts_spec spec = {
	.program = "rdma_client",
	.usage = "[options] HOST ping | send TEXT | write TEXT | read | info",
	.summary = "Connects to a rampart server, and runs one of these commands:\n"
		   "  ping    sends messages and prints their round trips, p50 and p99 at the end\n"
		   "  send    sends TEXT and prints what comes back\n"
		   "  write   writes TEXT into the one-sided region and reads it back\n"
		   "  read    prints the one-sided region (a new connection's is all zero)\n"
		   "  info    prints what was negotiated, the device and the time of each stage",
	.opts = options,
	.n_opts = sizeof(options) / sizeof(options[0]),
	.epilog = "Exit status: 0 done, 1 the server refused, failed or did not answer, 2 usage, 3 the\n"
		  "environment cannot run it (the message says what to do), 130 interrupted.",
};

static int usage(const char *text)
{
	utf8_print_line(stderr, "rdma_client: %s (see --help)", text);
	return EXIT_USAGE;
}

static int parse_operands(struct command_config *c, int n, char **operands)
{
	int i = 0;
	bool wants_text;

	if (n < 1)
		return usage("HOST is missing");
	c->host = operands[0];
	if (n < 2)
		return usage("a command is missing; allowed: ping, send, write, read, info");
	while (command_names[i] && strcmp(command_names[i], operands[1]) != 0)
		i++;
	if (!command_names[i]) {
		utf8_print_line(stderr, "rdma_client: '%s' is not a command; allowed: ping, send, write, read, info",
				operands[1]);
		return EXIT_USAGE;
	}
	c->command = (enum command)i;
	wants_text = c->command == CMD_SEND || c->command == CMD_WRITE;
	if (n != (wants_text ? 3 : 2))
		return usage(wants_text ? "send and write take one TEXT" : "this command takes no operand");
	c->text = wants_text ? operands[2] : NULL;
	if (wants_text && (c->text[0] == '\0' ||
			   strlen(c->text) > FRAME_MESSAGE_BYTES_MAX - MSG_HEADER_BYTES))
		return usage("TEXT: must be 1 to 1048560 bytes");
	return EXIT_OK;
}

static int check_command(struct command_config *c, int argc, char **argv)
{
	static const struct {
		const char *option;
		unsigned commands;
	} only[] = {
		{ "count", 1 << CMD_PING }, { "interval", 1 << CMD_PING }, { "quiet", 1 << CMD_PING },
		{ "message-size", 1 << CMD_PING }, { "length", 1 << CMD_READ }, { "json", 1 << CMD_INFO },
		{ "offset", 1 << CMD_READ | 1 << CMD_WRITE },
	};
	char err[256];

	for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++) {
		if (opts_given(&spec, argc, argv, only[i].option) && !(only[i].commands >> c->command & 1)) {
			utf8_print_line(stderr, "rdma_client: --%s cannot be combined with %s", only[i].option,
					command_names[c->command]);
			return EXIT_USAGE;
		}
	}
	if (c->transport != TRANSPORT_RDMA && (c->command == CMD_WRITE || c->command == CMD_READ)) {
		utf8_print_line(stderr, "rdma_client: --transport %s has no one-sided region; %s needs rdma",
				transport_names[c->transport], command_names[c->command]);
		return EXIT_USAGE;
	}
	if (c->transport != TRANSPORT_RDMA && c->connect != CONNECT_CM)
		return usage("--connect oob: cannot be combined with --transport tcp or tls, which connect no queue "
			     "pairs");
	if (tuning_check(&c->tuning, err, sizeof(err)))
		return usage(err);
	return EXIT_OK;
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
	(void)loop;
	(void)revents;
	command_interrupt(w->data);
}

static void watch_signals(struct session *s)
{
	ev_signal_init(&s->interrupt, on_signal, SIGINT);
	s->interrupt.data = s;
	ev_signal_start(s->loop, &s->interrupt);
	ev_signal_init(&s->terminate, on_signal, SIGTERM);
	s->terminate.data = s;
	ev_signal_start(s->loop, &s->terminate);
}

static uint32_t buffer_bytes(const struct command_config *c)
{
	if (c->command == CMD_SEND)
		return (uint32_t)strlen(c->text) + MSG_HEADER_BYTES;
	return (uint32_t)c->message_bytes;
}

static uint32_t one_sided_bytes(const struct command_config *c)
{
	if (c->command == CMD_WRITE)
		return (uint32_t)strlen(c->text) < FRAME_MESSAGE_BYTES_MIN ? FRAME_MESSAGE_BYTES_MIN :
		       (uint32_t)strlen(c->text);
	return c->length > READ_DEFAULT_BYTES ? (uint32_t)c->length : READ_DEFAULT_BYTES;
}

static int run_command(const struct command_config *c, const struct client_config *cc)
{
	struct session s = { .cfg = c, .client = cc, .loop = ev_default_loop(0), .buf = EP_NO_BUF };
	char err[512];

	if (hist_new(&s.rtt)) {
		log_error("this machine is out of memory");
		return EXIT_ENVIRONMENT;
	}
	if (client_ctx_new(cc, &command_ops, &s, s.loop, &s.ctx, err, sizeof(err))) {
		log_error("%s", err);
		hist_free(s.rtt);
		return EXIT_ENVIRONMENT;
	}
	s.ep = client_ep(s.ctx);
	watch_signals(&s);
	command_connect(&s);
	if (pump_run(client_pump(s.ctx)))
		s.exit_status = EXIT_FAILED;
	client_ctx_free(s.ctx);
	hist_free(s.rtt);
	return s.exit_status;
}

static int connect_and_run(struct command_config *c)
{
	char ca[PATH_MAX], err[512];
	struct client_config cc = { .cert_file = c->cert, .key_file = c->key, .ca_file = c->ca,
				    .crl_file = c->crl, .device = c->device, .depth = 1, .rma_depth = 1, .reads = 1,
				    .inline_bytes = TUNING_INLINE_AUTO, .max_conns = 1, .poll = c->poll,
				    .spin_ns = 50 * NS_PER_US,
				    .allow_redirect = c->allow_redirect, .verify = c->verify, .cm_psn = true,
				    .transport = (enum transport)c->transport,
				    .connect = (enum connect_way)c->connect, .stage_timeout_ns = c->timeout_ns,
				    .retry = c->tuning.retry, .fabric = c->tuning.fabric,
				    .message_bytes = buffer_bytes(c), .verify_name = c->name ? c->name : c->host };

	cc.region = c->command == CMD_WRITE || c->command == CMD_READ;
	if (cc.region)
		cc.message_bytes = FRAME_MESSAGE_BYTES_MIN;
	cc.buffer_bytes = one_sided_bytes(c);
	if (!cc.region)
		cc.buffer_bytes = cc.message_bytes;
	if (!c->ca) {
		if (path_of_certificate("ca.pem", ca, sizeof(ca)))
			return usage("--ca: the default path is too long");
		cc.ca_file = ca;
	}
	if (resolve_host(c->host, (uint16_t)c->port, &cc.server, err, sizeof(err))) {
		log_error("%s", err);
		return EXIT_FAILED;
	}
	res_raise_memlock();
	return run_command(c, &cc);
}

int main(int argc, char **argv)
{
	struct command_config c = { .host = NULL };
	char err[512];
	int first, status;

	opts_defaults(&spec, &c);
	tuning_defaults(&c.tuning);
	opts_operands_last(&spec, argc, argv);
	switch (opts_parse(&spec, argc, argv, &c, &first, err, sizeof(err))) {
	case OPTS_HELP:
		opts_print_help(&spec, first < argc ? argv[first] : NULL, stdout);
		return EXIT_OK;
	case OPTS_VERSION:
		utf8_print_line(stdout, "rdma_client %s", build_info_text());
		return EXIT_OK;
	case OPTS_ERROR:
		opts_print_error(&spec, err, stderr);
		return EXIT_USAGE;
	case OPTS_OK:
		break;
	}
	status = parse_operands(&c, argc - first, argv + first);
	if (!status)
		status = check_command(&c, argc, argv);
	if (status)
		return status;
	log_init("rdma_client", (enum log_level)c.log_level);
	signal(SIGPIPE, SIG_IGN);
	log_start();
	status = connect_and_run(&c);
	log_stop();
	return status;
}
