/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of devices. See async.h. */
#include "common/rdma/async.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rdma/dev.h"
#include "common/rdma/ep.h"

#define TYPES (IBV_EVENT_WQ_FATAL + 1)
/* Log one line per event type in this time, because a peer can break its own queue pairs as often as it connects. */
#define LOG_EVERY_NS (10 * NS_PER_S)

static const struct {
	const char *name;
	enum log_level level;
} types[] = {
	[IBV_EVENT_CQ_ERR] = { "cq_err", LOG_LVL_ERROR },
	[IBV_EVENT_QP_FATAL] = { "qp_fatal", LOG_LVL_WARN },
	[IBV_EVENT_QP_REQ_ERR] = { "qp_req_err", LOG_LVL_WARN },
	[IBV_EVENT_QP_ACCESS_ERR] = { "qp_access_err", LOG_LVL_WARN },
	[IBV_EVENT_COMM_EST] = { "comm_est", LOG_LVL_DEBUG },
	[IBV_EVENT_SQ_DRAINED] = { "sq_drained", LOG_LVL_DEBUG },
	[IBV_EVENT_PATH_MIG] = { "path_mig", LOG_LVL_INFO },
	[IBV_EVENT_PATH_MIG_ERR] = { "path_mig_err", LOG_LVL_WARN },
	[IBV_EVENT_DEVICE_FATAL] = { "device_fatal", LOG_LVL_ERROR },
	[IBV_EVENT_PORT_ACTIVE] = { "port_active", LOG_LVL_WARN },	/* ends the outage that a warning announced */
	[IBV_EVENT_PORT_ERR] = { "port_err", LOG_LVL_WARN },
	[IBV_EVENT_LID_CHANGE] = { "lid_change", LOG_LVL_INFO },
	[IBV_EVENT_PKEY_CHANGE] = { "pkey_change", LOG_LVL_INFO },
	[IBV_EVENT_SM_CHANGE] = { "sm_change", LOG_LVL_INFO },
	[IBV_EVENT_SRQ_ERR] = { "srq_err", LOG_LVL_ERROR },
	[IBV_EVENT_SRQ_LIMIT_REACHED] = { "srq_limit_reached", LOG_LVL_DEBUG },
	[IBV_EVENT_QP_LAST_WQE_REACHED] = { "qp_last_wqe_reached", LOG_LVL_DEBUG },
	[IBV_EVENT_CLIENT_REREGISTER] = { "client_reregister", LOG_LVL_INFO },
	[IBV_EVENT_GID_CHANGE] = { "gid_change", LOG_LVL_INFO },
	[IBV_EVENT_WQ_FATAL] = { "wq_fatal", LOG_LVL_WARN },
};
static_assert(sizeof(types) / sizeof(types[0]) == TYPES, "a row per type of event");

static struct {
	pthread_mutex_t lock;
	TAILQ_HEAD(async_list, async) loops;
	uint64_t counts[TYPES], dropped;
	uint64_t logged_ns[TYPES], unlogged[TYPES];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .loops = TAILQ_HEAD_INITIALIZER(all.loops) };

/* Translates an event into the action it requires. Returns the completion channel of the endpoint that owns the event's
 * queue or queue pair, or NULL if the event concerns all endpoints of the device. */
static const struct ibv_comp_channel *classify_event(const struct ibv_async_event *e, struct async_event *out)
{
	const struct ibv_qp *qp = NULL;

	memset(out, 0, sizeof(*out));
	switch (e->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		out->action = ASYNC_EP_FAILED;
		return NULL;
	case IBV_EVENT_CQ_ERR:
		out->action = ASYNC_EP_FAILED;
		return e->element.cq->channel;
	case IBV_EVENT_SRQ_ERR:
		out->action = ASYNC_EP_FAILED;
		return e->element.srq->srq_context;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		out->action = ASYNC_SRQ_LOW;
		return e->element.srq->srq_context;
	case IBV_EVENT_QP_FATAL:
		qp = e->element.qp;
		out->action = ASYNC_QP_FAILED;
		out->status = IBV_WC_FATAL_ERR;
		break;
	case IBV_EVENT_QP_REQ_ERR:
		qp = e->element.qp;
		out->action = ASYNC_QP_FAILED;
		out->status = IBV_WC_REM_INV_REQ_ERR;
		break;
	case IBV_EVENT_QP_ACCESS_ERR:
		qp = e->element.qp;
		out->action = ASYNC_QP_FAILED;
		out->status = IBV_WC_LOC_ACCESS_ERR;
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		qp = e->element.qp;
		out->action = ASYNC_QP_LAST_WQE;
		break;
	case IBV_EVENT_PORT_ERR:	/* connections that lose packets fail when their retries run out */
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_COMM_EST:	/* the first receive counts as established */
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:	/* alternate paths are not used */
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_WQ_FATAL:	/* there are no work queues outside queue pairs */
		break;
	}
	if (!qp)
		return NULL;
	out->qpn = qp->qp_num;
	return qp->recv_cq->channel;
}

