/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that registers memory, so that no server loop waits for ibv_reg_mr, which pins every page and takes a second
 * for a few GiB. One registrar serves all shards; jobs are done first in, first out.
 *
 * A user (a region pool) submits jobs from its own thread, is notified by on_done, and takes the finished jobs. A job
 * is embedded in the object it is for; the registrar owns it between registrar_submit and registrar_take.
 */
#ifndef RAMPART_COMMON_REGISTRAR_H
#define RAMPART_COMMON_REGISTRAR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

struct registrar;

struct registrar_job {
	/* set by the user */
	struct registrar_user *user;
	struct ibv_pd *pd;
	void *addr;
	size_t bytes;
	int access;			/* IBV_ACCESS_* */
	/* set by the registrar */
	struct ibv_mr *mr;		/* the user deregisters it; NULL on failure */
	int err;			/* positive errno, as ibv_reg_mr leaves it; 0 on success */
	STAILQ_ENTRY(registrar_job) entry;
};
STAILQ_HEAD(registrar_jobs, registrar_job);

struct registrar_user {
	struct registrar *registrar;
	/* Called on the registrar's thread, with its lock held, for each finished job; may only wake the user. */
	void (*on_done)(void *arg);
	void *arg;
	struct registrar_jobs done;	/* protected by the registrar's lock */
};

/* Starts the thread. 0 or -errno (-ENOMEM, -EAGAIN: the limit of threads). */
int registrar_new(struct registrar **out) __attribute__((warn_unused_result));
/* Ends the thread. No user may have jobs left. NULL-safe. */
void registrar_free(struct registrar *r);

void registrar_user_init(struct registrar_user *u, struct registrar *r, void (*on_done)(void *arg), void *arg);

/* The following are called on the user's thread. */
void registrar_submit(struct registrar_job *job);
/* Takes a finished job, or NULL. */
struct registrar_job *registrar_take(struct registrar_user *u);
/* Drops the user's jobs that have not begun, and waits for the one under way. Finished jobs can still be taken. */
void registrar_cancel(struct registrar_user *u);

/* For tests: does the next job on the calling thread instead of the registrar's. False if there is none. */
bool registrar_run_next(struct registrar *r);

#endif
