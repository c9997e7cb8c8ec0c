/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the etcd client against a real etcd: its promises across restarts, compactions, stops and refusals. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ev.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/cluster/etcd/etcd.h"
#include "loadgen/cluster/etcd/etcd_url.h"
#include "loadgen/cluster/etcd/etcd_http.h"
#include "loadgen/cluster/etcd/etcd_json.h"
#include "loadgen/cluster/etcd/etcd_proc.h"
#include "tests/unit/helpers/certs.h"

#define WAIT_NS (60 * NS_PER_S)

static struct ev_loop *loop;
static char folder[64];

/* An etcd without a password, which tests start, kill and start again. */

static struct {
	pid_t pid;
	char port[8], data[96], client[64];
	struct etcd_target target;
	struct etcd_http *http;
} etcd;

static void etcd_begin(const char *option, const char *value)
{
	struct etcd_answer a;

	etcd.pid = fork();
	if (etcd.pid == 0) {
		assert_int_equal(chdir(folder), 0);
		assert_non_null(freopen("etcd.log", "a", stderr));
		execlp("etcd", "etcd", "--name", "r", "--data-dir", etcd.data, "--listen-client-urls", etcd.client,
		       "--advertise-client-urls", etcd.client, "--listen-peer-urls", "unix://peer:0",
		       "--initial-advertise-peer-urls", "unix://peer:0", "--initial-cluster", "r=unix://peer:0",
		       "--heartbeat-interval", "50", "--election-timeout", "250", "--log-level", "error", option, value,
		       NULL);
		_exit(127);
	}
	for (uint64_t end = clock_now_ns() + WAIT_NS; clock_now_ns() < end; usleep(10000)) {
		etcd_ask(etcd.http, "kv/range", json_pack("{s:s}", "key", "AA=="), "", NS_PER_S, &a);
		if (a.outcome != ETCD_AWAY)		/* ETCD_NO: it runs, but wants a password */
			return;
		assert_int_equal(waitpid(etcd.pid, NULL, WNOHANG), 0);
	}
	fail_msg("etcd does not answer: %s", a.why);
}

static void etcd_end(int signal)
{
	if (etcd.pid > 0) {
		kill(etcd.pid, signal);
		waitpid(etcd.pid, NULL, 0);
	}
	etcd.pid = 0;
}

/* Sends a request for which the client has no function. */
static int64_t etcd_request(const char *path, json_t *body)
{
	struct etcd_answer a;
	int64_t revision;

	etcd_ask(etcd.http, path, body, "", 10 * NS_PER_S, &a);
	assert_string_equal(a.why, "");
	assert_true(etcd_read_int(json_object_get(a.body, "header"), "revision", &revision));
	return revision;
}

static int64_t etcd_put(const char *key, const char *value)
{
	return etcd_request("kv/put", json_pack("{s:o, s:o}", "key", etcd_key("/rampart/r/", key), "value",
					    etcd_bytes(value, strlen(value))));
}

static int make_etcd(void **state)
{
	static int runs;

	(void)state;
	snprintf(etcd.data, sizeof(etcd.data), "%s/data.%d", folder, runs++);
	snprintf(etcd.client, sizeof(etcd.client), "http://127.0.0.1:%s", etcd.port);
	snprintf(etcd.target.name, sizeof(etcd.target.name), "127.0.0.1:%s", etcd.port);
	snprintf(etcd.target.base, sizeof(etcd.target.base), "%s/v3/", etcd.client);
	etcd.target.patience_ns = 5 * NS_PER_S;
	assert_int_equal(etcd_http_new(&etcd.target, NULL, &etcd.http), 0);
	return 0;
}

static int end_etcd(void **state)
{
	(void)state;
	etcd_end(SIGKILL);
	etcd_http_free(etcd.http);
	return 0;
}

struct host {
	struct etcd *etcd;
	bool caught_up;
	char out[512];
	size_t done, refused, failed;
	int64_t created;		/* of the key that was seen last */
	char why[512];
	char seen[20000];		/* "+key=value " or "-key " for each change */
};

