/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of sessions that watch (server/control.c, server/samples.c): what they get, and what they may not do. */
#include "tests/unit/helpers/unit.h"

#include <sys/socket.h>

#include <jansson.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/host/res.h"
#include "common/host/sample.h"
#include "common/tls/tls.h"
#include "server/control.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

static uint64_t open_fds(void)
{
	struct res_usage u;

	assert_int_equal(res_usage_self(&u), 0);
	return u.fds;
}

static void watch(struct peer *p, uint16_t interval_ms)
{
	uint8_t buf[FRAME_CONTROL_BYTES];

	peer_shake_hands(p);
	peer_send(p, buf, frame_encode_watch(interval_ms, buf));
}

/* Starts the server, with a session that has had its first sample. */
static void start_watching(struct peer *p, uint16_t interval_ms)
{
	server_rig_start();
	watch(p, interval_ms);
	json_decref(peer_read_report(p));
}

static double next_number(struct peer *p, const char *name)
{
	json_t *o = peer_read_report(p);
	double v = json_number_at(o, name);

	json_decref(o);
	return v;
}

TEST(watch__a_client__samples_at_the_interval_with_the_gauges)
{
	struct peer client, p;
	json_t *o;
	double first;

	server_rig_start();
	watch(&p, 100);
	o = peer_read_report(&p);
	first = json_number_at(o, "taken_ns");
	assert_true(json_number_at(o, "clients_connected") == 0);
	assert_true(json_number_at(o, "skipped") == 0);
	assert_true(json_number_at(o, "qps") > 0);
	assert_true(json_number_at(o, "cqs") > 0);
	assert_true(json_number_at(o, "mrs") > 0);
	assert_true(json_number_at(o, "completions") >= 0);
	assert_true(json_number_at(o, "rss_bytes") > 1e6);
	assert_true(json_number_at(o, "fds") > 3);
	assert_true(json_number_at(o, "machine_available_bytes") > 0);
	assert_true(json_array_size(json_at(o, "by_thread")) >= 1);
	json_decref(o);
	peer_go_live(&client, 0);
	/* The shard publishes what it has within 10 ms of activity. */
	for (int i = 0; i < 100; i++) {
		o = peer_read_report(&p);
		if (json_number_at(o, "clients_connected") == 1)
			break;
		json_decref(o);
	}
	assert_true(json_number_at(o, "clients_connected") == 1);
	assert_true(json_number_at(o, "taken_ns") >= first + 95e6);
	json_decref(o);
	peer_close(&p);
	server_until(server_closed(CLOSE_CONTROL_END) == 1);
	assert_int_equal(server_controls(), 0);
}

TEST(watch__is_over__files_closed)
{
	uint64_t before, during;
	struct peer p, q;

	server_start_hello(&q);
	before = open_fds();
	watch(&p, 60000);
	json_decref(peer_read_report(&p));
	during = open_fds();
	/* Two sockets, and six files and one for each thread. */
	assert_in_range(during, before + 2 + 6 + 1, before + 2 + 6 + SAMPLE_THREADS_MAX);
	peer_abort(&p);
	server_until(server_controls() == 0);
	assert_int_equal(open_fds(), before);
	peer_abort(&q);
}

SERVED_TEST(watch__interval_that_is_not_allowed__refused)
{
	static const uint16_t bad[] = { 0, 1, 99, 60001, 65535 };
	uint8_t frame[FRAME_CONTROL_BYTES];
	struct peer p;

	for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
		peer_shake_hands(&p);
		peer_assert_refused(&p, frame, frame_encode_watch(bad[i], frame), REFUSE_BAD_REQUEST, "100 to 60000");
	}
	(void)frame_encode_control(CONTROL_STATS, frame);
	frame[11] = 100;
	peer_shake_hands(&p);
	peer_assert_refused(&p, frame, FRAME_CONTROL_BYTES, REFUSE_BAD_REQUEST, "CONTROL interval");
}

SERVED_TEST(watch__another_request_or_a_part_of_one__cut_off)
{
	static const size_t lengths[] = { 1, FRAME_HEADER_BYTES, FRAME_CONTROL_BYTES };
	uint8_t frame[FRAME_CONTROL_BYTES];

	for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
		struct peer p;

		watch(&p, 100);
		json_decref(peer_read_report(&p));
		(void)frame_encode_watch(100, frame);
		peer_send(&p, frame, lengths[i]);
		server_until(server_controls() == 0);
		assert_int_equal(server_closed(CLOSE_FAILED), i + 1);
		peer_abort(&p);
	}
}

/* A session that asks for reports may begin to watch, and gets no more reports then. */
TEST(watch__after_stats__samples)
{
	uint8_t frame[FRAME_CONTROL_BYTES];
	struct peer p;

	server_start_hello(&p);
	peer_send(&p, frame, frame_encode_control(CONTROL_STATS, frame));
	assert_true(next_number(&p, "uptime_s") >= 0);
	peer_send(&p, frame, frame_encode_watch(100, frame));
	assert_true(next_number(&p, "taken_ns") > 0);
	assert_true(next_number(&p, "taken_ns") > 0);
	peer_close(&p);
	server_until(server_controls() == 0);
}

