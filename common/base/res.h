/* What a process uses and what the machine is: read from /proc, /sys, getrusage and getrlimit.
 * Every function may be called from any thread and blocks for no longer than a /proc read. */
#ifndef RAMPART_COMMON_RES_H
#define RAMPART_COMMON_RES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct res_usage {
	uint64_t cpu_user_ns;	/* this process: /proc/self/stat via getrusage */
	uint64_t cpu_system_ns;
	uint64_t rss_bytes;
	uint64_t fds;		/* open descriptors */
	uint64_t threads;
	uint64_t pinned_bytes;	/* VmPin + VmLck of /proc/self/status */
};

/* Fills *out for the calling process. Returns 0 or -errno. */
int res_usage_self(struct res_usage *out) __attribute__((warn_unused_result));

/* CPU time of the whole machine since boot, in ns (sum over the CPUs): all of it, and of that the
 * softirq share. Soft-RoCE does its work in softirq and kernel threads that no process is charged for. */
struct res_machine_cpu {
	uint64_t busy_ns;	/* user + nice + system + irq + softirq + steal */
	uint64_t softirq_ns;
	uint64_t idle_ns;
};
int res_machine_cpu(struct res_machine_cpu *out) __attribute__((warn_unused_result));

/* Memory of this machine that the kernel itself uses: all that is neither free, nor page cache, nor anonymous
 * memory of processes (/proc/meminfo). Queues that a driver shares with a process are in it. */
int res_machine_kernel_bytes(uint64_t *out) __attribute__((warn_unused_result));

/* The environment object of run.json for this process's machine, without the RDMA device: kernel,
 * cpu model, cores, memory_bytes, hypervisor (from /proc/cpuinfo's hypervisor flag and
 * /sys/class/dmi/id), accelerator (RAMPART_ACCELERATOR, "tcg" or "kvm", null when native),
 * is_virtual_machine, is_emulated_cpu (tcg), hostname, rlimits{nofile{soft,hard}, memlock{soft,hard}} (null for
 * unlimited), sysctls{net.rdma_ucm.max_backlog, net.core.somaxconn, net.ipv4.ip_local_port_range, ...}
 * (null where absent). NULL when out of memory; the caller owns the reference. */
json_t *res_environment_json(void) __attribute__((warn_unused_result));

/* Soft limit of open files after raising it to the hard limit; 0 on error. */
uint64_t res_raise_nofile(void);
/* Soft limit of locked memory after raising it to the hard limit; UINT64_MAX for unlimited or when
 * the process has CAP_IPC_LOCK (effective), which the kernel's pinning check honours. */
uint64_t res_raise_memlock(void);

#endif
