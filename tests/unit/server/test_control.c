/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/control.c, server/report.c and server/tables/handover.c: control sessions come from the shard
 * and are answered on the main thread's loop. */
#include "tests/unit/helpers/unit.h"

#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include <jansson.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/hist/hist.h"
#include "common/rdma/async.h"
#include "common/sizing/sizes.h"
#include "common/tls/tls.h"
#include "server/control.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

static ev_timer *deadline;	/* the last one that was started on the main thread's loop */
static unsigned dumps;		/* texts made of JSON */
static bool no_memory;		/* none can be made */

void ev_timer_start(struct ev_loop *loop, ev_timer *w) EV_NOEXCEPT
{
	void (*real)(struct ev_loop *, ev_timer *);
	bool next_turn = w->at <= 0;

	*(void **)&real = dlsym(RTLD_NEXT, "ev_timer_start");
	real(loop, w);
	if (loop == srv.main_loop && !next_turn)
		deadline = w;
}

size_t json_dumpb(const json_t *o, char *buf, size_t size, size_t flags)
{
	size_t (*real)(const json_t *, char *, size_t, size_t);

	*(void **)&real = dlsym(RTLD_NEXT, "json_dumpb");
	dumps++;
	return no_memory ? 0 : real(o, buf, size, flags);
}

/* As if the main thread's only deadline had passed; it was set to `s` seconds. */
static void expire(double s)
{
	assert_true(ev_is_active(deadline));
	assert_true(fabs(ev_timer_remaining(srv.main_loop, deadline) - s) < 1);
	ev_timer_stop(srv.main_loop, deadline);
	ev_feed_event(srv.main_loop, deadline, EV_TIMER);
	ev_run(srv.main_loop, EVRUN_NOWAIT);
}

static json_t *ask_json(struct peer *p, enum control_what what)
{
	uint8_t buf[FRAME_CONTROL_BYTES];

	peer_send(p, buf, frame_encode_control(what, buf));
	return peer_read_report(p);
}

/* A session that has had its first answer. */
static void open_session(struct peer *p, enum control_what what)
{
	peer_shake_hands(p);
	json_decref(ask_json(p, what));
}

static void open_session_from(const char *address, struct peer *p, enum control_what what)
{
	srv.peers_from = address;
	open_session(p, what);
}

static void watch_from(const char *address, struct peer *p)
{
	uint8_t buf[FRAME_CONTROL_BYTES];

	srv.peers_from = address;
	peer_shake_hands(p);
	peer_send(p, buf, frame_encode_watch(100, buf));
}

static json_int_t number(const json_t *o, const char *path)
{
	assert_true(json_is_integer(json_at(o, path)));
	return json_integer_value(json_at(o, path));
}

TEST(control__stats_and_info__reports_of_the_server)
{
	struct peer client, p;
	struct sysinfo machine;
	json_t *o;

	server_rig_start();
	fake_async_device(IBV_EVENT_PORT_ACTIVE);
	peer_go_live(&client, 0);
	peer_shake_hands(&p);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(server_controls(), 1);
	assert_int_equal(number(o, "clients.connected"), 1);
	assert_int_equal(number(o, "clients.handshakes"), 0);
	assert_int_equal(number(o, "clients.control"), 1);
	assert_int_equal(number(o, "events.closed.handed_over"), 1);
	assert_int_equal(number(o, "events.granted"), 1);
	assert_int_equal(number(o, "events.device.port_active"), async_count(IBV_EVENT_PORT_ACTIVE));
	assert_int_equal(number(o, "pools.qp.in_use"), 1);
	assert_int_equal(number(o, "pools.psns_in_use"), 2);
	assert_int_equal(number(o, "pools.admitted"), 1);
	assert_int_equal(number(o, "stages_ns.tls_accept.count"), 2);
	assert_int_equal(sysinfo(&machine), 0);
	assert_in_range(number(o, "resources.machine_available_bytes"), 1, machine.totalram * machine.mem_unit);
	assert_true(json_is_array(json_object_get(o, "failures")));
	json_decref(o);
	o = ask_json(&p, CONTROL_INFO);
	assert_int_equal(number(o, "config.max_clients"), 4);
	assert_int_equal(number(o, "config.max_handshakes"), 16);
	assert_int_equal(number(o, "wire_version"), 3);
	json_decref(o);
	peer_close(&p);
	server_until(server_closed(CLOSE_CONTROL_END) == 1);
	assert_int_equal(server_controls(), 0);
	assert_true(counter_get(&srv.server.control_stats.tls_bytes_in) >= FRAME_CONTROL_BYTES);
	assert_true(counter_get(&srv.server.control_stats.tls_bytes_out) > 1000);
}

