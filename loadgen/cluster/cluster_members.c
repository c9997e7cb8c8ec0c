/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/cluster_members.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/cluster/cluster_clock.h"
#include "loadgen/cluster/cluster_gates.h"
#include "loadgen/cluster/cluster_say.h"
#include "loadgen/cluster/value.h"

#define REFUSED_NAMED	8	/* refused hosts that have a line of the log */
#define SEAL_GUARDS_MAX	(ETCD_GUARDS_MAX - 2)

static void pump(struct cluster *c);

/* ---- Joining */

static void on_join_written(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	if (status == ETCD_FAILED)
		cluster_be_out(c, -EIO, why);
}

static void on_seal_written(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	if (status == ETCD_FAILED) {
		cluster_be_out(c, -EIO, why);
		return;
	}
	members_written(c->members, MEMBERS_SEAL, status == ETCD_DONE);
	pump(c);
}

static void write_unsealed(struct cluster *c, const char *key, const json_t *document, bool own_key)
{
	struct etcd_guard guards[] = {
		{ .key = "members/sealed" },
		{ .key = c->hosts_key, .created = members_created(c->members) },
	};
	struct etcd_write w = { .key = key };
	void *value = value_pack(document, ENTRY_TEXT_MAX, &w.bytes);

	w.value = value;
	if (!value || etcd_transact(c->etcd, guards, own_key ? 1 : 2, &w, on_join_written, c))
		cluster_be_out(c, -ENOMEM, "what this host says of itself is too long, or memory ran out");
	free(value);
}

/* etcd takes a limited number of guards. A host beyond them whose key goes meanwhile is lost at once when the seal is read. */
static void write_seal(struct cluster *c)
{
	struct etcd_guard guards[ETCD_GUARDS_MAX] = { { .key = "members/sealed" } };
	char keys[SEAL_GUARDS_MAX][sizeof(c->hosts_key)];
	struct etcd_write w = { .key = "members/sealed" };
	void *value = value_pack(members_seal(c->members), ENTRY_TEXT_MAX, &w.bytes);
	const char *id;
	int64_t created;
	uint32_t n;

	for (n = 0; n < SEAL_GUARDS_MAX && (id = members_sealing(c->members, n, &created)); n++) {
		snprintf(keys[n], sizeof(keys[n]), "members/host/%s", id);
		guards[n + 1] = (struct etcd_guard){ .key = keys[n], .created = created };
	}
	w.value = value;
	if (!value || etcd_transact(c->etcd, guards, n + 1, &w, on_seal_written, c))
		cluster_be_out(c, -ENOMEM, "the list of hosts is too long, or memory ran out");
	free(value);
}

/* Anybody who can write to the store can add candidates without end, so only the first few refusals are logged. */
static void log_refusal(struct cluster *c, const struct members_action *a)
{
	if (c->refused < REFUSED_NAMED)
		log_warn("host %s (%s) is refused: %s", a->name, a->id, a->why);
	else if (c->refused == REFUSED_NAMED)
		log_warn("more hosts are refused; their number is logged when the wait for hosts is over");
	c->refused++;
}

void cluster_log_refused(const struct cluster *c)
{
	if (c->refused > REFUSED_NAMED)
		log_warn("%u hosts were refused; the first %d are named above", c->refused, REFUSED_NAMED);
}

static void write_reason(struct cluster *c, const struct members_action *a)
{
	char key[96];
	json_t *why = json_string(a->why);

	log_refusal(c, a);
	snprintf(key, sizeof(key), "members/refused/%s", a->id);
	write_unsealed(c, key, why, false);
	json_decref(why);
}

static void write_here(struct cluster *c, const struct members_action *a)
{
	char key[128];
	json_t *yes = json_true();

	snprintf(key, sizeof(key), "here/%s/%s", a->id, c->id);
	write_unsealed(c, key, yes, false);
}

static void on_here_entry(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	const char *id = strrchr(e->key, '/');
	char text[MEMBERS_TEXT_MAX];

	if (!id || members_is_sealed(c->members))
		return;
	members_on_here(c->members, id + 1);
	pump(c);
	if (c->out || members_is_sealed(c->members) || clock_now_ns() - c->waits_told_ns < NS_PER_S)
		return;
	c->waits_told_ns = clock_now_ns();
	log_info("%s", members_waiting(c->members, text));
}

static const struct etcd_watch_events here_events = { .on_entry = on_here_entry };

