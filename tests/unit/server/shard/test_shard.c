/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of what server/shard/shard.c does besides connections: housekeeping, several rails, release, and refusing
 * for want of queue pairs. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"
#include "common/wire/psn.h"
#include "common/rdma/qp_pool.h"
#include "common/tls/tls.h"
#include "server/tables/session.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

#define SLICES 64

static uint64_t later_ns;	/* how far the pool's time was put forward */

/* As many connection objects as an interval has slices. */
static int set_up(void **state)
{
	int ret = server_rig_init(state);

	later_ns = 0;
	srv.cfg.max_handshakes = SLICES - 4;
	return ret;
}

/* A TCP connection to the server. */
static int dial(const char *host, uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct addr a = unit_addr(host, port);

	assert_int_equal(connect(fd, (struct sockaddr *)&a.ss, a.len), 0);
	return fd;
}

static struct qp_pool_counts pool(void)
{
	struct qp_pool_counts q;

	qp_pool_get_counts(srv.shard->qps, &q);
	return q;
}

static bool is_due(void)
{
	return ev_is_active(&srv.shard->housekeeping);
}

static double due_in_s(void)
{
	assert_true(is_due());
	return ev_timer_remaining(srv.shard->loop, &srv.shard->housekeeping);
}

/* As if the time had come; it is set anew at the turn's end. */
static void keep_house(void)
{
	ev_timer_stop(srv.shard->loop, &srv.shard->housekeeping);
	ev_feed_event(srv.shard->loop, &srv.shard->housekeeping, EV_TIMER);
	server_turns(2);
}

/* Until nothing is due soon. */
static void settle(void)
{
	for (int i = 0; i < 50 && is_due() && due_in_s() < 1.; i++)
		keep_house();
	assert_true(!is_due() || due_in_s() >= 1.);
}

/* As if two windows had passed in which nobody needed more than the reserve. */
static void trim(void)
{
	for (int i = 0; i < 2; i++)
		server_rest(later_ns += 100 * NS_PER_S);
	keep_house();
}

/* A client has come and left; nothing but the end of its queue pair's quarantine is due. */
static void start_and_leave(struct peer *p)
{
	server_start_live(p, 0);
	settle();
	trim();
	peer_disconnect(p);
}

TEST(housekeeping__nothing_due__sleeps)
{
	struct peer p[2];

	server_rig_start();
	server_turns(2);
	assert_int_equal(pool().free, 4);
	assert_false(is_due());
	/* A handshake needs no queue pair yet. */
	peer_shake_hands(&p[0]);
	server_turn();
	assert_false(is_due());
	peer_abort(&p[0]);
	/* One that is connected needs no other. */
	peer_go_live(&p[1], 0);
	settle();
	trim();
	assert_int_equal(pool().in_use, 1);
	assert_int_equal(pool().free, 4);
	assert_false(is_due());
}

TEST(housekeeping__client_granted__a_queue_pair_made_ahead)
{
	struct peer p[2];

	server_start_granted(&p[0], 0);
	assert_true(due_in_s() <= 0.021);
	peer_get_grant(&p[1], 0);
	settle();
	/* The reserve, and one for each promise. */
	assert_int_equal(pool().free, 4 + 2);
	assert_false(is_due());
}

TEST(housekeeping__quarantine__woken_when_it_ends)
{
	struct peer p;

	start_and_leave(&p);
	assert_int_equal(pool().quarantined, 1);
	assert_true(due_in_s() > 4.);
	assert_true(due_in_s() <= 5.);
	assert_int_equal(hist_count(srv.shard->stats.stages[SS_QP_RECYCLE]), 0);
	server_rest(6 * NS_PER_S);
	assert_int_equal(hist_count(srv.shard->stats.stages[SS_QP_RECYCLE]), 1);
	assert_true(hist_max(srv.shard->stats.stages[SS_QP_RECYCLE]) >= 5 * NS_PER_S);
	assert_true(hist_max(srv.shard->stats.stages[SS_QP_RECYCLE]) < 7 * NS_PER_S);
	server_turn();
	assert_int_equal(counter_get(&srv.shard->stats.qp_recycled), 1);
	assert_int_equal(counter_get(&srv.shard->stats.qps_free), 5);
	/* One more than the reserve: looked at again at the window's end. */
	keep_house();
	assert_true(due_in_s() > 9.);
	trim();
	assert_int_equal(pool().free, 4);
	assert_false(is_due());
}

