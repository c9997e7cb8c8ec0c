/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/server_under_test/server_proc.c: small shell scripts play the server. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen/server_under_test/server_proc.h"
#include "tests/unit/files/scratch.h"

#define PATIENCE_S 30.
#define READY	   "echo 'rdma_server ready: tls=10.77.0.1:7471 rdma_ports=7472,7473'\n"
#define STAY	   "exec sleep 300\n"

static struct ev_loop *loop;
static struct server_proc *proc;
static int n_ready, n_exit, n_kills, exit_status;
static struct addr ready_addr[RAILS_MAX];
static uint32_t n_addrs;
static bool free_on_exit, impatient;
static char dir[SCRATCH_MAX], log_path[SCRATCH_MAX + 8];
static char err[400];
static size_t failing_reads_of;

/* Replaces libc's, to count calls: a reaped pid may already belong to another process. */
int kill(pid_t pid, int signal_number)
{
	n_kills++;
	return (int)syscall(SYS_kill, pid, signal_number);
}

/* Replaces libc's, to make reads of the server's output fail. */
ssize_t read(int fd, void *p, size_t n)
{
	if (n != failing_reads_of)
		return syscall(SYS_read, fd, p, n);
	errno = EIO;
	return -1;
}

static void on_ready(void *arg, const struct addr *tls, uint32_t n)
{
	assert_ptr_equal(arg, &n_ready);
	assert_in_range(n, 1, RAILS_MAX);
	memcpy(ready_addr, tls, n * sizeof(*tls));
	n_addrs = n;
	n_ready++;
}

static void on_exit_(void *arg, int status)
{
	assert_ptr_equal(arg, &n_ready);
	exit_status = status;
	n_exit++;
	if (free_on_exit) {
		server_proc_free(proc);
		proc = NULL;
	}
}

static const struct server_proc_events events = { .on_ready = on_ready, .on_exit = on_exit_ };

static int set_up(void **state)
{
	(void)state;
	loop = ev_default_loop(0);
	n_ready = n_exit = n_kills = exit_status = 0;
	free_on_exit = false;
	failing_reads_of = 0;
	proc = NULL;
	if (!loop || scratch_make(dir))
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	server_proc_free(proc);
	return scratch_remove(dir);
}

static void start(const char *script)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };

	if (server_proc_start((char *const *)(uintptr_t)argv, log_path, loop, &events, &n_ready, &proc, err,
			      sizeof(err)))
		fail_msg("%s", err);
	assert_non_null(proc);
}

static void on_impatient(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
	impatient = true;
}

static void run_until(const int *count)
{
	ev_timer patience;

	impatient = false;
	ev_timer_init(&patience, on_impatient, PATIENCE_S, 0.);
	ev_timer_start(loop, &patience);
	while (!*count && !impatient)
		ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &patience);
	assert_true(*count > 0);
}

