/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection manager events of a shard. See accept.h. */
#include "server/shard/accept.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "common/rdma/region.h"
#include "server/tables/session.h"
#include "server/shard/shard_data.h"

#define READS_MAX 16

static void reject(struct shard *s, struct rdma_cm_id *id, enum refuse_code code)
{
	uint8_t data[PDATA_REJECT_BYTES];

	pdata_encode_reject((uint16_t)code, data);
	cm_reject(id, data, sizeof(data));
	cm_id_destroy(id);
	if (code < STATS_REFUSE_MAX)
		counter_add(&s->stats.refused[code], 1);
	log_event(LOG_LVL_DEBUG, &(struct log_fields){ .shard = &s->index, .reason = refuse_code_name(code) },
		  "shard %u: RDMA request rejected: %s", s->index, refuse_code_name(code));
}

/* The address in the request is only the peer's claim. It must be that of the TLS connection, and so must the address
 * that the path leads to, because packets will go there. */
static bool address_matches(const struct conn *c, struct rdma_cm_id *id, const struct cm_path *path,
			    const struct addr *claimed)
{
	struct addr real;

	if (!addr_same_host(claimed, &c->peer))
		return false;
	/* InfiniBand GIDs hold no IP address, so only the claim can be checked there. On Ethernet, a path whose GID
	 * holds no IP address leads to another host. */
	if (!dev_ethernet_port(&c->shard->dev))
		return true;
	return cm_path_peer(id, path, &real) == 0 && addr_same_host(&real, &c->peer);
}

/* Returns 0, or the reason why the request does not come from the session's owner. */
static enum refuse_code check_proof(const struct conn *c, const struct cm_event *e, const struct cm_path *path,
				    const struct pdata_proof *proof)
{
	struct addr local, peer;
	struct auth_binding b = { .session = c->session, .client_qpn = e->qpn, .client = &peer,
				  .server = &local };
	uint8_t expected[AUTH_HMAC_BYTES];

	if (cm_addresses(e->id, &local, &peer) || !address_matches(c, e->id, path, &peer))
		return REFUSE_BAD_ADDRESS;
	if (auth_hmac(c->shard->mac, c->keys.client, &b, expected)) {
		if (log_is_due(&c->shard->failed_log_ns, NS_PER_S))
			log_warn("cannot check the proof of a client: OpenSSL's HMAC failed");
		return REFUSE_INTERNAL;
	}
	return auth_compare(expected, proof->hmac) ? REFUSE_BAD_HMAC : 0;
}

static int accept_request(struct conn *c, uint32_t client_qpn)
{
	struct addr local, peer;
	struct pdata_proof proof;
	struct auth_binding b = { .session = c->session, .client_qpn = client_qpn,
				  .server_qpn = rc_qpn(&c->link.rc), .client = &peer, .server = &local };
	uint8_t data[PDATA_PROOF_BYTES];
	struct cm_conn_param param = { .qpn = rc_qpn(&c->link.rc), .private_data = data,
				       .private_bytes = sizeof(data), .retry = c->shard->cfg->tuning.retry };
	int ret = cm_addresses(c->link.rc.id, &local, &peer);

	memcpy(proof.session, c->session, sizeof(proof.session));
	if (!ret)
		ret = auth_hmac(c->shard->mac, c->keys.server, &b, proof.hmac);
	if (ret)
		return ret;
	pdata_encode_proof(PDATA_REPLY, &proof, data);
	param.responder_resources = c->reads;
	return cm_accept(c->link.rc.id, &param);
}

uint8_t accept_reads(const struct shard *s, bool has_region, uint8_t asked)
{
	int most = MIN(s->dev.attr.max_qp_rd_atom, READS_MAX);

	return has_region ? (uint8_t)MIN((int)asked, most) : 0;
}

