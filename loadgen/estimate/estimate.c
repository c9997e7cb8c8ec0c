/* SPDX-License-Identifier: BSD-2-Clause */
/* What a number of clients needs. See estimate.h.
 *
 * What the numbers rest on:
 * - Sizes of queues, pools and buffers are those that the programs make (common/sizes/sizes.c); a server that runs says its own.
 * - Queue pairs that exist while all clients are held: one a client, and the reserve of free ones of each thread. With
 *   --churn those of clients that left rest for REST_S before they are used again.
 * - A TLS connection lives while its client connects: descriptors and memory of TLS have their peak in the storm.
 * - A client holds a port of the RDMA connection manager and uses one of TCP's, which rests for 60 s afterwards. Each has
 *   a space of its own, of the same size, so both end at the same number.
 * - Resident memory: what a process has without clients, the tables and buffers made at start, queues that the driver maps
 *   (memory.c), and what each client and each TLS connection takes (measured: memory.h); the slabs are registered, and so
 *   wholly resident.
 * - Of a server that runs, its report says what it has now, tables and buffers included; clients come on top.
 */
#include "loadgen/estimate/estimate.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "common/hist/hist.h"
#include "common/rdma/ep.h"
#include "common/wire/transport.h"
#include "loadgen/traffic/worker_stats.h"

#define REST_S 6.0
#define PORT_REST_S 60.0		/* TIME_WAIT of TCP */
#define SHARD_HISTS 6.0		/* stages of server/tables/stats.h */
/* A step's (loadgen/step/step.c), those of clients that connect alone (floor.c), and of intervals (loadgen/ramp/current.c). */
#define STEP_HISTS (7.0 + WORKLOAD_KINDS_MAX + STAGE_TIMED + HANDSHAKE_N * (STAGE_TIMED + 1))
#define ALONE_HISTS (2.0 + STAGE_TIMED)
#define INTERVAL_HISTS 3.0
#define SERVER_FDS 9.0
#define GENERATOR_FDS 9.0
#define GENERATOR_FDS_SPARE 128.0	/* loadgen/preflight.c */
#define THREAD_FDS 6.0		/* of a shard or worker: loop, channels, listeners */
#define SERVER_THREADS 2.0	/* main, log */
#define GENERATOR_THREADS 2.0

#define X(name, title) #name,
const char *const estimate_resource_names[] = { ESTIMATE_RESOURCES(X) };
#undef X
#define X(name, title) title,
const char *const estimate_resource_titles[] = { ESTIMATE_RESOURCES(X) };
#undef X
const char *const estimate_side_names[] = { "server", "generator", "both" };

/* What one end needs. NAN throughout where it does not apply. */
struct end {
	double qps, cqs, mrs, mws, sq_entries, cq_entries, receives, fds, threads, pinned_bytes, rss_bytes;
	double fds_at_start, pinned_at_start_bytes;	/* checked by the programs */
	struct memory_use use;	/* of queues and connections */
};

/* A limit of a device, which another host may have told: one that is not known, or makes no sense, does not bound sizes. */
static uint64_t bound(double limit)
{
	return limit >= 0 && limit < UINT32_MAX ? (uint64_t)limit : UINT32_MAX;
}

static struct sizes_device device_of(const struct estimate_host *h)
{
	return (struct sizes_device){ bound(h->max_qp), bound(h->max_cqe), bound(h->max_srq_wr) };
}

/* Descriptors with which a process of so many threads watches itself, its machine and its ports; samples of the server
 * take a control session at each end. */
static double watch_fds(const struct estimate_host *h, double rails, double threads)
{
	return rails * h->port_fds + (h->sampler_fds > 0 ? h->sampler_fds + threads + 1 : 0);
}

static double pages(double bytes)
{
	return ceil(bytes / MEMORY_PAGE_BYTES) * MEMORY_PAGE_BYTES;
}

/* TLS connections that are open at once. */
static double connecting(const struct estimate_in *in)
{
	const struct estimate_generator *g = &in->generator;
	double n = (double)in->clients, share = ceil((double)g->connecting / (double)g->workers) * (double)g->workers;

	return (g->phased ? n : fmin(n, share)) * (double)g->rails;
}

