/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to etcd's JSON gateway. See etcd_http.h. */
#include "loadgen/cluster/etcd/etcd_http.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/utf8.h"
#include "loadgen/cluster/etcd/etcd_url.h"

#define LINE_ANSWER_MAX (64 * 1024)
/* A page of the largest values takes 22 MB of text and little beside it; a message of etcd's has at most 3 MB of text, and if it
 * tells of many small changes, takes 10 times as much memory. */
#define ANSWER_MEMORY_MAX (64 * 1024 * 1024)

/* ---- where etcd is */

int etcd_target_set(struct etcd_target *t, const struct etcd_url *u, const char *ca, const char *cert, const char *key)
{
	snprintf(t->name, sizeof(t->name), "%s:%u", u->host, u->port);
	snprintf(t->base, sizeof(t->base), "http%s://%s/v3/", u->tls ? "s" : "", t->name);
	t->ca = ca ? strdup(ca) : NULL;
	t->cert = cert ? strdup(cert) : NULL;
	t->key = key ? strdup(key) : NULL;
	return (ca && !t->ca) || (cert && !t->cert) || (key && !t->key) ? -ENOMEM : 0;
}

void etcd_target_clear(struct etcd_target *t)
{
	free(t->ca);
	free(t->cert);
	free(t->key);
	memset(t, 0, sizeof(*t));
}

/* ---- what both kinds have: a request and what came back */

struct request {
	const struct etcd_target *target;
	CURL *easy;
	struct curl_slist *headers;
	char *out;			/* the body that is sent */
	char *in;			/* what came and was not yet delivered, `in_n` bytes of `in_room` */
	size_t in_n, in_room, in_max;
	bool too_large;
	char error[CURL_ERROR_SIZE];
};

static void request_end(struct request *r)
{
	if (r->easy)
		curl_easy_cleanup(r->easy);
	curl_slist_free_all(r->headers);
	free(r->out);
	free(r->in);
	memset(r, 0, sizeof(*r));
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *arg)
{
	struct request *r = arg;

	n *= size;
	if (n > r->in_max || r->in_n > r->in_max - n) {
		r->too_large = true;
		return 0;
	}
	if (r->in_n + n + 1 > r->in_room) {
		size_t room = 2 * (r->in_n + n) + 1024;
		char *in = realloc(r->in, room);

		if (!in)
			return 0;
		r->in = in;
		r->in_room = room;
	}
	memcpy(r->in + r->in_n, bytes, n);
	r->in_n += n;
	return n;
}

/* A peer whose packets end is noticed even if nothing is asked of it: keepalive on an idle connection, the user timeout
 * on one that has unacknowledged data (tcp(7)). */
static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	const struct request *r = arg;
	int on = 1, tries = 3, seconds = (int)(r->target->patience_ns / 3 / NS_PER_S) + 1;
	unsigned int patience_ms = (unsigned int)(r->target->patience_ns / NS_PER_MS);

	(void)purpose;
	/* On a Unix socket they do nothing. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof(patience_ms));
	return CURL_SOCKOPT_OK;
}

static bool add_header(struct request *r, const char *text)
{
	struct curl_slist *list = curl_slist_append(r->headers, text);

	if (list)
		r->headers = list;
	return list;
}

static bool set_headers(struct request *r, const char *token)
{
	char authorization[1024];

	snprintf(authorization, sizeof(authorization), "Authorization: %s", token);
	/* No "Expect: 100-continue": it costs a round trip. */
	return add_header(r, "Content-Type: application/json") && add_header(r, "Expect:") &&
	       (!*token || add_header(r, authorization));
}

static void set_options(struct request *r, const char *url)
{
	const struct etcd_target *t = r->target;

	curl_easy_setopt(r->easy, CURLOPT_URL, url);
	curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->out);
	curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->error);
	curl_easy_setopt(r->easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	curl_easy_setopt(r->easy, CURLOPT_SOCKOPTDATA, r);
	curl_easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->easy, CURLOPT_PROXY, "");	/* whatever http_proxy says */
	curl_easy_setopt(r->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(r->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(t->patience_ns / NS_PER_MS));
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	curl_easy_setopt(r->easy, CURLOPT_QUICK_EXIT, 1L);	/* does not wait for a name's resolution */
#endif
	if (t->unix_socket[0])
		curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, t->unix_socket);
	if (t->ca)
		curl_easy_setopt(r->easy, CURLOPT_CAINFO, t->ca);
	if (t->cert)
		curl_easy_setopt(r->easy, CURLOPT_SSLCERT, t->cert);
	if (t->key)
		curl_easy_setopt(r->easy, CURLOPT_SSLKEY, t->key);
}

