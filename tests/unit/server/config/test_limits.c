/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/config/limits.c: what is derived for a shard, and every refusal. The process's
 * limits are the test's: it defines the functions of common/host/res.c that limits.c asks. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/rdma/dev.h"
#include "common/rdma/ep.h"
#include "common/rdma/rc.h"
#include "common/host/res.h"
#include "common/sizing/sizes.h"
#include "common/wire/frame.h"
#include "server/config/limits.h"

static uint64_t nofile, memlock, memory;
static struct server_config cfg;
static struct dev devs[RAILS_MAX];
static char err[400];

uint64_t res_raise_nofile(void)
{
	return nofile;
}

uint64_t res_raise_memlock(void)
{
	return memlock;
}

uint64_t res_machine_memory_bytes(void)
{
	return memory;
}

/* A machine and device like Soft-RoCE, without limits on the process. */
static int set_up(void **state)
{
	(void)state;
	nofile = memlock = memory = UINT64_MAX;
	memset(&cfg, 0, sizeof(cfg));
	cfg.threads = 2;
	cfg.n_rails = 1;
	cfg.transport_mask = 1 << TRANSPORT_RDMA;
	cfg.max_clients = 1000;
	cfg.message_bytes = 4096;
	cfg.credits = 16;
	cfg.max_handshakes = 512;
	cfg.tuning.inline_bytes = 220;
	memset(devs, 0, sizeof(devs));
	devs[0].attr.max_qp = 1048576;
	devs[0].attr.max_qp_wr = 1048576;
	devs[0].attr.max_cq = 1048576;
	devs[0].attr.max_cqe = 32767;
	devs[0].attr.max_srq_wr = 32768;
	err[0] = '\0';
	return 0;
}

static void derive(void)
{
	err[0] = '\0';
	if (limits_derive(&cfg, devs, err, sizeof(err)))
		fail_msg("%s", err);
	assert_string_equal(err, "");
}

static void assert_refused(const char *what, const char *advice)
{
	assert_int_equal(limits_derive(&cfg, devs, err, sizeof(err)), -ENOSPC);
	assert_says(err, what);
	assert_says(err, advice);
}

/* With one less than it needs it is refused. */
static void assert_needs(uint64_t *limit, uint64_t need, const char *what, const char *advice)
{
	*limit = need - 1;
	assert_refused(what, advice);
	*limit = need;
	derive();
}

TEST(derive__one_shard__exactly_the_clients)
{
	cfg.threads = 1;
	derive();
	assert_int_equal(cfg.shard_clients, 1000);
	assert_int_equal(cfg.recv_depth, 16000);
	/* 1000 clients, room for 2048 to rest, and 64. */
	assert_int_equal(cfg.shard_qps, 3112);
	assert_true(cfg.shard_conns >= cfg.shard_clients + cfg.max_handshakes);
	assert_int_equal(cfg.sq_depth, rc_sq_depth(16));
}

TEST(derive__windows__two_entries_for_each_answer)
{
	cfg.windows = 1;
	derive();
	assert_int_equal(cfg.sq_depth, rc_sq_depth(32));
	cfg.credits = 1;
	derive();
	assert_int_equal(cfg.sq_depth, rc_sq_depth(2));
}

TEST(derive__many_clients__as_many_queue_pairs_may_rest)
{
	cfg.threads = 1;
	cfg.max_clients = 5000;
	derive();
	assert_int_equal(cfg.shard_qps, 2 * 5000 + 64);
	devs[0].attr.max_qp = 6000;
	derive();
	assert_int_equal(cfg.shard_qps, 6000);
}

/* 500 + 6 * sqrt(500) = 634.2: room for the kernel's uneven spread. */
TEST(derive__two_shards__six_deviations_above_the_mean)
{
	derive();
	assert_int_equal(cfg.shard_clients, 635);
	assert_int_equal(cfg.recv_depth, 635 * 16);
}

TEST(derive__few_clients_on_two_shards__never_more_than_all)
{
	cfg.max_clients = 12;
	derive();
	assert_int_equal(cfg.shard_clients, 12);
}

TEST(derive__more_messages_than_the_device_takes__depth_of_the_device)
{
	cfg.threads = 1;
	cfg.max_clients = 10000;
	derive();
	assert_int_equal(cfg.recv_depth, 32767 - EP_BATCH);
	assert_int_equal(cfg.spare_bufs, 4096 + 64);
	devs[0].attr.max_srq_wr = 20000;
	derive();
	assert_int_equal(cfg.recv_depth, 20000 - EP_BATCH);
}

TEST(derive__message_sizes__inline_up_to_220)
{
	derive();
	assert_int_equal(cfg.inline_bytes, 220);
	cfg.message_bytes = 64;
	derive();
	assert_int_equal(cfg.inline_bytes, 64);
}

TEST(derive__depths_given__at_most_those)
{
	cfg.tuning.srq_depth = 9000;
	derive();
	assert_int_equal(cfg.recv_depth, 9000);
	cfg.tuning.cq_depth = 5000;
	derive();
	assert_int_equal(cfg.recv_depth, 5000 - EP_BATCH);
	cfg.tuning.srq_depth = 1;
	assert_refused("receive depth of a shard", "raise --threads or lower --max-clients");
}

