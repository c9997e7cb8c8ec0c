/* SPDX-License-Identifier: BSD-2-Clause */
/* The planning table. See growth.h.
 *
 * Assumptions, and why they are fair:
 * - Servers share nothing, so n hosts hold n times the clients of one. A row of several hosts was never measured as a
 *   whole; it is `interpolated` only up to the clients that the run had on one host.
 * - Throughput is read from the measured curve at the host's number of clients, in closed and open loops. In a closed
 *   loop each client gets less the more there are, so throughput is proportional to clients only below the smallest
 *   step; beyond the largest it stays as measured there.
 * - Cores are those of the step with the nearest number of clients: the server's user and system time in its window. On
 *   software RDMA packets are also handled in softirqs, which are charged to no process or to any that runs. If both
 *   ends share a machine, half of the softirqs are the server's, as each packet is sent by one end and received by the
 *   other; the server is never charged more than the machine's busy time less the generator's. With two machines only
 *   the generator's softirq time is known, and the server's is assumed to be equal.
 * - Memory is resident memory plus the growth of kernel memory, half of it if both ends share the machine. It is an
 *   upper bound, because on Soft-RoCE queues count in both.
 * - Pinned memory is that of a server with the run's settings: its slab is for --max-clients, not for the clients held.
 */
#include "loadgen/analysis/growth.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "loadgen/analysis/points.h"

#define POINTS_MAX 256u
#define ROWS_MAX 256u
#define HEADROOM_MAX 0.9
#define ROUNDING 1e-6			/* a figure this close to a whole number counts as that number */
#define ROUND_LEAST 50000.0		/* round numbers go at least up to this one */
#define ROUND_FACTOR 10.0		/* and to this multiple of the capacity */

/* Medians measured at a number of clients held. */
struct measured {
	double clients, messages_per_s, cores;
};

/* A host's need of a resource: base + per_client x clients. NAN: not known. */
struct need {
	double base, per_client;
};

enum { NEED_MEMORY, NEED_PINNED, NEED_QPS, NEED_FDS, NEED_N };
static const char *const need_names[NEED_N] = { "memory_bytes", "pinned_bytes", "qps", "fds" };

struct plan {
	const json_t *run;
	double headroom, growth;
	double message_bytes;		/* only steps of this size count; NAN: all */
	bool shared, software;
	double capacity;
	const char *source;
	bool at_least;
	struct measured points[POINTS_MAX];	/* in rising order of clients */
	size_t n_points;
	struct need needs[NEED_N];
};

/* The largest size measured: it has the lowest message rate. */
static double size_of(const json_t *run)
{
	double largest = NAN;

	for (size_t i = 0; i < read_n_steps(run); i++)
		if (read_is_measured(read_step(run, i)))
			largest = fmax(largest, read_amount(read_step(run, i), "message_bytes"));
	return largest;
}

static bool counts(const json_t *step, const void *arg)
{
	const struct plan *p = arg;
	double bytes = read_amount(step, "message_bytes");

	return read_is_measured(step) && (isnan(p->message_bytes) || bytes == p->message_bytes);
}

static double cores_of(const json_t *step, const void *arg)
{
	const struct plan *p = arg;
	double own = read_cores(step, "server"), generator = read_cores(step, "generator");
	double busy = read_cores(step, "machine");
	double softirq = read_amount(step, "resources.machine.softirq_s") /
			 read_amount(step, "resources.machine.window_s");
	double all;

	if (!p->software || !isfinite(softirq))
		return isfinite(own) ? own : NAN;
	all = own + (p->shared ? softirq / 2 : softirq);
	if (p->shared && isfinite(busy) && isfinite(generator))
		all = fmax(own, fmin(all, busy - generator));
	return isfinite(all) ? all : NAN;
}

static double throughput_of(const json_t *step, const void *unused)
{
	(void)unused;
	return read_amount(step, "throughput_msgs_per_s");
}

/* Reads the medians of the steps at each number of clients held. Returns 0 or -ENOMEM. */
static int read_points(struct plan *p)
{
	const struct points_rule rule = { .clients = "connected_held", .counts = counts, .arg = p };
	struct points *points;

	if (points_by(json_at(p->run, "steps"), &rule, &points))
		return -ENOMEM;
	for (; p->n_points < MIN(points->n, (size_t)POINTS_MAX); p->n_points++) {
		const struct point *at = &points->v[p->n_points];

		p->points[p->n_points] = (struct measured){ at->clients, point_range_of(at, throughput_of, NULL).value,
							    point_range_of(at, cores_of, p).value };
	}
	points_free(points);
	return 0;
}

