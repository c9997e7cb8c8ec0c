/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients over a socket. See socket.h. */
#include "server/shard/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/sock/sock.h"
#include "common/tls/tls_io.h"
#include "common/wire/msg.h"
#include "server/shard/messages.h"
#include "server/shard/shard_data.h"
#include "server/tables/session.h"

static struct conn *conn_of(struct sock *s)
{
	return (struct conn *)((char *)s - offsetof(struct conn, link.sock));
}

static void on_record(struct sock *s, uint32_t buf, const struct record *r)
{
	messages_on_record(conn_of(s), buf, r);
}

static void on_left(struct conn *c)
{
	conn_close(c, c->told ? CLOSE_DRAINING : CLOSE_PEER_LEFT);
}

static void on_bye(struct sock *s)
{
	on_left(conn_of(s));
}

/* A client that ends without a BYE counts as having left: over RDMA, too, the kernel disconnects on its behalf. */
static void on_end(struct sock *s, enum fail_kind kind, int code)
{
	if (kind == FAIL_CLOSED)
		on_left(conn_of(s));
	else
		conn_fail(conn_of(s), kind, code);
}

static const struct sock_user user = { .on_record = on_record, .on_bye = on_bye, .on_end = on_end };

/* Makes the data of a PUSHED with sequence 0, long enough to contain the data of every other sequence. */
static uint8_t *make_pushed(uint32_t bytes)
{
	uint8_t *p = malloc((size_t)bytes + SOCKET_PUSHED_BEGINNINGS);

	for (uint32_t i = 0; p && i < bytes + SOCKET_PUSHED_BEGINNINGS; i++)
		p[i] = msg_pushed_byte(0, i);
	return p;
}

/* Spare buffers: each client can hold one for a partly received record and one for a GOODBYE; with zerocopy also one
 * for each credit, while the kernel sends from it. Buffers take memory only once they are used. */
int socket_make(struct shard *s, char *err, size_t err_size)
{
	const struct server_config *cfg = s->cfg;
	uint64_t pinned = cfg->sock.tcp.zerocopy_bytes ? cfg->shard_clients * cfg->credits : 0;
	struct ep_config ep = { .recv_depth = cfg->recv_depth,
				.spare_bufs = (uint32_t)MIN(2 * cfg->shard_clients + pinned,
							    EP_NO_BUF - EP_BATCH - cfg->recv_depth),
				.buf_bytes = (uint32_t)cfg->message_bytes };
	int ret = ep_new(&ep, NULL, NULL, &s->sock_ep, err, err_size);

	if (ret)
		return ret;
	s->pushed = make_pushed((uint32_t)cfg->message_bytes);
	ret = s->pushed ? 0 : -ENOMEM;
	snprintf(err, err_size, "this machine is out of memory");
	if (!ret)
		ret = sock_ctx_new(&cfg->sock, s->loop, s->sock_ep, &user, &s->socks);
	return ret;
}

void socket_release(struct shard *s)
{
	sock_ctx_free(s->socks);
	ep_free(s->sock_ep);
	free(s->pushed);
	s->pushed = NULL;
	s->socks = NULL;
	s->sock_ep = NULL;
}

static void begin_messages(struct conn *c)
{
	struct shard *s = c->shard;

	conn_set_state(c, CONN_ST_ACCEPTING);
	peers_give(s->peers, PEERS_CLIENTS, &c->grant_hold);
	c->accepted_ns = clock_now_ns();
	auth_wipe(&c->keys);
}

void socket_go_over_tls(struct conn *c)
{
	struct tls *tls = conn_release_tls(c);

	begin_messages(c);
	sock_open_tls(&c->link.sock, tls, c->shard->cfg->probe_interval_ns);
	conn_set_live(c);
}

/* Sends the server's proof, which always fits into the send buffer of a new socket. */
static int answer(const struct conn *c, int fd, const struct auth_binding *b)
{
	uint8_t out[RECORD_HEADER_BYTES + PDATA_PROOF_BYTES];
	struct pdata_proof proof;
	int ret = auth_hmac(c->shard->mac, c->keys.server, b, proof.hmac);

	if (ret)
		return ret;
	memcpy(proof.session, c->session, sizeof(proof.session));
	record_encode(&(struct record){ .kind = RECORD_PROOF, .bytes = PDATA_PROOF_BYTES }, out);
	pdata_encode_proof(PDATA_REPLY, &proof, out + RECORD_HEADER_BYTES);
	return send(fd, out, sizeof(out), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(out) ? 0 : -EPIPE;
}

enum refuse_code socket_take(struct shard *s, int fd, const struct pdata_proof *proof, const struct addr *peer,
			     const struct addr *local)
{
	struct auth_binding b = { .session = proof->session, .client = peer, .server = local };
	uint8_t expected[AUTH_HMAC_BYTES];
	uint32_t index;
	struct conn *c;

	/* Take the session before checking anything else: it is good for one attempt. */
	index = session_take(s->sessions, proof->session);
	if (index == SESSION_NONE)
		return REFUSE_BAD_SESSION;
	c = &s->conns[index];
	if (conn_is_overdue(c)) {
		conn_end_overdue(c);
		return REFUSE_BAD_SESSION;
	}
	if (c->link.transport != TRANSPORT_TCP || !addr_same_host(peer, &c->peer)) {
		conn_close(c, CLOSE_REFUSED);
		return c->link.transport == TRANSPORT_TCP ? REFUSE_BAD_ADDRESS : REFUSE_BAD_SESSION;
	}
	if (auth_hmac(s->mac, c->keys.client, &b, expected) || auth_compare(expected, proof->hmac)) {
		conn_close(c, CLOSE_REFUSED);
		return REFUSE_BAD_HMAC;
	}
	if (answer(c, fd, &b)) {
		conn_close(c, CLOSE_REFUSED);
		return REFUSE_INTERNAL;
	}
	begin_messages(c);
	sock_open_plain(&c->link.sock, fd, s->cfg->probe_interval_ns);
	conn_set_live(c);
	return 0;
}
