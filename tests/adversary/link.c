/* SPDX-License-Identifier: BSD-2-Clause */
/* One RDMA connection, step by step. See link.h. */
#include "tests/adversary/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/wire/msg.h"
#include "common/rdma/qp_pool.h"
#include "common/tls/tls.h"

#define RESOLVE_MS 5000
#define RECV_DEPTH 64
#define SPARE_BUFS 6
#define QUIET_NS (300 * NS_PER_MS)	/* out of band, how long link_wait waits before it sends an echo */

static void on_wc(void *arg, const struct ibv_wc *wc)
{
	struct link *l = arg;
	struct wr w = wr_unpack(wc->wr_id);

	if (w.type == WR_RECV) {
		if (wc->status == IBV_WC_SUCCESS) {
			uint32_t n = wc->byte_len < sizeof(l->last) ? wc->byte_len : sizeof(l->last);

			l->received++;
			l->received_bytes = wc->byte_len;
			memcpy(l->last, ep_buf(l->ep, w.buf), n);
		}
		if (!l->hoards)
			ep_recycle(l->ep, w.buf);
		return;
	}
	(void)!rc_on_send_wc(&l->rc, wc, &w);
	if (wc->status != IBV_WC_SUCCESS && w.type != WR_BEACON && l->wc_status == IBV_WC_SUCCESS) {
		l->wc_status = wc->status;
		if (l->r->oob && wc->status == IBV_WC_RETRY_EXC_ERR) {
			l->event.type = CM_DISCONNECTED;
			l->has_event = true;
		}
	}
	if (w.type == WR_RMA)
		l->one_sided_done = true;
	else if (w.type == WR_SEND)
		l->sends_done += w.covers;
}

int link_new(struct rogue *r, struct link *l)
{
	return link_new_sized(r, l, LINK_MESSAGES_MAX, RECV_DEPTH, LINK_BUF_BYTES);
}

int link_new_sized(struct rogue *r, struct link *l, uint32_t messages, uint32_t receives, uint32_t buf_bytes)
{
	struct ep_config ep = { .dev = &r->dev, .max_qps = 1, .sq_depth = messages + 1,
				.recv_depth = receives, .spare_bufs = messages + SPARE_BUFS,
				.buf_bytes = buf_bytes, .spin = true };
	struct qp_pool_config qp = { .max = 1, .reserve = 0 };
	char err[256];
	int ret;

	memset(l, 0, sizeof(*l));
	l->r = r;
	l->hello = wire_good_hello();
	l->rnr_retries = 6;
	ret = ep_new(&ep, on_wc, l, &l->ep, err, sizeof(err));
	if (!ret)
		ret = qp_pool_new(l->ep, &qp, &l->pool);
	if (!ret)
		ret = cm_channel_new(&l->cm);
	if (ret) {
		fprintf(stderr, "rogue: cannot make an endpoint: %s\n", strerror(-ret));
		link_free(l);
	} else {
		rc_init(&l->rc, l->ep, l->pool, NULL);
	}
	return ret;
}

void link_free(struct link *l)
{
	if (l->oob_connected && !link_has_ended(l))
		link_disconnect(l);
	wire_close(&l->wire);
	cm_id_destroy(l->rc.id);
	qp_pool_free(l->pool);
	ep_free(l->ep);
	cm_channel_free(l->cm);
	memset(l, 0, sizeof(*l));
}

bool link_wait(struct link *l, bool (*done)(const struct link *l))
{
	uint64_t begun_ns = clock_now_ns(), deadline_ns = begun_ns + l->r->timeout_ns;

	while (!done(l)) {
		struct pollfd p = { .fd = cm_channel_fd(l->cm), .events = POLLIN };

		if (clock_now_ns() > deadline_ns || ep_process(l->ep, 64) < 0)
			return false;
		if (done(l))
			break;
		/* Out of band nothing more comes to a queue pair that has failed. */
		if (l->r->oob && l->wc_status != IBV_WC_SUCCESS)
			return false;
		if (l->r->oob && !l->probed && clock_now_ns() > begun_ns + QUIET_NS) {
			l->probed = true;
			(void)!link_echo(l, 64);
		}
		/* Completions are polled, so wait for CM events for at most a millisecond. */
		if (poll(&p, 1, 1) > 0 && cm_next_event(l->cm, &l->event) == 1 &&
		    l->event.type != CM_OTHER)
			l->has_event = true;
	}
	return true;
}

