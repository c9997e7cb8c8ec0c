/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager, translated: rdmacm's ids and events as rampart uses them.
 *
 * QPs are the caller's (user-managed), because packet sequence numbers are set by hand. All ids of a
 * channel are created, used and destroyed on the channel's thread, and every function here is called on it. What
 * can fail returns 0 or a negative error; each lists its own. Those called "of rdma_x" are -errno as that function of
 * librdmacm leaves it (rdma_cm(7)); -EINVAL means that the id is not in the state for it. Events are copied and acked before
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

/* Reject reason "consumer reject" (IBTA 12.6.7.2): the private data is the application's. FAIL_CM_STALE is another. */
#define CM_REJECT_CONSUMER 28

/* A non-blocking channel. Errors:
 *   -ENOMEM  the process is out of memory
 *   other    of rdma_create_event_channel (no rdma_ucm, no access to /dev/infiniband/rdma_cm, no descriptor) or of fcntl
 */
int cm_channel_new(struct cm_channel **out) __attribute__((warn_unused_result));
/* All ids must be gone. NULL-safe. */
void cm_channel_free(struct cm_channel *c);
/* Readable when an event waits; the channel's. */
int cm_channel_fd(const struct cm_channel *c);

/* Takes one event, copies it to *out and acks it: the id may then be destroyed. 1, or 0 when there is none. Errors:
 *   other  of rdma_get_cm_event: the channel is broken
 */
int cm_next_event(struct cm_channel *c, struct cm_event *out) __attribute__((warn_unused_result));

/* Listens on a specific address; port 0 lets the system choose. *port is the one taken; `context` comes with each
 * CM_CONNECT_REQUEST. The caller destroys *out. Errors:
 *   -EADDRINUSE     the port is taken
 *   -EADDRNOTAVAIL  the address is not this machine's
 *   other           of rdma_create_id, rdma_bind_addr or rdma_listen
 */
int cm_listen(struct cm_channel *c, const struct addr *local, int backlog, void *context,
	      struct rdma_cm_id **out, uint16_t *port) __attribute__((warn_unused_result));

/* A new id, whose events have `context`. The caller destroys it. Errors: of rdma_create_id (-ENOMEM). */
int cm_id_new(struct cm_channel *c, void *context, struct rdma_cm_id **out)
	__attribute__((warn_unused_result));
/* Waits for nothing, as events are acked when they are taken. An id that was not accepted is rejected by it. NULL-safe. */
void cm_id_destroy(struct rdma_cm_id *id);
void cm_id_set_context(struct rdma_cm_id *id, void *context);

/* Before the route is resolved: the traffic class of what the id sends, the CM's packets too; the peer is told
 * (RDMA_OPTION_ID_TOS, rdma_set_option(3)). Errors: of rdma_set_option. */
int cm_set_traffic_class(struct rdma_cm_id *id, uint8_t traffic_class) __attribute__((warn_unused_result));

/* Begins to look for the device that leads from `local` (NULL: any address) to `peer`, for `timeout_ms` at most;
 * CM_ADDR_RESOLVED or CM_ADDR_ERROR follows. Errors, after which neither does:
 *   -EADDRNOTAVAIL  `local` is not this machine's
 *   other           of rdma_resolve_addr
 */
int cm_resolve_addr(struct rdma_cm_id *id, const struct addr *local, const struct addr *peer,
		    unsigned timeout_ms) __attribute__((warn_unused_result));
/* The next step after CM_ADDR_RESOLVED; CM_ROUTE_RESOLVED or CM_ROUTE_ERROR follows. Errors, after which neither does: of
 * rdma_resolve_route. */
int cm_resolve_route(struct rdma_cm_id *id, unsigned timeout_ms) __attribute__((warn_unused_result));

/* Addresses of the connection with ports. The peer's is its own claim on the passive side. Errors:
 *   -EAFNOSUPPORT  one is neither IPv4 nor IPv6
 */
int cm_addresses(struct rdma_cm_id *id, struct addr *local, struct addr *peer)
	__attribute__((warn_unused_result));
/* The device an id was resolved to or came in on; NULL before. librdmacm's. */
struct ibv_context *cm_device(const struct rdma_cm_id *id);

/* How long a queue pair of this connection has to rest before it is used again: until no packet of the connection can
 * arrive any more, by the packet lifetime that the CM assumes for its path. `ack_delay` is the device's (local_ca_ack_delay).
 * 18.2 s at most, as the lifetime is the client's claim; 0 if the path is not known. */
uint64_t cm_rest_ns(const struct rdma_cm_id *id, uint8_t ack_delay);

/* When the device sends again what was not acknowledged, and how often. A peer that answers nothing is given up after
 * (count + 1) acknowledge timeouts; a device may make one up to four times as long (IBTA 9.7.6.1.3). */
struct cm_retry {
	uint8_t ack_timeout;		/* n of 4.096 us x 2^n, 1 to 31; 0: CM_ACK_TIMEOUT */
	uint8_t count;			/* 1 to 7, which is without end on Soft-RoCE; 0: CM_RETRIES */
	uint8_t rnr_count_plus_1;	/* of retries to a receiver that is not ready, 0 to 7 (without end); 0: CM_RNR_RETRIES */
	uint8_t rnr_timer_plus_1;	/* code of the time that it asks senders to wait, 0 to 31; 0: CM_RNR_TIMER */
};

