/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/tls/tls.c: session tickets and resumption, over a socket pair. Contexts whose seed began
 * earlier are in a later epoch, as the same context will be when time has passed. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/tls/ticket_keys.h"
#include "common/tls/tls.h"
#include "common/tls/tls_internal.h"
#include "common/tls/tls_limits.h"
#include "common/wire/frame.h"
#include "tests/unit/common/tls/tls_rig.h"
#include "tests/unit/helpers/moved_clock.h"

#define ROTATE_NS (10 * NS_PER_S)	/* longer than a test */
#define LABEL "EXPORTER-test"
#define KEY_BYTES 32
static struct ticket_seed seed;

static struct tls_ctx *new_server(const struct ticket_seed *tickets)
{
	return new_ctx((struct tls_config){ .server = true, .cert_file = certs.server_cert,
					    .key_file = certs.server_key, .tickets = tickets });
}

static struct tls_ctx *new_client(bool resume)
{
	return new_ctx((struct tls_config){ .ca_file = certs.ca, .cert_file = certs.client_cert,
					    .key_file = certs.client_key, .resume = resume });
}

static int set_up(void **state)
{
	(void)state;
	if (ticket_seed_new(clock_now_ns(), ROTATE_NS, &seed))
		return -1;
	server = new_server(&seed);
	client = new_client(true);
	return 0;
}

static void connect_pair(struct tls_ctx *s, struct tls_ctx *c, struct tls_session *offer)
{
	connect_by(SOCK_STREAM, s, c, offer);
}

/* To its success on both sides. True if it resumed the offered session. */
static bool finish_handshake(void)
{
	enum tls_status there, here;

	try_handshake(&here, &there);
	if (here != TLS_DONE || there != TLS_DONE)
		fail_msg("client: %d %s; server: %d %s", here, tls_failure_text(at_client), there,
			 tls_failure_text(at_server));
	assert_int_equal(tls_is_resumed(at_client), tls_is_resumed(at_server));
	return tls_is_resumed(at_client);
}

static bool resumes(struct tls_ctx *s, struct tls_ctx *c, struct tls_session *offer)
{
	connect_pair(s, c, offer);
	return finish_handshake();
}

/* It is good for a connection with that server; then it is freed. */
static void assert_resumes(struct tls_ctx *s, struct tls_session *session)
{
	assert_true(resumes(s, client, session));
	tls_session_free(session);
}

static void say_goodbye(void)
{
	tls_close_notify(at_client);
	tls_close_notify(at_server);
	hang_up();
}

/* The session of a full handshake, whose connection is closed in order. */
static struct tls_session *first_session(struct tls_ctx *s, struct tls_ctx *c)
{
	struct tls_session *session;

	assert_false(resumes(s, c, NULL));
	session = ask_for_ticket();
	assert_non_null(session);
	say_goodbye();
	return session;
}

static struct ticket_seed epochs_later(unsigned n)
{
	struct ticket_seed later = seed;

	assert_true(seed.start_ns > n * ROTATE_NS);
	later.start_ns -= n * ROTATE_NS;
	return later;
}

TEST(ticket__on_demand__one_session)
{
	struct tls_session *session;

	assert_false(resumes(server, client, NULL));
	assert_null(tls_take_session(at_client));
	session = ask_for_ticket();
	assert_non_null(session);
	/* It is the caller's now. */
	assert_null(tls_take_session(at_client));
	tls_session_free(session);
}

TEST(ticket__not_asked_for__none)
{
	assert_false(resumes(server, client, NULL));
	say_something();
	assert_null(tls_take_session(at_client));
}

TEST(ticket__several__the_newest_is_kept)
{
	struct tls_session *session;

	assert_false(resumes(server, client, NULL));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tls_send_ticket(at_server), 0);
		say_something();
	}
	session = tls_take_session(at_client);
	assert_non_null(session);
	assert_null(tls_take_session(at_client));
	say_goodbye();
	assert_resumes(server, session);
}

