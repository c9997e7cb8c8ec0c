/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS contexts: state that the connections of a thread share. See tls.h.
 *
 * tls_load.c and tls_lists.c load the files of a context; tls_tickets.c makes its tickets.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tls/tls_files.h"
#include "common/tls/tls_internal.h"
#include "common/wire/be.h"
#include "common/wire/frame.h"

/* Offering the previous version's name too lets each end say which version the other one speaks. */
static const unsigned char alpn_protocols[] = FRAME_ALPN FRAME_ALPN_BEFORE;
#define ALPN_BYTES (sizeof(alpn_protocols) - 1)

static int on_select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
			  const unsigned char *in, unsigned int in_n, void *arg)
{
	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_n, alpn_protocols, ALPN_BYTES, in,
				  in_n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* Client: called when a ticket arrives. Keeps a copy of its session, because OpenSSL marks the original as not
 * resumable if the connection ends without a close_notify. Returning 0 leaves the original to OpenSSL. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls *t = SSL_get_app_data(ssl);

	SSL_SESSION_free(t->session);
	t->session = SSL_SESSION_dup(session);
	return 0;
}

/* SSL_CTX_set_msg_callback(3): called with the header of each record received, and after decryption its true type. */
static void on_record(int is_sent, int version, int content_type, const void *data, size_t n, SSL *ssl, void *arg)
{
	const uint8_t *bytes = data;
	bool is_header = content_type == SSL3_RT_HEADER && n >= SSL3_RT_HEADER_LENGTH;
	struct tls *t;

	(void)version;
	(void)arg;
	if (is_sent || (!is_header && content_type != SSL3_RT_INNER_CONTENT_TYPE))
		return;
	t = SSL_get_app_data(ssl);
	if (is_header)
		tls_limits_count_record(&t->limits, SSL3_RT_HEADER_LENGTH + be_get16(bytes + 3));
	else if (t->limits.shook_hands && n >= 1 && bytes[0] != SSL3_RT_APPLICATION_DATA)
		tls_limits_count_extra(&t->limits);
	else
		return;
	/* A pause begins even before the body of the record whose header has arrived. */
	t->socket.paused = tls_limits_turn_is_over(&t->limits);
}

#ifdef RAMPART_TLS_KEY_LOG
/* Appends a connection's secrets to the file of $SSLKEYLOGFILE, from which Wireshark decrypts a capture. Only builds
 * with sanitizers have this. One end is enough, and the server's system call filter refuses it. */
static void on_key_log(const SSL *ssl, const char *line)
{
	const char *path = getenv("SSLKEYLOGFILE");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	(void)ssl;
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", line);
	close(fd);
}
#endif

static int configure_ctx(struct tls_ctx *ctx, const struct tls_config *cfg)
{
	SSL_CTX *c = ctx->ssl_ctx;

	if (SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) != 1)
		return -EINVAL;
	SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
			 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* A read must return after each record, even one without data, such as a key update, because the next record
	 * has to be allowed first. So OpenSSL must not read ahead; the BIO does (tls_socket.h). */
	SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(c, 0);
	SSL_CTX_set_msg_callback(c, on_record);
#ifdef RAMPART_TLS_KEY_LOG
	SSL_CTX_set_keylog_callback(c, on_key_log);
#endif
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	/* Limit the chain: OpenSSL parses all of it before it verifies it, and keeps it with the connection. */
	SSL_CTX_set_max_cert_list(c, TLS_CHAIN_BYTES_MAX);
	/* Prefer SHA-256: a handshake is mostly hashing and key derivation, for which it costs less than SHA-384. */
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
		return tls_configure_tickets(ctx, cfg);
	}
	if (cfg->resume) {
		SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(c, on_new_session);
	}
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	/* 0 is success here, unlike elsewhere in this API. */
	return SSL_CTX_set_alpn_protos(c, alpn_protocols, ALPN_BYTES) ? -EINVAL : 0;
}

static int load(struct tls_ctx *ctx, const struct tls_files *f, char *err, size_t size)
{
	int ret = tls_load_cas(ctx, f, err, size);

	if (!ret)
		ret = tls_lists_load(ctx, f, err, size);
	return ret ? ret : tls_load_own(ctx, f, err, size);
}

/* Loads the files, and reads them first unless the caller has. */
static int read_and_load(struct tls_ctx *ctx, const struct tls_config *cfg, char *err, size_t err_size)
{
	struct tls_files files = { .path = { [TLS_FILE_CA] = cfg->ca_file, [TLS_FILE_CERT] = cfg->cert_file,
					     [TLS_FILE_KEY] = cfg->key_file, [TLS_FILE_CRL] = cfg->crl_file } };
	int ret;

	if (cfg->files)
		return load(ctx, cfg->files, err, err_size);
	ret = tls_files_read(&files, err, err_size);
	if (!ret)
		ret = load(ctx, &files, err, err_size);
	tls_files_wipe(&files);
	return ret;
}

static int new_ssl_ctx(struct tls_ctx *ctx, const struct tls_config *cfg, char *err, size_t err_size)
{
	int ret = -ENOMEM;

	ctx->ssl_ctx = SSL_CTX_new(cfg->server ? TLS_server_method() : TLS_client_method());
	ctx->socket_method = tls_socket_method();
	if (ctx->ssl_ctx && ctx->socket_method)
		ret = configure_ctx(ctx, cfg);
	if (ret && ret != -ENOMEM)
		snprintf(err, err_size, "this OpenSSL library cannot do TLS 1.3 with X25519 or P-256");
	return ret ? ret : read_and_load(ctx, cfg, err, err_size);
}

int tls_ctx_new(const struct tls_config *cfg, struct tls_ctx **out, char *err, size_t err_size)
{
	struct tls_ctx *ctx = calloc(1, sizeof(*ctx));
	int ret;

	snprintf(err, err_size, "out of memory for TLS");
	if (!ctx)
		return -ENOMEM;
	ctx->refs = 1;
	ctx->server = cfg->server;
	ctx->allow_names = cfg->allow_names;
	ctx->dates = (struct tls_dates){ INT64_MAX, INT64_MAX };
	ret = new_ssl_ctx(ctx, cfg, err, err_size);
	if (ret)
		tls_ctx_free(ctx);
	else
		*out = ctx;
	return ret;
}

void tls_ctx_hold(struct tls_ctx *ctx)
{
	ctx->refs++;
}

bool tls_ctx_is_last(const struct tls_ctx *ctx)
{
	return ctx->refs == 1;
}

void tls_ctx_put(struct tls_ctx *ctx)
{
	if (--ctx->refs > 0)
		return;
	SSL_CTX_free(ctx->ssl_ctx);
	tls_lists_free(ctx->lists);
	BIO_meth_free(ctx->socket_method);
	EVP_CIPHER_free(ctx->ticket_cipher);
	free(ctx);
}

void tls_ctx_free(struct tls_ctx *ctx)
{
	if (!ctx)
		return;
	ctx->has_tickets = false;
	ticket_ring_wipe(&ctx->tickets);
	tls_ctx_put(ctx);
}

void tls_ctx_dates(const struct tls_ctx *ctx, struct tls_dates *out)
{
	*out = ctx->dates;
}

bool tls_ctx_is_development(const struct tls_ctx *ctx)
{
	return ctx->is_development;
}
