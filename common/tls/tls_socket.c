/* SPDX-License-Identifier: BSD-2-Clause */
/* A BIO that joins small writes and reads ahead. See tls_socket.h; BIO_meth_new(3) for what the callbacks return. */
#include "common/tls/tls_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static bool may_be_repeated(int e)
{
	return e == EAGAIN || e == EWOULDBLOCK || e == EINTR;
}

/* Returns the number of bytes sent, or -errno. An error other than -EAGAIN is kept in s->error; then do not call this
 * again. */
static ssize_t send_some(struct tls_socket *s, const void *data, size_t n, int flags)
{
	ssize_t sent = send(s->fd, data, n, flags | MSG_NOSIGNAL);

	if (sent >= 0)
		return sent;
	if (may_be_repeated(errno))
		return -EAGAIN;
	s->error = errno;
	s->held_n = 0;
	return -s->error;
}

int tls_socket_flush(struct tls_socket *s, bool last)
{
	while (s->held_n > 0) {
		ssize_t sent = send_some(s, s->held, s->held_n, last ? MSG_MORE : 0);

		if (sent < 0)
			return (int)sent;
		s->held_n -= (uint32_t)sent;
		memmove(s->held, s->held + sent, s->held_n);
	}
	return -s->error;
}

/* Holds the data back if it fits. Otherwise sends it, after the bytes already held back. */
static int on_write(BIO *bio, const char *data, int n)
{
	struct tls_socket *s = BIO_get_data(bio);
	ssize_t ret = -s->error;

	BIO_clear_retry_flags(bio);
	if (n <= 0)
		return 0;
	if ((size_t)n > sizeof(s->held) - s->held_n)
		ret = tls_socket_flush(s, false);
	if (!ret && (size_t)n <= sizeof(s->held) - s->held_n) {
		memcpy(s->held + s->held_n, data, (size_t)n);
		s->held_n += (uint32_t)n;
		return n;
	}
	if (!ret)
		ret = send_some(s, data, (size_t)n, 0);
	if (ret >= 0)
		return (int)ret;
	if (ret == -EAGAIN)
		BIO_set_retry_write(bio);
	errno = (int)-ret;
	return -1;
}

/* Sends the held-back bytes, then receives: the number of bytes, 0 at the peer's end, or -errno. Receives even if the
 * socket accepts no more bytes: otherwise two ends with full sockets would wait for each other for ever. */
static ssize_t receive(struct tls_socket *s, void *data, size_t n)
{
	int unsent = s->held_n > 0 ? tls_socket_flush(s, false) : -s->error;
	ssize_t got = recv(s->fd, data, n, 0);

	/* Return the send's error: a socket reports an error only once, so the read may see a plain end. */
	if (got <= 0 && unsent && unsent != -EAGAIN)
		return unsent;
	if (got < 0)
		return may_be_repeated(errno) ? -EAGAIN : -errno;
	s->at_end = got == 0;
	return got;
}

/* Takes up to `n` of the bytes received earlier; receives more only if none is left. Returns like receive. */
static ssize_t take_read_ahead(struct tls_socket *s, void *data, size_t n)
{
	ssize_t got;

	if (s->ahead_n == 0 && n >= sizeof(s->ahead))
		return receive(s, data, n);
	if (s->ahead_n == 0) {
		got = receive(s, s->ahead, sizeof(s->ahead));
		if (got <= 0)
			return got;
		s->ahead_from = 0;
		s->ahead_n = (uint32_t)got;
	}
	n = n < s->ahead_n ? n : s->ahead_n;
	memcpy(data, s->ahead + s->ahead_from, n);
	s->ahead_from += (uint32_t)n;
	s->ahead_n -= (uint32_t)n;
	return (ssize_t)n;
}

static int on_read(BIO *bio, char *data, int n)
{
	struct tls_socket *s = BIO_get_data(bio);
	ssize_t got;

	BIO_clear_retry_flags(bio);
	s->empty = false;
	if (s->paused) {
		BIO_set_retry_read(bio);
		errno = EAGAIN;
		return -1;
	}
	got = take_read_ahead(s, data, (size_t)n);
	if (got >= 0)
		return (int)got;
	if (got == -EAGAIN && s->held_n > 0) {
		BIO_set_retry_write(bio);
	} else if (got == -EAGAIN) {
		s->empty = true;
		BIO_set_retry_read(bio);
	}
	errno = (int)-got;
	return -1;
}

static __attribute__((noinline)) long ctrl_of_socket(BIO *bio, int command)
{
	const struct tls_socket *s = BIO_get_data(bio);

	return command == BIO_CTRL_EOF ? s->at_end : (long)s->held_n;
}

/* Ignores the flush that OpenSSL asks for after each flight of a handshake, so that the flight waits for later writes.
 * Only EOF and WPENDING need the socket; OpenSSL asks before each record whether the kernel does TLS, which must be
 * cheap. */
static long on_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)number;
	(void)pointer;
	if (command == BIO_CTRL_EOF || command == BIO_CTRL_WPENDING)
		return ctrl_of_socket(bio, command);
	return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_socket_method(void)
{
	/* No type of its own: a process has only 127 of them, and nobody looks for this BIO with BIO_find_type. */
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "rampart socket");

	if (m && BIO_meth_set_write(m, on_write) == 1 && BIO_meth_set_read(m, on_read) == 1 &&
	    BIO_meth_set_ctrl(m, on_ctrl) == 1)
		return m;
	BIO_meth_free(m);
	return NULL;
}

BIO *tls_socket_bio(const BIO_METHOD *method, struct tls_socket *s, int fd)
{
	BIO *bio = BIO_new(method);

	if (!bio)
		return NULL;
	s->fd = fd;
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	return bio;
}
