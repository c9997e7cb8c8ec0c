/* SPDX-License-Identifier: BSD-2-Clause */
/* One host of a run. Its store is a table in this program, which also plays the other hosts: the clock, words,
 * barriers, and hosts that break the rules. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "loadgen/cluster/cluster_core.h"
#include "loadgen/cluster/value.h"

#define OTHER_1	"00000000000000000000000000000001"
#define OTHER_2	"00000000000000000000000000000002"
#define UUID	"0123456789abcdef0123456789abcdef"
#define CROWD	1500

struct key {
	char name[ETCD_KEY_MAX + 1];
	char *value;		/* NULL: the key does not exist */
	size_t bytes;
	int64_t created;
};

struct watch {
	const char *prefix;
	const struct etcd_watch_events *events;
	void *arg;
};

enum happening { KEY_IS, KEY_GONE, CAUGHT_UP, WRITTEN };

struct event {
	enum happening what;
	struct watch *watch;
	struct etcd_entry entry;
	etcd_done_fn *done;
	void *arg;
	enum etcd_status status;
};

static struct key keys[8192];
static struct watch watches[8];
static struct event events[16384];
static unsigned n_keys, n_watches, n_events, next_event, n_writes;
static int64_t revision;
static struct ev_timer deliver;
static struct ev_loop *loop;
static void (*others)(const char *key, const char *value, size_t bytes);	/* called when this host writes */

