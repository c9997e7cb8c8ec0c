/* SPDX-License-Identifier: BSD-2-Clause */
/* A run on several hosts: joining and leaving, the events that the caller is told from the loop, and writes that take place only
 * while this host is in the run. See cluster.h. */
#include "loadgen/cluster/cluster.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/cluster/cluster_core.h"
#include "loadgen/cluster/value.h"

#define LEAVE_NS	(2 * NS_PER_S)
#define STALE_S		1.0		/* for the watch to say why a guard did not hold */

/* ---- Reporting */

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

/* ---- Writing */

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
	cluster_be_out(w->data, -ECONNRESET, "this host is in the run no more: its key or the run's is gone");
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
	/* -ECANCELED: this host is out, and etcd.c is about to say why. */
	if (rc && rc != -ECANCELED) {
		snprintf(why, sizeof(why), "a message to the other hosts (%zu bytes) cannot be sent: %s", w->bytes, strerror(-rc));
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
		cluster_be_out(c, -ENOMEM, "a message to the other hosts is too long, or memory ran out");
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

/* ---- The latest words of hosts */

static void on_said(struct cluster *c, uint32_t rank, const struct etcd_entry *e)
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

	(void)status;	/* the next word comes; what it means for the run, other writes tell */
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

/* ---- Watching */

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
		cluster_be_out(c, -ENOMEM, "the store cannot be watched: memory is short");
}

/* What is left of a key behind "UUID/up/" or "UUID/down/". */
static const char *behind(const char *key, const char *what)
{
	return key + HOST_ID_LEN + strlen(what);
}

/* The rank of a member, which is all that is left of the key. */
static bool rank_at(const struct cluster *c, const char *text, uint32_t *rank)
{
	return cluster_read_number(&text, c->host_count - 1, rank) && !*text && *rank;
}

static void on_up(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	const char *rest = behind(e->key, "/up/");
	uint32_t rank;

	if (!strncmp(rest, "at/", 3))
		cluster_on_arrival(c, rest + 3, e);
	else if (!strncmp(rest, "part/", 5))
		cluster_on_part(c, rest + 5, e);
	else if (!strncmp(rest, "say/", 4) && rank_at(c, rest + 4, &rank))
		on_said(c, rank, e);
	else if (!strncmp(rest, "clock/", 6) && rank_at(c, rest + 6, &rank))
		cluster_on_question(c, rank, e);
}

static void on_down(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	const char *rest = behind(e->key, "/down/");

	if (!strncmp(rest, "go/", 3))
		cluster_on_go(c, rest + 3, e);
	else if (!strcmp(rest, "say"))
		on_said(c, 0, e);
}

void cluster_on_sealed(struct cluster *c)
{
	static const struct etcd_watch_events up_events = { .on_entry = on_up }, down_events = { .on_entry = on_down };
	bool leads = cluster_is_leader(c);
	char prefix[ETCD_KEY_MAX + 1];

	if (leads && barriers_new(c->host_count, BARRIERS_BYTES, &c->barriers)) {
		cluster_be_out(c, -ENOMEM, "memory is short");
		return;
	}
	if (leads)
		c->error_ns = 0;	/* its clock is the run's */
	cluster_run_key(c, prefix, "%s/", leads ? "up" : "down");
	cluster_watch(c, prefix, leads ? &up_events : &down_events);
	if (c->joining)
		ev_break(c->loop, EVBREAK_ONE);
}

/* ---- Joining */

static void on_etcd_out(void *arg, const char *why)
{
	struct cluster *c = arg;

	cluster_be_out(c, c->epoch ? -ECONNRESET : -EIO, why);
}

static void on_waiting(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct cluster *c = w->data;
	const char *trouble = etcd_trouble(c->etcd);
	char text[CLUSTER_TEXT_MAX], why[CLUSTER_TEXT_MAX];

	(void)loop;
	(void)revents;
	snprintf(why, sizeof(why), "the run did not begin within %.0f s: %.400s", (double)c->cfg.join_timeout_ns / NS_PER_S,
		 trouble ? trouble : members_waiting(c, text));
	cluster_be_out(c, -ETIMEDOUT, why);
}

