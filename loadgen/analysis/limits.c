/* Limits of both ends. See limits.h.
 *
 * What a limit really binds:
 * - Descriptors do not grow with clients held, since TLS connections are closed once RDMA is live; with --phased
 *   all of a step's are open at once, at both ends, before the reading.
 * - The server's slab and receive queues are sized for --max-clients when it starts (docs/architecture.md, "Pools
 *   and sizes"). They do not grow with the clients held; but who wants more clients must raise that option, and
 *   then they do.
 * - Send completion queues are as many as needed; of one queue only the receive queue's size grows.
 * - Locked memory is counted for each process. With CAP_IPC_LOCK there is no limit; a use above it shows that.
 *   Queues that a NIC's driver locks besides are not in pinned_bytes.
 * - Memory is an upper bound: on Soft-RoCE shared queues are resident and the kernel's at once.
 * - Ports of RDMA connections are the connection manager's, apart from TCP's. Each client also had a TCP port,
 *   which rests for 60 s, so both end at the same number of clients. With several addresses at either end there is
 *   more room.
 */
#include "loadgen/analysis/limits.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/read.h"

#define LIMITS_MAX 24
#define BATCH 64.0			/* receive buffers beyond the credits (EP_BATCH) */
#define SPARES_MAX 4096.0		/* of a shard; up to it there is one for each receive buffer */
#define MEASURED_SHARE 0.9
#define NOISE_SHARE 0.05		/* of the use: growth below it must be beyond doubt */

struct limit {
	const char *resource, *side, *option;
	double used, limit, clients, base, per_client;	/* per_client is NAN or 0 where the use does not grow */
};

struct limits {
	const json_t *run;
	struct limit v[LIMITS_MAX];
	size_t n;
	double held;			/* most clients in any step; NAN if there were none */
	bool own_server, shared_device, shares_machine, phased;
};

static double projected(const struct limit *l)
{
	/* A whole number stays one, whatever rounding did to the line. */
	double at = l->per_client > 0 ? floor((l->limit - l->base) / l->per_client + 1e-6) : NAN;

	/* Whatever the line says, what was held can be held. */
	if (isfinite(at) && isfinite(l->clients))
		at = fmax(at, l->clients);
	return at <= READ_AMOUNT_MAX ? at : NAN;
}

static void add(struct limits *ls, const struct limit *l)
{
	if (ls->n < LIMITS_MAX && isfinite(l->used) && l->limit > 0)
		ls->v[ls->n++] = *l;
}

/* --- what grows with the clients held --- */

/* What must grow, as each client has some of it, may have a noisy line, but is never said not to. */
static double growth_of(const struct read_use *use, bool must_grow)
{
	const struct estimate *slope = &use->line.slope;

	if (must_grow)
		return slope->value > 0 ? slope->value : NAN;
	/* It may as well be noise. */
	if (slope->low <= 0 && slope->value * use->clients < NOISE_SHARE * use->most)
		return 0;
	return slope->value < 0 ? 0 : slope->value;
}

static struct limit limit_of_use(const struct limits *ls, const char *resource, const char *side, const char *option,
				 const struct read_figure *f, bool must_grow)
{
	struct limit l = { .resource = resource, .side = side, .option = option };
	struct read_use use;

	read_use(ls->run, f, &use);
	l.used = use.most;
	l.clients = use.clients;
	l.base = use.line.base.value;
	l.per_client = growth_of(&use, must_grow);
	if (l.per_client == 0)
		l.base = use.most;
	return l;
}

static void add_nofile(struct limits *ls, bool server)
{
	const struct read_figure f = { .name = "fds", .server = server, .generator = !server };
	struct limit l = limit_of_use(ls, "nofile", server ? "server" : "generator",
				      server ? "ulimit -n (LimitNOFILE=) of rdma_server" :
				      "ulimit -n of performance_test", &f, false);

	l.limit = read_amount(ls->run, server ? "environment.server.rlimits.nofile.soft" :
			      "environment.clients.rlimits.nofile.soft");
	if (ls->phased && isfinite(l.clients)) {
		l.used += l.clients;
		l.per_client = fmax(l.per_client, 0) + 1;
		l.base = isfinite(l.base) ? l.base : l.used - l.per_client * l.clients;
	}
	add(ls, &l);
}

