/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/rc.c: sending, the send queue's account, waiting, draining. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include "common/wire/be.h"
#include "common/base/log.h"
#include "common/rdma/rc.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

static struct rc rc;
static int send_wc_result;	/* of the last rc_on_send_wc */

static void on_wc(struct verbs_rig *r, const struct ibv_wc *wc)
{
	struct wr w = wr_unpack(wc->wr_id);

	(void)r;
	assert_int_not_equal(w.type, WR_RECV);
	assert_int_equal(w.qp_slot, rc.slot);
	assert_int_equal(w.generation, wr_unpack(rc.id_base).generation);
	send_wc_result = rc_on_send_wc(&rc, wc, &w);
}

static void open_unconnected(void)
{
	verbs_rig_open();
	rig.on_wc = on_wc;
	send_wc_result = 0;
	rc_init(&rc, rig.ep, rig.qps, NULL);
	assert_int_equal(rc_take_qp(&rc, 3), 0);
}

/* A connection with `credits`, its QP in RTS. */
static void open_rc(uint32_t credits)
{
	rig.cfg.sq_depth = rc_sq_depth(credits);
	rig.cfg.spare_bufs = 256;
	open_unconnected();
	rc.may_write = true;
	verbs_rig_connect(rc.qp);
}

static uint32_t bufs_free(void)
{
	return verbs_rig_counts().bufs_free;
}

/* Completions come and are handled. */
static void complete(uint32_t n, enum ibv_wc_status status)
{
	fake_complete_sends(rc.qp, n, status);
	verbs_rig_wake();
}

static int send_number(uint32_t number, uint32_t length)
{
	uint32_t buf = ep_buf_get(rig.ep);

	assert_int_not_equal(buf, EP_NO_BUF);
	be_put32(ep_buf(rig.ep, buf), number);
	return rc_send(&rc, buf, length);
}

/* The work requests from `first` on. */
static void send_numbers(uint32_t first, uint32_t n, uint32_t length)
{
	for (uint32_t i = first; i < first + n; i++)
		assert_int_equal(send_number(i, length), 0);
}

static const struct fake_post *last_post(void)
{
	uint32_t n;
	const struct fake_post *p = fake_posts(&n);

	assert_true(n > 0);
	return &p[n - 1];
}

static uint32_t n_posts(void)
{
	uint32_t n;

	fake_posts(&n);
	return n;
}

/* The connection has a queue pair. */
static void release_drained(void)
{
	if (!rc.qp)
		return;
	rc_drain(&rc);
	verbs_rig_wake();
	assert_true(rc_is_drained(&rc));
	rc_release(&rc, 0, true);
}

static void assert_all_released(void)
{
	release_drained();
	assert_int_equal(bufs_free(), 256);
}

static int set_up(void **state)
{
	memset(&rc, 0, sizeof(rc));
	return verbs_rig_init(state);
}

/* Every test leaves a connection that can be drained and released. */
static int tear_down(void **state)
{
	release_drained();
	return verbs_rig_close(state);
}

/* Between two rounds of a test. */
static void start_again(void **state)
{
	tear_down(state);
	set_up(state);
}

TEST(take_qp__pool_exhausted__none_and_drained)
{
	struct rc others[8];

	verbs_rig_open();
	rc_init(&rc, rig.ep, rig.qps, NULL);
	assert_true(rc_is_drained(&rc));
	for (uint32_t i = 0; i < 8; i++) {
		rc_init(&others[i], rig.ep, rig.qps, NULL);
		assert_int_equal(rc_take_qp(&others[i], i), 0);
		assert_int_equal(rc_qpn(&others[i]), others[i].qp->qp_num);
	}
	assert_int_equal(rc_take_qp(&rc, 9), -EAGAIN);
	assert_int_equal(rc.slot, QP_POOL_NONE);
	assert_int_equal(rc_qpn(&rc), 0);
	assert_true(rc_is_drained(&rc));
	rc_drain(&rc);
	rc_release(&rc, 0, true);
	assert_int_equal(verbs_rig_pool_counts().in_use, 8);
}

