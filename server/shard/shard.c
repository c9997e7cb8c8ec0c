/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard's resources, loop and thread. See shard.h.
 *
 * The thread that starts the server makes sockets and verbs resources, so that every failure is known before the
 * server says that it is ready. From shard_start on they belong to the shard's thread.
 */
#include "server/shard/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/host/place.h"
#include "common/rdma/cm.h"
#include "common/rdma/ep.h"
#include "common/hist/hist.h"
#include "common/base/log.h"
#include "common/wire/psn.h"
#include "common/rdma/region.h"
#include "common/sizing/sizes.h"
#include "common/tls/tls.h"
#include "server/shard/accept.h"
#include "server/shard/arrive.h"
#include "server/shard/boot.h"
#include "server/shard/grant.h"
#include "server/shard/gauges.h"
#include "server/shard/listen.h"
#include "server/shard/messages.h"
#include "server/shard/probe.h"
#include "server/shard/socket.h"
#include "server/tables/session.h"

#define QP_BUDGET 32		/* queue pairs made or recycled per call: about 10 ms with Soft-RoCE */
#define REGION_BUDGET_BYTES (8u << 20)	/* bytes of regions cleared per call: a few ms */
#define HOUSEKEEPING_NS (20 * NS_PER_MS)
#define PUBLISH_S 0.01
/* How long socket buffers stay unused before the kernel gets them back, and how many bytes per call: about 2 ms. */
#define TRIM_NS NS_PER_S
#define TRIM_BUDGET_BYTES (32u << 20)
#define GOODBYE_BUDGET 256	/* clients told goodbye per call: about 5 ms with Soft-RoCE */

static void schedule_housekeeping(struct shard *s);

/* At a turn's end: frees connections that ended, lets waiting sockets in, publishes gauges (once per PUBLISH_S). */
static void on_turn_end(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct shard *s = w->data;

	(void)revents;
	while (TAILQ_FIRST(&s->lists[CONN_ST_DEAD]))
		conn_set_state(TAILQ_FIRST(&s->lists[CONN_ST_DEAD]), CONN_ST_FREE);
	listen_resume(s);
	if (s->publish_due) {
		s->publish_due = false;
		schedule_housekeeping(s);
		gauges_publish(s);
	} else if (!ev_is_active(&s->publish_timer)) {
		s->publish_at_ns = clock_now_ns() + (uint64_t)(PUBLISH_S * 1e9);
		ev_timer_set(&s->publish_timer, PUBLISH_S, 0.);
		ev_timer_start(loop, &s->publish_timer);
	}
}

static void on_publish(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct shard *s = w->data;
	uint64_t now = clock_now_ns();

	(void)loop;
	(void)revents;
	s->publish_due = true;	/* on_turn_end publishes */
	stats_count_lag(&s->stats, now > s->publish_at_ns ? now - s->publish_at_ns : 0);
}

static uint64_t trim_idle_ns(const struct shard *s, uint64_t now)
{
	if (!s->sock_ep || !ep_needs_trim(s->sock_ep))
		return UINT64_MAX;
	return s->trim_due_ns > now ? s->trim_due_ns - now : 0;
}

static void trim_buffers(struct shard *s)
{
	uint64_t now = clock_now_ns();

	if (trim_idle_ns(s, now) == 0)
		s->trim_due_ns = ep_trim(s->sock_ep, TRIM_BUDGET_BYTES) ? now : now + TRIM_NS;
}

/* Sets the timer to the earliest time at which queue pairs, regions, buffers, the drain or the listener need work. If
 * none does, no timer runs, and an idle shard sleeps. */
static void schedule_housekeeping(struct shard *s)
{
	uint64_t now = clock_now_ns(), idle_ns, due_ns;

	if (s->qps)
		qp_pool_expect(s->qps, session_qps(s->sessions));
	idle_ns = s->drain_deadline_ns || s->regions_to_clear ? 0 : s->qps ? qp_pool_idle_ns(s->qps, now) : UINT64_MAX;
	idle_ns = MIN(MIN(idle_ns, listen_idle_ns(s, now)), trim_idle_ns(s, now));
	if (idle_ns == UINT64_MAX)
		return;
	due_ns = now + MAX(idle_ns, HOUSEKEEPING_NS);
	if (ev_is_active(&s->housekeeping) && s->housekeeping_due_ns <= due_ns)
		return;
	s->housekeeping_due_ns = due_ns;
	ev_timer_stop(s->loop, &s->housekeeping);
	ev_timer_set(&s->housekeeping, (double)(due_ns - now) / 1e9, 0.);
	ev_timer_start(s->loop, &s->housekeeping);
}

