/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/control.c against a scripted server. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/control.h"
#include "common/base/clock.h"
#include "common/tls/tls.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

static struct control *control;
static int reports;
static bool had_report;
static json_int_t value;	/* member "n" of the last report */
static struct fail failure;
static char words[FRAME_REFUSE_TEXT_MAX + 1];
static bool ask_again;

static void on_report(void *arg, json_t *report, const struct fail *fail, const char *text)
{
	assert_ptr_equal(arg, &control);
	reports++;
	had_report = report != NULL;
	value = json_integer_value(json_object_get(report, "n"));
	if (fail)
		failure = *fail;
	strncpy(words, text, sizeof(words) - 1);
	if (ask_again) {
		ask_again = false;
		assert_true(control_request(control, CONTROL_INFO));
	}
}

static int set_up(void **state)
{
	struct control_config cfg;
	char err[300];
	int ret = client_rig_init(state);

	cfg = (struct control_config){ .server = cli.cfg.server, .verify_name = "127.0.0.1",
				       .ca_file = cli.certs.ca, .timeout_ns = 30 * NS_PER_S };
	reports = 0;
	ask_again = false;
	memset(&failure, 0, sizeof(failure));
	return ret ? ret
		   : control_new(&cfg, cli.loop, on_report, &control, &control, err, sizeof(err));
}

static int tear_down(void **state)
{
	control_free(control);
	return client_rig_stop(state);
}

static uint32_t interval_ms;	/* of the last request */

/* Turns of the loop and steps of the server's handshake until the server has the request. */
static enum control_what serve_request(void)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct frame_control request;
	const char *why = "";
	size_t have = 0;

	for (int i = 0; i < 500 && have < sizeof(buf); i++) {
		size_t got = 0;

		script_turn();
		if (tls_read(cli.tls, buf + have, sizeof(buf) - have, &got) == TLS_DONE)
			have += got;
	}
	assert_int_equal(have, sizeof(buf));
	assert_int_equal(frame_decode_control(buf, have, &request, &why), 0);
	interval_ms = request.interval_ms;
	return request.what;
}

static enum control_what first_request(enum control_what what)
{
	assert_true(control_request(control, what));
	client_turn();
	script_accept();
	return serve_request();
}

static void until_told(int n)
{
	for (int i = 0; i < 200 && reports < n; i++)
		client_wait();
	assert_int_equal(reports, n);
}

static void send_report(const char *json)
{
	uint8_t header[FRAME_HEADER_BYTES];

	script_send(header, frame_encode_report_header((uint32_t)strlen(json), header));
	script_send(json, strlen(json));
}

static void assert_failed(enum stage stage, enum fail_kind kind, int code)
{
	assert_false(had_report);
	assert_int_equal(failure.stage, stage);
	assert_int_equal(failure.kind, kind);
	assert_int_equal(failure.code, code);
	assert_false(control_is_busy(control));
}

TEST(request__answered__report_and_session_kept)
{
	assert_int_equal(first_request(CONTROL_MARK), CONTROL_MARK);
	assert_true(control_is_busy(control));
	send_report("{\"n\": 41}");
	until_told(1);
	assert_true(had_report);
	assert_int_equal(value, 41);
	assert_false(control_is_busy(control));
	assert_true(control_request(control, CONTROL_STATS));
	assert_int_equal(serve_request(), CONTROL_STATS);
	send_report("{\"n\": 42}");
	until_told(2);
	assert_int_equal(value, 42);
}

TEST(request__one_under_way__refused)
{
	assert_true(control_request(control, CONTROL_STATS));
	assert_false(control_request(control, CONTROL_STATS));
}

TEST(request__from_within_the_callback__next_answer)
{
	ask_again = true;
	first_request(CONTROL_STATS);
	send_report("{\"n\": 1}");
	until_told(1);
	assert_int_equal(serve_request(), CONTROL_INFO);
	send_report("{\"n\": 2}");
	until_told(2);
	assert_int_equal(value, 2);
}

TEST(request__large_report_in_pieces__whole)
{
	static char json[200000];
	uint8_t header[FRAME_HEADER_BYTES];
	size_t n = sizeof(json) - 1;

	memset(json, ' ', n);
	memcpy(json, "{\"n\": 7", 7);
	json[n - 1] = '}';
	first_request(CONTROL_STATS);
	script_send(header, frame_encode_report_header((uint32_t)n, header));
	for (size_t sent = 0; sent < n;) {
		size_t put = 0;

		if (tls_write(cli.tls, json + sent, n - sent < 3000 ? n - sent : 3000, &put) ==
		    TLS_DONE)
			sent += put;
		(void)!tls_flush(cli.tls);
		client_turn();
	}
	until_told(1);
	assert_int_equal(value, 7);
}

TEST(request__refused__code_and_words)
{
	uint8_t buf[FRAME_REFUSE_BYTES_MAX];

	first_request(CONTROL_STATS);
	script_send(buf, frame_encode_refuse(REFUSE_INTERNAL, "out of memory", buf));
	until_told(1);
	assert_failed(STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_INTERNAL);
	assert_string_equal(words, "out of memory");
}

