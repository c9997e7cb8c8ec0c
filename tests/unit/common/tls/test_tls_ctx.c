/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/tls_ctx.c and tls_files.c: files that cannot be used, revocation lists, how long a ticket is
 * good, and what is left of a context that was freed. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "common/base/clock.h"
#include "common/tls/tls_files.h"
#include "common/tls/tls_internal.h"
#include "tests/unit/common/tls/tls_rig.h"

#define ROTATE_NS (3600 * NS_PER_S)

static struct certs_pair shown;	/* what the client shows */
static struct ticket_seed seed;
static char crl[CERTS_PATH_MAX], third[CERTS_PATH_MAX];	/* files: a list, and the third CA */
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
	return tls_rig_group_set_up(state) || ticket_seed_new(clock_now_ns(), ROTATE_NS, &seed) ? -1 : 0;
}

static struct tls_config server_config(void)
{
	return (struct tls_config){ .server = true, .cert_file = certs.server_cert, .key_file = certs.server_key,
				    .ca_file = certs.ca, .require_peer_cert = true, .tickets = &seed };
}

static struct tls_config client_config(void)
{
	return (struct tls_config){ .ca_file = certs.ca, .cert_file = shown.cert, .key_file = shown.key,
				    .resume = true };
}

static int tear_down(void **state)
{
	ahead_s = 0;
	return tls_rig_tear_down(state);
}

static void issue_client(const char *san, int valid_s)
{
	struct certs_wish wish = { .name = "issued", .san = san, .valid_s = valid_s };

	assert_int_equal(certs_issue(&certs, &wish, &shown), 0);
}

/* The list is in the file `crl` afterwards. */
static void make_list(struct certs_list_wish wish)
{
	assert_int_equal(certs_list_as(&certs, &wish, crl), 0);
}

/* TLS_DONE: both ends are; else what the server says. */
static enum tls_status handshake(struct tls_session *offer)
{
	enum tls_status there, here;

	connect_by(SOCK_STREAM, server, client, offer);
	try_handshake(&here, &there);
	return here == TLS_FAILED ? here : there;
}

/* The first handshake of a server with this configuration, which takes the place of the one before. */
static enum tls_status meet(struct tls_config cfg)
{
	end_ctx(&server);
	server = new_ctx(cfg);
	if (!client)
		client = new_ctx(client_config());
	return handshake(NULL);
}

/* The same of a server that has the list. */
static enum tls_status meet_with_list(struct tls_config cfg)
{
	cfg.crl_file = crl;
	return meet(cfg);
}

static void assert_certificate_error(const struct tls *t, int code)
{
	struct fail f;

	tls_failure(t, &f);
	assert_int_equal(f.kind, FAIL_CERTIFICATE);
	assert_int_equal(f.code, code);
}

/* The handshake that came to `st` failed because of a certificate, as the server sees it. */
static void assert_server_refuses(enum tls_status st, int code)
{
	assert_int_equal(st, TLS_FAILED);
	assert_certificate_error(at_server, code);
}

static void assert_client_refuses(enum tls_status st, int code)
{
	assert_int_equal(st, TLS_FAILED);
	assert_certificate_error(at_client, code);
}

static struct tls_session *take_ticket(void)
{
	struct tls_session *s = ask_for_ticket();

	assert_non_null(s);
	return s;
}

static void append_file(FILE *out, const char *path)
{
	char line[200];
	FILE *in = fopen(path, "r");

	assert_non_null(in);
	while (fgets(line, sizeof(line), in))
		fputs(line, out);
	fclose(in);
}

/* dir/NAME.pem, with what is in both files, which may be NULL. */
static void join(const char *name, const char *a, const char *b, char path[CERTS_PATH_MAX])
{
	FILE *out;

	snprintf(path, CERTS_PATH_MAX, "%.120s/%s.pem", certs.dir, name);
	out = fopen(path, "w");
	if (a)
		append_file(out, a);
	if (b)
		append_file(out, b);
	assert_int_equal(fclose(out), 0);
}

static void assert_refused(struct tls_config cfg, int ret, const char *words)
{
	struct tls_ctx *ctx = NULL;
	char err[400] = "";

	assert_int_equal(tls_ctx_new(&cfg, &ctx, err, sizeof(err)), ret);
	assert_null(ctx);
	assert_says(err, words);
	assert_null(strchr(err, '\n'));
}

