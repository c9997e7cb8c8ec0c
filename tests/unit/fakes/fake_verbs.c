/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of the fake device: creation, order of destruction, queue pair states. See fake_verbs.h;
 * the rules are those of the ibv_*(3) pages and of the IBTA specification, volume 1, 10.3. */
#include "tests/unit/fakes/fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/rdma/dev.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_objects.h"
#include "tests/unit/helpers/unit.h"

#define CQS_MAX 256
#define MODIFIES_MAX 65536

/* The library's headers turn these into inline functions; what they call is defined here. */
#undef ibv_query_port
#undef ibv_reg_mr

struct fake_device fake_device;
void (*fake_moved)(struct ibv_qp *qp, enum ibv_qp_state to, uint32_t sq_psn, uint32_t rq_psn);

static struct ibv_device device;
static struct ibv_context context;
static struct fake_qp *qps;
static uint32_t n_qps, n_mrs, n_mws, next_key, last_mw_rkey, n_cqs;
static struct fake_cq *cqs[CQS_MAX];
static struct fake_modify modifies[MODIFIES_MAX];
static uint32_t n_modifies;
static const struct fake_mr *last_mr;
static pthread_t mr_thread;

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
static int dealloc_mw(struct ibv_mw *mw);

static void default_device(void)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

	memset(&fake_device, 0, sizeof(fake_device));
	fake_device.attr = (struct ibv_device_attr){
		.max_qp = 65536,
		.max_qp_wr = 16384,
		.max_cq = 1024,
		.max_cqe = 32767,
		.max_mr = 65536,
		.max_mw = 65536,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_srq = 64,
		.max_srq_wr = 32768,
		.max_pd = 64,
	};
	strcpy(fake_device.attr.fw_ver, "1.0");
	fake_device.port = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.active_mtu = IBV_MTU_1024,
		.max_msg_sz = 8u << 20,
	};
	fake_device.inline_max = 512;
	fake_device.next_qpn = 0x11;
	fake_device.gids[0].port_num = 1;
	fake_device.gids[0].gid_type = IBV_GID_TYPE_ROCE_V2;
	memcpy(fake_device.gids[0].gid.raw, gid, sizeof(gid));
	fake_device.n_gids = 1;
	fake_device.devices = 1;
}

void fake_verbs_reset(void)
{
	default_device();
	memset(&device, 0, sizeof(device));
	strcpy(device.name, "fake0");
	memset(&context, 0, sizeof(context));	/* abi_compat NULL: no verbs_context around it */
	context.device = &device;
	context.ops.alloc_mw = alloc_mw;
	context.ops.dealloc_mw = dealloc_mw;
	fake_queues_plug_in(&context);
	fake_async_reset(&context);
	fake_queues_reset();
	qps = NULL;
	n_qps = n_mrs = n_mws = n_cqs = n_modifies = 0;
	next_key = 0x1000;
	memset(cqs, 0, sizeof(cqs));
}

struct ibv_context *fake_context(void)
{
	return &context;
}

void fake_dev(struct dev *out)
{
	memset(out, 0, sizeof(*out));
	out->ctx = &context;
	out->attr = fake_device.attr;
	out->port = fake_device.port;
	out->port_num = 1;
	strcpy(out->name, "fake0");
}

/* Makes an object unless this call is to fail; errno is then set. */
static void *make(const char *call, const char *kind, size_t size)
{
	int e = fake_fails(call);

	if (e) {
		errno = e;
		return NULL;
	}
	fake_count(kind, 1);
	return calloc(1, size);
}

static void unmake(const char *kind, void *object)
{
	fake_count(kind, -1);
	free(object);
}

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *n)
{
	FAKE_GUARD;
	struct ibv_device **list;
	int e = fake_fails("ibv_get_device_list");

	if (e) {
		errno = e;
		return NULL;
	}
	list = calloc((size_t)fake_device.devices + 1, sizeof(*list));
	for (int i = 0; i < fake_device.devices; i++)
		list[i] = context.device;
	*n = fake_device.devices;
	fake_count("device lists", 1);
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	FAKE_GUARD;
	unmake("device lists", list);
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	FAKE_GUARD;
	int e = fake_fails("ibv_open_device");

	(void)d;
	if (e) {
		errno = e;
		return NULL;
	}
	fake_count("open devices", 1);
	return &context;
}