static void watch_here(struct cluster *c)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "here/%s/", c->id);
	cluster_watch(c, prefix, &here_events);
}

/* ---- What comes during the run */

/* The rank of a member, which is all that is left of the key. */
static bool rank_at(const struct cluster *c, const char *text, uint32_t *rank)
{
	return cluster_read_number(&text, members_hosts(c->members) - 1, rank) && !*text && *rank;
}

static void on_up(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	const char *rest = e->key + strlen(members_uuid(c->members)) + strlen("/up/");
	uint32_t rank;

	if (!strncmp(rest, "at/", 3))
		cluster_on_arrival(c, rest + 3, e);
	else if (!strncmp(rest, "part/", 5))
		cluster_on_part(c, rest + 5, e);
	else if (!strncmp(rest, "say/", 4) && rank_at(c, rest + 4, &rank))
		cluster_on_said(c, rank, e);
	else if (!strncmp(rest, "clock/", 6) && rank_at(c, rest + 6, &rank))
		cluster_on_question(c, rank, e);
	pump(c);	/* a host may have been put out */
}

static void on_down(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	const char *rest = e->key + strlen(members_uuid(c->members)) + strlen("/down/");

	if (!strncmp(rest, "go/", 3))
		cluster_on_go(c, rest + 3, e);
	else if (!strcmp(rest, "say"))
		cluster_on_said(c, 0, e);
}

static const struct etcd_watch_events up_events = { .on_entry = on_up };
static const struct etcd_watch_events down_events = { .on_entry = on_down };

static void on_sealed(struct cluster *c)
{
	char prefix[ETCD_KEY_MAX + 1];
	bool leads = !members_rank(c->members);

	c->joined = true;
	if (leads && (cluster_clock_lead(c) || barriers_new(members_hosts(c->members), BARRIERS_BYTES, &c->barriers))) {
		cluster_be_out(c, -ENOMEM, "memory is short");
		return;
	}
	cluster_run_key(c, prefix, "%s/", leads ? "up" : "down");
	cluster_watch(c, prefix, leads ? &up_events : &down_events);
	if (c->joining)
		ev_break(c->loop, EVBREAK_ONE);
}

/* ---- What the rules want */

static void on_members_lost(struct cluster *c, const struct members_action *a)
{
	struct told *t = cluster_tell(c, TELL_LOST, a->why);

	if (t)
		t->rank = a->rank;
	cluster_look_at_barriers(c);
}

/* Does what the state machine wants. */
static void pump(struct cluster *c)
{
	struct members_action a;

	while (!c->out && members_next(c->members, &a)) {
		switch (a.what) {
		case MEMBERS_JOIN:
			write_unsealed(c, c->hosts_key, c->entry, true);
			break;
		case MEMBERS_HERE:
			write_here(c, &a);
			break;
		case MEMBERS_REFUSE:
			write_reason(c, &a);
			break;
		case MEMBERS_SEAL:
			write_seal(c);
			break;
		case MEMBERS_LEADS:
			watch_here(c);
			break;
		case MEMBERS_SEALED:
			on_sealed(c);
			break;
		case MEMBERS_LOST:
			on_members_lost(c, &a);
			break;
		case MEMBERS_GONE:
			cluster_look_at_barriers(c);
			break;
		case MEMBERS_OUT:
			cluster_end(c, a.error, a.why);
			break;
		}
	}
}

void cluster_put_out_absent(struct cluster *c, const char *barrier, const char *why)
{
	cluster_put_out_late(c, barrier, why);
	pump(c);
}

/* ---- The watch of the members */

static void on_member_entry(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	size_t memory;
	json_t *entry = value_unpack_within(e->value, e->bytes, ENTRY_TEXT_MAX, ENTRY_MEMORY_MAX, &memory);

	members_on_entry(c->members, e->key + strlen("members/"), entry, e->created, e->written);
	json_decref(entry);
	pump(c);
}

static void on_member_gone(void *arg, const char *key)
{
	struct cluster *c = arg;

	members_on_gone(c->members, key + strlen("members/"));
	pump(c);
}

static void on_members_caught_up(void *arg)
{
	struct cluster *c = arg;

	members_on_caught_up(c->members);
	pump(c);
}

static const struct etcd_watch_events member_events = {
	.on_entry = on_member_entry, .on_gone = on_member_gone, .on_caught_up = on_members_caught_up,
};

void cluster_members_watch(struct cluster *c)
{
	cluster_watch(c, "members/", &member_events);
}
