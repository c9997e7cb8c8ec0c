/* TLS contexts: what connections of a thread have in common. See tls.h.
 *
 * Certificates, keys and lists come from files that were read before (tls_files.h). Tickets are sealed with keys of
 * ticket_keys.h. OpenSSL's error queue is read and cleared where a call failed.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "common/base/clock.h"
#include "common/tls/tls_files.h"
#include "common/tls/tls_internal.h"
#include "common/wire/be.h"
#include "common/wire/frame.h"

/* The subject of the CA that scripts/make-certs makes. */
#define DEVELOPMENT_CA "rampart development CA"

static const unsigned char alpn_protocols[] = FRAME_ALPN;

static int on_select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
			  const unsigned char *in, unsigned int in_n, void *arg)
{
	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_n, alpn_protocols, TLS_ALPN_BYTES, in,
				  in_n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* ---- certificates, key and lists */

static int not_usable(const struct tls_files *f, enum tls_file which, char *err, size_t size)
{
	char reason[160] = "it has none";

	if (ERR_peek_last_error())
		ERR_error_string_n(ERR_peek_last_error(), reason, sizeof(reason));
	ERR_clear_error();
	snprintf(err, size, "%s %s is not usable PEM (%s)", tls_file_names[which], f->path[which], reason);
	return -EINVAL;
}

/* Nobody is asked for one: a server reads its key again while it runs. */
static int no_passphrase(char *buf, int size, int for_writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)for_writing;
	(void)arg;
	return -1;
}

static BIO *open_pem(const struct tls_files *f, enum tls_file which)
{
	return BIO_new_mem_buf(f->pem[which], (int)f->bytes[which]);
}

/* True if reading ended at the end of the PEM, and not at something that is broken. */
static bool is_end_of_pem(void)
{
	unsigned long e = ERR_peek_last_error();
	bool end = ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;

	if (end)
		ERR_clear_error();
	return end;
}

/* The certificate itself, then those between it and its root. */
static bool use_chain(SSL_CTX *c, BIO *pem)
{
	X509 *x = PEM_read_bio_X509_AUX(pem, NULL, no_passphrase, NULL);
	bool ok = x && SSL_CTX_use_certificate(c, x) == 1;

	X509_free(x);
	while (ok && (x = PEM_read_bio_X509(pem, NULL, no_passphrase, NULL))) {
		ok = SSL_CTX_add0_chain_cert(c, x) == 1;
		if (!ok)
			X509_free(x);
	}
	return ok && is_end_of_pem();
}

static bool use_key(SSL_CTX *c, BIO *pem)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_passphrase, NULL);
	bool ok = key && SSL_CTX_use_PrivateKey(c, key) == 1;

	EVP_PKEY_free(key);
	return ok;
}

/* Adds what the PEM has of certificates and lists. Returns how many of those that are wanted, or -1. */
static int add_to_store(X509_STORE *store, BIO *pem, bool want_lists)
{
	STACK_OF(X509_INFO) *infos = PEM_X509_INFO_read_bio(pem, NULL, no_passphrase, NULL);
	int n = infos ? 0 : -1;

	for (int i = 0; i < sk_X509_INFO_num(infos) && n >= 0; i++) {
		const X509_INFO *it = sk_X509_INFO_value(infos, i);

		if (!want_lists && it->x509)
			n = X509_STORE_add_cert(store, it->x509) == 1 ? n + 1 : -1;
		if (want_lists && it->crl)
			n = X509_STORE_add_crl(store, it->crl) == 1 ? n + 1 : -1;
	}
	sk_X509_INFO_pop_free(infos, X509_INFO_free);
	return n;
}

static int64_t seconds_of(const ASN1_TIME *t)
{
	struct tm tm;

	return t && ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : INT64_MAX;
}

int64_t tls_chain_expires_at(STACK_OF(X509) *chain)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < sk_X509_num(chain); i++)
		first = MIN(first, seconds_of(X509_get0_notAfter(sk_X509_value(chain, i))));
	return first;
}

