/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's side of the server's tests: real TLS over loopback, a scripted connection manager.
 * See server_rig.h. */
#include "tests/unit/helpers/server_rig.h"

#include "tests/unit/helpers/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "common/wire/msg.h"
#include "common/tls/tls.h"
#include "server/shard/boot.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"

#define TURNS_MAX 500
#define WAIT_MS 20

/* The server's object of this TLS connection; NULL once it is free. */
static struct conn *conn_of(const struct peer *p)
{
	for (uint32_t i = 0; i < srv.cfg.shard_conns; i++) {
		struct conn *c = &srv.shard->conns[i];

		if (c->state != CONN_ST_FREE && addr_port(&c->peer) == addr_port(&p->local))
			return c;
	}
	return NULL;
}

/* Loopback delivers when it pleases: waits until there is something to read on either side, then
 * lets the server have a turn. */
static void turn_when_readable(const struct peer *p, bool our_side)
{
	const struct conn *c = conn_of(p);
	struct pollfd fds[2];
	nfds_t n = 0;

	if (c && c->io)
		fds[n++] = (struct pollfd){ .fd = tls_fd(c->io->tls), .events = POLLIN };
	if (our_side && p->tls)
		fds[n++] = (struct pollfd){ .fd = tls_fd(p->tls), .events = POLLIN };
	if (poll(fds, n, n ? WAIT_MS : 0) > 0 && fds[0].revents && c && c->io)
		server_wait();
	else
		server_turn();
}

