/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of rdma_client: ping, send, write, read, info. See commands.h.
 *
 * With --reconnect a command that loses its connection continues on the next one: ping resends the message whose reply
 * is missing, the others start over.
 */
#include "client/cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rdma/ep.h"
#include "common/rdma/pump.h"
#include "common/hist/hist.h"
#include "common/wire/msg.h"

const char *const command_names[] = { "ping", "send", "write", "read", "info", NULL };

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void command_done(struct session *s, int exit_status)
{
	s->exit_status = exit_status;
	ev_timer_stop(s->loop, &s->timer);
	client_close(s->conn);
}

static void send_message(struct session *s, const char *text, uint32_t bytes)
{
	uint32_t buf = ep_buf_get(s->ep);
	uint8_t *p;

	if (buf == EP_NO_BUF) {
		log_error("no send buffer is free");
		command_done(s, 1);
		return;
	}
	p = ep_buf(s->ep, buf);
	for (uint32_t i = MSG_HEADER_BYTES; i < bytes; i++)
		p[i] = text ? (uint8_t)text[i - MSG_HEADER_BYTES] : (uint8_t)(i + s->sent);
	s->sent++;
	s->sent_ns = clock_now_ns();
	client_send(s->conn, &(struct msg_header){ .type = MSG_ECHO, .sequence = s->sent }, buf, bytes);
}

static void start_timer(struct session *s, uint64_t after_ns)
{
	ev_timer_stop(s->loop, &s->timer);
	ev_now_update(s->loop);
	ev_timer_set(&s->timer, (double)after_ns / 1e9, 0.);
	ev_timer_start(s->loop, &s->timer);
}

/* Waits for the answer, which must come within --timeout. */
static void await_answer(struct session *s)
{
	s->awaiting = true;
	start_timer(s, s->cfg->timeout_ns);
}

static void ping_next(struct session *s)
{
	/* The reply was lost with the connection: send the same message again. */
	if (s->sent > s->received) {
		s->sent--;
		s->repeated++;
	}
	send_message(s, NULL, (uint32_t)s->cfg->message_bytes);
	await_answer(s);
}

static void ping_summary(struct session *s);

static void on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct session *s = w->data;

	(void)loop;
	(void)revents;
	if (!s->conn) {
		command_connect(s);
		return;
	}
	if (!s->awaiting) {
		ping_next(s);
		return;
	}
	if (s->cfg->reconnect_ns) {
		client_fail(s->conn, FAIL_TIMEOUT, 0);
		return;
	}
	log_error("%s: no answer within %.1f s (--timeout)", s->cfg->host, (double)s->cfg->timeout_ns / 1e9);
	if (s->cfg->command == CMD_PING)
		ping_summary(s);
	command_done(s, 1);
}

static bool payload_is_right(const struct session *s, const uint8_t *data, uint32_t bytes)
{
	if (bytes != s->cfg->message_bytes)
		return false;
	for (uint32_t i = MSG_HEADER_BYTES; i < bytes; i++)
		if (data[i] != (uint8_t)(i + s->sent - 1))
			return false;
	return true;
}

static void print_percentile(const struct hist *h, const char *name, double p)
{
	if (hist_supports(h, p))
		printf(" %s=%.1f", name, us(hist_percentile(h, p)));
	else
		printf(" %s=n/a", name);
}

static void ping_summary(struct session *s)
{
	const struct hist *h = s->rtt;
	double loss = s->sent ? 100. * (double)(s->sent - s->received) / (double)s->sent : 0.;

	printf("--- %s echo statistics (%s) ---\n", s->cfg->host, transport_names[s->client->transport]);
	printf("%llu messages sent, %llu replies, %.0f%% loss\n", (unsigned long long)s->sent,
	       (unsigned long long)s->received, loss);
	if (s->outages)
		printf("%llu outages, without a connection for %.1f s (longest %.1f s), %llu messages sent again\n",
		       (unsigned long long)s->outages, (double)s->outage_sum_ns / 1e9, (double)s->outage_max_ns / 1e9,
		       (unsigned long long)s->repeated);
	if (hist_count(h) == 0)
		return;
	printf("round trip us: min=%.1f avg=%.1f max=%.1f", us(hist_min(h)), hist_mean(h) / 1e3,
	       us(hist_max(h)));
	print_percentile(h, "p50", 50);
	print_percentile(h, "p99", 99);
	printf("\n");
}

