/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource usage of a process and description of the machine.
 *
 * Purpose: the one place that reads /proc, /sys, getrusage and getrlimit. Non-goals: RDMA devices, sampling over time,
 * judging the figures. Threads: any; no state. Sources: proc(5), getrlimit(2), cpuid(4); for the limit on pinning,
 * ib_umem_get() in the kernel's drivers/infiniband/core/umem.c.
 */
#include "common/host/res.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/host/cgroup.h"
#include "common/host/proc_text.h"

#define CAP_IPC_LOCK_BIT 14	/* linux/capability.h */
#define CAP_SYS_RESOURCE_BIT 24	/* the same */
#define PROC_TEXT_MAX	 8192	/* enough for status, and for the first CPU of cpuinfo */
#define LINE_TEXT_MAX	 256

/* Reads the first size - 1 bytes of the file as a string. Returns 0 or -errno. */
static int read_text(const char *path, char *buf, size_t size)
{
	FILE *in = fopen(path, "re");
	int err;

	if (!in)
		return -errno;
	buf[fread(buf, 1, size - 1, in)] = '\0';
	err = ferror(in) ? -EIO : 0;
	fclose(in);
	return err;
}

/* Reads the first line, without trailing blanks. Returns 0 or -errno; -ENODATA if it is empty. */
static int read_line(const char *path, char *buf, size_t size)
{
	int err = read_text(path, buf, size);
	size_t len;

	if (err)
		return err;
	len = strcspn(buf, "\n");
	while (len && strchr(" \t", buf[len - 1]))
		len--;
	buf[len] = '\0';
	return len ? 0 : -ENODATA;
}

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * NS_PER_S + (uint64_t)tv.tv_usec * 1000;
}

/* Since Linux 6.2 the directory's size is the number of descriptors. Reading 10,000 entries takes 15 ms or more. */
static int count_fds(uint64_t *out)
{
	struct stat st;
	uint64_t n = 0;
	DIR *dir;

	if (!stat("/proc/self/fd", &st) && st.st_size > 0) {
		*out = (uint64_t)st.st_size;
		return 0;
	}
	dir = opendir("/proc/self/fd");
	if (!dir)
		return -errno;
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += e->d_name[0] != '.';
	closedir(dir);
	*out = n - 1;	/* without the descriptor of the directory itself */
	return 0;
}

int res_usage_self(struct res_usage *out)
{
	char status[PROC_TEXT_MAX];
	struct rusage usage;
	uint64_t fds = 0;
	int err;

	if (getrusage(RUSAGE_SELF, &usage))
		return -errno;
	err = read_text("/proc/self/status", status, sizeof(status));
	if (err)
		return err;
	err = count_fds(&fds);
	if (err)
		return err;
	*out = (struct res_usage){
		.cpu_user_ns = timeval_ns(usage.ru_utime),
		.cpu_system_ns = timeval_ns(usage.ru_stime),
		.switches_voluntary = (uint64_t)usage.ru_nvcsw,
		.switches_involuntary = (uint64_t)usage.ru_nivcsw,
		.rss_bytes = proc_text_number(status, "VmRSS", 10) * 1024,
		.fds = fds,
		.threads = proc_text_number(status, "Threads", 10),
		.pinned_bytes = (proc_text_number(status, "VmPin", 10) +
				 proc_text_number(status, "VmLck", 10)) * 1024,
	};
	return 0;
}