TEST(derive__huge_srq__buffers_stay_numberable)
{
	cfg.threads = 1;
	cfg.max_clients = 100000;
	cfg.credits = 128;
	cfg.message_bytes = 64;
	devs[0].attr.max_srq_wr = devs[0].attr.max_cqe = 1 << 22;
	derive();
	/* The highest number is one below EP_NO_BUF. */
	assert_true(cfg.recv_depth + EP_BATCH + cfg.spare_bufs <= EP_NO_BUF);
	assert_true(cfg.recv_depth > 1000000);
}

TEST(derive__few_qps_on_the_device__shared_by_the_shards)
{
	cfg.threads = 2;
	devs[0].attr.max_qp = 1300;
	derive();
	assert_int_equal(cfg.shard_qps, 650);
}

TEST(derive__too_few_qps__refused)
{
	devs[0].attr.max_qp = 1269;
	assert_refused("max_qp is 1269", "lower --max-clients");
	devs[0].attr.max_qp = 1270;
	derive();
}

TEST(derive__fewer_buffers_than_clients__refused)
{
	devs[0].attr.max_srq_wr = 634 + EP_BATCH;
	assert_refused("receive depth of a shard (device's max_srq_wr and max_cqe, --srq-depth, --cq-depth) is 634",
		       "raise --threads");
	devs[0].attr.max_srq_wr = 635 + EP_BATCH;
	derive();
	assert_int_equal(cfg.recv_depth, 635);
}

TEST(derive__too_few_cqs__refused)
{
	cfg.threads = 1;
	cfg.max_clients = 10000;
	devs[0].attr.max_cq = 3;
	assert_refused("max_cq is 3", "--credits");
}

TEST(derive__send_queue_too_short__refused)
{
	devs[0].attr.max_qp_wr = (int)rc_sq_depth(16) - 1;
	assert_refused("max_qp_wr", "lower --credits");
	devs[0].attr.max_qp_wr = (int)rc_sq_depth(16);
	derive();
}

TEST(derive__too_few_descriptors__refused_one_below_the_need)
{
	const char *need;
	unsigned long long n;

	nofile = 1024;
	assert_refused("open files (ulimit -n) is 1024", "--max-handshakes");
	need = strstr(err, "need ");
	assert_non_null(need);
	assert_int_equal(sscanf(need, "need %llu", &n), 1);
	assert_true(n >= 2 * cfg.max_handshakes);
	assert_needs(&nofile, n, "ulimit -n", "raise it");
	/* The descriptors beyond that are for waiting sockets of two shards. */
	assert_in_range(cfg.shard_waiting, 1, 100);
	n = cfg.shard_waiting;
	nofile += 20;
	derive();
	assert_int_equal(cfg.shard_waiting, n + 10);
	nofile = UINT64_MAX;
	derive();
	assert_int_equal(cfg.shard_waiting, 4096);
	cfg.max_clients = 10000;
	cfg.credits = 4;
	derive();
	assert_int_equal(cfg.shard_waiting, cfg.shard_clients);
}

/* Descriptors that are needed at the least, as the refusal says. */
static unsigned long long needed(void)
{
	unsigned long long n;

	nofile = 10;
	assert_refused("ulimit -n", "raise it");
	assert_int_equal(sscanf(strstr(err, "need "), "need %llu", &n), 1);
	return n;
}

TEST(derive__clients_over_sockets__a_descriptor_each)
{
	unsigned long long rdma = needed(), tls, tcp;

	cfg.transport_mask = 1 << TRANSPORT_TLS;
	tls = needed();
	assert_int_equal(tls, rdma + 1000);
	assert_says(err, "and --max-clients 1000 need");
	cfg.transport_mask |= 1 << TRANSPORT_TCP;
	tcp = needed();
	/* In two shards, besides those that listen. */
	assert_in_range(tcp, tls + 2 * 512, tls + 2 * 512 + 8);
	nofile = tcp;
	derive();
	/* Clients may come over RDMA instead, so it starts; sockets that wait get none of what clients would need. */
	cfg.transport_mask |= 1 << TRANSPORT_RDMA;
	assert_int_equal(needed(), rdma);
	nofile = rdma;
	derive();
	tls = cfg.shard_waiting;
	nofile = tcp;
	derive();
	assert_int_equal(cfg.shard_waiting, tls);
	nofile = tcp + 20;
	derive();
	assert_int_equal(cfg.shard_waiting, tls + 10);
}

TEST(derive__too_little_lockable_memory__refused_one_below_the_need)
{
	uint64_t need;

	derive();
	need = 2ull * (cfg.recv_depth + EP_BATCH + cfg.spare_bufs) * 4096;
	assert_needs(&memlock, need, "locked memory (ulimit -l, bytes)", "--message-size");
}