/* Tells some of the live clients that the server stops. They close when they have their answers. */
static void say_goodbyes(struct shard *s)
{
	struct conn *c, *next;
	uint32_t n = 0;

	for (c = TAILQ_FIRST(&s->lists[CONN_ST_LIVE]); c && n < GOODBYE_BUDGET; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->told)
			continue;
		if (!messages_say_goodbye(c))
			return;	/* no buffer is free: try again next time */
		n++;
	}
}

static void on_housekeeping(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct shard *s = w->data;

	(void)loop;
	(void)revents;
	if (s->qps)
		qp_pool_maintain(s->qps, clock_now_ns(), QP_BUDGET);
	trim_buffers(s);
	s->regions_to_clear = !region_pool_clear(s->regions, REGION_BUDGET_BYTES);
	if (s->drain_deadline_ns)
		say_goodbyes(s);
	if (s->drain_deadline_ns && (clock_now_ns() >= s->drain_deadline_ns ||
				     s->counts[CONN_ST_FREE] == s->cfg->shard_conns))
		pump_break(&s->pump);
	/* on_turn_end restarts the timer. */
}

static void on_publish_now(struct ev_loop *loop, ev_async *w, int revents)
{
	struct shard *s = w->data;
	uint64_t wanted = atomic_load(&s->server->publish_wanted);

	(void)loop;
	(void)revents;
	gauges_publish(s);
	gauges_look(s);
	atomic_store_explicit(&s->published, wanted, memory_order_release);
	s->server->wake_main(s->server->arg);
}

static void close_connections(struct shard *s, enum conn_state state)
{
	while (TAILQ_FIRST(&s->lists[state]))
		conn_close(TAILQ_FIRST(&s->lists[state]), CLOSE_DRAINING);
}

/* Stops listening, and ends bootstraps and unused grants. Live clients get their GOODBYE from on_housekeeping, so that
 * messages that have arrived are answered first; clients still being accepted get it once they are live. Those that
 * have not left by the deadline are cut off. */
static void on_drain(struct ev_loop *loop, ev_async *w, int revents)
{
	struct shard *s = w->data;

	(void)loop;
	(void)revents;
	if (s->drain_deadline_ns)
		return;
	s->drain_deadline_ns = clock_now_ns() + s->cfg->drain_timeout_ns + 1;
	listen_close(s);
	arrive_close(s);
	while (TAILQ_FIRST(&s->lists[CONN_ST_HELLO]))
		boot_refuse(TAILQ_FIRST(&s->lists[CONN_ST_HELLO]), REFUSE_DRAINING, "the server is stopping");
	for (enum conn_state st = CONN_ST_TLS_ACCEPT; st < CONN_ST_ACCEPTING; st++)
		if (st != CONN_ST_REFUSE)	/* the peer has up to 2 s to read its REFUSE */
			close_connections(s, st);
}

/* Resumes the HELLOs that wait for a region, in the order in which they came. */
static void on_registered(struct ev_loop *loop, ev_async *w, int revents)
{
	struct shard *s = w->data;
	struct conn *c, *next;

	(void)loop;
	(void)revents;
	region_pool_collect(s->regions);
	for (c = TAILQ_FIRST(&s->lists[CONN_ST_HELLO]); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->awaits_region)
			boot_go_on(c);
	}
	region_pool_forget_failures(s->regions);
}

/* Called on the registrar's thread. */
static void tell_registered(void *arg)
{
	struct shard *s = arg;

	ev_async_send(s->loop, &s->registered);
}

