/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages, and requests on the region: sending them, and their replies and completions. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>

#include "client/internal.h"
#include "common/base/clock.h"
#include "common/base/hot.h"
#include "common/rdma/ep.h"
#include "common/wire/msg.h"

static void count_out(struct client_conn *c, uint32_t bytes)
{
	assert(c->head.in_flight < c->head.grant.credits);
	c->head.in_flight++;
	c->ctx->bytes_sent += bytes;
}

static void broken(struct client_conn *c)
{
	client_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

static uint32_t before_tag(const struct client_conn *c, uint32_t bytes)
{
	return c->tags ? bytes - MSG_TAG_BYTES : bytes;
}

static HOT_INLINE bool seal(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t offset,
			    uint32_t bytes)
{
	uint8_t *data = ep_buf(c->ctx->ep, buf) + offset;
	struct msg_header out = *h;

	out.length = bytes;
	out.flags |= c->tags ? MSG_FLAG_TAG : 0;
	msg_encode(&out, data);
	if (h->flags & MSG_FLAG_SUM)
		msg_seal(msg_sum_seed(c->head.grant.session, sizeof(c->head.grant.session)), data,
			 before_tag(c, bytes));
	if (!c->tags || msg_tag_write(c->tags, data, bytes) == 0)
		return true;
	ep_buf_put(c->ctx->ep, buf);
	client_fail(c, FAIL_ERRNO, EIO);
	return false;
}

bool client_seal(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t offset, uint32_t bytes)
{
	return seal(c, h, buf, offset, bytes);
}

static HOT_INLINE void post(struct client_conn *c, uint32_t buf, uint32_t bytes, bool asks)
{
	count_out(c, bytes);
	if (asks ? link_send(&c->link, buf, bytes) : link_send_unsolicited(&c->link, buf, bytes))
		broken(c);
}

void client_post(struct client_conn *c, uint32_t buf, uint32_t bytes, bool asks)
{
	post(c, buf, bytes, asks);
}

void client_send(struct client_conn *c, const struct msg_header *h, uint32_t buf, uint32_t bytes)
{
	if (seal(c, h, buf, 0, bytes))
		post(c, buf, bytes, h->type != MSG_DATA || (h->flags & MSG_FLAG_ACK));
}

void client_ping(struct client_conn *c, uint32_t buf, uint32_t bytes, uint32_t number)
{
	count_out(c, bytes);
	if (link_send_imm(&c->link, buf, bytes, htonl(number)))
		broken(c);
}

void client_push(struct client_conn *c, const struct msg_push *push, uint64_t sequence)
{
	struct msg_header h = { .type = MSG_PUSH, .sequence = sequence };
	uint32_t buf = ep_buf_get(c->ctx->ep);

	if (buf == EP_NO_BUF) {
		client_fail(c, FAIL_ERRNO, ENOBUFS);
		return;
	}
	c->ctx->bytes_received += push->bytes;
	msg_put_push(push, ep_buf(c->ctx->ep, buf));
	client_send(c, &h, buf, MSG_HEADER_BYTES + MSG_PUSH_BYTES + (c->tags ? MSG_TAG_BYTES : 0));
}

static bool is_inside(const struct frame_grant *g, uint64_t offset, uint32_t bytes)
{
	return (g->features & FRAME_FEATURE_REGION) && offset <= g->region_bytes && bytes <= g->region_bytes - offset;
}

static bool takes_credit(const struct rc_rma *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void count_rma(struct client_ctx *ctx, const struct rc_rma *op)
{
	if (op->opcode == IBV_WR_RDMA_WRITE || takes_credit(op))
		ctx->bytes_sent += op->bytes;
	else
		ctx->bytes_received += op->bytes;
	ctx->one_sided_bytes += op->bytes;
}

/* Turns the offset of a request into an address, and fills in the key. */
static void complete(struct client_conn *c, struct rc_rma *op)
{
	const struct frame_grant *g = &c->head.grant;

	op->remote_addr += g->region_addr;
	op->rkey = g->region_rkey;
	op->imm = htonl(op->imm);
}

int client_rma(struct client_conn *c, struct rc_rma *ops, uint32_t n)
{
	const struct frame_grant *g = &c->head.grant;
	uint32_t credits = 0;

	if (c->state != CLIENT_ST_LIVE)
		return -ENOTCONN;
	for (uint32_t i = 0; i < n; i++) {
		credits += takes_credit(&ops[i]);
		if (!is_inside(g, ops[i].remote_addr, ops[i].bytes) ||
		    (takes_credit(&ops[i]) && !(g->features & FRAME_FEATURE_WRITE_IMM)))
			return -EINVAL;
	}
	if (c->head.in_flight + credits > g->credits || n > rc_room(&c->link.rc))
		return -EAGAIN;
	for (uint32_t i = 0; i < n; i++)
		complete(c, &ops[i]);
	if (rc_rma(&c->link.rc, ops, n)) {
		broken(c);
		return 0;
	}
	for (uint32_t i = 0; i < n; i++)
		count_rma(c->ctx, &ops[i]);
	c->rma_in_flight += n;
	c->head.in_flight += credits;
	return 0;
}

uint32_t client_rma_room(const struct client_conn *c)
{
	return rc_room(&c->link.rc);
}

static void on_first_reply(struct client_conn *c)
{
	client_stage_done(c, STAGE_FIRST_REPLY);
	client_set_live(c);
}

static bool take_back(struct client_conn *c, uint32_t credits, uint32_t bytes)
{
	if (credits == 0 || credits > c->head.in_flight)
		return false;
	c->head.in_flight -= credits;
	c->ctx->bytes_received += bytes;
	return true;
}

static HOT_INLINE bool tag_is_right(struct client_conn *c, const uint8_t *data, const struct msg_header *h)
{
	bool tagged = h->flags & MSG_FLAG_TAG;

	return tagged == (c->tags != NULL) && (!tagged || msg_tag_check(c->tags, data, h->length));
}

static bool on_credit(struct client_conn *c, const struct msg_header *h)
{
	const struct client_ops *ops = c->ctx->ops;

	if (c->state != CLIENT_ST_LIVE || !ops->on_credit || !take_back(c, h->credits, h->length))
		return false;
	ops->on_credit(c->ctx->arg, c, h->credits, h->sequence);
	return true;
}

static bool on_pushed(struct client_conn *c, const struct msg_header *h, const uint8_t *data, uint32_t bytes)
{
	const struct client_ops *ops = c->ctx->ops;

	if (c->state != CLIENT_ST_LIVE || !ops->on_pushed || !take_back(c, 1, h->length))
		return false;
	if (link_is_rdma(&c->link))
		ops->on_pushed(c->ctx->arg, c, h->sequence, NULL, 0);
	else
		ops->on_pushed(c->ctx->arg, c, h->sequence, data + h->length, bytes - h->length);
	return true;
}

/* Number of received bytes that are the message: over a socket, pushed data follow the PUSHED message. */
static uint32_t message_bytes(const struct client_conn *c, const uint8_t *data, uint32_t bytes)
{
	uint32_t pushed = MSG_HEADER_BYTES + (c->tags ? MSG_TAG_BYTES : 0);

	return !link_is_rdma(&c->link) && bytes > pushed && data[0] == MSG_PUSHED ? pushed : bytes;
}

/* Handles a GOODBYE. While the first reply is outstanding the user has started nothing, so the connection ends. */
static bool on_goodbye(struct client_conn *c, const struct msg_header *h)
{
	const struct client_ops *ops = c->ctx->ops;

	if (h->sequence != REFUSE_DRAINING || c->draining)
		return false;
	c->draining = true;
	if (c->state == CLIENT_ST_FIRST_REPLY)
		client_fail(c, FAIL_CLOSED, REFUSE_DRAINING);
	else if (ops->on_draining)
		ops->on_draining(c->ctx->arg, c);
	return true;
}

/* Ends a connection whose server said goodbye, once nothing is in flight any more. */
static void end_if_drained(struct client_conn *c)
{
	if (c->draining && c->head.in_flight == 0 && c->rma_in_flight == 0)
		client_fail(c, FAIL_CLOSED, REFUSE_DRAINING);
}

/* Returns false for a message that no server may send. */
static HOT_INLINE bool on_reply(struct client_conn *c, const uint8_t *data, struct link_arrival a)
{
	const struct client_ops *ops = c->ctx->ops;
	struct msg_header h;

	if (a.has_imm) {
		if (c->state != CLIENT_ST_LIVE || !ops->on_ping || !take_back(c, 1, a.bytes))
			return false;
		ops->on_ping(c->ctx->arg, c, ntohl(a.imm), data, a.bytes);
		return true;
	}
	if (msg_decode(data, message_bytes(c, data, a.bytes), &h))
		return false;
	if (!tag_is_right(c, data, &h)) {
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_TAG);
		return true;
	}
	if (h.type == MSG_REPLY) {
		if (!take_back(c, 1, a.bytes))
			return false;
		if (c->state == CLIENT_ST_FIRST_REPLY)
			on_first_reply(c);
		else
			ops->on_message(c->ctx->arg, c, h.sequence, data, a.bytes);
		return true;
	}
	if (h.type == MSG_PUSHED)
		return on_pushed(c, &h, data, a.bytes);
	if (h.type == MSG_GOODBYE)
		return on_goodbye(c, &h);
	return h.type == MSG_CREDIT && on_credit(c, &h);
}

static bool takes_messages(const struct client_conn *c)
{
	return c->state == CLIENT_ST_FIRST_REPLY || c->state == CLIENT_ST_LIVE;
}

static HOT_INLINE void on_arrival(struct client_conn *c, uint32_t buf, struct link_arrival a)
{
	c->heard = true;
	if (!on_reply(c, ep_buf(c->link.ep, buf), a))
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
	end_if_drained(c);
}

void client_on_record(struct client_conn *c, uint32_t buf, const struct record *r)
{
	if (takes_messages(c) && (r->kind == RECORD_MESSAGES || r->kind == RECORD_PING))
		on_arrival(c, buf, (struct link_arrival){ .bytes = r->bytes, .imm = r->imm,
							   .has_imm = r->kind == RECORD_PING });
	else
		client_fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME);
	ep_buf_put(c->link.ep, buf);
}

