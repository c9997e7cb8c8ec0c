/* SPDX-License-Identifier: BSD-2-Clause */
/* Barriers: hosts arrive with notes for the leader, and the leader tells them when to continue. Also losses of hosts.
 * Data from etcd may be hostile. */
#include "loadgen/cluster/cluster_core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "loadgen/cluster/value.h"

#define PART_BYTES	(512 * 1024)	/* a longer note is split over several keys */
#define GO_IN_MAX_NS	(3600 * NS_PER_S)
/* The largest go message carries the reports of 64 servers, less than 2 MiB. A page from etcd has up to 16 messages. */
#define GO_MEMORY_MAX	(8 * 1024 * 1024)

static bool waits_for(void *arg, uint32_t rank)
{
	const struct cluster *c = arg;

	return !cluster_is_absent(c, rank) || (cluster_is_lost(c, rank) && !c->cfg.go_on_after_loss);
}

static void look_at_barriers(struct cluster *c)
{
	const char *name;

	while (c->barriers && (name = barriers_next_full(c->barriers, waits_for, c)))
		cluster_tell(c, TELL_ALL, name);
	while (c->barriers && (name = barriers_next_old(c->barriers)))
		cluster_forget(c, name);
}

/* Logs one line per host, so that a host that repeats its error cannot fill the log. */
static void complain(struct cluster *c, uint32_t rank, const char *what)
{
	bool known = rank < c->host_count;
	bool *done = &c->complained[known ? rank : CLUSTER_HOSTS_MAX];

	if (*done)
		return;
	*done = true;
	if (known)
		log_warn("host %s (rank %u): %s; its further errors are not logged", c->hosts[rank].name, rank, what);
	else
		log_warn("ignoring a key of this run in etcd that does not name a barrier and a host of the run; "
			 "further such keys are not logged");
}

void cluster_lose(struct cluster *c, uint32_t rank, enum loss how, const char *why)
{
	struct member *h = &c->hosts[rank];
	bool over = how == LOSS_LEFT && !why;
	char text[CLUSTER_TEXT_MAX];
	struct told *t;
	int n;

	if (c->out || h->lost || h->left)
		return;
	h->lost = !over;
	h->left = over;
	if (over)
		n = snprintf(text, sizeof(text), "host %s (rank %u) has ended its part of the run", h->name, rank);
	else if (how == LOSS_PUT_OUT)
		n = snprintf(text, sizeof(text), "host %s (rank %u) is put out of the run: %s", h->name, rank, why);
	else if (how == LOSS_LEFT)
		n = snprintf(text, sizeof(text), "host %s (rank %u) left: %s", h->name, rank, why);
	else
		n = snprintf(text, sizeof(text), "host %s (rank %u) is lost: it was silent for the time of its lease",
			     h->name, rank);
	if (rank == c->rank) {
		cluster_be_out(c, -ECONNRESET, "this host's key is gone: its lease expired");
	} else if (!rank) {
		if (n < (int)sizeof(text))
			snprintf(text + n, sizeof(text) - (size_t)n, "; it led the run, which ends with it");
		cluster_be_out(c, -ECONNRESET, text);
	} else {
		t = over ? NULL : cluster_tell(c, TELL_LOST, text);
		if (t)
			t->rank = rank;
		look_at_barriers(c);
	}
}

static void put_out(struct cluster *c, uint32_t rank, const char *why)
{
	char key[96];

	if (!rank) {
		cluster_be_out(c, -EOVERFLOW, why);
		return;
	}
	if (cluster_is_absent(c, rank))
		return;
	snprintf(key, sizeof(key), "members/host/%s", c->hosts[rank].id);
	cluster_write_json(c, key, json_pack("{s:s, s:b}", "left", why, "put_out", 1), ENTRY_TEXT_MAX,
			   cluster_on_written);
	cluster_write_key(c, &(struct etcd_write){ .key = key }, cluster_on_written);
	c->hosts[rank].put_out = true;
	cluster_lose(c, rank, LOSS_PUT_OUT, why);
}

void cluster_put_out_absent(struct cluster *c, const char *barrier, const char *why)
{
	for (uint32_t rank = 1; c->barriers && rank < c->host_count && !c->out; rank++)
		if (!barriers_is_at(c->barriers, barrier, rank))
			put_out(c, rank, why);
}

