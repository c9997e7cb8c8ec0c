/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource usage of this process and description of this machine, from /proc, /sys, getrusage(2) and getrlimit(2). Any
 * thread except data threads, because a call takes as long as a few reads of /proc. */
#ifndef RAMPART_COMMON_RES_H
#define RAMPART_COMMON_RES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct res_usage {
	uint64_t cpu_user_ns;	/* all threads, since the process started */
	uint64_t cpu_system_ns;
	uint64_t switches_voluntary;	/* context switches of all threads, since the process started */
	uint64_t switches_involuntary;
	uint64_t rss_bytes;
	uint64_t fds;		/* open descriptors */
	uint64_t threads;
	uint64_t pinned_bytes;	/* VmPin + VmLck of /proc/self/status */
};

/* Fills *out for this process. Returns 0, or -errno with *out unchanged. */
int res_usage_self(struct res_usage *out) __attribute__((warn_unused_result));

/* CPU time of a thread of this process since its start, in ns, as exact as the kernel's clock ticks; `tid` as gettid(2)
 * gives it. Returns 0 or -errno; -EIO if its stat file is not as proc(5) says. */
int res_thread_cpu(uint64_t tid, uint64_t *out_ns) __attribute__((warn_unused_result));

/* CPU time of the whole machine since boot, summed over all CPUs. Soft-RoCE works in softirqs and kernel threads, which
 * are not charged to any process. */
struct res_machine_cpu {
	uint64_t busy_ns;	/* user + nice + system + irq + softirq + steal */
	uint64_t softirq_ns;	/* part of busy_ns */
	uint64_t idle_ns;	/* idle + iowait */
	uint64_t steal_ns;	/* part of busy_ns: the hypervisor gave it to others */
};

/* Fills *out from /proc/stat. Returns 0 or -errno; -EIO if the file is not as proc(5) says. */
int res_machine_cpu(struct res_machine_cpu *out) __attribute__((warn_unused_result));

/* Bytes of memory that the kernel uses for itself: everything except free memory, buffers, page cache, anonymous memory
 * of processes (/proc/meminfo), and free pages in per-CPU lists (/proc/zoneinfo; counted as used if it cannot be read).
 * Includes queues that a driver shares with a process. Returns 0 or -errno; -EIO if a field is missing. */
int res_machine_kernel_bytes(uint64_t *out) __attribute__((warn_unused_result));

/* Bytes of memory still available to this process: MemAvailable of /proc/meminfo or, if that is less, what the memory
 * limit of its control group leaves (common/host/cgroup.h). Returns 0 or -errno; -EIO if it is missing. */
int res_machine_available_bytes(uint64_t *out) __attribute__((warn_unused_result));

/* Bytes that this process has allocated and not freed, including malloc's overhead; resident memory also includes what
 * malloc keeps for later allocations (mallinfo2(3)). Locks each arena while it counts the arena's free chunks. Returns
 * 0, or -ENOTSUP without glibc 2.33. */
int res_heap_bytes(uint64_t *out) __attribute__((warn_unused_result));

/* TCP connections in this machine's network namespace that occupy a port: open, or closed and in TIME_WAIT
 * (/proc/net/sockstat). Returns 0 or -errno; -EIO if the file has another format. */
int res_tcp_sockets(uint64_t *out) __attribute__((warn_unused_result));

/* Physical memory of this machine or, if that is less, the memory limit of this process's control group, in bytes. */
uint64_t res_machine_memory_bytes(void);

/* Description of this machine, as in the object `environment` of run.json, without the RDMA device:
 *   kernel, cpu_model, cores, memory_bytes (physical), hostname
 *   cgroup              limits of this process's control group (cgroup_json)
 *   hypervisor          from the DMI names or CPUID if /proc/cpuinfo has the flag "hypervisor"
 *   accelerator         "tcg" or "kvm", from RAMPART_ACCELERATOR or CPUID
 *   is_virtual_machine, is_emulated_cpu (tcg)
 *   rlimits             {nofile{soft, hard}, memlock{soft, hard}, nproc{soft, hard}}, null for unlimited
 *   sysctls             {"net.core.somaxconn", ...}
 * Unknown values are null. The caller owns the reference; NULL if memory runs out. */
json_t *res_environment_json(void) __attribute__((warn_unused_result));
/* CPUs and memory that the process described by an environment, perhaps of another host, may use: the machine's, or the
 * limit of its control group if that is lower; NAN: unknown. */
double res_cpus_of(const json_t *environment);
double res_memory_of(const json_t *environment);
/* Maximum number of processes and threads of such a process, including others that the limit counts: the lowest one of
 * RLIMIT_NPROC, pids.max of its control group and kernel.threads-max; NAN: unknown. */
double res_tasks_of(const json_t *environment);
/* Number of client ports of an environment, perhaps of another host (net.ipv4.ip_local_port_range); NAN: unknown. */
double res_port_range(const json_t *environment);

/* Raises the soft limit of open files to the hard limit, if the kernel allows it. Returns the resulting soft limit, or
 * 0 if it cannot be read. */
uint64_t res_raise_nofile(void);

/* Raises the soft limit of locked memory to the hard limit. Returns the resulting soft limit in bytes; UINT64_MAX if it
 * is unlimited, or does not bind this process, which has CAP_IPC_LOCK in its effective set. */
uint64_t res_raise_memlock(void);

#endif
