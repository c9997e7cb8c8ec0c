/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm wrappers. See cm.h; sources of the facts are the rdma_cm(7) pages and the IBTA
 * specification, volume 1, chapter 12. */
#include "common/rdma/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <rdma/rdma_cma.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rdma/dev.h"

#define TIMEWAIT_EXPONENT_MAX 21	/* 8.6 s */
#define HOP_LIMIT 64	/* of a path that the CM did not choose: IP's default (RFC 1700) */

struct cm_channel {
	struct rdma_event_channel *ch;
};

int cm_channel_new(struct cm_channel **out)
{
	struct cm_channel *c = calloc(1, sizeof(*c));
	int flags, ret;

	if (!c)
		return -ENOMEM;
	c->ch = rdma_create_event_channel();
	if (!c->ch) {
		ret = -errno;
		goto err_free;
	}
	flags = fcntl(c->ch->fd, F_GETFL);
	if (flags < 0 || fcntl(c->ch->fd, F_SETFL, flags | O_NONBLOCK) ||
	    fcntl(c->ch->fd, F_SETFD, FD_CLOEXEC)) {
		ret = -errno;
		goto err_channel;
	}
	*out = c;
	return 0;

err_channel:
	rdma_destroy_event_channel(c->ch);
err_free:
	free(c);
	return ret;
}

void cm_channel_free(struct cm_channel *c)
{
	if (!c)
		return;
	rdma_destroy_event_channel(c->ch);
	free(c);
}

int cm_channel_fd(const struct cm_channel *c)
{
	return c->ch->fd;
}

static enum cm_event_type translate(enum rdma_cm_event_type e)
{
	switch (e) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: return CM_ADDR_RESOLVED;
	case RDMA_CM_EVENT_ADDR_ERROR: return CM_ADDR_ERROR;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: return CM_ROUTE_RESOLVED;
	case RDMA_CM_EVENT_ROUTE_ERROR: return CM_ROUTE_ERROR;
	case RDMA_CM_EVENT_CONNECT_REQUEST: return CM_CONNECT_REQUEST;
	case RDMA_CM_EVENT_CONNECT_RESPONSE: return CM_CONNECT_RESPONSE;
	case RDMA_CM_EVENT_CONNECT_ERROR: return CM_CONNECT_ERROR;
	case RDMA_CM_EVENT_UNREACHABLE: return CM_UNREACHABLE;
	case RDMA_CM_EVENT_REJECTED: return CM_REJECTED;
	case RDMA_CM_EVENT_ESTABLISHED: return CM_ESTABLISHED;
	case RDMA_CM_EVENT_DISCONNECTED: return CM_DISCONNECTED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL: return CM_DEVICE_REMOVED;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return CM_OTHER;
	}
	return CM_OTHER;
}

int cm_next_event(struct cm_channel *c, struct cm_event *out)
{
	struct rdma_cm_event *e;

	if (rdma_get_cm_event(c->ch, &e))
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	out->type = translate(e->event);
	out->id = e->id;
	out->context = e->listen_id ? e->listen_id->context : e->id->context;
	out->status = e->status;
	out->qpn = e->param.conn.qp_num;
	/* The kernel swaps the two numbers, so that each side sees its own limit (cm_format_req_event). */
	out->reads = e->event == RDMA_CM_EVENT_CONNECT_REQUEST ? e->param.conn.responder_resources :
		     e->param.conn.initiator_depth;
	out->private_bytes = 0;
	if (e->param.conn.private_data && e->param.conn.private_data_len) {
		out->private_bytes = e->param.conn.private_data_len;
		if (out->private_bytes > CM_PRIVATE_MAX)
			out->private_bytes = CM_PRIVATE_MAX;
		memcpy(out->private_data, e->param.conn.private_data, out->private_bytes);
	}
	if (rdma_ack_cm_event(e))
		log_error("rdma_ack_cm_event failed: %s", strerror(errno));
	return 1;
}