/* Advances the ticket keys, and sets the timer for the next time. A call that comes too early only sets the timer. */
static void step_tickets(struct shard *s)
{
	uint64_t rest_ns = tls_ctx_step_tickets(s->tls_ctx, clock_now_ns());

	ev_timer_stop(s->loop, &s->ticket_step);
	if (rest_ns == UINT64_MAX)
		return;
	ev_timer_set(&s->ticket_step, (double)(rest_ns + NS_PER_MS) / 1e9, 0.);
	ev_timer_start(s->loop, &s->ticket_step);
}

static void on_ticket_step(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	step_tickets(w->data);
}

static void on_tls_offer(struct ev_loop *loop, ev_async *w, int revents)
{
	struct shard *s = w->data;
	struct tls_ctx *ctx = atomic_exchange(&s->tls_offered, NULL);

	(void)loop;
	(void)revents;
	if (!ctx)
		return;
	tls_ctx_free(s->tls_ctx);
	s->tls_ctx = ctx;
	step_tickets(s);
}

static void start_async(struct shard *s, ev_async *w, void (*cb)(struct ev_loop *, ev_async *, int))
{
	ev_async_init(w, cb);
	w->data = s;
	ev_async_start(s->loop, w);
}

static void start_watchers(struct shard *s)
{
	/* Without rdmacm's clients the only event is that the device was removed. */
	pump_start(&s->pump, s->loop, s->ep ? s->ep : s->sock_ep, s->cm ? s->cm : s->dev.channel,
		   (enum poll_mode)s->cfg->poll, s->cfg->spin_ns, accept_on_cm_event, s);
	s->pump.on_qp_event = accept_on_qp_event;
	pump_set_rest(&s->pump, boot_serve_next);
	listen_start(s);
	arrive_start(s);
	start_async(s, &s->drain, on_drain);
	start_async(s, &s->registered, on_registered);
	start_async(s, &s->publish_now, on_publish_now);
	start_async(s, &s->relieve, grant_on_relieve);
	start_async(s, &s->tls_offer, on_tls_offer);
	ev_timer_init(&s->ticket_step, on_ticket_step, 0., 0.);
	s->ticket_step.data = s;
	step_tickets(s);
	ev_timer_init(&s->housekeeping, on_housekeeping, 0., 0.);
	s->housekeeping.data = s;
	probe_start(s);
	ev_timer_init(&s->publish_timer, on_publish, 0., 0.);
	s->publish_timer.data = s;
	ev_prepare_init(&s->turn_end, on_turn_end);
	s->turn_end.data = s;
	ev_prepare_start(s->loop, &s->turn_end);
}

static void *shard_run(void *arg)
{
	struct shard *s = arg;

	effective_begin(&s->stats.effective);
	s->exit_status = pump_run(&s->pump);
	/* Close the device now: the server may go on with other rails, and a removal waits until nobody has it open. */
	shard_release(s);
	atomic_store_explicit(&s->ended, true, memory_order_release);
	s->server->wake_main(s->server->arg);
	return NULL;
}

/* A queue pair has left quarantine: the PSNs in quarantine with it are free again. */
static void on_rested(void *arg, uint32_t slot, uint64_t rested_ns)
{
	struct shard *s = arg;
	struct psn_pair *p = &s->resting[slot];

	hist_record(s->stats.stages[SS_QP_RECYCLE], rested_ns);
	if (!p->used)
		return;
	p->used = false;
	psn_release(s->server->psns, p->client);
	psn_release(s->server->psns, p->server);
}