TEST(release__drained__qp_rests_and_id_is_gone)
{
	struct cm_channel *cm;

	open_rc(4);
	assert_int_equal(cm_channel_new(&cm), 0);
	assert_int_equal(cm_id_new(cm, NULL, &rc.id), 0);
	release_drained();
	assert_null(rc.id);
	assert_null(rc.qp);
	assert_int_equal(rc.slot, QP_POOL_NONE);
	assert_int_equal(verbs_rig_pool_counts().quarantined, 1);
	assert_int_equal(fake_cm_ids(), 0);
	cm_channel_free(cm);
}

TEST(send__solicited__unless_nobody_waits_for_an_answer)
{
	open_rc(16);
	assert_int_equal(send_number(1, 64), 0);
	assert_true(last_post()->flags & IBV_SEND_SOLICITED);
	assert_int_equal(rc_send_unsolicited(&rc, ep_buf_get(rig.ep), 64), 0);
	assert_false(last_post()->flags & IBV_SEND_SOLICITED);
	assert_int_equal(rc_send_imm(&rc, ep_buf_get(rig.ep), 64, 0), 0);
	assert_true(last_post()->flags & IBV_SEND_SOLICITED);
}

TEST(send__fits_inline__buffer_free_at_once)
{
	struct wr w;

	open_rc(16);
	assert_int_equal(send_number(0x01020304, 64), 0);
	assert_int_equal(bufs_free(), 256);
	assert_true(last_post()->flags & IBV_SEND_INLINE);
	assert_int_equal(last_post()->length, 64);
	assert_int_equal(last_post()->opcode, IBV_WR_SEND);
	assert_int_equal(be_get32(last_post()->head), 0x01020304);
	w = wr_unpack(last_post()->wr_id);
	assert_int_equal(w.type, WR_SEND);
	assert_int_equal(w.buf, EP_NO_BUF);
}

TEST(send_awaited__inline__has_a_completion_after_which_nothing_is_out)
{
	uint32_t buf;

	open_rc(8);
	send_numbers(1, 2, 64);
	assert_false(last_post()->flags & IBV_SEND_SIGNALED);
	buf = ep_buf_get(rig.ep);
	assert_int_equal(rc_send_awaited(&rc, buf, 64), 0);
	assert_true(last_post()->flags & IBV_SEND_SIGNALED);
	assert_false(rc_is_idle(&rc));
	complete(3, IBV_WC_SUCCESS);
	assert_true(rc_is_idle(&rc));
}

TEST(send__too_long_for_inline__buffer_held_until_completed)
{
	open_rc(16);
	assert_int_equal(send_number(1, 65), 0);
	assert_int_equal(bufs_free(), 255);
	assert_false(last_post()->flags & IBV_SEND_INLINE);
	assert_true(last_post()->flags & IBV_SEND_SIGNALED);
	assert_int_equal(last_post()->lkey, ep_lkey(rig.ep));
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(bufs_free(), 256);
	assert_int_equal(rc.sq_used, 0);
}

TEST(send__inline_then_held__completion_retires_both)
{
	open_rc(16);
	send_numbers(1, 2, 16);
	assert_int_equal(send_number(3, 200), 0);
	assert_int_equal(rc.sq_used, 3);
	assert_int_equal(wr_unpack(last_post()->wr_id).covers, 3);
	complete(3, IBV_WC_SUCCESS);
	assert_int_equal(rc.sq_used, 0);
	assert_int_equal(rig.n_wcs, 1);
}

TEST(send__post_fails__errno_and_buffer_free)
{
	static const uint32_t lengths[] = { 16, 200 };

	open_rc(16);
	log_init("test", LOG_LVL_ERROR);
	for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
		fake_fail_next("ibv_post_send", ENOMEM);
		assert_int_equal(send_number(1, lengths[i]), -ENOMEM);
		assert_int_equal(bufs_free(), 256);
		assert_int_equal(rc.sq_used, 0);
	}
	log_init("test", LOG_LVL_INFO);
}

/* A peer with `credits` has that many messages under way; each is answered by one send. However
 * late the send completions are polled, the queue never overflows (the fake would note it), all
 * answers go out, and in order. */
