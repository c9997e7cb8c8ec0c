/* Unit tests of common/base/log.c. stderr is a datagram socket while a line is written, so that every
 * write is seen as one message. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"

static int pair[2] = { -1, -1 }, saved_stderr;

static int set_up(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair);
}

static int tear_down(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	log_init("prog", LOG_LVL_INFO);
	return 0;
}

static void capture(void)
{
	saved_stderr = dup(STDERR_FILENO);
	dup2(pair[1], STDERR_FILENO);
}

static void release(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
}

/* The next write, as a string; NULL if there was none. */
static const char *next_write(void)
{
	static char text[4096];
	ssize_t n = recv(pair[0], text, sizeof(text) - 1, 0);

	if (n < 0) {
		assert_int_equal(errno, EAGAIN);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

static void write__each_level__prefix_and_one_write(void **state)
{
	(void)state;
	log_init("prog", LOG_LVL_DEBUG);
	capture();
	log_error("no %s %d", "luck", 3);
	log_warn("w");
	log_info("i");
	log_debug("d");
	release();
	assert_string_equal(next_write(), "prog: no luck 3\n");
	assert_string_equal(next_write(), "prog: warn: w\n");
	assert_string_equal(next_write(), "prog: info: i\n");
	assert_string_equal(next_write(), "prog: debug: d\n");
	assert_null(next_write());
}

static void write__below_the_threshold__nothing(void **state)
{
	(void)state;
	for (int level = LOG_LVL_ERROR; level <= LOG_LVL_DEBUG; level++) {
		int lines = 0;

		log_init("prog", (enum log_level)level);
		capture();
		log_error("e");
		log_warn("w");
		log_info("i");
		log_debug("d");
		release();
		while (next_write())
			lines++;
		assert_int_equal(lines, level + 1);
		assert_true(log_enabled((enum log_level)level));
		assert_int_equal(log_enabled(LOG_LVL_DEBUG), level == LOG_LVL_DEBUG);
	}
}

static void debug__not_enabled__arguments_not_evaluated(void **state)
{
	int n = 0;

	(void)state;
	log_init("prog", LOG_LVL_INFO);
	log_debug("%d", ++n);
	assert_int_equal(n, 0);
}

static void write__longer_than_a_line__cut_with_its_newline(void **state)
{
	char text[3000];
	const char *got;

	(void)state;
	log_init("prog", LOG_LVL_INFO);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	capture();
	log_error("%s", text);
	release();
	got = next_write();
	assert_non_null(got);
	assert_in_range(strlen(got), 1000, 1024);
	assert_int_equal(got[strlen(got) - 1], '\n');
	assert_memory_equal(got, "prog: xxx", 9);
	assert_int_equal(strspn(got + 6, "x"), strlen(got) - 7);
	assert_null(next_write());
}

/* Every length around the limit: a newline at the end, and nothing lost before it must be. */
static void write__every_length_up_to_the_limit__whole(void **state)
{
	char text[1100];
	size_t longest = 0;

	(void)state;
	log_init("p", LOG_LVL_INFO);
	for (size_t n = 990; n < sizeof(text); n++) {
		const char *got;

		memset(text, 'y', n);
		text[n] = '\0';
		capture();
		log_error("%s", text);
		release();
		got = next_write();
		assert_non_null(got);
		assert_int_equal(got[strlen(got) - 1], '\n');
		if (strlen(got) == n + 4)
			longest = n;
	}
	assert_true(longest >= 1000);
}

static void write__program_name_too_long__no_overrun(void **state)
{
	char name[1500];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	log_init(name, LOG_LVL_INFO);
	capture();
	log_error("text");
	release();
	next_write();
	assert_null(next_write());
}

#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(write__each_level__prefix_and_one_write),
		LOG_TEST(write__below_the_threshold__nothing),
		LOG_TEST(debug__not_enabled__arguments_not_evaluated),
		LOG_TEST(write__longer_than_a_line__cut_with_its_newline),
		LOG_TEST(write__every_length_up_to_the_limit__whole),
		LOG_TEST(write__program_name_too_long__no_overrun),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
