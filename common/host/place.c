/* SPDX-License-Identifier: BSD-2-Clause */
/* Where threads and memory are. See place.h; sources: proc(5), sysfs(5), sched(7), and the kernel's
 * Documentation/ABI/stable/sysfs-devices-node and Documentation/admin-guide/mm/transhuge.rst. */
#include "common/host/place.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/host/cgroup.h"
#include "common/host/cpu_list.h"
#include "common/host/proc_text.h"

#define TEXT_MAX 4096
#define GOVERNORS_MAX 128

/* Reads the start of a file as a string, without trailing newlines. Returns 0 or -errno. */
static int read_text(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return -errno;
	n = fread(out, 1, size - 1, f);
	fclose(f);
	while (n && out[n - 1] == '\n')
		n--;
	out[n] = '\0';
	return n ? 0 : -ENODATA;
}

static int read_below(const char *sys, const char *name, char *out, size_t size)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", sys, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return read_text(path, out, size);
}

/* Calls `with` for each entry of a folder whose name is `prefix` and a number, until `with` returns false. */
static void for_each_numbered(const char *sys, const char *folder, const char *prefix,
			      bool (*with)(void *arg, int number), void *arg)
{
	char path[PATH_MAX];
	size_t len = strlen(prefix);
	const struct dirent *e;
	bool more = true;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", sys, folder);
	dir = opendir(path);
	while (dir && more && (e = readdir(dir))) {
		char *end;
		long n;

		if (strncmp(e->d_name, prefix, len) != 0 || e->d_name[len] < '0' || e->d_name[len] > '9')
			continue;
		n = strtol(e->d_name + len, &end, 10);
		if (!*end && n < INT_MAX)
			more = with(arg, (int)n);
	}
	if (dir)
		closedir(dir);
}

static bool count_number(void *arg, int number)
{
	(void)number;
	++*(int *)arg;
	return true;
}

int place_nodes(const char *sys)
{
	int n = 0;

	for_each_numbered(sys, "devices/system/node", "node", count_number, &n);
	return n;
}

static bool keep_first(void *arg, int number)
{
	*(int *)arg = number;
	return false;
}

/* Finds the link "nodeN" to the node in the CPU's folder. */
int place_node_of_cpu(const char *sys, int cpu)
{
	char folder[64];
	int node = PLACE_NO_NODE;

	if (cpu < 0)
		return node;
	snprintf(folder, sizeof(folder), "devices/system/cpu/cpu%d", cpu);
	for_each_numbered(sys, folder, "node", keep_first, &node);
	return node;
}

int place_cpus_of_node(const char *sys, int node, uint16_t *cpus, uint32_t max, uint32_t *n)
{
	char name[64], text[TEXT_MAX];
	int ret;

	*n = 0;
	snprintf(name, sizeof(name), "devices/system/node/node%d/cpulist", node);
	ret = read_below(sys, name, text, sizeof(text));
	return ret ? ret : cpu_list_parse(text, cpus, max, n);
}

int place_node_of_device(const char *sys, const char *path)
{
	char text[32], *end;
	long node;

	if (read_below(sys, path, text, sizeof(text)))
		return PLACE_NO_NODE;
	node = strtol(text, &end, 10);
	return end != text && !*end && node >= 0 && node < INT_MAX ? (int)node : PLACE_NO_NODE;
}

/* Also looks at the interface, because a software device has no bus device but its interface may have one. */
int place_node_of_rdma(const char *sys, const char *name)
{
	char path[PATH_MAX], interface[64];
	int node;

	snprintf(path, sizeof(path), "class/infiniband/%s/device/numa_node", name);
	node = place_node_of_device(sys, path);
	snprintf(path, sizeof(path), "class/infiniband/%s/parent", name);
	if (node != PLACE_NO_NODE || read_below(sys, path, interface, sizeof(interface)))
		return node;
	snprintf(path, sizeof(path), "class/net/%s/device/numa_node", interface);
	return place_node_of_device(sys, path);
}

const cpu_set_t *place_cpus_beside(const char *sys, int node, cpu_set_t *out)
{
	uint16_t cpus[CPU_SETSIZE];
	cpu_set_t allowed;
	uint32_t n;

	if (node == PLACE_NO_NODE || place_cpus_of_node(sys, node, cpus, CPU_SETSIZE, &n) ||
	    sched_getaffinity(0, sizeof(allowed), &allowed))
		return NULL;
	CPU_ZERO(out);
	for (uint32_t i = 0; i < n; i++)
		CPU_SET(cpus[i], out);
	CPU_AND(out, out, &allowed);
	return CPU_COUNT(out) ? out : NULL;
}

