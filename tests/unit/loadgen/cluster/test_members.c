/* SPDX-License-Identifier: BSD-2-Clause */
/* The membership of a run in a fake etcd: a list of changes, which each host sees in order but at its own pace.
 * Thousands of schedules are drawn from a seed. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "loadgen/cluster/cluster_core.h"

#define HOSTS_MAX	8
#define CHANGES_MAX	512
#define UUID		"0123456789abcdef0123456789abcdef"

/* A change in the store; if `value` is NULL, the key is gone. */
struct change {
	char key[96];
	char *value;
	size_t bytes;
	int64_t created, written;
};

static struct change changes[CHANGES_MAX];
static unsigned change_count;

struct watch {
	char prefix[64];
	const struct etcd_watch_events *events;
	void *arg;
	unsigned seen;		/* changes delivered so far */
	bool caught_up;
};

struct done {			/* a finished transaction whose result has not been delivered */
	etcd_done_fn *done;
	void *arg;
	enum etcd_status status;
};

struct etcd {			/* the connection of a host */
	struct watch watches[4];
	struct done ends[64];
	unsigned n_watches, n_ends, next_end;
};

struct host {
	struct cluster *c;
	struct etcd store;
	bool dead;
};

static struct host hosts[HOSTS_MAX];
static unsigned host_count, seals;
static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
	return (unsigned)(random_next(&seed) % below);
}

static const struct change *find(const char *key)
{
	for (unsigned i = change_count; i-- > 0;)
		if (!strcmp(changes[i].key, key))
			return changes[i].value ? &changes[i] : NULL;
	return NULL;
}

static void put_bytes(const char *key, const void *value, size_t bytes)
{
	const struct change *old = find(key);
	struct change *c = &changes[change_count];

	assert_true(change_count < CHANGES_MAX);
	snprintf(c->key, sizeof(c->key), "%s", key);
	c->value = value ? malloc(bytes + 1) : NULL;
	c->bytes = bytes;
	if (value)
		memcpy(c->value, value, bytes);
	c->written = ++change_count;
	c->created = old ? old->created : c->written;
}

/* Takes ownership of the document; NULL deletes the key. */
static void put(const char *key, json_t *document)
{
	char *text = document ? json_dumps(document, JSON_ENCODE_ANY) : NULL;

	put_bytes(key, text, text ? strlen(text) : 0);
	json_decref(document);
	free(text);
}

int etcd_open(const struct etcd_config *cfg, struct ev_loop *l, etcd_out_fn *on_out, void *arg, struct etcd **out,
	      char *err, size_t err_size)
{
	(void)cfg;
	(void)l;
	(void)on_out;
	(void)arg;
	(void)err;
	(void)err_size;
	*out = &hosts[host_count - 1].store;
	return 0;
}

void etcd_close(struct etcd *e, uint64_t wait_ns)
{
	(void)e;
	(void)wait_ns;
}

const char *etcd_trouble(const struct etcd *e)
{
	(void)e;
	return NULL;
}

int etcd_watch(struct etcd *e, const char *prefix, const struct etcd_watch_events *events, void *arg)
{
	struct watch *w = &e->watches[e->n_watches++];

	assert_true(e->n_watches <= N_ELEMENTS(e->watches));
	*w = (struct watch){ .events = events, .arg = arg };
	snprintf(w->prefix, sizeof(w->prefix), "%s", prefix);
	return 0;
}

int etcd_transact(struct etcd *e, const struct etcd_guard *guards, size_t n, const struct etcd_write *w,
		  etcd_done_fn *done, void *arg)
{
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		const struct change *c = find(guards[i].key);

		all = all && (c ? c->created : 0) == guards[i].created;
	}
	if (all && (w->value || find(w->key)))
		put_bytes(w->key, w->value, w->bytes);
	seals += all && !strcmp(w->key, "members/sealed");
	assert_true(e->n_ends < N_ELEMENTS(e->ends));
	e->ends[e->n_ends++] = (struct done){ done, arg, all ? ETCD_DONE : ETCD_REFUSED };
	return 0;
}