int res_thread_cpu(uint64_t tid, uint64_t *out_ns)
{
	char path[64], text[1024];
	const char *at;
	uint64_t user, system;
	int err;

	snprintf(path, sizeof(path), "/proc/self/task/%llu/stat", (unsigned long long)tid);
	err = read_text(path, text, sizeof(text));
	if (err)
		return err;
	/* The name before these fields may contain blanks; utime and stime are fields 14 and 15. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 14; field++)
		at = strchr(at + 1, ' ');
	if (!at || !proc_text_take(&at, &user) || !proc_text_take(&at, &system))
		return -EIO;
	*out_ns = (user + system) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	return 0;
}

int res_heap_bytes(uint64_t *out)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();

	*out = m.uordblks + m.hblkhd;
	return 0;
#else
	(void)out;
	return -ENOTSUP;
#endif
}

int res_machine_cpu(struct res_machine_cpu *out)
{
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	char line[LINE_TEXT_MAX];
	struct proc_cpu t;
	int err;

	err = read_line("/proc/stat", line, sizeof(line));
	if (err)
		return err;
	if (strncmp(line, "cpu ", 4) != 0 || !proc_text_cpu(line + 4, &t))
		return -EIO;
	out->busy_ns = (t.user + t.nice + t.system + t.irq + t.softirq + t.steal) * tick_ns;
	out->softirq_ns = t.softirq * tick_ns;
	out->steal_ns = t.steal * tick_ns;
	out->idle_ns = (t.idle + t.iowait) * tick_ns;
	return 0;
}

static uint64_t physical_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t res_machine_memory_bytes(void)
{
	struct cgroup group;

	cgroup_find("", &group);
	return (uint64_t)fmin((double)physical_bytes(), group.memory_bytes);
}

/* Free pages in per-CPU lists, which MemFree omits: many MiB after a process freed memory. 0 if unreadable. */
static uint64_t per_cpu_free_bytes(void)
{
	FILE *in = fopen("/proc/zoneinfo", "re");
	uint64_t pages = 0;
	char line[LINE_TEXT_MAX];

	while (in && fgets(line, sizeof(line), in))
		pages += proc_text_number(line + strspn(line, " "), "count", 10);
	if (in)
		fclose(in);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int res_machine_kernel_bytes(uint64_t *out)
{
	static const char *const others[] = { "MemFree", "Buffers", "Cached", "AnonPages" };
	uint64_t total, not_kernel = per_cpu_free_bytes();
	char text[PROC_TEXT_MAX];
	int err = read_text("/proc/meminfo", text, sizeof(text));

	if (err)
		return err;
	total = proc_text_number(text, "MemTotal", 10) * 1024;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!proc_text_field(text, others[i]))
			return -EIO;
		not_kernel += proc_text_number(text, others[i], 10) * 1024;
	}
	if (!total)
		return -EIO;
	*out = total > not_kernel ? total - not_kernel : 0;
	return 0;
}

int res_machine_available_bytes(uint64_t *out)
{
	char text[PROC_TEXT_MAX];
	int err = read_text("/proc/meminfo", text, sizeof(text));
	struct cgroup group;
	double left;

	if (err)
		return err;
	if (!proc_text_field(text, "MemAvailable"))
		return -EIO;
	cgroup_find("", &group);
	left = cgroup_left_bytes(&group, cgroup_now(&group, CGROUP_MEMORY_BYTES),
				 cgroup_now(&group, CGROUP_CACHE_BYTES));
	*out = (uint64_t)fmin((double)proc_text_number(text, "MemAvailable", 10) * 1024, left);
	return 0;
}

int res_tcp_sockets(uint64_t *out)
{
	uintmax_t open, resting;
	char text[PROC_TEXT_MAX];
	const char *line;
	int err = read_text("/proc/net/sockstat", text, sizeof(text));

	if (err)
		return err;
	line = strstr(text, "TCP: ");
	if (!line || sscanf(line, "TCP: inuse %ju orphan %*u tw %ju", &open, &resting) != 2)
		return -EIO;
	*out = open + resting;
	return 0;
}

/* Returns the soft limit after raising it to the hard one; 0 on error. */
static rlim_t raise_limit(int resource)
{
	struct rlimit raised, limit;

	if (getrlimit(resource, &limit))
		return 0;
	raised = (struct rlimit){ .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };
	/* Fails for open files if fs.nr_open was lowered below the hard limit: the soft limit then stays. */
	return setrlimit(resource, &raised) ? limit.rlim_cur : raised.rlim_cur;
}

uint64_t res_raise_nofile(void)
{
	return raise_limit(RLIMIT_NOFILE);
}

/* True if the kernel's capable() holds, which it only does in the initial user namespace. That namespace maps each id
 * to itself (user_namespaces(7)). */
static bool is_capable(unsigned capability_bit)
{
	char status[PROC_TEXT_MAX], map[LINE_TEXT_MAX];
	uintmax_t inside, outside, length;

	if (read_line("/proc/self/uid_map", map, sizeof(map)) ||
	    sscanf(map, "%ju %ju %ju", &inside, &outside, &length) != 3 ||
	    inside || outside || length != UINT32_MAX)
		return false;
	if (read_text("/proc/thread-self/status", status, sizeof(status)))
		return false;
	return proc_text_number(status, "CapEff", 16) >> capability_bit & 1;
}

