/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of a connection in one process (fake_cm.wire): each hears of what the other one does, and gets what it
 * sends. A send is acknowledged at once; one that meets a queue pair in error waits until its own is flushed. Called
 * with the fakes' lock held. */
#include <string.h>

#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_objects.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"

#define REJECTED_BY_CONSUMER 28	/* IBTA specification, volume 1, 12.6.7.2 */
#define NO_SUCH_SERVICE 8

static uint16_t port_of(const struct sockaddr *sa)
{
	struct addr a;

	return addr_from_sockaddr(sa, &a) ? 0 : addr_port(&a);
}

static struct fake_id *find_listener(const struct fake_id *to)
{
	uint16_t port = port_of(&to->id.route.addr.dst_addr);
	struct fake_id *i = fake_first_id();

	while (i && !(i->listens && port_of(&i->id.route.addr.src_addr) == port))
		i = i->next;
	return i;
}

static void tell(struct fake_id *i, enum rdma_cm_event_type type, int status, const struct rdma_conn_param *p)
{
	fake_cm_event(&i->id, type, status, p ? p->qp_num : 0, p ? p->private_data : NULL, p ? p->private_data_len : 0);
}

static void part(struct fake_id *i)
{
	if (i->other)
		i->other->other = NULL;
	i->other = NULL;
}

void fake_wire_connect(struct fake_id *i, const struct rdma_conn_param *p)
{
	struct fake_id *listener = find_listener(i);
	struct addr from;

	if (!listener || addr_from_sockaddr(&i->id.route.addr.src_addr, &from)) {
		tell(i, RDMA_CM_EVENT_REJECTED, NO_SUCH_SERVICE, NULL);
		return;
	}
	i->qpn = p->qp_num;
	i->other = (struct fake_id *)fake_cm_request(&listener->id, &from, p->qp_num, p->private_data,
						     p->private_data_len);
	i->other->other = i;
}

void fake_wire_accept(struct fake_id *i, const struct rdma_conn_param *p)
{
	struct fake_qp *mine = (struct fake_qp *)fake_qp_of(p->qp_num), *theirs;

	if (!i->other) {
		tell(i, RDMA_CM_EVENT_UNREACHABLE, 0, NULL);
		return;
	}
	i->qpn = p->qp_num;
	theirs = (struct fake_qp *)fake_qp_of(i->other->qpn);
	if (mine)
		mine->remote = i->other->qpn;
	if (theirs)
		theirs->remote = i->qpn;
	tell(i->other, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, p);
}

void fake_wire_establish(struct fake_id *i, const struct rdma_conn_param *p)
{
	(void)p;
	if (i->other)
		tell(i->other, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

void fake_wire_reject(struct fake_id *i, const struct rdma_conn_param *p)
{
	if (i->other)
		tell(i->other, RDMA_CM_EVENT_REJECTED, REJECTED_BY_CONSUMER, p);
	part(i);
}

/* Each end is told once, whoever was first. */
void fake_wire_disconnect(struct fake_id *i, const struct rdma_conn_param *p)
{
	if (i->disconnected)
		return;
	i->disconnected = true;
	tell(i, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	if (i->other)
		fake_wire_disconnect(i->other, p);
}

void fake_wire_destroy(struct fake_id *i)
{
	struct fake_id *other = i->other;

	part(i);
	if (!other)
		return;
	if (i->qpn && other->qpn)
		fake_wire_disconnect(other, NULL);
	else if (other->qpn)
		tell(other, RDMA_CM_EVENT_REJECTED, REJECTED_BY_CONSUMER, NULL);
}

static void add(uint64_t *to, uint64_t operand, uint64_t *before)
{
	*before = *to;
	*to += operand;
}

/* False: nobody acknowledges it. */
static bool carry_out(struct fake_qp *to, const struct ibv_send_wr *wr)
{
	void *local = wr->num_sge ? (void *)(uintptr_t)wr->sg_list[0].addr : NULL;
	uint32_t bytes = wr->num_sge ? wr->sg_list[0].length : 0;

	if (wr->opcode == IBV_WR_BIND_MW)
		return true;
	if (!to || (to->state != IBV_QPS_RTR && to->state != IBV_QPS_RTS))
		return false;
	if ((wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) && bytes)
		memcpy((void *)(uintptr_t)wr->wr.rdma.remote_addr, local, bytes);
	else if (wr->opcode == IBV_WR_RDMA_READ && bytes)
		memcpy(local, (const void *)(uintptr_t)wr->wr.rdma.remote_addr, bytes);
	else if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		add((uint64_t *)(uintptr_t)wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add, local);
	if ((wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM ||
	     wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) &&
	    !fake_arrive(&to->qp, wr))
		fake_violation("no receive for a send to QP 0x%x", to->qp.qp_num);
	return true;
}

void fake_wire_send(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	if (carry_out((struct fake_qp *)(q->remote ? fake_qp_of(q->remote) : NULL), wr))
		fake_complete_sends(&q->qp, 1, IBV_WC_SUCCESS);
}
