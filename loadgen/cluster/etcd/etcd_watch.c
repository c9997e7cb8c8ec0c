/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches keys in etcd below a prefix: delivers the existing keys, then each change once, across connections.
 *
 * A watch reads all keys at one revision (kv/range, in pages), then streams the changes after that revision (watch). A
 * broken stream is restarted after the last delivered change. If etcd has compacted that revision, the watch reads
 * again and delivers the differences to what it delivered before. */
#include "loadgen/cluster/etcd/etcd_core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_KEYS	16
#define ANSWER_MAX	(PAGE_KEYS * (ETCD_VALUE_MAX / 3 * 4 + 4096))	/* largest page; watch messages are smaller */
#define KEYS_MAX	(256 * 1024)	/* more than any run has; bounds the memory of this host */

struct etcd_watch {
	TAILQ_ENTRY(etcd_watch) link;
	struct etcd *etcd;
	char prefix[ETCD_KEY_MAX + 1];
	const struct etcd_watch_events *events;
	void *arg;
	struct etcd_call *call;		/* NULL without a pause: waits for a login, or has ended */
	ev_timer pause;
	bool ended, caught_up;
	json_t *known;			/* {key: revision that wrote it}: delivered and still existing keys */
	/* Reading */
	json_t *seen;			/* {key: true}: keys found by the current read; NULL: no read */
	int64_t read_revision;		/* 0: not known before the first page */
	char next_key[ETCD_KEY_MAX + 2];
	/* Streaming */
	int64_t revision;		/* all changes up to it are delivered; 0: the keys must be read first */
	int64_t newest;			/* changes up to it are delivered, but perhaps not all of this one */
};

static void go_on(struct etcd_watch *w);

static void hang_up(struct etcd_watch *w)
{
	etcd_call_cancel(w->call);
	w->call = NULL;
}

/* Ends the watch for good. */
static void watch_end(struct etcd_watch *w)
{
	hang_up(w);
	ev_timer_stop(w->etcd->loop, &w->pause);
	w->ended = true;
}

static void nonsense(struct etcd_watch *w, const char *what)
{
	watch_end(w);
	etcd_lease_nonsense(w->etcd->lease, what);
}

static void rest(struct etcd_watch *w)
{
	hang_up(w);
	ev_timer_again(w->etcd->loop, &w->pause);
}

static void forget_reading(struct etcd_watch *w)
{
	json_decref(w->seen);
	w->seen = NULL;
	w->read_revision = 0;
}

/* Handles a failed request; the outcome is not ETCD_OK. */
static void on_trouble(struct etcd_watch *w, const struct etcd_answer *a)
{
	if (a->outcome == ETCD_AWAY) {
		rest(w);
	} else if (a->outcome == ETCD_LOGIN) {
		hang_up(w);
		etcd_lease_login(w->etcd->lease, w->etcd->state.login);
	} else if (a->outcome == ETCD_NO && a->code == 11) {	/* compacted during the read */
		forget_reading(w);
		rest(w);
	} else {
		watch_end(w);
		etcd_lease_give_up(w->etcd->lease, a->why);
	}
}

/* False: the watch has ended. */
static bool deliver_entry(struct etcd_watch *w, const struct etcd_entry *e)
{
	json_object_set_new(w->known, e->key, json_integer(e->written));
	if (json_object_size(w->known) > KEYS_MAX) {
		nonsense(w, "more keys below one prefix than a run can have");
		return false;
	}
	w->events->on_entry(w->arg, e);
	return true;
}

static void deliver_gone(struct etcd_watch *w, const char *key)
{
	if (w->events->on_gone)
		w->events->on_gone(w->arg, key);
	json_object_del(w->known, key);		/* `key` may be owned by `known` */
}

static bool read_entry(struct etcd_watch *w, const struct etcd_entry *e)
{
	const json_t *written = json_object_get(w->known, e->key);

	json_object_set_new(w->seen, e->key, json_true());
	/* The next page begins with the first key after this one. */
	snprintf(w->next_key, sizeof(w->next_key), "%s", e->key);
	return (written && json_integer_value(written) == e->written) || deliver_entry(w, e);
}

