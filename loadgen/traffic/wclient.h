/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of a worker: the data that each part of the load generator keeps for it. Owning thread: the worker's. */
#ifndef RAMPART_LOADGEN_WCLIENT_H
#define RAMPART_LOADGEN_WCLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/backoff.h"
#include "common/rdma/ep.h"
#include "loadgen/traffic/workload.h"

struct client_conn;
struct lane;
struct part;
struct rma_slot;
struct tls_session;
struct traffic;

enum wclient_state {
	WCLIENT_NONE,		/* not connected, and not waiting to connect */
	WCLIENT_CONNECTING,
	WCLIENT_PARKED,		/* with --phased: waits before a stage until all clients have reached it */
	WCLIENT_WAITING,	/* waits to begin another attempt, or to make its next connection */
	WCLIENT_LIVE,
	WCLIENT_LEAVING,	/* leaves on purpose: waits for its replies, then for the end of its connection */
	WCLIENT_LOST,		/* was live and failed: connections are being torn down; returns with --reconnect */
};

struct stream_times {
	uint64_t due_ns, sent_ns;	/* in a closed loop an operation is due when it is sent */
};

/* Operations of one kind, which end in the order in which they began. */
struct stream {
	uint64_t begun, done;
	uint64_t measured;		/* operations that ended while measuring */
	uint64_t last_end_ns;		/* when the last measured operation ended */
	struct stream_times *times;	/* ring: traffic_times */
};

struct wclient {
	struct traffic *traffic;
	uint32_t index;			/* index of the client in its worker */
	enum wclient_state state;	/* connector_set_state is the only writer */
	struct client_conn *conn;	/* the connection being made, or a live one; NULL: none */

	/* traffic.c, open_loop.c */
	struct stream streams[WORKLOAD_STREAMS_MAX];
	struct ep_deferred refill;	/* begins new operations at the end of a batch of completions */
	double due_ns;			/* open loop: when the next operation is due */
	bool scheduled;			/* open loop: in the schedule; false: waits for an operation to end */

	/* rma.c, lanes.c */
	uint8_t *landing;		/* destination of READs and of the server's WRITEs; NULL: none */
	struct rma_slot *slots;		/* NULL: the workload does not use rma.c */
	bool *ends;			/* ring: whether each request on the region ends an operation */
	uint64_t ends_in, ends_out;
	uint64_t atomics;		/* atomics begun */
	struct lane *lanes;		/* one for each connection; NULL: the workload uses `conn` alone */
	struct part *parts;

	/* connector.c, clients.c */
	uint32_t lane;			/* lane of the connection that is being made, or was made last */
	uint32_t open;			/* the client's connections that are not closed yet */
	struct tls_session *session;	/* TLS session to resume; NULL: none yet */
	uint64_t intended_ns;		/* when the connection should have begun */
	uint64_t begun_ns;		/* when the present attempt began */
	uint64_t retry_at_ns;
	uint32_t attempts;
	uint64_t psns_noted;		/* one bit for each lane: the PSNs of its connection are in the rail's `psns` */
	TAILQ_ENTRY(wclient) link;	/* in one of the connector's lists */

	/* churn.c */
	bool away;			/* the client left or was lost, and has not returned yet */
	uint64_t left_ns;
	struct backoff backoff;		/* with --reconnect: pauses between attempts after an outage began */
};

TAILQ_HEAD(wclient_list, wclient);

#endif