static bool has_event(const struct link *l)
{
	return l->has_event;
}

static bool wait_event(struct link *l, enum cm_event_type type)
{
	bool came = link_wait(l, has_event);

	l->has_event = false;
	return came && l->event.type == type;
}

/* Puts a QP into the HELLO. */
static bool offer_qp(struct link *l)
{
	const struct dev *d = &l->r->dev;

	if (!l->rc.qp && rc_take_qp(&l->rc, 0))
		return false;
	l->hello.features |= FRAME_FEATURE_OOB;
	l->hello.qp = (struct frame_qp){ .qpn = l->claimed_qpn ? l->claimed_qpn : rc_qpn(&l->rc), .reads = 1,
					 .mtu = (uint8_t)d->port.active_mtu };
	memcpy(l->hello.qp.gid, d->gid.raw, sizeof(l->hello.qp.gid));
	return true;
}

bool link_grant(struct link *l, const char *source)
{
	const uint8_t *id = l->grant.session;

	l->reply.kind = REPLY_NONE;
	if (l->r->oob && !offer_qp(l))
		return false;
	if (!wire_open(l->r, source, &l->wire, &l->reply))
		return false;
	wire_hello(&l->wire, &l->hello, &l->reply);
	if (l->reply.kind != REPLY_GRANT)
		return false;
	l->grant = l->reply.grant;
	l->sq_psn = l->hello.psn;
	return tls_export_key(l->wire.tls, AUTH_LABEL_CLIENT, id, FRAME_SESSION_BYTES, l->keys.client,
			      AUTH_KEY_BYTES) == 0 &&
	       tls_export_key(l->wire.tls, AUTH_LABEL_SERVER, id, FRAME_SESSION_BYTES, l->keys.server,
			      AUTH_KEY_BYTES) == 0;
}

bool link_resolve(struct link *l, uint16_t port)
{
	struct addr to = l->grant.rdma;

	if (l->r->oob)
		return true;
	if (port)
		addr_set_port(&to, port);
	if (cm_id_new(l->cm, l, &l->rc.id) ||
	    cm_resolve_addr(l->rc.id, &l->r->dev.addr, &to, RESOLVE_MS) ||
	    !wait_event(l, CM_ADDR_RESOLVED))
		return false;
	return cm_resolve_route(l->rc.id, RESOLVE_MS) == 0 && wait_event(l, CM_ROUTE_RESOLVED) &&
	       (l->rc.qp || rc_take_qp(&l->rc, 0) == 0);
}

/* The first message out of band. */
static uint8_t first_message(struct link *l, const uint8_t *key, uint32_t qpn, uint8_t *out)
{
	const struct msg_header h = { .type = MSG_PROOF, .length = MSG_PROOF_BYTES };
	struct frame_qp own = l->hello.qp;
	const struct auth_pair p = { .session = l->grant.session, .client = &own, .server = &l->grant.qp,
				     .client_psn = l->hello.psn, .server_psn = l->grant.psn };

	own.qpn = qpn;
	msg_encode(&h, out);
	(void)!auth_hmac_pair(NULL, key, &p, out + MSG_HEADER_BYTES);
	return MSG_PROOF_BYTES;
}

uint8_t link_proof(struct link *l, const uint8_t *key, uint32_t qpn, uint8_t out[PDATA_PROOF_BYTES])
{
	struct addr local, peer;
	struct pdata_proof proof = { 0 };
	struct auth_binding b = { .session = l->grant.session, .client_qpn = qpn, .client = &local,
				  .server = &peer };

	if (l->r->oob)
		return first_message(l, key, qpn, out);
	memcpy(proof.session, l->grant.session, sizeof(proof.session));
	if (!cm_addresses(l->rc.id, &local, &peer))
		(void)!auth_hmac(NULL, key, &b, proof.hmac);
	pdata_encode_proof(PDATA_REQUEST, &proof, out);
	return PDATA_PROOF_BYTES;
}

