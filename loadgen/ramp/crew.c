/* The workers as a group. See crew.h. */
#include "loadgen/ramp/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/hist/hist.h"
#include "common/rdma/dev.h"
#include "loadgen/traffic/workload.h"

#define READS 16		/* READs and atomics a connection may have outstanding, as far as both devices allow */

static struct worker_config worker_config_of(const struct loadgen_config *c)
{
	struct workload_needs needs = { 0 };
	struct worker_config wc = {
		.cfg = c,
		.n_workers = (uint32_t)c->threads,
		.n_rails = c->n_rails,
		.client = { .ca_file = c->ca_path, .cert_file = c->cert, .key_file = c->key,
			    .crl_file = c->crl, .verify = c->verify, .resume = c->tls_resume,
			    .post_list = (uint32_t)c->tuning.post_list,
			    .signal_every = (uint32_t)c->tuning.signal_every,
			    .cq_depth = (uint32_t)c->tuning.cq_depth, .srq_depth = (uint32_t)c->tuning.srq_depth,
			    .inline_bytes = c->tuning.inline_bytes, .path_mtu = tuning_mtu(&c->tuning),
			    .retry = c->tuning.retry, .message_auth = c->message_auth, .no_first_message = c->wl->silent, .poll = c->poll, .spin_ns = c->spin_ns,
			    .max_conns = (uint32_t)((c->clients + c->threads - 1) / c->threads),
			    .stage_timeout_ns = c->timeout_ns },
	};

	c->wl->needs(c, &needs);
	wc.client.message_bytes = wc.client.buffer_bytes = needs.message_bytes;
	wc.client.depth = needs.credits;
	wc.client.region = needs.region_bytes > 0;
	wc.client.rma_depth = needs.rma_depth;
	wc.client.reads = READS;
	return wc;
}

int crew_start(struct crew *c, const struct loadgen_config *cfg, const struct addr *server,
	       const char *const *verify_name, void (*on_progress)(void *arg), void *arg, char *err, size_t err_size)
{
	struct worker_config wc = worker_config_of(cfg);
	int ret = 0;

	wc.on_progress = on_progress;
	wc.arg = arg;
	for (uint32_t i = 0; i < cfg->n_rails; i++)
		wc.rails[i] = (struct worker_rail){ server[i], verify_name[i],
						    cfg->devices.n ? cfg->devices.name[i] : NULL };
	c->workers = calloc(wc.n_workers, sizeof(*c->workers));
	if (!c->workers) {
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	for (; c->n < wc.n_workers && !ret; c->n += !ret) {
		wc.index = c->n;
		ret = worker_new(&wc, &c->workers[c->n], err, err_size);
		if (ret)
			break;
		ret = worker_start(c->workers[c->n], err, err_size);
		if (ret)
			worker_free(c->workers[c->n]);
	}
	return ret;
}

void crew_quit(struct crew *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		worker_give(c->workers[i], ORDER_QUIT, NULL);
}

void crew_dismiss(struct crew *c)
{
	/* A worker that still waits for an order would never end. */
	crew_quit(c);
	for (uint32_t i = 0; i < c->n; i++)
		worker_free(c->workers[i]);
	free(c->workers);
	c->workers = NULL;
	c->n = 0;
}

json_t *crew_device(const struct crew *c)
{
	return dev_json(worker_dev(c->workers[0]));
}

static uint32_t share_of(uint32_t total, uint32_t n, uint32_t i)
{
	return total / n + (i < total % n);
}

void crew_order(struct crew *c, enum worker_order order, const struct worker_task *whole)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct worker_task task = *whole;

		task.clients = share_of(whole->clients, c->n, i);
		task.active = share_of(whole->active, c->n, i);
		task.active_of_all = whole->active;
		task.of_all = whole->clients;
		worker_give(c->workers[i], order, &task);
	}
}

bool crew_is_done(const struct crew *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (!worker_is_done(c->workers[i]) && !worker_failure(c->workers[i], NULL))
			return false;
	return true;
}

bool crew_has_measured(const struct crew *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (!counter_get(&worker_stats(c->workers[i])->measure_end_ns) && !worker_failure(c->workers[i], NULL))
			return false;
	return true;
}

/* Sums a counter over all workers, or over those whose device works. */
static uint64_t sum(const struct crew *c, size_t offset, bool broken_too)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (broken_too || !worker_failure(c->workers[i], NULL))
			total += counter_get((const counter *)((const char *)worker_stats(c->workers[i]) + offset));
	return total;
}

uint32_t crew_live(const struct crew *c)
{
	return (uint32_t)sum(c, offsetof(struct worker_stats, live), false);
}

uint32_t crew_away(const struct crew *c)
{
	return (uint32_t)sum(c, offsetof(struct worker_stats, away), false);
}

int crew_failure(const struct crew *c, const char **devices)
{
	int error = 0;

	for (uint32_t i = 0; i < c->n && !error; i++)
		error = worker_failure(c->workers[i], devices);
	return error;
}

uint64_t crew_sum(const struct crew *c, size_t offset)
{
	return sum(c, offset, true);
}

uint64_t crew_connects(const struct crew *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		for (int k = 0; k < HANDSHAKE_N; k++)
			n += hist_count(worker_stats(c->workers[i])->total[k]);
	return n;
}

void crew_response(const struct crew *c, struct hist *out)
{
	hist_reset(out);
	for (uint32_t i = 0; i < c->n; i++)
		hist_add(out, worker_stats(c->workers[i])->response);
}
