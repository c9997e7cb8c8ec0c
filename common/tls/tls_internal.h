/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files share that make up tls.h: contexts (tls_ctx.c), what is loaded into them (tls_load.c, tls_lists.c), their
 * tickets (tls_tickets.c), and connections (tls.c). */
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
	bool has_tickets;		/* until tls_ctx_free */
	struct ticket_ring tickets;
	EVP_CIPHER *ticket_cipher;	/* fetched once: a fetch per ticket costs more than the cipher */
	const char *allow_names;	/* NULL: all */
	struct tls_lists *lists;	/* NULL: none are asked for */
	struct tls_dates dates;
	bool is_development;
	_Atomic uint64_t log_due_ns;	/* earliest time of the next line about a peer that was cut off */
	_Atomic size_t refs;		/* the owner's, its holders' and one for each connection: those may end on other threads */
};

struct tls {
	struct tls_ctx *ctx;
	SSL *ssl;
	SSL_SESSION *session;	/* client: that of the newest ticket */
	struct fail failure;
	char text[160];
	struct tls_socket socket;
	struct tls_limits limits;
	uint32_t sent_records;	/* with the present key */
};

/* ---- tls_load.c */

/* Fill ctx->ssl_ctx from the files, those that are there. As tls_ctx_new. */
int tls_load_cas(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
	__attribute__((warn_unused_result));
int tls_load_own(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
	__attribute__((warn_unused_result));

/* All that a file has of certificates and lists; the caller frees it. NULL: it is not usable. */
STACK_OF(X509_INFO) *tls_load_infos(const struct tls_files *f, enum tls_file which);
/* Says so, with OpenSSL's reason. Returns -EINVAL. */
int tls_load_not_usable(const struct tls_files *f, enum tls_file which, char *err, size_t size);

/* In seconds since 1970; INT64_MAX for none. */
int64_t tls_seconds_of(const ASN1_TIME *t);
/* How long all certificates of this chain are valid; INT64_MAX for none. */
int64_t tls_chain_expires_at(STACK_OF(X509) *chain);

/* ---- tls_lists.c */

/* Loads the revocation lists of f into ctx, if it has any: after tls_load_cas. If a CA has signed a list that was loaded,
 * that is verified here, for good: a handshake looks only whether the list is of the certificate's CA and up to date, and
 * for the certificate in it, which takes no longer with a long list. As tls_ctx_new. */
int tls_lists_load(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
	__attribute__((warn_unused_result));
/* True if one of the lists is out of date. */
bool tls_lists_expired(const struct tls_ctx *ctx);
void tls_lists_free(struct tls_lists *l);	/* after the SSL_CTX; NULL-safe */

/* ---- tls_tickets.c */

/* Server: tickets as cfg says. 0, -ENOMEM or -EINVAL. */
int tls_configure_tickets(struct tls_ctx *ctx, const struct tls_config *cfg) __attribute__((warn_unused_result));

#endif
