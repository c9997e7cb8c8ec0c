/* SPDX-License-Identifier: BSD-2-Clause */
/* Data path of the fake device: posting, completing, delivering, events. See fake_verbs.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_objects.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"

#define POSTS_MAX 65536

void (*fake_posted)(struct ibv_qp *qp, const struct ibv_send_wr *wr);
static struct fake_post posts[POSTS_MAX];
static uint32_t n_posts, n_srq_posts, doorbells;
static struct fake_srq *the_srq;

void fake_queues_reset(void)
{
	n_posts = n_srq_posts = doorbells = 0;
	the_srq = NULL;
}

void fake_register_srq(struct fake_srq *s)
{
	the_srq = s;
}

static void raise_event(struct fake_cq *q)
{
	struct fake_channel *c = q->channel;
	uint64_t one = 1;

	q->armed = false;
	if (!c)
		return;
	if (c->n_events == c->room) {
		c->room = c->room ? c->room * 2 : 16;
		c->events = realloc(c->events, c->room * sizeof(*c->events));
	}
	c->events[c->n_events++] = q;
	if (write(c->ch.fd, &one, sizeof(one)) != sizeof(one))
		fake_violation("completion channel full");
}

void fake_push_wc(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct fake_cq *q = (struct fake_cq *)cq;

	if (q->n == (uint32_t)cq->cqe) {
		fake_violation("completion queue of %d entries overflowed", cq->cqe);
		return;
	}
	q->wcs[(q->head + q->n++) % (uint32_t)cq->cqe] = *wc;
	if (q->armed)
		raise_event(q);
}

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	FAKE_GUARD;
	struct fake_cq *q = (struct fake_cq *)cq;
	int n = 0;

	q->polls++;
	if (fake_fails("ibv_poll_cq"))
		return -1;
	while (n < max && q->n) {
		wc[n++] = q->wcs[q->head];
		q->head = (q->head + 1) % (uint32_t)cq->cqe;
		q->n--;
	}
	return n;
}

/* As on rxe, one-shot: what waits already raises no event. */
static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	FAKE_GUARD;
	int e = fake_fails("ibv_req_notify_cq");

	((struct fake_cq *)cq)->armed = e == 0;
	((struct fake_cq *)cq)->solicited_only = solicited_only;
	return e;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	FAKE_GUARD;
	struct fake_channel *c = (struct fake_channel *)channel;
	int e = fake_fails("ibv_get_cq_event");
	uint64_t one;

	if (!e && read(channel->fd, &one, sizeof(one)) != sizeof(one))
		e = errno;
	if (e) {
		errno = e;
		return -1;
	}
	*cq = &c->events[0]->cq;
	*cq_context = (*cq)->cq_context;
	c->events[0]->got++;
	memmove(c->events, c->events + 1, --c->n_events * sizeof(*c->events));
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	FAKE_GUARD;
	struct fake_cq *q = (struct fake_cq *)cq;

	q->acked += n;
	if (q->acked > q->got)
		fake_violation("%u events acked, %u taken", q->acked, q->got);
}

uint32_t fake_cq_waiting(const struct ibv_cq *cq)
{
	return ((const struct fake_cq *)cq)->n;
}

bool fake_cq_armed(const struct ibv_cq *cq)
{
	return ((const struct fake_cq *)cq)->armed;
}

bool fake_cq_solicited_only(const struct ibv_cq *cq)
{
	return ((const struct fake_cq *)cq)->solicited_only;
}

uint32_t fake_cq_polls(const struct ibv_cq *cq)
{
	return ((const struct fake_cq *)cq)->polls;
}

uint32_t fake_cq_unacked(const struct ibv_cq *cq)
{
	const struct fake_cq *q = (const struct fake_cq *)cq;

	return q->got - q->acked;
}

static void bind_window(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	struct fake_mw *w = (struct fake_mw *)wr->bind_mw.mw;

	if (w->qp)
		fake_violation("window bound twice");
	w->qp = q;
	w->mr = (struct fake_mr *)wr->bind_mw.bind_info.mr;
	q->windows++;
	w->mr->windows++;
	w->mw.rkey = wr->bind_mw.rkey;
	if (!(w->mr->access & IBV_ACCESS_MW_BIND))
		fake_violation("window bound to a region without IBV_ACCESS_MW_BIND");
}

