/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/ep.c on the fake device: construction, queue sizes, buffers, events,
 * batches. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/rdma/ep_internal.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

#define POSTED (16 + EP_BATCH)	/* receives in the SRQ with the rig's defaults */

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static uint32_t recv_buf(uint64_t wr_id)
{
	struct wr w = wr_unpack(wr_id);

	assert_int_equal(w.type, WR_RECV);
	return w.buf;
}

static void recycle(struct verbs_rig *r, const struct ibv_wc *wc)
{
	if (wr_unpack(wc->wr_id).type == WR_RECV)
		ep_recycle(r->ep, wr_unpack(wc->wr_id).buf);
}

static struct ibv_qp *qp;	/* the one of open_ep; NULL: none */

/* It is destroyed by the tear-down. */
static void create_qp(void)
{
	uint32_t cq;

	assert_int_equal(ep_qp_create(rig.ep, &qp, &cq), 0);
	assert_int_equal(cq, 1);
}

/* The endpoint with rig.cfg, and a queue pair on it. */
static void open_ep(void)
{
	verbs_rig_open_ep();
	create_qp();
}

/* The same when everything that the start left to be polled was polled. */
static void open_quiet_ep(void)
{
	open_ep();
	verbs_rig_process();
}

static int set_up(void **state)
{
	qp = NULL;
	return verbs_rig_init(state);
}

static int tear_down(void **state)
{
	if (qp)
		ep_qp_destroy(rig.ep, qp, 1);
	return verbs_rig_close(state);
}

/* The same when each buffer that was received is recycled. */
static void open_recycling_ep(void)
{
	open_ep();
	rig.on_wc = recycle;
}

static void deliver(int n)
{
	while (n--)
		assert_true(fake_deliver(qp, "hello", 5));
}

/* Polls until nothing is left, and checks how many completions were dispatched in all. */
static void assert_processed(uint32_t n)
{
	verbs_rig_process();
	assert_int_equal(rig.n_wcs, n);
}

static void assert_woken(uint32_t n)
{
	verbs_rig_wake();
	assert_int_equal(rig.n_wcs, n);
}

/* `n` receives wait in the SRQ, each with a buffer of its own. */
static void assert_srq_holds(uint32_t n)
{
	bool seen[512] = { false };

	assert_int_equal(fake_srq_posted(), n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t buf = recv_buf(fake_srq_wr_id(i));

		assert_true(buf < n + 16 && n + 16 <= N_ELEMENTS(seen));
		assert_false(seen[buf]);
		seen[buf] = true;
	}
}

TEST(new__every_call_fails_in_turn__all_released_and_explained)
{
	unsigned k;

	for (k = 1; k < 100; k++) {
		struct ep *ep = NULL;
		char err[300] = "";
		int ret;

		fake_fail_at(k, ENOMEM);
		ret = ep_new(&rig.cfg, NULL, NULL, &ep, err, sizeof(err));
		if (!fake_failed()) {
			assert_int_equal(ret, 0);
			fake_fail_at(0, 0);
			ep_free(ep);
			break;
		}
		assert_int_equal(ret, -ENOMEM);
		assert_null(ep);
		assert_true(strlen(err) > 20);
		assert_says(err, strerror(ENOMEM));
		assert_int_equal(fake_objects(), 0);
	}
	/* PD, channel, two queues and the arming of one, MR, SRQ, one post. */
	assert_int_equal(k, 9);
}

TEST(new__memory_not_lockable__advice_names_the_limit)
{
	struct ep *ep;
	char err[300];

	fake_fail_next("ibv_reg_mr", ENOMEM);
	assert_int_equal(ep_new(&rig.cfg, NULL, NULL, &ep, err, sizeof(err)), -ENOMEM);
	assert_says(err, "ulimit -l");
}

TEST(new__defaults__srq_full_and_counts_right)
{
	verbs_rig_open_ep();
	assert_srq_holds(POSTED);
	assert_int_equal(verbs_rig_counts().bufs_posted, POSTED);
	assert_int_equal(verbs_rig_counts().bufs_free, 16);
	assert_int_equal(verbs_rig_counts().bufs_total, POSTED + 16);
	assert_int_equal(verbs_rig_counts().pinned_bytes, (POSTED + 16) * 256);
	assert_int_equal(verbs_rig_counts().cqs, 2);
	assert_int_equal(verbs_rig_counts().mrs, 1);
	assert_int_equal(fake_mrs(), 1);
}

