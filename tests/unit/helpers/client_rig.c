/* SPDX-License-Identifier: BSD-2-Clause */
/* A client context on the fake device and its scripted server. See client_rig.h. */
#include "tests/unit/helpers/client_rig.h"

#include "tests/unit/helpers/unit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/rdma/ep.h"
#include "common/base/log.h"
#include "common/wire/msg.h"
#include "common/tls/ticket_keys.h"
#include "common/tls/tls.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"

#define TURNS_MAX 500

struct client_rig cli;

static void on_live(void *arg, struct client_conn *c)
{
	assert_ptr_equal(arg, &cli);
	cli.live++;
	if (cli.on_live)
		cli.on_live(c);
}

static void on_message(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data,
		       uint32_t bytes)
{
	(void)arg;
	assert_int_equal(data[0], MSG_REPLY);
	cli.messages++;
	cli.sequence = sequence;
	cli.bytes = bytes;
	if (cli.on_message)
		cli.on_message(c);
}

static void on_pushed(void *arg, struct client_conn *c, uint64_t sequence, const uint8_t *data, uint32_t bytes)
{
	(void)arg;
	(void)c;
	assert_true(!data == !bytes);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], msg_pushed_byte(sequence, i));
	cli.pushed++;
	cli.pushed_bytes += bytes;
	cli.sequence = sequence;
}

static void on_rma(void *arg, struct client_conn *c, uint32_t n)
{
	(void)arg;
	cli.one_sided += (int)n;
	if (cli.on_one_sided)
		cli.on_one_sided(c);
}

static void on_draining(void *arg, struct client_conn *c)
{
	assert_ptr_equal(arg, &cli);
	(void)c;
	cli.draining++;
}

static void on_lost(void *arg, struct client_conn *c, const struct fail *fail)
{
	(void)arg;
	cli.lost++;
	cli.fail = *fail;
	if (cli.on_lost)
		cli.on_lost(c);
}

static void on_closed(void *arg, struct client_conn *c, const struct fail *fail)
{
	struct client_info info;

	(void)arg;
	client_get_info(c, &info);
	cli.closed++;
	cli.fail = *fail;
	cli.closed_conn = c;
	snprintf(cli.refuse_text, sizeof(cli.refuse_text), "%s", info.words);
	if (cli.on_closed)
		cli.on_closed(c);
}

static bool may_enter(void *arg, struct client_conn *c, enum stage stage)
{
	assert_ptr_equal(arg, &cli);
	return cli.may_enter(c, stage);
}

static const struct client_ops ops = { .on_live = on_live, .on_message = on_message, .on_pushed = on_pushed,
				       .on_rma = on_rma, .on_draining = on_draining, .on_lost = on_lost,
				       .on_closed = on_closed };
static const struct client_ops parking_ops = { .may_enter = may_enter, .on_live = on_live,
					       .on_message = on_message, .on_rma = on_rma,
					       .on_closed = on_closed };

int client_rig_group_setup(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);	/* as main does */
	log_init("client", getenv("RIG_DEBUG") ? LOG_LVL_DEBUG : LOG_LVL_ERROR);
	return certs_make(&cli.certs);
}

int client_rig_group_teardown(void **state)
{
	(void)state;
	certs_remove(&cli.certs);
	return 0;
}

static int listen_somewhere(struct addr *out)
{
	struct addr a;
	socklen_t len = sizeof(a.ss);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || addr_parse("127.0.0.1", 0, &a) || bind(fd, (struct sockaddr *)&a.ss, a.len) ||
	    listen(fd, 16) || getsockname(fd, (struct sockaddr *)&a.ss, &len))
		return -1;
	*out = a;
	return fd;
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

