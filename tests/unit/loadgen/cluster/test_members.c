/* SPDX-License-Identifier: BSD-2-Clause */
/* The membership of a run on a store that is no store: a list of changes, which each host sees in its order and at its own pace.
 * Thousands of schedules are drawn from a seed. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/random.h"
#include "loadgen/cluster/members.h"

#define HOSTS_MAX	8
#define CHANGES_MAX	512
#define UUID		"0123456789abcdef0123456789abcdef"

/* A change of the store: `entry` NULL: the key is gone. The keys below "here/" come by a watch of their own. */
struct change {
	char key[96];
	json_t *entry;
	int64_t created, written;
};

static struct change changes[CHANGES_MAX];
static unsigned change_count;

struct host {
	struct members *m;
	char id[MEMBERS_ID_LEN + 1];
	json_t *entry;
	unsigned seen, here_seen;	/* changes that its two watches have delivered */
	bool dead, out, sealed, caught_up;
	int error;
	char why[MEMBERS_TEXT_MAX], lost_why[MEMBERS_TEXT_MAX];
	uint32_t lost;			/* a bit for each rank */
	bool ends_seal;			/* its seal's transaction has ended: it is not told yet */
	bool seal_done;
};

static struct host hosts[HOSTS_MAX];
static unsigned host_count, seals;
static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
	return (unsigned)(random_next(&seed) % below);
}

/* ---- The store */

static const struct change *find(const char *key)
{
	for (unsigned i = change_count; i-- > 0;)
		if (!strcmp(changes[i].key, key))
			return changes[i].entry ? &changes[i] : NULL;
	return NULL;
}

static void put(const char *key, json_t *entry)
{
	const struct change *old = find(key);
	struct change *c = &changes[change_count];

	assert_true(change_count < CHANGES_MAX);
	snprintf(c->key, sizeof(c->key), "%s", key);
	c->entry = entry;
	c->written = ++change_count;
	c->created = old ? old->created : c->written;
}

static void host_key(const struct host *h, char key[96])
{
	snprintf(key, 96, "members/host/%s", h->id);
}

static void begin(void)
{
	change_count = host_count = seals = 0;
	memset(hosts, 0, sizeof(hosts));
}

static void end(void)
{
	for (unsigned i = 0; i < change_count; i++)
		json_decref(changes[i].entry);
	for (unsigned i = 0; i < host_count; i++) {
		members_free(hosts[i].m);
		json_decref(hosts[i].entry);
	}
}

static bool refuse_odd(void *arg, const json_t *leader, const json_t *member, char *why, size_t why_size)
{
	(void)arg;
	assert_non_null(leader);
	if (!json_object_get(member, "odd"))
		return true;
	snprintf(why, why_size, "it is odd");
	return false;
}

static struct host *add_host(const char *name, uint32_t wants, bool leads, bool joins)
{
	struct cluster_config cfg = { .hosts = wants, .leads = leads, .joins = joins, .lease_ns = 10000000000 };
	struct host *h = &hosts[host_count];
	struct members_config of = { .id = h->id, .uuid = h->id, .check = refuse_odd };

	snprintf(h->id, sizeof(h->id), "%08x%024x", (unsigned)random_next(&seed), ++host_count);
	h->entry = members_entry(&cfg, json_pack("{s:s}", "name", name));
	assert_int_equal(members_new(&of, &h->m), 0);
	return h;
}

/* ---- A host */

static void seal(struct host *h)
{
	char key[96];
	const char *id;
	int64_t created;

	h->ends_seal = true;
	h->seal_done = !find("members/sealed");
	for (uint32_t i = 0; (id = members_sealing(h->m, i, &created)); i++) {
		snprintf(key, sizeof(key), "members/host/%s", id);
		h->seal_done = h->seal_done && find(key) && find(key)->created == created;
	}
	if (h->seal_done) {
		put("members/sealed", json_deep_copy(members_seal(h->m)));
		seals++;
	}
}

