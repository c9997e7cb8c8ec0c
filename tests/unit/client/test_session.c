/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the client's TLS sessions: asked for, kept, offered again, whose they are. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/tls/ticket_keys.h"
#include "common/tls/tls.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/moved_clock.h"

static struct tls_session *kept;	/* the user's */

static int set_up(void **state)
{
	kept = NULL;
	if (client_rig_init(state))
		return -1;
	cli.cfg.resume = true;
	cli.session = &kept;
	return 0;
}

static int tear_down(void **state)
{
	int ret = client_rig_stop(state);

	tls_session_free(kept);
	return ret;
}

static void end(struct client_conn *c)
{
	client_close(c);
	if (c->cm_connected)
		fake_cm_event(c->link.rc.id, RDMA_CM_EVENT_DISCONNECTED, 0, 0, NULL, 0);
	client_until(cli.closed);
	assert_int_equal(cli.fail.kind, FAIL_NONE);
	client_assert_all_back();
	cli.closed = 0;
}

/* A server that has forgotten its keys. */
static void new_server_keys(void)
{
	struct ticket_seed seed;
	struct tls_config tls = { .server = true, .cert_file = cli.certs.server_cert,
				  .key_file = cli.certs.server_key, .tickets = &seed };
	char err[300];

	assert_int_equal(ticket_seed_new(clock_now_ns(), 3600 * NS_PER_S, &seed), 0);
	script_hang_up();
	tls_ctx_free(cli.server_ctx);
	assert_int_equal(tls_ctx_new(&tls, &cli.server_ctx, err, sizeof(err)), 0);
}

TEST(session__first_connection__asked_for_and_kept)
{
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION | FRAME_FEATURE_TICKET);
	assert_false(c->resumed);
	assert_null(kept);
	client_drive(c, CLIENT_ST_ADDR_RESOLVE);
	assert_non_null(kept);
	client_drive(c, CLIENT_ST_LIVE);
	end(c);
	assert_non_null(kept);
}

/* Each brings the session of the next. The proofs hold, so the keys of a resumed session agree too. */
TEST(session__later_connections__resumed_with_the_newest)
{
	end(client_at(CLIENT_ST_LIVE));
	for (int i = 0; i < 4; i++) {
		struct tls_session *before = kept;
		struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

		assert_true(c->resumed);
		assert_true(tls_is_resumed(cli.tls));
		assert_ptr_equal(kept, before);
		client_drive(c, CLIENT_ST_LIVE);
		assert_non_null(kept);
		assert_ptr_not_equal(kept, before);
		assert_non_null(strstr(c->tls_text, "TLSv1.3"));
		end(c);
	}
}

TEST(session__flag__of_the_connection_and_not_of_the_one_before)
{
	struct client_conn *c;

	end(client_at(CLIENT_ST_LIVE));
	c = client_at(CLIENT_ST_LIVE);
	assert_true(c->resumed);
	end(c);
	tls_session_free(kept);
	kept = NULL;
	c = client_at(CLIENT_ST_LIVE);
	assert_false(c->resumed);
	end(c);
}

TEST(session__of_two_users__each_its_own)
{
	struct tls_session *first, *other = NULL;
	struct client_conn *c;

	end(client_at(CLIENT_ST_LIVE));
	first = kept;
	cli.session = &other;
	c = client_at(CLIENT_ST_LIVE);
	assert_false(c->resumed);
	end(c);
	assert_non_null(other);
	assert_ptr_equal(kept, first);
	cli.session = &kept;
	c = client_at(CLIENT_ST_LIVE);
	assert_true(c->resumed);
	end(c);
	tls_session_free(other);
}

TEST(session__server_sends_no_ticket__the_old_one_stays)
{
	struct tls_session *before;
	struct client_conn *c;

	client_rig_start();
	for (int i = 0; i < 2; i++) {
		before = kept;
		c = client_at(CLIENT_ST_PSN_EXCHANGE);
		script_default_grant();
		cli.grant.features &= ~FRAME_FEATURE_TICKET;
		script_grant();
		client_until(c->state == CLIENT_ST_ADDR_RESOLVE);
		assert_ptr_equal(kept, before);
		end(c);
		end(client_at(CLIENT_ST_ADDR_RESOLVE));
		assert_non_null(kept);
	}
}

