/* SPDX-License-Identifier: BSD-2-Clause */
/* The client of etcd against servers that only claim to be etcd: garbled, cut-off and endless answers, and wrong types.
 * Each case ends with one sentence, or is tried again. A thread of the test serves HTTP on the loopback address. */
#include "tests/unit/helpers/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>
#include <jansson.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/cluster/etcd/etcd.h"

#define GRANT "{\"header\":{},\"ID\":\"77\",\"TTL\":\"5\"}"
#define ALIVE "{\"result\":{\"ID\":\"77\",\"TTL\":\"5\"}}"
#define EMPTY "{\"header\":{\"revision\":\"5\"}}"
#define CREATED "{\"result\":{\"created\":true}}\n"
#define HUGE_BYTES (40 * 1024 * 1024)

enum how { PLAIN, CHUNKED, CUT, HUGE_ANSWER, NO_HTTP, CLOSED };

struct scene {
	const char *path;		/* the path whose answer is wrong */
	enum how how;
	int status;
	const char *body;
	const char *out;		/* expected in on_out's sentence; NULL: the client tries again */
};

static struct {
	int listener;
	pthread_t thread;
	char url[64];
	_Atomic(const char *) second;	/* the second answer, after which a watch is silent; NULL: always the scene's */
	_Atomic(const struct scene *) scene;
	atomic_uint asked;		/* how many answers were the scene's */
} server;

static void put_text(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = send(fd, text, n, MSG_NOSIGNAL);

		if (done <= 0)
			return;
		text += done;
		n -= (size_t)done;
	}
}

static void put_body(int fd, enum how how, int status, const char *body)
{
	char head[256];
	size_t n = strlen(body);

	if (how == CLOSED)
		return;
	if (how == NO_HTTP) {
		put_text(fd, body, n);
		return;
	}
	if (how == CHUNKED)
		snprintf(head, sizeof(head), "HTTP/1.1 %d x\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n", status, n);
	else
		snprintf(head, sizeof(head), "HTTP/1.1 %d x\r\nContent-Length: %zu\r\n\r\n", status,
			 how == HUGE_ANSWER ? HUGE_BYTES : n + (how == CUT));
	put_text(fd, head, strlen(head));
	put_text(fd, body, n);
	if (how == CHUNKED)
		put_text(fd, "\r\n0\r\n\r\n", 7);
	for (size_t i = 0; how == HUGE_ANSWER && i < HUGE_BYTES / 1024; i++) {
		char spaces[1024];

		memset(spaces, ' ', sizeof(spaces));
		put_text(fd, spaces, sizeof(spaces));
	}
}

/* Serves one request on one connection. */
static void serve(int fd)
{
	char request[16384] = "";
	size_t n = 0;
	const char *length, *body;
	const struct scene *s = atomic_load(&server.scene);

	for (;;) {
		ssize_t got = recv(fd, request + n, sizeof(request) - 1 - n, 0);

		if (got <= 0)
			return;
		n += (size_t)got;
		request[n] = '\0';
		body = strstr(request, "\r\n\r\n");
		length = strstr(request, "Content-Length: ");
		if (body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10))
			break;
	}
	if (strncmp(request + strlen("POST /v3/"), s->path, strlen(s->path)) == 0) {
		unsigned before = atomic_fetch_add(&server.asked, 1);
		const char *second = atomic_load(&server.second);

		put_body(fd, s->how, s->status, !before || !second ? s->body : before == 1 ? second : CREATED);
	} else if (strstr(request, "/v3/lease/grant ")) {
		put_body(fd, PLAIN, 200, GRANT);
	} else if (strstr(request, "/v3/lease/keepalive ")) {
		put_body(fd, PLAIN, 200, ALIVE);
	} else if (strstr(request, "/v3/watch ")) {
		put_body(fd, CHUNKED, 200, CREATED);
	} else {
		put_body(fd, PLAIN, 200, EMPTY);
	}
}

static void *run(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(server.listener, NULL, NULL)) >= 0) {
		serve(fd);
		shutdown(fd, SHUT_RDWR);
		close(fd);
	}
	return NULL;
}

struct host {
	char out[600], seen[100];
	size_t done;
};

static void on_out(void *arg, const char *why) { snprintf(((struct host *)arg)->out, 600, "%s", why); }
static void on_tick(struct ev_loop *l, ev_timer *w, int revents) { (void)l; (void)w; (void)revents; }

static void on_entry(void *arg, const struct etcd_entry *e)
{
	struct host *h = arg;

	snprintf(h->seen + strlen(h->seen), sizeof(h->seen) - strlen(h->seen), "+%s ", e->key);
}

