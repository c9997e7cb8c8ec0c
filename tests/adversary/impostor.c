/* SPDX-License-Identifier: BSD-2-Clause */
/* impostor: a server that cheats, to test that rdma_client notices. It serves one client for each MODE, in the given
 * order, and breaks one rule for each. It prints `impostor ready: PORT`, and then for each mode a line that says what
 * the client did last. The client trusts its certificate, so the test covers everything after TLS. It is built from
 * parts of rogue. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/msg.h"
#include "common/wire/psn.h"
#include "common/host/res.h"
#include "common/tls/tls.h"
#include "tests/adversary/link.h"

/* The field that is wrong in an answer to HELLO, and its value. */
struct bad_answer {
	const char *mode;
	enum frame_type type;
	unsigned offset, bytes;
	uint32_t value;
};

static const struct bad_answer answers[] = {
	{ "grant-psn", FRAME_GRANT, 24, 4, PSN_COUNT },
	{ "grant-message", FRAME_GRANT, 28, 4, 63 },
	{ "grant-port", FRAME_GRANT, 52, 2, 0 },
	{ "grant-host", FRAME_GRANT, 48, 4, 0xc0000201 },	/* 192.0.2.1 */
	{ "frame-length", FRAME_GRANT, 0, 4, UINT32_MAX },
	{ "frame-version", FRAME_GRANT, 4, 1, FRAME_VERSION + 1 },
	{ "frame-type", FRAME_GRANT, 5, 1, FRAME_HELLO },
	{ "refuse-escape", FRAME_REFUSE, 12, 1, 0x1b },
	{ "refuse-code", FRAME_REFUSE, 8, 2, 999 },
	{ "refuse-conflict", FRAME_REFUSE, 8, 2, REFUSE_PSN_CONFLICT },
};
#define ANSWERS (sizeof(answers) / sizeof(answers[0]))

struct impostor {
	struct rogue r;
	const char *mode;
	int listen_fd;
	uint16_t tls_port, rdma_port;
	struct rdma_cm_id *listener;
	struct link l;
	uint32_t own_psn;
};

static void print_line(const char *fmt, va_list ap)
{
	vprintf(fmt, ap);
	printf("\n");
	fflush(stdout);
}

/* link_answer and wire_answer print their text after the mode's name. */
int answer(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
	return ROGUE_ANSWERED;
}

int no_answer(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
	return ROGUE_NO_ANSWER;
}

static bool is(const struct impostor *i, const char *mode)
{
	return strcmp(i->mode, mode) == 0;
}

static const struct bad_answer *bad_answer_of(const struct impostor *i)
{
	for (size_t k = 0; k < ANSWERS; k++)
		if (is(i, answers[k].mode))
			return &answers[k];
	return NULL;
}

