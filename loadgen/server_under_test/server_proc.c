/* SPDX-License-Identifier: BSD-2-Clause */
/* A server process of our own. See server_proc.h. */
#include "loadgen/server_under_test/server_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/paths.h"

struct server_proc {
	pid_t pid;
	bool running, ready;
	int out_fd;
	struct ev_loop *loop;
	ev_io out_io;
	ev_child child;
	const struct server_proc_events *events;
	void *arg;
	char line[512];		/* room for the addresses of RAILS_MAX rails; later text may be cut */
	size_t line_n;
};

/* Parses "10.77.0.1:7471" or "[fe80::1]:7471" from `p` up to `end`. */
static bool parse_tls(const char *p, const char *end, struct addr *out)
{
	char host[ADDR_TEXT_MAX];
	const char *colon = memrchr(p, ':', (size_t)(end - p));
	unsigned long port;

	if (!colon || colon == p)
		return false;
	if (*p == '[' && colon[-1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)(colon - p - 2), p + 1);
	else
		snprintf(host, sizeof(host), "%.*s", (int)(colon - p), p);
	port = strtoul(colon + 1, NULL, 10);
	return port > 0 && port < 65536 && addr_parse(host, (uint16_t)port, out) == 0;
}

/* Parses "rdma_server ready: tls=10.77.0.1:7471,10.78.0.1:7471 rdma_ports=...". Returns the number of addresses; 0 for
 * any other line. */
static uint32_t parse_ready(const char *line, struct addr out[RAILS_MAX])
{
	static const char prefix[] = "rdma_server ready: tls=";
	const char *p = line + sizeof(prefix) - 1;

	if (strncmp(line, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	for (uint32_t n = 0; n < RAILS_MAX; n++) {
		const char *end = p + strcspn(p, ", ");

		if (!parse_tls(p, end, &out[n]))
			return 0;
		if (*end != ',')
			return n + 1;
		p = end + 1;
	}
	return 0;
}

static void on_line(struct server_proc *p)
{
	struct addr tls[RAILS_MAX];
	uint32_t n = parse_ready(p->line, tls);

	if (!n)
		return;
	p->ready = true;
	p->events->on_ready(p->arg, tls, n);
}

static void on_output(struct ev_loop *loop, ev_io *w, int revents)
{
	struct server_proc *p = w->data;
	char c[256];
	ssize_t n = read(p->out_fd, c, sizeof(c));

	(void)revents;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		ev_io_stop(loop, w);
	if (n < 0 && !ev_is_active(w) && !p->ready) {
		log_error("stopping the server, because its output cannot be read: %s", strerror(errno));
		server_proc_stop(p);
	}
	for (ssize_t i = 0; i < n; i++) {
		if (c[i] != '\n') {
			if (p->line_n < sizeof(p->line) - 1)
				p->line[p->line_n++] = c[i];
			continue;
		}
		p->line[p->line_n] = '\0';
		p->line_n = 0;
		on_line(p);
	}
}

static void on_child(struct ev_loop *loop, ev_child *w, int revents)
{
	struct server_proc *p = w->data;

	(void)revents;
	ev_child_stop(loop, w);
	p->running = false;
	p->events->on_exit(p->arg, w->rstatus);
}

/* In the child, before exec: only async-signal-safe calls. */
static void become_server(char *const *argv, int out, int log, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY);

	/* A process group of its own, so that Ctrl-C reaches only the load generator, which then drains. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	dup2(null, STDIN_FILENO);
	if (null > STDERR_FILENO)
		close(null);
	dup2(out, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	execv(argv[0], argv);
	_exit(127);
}

static int spawn(struct server_proc *p, char *const *argv, const char *log, char *err, size_t err_size)
{
	int fds[2], log_fd, ret = 0;
	pid_t parent = getpid();

	log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (log_fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot write %s: %s", log, path_error(ret));
		return ret;
	}
	if (pipe2(fds, O_CLOEXEC)) {
		ret = -errno;
		snprintf(err, err_size, "cannot make a pipe: %s", strerror(-ret));
		goto out;
	}
	unsetenv("NOTIFY_SOCKET");	/* the server is not the service that systemd started */
	p->pid = fork();
	if (p->pid == 0)
		become_server(argv, fds[1], log_fd, parent);
	close(fds[1]);
	if (p->pid < 0) {
		ret = -errno;
		close(fds[0]);
		snprintf(err, err_size, "cannot start %s: %s", argv[0], strerror(-ret));
		goto out;
	}
	p->out_fd = fds[0];
	p->running = true;
	if (fcntl(p->out_fd, F_SETFL, O_NONBLOCK)) {
		ret = -errno;
		snprintf(err, err_size, "cannot read from %s: %s", argv[0], strerror(-ret));
	}
out:
	close(log_fd);
	return ret;
}

int server_proc_start(char *const *argv, const char *log, struct ev_loop *loop,
		      const struct server_proc_events *events, void *arg, struct server_proc **out,
		      char *err, size_t err_size)
{
	struct server_proc *p = calloc(1, sizeof(*p));
	int ret;

	snprintf(err, err_size, "this machine is out of memory");
	if (!p)
		return -ENOMEM;
	p->out_fd = -1;
	p->loop = loop;
	p->events = events;
	p->arg = arg;
	ret = spawn(p, argv, log, err, err_size);
	ev_child_init(&p->child, on_child, p->pid, 0);
	p->child.data = p;
	ev_io_init(&p->out_io, on_output, p->out_fd, EV_READ);
	p->out_io.data = p;
	if (ret) {
		server_proc_free(p);
		return ret;
	}
	ev_child_start(loop, &p->child);
	ev_io_start(loop, &p->out_io);
	*out = p;
	return 0;
}

void server_proc_pass(struct server_proc *p, const struct server_proc_events *events, void *arg)
{
	p->events = events;
	p->arg = arg;
}

void server_proc_stop(struct server_proc *p)
{
	if (p->running)
		kill(p->pid, SIGTERM);
}

void server_proc_free(struct server_proc *p)
{
	if (!p)
		return;
	ev_io_stop(p->loop, &p->out_io);
	ev_child_stop(p->loop, &p->child);
	if (p->running) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	if (p->out_fd >= 0)
		close(p->out_fd);
	free(p);
}