int client_rig_init(void **state)
{
	struct ticket_seed seed;
	struct tls_config tls = { .server = true, .cert_file = cli.certs.server_cert,
				  .key_file = cli.certs.server_key, .tickets = &seed };
	struct certs certs = cli.certs;
	char err[300];

	(void)state;
	fake_reset();
	memset(&cli, 0, sizeof(cli));
	cli.certs = certs;
	cli.cfg = (struct client_config){ .verify_name = "127.0.0.1", .ca_file = cli.certs.ca,
					  .message_bytes = 512, .buffer_bytes = 1024, .depth = 4, .rma_depth = 4,
					  .reads = 1, .inline_bytes = 220, .region = true, .verify = true,
					  .max_conns = 2, .poll = POLL_EVENT, .stage_timeout_ns = 30 * NS_PER_S };
	cli.listen_fd = listen_somewhere(&cli.cfg.server);
	cli.server_qpn = 0x999;
	cli.loop = ev_loop_new(EVFLAG_AUTO);
	ev_timer_init(&cli.tick, on_tick, 0.02, 0.02);
	ev_timer_start(cli.loop, &cli.tick);
	return cli.listen_fd < 0 || ticket_seed_new(clock_now_ns(), 3600 * NS_PER_S, &seed) ||
	       tls_ctx_new(&tls, &cli.server_ctx, err, sizeof(err)) ? -1 : 0;
}

void client_rig_start(void)
{
	char err[400] = "";
	struct ep_counts e;

	if (client_ctx_new(&cli.cfg, cli.may_enter ? &parking_ops : &ops, &cli, cli.loop, &cli.ctx, err, sizeof(err)))
		fail_msg("%s", err);
	ep_get_counts(cli.ctx->ep, &e);
	cli.bufs_free = e.bufs_free;
	cli.bufs_posted = e.bufs_posted;
}

int client_rig_stop(void **state)
{
	(void)state;
	client_ctx_free(cli.ctx);
	cli.ctx = NULL;
	tls_free(cli.tls);
	tls_ctx_free(cli.server_ctx);
	close(cli.listen_fd);
	ev_loop_destroy(cli.loop);
	fake_check();
	return 0;
}

void client_rig_again(void **state)
{
	client_rig_stop(state);
	assert_int_equal(client_rig_init(state), 0);
}

void client_turn(void)
{
	ev_run(cli.loop, EVRUN_NOWAIT);
}

void client_wait(void)
{
	ev_run(cli.loop, EVRUN_ONCE);
}

void client_expire(struct client_conn *c)
{
	assert_true(ev_is_active(&c->deadline));
	ev_timer_stop(cli.loop, &c->deadline);
	ev_feed_event(cli.loop, &c->deadline, EV_TIMER);
	client_turn();
	client_turn();
}

void client_finish_disconnect(struct client_conn *c)
{
	if (c->state == CLIENT_ST_CLOSING && c->cm_connected)
		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	client_until(cli.closed > 0);
}

void client_assert_all_back(void)
{
	struct qp_pool_counts q = { 0 };
	struct ep_counts e;

	for (int i = 0; i < 4; i++)
		client_turn();
	if (cli.ctx->qps) {	/* over RDMA */
		qp_pool_maintain(cli.ctx->qps, clock_now_ns() + 60 * NS_PER_S, 1000);
		qp_pool_get_counts(cli.ctx->qps, &q);
	}
	ep_get_counts(cli.ctx->ep, &e);
	assert_int_equal(cli.ctx->n_free, cli.cfg.max_conns);
	assert_int_equal(cli.ctx->demand, 0);
	assert_int_equal(q.in_use, 0);
	assert_int_equal(q.quarantined, 0);
	assert_int_equal(e.bufs_free, cli.bufs_free);
	assert_int_equal(e.bufs_posted, cli.bufs_posted);
	assert_int_equal(fake_cm_ids(), 0);
}