static bool has_point(const struct plan *p, double clients)
{
	for (size_t i = 0; i < p->n_points; i++)
		if (p->points[i].clients == clients)
			return true;
	return false;
}

static double most_measured(const struct plan *p)
{
	return p->n_points ? p->points[p->n_points - 1].clients : NAN;
}

static bool take_capacity(struct plan *p, const char *source, const char *clients, const char *at_least)
{
	double v = read_amount(p->run, clients);

	if (!(v >= 1))
		return false;
	/* A run cannot know of more clients than it held. */
	p->capacity = fmin(v, most_measured(p));
	p->source = source;
	p->at_least = json_is_true(json_at(p->run, at_least));
	return true;
}

static void find_capacity(struct plan *p)
{
	double most = most_measured(p);

	if (take_capacity(p, "slo_capacity", "analysis.capacity.slo_capacity.clients",
			  "analysis.capacity.slo_capacity.at_least"))
		return;
	/* No step met the objective: there is no capacity. */
	if (json_text_at(p->run, "config.slo") &&
	    isfinite(json_number_at(p->run, "analysis.capacity.slo_capacity.high"))) {
		p->capacity = NAN;
		return;
	}
	/* Without an objective: the most clients before a hard failure. The knee does not limit what can be held. */
	if (!json_is_true(json_at(p->run, "analysis.capacity.first_hard_failure.at_least")) &&
	    take_capacity(p, "first_hard_failure", "analysis.capacity.first_hard_failure.low",
			  "analysis.capacity.first_hard_failure.at_least"))
		return;
	p->capacity = most;
	p->source = isfinite(most) ? "largest_step_held" : NULL;
	p->at_least = isfinite(most);
}

static struct need need_of(const struct plan *p, const struct read_figure *f)
{
	struct read_use use;

	read_use(p->run, f, &use);
	/* The use did not grow with the clients: plan with the most that was seen. */
	if (use.line.slope.value <= 0)
		return (struct need){ use.most, 0 };
	return (struct need){ use.line.base.value, use.line.slope.value };
}

static void find_needs(struct plan *p)
{
	const struct read_figure figures[NEED_N] = {
		[NEED_MEMORY] = { .name = "rss_bytes", .server = true, .kernel_share = p->shared ? 0.5 : 1 },
		[NEED_PINNED] = { .name = "pinned_bytes", .server = true },
		[NEED_QPS] = { .name = "qps", .server = true },
		[NEED_FDS] = { .name = "fds", .server = true },
	};

	for (int i = 0; i < NEED_N; i++)
		p->needs[i] = need_of(p, &figures[i]);
}

static double cores_at(const struct plan *p, double clients)
{
	double nearest = INFINITY, cores = NAN;

	for (size_t i = 0; i < p->n_points; i++) {
		double away = fabs(p->points[i].clients - clients);

		if (isfinite(p->points[i].cores) && away < nearest) {
			nearest = away;
			cores = p->points[i].cores;
		}
	}
	return cores;
}

/* Interpolates between the steps, starting from 0 messages at 0 clients; constant beyond the largest step. */
static double messages_at(const struct plan *p, double clients)
{
	struct measured below = { 0 };

	for (size_t i = 0; i < p->n_points; i++) {
		const struct measured *above = &p->points[i];

		if (!isfinite(above->messages_per_s))
			continue;
		if (above->clients >= clients)
			return below.messages_per_s + (above->messages_per_s - below.messages_per_s) *
			       (clients - below.clients) / (above->clients - below.clients);
		below = *above;
	}
	return below.clients > 0 ? below.messages_per_s : NAN;
}

struct row {
	double clients, with_growth, hosts, clients_per_host;
};

static const char *source_of(const struct plan *p, const struct row *r)
{
	if (!(r->with_growth <= most_measured(p)) || r->clients_per_host < p->points[0].clients)
		return "extrapolated";
	return r->hosts == 1 && has_point(p, r->with_growth) ? "measured" : "interpolated";
}

static void share_out(const struct plan *p, double clients, struct row *r)
{
	double of_host = fmax(floor(p->capacity * (1 - p->headroom) + ROUNDING), 1);

	r->clients = clients;
	r->with_growth = ceil(clients * (1 + p->growth) - ROUNDING);
	r->hosts = ceil(r->with_growth / of_host);
	r->clients_per_host = ceil(r->with_growth / r->hosts);
}