/* Reading a figure from /proc takes a descriptor. */
TEST(control__stats_without_a_descriptor_left__null_for_what_cannot_be_read)
{
	static const char *const from_proc[] = { "cpu_user_s", "rss_bytes", "fds", "threads", "machine_kernel_bytes",
		"machine_available_bytes" };
	struct peer p;
	uint64_t before;
	json_auto_t *o = NULL;

	server_rig_start();
	open_session(&p, CONTROL_INFO);
	before = unit_limit_descriptors(0);
	o = ask_json(&p, CONTROL_STATS);
	unit_limit_descriptors(before);
	for (size_t i = 0; i < N_ELEMENTS(from_proc); i++)
		assert_true(json_is_null(json_object_get(json_at(o, "resources"), from_proc[i])));
	assert_true(number(o, "resources.qps") > 0);
	peer_close(&p);
}

TEST(control__no_memory_for_a_report__refused_and_the_next_is_answered)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct peer p;

	server_start_hello(&p);
	no_memory = true;
	peer_assert_refused(&p, buf, frame_encode_control(CONTROL_INFO, buf), REFUSE_NO_RESOURCES, "");
	no_memory = false;
	assert_int_equal(counter_get(&srv.server.control_stats.refused[REFUSE_NO_RESOURCES]), 1);
	open_session(&p, CONTROL_INFO);
	peer_close(&p);
}

/* The shard only publishes its gauges, when it is asked to: no JSON is made in its turn. */
TEST(control__stats__nothing_of_it_on_the_shard)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct peer client, p;
	unsigned before = dumps;

	server_start_live(&client, 0);
	peer_shake_hands(&p);
	srv.main_sleeps = true;
	peer_send(&p, buf, frame_encode_control(CONTROL_STATS, buf));
	server_until(server_controls() == 1);
	/* The shard is done with it. */
	assert_int_equal(server_n(CONN_ST_HELLO), 0);
	assert_int_equal(srv.shard->tls_open, 0);
	assert_int_equal(server_closed(CLOSE_HANDED_OVER), 1);
	counter_set(&srv.shard->stats.qps_in_use, 99);
	/* The main thread does not answer before the shard has published ... */
	for (int i = 0; i < 3; i++)
		ev_run(srv.main_loop, EVRUN_NOWAIT);
	assert_int_equal(dumps, before);
	assert_int_equal(srv.shard->published, 0);
	/* ... which is all that the shard does. */
	ev_run(srv.shard->loop, EVRUN_NOWAIT);
	assert_int_equal(srv.shard->published, 1);
	assert_int_equal(counter_get(&srv.shard->stats.qps_in_use), 1);
	assert_int_equal(dumps, before);
	ev_run(srv.main_loop, EVRUN_NOWAIT);
	assert_int_equal(dumps, before + 2);
	json_decref(peer_read_report(&p));
	srv.main_sleeps = false;
	peer_close(&p);
}

