/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/certificates.c and what a shard does with its TLS context: certificates replaced while clients
 * are there, files that cannot be used, sessions that end, warnings, and ticket keys of a shard to which nobody
 * comes. */
#include "tests/unit/helpers/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/x509_vfy.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/tls/tls_internal.h"
#include "server/certificates.h"
#include "server/report.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/files/log_watch.h"
#include "tests/unit/helpers/moved_clock.h"
#include "tests/unit/helpers/server_rig.h"

static struct certs good;	/* as they were made */
static struct certificates *certificates;
static struct certs_pair served;	/* the server's, to be replaced */
static char crl[CERTS_PATH_MAX];
static bool memory_is_out;
static uint32_t mallocs_failed;
static time_t ahead_s;	/* of the machine's clock, for whoever asks with time(2) */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n)
{
	if (!memory_is_out)
		return __real_malloc(n);
	mallocs_failed++;
	return NULL;
}

/* In place of libc's: what expires is not waited for. libev asks for the time in another way. */
time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec + ahead_s;
	return t.tv_sec + ahead_s;
}

static int issue_server(const char *san, int valid_s, bool by_other_ca)
{
	struct certs_wish wish = { .name = "served", .san = san, .valid_s = valid_s, .by_other_ca = by_other_ca };

	return certs_issue(&good, &wish, &served);
}

static int set_up(void **state)
{
	int ret = server_rig_init(state);

	good = srv.certs;
	srv.peers_resume = true;
	if (ret || issue_server("IP:127.0.0.1", 60 * 86400, false))
		return -1;
	snprintf(srv.cfg.cert_path, sizeof(srv.cfg.cert_path), "%s", served.cert);
	snprintf(srv.cfg.key_path, sizeof(srv.cfg.key_path), "%s", served.key);
	return chmod(served.key, 0600);
}

static int tear_down(void **state)
{
	log_watch_end();
	memory_is_out = false;
	ahead_s = 0;
	certificates_free(certificates);
	certificates = NULL;
	tls_session_free(srv.offer);
	srv.certs = good;
	return server_rig_stop(state);
}

/* Clients show certificates, and none of those in the list `crl`. */
static void require_list(void)
{
	srv.cfg.client_auth = CLIENT_AUTH_REQUIRE;
	srv.cfg.crl = crl;
}

static void start(void)
{
	char err[256];

	server_rig_start();
	assert_int_equal(certificates_new(&srv.server, srv.main_loop, &certificates), 0);
	assert_int_equal(certificates_begin(certificates, err, sizeof(err)), 0);
	certificates_end(certificates);
	certificates_start(certificates);
}

/* Turns the loops until a timer of the main thread has made the condition true. */
#define main_until(condition) \
	do { \
		for (uint64_t end_ = clock_now_ns() + 60 * NS_PER_S; !(condition) && clock_now_ns() < end_;) \
			server_wait(); \
		assert_true(condition); \
	} while (0)

static bool reload(void)
{
	bool done = certificates_reload(certificates, "SIGHUP");

	server_turns(2);
	return done;
}

/* Up to the GRANT, and the session of later peers is the one that came. */
static void get_ticket(void)
{
	struct peer p;

	assert_int_equal(peer_ask(&p, FRAME_FEATURE_TICKET), FRAME_GRANT);
	tls_session_free(srv.offer);
	srv.offer = tls_take_session(p.tls);
	assert_non_null(srv.offer);
	peer_close(&p);
}

static void forget_ticket(void)
{
	tls_session_free(srv.offer);
	srv.offer = NULL;
}

static bool resumes(void)
{
	struct peer p;
	bool resumed;

	peer_shake_hands(&p);
	resumed = tls_is_resumed(p.tls);
	peer_close(&p);
	return resumed;
}

static int64_t number_at(const char *name)
{
	json_t *o = certificates_json(certificates);
	int64_t n = json_integer_value(json_object_get(o, name));

	json_decref(o);
	return n;
}

