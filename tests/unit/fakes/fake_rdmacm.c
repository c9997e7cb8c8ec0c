/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake connection manager. See fake_rdmacm.h; rules from the rdma_*(3) pages. */
#include "tests/unit/fakes/fake_rdmacm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_objects.h"
#include "tests/unit/fakes/fake_verbs.h"

#define CALLS_MAX 4096

struct fake_event {
	struct rdma_cm_event e;
	uint8_t *data;
	struct fake_event *next;
};

struct fake_event_channel {
	struct rdma_event_channel ch;
	struct fake_event *first, **last;
	uint32_t ids;
};

struct fake_cm fake_cm;
void (*fake_cm_called)(const struct fake_cm_call *call);
static struct fake_id *ids;
static struct fake_cm_call calls[CALLS_MAX];
static uint32_t n_calls, counts[FAKE_CM_OPS], n_acked;

void fake_rdmacm_reset(void)
{
	memset(&fake_cm, 0, sizeof(fake_cm));
	fake_cm.resolves_to = fake_context();
	fake_cm.next_port = 40000;
	fake_cm.rd_atomic = 16;
	fake_cm.sq_psn = 0xc0ffee;
	fake_cm.rq_psn = 0xdecade;
	fake_cm.global_route = true;
	ids = NULL;
	n_calls = n_acked = 0;
	memset(counts, 0, sizeof(counts));
}

/* 0, or -1 with errno as the library does. */
static int outcome(const char *call)
{
	int e = fake_fails(call);

	if (!e)
		return 0;
	errno = e;
	return -1;
}

static struct fake_cm_call *note(enum fake_cm_op op, struct rdma_cm_id *id)
{
	struct fake_cm_call *c = &calls[n_calls < CALLS_MAX ? n_calls++ : CALLS_MAX - 1];

	memset(c, 0, sizeof(*c));
	c->op = op;
	c->id = id;
	counts[op]++;
	return c;
}

static void tell(const struct fake_cm_call *c)
{
	if (fake_cm_called)
		fake_cm_called(c);
}

static struct fake_cm_call *note_param(struct fake_cm_call *c, const struct rdma_conn_param *p)
{
	c->param = *p;
	if (p->private_data_len)
		memcpy(c->private_data, p->private_data, p->private_data_len);
	c->param.private_data = c->private_data;
	return c;
}

const struct fake_cm_call *fake_cm_last(enum fake_cm_op op)
{
	for (uint32_t i = n_calls; i > 0; i--)
		if (calls[i - 1].op == op)
			return &calls[i - 1];
	return NULL;
}

uint32_t fake_cm_calls(enum fake_cm_op op)
{
	return counts[op];
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	FAKE_GUARD;
	struct fake_event_channel *c;

	if (outcome("rdma_create_event_channel"))
		return NULL;
	c = calloc(1, sizeof(*c));
	c->ch.fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);
	c->last = &c->first;
	fake_count("CM channels", 1);
	return &c->ch;
}

static void free_event(struct fake_event *e)
{
	free(e->data);
	free(e);
}

void rdma_destroy_event_channel(struct rdma_event_channel *ch)
{
	FAKE_GUARD;
	struct fake_event_channel *c = (struct fake_event_channel *)ch;

	if (c->ids)
		fake_violation("rdma_destroy_event_channel with %u ids on it", c->ids);
	while (c->first) {
		struct fake_event *e = c->first;

		c->first = e->next;
		free_event(e);
	}
	close(ch->fd);
	free(c);
	fake_count("CM channels", -1);
}

static struct fake_event *push(struct rdma_event_channel *ch, struct rdma_cm_id *id,
			       enum rdma_cm_event_type type)
{
	struct fake_event_channel *c = (struct fake_event_channel *)ch;
	struct fake_event *e = calloc(1, sizeof(*e));
	uint64_t one = 1;

	e->e.id = id;
	e->e.event = type;
	*c->last = e;
	c->last = &e->next;
	if (write(ch->fd, &one, sizeof(one)) != sizeof(one))
		fake_violation("CM channel full");
	return e;
}

static void set_data(struct fake_event *e, uint32_t qpn, const void *data, uint8_t bytes)
{
	e->e.param.conn.qp_num = qpn;
	e->e.param.conn.responder_resources = e->e.param.conn.initiator_depth = fake_cm.rd_atomic;
	if (!bytes)
		return;
	e->data = malloc(bytes);
	memcpy(e->data, data, bytes);
	e->e.param.conn.private_data = e->data;
	e->e.param.conn.private_data_len = bytes;
}

