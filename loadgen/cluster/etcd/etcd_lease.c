/* SPDX-License-Identifier: BSD-2-Clause */
/* This host's lease in etcd, on a thread of its own. See etcd_lease.h.
 *
 * The lease time counts from the moment the granting or refreshing request was sent, so the lease ends here before it
 * ends in etcd. A later answer does not revive it: etcd may have told other hosts already. */
#include "loadgen/cluster/etcd/etcd_lease.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/cluster/etcd/etcd_json.h"

#define PAUSE_MIN_NS (50 * NS_PER_MS)
#define PAUSE_MAX_NS NS_PER_S
#define CALL_MIN_NS (100 * NS_PER_MS)

struct etcd_lease {
	const struct etcd_target *target;
	char password[256];
	uint64_t lease_ns, wait_ns;
	void (*changed)(void *arg);
	void *arg;
	pthread_t thread;
	struct etcd_http *http;		/* on the thread's own loop */
	uint64_t pause_ns;		/* thread: pause before the next try */
	uint64_t granted_ns;		/* thread: duration that etcd granted */
	uint64_t end_ns;		/* thread: CLOCK_BOOTTIME; 0: no lease yet */
	char trouble[ETCD_WHY_MAX];	/* thread: why etcd does not answer; "": it does */
	atomic_bool over;		/* this host leaves, or is out */
	atomic_bool login_wanted;
	pthread_mutex_t lock;		/* protects `state` and `wait_ns` */
	struct etcd_lease_state state;	/* only the thread writes the token */
};

void etcd_lease_read(struct etcd_lease *l, struct etcd_lease_state *out)
{
	pthread_mutex_lock(&l->lock);
	*out = l->state;
	pthread_mutex_unlock(&l->lock);
}

void etcd_lease_login(struct etcd_lease *l, uint64_t seen)
{
	pthread_mutex_lock(&l->lock);
	if (l->state.login == seen) {
		atomic_store(&l->login_wanted, true);
		etcd_wake(l->http);
	}
	pthread_mutex_unlock(&l->lock);
}

void etcd_lease_give_up(struct etcd_lease *l, const char *why)
{
	pthread_mutex_lock(&l->lock);
	if (!l->state.out)
		snprintf(l->state.why, sizeof(l->state.why), "%s", why);
	l->state.out = true;
	atomic_store(&l->over, true);
	etcd_wake(l->http);
	pthread_mutex_unlock(&l->lock);
	l->changed(l->arg);
}

void etcd_lease_nonsense(struct etcd_lease *l, const char *what)
{
	struct etcd_answer a;

	etcd_answer_nonsense(l->target, what, &a);
	etcd_lease_give_up(l, a.why);
}

/* Publishes why etcd does not answer ("": it does again), and logs the change between the two. */
static void set_trouble(struct etcd_lease *l, const char *why)
{
	if (strcmp(l->trouble, why) == 0)
		return;
	if (!*why)
		log_info("etcd at %s answers%s", l->target->name, l->end_ns ? " again" : "");
	else if (!l->trouble[0])
		log_warn("%s; trying again", why);
	snprintf(l->trouble, sizeof(l->trouble), "%s", why);
	pthread_mutex_lock(&l->lock);
	if (!l->state.out)
		snprintf(l->state.why, sizeof(l->state.why), "%s", why);
	pthread_mutex_unlock(&l->lock);
	l->changed(l->arg);
}

/* Sleeps for `ns`, or until this host leaves or is out, or must log in (which does not cut a pause before a retry). */
static void lease_rest(struct etcd_lease *l, uint64_t ns, bool retry)
{
	uint64_t end_ns = clock_now_ns() + ns, now_ns;

	while (!atomic_load(&l->over) && (retry || !atomic_load(&l->login_wanted)) &&
	       (now_ns = clock_now_ns()) < end_ns)
		etcd_rest(l->http, end_ns - now_ns);
}

static void rest_before_retry(struct etcd_lease *l)
{
	lease_rest(l, l->pause_ns, true);
	l->pause_ns = MIN(2 * l->pause_ns, PAUSE_MAX_NS);
}

/* False if this host leaves or is out. Declares it out when the lease has expired. */
static bool lease_goes_on(struct etcd_lease *l)
{
	char why[ETCD_WHY_MAX];

	if (!l->end_ns || clock_boot_ns() < l->end_ns || atomic_load(&l->over))
		return !atomic_load(&l->over);
	snprintf(why, sizeof(why), "this host did not refresh its lease in etcd within %.1f s: %.*s",
		 (double)l->granted_ns / (double)NS_PER_S, ETCD_WHY_MAX - 100,
		 l->trouble[0] ? l->trouble : "it was stopped or suspended, or had no processor time");
	etcd_lease_give_up(l, why);
	return false;
}

/* Makes one request. True: `a` is ETCD_OK. False: the caller tries again; the pause before that is already over. */
static bool lease_ask(struct etcd_lease *l, const char *path, json_t *body, struct etcd_answer *a)
{
	uint64_t now_ns = clock_boot_ns(), limit_ns = l->lease_ns / 3;
	const char *token = strcmp(path, "auth/authenticate") == 0 ? "" : l->state.token;

	if (l->end_ns && now_ns + limit_ns > l->end_ns)
		limit_ns = l->end_ns > now_ns + CALL_MIN_NS ? l->end_ns - now_ns : CALL_MIN_NS;
	etcd_ask(l->http, path, body, token, limit_ns, a);
	if (!lease_goes_on(l))
		return false;
	switch (a->outcome) {
	case ETCD_OK:
		set_trouble(l, "");
		l->pause_ns = PAUSE_MIN_NS;
		return true;
	case ETCD_LOGIN:
		if (l->password[0]) {
			atomic_store(&l->login_wanted, true);
			rest_before_retry(l);
			return false;
		}
		/* fall through */
	case ETCD_NO:
	case ETCD_NONSENSE:
		etcd_lease_give_up(l, a->why);
		return false;
	case ETCD_AWAY:
		set_trouble(l, a->why);
		rest_before_retry(l);
		return false;
	}
	return false;
}

