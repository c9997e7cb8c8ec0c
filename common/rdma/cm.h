/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager, translated: rdmacm's ids and events as rampart uses them.
 *
 * The caller owns the QPs ("user-managed"), because it sets packet sequence numbers itself. All ids of a channel are
 * created, used and destroyed on the channel's thread, and every function here is called on it. Functions that can fail
 * return 0 or a negative error; each prototype lists its own. An error listed as "from rdma_x" is -errno as that
 * function of librdmacm leaves it (rdma_cm(7)); -EINVAL means that the id is in the wrong state for the call. Events
 * are copied and acked before they are acted on, because rdma_destroy_id waits for the acks of an id's events.
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
	CM_CONNECT_REQUEST,	/* id is new, and owned by whoever takes the event */
	CM_CONNECT_RESPONSE,	/* the server accepted; program the QP, then cm_establish */
	CM_ESTABLISHED,
	CM_DISCONNECTED,
	CM_REJECTED,		/* status: reason (IBTA 12.6.7.2); with reason 28, private data from the server */
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
	uint8_t reads;		/* limit of outstanding READs and atomics: client's request, or what it was granted */
	uint8_t private_data[CM_PRIVATE_MAX];
	uint32_t private_bytes;
};

/* Reject reason "consumer reject" (IBTA 12.6.7.2): the peer's application rejected, and chose the private data.
 * FAIL_CM_STALE is another reason. */
#define CM_REJECT_CONSUMER 28

/* Creates a non-blocking channel. Errors:
 *   -ENOMEM  the process is out of memory
 *   other    from rdma_create_event_channel (no rdma_ucm, no access to /dev/infiniband/rdma_cm, no descriptor) or fcntl
 */
int cm_channel_new(struct cm_channel **out) __attribute__((warn_unused_result));
/* All ids must be gone. NULL-safe. */
void cm_channel_free(struct cm_channel *c);
/* Descriptor that is readable when an event is pending. The channel keeps it. */
int cm_channel_fd(const struct cm_channel *c);

/* Takes one event, copies it to *out and acks it, so that the id may be destroyed. Returns 1, or 0 if no event is
 * pending. Errors: from rdma_get_cm_event: the channel is broken. */
int cm_next_event(struct cm_channel *c, struct cm_event *out) __attribute__((warn_unused_result));

/* Listens on a specific address; port 0 lets the system choose, and *port is set to the port in use. Each
 * CM_CONNECT_REQUEST carries `context`. The caller destroys *out. Errors:
 *   -EADDRINUSE     the port is taken
 *   -EADDRNOTAVAIL  the address is not this machine's
 *   other           from rdma_create_id, rdma_bind_addr or rdma_listen
 */
int cm_listen(struct cm_channel *c, const struct addr *local, int backlog, void *context,
	      struct rdma_cm_id **out, uint16_t *port) __attribute__((warn_unused_result));

/* Creates an id whose events carry `context`. The caller destroys it. Errors: from rdma_create_id (-ENOMEM). */
int cm_id_new(struct cm_channel *c, void *context, struct rdma_cm_id **out)
	__attribute__((warn_unused_result));
/* Does not block, because events are acked when taken. Rejects a connection that was not accepted. NULL-safe. */
void cm_id_destroy(struct rdma_cm_id *id);
void cm_id_set_context(struct rdma_cm_id *id, void *context);

/* Sets the traffic class of all packets of the id, including the CM's; the CM tells the peer (RDMA_OPTION_ID_TOS,
 * rdma_set_option(3)). Call before the route is resolved. Errors: from rdma_set_option. */
int cm_set_traffic_class(struct rdma_cm_id *id, uint8_t traffic_class) __attribute__((warn_unused_result));

/* Starts the search for the device that leads from `local` (NULL: any address) to `peer`, for at most `timeout_ms`.
 * CM_ADDR_RESOLVED or CM_ADDR_ERROR follows. Errors, after which no event follows:
 *   -EADDRNOTAVAIL  `local` is not this machine's
 *   other           from rdma_resolve_addr
 */
int cm_resolve_addr(struct rdma_cm_id *id, const struct addr *local, const struct addr *peer,
		    unsigned timeout_ms) __attribute__((warn_unused_result));
/* The next step after CM_ADDR_RESOLVED; CM_ROUTE_RESOLVED or CM_ROUTE_ERROR follows. Errors, after which no event
 * follows: from rdma_resolve_route. */
