/* SPDX-License-Identifier: BSD-2-Clause */
/* A watch of etcd's keys below a prefix. See etcd_watch.h. */
#include "loadgen/cluster/etcd/etcd_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "loadgen/cluster/etcd/etcd_json.h"

#define PAGE_KEYS	16
#define ANSWER_MAX	(PAGE_KEYS * (BUS_VALUE_MAX / 3 * 4 + 4096))	/* a page; a message of etcd's is not larger */
#define KEYS_MAX	(256 * 1024)	/* more than hosts and barriers come to: they would fill this host's memory */
#define PAUSE_MIN_S	0.05
#define PAUSE_MAX_S	1.

enum watch_state {
	WATCH_ST_IDLE,		/* waits for a login, or has ended */
	WATCH_ST_PAUSE,		/* waits before the next try */
	WATCH_ST_READ,		/* reads what is there */
	WATCH_ST_STREAM,	/* is told of changes */
};

struct etcd_watch {
	const struct etcd_target *target;
	struct etcd_http *http;
	struct ev_loop *loop;
	const char *root;
	char prefix[BUS_KEY_MAX + 1];
	const struct etcd_watch_events *events;
	void *arg;
	const struct bus_watch_events *user;
	void *user_arg;
	enum watch_state state;
	struct etcd_call *call;
	ev_timer pause;
	char token[1024];
	bool ended, caught_up;
	bool busy, unwanted;		/* a callback runs; it freed the watch, which is done when it returns */
	json_t *known;			/* {key: revision that wrote it}: what was delivered and is there */
	/* Reading */
	json_t *seen;			/* {key: true}: of this reading; NULL: none is under way */
	int64_t read_revision;		/* 0: of the first page, which tells it */
	char next_key[BUS_KEY_MAX + 2];
	/* Streaming */
	int64_t revision;		/* all changes up to it are delivered; 0: nothing is read yet */
	int64_t partial;		/* the revision of which `delivered` changes are delivered, but perhaps not all; 0: none */
	size_t delivered, skip;
};

static void go_on(struct etcd_watch *w);

static void fail(struct etcd_watch *w, const char *why)
{
	etcd_watch_end(w);
	w->events->on_out(w->arg, why);
}

static void nonsense(struct etcd_watch *w, const char *what)
{
	struct etcd_answer a;

	etcd_answer_nonsense(w->target, what, &a);
	fail(w, a.why);
}

static void hang_up(struct etcd_watch *w)
{
	etcd_call_cancel(w->call);
	w->call = NULL;
}

static void rest(struct etcd_watch *w)
{
	hang_up(w);
	w->state = WATCH_ST_PAUSE;
	ev_timer_again(w->loop, &w->pause);
}

static void want_login(struct etcd_watch *w)
{
	hang_up(w);
	w->state = WATCH_ST_IDLE;
	w->events->on_login(w->arg);
}

static void forget_reading(struct etcd_watch *w)
{
	json_decref(w->seen);
	w->seen = NULL;
	w->read_revision = 0;
}

/* What could not be had; not ETCD_OK. */
static void on_trouble(struct etcd_watch *w, const struct etcd_answer *a)
{
	if (a->outcome == ETCD_AWAY) {
		rest(w);
	} else if (a->outcome == ETCD_LOGIN) {
		want_login(w);
	} else if (a->outcome == ETCD_NO && a->code == 11) {	/* compacted while it was read */
		forget_reading(w);
		rest(w);
	} else {
		fail(w, a->why);
	}
}

/* ---- delivering. False: the watch has ended in the callback. */

static bool deliver_entry(struct etcd_watch *w, const struct bus_entry *e)
{
	json_object_set_new(w->known, e->key, json_integer(e->written));
	if (json_object_size(w->known) > KEYS_MAX) {
		nonsense(w, "more keys below one prefix than a run has");
		return false;
	}
	w->user->on_entry(w->user_arg, e);
	return !w->ended;
}

static bool deliver_gone(struct etcd_watch *w, const char *key, int64_t revision)
{
	json_object_del(w->known, key);
	w->user->on_gone(w->user_arg, key, revision);
	return !w->ended;
}