/* The worst case is that every queue pair flushes its whole send queue at once. */
TEST(new__small_queues_on_the_device__room_for_every_flush)
{
	struct ibv_qp *qps[11];
	uint32_t cq_of[11], room = 0;

	fake_device.attr.max_cqe = 100;
	rig.cfg.max_qps = 11;
	rig.cfg.sq_depth = 26;
	verbs_rig_open_ep();
	assert_true(fake_cq(0)->cqe >= (int)POSTED);
	for (int i = 0; i < 11; i++) {
		struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };

		assert_int_equal(ep_qp_create(rig.ep, &qps[i], &cq_of[i]), 0);
		assert_int_equal(fake_cqs(), 1 + 1 + i / 3);	/* created when the queue pair needs it */
		assert_ptr_equal(qps[i]->send_cq, fake_cq(cq_of[i]));
		assert_ptr_equal(qps[i]->recv_cq, fake_cq(0));
		verbs_rig_connect(qps[i]);
		for (int j = 0; j < 26; j++)
			assert_int_equal(ibv_post_send(qps[i], &wr, &bad), 0);
	}
	for (uint32_t i = 1; i < fake_cqs(); i++) {
		assert_true(fake_cq(i)->cqe <= 100);
		room += (uint32_t)fake_cq(i)->cqe;
	}
	assert_true(room >= 11 * 26);
	for (int i = 0; i < 11; i++)
		fake_complete_sends(qps[i], 1, IBV_WC_RETRY_EXC_ERR);
	for (int i = 0; i < 11; i++)
		ep_qp_destroy(rig.ep, qps[i], cq_of[i]);
}

TEST(qp_create__no_memory_for_its_send_cq__enomem_and_the_next_call_succeeds)
{
	struct ibv_qp *qps[2];
	uint32_t cq_of[2];

	fake_device.attr.max_cqe = 100;
	rig.cfg.sq_depth = 60;
	verbs_rig_open_ep();
	assert_int_equal(ep_qp_create(rig.ep, &qps[0], &cq_of[0]), 0);
	fake_fail_next("ibv_create_cq", ENOMEM);
	assert_int_equal(ep_qp_create(rig.ep, &qps[1], &cq_of[1]), -ENOMEM);
	assert_int_equal(verbs_rig_counts().cqs, 2);
	assert_int_equal(ep_qp_create(rig.ep, &qps[1], &cq_of[1]), 0);
	assert_int_equal(verbs_rig_counts().cqs, 3);
	for (int i = 0; i < 2; i++)
		ep_qp_destroy(rig.ep, qps[i], cq_of[i]);
}

TEST(qp_create__beyond_max_qps__enospc_until_one_is_destroyed)
{
	struct ibv_qp *qps[8], *extra;
	uint32_t cq_of[8], cq;

	verbs_rig_open_ep();
	for (int i = 0; i < 8; i++)
		assert_int_equal(ep_qp_create(rig.ep, &qps[i], &cq_of[i]), 0);
	assert_int_equal(ep_qp_create(rig.ep, &extra, &cq), -ENOSPC);
	ep_qp_destroy(rig.ep, qps[3], cq_of[3]);
	assert_int_equal(ep_qp_create(rig.ep, &qps[3], &cq_of[3]), 0);
	for (int i = 0; i < 8; i++)
		ep_qp_destroy(rig.ep, qps[i], cq_of[i]);
}

TEST(new__more_send_queues_than_can_be_kept__refused)
{
	struct ep *ep;
	char err[300] = "";

	fake_device.attr.max_cqe = 100;
	rig.cfg.sq_depth = 50;
	rig.cfg.max_qps = 2 * 63;
	verbs_rig_open_ep();
	ep_free(rig.ep);
	rig.ep = NULL;
	rig.cfg.max_qps = 2 * 63 + 1;
	assert_int_equal(ep_new(&rig.cfg, NULL, NULL, &ep, err, sizeof(err)), -ENOSPC);
	assert_says(err, "more threads");
}

TEST(qp_create__too_much_inline__goes_without_for_all)
{
	struct ibv_qp *other;
	uint32_t cq;

	fake_device.inline_max = 32;
	open_ep();
	assert_int_equal(ep_inline_wanted(rig.ep), 64);
	assert_int_equal(ep_inline_bytes(rig.ep), 0);
	assert_int_equal(fake_qp_cap(qp)->max_inline_data, 0);
	assert_int_equal(fake_qp_cap(qp)->max_send_wr, 8);
	fake_fail_next("ibv_create_qp", EINVAL);
	assert_int_equal(ep_qp_create(rig.ep, &other, &cq), -EINVAL);
}

