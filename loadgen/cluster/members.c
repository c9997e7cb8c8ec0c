/* SPDX-License-Identifier: BSD-2-Clause */
/* The membership of a run: candidates and their leader, refusals, the sealed list of hosts with ranks and epoch, and
 * losses.
 *
 * Every host applies the same rules to the same changes in the same order (one watch of "members/"):
 * - Each host has a key of its own, bound to its lease. Candidates are ordered by the creation of their keys.
 * - The leader is the first candidate with `leads`; otherwise the first without `joins` that knows the number of hosts.
 *   Candidates tell the leader that they are here, so keys that a crashed run left behind never become members.
 * - The leader refuses candidates with a reason. As soon as enough are here, it seals the first ones in one
 *   transaction, which succeeds only if all of them still exist and nothing is sealed yet.
 * - The leader has rank 0; the others follow in the order in which their keys were created. The revision of the sealing
 *   transaction is the epoch.
 * - A member whose key disappears is lost for good. The leader removes a host that breaks the rules by deleting its
 *   key. A host whose own key disappears, or that sees another seal, is out.
 *
 * All data from etcd may be hostile. */
#include "loadgen/cluster/cluster_core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "loadgen/cluster/value.h"

#define LEASE_S_MAX	86400
#define REFUSED_NAMED	8	/* refused hosts that get a line in the log */
#define SEAL_GUARDS_MAX	(ETCD_GUARDS_MAX - 2)

static void reconsider(struct cluster *c);

static void on_unsealed_written(void *arg, enum etcd_status status, const char *why)
{
	if (status == ETCD_FAILED)
		cluster_be_out(arg, -EIO, why);
}

/* Takes over `document`. */
static void write_unsealed(struct cluster *c, const char *key, json_t *document, bool own_key)
{
	const struct etcd_guard guards[] = { { .key = "members/sealed" }, { .key = c->key, .created = c->created } };
	struct etcd_write w = { .key = key };
	void *value = value_pack(document, ENTRY_TEXT_MAX, &w.bytes);

	w.value = value;
	if (!value || etcd_transact(c->etcd, guards, own_key ? 1 : 2, &w, on_unsealed_written, c))
		cluster_be_out(c, -ENOMEM, "this host's description is too long, or memory ran out");
	free(value);
	json_decref(document);
}

static void on_seal_written(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	on_unsealed_written(c, status, why);
	if (status == ETCD_DONE || c->phase != PHASE_SEALING)
		return;
	/* The watch may have reported the change that prevented the write already, so no event would start a retry. */
	c->phase = PHASE_WAITING;
	reconsider(c);
}

/* Takes over `hosts`. etcd limits the guards of a transaction, so the last hosts of a long list are unguarded: if the
 * key of one disappears meanwhile, that host counts as lost when the seal is read. */
static void write_seal(struct cluster *c, json_t *hosts)
{
	struct etcd_guard guards[ETCD_GUARDS_MAX] = { { .key = "members/sealed" } };
	char keys[SEAL_GUARDS_MAX][sizeof(c->key)];
	json_t *one, *seal = json_pack("{s:s, s:O, s:O}", "uuid", c->uuid, "lease_s",
				       json_object_get(c->entry, "lease_s"), "hosts", hosts);
	struct etcd_write w = { .key = "members/sealed" };
	void *value = value_pack(seal, ENTRY_TEXT_MAX, &w.bytes);
	size_t i, n = 1;

	json_array_foreach(hosts, i, one) {
		if (i == SEAL_GUARDS_MAX)
			break;
		snprintf(keys[i], sizeof(keys[i]), "members/host/%s", json_string_value(json_object_get(one, "id")));
		guards[n++] = (struct etcd_guard){ .key = keys[i],
						   .created = json_integer_value(json_object_get(one, "created")) };
	}
	w.value = value;
	c->phase = PHASE_SEALING;
	if (!value || etcd_transact(c->etcd, guards, n, &w, on_seal_written, c))
		cluster_be_out(c, -ENOMEM, "the list of hosts is too long, or memory ran out");
	free(value);
	json_decref(seal);
	json_decref(hosts);
}

/* Anybody who can write to etcd can add any number of candidates, so only the first few refusals are logged. */
static void refuse(struct cluster *c, struct candidate *x, const char *why)
{
	char key[96], name[HOST_NAME_BYTES], shown[CLUSTER_TEXT_MAX];

	x->refused = true;
	entry_show_name(x->entry, name);
	if (c->refused < REFUSED_NAMED)
		log_warn("host %s (%s) is refused: %s", name, x->id, why);
	else if (c->refused == REFUSED_NAMED)
		log_warn("more hosts are refused; their number is logged when the wait for hosts is over");
	c->refused++;
	snprintf(key, sizeof(key), "members/refused/%s", x->id);
	write_unsealed(c, key, json_string(utf8_show(why, shown, sizeof(shown))), false);
}