static void run_credits(uint32_t credits, uint32_t length, uint64_t *seed)
{
	uint32_t sent = 0, seen = 0, depth = rc_sq_depth(credits), n;
	const struct fake_post *p;

	open_rc(credits);
	fake_posts_forget();
	while (sent < 40 * credits) {
		uint32_t burst = 1 + (uint32_t)(unit_random(seed) % credits);

		/* The peer cannot have answered more messages than were put on the wire. */
		while (burst-- && sent - n_posts() < credits && bufs_free() > 0)
			assert_int_equal(send_number(sent++, length), 0);
		assert_true(rc.sq_used <= depth - 1);
		assert_true(fake_qp_outstanding(rc.qp) <= depth - 1);
		fake_complete_sends(rc.qp, (uint32_t)(unit_random(seed) % (credits + 1)),
				    IBV_WC_SUCCESS);
		if (unit_random(seed) % 3 == 0) {
			verbs_rig_wake();
		}
	}
	for (int i = 0; i < 200 && n_posts() < sent; i++)
		complete(credits, IBV_WC_SUCCESS);
	p = fake_posts(&n);
	assert_int_equal(n, sent);
	for (uint32_t i = 0; i < n; i++)
		if (be_get32(p[i].head) != seen++)
			fail_msg("message %u came in place of %u", be_get32(p[i].head), seen - 1);
	complete(depth, IBV_WC_SUCCESS);
	assert_int_equal(bufs_free(), 256);
	assert_int_equal(rc.waiting_n, 0);
	assert_int_equal(rc.sq_used, rc.unsignalled);
	assert_all_released();
}

TEST(send__credits_1_to_64__never_beyond_the_queue_and_in_order)
{
	uint64_t seed = 8;

	for (uint32_t credits = 1; credits <= 64; credits++) {
		run_credits(credits, credits % 2 ? 16 : 64, &seed);
		start_again(state);
		run_credits(credits, 128, &seed);
		start_again(state);
	}
}

TEST(send__inline_all_the_time__signalled_at_a_third_of_the_queue)
{
	uint32_t signalled = 0, n;
	const struct fake_post *p;

	open_rc(16);
	send_numbers(0, 24, 16);
	p = fake_posts(&n);
	assert_int_equal(n, 24);
	for (uint32_t i = 0; i < n; i++)
		signalled += (p[i].flags & IBV_SEND_SIGNALED) != 0;
	assert_int_equal(signalled, 3);
}

TEST(send__queue_full__waits_in_order_with_its_length)
{
	open_rc(2);
	send_numbers(0, 3, 16);
	assert_int_equal(n_posts(), 3);
	for (uint32_t i = 3; i < 6; i++)
		assert_int_equal(send_number(i, 20 + i), 0);
	assert_int_equal(n_posts(), 3);
	assert_int_equal(rc.waiting_n, 3);
	assert_int_equal(bufs_free(), 253);
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(n_posts(), 4);
	complete(3, IBV_WC_SUCCESS);
	for (uint32_t i = 0, n; i < 6; i++) {
		assert_int_equal(be_get32(fake_posts(&n)[i].head), i);
		assert_int_equal(n, 6);
		assert_int_equal(fake_posts(&n)[i].length, i < 3 ? 16 : 20 + i);
	}
	assert_int_equal(rc.waiting_n, 0);
	assert_int_equal(bufs_free(), 256);
}

TEST(on_send_wc__posting_what_waits_fails__error_and_buffer_free)
{
	open_rc(2);
	send_numbers(0, 4, 100);
	assert_int_equal(bufs_free(), 252);
	fake_fail_next("ibv_post_send", ENOMEM);
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(send_wc_result, -ENOMEM);
	assert_int_equal(bufs_free(), 254);
	assert_all_released();
}