static int open_socket(struct addr *local)
{
	struct addr server = srv.cfg.rails[0].addr, from;
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr_set_port(&server, srv.server.tls_port);
	assert_true(fd >= 0);
	if (srv.peers_from) {
		assert_int_equal(addr_parse(srv.peers_from, 0, &from), 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&from.ss, from.len), 0);
	}
	assert_int_equal(connect(fd, (struct sockaddr *)&server.ss, server.len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, local), 0);
	/* Two small writes in a row would wait for a delayed acknowledgement. */
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void start_peer(struct peer *p, int fd)
{
	static uint32_t next = 0x100;
	struct tls_config cfg = { .ca_file = srv.certs.ca, .resume = srv.peers_resume };
	char err[300];

	if (srv.peers_certified) {
		cfg.cert_file = srv.certs.client_cert;
		cfg.key_file = srv.certs.client_key;
	}
	p->psn = p->qpn = next++;
	p->version = FRAME_VERSION;
	if (tls_ctx_new(&cfg, &p->ctx, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(tls_new(p->ctx, fd, "127.0.0.1", &p->tls), 0);
	if (srv.offer)
		tls_offer_session(p->tls, srv.offer);
	p->rdma = p->local;
	addr_set_port(&p->rdma, (uint16_t)(50000 + p->qpn % 1000));
}

void peer_connect(struct peer *p)
{
	memset(p, 0, sizeof(*p));
	start_peer(p, open_socket(&p->local));
	poll(&(struct pollfd){ .fd = srv.shard->listen.fd, .events = POLLIN }, 1, 50 * WAIT_MS);
	server_turns(2);
}

void peers_connect(struct peer *p, int n)
{
	for (int i = 0; i < n; i++)
		peer_connect(&p[i]);
}

void peer_connect_pair(struct peer *p)
{
	struct conn *c;
	int fds[2];

	memset(p, 0, sizeof(*p));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	assert_int_equal(addr_parse("127.0.0.1", 9, &p->local), 0);
	assert_int_equal(conn_new(srv.shard, fds[0], &p->local, boot_on_ready, &c), 0);
	start_peer(p, fds[1]);
}

bool peer_handshake(struct peer *p)
{
	for (int i = 0; i < TURNS_MAX; i++) {
		enum tls_status st = tls_handshake(p->tls);
		const struct conn *c;

		if (st == TLS_FAILED || st == TLS_EOF)
			return false;
		(void)!tls_flush(p->tls);
		turn_when_readable(p, st != TLS_DONE);
		c = conn_of(p);
		if (st == TLS_DONE && (!c || c->state != CONN_ST_TLS_ACCEPT))
			return true;
	}
	fail_msg("the handshake does not end");
	return false;
}

void peer_send(struct peer *p, const void *bytes, size_t n)
{
	size_t put;

	assert_int_equal(tls_write(p->tls, bytes, n, &put), TLS_DONE);
	assert_int_equal(put, n);
	assert_int_equal(tls_flush(p->tls), TLS_DONE);
	turn_when_readable(p, false);
	server_turn();
}

/* Reads exactly n bytes. False when the server closed. */
static bool read_all(struct peer *p, uint8_t *buf, size_t n)
{
	size_t have = 0;

	for (int i = 0; i < TURNS_MAX && have < n; i++) {
		size_t got = 0;

		switch (tls_read(p->tls, buf + have, n - have, &got)) {
		case TLS_DONE:
			have += got;
			break;
		case TLS_MORE:
			break;
		case TLS_WANT_READ:
		case TLS_WANT_WRITE:
			turn_when_readable(p, true);
			break;
		case TLS_EOF:
		case TLS_FAILED:
			return false;
		}
	}
	if (have < n)
		fail_msg("the server says nothing");
	return true;
}

uint32_t peer_read_frame(struct peer *p, uint8_t *buf)
{
	struct frame_header h;

	if (!read_all(p, buf, FRAME_HEADER_BYTES))
		return 0;
	assert_int_equal(frame_decode_header(buf, FRAME_REPORT_BYTES_MAX, &h), 0);
	assert_int_equal(h.version, p->version);
	return read_all(p, buf + FRAME_HEADER_BYTES, h.length - FRAME_HEADER_BYTES) ? h.length : 0;
}

json_t *peer_read_report(struct peer *p)
{
	uint8_t *frame = malloc(FRAME_REPORT_BYTES_MAX);
	uint32_t n = peer_read_frame(p, frame);
	json_t *o;

	assert_true(n > FRAME_HEADER_BYTES);
	assert_int_equal(frame[5], FRAME_REPORT);
	o = json_loadb((char *)frame + FRAME_HEADER_BYTES, n - FRAME_HEADER_BYTES, 0, NULL);
	free(frame);
	assert_non_null(o);
	return o;
}

void peer_forget(struct peer *p)
{
	tls_free(p->tls);
	tls_ctx_free(p->ctx);
	p->tls = NULL;
	p->ctx = NULL;
}

void peer_abort(struct peer *p)
{
	peer_forget(p);
	for (int i = 0; i < 50; i++) {
		const struct conn *c = conn_of(p);

		if (!c || !c->io)
			break;
		turn_when_readable(p, false);
	}
	server_turns(2);
}

void peer_close(struct peer *p)
{
	tls_close_notify(p->tls);
	peer_abort(p);
}

void peers_abort(struct peer *p, int n)
{
	for (int i = 0; i < n; i++)
		peer_abort(&p[i]);
}

struct frame_qp peer_qp(const struct peer *p)
{
	struct frame_qp qp = { .qpn = p->qpn, .mtu = IBV_MTU_512, .reads = 2 };

	addr_to_bytes(&p->rdma, qp.gid);
	return qp;
}

void peer_hello(struct peer *p, uint16_t features)
{
	struct frame_hello h = {
		.message_bytes = 64, .queue_depth = srv.peers_depth, .features = features, .psn = p->psn
	};
	uint8_t buf[FRAME_HELLO_BYTES];

	if (features & FRAME_FEATURE_WINDOW)
		h.window = (struct frame_window){ PEER_WINDOW_ADDR, PEER_WINDOW_BYTES, PEER_WINDOW_RKEY };
	if (features & FRAME_FEATURE_OOB)
		h.qp = peer_qp(p);
	peer_send(p, buf, frame_encode_hello(&h, buf));
}

struct conn *peer_unwritten_grant(struct peer *p, uint16_t features)
{
	static const char junk[4096];
	struct conn *c;

	peer_connect_pair(p);
	assert_true(peer_handshake(p));
	c = server_only(CONN_ST_HELLO);
	for (size_t n = sizeof(junk); n > 0; n /= 2)
		while (send(tls_fd(c->io->tls), junk, n, 0) > 0)
			;
	peer_hello(p, features);
	assert_int_equal(c->state, CONN_ST_GRANT);
	return c;
}

int peer_answer(struct peer *p)
{
	uint8_t buf[FRAME_REFUSE_BYTES_MAX];
	uint32_t n = peer_read_frame(p, buf);
	const char *why = "";

	if (n == 0)
		return 0;
	if (buf[5] == FRAME_REFUSE) {
		assert_int_equal(frame_decode_refuse(buf, n, &p->refuse, &why), 0);
		return FRAME_REFUSE;
	}
	if (frame_decode_grant(buf, n, &p->grant, &why))
		fail_msg("%s", why);
	assert_int_equal(tls_export_key(p->tls, AUTH_LABEL_CLIENT, p->grant.session,
					FRAME_SESSION_BYTES, p->keys.client, AUTH_KEY_BYTES),
			 0);
	assert_int_equal(tls_export_key(p->tls, AUTH_LABEL_SERVER, p->grant.session,
					FRAME_SESSION_BYTES, p->keys.server, AUTH_KEY_BYTES),
			 0);
	return FRAME_GRANT;
}

int peer_say_hello(struct peer *p, uint16_t features)
{
	peer_hello(p, features);
	return peer_answer(p);
}

int peer_ask(struct peer *p, uint16_t features)
{
	peer_shake_hands(p);
	return peer_say_hello(p, features);
}

void peer_ask_grant(struct peer *p, uint16_t features)
{
	if (peer_ask(p, features) != FRAME_GRANT)
		fail_msg("refused: %s", p->refuse.text);
}

void peer_get_grant(struct peer *p, uint16_t features)
{
	peer_ask_grant(p, features);
	peer_close(p);
}

void peer_proof(const struct peer *p, uint8_t data[56])
{
	struct auth_binding b = { .session = p->grant.session,
				  .client_qpn = p->qpn,
				  .client = &p->rdma,
				  .server = &p->grant.rdma };
	struct pdata_proof proof;

	memset(data, 0, 56);
	memcpy(proof.session, p->grant.session, sizeof(proof.session));
	assert_int_equal(auth_hmac(NULL, p->keys.client, &b, proof.hmac), 0);
	pdata_encode_proof(PDATA_REQUEST, &proof, data);
}

void peer_request(struct peer *p, const uint8_t data[56])
{
	p->id = fake_cm_request(srv.shard->listener, &p->rdma, p->qpn, data, 56);
	server_turns(2);
}

void peer_prove(struct peer *p)
{
	uint8_t data[56];

	peer_proof(p, data);
	peer_request(p, data);
}

enum refuse_code peer_reject_code(void)
{
	const struct fake_cm_call *c = fake_cm_last(FAKE_CM_REJECT);
	uint16_t code;

	assert_non_null(c);
	assert_int_equal(pdata_decode_reject(c->private_data, c->param.private_data_len, &code), 0);
	return (enum refuse_code)code;
}

void peer_cm_event(struct peer *p, enum rdma_cm_event_type type, int status)
{
	fake_cm_event(p->id, type, status, 0, NULL, 0);
	server_turns(4);
}

void peer_establish(struct peer *p)
{
	peer_cm_event(p, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void peer_disconnect(struct peer *p)
{
	peer_cm_event(p, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void peer_finish(struct peer *p)
{
	peer_prove(p);
	assert_ptr_equal(fake_cm_last(FAKE_CM_ACCEPT)->id, p->id);
	p->qp = fake_qp_of(fake_cm_last(FAKE_CM_ACCEPT)->param.qp_num);
	assert_non_null(p->qp);
	/* A window bind that succeeded. */
	fake_complete_sends(p->qp, 1, IBV_WC_SUCCESS);
	peer_establish(p);
	assert_int_equal(((struct conn *)p->id->context)->state, CONN_ST_LIVE);
	p->disconnects = fake_cm_calls(FAKE_CM_DISCONNECT);
}

void peer_go_live(struct peer *p, uint16_t features)
{
	peer_get_grant(p, features);
	peer_finish(p);
}

void peers_go_live(struct peer *p, int n)
{
	for (int i = 0; i < n; i++)
		peer_go_live(&p[i], 0);
}

struct conn *server_start_hello(struct peer *p)
{
	server_rig_start();
	peer_shake_hands(p);
	return server_only(CONN_ST_HELLO);
}

struct conn *server_start_granted(struct peer *p, uint16_t features)
{
	server_rig_start();
	peer_get_grant(p, features);
	return server_only(CONN_ST_GRANTED);
}

struct conn *server_start_accepting(struct peer *p, uint16_t features)
{
	server_start_granted(p, features);
	peer_prove(p);
	return server_only(CONN_ST_ACCEPTING);
}

struct conn *server_start_live(struct peer *p, uint16_t features)
{
	server_rig_start();
	peer_go_live(p, features);
	return server_only(CONN_ST_LIVE);
}

void server_start_full(struct peer p[4])
{
	server_rig_start();
	peers_go_live(p, 4);
}

bool peer_message(struct peer *p, uint32_t bytes)
{
	struct msg_header h = { .type = MSG_ECHO, .length = bytes, .sequence = p->sequence++ };
	uint8_t *data = calloc(1, bytes);
	bool ok;

	msg_encode(&h, data);
	for (uint32_t i = MSG_HEADER_BYTES; i < bytes; i++)
		data[i] = (uint8_t)(i + h.sequence);
	ok = fake_deliver(p->qp, data, bytes);
	free(data);
	return ok;
}

void peer_leave(struct peer *p)
{
	peer_disconnect(p);
	server_assert_all_back();
}

void peer_assert_dropped(struct peer *p, enum fail_kind kind, int code)
{
	assert_int_equal(server_n(CONN_ST_LIVE), 0);
	assert_int_equal(server_failed(STAGE_TRAFFIC, kind, code), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), p->disconnects + 1);
	peer_leave(p);
}

void peer_shake_hands(struct peer *p)
{
	peer_connect(p);
	assert_true(peer_handshake(p));
}

size_t peer_encode_hello(uint8_t *buf, uint32_t message, uint16_t depth, uint16_t features, uint32_t psn)
{
	struct frame_hello h = {
		.message_bytes = message, .queue_depth = depth, .features = features, .psn = psn
	};

	return frame_encode_hello(&h, buf);
}

void peer_assert_refused(struct peer *p, const void *frame, size_t n, enum refuse_code code, const char *word)
{
	uint64_t before = server_refused(code);

	peer_send(p, frame, n);
	assert_int_equal(peer_answer(p), FRAME_REFUSE);
	assert_int_equal(p->refuse.code, code);
	assert_says(p->refuse.text, word);
	assert_int_equal(server_refused(code), before + 1);
	assert_int_equal(peer_answer(p), 0);
	peer_close(p);
}

void peer_refused_hello(uint32_t message, uint16_t depth, uint16_t features, uint32_t psn, enum refuse_code code,
			const char *word)
{
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;

	peer_shake_hands(&p);
	peer_assert_refused(&p, buf, peer_encode_hello(buf, message, depth, features, psn), code, word);
}
