/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/verdict/breaking.c: which resource each kind of failure says ran out, and on which side. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "common/wire/frame.h"
#include "loadgen/verdict/breaking.h"
#include "loadgen/measurement/step.h"
#include "loadgen/worker/worker.h"

const struct worker_stats *worker_stats(const struct worker *w)
{
	fail_msg("asks a worker (%p)", (const void *)w);
	return NULL;
}

static const struct breaking_memory enough;
static const struct breaking_memory little = { .of_server = true, .text = "the server's machine had only 1.0 % left" };
static struct step *s;

static int set_up(void **state)
{
	(void)state;
	return step_new(500, 64, 1, &s);
}

static int tear_down(void **state)
{
	(void)state;
	step_free(s);
	s = NULL;
	return 0;
}

static void count(enum stage stage, enum fail_kind kind, int code, int n)
{
	const struct fail f = { .stage = stage, .kind = kind, .code = code };

	while (n--)
		fail_table_count(&s->failures, &f);
}

TEST(resource__of_each_failure__and_whose)
{
	static const struct {
		struct fail fail;
		const char *resource, *side;
	} cases[] = {
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, EMFILE }, "nofile", "generator" },
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, EADDRNOTAVAIL }, "ports", "generator" },
		{ { STAGE_QP_SETUP, FAIL_ERRNO, ENOMEM }, "queue_pairs", "generator" },
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, ENOMEM }, "memory", "generator" },
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, ECONNREFUSED }, "server", "server" },
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, EHOSTUNREACH }, "peer", "network" },
		{ { STAGE_TCP_CONNECT, FAIL_ERRNO, EBADMSG }, "unknown", "unknown" },
		{ { STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_FULL }, "max_clients", "server" },
		{ { STAGE_RDMA_CONNECT, FAIL_REFUSED, REFUSE_NO_RESOURCES }, "server_resources", "server" },
		{ { STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_BUSY }, "queue_pairs", "server" },
		{ { STAGE_PSN_EXCHANGE, FAIL_REFUSED, 999 }, "unknown", "server" },
		{ { STAGE_TLS_HANDSHAKE, FAIL_TIMEOUT, 0 }, "handshakes", "server" },
		{ { STAGE_RDMA_CONNECT, FAIL_TIMEOUT, 0 }, "time", "unknown" },
		{ { STAGE_TLS_HANDSHAKE, FAIL_CLOSED, 0 }, "handshakes", "server" },
		{ { STAGE_TRAFFIC, FAIL_CLOSED, 0 }, "server", "server" },
		{ { STAGE_RDMA_CONNECT, FAIL_CM_STATUS, -110 }, "time", "unknown" },
		{ { STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RNR_RETRY_EXC_ERR }, "receive_buffers", "server" },
		{ { STAGE_TRAFFIC, FAIL_WC_STATUS, IBV_WC_RETRY_EXC_ERR }, "peer", "network" },
		{ { STAGE_TRAFFIC, FAIL_PROTOCOL, PROTO_BAD_MESSAGE }, "unknown", "unknown" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *resource, *side;

		breaking_resource(&cases[i].fail, &resource, &side);
		assert_string_equal(resource, cases[i].resource);
		assert_string_equal(side, cases[i].side);
	}
}

TEST_WITH(breaking__scarcity_among_timeouts__is_what_explains, set_up, tear_down)
{
	struct breaking b;
	json_auto_t *o = NULL;

	s->connected_held = 300;
	count(STAGE_RDMA_CONNECT, FAIL_TIMEOUT, 0, 190);
	count(STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_FULL, 7);
	count(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, PROTO_BAD_FRAME, 3);
	breaking_of(s, STOP_ERROR_RATE, "500 clients: 200 not held", &enough, &b);
	assert_string_equal(b.resource, "max_clients");
	assert_string_equal(b.side, "server");
	assert_int_equal(b.count, 7);
	assert_non_null(strstr(b.text, "500 clients: 300 held; refused:full at psn_exchange (7 times)"));
	o = breaking_json(&b);
	assert_string_equal(json_string_value(json_object_get(o, "reason")), "error_rate");
	assert_string_equal(json_string_value(json_object_get(o, "code")), "refused:full");
	assert_int_equal(json_integer_value(json_object_get(o, "count")), 7);
}

TEST_WITH(breaking__server_lost__is_the_server_whatever_the_clients_say, set_up, tear_down)
{
	struct breaking b;

	count(STAGE_TCP_CONNECT, FAIL_ERRNO, EMFILE, 5);
	breaking_of(s, STOP_SERVER_LOST, "the server was killed by signal 9", &enough, &b);
	assert_string_equal(b.resource, "server");
	assert_string_equal(b.side, "server");
	assert_non_null(strstr(b.text, "killed by signal 9"));
}

TEST_WITH(breaking__no_failure_counted__reason_alone, set_up, tear_down)
{
	struct breaking b;
	json_auto_t *o = NULL;

	breaking_of(s, STOP_STEP_TIMEOUT, "", &enough, &b);
	assert_string_equal(b.resource, "time");
	assert_string_equal(b.side, "unknown");
	assert_non_null(strstr(b.text, "step_timeout"));
	o = breaking_json(&b);
	assert_true(json_is_null(json_object_get(o, "code")));
}

TEST_WITH(breaking__timeouts_on_a_machine_without_memory__is_the_memory, set_up, tear_down)
{
	struct breaking b;
	json_auto_t *o = NULL;

	s->connected_held = 300;
	count(STAGE_TCP_CONNECT, FAIL_TIMEOUT, 0, 190);
	breaking_of(s, STOP_ERROR_RATE, "", &little, &b);
	assert_string_equal(b.resource, "memory");
	assert_string_equal(b.side, "server");
	assert_string_equal(b.text, "500 clients: 300 held; the server's machine had only 1.0 % left, and clients "
			    "failed: timeout at tcp_connect (190 times)");
	o = breaking_json(&b);
	assert_string_equal(json_string_value(json_object_get(o, "code")), "timeout");
	assert_non_null(strstr(json_string_value(json_object_get(o, "meaning")), "add memory"));
}

TEST_WITH(breaking__machine_without_memory__only_if_slowness_can_be_the_cause, set_up, tear_down)
{
	struct breaking b;

	breaking_of(s, STOP_STEP_TIMEOUT, "", &little, &b);
	assert_string_equal(b.resource, "memory");
	assert_string_equal(b.text, "500 clients: 0 held; the server's machine had only 1.0 % left");
	count(STAGE_TLS_HANDSHAKE, FAIL_CERTIFICATE, 10, 5);
	breaking_of(s, STOP_ERROR_RATE, "", &little, &b);
	assert_string_equal(b.resource, "unknown");
	count(STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_FULL, 7);
	breaking_of(s, STOP_ERROR_RATE, "", &little, &b);
	assert_string_equal(b.resource, "max_clients");
	breaking_of(s, STOP_SERVER_LOST, "the server was killed by signal 9", &little, &b);
	assert_string_equal(b.resource, "server");
}