int accept_program_qp(struct conn *c, struct rdma_cm_id *id, const struct cm_path *path, bool has_region)
{
	struct shard *s = c->shard;
	struct cm_qp_param qp = { .rq_psn = c->client_psn, .sq_psn = c->server_psn,
				  .remote_write = has_region || c->oob,	/* the client's probe needs it */
				  .remote_read = has_region,
				  .remote_atomic = has_region && dev_has_atomics(&s->dev),
				  .reads = c->reads, .path_mtu = s->cfg->path_mtu, .verify = s->cfg->verify,
				  .retry = s->cfg->tuning.retry, .fabric = s->cfg->tuning.fabric };
	uint64_t t0 = clock_now_ns();
	int ret = rc_take_qp(&c->link.rc, c->index);

	c->link.rc.may_write = c->window.bytes > 0;
	if (!ret)
		ret = cm_program_qp(id, c->link.rc.qp, path, &qp);
	counter_add(&s->stats.psn_mismatches, ret == -EBADMSG);
	if (ret && ret != -EAGAIN && log_is_due(&s->failed_log_ns, NS_PER_S))
		log_warn("cannot accept a client: %s", ret == -EBADMSG ? "the queue pair's PSNs differ from those "
			 "programmed (--verify; see the line above)" : strerror(-ret));
	if (ret)
		return ret;
	if (qp.verify)
		counter_add(&s->stats.psn_verified, 1);
	hist_record(s->stats.stages[SS_QP_SETUP], clock_now_ns() - t0);
	return 0;
}

enum refuse_code accept_refusal(int ret)
{
	return ret == -EAGAIN ? REFUSE_BUSY : ret == -ENOMEM || ret == -ENOSPC ? REFUSE_NO_RESOURCES : REFUSE_INTERNAL;
}

/* Takes a queue pair, programs it and accepts the connection. 0 or -errno. */
static int set_up(struct conn *c, const struct cm_event *e, const struct cm_path *path)
{
	struct shard *s = c->shard;
	bool has_region = c->region != REGION_NONE;
	int ret = accept_program_qp(c, e->id, path, has_region);

	if (ret)
		return ret;
	/* Bind before the accept: the key then works as soon as the client knows that it is connected. */
	if (has_region)
		ret = region_bind(s->regions, c->region, &c->link.rc);
	return ret ? ret : accept_request(c, e->qpn);
}

/* Rejects a request that has no valid session or does not come from its owner; counts as the peer's failure. */
static void reject_peer(struct shard *s, struct rdma_cm_id *id, enum refuse_code code)
{
	struct fail f = { .stage = STAGE_RDMA_CONNECT, .kind = FAIL_REFUSED, .code = (int)code };

	fail_table_count(&s->stats.failures, &f);
	reject(s, id, code);
}

/* Rejects a request because of the server's error `ret`. */
static void reject_ours(struct conn *c, struct rdma_cm_id *id, int ret)
{
	c->link.rc.id = NULL;
	reject(c->shard, id, accept_refusal(ret));
	if (ret != -EAGAIN && log_is_due(&c->shard->failed_log_ns, NS_PER_S))
		log_warn("cannot accept a client: %s", strerror(-ret));
	conn_fail(c, ret == -EBADMSG ? FAIL_PROTOCOL : FAIL_ERRNO, ret == -EBADMSG ? PROTO_PSN_MISMATCH : -ret);
}

