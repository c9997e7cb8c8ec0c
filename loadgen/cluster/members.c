/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/members.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/base/utf8.h"
#include "loadgen/cluster/candidates.h"
#include "loadgen/cluster/seal.h"

#define LEASE_S_MAX	86400

struct pending {
	struct members_action action;
	STAILQ_ENTRY(pending) next;
};

enum phase {
	PHASE_LISTING,		/* what is there has not all come */
	PHASE_JOINING,		/* this host's key is not there yet */
	PHASE_WAITING,		/* for the seal, or for enough to seal */
	PHASE_SEALING,		/* the seal's transaction is under way */
	PHASE_IN,
	PHASE_OUT,
};

struct members {
	struct members_config cfg;
	char id[MEMBERS_ID_LEN + 1], uuid[RUN_UUID_BYTES], leader[MEMBERS_ID_LEN + 1];
	enum phase phase;
	int64_t created;
	struct candidates candidates;
	json_t *seal;			/* being written */
	struct sealed_host *hosts;	/* by rank */
	uint32_t host_count, rank;
	int64_t epoch;
	STAILQ_HEAD(, pending) actions;
};

/* ---- Actions */

static struct members_action *act(struct members *m, enum members_do what)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;	/* jansson's memory is short too: the caller's watch over it tells */
	p->action.what = what;
	STAILQ_INSERT_TAIL(&m->actions, p, next);
	return &p->action;
}

bool members_next(struct members *m, struct members_action *action)
{
	struct pending *p = STAILQ_FIRST(&m->actions);

	if (!p)
		return false;
	STAILQ_REMOVE_HEAD(&m->actions, next);
	*action = p->action;
	free(p);
	return true;
}

void members_on_out(struct members *m, int error, const char *why)
{
	struct members_action *a;

	if (m->phase == PHASE_OUT)
		return;
	m->phase = PHASE_OUT;
	a = act(m, MEMBERS_OUT);
	if (!a)
		return;
	a->error = error;
	snprintf(a->why, sizeof(a->why), "%s", why);
}

/* ---- The leader's part */

static void refuse(struct members *m, struct candidate *c, const char *why)
{
	struct members_action *a = act(m, MEMBERS_REFUSE);

	c->refused = true;
	if (!a)
		return;
	memcpy(a->id, c->id, sizeof(a->id));
	entry_show_name(c->entry, a->name);
	snprintf(a->why, sizeof(a->why), "%s", why);
}

/* Seals the leader and the first hosts that are here, if they are enough. */
static void seal_if_enough(struct members *m, struct candidate *me)
{
	uint32_t wanted = entry_hosts(me->entry);
	json_t *hosts = json_array();

	seal_add(hosts, me);
	for (uint32_t i = 0; i < m->candidates.count && json_array_size(hosts) < wanted; i++) {
		const struct candidate *c = m->candidates.of[i];

		if (c != me && c->here && !c->refused)
			seal_add(hosts, c);
	}
	if (json_array_size(hosts) < wanted) {
		json_decref(hosts);
		return;
	}
	json_decref(m->seal);
	m->seal = json_pack("{s:s, s:O, s:o}", "uuid", m->uuid, "lease_s", json_object_get(me->entry, "lease_s"), "hosts", hosts);
	m->phase = PHASE_SEALING;
	act(m, MEMBERS_SEAL);
}

static void lead(struct members *m, struct candidate *me)
{
	char why[MEMBERS_TEXT_MAX];

	if (strcmp(m->leader, m->id)) {
		memcpy(m->leader, m->id, sizeof(m->leader));
		act(m, MEMBERS_LEADS);
	}
	for (uint32_t i = 0; i < m->candidates.count; i++) {
		struct candidate *c = m->candidates.of[i];

		/* One that is not here may be of a crashed run: nobody reads its refusal. An entry that is none says nothing. */
		if (c != me && !c->refused && (c->here || !c->entry || entry_is_true(c->entry, "leads")) && !candidate_may_join(me, c, m->cfg.check, m->cfg.check_arg, why))
			refuse(m, c, why);
	}
	seal_if_enough(m, me);
}

