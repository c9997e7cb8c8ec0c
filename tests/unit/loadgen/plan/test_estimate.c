/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/plan/estimate.c and advice.c: what clients need, what is short, what runs out first, and how
 * far each resource goes. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "common/hist/hist.h"
#include "common/wire/transport.h"
#include "loadgen/plan/advice.h"
#include "loadgen/plan/estimate.h"
#include "loadgen/traffic/worker_stats.h"

#define GIB 1073741824.0

static struct estimate_in base;
static struct estimate_row rows[ESTIMATE_ROWS_MAX];
static size_t n;

/* Soft-RoCE on one machine, a server of performance_test's own, --workload echo. */
static int set_up(void **state)
{
	const struct estimate_host host = {
		.driver = MEMORY_RXE, .max_qp = 1048560, .max_qp_wr = 1048576, .max_cq = 1048576, .max_cqe = 32767,
		.max_mr = 524287, .max_mw = 524287, .max_srq_wr = 1048576, .nofile = 4096, .memlock = INFINITY,
		.memory_bytes = 16 * GIB, .available_bytes = 15 * GIB, .kernel_bytes = 0.1 * GIB, .ports = 28232,
		.tasks = 1000, .cpus = 4, .line_bits_per_s = NAN,
	};

	(void)state;
	base = (struct estimate_in){
		.clients = 100, .same_machine = true, .server_host = host, .generator_host = host,
		.server = { .own = true, .inline_bytes = 64,
			    .size = { .rails = 1, .threads = 2, .credits = 1, .message_bytes = 64,
				      .max_handshakes = 512, .transport_mask = 1u << TRANSPORT_RDMA } },
		.generator = { .rails = 1, .workers = 2, .client = { .depth = 1, .all_inline = true,
								     .buffer_bytes = 64 },
			       .inline_bytes = 64, .connecting = 32 },
	};
	return 0;
}

/* As hosts_fill does it for a server of our own. */
static void fill(void *arg, uint64_t clients, struct estimate_in *out)
{
	(void)arg;
	*out = base;
	out->clients = clients;
	if (out->server.own)
		out->server.size.max_clients = clients + clients / 10 + 16;
	out->generator.client.max_conns = (uint32_t)(clients + 1) / 2;
}

static struct estimate_in look(uint64_t clients)
{
	struct estimate_in in;

	fill(NULL, clients, &in);
	n = estimate_rows(&in, rows);
	assert_true(n <= N_ELEMENTS(rows));
	return in;
}

static struct estimate_row *row(enum estimate_resource r, enum estimate_side side)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].resource == r && rows[i].side == side)
			return &rows[i];
	fail_msg("no row for %s of %s", estimate_resource_names[r], estimate_side_names[side]);
	return NULL;
}

static double needed(enum estimate_resource r, enum estimate_side side)
{
	return row(r, side)->needed;
}

/* A run of 100 clients had these (docs/capacity.md). */
TEST(rows__hundred_clients__as_a_run_had)
{
	look(100);
	assert_true(needed(ESTIMATE_qps, ESTIMATE_SERVER) == 322);
	assert_true(needed(ESTIMATE_qps, ESTIMATE_GENERATOR) == 200);
	assert_true(needed(ESTIMATE_qps, ESTIMATE_BOTH) == 522);
	assert_true(needed(ESTIMATE_cqs, ESTIMATE_SERVER) == 4);
	assert_true(needed(ESTIMATE_mrs, ESTIMATE_SERVER) == 2);
	assert_true(needed(ESTIMATE_threads, ESTIMATE_GENERATOR) == 4);
	assert_true(needed(ESTIMATE_pinned_bytes, ESTIMATE_SERVER) == 44800);
	assert_true(needed(ESTIMATE_pinned_bytes, ESTIMATE_GENERATOR) == 29184);
	for (size_t i = 0; i < n; i++)
		assert_true(estimate_fits(&rows[i]));
}

