/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections whose messages go over a socket: the TCP stage with its proofs, and the end of connections over TCP and
 * over TLS (docs/protocol.md, "Over a socket"). */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/internal.h"
#include "common/base/clock.h"
#include "common/tls/tls_io.h"

static struct client_conn *conn_of(struct sock *s)
{
	return (struct client_conn *)((char *)s - offsetof(struct client_conn, link.sock));
}

/* Probe interval: a third of a stage, because a host that does not answer for three of them is gone (sock.h). */
static uint64_t probe_ns(const struct client_conn *c)
{
	return MAX(c->ctx->cfg->stage_timeout_ns / 3, NS_PER_S);
}

/* Skips the first message if so configured: the server does not need it to know that the connection works. */
static void go_on(struct client_conn *c)
{
	if (c->ctx->cfg->no_first_message)
		client_set_live(c);
	else
		client_enter(c, STAGE_FIRST_REPLY);
}

/* Over the TLS connection of the bootstrap. */

void client_socket_go_over_tls(struct client_conn *c)
{
	auth_wipe(&c->keys);
	sock_open_tls(&c->link.sock, tls_io_release(&c->io), probe_ns(c));
	go_on(c);
}

static int addresses(int fd, struct addr *local, struct addr *peer)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int ret = addr_of_socket(fd, local);

	if (ret)
		return ret;
	if (getpeername(fd, (struct sockaddr *)&ss, &len))
		return -errno;
	return addr_from_sockaddr((struct sockaddr *)&ss, peer);
}

/* The HMAC of one end of the connection. 0 or -errno. */
static int hmac(const struct client_conn *c, const uint8_t *key, uint8_t out[AUTH_HMAC_BYTES])
{
	struct addr local, peer;
	const struct auth_binding b = { .session = c->head.grant.session, .client = &local, .server = &peer };
	int ret = addresses(c->link.sock.fd, &local, &peer);

	return ret ? ret : auth_hmac(c->ctx->mac, key, &b, out);
}

static void send_proof(struct client_conn *c)
{
	uint32_t buf = ep_buf_get(c->ctx->ep);
	struct pdata_proof proof;
	int ret;

	if (buf == EP_NO_BUF) {
		client_fail(c, FAIL_ERRNO, ENOBUFS);
		return;
	}
	memcpy(proof.session, c->head.grant.session, sizeof(proof.session));
	ret = hmac(c, c->keys.client, proof.hmac);
	if (ret) {
		ep_buf_put(c->ctx->ep, buf);
		client_fail(c, FAIL_ERRNO, -ret);
		return;
	}
	pdata_encode_proof(PDATA_REQUEST, &proof, ep_buf(c->ctx->ep, buf));
	sock_send(&c->link.sock, buf, &(struct record){ .kind = RECORD_PROOF, .bytes = PDATA_PROOF_BYTES });
}

static void on_connected(void *owner)
{
	struct client_conn *c = owner;
	int ret = tls_io_connected(&c->io);

	if (ret) {
		client_fail(c, FAIL_ERRNO, -ret);
		return;
	}
	sock_open_plain(&c->link.sock, tls_io_take_socket(&c->io), probe_ns(c));
	send_proof(c);
}

void client_socket_start(struct client_conn *c)
{
	struct addr server = c->head.grant.rdma;
	int ret;

	client_set_state(c, CLIENT_ST_SOCKET_CONNECT);
	/* GRANT carries no IPv6 scope: use that of the server's TLS address. */
	addr_set_scope(&server, addr_scope(&c->ctx->cfg->server));
	tls_io_init(&c->io, c->ctx->loop, on_connected, c, NULL, NULL);
	ret = tls_io_connect(&c->io, &server, NULL);
	if (ret)
		client_fail(c, FAIL_ERRNO, -ret);
}

static bool is_proven(const struct client_conn *c, const uint8_t *data, uint32_t bytes)
{
	uint8_t expected[AUTH_HMAC_BYTES];
	struct pdata_proof proof;

	return bytes == PDATA_PROOF_BYTES && !pdata_decode_proof(PDATA_REPLY, data, bytes, &proof) &&
	       memcmp(proof.session, c->head.grant.session, sizeof(proof.session)) == 0 &&
	       !hmac(c, c->keys.server, expected) && !auth_compare(expected, proof.hmac);
}

/* Handles the server's first record. */
static void on_answer(struct client_conn *c, const uint8_t *data, const struct record *r)
{
	uint16_t code;

	if (r->kind == RECORD_REJECT && pdata_decode_reject(data, r->bytes, &code) == 0) {
		client_fail(c, FAIL_REFUSED, code);
	} else if (r->kind != RECORD_PROOF || !is_proven(c, data, r->bytes)) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_PROOF);
	} else {
		auth_wipe(&c->keys);
		client_stage_done(c, STAGE_SOCKET_CONNECT);
		go_on(c);
	}
}

static void on_record(struct sock *s, uint32_t buf, const struct record *r)
{
	struct client_conn *c = conn_of(s);

	if (c->state == CLIENT_ST_SOCKET_CONNECT) {
		on_answer(c, ep_buf(c->ctx->ep, buf), r);
		ep_buf_put(c->ctx->ep, buf);
	} else if (c->state == CLIENT_ST_CLOSING) {
		ep_buf_put(c->ctx->ep, buf);
	} else {
		client_on_record(c, buf, r);
	}
}

static void on_end(struct sock *s, enum fail_kind kind, int code)
{
	struct client_conn *c = conn_of(s);

	c->awaits_close = false;
	client_fail(c, kind, code);
	client_try_finish(c);
}

/* Only clients send a BYE. */
static void on_bye(struct sock *s)
{
	on_end(s, FAIL_PROTOCOL, PROTO_BAD_FRAME);
}

const struct sock_user client_sock_user = { .on_record = on_record, .on_bye = on_bye, .on_end = on_end };