/* Delivers on_gone for known keys that this read did not find. */
static void deliver_missing(struct etcd_watch *w)
{
	const char *key;
	void *next;
	json_t *v;

	json_object_foreach_safe(w->known, next, key, v) {
		if (!json_object_get(w->seen, key))
			deliver_gone(w, key);
	}
}

static void end_reading(struct etcd_watch *w)
{
	deliver_missing(w);
	w->revision = w->newest = w->read_revision;
	forget_reading(w);
	if (!w->caught_up && w->events->on_caught_up)
		w->events->on_caught_up(w->arg);
	w->caught_up = true;
	go_on(w);
}

static void take_page(struct etcd_watch *w, const json_t *body)
{
	const json_t *kvs = json_object_get(body, "kvs"), *kv;
	int64_t revision;
	size_t i;

	if ((kvs && !json_is_array(kvs)) || json_array_size(kvs) > PAGE_KEYS ||
	    !etcd_read_int(json_object_get(body, "header"), "revision", &revision) || revision <= 0) {
		nonsense(w, "keys without a revision, or more of them than were asked for");
		return;
	}
	w->pause.repeat = ETCD_PAUSE_MIN_S;
	if (!w->read_revision)
		w->read_revision = revision;
	json_array_foreach(kvs, i, kv) {
		struct etcd_kv it;
		bool alive;

		if (!etcd_read_kv(kv, w->etcd->root, &it)) {
			nonsense(w, "a key or a value that this program did not write");
			return;
		}
		alive = read_entry(w, &it.entry);
		free(it.memory);
		if (!alive)
			return;
	}
	if (json_is_true(json_object_get(body, "more")) && json_array_size(kvs) > 0)
		go_on(w);
	else
		end_reading(w);
}

static void on_page(void *arg, const struct etcd_answer *a)
{
	struct etcd_watch *w = arg;

	w->call = NULL;
	if (a->outcome == ETCD_OK)
		take_page(w, a->body);
	else
		on_trouble(w, a);
}

static const struct etcd_call_events page_events = { NULL, on_page };

/* The first key after `next_key` is the same key with a 0 byte appended. */
static json_t *page_key(const struct etcd_watch *w)
{
	char key[ETCD_ROOT_MAX + ETCD_KEY_MAX + 2];
	int n;

	if (!w->next_key[0])
		return etcd_key(w->etcd->root, w->prefix);
	n = snprintf(key, sizeof(key), "%s%s", w->etcd->root, w->next_key);
	return etcd_bytes(key, (size_t)n + 1);
}

static int begin_page(struct etcd_watch *w)
{
	if (!w->seen) {
		w->seen = json_object();
		w->next_key[0] = '\0';
		w->read_revision = 0;
	}
	return etcd_call_start(w->etcd->http, "kv/range",
			       json_pack("{s:o, s:o, s:i, s:o}", "key", page_key(w), "range_end",
					 etcd_key_end(w->etcd->root, w->prefix), "limit", PAGE_KEYS, "revision",
					 etcd_int(w->read_revision)),
			       w->etcd->state.token, ANSWER_MAX, w->etcd->target.patience_ns, &page_events, w,
			       &w->call);
}

/* A restarted stream may repeat changes of revision `newest` that the broken one delivered; `known` identifies them.
 * False: ignore the rest of the message. */
static bool on_change(struct etcd_watch *w, const json_t *event)
{
	const char *type = json_string_value(json_object_get(event, "type"));
	bool alive = true, gone = type && strcmp(type, "DELETE") == 0;
	const json_t *known;
	struct etcd_kv it;

	if (!etcd_read_kv(json_object_get(event, "kv"), w->etcd->root, &it)) {
		nonsense(w, "a key or a value that this program did not write");
		return false;
	}
	/* etcd may repeat a change after a watch was resumed. */
	if (it.entry.written <= w->revision)
		return true;
	known = json_object_get(w->known, it.entry.key);
	if (it.entry.written < w->newest) {
		nonsense(w, "changes in the wrong order");
		alive = false;
	} else if (gone && known) {
		deliver_gone(w, it.entry.key);
	} else if (!gone && json_integer_value(known) != it.entry.written) {
		alive = deliver_entry(w, &it.entry);
	}
	if (alive && it.entry.written != w->newest) {
		/* The changes of the previous revision are complete, because those of the next have begun. */
		w->revision = w->newest;
		w->newest = it.entry.written;
	}
	free(it.memory);
	return alive;
}

