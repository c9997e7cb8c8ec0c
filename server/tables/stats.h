/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of a shard, or of control sessions. One thread writes them, any may read them (relaxed atomics). */
#ifndef RAMPART_SERVER_STATS_H
#define RAMPART_SERVER_STATS_H

#include <stdint.h>

#include "common/base/counter.h"
#include "common/observed/observed.h"
#include "common/wire/fail_table.h"

struct hist;

enum server_stage {
	SS_TLS_ACCEPT,			/* from the TCP accept to the end of a full handshake */
	SS_TLS_ACCEPT_RESUMED,		/* the same for a resumed handshake */
	SS_PSN_GENERATE,
	SS_QP_SETUP,
	SS_ACCEPT_TO_ESTABLISHED,
	SS_QP_RECYCLE,			/* from the end of a connection until its queue pair left quarantine */
	SS_N,
};
extern const char *const server_stage_names[SS_N];

enum close_reason {
	CLOSE_PEER_LEFT,	/* the client disconnected */
	CLOSE_DRAINING,		/* the server stops */
	CLOSE_REFUSED,		/* refused during the bootstrap */
	CLOSE_HANDED_OVER,	/* a control session was handed to the main thread */
	CLOSE_CONTROL_END,	/* a control session ended */
	CLOSE_CROWDED_OUT,	/* evicted, too many waiting, or above --max-per-address */
	CLOSE_FAILED,		/* see failures */
	CLOSE_N,
};
extern const char *const close_reason_names[CLOSE_N];

#define STATS_REFUSE_MAX 32

#define STATS_LAGS 6
extern const uint64_t stats_lag_bounds_ns[STATS_LAGS];

struct stats {
	/* events since the start */
	counter tcp_accepted, granted, established;
	counter tls_shared;	/* connections that were announced on the TLS connection of an earlier one */
	counter handshakes_full, handshakes_resumed, tickets;
	counter refused[STATS_REFUSE_MAX];	/* by enum refuse_code: REFUSE frames and REJ */
	counter closed[CLOSE_N];
	counter messages_in, messages_out, bytes_in, bytes_out, tls_bytes_in, tls_bytes_out;
	counter messages_checked, messages_corrupt;	/* messages with a checksum, and with a wrong one */
	counter psn_verified, psn_mismatches;	/* connections whose PSNs were read back as agreed, or not */
	counter psn_conflicts, psn_redraws;	/* PSNs already in use: sent by clients, drawn by the server */
	counter probes, receive_shortfalls;
	/* gauges, published every 10 ms while active and when the main thread asks (gauges.h) */
	counter handshakes, sessions, connected, connected_peak, closing, controls;
	counter qps, qps_free, qps_in_use, qps_in_use_peak, qps_quarantined;
	counter qp_hits, qp_misses, qp_exhausted, qp_recycled;
	counter bufs_posted, bufs_free, bufs_total, pinned_bytes, cqs, mrs, regions_in_use;
	struct effective effective;	/* published with the gauges; the queue pair's part, on demand */
	counter completions, polls, wakeups;	/* since the start: struct pump_counts */
	counter loop_lags[STATS_LAGS + 1];	/* how late the shard's loop ran its 10 ms timer: number of times by
						 * stats_lag_bounds_ns, and above the last one */
	counter loop_lag_ns;			/* sum of them */
	struct fail_table failures;
	struct hist *stages[SS_N];
};

/* Sets all counters to 0 and allocates the histograms. 0 or -ENOMEM. */
int stats_init(struct stats *s) __attribute__((warn_unused_result));
void stats_fini(struct stats *s);

/* Counts that the loop ran a timer `lag_ns` late. */
void stats_count_lag(struct stats *s, uint64_t lag_ns);

#endif
