/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/host/res.c: does the figure move when the thing it counts is done? */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/host/res.h"

#define MIB		 (UINT64_C(1) << 20)
#define NS_PER_S	 UINT64_C(1000000000)
#define EXTRA_FDS	 7
#define EXTRA_THREADS	 3
#define TOUCHED_BYTES	 (64 * MIB)
#define LOCKED_BYTES	 (1 * MIB)
#define BURN_NS		 60000000
#define TICK_NS		 (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK))

static struct res_usage usage_now(void)
{
	struct res_usage u;

	memset(&u, 0xa5, sizeof(u));
	assert_int_equal(res_usage_self(&u), 0);
	return u;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Computes for that much CPU time of this process. */
static void burn(uint64_t ns)
{
	uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start < ns)
		for (volatile int i = 0; i < 100000; i++)
			;
}

TEST(usage_cpu__after_computing__as_the_process_clock)
{
	struct res_usage before = usage_now(), after;
	uint64_t clock = clock_ns(CLOCK_PROCESS_CPUTIME_ID), spent;

	burn(BURN_NS);
	after = usage_now();
	clock = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock;
	assert_true(after.cpu_user_ns >= before.cpu_user_ns);
	assert_true(after.cpu_system_ns >= before.cpu_system_ns);
	spent = after.cpu_user_ns - before.cpu_user_ns + after.cpu_system_ns - before.cpu_system_ns;
	assert_in_range(spent, clock / 2, clock + 2 * TICK_NS);
}

TEST(heap__allocated_and_freed__counted)
{
	uint64_t before, with, after;
	void *p;

	assert_int_equal(res_heap_bytes(&before), 0);
	p = malloc(LOCKED_BYTES);
	assert_non_null(p);
	assert_int_equal(res_heap_bytes(&with), 0);
	free(p);
	assert_int_equal(res_heap_bytes(&after), 0);
	if (with == before && after == before) {
		print_message("skipped: a sanitizer allocates instead of the C library\n");
		skip();
	}
	assert_in_range(with - before, LOCKED_BYTES, LOCKED_BYTES + 8192);
	assert_int_equal(after, before);
}

