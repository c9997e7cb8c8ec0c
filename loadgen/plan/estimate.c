/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes what a number of clients needs. See estimate.h.
 *
 * The numbers follow from these facts:
 * - The programs size queues, pools and buffers by common/sizing/sizes.c; a running server reports its sizes.
 * - Each client has one queue pair, and each thread keeps a reserve of free ones. With --churn, queue pairs of clients
 *   that left stay in quarantine for ESTIMATE_REST_S.
 * - A TLS connection exists while its client connects, so descriptors and TLS memory peak while all clients connect.
 * - Over sockets a client keeps one descriptor at each end, and with TLS its connection. Message buffers take memory
 *   only once they are used, and a closed loop uses the same few again and again.
 * - A client holds a port of the RDMA connection manager and uses a TCP port, which then spends 60 s in TIME_WAIT. The
 *   two port spaces are separate but of the same size, so both run out at the same number.
 * - Resident memory is the sum of a process without clients, buffers and pools of queue pairs made at start, queues
 *   mapped by the driver (device_memory.c), and each client and TLS connection (measured: device_memory.h). Slabs are
 *   registered and therefore wholly resident.
 * - The report of a running server has its current figures, including pools and buffers; new clients add to them. */
#include "loadgen/plan/estimate.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "common/hist/hist.h"
#include "common/rdma/ep.h"
#include "common/wire/transport.h"
#include "loadgen/traffic/worker_stats.h"

#define PORT_REST_S 60.0		/* TIME_WAIT of TCP */
#define SERVER_FDS 9.0
#define GENERATOR_FDS 9.0
#define THREAD_FDS 6.0		/* a shard or worker: loop, channels, listeners */
/* Without RDMA: a generator's own sockets and files, a worker's loop, and a shard's loop with its TLS listener. */
#define SOCKET_GENERATOR_FDS 11.0
#define SOCKET_WORKER_FDS 2.0
#define SOCKET_SHARD_FDS 3.0
#define SERVER_THREADS 2.0	/* main, log */
#define GENERATOR_THREADS 2.0

#define X(name, title) #name,
const char *const estimate_resource_names[] = { ESTIMATE_RESOURCES(X) };
#undef X
#define X(name, title) title,
const char *const estimate_resource_titles[] = { ESTIMATE_RESOURCES(X) };
#undef X
const char *const estimate_side_names[] = { "server", "generator", "both" };

/* Need and limit of each resource at one end. */
struct end {
	bool has[ESTIMATE_N];	/* the end has a row for it */
	double needed[ESTIMATE_N], limit[ESTIMATE_N];
	struct memory_use use;	/* memory of queues and connections */
};

static void end_set(struct end *e, enum estimate_resource r, double needed, double limit)
{
	e->has[r] = true;
	e->needed[r] = needed;
	e->limit[r] = limit;
}

/* A device limit, perhaps reported by another host. An unknown or implausible one does not bound sizes. */
static uint64_t bound(double limit)
{
	return limit >= 0 && limit < UINT32_MAX ? (uint64_t)limit : UINT32_MAX;
}

static struct sizes_device device_of(const struct estimate_host *h)
{
	return (struct sizes_device){ bound(h->max_qp), bound(h->max_cqe), bound(h->max_srq_wr) };
}

/* Descriptors with which a process of `threads` threads samples itself, its machine and its ports, plus one for the
 * control session, over which the generator gets the server's samples. */
static double watch_fds(const struct estimate_host *h, double rails, double threads)
{
	return rails * h->port_fds + (h->sampler_fds > 0 ? h->sampler_fds + threads + 1 : 0);
}

static double pages(double bytes)
{
	return ceil(bytes / MEMORY_PAGE_BYTES) * MEMORY_PAGE_BYTES;
}

/* Maximum number of TLS connections open at once. */
static double connecting(const struct estimate_in *in)
{
	const struct estimate_generator *g = &in->generator;
	double n = (double)in->clients, share = ceil((double)g->connecting / (double)g->workers) * (double)g->workers;

	return (g->phased ? n : fmin(n, share)) * (double)g->rails;
}

