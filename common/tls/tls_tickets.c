/* SPDX-License-Identifier: BSD-2-Clause */
/* Session tickets of a server's TLS context: sealed with keys of ticket_keys.h, and valid no longer than the
 * certificates that they stand for and the revocation lists that were checked. See tls_internal.h.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <openssl/core_names.h>
#include <openssl/rand.h>

#include "common/base/clock.h"
#include "common/tls/tls_internal.h"

/* SSL_CTX_set_tlsext_ticket_key_evp_cb(3). Returns 1: continue; 2: continue and ask for a new ticket; 0: full
 * handshake; -1: error. */
static int on_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
			 int seal)
{
	struct tls_ctx *ctx = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	char digest[] = "SHA256";
	bool renew = false;
	const struct ticket_key *k = !ctx->has_tickets ? NULL :
				     seal ? ticket_ring_seal(&ctx->tickets, clock_now_ns()) :
				     ticket_ring_open(&ctx->tickets, clock_now_ns(), name, &renew);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k ? (void *)k->mac : NULL, TICKET_KEY_BYTES),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	if (!k)
		return seal ? -1 : 0;
	if (seal) {
		memcpy(name, k->name, TICKET_NAME_BYTES);
		if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(ctx->ticket_cipher)) != 1)
			return -1;
	}
	if (EVP_CipherInit_ex2(cipher, ctx->ticket_cipher, k->cipher, iv, seal, NULL) != 1 ||
	    EVP_MAC_CTX_set_params(mac, params) != 1)
		return -1;
	return renew ? 2 : 1;
}

/* Writes into the ticket when the client's certificates expire. A resumed connection verified none, so its new ticket
 * keeps the expiry in the previous one. */
static int on_ticket_made(SSL *ssl, void *arg)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	int64_t expires_at = chain ? tls_chain_expires_at(chain) : INT64_MAX;

	(void)arg;
	return expires_at == INT64_MAX ||
	       SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), &expires_at, sizeof(expires_at)) == 1;
}

static bool has_expired(SSL_SESSION *session)
{
	void *data = NULL;
	size_t n = 0;
	int64_t expires_at;

	if (SSL_SESSION_get0_ticket_appdata(session, &data, &n) != 1 || n != sizeof(expires_at))
		return false;
	memcpy(&expires_at, data, sizeof(expires_at));
	return expires_at <= (int64_t)time(NULL);
}

/* Ignores a ticket whose certificates have expired, so that a full handshake reports it. Also ignores all tickets while
 * a revocation list is out of date. */
static SSL_TICKET_RETURN on_ticket_read(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_n,
					SSL_TICKET_STATUS status, void *arg)
{
	const struct tls_ctx *ctx = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	(void)name;
	(void)name_n;
	(void)arg;
	if ((status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) || has_expired(session) ||
	    tls_lists_expired(ctx))
		return SSL_TICKET_RETURN_IGNORE;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

/* OpenSSL sends no tickets by itself; tls_send_ticket does. A session without a ticket cannot be resumed. */
int tls_configure_tickets(struct tls_ctx *ctx, const struct tls_config *cfg)
{
	static const unsigned char session_context[] = "rampart/3";
	SSL_CTX *c = ctx->ssl_ctx;

	if (SSL_CTX_set_num_tickets(c, 0) != 1)
		return -EINVAL;
	if (!cfg->tickets) {
		SSL_CTX_set_options(c, SSL_OP_NO_TICKET);
		return 0;
	}
	/* One name for all contexts, so that a shard resumes sessions that began at another. */
	if (SSL_CTX_set_session_id_context(c, session_context, sizeof(session_context) - 1) != 1)
		return -EINVAL;
	ctx->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	if (!ctx->ticket_cipher || ticket_ring_init(&ctx->tickets, cfg->tickets))
		return -ENOMEM;
	ctx->has_tickets = true;
	SSL_CTX_set_timeout(c, (long)(2 * cfg->tickets->rotate_ns / NS_PER_S));
	if (SSL_CTX_set_app_data(c, ctx) != 1)
		return -ENOMEM;
	return SSL_CTX_set_session_ticket_cb(c, on_ticket_made, on_ticket_read, NULL) == 1 &&
	       SSL_CTX_set_tlsext_ticket_key_evp_cb(c, on_ticket_key) == 1 ? 0 : -EINVAL;
}

uint64_t tls_ctx_step_tickets(struct tls_ctx *ctx, uint64_t now_ns)
{
	return ctx->has_tickets ? ticket_ring_step(&ctx->tickets, now_ns) : UINT64_MAX;
}
