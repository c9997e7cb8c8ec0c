/* SPDX-License-Identifier: BSD-2-Clause */
/* See crew.h. */
#include "loadgen/ramp/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/log.h"
#include "common/hist/hist.h"
#include "common/port/port.h"
#include "common/rdma/dev.h"
#include "common/wire/psn.h"
#include "loadgen/config/deal.h"
#include "loadgen/traffic/workload.h"

#define READS 16		/* outstanding READs and atomics asked for per connection; devices may allow fewer */

void crew_client_config(const struct loadgen_config *c, struct client_config *out)
{
	uint64_t workers = c->threads * c->hosts;
	struct workload_needs needs = { 0 };

	c->wl->needs(c, &needs);
	*out = (struct client_config){
		.transport = (enum transport)c->transport, .connect = (enum connect_way)c->connect,
		.ca_file = c->ca_path, .cert_file = c->cert, .key_file = c->key, .crl_file = c->crl,
		.allow_redirect = c->allow_redirect, .verify = c->verify, .resume = c->tls_resume,
		.message_bytes = needs.message_bytes, .buffer_bytes = needs.message_bytes,
		.depth = needs.credits, .all_credits = true,
		.region = needs.region_bytes > 0, .region_bytes = (uint32_t)needs.region_bytes,
		.write_imm = needs.write_imm, .rma_depth = needs.rma_depth, .reads = READS,
		.relaxed_ordering = c->tuning.relaxed_ordering != TUNING_RELAXED_OFF,
		.post_list = (uint32_t)c->tuning.post_list, .signal_every = (uint32_t)c->tuning.signal_every,
		.cq_depth = (uint32_t)c->tuning.cq_depth, .srq_depth = (uint32_t)c->tuning.srq_depth,
		.inline_bytes = c->tuning.inline_bytes, .path_mtu = tuning_mtu(&c->tuning),
		.retry = c->tuning.retry, .fabric = c->tuning.fabric,
		.sock = { .tcp = c->sock.tcp, .pinned_max = needs.credits },
		.message_auth = c->message_auth, .no_first_message = c->wl->silent,
		.poll = c->poll, .spin_ns = c->spin_ns,
		.max_conns = (uint32_t)((c->clients + workers - 1) / workers),
		.stage_timeout_ns = c->timeout_ns,
	};
}

/* True if the server is on this machine: the route to a local address starts at that address (dev_source_addr). */
static bool is_here(const struct addr *server)
{
	struct addr source;

	return dev_source_addr(server, &source) == 0 && addr_same_host(server, &source);
}

static bool is_among(const struct dev *d, const struct dev *const *opened, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(opened[i]->name, d->name) == 0 && opened[i]->port_num == d->port_num)
			return true;
	return false;
}

/* Opens each port once: workers of one server use the same devices, and those of different servers may share some. */
static int open_ports(struct crew *c, uint32_t n_rails)
{
	const struct dev *opened[CREW_PORTS_MAX];
	int ret = 0;

	for (uint32_t i = 0; i < c->n_targets * n_rails && !ret; i++) {
		const struct dev *d = worker_dev(c->workers[i / n_rails], i % n_rails);
		const struct port_id id = { .device = d->name, .number = d->port_num, .addr = d->addr,
					    .software = dev_is_software(d) };

		/* Without RDMA there is no device. */
		if (!*d->name || is_among(d, opened, c->n_ports))
			continue;
		opened[c->n_ports] = d;
		ret = port_open("/sys", &id, &c->ports[c->n_ports]);
		c->n_ports += !ret;
	}
	return ret;
}

/* Maximum number of clients of a worker of this server. With --deal first, one server may get all clients. */
static uint32_t most_clients(const struct loadgen_config *cfg, uint32_t n_targets, uint32_t target)
{
	uint32_t n = deal_share((uint32_t)cfg->threads, n_targets, target) * (uint32_t)cfg->hosts, dealt[TARGETS_MAX],
		most;
	uint64_t room[TARGETS_MAX];

	for (uint32_t i = 0; i < n_targets; i++)
		room[i] = cfg->clients;
	deal_clients((uint32_t)cfg->clients, n_targets, (enum deal)cfg->deal, cfg->seed, room, dealt);
	most = cfg->deal == DEAL_FIRST ? (uint32_t)cfg->clients : dealt[target];
	return MAX((most + n - 1) / n, 1);
}