/* Quarantined queue pairs of a rail: of clients that left, and of those that connect one at a time around the steps. */
static double resting(const struct estimate_generator *g)
{
	return g->resting_per_s * ESTIMATE_REST_S + 2 * (double)g->alone + g->left;
}

/* Memory of TLS connections of clients that are held. A message longer than a TLS record arrives in parts; until it is
 * complete, its client keeps one buffer for the message and one for a record. */
static double held_tls_bytes(const struct estimate_in *in, double each)
{
	double message = (double)in->generator.client.buffer_bytes;

	if (in->transport != TRANSPORT_TLS)
		return 0;
	if (message > MEMORY_TLS_RECORD_BYTES)
		each += message + MEMORY_TLS_RECORD_BYTES;
	return (double)in->clients * each;
}

/* TCP ports of one address used within PORT_REST_S: by clients, including connections made one at a time or again, and
 * by the control session. The connection manager needs fewer. */
static double tcp_ports(const struct estimate_in *in)
{
	const struct estimate_generator *g = &in->generator;

	return (double)in->clients + 2 * (double)g->alone + g->resting_per_s * PORT_REST_S + 1;
}

/* Completion queues for the sends of `qps` queue pairs of an endpoint, which creates them as they are needed. */
static double send_cqs(const struct sizes *s, double qps)
{
	return s->qps_per_cq ? fmax(1, ceil(fmin(qps, s->qps) / (double)s->qps_per_cq)) : 0;
}

/* Adds the queues of endpoints with `qps` queue pairs each, without these queue pairs. */
static void add_queues(struct memory_use *u, enum memory_driver driver, const struct sizes *s, double endpoints,
		       double qps)
{
	uint64_t each = s->qps_per_cq;
	double needed = send_cqs(s, qps), full = each ? fmin(needed, (double)(s->qps / each)) : 0;

	memory_add(u, endpoints, memory_of_srq(driver, s->recv_depth + EP_BATCH));
	memory_add(u, endpoints, memory_of_cq(driver, s->recv_depth + EP_BATCH));
	memory_add(u, endpoints * full, memory_of_cq(driver, (double)each * s->sq_depth));
	if (needed > full)
		memory_add(u, endpoints, memory_of_cq(driver, (double)(s->qps % each) * s->sq_depth));
}

static void end_set_queues(struct end *e, const struct sizes *z, const struct estimate_host *h, uint64_t srq_depth,
			   double receives)
{
	uint64_t most = bound(h->max_srq_wr);

	end_set(e, ESTIMATE_sq_entries, z->sq_depth, h->max_qp_wr);
	end_set(e, ESTIMATE_cq_entries, fmax(receives, z->sq_depth), (double)z->max_cqe);
	end_set(e, ESTIMATE_receives, receives, (double)(srq_depth ? MIN(srq_depth + EP_BATCH, most) : most));
}

/* `rss`: resident memory with all clients; the process uses `has` of it now, and the kernel uses `kernel_has` now. */
static void end_set_memory(struct end *e, const struct estimate_in *in, const struct estimate_host *h, double rss,
			   double has, double kernel_has)
{
	double kernel = MEMORY_PROCESS_KERNEL_BYTES + e->use.shared + e->use.kernel;
	double process = rss - e->use.shared - (has > 0 ? has : 0);

	end_set(e, ESTIMATE_rss_bytes, rss, INFINITY);
	end_set(e, ESTIMATE_kernel_bytes, kernel_has + kernel, INFINITY);
	end_set(e, ESTIMATE_memory_bytes, process + kernel,
		h->available_bytes - in->generator.memory_floor_ratio * h->memory_bytes);
}

static struct sizes shard_sizes(const struct estimate_in *in)
{
	const struct sizes_device d = device_of(&in->server_host);
	struct sizes z;

