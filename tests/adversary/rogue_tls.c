/* SPDX-License-Identifier: BSD-2-Clause */
/* Misbehaviour in TLS itself. common/tls/ has no functions for it, so this file calls OpenSSL. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "common/base/clock.h"
#include "common/wire/frame.h"
#include "tests/adversary/wire.h"

#define KEY_UPDATES 4000

/* A TLS client with a blocking socket. */
struct raw {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
};

static void raw_close(struct raw *w)
{
	SSL_free(w->ssl);
	SSL_CTX_free(w->ctx);
	if (w->fd >= 0)
		close(w->fd);
}

/* Connects TCP and prepares the handshake. */
static bool raw_begin(struct rogue *r, struct raw *w)
{
	static const unsigned char alpn[] = FRAME_ALPN;
	struct timeval limit = { .tv_sec = (time_t)(r->timeout_ns / NS_PER_S) + 1 };

	w->ssl = NULL;
	w->fd = wire_tcp(r, NULL);
	w->ctx = SSL_CTX_new(TLS_client_method());
	if (w->fd < 0 || !w->ctx || fcntl(w->fd, F_SETFL, 0) ||
	    setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    SSL_CTX_set_alpn_protos(w->ctx, alpn, sizeof(alpn) - 1))
		return false;
	w->ssl = SSL_new(w->ctx);
	return w->ssl && SSL_set_fd(w->ssl, w->fd) == 1;
}

static bool raw_open(struct rogue *r, struct raw *w)
{
	return raw_begin(r, w) && SSL_connect(w->ssl) == 1;
}

/* Reads a frame and keeps only its header. */
static bool read_frame(struct raw *w, struct frame_header *h)
{
	uint8_t buf[FRAME_HEADER_BYTES];
	size_t got;

	for (size_t have = 0; have < FRAME_HEADER_BYTES; have += got)
		if (SSL_read_ex(w->ssl, buf + have, FRAME_HEADER_BYTES - have, &got) != 1)
			return false;
	if (frame_decode_header(buf, FRAME_REPORT_BYTES_MAX, h))
		return false;
	for (size_t have = FRAME_HEADER_BYTES; have < h->length; have += got)
		if (SSL_read_ex(w->ssl, buf, h->length - have < sizeof(buf) ? h->length - have : sizeof(buf),
				&got) != 1)
			return false;
	return true;
}

/* Asks for INFO and reads the answer, so that the server's main thread owns the connection. */
static bool become_control(struct raw *w)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct frame_header h;
	size_t n = frame_encode_control(CONTROL_INFO, buf);

	return SSL_write(w->ssl, buf, (int)n) == (int)n && read_frame(w, &h);
}

/* Sends a HELLO and reads the GRANT: with --transport tls this is then a client's connection. */
static bool become_client(struct raw *w)
{
	struct frame_hello hello = wire_good_hello();
	uint8_t buf[FRAME_HELLO_BYTES];
	struct frame_header h;
	size_t n = frame_encode_hello(&hello, buf);

	return SSL_write(w->ssl, buf, (int)n) == (int)n && read_frame(w, &h) && h.type == FRAME_GRANT;
}

/* Returns the bytes of `n` key updates, each encrypted with the key of the one before; NULL on failure. */
static BIO *key_updates(struct raw *w, int n)
{
	BIO *out = BIO_new(BIO_s_mem());

	if (!out || !BIO_up_ref(out)) {
		BIO_free(out);
		return NULL;
	}
	SSL_set0_wbio(w->ssl, out);
	while (n > 0 && SSL_key_update(w->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(w->ssl) == 1)
		n--;
	if (n == 0)
		return out;
	BIO_free(out);
	return NULL;
}

/* Writes until everything is sent or the server has cut this client off. */
static void write_all(int fd, const char *data, size_t n)
{
	ssize_t sent;

	while (n > 0 && (sent = send(fd, data, n, MSG_NOSIGNAL)) > 0) {
		data += sent;
		n -= (size_t)sent;
	}
}

enum updater { STRANGER, CONTROL, CLIENT };

static bool become(struct raw *w, enum updater who)
{
	switch (who) {
	case STRANGER:
		return true;
	case CONTROL:
		return become_control(w);
	case CLIENT:
		return become_client(w);
	}
	return false;
}

/* Sends ARG key updates in one piece after the handshake. variant: the sender (enum updater). */
static int sends_key_updates(struct rogue *r, const struct mode *m)
{
	int n = r->arg ? atoi(r->arg) : KEY_UPDATES;
	BIO *records = NULL;
	struct raw w;
	char *data;
	long bytes;
	bool closed;

	if (raw_open(r, &w) && become(&w, (enum updater)m->variant))
		records = key_updates(&w, n);
	if (!records) {
		raw_close(&w);
		return no_answer("no TLS connection");
	}
	bytes = BIO_get_mem_data(records, &data);
	write_all(w.fd, data, (size_t)bytes);
	closed = wire_await_close(w.fd, r->timeout_ns);
	BIO_free(records);
	raw_close(&w);
	return closed ? answer("closed") : no_answer("the connection stays open");
}

/* Gets a ticket and marks it as good for early data, which the server does not. */
static SSL_SESSION *take_session(struct rogue *r)
{
	struct frame_hello hello = wire_good_hello();
	uint8_t buf[FRAME_HELLO_BYTES];
	struct frame_header h;
	SSL_SESSION *session = NULL;
	struct raw w;
	size_t n;

	hello.features |= FRAME_FEATURE_TICKET;
	n = frame_encode_hello(&hello, buf);
	if (raw_open(r, &w) && SSL_write(w.ssl, buf, (int)n) == (int)n && read_frame(&w, &h) && h.type == FRAME_GRANT) {
		session = SSL_get1_session(w.ssl);
		SSL_shutdown(w.ssl);	/* without it the session counts as broken */
	}
	raw_close(&w);
	if (session && SSL_SESSION_is_resumable(session) && SSL_SESSION_set_max_early_data(session, 1000) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/* Sends its HELLO as early data (0-RTT), which anybody could replay. */
static int early_data(struct rogue *r, const struct mode *m)
{
	SSL_SESSION *session = take_session(r);
	struct frame_hello hello = wire_good_hello();
	uint8_t buf[FRAME_HELLO_BYTES];
	struct frame_header h;
	struct raw w;
	size_t n = frame_encode_hello(&hello, buf);
	int status;

	(void)m;
	if (!session)
		return no_answer("no ticket");
	if (!raw_begin(r, &w) || SSL_set_session(w.ssl, session) != 1 ||
	    SSL_write_early_data(w.ssl, buf, n, &n) != 1 || SSL_connect(w.ssl) != 1)
		status = no_answer("no handshake with early data");
	else if (SSL_get_early_data_status(w.ssl) == SSL_EARLY_DATA_REJECTED)
		status = answer("refused");
	else
		status = answer("taken%s", read_frame(&w, &h) && h.type == FRAME_GRANT ? ", granted" : "");
	raw_close(&w);
	SSL_SESSION_free(session);
	return status;
}

const struct mode tls_modes[] = {
	{ "early-data", .run = early_data },
	{ "key-updates", .run = sends_key_updates },
	{ "control-key-updates", .run = sends_key_updates, .variant = CONTROL },
	{ "record-key-updates", .run = sends_key_updates, .variant = CLIENT },
	{ NULL },
};