static struct key *find(const char *name)
{
	for (unsigned i = 0; i < n_keys; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static bool is_there(const char *name)
{
	return find(name) && find(name)->value;
}

static struct event *add_event(enum happening what)
{
	assert_true(n_events < N_ELEMENTS(events));
	events[n_events] = (struct event){ .what = what };
	if (!ev_is_active(&deliver))
		ev_timer_start(loop, &deliver);
	return &events[n_events++];
}

static void tell_watch(struct watch *w, const struct key *k)
{
	struct event *e = add_event(k->value ? KEY_IS : KEY_GONE);
	char *copy = calloc(1, k->bytes + 1);

	if (k->value)
		memcpy(copy, k->value, k->bytes);
	e->watch = w;
	e->entry = (struct etcd_entry){ .key = strdup(k->name), .value = copy, .bytes = k->bytes, .created = k->created,
					.written = revision };
}

static void change(const char *name, const void *value, size_t bytes)
{
	struct key *k = find(name);

	if (!k) {
		assert_true(n_keys < N_ELEMENTS(keys));
		k = &keys[n_keys++];
		snprintf(k->name, sizeof(k->name), "%s", name);
	}
	revision++;
	if (!k->value)
		k->created = revision;
	free(k->value);
	k->value = value ? malloc(bytes + 1) : NULL;
	k->bytes = value ? bytes : 0;
	if (value)
		memcpy(k->value, value, bytes);
	for (unsigned i = 0; i < n_watches; i++)
		if (!strncmp(name, watches[i].prefix, strlen(watches[i].prefix)))
			tell_watch(&watches[i], k);
}

static void put_text(const char *name, const char *text)
{
	change(name, text, strlen(text));
}

static void put_json(const char *name, json_t *document)
{
	char *text = json_dumps(document, JSON_ENCODE_ANY);

	put_text(name, text);
	free(text);
	json_decref(document);
}

static void on_deliver(struct ev_loop *l, struct ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
	while (next_event < n_events) {
		struct event e = events[next_event++];

		if (e.what == KEY_IS)
			e.watch->events->on_entry(e.watch->arg, &e.entry);
		else if (e.what == KEY_GONE && e.watch->events->on_gone)
			e.watch->events->on_gone(e.watch->arg, e.entry.key);
		else if (e.what == WRITTEN && e.done)
			e.done(e.arg, e.status, NULL);
		else if (e.what == CAUGHT_UP && e.watch->events->on_caught_up)
			e.watch->events->on_caught_up(e.watch->arg);
		free((char *)e.entry.key);
		free((char *)e.entry.value);
	}
	next_event = n_events = 0;
}

int etcd_open(const struct etcd_config *cfg, struct ev_loop *l, etcd_out_fn *on_out_of_it, void *arg, struct etcd **out,
	      char *err, size_t err_size)
{
	(void)cfg;
	(void)l;
	(void)on_out_of_it;
	(void)arg;
	(void)err;
	(void)err_size;
	*out = NULL;
	return 0;
}

void etcd_close(struct etcd *b, uint64_t wait_ns)
{
	(void)b;
	(void)wait_ns;
}

const char *etcd_trouble(const struct etcd *b)
{
	(void)b;
	return NULL;
}

static bool holds(const struct etcd_guard *g)
{
	return g->created ? is_there(g->key) && find(g->key)->created == g->created : !is_there(g->key);
}

static void write_one(const struct etcd_write *w)
{
	n_writes++;
	if (w->below) {
		for (unsigned i = 0; i < n_keys; i++)
			if (keys[i].value && !strncmp(keys[i].name, w->key, strlen(w->key)))
				change(keys[i].name, NULL, 0);
		return;
	}
	if (w->value || is_there(w->key))
		change(w->key, w->value, w->bytes);
}

int etcd_transact(struct etcd *b, const struct etcd_guard *guards, size_t n, const struct etcd_write *w,
		  etcd_done_fn *done, void *arg)
{
	bool all = true;
	struct event *e;

	(void)b;
	for (size_t i = 0; i < n; i++)
		all = all && holds(&guards[i]);
	if (all)
		write_one(w);
	e = add_event(WRITTEN);
	e->done = done;
	e->arg = arg;
	e->status = all ? ETCD_DONE : ETCD_REFUSED;
	if (all && others && w->value)
		others(w->key, w->value, w->bytes);
	return 0;
}

int etcd_watch(struct etcd *b, const char *prefix, const struct etcd_watch_events *ev, void *arg)
{
	struct watch *w = &watches[n_watches++];

	(void)b;
	*w = (struct watch){ .prefix = strdup(prefix), .events = ev, .arg = arg };
	for (unsigned i = 0; i < n_keys; i++)
		if (keys[i].value && !strncmp(keys[i].name, prefix, strlen(prefix)))
			tell_watch(w, &keys[i]);
	add_event(CAUGHT_UP)->watch = w;
	return 0;
}

static struct cluster *cluster;
static char id[33], uuid[33], told[8192];	/* told: the events that its caller got, one per line */
static uint64_t told_at_ns;

static void note_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void note_line(const char *fmt, ...)
{
	size_t n = strlen(told);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(told + n, sizeof(told) - n, fmt, ap);
	va_end(ap);
}

static void on_all(void *arg, const char *barrier)
{
	(void)arg;
	note_line("all %s\n", barrier);
}

static void on_go(void *arg, const char *barrier, json_t *what, uint64_t at_ns)
{
	(void)arg;
	(void)what;
	note_line("go %s\n", barrier);
	told_at_ns = at_ns;
}

static void on_lost(void *arg, uint32_t rank, const char *why)
{
	(void)arg;
	note_line("lost %u %s\n", rank, why);
}

static void on_out(void *arg, const char *why)
{
	(void)arg;
	note_line("out %s\n", why);
}

static void on_said(void *arg, uint32_t rank, json_t *what)
{
	(void)arg;
	note_line("said %u %lld\n", rank, (long long)json_integer_value(what));
}

static const struct cluster_events cluster_events = { .on_all = on_all, .on_go = on_go, .on_lost = on_lost,
						      .on_out = on_out, .on_said = on_said };

static void run(void)
{
	while (ev_is_active(&deliver) || next_event < n_events)
		ev_run(loop, EVRUN_ONCE);
	ev_run(loop, EVRUN_NOWAIT);
}

static void put_entry(const char *host, const char *name, bool leads)
{
	struct cluster_config cfg = { .hosts = 3, .leads = leads, .joins = !leads };
	char key[64];

	snprintf(key, sizeof(key), "members/host/%s", host);
	put_json(key, json_pack("{s:i, s:b, s:b, s:i, s:{s:s}}", "hosts", (int)cfg.hosts, "leads", leads, "joins",
				!leads, "lease_s", 10, "about", "name", name));
}

static json_t *sealed_host(const char *host)
{
	char key[64];

	snprintf(key, sizeof(key), "members/host/%s", host);
	return json_pack("{s:s, s:I, s:s}", "id", host, "created", (json_int_t)find(key)->created, "name", host == id ?
			 "me" : "other");
}

/* Plays two members while this host joins as the leader. */
static void two_members(const char *key, const char *value, size_t bytes)
{
	char here[128];

	(void)value;
	(void)bytes;
	if (strncmp(key, "members/host/", 13) != 0)
		return;
	others = NULL;
	snprintf(id, sizeof(id), "%s", key + 13);
	put_entry(OTHER_1, "bob", false);
	put_entry(OTHER_2, "eve", false);
	snprintf(here, sizeof(here), "here/%.32s/" OTHER_1, id);
	put_text(here, "true");
	snprintf(here, sizeof(here), "here/%.32s/" OTHER_2, id);
	put_text(here, "true");
}

/* Plays a crowd as well: keys that are no hosts, and one candidate that announces itself many times. */
static void two_members_and_a_crowd(const char *key, const char *value, size_t bytes)
{
	char text[128];

	if (strncmp(key, "members/host/", 13) != 0)
		return;
	for (unsigned i = 0; i < CROWD; i++) {
		snprintf(text, sizeof(text), "members/host/%032x", 0x1000 + i);
		put_text(text, "{\"about\":{\"name\":\"\\u001b[2J\"},\"hosts\":7,\"leads\":true}");
		snprintf(text, sizeof(text), "here/%.32s/%032x", key + 13, 0x9000 + i);
		put_text(text, "true");
	}
	two_members(key, value, bytes);
}

/* Plays a leader while this host joins as a member and gets rank 1. */
static void a_leader(const char *key, const char *value, size_t bytes)
{
	(void)value;
	(void)bytes;
	if (!strncmp(key, "members/host/", 13))
		snprintf(id, sizeof(id), "%s", key + 13);
	if (strncmp(key, "here/" OTHER_1 "/", 38) != 0)
		return;
	others = NULL;
	put_json("members/sealed", json_pack("{s:s, s:i, s:[o, o]}", "uuid", UUID, "lease_s", 10, "hosts",
					     sealed_host(OTHER_1), sealed_host(id)));
}

static bool crowded;		/* CROWD candidates that are no hosts come too */

static void begin(bool leads, bool go_on)
{
	struct cluster_config cfg = { .etcd.url = "", .hosts = leads ? 3 : 0, .leads = leads, .joins = !leads,
				      .etcd.lease_ns = 10 * NS_PER_S,
				      .join_timeout_ns = 60 * NS_PER_S, .go_on_after_loss = go_on };
	char err[512] = "";

	n_keys = n_watches = n_events = next_event = n_writes = 0;
	revision = 100;
	told[0] = 0;
	loop = ev_loop_new(0);
	ev_timer_init(&deliver, on_deliver, 0., 0.);
	others = crowded ? two_members_and_a_crowd : leads ? two_members : a_leader;
	if (!leads)
		put_entry(OTHER_1, "leader", true);
	if (cluster_join(&cfg, loop, json_pack("{s:s}", "name", "me"), NULL, NULL, &cluster, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(cluster_rank(cluster), leads ? 0 : 1);
	assert_int_equal(cluster_hosts(cluster), leads ? 3 : 2);
	snprintf(uuid, sizeof(uuid), "%s", cluster->uuid);
	cluster_listen(cluster, &cluster_events, NULL);
	run();
}

static void end(void)
{
	others = NULL;
	cluster_leave(cluster, NULL);
	on_deliver(loop, &deliver, 0);
	for (unsigned i = 0; i < n_keys; i++)
		free(keys[i].value);
	for (unsigned i = 0; i < n_watches; i++)
		free((char *)watches[i].prefix);
	memset(keys, 0, sizeof(keys));
	ev_timer_stop(loop, &deliver);
	ev_loop_destroy(loop);
}

/* Returns a key below the run's UUID. */
static const char *of_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static const char *of_run(const char *fmt, ...)
{
	static char key[ETCD_KEY_MAX + 1];
	size_t n = (size_t)snprintf(key, sizeof(key), "%s/", uuid);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(key + n, sizeof(key) - n, fmt, ap);
	va_end(ap);
	return key;
}

static void hear(const char *line)
{
	run();
	assert_string_equal(told, line);
	told[0] = 0;
}

#define AHEAD_NS	(5000 * (int64_t)NS_PER_S)

static unsigned asked;
static bool lies;

static void answer(json_int_t n, int64_t t2, int64_t t3)
{
	put_json(of_run("to/1.clock"), json_pack("{s:I, s:I, s:I}", "n", n, "t2", (json_int_t)t2, "t3",
						 (json_int_t)t3));
}

static void a_clock(const char *key, const char *value, size_t bytes)
{
	json_t *question;
	json_int_t n;
	int64_t now = (int64_t)clock_now_ns() + AHEAD_NS;

	if (strcmp(key, of_run("up/clock/1")) != 0)
		return;
	asked++;
	question = value_unpack(value, bytes, 1000, SIZE_MAX, NULL);
	n = json_integer_value(json_object_get(question, "n"));
	json_decref(question);
	if (lies) {
		put_text(of_run("to/1.clock"), "{");
		put_text(of_run("to/1.clock"), "[]");
		put_text(of_run("to/1.clock"), "{\"n\":\"1\"}");
		answer(n + 1, now, now);
		answer(n, -1, now);
		answer(n, now, now - 1);
		answer(n, INT64_MIN, INT64_MAX);
		answer(n, INT64_MAX, INT64_MAX);
		answer(n, 0, INT64_MAX);
		answer(n, now - (int64_t)NS_PER_S * 1000, now);
	}
	answer(n, now, now);
}

TEST(clock__leader_5000_s_ahead__found_within_the_error)
{
	for (int i = 0; i < 2; i++) {
		lies = i == 1;
		begin(false, false);
		assert_int_equal(cluster_clock_offset_ns(cluster), 0);
		assert_true(cluster_clock_error_ns(cluster) == UINT64_MAX);
		asked = 0;
		others = a_clock;
		cluster_measure_clock(cluster, "clock");
		run();
		assert_int_equal(asked, 8);
		assert_true(is_there(of_run("up/at/clock.1")));
		assert_true(cluster_clock_error_ns(cluster) < 60 * NS_PER_S);
		assert_true(llabs(cluster_clock_offset_ns(cluster) - AHEAD_NS) <=
			    (int64_t)cluster_clock_error_ns(cluster) + 1);
		end();
	}
}

TEST(go__moments__by_this_hosts_clock_and_never_later_than_said)
{
	int64_t in_ns = 10 * (int64_t)NS_PER_S, leader;
	static const struct {
		json_int_t at_ns, in_ns;
		bool at_once;
	} cases[] = { { 0, 0, true }, { INT64_MAX, 0, true }, { INT64_MAX, -1, true }, { 5, INT64_MAX, true },
		      { 5, INT64_MIN, true },
		      { INT64_MAX, 10 * NS_PER_S, false }, { INT64_MIN, 10 * NS_PER_S, false },
		      { INT64_MAX / 4 + 1, 10 * NS_PER_S, false },
		      { -1, 10 * NS_PER_S, false }, { 1, 10 * NS_PER_S, false } };
	uint64_t before;

	begin(false, false);
	others = a_clock;
	lies = false;
	cluster_measure_clock(cluster, "clock");
	run();
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		before = clock_now_ns();
		put_json(of_run("down/go/x"), json_pack("{s:I, s:I}", "at_ns", cases[i].at_ns, "in_ns",
							cases[i].in_ns));
		hear("go x\n");
		if (cases[i].at_once)
			assert_int_equal(told_at_ns, 0);
		else
			assert_true(told_at_ns >= before + (uint64_t)in_ns && told_at_ns <= clock_now_ns() +
				    (uint64_t)in_ns);
	}
	leader = (int64_t)clock_now_ns() + AHEAD_NS + in_ns;
	put_json(of_run("down/go/x"), json_pack("{s:I, s:I}", "at_ns", (json_int_t)leader, "in_ns", (json_int_t)in_ns));
	hear("go x\n");
	assert_int_equal(told_at_ns, leader - cluster_clock_offset_ns(cluster));
	/* These are no barriers, or have nothing to read. */
	put_text(of_run("down/go/X"), "{}");
	put_text(of_run("down/go/"), "{}");
	put_text(of_run("down/go/x"), "[");
	put_text(of_run("down/other"), "{}");
	hear("");
	end();
}

static void ask(unsigned rank, int n)
{
	put_json(of_run("up/clock/%u", rank), json_pack("{s:i}", "n", n));
	run();
}

static int answered(unsigned rank)
{
	struct key *k = find(of_run("to/%u.clock", rank));
	json_t *answer_of = k && k->value ? value_unpack(k->value, k->bytes, 1000, SIZE_MAX, NULL) : NULL;
	int n = (int)json_integer_value(json_object_get(answer_of, "n"));

	json_decref(answer_of);
	return n;
}

TEST(clock__two_ask_at_once__one_after_the_other)
{
	begin(true, false);
	assert_int_equal(cluster_clock_error_ns(cluster), 0);
	ask(1, 11);
	assert_int_equal(answered(1), 11);
	ask(2, 21);
	assert_int_equal(answered(2), 0);
	for (int i = 12; i <= 18; i++) {
		assert_int_equal(answered(2), 0);
		ask(1, i);
		assert_int_equal(answered(1), i);
	}
	assert_int_equal(answered(2), 21);
	ask(2, 22);
	assert_int_equal(answered(2), 22);
	/* A host that keeps asking must not block the others' turn. */
	for (int i = 30; i < 60; i++)
		ask(2, i);
	ask(1, 99);
	for (int i = 60; i < 70; i++)
		ask(2, i);
	assert_int_equal(answered(1), 99);
	/* These are no hosts of the run, or no questions. */
	put_text(of_run("up/clock/0"), "{\"n\":1}");
	put_text(of_run("up/clock/3"), "{\"n\":1}");
	put_text(of_run("up/clock/1x"), "{\"n\":1}");
	put_text(of_run("up/clock/1"), "{\"n\":0.5}");
	hear("");
	assert_false(is_there(of_run("to/0.clock")) || is_there(of_run("to/3.clock")));
	end();
}

TEST(say__three_before_the_first_is_written__first_and_last)
{
	unsigned before;
	struct key *k;

	for (int leads = 0; leads < 2; leads++) {
		begin(leads, false);
		before = n_writes;
		for (int i = 1; i <= 3; i++)
			cluster_say(cluster, json_integer(i));
		assert_int_equal(n_writes - before, 1);
		run();
		assert_int_equal(n_writes - before, 2);
		k = find(of_run(leads ? "down/say" : "up/say/1"));
		assert_non_null(k);
		assert_true(k->bytes == 1 && k->value[0] == '3');
		end();
	}
}

TEST(said__of_whom__by_strict_numbers)
{
	static const char *const nobody[] = { "0", "3", "1x", "", "-1", "+1", " 1", "4294967297",
					      "99999999999999999999", "1/2", "0x1" };

	begin(true, false);
	for (size_t i = 0; i < N_ELEMENTS(nobody); i++)
		put_text(of_run("up/say/%s", nobody[i]), "7");
	put_text(of_run("up/say/1"), "{");
	hear("");
	put_text(of_run("up/say/1"), "7");
	put_text(of_run("up/say/2"), "8");
	hear("said 1 7\nsaid 2 8\n");
	end();
	begin(false, false);
	put_text(of_run("down/say"), "9");
	hear("said 0 9\n");
	end();
}

TEST(barrier__notes_and_go__leader)
{
	begin(true, false);
	put_text(of_run("up/at/a.1"), "-");
	put_text(of_run("up/part/a.2.1"), "2]");
	put_text(of_run("up/at/a.2"), "+2");
	cluster_arrive(cluster, "a", json_integer(5));
	hear("");
	put_text(of_run("up/part/a.2.0"), "[1,");
	hear("all a\n");
	assert_int_equal(json_integer_value(cluster_note(cluster, "a", 0)), 5);
	assert_null(cluster_note(cluster, "a", 1));
	assert_int_equal(json_array_size(cluster_note(cluster, "a", 2)), 2);
	cluster_go(cluster, "a", NULL, 0);
	hear("go a\n");
	assert_true(is_there(of_run("down/go/a")));
	cluster_forget(cluster, "a");
	assert_false(is_there(of_run("up/at/a.1")) || is_there(of_run("up/part/a.2.0")) ||
		     is_there(of_run("down/go/a")));
	assert_null(cluster_note(cluster, "a", 2));
	end();
}

/* More steps than a table of barriers would have room for, of which the caller forgets none. */
TEST(barrier__300_never_forgotten__no_end_of_room)
{
	unsigned there = 0;
	char expected[64];

	begin(true, false);
	for (unsigned i = 0; i < 300; i++) {
		put_text(of_run("up/at/s%u.1", i), "-");
		put_text(of_run("up/at/s%u.2", i), "-");
		snprintf(expected, sizeof(expected), "s%u", i);
		cluster_arrive(cluster, expected, NULL);
		cluster_go(cluster, expected, NULL, 0);
		snprintf(expected, sizeof(expected), "go s%u\nall s%u\n", i, i);
		run();
		assert_true(strstr(told, "all ") && strstr(told, "go "));
		told[0] = 0;
	}
	for (unsigned i = 0; i < n_keys; i++)
		there += keys[i].value && strstr(keys[i].name, "/s") != NULL;
	assert_true(there <= 3 * 17);
	end();
}

TEST(hostile__keys__no_arrival)
{
	static const char *const rests[] = { "at/x", "at/", "at/.1", "at/x.", "at/x.0", "at/x.3", "at/x.-1", "at/x.+1",
					     "at/x.1z", "at/x.1.1",
		"at/X.1", "at/x.4294967297", "at/x.99999999999999999999", "part/x.1", "part/x.1.", "part/x.1.32",
		"part/x.1.-1", "part/x.1.1.1", "part/", "", "at", "other/x.1" };

	begin(true, false);
	for (size_t i = 0; i < N_ELEMENTS(rests); i++)
		put_text(of_run("up/%s", rests[i]), "-");
	cluster_arrive(cluster, "x", NULL);
	put_text(of_run("up/at/x.1"), "+33");	/* an impossible note: the host arrives without one */
	hear("");
	put_text(of_run("up/at/x.2"), "+-1");
	hear("all x\n");
	assert_null(cluster_note(cluster, "x", 1));
	assert_null(cluster_note(cluster, "x", 2));
	end();
}

/* Barriers that nobody announced: the host is named and its key removed, and what it writes later does not count. */
TEST(hostile__names_that_never_end__put_out_and_named)
{
	begin(true, true);
	for (unsigned i = 0; i < 500; i++)
		put_text(of_run("up/at/bogus-%u.2", i), "-");
	hear("lost 2 host eve (rank 2) is put out of the run: it is at more than 32 barriers that the run has not "
	     "passed\n");
	assert_true(cluster_is_lost(cluster, 2));
	assert_false(is_there("members/host/" OTHER_2));
	assert_true(is_there("members/host/" OTHER_1));
	put_text(of_run("up/say/2"), "7");
	put_text(of_run("up/at/a.1"), "-");
	cluster_arrive(cluster, "a", NULL);
	hear("all a\n");
	end();
}

TEST(hostile__notes_that_take_too_much__put_out_and_named)
{
	size_t part = 1 << 20;
	char *value = calloc(1, part);

	begin(true, true);
	for (unsigned i = 0; i < 120; i++)
		change(of_run("up/part/b%u.1.%u", i / 32, i % 32), value, part);
	free(value);
	hear("lost 1 host bob (rank 1) is put out of the run: its notes take more than 96 MiB of the leader's "
	     "memory\n");
	assert_false(is_there("members/host/" OTHER_1));
	end();
}

/* Collects the lines of the log from here on. */
static int log_file, own_stderr;

static void log_keep(void)
{
	log_file = memfd_create("log", 0);
	own_stderr = dup(STDERR_FILENO);
	assert_int_equal(dup2(log_file, STDERR_FILENO), STDERR_FILENO);
}

static unsigned log_lines(char *text, size_t size)
{
	ssize_t n = pread(log_file, text, size - 1, 0);
	unsigned lines = 0;

	assert_int_equal(dup2(own_stderr, STDERR_FILENO), STDERR_FILENO);
	close(log_file);
	close(own_stderr);
	assert_true(n >= 0);
	text[n] = '\0';
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	return lines;
}

TEST(hostile__many_candidates__a_few_lines_of_log)
{
	static char text[1 << 20];
	unsigned lines;

	crowded = true;
	log_keep();
	begin(true, true);
	crowded = false;
	lines = log_lines(text, sizeof(text));
	/* 8 named refusals, 2 summaries, and at most one line a second about who is here. */
	assert_in_range(lines, 10, 14);
	assert_non_null(strstr(text, "host \\x1b[2J (00000000000000000000000000001000) is refused: host me already "
				     "leads this run"));
	assert_non_null(strstr(text, "1500 hosts were refused; the first 8 are named above"));
	end();
}

/* The leader's words come to a member through a key that anybody with the token can write. */
TEST(hostile__words_to_go_on_that_are_none__one_line)
{
	static char text[1 << 16];

	begin(false, true);
	log_keep();
	for (unsigned i = 0; i < 100; i++)
		put_text(of_run("down/go/b%u", i), "no JSON");
	run();
	assert_int_equal(log_lines(text, sizeof(text)), 1);
	end();
}

TEST(put_out__who_is_not_at_a_barrier__that_host_only_and_the_barrier_is_full)
{
	begin(true, true);
	cluster_arrive(cluster, "gate", NULL);
	change(of_run("up/at/gate.2"), "-", 1);
	run();
	cluster_put_out_absent(cluster, "gate", "it did not arrive");
	hear("lost 1 host bob (rank 1) is put out of the run: it did not arrive\nall gate\n");
	assert_false(is_there("members/host/" OTHER_1));
	assert_true(is_there("members/host/" OTHER_2));
	end();
}

TEST(put_out__member__told_why)
{
	char key[64];

	begin(false, false);
	snprintf(key, sizeof(key), "members/host/%s", id);
	put_text(key, "{\"left\":\"its notes take too much\",\"put_out\":true}");
	change(key, NULL, 0);
	hear("out the run's leader puts this host out: its notes take too much\n");
	end();
}
