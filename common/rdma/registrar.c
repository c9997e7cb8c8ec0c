/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that registers memory. See registrar.h. */
#include "common/rdma/registrar.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct registrar {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* a job is new or done, or the thread must end */
	struct registrar_jobs jobs;
	const struct registrar_user *serves;	/* user whose job is under way; NULL: none */
	bool stop;
};

/* Must be called with the lock held; releases it during the registration and returns with it held. */
static bool run_next(struct registrar *r)
{
	struct registrar_job *job = STAILQ_FIRST(&r->jobs);

	if (!job)
		return false;
	STAILQ_REMOVE_HEAD(&r->jobs, entry);
	r->serves = job->user;
	pthread_mutex_unlock(&r->lock);
	job->mr = ibv_reg_mr(job->pd, job->addr, job->bytes, job->access);
	job->err = job->mr ? 0 : errno;
	pthread_mutex_lock(&r->lock);
	r->serves = NULL;
	STAILQ_INSERT_TAIL(&job->user->done, job, entry);
	job->user->on_done(job->user->arg);
	pthread_cond_broadcast(&r->changed);
	return true;
}

bool registrar_run_next(struct registrar *r)
{
	bool ran;

	pthread_mutex_lock(&r->lock);
	ran = run_next(r);
	pthread_mutex_unlock(&r->lock);
	return ran;
}

static void *registrar_run(void *arg)
{
	struct registrar *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->stop)
		if (!run_next(r))
			pthread_cond_wait(&r->changed, &r->lock);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int registrar_new(struct registrar **out)
{
	struct registrar *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	STAILQ_INIT(&r->jobs);
	ret = pthread_create(&r->thread, NULL, registrar_run, r);
	if (ret) {
		free(r);
		return -ret;
	}
	pthread_setname_np(r->thread, "registrar");
	*out = r;
	return 0;
}

void registrar_free(struct registrar *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void registrar_user_init(struct registrar_user *u, struct registrar *r, void (*on_done)(void *arg), void *arg)
{
	*u = (struct registrar_user){ .registrar = r, .on_done = on_done, .arg = arg };
	STAILQ_INIT(&u->done);
}

void registrar_submit(struct registrar_job *job)
{
	struct registrar *r = job->user->registrar;

	pthread_mutex_lock(&r->lock);
	STAILQ_INSERT_TAIL(&r->jobs, job, entry);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

struct registrar_job *registrar_take(struct registrar_user *u)
{
	struct registrar_job *job;

	pthread_mutex_lock(&u->registrar->lock);
	job = STAILQ_FIRST(&u->done);
	if (job)
		STAILQ_REMOVE_HEAD(&u->done, entry);
	pthread_mutex_unlock(&u->registrar->lock);
	return job;
}

void registrar_cancel(struct registrar_user *u)
{
	struct registrar *r = u->registrar;
	struct registrar_jobs others = STAILQ_HEAD_INITIALIZER(others);
	struct registrar_job *job;

	pthread_mutex_lock(&r->lock);
	while ((job = STAILQ_FIRST(&r->jobs))) {
		STAILQ_REMOVE_HEAD(&r->jobs, entry);
		if (job->user != u)
			STAILQ_INSERT_TAIL(&others, job, entry);
	}
	STAILQ_CONCAT(&r->jobs, &others);
	while (r->serves == u)
		pthread_cond_wait(&r->changed, &r->lock);
	pthread_mutex_unlock(&r->lock);
}