TEST(qp_create__more_inline_than_the_device_takes__its_power_of_two)
{
	rig.cfg.inline_bytes = 3000;
	verbs_rig_open_ep();
	assert_int_equal(ep_inline_granted(rig.ep), UINT32_MAX);
	create_qp();
	assert_int_equal(ep_inline_wanted(rig.ep), 3000);
	assert_int_equal(ep_inline_granted(rig.ep), 512);
	assert_int_equal(ep_inline_bytes(rig.ep), 512);
	assert_int_equal(fake_qp_cap(qp)->max_inline_data, 512);
	assert_int_equal(fake_qp_cap(qp)->max_send_wr, 8);
}

static void assert_wr(const struct wr *w, const struct wr *expected)
{
	assert_int_equal(w->type, expected->type);
	assert_int_equal(w->buf, expected->buf);
	assert_int_equal(w->qp_slot, expected->qp_slot);
	assert_int_equal(w->generation, expected->generation);
	assert_int_equal(w->covers, expected->covers);
	assert_int_equal(w->awaited, expected->awaited);
}

TEST(buf_get__until_none__distinct_and_apart)
{
	uint32_t bufs[16];

	rig.cfg.buf_bytes = 200;
	verbs_rig_open_ep();
	assert_int_equal(ep_buf_bytes(rig.ep), 256);
	for (int i = 0; i < 16; i++) {
		bufs[i] = ep_buf_get(rig.ep);
		assert_int_not_equal(bufs[i], EP_NO_BUF);
		memset(ep_buf(rig.ep, bufs[i]), i + 1, 256);
		ep_buf_link(rig.ep, bufs[i])->length = (uint32_t)i;
	}
	assert_int_equal(ep_buf_get(rig.ep), EP_NO_BUF);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(ep_buf(rig.ep, bufs[i])[0], i + 1);
		assert_int_equal(ep_buf(rig.ep, bufs[i])[255], i + 1);
		assert_int_equal(ep_buf_link(rig.ep, bufs[i])->length, i);
		ep_buf_put(rig.ep, bufs[i]);
	}
	assert_int_equal(verbs_rig_counts().bufs_free, 16);
}

TEST(wr__any_fields__packed_and_back)
{
	static const struct wr cases[] = {
		{ WR_RECV, 0, 0, 0, 0, false },
		{ WR_BEACON, EP_NO_BUF, WR_SLOT_MAX - 1, WR_GENERATION_MASK, WR_COVERS_MAX, true },
		{ WR_SEND, 0x12345, 0xabcde, 0x123, 0x7f, false },
		{ WR_RMA, 1, 2, 3, 4, true },
		{ WR_PROBE, EP_NO_BUF, 0, 0xfff, 0, false },
		{ WR_BIND, 0, WR_SLOT_MAX - 1, 0, 0, false },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct wr w = wr_unpack(wr_pack(&cases[i]));

		assert_wr(&w, &cases[i]);
	}
}

/* A field that is too large does not reach into its neighbours. */
TEST(wr__fields_beyond_their_bits__each_cut)
{
	static const struct {
		struct wr w, cut;
	} cases[] = {
		{ { WR_SEND, 3, 9, 0x12345, 0, false }, { WR_SEND, 3, 9, 0x345, 0, false } },
		{ { WR_RECV, UINT32_MAX, 0, 0, 0, false }, { WR_RECV, EP_NO_BUF, 0, 0, 0, false } },
		{ { WR_RECV, 1, UINT32_MAX, 0, 0, false }, { WR_RECV, 1, WR_SLOT_MAX - 1, 0, 0, false } },
		{ { WR_SEND, 1, 2, 3, 0x1ff, false }, { WR_SEND, 1, 2, 3, WR_COVERS_MAX, false } },
		{ { (enum wr_type)8, 1, 2, 3, 4, false }, { (enum wr_type)0, 1, 2, 3, 4, false } },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct wr w = wr_unpack(wr_pack(&cases[i].w));

		assert_wr(&w, &cases[i].cut);
	}
}

