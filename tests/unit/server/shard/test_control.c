/* Unit tests of server/shard/control.c and the control side of server/shard/boot.c: reports, marks,
 * refusals. */
#include "tests/unit/helpers/unit.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/clock.h"
#include "common/tls/tls.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/helpers/server_rig.h"

static void connect_and_handshake(struct peer *p)
{
	peer_connect(p);
	assert_true(peer_handshake(p));
}

static void assert_refused(struct peer *p, const void *frame, size_t n, const char *word)
{
	peer_send(p, frame, n);
	assert_int_equal(peer_answer(p), FRAME_REFUSE);
	assert_int_equal(p->refuse.code, REFUSE_BAD_REQUEST);
	if (!strstr(p->refuse.text, word))
		fail_msg("'%s' does not say '%s'", p->refuse.text, word);
	assert_int_equal(peer_answer(p), 0);
	peer_close(p);
}

static uint32_t ask(struct peer *p, enum control_what what, uint8_t *answer)
{
	uint8_t buf[FRAME_CONTROL_BYTES];

	peer_send(p, buf, frame_encode_control(what, buf));
	return peer_read_frame(p, answer);
}

static json_t *ask_json(struct peer *p, enum control_what what)
{
	uint8_t *answer = malloc(FRAME_REPORT_BYTES_MAX);
	uint32_t n = ask(p, what, answer);
	json_t *o;

	assert_true(n > FRAME_HEADER_BYTES);
	assert_int_equal(answer[5], FRAME_REPORT);
	o = json_loadb((char *)answer + FRAME_HEADER_BYTES, n - FRAME_HEADER_BYTES, 0, NULL);
	free(answer);
	assert_non_null(o);
	return o;
}

static json_int_t number(const json_t *o, const char *outer, const char *inner, const char *name)
{
	const json_t *v = json_object_get(o, outer);

	if (inner)
		v = json_object_get(v, inner);
	v = json_object_get(v, name);
	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void control__stats_and_info__reports_of_the_server(void **state)
{
	struct peer client, p;
	json_t *o;

	(void)state;
	server_rig_start();
	peer_go_live(&client, 0);
	connect_and_handshake(&p);
	o = ask_json(&p, CONTROL_STATS);
	server_only(CONN_ST_CONTROL);
	assert_int_equal(number(o, "clients", NULL, "connected"), 1);
	assert_int_equal(number(o, "events", NULL, "granted"), 1);
	assert_int_equal(number(o, "pools", "qp", "in_use"), 1);
	assert_int_equal(number(o, "pools", NULL, "psns_in_use"), 2);
	assert_int_equal(number(o, "pools", NULL, "admitted"), 1);
	assert_int_equal(number(o, "stages_ns", "tls_accept", "count"), 2);
	json_decref(o);
	o = ask_json(&p, CONTROL_INFO);
	assert_int_equal(number(o, "config", NULL, "max_clients"), 4);
	assert_int_equal(number(o, "config", NULL, "max_handshakes"), 16);
	assert_int_equal(json_integer_value(json_object_get(o, "wire_version")), 1);
	json_decref(o);
	peer_close(&p);
	assert_int_equal(server_closed(CLOSE_CONTROL_END), 1);
	assert_int_equal(server_n(CONN_ST_CONTROL), 0);
}

static void control__stats__handshakes_of_both_kinds_and_by_shard(void **state)
{
	struct peer client, p;
	json_t *o, *shards;

	(void)state;
	srv.peers_resume = true;
	server_rig_start();
	for (int i = 0; i < 3; i++) {
		struct tls_session *newer;

		connect_and_handshake(&client);
		peer_hello(&client, FRAME_FEATURE_TICKET);
		assert_int_equal(peer_answer(&client), FRAME_GRANT);
		newer = tls_take_session(client.tls);
		tls_session_free(srv.offer);
		srv.offer = newer;
		peer_close(&client);
	}
	tls_session_free(srv.offer);
	srv.offer = NULL;
	connect_and_handshake(&p);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "events", NULL, "handshakes_full"), 2);
	assert_int_equal(number(o, "events", NULL, "handshakes_resumed"), 2);
	assert_int_equal(number(o, "events", NULL, "tickets"), 3);
	assert_int_equal(number(o, "stages_ns", "tls_accept", "count"), 2);
	assert_int_equal(number(o, "stages_ns", "tls_accept_resumed", "count"), 2);
	assert_int_equal(number(o, "stages_ns", "qp_recycle", "count"), 0);
	shards = json_object_get(o, "shards");
	assert_int_equal(json_array_size(shards), 1);
	shards = json_array_get(shards, 0);
	assert_int_equal(json_integer_value(json_object_get(shards, "handshakes_full")), 2);
	assert_int_equal(json_integer_value(json_object_get(shards, "handshakes_resumed")), 2);
	assert_int_equal(json_integer_value(json_object_get(shards, "connected")), 0);
	json_decref(o);
	peer_close(&p);
}

