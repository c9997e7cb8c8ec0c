/* SPDX-License-Identifier: BSD-2-Clause */
/* Resources that the connections of one client thread share: device, endpoint, QP pool, CM channel, TLS. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "client/internal.h"
#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/rdma/ep.h"
#include "common/base/log.h"
#include "common/wire/msg_tag.h"
#include "common/rdma/qp_pool.h"
#include "common/rdma/tuning.h"
#include "common/sizing/sizes.h"
#include "common/tls/tls.h"

#define QP_BUDGET 32
#define HOUSEKEEPING_S 0.05

static client_begin_fn *const begin_stage[STAGE_TIMED] = {
	[STAGE_TCP_CONNECT] = client_boot_start,
	[STAGE_TLS_HANDSHAKE] = client_boot_handshake,
	[STAGE_PSN_EXCHANGE] = client_boot_exchange,
	[STAGE_SOCKET_CONNECT] = client_socket_start,
	[STAGE_ADDR_RESOLVE] = client_rdma_start,
	[STAGE_ROUTE_RESOLVE] = client_rdma_resolve_route,
	[STAGE_QP_SETUP] = client_rdma_take_qp,
	[STAGE_RDMA_CONNECT] = client_rdma_connect,
	[STAGE_QP_EXCHANGE] = client_oob_prove,
	[STAGE_FIRST_REPLY] = client_rdma_first_message,
};

static void on_turn_end(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct client_ctx *ctx = w->data;

	(void)loop;
	(void)revents;
	while (!TAILQ_EMPTY(&ctx->dead)) {
		struct client_conn *c = TAILQ_FIRST(&ctx->dead);

		TAILQ_REMOVE(&ctx->dead, c, entry);
		client_set_state(c, CLIENT_ST_FREE);
		if (c->again) {
			client_restart(c);
			continue;
		}
		ctx->ops->on_closed(ctx->arg, c, &c->fail);
		TAILQ_INSERT_HEAD(&ctx->free, c, entry);
		ctx->n_free++;
	}
}

static void on_housekeeping(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct client_ctx *ctx = w->data;

	(void)revents;
	qp_pool_expect(ctx->qps, ctx->demand);
	qp_pool_maintain(ctx->qps, clock_now_ns(), QP_BUDGET);
	if (ctx->cfg->connect == CONNECT_OOB)
		client_oob_look(ctx);
	ev_timer_again(loop, w);
}

/* The device failed; the thread carries on with its other devices. */
static void on_broken(void *arg)
{
	struct client_ctx *ctx = arg;

	ctx->gone = true;
	ev_timer_stop(ctx->loop, &ctx->housekeeping);
	for (uint32_t i = 0; i < ctx->cfg->max_conns; i++) {
		struct client_conn *c = &ctx->conns[i];

		if (c->state == CLIENT_ST_FREE || c->state == CLIENT_ST_DEAD)
			continue;
		client_fail(c, FAIL_ERRNO, ENODEV);
		rc_abandon(&c->link.rc);
		c->cm_connected = c->awaits_close = false;
		client_try_finish(c);
	}
}

static void on_qp_event(void *arg, const struct async_event *e)
{
	struct client_ctx *ctx = arg;
	uint32_t owner = qp_pool_owner_of_qpn(ctx->qps, e->qpn);
	struct client_conn *c;

	if (owner == QP_POOL_NONE)
		return;
	c = &ctx->conns[owner];
	if (e->action == ASYNC_QP_LAST_WQE)
		rc_on_last_wqe(&c->link.rc);
	else
		client_fail(c, FAIL_WC_STATUS, (int)e->status);
	client_try_finish(c);
}

static void start_watchers(struct client_ctx *ctx)
{
	/* Out of band the only event is that the device was removed. */
	pump_start(&ctx->pump, ctx->loop, ctx->ep, ctx->cm ? ctx->cm : ctx->dev.channel,
		   (enum poll_mode)ctx->cfg->poll, ctx->cfg->spin_ns, client_on_cm_event, ctx);
	ctx->pump.on_broken = on_broken;
	ctx->pump.on_qp_event = on_qp_event;
	/* TLS steps come last in a turn, a few at a time: they take much CPU time, and in a storm of connections
	 * completions and CM events would otherwise wait for seconds. */
	pump_set_rest(&ctx->pump, client_boot_serve_next);
	ev_prepare_init(&ctx->turn_end, on_turn_end);
	ctx->turn_end.data = ctx;
	ev_prepare_start(ctx->loop, &ctx->turn_end);
	/* First at once, because the first connections are to find queue pairs in the pool, not to make their own. */
	ev_timer_init(&ctx->housekeeping, on_housekeeping, 0., HOUSEKEEPING_S);
	ctx->housekeeping.data = ctx;
	if (ctx->qps)
		ev_timer_start(ctx->loop, &ctx->housekeeping);
}

