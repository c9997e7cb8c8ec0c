/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates of the server. See certificates.h. */
#include "server/certificates.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/tls/ticket_keys.h"
#include "common/tls/tls.h"
#include "common/tls/tls_files.h"
#include "server/service.h"
#include "server/shard/shard.h"

#define DAY_S 86400
#define WARN_OF_CERT_S (14 * DAY_S)
#define WARN_OF_LIST_S DAY_S		/* revocation lists live for days and are renewed automatically */
#define CLOCK_STEP_S 0.1		/* more than time(2) may lag behind the loop's clock */
#define TIME_TEXT_BYTES 24
#define REAP_S 1.
#define WATCH_S 5.			/* --watch-certs: between two looks at the files */

/* A context that was given to a shard. */
struct held {
	struct tls_ctx *ctx;
	bool is_replaced;	/* the shard has been offered a newer one */
	SLIST_ENTRY(held) entry;
};

struct certificates {
	struct server *server;
	struct ev_loop *loop;
	ev_signal hangup;
	ev_periodic expiry;		/* time of the next warning about an expiry */
	ev_timer reap;			/* runs while replaced contexts are left to free */
	ev_timer watch;			/* of --watch-certs */
	struct stat seen[TLS_FILE_N];	/* state of the files at the last look; all zero: no such file */
	bool is_changing;		/* the last look found a change */
	SLIST_HEAD(, held) held;	/* references, so that this thread frees the contexts and no shard does */
	struct tls_files files;		/* filled only while contexts are made */
	struct ticket_seed seed;	/* filled only while contexts are made */
	struct tls_dates dates;		/* of the contexts in use */
	bool is_development;
	uint64_t reloads, failed_reloads;
};

int certificates_new(struct server *server, struct ev_loop *loop, struct certificates **out)
{
	const struct server_config *cfg = server->cfg;
	struct certificates *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->server = server;
	c->loop = loop;
	c->dates = (struct tls_dates){ INT64_MAX, INT64_MAX };
	SLIST_INIT(&c->held);
	c->files.path[TLS_FILE_CERT] = cfg->cert_path;
	c->files.path[TLS_FILE_KEY] = cfg->key_path;
	c->files.path[TLS_FILE_CA] = cfg->client_auth == CLIENT_AUTH_REQUIRE ? cfg->ca_path : NULL;
	c->files.path[TLS_FILE_CRL] = cfg->crl;
	server->certificates = c;
	*out = c;
	return 0;
}

/* Keeps a reference to the context, so that this thread frees it; without memory for one, the shard frees it. */
static void hold(struct certificates *c, struct tls_ctx *ctx)
{
	struct held *h = malloc(sizeof(*h));

	if (!h)
		return;
	tls_ctx_hold(ctx);
	h->ctx = ctx;
	h->is_replaced = false;
	SLIST_INSERT_HEAD(&c->held, h, entry);
}

/* Drops the references that nobody else shares, or all of them. True if a replaced context is still in use. */
static bool let_go(struct certificates *c, bool all)
{
	struct held *h, *next;
	bool are_left = false;

	for (h = SLIST_FIRST(&c->held); h; h = next) {
		next = SLIST_NEXT(h, entry);
		if (!all && !tls_ctx_is_last(h->ctx)) {
			are_left |= h->is_replaced;
			continue;
		}
		SLIST_REMOVE(&c->held, h, held, entry);
		tls_ctx_put(h->ctx);
		free(h);
	}
	return are_left;
}

static void on_reap(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct certificates *c = w->data;

	(void)revents;
	if (!let_go(c, false))
		ev_timer_stop(loop, w);
}

void certificates_free(struct certificates *c)
{
	if (!c)
		return;
	certificates_end(c);
	ev_signal_stop(c->loop, &c->hangup);
	ev_periodic_stop(c->loop, &c->expiry);
	ev_timer_stop(c->loop, &c->reap);
	ev_timer_stop(c->loop, &c->watch);
	(void)let_go(c, true);
	c->server->certificates = NULL;
	free(c);
}

/* True if a file has been changed or replaced since the last look. Symbolic links are followed. */
static bool look_at_files(struct certificates *c)
{
	bool differ = false;

	for (int i = 0; i < TLS_FILE_N; i++) {
		struct stat now = { .st_ino = 0 }, *seen = &c->seen[i];

		if (!c->files.path[i] || stat(c->files.path[i], &now) != 0)
			now = (struct stat){ .st_ino = 0 };
		differ |= now.st_dev != seen->st_dev || now.st_ino != seen->st_ino || now.st_size != seen->st_size ||
			  now.st_mtim.tv_sec != seen->st_mtim.tv_sec || now.st_mtim.tv_nsec != seen->st_mtim.tv_nsec;
		*seen = now;
	}
	return differ;
}

