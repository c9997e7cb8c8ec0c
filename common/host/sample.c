/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource usage of this process and machine. See sample.h. */
#include "common/host/sample.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/host/cgroup.h"
#include "common/host/proc_text.h"

#define PATH_TEXT_MAX 512
/* Room for the lines of about 600 CPUs in /proc/stat, and for the whole of the other files. */
#define TEXT_MAX (64u << 10)
#define CPUS_MAX 1024

const char *const sample_names[SAMPLE_N] = {
	[SAMPLE_CPU_USER_S] = "cpu_user_s",
	[SAMPLE_CPU_SYSTEM_S] = "cpu_system_s",
	[SAMPLE_SWITCHES_VOLUNTARY] = "switches_voluntary",
	[SAMPLE_SWITCHES_INVOLUNTARY] = "switches_involuntary",
	[SAMPLE_RSS_BYTES] = "rss_bytes",
	[SAMPLE_PINNED_BYTES] = "pinned_bytes",
	[SAMPLE_FDS] = "fds",
	[SAMPLE_THREADS] = "threads",
	[SAMPLE_MACHINE_USER_S] = "machine_user_s",
	[SAMPLE_MACHINE_SYSTEM_S] = "machine_system_s",
	[SAMPLE_MACHINE_SOFTIRQ_S] = "machine_softirq_s",
	[SAMPLE_MACHINE_STEAL_S] = "machine_steal_s",
	[SAMPLE_MACHINE_IDLE_S] = "machine_idle_s",
	[SAMPLE_CGROUP_CPU_S] = "cgroup_cpu_s",
	[SAMPLE_CGROUP_THROTTLED_S] = "cgroup_throttled_s",
	[SAMPLE_CGROUP_MEMORY_HITS] = "cgroup_memory_hits",
	[SAMPLE_CGROUP_OOM_KILLS] = "cgroup_oom_kills",
	[SAMPLE_BUSIEST_CORE_RATIO] = "busiest_core_ratio",
	[SAMPLE_AVAILABLE_BYTES] = "machine_available_bytes",
	[SAMPLE_SLAB_BYTES] = "machine_slab_bytes",
	[SAMPLE_RUNNABLE] = "machine_runnable",
	[SAMPLE_QPS] = "qps",
	[SAMPLE_CQS] = "cqs",
	[SAMPLE_MRS] = "mrs",
	[SAMPLE_CONNECTED] = "clients_connected",
	[SAMPLE_HANDSHAKES] = "clients_connecting",
	[SAMPLE_COMPLETIONS] = "completions",
	[SAMPLE_POLLS] = "polls",
	[SAMPLE_WAKEUPS] = "wakeups",
};

bool sample_is_counter(enum sample_figure f)
{
	return f <= SAMPLE_SWITCHES_INVOLUNTARY || (f >= SAMPLE_MACHINE_USER_S && f <= SAMPLE_CGROUP_OOM_KILLS) ||
	       f >= SAMPLE_COMPLETIONS;
}

struct thread {
	int tid;
	int stat;	/* descriptor */
	char name[16];
};

struct sampler {
	char proc[PATH_TEXT_MAX / 2];
	int stat, loadavg, meminfo, status, fd, task;	/* descriptors; -1: not open */
	struct cgroup group;
	int group_files[CGROUP_FIGURES];
	struct thread threads[SAMPLE_THREADS_MAX];
	uint32_t n_threads;
	double threads_seen;		/* number of threads when their folder was read; NAN: never */
	double tick_s;
	struct { uint64_t busy, idle; } cpu[CPUS_MAX];	/* at the last sample, in ticks */
	uint32_t n_cpus;
	char text[TEXT_MAX];
};