TEST(rows__any_number__grow_and_keep_their_places)
{
	struct estimate_row before[ESTIMATE_ROWS_MAX];
	size_t n_before;

	look(10);
	for (uint64_t clients = 20; clients <= 100000; clients *= 2) {
		memcpy(before, rows, sizeof(rows));
		n_before = n;
		look(clients);
		assert_int_equal(n, n_before);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(rows[i].resource, before[i].resource);
			assert_int_equal(rows[i].side, before[i].side);
			assert_true(rows[i].needed >= before[i].needed);
		}
	}
}

TEST(reach__each_row__the_last_number_that_fits)
{
	look(100);
	estimate_reach(fill, NULL, rows, n);
	for (size_t i = 0; i < n; i++) {
		double reach = rows[i].clients;
		struct estimate_row r = rows[i];

		if (!isfinite(reach))
			continue;
		look((uint64_t)reach);
		assert_true(estimate_fits(&rows[i]));
		look((uint64_t)reach + 1);
		assert_false(estimate_fits(&rows[i]));
		look(100);
		estimate_reach(fill, NULL, rows, n);
		assert_true(rows[i].clients == r.clients);
	}
	/* The control session has one. */
	assert_true(row(ESTIMATE_ports, ESTIMATE_GENERATOR)->clients == 28231);
}

/* Clients that connect alone before and after have left, but their queue pairs and ports rest. */
TEST(alone__rest_when_they_left)
{
	double server, generator, ports;

	look(100);
	server = needed(ESTIMATE_qps, ESTIMATE_SERVER);
	generator = needed(ESTIMATE_qps, ESTIMATE_GENERATOR);
	ports = needed(ESTIMATE_ports, ESTIMATE_GENERATOR);
	base.generator.alone = 5;
	look(100);
	assert_true(needed(ESTIMATE_qps, ESTIMATE_SERVER) == server + 10);
	assert_true(needed(ESTIMATE_qps, ESTIMATE_GENERATOR) == generator + 10);
	assert_true(needed(ESTIMATE_ports, ESTIMATE_GENERATOR) == ports + 10);
}

/* A thread has histograms and a pool of queue pairs of its own. */
TEST(rss__grows_with_threads)
{
	double server, generator;

	look(100);
	server = needed(ESTIMATE_rss_bytes, ESTIMATE_SERVER);
	generator = needed(ESTIMATE_rss_bytes, ESTIMATE_GENERATOR);
	base.server.size.threads = base.generator.workers = 1;
	look(100);
	assert_true(server - needed(ESTIMATE_rss_bytes, ESTIMATE_SERVER) > MEMORY_SHARD_BYTES);
	assert_true(generator - needed(ESTIMATE_rss_bytes, ESTIMATE_GENERATOR) > STEP_HISTS * HIST_BYTES);
}

TEST(first__fewest_clients)
{
	look(100);
	estimate_reach(fill, NULL, rows, n);
	assert_int_equal(rows[estimate_first(rows, n)].resource, ESTIMATE_ports);
	base.server_host.available_bytes = 0.5 * GIB;
	look(100);
	estimate_reach(fill, NULL, rows, n);
	assert_int_equal(rows[estimate_first(rows, n)].resource, ESTIMATE_memory_bytes);
}

TEST(floor__memory_that_stays_free__is_not_there)
{
	double without;

	look(100);
	without = row(ESTIMATE_memory_bytes, ESTIMATE_BOTH)->limit;
	base.generator.memory_floor_ratio = 0.05;
	look(100);
	assert_true(fabs(without - row(ESTIMATE_memory_bytes, ESTIMATE_BOTH)->limit - 0.05 * 16 * GIB) < 1);
}

TEST(short_of__descriptors__says_what_to_set)
{
	struct estimate_in in;
	char text[256];

	base.server_host.nofile = base.generator_host.nofile = 1024;
	in = look(100);
	assert_false(estimate_fits(row(ESTIMATE_fds_at_start, ESTIMATE_SERVER)));
	/* rdma_server asks for as many, with 2 threads and 512 handshakes each. */
	assert_string_equal(advice_text(&in, row(ESTIMATE_fds_at_start, ESTIMATE_SERVER), text, sizeof(text)),
			    "ulimit -Hn 1434");
	assert_true(estimate_fits(row(ESTIMATE_fds_at_start, ESTIMATE_GENERATOR)));
}