int certificates_begin(struct certificates *c, char *err, size_t err_size)
{
	struct server *server = c->server;
	int ret;

	/* Record the state of the files before reading them, so that the next look finds a change made meanwhile. */
	(void)look_at_files(c);
	c->is_changing = false;
	ret = tls_files_read(&c->files, err, err_size);
	if (ret)
		return ret;
	ret = ticket_seed_new(clock_now_ns(), server->cfg->ticket_rotation_ns, &c->seed);
	if (ret)
		snprintf(err, err_size, "no random numbers for the keys of session tickets");
	server->tls_files = &c->files;
	server->tickets = server->cfg->tls_resume ? &c->seed : NULL;
	return ret;
}

void certificates_end(struct certificates *c)
{
	c->server->tls_files = NULL;
	c->server->tickets = NULL;
	tls_files_wipe(&c->files);
	ticket_seed_wipe(&c->seed);
}

/* "2027-02-25T10:00:00Z". Returns `text`. */
static const char *time_text(int64_t seconds, char text[TIME_TEXT_BYTES])
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(text, TIME_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(text, TIME_TEXT_BYTES, "?");
	return text;
}

struct mortal {
	const char *name, *file;
	int64_t expires_at, warn_before_s;
	const char *effect;	/* consequence of the expiry, for the log */
	const char *remedy;
};

static void warn_of_end(const struct mortal *m)
{
	int64_t left = m->expires_at - (int64_t)time(NULL);
	char text[TIME_TEXT_BYTES], days[32] = "less than a day";

	if (left > m->warn_before_s)
		return;
	if (left >= DAY_S)
		snprintf(days, sizeof(days), "%lld days", (long long)(left / DAY_S));
	if (left <= 0)
		log_event(LOG_LVL_WARN, &(struct log_fields){ .advice = m->remedy },
			  "%s %s has expired (%s), so that %s: %s", m->name, m->file, time_text(m->expires_at, text),
			  m->effect, m->remedy);
	else
		log_event(LOG_LVL_WARN, &(struct log_fields){ .advice = m->remedy },
			  "%s %s expires in %s (%s): %s", m->name, m->file, days, time_text(m->expires_at, text),
			  m->remedy);
}

static void warn_of_expiry(const struct certificates *c)
{
	const char *remedy = c->server->cfg->watch_certs ? "renew it" : "renew it and send SIGHUP";
	const struct mortal cert = { "certificate", c->files.path[TLS_FILE_CERT], c->dates.cert_expires_at,
				     WARN_OF_CERT_S, "no client trusts this server", remedy };
	const struct mortal list = { "revocation list", c->files.path[TLS_FILE_CRL], c->dates.crl_expires_at,
				     WARN_OF_LIST_S, "every client is refused", remedy };

	warn_of_end(&cert);
	warn_of_end(&list);
}

static void warn_of_key(const struct certificates *c)
{
	const char *key = c->files.path[TLS_FILE_KEY];
	struct stat st;

	if (stat(key, &st) == 0 && (st.st_mode & (S_IRGRP | S_IROTH)))
		log_warn("private key %s can be read by its group or by others: chmod 600 it", key);
}

static void warn_of_foreign_lists(const struct certificates *c, uint32_t n)
{
	if (n)
		log_warn("revocation list %s: the CAs of %u of its lists are not in %s: such a list applies only to "
			 "clients that send the CA's certificate, and a long list slows their handshakes: add the "
			 "certificates of those CAs", c->files.path[TLS_FILE_CRL], n, c->files.path[TLS_FILE_CA]);
}

static void warn_of_all(const struct certificates *c)
{
	warn_of_expiry(c);
	warn_of_key(c);
	if (c->is_development)
		log_warn("certificate %s was signed by the development CA, whose key is stored beside it: use a "
			 "certificate of your own for anything but tests", c->files.path[TLS_FILE_CERT]);
}

/* Time of the next warning or expiry of the certificate or the list, at most a day ahead. */
static int64_t next_warning_at(const struct tls_dates *d, int64_t now)
{
	const int64_t at[] = { d->cert_expires_at - WARN_OF_CERT_S, d->cert_expires_at,
			       d->crl_expires_at - WARN_OF_LIST_S, d->crl_expires_at };
	int64_t next = now + DAY_S;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (at[i] > now)
			next = MIN(next, at[i]);
	return next;
}

static void await_expiry(struct certificates *c)
{
	ev_periodic_stop(c->loop, &c->expiry);
	ev_periodic_set(&c->expiry, (double)next_warning_at(&c->dates, (int64_t)time(NULL)) + CLOCK_STEP_S, 0., NULL);
	ev_periodic_start(c->loop, &c->expiry);
}

static void on_expiry(struct ev_loop *loop, ev_periodic *w, int revents)
{
	(void)loop;
	(void)revents;
	warn_of_expiry(w->data);
	await_expiry(w->data);
}