int cm_listen(struct cm_channel *c, const struct addr *local, int backlog, void *context,
	      struct rdma_cm_id **out, uint16_t *port)
{
	struct rdma_cm_id *id;
	struct addr a = *local;
	int ret;

	if (rdma_create_id(c->ch, &id, context, RDMA_PS_TCP))
		return -errno;
	if (rdma_bind_addr(id, (struct sockaddr *)&a.ss) || rdma_listen(id, backlog)) {
		ret = -errno;
		rdma_destroy_id(id);
		return ret;
	}
	*port = be16toh(rdma_get_src_port(id));
	*out = id;
	return 0;
}

int cm_id_new(struct cm_channel *c, void *context, struct rdma_cm_id **out)
{
	return rdma_create_id(c->ch, out, context, RDMA_PS_TCP) ? -errno : 0;
}

void cm_id_destroy(struct rdma_cm_id *id)
{
	if (id && rdma_destroy_id(id))
		log_error("rdma_destroy_id failed: %s", strerror(errno));
}

void cm_id_set_context(struct rdma_cm_id *id, void *context)
{
	id->context = context;
}

int cm_set_traffic_class(struct rdma_cm_id *id, uint8_t traffic_class)
{
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof(traffic_class)) ? -errno :
		0;
}

int cm_resolve_addr(struct rdma_cm_id *id, const struct addr *local, const struct addr *peer,
		    unsigned timeout_ms)
{
	struct addr src, dst = *peer;

	if (local)
		src = *local;
	return rdma_resolve_addr(id, local ? (struct sockaddr *)&src.ss : NULL,
				 (struct sockaddr *)&dst.ss, (int)timeout_ms) ? -errno : 0;
}

int cm_resolve_route(struct rdma_cm_id *id, unsigned timeout_ms)
{
	return rdma_resolve_route(id, (int)timeout_ms) ? -errno : 0;
}

int cm_addresses(struct rdma_cm_id *id, struct addr *local, struct addr *peer)
{
	int ret = addr_from_sockaddr(rdma_get_local_addr(id), local);

	return ret ? ret : addr_from_sockaddr(rdma_get_peer_addr(id), peer);
}

struct ibv_context *cm_device(const struct rdma_cm_id *id)
{
	return id->verbs;
}

/* TIMEWAIT of a connection as the exponent n of 4.096 us x 2^n, computed like cm_ack_timeout in the kernel's
 * drivers/infiniband/core/cm.c: the larger of the exponents of the device's acknowledge delay and of twice the packet
 * lifetime, plus 1 if the two are about the same. */
static unsigned timewait_exponent(unsigned packet_life_time, unsigned ack_delay)
{
	unsigned larger = MAX(packet_life_time + 1, ack_delay), smaller = MIN(packet_life_time + 1, ack_delay);

	return MIN(larger + (smaller + 1 >= larger), TIMEWAIT_EXPONENT_MAX);
}

/* Two TIMEWAITs, because an end may learn of the disconnect, and begin its own, up to a TIMEWAIT after the other. */
uint64_t cm_rest_ns(const struct rdma_cm_id *id, uint8_t ack_delay)
{
	uint64_t timewait_ns;

	if (!id || id->route.num_paths < 1)
		return 0;
	timewait_ns = UINT64_C(4096) << timewait_exponent(id->route.path_rec->packet_life_time, ack_delay);
	return 2 * timewait_ns + NS_PER_S;
}

static uint8_t retries(const struct cm_retry *r)
{
	return r->count ? r->count : CM_RETRIES;
}

static uint8_t rnr_retries(const struct cm_retry *r)
{
	return r->rnr_count_plus_1 ? r->rnr_count_plus_1 - 1 : CM_RNR_RETRIES;
}

