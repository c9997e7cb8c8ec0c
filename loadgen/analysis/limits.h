/* SPDX-License-Identifier: BSD-2-Clause */
/* Resources against their limits: use, limit, and the number of clients that reaches the limit if the use grows along
 * the line through the steps. Pure: reads run.json. */
#ifndef RAMPART_LOADGEN_ANALYSIS_LIMITS_H
#define RAMPART_LOADGEN_ANALYSIS_LIMITS_H

#include <jansson.h>

/* For each resource whose use and limit the run knows, in the order of the clients that reach the limit: [{resource,
 * side ("server", "generator", "both"), option (how to raise it, a text), used, limit, clients (most held when used was
 * read), base, per_client, projected_clients, measured (true if a step used 90 % of the limit)}]. Unknown figures are
 * null. projected_clients is null if the use does not grow (per_client 0), and at least the clients held. Slabs and
 * receive queues are sized for --max-clients or --clients at the start, so they grow with that option.
 *
 * Resources: server nofile, memlock (pinned), max_qp, max_cq, max_mr, cqe (of the receive queue's CQ, the only one that
 * must grow), max_srq_wr, memory (resident plus the kernel's growth, against the machine's memory), max_clients (unless
 * the run started the server, and so set it); generator nofile, memlock, max_qp, memory, ports (client ports of
 * net.ipv4.ip_local_port_range, one for each RDMA connection); network of both ends. An unlimited rlimit is left out,
 * as is memlock if more was pinned than it allows: the process is then exempt. If both ends share machine and
 * device (the steps' validity has that flag), device and memory limits count both ends together, side "both".
 *
 * NULL when out of memory; an empty array where there is nothing to say. */
json_t *limits_analysis(const json_t *run);

#endif