void client_assert_failed(enum stage stage, enum fail_kind kind, int code)
{
	client_until(cli.closed > 0);
	assert_int_equal(cli.closed, 1);
	assert_int_equal(cli.fail.stage, stage);
	assert_int_equal(cli.fail.kind, kind);
	assert_int_equal(cli.fail.code, code);
	client_assert_all_back();
	assert_int_equal(cli.closed, 1);
}

void script_accept(void)
{
	int fd, one = 1;

	assert_int_equal(poll(&(struct pollfd){ .fd = cli.listen_fd, .events = POLLIN }, 1, 2000),
			 1);
	fd = accept4(cli.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	assert_int_equal(tls_new(cli.server_ctx, fd, NULL, &cli.tls), 0);
	cli.has_hello = false;
}

void script_turn(void)
{
	client_turn();
	poll(&(struct pollfd){ .fd = tls_fd(cli.tls), .events = POLLIN }, 1, 10);
}

void script_handshake(void)
{
	enum tls_status st = TLS_WANT_READ;

	for (int i = 0; i < TURNS_MAX && st != TLS_DONE; i++) {
		script_turn();
		st = tls_handshake(cli.tls);
		assert_int_not_equal(st, TLS_FAILED);
		assert_int_not_equal(st, TLS_EOF);
	}
	assert_int_equal(st, TLS_DONE);
}

static bool read_all(uint8_t *buf, size_t n)
{
	size_t have = 0;

	for (int i = 0; i < TURNS_MAX && have < n; i++) {
		size_t got = 0;
		enum tls_status st = tls_read(cli.tls, buf + have, n - have, &got);

		if (st == TLS_EOF || st == TLS_FAILED)
			return false;
		if (st == TLS_DONE)
			have += got;
		else
			script_turn();
	}
	assert_int_equal(have, n);
	return true;
}

bool script_read_hello(void)
{
	uint8_t buf[FRAME_HELLO_BYTES];
	const char *why = "";

	if (!read_all(buf, sizeof(buf)))
		return false;
	if (frame_decode_hello(buf, sizeof(buf), &cli.hello, &why))
		fail_msg("%s", why);
	cli.has_hello = true;
	return true;
}

void script_send(const void *bytes, size_t n)
{
	size_t put;

	assert_int_equal(tls_write(cli.tls, bytes, n, &put), TLS_DONE);
	assert_int_equal(put, n);
	assert_int_equal(tls_flush(cli.tls), TLS_DONE);
}

void script_default_grant(void)
{
	struct frame_grant *g = &cli.grant;

	memset(g, 0, sizeof(*g));
	for (size_t i = 0; i < sizeof(g->session); i++)
		g->session[i] = (uint8_t)(i + 1);
	g->psn = 0xbeef01;
	g->message_bytes = 4096;
	g->credits = 4;
	g->features = cli.hello.features;
	assert_int_equal(addr_parse("127.0.0.1", 7472, &g->rdma), 0);
	g->expires_ms = 30000;
	if (cli.cfg.region) {
		g->region_addr = UINT64_C(0x7f0000001000);
		g->region_bytes = 4096;
		g->region_rkey = 0xabc123;
	}
}

void script_grant(void)
{
	uint8_t buf[FRAME_GRANT_BYTES];

	if (cli.grant.features & FRAME_FEATURE_TICKET)
		assert_int_equal(tls_send_ticket(cli.tls), 0);
	script_send(buf, frame_encode_grant(&cli.grant, buf));
	assert_int_equal(tls_export_key(cli.tls, AUTH_LABEL_CLIENT, cli.grant.session,
					FRAME_SESSION_BYTES, cli.keys.client, AUTH_KEY_BYTES),
			 0);
	assert_int_equal(tls_export_key(cli.tls, AUTH_LABEL_SERVER, cli.grant.session,
					FRAME_SESSION_BYTES, cli.keys.server, AUTH_KEY_BYTES),
			 0);
}

void script_hang_up(void)
{
	tls_free(cli.tls);
	cli.tls = NULL;
}

void script_proof(struct client_conn *c, uint8_t data[196])
{
	struct addr local, peer;
	struct auth_binding b = { .session = cli.grant.session, .client_qpn = rc_qpn(&c->link.rc),
				  .server_qpn = cli.server_qpn, .client = &local, .server = &peer };
	struct pdata_proof proof;

	memset(data, 0, 196);
	memcpy(proof.session, cli.grant.session, sizeof(proof.session));
	assert_int_equal(cm_addresses(c->link.rc.id, &local, &peer), 0);
	assert_int_equal(auth_hmac(NULL, cli.keys.server, &b, proof.hmac), 0);
	pdata_encode_proof(PDATA_REPLY, &proof, data);
}

void script_response(struct client_conn *c, const uint8_t *data, uint8_t bytes)
{
	fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, cli.server_qpn, data, bytes);
	client_turn();
}

