/* SPDX-License-Identifier: BSD-2-Clause */
/* See mailbox.h. */
#include "loadgen/worker/mailbox.h"

#include <string.h>

void mailbox_init(struct mailbox *m)
{
	m->n = 0;
	m->closed = false;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->room, NULL);
}

void mailbox_release(struct mailbox *m)
{
	pthread_cond_destroy(&m->room);
	pthread_mutex_destroy(&m->lock);
}

bool mailbox_put(struct mailbox *m, const struct order *o)
{
	bool put;

	pthread_mutex_lock(&m->lock);
	while (m->n == MAILBOX_MAX && !m->closed)
		pthread_cond_wait(&m->room, &m->lock);
	put = !m->closed;
	if (put)
		m->orders[m->n++] = *o;
	pthread_mutex_unlock(&m->lock);
	return put;
}

uint32_t mailbox_take(struct mailbox *m, struct order out[MAILBOX_MAX])
{
	uint32_t n;

	pthread_mutex_lock(&m->lock);
	n = m->n;
	memcpy(out, m->orders, n * sizeof(*out));
	m->n = 0;
	pthread_cond_signal(&m->room);
	pthread_mutex_unlock(&m->lock);
	return n;
}

void mailbox_close(struct mailbox *m)
{
	pthread_mutex_lock(&m->lock);
	m->closed = true;
	pthread_cond_broadcast(&m->room);
	pthread_mutex_unlock(&m->lock);
}