static int request_begin(struct request *r, const struct etcd_target *t, const char *path, json_t *body, const char *token,
			 size_t answer_max)
{
	char url[400];

	memset(r, 0, sizeof(*r));
	r->target = t;
	r->in_max = answer_max;
	r->out = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	r->easy = curl_easy_init();
	if (!r->out || !r->easy || !set_headers(r, token)) {
		request_end(r);
		return -ENOMEM;
	}
	snprintf(url, sizeof(url), "%s%s", t->base, path);
	set_options(r, url);
	return 0;
}

/* ---- what an answer means */

static void say(const struct etcd_target *t, enum etcd_outcome outcome, const char *what, const char *detail,
		struct etcd_answer *out)
{
	char shown[160];

	utf8_show(detail, shown, sizeof(shown));
	out->outcome = outcome;
	out->code = 0;
	out->body = NULL;
	snprintf(out->why, sizeof(out->why), "etcd at %.250s %.90s%s%.158s", t->name, what, *shown ? ": " : "", shown);
}

void etcd_answer_nonsense(const struct etcd_target *t, const char *what, struct etcd_answer *out)
{
	say(t, ETCD_NONSENSE, "answers what etcd's v3 gateway does not", what, out);
}

/* gRPC's status codes: https://grpc.github.io/grpc/core/md_doc_statuscodes.html; messages: etcd's rpctypes/error.go. */
void etcd_answer_error(const struct etcd_target *t, int code, const char *message, struct etcd_answer *out)
{
	if (strstr(message, "database space exceeded")) {
		say(t, ETCD_NO, "has a full database (raise its --quota-backend-bytes, or compact and defragment it)", message,
		    out);
	} else if (strstr(message, "invalid auth token") || strstr(message, "revision of auth store is old") || code == 16) {
		say(t, ETCD_LOGIN, "wants a new login", message, out);
	} else if (strstr(message, "user name is empty")) {
		say(t, ETCD_NO, "wants a user and a password: give the token with --token-file, RAMPART_TOKEN or ?token=SECRET in the URL", message, out);
		code = 16;
	} else if (strstr(message, "authentication failed") || strstr(message, "authentication is not enabled")) {
		say(t, ETCD_NO, "refuses the token", message, out);
	} else if (code == 7) {
		say(t, ETCD_NO, "does not let this user have keys below /rampart/", message, out);
	} else if (code == 1 || code == 4 || code == 8 || code == 10 || code == 13 || code == 14) {
		say(t, ETCD_AWAY, "cannot serve at the moment", message, out);
	} else {
		say(t, ETCD_NO, "refuses", message, out);
	}
	out->code = code;
}

/* What curl says of a request without an answer. A certificate that is wrong remains so. */
static void judge_failure(const struct request *r, CURLcode result, struct etcd_answer *out)
{
	const char *detail = r->error[0] ? r->error : curl_easy_strerror(result);

	if (r->too_large)
		etcd_answer_nonsense(r->target, "an answer that is too large", out);
	else if (result == CURLE_WEIRD_SERVER_REPLY || result == CURLE_UNSUPPORTED_PROTOCOL ||
		 result == CURLE_BAD_CONTENT_ENCODING)
		etcd_answer_nonsense(r->target, detail, out);
	else if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CERTPROBLEM ||
		 result == CURLE_SSL_CACERT_BADFILE || result == CURLE_SSL_ISSUER_ERROR)
		say(r->target, ETCD_NO, "cannot be reached over TLS", detail, out);
	else
		say(r->target, ETCD_AWAY, "does not answer", detail, out);
}

/* The error in a body, of a plain answer ({"error":"...","code":3}) or of a stream ({"error":{"grpc_code":2,...}}). True if
 * there is one. */
static bool judge_error(const struct etcd_target *t, const json_t *body, struct etcd_answer *out)
{
	const json_t *error = json_object_get(body, "error");
	const json_t *of = json_is_object(error) ? error : body;
	const char *message = json_string_value(json_object_get(of, "message"));
	const json_t *code = json_object_get(of, json_is_object(error) ? "grpc_code" : "code");

	if (!error)
		return false;
	if (!message)
		message = json_is_string(error) ? json_string_value(error) : "an error without a text";
	etcd_answer_error(t, (int)json_integer_value(code), message, out);
	return true;
}

/* An answer or message, a new reference; NULL with what is wrong with it. */
static json_t *read_body(const struct request *r, size_t bytes, char *what, size_t what_size)
{
	const struct json_limit limit = { r->in_max, ANSWER_MEMORY_MAX };
	json_t *body = bytes ? json_read(r->in, bytes, 0, &limit, what, what_size) : NULL;

	if (json_is_object(body))
		return body;
	if (body || !bytes)
		snprintf(what, what_size, "%s", body ? "another value" : "nothing");
	json_decref(body);
	return NULL;
}