TEST(usage_fds__opened_and_closed__counted)
{
	uint64_t before = usage_now().fds;
	int fds[EXTRA_FDS];

	for (int i = 0; i < EXTRA_FDS; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(usage_now().fds, before + EXTRA_FDS);
	for (int i = 0; i < EXTRA_FDS; i++)
		close(fds[i]);
	assert_int_equal(usage_now().fds, before);
}

/* Against a count of another kind: which of the low descriptors are open. */
TEST(usage_fds__now__all_open_descriptors)
{
	uint64_t open_fds = 0;

	for (int fd = 0; fd < 1024; fd++)
		open_fds += fcntl(fd, F_GETFD) >= 0;
	assert_int_equal(usage_now().fds, open_fds);
}

static void *wait_twice(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

TEST(usage_threads__three_more__counted)
{
	pthread_t threads[1 + EXTRA_THREADS];
	pthread_barrier_t barrier;
	uint64_t before;

	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2 + EXTRA_THREADS), 0);
	/* Measured after the first, because ThreadSanitizer adds a thread of its own to that. */
	assert_int_equal(pthread_create(&threads[0], NULL, wait_twice, &barrier), 0);
	before = usage_now().threads;
	for (int i = 1; i <= EXTRA_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_twice, &barrier), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(usage_now().threads, before + EXTRA_THREADS);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i <= EXTRA_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static char *map_bytes(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

TEST(usage_rss__memory_touched__grows_by_it)
{
	uint64_t before = usage_now().rss_bytes, after;
	char *p = map_bytes(TOUCHED_BYTES);

	memset(p, 1, TOUCHED_BYTES);
	after = usage_now().rss_bytes;
	assert_int_equal(munmap(p, TOUCHED_BYTES), 0);
	/* Slack below: the kernel batches its counters per CPU. Above: a sanitizer's shadow. */
	assert_in_range(after - before, TOUCHED_BYTES * 3 / 4, TOUCHED_BYTES * 8);
	assert_in_range(usage_now().rss_bytes, 0, after - TOUCHED_BYTES / 2);
}

TEST(usage_pinned__memory_locked__exactly_counted)
{
	uint64_t before = usage_now().pinned_bytes;
	char *p = map_bytes(LOCKED_BYTES);

	if (syscall(SYS_mlock, p, LOCKED_BYTES)) {	/* ASan makes nothing of mlock() */
		munmap(p, LOCKED_BYTES);
		print_message("skipped: locking 1 MiB is refused; raise `ulimit -l`\n");
		skip();
	}
	assert_int_equal(usage_now().pinned_bytes, before + LOCKED_BYTES);
	assert_int_equal(munmap(p, LOCKED_BYTES), 0);
	assert_int_equal(usage_now().pinned_bytes, before);
}

TEST(usage__no_descriptor_left__error_and_no_result)
{
	struct res_usage u = { .fds = 12345 };
	struct rlimit old, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(res_usage_self(&u), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(u.fds, 12345);
}

/* The sum of the numbers in a file's lines that begin with `name`. */
static double sum_of(const char *path, const char *name)
{
	FILE *in = fopen(path, "re");
	char line[256], word[64];
	double sum = 0, n;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in))
		if (sscanf(line, " %63s %lf", word, &n) == 2 && strcmp(word, name) == 0)
			sum += n;
	fclose(in);
	return sum;
}

/* Also right after a process has freed memory, whose pages go to the CPU's list first. */
TEST(machine_kernel__now__what_is_free_is_not_in_it)
{
	static const char *const others[] = { "MemFree:", "Buffers:", "Cached:", "AnonPages:" };
	char *p = map_bytes(TOUCHED_BYTES);
	double expected, slack = 8 << 20;
	uint64_t bytes;

	memset(p, 1, TOUCHED_BYTES);
	assert_int_equal(munmap(p, TOUCHED_BYTES), 0);
	expected = sum_of("/proc/meminfo", "MemTotal:") * 1024;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		expected -= sum_of("/proc/meminfo", others[i]) * 1024;
	expected -= sum_of("/proc/zoneinfo", "count:") * (double)sysconf(_SC_PAGESIZE);
	assert_int_equal(res_machine_kernel_bytes(&bytes), 0);
	assert_float_equal((double)bytes, expected, slack);
}

TEST(machine_cpu__one_cpu_computing__busy_grows_sum_is_the_time)
{
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct res_machine_cpu before, after;
	uint64_t start, elapsed, busy, idle;

	start = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(res_machine_cpu(&before), 0);
	burn(10 * BURN_NS);
	assert_int_equal(res_machine_cpu(&after), 0);
	elapsed = clock_ns(CLOCK_MONOTONIC) - start;
	busy = after.busy_ns - before.busy_ns;
	idle = after.idle_ns - before.idle_ns;
	assert_true(busy >= 5 * BURN_NS);
	assert_in_range(busy + idle, elapsed * cpus * 3 / 4, elapsed * cpus * 5 / 4 + 8 * TICK_NS);
	assert_true(after.softirq_ns >= before.softirq_ns);
	assert_true(after.softirq_ns <= after.busy_ns);
}

/* Runs `check` where lowered limits do not matter to the other tests. */
static void in_child(bool (*check)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(check() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool set_soft(int resource, rlim_t soft)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return false;
	limit.rlim_cur = soft;
	return setrlimit(resource, &limit) == 0;
}

static bool nofile_is_raised(void)
{
	struct rlimit limit;

	return set_soft(RLIMIT_NOFILE, 64) && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       limit.rlim_cur == 64 && res_raise_nofile() == limit.rlim_max &&
	       getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == limit.rlim_max;
}

TEST(raise_nofile__lowered_soft_limit__back_at_the_hard_one)
{
	in_child(nofile_is_raised);
}

static bool memlock_is_raised(void)
{
	struct rlimit limit;
	uint64_t raised;

	if (!set_soft(RLIMIT_MEMLOCK, 4096))
		return false;
	raised = res_raise_memlock();
	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == limit.rlim_max &&
	       (raised == limit.rlim_max || raised == UINT64_MAX);
}

TEST(raise_memlock__lowered_soft_limit__back_at_the_hard_one)
{
	in_child(memlock_is_raised);
}

/* Without the capability the limit itself counts; root's is dropped by becoming nobody. */
static bool memlock_counts_for_nobody(void)
{
	struct rlimit limit = { .rlim_cur = 4096, .rlim_max = 65536 };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || (geteuid() == 0 && setuid(65534)))
		return false;
	return res_raise_memlock() == 65536;
}

TEST(raise_memlock__without_the_capability__the_limit)
{
	in_child(memlock_counts_for_nobody);
}

static const json_t *member(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!value)
		fail_msg("%s is missing", name);
	return value;
}