struct device_limit {
	const char *resource, *figure, *server_path, *clients_path, *option;
	bool must_grow;
};

static void add_device_limit(struct limits *ls, const struct device_limit *d, bool server, bool generator)
{
	const struct read_figure f = { .name = d->figure, .server = server, .generator = generator };
	struct limit l = limit_of_use(ls, d->resource, server && generator ? "both" : server ? "server" : "generator",
				      d->option, &f, d->must_grow);

	l.limit = read_amount(ls->run, server ? d->server_path : d->clients_path);
	add(ls, &l);
}

static void add_device_limits(struct limits *ls)
{
	static const struct device_limit limits[] = {
		{ "max_qp", "qps", "environment.server.rdma_device.limits.max_qp",
		  "environment.clients.rdma_device.limits.max_qp", "a device with a higher max_qp, or another rail",
		  true },
		{ "max_cq", "cqs", "environment.server.rdma_device.limits.max_cq",
		  "environment.clients.rdma_device.limits.max_cq", "a device with a higher max_cq, or fewer --credits",
		  false },
		{ "max_mr", "mrs", "environment.server.rdma_device.limits.max_mr",
		  "environment.clients.rdma_device.limits.max_mr", "a device with a higher max_mr, or another rail",
		  false },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		add_device_limit(ls, &limits[i], true, ls->shared_device);
	if (!ls->shared_device)
		add_device_limit(ls, &limits[0], false, true);
}

/* Of those that connect: one each, whatever the steps before left. */
static void add_counted(struct limits *ls, const char *resource, const char *side, const char *option, double limit)
{
	add(ls, &(struct limit){ .resource = resource, .side = side, .option = option, .used = ls->held, .limit = limit,
				 .clients = ls->held, .base = 0, .per_client = 1 });
}

static double port_range(const json_t *run)
{
	/* The name has dots, which a path cannot have. */
	const json_t *sysctls = json_at(run, "environment.clients.sysctls");
	const json_t *range = json_object_get(sysctls, "net.ipv4.ip_local_port_range");
	double low = json_number_value(json_array_get(range, 0)), high = json_number_value(json_array_get(range, 1));

	return low >= 1 && high >= low && high <= 65535 ? high - low + 1 : NAN;
}

/* --- what is sized for --max-clients --- */

/* The server's configuration; NAN throughout unless it explains what the server reported. */
struct setup {
	double max_clients, threads, credits, depth;	/* depth: receive buffers of a shard, without the batch */
	double stride;					/* bytes of a buffer */
	double slab_per_client;				/* bytes of slab a further client of --max-clients takes */
};

/* As server/config/limits.c shares them out: even, and six standard deviations of the kernel's spread. */
static double clients_of_shard(double clients, double threads)
{
	double mean = clients / threads;

	return threads > 1 ? fmin(clients, ceil(mean + 6 * sqrt(mean))) : clients;
}

/* The inverse. */
static double clients_for_shard(double of_shard, double threads)
{
	double root = sqrt(of_shard + 9) - 3;

	return threads > 1 ? fmax(of_shard, floor(threads * root * root)) : of_shard;
}

static double rails_of(const json_t *run)
{
	double rails = read_amount(read_step(run, 0), "rails.available");

	return rails >= 1 ? rails : 1;
}

static void read_setup(const json_t *run, struct setup *s)
{
	double buffers = read_amount(run, "server_config.receive_buffers"), rails = rails_of(run);

	s->max_clients = read_amount(run, "server_config.max_clients");
	s->threads = fmax(read_amount(run, "server_config.threads"), 1);
	s->credits = read_amount(run, "server_config.credits");
	s->depth = buffers / (s->threads * rails);
	s->stride = ceil(read_amount(run, "server_config.message_bytes") / 64) * 64;
	s->slab_per_client = 0;
	/* Held down by --srq-depth or the device: then clients get fewer credits, and no queue grows. */
	if (!(s->depth >= s->credits * clients_of_shard(s->max_clients, s->threads)) || !(s->credits >= 1))
		s->credits = NAN;
	else
		s->slab_per_client = rails * s->credits * s->stride * (s->depth < SPARES_MAX ? 2 : 1);
	if (!isfinite(s->slab_per_client))
		s->slab_per_client = 0;
}

/* A line through what the server was set up for and what fills the queue. */
static void add_queue(struct limits *ls, const struct setup *s, const char *resource, const char *option, double limit)
{
	struct limit l = { .resource = resource, .side = "server", .option = option, .used = s->depth + BATCH,
			   .limit = limit, .clients = ls->held, .base = NAN, .per_client = NAN };
	double most = clients_for_shard((limit - BATCH) / s->credits, s->threads);

	if (most > s->max_clients && limit > l.used) {
		l.per_client = (limit - l.used) / (most - s->max_clients);
		l.base = l.used - l.per_client * s->max_clients;
	}
	add(ls, &l);
}

static void add_queues(struct limits *ls, const struct setup *s)
{
	double cqe = read_amount(ls->run, "environment.server.rdma_device.limits.max_cqe");
	double chosen = read_amount(ls->run, "config.tuning.cq_depth");

	if (ls->own_server && chosen > 0)
		cqe = fmin(cqe, chosen);
	add_queue(ls, s, "cqe", "--threads of rdma_server (a queue for each), or fewer --credits", cqe);
	add_queue(ls, s, "max_srq_wr", "--threads of rdma_server (a queue for each), or fewer --credits",
		  read_amount(ls->run, "environment.server.rdma_device.limits.max_srq_wr"));
}

/* Beyond the clients that the slabs are for, each takes `bytes` more. */
static void grow_slab(struct limit *l, double bytes, double sized_for)
{
	if (bytes > 0 && isfinite(sized_for) && isfinite(l->per_client) && !(projected(l) <= sized_for)) {
		l->base -= bytes * sized_for;
		l->per_client += bytes;
	}
}

/* Bytes of the generator's slabs for a client of --clients, for which they are sized. */
static double generator_slab(const struct limits *ls, double *sized_for)
{
	const struct read_figure f = { .name = "pinned_bytes", .generator = true };
	struct read_use use;

	read_use(ls->run, &f, &use);
	*sized_for = read_amount(ls->run, "config.clients");
	for (size_t i = 0; i < read_n_steps(ls->run); i++)
		*sized_for = fmax(*sized_for, read_amount(read_step(ls->run, i), "target_clients"));
	return *sized_for >= 1 && use.most >= 0 ? use.most / *sized_for : 0;
}

static void add_memlock(struct limits *ls, const struct setup *s, bool server)
{
	const struct read_figure f = { .name = "pinned_bytes", .server = server, .generator = !server };
	struct limit l = limit_of_use(ls, "memlock", server ? "server" : "generator",
				      server ? "ulimit -l (LimitMEMLOCK=) of rdma_server, or fewer --credits" :
				      "ulimit -l of performance_test, or fewer --inflight", &f, false);
	double sized_for = s->max_clients, slab = s->slab_per_client;

	l.limit = read_amount(ls->run, server ? "environment.server.rlimits.memlock.soft" :
			      "environment.clients.rlimits.memlock.soft");
	if (!server)
		slab = generator_slab(ls, &sized_for);
	/* One number of clients says nothing about regions, but all about slabs. */
	if (!isfinite(l.per_client)) {
		l.base = l.used;
		l.per_client = 0;
	}
	grow_slab(&l, slab, sized_for);
	if (l.used <= l.limit)
		add(ls, &l);
}

static void add_memory(struct limits *ls, const struct setup *s)
{
	const struct read_figure server = { .name = "rss_bytes", .server = true, .generator = ls->shares_machine,
					    .kernel_share = 1 };
	const struct read_figure generator = { .name = "rss_bytes", .generator = true };
	struct limit l = limit_of_use(ls, "memory", ls->shares_machine ? "both" : "server", "memory of the machine",
				      &server, true);
	double sized_for, slab = generator_slab(ls, &sized_for);

	l.limit = read_amount(ls->run, "environment.server.memory_bytes");
	grow_slab(&l, s->slab_per_client, s->max_clients);
	if (ls->shares_machine)
		grow_slab(&l, slab, sized_for);
	add(ls, &l);
	if (ls->shares_machine)
		return;
	l = limit_of_use(ls, "memory", "generator", "memory of the machine", &generator, true);
	l.limit = read_amount(ls->run, "environment.clients.memory_bytes");
	grow_slab(&l, slab, sized_for);
	add(ls, &l);
}

/* --- all of them --- */

static bool is_shared_device(const struct limits *ls)
{
	const char *server = json_text_at(ls->run, "environment.server.rdma_device.name");
	const char *clients = json_text_at(ls->run, "environment.clients.rdma_device.name");

	return ls->shares_machine && !(server && clients && strcmp(server, clients) != 0);
}

static void look(struct limits *ls)
{
	struct setup s;

	for (size_t i = 0; i < read_n_steps(ls->run); i++)
		ls->held = fmax(ls->held, read_held(read_step(ls->run, i)));
	ls->own_server = !json_text_at(ls->run, "config.server");
	ls->shares_machine = read_shares_machine(ls->run);
	ls->shared_device = is_shared_device(ls);
	ls->phased = json_is_true(json_at(ls->run, "config.phased"));
	read_setup(ls->run, &s);
	add_nofile(ls, true);
	add_nofile(ls, false);
	add_memlock(ls, &s, true);
	add_memlock(ls, &s, false);
	add_device_limits(ls);
	add_queues(ls, &s);
	add_memory(ls, &s);
	add_counted(ls, "ports", "generator", "net.ipv4.ip_local_port_range, or another address", port_range(ls->run));
	/* performance_test sets it to what the run needs, so there it says nothing. */
	if (!ls->own_server)
		add_counted(ls, "max_clients", "server", "--max-clients of rdma_server", s.max_clients);
}

/* In the order of the clients at which they end; those without an end last. Stable, as there are but a few. */
static void sort(struct limits *ls)
{
	for (size_t i = 1; i < ls->n; i++)
		for (size_t k = i; k > 0; k--) {
			double a = projected(&ls->v[k - 1]), b = projected(&ls->v[k]);
			struct limit later = ls->v[k - 1];

			if (!(b < a) && !(isnan(a) && isfinite(b)))
				break;
			ls->v[k - 1] = ls->v[k];
			ls->v[k] = later;
		}
}

static json_t *limit_json(const struct limit *l)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "resource", l->resource, "side", l->side,
			 "option", l->option, "used", json_number(l->used), "limit", json_number(l->limit), "clients",
			 json_whole(l->clients), "base", json_number(l->base), "per_client", json_number(l->per_client),
			 "projected_clients", json_whole(projected(l)), "measured",
			 l->used >= MEASURED_SHARE * l->limit);
}

json_t *limits_analysis(const json_t *run)
{
	struct limits ls = { .run = run, .held = NAN };
	json_t *a = json_array();

	look(&ls);
	sort(&ls);
	for (size_t i = 0; a && i < ls.n; i++)
		if (json_array_append_new(a, limit_json(&ls.v[i]))) {
			json_decref(a);
			a = NULL;
		}
	return a;
}
