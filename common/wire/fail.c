/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and explanations of connection failures. No I/O. */
#include "common/wire/fail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <openssl/x509_vfy.h>

#include "common/wire/frame.h"

const char *const stage_names[STAGE_N] = {
	[STAGE_TCP_CONNECT] = "tcp_connect",
	[STAGE_TLS_HANDSHAKE] = "tls_handshake",
	[STAGE_PSN_EXCHANGE] = "psn_exchange",
	[STAGE_SOCKET_CONNECT] = "socket_connect",
	[STAGE_ADDR_RESOLVE] = "addr_resolve",
	[STAGE_ROUTE_RESOLVE] = "route_resolve",
	[STAGE_QP_SETUP] = "qp_setup",
	[STAGE_RDMA_CONNECT] = "rdma_connect",
	[STAGE_QP_EXCHANGE] = "qp_exchange",
	[STAGE_FIRST_REPLY] = "first_reply",
	[STAGE_TRAFFIC] = "traffic",
	[STAGE_DISCONNECT] = "disconnect",
};

bool stage_applies(enum stage s, enum transport t, enum connect_way way)
{
	bool oob = t == TRANSPORT_RDMA && way == CONNECT_OOB;

	switch (s) {
	case STAGE_SOCKET_CONNECT:
		return t == TRANSPORT_TCP;
	case STAGE_ADDR_RESOLVE:
	case STAGE_ROUTE_RESOLVE:
	case STAGE_RDMA_CONNECT:
		return t == TRANSPORT_RDMA && !oob;
	case STAGE_QP_SETUP:
		return t == TRANSPORT_RDMA;
	case STAGE_QP_EXCHANGE:
		return oob;
	case STAGE_FIRST_REPLY:
		return !oob;
	case STAGE_TCP_CONNECT:
	case STAGE_TLS_HANDSHAKE:
	case STAGE_PSN_EXCHANGE:
	case STAGE_TRAFFIC:
	case STAGE_DISCONNECT:
	case STAGE_N:
		break;
	}
	return true;
}

static const char *wc_name(int status)
{
	switch (status) {
	case IBV_WC_WR_FLUSH_ERR: return "flushed";
	case IBV_WC_RETRY_EXC_ERR: return "retry_exceeded";
	case IBV_WC_RNR_RETRY_EXC_ERR: return "rnr_retry_exceeded";
	case IBV_WC_REM_ACCESS_ERR: return "remote_access";
	case IBV_WC_REM_INV_REQ_ERR: return "remote_invalid_request";
	case IBV_WC_REM_OP_ERR: return "remote_operation";
	case IBV_WC_LOC_LEN_ERR: return "local_length";
	case IBV_WC_LOC_PROT_ERR: return "local_protection";
	case IBV_WC_LOC_QP_OP_ERR: return "local_qp_operation";
	default: return NULL;
	}
}

static const char *protocol_name(int code)
{
	switch (code) {
	case PROTO_BAD_FRAME: return "bad_frame";
	case PROTO_UNEXPECTED_FRAME: return "unexpected_frame";
	case PROTO_BAD_MESSAGE: return "bad_message";
	case PROTO_BAD_PAYLOAD: return "bad_payload";
	case PROTO_BAD_PROOF: return "bad_proof";
	case PROTO_CREDITS: return "credits_exceeded";
	case PROTO_PSN_MISMATCH: return "psn_mismatch";
	case PROTO_NO_DEVICE: return "no_device";
	case PROTO_BAD_TAG: return "bad_tag";
	case PROTO_NOT_RECEIVING: return "not_receiving";
	case PROTO_REGION: return "region_too_small";
	case PROTO_REDIRECTED: return "redirected";
	default: return NULL;
	}
}

