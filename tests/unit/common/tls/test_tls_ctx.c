/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/tls_ctx.c and tls_files.c: files that cannot be used, revocation lists, how long a ticket is
 * good, and what is left of a context that was freed. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "common/base/clock.h"
#include "common/tls/tls_files.h"
#include "common/tls/tls_internal.h"
#include "tests/unit/helpers/certs.h"

#define ROTATE_NS (3600 * NS_PER_S)
#define TURNS_MAX 100

static struct certs certs;
static struct certs_pair client;	/* what the client shows */
static struct ticket_seed seed;
static struct tls_ctx *at_server, *at_client;
static struct tls *server_end, *client_end;
static char err[400], crl[CERTS_PATH_MAX];
static time_t ahead_s;	/* of the machine's clock, for whoever asks with time(2): OpenSSL does */

/* In place of libc's: what expires is not waited for. */
time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec + ahead_s;
	return t.tv_sec + ahead_s;
}

static int group_set_up(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return certs_make(&certs) || ticket_seed_new(clock_now_ns(), ROTATE_NS, &seed) ? -1 : 0;
}

static int group_tear_down(void **state)
{
	(void)state;
	certs_remove(&certs);
	return 0;
}

static struct tls_config server_config(void)
{
	return (struct tls_config){ .server = true, .cert_file = certs.server_cert, .key_file = certs.server_key,
				    .ca_file = certs.ca, .require_peer_cert = true, .tickets = &seed };
}

static struct tls_config client_config(void)
{
	return (struct tls_config){ .ca_file = certs.ca, .cert_file = client.cert, .key_file = client.key,
				    .resume = true };
}

static struct tls_ctx *make(struct tls_config cfg)
{
	struct tls_ctx *ctx;

	if (tls_ctx_new(&cfg, &ctx, err, sizeof(err)))
		fail_msg("%s", err);
	return ctx;
}

static void hang_up(void)
{
	tls_free(server_end);
	tls_free(client_end);
	server_end = client_end = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	hang_up();
	tls_ctx_free(at_server);
	tls_ctx_free(at_client);
	at_server = at_client = NULL;
	ahead_s = 0;
	return 0;
}

static void issue_client(const char *san, int valid_s)
{
	struct certs_wish wish = { .name = "issued", .san = san, .valid_s = valid_s };

	assert_int_equal(certs_issue(&certs, &wish, &client), 0);
}

/* TLS_DONE: both ends are; else what the server says. */
static enum tls_status handshake(struct tls_session *offer)
{
	enum tls_status there = TLS_WANT_READ, here = TLS_WANT_READ;
	int fds[2];

	hang_up();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(tls_new(at_server, fds[0], NULL, &server_end), 0);
	assert_int_equal(tls_new(at_client, fds[1], "127.0.0.1", &client_end), 0);
	if (offer)
		tls_offer_session(client_end, offer);
	for (int i = 0; i < TURNS_MAX && there != TLS_FAILED && (there != TLS_DONE || here != TLS_DONE); i++) {
		if (here != TLS_DONE)
			here = tls_handshake(client_end);
		if (here == TLS_FAILED)
			return here;
		(void)!tls_flush(client_end);
		if (there != TLS_DONE)
			there = tls_handshake(server_end);
	}
	return there;
}

static void assert_certificate_error(const struct tls *t, int code)
{
	struct fail f;

	tls_failure(t, &f);
	assert_int_equal(f.kind, FAIL_CERTIFICATE);
	assert_int_equal(f.code, code);
}

/* A read may end with each record. */
static void read_byte(uint8_t *byte)
{
	enum tls_status st = TLS_MORE;
	size_t n;

	for (int i = 0; i < TURNS_MAX && st != TLS_DONE; i++)
		st = tls_read(client_end, byte, 1, &n);
	assert_int_equal(st, TLS_DONE);
}

/* Over the present connection. */
static struct tls_session *take_ticket(void)
{
	struct tls_session *s;
	uint8_t byte;
	size_t n;

	assert_int_equal(tls_send_ticket(server_end), 0);
	assert_int_equal(tls_write(server_end, "x", 1, &n), TLS_DONE);
	assert_int_equal(tls_flush(server_end), TLS_DONE);
	read_byte(&byte);
	s = tls_take_session(client_end);
	assert_non_null(s);
	return s;
}

/* ---- files */