TEST(process__messages__dispatched_in_order_and_recycled)
{
	open_recycling_ep();
	for (uint8_t i = 0; i < POSTED; i++)
		assert_true(fake_deliver(qp, &i, 1));
	assert_false(fake_deliver(qp, "x", 1));
	assert_processed(POSTED);
	for (uint8_t i = 0; i < POSTED; i++)
		assert_int_equal(*ep_buf(rig.ep, recv_buf(rig.wcs[i].wr_id)), i);
	assert_int_equal(verbs_rig_counts().bufs_posted, POSTED);
	assert_int_equal(fake_srq_posted(), POSTED);
}

TEST(process__not_recycled__posted_count_shows_it)
{
	open_ep();
	deliver(5);
	verbs_rig_process();
	assert_int_equal(verbs_rig_counts().bufs_posted, POSTED - 5);
	for (int i = 0; i < 5; i++)
		ep_buf_put(rig.ep, recv_buf(rig.wcs[i].wr_id));
	assert_int_equal(verbs_rig_counts().bufs_free, 21);
}

TEST(process__budget__kept_and_the_rest_taken_later)
{
	open_recycling_ep();
	deliver(10);
	assert_int_equal(ep_process(rig.ep, 4), 4);
	assert_int_equal(ep_process(rig.ep, 4), 4);
	assert_int_equal(ep_process(rig.ep, 4), 2);
	assert_int_equal(ep_process(rig.ep, 4), 0);
}

/* A queue that is never empty must not starve the others. */
TEST(process__one_busy_queue__the_other_has_its_turn)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	struct wr w = { .type = WR_PROBE, .buf = EP_NO_BUF };
	rig.cfg.recv_depth = 200;
	open_ep();
	deliver(200);
	wc.wr_id = wr_pack(&w);
	fake_push_wc(fake_cq(1), &wc);
	assert_int_equal(ep_process(rig.ep, 64), 64);
	assert_true(ep_process(rig.ep, 64) >= 1);
	assert_int_equal(wr_unpack(rig.wcs[64].wr_id).type, WR_PROBE);
	assert_processed(201);
}

TEST(process__same_poll__same_batch_number)
{
	rig.cfg.recv_depth = 200;
	open_ep();
	deliver(3);
	verbs_rig_process();
	deliver(2);
	verbs_rig_process();
	assert_int_equal(rig.batches[0], rig.batches[2]);
	assert_int_not_equal(rig.batches[2], rig.batches[3]);
	assert_int_equal(rig.batches[3], rig.batches[4]);
}

/* Peers may keep recv_depth messages under way all the time: the SRQ never holds fewer receives. */
static void recycle_and_look(struct verbs_rig *r, const struct ibv_wc *wc)
{
	assert_true(fake_srq_posted() + fake_cq_waiting(fake_cq(0)) >= r->cfg.recv_depth);
	recycle(r, wc);
}

TEST(process__three_hundred_messages__receives_back_after_each_batch)
{
	rig.cfg.recv_depth = 300;
	open_ep();
	rig.on_wc = recycle_and_look;
	/* 364 at once: by 128. */
	assert_int_equal(fake_srq_posts(), 3);
	deliver(300);
	assert_processed(300);
	assert_int_equal(fake_srq_posts(), 3 + 5);
	assert_srq_holds(300 + EP_BATCH);
	assert_int_equal(verbs_rig_counts().bufs_posted, 300 + EP_BATCH);
	assert_int_equal(verbs_rig_counts().bufs_free, 16);
}

/* A batch shorter than the last must not carry the last one's tail. */
TEST(process__long_then_short_batches__only_what_was_recycled)
{
	open_recycling_ep();
	for (int round = 0; round < 20; round++) {
		int n = 1 + round * 7 % 16;

		deliver(n);
		assert_int_equal(ep_take_events(rig.ep), 0);
		assert_int_equal(ep_process(rig.ep, 64), n);
		assert_int_equal(fake_srq_posted(), POSTED);
	}
}

TEST(process__post_of_receives_fails__error_and_a_shortfall)
{
	open_recycling_ep();
	deliver(3);
	fake_fail_next("ibv_post_srq_recv", EINVAL);
	assert_int_equal(ep_process(rig.ep, 64), -EIO);
	assert_int_equal(verbs_rig_counts().bufs_posted, POSTED - 3);
}

