/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes and limits. See limits.h. The sizes themselves are computed in common/sizing/sizes.c. */
#include "server/config/limits.h"

#include <errno.h>
#include <stdio.h>
#include <sys/param.h>

#include "common/base/log.h"
#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/host/res.h"
#include "common/sizing/sizes.h"

/* Writes to `err` that a limit (of device `dev`, unless that is NULL) is too low. Returns -ENOSPC. */
static int too_low(char *err, size_t size, const struct server_config *c, const struct dev *dev,
		   const char *what, unsigned long long have, unsigned long long need, const char *advice)
{
	const char *which = dev && c->n_rails > 1 ? dev->name : "";

	snprintf(err, size, "%s%s%s is %llu, but --max-clients %llu needs %llu; %s", which, *which ? ": " : "",
		 what, have, (unsigned long long)c->max_clients, need, advice);
	return -ENOSPC;
}

static struct sizes_server server_wanted(const struct server_config *c)
{
	return (struct sizes_server){ .rails = c->n_rails, .threads = c->threads, .max_clients = c->max_clients,
				      .credits = c->credits, .message_bytes = c->message_bytes,
				      .region_bytes = c->region_bytes, .max_handshakes = c->max_handshakes,
				      .srq_depth = c->tuning.srq_depth, .cq_depth = c->tuning.cq_depth,
				      .transport_mask = c->transport_mask, .windows = c->windows,
				      .zerocopy = c->sock.tcp.zerocopy_bytes };
}

static int check_device(const struct server_config *c, const struct dev *dev, const struct sizes *s, char *err,
			size_t size)
{
	uint64_t qps = (uint64_t)c->shard_clients * c->threads, max_qp = (uint64_t)dev->attr.max_qp;
	uint64_t cqs = c->threads * s->cqs;

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

/* Registered memory must be available at start; the rest becomes resident only with use. If the server also serves
 * RDMA, not all clients need socket buffers, so a server that could run out of memory starts with a warning. */
static int check_memory(const struct server_config *c, const struct sizes_server *wanted, const struct sizes *s,
			char *err, size_t size)
{
	static const char memory[] = "the memory of this machine or its control group (bytes)";
	static const char advice[] = "lower --max-clients, --region-size, --credits or --message-size";
	uint64_t limit = res_raise_memlock(), machine = res_machine_memory_bytes(), pinned, all;
	struct held_row rows[HELD_N];
	char raise[120];

	held_by_server(wanted, s, rows);
	pinned = held_bytes(&rows[HELD_REGISTERED]) + held_bytes(&rows[HELD_REGIONS]);
	all = held_sum(rows);
	snprintf(raise, sizeof(raise), "raise it, or %s", advice);
	if (limit < pinned)
		return too_low(err, size, c, NULL, "the limit of locked memory (ulimit -l, bytes)", limit, pinned,
			       raise);
	if (machine < pinned)
		return too_low(err, size, c, NULL, memory, machine, pinned, advice);
	if (machine >= all)
		return 0;
	if (!server_config_serves(c, TRANSPORT_RDMA))
		return too_low(err, size, c, NULL, memory, machine, all, advice);
	log_warn("this machine or its control group has %llu bytes of memory, and peers could make the server use "
		 "%llu (docs/security.md, \"Memory that peers can take\"): %s", (unsigned long long)machine,
		 (unsigned long long)all, advice);
	return 0;
}

/* Descriptors of all clients over sockets, and of TCP connections that have not proved their session yet. */
static uint64_t socket_fds(const struct server_config *c)
{
	uint64_t clients = c->n_rails * c->max_clients, arriving = server_config_shards(c) * (c->max_handshakes + 2);
	bool tcp = server_config_serves(c, TRANSPORT_TCP);

	return (tcp || server_config_serves(c, TRANSPORT_TLS) ? clients : 0) + (tcp ? arriving : 0);
}

/* Divides the descriptors that the limit leaves: first to clients over sockets, then to sockets that wait. If the
 * server also serves RDMA, it starts with a warning even if there are too few for all clients over sockets. */
static int share_descriptors(struct server_config *c, const struct sizes_server *wanted, char *err, size_t size)
{
	uint64_t shards = server_config_shards(c), of_clients = socket_fds(c), have = res_raise_nofile();
	uint64_t own = sizes_server_fds(wanted), left;
	bool only_sockets = !server_config_serves(c, TRANSPORT_RDMA);
	uint64_t need = own + (only_sockets ? of_clients : 0);
	char clients[64] = "";

	if (only_sockets)
		snprintf(clients, sizeof(clients), " and --max-clients %llu", (unsigned long long)c->max_clients);
	if (have < need) {
		snprintf(err, size, "the limit of open files (ulimit -n) is %llu, but --threads %llu%s and "
			 "--max-handshakes %llu%s need %llu; raise it or lower --max-handshakes%s",
			 (unsigned long long)have, (unsigned long long)c->threads, c->n_rails > 1 ? " on each rail" :
			 "", (unsigned long long)c->max_handshakes, clients, (unsigned long long)need,
			 only_sockets ? " or --max-clients" : "");
		return -ENOSPC;
	}
	left = have - own;
	if (left < of_clients)
		log_warn("the limit of open files (ulimit -n) leaves %llu for clients over tcp and tls, but "
			 "--max-clients %llu can take %llu: raise the limit by %llu, lower --max-clients, or leave tcp "
			 "and tls out of --transports", (unsigned long long)left,
			 (unsigned long long)c->max_clients, (unsigned long long)of_clients,
			 (unsigned long long)(of_clients - left));
	c->shard_waiting = sizes_waiting(c->shard_clients, left - MIN(left, of_clients), shards);
	return 0;
}

/* The lowest of each limit among all devices. */
static struct sizes_device least(const struct server_config *c, const struct dev *devs)
{
	struct sizes_device all = { UINT64_MAX, UINT64_MAX, UINT64_MAX };

	for (uint32_t i = 0; i < c->n_rails && devs; i++) {
		struct sizes_device d = sizes_of_device(&devs[i]);

		all.max_qp = MIN(all.max_qp, d.max_qp);
		all.max_cqe = MIN(all.max_cqe, d.max_cqe);
		all.max_srq_wr = MIN(all.max_srq_wr, d.max_srq_wr);
	}
	return all;
}

int limits_derive(struct server_config *c, const struct dev *devs, char *err, size_t err_size)
{
	const struct sizes_server wanted = server_wanted(c);
	const struct sizes_device d = least(c, devs);
	struct sizes s;
	int ret = 0;

	sizes_of_shard(&wanted, &d, &s);
	c->shard_clients = s.clients;
	c->shard_conns = s.clients + (uint32_t)c->max_handshakes;
	c->recv_depth = s.recv_depth;
	c->spare_bufs = s.spare_bufs;
	c->sq_depth = s.sq_depth;
	c->shard_qps = s.qps;
	c->inline_bytes = (uint32_t)MIN(c->message_bytes, c->tuning.inline_bytes);
	c->path_mtu = tuning_mtu(&c->tuning);
	for (uint32_t i = 0; i < c->n_rails && !ret && devs; i++)
		ret = check_device(c, &devs[i], &s, err, err_size);
	if (!ret)
		ret = share_descriptors(c, &wanted, err, err_size);
	return ret ? ret : check_memory(c, &wanted, &s, err, err_size);
}
