/* SPDX-License-Identifier: BSD-2-Clause */
/* Transactions on their way to etcd. See etcd_queue.h. */
#include "loadgen/cluster/etcd/etcd_queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/base/clock.h"
#include "loadgen/cluster/etcd/etcd_json.h"

#define BATCH_MAX	32
#define BATCH_BYTES	(BUS_VALUE_MAX + 64 * 1024)	/* etcd takes requests of 1.5 MiB (--max-request-bytes) */
#define OPERATIONS_MAX	127		/* of etcd's 128 (--max-txn-ops); what is inside a transaction counts too */
#define ANSWER_MAX	(1024 * 1024)
#define PAUSE_MIN_S	0.05
#define PAUSE_MAX_S	1.

struct transaction {
	TAILQ_ENTRY(transaction) link;
	json_t *compare, *success;	/* etcd's; a leased put has "lease", to be filled in */
	json_t *keys;			/* {key: true if written} */
	size_t bytes, operations;
	bool guarded;
	bool alone;			/* it concerns prefixes, or a batch with it was refused */
	bus_done_fn *done;
	void *arg;
};

struct etcd_queue {
	const struct etcd_target *target;
	struct etcd_http *http;
	struct ev_loop *loop;
	const char *root;
	const struct etcd_queue_events *events;
	void *arg;
	TAILQ_HEAD(, transaction) waiting;
	size_t batch;			/* how many of `waiting`, from its head, are under way; 0: none */
	struct etcd_call *call;
	ev_timer pause;
	int64_t lease;
	char token[1024];
	bool begun, over;
	bool ending;			/* callbacks run: nothing is sent before all are done */
	bool again;			/* the batch was sent before, and may have taken place */
	int64_t requests;		/* that took place: the version of this host's key */
};

static void transaction_free(struct transaction *t)
{
	json_decref(t->compare);
	json_decref(t->success);
	json_decref(t->keys);
	free(t);
}

/* ---- building one */

static json_t *compare_json(const char *root, const struct bus_guard *g)
{
	json_t *c = json_object();
	static const struct { const char *target, *field; } of[] = {
		[BUS_ABSENT] = { "CREATE", "create_revision" }, [BUS_CREATED] = { "CREATE", "create_revision" },
		[BUS_WRITTEN] = { "MOD", "mod_revision" }, [BUS_NONE_SINCE] = { "MOD", "mod_revision" },
	};
	bool below = g->kind == BUS_NONE_SINCE;

	json_object_set_new(c, "key", etcd_key(root, g->key));
	if (below)
		json_object_set_new(c, "range_end", etcd_key_end(root, g->key));
	json_object_set_new(c, "target", json_string(of[g->kind].target));
	json_object_set_new(c, "result", json_string(below ? "LESS" : "EQUAL"));
	json_object_set_new(c, of[g->kind].field, etcd_int(g->kind == BUS_ABSENT ? 0 : g->revision + below));
	return c;
}

static json_t *put_json(const char *root, const char *key, const void *value, size_t bytes, bool leased)
{
	json_t *put = json_pack("{s:o, s:o}", "key", etcd_key(root, key), "value", etcd_bytes(value, bytes));

	if (leased)
		json_object_set_new(put, "lease", json_null());
	return json_pack("{s:o}", "request_put", put);
}

static json_t *write_json(const char *root, const struct bus_write *w)
{
	json_t *o;

	if (w->kind == BUS_PUT || w->kind == BUS_PUT_LEASED)
		return put_json(root, w->key, w->value ? w->value : "", w->bytes, w->kind == BUS_PUT_LEASED);
	o = json_pack("{s:o}", "key", etcd_key(root, w->key));
	if (w->kind == BUS_DELETE_BELOW)
		json_object_set_new(o, "range_end", etcd_key_end(root, w->key));
	return json_pack("{s:o}", "request_delete_range", o);
}

static bool takes(const struct bus_guard *g, size_t guards, const struct bus_write *w, size_t writes)
{
	size_t bytes = 0;

	if (guards > BUS_GUARDS_MAX || writes > BUS_WRITES_MAX)
		return false;
	for (size_t i = 0; i < guards; i++) {
		if (!etcd_key_is_valid(g[i].key) || g[i].revision < 0 || g[i].revision == INT64_MAX)
			return false;
	}
	for (size_t i = 0; i < writes; i++) {
		if (!etcd_key_is_valid(w[i].key) || w[i].bytes > BUS_VALUE_MAX)
			return false;
		bytes += w[i].bytes;
	}
	return bytes <= BUS_VALUE_MAX;
}