static const char *read_log(void)
{
	static char text[4000];
	FILE *f = fopen(log_path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void assert_ready_at(const char *expected)
{
	char text[ADDR_TEXT_MAX];

	run_until(&n_ready);
	assert_int_equal(n_addrs, 1);
	assert_string_equal(addr_text(&ready_addr[0], text), expected);
}

static void assert_rail(uint32_t i, const char *expected)
{
	char text[ADDR_TEXT_MAX];

	assert_string_equal(addr_text(&ready_addr[i], text), expected);
}

TEST(ready__ipv4__parsed)
{
	start(READY STAY);
	assert_ready_at("10.77.0.1:7471");
	assert_int_equal(n_ready, 1);
	assert_int_equal(n_exit, 0);
}

TEST(ready__ipv6_in_brackets__parsed)
{
	start("echo 'rdma_server ready: tls=[fe80::1:2]:65535 rdma_ports=1'\n" STAY);
	assert_ready_at("[fe80::1:2]:65535");
}

TEST(ready__nothing_behind_the_address__parsed)
{
	start("echo 'rdma_server ready: tls=[::1]:1'\n" STAY);
	assert_ready_at("[::1]:1");
}

TEST(ready__in_pieces__put_together)
{
	start("printf 'rdma_server rea'; sleep 0.1; printf 'dy: tls=10.0.0.'; sleep 0.1; printf '9:80'\n"
	      "sleep 0.1; echo 81\n" STAY);
	assert_ready_at("10.0.0.9:8081");
	assert_int_equal(n_ready, 1);
}

TEST(ready__several_rails__all_in_their_order)
{
	start("echo 'rdma_server ready: tls=10.77.0.1:7471,[fe80::2]:7471,10.79.0.1:99 rdma_ports=1,2,3'\n" STAY);
	run_until(&n_ready);
	assert_int_equal(n_addrs, 3);
	assert_rail(0, "10.77.0.1:7471");
	assert_rail(1, "[fe80::2]:7471");
	assert_rail(2, "10.79.0.1:99");
}

/* The longest possible addresses. */
TEST(ready__as_many_rails_as_there_can_be__parsed)
{
	start("printf 'rdma_server ready: tls='\n"
	      "for i in 1 2 3 4 5 6 7; do printf '[2001:1111:2222:3333:4444:5555:6666:111%s]:65535,' $i; done\n"
	      "printf '[2001:1111:2222:3333:4444:5555:6666:1118]:65535 rdma_ports='; seq -s , 10000 10999\n" STAY);
	run_until(&n_ready);
	assert_int_equal(n_addrs, RAILS_MAX);
	assert_rail(7, "[2001:1111:2222:3333:4444:5555:6666:1118]:65535");
}

/* None of these is the ready line. The server ends after them, once all its output was read. */
TEST(ready__garbage__ignored)
{
	start("cat <<'EOF'\n"
	      "\n"
	      "hello\n"
	      "rdma_server ready:\n"
	      "rdma_server ready: tls=\n"
	      "rdma_server ready: tls=:7471\n"
	      "rdma_server ready: tls=10.0.0.2\n"
	      "rdma_server ready: tls=10.0.0.2:\n"
	      "rdma_server ready: tls=10.0.0.2:0 a:7471\n"
	      "rdma_server ready: tls=10.0.0.2:65536\n"
	      "rdma_server ready: tls=10.0.0.2:-1\n"
	      "rdma_server ready: tls=localhost:7471\n"
	      "rdma_server ready: tls=[10.0.0.2:7471\n"
	      "rdma_server ready: tls=[]:7471\n"
	      "rdma_server ready: tls=10.0.0.2:7471,\n"
	      "rdma_server ready: tls=,10.0.0.2:7471\n"
	      "rdma_server ready: tls=10.0.0.2:7471,here:7471\n"
	      "rdma_server ready: tls=10.0.0.1:1,10.0.0.2:1,10.0.0.3:1,10.0.0.4:1,10.0.0.5:1,10.0.0.6:1,10.0.0.7:1,"
	      "10.0.0.8:1,10.0.0.9:1 rdma_ports=1\n"
	      "rdma_server ready: tls=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:7471\n"
	      " rdma_server ready: tls=10.0.0.2:7471\n"
	      "now rdma_server ready: tls=10.0.0.2:7471\n"
	      "EOF\n" READY STAY);
	assert_ready_at("10.77.0.1:7471");
	assert_int_equal(n_ready, 1);
}

TEST(ready__after_a_long_line__still_found)
{
	start("head -c 100000 /dev/zero | tr '\\0' x; echo\n"
	      "head -c 511 /dev/zero | tr '\\0' y; echo\n"
	      "head -c 512 /dev/zero | tr '\\0' z; echo\n" READY STAY);
	assert_ready_at("10.77.0.1:7471");
	assert_int_equal(n_ready, 1);
}

/* As long as with the ports of 256 threads. */
TEST(ready__long_itself__parsed)
{
	start("printf 'rdma_server ready: tls=10.0.0.3:7471 rdma_ports='; seq -s , 10000 10999\n" STAY);
	assert_ready_at("10.0.0.3:7471");
}

TEST(exit__with_a_status__reported)
{
	start("exit 3\n");
	run_until(&n_exit);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 3);
	assert_int_equal(n_ready, 0);
	/* Nothing is left to stop or kill. */
	server_proc_stop(proc);
	server_proc_free(proc);
	proc = NULL;
	assert_int_equal(n_kills, 0);
	assert_int_equal(n_exit, 1);
}

TEST(exit__by_a_signal__reported)
{
	start("kill -KILL $$\n");
	run_until(&n_exit);
	assert_true(WIFSIGNALED(exit_status));
	assert_int_equal(WTERMSIG(exit_status), SIGKILL);
}

TEST(exit__freed_in_the_callback__safe)
{
	free_on_exit = true;
	start(READY "exit 0\n");
	run_until(&n_exit);
	assert_null(proc);
}

TEST(exit__output_closed_before__no_busy_loop)
{
	int turns = 0;

	start("exec >&-; sleep 0.3; exit 0\n");
	for (; !n_exit && turns < 1000; turns++)
		ev_run(loop, EVRUN_ONCE);
	assert_int_equal(n_exit, 1);
	assert_in_range(turns, 1, 20);
}

/* Otherwise nobody would notice that the server is ready. */
TEST(output__cannot_be_read__server_is_stopped)
{
	failing_reads_of = 256;
	start("echo hello\n" STAY);
	run_until(&n_exit);
	assert_true(WIFSIGNALED(exit_status));
	assert_int_equal(WTERMSIG(exit_status), SIGTERM);
}

TEST(start__program_missing__exits_with_127)
{
	char *argv[] = { (char *)(uintptr_t)"/nonexistent/rdma_server", NULL };

	assert_int_equal(server_proc_start(argv, log_path, loop, &events, &n_ready, &proc, err, sizeof(err)), 0);
	run_until(&n_exit);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 127);
}