static int make_psns(struct crew *c, const struct loadgen_config *cfg)
{
	int ret = 0;

	for (uint32_t t = 0; t < c->n_targets && cfg->transport == TRANSPORT_RDMA; t++)
		for (uint32_t i = 0; i < cfg->n_rails && !ret; i++)
			ret = psn_registry_new(&c->psns[t][i]);
	return ret;
}

static void aim(struct worker_config *wc, const struct sut_place *at, struct psn_registry *const *psns)
{
	for (uint32_t i = 0; i < wc->n_rails; i++)
		wc->rails[i] = (struct worker_rail){ at->addrs[i], at->names[i],
						     wc->cfg->devices.n ? wc->cfg->devices.name[i] : NULL, psns[i] };
}

static int start_workers(struct crew *c, struct worker_config *wc, const struct sut_place *targets, char *err,
			 size_t err_size)
{
	int ret = make_psns(c, wc->cfg);

	if (ret)
		snprintf(err, err_size, "this machine is out of memory");
	for (; c->n < wc->cfg->threads && !ret; c->n += !ret) {
		wc->index = c->n * c->hosts + c->host;
		wc->client.max_conns = most_clients(wc->cfg, c->n_targets, c->n % c->n_targets);
		aim(wc, &targets[c->n % c->n_targets], c->psns[c->n % c->n_targets]);
		ret = worker_new(wc, &c->workers[c->n], err, err_size);
		if (ret)
			break;
		ret = worker_start(c->workers[c->n], err, err_size);
		if (ret)
			worker_free(c->workers[c->n]);
	}
	return ret;
}

int crew_start(struct crew *c, const struct loadgen_config *cfg, const struct sut_place *targets, uint32_t n_targets,
	       void (*on_progress)(void *arg), void *arg, char *err, size_t err_size)
{
	struct worker_config wc = { .cfg = cfg, .n_workers = (uint32_t)(cfg->threads * cfg->hosts),
				    .n_rails = cfg->n_rails, .on_progress = on_progress, .arg = arg };
	int ret;

	if (cfg->threads_asked)
		log_warn("--threads %llu is too few: %llu run, one for each of --targets",
			 (unsigned long long)cfg->threads_asked, (unsigned long long)cfg->threads);
	else if (cfg->threads_raised)
		log_warn("%llu worker threads run, one for each of --targets", (unsigned long long)cfg->threads);
	crew_client_config(cfg, &wc.client);
	c->n_targets = n_targets;
	c->host = cfg->rank;
	c->hosts = (uint32_t)cfg->hosts;
	c->workers = calloc(cfg->threads, sizeof(*c->workers));
	if (!c->workers) {
		snprintf(err, err_size, "this machine is out of memory");
		return -ENOMEM;
	}
	ret = start_workers(c, &wc, targets, err, err_size);
	for (uint32_t t = 0; t < n_targets; t++)
		for (uint32_t i = 0; i < cfg->n_rails; i++)
			c->loopback |= is_here(&targets[t].addrs[i]);
	if (!ret && open_ports(c, cfg->n_rails)) {
		snprintf(err, err_size, "this machine is out of memory");
		ret = -ENOMEM;
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
	/* Without this order, a worker's thread would never end. */
	crew_quit(c);
	for (uint32_t i = 0; i < c->n; i++)
		worker_free(c->workers[i]);
	free(c->workers);
	c->workers = NULL;
	c->n = 0;
	for (uint32_t i = 0; i < TARGETS_MAX * RAILS_MAX; i++) {
		psn_registry_free(c->psns[i / RAILS_MAX][i % RAILS_MAX]);
		c->psns[i / RAILS_MAX][i % RAILS_MAX] = NULL;
	}
	for (uint32_t i = 0; i < c->n_ports; i++)
		port_close(c->ports[i]);
	c->n_ports = 0;
}

json_t *crew_network(const struct crew *c)
{
	return port_read_all(c->ports, c->n_ports);
}

json_t *crew_device(const struct crew *c)
{
	return dev_json(worker_dev(c->workers[0], 0));
}

/* Worker i's part of its server's clients; parts differ by one client at most. The server's workers are numbered across
 * all hosts: first the first worker of each host, then the second of each, and so on. Each server begins with another
 * host, so that no host gets the larger parts of all servers. */
static uint32_t share_of(const struct crew *c, uint32_t i, const uint32_t *totals)
{
	uint32_t target = i % c->n_targets, n = deal_share(c->n, c->n_targets, target), at = i / c->n_targets;

	return deal_share(totals[target], n * c->hosts, at * c->hosts + (c->host + target) % c->hosts);
}

/* The clients of earlier servers, and those of the same server's workers that have a smaller number than worker i. */
static uint32_t before_of(const struct crew *c, uint32_t i, const uint32_t *totals)
{
	uint32_t target = i % c->n_targets, n = deal_share(c->n, c->n_targets, target), at = i / c->n_targets, sum = 0;

	for (uint32_t t = 0; t < target; t++)
		sum += totals[t];
	for (uint32_t k = 0; k < at * c->hosts + (c->host + target) % c->hosts; k++)
		sum += deal_share(totals[target], n * c->hosts, k);
	return sum;
}

void crew_share(const struct crew *c, const uint32_t *of_target, uint32_t *share)
{
	memset(share, 0, c->n_targets * sizeof(*share));
	for (uint32_t i = 0; i < c->n; i++)
		share[i % c->n_targets] += share_of(c, i, of_target);
}

bool crew_has_room(const struct crew *c, const uint32_t *of_target)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (share_of(c, i, of_target) > worker_clients_max(c->workers[i]))
			return false;
	return true;
}