int ibv_close_device(struct ibv_context *ctx)
{
	FAKE_GUARD;
	(void)ctx;
	fake_count("open devices", -1);
	return 0;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	FAKE_GUARD;
	(void)ctx;
	*attr = fake_device.attr;
	return fake_fails("ibv_query_device");
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	FAKE_GUARD;
	(void)ctx;
	if (port != 1)
		return EINVAL;
	memcpy(attr, &fake_device.port, sizeof(fake_device.port));
	return fake_fails("ibv_query_port");
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t entry_size)
{
	FAKE_GUARD;
	size_t n = fake_device.n_gids < max ? fake_device.n_gids : max;

	(void)ctx;
	(void)flags;
	memcpy(entries, fake_device.gids, n * entry_size);
	return (ssize_t)n;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	FAKE_GUARD;
	struct fake_pd *p = make("ibv_alloc_pd", "protection domains", sizeof(*p));

	if (!p)
		return NULL;
	p->pd.context = ctx;
	return &p->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	FAKE_GUARD;
	struct fake_pd *p = (struct fake_pd *)pd;

	if (p->users) {
		fake_violation("ibv_dealloc_pd with %u objects on it", p->users);
		return EBUSY;
	}
	unmake("protection domains", p);
	return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	FAKE_GUARD;
	struct fake_mr *m = make("ibv_reg_mr", "memory regions", sizeof(*m));

	mr_thread = pthread_self();
	if (!m)
		return NULL;
	m->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = length,
				 .lkey = next_key, .rkey = next_key };
	m->access = access;
	next_key += 0x100;
	((struct fake_pd *)pd)->users++;
	n_mrs++;
	last_mr = m;
	return &m->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	if (iova != (uintptr_t)addr)
		fake_violation("ibv_reg_mr_iova2 with another iova is not modelled");
	return ibv_reg_mr(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	FAKE_GUARD;
	struct fake_mr *m = (struct fake_mr *)mr;

	if (m->windows) {
		fake_violation("ibv_dereg_mr with %u windows bound to it", m->windows);
		return EBUSY;
	}
	((struct fake_pd *)mr->pd)->users--;
	n_mrs--;
	unmake("memory regions", m);
	return 0;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	FAKE_GUARD;
	struct fake_mw *w = make("ibv_alloc_mw", "memory windows", sizeof(*w));

	if (!w)
		return NULL;
	last_mw_rkey = next_key | 7;
	w->mw = (struct ibv_mw){
		.context = pd->context, .pd = pd, .rkey = last_mw_rkey, .type = type
	};
	next_key += 0x100;
	((struct fake_pd *)pd)->users++;
	n_mws++;
	return &w->mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	FAKE_GUARD;
	struct fake_mw *w = (struct fake_mw *)mw;
	int e = fake_fails("ibv_dealloc_mw");

	if (w->qp)
		w->qp->windows--;
	if (w->mr)
		w->mr->windows--;
	((struct fake_pd *)mw->pd)->users--;
	n_mws--;
	unmake("memory windows", w);
	return e;
}

int fake_mr_access(uint32_t rkey)
{
	if (!last_mr || last_mr->mr.rkey != rkey)
		fake_violation("not the last memory region's key");
	return last_mr->access;
}

pthread_t fake_mr_thread(void)
{
	return mr_thread;
}

uint32_t fake_mrs(void)
{
	FAKE_GUARD;
	return n_mrs;
}

uint32_t fake_mws(void)
{
	FAKE_GUARD;
	return n_mws;
}

uint32_t fake_mw_last_rkey(void)
{
	return last_mw_rkey;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	FAKE_GUARD;
	struct fake_channel *c = make("ibv_create_comp_channel", "completion channels", sizeof(*c));

	if (!c)
		return NULL;
	c->ch.context = ctx;
	c->ch.fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);
	return &c->ch;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	FAKE_GUARD;
	struct fake_channel *c = (struct fake_channel *)ch;

	if (c->cqs) {
		fake_violation("ibv_destroy_comp_channel with %u queues on it", c->cqs);
		return EBUSY;
	}
	close(ch->fd);
	free(c->events);
	unmake("completion channels", c);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	FAKE_GUARD;
	struct fake_cq *q;

	(void)comp_vector;
	if (cqe < 1 || cqe > fake_device.attr.max_cqe || n_cqs == CQS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	q = make("ibv_create_cq", "completion queues", sizeof(*q));
	if (!q)
		return NULL;
	q->cq = (struct ibv_cq){
		.context = ctx, .channel = channel, .cq_context = cq_context, .cqe = cqe
	};
	q->channel = (struct fake_channel *)channel;
	q->wcs = calloc((size_t)cqe, sizeof(*q->wcs));
	if (channel)
		q->channel->cqs++;
	cqs[n_cqs++] = q;
	return &q->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	FAKE_GUARD;
	struct fake_cq *q = (struct fake_cq *)cq;
	uint32_t i = 0;

	if (q->got != q->acked)
		fake_violation("ibv_destroy_cq would wait: %u events taken, %u acked", q->got,
			       q->acked);
	if (q->qps) {
		fake_violation("ibv_destroy_cq with %u queue pairs on it", q->qps);
		return EBUSY;
	}
	while (cqs[i] != q)
		i++;
	memmove(&cqs[i], &cqs[i + 1], (--n_cqs - i) * sizeof(*cqs));
	if (q->channel)
		q->channel->cqs--;
	free(q->wcs);
	unmake("completion queues", q);
	return 0;
}