static void begin(void)
{
	change_count = host_count = seals = 0;
	memset(hosts, 0, sizeof(hosts));
}

static void end(void)
{
	for (unsigned i = 0; i < change_count; i++)
		free(changes[i].value);
	for (unsigned i = 0; i < host_count; i++)
		cluster_free(hosts[i].c);
}

static bool refuse_odd(void *arg, const json_t *leader, const json_t *member, char *why, size_t why_size)
{
	(void)arg;
	assert_non_null(leader);
	if (!json_object_get(member, "odd"))
		return true;
	snprintf(why, why_size, "it is %.3s", json_string_value(json_object_get(member, "odd")));
	return false;
}

static struct host *add_host(const char *name, uint32_t wants, bool leads, bool joins)
{
	struct cluster_config cfg = { .hosts = wants, .leads = leads, .joins = joins, .etcd.lease_ns = 10 * NS_PER_S };
	struct host *h = &hosts[host_count++];
	char err[256];

	assert_int_equal(cluster_begin(&cfg, ev_default_loop(0), json_pack("{s:s}", "name", name), refuse_odd, NULL,
				       &h->c, err, sizeof(err)), 0);
	return h;
}

static bool see(struct watch *w)
{
	const struct change *c = &changes[w->seen];

	if (w->seen == change_count) {
		if (w->caught_up)
			return false;
		w->caught_up = true;
		if (w->events->on_caught_up)
			w->events->on_caught_up(w->arg);
		return true;
	}
	w->seen++;
	if (strncmp(c->key, w->prefix, strlen(w->prefix)) != 0)
		return true;
	if (c->value)
		w->events->on_entry(w->arg, &(struct etcd_entry){ c->key, c->value, c->bytes, c->created, c->written });
	else if (w->events->on_gone)
		w->events->on_gone(w->arg, c->key);
	return true;
}

/* Makes one step of one host; false if none is possible. */
static bool step(struct host *h)
{
	struct etcd *e = &h->store;
	unsigned first = draw(e->n_watches);

	if (h->dead || h->c->out)
		return false;
	if (e->next_end < e->n_ends && !draw(2)) {
		struct done d = e->ends[e->next_end++];

		d.done(d.arg, d.status, NULL);
		return true;
	}
	for (unsigned i = 0; i < e->n_watches; i++)
		if (see(&e->watches[(first + i) % e->n_watches]))
			return true;
	return e->next_end < e->n_ends;
}

static void run_all(void)
{
	for (bool did = true; did;) {
		did = false;
		for (unsigned i = 0; i < host_count; i++)
			did = step(&hosts[i]) || did;
	}
}

static void take_key_away(const struct host *h)
{
	if (find(h->c->key))
		put(h->c->key, NULL);
}

/* A crash: the store notices it when the lease ends, and deletes everything attached to it in one transaction. */
static void crash(struct host *h)
{
	h->dead = true;
	take_key_away(h);
	if (find("members/sealed") && h->c->epoch && !h->c->rank)
		put("members/sealed", NULL);
}

/* Returns a bit for each rank that the host was told is lost; *why: the last reason. */
static uint32_t lost(const struct host *h, const char **why)
{
	const struct told *t;
	uint32_t ranks = 0;

	STAILQ_FOREACH(t, &h->c->told, next) {
		if (t->what != TELL_LOST)
			continue;
		assert_true(h->c->epoch && t->rank && !(ranks & 1u << t->rank));
		ranks |= 1u << t->rank;
		*why = t->text;
	}
	return ranks;
}

TEST(joining__three_hosts__ranks_in_order_of_creation)
{
	begin();
	for (int i = 0; i < 3; i++)
		add_host("h", 3, false, false);
	run_all();
	assert_int_equal(seals, 1);
	for (int i = 0; i < 3; i++) {
		assert_true(hosts[i].c->epoch);
		assert_int_equal(hosts[i].c->host_count, 3);
		assert_int_equal(hosts[i].c->epoch, hosts[0].c->epoch);
		assert_string_equal(hosts[i].c->uuid, hosts[0].c->uuid);
		for (int k = 0; k < 3; k++)
			assert_int_equal(hosts[i].c->created < hosts[k].c->created,
					 hosts[i].c->rank < hosts[k].c->rank);
	}
	end();
}