void crew_order(struct crew *c, enum worker_order order, const struct worker_task *whole, const uint32_t *of_target)
{
	const uint32_t all[TARGETS_MAX] = { whole->clients };
	const uint32_t *clients = of_target ? of_target : all;
	uint32_t active[TARGETS_MAX];

	deal_part(whole->active, c->n_targets, clients, active);
	for (uint32_t i = 0; i < c->n; i++) {
		struct worker_task task = *whole;

		task.clients = share_of(c, i, clients);
		task.active = share_of(c, i, active);
		task.active_before = before_of(c, i, active);
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

uint64_t crew_iterations(const struct crew *c)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < c->n; i++)
		if (!worker_failure(c->workers[i], NULL))
			least = MIN(least, counter_acquire(&worker_stats(c->workers[i])->iterations));
	return least;
}

static uint64_t value_at(const struct worker *w, size_t offset)
{
	return counter_get((const counter *)((const char *)worker_stats(w) + offset));
}

/* Sums a counter over all workers, or only over those whose device works. */
static uint64_t sum(const struct crew *c, size_t offset, bool broken_too)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (broken_too || !worker_failure(c->workers[i], NULL))
			total += value_at(c->workers[i], offset);
	return total;
}

static uint32_t sum_of_target(const struct crew *c, uint32_t target, size_t offset)
{
	uint64_t total = 0;

	for (uint32_t i = target; i < c->n; i += c->n_targets)
		if (!worker_failure(c->workers[i], NULL))
			total += value_at(c->workers[i], offset);
	return (uint32_t)total;
}

uint32_t crew_live_of(const struct crew *c, uint32_t target)
{
	return sum_of_target(c, target, offsetof(struct worker_stats, live));
}

uint32_t crew_away_of(const struct crew *c, uint32_t target)
{
	return sum_of_target(c, target, offsetof(struct worker_stats, away));
}

bool crew_has_unproved(const struct crew *c, uint32_t *target)
{
	for (uint32_t i = 0; i < c->n; i++) {
		*target = i % c->n_targets;
		if (counter_get(&worker_stats(c->workers[i])->unproved))
			return true;
	}
	return false;
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
			n += hist_count(worker_stats(c->workers[i])->hists.total[k]);
	return n;
}

void crew_response(const struct crew *c, struct hist *out)
{
	hist_reset(out);
	for (uint32_t i = 0; i < c->n; i++)
		hist_add(out, worker_stats(c->workers[i])->hists.response);
}