static void ping_reply(struct session *s, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	uint64_t rtt = clock_now_ns() - s->sent_ns;

	if (sequence != s->sent || !payload_is_right(s, data, bytes)) {
		log_error("reply %llu to message %llu: its %s not what was sent", (unsigned long long)sequence,
			  (unsigned long long)s->sent, sequence != s->sent ? "number is" : "bytes are");
		command_done(s, 1);
		return;
	}
	s->received++;
	hist_record(s->rtt, rtt);
	if (!s->cfg->quiet) {
		printf("%u bytes from %s: seq=%llu time=%.1f us\n", bytes, s->cfg->host,
		       (unsigned long long)sequence, us(rtt));
		fflush(stdout);
	}
	if (s->cfg->count && s->received >= s->cfg->count) {
		ping_summary(s);
		command_done(s, 0);
		return;
	}
	start_timer(s, s->cfg->interval_ns);
}

static void send_reply(struct session *s, const uint8_t *data, uint32_t bytes)
{
	size_t n = strlen(s->cfg->text);

	if (bytes != n + MSG_HEADER_BYTES || memcmp(data + MSG_HEADER_BYTES, s->cfg->text, n) != 0) {
		log_error("the reply is not what was sent");
		command_done(s, 1);
		return;
	}
	printf("%.*s\n", (int)n, (const char *)data + MSG_HEADER_BYTES);
	command_done(s, 0);
}

static void hexdump(const uint8_t *p, uint64_t n, uint64_t offset)
{
	for (uint64_t i = 0; i < n; i += 16) {
		printf("%08llx ", (unsigned long long)(offset + i));
		for (uint64_t j = i; j < i + 16; j++)
			j < n ? printf(" %02x", p[j]) : printf("   ");
		printf("  |");
		for (uint64_t j = i; j < i + 16 && j < n; j++)
			putchar(p[j] >= 0x20 && p[j] < 0x7f ? p[j] : '.');
		printf("|\n");
	}
}

static void one_sided(struct session *s, enum ibv_wr_opcode opcode, uint64_t bytes)
{
	struct rc_rma op = { .opcode = opcode, .local = ep_buf(s->ep, s->buf), .lkey = ep_lkey(s->ep),
			     .bytes = (uint32_t)bytes, .remote_addr = s->cfg->offset, .signal = true };
	int ret = client_rma(s->conn, &op, 1);

	if (ret == -EINVAL)
		log_error("--offset %llu and %llu bytes are not inside the region; allowed: 0 to %u together",
			  (unsigned long long)s->cfg->offset, (unsigned long long)bytes,
			  client_grant(s->conn)->region_bytes);
	else if (ret)
		log_error("the request could not be posted: %s", strerror(-ret));
	if (ret)
		command_done(s, ret == -EINVAL ? 2 : 1);
	else
		await_answer(s);
}

static uint64_t read_length(const struct session *s)
{
	uint32_t region = client_grant(s->conn)->region_bytes;

	if (s->cfg->command == CMD_WRITE)
		return strlen(s->cfg->text);
	if (s->cfg->length)
		return s->cfg->length;
	region = region < READ_DEFAULT_BYTES ? region : READ_DEFAULT_BYTES;
	return s->cfg->offset < region ? region - s->cfg->offset : 1;
}

static void start_one_sided(struct session *s)
{
	s->buf = ep_buf_get(s->ep);
	if (s->cfg->command == CMD_READ) {
		one_sided(s, IBV_WR_RDMA_READ, read_length(s));
		return;
	}
	memcpy(ep_buf(s->ep, s->buf), s->cfg->text, strlen(s->cfg->text));
	one_sided(s, IBV_WR_RDMA_WRITE, strlen(s->cfg->text));
}

static void on_rma(void *arg, struct client_conn *c, uint32_t n_done)
{
	struct session *s = arg;
	uint8_t *p = ep_buf(s->ep, s->buf);
	uint64_t n = read_length(s);

	(void)c;
	(void)n_done;
	s->awaiting = false;
	if (s->cfg->command == CMD_WRITE && !s->wrote) {
		s->wrote = true;
		memset(p, 0, n);
		one_sided(s, IBV_WR_RDMA_READ, n);
		return;
	}
	if (s->cfg->command == CMD_READ) {
		hexdump(p, n, s->cfg->offset);
		command_done(s, 0);
		return;
	}
	if (memcmp(p, s->cfg->text, n) != 0) {
		log_error("the region does not hold what was written");
		command_done(s, 1);
		return;
	}
	printf("%llu bytes written at offset %llu and read back\n", (unsigned long long)n,
	       (unsigned long long)s->cfg->offset);
	command_done(s, 0);
}