static void assert_refused(struct tls_config cfg, int ret, const char *words)
{
	struct tls_ctx *ctx = NULL;

	assert_int_equal(tls_ctx_new(&cfg, &ctx, err, sizeof(err)), ret);
	assert_null(ctx);
	if (!strstr(err, words))
		fail_msg("'%s' does not say '%s'", err, words);
	assert_null(strchr(err, '\n'));
}

TEST(files__missing_or_broken__one_line_with_the_name)
{
	struct tls_config cfg;
	char bad[CERTS_PATH_MAX], empty[CERTS_PATH_MAX];
	FILE *f;

	snprintf(bad, sizeof(bad), "%.120s/bad.pem", certs.dir);
	snprintf(empty, sizeof(empty), "%.120s/empty.pem", certs.dir);
	assert_int_equal(certs_spoil(bad), 0);
	f = fopen(empty, "w");
	assert_int_equal(fclose(f), 0);
	for (int i = 0; i < 2; i++) {
		const char *file = i ? empty : bad;

		cfg = server_config();
		cfg.cert_file = file;
		assert_refused(cfg, -EINVAL, "certificate ");
		cfg = server_config();
		cfg.key_file = file;
		assert_refused(cfg, -EINVAL, "private key ");
		cfg = server_config();
		cfg.ca_file = file;
		assert_refused(cfg, -EINVAL, "CA certificate ");
		cfg = server_config();
		cfg.crl_file = file;
		assert_refused(cfg, -EINVAL, "revocation list ");
	}
	cfg = server_config();
	cfg.crl_file = "/nonexistent/crl.pem";
	assert_refused(cfg, -ENOENT, "revocation list /nonexistent/crl.pem does not exist");
	cfg.crl_file = certs.dir;
	assert_refused(cfg, -EISDIR, "cannot be read");
	/* A certificate is no list, and a list is no CA. */
	cfg.crl_file = certs.ca;
	assert_refused(cfg, -EINVAL, "it has none");
	cfg = server_config();
	cfg.key_file = certs.client_key;
	assert_refused(cfg, -EINVAL, "does not belong to certificate");
}

/* What is behind the certificate belongs to the chain; if it is cut short, nobody could verify the rest. */
TEST(files__chain_cut_short__refused)
{
	struct tls_config cfg = server_config();
	char path[CERTS_PATH_MAX], line[200];
	FILE *in = fopen(certs.server_cert, "r"), *out;

	snprintf(path, sizeof(path), "%.120s/cut.pem", certs.dir);
	out = fopen(path, "w");
	while (fgets(line, sizeof(line), in))
		fputs(line, out);
	fputs("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", out);
	fclose(in);
	fclose(out);
	cfg.cert_file = path;
	assert_refused(cfg, -EINVAL, "certificate ");
}

/* Nobody is asked: a server that reads it again at SIGHUP would stand still. */
TEST(files__key_with_a_passphrase__refused)
{
	struct tls_config cfg = server_config();
	char path[CERTS_PATH_MAX];
	FILE *in = fopen(certs.server_key, "r"), *out;
	EVP_PKEY *key = PEM_read_PrivateKey(in, NULL, NULL, NULL);

	snprintf(path, sizeof(path), "%.120s/locked.key", certs.dir);
	out = fopen(path, "w");
	assert_int_equal(PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(), (const unsigned char *)"secret", 6, NULL,
					      NULL), 1);
	fclose(in);
	fclose(out);
	EVP_PKEY_free(key);
	cfg.key_file = path;
	assert_refused(cfg, -EINVAL, "has a passphrase");
}

/* The files were replaced since they were read. */
TEST(files__read_before__those_bytes_count)
{
	struct certs_wish wish = { .name = "moving", .san = "IP:127.0.0.1", .valid_s = 60 };
	struct tls_config cfg = server_config();
	struct tls_files files = { .path = { [TLS_FILE_CA] = certs.ca } };
	struct certs_pair pair;
	uint8_t *key;
	size_t n;

	assert_int_equal(certs_issue(&certs, &wish, &pair), 0);
	files.path[TLS_FILE_CERT] = pair.cert;
	files.path[TLS_FILE_KEY] = pair.key;
	assert_int_equal(tls_files_read(&files, err, sizeof(err)), 0);
	assert_int_equal(certs_spoil(pair.cert), 0);
	assert_int_equal(certs_spoil(pair.key), 0);
	cfg.files = &files;
	for (int i = 0; i < 3; i++)
		tls_ctx_free(make(cfg));
	key = files.pem[TLS_FILE_KEY];
	n = files.bytes[TLS_FILE_KEY];
	assert_non_null(key);
	assert_true(n > 100);
	tls_files_wipe(&files);
	tls_files_wipe(&files);
	assert_null(files.pem[TLS_FILE_KEY]);
	assert_int_equal(files.bytes[TLS_FILE_KEY], 0);
}