/* A shard that is stuck, or one that has ended: the report shows what it published last. */
TEST(control__shard_does_not_publish__answered_after_a_second_or_at_its_end)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct peer p;
	size_t put;

	server_rig_start();
	open_session(&p, CONTROL_STATS);
	for (int i = 0; i < 2; i++) {
		unsigned before = dumps;

		assert_int_equal(tls_write(p.tls, buf, frame_encode_control(CONTROL_STATS, buf), &put), TLS_DONE);
		assert_int_equal(tls_flush(p.tls), TLS_DONE);
		for (int turns = 0; turns < 200 && !ev_async_pending(&srv.shard->publish_now); turns++)
			ev_run(srv.main_loop, EVRUN_ONCE);
		assert_int_equal(dumps, before);
		if (i == 0) {
			expire(1);
		} else {
			atomic_store(&srv.shard->ended, true);
			srv.server.wake_main(NULL);
			ev_run(srv.main_loop, EVRUN_NOWAIT);
		}
		assert_int_equal(dumps, before + 2);
		json_decref(peer_read_report(&p));
	}
	/* All have ended. */
	json_decref(ask_json(&p, CONTROL_MARK));
	peer_close(&p);
}

TEST(control__stats__handshakes_of_both_kinds_and_by_shard)
{
	struct peer client, p;
	json_t *o, *shard;

	srv.peers_resume = true;
	server_rig_start();
	for (int i = 0; i < 3; i++) {
		peer_ask_grant(&client, FRAME_FEATURE_TICKET);
		tls_session_free(srv.offer);
		srv.offer = tls_take_session(client.tls);
		peer_close(&client);
	}
	tls_session_free(srv.offer);
	srv.offer = NULL;
	peer_shake_hands(&p);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "events.handshakes_full"), 2);
	assert_int_equal(number(o, "events.handshakes_resumed"), 2);
	assert_int_equal(number(o, "events.tickets"), 3);
	assert_int_equal(number(o, "stages_ns.tls_accept.count"), 2);
	assert_int_equal(number(o, "stages_ns.tls_accept_resumed.count"), 2);
	assert_int_equal(number(o, "stages_ns.qp_recycle.count"), 0);
	assert_int_equal(json_array_size(json_at(o, "shards")), 1);
	shard = json_array_get(json_at(o, "shards"), 0);
	assert_int_equal(number(shard, "handshakes_full"), 2);
	assert_int_equal(number(shard, "handshakes_resumed"), 2);
	assert_int_equal(number(shard, "connected"), 0);
	json_decref(o);
	peer_close(&p);
}

TEST(control__stats__connected_by_shard_and_queue_pairs_recycled)
{
	struct peer client[2], p;
	json_t *o;

	server_start_live(&client[0], 0);
	peer_go_live(&client[1], 0);
	peer_disconnect(&client[0]);
	peer_shake_hands(&p);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "pools.qp.quarantined"), 1);
	assert_int_equal(number(o, "pools.qp.recycled"), 0);
	json_decref(o);
	server_rest(6 * NS_PER_S);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "pools.qp.quarantined"), 0);
	assert_int_equal(number(o, "pools.qp.recycled"), 1);
	assert_int_equal(number(o, "stages_ns.qp_recycle.count"), 1);
	assert_int_equal(number(json_array_get(json_at(o, "shards"), 0), "connected"), 1);
	json_decref(o);
	peer_close(&p);
}

TEST(control__info__how_sessions_windows_and_probes_are_set)
{
	for (int i = 0; i < 2; i++) {
		struct peer p;
		json_t *o;

		srv.cfg.tls_resume = srv.cfg.windows = i;
		srv.cfg.probe_interval_ns = (uint64_t)i * 2500 * NS_PER_MS;
		srv.cfg.tuning.retry.ack_timeout = (uint8_t)(8 + i);
		srv.cfg.tuning.retry_count = 1 + (uint64_t)i;
		server_start_hello(&p);
		o = ask_json(&p, CONTROL_INFO);
		assert_true(json_equal(json_at(o, "config.tls_resume"), json_boolean(i)));
		assert_true(json_equal(json_at(o, "config.windows"), json_boolean(i)));
		assert_true(json_is_real(json_at(o, "config.probe_interval_s")));
		assert_true(json_number_at(o, "config.probe_interval_s") == 2.5 * i);
		assert_int_equal(number(o, "config.ack_timeout_ns"), 4096 << (8 + i));
		assert_int_equal(number(o, "config.retry_count"), 1 + i);
		json_decref(o);
		peer_close(&p);
		server_rig_again(state);
	}
}

