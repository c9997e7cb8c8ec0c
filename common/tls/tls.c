/* TLS 1.3 on non-blocking sockets, over OpenSSL.
 *
 * Owning thread: the one that made the tls_ctx; see tls.h. Non-goals: older TLS versions, blocking I/O.
 * OpenSSL's error queue is read and cleared where a call failed; struct tls keeps the failure.
 */
#include "common/tls/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "common/base/addr.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/be.h"
#include "common/wire/frame.h"
#include "common/tls/ticket_keys.h"
#include "common/tls/tls_limits.h"
#include "common/tls/tls_socket.h"

struct tls_ctx {
	SSL_CTX *ssl_ctx;
	BIO_METHOD *socket_method;
	bool server;
	bool has_tickets;
	struct ticket_ring tickets;
	EVP_CIPHER *ticket_cipher;	/* fetched once: a fetch per ticket costs more than the cipher */
	_Atomic size_t n_conns;	/* they may end on other threads */
	_Atomic uint64_t log_due_ns;	/* earliest time of the next line about a peer that was cut off */
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

static const unsigned char alpn_protocols[] = FRAME_ALPN;
#define ALPN_LENGTH (sizeof(alpn_protocols) - 1)
#define DISCARDS_MAX 8
#define LOG_PAUSE_NS (10 * NS_PER_S)

static int on_select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
			  const unsigned char *in, unsigned int in_n, void *arg)
{
	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_n, alpn_protocols, ALPN_LENGTH, in,
				  in_n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

static int file_error(char *err, size_t size, const char *what, const char *file)
{
	int e = access(file, R_OK) ? errno : EINVAL;
	char reason[160] = "";

	if (e == EINVAL)
		ERR_error_string_n(ERR_peek_last_error(), reason, sizeof(reason));
	ERR_clear_error();
	if (e == ENOENT)
		snprintf(err, size, "%s %s does not exist; make development certificates with "
			 "`make certs` or name another file", what, file);
	else if (e == EACCES)
		snprintf(err, size, "%s %s may not be read by this user; change its owner or mode",
			 what, file);
	else
		snprintf(err, size, "%s %s is not usable PEM (%s)", what, file, reason);
	return -e;
}

static int check_dates(SSL_CTX *c, const char *file, char *err, size_t size)
{
	X509 *x = SSL_CTX_get0_certificate(c);

	if (X509_cmp_current_time(X509_get0_notAfter(x)) < 0) {
		snprintf(err, size, "certificate %s has expired; renew it (`make certs` makes new "
			 "development certificates)", file);
		return -EKEYEXPIRED;
	}
	if (X509_cmp_current_time(X509_get0_notBefore(x)) > 0) {
		snprintf(err, size, "certificate %s is not valid yet; check the clock of this machine",
			 file);
		return -EKEYEXPIRED;
	}
	return 0;
}

/* Loading a key compares it with the certificate: true if that is why it failed. */
static bool is_other_key(void)
{
	unsigned long e = ERR_peek_last_error();

	return ERR_GET_LIB(e) == ERR_LIB_X509 && ERR_GET_REASON(e) == X509_R_KEY_VALUES_MISMATCH;
}

static int load_files(SSL_CTX *c, const struct tls_config *cfg, char *err, size_t size)
{
	if (cfg->ca_file && SSL_CTX_load_verify_locations(c, cfg->ca_file, NULL) != 1)
		return file_error(err, size, "CA certificate", cfg->ca_file);
	if (!cfg->cert_file)
		return 0;
	if (SSL_CTX_use_certificate_chain_file(c, cfg->cert_file) != 1)
		return file_error(err, size, "certificate", cfg->cert_file);
	if (SSL_CTX_use_PrivateKey_file(c, cfg->key_file, SSL_FILETYPE_PEM) != 1 && !is_other_key())
		return file_error(err, size, "private key", cfg->key_file);
	/* Fails too for a key of another type, which loading does not compare. */
	if (SSL_CTX_check_private_key(c) != 1) {
		ERR_clear_error();
		snprintf(err, size, "private key %s does not belong to certificate %s",
			 cfg->key_file, cfg->cert_file);
		return -EINVAL;
	}
	return check_dates(c, cfg->cert_file, err, size);
}

/* SSL_CTX_set_tlsext_ticket_key_evp_cb(3): 1 goes on, 2 goes on and asks for a new ticket, 0 makes it a full
 * handshake, -1 is an error. */
static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
		     int seal)
{
	struct tls_ctx *ctx = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	char digest[] = "SHA256";
	bool renew = false;
	const struct ticket_key *k = seal ? ticket_ring_seal(&ctx->tickets, clock_now_ns()) :
				     ticket_ring_open(&ctx->tickets, clock_now_ns(), name, &renew);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k ? (void *)k->mac : NULL, TICKET_KEY_BYTES),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	if (!k)
		return seal ? -1 : 0;
	if (seal) {
		memcpy(name, k->name, TICKET_NAME_BYTES);
		if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(ctx->ticket_cipher)) != 1)
			return -1;
	}
	if (EVP_CipherInit_ex2(cipher, ctx->ticket_cipher, k->cipher, iv, seal, NULL) != 1 ||
	    EVP_MAC_CTX_set_params(mac, params) != 1)
		return -1;
	return renew ? 2 : 1;
}