TEST(files__missing_or_broken__one_line_with_the_name)
{
	struct tls_config cfg;
	char bad[CERTS_PATH_MAX], empty[CERTS_PATH_MAX];

	snprintf(bad, sizeof(bad), "%.120s/bad.pem", certs.dir);
	assert_int_equal(certs_spoil(bad), 0);
	join("empty", NULL, NULL, empty);
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

/* The certificates after the first one are its chain; without them nobody could verify it. */
TEST(files__chain_cut_short__refused)
{
	struct tls_config cfg = server_config();
	char path[CERTS_PATH_MAX];
	FILE *out;

	join("cut", certs.server_cert, NULL, path);
	out = fopen(path, "a");
	fputs("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", out);
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
	char err[400];
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
		tls_ctx_free(new_ctx(cfg));
	key = files.pem[TLS_FILE_KEY];
	n = files.bytes[TLS_FILE_KEY];
	assert_non_null(key);
	assert_true(n > 100);
	tls_files_wipe(&files);
	tls_files_wipe(&files);
	assert_null(files.pem[TLS_FILE_KEY]);
	assert_int_equal(files.bytes[TLS_FILE_KEY], 0);
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
	server = new_ctx(server_config());
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		FILE *out = fopen(path, "w");

		append_file(out, shown.cert);
		for (int k = 0; k < cases[i].copies; k++)
			append_file(out, certs.ca);
		fclose(out);
		tls_ctx_free(client);
		client = new_ctx(cfg);
		assert_int_equal(handshake(NULL), cases[i].end);
		hang_up();
	}
}

TEST(list__client_not_in_it__accepted)
{
	issue_client(NULL, 60);
	make_list((struct certs_list_wish){ .valid_s = 60 });
	assert_int_equal(meet_with_list(server_config()), TLS_DONE);
}

TEST(list__client_revoked__refused)
{
	issue_client(NULL, 60);
	make_list((struct certs_list_wish){ .valid_s = 60, .revoked = shown.cert });
	/* Nobody looks without a list. */
	assert_int_equal(meet(server_config()), TLS_DONE);
	assert_server_refuses(meet_with_list(server_config()), X509_V_ERR_CERT_REVOKED);
}

TEST(list__server_revoked__refused_by_the_client)
{
	struct tls_config cfg;

	issue_client(NULL, 60);
	make_list((struct certs_list_wish){ .valid_s = 60, .revoked = certs.server_cert });
	cfg = client_config();
	cfg.crl_file = crl;
	server = new_ctx(server_config());
	client = new_ctx(cfg);
	assert_client_refuses(handshake(NULL), X509_V_ERR_CERT_REVOKED);
}

/* A list of another CA does not say that this client is not revoked. */
TEST(list__of_another_ca__refused)
{
	struct certs_wish wish = { .name = "issued", .valid_s = 60, .by_other_ca = true };
	struct tls_config cfg = server_config();

	assert_int_equal(certs_issue(&certs, &wish, &shown), 0);
	make_list((struct certs_list_wish){ .valid_s = 60 });
	cfg.ca_file = certs.other_ca;
	assert_server_refuses(meet_with_list(cfg), X509_V_ERR_UNABLE_TO_GET_CRL);
	assert_int_equal(tls_ctx_foreign_lists(server), 1);
}

TEST(list__out_of_date__not_taken)
{
	struct tls_config cfg = server_config();

	make_list((struct certs_list_wish){ .valid_s = -1 });
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
	uint64_t with_empty, with_long;

	issue_client(NULL, 60);
	make_list((struct certs_list_wish){ .valid_s = 60 });
	assert_int_equal(meet_with_list(server_config()), TLS_DONE);
	with_empty = handshake_ns();
	make_list(wish);
	assert_int_equal(meet_with_list(server_config()), TLS_DONE);
	with_long = handshake_ns();
	print_message("a handshake: %llu us, with a list of 100,000: %llu us\n", (unsigned long long)with_empty / 1000,
		      (unsigned long long)with_long / 1000);
	assert_true(with_long < 2 * with_empty);
	/* A certificate that is listed in it is found. */
	wish.revoked = shown.cert;
	make_list(wish);
	assert_server_refuses(meet_with_list(server_config()), X509_V_ERR_CERT_REVOKED);
}

/* In the name of the CA, with another's signature. */
TEST(list__not_signed_by_its_ca__not_taken)
{
	struct tls_config cfg = server_config();

	make_list((struct certs_list_wish){ .valid_s = 60, .forged = true });
	cfg.crl_file = crl;
	assert_refused(cfg, -EINVAL, "the signature is not that of its CA /CN=unit test CA");
}

TEST(list__out_of_date_since_it_was_loaded__refused)
{
	issue_client(NULL, 1000);
	make_list((struct certs_list_wish){ .valid_s = 500 });
	assert_int_equal(meet_with_list(server_config()), TLS_DONE);
	ahead_s = 501;
	assert_server_refuses(handshake(NULL), X509_V_ERR_CRL_HAS_EXPIRED);
}

