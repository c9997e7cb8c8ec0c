/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.3 on non-blocking sockets: contexts (tls_ctx.c, tls_load.c, tls_lists.c, tls_tickets.c) and connections
 * (tls.c), the only files that call OpenSSL's SSL_* functions.
 *
 * Each thread has its own tls_ctx, so that threads share no locks. A connection belongs to the context's thread until
 * its handshake is done; then it may move to another thread. A context exists until its last connection has ended.
 *
 * Small writes are held back, to be sent together with what follows (tls_socket.h). They go out at the latest when a
 * read or a handshake returns TLS_WANT_READ, and when the connection is freed; before waiting for anything else, call
 * tls_flush. A read takes everything from the socket: read until TLS_WANT_READ before waiting for the socket to become
 * readable.
 *
 * The work that a peer can cause is bounded (tls_limits.h). A connection reads a limited amount per turn, which ends
 * with TLS_WANT_READ or TLS_MORE. A peer that sends too much in its handshake, or too many records without application
 * data after it, is cut off: the call fails with FAIL_TLS_RECORDS, and a line is logged, at most one in 10 s per
 * context.
 *
 * tls_io.h drives a connection on an event loop; functions that need no loop are called here.
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
/* State that a client needs to resume a session. Its holder frees it. */
struct tls_session;

struct tls_config {
	bool server;
	const char *cert_file;	/* PEM chain; NULL for a client without one */
	const char *key_file;
	const char *ca_file;	/* PEM: the CAs to trust */
	/* PEM: revocation lists, one from each CA in a peer's chain, or the peer is refused; NULL: no revocation check.
	 * Each handshake verifies the signatures of lists whose CA is not in ca_file, at a cost that grows with the
	 * list. */
	const char *crl_file;
	/* The same files, already read; NULL: tls_ctx_new reads the files named above. */
	const struct tls_files *files;
	bool require_peer_cert;	/* server: refuse clients without a certificate from ca_file */
	/* Server that requires certificates: names of which a client's certificate must have one (tls_names.h); NULL:
	 * any. Not copied. The handshake does not check it; see tls_peer_is_allowed. */
	const char *allow_names;
	/* Server: seed of the keys that seal tickets, so that sessions can be resumed; NULL: no session is resumed. */
	const struct ticket_seed *tickets;
	bool resume;		/* client: keep the sessions that servers send tickets for */
};

/* Loads and checks the files. Returns 0, or with a line in `err` that names the file and what to do:
 * -ENOENT, -EACCES	a file does not exist, or may not be read
 * -EKEYEXPIRED	the certificate has expired, or is not valid yet, or the revocation list is out of date
 * -EINVAL	a file is not PEM, the key is not the certificate's, a list is a delta list or not signed by its CA, or
 *		OpenSSL cannot do TLS 1.3
 * -ENOMEM	out of memory
 * or what tls_files_read returns */
