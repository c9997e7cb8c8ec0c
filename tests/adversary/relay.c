/* SPDX-License-Identifier: BSD-2-Clause */
/* relay: passes TCP connections on to a server, and resets all of them (RST) at each SIGUSR1, as a firewall or a
 * hostile neighbour might. RDMA does not pass through it. It has one thread and ends by a signal. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/addr.h"

#define PAIRS_MAX 256

struct pair {
	int fd[2];		/* the client's and the server's; -1: none */
	bool ended[2];		/* that end has sent everything */
};

static struct pair pairs[PAIRS_MAX];
static volatile sig_atomic_t cut_now;

static void on_usr1(int signum)
{
	(void)signum;
	cut_now = 1;
}

static void close_pair(struct pair *p, bool reset)
{
	struct linger now = { .l_onoff = 1 };

	for (int i = 0; i < 2; i++) {
		if (p->fd[i] < 0)
			continue;
		if (reset)
			setsockopt(p->fd[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(p->fd[i]);
		p->fd[i] = -1;
	}
}

static void cut_all(void)
{
	int n = 0;

	cut_now = 0;
	for (int i = 0; i < PAIRS_MAX; i++) {
		n += pairs[i].fd[0] >= 0;
		close_pair(&pairs[i], true);
	}
	printf("relay: %d cut\n", n);
	fflush(stdout);
}

static struct pair *free_pair(void)
{
	for (int i = 0; i < PAIRS_MAX; i++)
		if (pairs[i].fd[0] < 0)
			return &pairs[i];
	return NULL;
}

static void take(int listener, const struct addr *server)
{
	struct pair *p = free_pair();
	int in = accept4(listener, NULL, NULL, SOCK_CLOEXEC), out;

	if (in < 0)
		return;
	out = p ? socket(server->ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
	if (out < 0 || connect(out, (const struct sockaddr *)&server->ss, server->len)) {
		close(in);
		if (out >= 0)
			close(out);
		return;
	}
	*p = (struct pair){ .fd = { in, out } };
}

static bool write_all(int fd, const char *data, ssize_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, data, (size_t)n);

		if (w < 0 && errno != EINTR)
			return false;
		data += w > 0 ? w : 0;
		n -= w > 0 ? w : 0;
	}
	return true;
}

/* Passes on what one end sent. */
static void pass_on(struct pair *p, int from)
{
	char data[65536];
	ssize_t n = read(p->fd[from], data, sizeof(data));

	if (n < 0 && errno == EINTR)
		return;
	if (n < 0 || (n > 0 && !write_all(p->fd[!from], data, n))) {
		close_pair(p, true);
		return;
	}
	if (n > 0)
		return;
	p->ended[from] = true;
	shutdown(p->fd[!from], SHUT_WR);
	if (p->ended[!from])
		close_pair(p, false);
}

static void relay(int listener, const struct addr *server)
{
	for (;;) {
		struct pollfd fds[1 + 2 * PAIRS_MAX] = { { .fd = listener, .events = POLLIN } };

		for (int i = 0; i < 2 * PAIRS_MAX; i++)
			fds[1 + i] = (struct pollfd){ .fd = pairs[i / 2].ended[i % 2] ? -1 : pairs[i / 2].fd[i % 2],
						      .events = POLLIN };
		if (poll(fds, 1 + 2 * PAIRS_MAX, -1) < 0 && errno != EINTR)
			return;
		if (cut_now) {
			cut_all();
			continue;
		}
		for (int i = 0; i < 2 * PAIRS_MAX; i++)
			if (fds[1 + i].fd >= 0 && fds[1 + i].revents && pairs[i / 2].fd[i % 2] == fds[1 + i].fd)
				pass_on(&pairs[i / 2], i % 2);
		if (fds[0].revents)
			take(listener, server);
	}
}

/* Listens on a free port of the server's address. */
static int listen_beside(const struct addr *server)
{
	struct addr at = *server;
	socklen_t len = sizeof(at.ss);
	int fd = socket(at.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr_set_port(&at, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at.ss, at.len) || listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)&at.ss, &len))
		return -1;
	printf("relay: port %u\n", addr_port(&at));
	fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	struct addr server;
	int listener;

	if (argc != 3 || addr_parse(argv[1], (uint16_t)atoi(argv[2]), &server)) {
		fprintf(stderr, "Usage: relay HOST PORT\n");
		return 2;
	}
	for (int i = 0; i < PAIRS_MAX; i++)
		pairs[i].fd[0] = pairs[i].fd[1] = -1;
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_usr1 }, NULL);
	listener = listen_beside(&server);
	if (listener < 0) {
		fprintf(stderr, "relay: cannot listen: %s\n", strerror(errno));
		return 3;
	}
	relay(listener, &server);
	return 3;
}