int cm_resolve_route(struct rdma_cm_id *id, unsigned timeout_ms) __attribute__((warn_unused_result));

/* Addresses and ports of the connection. On the passive side, the peer's address is only the peer's claim. Errors:
 *   -EAFNOSUPPORT  an address is neither IPv4 nor IPv6
 */
int cm_addresses(struct rdma_cm_id *id, struct addr *local, struct addr *peer)
	__attribute__((warn_unused_result));
/* The device an id was resolved to or came in on; NULL before that. librdmacm owns it. */
struct ibv_context *cm_device(const struct rdma_cm_id *id);

/* How long a queue pair of this connection must rest before it is reused: until no packet of the connection can arrive
 * any more, given the packet lifetime that the CM assumes for the path. `ack_delay` is the device's local_ca_ack_delay.
 * Capped at 18.2 s, because the lifetime is the client's claim; 0 if the path is unknown. */
uint64_t cm_rest_ns(const struct rdma_cm_id *id, uint8_t ack_delay);

/* When and how often the device retransmits unacknowledged packets. It gives a silent peer up after (count + 1)
 * acknowledge timeouts, each of which a device may stretch up to fourfold (IBTA 9.7.6.1.3). */
struct cm_retry {
	uint8_t ack_timeout;		/* n of 4.096 us x 2^n, 1 to 31; 0: CM_ACK_TIMEOUT */
	uint8_t count;			/* 1 to 7 (7 is unlimited on Soft-RoCE); 0: CM_RETRIES */
	uint8_t rnr_count_plus_1;	/* 1 + retries at an unready receiver (7: unlimited); 0: CM_RNR_RETRIES */
	uint8_t rnr_timer_plus_1;	/* 1 + code (0 to 31) of the wait it asks of senders; 0: CM_RNR_TIMER */
};

/* Path settings the user chose for a connection. All zero: keep the CM's settings. */
struct cm_fabric {
	bool has_traffic_class, has_service_level, has_gid_index;
	uint8_t traffic_class;		/* DSCP and ECN bits of an IP packet */
	uint8_t service_level;		/* on Ethernet, the priority: 0 to 7 */
	uint8_t gid_index;		/* in the local port's GID table: address and packet format (RoCE v1 or v2) */
};

/* 268 ms and 6 retries: Soft-RoCE notices after 1.9 s that a peer is gone. */
#define CM_ACK_TIMEOUT 16
#define CM_RETRIES 6
/* Credits keep receive queues from running dry; a receiver that is not ready nevertheless will be ready soon. So retry
 * without limit (7), and wait long enough (18 is 5.12 ms) that thousands of waiting senders do not drown the receiver
 * in retries. The liveness probe detects a receiver that never becomes ready. */
#define CM_RNR_RETRIES 7
#define CM_RNR_TIMER 18

struct cm_conn_param {
	uint32_t qpn;			/* our QP */
	const void *private_data;
	uint8_t private_bytes;
	uint8_t responder_resources;	/* RDMA READs the peer may have outstanding here */
	uint8_t initiator_depth;	/* RDMA READs we may have outstanding at the peer */
	struct cm_retry retry;
};

/* Active side, after CM_ROUTE_RESOLVED. CM_CONNECT_RESPONSE, CM_REJECTED, CM_UNREACHABLE or CM_CONNECT_ERROR follows.
 * The private data, at most 56 bytes, is copied. Errors, after which no event follows: from rdma_connect. */
int cm_connect(struct rdma_cm_id *id, const struct cm_conn_param *p) __attribute__((warn_unused_result));
/* Passive side, when the QP is in RTS. CM_ESTABLISHED follows, or an error event listed at cm_connect. The private
 * data, at most 196 bytes, is copied. Errors: from rdma_accept; the id can still be rejected. */
int cm_accept(struct rdma_cm_id *id, const struct cm_conn_param *p) __attribute__((warn_unused_result));
/* Active side, after CM_CONNECT_RESPONSE, when the QP is in RTS: tells the peer that the connection is ready. No event
 * follows. From now on the caller must disconnect. Errors: from rdma_establish. */
int cm_establish(struct rdma_cm_id *id) __attribute__((warn_unused_result));
/* Passive side, instead of cm_accept; the private data, at most 148 bytes, is copied. A reject that cannot be sent is
 * not reported as an error: the peer then times out. */
