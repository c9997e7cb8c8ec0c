/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/plan/device_memory.c against measurements of rdma_rxe on kernel 6.1: the kernel's memory with
 * 1,000 queue pairs minus that without, divided by 1,000. */
#include "tests/unit/helpers/unit.h"

#include <math.h>

#include "loadgen/plan/device_memory.h"

#define KB 1000.0

static double kernel_of(double sq_depth, double inline_bytes)
{
	struct memory_use u = memory_of_qp(MEMORY_RXE, sq_depth, inline_bytes);

	return u.shared + u.kernel;
}

TEST(rxe__queue_pairs__as_measured)
{
	static const struct { double sq_depth, bytes; } measured[] = { { 4, 13 * KB }, { 16, 24 * KB }, { 64, 73 * KB } };

	for (size_t i = 0; i < N_ELEMENTS(measured); i++) {
		double got = kernel_of(measured[i].sq_depth, 220);

		if (fabs(got / measured[i].bytes - 1) > 0.1)
			fail_msg("max_send_wr %.0f: %.0f bytes, measured %.0f", measured[i].sq_depth, got, measured[i].bytes);
	}
}

/* The driver adds one entry and rounds up to a power of two; an entry's size is a power of two as well. */
TEST(rxe__queues__rounded_as_the_driver_does)
{
	assert_true(memory_of_qp(MEMORY_RXE, 7, 220).shared == 2 * 4096);	/* 8 entries of 512 bytes */
	assert_true(memory_of_qp(MEMORY_RXE, 8, 220).shared == 3 * 4096);	/* 16 of them */
	assert_true(memory_of_qp(MEMORY_RXE, 7, 0).shared == 4096);		/* 8 of 256 bytes */
	/* Mapped by a server for 1,000 clients with one thread (/proc/PID/smaps): 16,384 and 2,048 entries of 128. */
	assert_true(memory_of_cq(MEMORY_RXE, 3228 * 4).shared == 513 * 4096);
	assert_true(memory_of_cq(MEMORY_RXE, 1180).shared == 65 * 4096);
	assert_true(memory_of_srq(MEMORY_RXE, 1000).shared == 17 * 4096);	/* 1,024 of 64 bytes */
}

TEST(other__queues_are_the_processs)
{
	assert_int_equal(memory_driver_of("rdma_rxe"), MEMORY_RXE);
	assert_int_equal(memory_driver_of("mlx5_core"), MEMORY_OTHER);
	assert_int_equal(memory_driver_of(NULL), MEMORY_OTHER);
	assert_true(memory_of_cq(MEMORY_OTHER, 1024).shared == 0);
	assert_true(memory_of_cq(MEMORY_OTHER, 1024).process == 65536);
}
