/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket below a TLS connection, as an OpenSSL BIO that joins small writes: bytes are held back until the
 * connection reads, tls_socket_flush is called, or no more fit. It reads ahead: one receive takes all that has arrived,
 * and OpenSSL gets only what it asks for, one record at a time, so that reading can pause after any record.
 *
 * An end that reads has no more to write until it gets an answer. So the end of a handshake goes out with the first
 * request, and a session ticket with the answer and the close_notify: each is one segment, one wake-up of the peer and
 * one system call, instead of several.
 *
 * Owning thread: that of the connection. Non-goals: blocking sockets; closing the socket.
 */
#ifndef RAMPART_COMMON_TLS_SOCKET_H
#define RAMPART_COMMON_TLS_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/bio.h>

/* Enough for a ticket (which holds the client's certificate if the server demands one), a GRANT and a close_notify.
 * Certificates and reports are longer and need not be joined. */
#define TLS_SOCKET_HELD_BYTES 2048

/* Enough for all that a client sends in a handshake. Larger records are received where OpenSSL wants them. */
#define TLS_SOCKET_AHEAD_BYTES 2048

/* Per connection; embedded in struct tls, so that it needs no memory of its own. */
struct tls_socket {
	int fd;
	int error;	/* errno of the failed send, after which nothing is sent; 0: no failure */
	uint32_t held_n;
	bool at_end;	/* the peer closed its side */
	bool empty;	/* the last read found nothing: wait for the socket */
	bool paused;	/* reads return nothing until the owner clears this; then bytes may be in `ahead` */
	uint32_t ahead_from, ahead_n;
	uint8_t held[TLS_SOCKET_HELD_BYTES];
	uint8_t ahead[TLS_SOCKET_AHEAD_BYTES];
};

/* Creates the type of tls_socket_bio's BIOs; free it with BIO_meth_free, after them. NULL: out of memory. */
BIO_METHOD *tls_socket_method(void);

/* Creates a BIO on the non-blocking connected socket `fd`, which the caller keeps. `s` must be all zero and outlive the
 * BIO. NULL when out of memory. */
BIO *tls_socket_bio(const BIO_METHOD *method, struct tls_socket *s, int fd);

/* Sends the held-back bytes. `last`: the socket is closed next, so the kernel may put the FIN into the same segment.
 * Returns 0, or:
 * -EAGAIN	the socket accepts no more now; the rest stays held back
 * another -errno	of the failed send, in this call or an earlier one
 * Reads still work after a failed send, because the peer's last bytes may say why it left; once there are no more, they
 * return the send's error. */
int tls_socket_flush(struct tls_socket *s, bool last) __attribute__((warn_unused_result));

#endif
