/* SPDX-License-Identifier: BSD-2-Clause */
/* The RDMA side of a raw client: one connection, each step by itself, with a time limit for each wait.
 *
 * A link has its own endpoint, QP pool and CM channel, so that several in one process are as strange to
 * each other as two processes. Nothing of it keeps to the protocol by itself.
 */
#ifndef RAMPART_TESTS_SOFT_ROCE_LINK_H
#define RAMPART_TESTS_SOFT_ROCE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/auth.h"
#include "common/rdma/cm.h"
#include "common/rdma/rc.h"
#include "tests/adversary/wire.h"

#define LINK_BUF_BYTES 20480u	/* more than the largest message of any server that is attacked */
#define LINK_MESSAGES_MAX 250u	/* that can be posted at once */

struct link {
	struct rogue *r;
	struct wire wire;
	struct reply reply;		/* the last of the bootstrap */
	struct frame_hello hello;
	struct frame_grant grant;
	struct auth_keys keys;
	struct ep *ep;
	struct qp_pool *pool;
	struct cm_channel *cm;
	struct rc rc;
	uint32_t sq_psn;		/* to program; the HELLO's unless changed */
	uint32_t claimed_qpn;		/* what the request says; 0: the truth */
	uint8_t rnr_retries;		/* to program; 7: without end */
	bool hoards;			/* receives that were used are not posted again */
	uint32_t server_qpn;
	/* what happened */
	struct cm_event event;		/* the last one not asked for */
	bool has_event;
	enum ibv_wc_status wc_status;	/* of the first completion that failed */
	uint32_t sends_done, received, received_bytes;
	bool one_sided_done;
	uint8_t last[64];		/* beginning of the last message received */
};

/* Makes the verbs resources. On failure nothing is held. 0 or -errno. */
int link_new(struct rogue *r, struct link *l) __attribute__((warn_unused_result));
/* The same with other sizes: messages that can be posted at once, replies that it has receives for, bytes of each. */
int link_new_sized(struct rogue *r, struct link *l, uint32_t messages, uint32_t receives, uint32_t buf_bytes)
	__attribute__((warn_unused_result));
/* Ends whatever there is, without a word to the server. */
void link_free(struct link *l);

/* TLS from `source` (NULL: the device's address), HELLO; keys and grant are then known, and TLS stays
 * open. False with l->reply otherwise. */
bool link_grant(struct link *l, const char *source) __attribute__((warn_unused_result));

/* A CM id resolved to the granted address, but `port` unless 0, and a QP. */
bool link_resolve(struct link *l, uint16_t port) __attribute__((warn_unused_result));

/* The right private data for this connection, to be spoilt: proof with `key` for QP number `qpn`. */
void link_proof(struct link *l, const uint8_t *key, uint32_t qpn, uint8_t out[PDATA_PROOF_BYTES]);

/* Sends the request with this private data and waits for the answer, which is in l->event. */
bool link_request(struct link *l, const void *data, uint8_t bytes) __attribute__((warn_unused_result));

/* RESET to RTS as l->grant.psn, what the peer sends from, and l->sq_psn say. */
bool link_program(struct link *l) __attribute__((warn_unused_result));
/* Programs the QP and completes the connection. */
bool link_establish(struct link *l) __attribute__((warn_unused_result));

/* All of the above as it should be; closes TLS. On failure says so and returns false. */
bool link_connect(struct link *l, const struct frame_hello *hello) __attribute__((warn_unused_result));

/* Posts the message as it is, without header or checks. */
bool link_send(struct link *l, const void *data, uint32_t bytes) __attribute__((warn_unused_result));
/* A right echo request of `bytes`. */
bool link_echo(struct link *l, uint32_t bytes) __attribute__((warn_unused_result));

/* True if an echo comes back. */
bool link_works(struct link *l) __attribute__((warn_unused_result));

/* Runs until `done(l)`, or the time limit: false. */
bool link_wait(struct link *l, bool (*done)(const struct link *l));
bool link_has_ended(const struct link *l);	/* an event or a failed completion came */

/* One request and its completion: IBV_WC_SUCCESS, or the status it failed with; LINK_NO_WC when
 * neither came. `data` is written from or read into. */
#define LINK_NO_WC (-1)
int link_one_sided(struct link *l, enum ibv_wr_opcode opcode, void *data, uint32_t bytes, uint64_t addr,
		   uint32_t rkey);

/* Disconnects and waits for the server to do the same. */
bool link_disconnect(struct link *l);

/* Says what the server did: "rejected: bad_session", "wc: remote_access", "disconnected". */
int link_answer(struct link *l);
/* The same for a status that link_one_sided returned. */
const char *link_wc_name(int status);

#endif