static void obey(struct host *h)
{
	struct members_action a;
	char key[96];

	while (members_next(h->m, &a)) {
		assert_false(h->out);
		switch (a.what) {
		case MEMBERS_JOIN:
			host_key(h, key);
			if (!find("members/sealed"))
				put(key, json_incref(h->entry));
			break;
		case MEMBERS_HERE:
			snprintf(key, sizeof(key), "here/%.32s/%.32s", a.id, h->id);
			put(key, json_true());
			break;
		case MEMBERS_REFUSE:
			snprintf(key, sizeof(key), "members/refused/%.32s", a.id);
			put(key, json_string(a.why));
			break;
		case MEMBERS_SEAL:
			seal(h);
			break;
		case MEMBERS_LEADS:
			break;
		case MEMBERS_SEALED:
			assert_false(h->sealed);
			h->sealed = true;
			break;
		case MEMBERS_LOST:
			assert_true(h->sealed && a.rank && !(h->lost & 1u << a.rank));
			h->lost |= 1u << a.rank;
			snprintf(h->lost_why, sizeof(h->lost_why), "%s", a.why);
			break;
		case MEMBERS_GONE:
			break;
		case MEMBERS_OUT:
			h->out = true;
			h->error = a.error;
			snprintf(h->why, sizeof(h->why), "%s", a.why);
			break;
		}
	}
}

static bool see_member(struct host *h)
{
	const struct change *c;

	if (h->seen == change_count) {
		if (h->caught_up)
			return false;
		h->caught_up = true;
		members_on_caught_up(h->m);
		return true;
	}
	c = &changes[h->seen++];
	if (strncmp(c->key, "members/", 8))
		return true;
	if (c->entry)
		members_on_entry(h->m, c->key + 8, c->entry, c->created, c->written);
	else
		members_on_gone(h->m, c->key + 8);
	return true;
}

static bool see_here(struct host *h)
{
	const struct change *c;
	char prefix[64];

	if (h->here_seen == change_count)
		return false;
	c = &changes[h->here_seen++];
	snprintf(prefix, sizeof(prefix), "here/%s/", h->id);
	if (c->entry && !strncmp(c->key, prefix, strlen(prefix)))
		members_on_here(h->m, c->key + strlen(prefix));
	return true;
}

/* One step of one host; false if there is none to take. */
static bool step(struct host *h)
{
	bool did;

	if (h->dead || h->out)
		return false;
	if (h->ends_seal && !draw(2)) {
		h->ends_seal = false;
		members_written(h->m, MEMBERS_SEAL, h->seal_done);
		did = true;
	} else {
		did = draw(2) ? see_member(h) || see_here(h) : see_here(h) || see_member(h);
		did = did || h->ends_seal;
	}
	obey(h);
	return did;
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
	char key[96];

	host_key(h, key);
	if (find(key))
		put(key, NULL);
}

/* A crash: the store notices when the lease ends; what hangs on it goes in one transaction. */
static void crash(struct host *h)
{
	const struct change *sealed = find("members/sealed");

	h->dead = true;
	take_key_away(h);
	if (sealed && h->sealed && !members_rank(h->m))
		put("members/sealed", NULL);
}

/* ---- Tests */