/* The list is that of the client's CA, but it covers only certificates of CAs. */
TEST(list__for_other_certificates_of_its_ca__refused)
{
	issue_client(NULL, 60);
	make_list((struct certs_list_wish){ .valid_s = 60, .only = "onlyCA:TRUE" });
	assert_server_refuses(meet_with_list(server_config()), X509_V_ERR_DIFFERENT_CRL_SCOPE);
}

/* Says only what has changed since another list: who stands in that one would not be found. */
TEST(list__delta__not_taken)
{
	struct certs_list_wish delta = { .valid_s = 60, .delta = true, .append = true };
	struct tls_config cfg = server_config();

	make_list((struct certs_list_wish){ .revoked = certs.client_cert, .valid_s = 60 });
	make_list(delta);
	cfg.crl_file = crl;
	assert_refused(cfg, -EINVAL, "is a delta list");
}

TEST(list__not_yet_valid__refused)
{
	issue_client(NULL, 1000);
	make_list((struct certs_list_wish){ .valid_s = 1000, .early = true });
	assert_server_refuses(meet_with_list(server_config()), X509_V_ERR_CRL_NOT_YET_VALID);
	ahead_s = 101;
	assert_int_equal(handshake(NULL), TLS_DONE);
}

/* The client is of a third CA, and shows that CA's certificate. */
static void issue_by_third(struct certs_ca_wish ca)
{
	struct certs_wish wish = { .name = "issued", .valid_s = 1000, .by_third_ca = true };

	assert_int_equal(certs_make_third(&certs, &ca, third), 0);
	assert_int_equal(certs_issue(&certs, &wish, &shown), 0);
}

TEST(list__its_ca_may_not_sign_lists__refused)
{
	struct certs_wish of_third = { .name = "of third", .san = "IP:127.0.0.1", .valid_s = 60, .by_third_ca = true };
	struct tls_config at_s = server_config(), at_c;
	struct certs_pair pair;

	issue_by_third((struct certs_ca_wish){ .name = "no lists", .usage = "critical,keyCertSign" });
	assert_int_equal(certs_issue(&certs, &of_third, &pair), 0);
	make_list((struct certs_list_wish){ .valid_s = 60, .of_third = true });
	at_s.ca_file = third;
	at_s.cert_file = pair.cert;
	at_s.key_file = pair.key;
	at_c = client_config();
	at_c.ca_file = third;
	client = new_ctx(at_c);
	assert_int_equal(meet(at_s), TLS_DONE);
	assert_server_refuses(meet_with_list(at_s), X509_V_ERR_KEYUSAGE_NO_CRL_SIGN);
}

/* Two CAs have the same name: the list of one says nothing about the clients of the other. */
TEST(list__of_a_ca_of_the_same_name__refused)
{
	struct tls_config cfg = server_config();
	char both[CERTS_PATH_MAX];

	issue_by_third((struct certs_ca_wish){ .name = "unit test CA" });
	make_list((struct certs_list_wish){ .valid_s = 60 });
	join("joined", certs.ca, third, both);
	cfg.ca_file = both;
	assert_int_equal(meet(cfg), TLS_DONE);
	assert_server_refuses(meet_with_list(cfg), X509_V_ERR_CRL_SIGNATURE_FAILURE);
}

/* The first that is tried has not signed the list: that is no error, of this context or of any connection. */
TEST(list__of_the_second_ca_of_that_name__no_error_is_left)
{
	struct certs_ca_wish twin = { .name = "unit test CA" };
	struct tls_config cfg;
	char both[CERTS_PATH_MAX];
	struct tls_ctx *other;
	uint8_t byte;
	size_t n;

	assert_int_equal(certs_make_third(&certs, &twin, third), 0);
	issue_client(NULL, 60);
	make_list((struct certs_list_wish){ .valid_s = 60 });
	join("joined", third, certs.ca, both);
	assert_int_equal(meet(server_config()), TLS_DONE);
	cfg = (struct tls_config){ .ca_file = both, .crl_file = crl };
	other = new_ctx(cfg);
	tls_ctx_free(other);
	assert_int_equal(tls_read(at_server, &byte, 1, &n), TLS_WANT_READ);
	assert_int_equal(ERR_peek_error(), 0);
}

/* Intermediate CAs, of which peers send the certificate. */

/* A client below an intermediate CA, which is not in ca_file, at a server with the root's list and the
 * intermediate's. */
