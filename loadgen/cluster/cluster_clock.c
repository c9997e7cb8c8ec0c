/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures the offset of each host's clock from the leader's by round trips over etcd, one host at a time. */
#include "loadgen/cluster/cluster_core.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "loadgen/cluster/value.h"

#define CLOCK_ROUNDS	8
#define CLOCK_ROUND_S	10.0		/* a host without an answer asks again after this time */
#define CLOCK_TURN_S	0.5		/* longest pause between two requests of the host whose turn it is */

/* Answers the host whose turn it is. One host at a time, because concurrent round trips would delay each other. */
static void answer_turn(struct cluster *c)
{
	struct question *q = &c->questions[c->turn];
	char key[ETCD_KEY_MAX + 1];

	if (!q->asked_ns)
		return;
	cluster_run_key(c, key, "to/%u.clock", c->turn);
	cluster_write_json(c, key, json_pack("{s:I, s:I, s:I}", "n", (json_int_t)q->n, "t2", (json_int_t)q->asked_ns,
					     "t3",
				     (json_int_t)clock_now_ns()), SAID_TEXT_MAX, cluster_on_written);
	q->asked_ns = 0;
	c->turn_rounds++;
	ev_timer_again(c->loop, &c->turn_ends);
}

static void next_turn(struct cluster *c)
{
	uint32_t hosts = c->host_count, from = c->turn;

	ev_timer_stop(c->loop, &c->turn_ends);
	c->turn = 0;
	c->turn_rounds = 0;
	for (uint32_t i = 1; i <= hosts && !c->turn; i++)
		if (c->questions[(from + i) % hosts].asked_ns)
			c->turn = (from + i) % hosts;
	if (c->turn)
		answer_turn(c);
}

static void on_turn_ends(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	next_turn(w->data);
}

void cluster_on_question(struct cluster *c, uint32_t rank, const struct etcd_entry *e)
{
	uint64_t now = clock_now_ns();
	json_t *question = value_unpack(e->value, e->bytes, SAID_TEXT_MAX, SAID_MEMORY_MAX, NULL);

	if (!cluster_is_absent(c, rank) && json_is_integer(json_object_get(question, "n"))) {
		c->questions[rank] = (struct question){ .asked_ns = now,
							.n = json_integer_value(json_object_get(question, "n")) };
		if (c->turn == rank && c->turn_rounds < CLOCK_ROUNDS)
			answer_turn(c);
		else if (!c->turn || c->turn == rank)
			next_turn(c);
		if (c->turn && c->turn_rounds >= CLOCK_ROUNDS)
			next_turn(c);
	}
	json_decref(question);
}

static void ask_clock(struct cluster *c)
{
	char key[ETCD_KEY_MAX + 1];

	c->clock_n = (int64_t)clock_now_ns();
	cluster_run_key(c, key, "up/clock/%u", c->rank);
	cluster_write_json(c, key, json_pack("{s:I}", "n", (json_int_t)c->clock_n), SAID_TEXT_MAX, cluster_on_written);
	ev_timer_again(c->loop, &c->clock_round);
}

static void on_clock_round(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	ask_clock(w->data);
}

static void on_clock_answer(void *arg, const struct etcd_entry *e)
{
	struct cluster *c = arg;
	json_t *answer = value_unpack(e->value, e->bytes, SAID_TEXT_MAX, SAID_MEMORY_MAX, NULL);
	int64_t t4 = (int64_t)clock_now_ns(), t1 = c->clock_n, t2 = json_integer_value(json_object_get(answer, "t2")),
		t3 = json_integer_value(json_object_get(answer, "t3")), trip;
	bool ours = c->clock_rounds < CLOCK_ROUNDS && t1 && json_integer_value(json_object_get(answer, "n")) == t1;

	json_decref(answer);
	if (!ours || t2 < 0 || t3 < t2 || t3 > CLUSTER_CLOCK_MAX_NS || t3 - t2 > t4 - t1)
		return;
	trip = (t4 - t1) - (t3 - t2);
	if ((uint64_t)trip / 2 < c->error_ns) {
		c->error_ns = (uint64_t)trip / 2;
		c->offset_ns = t2 - t1 - (t4 - t3) >= 0 ? ((t2 - t1) - (t4 - t3)) / 2 : -((t1 - t2 + t4 - t3) / 2);
	}
	if (++c->clock_rounds < CLOCK_ROUNDS) {
		ask_clock(c);
		return;
	}
	ev_timer_stop(c->loop, &c->clock_round);
	cluster_arrive(c, c->clock_barrier, NULL);
}

void cluster_measure_clock(struct cluster *c, const char *barrier)
{
	static const struct etcd_watch_events own_events = { .on_entry = on_clock_answer };
	char prefix[ETCD_KEY_MAX + 1];

	if (c->out)
		return;
	if (cluster_is_leader(c)) {
		cluster_arrive(c, barrier, NULL);
		return;
	}
	snprintf(c->clock_barrier, sizeof(c->clock_barrier), "%s", barrier);
	if (!c->watches_answers) {
		c->watches_answers = true;
		cluster_run_key(c, prefix, "to/%u.", c->rank);
		cluster_watch(c, prefix, &own_events);
	}
	c->clock_rounds = 0;
	c->error_ns = UINT64_MAX;
	ask_clock(c);
}

void cluster_clock_init(struct cluster *c)
{
	c->error_ns = UINT64_MAX;
	ev_timer_init(&c->clock_round, on_clock_round, 0., CLOCK_ROUND_S);
	ev_timer_init(&c->turn_ends, on_turn_ends, 0., CLOCK_TURN_S);
	c->clock_round.data = c->turn_ends.data = c;
}

void cluster_clock_stop(struct cluster *c)
{
	ev_timer_stop(c->loop, &c->clock_round);
	ev_timer_stop(c->loop, &c->turn_ends);
}

int64_t cluster_clock_offset_ns(const struct cluster *c)
{
	return c->offset_ns;
}

uint64_t cluster_clock_error_ns(const struct cluster *c)
{
	return c->error_ns;
}