static void control__stats__connected_by_shard_and_queue_pairs_recycled(void **state)
{
	struct peer client[2], p;
	json_t *o;

	(void)state;
	server_rig_start();
	peer_go_live(&client[0], 0);
	peer_go_live(&client[1], 0);
	fake_cm_event(client[0].id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	server_turns(4);
	connect_and_handshake(&p);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "pools", "qp", "quarantined"), 1);
	assert_int_equal(number(o, "pools", "qp", "recycled"), 0);
	json_decref(o);
	server_rest(6 * NS_PER_S);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "pools", "qp", "quarantined"), 0);
	assert_int_equal(number(o, "pools", "qp", "recycled"), 1);
	assert_int_equal(number(o, "stages_ns", "qp_recycle", "count"), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(o, "shards"), 0),
							    "connected")), 1);
	json_decref(o);
	peer_close(&p);
}

static void control__info__how_sessions_windows_and_probes_are_set(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct peer p;
		json_t *o, *config;

		srv.cfg.tls_resume = srv.cfg.windows = i;
		srv.cfg.probe_interval_ns = (uint64_t)i * 2500 * NS_PER_MS;
		server_rig_start();
		connect_and_handshake(&p);
		o = ask_json(&p, CONTROL_INFO);
		config = json_object_get(o, "config");
		assert_true(json_is_boolean(json_object_get(config, "tls_resume")));
		assert_int_equal(json_is_true(json_object_get(config, "tls_resume")), i);
		assert_true(json_is_boolean(json_object_get(config, "windows")));
		assert_int_equal(json_is_true(json_object_get(config, "windows")), i);
		assert_true(json_is_real(json_object_get(config, "probe_interval_s")));
		assert_true(json_real_value(json_object_get(config, "probe_interval_s")) == 2.5 * i);
		json_decref(o);
		peer_close(&p);
		server_rig_stop(state);
		assert_int_equal(server_rig_init(state), 0);
	}
}

static const char *text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	assert_non_null(text);
	return text;
}

/* What was there with one rail says the first one's. */
static void control__info__rails_and_what_they_have_together(void **state)
{
	struct peer p;
	json_t *o, *rails, *env;

	(void)state;
	srv.cfg.n_rails = 2;
	assert_int_equal(addr_parse("fd00::7", 0, &srv.cfg.rails[1].addr), 0);
	server_rig_start();
	strcpy(srv.server.devices[1].name, "fake1");
	connect_and_handshake(&p);
	o = ask_json(&p, CONTROL_INFO);
	rails = json_object_get(o, "rails");
	assert_int_equal(json_array_size(rails), 2);
	assert_string_equal(text_of(json_array_get(rails, 0), "device"), "fake0");
	assert_string_equal(text_of(json_array_get(rails, 0), "address"), "127.0.0.1");
	assert_string_equal(text_of(json_array_get(rails, 1), "device"), "fake1");
	assert_string_equal(text_of(json_array_get(rails, 1), "address"), "fd00::7");
	env = json_object_get(o, "environment");
	assert_string_equal(text_of(json_object_get(env, "rdma_device"), "name"), "fake0");
	assert_int_equal(number(o, "config", NULL, "max_clients"), 4);
	assert_int_equal(number(o, "config", NULL, "max_handshakes"), 32);
	assert_int_equal(number(o, "config", NULL, "receive_buffers"), 32);
	json_decref(o);
	peer_close(&p);
}