static void record(const struct fake_qp *q, const struct ibv_send_wr *wr)
{
	struct fake_post *p;

	if (n_posts == POSTS_MAX)
		return;
	p = &posts[n_posts++];
	memset(p, 0, sizeof(*p));
	p->qpn = q->qp.qp_num;
	p->wr_id = wr->wr_id;
	p->opcode = wr->opcode;
	p->flags = wr->send_flags;
	if (wr->num_sge) {
		p->addr = wr->sg_list[0].addr;
		p->length = wr->sg_list[0].length;
		p->lkey = wr->sg_list[0].lkey;
		if (p->addr)
			memcpy(p->head, (const void *)(uintptr_t)p->addr,
			       p->length < sizeof(p->head) ? p->length : sizeof(p->head));
	}
	if (wr->opcode == IBV_WR_BIND_MW) {
		p->mw = wr->bind_mw.mw;
		p->rkey = wr->bind_mw.rkey;
		p->bind = wr->bind_mw.bind_info;
	} else {
		p->imm = wr->imm_data;
		p->remote_addr = wr->wr.rdma.remote_addr;
		p->rkey = wr->wr.rdma.rkey;
	}
}

static int post_one(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	int e = fake_fails("ibv_post_send");

	if (e)
		return e;
	if (q->state != IBV_QPS_RTS && q->state != IBV_QPS_ERR)
		return EINVAL;
	if (q->n == q->cap.max_send_wr) {
		fake_violation("send queue of %u entries overflowed", q->cap.max_send_wr);
		return ENOMEM;
	}
	if ((wr->send_flags & IBV_SEND_INLINE) && wr->sg_list[0].length > q->cap.max_inline_data)
		return EINVAL;
	record(q, wr);
	q->sends[(q->head + q->n++) % q->cap.max_send_wr] = (struct fake_send){
		wr->wr_id, wr->opcode, wr->send_flags & IBV_SEND_SIGNALED };
	if (q->state == IBV_QPS_ERR)
		fake_flush(q);
	else if (wr->opcode == IBV_WR_BIND_MW)
		bind_window(q, wr);
	if (fake_cm.wire && q->state == IBV_QPS_RTS)
		fake_wire_send(q, wr);
	if (fake_posted && q->state == IBV_QPS_RTS)
		fake_posted(&q->qp, wr);
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	FAKE_GUARD;
	doorbells++;
	for (; wr; wr = wr->next) {
		int e = post_one((struct fake_qp *)qp, wr);

		if (e) {
			*bad = wr;
			return e;
		}
	}
	return 0;
}

static struct fake_send pop_send(struct fake_qp *q)
{
	struct fake_send s = q->sends[q->head];

	q->head = (q->head + 1) % q->cap.max_send_wr;
	q->n--;
	return s;
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_WRITE)
		return IBV_WC_RDMA_WRITE;
	if (opcode == IBV_WR_RDMA_READ)
		return IBV_WC_RDMA_READ;
	return opcode == IBV_WR_BIND_MW ? IBV_WC_BIND_MW : IBV_WC_SEND;
}

static void complete_one(struct fake_qp *q, enum ibv_wc_status status)
{
	struct fake_send s = pop_send(q);
	struct ibv_wc wc = { .wr_id = s.wr_id, .status = status, .opcode = wc_opcode(s.opcode),
			     .qp_num = q->qp.qp_num };

	/* An error always completes, signalled or not (IBTA 10.7.3.1). */
	if (s.signalled || status != IBV_WC_SUCCESS)
		fake_push_wc(q->qp.send_cq, &wc);
}

void fake_flush(struct fake_qp *q)
{
	if (fake_device.swallows_flushes)
		return;
	while (q->n)
		complete_one(q, IBV_WC_WR_FLUSH_ERR);
}

void fake_forget_sends(struct fake_qp *q)
{
	q->head = q->n = 0;
}

uint32_t fake_complete_sends(struct ibv_qp *qp, uint32_t n, enum ibv_wc_status status)
{
	struct fake_qp *q = (struct fake_qp *)qp;
	uint32_t before = q->n;

	if (status != IBV_WC_SUCCESS && q->n) {
		complete_one(q, status);
		q->state = IBV_QPS_ERR;
		fake_flush(q);
		return before;
	}
	while (n-- && q->n)
		complete_one(q, status);
	return before - q->n;
}

uint32_t fake_qp_outstanding(const struct ibv_qp *qp)
{
	return ((const struct fake_qp *)qp)->n;
}

const struct fake_post *fake_posts(uint32_t *n)
{
	*n = n_posts;
	return posts;
}

void fake_posts_forget(void)
{
	n_posts = doorbells = 0;
}