/* A connection that ends without a goodbye says nothing about its session. */
TEST(ticket__connection_cut_off__session_still_good)
{
	struct tls_session *session;

	assert_false(resumes(server, client, NULL));
	session = ask_for_ticket();
	hang_up();
	assert_resumes(server, session);
}

TEST(ticket__nobody_takes_the_session__freed_with_the_connection)
{
	assert_false(resumes(server, client, NULL));
	assert_int_equal(tls_send_ticket(at_server), 0);
	say_something();
	hang_up();	/* leaks are looked for at exit */
}

TEST(ticket__context_without__enotsup)
{
	struct tls_ctx *none = new_server(NULL);

	assert_false(resumes(none, client, NULL));
	assert_int_equal(tls_send_ticket(at_server), -ENOTSUP);
	/* The connection is none the worse for it. */
	say_something();
	assert_null(tls_take_session(at_client));
	end_ctx(&none);
}

TEST(ticket__before_the_handshake_or_of_a_client__refused)
{
	connect_pair(server, client, NULL);
	assert_int_equal(tls_send_ticket(at_server), -EIO);
	assert_int_equal(tls_send_ticket(at_client), -ENOTSUP);
	assert_false(resumes(server, client, NULL));
	assert_int_equal(tls_send_ticket(at_client), -ENOTSUP);
	say_something();
}

/* "Clients SHOULD NOT reuse a ticket for multiple connections" (RFC 8446, C.4), lest observers connect them. There
 * is nothing to hide here: both are from one address. */
TEST(resume__session_used_before__again)
{
	struct tls_session *session = first_session(server, client);

	for (int i = 0; i < 4; i++) {
		assert_true(resumes(server, client, session));
		say_something();
		if (i % 2)
			say_goodbye();
	}
	tls_session_free(session);
}

TEST(resume__newer_ticket_of_a_resumed_connection__good_too)
{
	struct tls_session *session = first_session(server, client);

	for (int i = 0; i < 5; i++) {
		struct tls_session *newer;

		assert_true(resumes(server, client, session));
		newer = ask_for_ticket();
		assert_non_null(newer);
		assert_ptr_not_equal(newer, session);
		tls_session_free(session);
		session = newer;
		say_goodbye();
	}
	tls_session_free(session);
}

TEST(resume__session_freed_while_in_use__connection_goes_on)
{
	struct tls_session *session = first_session(server, client);

	assert_resumes(server, session);
	say_something();
	say_goodbye();
}

TEST(resume__nothing_offered__full)
{
	struct tls_session *session = first_session(server, client);

	assert_false(resumes(server, client, NULL));
	tls_session_free(session);
}

TEST(resume__client_does_not_keep_sessions__full)
{
	struct tls_ctx *forgetful = new_client(false);

	assert_false(resumes(server, forgetful, NULL));
	assert_null(ask_for_ticket());
	end_ctx(&forgetful);
}

TEST(resume__server_without_tickets__full)
{
	struct tls_session *session = first_session(server, client);
	struct tls_ctx *none = new_server(NULL);

	assert_false(resumes(none, client, session));
	say_something();
	/* Nor is the session lost by it. */
	say_goodbye();
	assert_resumes(server, session);
	end_ctx(&none);
}

TEST(resume__contexts_of_one_seed__each_others)
{
	struct tls_ctx *other = new_server(&seed);
	struct tls_session *session = first_session(server, client);

	assert_resumes(other, session);
	session = first_session(other, client);
	assert_resumes(server, session);
	end_ctx(&other);
}

TEST(resume__contexts_of_two_seeds__full)
{
	struct tls_session *session = first_session(server, client);
	struct ticket_seed other_seed;
	struct tls_ctx *other;

	assert_int_equal(ticket_seed_new(seed.start_ns, ROTATE_NS, &other_seed), 0);
	other = new_server(&other_seed);
	assert_false(resumes(other, client, session));
	say_something();
	tls_session_free(session);
	end_ctx(&other);
}

