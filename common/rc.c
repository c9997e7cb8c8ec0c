/* One end of a reliable connection over verbs. See rc.h.
 *
 * A waiting buffer's length and link stand in the endpoint's per-buffer records (ep_buf_link), so the
 * list needs no memory of its own.
 */
#include "common/rc.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"

#define RESERVED_ENTRIES 2	/* the special one and the beacon */

void rc_init(struct rc *rc, struct ep *ep, struct qp_pool *pool)
{
	memset(rc, 0, sizeof(*rc));
	rc->ep = ep;
	rc->pool = pool;
	rc->slot = QP_POOL_NONE;
	rc->waiting_head = rc->waiting_tail = EP_NO_BUF;
}

int rc_take_qp(struct rc *rc, uint32_t owner)
{
	int ret = qp_pool_get(rc->pool, owner, &rc->slot);

	if (ret) {
		rc->slot = QP_POOL_NONE;
		return ret;
	}
	rc->qp = qp_pool_qp(rc->pool, rc->slot);
	rc->generation = qp_pool_generation(rc->pool, rc->slot);
	return 0;
}

uint32_t rc_qpn(const struct rc *rc)
{
	return rc->qp->qp_num;
}

static uint32_t message_entries(const struct rc *rc)
{
	return ep_sq_depth(rc->ep) - RESERVED_ENTRIES;
}

static uint64_t make_id(const struct rc *rc, enum wr_type type, uint32_t buf, uint32_t covers)
{
	struct wr w = { .type = type, .buf = buf, .qp_slot = rc->slot,
			.generation = rc->generation, .covers = covers };

	return wr_pack(&w);
}

static int post(struct rc *rc, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int ret = ibv_post_send(rc->qp, wr, &bad);

	if (ret)
		log_warn("ibv_post_send on QP 0x%x failed: %s", rc->qp->qp_num, strerror(ret));
	return -ret;
}

/* Posts a message. An inline one is signalled only often enough that the send queue cannot fill up
 * with entries nobody will be told about. */
static int post_message(struct rc *rc, uint32_t buf, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)ep_buf(rc->ep, buf), .length = length,
			       .lkey = ep_lkey(rc->ep) };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	bool is_inline = length <= ep_inline_bytes(rc->ep);
	uint32_t covers = rc->unsignalled + 1u;
	bool signalled = !is_inline || covers * 3 >= message_entries(rc) || covers == WR_COVERS_MAX;
	int ret;

	wr.wr_id = make_id(rc, WR_SEND, is_inline ? EP_NO_BUF : buf, signalled ? covers : 0);
	wr.send_flags = (is_inline ? IBV_SEND_INLINE : 0u) | (signalled ? IBV_SEND_SIGNALED : 0u);
	ret = post(rc, &wr);
	if (ret || is_inline)
		ep_buf_put(rc->ep, buf);
	if (ret)
		return ret;
	rc->sq_used++;
	rc->unsignalled = signalled ? 0 : (uint16_t)covers;
	return 0;
}

static void wait_for_entry(struct rc *rc, uint32_t buf, uint32_t length)
{
	struct ep_buf_link *link = ep_buf_link(rc->ep, buf);

	link->next = EP_NO_BUF;
	link->length = length;
	if (rc->waiting_tail == EP_NO_BUF)
		rc->waiting_head = buf;
	else
		ep_buf_link(rc->ep, rc->waiting_tail)->next = buf;
	rc->waiting_tail = buf;
	rc->waiting_n++;
}

static uint32_t take_waiting(struct rc *rc, uint32_t *length)
{
	uint32_t buf = rc->waiting_head;
	struct ep_buf_link *link = ep_buf_link(rc->ep, buf);

	rc->waiting_head = link->next;
	if (rc->waiting_head == EP_NO_BUF)
		rc->waiting_tail = EP_NO_BUF;
	rc->waiting_n--;
	*length = link->length;
	return buf;
}