static enum tls_status handshake_below(const char *by_root, struct certs_list_wish wish)
{
	enum tls_status st;

	wish.of_third = wish.append = true;
	make_list((struct certs_list_wish){ .valid_s = 60, .revoked = by_root });
	make_list(wish);
	st = meet_with_list(server_config());
	assert_int_equal(tls_ctx_foreign_lists(server), 1);
	return st;
}

TEST(list__of_an_intermediate__used)
{
	issue_by_third((struct certs_ca_wish){ .name = "intermediate", .below = true });
	assert_int_equal(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 60 }), TLS_DONE);
	assert_server_refuses(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 60, .revoked = shown.cert }),
			      X509_V_ERR_CERT_REVOKED);
	assert_server_refuses(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 60, .forged = true }),
			      X509_V_ERR_CRL_SIGNATURE_FAILURE);
	assert_server_refuses(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 200, .early = true }),
			      X509_V_ERR_CRL_NOT_YET_VALID);
}

TEST(list__intermediate_revoked__refused)
{
	issue_by_third((struct certs_ca_wish){ .name = "intermediate", .below = true });
	assert_server_refuses(handshake_below(third, (struct certs_list_wish){ .valid_s = 60 }),
			      X509_V_ERR_CERT_REVOKED);
}

/* Its end counts as that of the others. */
TEST(list__of_an_intermediate__out_of_date__no_ticket_resumes)
{
	struct tls_session *session;

	issue_by_third((struct certs_ca_wish){ .name = "intermediate", .below = true });
	assert_int_equal(handshake_below(NULL, (struct certs_list_wish){ .valid_s = 30 }), TLS_DONE);
	session = take_ticket();
	ahead_s = 31;
	assert_server_refuses(handshake(session), X509_V_ERR_CRL_HAS_EXPIRED);
	tls_session_free(session);
}

TEST(dates__of_certificate_and_list__known)
{
	struct certs_wish wish = { .name = "short", .san = "IP:127.0.0.1", .valid_s = 1000 };
	struct tls_config cfg = server_config();
	struct certs_pair pair;
	struct tls_dates dates;
	int64_t start = (int64_t)time(NULL), now;

	server = new_ctx(cfg);
	tls_ctx_dates(server, &dates);
	assert_true(dates.cert_expires_at >= start + 3500 && dates.cert_expires_at <= start + 3600);
	assert_true(dates.crl_expires_at == INT64_MAX);
	end_ctx(&server);
	assert_int_equal(certs_issue(&certs, &wish, &pair), 0);
	make_list((struct certs_list_wish){ .valid_s = 500 });
	cfg.cert_file = pair.cert;
	cfg.key_file = pair.key;
	cfg.crl_file = crl;
	server = new_ctx(cfg);
	tls_ctx_dates(server, &dates);
	now = (int64_t)time(NULL);
	assert_true(dates.cert_expires_at >= start + 1000 && dates.cert_expires_at <= now + 1000);
	assert_true(dates.crl_expires_at >= start + 500 && dates.crl_expires_at <= now + 500);
	assert_false(tls_ctx_is_development(server));
	client = new_ctx((struct tls_config){ .ca_file = certs.ca });
	tls_ctx_dates(client, &dates);
	assert_true(dates.cert_expires_at == INT64_MAX);
}

TEST(names__of_the_client__looked_at_in_full_and_resumed_handshakes)
{
	struct tls_config cfg = server_config();
	struct tls_session *session;

	issue_client("DNS:app.example.org", 60);
	cfg.allow_names = "*.example.org";
	assert_int_equal(meet(cfg), TLS_DONE);
	assert_true(tls_peer_is_allowed(at_server));
	session = take_ticket();
	assert_int_equal(handshake(session), TLS_DONE);
	assert_true(tls_is_resumed(at_server));
	assert_true(tls_peer_is_allowed(at_server));
	end_ctx(&server);
	cfg.allow_names = "other.org";
	server = new_ctx(cfg);
	/* The same seed: only the name stands in the way. */
	assert_int_equal(handshake(session), TLS_DONE);
	assert_true(tls_is_resumed(at_server));
	assert_false(tls_peer_is_allowed(at_server));
	tls_session_free(session);
}

/* Two tickets, one of a full and one of a resumed handshake: in 501 s both are worth nothing to the server. */
static void assert_tickets_end(int error)
{
	struct tls_session *first, *second;

	assert_int_equal(handshake(NULL), TLS_DONE);
	first = take_ticket();
	assert_int_equal(handshake(first), TLS_DONE);
	assert_true(tls_is_resumed(at_server));
	second = take_ticket();
	ahead_s = 501;
	assert_server_refuses(handshake(first), error);
	assert_server_refuses(handshake(second), error);
	tls_session_free(first);
	tls_session_free(second);
}

