/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/service.c: what systemd is told, against a socket of the test. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/service.h"
#include "server/shard/shard.h"
#include "server/shard/shard_data.h"
#include "tests/unit/files/log_watch.h"

#define S UINT64_C(1000000000)

static struct shard first, second;
static struct shard *shards[] = { &first, &second };
static struct server server;
static struct service *service;
static bool second_is_stuck;
static int systemd = -1;	/* its socket */
static struct sockaddr_un address;	/* the socket's name */
static socklen_t address_bytes;
static char said[256];

/* In place of the shards: they publish at once, but the second only if it is not stuck. */
void shard_ask_publish(struct shard *s)
{
	if (s != &second || !second_is_stuck)
		s->published = server.publish_wanted;
}

bool shard_has_published(const struct shard *s, uint64_t wanted)
{
	return ((struct shard *)s)->published >= wanted;
}

static int tear_down(void **state)
{
	(void)state;
	log_watch_end();
	service_free(service);
	service = NULL;
	if (systemd >= 0)
		close(systemd);
	systemd = -1;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return 0;
}

/* Listens at a name of its own in the abstract namespace. */
static int set_up(void **state)
{
	char name[64];
	int n = snprintf(name, sizeof(name), "@rampart-test-service-%d", (int)getpid());

	(void)state;
	second_is_stuck = false;
	counter_set(&second.stats.connected, 0);
	first.published = second.published = 0;
	server = (struct server){ .shards = shards, .n_shards = 2 };
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
	memcpy(address.sun_path, name, (size_t)n);
	address.sun_path[0] = '\0';
	systemd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(systemd, (struct sockaddr *)&address, address_bytes))
		return -1;
	return setenv("NOTIFY_SOCKET", name, 1);
}

/* Returns the next text that systemd was told; "" if there is no more. */
static const char *told(void)
{
	ssize_t n = recv(systemd, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = '\0';
	return said;
}

/* How many lines of the log have the words. */
static int logged(const char *words)
{
	static char text[4096];
	int n = 0;

	(void)log_watch_read(text, sizeof(text));
	for (const char *at = text; (at = strstr(at, words)); at++)
		n++;
	return n;
}

static void begin(const char *watchdog_usec)
{
	if (watchdog_usec)
		setenv("WATCHDOG_USEC", watchdog_usec, 1);
	assert_int_equal(service_new(&server, ev_default_loop(0), &service), 0);
	assert_ptr_equal(server.service, service);
	assert_string_equal(told(), "");
}

TEST_WITH(service__start_reload_stop__told_in_this_order, set_up, tear_down)
{
	begin(NULL);
	service_ready(service);
	assert_string_equal(told(), "READY=1");
	assert_string_equal(told(), "STATUS=0 clients connected, 0 connecting");
	service_reloading(service);
	assert_int_equal(strncmp(told(), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	assert_true(atoll(said + 27) > 0);
	service_ready(service);
	assert_string_equal(told(), "READY=1");
	service_stopping(service);
	assert_string_equal(told(), "STOPPING=1");
	assert_string_equal(told(), "");
}

TEST_WITH(status__only_when_it_changes, set_up, tear_down)
{
	begin(NULL);
	service_turn(service, S);
	assert_string_equal(told(), "STATUS=0 clients connected, 0 connecting");
	service_turn(service, 2 * S);
	assert_string_equal(told(), "");
	counter_set(&second.stats.connected, 1000);
	service_turn(service, 3 * S);
	assert_string_equal(told(), "STATUS=1000 clients connected, 0 connecting");
	assert_int_equal(server.publish_wanted, 0);
}

TEST_WITH(watchdog__stuck_shard__named_once_and_not_fed_until_it_turns, set_up, tear_down)
{
	begin("8000000");
	service_turn(service, 10 * S);
	assert_string_equal(told(), "WATCHDOG=1");
	(void)told();
	second_is_stuck = true;
	service_turn(service, 12 * S);
	assert_string_equal(told(), "WATCHDOG=1");
	log_watch_begin("server");
	service_turn(service, 14 * S);
	assert_int_equal(logged("has not turned"), 0);
	service_turn(service, 16 * S);
	service_turn(service, 18 * S);
	assert_int_equal(logged("shard 1 has not turned its loop for 4.0 s"), 1);
	assert_int_equal(logged("shard 0"), 0);
	assert_string_equal(told(), "");
	second.published = server.publish_wanted;
	service_turn(service, 20 * S);
	assert_string_equal(told(), "WATCHDOG=1");
}

TEST_WITH(service__queue_of_systemd_is_full__told_when_there_is_room, set_up, tear_down)
{
	int n = 0, other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	begin("8000000");
	while (sendto(other, "X=1", 3, MSG_DONTWAIT, (struct sockaddr *)&address, address_bytes) == 3)
		n++;
	assert_int_equal(errno, EAGAIN);
	service_ready(service);
	for (; n; n--)
		assert_string_equal(told(), "X=1");
	close(other);
	assert_string_equal(told(), "");
	service_turn(service, 10 * S);
	assert_string_equal(told(), "READY=1");
	assert_string_equal(told(), "WATCHDOG=1");
	assert_string_equal(told(), "STATUS=0 clients connected, 0 connecting");
}

TEST_WITH(watchdog__of_another_process__not_fed, set_up, tear_down)
{
	setenv("WATCHDOG_PID", "1", 1);
	begin("8000000");
	service_turn(service, 10 * S);
	assert_string_equal(told(), "STATUS=0 clients connected, 0 connecting");
	assert_string_equal(told(), "");
}

TEST_WITH(watchdog__no_number_of_microseconds__not_fed, set_up, tear_down)
{
	static const char *const wrong[] = { "20s", "", "x", "0", "999", "99999999999999999999" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin(wrong[i]);
		service_turn(service, 10 * S);
		assert_string_equal(told(), "STATUS=0 clients connected, 0 connecting");
		assert_string_equal(told(), "");
		service_free(service);
	}
	service = NULL;
}

TEST_WITH(service__without_systemd_or_without_its_socket__serves, set_up, tear_down)
{
	unsetenv("NOTIFY_SOCKET");
	begin("8000000");
	service_ready(service);
	service_free(service);
	log_watch_begin("server");
	setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
	begin("8000000");
	assert_int_equal(logged("NOTIFY_SOCKET"), 0);
	service_ready(service);
	assert_int_equal(logged("NOTIFY_SOCKET is '/nowhere/notify' (allowed: "), 1);
	service_reloading(service);
	service_stopping(service);
	service_ready(NULL);
	assert_string_equal(told(), "");
}
