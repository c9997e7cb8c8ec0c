/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings a data thread really works with, whatever was requested: its queue pairs as the device reports them, or
 * its sockets as the kernel reports them, the load of its doorbells and polls, and where it runs. The thread writes,
 * any thread reads (relaxed atomics).
 */
#ifndef RAMPART_OBSERVED_H
#define RAMPART_OBSERVED_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/counter.h"
#include "common/rdma/ep.h"
#include "common/sock/link.h"

struct effective {
	counter tid;			/* the thread's number; 0: the thread does not run yet */
	counter cpu;			/* CPU it last ran on, + 1; 0: unknown */
	counter device_node;		/* NUMA node of its device, + 1; 0: unknown */
	/* sum of struct ep_work over its endpoints */
	counter requests, doorbells, signalled, polls, empty_polls, completions;
	counter inline_wanted, inline_granted;	/* of the first endpoint (ep_inline_granted) */
	counter relaxed;			/* its memory is registered with relaxed ordering */
	/* A connected queue pair, as the device reports it (struct cm_qp_values); all 0 while qp_known is 0. */
	counter qp_known, path_mtu_bytes, ack_timeout, retry_count, rnr_retry, rnr_timer, traffic_class, service_level,
		gid_index;
	/* A connected socket, as the kernel reports it (struct tcp_values); all 0 while tcp_known is 0. */
	counter tcp_known, nodelay, quickack, send_buffer, receive_buffer, busy_poll_us, zerocopy, mss, ktls;
	counter congestion[TCP_CONGESTION_BYTES / sizeof(uint64_t)];	/* the name's bytes */
	counter credits;		/* credits of that connection: messages that the client may have in flight */
};

/* Sets the NUMA node of the thread's device, or PLACE_NO_NODE (common/host/place.h). Call before the thread starts. */
void effective_set_device(struct effective *e, int node);
/* Publishes the thread's number when it has started. On that thread. */
void effective_begin(struct effective *e);
/* Publishes the work of the thread's `n` endpoints, and its CPU. No system call. On that thread. */
void effective_count(struct effective *e, struct ep *const *eps, uint32_t n);
/* Publishes the settings of `link`, a connection with `credits`: asks the device about its queue pair, or the kernel
 * about its socket; NULL: not connected. System calls, so not between messages. On that thread. False: no answer. */
bool effective_look(struct effective *e, const struct link *link, uint32_t credits);

/* Adds the published work to `sum`. Any thread. */
void effective_add_work(const struct effective *e, struct ep_work *sum);
/* {tid, cpu, cpus, numa_node, realtime (place_thread_json), device_numa_node, inline_wanted_bytes,
 * inline_granted_bytes, relaxed_ordering, credits, qp: {path_mtu_bytes, ack_timeout_ns, retry_count, rnr_retry,
 * rnr_timer_ns, traffic_class, service_level, gid_index}, tcp: {nodelay, quickack, send_buffer_bytes,
 * receive_buffer_bytes, busy_poll_us, zerocopy, mss_bytes, congestion, ktls}}; null: unknown; a null ack_timeout_ns
 * in a known qp: unlimited. Opens files. */
json_t *effective_thread_json(const struct effective *e);
/* {requests, doorbells, signalled, polls, empty_polls, completions} */
json_t *effective_work_json(const struct ep_work *w);

/* Adds to a machine's description the properties that decide the speed of a thread (place_describe), and `libraries`,
 * the loaded ones: {openssl, rdma_core} (null: unknown). */
void effective_describe(json_t *environment);

#endif
