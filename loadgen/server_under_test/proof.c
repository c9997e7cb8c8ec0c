/* SPDX-License-Identifier: BSD-2-Clause */
/* See proof.h. */
#include "loadgen/server_under_test/proof.h"

#include <errno.h>
#include <stdio.h>

static void refute(const struct proof_one *o, const struct fail *f, const char *text)
{
	struct proof *p = o->all;
	const struct sut *sut = o->sut;
	char code[96], where[ADDR_TEXT_MAX];

	if (!p->why[0])
		snprintf(p->why, sizeof(p->why),
			 "the server %.64s at %s is not proved by this host's --ca: %s: %s%s%.96s (%.160s)",
			 sut->names[o->rail], addr_text(&sut->addrs[o->rail], where), stage_names[f->stage],
			 fail_code_text(f, code, sizeof(code)), text[0] ? ": " : "", text, fail_advice(f));
}

/* A complete handshake proves the server even if it then is too busy to answer. A timer reports the end, because a
 * session cannot be freed in its own callback. */
static void on_answer(void *arg, json_t *report, const struct fail *fail, const char *text)
{
	struct proof_one *o = arg;
	struct proof *p = o->all;

	if (!report && fail->stage <= STAGE_TLS_HANDSHAKE)
		refute(o, fail, text);
	p->left--;
	if ((p->why[0] || p->left == 0) && !ev_is_active(&p->end))
		ev_timer_start(p->loop, &p->end);
}

static void on_end(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct proof *p = w->data;

	(void)loop;
	(void)revents;
	proof_clear(p);
	p->on_end(p->arg, p->why[0] ? p->why : NULL);
}

static int prove(struct proof_one *o, char *err, size_t err_size)
{
	struct control_config c = sut_control_config(o->sut, o->rail);
	int ret = control_new(&c, o->all->loop, on_answer, o, &o->control, err, err_size);

	/* -EBUSY cannot happen: a new session has no request in flight. */
	return ret || control_request(o->control, CONTROL_INFO) ? ret : -EBUSY;
}

int proof_start(struct proof *p, const struct suts *suts, struct ev_loop *loop, proof_on_end_fn *on_proved, void *arg,
		char *err, size_t err_size)
{
	int ret = 0;

	*p = (struct proof){ .loop = loop, .on_end = on_proved, .arg = arg };
	ev_timer_init(&p->end, on_end, 0., 0.);
	p->end.data = p;
	for (uint32_t i = 0; i < suts->n; i++)
		for (uint32_t rail = 0; rail < suts->one[i].sut.cfg->n_rails; rail++)
			p->one[p->n++] = (struct proof_one){ p, &suts->one[i].sut, rail, NULL };
	p->left = p->n;
	for (uint32_t i = 0; i < p->n && !ret; i++)
		ret = prove(&p->one[i], err, err_size);
	return ret;
}

void proof_clear(struct proof *p)
{
	if (!p->loop)
		return;
	ev_timer_stop(p->loop, &p->end);
	for (uint32_t i = 0; i < p->n; i++) {
		control_free(p->one[i].control);
		p->one[i].control = NULL;
	}
}