/* Queue pairs of a rail that rest, of clients that left: before and after the step those that connected alone. */
static double resting(const struct estimate_generator *g)
{
	return g->resting_per_s * REST_S + 2 * (double)g->alone;
}

/* Local ports of one address that TCP connections took in the last PORT_REST_S: those of clients, of them also the ones that
 * connected alone or again, and of the control session. The connection manager's are fewer. */
static double tcp_ports(const struct estimate_in *in)
{
	const struct estimate_generator *g = &in->generator;

	return (double)in->clients + 2 * (double)g->alone + g->resting_per_s * PORT_REST_S + 1;
}

/* Queues of an endpoint, without its queue pairs. */
static void add_queues(struct memory_use *u, enum memory_driver driver, const struct sizes *s, double endpoints)
{
	uint64_t each = s->qps_per_cq;

	memory_add(u, endpoints, memory_of_srq(driver, s->recv_depth + EP_BATCH));
	memory_add(u, endpoints, memory_of_cq(driver, s->recv_depth + EP_BATCH));
	if (!each)
		return;
	memory_add(u, endpoints * (double)(s->qps / each), memory_of_cq(driver, (double)each * s->sq_depth));
	if (s->qps % each)
		memory_add(u, endpoints, memory_of_cq(driver, (double)(s->qps % each) * s->sq_depth));
}

/* --- the server --- */

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

/* What it has registered or allocated before the first client. */
static double server_tables(const struct estimate_in *in, const struct sizes *z)
{
	const struct sizes_server *s = &in->server.size;
	uint64_t shards = s->rails * s->threads, least = sizes_server_fds(s);
	uint64_t fds = MAX(bound(in->server_host.nofile), least);
	double conns = (double)z->clients + (double)s->max_handshakes;
	double waiting = sizes_waiting(z->clients, fds - least, shards);

	return (double)shards * (conns * MEMORY_SERVER_CONN_BYTES + waiting * MEMORY_SERVER_WAITING_BYTES +
				 z->qps * MEMORY_POOL_SLOT_BYTES + MEMORY_THREAD_BYTES + SHARD_HISTS * HIST_BYTES);
}

/* Each connection has two PSNs, drawn at random, in a registry of bits. */
static double psn_registry(double clients)
{
	return MEMORY_PSN_PAGES * (1 - exp(-2 * clients / MEMORY_PSN_PAGES)) * MEMORY_PAGE_BYTES;
}

static void server_needs(const struct estimate_in *in, struct end *e)
{
	const struct estimate_server *s = &in->server;
	const struct sizes z = shard_sizes(in);
	double n = (double)in->clients, rails = (double)s->size.rails, shards = rails * (double)s->size.threads;
	double of_regions = in->generator.region_bytes > 0 ? n * rails : 0, region = pages((double)s->size.region_bytes);
	double slab = shards * (double)z.slab_bytes, new_qps;
	enum memory_driver driver = in->server_host.driver;
	struct memory_use more = { 0 };

	*e = (struct end){
		.qps = rails * (n + resting(&in->generator)) + shards * z.qp_reserve,
		.cqs = shards * (double)z.cqs,
		.mrs = shards + of_regions,
		.mws = of_regions,
		.sq_entries = z.sq_depth,
		.receives = (double)z.clients * (double)in->generator.client.depth + EP_BATCH,
		.threads = SERVER_THREADS + shards + (s->size.region_bytes > 0),
		.pinned_bytes = slab + of_regions * region,
	};
	e->fds = SERVER_FDS + THREAD_FDS * shards + watch_fds(&in->server_host, rails, e->threads) + connecting(in);
	e->fds_at_start = (double)sizes_server_fds(&s->size);
	e->pinned_at_start_bytes = slab + rails * (double)s->size.max_clients * region;
	if (!s->own) {
		e->qps += s->clients;
		e->cqs = s->cqs;
		e->mrs = s->mrs + of_regions;
		e->fds = s->fds + connecting(in);
		e->threads = s->process_threads;
		e->pinned_bytes = s->pinned_bytes + of_regions * region;
	}
	e->cq_entries = fmax(e->receives, z.sq_depth);
	new_qps = s->own ? e->qps : fmax(e->qps - s->qps, 0);
	memory_add(&more, new_qps, memory_of_qp(driver, z.sq_depth, (double)s->inline_bytes));
	memory_add(&more, rails * n, memory_of_connection(driver));
	if (s->own)
		add_queues(&more, driver, &z, shards);
	e->use = more;
	e->rss_bytes = more.shared + more.process + rails * n * MEMORY_SERVER_CLIENT_BYTES + connecting(in) * MEMORY_TLS_BYTES +
		       psn_registry(rails * n) + of_regions * region;
	e->rss_bytes += s->own ? MEMORY_SERVER_BYTES + server_tables(in, &z) + slab : s->rss_bytes;
}

