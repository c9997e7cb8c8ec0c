/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter of the server's system calls. See sandbox.h. */
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static const int allowed[] = {
	/* open descriptors: sockets, events, timers, verbs and rdmacm */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64),
	SCMP_SYS(close), SCMP_SYS(lseek), SCMP_SYS(ppoll), SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2),
	SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(accept4), SCMP_SYS(getsockname),
	SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(shutdown),
	/* reading files: certificates, /proc, /sys */
	SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(faccessat), SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	/* memory, threads, signals */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(mlock), SCMP_SYS(munlock),
	SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_getscheduler),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq), SCMP_SYS(membarrier), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	/* time, randomness, identity of process and machine */
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday), SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid),
	SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getrusage), SCMP_SYS(times),
	SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getcpu),
	/* x86-64 only */
	SCMP_SYS(poll), SCMP_SYS(select), SCMP_SYS(epoll_wait), SCMP_SYS(accept), SCMP_SYS(stat), SCMP_SYS(lstat),
	SCMP_SYS(access), SCMP_SYS(readlink), SCMP_SYS(time), SCMP_SYS(getrlimit),
};

/* Calls that are allowed if none of these bits of an argument is set. */
static const struct {
	int call;
	unsigned argument;
	uint64_t bits;
} allowed_without[] = {
	{ SCMP_SYS(openat), 2, WRITES },
	{ SCMP_SYS(mmap), 2, PROT_EXEC },
	{ SCMP_SYS(mprotect), 2, PROT_EXEC },
	{ SCMP_SYS(prlimit64), 2, UINT64_MAX },	/* argument 2 is the new limit: must be NULL */
	{ SCMP_SYS(open), 1, WRITES },
};

/* Compares the low 32 bits only: the kernel ignores the rest of an int argument. */
#define IS(argument, value) SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, value)
#define LACKS(argument, bits) SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, bits, 0)

/* The only ioctls allowed: others could request signals when a descriptor is ready, type into a terminal, or reach a
 * driver. stdio and the log query terminals with TCGETS and TIOCGWINSZ. */
static const unsigned ioctls[] = { RDMA_VERBS_IOCTL, FIONBIO, FIONREAD, TIOCOUTQ, TCGETS, TIOCGWINSZ };

/* F_SETFL has its own rule in allow_requests. */
static const unsigned fcntls[] = { F_GETFD, F_SETFD, F_GETFL };

/* The socket options that common/sock/, the listener of the TLS port and OpenSSL (kernel TLS) set. */
static const struct {
	unsigned level, name;
} socket_options[] = {
	{ SOL_SOCKET, SO_KEEPALIVE }, { SOL_SOCKET, SO_LINGER }, { SOL_SOCKET, SO_SNDBUF }, { SOL_SOCKET, SO_RCVBUF },
	{ SOL_SOCKET, SO_BUSY_POLL }, { SOL_SOCKET, SO_ZEROCOPY },
	{ IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_TCP, TCP_QUICKACK }, { IPPROTO_TCP, TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL }, { IPPROTO_TCP, TCP_KEEPCNT }, { IPPROTO_TCP, TCP_USER_TIMEOUT },
	{ IPPROTO_TCP, TCP_CONGESTION }, { IPPROTO_TCP, TCP_ULP }, { SOL_TLS, TLS_TX }, { SOL_TLS, TLS_RX },
};

/* Allows sendto only without an address, and both calls only without MSG_FASTOPEN: either could connect a socket, such
 * as a listener that was shut down, to any host. The filter cannot see the address given to sendmsg. */
static int allow_sending(scmp_filter_ctx ctx)
{
	int ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(sendto), 2, LACKS(3, MSG_FASTOPEN),
				   LACKS(4, UINT64_MAX));

	return ret ? ret : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(sendmsg), 1, LACKS(2, MSG_FASTOPEN));
}

static int allow_requests(scmp_filter_ctx ctx)
{
	int ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 2, IS(1, F_SETFL), LACKS(2, O_ASYNC));

	for (size_t i = 0; i < sizeof(fcntls) / sizeof(fcntls[0]) && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, IS(1, fcntls[i]));
	for (size_t i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]) && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, IS(1, ioctls[i]));
	for (size_t i = 0; i < sizeof(socket_options) / sizeof(socket_options[0]) && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 2, IS(1, socket_options[i].level),
				       IS(2, socket_options[i].name));
	return ret;
}

static int allow_calls(scmp_filter_ctx ctx)
{
	int ret = 0;

	/* libseccomp leaves out a call that this processor does not have. */
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < sizeof(allowed_without) / sizeof(allowed_without[0]) && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed_without[i].call, 1,
				       SCMP_CMP64(allowed_without[i].argument, SCMP_CMP_MASKED_EQ,
						  allowed_without[i].bits, 0));
	ret = ret ? ret : allow_sending(ctx);
	ret = ret ? ret : allow_requests(ctx);
	/* Filter all threads; log denied calls in the kernel's log, if kernel.seccomp.actions_logged has `errno`. */
	ret = ret ? ret : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	return ret ? ret : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, 1);
}

int sandbox_enter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int ret;

	if (!ctx)
		return -ENOMEM;
	ret = allow_calls(ctx);
	ret = ret ? ret : seccomp_load(ctx);
	seccomp_release(ctx);
	return ret;
}