static uint8_t rnr_timer(const struct cm_retry *r)
{
	return r->rnr_timer_plus_1 ? r->rnr_timer_plus_1 - 1 : CM_RNR_TIMER;
}

static struct rdma_conn_param to_rdma(const struct cm_conn_param *p)
{
	struct rdma_conn_param r = {
		.private_data = p->private_data,
		.private_data_len = p->private_bytes,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.flow_control = 1,
		.retry_count = retries(&p->retry),
		.rnr_retry_count = rnr_retries(&p->retry),
		.srq = 1,
		.qp_num = p->qpn,
	};

	return r;
}

int cm_connect(struct rdma_cm_id *id, const struct cm_conn_param *p)
{
	struct rdma_conn_param r = to_rdma(p);

	return rdma_connect(id, &r) ? -errno : 0;
}

int cm_accept(struct rdma_cm_id *id, const struct cm_conn_param *p)
{
	struct rdma_conn_param r = to_rdma(p);

	return rdma_accept(id, &r) ? -errno : 0;
}

int cm_establish(struct rdma_cm_id *id)
{
	return rdma_establish(id) ? -errno : 0;
}

void cm_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_bytes)
{
	if (rdma_reject(id, private_data, private_bytes))
		log_debug("rdma_reject failed: %s", strerror(errno));
}

int cm_disconnect(struct rdma_cm_id *id)
{
	return rdma_disconnect(id) ? -errno : 0;
}

static int init_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr,
		     enum ibv_qp_state state, int *mask)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	return rdma_init_qp_attr(id, attr, mask) ? -errno : 0;
}

int cm_get_path(struct rdma_cm_id *id, struct cm_path *out)
{
	return init_attr(id, &out->rtr, IBV_QPS_RTR, &out->mask);
}

void cm_make_path(const struct dev *d, const struct cm_end *peer, uint8_t reads, struct cm_path *out)
{
	struct ibv_ah_attr *ah = &out->rtr.ah_attr;

	memset(out, 0, sizeof(*out));
	out->rtr.qp_state = IBV_QPS_RTR;
	out->rtr.path_mtu = MIN(d->port.active_mtu, peer->mtu);
	out->rtr.dest_qp_num = peer->qpn;
	out->rtr.max_dest_rd_atomic = reads;
	ah->port_num = d->port_num;
	if (dev_ethernet_port(d)) {
		ah->is_global = 1;
		ah->grh.dgid = peer->gid;
		ah->grh.sgid_index = d->gid_index;
		ah->grh.hop_limit = HOP_LIMIT;
	} else {
		ah->dlid = peer->lid;
	}
	out->mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_MAX_DEST_RD_ATOMIC;
}

int cm_path_peer(struct rdma_cm_id *id, const struct cm_path *path, struct addr *out)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct ibv_ah_attr *ah = &path->rtr.ah_attr;

	if (!ah->is_global)
		return -EAFNOSUPPORT;
	if (memcmp(ah->grh.dgid.raw, v4_mapped, sizeof(v4_mapped)) != 0 &&
	    rdma_get_peer_addr(id)->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	addr_from_bytes(ah->grh.dgid.raw, 0, out);
	return 0;
}

/* Takes port and partition from the CM's path; without the CM, the port of `path` and its first partition. to_rtr sets
 * the access rights. */
static int to_init(struct rdma_cm_id *id, struct ibv_qp *qp, const struct cm_path *path)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = path->rtr.ah_attr.port_num };
	int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX, ret;

	if (qp->state == IBV_QPS_INIT)
		return 0;
	ret = id ? init_attr(id, &attr, IBV_QPS_INIT, &mask) : 0;
	if (ret)
		return ret;
	/* Cleared, because the CM always grants remote writes. */
	attr.qp_access_flags = 0;
	return -ibv_modify_qp(qp, &attr, mask | IBV_QP_ACCESS_FLAGS);
}