/* --- the generator --- */

static void generator_needs(const struct estimate_in *in, struct end *e)
{
	const struct estimate_generator *g = &in->generator;
	const struct sizes_device d = device_of(&in->generator_host);
	double n = (double)in->clients, rails = (double)g->rails, workers = (double)g->workers, ends = rails * workers;
	double arenas = (g->landing_bytes > 0 ? workers * (g->landing_shared ? 1 : (double)g->client.max_conns) : 0) *
			g->landing_bytes + workers * g->text_bytes;
	enum memory_driver driver = in->generator_host.driver;
	struct memory_use u = { 0 };
	struct sizes z;

	sizes_of_client(&g->client, &d, &z);
	*e = (struct end){
		.qps = rails * (n + resting(g)) + ends * z.qp_reserve,
		.cqs = ends * (double)z.cqs,
		.mrs = ends * (1 + (g->text_bytes > 0) + (g->landing_bytes > 0)),
		.sq_entries = z.sq_depth,
		.receives = z.recv_depth + EP_BATCH,
		.cq_entries = z.recv_depth + EP_BATCH,
		.threads = GENERATOR_THREADS + workers,
		.pinned_bytes = ends * (double)z.slab_bytes + arenas,
		.mws = NAN,
	};
	e->fds = GENERATOR_FDS + THREAD_FDS * ends + watch_fds(&in->generator_host, rails, e->threads) + connecting(in);
	e->fds_at_start = (g->phased ? n : fmin((double)g->connecting, n)) + GENERATOR_FDS_SPARE;
	memory_add(&u, e->qps, memory_of_qp(driver, z.sq_depth, (double)g->inline_bytes));
	memory_add(&u, rails * n, memory_of_connection(driver));
	add_queues(&u, driver, &z, ends);
	u.kernel += rails * n * MEMORY_TIME_WAIT_BYTES;
	e->use = u;
	e->rss_bytes = MEMORY_GENERATOR_BYTES + ends * MEMORY_THREAD_BYTES +
		       HIST_BYTES * (STEP_HISTS + ALONE_HISTS + INTERVAL_HISTS + workers * WORKER_HISTS) + u.shared + u.process +
		       rails * n * MEMORY_CLIENT_BYTES + ends * z.qps * MEMORY_POOL_SLOT_BYTES +
		       connecting(in) * MEMORY_TLS_BYTES + e->pinned_bytes;
}

/* --- the table --- */

struct rows {
	struct estimate_row *v;
	size_t n;
};

static void add(struct rows *r, enum estimate_resource what, enum estimate_side side, double needed, double limit)
{
	r->v[r->n++] = (struct estimate_row){ .resource = what, .side = side, .needed = needed, .limit = limit,
					      .clients = NAN };
}

/* What a device has, which both ends may share. */
static void add_device(struct rows *r, bool shared, enum estimate_resource what, double server, double generator,
		       double of_server, double of_generator)
{
	add(r, what, ESTIMATE_SERVER, server, shared ? INFINITY : of_server);
	if (!isnan(generator))
		add(r, what, ESTIMATE_GENERATOR, generator, shared ? INFINITY : of_generator);
	if (shared && !isnan(generator))
		add(r, what, ESTIMATE_BOTH, server + generator, of_server);
	else if (shared)
		r->v[r->n - 1].limit = of_server;
}

