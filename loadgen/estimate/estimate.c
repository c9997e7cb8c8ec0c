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
 *   (memory.c), and what each client and each TLS connection takes. The constants were measured on Soft-RoCE with 100 to
 *   1,000 clients (docs/capacity.md, "Before the run"); the slabs are registered, and so wholly resident.
 * - Of a server that runs, its report says what it has now, tables and buffers included; clients come on top.
 */
#include "loadgen/estimate/estimate.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "common/hist/hist.h"
#include "common/rdma/ep.h"
#include "loadgen/traffic/worker_stats.h"

#define MIB 1048576.0
#define PAGE_BYTES 4096.0
#define REST_S 6.0
#define PORT_REST_S 60.0		/* TIME_WAIT of TCP */
/* Processes without threads that work and without clients: pages of the programs and libraries, OpenSSL's tables, the log. */
#define SERVER_BYTES (12 * MIB)
#define GENERATOR_BYTES (11.5 * MIB)
/* Of a shard, and of a worker on a rail: loop, TLS context, stack. Histograms and tables come on top. */
#define SHARD_BYTES (0.1 * MIB)
#define WORKER_BYTES (0.1 * MIB)
#define SHARD_HISTS 6.0		/* stages of server/tables/stats.h */
/* A step's (loadgen/step/step.c), those of clients that connect alone (floor.c), and of intervals (loadgen/ramp/current.c). */
#define STEP_HISTS (7.0 + WORKLOAD_KINDS_MAX + STAGE_TIMED + HANDSHAKE_N * (STAGE_TIMED + 1))
#define ALONE_HISTS (2.0 + STAGE_TIMED)
#define INTERVAL_HISTS 3.0
/* The kernel's: lists of free pages, stacks, page tables, of a process. */
#define PROCESS_KERNEL_BYTES (3 * MIB)
#define SERVER_FDS 9.0
#define GENERATOR_FDS 9.0
#define GENERATOR_FDS_SPARE 128.0	/* loadgen/preflight.c */
#define THREAD_FDS 6.0		/* of a shard or worker: loop, channels, listeners */
#define SERVER_THREADS 2.0	/* main, log */
#define GENERATOR_THREADS 2.0
/* Slots of a shard's tables (server/shard/, server/tables/): a connection with its session, also of those that do the
 * handshake; a socket that waits; an address, with its places in lists and chains. */
#define SERVER_CONN_BYTES 1070.0
#define SERVER_WAITING_BYTES 208.0
#define SERVER_ADDRESS_BYTES 256.0
#define SERVER_CLIENT_BYTES 500.0	/* what connecting leaves in the libraries */
#define CLIENT_BYTES 1620.0		/* struct client_conn, struct wclient, times of its operations */
#define CLIENT_LEFT_BYTES 1900.0	/* what connecting leaves in the libraries */
#define POOL_SLOT_BYTES 60.0
#define PSN_REGISTRY_PAGES 512.0
#define TLS_SERVER_BYTES (20 * 1024.0)
#define TLS_CLIENT_BYTES (20 * 1024.0)
#define TIME_WAIT_BYTES 300.0

const char *const estimate_resource_names[] = {
#define X(name) #name,
	ESTIMATE_RESOURCES(X)
#undef X
};
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

static struct sizes_device device_of(const struct estimate_host *h, uint64_t cq_depth)
{
	struct sizes_device d = { bound(h->max_qp), bound(h->max_cqe), bound(h->max_srq_wr) };

	if (cq_depth)
		d.max_cqe = MIN(d.max_cqe, cq_depth);
	return d;
}

/* Descriptors with which a process of so many threads watches itself, its machine and its ports; samples of the server
 * take a control session at each end. */
static double watch_fds(const struct estimate_host *h, double rails, double threads)
{
	return rails * h->port_fds + (h->sampler_fds > 0 ? h->sampler_fds + threads + 1 : 0);
}