uint32_t fake_cqs(void)
{
	return n_cqs;
}

struct ibv_cq *fake_cq(uint32_t i)
{
	return i < n_cqs ? &cqs[i]->cq : NULL;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	FAKE_GUARD;
	struct fake_srq *s;

	if (attr->attr.max_wr < 1 || attr->attr.max_wr > (uint32_t)fake_device.attr.max_srq_wr) {
		errno = EINVAL;
		return NULL;
	}
	s = make("ibv_create_srq", "shared receive queues", sizeof(*s));
	if (!s)
		return NULL;
	s->srq.context = pd->context;
	s->srq.srq_context = attr->srq_context;
	s->srq.pd = pd;
	s->max = attr->attr.max_wr;
	s->recvs = calloc(s->max, sizeof(*s->recvs));
	((struct fake_pd *)pd)->users++;
	fake_register_srq(s);
	return &s->srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	FAKE_GUARD;
	struct fake_srq *s = (struct fake_srq *)srq;
	int e = fake_fails("ibv_modify_srq");

	if (mask != IBV_SRQ_LIMIT)
		fake_violation("ibv_modify_srq with mask 0x%x", mask);
	if (!e && attr->srq_limit > s->max)
		e = EINVAL;
	if (!e)
		s->limit = attr->srq_limit;
	return e;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	FAKE_GUARD;
	struct fake_srq *s = (struct fake_srq *)srq;

	if (s->qps) {
		fake_violation("ibv_destroy_srq with %u queue pairs on it", s->qps);
		return EBUSY;
	}
	((struct fake_pd *)srq->pd)->users--;
	fake_register_srq(NULL);
	free(s->recvs);
	unmake("shared receive queues", s);
	return 0;
}

static uint32_t new_qpn(void)
{
	return fake_device.qpn_source ? fake_device.qpn_source() : fake_device.next_qpn++;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	FAKE_GUARD;
	struct fake_qp *q;

	if (attr->cap.max_inline_data > fake_device.inline_max ||
	    attr->cap.max_send_wr > (uint32_t)fake_device.attr.max_qp_wr) {
		errno = EINVAL;
		return NULL;
	}
	if (n_qps >= (uint32_t)fake_device.attr.max_qp) {
		errno = ENOMEM;
		return NULL;
	}
	q = make("ibv_create_qp", "queue pairs", sizeof(*q));
	if (!q)
		return NULL;
	q->qp = (struct ibv_qp){ .context = pd->context, .pd = pd, .send_cq = attr->send_cq,
				 .recv_cq = attr->recv_cq, .srq = attr->srq, .qp_num = new_qpn(),
				 .qp_type = attr->qp_type };
	q->cap = attr->cap;
	q->sends = calloc(q->cap.max_send_wr, sizeof(*q->sends));
	((struct fake_pd *)pd)->users++;
	((struct fake_cq *)attr->send_cq)->qps++;
	((struct fake_cq *)attr->recv_cq)->qps++;
	if (attr->srq)
		((struct fake_srq *)attr->srq)->qps++;
	q->next = qps;
	qps = q;
	n_qps++;
	return &q->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	FAKE_GUARD;
	struct fake_qp *q = (struct fake_qp *)qp, **link = &qps;

	if (q->windows)
		fake_violation("ibv_destroy_qp 0x%x with %u windows bound to it", qp->qp_num,
			       q->windows);
	if (q->events)
		fake_violation("ibv_destroy_qp 0x%x would wait: %u asynchronous events not acked", qp->qp_num,
			       q->events);
	fake_async_forget(qp);
	while (*link != q)
		link = &(*link)->next;
	*link = q->next;
	n_qps--;
	((struct fake_pd *)qp->pd)->users--;
	((struct fake_cq *)qp->send_cq)->qps--;
	((struct fake_cq *)qp->recv_cq)->qps--;
	if (qp->srq)
		((struct fake_srq *)qp->srq)->qps--;
	if (fake_moved)
		fake_moved(qp, IBV_QPS_RESET, 0, 0);
	free(q->sends);
	unmake("queue pairs", q);
	return 0;
}

