/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of server/sandbox.c, each in a process of its own: what is refused, and what goes on. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/host/place.h"
#include "common/host/sample.h"
#include "server/sandbox.h"

/* Returns what `what` returns in a process that has called `before` and then loaded the filter. */
static int behind_it(int (*before)(void), int (*what)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int ret = before && before() ? -EIO : sandbox_enter();

		_exit(ret ? 100 : what());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* 0 if the call was refused, or the number of the one that was not. */
static int refused(long ret, int number)
{
	return ret == -1 && errno == EPERM ? 0 : number;
}

static int call_what_is_not_needed(void)
{
	char *const argv[] = { (char *)(uintptr_t)"/bin/true", NULL };
	struct rlimit limit = { 100, 100 };
	int n = refused(execve("/bin/true", argv, argv + 1), 1);

	n = n ? n : refused(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, argv + 1, 0), 2);
	n = n ? n : refused(syscall(SYS_clone, 0, 0, 0, 0, 0), 3);
	n = n ? n : refused(ptrace(PTRACE_TRACEME, 0, 0, 0), 4);
	n = n ? n : refused(syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0), 5);
	n = n ? n : refused(socket(AF_INET, SOCK_STREAM, 0), 6);
	n = n ? n : refused(unlink("/nonexistent"), 7);
	n = n ? n : refused(kill(getppid(), 0), 8);
	n = n ? n : refused(setrlimit(RLIMIT_NOFILE, &limit), 9);
	return n;
}

TEST(calls__that_no_server_needs__refused)
{
	assert_int_equal(behind_it(NULL, call_what_is_not_needed), 0);
}

static int use_arguments_that_are_not_needed(void)
{
	static const int flags[] = { O_WRONLY, O_RDWR, O_RDONLY | O_CREAT, O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < (int)N_ELEMENTS(flags); i++)
		if (refused(open("/dev/null", flags[i], 0600), 1))
			return 1 + i;
	if (page == MAP_FAILED || refused(mprotect(page, 4096, PROT_READ | PROT_EXEC), 1))
		return 10;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 11;
	return munmap(page, 4096) ? 12 : 0;
}

TEST(arguments__that_write_or_execute__refused)
{
	assert_int_equal(behind_it(NULL, use_arguments_that_are_not_needed), 0);
}

static int listener, fd;	/* a socket that listens, and an end of a pair */

static int open_sockets(void)
{
	int ends[2];

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || listen(listener, 8) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 1;
	fd = ends[0];
	return 0;
}

/* Another process would be sent a signal when somebody writes to this one. */
static int have_signals_sent(void)
{
	const struct f_owner_ex owner = { F_OWNER_PID, getppid() };
	int pid = getppid(), on = 1, n;

	n = refused(fcntl(fd, F_SETOWN, pid), 1);
	n = n ? n : refused(fcntl(fd, F_SETOWN_EX, &owner), 2);
	n = n ? n : refused(fcntl(fd, F_SETSIG, SIGKILL), 3);
	n = n ? n : refused(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK), 4);
	n = n ? n : refused(fcntl(fd, F_NOTIFY, DN_CREATE), 5);
	n = n ? n : refused(fcntl(fd, F_SETLEASE, F_RDLCK), 6);
	n = n ? n : refused(ioctl(fd, FIOSETOWN, &pid), 7);
	n = n ? n : refused(ioctl(fd, SIOCSPGRP, &pid), 8);
	n = n ? n : refused(ioctl(fd, FIOASYNC, &on), 9);
	/* The kernel looks at 32 bits of the number. */
	n = n ? n : refused(syscall(SYS_ioctl, fd, 1ul << 32 | FIOASYNC, &on), 10);
	return n ? n : refused(syscall(SYS_fcntl, fd, 1ul << 32 | F_SETOWN, pid), 11);
}

static int use_the_terminal(void)
{
	int n = refused(ioctl(0, TIOCSTI, "x"), 1), line = 0;

	n = n ? n : refused(ioctl(0, TIOCLINUX, "\3"), 2);
	n = n ? n : refused(ioctl(0, TIOCSETD, &line), 3);
	return n ? n : refused(ioctl(0, TIOCSCTTY, 0), 4);
}

/* A listener that is shut down can be connected to somebody by sending. */
static int connect_a_listener(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct iovec v = { &to, 1 };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &v, .msg_iovlen = 1 };
	int on = 1, n;

	if (shutdown(listener, SHUT_RDWR))
		return 20;
	n = refused(sendto(listener, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&to, sizeof(to)), 1);
	n = n ? n : refused(sendto(listener, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 2);
	n = n ? n : refused(sendmsg(listener, &m, MSG_FASTOPEN | MSG_NOSIGNAL), 3);
	n = n ? n : refused(syscall(SYS_sendmmsg, listener, NULL, 0, 0), 4);
	n = n ? n : refused(connect(listener, (struct sockaddr *)&to, sizeof(to)), 5);
	n = n ? n : refused(setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)), 6);
	n = n ? n : refused(setsockopt(listener, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)), 7);
	n = n ? n : refused(setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &on, sizeof(on)), 8);
	/* Without either the address is ignored, as the socket is not connected. */
	if (n || sendmsg(listener, &m, MSG_NOSIGNAL) != -1 || errno != EPIPE)
		return n ? n : 9;
	n = refused(syscall(SYS_io_uring_setup, 1, NULL), 10);
	n = n ? n : refused(syscall(SYS_pidfd_open, getppid(), 0), 11);
	n = n ? n : refused(syscall(SYS_bpf, 0, NULL, 0), 12);
	return n ? n : refused(prctl(PR_SET_DUMPABLE, 1), 13);
}

