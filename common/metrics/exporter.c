/* SPDX-License-Identifier: BSD-2-Clause */
/* See exporter.h. */
#include "common/metrics/exporter.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#define BACKLOG 64
#define ACCEPTS_IN_A_ROW 16
#define SEND_BUFFER_BYTES (256 << 10)	/* an answer fits, so that a slow reader uses kernel memory only */
#define AGAIN_S 1.
#define ANSWER_NS NS_PER_S		/* age from which a connection with an unread answer may lose its place */

struct document {
	char *text;
	size_t len;
	uint64_t made_ns;
};

struct scrape {
	struct exporter *exporter;
	int fd;			/* -1: free */
	ev_io io;
	ev_timer deadline;
	uint64_t begun_ns;
	size_t got;		/* bytes of the request */
	char *answer;		/* NULL: the request is not complete yet */
	size_t len, sent;
	char request[EXPORTER_REQUEST_BYTES];
};

struct exporter {
	struct ev_loop *loop;
	struct addr addr;
	int fd;
	ev_io io;
	ev_timer again;		/* runs while accepting is paused, because descriptors or memory are short */
	exporter_document *make;
	void *arg;
	struct document documents[2];	/* as text and as OpenMetrics */
	struct scrape scrapes[EXPORTER_CONNS];
};

static bool is_get(const char *line, size_t n)
{
	return n >= 4 && memcmp(line, "GET ", 4) == 0;
}

/* True if the request line ends with a version of HTTP/1.x. */
static bool is_http_1(const char *line, size_t n)
{
	return n > 9 && memcmp(line + n - 9, " HTTP/1.", 8) == 0 && line[n - 1] >= '0' && line[n - 1] <= '9';
}

/* True if the path between "GET " and " HTTP/1.x" is /metrics, with or without a query. */
static bool is_metrics(const char *line, size_t n)
{
	static const char path[] = "/metrics";
	size_t len = sizeof(path) - 1;

	return n >= 4 + len + 9 && memcmp(line + 4, path, len) == 0 && strchr("? ", line[4 + len]) && line[4 + len];
}

static bool accepts_openmetrics(const char *line, size_t n)
{
	static const char wanted[] = "application/openmetrics-text", header[] = "accept:";

	return n >= sizeof(header) - 1 && strncasecmp(line, header, sizeof(header) - 1) == 0 &&
	       memmem(line, n, wanted, sizeof(wanted) - 1);
}

/* Returns where the next line begins, and in *n the length of this one without its end. NULL if it has no end yet. */
static const char *line_end(const char *line, const char *end, size_t *n)
{
	const char *lf = memchr(line, '\n', (size_t)(end - line));

	if (!lf)
		return NULL;
	*n = (size_t)(lf - line) - (lf > line && lf[-1] == '\r');
	return lf + 1;
}

int exporter_status(const char *request, size_t n, bool *openmetrics)
{
	const char *end = request + n, *line = request, *next;
	size_t first = 0, len = 0;

	*openmetrics = false;
	for (; (next = line_end(line, end, &len)); line = next) {
		if (line == request)
			first = len;
		else if (len == 0)
			break;	/* the empty line after the headers */
		*openmetrics |= accepts_openmetrics(line, len);
	}
	if (!next)
		return n < EXPORTER_REQUEST_BYTES ? 0 : 431;
	if (!is_http_1(request, first))
		return 400;
	if (!is_get(request, first))
		return 405;
	return is_metrics(request, first) ? 200 : 404;
}

static const char *reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 400: return "Bad Request";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 431: return "Request Header Fields Too Large";
	default: return "Service Unavailable";
	}
}

/* Makes the document if the last one is too old. NULL if memory runs out. */
static const struct document *document_of(struct exporter *e, bool openmetrics)
{
	struct document *d = &e->documents[openmetrics];
	uint64_t now = clock_now_ns();

	if (d->text && now - d->made_ns < EXPORTER_CACHE_NS)
		return d;
	free(d->text);
	d->text = e->make(e->arg, openmetrics, &d->len);
	d->made_ns = now;
	return d->text ? d : NULL;
}