	sizes_of_shard(&in->server.size, &d, &z);
	return z;
}

void estimate_held(const struct estimate_in *in, struct held_row rows[HELD_N])
{
	const struct sizes z = shard_sizes(in);

	held_by_server(&in->server.size, &z, rows);
}

/* Memory that the server's shards take before the first client. */
static double server_shards(const struct estimate_in *in, const struct sizes *z)
{
	const struct sizes_server *s = &in->server.size;

	return (double)(s->rails * s->threads) * (z->qps * MEMORY_POOL_SLOT_BYTES + MEMORY_SHARD_BYTES);
}

/* Expected resident pages of the PSN registry, a bitmap in which each connection sets two random bits. */
static double psn_registry(double clients)
{
	return MEMORY_PSN_PAGES * (1 - exp(-2 * clients / MEMORY_PSN_PAGES)) * MEMORY_PAGE_BYTES;
}

static void server_settings(const struct estimate_in *in, struct end *e)
{
	const struct estimate_server *s = &in->server;
	double n = (double)in->clients,
		of_shard = sizes_share(connecting(in), (double)(s->size.rails * s->size.threads));
	struct held_row held[HELD_N];

	estimate_held(in, held);
	/* A server of our own is started for the planned number of clients. */
	end_set(e, ESTIMATE_max_clients, n, s->own ? INFINITY : (double)s->size.max_clients - s->clients);
	end_set(e, ESTIMATE_max_per_address, n, s->max_per_address ? (double)s->max_per_address : INFINITY);
	end_set(e, ESTIMATE_handshakes, of_shard, (double)s->size.max_handshakes);
	/* Beyond its memory a server of sockets only does not start; one that also serves RDMA only warns. */
	end_set(e, ESTIMATE_memory_at_start_bytes, (double)held_sum(held),
		s->size.transport_mask & 1u << TRANSPORT_RDMA ? INFINITY : in->server_host.memory_bytes);
}

static void server_needs(const struct estimate_in *in, struct end *e)
{
	const struct estimate_server *s = &in->server;
	const struct estimate_host *h = &in->server_host;
	const struct sizes z = shard_sizes(in);
	double n = (double)in->clients, rails = (double)s->size.rails, shards = rails * (double)s->size.threads;
	double of_regions = in->generator.region_bytes > 0 ? n * rails : 0,
		region = pages((double)s->size.region_bytes);
	double slab = shards * (double)z.slab_bytes, rss;
	double qps = rails * (n + resting(&in->generator)) + shards * z.qp_reserve + (s->own ? 0 : s->clients);
	double threads = s->own ? SERVER_THREADS + shards + (s->size.region_bytes > 0) : s->process_threads;
	double fds = s->own ? SERVER_FDS + THREAD_FDS * shards + watch_fds(h, rails, threads) : s->fds;
	double cqs = shards * (1 + send_cqs(&z, qps / shards));
	double more_cqs = s->own || !(cqs > s->cqs) ? 0 : cqs - s->cqs;	/* than a running server has */

	end_set(e, ESTIMATE_qps, qps, rails * h->max_qp);
	end_set(e, ESTIMATE_cqs, s->own ? cqs : s->cqs + more_cqs, rails * h->max_cq);
	end_set(e, ESTIMATE_mrs, (s->own ? shards : s->mrs) + of_regions, rails * h->max_mr);
	end_set(e, ESTIMATE_mws, of_regions, rails * h->max_mw);
	end_set_queues(e, &z, h, s->size.srq_depth, (double)z.clients * (double)in->generator.client.depth + EP_BATCH);
	end_set(e, ESTIMATE_fds, fds + connecting(in), h->nofile);
	end_set(e, ESTIMATE_threads, threads, s->own ? h->tasks : INFINITY);
	end_set(e, ESTIMATE_pinned_bytes, (s->own ? slab : s->pinned_bytes) + of_regions * region, h->memlock);
	if (s->own) {
		end_set(e, ESTIMATE_fds_at_start, (double)sizes_server_fds(&s->size), h->nofile);
		end_set(e, ESTIMATE_pinned_at_start_bytes, slab + rails * (double)s->size.max_clients * region,
			fmin(h->memlock, h->memory_bytes));
		add_queues(&e->use, h->driver, &z, shards, qps / shards);
	}
	memory_add(&e->use, more_cqs, memory_of_cq(h->driver, (double)z.qps_per_cq * z.sq_depth));
	memory_add(&e->use, s->own ? qps : fmax(qps - s->qps, 0),
		   memory_of_qp(h->driver, z.sq_depth, (double)s->inline_bytes));
	memory_add(&e->use, rails * n, memory_of_connection(h->driver));
	rss = e->use.shared + e->use.process + rails * n * MEMORY_SERVER_CLIENT_BYTES +
	      connecting(in) * MEMORY_TLS_BYTES + psn_registry(rails * n) + of_regions * region;
	rss += s->own ? MEMORY_SERVER_BYTES + server_shards(in, &z) + slab : s->rss_bytes;
	end_set_memory(e, in, h, rss, s->own ? 0 : s->rss_bytes, h->kernel_bytes);
}