/* Work that is due later does not hold up work that is due now. */
TEST(housekeeping__asleep_until_a_quarantine_ends__woken_for_a_new_client)
{
	struct peer p;

	start_and_leave(&p);
	assert_true(due_in_s() > 4.);
	peer_get_grant(&p, 0);
	assert_true(due_in_s() <= 0.021);
	settle();
	assert_int_equal(pool().free, 4 + 1);
	/* And the quarantine is not forgotten. */
	assert_true(due_in_s() > 4.);
}

TEST(housekeeping__asleep_until_a_quarantine_ends__woken_to_drain)
{
	struct peer p;

	start_and_leave(&p);
	assert_true(due_in_s() > 1.);
	shard_drain(srv.shard);
	server_turns(2);
	assert_true(due_in_s() <= 0.021);
}

/* Nobody else wakes an idle shard to look whether there are descriptors again. */
TEST(housekeeping__out_of_descriptors__woken_to_accept_again)
{
	uint64_t before;
	int fd;

	server_rig_start();
	server_turns(2);
	assert_false(is_due());
	fd = dial("127.0.0.1", srv.server.tls_port);
	before = unit_limit_descriptors(0);
	for (int i = 0; i < 200 && !srv.shard->listen.paused; i++)
		server_wait();
	unit_limit_descriptors(before);
	assert_true(srv.shard->listen.paused);
	server_turn();
	assert_true(due_in_s() <= 0.101);
	server_until(server_n(CONN_ST_TLS_ACCEPT) == 1);
	close(fd);
}

TEST(housekeeping__with_region__rests_and_is_not_recycled)
{
	struct peer p;

	server_start_live(&p, FRAME_FEATURE_REGION);
	peer_disconnect(&p);
	server_rest(6 * NS_PER_S);
	assert_int_equal(hist_count(srv.shard->stats.stages[SS_QP_RECYCLE]), 1);
	server_turn();
	assert_int_equal(counter_get(&srv.shard->stats.qp_recycled), 0);
	server_assert_all_back();
}

TEST(queue_pairs__link_is_ethernet__programmed_ahead)
{
	const struct fake_modify *m;
	uint32_t n;

	server_rig_start();
	m = fake_modifies(&n);
	assert_int_equal(n, 4);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(m[i].attr.qp_state, IBV_QPS_INIT);
		assert_int_equal(m[i].attr.port_num, 1);
	}
}

TEST(queue_pairs__other_link__left_to_the_cm)
{
	uint32_t n;

	fake_device.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	server_rig_start();
	fake_modifies(&n);
	assert_int_equal(n, 0);
	assert_int_equal(pool().free, 4);
}

static struct shard *second;
static char err[400];

/* The rig's shard is the first rail; the second is at another address of the loopback. */
static void start_first_of_two(void)
{
	srv.cfg.n_rails = 2;
	assert_int_equal(addr_parse("127.0.0.2", 0, &srv.cfg.rails[1].addr), 0);
	server_rig_start();
	second = NULL;
}

static int take_port(const char *host)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct addr a;

	assert_true(fd >= 0);
	assert_int_equal(addr_parse(host, srv.server.tls_port, &a), 0);
	/* Not even from who would share it. */
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a.ss, a.len), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

