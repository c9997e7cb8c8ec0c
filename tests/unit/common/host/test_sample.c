/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/host/sample.c: figures of this process against what other programs read of it, and texts of
 * /proc that are not as they should be. */
#include "tests/unit/helpers/unit.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/host/sample.h"
#include "tests/unit/files/scratch.h"

#define assert_near(a, b, most) \
	do { \
		double a_ = (a), b_ = (b); \
		if (!(fabs(a_ - b_) <= (most))) \
			fail_msg("%s is %f, not %f", #a, a_, b_); \
	} while (0)

static char dir[SCRATCH_MAX];	/* stands for the root folder */
static bool has_proc;		/* it is there; the tear-down removes it */
static struct sampler *sampler;
static struct sample now;

static int teardown(void **state)
{
	(void)state;
	sampler_free(sampler);
	sampler = NULL;
	if (has_proc)
		assert_int_equal(scratch_remove(dir), 0);
	has_proc = false;
	return 0;
}

static void take(void)
{
	memset(&now, 0xa5, sizeof(now));
	sampler_take(sampler, &now);
}

static void begin(const char *root)
{
	assert_int_equal(sampler_new(root, &sampler), 0);
	take();
}

/* The number that a shell command prints; %d in it is this process. Its output goes to a file, so that no descriptor
 * is open here meanwhile. */
static double of_shell(const char *format)
{
	char command[512], file[SCRATCH_MAX + 8], line[64] = "";
	FILE *out;

	assert_int_equal(scratch_make(dir), 0);
	snprintf(file, sizeof(file), "%s/out", dir);
	snprintf(command, sizeof(command), "{ ");
	snprintf(command + 2, sizeof(command) - 2, format, getpid());
	snprintf(command + strlen(command), sizeof(command) - strlen(command), "; } >%s", file);
	assert_int_equal(system(command), 0);
	out = fopen(file, "r");
	assert_non_null(out);
	assert_non_null(fgets(line, sizeof(line), out));
	fclose(out);
	assert_int_equal(scratch_remove(dir), 0);
	return atof(line);
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void burn(double s)
{
	for (double end = cpu_s() + s; cpu_s() < end;)
		for (volatile int i = 0; i < 100000; i++)
			;
}

TEST(take__descriptors__as_ls_counts)
{
	int fds[9];
	double before;

	begin("");
	before = now.v[SAMPLE_FDS];
	assert_near(of_shell("ls /proc/%d/fd | wc -l"), before, 0);
	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	take();
	assert_near(now.v[SAMPLE_FDS], before + N_ELEMENTS(fds), 0);
	for (size_t i = 0; i < N_ELEMENTS(fds); i++)
		close(fds[i]);
}

TEST(take__memory_and_threads__as_status_says)
{
	begin("");
	assert_near(now.v[SAMPLE_THREADS], of_shell("awk '/^Threads/ {print $2}' /proc/%d/status"), 0);
	assert_near(now.v[SAMPLE_RSS_BYTES] / 1024, of_shell("awk '/^VmRSS/ {print $2}' /proc/%d/status"), 512);
	assert_near(now.v[SAMPLE_PINNED_BYTES] / 1024,
			    of_shell("awk '/^Vm(Lck|Pin)/ {n += $2} END {print n}' /proc/%d/status"), 0);
}

TEST(take__cpu_and_switches__as_other_programs_read)
{
	struct sample before;
	double ticks, voluntary;

	begin("");
	before = now;
	burn(0.2);
	for (int i = 0; i < 20; i++)
		usleep(1000);
	ticks = of_shell("sed 's/.*) //' /proc/%d/stat | awk '{print $12 + $13}'");
	voluntary = of_shell("cat /proc/%d/task/*/status | awk '/^voluntary/ {n += $2} END {print n}'");
	take();
	assert_true(now.v[SAMPLE_CPU_USER_S] + now.v[SAMPLE_CPU_SYSTEM_S] -
		    before.v[SAMPLE_CPU_USER_S] - before.v[SAMPLE_CPU_SYSTEM_S] >= 0.2);
	assert_near(now.v[SAMPLE_CPU_USER_S] + now.v[SAMPLE_CPU_SYSTEM_S], ticks / (double)sysconf(_SC_CLK_TCK), 0.1);
	assert_true(now.v[SAMPLE_SWITCHES_VOLUNTARY] - before.v[SAMPLE_SWITCHES_VOLUNTARY] >= 20);
	/* Waiting for the shells takes some. */
	assert_true(voluntary <= now.v[SAMPLE_SWITCHES_VOLUNTARY]);
	assert_true(voluntary >= now.v[SAMPLE_SWITCHES_VOLUNTARY] - 20);
	assert_true(now.taken_ns > before.taken_ns);
}

TEST(take__machine__as_other_programs_read)
{
	double all_s, tick_s = 1. / (double)sysconf(_SC_CLK_TCK);

	begin("");
	all_s = of_shell("awk '/^cpu / {print $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9; exit}' /proc/stat") * tick_s;
	assert_near(now.v[SAMPLE_MACHINE_USER_S] + now.v[SAMPLE_MACHINE_SYSTEM_S] + now.v[SAMPLE_MACHINE_SOFTIRQ_S] +
			    now.v[SAMPLE_MACHINE_STEAL_S] + now.v[SAMPLE_MACHINE_IDLE_S], all_s,
			    30 * (double)sysconf(_SC_NPROCESSORS_ONLN));
	assert_near(now.v[SAMPLE_AVAILABLE_BYTES] / 1024, of_shell("awk '/^MemAvailable/ {print $2}' /proc/meminfo"),
			    now.v[SAMPLE_AVAILABLE_BYTES] / 1024 / 2);
	assert_near(now.v[SAMPLE_SLAB_BYTES] / 1024, of_shell("awk '/^Slab/ {print $2}' /proc/meminfo"),
			    now.v[SAMPLE_SLAB_BYTES] / 1024 / 2);
	assert_true(now.v[SAMPLE_RUNNABLE] >= 1);
	/* The first sample has nothing to compare with. */
	assert_true(isnan(now.v[SAMPLE_BUSIEST_CORE_RATIO]));
	burn(0.3);
	take();
	assert_true(now.v[SAMPLE_BUSIEST_CORE_RATIO] > 0 && now.v[SAMPLE_BUSIEST_CORE_RATIO] <= 1);
	assert_true(isnan(now.v[SAMPLE_QPS]));
}

static pthread_barrier_t barrier;

static void *burn_and_wait(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	burn(0.2);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static const struct sample_thread *thread_named(const char *name)
{
	for (uint32_t i = 0; i < now.n_threads; i++)
		if (strcmp(now.thread[i].name, name) == 0)
			return &now.thread[i];
	return NULL;
}

TEST(take__thread_that_works__its_time_and_its_name)
{
	double before;
	pthread_t t;

	begin("");
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&t, NULL, burn_and_wait, NULL), 0);
	assert_int_equal(pthread_setname_np(t, "a (b) \xff c"), 0);
	pthread_barrier_wait(&barrier);
	take();
	assert_non_null(thread_named("main"));
	assert_non_null(thread_named("a (b) ? c"));
	before = thread_named("a (b) ? c")->user_s + thread_named("a (b) ? c")->system_s;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	take();
	assert_true(thread_named("a (b) ? c")->user_s + thread_named("a (b) ? c")->system_s - before >= 0.15);
	pthread_barrier_wait(&barrier);
	pthread_join(t, NULL);
	take();
	assert_null(thread_named("a (b) ? c"));
	pthread_barrier_destroy(&barrier);
}

static void put(const char *path, const char *text)
{
	char below_proc[64];

	snprintf(below_proc, sizeof(below_proc), "proc/%s", path);
	scratch_put(dir, below_proc, text);
}

static void make_proc(void)
{
	assert_int_equal(scratch_make(dir), 0);
	has_proc = true;
	put("self/fd/", "");
	put("self/task/", "");
}

#define TICKS_S(n) ((n) / (double)sysconf(_SC_CLK_TCK))

TEST(take__known_texts__their_figures)
{
	make_proc();
	put("self/task/77/", "");
	put("stat", "cpu  100 20 30 400 5 6 7 8 9 10\ncpu0 50 0 0 50 0 0 0 0 0 0\ncpu1 10 0 0 10 0 0 0 0\nintr 5\n");
	put("loadavg", "0.20 0.18 0.12 3/80 11206\n");
	put("meminfo", "MemTotal: 100 kB\nMemAvailable:    64 kB\nSlab: 32 kB\n");
	put("self/status", "Name:\tx\nVmLck:\t4 kB\nVmPin:\t8 kB\nVmRSS:\t16 kB\nThreads:\t1\n");
	put("self/task/77/stat", "77 (x) y) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14\n");
	begin(dir);
	assert_near(now.v[SAMPLE_MACHINE_USER_S], TICKS_S(120), 1e-9);
	assert_near(now.v[SAMPLE_MACHINE_SYSTEM_S], TICKS_S(36), 1e-9);
	assert_near(now.v[SAMPLE_MACHINE_SOFTIRQ_S], TICKS_S(7), 1e-9);
	assert_near(now.v[SAMPLE_MACHINE_STEAL_S], TICKS_S(8), 1e-9);
	assert_near(now.v[SAMPLE_MACHINE_IDLE_S], TICKS_S(405), 1e-9);
	assert_near(now.v[SAMPLE_RUNNABLE], 3, 0);
	assert_near(now.v[SAMPLE_AVAILABLE_BYTES], 64 * 1024, 0);
	assert_near(now.v[SAMPLE_SLAB_BYTES], 32 * 1024, 0);
	assert_near(now.v[SAMPLE_PINNED_BYTES], 12 * 1024, 0);
	assert_near(now.v[SAMPLE_RSS_BYTES], 16 * 1024, 0);
	assert_int_equal(now.n_threads, 1);
	assert_string_equal(now.thread[0].name, "x) y");
	assert_near(now.thread[0].user_s, TICKS_S(11), 1e-9);
	assert_near(now.thread[0].system_s, TICKS_S(12), 1e-9);
	/* cpu0 was busy for 30 of 40 ticks, cpu1 not at all. */
	put("stat", "cpu  100 20 30 400 5 6 7 8\ncpu0 80 0 0 60 0 0 0 0\ncpu1 10 0 0 50 0 0 0 0\n");
	take();
	assert_near(now.v[SAMPLE_BUSIEST_CORE_RATIO], 0.75, 1e-9);
}

static const char *const hostile[] = {
	"", "\n", "cpu", "cpu \ncpu0\ncpu", "cpu 1 2 3\n", "cpu -1 -1 -1 -1 -1 -1 -1 -1\n",
	"cpu99999999999999999999 1 1 1 1 1 1 1 1\ncpu4294967295 1 1 1 1 1 1 1 1\ncpu1024 1 1 1 1 1 1 1 1\n",
	"cpu 99999999999999999999 1 1 1 1 1 1 1\n", "VmRSS:\nVmPin: x kB\nVmLck: -3 kB\nThreads: many\n",
	"1 2 3 4", "1 2 3 /80 5\n", "1 2 3 -1/80 5\n", ")", "(", "77 (x", "77 (x)", "77 (x) R",
	"77 (x) R 1 2 3 4 5 6 7 8 9 10 -11 -12", "77 )x( R 1 2 3 4 5 6 7 8 9 10 x y", "\x80\xff\xfe (\xff) \xff",
};

TEST(take__hostile_texts__null_and_no_crash)
{
	make_proc();
	put("self/task/77/", "");
	put("self/task/x/", "");
	begin(dir);
	for (size_t i = 0; i < N_ELEMENTS(hostile); i++) {
		json_t *o;

		put("stat", hostile[i]);
		put("loadavg", hostile[i]);
		put("meminfo", hostile[i]);
		put("self/status", hostile[i]);
		put("self/task/77/stat", hostile[i]);
		take();
		for (int f = SAMPLE_RSS_BYTES; f < SAMPLE_N; f++)
			if (f != SAMPLE_FDS && !isnan(now.v[f]))
				fail_msg("%s of '%s' is %f", sample_names[f], hostile[i], now.v[f]);
		assert_true(now.v[SAMPLE_CPU_USER_S] >= 0);
		o = sample_json(&now);
		assert_non_null(o);
		assert_true(json_is_null(json_object_get(o, "rss_bytes")));
		json_decref(o);
	}
}

/* A file that is not there at first is found when it is there. */
TEST(take__nothing_there__null_and_tried_again)
{
	make_proc();
	begin(dir);
	assert_true(isnan(now.v[SAMPLE_RUNNABLE]));
	assert_int_equal(now.n_threads, 0);
	put("loadavg", "0 0 0 7/8 9\n");
	take();
	assert_near(now.v[SAMPLE_RUNNABLE], 7, 0);
}

/* A group of 1.5 CPUs and 1 MiB on a machine with more, which has used 640 KiB, 512 KiB of it page cache. */
static void put_group(const char *throttled)
{
	char text[96];

	put("meminfo", "MemAvailable:    2048 kB\n");
	put("self/cgroup", "0::/pod\n");
	put("self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	scratch_put(dir, "cg/pod/cpu.max", "150000 100000\n");
	snprintf(text, sizeof(text), "usage_usec 3000000\nnr_throttled 1\nthrottled_usec %s\n", throttled);
	scratch_put(dir, "cg/pod/cpu.stat", text);
	scratch_put(dir, "cg/pod/memory.max", "1048576\n");
	scratch_put(dir, "cg/pod/memory.current", "655360\n");
	scratch_put(dir, "cg/pod/memory.stat", "inactive_file 524288\nactive_file 0\n");
	scratch_put(dir, "cg/pod/memory.events", "high 0\nmax 4\noom_kill 1\n");
}

TEST(take__limited_group__its_figures_and_what_its_limit_leaves)
{
	make_proc();
	put_group("250000");
	begin(dir);
	assert_near(now.v[SAMPLE_CGROUP_CPU_S], 3, 1e-9);
	assert_near(now.v[SAMPLE_CGROUP_THROTTLED_S], 0.25, 1e-9);
	assert_near(now.v[SAMPLE_CGROUP_MEMORY_HITS], 4, 0);
	assert_near(now.v[SAMPLE_CGROUP_OOM_KILLS], 1, 0);
	assert_near(now.v[SAMPLE_AVAILABLE_BYTES], 1048576 - (655360 - 524288), 0);
	/* The machine has less than the limit leaves. */
	put_group("350000");
	put("meminfo", "MemAvailable:    64 kB\n");
	take();
	assert_near(now.v[SAMPLE_AVAILABLE_BYTES], 64 * 1024, 0);
	assert_near(now.v[SAMPLE_CGROUP_THROTTLED_S], 0.35, 1e-9);
}

TEST(take__damaged_figures_of_the_group__null)
{
	make_proc();
	put_group("-5");
	scratch_put(dir, "cg/pod/memory.current", "max\n");
	begin(dir);
	assert_true(isnan(now.v[SAMPLE_CGROUP_THROTTLED_S]));
	assert_near(now.v[SAMPLE_AVAILABLE_BYTES], 2048 * 1024, 0);
}

TEST(json__written_and_read__the_same)
{
	struct sample before;
	json_auto_t *o = NULL;

	begin("");
	now.v[SAMPLE_QPS] = 17;
	before = now;
	o = sample_json(&now);
	assert_non_null(o);
	memset(&now, 0xa5, sizeof(now));
	sample_read(o, &now);
	assert_true(now.taken_ns == before.taken_ns);
	for (int f = 0; f < SAMPLE_N; f++) {
		assert_true(json_object_get(o, sample_names[f]) != NULL);
		if (isnan(before.v[f]))
			assert_true(isnan(now.v[f]));
		else
			assert_near(now.v[f], before.v[f], 1e-6);
	}
	assert_int_equal(now.n_threads, before.n_threads);
	assert_string_equal(now.thread[0].name, before.thread[0].name);
}

TEST(json__hostile__null)
{
	static const char *const texts[] = {
		"null", "[]", "{}", "7",
		"{\"taken_ns\": -5, \"fds\": \"7\", \"rss_bytes\": -1, \"qps\": 1e300, \"by_thread\": 3}",
		("{\"taken_ns\": 1e300, \"by_thread\": [1, null, {}, {\"name\": 5}, {\"name\": \"a very long name of a "
		 "thread\\n\"}]}"),
	};

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		json_t *o = json_loads(texts[i], JSON_DECODE_ANY, NULL);

		assert_non_null(o);
		sample_read(o, &now);
		assert_true(now.taken_ns == 0);
		for (int f = 0; f < SAMPLE_N; f++)
			assert_true(isnan(now.v[f]));
		assert_int_equal(now.n_threads, i == 5);
		json_decref(o);
	}
	assert_string_equal(now.thread[0].name, "a very long nam");
	assert_true(isnan(now.thread[0].user_s));
}

TEST_EACH(NULL, teardown)