/* Names of TLS alerts (RFC 8446, 6), and of our own codes. */
static const char *alert_name(int code)
{
	switch (code) {
	case 0: return "error";
	case 10: return "unexpected_message";
	case 20: return "bad_record_mac";
	case 40: return "handshake_failure";
	case 42: return "bad_certificate";
	case 43: return "unsupported_certificate";
	case 44: return "certificate_revoked";
	case 45: return "certificate_expired";
	case 46: return "certificate_unknown";
	case 47: return "illegal_parameter";
	case 48: return "unknown_ca";
	case 50: return "decode_error";
	case 51: return "decrypt_error";
	case 70: return "protocol_version";
	case 80: return "internal_error";
	case 116: return "certificate_required";
	case FAIL_TLS_ALPN: return "no_application_protocol";
	case FAIL_TLS_RECORDS: return "too_many_records";
	default: return NULL;
	}
}

/* True for errors that an honest mistake in making or using certificates causes. */
static bool is_usual_certificate_error(int code)
{
	switch (code) {
	case X509_V_ERR_UNABLE_TO_GET_CRL:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
	case X509_V_ERR_CRL_SIGNATURE_FAILURE:
	case X509_V_ERR_CERT_NOT_YET_VALID:
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CRL_NOT_YET_VALID:
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_REVOKED:
	case X509_V_ERR_INVALID_PURPOSE:
	case X509_V_ERR_CERT_UNTRUSTED:
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
	case X509_V_ERR_EE_KEY_TOO_SMALL:
		return true;
	default:
		return false;
	}
}

/* Statuses from the kernel are negative (-errno). Usual reject reasons of a peer are those that its kernel sends on its
 * own (drivers/infiniband/core/cm.c): no resources, timeout, invalid communication id, service id or GID, stale
 * connection; and 28, sent by the peer's program. */
static bool is_usual_cm_status(int code)
{
	return code <= 0 || code == 3 || code == 4 || code == 6 || code == 8 || code == FAIL_CM_STALE || code == 12 ||
	       code == 28;
}

static bool is_usual(const struct fail *f)
{
	switch (f->kind) {
	case FAIL_TLS: return alert_name(f->code) != NULL;
	case FAIL_CERTIFICATE: return is_usual_certificate_error(f->code);
	case FAIL_REFUSED: return strcmp(refuse_code_name((uint32_t)f->code), "unknown") != 0;
	case FAIL_CM_STATUS: return is_usual_cm_status(f->code);
	/* These codes come from this program, this machine or its device, not from the peer. */
	case FAIL_NONE:
	case FAIL_ERRNO:
	case FAIL_WC_STATUS:
	case FAIL_TIMEOUT:
	case FAIL_PROTOCOL:
	case FAIL_CLOSED:
	case FAIL_KIND_N:
		break;
	}
	return true;
}

struct fail fail_row(const struct fail *f)
{
	struct fail row = *f;

	if (row.code != FAIL_CODE_OTHER && !is_usual(f))
		row.code = FAIL_CODE_OTHER;
	return row;
}

static const char *put_code(char *text, size_t size, const char *kind, const char *name, int code)
{
	if (code == FAIL_CODE_OTHER)
		name = "other";
	if (name)
		snprintf(text, size, "%s:%s", kind, name);
	else
		snprintf(text, size, "%s:%d", kind, code);
	return text;
}

const char *fail_code_text(const struct fail *f, char *text, size_t size)
{
	switch (f->kind) {
	case FAIL_NONE: return put_code(text, size, "none", "none", 0);
	case FAIL_ERRNO: return put_code(text, size, "errno", strerrorname_np(f->code), f->code);
	case FAIL_TLS: return put_code(text, size, "tls", alert_name(f->code), f->code);
	case FAIL_CERTIFICATE: return put_code(text, size, "certificate", NULL, f->code);
	case FAIL_REFUSED: return put_code(text, size, "refused", refuse_code_name((uint32_t)f->code), f->code);
	case FAIL_CM_STATUS: return put_code(text, size, "cm", f->code == FAIL_CM_STALE ? "stale" : NULL, f->code);
	case FAIL_WC_STATUS: return put_code(text, size, "wc", wc_name(f->code), f->code);
	case FAIL_TIMEOUT: snprintf(text, size, "timeout"); return text;
	case FAIL_PROTOCOL: return put_code(text, size, "protocol", protocol_name(f->code), f->code);
	case FAIL_CLOSED:
		snprintf(text, size, "%s", f->code == REFUSE_DRAINING ? "draining" : "closed_by_peer");
		return text;
	case FAIL_KIND_N: break;
	}
	return put_code(text, size, "unknown", NULL, f->code);
}