static void on_receive(struct client_ctx *ctx, const struct ibv_wc *wc, uint32_t buf)
{
	uint32_t owner = qp_pool_owner_of_qpn(ctx->qps, wc->qp_num);
	struct client_conn *c = owner == QP_POOL_NONE ? NULL : &ctx->conns[owner];

	if (c && takes_messages(c)) {
		if (wc->status != IBV_WC_SUCCESS)
			client_fail(c, FAIL_WC_STATUS, (int)wc->status);
		else if (wc->opcode != IBV_WC_RECV)
			client_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
		else
			on_arrival(c, buf, (struct link_arrival){ .bytes = wc->byte_len, .imm = wc->imm_data,
								   .has_imm = wc->wc_flags & IBV_WC_WITH_IMM });
	} else if (c && client_is_oob(c)) {
		bool plain = wc->opcode == IBV_WC_RECV && !(wc->wc_flags & IBV_WC_WITH_IMM);

		if (wc->status == IBV_WC_SUCCESS)
			client_oob_on_receive(c, ep_buf(ctx->ep, buf), plain ? wc->byte_len : 0);
		else if (c->state == CLIENT_ST_QP_EXCHANGE)
			client_fail(c, FAIL_WC_STATUS, (int)wc->status);
	}
	ep_recycle(ctx->ep, buf);
}

