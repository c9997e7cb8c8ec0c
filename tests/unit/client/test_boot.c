/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/boot.c against a scripted server: TCP, TLS, HELLO, GRANT, REFUSE. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/x509_vfy.h>

#include "common/wire/be.h"
#include "common/base/clock.h"
#include "common/tls/tls.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

TEST(tcp__nobody_listens__refused_and_not_told_from_within)
{
	client_rig_start();
	close(cli.listen_fd);
	assert_non_null(client_connect(cli.ctx, clock_now_ns(), NULL));
	assert_int_equal(cli.closed, 0);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_ERRNO, ECONNREFUSED);
	cli.listen_fd = dup(0);
}

TEST(tcp__local_address_not_ours__failed_and_not_told_from_within)
{
	client_rig_start();
	assert_int_equal(addr_parse("192.0.2.1", 0, &cli.ctx->dev.addr), 0);
	assert_non_null(client_connect(cli.ctx, clock_now_ns(), NULL));
	assert_int_equal(cli.closed, 0);
	client_assert_failed(STAGE_TCP_CONNECT, FAIL_ERRNO, EADDRNOTAVAIL);
}

static void handshake_until_over(void)
{
	client_connect(cli.ctx, clock_now_ns(), NULL);
	script_accept();
	for (int i = 0; i < 200 && !cli.closed; i++) {
		(void)!tls_handshake(cli.tls);
		client_wait();
	}
}

TEST(tls__server_of_another_ca__certificate_failure)
{
	cli.cfg.ca_file = cli.certs.other_ca;
	client_rig_start();
	handshake_until_over();
	client_assert_failed(STAGE_TLS_HANDSHAKE, FAIL_CERTIFICATE,
			     X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
	assert_true(strlen(cli.refuse_text) > 5);
}

TEST(tls__server_of_another_name__certificate_failure)
{
	static const struct {
		const char *name;
		int code;
	} cases[] = {
		{ "127.0.0.2", X509_V_ERR_IP_ADDRESS_MISMATCH },
		{ "example.com", X509_V_ERR_HOSTNAME_MISMATCH },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		cli.cfg.verify_name = cases[i].name;
		client_rig_start();
		handshake_until_over();
		client_assert_failed(STAGE_TLS_HANDSHAKE, FAIL_CERTIFICATE, cases[i].code);
		client_rig_again(state);
	}
}

TEST(tls__name_of_the_certificate__taken)
{
	cli.cfg.verify_name = "localhost";
	client_at(CLIENT_ST_PSN_EXCHANGE);
}

TEST(tls__server_hangs_up__closed_by_peer)
{
	client_rig_start();
	client_connect(cli.ctx, clock_now_ns(), NULL);
	script_accept();
	script_hang_up();
	client_until(cli.closed);
	assert_int_equal(cli.fail.stage, STAGE_TLS_HANDSHAKE);
	/* With the ClientHello unread the kernel resets the connection. */
	assert_true(cli.fail.kind == FAIL_CLOSED ||
		    (cli.fail.kind == FAIL_ERRNO &&
		     (cli.fail.code == ECONNRESET || cli.fail.code == EPIPE)));
	client_assert_all_back();
}

TEST(tls__server_speaks_something_else__tls_failure)
{
	static const char words[] = "220 mail.example.com ESMTP\r\n";

	client_rig_start();
	client_connect(cli.ctx, clock_now_ns(), NULL);
	script_accept();
	assert_true(send(tls_fd(cli.tls), words, sizeof(words), 0) > 0);
	client_until(cli.closed);
	assert_int_equal(cli.fail.stage, STAGE_TLS_HANDSHAKE);
	assert_int_equal(cli.fail.kind, FAIL_TLS);
	client_assert_all_back();
}

TEST(hello__as_configured)
{
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

	assert_int_equal(cli.hello.message_bytes, 512);
	assert_int_equal(cli.hello.queue_depth, 4);
	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION);
	assert_int_equal(cli.hello.psn, c->psn);
}

