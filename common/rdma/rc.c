/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a reliable connection over verbs. See rc.h.
 *
 * The endpoint has a record for each buffer (ep_buf_link). The length and the next buffer of waiting and held buffers
 * are stored there, so the lists need no memory of their own.
 */
#include "common/rdma/rc.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/hot.h"
#include "common/base/log.h"

#define RESERVED_ENTRIES 1	/* the special entry: for a probe or bind, and at the end for the beacon */

/* Requests posted with one doorbell. */
struct chain {
	struct ibv_send_wr wr[EP_POST_LIST_MAX];
	struct ibv_sge sge[EP_POST_LIST_MAX];
	uint32_t n;
	uint32_t signalled;
	int awaited;			/* completions that somebody waits for */
};

static void run_deferred(struct ep_deferred *d);

void rc_init(struct rc *rc, struct ep *ep, struct qp_pool *pool, rc_on_broken_fn *on_broken)
{
	memset(rc, 0, sizeof(*rc));
	rc->ep = ep;
	rc->pool = pool;
	rc->on_broken = on_broken;
	rc->deferred.run = run_deferred;
	rc->slot = QP_POOL_NONE;
	rc->waiting_head = rc->waiting_tail = EP_NO_BUF;
	rc->held_head = rc->held_tail = EP_NO_BUF;
}

static uint32_t message_entries(const struct rc *rc)
{
	return ep_sq_depth(rc->ep) - RESERVED_ENTRIES;
}

/* A completion covers a third of the entries at most. Otherwise the send queue could fill up with entries that no
 * completion retires. A message may take two entries. */
static void set_signal_limits(struct rc *rc)
{
	uint32_t every = ep_signal_every(rc->ep);

	rc->must_signal_at = (uint16_t)MIN((message_entries(rc) + 2) / 3, WR_COVERS_MAX - 1);
	rc->signal_at = every && every < rc->must_signal_at ? (uint16_t)every : rc->must_signal_at;
}

int rc_take_qp(struct rc *rc, uint32_t owner)
{
	int ret = qp_pool_get(rc->pool, owner, &rc->slot);

	if (ret) {
		rc->slot = QP_POOL_NONE;
		return ret;
	}
	rc->qp = qp_pool_qp(rc->pool, rc->slot);
	rc->id_base = wr_pack(&(struct wr){ .qp_slot = rc->slot,
					    .generation = qp_pool_generation(rc->pool, rc->slot) });
	set_signal_limits(rc);
	return 0;
}

uint32_t rc_qpn(const struct rc *rc)
{
	return rc->qp ? rc->qp->qp_num : 0;
}

static uint64_t make_id(const struct rc *rc, enum wr_type type, uint32_t buf, uint32_t covers, bool awaited)
{
	struct wr w = { .type = type, .buf = buf, .covers = covers, .awaited = awaited };

	return rc->id_base | wr_pack(&w);
}

/* Takes back the announced completions of requests that were not posted. */
static void unawait(struct rc *rc, const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr_unpack(wr->wr_id).awaited)
			ep_await(rc->ep, rc->qp, -1);
}

/* Posts a chain of `n` requests; `signalled` of them are signalled, and somebody waits for `awaited` completions. */
static int post(struct rc *rc, struct ibv_send_wr *wr, uint32_t n, uint32_t signalled, int awaited,
		struct ibv_send_wr **bad)
{
	int ret;

	if (awaited)
		ep_await(rc->ep, rc->qp, awaited);
	ret = ibv_post_send(rc->qp, wr, bad);
	if (!ret) {
		ep_count_doorbell(rc->ep, n, signalled);
		return 0;
	}
	log_warn("ibv_post_send on QP 0x%x failed: %s", rc->qp->qp_num, strerror(ret));
	unawait(rc, *bad);
	return -ret;
}

static void count_posted(struct rc *rc, uint32_t n)
{
	rc->sq_used = (uint16_t)(rc->sq_used + n);
	ep_count_sends(rc->ep, rc->qp, (int)n);
}

static void retire(struct rc *rc, uint32_t n)
{
	rc->sq_used = (uint16_t)(rc->sq_used - n);
	ep_count_sends(rc->ep, rc->qp, -(int)n);
}

static void append(struct rc *rc, uint32_t *head, uint32_t *tail, uint32_t buf)
{
	ep_buf_link(rc->ep, buf)->next = EP_NO_BUF;
	if (*tail == EP_NO_BUF)
		*head = buf;
	else
		ep_buf_link(rc->ep, *tail)->next = buf;
	*tail = buf;
}