TEST(rails__second__its_own_address_and_the_same_port)
{
	uint16_t port;

	srv.cfg.rdma_port = 9000;
	start_first_of_two();
	port = srv.server.tls_port;
	if (shard_new(&srv.server, 1, &second, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(srv.server.tls_port, port);
	assert_true(addr_same_host(&second->rdma_addr, &srv.cfg.rails[1].addr));
	assert_int_equal(addr_port(&srv.shard->rdma_addr), 9000);
	assert_int_equal(addr_port(&second->rdma_addr), 9001);
	close(dial("127.0.0.2", port));
	shard_free(second);
}

TEST(rails__port_taken_on_the_second__said)
{
	int fd;

	start_first_of_two();
	fd = take_port("127.0.0.2");
	assert_int_equal(shard_new(&srv.server, 1, &second, err, sizeof(err)), -EADDRINUSE);
	assert_says(err, "127.0.0.2");
	assert_says(err, "the port that the system chose for the first rail is taken on this address");
	srv.cfg.tls_port = srv.server.tls_port;
	assert_int_equal(shard_new(&srv.server, 1, &second, err, sizeof(err)), -EADDRINUSE);
	assert_says(err, "another program has this port");
	close(fd);
}

TEST(rails__second_names_another_device__refused)
{
	start_first_of_two();
	strcpy(srv.cfg.rails[1].device, "mlx5_1");
	assert_int_equal(shard_new(&srv.server, 1, &second, err, sizeof(err)), -ENODEV);
	assert_says(err, "--device mlx5_1: address 127.0.0.2 belongs to fake0");
}

/* A shard that failed ends its clients, while others go on serving. */
TEST(release__clients_in_every_state__nothing_of_them_is_held)
{
	struct peer live, region, granted, hello, control;
	struct stats *st;
	uint8_t buf[FRAME_CONTROL_BYTES];

	server_start_live(&live, 0);
	st = &srv.shard->stats;
	peer_disconnect(&live);
	peer_go_live(&live, 0);
	peer_go_live(&region, FRAME_FEATURE_REGION);
	peer_get_grant(&granted, FRAME_FEATURE_REGION);
	peer_shake_hands(&hello);
	peer_shake_hands(&control);
	peer_send(&control, buf, frame_encode_control(CONTROL_STATS, buf));
	server_turns(3);
	assert_int_equal(server_controls(), 1);
	assert_int_equal(srv.server.admitted[0], 3);
	for (int i = 0; i < 2; i++) {
		shard_release(srv.shard);
		assert_int_equal(server_n(CONN_ST_FREE), srv.cfg.shard_conns);
		assert_int_equal(srv.server.admitted[0], 0);
		assert_int_equal(psn_in_use(srv.server.psns), 0);
		assert_int_equal(fake_objects(), 0);
	}
	assert_int_equal(counter_get(&st->connected), 0);
	assert_int_equal(counter_get(&st->closing), 0);
	assert_int_equal(counter_get(&st->qps), 0);
	assert_int_equal(counter_get(&st->mrs), 0);
	assert_int_equal(counter_get(&st->pinned_bytes), 0);
	assert_int_equal(counter_get(&st->established), 3);
	assert_int_equal(server_closed(CLOSE_DRAINING), 4);
	/* The control session is the main thread's. */
	assert_int_equal(server_closed(CLOSE_HANDED_OVER), 1);
	assert_int_equal(server_controls(), 1);
	/* A client that comes now, or that stayed, hears it from TCP. */
	assert_int_equal(srv.shard->listen.fd, -1);
	assert_int_equal(recv(tls_fd(hello.tls), buf, 1, 0), 0);
	peer_forget(&hello);
	peer_forget(&control);
}

TEST(release__a_client_waits__its_socket_is_closed_and_not_counted)
{
	struct peer p[SLICES];
	int n = 0;

	srv.cfg.max_handshakes = 2;
	server_rig_start();
	while (!srv.shard->listen.n_waiting && n < 4)
		peer_connect(&p[n++]);
	assert_int_equal(srv.shard->listen.n_waiting, 1);
	shard_release(srv.shard);
	assert_false(ev_is_active(&srv.shard->listen.io));
	assert_int_equal(srv.shard->listen.n_waiting, 0);
	/* The client that waited was not accepted. */
	assert_int_equal(server_closed(CLOSE_DRAINING), 2);
	assert_int_equal(counter_get(&srv.shard->stats.tcp_accepted), 2);
	while (n--)
		peer_forget(&p[n]);
}

/* A pool of five, of which four rest. */
static void four_of_five_rest(void)
{
	struct peer p[4];

	fake_device.attr.max_qp = 5;
	server_rig_start();
	assert_int_equal(srv.cfg.shard_qps, 5);
	peers_go_live(p, 4);
	for (int i = 0; i < 4; i++)
		peer_disconnect(&p[i]);
	assert_int_equal(pool().quarantined, 4);
	assert_int_equal(qp_pool_available(srv.shard->qps), 1);
}

static void assert_refused(enum refuse_code code, const char *word)
{
	uint32_t psns = psn_in_use(srv.server.psns), admitted = srv.server.admitted[0],
		 credits = srv.shard->credits_granted;

	peer_refused_hello(64, 4, 0, 1, code, word);
	/* It holds nothing afterwards. */
	assert_int_equal(psn_in_use(srv.server.psns), psns);
	assert_int_equal(srv.server.admitted[0], admitted);
	assert_int_equal(srv.shard->credits_granted, credits);
}

static void assert_busy(void)
{
	assert_refused(REFUSE_BUSY, "queue pairs");
}

TEST(hello__queue_pairs_rest_or_are_promised__busy_until_they_have_rested)
{
	struct peer p;

	four_of_five_rest();
	/* The last one is promised ... */
	peer_get_grant(&p, 0);
	assert_busy();
	/* ... and taken. */
	peer_prove(&p);
	server_only(CONN_ST_ACCEPTING);
	assert_int_equal(session_count(srv.shard->sessions), 0);
	assert_busy();
	conn_close(server_only(CONN_ST_ACCEPTING), CLOSE_DRAINING);
	peer_disconnect(&p);
	assert_int_equal(qp_pool_available(srv.shard->qps), 0);
	assert_busy();
	server_rest(6 * NS_PER_S);
	for (int i = 0; i < 4; i++)
		peer_get_grant(&p, 0);
}

TEST(hello__promise_given_up__the_next_may_have_it)
{
	struct peer p;

	four_of_five_rest();
	peer_get_grant(&p, 0);
	assert_busy();
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	server_turn();
	peer_get_grant(&p, 0);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	server_assert_all_back();
}

/* A GRANT that is not written yet is a promise, too. */
TEST(hello__promised_in_an_unwritten_grant__busy)
{
	struct peer p;
	struct conn *c;

	four_of_five_rest();
	c = peer_unwritten_grant(&p, 0);
	assert_busy();
	conn_close(c, CLOSE_DRAINING);
	peer_abort(&p);
	server_assert_all_back();
}

/* Clients that are leaving still count; a client that comes meanwhile is told to try again. */
TEST(hello__all_clients_connected__full_or_busy_while_one_leaves)
{
	struct peer p[4], next;
	struct conn *c;

	server_start_full(p);
	assert_refused(REFUSE_FULL, "--max-clients");
	c = p[2].id->context;
	conn_close(c, CLOSE_DRAINING);
	server_turns(3);
	assert_int_equal(c->state, CONN_ST_CLOSING);
	assert_refused(REFUSE_BUSY, "leaving");
	peer_disconnect(&p[2]);
	peer_get_grant(&next, 0);
	assert_refused(REFUSE_FULL, "--max-clients");
}

/* The promise could not be kept after all: the peer is told to come again, and it is nobody's fault. */
TEST(request__pool_exhausted__rejected_as_busy)
{
	uint32_t taken[8], n = 0;
	struct peer p;

	fake_device.attr.max_qp = 8;
	server_start_granted(&p, 0);
	while (qp_pool_get(srv.shard->qps, QP_POOL_NONE - 1, &taken[n]) == 0)
		n++;
	assert_int_equal(n, 8);
	peer_prove(&p);
	assert_int_equal(fake_cm_calls(FAKE_CM_ACCEPT), 0);
	assert_int_equal(fake_cm_calls(FAKE_CM_REJECT), 1);
	assert_int_equal(server_refused(REFUSE_BUSY), 1);
	assert_int_equal(server_refused(REFUSE_NO_RESOURCES), 0);
	assert_int_equal(server_failed(STAGE_RDMA_CONNECT, FAIL_ERRNO, EAGAIN), 1);
	assert_int_equal(peer_reject_code(), REFUSE_BUSY);
	while (n)
		qp_pool_put(srv.shard->qps, taken[--n], clock_now_ns(), true);
	server_assert_all_back();
}

TEST_EACH(set_up, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
