/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection failed: the stage, the kind of failure and its code. Pure. */
#ifndef RAMPART_COMMON_FAIL_H
#define RAMPART_COMMON_FAIL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/transport.h"

/* Stages of a client's life, in order; the first ten are timed (STAGE_TIMED). */
enum stage {
	STAGE_TCP_CONNECT,
	STAGE_TLS_HANDSHAKE,
	STAGE_PSN_EXCHANGE,
	STAGE_SOCKET_CONNECT,	/* over TCP; the next five are for RDMA */
	STAGE_ADDR_RESOLVE,
	STAGE_ROUTE_RESOLVE,
	STAGE_QP_SETUP,
	STAGE_RDMA_CONNECT,	/* with rdmacm, as ADDR_RESOLVE and ROUTE_RESOLVE */
	STAGE_QP_EXCHANGE,	/* without rdmacm: the proofs, as first messages */
	STAGE_FIRST_REPLY,
	STAGE_TIMED,
	STAGE_TRAFFIC = STAGE_TIMED,	/* connected */
	STAGE_DISCONNECT,
	STAGE_N,
};

extern const char *const stage_names[STAGE_N];	/* "tcp_connect", ... */

/* True if connections with this transport, over RDMA connected like this, go through the stage. */
bool stage_applies(enum stage s, enum transport t, enum connect_way way);

enum fail_kind {
	FAIL_NONE,
	FAIL_ERRNO,		/* code: errno */
	FAIL_TLS,		/* code: TLS alert number, 0 when none was seen, or FAIL_TLS_RECORDS */
	FAIL_CERTIFICATE,	/* code: X509_V_ERR_* */
	FAIL_REFUSED,		/* code: enum refuse_code, from a REFUSE frame or a reject */
	FAIL_CM_STATUS,		/* code: status of a CM event; CM reject reasons are 1 to 33 (IBTA 12.6.7.2) */
	FAIL_WC_STATUS,		/* code: enum ibv_wc_status */
	FAIL_TIMEOUT,		/* code: 0 */
	FAIL_PROTOCOL,		/* code: enum fail_protocol */
	FAIL_CLOSED,		/* the peer closed; code: enum refuse_code of its goodbye, 0 without one */
	FAIL_KIND_N,
};

/* The alert no_application_protocol (RFC 7301). */
#define FAIL_TLS_ALPN 120

/* An alert that this end may also set itself, and a code beyond the 8-bit alert numbers. */
#define FAIL_TLS_UNEXPECTED 10	/* the alert unexpected_message (RFC 8446, 6) */
#define FAIL_TLS_RECORDS 256	/* the peer sent more TLS records than allowed */

/* The reject reason "stale connection" (IBTA 12.6.7.2; IB_CM_REJ_STALE_CONN): the rejecting connection manager still
 * has a connection with a queue pair of this number at the other end. */
#define FAIL_CM_STALE 10

enum fail_protocol {
	PROTO_BAD_FRAME = 1,	/* a bootstrap frame that does not decode */
	PROTO_UNEXPECTED_FRAME,	/* a frame that is not expected here */
	PROTO_BAD_MESSAGE,	/* a message header that does not decode */
	PROTO_BAD_PAYLOAD,	/* an echo that differs from the message sent */
	PROTO_BAD_PROOF,	/* the server's HMAC is wrong or missing */
	PROTO_CREDITS,		/* the peer sent more than its credits allow */
	PROTO_PSN_MISMATCH,	/* ibv_query_qp shows other PSNs than agreed */
	PROTO_NO_DEVICE,	/* the address is not reached through the RDMA device in use */
	PROTO_BAD_TAG,		/* a message without a tag, or with a wrong one */
	PROTO_NOT_RECEIVING,	/* the peer sends, but does not receive */
	PROTO_REGION,		/* the granted region is too small for the planned accesses */
	PROTO_REDIRECTED,	/* GRANT names a host other than the one that granted */
};

struct fail {
	enum stage stage;
	enum fail_kind kind;
	int code;
};

/* The code of failures that share one row of their kind in a table (fail_table.h). */
#define FAIL_CODE_OTHER INT_MIN

/* Returns the failure as tables count it. An unusual code chosen by the peer becomes FAIL_CODE_OTHER, so that a peer
 * cannot make more rows than there are usual codes: TLS alerts and refusals without a name, certificate errors and CM
 * reject reasons that honest mistakes do not cause. */
struct fail fail_row(const struct fail *f);

/* "errno:ECONNREFUSED", "refused:full", "tls:bad_certificate", "tls:other", "cm:8", "wc:retry_exceeded", "timeout",
 * "draining", ... Returns `text`. */
const char *fail_code_text(const struct fail *f, char *text, size_t size);

/* A sentence for people: the meaning of the failure and, where known, the remedy. Static text, never NULL. */
const char *fail_advice(const struct fail *f);

#endif
