/* HMAC binding of an RDMA connection to its TLS session, and the private data that carries it. */
#include "common/auth.h"

#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "common/be.h"

/* session, two QPNs, two addresses with ports */
#define BINDING_BYTES (FRAME_SESSION_BYTES + 4 + 4 + 16 + 2 + 16 + 2)

int auth_hmac(const uint8_t key[AUTH_KEY_BYTES], const struct auth_binding *b,
	      uint8_t out[AUTH_HMAC_BYTES])
{
	uint8_t text[BINDING_BYTES], *p = text;
	unsigned int n = AUTH_HMAC_BYTES;

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
	if (!HMAC(EVP_sha256(), key, AUTH_KEY_BYTES, text, sizeof(text), out, &n))
		return -ENOMEM;
	return 0;
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