int tls_ctx_new(const struct tls_config *cfg, struct tls_ctx **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Drops the thread's reference: no new connections. Existing connections go on but get no tickets, and the ticket keys
 * are wiped; the private key is freed with the last connection. NULL-safe. */
void tls_ctx_free(struct tls_ctx *ctx);

/* Takes a reference, so that the thread that ends the context's last connection does not have to free it, which takes
 * 9 ms with a revocation list of 100,000 entries. Any thread. */
void tls_ctx_hold(struct tls_ctx *ctx);
/* True if the caller's reference is the last one. It stays the last, as only a holder of one can take another. */
bool tls_ctx_is_last(const struct tls_ctx *ctx);
/* Drops a reference; dropping the last one frees the context. */
void tls_ctx_put(struct tls_ctx *ctx);

/* Expiry dates in seconds since 1970; INT64_MAX: none. */
struct tls_dates {
	int64_t cert_expires_at;	/* the earliest in cert_file */
	int64_t crl_expires_at;		/* the earliest in crl_file */
};
void tls_ctx_dates(const struct tls_ctx *ctx, struct tls_dates *out);
/* Number of lists in crl_file whose CA is not in ca_file. */
uint32_t tls_ctx_foreign_lists(const struct tls_ctx *ctx);
/* True if the certificate was made by scripts/make-certs, whose CA key is not kept secret. */
bool tls_ctx_is_development(const struct tls_ctx *ctx);

/* Server: advances the ticket keys to the epoch of `now_ns`, and wipes keys that are too old to open a ticket. Making
 * or opening a ticket does the same. Returns the time until the next step; UINT64_MAX: there are no tickets. */
uint64_t tls_ctx_step_tickets(struct tls_ctx *ctx, uint64_t now_ns);

enum tls_status {
	TLS_DONE,
	TLS_WANT_READ,	/* call again when the socket is readable */
	TLS_WANT_WRITE,	/* call again when the socket is writable */
	TLS_MORE,	/* the turn is over and more may have arrived: call again soon, whatever the socket's state */
	TLS_EOF,	/* the peer closed */
	TLS_FAILED,	/* tls_failure says why */
};

/* Takes the connected non-blocking socket `fd`; tls_free closes it. A client verifies the server's
 * certificate for `verify_name`, a DNS name or an IP address. 0 or -ENOMEM (fd then stays the caller's). */
int tls_new(struct tls_ctx *ctx, int fd, const char *verify_name, struct tls **out)
	__attribute__((warn_unused_result));

/* Sends the held-back bytes, as far as the socket accepts them now, and closes the socket. Sends no close_notify: see
 * tls_close_notify. NULL-safe. */
void tls_free(struct tls *t);

int tls_fd(const struct tls *t);
/* True if the kernel encrypts sent data (kTLS). OpenSSL supports that only on its own socket BIO, not on this one. */
bool tls_uses_ktls(const struct tls *t);

/* Drives the handshake. TLS_DONE also means that ALPN agreed on rampart/3; on a server, it may also have agreed on
 * rampart/2, whose first frame is refused because of its version. */
enum tls_status tls_handshake(struct tls *t) __attribute__((warn_unused_result));

/* True if the handshake resumed a session: no certificates were exchanged. After the handshake. */
bool tls_is_resumed(const struct tls *t);

/* Server, after the handshake: true if the peer's certificate has a name that the context allows. Also works for a
 * resumed session, which keeps the certificate. */
bool tls_peer_is_allowed(const struct tls *t);

/* Server, after the handshake: sends a session ticket ahead of the next bytes written (RFC 8446, 4.6.1). 0, -ENOTSUP in
 * a context without tickets, or -EIO. */
int tls_send_ticket(struct tls *t) __attribute__((warn_unused_result));

/* Client, before the first tls_handshake: offers to resume `s`, which the caller keeps. Makes no offer if the server's
 * certificate in `s` has expired, or a revocation list is out of date. The server may still choose a full handshake. */
void tls_offer_session(struct tls *t, struct tls_session *s);
/* Client: returns the session of the newest ticket received, which the caller frees; NULL: none was received. */
struct tls_session *tls_take_session(struct tls *t);
void tls_session_free(struct tls_session *s);	/* NULL-safe */

/* Reads or writes up to `n` bytes. TLS_DONE sets *got or *put to their number. */
enum tls_status tls_read(struct tls *t, void *buf, size_t n, size_t *got)
	__attribute__((warn_unused_result));
enum tls_status tls_write(struct tls *t, const void *buf, size_t n, size_t *put)
	__attribute__((warn_unused_result));

/* Sends the held-back bytes. TLS_DONE: the socket has accepted all of them. */
enum tls_status tls_flush(struct tls *t) __attribute__((warn_unused_result));

/* Writes the close_notify alert behind everything else. Sends no alert if the socket and the room for held-back bytes
 * are full. */
void tls_close_notify(struct tls *t);

/* Derives key material that both ends of the connection know (RFC 8446, 7.5). After the handshake. 0 or -EIO. */
int tls_export_key(struct tls *t, const char *label, const uint8_t *context, size_t context_n,
		   uint8_t *out, size_t out_n) __attribute__((warn_unused_result));

/* Why the last call returned TLS_FAILED: sets kind (FAIL_TLS, FAIL_CERTIFICATE or FAIL_ERRNO) and code; the caller sets
 * the stage. */
void tls_failure(const struct tls *t, struct fail *out);
/* The same in words; valid until the next call on `t`. */
const char *tls_failure_text(const struct tls *t);

/* Version, cipher and group: "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519". Returns `text`. After the handshake. */
const char *tls_describe(const struct tls *t, char *text, size_t size);

#endif