static void fill(struct transaction *t, const char *root, const struct bus_guard *g, size_t guards, const struct bus_write *w,
		 size_t writes)
{
	for (size_t i = 0; i < guards; i++) {
		json_array_append_new(t->compare, compare_json(root, &g[i]));
		json_object_set_new(t->keys, g[i].key, json_false());
		t->alone |= g[i].kind == BUS_NONE_SINCE;
	}
	for (size_t i = 0; i < writes; i++) {
		json_array_append_new(t->success, write_json(root, &w[i]));
		json_object_set_new(t->keys, w[i].key, json_true());
		t->alone |= w[i].kind == BUS_DELETE_BELOW;
		t->bytes += w[i].bytes + 2 * BUS_KEY_MAX;
	}
	t->guarded = guards > 0;
	t->operations = guards > writes + 1 ? guards : writes + 1;
}

static void send_next(struct etcd_queue *q);

int etcd_queue_add(struct etcd_queue *q, const struct bus_guard *g, size_t guards, const struct bus_write *w, size_t writes,
		   bus_done_fn *done, void *arg)
{
	struct transaction *t;

	if (q->over)
		return -ECANCELED;
	if (!takes(g, guards, w, writes))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->compare = json_array();
	t->success = json_array();
	t->keys = json_object();
	t->done = done;
	t->arg = arg;
	fill(t, q->root, g, guards, w, writes);
	if (json_array_size(t->compare) != guards || json_array_size(t->success) != writes) {
		transaction_free(t);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&q->waiting, t, link);
	send_next(q);
	return 0;
}

/* ---- a batch */

/* True if `t` does not touch what the transactions before it in the batch write: etcd judges all guards before it writes, and
 * takes no two writes of a key. */
static bool joins(const struct transaction *t, json_t *written)
{
	const char *key;
	json_t *writes;

	json_object_foreach(t->keys, key, writes) {
		if (json_object_get(written, key))
			return false;
	}
	json_object_foreach(t->keys, key, writes) {
		if (json_is_true(writes))
			json_object_set_new(written, key, json_true());
	}
	return true;
}

static size_t choose(struct etcd_queue *q)
{
	json_t *written = json_object();
	size_t n = 0, bytes = 0, operations = 0;
	struct transaction *t;

	TAILQ_FOREACH(t, &q->waiting, link) {
		size_t most = t->operations > operations ? t->operations : operations;

		if (n > 0 && (t->alone || n == BATCH_MAX || bytes + t->bytes > BATCH_BYTES || n + 2 + most > OPERATIONS_MAX ||
			      !joins(t, written)))
			break;
		if (n == 0)
			(void)!joins(t, written);
		operations = most;
		bytes += t->bytes;
		n++;
		if (t->alone)
			break;
	}
	json_decref(written);
	return n;
}

/* This host's own keys: the one of requests, and a mark for each guarded transaction of a request that took place. */
static void own_key(const struct etcd_queue *q, const char *behind, char out[BUS_KEY_MAX])
{
	snprintf(out, BUS_KEY_MAX, ".bus/%016" PRIx64 "%s", (uint64_t)q->lease, behind);
}

static void mark_key(const struct etcd_queue *q, size_t i, char out[BUS_KEY_MAX])
{
	char behind[24];

	snprintf(behind, sizeof(behind), "/%zu", i);
	own_key(q, behind, out);
}

static void set_lease(const struct etcd_queue *q, json_t *writes)
{
	json_t *w;
	size_t i;

	json_array_foreach(writes, i, w) {
		json_t *put = json_object_get(w, "request_put");

		if (json_object_get(put, "lease"))
			json_object_set_new(put, "lease", etcd_int(q->lease));
	}
}

static json_t *inner_json(const struct etcd_queue *q, const struct transaction *t, size_t i)
{
	json_t *success = json_copy(t->success);
	char key[BUS_KEY_MAX];

	mark_key(q, i, key);
	if (t->guarded)
		json_array_append_new(success, put_json(q->root, key, "", 0, true));
	set_lease(q, success);
	return json_pack("{s:{s:O, s:o}}", "request_txn", "compare", t->compare, "success", success);
}

