/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/metrics/exporter.c: requests in all portions, and connections over the loopback interface that
 * do what a scraper does not. */
#include "tests/unit/helpers/unit.h"

#include "tests/unit/helpers/moved_clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#include "common/metrics/exporter.h"

#define GET "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

static struct ev_loop *loop;
static struct exporter *exporter;
static unsigned made;		/* documents */
static size_t document_bytes;

static char *document(void *arg, bool openmetrics, size_t *len)
{
	char *text = document_bytes ? malloc(document_bytes) : NULL;

	assert_ptr_equal(arg, &made);
	if (!text)
		return NULL;
	memset(text, openmetrics ? 'o' : 't', document_bytes);
	*len = document_bytes;
	made++;
	return text;
}

static int set_up(void **state)
{
	struct addr any = unit_addr("127.0.0.1", 0);
	char err[128];

	(void)state;
	made = 0;
	document_bytes = 1000;
	loop = ev_loop_new(0);
	return exporter_new(loop, &any, document, &made, &exporter, err, sizeof(err));
}

static int tear_down(void **state)
{
	(void)state;
	exporter_free(exporter);
	ev_loop_destroy(loop);
	return 0;
}

#define EXPORTER_TEST(f) TEST_WITH(f, set_up, tear_down)

static int status_of(const char *request)
{
	bool openmetrics;

	return exporter_status(request, strlen(request), &openmetrics);
}

TEST(status__of_requests__what_they_deserve)
{
	static const struct {
		int status;
		const char *request;
	} cases[] = {
		{ 200, GET }, { 200, "GET /metrics HTTP/1.0\n\n" }, { 200, "GET /metrics?x=1 HTTP/1.1\r\n\r\n" },
		{ 404, "GET / HTTP/1.1\r\n\r\n" }, { 404, "GET /metricsx HTTP/1.1\r\n\r\n" },
		{ 404, "GET /metric HTTP/1.1\r\n\r\n" }, { 404, "GET  HTTP/1.1\r\n\r\n" },
		{ 405, "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\n" }, { 405, "HEAD /metrics HTTP/1.1\n\n" },
		{ 400, "GET /metrics\r\n\r\n" }, { 400, "GET /metrics HTTP/2.0\r\n\r\n" }, { 400, "\r\n\r\n" },
		{ 400, "\x16\x03\x01\n\n" }, { 400, " HTTP/1.1\n\n" }, { 0, "" }, { 0, "GET /metrics HTTP/1.1\r\n" },
		{ 0, "GET /metrics HTTP/1.1\r\nHost: x\r\n" }, { 0, "POST" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		if (status_of(cases[i].request) != cases[i].status)
			fail_msg("case %zu: %d", i, status_of(cases[i].request));
}

TEST(status__each_prefix_of_a_request__waits_for_more)
{
	bool openmetrics;

	for (size_t n = 0; n < strlen(GET); n++)
		assert_int_equal(exporter_status(GET, n, &openmetrics), 0);
}

TEST(status__accept__names_openmetrics_or_not)
{
	bool openmetrics;
	const char *request = "GET /metrics HTTP/1.1\r\naccept: text/plain;q=0.1,application/openmetrics-text\r\n\r\n";

	assert_int_equal(exporter_status(request, strlen(request), &openmetrics), 200);
	assert_true(openmetrics);
	request = "GET /metrics HTTP/1.1\r\nX-Accept: application/openmetrics-text\r\n\r\n";
	assert_int_equal(exporter_status(request, strlen(request), &openmetrics), 200);
	assert_false(openmetrics);
}

TEST(status__headers_without_end__too_large)
{
	char request[EXPORTER_REQUEST_BYTES];
	bool openmetrics;

	memset(request, 'a', sizeof(request));
	assert_int_equal(exporter_status(request, sizeof(request) - 1, &openmetrics), 0);
	assert_int_equal(exporter_status(request, sizeof(request), &openmetrics), 431);
	memset(request, '\n', 1);
	memset(request + sizeof(request) - 2, '\n', 1);
	assert_int_equal(exporter_status(request, sizeof(request), &openmetrics), 431);
}

TEST(parse__addresses__or_a_port_of_loopback)
{
	static const char *const wrong[] = { "", ":", "x", "65536", "1.2.3.4", "1.2.3.4:", "1.2.3.4:x", "::1:80",
		"[::1]", "[::1:80", "localhost:80", "1.2.3.4:-1", "1.2.3.4: 5", "[]:5", ":5",
		"11111111111111111111111111111111111111111111111111111111111111111111111111:5" };
	char text[ADDR_TEXT_MAX], err[256];
	struct addr a;

	assert_int_equal(exporter_parse("9100", &a, err, sizeof(err)), 0);
	assert_string_equal(addr_text(&a, text), "127.0.0.1:9100");
	assert_int_equal(exporter_parse("0.0.0.0:0", &a, err, sizeof(err)), 0);
	assert_string_equal(addr_text(&a, text), "0.0.0.0:0");
	assert_int_equal(exporter_parse("[::1]:65535", &a, err, sizeof(err)), 0);
	assert_string_equal(addr_text(&a, text), "[::1]:65535");
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++)
		if (!exporter_parse(wrong[i], &a, err, sizeof(err)))
			fail_msg("'%s' was taken", wrong[i]);
}

static int connect_to(void)
{
	const struct addr *a = exporter_addr(exporter);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&a->ss, a->len), 0);
	return fd;
}