TEST(joining__leader_comes_last__has_rank_0)
{
	begin();
	add_host("a", 0, false, true);
	add_host("b", 0, false, true);
	run_all();
	assert_int_equal(seals, 0);
	add_host("lead", 3, true, false);
	run_all();
	assert_int_equal(hosts[2].c->rank, 0);
	assert_true(hosts[0].c->epoch && hosts[1].c->epoch && hosts[2].c->epoch);
	end();
}

TEST(joining__second_leader__refused)
{
	begin();
	add_host("one", 2, true, false);
	run_all();
	add_host("two", 2, true, false);
	run_all();
	assert_true(hosts[1].c->out);
	assert_int_equal(hosts[1].c->error, -EACCES);
	assert_non_null(strstr(hosts[1].c->why, "host one already leads this run"));
	end();
}

TEST(joining__late__told_which_hosts_the_run_has)
{
	begin();
	add_host("ann", 2, false, false);
	add_host("bob", 2, false, false);
	run_all();
	add_host("bob", 2, false, false);
	run_all();
	assert_true(hosts[2].c->out);
	assert_int_equal(hosts[2].c->error, -EACCES);
	assert_non_null(strstr(hosts[2].c->why, "ann"));
	assert_non_null(strstr(hosts[2].c->why, "bob"));
	assert_false(hosts[0].c->out || hosts[1].c->out);
	end();
}

TEST(joining__other_number_or_failed_check__refused_with_reason)
{
	begin();
	add_host("lead", 2, true, false);
	add_host("three", 3, false, false);
	json_object_set_new(json_object_get(add_host("x", 2, false, false)->c->entry, "about"), "odd",
			    json_string("odd"));
	run_all();
	assert_non_null(strstr(hosts[1].c->why, "it wants a run of 3 hosts"));
	assert_non_null(strstr(hosts[2].c->why, "it is odd"));
	assert_int_equal(seals, 0);
	add_host("good", 2, false, false);
	run_all();
	assert_int_equal(seals, 1);
	assert_true(hosts[0].c->epoch && hosts[3].c->epoch);
	end();
}

/* A reason may be cut in the middle of a character that a candidate wrote. */
TEST(joining__refused_for_a_reason_that_is_no_text__leader_goes_on)
{
	begin();
	add_host("lead", 2, true, false);
	json_object_set_new(json_object_get(add_host("x", 2, false, false)->c->entry, "about"), "odd",
			    json_string("xx\xc3\xa9"));
	run_all();
	assert_true(hosts[1].c->out);
	assert_non_null(strstr(hosts[1].c->why, "it is xx\\xc3"));
	assert_false(hosts[0].c->out);
	end();
}

TEST(joining__ghosts_of_a_crashed_run__not_sealed_in)
{
	begin();
	put("members/host/00000000000000000000000000000001", json_pack("{s:i, s:{s:s}}", "hosts", 2, "about", "name",
								       "ghost"));
	put("members/host/00000000000000000000000000000002", json_pack("{s:b, s:{s:s}}", "joins", 1, "about", "name",
								       "ghost"));
	add_host("a", 2, false, false);
	add_host("b", 2, false, false);
	run_all();
	assert_int_equal(seals, 0);	/* the first ghost would lead */
	put("members/host/00000000000000000000000000000001", NULL);
	run_all();
	assert_int_equal(seals, 1);
	assert_true(hosts[0].c->epoch && hosts[1].c->epoch);
	end();
}

TEST(loss__member__named_on_all_and_final)
{
	const char *why = "";
	uint32_t rank;

	begin();
	for (int i = 0; i < 3; i++)
		add_host(i ? "other" : "first", 3, i == 0, false);
	run_all();
	rank = hosts[2].c->rank;
	crash(&hosts[2]);
	run_all();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lost(&hosts[i], &why), 1u << rank);
		assert_non_null(strstr(why, "host other (rank "));
		assert_true(cluster_is_lost(hosts[i].c, rank));
		assert_true(cluster_is_absent(hosts[i].c, rank));
	}
	end();
}