static void on_connect_request(struct shard *s, const struct cm_event *e)
{
	struct pdata_proof proof;
	struct cm_path path;
	enum refuse_code code;
	struct conn *c;
	uint32_t index;
	int ret;

	if (pdata_decode_proof(PDATA_REQUEST, e->private_data, e->private_bytes, &proof)) {
		reject_peer(s, e->id, REFUSE_BAD_REQUEST);
		return;
	}
	if (s->drain_deadline_ns) {
		reject_peer(s, e->id, REFUSE_DRAINING);
		return;
	}
	/* Take the session before checking anything else: it is good for one attempt. */
	index = session_take(s->sessions, proof.session);
	if (index == SESSION_NONE) {
		reject_peer(s, e->id, session_is_stale(s->sessions, proof.session) ? REFUSE_STALE : REFUSE_BAD_SESSION);
		return;
	}
	c = &s->conns[index];
	/* The request waited here for longer than its session is valid: the client has given up. */
	if (conn_is_overdue(c)) {
		reject_peer(s, e->id, REFUSE_BAD_SESSION);
		conn_end_overdue(c);
		return;
	}
	/* The session was granted a socket: it has no PSNs reserved, and its buffers belong to another endpoint. A
	 * session out of band has its queue pair already. */
	if (!link_is_rdma(&c->link) || c->oob) {
		reject_peer(s, e->id, REFUSE_BAD_SESSION);
		conn_close(c, CLOSE_REFUSED);
		return;
	}
	conn_set_state(c, CONN_ST_ACCEPTING);
	peers_give(s->peers, PEERS_CLIENTS, &c->grant_hold);
	c->accepted_ns = clock_now_ns();
	ret = cm_get_path(e->id, &path);
	if (ret) {
		reject_ours(c, e->id, ret);
		return;
	}
	code = check_proof(c, e, &path, &proof);
	if (code) {
		reject_peer(s, e->id, code);
		conn_close(c, CLOSE_REFUSED);
		return;
	}
	c->reads = accept_reads(s, c->region != REGION_NONE, e->reads);
	c->link.rc.id = e->id;
	cm_id_set_context(e->id, c);
	ret = set_up(c, e, &path);
	if (ret) {
		reject_ours(c, e->id, ret);
		return;
	}
	/* Both proofs are done: the keys are not needed again. */
	auth_wipe(&c->keys);
	c->cm_connected = c->qpn_lingers = true;
}

/* A status other than 0 means that the peer did not answer: its CM may still have the connection. */
static void on_disconnected(struct conn *c, const struct cm_event *e)
{
	c->qpn_lingers = e->status != 0;
	/* Also answers the peer's disconnect request, unless the server disconnected first. */
	conn_close(c, c->told ? CLOSE_DRAINING : CLOSE_PEER_LEFT);
	c->cm_connected = false;
	conn_try_finish(c);
}

static void on_failed(struct conn *c, const struct cm_event *e)
{
	bool stale = e->type == CM_REJECTED && e->status == FAIL_CM_STALE;

	c->cm_connected = false;
	/* A peer that rejects has no connection left, unless an earlier one with the same QP number made it reject. */
	c->qpn_lingers = e->type != CM_REJECTED || stale;
	if (stale && c->state == CONN_ST_ACCEPTING)
		session_note_stale(c->shard->sessions, c->session);
	conn_fail(c, FAIL_CM_STATUS, e->status);
	conn_try_finish(c);
}

void accept_on_qp_event(void *arg, const struct async_event *e)
{
	struct shard *s = arg;
	uint32_t owner = qp_pool_owner_of_qpn(s->qps, e->qpn);
	struct conn *c;

	if (owner == QP_POOL_NONE)
		return;
	c = &s->conns[owner];
	if (e->action == ASYNC_QP_LAST_WQE)
		rc_on_last_wqe(&c->link.rc);
	else
		conn_fail(c, FAIL_WC_STATUS, (int)e->status);
	conn_try_finish(c);
}

void accept_on_cm_event(void *arg, const struct cm_event *e)
{
	struct shard *s = arg;

	switch (e->type) {
	case CM_CONNECT_REQUEST:
		on_connect_request(s, e);
		break;
	case CM_ESTABLISHED:
		conn_set_live(e->context);
		break;
	case CM_DISCONNECTED:
		on_disconnected(e->context, e);
		break;
	case CM_REJECTED:
	case CM_UNREACHABLE:
	case CM_CONNECT_ERROR:
		on_failed(e->context, e);
		break;
	case CM_DEVICE_REMOVED:
		/* This event comes once for every id of the device. */
		if (!s->pump.broken)
			log_error("shard %u: RDMA device %s was removed", s->index, s->dev.name);
		pump_fail(&s->pump);
		break;
	case CM_ADDR_RESOLVED:
	case CM_ADDR_ERROR:
	case CM_ROUTE_RESOLVED:
	case CM_ROUTE_ERROR:
	case CM_CONNECT_RESPONSE:
	case CM_OTHER:
		break;
	}
}