/* Looks again at who leads and whether enough are here, after any change before the seal. */
static void reconsider(struct members *m)
{
	struct candidate *leader, *me = candidates_find(&m->candidates, m->id);

	if (m->phase != PHASE_WAITING || !me)
		return;
	leader = candidates_find_leader(&m->candidates);
	if (!leader)
		return;
	if (leader == me) {
		lead(m, me);
		return;
	}
	if (strcmp(m->leader, leader->id)) {
		struct members_action *a = act(m, MEMBERS_HERE);

		memcpy(m->leader, leader->id, sizeof(m->leader));
		if (a)
			memcpy(a->id, leader->id, sizeof(a->id));
	}
}

void members_on_here(struct members *m, const char *id)
{
	if (host_id_is_good(id) && candidates_here(&m->candidates, id))
		reconsider(m);
}

void members_written(struct members *m, enum members_do what, bool done)
{
	if (what != MEMBERS_SEAL || done || m->phase != PHASE_SEALING)
		return;
	/* The change that kept it from being written may have come already: nothing else would begin the next attempt. */
	m->phase = PHASE_WAITING;
	reconsider(m);
}

/* ---- The seal */

static void say_too_late(struct members *m, const json_t *seal, int64_t written)
{
	json_int_t lease_s = json_integer_value(json_object_get(seal, "lease_s"));
	char why[MEMBERS_TEXT_MAX], names[256] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < m->host_count && used + HOST_NAME_BYTES + 8 < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", m->hosts[i].name);
	snprintf(why, sizeof(why), "the run has begun without this host: its %u hosts are %s%s (epoch %lld). No host joins or comes back later; "
		 "if that run crashed, its keys are gone %lld s after", m->host_count, names,
		 used + HOST_NAME_BYTES + 8 < sizeof(names) ? "" : ", ...", (long long)written,
		 (long long)(lease_s > 0 && lease_s <= LEASE_S_MAX ? lease_s : 0));
	members_on_out(m, -EACCES, why);
}

/* How a host goes: its key is gone (`why` NULL), it left (`why` NULL: the run is over), or the leader put it out. */
enum loss { LOSS_SILENT, LOSS_LEFT, LOSS_PUT_OUT };

static void lose(struct members *m, uint32_t rank, enum loss how, const char *why);

/* Takes over what candidates said of themselves. One that is gone already is lost. */
static void settle_hosts(struct members *m)
{
	for (uint32_t rank = 0; rank < m->host_count; rank++) {
		struct sealed_host *h = &m->hosts[rank];
		const struct candidate *c = candidates_find(&m->candidates, h->id);

		if (c && c->created == h->created) {
			h->about = json_incref(json_object_get(c->entry, "about"));
			continue;
		}
		lose(m, rank, LOSS_SILENT, NULL);
	}
	candidates_clear(&m->candidates);
}

static void on_seal(struct members *m, const json_t *seal, int64_t written)
{
	if (m->phase == PHASE_IN) {
		if (written != m->epoch)
			members_on_out(m, -EACCES, "another run was sealed under this run's name");
		return;
	}
	m->hosts = written > 0 ? seal_read(seal, m->uuid, &m->host_count) : NULL;
	if (!m->hosts) {
		members_on_out(m, -EIO, "what the store has as the list of the run's hosts is none");
		return;
	}
	for (uint32_t i = 0; i < m->host_count; i++) {
		if (strcmp(m->hosts[i].id, m->id) || m->hosts[i].created != m->created || !m->created)
			continue;
		m->rank = i;
		m->epoch = written;
		m->phase = PHASE_IN;
		act(m, MEMBERS_SEALED);
		settle_hosts(m);
		return;
	}
	say_too_late(m, seal, written);
}

/* ---- Losses */