static uint32_t take_first(struct rc *rc, uint32_t *head, uint32_t *tail)
{
	uint32_t buf = *head;

	*head = ep_buf_link(rc->ep, buf)->next;
	if (*head == EP_NO_BUF)
		*tail = EP_NO_BUF;
	return buf;
}

static uint32_t writes_before(const struct rc *rc, uint32_t buf)
{
	return ep_buf_link(rc->ep, buf)->write.bytes > 0;
}

static uint32_t take_waiting(struct rc *rc)
{
	rc->waiting_n--;
	rc->waiting_writes -= writes_before(rc, rc->waiting_head);
	return take_first(rc, &rc->waiting_head, &rc->waiting_tail);
}

/* Frees the held buffers up to `last`. */
static void free_held(struct rc *rc, uint32_t last)
{
	uint32_t buf = EP_NO_BUF;

	while (buf != last && rc->held_head != EP_NO_BUF) {
		buf = take_first(rc, &rc->held_head, &rc->held_tail);
		ep_buf_put(rc->ep, buf);
	}
}

static void free_all_held(struct rc *rc)
{
	if (rc->held_tail != EP_NO_BUF)
		free_held(rc, rc->held_tail);
}

/* True if the next message has a completion, which would cover `covers` entries. Unless --signal-every says how often,
 * a message that is not inline always has one, because its buffer is held until then. */
static bool message_is_signalled(const struct rc *rc, uint32_t covers, bool is_inline)
{
	return covers >= rc->signal_at || (!is_inline && !ep_signal_every(rc->ep));
}

/* Nobody waits for the completion of an inline message, because its buffer is free already, unless the send queue is
 * getting full: then its entry is waited for. The last third of a full queue always has a signalled request
 * (must_signal_at). A queue with a single free entry is full for a message with a WRITE. */
static bool message_is_awaited(const struct rc *rc, uint32_t used, bool is_inline)
{
	return !is_inline || (used + rc->may_write) * 3 > message_entries(rc) * 2;
}

/* Clears only part of the request: clearing all of it would take as long as the rest of sending, and the device does
 * not look at fields that the opcode does not use. */
static struct ibv_send_wr *next_of_chain(struct chain *ch)
{
	struct ibv_send_wr *wr = &ch->wr[ch->n];

	wr->next = NULL;
	wr->sg_list = &ch->sge[ch->n];
	wr->num_sge = 1;
	if (ch->n)
		ch->wr[ch->n - 1].next = wr;
	ch->n++;
	return wr;
}

/* The WRITE is unsignalled: the completion of the message behind it retires both; a failed WRITE has its own. */
static void chain_write(struct rc *rc, struct chain *ch, const struct ep_write *write)
{
	struct ibv_send_wr *wr = next_of_chain(ch);

	*wr->sg_list = (struct ibv_sge){ .addr = (uintptr_t)write->local, .length = write->bytes,
					 .lkey = write->lkey };
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = write->remote_addr;
	wr->wr.rdma.rkey = write->rkey;
	wr->wr_id = make_id(rc, WR_RMA, 0, 0, false);
	wr->send_flags = write->bytes <= ep_inline_bytes(rc->ep) ? IBV_SEND_INLINE : 0;
	rc->unsignalled++;
}

/* Adds the first waiting message to the chain. An inline message's buffer is free at once, because ibv_post_send copies
 * it before anything else can take the buffer; any other buffer is held until its completion. */
static void chain_message(struct rc *rc, struct chain *ch)
{
	struct ep *ep = rc->ep;
	uint32_t buf = take_waiting(rc);
	const struct ep_buf_link *link = ep_buf_link(ep, buf);
	bool is_inline = link->length <= ep_inline_bytes(ep), signalled, awaited;
	struct ibv_send_wr *wr;

	if (link->write.bytes)
		chain_write(rc, ch, &link->write);
	wr = next_of_chain(ch);
	if (is_inline)
		ep_buf_put(ep, buf);
	else
		append(rc, &rc->held_head, &rc->held_tail, buf);
	rc->unsignalled++;
	signalled = link->awaited || message_is_signalled(rc, rc->unsignalled, is_inline);
	awaited = signalled && (link->awaited || message_is_awaited(rc, rc->sq_used + ch->n, is_inline));
	*wr->sg_list = (struct ibv_sge){ .addr = (uintptr_t)ep_buf(ep, buf), .length = link->length,
					 .lkey = ep_lkey(ep) };
	wr->opcode = link->has_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	wr->imm_data = link->imm;
	wr->wr_id = make_id(rc, WR_SEND, signalled ? rc->held_tail : EP_NO_BUF, signalled ? rc->unsignalled : 0,
			    awaited);
	wr->send_flags = (is_inline ? IBV_SEND_INLINE : 0u) | (signalled ? IBV_SEND_SIGNALED : 0u) |
			 (link->unsolicited ? 0u : IBV_SEND_SOLICITED);
	if (signalled)
		rc->unsignalled = 0;
	ch->signalled += signalled;
	ch->awaited += awaited;
}

