/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.3 on non-blocking sockets, over OpenSSL: connections. tls_ctx.c has their contexts.
 *
 * Owning thread: the one that made the tls_ctx; see tls.h. Non-goals: older TLS versions, blocking I/O. OpenSSL's error
 * queue is read and cleared where a call failed; struct tls keeps the failure.
 */
#include "common/tls/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "common/base/addr.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/tls/tls_internal.h"
#include "common/tls/tls_names.h"

#define DISCARDS_MAX 8
#define LOG_PAUSE_NS (10 * NS_PER_S)

static int set_verify_name(SSL *ssl, const char *name)
{
	uint8_t ip[16];

	if (inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

int tls_new(struct tls_ctx *ctx, int fd, const char *verify_name, struct tls **out)
{
	struct tls *t = calloc(1, sizeof(*t));
	BIO *socket;

	if (!t)
		return -ENOMEM;
	t->ssl = SSL_new(ctx->ssl_ctx);
	if (!t->ssl)
		goto err_free;
	socket = tls_socket_bio(ctx->socket_method, &t->socket, fd);
	if (!socket)
		goto err_ssl;
	SSL_set_bio(t->ssl, socket, socket);
	if (SSL_set_app_data(t->ssl, t) != 1)
		goto err_ssl;
	if (ctx->server) {
		SSL_set_accept_state(t->ssl);
	} else {
		SSL_set_connect_state(t->ssl);
		if (set_verify_name(t->ssl, verify_name) != 1)
			goto err_ssl;
	}
	t->ctx = ctx;
	ctx->refs++;
	*out = t;
	return 0;

err_ssl:
	SSL_free(t->ssl);
err_free:
	free(t);
	ERR_clear_error();
	return -ENOMEM;
}

/* Discards unread bytes, because closing a socket that has some sends a reset, which the peer would see before the
 * alert that says what went wrong. */
static void discard_unread(int fd)
{
	uint8_t buf[4096];

	for (int i = 0; i < DISCARDS_MAX && recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0; i++)
		;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	/* Bytes that the socket does not accept now are lost. */
	(void)!tls_socket_flush(&t->socket, t->failure.kind == FAIL_NONE);
	if (t->failure.kind != FAIL_NONE)
		discard_unread(t->socket.fd);
	SSL_free(t->ssl);
	SSL_SESSION_free(t->session);
	tls_ctx_put(t->ctx);
	close(t->socket.fd);
	free(t);
}

bool tls_is_resumed(const struct tls *t)
{
	return SSL_session_reused(t->ssl) == 1;
}

bool tls_peer_is_allowed(const struct tls *t)
{
	return !t->ctx->allow_names || tls_names_allow(t->ctx->allow_names, SSL_get0_peer_certificate(t->ssl));
}

int tls_send_ticket(struct tls *t)
{
	if (!t->ctx->has_tickets)
		return -ENOTSUP;
	if (SSL_new_session_ticket(t->ssl) == 1)
		return 0;
	ERR_clear_error();
	return -EIO;
}

void tls_offer_session(struct tls *t, struct tls_session *s)
{
	/* OpenSSL marks a resumed session as used, because a ticket should be used once (RFC 8446, C.4). But a client
	 * that is refused gets no new ticket and must come back with this one, so offer a copy. */
	SSL_SESSION *copy = SSL_SESSION_dup((SSL_SESSION *)s);
	X509 *server = copy ? SSL_SESSION_get0_peer(copy) : NULL;

	/* Resuming verifies nothing: make no offer if the server's certificate or a revocation list has expired. */
	if ((server && X509_cmp_current_time(X509_get0_notAfter(server)) < 0) || tls_lists_expired(t->ctx)) {
		SSL_SESSION_free(copy);
		return;
	}
	/* If the offer fails, the handshake is a full one. */
	if (!copy || SSL_set_session(t->ssl, copy) != 1)
		ERR_clear_error();
	SSL_SESSION_free(copy);
}

struct tls_session *tls_take_session(struct tls *t)
{
	SSL_SESSION *s = t->session;

	t->session = NULL;
	return (struct tls_session *)s;
}

void tls_session_free(struct tls_session *s)
{
	SSL_SESSION_free((SSL_SESSION *)s);
}

int tls_fd(const struct tls *t)
{
	return t->socket.fd;
}

bool tls_uses_ktls(const struct tls *t)
{
	return BIO_get_ktls_send(SSL_get_wbio(t->ssl));
}

static enum tls_status failed(struct tls *t, enum fail_kind kind, int code, const char *text)
{
	t->failure.kind = kind;
	t->failure.code = code;
	snprintf(t->text, sizeof(t->text), "%s", text);
	ERR_clear_error();
	return TLS_FAILED;
}

/* SSL_R_*_ALERT_* reasons are 1000 plus the alert number (openssl/sslerr.h). */
static int alert_of(unsigned long e)
{
	int reason = ERR_GET_REASON(e);

	return ERR_GET_LIB(e) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET &&
	       reason < SSL_AD_REASON_OFFSET + 256 ? reason - SSL_AD_REASON_OFFSET : 0;
}

static enum tls_status failed_protocol(struct tls *t)
{
	unsigned long e = ERR_peek_error();
	long verify = SSL_get_verify_result(t->ssl);
	const char *reason = ERR_reason_error_string(e);

	if (verify != X509_V_OK)
		return failed(t, FAIL_CERTIFICATE, (int)verify, X509_verify_cert_error_string(verify));
	if (ERR_GET_REASON(e) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		ERR_clear_error();
		return TLS_EOF;
	}
	return failed(t, FAIL_TLS, alert_of(e), reason ? reason : "protocol error");
}

static void log_cut_off(struct tls *t)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	uint64_t now = clock_now_ns();
	char peer[ADDR_TEXT_MAX] = "a peer";
	struct addr a;

	if (now < t->ctx->log_due_ns)
		return;
	t->ctx->log_due_ns = now + LOG_PAUSE_NS;
	if (!getpeername(t->socket.fd, (struct sockaddr *)&ss, &len) &&
	    !addr_from_sockaddr((struct sockaddr *)&ss, &a))
		addr_text(&a, peer);
	log_event(LOG_LVL_WARN, &(struct log_fields){ .peer = peer, .reason = t->text },
		  "TLS: cut %s off: it sent %s; for %u s further ones are only counted", peer, t->text,
		  (unsigned)(LOG_PAUSE_NS / NS_PER_S));
}

/* Called when OpenSSL can read nothing more: the socket is empty, or reading is paused, or the peer sent too much. */
static enum tls_status end_turn(struct tls *t)
{
	const char *excess = tls_limits_excess(&t->limits);

	if (excess) {
		(void)!failed(t, FAIL_TLS, FAIL_TLS_RECORDS, excess);
		log_cut_off(t);
		return TLS_FAILED;
	}
	tls_limits_begin_turn(&t->limits);
	t->socket.paused = false;
	return t->socket.empty ? TLS_WANT_READ : TLS_MORE;
}

static enum tls_status status_of(struct tls *t, int ret)
{
	int e = errno;

	switch (SSL_get_error(t->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		return end_turn(t);
	case SSL_ERROR_WANT_WRITE:
		return TLS_WANT_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_EOF;
	case SSL_ERROR_SYSCALL:
		if (e == 0)
			return TLS_EOF;
		return failed(t, FAIL_ERRNO, e, strerror(e));
	default:
		return failed_protocol(t);
	}
}

/* True if ALPN agreed on `name`, whose first byte is its length, as on the wire. */
static bool has_agreed_on(const struct tls *t, const char *name)
{
	const unsigned char *alpn;
	unsigned int n;

	SSL_get0_alpn_selected(t->ssl, &alpn, &n);
	return n == (unsigned char)name[0] && memcmp(alpn, &name[1], n) == 0;
}

enum tls_status tls_handshake(struct tls *t)
{
	bool before;
	int ret;

	errno = 0;
	ret = SSL_do_handshake(t->ssl);
	if (ret != 1)
		return status_of(t, ret);
	before = has_agreed_on(t, FRAME_ALPN_BEFORE);
	if (before && !SSL_is_server(t->ssl))
		return failed(t, FAIL_TLS, FAIL_TLS_ALPN, "the server speaks wire version 2, this client 3: "
			      "both need programs of the same version");
	if (!before && !has_agreed_on(t, FRAME_ALPN))
		return failed(t, FAIL_TLS, FAIL_TLS_ALPN, "the peer did not agree on protocol rampart/3");
	t->limits.shook_hands = true;
	return TLS_DONE;
}

enum tls_status tls_read(struct tls *t, void *buf, size_t n, size_t *got)
{
	int ret;

	/* OpenSSL asks for another call after each record without data: make it unless there is nothing to read. */
	do {
		errno = 0;
		ret = SSL_read_ex(t->ssl, buf, n, got);
	} while (ret != 1 && SSL_get_error(t->ssl, ret) == SSL_ERROR_WANT_READ && !t->socket.empty &&
		 !t->socket.paused);
	return ret == 1 ? TLS_DONE : status_of(t, ret);
}

/* Has OpenSSL send a key update before the next write. Fails while a write is unfinished; the next one retries. */
static void update_key(struct tls *t)
{
	if (SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		t->sent_records = 0;
	ERR_clear_error();
}

enum tls_status tls_write(struct tls *t, const void *buf, size_t n, size_t *put)
{
	int ret;

	if (t->sent_records >= TLS_KEY_RECORDS)
		update_key(t);
	errno = 0;
	ret = SSL_write_ex(t->ssl, buf, n, put);
	if (ret != 1)
		return status_of(t, ret);
	/* The write made one record, because partial writes are enabled. */
	t->sent_records++;
	return TLS_DONE;
}

enum tls_status tls_flush(struct tls *t)
{
	int ret = tls_socket_flush(&t->socket, false);

	if (ret == -EAGAIN)
		return TLS_WANT_WRITE;
	return ret ? failed(t, FAIL_ERRNO, -ret, strerror(-ret)) : TLS_DONE;
}

void tls_close_notify(struct tls *t)
{
	if (SSL_is_init_finished(t->ssl))
		SSL_shutdown(t->ssl);
	ERR_clear_error();
}

int tls_export_key(struct tls *t, const char *label, const uint8_t *context, size_t context_n,
		   uint8_t *out, size_t out_n)
{
	if (SSL_export_keying_material(t->ssl, out, out_n, label, strlen(label), context, context_n,
				       1) == 1)
		return 0;
	ERR_clear_error();
	return -EIO;
}

void tls_failure(const struct tls *t, struct fail *out)
{
	out->kind = t->failure.kind;
	out->code = t->failure.code;
}

const char *tls_failure_text(const struct tls *t)
{
	return t->text;
}

const char *tls_describe(const struct tls *t, char *text, size_t size)
{
	const char *group = OBJ_nid2sn((int)(SSL_get_negotiated_group(t->ssl) & 0xffff));

	snprintf(text, size, "%s %s %s", SSL_get_version(t->ssl), SSL_get_cipher_name(t->ssl),
		 group ? group : "?");
	return text;
}