/* ---- chains */

static void append_file(FILE *out, const char *path)
{
	char line[200];
	FILE *in = fopen(path, "r");

	assert_non_null(in);
	while (fgets(line, sizeof(line), in))
		fputs(line, out);
	fclose(in);
}

/* Each certificate costs the server time before it has judged any, and memory afterwards. */
TEST(chain__of_many_certificates__refused_before_they_are_parsed)
{
	static const struct { int copies; enum tls_status end; } cases[] = { { 10, TLS_DONE }, { 60, TLS_FAILED } };
	char path[CERTS_PATH_MAX];
	struct tls_config cfg;

	issue_client(NULL, 60);
	cfg = client_config();
	snprintf(path, sizeof(path), "%.120s/chain.pem", certs.dir);
	cfg.cert_file = path;
	at_server = make(server_config());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FILE *out = fopen(path, "w");

		append_file(out, client.cert);
		for (int k = 0; k < cases[i].copies; k++)
			append_file(out, certs.ca);
		fclose(out);
		tls_ctx_free(at_client);
		at_client = make(cfg);
		assert_int_equal(handshake(NULL), cases[i].end);
		hang_up();
	}
}

/* ---- revocation lists */

TEST(list__client_not_in_it__accepted)
{
	struct tls_config cfg = server_config();

	issue_client(NULL, 60);
	assert_int_equal(certs_list(&certs, NULL, 60, crl), 0);
	cfg.crl_file = crl;
	at_server = make(cfg);
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_DONE);
}

TEST(list__client_revoked__refused)
{
	struct tls_config cfg = server_config();

	issue_client(NULL, 60);
	assert_int_equal(certs_list(&certs, client.cert, 60, crl), 0);
	at_client = make(client_config());
	/* Nobody looks without a list. */
	at_server = make(cfg);
	assert_int_equal(handshake(NULL), TLS_DONE);
	hang_up();
	tls_ctx_free(at_server);
	cfg.crl_file = crl;
	at_server = make(cfg);
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CERT_REVOKED);
}

TEST(list__server_revoked__refused_by_the_client)
{
	struct tls_config cfg;

	issue_client(NULL, 60);
	assert_int_equal(certs_list(&certs, certs.server_cert, 60, crl), 0);
	cfg = client_config();
	cfg.crl_file = crl;
	at_server = make(server_config());
	at_client = make(cfg);
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(client_end, X509_V_ERR_CERT_REVOKED);
}

/* Of another CA than the client's: there is nothing that says that it is not revoked. */
TEST(list__of_another_ca__refused)
{
	struct certs_wish wish = { .name = "issued", .valid_s = 60, .by_other_ca = true };
	struct tls_config cfg = server_config();

	assert_int_equal(certs_issue(&certs, &wish, &client), 0);
	assert_int_equal(certs_list(&certs, NULL, 60, crl), 0);
	cfg.ca_file = certs.other_ca;
	cfg.crl_file = crl;
	at_server = make(cfg);
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_UNABLE_TO_GET_CRL);
	assert_int_equal(tls_ctx_foreign_lists(at_server), 1);
}

TEST(list__out_of_date__not_taken)
{
	struct tls_config cfg = server_config();

	assert_int_equal(certs_list(&certs, NULL, -1, crl), 0);
	cfg.crl_file = crl;
	assert_refused(cfg, -EKEYEXPIRED, "is out of date");
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The processor's time for the shortest of several handshakes, of both ends. */
static uint64_t handshake_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 10; i++) {
		uint64_t start = cpu_ns();

		assert_int_equal(handshake(NULL), TLS_DONE);
		best = MIN(best, cpu_ns() - start);
	}
	return best;
}