static void on_gone(void *arg, const char *key)
{
	struct host *h = arg;

	snprintf(h->seen + strlen(h->seen), sizeof(h->seen) - strlen(h->seen), "-%s ", key);
}

static void on_done(void *arg, enum etcd_status status, const char *why)
{
	(void)why;
	((struct host *)arg)->done += status == ETCD_DONE;
}

static const struct etcd_watch_events watch_events = { on_entry, on_gone, NULL };

static void play_seen(const struct scene *s, const char *seen)
{
	struct etcd_config c = { .url = server.url, .lease_ns = 5 * NS_PER_S };
	struct etcd_write w = { "k", "v", 1, false };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct host h = { .out = "" };
	struct etcd *etcd;
	uint64_t end_ns = clock_now_ns() + 60 * NS_PER_S;
	ev_timer tick;
	char err[512];

	atomic_store(&server.scene, s);
	atomic_store(&server.asked, 0);
	assert_int_equal(etcd_open(&c, loop, on_out, &h, &etcd, err, sizeof(err)), 0);
	assert_int_equal(etcd_watch(etcd, "k", &watch_events, &h), 0);
	if (strcmp(s->path, "kv/txn") == 0)
		assert_int_equal(etcd_transact(etcd, NULL, 0, &w, on_done, &h), 0);
	ev_timer_init(&tick, on_tick, 0.005, 0.005);
	ev_timer_start(loop, &tick);
	while (!h.out[0] && clock_now_ns() < end_ns && (s->out || atomic_load(&server.asked) < 3))
		ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &tick);
	if (s->out && !strstr(h.out, s->out))
		fail_msg("%s, %.60s: '%s' does not say '%s'", s->path, s->body, h.out, s->out);
	if (!s->out) {
		assert_string_equal(h.out, "");
		assert_true(atomic_load(&server.asked) >= 3);
	}
	assert_null(strchr(h.out, '\n'));
	assert_string_equal(h.seen, seen);
	assert_int_equal(h.done, 0);
	etcd_close(etcd, 0);
	ev_loop_destroy(loop);
}

static void play(const struct scene *s)
{
	play_seen(s, "");
}

#define NOT_ETCD "answers what etcd's v3 gateway does not"

TEST(answers__hostile__one_sentence_or_tried_again)
{
	static const struct scene scenes[] = {
		{ "lease/grant", PLAIN, 200, "hello", NOT_ETCD },
		{ "lease/grant", PLAIN, 404, "404 page not found", NOT_ETCD },
		{ "lease/grant", PLAIN, 200, "[1]", NOT_ETCD },
		{ "lease/grant", PLAIN, 200, "{}", NOT_ETCD },
		{ "lease/grant", PLAIN, 200, "{\"ID\":\"x\",\"TTL\":\"5\"}", NOT_ETCD },
		{ "lease/grant", PLAIN, 200, "{\"ID\":\"5\",\"TTL\":\"9223372036854775807\"}", NOT_ETCD },
		{ "lease/grant", HUGE_ANSWER, 200, "{", NOT_ETCD },
		{ "lease/grant", NO_HTTP, 0, "SSH-2.0-x\r\n", NOT_ETCD },
		{ "lease/grant", PLAIN, 200, "{\"error\":\"\\u001b[31mno\\nway\",\"code\":3}",
		  "refuses: \\x1b[31mno\\x0away" },
		{ "lease/grant", CLOSED, 0, "", NULL },
		{ "lease/grant", CUT, 200, GRANT, NULL },
		{ "lease/grant", PLAIN, 503, "busy", NULL },
		{ "lease/keepalive", PLAIN, 200, "{\"result\":{\"ID\":\"78\",\"TTL\":\"5\"}}", NOT_ETCD },
		{ "lease/keepalive", PLAIN, 200, "{\"result\":{\"ID\":\"77\"}}", "let this host's lease go" },
		{ "kv/range", CHUNKED, 200, "{\"header\":{\"revision\":\"5\"},\"kvs\":[{}]}", NOT_ETCD },
		{ "kv/range", CHUNKED, 200, "{\"header\":{\"revision\":\"5\"},\"kvs\":{\"a\":1}}", NOT_ETCD },
		{ "kv/range", PLAIN, 200, "{\"header\":{\"revision\":-5}}", NOT_ETCD },
		{ "kv/range", PLAIN, 200, "{\"kvs\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", NOT_ETCD },
		{ "kv/range", HUGE_ANSWER, 200, "{", NOT_ETCD },
		{ "kv/txn", PLAIN, 200, "{\"succeeded\":true}", NOT_ETCD },
		{ "kv/txn", PLAIN, 200, "{\"succeeded\":true,\"header\":{\"revision\":\"6\"},\"responses\":[{},{}]}",
		  NOT_ETCD },
		{ "kv/txn", PLAIN, 200, "{\"responses\":[{\"response_range\":{\"kvs\":[{\"version\":\"9\"}]}}]}",
		  NOT_ETCD },
		{ "kv/txn", PLAIN, 200, "{\"responses\":[{\"response_range\":{}}]}", "let this host's lease go" },
		{ "kv/txn", CUT, 200, "{\"succeeded\":true", NULL },
		{ "watch", CHUNKED, 200, "{\"result\":[]}\n", NOT_ETCD },
		{ "watch", CHUNKED, 200, "garbage\n", NOT_ETCD },
		{ "watch", CHUNKED, 200, "{\"result\":{\"events\":[{\"kv\":{\"key\":\"eA==\"}}]}}\n", NOT_ETCD },
		{ "watch", HUGE_ANSWER, 200, "{", NOT_ETCD },
		{ "watch", CHUNKED, 200, "{\"result\":{\"canceled\":true,\"cancel_reason\":\"PermissionDenied\"}}\n",
		  "does not let" },
		{ "watch", CHUNKED, 200, "{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}\n", NULL },
		{ "watch", PLAIN, 200, "{\"result\":{}}", NULL },
		{ "watch", CUT, 200, "{\"result\":{\"created\":true}}\n", NULL },
	};

	for (size_t i = 0; i < N_ELEMENTS(scenes); i++)
		play(&scenes[i]);
}