/* OpenSSL sends no tickets by itself; tls_send_ticket does. A session without a ticket cannot be resumed. */
static int configure_tickets(struct tls_ctx *ctx, const struct tls_config *cfg)
{
	static const unsigned char session_context[] = "rampart/1";
	SSL_CTX *c = ctx->ssl_ctx;

	if (SSL_CTX_set_num_tickets(c, 0) != 1)
		return -EINVAL;
	if (!cfg->tickets) {
		SSL_CTX_set_options(c, SSL_OP_NO_TICKET);
		return 0;
	}
	ctx->has_tickets = true;
	/* One name for all contexts, so that a shard resumes sessions that began at another. */
	if (SSL_CTX_set_session_id_context(c, session_context, sizeof(session_context) - 1) != 1)
		return -EINVAL;
	ctx->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	if (!ctx->ticket_cipher || ticket_ring_init(&ctx->tickets, cfg->tickets))
		return -ENOMEM;
	SSL_CTX_set_timeout(c, (long)(2 * cfg->tickets->rotate_ns / NS_PER_S));
	SSL_CTX_set_app_data(c, ctx);
	return SSL_CTX_set_tlsext_ticket_key_evp_cb(c, on_ticket) == 1 ? 0 : -EINVAL;
}

/* Client: a ticket arrived. A copy of its session is kept, because OpenSSL marks the original as not resumable if the
 * connection ends without a close_notify. Returning 0 leaves the original to OpenSSL. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls *t = SSL_get_app_data(ssl);

	SSL_SESSION_free(t->session);
	t->session = SSL_SESSION_dup(session);
	return 0;
}

/* SSL_CTX_set_msg_callback(3): is told the header of each record that comes, and after decryption its true type. */
static void on_record(int is_sent, int version, int content_type, const void *data, size_t n, SSL *ssl, void *arg)
{
	struct tls *t = SSL_get_app_data(ssl);
	const uint8_t *bytes = data;

	(void)version;
	(void)arg;
	if (is_sent)
		return;
	if (content_type == SSL3_RT_HEADER && n >= SSL3_RT_HEADER_LENGTH)
		tls_limits_count_record(&t->limits, SSL3_RT_HEADER_LENGTH + be_get16(bytes + 3));
	else if (content_type == SSL3_RT_INNER_CONTENT_TYPE && n >= 1 && bytes[0] != SSL3_RT_APPLICATION_DATA)
		tls_limits_count_extra(&t->limits);
	/* Also before the body of the record whose header has come. */
	t->socket.paused = tls_limits_turn_is_over(&t->limits);
}

static int configure(struct tls_ctx *ctx, const struct tls_config *cfg)
{
	SSL_CTX *c = ctx->ssl_ctx;

	if (SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) != 1)
		return -EINVAL;
	SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
			 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* A read returns after each record, also after one without data, such as a key update: the next one has to be
	 * allowed first. OpenSSL must not read ahead for that, so the BIO does (tls_socket.h). */
	SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(c, 0);
	SSL_CTX_set_msg_callback(c, on_record);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	/* A handshake is mostly hashing and key derivation: SHA-256 costs less of both than SHA-384. */
	if (SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
				     "TLS_CHACHA20_POLY1305_SHA256") != 1)
		return -EINVAL;
	if (SSL_CTX_set1_groups_list(c, "X25519:P-256") != 1)
		return -EINVAL;
	if (cfg->server) {
		SSL_CTX_set_alpn_select_cb(c, on_select_alpn, NULL);
		SSL_CTX_set_verify(c, cfg->require_peer_cert ?
				   SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT :
				   SSL_VERIFY_NONE, NULL);
		return configure_tickets(ctx, cfg);
	}
	if (cfg->resume) {
		SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(c, on_new_session);
	}
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	/* 0 is success here, unlike elsewhere in this API. */
	return SSL_CTX_set_alpn_protos(c, alpn_protocols, ALPN_LENGTH) ? -EINVAL : 0;
}

