/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends transactions to etcd: in the order of the calls, exactly once, one at a time.
 *
 * Each also writes this host's own key, bound to its lease, and is guarded by that key's version. So one whose answer
 * was lost can be sent again: it cannot take place twice or without the lease, and the version tells if it did. */
#include "loadgen/cluster/etcd/etcd_core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX	(64 * 1024)

struct etcd_txn {
	TAILQ_ENTRY(etcd_txn) link;
	json_t *compare, *success;	/* in etcd's JSON; without this host's own key and without the lease */
	etcd_done_fn *done;
	void *arg;
};

static void txn_free(struct etcd_txn *t)
{
	json_decref(t->compare);
	json_decref(t->success);
	free(t);
}

static json_t *guard_json(const char *root, const struct etcd_guard *g)
{
	return json_pack("{s:o, s:s, s:s, s:o}", "key", etcd_key(root, g->key), "target", "CREATE", "result", "EQUAL",
			 "create_revision", etcd_int(g->created));
}

static json_t *write_json(const char *root, const struct etcd_write *w)
{
	if (w->value)
		return json_pack("{s:{s:o, s:o}}", "request_put", "key", etcd_key(root, w->key), "value",
				 etcd_bytes(w->value, w->bytes));
	return json_pack("{s:{s:o, s:o*}}", "request_delete_range", "key", etcd_key(root, w->key), "range_end",
			 w->below ? etcd_key_end(root, w->key) : NULL);
}

static bool txn_can_be(const struct etcd_guard *g, size_t guards, const struct etcd_write *w)
{
	for (size_t i = 0; i < guards && i < ETCD_GUARDS_MAX; i++) {
		if (!etcd_key_is_valid(g[i].key) || g[i].created < 0)
			return false;
	}
	return guards <= ETCD_GUARDS_MAX && etcd_key_is_valid(w->key) && w->bytes <= ETCD_VALUE_MAX;
}

static void send_next(struct etcd *e);

int etcd_transact(struct etcd *e, const struct etcd_guard *g, size_t guards, const struct etcd_write *w,
		  etcd_done_fn *done, void *arg)
{
	struct etcd_txn *t;

	if (e->out)
		return -ECANCELED;
	if (!txn_can_be(g, guards, w))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->compare = json_array();
	for (size_t i = 0; i < guards; i++)
		json_array_append_new(t->compare, guard_json(e->root, &g[i]));
	t->success = write_json(e->root, w);
	t->done = done;
	t->arg = arg;
	if (json_array_size(t->compare) != guards || !t->success) {
		txn_free(t);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&e->waiting, t, link);
	send_next(e);
	return 0;
}

/* The request for the first transaction. If a guard fails, the answer has this host's own key. */
static json_t *first_json(const struct etcd *e)
{
	const struct etcd_txn *t = TAILQ_FIRST(&e->waiting);
	json_t *compare = json_copy(t->compare), *put = json_object_get(t->success, "request_put");
	char key[32];

	snprintf(key, sizeof(key), ".own/%016" PRIx64, (uint64_t)e->state.id);
	if (put)
		json_object_set_new(put, "lease", etcd_int(e->state.id));
	json_array_append_new(compare, json_pack("{s:o, s:s, s:s, s:o}", "key", etcd_key(e->root, key), "target",
						 "VERSION", "result", "EQUAL", "version", etcd_int(e->requests)));
	return json_pack("{s:o, s:[{s:{s:o, s:o}}, O], s:[{s:{s:o}}]}", "compare", compare, "success", "request_put",
			 "key", etcd_key(e->root, key), "lease", etcd_int(e->state.id), t->success, "failure",
			 "request_range", "key",
			 etcd_key(e->root, key));
}

static void end_first(struct etcd *e, enum etcd_status status, const char *why)
{
	struct etcd_txn *t = TAILQ_FIRST(&e->waiting);

	TAILQ_REMOVE(&e->waiting, t, link);
	e->again = false;
	e->ending = true;
	if (t->done)
		t->done(t->arg, status, why);
	e->ending = false;
	txn_free(t);
	send_next(e);
}