/* Frees the held buffers of messages that were not posted. The first `posted` requests of the chain were posted; `last`
 * is the last buffer held before the chain, or EP_NO_BUF. */
static void free_unposted(struct rc *rc, const struct chain *ch, uint32_t posted, uint32_t last)
{
	uint32_t buf;

	for (uint32_t i = 0; i < posted; i++)
		if (ch->wr[i].opcode != IBV_WR_RDMA_WRITE && !(ch->wr[i].send_flags & IBV_SEND_INLINE))
			last = last == EP_NO_BUF ? rc->held_head : ep_buf_link(rc->ep, last)->next;
	buf = last == EP_NO_BUF ? rc->held_head : ep_buf_link(rc->ep, last)->next;
	if (last == EP_NO_BUF)
		rc->held_head = EP_NO_BUF;
	else
		ep_buf_link(rc->ep, last)->next = EP_NO_BUF;
	rc->held_tail = last;
	for (; buf != EP_NO_BUF; buf = ep_buf_link(rc->ep, buf)->next)
		ep_buf_put(rc->ep, buf);
}

/* Send queue entries that the first waiting message takes. */
static uint32_t entries_of_first(const struct rc *rc)
{
	return rc->waiting_writes ? 1 + writes_before(rc, rc->waiting_head) : 1;
}

/* Posts as many waiting messages as one doorbell takes. */
static int post_messages(struct rc *rc)
{
	uint32_t max = MIN(MAX(ep_post_list(rc->ep), entries_of_first(rc)), message_entries(rc) - rc->sq_used);
	uint32_t last_held = rc->held_tail, posted;
	struct ibv_send_wr *bad = NULL;
	struct chain ch;
	int ret;

	ch.n = 0;
	ch.signalled = 0;
	ch.awaited = 0;
	while (rc->waiting_head != EP_NO_BUF && ch.n + entries_of_first(rc) <= max)
		chain_message(rc, &ch);
	ret = post(rc, ch.wr, ch.n, ch.signalled, ch.awaited, &bad);
	posted = ret ? (uint32_t)(bad - ch.wr) : ch.n;
	if (ret)
		free_unposted(rc, &ch, posted, last_held);
	count_posted(rc, posted);
	return ret;
}

static int post_waiting(struct rc *rc)
{
	while (rc->waiting_head != EP_NO_BUF && rc->sq_used + entries_of_first(rc) <= message_entries(rc)) {
		int ret = post_messages(rc);

		if (ret)
			return ret;
	}
	return 0;
}

static void run_deferred(struct ep_deferred *d)
{
	struct rc *rc = (struct rc *)((char *)d - offsetof(struct rc, deferred));

	if (post_waiting(rc) && rc->on_broken)
		rc->on_broken(rc);
}

static HOT_INLINE int put_in_line(struct rc *rc, uint32_t buf)
{
	if (rc->draining) {
		ep_buf_put(rc->ep, buf);
		return -ENOTCONN;
	}
	append(rc, &rc->waiting_head, &rc->waiting_tail, buf);
	rc->waiting_n++;
	rc->waiting_writes += writes_before(rc, buf);
	if (ep_is_held(rc->ep) && rc->waiting_n < ep_post_list(rc->ep)) {
		ep_defer(rc->ep, &rc->deferred);
		return 0;
	}
	return post_waiting(rc);
}

int rc_send(struct rc *rc, uint32_t buf, uint32_t length)
{
	*ep_buf_link(rc->ep, buf) = (struct ep_buf_link){ .length = length };
	return put_in_line(rc, buf);
}

