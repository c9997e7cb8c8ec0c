/* Unit tests of server/echo.c: messages echoed, buffers accounted for, bad peers dropped. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/ep.h"
#include "common/msg.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/server_rig.h"

static uint32_t n_posts(void)
{
	uint32_t n;

	fake_posts(&n);
	return n;
}

static const struct fake_post *post(uint32_t i)
{
	uint32_t n;
	const struct fake_post *p = fake_posts(&n);

	assert_true(i < n);
	return &p[i];
}

static struct ep_counts counts(void)
{
	struct ep_counts c;

	ep_get_counts(srv.shard->ep, &c);
	return c;
}

static void start_live(struct peer *p)
{
	server_rig_start();
	peer_go_live(p, 0);
	fake_posts_forget();
}

/* The peer leaves, and everything must be back. */
static void end(struct peer *p)
{
	fake_cm_event(p->id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	server_turns(4);
	server_assert_all_back();
}

static void assert_dropped(struct peer *p, enum fail_kind kind, int code)
{
	assert_int_equal(server_n(CONN_ST_LIVE), 0);
	assert_int_equal(server_failed(STAGE_TRAFFIC, kind, code), 1);
	assert_int_equal(fake_cm_calls(FAKE_CM_DISCONNECT), 1);
	end(p);
}

/* ---- echoing ---- */

static void message__any_size__same_bytes_back_as_a_reply(void **state)
{
	static const uint32_t sizes[] = { 16, 17, 64, 220, 221, 1000, 1024 };
	struct peer p;

	(void)state;
	start_live(&p);
	for (uint32_t i = 0; i < N_ELEMENTS(sizes); i++) {
		struct msg_header h;

		assert_true(peer_message(&p, sizes[i]));
		server_turn();
		assert_int_equal(n_posts(), i + 1);
		assert_int_equal(post(i)->opcode, IBV_WR_SEND);
		assert_int_equal(post(i)->length, sizes[i]);
		assert_int_equal(msg_decode(post(i)->head, sizes[i], &h), 0);
		assert_int_equal(h.type, MSG_REPLY);
		assert_int_equal(h.credits, 1);
		assert_int_equal(h.sequence, i);
		for (uint32_t j = MSG_HEADER_BYTES; j < sizes[i] && j < 32; j++)
			assert_int_equal(post(i)->head[j], (uint8_t)(j + i));
		fake_complete_sends(p.qp, 1, IBV_WC_SUCCESS);
		server_turn();
	}
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), N_ELEMENTS(sizes));
	assert_int_equal(counter_get(&srv.shard->stats.messages_out), N_ELEMENTS(sizes));
	assert_int_equal(counter_get(&srv.shard->stats.bytes_in),
			 16 + 17 + 64 + 220 + 221 + 1000 + 1024);
	assert_int_equal(counter_get(&srv.shard->stats.bytes_out),
			 counter_get(&srv.shard->stats.bytes_in));
	end(&p);
}

/* The buffer goes out; another takes its place at once. */
static void message__not_inline__srq_full_while_the_send_is_out(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	assert_true(peer_message(&p, 1000));
	server_turn();
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
	assert_int_equal(counts().bufs_free, srv.bufs_free - 1);
	fake_complete_sends(p.qp, 1, IBV_WC_SUCCESS);
	server_turn();
	assert_int_equal(counts().bufs_free, srv.bufs_free);
	end(&p);
}

static void message__before_established__counts_as_connected(void **state)
{
	struct peer p;
	uint8_t data[56];

	(void)state;
	server_rig_start();
	peer_get_grant(&p, 0);
	peer_proof(&p, data);
	peer_request(&p, data);
	p.qp = fake_qp_of(fake_cm_last(FAKE_CM_ACCEPT)->param.qp_num);
	fake_posts_forget();
	assert_true(peer_message(&p, 64));
	server_turn();
	server_only(CONN_ST_LIVE);
	assert_int_equal(n_posts(), 1);
	fake_cm_event(p.id, RDMA_CM_EVENT_ESTABLISHED, 0, 0, NULL, 0);
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.established), 1);
	end(&p);
}

static void message__credits_at_once__all_echoed_many_times(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 4; i++)
			assert_true(peer_message(&p, round % 2 ? 100 : 600));
		server_turns(2);
		fake_complete_sends(p.qp, 4, IBV_WC_SUCCESS);
		server_turn();
	}
	assert_int_equal(counter_get(&srv.shard->stats.messages_out), 800);
	for (uint32_t i = 0; i < 800; i++) {
		struct msg_header h;

		assert_int_equal(msg_decode(post(i)->head, post(i)->length, &h), 0);
		assert_int_equal(h.sequence, i);
	}
	server_only(CONN_ST_LIVE);
	end(&p);
}

