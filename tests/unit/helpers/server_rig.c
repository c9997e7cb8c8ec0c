/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard on the fake device, driven by the test. See server_rig.h. */
#include "tests/unit/helpers/server_rig.h"

#include "tests/unit/helpers/unit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/base/log.h"
#include "common/wire/psn.h"
#include "common/rdma/qp_pool.h"
#include "common/rdma/region.h"
#include "common/rdma/registrar.h"
#include "common/tls/ticket_keys.h"
#include "server/config/limits.h"
#include "server/control.h"
#include "server/tables/session.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/files/log_watch.h"

struct server_rig srv;

/* The offset of tcpi_bytes_acked in linux/tcp.h, which cannot be included beside netinet/tcp.h. */
#define TCPI_BYTES_ACKED_AT 120

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_pthread_join(pthread_t thread, void **value);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	(void)attr;
	(void)start;
	(void)arg;
	/* Something is done with it, such as naming it. */
	*thread = pthread_self();
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **value)
{
	(void)thread;
	(void)value;
	return 0;
}

/* The time that passes in a test is not the time that the server is to see. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct tcp_info info = { 0 };
	socklen_t n = sizeof(info);

	if (level != IPPROTO_TCP || name != TCP_INFO)
		return __real_getsockopt(fd, level, name, value, len);
	/* Fails on a socket pair, which has no state. */
	(void)!__real_getsockopt(fd, level, name, &info, &n);
	if (!srv.tcp_is_true) {
		info.tcpi_last_data_recv = srv.silent_ms;
		info.tcpi_last_data_sent = MAX(srv.silent_ms, srv.untold_ms);
	}
	memcpy(value, &info, *len < sizeof(info) ? *len : sizeof(info));
	if (*len >= TCPI_BYTES_ACKED_AT + sizeof(srv.acked_bytes))
		memcpy((uint8_t *)value + TCPI_BYTES_ACKED_AT, &srv.acked_bytes, sizeof(srv.acked_bytes));
	return 0;
}

int server_rig_group_setup(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);	/* as main does */
	log_init("server", getenv("RIG_DEBUG") ? LOG_LVL_DEBUG : LOG_LVL_ERROR);
	return certs_make(&srv.certs);
}

int server_rig_group_teardown(void **state)
{
	(void)state;
	certs_remove(&srv.certs);
	return 0;
}

