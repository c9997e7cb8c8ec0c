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

#define ASKED_ANSWER_MAX (64 * 1024)
/* A page of the largest values is 22 MB of text and little else. A watch message has at most 3 MB of text, but takes 10
 * times as much memory if it consists of many small changes. */
#define ANSWER_MEMORY_MAX (64 * 1024 * 1024)

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

struct etcd_call {
	struct etcd_http *http;
	TAILQ_ENTRY(etcd_call) link;
	const struct etcd_call_events *events;
	void *arg;
	CURL *easy;
	struct curl_slist *headers;
	char *in;			/* received and not yet delivered: `in_n` bytes in a buffer of `in_room` */
	size_t in_n, in_room, in_max;
	bool too_large, over;
	CURLcode result;
	char error[CURL_ERROR_SIZE];
};

struct etcd_http {
	const struct etcd_target *target;
	struct ev_loop *loop;
	CURLM *multi;
	ev_timer timer;
	TAILQ_HEAD(, etcd_call) calls;
	/* Only with a loop of its own. */
	bool owns_loop;
	ev_async wake;
	atomic_bool hung_up;
	struct etcd_answer *asked;	/* where etcd_ask wants the answer; NULL: it has arrived */
	json_t *kept;			/* body of that answer */
};

static size_t on_bytes(char *bytes, size_t size, size_t n, void *arg)
{
	struct etcd_call *c = arg;

	n *= size;
	if (n > c->in_max || c->in_n > c->in_max - n) {
		c->too_large = true;
		return 0;
	}
	if (c->in_n + n + 1 > c->in_room) {
		size_t room = 2 * (c->in_n + n) + 1024;
		char *in = realloc(c->in, room);

		if (!in)
			return 0;
		c->in = in;
		c->in_room = room;
	}
	memcpy(c->in + c->in_n, bytes, n);
	c->in_n += n;
	return n;
}

/* Detects a dead peer: by keepalive on an idle connection, and by the user timeout on one with unacknowledged data
 * (tcp(7)). */
static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	const struct etcd_call *c = arg;
	int on = 1, tries = 3, seconds = (int)(c->http->target->patience_ns / 3 / NS_PER_S) + 1;
	unsigned int patience_ms = (unsigned int)(c->http->target->patience_ns / NS_PER_MS);

	(void)purpose;
	/* These options have no effect on a Unix socket. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof(patience_ms));
	return CURL_SOCKOPT_OK;
}

static bool add_header(struct etcd_call *c, const char *text)
{
	struct curl_slist *list = curl_slist_append(c->headers, text);

	if (list)
		c->headers = list;
	return list;
}

static bool set_headers(struct etcd_call *c, const char *token)
{
	char authorization[1024];

	snprintf(authorization, sizeof(authorization), "Authorization: %s", token);
	/* No "Expect: 100-continue": it costs a round trip. */
	return add_header(c, "Content-Type: application/json") && add_header(c, "Expect:") &&
	       (!*token || add_header(c, authorization));
}