void members_log_refused(const struct cluster *c)
{
	if (c->refused > REFUSED_NAMED)
		log_warn("%u hosts were refused; the first %d are named above", c->refused, REFUSED_NAMED);
}

static void on_here_entry(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	const char *id = strrchr(e->key, '/') + 1;	/* the prefix ends with '/' */
	char text[CLUSTER_TEXT_MAX];

	if (c->epoch || c->out || !host_id_is_good(id))
		return;
	if (candidates_here(&c->candidates, id))
		reconsider(c);
	if (c->out || clock_now_ns() - c->waits_told_ns < NS_PER_S)
		return;
	c->waits_told_ns = clock_now_ns();
	log_info("%s", members_waiting(c, text));
}

static void add_to_seal(json_t *hosts, const struct candidate *x)
{
	char name[HOST_NAME_BYTES];

	entry_show_name(x->entry, name);
	json_array_append_new(hosts, json_pack("{s:s, s:I, s:s}", "id", x->id, "created", (json_int_t)x->created,
					       "name", name));
}

/* Seals the leader with the first hosts that are here, if they are enough. */
static void seal_if_enough(struct cluster *c, const struct candidate *me)
{
	uint32_t wanted = entry_hosts(me->entry);
	json_t *hosts = json_array();

	add_to_seal(hosts, me);
	for (uint32_t i = 0; i < c->candidates.count && json_array_size(hosts) < wanted; i++) {
		const struct candidate *x = c->candidates.of[i];

		if (x != me && x->here && !x->refused)
			add_to_seal(hosts, x);
	}
	if (json_array_size(hosts) == wanted)
		write_seal(c, hosts);
	else
		json_decref(hosts);
}

static void lead(struct cluster *c, const struct candidate *me)
{
	static const struct etcd_watch_events here_events = { .on_entry = on_here_entry };
	char why[CLUSTER_TEXT_MAX], prefix[64];

	if (strcmp(c->leader, c->id) != 0) {
		memcpy(c->leader, c->id, sizeof(c->leader));
		snprintf(prefix, sizeof(prefix), "here/%s/", c->id);
		cluster_watch(c, prefix, &here_events);
	}
	for (uint32_t i = 0; i < c->candidates.count && !c->out; i++) {
		struct candidate *x = c->candidates.of[i];
		/* A host that is not here may belong to a crashed run, and nobody would read its refusal. */
		bool judged = x->here || !x->entry || entry_is_true(x->entry, "leads");

		if (x != me && !x->refused && judged &&
		    !candidate_may_join(me, x, c->check, c->check_arg, why, sizeof(why)))
			refuse(c, x, why);
	}
	if (!c->out)
		seal_if_enough(c, me);
}

/* Called after each change before the seal: determines the leader and seals if enough hosts are here. */
static void reconsider(struct cluster *c)
{
	const struct candidate *leader, *me = candidates_find(&c->candidates, c->id);
	char key[128];

	if (c->out || c->phase != PHASE_WAITING || !me)
		return;
	leader = candidates_find_leader(&c->candidates);
	if (leader == me) {
		lead(c, me);
	} else if (leader && strcmp(c->leader, leader->id) != 0) {
		memcpy(c->leader, leader->id, sizeof(c->leader));
		snprintf(key, sizeof(key), "here/%s/%s", leader->id, c->id);
		write_unsealed(c, key, json_true(), false);
	}
}

const char *members_waiting(const struct cluster *c, char text[CLUSTER_TEXT_MAX])
{
	const struct candidate *leader = candidates_find_leader(&c->candidates);
	uint32_t here = 1;
	char name[HOST_NAME_BYTES];

	if (!leader) {
		snprintf(text, CLUSTER_TEXT_MAX, "no host that may lead the run has joined, only %u with --join",
			 c->candidates.count);
		return text;
	}
	entry_show_name(leader->entry, name);
	for (uint32_t i = 0; i < c->candidates.count; i++)
		here += c->candidates.of[i]->here;
	if (!strcmp(leader->id, c->id))
		snprintf(text, CLUSTER_TEXT_MAX, "%u of %u hosts are here", here, entry_hosts(leader->entry));
	else
		snprintf(text, CLUSTER_TEXT_MAX,
			 "host %s, which leads the run of %u hosts, has not begun it; %u hosts have joined", name,
			 entry_hosts(leader->entry), c->candidates.count);
	return text;
}