/* Members that describe one rail describe the first one. */
TEST(control__info__rails_and_what_they_have_together)
{
	struct peer p;
	json_t *o, *rails;

	srv.cfg.n_rails = 2;
	assert_int_equal(addr_parse("fd00::7", 0, &srv.cfg.rails[1].addr), 0);
	server_rig_start();
	strcpy(srv.server.devices[1].name, "fake1");
	peer_shake_hands(&p);
	o = ask_json(&p, CONTROL_INFO);
	rails = json_object_get(o, "rails");
	assert_int_equal(json_array_size(rails), 2);
	assert_string_equal(json_text_at(json_array_get(rails, 0), "device"), "fake0");
	assert_string_equal(json_text_at(json_array_get(rails, 0), "address"), "127.0.0.1");
	assert_string_equal(json_text_at(json_array_get(rails, 1), "device"), "fake1");
	assert_string_equal(json_text_at(json_array_get(rails, 1), "address"), "fd00::7");
	assert_string_equal(json_text_at(o, "environment.rdma_device.name"), "fake0");
	assert_int_equal(number(o, "config.max_clients"), 4);
	assert_int_equal(number(o, "config.max_handshakes"), 32);
	assert_int_equal(number(o, "config.receive_buffers"), 32);
	json_decref(o);
	peer_close(&p);
}

SERVED_TEST(control__mark__later_stage_counts_start_there)
{
	struct peer p, client;
	json_auto_t *o = NULL;

	open_session(&p, CONTROL_MARK);
	json_decref(ask_json(&p, CONTROL_MARK));
	peer_get_grant(&client, 0);
	o = ask_json(&p, CONTROL_STATS);
	assert_int_equal(number(o, "stages_ns.tls_accept.count"), 1);
	assert_int_equal(number(o, "stages_ns.psn_generate.count"), 1);
	peer_close(&p);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
}

/* Bytes of the heap that are in use, of large blocks too. */
static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Six histograms of 224 KiB each, mostly zeros. */
SERVED_TEST(control__marks__take_little_and_all_together_no_more_than_they_may)
{
	struct peer client, p;
	uint8_t buf[FRAME_CONTROL_BYTES];
	size_t before, bytes;

	peer_get_grant(&client, 0);
	for (uint64_t i = 0; i < 1000; i++)
		hist_record(srv.shard->stats.stages[SS_TLS_ACCEPT], i * 7919);
	open_session(&p, CONTROL_STATS);
	before = heap_bytes();
	json_decref(ask_json(&p, CONTROL_MARK));
	bytes = srv.server.marks_bytes;
	assert_in_range(bytes, 1000, 64 << 10);
	assert_in_range(heap_bytes() - before, 0, 64 << 10);
	json_decref(ask_json(&p, CONTROL_MARK));
	assert_int_equal(srv.server.marks_bytes, bytes);
	srv.server.marks_bytes = HELD_MARKS_BYTES + 1;
	peer_assert_refused(&p, buf, frame_encode_control(CONTROL_MARK, buf), REFUSE_NO_RESOURCES,
			    "marks of control sessions");
	server_until(server_controls() == 0);
	assert_int_equal(srv.server.marks_bytes, HELD_MARKS_BYTES + 1 - bytes);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
}