static uint32_t n_allowed(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) ? 0 : (uint32_t)CPU_COUNT(&allowed);
}

double place_cpus(void)
{
	struct cgroup group;

	cgroup_find("", &group);
	return fmin(n_allowed(), group.cpus);
}

uint32_t place_threads(void)
{
	uint32_t allowed = n_allowed();
	struct cgroup group;

	cgroup_find("", &group);
	/* The set of CPUs is unknown where the machine has more than CPU_SETSIZE. */
	return cgroup_threads(&group, allowed ? allowed : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static json_t *number_or_null(long long n)
{
	return n < 0 ? json_null() : json_integer(n);
}

static json_t *cpus_json(pid_t tid)
{
	char text[CPU_LIST_TEXT_MAX];
	cpu_set_t set;

	if (!tid || sched_getaffinity(tid, sizeof(set), &set))
		return json_null();
	return json_string(cpu_list_text(&set, text, sizeof(text)));
}

static json_t *realtime_json(pid_t tid)
{
	int policy = tid ? sched_getscheduler(tid) : -1;

	/* Ignore the flag that keeps children from inheriting the policy. */
	return policy < 0 ? json_null() :
	       json_boolean((policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO ||
			    (policy & ~SCHED_RESET_ON_FORK) == SCHED_RR);
}

json_t *place_thread_json(const char *sys, pid_t tid, int cpu)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "tid", number_or_null(tid ? tid : -1), "cpu", number_or_null(cpu),
			 "cpus", cpus_json(tid), "numa_node", number_or_null(place_node_of_cpu(sys, cpu)),
			 "realtime", realtime_json(tid));
}

struct governors {
	const char *sys;
	char all[GOVERNORS_MAX];	/* each once, separated by ", " */
};

static bool add_governor(void *arg, int cpu)
{
	struct governors *g = arg;
	char name[80], text[32];
	size_t used = strlen(g->all);

	snprintf(name, sizeof(name), "devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu);
	if (!read_below(g->sys, name, text, sizeof(text)) && !strstr(g->all, text))
		snprintf(g->all + used, sizeof(g->all) - used, "%s%s", used ? ", " : "", text);
	return true;
}

static json_t *text_or_null(const char *text)
{
	json_t *j = *text ? json_string(text) : NULL;	/* NULL also if it is not UTF-8 */

	return j ? j : json_null();
}

static json_t *governor_json(const char *sys)
{
	struct governors g = { .sys = sys };

	for_each_numbered(sys, "devices/system/cpu", "cpu", add_governor, &g);
	return text_or_null(g.all);
}

/* Returns the word in brackets: "always [madvise] never". */
static json_t *transparent_json(const char *sys)
{
	char text[128], *begin, *end;

	if (read_below(sys, "kernel/mm/transparent_hugepage/enabled", text, sizeof(text)))
		return json_null();
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end)
		return json_null();
	*end = '\0';
	return text_or_null(begin + 1);
}

/* Returns the value of a line "name: N kB" in bytes; -1 if there is none. */
static long long field_bytes(const char *text, const char *name)
{
	return proc_text_field(text, name) ? (long long)proc_text_number(text, name, 10) * 1024 : -1;
}

static json_t *used_json(void)
{
	static const char *const fields[] = { "AnonHugePages", "Shared_Hugetlb", "Private_Hugetlb" };
	char text[TEXT_MAX];
	long long used = 0;

	if (read_text("/proc/self/smaps_rollup", text, sizeof(text)) || field_bytes(text, fields[0]) < 0)
		return json_null();
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		long long n = field_bytes(text, fields[i]);

		used += n > 0 ? n : 0;
	}
	return json_integer(used);
}

static json_t *page_json(void)
{
	char text[TEXT_MAX];

	return read_text("/proc/meminfo", text, sizeof(text)) ? json_null() :
	       number_or_null(field_bytes(text, "Hugepagesize"));
}

void place_describe(const char *sys, json_t *environment)
{
	int nodes = place_nodes(sys);

	json_object_set_new(environment, "cpu_governor", governor_json(sys));
	json_object_set_new(environment, "numa_nodes", number_or_null(nodes ? nodes : -1));
	json_object_set_new(environment, "huge_pages", json_pack("{s:o, s:o, s:o}", "transparent",
								 transparent_json(sys),
		"page_bytes", page_json(), "used_bytes", used_json()));
}