static void report(const struct dev *dev, enum ibv_event_type type, uint32_t qpn)
{
	uint64_t now = clock_now_ns();
	char qp[24] = "", more[64] = "";

	if (all.logged_ns[type] && now - all.logged_ns[type] < LOG_EVERY_NS) {
		all.unlogged[type]++;
		return;
	}
	if (qpn)
		snprintf(qp, sizeof(qp), " on QP 0x%x", qpn);
	if (all.unlogged[type])
		snprintf(more, sizeof(more), " (%llu more since the last such line)",
			 (unsigned long long)all.unlogged[type]);
	if (log_enabled(types[type].level))
		log_write(types[type].level, "RDMA device %s reports %s%s%s", dev->name, types[type].name, qp, more);
	all.logged_ns[type] = now;
	all.unlogged[type] = 0;
}

static void post(struct async *a, const struct async_event *e)
{
	if (a->n_pending == ASYNC_PENDING_MAX) {
		all.dropped++;
		return;
	}
	a->pending[a->n_pending++] = *e;
	ev_async_send(a->loop, &a->wake);
}

static void dispatch(const struct dev *dev, const struct ibv_async_event *e)
{
	struct async_event event;
	const struct ibv_comp_channel *channel;
	struct async *a;

	/* A newer library may report types that are unknown here. */
	if ((unsigned)e->event_type >= TYPES)
		return;
	channel = classify_event(e, &event);
	all.counts[e->event_type]++;
	report(dev, e->event_type, event.qpn);
	if (event.action == ASYNC_NOTED)
		return;
	TAILQ_FOREACH(a, &all.loops, link)
		if (channel ? channel == ep_channel(a->ep) : ep_dev(a->ep)->ctx == dev->ctx)
			post(a, &event);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
	struct async *a = w->data;
	const struct dev *dev = ep_dev(a->ep);
	struct ibv_async_event e;
	int ret;

	(void)revents;
	pthread_mutex_lock(&all.lock);
	while (ibv_get_async_event(dev->ctx, &e) == 0) {
		dispatch(dev, &e);
		ibv_ack_async_event(&e);
	}
	ret = errno;
	pthread_mutex_unlock(&all.lock);
	if (ret == EAGAIN || ret == EINTR)
		return;
	/* A removed device delivers no more events; the connection manager reports the removal. */
	log_error("cannot read the events of RDMA device %s: %s", dev->name, strerror(ret));
	ev_io_stop(loop, w);
}

static void on_wake(struct ev_loop *loop, ev_async *w, int revents)
{
	struct async *a = w->data;
	struct async_event events[ASYNC_PENDING_MAX];
	uint32_t n;

	(void)loop;
	(void)revents;
	pthread_mutex_lock(&all.lock);
	n = a->n_pending;
	memcpy(events, a->pending, n * sizeof(*events));
	a->n_pending = 0;
	pthread_mutex_unlock(&all.lock);
	for (uint32_t i = 0; i < n; i++)
		a->on_event(a->arg, &events[i]);
}

void async_start(struct async *a, struct ev_loop *loop, const struct ep *ep, async_on_event_fn *on_event, void *arg)
{
	const struct dev *dev = ep_dev(ep);
	int flags = fcntl(dev->ctx->async_fd, F_GETFL);

	a->loop = loop;
	a->ep = ep;
	a->on_event = on_event;
	a->arg = arg;
	a->n_pending = 0;
	ev_async_init(&a->wake, on_wake);
	a->wake.data = a;
	ev_async_start(loop, &a->wake);
	ev_io_init(&a->io, on_readable, dev->ctx->async_fd, EV_READ);
	a->io.data = a;
	if (flags < 0 || fcntl(dev->ctx->async_fd, F_SETFL, flags | O_NONBLOCK))
		log_error("cannot watch the events of RDMA device %s: %s", dev->name, strerror(errno));
	else
		ev_io_start(loop, &a->io);
	pthread_mutex_lock(&all.lock);
	TAILQ_INSERT_TAIL(&all.loops, a, link);
	pthread_mutex_unlock(&all.lock);
}

void async_stop(struct async *a)
{
	if (!a->loop)
		return;
	pthread_mutex_lock(&all.lock);
	TAILQ_REMOVE(&all.loops, a, link);
	pthread_mutex_unlock(&all.lock);
	ev_io_stop(a->loop, &a->io);
	ev_async_stop(a->loop, &a->wake);
	a->loop = NULL;
}

uint64_t async_count(enum ibv_event_type type)
{
	uint64_t n;

	pthread_mutex_lock(&all.lock);
	n = all.counts[type];
	pthread_mutex_unlock(&all.lock);
	return n;
}

json_t *async_json(void)
{
	json_t *o = json_object();

	pthread_mutex_lock(&all.lock);
	for (int i = 0; i < TYPES; i++)
		if (all.counts[i])
			json_object_set_new(o, types[i].name, json_integer((json_int_t)all.counts[i]));
	if (all.dropped)
		json_object_set_new(o, "dropped", json_integer((json_int_t)all.dropped));
	pthread_mutex_unlock(&all.lock);
	return o;
}
