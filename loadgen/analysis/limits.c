/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of both ends. See limits.h.
 *
 * What each limit applies to:
 * - Descriptors do not grow with clients held, since TLS connections are closed once RDMA is live; with --phased
 *   all connections of a step are open at once, at both ends, before the reading.
 * - The server's slab and receive queues are sized for --max-clients when it starts (docs/architecture.md, "Pools
 *   and sizes"). They grow with --max-clients, which more clients require, and not with the clients held.
 * - Send completion queues grow in number; only the receive queue's completion queue grows in size.
 * - Locked memory is counted for each process. A use above the limit shows that the process has CAP_IPC_LOCK, and so no
 *   limit. Queues that a NIC's driver locks are not in pinned_bytes.
 * - Memory is an upper bound: on Soft-RoCE shared queues count both as resident and as kernel memory.
 * - Network is the use of the busiest port in its busier direction. All rails are assumed to have the same line rate.
 * - RDMA connections have ports of the connection manager, separate from TCP's. Each client also had a TCP port, which
 *   is in TIME_WAIT for 60 s, so both run out at the same number of clients. Several addresses at either end allow
 *   more.
 */
#include "loadgen/analysis/limits.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/host/res.h"
#include "common/rdma/ep.h"
#include "common/sizing/sizes.h"
#include "loadgen/analysis/read.h"

#define LIMITS_MAX 24
#define MEASURED_SHARE 0.9
#define NOISE_SHARE 0.05		/* smaller growth (a share of the use) counts only if its interval is above 0 */

struct limit {
	const char *resource, *side, *option;
	double used, limit, clients, base, per_client;	/* per_client is NAN or 0 where the use does not grow */
};

/* The server's sizes. `credits` is NAN if it is unknown, or if the server reported too few receive buffers for so many
 * credits. */
struct setup {
	double max_clients, threads, credits, depth;	/* depth: receive buffers of a shard, without the batch */
	double slab_per_client;				/* bytes of slab for each further client of --max-clients */
};

struct limits {
	const json_t *run;
	struct limit v[LIMITS_MAX];
	size_t n;
	double held;			/* most clients in any step; NAN if there were none */
	bool own_server, shared_device, shares_machine, phased, many_hosts;
	struct setup setup;
};

static double projected(const struct limit *l)
{
	/* 1e-6: floor must not turn a whole number into the one below because of rounding. */
	double at = l->per_client > 0 ? floor((l->limit - l->base) / l->per_client + 1e-6) : NAN;

	/* The clients that a step held can be held, whatever the line predicts. */
	if (isfinite(at) && isfinite(l->clients))
		at = fmax(at, l->clients);
	return at <= READ_AMOUNT_MAX ? at : NAN;
}

static void add_limit(struct limits *ls, const struct limit *l)
{
	if (ls->n < LIMITS_MAX && isfinite(l->used) && l->limit > 0)
		ls->v[ls->n++] = *l;
}

/* Growth of a use with each client. If each client must use some of the resource, a line that does not rise is noise,
 * so the growth is unknown (NAN) instead of 0. */
