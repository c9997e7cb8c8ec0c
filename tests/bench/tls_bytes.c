/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures how many bytes a second TLS 1.3 carries in a simple use of OpenSSL: one end writes, the other reads, both
 * block. scripts/bench-data compares rampart with it (docs/bench.md), so it uses nothing of common/. It ends at the
 * first failure. */
#include <err.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#define WRITE_BYTES (64 << 10)
#define WARMUP_S 1.0

static char buffer[WRITE_BYTES];

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The settings of both ends are those of common/tls/tls.c. */
static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, "X25519:P-256") != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") != 1)
		errx(3, "this OpenSSL library cannot do TLS 1.3 with X25519");
	return ctx;
}

static SSL *new_ssl(SSL_CTX *ctx, int fd)
{
	SSL *ssl = SSL_new(ctx);
	int one = 1;

	if (!ssl || SSL_set_fd(ssl, fd) != 1 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		errx(1, "out of memory");
	return ssl;
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	return fd;
}

/* Reads everything that one client sends. */
static void serve(struct sockaddr_in *at, const char *certs)
{
	SSL_CTX *ctx = new_ctx(TLS_server_method());
	int fd = new_socket(), one = 1;
	char path[4096];
	SSL *ssl;

	snprintf(path, sizeof(path), "%s/server.pem", certs);
	if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1)
		errx(3, "%s is no certificate; `make certs` makes one", path);
	snprintf(path, sizeof(path), "%s/server.key", certs);
	if (SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) != 1)
		errx(3, "%s is no key", path);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)at, sizeof(*at)) || listen(fd, 1))
		err(3, "port %u", ntohs(at->sin_port));
	ssl = new_ssl(ctx, accept(fd, NULL, NULL));
	if (SSL_accept(ssl) != 1)
		errx(1, "server: the handshake failed");
	while (SSL_read(ssl, buffer, sizeof(buffer)) > 0)
		;
}

static void send_for(struct sockaddr_in *to, const char *certs, double seconds)
{
	SSL_CTX *ctx = new_ctx(TLS_client_method());
	uint64_t bytes = 0;
	int fd = new_socket();
	double begin, end;
	char path[4096];
	SSL *ssl;

	snprintf(path, sizeof(path), "%s/ca.pem", certs);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_load_verify_locations(ctx, path, NULL) != 1)
		errx(3, "%s is no CA certificate; `make certs` makes one", path);
	if (connect(fd, (struct sockaddr *)to, sizeof(*to)))
		err(1, "connect");
	ssl = new_ssl(ctx, fd);
	if (SSL_set1_host(ssl, "localhost") != 1 || SSL_connect(ssl) != 1)
		errx(1, "client: the handshake failed");
	for (begin = end = now_s(); end - begin < WARMUP_S + seconds; end = now_s()) {
		if (SSL_write(ssl, buffer, sizeof(buffer)) <= 0)
			errx(1, "client: write");
		bytes += now_s() - begin >= WARMUP_S ? sizeof(buffer) : 0;
	}
	printf("bytes_per_s=%.0f cipher=%s\n", (double)bytes / (end - begin - WARMUP_S), SSL_get_cipher_name(ssl));
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "serve", required_argument, NULL, 's' }, { "connect", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 't' }, { "certs", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *certs = "build/certs";
	double seconds = 3;
	int opt, mode = 0;

	while ((opt = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (opt == 's' || opt == 'c') {
			mode = opt;
			a.sin_port = htons((uint16_t)atoi(optarg));
		} else if (opt == 't') {
			seconds = atof(optarg);
		} else if (opt == 'd') {
			certs = optarg;
		} else {
			errx(2, "usage: tls_bytes --serve PORT | --connect PORT [--seconds S] [--certs DIR]");
		}
	}
	signal(SIGPIPE, SIG_IGN);
	if (mode == 's')
		serve(&a, certs);
	else if (mode == 'c' && seconds > 0)
		send_for(&a, certs, seconds);
	else
		errx(2, "usage: tls_bytes --serve PORT | --connect PORT [--seconds S] [--certs DIR]");
	return fflush(stdout) == EOF;
}
