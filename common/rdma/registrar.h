/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that registers memory, because ibv_reg_mr pins every page and takes a second for a few GiB: no loop of a
 * server waits for that. One for all shards; jobs are done first in, first out.
 *
 * A user (a region pool) submits jobs from its own thread, is told by on_done, and takes what is done. Jobs are
 * embedded in what they are for; between registrar_submit and registrar_take they belong to the registrar.
 */
#ifndef RAMPART_COMMON_REGISTRAR_H
#define RAMPART_COMMON_REGISTRAR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

struct registrar;

struct registrar_job {
	/* the user's to set */
	struct registrar_user *user;
	struct ibv_pd *pd;
	void *addr;
	size_t bytes;
	int access;			/* IBV_ACCESS_* */
	/* the outcome */
	struct ibv_mr *mr;		/* the user's to deregister; NULL if it failed */
	int err;			/* positive errno, as ibv_reg_mr leaves it; 0 if it did not fail */
	STAILQ_ENTRY(registrar_job) entry;
};
STAILQ_HEAD(registrar_jobs, registrar_job);

struct registrar_user {
	struct registrar *registrar;
	/* A job is done. Called on the registrar's thread with its lock held: only wakes the user (ev_async_send). */
	void (*on_done)(void *arg);
	void *arg;
	struct registrar_jobs done;	/* behind the registrar's lock */
};

/* Starts the thread. 0 or -errno (-ENOMEM, -EAGAIN: the limit of threads). */
int registrar_new(struct registrar **out) __attribute__((warn_unused_result));
/* No user may have jobs. Ends the thread. NULL-safe. */
void registrar_free(struct registrar *r);

void registrar_user_init(struct registrar_user *u, struct registrar *r, void (*on_done)(void *arg), void *arg);

/* The following are called on the user's thread. */
void registrar_submit(struct registrar_job *job);
/* A job that is done, or NULL. */
struct registrar_job *registrar_take(struct registrar_user *u);
/* Forgets the jobs that were not begun, and waits for the one that is under way. What was done can still be taken. */
void registrar_cancel(struct registrar_user *u);

/* Does the next job on the calling thread, which is the registrar's own, or a test's. False if there is none. */
bool registrar_run_next(struct registrar *r);

#endif
