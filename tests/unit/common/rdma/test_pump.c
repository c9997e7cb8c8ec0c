/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/pump.c: when the thread looks, spins and sleeps. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/rdma/cm.h"
#include "common/base/log.h"
#include "common/rdma/ep_internal.h"
#include "common/rdma/pump.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/verbs_rig.h"

static struct pump pump;
static struct ev_loop *loop;
static struct ibv_qp *qp;
static uint32_t cq, cm_events;
static uint32_t wcs_at_event, break_after;

static void on_cm(void *arg, const struct cm_event *e)
{
	assert_ptr_equal(arg, &rig);
	assert_int_equal(e->type, CM_UNREACHABLE);
	wcs_at_event = rig.n_wcs;
	cm_events++;
}

static void on_wc(struct verbs_rig *r, const struct ibv_wc *wc)
{
	ep_recycle(r->ep, wr_unpack(wc->wr_id).buf);
	if (r->n_wcs == break_after)
		pump_break(&pump);
}

static int set_up(void **state)
{
	cm_events = wcs_at_event = break_after = 0;
	return verbs_rig_init_cm(state);
}

static void start(enum poll_mode mode, uint64_t spin_ns)
{
	rig.cfg.recv_depth = 1200;
	rig.cfg.spin = mode == POLL_BUSY;
	verbs_rig_open_ep();
	rig.on_wc = on_wc;
	assert_int_equal(ep_qp_create(rig.ep, &qp, &cq), 0);
	loop = ev_loop_new(EVFLAG_AUTO);
	pump_start(&pump, loop, rig.ep, rig.cm, mode, spin_ns, on_cm, &rig);
}

static int tear_down(void **state)
{
	pump_stop_watchers(&pump);
	ev_loop_destroy(loop);
	ep_qp_destroy(rig.ep, qp, cq);
	return verbs_rig_close(state);
}

static void deliver(int n)
{
	while (n--)
		assert_true(fake_deliver(qp, "x", 1));
}

TEST(event_mode__completions__taken_when_readable)
{
	start(POLL_EVENT, 0);
	for (uint32_t i = 1; i <= 5; i++) {
		deliver(3);
		ev_run(loop, EVRUN_NOWAIT);
		assert_int_equal(rig.n_wcs, i * 3);
		assert_true(fake_cq_armed(fake_cq(0)));
		assert_int_equal(fake_cq_unacked(fake_cq(0)), 0);
	}
}

TEST(event_mode__more_than_the_budget__goes_on_in_later_turns)
{
	start(POLL_EVENT, 0);
	deliver(1200);
	ev_run(loop, EVRUN_NOWAIT);
	assert_in_range(rig.n_wcs, 1, 600);
	for (int i = 0; i < 10 && rig.n_wcs < 1200; i++)
		ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(rig.n_wcs, 1200);
	/* Nothing is left that would keep the loop turning. */
	ev_run(loop, EVRUN_NOWAIT);
	assert_false(ev_is_active(&pump.more));
}

/* A full backlog drops requests silently: they go first. */
TEST(event_mode__both_readable__cm_events_first)
{
	start(POLL_EVENT, 0);
	deliver(3);
	fake_cm_event(rig.id, RDMA_CM_EVENT_UNREACHABLE, 0, 0, NULL, 0);
	fake_cm_event(rig.id, RDMA_CM_EVENT_UNREACHABLE, 0, 0, NULL, 0);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(cm_events, 2);
	assert_int_equal(wcs_at_event, 0);
	assert_int_equal(rig.n_wcs, 3);
}

TEST(run__broken_out_of__returns_zero)
{
	start(POLL_EVENT, 0);
	break_after = 2;
	deliver(2);
	assert_int_equal(pump_run(&pump), 0);
	assert_int_equal(rig.n_wcs, 2);
}

TEST(run__poll_fails__broken)
{
	start(POLL_EVENT, 0);
	log_init("test", LOG_LVL_ERROR);
	deliver(1);
	fake_fail_next("ibv_poll_cq", EIO);
	assert_int_equal(pump_run(&pump), -EIO);
	assert_true(pump.broken);
}

TEST(run__either_channel_fails__broken)
{
	start(POLL_EVENT, 0);
	deliver(1);
	fake_fail_next("ibv_get_cq_event", EIO);
	assert_int_equal(pump_run(&pump), -EIO);
	pump.stop = pump.broken = false;
	fake_cm_event(rig.id, RDMA_CM_EVENT_UNREACHABLE, 0, 0, NULL, 0);
	fake_fail_next("rdma_get_cm_event", EIO);
	assert_int_equal(pump_run(&pump), -EIO);
}