/* The need of all hosts of a row together. */
static json_t *need_json(const struct need *need, const struct row *r)
{
	double of_host = ceil(need->base + need->per_client * r->clients_per_host - ROUNDING);
	double all = of_host > 0 ? r->hosts * of_host : of_host * 0;	/* NAN stays */

	return json_whole(all <= READ_AMOUNT_MAX ? all : NAN);
}

static json_t *row_json(const struct plan *p, double clients)
{
	double beyond;
	struct row r;

	share_out(p, clients, &r);
	beyond = r.with_growth / most_measured(p);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}",
		"clients", json_whole(r.clients), "with_growth", json_whole(r.with_growth),
		"hosts", json_whole(r.hosts), "clients_per_host", json_whole(r.clients_per_host),
		"cores", json_number(r.hosts * cores_at(p, r.clients_per_host)),
		need_names[NEED_MEMORY], need_json(&p->needs[NEED_MEMORY], &r),
		need_names[NEED_PINNED], need_json(&p->needs[NEED_PINNED], &r),
		need_names[NEED_QPS], need_json(&p->needs[NEED_QPS], &r),
		need_names[NEED_FDS], need_json(&p->needs[NEED_FDS], &r),
		"messages_per_s", json_number(r.hosts * messages_at(p, r.clients_per_host)),
		"source", source_of(p, &r), "beyond", json_number(beyond > 1 ? beyond : NAN));
}

static size_t add_number(double *v, size_t n, double clients)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == clients)
			return n;
	if (n < ROWS_MAX)
		v[n++] = clients;
	return n;
}

/* Fills `v` in rising order (rows chosen from the run: see growth.h). Returns how many. */
static size_t choose_numbers(const struct plan *p, double *v)
{
	double end = fmax(ROUND_FACTOR * p->capacity, ROUND_LEAST), power;
	size_t n = 0;

	n = add_number(v, n, p->capacity);
	n = add_number(v, n, 2 * p->capacity);
	for (power = pow(10, floor(log10(p->capacity))); power <= end; power *= 10)
		for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3)
			if (digit * power > p->capacity && digit * power <= end)
				n = add_number(v, n, digit * power);
	for (size_t i = 0; i < p->n_points; i++)
		n = add_number(v, n, p->points[i].clients);
	return stats_sort(v, n);
}

/* The numbers given as options; without any, numbers chosen from the run. */
static size_t numbers(const struct plan *p, const struct growth_options *o, double *v)
{
	size_t n = 0;

	if (!o->clients)
		return choose_numbers(p, v);
	for (size_t i = 0; i < o->n_clients; i++)
		if (o->clients[i] >= 1)
			n = add_number(v, n, floor(o->clients[i]));
	return n;
}

static json_t *rows_json(const struct plan *p, const struct growth_options *o)
{
	json_t *rows = json_array();
	double v[ROWS_MAX];
	size_t n = isfinite(p->capacity) && p->n_points ? numbers(p, o, v) : 0;

	for (size_t i = 0; rows && i < n && v[i] * (1 + p->growth) <= READ_AMOUNT_MAX; i++)
		if (json_array_append_new(rows, row_json(p, v[i]))) {
			json_decref(rows);
			rows = NULL;
		}
	return rows;
}

static json_t *needs_json(const struct plan *p, bool per_client)
{
	json_t *o = json_object();

	for (int i = 0; o && i < NEED_N; i++)
		if (json_object_set_new(o, need_names[i],
					json_number(per_client ? p->needs[i].per_client : p->needs[i].base))) {
			json_decref(o);
			o = NULL;
		}
	return o;
}

static double share(double v, double most)
{
	return v >= 0 ? fmin(v, most) : 0;
}

json_t *growth_analysis(const json_t *run, const struct growth_options *o)
{
	struct plan p = { .run = run, .headroom = share(o->headroom, HEADROOM_MAX), .growth = share(o->growth, 1e6),
			  .shared = read_shares_machine(run),
			  .software = json_is_true(json_at(run, "environment.server.rdma_device.is_software")) };

	p.message_bytes = size_of(run);
	if (read_points(&p))
		return NULL;
	find_capacity(&p);
	find_needs(&p);
	return json_pack("{s:o, s:s?, s:b, s:o, s:o, s:o, s:o}", "capacity_clients", json_whole(p.capacity),
			 "capacity_source", p.source, "at_least", p.at_least, "message_bytes",
			 json_whole(p.message_bytes), "base", needs_json(&p, false), "per_client", needs_json(&p, true),
			 "rows", rows_json(&p, o));
}
