/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads CAs, certificate chain and private key of a TLS context from files already read (tls_files.h). See
 * tls_internal.h.
 *
 * OpenSSL's error queue is read and cleared where a call failed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/tls/tls_files.h"
#include "common/tls/tls_internal.h"

/* The subject of the CA that scripts/make-certs makes. */
#define DEVELOPMENT_CA "rampart development CA"

int tls_load_not_usable(const struct tls_files *f, enum tls_file which, char *err, size_t size)
{
	char reason[160] = "it has none";

	if (ERR_peek_last_error())
		ERR_error_string_n(ERR_peek_last_error(), reason, sizeof(reason));
	ERR_clear_error();
	snprintf(err, size, "%s %s is not usable PEM (%s)", tls_file_names[which], f->path[which], reason);
	return -EINVAL;
}

/* Refuses to ask for a passphrase, because a server reads its key again while it runs. */
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

STACK_OF(X509_INFO) *tls_load_infos(const struct tls_files *f, enum tls_file which)
{
	BIO *pem = open_pem(f, which);
	STACK_OF(X509_INFO) *infos = pem ? PEM_X509_INFO_read_bio(pem, NULL, no_passphrase, NULL) : NULL;

	BIO_free(pem);
	return infos;
}

/* True if reading ended at the end of the PEM data, and not at something broken. */
static bool is_end_of_pem(void)
{
	unsigned long e = ERR_peek_last_error();
	bool end = ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;

	if (end)
		ERR_clear_error();
	return end;
}

/* Loads the certificate itself, then those between it and its root. */
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

int64_t tls_seconds_of(const ASN1_TIME *t)
{
	struct tm tm;

	return t && ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : INT64_MAX;
}

int64_t tls_chain_expires_at(STACK_OF(X509) *chain)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < sk_X509_num(chain); i++)
		first = MIN(first, tls_seconds_of(X509_get0_notAfter(sk_X509_value(chain, i))));
	return first;
}

/* Adds all certificates to the store. Returns their number, or -1. */
static int add_cas(X509_STORE *store, const STACK_OF(X509_INFO) *infos)
{
	int n = 0;

	for (int i = 0; i < sk_X509_INFO_num(infos) && n >= 0; i++) {
		X509 *x = sk_X509_INFO_value(infos, i)->x509;

		if (x)
			n = X509_STORE_add_cert(store, x) == 1 ? n + 1 : -1;
	}
	return n;
}

int tls_load_cas(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
{
	STACK_OF(X509_INFO) *infos;
	int n;

	if (!f->pem[TLS_FILE_CA])
		return 0;
	infos = tls_load_infos(f, TLS_FILE_CA);
	n = infos ? add_cas(SSL_CTX_get_cert_store(ctx->ssl_ctx), infos) : -1;
	sk_X509_INFO_pop_free(infos, X509_INFO_free);
	return n > 0 ? 0 : tls_load_not_usable(f, TLS_FILE_CA, err, size);
}

/* True if loading the key failed because it is not the certificate's, with which OpenSSL compares it. */
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
		snprintf(err, size,
			 "private key %s has a passphrase, which nobody can enter here; name a file without one "
			 "(`openssl pkey -in FILE -out FILE`) that only this user can read", f->path[TLS_FILE_KEY]);
		return -EINVAL;
	}
	if (!ok && !is_other_key())
		return tls_load_not_usable(f, TLS_FILE_KEY, err, size);
	/* Check again: loading the key does not notice a key of another type than the certificate's. */
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
	ctx->dates.cert_expires_at = MIN(tls_seconds_of(X509_get0_notAfter(x)), tls_chain_expires_at(others));
	ctx->is_development = is_of_development_ca(x);
	return 0;
}

int tls_load_own(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
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
		return tls_load_not_usable(f, TLS_FILE_CERT, err, size);
	ret = load_key(ctx->ssl_ctx, f, err, size);
	return ret ? ret : check_dates(ctx, f->path[TLS_FILE_CERT], err, size);
}
