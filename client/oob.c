/* SPDX-License-Identifier: BSD-2-Clause */
/* The RDMA connection without rdmacm: HELLO and GRANT describe the queue pairs, and the proofs are the first messages
 * (docs/protocol.md, "Connecting out of band"). */
#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "client/internal.h"
#include "common/base/log.h"
#include "common/wire/msg.h"

#define LOOKS 60	/* calls of client_oob_look for all connections */

int client_oob_take_qp(struct client_conn *c)
{
	const struct dev *d = &c->ctx->dev;
	int ret;

	client_end_demand(c);
	ret = rc_take_qp(&c->link.rc, c->index);
	if (ret)
		return ret;
	c->qp = (struct frame_qp){ .qpn = rc_qpn(&c->link.rc), .lid = d->port.lid, .mtu = (uint8_t)d->port.active_mtu,
				   .reads = client_reads_wanted(c->ctx) };
	memcpy(c->qp.gid, d->gid.raw, sizeof(c->qp.gid));
	client_stage_done(c, STAGE_QP_SETUP);
	return 0;
}

/* On Ethernet packets go to the GID in GRANT. It must be the server's address, so that a server cannot aim its clients
 * at another host. InfiniBand's GIDs are no addresses. */
bool client_oob_stays_at_server(const struct client_conn *c, const struct frame_grant *g)
{
	struct addr a;

	if (!dev_ethernet_port(&c->ctx->dev))
		return true;
	addr_from_bytes(g->qp.gid, 0, &a);
	return addr_same_host(&a, &c->ctx->cfg->server);
}

void client_oob_program(struct client_conn *c)
{
	const struct client_config *cfg = c->ctx->cfg;
	const struct frame_qp *server = &c->head.grant.qp;
	struct cm_qp_param qp = { .rq_psn = c->head.grant.psn, .sq_psn = c->psn,
				  .remote_write = true,	/* for the server's 0-byte liveness probe */
				  .own_reads = MIN(server->reads, c->qp.reads), .path_mtu = cfg->path_mtu,
				  .retry = cfg->retry, .fabric = cfg->fabric, .verify = cfg->verify };
	struct cm_end end = { .lid = server->lid, .mtu = (enum ibv_mtu)server->mtu, .qpn = server->qpn };
	struct cm_path path;
	int ret;

	client_set_state(c, CLIENT_ST_QP_EXCHANGE);
	memcpy(end.gid.raw, server->gid, sizeof(end.gid.raw));
	cm_make_path(&c->ctx->dev, &end, 0, &path);
	ret = cm_program_qp(NULL, c->link.rc.qp, &path, &qp);
	c->server_qpn = server->qpn;
	client_stage_done(c, STAGE_QP_SETUP);
	if (ret == -EBADMSG)
		client_fail(c, FAIL_PROTOCOL, PROTO_PSN_MISMATCH);
	else if (ret)
		client_fail(c, FAIL_ERRNO, -ret);
	else
		client_enter(c, STAGE_QP_EXCHANGE);
}

static int hmac(const struct client_conn *c, const uint8_t *key, uint8_t out[AUTH_HMAC_BYTES])
{
	const struct frame_grant *g = &c->head.grant;
	const struct auth_pair p = { .session = g->session, .client = &c->qp, .server = &g->qp,
				     .client_psn = c->psn, .server_psn = g->psn };

	return auth_hmac_pair(c->ctx->mac, key, &p, out);
}

void client_oob_prove(struct client_conn *c)
{
	const struct msg_header h = { .type = MSG_PROOF, .length = MSG_PROOF_BYTES };
	uint32_t buf = ep_buf_get(c->ctx->ep);

	/* Give the stage its full time, even if the connection was parked before it. */
	client_restart_deadline(c);
	if (buf == EP_NO_BUF) {
		client_fail(c, FAIL_ERRNO, ENOBUFS);
		return;
	}
	msg_encode(&h, ep_buf(c->ctx->ep, buf));
	if (hmac(c, c->keys.client, ep_buf(c->ctx->ep, buf) + MSG_HEADER_BYTES)) {
		ep_buf_put(c->ctx->ep, buf);
		client_fail(c, FAIL_ERRNO, ENOMEM);
		return;
	}
	c->proved = rc_send_awaited(&c->link.rc, buf, MSG_PROOF_BYTES) == 0;
	if (!c->proved)
		client_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

/* Handles the first message, which must be the server's proof. */
static void on_proof(struct client_conn *c, const uint8_t *data, uint32_t bytes)
{
	uint8_t expected[AUTH_HMAC_BYTES];
	struct msg_header h;
	int ret = hmac(c, c->keys.server, expected);
	bool proven = msg_decode(data, bytes, &h) == 0 && h.type == MSG_PROOF &&
		      !auth_compare(expected, data + MSG_HEADER_BYTES);

	auth_wipe(&c->keys);
	if (ret) {
		client_fail(c, FAIL_ERRNO, -ret);
	} else if (!proven) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_PROOF);
	} else {
		client_stage_done(c, STAGE_QP_EXCHANGE);
		client_set_live(c);
	}
}

void client_oob_on_receive(struct client_conn *c, const uint8_t *data, uint32_t bytes)
{
	struct msg_header h;

	if (c->state == CLIENT_ST_QP_EXCHANGE) {
		on_proof(c, data, bytes);
		return;
	}
	/* The server's GOODBYE is not checked further, because it can only end the wait. */
	if (!c->awaits_close || msg_decode(data, bytes, &h) || h.type != MSG_GOODBYE)
		return;
	/* A GOODBYE for draining crossed ours, and no answer follows: wait until the device has sent ours. */
	c->draining = h.sequence == REFUSE_DRAINING;
	if (!c->draining || rc_is_idle(&c->link.rc))
		client_end_wait(c);
}

/* Without rdmacm nobody tells a client that its server has died, and a message that the server's device acknowledged is
 * not sent again. A WRITE of 0 bytes fails if the connection is gone at the server. */
static void look_at(struct client_conn *c)
{
	int ret = c->head.in_flight && !c->heard ? rc_probe(&c->link.rc) : 0;

	c->heard = false;
	if (ret && ret != -EBUSY)
		client_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

void client_oob_look(struct client_ctx *ctx)
{
	uint32_t max = ctx->cfg->max_conns;

	for (uint32_t n = max / LOOKS + 1; n > 0; n--) {
		struct client_conn *c = &ctx->conns[ctx->looked++ % max];

		if (c->state == CLIENT_ST_LIVE)
			look_at(c);
	}
}