TEST(environment__now__agrees_with_the_system)
{
	json_auto_t *env = res_environment_json();
	struct utsname uts;

	assert_non_null(env);
	assert_int_equal(uname(&uts), 0);
	assert_string_equal(json_string_value(member(env, "kernel")), uts.release);
	assert_string_equal(json_string_value(member(env, "hostname")), uts.nodename);
	assert_int_equal(json_integer_value(member(env, "cores")), sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(json_integer_value(member(env, "memory_bytes")),
			 sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	assert_true(json_is_string(member(env, "cpu_model")) ||
		    json_is_null(member(env, "cpu_model")));
	assert_true(json_is_boolean(member(env, "is_virtual_machine")));
}

static void assert_limit(const json_t *env, const char *name, int resource)
{
	const json_t *j = member(member(env, "rlimits"), name);
	struct rlimit limit;

	assert_int_equal(getrlimit(resource, &limit), 0);
	if (limit.rlim_cur == RLIM_INFINITY)
		assert_true(json_is_null(member(j, "soft")));
	else
		assert_int_equal(json_integer_value(member(j, "soft")), limit.rlim_cur);
	if (limit.rlim_max == RLIM_INFINITY)
		assert_true(json_is_null(member(j, "hard")));
	else
		assert_int_equal(json_integer_value(member(j, "hard")), limit.rlim_max);
}

static void assert_of(const char *text, double cpus, double memory_bytes)
{
	json_auto_t *env = json_loads(text, 0, NULL);
	double got_cpus = res_cpus_of(env), got_bytes = res_memory_of(env);

	assert_non_null(env);
	assert_true(isnan(cpus) ? isnan(got_cpus) : got_cpus == cpus);
	assert_true(isnan(memory_bytes) ? isnan(got_bytes) : got_bytes == memory_bytes);
}

TEST(environment_of_another_host__machine_and_group__the_lower_one)
{
	assert_of("{\"cores\": 16, \"memory_bytes\": 900, \"cgroup\": {\"cpus\": 1.5, \"memory_bytes\": 300}}",
		  1.5, 300);
	assert_of("{\"cores\": 1, \"memory_bytes\": 200, \"cgroup\": {\"cpus\": 1.5, \"memory_bytes\": 300}}",
		  1, 200);
	assert_of("{\"cores\": 16, \"memory_bytes\": 900, \"cgroup\": {\"cpus\": null, \"memory_bytes\": null}}",
		  16, 900);
	assert_of("{\"cores\": 16, \"memory_bytes\": 900, \"cgroup\": {\"cpus\": -1, \"memory_bytes\": 0}}",
		  16, 900);
	assert_of("{\"cores\": 1e300, \"memory_bytes\": \"much\", \"cgroup\": 7}", NAN, NAN);
	assert_of("{}", NAN, NAN);
}

TEST(environment_of_another_host__processes_and_threads__the_lowest_limit)
{
	json_auto_t *env = json_loads("{\"rlimits\": {\"nproc\": {\"soft\": 300}}, \"cgroup\": {\"pids\": 200}, "
				      "\"sysctls\": {\"kernel.threads-max\": 63421}}", 0, NULL);

	assert_true(res_tasks_of(env) == 200);
	json_object_del(env, "cgroup");
	assert_true(res_tasks_of(env) == 300);
	json_object_del(env, "rlimits");
	assert_true(res_tasks_of(env) == 63421);
	json_object_del(env, "sysctls");
	assert_true(isnan(res_tasks_of(env)));
}

TEST(environment_rlimits__lowered_soft_limit__shown)
{
	struct rlimit old;
	json_auto_t *env = NULL;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(set_soft(RLIMIT_NOFILE, 99));
	env = res_environment_json();
	assert_non_null(env);
	assert_limit(env, "nofile", RLIMIT_NOFILE);
	assert_limit(env, "memlock", RLIMIT_MEMLOCK);
	/* With CAP_SYS_RESOURCE it does not bind. */
	if (!json_is_null(json_at(env, "rlimits.nproc.soft")))
		assert_limit(env, "nproc", RLIMIT_NPROC);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

/* The last test: it leaves the limit raised. */
TEST(environment_rlimits__unlimited__null)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	const json_t *memlock;
	json_auto_t *env = NULL;

	if (setrlimit(RLIMIT_MEMLOCK, &unlimited)) {
		print_message("skipped: raising `ulimit -l` needs CAP_SYS_RESOURCE\n");
		skip();
	}
	env = res_environment_json();
	assert_non_null(env);
	memlock = member(member(env, "rlimits"), "memlock");
	assert_true(json_is_null(member(memlock, "soft")));
	assert_true(json_is_null(member(memlock, "hard")));
	assert_true(res_raise_memlock() == UINT64_MAX);
}

TEST(environment_sysctls__numbers_pairs_and_absent__by_kind)
{
	json_auto_t *env = res_environment_json();
	const json_t *sysctls, *range;
	long long low, high, somaxconn;
	FILE *f;

	assert_non_null(env);
	sysctls = member(env, "sysctls");
	f = fopen("/proc/sys/net/core/somaxconn", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lld", &somaxconn), 1);
	fclose(f);
	assert_int_equal(json_integer_value(member(sysctls, "net.core.somaxconn")), somaxconn);

	range = member(sysctls, "net.ipv4.ip_local_port_range");
	f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lld %lld", &low, &high), 2);
	fclose(f);
	assert_int_equal(json_array_size(range), 2);
	assert_int_equal(json_integer_value(json_array_get(range, 0)), low);
	assert_int_equal(json_integer_value(json_array_get(range, 1)), high);

	if (access("/proc/sys/net/rdma_ucm/max_backlog", F_OK))
		assert_true(json_is_null(member(sysctls, "net.rdma_ucm.max_backlog")));
	else
		assert_true(json_is_integer(member(sysctls, "net.rdma_ucm.max_backlog")));
}

static void assert_accelerator(const char *told, const char *expected, bool emulated)
{
	json_auto_t *env = NULL;

	assert_int_equal(setenv("RAMPART_ACCELERATOR", told, 1), 0);
	env = res_environment_json();
	assert_int_equal(unsetenv("RAMPART_ACCELERATOR"), 0);
	assert_non_null(env);
	assert_string_equal(json_string_value(member(env, "accelerator")), expected);
	assert_true(json_boolean_value(member(env, "is_virtual_machine")));
	assert_int_equal(json_boolean_value(member(env, "is_emulated_cpu")), emulated);
}

TEST(environment_accelerator__told__believed)
{
	assert_accelerator("tcg", "tcg", true);
	assert_accelerator("kvm", "kvm", false);
}

TEST(environment_accelerator__nonsense__as_if_not_told)
{
	json_auto_t *untold = NULL, *nonsense = NULL;

	unsetenv("RAMPART_ACCELERATOR");
	untold = res_environment_json();
	assert_int_equal(setenv("RAMPART_ACCELERATOR", "warp", 1), 0);
	nonsense = res_environment_json();
	unsetenv("RAMPART_ACCELERATOR");
	assert_true(json_equal(member(untold, "accelerator"), member(nonsense, "accelerator")));
	assert_int_equal(json_is_string(member(untold, "hypervisor")),
			 json_boolean_value(member(untold, "is_virtual_machine")));
}
