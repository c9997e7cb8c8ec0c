/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager in memory behind the symbols of librdmacm: ids, the calls made on them, and
 * events that the test pushes into a channel with a real descriptor. */
#ifndef RAMPART_TESTS_UNIT_FAKE_RDMACM_H
#define RAMPART_TESTS_UNIT_FAKE_RDMACM_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "common/base/addr.h"

/* Knobs; fake_rdmacm_reset sets the values in brackets. */
struct fake_cm {
	bool no_device;			/* binding finds no device [false] */
	struct ibv_context *resolves_to;	/* device of a resolved address [the fake one] */
	uint16_t next_port;		/* what the system chooses next [40000] */
	uint8_t rd_atomic; /* responder resources and depth of the path's attributes and of events [16] */
	uint32_t sq_psn, rq_psn;	/* what the CM would use [0xc0ffee, 0xdecade] */
	bool global_route;		/* the path has a GRH, as RoCE always does [true] */
	struct addr path_peer;		/* destination GID; len 0: the id's peer address [len 0] */
	/* Connections lead to listeners in this process, and what is sent over them arrives: events come by themselves
	 * [false] */
	bool wire;
};
extern struct fake_cm fake_cm;

void fake_rdmacm_reset(void);

enum fake_cm_op {
	FAKE_CM_CONNECT,
	FAKE_CM_ACCEPT,
	FAKE_CM_ESTABLISH,
	FAKE_CM_REJECT,
	FAKE_CM_DISCONNECT,
	FAKE_CM_RESOLVE_ADDR,
	FAKE_CM_RESOLVE_ROUTE,
	FAKE_CM_LISTEN,
	FAKE_CM_SET_TOS,
	FAKE_CM_DESTROY,	/* not recorded */
	FAKE_CM_OPS
};

/* A call as it was made; the private data is copied. */
struct fake_cm_call {
	enum fake_cm_op op;
	struct rdma_cm_id *id;		/* may be gone since */
	struct rdma_conn_param param;
	uint8_t private_data[256];
	struct addr src, dst;		/* resolve */
	int number;			/* backlog, timeout in ms, or traffic class */
};
/* The last call of this kind, or NULL; and how many there were. */
const struct fake_cm_call *fake_cm_last(enum fake_cm_op op);
uint32_t fake_cm_calls(enum fake_cm_op op);

/* The i-th id that exists, newest first, without those that only keep a device open; NULL beyond the last. */
struct rdma_cm_id *fake_cm_id(uint32_t i);
uint32_t fake_cm_ids(void);

/* An event to come out of the id's channel. Data is copied, and overwritten once it is acked. */
void fake_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, uint32_t qpn,
		   const void *data, uint8_t bytes);
/* A connection request at `listener` from `peer`; returns its new id. */
struct rdma_cm_id *fake_cm_request(struct rdma_cm_id *listener, const struct addr *peer,
				   uint32_t qpn, const void *data, uint8_t bytes);
uint32_t fake_cm_acked(void);

/* Told of every call that succeeded, if it is not NULL. */
extern void (*fake_cm_called)(const struct fake_cm_call *call);

#endif