static void note(struct certificates *c, const struct tls_ctx *ctx)
{
	tls_ctx_dates(ctx, &c->dates);
	c->is_development = tls_ctx_is_development(ctx);
	warn_of_all(c);
	warn_of_foreign_lists(c, tls_ctx_foreign_lists(ctx));
	await_expiry(c);
}

static void reload(struct certificates *c, const char *why)
{
	service_reloading(c->server->service);
	certificates_reload(c, why);
	service_ready(c->server->service);
}

static void on_hangup(struct ev_loop *loop, ev_signal *w, int revents)
{
	(void)loop;
	(void)revents;
	reload(w->data, "SIGHUP");
}

/* Reads changed files once a look finds no further change, so that a certificate and its key, which are written one
 * after the other, are read together. */
static void on_watch(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct certificates *c = w->data;
	bool differ = look_at_files(c);

	(void)loop;
	(void)revents;
	if (!differ && c->is_changing)
		reload(c, "--watch-certs");
	else
		c->is_changing |= differ;
}

void certificates_start(struct certificates *c)
{
	ev_periodic_init(&c->expiry, on_expiry, 0., 0., NULL);
	ev_timer_init(&c->reap, on_reap, REAP_S, REAP_S);
	c->expiry.data = c->reap.data = c;
	for (uint32_t i = 0; i < c->server->n_shards; i++)
		hold(c, c->server->shards[i]->tls_ctx);
	note(c, c->server->shards[0]->tls_ctx);
	ev_signal_init(&c->hangup, on_hangup, SIGHUP);
	c->hangup.data = c;
	ev_signal_start(c->loop, &c->hangup);
	/* This is not an ev_stat, which on a local file system relies on inotify: that does not see that a symbolic
	 * link in the path was replaced, as Kubernetes does to update a mounted secret. */
	ev_timer_init(&c->watch, on_watch, WATCH_S, WATCH_S);
	c->watch.data = c;
	if (c->server->cfg->watch_certs)
		ev_timer_start(c->loop, &c->watch);
}

/* Offers the new contexts to the shards; each shard uses its old context until it takes the new one. */
static void replace_all(struct certificates *c, struct tls_ctx *const *made)
{
	struct held *h;

	SLIST_FOREACH(h, &c->held, entry)
		h->is_replaced = true;
	for (uint32_t i = 0; i < c->server->n_shards; i++) {
		hold(c, made[i]);
		shard_offer_tls(c->server->shards[i], made[i]);
	}
	ev_timer_start(c->loop, &c->reap);
}

static int make_all(struct certificates *c, struct tls_ctx **made, char *err, size_t err_size)
{
	int ret = certificates_begin(c, err, err_size);

	for (uint32_t i = 0; i < c->server->n_shards && !ret; i++)
		ret = shard_make_tls(c->server, &made[i], err, err_size);
	certificates_end(c);
	return ret;
}

bool certificates_reload(struct certificates *c, const char *why)
{
	uint32_t n = c->server->n_shards;
	struct tls_ctx **made = calloc(n, sizeof(*made));
	char err[512] = "this machine is out of memory", until[TIME_TEXT_BYTES];
	int ret = made ? make_all(c, made, err, sizeof(err)) : -ENOMEM;

	if (ret) {
		c->failed_reloads++;
		log_error("%s: %s; the server goes on with what it has", why, err);
	} else {
		c->reloads++;
		note(c, made[0]);
		log_info("%s: certificates were read again; the server's certificate expires at %s", why,
			 time_text(c->dates.cert_expires_at, until));
	}
	if (!ret)
		replace_all(c, made);
	for (uint32_t i = 0; ret && made && i < n; i++)
		tls_ctx_free(made[i]);
	free(made);
	return ret == 0;
}

static json_t *time_json(int64_t seconds)
{
	char text[TIME_TEXT_BYTES];

	return seconds == INT64_MAX ? json_null() : json_string(time_text(seconds, text));
}

void certificates_dates(const struct certificates *c, int64_t *certificate, int64_t *list)
{
	*certificate = c ? c->dates.cert_expires_at : INT64_MAX;
	*list = c ? c->dates.crl_expires_at : INT64_MAX;
}

json_t *certificates_expiry_json(const struct certificates *c)
{
	return time_json(c ? c->dates.cert_expires_at : INT64_MAX);
}

json_t *certificates_json(const struct certificates *c)
{
	return json_pack("{s:o, s:o, s:I, s:I}", "certificate_expires_at", certificates_expiry_json(c),
			 "crl_expires_at", time_json(c ? c->dates.crl_expires_at : INT64_MAX), "reloads",
			 (json_int_t)(c ? c->reloads : 0), "failed_reloads", (json_int_t)(c ? c->failed_reloads : 0));
}