uint32_t fake_doorbells(void)
{
	return doorbells;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	FAKE_GUARD;
	struct fake_srq *s = (struct fake_srq *)srq;
	int e = fake_fails("ibv_post_srq_recv");

	n_srq_posts++;
	for (; !e && wr; wr = wr->next) {
		if (s->n == s->max) {
			fake_violation("shared receive queue of %u entries overflowed", s->max);
			e = ENOMEM;
			break;
		}
		s->recvs[(s->head + s->n++) % s->max] = (struct fake_recv){
			wr->wr_id, wr->sg_list[0].addr, wr->sg_list[0].length };
	}
	if (e)
		*bad = wr;
	return e;
}

/* Completes `wc` with what was received. */
static bool receive(struct ibv_qp *qp, const void *data, uint32_t bytes, struct ibv_wc wc)
{
	struct fake_srq *s = (struct fake_srq *)qp->srq;

	/* A WRITE leaves the receive's buffer as it is. */
	if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		wc.opcode = IBV_WC_RECV;
	wc.qp_num = qp->qp_num;
	wc.byte_len = bytes;
	if (s->n == 0)
		return false;
	if (wc.opcode == IBV_WC_RECV && bytes > s->recvs[s->head].length) {
		wc.status = IBV_WC_LOC_LEN_ERR;
	} else if (wc.opcode == IBV_WC_RECV && bytes) {
		memcpy((void *)(uintptr_t)s->recvs[s->head].addr, data, bytes);
	}
	wc.wr_id = s->recvs[s->head].wr_id;
	s->head = (s->head + 1) % s->max;
	s->n--;
	/* As on rxe, one-shot, and when a receive is taken. */
	if (s->limit && s->n < s->limit) {
		s->limit = 0;
		fake_async_of_srq(&s->srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	fake_push_wc(qp->recv_cq, &wc);
	return true;
}

bool fake_deliver(struct ibv_qp *qp, const void *data, uint32_t bytes)
{
	return receive(qp, data, bytes, (struct ibv_wc){ .status = IBV_WC_SUCCESS });
}

static bool receive_unsolicited(struct ibv_qp *qp, const void *data, uint32_t bytes, struct ibv_wc wc)
{
	struct fake_cq *q = (struct fake_cq *)qp->recv_cq;
	bool armed = q->armed, delivered;

	q->armed = armed && !q->solicited_only;
	delivered = receive(qp, data, bytes, wc);
	if (q->solicited_only)
		q->armed = armed;
	return delivered;
}

bool fake_deliver_unsolicited(struct ibv_qp *qp, const void *data, uint32_t bytes)
{
	return receive_unsolicited(qp, data, bytes, (struct ibv_wc){ .status = IBV_WC_SUCCESS });
}

bool fake_arrive(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	const struct ibv_sge *sge = wr->num_sge ? wr->sg_list : &(const struct ibv_sge){ 0 };

	if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = wr->imm_data;
	}
	if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	return (wr->send_flags & IBV_SEND_SOLICITED ? receive : receive_unsolicited)(
		qp, (const void *)(uintptr_t)sge->addr, sge->length, wc);
}

bool fake_deliver_imm(struct ibv_qp *qp, const void *data, uint32_t bytes, uint32_t imm)
{
	return receive(qp, data, bytes, (struct ibv_wc){ .status = IBV_WC_SUCCESS, .wc_flags = IBV_WC_WITH_IMM,
							 .imm_data = imm });
}

bool fake_deliver_write_imm(struct ibv_qp *qp, uint32_t bytes, uint32_t imm)
{
	return receive(qp, NULL, bytes, (struct ibv_wc){ .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
							 .wc_flags = IBV_WC_WITH_IMM, .imm_data = imm });
}

bool fake_deliver_error(struct ibv_qp *qp, enum ibv_wc_status status)
{
	return receive(qp, NULL, 0, (struct ibv_wc){ .status = status });
}

struct ibv_srq *fake_srq(void)
{
	return &the_srq->srq;
}

uint32_t fake_srq_posted(void)
{
	return the_srq ? the_srq->n : 0;
}

uint32_t fake_srq_posts(void)
{
	return n_srq_posts;
}

uint32_t fake_srq_limit(void)
{
	return the_srq->limit;
}

uint64_t fake_srq_wr_id(uint32_t i)
{
	return the_srq->recvs[(the_srq->head + i) % the_srq->max].wr_id;
}

void fake_queues_plug_in(struct ibv_context *ctx)
{
	ctx->ops.poll_cq = poll_cq;
	ctx->ops.req_notify_cq = req_notify_cq;
	ctx->ops.post_send = post_send;
	ctx->ops.post_srq_recv = post_srq_recv;
}