static void send_all(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Runs the loop until the peer's end has something to read, or an end. */
static ssize_t wait_for(int fd, char *buf, size_t size)
{
	ssize_t n;

	do {
		ev_run(loop, EVRUN_NOWAIT);
		n = recv(fd, buf, size, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	return n;
}

/* Reads until the end, and returns all of it as a string. */
static const char *read_all(int fd)
{
	static char text[1 << 20];
	size_t len = 0;
	ssize_t n;

	while ((n = wait_for(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	assert_int_equal(n, 0);
	text[len] = '\0';
	close(fd);
	return text;
}

static const char *answer_to(const char *request)
{
	int fd = connect_to();

	send_all(fd, request);
	return read_all(fd);
}

EXPORTER_TEST(get__document_with_its_length__then_the_end)
{
	const char *text = answer_to(GET);

	assert_says(text, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		    "Content-Length: 1000\r\nConnection: close\r\n\r\ntttt");
	assert_int_equal(strlen(strstr(text, "\r\n\r\n") + 4), 1000);
	assert_says(answer_to("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n"),
		    "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
	assert_says(answer_to("POST / HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed\r\n");
	assert_says(answer_to("POST / HTTP/1.1\r\n\r\n"), "\r\nAllow: GET\r\n");
}

EXPORTER_TEST(get__many_at_once__one_document)
{
	for (int i = 0; i < 20; i++)
		assert_says(answer_to(GET), "200 OK");
	assert_int_equal(made, 1);
	clock_move(EXPORTER_CACHE_NS);
	assert_says(answer_to(GET), "200 OK");
	assert_int_equal(made, 2);
}

EXPORTER_TEST(get__no_memory_for_the_document__unavailable)
{
	document_bytes = 0;
	assert_says(answer_to(GET), "HTTP/1.1 503 Service Unavailable\r\n");
	document_bytes = 10;
	assert_says(answer_to(GET), "200 OK");
}

EXPORTER_TEST(request__a_byte_at_a_time__answered)
{
	int fd = connect_to();

	for (const char *c = GET; *c; c++) {
		assert_int_equal(send(fd, c, 1, MSG_NOSIGNAL), 1);
		ev_run(loop, EVRUN_NOWAIT);
	}
	assert_says(read_all(fd), "200 OK");
}

/* A connection whose request is not complete gives its place to the next one. */
EXPORTER_TEST(places__taken_by_unfinished_requests__others_are_served)
{
	int fds[EXPORTER_CONNS + 8];
	char byte;

	for (size_t i = 0; i < N_ELEMENTS(fds); i++) {
		fds[i] = connect_to();
		send_all(fds[i], "GET /metrics");
		ev_run(loop, EVRUN_NOWAIT);
	}
	assert_says(answer_to(GET), "200 OK");
	/* The first ones were closed, with their request unread or not. */
	assert_true(wait_for(fds[0], &byte, 1) <= 0);
	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		close(fds[i]);
}

/* The kernel's buffer has room for the answer, so that a peer that reads nothing holds no place. */
EXPORTER_TEST(answer__not_read__place_is_free_at_once)
{
	int fds[32];

	document_bytes = 100000;
	for (size_t i = 0; i < N_ELEMENTS(fds); i++) {
		fds[i] = connect_to();
		send_all(fds[i], GET);
		ev_run(loop, EVRUN_NOWAIT);
	}
	assert_says(answer_to(GET), "200 OK");
	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		assert_says(read_all(fds[i]), "200 OK");
}

/* Larger answers keep their places for a second; until then one more connection is closed. */
EXPORTER_TEST(answers__larger_than_the_buffer_and_not_read__others_wait_a_second)
{
	int fds[EXPORTER_CONNS], late;
	char byte;

	document_bytes = 900000;
	for (size_t i = 0; i < N_ELEMENTS(fds); i++) {
		fds[i] = connect_to();
		send_all(fds[i], GET);
		ev_run(loop, EVRUN_NOWAIT);
	}
	late = connect_to();
	send_all(late, GET);
	assert_true(wait_for(late, &byte, 1) <= 0);
	close(late);
	clock_move(2 * NS_PER_S);
	assert_says(answer_to(GET), "200 OK");
	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		close(fds[i]);
}

EXPORTER_TEST(request__not_finished__closed_after_its_time)
{
	int fd = connect_to();
	char byte;

	send_all(fd, "GET /metrics");
	ev_run(loop, EVRUN_NOWAIT);
	clock_move((uint64_t)(EXPORTER_S * 1e9) - NS_PER_S);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	clock_move(NS_PER_S);
	assert_true(wait_for(fd, &byte, 1) <= 0);
	close(fd);
}

/* A larger answer waits for its reader until its time is over. */
EXPORTER_TEST(answer__larger_than_the_buffer__whole_for_a_reader)
{
	document_bytes = 900000;
	assert_int_equal(strlen(strstr(answer_to(GET), "\r\n\r\n") + 4), 900000);
}

EXPORTER_TEST(free__with_open_connections__closes_them)
{
	int fd = connect_to();
	char byte;

	send_all(fd, "GET");
	ev_run(loop, EVRUN_NOWAIT);
	exporter_free(exporter);
	exporter = NULL;
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

TEST(new__address_in_use__says_so)
{
	struct addr any = unit_addr("127.0.0.1", 0);
	struct exporter *second;
	char err[128];

	assert_int_equal(set_up(NULL), 0);
	any = *exporter_addr(exporter);
	assert_int_equal(exporter_new(loop, &any, document, &made, &second, err, sizeof(err)), -EADDRINUSE);
	assert_null(second);
	assert_says(err, "--metrics: cannot listen at 127.0.0.1:");
	assert_says(err, ": Address already in use");
	tear_down(NULL);
}