TEST(process__receives_cannot_be_posted_for_want_of_memory__tried_again)
{
	open_recycling_ep();
	for (int round = 0; round < 3; round++) {
		deliver(3);
		assert_int_equal(ep_take_events(rig.ep), 0);
		fake_fail_next("ibv_post_srq_recv", ENOMEM);
		assert_int_equal(ep_process(rig.ep, 64), 3);
		assert_int_equal(verbs_rig_counts().bufs_posted, POSTED - 3);
		assert_int_equal(verbs_rig_counts().bufs_short, 3);
		assert_true(ep_needs_sweep(rig.ep));
		assert_int_equal(ep_process(rig.ep, 64), 0);
		assert_int_equal(fake_srq_posted(), POSTED);
		assert_int_equal(verbs_rig_counts().bufs_posted, POSTED);
		assert_int_equal(verbs_rig_counts().bufs_short, 0);
		assert_int_equal(verbs_rig_counts().bufs_free, 16);
		assert_false(ep_needs_sweep(rig.ep));
	}
}

TEST(process__receives_cannot_be_posted_for_long__error)
{
	open_recycling_ep();
	deliver(3);
	fake_fail_next("ibv_post_srq_recv", ENOMEM);
	assert_int_equal(ep_process(rig.ep, 64), 3);
	/* A call that works in between is not a success of this one. */
	fake_push_wc(fake_cq(1), &(struct ibv_wc){ .wr_id = (uint64_t)WR_PROBE << 60 });
	fake_fail_next("ibv_post_srq_recv", ENOMEM);
	ep_sweep(rig.ep);
	assert_int_equal(ep_process(rig.ep, 64), 1);
	rig.ep->reposts.since_ns -= RETRY_FOR_NS;
	fake_fail_next("ibv_post_srq_recv", ENOMEM);
	assert_int_equal(ep_process(rig.ep, 64), -EIO);
}

/* More than a batch: what waits for its turn was there before any of it was answered. */
TEST(look__at_all__one_number_for_all_that_was_there)
{
	static const bool all[] = { true, false };

	for (size_t c = 0; c < N_ELEMENTS(all); c++) {
		rig.cfg.recv_depth = 300;
		rig.cfg.look_at_all = all[c];
		open_recycling_ep();
		deliver(300);
		assert_int_equal(ep_process(rig.ep, 64), 64);
		/* Only a look takes messages from the queue, so this one is of the next. */
		deliver(1);
		assert_processed(301);
		assert_true(rig.looks[0] > 0);
		for (uint32_t i = 1; i < 301; i++) {
			bool same = all[c] ? i != 300 : i % 64 != 0;

			assert_int_equal(rig.looks[i] == rig.looks[i - 1], same);
		}
		assert_int_equal(fake_srq_posted(), 300 + EP_BATCH);
		tear_down(state);
		set_up(state);
	}
	open_ep();
}

TEST(process__poll_fails__eio)
{
	verbs_rig_open_ep();
	fake_fail_next("ibv_poll_cq", EIO);
	assert_int_equal(ep_process(rig.ep, 64), -EIO);
}

TEST(events__one_message__readable_once_and_armed_again)
{
	open_recycling_ep();
	verbs_rig_process();
	for (int i = 0; i < 5; i++) {
		assert_false(readable(ep_fd(rig.ep)));
		deliver(2);
		assert_true(readable(ep_fd(rig.ep)));
		assert_false(fake_cq_armed(fake_cq(0)));
		assert_int_equal(ep_take_events(rig.ep), 0);
		assert_false(readable(ep_fd(rig.ep)));
		assert_true(fake_cq_armed(fake_cq(0)));
		assert_int_equal(fake_cq_unacked(fake_cq(0)), 0);
		assert_processed((i + 1) * 2);
	}
}

/* Between arming and polling a completion may come: it is found by the poll, its event is
 * spurious. */
TEST(events__completion_after_arming__not_lost)
{
	open_quiet_ep();
	deliver(1);
	assert_int_equal(ep_take_events(rig.ep), 0);
	deliver(1);
	assert_processed(2);
	assert_woken(2);
}

TEST(events__quiet_queues__not_polled)
{
	uint32_t polls;

	verbs_rig_open_ep();
	verbs_rig_process();
	polls = fake_cq_polls(fake_cq(0)) + fake_cq_polls(fake_cq(1));
	assert_int_equal(ep_process(rig.ep, 64), 0);
	assert_int_equal(fake_cq_polls(fake_cq(0)) + fake_cq_polls(fake_cq(1)), polls);
}

TEST(events__channel_or_arming_fails__its_errno)
{
	open_ep();
	fake_fail_next("ibv_get_cq_event", EIO);
	assert_int_equal(ep_take_events(rig.ep), -EIO);
	deliver(1);
	fake_fail_next("ibv_req_notify_cq", EINVAL);
	assert_int_equal(ep_take_events(rig.ep), -EINVAL);
}