static void server_needs_sockets(const struct estimate_in *in, struct end *e)
{
	const struct estimate_server *s = &in->server;
	const struct estimate_host *h = &in->server_host;
	const struct sizes z = shard_sizes(in);
	double n = (double)in->clients, shards = (double)(s->size.rails * s->size.threads);
	double threads = s->own ? SERVER_THREADS + shards : s->process_threads;
	double of_shard = SOCKET_SHARD_FDS + (in->transport == TRANSPORT_TCP);	/* and its listener */
	double fds = s->own ? SERVER_FDS + of_shard * shards + watch_fds(h, 0, threads) : s->fds;
	double rss = n * MEMORY_SERVER_CLIENT_BYTES + held_tls_bytes(in, MEMORY_TLS_HELD_BYTES) +
		     (in->transport == TRANSPORT_TLS ? 0 : connecting(in) * MEMORY_TLS_BYTES);

	end_set(e, ESTIMATE_fds, fds + n, h->nofile);
	end_set(e, ESTIMATE_threads, threads, s->own ? h->tasks : INFINITY);
	if (s->own)
		end_set(e, ESTIMATE_fds_at_start, (double)sizes_server_fds(&s->size), h->nofile);
	e->use.kernel += n * MEMORY_SOCKET_KERNEL_BYTES;
	rss += s->own ? MEMORY_SERVER_BYTES + server_shards(in, &z) : s->rss_bytes;
	end_set_memory(e, in, h, rss, s->own ? 0 : s->rss_bytes, h->kernel_bytes);
}