void fake_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, uint32_t qpn,
		   const void *data, uint8_t bytes)
{
	struct fake_event *e = push(id->channel, id, type);

	e->e.status = status;
	set_data(e, qpn, data, bytes);
}

static struct fake_id *new_id(struct rdma_event_channel *ch, void *context)
{
	struct fake_id *i = calloc(1, sizeof(*i));

	i->id.channel = ch;
	i->id.context = context;
	i->next = ids;
	ids = i;
	if (ch)
		((struct fake_event_channel *)ch)->ids++;
	fake_count("CM ids", 1);
	return i;
}

struct rdma_cm_id *fake_cm_request(struct rdma_cm_id *listener, const struct addr *peer,
				   uint32_t qpn, const void *data, uint8_t bytes)
{
	struct fake_id *i = new_id(listener->channel, listener->context);
	struct fake_event *e;

	i->id.verbs = fake_context();
	i->id.port_num = 1;
	i->id.route.addr.src_storage = listener->route.addr.src_storage;
	memcpy(&i->id.route.addr.dst_storage, &peer->ss, peer->len);
	e = push(listener->channel, &i->id, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->e.listen_id = listener;
	set_data(e, qpn, data, bytes);
	return &i->id;
}

/* Whose destruction waits for the event: a request counts against its listener. */
static struct fake_id *charged(const struct rdma_cm_event *e)
{
	return (struct fake_id *)(e->listen_id ? e->listen_id : e->id);
}

int rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **event)
{
	FAKE_GUARD;
	struct fake_event_channel *c = (struct fake_event_channel *)ch;
	struct fake_event *e = c->first;
	uint64_t one;

	if (outcome("rdma_get_cm_event") || read(ch->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	c->first = e->next;
	if (!c->first)
		c->last = &c->first;
	charged(&e->e)->unacked++;
	*event = &e->e;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	FAKE_GUARD;
	struct fake_event *e = (struct fake_event *)event;

	charged(event)->unacked--;
	n_acked++;
	/* A read after this returns nonsense, also without ASan. */
	if (e->data)
		memset(e->data, 0xdd, e->e.param.conn.private_data_len);
	free_event(e);
	return 0;
}

uint32_t fake_cm_acked(void)
{
	return n_acked;
}

int rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	FAKE_GUARD;
	if (outcome("rdma_create_id"))
		return -1;
	*id = &new_id(ch, context)->id;
	(*id)->ps = ps;
	return 0;
}

/* Events not taken yet go with their id, as in the kernel. */
static void drop_events(struct rdma_cm_id *id)
{
	struct fake_event_channel *c = (struct fake_event_channel *)id->channel;
	struct fake_event **link = c ? &c->first : NULL;
	uint64_t one;

	while (link && *link) {
		struct fake_event *e = *link;

		if (e->e.id != id) {
			link = &e->next;
			continue;
		}
		*link = e->next;
		free_event(e);
		if (read(c->ch.fd, &one, sizeof(one)) != sizeof(one))
			fake_violation("CM channel out of step");
	}
	if (link)
		c->last = link;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	FAKE_GUARD;
	struct fake_id *i = (struct fake_id *)id, **link = &ids;

	tell(&(struct fake_cm_call){ .op = FAKE_CM_DESTROY, .id = id });
	if (i->unacked)
		fake_violation("rdma_destroy_id would wait for %u events", i->unacked);
	fake_wire_destroy(i);
	drop_events(id);
	while (*link && *link != i)
		link = &(*link)->next;
	if (!*link) {
		fake_violation("rdma_destroy_id of an id that does not exist");
		return 0;
	}
	*link = i->next;
	if (id->channel)
		((struct fake_event_channel *)id->channel)->ids--;
	fake_count("CM ids", -1);
	free(i);
	return 0;
}

struct fake_id *fake_first_id(void)
{
	return ids;
}

struct rdma_cm_id *fake_cm_id(uint32_t n)
{
	for (struct fake_id *i = ids; i; i = i->next)
		if (!i->is_anchor && n-- == 0)
			return &i->id;
	return NULL;
}

uint32_t fake_cm_ids(void)
{
	FAKE_GUARD;
	uint32_t n = 0;

	while (fake_cm_id(n))
		n++;
	return n;
}

static void bind_to(struct rdma_cm_id *id, const struct sockaddr *sa)
{
	struct addr a;

	if (addr_from_sockaddr(sa, &a))
		return;
	if (addr_port(&a) == 0)
		addr_set_port(&a, fake_cm.next_port++);
	memcpy(&id->route.addr.src_storage, &a.ss, a.len);
	id->verbs = fake_cm.no_device ? NULL : fake_context();
	id->port_num = 1;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *sa)
{
	FAKE_GUARD;
	if (outcome("rdma_bind_addr"))
		return -1;
	bind_to(id, sa);
	((struct fake_id *)id)->is_anchor = true;
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	FAKE_GUARD;
	if (outcome("rdma_listen"))
		return -1;
	note(FAKE_CM_LISTEN, id)->number = backlog;
	((struct fake_id *)id)->listens = true;
	((struct fake_id *)id)->is_anchor = false;
	tell(fake_cm_last(FAKE_CM_LISTEN));
	return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;	/* at the same place for IPv6 */
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	FAKE_GUARD;
	struct fake_cm_call *c;

	if (outcome("rdma_resolve_addr"))
		return -1;
	c = note(FAKE_CM_RESOLVE_ADDR, id);
	c->number = timeout_ms;
	if (src && !addr_from_sockaddr(src, &c->src))
		bind_to(id, src);
	if (addr_from_sockaddr(dst, &c->dst)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&id->route.addr.dst_storage, &c->dst.ss, c->dst.len);
	id->verbs = fake_cm.resolves_to;
	tell(c);
	if (fake_cm.wire)
		fake_cm_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, 0, NULL, 0);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	FAKE_GUARD;
	if (outcome("rdma_resolve_route"))
		return -1;
	note(FAKE_CM_RESOLVE_ROUTE, id)->number = timeout_ms;
	tell(fake_cm_last(FAKE_CM_RESOLVE_ROUTE));
	if (fake_cm.wire)
		fake_cm_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, 0, NULL, 0);
	return 0;
}

