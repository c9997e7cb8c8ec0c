/* SPDX-License-Identifier: BSD-2-Clause */
/* See team.h. */
#include "loadgen/cluster/team.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/utf8.h"

/* Pause between two progress messages, per host of the run: progress must not keep etcd busy. */
#define TELL_HOST_NS (10 * NS_PER_MS)
/* Maximum memory (json_memory) for the leader's go messages in this run and the next one. The reports of 64 servers
 * take less than 2 MiB, a step takes some hundred bytes. */
#define GONE_BYTES_MAX (32 * 1024 * 1024)

/* Name of a barrier of the current run, as the cluster knows it: with run and step. */
struct whole_name {
	char text[BARRIER_NAME_MAX + 1];
};

static struct whole_name whole_name(const struct team *t, uint32_t step, const char *name)
{
	struct whole_name whole;

	snprintf(whole.text, sizeof(whole.text), "r%u/s%u/%s", t->run, step, name);
	return whole;
}

/* Splits a whole name into step and barrier. False if the name does not belong to the current run. */
static bool part_name(const struct team *t, const char *whole, uint32_t *step, const char **name)
{
	unsigned run;
	int n = 0;

	if (sscanf(whole, "r%u/s%u/%n", &run, step, &n) != 2 || n == 0 || run != t->run)
		return false;
	*name = whole + n;
	return true;
}

static void on_all(void *arg, const char *barrier)
{
	struct team *t = arg;
	const char *name;
	uint32_t step;

	snprintf(t->gathered, sizeof(t->gathered), "%s", barrier);
	if (t->events && part_name(t, barrier, &step, &name))
		t->events->on_all(t->arg, step, name);
	else if (!t->events)
		ev_break(t->loop, EVBREAK_ALL); /* team_gather checks `gathered` */
}

static void be_out(struct team *t, const char *why)
{
	t->out = true;
	snprintf(t->why_out, sizeof(t->why_out), "%s", why);
	log_warn("%s", t->why_out);
	if (t->events)
		t->events->on_out(t->arg, t->why_out);
	else
		ev_break(t->loop, EVBREAK_ALL);
}

/* Drops go messages that nobody reads any more: those of earlier runs, and of steps before the previous one. */
static void drop_older(struct team *t, uint32_t step)
{
	unsigned run, its_step;
	const char *barrier;
	void *next;
	json_t *v;

	json_object_foreach_safe(t->gone, next, barrier, v) {
		if (sscanf(barrier, "r%u/s%u/", &run, &its_step) != 2 || run < t->run ||
		    (run == t->run && its_step > 0 && its_step + 1 < step))
			json_object_del(t->gone, barrier);
	}
}

/* Keeps a go message until a later run begins. False: all kept messages together would take more memory than a run
 * needs. */
static bool keep_gone(struct team *t, const char *barrier, json_t *what)
{
	json_object_set_new(t->gone, barrier, what ? json_incref(what) : json_object());
	if (json_memory(t->gone) <= GONE_BYTES_MAX)
		return true;
	json_object_clear(t->gone);
	return false;
}

static void on_go(void *arg, const char *barrier, json_t *what, uint64_t at_ns)
{
	struct team *t = arg;
	const char *name;
	uint32_t step;
	char why[128];

	t->heard_ns = clock_now_ns();
	if (t->out)
		return;
	if (part_name(t, barrier, &step, &name) && strcmp(name, "step") == 0)
		drop_older(t, step);
	if (!keep_gone(t, barrier, what)) {
		snprintf(why, sizeof(why), "the leader's go messages take more memory than a run needs; allowed: "
					   "%d MiB", GONE_BYTES_MAX >> 20);
		be_out(t, why);
		return;
	}
	if (t->events && part_name(t, barrier, &step, &name))
		t->events->on_go(t->arg, step, name, what, at_ns);
	else if (!t->events)
		ev_break(t->loop, EVBREAK_ALL); /* team_wait checks `gone` */
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	struct team *t = arg;

	log_warn("%s", why);
	t->n_lost++;
	if (rank < CLUSTER_HOSTS_MAX)
		t->live[rank] = (struct team_live){ 0 };
	if (t->events)
		t->events->on_lost(t->arg, rank, why);
}