SERVED_TEST(control__bad_request_or_a_hello__refused)
{
	static const struct frame_hello hello = { .message_bytes = 64, .queue_depth = 4, .psn = 1 };
	uint8_t buf[FRAME_HELLO_BYTES];
	struct peer p;

	peer_shake_hands(&p);
	frame_encode_control(CONTROL_STATS, buf);
	buf[9] = 5;
	peer_assert_refused(&p, buf, FRAME_CONTROL_BYTES, REFUSE_BAD_REQUEST, "CONTROL request");
	open_session(&p, CONTROL_STATS);
	buf[9] = 0;
	peer_assert_refused(&p, buf, FRAME_CONTROL_BYTES, REFUSE_BAD_REQUEST, "CONTROL request");
	open_session(&p, CONTROL_STATS);
	peer_assert_refused(&p, buf, frame_encode_hello(&hello, buf), REFUSE_BAD_REQUEST, "unexpected frame");
}

SERVED_TEST(control__idle_too_long__ended)
{
	struct peer p;

	open_session(&p, CONTROL_MARK);
	assert_int_equal(server_controls(), 1);
	expire(600);
	assert_int_equal(server_closed(CLOSE_CONTROL_END), 1);
	assert_int_equal(server_controls(), 0);
	assert_int_equal(fail_table_total(&srv.shard->stats.failures), 0);
	assert_int_equal(fail_table_total(&srv.server.control_stats.failures), 0);
	peer_abort(&p);
}

/* A report is dumped twice, for its length and into its frame. */
static unsigned answers_in_a_turn(void)
{
	unsigned before = dumps;

	ev_run(srv.main_loop, EVRUN_NOWAIT);
	return (dumps - before) / 2;
}

/* Other sessions need not wait until all of these requests are answered. */
SERVED_TEST(control__requests_at_once__one_answer_in_a_turn)
{
	uint8_t frames[4][FRAME_CONTROL_BYTES];
	unsigned answers = 0;
	struct peer p;
	size_t put;

	open_session(&p, CONTROL_INFO);
	for (int i = 0; i < 4; i++)
		frame_encode_control(CONTROL_INFO, frames[i]);
	/* peer_send would turn the loop. */
	assert_int_equal(tls_write(p.tls, frames, sizeof(frames), &put), TLS_DONE);
	assert_int_equal(tls_flush(p.tls), TLS_DONE);
	for (int i = 0; i < 1000000 && answers < 4; i++) {
		unsigned n = answers_in_a_turn();

		assert_in_range(n, 0, 1);
		answers += n;
	}
	assert_int_equal(answers, 4);
	peer_abort(&p);
	server_until(server_controls() == 0);
}

/* Clients that only control do not count as clients, and may be there when the server is full. */
TEST(control__server_full__answers)
{
	struct peer p[4], control;

	server_start_full(p);
	open_session(&control, CONTROL_STATS);
	assert_int_equal(srv.server.admitted[0], 4);
	peer_close(&control);
}

TEST(control__refused_client_stays__closed_at_its_deadline)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct peer p;

	server_rig_start();
	open_session(&p, CONTROL_INFO);
	frame_encode_control(CONTROL_STATS, buf);
	buf[4] = p.version = 1;
	peer_send(&p, buf, FRAME_CONTROL_BYTES);
	assert_int_equal(peer_answer(&p), FRAME_REFUSE);
	assert_int_equal(p.refuse.code, REFUSE_BAD_VERSION);
	assert_says(p.refuse.text, "the server speaks wire version 3, the client 1:");
	assert_int_equal(counter_get(&srv.server.control_stats.refused[REFUSE_BAD_VERSION]), 1);
	expire(2);
	assert_int_equal(server_closed(CLOSE_REFUSED), 1);
	assert_int_equal(server_controls(), 0);
	peer_abort(&p);
}

static void assert_busy(void)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct peer p;

	peer_shake_hands(&p);
	peer_assert_refused(&p, buf, frame_encode_control(CONTROL_STATS, buf), REFUSE_BUSY, "control sessions");
}