TEST(cm_events__memory_is_short__taken_when_it_is_not)
{
	start(POLL_EVENT, 0);
	fake_cm_event(rig.id, RDMA_CM_EVENT_UNREACHABLE, 0, 0, NULL, 0);
	for (int i = 0; i < 3; i++) {
		fake_fail_next("rdma_get_cm_event", ENOMEM);
		ev_run(loop, EVRUN_NOWAIT);
		assert_int_equal(cm_events, 0);
		assert_false(pump.broken);
		/* Its descriptor is readable all the time, and must not keep the loop turning. */
		assert_false(ev_is_active(&pump.cm_io));
		assert_true(ev_is_active(&pump.cm_again));
		ev_timer_stop(loop, &pump.cm_again);
		ev_invoke(loop, &pump.cm_again, EV_TIMER);
	}
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(cm_events, 1);
	assert_int_equal(pump.cm_reads.since_ns, 0);
}

TEST(cm_events__memory_is_short_for_long__broken)
{
	start(POLL_EVENT, 0);
	log_init("test", LOG_LVL_ERROR);
	fake_cm_event(rig.id, RDMA_CM_EVENT_UNREACHABLE, 0, 0, NULL, 0);
	fake_fail_next("rdma_get_cm_event", ENOMEM);
	ev_run(loop, EVRUN_NOWAIT);
	assert_false(pump.broken);
	pump.cm_reads.since_ns -= RETRY_FOR_NS;
	ev_timer_stop(loop, &pump.cm_again);
	ev_invoke(loop, &pump.cm_again, EV_TIMER);
	fake_fail_next("rdma_get_cm_event", ENOMEM);
	assert_int_equal(pump_run(&pump), -EIO);
}

/* A thread that sleeps is not woken by unsolicited messages, but by the SRQ's limit. */
TEST(event_mode__unsolicited_messages_empty_the_srq__all_taken)
{
	rig.cfg.solicited_only = true;
	start(POLL_EVENT, 0);
	ev_run(loop, EVRUN_NOWAIT);
	for (int round = 0; round < 3; round++) {
		uint32_t wcs = rig.n_wcs;

		while (fake_srq_posted() > SRQ_LIMIT)
			assert_true(fake_deliver_unsolicited(qp, "x", 1));
		ev_run(loop, EVRUN_NOWAIT);
		assert_int_equal(fake_srq_posted(), SRQ_LIMIT);
		while (fake_deliver_unsolicited(qp, "x", 1))
			;
		for (int i = 0; i < 10 && fake_srq_posted() < 1200 + EP_BATCH; i++)
			ev_run(loop, EVRUN_NOWAIT);
		assert_int_equal(fake_srq_posted(), 1200 + EP_BATCH);
		assert_int_equal(rig.n_wcs, wcs + 1200 + EP_BATCH);
		/* The limit is armed again later, so that its events are rare. */
		assert_int_equal(fake_srq_limit(), 0);
		assert_true(ep_needs_sweep(rig.ep));
		assert_false(fake_cq_solicited_only(fake_cq(0)));
		ev_invoke(loop, &pump.sweep, EV_TIMER);
		assert_int_equal(fake_srq_limit(), SRQ_LIMIT);
		assert_false(ep_needs_sweep(rig.ep));
		/* The next one still wakes the thread, which then is not woken any more. */
		assert_true(fake_deliver_unsolicited(qp, "x", 1));
		ev_run(loop, EVRUN_NOWAIT);
		assert_int_equal(fake_srq_posted(), 1200 + EP_BATCH);
	}
}

static void on_gone(void *arg)
{
	++*(int *)arg;
}

/* A second endpoint on the same loop, with nothing to do. */
struct second {
	struct pump pump;
	struct ep *ep;
	struct cm_channel *cm;
	int gone;
};

static void no_wc(void *arg, const struct ibv_wc *wc)
{
	(void)arg;
	(void)wc;
}

static void join_second(struct second *b, enum poll_mode mode)
{
	char err[200];

	assert_int_equal(ep_new(&rig.cfg, no_wc, NULL, &b->ep, err, sizeof(err)), 0);
	assert_int_equal(cm_channel_new(&b->cm), 0);
	pump_start(&b->pump, loop, b->ep, b->cm, mode, 0, on_cm, &b->gone);
	b->pump.on_broken = on_gone;
	pump_join(&pump, &b->pump);
	b->gone = 0;
}

