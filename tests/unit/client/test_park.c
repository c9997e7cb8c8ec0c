/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the client's stages one by one: parked before each, going on, ending meanwhile; and of
 * connections without a first message. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/tls/tls.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

#define PARKED_MS 60

/* Each stage that may be parked before; the state meanwhile; the one that it goes on to. */
static const struct {
	enum stage stage;
	enum client_state during, next;
} stops[] = {
	{ STAGE_TLS_HANDSHAKE, CLIENT_ST_TCP_CONNECT, CLIENT_ST_TLS_HANDSHAKE },
	{ STAGE_PSN_EXCHANGE, CLIENT_ST_TLS_HANDSHAKE, CLIENT_ST_PSN_EXCHANGE },
	{ STAGE_ADDR_RESOLVE, CLIENT_ST_PSN_EXCHANGE, CLIENT_ST_ADDR_RESOLVE },
	{ STAGE_ROUTE_RESOLVE, CLIENT_ST_ADDR_RESOLVE, CLIENT_ST_ROUTE_RESOLVE },
	{ STAGE_QP_SETUP, CLIENT_ST_ROUTE_RESOLVE, CLIENT_ST_RDMA_CONNECT },
	{ STAGE_RDMA_CONNECT, CLIENT_ST_RDMA_CONNECT, CLIENT_ST_RDMA_CONNECT },
	{ STAGE_FIRST_REPLY, CLIENT_ST_RDMA_CONNECT, CLIENT_ST_FIRST_REPLY },
};

static enum stage asked[16];
static unsigned n_asked;
static enum stage park_at;

static bool note_and_park(struct client_conn *c, enum stage stage)
{
	(void)c;
	assert_true(n_asked < N_ELEMENTS(asked));
	asked[n_asked++] = stage;
	return stage != park_at;
}

static int set_up(void **state)
{
	n_asked = 0;
	park_at = STAGE_N;
	if (client_rig_init(state))
		return -1;
	cli.may_enter = note_and_park;
	return 0;
}

static void again(void **state)
{
	client_rig_stop(state);
	assert_int_equal(set_up(state), 0);
}

/* A connection parked before the i-th of the stops. */
static struct client_conn *parked_at(size_t i)
{
	enum client_state before = stops[i].stage == STAGE_RDMA_CONNECT ? CLIENT_ST_ROUTE_RESOLVE :
				   stops[i].during;
	struct client_conn *c;

	park_at = stops[i].stage;
	c = client_at(before);
	client_trigger(c, before);
	client_until(c->parked == park_at);
	assert_int_equal(c->state, stops[i].during);
	park_at = STAGE_N;
	return c;
}

static uint32_t cm_calls(void)
{
	uint32_t n = 0;

	for (int op = 0; op < FAKE_CM_OPS; op++)
		n += fake_cm_calls((enum fake_cm_op)op);
	return n;
}

TEST(may_enter__always_true__asked_once_before_each_stage_but_the_first)
{
	client_at(CLIENT_ST_LIVE);
	assert_int_equal(n_asked, N_ELEMENTS(stops));
	for (size_t i = 0; i < N_ELEMENTS(stops); i++)
		assert_int_equal(asked[i], stops[i].stage);
	assert_int_equal(cli.live, 1);
}

static uint64_t bytes_sent(void)
{
	return cli.ctx->bytes_sent + counter_get(&cli.ctx->tls_bytes_out);
}

TEST(parked__before_each_stage__nothing_happens_and_no_deadline)
{
	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		struct client_conn *c = parked_at(i);
		uint32_t calls, posts, posts_now;
		uint64_t sent;

		calls = cm_calls();
		fake_posts(&posts);
		sent = bytes_sent();
		assert_false(ev_is_active(&c->deadline));
		assert_false(ev_is_active(&c->io.watcher));
		for (int turns = 0; turns < 3; turns++)
			client_wait();
		assert_int_equal(c->parked, stops[i].stage);
		assert_int_equal(c->state, stops[i].during);
		assert_int_equal(n_asked, i + 1);
		assert_int_equal(cm_calls(), calls);
		fake_posts(&posts_now);
		assert_int_equal(posts_now, posts);
		assert_int_equal(bytes_sent(), sent);
		assert_int_equal(cli.closed + cli.live, 0);
		again(state);
	}
}