/* The second connection says HELLO on the first one's TLS. */
TEST(tls__kept__the_next_connection_goes_on_with_it)
{
	struct client_conn *a = client_at(CLIENT_ST_TLS_HANDSHAKE), *b;
	struct client_info info;

	client_keep_tls(a);
	client_drive(a, CLIENT_ST_PSN_EXCHANGE);
	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION | FRAME_FEATURE_MORE);
	client_drive(a, CLIENT_ST_LIVE);
	cli.has_hello = false;
	b = client_connect_after(cli.ctx, a, clock_now_ns(), NULL);
	assert_non_null(b);
	assert_int_equal(b->state, CLIENT_ST_TCP_CONNECT);
	client_until(b->state == CLIENT_ST_PSN_EXCHANGE);
	assert_null(a->io.tls);
	client_drive(b, CLIENT_ST_PSN_EXCHANGE);
	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION);
	assert_int_not_equal(a->psn, b->psn);
	client_drive(b, CLIENT_ST_LIVE);
	assert_null(b->io.tls);
	client_get_info(b, &info);
	assert_true(b->follows);
	assert_int_equal(info.stage_ns[STAGE_TLS_HANDSHAKE], 0);
	client_get_info(a, &info);
	assert_false(a->follows);
	assert_true(info.stage_ns[STAGE_TLS_HANDSHAKE] > 0);
}

TEST(tls__kept_and_ended__the_next_connection_makes_its_own)
{
	struct client_conn *a = client_at(CLIENT_ST_TLS_HANDSHAKE), *b;

	client_keep_tls(a);
	client_drive(a, CLIENT_ST_LIVE);
	assert_non_null(a->io.tls);
	client_end_tls(a);
	assert_null(a->io.tls);
	script_hang_up();
	b = client_connect_after(cli.ctx, a, clock_now_ns(), NULL);
	script_accept();
	client_until(b->state == CLIENT_ST_TLS_HANDSHAKE);
	assert_false(b->follows);
}

TEST(tls__kept_but_the_server_closes_it__the_next_connection_fails_and_can_be_tried_again)
{
	struct client_conn *a = client_at(CLIENT_ST_TLS_HANDSHAKE), *b;

	client_keep_tls(a);
	client_drive(a, CLIENT_ST_LIVE);
	script_hang_up();
	client_connect_after(cli.ctx, a, clock_now_ns(), NULL);
	client_until(cli.closed);
	assert_int_equal(cli.fail.stage, STAGE_PSN_EXCHANGE);
	assert_true(cli.fail.kind == FAIL_CLOSED || (cli.fail.kind == FAIL_ERRNO && cli.fail.code == ECONNRESET));
	b = client_connect_after(cli.ctx, a, clock_now_ns(), NULL);
	script_accept();
	client_until(b->state == CLIENT_ST_TLS_HANDSHAKE);
}

TEST(hello__no_region_wanted__no_feature)
{
	cli.cfg.region = false;
	client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_int_equal(cli.hello.features, 0);
}

TEST(hello__needs_credits_and_a_region__said)
{
	cli.cfg.all_credits = true;
	cli.cfg.region_bytes = 4096;
	client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION | FRAME_FEATURE_ALL_CREDITS);
	assert_int_equal(cli.hello.queue_depth, 4);
	assert_int_equal(cli.hello.region_bytes, 4096);
}

static void send_refuse(enum refuse_code code, const char *text)
{
	uint8_t buf[FRAME_REFUSE_BYTES_MAX];

	script_send(buf, frame_encode_refuse((uint16_t)code, text, buf));
}