static void control__mark__later_stage_counts_start_there(void **state)
{
	struct peer p, client;
	json_t *o;

	(void)state;
	server_rig_start();
	connect_and_handshake(&p);
	json_decref(ask_json(&p, CONTROL_MARK));
	json_decref(ask_json(&p, CONTROL_MARK));
	peer_get_grant(&client, 0);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "stages_ns", "tls_accept", "count"), 1);
	assert_int_equal(number(o, "stages_ns", "psn_generate", "count"), 1);
	json_decref(o);
	peer_close(&p);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	server_assert_all_back();
}

static void control__bad_request_or_a_hello__refused(void **state)
{
	static const struct frame_hello hello = { .message_bytes = 64, .queue_depth = 4, .psn = 1 };
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;

	(void)state;
	server_rig_start();
	connect_and_handshake(&p);
	frame_encode_control(CONTROL_STATS, buf);
	buf[9] = 4;
	assert_refused(&p, buf, FRAME_CONTROL_BYTES, "CONTROL request");
	connect_and_handshake(&p);
	json_decref(ask_json(&p, CONTROL_STATS));
	buf[9] = 0;
	assert_refused(&p, buf, FRAME_CONTROL_BYTES, "CONTROL request");
	connect_and_handshake(&p);
	json_decref(ask_json(&p, CONTROL_STATS));
	assert_refused(&p, buf, frame_encode_hello(&hello, buf), "unexpected frame");
	server_assert_all_back();
}

static void control__idle_too_long__ended(void **state)
{
	struct peer p;

	(void)state;
	server_rig_start();
	connect_and_handshake(&p);
	json_decref(ask_json(&p, CONTROL_MARK));
	server_expire(server_only(CONN_ST_CONTROL));
	assert_int_equal(server_closed(CLOSE_CONTROL_END), 1);
	assert_int_equal(fail_table_total(&srv.shard->stats.failures), 0);
	peer_abort(&p);
	server_assert_all_back();
}

/* Clients that only control do not count as clients, and may be there when the server is full. */
static void control__server_full__answers(void **state)
{
	struct peer p[4], control;

	(void)state;
	server_rig_start();
	for (int i = 0; i < 4; i++)
		peer_go_live(&p[i], 0);
	connect_and_handshake(&control);
	json_decref(ask_json(&control, CONTROL_STATS));
	assert_int_equal(srv.server.admitted[0], 4);
	peer_close(&control);
}

#define CONTROL_TEST(f) cmocka_unit_test_setup_teardown(f, server_rig_init, server_rig_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTROL_TEST(control__stats_and_info__reports_of_the_server),
		CONTROL_TEST(control__stats__handshakes_of_both_kinds_and_by_shard),
		CONTROL_TEST(control__stats__connected_by_shard_and_queue_pairs_recycled),
		CONTROL_TEST(control__info__how_sessions_windows_and_probes_are_set),
		CONTROL_TEST(control__info__rails_and_what_they_have_together),
		CONTROL_TEST(control__mark__later_stage_counts_start_there),
		CONTROL_TEST(control__bad_request_or_a_hello__refused),
		CONTROL_TEST(control__idle_too_long__ended),
		CONTROL_TEST(control__server_full__answers),
	};

	return cmocka_run_group_tests_name("server_control", tests, server_rig_group_setup,
					   server_rig_group_teardown);
}
