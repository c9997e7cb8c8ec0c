/* The server's system calls. See sandbox.h. */
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static const int allowed[] = {
	/* descriptors that are open: sockets, events, timers, verbs and rdmacm */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64),
	SCMP_SYS(close), SCMP_SYS(lseek), SCMP_SYS(ioctl), SCMP_SYS(fcntl), SCMP_SYS(ppoll), SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2),
	SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(accept4), SCMP_SYS(getsockname),
	SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),
	SCMP_SYS(sendto), SCMP_SYS(sendmsg), SCMP_SYS(shutdown),
	/* files that are read: certificates, /proc, /sys */
	SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(faccessat), SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	/* memory, threads, signals */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(mlock), SCMP_SYS(munlock),
	SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_getscheduler), SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq), SCMP_SYS(membarrier), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	/* time, randomness, what this process and machine are */
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday), SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid),
	SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getrusage), SCMP_SYS(times),
	SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getcpu),
	/* x86-64 only */
	SCMP_SYS(poll), SCMP_SYS(select), SCMP_SYS(epoll_wait), SCMP_SYS(accept), SCMP_SYS(stat), SCMP_SYS(lstat),
	SCMP_SYS(access), SCMP_SYS(readlink), SCMP_SYS(time), SCMP_SYS(getrlimit),
};

/* Allowed if none of these bits of an argument are set. */
static const struct {
	int call;
	unsigned argument;
	uint64_t bits;
} allowed_without[] = {
	{ SCMP_SYS(openat), 2, WRITES },
	{ SCMP_SYS(mmap), 2, PROT_EXEC },
	{ SCMP_SYS(mprotect), 2, PROT_EXEC },
	{ SCMP_SYS(prlimit64), 2, UINT64_MAX },	/* the new limit */
	{ SCMP_SYS(open), 1, WRITES },
};

static int fill(scmp_filter_ctx ctx)
{
	int ret = 0;

	/* A call that this processor does not have is left out. */
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < sizeof(allowed_without) / sizeof(allowed_without[0]) && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed_without[i].call, 1,
				       SCMP_CMP64(allowed_without[i].argument, SCMP_CMP_MASKED_EQ, allowed_without[i].bits, 0));
	/* All threads, and the kernel's log has what is denied, if kernel.seccomp.actions_logged has `errno`. */
	ret = ret ? ret : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	return ret ? ret : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, 1);
}

int sandbox_enter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int ret;

	if (!ctx)
		return -ENOMEM;
	ret = fill(ctx);
	ret = ret ? ret : seccomp_load(ctx);
	seccomp_release(ctx);
	return ret;
}
