/* SPDX-License-Identifier: BSD-2-Clause */
/* The main of every unit test: runs what registered itself. See unit.h. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/addr.h"

#define TESTS_MAX 256

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static size_t n_tests;
static CMFixtureFunction each_set_up, each_tear_down, group_set_up, group_tear_down;

/* Compilers do not promise in which order a file's constructors run. */
void unit_register(const struct CMUnitTest *t, size_t n, int line)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = n_tests++;

		if (at == TESTS_MAX)
			abort();
		for (; at > 0 && lines[at - 1] > line; at--) {
			tests[at] = tests[at - 1];
			lines[at] = lines[at - 1];
		}
		tests[at] = t[i];
		lines[at] = line;
	}
}

void unit_set_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	each_set_up = set_up;
	each_tear_down = tear_down;
}

void unit_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	group_set_up = set_up;
	group_tear_down = tear_down;
}

struct addr unit_addr(const char *text, uint16_t port)
{
	struct addr a;

	assert_int_equal(addr_parse(text, port, &a), 0);
	return a;
}

void unit_connect_tcp(int fds[2])
{
	struct addr a = unit_addr("127.0.0.1", 0);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&a.ss, a.len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a.ss, &a.len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&a.ss, a.len), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fds[1] >= 0);
	close(listener);
}

uint64_t unit_limit_descriptors(uint64_t n)
{
	struct rlimit limit;
	uint64_t before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

int main(void)
{
	for (size_t i = 0; i < n_tests; i++) {
		if (!tests[i].setup_func)
			tests[i].setup_func = each_set_up;
		if (!tests[i].teardown_func)
			tests[i].teardown_func = each_tear_down;
	}
	return _cmocka_run_group_tests(program_invocation_short_name, tests, n_tests, group_set_up, group_tear_down);
}
