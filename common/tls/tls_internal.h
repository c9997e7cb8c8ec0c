/* What tls_ctx.c and tls.c share: the two halves of tls.h. */
#ifndef RAMPART_COMMON_TLS_INTERNAL_H
#define RAMPART_COMMON_TLS_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "common/tls/ticket_keys.h"
#include "common/tls/tls.h"
#include "common/tls/tls_limits.h"
#include "common/tls/tls_socket.h"
#include "common/wire/frame.h"

struct tls_ctx {
	SSL_CTX *ssl_ctx;
	BIO_METHOD *socket_method;
	bool server;
	bool has_tickets;		/* until tls_ctx_free */
	struct ticket_ring tickets;
	EVP_CIPHER *ticket_cipher;	/* fetched once: a fetch per ticket costs more than the cipher */
	const char *allow_names;	/* NULL: all */
	struct tls_dates dates;
	bool is_development;
	_Atomic uint64_t log_due_ns;	/* earliest time of the next line about a peer that was cut off */
	_Atomic size_t refs;		/* the owner's and one for each connection: those may end on other threads */
};

struct tls {
	struct tls_ctx *ctx;
	SSL *ssl;
	SSL_SESSION *session;	/* client: that of the newest ticket */
	struct fail failure;
	char text[160];
	struct tls_socket socket;
	struct tls_limits limits;
};

#define TLS_ALPN_BYTES (sizeof(FRAME_ALPN) - 1)

/* Drops a reference; the last one frees. */
void tls_ctx_put(struct tls_ctx *ctx);

/* How long all certificates of this chain are valid, in seconds since 1970; INT64_MAX for none. */
int64_t tls_chain_expires_at(STACK_OF(X509) *chain);

#endif