TEST(loss__leader__all_out)
{
	begin();
	for (int i = 0; i < 3; i++)
		add_host(i ? "other" : "first", 3, i == 0, false);
	run_all();
	crash(&hosts[0]);
	run_all();
	for (int i = 1; i < 3; i++) {
		assert_true(hosts[i].c->out);
		assert_non_null(strstr(hosts[i].c->why, "host first (rank 0) is lost"));
	}
	end();
}

TEST(leaving__with_and_without_reason__told_apart)
{
	const char *why = "";

	begin();
	for (int i = 0; i < 3; i++)
		add_host("h", 3, i == 0, false);
	run_all();
	for (int i = 1; i < 3; i++) {
		hosts[i].dead = true;
		put(hosts[i].c->key, json_pack("{s:s?}", "left", i == 1 ? "no more memory" : NULL));
		put(hosts[i].c->key, NULL);
	}
	run_all();
	assert_int_equal(lost(&hosts[0], &why), 1u << hosts[1].c->rank);
	assert_non_null(strstr(why, "left: no more memory"));
	assert_true(cluster_is_absent(hosts[0].c, hosts[2].c->rank));
	assert_false(cluster_is_lost(hosts[0].c, hosts[2].c->rank));
	end();
}

TEST(put_out__one_host__told_apart_from_a_loss)
{
	const char *why = "";

	begin();
	for (int i = 0; i < 3; i++)
		add_host(i ? "other" : "first", 3, i == 0, false);
	run_all();
	cluster_arrive(hosts[1].c, "gate", NULL);
	run_all();
	cluster_put_out_absent(hosts[0].c, "gate", "it is too loud");
	cluster_put_out_absent(hosts[0].c, "gate", "it is too loud");
	run_all();
	assert_null(find(hosts[2].c->key));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lost(&hosts[i], &why), 1u << hosts[2].c->rank);
		assert_non_null(strstr(why, "is put out of the run: it is too loud"));
		assert_int_equal(hosts[i].c->hosts[hosts[2].c->rank].put_out, i == 0);
	}
	assert_true(hosts[2].c->out);
	assert_string_equal(hosts[2].c->why, "the run's leader puts this host out: it is too loud");
	end();
}

TEST(stale__own_key_gone_or_other_seal__out)
{
	for (int other = 0; other < 2; other++) {
		begin();
		add_host("a", 2, false, false);
		add_host("b", 2, false, false);
		run_all();
		if (other)
			put("members/sealed", json_object());
		else
			take_key_away(&hosts[1]);
		run_all();
		assert_true(hosts[1].c->out);
		end();
	}
}

TEST(hostile__nonsense_in_every_key__one_line_no_crash)
{
	static const char *const texts[] = { "null", "[]", "7", "{\"hosts\":[]}", "{\"about\":{\"name\":7}}",
					     "{\"left\":[]}",
		"{\"uuid\":\"../x\",\"hosts\":[1]}", "{\"uuid\":\"aa\",\"hosts\":[{\"id\":\"zz\",\"created\":1}]}",
		"{\"uuid\":\"aa\",\"hosts\":[{\"id\":\"00000000000000000000000000000001\"}]}" };
	static const char *const keys[] = { "sealed", "host/x", "host/00000000000000000000000000000001", "refused/",
					    "refused/x", "", "host/" };

	for (size_t k = 0; k < N_ELEMENTS(keys); k++)
		for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
			char key[96];

			begin();
			add_host("a", 2, false, false);
			run_all();
			snprintf(key, sizeof(key), "members/%s", keys[k]);
			put_bytes(key, texts[i], strlen(texts[i]));
			put_bytes(key, "{", 1);
			put(key, NULL);
			run_all();
			assert_int_equal(hosts[0].c->out, k == 0);
			assert_null(strchr(hosts[0].c->why, '\n'));
			end();
		}
}

