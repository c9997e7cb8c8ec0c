/* SPDX-License-Identifier: BSD-2-Clause */
/* See service.h. */
#include "server/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/shard/shard.h"
#include "server/shard/shard_data.h"

#define STATUS_S 5.0	/* between two status lines, without a watchdog */
#define WATCHDOG_LEAST_US 1000	/* a shorter watchdog would keep the loops busy with answering it; it is not fed */

struct service {
	struct server *server;
	struct ev_loop *loop;
	int fd;				/* -1: no service manager to notify */
	uint64_t watchdog_ns;		/* 0: systemd does not watch */
	uint64_t asked, asked_ns;	/* server->publish_wanted that the shards have to reach, and since when */
	bool named;			/* the shards that have not reached it were logged */
	bool ready_unsent;		/* READY=1 is still to be sent */
	int error;			/* -errno if the socket could not be reached, until the warning is logged */
	char status[96];		/* the last status that was sent */
	ev_timer turn;
};

static int connect_to(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int fd, ret;

	/* systemd also knows sockets of virtual machines ("vsock:"), which no service gets. */
	if ((path[0] != '/' && path[0] != '@') || n >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';	/* a name in the abstract namespace has no zero at its end */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* The time of WATCHDOG_USEC, if it is meant for this process. */
static uint64_t watchdog_of_environment(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	char *end;
	uint64_t us;

	if (!usec || (pid && strtoumax(pid, NULL, 10) != (uintmax_t)getpid()))
		return 0;
	us = strtoumax(usec, &end, 10);
	return end != usec && !*end && us >= WATCHDOG_LEAST_US && us < UINT64_MAX / 1000 ? us * 1000 : 0;
}

/* Sends without waiting. False if systemd does not have the text, because its queue is full or it is gone. */
static bool send_text(const struct service *s, const char *text)
{
	if (write(s->fd, text, strlen(text)) >= 0)
		return true;
	if (errno != EAGAIN)
		log_debug("cannot tell systemd '%s': %s", text, strerror(errno));
	return false;
}

static void on_turn(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	service_turn(w->data, clock_now_ns());
}

int service_new(struct server *server, struct ev_loop *loop, struct service **out)
{
	struct service *s = calloc(1, sizeof(*s));
	const char *path = getenv("NOTIFY_SOCKET");

	if (!s)
		return -ENOMEM;
	*s = (struct service){ .server = server, .loop = loop, .fd = -1 };
	ev_init(&s->turn, on_turn);
	s->turn.data = s;
	if (path) {
		s->fd = connect_to(path);
		s->error = s->fd < 0 ? s->fd : 0;
		s->watchdog_ns = s->fd >= 0 ? watchdog_of_environment() : 0;
	}
	server->service = s;
	*out = s;
	return 0;
}

void service_free(struct service *s)
{
	if (!s)
		return;
	ev_timer_stop(s->loop, &s->turn);
	if (s->fd >= 0)
		close(s->fd);
	s->server->service = NULL;
	free(s);
}

static void ask_shards(struct service *s, uint64_t now_ns)
{
	s->asked = atomic_fetch_add(&s->server->publish_wanted, 1) + 1;
	s->asked_ns = now_ns;
	s->named = false;
	for (uint32_t i = 0; i < s->server->n_shards; i++)
		shard_ask_publish(s->server->shards[i]);
}

static bool all_have_turned(const struct service *s)
{
	for (uint32_t i = 0; i < s->server->n_shards; i++)
		if (!shard_has_published(s->server->shards[i], s->asked))
			return false;
	return true;
}

static void name_stuck_shards(struct service *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i < s->server->n_shards; i++)
		if (!shard_has_published(s->server->shards[i], s->asked))
			log_event(LOG_LVL_ERROR, &(struct log_fields){ .shard = &i },
				  "shard %u has not turned its loop for %.1f s: systemd will kill this server unless "
				  "the shard does so within WatchdogSec", i, (double)(now_ns - s->asked_ns) / 1e9);
	s->named = true;
}

static void tell_status(struct service *s)
{
	uint64_t connected = 0, handshakes = 0;
	char text[sizeof(s->status)];

	for (uint32_t i = 0; i < s->server->n_shards; i++) {
		connected += counter_get(&s->server->shards[i]->stats.connected);
		handshakes += counter_get(&s->server->shards[i]->stats.handshakes);
	}
	snprintf(text, sizeof(text), "STATUS=%" PRIu64 " clients connected, %" PRIu64 " connecting", connected,
		 handshakes);
	if (strcmp(text, s->status) == 0)
		return;
	if (send_text(s, text))
		memcpy(s->status, text, sizeof(text));
}

static void feed_watchdog(struct service *s, uint64_t now_ns)
{
	if (all_have_turned(s)) {
		(void)send_text(s, "WATCHDOG=1");
		ask_shards(s, now_ns);
	} else if (!s->named && now_ns - s->asked_ns >= s->watchdog_ns / 2) {
		name_stuck_shards(s, now_ns);
	}
}

void service_turn(struct service *s, uint64_t now_ns)
{
	if (s->ready_unsent)
		s->ready_unsent = !send_text(s, "READY=1");
	if (s->watchdog_ns)
		feed_watchdog(s, now_ns);
	tell_status(s);
}

void service_ready(struct service *s)
{
	if (s && s->error) {
		log_warn("cannot tell systemd that the server runs: NOTIFY_SOCKET is '%s' (allowed: the absolute path "
			 "of a socket, or @NAME, at most %zu bytes): %s", getenv("NOTIFY_SOCKET"),
			 sizeof(((struct sockaddr_un *)0)->sun_path) - 1, strerror(-s->error));
		s->error = 0;
	}
	if (!s || s->fd < 0)
		return;
	s->ready_unsent = !send_text(s, "READY=1");
	if (ev_is_active(&s->turn))
		return;
	s->turn.repeat = s->watchdog_ns ? (double)s->watchdog_ns / 4e9 : STATUS_S;
	ev_timer_again(s->loop, &s->turn);
	service_turn(s, clock_now_ns());
}

void service_reloading(struct service *s)
{
	char text[64];

	if (!s || s->fd < 0)
		return;
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_ns() / 1000);
	(void)send_text(s, text);
}

void service_stopping(struct service *s)
{
	if (!s || s->fd < 0)
		return;
	(void)send_text(s, "STOPPING=1");
	ev_timer_stop(s->loop, &s->turn);
}
