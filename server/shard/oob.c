/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting out of band. See oob.h. */
#include "server/shard/oob.h"

#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/rdma/qp_pool.h"
#include "common/rdma/region.h"
#include "common/wire/msg.h"
#include "server/shard/accept.h"
#include "server/shard/grant.h"
#include "server/shard/shard_data.h"
#include "server/tables/session.h"

/* On Ethernet packets will go to the client's GID, which must be the address that TLS came from: otherwise a client
 * could aim them at any host. InfiniBand's GIDs are no addresses. */
static bool gid_is_clients(const struct conn *c, const struct frame_qp *qp)
{
	struct addr a;

	if (c->shard->cfg->allow_redirect || !dev_ethernet_port(&c->shard->dev))
		return true;
	addr_from_bytes(qp->gid, 0, &a);
	return addr_same_host(&a, &c->peer);
}

/* An unused session holds a queue pair, so an address may hold no more unused sessions than queue pairs are left. */
static bool holds_too_many(const struct conn *c)
{
	const struct shard *s = c->shard;

	return peers_count(s->peers, PEERS_CLIENTS, addr_network(&c->peer)) > qp_pool_available(s->qps);
}

static int program(struct conn *c, bool has_region)
{
	const struct frame_qp *client = &c->client_qp;
	struct cm_end end = { .lid = client->lid, .mtu = (enum ibv_mtu)client->mtu, .qpn = client->qpn };
	struct cm_path path;

	if (holds_too_many(c))
		return -EAGAIN;
	memcpy(end.gid.raw, client->gid, sizeof(end.gid.raw));
	cm_make_path(&c->shard->dev, &end, c->reads, &path);
	return accept_program_qp(c, NULL, &path, has_region);
}

static void describe_qp(struct conn *c)
{
	const struct dev *d = &c->shard->dev;

	c->server_qp = (struct frame_qp){ .qpn = rc_qpn(&c->link.rc), .lid = d->port.lid,
					  .mtu = (uint8_t)d->port.active_mtu, .reads = c->reads };
	memcpy(c->server_qp.gid, d->gid.raw, sizeof(c->server_qp.gid));
}

enum refuse_code oob_take_qp(struct conn *c, const struct frame_hello *h, const char **why)
{
	bool has_region = h->features & FRAME_FEATURE_REGION;
	int ret;

	if (!dev_has_gid(&c->shard->dev)) {
		*why = "the server's device has no GID for its address: use --connect cm";
		return REFUSE_UNSUPPORTED;
	}
	if (!gid_is_clients(c, &h->qp)) {
		*why = "the GID is not the address that this connection comes from (--allow-redirect of the server)";
		return REFUSE_BAD_ADDRESS;
	}
	c->client_qp = h->qp;
	c->oob = true;
	c->reads = accept_reads(c->shard, has_region, h->qp.reads);
	ret = program(c, has_region);
	if (!ret) {
		describe_qp(c);
		return 0;
	}
	*why = ret == -EAGAIN ? "too few queue pairs are free: try again in a few seconds" :
	       "the server could not program a queue pair";
	return accept_refusal(ret);
}

static int hmac(const struct conn *c, const uint8_t *key, uint8_t out[AUTH_HMAC_BYTES])
{
	const struct auth_pair p = { .session = c->session, .client = &c->client_qp, .server = &c->server_qp,
				     .client_psn = c->client_psn, .server_psn = c->server_psn };

	return auth_hmac_pair(c->shard->mac, key, &p, out);
}

static bool is_proof(const uint8_t *expected, const uint8_t *data, uint32_t bytes)
{
	struct msg_header h;

	return msg_decode(data, bytes, &h) == 0 && h.type == MSG_PROOF &&
	       !auth_compare(expected, data + MSG_HEADER_BYTES);
}

/* Sends the server's proof from the buffer that the client's came in. */
static int answer(struct conn *c, uint32_t buf)
{
	const struct msg_header h = { .type = MSG_PROOF, .length = MSG_PROOF_BYTES };
	uint8_t *out = ep_buf(c->link.ep, buf);
	int ret;

	msg_encode(&h, out);
	ret = hmac(c, c->keys.server, out + MSG_HEADER_BYTES);
	if (ret) {
		ep_recycle(c->link.ep, buf);
		return ret;
	}
	ret = rc_send(&c->link.rc, buf, MSG_PROOF_BYTES);
	if (!ep_replace(c->link.ep))
		counter_add(&c->shard->stats.receive_shortfalls, 1);
	return ret;
}

void oob_on_first_message(struct conn *c, uint32_t buf, uint32_t bytes)
{
	struct shard *s = c->shard;
	uint8_t expected[AUTH_HMAC_BYTES];
	int ret = hmac(c, c->keys.client, expected);

	/* The GRANT has arrived, though the socket may still have to take the close_notify behind it. */
	if (c->state == CONN_ST_GRANT)
		grant_finish(c);
	if (ret || !is_proof(expected, ep_buf(s->ep, buf), bytes)) {
		ep_recycle(s->ep, buf);
		conn_fail(c, ret ? FAIL_ERRNO : FAIL_PROTOCOL, ret ? -ret : PROTO_BAD_PROOF);
		return;
	}
	session_take(s->sessions, c->session);
	conn_set_state(c, CONN_ST_ACCEPTING);
	peers_give(s->peers, PEERS_CLIENTS, &c->grant_hold);
	c->accepted_ns = clock_now_ns();
	/* Bind before the proof: the key then works as soon as the client knows that it is connected. */
	ret = c->region != REGION_NONE ? region_bind(s->regions, c->region, &c->link.rc) : 0;
	if (ret)
		ep_recycle(s->ep, buf);
	else
		ret = answer(c, buf);
	auth_wipe(&c->keys);
	if (ret)
		conn_fail(c, FAIL_ERRNO, -ret);
	else
		conn_set_live(c);
}