static void judge_arrival(struct cluster *c, uint32_t rank, int rc)
{
	char why[160];

	switch (rc) {
	case 0:
		break;
	case -EDQUOT:
		snprintf(why, sizeof(why), "it is at more than %d barriers that the run has not passed",
			 BARRIERS_OF_HOST_MAX);
		put_out(c, rank, why);
		break;
	case -EFBIG:
		snprintf(why, sizeof(why), "its notes take more than %u MiB of the leader's memory",
			 BARRIERS_HOST_BYTES >> 20);
		put_out(c, rank, why);
		break;
	case -ENOSPC:
		snprintf(why, sizeof(why),
			 "its note is left out: the notes of all hosts take %u MiB of memory, the limit",
			 BARRIERS_BYTES >> 20);
		complain(c, rank, why);
		break;
	default:
		snprintf(why, sizeof(why), "its note is not usable: %s", strerror(-rc));
		complain(c, rank, why);
		break;
	}
}

/* Reads "NAME.RANK" of a member, or "NAME.RANK.PART" if `part` is not NULL. False, with a warning, otherwise. */
static bool split_key(struct cluster *c, const char *rest, char name[BARRIER_NAME_MAX + 1], uint32_t *rank,
		      uint32_t *part)
{
	const char *dot = strchr(rest, '.'), *at = dot ? dot + 1 : "";
	size_t n = dot ? (size_t)(dot - rest) : 0;
	bool good = n && n <= BARRIER_NAME_MAX && cluster_read_number(&at, c->host_count - 1, rank) && *rank;

	if (good && part)
		good = *at++ == '.' && cluster_read_number(&at, BARRIER_PARTS_MAX - 1, part);
	if (good && !*at) {
		memcpy(name, rest, n);
		name[n] = 0;
		return !c->hosts[*rank].put_out;
	}
	complain(c, UINT32_MAX, NULL);
	return false;
}

/* Parts of the note, announced by the arrival as "+N"; 0 without "+", which begins no note; UINT32_MAX: invalid N. */
static uint32_t parts_of(const struct etcd_entry *e)
{
	const char *text = e->value;
	uint32_t parts;

	if (*text++ != '+')
		return 0;
	return cluster_read_number(&text, BARRIER_PARTS_MAX, &parts) && !*text && parts ? parts : UINT32_MAX;
}

void cluster_on_arrival(struct cluster *c, const char *rest, const struct etcd_entry *e)
{
	char name[BARRIER_NAME_MAX + 1];
	bool has_note = !(e->bytes && *(const char *)e->value == '-');
	uint32_t rank;

	if (!split_key(c, rest, name, &rank, NULL))
		return;
	judge_arrival(c, rank,
		      barriers_arrive(c->barriers, name, rank, parts_of(e), e->value, has_note ? e->bytes : 0));
	look_at_barriers(c);
}

void cluster_on_part(struct cluster *c, const char *rest, const struct etcd_entry *e)
{
	char name[BARRIER_NAME_MAX + 1];
	uint32_t rank, part;

	if (!split_key(c, rest, name, &rank, &part))
		return;
	judge_arrival(c, rank, barriers_part(c->barriers, name, rank, part, e->value, e->bytes));
	look_at_barriers(c);
}

/* Writes a note that is too long for one value in parts, before the arrival itself. Returns the number of parts. */
static uint32_t write_parts(struct cluster *c, const char *barrier, const char *value, size_t bytes)
{
	char key[ETCD_KEY_MAX + 1];
	uint32_t parts = 0;

	for (size_t at = 0; at < bytes; at += PART_BYTES, parts++) {
		struct etcd_write w = { .key = key, .value = value + at };

		w.bytes = bytes - at < PART_BYTES ? bytes - at : PART_BYTES;
		cluster_run_key(c, key, "up/part/%s.%u.%u", barrier, c->rank, parts);
		cluster_write_key(c, &w, cluster_on_written);
	}
	return parts;
}

static void arrive_member(struct cluster *c, const char *barrier, const void *value, size_t bytes)
{
	char key[ETCD_KEY_MAX + 1], text[16];
	struct etcd_write w = { .key = key, .value = value, .bytes = bytes };

	if (bytes > PART_BYTES) {
		snprintf(text, sizeof(text), "+%u", write_parts(c, barrier, value, bytes));
		w.value = text;
		w.bytes = strlen(text);
	} else if (!bytes) {
		w.value = "-";
		w.bytes = 1;
	}
	cluster_run_key(c, key, "up/at/%s.%u", barrier, c->rank);
	cluster_write_key(c, &w, cluster_on_written);
}

