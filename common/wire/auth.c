/* SPDX-License-Identifier: BSD-2-Clause */
/* HMAC binding of an RDMA connection to its TLS session, and the private data that carries it. */
#include "common/wire/auth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "common/wire/be.h"

/* session, two QPNs, two addresses with ports */
#define BINDING_BYTES (FRAME_SESSION_BYTES + 4 + 4 + 16 + 2 + 16 + 2)
/* session, two QPNs, two PSNs, two GIDs */
#define PAIR_BYTES (FRAME_SESSION_BYTES + 4 * 4 + 2 * FRAME_GID_BYTES)

struct auth_mac {
	EVP_MAC_CTX *ctx;
};

int auth_mac_new(struct auth_mac **out)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
				OSSL_PARAM_construct_end() };
	struct auth_mac *m = calloc(1, sizeof(*m));
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);

	if (m && mac)
		m->ctx = EVP_MAC_CTX_new(mac);
	EVP_MAC_free(mac);
	if (m && m->ctx && EVP_MAC_CTX_set_params(m->ctx, params) == 1) {
		*out = m;
		return 0;
	}
	auth_mac_free(m);
	return -ENOMEM;
}

void auth_mac_free(struct auth_mac *m)
{
	if (!m)
		return;
	EVP_MAC_CTX_free(m->ctx);
	free(m);
}

static void encode_binding(const struct auth_binding *b, uint8_t text[BINDING_BYTES])
{
	uint8_t *p = text;

	memcpy(p, b->session, FRAME_SESSION_BYTES);
	p += FRAME_SESSION_BYTES;
	be_put32(p, b->client_qpn);
	be_put32(p + 4, b->server_qpn);
	p += 8;
	addr_to_bytes(b->client, p);
	be_put16(p + 16, addr_port(b->client));
	p += 18;
	addr_to_bytes(b->server, p);
	be_put16(p + 16, addr_port(b->server));
}

static int hmac(struct auth_mac *m, const uint8_t key[AUTH_KEY_BYTES], const uint8_t *text, size_t bytes,
		uint8_t out[AUTH_HMAC_BYTES])
{
	struct auth_mac *made = NULL;
	static const uint8_t no_key[AUTH_KEY_BYTES];
	size_t n;
	int ret = m ? 0 : auth_mac_new(&made);

	m = m ? m : made;
	if (!ret && (EVP_MAC_init(m->ctx, key, AUTH_KEY_BYTES, NULL) != 1 ||
		     EVP_MAC_update(m->ctx, text, bytes) != 1 ||
		     EVP_MAC_final(m->ctx, out, &n, AUTH_HMAC_BYTES) != 1))
		ret = -ENOMEM;
	/* Overwrite the key, because the context keeps it until it gets another. */
	if (!ret && EVP_MAC_init(m->ctx, no_key, sizeof(no_key), NULL) != 1)
		ret = -ENOMEM;
	auth_mac_free(made);
	return ret;
}

int auth_hmac(struct auth_mac *m, const uint8_t key[AUTH_KEY_BYTES], const struct auth_binding *b,
	      uint8_t out[AUTH_HMAC_BYTES])
{
	uint8_t text[BINDING_BYTES];

	encode_binding(b, text);
	return hmac(m, key, text, sizeof(text), out);
}

int auth_hmac_pair(struct auth_mac *m, const uint8_t key[AUTH_KEY_BYTES], const struct auth_pair *p,
		   uint8_t out[AUTH_HMAC_BYTES])
{
	uint8_t text[PAIR_BYTES], *at = text;

	memcpy(at, p->session, FRAME_SESSION_BYTES);
	at += FRAME_SESSION_BYTES;
	be_put32(at, p->client->qpn);
	be_put32(at + 4, p->server->qpn);
	be_put32(at + 8, p->client_psn);
	be_put32(at + 12, p->server_psn);
	memcpy(at + 16, p->client->gid, FRAME_GID_BYTES);
	memcpy(at + 16 + FRAME_GID_BYTES, p->server->gid, FRAME_GID_BYTES);
	return hmac(m, key, text, sizeof(text), out);
}

int auth_compare(const uint8_t a[AUTH_HMAC_BYTES], const uint8_t b[AUTH_HMAC_BYTES])
{
	return CRYPTO_memcmp(a, b, AUTH_HMAC_BYTES);
}

void auth_wipe(struct auth_keys *k)
{
	OPENSSL_cleanse(k, sizeof(*k));
}

int auth_random(void *unused, uint8_t *buf, size_t n)
{
	(void)unused;
	return RAND_bytes(buf, (int)n) == 1 ? 0 : -EIO;
}

static void put_prefix(uint8_t *out, enum pdata_kind kind, uint16_t length)
{
	out[0] = FRAME_VERSION;
	out[1] = (uint8_t)kind;
	be_put16(out + 2, length);
}

static bool has_prefix(const uint8_t *buf, size_t n, enum pdata_kind kind, uint16_t length)
{
	return n >= length && buf[0] == FRAME_VERSION && buf[1] == kind && be_get16(buf + 2) == length;
}

void pdata_encode_proof(enum pdata_kind kind, const struct pdata_proof *p,
			uint8_t out[PDATA_PROOF_BYTES])
{
	put_prefix(out, kind, PDATA_PROOF_BYTES);
	memcpy(out + 4, p->session, FRAME_SESSION_BYTES);
	memcpy(out + 4 + FRAME_SESSION_BYTES, p->hmac, AUTH_HMAC_BYTES);
}

int pdata_decode_proof(enum pdata_kind kind, const uint8_t *buf, size_t n, struct pdata_proof *out)
{
	if (!has_prefix(buf, n, kind, PDATA_PROOF_BYTES))
		return -EPROTO;
	memcpy(out->session, buf + 4, FRAME_SESSION_BYTES);
	memcpy(out->hmac, buf + 4 + FRAME_SESSION_BYTES, AUTH_HMAC_BYTES);
	return 0;
}

void pdata_encode_reject(uint16_t code, uint8_t out[PDATA_REJECT_BYTES])
{
	put_prefix(out, PDATA_REJECT, PDATA_REJECT_BYTES);
	be_put16(out + 4, code);
	be_put16(out + 6, 0);
}

int pdata_decode_reject(const uint8_t *buf, size_t n, uint16_t *code)
{
	if (!has_prefix(buf, n, PDATA_REJECT, PDATA_REJECT_BYTES))
		return -EPROTO;
	*code = be_get16(buf + 4);
	return 0;
}