void etcd_txn_fail(struct etcd *e, const char *why)
{
	etcd_call_cancel(e->call);
	e->call = NULL;
	ev_timer_stop(e->loop, &e->pause);
	while (!TAILQ_EMPTY(&e->waiting))
		end_first(e, ETCD_FAILED, why);
}

/* A guard failed, or the version of this host's own key differs, because the transaction took place before or the lease
 * is gone. */
static void on_unsuccessful(struct etcd *e, const json_t *body)
{
	const json_t *range = json_object_get(json_array_get(json_object_get(body, "responses"), 0), "response_range");
	const json_t *own = json_array_get(json_object_get(range, "kvs"), 0);
	int64_t version;

	if (!json_is_object(range) || !etcd_read_int(own, "version", &version)) {
		etcd_lease_nonsense(e->lease, "a transaction result that is neither success nor failure");
	} else if (version == e->requests && json_array_size(TAILQ_FIRST(&e->waiting)->compare)) {
		end_first(e, ETCD_REFUSED, NULL);
	} else if (e->again && version == e->requests + 1) {
		e->requests++;
		end_first(e, ETCD_DONE, NULL);
	} else if (version == 0) {
		etcd_lease_give_up(e->lease,
				   "etcd let this host's lease go: it was not refreshed in time, or was revoked");
	} else {
		etcd_lease_nonsense(e->lease, "a version of this host's key that this host did not write");
	}
}

static void on_answer(struct etcd *e, const json_t *body)
{
	const json_t *responses = json_object_get(body, "responses");

	e->pause.repeat = ETCD_PAUSE_MIN_S;
	if (!json_is_true(json_object_get(body, "succeeded"))) {
		on_unsuccessful(e, body);
	} else if (json_array_size(responses) != 2 || !json_object_get(json_array_get(responses, 0), "response_put")) {
		etcd_lease_nonsense(e->lease, "a transaction result with other parts");
	} else {
		e->requests++;
		end_first(e, ETCD_DONE, NULL);
	}
}

static void on_end(void *arg, const struct etcd_answer *a)
{
	struct etcd *e = arg;

	e->call = NULL;
	snprintf(e->trouble, sizeof(e->trouble), "%s", a->outcome == ETCD_AWAY ? a->why : "");
	switch (a->outcome) {
	case ETCD_OK:
		on_answer(e, a->body);
		break;
	case ETCD_NO:
		/* The lease, a permission or the login is missing; or the fate of the first try is unknown. */
		if (a->code == 5 || a->code == 7 || a->code == 16 || e->again)
			etcd_lease_give_up(e->lease, a->why);
		else
			end_first(e, ETCD_FAILED, a->why);
		break;
	case ETCD_LOGIN:
		e->refused_login = e->state.login;
		etcd_lease_login(e->lease, e->state.login);
		break;
	case ETCD_NONSENSE:
		etcd_lease_give_up(e->lease, a->why);
		break;
	case ETCD_AWAY:
		e->again = true;
		ev_timer_again(e->loop, &e->pause);
		break;
	}
}

static void on_pause_over(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)revents;
	ev_timer_stop(loop, w);
	w->repeat = 2 * w->repeat < ETCD_PAUSE_MAX_S ? 2 * w->repeat : ETCD_PAUSE_MAX_S;
	send_next(w->data);
}

static const struct etcd_call_events call_events = { NULL, on_end };

static void send_next(struct etcd *e)
{
	bool logged_in = e->state.id && e->state.login != e->refused_login;

	if (!logged_in || e->out || e->ending || e->call || ev_is_active(&e->pause) || TAILQ_EMPTY(&e->waiting))
		return;
	if (etcd_call_start(e->http, "kv/txn", first_json(e), e->state.token, ANSWER_MAX, e->target.patience_ns,
			    &call_events, e, &e->call))
		ev_timer_again(e->loop, &e->pause);
}

void etcd_txn_begin(struct etcd *e)
{
	send_next(e);
}

void etcd_txn_init(struct etcd *e)
{
	TAILQ_INIT(&e->waiting);
	e->refused_login = UINT64_MAX;
	ev_timer_init(&e->pause, on_pause_over, 0., ETCD_PAUSE_MIN_S);
	e->pause.data = e;
}