SERVED_TEST(watch__many__each_its_samples_and_reports_are_still_answered)
{
	struct peer p[40], asks;
	uint8_t frame[FRAME_CONTROL_BYTES];

	for (size_t i = 0; i < N_ELEMENTS(p); i++)
		watch(&p[i], (uint16_t)(100 + 10 * i));
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < N_ELEMENTS(p); i++)
			assert_true(next_number(&p[i], "taken_ns") > 0);
	peer_shake_hands(&asks);
	peer_send(&asks, frame, frame_encode_control(CONTROL_STATS, frame));
	assert_true(next_number(&asks, "clients.control") == N_ELEMENTS(p) + 1);
	peer_abort(&asks);
	peers_abort(p, N_ELEMENTS(p));
	server_until(server_controls() == 0);
}

/* A client's kernel answers with RST when it closes a socket that holds a sample which was not read. */
TEST(watch__ends_with_a_sample_unread__no_failure)
{
	struct peer p;
	uint8_t byte;

	start_watching(&p, 100);
	while (recv(tls_fd(p.tls), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
		server_wait();
	peer_close(&p);
	server_until(server_controls() == 0);
	assert_int_equal(server_closed(CLOSE_CONTROL_END), 1);
	assert_int_equal(server_closed(CLOSE_FAILED), 0);
	server_assert_all_back();
}

/* Reads one sample, and nothing after it: the server's socket is full. */
static void watch_and_stop_reading(struct peer *p)
{
	uint8_t frame[FRAME_CONTROL_BYTES], junk[4096] = { 0 };
	int fd_of_server;

	peer_connect_pair(p);
	assert_true(peer_handshake(p));
	fd_of_server = tls_fd(server_only(CONN_ST_HELLO)->io->tls);
	peer_send(p, frame, frame_encode_watch(100, frame));
	json_decref(peer_read_report(p));
	/* Bytes that are no TLS record: nothing of them is read before they are taken out again. */
	for (size_t n = sizeof(junk); n > 0; n /= 2)
		while (send(fd_of_server, junk, n, MSG_DONTWAIT) > 0)
			;
}

/* The server writes until the socket is full, and then keeps one sample. */
TEST(watch__never_reads__samples_skipped_and_counted)
{
	uint8_t junk[4096];
	struct peer p;
	double skipped = 0;
	json_t *o;

	server_rig_start();
	watch_and_stop_reading(&p);
	for (uint64_t end = clock_now_ns() + 700 * NS_PER_MS; clock_now_ns() < end;)
		server_wait();
	while (recv(tls_fd(p.tls), junk, sizeof(junk), MSG_DONTWAIT) > 0)
		if (junk[0]) /* a record of the server's came behind them: it is lost with them */
			break;
	for (int i = 0; i < 20 && skipped == 0; i++) {
		o = peer_read_report(&p);
		skipped = json_number_at(o, "skipped");
		json_decref(o);
	}
	assert_true(skipped >= 2);
	peer_abort(&p);
	server_until(server_controls() == 0);
}

/* Samples that are due meanwhile give it no more time; the first few count as written, as a socket of TLS joins small
 * writes (tls_socket.h): 20 s later there are no more of those. */
SERVED_TEST(watch__does_not_read_for_120_s__cut_off_as_a_timeout)
{
	uint64_t before, failures;
	struct fail failure;
	struct peer p;

	before = open_fds();
	watch_and_stop_reading(&p);
	for (int s = 10; s <= 110; s += 10) {
		clock_move(10 * NS_PER_S);
		server_turns(3);
		assert_int_equal(server_controls(), 1);
	}
	clock_move(31 * NS_PER_S);
	server_turns(3);
	assert_int_equal(server_controls(), 0);
	assert_int_equal(server_closed(CLOSE_FAILED), 1);
	assert_true(fail_table_top(&srv.server.control_stats.failures, &failure, &failures));
	assert_int_equal(failure.kind, FAIL_TIMEOUT);
	assert_int_equal(failures, 1);
	peer_abort(&p);
	assert_int_equal(open_fds(), before);
}

/* One that reads stays for as long as it does. */
TEST(watch__reads_for_longer_than_120_s__stays)
{
	struct peer p;

	server_rig_start();
	watch(&p, 60000);
	for (int i = 0; i < 4; i++) {
		json_decref(peer_read_report(&p));
		clock_move(60 * NS_PER_S);
	}
	json_decref(peer_read_report(&p));
	assert_int_equal(server_controls(), 1);
	peer_close(&p);
	server_until(server_controls() == 0);
}

TEST(stop__somebody_watches__closed_with_a_goodbye)
{
	uint8_t frame[FRAME_REFUSE_BYTES_MAX];
	struct peer p;

	start_watching(&p, 60000);
	control_stop(srv.control);
	assert_int_equal(server_controls(), 0);
	assert_int_equal(peer_read_frame(&p, frame), 0);
	peer_abort(&p);
}

TEST_EACH(server_rig_init, server_rig_stop)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