static void set_options(struct etcd_call *c, const char *path, const char *out)
{
	const struct etcd_target *t = c->http->target;
	char url[400];

	snprintf(url, sizeof(url), "%s%s", t->base, path);
	curl_easy_setopt(c->easy, CURLOPT_URL, url);
	curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, out);
	curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(c->easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	curl_easy_setopt(c->easy, CURLOPT_SOCKOPTDATA, c);
	curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c);
	curl_easy_setopt(c->easy, CURLOPT_PROXY, "");	/* ignores http_proxy */
	curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(t->patience_ns / NS_PER_MS));
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(c->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	curl_easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);	/* do not wait for a name lookup */
#endif
	if (t->unix_socket[0])
		curl_easy_setopt(c->easy, CURLOPT_UNIX_SOCKET_PATH, t->unix_socket);
	if (t->ca)
		curl_easy_setopt(c->easy, CURLOPT_CAINFO, t->ca);
	if (t->cert)
		curl_easy_setopt(c->easy, CURLOPT_SSLCERT, t->cert);
	if (t->key)
		curl_easy_setopt(c->easy, CURLOPT_SSLKEY, t->key);
}

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
		say(t, ETCD_NO, "has a full database (raise its --quota-backend-bytes, or compact and defragment it)",
		    message, out);
	} else if (strstr(message, "invalid auth token") || strstr(message, "revision of auth store is old") ||
		   code == 16) {
		say(t, ETCD_LOGIN, "wants a new login", message, out);
	} else if (strstr(message, "user name is empty")) {
		say(t, ETCD_NO,
		    "wants a user and a password: give the token with --token-file, RAMPART_TOKEN or ?token=SECRET in "
		    "the URL",
		    message, out);
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

/* Classifies a request that got no answer by curl's error. A wrong certificate is final: retries cannot mend it. */
static void judge_failure(const struct etcd_call *c, struct etcd_answer *out)
{
	CURLcode result = c->result;
	const char *detail = c->error[0] ? c->error : curl_easy_strerror(result);

	if (c->too_large)
		etcd_answer_nonsense(c->http->target, "an answer that is too large", out);
	else if (result == CURLE_WEIRD_SERVER_REPLY || result == CURLE_UNSUPPORTED_PROTOCOL ||
		 result == CURLE_BAD_CONTENT_ENCODING)
		etcd_answer_nonsense(c->http->target, detail, out);
	else if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CERTPROBLEM ||
		 result == CURLE_SSL_CACERT_BADFILE || result == CURLE_SSL_ISSUER_ERROR)
		say(c->http->target, ETCD_NO, "cannot be reached over TLS", detail, out);
	else
		say(c->http->target, ETCD_AWAY, "does not answer", detail, out);
}

/* Reports the error in a body, if there is one: {"error":"...","code":3} in a plain answer,
 * {"error":{"grpc_code":2,...}} in a stream. Returns true then. */
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

/* Parses an answer or a message: a new reference, or NULL with the fault in `what`. */
static json_t *read_body(const struct etcd_call *c, size_t bytes, char *what, size_t what_size)
{
	const struct json_limit limit = { c->in_max, ANSWER_MEMORY_MAX };
	json_t *body = bytes ? json_read(c->in, bytes, 0, &limit, what, what_size) : NULL;

	if (json_is_object(body))
		return body;
	if (body || !bytes)
		snprintf(what, what_size, "%s", body ? "a JSON value of another type" : "an empty body");
	json_decref(body);
	return NULL;
}

/* The caller owns the body of the answer. */
static void judge_answer(const struct etcd_call *c, struct etcd_answer *out)
{
	json_t *body = NULL;
	char what[160], why[200];
	long status = 0;

	*out = (struct etcd_answer){ .outcome = ETCD_OK };
	if (c->result != CURLE_OK) {
		judge_failure(c, out);
		return;
	}
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	body = read_body(c, c->in_n, what, sizeof(what));
	if (!body) {
		snprintf(why, sizeof(why), "HTTP status %ld without a JSON object: %s", status, what);
		if (status >= 500)
			say(c->http->target, ETCD_AWAY, "cannot serve at the moment", why, out);
		else
			etcd_answer_nonsense(c->http->target, why, out);
	} else if (judge_error(c->http->target, body, out)) {
		json_decref(body);
	} else if (status != 200) {
		etcd_answer_nonsense(c->http->target, "an HTTP status other than 200 without an error", out);
		json_decref(body);
	} else {
		out->body = body;
	}
}

struct watched_socket {
	struct etcd_http *http;
	ev_io io;
};

static void call_free(struct etcd_call *c)
{
	if (c->easy)
		curl_easy_cleanup(c->easy);
	curl_slist_free_all(c->headers);
	free(c->in);
	free(c);
}

void etcd_call_cancel(struct etcd_call *c)
{
	if (!c)
		return;
	curl_multi_remove_handle(c->http->multi, c->easy);
	TAILQ_REMOVE(&c->http->calls, c, link);
	call_free(c);
}

/* True if a complete line of a stream has been received. */
static bool has_line(const struct etcd_call *c)
{
	return c->events->on_message && c->in_n && memchr(c->in, '\n', c->in_n);
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
	size_t n = (size_t)((char *)memchr(c->in, '\n', c->in_n) - c->in) + 1;
	struct etcd_answer answer = { 0 };
	char what[160];
	json_t *body = read_body(c, n, what, sizeof(what));

	memmove(c->in, c->in + n, c->in_n - n);
	c->in_n -= n;
	if (!body)
		etcd_answer_nonsense(c->http->target, what, &answer);
	if (body && !judge_error(c->http->target, body, &answer))
		c->events->on_message(c->arg, body);
	else
		call_end(c, &answer);
	json_decref(body);
}