/* *body is an object afterwards, the caller's, or NULL. */
static void judge(struct request *r, CURLcode result, json_t **body, struct etcd_answer *out)
{
	char what[160], why[200];
	long status = 0;

	*body = NULL;
	out->why[0] = '\0';
	if (result != CURLE_OK) {
		judge_failure(r, result, out);
		return;
	}
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	*body = read_body(r, r->in_n, what, sizeof(what));
	if (!*body) {
		snprintf(why, sizeof(why), "HTTP status %ld without a JSON object: %s", status, what);
		if (status >= 500)
			say(r->target, ETCD_AWAY, "cannot serve at the moment", why, out);
		else
			etcd_answer_nonsense(r->target, why, out);
		return;
	}
	if (judge_error(r->target, *body, out))
		return;
	if (status != 200) {
		etcd_answer_nonsense(r->target, "an HTTP status that is not 200, without an error", out);
		return;
	}
	out->outcome = ETCD_OK;
	out->code = 0;
	out->body = *body;
}

/* ---- on a loop */

struct etcd_call {
	struct request request;
	struct etcd_http *http;
	TAILQ_ENTRY(etcd_call) link;
	const struct etcd_call_events *events;
	void *arg;
	bool over;
	CURLcode result;
};

struct watched_socket {
	struct etcd_http *http;
	ev_io io;
};

struct etcd_http {
	const struct etcd_target *target;
	struct ev_loop *loop;
	CURLM *multi;
	ev_timer timer;
	TAILQ_HEAD(, etcd_call) calls;
};

void etcd_call_cancel(struct etcd_call *c)
{
	if (!c)
		return;
	curl_multi_remove_handle(c->http->multi, c->request.easy);
	TAILQ_REMOVE(&c->http->calls, c, link);
	request_end(&c->request);
	free(c);
}

/* True if a complete line of a stream is there. */
static bool has_line(const struct etcd_call *c)
{
	return c->events->on_message && c->request.in_n && memchr(c->request.in, '\n', c->request.in_n);
}

/* Ends and frees a call. */
static void call_end(struct etcd_call *c, const struct etcd_answer *answer)
{
	void (*on_end)(void *, const struct etcd_answer *) = c->events->on_end;
	void *arg = c->arg;

	etcd_call_cancel(c);
	on_end(arg, answer);
}

/* Delivers the first complete line of a stream. */
static void deliver_line(struct etcd_call *c)
{
	struct request *r = &c->request;
	size_t n = (size_t)((char *)memchr(r->in, '\n', r->in_n) - r->in) + 1;
	struct etcd_answer answer = { 0 };
	char what[160];
	json_t *body = read_body(r, n, what, sizeof(what));

	memmove(r->in, r->in + n, r->in_n - n);
	r->in_n -= n;
	if (!body)
		etcd_answer_nonsense(r->target, what, &answer);
	if (body && !judge_error(r->target, body, &answer))
		c->events->on_message(c->arg, body);
	else
		call_end(c, &answer);
	json_decref(body);
}

static void deliver_end(struct etcd_call *c)
{
	struct etcd_answer answer = { 0 };
	json_t *body = NULL;

	if (!c->events->on_message || c->result != CURLE_OK || c->request.in_n)
		judge(&c->request, c->result, &body, &answer);
	if (c->events->on_message && answer.outcome == ETCD_OK)
		say(c->request.target, ETCD_AWAY, "ended a watch", "", &answer);
	call_end(c, &answer);
	json_decref(body);
}

static struct etcd_call *call_with_news(struct etcd_http *h)
{
	struct etcd_call *c;

	TAILQ_FOREACH(c, &h->calls, link) {
		if (c->over || has_line(c))
			return c;
	}
	return NULL;
}

/* Outside of curl's callbacks, so that what is called may begin and cancel calls. */
static void deliver(struct etcd_http *h)
{
	struct etcd_call *c;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&c);
		c->over = true;
		c->result = m->data.result;
	}
	while ((c = call_with_news(h))) {
		if (has_line(c))
			deliver_line(c);
		else
			deliver_end(c);
	}
}

static void on_io(struct ev_loop *loop, ev_io *w, int revents)
{
	struct watched_socket *s = w->data;
	struct etcd_http *h = s->http;
	int running, events = (revents & EV_READ ? CURL_CSELECT_IN : 0) | (revents & EV_WRITE ? CURL_CSELECT_OUT : 0);

	(void)loop;
	curl_multi_socket_action(h->multi, w->fd, events, &running);
	deliver(h);
}

