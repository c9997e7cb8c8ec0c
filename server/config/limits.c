/* Sizes and limits. See limits.h.
 *
 * A shard's receive depth is the number of messages all of its clients together may have in flight; it
 * bounds the receive completion queue too. Queue pairs are twice the clients or more, because those of the
 * clients that left rest in quarantine while new ones come.
 */
#include "server/config/limits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/param.h>

#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/rdma/rc.h"
#include "common/base/res.h"

/* Descriptors other than TLS connections: of the process, and of each shard (loop, channels, device, listeners). */
#define FDS_BASE 64
#define FDS_PER_SHARD 16
#define SPARES_MAX 4096
/* Sockets that wait for room in a shard: as many as it may have clients, so that all of them can come at once from one
 * address, and more for clients that come and go; fewer where descriptors are scarce, but some. */
#define WAITING_WANTED 4096u
#define WAITING_LEAST 64u
/* Queue pairs that may be in quarantine, at least: enough for 400 clients a second that come and go in a shard. */
#define QPS_RESTING 2048u
#define QPS_SPARE 64u

/* The kernel spreads connections over the shards' sockets by hash. Room for six standard deviations of that spread
 * keeps a shard from filling up before the server does. */
static uint32_t clients_of_shard(const struct server_config *c)
{
	double mean = (double)c->max_clients / (double)c->threads;
	double room = ceil(mean + 6 * sqrt(mean));

	if (c->threads == 1 || room > (double)c->max_clients)
		return (uint32_t)c->max_clients;
	return (uint32_t)room;
}

/* Describes a limit that is too low; of `dev`, unless that is NULL. */
static int too_low(char *err, size_t size, const struct server_config *c, const struct dev *dev,
		   const char *what, unsigned long long have, unsigned long long need, const char *advice)
{
	const char *which = dev && c->n_rails > 1 ? dev->name : "";

	snprintf(err, size, "%s%s%s is %llu, but --max-clients %llu needs %llu; %s", which, *which ? ": " : "",
		 what, have, (unsigned long long)c->max_clients, need, advice);
	return -ENOSPC;
}

/* Entries of a completion queue. */
static uint64_t cq_depth(const struct server_config *c, const struct dev *dev)
{
	uint64_t most = (uint64_t)dev->attr.max_cqe;

	return c->tuning.cq_depth ? MIN(c->tuning.cq_depth, most) : most;
}

static int check_device(const struct server_config *c, const struct dev *dev, char *err, size_t size)
{
	uint64_t qps = (uint64_t)c->shard_clients * c->threads;
	uint64_t max_qp = (uint64_t)dev->attr.max_qp, max_cqe = cq_depth(c, dev);
	uint64_t qps_per_cq = max_cqe / c->sq_depth;
	uint64_t cqs = c->threads * (1 + (qps_per_cq ? (c->shard_qps + qps_per_cq - 1) / qps_per_cq : 0));

	if (qps > max_qp)
		return too_low(err, size, c, dev, "the device's max_qp", max_qp, qps,
			       "lower --max-clients or use another device");
	if (c->recv_depth < c->shard_clients)
		return too_low(err, size, c, NULL, "the receive depth of a shard (device's max_srq_wr and max_cqe, "
			       "--srq-depth, --cq-depth)", c->recv_depth, c->shard_clients,
			       "raise --threads or lower --max-clients");
	if (cqs > (uint64_t)dev->attr.max_cq)
		return too_low(err, size, c, dev, "the device's max_cq", (unsigned)dev->attr.max_cq, cqs,
			       "lower --max-clients or --credits");
	if ((uint64_t)dev->attr.max_qp_wr < c->sq_depth)
		return too_low(err, size, c, dev, "the device's max_qp_wr", (unsigned)dev->attr.max_qp_wr,
			       c->sq_depth, "lower --credits");
	return 0;
}

/* What is registered with the devices if all clients come and each asks for a region: buffers and regions. */
static uint64_t pinned_bytes(const struct server_config *c)
{
	uint64_t bufs = (uint64_t)c->recv_depth + EP_BATCH + c->spare_bufs;
	uint64_t slabs = server_config_shards(c) * bufs * ((c->message_bytes + 63) & ~63ull);

	return slabs + c->n_rails * c->max_clients * ((c->region_bytes + 4095) & ~4095ull);
}