TEST(solicited_only__for_receives__other_queues_tell_of_all)
{
	verbs_rig_open_ep();
	assert_false(fake_cq_solicited_only(fake_cq(0)));
	verbs_rig_close(NULL);
	verbs_rig_init(NULL);
	rig.cfg.solicited_only = true;
	open_ep();
	ep_await(rig.ep, qp, 1);
	assert_true(fake_cq_armed(fake_cq(0)) && fake_cq_armed(fake_cq(1)));
	assert_true(fake_cq_solicited_only(fake_cq(0)));
	assert_false(fake_cq_solicited_only(fake_cq(1)));
}

/* Unsolicited messages raise no event of their queue. */
TEST(solicited_only__receives_run_low__told_once_until_watched_again)
{
	rig.cfg.solicited_only = true;
	open_quiet_ep();
	rig.on_wc = recycle;
	assert_true(ep_needs_sweep(rig.ep));
	ep_watch_srq(rig.ep);
	assert_false(ep_needs_sweep(rig.ep));
	for (int round = 0; round < 3; round++) {
		assert_int_equal(fake_srq_limit(), SRQ_LIMIT);
		while (fake_srq_posted() > SRQ_LIMIT)
			assert_true(fake_deliver_unsolicited(qp, "x", 1));
		assert_int_equal(fake_async_waiting(), round);
		assert_true(fake_deliver_unsolicited(qp, "x", 1));
		assert_int_equal(fake_async_waiting(), round + 1);
		assert_false(readable(ep_fd(rig.ep)));
		verbs_rig_process();
		assert_int_equal(fake_srq_posted(), SRQ_LIMIT - 1);
		ep_srq_is_low(rig.ep);
		verbs_rig_process();
		assert_int_equal(fake_srq_posted(), POSTED);
		assert_int_equal(fake_srq_limit(), 0);
		assert_true(ep_needs_sweep(rig.ep));
		/* Until it is watched again, each of them wakes the thread. */
		for (int i = 0; i < 3; i++) {
			assert_false(readable(ep_fd(rig.ep)));
			assert_true(fake_deliver_unsolicited(qp, "x", 1));
			assert_true(readable(ep_fd(rig.ep)));
			verbs_rig_wake();
		}
		ep_watch_srq(rig.ep);
		assert_true(fake_deliver_unsolicited(qp, "x", 1));
		verbs_rig_wake();
		assert_true(fake_cq_solicited_only(fake_cq(0)));
		assert_false(ep_needs_sweep(rig.ep));
	}
}

TEST(solicited_only__device_cannot_tell__every_message_wakes)
{
	rig.cfg.solicited_only = true;
	open_quiet_ep();
	fake_fail_next("ibv_modify_srq", EOPNOTSUPP);
	ep_watch_srq(rig.ep);
	verbs_rig_process();
	rig.on_wc = recycle;
	for (uint32_t i = 1; i <= 3; i++) {
		assert_false(ep_needs_sweep(rig.ep));
		assert_false(fake_cq_solicited_only(fake_cq(0)));
		assert_true(fake_cq_armed(fake_cq(0)));
		assert_true(fake_deliver_unsolicited(qp, "x", 1));
		assert_true(readable(ep_fd(rig.ep)));
		assert_int_equal(ep_take_events(rig.ep), 0);
		assert_false(readable(ep_fd(rig.ep)));
		assert_processed(i);
	}
}

TEST(spin__on__never_armed_and_always_polled)
{
	rig.cfg.spin = true;
	open_ep();
	assert_false(fake_cq_armed(fake_cq(0)));
	assert_false(fake_cq_armed(fake_cq(1)));
	verbs_rig_process();
	deliver(3);
	assert_false(readable(ep_fd(rig.ep)));
	assert_processed(3);
}

TEST(spin__turned_off__armed_and_what_waits_is_polled)
{
	open_quiet_ep();
	deliver(1);
	ep_set_spin(rig.ep, true);
	assert_int_equal(ep_take_events(rig.ep), 0);
	assert_false(fake_cq_armed(fake_cq(0)));
	verbs_rig_process();
	deliver(1);
	ep_set_spin(rig.ep, false);
	assert_true(fake_cq_armed(fake_cq(0)));
	/* Nobody waits for sends. */
	assert_false(fake_cq_armed(fake_cq(1)));
	assert_processed(2);
}

