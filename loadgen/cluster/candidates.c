/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"

bool entry_is_true(const json_t *entry, const char *name)
{
	return json_is_true(json_object_get(entry, name));
}

uint32_t entry_hosts(const json_t *entry)
{
	json_int_t n = json_integer_value(json_object_get(entry, "hosts"));

	return n >= 1 && n <= CLUSTER_HOSTS_MAX ? (uint32_t)n : 0;
}

static bool is_entry(const json_t *entry)
{
	return json_is_object(json_object_get(entry, "about")) && json_text_at(entry, "about.name");
}

void entry_show_name(const json_t *entry, char name[HOST_NAME_BYTES])
{
	const char *said = json_text_at(entry, "about.name");

	utf8_show(said && *said ? said : "?", name, HOST_NAME_BYTES);
}

bool host_id_is_good(const char *text)
{
	return strlen(text) == HOST_ID_LEN && strspn(text, "0123456789abcdef") == HOST_ID_LEN;
}

struct candidate *candidates_find(const struct candidates *all, const char *id)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (!strcmp(all->of[i]->id, id))
			return all->of[i];
	return NULL;
}

static void free_candidate(struct candidate *c)
{
	json_decref(c->entry);
	free(c);
}

void candidates_remove(struct candidates *all, const char *id)
{
	for (uint32_t i = 0; i < all->count; i++) {
		if (strcmp(all->of[i]->id, id) != 0)
			continue;
		free_candidate(all->of[i]);
		all->count--;
		memmove(&all->of[i], &all->of[i + 1], (all->count - i) * sizeof(*all->of));
		return;
	}
}

void candidates_add(struct candidates *all, const char *id, const json_t *entry, int64_t created)
{
	struct candidate *c = all->count < CANDIDATES_MAX ? calloc(1, sizeof(*c)) : NULL;
	uint32_t at = all->count;

	if (!c)
		return;
	memcpy(c->id, id, sizeof(c->id));
	c->created = created;
	c->entry = is_entry(entry) ? json_incref((json_t *)entry) : NULL;
	c->here = json_object_del(all->early, id) == 0;
	while (at && all->of[at - 1]->created > created)
		at--;
	memmove(&all->of[at + 1], &all->of[at], (all->count - at) * sizeof(*all->of));
	all->of[at] = c;
	all->count++;
}

bool candidates_here(struct candidates *all, const char *id)
{
	struct candidate *c = candidates_find(all, id);

	if (c)
		c->here = true;
	else if (json_object_size(all->early) < CANDIDATES_MAX)
		json_object_set_new(all->early, id, json_true());
	return c != NULL;
}

struct candidate *candidates_find_leader(const struct candidates *all)
{
	struct candidate *first = NULL;

	for (uint32_t i = 0; i < all->count; i++) {
		struct candidate *c = all->of[i];

		if (!c->entry || c->refused || entry_is_true(c->entry, "joins") || !entry_hosts(c->entry))
			continue;
		if (entry_is_true(c->entry, "leads"))
			return c;
		if (!first)
			first = c;
	}
	return first;
}

bool candidate_may_join(const struct candidate *leader, const struct candidate *c, cluster_check_fn *check, void *arg,
			char *why, size_t why_size)
{
	uint32_t wants = entry_hosts(c->entry), has = entry_hosts(leader->entry);
	char name[HOST_NAME_BYTES];

	entry_show_name(leader->entry, name);
	if (!c->entry) {
		snprintf(why, why_size, "its key in etcd does not hold a valid host entry");
		return false;
	}
	if (entry_is_true(c->entry, "leads")) {
		snprintf(why, why_size, "host %s already leads this run; if it crashed, its key expires with its lease",
			 name);
		return false;
	}
	if (wants && wants != has) {
		snprintf(why, why_size, "it wants a run of %u hosts (--hosts), but the run that host %s leads has %u",
			 wants, name, has);
		return false;
	}
	why[0] = 0;
	if (check &&
	    !check(arg, json_object_get(leader->entry, "about"), json_object_get(c->entry, "about"), why, why_size)) {
		if (!why[0])
			snprintf(why, why_size, "host %s, which leads, does not admit it", name);
		return false;
	}
	return true;
}

void candidates_clear(struct candidates *all)
{
	while (all->count)
		free_candidate(all->of[--all->count]);
}
