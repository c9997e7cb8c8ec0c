/* SPDX-License-Identifier: BSD-2-Clause */
/* The fakes' objects, for their own files. */
#ifndef RAMPART_TESTS_UNIT_FAKE_OBJECTS_H
#define RAMPART_TESTS_UNIT_FAKE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

struct fake_pd {
	struct ibv_pd pd;
	uint32_t users;
};

struct fake_channel {
	struct ibv_comp_channel ch;
	struct fake_cq **events;
	uint32_t n_events, room;
	uint32_t cqs;
};

struct fake_cq {
	struct ibv_cq cq;
	struct fake_channel *channel;
	struct ibv_wc *wcs;	/* ring of cq.cqe entries */
	uint32_t head, n, polls;
	uint32_t got, acked;	/* events */
	uint32_t qps;
	bool armed, solicited_only;
	struct fake_cq *next;
};

struct fake_recv {
	uint64_t wr_id, addr;
	uint32_t length;
};

struct fake_srq {
	struct ibv_srq srq;
	struct fake_recv *recvs;	/* ring of max entries */
	uint32_t head, n, max, qps;
	uint32_t limit;		/* with fewer receives it raises an event; 0: it does not */
};

struct fake_send {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	bool signalled;
};

struct fake_mr {
	struct ibv_mr mr;
	int access;
	uint32_t windows;
};

struct fake_mw {
	struct ibv_mw mw;
	struct fake_qp *qp;	/* bound to; NULL while unbound */
	struct fake_mr *mr;
};

struct fake_qp {
	struct ibv_qp qp;
	enum ibv_qp_state state;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr;	/* what was set, accumulated */
	struct fake_send *sends;	/* ring of cap.max_send_wr */
	uint32_t head, n;
	uint32_t windows;
	uint32_t events;	/* asynchronous ones taken and not acked */
	uint32_t remote;	/* with fake_cm.wire: the number at the other end; 0: not connected */
	struct fake_qp *next;
};

struct fake_id {
	struct rdma_cm_id id;
	uint32_t unacked;	/* events taken that count against this id */
	/* with fake_cm.wire */
	struct fake_id *other;	/* the other end's */
	uint32_t qpn;		/* of its queue pair, once it is known */
	bool listens, disconnected;
	bool is_anchor;		/* bound to an address, and neither listening nor resolved: see dev.h */
	struct fake_id *next;
};

/* fake_queues.c: the data path. */
void fake_queues_reset(void);
void fake_queues_plug_in(struct ibv_context *ctx);
void fake_flush(struct fake_qp *q);
void fake_forget_sends(struct fake_qp *q);
void fake_register_srq(struct fake_srq *s);
struct ibv_srq *fake_srq(void);	/* the last one made */
/* The send arrives at this queue pair. False if no receive was posted. */
bool fake_arrive(struct ibv_qp *qp, const struct ibv_send_wr *wr);

/* fake_async.c */
void fake_async_reset(struct ibv_context *ctx);
void fake_async_check(void);
void fake_async_forget(const struct ibv_qp *qp);
void fake_async_of_srq(struct ibv_srq *srq, enum ibv_event_type type);

/* fake_verbs.c */
struct fake_qp *fake_first_qp(void);

/* fake_rdmacm.c */
struct fake_id *fake_first_id(void);

/* fake_wire.c: what these calls do to the other end. */
void fake_wire_connect(struct fake_id *i, const struct rdma_conn_param *p);
void fake_wire_accept(struct fake_id *i, const struct rdma_conn_param *p);
void fake_wire_establish(struct fake_id *i, const struct rdma_conn_param *p);
void fake_wire_reject(struct fake_id *i, const struct rdma_conn_param *p);
void fake_wire_disconnect(struct fake_id *i, const struct rdma_conn_param *p);
void fake_wire_destroy(struct fake_id *i);
void fake_wire_send(struct fake_qp *q, const struct ibv_send_wr *wr);	/* it is the last in the send queue */

#endif