TEST(go_on__after_each__stage_begins_with_its_whole_time)
{
	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		struct client_conn *c = parked_at(i);

		clock_move(PARKED_MS * NS_PER_MS);
		client_go_on(c);
		assert_int_equal(c->parked, STAGE_TIMED);
		assert_int_equal(c->state, stops[i].next);
		assert_true(ev_is_active(&c->deadline));
		assert_true(ev_timer_remaining(cli.loop, &c->deadline) >
			    (double)cli.cfg.stage_timeout_ns / 1e9 - PARKED_MS / 1e3);
		client_drive(c, CLIENT_ST_LIVE);
		assert_int_equal(cli.live, 1);
		/* Nobody is asked again. */
		assert_int_equal(n_asked, N_ELEMENTS(stops));
		client_close(c);
		client_finish_disconnect(c);
		client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
		again(state);
	}
}

TEST(parked__before_each_stage__time_not_counted)
{
	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		struct client_conn *c = parked_at(i);
		uint64_t stages = 0, wall;

		clock_move(PARKED_MS * NS_PER_MS);
		client_go_on(c);
		client_drive(c, CLIENT_ST_LIVE);
		wall = clock_now_ns() - c->intended_ns;
		for (int s = 0; s < STAGE_TIMED; s++)
			stages += c->stage_ns[s];
		assert_true(c->parked_ns >= PARKED_MS * NS_PER_MS);
		/* If it was counted twice, this is more than all the time there was. */
		assert_true(stages + c->parked_ns <= wall);
		assert_true(c->total_ns + c->parked_ns <= wall);
		assert_true(c->total_ns >= stages);
		again(state);
	}
}

TEST(parked__before_every_stage__adds_up)
{
	struct client_conn *c = parked_at(0);
	uint64_t before = 0;

	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		clock_move(5 * NS_PER_MS);
		park_at = i + 1 < N_ELEMENTS(stops) ? stops[i + 1].stage : STAGE_N;
		client_go_on(c);
		assert_true(c->parked_ns >= before + 5 * NS_PER_MS);
		before = c->parked_ns;
		/* The queue pair's stage ends at once. */
		if (c->parked == park_at || park_at == STAGE_N)
			continue;
		if (c->state == CLIENT_ST_PSN_EXCHANGE)
			assert_true(script_read_hello());
		client_trigger(c, c->state);
		client_until(c->parked == park_at);
	}
	client_drive(c, CLIENT_ST_LIVE);
	assert_int_equal(n_asked, N_ELEMENTS(stops));
	assert_true(c->total_ns + c->parked_ns <= clock_now_ns() - c->intended_ns);
}

TEST(go_on__not_parked__nothing)
{
	struct client_conn *c = client_at(CLIENT_ST_TCP_CONNECT);

	for (enum client_state st = CLIENT_ST_TCP_CONNECT; st <= CLIENT_ST_LIVE; st++) {
		uint32_t calls;

		client_drive(c, st);
		calls = cm_calls();
		client_go_on(c);
		assert_int_equal(c->state, st);
		assert_int_equal(c->parked_ns, 0);
		assert_int_equal(cm_calls(), calls);
	}
}

TEST(go_on__twice__once)
{
	struct client_conn *c = parked_at(5);

	client_go_on(c);
	client_go_on(c);
	assert_int_equal(fake_cm_calls(FAKE_CM_CONNECT), 1);
	client_drive(c, CLIENT_ST_LIVE);
}

static struct client_conn *waiting;

/* As a barrier does: the second to arrive lets the first go on, and goes on itself. */
static bool wait_for_the_other(struct client_conn *c, enum stage stage)
{
	if (stage != STAGE_ADDR_RESOLVE)
		return true;
	if (!waiting) {
		waiting = c;
		return false;
	}
	client_go_on(waiting);
	return true;
}

