/* SPDX-License-Identifier: BSD-2-Clause */
/* The stages of the RDMA connection: address, route, queue pair, REQ, the server's proof, RTU. */
#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "client/internal.h"
#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/rdma/ep.h"
#include "common/base/log.h"
#include "common/wire/msg.h"

static void fail_errno(struct client_conn *c, int ret)
{
	client_fail(c, FAIL_ERRNO, -ret);
}

static unsigned timeout_ms(const struct client_conn *c)
{
	return (unsigned)(c->ctx->cfg->stage_timeout_ns / NS_PER_MS);
}

void client_rdma_start(struct client_conn *c)
{
	const struct cm_fabric *fabric = &c->ctx->cfg->fabric;
	struct addr server = c->head.grant.rdma;
	int ret = cm_id_new(c->ctx->cm, c, &c->link.rc.id);

	client_set_state(c, CLIENT_ST_ADDR_RESOLVE);
	if (!ret && fabric->has_traffic_class)
		ret = cm_set_traffic_class(c->link.rc.id, fabric->traffic_class);
	/* GRANT carries no IPv6 scope: use that of the server's TLS address. */
	addr_set_scope(&server, addr_scope(&c->ctx->cfg->server));
	if (!ret)
		ret = cm_resolve_addr(c->link.rc.id, &c->ctx->dev.addr, &server, timeout_ms(c));
	if (ret)
		fail_errno(c, ret);
}

static void on_addr_resolved(struct client_conn *c)
{
	client_stage_done(c, STAGE_ADDR_RESOLVE);
	if (cm_device(c->link.rc.id) != c->ctx->dev.ctx) {
		client_fail(c, FAIL_PROTOCOL, PROTO_NO_DEVICE);
		return;
	}
	client_enter(c, STAGE_ROUTE_RESOLVE);
}

void client_rdma_resolve_route(struct client_conn *c)
{
	int ret;

	client_set_state(c, CLIENT_ST_ROUTE_RESOLVE);
	ret = cm_resolve_route(c->link.rc.id, timeout_ms(c));
	if (ret)
		fail_errno(c, ret);
}

static int make_proof(struct client_conn *c, uint8_t data[PDATA_PROOF_BYTES])
{
	struct addr local, peer;
	struct pdata_proof proof;
	struct auth_binding b = { .session = c->head.grant.session, .client_qpn = rc_qpn(&c->link.rc),
				  .client = &local, .server = &peer };
	int ret = cm_addresses(c->link.rc.id, &local, &peer);

	memcpy(proof.session, c->head.grant.session, sizeof(proof.session));
	if (!ret)
		ret = auth_hmac(c->ctx->mac, c->keys.client, &b, proof.hmac);
	if (!ret)
		pdata_encode_proof(PDATA_REQUEST, &proof, data);
	return ret;
}

static void on_route_resolved(struct client_conn *c)
{
	client_stage_done(c, STAGE_ROUTE_RESOLVE);
	client_enter(c, STAGE_QP_SETUP);
}

void client_rdma_take_qp(struct client_conn *c)
{
	int ret;

	/* Without rdmacm the queue pair was taken for HELLO. */
	if (client_is_oob(c)) {
		client_oob_program(c);
		return;
	}
	client_set_state(c, CLIENT_ST_RDMA_CONNECT);
	client_end_demand(c);
	ret = rc_take_qp(&c->link.rc, c->index);
	if (ret) {
		fail_errno(c, ret);
		return;
	}
	client_stage_done(c, STAGE_QP_SETUP);
	client_enter(c, STAGE_RDMA_CONNECT);
}

void client_rdma_connect(struct client_conn *c)
{
	uint8_t data[PDATA_PROOF_BYTES];
	struct cm_conn_param p = { .private_data = data, .private_bytes = sizeof(data), .qpn = rc_qpn(&c->link.rc),
				   .initiator_depth = client_reads_wanted(c->ctx), .retry = c->ctx->cfg->retry };
	int ret = make_proof(c, data);

	/* Give the stage its full time, even if the connection was parked before it. */
	client_restart_deadline(c);
	if (!ret)
		ret = cm_connect(c->link.rc.id, &p);
	if (ret)
		fail_errno(c, ret);
	else
		c->qpn_lingers = true;
}

/* 0; -EBADMSG if the server has not proved to be the one of the TLS session; or another -errno. */
static int check_proof(struct client_conn *c, const struct cm_event *e)
{
	struct addr local, peer;
	struct pdata_proof proof;
	struct auth_binding b = { .session = c->head.grant.session, .client_qpn = rc_qpn(&c->link.rc),
				  .server_qpn = e->qpn, .client = &local, .server = &peer };
	uint8_t expected[AUTH_HMAC_BYTES];
	int ret;

	if (pdata_decode_proof(PDATA_REPLY, e->private_data, e->private_bytes, &proof) ||
	    memcmp(proof.session, c->head.grant.session, sizeof(proof.session)) != 0 ||
	    cm_addresses(c->link.rc.id, &local, &peer))
		return -EBADMSG;
	ret = auth_hmac(c->ctx->mac, c->keys.server, &b, expected);
	if (ret)
		return ret;
	return auth_compare(expected, proof.hmac) ? -EBADMSG : 0;
}

/* Sends the first message, whose reply shows that both directions work. */
void client_rdma_first_message(struct client_conn *c)
{
	struct msg_header h = { .type = MSG_ECHO };
	uint32_t buf;

	client_set_state(c, CLIENT_ST_FIRST_REPLY);
	buf = ep_buf_get(c->ctx->ep);

	if (buf == EP_NO_BUF) {
		client_fail(c, FAIL_ERRNO, ENOBUFS);
		return;
	}
	client_send(c, &h, buf, MSG_HEADER_BYTES + (c->tags ? MSG_TAG_BYTES : 0));
}