TEST(short_of__every_resource__has_an_advice)
{
	struct estimate_in in;
	char text[256];

	base.server.max_per_address = 1;
	in = look(100);
	for (size_t i = 0; i < n; i++) {
		/* Only resources with a limit of their own have advice. */
		if (rows[i].resource == ESTIMATE_rss_bytes || rows[i].resource == ESTIMATE_kernel_bytes)
			continue;
		rows[i].limit = rows[i].needed / 2;
		assert_string_not_equal(advice_text(&in, &rows[i], text, sizeof(text)), "");
	}
}

/* A server that runs has what its reports say, and room for those it was started for. */
TEST(running__what_it_has_and_what_comes)
{
	double memory;

	base.same_machine = false;
	base.server = (struct estimate_server){
		.own = false, .inline_bytes = 220, .clients = 24, .fds = 30,
		.size = { .rails = 1, .threads = 2, .max_clients = 1024, .credits = 16, .message_bytes = 4096,
			  .max_handshakes = 512, .srq_depth = 11000 },
		.process_threads = 5, .rss_bytes = 200e6, .pinned_bytes = 100e6, .qps = 536, .cqs = 6, .mrs = 2,
	};
	base.generator.memory_floor_ratio = 0;
	look(100);
	assert_true(row(ESTIMATE_max_clients, ESTIMATE_SERVER)->limit == 1000);
	assert_true(needed(ESTIMATE_qps, ESTIMATE_SERVER) == 100 + 24 + 512);
	assert_true(needed(ESTIMATE_fds, ESTIMATE_SERVER) == 62);
	assert_true(needed(ESTIMATE_pinned_bytes, ESTIMATE_SERVER) == 100e6);
	assert_true(needed(ESTIMATE_rss_bytes, ESTIMATE_SERVER) > 200e6);
	/* Only what comes is taken from the memory that is left. */
	assert_true(needed(ESTIMATE_memory_bytes, ESTIMATE_SERVER) < 100e6);
	assert_true(needed(ESTIMATE_cqs, ESTIMATE_SERVER) == 6);
	memory = needed(ESTIMATE_memory_bytes, ESTIMATE_SERVER);
	base.server.cqs = 3;
	look(100);
	assert_true(needed(ESTIMATE_cqs, ESTIMATE_SERVER) == 4);
	assert_true(needed(ESTIMATE_memory_bytes, ESTIMATE_SERVER) > memory);
	look(1001);
	assert_false(estimate_fits(row(ESTIMATE_max_clients, ESTIMATE_SERVER)));
}

/* A server may report anything about itself. */
TEST(running__nonsense__no_crash)
{
	static const double values[] = { NAN, INFINITY, -1, 0, 1, 63, 1e300 };

	base.same_machine = false;
	base.server.own = false;
	for (size_t i = 0; i < N_ELEMENTS(values); i++) {
		base.server_host.max_qp = base.server_host.max_cqe = base.server_host.max_srq_wr = values[i];
		base.server.rss_bytes = base.server.clients = values[i];
		look(100);
		estimate_reach(fill, NULL, rows, n);
		assert_true(estimate_first(rows, n) <= n);
	}
}

TEST(unknown__fits_no_verdict)
{
	base.same_machine = false;
	base.server_host.available_bytes = NAN;
	look(100);
	estimate_reach(fill, NULL, rows, n);
	assert_true(isnan(row(ESTIMATE_memory_bytes, ESTIMATE_SERVER)->limit));
	assert_true(isnan(row(ESTIMATE_memory_bytes, ESTIMATE_SERVER)->clients));
	assert_true(estimate_first(rows, n) < n);
}