static json_t *stages_json(const struct client_info *i)
{
	json_t *o = json_object();

	for (int k = 0; k < STAGE_TIMED; k++)
		json_object_set_new(o, stage_names[k], json_integer((json_int_t)i->stage_ns[k]));
	json_object_set_new(o, "total", json_integer((json_int_t)i->total_ns));
	return o;
}

static const char *const only_rdma[] = { "rdma_address", "client_qpn", "server_qpn", "client_psn", "server_psn",
					   "cm_psn", "psn_verified", "device", NULL };

static void info_json(const struct session *s, const struct frame_grant *g, const struct client_info *i)
{
	char tls[ADDR_TEXT_MAX], rdma[ADDR_TEXT_MAX];
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o}",
		"transport", transport_names[s->client->transport], "tls_address", addr_text(&s->client->server, tls),
		"tls", i->tls, "rdma_address", addr_text(&g->rdma, rdma), "message_bytes", g->message_bytes,
		"credits", g->credits, "region_bytes", g->region_bytes,
		"client_qpn", i->client_qpn, "server_qpn", i->server_qpn, "client_psn", i->client_psn,
		"server_psn", g->psn, "cm_psn", i->cm_psn, "psn_verified", s->client->verify,
		"device", dev_json(client_dev(s->ctx)), "stages_ns", stages_json(i));

	/* Values that do not exist out of band, or over a socket: print null, not zero. */
	if (s->client->connect == CONNECT_OOB)
		json_object_set_new(o, "cm_psn", json_null());
	for (const char *const *name = only_rdma; *name && s->client->transport != TRANSPORT_RDMA; name++)
		json_object_set_new(o, *name, json_null());
	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	printf("\n");
	json_decref(o);
}

static void rdma_text(const struct session *s, const struct frame_grant *g, const struct client_info *i)
{
	const struct dev *d = client_dev(s->ctx);
	char a[ADDR_TEXT_MAX];

	printf("rdma         %s, QP 0x%06x here, 0x%06x there\n", addr_text(&g->rdma, a), i->client_qpn, i->server_qpn);
	printf("device       %s%s, path MTU %d\n", d->name, dev_is_software(d) ? " (software)" : "",
	       128 << d->port.active_mtu);
	printf("psn          0x%06x to the server, 0x%06x from it, both %s", i->client_psn, g->psn,
	       s->client->verify ? "read back from the device" : "programmed");
	if (s->client->connect == CONNECT_CM)
		printf(" (the CM's own would have been 0x%06x)", i->cm_psn);
	printf("\n");
}

static void info_text(const struct session *s, const struct frame_grant *g, const struct client_info *i)
{
	char a[ADDR_TEXT_MAX];

	printf("server       %s (%s)\n", addr_text(&s->client->server, a), i->tls);
	if (s->client->transport == TRANSPORT_RDMA)
		rdma_text(s, g, i);
	else
		printf("%-12s %s, without packet sequence numbers: TCP has its own\n",
		       transport_names[s->client->transport], addr_text(&g->rdma, a));
	printf("granted      messages of %u bytes, %u in flight, region of %u bytes (info asks for 1 in flight, no "
	       "region)\n", g->message_bytes, g->credits, g->region_bytes);
	printf("stages (us) ");
	for (int k = 0; k < STAGE_TIMED; k++)
		printf(" %s=%.0f", stage_names[k], us(i->stage_ns[k]));
	printf(" total=%.0f\n", us(i->total_ns));
}

static void end_outage(struct session *s)
{
	uint64_t outage_ns = backoff_end(&s->backoff, clock_now_ns());

	s->outages++;
	s->outage_sum_ns += outage_ns;
	s->outage_max_ns = outage_ns > s->outage_max_ns ? outage_ns : s->outage_max_ns;
	log_warn("%s: connected again after %.1f s", s->cfg->host, (double)outage_ns / 1e9);
}

