/* The socket below a TLS connection, as a BIO of OpenSSL that joins small writes: what is written is held back
 * until something is to be read, tls_socket_flush, or more comes than fits.
 *
 * A peer that waits for an answer has said all it has to say, so that what it wrote goes out when it reads: the
 * end of a handshake with the first request, a session ticket with the answer and the goodbye. Each becomes one
 * segment, one wake-up of the peer and one system call, not several.
 *
 * Owning thread: that of the connection. Non-goals: blocking sockets; closing the socket.
 */
#ifndef RAMPART_COMMON_TLS_SOCKET_H
#define RAMPART_COMMON_TLS_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/bio.h>

/* Enough for a GRANT, a goodbye and a ticket, which holds the client's certificate when the server demands one.
 * What is longer are certificates and reports, which need not be joined. */
#define TLS_SOCKET_HELD_BYTES 2048

/* Of one connection; embedded, so that it needs no memory of its own. */
struct tls_socket {
	int fd;
	int error;	/* errno of the send that failed; nothing is sent after it. 0: none did */
	uint32_t held_n;
	bool at_end;	/* the peer said that it sends no more */
	uint8_t held[TLS_SOCKET_HELD_BYTES];
};

/* For tls_socket_bio; NULL when out of memory. It has to outlive the BIOs; BIO_meth_free frees it. */
BIO_METHOD *tls_socket_method(void);

/* A BIO that reads and writes `s`, which has to outlive it, on the non-blocking connected socket `fd`, which
 * stays the caller's. NULL when out of memory. */
BIO *tls_socket_bio(const BIO_METHOD *method, struct tls_socket *s, int fd);

/* Sends what is held back. `last`: the socket is closed next, so the kernel may put the end into the same
 * segment. 0, -EAGAIN when the socket takes no more now (what is left stays held), or the -errno of the send that
 * failed, now or before. Reading goes on after such an error, for the peer's last words may say why, and tells it
 * when there are none. */
int tls_socket_flush(struct tls_socket *s, bool last) __attribute__((warn_unused_result));

#endif