TEST(reload__new_certificate__new_clients_see_it_old_ones_live_on)
{
	struct peer live, half, next;
	const struct tls_ctx *before;

	start();
	before = srv.shard->tls_ctx;
	peer_go_live(&live, 0);
	peer_shake_hands(&half);
	/* The new certificate is signed by another CA, so that a client can tell them apart. */
	assert_int_equal(issue_server("IP:127.0.0.1", 1000, true), 0);
	raise(SIGHUP);
	server_turns(3);
	assert_int_equal(number_at("reloads"), 1);
	assert_ptr_not_equal(srv.shard->tls_ctx, before);
	peer_connect(&next);
	assert_false(peer_handshake(&next));
	peer_abort(&next);
	memcpy(srv.certs.ca, good.other_ca, sizeof(srv.certs.ca));
	peer_shake_hands(&next);
	peer_close(&next);
	/* One that was in its bootstrap comes to its end with the old one. */
	assert_int_equal(peer_say_hello(&half, 0), FRAME_GRANT);
	peer_close(&half);
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	assert_true(peer_message(&live, 64));
	server_turns(2);
	server_only(CONN_ST_LIVE);
	peer_leave(&live);
}

static void assert_reload_fails(const char *words)
{
	const struct tls_ctx *before = srv.shard->tls_ctx;
	int64_t failed = number_at("failed_reloads");
	struct peer p;
	char text[2000];

	log_watch_begin("server");
	assert_false(reload());
	assert_int_equal(log_watch_read(text, sizeof(text)), 1);
	log_watch_end();
	if (!strstr(text, words) || !strstr(text, "SIGHUP: ") || !strstr(text, "goes on with what it has"))
		fail_msg("'%s' does not say '%s'", text, words);
	assert_int_equal(number_at("failed_reloads"), failed + 1);
	assert_int_equal(number_at("reloads"), 0);
	assert_ptr_equal(srv.shard->tls_ctx, before);
	peer_shake_hands(&p);
	peer_close(&p);
	/* Nothing of it stays in memory. */
	assert_null(srv.server.tls_files);
	assert_null(srv.server.tickets);
}

TEST(reload__a_file_is_broken__one_line_and_the_old_ones_stay)
{
	struct certs_wish wish = { .name = "served", .san = "IP:127.0.0.1", .valid_s = -1 };
	char ca[CERTS_PATH_MAX];

	srv.cfg.client_auth = CLIENT_AUTH_REQUIRE;
	srv.peers_certified = true;
	snprintf(ca, sizeof(ca), "%.120s/cas.pem", good.dir);
	assert_int_equal(link(good.ca, ca), 0);
	snprintf(srv.cfg.ca_path, sizeof(srv.cfg.ca_path), "%s", ca);
	start();
	get_ticket();
	assert_int_equal(certs_spoil(served.key), 0);
	assert_reload_fails("private key ");
	assert_int_equal(certs_spoil(served.cert), 0);
	assert_reload_fails("certificate ");
	assert_int_equal(unlink(served.cert), 0);
	assert_reload_fails("does not exist");
	assert_int_equal(certs_issue(&good, &wish, &served), 0);
	assert_reload_fails("has expired");
	assert_int_equal(issue_server("IP:127.0.0.1", 60 * 86400, false), 0);
	assert_int_equal(unlink(ca), 0);
	assert_int_equal(certs_spoil(ca), 0);
	assert_reload_fails("CA certificate ");
	/* Tickets too. */
	assert_true(resumes());
	assert_int_equal(unlink(ca), 0);
	assert_int_equal(link(good.ca, ca), 0);
	assert_true(reload());
	assert_int_equal(unlink(ca), 0);
}

/* A shard that has not had its turn yet is offered another one. */
TEST(reload__twice_before_a_turn__the_newest_counts)
{
	struct peer p;

	start();
	assert_int_equal(issue_server("IP:127.0.0.1", 1000, true), 0);
	assert_true(certificates_reload(certificates, "SIGHUP"));
	assert_int_equal(issue_server("IP:127.0.0.1", 1000, false), 0);
	assert_true(certificates_reload(certificates, "SIGHUP"));
	server_turns(2);
	peer_shake_hands(&p);
	peer_close(&p);
	/* And one that nobody takes any more is freed with the shard. */
	assert_true(certificates_reload(certificates, "SIGHUP"));
}