static bool take_client(struct impostor *i)
{
	struct pollfd p = { .fd = i->listen_fd, .events = POLLIN };
	struct wire *w = &i->l.wire;
	int fd;

	if (poll(&p, 1, (int)(i->r.timeout_ns / NS_PER_MS)) <= 0)
		return false;
	fd = accept4(i->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	w->timeout_ns = i->r.timeout_ns;
	return fd >= 0 && !tls_new(i->r.tls_ctx, fd, NULL, &w->tls) && wire_handshake(w, &i->l.reply);
}

static bool read_hello(struct impostor *i)
{
	uint8_t buf[FRAME_HELLO_BYTES];
	const char *why;

	return wire_read_bytes(&i->l.wire, buf, sizeof(buf), &i->l.reply) &&
	       !frame_decode_hello(buf, sizeof(buf), &i->l.hello, &why);
}

static bool write_answer(struct impostor *i, const struct bad_answer *bad)
{
	struct frame_grant *g = &i->l.grant;
	uint8_t buf[256];
	size_t n;

	if (bad && bad->type == FRAME_REFUSE) {
		n = frame_encode_refuse(REFUSE_FULL, "no", buf);
	} else {
		*g = (struct frame_grant){ .psn = i->own_psn, .message_bytes = 4096, .credits = 1,
					   .rdma = i->r.dev.addr, .expires_ms = 30000 };
		addr_set_port(&g->rdma, i->rdma_port);
		(void)!auth_random(NULL, g->session, sizeof(g->session));
		n = frame_encode_grant(g, buf);
	}
	for (unsigned k = 0; bad && k < bad->bytes; k++)
		buf[bad->offset + k] = (uint8_t)(bad->value >> 8 * (bad->bytes - 1 - k));
	return wire_write(&i->l.wire, buf, n);
}

static bool derive_keys(struct link *l)
{
	const uint8_t *id = l->grant.session;

	return !tls_export_key(l->wire.tls, AUTH_LABEL_CLIENT, id, FRAME_SESSION_BYTES, l->keys.client,
			       AUTH_KEY_BYTES) &&
	       !tls_export_key(l->wire.tls, AUTH_LABEL_SERVER, id, FRAME_SESSION_BYTES, l->keys.server,
			       AUTH_KEY_BYTES);
}

static bool has_event(const struct link *l)
{
	return l->has_event;
}

/* Writes the private data of the REP, with the mode's fault. Returns its length. */
static uint8_t make_proof(struct impostor *i, uint8_t out[PDATA_PROOF_BYTES])
{
	struct link *l = &i->l;
	struct addr local, peer;
	struct pdata_proof proof;
	struct auth_binding b = { .session = l->grant.session, .client_qpn = l->event.qpn,
				  .server_qpn = rc_qpn(&l->rc), .client = &peer, .server = &local };

	if (is(i, "proof-none"))
		return 0;
	if (is(i, "proof-echoed")) {
		memcpy(out, l->event.private_data, PDATA_PROOF_BYTES);
		out[1] = PDATA_REPLY;
		return PDATA_PROOF_BYTES;
	}
	memcpy(proof.session, l->grant.session, sizeof(proof.session));
	if (!cm_addresses(l->rc.id, &local, &peer))
		(void)!auth_hmac(NULL, is(i, "proof-key") ? l->keys.client : l->keys.server, &b, proof.hmac);
	proof.hmac[0] ^= is(i, "proof-hmac");
	proof.session[0] ^= is(i, "proof-session");
	pdata_encode_proof(PDATA_REPLY, &proof, out);
	return PDATA_PROOF_BYTES;
}

static bool accept_request(struct impostor *i)
{
	struct link *l = &i->l;
	uint8_t data[PDATA_PROOF_BYTES];
	struct cm_conn_param p = { .private_data = data };

	l->has_event = false;
	if (l->event.type != CM_CONNECT_REQUEST)
		return false;
	l->rc.id = l->event.id;
	if (is(i, "reject-garbage") || is(i, "reject-code")) {
		pdata_encode_reject(999, data);
		data[1] = is(i, "reject-garbage") ? 77 : data[1];
		cm_reject(l->rc.id, data, PDATA_REJECT_BYTES);
		return false;
	}
	/* The PSNs that both ends agreed on; the mode other-psn uses a different one for the client. */
	l->grant.psn = l->hello.psn;
	l->sq_psn = i->own_psn;
	if (is(i, "other-psn"))
		l->grant.psn = (l->grant.psn - 0x10000) & PSN_MASK;
	if (rc_take_qp(&l->rc, 0) || !link_program(l))
		return false;
	p.qpn = rc_qpn(&l->rc);
	p.private_bytes = make_proof(i, data);
	return cm_accept(l->rc.id, &p) == 0;
}

static bool message_or_end(const struct link *l)
{
	return l->received || (l->has_event && l->event.type != CM_ESTABLISHED) ||
	       l->wc_status != IBV_WC_SUCCESS;
}

/* Answers a message, wrongly if the mode says so. */
static bool answer_message(struct impostor *i)
{
	struct link *l = &i->l;
	uint32_t bytes = l->received_bytes;

	l->received = 0;
	l->last[0] = is(i, "reply-type") ? MSG_ECHO : MSG_REPLY;
	l->last[15] = (uint8_t)(l->last[15] + is(i, "reply-sequence"));
	if (is(i, "reply-payload") && bytes > MSG_HEADER_BYTES)
		l->last[bytes - 1] ^= 1;
	if (is(i, "reply-cut"))
		bytes = MSG_HEADER_BYTES - 1;
	return link_send(l, l->last, bytes) && (!is(i, "reply-twice") || link_send(l, l->last, bytes));
}

static void serve_rdma(struct impostor *i)
{
	struct link *l = &i->l;

	if (!link_wait(l, has_event) || !accept_request(i))
		return;
	while (link_wait(l, message_or_end) && l->received && answer_message(i))
		;
}

static void serve(struct impostor *i)
{
	const struct bad_answer *bad = bad_answer_of(i);
	struct link *l = &i->l;
	unsigned hellos = 0;

	if (!take_client(i) || is(i, "close")) {
		/* Mode close: the client sees the connection end right after the handshake. */
	} else if (is(i, "silence")) {
		while (read_hello(i))
			;
	} else if (bad) {
		while (read_hello(i) && write_answer(i, bad))
			hellos++;
	} else if (read_hello(i) && write_answer(i, NULL) && derive_keys(l)) {
		wire_close(&l->wire);
		serve_rdma(i);
	}
	answer("%s: %u HELLOs, %s", i->mode, hellos, l->has_event ? "RDMA event" : "end");
}

static int listen_tls(struct impostor *i)
{
	struct addr a = i->r.dev.addr;
	socklen_t len = sizeof(a.ss);

	i->listen_fd = socket(a.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (i->listen_fd < 0 || bind(i->listen_fd, (struct sockaddr *)&a.ss, a.len) ||
	    listen(i->listen_fd, 16) || getsockname(i->listen_fd, (struct sockaddr *)&a.ss, &len))
		return -1;
	i->tls_port = addr_port(&a);
	return 0;
}

/* Serves one client with a new link and a new RDMA listener, always on the same port. */
static bool serve_one(struct impostor *i, const char *mode)
{
	struct addr a = i->r.dev.addr;
	uint8_t b[3] = { 0 };

	i->mode = mode;
	(void)!auth_random(NULL, b, sizeof(b));
	i->own_psn = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
	if (link_new(&i->r, &i->l))
		return false;
	if (cm_listen(i->l.cm, &a, 16, NULL, &i->listener, &i->rdma_port)) {
		link_free(&i->l);
		return false;
	}
	serve(i);
	cm_id_destroy(i->listener);
	link_free(&i->l);
	return true;
}

int main(int argc, char **argv)
{
	struct impostor i = { .r = { .timeout_ns = 20 * NS_PER_S } };
	struct tls_config tls = { .server = true };
	struct addr host;
	char err[512];

	if (argc < 5 || addr_parse(argv[1], 0, &host)) {
		fprintf(stderr, "Usage: impostor ADDRESS CERT KEY MODE...\n");
		return 2;
	}
	log_init("impostor", LOG_LVL_ERROR);
	signal(SIGPIPE, SIG_IGN);
	res_raise_memlock();
	tls.cert_file = argv[2];
	tls.key_file = argv[3];
	if (tls_ctx_new(&tls, &i.r.tls_ctx, err, sizeof(err)) ||
	    dev_open(&host, NULL, true, &i.r.dev, err, sizeof(err))) {
		fprintf(stderr, "impostor: %s\n", err);
		return 3;
	}
	if (listen_tls(&i)) {
		perror("impostor: cannot listen");
		return 3;
	}
	answer("impostor ready: %u", i.tls_port);
	for (int k = 4; k < argc; k++)
		if (!serve_one(&i, argv[k]))
			return 3;
	dev_close(&i.r.dev);
	tls_ctx_free(i.r.tls_ctx);
	return 0;
}