/* Handles a failed call on an id whose server has answered. EINVAL means that the server has ended the connection and
 * the CM event was not read yet (ib_cm_init_qp_attr and cma_accept of the kernel's drivers/infiniband/core). */
static void fail_answered(struct client_conn *c, int ret)
{
	if (ret == -EINVAL)
		client_fail(c, FAIL_CLOSED, 0);
	else
		fail_errno(c, ret);
}

static void on_response(struct client_conn *c, const struct cm_event *e)
{
	struct cm_qp_param qp = { .rq_psn = c->head.grant.psn, .sq_psn = c->psn,
				  .remote_write = true,	/* for the server's 0-byte liveness probe */
				  .own_reads = MIN(e->reads, client_reads_wanted(c->ctx)),
				  .path_mtu = c->ctx->cfg->path_mtu, .retry = c->ctx->cfg->retry,
				  .fabric = c->ctx->cfg->fabric, .verify = c->ctx->cfg->verify };
	struct cm_path path;
	int ret = check_proof(c, e);

	auth_wipe(&c->keys);
	if (ret && ret != -EBADMSG) {
		fail_errno(c, ret);
		return;
	}
	if (ret) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_PROOF);
		return;
	}
	c->server_qpn = e->qpn;
	client_stage_done(c, STAGE_RDMA_CONNECT);
	ret = cm_get_path(c->link.rc.id, &path);
	if (ret) {
		fail_answered(c, ret);
		return;
	}
	ret = cm_program_qp(c->link.rc.id, c->link.rc.qp, &path, &qp);
	if (!ret && c->ctx->cfg->cm_psn)
		ret = cm_own_psn(c->link.rc.id, &c->cm_psn);
	client_stage_done(c, STAGE_QP_SETUP);
	if (ret == -EBADMSG) {
		client_fail(c, FAIL_PROTOCOL, PROTO_PSN_MISMATCH);
		return;
	}
	if (ret) {
		fail_errno(c, ret);
		return;
	}
	ret = cm_establish(c->link.rc.id);
	if (ret) {
		fail_answered(c, ret);
		return;
	}
	/* From here on the CM needs a disconnect; before, destroying the id rejects the server's reply. */
	c->cm_connected = true;
	client_stage_done(c, STAGE_RDMA_CONNECT);
	if (c->ctx->cfg->no_first_message)
		client_set_live(c);
	else
		client_enter(c, STAGE_FIRST_REPLY);
}

/* True if a QP number was stale: ours for the server's CM, or the server's for our CM, which the server reports. */
static bool is_stale(enum fail_kind kind, int code)
{
	return kind == FAIL_CM_STATUS ? code == FAIL_CM_STALE : code == REFUSE_STALE;
}

static void on_rejected(struct client_conn *c, const struct cm_event *e)
{
	enum fail_kind kind = FAIL_CM_STATUS;
	int code = e->status;
	uint16_t refusal;

	c->cm_connected = false;
	/* A peer that rejects has no connection left, unless an earlier one with the same QP number made it reject. */
	c->qpn_lingers = e->status == FAIL_CM_STALE;
	if (e->status == CM_REJECT_CONSUMER &&
	    pdata_decode_reject(e->private_data, e->private_bytes, &refusal) == 0) {
		kind = FAIL_REFUSED;
		code = refusal;
	}
	if (c->state != CLIENT_ST_RDMA_CONNECT || !is_stale(kind, code) || !client_begin_again(c))
		client_fail(c, kind, code);
	client_try_finish(c);
}

static void on_gone(struct client_conn *c, enum fail_kind kind, int code)
{
	c->cm_connected = false;
	client_fail(c, kind, code);
	client_try_finish(c);
}

/* True if the connection is in `state`: events that come too late, while it is closing, are ignored. */
static bool expects(const struct client_conn *c, enum client_state state)
{
	return c->state == state;
}

void client_on_cm_event(void *arg, const struct cm_event *e)
{
	struct client_ctx *ctx = arg;
	struct client_conn *c = e->context;

	switch (e->type) {
	case CM_ADDR_RESOLVED:
		if (expects(c, CLIENT_ST_ADDR_RESOLVE))
			on_addr_resolved(c);
		break;
	case CM_ROUTE_RESOLVED:
		if (expects(c, CLIENT_ST_ROUTE_RESOLVE))
			on_route_resolved(c);
		break;
	case CM_CONNECT_RESPONSE:
		if (expects(c, CLIENT_ST_RDMA_CONNECT))
			on_response(c, e);
		break;
	case CM_REJECTED:
		on_rejected(c, e);
		break;
	case CM_DISCONNECTED:
		/* A status means that the server did not answer: its CM may still have the connection. */
		c->qpn_lingers = e->status != 0;
		on_gone(c, FAIL_CLOSED, 0);
		break;
	case CM_ADDR_ERROR:
	case CM_ROUTE_ERROR:
	case CM_CONNECT_ERROR:
	case CM_UNREACHABLE:
		on_gone(c, FAIL_CM_STATUS, e->status);
		break;
	case CM_DEVICE_REMOVED:
		if (!ctx->pump.broken)
			log_error("RDMA device %s was removed", ctx->dev.name);
		pump_fail(&ctx->pump);
		break;
	case CM_CONNECT_REQUEST:
	case CM_ESTABLISHED:
	case CM_OTHER:
		break;
	}
}