static void log_in(struct etcd_lease *l)
{
	struct etcd_answer a;
	const char *token;

	if (!lease_ask(l, "auth/authenticate", json_pack("{s:s, s:s}", "name", "rampart", "password", l->password), &a))
		return;
	token = json_string_value(json_object_get(a.body, "token"));
	if (!token || !*token || strlen(token) >= ETCD_LOGIN_MAX || strpbrk(token, "\r\n")) {
		etcd_lease_nonsense(l, "a login without a usable token");
		return;
	}
	pthread_mutex_lock(&l->lock);
	snprintf(l->state.token, sizeof(l->state.token), "%s", token);
	l->state.login++;
	atomic_store(&l->login_wanted, false);
	pthread_mutex_unlock(&l->lock);
	l->changed(l->arg);
}

/* Starts the time of the lease at `sent_ns`. */
static void count_from(struct etcd_lease *l, uint64_t sent_ns, int64_t ttl_s)
{
	l->granted_ns = (uint64_t)ttl_s * NS_PER_S;
	l->end_ns = sent_ns + l->granted_ns;
}

static void get_lease(struct etcd_lease *l)
{
	int64_t ttl_s = (int64_t)((l->lease_ns + NS_PER_S - 1) / NS_PER_S), id;
	uint64_t sent_ns = clock_boot_ns();
	struct etcd_answer a;

	if (!lease_ask(l, "lease/grant", json_pack("{s:o}", "TTL", etcd_int(ttl_s)), &a))
		return;
	if (!etcd_read_int(a.body, "ID", &id) || !etcd_read_int(a.body, "TTL", &ttl_s) || id <= 0 || ttl_s < 1 ||
	    ttl_s > 86400) {
		etcd_lease_nonsense(l, "a lease without an ID or a time");
		return;
	}
	count_from(l, sent_ns, ttl_s);
	pthread_mutex_lock(&l->lock);
	l->state.id = id;
	pthread_mutex_unlock(&l->lock);
	l->changed(l->arg);
}

/* False: try again. */
static bool refresh(struct etcd_lease *l)
{
	uint64_t sent_ns = clock_boot_ns();
	struct etcd_answer a;
	const json_t *result;
	int64_t ttl_s, id;

	if (!lease_ask(l, "lease/keepalive", json_pack("{s:o}", "ID", etcd_int(l->state.id)), &a))
		return false;
	result = json_object_get(a.body, "result");
	if (!json_is_object(result) || !etcd_read_int(result, "ID", &id) || !etcd_read_int(result, "TTL", &ttl_s) ||
	    id != l->state.id || ttl_s > 86400) {
		etcd_lease_nonsense(l, "a refresh of another lease, or one without a time");
		return false;
	}
	if (ttl_s <= 0) {
		etcd_lease_give_up(l, "etcd let this host's lease go: it was not refreshed in time, or was revoked");
		return false;
	}
	count_from(l, sent_ns, ttl_s);
	return true;
}

static void give_back(struct etcd_lease *l)
{
	struct etcd_answer a;
	uint64_t wait_ns;

	/* etcd_lease_stop holds the lock while it hangs up: wait for that, or it would also end the request below. */
	pthread_mutex_lock(&l->lock);
	wait_ns = l->wait_ns;
	pthread_mutex_unlock(&l->lock);
	if (!l->state.id || !wait_ns)
		return;
	etcd_hang_up(l->http, false);
	etcd_ask(l->http, "lease/revoke", json_pack("{s:o}", "ID", etcd_int(l->state.id)), l->state.token, wait_ns, &a);
	if (a.outcome != ETCD_OK)
		log_debug("this host's lease was not revoked and will expire: %s", a.why);
}

static void *run(void *arg)
{
	struct etcd_lease *l = arg;

	while (lease_goes_on(l)) {
		if (atomic_load(&l->login_wanted))
			log_in(l);
		else if (!l->state.id)
			get_lease(l);
		else if (refresh(l))
			lease_rest(l, l->granted_ns / 3, false);
	}
	give_back(l);
	return NULL;
}

static int start_thread(struct etcd_lease *l)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&l->thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

static void destroy(struct etcd_lease *l)
{
	etcd_http_free(l->http);
	pthread_mutex_destroy(&l->lock);
	explicit_bzero(l->password, sizeof(l->password));
	free(l);
}

int etcd_lease_start(const struct etcd_target *t, const char *password, uint64_t lease_ns, void (*changed)(void *arg),
		     void *arg, struct etcd_lease **out)
{
	struct etcd_lease *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	l->target = t;
	snprintf(l->password, sizeof(l->password), "%s", password);
	atomic_store(&l->login_wanted, *password != '\0');
	l->lease_ns = lease_ns;
	l->pause_ns = PAUSE_MIN_NS;
	l->changed = changed;
	l->arg = arg;
	pthread_mutex_init(&l->lock, NULL);
	ret = etcd_http_new(t, NULL, &l->http);
	if (ret == 0)
		ret = start_thread(l);
	if (ret) {
		destroy(l);
		return ret;
	}
	*out = l;
	return 0;
}

void etcd_lease_stop(struct etcd_lease *l, uint64_t wait_ns)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->wait_ns = l->state.out ? 0 : wait_ns;
	atomic_store(&l->over, true);
	etcd_hang_up(l->http, true);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	destroy(l);
}