bool script_reply(struct client_conn *c, uint32_t bytes, uint64_t sequence)
{
	struct msg_header h = {
		.type = MSG_REPLY, .credits = 1, .length = bytes, .sequence = sequence
	};
	uint8_t data[1024] = { 0 };
	bool ok;

	msg_encode(&h, data);
	ok = fake_deliver(c->link.rc.qp, data, bytes);
	client_turn();
	return ok;
}

void client_trigger(struct client_conn *c, enum client_state state)
{
	uint8_t data[196];

	switch ((int)state) {
	case CLIENT_ST_TCP_CONNECT:
		script_hang_up();
		script_accept();
		break;
	case CLIENT_ST_TLS_HANDSHAKE:
		script_handshake();
		break;
	case CLIENT_ST_PSN_EXCHANGE:
		script_default_grant();
		script_grant();
		break;
	case CLIENT_ST_ADDR_RESOLVE:
		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, 0, NULL, 0);
		client_turn();
		break;
	case CLIENT_ST_ROUTE_RESOLVE:
		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, 0, NULL, 0);
		client_turn();
		break;
	case CLIENT_ST_RDMA_CONNECT:
		script_proof(c, data);
		script_response(c, data, sizeof(data));
		break;
	case CLIENT_ST_FIRST_REPLY:
		assert_true(script_reply(c, MSG_HEADER_BYTES, 0));
		break;
	}
}

static void hear_hello(const struct client_conn *c)
{
	if (c->state == CLIENT_ST_PSN_EXCHANGE && !cli.has_hello)
		assert_true(script_read_hello());
}

void client_drive(struct client_conn *c, enum client_state state)
{
	hear_hello(c);
	while (c->state < state) {
		enum client_state before = c->state;

		client_trigger(c, before);
		client_until(c->state != before);
		hear_hello(c);
	}
	assert_int_equal(c->state, state);
}

struct client_conn *client_at(enum client_state state)
{
	struct client_conn *c;

	if (!cli.ctx)
		client_rig_start();
	c = client_connect(cli.ctx, clock_now_ns(), NULL);
	assert_non_null(c);
	if (cli.session)
		client_use_session(c, cli.session);
	if (cli.window)
		client_use_window(c, cli.window);
	client_drive(c, state);
	return c;
}

void client_rig_send(struct client_conn *c, uint32_t bytes, uint64_t sequence)
{
	uint32_t buf = ep_buf_get(cli.ctx->ep);

	assert_int_not_equal(buf, EP_NO_BUF);
	client_send(c, &(struct msg_header){ .type = MSG_ECHO, .sequence = sequence }, buf, bytes);
}

int client_rig_rma(struct client_conn *c, enum ibv_wr_opcode opcode, uint32_t buf, uint32_t bytes, uint64_t offset)
{
	struct rc_rma op = { .opcode = opcode, .local = ep_buf(cli.ctx->ep, buf), .lkey = ep_lkey(cli.ctx->ep),
			     .bytes = bytes, .remote_addr = offset, .signal = true };

	return client_rma(c, &op, 1);
}