static void on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct etcd_http *h = w->data;
	int running;

	(void)revents;
	ev_timer_stop(loop, w);
	curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	deliver(h);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct etcd_http *h = arg;

	(void)multi;
	ev_timer_stop(h->loop, &h->timer);
	if (timeout_ms >= 0) {
		ev_timer_set(&h->timer, (double)timeout_ms / 1000, 0.);
		ev_timer_start(h->loop, &h->timer);
	}
	return 0;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct etcd_http *h = arg;
	struct watched_socket *s = socket_arg;

	(void)easy;
	if (s)
		ev_io_stop(h->loop, &s->io);
	if (what == CURL_POLL_REMOVE) {
		free(s);
		curl_multi_assign(h->multi, fd, NULL);
		return 0;
	}
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -1;
		s->http = h;
		curl_multi_assign(h->multi, fd, s);
	}
	ev_io_init(&s->io, on_io, fd, (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
	s->io.data = s;
	ev_io_start(h->loop, &s->io);
	return 0;
}

int etcd_http_new(const struct etcd_target *t, struct ev_loop *loop, struct etcd_http **out)
{
	struct etcd_http *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	h->multi = curl_multi_init();
	if (!h->multi) {
		free(h);
		return -ENOMEM;
	}
	h->target = t;
	h->loop = loop;
	TAILQ_INIT(&h->calls);
	ev_timer_init(&h->timer, on_timer, 0., 0.);
	h->timer.data = h;
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	*out = h;
	return 0;
}

void etcd_http_free(struct etcd_http *h)
{
	if (!h)
		return;
	curl_multi_cleanup(h->multi);
	ev_timer_stop(h->loop, &h->timer);
	free(h);
}

int etcd_call_start(struct etcd_http *h, const char *path, json_t *body, const char *token, size_t answer_max,
		    const struct etcd_call_events *events, void *arg, struct etcd_call **out)
{
	struct etcd_call *c = calloc(1, sizeof(*c));
	int ret = -ENOMEM;

	if (!c)
		json_decref(body);
	else
		ret = request_begin(&c->request, h->target, path, body, token, answer_max);
	if (ret) {
		free(c);
		return ret;
	}
	c->http = h;
	c->events = events;
	c->arg = arg;
	curl_easy_setopt(c->request.easy, CURLOPT_PRIVATE, c);
	if (!events->on_message)
		curl_easy_setopt(c->request.easy, CURLOPT_TIMEOUT_MS, (long)(h->target->patience_ns / NS_PER_MS));
	TAILQ_INSERT_TAIL(&h->calls, c, link);
	if (curl_multi_add_handle(h->multi, c->request.easy) != CURLM_OK) {
		etcd_call_cancel(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

/* ---- blocking */

struct etcd_line {
	const struct etcd_target *target;
	CURLM *multi;			/* of one request; kept, so that the connection is */
	atomic_bool hung_up;
	json_t *body;
};

int etcd_line_new(const struct etcd_target *t, struct etcd_line **out)
{
	struct etcd_line *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->target = t;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	l->multi = curl_multi_init();
	if (!l->multi) {
		free(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

void etcd_line_free(struct etcd_line *l)
{
	if (!l)
		return;
	curl_multi_cleanup(l->multi);
	json_decref(l->body);
	free(l);
}

void etcd_line_hang_up(struct etcd_line *l, bool hang_up)
{
	atomic_store(&l->hung_up, hang_up);
	if (hang_up)
		curl_multi_wakeup(l->multi);
}

static CURLcode line_wait(struct etcd_line *l)
{
	CURLcode result = CURLE_OPERATION_TIMEDOUT;
	int running = 1, left;
	CURLMsg *m;

	while (!atomic_load(&l->hung_up) && curl_multi_perform(l->multi, &running) == CURLM_OK && running)
		curl_multi_poll(l->multi, NULL, 0, 1000, NULL);
	while ((m = curl_multi_info_read(l->multi, &left))) {
		if (m->msg == CURLMSG_DONE)
			result = m->data.result;
	}
	return result;
}

void etcd_line_call(struct etcd_line *l, const char *path, json_t *body, const char *token, uint64_t limit_ns,
		    struct etcd_answer *out)
{
	struct request r;

	json_decref(l->body);
	l->body = NULL;
	if (request_begin(&r, l->target, path, body, token, LINE_ANSWER_MAX)) {
		say(l->target, ETCD_AWAY, "is not asked", "this machine is out of memory", out);
		return;
	}
	curl_easy_setopt(r.easy, CURLOPT_TIMEOUT_MS, (long)(limit_ns / NS_PER_MS) + 1);
	if (curl_multi_add_handle(l->multi, r.easy) == CURLM_OK) {
		CURLcode result = line_wait(l);

		judge(&r, result, &l->body, out);
		curl_multi_remove_handle(l->multi, r.easy);
	} else {
		judge(&r, CURLE_OUT_OF_MEMORY, &l->body, out);
	}
	request_end(&r);
}