static void on_live(void *arg, struct client_conn *c)
{
	struct session *s = arg;
	struct client_info info;

	client_get_info(c, &info);
	s->awaiting = s->wrote = false;
	if (s->backoff.lost_ns)
		end_outage(s);
	switch (s->cfg->command) {
	case CMD_PING:
		if (!s->cfg->quiet && !s->outages)
			printf("echo to %s over %s: %llu bytes of message, connected in %.1f ms\n", s->cfg->host,
			       transport_names[s->client->transport], (unsigned long long)s->cfg->message_bytes,
			       (double)info.total_ns / 1e6);
		ping_next(s);
		break;
	case CMD_SEND:
		send_message(s, s->cfg->text, (uint32_t)strlen(s->cfg->text) + MSG_HEADER_BYTES);
		await_answer(s);
		break;
	case CMD_WRITE:
	case CMD_READ:
		start_one_sided(s);
		break;
	case CMD_INFO:
		(s->cfg->json ? info_json : info_text)(s, client_grant(c), &info);
		command_done(s, 0);
		break;
	}
}

static void on_message(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data,
		       uint32_t bytes)
{
	struct session *s = arg;

	(void)c;
	s->awaiting = false;
	if (s->cfg->command == CMD_PING)
		ping_reply(s, sequence, data, bytes);
	else
		send_reply(s, data, bytes);
}

static void release_buffer(struct session *s)
{
	if (s->buf != EP_NO_BUF)
		ep_buf_put(s->ep, s->buf);
	s->buf = EP_NO_BUF;
}

/* True if another attempt follows the connection or attempt that ended with `fail`. */
static bool try_again(struct session *s, const struct fail *fail)
{
	uint64_t now = clock_now_ns(), at;
	char code[96];

	if (!backoff_next(&s->backoff, fail, s->cfg->reconnect_ns, now, &at))
		return false;
	log_warn("%s: failed at %s: %s; connecting again in %.1f s", s->cfg->host, stage_names[fail->stage],
		 fail_code_text(fail, code, sizeof(code)), (double)(at - now) / 1e9);
	release_buffer(s);
	s->conn = NULL;
	start_timer(s, at - now);
	return true;
}

static void on_lost(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct session *s = arg;

	(void)c;
	(void)fail;
	ev_timer_stop(s->loop, &s->timer);
	backoff_begin(&s->backoff, clock_now_ns());
}

static void on_closed(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct session *s = arg;
	struct client_info info;
	char code[96];

	client_get_info(c, &info);
	if (fail->kind != FAIL_NONE) {
		if (try_again(s, fail))
			return;
		log_error("%s: failed at %s: %s%s%s (%s)", s->cfg->host, stage_names[fail->stage],
			  fail_code_text(fail, code, sizeof(code)), info.words[0] ? ": " : "", info.words,
			  fail_advice(fail));
		s->exit_status = 1;
		if (s->cfg->command == CMD_PING && s->sent)
			ping_summary(s);
	}
	release_buffer(s);
	ev_timer_stop(s->loop, &s->timer);
	pump_break(client_pump(s->ctx));
}

const struct client_ops command_ops = {
	.on_live = on_live,
	.on_message = on_message,
	.on_rma = on_rma,
	.on_lost = on_lost,
	.on_closed = on_closed,
};

void command_connect(struct session *s)
{
	static const struct fail no_qp = { .stage = STAGE_TCP_CONNECT, .kind = FAIL_ERRNO, .code = EAGAIN };

	if (!s->timer.data) {
		ev_init(&s->timer, on_timer);
		s->timer.data = s;
	}
	s->conn = client_connect(s->ctx, clock_now_ns(), NULL);
	if (s->conn || try_again(s, &no_qp))
		return;
	log_error("%s: no queue pair is free: those of earlier connections are still in quarantine; try again in a few "
		  "seconds%s", s->cfg->host, s->cfg->reconnect_ns ? ", or with a longer --reconnect" : "");
	s->exit_status = 1;
	pump_break(client_pump(s->ctx));
}

/* Ends the command between two attempts to connect. */
static void interrupt_outage(struct session *s)
{
	s->exit_status = 130;
	if (s->cfg->command == CMD_PING) {
		ping_summary(s);
		s->exit_status = s->received ? 0 : 1;
	}
	pump_break(client_pump(s->ctx));
}

void command_interrupt(struct session *s)
{
	if (!s->conn) {
		interrupt_outage(s);
		return;
	}
	if (client_is_closing(s->conn)) {
		/* Only the server's answer to the close is missing: exit without it. */
		pump_break(client_pump(s->ctx));
		return;
	}
	if (s->cfg->command == CMD_PING && client_is_live(s->conn)) {
		ping_summary(s);
		command_done(s, s->received ? 0 : 1);
		return;
	}
	command_done(s, 130);
}