int tls_ctx_new(const struct tls_config *cfg, struct tls_ctx **out, char *err, size_t err_size)
{
	struct tls_ctx *ctx = calloc(1, sizeof(*ctx));
	int ret;

	snprintf(err, err_size, "out of memory for TLS");
	if (!ctx)
		return -ENOMEM;
	ctx->server = cfg->server;
	ctx->ssl_ctx = SSL_CTX_new(cfg->server ? TLS_server_method() : TLS_client_method());
	ctx->socket_method = tls_socket_method();
	if (!ctx->ssl_ctx || !ctx->socket_method) {
		ret = -ENOMEM;
		goto err_free;
	}
	ret = configure(ctx, cfg);
	if (ret) {
		if (ret != -ENOMEM)
			snprintf(err, err_size, "this OpenSSL library cannot do TLS 1.3 with X25519 or P-256");
		goto err_free;
	}
	ret = load_files(ctx->ssl_ctx, cfg, err, err_size);
	if (ret)
		goto err_free;
	*out = ctx;
	return 0;

err_free:
	tls_ctx_free(ctx);
	return ret;
}

void tls_ctx_free(struct tls_ctx *ctx)
{
	if (!ctx)
		return;
	assert(ctx->n_conns == 0);
	SSL_CTX_free(ctx->ssl_ctx);
	BIO_meth_free(ctx->socket_method);
	EVP_CIPHER_free(ctx->ticket_cipher);
	ticket_ring_wipe(&ctx->tickets);
	free(ctx);
}

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
	SSL_set_app_data(t->ssl, t);
	if (ctx->server) {
		SSL_set_accept_state(t->ssl);
	} else {
		SSL_set_connect_state(t->ssl);
		if (set_verify_name(t->ssl, verify_name) != 1)
			goto err_ssl;
	}
	t->ctx = ctx;
	ctx->n_conns++;
	*out = t;
	return 0;

err_ssl:
	SSL_free(t->ssl);
err_free:
	free(t);
	ERR_clear_error();
	return -ENOMEM;
}

/* Closing a socket that has unread bytes sends a reset. The peer would see that before it has read the alert which
 * tells what went wrong. */
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
	/* What the socket does not take now is lost. */
	(void)!tls_socket_flush(&t->socket, t->failure.kind == FAIL_NONE);
	if (t->failure.kind != FAIL_NONE)
		discard_unread(t->socket.fd);
	SSL_free(t->ssl);
	SSL_SESSION_free(t->session);
	t->ctx->n_conns--;
	close(t->socket.fd);
	free(t);
}

bool tls_is_resumed(const struct tls *t)
{
	return SSL_session_reused(t->ssl) == 1;
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
	/* OpenSSL marks a session that is being resumed as used, for a ticket should be used once (RFC 8446, C.4). But a
	 * client that is refused gets no new ticket and has to come back with this one: so a copy is offered. */
	SSL_SESSION *copy = SSL_SESSION_dup((SSL_SESSION *)s);

	/* Without an offer there is a full handshake. */
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
	log_warn("TLS: cut %s off: it sent %s; for %u s others like it are only counted", peer, t->text,
		 (unsigned)(LOG_PAUSE_NS / NS_PER_S));
}

/* OpenSSL got nothing more to read: the socket is empty, or reading pauses. */
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

enum tls_status tls_handshake(struct tls *t)
{
	const unsigned char *alpn;
	unsigned int alpn_n;
	int ret;

	errno = 0;
	ret = SSL_do_handshake(t->ssl);
	if (ret != 1)
		return status_of(t, ret);
	SSL_get0_alpn_selected(t->ssl, &alpn, &alpn_n);
	if (alpn_n != ALPN_LENGTH - 1 || memcmp(alpn, alpn_protocols + 1, alpn_n) != 0)
		return failed(t, FAIL_TLS, SSL_AD_NO_APPLICATION_PROTOCOL,
			      "the peer did not agree on protocol rampart/1");
	t->limits.shook_hands = true;
	return TLS_DONE;
}

enum tls_status tls_read(struct tls *t, void *buf, size_t n, size_t *got)
{
	int ret;

	/* After a record without data OpenSSL asks to be called again, although the socket may have more. */
	do {
		errno = 0;
		ret = SSL_read_ex(t->ssl, buf, n, got);
	} while (ret != 1 && SSL_get_error(t->ssl, ret) == SSL_ERROR_WANT_READ && !t->socket.empty &&
		 !t->socket.paused);
	return ret == 1 ? TLS_DONE : status_of(t, ret);
}

enum tls_status tls_write(struct tls *t, const void *buf, size_t n, size_t *put)
{
	int ret;

	errno = 0;
	ret = SSL_write_ex(t->ssl, buf, n, put);
	return ret == 1 ? TLS_DONE : status_of(t, ret);
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
