/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of a run on several hosts: etcd. See bus.h. */
#include "loadgen/cluster/etcd/bus.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/base/clock.h"
#include "loadgen/cluster/etcd/bus_url.h"
#include "loadgen/cluster/etcd/etcd_http.h"
#include "loadgen/cluster/etcd/etcd_json.h"
#include "loadgen/cluster/etcd/etcd_lease.h"
#include "loadgen/cluster/etcd/etcd_queue.h"
#include "loadgen/cluster/etcd/etcd_watch.h"

struct bus_watch {
	TAILQ_ENTRY(bus_watch) link;
	struct bus *bus;
	struct etcd_watch *watch;
};

struct bus {
	struct ev_loop *loop;
	const struct bus_events *events;
	void *arg;
	struct etcd_target target;
	char root[ETCD_ROOT_MAX];
	ev_async changed;
	struct etcd_lease *lease;
	struct etcd_http *http;
	struct etcd_queue *queue;
	TAILQ_HEAD(, bus_watch) watches;
	struct etcd_lease_state state;	/* of the lease's thread, as it was read last */
	bool ready, out;
	char trouble[ETCD_WHY_MAX];	/* of transactions */
};

static void on_lease_changed(void *arg)		/* the lease's thread */
{
	struct bus *b = arg;

	ev_async_send(b->loop, &b->changed);
}

static void go_out(struct bus *b)
{
	struct bus_watch *w;

	b->out = true;
	TAILQ_FOREACH(w, &b->watches, link)
		etcd_watch_end(w->watch);
	etcd_queue_fail(b->queue, b->state.why);
	b->events->on_out(b->arg, b->state.why);
}

static void begin(struct bus *b)
{
	struct bus_watch *w;

	etcd_queue_begin(b->queue, b->state.id, b->state.token);
	TAILQ_FOREACH(w, &b->watches, link)
		etcd_watch_begin(w->watch, b->state.token);
}

static void on_changed(struct ev_loop *loop, ev_async *w, int revents)
{
	struct bus *b = w->data;
	uint64_t login = b->state.login;

	(void)loop;
	(void)revents;
	if (b->out)
		return;
	etcd_lease_read(b->lease, &b->state);
	if (b->state.out) {
		go_out(b);
	} else if (b->state.id && (!b->ready || b->state.login != login)) {
		bool first = !b->ready;

		b->ready = true;
		begin(b);
		if (first)
			b->events->on_ready(b->arg);
	}
}

/* Requests of the main thread whose login is not valid any more, or that make an end. */

static void on_login(void *arg)
{
	struct bus *b = arg;

	etcd_lease_login(b->lease, b->state.login);
}

static void on_end(void *arg, const char *why)
{
	struct bus *b = arg;

	etcd_lease_give_up(b->lease, why);
}

static void on_trouble(void *arg, const char *why)
{
	struct bus *b = arg;

	snprintf(b->trouble, sizeof(b->trouble), "%s", why);
}

static const struct etcd_queue_events queue_events = { on_login, on_trouble, on_end };
static const struct etcd_watch_events watch_events = { on_login, on_end };

/* ---- opening */

static int copy_file_name(const char *name, char **out, char *err, size_t err_size)
{
	int ret;

	if (!name)
		return 0;
	if (access(name, R_OK)) {
		ret = -errno;
		snprintf(err, err_size, "cannot read %s: %s", name, strerror(-ret));
		return ret;
	}
	*out = strdup(name);
	return *out ? 0 : -ENOMEM;
}

