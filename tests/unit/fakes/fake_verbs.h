/* SPDX-License-Identifier: BSD-2-Clause */
/* A device in memory behind the symbols of libibverbs: objects, queue pair states, posted requests
 * and completions that the test scripts.
 *
 * Sends wait on their QP until the test completes them; a QP that goes to ERR flushes them, and one
 * in ERR flushes what is posted. Receives wait in the SRQ until the test delivers a message. A
 * completion on an armed queue raises one event on its channel, whose descriptor is a real eventfd.
 */
#ifndef RAMPART_TESTS_UNIT_FAKE_VERBS_H
#define RAMPART_TESTS_UNIT_FAKE_VERBS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct addr;
struct dev;

/* Knobs and the device's description; fake_verbs_reset sets rxe-like defaults. */
struct fake_device {
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint32_t inline_max;		/* more makes ibv_create_qp fail with EINVAL */
	uint32_t next_qpn;
	uint32_t (*qpn_source)(void);	/* instead of next_qpn, if not NULL */
	bool swallows_flushes;		/* a queue pair in ERR flushes nothing */
	uint32_t psn_skew;		/* added to the sq_psn that ibv_query_qp reports */
	struct ibv_gid_entry gids[4];
	uint32_t n_gids;
	int devices;			/* that ibv_get_device_list shows [1] */
};
extern struct fake_device fake_device;

void fake_verbs_reset(void);
struct ibv_context *fake_context(void);
/* A struct dev as dev_open would give, without a CM id. */
void fake_dev(struct dev *out);

/* Everything posted to any send queue, in order. */
struct fake_post {
	uint32_t qpn;
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	uint64_t addr;			/* of the first element; 0 without one */
	uint32_t length, lkey;
	uint32_t imm;			/* immediate data of a send */
	uint64_t remote_addr;
	uint32_t rkey;			/* one-sided: remote's; bind: the window's new one */
	struct ibv_mw *mw;
	struct ibv_mw_bind_info bind;
	uint8_t head[32];		/* first bytes of the data as they were when posted */
};
const struct fake_post *fake_posts(uint32_t *n);
void fake_posts_forget(void);
/* Told of every request that a queue pair in RTS took, if it is not NULL. */
extern void (*fake_posted)(struct ibv_qp *qp, const struct ibv_send_wr *wr);
uint32_t fake_doorbells(void);	/* calls of ibv_post_send since then */

/* Every successful ibv_modify_qp, in order. */
struct fake_modify {
	uint32_t qpn;
	int mask;
	struct ibv_qp_attr attr;
};
const struct fake_modify *fake_modifies(uint32_t *n);
/* Told of every transition, with the PSNs that the queue pair has, and with IBV_QPS_RESET when it is destroyed, if it
 * is not NULL. */
extern void (*fake_moved)(struct ibv_qp *qp, enum ibv_qp_state to, uint32_t sq_psn, uint32_t rq_psn);
/* The last transition of this QP to `state`, or NULL. */
const struct fake_modify *fake_modified_to(uint32_t qpn, enum ibv_qp_state state);

enum ibv_qp_state fake_qp_state(const struct ibv_qp *qp);
struct ibv_qp *fake_qp_of(uint32_t qpn);	/* NULL if there is none */
const struct ibv_qp_cap *fake_qp_cap(const struct ibv_qp *qp);
uint32_t fake_qp_outstanding(const struct ibv_qp *qp);
uint32_t fake_qps(void);

/* Completes up to `n` outstanding sends of the QP in order. A status other than success completes
 * one with it and takes the QP to ERR, which flushes the rest. Returns how many left the queue. */
uint32_t fake_complete_sends(struct ibv_qp *qp, uint32_t n, enum ibv_wc_status status);
/* Lets a message arrive. False if the SRQ is empty (receiver not ready). */
bool fake_deliver(struct ibv_qp *qp, const void *data, uint32_t bytes);
/* The same without the solicited event bit. */
bool fake_deliver_unsolicited(struct ibv_qp *qp, const void *data, uint32_t bytes);
/* The same with immediate data. */
bool fake_deliver_imm(struct ibv_qp *qp, const void *data, uint32_t bytes, uint32_t imm);
/* A receive that is taken by a WRITE with immediate data; the memory that it went to is not looked at. */
bool fake_deliver_write_imm(struct ibv_qp *qp, uint32_t bytes, uint32_t imm);
/* A receive that fails. */
bool fake_deliver_error(struct ibv_qp *qp, enum ibv_wc_status status);
/* Any completion. */
void fake_push_wc(struct ibv_cq *cq, const struct ibv_wc *wc);

/* Asynchronous events, which come out of the context's descriptor; at most 64 wait. One of a queue pair is refused,
 * as a broken rule, if the queue pair is destroyed before it was acked. */
void fake_async_qp(struct ibv_qp *qp, enum ibv_event_type type);
void fake_async_cq(struct ibv_cq *cq);		/* IBV_EVENT_CQ_ERR */
void fake_async_srq(enum ibv_event_type type);	/* of the only shared receive queue */
void fake_async_device(enum ibv_event_type type);
/* From now on reading them fails with `err`, as when the device is gone. */
void fake_async_end(int err);
uint32_t fake_async_waiting(void);

uint32_t fake_srq_posted(void);			/* receives waiting in all SRQs */
uint32_t fake_srq_posts(void);			/* calls of ibv_post_srq_recv since the reset */
uint32_t fake_srq_limit(void);			/* of the only SRQ; 0: none is armed */
uint64_t fake_srq_wr_id(uint32_t i);		/* of the i-th waiting one */
uint32_t fake_cqs(void);
struct ibv_cq *fake_cq(uint32_t i);		/* in order of creation */
uint32_t fake_cq_waiting(const struct ibv_cq *cq);
bool fake_cq_armed(const struct ibv_cq *cq);
/* How it was armed last. */
bool fake_cq_solicited_only(const struct ibv_cq *cq);
uint32_t fake_cq_polls(const struct ibv_cq *cq);
uint32_t fake_cq_unacked(const struct ibv_cq *cq);	/* events taken and not acked */
uint32_t fake_mrs(void);
pthread_t fake_mr_thread(void);			/* that called ibv_reg_mr last */
int fake_mr_access(uint32_t rkey);		/* of the last memory region made, which has this key */
uint32_t fake_mws(void);
uint32_t fake_mw_last_rkey(void);

#endif