/* Builds the answer. False if memory runs out. */
static bool make_answer(struct scrape *s, int status, bool openmetrics)
{
	const struct document *d = status == 200 ? document_of(s->exporter, openmetrics) : NULL;
	char head[256], body[64];
	size_t len;

	if (status == 200 && !d)
		status = 503;
	snprintf(body, sizeof(body), "%d %s\n", status, reason(status));
	len = d ? d->len : strlen(body);
	s->len = (size_t)snprintf(head, sizeof(head), "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
				  "%sConnection: close\r\n\r\n", status, reason(status),
				  !d ? "text/plain; charset=utf-8" : openmetrics ?
				  "application/openmetrics-text; version=1.0.0; charset=utf-8" :
				  "text/plain; version=0.0.4; charset=utf-8", len,
				  status == 405 ? "Allow: GET\r\n" : "");
	s->answer = malloc(s->len + len);
	if (!s->answer)
		return false;
	memcpy(s->answer, head, s->len);
	memcpy(s->answer + s->len, d ? d->text : body, len);
	s->len += len;
	return true;
}

static void end_scrape(struct scrape *s)
{
	ev_io_stop(s->exporter->loop, &s->io);
	ev_timer_stop(s->exporter->loop, &s->deadline);
	close(s->fd);
	free(s->answer);
	s->answer = NULL;
	s->fd = -1;
}

/* Returns true when the connection is over: the kernel has the whole answer, or the peer has gone. */
static bool send_answer(struct scrape *s)
{
	while (s->sent < s->len) {
		ssize_t n = send(s->fd, s->answer + s->sent, s->len - s->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return errno != EAGAIN;
		s->sent += (size_t)n;
	}
	shutdown(s->fd, SHUT_WR);
	return true;
}

/* Reads the part of the request that has arrived. Returns true when the connection is over. */
static bool read_request(struct scrape *s)
{
	bool openmetrics;
	int status;
	ssize_t n = recv(s->fd, s->request + s->got, sizeof(s->request) - s->got, 0);

	if (n <= 0)
		return n == 0 || (errno != EAGAIN && errno != EINTR);
	s->got += (size_t)n;
	status = exporter_status(s->request, s->got, &openmetrics);
	if (!status)
		return false;
	if (!make_answer(s, status, openmetrics))
		return true;
	ev_io_stop(s->exporter->loop, &s->io);
	ev_io_set(&s->io, s->fd, EV_WRITE);
	ev_io_start(s->exporter->loop, &s->io);
	return send_answer(s);
}

static void on_scrape(struct ev_loop *loop, ev_io *w, int revents)
{
	struct scrape *s = w->data;

	(void)loop;
	(void)revents;
	if (s->answer ? send_answer(s) : read_request(s))
		end_scrape(s);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	end_scrape(w->data);
}

static bool may_go(const struct scrape *s, uint64_t now_ns)
{
	return !s->answer || now_ns - s->begun_ns > ANSWER_NS;
}

/* Returns a free place, or the place of the oldest connection that may go, which it ends; NULL: there is none. */
static struct scrape *find_place(struct exporter *e)
{
	uint64_t now = clock_now_ns();
	struct scrape *oldest = NULL;

	for (struct scrape *s = e->scrapes; s < e->scrapes + EXPORTER_CONNS; s++) {
		if (s->fd < 0)
			return s;
		if (may_go(s, now) && (!oldest || s->begun_ns < oldest->begun_ns))
			oldest = s;
	}
	if (oldest)
		end_scrape(oldest);
	return oldest;
}

static void begin_scrape(struct exporter *e, int fd)
{
	struct scrape *s = find_place(e);

	if (!s) {
		close(fd);
		return;
	}
	s->fd = fd;
	s->begun_ns = clock_now_ns();
	s->got = s->sent = s->len = 0;
	ev_io_set(&s->io, fd, EV_READ);
	ev_io_start(e->loop, &s->io);
	ev_timer_set(&s->deadline, EXPORTER_S, 0.);
	ev_timer_start(e->loop, &s->deadline);
	if (read_request(s))
		end_scrape(s);
}

static void pause_accepting(struct exporter *e)
{
	ev_io_stop(e->loop, &e->io);
	ev_timer_set(&e->again, AGAIN_S, 0.);
	ev_timer_start(e->loop, &e->again);
}

static void on_again(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct exporter *e = w->data;

	(void)revents;
	ev_io_start(loop, &e->io);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
	(void)loop;
	(void)revents;
	for (int i = 0; i < ACCEPTS_IN_A_ROW; i++) {
		int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				pause_accepting(w->data);
			return;
		}
		begin_scrape(w->data, fd);
	}
}

