/* The client's data path: sending, replies, one-sided requests, completions. */
#include <assert.h>
#include <errno.h>

#include "client/conn.h"
#include "common/clock.h"
#include "common/ep.h"
#include "common/msg.h"

void client_send(struct client_conn *c, uint32_t buf, uint32_t bytes, uint64_t sequence)
{
	struct msg_header h = { .type = MSG_ECHO, .length = bytes, .sequence = sequence };

	assert(c->in_flight < c->grant.credits);
	msg_encode(&h, ep_buf(c->ctx->ep, buf));
	c->in_flight++;
	c->ctx->bytes_sent += bytes;
	if (rc_send(&c->rc, buf, bytes))
		client_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

int client_one_sided(struct client_conn *c, enum ibv_wr_opcode opcode, uint32_t buf, uint32_t bytes,
		     uint64_t offset)
{
	const struct frame_grant *g = &c->grant;

	if (c->state != CLIENT_ST_LIVE)
		return -ENOTCONN;
	if (!(g->features & FRAME_FEATURE_REGION) || offset > g->region_bytes ||
	    bytes > g->region_bytes - offset || bytes > ep_buf_bytes(c->ctx->ep))
		return -EINVAL;
	return rc_one_sided(&c->rc, opcode, buf, bytes, g->region_addr + offset, g->region_rkey);
}

static void on_first_reply(struct client_conn *c)
{
	client_stage_done(c, STAGE_FIRST_REPLY);
	client_set_live(c);
}

static void on_reply(struct client_conn *c, const uint8_t *data, uint32_t bytes)
{
	struct msg_header h;

	if (msg_decode(data, bytes, &h) || h.type != MSG_REPLY || c->in_flight == 0) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
		return;
	}
	c->in_flight--;
	c->ctx->bytes_received += bytes;
	if (c->state == CLIENT_ST_FIRST_REPLY)
		on_first_reply(c);
	else
		c->ctx->ops->on_message(c->ctx->arg, c, h.sequence, data, bytes);
}

static void on_receive(struct client_ctx *ctx, const struct ibv_wc *wc, uint32_t buf)
{
	uint32_t owner = qp_pool_owner_of_qpn(ctx->qps, wc->qp_num);
	struct client_conn *c = owner == QP_POOL_NONE ? NULL : &ctx->conns[owner];

	if (c && (c->state == CLIENT_ST_FIRST_REPLY || c->state == CLIENT_ST_LIVE)) {
		if (wc->status == IBV_WC_SUCCESS && wc->opcode != IBV_WC_RECV)
			client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
		else if (wc->status == IBV_WC_SUCCESS)
			on_reply(c, ep_buf(ctx->ep, buf), wc->byte_len);
		else
			client_fail(c, FAIL_WC_STATUS, (int)wc->status);
	}
	ep_recycle(ctx->ep, buf);
}

static void on_sent(struct client_ctx *ctx, const struct ibv_wc *wc, const struct wr *w)
{
	uint32_t owner = qp_pool_owner(ctx->qps, w->qp_slot, w->generation);
	struct client_conn *c;

	if (owner == QP_POOL_NONE) {
		if (w->buf != EP_NO_BUF)
			ep_buf_put(ctx->ep, w->buf);
		return;
	}
	c = &ctx->conns[owner];
	if (rc_on_send_wc(&c->rc, wc, w))
		client_fail(c, FAIL_WC_STATUS, wc->status ? (int)wc->status : IBV_WC_LOC_QP_OP_ERR);
	else if (w->type == WR_BEACON)
		client_try_finish(c);
	else if (w->type == WR_ONE_SIDED && c->state == CLIENT_ST_LIVE && ctx->ops->on_one_sided)
		ctx->ops->on_one_sided(ctx->arg, c);
}

void client_on_wc(void *arg, const struct ibv_wc *wc)
{
	struct client_ctx *ctx = arg;
	struct wr w = wr_unpack(wc->wr_id);

	if (w.type == WR_RECV)
		on_receive(ctx, wc, w.buf);
	else
		on_sent(ctx, wc, &w);
}