/* What of a connection's path its user chose. All zero: it stays as the CM has it. */
struct cm_fabric {
	bool has_traffic_class, has_service_level, has_gid_index;
	uint8_t traffic_class;		/* DSCP and ECN bits of an IP packet */
	uint8_t service_level;		/* on Ethernet the priority, 0 to 7 */
	uint8_t gid_index;		/* of the local port's table: address and kind of packets (RoCE v1 or v2) */
};

/* 268 ms and 6: a peer that is gone is noticed after 1.9 s on Soft-RoCE. */
#define CM_ACK_TIMEOUT 16
#define CM_RETRIES 6
/* Credits keep receive queues from running dry, so a receiver that is not ready is an accident that
 * passes: wait for it without limit (7), and long enough (18 is 5.12 ms) that thousands of waiting senders
 * do not drown the receiver in retries. A receiver that never becomes ready is caught by the liveness probe. */
#define CM_RNR_RETRIES 7
#define CM_RNR_TIMER 18

struct cm_conn_param {
	uint32_t qpn;			/* our QP */
	const void *private_data;
	uint8_t private_bytes;
	uint8_t responder_resources;	/* RDMA READs the peer may have outstanding here */
	uint8_t initiator_depth;	/* and we there */
	struct cm_retry retry;
};

/* Active side, after CM_ROUTE_RESOLVED: CM_CONNECT_RESPONSE, CM_REJECTED, CM_UNREACHABLE or CM_CONNECT_ERROR follows. The
 * private data, 56 bytes at most, is copied. Errors, after which none does: of rdma_connect. */
int cm_connect(struct rdma_cm_id *id, const struct cm_conn_param *p) __attribute__((warn_unused_result));
/* Passive side, when the QP is in RTS: CM_ESTABLISHED follows, or what cm_connect names. The private data, 196 bytes at
 * most, is copied. Errors: of rdma_accept; the id can still be rejected. */
int cm_accept(struct rdma_cm_id *id, const struct cm_conn_param *p) __attribute__((warn_unused_result));
/* Active side, after CM_CONNECT_RESPONSE, when the QP is in RTS: tells the peer. No event follows. From now on a
 * disconnect is owed. Errors: of rdma_establish. */
int cm_establish(struct rdma_cm_id *id) __attribute__((warn_unused_result));
/* Passive side, instead of cm_accept; the private data, 148 bytes at most, is copied. A reject that cannot be sent is
 * not an error of ours: the peer times out. */
void cm_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_bytes);
/* Asks the peer to disconnect, or answers its request; CM_DISCONNECTED follows, if it did not come before. The QP is left
 * as it is. Errors, after which nothing is to be waited for: of rdma_disconnect. */
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
	struct cm_retry retry;
	struct cm_fabric fabric;
	bool verify;		/* read the PSNs back with ibv_query_qp: -EBADMSG if they differ */
};

/* What the CM worked out for a connection's path: where packets go and with which MTU. Asked for once, because
 * it is a system call. */
struct cm_path {
	struct ibv_qp_attr rtr;
	int mask;
};

/* On the passive side from CM_CONNECT_REQUEST on, on the active one from CM_CONNECT_RESPONSE on. Errors: of
 * rdma_init_qp_attr (the id was disconnected meanwhile). */
int cm_get_path(struct rdma_cm_id *id, struct cm_path *out) __attribute__((warn_unused_result));

/* The IP address to which packets of this path will really go: its destination GID. Errors:
 *   -EAFNOSUPPORT  the path has no GID, or it holds no IP address of the family of the connection's addresses. So it is on
 *                  InfiniBand; on Ethernet such a path leads elsewhere than the peer claims.
 */
int cm_path_peer(struct rdma_cm_id *id, const struct cm_path *path, struct addr *out)
	__attribute__((warn_unused_result));

/* RESET or INIT -> RTR -> RTS along `path`, with our PSNs, access flags, timers and retry counts. Errors, after which the
 * QP may be in any of these states:
 *   -EBADMSG  `verify`: the QP has other PSNs than it was given
 *   other     of rdma_init_qp_attr, ibv_modify_qp or ibv_query_qp
 */
int cm_program_qp(struct rdma_cm_id *id, struct ibv_qp *qp, const struct cm_path *path,
		  const struct cm_qp_param *p) __attribute__((warn_unused_result));

/* What a queue pair really has, as the device says. */
struct cm_qp_values {
	uint16_t path_mtu_bytes;	/* 0: not connected */
	uint8_t ack_timeout;		/* n of 4.096 us x 2^n; 0: without end */
	uint8_t retry_count;
	uint8_t rnr_retry;		/* 7: without end */
	uint8_t rnr_timer;		/* code of IBTA table 45 */
	uint8_t traffic_class;		/* 0 without a global route */
	uint8_t service_level;		/* priority on Ethernet */
	uint8_t gid_index;
};

/* What a code of the receiver-not-ready timer means (IBTA 9.7.5.2.8, table 45). Only the low 5 bits count. */
uint64_t cm_rnr_timer_ns(uint8_t code);

/* A system call. Errors: of ibv_query_qp. */
int cm_read_qp(struct ibv_qp *qp, struct cm_qp_values *out) __attribute__((warn_unused_result));

/* The send PSN the CM would have used, for people and tests. Errors: of rdma_init_qp_attr. */
int cm_own_psn(struct rdma_cm_id *id, uint32_t *out) __attribute__((warn_unused_result));

#endif
