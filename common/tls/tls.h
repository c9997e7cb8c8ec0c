/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.3 on non-blocking sockets: contexts (tls_ctx.c, tls_load.c, tls_lists.c, tls_tickets.c) and connections (tls.c),
 * the only files that call OpenSSL's SSL_* functions.
 *
 * Each thread has a tls_ctx of its own, so that threads share no locks. Connections belong to its thread until their
 * handshake is done; then one may be given to another thread. A context is there until its last connection has ended.
 *
 * Small writes are held back, to be sent together with what follows (tls_socket.h). They go out at the latest when a
 * read or a handshake returns TLS_WANT_READ, and when the connection is freed; before waiting for anything else, call
 * tls_flush. A read takes all that the socket has: read until TLS_WANT_READ before waiting for the socket to become
 * readable.
 *
 * What a peer can make this end do is bounded (tls_limits.h). A connection reads so much in a turn, which ends with
 * TLS_WANT_READ or TLS_MORE. A peer that sends too much in its handshake, or too many records without application data
 * after it, is cut off: the call fails with FAIL_TLS_RECORDS, and a line is logged, at most one in 10 s for a context.
 *
 * tls_io.h drives a connection on an event loop; what needs no loop is called here.
 */
#ifndef RAMPART_COMMON_TLS_H
#define RAMPART_COMMON_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/fail.h"

struct ticket_seed;
struct tls_ctx;
struct tls_files;
struct tls;
/* What a client needs to resume a session. Whoever holds it frees it. */
struct tls_session;

struct tls_config {
	bool server;
	const char *cert_file;	/* PEM chain; NULL for a client without one */
	const char *key_file;
	const char *ca_file;	/* PEM: the CAs to trust */
	/* PEM: revocation lists, one of each CA in a peer's chain, or the peer is refused; NULL: none are asked for. The
	 * signatures of those whose CA is not in ca_file are verified in each handshake, which a long list makes longer. */
	const char *crl_file;
	/* The same files, read before; NULL: tls_ctx_new reads those named above. */
	const struct tls_files *files;
	bool require_peer_cert;	/* server: refuse clients without a certificate from ca_file */
	/* Server that requires certificates: the names of which one must stand in a client's (tls_names.h); NULL: any. Not
	 * copied. The handshake does not look at it; see tls_peer_is_allowed. */
	const char *allow_names;
	/* Server: sessions may be resumed, with tickets sealed by keys from this seed; NULL: never. */
	const struct ticket_seed *tickets;
	bool resume;		/* client: keep the sessions that servers send tickets for */
};

/* Loads and checks the files. Returns 0, or with a line in `err` that names the file and what to do:
 * -ENOENT, -EACCES	a file is not there, or may not be read
 * -EKEYEXPIRED	the certificate has expired, or is not valid yet, or the revocation list is out of date
 * -EINVAL	a file is not PEM, the key is not the certificate's, a list is not signed by its CA or a delta list, or
 *		OpenSSL cannot do TLS 1.3
 * -ENOMEM	out of memory
 * or what tls_files_read returns */
