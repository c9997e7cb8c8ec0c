/* SPDX-License-Identifier: BSD-2-Clause */
/* The findings of a run: its three capacities, the clients held, and words for limits. For older runs they come from
 * the steps. Pure. */
#ifndef RAMPART_LOADGEN_REPORT_FOUND_H
#define RAMPART_LOADGEN_REPORT_FOUND_H

#include "common/wire/transport.h"
#include "loadgen/analysis/validity.h"
#include "loadgen/report/sections/page.h"

struct found {
	double clients, low, high;	/* NAN: there is none */
	double passes, tries;
	double missed, upper_tries;	/* tries at `high` that missed the objective, and all; NAN: not known */
	double unsteady;		/* tries at both ends that were not steady, or disturbed; NAN: not known */
	const json_t *between;		/* numbers between the ends with their tries; NULL: not known */
	bool at_least, confirmed, scatters;
	bool capped;			/* at `high` the server was full (--max-clients) */
	const char *reason;		/* in words; NULL: the run does not say it */
	const json_t *failure;		/* the first hard failure; NULL: none */
};

/* Reads slo_capacity, knee or first_hard_failure (`which`). Returns false, and leaves all of `out` unknown, for a run
 * without a capacity analysis. */
bool found_read(const struct page *p, const char *which, struct found *out);
/* The knee: from the analysis, or from the steps of an older run. */
void found_knee(const struct page *p, struct found *out);

/* True if the workload only makes and holds connections, and sends nothing. */
bool found_only_connects(const struct page *p);
/* The run's transport; RDMA if the run does not state it. */
enum transport found_transport(const struct page *p);
/* "TCP" or "TLS" if the messages went over a socket; NULL: over RDMA. */
const char *found_socket(const struct page *p);

/* The number of clients at which a hard failure shows: for --max-clients the limit itself, if the run states it. */
double found_break_at(const struct page *p, const struct found *hard);

/* True if fewer clients than at the first hard failure missed the objective, and not because the server was full. */
bool found_slow_first(const struct page *p);

/* The first term of the objective that a run of the point missed; NULL: none. */
const json_t *found_missed_term(const struct point *at);

/* The clients of the largest step up to which every step held all of its clients; NAN: none. */
double found_most_held(const struct points *points);
/* The point with the fewest clients of which some were lost; NULL: none were. */
const struct point *found_first_not_held(const struct points *points);

/* Steps whose validity has a flag. */
struct found_flag {
	size_t steps, of;
	double least;			/* clients of the smallest such step */
};
struct found_flag found_flag(const struct points *points, enum validity flag);

/* The saturated load hosts of the smallest step of at least `clients` that has any: "load2, load5". "" if there are
 * none, or only one load host. Kept until page_free. */
const char *found_hosts_at_limit(struct page *p, double clients);

/* The clients of a capacity: "170", "at least 170", "none up to 100", "add hosts" (the load hosts were saturated), "not
 * known". */
const char *found_clients_words(struct page *p, const struct found *c);

/* True if server and generator were on one machine. */
bool found_share_machine(const struct page *p);
/* Share of the CPUs in use with the most clients: by the server on its machine, or by everything on the generator's
 * machine. NAN: not known. */
double found_cpu_share(const struct page *p, bool server);
/* "the machine" if both share one, else "the load generator's machine". */
const char *found_machine_words(const struct page *p);

/* "With the most clients the server used 95 % of its CPUs.", or the same of the generator's machine. NULL unless one of
 * the shares is above `busy`. */
const char *found_cpu_words(struct page *p, double busy);

/* Words for the resource of a hard failure or limit, such as "file descriptors"; its name if there are none. */
const char *found_resource_words(const char *resource);
/* Words for a side, such as "load generator". */
const char *found_side_words(const char *side);
/* Words for a limit or hard failure, such as "memory (load generator)". */
const char *found_limit_words(struct page *p, const json_t *limit);

#endif