static void on_out(void *arg, const char *why) { snprintf(((struct host *)arg)->out, 512, "%s", why); }

static void on_entry(void *arg, const struct etcd_entry *e)
{
	struct host *h = arg;
	size_t n = strlen(h->seen);

	assert_true(e->written >= e->created && e->created > 0);
	h->created = e->created;
	snprintf(h->seen + n, sizeof(h->seen) - n, "+%s=%.20s ", e->key, (const char *)e->value);
}

static void on_gone(void *arg, const char *key)
{
	struct host *h = arg;
	size_t n = strlen(h->seen);

	snprintf(h->seen + n, sizeof(h->seen) - n, "-%s ", key);
}

static void on_caught_up(void *arg) { ((struct host *)arg)->caught_up = true; }
static const struct etcd_watch_events watch_events = { on_entry, on_gone, on_caught_up };

static void on_done(void *arg, enum etcd_status status, const char *why)
{
	struct host *h = arg;

	h->done += status == ETCD_DONE;
	h->refused += status == ETCD_REFUSED;
	h->failed += status == ETCD_FAILED;
	snprintf(h->why, sizeof(h->why), "%s", why ? why : "");
}

#define RUN_UNTIL(condition) do { \
	ev_timer tick; \
	uint64_t end_ = clock_now_ns() + WAIT_NS; \
	ev_timer_init(&tick, on_tick, 0.01, 0.01); \
	ev_timer_start(loop, &tick); \
	while (!(condition) && clock_now_ns() < end_) \
		ev_run(loop, EVRUN_ONCE); \
	ev_timer_stop(loop, &tick); \
	assert_true(condition); \
} while (0)

static void on_tick(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
}

static void host_open_at(struct host *h, const char *url, uint64_t lease_s)
{
	struct etcd_config c = { .url = url, .lease_ns = lease_s * NS_PER_S };
	char err[512];

	memset(h, 0, sizeof(*h));
	if (etcd_open(&c, loop, on_out, h, &h->etcd, err, sizeof(err)))
		fail_msg("%s", err);
}

static void host_open(struct host *h, uint64_t lease_s)
{
	char url[64];

	snprintf(url, sizeof(url), "etcd://127.0.0.1:%s/r", etcd.port);
	host_open_at(h, url, lease_s);
}

static void put(struct host *h, const char *key, const char *value)
{
	struct etcd_write w = { .key = key, .value = value, .bytes = strlen(value) };

	assert_int_equal(etcd_transact(h->etcd, NULL, 0, &w, on_done, h), 0);
}

/* Puts `key` if `guarded` was created at the revision `created`; 0: if it does not exist. */
static void put_if(struct host *h, const char *guarded, int64_t created, const char *key)
{
	struct etcd_guard g = { guarded, created };
	struct etcd_write w = { .key = key, .value = "v", .bytes = 1 };

	assert_int_equal(etcd_transact(h->etcd, &g, 1, &w, on_done, h), 0);
}

static void watch(struct host *h, const char *prefix)
{
	h->caught_up = false;
	assert_int_equal(etcd_watch(h->etcd, prefix, &watch_events, h), 0);
	RUN_UNTIL(h->caught_up);
}

