/* SPDX-License-Identifier: BSD-2-Clause */
/* See alone.h. */
#include "loadgen/ramp/alone.h"

#include "loadgen/measurement/connect_floor.h"

static void connect_one(struct alone *a, const struct loadgen_config *cfg, struct crew *crew)
{
	struct worker_task task = { .clients = 1, .bytes = cfg->sizes.v[0], .upto = current_last_stage(cfg),
				    .alone = true };

	a->left--;
	a->leaving = false;
	crew_order(crew, ORDER_CONNECT, &task, NULL);
}

int alone_begin(struct alone *a, const struct loadgen_config *cfg, struct crew *crew)
{
	int ret;

	alone_clear(a);
	ret = connect_floor_new(&a->floor);
	if (ret)
		return ret;
	a->left = cfg->floor;
	connect_one(a, cfg, crew);
	return 0;
}

bool alone_advance(struct alone *a, const struct loadgen_config *cfg, struct crew *crew)
{
	if (!crew_is_done(crew))
		return false;
	if (!a->leaving) {
		/* The first worker has the only client. */
		if (!connect_floor_add(a->floor, worker_stats(crew->workers[0])))
			a->left = 0;
		a->leaving = true;
		crew_order(crew, ORDER_DISCONNECT, &(struct worker_task){ .clients = 1 }, NULL);
		return false;
	}
	if (a->left)
		connect_one(a, cfg, crew);
	else
		return true;
	return false;
}

void alone_cut(struct alone *a, struct crew *crew)
{
	a->left = 0;
	if (!a->leaving)
		crew_order(crew, ORDER_ABANDON, &(struct worker_task){ .clients = 1 }, NULL);
}

void alone_clear(struct alone *a)
{
	connect_floor_free(a->floor);
	*a = (struct alone){ 0 };
}