/* TCP_DEFER_ACCEPT: the kernel keeps a connection without data for some seconds, so that it takes no place here. */
static int listen_at(const struct addr *at, int *out)
{
	const int on = 1, wait_s = (int)EXPORTER_S, buffer = SEND_BUFFER_BYTES;
	int fd = socket(at->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &wait_s, sizeof(wait_s)) ||
	    (at->ss.ss_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) ||
	    bind(fd, (const struct sockaddr *)&at->ss, at->len) || listen(fd, BACKLOG)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	*out = fd;
	return 0;
}

int exporter_new(struct ev_loop *loop, const struct addr *at, exporter_document *document, void *arg,
		 struct exporter **out, char *err, size_t err_size)
{
	struct exporter *e = calloc(1, sizeof(*e));
	char text[ADDR_TEXT_MAX];
	int ret = e ? listen_at(at, &e->fd) : -ENOMEM;

	*out = NULL;
	if (ret) {
		snprintf(err, err_size, "--metrics: cannot listen at %s: %s", addr_text(at, text), strerror(-ret));
		free(e);
		return ret;
	}
	e->loop = loop;
	e->make = document;
	e->arg = arg;
	e->addr = *at;
	if (addr_of_socket(e->fd, &e->addr))
		e->addr = *at;
	for (struct scrape *s = e->scrapes; s < e->scrapes + EXPORTER_CONNS; s++) {
		s->exporter = e;
		s->fd = -1;
		ev_init(&s->io, on_scrape);
		ev_init(&s->deadline, on_deadline);
		s->io.data = s->deadline.data = s;
	}
	ev_init(&e->again, on_again);
	ev_io_init(&e->io, on_accept, e->fd, EV_READ);
	e->io.data = e->again.data = e;
	ev_io_start(loop, &e->io);
	*out = e;
	return 0;
}

void exporter_free(struct exporter *e)
{
	if (!e)
		return;
	for (struct scrape *s = e->scrapes; s < e->scrapes + EXPORTER_CONNS; s++)
		if (s->fd >= 0)
			end_scrape(s);
	ev_io_stop(e->loop, &e->io);
	ev_timer_stop(e->loop, &e->again);
	close(e->fd);
	free(e->documents[0].text);
	free(e->documents[1].text);
	free(e);
}

const struct addr *exporter_addr(const struct exporter *e)
{
	return &e->addr;
}

static int parse_place(const char *text, struct addr *out)
{
	const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
	size_t len = colon ? (size_t)(colon - text) : 0;
	char host[ADDR_TEXT_MAX] = "127.0.0.1", *end;
	unsigned long port;

	if (!*digits || strspn(digits, "0123456789") != strlen(digits) || len >= sizeof(host))
		return -EINVAL;
	port = strtoul(digits, &end, 10);
	if (port > UINT16_MAX)
		return -EINVAL;
	if (!colon)
		return addr_parse(host, (uint16_t)port, out);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)len - 2, text + 1);
	else if (memchr(text, ':', len))
		return -EINVAL;	/* an IPv6 address without brackets */
	else
		snprintf(host, sizeof(host), "%.*s", (int)len, text);
	return addr_parse(host, (uint16_t)port, out);
}

int exporter_parse(const char *text, struct addr *out, char *err, size_t err_size)
{
	int ret = parse_place(text, out);

	if (ret)
		snprintf(err, err_size, "--metrics: '%s' is not allowed; allowed: PORT, ADDRESS:PORT or "
			 "[ADDRESS]:PORT with a numeric address and a port from 0 to 65535", text);
	return ret;
}