static void transactions__guards__each_kind_holds_and_refuses(void **state)
{
	struct etcd_write below = { .key = "a", .below = true }, one = { .key = "g" };
	struct host h;

	(void)state;
	etcd_begin("--max-txn-ops", "128");
	host_open(&h, 5);
	watch(&h, "a");
	put_if(&h, "a", 0, "a");
	RUN_UNTIL(h.done == 1 && h.created);
	put_if(&h, "a", 0, "b");
	put_if(&h, "a", h.created, "c");
	put_if(&h, "a", h.created + 1, "d");
	put_if(&h, "a", h.created, "a");	/* rewriting the key does not change its creation */
	put_if(&h, "a", h.created, "g");
	RUN_UNTIL(h.done + h.refused == 6);
	assert_int_equal(h.done, 4);
	assert_int_equal(h.refused, 2);
	/* A watch's events may arrive after the answers to the transactions, and after another watch's. */
	RUN_UNTIL(strcmp(h.seen, "+a=v +a=v ") == 0);
	watch(&h, "g");
	assert_string_equal(h.seen, "+a=v +a=v +g=v ");
	assert_int_equal(etcd_transact(h.etcd, NULL, 0, &below, on_done, &h), 0);
	RUN_UNTIL(strstr(h.seen, "-a "));
	put_if(&h, "a", h.created, "h");
	RUN_UNTIL(h.refused == 3);
	assert_int_equal(etcd_transact(h.etcd, NULL, 0, &one, on_done, &h), 0);
	RUN_UNTIL(strstr(h.seen, "-g "));
	put(&h, "g", "again");
	RUN_UNTIL(strstr(h.seen, "+g=again "));
	etcd_close(h.etcd, NS_PER_S);
	/* The lease is revoked, and the keys that it held are gone. */
	host_open(&h, 5);
	put_if(&h, "g", 0, "h");
	RUN_UNTIL(h.done == 1);
	etcd_close(h.etcd, NS_PER_S);
}

static void transactions__hundred_at_once__all_take_place_in_order(void **state)
{
	struct host h;
	char key[16], value[16];
	const char *at;
	uint64_t begun_ns;

	(void)state;
	etcd_begin("--max-txn-ops", "128");
	host_open(&h, 5);
	watch(&h, "n/");
	begun_ns = clock_now_ns();
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "n/%d", i % 90);
		snprintf(value, sizeof(value), "%d", i);
		put(&h, key, value);
	}
	RUN_UNTIL(h.done == 100);
	print_message("100 puts at once: %.1f ms\n", (double)(clock_now_ns() - begun_ns) / 1e6);
	RUN_UNTIL(strstr(h.seen, "=99 "));
	at = h.seen;
	for (int i = 0; i < 100; i++) {
		char expected[40];

		snprintf(expected, sizeof(expected), "+n/%d=%d ", i % 90, i);
		assert_memory_equal(at, expected, strlen(expected));
		at += strlen(expected);
	}
	assert_string_equal(at, "");
	etcd_close(h.etcd, NS_PER_S);
}

static void etcd_restarts__within_the_lease__nothing_is_lost_or_seen_twice(void **state)
{
	struct host h;

	(void)state;
	etcd_begin("--max-txn-ops", "128");
	host_open(&h, 10);
	watch(&h, "k/");
	put(&h, "k/1", "1");
	RUN_UNTIL(strstr(h.seen, "k/1"));
	/* Kill etcd with requests in progress: the client must find out which of them took place. */
	for (int i = 2; i < 20; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k/%d", i);
		put_if(&h, key, 0, key);
		ev_run(loop, EVRUN_NOWAIT);
	}
	etcd_end(SIGKILL);
	put_if(&h, "k/1", 1, "k/never");
	RUN_UNTIL(etcd_trouble(h.etcd));
	etcd_begin("--max-txn-ops", "128");
	RUN_UNTIL(h.done == 19 && h.refused == 1 && strstr(h.seen, "k/19="));
	for (int i = 1; i < 20; i++) {
		char entry[16], *first;

		snprintf(entry, sizeof(entry), "+k/%d=", i);
		first = strstr(h.seen, entry);
		assert_non_null(first);
		assert_null(strstr(first + 1, entry));
	}
	assert_null(strchr(h.seen, '-'));
	assert_string_equal(h.out, "");
	etcd_close(h.etcd, NS_PER_S);
}

