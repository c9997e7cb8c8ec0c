/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing the etcd client, and its reactions to the state of the lease. See etcd.h. */
#include "loadgen/cluster/etcd/etcd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "loadgen/cluster/etcd/etcd_core.h"
#include "loadgen/cluster/etcd/etcd_url.h"

static void on_lease_changed(void *arg)		/* the lease's thread */
{
	struct etcd *e = arg;

	ev_async_send(e->loop, &e->changed);
}

static void on_changed(struct ev_loop *loop, ev_async *w, int revents)
{
	struct etcd *e = w->data;
	const struct etcd_lease_state before = { .id = e->state.id, .login = e->state.login };

	(void)loop;
	(void)revents;
	if (e->out)
		return;
	etcd_lease_read(e->lease, &e->state);
	if (e->state.out) {
		e->out = true;
		etcd_watches_end(e);
		etcd_txn_fail(e, e->state.why);
		e->on_out(e->arg, e->state.why);
	} else if (e->state.id && (!before.id || e->state.login != before.login)) {
		etcd_txn_begin(e);
		etcd_watches_begin(e);
	}
}

static int set_target(struct etcd *e, const struct etcd_config *c, const struct etcd_url *u, char *err, size_t err_size)
{
	const char *const files[] = { c->ca, c->cert, c->key };

	if (!u->tls && (c->ca || c->cert || c->key)) {
		snprintf(err, err_size,
			 "files for TLS to etcd (--etcd-ca, --etcd-cert, --etcd-key) need etcds:// in the URL");
		return -EINVAL;
	}
	for (size_t i = 0; i < 3; i++) {
		if (files[i] && access(files[i], R_OK)) {
			int ret = -errno;

			snprintf(err, err_size, "cannot read %s: %s", files[i], strerror(-ret));
			return ret;
		}
	}
	e->target.patience_ns = c->lease_ns / 2;
	snprintf(e->root, sizeof(e->root), "/rampart/%s/", u->run);
	return etcd_target_set(&e->target, u, c->ca, c->cert, c->key);
}

static void destroy(struct etcd *e)
{
	ev_async_stop(e->loop, &e->changed);
	etcd_http_free(e->http);
	etcd_target_clear(&e->target);
	explicit_bzero(&e->state, sizeof(e->state));
	free(e);
}

int etcd_open(const struct etcd_config *c, struct ev_loop *loop, etcd_out_fn *on_out, void *arg, struct etcd **out,
	      char *err, size_t err_size)
{
	struct etcd_url url;
	struct etcd *e;
	int ret = etcd_url_parse(c->url, &url, err, err_size);

	if (ret)
		return ret;
	if (c->lease_ns < 2 * NS_PER_S) {
		snprintf(err, err_size, "the lease is shorter than 2 s, the minimum of etcd");
		return -EINVAL;
	}
	snprintf(err, err_size, "this machine is out of memory");
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->loop = loop;
	e->on_out = on_out;
	e->arg = arg;
	TAILQ_INIT(&e->watches);
	etcd_txn_init(e);
	ev_async_init(&e->changed, on_changed);
	e->changed.data = e;
	ev_async_start(loop, &e->changed);
	ret = set_target(e, c, &url, err, err_size);
	if (ret == 0)
		ret = etcd_http_new(&e->target, loop, &e->http);
	if (ret == 0)
		ret = etcd_lease_start(&e->target, url.token, c->lease_ns, on_lease_changed, e, &e->lease);
	explicit_bzero(&url, sizeof(url));
	if (ret && ret != -ENOMEM && ret != -EINVAL)
		snprintf(err, err_size, "cannot start the etcd client: %s", strerror(-ret));
	if (ret)
		destroy(e);
	else
		*out = e;
	return ret;
}

void etcd_close(struct etcd *e, uint64_t wait_ns)
{
	if (!e)
		return;
	etcd_watches_free(e);
	e->out = true;
	etcd_txn_fail(e, "this host leaves the run");
	etcd_lease_stop(e->lease, wait_ns);
	destroy(e);
}

const char *etcd_trouble(const struct etcd *e)
{
	return e->state.why[0] ? e->state.why : e->trouble[0] ? e->trouble : NULL;
}