int rc_send_unsolicited(struct rc *rc, uint32_t buf, uint32_t length)
{
	*ep_buf_link(rc->ep, buf) = (struct ep_buf_link){ .length = length, .unsolicited = true };
	return put_in_line(rc, buf);
}

int rc_send_imm(struct rc *rc, uint32_t buf, uint32_t length, uint32_t imm)
{
	*ep_buf_link(rc->ep, buf) = (struct ep_buf_link){ .length = length, .imm = imm, .has_imm = true };
	return put_in_line(rc, buf);
}

int rc_send_awaited(struct rc *rc, uint32_t buf, uint32_t length)
{
	*ep_buf_link(rc->ep, buf) = (struct ep_buf_link){ .length = length, .awaited = true };
	return put_in_line(rc, buf);
}

bool rc_is_idle(const struct rc *rc)
{
	return rc->waiting_n == 0 && rc->sq_used == 0;
}

int rc_write_send(struct rc *rc, const struct ep_write *write, uint32_t buf, uint32_t length)
{
	*ep_buf_link(rc->ep, buf) = (struct ep_buf_link){ .length = length, .write = *write };
	return put_in_line(rc, buf);
}

static int post_special(struct rc *rc, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int ret;

	if (rc->draining)
		return -ENOTCONN;
	if (rc->special_busy)
		return -EBUSY;
	wr->send_flags |= IBV_SEND_SIGNALED;
	ret = post(rc, wr, 1, 1, 1, &bad);
	rc->special_busy = ret == 0;
	return ret;
}

int rc_probe(struct rc *rc)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	wr.wr_id = make_id(rc, WR_PROBE, EP_NO_BUF, 0, true);
	return post_special(rc, &wr);
}

int rc_bind_window(struct rc *rc, struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	wr.wr_id = make_id(rc, WR_BIND, EP_NO_BUF, 0, true);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = *info;
	return post_special(rc, &wr);
}

uint32_t rc_room(const struct rc *rc)
{
	uint32_t used = rc->sq_used + rc->waiting_n + rc->waiting_writes;

	return used < message_entries(rc) ? message_entries(rc) - used : 0;
}

static void set_target(struct ibv_send_wr *wr, const struct rc_rma *op)
{
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		bool swaps = op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		wr->wr.atomic.remote_addr = op->remote_addr;
		wr->wr.atomic.rkey = op->rkey;
		wr->wr.atomic.compare_add = swaps ? op->compare : op->operand;
		wr->wr.atomic.swap = swaps ? op->operand : 0;
		return;
	}
	wr->wr.rdma.remote_addr = op->remote_addr;
	wr->wr.rdma.rkey = op->rkey;
}

static void chain_rma(struct rc *rc, struct chain *ch, const struct rc_rma *op)
{
	struct ibv_send_wr *wr = next_of_chain(ch);
	bool tells = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM, signalled;
	bool is_inline = (op->opcode == IBV_WR_RDMA_WRITE || tells) && op->bytes <= ep_inline_bytes(rc->ep);

	rc->unsignalled++;
	rc->rma_unsignalled++;
	signalled = op->signal || rc->unsignalled >= rc->must_signal_at;
	*wr->sg_list = (struct ibv_sge){ .addr = (uintptr_t)op->local, .length = op->bytes, .lkey = op->lkey };
	wr->opcode = op->opcode;
	set_target(wr, op);
	if (tells)
		wr->imm_data = op->imm;
	wr->wr_id = make_id(rc, WR_RMA, signalled ? rc->rma_unsignalled : 0, signalled ? rc->unsignalled : 0,
			    signalled);
	ch->signalled += signalled;
	ch->awaited += signalled;
	wr->send_flags = (is_inline ? IBV_SEND_INLINE : 0u) | (signalled ? IBV_SEND_SIGNALED : 0u) |
			 (tells ? IBV_SEND_SOLICITED : 0u);
	if (signalled)
		rc->unsignalled = rc->rma_unsignalled = 0;
}

int rc_rma(struct rc *rc, const struct rc_rma *ops, uint32_t n)
{
	struct ibv_send_wr *bad = NULL;
	struct chain ch;
	int ret;

	if (rc->draining)
		return -ENOTCONN;
	if (n > rc_room(rc))
		return -EAGAIN;
	ret = post_waiting(rc);
	while (n && !ret) {
		uint32_t k = MIN(n, ep_post_list(rc->ep));

		ch.n = 0;
		ch.signalled = 0;
		ch.awaited = 0;
		for (uint32_t i = 0; i < k; i++)
			chain_rma(rc, &ch, &ops[i]);
		ret = post(rc, ch.wr, ch.n, ch.signalled, ch.awaited, &bad);
		count_posted(rc, ret ? (uint32_t)(bad - ch.wr) : k);
		ops += k;
		n -= k;
	}
	return ret;
}

