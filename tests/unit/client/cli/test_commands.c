/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of client/cli/commands.c: what rdma_client says when it cannot connect. */
#include "tests/unit/helpers/unit.h"

#include <string.h>

#include "client/cli/commands.h"
#include "common/base/clock.h"
#include "common/rdma/ep.h"
#include "common/rdma/qp_pool.h"
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/files/log_watch.h"
#include "tests/unit/helpers/moved_clock.h"

static struct command_config cfg;
static struct session session;

static int set_up(void **state)
{
	if (client_rig_init(state))
		return -1;
	client_rig_start();
	cfg = (struct command_config){ .host = "server.example", .command = CMD_SEND, .text = "x" };
	session = (struct session){ .cfg = &cfg, .client = &cli.cfg, .ctx = cli.ctx, .loop = cli.loop,
				    .ep = client_ep(cli.ctx), .buf = EP_NO_BUF };
	return 0;
}

static int tear_down(void **state)
{
	log_watch_end();
	return client_rig_stop(state);
}

static void take_all_qps(void)
{
	uint32_t slot;

	while (qp_pool_available(cli.ctx->qps))
		assert_int_equal(qp_pool_get(cli.ctx->qps, 0, &slot), 0);
}

static void assert_one_line(const char *words)
{
	char text[1000];

	assert_int_equal(log_watch_read(text, sizeof(text)), 1);
	log_watch_end();
	if (!strstr(text, "client: server.example: ") || !strstr(text, words))
		fail_msg("'%s' does not say '%s'", text, words);
}

TEST(connect__no_queue_pair__one_line_and_status_1)
{
	take_all_qps();
	log_watch_begin("client");
	command_connect(&session);
	assert_null(session.conn);
	assert_int_equal(session.exit_status, 1);
	assert_one_line("no queue pair is free");
}

/* The time of --reconnect is over while the queue pairs of the connections before still rest. */
TEST(reconnect__no_queue_pair_until_its_time_is_over__one_line_and_status_1)
{
	take_all_qps();
	cfg.reconnect_ns = NS_PER_S;
	backoff_begin(&session.backoff, clock_now_ns() - 2 * NS_PER_S);
	log_watch_begin("client");
	command_connect(&session);
	assert_int_equal(session.exit_status, 1);
	assert_one_line("no queue pair is free");
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