static void push_send(bool awaited)
{
	struct wr w = { .type = WR_SEND, .buf = EP_NO_BUF, .awaited = awaited };
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	wc.wr_id = wr_pack(&w);
	fake_push_wc(fake_cq(1), &wc);
}

TEST(await__completion_to_come__armed_until_it_came)
{
	open_quiet_ep();
	assert_false(fake_cq_armed(fake_cq(1)));
	ep_await(rig.ep, qp, 2);
	assert_true(fake_cq_armed(fake_cq(1)));
	push_send(true);
	assert_true(readable(ep_fd(rig.ep)));
	verbs_rig_wake();
	assert_true(fake_cq_armed(fake_cq(1)));
	push_send(true);
	assert_woken(2);
	/* Armed before the last one was polled: it stays so, and is not armed again once it fired. */
	push_send(false);
	assert_int_equal(ep_take_events(rig.ep), 0);
	assert_false(fake_cq_armed(fake_cq(1)));
	assert_processed(3);
}

TEST(await__taken_back__not_armed_again)
{
	open_quiet_ep();
	ep_await(rig.ep, qp, 1);
	ep_await(rig.ep, qp, -1);
	push_send(false);
	assert_int_equal(ep_take_events(rig.ep), 0);
	assert_false(fake_cq_armed(fake_cq(1)));
	assert_processed(1);
}

/* They wake nobody, but come along with what does. */
TEST(await__not_announced__polled_with_the_next_event)
{
	open_quiet_ep();
	ep_count_sends(rig.ep, qp, 1);
	push_send(false);
	assert_false(readable(ep_fd(rig.ep)));
	deliver(1);
	assert_woken(2);
}

static uint32_t polls_of_sweeps(int n)
{
	uint32_t before = fake_cq_polls(fake_cq(1));

	for (int i = 0; i < n; i++) {
		ep_sweep(rig.ep);
		verbs_rig_process();
	}
	return fake_cq_polls(fake_cq(1)) - before;
}

TEST(sweep__queue_without_requests__polled_each_16th_time)
{
	open_quiet_ep();
	assert_int_equal(polls_of_sweeps(64), 4);
	ep_count_sends(rig.ep, qp, 2);
	assert_int_equal(polls_of_sweeps(64), 64);
	ep_count_sends(rig.ep, qp, -2);
	assert_int_equal(polls_of_sweeps(64), 4);
	ep_await(rig.ep, qp, 1);
	assert_int_equal(polls_of_sweeps(64), 64);
	/* A completion that an abandoned queue pair left behind is taken out, too. */
	ep_await(rig.ep, qp, -1);
	push_send(false);
	(void)polls_of_sweeps(16);
	assert_int_equal(rig.n_wcs, 1);
}

TEST(await__both_queues_fired__both_taken_at_once)
{
	open_quiet_ep();
	ep_await(rig.ep, qp, 1);
	push_send(true);
	deliver(1);
	assert_int_equal(ep_take_events(rig.ep), 0);
	assert_false(readable(ep_fd(rig.ep)));
	assert_processed(2);
}

static struct { struct ep_deferred d[3]; uint32_t order[8], n; bool again; } put_off;

static void run(struct ep_deferred *d)
{
	uint32_t i = (uint32_t)(d - put_off.d);

	put_off.order[put_off.n++] = i;
	if (put_off.again && i == 1) {
		put_off.again = false;
		ep_defer(rig.ep, &put_off.d[0]);
	}
}

TEST(defer__held__run_once_in_order_by_the_last_unhold)
{
	static const uint32_t expected[] = { 2, 1, 0 };

	memset(&put_off, 0, sizeof(put_off));
	for (int i = 0; i < 3; i++)
		put_off.d[i].run = run;
	verbs_rig_open_ep();
	assert_false(ep_is_held(rig.ep));
	ep_hold(rig.ep);
	ep_hold(rig.ep);
	ep_defer(rig.ep, &put_off.d[2]);
	ep_defer(rig.ep, &put_off.d[1]);
	ep_defer(rig.ep, &put_off.d[2]);
	put_off.again = true;
	ep_unhold(rig.ep);
	assert_int_equal(put_off.n, 0);
	assert_true(ep_is_held(rig.ep));
	ep_unhold(rig.ep);
	/* A function that was put off from within one runs in the same round. */
	assert_int_equal(put_off.n, 3);
	assert_memory_equal(put_off.order, expected, sizeof(expected));
	assert_false(ep_is_held(rig.ep));
	ep_hold(rig.ep);
	ep_unhold(rig.ep);
	assert_int_equal(put_off.n, 3);
}