static bool deliver_caught_up(struct etcd_watch *w)
{
	if (!w->caught_up && w->user->on_caught_up)
		w->user->on_caught_up(w->user_arg, w->revision);
	w->caught_up = true;
	return !w->ended;
}

/* Around what delivers: the watch stays in memory meanwhile. */
static void enter(struct etcd_watch *w)
{
	w->busy = true;
}

static void leave(struct etcd_watch *w)
{
	w->busy = false;
	if (w->unwanted)
		etcd_watch_free(w);
}

/* ---- reading */

static bool read_entry(struct etcd_watch *w, const struct bus_entry *e)
{
	const json_t *written = json_object_get(w->known, e->key);

	json_object_set_new(w->seen, e->key, json_true());
	/* The next page begins with the first key behind this one. */
	snprintf(w->next_key, sizeof(w->next_key), "%s", e->key);
	return (written && json_integer_value(written) == e->written) || deliver_entry(w, e);
}

/* The keys that were there and are not any more. */
static bool deliver_missing(struct etcd_watch *w)
{
	json_t *missing = json_object();
	const char *key;
	json_t *v;
	bool alive = true;

	json_object_foreach(w->known, key, v) {
		if (!json_object_get(w->seen, key))
			json_object_set(missing, key, v);
	}
	json_object_foreach(missing, key, v) {
		alive = deliver_gone(w, key, w->read_revision);
		if (!alive)
			break;
	}
	json_decref(missing);
	return alive;
}