static void choose_path(struct ibv_ah_attr *ah, const struct cm_fabric *f)
{
	if (f->has_service_level)
		ah->sl = f->service_level;
	if (!ah->is_global)
		return;
	if (f->has_traffic_class)
		ah->grh.traffic_class = f->traffic_class;
	if (f->has_gid_index)
		ah->grh.sgid_index = f->gid_index;
}

static int to_rtr(struct ibv_qp *qp, const struct cm_path *path, const struct cm_qp_param *p)
{
	struct ibv_qp_attr attr = path->rtr;

	attr.rq_psn = p->rq_psn;
	attr.min_rnr_timer = rnr_timer(&p->retry);
	/* The number in the request is the peer's claim: never grant more than we offer. */
	if (attr.max_dest_rd_atomic > p->reads)
		attr.max_dest_rd_atomic = p->reads;
	if (p->path_mtu && attr.path_mtu > p->path_mtu)
		attr.path_mtu = p->path_mtu;
	choose_path(&attr.ah_attr, &p->fabric);
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
	if (p->remote_write)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	if (p->remote_read)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (p->remote_atomic)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return -ibv_modify_qp(qp, &attr, path->mask | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS);
}

/* Does not ask the CM for the RTS attributes, because it sets all of them itself. */
static int to_rts(struct ibv_qp *qp, const struct cm_qp_param *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .sq_psn = p->sq_psn,
				    .timeout = p->retry.ack_timeout ? p->retry.ack_timeout : CM_ACK_TIMEOUT,
				    .retry_cnt = retries(&p->retry), .rnr_retry = rnr_retries(&p->retry),
				    .max_rd_atomic = p->own_reads };

	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int verify_psns(struct ibv_qp *qp, const struct cm_qp_param *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(qp, &attr, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init);

	if (ret)
		return -ret;
	if (attr.sq_psn == p->sq_psn && attr.rq_psn == p->rq_psn)
		return 0;
	log_error("QP 0x%x: PSNs read back as sq 0x%06x rq 0x%06x, programmed sq 0x%06x rq 0x%06x",
		  qp->qp_num, attr.sq_psn, attr.rq_psn, p->sq_psn, p->rq_psn);
	return -EBADMSG;
}

int cm_program_qp(struct rdma_cm_id *id, struct ibv_qp *qp, const struct cm_path *path,
		  const struct cm_qp_param *p)
{
	int ret = to_init(id, qp, path);

	if (!ret)
		ret = to_rtr(qp, path, p);
	if (!ret)
		ret = to_rts(qp, p);
	if (!ret && p->verify)
		ret = verify_psns(qp, p);
	return ret;
}

uint64_t cm_rnr_timer_ns(uint8_t code)
{
	static const uint32_t hundredths_of_ms[32] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
		3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return hundredths_of_ms[code & 31] * (NS_PER_MS / 100);
}

int cm_read_qp(struct ibv_qp *qp, struct cm_qp_values *out)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
			       IBV_QP_RETRY_CNT |
			       IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER, &init);

	if (ret)
		return -ret;
	*out = (struct cm_qp_values){
		.path_mtu_bytes = attr.path_mtu ? (uint16_t)(128u << attr.path_mtu) : 0,
		.ack_timeout = attr.timeout, .retry_count = attr.retry_cnt, .rnr_retry = attr.rnr_retry,
		.rnr_timer = attr.min_rnr_timer, .service_level = attr.ah_attr.sl,
	};
	if (attr.ah_attr.is_global) {
		out->traffic_class = attr.ah_attr.grh.traffic_class;
		out->gid_index = attr.ah_attr.grh.sgid_index;
	}
	return 0;
}

int cm_own_psn(struct rdma_cm_id *id, uint32_t *out)
{
	struct ibv_qp_attr attr;
	int mask, ret = init_attr(id, &attr, IBV_QPS_RTS, &mask);

	if (!ret)
		*out = attr.sq_psn;
	return ret;
}