static int make_verbs(struct shard *s, char *err, size_t err_size)
{
	const struct server_config *cfg = s->cfg;
	struct ep_config ep = { .dev = &s->dev, .max_qps = cfg->shard_qps, .sq_depth = cfg->sq_depth,
				.inline_bytes = cfg->inline_bytes, .recv_depth = cfg->recv_depth,
				.spare_bufs = cfg->spare_bufs, .buf_bytes = (uint32_t)cfg->message_bytes,
				.post_list = (uint32_t)cfg->tuning.post_list,
				.signal_every = (uint32_t)cfg->tuning.signal_every,
				.cq_depth = (uint32_t)cfg->tuning.cq_depth, .spin = cfg->poll == POLL_BUSY,
				.relaxed_ordering = cfg->tuning.relaxed_ordering != TUNING_RELAXED_OFF,
				.solicited_only = true, .look_at_all = true };
	struct qp_pool_config qp = { .max = cfg->shard_qps,
				     .reserve = MIN(cfg->shard_clients, SIZES_SHARD_RESERVE),
				     .quarantine_ns = QP_POOL_QUARANTINE_NS, .on_rested = on_rested, .arg = s };
	struct region_config regions = { .max = cfg->shard_clients, .region_bytes = (uint32_t)cfg->region_bytes,
					 .registrar = s->server->registrar, .on_registered = tell_registered,
					 .arg = s };
	struct qp_pool_counts counts;
	const char *device = *s->rail->device ? s->rail->device : NULL;
	int ret = dev_open(&s->rail->addr, device, server_config_connects(cfg, CONNECT_CM), &s->dev, err, err_size);

	qp.init_port = dev_ethernet_port(&s->dev);
	if (!ret)
		ret = ep_new(&ep, messages_on_wc, s, &s->ep, err, err_size);
	if (ret)
		return ret;
	snprintf(err, err_size, "this machine is out of memory");
	ret = qp_pool_new(s->ep, &qp, &s->qps);
	regions.ep = s->ep;
	if (!ret && cfg->region_bytes)
		ret = region_pool_new(&regions, &s->regions);
	if (ret)
		return ret;
	while (qp_pool_maintain(s->qps, clock_now_ns(), QP_BUDGET))
		;
	qp_pool_get_counts(s->qps, &counts);
	if (counts.free < qp.reserve) {
		snprintf(err, err_size, "the device gave only %u of the %u queue pairs needed at start; are other "
			 "programs using it? See its max_qp (`ibv_devinfo -v`)", counts.free, qp.reserve);
		return -ENOSPC;
	}
	return 0;
}

static int make_tables(struct shard *s)
{
	const struct server_config *cfg = s->cfg;
	int ret = session_table_new(cfg->shard_conns, &s->sessions);

	if (!ret)
		ret = peers_new(server_config_addresses(cfg), &s->peers);
	if (!ret)
		ret = auth_mac_new(&s->mac);
	if (!ret)
		ret = stats_init(&s->stats);
	if (ret)
		return ret;
	s->conns = calloc(cfg->shard_conns, sizeof(*s->conns));
	s->resting = calloc(cfg->shard_qps, sizeof(*s->resting));
	s->listen.waiting = listen_make_waiting(s);
	s->loop = ev_loop_new(EVFLAG_AUTO);
	if (!s->conns || !s->resting || !s->listen.waiting || !s->loop)
		return -ENOMEM;
	for (int i = 0; i < CONN_ST_N; i++)
		TAILQ_INIT(&s->lists[i]);
	TAILQ_INIT(&s->ready[0]);
	TAILQ_INIT(&s->ready[1]);
	s->counts[CONN_ST_FREE] = cfg->shard_conns;
	return 0;
}

int shard_make_tls(const struct server *server, struct tls_ctx **out, char *err, size_t err_size)
{
	const struct server_config *cfg = server->cfg;
	bool auth = cfg->client_auth == CLIENT_AUTH_REQUIRE;
	struct tls_config tls = { .server = true, .cert_file = cfg->cert_path, .key_file = cfg->key_path,
				  .ca_file = auth ? cfg->ca_path : NULL, .crl_file = cfg->crl,
				  .files = server->tls_files, .require_peer_cert = auth,
				  .allow_names = cfg->allow_names, .tickets = server->tickets };

	return tls_ctx_new(&tls, out, err, err_size);
}