/* Its signature is verified once, when it is loaded, and not by each handshake. */
TEST(list__of_100_000__a_handshake_costs_no_more_than_with_an_empty_one)
{
	struct certs_list_wish wish = { .valid_s = 60, .strangers = 100000 };
	struct tls_config cfg = server_config();
	uint64_t with_empty, with_long;

	issue_client(NULL, 60);
	at_client = make(client_config());
	assert_int_equal(certs_list(&certs, NULL, 60, crl), 0);
	cfg.crl_file = crl;
	at_server = make(cfg);
	with_empty = handshake_ns();
	hang_up();
	tls_ctx_free(at_server);
	at_server = NULL;
	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
	at_server = make(cfg);
	with_long = handshake_ns();
	print_message("a handshake: %llu us, with a list of 100,000: %llu us\n", (unsigned long long)with_empty / 1000,
		      (unsigned long long)with_long / 1000);
	assert_true(with_long < 2 * with_empty);
	hang_up();
	tls_ctx_free(at_server);
	at_server = NULL;
	/* Who stands in it is found. */
	wish.revoked = client.cert;
	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
	at_server = make(cfg);
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CERT_REVOKED);
}

/* In the name of the CA, with another's signature. */
TEST(list__not_signed_by_its_ca__not_taken)
{
	struct certs_list_wish wish = { .valid_s = 60, .forged = true };
	struct tls_config cfg = server_config();

	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
	cfg.crl_file = crl;
	assert_refused(cfg, -EINVAL, "the signature is not that of its CA /CN=unit test CA");
}

TEST(list__out_of_date_since_it_was_loaded__refused)
{
	struct tls_config cfg = server_config();

	issue_client(NULL, 1000);
	assert_int_equal(certs_list(&certs, NULL, 500, crl), 0);
	cfg.crl_file = crl;
	at_server = make(cfg);
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_DONE);
	ahead_s = 501;
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CRL_HAS_EXPIRED);
}

/* Of the client's CA, but it says nothing about clients. */
TEST(list__for_other_certificates_of_its_ca__refused)
{
	struct certs_list_wish wish = { .valid_s = 60, .only = "onlyCA:TRUE" };
	struct tls_config cfg = server_config();

	issue_client(NULL, 60);
	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
	cfg.crl_file = crl;
	at_server = make(cfg);
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_DIFFERENT_CRL_SCOPE);
}

/* Says only what has changed since another list: who stands in that one would not be found. */
TEST(list__delta__not_taken)
{
	struct certs_list_wish whole = { .revoked = certs.client_cert, .valid_s = 60 };
	struct certs_list_wish delta = { .valid_s = 60, .delta = true, .append = true };
	struct tls_config cfg = server_config();

	assert_int_equal(certs_list_as(&certs, &whole, crl), 0);
	assert_int_equal(certs_list_as(&certs, &delta, crl), 0);
	cfg.crl_file = crl;
	assert_refused(cfg, -EINVAL, "is a delta list");
}

TEST(list__not_yet_valid__refused)
{
	struct certs_list_wish wish = { .valid_s = 1000, .early = true };
	struct tls_config cfg = server_config();

	issue_client(NULL, 1000);
	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
	cfg.crl_file = crl;
	at_server = make(cfg);
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CRL_NOT_YET_VALID);
	ahead_s = 101;
	assert_int_equal(handshake(NULL), TLS_DONE);
}

/* The client is of a third CA, and shows that CA's certificate. */
static void issue_by_third(const struct certs_ca_wish *w, char path[CERTS_PATH_MAX])
{
	struct certs_wish wish = { .name = "issued", .valid_s = 1000, .by_third_ca = true };

	assert_int_equal(certs_make_third(&certs, w, path), 0);
	assert_int_equal(certs_issue(&certs, &wish, &client), 0);
}

TEST(list__its_ca_may_not_sign_lists__refused)
{
	struct certs_ca_wish ca = { .name = "no lists", .usage = "critical,keyCertSign" };
	struct certs_list_wish wish = { .valid_s = 60, .of_third = true };
	struct certs_wish server = { .name = "of third", .san = "IP:127.0.0.1", .valid_s = 60, .by_third_ca = true };
	struct tls_config at_s = server_config(), at_c;
	struct certs_pair pair;
	char third[CERTS_PATH_MAX];

	issue_by_third(&ca, third);
	assert_int_equal(certs_issue(&certs, &server, &pair), 0);
	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
	at_s.ca_file = third;
	at_s.cert_file = pair.cert;
	at_s.key_file = pair.key;
	at_c = client_config();
	at_c.ca_file = third;
	at_client = make(at_c);
	at_server = make(at_s);
	assert_int_equal(handshake(NULL), TLS_DONE);
	hang_up();
	tls_ctx_free(at_server);
	at_s.crl_file = crl;
	at_server = make(at_s);
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_KEYUSAGE_NO_CRL_SIGN);
}