void cluster_arrive(struct cluster *c, const char *barrier, json_t *note)
{
	size_t bytes = 0;
	void *value = note ? value_pack(note, CLUSTER_NOTE_MAX, &bytes) : NULL;

	if (c->out) {
		;
	} else if ((note && !value) || !barrier_name_is_good(barrier)) {
		cluster_be_out(c, -EINVAL,
			       "a note for the leader is too long, its barrier has a bad name, or memory ran out");
	} else if (!cluster_is_leader(c)) {
		arrive_member(c, barrier, value, bytes);
	} else {
		judge_arrival(c, 0, barriers_arrive(c->barriers, barrier, 0, 0, value, bytes));
		look_at_barriers(c);
	}
	json_decref(note);
	free(value);
}

const json_t *cluster_note(const struct cluster *c, const char *barrier, uint32_t rank)
{
	return c->barriers ? barriers_note(c->barriers, barrier, rank) : NULL;
}

void cluster_forget(struct cluster *c, const char *barrier)
{
	char key[ETCD_KEY_MAX + 1], rest[BARRIER_NAME_MAX + 16], name[BARRIER_NAME_MAX + 1];

	if (!c->barriers || !barrier_name_is_good(barrier))
		return;
	snprintf(name, sizeof(name), "%s", barrier);
	barriers_forget(c->barriers, barrier);	/* frees the memory that `barrier` may point into */
	for (int i = 0; i < 2; i++) {
		snprintf(rest, sizeof(rest), i ? "up/part/%s." : "up/at/%s.", name);
		cluster_run_key(c, key, "%s", rest);
		cluster_write_key(c, &(struct etcd_write){ .key = key, .below = true }, cluster_on_written);
	}
	/* Hosts still see the go message: a watch delivers every change in order. */
	cluster_run_key(c, key, "down/go/%s", name);
	cluster_write_key(c, &(struct etcd_write){ .key = key }, cluster_on_written);
}

void cluster_go(struct cluster *c, const char *barrier, json_t *what, uint64_t in_ns)
{
	uint64_t at_ns = in_ns ? clock_now_ns() + in_ns : 0;
	char key[ETCD_KEY_MAX + 1];
	struct told *t;

	if (c->out || !barrier_name_is_good(barrier)) {
		json_decref(what);
		return;
	}
	t = cluster_tell(c, TELL_GO, barrier);
	if (t) {
		t->json = json_incref(what);
		t->at_ns = at_ns;
	}
	cluster_run_key(c, key, "down/go/%s", barrier);
	cluster_write_json(c, key,
			   json_pack("{s:o?, s:I, s:I}", "what", what, "at_ns", (json_int_t)at_ns, "in_ns",
				     (json_int_t)in_ns),
			   CLUSTER_NOTE_MAX, cluster_on_written);
}

/* Converts the leader's time at_ns to this host's clock. If the offset is unknown or at_ns implausible: now + in_ns. */
static uint64_t when(const struct cluster *c, json_int_t at_ns, json_int_t in_ns)
{
	uint64_t latest = clock_now_ns() + (uint64_t)in_ns;
	int64_t at;

	if (in_ns <= 0 || in_ns > (json_int_t)GO_IN_MAX_NS)
		return 0;
	if (c->error_ns == UINT64_MAX || at_ns < 0 || at_ns > (json_int_t)CLUSTER_CLOCK_MAX_NS)
		return latest;
	at = at_ns - c->offset_ns;
	if (at < 0)
		return latest;
	return (uint64_t)at < latest + c->error_ns ? (uint64_t)at : latest;
}

void cluster_on_go(struct cluster *c, const char *barrier, const struct etcd_entry *e)
{
	json_t *go = value_unpack(e->value, e->bytes, CLUSTER_NOTE_MAX, GO_MEMORY_MAX, NULL);
	struct told *t = json_is_object(go) && barrier_name_is_good(barrier) ? cluster_tell(c, TELL_GO, barrier) : NULL;
	json_t *what = json_object_get(go, "what");

	if (t) {
		t->json = json_is_null(what) ? NULL : json_incref(what);
		t->at_ns = when(c, json_integer_value(json_object_get(go, "at_ns")),
				json_integer_value(json_object_get(go, "in_ns")));
	} else {
		complain(c, 0, "its go message cannot be read");
	}
	json_decref(go);
}