uint64_t res_raise_memlock(void)
{
	rlim_t soft = raise_limit(RLIMIT_MEMLOCK);

	/* ib_umem_get() does not apply the limit to a process with CAP_IPC_LOCK. */
	return soft == RLIM_INFINITY || is_capable(CAP_IPC_LOCK_BIT) ? UINT64_MAX : soft;
}

static const char *const sysctls[] = {
	"fs.file-max",
	"fs.nr_open",
	"kernel.threads-max",
	"net.core.netdev_max_backlog",
	"net.core.rmem_max",
	"net.core.somaxconn",
	"net.core.wmem_max",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_max_syn_backlog",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_tw_reuse",
	"net.rdma_ucm.max_backlog",
	"vm.max_map_count",
	"vm.overcommit_memory",
};

/* A number that another host may have written; NAN unless it is above 0 and below 2^60. */
static double amount_at(const json_t *environment, const char *path)
{
	double v = json_number_at(environment, path);

	return v > 0 && v < 0x1p60 ? v : NAN;
}

double res_cpus_of(const json_t *environment)
{
	return fmin(amount_at(environment, "cores"), amount_at(environment, "cgroup.cpus"));
}

double res_memory_of(const json_t *environment)
{
	return fmin(amount_at(environment, "memory_bytes"), amount_at(environment, "cgroup.memory_bytes"));
}

double res_tasks_of(const json_t *environment)
{
	const json_t *all = json_object_get(environment, "sysctls");
	double soft = amount_at(environment, "rlimits.nproc.soft"), group = amount_at(environment, "cgroup.pids");
	double machine = json_number_value(json_object_get(all, "kernel.threads-max"));

	return fmin(fmin(soft, group), machine > 0 ? machine : NAN);
}

double res_port_range(const json_t *environment)
{
	const json_t *all = json_object_get(environment, "sysctls");
	const json_t *range = json_object_get(all, "net.ipv4.ip_local_port_range");
	double low = json_number_value(json_array_get(range, 0)), high = json_number_value(json_array_get(range, 1));

	return low >= 1 && high >= low && high <= 65535 ? high - low + 1 : NAN;
}

static json_t *string_or_null(const char *s)
{
	json_t *j = s && *s ? json_string(s) : NULL;	/* NULL also if it is not UTF-8 */

	return j ? j : json_null();
}

/* Returns a number, an array of several numbers, or the text if it is neither. */
static json_t *sysctl_value(const char *text)
{
	json_t *list = json_array(), *value;
	const char *p = text;
	long long n;
	int len;

	for (; sscanf(p, "%lld %n", &n, &len) == 1; p += len)
		json_array_append_new(list, json_integer(n));
	if (*p)
		value = string_or_null(text);
	else
		value = json_incref(json_array_size(list) == 1 ? json_array_get(list, 0) : list);
	json_decref(list);
	return value;
}

static json_t *sysctl_json(const char *name)
{
	char path[LINE_TEXT_MAX], text[LINE_TEXT_MAX];

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	for (char *p = path + strlen("/proc/sys/"); *p; p++)
		if (*p == '.')
			*p = '/';
	return read_line(path, text, sizeof(text)) ? json_null() : sysctl_value(text);
}

static json_t *sysctls_json(void)
{
	json_t *all = json_object();

	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++)
		if (json_object_set_new(all, sysctls[i], sysctl_json(sysctls[i]))) {
			json_decref(all);
			return NULL;
		}
	return all;
}

static json_t *limit_json(rlim_t limit)
{
	return limit == RLIM_INFINITY ? json_null() : json_integer((json_int_t)limit);
}

static json_t *rlimit_json(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return json_null();
	return json_pack("{s:o, s:o}", "soft", limit_json(limit.rlim_cur), "hard",
			 limit_json(limit.rlim_max));
}