static void add_server_settings(struct rows *r, const struct estimate_in *in)
{
	const struct estimate_server *s = &in->server;
	double n = (double)in->clients, of_shard = sizes_share(connecting(in), (double)(s->size.rails * s->size.threads));

	/* A server of our own is started for the clients that are planned. */
	add(r, ESTIMATE_max_clients, ESTIMATE_SERVER, n, s->own ? INFINITY : (double)s->size.max_clients - s->clients);
	add(r, ESTIMATE_max_per_address, ESTIMATE_SERVER, n, s->max_per_address ? (double)s->max_per_address : INFINITY);
	add(r, ESTIMATE_handshakes, ESTIMATE_SERVER, of_shard, (double)s->size.max_handshakes);
}

/* Entries of a queue, by an option (0: none) and the device. */
static double chosen(uint64_t option, uint64_t device)
{
	return (double)(option ? MIN(option, device) : device);
}

static void add_queue_limits(struct rows *r, const struct estimate_in *in, const struct end *server, const struct end *gen)
{
	const struct estimate_host *h = &in->server_host, *g = &in->generator_host;
	const struct sizes_server *s = &in->server.size;
	const struct sizes_client *c = &in->generator.client;

	add(r, ESTIMATE_sq_entries, ESTIMATE_SERVER, server->sq_entries, h->max_qp_wr);
	add(r, ESTIMATE_sq_entries, ESTIMATE_GENERATOR, gen->sq_entries, g->max_qp_wr);
	add(r, ESTIMATE_cq_entries, ESTIMATE_SERVER, server->cq_entries, chosen(s->cq_depth, bound(h->max_cqe)));
	add(r, ESTIMATE_cq_entries, ESTIMATE_GENERATOR, gen->cq_entries, chosen(c->cq_depth, bound(g->max_cqe)));
	add(r, ESTIMATE_receives, ESTIMATE_SERVER, server->receives,
	    chosen(s->srq_depth ? s->srq_depth + EP_BATCH : 0, bound(h->max_srq_wr)));
	add(r, ESTIMATE_receives, ESTIMATE_GENERATOR, gen->receives,
	    chosen(c->srq_depth ? c->srq_depth + EP_BATCH : 0, bound(g->max_srq_wr)));
}

/* What a process takes that is not the kernel's, too. */
static double process_bytes(const struct end *e, double has)
{
	return e->rss_bytes - e->use.shared - (has > 0 ? has : 0);
}

static double kernel_growth(const struct end *e)
{
	return MEMORY_PROCESS_KERNEL_BYTES + e->use.shared + e->use.kernel;
}

static double free_bytes(const struct estimate_in *in, const struct estimate_host *h)
{
	return h->available_bytes - in->generator.memory_floor_ratio * h->memory_bytes;
}

static void add_memory(struct rows *r, const struct estimate_in *in, const struct end *server, const struct end *gen)
{
	const struct estimate_host *h = &in->server_host, *g = &in->generator_host;
	double on_server = process_bytes(server, in->server.own ? 0 : in->server.rss_bytes) + kernel_growth(server);
	double on_generator = process_bytes(gen, 0) + kernel_growth(gen);

	if (in->same_machine) {
		add(r, ESTIMATE_kernel_bytes, ESTIMATE_BOTH, h->kernel_bytes + kernel_growth(server) + kernel_growth(gen), INFINITY);
		add(r, ESTIMATE_memory_bytes, ESTIMATE_BOTH, on_server + on_generator, free_bytes(in, h));
		return;
	}
	add(r, ESTIMATE_kernel_bytes, ESTIMATE_SERVER, h->kernel_bytes + kernel_growth(server), INFINITY);
	add(r, ESTIMATE_kernel_bytes, ESTIMATE_GENERATOR, g->kernel_bytes + kernel_growth(gen), INFINITY);
	add(r, ESTIMATE_memory_bytes, ESTIMATE_SERVER, on_server, free_bytes(in, h));
	add(r, ESTIMATE_memory_bytes, ESTIMATE_GENERATOR, on_generator, free_bytes(in, g));
}

