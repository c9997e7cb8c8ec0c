/* TLS 1.3 on non-blocking sockets. The only file that calls OpenSSL's SSL_* functions.
 *
 * A tls_ctx is made once per thread that uses it (so that threads share no locks) and outlives its
 * connections; a tls belongs to the thread of its context.
 *
 * What is said in a few bytes waits for what follows (tls_socket.h): it goes out at the latest when the caller
 * waits for the peer, which is after TLS_WANT_READ, or frees the connection. Whoever waits for something else
 * calls tls_flush. What the peer sent is taken from the socket as a whole: read until TLS_WANT_READ before
 * waiting for the socket to be readable.
 */
#ifndef RAMPART_COMMON_TLS_H
#define RAMPART_COMMON_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/fail.h"

struct ticket_seed;
struct tls_ctx;
struct tls;
/* What a client needs to resume a session. Belongs to whoever holds it. */
struct tls_session;

struct tls_config {
	bool server;
	const char *cert_file;	/* PEM chain; NULL for a client without one */
	const char *key_file;
	const char *ca_file;	/* PEM: whom to trust */
	bool require_peer_cert;	/* server: refuse clients without a certificate from ca_file */
	/* Server: sessions may be resumed, with tickets sealed by keys from this seed; NULL: never. */
	const struct ticket_seed *tickets;
	bool resume;		/* client: keep the sessions that servers send tickets for */
};

/* Loads and checks the files. Returns 0, -ENOENT, -EACCES, -EKEYEXPIRED or -EINVAL; on failure `err`
 * holds one line that names the file and what to do. */
int tls_ctx_new(const struct tls_config *cfg, struct tls_ctx **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));
void tls_ctx_free(struct tls_ctx *ctx);	/* NULL-safe; after its last connection */

enum tls_status {
	TLS_DONE,
	TLS_WANT_READ,	/* call again when the socket is readable */
	TLS_WANT_WRITE,
	TLS_EOF,	/* the peer closed */
	TLS_FAILED,	/* tls_failure says how */
};

/* Takes the connected non-blocking socket `fd`; tls_free closes it. A client verifies the server's
 * certificate for `verify_name`, a DNS name or an IP address. 0 or -ENOMEM (fd then stays the caller's). */
int tls_new(struct tls_ctx *ctx, int fd, const char *verify_name, struct tls **out)
	__attribute__((warn_unused_result));

/* NULL-safe. Says what is still to be said, as far as the socket takes it, and closes the socket; see
 * tls_close_notify. */
void tls_free(struct tls *t);

int tls_fd(const struct tls *t);

/* Drives the handshake. TLS_DONE also means that ALPN agreed on rampart/1. */
enum tls_status tls_handshake(struct tls *t) __attribute__((warn_unused_result));

/* True if the handshake resumed a session: no certificates were exchanged. After the handshake. */
bool tls_is_resumed(const struct tls *t);

/* Server: a ticket goes out before the next bytes written. 0, -ENOTSUP in a context without tickets, or -EIO.
 * After the handshake (RFC 8446, 4.6.1). */
int tls_send_ticket(struct tls *t) __attribute__((warn_unused_result));

/* Client, before the first tls_handshake: offers to resume `s`, which stays the caller's. The server may
 * choose a full handshake all the same. */
void tls_offer_session(struct tls *t, struct tls_session *s);
/* Client: the newest session a ticket came for, the caller's from now on; NULL when there is none. */
struct tls_session *tls_take_session(struct tls *t);
void tls_session_free(struct tls_session *s);	/* NULL-safe */

/* Up to `n` bytes; *got or *put says how many when TLS_DONE. */
enum tls_status tls_read(struct tls *t, void *buf, size_t n, size_t *got)
	__attribute__((warn_unused_result));
enum tls_status tls_write(struct tls *t, const void *buf, size_t n, size_t *put)
	__attribute__((warn_unused_result));

/* Sends what was written; TLS_DONE when the socket has taken all of it. */
enum tls_status tls_flush(struct tls *t) __attribute__((warn_unused_result));

/* Says the close_notify alert, as the last of what is written. Never blocks: a socket that is full, with more
 * written already than can wait, goes without. */
void tls_close_notify(struct tls *t);

/* RFC 8446, 7.5. 0 or -EIO. After the handshake only. */
int tls_export_key(struct tls *t, const char *label, const uint8_t *context, size_t context_n,
		   uint8_t *out, size_t out_n) __attribute__((warn_unused_result));

/* Why the last call returned TLS_FAILED, without its stage. */
void tls_failure(const struct tls *t, struct fail *out);
/* The same in OpenSSL's words; valid until the next call on `t`. */
const char *tls_failure_text(const struct tls *t);

/* "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519"; into `text`. After the handshake. */
const char *tls_describe(const struct tls *t, char *text, size_t size);

#endif