static void lose(struct members *m, uint32_t rank, enum loss how, const char *why)
{
	struct sealed_host *h = &m->hosts[rank];
	bool over = how == LOSS_LEFT && !why;
	char text[MEMBERS_TEXT_MAX];
	struct members_action *a;

	if (h->lost || h->left)
		return;
	h->lost = !over;
	h->left = over;
	if (over)
		snprintf(text, sizeof(text), "host %s (rank %u) has ended its part of the run", h->name, rank);
	else if (how == LOSS_PUT_OUT)
		snprintf(text, sizeof(text), "host %s (rank %u) is put out of the run: %s", h->name, rank, why);
	else if (how == LOSS_LEFT)
		snprintf(text, sizeof(text), "host %s (rank %u) left: %s", h->name, rank, why);
	else
		snprintf(text, sizeof(text), "host %s (rank %u) is lost: nothing was heard of it for the time of its lease", h->name, rank);
	if (rank == m->rank) {
		members_on_out(m, -ECONNRESET, "this host's key is gone: it was not heard of for the time of its lease");
		return;
	}
	if (!rank) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "; it led the run, which ends with it");
		members_on_out(m, -ECONNRESET, text);
		return;
	}
	a = act(m, over ? MEMBERS_GONE : MEMBERS_LOST);
	if (!a)
		return;
	a->rank = rank;
	memcpy(a->why, text, sizeof(a->why));
}

static void lose_by_id(struct members *m, const char *id, enum loss how, const char *why)
{
	for (uint32_t rank = 0; rank < m->host_count; rank++)
		if (!strcmp(m->hosts[rank].id, id)) {
			lose(m, rank, how, why);
			return;
		}
}

void members_put_out(struct members *m, uint32_t rank, const char *why)
{
	if (m->phase != PHASE_IN || rank >= m->host_count || m->hosts[rank].put_out)
		return;
	m->hosts[rank].put_out = true;
	lose(m, rank, LOSS_PUT_OUT, why);
}

/* ---- Changes */

/* The id behind a prefix such as "host/"; NULL if that is not what the key is. */
static const char *id_behind(const char *rest, const char *prefix)
{
	size_t n = strlen(prefix);

	return !strncmp(rest, prefix, n) && host_id_is_good(rest + n) ? rest + n : NULL;
}

static void on_left(struct members *m, const char *id, const json_t *left, bool put_out)
{
	char why[MEMBERS_TEXT_MAX / 2], text[MEMBERS_TEXT_MAX];

	if (json_is_string(left))
		utf8_show(json_string_value(left), why, sizeof(why));
	if (strcmp(id, m->id) != 0) {
		lose_by_id(m, id, put_out ? LOSS_PUT_OUT : LOSS_LEFT, json_is_string(left) ? why : put_out ? "?" : NULL);
	} else if (put_out) {
		snprintf(text, sizeof(text), "the run's leader puts this host out: %s", json_is_string(left) ? why : "?");
		members_on_out(m, -EACCES, text);
	}
}

static void on_host(struct members *m, const char *id, const json_t *entry, int64_t created)
{
	const json_t *left = json_object_get(entry, "left");
	struct candidate *c;

	if (m->phase == PHASE_IN) {
		if (left)
			on_left(m, id, left, entry_is_true(entry, "put_out"));
		return;
	}
	c = candidates_find(&m->candidates, id);
	if (!left && c && c->created == created)
		return;
	candidates_remove(&m->candidates, id);
	if (left)
		return;
	candidates_add(&m->candidates, id, entry, created);
	if (!strcmp(id, m->id)) {
		m->created = created;
		if (m->phase == PHASE_JOINING)
			m->phase = PHASE_WAITING;
	}
}

void members_on_entry(struct members *m, const char *rest, const json_t *entry, int64_t created, int64_t written)
{
	const char *id = id_behind(rest, "host/");

	if (m->phase == PHASE_OUT)
		return;
	if (!strcmp(rest, "sealed")) {
		on_seal(m, entry, written);
	} else if (id) {
		on_host(m, id, entry, created);
		reconsider(m);
	} else if ((id = id_behind(rest, "refused/")) && !strcmp(id, m->id) && m->phase != PHASE_IN) {
		char why[MEMBERS_TEXT_MAX - 64], text[MEMBERS_TEXT_MAX];

		utf8_show(json_is_string(entry) ? json_string_value(entry) : "it does not say why", why, sizeof(why));
		snprintf(text, sizeof(text), "the run's leader refuses this host: %s", why);
		members_on_out(m, -EACCES, text);
	}
}

