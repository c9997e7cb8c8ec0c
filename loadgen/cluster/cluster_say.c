/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/cluster_say.h"

#include "loadgen/cluster/value.h"

void cluster_on_said(struct cluster *c, uint32_t rank, const struct etcd_entry *e)
{
	size_t memory;
	json_t *what = value_unpack_within(e->value, e->bytes, SAID_TEXT_MAX, SAID_MEMORY_MAX, &memory);
	struct told *t = what && !members_is_put_out(c->members, rank) ? cluster_tell(c, TELL_SAID, "") : NULL;

	if (!t) {
		json_decref(what);
		return;
	}
	t->rank = rank;
	t->json = what;
}

static void say_on(struct cluster *c);

static void on_say_written(void *arg, enum etcd_status status, const char *why)
{
	struct cluster *c = arg;

	(void)status;
	(void)why;	/* the next word comes; what it means for the run, other writes tell */
	c->saying = false;
	say_on(c);
}

static void say_on(struct cluster *c)
{
	char key[ETCD_KEY_MAX + 1];
	json_t *what = c->say_next;

	if (!what || c->saying || c->out)
		return;
	c->say_next = NULL;
	c->saying = true;
	if (cluster_is_leader(c))
		cluster_run_key(c, key, "down/say");
	else
		cluster_run_key(c, key, "up/say/%u", cluster_rank(c));
	cluster_write_json(c, key, what, SAID_TEXT_MAX, on_say_written);
}

void cluster_say(struct cluster *c, json_t *what)
{
	json_decref(c->say_next);
	c->say_next = what;
	say_on(c);
}
