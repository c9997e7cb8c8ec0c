/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process uses and what this machine is, read from /proc, /sys, getrusage(2) and getrlimit(2). Any thread;
 * a call takes as long as a few reads of /proc do, so it does not belong on a data thread. */
#ifndef RAMPART_COMMON_RES_H
#define RAMPART_COMMON_RES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct res_usage {
	uint64_t cpu_user_ns;	/* of all threads since the process began */
	uint64_t cpu_system_ns;
	uint64_t switches_voluntary;	/* context switches, of all threads since the process began */
	uint64_t switches_involuntary;
	uint64_t rss_bytes;
	uint64_t fds;		/* open descriptors */
	uint64_t threads;
	uint64_t pinned_bytes;	/* VmPin + VmLck of /proc/self/status */
};

/* Fills *out for this process. Returns 0, or -errno and leaves *out alone. */
int res_usage_self(struct res_usage *out) __attribute__((warn_unused_result));

/* CPU time of the whole machine since it booted, the sum over all CPUs. Soft-RoCE works in softirqs and kernel threads,
 * which no process is charged for. */
struct res_machine_cpu {
	uint64_t busy_ns;	/* user + nice + system + irq + softirq + steal */
	uint64_t softirq_ns;	/* part of busy_ns */
	uint64_t idle_ns;	/* idle + iowait */
};

/* Fills *out from /proc/stat. Returns 0 or -errno; -EIO if the file is not as proc(5) says. */
int res_machine_cpu(struct res_machine_cpu *out) __attribute__((warn_unused_result));

/* Bytes of memory that the kernel uses for itself: all that is neither free, nor buffers or page cache, nor anonymous
 * memory of processes (/proc/meminfo), nor on a CPU's list of free pages (/proc/zoneinfo; where that cannot be read, they
 * count). Queues that a driver shares with a process are among them. Returns 0 or -errno; -EIO if a field is missing. */
int res_machine_kernel_bytes(uint64_t *out) __attribute__((warn_unused_result));

/* Bytes of memory that programs can still get: MemAvailable of /proc/meminfo. Returns 0 or -errno; -EIO if it is missing. */
int res_machine_available_bytes(uint64_t *out) __attribute__((warn_unused_result));

/* Bytes that this process has allocated and not freed, malloc's own overhead included; the resident memory also has what
 * malloc keeps for the next allocation (mallinfo2(3)). Each arena is locked for as long as its free chunks take to count.
 * Returns 0, or -ENOTSUP without glibc 2.33. */
int res_heap_bytes(uint64_t *out) __attribute__((warn_unused_result));

/* TCP connections of this machine's network namespace whose port is taken: open, or closed and in TIME_WAIT
 * (/proc/net/sockstat). Returns 0 or -errno; -EIO if the file is not as expected. */
int res_tcp_sockets(uint64_t *out) __attribute__((warn_unused_result));

/* Physical memory of this machine, in bytes. */
uint64_t res_machine_memory_bytes(void);

/* This machine, as in the object `environment` of run.json, without the RDMA device:
 *   kernel, cpu_model, cores, memory_bytes, hostname
 *   hypervisor          from the DMI names or CPUID if /proc/cpuinfo has the flag "hypervisor"
 *   accelerator         "tcg" or "kvm", from RAMPART_ACCELERATOR or CPUID
 *   is_virtual_machine, is_emulated_cpu (tcg)
 *   rlimits             {nofile{soft, hard}, memlock{soft, hard}}, null for unlimited
 *   sysctls             {"net.core.somaxconn", ...}
 * What is unknown is null. The caller owns the reference; NULL if memory runs out. */
json_t *res_environment_json(void) __attribute__((warn_unused_result));
/* Client ports of an environment (net.ipv4.ip_local_port_range), which may be of another host; NAN: not known. */
double res_port_range(const json_t *environment);

/* Raises the soft limit of open files to the hard limit, if the kernel allows it. Returns the soft limit after that;
 * 0 if it cannot be read. */
uint64_t res_raise_nofile(void);

/* Raises the soft limit of locked memory to the hard limit. Returns the soft limit after that, in bytes; UINT64_MAX if
 * there is none, or if this process may pin without one because it has CAP_IPC_LOCK in its effective set. */
uint64_t res_raise_memlock(void);

#endif