/* Takes all seats that are free, each for another address. */
static void take_seats(void)
{
	for (uint64_t i = server_controls(); i < CONTROL_SESSIONS_MAX; i++)
		srv.server.handovers.seats[i] = i + 1;
}

/* Only seats that the test took itself are left, so many. */
static void give_seats_back(uint32_t left)
{
	server_until(server_controls() == left);
	for (uint64_t i = 0; i < CONTROL_SESSIONS_MAX; i++)
		srv.server.handovers.seats[i] = 0;
	server_assert_all_back();
}

TEST(control__as_many_sessions_as_there_may_be__refused_as_busy)
{
	struct peer p;

	server_rig_start();
	take_seats();
	assert_busy();
	server_until(server_controls() == CONTROL_SESSIONS_MAX);
	srv.server.handovers.seats[3] = 0;
	open_session(&p, CONTROL_STATS);
	assert_int_equal(server_controls(), CONTROL_SESSIONS_MAX);
	peer_close(&p);
	give_seats_back(CONTROL_SESSIONS_MAX - 1);
}

/* Somebody has as many addresses as there may be sessions. */
TEST(control__all_seats_taken__the_longest_idle_makes_room_for_another_address)
{
	struct peer first, second, watcher, p;

	server_rig_start();
	watch_from("127.0.0.10", &watcher);
	srv.peers_from = "127.0.0.11";
	peer_shake_hands(&first);
	json_decref(ask_json(&first, CONTROL_MARK));	/* it measures */
	clock_move(NS_PER_S);
	open_session_from("127.0.0.12", &second, CONTROL_STATS);
	take_seats();
	srv.peers_from = "127.0.0.13";
	assert_busy();
	clock_move(4 * NS_PER_S);
	open_session(&p, CONTROL_STATS);
	assert_int_equal(counter_get(&srv.server.control_stats.closed[CLOSE_CROWDED_OUT]), 1);
	assert_int_equal(server_controls(), CONTROL_SESSIONS_MAX);
	json_decref(ask_json(&first, CONTROL_STATS));
	assert_int_equal(peer_answer(&second), 0);
	peer_close(&first);
	peer_close(&second);
	peer_close(&p);
	peer_abort(&watcher);
	give_seats_back(CONTROL_SESSIONS_MAX - 3);
}

/* A client with many addresses holds all sessions, and none of them is ever idle. */
TEST(control__all_seats_watch__the_newest_makes_room_for_the_own_machine)
{
	static uint8_t report[FRAME_REPORT_BYTES_MAX];
	struct peer watchers[2], p;
	bool ended = false;

	server_rig_start();
	for (int i = 0; i < 2; i++) {
		watch_from(i ? "127.0.0.11" : "127.0.0.10", &watchers[i]);
		assert_true(peer_read_frame(&watchers[i], report) > 0);
	}
	take_seats();
	srv.peers_from = "127.0.0.12";
	assert_busy();
	srv.peers_from = NULL;
	open_session(&p, CONTROL_STATS);
	assert_int_equal(counter_get(&srv.server.control_stats.closed[CLOSE_CROWDED_OUT]), 1);
	assert_int_equal(server_controls(), CONTROL_SESSIONS_MAX);
	assert_true(peer_read_frame(&watchers[0], report) > 0);
	for (int i = 0; i < 50 && !ended; i++)
		ended = peer_read_frame(&watchers[1], report) == 0;
	assert_true(ended);
	peer_close(&p);
	peer_abort(&watchers[0]);
	peer_abort(&watchers[1]);
	give_seats_back(CONTROL_SESSIONS_MAX - 2);
}