static int set_target(struct bus *b, const struct bus_config *c, const struct bus_url *u, char *err, size_t err_size)
{
	struct etcd_target *t = &b->target;
	const char *open = u->brackets ? "[" : "", *close = u->brackets ? "]" : "";
	int ret;

	snprintf(b->root, sizeof(b->root), "/rampart/%s/", u->run);
	snprintf(t->name, sizeof(t->name), "%s%s%s:%u", open, u->host, close, u->port);
	snprintf(t->base, sizeof(t->base), "http%s://%s/v3/", u->tls ? "s" : "", t->name);
	t->patience_ns = c->lease_ns / 2;
	if (!u->tls && (c->ca || c->cert || c->key)) {
		snprintf(err, err_size, "files for TLS to etcd (--etcd-ca, --etcd-cert, --etcd-key) need etcds:// in the URL");
		return -EINVAL;
	}
	ret = copy_file_name(c->ca, &t->ca, err, err_size);
	if (ret == 0)
		ret = copy_file_name(c->cert, &t->cert, err, err_size);
	if (ret == 0)
		ret = copy_file_name(c->key, &t->key, err, err_size);
	return ret;
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void destroy(struct bus *b)
{
	etcd_queue_free(b->queue);
	etcd_http_free(b->http);
	free(b->target.ca);
	free(b->target.cert);
	free(b->target.key);
	explicit_bzero(&b->state, sizeof(b->state));
	free(b);
}

static int set_up(struct bus *b, const struct bus_config *c, const struct bus_url *u, char *err, size_t err_size)
{
	int ret = set_target(b, c, u, err, err_size);

	if (ret)
		return ret;
	pthread_once(&curl_once, init_curl);
	ret = etcd_http_new(&b->target, b->loop, &b->http);
	if (ret == 0)
		ret = etcd_queue_new(&b->target, b->http, b->loop, b->root, &queue_events, b, &b->queue);
	if (ret == 0)
		ret = etcd_lease_start(&b->target, u->token, c->lease_ns, on_lease_changed, b, &b->lease);
	if (ret)
		snprintf(err, err_size, "cannot begin with etcd: %s", strerror(-ret));
	return ret;
}

int bus_open(const struct bus_config *c, struct ev_loop *loop, const struct bus_events *events, void *arg,
	     struct bus **out, char *err, size_t err_size)
{
	struct bus_url url;
	struct bus *b;
	int ret = bus_url_parse(c->url, &url, err, err_size);

	if (ret)
		return ret;
	if (c->lease_ns < 2 * NS_PER_S) {
		snprintf(err, err_size, "the lease is shorter than 2 s, the shortest that etcd gives");
		return -EINVAL;
	}
	snprintf(err, err_size, "this machine is out of memory");
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->loop = loop;
	b->events = events;
	b->arg = arg;
	TAILQ_INIT(&b->watches);
	ev_async_init(&b->changed, on_changed);
	b->changed.data = b;
	ev_async_start(loop, &b->changed);
	ret = set_up(b, c, &url, err, err_size);
	explicit_bzero(&url, sizeof(url));
	if (ret) {
		ev_async_stop(loop, &b->changed);
		destroy(b);
		return ret;
	}
	*out = b;
	return 0;
}

void bus_close(struct bus *b, uint64_t wait_ns)
{
	if (!b)
		return;
	while (!TAILQ_EMPTY(&b->watches))
		bus_watch_stop(TAILQ_FIRST(&b->watches));
	etcd_queue_fail(b->queue, "this host leaves the run");
	etcd_lease_stop(b->lease, b->out ? 0 : wait_ns);
	ev_async_stop(b->loop, &b->changed);
	destroy(b);
}

bool bus_is_out(const struct bus *b)
{
	return etcd_lease_is_out(b->lease);
}

const char *bus_trouble(const struct bus *b)
{
	return b->state.why[0] ? b->state.why : b->trouble[0] ? b->trouble : NULL;
}

int bus_transact(struct bus *b, const struct bus_guard *g, size_t guards, const struct bus_write *w, size_t writes,
		 bus_done_fn *done, void *arg)
{
	return etcd_queue_add(b->queue, g, guards, w, writes, done, arg);
}

int bus_watch_start(struct bus *b, const char *prefix, const struct bus_watch_events *events, void *arg,
		    struct bus_watch **out)
{
	struct bus_watch *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->bus = b;
	ret = etcd_watch_new(&b->target, b->http, b->loop, b->root, prefix, &watch_events, b, events, arg, &w->watch);
	if (ret) {
		free(w);
		return ret;
	}
	TAILQ_INSERT_TAIL(&b->watches, w, link);
	*out = w;
	if (b->out)
		etcd_watch_end(w->watch);
	else if (b->ready)
		etcd_watch_begin(w->watch, b->state.token);
	return 0;
}

void bus_watch_stop(struct bus_watch *w)
{
	if (!w)
		return;
	TAILQ_REMOVE(&w->bus->watches, w, link);
	etcd_watch_free(w->watch);
	free(w);
}