static void generator_needs(const struct estimate_in *in, struct end *e)
{
	const struct estimate_generator *g = &in->generator;
	const struct estimate_host *h = &in->generator_host;
	const struct sizes_device d = device_of(h);
	double n = (double)in->clients, rails = (double)g->rails, workers = (double)g->workers, ends = rails * workers;
	double arenas = (g->landing_bytes > 0 ? workers * (g->landing_shared ? 1 : (double)g->client.max_conns) : 0) *
			g->landing_bytes + workers * g->text_bytes;
	double qps, pinned, threads = GENERATOR_THREADS + workers;
	struct sizes z;

	sizes_of_client(&g->client, &d, &z);
	qps = rails * (n + resting(g)) + ends * z.qp_reserve;
	pinned = ends * (double)z.slab_bytes + arenas;
	end_set(e, ESTIMATE_qps, qps, rails * h->max_qp);
	end_set(e, ESTIMATE_cqs, ends * (1 + send_cqs(&z, qps / ends)), rails * h->max_cq);
	end_set(e, ESTIMATE_mrs, ends * (1 + (g->text_bytes > 0) + (g->landing_bytes > 0)), rails * h->max_mr);
	end_set_queues(e, &z, h, g->client.srq_depth, z.recv_depth + EP_BATCH);
	end_set(e, ESTIMATE_fds, GENERATOR_FDS + THREAD_FDS * ends + watch_fds(h, rails, threads) + connecting(in),
		h->nofile);
	end_set(e, ESTIMATE_fds_at_start,
		(double)sizes_generator_fds(in->clients, g->phased ? in->clients : g->connecting, false), h->nofile);
	end_set(e, ESTIMATE_ports, tcp_ports(in), h->ports - h->ports_resting);
	end_set(e, ESTIMATE_threads, threads, h->tasks);
	end_set(e, ESTIMATE_pinned_bytes, pinned, h->memlock);
	memory_add(&e->use, qps, memory_of_qp(h->driver, z.sq_depth, (double)g->inline_bytes));
	memory_add(&e->use, rails * n, memory_of_connection(h->driver));
	add_queues(&e->use, h->driver, &z, ends, qps / ends);
	e->use.kernel += rails * n * MEMORY_TIME_WAIT_BYTES;
	end_set_memory(e, in, h,
		       MEMORY_GENERATOR_BYTES + ends * MEMORY_WORKER_BYTES + workers * STEP_HISTS * HIST_BYTES +
		       e->use.shared + e->use.process + rails * n * MEMORY_CLIENT_BYTES +
		       ends * z.qps * MEMORY_POOL_SLOT_BYTES + connecting(in) * MEMORY_TLS_BYTES +
		       rails * psn_registry(n) + pinned, 0,
		       in->same_machine ? 0 : h->kernel_bytes);
}

static void generator_needs_sockets(const struct estimate_in *in, struct end *e)
{
	const struct estimate_generator *g = &in->generator;
	const struct estimate_host *h = &in->generator_host;
	double n = (double)in->clients, workers = (double)g->workers, threads = GENERATOR_THREADS + workers;

	end_set(e, ESTIMATE_fds, SOCKET_GENERATOR_FDS + SOCKET_WORKER_FDS * workers + watch_fds(h, 0, threads) + n,
		h->nofile);
	end_set(e, ESTIMATE_fds_at_start,
		(double)sizes_generator_fds(in->clients, g->phased ? in->clients : g->connecting, true), h->nofile);
	end_set(e, ESTIMATE_ports, tcp_ports(in), h->ports - h->ports_resting);
	end_set(e, ESTIMATE_threads, threads, h->tasks);
	e->use.kernel += n * (MEMORY_SOCKET_KERNEL_BYTES + MEMORY_TIME_WAIT_BYTES);
	end_set_memory(e, in, h,
		       MEMORY_SOCKET_GENERATOR_BYTES + workers * (MEMORY_WORKER_BYTES + STEP_HISTS * HIST_BYTES) +
		       n * MEMORY_SOCKET_CLIENT_BYTES + held_tls_bytes(in, MEMORY_TLS_CLIENT_HELD_BYTES) +
		       (in->transport == TRANSPORT_TLS ? 0 : connecting(in) * MEMORY_TLS_BYTES), 0,
		       in->same_machine ? 0 : h->kernel_bytes);
}

static void load_needs(const struct estimate_in *in, struct end ends[])
{
	double server_line = (double)in->server.size.rails * in->server_host.line_bits_per_s / 8;
	double generator_line = (double)in->generator.rails * in->generator_host.line_bits_per_s / 8;

	end_set(&ends[ESTIMATE_SERVER], ESTIMATE_cpus, in->load.server_cpus, in->server_host.cpus);
	end_set(&ends[ESTIMATE_GENERATOR], ESTIMATE_cpus, in->load.generator_cpus, in->generator_host.cpus);
	end_set(&ends[ESTIMATE_SERVER], ESTIMATE_line_bytes_per_s, in->load.bytes_per_s, server_line);
	end_set(&ends[ESTIMATE_GENERATOR], ESTIMATE_line_bytes_per_s, in->load.bytes_per_s, generator_line);
}