static void open_again(const struct sampler *s, int *fd, const char *name, int flags)
{
	char path[PATH_TEXT_MAX];

	if (*fd >= 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", s->proc, name);
	*fd = open(path, O_RDONLY | O_CLOEXEC | flags);
}

static void open_all(struct sampler *s)
{
	open_again(s, &s->stat, "stat", 0);
	open_again(s, &s->loadavg, "loadavg", 0);
	open_again(s, &s->meminfo, "meminfo", 0);
	open_again(s, &s->status, "self/status", 0);
	open_again(s, &s->fd, "self/fd", O_DIRECTORY);
	open_again(s, &s->task, "self/task", O_DIRECTORY);
	for (int f = 0; f < CGROUP_FIGURES; f++)
		if (s->group_files[f] < 0)
			s->group_files[f] = cgroup_open(&s->group, (enum cgroup_figure)f);
}

static void close_threads(struct sampler *s)
{
	for (uint32_t i = 0; i < s->n_threads; i++)
		close(s->threads[i].stat);
	s->n_threads = 0;
}

int sampler_new(const char *root, struct sampler **out)
{
	struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	snprintf(s->proc, sizeof(s->proc), "%s/proc", root);
	cgroup_find(root, &s->group);
	for (int f = 0; f < CGROUP_FIGURES; f++)
		s->group_files[f] = -1;
	s->stat = s->loadavg = s->meminfo = s->status = s->fd = s->task = -1;
	s->threads_seen = NAN;
	s->tick_s = 1. / (double)sysconf(_SC_CLK_TCK);
	open_all(s);
	*out = s;
	return 0;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	const int fds[SAMPLE_FILES] = { s->stat, s->loadavg, s->meminfo, s->status, s->fd, s->task };

	close_threads(s);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (int f = 0; f < CGROUP_FIGURES; f++)
		if (s->group_files[f] >= 0)
			close(s->group_files[f]);
	free(s);
}

/* Reads the file from its start into s->text, which is returned. Empty if it cannot be read. */
static const char *read_text(struct sampler *s, int fd)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, s->text, sizeof(s->text) - 1, 0);

	s->text[n > 0 ? n : 0] = '\0';
	return s->text;
}

static double timeval_s(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static void take_usage(double *v)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return;
	v[SAMPLE_CPU_USER_S] = timeval_s(usage.ru_utime);
	v[SAMPLE_CPU_SYSTEM_S] = timeval_s(usage.ru_stime);
	v[SAMPLE_SWITCHES_VOLUNTARY] = (double)usage.ru_nvcsw;
	v[SAMPLE_SWITCHES_INVOLUNTARY] = (double)usage.ru_nivcsw;
}

/* NAN if the field is missing or not a number. */
static double field_value(const char *text, const char *name)
{
	const char *at = proc_text_field(text, name);
	uint64_t n;

	return at && proc_text_take(&at, &n) ? (double)n : NAN;
}

/* Since Linux 6.2 the folder's size is the number of descriptors, which avoids reading the folder: for 10,000
 * descriptors that takes milliseconds. */
static double count_fds(int folder)
{
	struct stat st;
	double n = 0;
	DIR *dir;
	int fd;

	if (folder < 0 || fstat(folder, &st))
		return NAN;
	if (st.st_size > 0 && !S_ISREG(st.st_mode))
		return (double)st.st_size;
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return NAN;
	}
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n - 1;	/* without the descriptor that the folder was read with */
}

static void take_status(struct sampler *s, double *v)
{
	const char *text = read_text(s, s->status);

	v[SAMPLE_RSS_BYTES] = field_value(text, "VmRSS") * 1024;
	v[SAMPLE_PINNED_BYTES] = (field_value(text, "VmPin") + field_value(text, "VmLck")) * 1024;
	v[SAMPLE_THREADS] = field_value(text, "Threads");
}

/* The part of a thread's `stat` after the name, which may contain any byte; NULL if there is none. */
static const char *behind_name(const char *text)
{
	const char *end = strrchr(text, ')');

	return end ? end + 1 : NULL;
}

/* Copies the name from between the parentheses, made fit for JSON. */
static void name_thread(const char *text, struct thread *t)
{
	const char *from = strchr(text, '('), *end = strrchr(text, ')');
	size_t n = 0;

	for (; from && end && ++from < end && n < sizeof(t->name) - 1; n++)
		t->name[n] = isprint((unsigned char)*from) ? *from : '?';
	t->name[n] = '\0';
	if (t->tid == getpid())
		strcpy(t->name, "main");
}

static void open_thread(struct sampler *s, const char *tid)
{
	struct thread *t = &s->threads[s->n_threads];
	char path[32];

	if (s->n_threads == SAMPLE_THREADS_MAX || !isdigit((unsigned char)*tid) ||
	    snprintf(path, sizeof(path), "%s/stat", tid) >= (int)sizeof(path))
		return;
	t->tid = atoi(tid);
	t->stat = openat(s->task, path, O_RDONLY | O_CLOEXEC);
	if (t->stat < 0)
		return;
	name_thread(read_text(s, t->stat), t);
	s->n_threads++;
}

