/* SPDX-License-Identifier: BSD-2-Clause */
/* Revocation lists of a TLS context. See tls_internal.h.
 *
 * OpenSSL verifies the signature of a list whenever it checks a certificate against it. That hashes the whole list,
 * 2 ms for 100,000 entries, for each certificate of the peer's chain and of this end's own. So its check of the list is
 * replaced (X509_STORE_set_check_crl(3)) by one that knows which key has signed the list. OpenSSL still decides
 * everything else: which list belongs to a certificate, what its extensions mean, and whether the certificate is in it.
 *
 * A list with an issuing distribution point (RFC 5280, 5.2.5) covers only some of the CA's certificates, and only
 * OpenSSL's own check knows which: so OpenSSL checks these lists, signature included. It also checks lists of CAs that
 * were not loaded, because peers may send the certificates of intermediate CAs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "common/tls/tls_files.h"
#include "common/tls/tls_internal.h"

struct list {
	X509_CRL *crl;
	EVP_PKEY *signed_by;	/* NULL: the CA was not loaded */
	bool by_openssl;	/* OpenSSL checks the list in each handshake */
};

struct tls_lists {
	X509_STORE_CTX_check_crl_fn openssl_check;
	uint32_t foreign;	/* lists of CAs that were not loaded */
	uint32_t n;
	struct list lists[];
};

/* Index at which a store keeps its tls_lists (X509_STORE_get_ex_new_index(3)); the same for all stores. */
static int store_index;
static pthread_once_t store_index_once = PTHREAD_ONCE_INIT;

static void make_store_index(void)
{
	store_index = X509_STORE_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static const struct list *list_find(const struct tls_lists *l, const X509_CRL *crl)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->lists[i].crl == crl)
			return &l->lists[i];
	return NULL;
}

/* X509_V_OK, or the reason why the list does not apply to a certificate of `issuer`. */
static int list_judge(const struct list *it, X509 *issuer)
{
	const ASN1_TIME *next;

	if (!it || !issuer || EVP_PKEY_eq(it->signed_by, X509_get0_pubkey(issuer)) != 1)
		return X509_V_ERR_CRL_SIGNATURE_FAILURE;
	if (!(X509_get_key_usage(issuer) & KU_CRL_SIGN))
		return X509_V_ERR_KEYUSAGE_NO_CRL_SIGN;
	/* X509_cmp_current_time returns 0 for a time that it cannot read. */
	if (X509_cmp_current_time(X509_CRL_get0_lastUpdate(it->crl)) >= 0)
		return X509_V_ERR_CRL_NOT_YET_VALID;
	next = X509_CRL_get0_nextUpdate(it->crl);
	return next && X509_cmp_current_time(next) <= 0 ? X509_V_ERR_CRL_HAS_EXPIRED : X509_V_OK;
}

/* Replaces OpenSSL's check of the list that it found for a certificate. Returns 1, or sets an error and returns 0. */
static int on_check(X509_STORE_CTX *v, X509_CRL *crl)
{
	const struct tls_lists *l = X509_STORE_get_ex_data(X509_STORE_CTX_get0_store(v), store_index);
	const struct list *it = list_find(l, crl);
	int why;

	if (it && it->by_openssl)
		return l->openssl_check(v, crl);
	why = list_judge(it, X509_STORE_CTX_get0_current_issuer(v));
	if (why != X509_V_OK)
		X509_STORE_CTX_set_error(v, why);
	return why == X509_V_OK;
}

/* True if the list is from this CA, by the same criteria as OpenSSL's. */
static bool is_of(const X509_CRL *crl, X509 *ca)
{
	AUTHORITY_KEYID *id = X509_CRL_get_ext_d2i(crl, NID_authority_key_identifier, NULL, NULL);
	bool is = X509_NAME_cmp(X509_get_subject_name(ca), X509_CRL_get_issuer(crl)) == 0 &&
		  X509_check_akid(ca, id) == X509_V_OK;

	AUTHORITY_KEYID_free(id);
	return is;
}

/* Returns the key of the CA that signed the list. NULL: none did; *forged is true if its CA is in the store. */
static EVP_PKEY *find_signer(X509_STORE *store, X509_CRL *crl, bool *forged)
{
	STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(store);
	EVP_PKEY *signer = NULL;

	*forged = false;
	for (int i = 0; i < sk_X509_OBJECT_num(objects) && !signer; i++) {
		X509 *ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));

		if (!ca || !is_of(crl, ca))
			continue;
		if (X509_CRL_verify(crl, X509_get0_pubkey(ca)) == 1)
			signer = X509_get0_pubkey(ca);
		*forged = !signer;
	}
	/* Empty OpenSSL's error queue: trying CAs that have the name but did not sign the list left errors there, which
	 * a connection would take for its own. */
	ERR_clear_error();
	return signer;
}

/* Looks up any entry: OpenSSL sorts the entries at the first lookup, which must not delay a handshake. */
static void sort_entries(X509_CRL *crl)
{
	ASN1_INTEGER *any = ASN1_INTEGER_new();
	X509_REVOKED *found;

	if (any)
		(void)X509_CRL_get0_by_serial(crl, &found, any);
	ASN1_INTEGER_free(any);
}