/* True if both ends take a resource of one device or machine. A server that runs already has its threads. */
static bool is_shared(const struct estimate_in *in, enum estimate_resource r)
{
	return in->same_machine && ((r >= ESTIMATE_qps && r <= ESTIMATE_mws) || r >= ESTIMATE_kernel_bytes ||
				    r == ESTIMATE_cpus || (r == ESTIMATE_threads && in->server.own));
}

/* If both ends share a device or machine, its limit applies to their sum. */
size_t estimate_rows(const struct estimate_in *in, struct estimate_row rows[ESTIMATE_ROWS_MAX])
{
	struct end ends[] = { [ESTIMATE_SERVER] = { .use = { 0 } }, [ESTIMATE_GENERATOR] = { .use = { 0 } } };
	const struct end *server = &ends[ESTIMATE_SERVER], *generator = &ends[ESTIMATE_GENERATOR];
	size_t n = 0;

	server_settings(in, &ends[ESTIMATE_SERVER]);
	if (in->transport == TRANSPORT_RDMA) {
		server_needs(in, &ends[ESTIMATE_SERVER]);
		generator_needs(in, &ends[ESTIMATE_GENERATOR]);
	} else {
		server_needs_sockets(in, &ends[ESTIMATE_SERVER]);
		generator_needs_sockets(in, &ends[ESTIMATE_GENERATOR]);
	}
	load_needs(in, ends);
	for (enum estimate_resource r = 0; r < ESTIMATE_N; r++) {
		bool of_machine = r >= ESTIMATE_kernel_bytes;
		bool shared = is_shared(in, r) && server->has[r] && generator->has[r];

		for (enum estimate_side side = ESTIMATE_SERVER; side <= ESTIMATE_GENERATOR; side++)
			if (ends[side].has[r] && !(shared && of_machine))
				rows[n++] = (struct estimate_row){ r, side, ends[side].needed[r],
								   shared ? INFINITY : ends[side].limit[r], NAN };
		if (shared)
			rows[n++] = (struct estimate_row){ r, ESTIMATE_BOTH, server->needed[r] + generator->needed[r],
							   server->limit[r], NAN };
	}
	return n;
}

bool estimate_fits(const struct estimate_row *r)
{
	return !(r->needed > r->limit);
}

static bool row_fits(estimate_fill_fn *fill, void *arg, uint64_t clients, size_t row)
{
	struct estimate_row rows[ESTIMATE_ROWS_MAX];
	struct estimate_in in;

	fill(arg, clients, &in);
	estimate_rows(&in, rows);
	return estimate_fits(&rows[row]);
}

static double reach_of(estimate_fill_fn *fill, void *arg, size_t row)
{
	uint64_t low = 0, high = ESTIMATE_CLIENTS_MAX + 1;	/* low fits, high does not */

	if (row_fits(fill, arg, ESTIMATE_CLIENTS_MAX, row))
		return INFINITY;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (row_fits(fill, arg, middle, row))
			low = middle;
		else
			high = middle;
	}
	return (double)low;
}

void estimate_reach(estimate_fill_fn *fill, void *arg, struct estimate_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rows[i].clients = isnan(rows[i].limit) || isnan(rows[i].needed) ? NAN :
				  isinf(rows[i].limit) ? INFINITY : reach_of(fill, arg, i);
}

static bool comes_before(const struct estimate_row *a, const struct estimate_row *b)
{
	if (a->clients != b->clients)
		return a->clients < b->clients;
	return a->needed / a->limit > b->needed / b->limit;
}

size_t estimate_first(const struct estimate_row *rows, size_t n)
{
	size_t first = n;

	for (size_t i = 0; i < n; i++) {
		if (isnan(rows[i].clients) || isinf(rows[i].limit))
			continue;
		if (first == n || comes_before(&rows[i], &rows[first]))
			first = i;
	}
	return first;
}