static int derive_without_devices(void)
{
	err[0] = '\0';
	return limits_derive(&cfg, NULL, err, sizeof(err));
}

/* Memory that peers can make a server hold, beside buffers of clients over sockets. */
static uint64_t other_memory(bool tls)
{
	uint64_t objects;

	memory = UINT64_MAX;
	assert_int_equal(derive_without_devices(), 0);
	objects = cfg.shard_conns * 1344ull + MAX(cfg.shard_clients, 4096) * 512ull;
	return 2 * objects + (2 * cfg.max_handshakes + (tls ? cfg.max_clients : 0)) * (37 << 10) +
	       SIZES_CONTROL_SESSIONS_MAX * (uint64_t)FRAME_REPORT_BYTES_MAX + HELD_MARKS_BYTES;
}

TEST(derive__only_sockets__refused_one_below_what_clients_could_take)
{
	uint64_t need;

	cfg.transport_mask = 1 << TRANSPORT_TCP;
	cfg.max_clients = 1024;
	cfg.message_bytes = 1 << 20;
	cfg.credits = 30;
	need = 1024ull * (30 + 2) * (1 << 20) + other_memory(false);
	memory = need - 1;
	memlock = 0;	/* none of it is locked */
	assert_int_equal(derive_without_devices(), -ENOSPC);
	assert_says(err, "the memory of this machine or its control group (bytes) is 34");
	assert_says(err, "but --max-clients 1024 needs 34");
	memory = need;
	assert_int_equal(derive_without_devices(), 0);
	cfg.sock.tcp.zerocopy_bytes = 1;
	assert_int_equal(derive_without_devices(), -ENOSPC);
	cfg.sock.tcp.zerocopy_bytes = 0;
	cfg.transport_mask = 1 << TRANSPORT_TLS;
	assert_int_equal(derive_without_devices(), -ENOSPC);
	need += other_memory(true) - other_memory(false);
	memory = need;
	assert_int_equal(derive_without_devices(), 0);
}

/* Clients may come over RDMA, whose buffers are there from the start. */
TEST(derive__sockets_beside_rdma__starts_with_less_than_clients_could_take)
{
	cfg.transport_mask = TRANSPORTS_ALL;
	derive();
	assert_needs(&memory, 2ull * (cfg.recv_depth + EP_BATCH + cfg.spare_bufs) * 4096,
		     "the memory of this machine or its control group (bytes)", "lower --max-clients");
}

static void use_rails(uint32_t n)
{
	cfg.n_rails = n;
	for (uint32_t i = 0; i < n; i++) {
		devs[i] = devs[0];
		snprintf(devs[i].name, sizeof(devs[i].name), "rxe%u", i);
	}
}

/* A rail is a server of its own as far as its shards' sizes go. */
TEST(derive__rails__each_shard_as_with_one)
{
	uint32_t clients, qps, depth;

	derive();
	clients = cfg.shard_clients;
	qps = cfg.shard_qps;
	depth = cfg.recv_depth;
	use_rails(8);
	derive();
	assert_int_equal(cfg.shard_clients, clients);
	assert_int_equal(cfg.shard_qps, qps);
	assert_int_equal(cfg.recv_depth, depth);
}

TEST(derive__different_devices__what_the_least_gives)
{
	use_rails(3);
	devs[1].attr.max_srq_wr = 5000;
	devs[2].attr.max_qp = 3000;
	derive();
	assert_int_equal(cfg.recv_depth, 5000 - EP_BATCH);
	assert_int_equal(cfg.shard_qps, 1500);
}

TEST(derive__one_device_too_small__named)
{
	use_rails(2);
	devs[1].attr.max_qp = 1269;
	assert_refused("rxe1: the device's max_qp is 1269", "lower --max-clients");
	devs[1].attr.max_qp = 1270;
	devs[1].attr.max_qp_wr = 5;
	assert_refused("rxe1: the device's max_qp_wr is 5", "lower --credits");
}

/* Regions are registered only when clients want them, but must not run out then. */
TEST(derive__regions__counted_as_pinned_memory)
{
	uint64_t need;

	use_rails(2);
	cfg.region_bytes = 1000000;	/* 245 pages */
	derive();
	need = 4ull * (cfg.recv_depth + EP_BATCH + cfg.spare_bufs) * 4096 + 2ull * 1000 * 245 * 4096;
	assert_needs(&memlock, need, "locked memory (ulimit -l, bytes)", "--region-size");
	assert_needs(&memory, need, "the memory of this machine or its control group (bytes)",
		     "lower --max-clients, --region-size");
}

TEST(derive__rails__descriptors_and_memory_of_all)
{
	uint64_t bytes;

	use_rails(3);
	derive();
	bytes = 6ull * (cfg.recv_depth + EP_BATCH + cfg.spare_bufs) * 4096;
	assert_needs(&memlock, bytes, "locked memory (ulimit -l, bytes)", "--message-size");
	nofile = 6 * cfg.max_handshakes;
	assert_refused("--threads 2 on each rail", "raise it");
}

TEST_EACH(set_up, NULL)