/* A server that serves RDMA as well only warns. */
static void add_held(struct rows *r, const struct estimate_in *in)
{
	struct held_row rows[HELD_N];

	estimate_held(in, rows);
	add(r, ESTIMATE_memory_at_start_bytes, ESTIMATE_SERVER, (double)held_sum(rows),
	    in->server.size.transport_mask & 1u << TRANSPORT_RDMA ? INFINITY : in->server_host.memory_bytes);
}

/* For a run over sockets the plan shows the server's limits, and how much memory they allow peers to take. */
static size_t rows_over_sockets(const struct estimate_in *in, struct rows *r)
{
	add_server_settings(r, in);
	add_held(r, in);
	return r->n;
}

size_t estimate_rows(const struct estimate_in *in, struct estimate_row rows[ESTIMATE_ROWS_MAX])
{
	const struct estimate_host *h = &in->server_host, *g = &in->generator_host;
	double of_server = (double)in->server.size.rails, of_generator = (double)in->generator.rails;
	struct rows r = { .v = rows };
	struct end server, gen;
	bool shared = in->same_machine;

	if (in->over_sockets)
		return rows_over_sockets(in, &r);
	server_needs(in, &server);
	generator_needs(in, &gen);
	add_server_settings(&r, in);
	add_device(&r, shared, ESTIMATE_qps, server.qps, gen.qps, of_server * h->max_qp, of_generator * g->max_qp);
	add_device(&r, shared, ESTIMATE_cqs, server.cqs, gen.cqs, of_server * h->max_cq, of_generator * g->max_cq);
	add_device(&r, shared, ESTIMATE_mrs, server.mrs, gen.mrs, of_server * h->max_mr, of_generator * g->max_mr);
	add_device(&r, shared, ESTIMATE_mws, server.mws, gen.mws, of_server * h->max_mw, of_generator * g->max_mw);
	add_queue_limits(&r, in, &server, &gen);
	add(&r, ESTIMATE_fds, ESTIMATE_SERVER, server.fds, h->nofile);
	add(&r, ESTIMATE_fds, ESTIMATE_GENERATOR, gen.fds, g->nofile);
	if (in->server.own)
		add(&r, ESTIMATE_fds_at_start, ESTIMATE_SERVER, server.fds_at_start, h->nofile);
	add(&r, ESTIMATE_fds_at_start, ESTIMATE_GENERATOR, gen.fds_at_start, g->nofile);
	add(&r, ESTIMATE_ports, ESTIMATE_GENERATOR, tcp_ports(in), g->ports - g->ports_resting);
	add(&r, ESTIMATE_threads, ESTIMATE_SERVER, server.threads, INFINITY);
	add(&r, ESTIMATE_threads, ESTIMATE_GENERATOR, gen.threads, INFINITY);
	add(&r, ESTIMATE_pinned_bytes, ESTIMATE_SERVER, server.pinned_bytes, h->memlock);
	add(&r, ESTIMATE_pinned_bytes, ESTIMATE_GENERATOR, gen.pinned_bytes, g->memlock);
	if (in->server.own)
		add(&r, ESTIMATE_pinned_at_start_bytes, ESTIMATE_SERVER, server.pinned_at_start_bytes,
		    fmin(h->memlock, h->memory_bytes));
	add_held(&r, in);
	add(&r, ESTIMATE_rss_bytes, ESTIMATE_SERVER, server.rss_bytes, INFINITY);
	add(&r, ESTIMATE_rss_bytes, ESTIMATE_GENERATOR, gen.rss_bytes, INFINITY);
	add_memory(&r, in, &server, &gen);
	return r.n;
}

bool estimate_fits(const struct estimate_row *r)
{
	return !(r->needed > r->limit);
}

/* --- how far it goes --- */

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
