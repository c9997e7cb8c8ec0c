/* SPDX-License-Identifier: BSD-2-Clause */
/* Where threads and memory of a process are: CPUs, NUMA nodes, huge pages; and how CPUs choose their frequency. Reads /proc
 * and /sys. `sys` is where sysfs is mounted (PLACE_SYS); tests show a folder of their own. Any thread, but no data thread: a
 * call opens files. */
#ifndef RAMPART_COMMON_PLACE_H
#define RAMPART_COMMON_PLACE_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#define PLACE_SYS "/sys"
#define PLACE_NO_NODE (-1)

/* CPUs that this thread may run on; 0: not known. */
uint32_t place_n_allowed(void);

/* The NUMA node of a CPU; PLACE_NO_NODE if the machine does not say. */
int place_node_of_cpu(const char *sys, int cpu);
/* How many NUMA nodes the machine has; 0: it does not say. */
int place_nodes(const char *sys);
/* The CPUs of a node, in rising order. Errors:
 *   -ENOENT  there is no such node
 *   other    its list cannot be read */
int place_cpus_of_node(const char *sys, int node, uint16_t *cpus, uint32_t max, uint32_t *n)
	__attribute__((warn_unused_result));
/* The node that the file `path` below `sys` names (numa_node of a device); PLACE_NO_NODE if it names none. */
int place_node_of_device(const char *sys, const char *path);
/* The node that the RDMA device `name` is at, or, of a software device, that its network interface is at; PLACE_NO_NODE
 * if neither names one. */
int place_node_of_rdma(const char *sys, const char *name);
/* The CPUs of a node that the calling thread may run on, in `out`, which is returned; NULL if there are none, as of
 * PLACE_NO_NODE. They are those that sysfs gives as local_cpulist of a device at the node. */
const cpu_set_t *place_cpus_beside(const char *sys, int node, cpu_set_t *out);

/* {tid, cpu, cpus, numa_node, realtime} of a thread of this process: its number, the CPU `cpu` that it ran on last (below 0:
 * unknown), the CPUs that it may run on as a list, the node of `cpu`, and whether it has a realtime priority (sched(7)).
 * null where it cannot be known, for instance because the thread has ended. */
json_t *place_thread_json(const char *sys, pid_t tid, int cpu);

/* Adds to a machine's description: cpu_governor (how the frequency of its CPUs is chosen; several as a list; null where
 * nothing chooses it, as in most virtual machines), numa_nodes (null: the machine does not say), and huge_pages:
 * transparent (always, madvise, never; null: none), page_bytes (of a hugetlb page), used_bytes (what this process's memory
 * has of both kinds, by AnonHugePages and the hugetlb fields of /proc/self/smaps_rollup; null if that cannot be read). */
void place_describe(const char *sys, json_t *environment);

#endif