TEST(refuse__every_code__failure_with_its_words)
{
	static const enum refuse_code codes[] = { REFUSE_BUSY,          REFUSE_FULL,
						  REFUSE_BAD_REQUEST,   REFUSE_BAD_VERSION,
						  REFUSE_DRAINING,      REFUSE_UNSUPPORTED,
						  REFUSE_INTERNAL,      REFUSE_NO_RESOURCES,
						  (enum refuse_code)999 };

	for (size_t i = 0; i < N_ELEMENTS(codes); i++) {
		client_at(CLIENT_ST_PSN_EXCHANGE);
		send_refuse(codes[i], "because");
		client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_REFUSED, (int)codes[i]);
		assert_string_equal(cli.refuse_text, "because");
		client_rig_again(state);
	}
}

TEST(refuse__psn_conflict__draws_again_until_granted)
{
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);
	uint32_t first, changed = 0;
	struct client_info info;

	first = cli.hello.psn;
	for (int i = 0; i < 3; i++) {
		send_refuse(REFUSE_PSN_CONFLICT, "taken");
		assert_true(script_read_hello());
		assert_int_equal(cli.hello.psn, c->psn);
		assert_int_equal(cli.hello.message_bytes, 512);
		changed += cli.hello.psn != first;
	}
	/* 24 random bits: three times the same is not chance. */
	assert_true(changed > 0);
	assert_int_equal(c->state, CLIENT_ST_PSN_EXCHANGE);
	script_default_grant();
	script_grant();
	client_until(c->state == CLIENT_ST_ADDR_RESOLVE);
	client_get_info(c, &info);
	assert_int_equal(info.psn_redraws, 3);
}

TEST(refuse__psn_conflict_without_end__gives_up_after_eight)
{
	int hellos = 1;

	client_at(CLIENT_ST_PSN_EXCHANGE);
	for (; hellos < 20 && !cli.closed; hellos++) {
		send_refuse(REFUSE_PSN_CONFLICT, "taken");
		if (!script_read_hello())
			break;
	}
	assert_int_equal(hellos, 8);
	client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_PSN_CONFLICT);
}

TEST(grant__usual__keys_derived_and_tls_closed)
{
	struct client_conn *c = client_at(CLIENT_ST_ADDR_RESOLVE);

	assert_null(c->io.tls);
	assert_memory_equal(&c->keys, &cli.keys, sizeof(cli.keys));
	assert_int_equal(c->head.grant.psn, cli.grant.psn);
	assert_int_equal(c->head.grant.region_rkey, cli.grant.region_rkey);
	/* close_notify, then the end. */
	assert_false(script_read_hello());
}

TEST(grant__in_pieces__taken)
{
	uint8_t buf[FRAME_GRANT_BYTES];
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

	script_default_grant();
	frame_encode_grant(&cli.grant, buf);
	for (size_t i = 0; i < sizeof(buf); i++) {
		assert_int_equal(c->state, CLIENT_ST_PSN_EXCHANGE);
		script_send(buf + i, 1);
		client_until(i + 1 == sizeof(buf) || c->io.done == i + 1);
	}
	client_until(c->state == CLIENT_ST_ADDR_RESOLVE);
}

static void bad_answer(const uint8_t *frame, size_t n, enum fail_protocol code)
{
	script_send(frame, n);
	client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, code);
}

TEST(grant__fields_out_of_range__bad_frame)
{
	static const struct { size_t offset; uint32_t value; } cases[] = {
		{ 24, 1u << 24 },	/* psn */
		{ 28, 15 },		/* message size */
		{ 28, 511 },		/* less than was asked for */
		{ 32, 1 },		/* credits 0 */
		{ 32, 4u << 16 },	/* the region that was asked for is not granted */
		{ 68, 0 },		/* empty region */
		{ 76, 1 },		/* reserved */
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		uint8_t buf[FRAME_GRANT_BYTES];

		client_at(CLIENT_ST_PSN_EXCHANGE);
		script_default_grant();
		frame_encode_grant(&cli.grant, buf);
		be_put32(buf + cases[i].offset, cases[i].value);
		bad_answer(buf, sizeof(buf), PROTO_BAD_FRAME);
		client_rig_again(state);
	}
}