static void on_ssl_ctx_freed(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int index, long argl, void *argp)
{
	(void)parent;
	(void)ad;
	(void)index;
	(void)argl;
	(void)argp;
	if (ptr)
		*(bool *)ptr = true;
}

/* *freed becomes true when the shard's present context ends. */
static void start_and_tell_of_the_end(bool *freed)
{
	int index = CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, NULL, NULL, NULL, on_ssl_ctx_freed);

	start();
	assert_int_equal(SSL_CTX_set_ex_data(srv.shard->tls_ctx->ssl_ctx, index, freed), 1);
}

/* A long revocation list takes long to free: the main thread does it. */
TEST(reload__nobody_uses_the_old_context__the_main_thread_frees_it)
{
	bool freed = false;
	struct peer p;

	start_and_tell_of_the_end(&freed);
	peer_shake_hands(&p);
	assert_true(reload());
	peer_close(&p);
	server_until(srv.shard->tls_open == 0);
	for (int i = 0; i < 20; i++)
		ev_run(srv.shard->loop, EVRUN_NOWAIT);
	assert_false(freed);
	main_until(freed);
}

/* The main thread holds the old context, and not the new one. */
TEST(reload__no_memory_to_hold_the_new_context__the_old_one_is_freed_in_time)
{
	bool freed = false;
	uint64_t begun;
	struct peer p;

	start_and_tell_of_the_end(&freed);
	peer_shake_hands(&p);
	memory_is_out = true;
	assert_true(certificates_reload(certificates, "SIGHUP"));
	memory_is_out = false;
	assert_int_equal(mallocs_failed, 1);
	/* The main thread looks once while the old one is in use, and finds as many as there are shards. */
	begun = clock_now_ns();
	main_until(clock_now_ns() > begun + 1100 * NS_PER_MS);
	assert_false(freed);
	peer_close(&p);
	main_until(freed);
}

TEST(reload__tickets_of_before__full_handshake)
{
	start();
	get_ticket();
	assert_true(resumes());
	assert_true(reload());
	assert_false(resumes());
	get_ticket();
	assert_true(resumes());
}

/* A client that the new list revokes gets in neither with its certificate nor with an older ticket. */
TEST(reload__client_revoked__neither_certificate_nor_ticket_serves)
{
	struct peer p;

	require_list();
	srv.peers_certified = true;
	assert_int_equal(certs_list(&good, NULL, 1000, crl), 0);
	start();
	get_ticket();
	assert_true(resumes());
	assert_int_equal(certs_list(&good, good.client_cert, 1000, crl), 0);
	assert_true(resumes());	/* not read yet */
	assert_true(reload());
	for (int i = 0; i < 2; i++) {
		peer_connect(&p);
		(void)!peer_handshake(&p);
		assert_int_equal(peer_say_hello(&p, 0), 0);
		peer_abort(&p);
		assert_int_equal(server_failed(STAGE_TLS_HANDSHAKE, FAIL_CERTIFICATE, X509_V_ERR_CERT_REVOKED), i + 1);
		forget_ticket();
	}
	conn_close(server_only(CONN_ST_GRANTED), CLOSE_DRAINING);
	server_assert_all_back();
}

static void show(const char *san)
{
	struct certs_wish wish = { .name = "shown", .san = san, .valid_s = 1000 };
	struct certs_pair pair;

	assert_int_equal(certs_issue(&good, &wish, &pair), 0);
	memcpy(srv.certs.client_cert, pair.cert, sizeof(pair.cert));
	memcpy(srv.certs.client_key, pair.key, sizeof(pair.key));
}