/* The rest of a key after "UUID/up/" or "UUID/down/". */
static const char *behind(const char *key, const char *what)
{
	return key + HOST_ID_LEN + strlen(what);
}

/* Reads the rank of a member, which must be the whole rest of the key. */
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
		cluster_on_said(c, rank, e);
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
		cluster_on_said(c, 0, e);
}

static void watch_run(struct cluster *c)
{
	static const struct etcd_watch_events up_events = { .on_entry = on_up }, down_events = { .on_entry = on_down };
	bool leads = cluster_is_leader(c);
	char prefix[ETCD_KEY_MAX + 1];

	if (leads && barriers_new(c->host_count, BARRIERS_BYTES, &c->barriers)) {
		cluster_be_out(c, -ENOMEM, "out of memory");
		return;
	}
	if (leads)
		c->error_ns = 0;	/* the run uses the clock of the leader */
	cluster_run_key(c, prefix, "%s/", leads ? "up" : "down");
	cluster_watch(c, prefix, leads ? &up_events : &down_events);
	if (c->joining)
		ev_break(c->loop, EVBREAK_ONE);
}

/* The seal: {uuid, lease_s, hosts[{id, created, name}]}, the hosts by rank. */

static bool read_sealed_host(const json_t *one, const struct member *before, size_t count, struct member *h)
{
	const char *id = json_text_at(one, "id"), *name = json_text_at(one, "name");

	if (!id || !host_id_is_good(id) || !json_is_integer(json_object_get(one, "created")))
		return false;
	for (size_t k = 0; k < count; k++)
		if (!strcmp(before[k].id, id))
			return false;
	memcpy(h->id, id, sizeof(h->id));
	h->created = json_integer_value(json_object_get(one, "created"));
	utf8_show(name ? name : "?", h->name, sizeof(h->name));
	return true;
}

/* Sets the hosts and the UUID of the run. With an invalid seal or without memory, returns false and changes nothing. */
static bool read_seal(struct cluster *c, const json_t *seal)
{
	const json_t *list = json_object_get(seal, "hosts"), *one;
	const char *uuid = json_text_at(seal, "uuid");
	size_t i, n = json_array_size(list);
	struct member *hosts = n >= 1 && n <= CLUSTER_HOSTS_MAX ? calloc(n, sizeof(*hosts)) : NULL;
	bool good = hosts && uuid && host_id_is_good(uuid);

	json_array_foreach(list, i, one)
		good = good && read_sealed_host(one, hosts, i, &hosts[i]);
	if (!good) {
		free(hosts);
		return false;
	}
	c->hosts = hosts;
	c->host_count = (uint32_t)n;
	memcpy(c->uuid, uuid, sizeof(c->uuid));
	return true;
}

static void say_too_late(struct cluster *c, const json_t *seal, int64_t written)
{
	json_int_t lease_s = json_integer_value(json_object_get(seal, "lease_s"));
	char why[CLUSTER_TEXT_MAX], names[256] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < c->host_count && used + HOST_NAME_BYTES + 8 < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", c->hosts[i].name);
	snprintf(why, sizeof(why),
		 "the run has begun without this host: its %u hosts are %s%s (epoch %lld). No host can join "
		 "or come back later; if that run crashed, its keys expire %lld s after", c->host_count, names,
		 used + HOST_NAME_BYTES + 8 < sizeof(names) ? "" : ", ...", (long long)written,
		 (long long)(lease_s > 0 && lease_s <= LEASE_S_MAX ? lease_s : 0));
	cluster_be_out(c, -EACCES, why);
}

/* Moves `about` from the candidates to the members. A member whose key no longer exists is lost. */
static void settle_hosts(struct cluster *c)
{
	for (uint32_t rank = 0; rank < c->host_count; rank++) {
		struct member *h = &c->hosts[rank];
		const struct candidate *x = candidates_find(&c->candidates, h->id);

		if (x && x->created == h->created)
			h->about = json_incref(json_object_get(x->entry, "about"));
		else
			cluster_lose(c, rank, LOSS_SILENT, NULL);
	}
	candidates_clear(&c->candidates);
}

static void on_seal(struct cluster *c, const json_t *seal, int64_t written)
{
	if (c->phase == PHASE_IN) {
		if (written != c->epoch)
			cluster_be_out(c, -EACCES, "another run was sealed under this run's name");
		return;
	}
	if (written <= 0 || !read_seal(c, seal)) {
		cluster_be_out(c, -EIO, "the list of the run's hosts in etcd is not valid");
		return;
	}
	for (uint32_t i = 0; i < c->host_count && c->created; i++) {
		if (strcmp(c->hosts[i].id, c->id) != 0 || c->hosts[i].created != c->created)
			continue;
		c->rank = i;
		c->epoch = written;
		c->phase = PHASE_IN;
		watch_run(c);
		settle_hosts(c);
		return;
	}
	say_too_late(c, seal, written);
}