void cm_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_bytes);
/* Asks the peer to disconnect, or answers its request; CM_DISCONNECTED follows, unless it came before. The state of the
 * QP does not change. Errors, after which no event follows: from rdma_disconnect. */
int cm_disconnect(struct rdma_cm_id *id) __attribute__((warn_unused_result));

struct cm_qp_param {
	uint32_t rq_psn;	/* the peer's send PSN */
	uint32_t sq_psn;	/* ours */
	bool remote_write;	/* grant RDMA WRITE to the peer; even a 0-byte probe needs it */
	bool remote_read;
	bool remote_atomic;
	uint8_t reads;		/* maximum of RDMA READs and atomics the peer may have outstanding here */
	uint8_t own_reads;	/* RDMA READs and atomics we may have outstanding at the peer */
	enum ibv_mtu path_mtu;	/* upper limit; 0: the path's MTU */
	struct cm_retry retry;
	struct cm_fabric fabric;
	bool verify;		/* read the PSNs back with ibv_query_qp: -EBADMSG if they differ */
};

/* A connection's path as the CM determined it: destination and MTU of its packets. Query it once: it is a system
 * call. */
struct cm_path {
	struct ibv_qp_attr rtr;
	int mask;
};

/* Available from CM_CONNECT_REQUEST on (passive side) or from CM_CONNECT_RESPONSE on (active side). Errors: from
 * rdma_init_qp_attr (the id was disconnected meanwhile). */
int cm_get_path(struct rdma_cm_id *id, struct cm_path *out) __attribute__((warn_unused_result));

/* One end of a connection that is made without the connection manager, as the other end needs to know it. */
struct cm_end {
	union ibv_gid gid;	/* unused on InfiniBand */
	uint16_t lid;		/* unused on Ethernet */
	enum ibv_mtu mtu;	/* the port's */
	uint32_t qpn;
};

struct dev;

/* Makes the path from the device's port to `peer` without the connection manager; on InfiniBand within the subnet. At
 * most `reads` READs and atomics of the peer may be outstanding. No system call. */
void cm_make_path(const struct dev *d, const struct cm_end *peer, uint8_t reads, struct cm_path *out);

/* The IP address to which packets of this path will really go: its destination GID. Errors:
 *   -EAFNOSUPPORT  the path has no GID, or the GID is no IP address of the family of the connection's addresses. This
 *                  is normal on InfiniBand; on Ethernet such a path leads elsewhere than the peer claims.
 */
int cm_path_peer(struct rdma_cm_id *id, const struct cm_path *path, struct addr *out)
	__attribute__((warn_unused_result));

/* Moves the QP from RESET or INIT through RTR to RTS along `path`, with the caller's PSNs, access flags, timers and
 * retry counts. `id` is NULL with a path of cm_make_path. Then on Ethernet the kernel looks up the peer's MAC address,
 * for up to a second unless it was in contact with the peer lately. Errors, after which the QP may be in any of these
 * states:
 *   -EBADMSG  `verify`: the QP has other PSNs than it was given
 *   other     from rdma_init_qp_attr, ibv_modify_qp or ibv_query_qp
 */
int cm_program_qp(struct rdma_cm_id *id, struct ibv_qp *qp, const struct cm_path *path,
		  const struct cm_qp_param *p) __attribute__((warn_unused_result));

/* A queue pair's actual settings, as the device reports them. */
struct cm_qp_values {
	uint16_t path_mtu_bytes;	/* 0: not connected */
	uint8_t ack_timeout;		/* n of 4.096 us x 2^n; 0: unlimited */
	uint8_t retry_count;
	uint8_t rnr_retry;		/* 7: unlimited */
	uint8_t rnr_timer;		/* code of IBTA table 45 */
	uint8_t traffic_class;		/* 0 without a global route */
	uint8_t service_level;		/* priority on Ethernet */
	uint8_t gid_index;
};

/* The time that a receiver-not-ready timer code stands for (IBTA 9.7.5.2.8, table 45). Only the low 5 bits count. */
uint64_t cm_rnr_timer_ns(uint8_t code);

/* Makes a system call. Errors: from ibv_query_qp. */
int cm_read_qp(struct ibv_qp *qp, struct cm_qp_values *out) __attribute__((warn_unused_result));

/* The send PSN that the CM would have used, for display and tests. Errors: from rdma_init_qp_attr. */
int cm_own_psn(struct rdma_cm_id *id, uint32_t *out) __attribute__((warn_unused_result));

#endif