TEST(frame__bad_header__bad_frame)
{
	static const uint8_t headers[][8] = {
		{ 0, 0, 0, 7, 3, 2, 0, 0 },  { 0, 0, 0, 0, 3, 2, 0, 0 },
		{ 0, 0, 1, 0, 3, 2, 0, 0 },  { 255, 255, 255, 255, 2, 2, 0, 0 },
		{ 0, 0, 0, 104, 2, 2, 0, 0 }, { 0, 0, 0, 104, 3, 2, 0, 1 },
	};

	for (size_t i = 0; i < N_ELEMENTS(headers); i++) {
		client_at(CLIENT_ST_PSN_EXCHANGE);
		bad_answer(headers[i], 8, PROTO_BAD_FRAME);
		client_rig_again(state);
	}
}

TEST(frame__of_another_type__unexpected)
{
	static const uint8_t types[] = { 0, FRAME_HELLO, FRAME_CONTROL, FRAME_REPORT, 200 };

	for (size_t i = 0; i < N_ELEMENTS(types); i++) {
		uint8_t header[8] = { 0, 0, 0, 8, 3, types[i] };

		client_at(CLIENT_ST_PSN_EXCHANGE);
		bad_answer(header, 8, PROTO_UNEXPECTED_FRAME);
		client_rig_again(state);
	}
}

TEST(refuse__malformed__bad_frame)
{
	static const uint8_t frame[] = { 0, 0, 0, 14, 3, 3, 0, 0, 0, 2, 0, 9, 'x', 'y' };

	client_at(CLIENT_ST_PSN_EXCHANGE);
	bad_answer(frame, sizeof(frame), PROTO_BAD_FRAME);
}

TEST(answer__server_hangs_up__closed_by_peer)
{
	static const uint8_t half[] = { 0, 0, 0, 104, 3 };

	for (int sent = 0; sent < 2; sent++) {
		client_at(CLIENT_ST_PSN_EXCHANGE);
		if (sent)
			script_send(half, sizeof(half));
		tls_close_notify(cli.tls);
		script_hang_up();
		client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_CLOSED, 0);
		client_rig_again(state);
	}
}

/* A server that cannot grant what is needed has to refuse. */
TEST(grant__less_than_needed__bad_frame)
{
	for (int region = 0; region < 2; region++) {
		uint8_t buf[FRAME_GRANT_BYTES];

		client_at(CLIENT_ST_PSN_EXCHANGE);
		cli.cfg.all_credits = !region;
		cli.cfg.region_bytes = region ? 8192 : 0;
		script_default_grant();
		cli.grant.credits = 3;
		bad_answer(buf, frame_encode_grant(&cli.grant, buf), PROTO_BAD_FRAME);
		client_rig_again(state);
	}
}

/* More than was asked for must not be used: receive buffers are sized for what was asked. */
TEST(grant__more_credits_than_asked_for__only_those_used)
{
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

	script_default_grant();
	cli.grant.credits = 1024;
	script_grant();
	client_until(c->state == CLIENT_ST_ADDR_RESOLVE);
	assert_int_equal(c->head.grant.credits, cli.cfg.depth);
}

/* A server could otherwise aim its clients at any host. */
TEST(grant__names_another_host__followed_only_if_allowed)
{
	for (int allowed = 0; allowed < 2; allowed++) {
		struct client_conn *c;

		cli.cfg.allow_redirect = allowed;
		c = client_at(CLIENT_ST_PSN_EXCHANGE);
		script_default_grant();
		assert_int_equal(addr_parse("192.0.2.1", 7472, &cli.grant.rdma), 0);
		script_grant();
		if (allowed) {
			client_until(c->state == CLIENT_ST_ADDR_RESOLVE);
		} else {
			client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_PROTOCOL, PROTO_REDIRECTED);
			assert_non_null(strstr(cli.refuse_text, "granted a connection to 192.0.2.1:7472"));
		}
		client_rig_again(state);
	}
}

TEST_EACH(client_rig_init, client_rig_stop)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