TEST(rows__over_sockets__what_the_server_allows_and_what_clients_could_take)
{
	struct held_row held[HELD_N];
	struct estimate_in in;

	base.transport = TRANSPORT_TCP;
	base.server.size.transport_mask = 1u << TRANSPORT_TCP;
	base.server.size.message_bytes = 1 << 20;
	base.server.size.credits = 6;
	in = look(1000);
	estimate_held(&in, held);
	assert_int_equal(held_bytes(&held[HELD_REGISTERED]), 0);
	assert_int_equal(held_bytes(&held[HELD_SOCKET_BUFFERS]), 1116ull * 8 << 20);
	assert_true(needed(ESTIMATE_memory_at_start_bytes, ESTIMATE_SERVER) == (double)held_sum(held));
	assert_true(estimate_fits(row(ESTIMATE_memory_at_start_bytes, ESTIMATE_SERVER)));
	look(2000);
	assert_false(estimate_fits(row(ESTIMATE_memory_at_start_bytes, ESTIMATE_SERVER)));
}

/* Both processes count in the limit of the user, the control group and the machine. */
TEST(threads__one_machine__their_sum)
{
	base.server_host.tasks = base.generator_host.tasks = 7;
	look(100);
	assert_true(needed(ESTIMATE_threads, ESTIMATE_BOTH) == 8);
	assert_false(estimate_fits(row(ESTIMATE_threads, ESTIMATE_BOTH)));
	assert_true(estimate_fits(row(ESTIMATE_threads, ESTIMATE_SERVER)));
	base.same_machine = false;
	look(100);
	assert_true(estimate_fits(row(ESTIMATE_threads, ESTIMATE_SERVER)));
	assert_true(row(ESTIMATE_threads, ESTIMATE_SERVER)->limit == 7);
}

TEST(line__two_rails__twice_the_speed_for_the_load)
{
	base.same_machine = false;
	base.server_host.line_bits_per_s = base.generator_host.line_bits_per_s = 5e9;
	base.generator.rails = 2;
	base.load.bytes_per_s = 700e6;
	look(1000);
	assert_true(row(ESTIMATE_line_bytes_per_s, ESTIMATE_SERVER)->limit == 625e6);
	assert_false(estimate_fits(row(ESTIMATE_line_bytes_per_s, ESTIMATE_SERVER)));
	assert_true(estimate_fits(row(ESTIMATE_line_bytes_per_s, ESTIMATE_GENERATOR)));
}

/* Runs of --workload echo over loopback had these peaks with 10,000 clients and 2 threads on each side. */
TEST(rows__sockets__as_runs_had)
{
	static const struct { enum transport transport; double server, generator, server_rss, generator_rss; } had[] = {
		{ TRANSPORT_TCP, 10028, 10026, 27504640, 65306624 },
		{ TRANSPORT_TLS, 10026, 10026, 208924672, 326029312 },
	};

	base.server_host.nofile = base.generator_host.nofile = 20000;
	base.server_host.sampler_fds = base.generator_host.sampler_fds = 6;
	for (size_t i = 0; i < N_ELEMENTS(had); i++) {
		base.transport = had[i].transport;
		base.server.size.transport_mask = 1u << had[i].transport;
		look(10000);
		assert_true(needed(ESTIMATE_fds, ESTIMATE_SERVER) == had[i].server);
		assert_true(needed(ESTIMATE_fds, ESTIMATE_GENERATOR) == had[i].generator);
		assert_true(fabs(needed(ESTIMATE_rss_bytes, ESTIMATE_SERVER) / had[i].server_rss - 1) < 0.15);
		assert_true(fabs(needed(ESTIMATE_rss_bytes, ESTIMATE_GENERATOR) / had[i].generator_rss - 1) < 0.15);
		assert_true(needed(ESTIMATE_ports, ESTIMATE_GENERATOR) == 10001);
		assert_true(needed(ESTIMATE_threads, ESTIMATE_SERVER) == 4);
		for (size_t k = 0; k < n; k++)
			assert_true(rows[k].resource != ESTIMATE_qps && rows[k].resource != ESTIMATE_pinned_bytes);
	}
}

TEST_EACH(set_up, NULL)