static void on_rma(struct client_conn *c, uint32_t n)
{
	const struct client_ops *ops = c->ctx->ops;

	c->rma_in_flight -= n;
	if (c->state == CLIENT_ST_LIVE && ops->on_rma)
		ops->on_rma(c->ctx->arg, c, n);
	end_if_drained(c);
}

static void on_sent(struct client_ctx *ctx, const struct ibv_wc *wc, const struct wr *w)
{
	uint32_t owner = qp_pool_owner(ctx->qps, w->qp_slot, w->generation);
	struct client_conn *c;

	/* Without an owner, the completion is of an earlier connection on this slot, whose end freed its buffers. */
	if (owner == QP_POOL_NONE)
		return;
	c = &ctx->conns[owner];
	if (rc_on_send_wc(&c->link.rc, wc, w)) {
		client_fail(c, FAIL_WC_STATUS, wc->status ? (int)wc->status : IBV_WC_LOC_QP_OP_ERR);
		if (c->awaits_close)
			client_end_wait(c);
	} else if (c->awaits_close && c->draining && rc_is_idle(&c->link.rc)) {
		/* The server has said goodbye first, and has ours now. */
		client_end_wait(c);
	} else if (rc_may_end_drain(w))
		client_try_finish(c);
	else if (w->type == WR_RMA && w->buf)
		on_rma(c, w->buf);
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