TEST(free__null__nothing)
{
	ep_free(NULL);
}

static size_t resident_pages(const struct ep *ep)
{
	static unsigned char in_core[4096];
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (ep->slab_bytes + page - 1) / page, n = 0;

	assert_in_range(pages, 1, sizeof(in_core));
	assert_int_equal(mincore(ep->slab, ep->slab_bytes, in_core), 0);
	for (size_t i = 0; i < pages; i++)
		n += in_core[i] & 1;
	return n;
}

#define USED 100u

/* An endpoint for sockets of which USED buffers were filled and are free again. */
static struct ep *used_ep(uint32_t buf_bytes)
{
	const struct ep_config cfg = { .recv_depth = USED, .buf_bytes = buf_bytes };
	uint32_t bufs[USED];
	struct ep *ep;
	char err[200];

	assert_int_equal(ep_new(&cfg, NULL, NULL, &ep, err, sizeof(err)), 0);
	assert_false(ep_needs_trim(ep));
	for (uint32_t i = 0; i < USED; i++)
		memset(ep_buf(ep, bufs[i] = ep_buf_get(ep)), 1, buf_bytes);
	for (uint32_t i = 0; i < USED; i++)
		ep_buf_put(ep, bufs[i]);
	assert_true(ep_needs_trim(ep));
	return ep;
}

TEST(trim__large_buffers__all_but_those_in_use_given_back)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), kept = EP_KEPT_BYTES / (4 * page);
	struct ep *ep = used_ep((uint32_t)(3 * page + 1));
	uint32_t held[USED];

	assert_int_equal(resident_pages(ep), USED * 4);
	assert_false(ep_trim(ep, SIZE_MAX));	/* they were used since the endpoint was made */
	for (size_t i = 0; i < kept + 1; i++)
		held[i] = ep_buf_get(ep);
	assert_int_equal(resident_pages(ep), USED * 4);
	assert_true(ep_trim(ep, 8 * page));
	assert_int_equal(resident_pages(ep), (USED - 2) * 4);
	assert_false(ep_trim(ep, SIZE_MAX));
	assert_int_equal(resident_pages(ep), (kept + 1) * 4);
	assert_int_equal(*ep_buf(ep, held[kept]), 1);
	assert_false(ep_needs_trim(ep));
	for (size_t i = 0; i < kept + 1; i++)
		ep_buf_put(ep, held[i]);
	assert_true(ep_needs_trim(ep));
	assert_false(ep_trim(ep, SIZE_MAX));
	assert_false(ep_trim(ep, SIZE_MAX));
	assert_int_equal(resident_pages(ep), kept * 4);
	assert_false(ep_needs_trim(ep));
	ep_free(ep);
}

TEST(trim__buffers_that_share_pages__given_back_when_all_are_free)
{
	struct ep *ep = used_ep(7000);
	uint32_t held = ep_buf_get(ep);

	assert_true(resident_pages(ep) >= USED);
	for (int i = 0; i < 3; i++)
		assert_false(ep_trim(ep, SIZE_MAX));
	assert_int_equal(*ep_buf(ep, held), 1);
	assert_false(ep_needs_trim(ep));
	ep_buf_put(ep, held);
	for (int i = 0; i < 2; i++)
		assert_false(ep_trim(ep, SIZE_MAX));
	assert_int_equal(resident_pages(ep), 0);
	assert_false(ep_needs_trim(ep));
	/* Light traffic finds the pages where they were. */
	for (int i = 0; i < 5; i++) {
		held = ep_buf_get(ep);
		memset(ep_buf(ep, held), 1, 1);
		ep_buf_put(ep, held);
		assert_false(ep_trim(ep, SIZE_MAX));
		assert_int_equal(resident_pages(ep), 1);
	}
	ep_free(ep);
}

/* The device writes into them whenever it likes. */
TEST(trim__registered__stays)
{
	open_ep();
	assert_false(ep_needs_trim(rig.ep));
	assert_false(ep_trim(rig.ep, SIZE_MAX));
	assert_false(ep_trim(rig.ep, SIZE_MAX));
	assert_int_equal(rig.ep->n_trimmed, rig.ep->n_unused);
}

TEST_EACH(set_up, tear_down)