static json_t *batch_json(const struct etcd_queue *q)
{
	json_t *success = json_array();
	struct transaction *t = TAILQ_FIRST(&q->waiting);
	char key[BUS_KEY_MAX];

	own_key(q, "", key);
	json_array_append_new(success, put_json(q->root, key, "", 0, true));
	set_lease(q, success);
	for (size_t i = 0; i < q->batch; i++, t = TAILQ_NEXT(t, link))
		json_array_append_new(success, inner_json(q, t, i));
	return json_pack("{s:[{s:o, s:s, s:s, s:o}], s:o, s:[{s:{s:o, s:o}}]}", "compare", "key", etcd_key(q->root, key),
			 "target", "VERSION", "result", "EQUAL", "version", etcd_int(q->requests), "success", success,
			 "failure", "request_range", "key", etcd_key(q->root, key), "range_end", etcd_key_end(q->root, key));
}

/* ---- answers */

static void end_first(struct etcd_queue *q, enum bus_status status, int64_t revision, const char *why)
{
	struct transaction *t = TAILQ_FIRST(&q->waiting);
	const struct bus_result result = { status, status == BUS_DONE ? revision : 0, status == BUS_FAILED ? why : NULL };

	TAILQ_REMOVE(&q->waiting, t, link);
	if (t->done)
		t->done(t->arg, &result);
	transaction_free(t);
}

void etcd_queue_fail(struct etcd_queue *q, const char *why)
{
	q->over = true;
	etcd_call_cancel(q->call);
	q->call = NULL;
	ev_timer_stop(q->loop, &q->pause);
	while (!TAILQ_EMPTY(&q->waiting))
		end_first(q, BUS_FAILED, 0, why);
}

static void nonsense(struct etcd_queue *q, const char *what)
{
	struct etcd_answer a;

	etcd_answer_nonsense(q->target, what, &a);
	q->events->on_out(q->arg, a.why);
}

/* What became of the transactions of a batch that took place with `revision`: bit i of `done`. */
static void batch_took_place(struct etcd_queue *q, int64_t revision, uint64_t done)
{
	size_t n = q->batch;

	q->requests++;
	q->again = false;
	q->batch = 0;
	q->ending = true;
	for (size_t i = 0; i < n && !q->over; i++)
		end_first(q, done >> i & 1 ? BUS_DONE : BUS_REFUSED, revision, NULL);
	q->ending = false;
	send_next(q);
}

static void on_success(struct etcd_queue *q, const json_t *body)
{
	const json_t *responses = json_object_get(body, "responses");
	uint64_t done = 0;
	int64_t revision;

	if (!etcd_read_int(json_object_get(body, "header"), "revision", &revision) || revision <= 0 ||
	    json_array_size(responses) != q->batch + 1) {
		nonsense(q, "a transaction without a revision or with another number of parts");
		return;
	}
	for (size_t i = 0; i < q->batch; i++) {
		const json_t *inner = json_object_get(json_array_get(responses, i + 1), "response_txn");

		if (!json_is_object(inner)) {
			nonsense(q, "a part of a transaction that is none");
			return;
		}
		if (json_is_true(json_object_get(inner, "succeeded")))
			done |= UINT64_C(1) << i;
	}
	batch_took_place(q, revision, done);
}

/* Of this host's own keys as they are: which guarded transactions the request of `revision` made. */
static uint64_t marks(const struct etcd_queue *q, const json_t *kvs, int64_t revision)
{
	const struct transaction *t = TAILQ_FIRST(&q->waiting);
	uint64_t done = 0;
	const json_t *kv;
	size_t k;

	for (size_t i = 0; i < q->batch; i++, t = TAILQ_NEXT(t, link))
		done |= t->guarded ? 0 : UINT64_C(1) << i;
	json_array_foreach(kvs, k, kv) {
		struct etcd_kv it;
		const char *number;

		if (!etcd_read_kv(kv, q->root, &it))
			continue;
		number = strlen(it.entry.key) > 22 ? it.entry.key + 22 : "";	/* ".bus/", 16 digits, "/" */
		if (*number && it.entry.written == revision)
			done |= UINT64_C(1) << (strtoul(number, NULL, 10) % 64);
		free(it.memory);
	}
	return done;
}