TEST(names__not_in_the_list__refused_and_counted_clients_and_control)
{
	uint8_t buf[FRAME_CONTROL_BYTES];
	struct peer p;

	srv.cfg.client_auth = CLIENT_AUTH_REQUIRE;
	srv.cfg.allow_names = "*.example.org,10.1.2.3";
	srv.peers_certified = true;
	start();
	show("DNS:app.example.org");
	get_ticket();
	assert_true(resumes());
	show("DNS:app.example.net");
	forget_ticket();
	assert_int_equal(peer_ask(&p, FRAME_FEATURE_TICKET), FRAME_REFUSE);
	assert_int_equal(p.refuse.code, REFUSE_NOT_ALLOWED);
	assert_null(tls_take_session(p.tls));
	peer_close(&p);
	peer_shake_hands(&p);
	peer_assert_refused(&p, buf, frame_encode_control(CONTROL_STATS, buf), REFUSE_NOT_ALLOWED, "");
	assert_int_equal(server_controls(), 0);
	assert_int_equal(server_refused(REFUSE_NOT_ALLOWED), 2);
	conn_close(TAILQ_FIRST(&srv.shard->lists[CONN_ST_GRANTED]), CLOSE_DRAINING);
	server_assert_all_back();
}

static void assert_start_says(const char *words)
{
	char text[2000];

	log_watch_begin("server");
	start();
	log_watch_read(text, sizeof(text));
	log_watch_end();
	if (words ? !strstr(text, words) : *text != '\0')
		fail_msg("'%s' is not '%s'", text, words ? words : "");
}

TEST(start__all_is_well__nothing_said)
{
	assert_start_says(NULL);
}

TEST(start__expires_within_14_days__said_and_in_the_reports)
{
	json_auto_t *info = NULL, *stats = NULL;
	char text[40];
	time_t end;
	struct tm tm;

	assert_int_equal(issue_server("IP:127.0.0.1", 13 * 86400 + 100, false), 0);
	assert_int_equal(chmod(served.key, 0600), 0);
	end = time(NULL) + 13 * 86400 + 100;
	assert_start_says("expires in 13 days");
	assert_non_null(gmtime_r(&end, &tm));
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M", &tm);
	info = report_info(&srv.server);
	stats = report_stats(&srv.server, NULL);
	assert_memory_equal(json_text_at(info, "environment.certificate_expires_at"), text, 15);
	assert_memory_equal(json_text_at(stats, "certificates.certificate_expires_at"), text, 15);
}

TEST(start__key_open_to_others__said)
{
	assert_int_equal(chmod(served.key, 0640), 0);
	assert_start_says("can be read by its group or by others: chmod 600");
}

TEST(reload__what_is_wrong_with_the_new_one__said)
{
	char text[2000];

	start();
	assert_int_equal(issue_server("IP:127.0.0.1", 7200, false), 0);
	assert_int_equal(chmod(served.key, 0604), 0);
	log_watch_begin("server");
	assert_true(reload());
	assert_int_equal(log_watch_read(text, sizeof(text)), 3);
	log_watch_end();
	assert_says(text, "expires in less than a day");
	assert_says(text, "chmod 600");
	assert_says(text, "certificates were read again");
}

/* Also when it comes within a day of the last time that was looked. */
TEST(expiry__its_moment_comes__said_then)
{
	char text[2000];

	require_list();
	/* The list is loaded in the past, and its moment lies between then and this second. */
	ahead_s = -50;
	assert_int_equal(certs_list(&good, NULL, 40, crl), 0);
	start();
	log_watch_begin("server");
	ahead_s = 0;
	main_until(log_watch_read(text, sizeof(text)) > 0);
	assert_int_equal(log_watch_read(text, sizeof(text)), 1);
	log_watch_end();
	assert_says(text, "revocation list ");
	assert_says(text, "has expired");
	assert_says(text, "every client is refused");
}

TEST(start__list_of_a_ca_that_is_not_there__said)
{
	require_list();
	assert_int_equal(certs_list(&good, NULL, 3 * 86400, crl), 0);
	snprintf(srv.cfg.ca_path, sizeof(srv.cfg.ca_path), "%s", good.other_ca);
	assert_start_says("the CAs of 1 of its lists are not in ");
}

static struct ticket_ring *ring(void)
{
	return &srv.shard->tls_ctx->tickets;
}

static bool holds(const void *part, size_t n)
{
	const uint8_t *bytes = (const uint8_t *)ring();

	for (size_t i = 0; i + n <= sizeof(*ring()); i++)
		if (memcmp(bytes + i, part, n) == 0)
			return true;
	return false;
}