/* An address that holds as many sessions as it may does not keep others from asking. */
TEST(control__one_address_has_all_it_may__another_is_answered)
{
	struct peer p;
	struct addr here = unit_addr("127.0.0.1", 0);

	server_rig_start();
	for (uint32_t i = 0; i < CONTROL_SESSIONS_MAX - CONTROL_SESSIONS_RESERVED; i++)
		srv.server.handovers.seats[i] = addr_network(&here);
	assert_busy();
	open_session_from("127.0.0.12", &p, CONTROL_STATS);
	peer_close(&p);
	give_seats_back(CONTROL_SESSIONS_MAX - CONTROL_SESSIONS_RESERVED);
}

TEST(control__limit_of_an_address__holds)
{
	struct peer p[2];

	srv.cfg.max_per_address = 2;
	server_rig_start();
	for (int i = 0; i < 2; i++) {
		open_session(&p[i], CONTROL_STATS);
	}
	assert_busy();
	peers_abort(p, 2);
	server_until(server_controls() == 0);
	server_assert_all_back();
}

/* Requests that did not wait for the answers of those before. */
TEST(control__requests_in_advance__sixteen_are_answered)
{
	static const struct { int requests, answers; } table[] = { { 10, 10 }, { 16, 16 }, { 17, 16 }, { 40, 16 } };
	uint8_t *answer = malloc(FRAME_REPORT_BYTES_MAX);

	server_rig_start();
	for (size_t i = 0; i < N_ELEMENTS(table); i++) {
		uint8_t buf[40 * FRAME_CONTROL_BYTES];
		int answers = 0;
		struct peer p;

		peer_shake_hands(&p);
		for (int j = 0; j < table[i].requests; j++)
			frame_encode_control(j % 2 ? CONTROL_INFO : CONTROL_STATS, buf + j * FRAME_CONTROL_BYTES);
		peer_send(&p, buf, (size_t)table[i].requests * FRAME_CONTROL_BYTES);
		while (answers < table[i].answers && peer_read_frame(&p, answer))
			answers++;
		assert_int_equal(answers, table[i].answers);
		server_until(server_controls() == (table[i].requests == table[i].answers));
		peer_close(&p);
		server_until(server_controls() == 0);
	}
	assert_int_equal(server_closed(CLOSE_CONTROL_END), 2);
	assert_int_equal(server_closed(CLOSE_FAILED), 2);
	assert_int_equal(fail_table_total(&srv.server.control_stats.failures), 2);
	assert_int_equal(srv.server.control_stats.failures.rows[0].fail.kind, FAIL_PROTOCOL);
	assert_int_equal(srv.server.control_stats.failures.rows[0].fail.code, PROTO_UNEXPECTED_FRAME);
	free(answer);
}

/* Sessions that are served, that wait for the shard, and that are still on their way. */
TEST(stop__sessions_in_every_state__closed_with_a_goodbye)
{
	uint8_t buf[FRAME_CONTROL_BYTES], byte;
	struct peer served, waits, comes;
	size_t got;

	server_start_hello(&served);
	json_decref(ask_json(&served, CONTROL_MARK));
	peer_shake_hands(&waits);
	peer_shake_hands(&comes);
	srv.main_sleeps = true;
	peer_send(&waits, buf, frame_encode_control(CONTROL_STATS, buf));
	server_until(server_controls() == 2);
	ev_run(srv.main_loop, EVRUN_NOWAIT);
	peer_send(&comes, buf, frame_encode_control(CONTROL_STATS, buf));
	server_until(server_controls() == 3);
	control_stop(srv.control);
	assert_int_equal(server_closed(CLOSE_DRAINING), 2);
	assert_int_equal(tls_read(served.tls, &byte, 1, &got), TLS_EOF);
	assert_int_equal(tls_read(waits.tls, &byte, 1, &got), TLS_EOF);
	assert_int_equal(server_controls(), 1);
	srv.main_sleeps = false;
	server_turns(2);
	assert_int_equal(server_closed(CLOSE_DRAINING), 3);
	assert_int_equal(server_controls(), 0);
	peer_abort(&served);
	peer_abort(&waits);
	peer_abort(&comes);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