static int send_waiting(struct rc *rc)
{
	while (rc->waiting_head != EP_NO_BUF && rc->sq_used < message_entries(rc)) {
		uint32_t length, buf = take_waiting(rc, &length);
		int ret = post_message(rc, buf, length);

		if (ret)
			return ret;
	}
	return 0;
}

int rc_send(struct rc *rc, uint32_t buf, uint32_t length)
{
	if (rc->draining) {
		ep_buf_put(rc->ep, buf);
		return -ENOTCONN;
	}
	if (rc->waiting_head != EP_NO_BUF || rc->sq_used >= message_entries(rc)) {
		wait_for_entry(rc, buf, length);
		return 0;
	}
	return post_message(rc, buf, length);
}

static int post_special(struct rc *rc, struct ibv_send_wr *wr)
{
	int ret;

	if (rc->draining)
		return -ENOTCONN;
	if (rc->special_busy)
		return -EBUSY;
	wr->send_flags |= IBV_SEND_SIGNALED;
	ret = post(rc, wr);
	rc->special_busy = ret == 0;
	return ret;
}

int rc_probe(struct rc *rc)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	wr.wr_id = make_id(rc, WR_PROBE, EP_NO_BUF, 0);
	return post_special(rc, &wr);
}

int rc_bind_window(struct rc *rc, struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	wr.wr_id = make_id(rc, WR_BIND, EP_NO_BUF, 0);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = *info;
	return post_special(rc, &wr);
}

int rc_one_sided(struct rc *rc, enum ibv_wr_opcode opcode, uint32_t buf, uint32_t length,
		 uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)ep_buf(rc->ep, buf), .length = length,
			       .lkey = ep_lkey(rc->ep) };
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 };

	wr.wr_id = make_id(rc, WR_ONE_SIDED, EP_NO_BUF, 0);
	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;
	return post_special(rc, &wr);
}

int rc_on_send_wc(struct rc *rc, const struct ibv_wc *wc, const struct wr *w)
{
	if (w->buf != EP_NO_BUF)
		ep_buf_put(rc->ep, w->buf);
	if (w->type == WR_BEACON) {
		rc->drained = true;
		return 0;
	}
	if (w->type == WR_SEND)
		rc->sq_used = (uint16_t)(rc->sq_used - w->covers);
	else
		rc->special_busy = false;
	if (rc->draining)
		return 0;
	return wc->status == IBV_WC_SUCCESS ? send_waiting(rc) : -EIO;
}

static void drop_waiting(struct rc *rc)
{
	uint32_t length;

	while (rc->waiting_head != EP_NO_BUF)
		ep_buf_put(rc->ep, take_waiting(rc, &length));
}

void rc_drain(struct rc *rc)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	int ret;

	if (rc->draining || rc->slot == QP_POOL_NONE)
		return;
	rc->draining = true;
	drop_waiting(rc);
	ret = ibv_modify_qp(rc->qp, &attr, IBV_QP_STATE);
	wr.wr_id = make_id(rc, WR_BEACON, EP_NO_BUF, 0);
	if (!ret)
		ret = -post(rc, &wr);
	if (ret) {
		/* A QP still in RESET or INIT takes no sends and has nothing outstanding. */
		log_debug("QP 0x%x needs no drain: %s", rc->qp->qp_num, strerror(ret));
		rc->drained = true;
	}
}

bool rc_is_drained(const struct rc *rc)
{
	return rc->slot == QP_POOL_NONE || rc->drained;
}

void rc_release(struct rc *rc, uint64_t now_ns, bool qp_reusable)
{
	cm_id_destroy(rc->id);
	rc->id = NULL;
	if (rc->slot != QP_POOL_NONE)
		qp_pool_put(rc->pool, rc->slot, now_ns, qp_reusable);
	rc->slot = QP_POOL_NONE;
	rc->qp = NULL;
}