static double pages(double bytes)
{
	return ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
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
static void add_queues(struct memory_use *u, enum memory_driver driver, const struct sizes *s, const struct sizes_device *d,
		       double endpoints)
{
	uint64_t each = sizes_qps_per_cq(s, d);

	memory_add(u, endpoints, memory_of_srq(driver, s->recv_depth + EP_BATCH));
	memory_add(u, endpoints, memory_of_cq(driver, s->recv_depth + EP_BATCH));
	if (!each)
		return;
	memory_add(u, endpoints * (double)(s->qps / each), memory_of_cq(driver, (double)each * s->sq_depth));
	if (s->qps % each)
		memory_add(u, endpoints, memory_of_cq(driver, (double)(s->qps % each) * s->sq_depth));
}

/* --- the server --- */

static void shard_sizes(const struct estimate_in *in, struct sizes_device *d, struct sizes *out)
{
	const struct estimate_server *s = &in->server;
	const struct sizes_server wanted = { .max_clients = s->max_clients, .threads = s->threads, .credits = s->credits,
					     .srq_depth = s->srq_depth, .windows = s->windows };

	*d = device_of(&in->server_host, s->cq_depth);
	sizes_of_shard(&wanted, d, out);
	if (s->receive_buffers > 0)
		out->recv_depth = (uint32_t)bound(s->receive_buffers);
}

void estimate_held(const struct estimate_in *in, struct held_row rows[HELD_N])
{
	const struct estimate_server *s = &in->server;
	struct held_server h = { .rails = s->rails, .shards = s->rails * s->threads, .clients = s->max_clients,
				 .credits = s->credits, .message_bytes = s->message_bytes, .region_bytes = s->region_bytes,
				 .handshakes = s->max_handshakes, .sockets = s->sockets, .tls = s->tls, .zerocopy = s->zerocopy };
	struct sizes_device d;
	struct sizes z;

	shard_sizes(in, &d, &z);
	h.slab_bytes = s->rdma ? sizes_slab_bytes(&z, s->message_bytes) : 0;
	held_by_server(&h, rows);
}

/* What it has registered or allocated before the first client. */
static double server_tables(const struct estimate_in *in, const struct sizes *z)
{
	const struct estimate_server *s = &in->server;
	uint64_t shards = s->rails * s->threads, least = sizes_server_fds(s->rails, shards, s->max_handshakes);
	uint64_t fds = MAX(bound(in->server_host.nofile), least);
	double conns = (double)z->clients + (double)s->max_handshakes;
	double waiting = sizes_waiting(z->clients, fds - least, shards);

	return (double)shards * (conns * SERVER_CONN_BYTES + waiting * SERVER_WAITING_BYTES +
				 (conns + waiting) * SERVER_ADDRESS_BYTES + z->qps * POOL_SLOT_BYTES +
				 SHARD_BYTES + SHARD_HISTS * HIST_BYTES);
}

/* Each connection has two PSNs, drawn at random, in a registry of bits. */
static double psn_registry(double clients)
{
	return PSN_REGISTRY_PAGES * (1 - exp(-2 * clients / PSN_REGISTRY_PAGES)) * PAGE_BYTES;
}

static void server_needs(const struct estimate_in *in, struct end *e)
{
	const struct estimate_server *s = &in->server;
	double n = (double)in->clients, rails = (double)s->rails, shards = rails * (double)s->threads;
	double of_regions = in->generator.region_bytes > 0 ? n * rails : 0;
	enum memory_driver driver = in->server_host.driver;
	struct memory_use more = { 0 };
	struct sizes_device d;
	struct sizes z;
	double new_qps, slab;

	shard_sizes(in, &d, &z);
	slab = shards * (double)sizes_slab_bytes(&z, s->message_bytes);
	*e = (struct end){
		.qps = rails * (n + resting(&in->generator)) + shards * z.qp_reserve,
		.cqs = shards * (double)sizes_cqs(&z, &d),
		.mrs = shards + of_regions,
		.mws = of_regions,
		.sq_entries = z.sq_depth,
		.receives = (double)z.clients * (double)in->generator.client.depth + EP_BATCH,
		.threads = SERVER_THREADS + shards + (s->region_bytes > 0),
		.pinned_bytes = slab + of_regions * pages((double)s->region_bytes),
	};
	e->fds = SERVER_FDS + THREAD_FDS * shards + watch_fds(&in->server_host, rails, e->threads) + connecting(in);
	e->fds_at_start = (double)sizes_server_fds(s->rails, s->rails * s->threads, s->max_handshakes);
	e->pinned_at_start_bytes = slab + rails * (double)s->max_clients * pages((double)s->region_bytes);
	if (!s->own) {
		e->qps += s->clients;
		e->cqs = s->cqs;
		e->mrs = s->mrs + of_regions;
		e->fds = s->fds + connecting(in);
		e->threads = s->process_threads;
		e->pinned_bytes = s->pinned_bytes + of_regions * pages((double)s->region_bytes);
	}
	e->cq_entries = fmax(e->receives, z.sq_depth);
	new_qps = s->own ? e->qps : fmax(e->qps - s->qps, 0);
	memory_add(&more, new_qps, memory_of_qp(driver, z.sq_depth, (double)s->inline_bytes));
	memory_add(&more, rails * n, memory_of_connection(driver));
	if (s->own)
		add_queues(&more, driver, &z, &d, shards);
	e->use = more;
	e->rss_bytes = more.shared + more.process + rails * n * SERVER_CLIENT_BYTES + connecting(in) * TLS_SERVER_BYTES +
		       psn_registry(rails * n) + of_regions * pages((double)s->region_bytes);
	e->rss_bytes += s->own ? SERVER_BYTES + server_tables(in, &z) + slab : s->rss_bytes;
}

/* --- the generator --- */

static void generator_needs(const struct estimate_in *in, struct end *e)
{
	const struct estimate_generator *g = &in->generator;
	const struct sizes_device d = device_of(&in->generator_host, g->cq_depth);
	double n = (double)in->clients, rails = (double)g->rails, workers = (double)g->workers, ends = rails * workers;
	double arenas = (g->landing_bytes > 0 ? workers * (g->landing_shared ? 1 : (double)g->client.max_conns) : 0) *
			g->landing_bytes + workers * g->text_bytes;
	enum memory_driver driver = in->generator_host.driver;
	struct memory_use u = { 0 };
	struct sizes z;

	sizes_of_client(&g->client, &z);
	*e = (struct end){
		.qps = rails * (n + resting(g)) + ends * z.qp_reserve,
		.cqs = ends * (double)sizes_cqs(&z, &d),
		.mrs = ends * (1 + (g->text_bytes > 0) + (g->landing_bytes > 0)),
		.sq_entries = z.sq_depth,
		.receives = z.recv_depth + EP_BATCH,
		.cq_entries = z.recv_depth + EP_BATCH,
		.threads = GENERATOR_THREADS + workers,
		.pinned_bytes = ends * (double)sizes_slab_bytes(&z, g->buffer_bytes) + arenas,
		.mws = NAN,
	};
	e->fds = GENERATOR_FDS + THREAD_FDS * ends + watch_fds(&in->generator_host, rails, e->threads) + connecting(in);
	e->fds_at_start = (g->phased ? n : fmin((double)g->connecting, n)) + GENERATOR_FDS_SPARE;
	memory_add(&u, e->qps, memory_of_qp(driver, z.sq_depth, (double)g->inline_bytes));
	memory_add(&u, rails * n, memory_of_connection(driver));
	add_queues(&u, driver, &z, &d, ends);
	u.kernel += rails * n * TIME_WAIT_BYTES;
	e->use = u;
	e->rss_bytes = GENERATOR_BYTES + ends * WORKER_BYTES + HIST_BYTES * (STEP_HISTS + ALONE_HISTS + INTERVAL_HISTS +
									     workers * WORKER_HISTS) +
		       u.shared + u.process + rails * n * (CLIENT_BYTES + CLIENT_LEFT_BYTES) +
		       ends * z.qps * POOL_SLOT_BYTES + connecting(in) * TLS_CLIENT_BYTES + e->pinned_bytes;
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
	double n = (double)in->clients, of_shard = sizes_share((uint64_t)connecting(in), s->rails * s->threads);

	/* A server of our own is started for the clients that are planned. */
	add(r, ESTIMATE_max_clients, ESTIMATE_SERVER, n, s->own ? INFINITY : (double)s->max_clients - s->clients);
	add(r, ESTIMATE_max_per_address, ESTIMATE_SERVER, n, s->max_per_address ? (double)s->max_per_address : INFINITY);
	add(r, ESTIMATE_handshakes, ESTIMATE_SERVER, of_shard, (double)s->max_handshakes);
}

static void add_queue_limits(struct rows *r, const struct estimate_in *in, const struct end *server, const struct end *gen)
{
	const struct estimate_server *s = &in->server;
	const struct estimate_host *h = &in->server_host, *g = &in->generator_host;
	const struct sizes_device ds = device_of(h, s->cq_depth), dg = device_of(g, in->generator.cq_depth);
	uint64_t chosen = s->srq_depth ? s->srq_depth + EP_BATCH : UINT64_MAX, own = in->generator.client.srq_depth;
	double runs = s->receive_buffers > 0 ? s->receive_buffers + EP_BATCH : INFINITY;

	add(r, ESTIMATE_sq_entries, ESTIMATE_SERVER, server->sq_entries, h->max_qp_wr);
	add(r, ESTIMATE_sq_entries, ESTIMATE_GENERATOR, gen->sq_entries, g->max_qp_wr);
	add(r, ESTIMATE_cq_entries, ESTIMATE_SERVER, server->cq_entries, (double)ds.max_cqe);
	add(r, ESTIMATE_cq_entries, ESTIMATE_GENERATOR, gen->cq_entries, (double)dg.max_cqe);
	add(r, ESTIMATE_receives, ESTIMATE_SERVER, server->receives, fmin((double)MIN(ds.max_srq_wr, chosen), runs));
	add(r, ESTIMATE_receives, ESTIMATE_GENERATOR, gen->receives,
	    (double)MIN(dg.max_srq_wr, own ? own + EP_BATCH : UINT64_MAX));
}

/* What a process takes that is not the kernel's, too. */
static double process_bytes(const struct end *e, double has)
{
	return e->rss_bytes - e->use.shared - (has > 0 ? has : 0);
}

static double kernel_growth(const struct end *e)
{
	return PROCESS_KERNEL_BYTES + e->use.shared + e->use.kernel;
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
	    in->server.rdma ? INFINITY : in->server_host.memory_bytes);
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
	double of_server = (double)in->server.rails, of_generator = (double)in->generator.rails;
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