static int control_with(const char *ca, uint64_t timeout_ns)
{
	struct control_config cfg = { .server = cli.cfg.server,
				      .verify_name = "127.0.0.1",
				      .ca_file = ca,
				      .timeout_ns = timeout_ns };
	char err[300] = "";
	int ret;

	control_free(control);
	control = NULL;
	ret = control_new(&cfg, cli.loop, on_report, &control, &control, err, sizeof(err));
	if (ret)
		assert_non_null(strstr(err, ca));
	return ret;
}

TEST(watch__samples_come__told_of_each_until_the_end)
{
	assert_true(control_watch(control, 250));
	assert_false(control_watch(control, 250));
	assert_false(control_request(control, CONTROL_STATS));
	client_turn();
	script_accept();
	assert_int_equal(serve_request(), CONTROL_WATCH);
	assert_int_equal(interval_ms, 250);
	/* Two at once, and one more. */
	send_report("{\"n\": 1}");
	send_report("{\"n\": 2}");
	until_told(2);
	assert_int_equal(value, 2);
	assert_true(control_is_busy(control));
	send_report("{\"n\": 3}");
	until_told(3);
	assert_int_equal(value, 3);
	tls_close_notify(cli.tls);
	script_hang_up();
	until_told(4);
	assert_failed(STAGE_PSN_EXCHANGE, FAIL_CLOSED, 0);
}

TEST(watch__too_many_samples__cut_off)
{
	assert_true(control_watch(control, 60000));
	client_turn();
	script_accept();
	assert_int_equal(serve_request(), CONTROL_WATCH);
	for (int i = 1; i <= 17; i++)
		send_report("{\"n\": 1}");
	until_told(17);
	assert_failed(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME);
}

TEST(watch__no_sample_comes__timeout)
{
	assert_int_equal(control_with(cli.certs.ca, 300 * NS_PER_MS), 0);
	assert_true(control_watch(control, 250));
	client_turn();
	script_accept();
	assert_int_equal(serve_request(), CONTROL_WATCH);
	send_report("{\"n\": 1}");
	until_told(1);
	while (reports == 1)
		client_wait();
	assert_failed(STAGE_PSN_EXCHANGE, FAIL_TIMEOUT, 0);
}

TEST(request__bad_answers__bad_frame)
{
	static const struct {
		uint8_t bytes[16];
		size_t n;
	} cases[] = {
		{ { 0, 0, 0, 7, 2, 5, 0, 0 }, 8 },
		{ { 0, 0, 0, 12, 1, 5, 0, 0, '{', '}', ' ', ' ' }, 12 },
		{ { 0, 0, 0, 10, 2, 2, 0, 0, '{', '}' }, 10 },
		{ { 0, 0, 0, 10, 2, 5, 0, 0, '{', ']' }, 10 },
		{ { 0, 0, 0, 8, 2, 5, 0, 0 }, 8 },
		{ { 1, 0, 0, 0, 2, 5, 0, 0 }, 8 },
		{ { 0, 0, 0, 10, 2, 3, 0, 0, 0, 1 }, 10 },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		first_request(CONTROL_STATS);
		script_send(cases[i].bytes, cases[i].n);
		until_told((int)i + 1);
		assert_failed(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, PROTO_BAD_FRAME);
		script_hang_up();
	}
}

TEST(request__server_hangs_up__failed_then_a_new_session)
{
	first_request(CONTROL_STATS);
	tls_close_notify(cli.tls);
	script_hang_up();
	until_told(1);
	assert_failed(STAGE_PSN_EXCHANGE, FAIL_CLOSED, 0);
	assert_int_equal(first_request(CONTROL_INFO), CONTROL_INFO);
	send_report("{\"n\": 5}");
	until_told(2);
	assert_int_equal(value, 5);
}

TEST(request__nobody_listens__refused)
{
	close(cli.listen_fd);
	assert_true(control_request(control, CONTROL_STATS));
	assert_int_equal(reports, 0);
	until_told(1);
	cli.listen_fd = dup(0);
	assert_failed(STAGE_TCP_CONNECT, FAIL_ERRNO, ECONNREFUSED);
}

TEST(request__no_answer__timeout)
{
	assert_int_equal(control_with(cli.certs.ca, 300 * NS_PER_MS), 0);
	assert_true(control_request(control, CONTROL_STATS));
	while (reports == 0)
		client_wait();
	assert_int_equal(failure.kind, FAIL_TIMEOUT);
	assert_false(control_is_busy(control));
}

TEST(request__server_of_another_ca__certificate_failure)
{
	assert_int_equal(control_with(cli.certs.other_ca, 30 * NS_PER_S), 0);
	assert_true(control_request(control, CONTROL_STATS));
	client_turn();
	script_accept();
	for (int i = 0; i < 200 && reports == 0; i++) {
		(void)!tls_handshake(cli.tls);
		client_wait();
	}
	assert_int_equal(failure.stage, STAGE_TLS_HANDSHAKE);
	assert_int_equal(failure.kind, FAIL_CERTIFICATE);
	assert_true(strlen(words) > 0);
}

TEST(new__files_missing__errno_and_the_name)
{
	assert_int_equal(control_with("/nonexistent/ca.pem", 1), -ENOENT);
	control_free(NULL);
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
