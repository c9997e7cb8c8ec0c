/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole shard on the unit tests' fakes, and up to three clients that the input drives: TCP bytes, TLS handshakes,
 * frames, connection requests, events, messages, silence. Afterwards all resources must be free again. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tls/tls.h"
#include "server/shard/boot.h"
#include "server/shard/shard_data.h"
#include "tests/fuzz/input.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/server_rig.h"
#include "tests/unit/helpers/unit.h"

#define GUESTS 3
#define STEPS_MAX 48
/* The fakes can record only a limited number of events. */
#define RUNS_PER_SERVER 128

struct guest {
	struct peer peer;
	bool is_there, shaken;
	int fd;				/* the peer's socket, for bytes outside TLS */
};

static struct guest guests[GUESTS];
static struct tls_ctx *ctx;

static void start(void)
{
	(void)!server_rig_init(NULL);
	srv.cfg.windows = true;
	server_rig_start();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char err[300];

	(void)argc;
	(void)argv;
	/* Outside cmocka's tests, a failed assertion would otherwise exit instead of abort. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	if (server_rig_group_setup(NULL) ||
	    tls_ctx_new(&(struct tls_config){ .ca_file = srv.certs.ca, .resume = true }, &ctx, err, sizeof(err)))
		return -1;
	start();
	return 0;
}

static void arrive(struct guest *g)
{
	static uint32_t next = 0x100;
	struct conn *c;
	int fds[2];

	if (g->is_there)
		return;
	memset(g, 0, sizeof(*g));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(addr_parse("127.0.0.1", (uint16_t)(1000 + (g - guests)), &g->peer.local), 0);
	if (conn_new(srv.shard, fds[0], &g->peer.local, boot_on_ready, &c)) {
		close(fds[0]);
		close(fds[1]);
		return;
	}
	assert_int_equal(tls_new(ctx, fds[1], "127.0.0.1", &g->peer.tls), 0);
	g->fd = fds[1];
	g->peer.psn = g->peer.qpn = next++ & 0xffffff;
	g->peer.rdma = g->peer.local;
	addr_set_port(&g->peer.rdma, 50000);
	g->is_there = true;
}

static void leave(struct guest *g, bool in_order)
{
	if (!g->peer.tls)
		return;
	if (in_order && g->shaken)
		tls_close_notify(g->peer.tls);
	tls_free(g->peer.tls);
	g->peer.tls = NULL;
	server_turn();
}

static void shake(struct guest *g)
{
	for (int i = 0; i < 8 && g->peer.tls && !g->shaken; i++) {
		enum tls_status st = tls_handshake(g->peer.tls);

		if (st == TLS_FAILED || st == TLS_EOF)
			break;
		(void)!tls_flush(g->peer.tls);
		g->shaken = st == TLS_DONE;
		server_turn();
	}
}

static void say(struct guest *g, const uint8_t *p, size_t n)
{
	size_t put;

	if (!g->peer.tls || !g->shaken || n == 0)
		return;
	(void)!tls_write(g->peer.tls, p, n, &put);
	(void)!tls_flush(g->peer.tls);
	server_turn();
}

static void say_raw(struct guest *g, const uint8_t *p, size_t n)
{
	if (!g->peer.tls)
		return;
	(void)!send(g->fd, p, n, MSG_NOSIGNAL);
	server_turn();
}

/* Sends a correct HELLO, except for what the input changes. */
static void say_hello(struct guest *g, struct input *in)
{
	struct frame_hello h = { .message_bytes = 64, .queue_depth = 4, .psn = g->peer.psn };
	uint8_t frame[FRAME_HELLO_BYTES];
	size_t n, at;

	h.features = (uint16_t)input_number(in, 1) & FRAME_FEATURES_KNOWN;
	if (h.features & FRAME_FEATURE_WINDOW)
		h.window = (struct frame_window){ PEER_WINDOW_ADDR, PEER_WINDOW_BYTES, PEER_WINDOW_RKEY };
	n = frame_encode_hello(&h, frame);
	at = input_number(in, 1) % n;
	frame[at] ^= (uint8_t)input_number(in, 1);
	say(g, frame, n);
}

static bool read_all(struct guest *g, uint8_t *p, size_t n)
{
	for (int i = 0; i < 8 && n; i++) {
		size_t got = 0;
		enum tls_status st = tls_read(g->peer.tls, p, n, &got);

		if (st == TLS_EOF || st == TLS_FAILED)
			return false;
		if (st == TLS_DONE) {
			p += got;
			n -= got;
		} else {
			server_turn();
		}
	}
	return n == 0;
}

/* Reads a frame; derives the keys from a GRANT. */
static void listen_to(struct guest *g)
{
	static uint8_t frame[FRAME_REPORT_BYTES_MAX];
	struct frame_header h;
	const char *why;

	if (!g->peer.tls || !g->shaken || !read_all(g, frame, FRAME_HEADER_BYTES))
		return;
	assert_int_equal(frame_decode_header(frame, FRAME_REPORT_BYTES_MAX, &h), 0);
	if (!read_all(g, frame + FRAME_HEADER_BYTES, h.length - FRAME_HEADER_BYTES) || h.type != FRAME_GRANT)
		return;
	assert_int_equal(frame_decode_grant(frame, h.length, &g->peer.grant, &why), 0);
	assert_int_equal(tls_export_key(g->peer.tls, AUTH_LABEL_CLIENT, g->peer.grant.session, FRAME_SESSION_BYTES,
					g->peer.keys.client, AUTH_KEY_BYTES), 0);
}

static void request(struct guest *g, struct input *in)
{
	uint8_t data[56];
	const uint8_t *p;
	size_t n, at = input_number(in, 1) % sizeof(data);

	if (!g->peer.grant.rdma.len)
		g->peer.grant.rdma = g->peer.rdma;
	peer_proof(&g->peer, data);
	n = input_bytes(in, input_number(in, 1) & 7, &p);
	for (size_t i = 0; i < n; i++)
		data[(at + i) % sizeof(data)] ^= p[i];
	peer_request(&g->peer, data);
}

/* The server's CM id for this client; NULL if it is gone. */
static struct rdma_cm_id *id_of(const struct guest *g)
{
	struct rdma_cm_id *id;

	for (uint32_t i = 0; (id = fake_cm_id(i)); i++)
		if (id == g->peer.id && id != srv.shard->listener)
			return id;
	return NULL;
}

static struct ibv_qp *qp_of(const struct guest *g)
{
	const struct rdma_cm_id *id = id_of(g);
	const struct conn *c = id ? id->context : NULL;

	if (!c || (const void *)c == (const void *)srv.shard ||
	    (c->state != CONN_ST_ACCEPTING && c->state != CONN_ST_LIVE && c->state != CONN_ST_CLOSING))
		return NULL;
	return c->link.rc.qp;
}

static void event(struct guest *g, struct input *in)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_REJECTED,
		RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_TIMEWAIT_EXIT,
		RDMA_CM_EVENT_ADDR_CHANGE,
	};
	struct rdma_cm_id *id = id_of(g);

	if (!id)
		return;
	fake_cm_event(id, types[input_number(in, 1) % (sizeof(types) / sizeof(types[0]))], (int)input_number(in, 1), 0,
		      NULL, 0);
	server_turns(2);
}

