/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/async.c: each event is taken, acked, counted, logged within bounds, and reaches the loop it
 * concerns, whichever loop read it. */
#include "tests/unit/helpers/unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/rdma/async.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

/* Two threads' endpoints on one device: [0] is the rig's. */
static struct side {
	struct ev_loop *loop;
	struct ep *ep;
	struct ibv_qp *qp;
	uint32_t cq_index;
	struct async async;
	struct async_event last;
	uint32_t n;
} sides[2];
static uint32_t lines;
static char line[200];

bool log_enabled(enum log_level level)
{
	return level < LOG_LVL_INFO;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	(void)level;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	lines++;
}

static void on_event(void *arg, const struct async_event *e)
{
	struct side *s = arg;

	s->last = *e;
	s->n++;
}

static void ignore(void *arg, const struct ibv_wc *wc)
{
	(void)arg;
	(void)wc;
}

static int set_up(void **state)
{
	char err[300];

	verbs_rig_init(state);
	verbs_rig_open_ep();
	memset(sides, 0, sizeof(sides));
	sides[0].ep = rig.ep;
	assert_int_equal(ep_new(&rig.cfg, ignore, NULL, &sides[1].ep, err, sizeof(err)), 0);
	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		assert_int_equal(ep_qp_create(s->ep, &s->qp, &s->cq_index), 0);
		s->loop = ev_loop_new(EVFLAG_AUTO);
		async_start(&s->async, s->loop, s->ep, on_event, s);
	}
	lines = 0;
	return 0;
}

static int tear_down(void **state)
{
	for (int i = 0; i < 2; i++) {
		async_stop(&sides[i].async);
		async_stop(&sides[i].async);
		ev_loop_destroy(sides[i].loop);
		ep_qp_destroy(sides[i].ep, sides[i].qp, sides[i].cq_index);
	}
	ep_free(sides[1].ep);
	return verbs_rig_close(state);
}

static void turn(int side)
{
	ev_run(sides[side].loop, EVRUN_NOWAIT);
	ev_run(sides[side].loop, EVRUN_NOWAIT);
}

static void raise_event(enum ibv_event_type type)
{
	if (type == IBV_EVENT_CQ_ERR)
		fake_async_cq(fake_cq(0));
	else if (type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED)
		fake_async_srq(type);
	else if ((type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) ||
		 type == IBV_EVENT_QP_LAST_WQE_REACHED)
		fake_async_qp(sides[0].qp, type);
	else
		fake_async_device(type);
}

/* The fake has one shared receive queue, the last one made. */
static const struct {
	enum ibv_event_type type;
	const char *name;
	enum async_action action;
	enum ibv_wc_status status;
	uint32_t told[2];	/* which sides */
} cases[] = {
	{ IBV_EVENT_CQ_ERR, "cq_err", ASYNC_EP_FAILED, 0, { 1, 0 } },
	{ IBV_EVENT_QP_FATAL, "qp_fatal", ASYNC_QP_FAILED, IBV_WC_FATAL_ERR, { 1, 0 } },
	{ IBV_EVENT_QP_REQ_ERR, "qp_req_err", ASYNC_QP_FAILED, IBV_WC_REM_INV_REQ_ERR, { 1, 0 } },
	{ IBV_EVENT_QP_ACCESS_ERR, "qp_access_err", ASYNC_QP_FAILED, IBV_WC_LOC_ACCESS_ERR, { 1, 0 } },
	{ IBV_EVENT_COMM_EST, "comm_est", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_SQ_DRAINED, "sq_drained", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_PATH_MIG, "path_mig", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_PATH_MIG_ERR, "path_mig_err", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_DEVICE_FATAL, "device_fatal", ASYNC_EP_FAILED, 0, { 1, 1 } },
	{ IBV_EVENT_PORT_ACTIVE, "port_active", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_PORT_ERR, "port_err", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_LID_CHANGE, "lid_change", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_PKEY_CHANGE, "pkey_change", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_SM_CHANGE, "sm_change", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_SRQ_ERR, "srq_err", ASYNC_EP_FAILED, 0, { 0, 1 } },
	{ IBV_EVENT_SRQ_LIMIT_REACHED, "srq_limit_reached", ASYNC_SRQ_LOW, 0, { 0, 1 } },
	{ IBV_EVENT_QP_LAST_WQE_REACHED, "qp_last_wqe_reached", ASYNC_QP_LAST_WQE, 0, { 1, 0 } },
	{ IBV_EVENT_CLIENT_REREGISTER, "client_reregister", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_GID_CHANGE, "gid_change", ASYNC_NOTED, 0, { 0, 0 } },
	{ IBV_EVENT_WQ_FATAL, "wq_fatal", ASYNC_NOTED, 0, { 0, 0 } },
};