/* The id after a prefix such as "host/"; NULL if the key has another form. */
static const char *id_behind(const char *rest, const char *prefix)
{
	size_t n = strlen(prefix);

	return !strncmp(rest, prefix, n) && host_id_is_good(rest + n) ? rest + n : NULL;
}

static void lose_by_id(struct cluster *c, const char *id, enum loss how, const char *why)
{
	for (uint32_t rank = 0; rank < c->host_count; rank++)
		if (!strcmp(c->hosts[rank].id, id)) {
			cluster_lose(c, rank, how, why);
			return;
		}
}

/* Takes this host out for the reason that the leader wrote. */
static void on_leaders_no(struct cluster *c, const char *what, const json_t *reason)
{
	char why[CLUSTER_TEXT_MAX - 64], text[CLUSTER_TEXT_MAX];

	utf8_show(json_is_string(reason) ? json_string_value(reason) : "it does not say why", why, sizeof(why));
	snprintf(text, sizeof(text), "the run's leader %s: %s", what, why);
	cluster_be_out(c, -EACCES, text);
}

static void on_left(struct cluster *c, const char *id, const json_t *left, bool put_out)
{
	char why[CLUSTER_TEXT_MAX / 2] = "?";

	if (strcmp(id, c->id) == 0) {
		if (put_out)
			on_leaders_no(c, "puts this host out", left);
		return;
	}
	if (json_is_string(left))
		utf8_show(json_string_value(left), why, sizeof(why));
	lose_by_id(c, id, put_out ? LOSS_PUT_OUT : LOSS_LEFT, json_is_string(left) || put_out ? why : NULL);
}

static void on_host(struct cluster *c, const char *id, const json_t *entry, int64_t created)
{
	const json_t *left = json_object_get(entry, "left");
	const struct candidate *x;

	if (c->phase == PHASE_IN) {
		if (left)
			on_left(c, id, left, entry_is_true(entry, "put_out"));
		return;
	}
	x = candidates_find(&c->candidates, id);
	if (!left && x && x->created == created)
		return;
	candidates_remove(&c->candidates, id);
	if (left)
		return;
	candidates_add(&c->candidates, id, entry, created);
	if (!strcmp(id, c->id)) {
		c->created = created;
		if (c->phase == PHASE_JOINING)
			c->phase = PHASE_WAITING;
	}
}

static void on_entry(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	const char *rest = e->key + strlen("members/"), *host = id_behind(rest, "host/"),
		*refused = id_behind(rest, "refused/");
	json_t *entry = c->out ? NULL : value_unpack(e->value, e->bytes, ENTRY_TEXT_MAX, ENTRY_MEMORY_MAX, NULL);

	if (c->out)
		return;
	if (!strcmp(rest, "sealed")) {
		on_seal(c, entry, e->written);
	} else if (host) {
		on_host(c, host, entry, e->created);
		reconsider(c);
	} else if (refused && !strcmp(refused, c->id) && c->phase != PHASE_IN) {
		on_leaders_no(c, "refuses this host", entry);
	}
	json_decref(entry);
}

static void on_gone(void *arg, const char *key)
{
	struct cluster *c = arg;
	const char *rest = key + strlen("members/"), *id = id_behind(rest, "host/");

	if (c->out)
		return;
	if (c->phase == PHASE_IN) {
		if (id)
			lose_by_id(c, id, LOSS_SILENT, NULL);
		else if (!strcmp(rest, "sealed"))
			cluster_lose(c, 0, LOSS_SILENT, NULL);
		return;
	}
	if (!id)
		return;
	candidates_remove(&c->candidates, id);
	if (!strcmp(id, c->id) && c->created)
		cluster_be_out(c, -ECONNRESET, "this host's key is gone: its lease expired");
	reconsider(c);
}

static void on_caught_up(void *arg)
{
	struct cluster *c = arg;

	if (c->out || c->phase != PHASE_LISTING)
		return;
	c->phase = PHASE_JOINING;
	write_unsealed(c, c->key, json_incref(c->entry), true);
}

void members_watch(struct cluster *c)
{
	static const struct etcd_watch_events events = { .on_entry = on_entry, .on_gone = on_gone,
							 .on_caught_up = on_caught_up };

	cluster_watch(c, "members/", &events);
}