/* When the first of the lists is out of date. */
static int64_t lists_expire_at(X509_STORE *store)
{
	STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(store);
	int64_t first = INT64_MAX;

	for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
		const X509_CRL *crl = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(objects, i));

		if (crl)
			first = MIN(first, seconds_of(X509_CRL_get0_nextUpdate(crl)));
	}
	return first;
}

static int load_cas(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx->ssl_ctx);
	BIO *pem;
	int n;

	if (!f->pem[TLS_FILE_CA])
		return 0;
	pem = open_pem(f, TLS_FILE_CA);
	n = pem ? add_to_store(store, pem, false) : -1;
	BIO_free(pem);
	return n > 0 ? 0 : not_usable(f, TLS_FILE_CA, err, size);
}

/* Every certificate of a chain must have a list of its issuer, and not stand in it. */
static int load_lists(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx->ssl_ctx);
	BIO *pem;
	int n;

	if (!f->pem[TLS_FILE_CRL])
		return 0;
	pem = open_pem(f, TLS_FILE_CRL);
	n = pem ? add_to_store(store, pem, true) : -1;
	BIO_free(pem);
	if (n <= 0)
		return not_usable(f, TLS_FILE_CRL, err, size);
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	ctx->dates.crl_expires_at = lists_expire_at(store);
	if (ctx->dates.crl_expires_at > (int64_t)time(NULL))
		return 0;
	snprintf(err, size, "revocation list %s is out of date, so that every peer would be refused; get a new one "
		 "from the CA", f->path[TLS_FILE_CRL]);
	return -EKEYEXPIRED;
}

/* Loading a key compares it with the certificate: true if that is why it failed. */
static bool is_other_key(void)
{
	unsigned long e = ERR_peek_last_error();

	return ERR_GET_LIB(e) == ERR_LIB_X509 && ERR_GET_REASON(e) == X509_R_KEY_VALUES_MISMATCH;
}

static bool lacks_passphrase(void)
{
	unsigned long e = ERR_peek_last_error();

	return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_BAD_PASSWORD_READ;
}

static int load_key(SSL_CTX *c, const struct tls_files *f, char *err, size_t size)
{
	BIO *pem = open_pem(f, TLS_FILE_KEY);
	bool ok = pem && use_key(c, pem);

	BIO_free(pem);
	if (!ok && lacks_passphrase()) {
		ERR_clear_error();
		snprintf(err, size, "private key %s has a passphrase, for which nobody is asked; name a file without one "
			 "(`openssl pkey -in FILE -out FILE`) that only this user can read", f->path[TLS_FILE_KEY]);
		return -EINVAL;
	}
	if (!ok && !is_other_key())
		return not_usable(f, TLS_FILE_KEY, err, size);
	/* Fails too for a key of another type, which loading does not compare. */
	if (SSL_CTX_check_private_key(c) == 1)
		return 0;
	ERR_clear_error();
	snprintf(err, size, "private key %s does not belong to certificate %s", f->path[TLS_FILE_KEY],
		 f->path[TLS_FILE_CERT]);
	return -EINVAL;
}

static bool is_of_development_ca(X509 *x)
{
	char issuer[80] = "";

	X509_NAME_get_text_by_NID(X509_get_issuer_name(x), NID_commonName, issuer, sizeof(issuer));
	return strcmp(issuer, DEVELOPMENT_CA) == 0;
}

static int check_dates(struct tls_ctx *ctx, const char *file, char *err, size_t size)
{
	X509 *x = SSL_CTX_get0_certificate(ctx->ssl_ctx);
	STACK_OF(X509) *others = NULL;

	if (X509_cmp_current_time(X509_get0_notAfter(x)) < 0) {
		snprintf(err, size, "certificate %s has expired; renew it (`make certs` makes new "
			 "development certificates)", file);
		return -EKEYEXPIRED;
	}
	if (X509_cmp_current_time(X509_get0_notBefore(x)) > 0) {
		snprintf(err, size, "certificate %s is not valid yet; check the clock of this machine",
			 file);
		return -EKEYEXPIRED;
	}
	SSL_CTX_get0_chain_certs(ctx->ssl_ctx, &others);
	ctx->dates.cert_expires_at = MIN(seconds_of(X509_get0_notAfter(x)), tls_chain_expires_at(others));
	ctx->is_development = is_of_development_ca(x);
	return 0;
}