static int check_memory(const struct server_config *c, char *err, size_t size)
{
	static const char advice[] = "lower --max-clients, --region-size, --credits or --message-size";
	uint64_t limit = res_raise_memlock(), machine = res_machine_memory_bytes(), need = pinned_bytes(c);
	char raise[120];

	snprintf(raise, sizeof(raise), "raise it, or %s", advice);
	if (limit < need)
		return too_low(err, size, c, NULL, "the limit of locked memory (ulimit -l, bytes)", limit, need, raise);
	if (machine < need)
		return too_low(err, size, c, NULL, "this machine's memory (bytes)", machine, need, advice);
	return 0;
}

/* What the limit leaves is for sockets that wait. */
static int share_descriptors(struct server_config *c, char *err, size_t size)
{
	uint64_t shards = server_config_shards(c);
	uint64_t fds = FDS_BASE + CONTROL_SESSIONS_MAX + shards * (FDS_PER_SHARD + c->max_handshakes + WAITING_LEAST + 1);
	uint64_t have_fds = res_raise_nofile();

	if (have_fds < fds) {
		snprintf(err, size, "the limit of open files (ulimit -n) is %llu, but --threads %llu%s and "
			 "--max-handshakes %llu need %llu; raise it or lower --max-handshakes",
			 (unsigned long long)have_fds, (unsigned long long)c->threads,
			 c->n_rails > 1 ? " on each rail" : "",
			 (unsigned long long)c->max_handshakes, (unsigned long long)fds);
		return -ENOSPC;
	}
	c->shard_waiting = (uint32_t)MIN(MAX(c->shard_clients, WAITING_WANTED), WAITING_LEAST + (have_fds - fds) / shards);
	return 0;
}

/* Receives and queue pairs that a shard can have on each of the devices: the lowest limits of all. */
static void least(const struct server_config *c, const struct dev *devs, uint64_t *depth, uint64_t *qps)
{
	*depth = *qps = UINT64_MAX;
	for (uint32_t i = 0; i < c->n_rails; i++) {
		*depth = MIN(*depth, MIN((uint64_t)devs[i].attr.max_srq_wr, cq_depth(c, &devs[i])) - EP_BATCH);
		*qps = MIN(*qps, (uint64_t)devs[i].attr.max_qp / c->threads);
	}
}

int limits_derive(struct server_config *c, const struct dev *devs, char *err, size_t err_size)
{
	uint64_t max_depth, max_qps, wanted, qps;
	int ret = 0;

	least(c, devs, &max_depth, &max_qps);
	c->shard_clients = clients_of_shard(c);
	c->shard_conns = c->shard_clients + (uint32_t)c->max_handshakes;
	wanted = (uint64_t)c->shard_clients * c->credits;
	if (c->tuning.srq_depth)
		wanted = MIN(wanted, c->tuning.srq_depth);
	c->recv_depth = (uint32_t)MIN(wanted, max_depth);
	c->spare_bufs = MIN(c->recv_depth, SPARES_MAX) + 64;
	/* A WRITE goes in front of the answer to a push. */
	c->sq_depth = rc_sq_depth((uint32_t)c->credits * (c->windows ? 2 : 1));
	c->inline_bytes = (uint32_t)MIN(c->message_bytes, c->tuning.inline_bytes);
	c->path_mtu = tuning_mtu(&c->tuning);
	qps = MIN((uint64_t)c->shard_clients + MAX(c->shard_clients, QPS_RESTING) + QPS_SPARE, max_qps);
	c->shard_qps = (uint32_t)MIN(MIN(qps, WR_SLOT_MAX), (uint64_t)UINT32_MAX);
	if ((uint64_t)c->recv_depth + EP_BATCH + c->spare_bufs > EP_NO_BUF)
		c->recv_depth = EP_NO_BUF - EP_BATCH - c->spare_bufs;
	for (uint32_t i = 0; i < c->n_rails && !ret; i++)
		ret = check_device(c, &devs[i], err, err_size);
	if (!ret)
		ret = share_descriptors(c, err, err_size);
	return ret ? ret : check_memory(c, err, err_size);
}