static void part_with(struct second *b)
{
	pump_stop_watchers(&b->pump);
	cm_channel_free(b->cm);
	ep_free(b->ep);
}

/* The one that broke says so, once; the other goes on, until it breaks too. */
TEST(joined__one_breaks__the_other_goes_on)
{
	static const enum poll_mode modes[] = { POLL_EVENT, POLL_BUSY };
	struct second b;

	for (size_t i = 0; i < N_ELEMENTS(modes); i++) {
		if (i) {
			assert_int_equal(tear_down(state), 0);
			assert_int_equal(set_up(state), 0);
		}
		start(modes[i], 0);
		join_second(&b, modes[i]);
		pump_fail(&b.pump);
		pump_fail(&b.pump);
		assert_int_equal(b.gone, 1);
		assert_true(b.pump.broken && !pump.broken && !pump.stop);
		break_after = 3;
		deliver(3);
		assert_int_equal(pump_run(&pump), 0);
		assert_int_equal(rig.n_wcs, 3);
		pump.stop = false;
		pump_fail(&pump);
		assert_int_equal(pump_run(&pump), -EIO);
		assert_int_equal(b.gone, 1);
		part_with(&b);
	}
}

TEST(busy_mode__completions__found_without_an_event)
{
	start(POLL_BUSY, 0);
	break_after = 4;
	deliver(4);
	assert_false(fake_cq_armed(fake_cq(0)));
	assert_int_equal(pump_run(&pump), 0);
	assert_int_equal(rig.n_wcs, 4);
	assert_false(fake_cq_armed(fake_cq(0)));
}

static void on_stop(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
	pump_break(&pump);
}

/* With 1 ns to spin, the first look finds it over; the loop then sleeps until its timer. */
TEST(adaptive_mode__quiet__arms_and_sleeps_and_wakes_again)
{
	ev_timer stop;
	uint32_t polls;

	start(POLL_ADAPTIVE, 1);
	assert_false(pump.spinning);
	deliver(1);
	ev_run(loop, EVRUN_NOWAIT);
	assert_true(pump.spinning);
	assert_int_equal(rig.n_wcs, 1);
	assert_false(fake_cq_armed(fake_cq(0)));
	ev_timer_init(&stop, on_stop, 0.01, 0.);
	ev_timer_start(loop, &stop);
	assert_int_equal(pump_run(&pump), 0);
	assert_false(pump.spinning);
	assert_true(fake_cq_armed(fake_cq(0)));
	polls = fake_cq_polls(fake_cq(0));
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(fake_cq_polls(fake_cq(0)), polls);
	deliver(1);
	ev_run(loop, EVRUN_NOWAIT);
	assert_true(pump.spinning);
	assert_int_equal(rig.n_wcs, 2);
}

/* As long as something comes, it spins: no arming, so no event per completion. */
TEST(adaptive_mode__completions_keep_coming__goes_on_spinning)
{
	start(POLL_ADAPTIVE, 10 * NS_PER_S);
	deliver(1);
	ev_run(loop, EVRUN_NOWAIT);
	for (uint32_t i = 2; i <= 10; i++) {
		break_after = i;
		deliver(1);
		assert_int_equal(pump_run(&pump), 0);
		pump.stop = false;
		assert_true(pump.spinning);
		assert_false(fake_cq_armed(fake_cq(0)));
	}
	assert_int_equal(rig.n_wcs, 10);
}

static struct async_event qp_event;
static uint32_t qp_events;

static void on_qp_event(void *arg, const struct async_event *e)
{
	assert_ptr_equal(arg, &rig);
	qp_event = *e;
	qp_events++;
}

/* Nothing completes on such a device: waiting would be for ever. */
TEST(run__device_or_queue_fails__broken)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_DEVICE_FATAL, IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_ERR };

	for (size_t i = 0; i < N_ELEMENTS(types); i++) {
		start(POLL_EVENT, 0);
		if (types[i] == IBV_EVENT_CQ_ERR)
			fake_async_cq(fake_cq(1));
		else if (types[i] == IBV_EVENT_SRQ_ERR)
			fake_async_srq(types[i]);
		else
			fake_async_device(types[i]);
		assert_int_equal(pump_run(&pump), -EIO);
		assert_true(pump.broken);
		if (i + 1 < N_ELEMENTS(types)) {
			tear_down(state);
			set_up(state);
		}
	}
}