static void etcd_restarts__with_passwords__this_host_logs_in_again(void **state)
{
	static const char *const users[] = { "root", "rampart" };
	char url[64];
	struct host h;

	(void)state;
	etcd_begin("--bcrypt-cost", "4");
	for (size_t i = 0; i < 2; i++) {
		etcd_request("auth/user/add", json_pack("{s:s, s:s}", "name", users[i], "password", "pw"));
		etcd_request("auth/user/grant", json_pack("{s:s, s:s}", "user", users[i], "role", "root"));
	}
	etcd_request("auth/enable", json_object());
	snprintf(url, sizeof(url), "etcd://127.0.0.1:%s/r?token=pw", etcd.port);
	host_open_at(&h, url, 10);
	watch(&h, "k/");
	put(&h, "k/1", "1");
	RUN_UNTIL(strstr(h.seen, "k/1"));
	/* The token that etcd gave for the password becomes invalid when etcd ends. */
	etcd_end(SIGKILL);
	put(&h, "k/2", "2");
	RUN_UNTIL(etcd_trouble(h.etcd));
	etcd_begin("--bcrypt-cost", "4");
	RUN_UNTIL(h.done == 2 && strstr(h.seen, "k/2"));
	assert_string_equal(h.seen, "+k/1=1 +k/2=2 ");
	assert_string_equal(h.out, "");
	etcd_close(h.etcd, NS_PER_S);
}

static void compaction__while_away__the_difference_is_delivered(void **state)
{
	struct host h;
	int64_t revision;

	(void)state;
	etcd_begin("--max-txn-ops", "128");
	etcd_put("k/same", "1");
	etcd_put("k/gone", "1");
	etcd_put("k/new", "1");
	host_open(&h, 10);
	watch(&h, "k/");
	assert_string_equal(h.seen, "+k/gone=1 +k/new=1 +k/same=1 ");
	etcd_end(SIGTERM);
	h.seen[0] = '\0';
	/* This host does not run its loop here, so it sees none of these changes as they happen. */
	etcd_begin("--max-txn-ops", "128");
	etcd_put("k/new", "2");
	etcd_put("k/new", "3");
	etcd_request("kv/deleterange", json_pack("{s:o}", "key", etcd_key("/rampart/r/", "k/gone")));
	revision = etcd_put("k/other", "4");
	etcd_request("kv/compaction", json_pack("{s:I}", "revision", (json_int_t)revision));
	RUN_UNTIL(strstr(h.seen, "-k/gone"));
	assert_string_equal(h.seen, "+k/new=3 +k/other=4 -k/gone ");
	etcd_close(h.etcd, NS_PER_S);
}

