/* SPDX-License-Identifier: BSD-2-Clause */
/* The section on network traffic of both ends, from the devices' counters: bytes against clients, and each port in the
 * last run of each number of clients. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "loadgen/report/sections/trend.h"

#define MB 1e-6

/* Each side during the measured time, and while clients connected. */
static const struct {
	const char *path, *words;
	bool server;
} sides[] = {
	{ "network.server", "server", true }, { "network.generator", "generator", false },
	{ "network.connecting.server", "server, connecting", true },
	{ "network.connecting.generator", "generator, connecting", false },
};
#define SIDES (sizeof(sides) / sizeof(sides[0]))

static const struct figures rates = {
	"network_rates", "Network", "MB/s",
	"What the ports of both ends sent and received, for each number of clients.", false, 4, {
		{ "server sent#MB/s", "network.server.bytes_out_per_s", MB, 2 },
		{ "server received#MB/s", "network.server.bytes_in_per_s", MB, 2 },
		{ "generator sent#MB/s", "network.generator.bytes_out_per_s", MB, 2 },
		{ "generator received#MB/s", "network.generator.bytes_in_per_s", MB, 2 },
		{ "server's line used#%", "network.server.used_ratio", 100, 2 },
		{ "generator's line used#%", "network.generator.used_ratio", 100, 2 },
	},
};

/* Counters that stay 0 in a network without faults. */
#define FAULT_COLUMNS \
	{ "sent again#", "retransmits", 1, 0 }, { "given up#", "retries_exceeded", 1, 0 }, \
	{ "not ready, sent#", "rnr_naks_sent", 1, 0 }, { "not ready, received#", "rnr_naks_received", 1, 0 }, \
	{ "out of sequence#", "out_of_sequence", 1, 0 }, { "twice#", "duplicate_requests", 1, 0 }, \
	{ "congestion marks#", "ecn_marked", 1, 0 }, { "congestion notified, sent#", "cnps_sent", 1, 0 }, \
	{ "congestion notified, received#", "cnps_received", 1, 0 }
static const struct page_column faults[] = { FAULT_COLUMNS };
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* The last run of a point. */
static const json_t *last_step(const struct point *point)
{
	return point->n ? point->steps[point->n - 1] : NULL;
}

static const struct page_column columns[] = {
	{ "device", "device", 0, 0 }, { "interface", "netdev", 0, 0 }, { "bytes by", "bytes_source", 0, 0 },
	{ "sent#MB", "bytes_out", MB, 2 }, { "received#MB", "bytes_in", MB, 2 },
	{ "packets sent#", "packets_out", 1, 0 },
	{ "packets received#", "packets_in", 1, 0 }, FAULT_COLUMNS, { "line#Gbit/s", "line_bits_per_s", 1e-9, 1 },
	{ "used#%", "used_ratio", 100, 2 }, { 0 }
};

static void add_port(struct page *p, struct doc_table *t, const struct point *point, const char *side, const json_t *o)
{
	bool bad = false;

	for (size_t i = 0; i < FAULTS; i++)
		bad |= read_amount(o, faults[i].path) > 0;
	page_row(p, t, bad ? DOC_WARN : DOC_PLAIN, point->clients, point->bytes);
	page_cells(t, "s", side);
	page_cells_of(p, t, columns, o);
}

static void show_ports(struct page *p)
{
	struct doc_table *t = page_table(p, "network",
					 "What each port counted while a step was measured and while its clients "
					 "connected, in the last run of each number of clients.", PAGE_POINT ";side");

	page_columns(p, t, columns);
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < SIDES; k++) {
			const json_t *side = json_at(last_step(&p->points->v[i]), sides[k].path), *o;
			size_t n;

			json_array_foreach(json_object_get(side, "ports"), n, o) {
				add_port(p, t, &p->points->v[i], sides[k].words, o);
			}
		}
}

/* Counts of sides of steps: all, those without a wire, and those whose bytes were counted at the interface. */
struct known {
	size_t sides, loopback, netdev;
	double faults[FAULTS];
};

static void look_for_known(const struct page *p, struct known *out)
{
	*out = (struct known){ 0 };
	for (size_t i = 0; i < read_n_steps(p->run); i++)
		for (size_t k = 0; k < SIDES; k++) {
			const json_t *o = json_at(read_step(p->run, i), sides[k].path);
			bool loopback = json_is_true(json_object_get(o, "loopback"));

			out->sides += json_is_object(o);
			out->loopback += loopback;
			out->netdev += strcmp(page_text_at(o, "bytes_source", ""), "netdev") == 0;
			/* On one machine both sides have the same counters: count them once. */
			for (size_t f = 0; f < FAULTS && !(loopback && !sides[k].server); f++)
				out->faults[f] += fmax(read_amount(o, faults[f].path), 0);
		}
}

static void say_faults(struct page *p, const struct known *known)
{
	const char *text = "";

	for (size_t f = 0; f < FAULTS; f++)
		if (known->faults[f] > 0)
			text = page_text(p, "%s%s%.*s: %s", text, *text ? "; " : "", (int)strcspn(faults[f].title, "#"),
					 faults[f].title, page_count(p, known->faults[f]));
	if (*text)
		doc_note(p->doc, DOC_WARN, "network-faults", known->loopback == known->sides ?
			 "The devices counted retransmissions and the like (%s), although no wire lies between server "
			 "and generator: an end acknowledged late or had no buffer, as when CPUs are full. This costs "
			 "latency." : "The devices counted signs of a faulty network "
			 "(%s): packets were lost or came in the wrong order, a receiver had no buffer, or the path "
			 "was congested. This costs latency.", text);
	else
		doc_text(p->doc, "network-clean",
			 "As far as the devices count it, nothing was sent again, arrived out of sequence, or "
			 "found a receiver that was not ready.");
}

static void show_rates(struct page *p, double bytes)
{
	struct trend v[FIGURES_MAX];
	size_t i;

	figures_read(p, &rates, bytes, v);
	if (!v[0].known)
		return;
	i = trend_top(&v[0]);
	if (isfinite(v[0].y[i]) && isfinite(v[1].y[i]))
		doc_text(p->doc, "network-said",
			 "With %s the server's ports sent %.2f MB and received %.2f MB a second%s.",
			 page_clients(p, v[0].x[i]), v[0].y[i], v[1].y[i], isfinite(v[4].y[i]) ?
			 page_text(p, "; its busier direction used %s of the line rate",
				   page_percent(p, v[4].y[i] / 100)) : "");
	figures_show(p, &rates, v);
}

void section_network(struct page *p)
{
	struct known known;
	double bytes;

	doc_section(p->doc, "network", "The network");
	look_for_known(p, &known);
	if (!known.sides) {
		doc_text(p->doc, "network-none", "Not known: the counters of the RDMA devices were not read.");
		return;
	}
	bytes = page_smallest_size(p);
	if (known.loopback)
		doc_text(p->doc, "network-loopback",
			 "Server and generator are on one machine, so RDMA between them does not reach a "
			 "wire: which bytes a network would carry is not known. Packets are those of both ends, if the "
			 "device counts them.");
	if (known.netdev)
		doc_text(p->doc, "network-shared",
			 "The RDMA device counts no bytes. Those shown were counted by its network interface, "
			 "including all its other traffic, such as TLS connections.");
	show_rates(p, bytes);
	say_faults(p, &known);
	show_ports(p);
}