static int open_device(struct client_ctx *ctx, char *err, size_t err_size)
{
	struct addr local;
	char text[ADDR_TEXT_MAX];
	int ret = dev_source_addr(&ctx->cfg->server, &local);

	if (ret) {
		snprintf(err, err_size, "no route to %s: %s", addr_host_text(&ctx->cfg->server, text),
			 strerror(-ret));
		return ret;
	}
	ret = dev_open(&local, ctx->cfg->device, ctx->cfg->connect == CONNECT_CM, &ctx->dev, err, err_size);
	if (!ret)
		ret = dev_fit_fabric(&ctx->dev, &ctx->cfg->fabric, err, err_size);
	return ret;
}

struct sizes_client client_sizes_wanted(const struct client_config *cfg)
{
	/* Count on at most the default amount of inline data, because a device may not grant a larger one. */
	uint32_t inline_bytes = MIN(cfg->inline_bytes, TUNING_INLINE_AUTO);

	return (struct sizes_client){ .max_conns = cfg->max_conns, .depth = cfg->depth, .rma_depth = cfg->rma_depth,
				      .srq_depth = cfg->srq_depth, .cq_depth = cfg->cq_depth,
				      .buffer_bytes = cfg->buffer_bytes,
				      .all_inline = cfg->message_bytes <= inline_bytes };
}

static int check_recv_depth(const struct client_ctx *ctx, const struct sizes_client *wanted,
			    const struct sizes_device *d, char *err, size_t err_size)
{
	const struct client_config *cfg = ctx->cfg;
	uint64_t depth = (uint64_t)cfg->max_conns * cfg->depth, max = sizes_client_depth_max(wanted, d);

	if (depth <= max)
		return 0;
	snprintf(err, err_size,
		 "%u connections with %u messages in flight need %llu receive buffers in a thread, which has "
		 "at most %llu on device %s%s; use more --threads or a lower --inflight",
		 cfg->max_conns, cfg->depth, (unsigned long long)depth, (unsigned long long)max, ctx->dev.name,
		 cfg->srq_depth || cfg->cq_depth ? " with --srq-depth and --cq-depth" : "");
	return -ENOSPC;
}

static int make_verbs(struct client_ctx *ctx, char *err, size_t err_size)
{
	const struct client_config *cfg = ctx->cfg;
	const struct sizes_client wanted = client_sizes_wanted(cfg);
	uint32_t largest = MAX(cfg->message_bytes, cfg->region ? cfg->buffer_bytes : 0);
	const struct sizes_device d = sizes_of_device(&ctx->dev);
	struct sizes s;
	int ret = check_recv_depth(ctx, &wanted, &d, err, err_size);

	if (ret)
		return ret;
	sizes_of_client(&wanted, &d, &s);
	const struct ep_config ep = { .dev = &ctx->dev, .max_qps = s.qps, .sq_depth = s.sq_depth,
				      .inline_bytes = MIN(largest, cfg->inline_bytes), .buf_bytes = cfg->buffer_bytes,
				      .cq_depth = cfg->cq_depth, .post_list = cfg->post_list,
				      .relaxed_ordering = cfg->relaxed_ordering,
				      .signal_every = cfg->signal_every, .recv_depth = s.recv_depth,
				      .spare_bufs = s.spare_bufs, .spin = cfg->poll == POLL_BUSY };
	const struct qp_pool_config qp = { .max = s.qps, .reserve = s.qp_reserve,
					   .quarantine_ns = QP_POOL_QUARANTINE_NS,
					   .init_port = dev_ethernet_port(&ctx->dev) };

	ret = ep_new(&ep, client_on_wc, ctx, &ctx->ep, err, err_size);
	if (ret)
		return ret;
	snprintf(err, err_size, "this machine is out of memory");
	return qp_pool_new(ctx->ep, &qp, &ctx->qps);
}

/* Each connection gets two sets of buffers with one per message in flight: receive buffers, plus one for a partly
 * received record, and send buffers, plus one for a BYE. Zerocopy needs the send buffers twice. */
static int make_sockets(struct client_ctx *ctx, char *err, size_t err_size)
{
	const struct client_config *cfg = ctx->cfg;
	uint64_t wanted = (uint64_t)cfg->max_conns * (cfg->depth + 1);
	uint32_t n = (uint32_t)MIN(wanted, (EP_NO_BUF - EP_BATCH) / 3);
	uint32_t pinned = cfg->sock.tcp.zerocopy_bytes ? n : 0;
	const struct ep_config ep = { .recv_depth = n, .spare_bufs = n + pinned, .buf_bytes = cfg->buffer_bytes };
	int ret = ep_new(&ep, NULL, NULL, &ctx->ep, err, err_size);

	return ret ? ret : sock_ctx_new(&cfg->sock, ctx->loop, ctx->ep, &client_sock_user, &ctx->socks);
}

