/* SPDX-License-Identifier: BSD-2-Clause */
/* Proof that the two ends of an RDMA connection are the two ends of a TLS session: HMAC-SHA256 with
 * keys from the TLS exporter (RFC 8446, 7.5), carried in the private data of the connection manager's
 * REQ, REP and REJ (docs/protocol.md, "RDMA connection").
 *
 * Pure apart from the random generator.
 */
#ifndef RAMPART_COMMON_AUTH_H
#define RAMPART_COMMON_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/wire/frame.h"

#define AUTH_KEY_BYTES 32
#define AUTH_HMAC_BYTES 32

/* Exporter labels, one key per direction; the session id is the exporter's context. */
#define AUTH_LABEL_CLIENT "EXPORTER-rampart-3-client"
#define AUTH_LABEL_SERVER "EXPORTER-rampart-3-server"

/* Exporter label of the keys of message tags (msg_tag.h): the client's, then the server's. Same context. */
#define AUTH_LABEL_MESSAGES "EXPORTER-rampart-3-messages"

struct auth_keys {
	uint8_t client[AUTH_KEY_BYTES];	/* the client proves itself with this key in the REQ */
	uint8_t server[AUTH_KEY_BYTES];	/* the server proves itself with this key in the REP */
};

/* Input of an HMAC. Both sides know all of it without exchanging it. */
struct auth_binding {
	const uint8_t *session;		/* FRAME_SESSION_BYTES */
	uint32_t client_qpn;
	uint32_t server_qpn;		/* 0 in the client's proof, which is made before it is known */
	const struct addr *client;	/* addresses and ports of the RDMA connection */
	const struct addr *server;
};

/* OpenSSL's HMAC, fetched once, because fetching costs more than an HMAC of a few bytes. Used by one thread at a time.
 * auth_mac_new returns 0 or -ENOMEM. */
struct auth_mac;
int auth_mac_new(struct auth_mac **out) __attribute__((warn_unused_result));
void auth_mac_free(struct auth_mac *m);	/* NULL-safe */

/* If `m` is NULL, makes one for the call. Returns 0 or -ENOMEM. */
int auth_hmac(struct auth_mac *m, const uint8_t key[AUTH_KEY_BYTES], const struct auth_binding *b,
	      uint8_t out[AUTH_HMAC_BYTES]) __attribute__((warn_unused_result));

/* Input of the HMACs of a connection without rdmacm, whose ends know both queue pairs before either proof. */
struct auth_pair {
	const uint8_t *session;		/* FRAME_SESSION_BYTES */
	const struct frame_qp *client, *server;
	uint32_t client_psn, server_psn;
};

/* As auth_hmac. */
int auth_hmac_pair(struct auth_mac *m, const uint8_t key[AUTH_KEY_BYTES], const struct auth_pair *p,
		   uint8_t out[AUTH_HMAC_BYTES]) __attribute__((warn_unused_result));

/* Constant-time comparison; 0 when equal. */
int auth_compare(const uint8_t a[AUTH_HMAC_BYTES], const uint8_t b[AUTH_HMAC_BYTES]);

/* Overwrites the keys; the compiler cannot optimise this away. */
void auth_wipe(struct auth_keys *k);

/* A psn_random_fn that uses OpenSSL's random generator. Returns 0 or -EIO. */
int auth_random(void *unused, uint8_t *buf, size_t n) __attribute__((warn_unused_result));

/* Private data of REQ and REP: u8 version, u8 kind, u16 length of all of it, 16 session id, 32 HMAC.
 * The CM pads with zeros to its own maximum (56, 196 and 148 bytes), hence the length inside. */
#define PDATA_PROOF_BYTES 52
/* Private data of REJ: u8 version, u8 kind, u16 length, u16 refuse_code, u16 zero. */
#define PDATA_REJECT_BYTES 8

enum pdata_kind { PDATA_REQUEST = 1, PDATA_REPLY = 2, PDATA_REJECT = 3 };

struct pdata_proof {
	uint8_t session[FRAME_SESSION_BYTES];
	uint8_t hmac[AUTH_HMAC_BYTES];
};

void pdata_encode_proof(enum pdata_kind kind, const struct pdata_proof *p,
			uint8_t out[PDATA_PROOF_BYTES]);
/* Returns 0 or -EPROTO. `n` is the length received, padding included. */
int pdata_decode_proof(enum pdata_kind kind, const uint8_t *buf, size_t n, struct pdata_proof *out)
	__attribute__((warn_unused_result));

void pdata_encode_reject(uint16_t code, uint8_t out[PDATA_REJECT_BYTES]);
/* Returns 0 or -EPROTO, for instance if the reject came from the kernel or a server that is not rampart's. */
int pdata_decode_reject(const uint8_t *buf, size_t n, uint16_t *code)
	__attribute__((warn_unused_result));

#endif