TEST(resume__key_of_the_epoch_before__still_good)
{
	struct tls_session *session = first_session(server, client);
	struct ticket_seed later = epochs_later(1);
	struct tls_ctx *next = new_server(&later);

	assert_true(resumes(next, client, session));
	/* No ticket comes that was not asked for, though the old one is about to expire. */
	say_something();
	assert_null(tls_take_session(at_client));
	tls_session_free(session);
	end_ctx(&next);
}

TEST(resume__key_rotated_out__full_and_the_next_ticket_is_good)
{
	struct tls_session *session = first_session(server, client);
	struct ticket_seed later = epochs_later(2);
	struct tls_ctx *next = new_server(&later);

	assert_false(resumes(next, client, session));
	tls_session_free(session);
	session = ask_for_ticket();
	assert_non_null(session);
	say_goodbye();
	assert_resumes(next, session);
	end_ctx(&next);
}

/* The only test in which keys rotate because time passes: the clock moves by two epochs of one second. */
TEST(resume__two_epochs_pass__full)
{
	struct ticket_seed quick;
	struct tls_session *session;
	struct tls_ctx *ctx;

	assert_int_equal(ticket_seed_new(clock_now_ns(), NS_PER_S, &quick), 0);
	ctx = new_server(&quick);
	session = first_session(ctx, client);
	clock_move(2 * NS_PER_S);
	assert_false(resumes(ctx, client, session));
	tls_session_free(session);
	end_ctx(&ctx);
}

TEST(resume__server_demands_certificates__without_showing_it_again)
{
	struct tls_config cfg = { .server = true, .cert_file = certs.server_cert, .key_file = certs.server_key,
				  .ca_file = certs.ca, .require_peer_cert = true, .tickets = &seed };
	struct tls_ctx *strict = new_ctx(cfg);
	struct tls_session *session = first_session(strict, client);
	struct tls_ctx *without = new_ctx((struct tls_config){ .ca_file = certs.ca, .resume = true });
	enum tls_status here, there;

	assert_true(resumes(strict, client, session));
	say_something();
	/* A client without a certificate and a session does not get in. */
	connect_pair(strict, without, NULL);
	try_handshake(&here, &there);
	assert_int_equal(there, TLS_FAILED);
	tls_session_free(session);
	end_ctx(&without);
	end_ctx(&strict);
}

struct key {
	uint8_t bytes[KEY_BYTES];
};

/* The same at both ends. */
static struct key exported_key(void)
{
	static const uint8_t context[3] = "ctx";
	struct key here, there;

	assert_int_equal(tls_export_key(at_client, LABEL, context, sizeof(context), here.bytes, KEY_BYTES), 0);
	assert_int_equal(tls_export_key(at_server, LABEL, context, sizeof(context), there.bytes, KEY_BYTES), 0);
	assert_memory_equal(here.bytes, there.bytes, KEY_BYTES);
	return here;
}

TEST(export__full_and_resumed__agreed_and_never_the_same)
{
	struct tls_session *session = first_session(server, client);
	struct key keys[5];

	for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
		assert_true(resumes(server, client, session));
		tls_session_free(session);
		session = ask_for_ticket();
		keys[i] = exported_key();
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(keys[i].bytes, keys[j].bytes, KEY_BYTES);
		say_goodbye();
	}
	tls_session_free(session);
}

/* Two connections offer a ticket before either knows that it was used: the exchange of keys in each handshake
 * keeps them apart all the same. */
TEST(export__one_ticket_resumed_twice__agreed_and_different)
{
	struct tls_session *session = first_session(server, client);
	struct tls *waiting[2];
	struct key first, second;

	connect_pair(server, client, session);
	assert_int_equal(tls_handshake(at_client), TLS_WANT_READ);
	waiting[0] = at_client;
	waiting[1] = at_server;
	at_client = at_server = NULL;
	assert_true(resumes(server, client, session));
	first = exported_key();
	hang_up();
	at_client = waiting[0];
	at_server = waiting[1];
	assert_true(finish_handshake());
	second = exported_key();
	assert_memory_not_equal(first.bytes, second.bytes, KEY_BYTES);
	tls_session_free(session);
}

