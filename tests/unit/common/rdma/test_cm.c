/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/rdma/cm.c: ids, events translated and acked, private data. The path and the programming of a
 * queue pair are in test_cm_path.c. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/rdma/cm.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/verbs_rig.h"

TEST(channel_new__made__non_blocking_and_closed_on_exec)
{
	assert_true(fcntl(cm_channel_fd(rig.cm), F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(cm_channel_fd(rig.cm), F_GETFD) & FD_CLOEXEC);
}

TEST(channel_new__library_fails__errno)
{
	struct cm_channel *c = NULL;

	fake_fail_next("rdma_create_event_channel", ENODEV);
	assert_int_equal(cm_channel_new(&c), -ENODEV);
	assert_null(c);
}

TEST(listen__port_zero__the_one_the_system_chose)
{
	struct addr a = unit_addr("127.0.0.1", 0);
	struct rdma_cm_id *listener;
	uint16_t port = 0;

	fake_cm.next_port = 45678;
	assert_int_equal(cm_listen(rig.cm, &a, 1024, &rig, &listener, &port), 0);
	assert_int_equal(port, 45678);
	assert_ptr_equal(listener->context, &rig);
	assert_int_equal(fake_cm_last(FAKE_CM_LISTEN)->number, 1024);
	assert_int_equal(listener->ps, RDMA_PS_TCP);
	cm_id_destroy(listener);
}

TEST(listen__each_call_fails__errno_and_no_id_left)
{
	struct addr a = unit_addr("127.0.0.1", 7472);
	unsigned k;

	for (k = 1; k < 10; k++) {
		struct rdma_cm_id *listener = NULL;
		uint16_t port;
		int ret;

		fake_fail_at(k, EADDRINUSE);
		ret = cm_listen(rig.cm, &a, 1, NULL, &listener, &port);
		if (!fake_failed()) {
			assert_int_equal(ret, 0);
			assert_int_equal(port, 7472);
			cm_id_destroy(listener);
			break;
		}
		assert_int_equal(ret, -EADDRINUSE);
		assert_null(listener);
		assert_int_equal(fake_cm_ids(), 1);
	}
	assert_int_equal(k, 4);
}

TEST(calls__library_fails__its_errno)
{
	struct addr peer = unit_addr("10.0.0.2", 7472);
	struct cm_conn_param p = { 0 };
	struct rdma_cm_id *other;

	fake_fail_next("rdma_create_id", EMFILE);
	assert_int_equal(cm_id_new(rig.cm, NULL, &other), -EMFILE);
	fake_fail_next("rdma_resolve_addr", ENETUNREACH);
	assert_int_equal(cm_resolve_addr(rig.id, NULL, &peer, 10), -ENETUNREACH);
	fake_fail_next("rdma_resolve_route", EINVAL);
	assert_int_equal(cm_resolve_route(rig.id, 10), -EINVAL);
	fake_fail_next("rdma_connect", ENOMEM);
	assert_int_equal(cm_connect(rig.id, &p), -ENOMEM);
	fake_fail_next("rdma_accept", ECONNRESET);
	assert_int_equal(cm_accept(rig.id, &p), -ECONNRESET);
	fake_fail_next("rdma_establish", EINVAL);
	assert_int_equal(cm_establish(rig.id), -EINVAL);
	fake_fail_next("rdma_disconnect", ENOTCONN);
	assert_int_equal(cm_disconnect(rig.id), -ENOTCONN);
	fake_fail_next("rdma_reject", EINVAL);
	cm_reject(rig.id, NULL, 0);
	assert_string_equal(fake_failed(), "rdma_reject");
}

TEST(resolve__addresses_and_timeouts__handed_over)
{
	struct addr local = unit_addr("10.0.0.1", 0), peer = unit_addr("10.0.0.2", 7472), l, p;

	assert_int_equal(cm_resolve_addr(rig.id, &local, &peer, 1500), 0);
	assert_int_equal(fake_cm_last(FAKE_CM_RESOLVE_ADDR)->number, 1500);
	assert_true(addr_same_host(&fake_cm_last(FAKE_CM_RESOLVE_ADDR)->src, &local));
	assert_int_equal(cm_resolve_route(rig.id, 700), 0);
	assert_int_equal(fake_cm_last(FAKE_CM_RESOLVE_ROUTE)->number, 700);
	assert_int_equal(cm_addresses(rig.id, &l, &p), 0);
	assert_true(addr_same_host(&l, &local));
	assert_int_not_equal(addr_port(&l), 0);
	assert_true(addr_same_host(&p, &peer));
	assert_int_equal(addr_port(&p), 7472);
	assert_ptr_equal(cm_device(rig.id), fake_context());
}

TEST(addresses__not_resolved__eafnosupport)
{
	struct addr l, p;

	assert_int_equal(cm_addresses(rig.id, &l, &p), -EAFNOSUPPORT);
}

TEST(connect_and_accept__parameters__as_given_with_our_retries)
{
	struct cm_conn_param p = { .qpn = 0x1234, .private_data = "secret", .private_bytes = 6,
				   .responder_resources = 1, .initiator_depth = 2 };
	const struct fake_cm_call *c;

	assert_int_equal(cm_connect(rig.id, &p), 0);
	c = fake_cm_last(FAKE_CM_CONNECT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(c->param.qp_num, 0x1234);
		assert_int_equal(c->param.private_data_len, 6);
		assert_memory_equal(c->private_data, "secret", 6);
		assert_int_equal(c->param.responder_resources, 1);
		assert_int_equal(c->param.initiator_depth, 2);
		assert_int_equal(c->param.srq, 1);
		/* On rxe 7 would try for ever, and dead peers would never be noticed. */
		assert_int_equal(c->param.retry_count, 6);
		assert_int_equal(cm_accept(rig.id, &p), 0);
		c = fake_cm_last(FAKE_CM_ACCEPT);
	}
}

TEST(next_event__none__zero)
{
	struct cm_event e;

	assert_int_equal(cm_next_event(rig.cm, &e), 0);
}

TEST(next_event__interrupted__zero_and_broken__errno)
{
	struct cm_event e;

	fake_fail_next("rdma_get_cm_event", EINTR);
	assert_int_equal(cm_next_event(rig.cm, &e), 0);
	fake_fail_next("rdma_get_cm_event", ENODEV);
	assert_int_equal(cm_next_event(rig.cm, &e), -ENODEV);
}

TEST(next_event__every_type__translated_with_context_and_acked)
{
	static const struct {
		enum rdma_cm_event_type from;
		enum cm_event_type to;
	} cases[] = {
		{ RDMA_CM_EVENT_ADDR_RESOLVED, CM_ADDR_RESOLVED },
		{ RDMA_CM_EVENT_ADDR_ERROR, CM_ADDR_ERROR },
		{ RDMA_CM_EVENT_ROUTE_RESOLVED, CM_ROUTE_RESOLVED },
		{ RDMA_CM_EVENT_ROUTE_ERROR, CM_ROUTE_ERROR },
		{ RDMA_CM_EVENT_CONNECT_RESPONSE, CM_CONNECT_RESPONSE },
		{ RDMA_CM_EVENT_CONNECT_ERROR, CM_CONNECT_ERROR },
		{ RDMA_CM_EVENT_UNREACHABLE, CM_UNREACHABLE },
		{ RDMA_CM_EVENT_REJECTED, CM_REJECTED },
		{ RDMA_CM_EVENT_ESTABLISHED, CM_ESTABLISHED },
		{ RDMA_CM_EVENT_DISCONNECTED, CM_DISCONNECTED },
		{ RDMA_CM_EVENT_DEVICE_REMOVAL, CM_DEVICE_REMOVED },
		{ RDMA_CM_EVENT_MULTICAST_JOIN, CM_OTHER },
		{ RDMA_CM_EVENT_MULTICAST_ERROR, CM_OTHER },
		{ RDMA_CM_EVENT_ADDR_CHANGE, CM_OTHER },
		{ RDMA_CM_EVENT_TIMEWAIT_EXIT, CM_OTHER },
		{ (enum rdma_cm_event_type)99, CM_OTHER },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct cm_event e;

		fake_cm_event(rig.id, cases[i].from, -(int)i, 0x100 + (uint32_t)i, NULL, 0);
		assert_int_equal(cm_next_event(rig.cm, &e), 1);
		assert_int_equal(e.type, cases[i].to);
		assert_ptr_equal(e.id, rig.id);
		assert_ptr_equal(e.context, &rig);
		assert_int_equal(e.status, -(int)i);
		assert_int_equal(e.qpn, 0x100 + i);
		assert_int_equal(e.private_bytes, 0);
		assert_int_equal(fake_cm_acked(), i + 1);
		assert_int_equal(cm_next_event(rig.cm, &e), 0);
	}
}

/* The new id is the receiver's, the context the listener's; acked, so either may be destroyed. */
TEST(next_event__connect_request__listeners_context_and_a_new_id)
{
	struct addr a = unit_addr("127.0.0.1", 7472), peer = unit_addr("127.0.0.1", 50000), l, p;
	struct rdma_cm_id *listener, *made;
	struct cm_event e;
	uint16_t port;
	int listener_context;

	assert_int_equal(cm_listen(rig.cm, &a, 16, &listener_context, &listener, &port), 0);
	made = fake_cm_request(listener, &peer, 0x55, "proof", 5);
	assert_int_equal(cm_next_event(rig.cm, &e), 1);
	assert_int_equal(e.type, CM_CONNECT_REQUEST);
	assert_ptr_equal(e.id, made);
	assert_ptr_equal(e.context, &listener_context);
	assert_int_equal(e.qpn, 0x55);
	assert_memory_equal(e.private_data, "proof", 5);
	assert_int_equal(cm_addresses(e.id, &l, &p), 0);
	assert_int_equal(addr_port(&p), 50000);
	assert_int_equal(addr_port(&l), 7472);
	cm_id_set_context(e.id, &rig);
	assert_ptr_equal(made->context, &rig);
	cm_id_destroy(listener);
	cm_id_destroy(e.id);
}

/* The fake overwrites the data at the ack: it must have been copied before. */
TEST(next_event__private_data__copied_before_the_ack)
{
	uint8_t data[CM_PRIVATE_MAX];
	struct cm_event e;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	fake_cm_event(rig.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, 1, data, sizeof(data));
	assert_int_equal(cm_next_event(rig.cm, &e), 1);
	assert_int_equal(e.private_bytes, sizeof(data));
	assert_memory_equal(e.private_data, data, sizeof(data));
}

TEST(next_event__more_private_data_than_fits__cut)
{
	uint8_t data[255];
	struct {
		struct cm_event e;
		uint8_t after[64];
	} guarded;

	memset(data, 0x11, sizeof(data));
	memset(&guarded, 0x22, sizeof(guarded));
	fake_cm_event(rig.id, RDMA_CM_EVENT_REJECTED, 28, 0, data, sizeof(data));
	assert_int_equal(cm_next_event(rig.cm, &guarded.e), 1);
	assert_int_equal(guarded.e.private_bytes, CM_PRIVATE_MAX);
	assert_memory_equal(guarded.e.private_data, data, CM_PRIVATE_MAX);
	assert_int_equal(guarded.after[0], 0x22);
}

TEST(next_event__several__in_order)
{
	struct cm_event e;

	for (int i = 0; i < 5; i++)
		fake_cm_event(rig.id, RDMA_CM_EVENT_UNREACHABLE, i, 0, NULL, 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(cm_next_event(rig.cm, &e), 1);
		assert_int_equal(e.status, i);
	}
}

TEST(destroy__null__nothing)
{
	cm_id_destroy(NULL);
	cm_channel_free(NULL);
}

TEST_EACH(verbs_rig_init_cm, verbs_rig_close)