TEST(sockets__signals_to_others__refused)
{
	assert_int_equal(behind_it(open_sockets, have_signals_sent), 0);
}

TEST(terminal__input_for_it__refused)
{
	assert_int_equal(behind_it(NULL, use_the_terminal), 0);
}

TEST(sockets__connected_by_sending__refused)
{
	assert_int_equal(behind_it(open_sockets, connect_a_listener), 0);
}

static int client;

static int connect_to_listener(void)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	if (open_sockets() || getsockname(listener, (struct sockaddr *)&a, &len))
		return 1;
	client = socket(AF_INET, SOCK_STREAM, 0);
	return client < 0 || connect(client, (struct sockaddr *)&a, sizeof(a));
}

static int serve_a_socket(void)
{
	static const struct { int level, name; } options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE }, { SOL_SOCKET, SO_SNDBUF }, { SOL_SOCKET, SO_RCVBUF },
		{ SOL_SOCKET, SO_ZEROCOPY },
		{ IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_TCP, TCP_QUICKACK }, { IPPROTO_TCP, TCP_KEEPIDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL }, { IPPROTO_TCP, TCP_KEEPCNT }, { IPPROTO_TCP, TCP_USER_TIMEOUT },
	};
	int s = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
	struct iovec v = { &one, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	char byte;

	if (s < 0 || fcntl(s, F_SETFD, FD_CLOEXEC) || fcntl(s, F_SETFL, fcntl(s, F_GETFL) | O_NONBLOCK) ||
	    ioctl(s, FIONBIO, &one))
		return 1;
	for (int i = 0; i < (int)N_ELEMENTS(options); i++)
		if (setsockopt(s, options[i].level, options[i].name, &one, sizeof(one)))
			return 2 + i;
	if (send(s, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 || sendmsg(s, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 ||
	    recv(client, &byte, 1, 0) != 1)
		return 20;
	return shutdown(s, SHUT_WR) || close(s) ? 21 : 0;
}

TEST(sockets__of_clients__served_as_before)
{
	assert_int_equal(behind_it(connect_to_listener, serve_a_socket), 0);
}

static int read_a_file(void)
{
	struct rlimit limit;
	uint8_t byte;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (zero < 0 || read(zero, &byte, 1) != 1 || close(zero))
		return 1;
	return getrlimit(RLIMIT_NOFILE, &limit) ? 2 : 0;
}

TEST(files__read__as_before)
{
	assert_int_equal(behind_it(NULL, read_a_file), 0);
}

static struct sample first_sample;
static json_t *first_thread;

static int describe(struct sample *sample, json_t **thread_of)
{
	struct sampler *sampler;

	if (sampler_new("", &sampler))
		return -ENOMEM;
	sampler_take(sampler, sample);
	sampler_free(sampler);
	*thread_of = place_thread_json(PLACE_SYS, (pid_t)syscall(SYS_gettid), 0);
	return *thread_of ? 0 : -ENOMEM;
}

static int describe_before(void)
{
	return describe(&first_sample, &first_thread);
}

/* 0 if a sample and the description of a thread know what they knew before; else 1 + the figure, 70 or 80. */
static int describe_again(void)
{
	struct sample now;
	json_t *thread_of;

	if (describe(&now, &thread_of))
		return 80;
	for (int i = 0; i < SAMPLE_N; i++)
		if (isnan(now.v[i]) && !isnan(first_sample.v[i]))
			return 1 + i;
	return json_equal(thread_of, first_thread) && now.n_threads == first_sample.n_threads ? 0 : 70;
}

/* Samples for watching sessions and STATS work behind the filter. */
TEST(samples__and_threads__as_before)
{
	assert_int_equal(behind_it(describe_before, describe_again), 0);
}

static sem_t go;
static pthread_t thread;
static int from_thread = 50;

static void *call_from_thread(void *arg)
{
	(void)arg;
	sem_wait(&go);
	from_thread = call_what_is_not_needed();
	return NULL;
}

static int start_thread(void)
{
	return sem_init(&go, 0, 0) || pthread_create(&thread, NULL, call_from_thread, NULL);
}

static int let_thread_call(void)
{
	sem_post(&go);
	pthread_join(thread, NULL);
	return from_thread;
}

TEST(threads__that_run_already__behind_it_too)
{
	assert_int_equal(behind_it(start_thread, let_thread_call), 0);
}