/* Both files, one after the other. */
static void join(const char *a, const char *b, char path[CERTS_PATH_MAX])
{
	const char *parts[] = { a, b };
	char line[200];
	FILE *out;

	snprintf(path, CERTS_PATH_MAX, "%.120s/joined.pem", certs.dir);
	out = fopen(path, "w");
	for (int i = 0; i < 2; i++) {
		FILE *in = fopen(parts[i], "r");

		while (fgets(line, sizeof(line), in))
			fputs(line, out);
		fclose(in);
	}
	assert_int_equal(fclose(out), 0);
}

/* Two CAs have the same name: the list of one says nothing about the clients of the other. */
TEST(list__of_a_ca_of_the_same_name__refused)
{
	struct certs_ca_wish twin = { .name = "unit test CA" };
	struct tls_config cfg = server_config();
	char third[CERTS_PATH_MAX], both[CERTS_PATH_MAX];

	issue_by_third(&twin, third);
	assert_int_equal(certs_list(&certs, NULL, 60, crl), 0);
	join(certs.ca, third, both);
	cfg.ca_file = both;
	at_client = make(client_config());
	at_server = make(cfg);
	assert_int_equal(handshake(NULL), TLS_DONE);
	hang_up();
	tls_ctx_free(at_server);
	cfg.crl_file = crl;
	at_server = make(cfg);
	assert_int_equal(handshake(NULL), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CRL_SIGNATURE_FAILURE);
}

/* The first that is tried has not signed the list: that is no error, of this context or of any connection. */
TEST(list__of_the_second_ca_of_that_name__no_error_is_left)
{
	struct certs_ca_wish twin = { .name = "unit test CA" };
	struct tls_config cfg;
	char third[CERTS_PATH_MAX], both[CERTS_PATH_MAX];
	struct tls_ctx *other;
	uint8_t byte;
	size_t n;

	assert_int_equal(certs_make_third(&certs, &twin, third), 0);
	issue_client(NULL, 60);
	assert_int_equal(certs_list(&certs, NULL, 60, crl), 0);
	join(third, certs.ca, both);
	at_server = make(server_config());
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_DONE);
	cfg = (struct tls_config){ .ca_file = both, .crl_file = crl };
	other = make(cfg);
	tls_ctx_free(other);
	assert_int_equal(tls_read(server_end, &byte, 1, &n), TLS_WANT_READ);
	assert_int_equal(ERR_peek_error(), 0);
}

/* ---- intermediate CAs, of which peers send the certificate */

/* A client below an intermediate CA, which is not in ca_file, at a server with the root's list and the intermediate's. */
static enum tls_status handshake_below(const char *by_root, struct certs_list_wish wish)
{
	struct tls_config cfg = server_config();

	wish.of_third = wish.append = true;
	assert_int_equal(certs_list(&certs, by_root, 60, crl), 0);
	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
	cfg.crl_file = crl;
	hang_up();
	tls_ctx_free(at_server);
	at_server = make(cfg);
	assert_int_equal(tls_ctx_foreign_lists(at_server), 1);
	if (!at_client)
		at_client = make(client_config());
	return handshake(NULL);
}

TEST(list__of_an_intermediate__used)
{
	struct certs_ca_wish ca = { .name = "intermediate", .below = true };
	char third[CERTS_PATH_MAX];

	issue_by_third(&ca, third);
	assert_int_equal(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 60 }), TLS_DONE);
	assert_int_equal(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 60, .revoked = client.cert }),
			 TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CERT_REVOKED);
	assert_int_equal(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 60, .forged = true }), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CRL_SIGNATURE_FAILURE);
	assert_int_equal(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 200, .early = true }), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CRL_NOT_YET_VALID);
}

TEST(list__intermediate_revoked__refused)
{
	struct certs_ca_wish ca = { .name = "intermediate", .below = true };
	char third[CERTS_PATH_MAX];

	issue_by_third(&ca, third);
	assert_int_equal(handshake_below(third, (struct certs_list_wish){ .valid_s = 60 }), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CERT_REVOKED);
}