static void deliver(struct guest *g, struct input *in)
{
	struct ibv_qp *qp = qp_of(g);
	const uint8_t *p;
	size_t n = input_bytes(in, input_number(in, 1), &p);
	uint8_t *message;

	if (!qp)
		return;
	message = input_copy(p, n);
	fake_deliver(qp, message, (uint32_t)n);
	server_turns(2);
	free(message);
}

static void complete(struct guest *g, struct input *in)
{
	struct ibv_qp *qp = qp_of(g);
	uint64_t how = input_number(in, 1);

	if (!qp)
		return;
	fake_complete_sends(qp, 1 + (uint32_t)(how & 15), how & 0x80 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
	server_turns(2);
}

static void expire_one(size_t n)
{
	struct conn *c = &srv.shard->conns[n % srv.cfg.shard_conns];

	if (c->state != CONN_ST_FREE && ev_is_active(&c->deadline))
		server_expire(c);
}

static void step(struct input *in)
{
	uint8_t what = (uint8_t)input_number(in, 1);
	struct guest *g = &guests[(what >> 4) % GUESTS];
	const uint8_t *p;
	size_t n;

	switch (what & 15) {
	case 0: arrive(g); break;
	case 1: shake(g); break;
	case 2: n = input_bytes(in, input_number(in, 1), &p); say(g, p, n); break;
	case 3: say_hello(g, in); break;
	case 4: listen_to(g); break;
	case 5: n = input_bytes(in, input_number(in, 1), &p); say_raw(g, p, n); break;
	case 6: request(g, in); break;
	case 7: event(g, in); break;
	case 8: deliver(g, in); break;
	case 9: complete(g, in); break;
	case 10: leave(g, true); break;
	case 11: leave(g, false); break;
	case 12: expire_one(input_number(in, 1)); break;
	case 13: server_turns(3); break;
	default: break;
	}
}

/* All clients leave, and all deadlines pass. */
static void end(void)
{
	for (int i = 0; i < GUESTS; i++) {
		leave(&guests[i], false);
		guests[i].is_there = false;
		guests[i].peer.id = NULL;
	}
	for (uint32_t i = 0; i < srv.cfg.shard_conns; i++) {
		const struct conn *c = &srv.shard->conns[i];

		if (c->link.rc.id)
			fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	}
	server_turns(3);
	for (int i = 0; i < 4 && server_n(CONN_ST_FREE) != srv.cfg.shard_conns; i++)
		for (uint32_t c = 0; c < srv.cfg.shard_conns; c++)
			expire_one(c);
	server_assert_all_back();
	assert_int_equal(server_controls(), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static unsigned runs;
	struct input in = { data, n };

	for (int i = 0; i < STEPS_MAX && in.n; i++)
		step(&in);
	end();
	if (++runs % RUNS_PER_SERVER == 0) {
		server_rig_stop(NULL);
		start();
	}
	return 0;
}