static const char *stale_advice(void)
{
	return "one end's connection manager still has an earlier connection with this queue pair number: "
	       "another attempt gets another number";
}

static const char *wc_advice(int status)
{
	switch (status) {
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_RETRY_EXC_ERR: return "the RDMA connection broke: the peer is gone or did not answer";
	case IBV_WC_RNR_RETRY_EXC_ERR: return "the receiver had no buffer for a message: raise its --srq-depth";
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR: return "the peer's RDMA device refused or failed a request: see the peer's log";
	default: return "the RDMA device of this end could not carry out a request: see the kernel's log";
	}
}

static const char *refused_advice(int code)
{
	switch (code) {
	case REFUSE_BUSY: return "the server is too busy now: try again later";
	case REFUSE_FULL: return "the server is full: raise its --max-clients";
	case REFUSE_DRAINING: return "the server is stopping";
	case REFUSE_UNSUPPORTED: return "the client needs more than the server allows: see its --connect, "
					"--credits, --message-size, --region-size, --transports and --windows";
	case REFUSE_BAD_SESSION: return "the session id is unknown, used or expired";
	case REFUSE_BAD_HMAC: return "the RDMA request did not come from the owner of the TLS session";
	case REFUSE_BAD_ADDRESS: return "the RDMA address is not the one the TLS session came from";
	case REFUSE_NO_RESOURCES: return "the server has no queue pair, region, receive buffer or memory left: see its "
					 "log and its device's limits";
	case REFUSE_INTERNAL: return "the server failed: see its log";
	case REFUSE_STALE: return stale_advice();
	case REFUSE_NOT_ALLOWED: return "the client's certificate has no name in the server's --allow-names";
	default: return "the server refused the request";
	}
}

const char *fail_advice(const struct fail *f)
{
	switch (f->kind) {
	case FAIL_NONE: return "nothing failed";
	case FAIL_ERRNO:
		if (f->code == ECONNREFUSED)
			return "nobody listens there: is the server running, and is this its --tls-port?";
		if (f->code == EMFILE || f->code == ENFILE)
			return "out of descriptors: raise the nofile limit (ulimit -n)";
		if (f->code == ENOMEM)
			return "out of memory or locked memory: see ulimit -l and the device's limits";
		return strerror(f->code);
	case FAIL_TLS:
		if (f->code == FAIL_TLS_RECORDS)
			return "the peer sent more TLS records than are allowed";
		if (f->code == FAIL_TLS_ALPN)
			return "the other end is another version of rampart, which does not speak rampart/3, or "
			       "another service";
		return "the TLS handshake failed: do both sides use the same CA, TLS 1.3 and protocol rampart/3?";
	case FAIL_CERTIFICATE: return "the peer's certificate was not accepted: check --ca, its dates and its names";
	case FAIL_REFUSED: return refused_advice(f->code);
	case FAIL_CM_STATUS:
		if (f->code == FAIL_CM_STALE)
			return stale_advice();
		return "the RDMA connection manager gave up: is the RDMA port reachable, is the server alive?";
	case FAIL_WC_STATUS:
		return f->stage == STAGE_QP_EXCHANGE && f->code == IBV_WC_RETRY_EXC_ERR ?
			"no RDMA packet was acknowledged: is UDP port 4791 open between both ends, or did the session "
			"expire?" : wc_advice(f->code);
	case FAIL_TIMEOUT: return "the peer did not answer in time";
	case FAIL_PROTOCOL:
		return f->code == PROTO_REDIRECTED ? "the server sends its clients to another host: if that is "
						     "intended, give --allow-redirect" :
						     "the peer violates the protocol";
	case FAIL_CLOSED:
		return f->code == REFUSE_DRAINING ? refused_advice(f->code) : "the peer closed the connection";
	case FAIL_KIND_N: break;
	}
	return "unknown";
}