static int load_own(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
{
	BIO *pem;
	bool ok;
	int ret;

	if (!f->pem[TLS_FILE_CERT])
		return 0;
	pem = open_pem(f, TLS_FILE_CERT);
	ok = pem && use_chain(ctx->ssl_ctx, pem);
	BIO_free(pem);
	if (!ok)
		return not_usable(f, TLS_FILE_CERT, err, size);
	ret = load_key(ctx->ssl_ctx, f, err, size);
	return ret ? ret : check_dates(ctx, f->path[TLS_FILE_CERT], err, size);
}

static int load(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
{
	int ret = load_cas(ctx, f, err, size);

	if (!ret)
		ret = load_lists(ctx, f, err, size);
	return ret ? ret : load_own(ctx, f, err, size);
}

/* ---- tickets */

/* SSL_CTX_set_tlsext_ticket_key_evp_cb(3): 1 goes on, 2 goes on and asks for a new ticket, 0 makes it a full
 * handshake, -1 is an error. */
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

/* Writes into the ticket when the client's certificates expire. A connection that was resumed verified none: its ticket
 * keeps what the one before it says. */
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

/* A ticket whose certificates have expired is ignored: the handshake is a full one, which says so. */
static SSL_TICKET_RETURN on_ticket_read(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_n,
					SSL_TICKET_STATUS status, void *arg)
{
	(void)ssl;
	(void)name;
	(void)name_n;
	(void)arg;
	if (status == SSL_TICKET_SUCCESS && !has_expired(session))
		return SSL_TICKET_RETURN_USE;
	if (status == SSL_TICKET_SUCCESS_RENEW && !has_expired(session))
		return SSL_TICKET_RETURN_USE_RENEW;
	return SSL_TICKET_RETURN_IGNORE;
}

/* OpenSSL sends no tickets by itself; tls_send_ticket does. A session without a ticket cannot be resumed. */
static int configure_tickets(struct tls_ctx *ctx, const struct tls_config *cfg)
{
	static const unsigned char session_context[] = "rampart/1";
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
	SSL_CTX_set_app_data(c, ctx);
	return SSL_CTX_set_session_ticket_cb(c, on_ticket_made, on_ticket_read, NULL) == 1 &&
	       SSL_CTX_set_tlsext_ticket_key_evp_cb(c, on_ticket_key) == 1 ? 0 : -EINVAL;
}

uint64_t tls_ctx_step_tickets(struct tls_ctx *ctx, uint64_t now_ns)
{
	return ctx->has_tickets ? ticket_ring_step(&ctx->tickets, now_ns) : UINT64_MAX;
}

/* Client: a ticket arrived. A copy of its session is kept, because OpenSSL marks the original as not resumable if the
 * connection ends without a close_notify. Returning 0 leaves the original to OpenSSL. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls *t = SSL_get_app_data(ssl);

	SSL_SESSION_free(t->session);
	t->session = SSL_SESSION_dup(session);
	return 0;
}

/* ---- the context */

/* SSL_CTX_set_msg_callback(3): is told the header of each record that comes, and after decryption its true type. */
static void on_record(int is_sent, int version, int content_type, const void *data, size_t n, SSL *ssl, void *arg)
{
	struct tls *t = SSL_get_app_data(ssl);
	const uint8_t *bytes = data;

	(void)version;
	(void)arg;
	if (is_sent)
		return;
	if (content_type == SSL3_RT_HEADER && n >= SSL3_RT_HEADER_LENGTH)
		tls_limits_count_record(&t->limits, SSL3_RT_HEADER_LENGTH + be_get16(bytes + 3));
	else if (content_type == SSL3_RT_INNER_CONTENT_TYPE && n >= 1 && bytes[0] != SSL3_RT_APPLICATION_DATA)
		tls_limits_count_extra(&t->limits);
	/* Also before the body of the record whose header has come. */
	t->socket.paused = tls_limits_turn_is_over(&t->limits);
}

static int configure(struct tls_ctx *ctx, const struct tls_config *cfg)
{
	SSL_CTX *c = ctx->ssl_ctx;

	if (SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) != 1)
		return -EINVAL;
	SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
			 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* A read returns after each record, also after one without data, such as a key update: the next one has to be
	 * allowed first. OpenSSL must not read ahead for that, so the BIO does (tls_socket.h). */
	SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(c, 0);
	SSL_CTX_set_msg_callback(c, on_record);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	/* A handshake is mostly hashing and key derivation: SHA-256 costs less of both than SHA-384. */
	if (SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
				     "TLS_CHACHA20_POLY1305_SHA256") != 1)
		return -EINVAL;
	if (SSL_CTX_set1_groups_list(c, "X25519:P-256") != 1)
		return -EINVAL;
	if (cfg->server) {
		SSL_CTX_set_alpn_select_cb(c, on_select_alpn, NULL);
		SSL_CTX_set_verify(c, cfg->require_peer_cert ?
				   SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT :
				   SSL_VERIFY_NONE, NULL);
		return configure_tickets(ctx, cfg);
	}
	if (cfg->resume) {
		SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(c, on_new_session);
	}
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	/* 0 is success here, unlike elsewhere in this API. */
	return SSL_CTX_set_alpn_protos(c, alpn_protocols, TLS_ALPN_BYTES) ? -EINVAL : 0;
}