/* The limit does not bind a process with CAP_SYS_RESOURCE (setrlimit(2)). */
static json_t *nproc_json(void)
{
	return is_capable(CAP_SYS_RESOURCE_BIT) ? json_pack("{s:n, s:n}", "soft", "hard") : rlimit_json(RLIMIT_NPROC);
}

/* Reads the hypervisor's signature from CPUID leaf 0x40000000: "KVMKVMKVM", "TCGTCGTCGTCG", ... */
static void hypervisor_signature(char signature[static 13])
{
	memset(signature, 0, 13);
#ifdef __x86_64__
	unsigned int regs[4];

	__cpuid(0x40000000, regs[0], regs[1], regs[2], regs[3]);
	memcpy(signature, &regs[1], 12);
#endif
}

struct machine {
	char cpu_model[LINE_TEXT_MAX];
	char hypervisor[2 * LINE_TEXT_MAX];	/* empty: none */
	const char *accelerator;		/* NULL: native, or neither tcg nor kvm */
};

static bool line_has_word(const char *line, const char *word)
{
	size_t len = strlen(word);
	const char *end = line + strcspn(line, "\n");

	for (const char *p = line; p < end; p += strcspn(p, " \n") + 1)
		if (strncmp(p, word, len) == 0 && (p[len] == ' ' || p[len] == '\n' || !p[len]))
			return true;
	return false;
}

/* RAMPART_ACCELERATOR takes precedence, for guests whose hypervisor hides its signature. */
static const char *find_accelerator(const char *signature)
{
	const char *told = getenv("RAMPART_ACCELERATOR");

	if (told && (strcmp(told, "tcg") == 0 || strcmp(told, "kvm") == 0))
		return strcmp(told, "tcg") == 0 ? "tcg" : "kvm";
	if (strcmp(signature, "TCGTCGTCGTCG") == 0)
		return "tcg";
	return strcmp(signature, "KVMKVMKVM") == 0 ? "kvm" : NULL;
}

static void describe_machine(struct machine *m)
{
	char cpuinfo[PROC_TEXT_MAX], vendor[LINE_TEXT_MAX], product[LINE_TEXT_MAX];
	char signature[13] = "";
	const char *model, *flags;

	memset(m, 0, sizeof(*m));
	if (read_text("/proc/cpuinfo", cpuinfo, sizeof(cpuinfo)))
		cpuinfo[0] = '\0';
	model = proc_text_field(cpuinfo, "model name");
	if (model)
		snprintf(m->cpu_model, sizeof(m->cpu_model), "%.*s", (int)strcspn(model, "\n"),
			 model);
	flags = proc_text_field(cpuinfo, "flags");
	if (flags && line_has_word(flags, "hypervisor")) {
		hypervisor_signature(signature);
		if (read_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor)) ||
		    read_line("/sys/class/dmi/id/product_name", product, sizeof(product)))
			snprintf(m->hypervisor, sizeof(m->hypervisor), "%s",
				 *signature ? signature : "unknown");
		else
			snprintf(m->hypervisor, sizeof(m->hypervisor), "%s %s", vendor, product);
	}
	m->accelerator = find_accelerator(signature);
}

json_t *res_environment_json(void)
{
	struct utsname uts = { 0 };
	struct machine m;
	struct cgroup group;
	bool is_emulated;

	cgroup_find("", &group);
	describe_machine(&m);
	uname(&uts);	/* can fail only for a bad pointer */
	is_emulated = m.accelerator && strcmp(m.accelerator, "tcg") == 0;
	return json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:b, s:b, s:o, s:{s:o, s:o, s:o}, s:o}",
			 "kernel", string_or_null(uts.release),
			 "cpu_model", string_or_null(m.cpu_model),
			 "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
			 "memory_bytes", (json_int_t)physical_bytes(),
			 "cgroup", cgroup_json(&group),
			 "hypervisor", string_or_null(m.hypervisor),
			 "accelerator", string_or_null(m.accelerator),
			 "is_virtual_machine", *m.hypervisor || m.accelerator,
			 "is_emulated_cpu", is_emulated,
			 "hostname", string_or_null(uts.nodename),
			 "rlimits", "nproc", nproc_json(), "nofile", rlimit_json(RLIMIT_NOFILE),
				    "memlock", rlimit_json(RLIMIT_MEMLOCK),
			 "sysctls", sysctls_json());
}