TEST(joining__three_hosts__ranks_in_order_of_creation)
{
	begin();
	for (int i = 0; i < 3; i++)
		add_host("h", 3, false, false);
	run_all();
	assert_int_equal(seals, 1);
	for (int i = 0; i < 3; i++) {
		assert_true(hosts[i].sealed);
		assert_int_equal(members_hosts(hosts[i].m), 3);
		assert_int_equal(members_epoch(hosts[i].m), members_epoch(hosts[0].m));
		assert_string_equal(members_uuid(hosts[i].m), members_uuid(hosts[0].m));
		for (int k = 0; k < 3; k++)
			assert_int_equal(members_created(hosts[i].m) < members_created(hosts[k].m),
					 members_rank(hosts[i].m) < members_rank(hosts[k].m));
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
	assert_int_equal(members_rank(hosts[2].m), 0);
	assert_true(hosts[0].sealed && hosts[1].sealed && hosts[2].sealed);
	end();
}

TEST(joining__second_leader__refused)
{
	begin();
	add_host("one", 2, true, false);
	run_all();
	add_host("two", 2, true, false);
	run_all();
	assert_true(hosts[1].out);
	assert_int_equal(hosts[1].error, -EACCES);
	assert_non_null(strstr(hosts[1].why, "host one leads this run already"));
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
	assert_true(hosts[2].out);
	assert_int_equal(hosts[2].error, -EACCES);
	assert_non_null(strstr(hosts[2].why, "ann"));
	assert_non_null(strstr(hosts[2].why, "bob"));
	assert_false(hosts[0].out || hosts[1].out);
	end();
}

TEST(joining__other_number_or_failed_check__refused_with_reason)
{
	begin();
	add_host("lead", 2, true, false);
	add_host("three", 3, false, false);
	json_object_set_new(json_object_get(add_host("x", 2, false, false)->entry, "about"), "odd", json_true());
	run_all();
	assert_non_null(strstr(hosts[1].why, "it wants a run of 3 hosts"));
	assert_non_null(strstr(hosts[2].why, "it is odd"));
	assert_int_equal(seals, 0);
	add_host("good", 2, false, false);
	run_all();
	assert_int_equal(seals, 1);
	assert_true(hosts[0].sealed && hosts[3].sealed);
	end();
}

TEST(joining__ghosts_of_a_crashed_run__not_sealed_in)
{
	begin();
	put("members/host/00000000000000000000000000000001", json_pack("{s:i, s:{s:s}}", "hosts", 2, "about", "name", "ghost"));
	put("members/host/00000000000000000000000000000002", json_pack("{s:b, s:{s:s}}", "joins", 1, "about", "name", "ghost"));
	add_host("a", 2, false, false);
	add_host("b", 2, false, false);
	run_all();
	assert_int_equal(seals, 0);	/* the first ghost would lead */
	put("members/host/00000000000000000000000000000001", NULL);
	run_all();
	assert_int_equal(seals, 1);
	assert_true(hosts[0].sealed && hosts[1].sealed);
	end();
}

TEST(loss__member__named_on_all_and_final)
{
	uint32_t rank;

	begin();
	for (int i = 0; i < 3; i++)
		add_host(i ? "other" : "first", 3, i == 0, false);
	run_all();
	rank = members_rank(hosts[2].m);
	crash(&hosts[2]);
	run_all();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hosts[i].lost, 1u << rank);
		assert_non_null(strstr(hosts[i].lost_why, "host other (rank "));
		assert_true(members_is_lost(hosts[i].m, rank));
		assert_true(members_is_absent(hosts[i].m, rank));
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
		assert_true(hosts[i].out);
		assert_non_null(strstr(hosts[i].why, "host first (rank 0) is lost"));
	}
	end();
}

TEST(leaving__with_and_without_reason__told_apart)
{
	char key[96];

	begin();
	for (int i = 0; i < 3; i++)
		add_host("h", 3, i == 0, false);
	run_all();
	host_key(&hosts[1], key);
	hosts[1].dead = true;
	put(key, members_entry_left("no more memory"));
	put(key, NULL);
	host_key(&hosts[2], key);
	hosts[2].dead = true;
	put(key, members_entry_left(NULL));
	put(key, NULL);
	run_all();
	assert_non_null(strstr(hosts[0].lost_why, "left: no more memory"));
	assert_int_equal(hosts[0].lost, 1u << members_rank(hosts[1].m));
	assert_true(members_is_absent(hosts[0].m, members_rank(hosts[2].m)));
	assert_false(members_is_lost(hosts[0].m, members_rank(hosts[2].m)));
	end();
}

TEST(put_out__one_host__told_apart_from_a_loss)
{
	char key[96];

	begin();
	for (int i = 0; i < 3; i++)
		add_host(i ? "other" : "first", 3, i == 0, false);
	run_all();
	members_put_out(hosts[0].m, members_rank(hosts[2].m), "it is too loud");
	members_put_out(hosts[0].m, members_rank(hosts[2].m), "it is too loud");
	members_put_out(hosts[0].m, 3, "nobody");
	host_key(&hosts[2], key);
	put(key, members_entry_put_out("it is too loud"));
	put(key, NULL);
	run_all();
	obey(&hosts[0]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hosts[i].lost, 1u << members_rank(hosts[2].m));
		assert_non_null(strstr(hosts[i].lost_why, "is put out of the run: it is too loud"));
		assert_int_equal(members_is_put_out(hosts[i].m, members_rank(hosts[2].m)), i == 0);
	}
	assert_true(hosts[2].out);
	assert_string_equal(hosts[2].why, "the run's leader puts this host out: it is too loud");
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
		assert_true(hosts[1].out);
		end();
	}
}