TEST(start__log_not_writable__a_line_and_no_process)
{
	char *argv[] = { (char *)(uintptr_t)"/bin/true", NULL };

	assert_int_equal(server_proc_start(argv, "/nonexistent/server.log", loop, &events, &n_ready, &proc, err,
					   sizeof(err)), -ENOENT);
	assert_null(proc);
	assert_non_null(strstr(err, "/nonexistent/server.log"));
	assert_non_null(strstr(err, strerror(ENOENT)));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

TEST(start__log_is_a_link__not_followed)
{
	char *argv[] = { (char *)(uintptr_t)"/bin/true", NULL }, link[sizeof(log_path) + 8];

	snprintf(link, sizeof(link), "%s.link", log_path);
	assert_int_equal(symlink(log_path, link), 0);
	assert_int_equal(server_proc_start(argv, link, loop, &events, &n_ready, &proc, err, sizeof(err)), -ELOOP);
	assert_null(proc);
	assert_non_null(strstr(err, "symbolic link"));
	assert_int_equal(unlink(link), 0);
}

TEST(stop__running__sigterm_and_its_exit)
{
	start("trap 'echo drained >&2; exit 7' TERM\n" READY "while :; do sleep 0.05; done\n");
	run_until(&n_ready);
	server_proc_stop(proc);
	run_until(&n_exit);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 7);
	assert_string_equal(read_log(), "drained\n");
}

/* Returns the pid that a script wrote to its log. */
static pid_t logged_pid(void)
{
	pid_t pid = (pid_t)strtol(read_log(), NULL, 10);

	assert_true(pid > 1);
	return pid;
}

TEST(free__deaf_to_sigterm__killed_and_reaped)
{
	pid_t pid;

	start("trap '' TERM\necho $$ >&2\n" READY STAY);
	run_until(&n_ready);
	pid = logged_pid();
	server_proc_stop(proc);
	assert_int_equal(kill(pid, 0), 0);
	server_proc_free(proc);
	proc = NULL;
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(n_exit, 0);
}

/* If the generator is killed, the server must not stay behind. */
TEST(parent__dies__server_gets_sigterm)
{
	siginfo_t info;
	pid_t pid, generator;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	generator = fork();
	assert_true(generator >= 0);
	if (generator == 0) {
		start("echo $$ >&2\n" STAY);
		while (!strchr(read_log(), '\n'))
			usleep(1000);
		_exit(0);
	}
	assert_int_equal(waitpid(generator, NULL, 0), generator);
	pid = logged_pid();
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	assert_int_equal(info.si_code, CLD_KILLED);
	assert_int_equal(info.si_status, SIGTERM);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TEST(log__stderr_only__behind_what_is_there)
{
	FILE *f = fopen(log_path, "w");

	assert_non_null(f);
	fputs("earlier\n", f);
	fclose(f);
	start("echo to stdout\necho to stderr >&2\nexit 0\n");
	run_until(&n_exit);
	assert_string_equal(read_log(), "earlier\nto stderr\n");
}

TEST(stdin__read__empty)
{
	start("read -r x && exit 1\nexit 0\n");
	run_until(&n_exit);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 0);
}

/* Ctrl-C on the terminal must reach only the generator. */
TEST(process_group__its_own__not_the_generators)
{
	start("echo $$ >&2\n" READY STAY);
	run_until(&n_ready);
	assert_int_equal(getpgid(logged_pid()), logged_pid());
}

/* Counts the descriptors that this process would pass on at exec. */
static int count_inheritable(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);

		n += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	return n;
}

/* The server does not inherit the pipe's other end, or the log's original descriptor. */
TEST(descriptors__made_for_it__handed_on_once)
{
	int n = count_inheritable();

	start("ls /proc/self/fd | wc -l >&2\nexit 0\n");
	run_until(&n_exit);
	assert_int_equal(strtol(read_log(), NULL, 10), n + 1);	/* ls has the folder open, too */
}

TEST_EACH(set_up, tear_down)