static bool has_reply(const struct link *l)
{
	return l->received > 0 || link_has_ended(l);
}

static bool request_oob(struct link *l, const void *data, uint32_t bytes)
{
	l->received = 0;
	if (!link_program(l) || !link_send(l, data, bytes) || !link_wait(l, has_reply))
		return false;
	if (!l->received)
		return true;
	l->oob_connected = l->last[0] == MSG_PROOF;
	l->event = (struct cm_event){ .type = l->oob_connected ? CM_CONNECT_RESPONSE : CM_CONNECT_ERROR,
				      .qpn = l->grant.qp.qpn };
	l->has_event = true;
	l->received = 0;
	return true;
}

bool link_request(struct link *l, const void *data, uint8_t bytes)
{
	struct cm_conn_param p = { .qpn = l->claimed_qpn ? l->claimed_qpn : rc_qpn(&l->rc),
				   .private_data = data, .private_bytes = bytes,
				   .initiator_depth = 1 };

	if (l->r->oob)
		return request_oob(l, data, bytes);
	return cm_connect(l->rc.id, &p) == 0 && link_wait(l, has_event);
}

static bool program_oob(struct link *l)
{
	const struct frame_qp *server = &l->grant.qp;
	struct cm_end end = { .mtu = (enum ibv_mtu)server->mtu, .qpn = server->qpn };
	struct cm_qp_param p = { .rq_psn = l->grant.psn, .sq_psn = l->sq_psn, .remote_write = true, .own_reads = 1,
				 .retry = { .ack_timeout = 14, .rnr_count_plus_1 = l->rnr_retries + 1u } };
	struct cm_path path;

	memcpy(end.gid.raw, server->gid, sizeof(end.gid.raw));
	cm_make_path(&l->r->dev, &end, 0, &path);
	return cm_program_qp(NULL, l->rc.qp, &path, &p) == 0;
}

/* Like cm_program_qp, but with one RDMA READ outstanding even if the server offers none. */
bool link_program(struct link *l)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct ibv_qp_attr attr;

	if (l->r->oob)
		return program_oob(l);
	for (int i = 0; i < 3; i++) {
		int mask;

		memset(&attr, 0, sizeof(attr));
		attr.qp_state = states[i];
		if (rdma_init_qp_attr(l->rc.id, &attr, &mask))
			return false;
		attr.rq_psn = l->grant.psn;
		attr.sq_psn = l->sq_psn;
		attr.min_rnr_timer = 12;
		attr.timeout = 14;
		attr.retry_cnt = 6;
		attr.rnr_retry = l->rnr_retries;
		attr.max_rd_atomic = 1;
		if (ibv_modify_qp(l->rc.qp, &attr, mask))
			return false;
	}
	return true;
}

bool link_establish(struct link *l)
{
	l->has_event = false;
	l->server_qpn = l->event.qpn;
	return l->r->oob || (link_program(l) && cm_establish(l->rc.id) == 0);
}

bool link_connect(struct link *l, const struct frame_hello *hello)
{
	uint8_t data[PDATA_PROOF_BYTES], bytes;

	l->hello = *hello;
	if (!link_grant(l, NULL)) {
		wire_answer(&l->reply);
		return false;
	}
	wire_close(&l->wire);
	if (!link_resolve(l, 0)) {
		no_answer("the server's RDMA address does not resolve");
		return false;
	}
	bytes = link_proof(l, l->keys.client, rc_qpn(&l->rc), data);
	if (link_request(l, data, bytes) && l->event.type == CM_CONNECT_RESPONSE &&
	    link_establish(l))
		return true;
	link_answer(l);
	return false;
}