int tls_ctx_new(const struct tls_config *cfg, struct tls_ctx **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Its thread's end of it: no new connections. Those it has go on, but get no tickets, and its ticket keys are wiped; with
 * the last of them the private key is freed. NULL-safe. */
void tls_ctx_free(struct tls_ctx *ctx);

/* Any thread: holds the context, so that this thread frees it and not the one that ends its last connection: it takes 9 ms
 * to free a revocation list of 100,000 entries. */
void tls_ctx_hold(struct tls_ctx *ctx);
/* True if whoever holds the context is the last that has it. It stays so. */
bool tls_ctx_is_last(const struct tls_ctx *ctx);
/* Ends a hold; the last one frees the context. */
void tls_ctx_put(struct tls_ctx *ctx);

/* In seconds since 1970; INT64_MAX: there is none. */
struct tls_dates {
	int64_t cert_expires_at;	/* the first of the certificates in cert_file */
	int64_t crl_expires_at;		/* the first of the lists in crl_file */
};
void tls_ctx_dates(const struct tls_ctx *ctx, struct tls_dates *out);
/* How many lists in crl_file are of CAs that are not in ca_file. */
uint32_t tls_ctx_foreign_lists(const struct tls_ctx *ctx);
/* True if the certificate is one of scripts/make-certs, whose CA's key lies about. */
bool tls_ctx_is_development(const struct tls_ctx *ctx);

/* Server: brings the ticket keys to the epoch of `now_ns`, and wipes those that no ticket is opened with any more. A
 * context that makes or opens a ticket does it by itself. Returns the time until the next step; UINT64_MAX: there are no
 * tickets. */
uint64_t tls_ctx_step_tickets(struct tls_ctx *ctx, uint64_t now_ns);

enum tls_status {
	TLS_DONE,
	TLS_WANT_READ,	/* call again when the socket is readable */
	TLS_WANT_WRITE,	/* call again when the socket is writable */
	TLS_MORE,	/* call again soon, whatever the socket says: the turn is over, and more may have come */
	TLS_EOF,	/* the peer closed */
	TLS_FAILED,	/* tls_failure says how */
};

/* Takes the connected non-blocking socket `fd`; tls_free closes it. A client verifies the server's
 * certificate for `verify_name`, a DNS name or an IP address. 0 or -ENOMEM (fd then stays the caller's). */
int tls_new(struct tls_ctx *ctx, int fd, const char *verify_name, struct tls **out)
	__attribute__((warn_unused_result));

/* Sends what is held back, as much of it as the socket takes now, and closes the socket. Sends no close_notify: see
 * tls_close_notify. NULL-safe. */
void tls_free(struct tls *t);

int tls_fd(const struct tls *t);
/* Whether the kernel encrypts what is sent (kTLS). OpenSSL has it do so on its own socket BIO alone, so not as it is here. */
bool tls_uses_ktls(const struct tls *t);

/* Drives the handshake. TLS_DONE also means that ALPN agreed on rampart/2; at a server, on that or on rampart/1, whose first
 * frame is refused with its version. */
enum tls_status tls_handshake(struct tls *t) __attribute__((warn_unused_result));

/* True if the handshake resumed a session: no certificates were exchanged. After the handshake. */
bool tls_is_resumed(const struct tls *t);

/* Server, after the handshake: true if the peer's certificate has a name that the context allows. Also of a resumed
 * session, which stands for a certificate. */
bool tls_peer_is_allowed(const struct tls *t);

/* Server, after the handshake: sends a session ticket ahead of the next bytes written (RFC 8446, 4.6.1). 0, -ENOTSUP in
 * a context without tickets, or -EIO. */
int tls_send_ticket(struct tls *t) __attribute__((warn_unused_result));

/* Client, before the first tls_handshake: offers to resume `s`, which stays the caller's, unless the server's certificate
 * of then has expired, or a revocation list is out of date. The server may choose a full handshake all the same. */
void tls_offer_session(struct tls *t, struct tls_session *s);
/* Client: the session of the newest ticket that came; the caller frees it. NULL: none came. */
struct tls_session *tls_take_session(struct tls *t);
void tls_session_free(struct tls_session *s);	/* NULL-safe */

/* Reads or writes up to `n` bytes. TLS_DONE: *got or *put of them. */
enum tls_status tls_read(struct tls *t, void *buf, size_t n, size_t *got)
	__attribute__((warn_unused_result));
enum tls_status tls_write(struct tls *t, const void *buf, size_t n, size_t *put)
	__attribute__((warn_unused_result));

/* Sends what is held back. TLS_DONE: the socket has taken all of it. */
enum tls_status tls_flush(struct tls *t) __attribute__((warn_unused_result));

/* Writes the close_notify alert behind everything else. If the socket and the room for held-back bytes are full, no
 * alert is sent. */
void tls_close_notify(struct tls *t);

/* Derives key material that both ends of the connection know (RFC 8446, 7.5). After the handshake. 0 or -EIO. */
int tls_export_key(struct tls *t, const char *label, const uint8_t *context, size_t context_n,
		   uint8_t *out, size_t out_n) __attribute__((warn_unused_result));

/* Why the last call returned TLS_FAILED: kind (FAIL_TLS, FAIL_CERTIFICATE or FAIL_ERRNO) and code; the stage is the
 * caller's. */
void tls_failure(const struct tls *t, struct fail *out);
/* The same in words; valid until the next call on `t`. */
const char *tls_failure_text(const struct tls *t);

/* Version, cipher and group: "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519". Returns `text`. After the handshake. */
const char *tls_describe(const struct tls *t, char *text, size_t size);

#endif