TEST(session__context_does_not_ask__neither_sent_nor_kept)
{
	struct client_conn *c;

	cli.cfg.resume = false;
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION);
	/* Sent all the same. */
	assert_int_equal(tls_send_ticket(cli.tls), 0);
	client_drive(c, CLIENT_ST_LIVE);
	assert_null(kept);
	end(c);
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_false(c->resumed);
}

TEST(session__user_has_no_place_for_it__dropped)
{
	struct client_conn *c;

	cli.session = NULL;
	c = client_at(CLIENT_ST_LIVE);
	assert_true(cli.grant.features & FRAME_FEATURE_TICKET);
	end(c);
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_false(c->resumed);
}

TEST(session__server_lost_its_keys__full_handshake_and_a_new_one)
{
	struct tls_session *before;
	struct client_conn *c;

	end(client_at(CLIENT_ST_LIVE));
	before = kept;
	new_server_keys();
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_false(c->resumed);
	client_drive(c, CLIENT_ST_LIVE);
	assert_ptr_not_equal(kept, before);
	end(c);
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_true(c->resumed);
}

/* Wherever it ends, what is at the user's place is the user's and may be offered. */
TEST(session__connection_ends_in_each_state__still_the_users)
{
	end(client_at(CLIENT_ST_LIVE));
	for (enum client_state st = CLIENT_ST_TLS_HANDSHAKE; st <= CLIENT_ST_LIVE; st++) {
		struct tls_session *before = kept;
		struct client_conn *c = client_at(st);

		if (st <= CLIENT_ST_PSN_EXCHANGE)
			assert_ptr_equal(kept, before);
		else
			assert_ptr_not_equal(kept, before);
		end(c);
		assert_non_null(kept);
		end(client_at(CLIENT_ST_LIVE));
	}
}

TEST(session__refused__still_the_users)
{
	struct tls_session *before;
	uint8_t buf[FRAME_REFUSE_BYTES_MAX];
	struct client_conn *c;

	end(client_at(CLIENT_ST_LIVE));
	before = kept;
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_true(c->resumed);
	script_send(buf, frame_encode_refuse(REFUSE_BUSY, "try again", buf));
	client_assert_failed(STAGE_PSN_EXCHANGE, FAIL_REFUSED, REFUSE_BUSY);
	assert_ptr_equal(kept, before);
	cli.closed = 0;
	/* A client that is told to try again keeps its session, so that the next handshake is cheap. */
	c = client_at(CLIENT_ST_LIVE);
	assert_true(c->resumed);
	end(c);
	assert_ptr_not_equal(kept, before);
}

/* A ticket that came before another draw of the PSN is not lost. */
TEST(session__psn_conflict_first__kept_with_the_grant)
{
	uint8_t buf[FRAME_REFUSE_BYTES_MAX];
	struct client_conn *c = client_at(CLIENT_ST_PSN_EXCHANGE);

	assert_int_equal(tls_send_ticket(cli.tls), 0);
	script_send(buf, frame_encode_refuse(REFUSE_PSN_CONFLICT, "draw another", buf));
	assert_true(script_read_hello());
	assert_int_equal(cli.hello.features, FRAME_FEATURE_REGION | FRAME_FEATURE_TICKET);
	script_default_grant();
	cli.grant.features &= ~FRAME_FEATURE_TICKET;
	script_grant();
	client_until(c->state == CLIENT_ST_ADDR_RESOLVE);
	assert_non_null(kept);
}

TEST(ctx_free__sessions_kept__outlive_it)
{
	struct client_conn *c;

	end(client_at(CLIENT_ST_LIVE));
	client_ctx_free(cli.ctx);
	cli.ctx = NULL;
	c = client_at(CLIENT_ST_PSN_EXCHANGE);
	assert_true(c->resumed);
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
