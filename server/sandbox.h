/* SPDX-License-Identifier: BSD-2-Clause */
/* What the server may ask of the kernel once it serves (--seccomp on): a list of system calls, for all of its threads and for
 * good (seccomp(2)). Others fail with EPERM, and so do those that would open a file for writing, map memory that can be
 * executed, or change a limit: whoever takes the process over starts no program and makes no socket. What the open descriptors of
 * verbs and rdmacm do remains possible, RDMA connections among it.
 *
 * Certificates are read and regions registered as before: both need none of the others. Main thread.
 */
#ifndef RAMPART_SERVER_SANDBOX_H
#define RAMPART_SERVER_SANDBOX_H

/* All threads exist that will. 0, -ENOMEM or what seccomp_load(3) fails with: -ECANCELED (the kernel), -EINVAL
 * (it has no seccomp). */
int sandbox_enter(void) __attribute__((warn_unused_result));

#endif