void members_on_gone(struct members *m, const char *rest)
{
	const char *id = id_behind(rest, "host/");

	if (m->phase == PHASE_OUT)
		return;
	if (m->phase == PHASE_IN) {
		if (id)
			lose_by_id(m, id, LOSS_SILENT, NULL);
		else if (!strcmp(rest, "sealed"))
			lose(m, 0, LOSS_SILENT, NULL);
		return;
	}
	if (!id)
		return;
	candidates_remove(&m->candidates, id);
	if (!strcmp(id, m->id) && m->created)
		members_on_out(m, -ECONNRESET, "this host's key is gone: it was not heard of for the time of its lease");
	reconsider(m);
}

void members_on_caught_up(struct members *m)
{
	if (m->phase != PHASE_LISTING)
		return;
	m->phase = PHASE_JOINING;
	act(m, MEMBERS_JOIN);
}

/* ---- Life and state */

int members_new(const struct members_config *cfg, struct members **out)
{
	struct members *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	if (candidates_init(&m->candidates)) {
		free(m);
		return -ENOMEM;
	}
	m->cfg = *cfg;
	snprintf(m->id, sizeof(m->id), "%s", cfg->id);
	snprintf(m->uuid, sizeof(m->uuid), "%s", cfg->uuid);
	STAILQ_INIT(&m->actions);
	*out = m;
	return 0;
}

void members_free(struct members *m)
{
	struct members_action unused;

	if (!m)
		return;
	while (members_next(m, &unused))
		;
	candidates_free(&m->candidates);
	for (uint32_t i = 0; i < m->host_count; i++)
		json_decref(m->hosts[i].about);
	json_decref(m->seal);
	free(m->hosts);
	free(m);
}

const json_t *members_seal(const struct members *m)
{
	return m->seal;
}

const char *members_sealing(const struct members *m, uint32_t i, int64_t *created)
{
	const json_t *one = json_array_get(json_object_get(m->seal, "hosts"), i);

	*created = json_integer_value(json_object_get(one, "created"));
	return json_string_value(json_object_get(one, "id"));
}

bool members_is_sealed(const struct members *m)
{
	return m->epoch != 0;
}

uint32_t members_rank(const struct members *m)
{
	return m->rank;
}

uint32_t members_hosts(const struct members *m)
{
	return m->epoch ? m->host_count : 0;
}

int64_t members_epoch(const struct members *m)
{
	return m->epoch;
}

int64_t members_created(const struct members *m)
{
	return m->created;
}

const char *members_uuid(const struct members *m)
{
	return m->uuid;
}

const json_t *members_about(const struct members *m, uint32_t rank)
{
	return rank < members_hosts(m) ? m->hosts[rank].about : NULL;
}

const char *members_id(const struct members *m, uint32_t rank)
{
	return rank < members_hosts(m) ? m->hosts[rank].id : "";
}

const char *members_name(const struct members *m, uint32_t rank)
{
	return rank < members_hosts(m) ? m->hosts[rank].name : "?";
}

bool members_is_absent(const struct members *m, uint32_t rank)
{
	return rank >= members_hosts(m) || m->hosts[rank].lost || m->hosts[rank].left;
}

bool members_is_put_out(const struct members *m, uint32_t rank)
{
	return rank >= members_hosts(m) || m->hosts[rank].put_out;
}

bool members_is_lost(const struct members *m, uint32_t rank)
{
	return rank >= members_hosts(m) || m->hosts[rank].lost;
}

const char *members_waiting(const struct members *m, char text[MEMBERS_TEXT_MAX])
{
	const struct candidate *leader = candidates_find_leader(&m->candidates);
	uint32_t here = 1;
	char name[HOST_NAME_BYTES];

	if (!leader) {
		snprintf(text, MEMBERS_TEXT_MAX, "no host that may lead the run has come (%u that only join have)", m->candidates.count);
		return text;
	}
	entry_show_name(leader->entry, name);
	for (uint32_t i = 0; i < m->candidates.count; i++)
		here += m->candidates.of[i]->here;
	if (!strcmp(leader->id, m->id))
		snprintf(text, MEMBERS_TEXT_MAX, "%u of %u hosts are here", here, entry_hosts(leader->entry));
	else
		snprintf(text, MEMBERS_TEXT_MAX, "host %s, which leads the run of %u hosts, has not begun it; %u hosts have come", name,
			 entry_hosts(leader->entry), m->candidates.count);
	return text;
}