bool link_send(struct link *l, const void *data, uint32_t bytes)
{
	uint32_t buf = ep_buf_get(l->ep);

	if (buf == EP_NO_BUF || bytes > ep_buf_bytes(l->ep))
		return false;
	memcpy(ep_buf(l->ep, buf), data, bytes);
	return rc_send(&l->rc, buf, bytes) == 0;
}

bool link_echo(struct link *l, uint32_t bytes)
{
	static uint8_t data[LINK_BUF_BYTES];
	struct msg_header h = { .type = MSG_ECHO, .length = bytes, .sequence = 1 };

	msg_encode(&h, data);
	return link_send(l, data, bytes);
}

bool link_has_ended(const struct link *l)
{
	return l->has_event || l->wc_status != IBV_WC_SUCCESS;
}

bool link_works(struct link *l)
{
	l->received = 0;
	return link_echo(l, 64) && link_wait(l, has_reply) && l->received == 1;
}

static bool request_is_done(const struct link *l)
{
	return l->one_sided_done;
}

int link_one_sided(struct link *l, enum ibv_wr_opcode opcode, void *data, uint32_t bytes, uint64_t addr,
		   uint32_t rkey)
{
	uint32_t buf = ep_buf_get(l->ep);
	struct rc_rma op = { .opcode = opcode, .lkey = ep_lkey(l->ep), .bytes = bytes, .remote_addr = addr,
			     .rkey = rkey, .operand = 1, .signal = true };
	int status = LINK_NO_WC;

	if (buf == EP_NO_BUF)
		return LINK_NO_WC;
	op.local = ep_buf(l->ep, buf);
	memcpy(ep_buf(l->ep, buf), data, bytes);
	l->one_sided_done = false;
	if (!rc_rma(&l->rc, &op, 1) && link_wait(l, request_is_done))
		status = l->wc_status;
	if (opcode == IBV_WR_RDMA_READ)
		memcpy(data, ep_buf(l->ep, buf), bytes);
	ep_buf_put(l->ep, buf);
	return status;
}

static bool say_goodbye(struct link *l)
{
	const struct msg_header h = { .type = MSG_GOODBYE, .length = MSG_HEADER_BYTES };
	uint8_t data[MSG_HEADER_BYTES];

	msg_encode(&h, data);
	l->received = 0;
	l->oob_connected = false;
	return link_send(l, data, sizeof(data)) && link_wait(l, has_reply) && l->last[0] == MSG_GOODBYE;
}

bool link_disconnect(struct link *l)
{
	l->has_event = false;
	if (l->r->oob)
		return say_goodbye(l);
	return cm_disconnect(l->rc.id) == 0 && wait_event(l, CM_DISCONNECTED);
}

const char *link_wc_name(int status)
{
	static char text[96];
	struct fail f = { .kind = FAIL_WC_STATUS, .code = status };

	if (status == IBV_WC_SUCCESS)
		return "success";
	if (status == LINK_NO_WC)
		return "none";
	fail_code_text(&f, text, sizeof(text));
	return text + strlen("wc:");
}

int link_answer(struct link *l)
{
	uint16_t code;

	/* A server that ends a connection acknowledges nothing more, so on a busy machine a request may exhaust its
	 * retries before the disconnect is handled. */
	if (l->wc_status == IBV_WC_RETRY_EXC_ERR && link_wait(l, has_event) && l->event.type == CM_DISCONNECTED)
		return answer("disconnected");
	if (l->wc_status != IBV_WC_SUCCESS)
		return answer("wc: %s", link_wc_name(l->wc_status));
	if (!l->has_event)
		return no_answer("nothing came within the time limit");
	if (l->event.type == CM_DISCONNECTED)
		return answer("disconnected");
	if (l->event.type == CM_CONNECT_RESPONSE)
		return answer("accepted");
	if (l->event.type != CM_REJECTED)
		return answer("CM event %d, status %d", l->event.type, l->event.status);
	if (l->event.status == CM_REJECT_CONSUMER &&
	    !pdata_decode_reject(l->event.private_data, l->event.private_bytes, &code))
		return answer("rejected: %s", refuse_code_name(code));
	return answer("rejected: CM reason %d", l->event.status);
}
