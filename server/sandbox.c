/* The server's system calls. See sandbox.h.
 *
 * The filter is a program for the kernel's classic BPF (Documentation/userspace-api/seccomp_filter.rst): the processor, then
 * one call after the other. It runs at each system call; the data path has next to none.
 */
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef ARCH

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
#define INSTRUCTIONS_MAX 512

static const int allowed[] = {
	/* descriptors that are open: sockets, events, timers, verbs and rdmacm */
	SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_pwrite64, SYS_close, SYS_lseek, SYS_ioctl, SYS_fcntl,
	SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_timerfd_create,
	SYS_timerfd_settime, SYS_accept4, SYS_getsockname, SYS_getpeername, SYS_getsockopt, SYS_setsockopt, SYS_recvfrom,
	SYS_recvmsg, SYS_sendto, SYS_sendmsg, SYS_shutdown,
	/* files that are read: certificates, /proc, /sys */
	SYS_fstat, SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_getdents64,
	/* memory, threads, signals */
	SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_mlock, SYS_munlock, SYS_futex, SYS_sched_yield,
	SYS_sched_getaffinity, SYS_set_robust_list, SYS_rseq, SYS_membarrier, SYS_rt_sigaction, SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_exit, SYS_exit_group,
	/* time, randomness, what this process and machine are */
	SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_getrandom, SYS_getpid,
	SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getrusage, SYS_times, SYS_uname, SYS_sysinfo,
	SYS_getcpu,
#ifdef __x86_64__
	SYS_poll, SYS_select, SYS_epoll_wait, SYS_accept, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_time,
	SYS_getrlimit,
#endif
};

/* Allowed if none of these bits of an argument are set. */
static const struct {
	int call;
	unsigned argument;
	uint64_t bits;
} allowed_without[] = {
	{ SYS_openat, 2, WRITES },
	{ SYS_mmap, 2, PROT_EXEC },
	{ SYS_mprotect, 2, PROT_EXEC },
	{ SYS_prlimit64, 2, UINT64_MAX },	/* the new limit */
#ifdef __x86_64__
	{ SYS_open, 1, WRITES },
#endif
};

struct program {
	struct sock_filter at[INSTRUCTIONS_MAX];
	unsigned short n;
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	p->at[p->n++] = (struct sock_filter){ code, if_true, if_false, k };
}

static void put_load(struct program *p, size_t offset)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_return(struct program *p, uint32_t action)
{
	put(p, BPF_RET | BPF_K, action, 0, 0);
}

/* Goes on if A has none of these bits, else the call is denied. */
static void put_deny_bits(struct program *p, uint32_t bits)
{
	put(p, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
	put_return(p, SECCOMP_RET_ERRNO | EPERM);
}

/* The low half of an argument comes first on both processors. */
static void put_argument(struct program *p, int call, unsigned argument, uint64_t bits)
{
	size_t low = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);

	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 7);
	put_load(p, low);
	put_deny_bits(p, (uint32_t)bits);
	put_load(p, low + sizeof(uint32_t));
	put_deny_bits(p, (uint32_t)(bits >> 32));
	put_return(p, SECCOMP_RET_ALLOW);
}

static void make_program(struct program *p)
{
	p->n = 0;
	put_load(p, offsetof(struct seccomp_data, arch));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	put_return(p, SECCOMP_RET_KILL_PROCESS);
	put_load(p, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i], 0, 1);
		put_return(p, SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < sizeof(allowed_without) / sizeof(allowed_without[0]); i++)
		put_argument(p, allowed_without[i].call, allowed_without[i].argument, allowed_without[i].bits);
	put_return(p, SECCOMP_RET_ERRNO | EPERM);
}

_Static_assert(5 + 2 * sizeof(allowed) / sizeof(allowed[0]) + 8 * sizeof(allowed_without) / sizeof(allowed_without[0]) <=
	       INSTRUCTIONS_MAX, "the program has room for all calls");

int sandbox_enter(void)
{
	struct program p;
	struct sock_fprog prog = { .filter = p.at };

	make_program(&p);
	prog.len = p.n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* The kernel's log has what is denied, if kernel.seccomp.actions_logged has `errno`. A positive result is a thread
	 * that has a filter of its own. */
	switch (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG, &prog)) {
	case 0:
		return 0;
	case -1:
		return -errno;
	default:
		return -EBUSY;
	}
}

#else

int sandbox_enter(void)
{
	return -ENOTSUP;
}

#endif