/* Its end counts as that of the others. */
TEST(list__of_an_intermediate__out_of_date__no_ticket_resumes)
{
	struct certs_ca_wish ca = { .name = "intermediate", .below = true };
	struct tls_session *session;
	char third[CERTS_PATH_MAX];

	issue_by_third(&ca, third);
	assert_int_equal(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 30 }), TLS_DONE);
	session = take_ticket();
	ahead_s = 31;
	assert_int_equal(handshake(session), TLS_FAILED);
	assert_certificate_error(server_end, X509_V_ERR_CRL_HAS_EXPIRED);
	tls_session_free(session);
}

TEST(dates__of_certificate_and_list__known)
{
	struct certs_wish wish = { .name = "short", .san = "IP:127.0.0.1", .valid_s = 1000 };
	struct tls_config cfg = server_config();
	struct certs_pair pair;
	struct tls_dates dates;
	int64_t start = (int64_t)time(NULL), now;

	at_server = make(cfg);
	tls_ctx_dates(at_server, &dates);
	assert_true(dates.cert_expires_at >= start + 3500 && dates.cert_expires_at <= start + 3600);
	assert_true(dates.crl_expires_at == INT64_MAX);
	tls_ctx_free(at_server);
	assert_int_equal(certs_issue(&certs, &wish, &pair), 0);
	assert_int_equal(certs_list(&certs, NULL, 500, crl), 0);
	cfg.cert_file = pair.cert;
	cfg.key_file = pair.key;
	cfg.crl_file = crl;
	at_server = make(cfg);
	tls_ctx_dates(at_server, &dates);
	now = (int64_t)time(NULL);
	assert_true(dates.cert_expires_at >= start + 1000 && dates.cert_expires_at <= now + 1000);
	assert_true(dates.crl_expires_at >= start + 500 && dates.crl_expires_at <= now + 500);
	assert_false(tls_ctx_is_development(at_server));
	at_client = make((struct tls_config){ .ca_file = certs.ca });
	tls_ctx_dates(at_client, &dates);
	assert_true(dates.cert_expires_at == INT64_MAX);
}

/* ---- names */

TEST(names__of_the_client__looked_at_in_full_and_resumed_handshakes)
{
	struct tls_config cfg = server_config();
	struct tls_session *session;

	issue_client("DNS:app.example.org", 60);
	cfg.allow_names = "*.example.org";
	at_server = make(cfg);
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_DONE);
	assert_true(tls_peer_is_allowed(server_end));
	session = take_ticket();
	assert_int_equal(handshake(session), TLS_DONE);
	assert_true(tls_is_resumed(server_end));
	assert_true(tls_peer_is_allowed(server_end));
	hang_up();
	tls_ctx_free(at_server);
	cfg.allow_names = "other.org";
	at_server = make(cfg);
	/* The same seed: only the name stands in the way. */
	assert_int_equal(handshake(session), TLS_DONE);
	assert_true(tls_is_resumed(server_end));
	assert_false(tls_peer_is_allowed(server_end));
	tls_session_free(session);
}

/* ---- tickets end with what they stand for */

/* Two tickets, one of a full and one of a resumed handshake: in 501 s both are worth nothing to the server. */
static void assert_tickets_end(int error)
{
	struct tls_session *first, *second;

	assert_int_equal(handshake(NULL), TLS_DONE);
	first = take_ticket();
	assert_int_equal(handshake(first), TLS_DONE);
	assert_true(tls_is_resumed(server_end));
	second = take_ticket();
	ahead_s = 501;
	assert_int_equal(handshake(first), TLS_FAILED);
	assert_certificate_error(server_end, error);
	assert_int_equal(handshake(second), TLS_FAILED);
	assert_certificate_error(server_end, error);
	tls_session_free(first);
	tls_session_free(second);
}