static void on_out(void *arg, const char *why)
{
	struct team *t = arg;
	char text[sizeof(t->why_out)];

	if (t->out)
		return;
	/* An etcd that the leader started (--lead) ends with the leader, so name that host. */
	if (t->rank != 0 && json_is_true(json_object_get(cluster_about(t->cluster, 0), "has_etcd")))
		snprintf(text, sizeof(text), "%s; that etcd is run by the leader, host %s (rank 0)", why,
			 team_host_name(t, 0));
	else
		snprintf(text, sizeof(text), "%s", why);
	be_out(t, text);
}

static uint64_t count_at(const json_t *o, const char *path)
{
	double v = json_number_at(o, path);

	return v >= 0 && v < 1e18 ? (uint64_t)v : 0;
}

static void read_live(const json_t *o, struct team_live *l)
{
	double per_s = json_number_at(o, "messages_per_s");
	const char *phase = json_text_at(o, "phase");

	l->hosts = (uint32_t)MIN(count_at(o, "hosts"), CLUSTER_HOSTS_MAX);
	l->connecting = count_at(o, "connecting");
	l->connected = count_at(o, "connected");
	l->failed = count_at(o, "failed");
	l->messages_per_s = per_s >= 0 && per_s < 1e15 ? per_s : 0;
	utf8_show(phase ? phase : "", l->phase, sizeof(l->phase));
}

static void on_said(void *arg, uint32_t rank, json_t *what)
{
	struct team *t = arg;
	const char *wish = json_text_at(what, "wish");
	char why[256];

	if (rank >= CLUSTER_HOSTS_MAX)
		return;
	if (rank == 0)
		t->heard_ns = clock_now_ns();
	read_live(what, &t->live[rank]);
	if (t->rank != 0 || !wish || t->wished[rank] || !t->events)
		return;
	t->wished[rank] = true;
	snprintf(why, sizeof(why), "host %u (%.64s): %.150s", rank, team_host_name(t, rank), wish);
	t->events->on_wish(t->arg, why);
}

static const struct cluster_events cluster_events = {
	.on_all = on_all, .on_go = on_go, .on_lost = on_lost, .on_out = on_out, .on_said = on_said,
};

int team_init(struct team *t, struct cluster *cluster, struct ev_loop *loop)
{
	*t = (struct team){ .cluster = cluster, .loop = loop, .rank = cluster_rank(cluster),
			    .n = cluster_hosts(cluster) };
	t->gone = json_object();
	if (!t->gone) {
		t->cluster = NULL; /* the caller leaves it */
		return -ENOMEM;
	}
	cluster_listen(cluster, &cluster_events, t);
	return 0;
}

void team_clear(struct team *t, const char *why)
{
	if (!t)
		return;
	if (t->cluster)
		cluster_leave(t->cluster, why);
	t->cluster = NULL;
	json_decref(t->gone);
	t->gone = NULL;
}

static void leave(struct team *t)
{
	cluster_leave(t->cluster, t->why_out);
	t->cluster = NULL;
}

void team_quit(struct team *t, const char *why)
{
	if (!t || t->out)
		return;
	t->out = t->quits = true;
	snprintf(t->why_out, sizeof(t->why_out), "%s", why);
	if (!t->events)
		leave(t);
}

void team_begin_run(struct team *t, const struct team_events *events, void *arg)
{
	t->run++;
	t->heard_ns = clock_now_ns();
	drop_older(t, 0);
	memset(t->wished, 0, sizeof(t->wished));
	memset(t->live, 0, sizeof(t->live));
	t->events = events;
	t->arg = arg;
}

void team_end_run(struct team *t)
{
	t->events = NULL;
	if (t->quits && t->cluster)
		leave(t);
}

void team_arrive(struct team *t, uint32_t step, const char *name, json_t *note)
{
	cluster_arrive(t->cluster, whole_name(t, step, name).text, note);
}

const json_t *team_note(const struct team *t, uint32_t step, const char *name, uint32_t rank)
{
	return cluster_note(t->cluster, whole_name(t, step, name).text, rank);
}

void team_forget(struct team *t, uint32_t step, const char *name)
{
	cluster_forget(t->cluster, whole_name(t, step, name).text);
}

