/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files that implement tls.h: contexts (tls_ctx.c), their files (tls_load.c, tls_lists.c)
 * and tickets (tls_tickets.c), and connections (tls.c). */
#ifndef RAMPART_COMMON_TLS_INTERNAL_H
#define RAMPART_COMMON_TLS_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "common/tls/ticket_keys.h"
#include "common/tls/tls.h"
#include "common/tls/tls_files.h"
#include "common/tls/tls_limits.h"
#include "common/tls/tls_socket.h"
#include "common/wire/frame.h"

struct tls_lists;

struct tls_ctx {
	SSL_CTX *ssl_ctx;
	BIO_METHOD *socket_method;
	bool server;
	bool has_tickets;		/* server: it sends tickets; false after tls_ctx_free */
	struct ticket_ring tickets;
	EVP_CIPHER *ticket_cipher;	/* fetched once: a fetch per ticket costs more than the cipher */
	const char *allow_names;	/* NULL: all names */
	struct tls_lists *lists;	/* NULL: revocation is not checked */
	struct tls_dates dates;
	bool is_development;
	_Atomic uint64_t log_due_ns;	/* earliest time of the next log line about a peer that was cut off */
	_Atomic size_t refs;		/* held by the owner, holders and connections, even on other threads */
};

struct tls {
	struct tls_ctx *ctx;
	SSL *ssl;
	SSL_SESSION *session;	/* client: session of the newest ticket */
	struct fail failure;
	char text[160];
	struct tls_socket socket;
	struct tls_limits limits;
	uint32_t sent_records;	/* records sent with the present key */
};

/* Load the files that are present into ctx->ssl_ctx. Errors as tls_ctx_new. */
int tls_load_cas(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
	__attribute__((warn_unused_result));
int tls_load_own(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
	__attribute__((warn_unused_result));

/* All certificates and lists of a file; the caller frees them. NULL: the file is not usable. */
STACK_OF(X509_INFO) *tls_load_infos(const struct tls_files *f, enum tls_file which);
/* Reports in `err` that the file is not usable, with OpenSSL's reason. Returns -EINVAL. */
int tls_load_not_usable(const struct tls_files *f, enum tls_file which, char *err, size_t size);

/* In seconds since 1970; INT64_MAX for none. */
int64_t tls_seconds_of(const ASN1_TIME *t);
/* Time until which all certificates of this chain are valid; INT64_MAX for no certificate. */
int64_t tls_chain_expires_at(STACK_OF(X509) *chain);

/* Loads the revocation lists of f, if any, into ctx; call after tls_load_cas. Verifies here, once, each list whose CA
 * was loaded: a handshake then only checks that the list is current and from the certificate's issuer, and looks for
 * the certificate in it, which takes no longer in a long list. Errors as tls_ctx_new. */
int tls_lists_load(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
	__attribute__((warn_unused_result));
/* True if one of the lists is out of date. */
bool tls_lists_expired(const struct tls_ctx *ctx);
void tls_lists_free(struct tls_lists *l);	/* after the SSL_CTX; NULL-safe */

/* Server: configures tickets according to cfg. Returns 0, -ENOMEM or -EINVAL. */
int tls_configure_tickets(struct tls_ctx *ctx, const struct tls_config *cfg) __attribute__((warn_unused_result));

#endif
