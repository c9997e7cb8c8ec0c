/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the path to a server. See server.h.
 *
 * Each transport is tried with the module that clients use, so what fails here would fail in a run. */
#include "loadgen/doctor/server.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#include "client/client.h"
#include "client/resolve.h"
#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/rdma/ep.h"
#include "common/rdma/pump.h"
#include "common/rdma/tuning.h"
#include "common/wire/msg.h"

#define SMALL_BYTES 64u
#define LARGE_BYTES 4096u	/* rdma_server's --message-size; four times a packet at an RDMA MTU of 1024 */
#define ANSWER_NS (5 * NS_PER_S)	/* a reply that takes longer counts as lost */
#define STAGE_NS (10 * NS_PER_S)
#define HEADERS_BYTES 84	/* most headers of a RoCE packet over IPv6 */

/* One transport that is being tried. */
struct trial {
	const struct server_way *way;
	struct findings *out;
	enum transport transport;
	struct ev_loop *loop;
	struct client_ctx *ctx;
	struct client_conn *conn;
	ev_timer answer;		/* runs while a reply is due */
	struct hist *rtt;
	uint64_t until_ns, sent_ns, connected_ns;
	uint32_t sent, received;
	bool large;			/* the last message is a large one */
	bool large_came;
	bool live, closed;
	struct fail fail;
	char words[FRAME_REFUSE_TEXT_MAX + 1], tls[96];
};

static void send_next(struct trial *t)
{
	const struct msg_header h = { .type = MSG_ECHO, .sequence = ++t->sent };
	uint32_t buf = ep_buf_get(client_ep(t->ctx)), bytes = t->large ? LARGE_BYTES : SMALL_BYTES;

	if (buf == EP_NO_BUF) {
		client_close(t->conn);
		return;
	}
	memset(ep_buf(client_ep(t->ctx), buf), 0, bytes);
	t->sent_ns = clock_now_ns();
	ev_now_update(t->loop);
	ev_timer_stop(t->loop, &t->answer);
	ev_timer_set(&t->answer, (double)ANSWER_NS / 1e9, 0.);
	ev_timer_start(t->loop, &t->answer);
	client_send(t->conn, &h, buf, bytes);
}

static void on_live(void *arg, struct client_conn *c)
{
	struct trial *t = arg;
	struct client_info info;

	client_get_info(c, &info);
	t->live = true;
	t->connected_ns = info.total_ns;
	snprintf(t->tls, sizeof(t->tls), "%s", info.tls);
	t->until_ns = clock_now_ns() + t->way->ping_ns;
	send_next(t);
}

/* Sends small messages until the time is over, and then one large message. */
static void on_message(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	struct trial *t = arg;

	(void)sequence;
	(void)data;
	t->received++;
	if (t->large) {
		t->large_came = bytes == LARGE_BYTES;
		client_close(c);
		return;
	}
	hist_record(t->rtt, clock_now_ns() - t->sent_ns);
	t->large = clock_now_ns() >= t->until_ns;
	send_next(t);
}

/* The connection has one message in flight, and its reply counts as lost now. */
static void on_answer(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct trial *t = w->data;

	(void)loop;
	(void)revents;
	client_close(t->conn);
}

static void on_closed(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct trial *t = arg;
	struct client_info info;

	client_get_info(c, &info);
	if (!*t->tls)
		snprintf(t->tls, sizeof(t->tls), "%s", info.tls);
	snprintf(t->words, sizeof(t->words), "%s", info.words);
	t->fail = *fail;
	t->closed = true;
	ev_timer_stop(t->loop, &t->answer);
	pump_break(client_pump(t->ctx));
}

static const struct client_ops ops = { .on_live = on_live, .on_message = on_message, .on_closed = on_closed };

static const char *const checks[] = { "ping-rdma", "ping-tcp", "ping-tls" };

static const char why_ping[] = "Clients of a run connect and send in the same way.";

static void say_failure(const struct trial *t)
{
	const char *name = transport_names[t->transport];
	char code[96];
	bool refused = t->fail.kind == FAIL_REFUSED && t->fail.code == REFUSE_UNSUPPORTED;

	findings_add(t->out, checks[t->transport], refused ? FINDING_NOTE : FINDING_WRONG, fail_advice(&t->fail),
		     "%s to %s: %s at %s%s%.120s", name, t->way->host, fail_code_text(&t->fail, code, sizeof(code)),
		     stage_names[t->fail.stage],
		     *t->words ? ": " : "", t->words);
}

static void say_pings(const struct trial *t)
{
	const char *name = transport_names[t->transport], *check = checks[t->transport];
	uint32_t lost = t->sent - t->received;

	if (t->fail.kind != FAIL_NONE)
		say_failure(t);
	else if (hist_count(t->rtt) == 0 || (lost && !t->large))
		findings_add(t->out, check, FINDING_WRONG, why_ping, "%s to %s: message %u got no reply within %.0f s",
			     name, t->way->host, t->sent, (double)ANSWER_NS / 1e9);
	else
		findings_add(t->out, check, FINDING_FINE, NULL,
			     "%s to %s: %llu replies, none lost, p50 %.1f us, p99 %.1f us; connected in "
			     "%.1f ms", name, t->way->host, (unsigned long long)hist_count(t->rtt),
			     hist_percentile(t->rtt, 50) / 1e3,
			     hist_percentile(t->rtt, 99) / 1e3, (double)t->connected_ns / 1e6);
	if (t->large && !t->large_came && t->fail.kind != FAIL_REFUSED)
		findings_add(t->out, "path-mtu", FINDING_WRONG,
			     "A device between the hosts accepts only smaller packets than the hosts send.",
			     "%s to %s: messages of %u bytes arrive, but messages of %u bytes do not", name,
			     t->way->host, SMALL_BYTES, LARGE_BYTES);
}

