/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates for a test run: a CA and what it signs, P-256, valid for an hour. See certs.h. */
#include "tests/unit/helpers/certs.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct made {
	X509 *cert;
	EVP_PKEY *key;
};

struct certs_cas {
	struct made own, other, third;
};

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	int ret;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (!e)
		return -1;
	ret = X509_add_ext(cert, e, -1) == 1 ? 0 : -1;
	X509_EXTENSION_free(e);
	return ret;
}

/* All but extensions and signature; issued by `ca`, or by itself. */
static int begin(const char *name, const struct made *ca, int valid_s, struct made *out)
{
	static long serial = 1;
	X509_NAME *subject;

	out->key = EVP_EC_gen("P-256");
	out->cert = X509_new();
	if (!out->key || !out->cert)
		return -1;
	subject = X509_get_subject_name(out->cert);
	X509_set_version(out->cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(out->cert), serial++);
	X509_gmtime_adj(X509_getm_notBefore(out->cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(out->cert), valid_s);
	X509_set_pubkey(out->cert, out->key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
				   0);
	X509_set_issuer_name(out->cert, ca ? X509_get_subject_name(ca->cert) : subject);
	return ca ? add_extension(out->cert, ca->cert, NID_authority_key_identifier, "keyid:always") : 0;
}

/* Signed by `above`, or by itself. */
static int make_ca(const struct certs_ca_wish *w, const struct made *above, struct made *out)
{
	if (begin(w->name, above, 3600, out) ||
	    add_extension(out->cert, NULL, NID_basic_constraints, "critical,CA:TRUE") ||
	    add_extension(out->cert, NULL, NID_subject_key_identifier, "hash"))
		return -1;
	if (w->usage && add_extension(out->cert, NULL, NID_key_usage, w->usage))
		return -1;
	return X509_sign(out->cert, above ? above->key : out->key, EVP_sha256()) > 0 ? 0 : -1;
}

static int make_for(const char *name, const struct made *ca, const char *san, int valid_s, struct made *out)
{
	if (begin(name, ca, valid_s, out) ||
	    add_extension(out->cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE"))
		return -1;
	if (san && add_extension(out->cert, ca->cert, NID_subject_alt_name, san))
		return -1;
	return X509_sign(out->cert, ca->key, EVP_sha256()) > 0 ? 0 : -1;
}

static int make(const char *name, const struct made *ca, const char *san, struct made *out)
{
	return make_for(name, ca, san, 3600, out);
}

static int put_pem(const char *path, const char *mode, X509 *cert, EVP_PKEY *key)
{
	FILE *f = fopen(path, mode);
	int ok;

	if (!f)
		return -1;
	ok = cert ? PEM_write_X509(f, cert)
		  : PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	return fclose(f) == 0 && ok == 1 ? 0 : -1;
}

static int write_pem(const char *path, X509 *cert, EVP_PKEY *key)
{
	return put_pem(path, "w", cert, key);
}

static void drop(struct made *m)
{
	X509_free(m->cert);
	EVP_PKEY_free(m->key);
}

int certs_make(struct certs *c)
{
	const struct certs_ca_wish first = { .name = "unit test CA" }, second = { .name = "another CA" };
	struct made server = { 0 }, client = { 0 };
	struct made *ca, *other;
	int ret = -1;

	c->cas = calloc(1, sizeof(*c->cas));
	if (!c->cas || scratch_make(c->dir))
		return -1;
	ca = &c->cas->own;
	other = &c->cas->other;
	snprintf(c->ca, sizeof(c->ca), "%s/ca.pem", c->dir);
	snprintf(c->server_cert, sizeof(c->server_cert), "%s/server.pem", c->dir);
	snprintf(c->server_key, sizeof(c->server_key), "%s/server.key", c->dir);
	snprintf(c->client_cert, sizeof(c->client_cert), "%s/client.pem", c->dir);
	snprintf(c->client_key, sizeof(c->client_key), "%s/client.key", c->dir);
	snprintf(c->other_ca, sizeof(c->other_ca), "%s/other.pem", c->dir);
	if (!make_ca(&first, NULL, ca) && !make_ca(&second, NULL, other) &&
	    !make("server", ca, "IP:127.0.0.1,DNS:localhost", &server) &&
	    !make("client", ca, NULL, &client) && !write_pem(c->ca, ca->cert, NULL) &&
	    !write_pem(c->other_ca, other->cert, NULL) &&
	    !write_pem(c->server_cert, server.cert, NULL) &&
	    !write_pem(c->server_key, NULL, server.key) &&
	    !write_pem(c->client_cert, client.cert, NULL) &&
	    !write_pem(c->client_key, NULL, client.key))
		ret = 0;
	drop(&server);
	drop(&client);
	return ret;
}

void certs_remove(const struct certs *c)
{
	(void)!scratch_remove(c->dir);
	drop(&c->cas->own);
	drop(&c->cas->other);
	drop(&c->cas->third);
	free(c->cas);
}

int certs_make_third(const struct certs *c, const struct certs_ca_wish *w, char path[CERTS_PATH_MAX])
{
	struct made *third = &c->cas->third;

	drop(third);
	*third = (struct made){ 0 };
	snprintf(path, CERTS_PATH_MAX, "%s/third.pem", c->dir);
	return make_ca(w, w->below ? &c->cas->own : NULL, third) ? -1 : write_pem(path, third->cert, NULL);
}

int certs_issue(const struct certs *c, const struct certs_wish *w, struct certs_pair *out)
{
	const struct made *ca = w->by_other_ca ? &c->cas->other :
				w->by_third_ca ? &c->cas->third : &c->cas->own;
	struct made m = { 0 };
	int ret = -1;

	snprintf(out->cert, sizeof(out->cert), "%s/%s.pem", c->dir, w->name);
	snprintf(out->key, sizeof(out->key), "%s/%s.key", c->dir, w->name);
	if (!make_for(w->name, ca, w->san, w->valid_s, &m) && !write_pem(out->cert, m.cert, NULL) &&
	    (!w->by_third_ca || !put_pem(out->cert, "a", ca->cert, NULL)) && !write_pem(out->key, NULL, m.key))
		ret = 0;
	drop(&m);
	return ret;
}

/* Adds the certificate in the file to the list. */
static int add_revoked(X509_CRL *crl, const char *path, const ASN1_TIME *when)
{
	FILE *f = fopen(path, "r");
	X509 *x = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
	X509_REVOKED *r = X509_REVOKED_new();
	int ret = -1;

	if (f)
		fclose(f);
	if (x && r && X509_REVOKED_set_serialNumber(r, X509_get_serialNumber(x)) == 1 &&
	    X509_REVOKED_set_revocationDate(r, (ASN1_TIME *)when) == 1 && X509_CRL_add0_revoked(crl, r) == 1) {
		r = NULL;
		ret = 0;
	}
	X509_REVOKED_free(r);
	X509_free(x);
	return ret;
}

/* As many entries as are asked for, with serial numbers that no certificate has. */
static int add_strangers(X509_CRL *crl, uint32_t n, const ASN1_TIME *when)
{
	X509_REVOKED *r;

	for (uint32_t i = 0; i < n; i++) {
		ASN1_INTEGER *serial = ASN1_INTEGER_new();
		bool ok = serial && ASN1_INTEGER_set_uint64(serial, (UINT64_C(1) << 62) + i);

		r = X509_REVOKED_new();
		ok = ok && r && X509_REVOKED_set_serialNumber(r, serial) == 1 &&
		     X509_REVOKED_set_revocationDate(r, (ASN1_TIME *)when) == 1 && X509_CRL_add0_revoked(crl, r) == 1;
		ASN1_INTEGER_free(serial);
		if (!ok) {
			X509_REVOKED_free(r);
			return -1;
		}
	}
	return 0;
}

/* `only` as in openssl.cnf. */
static int add_scope(X509_CRL *crl, const char *only)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_issuing_distribution_point, only);
	int ret = e && X509_CRL_add_ext(crl, e, -1) == 1 ? 0 : -1;

	X509_EXTENSION_free(e);
	return ret;
}

static int mark_as_delta(X509_CRL *crl)
{
	ASN1_INTEGER *base = ASN1_INTEGER_new();
	int ret = base && ASN1_INTEGER_set(base, 1) == 1 && X509_CRL_add1_ext_i2d(crl, NID_delta_crl, base, 1, 0) == 1 ?
		  0 : -1;

	ASN1_INTEGER_free(base);
	return ret;
}

int certs_list_as(const struct certs *c, const struct certs_list_wish *w, char path[CERTS_PATH_MAX])
{
	const struct made *ca = w->of_third ? &c->cas->third : &c->cas->own, *signer = w->forged ? &c->cas->other : ca;
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *last = ASN1_TIME_adj(NULL, time(NULL), 0, w->early ? 100 : -60);
	ASN1_TIME *next = ASN1_TIME_adj(NULL, time(NULL), 0, w->valid_s);
	FILE *f = NULL;
	int ret = -1;

	snprintf(path, CERTS_PATH_MAX, "%s/crl.pem", c->dir);
	if (crl && last && next && X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1 &&
	    X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert)) == 1 &&
	    X509_CRL_set1_lastUpdate(crl, last) == 1 && X509_CRL_set1_nextUpdate(crl, next) == 1 &&
	    (!w->revoked || !add_revoked(crl, w->revoked, last)) && !add_strangers(crl, w->strangers, last) &&
	    (!w->only || !add_scope(crl, w->only)) && (!w->delta || !mark_as_delta(crl)) && X509_CRL_sort(crl) == 1 &&
	    X509_CRL_sign(crl, signer->key, EVP_sha256()) > 0)
		f = fopen(path, w->append ? "a" : "w");
	if (f && PEM_write_X509_CRL(f, crl) == 1)
		ret = 0;
	if (f && fclose(f))
		ret = -1;
	ASN1_TIME_free(last);
	ASN1_TIME_free(next);
	X509_CRL_free(crl);
	return ret;
}

int certs_list(const struct certs *c, const char *revoked, int valid_s, char path[CERTS_PATH_MAX])
{
	const struct certs_list_wish wish = { .revoked = revoked, .valid_s = valid_s };

	return certs_list_as(c, &wish, path);
}

int certs_spoil(const char *path)
{
	FILE *f = fopen(path, "w");

	return f && fputs("not PEM\n", f) >= 0 && fclose(f) == 0 ? 0 : -1;
}