int server_rig_init(void **state)
{
	struct server_config *c = &srv.cfg;

	(void)state;
	fake_reset();
	server_config_defaults(c);
	c->threads = 1;
	c->tls_port = 0;
	/* Over TCP only where a test says so, with a port that is free. */
	c->transport_mask = 1u << TRANSPORT_RDMA | 1u << TRANSPORT_TLS;
	c->max_clients = 4;
	c->credits = 4;
	c->message_bytes = 1024;
	c->region_bytes = 4096;
	c->max_handshakes = 16;
	c->verify = true;
	snprintf(c->cert_path, sizeof(c->cert_path), "%s", srv.certs.server_cert);
	snprintf(c->key_path, sizeof(c->key_path), "%s", srv.certs.server_key);
	snprintf(c->ca_path, sizeof(c->ca_path), "%s", srv.certs.ca);
	srv.shard = NULL;
	srv.main_sleeps = false;
	srv.peers_resume = srv.peers_certified = srv.registrar_stands = false;
	srv.peers_depth = 4;
	srv.offer = NULL;
	srv.peers_from = NULL;
	srv.silent_ms = srv.untold_ms = 0;
	srv.tcp_is_true = false;
	srv.acked_bytes = 0;
	return addr_parse("127.0.0.1", 0, &c->rails[0].addr);
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

static void on_wake_main(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
	control_wake(srv.control);
}

static void wake_main(void *arg)
{
	(void)arg;
	ev_async_send(srv.main_loop, &srv.wake_main);
}

static void start_main(void)
{
	srv.main_loop = ev_loop_new(EVFLAG_AUTO);
	assert_non_null(srv.main_loop);
	ev_async_init(&srv.wake_main, on_wake_main);
	ev_async_start(srv.main_loop, &srv.wake_main);
	assert_int_equal(control_new(&srv.server, srv.main_loop, &srv.control), 0);
	srv.server.wake_main = wake_main;
}

void server_rig_start(void)
{
	struct ticket_seed seed;
	char err[400] = "";
	struct ep_counts e;

	memset(&srv.server, 0, sizeof(srv.server));
	srv.server.cfg = &srv.cfg;
	srv.server.shards = srv.shards;
	srv.server.n_shards = 1;
	for (uint32_t i = 0; i < RAILS_MAX; i++)
		fake_dev(&srv.server.devices[i]);
	srv.server.started_ns = clock_now_ns();
	assert_int_equal(ticket_seed_new(srv.server.started_ns, srv.cfg.ticket_rotation_ns, &seed), 0);
	srv.server.tickets = srv.cfg.tls_resume ? &seed : NULL;
	assert_int_equal(psn_registry_new(&srv.server.psns), 0);
	assert_int_equal(registrar_new(&srv.server.registrar), 0);
	start_main();
	if (limits_derive(&srv.cfg, srv.server.devices, err, sizeof(err)) ||
	    (srv.cfg.max_per_address && peers_new(server_config_addresses(&srv.cfg), &srv.server.peers)) ||
	    shard_new(&srv.server, 0, &srv.shard, err, sizeof(err)))
		fail_msg("%s", err);
	srv.server.tickets = NULL;
	srv.shards[0] = srv.shard;
	assert_int_equal(shard_start(srv.shard, err, sizeof(err)), 0);
	ep_get_counts(srv.shard->ep, &e);
	srv.bufs_posted = e.bufs_posted;
	srv.bufs_free = e.bufs_free;
	ev_timer_init(&srv.tick, on_tick, 0.02, 0.02);
	ev_timer_start(srv.shard->loop, &srv.tick);
	server_turn();
}

int server_rig_stop(void **state)
{
	(void)state;
	if (srv.shard) {
		shard_join(srv.shard);
		control_free(srv.control);
		assert_int_equal(server_controls(), 0);
		shard_free(srv.shard);
		ev_loop_destroy(srv.main_loop);
		psn_registry_free(srv.server.psns);
		peers_free(srv.server.peers);
		registrar_free(srv.server.registrar);
		srv.shard = NULL;
	}
	fake_check();
	return 0;
}

int server_rig_init_started(void **state)
{
	int ret = server_rig_init(state);

	server_rig_start();
	return ret;
}

int server_rig_stop_all_back(void **state)
{
	server_assert_all_back();
	return server_rig_stop(state);
}

void server_rig_again(void **state)
{
	assert_int_equal(server_rig_stop(state), 0);
	assert_int_equal(server_rig_init(state), 0);
}

/* Turns of the registrar and of the main loop. */
static void other_turns(void)
{
	while (!srv.registrar_stands && registrar_run_next(srv.server.registrar))
		;
	if (!srv.main_sleeps)
		ev_run(srv.main_loop, EVRUN_NOWAIT);
}

void server_turn(void)
{
	/* As if the time for it had come. */
	srv.shard->publish_due = true;
	ev_run(srv.shard->loop, EVRUN_NOWAIT);
	other_turns();
}

void server_turns(int n)
{
	while (n--)
		server_turn();
}

void server_wait(void)
{
	srv.shard->publish_due = true;
	ev_run(srv.shard->loop, EVRUN_ONCE);
	other_turns();
}

void server_rest(uint64_t ns)
{
	while (qp_pool_maintain(srv.shard->qps, clock_now_ns() + ns, 1000))
		;
}

void server_drain(void)
{
	shard_drain(srv.shard);
	server_turns(2);
	server_until(server_only(CONN_ST_LIVE)->told);
}

bool server_is_over(void)
{
	return srv.shard->pump.stop;
}

void server_expire(struct conn *c)
{
	assert_true(ev_is_active(&c->deadline));
	ev_timer_stop(srv.shard->loop, &c->deadline);
	ev_feed_event(srv.shard->loop, &c->deadline, EV_TIMER);
	server_turn();
}

uint32_t server_n(enum conn_state state)
{
	return srv.shard->counts[state];
}

struct conn *server_only(enum conn_state state)
{
	if (server_n(state) != 1)
		fail_msg("%u connections in %s", server_n(state), conn_state_names[state]);
	return TAILQ_FIRST(&srv.shard->lists[state]);
}

uint64_t server_refused(enum refuse_code code)
{
	return counter_get(&srv.shard->stats.refused[code]) + counter_get(&srv.server.control_stats.refused[code]);
}

uint64_t server_closed(enum close_reason reason)
{
	return counter_get(&srv.shard->stats.closed[reason]) + counter_get(&srv.server.control_stats.closed[reason]);
}

static uint64_t log_kept_ns;	/* since when */

void server_log_keep(void)
{
	log_kept_ns = clock_now_ns();
	log_watch_begin("server");
	log_init("server", LOG_LVL_WARN);
}

void server_log_assert_a_line_a_second(void)
{
	char text[4096];
	int lines = log_watch_read(text, sizeof(text));

	log_watch_end();
	assert_in_range(lines, 1, 1 + (clock_now_ns() - log_kept_ns) / NS_PER_S);
}

uint32_t server_controls(void)
{
	return handover_sessions(&srv.server.handovers);
}

uint64_t server_failed(enum stage stage, enum fail_kind kind, int code)
{
	const struct fail_table *t = &srv.shard->stats.failures;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->rows[i].fail.stage == stage && t->rows[i].fail.kind == kind &&
		    t->rows[i].fail.code == code)
			return counter_get(&t->rows[i].count);
	return 0;
}

void server_assert_all_back(void)
{
	struct shard *s = srv.shard;
	struct qp_pool_counts q;
	struct ep_counts e;

	server_turns(3);
	server_rest(60 * NS_PER_S);
	qp_pool_get_counts(s->qps, &q);
	ep_get_counts(s->ep, &e);
	assert_int_equal(server_n(CONN_ST_FREE), s->cfg->shard_conns);
	assert_int_equal(q.in_use, 0);
	assert_int_equal(q.quarantined, 0);
	assert_int_equal(psn_in_use(srv.server.psns), 0);
	assert_int_equal(srv.server.admitted[0], 0);
	assert_int_equal(s->credits_granted, 0);
	assert_int_equal(s->credit_holders, 0);
	assert_int_equal(e.bufs_short, 0);
	assert_int_equal(session_count(s->sessions), 0);
	assert_int_equal(region_in_use(s->regions), 0);
	assert_int_equal(e.bufs_posted, srv.bufs_posted);
	assert_int_equal(e.bufs_free, srv.bufs_free);
	/* The listener's and the one that holds the device open. */
	assert_int_equal(fake_cm_ids(), 1);
	assert_int_equal(fake_mws(), 0);
}