static void on_cancelled(struct etcd_watch *w, const json_t *result)
{
	const char *reason = json_string_value(json_object_get(result, "cancel_reason"));
	struct etcd_answer a;
	int64_t compacted;

	if (!etcd_read_int(result, "compact_revision", &compacted))
		compacted = 0;
	hang_up(w);
	if (compacted > 0) {
		w->revision = 0;
		rest(w);
		return;
	}
	etcd_answer_error(&w->etcd->target, reason && strstr(reason, "PermissionDenied") ? 7 : 14,
			  reason ? reason : "a watch ended", &a);
	on_trouble(w, &a);
}

static void on_message(void *arg, json_t *body)
{
	struct etcd_watch *w = arg;
	const json_t *result = json_object_get(body, "result"), *events = json_object_get(result, "events"), *event;
	size_t i;

	if (!json_is_object(result) || (events && !json_is_array(events))) {
		nonsense(w, "a watch message without a result");
		return;
	}
	w->pause.repeat = ETCD_PAUSE_MIN_S;
	if (json_is_true(json_object_get(result, "canceled"))) {
		on_cancelled(w, result);
		return;
	}
	json_array_foreach(events, i, event) {
		if (!on_change(w, event))
			return;
	}
	/* Only a message marked as a fragment can end within a revision. */
	if (json_array_size(events) && !json_is_true(json_object_get(result, "fragment")))
		w->revision = w->newest;
}

static void on_stream_end(void *arg, const struct etcd_answer *a)
{
	struct etcd_watch *w = arg;

	w->call = NULL;
	on_trouble(w, a);
}

static const struct etcd_call_events stream_events = { on_message, on_stream_end };

static int begin_stream(struct etcd_watch *w)
{
	return etcd_call_start(w->etcd->http, "watch",
			       json_pack("{s:{s:o, s:o, s:o, s:b}}", "create_request", "key",
					 etcd_key(w->etcd->root, w->prefix),
					 "range_end", etcd_key_end(w->etcd->root, w->prefix), "start_revision",
					 etcd_int(w->revision + 1), "fragment", 1),
			       w->etcd->state.token, ANSWER_MAX, 0, &stream_events, w, &w->call);
}

static void go_on(struct etcd_watch *w)
{
	if (w->revision ? begin_stream(w) : begin_page(w))
		rest(w);
}

static void on_pause_over(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)revents;
	ev_timer_stop(loop, timer);
	timer->repeat = 2 * timer->repeat < ETCD_PAUSE_MAX_S ? 2 * timer->repeat : ETCD_PAUSE_MAX_S;
	go_on(timer->data);
}

void etcd_watches_begin(struct etcd *e)
{
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, link) {
		if (!w->call && !ev_is_active(&w->pause) && !w->ended)
			go_on(w);
	}
}

void etcd_watches_end(struct etcd *e)
{
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, link)
		watch_end(w);
}

void etcd_watches_free(struct etcd *e)
{
	struct etcd_watch *w;

	while ((w = TAILQ_FIRST(&e->watches))) {
		watch_end(w);
		TAILQ_REMOVE(&e->watches, w, link);
		json_decref(w->known);
		json_decref(w->seen);
		free(w);
	}
}

int etcd_watch(struct etcd *e, const char *prefix, const struct etcd_watch_events *events, void *arg)
{
	struct etcd_watch *w;

	if (!etcd_key_is_valid(prefix))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (w)
		w->known = json_object();
	if (!w || !w->known) {
		free(w);
		return -ENOMEM;
	}
	w->etcd = e;
	snprintf(w->prefix, sizeof(w->prefix), "%s", prefix);
	w->events = events;
	w->arg = arg;
	ev_timer_init(&w->pause, on_pause_over, 0., ETCD_PAUSE_MIN_S);
	w->pause.data = w;
	w->ended = e->out;
	TAILQ_INSERT_TAIL(&e->watches, w, link);
	if (e->state.id && !e->out)
		go_on(w);
	return 0;
}