TEST(ticket__clients_certificate_expired__not_resumed_and_refused)
{
	server = new_ctx(server_config());
	issue_client(NULL, 500);
	client = new_ctx(client_config());
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
	assert_int_equal(meet(cfg), TLS_DONE);
	session = take_ticket();
	ahead_s = 501;
	assert_client_refuses(handshake(session), X509_V_ERR_CERT_HAS_EXPIRED);
	tls_session_free(session);
}

/* A list that is out of date refuses everybody, with a ticket too. */
TEST(ticket__list_out_of_date__not_resumed_and_refused)
{
	struct tls_config cfg = server_config();

	issue_client(NULL, 1000);
	make_list((struct certs_list_wish){ .valid_s = 500 });
	cfg.crl_file = crl;
	server = new_ctx(cfg);
	client = new_ctx(client_config());
	assert_tickets_end(X509_V_ERR_CRL_HAS_EXPIRED);
}

TEST(session__clients_list_out_of_date__not_offered_and_refused)
{
	struct tls_session *session;
	struct tls_config cfg;

	issue_client(NULL, 1000);
	make_list((struct certs_list_wish){ .valid_s = 500 });
	cfg = client_config();
	cfg.crl_file = crl;
	server = new_ctx(server_config());
	client = new_ctx(cfg);
	assert_int_equal(handshake(NULL), TLS_DONE);
	session = take_ticket();
	assert_int_equal(handshake(session), TLS_DONE);
	assert_true(tls_is_resumed(at_client));
	ahead_s = 501;
	assert_client_refuses(handshake(session), X509_V_ERR_CRL_HAS_EXPIRED);
	tls_session_free(session);
}

TEST(free__connections_are_left__they_go_on_without_ticket_keys)
{
	static const struct ticket_ring none;
	struct tls_ctx *old;

	issue_client(NULL, 60);
	assert_int_equal(meet(server_config()), TLS_DONE);
	old = server;
	assert_memory_not_equal(&old->tickets, &none, sizeof(none));
	tls_ctx_free(server);
	server = NULL;
	assert_memory_equal(&old->tickets, &none, sizeof(none));
	assert_int_equal(old->refs, 1);
	assert_int_equal(tls_send_ticket(at_server), -ENOTSUP);
	say_something();
	/* The last connection takes the context with it; leaks are looked for at exit. */
}

/* In the middle of a handshake that offers a ticket: its keys are gone, so it is a full one. */
TEST(free__handshake_under_way__full)
{
	enum tls_status there, here;
	struct tls_session *session;

	issue_client(NULL, 60);
	assert_int_equal(meet(server_config()), TLS_DONE);
	session = take_ticket();
	connect_by(SOCK_STREAM, server, client, session);
	tls_ctx_free(server);
	server = NULL;
	try_handshake(&here, &there);
	assert_int_equal(here, TLS_DONE);
	assert_int_equal(there, TLS_DONE);
	assert_false(tls_is_resumed(at_server));
	tls_session_free(session);
}

TEST(step__tickets_or_none__time_until_the_next)
{
	struct tls_config cfg = server_config();
	uint64_t start = seed.start_ns;

	server = new_ctx(cfg);
	assert_int_equal(tls_ctx_step_tickets(server, start), ROTATE_NS);
	assert_int_equal(tls_ctx_step_tickets(server, start + ROTATE_NS + 7), ROTATE_NS - 7);
	assert_int_equal(server->tickets.epoch, 1);
	end_ctx(&server);
	cfg.tickets = NULL;
	server = new_ctx(cfg);
	assert_true(tls_ctx_step_tickets(server, start) == UINT64_MAX);
}

#ifdef RAMPART_TLS_KEY_LOG
TEST(key_log__file_is_named__has_the_secrets_of_both_ends)
{
	char path[CERTS_PATH_MAX], line[400];
	unsigned traffic_secrets = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/keys", certs.dir);
	setenv("SSLKEYLOGFILE", path, 1);
	issue_client(NULL, 60);
	assert_int_equal(meet(server_config()), TLS_DONE);
	unsetenv("SSLKEYLOGFILE");
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		traffic_secrets += strstr(line, "_TRAFFIC_SECRET_0 ") != NULL;
	fclose(f);
	unlink(path);
	/* At each end, one secret in each direction. */
	assert_int_equal(traffic_secrets, 4);
}
#endif

TEST_EACH(NULL, tear_down)
TEST_GROUP(group_set_up, tls_rig_group_tear_down)
