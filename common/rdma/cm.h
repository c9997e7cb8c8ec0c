/* The connection manager, translated: rdmacm's ids and events as rampart uses them.
 *
 * QPs are the caller's (user-managed), because packet sequence numbers are set by hand. All ids of a
 * channel are created, used and destroyed on the channel's thread. Events are copied and acked before
 * they are acted on, since rdma_destroy_id waits for the acks of an id's events.
 */
#ifndef RAMPART_COMMON_CM_H
#define RAMPART_COMMON_CM_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "common/base/addr.h"

struct rdma_cm_id;
struct cm_channel;

#define CM_PRIVATE_MAX 196

enum cm_event_type {
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_CONNECT_REQUEST,	/* id is new and the receiver's; listener is where it came in */
	CM_CONNECT_RESPONSE,	/* the server accepted; program the QP, then cm_establish */
	CM_ESTABLISHED,
	CM_DISCONNECTED,
	CM_REJECTED,		/* status: IBTA 12.6.7.2 reason; private data of the server if reason 28 */
	CM_UNREACHABLE,
	CM_ADDR_ERROR,
	CM_ROUTE_ERROR,
	CM_CONNECT_ERROR,
	CM_DEVICE_REMOVED,
	CM_OTHER,		/* nothing to do: TIMEWAIT_EXIT, ADDR_CHANGE, multicast */
};

struct cm_event {
	enum cm_event_type type;
	struct rdma_cm_id *id;
	void *context;		/* the id's; for CM_CONNECT_REQUEST the listener's */
	int status;
	uint32_t qpn;		/* peer's QP number: CONNECT_REQUEST and CONNECT_RESPONSE */
	uint8_t reads;		/* RDMA READs and atomics the client asks to have outstanding, or is allowed */
	uint8_t private_data[CM_PRIVATE_MAX];
	uint32_t private_bytes;
};

/* Reject reason "consumer reject" (IBTA 12.6.7.2): the private data is the application's. */
#define CM_REJECT_CONSUMER 28

int cm_channel_new(struct cm_channel **out) __attribute__((warn_unused_result));	/* 0 or -errno */
/* All ids must be gone. NULL-safe. */
void cm_channel_free(struct cm_channel *c);
int cm_channel_fd(const struct cm_channel *c);

/* Takes one event: 1 and *out, 0 when there is none, or -errno. */
int cm_next_event(struct cm_channel *c, struct cm_event *out) __attribute__((warn_unused_result));

/* Listens on a specific address; port 0 lets the system choose. 0 or -errno. */
int cm_listen(struct cm_channel *c, const struct addr *local, int backlog, void *context,
	      struct rdma_cm_id **out, uint16_t *port) __attribute__((warn_unused_result));

int cm_id_new(struct cm_channel *c, void *context, struct rdma_cm_id **out)
	__attribute__((warn_unused_result));
void cm_id_destroy(struct rdma_cm_id *id);	/* NULL-safe */
void cm_id_set_context(struct rdma_cm_id *id, void *context);

/* Asynchronous; CM_ADDR_RESOLVED or CM_ADDR_ERROR follows. `local` may be NULL. 0 or -errno. */
int cm_resolve_addr(struct rdma_cm_id *id, const struct addr *local, const struct addr *peer,
		    unsigned timeout_ms) __attribute__((warn_unused_result));
int cm_resolve_route(struct rdma_cm_id *id, unsigned timeout_ms) __attribute__((warn_unused_result));

/* Addresses of the connection with ports. The peer's is its own claim on the passive side. 0 or -EAFNOSUPPORT. */
int cm_addresses(struct rdma_cm_id *id, struct addr *local, struct addr *peer)
	__attribute__((warn_unused_result));
struct ibv_context *cm_device(const struct rdma_cm_id *id);

struct cm_conn_param {
	uint32_t qpn;			/* our QP */
	const void *private_data;
	uint8_t private_bytes;
	uint8_t responder_resources;	/* RDMA READs the peer may have outstanding here */
	uint8_t initiator_depth;	/* and we there */
};

int cm_connect(struct rdma_cm_id *id, const struct cm_conn_param *p) __attribute__((warn_unused_result));
int cm_accept(struct rdma_cm_id *id, const struct cm_conn_param *p) __attribute__((warn_unused_result));
int cm_establish(struct rdma_cm_id *id) __attribute__((warn_unused_result));
/* A reject that cannot be sent is not an error of ours: the peer times out. */
void cm_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_bytes);
int cm_disconnect(struct rdma_cm_id *id) __attribute__((warn_unused_result));

struct cm_qp_param {
	uint32_t rq_psn;	/* the peer's send PSN */
	uint32_t sq_psn;	/* ours */
	bool remote_write;	/* grant RDMA WRITE to the peer; even a 0-byte probe needs it */
	bool remote_read;
	bool remote_atomic;
	uint8_t reads;		/* RDMA READs and atomics the peer may have outstanding here, at most */
	uint8_t own_reads;	/* and we there */
	enum ibv_mtu path_mtu;	/* at most; 0: the path's */
	bool verify;		/* read the PSNs back with ibv_query_qp: -EBADMSG if they differ */
};

/* What the CM worked out for a connection's path: where packets go and with which MTU. Asked for once, because
 * it is a system call. */
struct cm_path {
	struct ibv_qp_attr rtr;
	int mask;
};

/* On the passive side from CONNECT_REQUEST on, on the active one from CONNECT_RESPONSE on. 0 or -errno. */
int cm_get_path(struct rdma_cm_id *id, struct cm_path *out) __attribute__((warn_unused_result));

/* The IP address packets of this path will really go to: its destination GID. 0, or -EAFNOSUPPORT on a link
 * without IP GIDs (InfiniBand). */
int cm_path_peer(struct rdma_cm_id *id, const struct cm_path *path, struct addr *out)
	__attribute__((warn_unused_result));

/* RESET or INIT -> RTR -> RTS along `path`, with our PSNs, access flags, timers and retry counts.
 * Returns 0 or -errno. */
int cm_program_qp(struct rdma_cm_id *id, struct ibv_qp *qp, const struct cm_path *path,
		  const struct cm_qp_param *p) __attribute__((warn_unused_result));

/* The send PSN the CM would have used, for people and tests. 0 or -errno. */
int cm_own_psn(struct rdma_cm_id *id, uint32_t *out) __attribute__((warn_unused_result));

#endif