static double growth_of(const struct read_use *use, bool must_grow)
{
	const struct estimate *slope = &use->line.slope;

	if (must_grow)
		return slope->value > 0 ? slope->value : NAN;
	/* The growth may be noise. */
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

/* Adds a resource of which each client held uses one. */
static void add_counted(struct limits *ls, const char *resource, const char *side, const char *option, double limit)
{
	add_limit(ls, &(struct limit){ .resource = resource, .side = side, .option = option, .used = ls->held,
				       .limit = limit,
				 .clients = ls->held, .base = 0, .per_client = 1 });
}

static void read_setup(const json_t *run, struct setup *s)
{
	double buffers = read_amount(run, "server_config.receive_buffers"),
		bytes = read_amount(run, "server_config.message_bytes");
	double rails = fmax(read_amount(read_step(run, 0), "rails.available"), 1);

	s->max_clients = read_amount(run, "server_config.max_clients");
	s->threads = fmax(read_amount(run, "server_config.threads"), 1);
	s->credits = read_amount(run, "server_config.credits");
	s->depth = buffers / (s->threads * rails);
	s->slab_per_client = 0;
	/* If --srq-depth or the device caps the queue, clients get fewer credits and no queue grows. */
	if (!(s->depth >= s->credits * sizes_share(s->max_clients, s->threads)) || !(s->credits >= 1))
		s->credits = NAN;
	else if (isfinite(bytes))
		s->slab_per_client = rails * s->credits * (double)ep_stride((uint64_t)bytes, true) *
				     (s->depth < SIZES_SPARES_MAX ? 2 : 1);
}

/* Queues grow with --max-clients, but a run has a single value of it. So the line goes through two points: this value
 * with the queue's size, and the number of clients whose queue reaches the limit. */
static void add_queue(struct limits *ls, const char *resource, double limit)
{
	const struct setup *s = &ls->setup;
	struct limit l = { .resource = resource, .side = "server", .used = s->depth + EP_BATCH, .limit = limit,
			   .option = "--threads of rdma_server (a queue for each), or fewer --credits",
			   .clients = ls->held, .base = NAN, .per_client = NAN };
	double most = sizes_share_of((limit - EP_BATCH) / s->credits, s->threads);

	if (most > s->max_clients && limit > l.used) {
		l.per_client = (limit - l.used) / (most - s->max_clients);
		l.base = l.used - l.per_client * s->max_clients;
	}
	add_limit(ls, &l);
}

static void add_queues(struct limits *ls)
{
	double cqe = read_amount(ls->run, "environment.server.rdma_device.limits.max_cqe");
	double chosen = read_amount(ls->run, "config.tuning.cq_depth");

	if (ls->own_server && chosen > 0)
		cqe = fmin(cqe, chosen);
	add_queue(ls, "cqe", cqe);
	add_queue(ls, "max_srq_wr", read_amount(ls->run, "environment.server.rdma_device.limits.max_srq_wr"));
}

/* Beyond the clients that the slabs are sized for, each client adds `bytes`. */
static void grow_slab(struct limit *l, double bytes, double sized_for)
{
	if (bytes > 0 && isfinite(sized_for) && isfinite(l->per_client) && !(projected(l) <= sized_for)) {
		l->base -= bytes * sized_for;
		l->per_client += bytes;
	}
}

/* Bytes of the generator's slabs for each client that they are sized for; *sized_for is how many those are: --clients,
 * or the largest step. */
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

enum sharing { SHARED_NEVER, SHARED_DEVICE, SHARED_MACHINE };

struct rule;
/* Corrects the limit of a rule whose resource is not used along the line through the steps. */
typedef void adjust_fn(const struct limits *ls, const struct rule *r, struct limit *l);

struct rule {
	const char *resource;
	bool server;			/* false: the generator */
	const char *figure, *limit_path, *option;	/* limit_path: for memory, that of the environment */
	enum sharing sharing;		/* if both ends share it, the server's rule counts both */
	bool must_grow;			/* each client uses some of the resource */
	bool with_kernel;		/* the growth of the kernel's memory counts too */
	adjust_fn *adjust;		/* NULL: nothing */
};

/* With --phased every client's TLS connection is open before the reading. */
static void add_open_connections(const struct limits *ls, const struct rule *r, struct limit *l)
{
	(void)r;
	if (!ls->phased || !isfinite(l->clients))
		return;
	l->used += l->clients;
	l->per_client = fmax(l->per_client, 0) + 1;
	l->base = isfinite(l->base) ? l->base : l->used - l->per_client * l->clients;
}

static void add_slabs(const struct limits *ls, const struct rule *r, struct limit *l)
{
	double sized_for, slab = generator_slab(ls, &sized_for);

	if (r->server)
		grow_slab(l, ls->setup.slab_per_client, ls->setup.max_clients);
	if (!r->server || (ls->shares_machine && r->sharing == SHARED_MACHINE))
		grow_slab(l, slab, sized_for);
}

static void add_pinned(const struct limits *ls, const struct rule *r, struct limit *l)
{
	/* A run with one number of clients does not show how regions grow, but the growth of slabs is known. */
	if (!isfinite(l->per_client)) {
		l->base = l->used;
		l->per_client = 0;
	}
	add_slabs(ls, r, l);
	/* More is pinned than the limit allows, so the process has CAP_IPC_LOCK, and no limit. */
	if (l->used > l->limit)
		l->limit = NAN;
}

#define MEMORY_OPTION "memory of the machine, or the limit of its control group"
#define SERVER_DEVICE "environment.server.rdma_device.limits."
static const struct rule rules[] = {
	{ "nofile", true, "fds", "environment.server.rlimits.nofile.soft", "ulimit -n (LimitNOFILE=) of rdma_server",
	  SHARED_NEVER, false, false, add_open_connections },
	{ "nofile", false, "fds", "environment.clients.rlimits.nofile.soft", "ulimit -n of performance_test",
	  SHARED_NEVER, false, false, add_open_connections },
	{ "memlock", true, "pinned_bytes", "environment.server.rlimits.memlock.soft",
	  "ulimit -l (LimitMEMLOCK=) of rdma_server, or fewer --credits", SHARED_NEVER, false, false, add_pinned },
	{ "memlock", false, "pinned_bytes", "environment.clients.rlimits.memlock.soft",
	  "ulimit -l of performance_test, or fewer --inflight", SHARED_NEVER, false, false, add_pinned },
	{ "max_qp", true, "qps", SERVER_DEVICE "max_qp", "a device with a higher max_qp, or another rail",
	  SHARED_DEVICE, true, false, NULL },
	{ "max_cq", true, "cqs", SERVER_DEVICE "max_cq", "a device with a higher max_cq, or fewer --credits",
	  SHARED_DEVICE, false, false, NULL },
	{ "max_mr", true, "mrs", SERVER_DEVICE "max_mr", "a device with a higher max_mr, or another rail",
	  SHARED_DEVICE, false, false, NULL },
	{ "max_qp", false, "qps", "environment.clients.rdma_device.limits.max_qp",
	  "a device with a higher max_qp, or another rail", SHARED_DEVICE, true, false, NULL },
	{ "memory", true, "rss_bytes", "environment.server", MEMORY_OPTION,
	  SHARED_MACHINE, true, true, add_slabs },
	{ "memory", false, "rss_bytes", "environment.clients", MEMORY_OPTION,
	  SHARED_MACHINE, true, false, add_slabs },
};

static void add_rule(struct limits *ls, const struct rule *r)
{
	bool both = (r->sharing == SHARED_DEVICE && ls->shared_device) ||
		    (r->sharing == SHARED_MACHINE && ls->shares_machine);
	const struct read_figure f = { .name = r->figure, .server = r->server, .generator = both || !r->server,
				       .kernel_share = r->with_kernel };
	struct limit l;

	/* No rule for the generator if the server's rule counts both ends, or with several load hosts: the use is their
	 * sum, which no single host's limit applies to (each host's own figures are in `hosts`). */
	if ((both || ls->many_hosts) && !r->server)
		return;
	l = limit_of_use(ls, r->resource, both ? "both" : r->server ? "server" : "generator", r->option, &f,
			 r->must_grow);
	l.limit = r->sharing == SHARED_MACHINE ? res_memory_of(json_at(ls->run, r->limit_path)) :
		  read_amount(ls->run, r->limit_path);
	if (r->adjust)
		r->adjust(ls, r, &l);
	add_limit(ls, &l);
}

/* Bytes a second that a port of the side can carry, by the last step that knows it; NAN: not known. */
static double line_of(const json_t *run, const char *side)
{
	double line = NAN;
	char path[64];

	snprintf(path, sizeof(path), "network.%s", side);
	for (size_t i = 0; i < read_n_steps(run); i++) {
		const json_t *o = json_at(read_step(run, i), path);
		double now = read_amount(o, "line_bits_per_s") / 8 / (double)json_array_size(json_object_get(o,
													     "ports"));

		line = isfinite(now) ? now : line;
	}
	return line;
}

static void add_network(struct limits *ls, const char *side)
{
	double line = line_of(ls->run, side);
	char path[64];
	struct read_figure f = { .path = path };
	struct limit l;

	snprintf(path, sizeof(path), "network.%s.used_ratio", side);
	l = limit_of_use(ls, "network", side, "a faster link, or another rail", &f, false);
	l.limit = line;
	l.used *= line;
	l.base *= line;
	l.per_client *= line;
	add_limit(ls, &l);
}

static bool is_shared_device(const struct limits *ls)
{
	const char *server = json_text_at(ls->run, "environment.server.rdma_device.name");
	const char *clients = json_text_at(ls->run, "environment.clients.rdma_device.name");

	return ls->shares_machine && !(server && clients && strcmp(server, clients) != 0);
}

static void read_limits(struct limits *ls)
{
	for (size_t i = 0; i < read_n_steps(ls->run); i++)
		ls->held = fmax(ls->held, read_held(read_step(ls->run, i)));
	ls->own_server = !json_text_at(ls->run, "config.server");
	ls->shares_machine = read_shares_machine(ls->run);
	ls->shared_device = is_shared_device(ls);
	ls->many_hosts = json_array_size(json_object_get(ls->run, "hosts")) > 1;
	ls->phased = json_is_true(json_at(ls->run, "config.phased"));
	read_setup(ls->run, &ls->setup);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		add_rule(ls, &rules[i]);
	add_queues(ls);
	add_network(ls, "server");
	if (!ls->many_hosts) {
		add_counted(ls, "ports", "generator", "net.ipv4.ip_local_port_range, or another address",
			    res_port_range(json_at(ls->run, "environment.clients")));
		add_network(ls, "generator");
	}
	/* performance_test sets --max-clients of its own server as high as the run needs, so it is not a limit. */
	if (!ls->own_server)
		add_counted(ls, "max_clients", "server", "--max-clients of rdma_server", ls->setup.max_clients);
}

/* Sorts by the clients that reach the limit; limits never reached come last. Insertion sort: stable, and few rows. */
static void sort_limits(struct limits *ls)
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

	read_limits(&ls);
	sort_limits(&ls);
	for (size_t i = 0; a && i < ls.n; i++)
		if (json_array_append_new(a, limit_json(&ls.v[i]))) {
			json_decref(a);
			a = NULL;
		}
	return a;
}
