/* SPDX-License-Identifier: BSD-2-Clause */
/* Where threads and memory of a process are: CPUs, NUMA nodes, huge pages; and how CPUs choose their frequency. Reads
 * /proc and /sys. `sys` is the mount point of sysfs (PLACE_SYS); tests pass a folder of their own. Any thread except
 * data threads, because a call opens files. */
#ifndef RAMPART_COMMON_PLACE_H
#define RAMPART_COMMON_PLACE_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#define PLACE_SYS "/sys"
#define PLACE_NO_NODE (-1)

/* CPUs that this process may use at once: those that this thread may run on or, if that is less, the CPU quota of its
 * control group (common/host/cgroup.h), which may be a fraction. 0: unknown. */
double place_cpus(void);
/* Number of threads that can run at once on these CPUs: the default of --threads. At least 1. */
uint32_t place_threads(void);

/* The NUMA node of a CPU; PLACE_NO_NODE if unknown. */
int place_node_of_cpu(const char *sys, int cpu);
/* Number of NUMA nodes of the machine; 0: unknown. */
int place_nodes(const char *sys);
/* The CPUs of a node, in ascending order. Errors:
 *   -ENOENT  there is no such node
 *   other    its list cannot be read */
int place_cpus_of_node(const char *sys, int node, uint16_t *cpus, uint32_t max, uint32_t *n)
	__attribute__((warn_unused_result));
/* The node named in the file `path` below `sys` (numa_node of a device); PLACE_NO_NODE if it names none. */
int place_node_of_device(const char *sys, const char *path);
/* The node of the RDMA device `name` or, for a software device, of its network interface; PLACE_NO_NODE if unknown. */
int place_node_of_rdma(const char *sys, const char *name);
/* Stores in `out`, and returns, the CPUs of a node that the calling thread may run on; NULL if there are none, as for
 * PLACE_NO_NODE. The CPUs of a node are those that sysfs lists as local_cpulist of a device at the node. */
const cpu_set_t *place_cpus_beside(const char *sys, int node, cpu_set_t *out);

/* {tid, cpu, cpus, numa_node, realtime} of a thread of this process: its number, the CPU `cpu` it last ran on (below 0:
 * unknown), the list of CPUs it may run on, the node of `cpu`, and whether it has a realtime priority (sched(7)). A
 * value is null if it is unknown, for instance because the thread has ended. */
json_t *place_thread_json(const char *sys, pid_t tid, int cpu);

/* Adds to a machine's description: cpu_governor (how its CPUs choose their frequency; several as a list; null if
 * nothing chooses it, as in most virtual machines), numa_nodes (null: unknown), and huge_pages: transparent (always,
 * madvise, never; null: none), page_bytes (of a hugetlb page), used_bytes (huge pages of both kinds in this process's
 * memory, by AnonHugePages and the hugetlb fields of /proc/self/smaps_rollup; null if unreadable). */
void place_describe(const char *sys, json_t *environment);

#endif