/* The other side's loop reads them, and those that concern neither queue nor device reach nobody. */
TEST(event__of_each_type__counted_and_posted_to_whom_it_concerns)
{
	assert_int_equal(N_ELEMENTS(cases), IBV_EVENT_WQ_FATAL + 1);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint64_t before = async_count(cases[i].type);
		json_t *counts;

		sides[0].n = sides[1].n = 0;
		raise_event(cases[i].type);
		assert_int_equal(fake_async_waiting(), 1);
		turn(1);
		assert_int_equal(fake_async_waiting(), 0);
		assert_int_equal(async_count(cases[i].type), before + 1);
		turn(0);
		for (int s = 0; s < 2; s++) {
			assert_int_equal(sides[s].n, cases[i].told[s]);
			if (!sides[s].n)
				continue;
			assert_int_equal(sides[s].last.action, cases[i].action);
			assert_int_equal(sides[s].last.status, cases[i].status);
		}
		counts = async_json();
		assert_int_equal(json_integer_value(json_object_get(counts, cases[i].name)), before + 1);
		json_decref(counts);
	}
}

TEST(event__of_a_queue_pair__says_its_number)
{
	fake_async_qp(sides[1].qp, IBV_EVENT_QP_FATAL);
	fake_async_qp(sides[0].qp, IBV_EVENT_QP_ACCESS_ERR);
	turn(0);
	turn(1);
	assert_int_equal(sides[0].last.qpn, sides[0].qp->qp_num);
	assert_int_equal(sides[1].last.qpn, sides[1].qp->qp_num);
	assert_int_equal(sides[0].n, 1);
	assert_int_equal(sides[1].n, 1);
}

/* A peer that breaks its queue pairs again and again. */
TEST(event__many_of_a_type__one_line)
{
	fake_async_qp(sides[0].qp, IBV_EVENT_QP_REQ_ERR);
	turn(0);
	lines = 0;
	for (int i = 0; i < 1000; i++) {
		fake_async_qp(sides[0].qp, IBV_EVENT_QP_REQ_ERR);
		turn(0);
	}
	assert_int_equal(lines, 0);
	assert_int_equal(sides[0].n, 1001);
}

TEST(event__more_than_a_stuck_loop_holds__dropped_and_counted)
{
	json_t *counts;

	for (uint32_t i = 0; i < ASYNC_PENDING_MAX + 10; i++) {
		fake_async_qp(sides[0].qp, IBV_EVENT_QP_FATAL);
		turn(1);
	}
	counts = async_json();
	assert_int_equal(json_integer_value(json_object_get(counts, "dropped")), 10);
	json_decref(counts);
	turn(0);
	assert_int_equal(sides[0].n, ASYNC_PENDING_MAX);
}

/* A removed device's descriptor stays readable: whoever went on watching it would never sleep again. */
TEST(reading_fails__said_once_and_watched_no_more)
{
	fake_async_end(EIO);
	turn(0);
	assert_int_equal(lines, 1);
	assert_says(line, "fake0");
	assert_false(ev_is_active(&sides[0].async.io));
	turn(0);
	assert_int_equal(lines, 1);
}

TEST(stopped__events_of_the_device__reach_only_the_other)
{
	async_stop(&sides[0].async);
	fake_async_device(IBV_EVENT_DEVICE_FATAL);
	turn(1);
	turn(0);
	assert_int_equal(sides[0].n, 0);
	assert_int_equal(sides[1].n, 1);
}

TEST_EACH(set_up, tear_down)