TEST(ticket__clients_certificate_expired__not_resumed_and_refused)
{
	at_server = make(server_config());
	issue_client(NULL, 500);
	at_client = make(client_config());
	assert_tickets_end(X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST(session__servers_certificate_expired__not_offered_and_refused)
{
	struct certs_wish wish = { .name = "brief", .san = "IP:127.0.0.1", .valid_s = 500 };
	struct tls_config cfg = server_config();
	struct tls_session *session;
	struct certs_pair pair;

	issue_client(NULL, 1000);
	assert_int_equal(certs_issue(&certs, &wish, &pair), 0);
	cfg.cert_file = pair.cert;
	cfg.key_file = pair.key;
	at_server = make(cfg);
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_DONE);
	session = take_ticket();
	ahead_s = 501;
	assert_int_equal(handshake(session), TLS_FAILED);
	assert_certificate_error(client_end, X509_V_ERR_CERT_HAS_EXPIRED);
	tls_session_free(session);
}

/* A list that is out of date refuses everybody, with a ticket too. */
TEST(ticket__list_out_of_date__not_resumed_and_refused)
{
	struct tls_config cfg = server_config();

	issue_client(NULL, 1000);
	assert_int_equal(certs_list(&certs, NULL, 500, crl), 0);
	cfg.crl_file = crl;
	at_server = make(cfg);
	at_client = make(client_config());
	assert_tickets_end(X509_V_ERR_CRL_HAS_EXPIRED);
}

TEST(session__clients_list_out_of_date__not_offered_and_refused)
{
	struct tls_session *session;
	struct tls_config cfg;

	issue_client(NULL, 1000);
	assert_int_equal(certs_list(&certs, NULL, 500, crl), 0);
	cfg = client_config();
	cfg.crl_file = crl;
	at_server = make(server_config());
	at_client = make(cfg);
	assert_int_equal(handshake(NULL), TLS_DONE);
	session = take_ticket();
	assert_int_equal(handshake(session), TLS_DONE);
	assert_true(tls_is_resumed(client_end));
	ahead_s = 501;
	assert_int_equal(handshake(session), TLS_FAILED);
	assert_certificate_error(client_end, X509_V_ERR_CRL_HAS_EXPIRED);
	tls_session_free(session);
}

/* ---- the end of a context */

TEST(free__connections_are_left__they_go_on_without_ticket_keys)
{
	static const struct ticket_ring none;
	struct tls_ctx *old;
	uint8_t byte = 0;
	size_t n;

	issue_client(NULL, 60);
	at_server = make(server_config());
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_DONE);
	old = at_server;
	assert_memory_not_equal(&old->tickets, &none, sizeof(none));
	tls_ctx_free(at_server);
	at_server = NULL;
	assert_memory_equal(&old->tickets, &none, sizeof(none));
	assert_int_equal(old->refs, 1);
	assert_int_equal(tls_send_ticket(server_end), -ENOTSUP);
	assert_int_equal(tls_write(server_end, "y", 1, &n), TLS_DONE);
	assert_int_equal(tls_flush(server_end), TLS_DONE);
	read_byte(&byte);
	assert_int_equal(byte, 'y');
	/* The last connection takes the context with it; leaks are looked for at exit. */
}

/* In the middle of a handshake that offers a ticket: its keys are gone, so it is a full one. */
TEST(free__handshake_under_way__full)
{
	enum tls_status there = TLS_WANT_READ, here = TLS_WANT_READ;
	struct tls_session *session;
	int fds[2];

	issue_client(NULL, 60);
	at_server = make(server_config());
	at_client = make(client_config());
	assert_int_equal(handshake(NULL), TLS_DONE);
	session = take_ticket();
	hang_up();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(tls_new(at_server, fds[0], NULL, &server_end), 0);
	assert_int_equal(tls_new(at_client, fds[1], "127.0.0.1", &client_end), 0);
	tls_offer_session(client_end, session);
	tls_ctx_free(at_server);
	at_server = NULL;
	for (int i = 0; i < TURNS_MAX && (there != TLS_DONE || here != TLS_DONE); i++) {
		if (here != TLS_DONE)
			here = tls_handshake(client_end);
		(void)!tls_flush(client_end);
		if (there != TLS_DONE)
			there = tls_handshake(server_end);
		assert_int_not_equal(there, TLS_FAILED);
	}
	assert_false(tls_is_resumed(server_end));
	tls_session_free(session);
}

TEST(step__tickets_or_none__time_until_the_next)
{
	struct tls_config cfg = server_config();
	uint64_t start = seed.start_ns;

	at_server = make(cfg);
	assert_int_equal(tls_ctx_step_tickets(at_server, start), ROTATE_NS);
	assert_int_equal(tls_ctx_step_tickets(at_server, start + ROTATE_NS + 7), ROTATE_NS - 7);
	assert_int_equal(at_server->tickets.epoch, 1);
	tls_ctx_free(at_server);
	cfg.tickets = NULL;
	at_server = make(cfg);
	assert_true(tls_ctx_step_tickets(at_server, start) == UINT64_MAX);
}

TEST_EACH(NULL, tear_down)
TEST_GROUP(group_set_up, group_tear_down)