/* A process stopped for longer than its lease knows at once, by its own clock, that it is out. */
static void lease__process_stopped_for_longer__it_is_out_and_writes_nothing(void **state)
{
	struct host h;
	int status;
	pid_t pid;

	(void)state;
	etcd_begin("--max-txn-ops", "128");
	host_open(&h, 10);
	pid = fork();
	if (pid == 0) {
		struct host other;

		ev_loop_fork(loop);
		host_open(&other, 2);
		watch(&other, "members/other");
		put(&other, "members/other", "1");
		RUN_UNTIL(other.done == 1 && other.created);
		raise(SIGSTOP);
		put_if(&other, "members/other", other.created, "late");
		RUN_UNTIL(other.out[0]);
		/* The lease's thread and etcd's answer race: the request fails here, or etcd refuses it. */
		_exit(other.failed + other.refused == 1 && strstr(other.out, "did not refresh its lease") &&
		      etcd_transact(other.etcd, NULL, 0, &(struct etcd_write){ .key = "k" }, on_done, &other) ==
			      -ECANCELED ? 0 : 2);
	}
	waitpid(pid, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	watch(&h, "members/");
	assert_string_equal(h.seen, "+members/other=1 ");
	RUN_UNTIL(strstr(h.seen, "-members/other "));
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	put_if(&h, "late", 0, "not-late");
	RUN_UNTIL(h.done == 1);
	etcd_close(h.etcd, NS_PER_S);
}

static void lease__etcd_away_for_longer__this_host_is_out_within_it(void **state)
{
	struct host h;
	uint64_t begun_ns;

	(void)state;
	etcd_begin("--max-txn-ops", "128");
	host_open(&h, 2);
	put(&h, "k", "v");
	RUN_UNTIL(h.done == 1);
	etcd_end(SIGKILL);
	begun_ns = clock_now_ns();
	RUN_UNTIL(h.out[0]);
	assert_true(clock_now_ns() - begun_ns < 4 * NS_PER_S);
	assert_non_null(strstr(h.out, "does not answer"));
	assert_int_equal(etcd_transact(h.etcd, NULL, 0, &(struct etcd_write){ .key = "k" }, on_done, &h), -ECANCELED);
	etcd_close(h.etcd, NS_PER_S);
}

static void database__full__the_transaction_says_so(void **state)
{
	static char value[512 * 1024];
	struct etcd_write w = { .key = "big", .value = value, .bytes = sizeof(value) };
	struct host h;

	(void)state;
	etcd_begin("--quota-backend-bytes", "2000000");
	host_open(&h, 5);
	memset(value, 'x', sizeof(value));
	while (!h.failed) {
		size_t n = h.done;

		assert_true(n < 20);
		assert_int_equal(etcd_transact(h.etcd, NULL, 0, &w, on_done, &h), 0);
		RUN_UNTIL(h.done + h.failed > n);
	}
	assert_non_null(strstr(h.why, "full database"));
	assert_non_null(strstr(h.why, "mvcc: database space exceeded"));
	assert_string_equal(h.out, "");
	etcd_close(h.etcd, NS_PER_S);
}

static void etcd_proc__token__lets_in_who_has_it_and_nobody_else(void **state)
{
	char err[512], url[ETCD_URL_MAX], public[ETCD_URL_MAX], *token;
	struct etcd_proc_config c = { .host = "127.0.0.1", .run = "r" };
	struct etcd_proc *p;
	struct host h, other;
	struct etcd_url parsed;
	uint64_t begun_ns = clock_now_ns();

	(void)state;
	if (etcd_proc_start(&c, &p, err, sizeof(err)))
		fail_msg("%s", err);
	print_message("etcd for a run serves after %.0f ms\n", (double)(clock_now_ns() - begun_ns) / 1e6);
	host_open_at(&h, etcd_proc_url(p), 5);
	watch(&h, "k");
	put(&h, "k", "secret");
	RUN_UNTIL(strstr(h.seen, "k=secret"));
	assert_int_equal(etcd_url_parse(etcd_proc_url(p), &parsed, err, sizeof(err)), 0);
	assert_int_equal(strlen(parsed.token), 22);

	snprintf(public, sizeof(public), "%.*s", (int)strcspn(etcd_proc_url(p), "?"), etcd_proc_url(p));
	assert_null(strstr(public, parsed.token));
	host_open_at(&other, public, 5);
	put(&other, "k", "other");
	RUN_UNTIL(other.out[0]);
	assert_non_null(strstr(other.out, "wants a user and a password"));
	assert_int_equal(other.failed, 1);
	etcd_close(other.etcd, NS_PER_S);

	snprintf(url, sizeof(url), "%s", etcd_proc_url(p));
	token = strstr(url, "token=") + 6;
	*token = *token == 'A' ? 'B' : 'A';
	host_open_at(&other, url, 5);
	RUN_UNTIL(other.out[0]);
	assert_non_null(strstr(other.out, "refuses the token"));
	assert_null(strstr(other.out, token));
	etcd_close(other.etcd, NS_PER_S);

	assert_string_equal(h.seen, "+k=secret ");
	etcd_close(h.etcd, NS_PER_S);
	etcd_proc_free(p);
}

/* An etcd that only says why it cannot start. */
static void etcd_proc__etcd_fails__its_last_words(void **state)
{
	char path[128], *was = strdup(getenv("PATH")), err[512];
	struct etcd_proc *p;
	FILE *script;

	(void)state;
	snprintf(path, sizeof(path), "%s/etcd", folder);
	script = fopen(path, "w");
	assert_non_null(script);
	fputs("#!/bin/sh\necho one >&2\necho the other >&2\nexit 1\n", script);
	assert_int_equal(fchmod(fileno(script), 0700), 0);
	fclose(script);
	setenv("PATH", folder, 1);
	assert_int_not_equal(etcd_proc_start(&(struct etcd_proc_config){ .host = "127.0.0.1", .run = "r" }, &p, err,
					     sizeof(err)), 0);
	setenv("PATH", was, 1);
	free(was);
	remove(path);
	assert_string_equal(err, "etcd did not start: the other");
}

static void open_with(struct host *h, const char *url, const char *ca, const char *cert, const char *key)
{
	struct etcd_config c = { .url = url, .ca = ca, .cert = cert, .key = key, .lease_ns = 5 * NS_PER_S };
	char err[512];

	memset(h, 0, sizeof(*h));
	if (etcd_open(&c, loop, on_out, h, &h->etcd, err, sizeof(err)))
		fail_msg("%s", err);
}

static void etcd_proc__tls__wants_a_certificate_and_the_token(void **state)
{
	char err[1024], public[ETCD_URL_MAX];
	struct etcd_proc *p;
	struct certs certs;
	struct host h;

	(void)state;
	assert_int_equal(certs_make(&certs), 0);
	if (etcd_proc_start(&(struct etcd_proc_config){ .host = "127.0.0.1", .run = "r", .ca = certs.ca,
			    .cert = certs.server_cert, .key = certs.server_key }, &p, err, sizeof(err)))
		fail_msg("%s", err);
	assert_memory_equal(etcd_proc_url(p), "etcds://", 8);
	open_with(&h, etcd_proc_url(p), certs.ca, certs.client_cert, certs.client_key);
	watch(&h, "k");
	put(&h, "k", "v");
	RUN_UNTIL(strstr(h.seen, "k=v"));
	etcd_close(h.etcd, NS_PER_S);

	/* The client must not get in without a certificate, accept an etcd of another CA, or get in without a token. */
	open_with(&h, etcd_proc_url(p), certs.ca, NULL, NULL);
	put(&h, "k", "v");
	RUN_UNTIL(etcd_trouble(h.etcd));
	assert_int_equal(h.done, 0);
	etcd_close(h.etcd, NS_PER_S);
	open_with(&h, etcd_proc_url(p), certs.other_ca, certs.client_cert, certs.client_key);
	RUN_UNTIL(h.out[0]);
	assert_non_null(strstr(h.out, "cannot be reached over TLS"));
	etcd_close(h.etcd, NS_PER_S);
	snprintf(public, sizeof(public), "%.*s", (int)strcspn(etcd_proc_url(p), "?"), etcd_proc_url(p));
	open_with(&h, public, certs.ca, certs.client_cert, certs.client_key);
	put(&h, "k", "v");
	RUN_UNTIL(h.out[0]);
	assert_non_null(strstr(h.out, "wants a user and a password"));
	etcd_close(h.etcd, NS_PER_S);
	etcd_proc_free(p);
	certs_remove(&certs);
}

/* Makes the folder, and chooses a port below the ephemeral range for etcds without a password. */
static int choose_port(void **state)
{
	struct ev_loop *l = ev_default_loop(EVFLAG_AUTO);

	(void)state;
	loop = l;
	log_init("test_etcd", LOG_LVL_ERROR);
	snprintf(folder, sizeof(folder), "/tmp/rampart-test-etcd.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(etcd.port, sizeof(etcd.port), "%d", 20000 + getpid() % 10000);
	return 0;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

#define WITH_ETCD(test) cmocka_unit_test_setup_teardown(test, make_etcd, end_etcd)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ETCD(transactions__guards__each_kind_holds_and_refuses),
		WITH_ETCD(transactions__hundred_at_once__all_take_place_in_order),
		WITH_ETCD(etcd_restarts__within_the_lease__nothing_is_lost_or_seen_twice),
		WITH_ETCD(etcd_restarts__with_passwords__this_host_logs_in_again),
		WITH_ETCD(compaction__while_away__the_difference_is_delivered),
		WITH_ETCD(lease__process_stopped_for_longer__it_is_out_and_writes_nothing),
		WITH_ETCD(lease__etcd_away_for_longer__this_host_is_out_within_it),
		WITH_ETCD(database__full__the_transaction_says_so),
		cmocka_unit_test(etcd_proc__token__lets_in_who_has_it_and_nobody_else),
		cmocka_unit_test(etcd_proc__etcd_fails__its_last_words),
		cmocka_unit_test(etcd_proc__tls__wants_a_certificate_and_the_token),
	};

	return cmocka_run_group_tests(tests, choose_port, remove_folder);
}