/* The version of this host's key is another one: its own request took place already, or the lease is gone. */
static void on_failure(struct etcd_queue *q, const json_t *body)
{
	const json_t *range = json_object_get(json_array_get(json_object_get(body, "responses"), 0), "response_range");
	const json_t *kvs = json_object_get(range, "kvs"), *own = json_array_get(kvs, 0);
	int64_t version, revision;

	if (!json_is_object(range) || !etcd_read_int(own, "version", &version) || !etcd_read_int(own, "mod_revision", &revision))
		nonsense(q, "a transaction that says neither yes nor no");
	else if (q->again && version == q->requests + 1)
		batch_took_place(q, revision, marks(q, kvs, revision));
	else if (version == 0)
		q->events->on_out(q->arg, "etcd let this host's lease go: it was not refreshed in time, or was revoked");
	else
		nonsense(q, "a version of this host's key that this host did not write");
}

static void on_refused(struct etcd_queue *q, const struct etcd_answer *a)
{
	struct transaction *t = TAILQ_FIRST(&q->waiting);

	/* The lease, a right, a login; or what became of the first try is not known. */
	if (a->code == 5 || a->code == 7 || a->code == 16 || q->again) {
		q->events->on_out(q->arg, a->why);
		return;
	}
	if (q->batch > 1) {
		for (size_t i = 0; i < q->batch; i++, t = TAILQ_NEXT(t, link))
			t->alone = true;
	} else {
		q->ending = true;
		end_first(q, BUS_FAILED, 0, a->why);
		q->ending = false;
	}
	q->batch = 0;
	send_next(q);
}

static void on_end(void *arg, const struct etcd_answer *a)
{
	struct etcd_queue *q = arg;

	q->call = NULL;
	q->events->on_trouble(q->arg, a->outcome == ETCD_AWAY ? a->why : "");
	switch (a->outcome) {
	case ETCD_OK:
		q->pause.repeat = PAUSE_MIN_S;
		if (json_is_true(json_object_get(a->body, "succeeded")))
			on_success(q, a->body);
		else
			on_failure(q, a->body);
		break;
	case ETCD_NO:
		on_refused(q, a);
		break;
	case ETCD_LOGIN:
		q->begun = false;
		q->events->on_login(q->arg);
		break;
	case ETCD_NONSENSE:
		q->events->on_out(q->arg, a->why);
		break;
	case ETCD_AWAY:
		q->again = true;
		ev_timer_again(q->loop, &q->pause);
		break;
	}
}

static void on_pause_over(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct etcd_queue *q = w->data;

	(void)revents;
	ev_timer_stop(loop, w);
	w->repeat = 2 * w->repeat < PAUSE_MAX_S ? 2 * w->repeat : PAUSE_MAX_S;
	send_next(q);
}

static const struct etcd_call_events call_events = { NULL, on_end };

/* A batch that is to be sent again stays as it is. */
static void send_next(struct etcd_queue *q)
{
	if (!q->begun || q->over || q->ending || q->call || ev_is_active(&q->pause) || TAILQ_EMPTY(&q->waiting))
		return;
	if (!q->again)
		q->batch = choose(q);
	if (etcd_call_start(q->http, "kv/txn", batch_json(q), q->token, ANSWER_MAX, &call_events, q, &q->call))
		ev_timer_again(q->loop, &q->pause);
}

void etcd_queue_begin(struct etcd_queue *q, int64_t lease, const char *token)
{
	q->lease = lease;
	snprintf(q->token, sizeof(q->token), "%s", token);
	q->begun = true;
	send_next(q);
}

int etcd_queue_new(const struct etcd_target *t, struct etcd_http *http, struct ev_loop *loop, const char *root,
		   const struct etcd_queue_events *events, void *arg, struct etcd_queue **out)
{
	struct etcd_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->target = t;
	q->http = http;
	q->loop = loop;
	q->root = root;
	q->events = events;
	q->arg = arg;
	TAILQ_INIT(&q->waiting);
	ev_timer_init(&q->pause, on_pause_over, 0., PAUSE_MIN_S);
	q->pause.data = q;
	*out = q;
	return 0;
}

void etcd_queue_free(struct etcd_queue *q)
{
	if (!q)
		return;
	etcd_call_cancel(q->call);
	ev_timer_stop(q->loop, &q->pause);
	free(q);
}