TEST(run__queue_pair_fails__its_owner_is_told)
{
	start(POLL_EVENT, 0);
	qp_events = 0;
	fake_async_qp(qp, IBV_EVENT_QP_FATAL);
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	pump.on_qp_event = on_qp_event;
	fake_async_qp(qp, IBV_EVENT_QP_ACCESS_ERR);
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(qp_events, 1);
	assert_int_equal(qp_event.action, ASYNC_QP_FAILED);
	assert_int_equal(qp_event.qpn, qp->qp_num);
	assert_false(pump.broken);
}

/* The port may come back. */
TEST(run__port_goes_down__goes_on)
{
	start(POLL_EVENT, 0);
	fake_async_device(IBV_EVENT_PORT_ERR);
	break_after = 1;
	deliver(1);
	assert_int_equal(pump_run(&pump), 0);
	assert_int_equal(fake_async_waiting(), 0);
}

static int pieces;		/* left to do */
static uint32_t messages;	/* that came */
static uint64_t piece_ns;	/* how long each takes */

static void spend(uint64_t ns)
{
	uint64_t until_ns = clock_now_ns() + ns;

	while (clock_now_ns() < until_ns)
		;
}

/* While it is done, a message comes. */
static bool do_piece(void *arg)
{
	assert_ptr_equal(arg, &rig);
	assert_int_equal(rig.n_wcs, messages);
	spend(piece_ns);
	deliver(1);
	messages++;
	return --pieces > 0;
}

TEST(rest__messages_come_meanwhile__handled_before_the_next_piece)
{
	start(POLL_EVENT, 0);
	pump_set_rest(&pump, do_piece);
	pieces = 20;
	piece_ns = 0;
	messages = 0;
	pump_rest_is_due(&pump);
	for (int i = 0; i < 20 && pieces > 0; i++)
		ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(pieces, 0);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(rig.n_wcs, 20);
}

static void announce(int revents, void *arg)
{
	(void)revents;
	(void)arg;
	pump_rest_is_due(&pump);
}

/* Each piece is longer than the budget of a turn; the loop sleeps only when there is none left. */
TEST(rest__more_than_a_turn_allows__goes_on_without_sleeping)
{
	start(POLL_EVENT, 0);
	pump_set_rest(&pump, do_piece);
	pieces = 3;
	piece_ns = 3 * NS_PER_MS;
	messages = 0;
	ev_once(loop, -1, 0, 0, announce, NULL); /* in a turn of the loop, as in the programs */
	for (int left = 2; left >= 0; left--) {
		ev_run(loop, EVRUN_ONCE);
		assert_int_equal(pieces, left);
	}
	assert_false(pump.rest_due);
	assert_false(ev_is_active(&pump.awake));
	assert_false(ev_is_active(&pump.rest));
}

static void on_slow_cm(void *arg, const struct cm_event *e)
{
	on_cm(arg, e);
	spend(3 * NS_PER_MS);
}

/* A software device carries a request out while it is posted, which takes long for a large one. */
static void on_slow_wc(struct verbs_rig *r, const struct ibv_wc *wc)
{
	on_wc(r, wc);
	spend(2 * NS_PER_MS);
	deliver(1);
}

/* Completions, their event, the sweep and what was left over: together they have one budget. */
TEST(event_mode__completions_take_long__one_batch_in_a_turn)
{
	start(POLL_EVENT, 0);
	rig.on_wc = on_slow_wc;
	deliver(1);
	for (uint32_t i = 1; i <= 20; i++) {
		ev_timer_stop(loop, &pump.sweep);
		ev_timer_set(&pump.sweep, 0., 0.);
		ev_timer_start(loop, &pump.sweep);
		ev_run(loop, EVRUN_NOWAIT);
		assert_in_range(rig.n_wcs, i - 1, i);
	}
	assert_in_range(rig.n_wcs, 18, 20);
}

TEST(cm__events_take_long__a_few_in_a_turn)
{
	start(POLL_EVENT, 0);
	pump.on_cm = on_slow_cm;
	for (int i = 0; i < 5; i++)
		fake_cm_event(rig.id, RDMA_CM_EVENT_UNREACHABLE, 0, 0, NULL, 0);
	deliver(1);
	for (uint32_t i = 1; i <= 5; i++) {
		ev_run(loop, EVRUN_NOWAIT);
		assert_int_equal(cm_events, i);
		assert_int_equal(rig.n_wcs, 1);
	}
}

TEST_EACH(set_up, tear_down)