TEST(go_on__from_inside_the_others_may_enter__both_go_on)
{
	struct client_conn *a, *b;

	waiting = NULL;
	cli.may_enter = wait_for_the_other;
	a = client_at(CLIENT_ST_PSN_EXCHANGE);
	client_trigger(a, CLIENT_ST_PSN_EXCHANGE);
	client_until(a->parked == STAGE_ADDR_RESOLVE);
	b = client_at(CLIENT_ST_ADDR_RESOLVE);
	assert_int_equal(a->state, CLIENT_ST_ADDR_RESOLVE);
	assert_int_equal(b->state, CLIENT_ST_ADDR_RESOLVE);
	assert_int_equal(fake_cm_calls(FAKE_CM_RESOLVE_ADDR), 2);
}

TEST(close__while_parked__told_once_and_cannot_go_on)
{
	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		struct client_conn *c = parked_at(i);

		client_close(c);
		client_go_on(c);
		client_close(c);
		assert_true(c->state == CLIENT_ST_CLOSING || c->state == CLIENT_ST_DEAD);
		assert_null(c->io.tls);
		assert_int_equal(c->io.fd, -1);
		client_finish_disconnect(c);
		client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
		again(state);
	}
}

TEST(go_on__inside_on_closed__nothing)
{
	struct client_conn *c;

	cli.on_closed = client_go_on;
	c = parked_at(2);
	client_close(c);
	client_until(cli.closed);
	assert_int_equal(c->state, CLIENT_ST_FREE);
	client_assert_all_back();
}

TEST(fail__while_parked__told_with_its_stage)
{
	static const enum stage at[] = {
		STAGE_TCP_CONNECT,   STAGE_TLS_HANDSHAKE, STAGE_PSN_EXCHANGE, STAGE_ADDR_RESOLVE,
		STAGE_ROUTE_RESOLVE, STAGE_RDMA_CONNECT,  STAGE_RDMA_CONNECT,
	};

	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		struct client_conn *c = parked_at(i);

		client_fail(c, FAIL_TIMEOUT, 0);
		client_go_on(c);
		client_finish_disconnect(c);
		client_assert_failed(at[i], FAIL_TIMEOUT, 0);
		again(state);
	}
}

TEST(server_leaves__parked_before_the_first_message__closed)
{
	struct client_conn *c = parked_at(6);

	fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	client_assert_failed(STAGE_RDMA_CONNECT, FAIL_CLOSED, 0);
}

/* Nobody looks at the socket meanwhile. */
TEST(server_hangs_up__parked_before_the_exchange__seen_when_it_goes_on)
{
	struct client_conn *c = parked_at(1);

	script_hang_up();
	for (int i = 0; i < 3; i++)
		client_wait();
	assert_int_equal(cli.closed, 0);
	client_go_on(c);
	client_until(cli.closed);
	assert_int_equal(cli.fail.stage, STAGE_PSN_EXCHANGE);
	assert_true(cli.fail.kind == FAIL_CLOSED || cli.fail.kind == FAIL_ERRNO);
	client_assert_all_back();
}

static enum stage close_at;
static bool go_on_closed;

static bool close_it_there(struct client_conn *c, enum stage stage)
{
	if (stage == close_at)
		client_close(c);
	return stage != close_at || go_on_closed;
}

/* Whatever is answered. */
TEST(close__inside_may_enter__over)
{
	for (size_t k = 0; k < 2 * N_ELEMENTS(stops); k++) {
		size_t i = k / 2;
		enum client_state before = stops[i].stage == STAGE_RDMA_CONNECT ? CLIENT_ST_ROUTE_RESOLVE :
					   stops[i].during;
		struct client_conn *c;

		cli.may_enter = close_it_there;
		go_on_closed = k % 2;
		close_at = stops[i].stage;
		c = client_at(before);
		client_trigger(c, before);
		client_until(c->state > CLIENT_ST_LIVE || c->state == CLIENT_ST_FREE);
		client_finish_disconnect(c);
		client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
		again(state);
	}
}

TEST(ctx_free__parked_before_each_stage__everything_released)
{
	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		parked_at(i);
		again(state);	/* frees the context; the fakes check */
	}
}