/* Opens the files of all threads if the number of threads has changed. */
static void find_threads(struct sampler *s, double n)
{
	struct dirent *e;
	DIR *dir;
	int fd;

	if (s->task < 0 || isnan(n) || n == s->threads_seen)
		return;
	fd = openat(s->task, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	close_threads(s);
	while ((e = readdir(dir)))
		open_thread(s, e->d_name);
	closedir(dir);
	s->threads_seen = n;
}

/* Reads utime and stime, the 12th and 13th fields after the name. */
static void take_thread(struct sampler *s, const struct thread *t, struct sample_thread *out)
{
	const char *at = behind_name(read_text(s, t->stat));
	uint64_t user, system_;

	memcpy(out->name, t->name, sizeof(out->name));
	out->user_s = out->system_s = NAN;
	for (int i = 0; at && i < 11; i++) {
		at += strspn(at, " ");
		at = strchr(at, ' ');
	}
	if (!at || !proc_text_take(&at, &user) || !proc_text_take(&at, &system_))
		return;
	out->user_s = (double)user * s->tick_s;
	out->system_s = (double)system_ * s->tick_s;
}

static void take_threads(struct sampler *s, struct sample *out)
{
	find_threads(s, out->v[SAMPLE_THREADS]);
	out->n_threads = s->n_threads;
	for (uint32_t i = 0; i < s->n_threads; i++) {
		take_thread(s, &s->threads[i], &out->thread[i]);
		/* The thread has ended, and a new one may have taken its place: look again next time. */
		if (isnan(out->thread[i].user_s))
			s->threads_seen = NAN;
	}
}

/* Returns the text after the next `c`; NULL if there is none. */
static const char *behind(const char *text, char c)
{
	const char *at = strchr(text, c);

	return at ? at + 1 : NULL;
}

static void take_machine(const struct sampler *s, const struct proc_cpu *t, double *v)
{
	v[SAMPLE_MACHINE_USER_S] = (double)(t->user + t->nice) * s->tick_s;
	v[SAMPLE_MACHINE_SYSTEM_S] = (double)(t->system + t->irq) * s->tick_s;
	v[SAMPLE_MACHINE_SOFTIRQ_S] = (double)t->softirq * s->tick_s;
	v[SAMPLE_MACHINE_STEAL_S] = (double)t->steal * s->tick_s;
	v[SAMPLE_MACHINE_IDLE_S] = (double)(t->idle + t->iowait) * s->tick_s;
}

/* Share of the time since the last sample that this CPU was busy; NAN if unknown. A CPU's iowait may decrease
 * (proc(5)). */
static double take_core(struct sampler *s, uint64_t index, const struct proc_cpu *t)
{
	uint64_t busy = t->user + t->nice + t->system + t->irq + t->softirq + t->steal, idle = t->idle + t->iowait;
	double ratio = NAN;

	if (index >= CPUS_MAX)
		return NAN;
	if (index < s->n_cpus && busy >= s->cpu[index].busy) {
		double more_busy = (double)(busy - s->cpu[index].busy);
		double more_idle = idle > s->cpu[index].idle ? (double)(idle - s->cpu[index].idle) : 0;

		ratio = more_busy / (more_busy + more_idle);
	}
	s->cpu[index].busy = busy;
	s->cpu[index].idle = idle;
	return ratio;
}

/* Reads the lines "cpu ..." and "cpuN ..." at the start of the file. */
static void take_cpus(struct sampler *s, double *v)
{
	const char *line = read_text(s, s->stat);
	uint64_t index, most = 0;
	struct proc_cpu t;

	for (; line && strncmp(line, "cpu", 3) == 0; line = behind(line, '\n')) {
		const char *at = line + 3;
		bool is_one = *at != ' ' && proc_text_take(&at, &index);

		if (!proc_text_cpu(at, &t))
			continue;
		if (is_one) {
			v[SAMPLE_BUSIEST_CORE_RATIO] = fmax(v[SAMPLE_BUSIEST_CORE_RATIO], take_core(s, index, &t));
			most = index + 1 > most ? index + 1 : most;
		} else {
			take_machine(s, &t, v);
		}
	}
	s->n_cpus = most > CPUS_MAX ? CPUS_MAX : (uint32_t)most;
}

static void take_memory(struct sampler *s, double *v)
{
	const char *text = read_text(s, s->meminfo);

	v[SAMPLE_AVAILABLE_BYTES] = field_value(text, "MemAvailable") * 1024;
	v[SAMPLE_SLAB_BYTES] = field_value(text, "Slab") * 1024;
}

static double group_value(struct sampler *s, enum cgroup_figure f)
{
	return cgroup_value(&s->group, f, read_text(s, s->group_files[f]));
}

static void take_group(struct sampler *s, double *v)
{
	double used = group_value(s, CGROUP_MEMORY_BYTES), cache = group_value(s, CGROUP_CACHE_BYTES);

	v[SAMPLE_CGROUP_CPU_S] = group_value(s, CGROUP_CPU_S);
	v[SAMPLE_CGROUP_THROTTLED_S] = group_value(s, CGROUP_THROTTLED_S);
	v[SAMPLE_CGROUP_MEMORY_HITS] = group_value(s, CGROUP_MEMORY_HITS);
	v[SAMPLE_CGROUP_OOM_KILLS] = group_value(s, CGROUP_OOM_KILLS);
	v[SAMPLE_AVAILABLE_BYTES] = fmin(v[SAMPLE_AVAILABLE_BYTES], cgroup_left_bytes(&s->group, used, cache));
}

/* Reads the number before the slash of "0.20 0.18 0.12 1/80 11206", which includes this thread. */
static void take_run_queue(struct sampler *s, double *v)
{
	const char *at = read_text(s, s->loadavg);
	uint64_t n;

	for (int i = 0; at && i < 3; i++)
		at = behind(at, ' ');
	if (at && proc_text_take(&at, &n) && *at == '/')
		v[SAMPLE_RUNNABLE] = (double)n;
}

void sampler_take(struct sampler *s, struct sample *out)
{
	for (int i = 0; i < SAMPLE_N; i++)
		out->v[i] = NAN;
	open_all(s);
	out->taken_ns = clock_now_ns();
	take_usage(out->v);
	take_status(s, out->v);
	take_threads(s, out);
	take_cpus(s, out->v);
	take_memory(s, out->v);
	take_group(s, out->v);
	take_run_queue(s, out->v);
	/* Counted last, when all files are open. */
	out->v[SAMPLE_FDS] = count_fds(s->fd);
}

static json_t *threads_json(const struct sample *s)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < s->n_threads; i++)
		json_array_append_new(a, json_pack("{s:s, s:o, s:o}", "name", s->thread[i].name, "cpu_user_s",
						   json_number(s->thread[i].user_s), "cpu_system_s",
						   json_number(s->thread[i].system_s)));
	return a;
}