/* The seal names this host with its key's correct revision, but something else in it is impossible. */
TEST(hostile__seal_that_cannot_be__one_line)
{
	static const char *const texts[] = { "{\"uuid\":\"\",\"hosts\":[%s]}", "{\"hosts\":[%s]}",
					     "{\"uuid\":7,\"hosts\":[%s]}",
		"{\"uuid\":\"members\",\"hosts\":[%s]}", "{\"uuid\":\"aa\",\"hosts\":[%s]}",
		"{\"uuid\":\"" UUID "0\",\"hosts\":[%s]}",
		"{\"uuid\":\"0123456789ABCDEF0123456789ABCDEF\",\"hosts\":[%s]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[%s,%s]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[%s,7]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[%s,{\"id\":\"" UUID "\",\"created\":1.5}]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[%s,{\"id\":\"" UUID "\",\"created\":\"2\"}]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":{\"0\":%s}}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[{\"id\":\"" UUID "\",\"created\":9},%s]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[%s]}" };

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		bool last = i + 1 == N_ELEMENTS(texts);	/* valid, except that no revision wrote it */
		char mine[128], text[512];
		const struct told *told;
		unsigned outs = 0;

		begin();
		add_host("a", 2, false, true);
		run_all();
		snprintf(mine, sizeof(mine), "{\"id\":\"%s\",\"created\":%d}", hosts[0].c->id,
			 (int)hosts[0].c->created);
		snprintf(text, sizeof(text), texts[i], mine, mine);
		assert_int_equal(hosts[0].c->phase, PHASE_WAITING);
		hosts[0].store.watches[0].events->on_entry(hosts[0].c,
							   &(struct etcd_entry){ "members/sealed", text, strlen(text),
										 8,
											     last ? 0 : 8 });
		STAILQ_FOREACH(told, &hosts[0].c->told, next)
			outs += told->what == TELL_OUT;
		assert_int_equal(outs, 1);
		end();
	}
}

/* In every schedule: at most one seal while its leader lives, each rank from 0 to N-1 once, no host in two runs. */
static void check_seal(uint32_t wanted)
{
	unsigned of_rank[HOSTS_MAX] = { 0 };

	assert_true(seals <= 1);
	for (unsigned i = 0; i < host_count; i++) {
		const struct host *h = &hosts[i];

		if (!h->c->epoch)
			continue;
		assert_int_equal(h->c->host_count, wanted);
		assert_true(h->c->rank < wanted);
		assert_int_equal(++of_rank[h->c->rank], 1);
	}
}

TEST(random__schedules__one_seal_and_each_rank_once)
{
	unsigned sealed = 0;

	for (unsigned round = 0; round < 5000; round++) {
		uint32_t wanted = 1 + draw(5);
		unsigned kills = draw(3), all = wanted + kills + draw(2), alive = 0, in = 0;
		bool with_lead = draw(2);

		seed = round * 7919 + 1;
		begin();
		for (unsigned turn = 0; turn < 400; turn++) {
			if (host_count < all && !draw(10))
				add_host("h", wanted, with_lead && host_count + 1 == all, with_lead && host_count +
					 1 < all);
			else if (host_count && kills && !find("members/sealed") && !draw(60) && kills-- &&
				 !(with_lead && host_count == all))
				crash(&hosts[draw(host_count)]);
			else if (host_count)
				step(&hosts[draw(host_count)]);
		}
		while (host_count < all)
			add_host("h", wanted, with_lead && host_count + 1 == all, with_lead && host_count + 1 < all);
		run_all();
		check_seal(wanted);
		for (unsigned i = 0; i < host_count; i++) {
			alive += !hosts[i].dead;
			in += hosts[i].c->epoch && !hosts[i].dead && !hosts[i].c->out;
			/* No host still waits once a run is sealed. */
			if (seals && !hosts[i].dead)
				assert_true(hosts[i].c->epoch || hosts[i].c->out);
		}
		if (alive >= wanted)
			assert_int_equal(seals, 1);
		sealed += in == wanted;
		end();
	}
	assert_true(sealed > 3000);
}
