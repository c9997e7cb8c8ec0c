/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports events to the caller from the loop, and writes this host's keys, such as its latest message. */
#include "loadgen/cluster/cluster_core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "loadgen/cluster/value.h"

#define STALE_S		1.0		/* how long the watch may take to report why a guard failed */

struct told *cluster_tell(struct cluster *c, enum tell what, const char *text)
{
	struct told *t = calloc(1, sizeof(*t));

	if (!t) {
		log_error("out of memory: an event of the run on several hosts is not reported");
		return NULL;
	}
	t->what = what;
	snprintf(t->text, sizeof(t->text), "%s", text);
	STAILQ_INSERT_TAIL(&c->told, t, next);
	if (c->listening && !ev_is_active(&c->tell))
		ev_timer_start(c->loop, &c->tell);
	return t;
}

static void free_told(struct told *t)
{
	json_decref(t->json);
	free(t);
}

static void report(struct cluster *c, const struct told *t)
{
	switch (t->what) {
	case TELL_ALL: c->events.on_all(c->arg, t->text); break;
	case TELL_GO: c->events.on_go(c->arg, t->text, t->json, t->at_ns); break;
	case TELL_LOST: c->events.on_lost(c->arg, t->rank, t->text); break;
	case TELL_OUT: c->events.on_out(c->arg, t->text); break;
	case TELL_SAID: c->events.on_said(c->arg, t->rank, t->json); break;
	}
}

static void on_tell(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct cluster *c = w->data;
	struct told *t;
	bool freed = false;

	(void)loop;
	(void)revents;
	while ((t = STAILQ_FIRST(&c->told))) {
		STAILQ_REMOVE_HEAD(&c->told, next);
		c->freed = &freed;
		report(c, t);
		free_told(t);
		if (freed)
			return;
		c->freed = NULL;
	}
}

void cluster_listen(struct cluster *c, const struct cluster_events *events, void *arg)
{
	c->events = *events;
	c->arg = arg;
	c->listening = true;
	if (!STAILQ_EMPTY(&c->told) && !ev_is_active(&c->tell))
		ev_timer_start(c->loop, &c->tell);
}

void cluster_be_out(struct cluster *c, int error, const char *why)
{
	if (c->out)
		return;
	c->out = true;
	c->error = error;
	snprintf(c->why, sizeof(c->why), "%s", why);
	if (c->joining)
		ev_break(c->loop, EVBREAK_ONE);
	else
		cluster_tell(c, TELL_OUT, why);
}

void cluster_on_written(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	if (status == ETCD_FAILED)
		cluster_be_out(c, -EIO, why);
	else if (status == ETCD_REFUSED && !c->out && !ev_is_active(&c->stale))
		ev_timer_start(c->loop, &c->stale);
}

static void on_stale(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	cluster_be_out(w->data, -ECONNRESET, "this host is no longer in the run: its key or the run's key is gone");
}

void cluster_write_key(struct cluster *c, const struct etcd_write *w, etcd_done_fn *done)
{
	const struct etcd_guard guards[] = {
		{ .key = "members/sealed", .created = c->epoch },
		{ .key = c->key, .created = c->created },
	};
	char why[128];
	int rc;

	if (c->out)
		return;
	rc = etcd_transact(c->etcd, guards, 2, w, done, c);
	/* -ECANCELED: this host is out, and etcd.c is about to report why. */
	if (rc && rc != -ECANCELED) {
		snprintf(why, sizeof(why), "a message to the other hosts (%zu bytes) cannot be sent: %s", w->bytes,
			 strerror(-rc));
		cluster_be_out(c, rc, why);
	}
}

void cluster_write_json(struct cluster *c, const char *key, json_t *document, size_t text_max, etcd_done_fn *done)
{
	struct etcd_write w = { .key = key };
	void *value = document ? value_pack(document, text_max, &w.bytes) : NULL;

	w.value = value;
	json_decref(document);
	if (value)
		cluster_write_key(c, &w, done);
	else
		cluster_be_out(c, -ENOMEM, "a message to the other hosts is too long, or this host is out of memory");
	free(value);
}

void cluster_run_key(const struct cluster *c, char key[ETCD_KEY_MAX + 1], const char *fmt, ...)
{
	int n = snprintf(key, ETCD_KEY_MAX + 1, "%s/", c->uuid);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(key + n, (size_t)(ETCD_KEY_MAX + 1 - n), fmt, ap);
	va_end(ap);
}

bool cluster_read_number(const char **text, uint32_t max, uint32_t *out)
{
	const char *p = *text;
	uint64_t n = 0;

	for (; *p >= '0' && *p <= '9' && n <= max; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (p == *text || n > max)
		return false;
	*text = p;
	*out = (uint32_t)n;
	return true;
}

void cluster_watch(struct cluster *c, const char *prefix, const struct etcd_watch_events *events)
{
	if (etcd_watch(c->etcd, prefix, events, c))
		cluster_be_out(c, -ENOMEM, "cannot watch etcd: out of memory");
}

void cluster_on_said(struct cluster *c, uint32_t rank, const struct etcd_entry *e)
{
	json_t *what = value_unpack(e->value, e->bytes, SAID_TEXT_MAX, SAID_MEMORY_MAX, NULL);
	struct told *t = what && !c->hosts[rank].put_out ? cluster_tell(c, TELL_SAID, "") : NULL;

	if (!t) {
		json_decref(what);
		return;
	}
	t->rank = rank;
	t->json = what;
}

static void say_on(struct cluster *c);

static void on_say_written(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	(void)status;	/* a later message replaces this one; other writes notice a lost lease */
	(void)why;
	c->saying = false;
	say_on(c);
}

static void say_on(struct cluster *c)
{
	char key[ETCD_KEY_MAX + 1];
	json_t *what = c->say_next;

	if (!what || c->saying || c->out)
		return;
	c->say_next = NULL;
	c->saying = true;
	if (cluster_is_leader(c))
		cluster_run_key(c, key, "down/say");
	else
		cluster_run_key(c, key, "up/say/%u", c->rank);
	cluster_write_json(c, key, what, SAID_TEXT_MAX, on_say_written);
}

void cluster_say(struct cluster *c, json_t *what)
{
	json_decref(c->say_next);
	c->say_next = what;
	say_on(c);
}

void cluster_core_init(struct cluster *c)
{
	STAILQ_INIT(&c->told);
	ev_timer_init(&c->tell, on_tell, 0., 0.);
	ev_timer_init(&c->stale, on_stale, STALE_S, 0.);
	c->tell.data = c->stale.data = c;
}

void cluster_core_free(struct cluster *c)
{
	struct told *t;

	ev_timer_stop(c->loop, &c->tell);
	ev_timer_stop(c->loop, &c->stale);
	while ((t = STAILQ_FIRST(&c->told))) {
		STAILQ_REMOVE_HEAD(&c->told, next);
		free_told(t);
	}
	json_decref(c->say_next);
}

uint32_t cluster_rank(const struct cluster *c)
{
	return c->rank;
}

uint32_t cluster_hosts(const struct cluster *c)
{
	return c->host_count;
}

bool cluster_is_leader(const struct cluster *c)
{
	return !c->rank;
}

const json_t *cluster_about(const struct cluster *c, uint32_t rank)
{
	return rank < c->host_count ? c->hosts[rank].about : NULL;
}

bool cluster_is_lost(const struct cluster *c, uint32_t rank)
{
	return rank >= c->host_count || c->hosts[rank].lost;
}

bool cluster_is_absent(const struct cluster *c, uint32_t rank)
{
	return cluster_is_lost(c, rank) || c->hosts[rank].left;
}