TEST(on_send_wc__error_status__eio_and_buffers_back)
{
	open_rc(16);
	send_numbers(1, 2, 100);
	complete(1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(send_wc_result, -EIO);
	assert_int_equal(bufs_free(), 256);
}

TEST(probe__first__zero_bytes_signalled_write)
{
	open_rc(4);
	assert_int_equal(rc_probe(&rc), 0);
	assert_int_equal(last_post()->opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(last_post()->length, 0);
	assert_true(last_post()->flags & IBV_SEND_SIGNALED);
	assert_int_equal(wr_unpack(last_post()->wr_id).type, WR_PROBE);
	assert_int_equal(rc.sq_used, 0);
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(rc_probe(&rc), 0);
}

TEST(special__one_under_way__others_busy_until_it_completes)
{
	struct ibv_mw_bind_info info = { 0 };

	open_rc(4);
	assert_int_equal(rc_probe(&rc), 0);
	assert_int_equal(rc_probe(&rc), -EBUSY);
	assert_int_equal(rc_bind_window(&rc, NULL, &info, 1), -EBUSY);
	assert_int_equal(n_posts(), 1);
	complete(1, IBV_WC_SUCCESS);
	assert_false(rc.special_busy);
}

TEST(special__post_fails__not_busy)
{
	open_rc(4);
	fake_fail_next("ibv_post_send", EINVAL);
	assert_int_equal(rc_probe(&rc), -EINVAL);
	assert_int_equal(rc_probe(&rc), 0);
}

static struct rc_rma request(enum ibv_wr_opcode opcode, uint32_t bytes, bool signal)
{
	return (struct rc_rma){ .opcode = opcode, .local = ep_buf(rig.ep, 0), .lkey = 0x55, .bytes = bytes,
				.remote_addr = UINT64_C(0x123456789a), .rkey = 0x77, .signal = signal };
}

static int ask(enum ibv_wr_opcode opcode, uint32_t bytes, bool signal)
{
	struct rc_rma op = request(opcode, bytes, signal);

	return rc_rma(&rc, &op, 1);
}

TEST(rma__each_kind__posted_as_asked)
{
	static const enum ibv_wr_opcode kinds[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						    IBV_WR_ATOMIC_CMP_AND_SWP };

	open_rc(16);
	for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
		assert_int_equal(ask(kinds[i], i < 2 ? 100 : 8, true), 0);
		assert_int_equal(last_post()->opcode, kinds[i]);
		assert_int_equal(last_post()->length, i < 2 ? 100 : 8);
		assert_int_equal(last_post()->lkey, 0x55);
		assert_true(last_post()->addr == (uintptr_t)ep_buf(rig.ep, 0));
		assert_true(last_post()->flags & IBV_SEND_SIGNALED);
		if (i < 2) {
			assert_true(last_post()->remote_addr == UINT64_C(0x123456789a));
			assert_int_equal(last_post()->rkey, 0x77);
		}
		assert_int_equal(wr_unpack(last_post()->wr_id).buf, 1);
	}
	complete(4, IBV_WC_SUCCESS);
	assert_int_equal(rc.sq_used, 0);
}

TEST(rma__unsignalled__told_with_the_next_signalled_one)
{
	struct rc_rma ops[4];
	struct wr w;

	open_rc(16);
	for (uint32_t i = 0; i < 4; i++)
		ops[i] = request(IBV_WR_RDMA_WRITE, 100, i == 3);
	assert_int_equal(send_number(1, 16), 0);
	assert_int_equal(rc_rma(&rc, ops, 4), 0);
	w = wr_unpack(last_post()->wr_id);
	assert_int_equal(w.type, WR_RMA);
	assert_int_equal(w.buf, 4);
	assert_int_equal(w.covers, 5);
	assert_int_equal(rc.sq_used, 5);
	complete(5, IBV_WC_SUCCESS);
	assert_int_equal(rig.n_wcs, 1);
	assert_int_equal(rc.sq_used, 0);
}

/* However many are not signalled, the queue cannot fill up unnoticed. */
TEST(rma__never_asked_for_a_completion__one_at_a_third)
{
	uint32_t told = 0;

	open_rc(16);
	for (int i = 0; i < 24; i++)
		assert_int_equal(ask(IBV_WR_RDMA_WRITE, 100, false), 0);
	assert_int_equal(rc_room(&rc), 0);
	assert_int_equal(ask(IBV_WR_RDMA_WRITE, 100, false), -EAGAIN);
	assert_int_equal(n_posts(), 24);
	complete(24, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < rig.n_wcs; i++)
		told += wr_unpack(rig.wcs[i].wr_id).buf;
	assert_int_equal(rig.n_wcs, 3);
	assert_int_equal(told, 24);
	assert_int_equal(rc_room(&rc), 24);
}

TEST(rma__small_write__inline)
{
	open_rc(16);
	assert_int_equal(ask(IBV_WR_RDMA_WRITE, 64, true), 0);
	assert_true(last_post()->flags & IBV_SEND_INLINE);
	assert_int_equal(ask(IBV_WR_RDMA_READ, 64, true), 0);
	assert_false(last_post()->flags & IBV_SEND_INLINE);
}

TEST(rma__post_fails__errno)
{
	open_rc(16);
	fake_fail_next("ibv_post_send", EINVAL);
	assert_int_equal(ask(IBV_WR_RDMA_WRITE, 100, true), -EINVAL);
	assert_int_equal(rc.sq_used, 0);
}

static int write_send_number(uint32_t number, uint32_t bytes, uint32_t length)
{
	struct ep_write w = { .local = ep_buf(rig.ep, 0), .remote_addr = 0x1000 + number, .bytes = bytes,
			      .lkey = 0x55, .rkey = 0x77 };
	uint32_t buf = ep_buf_get(rig.ep);

	assert_int_not_equal(buf, EP_NO_BUF);
	be_put32(ep_buf(rig.ep, buf), number);
	return rc_write_send(&rc, &w, buf, length);
}

TEST(write_send__room__write_then_message_with_one_doorbell)
{
	const struct fake_post *p;
	uint32_t n;

	open_rc(16);	/* its list is of one: the two go together all the same */
	assert_int_equal(write_send_number(9, 300, 100), 0);
	p = fake_posts(&n);
	assert_int_equal(n, 2);
	assert_int_equal(fake_doorbells(), 1);
	assert_int_equal(p[0].opcode, IBV_WR_RDMA_WRITE);
	assert_true(p[0].addr == (uintptr_t)ep_buf(rig.ep, 0));
	assert_int_equal(p[0].length, 300);
	assert_int_equal(p[0].lkey, 0x55);
	assert_true(p[0].remote_addr == 0x1009);
	assert_int_equal(p[0].rkey, 0x77);
	assert_int_equal(p[0].flags, 0);
	assert_int_equal(p[1].opcode, IBV_WR_SEND);
	assert_int_equal(p[1].length, 100);
	assert_int_equal(be_get32(p[1].head), 9);
	assert_int_equal(wr_unpack(p[1].wr_id).covers, 2);
	assert_int_equal(rc.sq_used, 2);
	complete(2, IBV_WC_SUCCESS);
	assert_int_equal(rig.n_wcs, 1);
	assert_int_equal(rc.sq_used, 0);
	assert_int_equal(bufs_free(), 256);
}

TEST(write_send__small_write__inline)
{
	uint32_t n;

	open_rc(16);
	assert_int_equal(write_send_number(1, 64, 16), 0);
	assert_int_equal(fake_posts(&n)[0].flags, IBV_SEND_INLINE);
	assert_int_equal(write_send_number(1, 65, 16), 0);
	assert_int_equal(fake_posts(&n)[2].flags, 0);
}

/* One entry is not enough: neither the WRITE nor a message behind it overtakes. */
TEST(write_send__one_entry_free__waits_with_all_behind_it)
{
	static const enum ibv_wr_opcode order[] = { IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						    IBV_WR_SEND };
	uint32_t n;

	open_rc(2);	/* three entries */
	send_numbers(0, 2, 100);
	assert_int_equal(rc_room(&rc), 1);
	assert_int_equal(write_send_number(2, 300, 100), 0);
	assert_int_equal(send_number(3, 100), 0);
	assert_int_equal(n_posts(), 2);
	assert_int_equal(rc.waiting_n, 2);
	assert_int_equal(rc.waiting_writes, 1);
	assert_int_equal(rc_room(&rc), 0);
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(n_posts(), 4);
	complete(3, IBV_WC_SUCCESS);
	assert_int_equal(n_posts(), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(fake_posts(&n)[i].opcode, order[i]);
	assert_int_equal(rc.waiting_n, 0);
	assert_int_equal(rc.waiting_writes, 0);
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(bufs_free(), 256);
	assert_int_equal(rc.sq_used, 0);
}

/* As run_credits, each answer behind a WRITE, or every other one. */
static void run_writes(uint32_t credits, uint32_t length, uint32_t every, uint64_t *seed)
{
	uint32_t sent = 0, answered = 0, seen = 0, depth = rc_sq_depth(2 * credits), n;
	const struct fake_post *p;

	open_rc(2 * credits);
	fake_posts_forget();
	while (sent < 30 * credits) {
		uint32_t burst = 1 + (uint32_t)(unit_random(seed) % credits);

		for (; burst && sent - answered < credits && bufs_free() > 0; burst--, sent++)
			assert_int_equal(sent % every ? send_number(sent, length) :
							write_send_number(sent, 300, length), 0);
		assert_true(fake_qp_outstanding(rc.qp) <= depth - 1);
		fake_complete_sends(rc.qp, (uint32_t)(unit_random(seed) % (2 * credits + 1)), IBV_WC_SUCCESS);
		if (unit_random(seed) % 3 == 0) {
			verbs_rig_wake();
		}
		for (p = fake_posts(&n), answered = 0; n; n--)
			answered += p[n - 1].opcode == IBV_WR_SEND;
	}
	for (int i = 0; i < 200 && rc.waiting_n; i++)
		complete(2 * credits, IBV_WC_SUCCESS);
	p = fake_posts(&n);
	for (uint32_t i = 0; i < n; i++) {
		if (seen % every == 0) {
			assert_int_equal(p[i].opcode, IBV_WR_RDMA_WRITE);
			assert_true(p[i++].remote_addr == 0x1000 + seen);
		}
		assert_int_equal(be_get32(p[i].head), seen++);
	}
	assert_int_equal(seen, sent);
	complete(depth, IBV_WC_SUCCESS);
	assert_int_equal(rc.waiting_n, 0);
	assert_int_equal(rc.waiting_writes, 0);
	assert_int_equal(rc.sq_used, rc.unsignalled);
	assert_all_released();
}

TEST(write_send__credits_1_to_64__never_beyond_the_queue_and_in_order)
{
	uint64_t seed = 5;

	for (uint32_t credits = 1; credits <= 64; credits++)
		for (uint32_t kind = 0; kind < 4; kind++) {
			rig.cfg.post_list = credits % 3 ? 16 : 1;
			run_writes(credits, kind % 2 ? 16 : 128, 1 + kind / 2, &seed);
			start_again(state);
		}
}

TEST(write_send__write_fails__error_and_buffers_back)
{
	open_rc(16);
	assert_int_equal(write_send_number(1, 300, 100), 0);
	assert_int_equal(write_send_number(2, 300, 16), 0);
	fake_complete_sends(rc.qp, 1, IBV_WC_REM_ACCESS_ERR);
	verbs_rig_process();
	assert_int_equal(send_wc_result, -EIO);
	assert_all_released();
}

TEST(write_send__post_fails__every_buffer_back)
{
	log_init("test", LOG_LVL_ERROR);
	for (int k = 1; k <= 2; k++) {
		open_rc(16);
		/* The first call arms the completion queue. */
		fake_fail_at((unsigned)k + 1, ENOMEM);
		assert_int_equal(write_send_number(1, 300, 200), -ENOMEM);
		assert_int_equal(bufs_free(), 256);
		assert_int_equal(rc.sq_used, k - 1);
		release_drained();
		start_again(state);
	}
	log_init("test", LOG_LVL_INFO);
	verbs_rig_open();
}

TEST(write_send__drained_while_it_waits__buffer_back)
{
	open_rc(1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(write_send_number(i, 300, 100), 0);
	assert_int_equal(rc.waiting_writes, 2);
	rc_drain(&rc);
	assert_int_equal(rc.waiting_writes, 0);
	assert_all_released();
}

static uint32_t broken;

static void on_broken(struct rc *r)
{
	assert_ptr_equal(r, &rc);
	broken++;
}

static void open_chained(uint32_t credits, uint32_t post_list, uint32_t signal_every)
{
	rig.cfg.post_list = post_list;
	rig.cfg.signal_every = signal_every;
	open_rc(credits);
	rc.on_broken = on_broken;
	broken = 0;
}

TEST(chain__held__posted_with_one_doorbell_in_order)
{
	uint32_t n;

	open_chained(32, 16, 0);
	ep_hold(rig.ep);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(send_number(i, i % 2 ? 16 : 200), 0);
	assert_int_equal(n_posts(), 0);
	ep_unhold(rig.ep);
	assert_int_equal(n_posts(), 10);
	assert_int_equal(fake_doorbells(), 1);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(be_get32(fake_posts(&n)[i].head), i);
	/* Inline ones are free again, the others are not. */
	assert_int_equal(bufs_free(), 251);
	complete(10, IBV_WC_SUCCESS);
	assert_int_equal(bufs_free(), 256);
}

TEST(chain__longer_than_the_list__a_doorbell_each_time_it_is_full)
{
	open_chained(64, 16, 0);
	ep_hold(rig.ep);
	send_numbers(0, 40, 16);
	assert_int_equal(n_posts(), 32);
	ep_unhold(rig.ep);
	assert_int_equal(n_posts(), 40);
	assert_int_equal(fake_doorbells(), 3);
}

TEST(chain__not_held__posted_at_once)
{
	open_chained(16, 16, 0);
	assert_int_equal(send_number(1, 16), 0);
	assert_int_equal(n_posts(), 1);
}

TEST(chain__list_of_one__posted_at_once_though_held)
{
	open_chained(16, 1, 0);
	ep_hold(rig.ep);
	assert_int_equal(send_number(1, 16), 0);
	assert_int_equal(n_posts(), 1);
	ep_unhold(rig.ep);
}

TEST(chain__posting_fails__told_and_every_buffer_back)
{
	open_chained(16, 16, 0);
	log_init("test", LOG_LVL_ERROR);
	ep_hold(rig.ep);
	send_numbers(0, 5, 200);
	fake_fail_next("ibv_post_send", ENOMEM);
	ep_unhold(rig.ep);
	log_init("test", LOG_LVL_INFO);
	assert_int_equal(broken, 1);
	assert_int_equal(bufs_free(), 256);
	assert_int_equal(rc.sq_used, 0);
}

TEST(chain__drained_while_held__nothing_posted_but_the_beacon)
{
	open_chained(16, 16, 0);
	ep_hold(rig.ep);
	assert_int_equal(send_number(1, 16), 0);
	rc_drain(&rc);
	ep_unhold(rig.ep);
	assert_int_equal(n_posts(), 1);
	assert_int_equal(wr_unpack(last_post()->wr_id).type, WR_BEACON);
	assert_int_equal(bufs_free(), 256);
}

TEST(signal_every__messages_with_buffers__freed_with_the_signalled_one)
{
	open_chained(64, 1, 8);
	send_numbers(0, 15, 200);
	assert_int_equal(bufs_free(), 241);
	complete(15, IBV_WC_SUCCESS);
	assert_int_equal(rig.n_wcs, 1);
	assert_int_equal(bufs_free(), 249);
	/* Buffers that nobody was told about come back at the end. */
	assert_all_released();
}

TEST(send_imm__number__in_the_request)
{
	uint32_t buf;

	open_rc(16);
	buf = ep_buf_get(rig.ep);
	assert_int_equal(rc_send_imm(&rc, buf, 1, 0x01020304), 0);
	assert_int_equal(last_post()->opcode, IBV_WR_SEND_WITH_IMM);
	assert_int_equal(last_post()->imm, 0x01020304);
	assert_int_equal(last_post()->length, 1);
}

TEST(special__message_queue_full__still_has_its_entry)
{
	open_rc(4);
	send_numbers(0, 20, 100);
	assert_int_equal(rc_probe(&rc), 0);
	assert_int_equal(fake_qp_outstanding(rc.qp), rc_sq_depth(4));
	assert_all_released();
}

TEST(drain__special_entry_busy__beacon_when_it_is_free)
{
	open_rc(4);
	send_numbers(0, 20, 100);
	assert_int_equal(rc_probe(&rc), 0);
	rc_drain(&rc);
	assert_int_equal(wr_unpack(last_post()->wr_id).type, WR_PROBE);
	assert_int_equal(ep_process(rig.ep, rc_sq_depth(4)), rc_sq_depth(4));
	assert_int_equal(wr_unpack(last_post()->wr_id).type, WR_BEACON);
	assert_false(rc_is_drained(&rc));
	verbs_rig_process();
	assert_true(rc_is_drained(&rc));
	assert_int_equal(bufs_free(), 256);
	rc_release(&rc, 0, true);
}

TEST(drain__special_entry_busy_and_beacon_refused__drained)
{
	open_rc(4);
	assert_int_equal(rc_probe(&rc), 0);
	rc_drain(&rc);
	fake_fail_next("ibv_post_send", EINVAL);
	verbs_rig_process();
	assert_true(rc_is_drained(&rc));
	rc_release(&rc, 0, true);
}

TEST(drain__special_entry_busy_and_qp_not_moved__drained_without_a_beacon)
{
	open_rc(4);
	assert_int_equal(rc_probe(&rc), 0);
	fake_fail_next("ibv_modify_qp", EINVAL);
	rc_drain(&rc);
	assert_true(rc_is_drained(&rc));
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(n_posts(), 1);
	rc_release(&rc, 0, true);
}

TEST(drain__special_entry_busy_and_abandoned__no_beacon)
{
	open_rc(4);
	assert_int_equal(rc_probe(&rc), 0);
	rc_drain(&rc);
	rc_abandon(&rc);
	verbs_rig_process();
	assert_int_equal(n_posts(), 1);
	rc_release(&rc, 0, true);
}

TEST(drain__work_outstanding__drained_only_after_the_beacon)
{
	uint32_t qpn;

	open_rc(2);
	qpn = rc_qpn(&rc);
	send_numbers(0, 6, 100);
	rc_drain(&rc);
	assert_int_equal(fake_qp_state(rc.qp), IBV_QPS_ERR);
	assert_non_null(fake_modified_to(qpn, IBV_QPS_ERR));
	assert_int_equal(wr_unpack(last_post()->wr_id).type, WR_BEACON);
	assert_false(rc_is_drained(&rc));
	/* A send that waits is dropped at once, a posted one with its completion. */
	assert_int_equal(bufs_free(), 253);
	assert_int_equal(ep_process(rig.ep, 3), 3);
	assert_false(rc_is_drained(&rc));
	verbs_rig_process();
	assert_true(rc_is_drained(&rc));
	assert_int_equal(send_wc_result, 0);
	assert_int_equal(bufs_free(), 256);
	rc_release(&rc, 0, true);
}

TEST(drain__twice__one_beacon)
{
	uint32_t posts;

	open_rc(2);
	rc_drain(&rc);
	posts = n_posts();
	rc_drain(&rc);
	assert_int_equal(n_posts(), posts);
}

TEST(drain__nothing_may_be_posted_afterwards)
{
	open_rc(2);
	rc_drain(&rc);
	assert_int_equal(send_number(1, 16), -ENOTCONN);
	assert_int_equal(bufs_free(), 256);
	assert_int_equal(rc_probe(&rc), -ENOTCONN);
	assert_int_equal(ask(IBV_WR_RDMA_WRITE, 1, true), -ENOTCONN);
}

TEST(drain__qp_never_connected__drained)
{
	open_unconnected();
}

TEST(drain__device_refuses__drained_at_once)
{
	static const char *const calls[] = { "ibv_modify_qp", "ibv_post_send" };

	for (size_t i = 0; i < N_ELEMENTS(calls); i++) {
		open_rc(2);
		fake_fail_next(calls[i], EINVAL);
		rc_drain(&rc);
		assert_true(rc_is_drained(&rc));
		rc_release(&rc, 0, true);
		start_again(state);
	}
}

/* The device does not flush: RESET takes back what it has, and nobody gets this queue pair again. */
TEST(abandon__flushes_do_not_come__drained_and_destroyed_after_its_rest)
{
	uint32_t qpn;

	open_rc(4);
	qpn = rc_qpn(&rc);
	assert_int_equal(send_number(1, 200), 0);
	fake_device.swallows_flushes = true;
	rc_drain(&rc);
	verbs_rig_process();
	assert_false(rc_is_drained(&rc));
	rc_abandon(&rc);
	assert_true(rc_is_drained(&rc));
	assert_int_equal(fake_qp_state(rc.qp), IBV_QPS_RESET);
	rc_release(&rc, 0, true);
	assert_int_equal(bufs_free(), 256);
	assert_int_equal(ep_sends_out(rig.ep), 0);
	qp_pool_maintain(rig.qps, rig.pool_cfg.quarantine_ns, 8);
	assert_null(fake_qp_of(qpn));
	assert_int_equal(verbs_rig_pool_counts().recycled, 0);
}

TEST(drain__device_tells_of_the_last_receive__both_are_waited_for)
{
	for (int early = 0; early < 2; early++) {
		open_rc(4);
		rig.dev.tells_last_wqe = true;
		if (early)
			rc_on_last_wqe(&rc);
		rc_drain(&rc);
		assert_false(rc_is_drained(&rc));
		verbs_rig_wake();
		assert_int_equal(rc_is_drained(&rc), early);
		rc_on_last_wqe(&rc);
		assert_true(rc_is_drained(&rc));
		start_again(state);
	}
	/* One that was never connected has taken no receive. */
	rig.dev.tells_last_wqe = true;
	open_unconnected();
}

TEST_EACH(set_up, tear_down)