static void count_as_drained(struct rc *rc)
{
	rc->drained = true;
	rc->needs_last_wqe = false;
}

/* A QP that takes no beacon is still in RESET or INIT and has nothing outstanding, or its device fails. */
static void post_beacon(struct rc *rc)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	wr.wr_id = make_id(rc, WR_BEACON, EP_NO_BUF, 0, true);
	if (post(rc, &wr, 1, 1, 1, &bad))
		count_as_drained(rc);
}

int rc_on_send_wc(struct rc *rc, const struct ibv_wc *wc, const struct wr *w)
{
	switch (w->type) {
	case WR_BEACON:
		free_all_held(rc);
		rc->drained = true;
		return 0;
	case WR_SEND:
		retire(rc, w->covers);
		if (w->buf != EP_NO_BUF)
			free_held(rc, w->buf);
		break;
	case WR_RMA:
		retire(rc, w->covers);
		break;
	case WR_BIND:
	case WR_PROBE:
		rc->special_busy = false;
		if (rc->draining && !rc->drained && !rc->abandoned)
			post_beacon(rc);
		break;
	case WR_RECV:
		break;
	}
	if (rc->draining)
		return 0;
	return wc->status == IBV_WC_SUCCESS ? post_waiting(rc) : -EIO;
}

void rc_drain(struct rc *rc)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int ret;

	if (rc->draining || rc->slot == QP_POOL_NONE)
		return;
	rc->draining = true;
	/* A QP that never reached RTR has taken nothing from the shared receive queue. */
	rc->was_connected = rc->qp->state == IBV_QPS_RTR || rc->qp->state == IBV_QPS_RTS;
	rc->needs_last_wqe = ep_dev(rc->ep)->tells_last_wqe && rc->was_connected;
	while (rc->waiting_head != EP_NO_BUF)
		ep_buf_put(rc->ep, take_waiting(rc));
	if (rc->special_busy)
		ep_await(rc->ep, rc->qp, 0); /* arming may have failed before; the flush must raise an event */
	ret = ibv_modify_qp(rc->qp, &attr, IBV_QP_STATE);
	if (ret) {
		log_debug("QP 0x%x cannot be moved to ERR: %s", rc->qp->qp_num, strerror(ret));
		count_as_drained(rc);
	} else if (!rc->special_busy)
		post_beacon(rc);
}

void rc_on_last_wqe(struct rc *rc)
{
	rc->had_last_wqe = true;
}

void rc_abandon(struct rc *rc)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (!rc_is_drained(rc) && ibv_modify_qp(rc->qp, &attr, IBV_QP_STATE))
		log_debug("QP 0x%x cannot be reset", rc->qp->qp_num);
	rc->abandoned = true;
}

bool rc_is_drained(const struct rc *rc)
{
	return rc->slot == QP_POOL_NONE || rc->abandoned ||
	       (rc->drained && (!rc->needs_last_wqe || rc->had_last_wqe));
}

void rc_release(struct rc *rc, uint64_t now_ns, bool qp_reusable)
{
	uint64_t rest_ns;

	if (!rc->id && rc->slot == QP_POOL_NONE)
		return;
	rest_ns = cm_rest_ns(rc->id, ep_dev(rc->ep)->attr.local_ca_ack_delay);
	free_all_held(rc);
	/* Entries without a completion of their own, or whose completion was flushed, were not retired. */
	if (rc->sq_used) {
		retire(rc, rc->sq_used);
		ep_poll_again(rc->ep, rc->qp);
	}
	if ((rest_ns || (!rc->id && (!rc->was_connected || rc->peer_unaware))) && rc->slot != QP_POOL_NONE)
		qp_pool_set_rest(rc->pool, rc->slot, rest_ns);
	cm_id_destroy(rc->id);
	rc->id = NULL;
	if (rc->slot != QP_POOL_NONE)
		qp_pool_put(rc->pool, rc->slot, now_ns, qp_reusable && !rc->abandoned);
	rc->slot = QP_POOL_NONE;
	rc->qp = NULL;
}