static void say_tls(const struct trial *t)
{
	char code[96];

	if (*t->tls)
		findings_add(t->out, "tls", FINDING_FINE, NULL, "TLS with %s: %s", t->way->host, t->tls);
	else if (t->fail.stage <= STAGE_TLS_HANDSHAKE)
		findings_add(t->out, "tls", FINDING_WRONG, fail_advice(&t->fail),
			     "no TLS with %s, port %llu: %s at %s%s%.120s", t->way->host,
			     (unsigned long long)t->way->port, fail_code_text(&t->fail, code, sizeof(code)),
			     stage_names[t->fail.stage], *t->words ? ": " : "", t->words);
}

/* The kernel's MTU of the path (ip(7), IP_MTU), without sending a packet. 0: not known. */
static int path_mtu(const struct addr *server)
{
	int v6 = server->ss.ss_family == AF_INET6, mtu = 0,
		fd = socket(server->ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(mtu);

	if (fd < 0)
		return 0;
	if (connect(fd, (const struct sockaddr *)&server->ss, server->len) ||
	    getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &len))
		mtu = 0;
	close(fd);
	return mtu;
}

static void say_path(const struct trial *t, const struct addr *server)
{
	int mtu = path_mtu(server), packet = 128 << client_dev(t->ctx)->port.active_mtu;

	if (!mtu)
		findings_add(t->out, "path-mtu", FINDING_UNKNOWN, NULL,
			     "the kernel does not know the MTU of the path to %s", t->way->host);
	else
		findings_add(t->out, "path-mtu", mtu < packet + HEADERS_BYTES ? FINDING_WRONG : FINDING_FINE,
			     "RDMA packets are not fragmented: larger ones are lost.",
			     "the path to %s accepts packets of %d bytes, RDMA packets carry up to %d", t->way->host,
			     mtu, packet);
}

static void run_trial(struct trial *t, struct client_config *cc)
{
	const char *name = transport_names[t->transport], *check = checks[t->transport];
	char err[512];

	if (client_ctx_new(cc, &ops, t, t->loop, &t->ctx, err, sizeof(err))) {
		findings_add(t->out, check, FINDING_WRONG, why_ping, "%s to %s: %.200s", name, t->way->host, err);
		return;
	}
	ev_timer_init(&t->answer, on_answer, 0., 0.);
	t->answer.data = t;
	t->conn = client_connect(t->ctx, clock_now_ns(), t);
	if (t->conn && pump_run(client_pump(t->ctx)) == 0 && t->closed)
		say_pings(t);
	else
		findings_add(t->out, check, FINDING_WRONG, why_ping, "%s to %s: the RDMA device stopped working", name,
			     t->way->host);
	if (t->transport == TRANSPORT_RDMA)
		say_path(t, &cc->server);
	client_ctx_free(t->ctx);
}

static void try_transport(const struct server_way *way, const struct addr *server, enum transport transport,
			  bool *tls_said, struct findings *out)
{
	struct trial t = { .way = way, .out = out, .transport = transport, .loop = ev_loop_new(EVFLAG_AUTO) };
	struct client_config cc = { .server = *server, .transport = transport,
				    .verify_name = way->name ? way->name : way->host, .ca_file = way->ca,
				    .cert_file = way->cert, .key_file = way->key, .device = way->device,
				    .message_bytes = LARGE_BYTES, .buffer_bytes = LARGE_BYTES, .depth = 1,
				    .max_conns = 1, .poll = POLL_EVENT, .stage_timeout_ns = STAGE_NS };
	struct tuning tuning = { .n_cpus = 0 };
	char err[256];

	tuning_defaults(&tuning);
	if (tuning_check(&tuning, err, sizeof(err)) || !t.loop || hist_new(&t.rtt)) {
		findings_add(out, checks[transport], FINDING_UNKNOWN, NULL, "this machine is out of memory");
	} else {
		cc.retry = tuning.retry;
		cc.inline_bytes = tuning.inline_bytes;
		run_trial(&t, &cc);
		if (t.closed && !*tls_said) {
			say_tls(&t);
			*tls_said = true;
		}
	}
	hist_free(t.rtt);
	if (t.loop)
		ev_loop_destroy(t.loop);
}

void server_check(const struct server_way *way, struct findings *out)
{
	struct addr server;
	bool tls_said = false;
	char err[256];

	if (resolve_host(way->host, (uint16_t)way->port, &server, err, sizeof(err))) {
		findings_add(out, "server", FINDING_WRONG, "A host without an address is unreachable.", "%.250s", err);
		return;
	}
	for (int i = 0; i < TRANSPORT_N; i++)
		try_transport(way, &server, (enum transport)i, &tls_said, out);
}