void team_compare_clocks(struct team *t, uint32_t step, const char *name)
{
	cluster_measure_clock(t->cluster, whole_name(t, step, name).text);
}

void team_go(struct team *t, uint32_t step, const char *name, json_t *what, uint64_t in_ns)
{
	cluster_go(t->cluster, whole_name(t, step, name).text, what, in_ns);
}

void team_put_out_absent(struct team *t, uint32_t step, const char *name, const char *why)
{
	cluster_put_out_absent(t->cluster, whole_name(t, step, name).text, why);
}

json_t *team_gone(const struct team *t, uint32_t step, const char *name)
{
	return json_object_get(t->gone, whole_name(t, step, name).text);
}

uint64_t team_patience_ns(const struct team *t)
{
	uint64_t silent = clock_now_ns() - t->heard_ns;

	return silent < TEAM_SILENCE_NS ? TEAM_SILENCE_NS - silent : 0;
}

const char *team_silence_text(const struct team *t, char *text, size_t size)
{
	snprintf(text, size, "host %.64s (rank 0), which leads the run, said nothing for %llu s", team_host_name(t, 0),
		 (unsigned long long)(TEAM_SILENCE_NS / NS_PER_S));
	return text;
}

static void on_late(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

/* Runs the loop until an event of the cluster ends it (ev_break), for `timeout_ns` at most. */
static void run_loop(struct team *t, uint64_t timeout_ns)
{
	ev_timer late;

	ev_now_update(t->loop);
	ev_timer_init(&late, on_late, (double)timeout_ns / 1e9, 0.);
	ev_timer_start(t->loop, &late);
	ev_run(t->loop, 0);
	ev_timer_stop(t->loop, &late);
}

json_t *team_wait(struct team *t, uint32_t step, const char *name)
{
	uint64_t patience_ns;
	char why[160];

	t->heard_ns = clock_now_ns();
	while (!t->out && !team_gone(t, step, name)) {
		patience_ns = team_patience_ns(t);
		if (patience_ns) {
			run_loop(t, patience_ns);
		} else {
			log_error("%s", team_silence_text(t, why, sizeof(why)));
			team_quit(t, why);
		}
	}
	return team_gone(t, step, name);
}

void team_gather(struct team *t, uint32_t step, const char *name, uint64_t timeout_ns)
{
	uint64_t end_ns = clock_now_ns() + timeout_ns, now_ns;
	const struct whole_name whole = whole_name(t, step, name);

	while (!t->out && strcmp(t->gathered, whole.text) != 0 && (now_ns = clock_now_ns()) < end_ns)
		run_loop(t, end_ns - now_ns);
}

void team_total(const struct team *t, struct team_live *out)
{
	*out = t->live[0];
	if (t->rank != 0)
		return;
	out->hosts = t->live[0].hosts;
	for (uint32_t i = 1; i < t->n; i++) {
		out->hosts += t->live[i].hosts;
		out->connecting += t->live[i].connecting;
		out->connected += t->live[i].connected;
		out->failed += t->live[i].failed;
		out->messages_per_s += t->live[i].messages_per_s;
	}
}

void team_tell(struct team *t, const struct team_live *mine, const char *wish)
{
	struct team_live l = *mine;

	l.hosts = 1;
	if (t->rank == 0) {
		t->live[0] = l;
		team_total(t, &l);
	}
	if (t->out || (!wish && clock_now_ns() < t->tell_at_ns))
		return;
	t->tell_at_ns = clock_now_ns() + MAX(NS_PER_S, t->n * TELL_HOST_NS);
	cluster_say(t->cluster, json_pack("{s:i, s:s, s:I, s:I, s:I, s:f, s:s*}", "hosts", (int)l.hosts, "phase",
					  l.phase,
		"connecting", (json_int_t)l.connecting, "connected", (json_int_t)l.connected, "failed",
		(json_int_t)l.failed, "messages_per_s", l.messages_per_s, "wish", wish));
}

int64_t team_clock(const struct team *t, uint64_t now_ns)
{
	return (int64_t)now_ns + cluster_clock_offset_ns(t->cluster);
}

const char *team_host_name(const struct team *t, uint32_t rank)
{
	const char *name = json_text_at(cluster_about(t->cluster, rank), "name");

	return name ? name : "";
}