/* The keys "/rampart/r/k1" and so on. */
#define KEY(n, revision) \
	"\"kv\":{\"key\":\"L3JhbXBhcnQvci9r" n "\",\"create_revision\":\"" revision \
	"\",\"mod_revision\":\"" revision "\"}"

/* etcd splits a revision with many changes. The next stream begins with the whole revision. */
TEST(watch__stream_breaks_within_a_revision__each_change_once)
{
	static const struct scene scene = { "watch", CHUNKED, 200,
		CREATED "{\"result\":{\"fragment\":true,\"events\":[{" KEY("MQ==", "6") "},{" KEY("Mg==", "6") "}]}}\n",
		NULL };
	static const char second[] = CREATED "{\"result\":{\"events\":[{" KEY("MQ==",
									      "6") "},{" KEY("Mg==",
											     "6") "},{" KEY("Mw==",
													    "6") "},"
		"{\"type\":\"DELETE\"," KEY("Mg==", "7") "}]}}\n";

	atomic_store(&server.second, second);
	play_seen(&scene, "+k1 +k2 +k3 -k2 ");
	atomic_store(&server.second, NULL);
}

/* Bytes that jansson has allocated. */
static atomic_size_t json_bytes;

static void *count_json(size_t n)
{
	atomic_fetch_add(&json_bytes, n);
	return malloc(n);
}

/* 20 MB of text that would take 1.7 GB once parsed. */
TEST(answers__that_unfold__refused_before_they_are_parsed)
{
	enum { BYTES = 20 * 1000 * 1000 };
	static const char begin[] = "{\"kvs\":[{}", unit[] = ",{}", end[] = "]}\n";
	char *body = malloc(BYTES + 1);
	struct scene scenes[] = {
		{ "kv/range", PLAIN, 200, body, "would take about" },
		{ "watch", CHUNKED, 200, body, "would take about" },
	};

	memcpy(body, begin, sizeof(begin));
	for (size_t n = strlen(begin); n < BYTES - sizeof(unit) - sizeof(end); n += strlen(unit))
		memcpy(body + n, unit, sizeof(unit));
	strcat(body + BYTES - 20, end);
	json_set_alloc_funcs(count_json, free);
	for (size_t i = 0; i < N_ELEMENTS(scenes); i++) {
		atomic_store(&json_bytes, 0);
		play(&scenes[i]);
		assert_true(atomic_load(&json_bytes) < 1000 * 1000);
	}
	json_set_alloc_funcs(malloc, free);
	free(body);
}

static int open_server(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	(void)state;
	log_init("test_etcd_hostile", LOG_LVL_ERROR);
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server.listener, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(server.listener, 16), 0);
	assert_int_equal(getsockname(server.listener, (struct sockaddr *)&a, &n), 0);
	snprintf(server.url, sizeof(server.url), "etcd://127.0.0.1:%u/r", ntohs(a.sin_port));
	return pthread_create(&server.thread, NULL, run, NULL);
}

static int close_server(void **state)
{
	(void)state;
	shutdown(server.listener, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	close(server.listener);
	return 0;
}

TEST_GROUP(open_server, close_server)