static int make_rdma(struct client_ctx *ctx, char *err, size_t err_size)
{
	char text[ADDR_TEXT_MAX];
	int ret = open_device(ctx, err, err_size);

	if (!ret && ctx->cfg->connect == CONNECT_OOB && !dev_has_gid(&ctx->dev)) {
		snprintf(err, err_size, "--connect oob: device %s has no GID for %s; use --connect cm, as iWARP has to",
			 ctx->dev.name, addr_host_text(&ctx->dev.addr, text));
		return -EADDRNOTAVAIL;
	}
	if (!ret)
		ret = make_verbs(ctx, err, err_size);
	if (ret || ctx->cfg->connect == CONNECT_OOB)
		return ret;
	ret = cm_channel_new(&ctx->cm);
	if (ret)
		snprintf(err, err_size, "cannot open the RDMA connection manager: %s", strerror(-ret));
	return ret;
}

static int make_conns(struct client_ctx *ctx)
{
	uint32_t n = ctx->cfg->max_conns;

	ctx->conns = calloc(n, sizeof(*ctx->conns));
	if (!ctx->conns)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		ctx->conns[i].index = i;
		TAILQ_INSERT_TAIL(&ctx->free, &ctx->conns[i], entry);
	}
	ctx->n_free = n;
	return 0;
}

int client_ctx_new(const struct client_config *cfg, const struct client_ops *ops, void *arg,
		   struct ev_loop *loop, struct client_ctx **out, char *err, size_t err_size)
{
	struct tls_config tls = { .server = false, .cert_file = cfg->cert_file,
				  .key_file = cfg->key_file, .ca_file = cfg->ca_file,
				  .crl_file = cfg->crl_file, .resume = cfg->resume };
	struct client_ctx *ctx = calloc(1, sizeof(*ctx));
	int ret = -ENOMEM;

	snprintf(err, err_size, "this machine is out of memory");
	if (!ctx)
		return ret;
	ctx->cfg = cfg;
	ctx->ops = ops;
	ctx->arg = arg;
	ctx->loop = loop;
	ctx->begin = begin_stage;
	TAILQ_INIT(&ctx->free);
	TAILQ_INIT(&ctx->dead);
	TAILQ_INIT(&ctx->ready);
	ret = make_conns(ctx);
	if (!ret)
		ret = auth_mac_new(&ctx->mac);
	if (!ret)
		ret = tls_ctx_new(&tls, &ctx->tls_ctx, err, err_size);
	if (!ret)
		ret = cfg->transport == TRANSPORT_RDMA ? make_rdma(ctx, err, err_size) :
			make_sockets(ctx, err, err_size);
	if (ret) {
		client_ctx_free(ctx);
		return ret;
	}
	start_watchers(ctx);
	*out = ctx;
	return 0;
}

static void abandon_conns(struct client_ctx *ctx)
{
	for (uint32_t i = 0; ctx->conns && i < ctx->cfg->max_conns; i++) {
		struct client_conn *c = &ctx->conns[i];

		if (c->state == CLIENT_ST_FREE)
			continue;
		client_close(c);
		ev_timer_stop(ctx->loop, &c->deadline);
		cm_id_destroy(c->link.rc.id);
		sock_close(&c->link.sock);
		auth_wipe(&c->keys);
		msg_tags_free(c->tags);
	}
}

void client_ctx_free(struct client_ctx *ctx)
{
	if (!ctx)
		return;
	abandon_conns(ctx);
	pump_stop_watchers(&ctx->pump);
	if (ctx->pump.loop) {
		ev_prepare_stop(ctx->loop, &ctx->turn_end);
		ev_timer_stop(ctx->loop, &ctx->housekeeping);
	}
	qp_pool_free(ctx->qps);
	sock_ctx_free(ctx->socks);
	ep_free(ctx->ep);
	cm_channel_free(ctx->cm);
	dev_close(&ctx->dev);
	tls_ctx_free(ctx->tls_ctx);
	auth_mac_free(ctx->mac);
	free(ctx->conns);
	free(ctx);
}

struct ep *client_ep(const struct client_ctx *ctx)
{
	return ctx->ep;
}

struct pump *client_pump(struct client_ctx *ctx)
{
	return &ctx->pump;
}

const struct dev *client_dev(const struct client_ctx *ctx)
{
	return &ctx->dev;
}

void client_get_counts(const struct client_ctx *ctx, struct client_counts *out)
{
	struct qp_pool_counts q = { 0 };

	if (ctx->qps)
		qp_pool_get_counts(ctx->qps, &q);
	out->bytes_sent = ctx->bytes_sent + counter_get(&ctx->tls_bytes_out);
	out->bytes_received = ctx->bytes_received + counter_get(&ctx->tls_bytes_in);
	out->one_sided_bytes = ctx->one_sided_bytes;
	out->qps = q.qps;
}
