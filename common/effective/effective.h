/* SPDX-License-Identifier: BSD-2-Clause */
/* What a data thread publishes of how it really works, whatever was asked for: its queue pairs as the device has them, or its
 * sockets as the kernel has them, what its doorbells and polls carried, and where it runs. The thread writes, any thread
 * reads (relaxed atomics).
 */
#ifndef RAMPART_COMMON_EFFECTIVE_H
#define RAMPART_COMMON_EFFECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/counter.h"
#include "common/rdma/ep.h"
#include "common/sock/link.h"

struct effective {
	counter tid;			/* the thread's number; 0: it does not run yet */
	counter cpu;			/* where it ran last, + 1; 0: not known */
	counter device_node;		/* the NUMA node of its device, + 1; 0: not known */
	/* struct ep_work of its endpoints, added up */
	counter requests, doorbells, signalled, polls, empty_polls, completions;
	counter inline_wanted, inline_granted;	/* of its first endpoint (ep_inline_granted) */
	/* A connected queue pair, as the device described it (struct cm_qp_values); all 0 while qp_known is. */
	counter qp_known, path_mtu_bytes, ack_timeout, retry_count, rnr_retry, rnr_timer, traffic_class, service_level,
		gid_index;
	/* A connected socket, as the kernel described it (struct tcp_values); all 0 while tcp_known is. */
	counter tcp_known, nodelay, quickack, send_buffer, receive_buffer, busy_poll_us, zerocopy, mss, ktls;
	counter congestion[TCP_CONGESTION_BYTES / sizeof(uint64_t)];	/* the name's bytes */
	counter credits;		/* of that connection: messages that the client may have in flight */
};

/* The NUMA node of the thread's device, or PLACE_NO_NODE (common/host/place.h). Before the thread begins. */
void effective_set_device(struct effective *e, int node);
/* The thread has begun: says which it is. On that thread. */
void effective_begin(struct effective *e);
/* Publishes what its `n` endpoints have done, and its CPU. No system call. On that thread. */
void effective_count(struct effective *e, struct ep *const *eps, uint32_t n);
/* Asks the device for the queue pair of `link`, or the kernel for its socket, which has `credits`; NULL: nothing is connected.
 * System calls, so it does not belong between messages. On that thread. Returns whether there was an answer. */
bool effective_look(struct effective *e, const struct link *link, uint32_t credits);

/* Any thread. */
void effective_add_work(const struct effective *e, struct ep_work *sum);
/* {tid, cpu, cpus, numa_node, realtime (place_thread_json), device_numa_node, inline_wanted_bytes,
 * inline_granted_bytes, credits, qp: {path_mtu_bytes, ack_timeout_ns, retry_count, rnr_retry, rnr_timer_ns,
 * traffic_class, service_level, gid_index}, tcp: {nodelay, quickack, send_buffer_bytes, receive_buffer_bytes, busy_poll_us,
 * zerocopy, mss_bytes, congestion, ktls}}; null is not known; an ack_timeout_ns of null in a known qp: without end.
 * Opens files. */
json_t *effective_thread_json(const struct effective *e);
/* {requests, doorbells, signalled, polls, empty_polls, completions} */
json_t *effective_work_json(const struct ep_work *w);

/* A machine's description with what of it decides how fast a thread is, and with which libraries it runs: place_describe,
 * and libraries: {openssl, rdma_core}, as loaded (null: not known). */
void effective_describe(json_t *environment);

#endif