/* Reads the files unless that was done before. */
static int read_and_load(struct tls_ctx *ctx, const struct tls_config *cfg, char *err, size_t err_size)
{
	struct tls_files files = { .path = { [TLS_FILE_CA] = cfg->ca_file, [TLS_FILE_CERT] = cfg->cert_file,
					     [TLS_FILE_KEY] = cfg->key_file, [TLS_FILE_CRL] = cfg->crl_file } };
	int ret;

	if (cfg->files)
		return load(ctx, cfg->files, err, err_size);
	ret = tls_files_read(&files, err, err_size);
	if (!ret)
		ret = load(ctx, &files, err, err_size);
	tls_files_wipe(&files);
	return ret;
}

static int new_ssl_ctx(struct tls_ctx *ctx, const struct tls_config *cfg, char *err, size_t err_size)
{
	int ret = -ENOMEM;

	ctx->ssl_ctx = SSL_CTX_new(cfg->server ? TLS_server_method() : TLS_client_method());
	ctx->socket_method = tls_socket_method();
	if (ctx->ssl_ctx && ctx->socket_method)
		ret = configure(ctx, cfg);
	if (ret && ret != -ENOMEM)
		snprintf(err, err_size, "this OpenSSL library cannot do TLS 1.3 with X25519 or P-256");
	return ret ? ret : read_and_load(ctx, cfg, err, err_size);
}

int tls_ctx_new(const struct tls_config *cfg, struct tls_ctx **out, char *err, size_t err_size)
{
	struct tls_ctx *ctx = calloc(1, sizeof(*ctx));
	int ret;

	snprintf(err, err_size, "out of memory for TLS");
	if (!ctx)
		return -ENOMEM;
	ctx->refs = 1;
	ctx->server = cfg->server;
	ctx->allow_names = cfg->allow_names;
	ctx->dates = (struct tls_dates){ INT64_MAX, INT64_MAX };
	ret = new_ssl_ctx(ctx, cfg, err, err_size);
	if (ret)
		tls_ctx_free(ctx);
	else
		*out = ctx;
	return ret;
}

void tls_ctx_put(struct tls_ctx *ctx)
{
	if (--ctx->refs > 0)
		return;
	SSL_CTX_free(ctx->ssl_ctx);
	BIO_meth_free(ctx->socket_method);
	EVP_CIPHER_free(ctx->ticket_cipher);
	free(ctx);
}

void tls_ctx_free(struct tls_ctx *ctx)
{
	if (!ctx)
		return;
	ctx->has_tickets = false;
	ticket_ring_wipe(&ctx->tickets);
	tls_ctx_put(ctx);
}

void tls_ctx_dates(const struct tls_ctx *ctx, struct tls_dates *out)
{
	*out = ctx->dates;
}

bool tls_ctx_is_development(const struct tls_ctx *ctx)
{
	return ctx->is_development;
}