TEST(demand__until_the_queue_pair_is_taken__one_each)
{
	client_rig_start();
	for (size_t i = 0; i < N_ELEMENTS(stops); i++) {
		parked_at(i);
		assert_int_equal(cli.ctx->demand, stops[i].stage <= STAGE_QP_SETUP ? 1 : 0);
		again(state);
		client_rig_start();
	}
	assert_non_null(client_connect(cli.ctx, clock_now_ns(), NULL));
	assert_non_null(client_connect(cli.ctx, clock_now_ns(), NULL));
	assert_int_equal(cli.ctx->demand, 2);
}

TEST(demand__housekeeping__so_many_made_beside_the_reserve)
{
	struct qp_pool_counts q;

	client_rig_start();
	client_connect(cli.ctx, clock_now_ns(), NULL);
	client_connect(cli.ctx, clock_now_ns(), NULL);
	ev_invoke(cli.loop, &cli.ctx->housekeeping, EV_TIMER);
	qp_pool_get_counts(cli.ctx->qps, &q);
	/* The reserve is one for each connection object, up to 64. */
	assert_int_equal(q.free, 2 + 2);
}

TEST(demand__no_queue_pair_to_be_had__back_to_zero)
{
	struct client_conn *c = parked_at(4);

	fake_device.attr.max_qp = (int)fake_qps();
	for (struct qp_pool_counts q = { .free = 1 }; q.free;) {
		uint32_t slot;

		(void)!qp_pool_get(cli.ctx->qps, UINT32_MAX - 1, &slot);
		qp_pool_get_counts(cli.ctx->qps, &q);
	}
	client_go_on(c);
	client_until(cli.closed);
	assert_int_equal(cli.fail.stage, STAGE_RDMA_CONNECT);
	assert_int_equal(cli.fail.kind, FAIL_ERRNO);
	assert_int_equal(cli.fail.code, ENOMEM);
	assert_int_equal(cli.ctx->demand, 0);
}

TEST(no_first_message__response__live_at_once_and_nothing_sent)
{
	struct client_conn *c;
	uint32_t posts;

	cli.cfg.no_first_message = true;
	c = client_at(CLIENT_ST_RDMA_CONNECT);
	assert_int_equal(cli.live, 0);
	client_trigger(c, CLIENT_ST_RDMA_CONNECT);
	assert_int_equal(c->state, CLIENT_ST_LIVE);
	assert_int_equal(cli.live, 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_ESTABLISH), 1);
	fake_posts(&posts);
	assert_int_equal(posts, 0);
	assert_int_equal(c->head.in_flight, 0);
	assert_int_equal(c->stage_ns[STAGE_FIRST_REPLY], 0);
	assert_true(c->stage_ns[STAGE_RDMA_CONNECT] > 0);
	assert_true(c->total_ns > 0);
	assert_false(ev_is_active(&c->deadline));
	/* Nobody is asked for a stage that does not come. */
	assert_int_equal(n_asked, N_ELEMENTS(stops) - 1);
}

TEST(no_first_message__messages_later__as_always)
{
	struct client_conn *c;

	cli.cfg.no_first_message = true;
	c = client_at(CLIENT_ST_LIVE);
	client_rig_send(c, 64, 7);
	assert_true(script_reply(c, 64, 7));
	assert_int_equal(cli.messages, 1);
	assert_int_equal(cli.sequence, 7);
	assert_int_equal(cli.live, 1);
	fake_complete_sends(c->link.rc.qp, 1, IBV_WC_SUCCESS);
	client_close(c);
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
}

TEST(no_first_message__reply_to_nothing__bad_message)
{
	struct client_conn *c;

	cli.cfg.no_first_message = true;
	c = client_at(CLIENT_ST_LIVE);
	assert_true(script_reply(c, 64, 0));
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
	assert_int_equal(cli.messages, 0);
}

TEST(no_first_message__closed_inside_on_live__over)
{
	struct client_conn *c;

	cli.cfg.no_first_message = true;
	cli.on_live = client_close;
	c = client_at(CLIENT_ST_RDMA_CONNECT);
	client_trigger(c, CLIENT_ST_RDMA_CONNECT);
	assert_int_equal(cli.live, 1);
	client_finish_disconnect(c);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_NONE, 0);
}

TEST_EACH(set_up, client_rig_stop)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
