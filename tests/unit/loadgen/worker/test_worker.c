/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/worker/worker.c on the fake device, with a thread of its own: orders, and a failing device. */
#include "tests/unit/helpers/client_rig.h"
#include "tests/unit/helpers/options.h"
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/wire/fail_table.h"
#include "loadgen/traffic/workload.h"
#include "loadgen/worker/worker.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_verbs.h"

#define WAIT_S 20

static struct worker *worker;
static sem_t progress;
static int closed_port = -1;	/* holds a port on which nobody listens */

static void on_progress(void *arg)
{
	(void)arg;
	sem_post(&progress);
}

#define wait_until(condition) \
	do { \
		struct timespec end_; \
		clock_gettime(CLOCK_REALTIME, &end_); \
		end_.tv_sec += WAIT_S; \
		while (!(condition)) \
			assert_int_equal(sem_timedwait(&progress, &end_), 0); \
	} while (0)

static void hold_port(struct addr *out)
{
	socklen_t len = sizeof(out->ss);

	closed_port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(addr_parse("127.0.0.1", 0, out), 0);
	assert_int_equal(bind(closed_port, (struct sockaddr *)&out->ss, out->len), 0);
	assert_int_equal(getsockname(closed_port, (struct sockaddr *)&out->ss, &len), 0);
}

/* Makes a worker without starting it. */
static int set_up(void **state)
{
	struct worker_config wc = { .cfg = &options, .n_rails = 1, .n_workers = 1, .on_progress = on_progress };
	char err[400];

	if (client_rig_init(state))
		return -1;
	options_taken("--clients 2 --threads 1");
	sem_init(&progress, 0, 0);
	wc.client = cli.cfg;
	wc.rails[0].verify_name = cli.cfg.verify_name;
	hold_port(&wc.rails[0].server);
	if (worker_new(&wc, &worker, err, sizeof(err)))
		fail_msg("%s", err);
	return 0;
}

static void start(void)
{
	char err[400];

	if (worker_start(worker, err, sizeof(err)))
		fail_msg("%s", err);
}

static int tear_down(void **state)
{
	worker_give(worker, ORDER_QUIT, NULL);
	worker_free(worker);
	sem_destroy(&progress);
	close(closed_port);
	return client_rig_stop(state);
}

static void connect_two(void)
{
	struct worker_task task = { .clients = 2, .active = 2, .active_of_all = 2, .of_all = 2, .bytes = 64,
				    .upto = STAGE_FIRST_REPLY };

	worker_give(worker, ORDER_CONNECT, &task);
}

TEST(connect__nobody_listens__fulfilled_when_all_have_failed)
{
	const struct worker_stats *st = worker_stats(worker);
	struct fail f;
	uint64_t n;

	start();
	connect_two();
	wait_until(worker_is_done(worker));
	assert_int_equal(counter_get(&st->attempted), 2);
	assert_int_equal(counter_get(&st->failed), 2);
	assert_int_equal(counter_get(&st->connecting) + counter_get(&st->waiting) + counter_get(&st->live), 0);
	assert_true(fail_table_top(&st->failures, &f, &n));
	assert_int_equal(n, 2);
	assert_int_equal(f.stage, STAGE_TCP_CONNECT);
	assert_int_equal(f.code, ECONNREFUSED);
}

TEST(orders__given_at_once__all_are_carried_out)
{
	const struct worker_stats *st = worker_stats(worker);

	start();
	connect_two();
	wait_until(worker_is_done(worker));
	worker_give(worker, ORDER_TRAFFIC, NULL);
	wait_until(worker_is_done(worker));
	worker_give(worker, ORDER_MEASURE, NULL);
	worker_give(worker, ORDER_STOP, NULL);
	worker_give(worker, ORDER_ABANDON, NULL);
	worker_give(worker, ORDER_DISCONNECT, NULL);
	wait_until(worker_is_done(worker));
	assert_int_equal(counter_get(&st->fulfilled), 6);
	assert_true(counter_get(&st->measure_start_ns) > 0);
	assert_true(counter_get(&st->measure_end_ns) >= counter_get(&st->measure_start_ns));
	/* The next step begins with empty figures. */
	connect_two();
	wait_until(worker_is_done(worker));
	assert_int_equal(counter_get(&st->measure_end_ns), 0);
	assert_int_equal(counter_get(&st->failed), 2);
}

/* Orders that follow are not waited for, however many there are. */
TEST(device__fails__said_with_its_error_and_name)
{
	const char *devices;

	assert_int_equal(worker_failure(worker, NULL), 0);
	/* The fakes allow one thread at a time, so raise the event before the worker starts. */
	fake_async_device(IBV_EVENT_DEVICE_FATAL);
	start();
	wait_until(worker_failure(worker, NULL));
	assert_int_equal(worker_failure(worker, &devices), -EIO);
	assert_string_equal(devices, worker_dev(worker, 0)->name);
	for (int i = 0; i < 3 * MAILBOX_MAX; i++)
		worker_give(worker, ORDER_STOP, NULL);
	assert_false(worker_is_done(worker));
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(client_rig_group_setup, client_rig_group_teardown)
