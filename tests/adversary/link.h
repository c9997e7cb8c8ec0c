/* SPDX-License-Identifier: BSD-2-Clause */
/* The RDMA side of a raw client: one connection, driven step by step, with a time limit for each wait. It obeys the
 * protocol only as far as its caller does.
 * Each link has its own endpoint, QP pool and CM channel, so several links in one process know as little of each other
 * as two processes do. */
#ifndef RAMPART_TESTS_SOFT_ROCE_LINK_H
#define RAMPART_TESTS_SOFT_ROCE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/auth.h"
#include "common/rdma/cm.h"
#include "common/rdma/rc.h"
#include "tests/adversary/wire.h"

#define LINK_BUF_BYTES 20480u	/* more than the largest message of any server under attack */
#define LINK_MESSAGES_MAX 250u	/* messages that can be posted at once */

struct link {
	struct rogue *r;
	struct wire wire;
	struct reply reply;		/* the last reply of the bootstrap */
	struct frame_hello hello;
	struct frame_grant grant;
	struct auth_keys keys;
	struct ep *ep;
	struct qp_pool *pool;
	struct cm_channel *cm;
	struct rc rc;
	uint32_t sq_psn;		/* programmed into the QP; the HELLO's unless changed */
	uint32_t claimed_qpn;		/* the QP number that the request claims; 0: the real one */
	uint8_t rnr_retries;		/* programmed into the QP; 7: retry without end */
	bool hoards;			/* does not repost receives after use */
	bool oob_connected, probed;	/* out of band: the server's PROOF came; link_wait has sent its echo */
	uint32_t server_qpn;
	/* results */
	struct cm_event event;		/* the last event that no step waited for */
	bool has_event;
	enum ibv_wc_status wc_status;	/* of the first failed completion */
	uint32_t sends_done, received, received_bytes;
	bool one_sided_done;
	uint8_t last[64];		/* beginning of the last message received */
};

/* Makes the verbs resources; holds nothing on failure. Returns 0 or -errno. */
int link_new(struct rogue *r, struct link *l) __attribute__((warn_unused_result));
/* The same with other sizes: messages that can be posted at once, receives for replies, bytes of each. */
int link_new_sized(struct rogue *r, struct link *l, uint32_t messages, uint32_t receives, uint32_t buf_bytes)
	__attribute__((warn_unused_result));
/* Frees everything that exists. The server is told by the kernel, and out of band by a GOODBYE. */
void link_free(struct link *l);

/* Connects TLS from `source` (NULL: the device's address) and sends HELLO. On success the keys and the grant are known
 * and TLS stays open; otherwise returns false with the reason in l->reply. */
bool link_grant(struct link *l, const char *source) __attribute__((warn_unused_result));

/* Makes a QP, and a CM id that is resolved to the granted address, with `port` unless 0. Out of band there is nothing
 * to do, because the HELLO named a QP. */
bool link_resolve(struct link *l, uint16_t port) __attribute__((warn_unused_result));

/* Writes correct private data, for the caller to corrupt: a proof with `key` for the QP number `qpn`. Out of band, the
 * message PROOF. Returns its length. */
uint8_t link_proof(struct link *l, const uint8_t *key, uint32_t qpn, uint8_t out[PDATA_PROOF_BYTES]);

/* Sends the request with this private data and waits for the answer, which is left in l->event. Out of band it programs
 * the QP and sends the data as the first message; the server's PROOF counts as CM_CONNECT_RESPONSE. */
bool link_request(struct link *l, const void *data, uint8_t bytes) __attribute__((warn_unused_result));

/* Takes the QP from RESET to RTS; the peer sends from l->grant.psn, and this end from l->sq_psn. */
bool link_program(struct link *l) __attribute__((warn_unused_result));
/* Programs the QP and completes the connection. */
bool link_establish(struct link *l) __attribute__((warn_unused_result));

/* Does all of the above correctly and closes TLS. On failure prints why and returns false. */
bool link_connect(struct link *l, const struct frame_hello *hello) __attribute__((warn_unused_result));

/* Posts the message unchanged, without adding a header or checking anything. */
bool link_send(struct link *l, const void *data, uint32_t bytes) __attribute__((warn_unused_result));
/* Sends a correct echo request of `bytes`. */
bool link_echo(struct link *l, uint32_t bytes) __attribute__((warn_unused_result));

/* True if an echo comes back. */
bool link_works(struct link *l) __attribute__((warn_unused_result));

/* Runs until `done(l)` holds; false after the time limit. Out of band a server that ends the connection sends nothing,
 * so an echo is sent when nothing has come for a while; a server that no longer acknowledges it counts as
 * CM_DISCONNECTED. */
bool link_wait(struct link *l, bool (*done)(const struct link *l));
bool link_has_ended(const struct link *l);	/* an event or a failed completion came */

/* Posts one request and waits for its completion. Returns IBV_WC_SUCCESS, the status it failed with, or LINK_NO_WC if
 * neither came. `data` is the source of a WRITE and the destination of a READ. */
#define LINK_NO_WC (-1)
int link_one_sided(struct link *l, enum ibv_wr_opcode opcode, void *data, uint32_t bytes, uint64_t addr,
		   uint32_t rkey);

/* Disconnects and waits for the server to do the same. */
bool link_disconnect(struct link *l);

/* Prints what the server did: "rejected: bad_session", "wc: remote_access", "disconnected". */
int link_answer(struct link *l);
/* The name of a status that link_one_sided returned, as link_answer prints it. */
const char *link_wc_name(int status);

#endif