static void end_reading(struct etcd_watch *w)
{
	if (!deliver_missing(w))
		return;
	w->revision = w->read_revision;
	w->partial = 0;
	w->delivered = 0;
	forget_reading(w);
	if (deliver_caught_up(w))
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
	w->pause.repeat = PAUSE_MIN_S;
	if (!w->read_revision)
		w->read_revision = revision;
	json_array_foreach(kvs, i, kv) {
		struct etcd_kv it;
		bool alive;

		if (!etcd_read_kv(kv, w->root, &it)) {
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
	if (a->outcome != ETCD_OK) {
		on_trouble(w, a);
		return;
	}
	enter(w);
	take_page(w, a->body);
	leave(w);
}

static const struct etcd_call_events page_events = { NULL, on_page };

/* The first key behind `next_key`: the same with a 0 behind it. */
static json_t *page_key(const struct etcd_watch *w)
{
	char key[ETCD_ROOT_MAX + BUS_KEY_MAX + 2];
	int n;

	if (!w->next_key[0])
		return etcd_key(w->root, w->prefix);
	n = snprintf(key, sizeof(key), "%s%s", w->root, w->next_key);
	return etcd_bytes(key, (size_t)n + 1);
}

static int begin_page(struct etcd_watch *w)
{
	if (!w->seen) {
		w->seen = json_object();
		w->next_key[0] = '\0';
		w->read_revision = 0;
	}
	w->state = WATCH_ST_READ;
	return etcd_call_start(w->http, "kv/range",
			       json_pack("{s:o, s:o, s:i, s:o}", "key", page_key(w), "range_end",
					 etcd_key_end(w->root, w->prefix), "limit", PAGE_KEYS, "revision",
					 etcd_int(w->read_revision)),
			       w->token, ANSWER_MAX, &page_events, w, &w->call);
}

/* ---- streaming */

/* True if this change was delivered by a stream that broke. */
static bool is_old(struct etcd_watch *w, int64_t revision)
{
	if (revision <= w->revision)
		return true;
	if (revision != w->partial) {
		/* The last one's changes are complete: those of the next have begun. */
		if (w->partial)
			w->revision = w->partial;
		w->partial = revision;
		w->delivered = 0;
		w->skip = 0;
	}
	if (w->skip) {
		w->skip--;
		return true;
	}
	w->delivered++;
	return false;
}

/* False: the rest of the message does not matter any more. */
static bool on_change(struct etcd_watch *w, const json_t *event)
{
	const char *type = json_string_value(json_object_get(event, "type"));
	bool alive = true, gone = type && strcmp(type, "DELETE") == 0;
	struct etcd_kv it;

	if (!etcd_read_kv(json_object_get(event, "kv"), w->root, &it)) {
		nonsense(w, "a key or a value that this program did not write");
		return false;
	}
	if (it.entry.written <= 0 || it.entry.written < w->partial) {
		nonsense(w, "changes that go back in time");
		alive = false;
	} else if (!is_old(w, it.entry.written)) {
		if (!gone)
			alive = deliver_entry(w, &it.entry);
		else if (json_object_get(w->known, it.entry.key))
			alive = deliver_gone(w, it.entry.key, it.entry.written);
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
	etcd_answer_error(w->target, reason && strstr(reason, "PermissionDenied") ? 7 : 14, reason ? reason : "a watch ended", &a);
	on_trouble(w, &a);
}

static void take_message(struct etcd_watch *w, const json_t *body)
{
	const json_t *result = json_object_get(body, "result"), *events = json_object_get(result, "events"), *event;
	size_t i;

	if (!json_is_object(result) || (events && !json_is_array(events))) {
		nonsense(w, "a message of a watch without a result");
		return;
	}
	w->pause.repeat = PAUSE_MIN_S;
	if (json_is_true(json_object_get(result, "canceled"))) {
		on_cancelled(w, result);
		return;
	}
	json_array_foreach(events, i, event) {
		if (!on_change(w, event))
			return;
	}
	/* etcd cuts a revision in two only by a fragment that says so. */
	if (w->partial && !json_is_true(json_object_get(result, "fragment"))) {
		w->revision = w->partial;
		w->partial = 0;
		w->delivered = 0;
		w->skip = 0;
	}
}

static void on_message(void *arg, json_t *body)
{
	struct etcd_watch *w = arg;

	enter(w);
	take_message(w, body);
	leave(w);
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
	w->state = WATCH_ST_STREAM;
	w->skip = w->delivered;
	return etcd_call_start(w->http, "watch",
			       json_pack("{s:{s:o, s:o, s:o, s:b}}", "create_request", "key", etcd_key(w->root, w->prefix),
					 "range_end", etcd_key_end(w->root, w->prefix), "start_revision",
					 etcd_int(w->revision + 1), "fragment", 1),
			       w->token, ANSWER_MAX, &stream_events, w, &w->call);
}

/* ---- */

static void go_on(struct etcd_watch *w)
{
	if (w->revision ? begin_stream(w) : begin_page(w))
		rest(w);
}

static void on_pause_over(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct etcd_watch *w = timer->data;

	(void)revents;
	ev_timer_stop(loop, timer);
	timer->repeat = 2 * timer->repeat < PAUSE_MAX_S ? 2 * timer->repeat : PAUSE_MAX_S;
	go_on(w);
}

void etcd_watch_begin(struct etcd_watch *w, const char *token)
{
	snprintf(w->token, sizeof(w->token), "%s", token);
	if (w->state == WATCH_ST_IDLE && !w->ended)
		go_on(w);
}

void etcd_watch_end(struct etcd_watch *w)
{
	hang_up(w);
	ev_timer_stop(w->loop, &w->pause);
	w->ended = true;
	w->state = WATCH_ST_IDLE;
}

int etcd_watch_new(const struct etcd_target *t, struct etcd_http *http, struct ev_loop *loop, const char *root, const char *prefix,
		   const struct etcd_watch_events *events, void *arg, const struct bus_watch_events *user_events, void *user_arg,
		   struct etcd_watch **out)
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
	w->target = t;
	w->http = http;
	w->loop = loop;
	w->root = root;
	snprintf(w->prefix, sizeof(w->prefix), "%s", prefix);
	w->events = events;
	w->arg = arg;
	w->user = user_events;
	w->user_arg = user_arg;
	ev_timer_init(&w->pause, on_pause_over, 0., PAUSE_MIN_S);
	w->pause.data = w;
	*out = w;
	return 0;
}

void etcd_watch_free(struct etcd_watch *w)
{
	if (!w)
		return;
	etcd_watch_end(w);
	w->unwanted = true;
	if (w->busy)
		return;
	json_decref(w->known);
	json_decref(w->seen);
	free(w);
}