TEST(describe__resumed__version_and_cipher)
{
	struct tls_session *session = first_session(server, client);
	char text[100];

	assert_true(resumes(server, client, session));
	assert_says(tls_describe(at_client, text, sizeof(text)), "TLSv1.3 TLS_AES_128_GCM_SHA256");
	assert_says(tls_describe(at_server, text, sizeof(text)), "TLSv1.3 TLS_AES_128_GCM_SHA256");
	tls_session_free(session);
}

static void connect_until_the_client_is_done(void)
{
	connect_pair(server, client, NULL);
	assert_int_equal(tls_handshake(at_client), TLS_WANT_READ);
	assert_int_equal(tls_handshake(at_server), TLS_WANT_READ);
	assert_int_equal(tls_handshake(at_client), TLS_DONE);
}

/* The client's last flight of the handshake is held back, for a request may follow. */
TEST(flush__handshake_done_and_nothing_to_read__server_done_too)
{
	connect_until_the_client_is_done();
	assert_int_equal(tls_handshake(at_server), TLS_WANT_READ);
	assert_int_equal(tls_flush(at_client), TLS_DONE);
	assert_int_equal(tls_handshake(at_server), TLS_DONE);
}

TEST(read__request_behind_the_handshake__both_arrive)
{
	uint8_t byte = 0;
	size_t n = 0;

	connect_until_the_client_is_done();
	assert_int_equal(tls_write(at_client, "?", 1, &n), TLS_DONE);
	assert_int_equal(tls_read(at_client, &byte, 1, &n), TLS_WANT_READ);
	assert_int_equal(tls_handshake(at_server), TLS_DONE);
	assert_int_equal(tls_read(at_server, &byte, 1, &n), TLS_DONE);
	assert_int_equal(byte, '?');
	assert_int_equal(tls_read(at_server, &byte, 1, &n), TLS_WANT_READ);
}

/* On a SOCK_SEQPACKET socket, one receive returns the data of one send. */
TEST(flush__ticket_answer_and_goodbye__one_send)
{
	uint8_t bytes[4096];
	size_t n = 0;
	int fd;

	connect_by(SOCK_SEQPACKET, server, client, NULL);
	assert_false(finish_handshake());
	fd = tls_fd(at_client);
	assert_int_equal(tls_send_ticket(at_server), 0);
	assert_int_equal(tls_write(at_server, "granted", 7, &n), TLS_DONE);
	tls_close_notify(at_server);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), -1);
	assert_int_equal(tls_flush(at_server), TLS_DONE);
	assert_true(recv(fd, bytes, sizeof(bytes), 0) > 0);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), -1);
	assert_int_equal(errno, EAGAIN);
}

TEST(read__request_held_and_socket_full__wants_to_write_first)
{
	static uint8_t junk[4096], byte;
	size_t n = 0;

	assert_false(resumes(server, client, NULL));
	for (size_t size = sizeof(junk); size > 0; size /= 2)
		while (send(tls_fd(at_client), junk, size, 0) > 0)
			;
	assert_int_equal(tls_write(at_client, "?", 1, &n), TLS_DONE);
	assert_int_equal(tls_read(at_client, &byte, 1, &n), TLS_WANT_WRITE);
	assert_int_equal(tls_flush(at_client), TLS_WANT_WRITE);
	while (recv(tls_fd(at_server), junk, sizeof(junk), 0) > 0)
		;
	assert_int_equal(tls_read(at_client, &byte, 1, &n), TLS_WANT_READ);
	assert_true(recv(tls_fd(at_server), junk, sizeof(junk), 0) > 0);
}

