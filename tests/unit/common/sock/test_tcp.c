/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/sock/tcp.c: the list of --tcp, and options that a socket of the kernel has. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/sock/tcp.h"

static struct tcp_options o;
static char err[256];

TEST(parse__nothing_or_default__nodelay_alone)
{
	const struct tcp_options wanted = { .delay = false };

	assert_int_equal(tcp_parse(NULL, &o, err, sizeof(err)), 0);
	assert_memory_equal(&o, &wanted, sizeof(o));
	assert_int_equal(tcp_parse("default", &o, err, sizeof(err)), 0);
	assert_memory_equal(&o, &wanted, sizeof(o));
}

TEST(parse__each_option__its_value)
{
	assert_int_equal(tcp_parse("nodelay=off,quickack=on,send-buffer=1M,receive-buffer=65536,busy-poll=20,"
				   "zerocopy=64k,congestion=reno", &o, err, sizeof(err)), 0);
	assert_true(o.delay);
	assert_true(o.quickack);
	assert_int_equal(o.send_buffer, 1 << 20);
	assert_int_equal(o.receive_buffer, 65536);
	assert_int_equal(o.busy_poll_us, 20);
	assert_int_equal(o.zerocopy_bytes, 65536);
	assert_string_equal(o.congestion, "reno");
}

TEST(parse__tuned_and_a_difference__the_rest_of_tuned)
{
	struct tcp_options tuned;

	assert_int_equal(tcp_parse("tuned", &tuned, err, sizeof(err)), 0);
	assert_true(!tuned.delay && tuned.quickack && tuned.busy_poll_us && tuned.send_buffer && tuned.receive_buffer);
	assert_int_equal(tcp_parse("tuned,quickack=off", &o, err, sizeof(err)), 0);
	tuned.quickack = false;
	assert_memory_equal(&o, &tuned, sizeof(o));
}

TEST(parse__what_is_not_allowed__one_line_that_names_it)
{
	static const struct { const char *text, *words; } wrong[] = {
		{ "", "'' is not allowed; allowed: default or tuned" },
		{ "fast", "'fast' is not allowed" },
		{ "quickack=on,tuned", "'tuned' is not allowed" },
		{ "nodelay", "nodelay= is not allowed; allowed: on or off" },
		{ "nodelay=1", "nodelay=1 is not allowed" },
		{ "send-buffer=0", "send-buffer=0 is not allowed; allowed: 1 to 1G bytes" },
		{ "send-buffer=2G", "send-buffer=2G is not allowed" },
		{ "send-buffer=4x", "send-buffer=4x is not allowed" },
		{ "send-buffer=99999999999999999999", "send-buffer=99999999999999999999 is not allowed" },
		{ "busy-poll=1k", "busy-poll=1k is not allowed; allowed: 1 to 1000000 microseconds" },
		{ "busy-poll=-1", "busy-poll=-1 is not allowed" },
		{ "congestion=a-name-too-long-for-it", "congestion=a-name-too-long-for-it is not allowed" },
		{ "congestion=", "congestion= is not allowed" },
		{ "default,", "'' is not allowed" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(tcp_parse(wrong[i].text, &o, err, sizeof(err)), -EINVAL);
		assert_says(err, wrong[i].words);
		assert_ptr_equal(strstr(err, "--tcp: "), err);
		assert_null(strchr(err, '\n'));
	}
}

TEST(json__what_was_not_asked_for__null)
{
	json_auto_t *j = NULL;

	assert_int_equal(tcp_parse("zerocopy=64k", &o, err, sizeof(err)), 0);
	j = tcp_options_json(&o);
	assert_true(json_is_true(json_at(j, "nodelay")));
	assert_int_equal(json_integer_value(json_at(j, "zerocopy_bytes")), 65536);
	assert_true(json_is_null(json_at(j, "send_buffer_bytes")));
	assert_true(json_is_null(json_at(j, "congestion")));
}

TEST(apply__real_socket__read_back)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct tcp_values before, after;

	assert_true(tcp_read(fd, &before));
	assert_int_equal(before.nodelay, 0);
	assert_int_equal(before.zerocopy, 0);
	assert_true(before.congestion[0]);
	/* Buffers below what the kernel allows everybody, and reno, which every kernel has. */
	assert_int_equal(tcp_parse("send-buffer=20000,receive-buffer=30000,congestion=reno", &o, err, sizeof(err)), 0);
	tcp_apply(fd, &o);
	assert_true(tcp_skip_copies(fd));
	assert_true(tcp_read(fd, &after));
	assert_int_equal(after.nodelay, 1);
	assert_int_equal(after.send_buffer, 40000);
	assert_int_equal(after.receive_buffer, 60000);
	assert_int_equal(after.zerocopy, 1);
	assert_string_equal(after.congestion, "reno");
	close(fd);
	assert_false(tcp_read(fd, &after));
}