static void message__of_several_clients__each_gets_its_own(void **state)
{
	struct peer p[3];

	(void)state;
	server_rig_start();
	for (int i = 0; i < 3; i++)
		peer_go_live(&p[i], 0);
	fake_posts_forget();
	for (int round = 0; round < 4; round++)
		for (uint32_t i = 0; i < 3; i++)
			assert_true(peer_message(&p[i], 100 + i));
	server_turns(2);
	assert_int_equal(n_posts(), 12);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(post(i)->length, 100 + (post(i)->qpn == p[1].qp->qp_num) +
				 2 * (post(i)->qpn == p[2].qp->qp_num));
}

/* ---- bad peers ---- */

static void bad_header(void (*spoil)(uint8_t *), uint32_t bytes)
{
	struct msg_header h = { .type = MSG_ECHO, .length = bytes, .sequence = 1 };
	struct peer p;
	uint8_t data[64] = { 0 };

	start_live(&p);
	msg_encode(&h, data);
	spoil(data);
	assert_true(fake_deliver(p.qp, data, bytes));
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 0);
	assert_dropped(&p, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

static void unknown_type(uint8_t *d)
{
	d[0] = 7;
}

static void reply_type(uint8_t *d)
{
	d[0] = MSG_REPLY;
}

static void a_flag(uint8_t *d)
{
	d[1] = 1;
}

static void other_length(uint8_t *d)
{
	d[7]++;
}

static void nothing(uint8_t *d)
{
	(void)d;
}

static void message__unknown_type__dropped(void **state)
{
	(void)state;
	bad_header(unknown_type, 64);
}

static void message__of_a_server__dropped(void **state)
{
	(void)state;
	bad_header(reply_type, 64);
}

static void message__with_flags__dropped(void **state)
{
	(void)state;
	bad_header(a_flag, 64);
}

static void message__length_not_the_received__dropped(void **state)
{
	(void)state;
	bad_header(other_length, 64);
}

static void message__shorter_than_a_header__dropped(void **state)
{
	(void)state;
	bad_header(nothing, 15);
}

static void message__empty__dropped(void **state)
{
	(void)state;
	bad_header(nothing, 0);
}

static void message__more_than_its_credits_at_once__dropped(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	for (int i = 0; i < 5; i++)
		assert_true(peer_message(&p, 64));
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 4);
	assert_dropped(&p, FAIL_PROTOCOL, PROTO_CREDITS);
}

/* Sends complete never, for the peer does not acknowledge; its messages keep coming. */
static void message__without_end_while_none_is_acknowledged__dropped(void **state)
{
	struct peer p;
	int messages = 0;

	(void)state;
	start_live(&p);
	for (; messages < 100 && server_n(CONN_ST_LIVE); messages++) {
		assert_true(peer_message(&p, 64));
		server_turn();
	}
	/* The send queue's entries, as many again waiting, and one too many. */
	assert_in_range(messages, 8, 13);
	assert_dropped(&p, FAIL_PROTOCOL, PROTO_CREDITS);
}

static void receive__error_status__dropped(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	assert_true(fake_deliver_error(p.qp, IBV_WC_LOC_LEN_ERR));
	server_turns(2);
	assert_dropped(&p, FAIL_WC_STATUS, IBV_WC_LOC_LEN_ERR);
}

static void receive__of_a_queue_pair_nobody_has__buffer_back(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	conn_close(server_only(CONN_ST_LIVE), CLOSE_DRAINING);
	assert_true(peer_message(&p, 64));
	server_turns(2);
	assert_int_equal(n_posts(), 1);	/* the beacon */
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
	end(&p);
	assert_true(peer_message(&p, 64));
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 0);
	server_assert_all_back();
}