TEST(free__goodbye_said__peer_reads_it_and_what_was_before)
{
	uint8_t byte = 0;
	size_t n = 0;

	assert_false(resumes(server, client, NULL));
	assert_int_equal(tls_write(at_client, "!", 1, &n), TLS_DONE);
	tls_close_notify(at_client);
	tls_free(at_client);
	at_client = NULL;
	assert_int_equal(tls_read(at_server, &byte, 1, &n), TLS_DONE);
	assert_int_equal(byte, '!');
	assert_int_equal(tls_read(at_server, &byte, 1, &n), TLS_EOF);
}

static void say_bytewise(struct tls *t, int n)
{
	size_t put;

	while (n-- > 0)
		assert_int_equal(tls_write(t, "x", 1, &put), TLS_DONE);
	assert_int_equal(tls_flush(t), TLS_DONE);
}

static int count_bytes(struct tls *t, enum tls_status *end)
{
	uint8_t byte;
	size_t got;
	int n = 0;

	while ((*end = tls_read(t, &byte, 1, &got)) == TLS_DONE)
		n++;
	return n;
}

/* All has come in one segment, so the socket has no more to say. */
TEST(read__more_records_than_a_turn_allows__more_then_the_rest)
{
	enum tls_status end;

	assert_false(resumes(server, client, NULL));
	/* Ends the turn of the handshake. */
	assert_int_equal(count_bytes(at_server, &end), 0);
	say_bytewise(at_client, 2 * TLS_TURN_RECORDS + 2);
	assert_int_equal(count_bytes(at_server, &end), TLS_TURN_RECORDS);
	assert_int_equal(end, TLS_MORE);
	/* With the record that ended the turn before it. */
	assert_int_equal(count_bytes(at_server, &end), TLS_TURN_RECORDS + 1);
	assert_int_equal(end, TLS_MORE);
	assert_int_equal(count_bytes(at_server, &end), 1);
	assert_int_equal(end, TLS_WANT_READ);
}

/* Tickets stand for all records without data; a server can send as many as it likes. */
static void send_tickets(int n)
{
	while (n-- > 0) {
		size_t put;

		assert_int_equal(tls_send_ticket(at_server), 0);
		assert_int_equal(tls_write(at_server, "x", 1, &put), TLS_DONE);
	}
	assert_int_equal(tls_flush(at_server), TLS_DONE);
}

TEST(read__as_many_records_without_data_as_allowed__data_goes_on)
{
	enum tls_status end;
	int n = 0;

	assert_false(resumes(server, client, NULL));
	send_tickets(TLS_EXTRA_RECORDS);
	do
		n += count_bytes(at_client, &end);
	while (end == TLS_MORE);
	assert_int_equal(n, TLS_EXTRA_RECORDS);
	assert_int_equal(end, TLS_WANT_READ);
}

TEST(write__as_many_records_as_a_key_is_good_for__it_is_updated)
{
	enum tls_status end;

	assert_false(resumes(server, client, NULL));
	at_client->sent_records = TLS_KEY_RECORDS - 1;
	say_bytewise(at_client, 1);
	assert_int_equal(count_bytes(at_server, &end), 1);
	assert_int_equal(at_server->limits.extra_records, 0);
	say_bytewise(at_client, 3);
	assert_int_equal(count_bytes(at_server, &end), 3);
	assert_int_equal(end, TLS_WANT_READ);
	assert_int_equal(at_server->limits.extra_records, 1);
	assert_int_equal(at_client->sent_records, 3);
	/* The other way has a key of its own. */
	assert_int_equal(at_client->limits.extra_records, 0);
	say_bytewise(at_server, 1);
	assert_int_equal(count_bytes(at_client, &end), 1);
}

static void assert_failed(const struct tls *t, int code)
{
	struct fail f;

	tls_failure(t, &f);
	assert_int_equal(f.kind, FAIL_TLS);
	assert_int_equal(f.code, code);
}

static void assert_cut_off(struct tls *t, const char *why)
{
	assert_failed(t, FAIL_TLS_RECORDS);
	assert_says(tls_failure_text(t), why);
}