json_t *sample_json(const struct sample *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "taken_ns", json_integer((json_int_t)s->taken_ns));
	for (int i = 0; i < SAMPLE_N; i++)
		json_object_set_new(o, sample_names[i], json_figure(s->v[i]));
	json_object_set_new(o, "by_thread", threads_json(s));
	return o;
}

static void read_thread(const json_t *o, struct sample *out)
{
	struct sample_thread *t = &out->thread[out->n_threads];
	const char *name = json_text_at(o, "name");

	if (!name || out->n_threads == SAMPLE_THREADS_MAX)
		return;
	snprintf(t->name, sizeof(t->name), "%s", name);
	for (char *p = t->name; *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
	t->user_s = json_number_at(o, "cpu_user_s");
	t->system_s = json_number_at(o, "cpu_system_s");
	out->n_threads++;
}

void sample_read(const json_t *o, struct sample *out)
{
	double taken = json_number_at(o, "taken_ns");
	json_t *threads = json_at(o, "by_thread"), *thread;
	size_t i;

	out->taken_ns = taken >= 0 && taken < 0x1p63 ? (uint64_t)taken : 0;
	for (int f = 0; f < SAMPLE_N; f++) {
		out->v[f] = json_number_at(o, sample_names[f]);
		if (!(out->v[f] >= 0 && out->v[f] < 0x1p63))
			out->v[f] = NAN;
	}
	if (out->v[SAMPLE_BUSIEST_CORE_RATIO] > 1)
		out->v[SAMPLE_BUSIEST_CORE_RATIO] = NAN;
	out->n_threads = 0;
	json_array_foreach(threads, i, thread)
		read_thread(thread, out);
}
