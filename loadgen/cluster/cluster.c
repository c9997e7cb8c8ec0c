/* SPDX-License-Identifier: BSD-2-Clause */
/* Joining a run on several hosts, and leaving it. See cluster.h. */
#include "loadgen/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/base/utf8.h"
#include "loadgen/cluster/cluster_core.h"

#define LEAVE_NS	(2 * NS_PER_S)

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
	snprintf(why, sizeof(why), "the run did not begin within %.0f s: %.400s",
		 (double)c->cfg.join_timeout_ns / NS_PER_S, trouble ? trouble : members_waiting(c, text));
	cluster_be_out(c, -ETIMEDOUT, why);
}

static bool random_id(char out[HOST_ID_LEN + 1])
{
	unsigned char bytes[HOST_ID_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	utf8_hex(bytes, sizeof(bytes), out);
	return true;
}

void cluster_free(struct cluster *c)
{
	if (c->freed)
		*c->freed = true;
	ev_timer_stop(c->loop, &c->waiting);
	cluster_core_free(c);
	cluster_clock_stop(c);
	candidates_clear(&c->candidates);
	for (uint32_t i = 0; i < c->host_count; i++)
		json_decref(c->hosts[i].about);
	free(c->hosts);
	barriers_free(c->barriers);
	json_decref(c->candidates.early);
	json_decref(c->entry);
	free(c);
}

int cluster_begin(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check,
		  void *arg, struct cluster **out, char *err, size_t err_size)
{
	struct cluster *c = calloc(1, sizeof(*c));
	int lease_s = (int)((cfg->etcd.lease_ns + NS_PER_S - 1) / NS_PER_S);
	json_t *entry = json_pack("{s:i, s:b, s:b, s:i, s:o}", "hosts", (int)cfg->hosts, "leads", cfg->leads, "joins",
				  cfg->joins, "lease_s", lease_s, "about", about);
	int rc;

	if (!c || !entry) {
		snprintf(err, err_size, "this machine is out of memory");
		json_decref(entry);
		free(c);
		return -ENOMEM;
	}
	c->cfg = *cfg;
	c->loop = loop;
	c->entry = entry;
	c->check = check;
	c->check_arg = arg;
	cluster_core_init(c);
	cluster_clock_init(c);
	ev_timer_init(&c->waiting, on_waiting, (double)cfg->join_timeout_ns / NS_PER_S, 0.);
	c->waiting.data = c;
	c->candidates.early = json_object();
	if (!c->candidates.early || !random_id(c->id) || !random_id(c->uuid)) {
		snprintf(err, err_size, "out of memory, or the kernel provides no random numbers");
		cluster_free(c);
		return -ENOMEM;
	}
	snprintf(c->key, sizeof(c->key), "members/host/%s", c->id);
	rc = etcd_open(&cfg->etcd, loop, on_etcd_out, c, &c->etcd, err, err_size);
	if (rc) {
		cluster_free(c);
		return rc;
	}
	members_watch(c);
	*out = c;
	return 0;
}

/* Runs the loop until this host has a rank or is out of the run. */
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

int cluster_join(const struct cluster_config *cfg, struct ev_loop *loop, json_t *about, cluster_check_fn *check,
		 void *arg, struct cluster **out, char *err, size_t err_size)
{
	struct cluster *c;
	int rc;

	if (cfg->hosts > CLUSTER_HOSTS_MAX || (!cfg->hosts && !cfg->joins) || (cfg->leads && cfg->joins)) {
		snprintf(err, err_size, "a run has 1 to %d hosts, and a host cannot both lead and only join",
			 CLUSTER_HOSTS_MAX);
		json_decref(about);
		return -EINVAL;
	}
	rc = cluster_begin(cfg, loop, about, check, arg, &c, err, err_size);
	if (rc)
		return rc;
	rc = wait_for_seal(c, err, err_size);
	if (rc) {
		c->out = true;	/* failures in etcd_close are not reported any more */
		etcd_close(c->etcd, rc == -EIO ? 0 : LEAVE_NS);
		cluster_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

static void on_left(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	(void)status;
	(void)why;
	c->left = true;
}

/* Tells the other hosts why this one leaves, and waits until etcd has stored that and all earlier writes. */
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