static void receives__several_and_the_first_is_bad__rest_ignored(void **state)
{
	uint8_t bad[16] = { 9 };
	struct peer p;

	(void)state;
	start_live(&p);
	assert_true(fake_deliver(p.qp, bad, sizeof(bad)));
	assert_true(peer_message(&p, 64));
	assert_true(peer_message(&p, 64));
	server_turns(2);
	assert_int_equal(counter_get(&srv.shard->stats.messages_in), 0);
	assert_dropped(&p, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
}

/* ---- sending goes wrong ---- */

static void send__cannot_be_posted__dropped_and_buffers_back(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	fake_fail_next("ibv_post_send", ENOMEM);
	assert_true(peer_message(&p, 64));
	server_turns(2);
	assert_dropped(&p, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
}

static void send__completes_with_an_error__dropped_and_buffers_back(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	for (int i = 0; i < 4; i++)
		assert_true(peer_message(&p, 800));
	server_turn();
	fake_complete_sends(p.qp, 1, IBV_WC_RETRY_EXC_ERR);
	server_turns(2);
	assert_dropped(&p, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR);
}

static void close__answers_waiting_for_the_send_queue__dropped_with_it(void **state)
{
	struct peer p;

	(void)state;
	start_live(&p);
	for (int i = 0; i < 8; i++) {
		assert_true(peer_message(&p, 800));
		server_turn();
	}
	assert_true(server_only(CONN_ST_LIVE)->rc.waiting_n > 0);
	end(&p);
}

/* ---- buffers run out ---- */

static void buffers__none_free__receives_made_up_for_later(void **state)
{
	struct peer p;
	uint32_t taken[4096], n = 0;

	(void)state;
	start_live(&p);
	while ((taken[n] = ep_buf_get(srv.shard->ep)) != EP_NO_BUF)
		n++;
	for (int i = 0; i < 3; i++)
		assert_true(peer_message(&p, 800));
	server_turns(2);
	assert_int_equal(srv.shard->recv_deficit, 3);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted - 3);
	assert_int_equal(counter_get(&srv.shard->stats.rnr_holds), 3);
	fake_complete_sends(p.qp, 2, IBV_WC_SUCCESS);
	server_turns(2);
	assert_int_equal(srv.shard->recv_deficit, 1);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted - 1);
	fake_complete_sends(p.qp, 1, IBV_WC_SUCCESS);
	server_turns(2);
	assert_int_equal(srv.shard->recv_deficit, 0);
	assert_int_equal(counts().bufs_posted, srv.bufs_posted);
	while (n)
		ep_buf_put(srv.shard->ep, taken[--n]);
	end(&p);
}

/* ---- late completions ---- */

static void completion__of_an_earlier_life__only_its_buffer_counts(void **state)
{
	struct peer p, next;
	struct wr w = { .type = WR_SEND, .covers = 1 };
	struct ibv_wc wc = { .status = IBV_WC_RETRY_EXC_ERR };
	struct conn *c;

	(void)state;
	start_live(&p);
	c = server_only(CONN_ST_LIVE);
	w.qp_slot = c->rc.slot;
	w.generation = c->rc.generation;
	/* The one that just rested is the next to be taken, if no others are made meanwhile. */
	fake_device.attr.max_qp = (int)fake_qps();
	end(&p);
	peer_go_live(&next, 0);
	c = server_only(CONN_ST_LIVE);
	assert_int_equal(c->rc.slot, w.qp_slot);
	w.buf = ep_buf_get(srv.shard->ep);
	wc.wr_id = wr_pack(&w);
	fake_push_wc(next.qp->send_cq, &wc);
	server_turns(2);
	assert_int_equal(c->state, CONN_ST_LIVE);
	assert_int_equal(c->rc.sq_used, 0);
	assert_int_equal(counts().bufs_free, srv.bufs_free);
	end(&next);
}

#define ECHO_TEST(f) cmocka_unit_test_setup_teardown(f, server_rig_init, server_rig_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ECHO_TEST(message__any_size__same_bytes_back_as_a_reply),
		ECHO_TEST(message__not_inline__srq_full_while_the_send_is_out),
		ECHO_TEST(message__before_established__counts_as_connected),
		ECHO_TEST(message__credits_at_once__all_echoed_many_times),
		ECHO_TEST(message__of_several_clients__each_gets_its_own),
		ECHO_TEST(message__unknown_type__dropped),
		ECHO_TEST(message__of_a_server__dropped),
		ECHO_TEST(message__with_flags__dropped),
		ECHO_TEST(message__length_not_the_received__dropped),
		ECHO_TEST(message__shorter_than_a_header__dropped),
		ECHO_TEST(message__empty__dropped),
		ECHO_TEST(message__more_than_its_credits_at_once__dropped),
		ECHO_TEST(message__without_end_while_none_is_acknowledged__dropped),
		ECHO_TEST(receive__error_status__dropped),
		ECHO_TEST(receive__of_a_queue_pair_nobody_has__buffer_back),
		ECHO_TEST(receives__several_and_the_first_is_bad__rest_ignored),
		ECHO_TEST(send__cannot_be_posted__dropped_and_buffers_back),
		ECHO_TEST(send__completes_with_an_error__dropped_and_buffers_back),
		ECHO_TEST(close__answers_waiting_for_the_send_queue__dropped_with_it),
		ECHO_TEST(buffers__none_free__receives_made_up_for_later),
		ECHO_TEST(completion__of_an_earlier_life__only_its_buffer_counts),
	};

	return cmocka_run_group_tests_name("server_echo", tests, server_rig_group_setup,
					   server_rig_group_teardown);
}