/* A call of its kind succeeds, unless it is to fail; with fake_cm.wire the other end feels it. */
static int operate(const char *call, enum fake_cm_op op, struct rdma_cm_id *id, const struct rdma_conn_param *param,
		   void (*wire)(struct fake_id *i, const struct rdma_conn_param *p))
{
	FAKE_GUARD;
	if (outcome(call))
		return -1;
	tell(note_param(note(op, id), param));
	if (fake_cm.wire)
		wire((struct fake_id *)id, param);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return operate("rdma_connect", FAKE_CM_CONNECT, id, param, fake_wire_connect);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return operate("rdma_accept", FAKE_CM_ACCEPT, id, param, fake_wire_accept);
}

int rdma_establish(struct rdma_cm_id *id)
{
	return operate("rdma_establish", FAKE_CM_ESTABLISH, id, &(struct rdma_conn_param){ 0 }, fake_wire_establish);
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	struct rdma_conn_param p = { .private_data = data, .private_data_len = bytes };

	return operate("rdma_reject", FAKE_CM_REJECT, id, &p, fake_wire_reject);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return operate("rdma_disconnect", FAKE_CM_DISCONNECT, id, &(struct rdma_conn_param){ 0 }, fake_wire_disconnect);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	FAKE_GUARD;
	struct fake_cm_call *c;

	if (outcome("rdma_set_option"))
		return -1;
	if (level != RDMA_OPTION_ID || optname != RDMA_OPTION_ID_TOS || optlen != 1) {
		errno = ENOSYS;
		return -1;
	}
	c = note(FAKE_CM_SET_TOS, id);
	c->number = *(uint8_t *)optval;
	tell(c);
	return 0;
}

static void path_gid(const struct rdma_cm_id *id, uint8_t gid[16])
{
	struct addr peer = fake_cm.path_peer;

	if (!peer.len && addr_from_sockaddr(&id->route.addr.dst_addr, &peer))
		return;
	addr_to_bytes(&peer, gid);
}

/* As the kernel does it: generous access rights, the CM's own PSNs, long timers. */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	FAKE_GUARD;
	enum ibv_qp_state state = attr->qp_state;

	if (outcome("rdma_init_qp_attr"))
		return -1;
	switch ((int)state) {
	case IBV_QPS_INIT:
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC;
		attr->port_num = 1;
		*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		return 0;
	case IBV_QPS_RTR:
		attr->path_mtu = IBV_MTU_1024;
		attr->dest_qp_num = 0x77;
		attr->rq_psn = fake_cm.rq_psn;
		attr->max_dest_rd_atomic = fake_cm.rd_atomic;
		attr->ah_attr.is_global = fake_cm.global_route;
		attr->ah_attr.port_num = 1;
		path_gid(id, attr->ah_attr.grh.dgid.raw);
		*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		return 0;
	case IBV_QPS_RTS:
		attr->sq_psn = fake_cm.sq_psn;
		attr->timeout = 19;
		attr->retry_cnt = attr->rnr_retry = 7;
		attr->max_rd_atomic = fake_cm.rd_atomic;
		*mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
		return 0;
	default:
		errno = EINVAL;
		return -1;
	}
}