int shard_new(struct server *server, uint32_t index, struct shard **out, char *err, size_t err_size)
{
	struct shard *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;

	snprintf(err, err_size, "this machine is out of memory");
	if (!s)
		return ret;
	s->server = server;
	s->cfg = server->cfg;
	s->index = index;
	s->rail = &s->cfg->rails[index / s->cfg->threads];
	s->admitted = &server->admitted[index / s->cfg->threads];
	s->listen.fd = -1;
	ret = shard_make_tls(server, &s->tls_ctx, err, err_size);
	if (ret)
		goto err_free;
	snprintf(err, err_size, "this machine is out of memory");
	ret = make_tables(s);
	if (!ret && server_config_serves(s->cfg, TRANSPORT_RDMA))
		ret = make_verbs(s, err, err_size);
	if (!ret && server_config_serves_sockets(s->cfg))
		ret = socket_make(s, err, err_size);
	if (!ret)
		ret = listen_open(s, err, err_size);
	if (!ret && server_config_serves(s->cfg, TRANSPORT_TCP))
		ret = arrive_open(s, err, err_size);
	if (ret)
		goto err_free;
	*out = s;
	return 0;

err_free:
	shard_free(s);
	return ret;
}

int shard_start(struct shard *s, char *err, size_t err_size)
{
	int ret, node = dev_numa_node(&s->dev);
	cpu_set_t beside;

	start_watchers(s);
	gauges_publish(s);
	effective_set_device(&s->stats.effective, node);
	ret = tuning_start_thread(&s->cfg->tuning, "shard", s->index,
				  place_cpus_beside(PLACE_SYS, node, &beside), &s->thread, shard_run, s, err, err_size);
	s->running = ret == 0;
	return ret;
}

void shard_drain(struct shard *s)
{
	ev_async_send(s->loop, &s->drain);
}

void shard_offer_tls(struct shard *s, struct tls_ctx *ctx)
{
	/* No connection uses an offered context before the shard takes it, so one not taken yet can be freed. */
	tls_ctx_free(atomic_exchange(&s->tls_offered, ctx));
	ev_async_send(s->loop, &s->tls_offer);
}

void shard_ask_publish(struct shard *s)
{
	ev_async_send(s->loop, &s->publish_now);
}

bool shard_has_published(const struct shard *s, uint64_t wanted)
{
	struct shard *any = (struct shard *)s;

	return atomic_load_explicit(&any->ended, memory_order_acquire) ||
	       atomic_load_explicit(&any->published, memory_order_acquire) >= wanted;
}

bool shard_has_failed(const struct shard *s)
{
	return atomic_load_explicit(&((struct shard *)s)->ended, memory_order_acquire) && s->exit_status;
}

int shard_join(struct shard *s)
{
	if (s->running)
		pthread_join(s->thread, NULL);
	s->running = false;
	return s->exit_status;
}

/* Frees the PSNs of queue pairs that are still in quarantine. */
static void release_resting(struct shard *s)
{
	for (uint32_t i = 0; i < s->cfg->shard_qps; i++)
		if (s->resting[i].used) {
			psn_release(s->server->psns, s->resting[i].client);
			psn_release(s->server->psns, s->resting[i].server);
			s->resting[i].used = false;
		}
}

/* Ends the connections that are left when the drain timed out or the device failed. */
static void abandon_conns(struct shard *s)
{
	for (uint32_t i = 0; i < s->conns_used; i++)
		if (s->conns[i].state != CONN_ST_FREE)
			conn_abandon(&s->conns[i]);
}

void shard_release(struct shard *s)
{
	listen_close(s);
	arrive_close(s);
	if (s->qps || s->sock_ep) {
		gauges_publish(s);
		abandon_conns(s);
		release_resting(s);
	}
	pump_stop_watchers(&s->pump);
	cm_id_destroy(s->listener);
	qp_pool_free(s->qps);
	region_pool_free(s->regions);
	ep_free(s->ep);
	socket_release(s);
	cm_channel_free(s->cm);
	dev_close(&s->dev);
	s->listener = NULL;
	s->qps = NULL;
	s->regions = NULL;
	s->ep = NULL;
	s->cm = NULL;
	gauges_clear(s);
}

void shard_free(struct shard *s)
{
	if (!s)
		return;
	shard_release(s);
	tls_ctx_free(s->tls_ctx);
	tls_ctx_free(s->tls_offered);
	auth_mac_free(s->mac);
	session_table_free(s->sessions);
	peers_free(s->peers);
	stats_fini(&s->stats);
	if (s->loop)
		ev_loop_destroy(s->loop);
	arrive_free(s);
	free(s->listen.waiting);
	free(s->resting);
	free(s->conns);
	free(s);
}