static int not_signed(const struct tls_files *f, X509_CRL *crl, char *err, size_t size)
{
	char name[120];

	X509_NAME_oneline(X509_CRL_get_issuer(crl), name, sizeof(name));
	snprintf(err, size,
		 "revocation list %s: the signature is not that of its CA %s in file %s; get a new list from the CA",
		 f->path[TLS_FILE_CRL], name, f->path[TLS_FILE_CA]);
	return -EINVAL;
}

/* Refuses a delta list, which only has the changes since another list (RFC 5280, 5.2.4). */
static int refuse_delta(const struct tls_files *f, const X509_CRL *crl, char *err, size_t size)
{
	char name[120];

	if (X509_CRL_get_ext_by_NID(crl, NID_delta_crl, -1) < 0)
		return 0;
	X509_NAME_oneline(X509_CRL_get_issuer(crl), name, sizeof(name));
	snprintf(err, size,
		 "revocation list %s: that of CA %s is a delta list, which has only the changes to another list; get "
		 "the whole list from the CA", f->path[TLS_FILE_CRL], name);
	return -EINVAL;
}

static int list_take(struct tls_ctx *ctx, const struct tls_files *f, X509_CRL *crl, char *err, size_t size)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx->ssl_ctx);
	struct list *it = &ctx->lists->lists[ctx->lists->n];
	bool forged;

	it->signed_by = find_signer(store, crl, &forged);
	if (forged)
		return not_signed(f, crl, err, size);
	sort_entries(crl);
	if (X509_STORE_add_crl(store, crl) != 1 || X509_CRL_up_ref(crl) != 1)
		return tls_load_not_usable(f, TLS_FILE_CRL, err, size);
	it->crl = crl;
	it->by_openssl = !it->signed_by || X509_CRL_get_ext_by_NID(crl, NID_issuing_distribution_point, -1) >= 0;
	if (it->signed_by)
		EVP_PKEY_up_ref(it->signed_by);
	else
		ctx->lists->foreign++;
	ctx->lists->n++;
	ctx->dates.crl_expires_at = MIN(ctx->dates.crl_expires_at, tls_seconds_of(X509_CRL_get0_nextUpdate(crl)));
	return 0;
}

static struct tls_lists *new_lists(size_t max)
{
	struct tls_lists *l = calloc(1, sizeof(*l) + max * sizeof(l->lists[0]));
	X509_STORE_CTX *v = X509_STORE_CTX_new();

	if (l && v && X509_STORE_CTX_init(v, NULL, NULL, NULL) == 1) {
		l->openssl_check = X509_STORE_CTX_get_check_crl(v);
	} else {
		free(l);
		l = NULL;
	}
	X509_STORE_CTX_free(v);
	return l;
}

static int take_all(struct tls_ctx *ctx, const struct tls_files *f, const STACK_OF(X509_INFO) *infos, char *err,
		    size_t size)
{
	int ret = 0, n = 0;

	ctx->lists = new_lists((size_t)sk_X509_INFO_num(infos));
	if (!ctx->lists)
		return -ENOMEM;
	for (int i = 0; i < sk_X509_INFO_num(infos) && !ret; i++) {
		X509_CRL *crl = sk_X509_INFO_value(infos, i)->crl;

		n += crl != NULL;
		if (crl)
			ret = refuse_delta(f, crl, err, size);
		if (crl && !ret)
			ret = list_take(ctx, f, crl, err, size);
	}
	return ret || n ? ret : tls_load_not_usable(f, TLS_FILE_CRL, err, size);
}

int tls_lists_load(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx->ssl_ctx);
	STACK_OF(X509_INFO) *infos;
	int ret;

	if (!f->pem[TLS_FILE_CRL])
		return 0;
	infos = tls_load_infos(f, TLS_FILE_CRL);
	if (!infos)
		return tls_load_not_usable(f, TLS_FILE_CRL, err, size);
	ret = take_all(ctx, f, infos, err, size);
	sk_X509_INFO_pop_free(infos, X509_INFO_free);
	if (ret)
		return ret;
	pthread_once(&store_index_once, make_store_index);
	if (X509_STORE_set_ex_data(store, store_index, ctx->lists) != 1)
		return -ENOMEM;
	/* Every certificate of a chain needs a list of its issuer, and must not be in that list. */
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	X509_STORE_set_check_crl(store, on_check);
	if (!tls_lists_expired(ctx))
		return 0;
	snprintf(err, size, "revocation list %s is out of date, so peers would be refused; get a new one from the "
		 "CA", f->path[TLS_FILE_CRL]);
	return -EKEYEXPIRED;
}

bool tls_lists_expired(const struct tls_ctx *ctx)
{
	return ctx->dates.crl_expires_at <= (int64_t)time(NULL);
}

void tls_lists_free(struct tls_lists *l)
{
	for (uint32_t i = 0; l && i < l->n; i++) {
		X509_CRL_free(l->lists[i].crl);
		EVP_PKEY_free(l->lists[i].signed_by);
	}
	free(l);
}

uint32_t tls_ctx_foreign_lists(const struct tls_ctx *ctx)
{
	return ctx->lists ? ctx->lists->foreign : 0;
}