static bool transition_is_legal(enum ibv_qp_state from, enum ibv_qp_state to)
{
	return to == IBV_QPS_RESET || to == IBV_QPS_ERR ||
	       (from == IBV_QPS_RESET && to == IBV_QPS_INIT) ||
	       (from == IBV_QPS_INIT && to == IBV_QPS_RTR) ||
	       (from == IBV_QPS_RTR && to == IBV_QPS_RTS);
}

/* The attributes that a transition requires, and those that it allows: ibv_modify_qp(3), reliable connection. */
static bool attributes_are_legal(enum ibv_qp_state to, int mask)
{
	static const struct {
		int required, optional;
	} rules[] = {
		[IBV_QPS_INIT] = { IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
		[IBV_QPS_RTR] = { IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
				  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
		[IBV_QPS_RTS] = { IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC,
				  IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
					  IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
	};

	mask &= ~IBV_QP_STATE;
	if (to >= N_ELEMENTS(rules))
		return mask == 0;
	return (mask & rules[to].required) == rules[to].required &&
	       (mask & ~(rules[to].required | rules[to].optional)) == 0;
}

static void take_attr(struct fake_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_SQ_PSN)
		q->attr.sq_psn = attr->sq_psn;
	if (mask & IBV_QP_RQ_PSN)
		q->attr.rq_psn = attr->rq_psn;
	if (mask & IBV_QP_AV)
		q->attr.ah_attr = attr->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		q->attr.path_mtu = attr->path_mtu;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		q->attr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		q->attr.timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		q->attr.retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		q->attr.rnr_retry = attr->rnr_retry;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	FAKE_GUARD;
	struct fake_qp *q = (struct fake_qp *)qp;
	int e = fake_fails("ibv_modify_qp");

	if (e)
		return e;
	if (!(mask & IBV_QP_STATE) || !transition_is_legal(q->state, attr->qp_state) ||
	    !attributes_are_legal(attr->qp_state, mask))
		return EINVAL;
	if (attr->qp_state == IBV_QPS_RESET && q->windows)
		fake_violation(
			"QP 0x%x to RESET with a window bound: the next owner's peer could use it",
			qp->qp_num);
	q->state = attr->qp_state;
	qp->state = attr->qp_state;	/* as the library does, for its users */
	take_attr(q, attr, mask);
	/* Out of band nobody but the programs says who is at the other end. */
	if ((mask & IBV_QP_DEST_QPN) && !q->remote && fake_qp_of(attr->dest_qp_num))
		q->remote = attr->dest_qp_num;
	if (n_modifies < MODIFIES_MAX)
		modifies[n_modifies++] = (struct fake_modify){ qp->qp_num, mask, *attr };
	if (q->state == IBV_QPS_ERR)
		fake_flush(q);
	if (q->state == IBV_QPS_RESET) {
		fake_forget_sends(q);
		q->remote = 0;
	}
	if (fake_moved)
		fake_moved(qp, q->state, q->attr.sq_psn, q->attr.rq_psn);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	FAKE_GUARD;
	struct fake_qp *q = (struct fake_qp *)qp;
	int e = fake_fails("ibv_query_qp");

	(void)mask;
	if (e)
		return e;
	memset(init, 0, sizeof(*init));
	*attr = q->attr;
	attr->qp_state = q->state;
	attr->sq_psn = (attr->sq_psn + fake_device.psn_skew) & 0xffffff;
	return 0;
}

const struct fake_modify *fake_modifies(uint32_t *n)
{
	*n = n_modifies;
	return modifies;
}

const struct fake_modify *fake_modified_to(uint32_t qpn, enum ibv_qp_state state)
{
	for (uint32_t i = n_modifies; i > 0; i--)
		if (modifies[i - 1].qpn == qpn && modifies[i - 1].attr.qp_state == state)
			return &modifies[i - 1];
	return NULL;
}

struct fake_qp *fake_first_qp(void)
{
	return qps;
}

enum ibv_qp_state fake_qp_state(const struct ibv_qp *qp)
{
	return ((const struct fake_qp *)qp)->state;
}

struct ibv_qp *fake_qp_of(uint32_t qpn)
{
	struct fake_qp *q = qps;

	while (q && q->qp.qp_num != qpn)
		q = q->next;
	return q ? &q->qp : NULL;
}

const struct ibv_qp_cap *fake_qp_cap(const struct ibv_qp *qp)
{
	return &((const struct fake_qp *)qp)->cap;
}

uint32_t fake_qps(void)
{
	FAKE_GUARD;
	return n_qps;
}