/* A ticket was sealed, and then nobody came: its key leaves memory in time all the same. */
TEST(tickets__shard_is_idle__old_keys_gone_after_two_rotations)
{
	struct ticket_key key;
	uint64_t begun;
	uint32_t wakes = 0;

	srv.cfg.ticket_rotation_ns = 200 * NS_PER_MS;
	server_rig_start();
	ev_timer_stop(srv.shard->loop, &srv.tick);
	key = ring()->current;
	begun = ring()->start_ns;
	while (clock_now_ns() < begun + 2 * srv.cfg.ticket_rotation_ns + 100 * NS_PER_MS && ring()->epoch < 2) {
		ev_run(srv.shard->loop, EVRUN_ONCE);
		wakes++;
	}
	assert_int_equal(ring()->epoch, 2);
	assert_false(holds(key.cipher, sizeof(key.cipher)));
	assert_false(holds(key.mac, sizeof(key.mac)));
	/* A step and the gauges that follow each turn: the shard slept in between. */
	assert_true(wakes <= 10);
}

TEST(tickets__context_replaced__the_new_ones_keys_are_stepped)
{
	srv.cfg.ticket_rotation_ns = 100 * NS_PER_MS;
	start();
	assert_true(reload());
	server_until(ring()->epoch >= 2);
}

TEST(tickets__switched_off__no_timer)
{
	srv.cfg.tls_resume = 0;
	server_rig_start();
	assert_false(ev_is_active(&srv.shard->ticket_step));
}

/* --watch-certs: last, because minutes pass here by the moved clock, and libev's time of day does not follow it. */

static void pass_s(unsigned seconds)
{
	uint64_t end = clock_now_ns() + seconds * NS_PER_S;

	main_until(clock_now_ns() > end);
}

TEST(watch__written_one_after_the_other__read_once_both_are_there)
{
	srv.cfg.watch_certs = true;
	start();
	assert_int_equal(certs_spoil(served.cert), 0);
	pass_s(6);
	assert_int_equal(issue_server("IP:127.0.0.1", 1000, false), 0);
	pass_s(5);
	assert_int_equal(number_at("reloads"), 0);
	pass_s(5);
	assert_int_equal(number_at("reloads"), 1);
	pass_s(20);
	assert_int_equal(number_at("reloads"), 1);
	assert_int_equal(number_at("failed_reloads"), 0);
}

TEST(watch__file_cannot_be_used__tried_once_and_again_after_the_next_change)
{
	struct peer p;

	srv.cfg.watch_certs = true;
	start();
	assert_int_equal(unlink(served.key), 0);
	pass_s(30);
	assert_int_equal(number_at("failed_reloads"), 1);
	peer_shake_hands(&p);
	peer_close(&p);
	assert_int_equal(issue_server("IP:127.0.0.1", 1000, false), 0);
	pass_s(11);
	assert_int_equal(number_at("reloads"), 1);
}

static void point_link(const char *link, const char *to)
{
	char fresh[CERTS_PATH_MAX + 8];

	snprintf(fresh, sizeof(fresh), "%s.new", link);
	assert_int_equal(symlink(to, fresh), 0);
	assert_int_equal(rename(fresh, link), 0);
}

TEST(watch__symbolic_links_are_replaced__read)
{
	struct certs_wish wish = { .name = "renewed", .san = "IP:127.0.0.1", .valid_s = 1000 };
	struct certs_pair renewed;

	snprintf(srv.cfg.cert_path, sizeof(srv.cfg.cert_path), "%.120s/link.pem", good.dir);
	snprintf(srv.cfg.key_path, sizeof(srv.cfg.key_path), "%.120s/link.key", good.dir);
	point_link(srv.cfg.cert_path, served.cert);
	point_link(srv.cfg.key_path, served.key);
	assert_int_equal(certs_issue(&good, &wish, &renewed), 0);
	srv.cfg.watch_certs = true;
	start();
	pass_s(20);
	assert_int_equal(number_at("reloads"), 0);
	point_link(srv.cfg.cert_path, renewed.cert);
	point_link(srv.cfg.key_path, renewed.key);
	pass_s(11);
	assert_int_equal(number_at("reloads"), 1);
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(server_rig_group_setup, server_rig_group_teardown)