TEST(hostile__nonsense_in_every_key__one_line_no_crash)
{
	static const char *const texts[] = { "null", "[]", "7", "{\"hosts\":[]}", "{\"about\":{\"name\":7}}", "{\"left\":[]}",
		"{\"uuid\":\"../x\",\"hosts\":[1]}", "{\"uuid\":\"aa\",\"hosts\":[{\"id\":\"zz\",\"created\":1}]}",
		"{\"uuid\":\"aa\",\"hosts\":[{\"id\":\"00000000000000000000000000000001\"}]}" };
	static const char *const keys[] = { "sealed", "host/x", "host/00000000000000000000000000000001", "refused/", "refused/x", "", "host/" };

	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
			json_t *entry = json_loads(texts[t], JSON_DECODE_ANY, NULL);
			struct members_action a;
			bool out = false;

			begin();
			add_host("a", 2, false, false);
			members_on_caught_up(hosts[0].m);
			members_on_entry(hosts[0].m, keys[k], entry, 1, 1);
			members_on_entry(hosts[0].m, keys[k], NULL, 2, 3);
			members_on_gone(hosts[0].m, keys[k]);
			while (members_next(hosts[0].m, &a))
				out = out || a.what == MEMBERS_OUT;
			assert_int_equal(out, k == 0);
			json_decref(entry);
			end();
		}
}

/* A seal has this host in it at its key's revision, and something that cannot be. */
TEST(hostile__seal_that_cannot_be__one_line)
{
	static const char *const texts[] = { "{\"uuid\":\"\",\"hosts\":[%s]}", "{\"hosts\":[%s]}", "{\"uuid\":7,\"hosts\":[%s]}",
		"{\"uuid\":\"members\",\"hosts\":[%s]}", "{\"uuid\":\"aa\",\"hosts\":[%s]}", "{\"uuid\":\"" UUID "0\",\"hosts\":[%s]}",
		"{\"uuid\":\"0123456789ABCDEF0123456789ABCDEF\",\"hosts\":[%s]}", "{\"uuid\":\"" UUID "\",\"hosts\":[%s,%s]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[%s,7]}", "{\"uuid\":\"" UUID "\",\"hosts\":[%s,{\"id\":\"" UUID "\",\"created\":1.5}]}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[%s,{\"id\":\"" UUID "\",\"created\":\"2\"}]}", "{\"uuid\":\"" UUID "\",\"hosts\":{\"0\":%s}}",
		"{\"uuid\":\"" UUID "\",\"hosts\":[{\"id\":\"" UUID "\",\"created\":9},%s]}", "{\"uuid\":\"" UUID "\",\"hosts\":[%s]}" };

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		bool last = i + 1 == N_ELEMENTS(texts);	/* nothing is wrong with it but that no revision wrote it */
		char mine[128], text[512], key[96];
		struct members_action a;
		unsigned outs = 0;
		json_t *seal_of;

		begin();
		add_host("a", 2, false, true);
		host_key(&hosts[0], key);
		members_on_caught_up(hosts[0].m);
		members_on_entry(hosts[0].m, key + strlen("members/"), hosts[0].entry, 7, 7);
		snprintf(mine, sizeof(mine), "{\"id\":\"%s\",\"created\":7}", hosts[0].id);
		snprintf(text, sizeof(text), texts[i], mine, mine);
		seal_of = json_loads(text, 0, NULL);
		assert_non_null(seal_of);
		members_on_entry(hosts[0].m, "sealed", seal_of, 8, last ? 0 : 8);
		while (members_next(hosts[0].m, &a))
			outs += a.what == MEMBERS_OUT;
		assert_int_equal(outs, 1);
		json_decref(seal_of);
		end();
	}
}

/* Whatever the schedule: one seal at most while its leader lives, ranks 0 to N-1 once each, nobody in two. */
static void check_seal(uint32_t wanted)
{
	unsigned of_rank[HOSTS_MAX] = { 0 };

	assert_true(seals <= 1);
	for (unsigned i = 0; i < host_count; i++) {
		const struct host *h = &hosts[i];

		if (!h->sealed)
			continue;
		assert_int_equal(members_hosts(h->m), wanted);
		assert_true(members_rank(h->m) < wanted);
		assert_int_equal(++of_rank[members_rank(h->m)], 1);
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
				add_host("h", wanted, with_lead && host_count + 1 == all, with_lead && host_count + 1 < all);
			else if (host_count && kills && !find("members/sealed") && !draw(60) && kills-- && !(with_lead && host_count == all))
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
			in += hosts[i].sealed && !hosts[i].dead && !hosts[i].out;
			/* Nobody is left waiting once a run is sealed. */
			if (seals && !hosts[i].dead)
				assert_true(hosts[i].sealed || hosts[i].out);
		}
		if (alive >= wanted)
			assert_int_equal(seals, 1);
		sealed += in == wanted;
		end();
	}
	assert_true(sealed > 3000);
}