TEST(read__more_records_without_data__cut_off_by_name)
{
	enum tls_status end;
	int n = 0;

	assert_false(resumes(server, client, NULL));
	send_tickets(TLS_EXTRA_RECORDS + 3);
	do
		n += count_bytes(at_client, &end);
	while (end == TLS_MORE);
	assert_int_equal(end, TLS_FAILED);
	assert_in_range(n, 1, TLS_EXTRA_RECORDS + 1);
	assert_cut_off(at_client, "records without data");
}

/* A ClientHello, each byte of its message in a record of its own. */
TEST(handshake__in_tiny_records__a_few_in_a_turn_then_cut_off)
{
	uint8_t hello[2048], tiny[6 * sizeof(hello)];
	int turns = 0, ours;
	enum tls_status st;
	ssize_t n;

	connect_pair(server, client, NULL);
	ours = tls_fd(at_client);
	assert_int_equal(tls_handshake(at_client), TLS_WANT_READ);
	n = recv(tls_fd(at_server), hello, sizeof(hello), 0);
	assert_in_range(n, 100, sizeof(hello));
	for (ssize_t i = 5; i < n; i++) {
		memcpy(&tiny[6 * (i - 5)], hello, 3);
		memcpy(&tiny[6 * (i - 5) + 3], "\0\1", 2);
		tiny[6 * (i - 5) + 5] = hello[i];
	}
	assert_int_equal(send(ours, tiny, (size_t)(6 * (n - 5)), 0), 6 * (n - 5));
	while ((st = tls_handshake(at_server)) == TLS_MORE)
		turns++;
	assert_int_equal(st, TLS_FAILED);
	assert_in_range(turns, TLS_HANDSHAKE_RECORDS / TLS_TURN_RECORDS - 1, TLS_HANDSHAKE_RECORDS / TLS_TURN_RECORDS);
	assert_cut_off(at_server, "handshake of more than");
}

static int select_version_before(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in,
				 unsigned in_n, void *arg)
{
	static const unsigned char ours[] = FRAME_ALPN_BEFORE;

	(void)ssl;
	(void)arg;
	return SSL_select_next_proto((unsigned char **)out, out_n, ours, sizeof(ours) - 1, in, in_n) ==
	       OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

TEST(handshake__server_of_the_version_before__client_names_both)
{
	enum tls_status here, there;

	SSL_CTX_set_alpn_select_cb(server->ssl_ctx, select_version_before, NULL);
	connect_pair(server, client, NULL);
	try_handshake(&here, &there);
	assert_int_equal(here, TLS_FAILED);
	assert_failed(at_client, FAIL_TLS_ALPN);
	assert_string_equal(tls_failure_text(at_client),
			    "the server speaks wire version 2, this client 3: both need programs "
			    "of the same version");
}

/* Its first frame is refused with words that name both (test_boot.c). */
TEST(handshake__client_of_the_version_before__server_hears_it_out)
{
	static const unsigned char theirs[] = FRAME_ALPN_BEFORE;
	enum tls_status here, there;

	assert_int_equal(SSL_CTX_set_alpn_protos(client->ssl_ctx, theirs, sizeof(theirs) - 1), 0);
	connect_pair(server, client, NULL);
	try_handshake(&here, &there);
	assert_int_equal(there, TLS_DONE);
}

TEST(handshake__no_version_in_common__alert_at_the_client)
{
	static const unsigned char theirs[] = "\x09rampart/9";
	enum tls_status here, there;
	struct fail f = { .stage = STAGE_TLS_HANDSHAKE };

	assert_int_equal(SSL_CTX_set_alpn_protos(client->ssl_ctx, theirs, sizeof(theirs) - 1), 0);
	connect_pair(server, client, NULL);
	try_handshake(&here, &there);
	assert_int_equal(here, TLS_FAILED);
	assert_int_equal(there, TLS_FAILED);
	assert_failed(at_client, FAIL_TLS_ALPN);
	tls_failure(at_client, &f);
	assert_says(fail_advice(&f), "another version of rampart");
}

TEST_EACH(set_up, tls_rig_tear_down)
TEST_GROUP(tls_rig_group_set_up, tls_rig_group_tear_down)