static void deliver_end(struct etcd_call *c)
{
	bool stream = c->events->on_message;
	struct etcd_answer answer = { .outcome = ETCD_OK };
	json_t *body;

	if (!stream || c->result != CURLE_OK || c->in_n)
		judge_answer(c, &answer);
	body = answer.body;
	if (stream && answer.outcome == ETCD_OK)
		say(c->http->target, ETCD_AWAY, "ended a watch", "", &answer);
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

/* Runs outside the callbacks of curl, so that the callers' callbacks may start and cancel calls. */
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

static void on_wake(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

int etcd_http_new(const struct etcd_target *t, struct ev_loop *loop, struct etcd_http **out)
{
	struct etcd_http *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	h->multi = curl_multi_init();
	h->owns_loop = !loop;
	h->loop = loop ? loop : ev_loop_new(EVFLAG_AUTO);
	h->target = t;
	TAILQ_INIT(&h->calls);
	ev_timer_init(&h->timer, on_timer, 0., 0.);
	h->timer.data = h;
	ev_async_init(&h->wake, on_wake);
	if (!h->multi || !h->loop) {
		etcd_http_free(h);
		return -ENOMEM;
	}
	if (h->owns_loop)
		ev_async_start(h->loop, &h->wake);
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
	if (h->loop)
		ev_timer_stop(h->loop, &h->timer);
	if (h->loop && h->owns_loop)
		ev_loop_destroy(h->loop);
	json_decref(h->kept);
	free(h);
}

int etcd_call_start(struct etcd_http *h, const char *path, json_t *body, const char *token, size_t answer_max,
		    uint64_t limit_ns, const struct etcd_call_events *events, void *arg, struct etcd_call **out)
{
	struct etcd_call *c = calloc(1, sizeof(*c));
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int ret = -ENOMEM;

	json_decref(body);
	if (!c || !text)
		goto out;
	c->http = h;
	c->in_max = answer_max;
	c->events = events;
	c->arg = arg;
	c->easy = curl_easy_init();
	if (!c->easy || !set_headers(c, token))
		goto out;
	set_options(c, path, text);
	curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)((limit_ns + NS_PER_MS - 1) / NS_PER_MS));
	if (curl_multi_add_handle(h->multi, c->easy) != CURLM_OK)
		goto out;
	TAILQ_INSERT_TAIL(&h->calls, c, link);
	*out = c;
	ret = 0;
out:
	free(text);
	if (ret && c)
		call_free(c);
	return ret;
}

void etcd_wake(struct etcd_http *h)
{
	ev_async_send(h->loop, &h->wake);
}

void etcd_hang_up(struct etcd_http *h, bool hang_up)
{
	atomic_store(&h->hung_up, hang_up);
	etcd_wake(h);
}

static void on_rested(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

void etcd_rest(struct etcd_http *h, uint64_t ns)
{
	ev_timer rested;

	ev_now_update(h->loop);
	ev_timer_init(&rested, on_rested, (double)ns / (double)NS_PER_S, 0.);
	ev_timer_start(h->loop, &rested);
	ev_run(h->loop, EVRUN_ONCE);
	ev_timer_stop(h->loop, &rested);
}

static void on_asked(void *arg, const struct etcd_answer *a)
{
	struct etcd_http *h = arg;

	*h->asked = *a;
	h->kept = json_incref(a->body);
	h->asked = NULL;
}

void etcd_ask(struct etcd_http *h, const char *path, json_t *body, const char *token, uint64_t limit_ns,
	      struct etcd_answer *out)
{
	static const struct etcd_call_events events = { NULL, on_asked };
	struct etcd_call *c;

	json_decref(h->kept);
	h->kept = NULL;
	h->asked = out;
	if (etcd_call_start(h, path, body, token, ASKED_ANSWER_MAX, limit_ns, &events, h, &c)) {
		say(h->target, ETCD_AWAY, "cannot be asked", "this machine is out of memory", out);
		return;
	}
	while (h->asked && !atomic_load(&h->hung_up))
		ev_run(h->loop, EVRUN_ONCE);
	if (!h->asked)
		return;
	etcd_call_cancel(c);
	say(h->target, ETCD_AWAY, "did not answer before this host left", "", out);
}