static bool random_id(char out[HOST_ID_LEN + 1])
{
	unsigned char bytes[HOST_ID_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

void cluster_free(struct cluster *c)
{
	struct told *t;

	if (c->freed)
		*c->freed = true;
	ev_timer_stop(c->loop, &c->waiting);
	ev_timer_stop(c->loop, &c->tell);
	ev_timer_stop(c->loop, &c->stale);
	cluster_clock_stop(c);
	while ((t = STAILQ_FIRST(&c->told))) {
		STAILQ_REMOVE_HEAD(&c->told, next);
		free_told(t);
	}
	candidates_clear(&c->candidates);
	for (uint32_t i = 0; i < c->host_count; i++)
		json_decref(c->hosts[i].about);
	free(c->hosts);
	barriers_free(c->barriers);
	json_decref(c->candidates.early);
	json_decref(c->say_next);
	json_decref(c->entry);
	free(c);
}

static void init(struct cluster *c, const struct cluster_config *cfg, struct ev_loop *loop)
{
	c->cfg = *cfg;
	c->loop = loop;
	STAILQ_INIT(&c->told);
	ev_timer_init(&c->tell, on_tell, 0., 0.);
	ev_timer_init(&c->stale, on_stale, STALE_S, 0.);
	ev_timer_init(&c->waiting, on_waiting, (double)cfg->join_timeout_ns / NS_PER_S, 0.);
	c->tell.data = c->stale.data = c->waiting.data = c;
	cluster_clock_init(c);
}

int cluster_begin(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check, void *arg,
		  struct cluster **out, char *err, size_t err_size)
{
	struct etcd_config etcd = { .url = cfg->url, .ca = cfg->ca, .cert = cfg->cert, .key = cfg->key, .lease_ns = cfg->lease_ns };
	struct cluster *c = calloc(1, sizeof(*c));
	json_t *entry = json_pack("{s:i, s:b, s:b, s:i, s:o}", "hosts", (int)cfg->hosts, "leads", cfg->leads, "joins", cfg->joins, "lease_s",
				  (int)((cfg->lease_ns + NS_PER_S - 1) / NS_PER_S), "about", about);
	int rc;

	if (!c || !entry) {
		snprintf(err, err_size, "this machine is out of memory");
		json_decref(entry);
		free(c);
		return -ENOMEM;
	}
	init(c, cfg, loop);
	c->entry = entry;
	c->check = check;
	c->check_arg = arg;
	c->candidates.early = json_object();
	if (!c->candidates.early || !random_id(c->id) || !random_id(c->uuid)) {
		snprintf(err, err_size, "memory ran out, or the kernel gives no random numbers");
		cluster_free(c);
		return -ENOMEM;
	}
	snprintf(c->key, sizeof(c->key), "members/host/%s", c->id);
	rc = etcd_open(&etcd, loop, on_etcd_out, c, &c->etcd, err, err_size);
	if (rc) {
		cluster_free(c);
		return rc;
	}
	members_watch(c);
	*out = c;
	return 0;
}

/* Runs the loop until this host has a rank, or is out. */
static int wait_for_seal(struct cluster *c, char *err, size_t err_size)
{
	c->joining = true;
	ev_now_update(c->loop);
	ev_timer_start(c->loop, &c->waiting);
	ev_run(c->loop, 0);
	ev_timer_stop(c->loop, &c->waiting);
	c->joining = false;
	members_log_refused(c);
	if (c->out) {
		snprintf(err, err_size, "%s", c->why);
		return c->error;
	}
	if (!c->epoch) {
		snprintf(err, err_size, "stopped before the run began");
		return -ECANCELED;
	}
	return 0;
}

int cluster_join(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check, void *arg,
		 struct cluster **out, char *err, size_t err_size)
{
	struct cluster *c;
	int rc;

	if (cfg->hosts > CLUSTER_HOSTS_MAX || (!cfg->hosts && !cfg->joins) || (cfg->leads && cfg->joins)) {
		snprintf(err, err_size, "a run has 1 to %d hosts, and a host cannot both lead and only join", CLUSTER_HOSTS_MAX);
		json_decref(about);
		return -EINVAL;
	}
	rc = cluster_begin(cfg, loop, about, check, arg, &c, err, err_size);
	if (rc)
		return rc;
	rc = wait_for_seal(c, err, err_size);
	if (rc) {
		c->out = true;	/* what fails in etcd_close is nobody's affair */
		etcd_close(c->etcd, rc == -EIO ? 0 : LEAVE_NS);
		cluster_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

/* ---- Leaving */

static void on_left(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	(void)status;
	(void)why;
	c->left = true;
}

/* Tells the others why, and waits for etcd to have that and what was written before it. */
static void say_goodbye(struct cluster *c, const char *why)
{
	ev_tstamp end = ev_time() + (double)LEAVE_NS / NS_PER_S;

	c->listening = false;
	ev_timer_stop(c->loop, &c->tell);
	cluster_write_json(c, c->key, json_pack("{s:s?}", "left", why), ENTRY_TEXT_MAX, on_left);
	while (!c->left && !c->out && ev_time() < end) {
		ev_timer_stop(c->loop, &c->stale);
		ev_timer_set(&c->stale, end - ev_time() > 0 ? end - ev_time() : 0, 0.);
		ev_now_update(c->loop);
		ev_timer_start(c->loop, &c->stale);
		ev_run(c->loop, EVRUN_ONCE);
	}
}

void cluster_leave(struct cluster *c, const char *why)
{
	uint64_t begun = clock_now_ns(), spent;

	if (!c)
		return;
	if (!c->out)
		say_goodbye(c, why);
	spent = clock_now_ns() - begun;
	c->out = true;
	etcd_close(c->etcd, spent < LEAVE_NS ? LEAVE_NS - spent : 0);
	cluster_free(c);
}

/* ---- State */

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
